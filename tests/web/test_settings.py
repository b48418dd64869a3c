"""Settings without a browser: the log in words, a whole rebuild, and what is to be done by the names of this page."""

import os
from typing import Any

import pytest
from tests.web.dashboard import Visitor, call

from quaid.app import Brain
from quaid.config import Settings
from quaid.storage import spaces
from quaid.storage.spaces import SpaceRow
from quaid.web.pages.notebook import undated_commitments
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
        ("embedding", {"done": 12, "total": 12, "finished": True}, "12 passages have their vector"),
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
    assert (
        name_buttons("`quaid embed` makes the missing vector") == "“Rebuild index” makes the missing vector"
    )


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


def test_undated_commitments_are_shown_on_home(visitor: Visitor, mine: Settings) -> None:
    notes = ("contradictions are not known", "2 open commitments name no day: no `due` in the front matter")
    assert undated_commitments(notes) == "2 open commitments have no due date"
    assert undated_commitments(notes[:1]) == ""
    for name in ("one", "two"):
        text = f"---\ntype: commitment\n---\n# Promise {name}\n"
        assert visitor.post(f"/page/commitments/{name}/edit", text=text, version=0).status_code == 303
    assert (
        f"{undated_commitments(call(mine, 'briefing').notes)}: add <code>due</code>" in visitor.get("/").text
    )
    assert "open commitments have no due date" in visitor.get("/").text


def test_settings_show_shared_spaces_and_why_they_are_not_synced(visitor: Visitor, mine: Settings) -> None:
    with Brain(mine) as brain:
        row = SpaceRow(
            *(1, "default", "https://hub.example.org", "h", "s", "team", "team", False, "write", "mira"),
            *("d", 0, "", -1, 0, brain.now(), None, None),
        )
        brain.db.write(lambda tx: spaces.add_space(tx, row))
        brain.db.write(lambda tx: spaces.update_space(tx, 1, problem="The hub cannot be reached"))
    visitor.post("/settings/sync", name="notes")  # a form empties the cache of figures
    shown = visitor.get("/settings").text
    assert "Shared spaces" in shown
    assert "The hub cannot be reached" in shown
