"""What every page shares: messages that are told once, errors that lead back, and words for a browser."""

import os
import re
from collections.abc import Iterator

import httpx
import pytest
from starlette.testclient import TestClient
from tests.web.conftest import client
from tests.web.dashboard import Visitor, call, lifelike, visiting

from quaid.config import Settings
from quaid.errors import FolderNotEmpty, NotLoggedIn, PageNotFound, PageOfFolder, QuaidError
from quaid.web import server as web_app
from quaid.web.pages.base import browser_message, format_commands


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return lifelike(str(tmp_path_factory.mktemp("rendering")))


@pytest.fixture(scope="module")
def visitor(mine: Settings) -> Iterator[Visitor]:
    with visiting(mine) as client:
        yield client


def links(answer: httpx.Response) -> dict[str, str]:
    """What the error offers to do, and where."""
    offered = answer.text.partition('<p class="actions">')[2].partition("</p>")[0]
    matches = re.findall(r'href="([^"]+)">(.*?)</a>', offered)
    return {re.sub(r"<svg.*?</svg>", "", label).strip(): address for address, label in matches}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PageNotFound(slug="a/b", hint=" Did you mean a/c?"), "There is no page a/b. Did you mean a/c?"),
        (FolderNotEmpty(path="/tmp/x"), "/tmp/x is not empty. Choose a new folder."),
        (
            PageOfFolder(slug="n::a", collection="n", act="Merge"),
            "n::a comes from a file of the collection n. Merge the file in its folder; the memory is updated"
            " from it.",
        ),
        (
            NotLoggedIn(problem="Nobody is logged in", remedy="`quaid web` opens it"),
            "Nobody is logged in. `quaid web` opens it.",
        ),
    ],
)
def test_error_messages_in_the_browser_name_no_commands(error: QuaidError, told: str) -> None:
    assert browser_message(error) == told


def test_commands_in_messages_are_escaped_code() -> None:
    assert (
        format_commands("No <b>. `quaid <i>` helps.") == "No &lt;b&gt;. <code>quaid &lt;i&gt;</code> helps."
    )


def test_flash_message_is_shown_once(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="concepts/patience")
    answer = visitor.post("/page/concepts/patience/edit", text="# Patience\n\nOnce.\n", version=page.version)
    assert answer.headers["location"] == "/page/concepts/patience"
    assert ">Saved.</p>" in visitor.get("/page/concepts/patience").text
    assert ">Saved.</p>" not in visitor.get("/page/concepts/patience").text
    assert ">Saved.</p>" not in visitor.get("/page/concepts/patience?done=saved").text


def test_error_pages_link_back(visitor: Visitor) -> None:
    answer = visitor.get("/settings/collection/nonsense")
    assert answer.status_code == 404
    assert links(answer)["Back to Settings"] == "/settings"
    answer = visitor.post("/notebook", path="../outside")
    assert answer.status_code == 400
    assert links(answer)["Back to Notebook"] == "/notebook"
    answer = visitor.get("/page/people/nobody-here")
    assert "`quaid" not in answer.text
    assert links(answer)["Write this page"].startswith("/new?slug=")


def test_refused_note_stays_in_its_field(visitor: Visitor, mine: Settings) -> None:
    notebook = os.path.join(mine.cwd, "notebook")
    os.rename(notebook, notebook + "-away")
    answer = visitor.post("/jot", text="The key is under the pot", where="log")
    os.rename(notebook + "-away", notebook)
    assert answer.status_code >= 400
    assert 'class="flash bad"' in answer.text
    assert "The key is under the pot</textarea>" in answer.text


def test_a_form_of_settings_that_fails_shows_the_settings_again(visitor: Visitor) -> None:
    for path, name in (("token", "nobody"), ("sync", "nowhere"), ("embeddings", "no-such-model")):
        answer = visitor.post(f"/settings/{path}", name=name)
        assert answer.status_code >= 400, path
        assert 'class="flash bad"' in answer.text, path
        assert "Rebuild index" in answer.text, path


def test_visitor_without_login_sees_no_navigation(mine: Settings) -> None:
    asked: TestClient = client(web_app.build_app(mine))
    for path in ("/", "/login?code=used", "/settings"):
        answer = asked.get(path)
        assert answer.status_code == 401
        assert "<code>quaid web</code>" in answer.text
        assert "<nav" not in answer.text
        assert "/review" not in answer.text
