"""Import, export and imports, through the gate as every surface calls them."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import InvalidArgument, NotAllowed, NotFound, RawNeedsImport
from quaid.folders import attachments
from quaid.operations import collections, dispatch, doctor
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


GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"


def with_image(brain: Brain, other: bytes = b"") -> str:
    """Store an image that a page shows, and return its name."""
    load_subject("ingest")
    data = base64.b64encode(GIF + other).decode()
    image = dispatch.call(brain, dispatch.find_command("attach"), {"data": data}, "owner")
    page = {"slug": f"pictures/{image.name[:4]}", "content": f"# A picture\n\n{image.markdown}\n"}
    dispatch.call(brain, dispatch.find_command("put"), page, "owner")
    return str(image.name)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Brain]:
    """Another memory, new and empty."""
    settings = Settings(str(tmp_path / "other" / "memory.db"), str(tmp_path / "home"), str(tmp_path))
    with Brain(settings) as other:
        other.create(settings.db_path)
        yield other


def test_images_of_an_export_come_back_with_an_import(brain: Brain, other: Brain, tmp_path: Path) -> None:
    name = with_image(brain)
    call(brain, "export", dir="out")
    folder = tmp_path / "out" / "pictures" / "attachments"
    assert (folder / name).read_bytes() == GIF
    (folder / f"{'0' * 32}.gif").write_bytes(GIF)  # not named by its content
    (folder / "photo.gif").write_bytes(GIF)
    report = call(other, "import", folder=str(tmp_path / "out")).report
    assert (report.images, report.outcomes["left_out"]) == (1, 2)
    kept = Path(attachments.memory_folder(other.settings.db_path))
    assert [file.name for file in kept.iterdir()] == [name]
    (kept / name).unlink()
    again = call(other, "import", folder=str(tmp_path / "out")).report
    assert (again.images, again.import_id) == (1, None)
    assert (kept / name).read_bytes() == GIF


def test_a_backup_has_the_images_and_forgetting_deletes_them(brain: Brain, tmp_path: Path) -> None:
    first, second = with_image(brain), with_image(brain, b"another")
    source = Path(attachments.memory_folder(brain.settings.db_path))
    (source / f"{'1' * 32}.gif").symlink_to(source / first)
    (source / "notes.txt").write_text("not an image")
    backup = dispatch.find_command("backup")
    record = dispatch.call(brain, backup, {"file": "copy.db"}, "owner")
    copies = tmp_path / "copy.attachments"
    assert record.images == 2
    assert {file.name: file.read_bytes() for file in copies.iterdir()} == {
        first: GIF,
        second: GIF + b"another",
    }
    with Brain(brain.settings._replace(db_path=str(tmp_path / "copy.db"))) as restored:
        image = dispatch.call(restored, dispatch.find_command("attachment"), {"name": second}, "owner")
        assert base64.b64decode(image.data) == GIF + b"another"
    load_subject("cleanup")
    page = {"slug": f"pictures/{first[:4]}", "yes": True, "backups": True}
    dispatch.call(brain, dispatch.find_command("forget"), page, "owner")
    assert not (tmp_path / "copy.db").exists()
    assert not copies.exists()
    assert not (source / first).exists()
    assert (source / second).exists()


def test_the_steps_that_restore_a_backup_bring_its_images(brain: Brain, tmp_path: Path) -> None:
    name = with_image(brain)
    dispatch.call(brain, dispatch.find_command("backup"), {}, "owner")
    folder = Path(attachments.memory_folder(brain.settings.db_path))
    (folder / name).unlink()
    _, copy, steps = doctor.plan_recovery(brain, reads=False)
    assert copy
    for step in steps:
        if step.startswith(("mkdir", "cp", "mv")):
            subprocess.run(step, shell=True, check=True, cwd=tmp_path)
    assert (folder / name).read_bytes() == GIF
