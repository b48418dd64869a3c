"""Figures, copies, and one tidy file."""

import os
import signal
import stat
from pathlib import Path

import pytest
from tests.storage.conftest import Start

from quaid.cli.render import render
from quaid.errors import AlreadyExists, DamagedDatabase, DiskFull, FileTrouble, ReadOnly
from quaid.model.page import build_page
from quaid.storage import briefing, checks, history, page_edits, pages
from quaid.storage.sqlite import backup as backups
from quaid.storage.sqlite.connection import Database, Transaction

DIES_AT_THE_END = """
import os, signal, sys
from quaid.storage import files
from quaid.storage.sqlite import backup
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.cli.render import render
files.sync_file = lambda path: os.kill(os.getpid(), signal.SIGKILL)
with Database.open(sys.argv[1], "") as db:
    backup.create_backup(db, sys.argv[2])
"""

T1, T2 = "2026-04-25T12:00:01Z", "2026-04-25T12:00:02Z"


@pytest.fixture
def full(db: Database) -> Database:
    def work(tx: Transaction) -> None:
        for slug, kind, now in (("a", "person", T1), ("b", "person", T2), ("c", "concept", T1)):
            page = build_page(
                slug, {"type": kind, "tags": ["t"]}, "text " * 3000, "- **2020-01-01** — One.\n"
            )
            page_edits.save(tx, page, uuid=slug, now=now, expected_version=0)
        pages.write_raw_data(tx, 1, {"s": {}}, T1)
        history.NewImport("i", T1).begin(tx, "/notes")
        tx.execute("INSERT INTO links (from_page_id, to_page_id, created_at) VALUES (1, 2, '')")
        tx.execute(
            "INSERT INTO contradictions (page_id, type, description, detected_at, resolved_at)"
            " VALUES (1, 'stale', '', '', NULL), (1, 'stale', '', '', '2020')"
        )
        tx.execute(
            "INSERT INTO knowledge_gaps (query_hash, detected_at, last_seen_at, resolved_at)"
            " VALUES ('x', '', '', NULL), ('y', '', '', NULL), ('z', '', '', '2020')"
        )

    db.write(work)
    return db


def test_figures_of_an_empty_memory_are_noughts(db: Database) -> None:
    stats = briefing.database_stats(db)
    assert stats.pages_by_type == {}
    assert (stats.pages, stats.links, stats.chunks, stats.imports) == (0, 0, 0, 0)
    assert (stats.model, stats.updated_at, stats.schema_version) == (None, None, 12)


def test_everything_is_counted(full: Database) -> None:
    stats = briefing.database_stats(full)
    assert stats._replace(size=0, wal_size=0) == briefing.Stats(
        path=full.path,
        schema_version=12,
        pages=3,
        pages_by_type={"person": 2, "concept": 1},
        links=1,
        tags=3,
        timeline_entries=3,
        raw_data=1,
        chunks=0,
        model=None,
        contradictions=1,
        gaps=2,
        imports=1,
        size=0,
        wal_size=0,
        updated_at=T2,
    )
    assert stats.size == os.path.getsize(full.path)
    assert stats.wal_size == os.path.getsize(full.path + "-wal") > 0


# Backup


def test_a_backup_is_a_whole_memory_and_private(full: Database, tmp_path: Path) -> None:
    target = str(tmp_path / "copy.db")
    done = backups.create_backup(full, target)
    assert done == backups.BackedUp(target, os.path.getsize(target))
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
    with Database.open(target, T1) as copy:
        assert copy.rows("SELECT * FROM pages") == full.rows("SELECT * FROM pages")
        assert checks.validate(copy) == []


