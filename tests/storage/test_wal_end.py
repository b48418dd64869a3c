"""A log with writes in it that cannot be read any more is refused; one that a power cut has torn is not."""

import os
import shutil
import threading
from pathlib import Path

import apsw
import pytest

from quaid.errors import DamagedDatabase
from quaid.storage.sqlite import connection
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
PAGE = connection.WAL_FRAME_BYTES + 4096


@pytest.fixture
def crashed(db: Database, tmp_path: Path) -> Path:
    """A memory as a crash leaves it: four writes in its log, and nobody has it open."""
    for number in range(4):
        set_key(db, f"k{number}", "x" * 3000)
    path = tmp_path / "crashed.db"
    shutil.copy(db.path, path)
    shutil.copy(db.path + "-wal", f"{path}-wal")
    return path


@pytest.fixture
def noted(crashed: Path, db: Database) -> Path:
    """The same, with the note that the last writer left."""
    shutil.copy(db.path + "-lock", f"{crashed}-lock")
    return crashed


def set_key(db: Database, key: str, value: str) -> None:
    db.write(lambda tx: tx.execute("INSERT INTO config (key, value) VALUES (?, ?)", (key, value)))


def log_of(path: Path) -> bytearray:
    return bytearray(Path(f"{path}-wal").read_bytes())


def commits(log: bytearray) -> list[int]:
    """Where the frames begin with which a transaction ends."""
    frames = range(connection.WAL_HEADER_BYTES, len(log) - connection.WAL_FRAME_BYTES, PAGE)
    return [at for at in frames if log[at + 4 : at + 8] != bytes(4) and log[at + 8 : at + 16] == log[16:24]]


def keys(path: Path) -> list[str]:
    with Database.open(str(path), NOW) as db:
        return [row[0] for row in db.rows("SELECT key FROM config WHERE key LIKE 'k_' ORDER BY key")]


def test_a_whole_log_is_read_to_its_end(crashed: Path) -> None:
    assert keys(crashed) == ["k0", "k1", "k2", "k3"]


@pytest.mark.parametrize("place", [8, 100, 4000])
def test_a_flipped_bit_before_later_writes_is_seen(crashed: Path, place: int) -> None:
    log = log_of(crashed)
    log[commits(log)[-3] + place] ^= 1
    Path(f"{crashed}-wal").write_bytes(log)
    with pytest.raises(DamagedDatabase, match="acknowledged writes are lost"):
        Database.open(str(crashed), NOW)
    assert log_of(crashed) == log
    with Database.open(str(crashed), NOW, accept_torn_log=True) as db:
        assert db.rows("SELECT key FROM config WHERE key = 'k0'") == [("k0",)]


def test_a_damaged_beginning_of_the_log_is_seen(crashed: Path) -> None:
    for place in (3, 12, 17, 30):
        log = log_of(crashed)
        log[place] ^= 4
        Path(f"{crashed}-wal").write_bytes(log)
        with pytest.raises(DamagedDatabase):
            Database.open(str(crashed), NOW)
        log[place] ^= 4
        Path(f"{crashed}-wal").write_bytes(log)


def test_without_the_log_the_memory_opens_as_it_was_before(crashed: Path) -> None:
    os.rename(f"{crashed}-wal", f"{crashed}-aside")
    assert keys(crashed) == []


def test_torn_transaction_is_not_part_of_the_memory(crashed: Path) -> None:
    log = log_of(crashed)
    log[commits(log)[-1] + 2000] ^= 1
    Path(f"{crashed}-wal").write_bytes(log)
    assert keys(crashed) == ["k0", "k1", "k2"]
    assert keys(crashed) == ["k0", "k1", "k2"]


