"""Images of pages: which files are taken, where they are stored, and which URLs the renderer allows."""

import base64
import os
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.web.conftest import client
from tests.web.dashboard import Visitor, call

from quaid.config import Settings
from quaid.errors import InvalidArgument, NotFound
from quaid.folders import attachments
from quaid.operations import service
from quaid.web import server as web_app
from quaid.web.pages.markdown import render_markdown

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
NAME = f"{'0' * 32}.png"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("data", [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF88a", b"%PDF-1.7"])
def test_only_images_of_four_kinds_are_stored(mine: Settings, data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        call(mine, "attach", data=encoded(data))


def test_images_have_up_to_five_megabytes(mine: Settings) -> None:
    largest = GIF.ljust(attachments.MAX_BYTES, b"\0")
    app = web_app.build_app(mine)
    with client(app, service.owner_token(mine)) as owner:
        answer = owner.post("/ui/attach?page=notes::kept", content=largest)
        assert answer.status_code == 200
        name = answer.json()["markdown"].rpartition("/")[2].removesuffix(")")
        shown = owner.get(f"/attachment/{name}?page=notes::kept")
        assert (shown.content, shown.headers["cache-control"]) == (largest, "no-store")
        assert owner.post("/ui/attach", content=largest + b"\0").status_code == 413
    with pytest.raises(InvalidArgument, match="at most 5,242,880 bytes"):
        call(mine, "attach", data=encoded(largest + b"\0"))


def test_images_are_read_only_by_their_own_name(mine: Settings, visitor: Visitor) -> None:
    stored = call(mine, "attach", data=encoded(GIF), slug="notes::kept")
    folder = Path(mine.cwd, "notes", "attachments")
    assert Path(stored.path) == folder / stored.name
    assert not call(mine, "attach", data=encoded(GIF), slug="notes::kept").created
    answer = visitor.get(f"/attachment/{stored.name}?page=notes::kept")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "image/gif", GIF)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert visitor.get(f"/attachment/{stored.name}").status_code == 404
    (folder / NAME).write_bytes(b"<script>")
    (folder / f"{'1' * 32}.gif").symlink_to(folder / stored.name)
    os.mkfifo(folder / f"{'2' * 32}.gif")
    for name in (NAME, f"{'1' * 32}.gif", f"{'2' * 32}.gif", "..%2Fkept.md", "kept.md"):
        assert visitor.get(f"/attachment/{name}?page=notes::kept").status_code == 404, name
    with pytest.raises(NotFound):
        call(mine, "attachment", name="../kept.md", slug="notes::kept")


def test_images_of_a_new_page_are_stored_whatever_its_address_field_contains(
    mine: Settings, visitor: Visitor
) -> None:
    before = len(list(Path(attachments.memory_folder(mine.db_path)).glob("*")))
    for number, typed in enumerate(("Caf\u00e9 Gr\u00f6\u00dfe & x", "", "../..", "\U0001f389"), 1):
        answer = visitor.send(
            f"/ui/attach?{urlencode({'page': typed})}", GIF + bytes([number]), {"X-CSRF-Token": visitor.csrf}
        )
        assert answer.status_code == 200, answer.text
        stored = Path(attachments.memory_folder(mine.db_path))
        assert len(list(stored.glob("*"))) == before + number


@pytest.mark.parametrize(
    "source",
    [f"../attachments/{NAME}", f"attachments/../{NAME}", "attachments/x.svg", f"/etc/{NAME}", f"//h/{NAME}"],
)
def test_other_sources_of_images_are_not_shown(source: str) -> None:
    assert "<img" not in render_markdown(f"![a]({source})")
    shown = render_markdown(f"![a](attachments/{NAME})", page='notes::"x&y')
    assert f'src="/attachment/{NAME}?page=notes%3A%3A%22x%26y"' in shown
