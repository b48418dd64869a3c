"""Pages whose names are in other scripts than Latin: addresses, files, links, and slugs of earlier versions."""

import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.web.dashboard import visiting

from quaid.app import Brain
from quaid.errors import InvalidSlug
from quaid.mcp import tools
from quaid.model import slug as slugs
from quaid.operations import dispatch, shell
from quaid.storage import page_edits
from quaid.web.pages import base

NAMES = {
    "zh/用户界面": "# 用户界面\n\n见 [[日本語/ガイド]] 和 [[x]]。\n",
    "日本語/ガイド": "# ガイド\n\n[用户](../zh/用户界面.md)\n",
    "العربية/مرحبا": "# مرحبا\n\n[[हिन्दी/नमस्ते]]\n",
    "हिन्दी/नमस्ते": "# नमस्ते\n\n[[россия/ёлка]]\n",
    "россия/ёлка": "# Ёлка\n\n[x](/zh/用户界面/)\n",
    "mixed/a-用户_2": "# Mixed\n\n[[zh/u7528u6237u754cu9762]]\n",
}


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in NAMES.items():
        path = tmp_path / "vault" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "vault"


@pytest.fixture
def attached(brain: Brain, folder: Path) -> Brain:
    call(brain, "collection add", name="notes", path=str(folder))
    return brain


def links_of(brain: Brain) -> set[tuple[str, str]]:
    rows = brain.db.rows(
        "SELECT a.slug, b.slug FROM links AS l JOIN pages AS a ON a.id = l.from_page_id"
        " JOIN pages AS b ON b.id = l.to_page_id"
    )
    return {(str(start), str(end)) for start, end in rows}


LINKS = {
    ("zh/用户界面", "日本語/ガイド"),
    ("日本語/ガイド", "zh/用户界面"),
    ("العربية/مرحبا", "हिन्दी/नमस्ते"),
    ("हिन्दी/नमस्ते", "россия/ёлка"),
    ("россия/ёлка", "zh/用户界面"),
}


def test_files_keep_their_names_and_links_between_them_resolve(attached: Brain) -> None:
    assert {page.slug for page in call(attached, "list").pages} == set(NAMES)
    assert links_of(attached) == LINKS


@pytest.mark.parametrize("name", NAMES)
def test_page_is_found_by_each_form_of_its_address(attached: Brain, name: str) -> None:
    for form in (name, unicodedata.normalize("NFD", name), slugs.escaped_from_path(name)):
        assert call(attached, "get", slug=form).slug == name
        assert call(attached, "get", slug=f"notes::{form}").slug == name


def test_page_is_written_to_a_file_with_its_name(attached: Brain, folder: Path) -> None:
    call(attached, "put", slug="notes::zh/设置", content="# 设置")
    assert (folder / "zh" / "设置.md").read_text(encoding="utf-8").startswith("# 设置")
    call(attached, "put", slug="नई/पत्र", content="# पत्र")
    assert call(attached, "get", slug="नई/पत्र").title == "पत्र"


@pytest.mark.parametrize("slug", ["zh/😀", "Россия/x", "zh/用 户", "caf\u00e9", "zh/../x", "用\u202e"])
def test_address_with_other_characters_is_refused(attached: Brain, slug: str) -> None:
    with pytest.raises(InvalidSlug):
        call(attached, "put", slug=slug, content="x")


def test_emoji_in_a_file_name_becomes_a_dash(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "用😀户 🎉.md").write_text("x", encoding="utf-8")
    call(brain, "collection add", name="v", path=str(tmp_path / "v"))
    assert [page.slug for page in call(brain, "list").pages] == ["用-户"]


