"""Open a database: header and WAL checks, connection settings, the writer lock, transactions.

The header of a database file is read through SQLite's own file layer: opening and closing it with os.open would drop
the locks that this process holds through other connections. A WAL ends for SQLite at the first frame with a wrong
checksum. One torn transaction behind that end looks like a power cut; two or more mean that acknowledged writes are
lost. Every writer therefore records in the lock file how far the WAL went, and a WAL that is shorter is refused.
"""

import errno
import json
import os
import stat
import time
from _thread import RLock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeVar

import apsw

from quaid.errors import (
    Busy,
    DamagedDatabase,
    DiskFull,
    FileTrouble,
    NewerDatabase,
    NotADatabase,
    QuaidError,
    ReadOnly,
    UnsafeSqlite,
)
from quaid.storage import OLDEST_VERSION, SCHEMA_VERSION
from quaid.storage.files import FIRST_LOCK_PAUSE, LONGEST_LOCK_PAUSE, try_lock_file
from quaid.storage.sqlite.errors import (
    BUSY_SECONDS,
    missing_database,
    translate_os_errors,
    translate_sqlite_errors,
)

if TYPE_CHECKING:
    from types import TracebackType

WAL_HEADER_BYTES, WAL_FRAME_BYTES = 32, 24
"""Bytes before the first frame, and of a frame before its page."""

WAL_FRAMES_CHECKED = 256
"""Frames behind the end that are looked at: two transactions end within as many, but for the largest imports."""


CAN_READ_WAL_END = hasattr(apsw, "SQLITE_CHECKPOINT_NOOP") and hasattr(os, "pread")
"""Whether this SQLite says where its log ends without moving it."""

NO_WAL_NOTE = bytes(16)
"""The note of who leaves no log."""