def test_frames_of_an_earlier_round_of_the_log_do_not_count(db: Database) -> None:
    for number in range(40):
        set_key(db, f"k{number}", "")
    db.connection.execute("PRAGMA wal_checkpoint(RESTART)")
    db.write(lambda tx: tx.execute("DELETE FROM config WHERE key = 'k0'"))
    size = os.path.getsize(db.path + "-wal")
    assert size > connection.WAL_HEADER_BYTES + 20 * PAGE
    with Database.open(db.path, NOW) as other:
        assert other.one("SELECT count(*) FROM config WHERE key LIKE 'k%'") is not None
    assert os.path.getsize(db.path + "-wal") == size


def test_a_log_that_was_cut_off_behind_a_commit_is_seen(noted: Path) -> None:
    log = log_of(noted)
    for end in (commits(log)[-2] + PAGE, commits(log)[-1] + 100, connection.WAL_HEADER_BYTES, 31, 3, 2, 1):
        Path(f"{noted}-wal").write_bytes(log[:end])
        for _ in range(2):
            with pytest.raises(DamagedDatabase, match="acknowledged writes are lost"):
                Database.open(str(noted), NOW)
        assert log_of(noted) == log[:end]
    Path(f"{noted}-wal").write_bytes(log)
    assert keys(noted) == ["k0", "k1", "k2", "k3"]


@pytest.mark.parametrize("place", [8, 100, 4000])
def test_a_flipped_bit_in_the_last_write_is_seen(noted: Path, place: int) -> None:
    log = log_of(noted)
    log[commits(log)[-1] + place] ^= 1
    Path(f"{noted}-wal").write_bytes(log)
    with pytest.raises(DamagedDatabase, match="1 or more acknowledged writes are lost"):
        Database.open(str(noted), NOW)
    with Database.open(str(noted), NOW, accept_torn_log=True) as db:
        set_key(db, "k9", "")
    assert keys(noted) == ["k0", "k1", "k2", "k9"]


def test_a_note_about_another_log_says_nothing(noted: Path, db: Database) -> None:
    db.connection.execute("PRAGMA wal_checkpoint(RESTART)")
    db.write(lambda tx: tx.execute("DELETE FROM config WHERE key = 'k0'"))
    for end in ("", "-wal"):
        shutil.copy(db.path + end, f"{noted}{end}")
    assert keys(noted) == ["k1", "k2", "k3"]
    assert not os.path.exists(f"{noted}-wal")
    assert keys(noted) == ["k1", "k2", "k3"]


def test_unreadable_note_is_tolerated(noted: Path) -> None:
    Path(f"{noted}-lock").write_bytes(b"?")
    assert keys(noted) == ["k0", "k1", "k2", "k3"]
    Path(f"{noted}-lock").unlink()
    assert keys(noted) == ["k0", "k1", "k2", "k3"]


def test_short_wal_without_a_note_is_ignored(crashed: Path) -> None:
    log = log_of(crashed)
    for end in (1, 3, 31):
        Path(f"{crashed}-wal").write_bytes(log[:end])
        assert keys(crashed) == []


def test_closing_without_a_wal_leaves_no_wal_note(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Database.create(str(path), NOW) as db:
        set_key(db, "k0", "")
        assert any(db.lock.noted())
    assert Path(f"{path}-lock").read_bytes() == connection.NO_WAL_NOTE
    with Database.open(str(path), NOW) as db:
        db.write(lambda tx: tx.execute("DELETE FROM config WHERE key = 'nobody'"))
    Path(f"{path}-wal").write_bytes(bytes(4096))  # begun, and not on the disk when the current went off
    assert keys(path) == ["k0"]


def test_an_index_of_the_wal_that_another_connection_updates_is_read_again(db: Database) -> None:
    """The two copies of the index header differ while a writer updates them; SQLite then answers BUSY."""
    set_key(db, "k0", "x")
    writer = apsw.Connection(db.path)
    with open(db.path + "-shm", "r+b", buffering=0) as index:  # closed last: closing it drops SQLite's locks
        writer.execute("BEGIN IMMEDIATE")
        index.seek(8)
        index.write(b"\xff")
        with pytest.raises(apsw.BusyError):
            db.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        release = threading.Timer(0.2, writer.close)
        release.start()
        assert connection._wal_end(db.connection) > 0
        release.join()
