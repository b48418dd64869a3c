"""Opening, reading, writing and closing a memory."""

import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from quaid.errors import (
    AlreadyExists,
    Busy,
    DiskFull,
    FileTrouble,
    InvalidArgument,
    MissingDatabase,
    NewerDatabase,
    NotADatabase,
    ReadOnly,
)
from quaid.storage import SCHEMA_VERSION
from quaid.storage.sqlite.connection import Database, Transaction

NOW = "2026-04-25T12:00:00Z"
ADD = "INSERT INTO config (key, value) VALUES (?, ?)"


def put(db: Database, key: str, value: str = "x") -> None:
    db.write(lambda tx: tx.execute(ADD, (key, value)))


def has(db: Database, key: str) -> bool:
    return db.one("SELECT 1 FROM config WHERE key = ?", (key,)) is not None


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in sorted(os.listdir(folder))
    }


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# Making


def test_a_new_memory_is_private_and_so_are_its_new_folders(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b" / "memory.db")
    old = os.umask(0)
    try:
        with Database.create(path, NOW) as db:
            put(db, "a")
            assert [mode(path + ending) for ending in ("", "-wal", "-shm", "-lock")] == [0o600] * 4
    finally:
        os.umask(old)
    assert [mode(str(tmp_path / "a")), mode(str(tmp_path / "a" / "b"))] == [0o700] * 2


def test_a_new_memory_has_its_numbers_and_its_default_collection(db: Database) -> None:
    assert db.connection.pragma("application_id") == 0x51414944
    assert db.connection.pragma("user_version") == SCHEMA_VERSION
    assert db.one("SELECT value FROM config WHERE key = 'version'") == (str(SCHEMA_VERSION),)
    assert db.one("SELECT value FROM quaid_config WHERE key = 'schema_version'") == (str(SCHEMA_VERSION),)
    assert db.rows("SELECT id, name, created_at FROM collections") == [(1, "default", NOW)]


def test_an_existing_memory_is_not_created_again(db: Database) -> None:
    put(db, "a")
    with pytest.raises(AlreadyExists):
        Database.create(db.path, NOW)
    assert has(db, "a")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileTrouble, match="a file stands where a folder must be"):
        Database.create(str(tmp_path / "file" / "memory.db"), NOW)


def test_a_log_without_its_database_is_not_taken_over(tmp_path: Path, path: str) -> None:
    (tmp_path / "memory.db-wal").write_bytes(b"somebody's writes")
    with pytest.raises(AlreadyExists, match="-wal"):
        Database.create(path, NOW)
    assert fingerprint(tmp_path).keys() == {"memory.db-wal"}


def test_leftovers_of_a_crashed_create_are_ignored(tmp_path: Path, path: str) -> None:
    (tmp_path / "memory.db-new").write_bytes(b"half")
    (tmp_path / "memory.db-new-journal").write_bytes(b"half")
    Database.create(path, NOW).close()
    assert sorted(os.listdir(tmp_path)) == ["memory.db", "memory.db-lock"]


def test_a_memory_that_cannot_be_made_leaves_nothing(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(path: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quaid.storage.files.sync_file", no_room)
    with pytest.raises(DiskFull):
        Database.create(path, NOW)
    assert os.listdir(tmp_path) == []


# Refusing


def test_a_missing_memory_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(MissingDatabase, match="quaid init"):
        Database.open(str(tmp_path / "none" / "memory.db"), NOW)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"Dear diary,\n", b"SQLite format 3\0", os.urandom(5000)])
def test_file_that_is_not_a_database_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(content)
    with pytest.raises(NotADatabase):
        Database.open(str(file), NOW)
    assert file.read_bytes() == content
    assert os.listdir(tmp_path) == ["memory.db"]


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path, path: str, journal: str) -> None:
    other = apsw.Connection(path)
    other.pragma("journal_mode", journal)
    other.execute("CREATE TABLE recipes (name)")
    other.close()
    before = fingerprint(tmp_path)
    with pytest.raises(NotADatabase, match="another program"):
        Database.open(path, NOW)
    assert fingerprint(tmp_path) == before


