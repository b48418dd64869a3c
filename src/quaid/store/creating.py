"""How a new memory comes to be: whole, or not at all.

Knows schema.sql and the rows that every memory has. Does not know how a memory is used.
"""

import os

import apsw

from quaid.errors import AlreadyExists
from quaid.store import durable, settings
from quaid.store.lock import WriterLock
from quaid.store.trouble import sqlite_told_plainly, system_told_plainly

DEFAULT_COLLECTION = 1


def schema(name: str = "schema.sql") -> str:
    """The text of the present schema, or of an older one."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


def shapes(name: str = "schema.sql") -> dict[str, str]:
    """The statement that makes each table, index, trigger and view of a schema, in their order."""
    fresh = apsw.Connection(":memory:")
    fresh.execute(schema(name))
    found = fresh.execute(
        "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB '*_fts*_*'"
        " AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    fresh.close()
    return {str(name): str(sql) for name, sql in found}


def make(path: str, now: str, memory_id: str = "") -> None:
    """Make a memory at a path where nothing is. It is built beside it and then given its name."""
    _check_free(path)
    with system_told_plainly(path):
        durable.make_folders(os.path.dirname(path))
    lock = WriterLock(path)
    with lock.held():
        _check_free(path)
        unfinished = path + "-new"
        with system_told_plainly(path), sqlite_told_plainly(path):
            try:
                durable.discard(unfinished)
                durable.make_private_file(unfinished)
                _fill(unfinished, now, memory_id)
                durable.put_in_place(unfinished, path)
            except BaseException:
                durable.discard(unfinished)
                lock.remove_file()
                raise


def add_default_collection(tx: apsw.Connection, now: str) -> None:
    """The collection of the pages that live only in the database."""
    tx.execute(
        "INSERT INTO collections (id, name, kind, is_write_target, created_at, updated_at)"
        " VALUES (?, 'default', 'pages', 1, ?, ?)",
        (DEFAULT_COLLECTION, now, now),
    )


def _check_free(path: str) -> None:
    if os.path.lexists(path):
        raise AlreadyExists(path=path, hint="Use it as it is, or name another file.")
    # SQLite would take an old log for the new file's own, and spoil it.
    if os.path.lexists(path + "-wal"):
        raise AlreadyExists(path=path + "-wal", hint="Its database is gone: bring that back, or move this.")


def _fill(path: str, now: str, memory_id: str) -> None:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.pragma("journal_mode", "MEMORY")
        connection.pragma("synchronous", "OFF")
        connection.execute("BEGIN")
        connection.execute(schema())
        add_default_collection(connection, now)
        if memory_id:
            settings.set_memory_id(connection, memory_id)
        connection.execute("COMMIT")
        connection.pragma("journal_mode", "WAL")
    finally:
        connection.close()
