"""How a file becomes a connection: what is looked at before, and which rules every connection keeps.

Knows the header of a SQLite file, the versions of SQLite that are safe and the pragmas. Does not know what is
in the tables.

A file is looked at through SQLite's own file layer. Opening and closing it with os.open would drop the locks
that this process holds on it through any other connection.
"""

import os
from typing import NamedTuple

import apsw

from quaid.errors import NotADatabase, UnsafeSqlite
from quaid.store.trouble import BUSY_SECONDS, missing, sqlite_told_plainly

APPLICATION_ID = 0x51414944

CACHE_KIB = 32 * 1024
"""At most so much memory for pages: a whole import is one transaction, and spilling it costs a tenth more."""

EMPTY, NO_SQLITE = "it is empty", "it is not a SQLite file"
"""What may be wrong with a file that was a memory once."""

WAL_FORMAT = b"\x02\x02"


class Header(NamedTuple):
    """What the first bytes of a database say. A newer state may still lie in the write-ahead log."""

    version: int
    wal: bool


def is_safe(version: str) -> bool:
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
    if not is_safe(sqlite_version()):
        raise UnsafeSqlite(version=sqlite_version())


def header_of(path: str) -> Header:
    """Read a memory's header and touch nothing. MissingDatabase or NotADatabase when it is none."""
    if not os.path.exists(path):
        raise missing(path)
    if not os.path.isfile(path):
        raise NotADatabase(path=path, problem="it is not a file")
    with sqlite_told_plainly(path):
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
        try:
            first = file.xRead(100, 0)
        finally:
            file.xClose()
    if not first:
        raise NotADatabase(path=path, problem=EMPTY)
    if len(first) < 100 or not first.startswith(b"SQLite format 3\0"):
        raise NotADatabase(path=path, problem=NO_SQLITE)
    if int.from_bytes(first[68:72], "big") != APPLICATION_ID:
        raise NotADatabase(path=path, problem="another program made it")
    return Header(version=int.from_bytes(first[60:64], "big"), wal=first[18:20] == WAL_FORMAT)


def is_writable(path: str) -> bool:
    """Whether the file and its folder, where SQLite puts its log, can be written."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(path) or ".", os.W_OK)


def looks(path: str) -> tuple[int, int, bool]:
    """What tells a reader without locks that the file has changed."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, os.path.exists(path + "-wal")


def connect(path: str, writable: bool) -> apsw.Connection:
    """A connection that keeps our rules, its schema readable."""
    if writable:
        return _ruled(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE))
    # Without a log nobody has the file open, and it can be read as it lies. Opening it in the usual way would
    # put a log beside it that its owner could then not write.
    if not os.path.exists(path + "-wal") and not os.path.exists(path + "-journal"):
        return _readable(_uri(path, "immutable=1"))
    try:
        return _readable(_uri(path, "mode=ro"))
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        if not os.path.exists(path + "-wal") or os.path.getsize(path + "-wal"):
            raise
        return _readable(_uri(path, "immutable=1"))


def _readable(uri: str) -> apsw.Connection:
    connection = _ruled(apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI))
    try:
        connection.pragma("schema_version")
    except apsw.Error:
        connection.close()
        raise
    return connection


def _uri(path: str, option: str) -> str:
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{option}"


def _ruled(connection: apsw.Connection) -> apsw.Connection:
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
