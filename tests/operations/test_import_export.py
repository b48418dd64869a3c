"""Import, export and imports, through the gate as every surface calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotAllowed, NotFound, RawNeedsImport
from quaid.operations import collections, dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.registry import OPERATIONS, load_subject

load_subject("collections")


def call(brain: Brain, name: str, **arguments: Any) -> Any:
    return dispatch.call(brain, OPERATIONS[f"collections.{name}"], arguments, "owner")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "people").mkdir(parents=True)
    (folder / "people" / "alice.md").write_text("# Alice\n")
    (folder / "README.md").write_text("About.\n")
    return folder


def test_import_resolves_the_folder_against_the_working_directory(brain: Brain, notes: Path) -> None:
    record = call(brain, "import", folder="notes/")
    assert record.report.folder == os.path.realpath(notes)
    assert record.report.outcomes["new"] == 1
    assert record.cpu_seconds >= 0
    assert json.loads(json.dumps(json_value(record)))["report"]["outcomes"]["special"] == 1


def test_a_tilde_is_home(brain: Brain, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(notes.parent))
    assert call(brain, "import", folder="~/notes").report.files_seen == 2
    call(brain, "export", dir="~/out")
    assert (notes.parent / "out" / "people" / "alice.md").exists()


def test_export_goes_into_a_folder_named_export(brain: Brain, notes: Path) -> None:
    call(brain, "import", folder="notes")
    record = call(brain, "export")
    assert record.folder == str(notes.parent / "export")
    assert (notes.parent / "export" / "people" / "alice.md").read_text() == "# Alice\n"


def test_imports_are_listed_newest_first_with_what_a_raw_export_needs(brain: Brain, notes: Path) -> None:
    assert call(brain, "imports").value == ()
    first = call(brain, "import", folder="notes").report.import_id
    assert call(brain, "import", folder="notes").report.import_id is None
    (notes / "b.md").write_text("# B\n")
    second = call(brain, "import", folder="notes").report.import_id
    listed = call(brain, "imports").value
    assert [(item.import_id, item.page_count, item.file_count) for item in listed] == [
        (second, 2, 3),
        (first, 1, 2),
    ]
    assert listed[0].source_dir == os.path.realpath(notes)
    call(brain, "export", raw=True, import_id=first, dir="raw")
    assert sorted(os.listdir(notes.parent / "raw")) == ["README.md", "people"]


def test_raw_without_an_import_is_an_error_that_says_why(brain: Brain, notes: Path) -> None:
    imported = call(brain, "import", folder="notes").report.import_id
    with pytest.raises(RawNeedsImport, match=f"needs --import-id.*{imported}"):
        call(brain, "export", raw=True)
    with pytest.raises(NotFound, match=imported):
        call(brain, "export", raw=True, import_id="x")
    with pytest.raises(InvalidArgument, match="goes with --raw"):
        call(brain, "export", import_id=imported)
    assert not (notes.parent / "export").exists()


def test_only_the_owner_may_bring_in_or_write_out(brain: Brain) -> None:
    for name in ("import", "export", "imports"):
        operation = OPERATIONS[f"collections.{name}"]
        assert not operation.is_tool
        with pytest.raises(NotAllowed):
            dispatch.call(brain, operation, {"folder": "."} if name == "import" else {}, "write")


def test_cpu_time_of_child_processes_is_counted() -> None:
    before = collections._cpu_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(5_000_000))"], check=True)
    assert collections._cpu_seconds() - before > 0.04
