"""Open a database: header and WAL checks, connection settings, the writer lock, transactions.

The header of a database file is read through SQLite's own file layer, because opening and closing the file
with os.open would drop the locks that this process holds through other connections.

SQLite ignores all frames of a WAL after the first one with a wrong checksum. A power cut may leave one transaction
after that frame; two or more mean that acknowledged writes are lost. Every writer therefore records the end of the
WAL in the lock file, and a WAL that is shorter than recorded is refused.
"""

import errno
import os
import re
import stat
import time
from _thread import RLock
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeVar

import apsw

from quaid import errors
from quaid.storage import SCHEMA_VERSION
from quaid.storage.files import (
    FIRST_LOCK_PAUSE,
    LONGEST_LOCK_PAUSE,
    is_file_at,
    remove_with_sidecars,
    try_lock_file,
)
from quaid.storage.sqlite.errors import (
    BUSY_SECONDS,
    missing_database,
    translate_os_errors,
    translate_sqlite_errors,
    version_problem,
)

if TYPE_CHECKING:
    from types import TracebackType

    from quaid.storage.sqlite.encryption import CipherHeader, CipherKey
    from quaid.storage.sqlite.restriction import Only

T = TypeVar("T")
Row = tuple[Any, ...]
Values = Row | dict[str, Any]
"""Values of the parameters of a statement, by position or by name."""


class Transaction(apsw.Connection):
    """The connection that Database.write() passes to its function.

    Only quaid.storage runs statements on it; other packages pass it to functions of quaid.storage.
    """

    author = "owner"
    """The author recorded for page versions and facts: the name of the calling client, or "owner"."""
    agent = ""
    """The program recorded for page versions; "" for a person."""
    trust = 0
    """The trust class of written pages and facts (see quaid.model.page); 0 for a person."""
    guarded = False
    """True while an agent must not change text written by a person; see quaid.storage.trust.guard."""
    device = ""
    """The device recorded for page versions; "" for the setting device_name, else the name of this machine."""
    replicating = False
    """True while changes from a hub are applied, for which the access right of this member is not checked."""
    scope = ""
    """The restriction of the caller as JSON (see restriction.Only); "" for the whole memory."""
    schema = "main"
    """SQLite schema from which visible rows are read: "temp" in a RestrictedTransaction."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.written: deque[tuple[int, int, bool]] = deque(maxlen=200)
        """The latest page versions written, up to 200: page id, version, and whether the text changed."""

    def rows(self, sql: str, params: Values = ()) -> list[Row]:
        """Return all rows of a query."""
        return self.execute(sql, params).fetchall()

    def one(self, sql: str, params: Values = ()) -> Row | None:
        """Return the first row of a query, or None."""
        return self.execute(sql, params).fetchone()

    def replace_views(self, old: list[str], new: dict[str, str]) -> None:
        """Drop the temporary views `old` and create the views `new`, which are SELECT statements by view name.

        A view has the name of the table that it hides. Its statement reads that table with the prefix `main.`.
        """
        for name in old:
            self.execute(f"DROP VIEW IF EXISTS temp.{name}")
        for name, statement in new.items():
            self.execute(f"CREATE TEMP VIEW {name} AS {statement}")

    def begin_changes(self) -> None:
        """Prepare for a write. Only restricted connections override this; see restriction.py."""

    def check_page(self, page_id: int) -> None:
        """Check a page that was just written. Only restricted connections override this; see restriction.py."""

    def check_changes(self) -> None:
        """Check all changes at the end of a write. Only restricted connections override this; see restriction.py."""


WAL_HEADER_BYTES, WAL_FRAME_BYTES = 32, 24
"""The size in bytes of the WAL header, and of the header of each frame."""

WAL_FRAMES_CHECKED = 256
"""Up to this many frames after the last valid frame of the WAL are checked.