def test_a_folder_is_not_a_memory(tmp_path: Path) -> None:
    with pytest.raises(NotADatabase, match="not a file"):
        Database.open(str(tmp_path), NOW)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_newer_memory_is_refused_untouched(tmp_path: Path, path: str, journal: str) -> None:
    Database.create(path, NOW).close()
    later = apsw.Connection(path)
    later.pragma("journal_mode", journal)
    later.pragma("user_version", SCHEMA_VERSION + 1)
    later.close()
    before = fingerprint(tmp_path)
    with pytest.raises(NewerDatabase, match=f"version {SCHEMA_VERSION + 1}"):
        Database.open(path, NOW)
    assert fingerprint(tmp_path) == before


def test_a_newer_version_that_is_still_in_the_log_is_refused_untouched(tmp_path: Path, path: str) -> None:
    Database.create(path, NOW).close()
    later = apsw.Connection(path)
    later.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    later.pragma("user_version", SCHEMA_VERSION + 1)
    later.close()
    before = {name: mark for name, mark in fingerprint(tmp_path).items() if not name.endswith("-shm")}
    with pytest.raises(NewerDatabase):
        Database.open(path, NOW)
    assert {name: mark for name, mark in fingerprint(tmp_path).items() if not name.endswith("-shm")} == before


@pytest.mark.parametrize(
    ("version", "problem"),
    [(3, "schema 3: older"), (6, "schema 6: an unreleased Quaid"), (7, "schema 7: an unreleased Quaid")],
)
def test_a_schema_that_cannot_be_imported_is_refused_untouched(
    path: str, tmp_path: Path, version: int, problem: str
) -> None:
    Database.create(path, NOW).close()
    old = apsw.Connection(path)
    old.pragma("user_version", version)
    old.close()
    before = fingerprint(tmp_path)
    with pytest.raises(NotADatabase, match=problem):
        Database.open(path, NOW)
    assert fingerprint(tmp_path) == before


# Reading and writing


def test_writes_persist_after_reopening(db: Database) -> None:
    put(db, "a", "b")
    db.close()
    with Database.open(db.path, NOW) as again:
        assert again.one("SELECT value FROM config WHERE key = 'a'") == ("b",)


def test_write_returns_what_the_work_returns(db: Database) -> None:
    assert db.write(lambda tx: tx.pragma("user_version") + 1) == SCHEMA_VERSION + 1


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_work_that_fails_leaves_nothing(db: Database, failure: type[BaseException]) -> None:
    def work(tx: Transaction) -> None:
        tx.execute(ADD, ("a", "b"))
        raise failure

    with pytest.raises(failure):
        db.write(work)
    assert not has(db, "a")
    put(db, "c")
    assert has(db, "c")


def test_a_write_is_sure_of_its_turn_before_it_reads(db: Database) -> None:
    assert db.write(lambda tx: tx.txn_state("main")) == apsw.SQLITE_TXN_WRITE


def test_a_dry_run_changes_nothing(db: Database) -> None:
    def work(tx: Transaction) -> bool:
        tx.execute(ADD, ("a", "b"))
        return has(db, "a")

    assert db.dry_run(work)
    assert not has(db, "a")


def test_a_write_inside_a_write_is_a_mistake(db: Database) -> None:
    with pytest.raises(RuntimeError):
        db.write(lambda tx: put(db, "a"))
    put(db, "b")
    assert not has(db, "a")
    assert has(db, "b")


def test_a_write_inside_a_reading_is_a_mistake(db: Database) -> None:
    with db.reading(), pytest.raises(RuntimeError):
        put(db, "a")
    put(db, "b")
    assert has(db, "b")


def test_a_reading_sees_one_state(db: Database) -> None:
    with Database.open(db.path, NOW) as other, db.reading():
        before = db.rows("SELECT key FROM config")
        put(other, "a")
        assert db.rows("SELECT key FROM config") == before
    assert has(db, "a")


def test_a_reading_within_a_write_sees_what_it_did(db: Database) -> None:
    def work(tx: Transaction) -> bool:
        tx.execute(ADD, ("a", "b"))
        with db.reading():
            return has(db, "a")

    assert db.write(work)