def test_a_backup_leaves_nothing_else_behind(full: Database, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    backups.create_backup(full, str(tmp_path / "out" / "copy.db"))
    assert os.listdir(tmp_path / "out") == ["copy.db"]


def test_a_backup_clears_away_what_killed_ones_left_and_nothing_else(full: Database, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    now = os.stat(folder).st_mtime
    for name, age in (
        (".quaid-backup-4711", 2 * backups.UNFINISHED_BACKUP_SECONDS),
        (".quaid-backup-4711-journal", 2 * backups.UNFINISHED_BACKUP_SECONDS),
        (".quaid-backup-4712", backups.UNFINISHED_BACKUP_SECONDS - 60),
        (".quaid-backup-mine", 2 * backups.UNFINISHED_BACKUP_SECONDS),
        ("4711", 2 * backups.UNFINISHED_BACKUP_SECONDS),
    ):
        (folder / name).write_bytes(b"piece")
        os.utime(folder / name, (now - age, now - age))
    backups.create_backup(full, str(folder / "copy.db"))
    assert sorted(os.listdir(folder)) == [".quaid-backup-4712", ".quaid-backup-mine", "4711", "copy.db"]


def test_a_backup_that_was_killed_leaves_a_name_that_the_next_one_knows(
    full: Database, tmp_path: Path, start: Start
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    killed = start(DIES_AT_THE_END, full.path, str(folder / "copy.db"))
    assert killed.wait(60) == -signal.SIGKILL
    (left,) = folder.iterdir()
    os.utime(left, (0, 0))
    backups.create_backup(full, str(folder / "copy.db"))
    assert os.listdir(folder) == ["copy.db"]


def test_a_backup_never_overwrites(full: Database, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(AlreadyExists):
        backups.create_backup(full, str(tmp_path / "copy.db"))
    with pytest.raises(AlreadyExists):
        backups.create_backup(full, full.path)
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_a_backup_into_a_missing_folder_says_so(full: Database, tmp_path: Path) -> None:
    with pytest.raises(FileTrouble, match="folder is not there"):
        backups.create_backup(full, str(tmp_path / "none" / "copy.db"))


def test_a_backup_takes_the_present_state_while_others_write(full: Database, tmp_path: Path) -> None:
    with Database.open(full.path, T1) as other:
        other.write(lambda tx: tx.execute("DELETE FROM links"))
        with other.lock.held():
            backups.create_backup(full, str(tmp_path / "copy.db"))
    with Database.open(str(tmp_path / "copy.db"), T1) as copy:
        assert briefing.database_stats(copy).links == 0


def test_a_backup_on_a_full_disk_leaves_no_file(
    full: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(path: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quaid.storage.files.sync_file", no_room)
    (tmp_path / "out").mkdir()
    with pytest.raises(DiskFull, match=r"copy\.db"):
        backups.create_backup(full, str(tmp_path / "out" / "copy.db"))
    assert os.listdir(tmp_path / "out") == []


def test_a_memory_too_damaged_to_copy_makes_no_backup(full: Database, tmp_path: Path) -> None:
    full.close()
    file = Path(full.path)
    content = bytearray(file.read_bytes())
    at = content.index(b"text " * 700) // 4096 * 4096
    content[at : at + 8192] = b"\0" * 8192
    file.write_bytes(content)
    with Database.open(full.path, T1) as again, pytest.raises(DamagedDatabase):
        backups.create_backup(again, str(tmp_path / "copy.db"))
    assert not os.path.exists(tmp_path / "copy.db")


# Compact


def test_compacting_leaves_an_empty_log(full: Database) -> None:
    done = backups.compact(full)
    size = os.path.getsize(full.path)
    assert done == backups.Compacted(
        size, done.wal_before, 0, busy=False, folded=done.wal_before, vectors_dropped=0
    )
    assert done.wal_before > 0
    assert os.path.getsize(full.path + "-wal") == 0
    assert checks.validate(full) == []


def test_a_reader_in_a_long_snapshot_does_not_hinder_compacting(full: Database) -> None:
    with Database.open(full.path, T1) as reader, reader.reading():
        before = reader.rows("SELECT slug FROM pages")
        full.write(lambda tx: tx.execute("DELETE FROM pages WHERE slug = 'a'"))
        full.connection.execute("CREATE INDEX for_optimize ON pages (title)")  # so that optimize writes
        full.connection.execute("SELECT 1 FROM pages WHERE title = 'a'").fetchall()
        done = backups.compact(full)
        assert done.busy
        assert 0 <= done.folded <= done.wal_after
        assert "-" not in render(done)
        assert reader.rows("SELECT slug FROM pages") == before
    assert not backups.compact(full).busy
    assert os.path.getsize(full.path + "-wal") == 0


def test_a_writer_after_compacting_still_waits_as_long_as_before(full: Database) -> None:
    backups.compact(full)
    assert full.connection.pragma("busy_timeout") >= 5000


def test_a_memory_for_reading_only_is_not_compacted(full: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quaid.storage.sqlite.connection.is_writable", lambda path: False)
    with Database.open(full.path, T1) as reader, pytest.raises(ReadOnly):
        backups.compact(reader)
