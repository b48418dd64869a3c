"""Settings without a browser: the log in words, a whole rebuild, and what is to be done by the names of this page."""

import os
import re
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.web.dashboard import Visitor, call, settings_in, visiting

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import service
from quaid.storage.spaces import SpaceRow
from quaid.web.pages.settings import describe_event, log_lines, name_buttons


@pytest.mark.parametrize(
    ("kind", "facts", "told"),
    [
        (
            "finished",
            {"operation": "collection sync", "succeeded": True, "seconds": 1.2},
            "Collection sync took 1.2 s",
        ),
        ("finished", {"operation": "embed", "succeeded": False, "seconds": 3}, "Embed failed after 3 s"),
        (
            "changed",
            {"pages": 1234, "updated_at": "2026-04-25T00:00:00Z"},
            "Pages changed: there are 1,234 now",
        ),
        ("gap", {"id": 3, "open": 1}, "A question found no answer: 1 question is open"),
        (
            "files",
            {"event": "synced", "collection": "notes", "new": 1, "removed": 2},
            "notes was synced: 1 new, 2 removed",
        ),
        (
            "files",
            {"event": "synced", "collection": "notes", "problem": None},
            "notes was synced: no changes",
        ),
        (
            "files",
            {"event": "trouble", "collection": "notes", "problem": "the disk is full"},
            "notes: the disk is full",
        ),
        ("files", {"event": "began", "collection": "notes", "problem": None}, "notes is watched"),
        ("embedding", {"done": 12, "total": 12, "finished": True}, "12 passages can be found by meaning"),
        ("embedding", {"done": 3, "total": 12, "finished": False}, ""),
    ],
)
def test_events_as_sentences(kind: str, facts: dict[str, object], told: str) -> None:
    assert describe_event(kind, facts) == told


def test_log_is_newest_first_without_progress_events() -> None:
    recent = [
        (0.0, "changed", {"pages": 1}),
        (1.0, "progress", {"done": 1}),
        (2.0, "gap", {"id": 1, "open": 2}),
    ]
    texts = [text for _, text in log_lines(recent)]
    assert texts == [
        "A question found no answer: 2 questions are open",
        "Pages changed: there are 1 now",
    ]


def test_next_steps_name_the_buttons_of_the_page() -> None:
    step = "`quaid embed` makes the 83 missing vectors"
    assert name_buttons(step) == "“Rebuild index” completes the search by meaning"


def burn(tx: Any) -> None:
    for table in ("tags", "timeline_entries", "chunks"):
        tx.execute(f"DELETE FROM {table}")


def test_rebuild_restores_derived_data(visitor: Visitor, mine: Settings) -> None:
    call(mine, "embeddings off")
    with open(os.path.join(mine.cwd, "notes", "later.md"), "w", encoding="utf-8") as file:
        file.write("# Later\n\nCame while nobody watched.\n")
    with Brain(mine) as brain:
        brain.db.write(burn)
    assert call(mine, "status").chunks == 0
    assert visitor.post("/settings/rebuild").headers["location"] == "/settings"
    text = visitor.get("/settings").text
    assert "pages is rebuilt. notes is in sync with its folder: 1 new." in text
    assert call(mine, "status").chunks > 20
    assert call(mine, "timeline", slug="people/mira-dahlquist").entries


def test_collection_table_has_labels_for_narrow_screens(visitor: Visitor) -> None:
    text = visitor.get("/settings").text
    row = text.partition('class="table cards"')[2]
    for label in ("Kind", "Pages", "Health", "Synced"):
        assert f'<td data-label="{label}">' in row


def test_settings_show_shared_spaces_and_why_they_are_not_synced(visitor: Visitor, mine: Settings) -> None:
    with Brain(mine) as brain:
        row = SpaceRow(
            *(1, "default", "https://hub.example.org", "h", "s", "team", "team", False, "write", "mira"),
            *("d", 0, "", -1, 0, brain.now(), None, None),
        )
        brain.db.write(lambda tx: row.add(tx))
        brain.db.write(lambda tx: row.update(tx, problem="The hub cannot be reached"))
    visitor.post("/settings/sync", name="notes")  # a form empties the cache of figures
    shown = visitor.get("/settings").text
    assert "Shared spaces" in shown
    assert "The hub cannot be reached" in shown


