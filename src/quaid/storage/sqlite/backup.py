"""Back up and compact a database, and find copies of it."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import apsw

from quaid import storage
from quaid.errors import AlreadyExists, DamagedDatabase, DiskFull, FileTrouble, QuaidError, ReadOnly
from quaid.storage import collections, files as durable_files
from quaid.storage.sqlite import connection as openings
from quaid.storage.sqlite.connection import file_size
from quaid.storage.sqlite.errors import BUSY_SECONDS, translate_os_errors, translate_sqlite_errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quaid.storage.erase import EraseTarget
    from quaid.storage.sqlite.connection import Database

READERS_WAIT_MS = 100
"""How long compact waits for readers of an older state before it leaves the rest of the log for later."""


FRAME_HEADER = 24
"""Bytes before each page in the log."""

UNFINISHED_BACKUP = ".quaid-backup-"
"""How the name of a copy begins that is being made; the number of its process comes behind."""

UNFINISHED_BACKUP_SECONDS = 3600
"""Seconds after which an unfinished copy that nobody writes to is a dead process's."""


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


def create_backup(db: "Database", target: str, new_id: str = "") -> BackedUp:
    """Copy the present state to a new file, checked and durable, while others go on writing.

    A memory without an id gets the new one first, so that the copy is known as a copy of it.
    """

    target = os.path.realpath(target)
    _check_target_free(target)
    if new_id and db.writable and collections.read_memory_id(db) is None:
        db.write(lambda tx: collections.set_memory_id(tx, new_id))
    unfinished = os.path.join(os.path.dirname(target), f"{UNFINISHED_BACKUP}{os.getpid()}")
    with translate_os_errors(target):
        durable_files.remove_with_sidecars(unfinished)
        durable_files.make_private_file(unfinished)
        try:
            _remove_unfinished_backups(unfinished)
            try:
                with db.lock.turn, translate_sqlite_errors(db.path):
                    db.connection.execute("VACUUM INTO ?", (unfinished,))
            except DiskFull:
                raise DiskFull(path=target) from None
            _check_copy(unfinished)
            _check_target_free(target)
            durable_files.rename_durably(unfinished, target)
        except BaseException:
            durable_files.remove_with_sidecars(unfinished)
            raise
    return BackedUp(path=target, size=file_size(target))


def _remove_unfinished_backups(ours: str) -> None:
    """Remove what backups that were killed left beside ours. What somebody wrote within the last hour is at work."""

    folder, name = os.path.split(ours)
    now = os.stat(ours).st_mtime  # just made: the same clock has stamped the others
    for other in os.listdir(folder):
        path = os.path.join(folder, other)
        if (
            other != name
            and other.startswith(UNFINISHED_BACKUP)
            and other.removeprefix(UNFINISHED_BACKUP).isdigit()
        ):
            try:
                if now - os.lstat(path).st_mtime > UNFINISHED_BACKUP_SECONDS:
                    durable_files.remove_with_sidecars(path)
            except FileNotFoundError:  # finished meanwhile, or somebody else tidies up as well
                continue


def compact(db: "Database") -> Compacted:
    """Move the log into the database, so that one file is all; readers read on meanwhile."""
    if not db.writable:
        raise ReadOnly(path=db.path, problem="it was opened for reading only")
    with db.lock.held(), translate_sqlite_errors(db.path):
        db.connection.pragma("optimize")  # which may write
        wal_before = file_size(db.path + "-wal")
        db.connection.set_busy_timeout(READERS_WAIT_MS)
        try:
            busy, _, moved = db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        finally:
            db.connection.set_busy_timeout(BUSY_SECONDS * 1000)
        frame = int(db.connection.pragma("page_size")) + FRAME_HEADER
    return Compacted(
        size=file_size(db.path),
        wal_before=wal_before,
        wal_after=file_size(db.path + "-wal"),
        busy=bool(busy),
        folded=min(wal_before, max(0, int(str(moved))) * frame) if busy else wal_before,
    )


def _check_target_free(target: str) -> None:
    if os.path.lexists(target):
        raise AlreadyExists(path=target, hint="Name a new file for the backup.")
    if not os.path.isdir(os.path.dirname(target)):
        raise FileTrouble(path=target, problem="its folder is not there")


def _check_copy(path: str) -> None:
    with translate_sqlite_errors(path):
        copy = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            found = copy.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            copy.close()
    if found != [("ok",)]:
        raise DamagedDatabase(path=path, problem=str(found[0][0]))


MIGRATION_BACKUP_INFIX = ".backup-v"
"""What stands between a memory's name and the schema version in the name of a backup that a migration made."""

PAGES_COMPARED = 20
"""Pages by which memories without ids are compared."""

PAGES_SCANNED = 4
"""Pages of a copy at either end that are looked for in a memory: each is a look through the whole file."""


class DatabaseCopy(NamedTuple):
    """A file with the pages of a memory in it."""

    path: str
    size: int
    ours: bool
    """Made by a migration, or a copy of this memory by what is in it. Any other is not ours to delete."""
    made_by: str
    """migration, backup or somebody."""
    holds: bool
    """Whether the page is in it; one that cannot be read may hold it."""


class IntactCopy(NamedTuple):
    """A copy that can take a memory's place: SQLite finds nothing wrong with it."""

    path: str
    made: float
    """The time of its file."""
    version: int
    """Of its schema; an older one is brought forward when it is opened."""
    pages: int
    changed: str | None
    """When a page in it was last changed."""
    is_same: bool = True
    """Whether it is known to be of the same memory."""


def copies_beside(path: str, target: "EraseTarget") -> list[DatabaseCopy]:
    """The copies in the folder of a memory, with whether they hold a page."""
    folder, name = os.path.split(path)
    found = []
    with translate_os_errors(folder):
        entries = sorted(os.listdir(folder))
    for entry in entries:
        other = os.path.join(folder, entry)
        if entry == name or not _is_database(other):
            continue
        made_by = "somebody"
        if entry.startswith(name + MIGRATION_BACKUP_INFIX):
            made_by = "migration"
        elif _is_copy_with_page(other, path, target):
            made_by = "backup"
        size = os.path.getsize(other)
        found.append(DatabaseCopy(other, size, made_by != "somebody", made_by, _holds_page(other, target)))
    return found


def newest_backup(path: str, folders: "Iterable[str]") -> tuple[str, float] | None:
    """The youngest copy of this memory in these folders that no migration made, with the time of its file."""
    mine = _read_identity(path)
    for made, other in _databases_in(path, folders):
        if (
            MIGRATION_BACKUP_INFIX not in os.path.basename(other)
            and mine is not None
            and _is_same_database(mine, _read_identity(other))
        ):
            return other, made
    return None


def newest_copy_with_id(id: str, folders: "Iterable[str]", *, but: str) -> str | None:
    """The youngest copy in these folders of the memory with this id, whoever made it."""
    found = (
        other
        for _, other in _databases_in(but, folders)
        if (known := _read_identity(other)) and known.id == id
    )
    return next(found, None)


class DatabaseIdentity(NamedTuple):
    """What a memory and its copies have in common and other memories have not."""

    id: str
    made: str
    """When the memory was made; with its pages, the mark of one without an id. Empty: not known."""
    pages: frozenset[tuple[int, str, str]]
    """Some of its first pages."""


def _read_identity(path: str) -> DatabaseIdentity | None:
    """Return None if the file cannot be read."""
    try:
        with translate_sqlite_errors(path):
            connection = openings.connect(os.path.realpath(path), False)
            try:
                ((id, made),) = connection.execute(
                    "SELECT (SELECT value FROM quaid_config WHERE key = ?),"
                    " (SELECT created_at FROM collections WHERE id = 1)",
                    (collections.MEMORY_ID_KEY,),
                ).fetchall()
                rows = connection.execute(
                    "SELECT id, uuid, created_at FROM pages ORDER BY id LIMIT ?", (PAGES_COMPARED,)
                )
                pages = frozenset((int(number), str(uuid), str(at)) for number, uuid, at in rows)
                return DatabaseIdentity(str(id or ""), str(made or ""), pages)
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return None


def _is_same_database(one: DatabaseIdentity, other: DatabaseIdentity | None) -> bool:
    """By their ids. One that was made before memories had ids is known by when it was made and its first pages."""
    if other is None:
        return False
    if one.id and other.id:
        return one.id == other.id
    shared = one.pages & other.pages or not (one.pages and other.pages)
    return bool(one.made and one.made == other.made and shared)


def newest_intact_copy(path: str, folders: "Iterable[str]") -> IntactCopy | None:
    """The youngest copy of a damaged memory in these folders that is whole itself, whoever made it.

    Another memory is none. Of a file that is empty there is nothing to compare with: then the youngest beside it
    may be one.
    """
    path = os.path.realpath(path)
    is_empty = os.path.getsize(path) == 0
    perhaps = None
    for made, other in _databases_in(path, folders):
        if os.path.exists(other + "-wal"):  # somebody works with it: it is no copy
            continue
        found = _check_intact(other, made)
        if found is None or found.version > storage.SCHEMA_VERSION:
            continue
        if other.startswith(path + MIGRATION_BACKUP_INFIX) or _is_copy_of_damaged(path, other):
            return found
        is_beside = os.path.dirname(other) == os.path.dirname(path)
        if is_empty and is_beside and found.pages and perhaps is None:
            perhaps = found._replace(is_same=False)
    return perhaps


def _databases_in(path: str, folders: "Iterable[str]") -> list[tuple[float, str]]:
    """The other memories in these folders with the times of their files, the youngest first."""
    found: list[tuple[float, str]] = []
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            other = os.path.join(folder, entry)
            if entry.startswith(UNFINISHED_BACKUP) or entry.endswith("-unfinished"):
                continue
            if other != os.path.realpath(path) and _is_database(other):
                found.append((os.path.getmtime(other), other))
    return sorted(found, reverse=True)


def _check_intact(path: str, made: float) -> IntactCopy | None:
    try:
        with translate_sqlite_errors(path):
            connection = openings.connect(path, False)
            try:
                if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                    return None
                row: tuple[Any, ...] = connection.execute(
                    "SELECT count(*), max(updated_at) FROM pages WHERE quarantined_at IS NULL"
                ).fetchall()[0]
                return IntactCopy(path, made, int(connection.pragma("user_version")), *row)
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return None


def _is_copy_of_damaged(path: str, other: str) -> bool:
    mine, copied = _read_identity(path), _read_identity(other)
    if mine and copied and mine.id and copied.id:
        return mine.id == copied.id
    if copied and copied.id and durable_files.scan_files_in_subprocess([path, path + "-wal"], [copied.id]):
        return True
    return _shares_pages(path, other)


def _shares_pages(path: str, other: str) -> bool:
    """Whether one of some pages of a copy is in a memory, whose tables may not be readable any more."""
    connection = openings.connect(other, False)
    try:
        pages = [
            str(uuid)
            for order in _FIRST_AND_LAST_PAGES
            for (uuid,) in connection.execute(order, (PAGES_SCANNED,))
        ]
    finally:
        connection.close()
    return bool(pages and durable_files.scan_files_in_subprocess([path, path + "-wal"], pages))


_FIRST_AND_LAST_PAGES = (
    "SELECT uuid FROM pages ORDER BY id LIMIT ?",
    "SELECT uuid FROM pages ORDER BY id DESC LIMIT ?",
)


def remove_copies(copies: list[DatabaseCopy]) -> None:
    """Delete these files for good."""
    for copy in copies:
        with translate_os_errors(copy.path):
            durable_files.remove_with_sidecars(copy.path)
            durable_files.sync_folder(os.path.dirname(copy.path))


def _is_database(path: str) -> bool:
    if path.endswith(("-wal", "-shm", "-journal", "-lock")) or not os.path.isfile(path):
        return False
    try:
        openings.read_header(path)
    except QuaidError:
        return False
    return True


def _holds_page(path: str, target: "EraseTarget") -> bool:
    try:
        with translate_sqlite_errors(path):
            connection = openings.connect(path, False)
            try:
                found = connection.execute(
                    "SELECT 1 FROM pages WHERE slug = ? OR uuid = ?", (target.slug, target.uuid)
                ).fetchone()
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return True
    return found is not None


def _is_copy_with_page(path: str, memory: str, target: "EraseTarget") -> bool:
    """Whether the page in it is this very page, and nothing was written to it since it was copied.

    Two memories that took in the same folder share uuids, but not when they did so. Whoever works in a copy makes
    pages of which this memory knows nothing: such a one is a memory of its own.
    """
    try:
        with translate_sqlite_errors(path):
            connection = openings.connect(memory, False)
            try:
                connection.execute("ATTACH ? AS copy", (f"file:{quote(os.path.abspath(path))}?mode=ro",))
                found = connection.execute(_SAME_PAGE_SQL, (target.id, target.uuid)).fetchone()
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return False
    return found is not None


_SAME_PAGE_SQL = (
    "SELECT 1 FROM copy.pages AS c JOIN main.pages AS p ON p.id = c.id AND p.uuid = c.uuid"
    " AND p.created_at = c.created_at WHERE c.id = ? AND c.uuid = ?"
    " AND NOT EXISTS (SELECT 1 FROM copy.pages AS d LEFT JOIN main.pages AS m ON m.uuid = d.uuid"
    " WHERE d.version > m.version OR (m.id IS NULL AND d.created_at > (SELECT max(updated_at) FROM main.pages)))"
)
