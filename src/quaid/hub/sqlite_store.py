"""A hub's database in one SQLite file."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import apsw

from quaid.errors import NotADatabase
from quaid.hub.revisions import Row
from quaid.hub.store import HubStore, PutCall, PutQueue, read_statements
from quaid.storage.files import make_folders, make_private_file
from quaid.storage.sqlite.connection import check_sqlite
from quaid.storage.sqlite.errors import translate_os_errors, translate_sqlite_errors

APPLICATION_ID = 0x51485542  # "QHUB"
BUSY_SECONDS = 10
POLL_SECONDS = 0.5
"""Interval in seconds for polling changes of other processes."""
CACHE_KIB = 4 * 1024


class SqliteTransaction:
    """An open transaction of a connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(params)).fetchall()

    def one(self, sql: str, params: Sequence[object] = ()) -> Row | None:
        rows = self.rows(sql, params)
        return rows[0] if rows else None

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        self._connection.executemany(sql, [tuple(row) for row in rows])

    def enter(self, space: str) -> None:
        """Do nothing: SQLite has no row-level security."""


class SqliteHubStore(HubStore):
    """A hub on one machine. One connection writes; every thread has a connection for reading."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        check_sqlite()
        self.path = path
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._all_calls = PutQueue()
        self._is_closed = False
        if not os.path.exists(path):
            with translate_os_errors(path):
                make_folders(os.path.dirname(os.path.abspath(path)))
                make_private_file(path)
        with translate_sqlite_errors(path):
            self._writer = self._connect()
            self._prepare()

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
        self._connections.append(connection)
        connection.set_busy_timeout(BUSY_SECONDS * 1000)
        for setting, value in (
            (apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1),
            (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
            (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        ):
            connection.config(setting, value)
        connection.pragma("synchronous", "FULL")
        connection.pragma("secure_delete", True)  # a purge overwrites the erased data
        connection.pragma("cache_size", -CACHE_KIB)
        return connection

    def _prepare(self) -> None:
        """Create the tables in an empty file, or upgrade them. Refuse a file of another program or a newer Quaid."""
        writer = self._writer
        if int(writer.pragma("application_id")) != APPLICATION_ID and writer.pragma("schema_version"):
            raise NotADatabase(path=self.path, problem="it is not the database of a hub")
        writer.pragma("journal_mode", "wal")
        with self._write() as tx:
            if not int(writer.pragma("application_id")):
                writer.pragma("application_id", APPLICATION_ID)
                writer.execute(read_statements("schema.sql"))
                self._create_hub(tx)
            self._upgrade(tx, self.path, writer.execute)

    def _disconnect(self, connection: apsw.Connection) -> None:
        self._connections.remove(connection)
        connection.close()

    def close(self) -> None:
        """Close all connections. Closing the last one checkpoints the WAL."""
        self._is_closed = True
        with self._changed:
            self._changed.notify_all()
        if self._watcher is not None:
            self._watcher.join()
        with self._turn:
            for connection in reversed(self._connections):
                connection.close()
            self._connections = []

    @contextmanager
    def _read(self) -> Iterator[SqliteTransaction]:
        connection = getattr(self._local, "connection", None)
        with translate_sqlite_errors(self.path):
            if connection is None:
                connection = self._local.connection = self._connect()
            with _transaction(connection, "DEFERRED"):
                yield SqliteTransaction(connection)

    @contextmanager
    def _write(self) -> Iterator[SqliteTransaction]:
        with self._turn, translate_sqlite_errors(self.path), _transaction(self._writer, "IMMEDIATE"):
            yield SqliteTransaction(self._writer)

    def _queue(self, space: str) -> PutQueue:  # noqa: ARG002
        return self._all_calls

    def _fit_together(self, one: PutCall, other: PutCall) -> bool:  # noqa: ARG002
        return True  # all spaces are in one file, so one commit can cover them

    def _wake(self, space: str) -> None:  # noqa: ARG002
        with self._changed:
            self._changed.notify_all()

    def _scrub(self) -> None:
        """Empty the WAL. If a reader still needs it, a later checkpoint overwrites it."""
        with self._turn, translate_sqlite_errors(self.path):
            self._writer.pragma("wal_checkpoint", "TRUNCATE")

    def _watch(self) -> None:
        """Poll the sequence numbers of all spaces after each commit, and twice a second for other processes."""
        connection = self._connect()
        version = connection.pragma("data_version")
        self._watcher_started.set()
        while not self._is_closed:
            if connection.pragma("data_version") != version:
                version = connection.pragma("data_version")
                self._report_changes()
            with self._changed:
                if not self._is_closed and connection.pragma("data_version") == version:
                    self._changed.wait(POLL_SECONDS)

    def backup(self, path: str) -> None:
        """Write a consistent copy of the database to a new file. Others can read and write meanwhile."""
        with translate_os_errors(path):
            make_private_file(path)
        with translate_sqlite_errors(path):
            target, source = apsw.Connection(path), self._connect()
            try:
                with target.backup("main", source, "main") as copy:
                    copy.step()
                target.pragma("journal_mode", "delete")
            finally:
                target.close()
                self._disconnect(source)


@contextmanager
def _transaction(connection: apsw.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