def test_folder_is_chosen_attached_and_detached(visitor: Visitor, mine: Settings) -> None:
    wiki = os.path.join(mine.user_home, "Documents", "My Wiki")
    os.makedirs(os.path.join(wiki, ".hidden"))
    with open(os.path.join(wiki, "one.md"), "w", encoding="utf-8") as file:
        file.write("# One\n\nThe first page of the wiki.\n")
    page = visitor.get("/settings/folders?" + urlencode({"under": os.path.dirname(wiki)})).text
    assert escape(urlencode({"under": wiki})) in page
    page = visitor.get("/settings/folders?" + urlencode({"under": wiki})).text
    assert "1 note directly in this folder" in page
    assert ".hidden" not in page
    assert 'name="name" value="my-wiki"' in page
    wrong = visitor.post("/settings/folders", path=wiki, name="Not a name!", under=wiki, read_only="1")
    assert wrong.status_code == 400
    assert 'value="Not a name!"' in wrong.text
    assert 'name="read_only" value="1" checked' in wrong.text
    assert (
        visitor.post("/settings/folders", path=wiki, name="wiki").headers["location"]
        == "/settings#collections"
    )
    assert "wiki is attached, with 1 page." in visitor.get("/settings").text
    page = visitor.get("/settings/collection/wiki").text
    assert "Remove its pages" in page
    visitor.post("/settings/detach", name="wiki", pages="remove")
    assert "wiki is detached. Its files are not changed. 1 page was removed." in visitor.get("/settings").text
    assert os.path.exists(os.path.join(wiki, "one.md"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A home folder with a link that leads out and a hidden folder."""
    folder = tmp_path_factory.mktemp("settings")
    (folder / "way-out").symlink_to("/")
    (folder / ".ssh" / "private-keys").mkdir(parents=True)
    return str(folder)


@pytest.fixture(scope="module")
def reading(home: str) -> Iterator[Visitor]:
    settings = settings_in(home)
    with Brain(settings) as brain:
        brain.create(settings.db_path)
    with visiting(settings) as visitor:
        yield visitor


@pytest.mark.parametrize(
    "under", ["/", "/etc", "../..", "{home}/../..", "{home}/.ssh", "{home}/way-out", "\0", "{home}x"]
)
def test_folders_outside_the_home_folder_are_never_listed(reading: Visitor, home: str, under: str) -> None:
    answer = reading.get("/settings/folders?" + urlencode({"under": under.format(home=home)}))
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
    assert f"<strong>{home}</strong>" in answer.text, "the home folder is shown instead"
    for name in ("usr", "private-keys", "way-out"):
        assert f'<span class="main-line">{name}</span>' not in answer.text


def test_program_is_connected_after_a_preview(visitor: Visitor, mine: Settings) -> None:
    settings = os.path.join(mine.user_home, ".cursor", "mcp.json")
    os.makedirs(os.path.dirname(settings))
    with open(settings, "w", encoding="utf-8") as file:
        file.write('{"mcpServers": {"other": {"command": "other"}}}\n')
    page = visitor.get("/settings/client/cursor").text
    assert "Connect Cursor" in page
    assert 'class="added"' in page
    assert "quaid" not in Path(settings).read_text(), "a preview changes nothing"
    visitor.post("/settings/client/cursor", act="connect")
    assert "Cursor is connected. Restart Cursor to use the memory." in visitor.get("/settings").text
    assert "quaid" in Path(settings).read_text()
    assert "Disconnect Cursor" in visitor.get("/settings/client/cursor").text
    visitor.post("/settings/client/cursor", act="disconnect")
    assert Path(settings).read_text() == '{"mcpServers": {"other": {"command": "other"}}}\n'
    assert visitor.get("/settings/client/nothing").status_code == 404


def test_backup_is_made_listed_and_verified(visitor: Visitor, mine: Settings) -> None:
    visitor.post("/settings/backup")
    assert "The backup is written and checked" in visitor.get("/settings").text
    (backup,) = call(mine, "backups list").value
    visitor.post("/settings/backup/verify", path=backup.path)
    assert "is intact: " in visitor.get("/settings").text
    assert visitor.post("/settings/backup/verify", path=mine.db_path).status_code == 404


def test_rights_of_agents_are_changed(visitor: Visitor, mine: Settings) -> None:
    default = re.findall(r'name="mode" value="(\w+)"( checked)?', visitor.get("/settings").text)
    assert default == [("guarded", " checked"), ("direct", ""), ("review", "")]
    visitor.post("/settings/agents", mode="review", forget="1")
    visitor.post("/settings/agents", kind="client", name="Codex", mode="direct")
    values = {setting.key: setting.value for setting in call(mine, "config list").value}
    assert (values["agent_writes"], values["agents_may"]) == ("review", "forget")
    assert values["agent_writes.client.codex"] == "direct"
    page = visitor.get("/settings").text
    assert '<input type="radio" name="mode" value="review" checked>' in page
    assert "Let it propose" in page
    wrong = visitor.post("/settings/agents", kind="collection", name="no-such one", mode="direct")
    assert wrong.status_code in (400, 404)
    assert 'value="no-such one"' in wrong.text
    assert 'role="alert"' in wrong.text


def test_reranker_that_cannot_be_used_keeps_the_typed_text(visitor: Visitor) -> None:
    wrong = visitor.post("/settings/rerank", place="/no/such/folder", model="")
    assert wrong.status_code >= 400
    assert 'name="place" required value="/no/such/folder"' in wrong.text


def test_notebook_is_started(tmp_path: Path) -> None:
    settings = settings_in(str(tmp_path))
    with Brain(settings) as brain:
        brain.create(settings.db_path)
    with visiting(settings) as visitor:
        assert "Start a notebook" in visitor.get("/settings").text
        page = visitor.get("/settings/folders?for=notebook").text
        assert "Choose the folder of the notebook" in page
        assert visitor.post("/settings/folders", **{"for": "notebook"}).headers["location"] == "/notebook"
    assert call(settings, "notebook list").root == os.path.join(os.path.realpath(tmp_path), "notebook")


@pytest.mark.parametrize(
    "path",
    ["folders", "detach", "client/cursor", "backup", "backup/verify", "agents", "rerank", "embed", "spaces"],
)
def test_forms_of_settings_need_the_csrf_token(reading: Visitor, path: str) -> None:
    assert reading.post(f"/settings/{path}", csrf_token="wrong").status_code == 403


def test_a_token_is_created_shown_once_and_revoked(visitor: Visitor, mine: Settings) -> None:
    form = {"name": "phone", "scope": "write", "expires": "30d"}
    made = visitor.post("/settings/token/new", **form)
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    (secret,) = set(service.TOKEN_PATTERN.findall(made.text))
    page = visitor.get("/settings").text
    assert secret not in page
    assert "never used" in page
    assert "valid until" in page
    grant = service.TokenReader(mine).find(secret, time.time())
    assert grant is not None
    assert (grant.name, grant.scope) == ("phone", "write")
    again = visitor.post("/settings/token/new", **form)
    assert again.status_code == 409
    assert 'value="phone"' in again.text  # what was typed is kept
    assert 'value="30d" selected' in again.text
    assert visitor.post("/settings/token/new", **{**form, "name": "A b"}).status_code == 400
    assert visitor.post("/settings/token/new", **{**form, "name": "x", "expires": "soon"}).status_code == 400
    assert visitor.post("/settings/token", name="phone").status_code in (200, 303)
    assert service.TokenReader(mine).find(secret, time.time()) is None
    assert "No tokens yet" in visitor.get("/settings").text
