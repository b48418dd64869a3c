"""Which folder is which: the same one again, the same one elsewhere, another one."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quaid.app import Brain
from quaid.folders.importer import ImportReport
from quaid.storage import pages
from quaid.storage.history import Imports

Bring = Callable[[Path], ImportReport]
Fill = Callable[[dict[str, str | bytes]], Path]
Dump = Callable[[], dict[str, list[Any]]]


def outcomes(report: ImportReport) -> dict[str, int]:
    return {name: count for name, count in report.outcomes.items() if count}


def test_a_moved_folder_is_the_same_folder(vault: Fill, bring: Bring, tmp_path: Path, dump: Dump) -> None:
    root = vault({"a.md": "# A\n", "b.md": "# B\n", "c.md": "# C\n"})
    bring(root)
    moved = tmp_path / "moved"
    os.rename(root, moved)
    before = dump()
    assert outcomes(bring(moved)) == {"unchanged": 3}
    assert dump() == before
    (moved / "a.md").write_text("# A 2\n")
    assert outcomes(bring(moved)) == {"changed": 1, "unchanged": 2}
    (moved / "a.md").write_text("# A 3\n")
    assert outcomes(bring(moved)) == {"changed": 1, "unchanged": 2}


def test_another_folder_with_the_same_names_keeps_its_own_pages(
    vault: Fill, bring: Bring, tmp_path: Path, brain: Brain, dump: Dump
) -> None:
    root = vault({"todo.md": "# Work\n", "log.md": "# Work log\n", "same.md": "# Same\n"})
    bring(root)
    other = tmp_path / "other"
    other.mkdir()
    (other / "todo.md").write_text("# Home\n")
    (other / "log.md").write_text("# Home log\n")
    (other / "same.md").write_text("# Same\n")
    report = bring(other)
    assert outcomes(report) == {"new": 2, "unchanged": 1}
    assert {note.path for note in report.notes} == {"log.md", "todo.md"}
    assert f"a page of {root} has the slug todo" in report.notes[1].note
    assert pages.require(brain.db, "todo").truth == "# Work"
    assert pages.count(brain.db) == 5

    before = dump()
    assert (outcomes(bring(root)), outcomes(bring(other))) == ({"unchanged": 3}, {"unchanged": 3})
    assert dump() == before
    (other / "todo.md").write_text("# Home 2\n")
    assert outcomes(bring(other)) == {"changed": 1, "unchanged": 2}
    assert pages.require(brain.db, "todo").truth == "# Work"
    (root / "todo.md").write_text("# Work 2\n")
    assert outcomes(bring(root)) == {"changed": 1, "unchanged": 2}
    assert pages.require(brain.db, "todo").truth == "# Work 2"
    assert pages.count(brain.db) == 5


def test_a_new_file_never_takes_the_page_of_another_folder(
    vault: Fill, bring: Bring, tmp_path: Path, brain: Brain
) -> None:
    root = vault({"a.md": "# A\n"})
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("# B of the other\n")
    bring(root)
    bring(other)
    vault({"b.md": "# B of the first\n"})
    assert outcomes(bring(root)) == {"new": 1, "unchanged": 1}
    assert pages.require(brain.db, "b").truth == "# B of the other"


def test_a_sidecar_that_both_folders_have_serves_both_pages(
    vault: Fill, bring: Bring, tmp_path: Path, brain: Brain
) -> None:
    root = vault({"a.md": "# A\n", "b.md": "# B\n", ".raw/a.json": '{"sources": {"crm": 1}}'})
    bring(root)
    other = tmp_path / "other"
    shutil.copytree(root, other)
    (other / "a.md").write_text("# Another A\n")
    (other / "b.md").write_text("# Another B\n")
    report = bring(other)
    assert outcomes(report) == {"new": 2, "sidecar": 1}
    headers = [item for item in pages.listing(brain.db) if item.title == "Another A"]
    page = pages.require(brain.db, headers[0].slug)
    assert [item.data for item in pages.read_raw_data(brain.db, page.id)] == [1]


def test_each_import_covers_its_whole_folder(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"a.md": "# A\n", "b.md": "# B\n", "README.md": "x", ".raw/a.json": "{}"})
    first = bring(root)
    vault({"b.md": "# B 2\n"})
    second = bring(root)
    assert first.import_id
    assert second.import_id
    files = dict(Imports(brain.db).contents(second.import_id))
    assert files == {"a.md": b"# A\n", "b.md": b"# B 2\n", "README.md": b"x", ".raw/a.json": b"{}"}
    assert dict(Imports(brain.db).contents(first.import_id))["b.md"] == b"# B\n"
    assert brain.db.rows("SELECT count(*) FROM raw_imports") == [(5,)]