def test_names_that_differ_only_in_case_get_different_slugs(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    for name in ("ЁЛКА.md", "ёлка.md"):
        (tmp_path / "v" / name).write_text(name, encoding="utf-8")
    call(brain, "collection add", name="v", path=str(tmp_path / "v"))
    found = {page.slug for page in call(brain, "list").pages}
    assert len(found) == 2
    assert "ёлка" in found


def make_old(brain: Brain) -> dict[str, tuple[Any, ...]]:
    """Give the pages the slugs of an earlier version. Return id, UUID and version of each page by new slug."""

    def work(tx: Any) -> None:
        for page_id, collection_id, slug in tx.execute(
            "SELECT id, collection_id, slug FROM pages"
        ).fetchall():
            old = slugs.escaped_from_path(slug)
            if old != slug:
                page_edits.change_slug(tx, collection_id, page_id, slug, old, brain.now(), redirect=False)

    rows = brain.db.rows("SELECT slug, id, uuid, version FROM pages")
    brain.db.write(work)
    return {str(slug): tuple(rest) for slug, *rest in rows}


def test_sync_renames_pages_of_earlier_versions_once(attached: Brain) -> None:
    call(attached, "assert", slug="zh/用户界面", predicate="status", object="done")
    before = make_old(attached)
    assert call(attached, "get", slug="zh/u7528u6237u754cu9762").title == "用户界面"
    assert call(attached, "get", slug="zh/用户界面").title == "用户界面"
    call(attached, "collection sync", name="notes")
    rows = attached.db.rows("SELECT slug, id, uuid, version FROM pages")
    assert {str(slug): tuple(rest) for slug, *rest in rows} == before
    old = {slugs.escaped_from_path(name) for name in NAMES}
    assert {slug for (slug,) in attached.db.rows("SELECT slug FROM redirects")} == old
    assert call(attached, "get", slug="zh/u7528u6237u754cu9762").slug == "zh/用户界面"
    assert [fact.object for fact in call(attached, "facts", subject="zh/用户界面").facts] == ["done"]
    # The text of another page still uses the old slug.
    assert links_of(attached) == LINKS | {("mixed/a-用户_2", "zh/用户界面")}
    assert len(call(attached, "history", slug="zh/用户界面").versions) >= 1
    (again,) = call(attached, "collection sync", name="notes").value
    assert (again.unchanged, again.changed, again.moved) == (len(NAMES), 0, 0)


def test_pages_imported_by_an_earlier_version_are_updated_under_their_slug(
    brain: Brain, folder: Path
) -> None:
    call(brain, "import", folder=str(folder))
    make_old(brain)
    (folder / "zh" / "用户界面.md").write_text("# 用户界面\n\n新\n", encoding="utf-8")
    call(brain, "import", folder=str(folder))
    assert call(brain, "list").total == len(NAMES)
    page = call(brain, "get", slug="zh/用户界面")
    assert (page.slug, page.version) == ("zh/u7528u6237u754cu9762", 2)
    assert page.compiled_truth.endswith("新")


def test_slug_requested_by_a_file_is_kept(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "用.md").write_text("---\nslug: u7528\n---\nx", encoding="utf-8")
    call(brain, "collection add", name="v", path=str(tmp_path / "v"))
    (report,) = call(brain, "collection sync", name="v").value
    assert (report.changed, call(brain, "get", slug="u7528").slug) == (0, "u7528")


def test_export_and_import_keep_addresses_and_links(attached: Brain, tmp_path: Path) -> None:
    call(attached, "export", dir=str(tmp_path / "out"), collection="notes")
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.md")}
    assert {f"{name}.md" for name in NAMES} <= files
    with Brain(attached.settings._replace(db_path=str(tmp_path / "second.db"))) as second:
        second.create(str(tmp_path / "second.db"))
        call(second, "import", folder=str(tmp_path / "out"))
        assert set(NAMES) <= {page.slug for page in call(second, "list").pages}
        assert links_of(second) >= LINKS


def test_completion_offers_slugs_in_every_script(attached: Brain) -> None:
    assert shell.complete_names(attached.settings, "slugs", "zh/") == ["zh/用户界面"]
    assert shell.complete_names(attached.settings, "slugs", "हिन्") == ["हिन्दी/नमस्ते"]


def test_resource_address_is_percent_encoded(attached: Brain) -> None:
    uris = [entry["uri"] for entry in tools.list_resources(attached, None)["resources"]]
    assert f"memory://pages/notes::{quote('zh/用户界面')}" in uris
    for uri in uris[1:]:
        assert uri.isascii()
        assert tools.read_resource(attached, uri)["contents"][0]["text"]


def test_dashboard_shows_pages_in_every_script(attached: Brain) -> None:
    with visiting(attached.settings) as visitor:
        for name in NAMES:
            url = base.page_url(f"notes::{name}")
            assert url.isascii()
            assert "<h1" in visitor.get(url).text
        moved = visitor.get("/page/notes::zh/u7528u6237u754cu9762")
        assert (moved.status_code, moved.headers["location"]) == (303, base.page_url("notes::zh/用户界面"))
