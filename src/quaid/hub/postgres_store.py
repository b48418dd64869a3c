"""A hub's database in PostgreSQL, which several hub processes can share.

It uses plain SQL, which CockroachDB, YugabyteDB and Citus also accept. Notifications only shorten the delay until
other processes notice a change. Without notifications, the delay is about a second.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from quaid.errors import Busy, HubDatabaseUnavailable
from quaid.hub.revisions import Row
from quaid.hub.store import HubStore, read_statements

try:
    import psycopg
    import psycopg_pool
    from psycopg import errors as postgres
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    remedy = "Install the package with its extra: pip install 'quaid-memory[hub]'"
    raise HubDatabaseUnavailable(place="PostgreSQL", problem=f"{error}", remedy=remedy) from error

ROLE = "quaid_hub_request"
CHANNEL = "quaid_hub"
WALLED = (
    *("spaces", "members", "invitations", "revisions", "heads", "proposals", "acknowledgements", "vectors"),
    "audit",
)
"""The tables that have row-level security."""
MOST_CONNECTIONS = 8
POLL_SECONDS = 1.0
"""Interval for polling the sequence numbers of all spaces. Polling takes at most 1 % of the time."""
LISTEN_SECONDS = 0.25
"""Timeout of a wait for notifications. Closing a store can take this long."""
NOTIFY_PAUSE = 0.01
CONNECT_SECONDS = 10
CREATE_LOCK = 0x51485542

_TYPES = {"TEXT": 'TEXT COLLATE "C"', "INTEGER": "BIGINT", "BLOB": "BYTEA"}


class PostgresTransaction:
    """An open transaction of a connection."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        return self._execute(sql, params).fetchall()

    def one(self, sql: str, params: Sequence[object] = ()) -> Row | None:
        row: Row | None = self._execute(sql, params).fetchone()
        return row

    def _execute(self, sql: str, params: Sequence[object]) -> "psycopg.Cursor[Any]":
        return self._connection.execute(sql.replace("?", "%s").encode(), params, binary=True)

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s").encode(), rows)

    def enter(self, space: str) -> None:
        """Switch to a role that can access only the rows of one space."""
        sql = b"SELECT set_config('role', %s, true), set_config('quaid.spaces', %s, true)"
        self._connection.execute(sql, (ROLE, f",{space}," if space else ""))


class PostgresHubStore(HubStore):
    """A hub on PostgreSQL. Threads share a pool of connections."""

    FOR_UPDATE: ClassVar[str] = " FOR UPDATE"
    ATTEMPTS: ClassVar[int] = 5

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self.url = url
        self._changed_spaces: set[str] = set()
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._notifier: threading.Thread | None = None
        with self._translated_errors():
            parts = conninfo_to_dict(url)
            self._place = f"{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"
            with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection:
                self._create_role(connection)
                with connection.transaction():
                    self._prepare(connection)
            self._pool = psycopg_pool.ConnectionPool(url, min_size=1, max_size=MOST_CONNECTIONS, open=True)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate operational errors of PostgreSQL into errors of quaid.errors, but not bugs in SQL statements."""
        try:
            yield
        except (postgres.SerializationFailure, postgres.DeadlockDetected) as error:
            raise Busy(path=self._place, seconds=0) from error
        except (psycopg.OperationalError, psycopg_pool.PoolTimeout, psycopg.ProgrammingError) as error:
            if isinstance(error, psycopg.ProgrammingError) and error.sqlstate:
                raise
            place = getattr(self, "_place", "PostgreSQL")
            remedy = "Check that the server runs and accepts the address and the password, and try again"
            problem = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise HubDatabaseUnavailable(place=place, problem=problem, remedy=remedy) from error

    def _create_role(self, connection: "psycopg.Connection[Any]") -> None:
        """Create the role for requests, which cannot log in and is subject to row-level security."""
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone():
            return
        try:
            connection.execute(f"CREATE ROLE {ROLE} NOLOGIN".encode())
            connection.execute(f"GRANT {ROLE} TO CURRENT_USER".encode())
        except (postgres.DuplicateObject, postgres.UniqueViolation):  # another process created it first
            return
        except postgres.InsufficientPrivilege as error:
            remedy = f"Let an administrator run: CREATE ROLE {ROLE} NOLOGIN; GRANT {ROLE} TO your_user"
            problem = f"the role {ROLE} is missing"
            raise HubDatabaseUnavailable(place=self._place, problem=problem, remedy=remedy) from error

    def _prepare(self, connection: "psycopg.Connection[Any]") -> None:
        """Create the tables in an empty database, or upgrade them. Refuse the database of a newer Quaid."""
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (CREATE_LOCK,))
        tx = PostgresTransaction(connection)
        if tx.rows("SELECT to_regclass('hub')") == [(None,)]:
            statements = re.sub(r"\) STRICT(, WITHOUT ROWID)?;", ");", read_statements("schema.sql"))
            statements = re.sub(r"\b(TEXT|INTEGER|BLOB)\b", lambda match: _TYPES[match[0]], statements)
            connection.execute(statements.encode())
            self._create_hub(tx)
        self._upgrade(tx, self._place, lambda statements: connection.execute(statements.encode()))
        # A backup that was restored before the role existed has no policies.
        if len(tx.rows("SELECT 1 FROM pg_policies WHERE policyname = 'of_request'")) != len(WALLED):
            connection.execute(read_statements("row_security.sql").encode())

    def close(self) -> None:
        self._closed.set()
        self._changed.set()
        for thread in (self._watcher, self._notifier):
            if thread is not None:
                thread.join()
        self._pool.close()

    @contextmanager
    def _write(self) -> Iterator[PostgresTransaction]:
        with self._translated_errors(), self._pool.connection() as connection:
            yield PostgresTransaction(connection)

    _read = _write

    def _scrub(self) -> None:
        """Do nothing: PostgreSQL overwrites erased rows after a VACUUM, which it runs in the background."""

    def _wake(self, space: str) -> None:
        """Let a separate thread send the notification, because a commit with NOTIFY locks the whole database."""
        self._changed_spaces.add(space)
        self._changed.set()
        if self._notifier is None:
            with self._lock:
                if self._notifier is None:
                    self._notifier = threading.Thread(target=self._notify, name="hub notifier", daemon=True)
                    self._notifier.start()

    def _notify(self) -> None:
        while not self._closed.is_set():
            self._changed.wait()
            self._changed.clear()
            spaces, self._changed_spaces = self._changed_spaces, set()
            try:
                with self._pool.connection() as connection:
                    connection.execute("SET LOCAL synchronous_commit = off")
                    for space in spaces:
                        connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, space))
            except (psycopg.Error, psycopg_pool.PoolTimeout):  # other processes notice the changes by polling
                pass
            self._closed.wait(NOTIFY_PAUSE)

    def _watch(self) -> None:
        """Report notified changes at once and other changes about every second. Reconnect after an error."""
        while not self._closed.is_set():
            try:
                with psycopg.connect(
                    self.url, autocommit=True, connect_timeout=CONNECT_SECONDS
                ) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._watcher_started.set()
                    self._listen(connection)
            except (psycopg.Error, HubDatabaseUnavailable, Busy):
                self._watcher_started.set()
                self._closed.wait(POLL_SECONDS)

    def _listen(self, connection: "psycopg.Connection[Any]") -> None:
        due = 0.0
        while not self._closed.is_set():
            if time.monotonic() >= due:
                started = time.monotonic()
                self._report_changes()
                due = time.monotonic() + max(POLL_SECONDS, 100 * (time.monotonic() - started))
            self._report_changes(
                {note.payload for note in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1)}
            )
