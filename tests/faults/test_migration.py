"""An older memory is brought forward whole or not at all, whatever happens on the way; a newer one is not touched."""

import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.faults import old_schema, operations, syscalls
from tests.faults.fault_target import FaultTarget, prepare_target
from tests.faults.filesystems import leave_room, make_room, quick_folder, tiny_disk
from tests.faults.killer import End, ForkServer
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, open_brain, page_text, run

from quaid.errors import NewerDatabase, QuaidError
from quaid.storage import IMPORTED_VERSION, PREVIOUS_VERSIONS, SCHEMA_VERSION

pytestmark = pytest.mark.promise("migration is all or nothing")


@pytest.fixture(params=[IMPORTED_VERSION, *PREVIOUS_VERSIONS])
def version(request: pytest.FixtureRequest) -> int:
    """The schema of the older memory."""
    return int(request.param)


@pytest.fixture
def stage(fork_server: ForkServer, version: int) -> Iterator[FaultTarget]:
    with quick_folder() as folder:
        yield prepare_target(fork_server, f"migrate {version}", folder)


@syscalls.needs_strace
def test_a_migration_that_is_hit_at_any_call_leaves_the_old_or_the_new(
    stage: FaultTarget, cases: Cases, version: int
) -> None:
    before = old_schema.texts(stage.template / "memory.db")
    for fault in cases.walk_names(3, stage.faults(*syscalls.FAULTS)):
        ended = stage.hit(fault)
        assert (ended.status == signal.SIGKILL) == fault.startswith("KILL"), ended
        check(stage.home, before, ended, version)
        assert operations.look(stage.home).pages == stage.new.pages, "the next one brings it forward"
        operations.goes_on(stage.home)


def check(home: Path, before: list[tuple[str, str]], ended: End, version: int) -> None:
    """Old or new, and whatever bears a backup's name is whole."""
    path = home / "memory.db"
    connection = apsw.Connection(str(path))
    result = connection.pragma("user_version")
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    assert result in (version, SCHEMA_VERSION)
    assert old_schema.texts(path) == before
    if ended.acknowledged:
        assert result == SCHEMA_VERSION
    backups = [path for path in home.glob("memory.db.backup-v*") if "-unfinished" not in path.name]
    assert backups or result == version, "nothing is brought forward without a backup"
    for backup in backups:
        check_backup(backup, before, version)


def check_backup(backup: Path, before: list[tuple[str, str]], version: int) -> None:
    connection = apsw.Connection(str(backup), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.pragma("integrity_check") == "ok"
    assert connection.pragma("user_version") == version
    connection.close()
    assert old_schema.texts(backup) == before


def test_a_disk_without_room_for_a_migration_leaves_the_memory_as_it_was(
    tmp_path: Path, cases: Cases, version: int
) -> None:
    refused = 0
    with tiny_disk(tmp_path / "disk", 20_000_000) as disk:
        for seed in cases.walk(3, 80):
            home = disk / f"home{seed}"
            home.mkdir()
            old_schema.make(home / "memory.db", 12, version)
            before = old_schema.texts(home / "memory.db")
            leave_room(disk, seed % 80 * 16_384)
            try:
                with open_brain(home) as brain:
                    run(brain, "get", slug="d0")
                ended = End([["done"]], "", 0)
            except QuaidError as refusal:
                ended = End([], str(refusal), 0)
                refused += 1
            finally:
                make_room(disk)
            check(home, before, ended, version)
            operations.goes_on(home)
            for path in home.iterdir():
                path.unlink()
    assert refused or cases.alone
    cases.note(f"{refused} refused for want of room")


def test_a_newer_memory_is_refused_and_not_touched(tmp_path: Path, cases: Cases) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "put", slug="d0", content=page_text("first"))
    connection = apsw.Connection(str(home / "memory.db"))
    for seed in cases.walk(3, 40):
        connection.pragma("user_version", SCHEMA_VERSION + 1 + seed)
        connection.pragma("journal_mode", ("delete", "wal")[seed % 2])
        if seed % 4 < 2:  # closed by its owner, or in use
            connection.close()
        before = everything(home)
        for command, arguments in (
            ("get", {"slug": "d0"}),
            ("put", {"slug": "d1", "content": "No."}),
            ("search", {"query": "first"}),
            ("collection add", {"name": FOLDER, "path": str(home)}),
            ("compact", {}),
            ("backup", {"file": str(tmp_path / "copy.db")}),
            ("validate", {}),
        ):
            with open_brain(home) as brain, pytest.raises(NewerDatabase):
                run(brain, command, **arguments)
        assert everything(home) == before
        assert not (tmp_path / "copy.db").exists()
        connection = apsw.Connection(str(home / "memory.db"))


def everything(home: Path) -> dict[str, str]:
    """The bytes of all that lies in a folder, shortened; the index of the log is nobody's data."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }
