"""A memory that is open: reading, one way of writing, closing.

Knows transactions and who may write when. Does not know any table: the other modules of this room hand their
SQL to it. A Database may be shared by threads; they take turns. Two threads that want to read at the same
time open two.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import apsw

from quaid.errors import DamagedDatabase, DiskFull, NewerDatabase, NotADatabase, QuaidError, ReadOnly
from quaid.store import OLDEST_VERSION, SCHEMA_VERSION, opening
from quaid.store.lock import WriterLock
from quaid.store.trouble import sqlite_told_plainly

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
Row = tuple[Any, ...]

STEPS_BETWEEN_LOOKS = 10_000
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
        self._seen = opening.looks(path)
        self._undo: list[Callable[[], None]] = []
        self._known: dict[str, tuple[int, Any]] = {}

    @classmethod
    def create(cls, path: str, now: str, memory_id: str = "") -> Self:
        """Make a new memory with its folders, and open it. The id is what its copies are known by."""
        from quaid.store.creating import make

        opening.check_sqlite()
        path = os.path.realpath(path)
        make(path, now, memory_id)
        return cls.open(path, now)

    @classmethod
    def open(cls, path: str, now: str, *, accept_torn_log: bool = False) -> Self:
        """Open a memory; bring an older one forward, refuse a newer one, a damaged one and what is none."""
        opening.check_sqlite()
        path = os.path.realpath(path)
        header = opening.header_of(path)
        _refuse_unknown_version(path, header.version)
        writable = opening.is_writable(path)
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
    def _opened(cls, path: str, header: opening.Header, writable: bool, now: str) -> Self:
        with sqlite_told_plainly(path):
            db = cls(path, opening.connect(path, writable), writable)
            try:
                db._get_ready(header, now)
            except BaseException:
                db.connection.close()
                raise
        return db

    def _get_ready(self, header: opening.Header, now: str) -> None:
        found = self.connection.pragma("user_version")
        _refuse_unknown_version(self.path, found)
        if found < SCHEMA_VERSION:
            if not self.writable:
                raise ReadOnly(path=self.path, problem=f"schema {found} must be brought to {SCHEMA_VERSION}")
            from quaid.store.migrations import bring_forward

            bring_forward(self, now)
        if self.writable and not header.wal:
            with self.lock.held():
                self.connection.pragma("journal_mode", "WAL")

    def _refuse_torn_log(self) -> None:
        try:
            if not os.path.getsize(self.path + "-wal"):
                return
        except OSError:  # there is none
            return
        from quaid.store import log_end

        try:
            try:
                log_end.check(self.path, self.connection, self.lock.noted())
            except DamagedDatabase:
                if not self.writable:
                    raise
                with self.lock.held():  # somebody may just be beginning the log anew
                    log_end.check(self.path, self.connection, self.lock.noted())
        except BaseException:
            self.connection.close()
            raise

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        """All rows that a query finds."""
        with self.lock.turn, sqlite_told_plainly(self.path):
            self._look_again()
            return self.connection.execute(sql, params).fetchall()

    def one(self, sql: str, params: Row = ()) -> Row | None:
        """The first row that a query finds, if any."""
        with self.lock.turn, sqlite_told_plainly(self.path):
            self._look_again()
            cursor = self.connection.execute(sql, params)
            row = cursor.fetchone()
            cursor.close()
            return row

    def reading(self) -> "_Reading":
        """Let several reads see the same state. Within a write they see what it has done so far."""
        return _Reading(self)

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
        with sqlite_told_plainly(self.path):
            self._look_again()
            self.connection.execute("BEGIN")
        return True

    def _end_reading(self) -> None:
        with sqlite_told_plainly(self.path):
            self.connection.execute("ROLLBACK")

    def _transaction(self, work: Callable[[apsw.Connection], T], end: str) -> T:
        if not self.writable:
            raise DiskFull(path=self.path) if self.full else self._read_only()
        with self.lock.turn:
            if self._in_transaction():
                raise RuntimeError("a write was begun inside a write or a reading")
        with self.lock.held(), sqlite_told_plainly(self.path):
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
        from quaid.store import log_end

        self.lock.note(log_end.note(self.path, self.connection))

    def _note_no_log(self) -> None:
        from quaid.store import log_end

        self.lock.note(log_end.NO_LOG)

    def _read_only(self) -> ReadOnly:
        return ReadOnly(path=self.path, problem="it was opened for reading only")

    def _look_again(self) -> None:
        """A file that we read as it lies, without locks, is opened anew when its owner has changed it."""
        if self.writable or self._in_transaction():
            return
        now = opening.looks(self.path)
        if now != self._seen:
            self.connection.close()
            self.connection = opening.connect(self.path, False)
            self._seen = now
            self._known.clear()  # versions are counted from anew

    def give_up_when(self, unwanted: Callable[[], bool]) -> None:
        """Ask now and then, within a statement, whether its answer is still wanted; if not, roll back."""
        self.connection.set_progress_handler(unwanted, STEPS_BETWEEN_LOOKS)

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
                with sqlite_told_plainly(self.path):
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


class _Reading:
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
