"""A sync that meets trouble: that of the folder waits for a person, that of the memory's own disk is an error."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.workspace import FOLDER, open_brain, run

from quaid.app import Brain
from quaid.errors import FileTrouble

FRAME = 4096 + 24
"""Bytes of a page in SQLite's log."""


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """The system refuses every byte behind this one, as a failing disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    (tmp_path / FOLDER).mkdir()
    with open_brain(tmp_path) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(tmp_path / FOLDER))
        for number in range(20):
            run(brain, "put", slug=f"d{number}", content="# Page\n\nText.\n")
        yield brain


def halted(brain: Brain) -> list[Any]:
    return brain.db.rows("SELECT reconcile_halted_at, reconcile_halt_reason FROM collections WHERE id > 1")


def test_a_failing_disk_of_the_memory_is_an_error_and_does_not_halt_the_folder(
    brain: Brain, tmp_path: Path
) -> None:
    (tmp_path / FOLDER / "new.md").write_text("# New\n\n" + "Many words. " * 10_000)
    log = tmp_path / "memory.db-wal"
    # Room for a note that the folder cannot be looked at, which would be wrong, and not for the page.
    with no_file_grows_beyond(log.stat().st_size + 12 * FRAME), pytest.raises(FileTrouble) as refused:
        run(brain, "collection sync", name=FOLDER)
    assert refused.value.facts["path"] == brain.db.path
    assert "Check the disk and try again" in str(refused.value)
    assert halted(brain) == [(None, None)]
    assert run(brain, "collection sync", name=FOLDER)["syncs"][0]["new"] == 1
    assert run(brain, "validate")["violations"] == []


def test_a_folder_that_cannot_be_looked_at_halts_and_keeps_its_pages(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / FOLDER / "new.md").write_text("# New\n\nWords.\n")
    run(brain, "collection sync", name=FOLDER)
    (tmp_path / FOLDER).rename(tmp_path / "elsewhere")
    report = run(brain, "collection sync", name=FOLDER)["syncs"][0]
    assert report["halted"]
    assert halted(brain)[0][1] == report["halted"]
    assert run(brain, "get", slug=f"{FOLDER}::new")["compiled_truth"].strip().endswith("Words.")