This covers two commits, except in the largest imports.
"""


CAN_READ_WAL_END = hasattr(apsw, "SQLITE_CHECKPOINT_NOOP") and hasattr(os, "pread")
"""True if this SQLite can report the end of the WAL without a checkpoint, and the platform has pread."""

NO_WAL_NOTE = bytes(16)
"""The note written to the lock file if there is no WAL or if its end is unknown."""


def wal_note(path: str, connection: Transaction) -> bytes:
    """Return the WAL's salts and number of valid frames, which check_wal() uses to detect a shortened WAL."""
    if not CAN_READ_WAL_END:
        return NO_WAL_NOTE
    try:
        handle = os.open(path + "-wal", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return NO_WAL_NOTE
    try:
        salts, frames = os.pread(handle, 8, 16), _wal_end(connection)
    except (OSError, apsw.Error):  # the note is optional; the transaction itself is already committed
        return NO_WAL_NOTE
    finally:
        os.close(handle)
    return salts + frames.to_bytes(8, "big") if len(salts) == 8 else NO_WAL_NOTE


def check_wal(path: str, connection: Transaction, noted: bytes = b"") -> None:
    """Raise DamagedDatabase if acknowledged transactions are missing from the WAL or follow its first bad frame.

    `noted` is the note of the last writer; see wal_note().
    """
    if not CAN_READ_WAL_END:
        return
    try:
        handle = os.open(path + "-wal", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:  # there is no WAL
        return
    try:
        try:
            end = _wal_end(connection)
        except apsw.ReadOnlyError:  # a read-only connection cannot query the WAL position
            return
        size = os.fstat(handle).st_size
        page = int(connection.pragma("page_size"))
        header = os.pread(handle, WAL_HEADER_BYTES, 0)
        missing = _is_wal_short(noted, header, end)
        if size < WAL_HEADER_BYTES + (end + 2) * (WAL_FRAME_BYTES + page) and not missing:
            return
        behind = _commits_after_end(handle, end, page, header)
        # If the end or the header has changed, a concurrent writer is appending frames or restarting the WAL,
        # so the WAL is not torn.
        alive = _wal_end(connection) != end or os.pread(handle, WAL_HEADER_BYTES, 0) != header
    finally:
        os.close(handle)
    if (behind > 1 or missing) and not alive:
        lost = f"{max(behind, 1)} or more acknowledged writes are lost in it"
        accept = "QUAID_TORN_LOG=accept opens it as it was before them"
        problem = f"its log cannot be read to the end, and {lost}; {accept}"
        raise errors.DamagedDatabase(path=path, problem=problem)


def _is_wal_short(noted: bytes, header: bytes, end: int) -> bool:
    """Return True if the WAL ends before the position in the last writer's note.

    If the header of the WAL is bad, SQLite finds no frames in it, and the salts are not compared.
    """
    salts, frames = noted[:8], int.from_bytes(noted[8:16], "big")
    return any(salts) and (not _is_wal_header_valid(header) or salts == header[16:24]) and frames > end


def _wal_end(connection: Transaction) -> int:
    """Return the number of frames that SQLite considers valid.

    SQLite reports BUSY without calling the busy handler if it reads the WAL index while another process
    updates it, so this function repeats the call itself.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            good, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
            return max(0, good)
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(FIRST_LOCK_PAUSE)


def _commits_after_end(handle: int, end: int, page: int, header: bytes) -> int:
    """Return the number of commit frames among the WAL_FRAMES_CHECKED frames after the last valid frame of the WAL.

    Frames left from a previous WAL have different salts and are not counted.
    """
    salts = header[16:24]
    if not _is_wal_header_valid(header):  # use the salts of the first frame, if that frame is intact
        salts = os.pread(handle, 8, WAL_HEADER_BYTES + 8)
    commits = 0
    for number in range(end, end + WAL_FRAMES_CHECKED):
        frame = os.pread(handle, WAL_FRAME_BYTES, WAL_HEADER_BYTES + number * (WAL_FRAME_BYTES + page))
        if len(frame) < WAL_FRAME_BYTES:
            break
        if frame[8:16] == salts and frame[4:8] != b"\0\0\0\0":
            commits += 1
    return commits


def _is_wal_header_valid(header: bytes) -> bool:
    """Return True if the header's checksum (two sums over its first 24 bytes) is correct."""
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
"""Page cache limit in KiB.

A whole import is one transaction, and becomes a tenth slower if the cache spills to disk.
"""

UNFINISHED_COPY = "-converting"
"""Suffix of the copy that is written while the key changes. During decryption, the copy is plain text."""

EMPTY_FILE, NOT_SQLITE = "it is empty", "it is not a SQLite file"
"""Problems that suggest that a file was a memory before it was damaged."""

WAL_FORMAT = b"\x02\x02"


class DatabaseHeader(NamedTuple):
    """Fields of the file header of a database. The WAL may contain newer values."""

    version: int
    wal: bool


def is_safe_sqlite(version: str) -> bool:
    """Return True if this SQLite version loses no commits when two connections write and checkpoint concurrently."""
    major, minor, patch = (int(part) for part in [*version.split("."), "0", "0"][:3])
    if (major, minor) == (3, 50):
        return patch >= 7
    if (major, minor) == (3, 44):
        return patch >= 6
    return (major, minor, patch) >= (3, 51, 3)


def sqlite_version() -> str:
    """Return the version of the SQLite library in use, such as 3.54.1."""
    return apsw.sqlite_lib_version()


def check_sqlite() -> None:
    """Raise UnsafeSqlite if this SQLite version can lose data."""
    if not is_safe_sqlite(sqlite_version()):
        raise errors.UnsafeSqlite(version=sqlite_version())


def _first_bytes(path: str) -> bytes:
    """Return the first 100 bytes of a database file. Raise MissingDatabase or NotADatabase if it is not a file."""
    if not os.path.exists(path):
        raise missing_database(path)
    if not os.path.isfile(path):
        raise errors.NotADatabase(path=path, problem="it is not a file")
    with translate_sqlite_errors(path):
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
        try:
            return file.xRead(100, 0)
        finally:
            file.xClose()


def cipher_header(path: str) -> "CipherHeader | None":
    """Return the cipher header of an encrypted memory, or None if the file is not encrypted. Needs no key."""
    return _parse_cipher_header(_first_bytes(path))


def read_cipher(text: str) -> "CipherHeader":
    """Parse the hexadecimal cipher header that the folder list of an encrypted memory contains.

    Raise NotADatabase if it is damaged.
    """
    try:
        header = _parse_cipher_header(bytes.fromhex(text))
    except ValueError:
        header = None
    if header is None:
        raise errors.NotADatabase(path="the list of folders", problem="its value `cipher` is damaged")
    return header


def _parse_cipher_header(first: bytes) -> "CipherHeader | None":
    if not first.startswith(b"QM"):  # avoid importing the module for memories that are not encrypted
        return None
    from quaid.storage.sqlite.encryption import parse_header

    return parse_header(first)


def read_header(path: str) -> DatabaseHeader:
    """Read a memory's header without side effects. Raise MissingDatabase or NotADatabase if it is not a memory.

    Raise MissingKey or WrongKey if the memory is encrypted and its key is not found.
    """
    first = _first_bytes(path)
    if not first:
        raise errors.NotADatabase(path=path, problem=EMPTY_FILE)
    if _parse_cipher_header(first) is not None:
        version, application_id = _read_encrypted_header(path)
    elif len(first) < 100 or not first.startswith(b"SQLite format 3\0"):
        raise errors.NotADatabase(path=path, problem=NOT_SQLITE)
    else:
        version, application_id = (int.from_bytes(first[at : at + 4], "big") for at in (60, 68))
    if application_id != APPLICATION_ID:
        raise errors.NotADatabase(path=path, problem="another program made it")
    return DatabaseHeader(version=version, wal=first[18:20] == WAL_FORMAT)


def _read_encrypted_header(path: str) -> tuple[int, int]:
    for attempt in range(2):
        try:
            with translate_sqlite_errors(path):
                connection = connect(path, writable=False)
            break
        except errors.DamagedDatabase:
            # A checkpoint may have written the first page while it was read without a lock.
            if attempt:
                raise
            time.sleep(LONGEST_LOCK_PAUSE)
    try:
        return int(connection.pragma("user_version")), int(connection.pragma("application_id"))
    finally:
        connection.close()


def is_writable(path: str) -> bool:
    """Return True if the file and its folder, where SQLite creates the WAL, are writable."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(path) or ".", os.W_OK)


def file_stamp(path: str) -> tuple[int, int, bool]:
    """Return a value that changes when the file changes, for readers that take no locks."""
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size, os.path.exists(path + "-wal")


def file_identity(path: str) -> tuple[int, int]:
    """Return the device and inode of a file, which change if the file is replaced by another."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


Connect = Callable[..., Transaction]


def connect(path: str, writable: bool, kind: Connect = Transaction) -> Transaction:
    """Return a configured connection of the class `kind`.

    A read-only connection is tested by reading the schema version.

    Raise MissingKey or WrongKey if the memory is encrypted and its key is not found.
    """
    header = cipher_header(path)
    key = None
    if header is not None:
        from quaid.storage.sqlite.encryption import CipherKey, find_key

        key = CipherKey(find_key(path, header), header)
    if writable:
        return _configure(kind(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI), key)
    # Without a WAL or journal no process has the file open, so it can be read as immutable. A regular open would
    # create a WAL that the file's owner might not be able to write.
    if not os.path.exists(path + "-wal") and not os.path.exists(path + "-journal"):
        return _connect_read_only(_uri(path, "immutable=1"), key, kind)
    try:
        return _connect_read_only(_uri(path, "mode=ro"), key, kind)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        if not os.path.exists(path + "-wal") or os.path.getsize(path + "-wal"):
            raise
        return _connect_read_only(_uri(path, "immutable=1"), key, kind)


def _connect_read_only(uri: str, key: "CipherKey | None", kind: Connect) -> Transaction:
    connection = _configure(kind(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI), key)
    try:
        connection.pragma("schema_version")
    except apsw.Error:
        connection.close()
        raise
    return connection


def _unlock(connection: Transaction, key: "CipherKey") -> None:
    """Set the key of a connection, and read the first page to verify that it can be decrypted."""
    from quaid.storage.sqlite.encryption import unlock

    unlock(connection, key)
    try:
        connection.pragma("user_version")
    except apsw.NotADBError:
        path = connection.filename
        connection.close()
        problem = "the key is right, but the first page cannot be decrypted with it"
        raise errors.DamagedDatabase(path=path, problem=problem) from None


def _uri(path: str, option: str) -> str:
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{option}"


def attach(connection: Transaction, path: str, name: str) -> None:
    """Attach another memory to a connection for reading, with the key of that memory if it is encrypted."""
    header = cipher_header(path)
    uri = _uri(os.path.abspath(path), "mode=ro")
    if header is not None:
        from quaid.storage.sqlite.encryption import find_key

        connection.execute(f"ATTACH ? AS {name} KEY ?", (uri, f"raw:{find_key(path, header).hex()}"))
    elif cipher_header(connection.filename) is not None:  # otherwise the key of the main file would be used
        connection.execute(f"ATTACH ? AS {name} KEY ''", (uri,))
    else:
        connection.execute(f"ATTACH ? AS {name}", (uri,))


def _configure(connection: Transaction, key: "CipherKey | None" = None) -> Transaction:
    connection.set_busy_timeout(BUSY_SECONDS * 1000)
    if key is not None:
        _unlock(connection, key)
    for setting, value in (
        (apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1),
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_DQS_DML, 0),
        (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
        # Checkpoints are made only under the writer lock; Database.close resets this setting when it holds
        # the lock.
        (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
    ):
        connection.config(setting, value)
    connection.pragma("synchronous", "FULL")
    connection.pragma("temp_store", "MEMORY")
    connection.pragma("cache_size", -CACHE_KIB)
    return connection


LOCK_TIMEOUT = 30.0
"""Seconds to wait for the writer lock before raising Busy."""
LONGEST_LOCK_NOTE = 64
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
NOT_A_PLAIN_FILE = (
    "it is not a plain file, so writers cannot lock it; move it away, and the next one makes it anew"
)


class WriterLock:
    """The inter-process writer lock of a database, and the thread lock (`turn`) for its connection."""

    def __init__(self, database_path: str) -> None:
        self.path = database_path + "-lock"
        self.patience = LOCK_TIMEOUT
        self.turn = RLock()
        self.identity: tuple[int, int] | None = None
        """Identity of the open database file. If the file was replaced, taking the lock raises MemoryReplaced."""
        self._database_path = database_path
        self._handle: int | None = None

    def held(self) -> Self:
        """Return the lock as a context manager."""
        return self

    def __enter__(self) -> None:
        """Take the lock. Raise Busy after `patience` seconds. Other threads can read while this thread waits."""
        deadline, pause = time.monotonic() + self.patience, FIRST_LOCK_PAUSE
        while not self.try_take():
            if time.monotonic() >= deadline:
                raise errors.Busy(path=self._database_path, seconds=round(self.patience))
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_LOCK_PAUSE)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.release()

    def try_take(self) -> bool:
        """Take the lock, and `turn` with it. Return False if another connection or process holds the lock.

        Raise MemoryReplaced if the database file was replaced.
        """
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
        if self.identity is not None and self._is_replaced():
            self.release()
            raise errors.MemoryReplaced(path=self._database_path)
        return True

    def _is_replaced(self) -> bool:
        try:
            return file_identity(self._database_path) != self.identity
        except OSError:  # the file was deleted, which `rebuild_if_deleted` handles
            return False

    def release(self) -> None:
        """Release the lock and `turn`; do nothing if the lock is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            self.turn.release()

    def note(self, what: bytes) -> None:
        """Store a note in the lock file for the next process that opens the memory.

        Do nothing if the lock is not held. The note is not synced to disk.
        """
        if self._handle is not None and what:
            try:
                os.lseek(self._handle, 0, os.SEEK_SET)
                os.write(self._handle, what)
            except OSError:  # the note is optional; the transaction itself is already committed
                pass

    def noted(self) -> bytes:
        """Return the last writer's note, or empty bytes."""
        try:
            handle = self._opened(os.O_RDONLY)
            try:
                return os.read(handle, LONGEST_LOCK_NOTE)
            finally:
                os.close(handle)
        except (OSError, errors.FileTrouble):
            return b""

    def remove_file(self) -> None:
        """Delete the lock file of a database that could not be created.

        A waiting process creates a new lock file.
        """
        os.unlink(self.path)

    def _locked_handle(self) -> int | None:
        with translate_os_errors(self.path):
            handle = self._opened(os.O_RDWR | os.O_CREAT)
        if try_lock_file(handle) and is_file_at(handle, self.path):
            return handle
        os.close(handle)
        return None

    def _opened(self, flags: int) -> int:
        """Open the lock file and return its descriptor.

        Raise FileTrouble if it is a symlink, which would redirect the note, or a pipe, which would block.
        """
        try:
            handle = os.open(self.path, flags | NO_FOLLOW, 0o600)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EISDIR):
                raise
            raise errors.FileTrouble(path=self.path, problem=NOT_A_PLAIN_FILE) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise errors.FileTrouble(path=self.path, problem=NOT_A_PLAIN_FILE)
        return handle


_INDEX_HINT = re.compile(r" (?:NOT INDEXED|INDEXED BY \w+)")

CANCEL_CHECK_STEPS = 10_000
"""Virtual machine steps of SQLite between two checks for cancellation, taking less than a millisecond."""


class Rehearsal:
    """Records the changes of operations that are run and then rolled back."""

    def __init__(self) -> None:
        self.rows: set[tuple[str, int]] = set()
        """Changed rows: table and row id."""
        self.files: list[tuple[str, str, str, str]] = []
        """Files that would be written: collection, path, old text and new text."""

    def note_row(self, _kind: int, _database: str, table: str, row_id: int) -> None:
        self.rows.add((table, row_id))


class Database:
    """An open memory: the connection to its database file, and the lock for writing."""

    def __init__(self, path: str, writable: bool, only: "Only" = ()) -> None:
        self.path = path
        self.only = only  # the part of the memory that is visible; () for all of it
        self._kind: Connect = Transaction
        if only:
            from functools import partial

            from quaid.storage.sqlite.restriction import RestrictedTransaction

            self._kind = partial(RestrictedTransaction, only=only)
        self.connection = connect(path, writable, self._kind)
        self.writable = writable
        self.lock = WriterLock(path)
        self.full = False  # True if opened read-only because the disk has no space for a WAL
        self.rehearsal: Rehearsal | None = None  # set while rehearse() runs
        self.migrated = ""  # description of the migration that was run on opening, if any
        # Called at the end of every write, in its transaction.
        self.before_commit: Callable[[Transaction], None] | None = None
        # Called after a read-only connection has been reopened.
        self.on_reconnect: Callable[[], None] | None = None
        self.views: dict[str, str] = {}  # temporary views (SELECT statements) that hide rows, by table name
        self._open = True
        self._seen = file_stamp(path)
        self._undo: list[Callable[[], None]] = []
        self._cache: dict[str, tuple[int, Any, float]] = {}

    @classmethod
    def create(cls, path: str, now: str, memory_id: str = "", cipher: "CipherHeader | None" = None) -> Self:
        """Create a new memory and its parent folders, and open it.

        `memory_id` is the id of the memory, by which its copies are recognised; "" for none. With `cipher`, the
        memory is encrypted with the key for that header.
        """
        from quaid.storage.migrations import create_database

        check_sqlite()
        path = os.path.realpath(path)
        create_database(path, now, memory_id, cipher)
        return cls.open(path, now)

    @classmethod
    def open(cls, path: str, now: str, *, accept_torn_log: bool = False, only: "Only" = ()) -> Self:
        """Open a memory. If `only` is given, only that part of the memory is visible.

        A memory with an older schema is migrated. Newer schemas, damaged files and files that are not
        memories are refused. A WAL that has lost acknowledged writes is refused too, unless `accept_torn_log`
        is True.
        """
        check_sqlite()
        path = os.path.realpath(path)
        header = read_header(path)
        _refuse_unknown_version(path, header.version)
        writable = is_writable(path)
        if writable and os.path.exists(path + UNFINISHED_COPY):
            _remove_unfinished_copy(path)
        try:
            db = cls._opened(path, header, writable, now, only)
        except errors.DiskFull:  # existing data can still be read
            if not writable or header.version != SCHEMA_VERSION:
                raise
            db = cls._opened(path, header, False, now, only)
            db.full = True
        if not accept_torn_log:
            with translate_sqlite_errors(path):
                db._refuse_torn_log()
        return db

    def _restrict(self) -> None:
        if self.only:
            self.connection.restrict()  # type: ignore[attr-defined]

    @classmethod
    def open_for_names(cls, path: str, timeout_ms: int) -> Self | None:
        """Open a memory for a quick read without checking the WAL. Return None if its schema is not current."""
        path = os.path.realpath(path)
        if read_header(path).version != SCHEMA_VERSION:
            return None
        db = cls(path, writable=False)
        db.connection.set_busy_timeout(timeout_ms)
        return db

    @classmethod
    def _opened(cls, path: str, header: DatabaseHeader, writable: bool, now: str, only: "Only") -> Self:
        with translate_sqlite_errors(path):
            identity = file_identity(path)  # read before opening the file, which may be replaced meanwhile
            db = cls(path, writable, only)
            db.lock.identity = identity
            try:
                db._get_ready(header, now)
                db._restrict()
            except BaseException:
                db.connection.close()
                raise
        return db

    def _get_ready(self, header: DatabaseHeader, now: str) -> None:
        version = self.connection.pragma("user_version")
        _refuse_unknown_version(self.path, version)
        if version < SCHEMA_VERSION:
            if not self.writable:
                raise errors.ReadOnly(
                    path=self.path, problem=f"schema {version} must be brought to {SCHEMA_VERSION}"
                )
            from quaid.storage.migrations import migrate

            migrate(self, now)
        if self.writable and not header.wal:
            with self.lock.held():
                self.connection.pragma("journal_mode", "WAL")

    def _refuse_torn_log(self) -> None:
        try:
            if not os.path.getsize(self.path + "-wal"):
                return
        except OSError:  # there is no WAL
            return

        try:
            try:
                check_wal(self.path, self.connection, self.lock.noted())
            except errors.DamagedDatabase:
                if not self.writable:
                    raise
                # Another process may be restarting the WAL, so check again under the lock.
                with self.lock.held():
                    check_wal(self.path, self.connection, self.lock.noted())
        except BaseException:
            self.connection.close()
            raise

    def rows(self, sql: str, params: Values = ()) -> list[Row]:
        """Return all rows of a query."""
        with self.lock.turn, translate_sqlite_errors(self.path):
            self._look_again()
            return self.connection.execute(self._for_views(sql), params).fetchall()

    def set_views(self, views: dict[str, str]) -> None:
        """Let reads use temporary views (SELECT statements by name) in place of tables. A write removes them."""
        if not views and not self.views:
            return
        with self.lock.turn, translate_sqlite_errors(self.path):
            self.connection.replace_views(list(self.views), views)
            self.views = views
            self._cache.clear()

    def _for_views(self, sql: str) -> str:
        """Return a statement without index hints if there are views, because SQLite refuses hints for them."""
        return _INDEX_HINT.sub("", sql) if self.views else sql

    @property
    def cipher(self) -> "CipherHeader | None":
        """The cipher header of an encrypted memory, or None."""
        return cipher_header(self.path)

    @property
    def scope(self) -> str:
        """The restriction of the caller as JSON (see restriction.Only); "" for the whole memory."""
        return self.connection.scope

    def change_stamp(self) -> tuple[int, int]:
        """Return a value that changes with every write, by other connections or by this one."""
        with self.reading():
            self.one("SELECT 1 FROM embedding_models")  # a read makes writes by other connections visible
            return self.connection.data_version(), self.connection.total_changes()

    def one(self, sql: str, params: Values = ()) -> Row | None:
        """Return the first row of a query, or None."""
        with self.lock.turn, translate_sqlite_errors(self.path):
            self._look_again()
            cursor = self.connection.execute(self._for_views(sql), params)
            row = cursor.fetchone()
            cursor.close()
            return row

    def reading(self) -> "_ReadTransaction":
        """Return a context manager in which all reads see one snapshot.

        Within a write, the reads see its uncommitted changes.
        """
        return _ReadTransaction(self)

    def cached(
        self, key: str, compute: Callable[[], T], update: Callable[[T], T] | None = None, lasts: float = 0.0
    ) -> T:
        """Return the cached value of `key`. Call `compute` if no value is cached or the database has changed since.

        If `update` is given, it is called with an outdated value instead of `compute`, because it may be cheaper. A
        value does not become outdated in its first `lasts` seconds. Within a write, the value is always computed
        and not cached, because the write may be rolled back.
        """
        with self.lock.turn:
            if self.connection.txn_state() == apsw.SQLITE_TXN_WRITE:
                return compute()
        with self.reading():
            version = self.snapshot_version()
            seen, value, until = self._cache.get(key, (None, None, 0.0))
            if seen != version and time.monotonic() >= until:
                value = compute() if seen is None or update is None else update(value)  # type: ignore[arg-type]
                self._cache[key] = version, value, time.monotonic() + lasts
            return value  # type: ignore[return-value]

    def snapshot_version(self) -> int:
        """Return a number that changes with every commit, as of the snapshot of the current transaction."""
        if self.connection.txn_state("main") == apsw.SQLITE_TXN_NONE:
            self.one("SELECT 1 FROM config")  # the first read of a transaction takes the snapshot
        return self.connection.data_version()

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction and commit it. Calls can be nested only inside rehearse()."""
        return self._transaction(work, "COMMIT")

    def dry_run(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction and roll it back."""
        return self._transaction(work, "ROLLBACK")

    def rehearse(self, work: Callable[[Rehearsal], T]) -> T:
        """Run `work`, and roll back all writes of the operations that it calls. No page file is written.

        `work` receives a Rehearsal with the changes made so far. It can read the changed rows until it returns.
        Rehearsals can be nested; the changes of an inner one are not recorded in the outer one.
        """
        rehearsal, outer = Rehearsal(), self.rehearsal

        def run(tx: Transaction) -> T:
            self.rehearsal = rehearsal
            tx.set_update_hook(rehearsal.note_row)
            try:
                return work(rehearsal)
            finally:
                tx.set_update_hook(outer.note_row if outer else None)
                self.rehearsal = outer

        return self.dry_run(run)

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Register a function that undoes a change outside the database if the current write fails."""
        self._undo.append(undo)

    def _begin_reading(self) -> bool:
        """Begin a read transaction and return True. Return False if a transaction is already open."""
        if self.is_in_transaction():
            return False
        with translate_sqlite_errors(self.path):
            self._look_again()
            self.connection.execute("BEGIN")
        return True

    def _end_reading(self) -> None:
        with translate_sqlite_errors(self.path):
            # Nothing was written, except the temporary indexes of a restricted connection, which COMMIT keeps.
            self.connection.execute("COMMIT" if self.only else "ROLLBACK")

    def _transaction(self, work: Callable[[Transaction], T], end: str) -> T:
        if not self.writable:
            raise (
                errors.DiskFull(path=self.path)
                if self.full
                else errors.ReadOnly(path=self.path, problem="it was opened for reading only")
            )
        if self.rehearsal is not None:
            return self._nested(work, end)
        with self.lock.turn:
            if self.is_in_transaction():
                raise RuntimeError("a write was begun inside a write or a reading")
        self.set_views({})
        with self.lock.held(), translate_sqlite_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.begin_changes()
            try:
                result = self._run(work)
                if self.before_commit is not None:
                    self.before_commit(self.connection)
                self.connection.execute(end)
            except BaseException:
                if self.is_in_transaction():  # on a full disk, SQLite may already have rolled back
                    self.connection.execute("ROLLBACK")
                while self._undo:
                    self._undo.pop()()
                raise
            finally:
                self._undo.clear()
            self.lock.note(wal_note(self.path, self.connection))
            return result

    def _run(self, work: Callable[[Transaction], T]) -> T:
        """Run the function of a write. Raise OutsideScope if it changes hidden rows of a restricted connection."""
        try:
            result = work(self.connection)
        except apsw.ConstraintError:
            if not self.only:
                raise
            raise errors.OutsideScope from None  # a hidden row has the same unique value
        self.connection.check_changes()
        return result

    def _nested(self, work: Callable[[Transaction], T], end: str) -> T:
        """Run one write of a rehearsal, whose transaction is already open."""
        with translate_sqlite_errors(self.path):
            self.connection.execute("SAVEPOINT rehearsed")
            try:
                result = self._run(work)
            except BaseException:
                end = "ROLLBACK"
                raise
            finally:
                if self.is_in_transaction():  # on damage, SQLite may already have rolled back
                    if end == "ROLLBACK":
                        self.connection.execute("ROLLBACK TO rehearsed")
                    self.connection.execute("RELEASE rehearsed")
            return result

    def _look_again(self) -> None:
        """Reopen a read-only database if its file has changed, because it may have been opened as immutable."""
        if self.writable or self.is_in_transaction():
            return
        now = file_stamp(self.path)
        if now != self._seen:
            self.connection.close()
            self.connection = connect(self.path, False, self._kind)
            self._restrict()
            self._seen = now
            self.views = {}
            self._cache.clear()  # data_version is comparable only within one connection
            if self.on_reconnect is not None:
                self.on_reconnect()

    def set_author(self, author: str, agent: str = "", device: str = "", trust: int = 0) -> None:
        """Set the author that is recorded for page versions and facts: the name of a client, or "owner".

        `device` is "" unless the environment or the config file names this device. `trust` is the trust class of
        written pages and facts.
        """
        self.connection.author, self.connection.agent, self.connection.device = author, agent, device
        if not self.connection.in_transaction:  # a transaction may use a lower class for some of its writes
            self.connection.trust = trust

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Within this context, writes by an agent that change or end text of a person raise TextOfPerson."""
        self.connection.guarded = True
        try:
            yield
        finally:
            self.connection.guarded = False

    def take_written(self) -> list[tuple[int, int, bool]]:
        """Return the page versions written since the last call: page id, version, and whether the text changed."""
        written = list(dict.fromkeys(self.connection.written))
        self.connection.written.clear()
        return written

    def set_cancel_check(self, unwanted: Callable[[], bool]) -> None:
        """Call `unwanted` regularly while a statement runs; interrupt the statement if the result is True."""
        self.connection.set_progress_handler(unwanted, CANCEL_CHECK_STEPS)

    def file_size(self, suffix: str = "") -> int:
        """Return the size of the file, or of its WAL (suffix "-wal"); 0 on a restricted connection."""
        return 0 if self.only else file_size(self.path + suffix)

    def limit_cache(self, kib: int) -> None:
        """Limit the page cache to `kib` KiB, for a process with many connections."""
        self.connection.pragma("cache_size", -kib)

    def close(self) -> None:
        """Close the connection.

        The last connection that is closed checkpoints the WAL, unless another process is writing.
        """
        with self.lock.turn:
            if not self._open:
                return
            if self.is_in_transaction():
                raise RuntimeError("closed inside a write or a reading")
            self._open = False
            alone = self.writable and self._may_take_lock()
            try:
                with translate_sqlite_errors(self.path):
                    if alone:
                        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                    self.connection.close()
                if alone and not os.path.exists(self.path + "-wal"):
                    self.lock.note(NO_WAL_NOTE)
            finally:
                self.lock.release()

    def is_in_transaction(self) -> bool:
        return self.connection.in_transaction

    def _may_take_lock(self) -> bool:
        try:
            return self.lock.try_take()
        except errors.QuaidError:
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.close()


class _ReadTransaction:
    """Context manager for several reads on one snapshot; holds the connection's thread lock."""

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


def _remove_unfinished_copy(path: str) -> None:
    """Delete the copy left by a killed `quaid encrypt`, `decrypt` or `rekey`, unless such a command is running."""
    lock = WriterLock(path)
    if lock.try_take():
        try:
            with translate_os_errors(path):
                remove_with_sidecars(path + UNFINISHED_COPY)
        finally:
            lock.release()


def _refuse_unknown_version(path: str, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise errors.NewerDatabase(path=path, version=version, supported=SCHEMA_VERSION)
    if problem := version_problem(version):
        raise errors.NotADatabase(path=path, problem=f"schema {version}: {problem}")


def next_row_id(tx: Transaction, table: str) -> int:
    """Return the next id of an AUTOINCREMENT table."""
    last = tx.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return 1 + (int(last[0]) if last else 0)


def file_size(path: str) -> int:
    """Return the size of a file in bytes, or 0 if it does not exist."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