def test_cached_values_are_recomputed_only_after_a_write(db: Database) -> None:
    results: list[int] = []

    def count() -> int:
        results.append(len(db.rows("SELECT 1 FROM config")))
        return results[-1]

    first = db.cached("settings", count)
    assert db.cached("settings", count) == first
    assert len(results) == 1
    with Database.open(db.path, NOW) as other:  # somebody else's write counts as well
        put(other, "k1")
    assert db.cached("settings", count) == first + 1
    put(db, "k2")
    assert db.cached("settings", count) == first + 2
    assert len(results) == 3


def test_values_cached_in_one_transaction_need_one_statement_to_take_the_snapshot(db: Database) -> None:
    statements: list[str] = []
    db.connection.exec_trace = lambda _cursor, sql, _values: not statements.append(sql)  # type: ignore[func-returns-value]
    with db.reading():
        assert [db.cached(key, lambda: 1) for key in ("first", "second", "third")] == [1, 1, 1]
        with Database.open(db.path, NOW) as other:
            put(other, "k1")
        assert db.cached("first", lambda: 2) == 1  # the snapshot is older than the write
    assert statements == ["BEGIN", "SELECT 1 FROM config", "ROLLBACK"]
    assert db.cached("first", lambda: 2) == 2


def test_values_cached_in_a_failed_write_are_dropped(db: Database) -> None:
    def count() -> int:
        return len(db.rows("SELECT 1 FROM config"))

    def work(tx: Transaction) -> None:
        tx.execute("INSERT INTO config (key, value) VALUES ('tried', 'x')")
        assert db.cached("settings", count) == before + 1
        raise KeyError

    before = db.cached("settings", count)
    with pytest.raises(KeyError):
        db.write(work)
    assert db.cached("settings", count) == before


def test_one_returns_the_first_row_and_closes_the_cursor(db: Database) -> None:
    assert db.one("SELECT key FROM config ORDER BY key") == ("chunk_strategy",)
    db.close()  # an open cursor would hold the state
    assert not os.path.exists(db.path + "-wal")


def test_threads_may_share_a_memory(db: Database) -> None:
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(30):
                put(db, f"{name}{number}")
                with db.reading():
                    assert has(db, f"{name}{number}")
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert db.one("SELECT count(*) FROM config WHERE value = 'x'") == (90,)


def test_half_a_character_is_refused_in_words(db: Database) -> None:
    with pytest.raises(InvalidArgument, match="half a character"):
        put(db, "a", "\ud800")
    with pytest.raises(InvalidArgument):
        db.rows("SELECT 1 WHERE ? = ''", ("\udfff",))
    put(db, "b")


def test_full_disk_is_reported_and_changes_nothing(db: Database) -> None:
    put(db, "a")
    db.connection.pragma("max_page_count", db.connection.pragma("page_count") + 2)
    with pytest.raises(DiskFull):
        put(db, "b", "x" * 100_000)
    assert not has(db, "b")
    put(db, "c")
    assert has(db, "c")


def test_a_program_that_does_not_know_the_lock_is_waited_for_and_then_named(db: Database) -> None:
    stranger = apsw.Connection(db.path)
    stranger.execute("BEGIN IMMEDIATE")
    db.connection.set_busy_timeout(20)
    with pytest.raises(Busy):
        put(db, "a")
    stranger.execute("ROLLBACK")
    put(db, "a")
    stranger.close()


def test_wrong_sql_stays_a_developers_error(db: Database) -> None:
    with pytest.raises(apsw.SQLError):
        db.rows("SELEKT 1")


# Closing


def test_the_last_to_close_leaves_one_file(tmp_path: Path, db: Database) -> None:
    put(db, "a")
    db.close()
    db.close()
    assert sorted(os.listdir(tmp_path)) == ["memory.db", "memory.db-lock"]


def test_closing_reader_keeps_the_wal_of_an_active_writer(db: Database) -> None:
    put(db, "a")
    with Database.open(db.path, NOW) as other, other.lock.held():
        size = os.path.getsize(db.path + "-wal")
        db.close()
        assert os.path.getsize(db.path + "-wal") == size > 0
    assert not os.path.exists(db.path + "-wal")


