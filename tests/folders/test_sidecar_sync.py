"""Sidecars of an attached folder, whose raw data is kept in sync with the pages."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.folders.conftest import Fill
from tests.folders.watched_folder import Watched

from quaid.app import Brain
from quaid.cli.render import render
from quaid.config import Settings
from quaid.operations import dispatch


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def sources(brain: Brain, slug: str) -> dict[str, Any]:
    return {item.source: item.data for item in run(brain, "raw", slug=slug).data}


FILES: dict[str, str | bytes] = {
    "people/alice.md": "# Alice\n\nLives in Oslo.\n",
    "people/.raw/alice.json": '{"sources": {"crm": {"id": 7}, "web": ["a"]}}',
    "people/.raw/nobody.json": '{"sources": {"crm": 1}}',
    "people/.raw/broken.json": '{"sources": ',
    "bob.md": "# Bob\n",
    ".raw/bob.json": '{"name": "Bob"}',
}


@pytest.fixture
def folder(brain: Brain, vault: Fill) -> Path:
    root = vault(FILES)
    run(brain, "collection add", name="notes", path=str(root))
    return root


def test_a_collection_takes_the_same_raw_data_as_an_import(brain: Brain, vault: Fill) -> None:
    root = vault(FILES)
    imported = run(brain, "import", folder=str(root)).report.raw_data
    record = run(brain, "collection add", name="notes", path=str(root))
    assert record.sync.raw_data == imported == 3
    for slug in ("people/alice", "bob"):
        assert sources(brain, f"notes::{slug}") == sources(brain, f"default::{slug}") != {}
    assert "raw data: 3" in render(record)
    assert {note.path for note in record.sync.notes} == {"people/.raw/nobody.json", "people/.raw/broken.json"}
    assert record.collection.files == 2


def test_sidecar_changes_are_applied_and_local_changes_kept(brain: Brain, folder: Path) -> None:
    version = run(brain, "get", slug="notes::people/alice").version
    side = folder / "people/.raw/alice.json"
    side.write_text('{"sources": {"crm": {"id": 8}}}')
    report = run(brain, "collection sync").value[0]
    assert report.raw_data == 1
    assert sources(brain, "notes::people/alice") == {"crm": {"id": 8}}
    assert run(brain, "get", slug="notes::people/alice").version == version + 1
    run(brain, "raw", slug="notes::people/alice", source="crm", data={"id": 9})
    side.write_text('{"sources": {"crm": {"id": 10}, "new": 1}}')
    report = run(brain, "collection sync").value[0]
    assert sources(brain, "notes::people/alice") == {"crm": {"id": 9}, "new": 1}
    assert any("what crm says was changed here" in note.note for note in report.notes)
    assert run(brain, "collection sync").value[0].raw_data == 0


def test_a_sidecar_that_is_gone_takes_nothing_away_and_one_that_waits_is_taken_with_its_page(
    brain: Brain, folder: Path
) -> None:
    (folder / "people/.raw/alice.json").unlink()
    (folder / "people/nobody.md").write_text("# Nobody\n")
    run(brain, "collection sync")
    assert set(sources(brain, "notes::people/alice")) == {"crm", "web"}
    assert sources(brain, "notes::people/nobody") == {"crm": 1}
    assert run(brain, "collection audit", name="notes").differences == ()
    assert run(brain, "validate").violations == ()


def test_an_ignored_sidecar_is_not_read(brain: Brain, folder: Path) -> None:
    (folder / ".quaidignore").write_text("people/.raw/\n")
    (folder / "people/.raw/alice.json").write_text('{"sources": {"crm": "changed"}}')
    run(brain, "collection sync")
    assert sources(brain, "notes::people/alice")["crm"] == {"id": 7}


@pytest.fixture
def watched(settings: Settings, vault: Fill) -> Iterator[Watched]:
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        watched = Watched(brain, vault(FILES))
        watched.attach("notes", watched.root)
        yield watched


def test_a_watcher_sees_a_sidecar_change(watched: Watched) -> None:
    with watched.running():
        (watched.root / "people/.raw/alice.json").write_text(json.dumps({"sources": {"crm": "changed"}}))
        watched.wait(lambda: sources(watched.brain, "notes::people/alice") == {"crm": "changed"})
    assert [sync.raw_data for sync in watched.syncs(whole=False)] == [1]
