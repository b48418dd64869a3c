"""Changed files are found by their stat, without reading them."""

import os
from pathlib import Path

import pytest

from quaid.app import Brain
from quaid.folders.sync import FileStatCache, changed_paths
from quaid.operations import dispatch
from quaid.operations.collections import attach_folder
from quaid.storage.collections import Collection, Collections

OLD = 1_600_000_000


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Collection:
    for path in ("a.md", "b/c.md", "b/d/e.md", "_templates/x.md", ".hidden/y.md", "z.txt"):
        place = tmp_path / "notes" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(path)
    attach_folder(brain, "notes", str(tmp_path / "notes"))
    return Collections(brain.db).require("notes")


@pytest.fixture
def settled(brain: Brain, notes: Collection, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """Return the collection as if its files had been read long after they were written.

    The clock of the tests is in April 2026.
    """
    monkeypatch.setattr("quaid.folders.sync.RACY_NS", -(10**19))
    assert changed_paths(FileStatCache(brain.db), notes) == []
    assert changed_paths(brain.seen, notes) == []
    return notes


def test_new_changed_and_missing_files_are_named(brain: Brain, settled: Collection, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "a.md").write_text("other")
    (root / "b/new.md").write_text("new")
    os.unlink(root / "b/d/e.md")
    assert changed_paths(brain.seen, settled) == ["a.md", "b/d/e.md", "b/new.md"]


def test_files_that_are_not_pages_are_not_listed(brain: Brain, settled: Collection, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "more.txt").write_text("x")
    (root / ".x.md").write_text("x")
    (root / "_templates/n.md").write_text("x")
    (root / "link.md").symlink_to(root / "a.md")
    assert changed_paths(brain.seen, settled) == []


def test_a_file_that_became_a_link_is_named(brain: Brain, settled: Collection, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    os.rename(root / "a.md", tmp_path / "a.md")
    (root / "a.md").symlink_to(tmp_path / "a.md")
    assert changed_paths(brain.seen, settled) == ["a.md"]


def test_a_file_that_was_read_while_it_was_new_is_named(brain: Brain, notes: Collection) -> None:
    assert changed_paths(brain.seen, notes) == ["a.md", "b/c.md", "b/d/e.md"]


def test_a_folder_that_is_away_has_nothing_stale(brain: Brain, settled: Collection) -> None:
    assert changed_paths(brain.seen, settled._replace(root="/nowhere")) == []


def test_file_indexed_by_another_process_is_not_stale(
    brain: Brain, settled: Collection, tmp_path: Path
) -> None:
    (tmp_path / "notes/a.md").write_text("other")
    assert changed_paths(brain.seen, settled) == ["a.md"]
    with Brain(brain.settings) as other:
        dispatch.call(other, dispatch.find_command("collection sync"), {}, "owner")
    assert changed_paths(brain.seen, settled) == []