def test_a_process_that_forgets_to_close_loses_nothing(db: Database, output: Callable[..., str]) -> None:
    db.close()
    output(
        """
        import os, sys
        from quaid.storage.sqlite.connection import Database, Transaction
        db = Database.open(sys.argv[1], "now")
        db.write(lambda tx: tx.execute("INSERT INTO config VALUES ('a', 'b')"))
        os._exit(0)
        """,
        db.path,
    )
    with Database.open(db.path, NOW) as again:
        assert has(again, "a")


def test_closing_inside_a_write_is_a_mistake(db: Database) -> None:
    with pytest.raises(RuntimeError):
        db.write(lambda tx: db.close())
    put(db, "a")


# Other places


def test_two_names_of_one_memory_share_the_lock(tmp_path: Path, db: Database) -> None:
    (tmp_path / "link.db").symlink_to(db.path)
    with Database.open(str(tmp_path / "link.db"), NOW) as other:
        other.lock.patience = 0.01
        with db.lock.held(), pytest.raises(Busy):
            put(other, "a")


def test_a_copy_with_a_rollback_journal_gets_a_log_when_it_is_opened(tmp_path: Path, db: Database) -> None:
    copy = str(tmp_path / "copy.db")
    db.connection.execute("VACUUM INTO ?", (copy,))
    with Database.open(copy, NOW) as again:
        assert again.connection.pragma("journal_mode") == "wal"


UNPRIVILEGED = """
    import os, sys
    from quaid.errors import QuaidError
    from quaid.storage.sqlite.connection import Database, Transaction
    from quaid.storage import briefing, checks
    os.chdir("/")
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    db = Database.open(sys.argv[1], "now")
    print(db.writable, db.one("SELECT value FROM config WHERE key = 'a'"))
    print(checks.validate(db), briefing.database_stats(db).pages)
    try:
        db.write(lambda tx: tx.execute("DELETE FROM config"))
    except QuaidError as error:
        print(type(error).__name__)
    db.close()
    """


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A folder that other users can get to, which tmp_path is not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.name == "nt", reason="permissions are different there")
@pytest.mark.parametrize("where", ["folder", "file", "both"])
def test_a_memory_that_may_not_be_written_can_be_read(
    shelf: Path, where: str, output: Callable[..., str]
) -> None:
    path = str(shelf / "memory.db")
    with Database.create(path, NOW) as db:
        put(db, "a", "b")
    os.chmod(path, 0o444 if where in ("file", "both") else 0o666)
    os.chmod(path + "-lock", 0o666)
    shelf.chmod(0o555 if where in ("folder", "both") else 0o777)
    before = fingerprint(shelf)
    assert output(UNPRIVILEGED, path) == "False ('b',)\n[] 0\nReadOnly\n"
    shelf.chmod(0o755)
    assert fingerprint(shelf) == before


@pytest.mark.skipif(os.name == "nt", reason="permissions are different there")
def test_a_read_only_memory_is_read_with_its_wal(shelf: Path, output: Callable[..., str]) -> None:
    path = str(shelf / "memory.db")
    with Database.create(path, NOW) as db:
        put(db, "a", "b")
        for ending in ("", "-wal", "-shm"):
            os.chmod(path + ending, 0o444)
        shelf.chmod(0o555)
        assert output(UNPRIVILEGED, path).startswith("False ('b',)\n")
        shelf.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="permissions are different there")
def test_a_memory_that_may_not_even_be_read_says_so(shelf: Path, start: Callable[..., object]) -> None:
    path = str(shelf / "memory.db")
    Database.create(path, NOW).close()
    os.chmod(path, 0)
    process = start(UNPRIVILEGED, path)
    _, errors = process.communicate()  # type: ignore[attr-defined]
    assert "may not be read" in errors


def test_an_older_memory_that_may_not_be_written_says_what_it_needs(
    v5: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quaid.storage.sqlite.connection.is_writable", lambda path: False)
    with pytest.raises(ReadOnly, match="schema 5 must be brought to 12"):
        Database.open(v5, NOW)