def wal_note(path: str, connection: apsw.Connection) -> bytes:
    """Which log it is, and how many frames of it are written: for `check`, should the log be shorter one day."""
    if not CAN_READ_WAL_END:
        return NO_WAL_NOTE
    try:
        handle = os.open(path + "-wal", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return NO_WAL_NOTE
    try:
        salts, frames = os.pread(handle, 8, 16), _wal_end(connection)
    except (OSError, apsw.Error):  # what it would be about is written all the same
        return NO_WAL_NOTE
    finally:
        os.close(handle)
    return salts + frames.to_bytes(8, "big") if len(salts) == 8 else NO_WAL_NOTE


def check_wal(path: str, connection: apsw.Connection, noted: bytes = b"") -> None:
    """DamagedDatabase when transactions that were acknowledged are missing from the log, or lie behind its end."""
    if not CAN_READ_WAL_END:
        return
    try:
        handle = os.open(path + "-wal", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:  # there is none
        return
    try:
        try:
            end = _wal_end(connection)
        except apsw.ReadOnlyError:  # who may not write does not get to know
            return
        size = os.fstat(handle).st_size
        page = _page_size(connection)
        header = os.pread(handle, WAL_HEADER_BYTES, 0)
        missing = _is_wal_short(noted, header, end)
        if size < WAL_HEADER_BYTES + (end + 2) * (WAL_FRAME_BYTES + page) and not missing:
            return
        behind = _commits_after_end(handle, end, page, header)
        # Who writes meanwhile puts frames behind our end, or begins the log anew: then it is alive.
        alive = _wal_end(connection) != end or os.pread(handle, WAL_HEADER_BYTES, 0) != header
    finally:
        os.close(handle)
    if (behind > 1 or missing) and not alive:
        lost = f"{max(behind, 1)} or more acknowledged writes are lost in it"
        accept = "QUAID_TORN_LOG=accept opens it as it was before them"
        problem = f"its log cannot be read to the end, and {lost}; {accept}"
        raise DamagedDatabase(path=path, problem=problem)


def _is_wal_short(noted: bytes, header: bytes, end: int) -> bool:
    """Whether a log ends before the note that the last writer left. One whose header is hurt ends at once."""
    salts, frames = noted[:8], int.from_bytes(noted[8:16], "big")
    return any(salts) and (not _is_wal_header_valid(header) or salts == header[16:24]) and frames > end


def _wal_end(connection: apsw.Connection) -> int:
    """How many frames SQLite finds good."""
    good, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return max(0, good)


def _page_size(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_size"))


def _commits_after_end(handle: int, end: int, page: int, header: bytes) -> int:
    """How many transactions of this log end behind its end. Frames of the log before this one have other salts."""
    salts = header[16:24]
    if not _is_wal_header_valid(header):
        salts = os.pread(
            handle, 8, WAL_HEADER_BYTES + 8
        )  # those of its first frame, if that is not hurt as well
    found = 0
    for number in range(end, end + WAL_FRAMES_CHECKED):
        frame = os.pread(handle, WAL_FRAME_BYTES, WAL_HEADER_BYTES + number * (WAL_FRAME_BYTES + page))
        if len(frame) < WAL_FRAME_BYTES:
            break
        if frame[8:16] == salts and frame[4:8] != b"\0\0\0\0":
            found += 1
    return found


def _is_wal_header_valid(header: bytes) -> bool:
    """Whether the header's checksum is right: two sums over its first 24 bytes."""
    if len(header) < WAL_HEADER_BYTES:
        return False
    order: Literal["big", "little"] = "big" if header[3] & 1 else "little"
    first = second = 0
    for at in range(0, 24, 8):
        first = (first + int.from_bytes(header[at : at + 4], order) + second) & 0xFFFFFFFF
        second = (second + int.from_bytes(header[at + 4 : at + 8], order) + first) & 0xFFFFFFFF
    return header[24:32] == first.to_bytes(4, "big") + second.to_bytes(4, "big")


APPLICATION_ID = 0x51414944

CACHE_KIB = 32 * 1024
"""At most so much memory for pages: a whole import is one transaction, and spilling it costs a tenth more."""

EMPTY_FILE, NOT_SQLITE = "it is empty", "it is not a SQLite file"
"""What may be wrong with a file that was a memory once."""

WAL_FORMAT = b"\x02\x02"


class DatabaseHeader(NamedTuple):
    """What the first bytes of a database say. A newer state may still lie in the write-ahead log."""

    version: int
    wal: bool


def is_safe_sqlite(version: str) -> bool:
    """Whether this SQLite keeps committed writes when two connections write and checkpoint at once."""
    major, minor, patch = (int(part) for part in [*version.split("."), "0", "0"][:3])
    if (major, minor) == (3, 50):
        return patch >= 7
    if (major, minor) == (3, 44):
        return patch >= 6
    return (major, minor, patch) >= (3, 51, 3)


def sqlite_version() -> str:
    """The SQLite that does the work, as in 3.54.1."""
    return apsw.sqlite_lib_version()


def check_sqlite() -> None:
    """Refuse to work with a SQLite that can lose data."""
    if not is_safe_sqlite(sqlite_version()):
        raise UnsafeSqlite(version=sqlite_version())


def read_header(path: str) -> DatabaseHeader:
    """Read a memory's header and touch nothing. MissingDatabase or NotADatabase when it is none."""
    if not os.path.exists(path):
        raise missing_database(path)
    if not os.path.isfile(path):
        raise NotADatabase(path=path, problem="it is not a file")
    with translate_sqlite_errors(path):
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
        try:
            first = file.xRead(100, 0)
        finally:
            file.xClose()
    if not first:
        raise NotADatabase(path=path, problem=EMPTY_FILE)
    if len(first) < 100 or not first.startswith(b"SQLite format 3\0"):
        raise NotADatabase(path=path, problem=NOT_SQLITE)
    if int.from_bytes(first[68:72], "big") != APPLICATION_ID:
        raise NotADatabase(path=path, problem="another program made it")
    return DatabaseHeader(version=int.from_bytes(first[60:64], "big"), wal=first[18:20] == WAL_FORMAT)


def is_writable(path: str) -> bool:
    """Whether the file and its folder, where SQLite puts its log, can be written."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(path) or ".", os.W_OK)


def file_stamp(path: str) -> tuple[int, int, bool]:
    """What tells a reader without locks that the file has changed."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, os.path.exists(path + "-wal")


def connect(path: str, writable: bool) -> apsw.Connection:
    """A connection that keeps our rules, its schema readable."""
    if writable:
        return _configure(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE))
    # Without a log nobody has the file open, and it can be read as it lies. Opening it in the usual way would
    # put a log beside it that its owner could then not write.
    if not os.path.exists(path + "-wal") and not os.path.exists(path + "-journal"):
        return _connect_read_only(_uri(path, "immutable=1"))
    try:
        return _connect_read_only(_uri(path, "mode=ro"))
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        if not os.path.exists(path + "-wal") or os.path.getsize(path + "-wal"):
            raise
        return _connect_read_only(_uri(path, "immutable=1"))


def _connect_read_only(uri: str) -> apsw.Connection:
    connection = _configure(apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI))
    try:
        connection.pragma("schema_version")
    except apsw.Error:
        connection.close()
        raise
    return connection


def _uri(path: str, option: str) -> str:
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{option}"


def _configure(connection: apsw.Connection) -> apsw.Connection:
    connection.set_busy_timeout(BUSY_SECONDS * 1000)
    for setting, value in (
        (apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1),
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_DQS_DML, 0),
        (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
        # The log moves into the database only under our lock; Database.close turns this off when it has it.
        (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
    ):
        connection.config(setting, value)
    connection.pragma("synchronous", "FULL")
    connection.pragma("temp_store", "MEMORY")
    connection.pragma("cache_size", -CACHE_KIB)
    return connection


LOCK_TIMEOUT = 30.0
"""Seconds after which a writer gives up."""
LONGEST_LOCK_NOTE = 64
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
NOT_A_PLAIN_FILE = (
    "it is not a plain file, so writers cannot lock it; move it away, and the next one makes it anew"
)


class WriterLock:
    """The lock of one database, and the turn of the threads that share its connection."""

    def __init__(self, database_path: str) -> None:
        self.path = database_path + "-lock"
        self.patience = LOCK_TIMEOUT
        self.turn = RLock()
        self._database_path = database_path
        self._handle: int | None = None

    def held(self) -> Self:
        """The lock for a `with`: within it this thread writes alone."""
        return self

    def __enter__(self) -> None:
        """Take the lock. Waits while patience lasts, then raises Busy; other threads may read meanwhile."""
        deadline, pause = time.monotonic() + self.patience, FIRST_LOCK_PAUSE
        while not self.try_take():
            if time.monotonic() >= deadline:
                raise Busy(path=self._database_path, seconds=round(self.patience))
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_LOCK_PAUSE)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.release()

    def try_take(self) -> bool:
        """Take the lock, and with it this thread's turn, unless another process holds it."""
        self.turn.acquire()
        try:
            if self._handle is not None:
                raise RuntimeError("a write was begun inside a write")
            handle = self._locked_handle()
        except BaseException:
            self.turn.release()
            raise
        if handle is None:
            self.turn.release()
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            self.turn.release()

    def note(self, what: bytes) -> None:
        """Within the lock: leave a note for whoever opens the memory next. It may get lost, as in a power cut."""
        if self._handle is not None and what:
            try:
                os.lseek(self._handle, 0, os.SEEK_SET)
                os.write(self._handle, what)
            except OSError:  # what it is about is written all the same
                pass

    def noted(self) -> bytes:
        """The note that the last writer left, if there is one."""
        try:
            handle = self._opened(os.O_RDONLY)
            try:
                return os.read(handle, LONGEST_LOCK_NOTE)
            finally:
                os.close(handle)
        except (OSError, FileTrouble):
            return b""

    def remove_file(self) -> None:
        """Leave no trace of a database that could not be made. Whoever waits for the file makes a new one."""
        os.unlink(self.path)

    def _locked_handle(self) -> int | None:
        with translate_os_errors(self.path):
            handle = self._opened(os.O_RDWR | os.O_CREAT)
        if try_lock_file(handle) and self._is_current(handle):
            return handle
        os.close(handle)
        return None

    def _opened(self, flags: int) -> int:
        """The file, if it is one: neither a link to another, into which a note would go, nor a pipe, which waits."""
        try:
            handle = os.open(self.path, flags | NO_FOLLOW, 0o600)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EISDIR):
                raise
            raise FileTrouble(path=self.path, problem=NOT_A_PLAIN_FILE) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileTrouble(path=self.path, problem=NOT_A_PLAIN_FILE)
        return handle

    def _is_current(self, handle: int) -> bool:
        """Whether the locked file is still the one at the path: somebody may have deleted it meanwhile."""
        try:
            there, here = os.stat(self.path), os.fstat(handle)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


