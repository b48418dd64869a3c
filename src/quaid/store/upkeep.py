"""Looking after a memory: figures, checks, copies, one tidy file.

Knows the file as a whole. Does not know what its pages say.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import apsw

from quaid.errors import AlreadyExists, DamagedDatabase, DiskFull, FileTrouble, ReadOnly
from quaid.store import SCHEMA_VERSION, links, settings
from quaid.store.trouble import BUSY_SECONDS, sqlite_told_plainly, system_told_plainly

if TYPE_CHECKING:
    from quaid.store.db import Database

CHECKS = ("links", "assertions", "embeddings", "fts", "integrity")
READERS_WAIT_MS = 100
"""How long compact waits for readers of an older state before it leaves the rest of the log for later."""


FRAME_HEADER = 24
"""Bytes before each page in the log."""

UNFINISHED = ".quaid-backup-"
"""How the name of a copy begins that is being made; the number of its process comes behind."""

PATIENCE = 3600
"""Seconds after which an unfinished copy that nobody writes to is a dead process's."""


class Stats(NamedTuple):
    """A memory in figures."""

    path: str
    schema_version: int
    pages: int
    pages_by_type: dict[str, int]
    links: int
    tags: int
    timeline_entries: int
    raw_data: int
    chunks: int
    model: str | None
    contradictions: int
    gaps: int
    imports: int
    size: int
    wal_size: int
    updated_at: str | None


class Violation(NamedTuple):
    """One thing that is wrong."""

    check: str
    where: str
    problem: str


class BackedUp(NamedTuple):
    """A copy that was made and checked."""

    path: str
    size: int


class Compacted(NamedTuple):
    """What moving the log into the database did; `busy` when a reader still needs some of the log."""

    size: int
    wal_before: int
    wal_after: int
    busy: bool
    folded: int
    """Bytes of the log that are in the database now."""
    vectors_dropped: int = 0
    """Of text that is gone."""


def stats(db: "Database") -> Stats:
    """Count what there is, all of one state."""
    with db.reading():
        by_type = db.rows(
            "SELECT type, count(*) FROM pages WHERE quarantined_at IS NULL"
            " GROUP BY type ORDER BY count(*) DESC, type"
        )
        return Stats(
            path=db.path,
            schema_version=SCHEMA_VERSION,
            pages=sum(number for _, number in by_type),
            pages_by_type=dict(by_type),
            links=links.count(db),
            tags=_count(db, "tags"),
            timeline_entries=_count(db, "timeline_entries"),
            raw_data=_count(db, "raw_data"),
            chunks=_count(
                db, "page_embeddings WHERE model = (SELECT name FROM embedding_models WHERE active = 1)"
            ),
            model=_first(db, "SELECT name FROM embedding_models WHERE active = 1"),
            contradictions=_count(db, "contradictions WHERE resolved_at IS NULL"),
            gaps=_count(db, "knowledge_gaps WHERE resolved_at IS NULL"),
            imports=_count(db, "import_manifest"),
            size=size_of(db.path),
            wal_size=size_of(db.path + "-wal"),
            updated_at=_first(db, "SELECT max(updated_at) FROM pages WHERE quarantined_at IS NULL"),
        )


def pages_of(db: "Database") -> int:
    """How many pages there are."""
    return _count(db, "pages WHERE quarantined_at IS NULL")


def state(db: "Database") -> tuple[int, str]:
    """How many pages there are, and when one was last changed."""
    row = db.one("SELECT count(*), max(updated_at) FROM pages WHERE quarantined_at IS NULL")
    return (int(row[0]), str(row[1] or "")) if row else (0, "")


def validate(db: "Database", which: Iterable[str] = CHECKS) -> list[Violation]:
    """Everything that the named checks find wrong."""
    from quaid.store import checks

    with sqlite_told_plainly(db.path):
        return checks.run(db, tuple(which))


def backup(db: "Database", target: str, new_id: str = "") -> BackedUp:
    """Copy the present state to a new file, checked and durable, while others go on writing.

    A memory without an id gets the new one first, so that the copy is known as a copy of it.
    """
    from quaid.store import durable

    target = os.path.realpath(target)
    _check_free(target)
    if new_id and db.writable and settings.memory_id(db) is None:
        db.write(lambda tx: settings.set_memory_id(tx, new_id))
    unfinished = os.path.join(os.path.dirname(target), f"{UNFINISHED}{os.getpid()}")
    with system_told_plainly(target):
        durable.discard(unfinished)
        durable.make_private_file(unfinished)
        try:
            _clear_unfinished(unfinished)
            try:
                with db.lock.turn, sqlite_told_plainly(db.path):
                    db.connection.execute("VACUUM INTO ?", (unfinished,))
            except DiskFull:
                raise DiskFull(path=target) from None
            _check_copy(unfinished)
            _check_free(target)
            durable.put_in_place(unfinished, target)
        except BaseException:
            durable.discard(unfinished)
            raise
    return BackedUp(path=target, size=size_of(target))


def _clear_unfinished(ours: str) -> None:
    """Remove what backups that were killed left beside ours. What somebody wrote within the last hour is at work."""
    from quaid.store import durable

    folder, name = os.path.split(ours)
    now = os.stat(ours).st_mtime  # just made: the same clock has stamped the others
    for other in os.listdir(folder):
        path = os.path.join(folder, other)
        if other != name and other.startswith(UNFINISHED) and other.removeprefix(UNFINISHED).isdigit():
            try:
                if now - os.lstat(path).st_mtime > PATIENCE:
                    durable.discard(path)
            except FileNotFoundError:  # finished meanwhile, or somebody else tidies up as well
                continue


def compact(db: "Database") -> Compacted:
    """Move the log into the database, so that one file is all; readers read on meanwhile."""
    if not db.writable:
        raise ReadOnly(path=db.path, problem="it was opened for reading only")
    with db.lock.held(), sqlite_told_plainly(db.path):
        db.connection.pragma("optimize")  # which may write
        wal_before = size_of(db.path + "-wal")
        db.connection.set_busy_timeout(READERS_WAIT_MS)
        try:
            busy, _, moved = db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        finally:
            db.connection.set_busy_timeout(BUSY_SECONDS * 1000)
        frame = int(db.connection.pragma("page_size")) + FRAME_HEADER
    return Compacted(
        size=size_of(db.path),
        wal_before=wal_before,
        wal_after=size_of(db.path + "-wal"),
        busy=bool(busy),
        folded=min(wal_before, max(0, int(str(moved))) * frame) if busy else wal_before,
    )


def _check_free(target: str) -> None:
    if os.path.lexists(target):
        raise AlreadyExists(path=target, hint="Name a new file for the backup.")
    if not os.path.isdir(os.path.dirname(target)):
        raise FileTrouble(path=target, problem="its folder is not there")


def _check_copy(path: str) -> None:
    with sqlite_told_plainly(path):
        copy = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            found = copy.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            copy.close()
    if found != [("ok",)]:
        raise DamagedDatabase(path=path, problem=str(found[0][0]))


def _count(db: "Database", what: str) -> int:
    return int(_first(db, f"SELECT count(*) FROM {what}") or 0)  # noqa: S608 (only fixed texts above)


def _first(db: "Database", sql: str) -> str | None:
    row = db.one(sql)
    return None if row is None else row[0]


def size_of(path: str) -> int:
    """The bytes of a file; 0 when there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