T = TypeVar("T")
Row = tuple[Any, ...]

CANCEL_CHECK_STEPS = 10_000
"""Of SQLite's machine, between two looks at whether a statement is still wanted: under a millisecond."""


class Database:
    """One open memory."""

    def __init__(self, path: str, connection: apsw.Connection, writable: bool) -> None:
        self.path = path
        self.connection = connection
        self.writable = writable
        self.lock = WriterLock(path)
        self.full = False  # opened for reading because the disk has no room for a log
        self.migrated = ""  # what was done to bring an older memory forward, in words
        self._open = True
        self._seen = file_stamp(path)
        self._undo: list[Callable[[], None]] = []
        self._known: dict[str, tuple[int, Any]] = {}

    @classmethod
    def create(cls, path: str, now: str, memory_id: str = "") -> Self:
        """Make a new memory with its folders, and open it. The id is what its copies are known by."""
        from quaid.storage.migrations import create_database

        check_sqlite()
        path = os.path.realpath(path)
        create_database(path, now, memory_id)
        return cls.open(path, now)

    @classmethod
    def open(cls, path: str, now: str, *, accept_torn_log: bool = False) -> Self:
        """Open a memory; bring an older one forward, refuse a newer one, a damaged one and what is none."""
        check_sqlite()
        path = os.path.realpath(path)
        header = read_header(path)
        _refuse_unknown_version(path, header.version)
        writable = is_writable(path)
        try:
            db = cls._opened(path, header, writable, now)
        except DiskFull:  # what is there can still be read
            if not writable or header.version != SCHEMA_VERSION:
                raise
            db = cls._opened(path, header, False, now)
            db.full = True
        if not accept_torn_log:
            db._refuse_torn_log()
        return db

    @classmethod
    def _opened(cls, path: str, header: DatabaseHeader, writable: bool, now: str) -> Self:
        with translate_sqlite_errors(path):
            db = cls(path, connect(path, writable), writable)
            try:
                db._get_ready(header, now)
            except BaseException:
                db.connection.close()
                raise
        return db

    def _get_ready(self, header: DatabaseHeader, now: str) -> None:
        found = self.connection.pragma("user_version")
        _refuse_unknown_version(self.path, found)
        if found < SCHEMA_VERSION:
            if not self.writable:
                raise ReadOnly(path=self.path, problem=f"schema {found} must be brought to {SCHEMA_VERSION}")
            from quaid.storage.migrations import migrate

            migrate(self, now)
        if self.writable and not header.wal:
            with self.lock.held():
                self.connection.pragma("journal_mode", "WAL")

    def _refuse_torn_log(self) -> None:
        try:
            if not os.path.getsize(self.path + "-wal"):
                return
        except OSError:  # there is none
            return

        try:
            try:
                check_wal(self.path, self.connection, self.lock.noted())
            except DamagedDatabase:
                if not self.writable:
                    raise
                with self.lock.held():  # somebody may just be beginning the log anew
                    check_wal(self.path, self.connection, self.lock.noted())
        except BaseException:
            self.connection.close()
            raise

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        """All rows that a query finds."""
        with self.lock.turn, translate_sqlite_errors(self.path):
            self._look_again()
            return self.connection.execute(sql, params).fetchall()

    def one(self, sql: str, params: Row = ()) -> Row | None:
        """The first row that a query finds, if any."""
        with self.lock.turn, translate_sqlite_errors(self.path):
            self._look_again()
            cursor = self.connection.execute(sql, params)
            row = cursor.fetchone()
            cursor.close()
            return row

    def reading(self) -> "_ReadTransaction":
        """Let several reads see the same state. Within a write they see what it has done so far."""
        return _ReadTransaction(self)

    def known(self, what: str, find: Callable[[], T], again: Callable[[T], T] | None = None) -> T:
        """What was found out about this memory, as long as nobody has written since; else it is found out again.

        `again` makes it out of what was known before, where that is cheaper than to find it. Within a write it is
        always found out, and not kept: the write may be taken back.
        """
        with self.lock.turn:
            if self.connection.txn_state() == apsw.SQLITE_TXN_WRITE:
                return find()
        with self.reading():
            self.one("SELECT 1 FROM config")  # only reading takes the snapshot that has a version
            version = self.connection.data_version()
            seen, found = self._known.get(what, (None, None))
            if seen != version:
                found = find() if seen is None or again is None else again(found)  # type: ignore[arg-type]
                self._known[what] = version, found
            return found  # type: ignore[return-value]

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Do all of `work` or nothing of it, durably. The only way to write; not to be nested."""
        return self._transaction(work, "COMMIT")

    def try_out(self, work: Callable[[apsw.Connection], T]) -> T:
        """Do `work` and take it back, whatever it was."""
        return self._transaction(work, "ROLLBACK")

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Within a write that changes something outside the database too: how to take that back, should it fail."""
        self._undo.append(undo)

    def _begin_reading(self) -> bool:
        """Keep the state as it is from now on, unless a transaction does so already."""
        if self._in_transaction():
            return False
        with translate_sqlite_errors(self.path):
            self._look_again()
            self.connection.execute("BEGIN")
        return True

    def _end_reading(self) -> None:
        with translate_sqlite_errors(self.path):
            self.connection.execute("ROLLBACK")

    def _transaction(self, work: Callable[[apsw.Connection], T], end: str) -> T:
        if not self.writable:
            raise DiskFull(path=self.path) if self.full else self._read_only()
        with self.lock.turn:
            if self._in_transaction():
                raise RuntimeError("a write was begun inside a write or a reading")
        with self.lock.held(), translate_sqlite_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(self.connection)
                self.connection.execute(end)
            except BaseException:
                if self._in_transaction():  # a full disk may have ended it already
                    self.connection.execute("ROLLBACK")
                while self._undo:
                    self._undo.pop()()
                raise
            finally:
                self._undo.clear()
            self._note_the_log()
            return result

    def _note_the_log(self) -> None:

        self.lock.note(wal_note(self.path, self.connection))

    def _note_no_log(self) -> None:

        self.lock.note(NO_WAL_NOTE)

    def _read_only(self) -> ReadOnly:
        return ReadOnly(path=self.path, problem="it was opened for reading only")

    def _look_again(self) -> None:
        """A file that we read as it lies, without locks, is opened anew when its owner has changed it."""
        if self.writable or self._in_transaction():
            return
        now = file_stamp(self.path)
        if now != self._seen:
            self.connection.close()
            self.connection = connect(self.path, False)
            self._seen = now
            self._known.clear()  # versions are counted from anew

    def give_up_when(self, unwanted: Callable[[], bool]) -> None:
        """Ask now and then, within a statement, whether its answer is still wanted; if not, roll back."""
        self.connection.set_progress_handler(unwanted, CANCEL_CHECK_STEPS)

    def keep_small(self, kib: int) -> None:
        """Keep no more of the file in memory than this: for one of many connections of a process."""
        self.connection.pragma("cache_size", -kib)

    def close(self) -> None:
        """Close; whoever is the last moves the log into the database, if nobody is writing."""
        with self.lock.turn:
            if not self._open:
                return
            if self._in_transaction():
                raise RuntimeError("closed inside a write or a reading")
            self._open = False
            alone = self.writable and self._may_take_lock()
            try:
                with translate_sqlite_errors(self.path):
                    if alone:
                        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                    self.connection.close()
                if alone and not os.path.exists(self.path + "-wal"):
                    self._note_no_log()
            finally:
                self.lock.release()

    def _in_transaction(self) -> bool:
        return self.connection.in_transaction

    def _may_take_lock(self) -> bool:
        try:
            return self.lock.try_take()
        except QuaidError:
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.close()


class _ReadTransaction:
    """The turn of a thread that reads several times."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._began = False

    def __enter__(self) -> None:
        self._db.lock.turn.acquire()
        try:
            self._began = self._db._begin_reading()
        except BaseException:
            self._db.lock.turn.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        try:
            if self._began:
                self._db._end_reading()
        finally:
            self._db.lock.turn.release()


def _refuse_unknown_version(path: str, found: int) -> None:
    if found > SCHEMA_VERSION:
        raise NewerDatabase(path=path, found=found, known=SCHEMA_VERSION)
    if found < OLDEST_VERSION:
        raise NotADatabase(
            path=path,
            problem=f"its schema {found} is older than {OLDEST_VERSION}, the oldest that can be upgraded",
        )


def as_json(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def next_row_id(tx: "apsw.Connection", table: str) -> int:
    """The id of the next row of a table whose ids are never used twice."""
    last = tx.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return 1 + (int(last[0]) if last else 0)


def file_size(path: str) -> int:
    """The bytes of a file; 0 when there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
