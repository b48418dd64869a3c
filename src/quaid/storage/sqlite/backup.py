"""Back up and compact a database, and find copies of it."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from quaid import storage
from quaid.errors import AlreadyExists, DamagedDatabase, DiskFull, FileTrouble, QuaidError, ReadOnly
from quaid.storage import collections, files as durable_files, vectors
from quaid.storage.sqlite import connection as openings
from quaid.storage.sqlite.connection import file_size
from quaid.storage.sqlite.errors import BUSY_SECONDS, translate_os_errors, translate_sqlite_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from quaid.storage.erase import EraseTarget
    from quaid.storage.sqlite.connection import Database

READERS_WAIT_MS = 100
"""Milliseconds that compact() waits for readers of older snapshots. Frames they need stay in the WAL."""


FRAME_HEADER = 24
"""Number of bytes before each page in the WAL."""

UNFINISHED_BACKUP = ".quaid-backup-"
"""The file name of an unfinished backup begins with this prefix. The process id follows."""

UNFINISHED_BACKUP_SECONDS = 3600
"""An unfinished backup not written to for this many seconds is assumed to belong to a dead process."""


class BackedUp(NamedTuple):
    """A finished and verified backup."""

    path: str
    size: int
    images: int = 0
    """Number of images in the folder beside the backup."""


class Compacted(NamedTuple):
    """The result of a WAL checkpoint. `busy` is True if a reader still needs part of the WAL."""

    size: int
    wal_before: int
    wal_after: int
    busy: bool
    folded: int
    """Number of bytes of the WAL that were moved into the database."""
    vectors_dropped: int
    """Number of vectors deleted because their content no longer exists."""


def create_backup(
    db: "Database", target: str, new_id: str = "", copy_images: "Callable[[str], int]" = lambda _: 0
) -> BackedUp:
    """Copy a snapshot of the database to a new file, verify the copy and sync it to disk.

    Other processes can keep writing. If the memory has no id, `new_id` is set first, so that the copy can be
    recognised later. `copy_images` is called with the path of the backup after the snapshot is taken and before
    the file is renamed to that path, so that no finished backup lacks an image.
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
            images = copy_images(target)
            _check_target_free(target)
            durable_files.rename_durably(unfinished, target)
        except BaseException:
            durable_files.remove_with_sidecars(unfinished)
            raise
    return BackedUp(path=target, size=file_size(target), images=images)


def _remove_unfinished_backups(ours: str) -> None:
    """Remove unfinished backups that killed processes left in the same folder.

    Files that were written to within the last hour are kept.
    """

    folder, name = os.path.split(ours)
    # Our file was just created, and its mtime comes from the same clock as the mtimes of the other files.
    now = os.stat(ours).st_mtime
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
            except FileNotFoundError:  # the file was finished, or removed by another process, in the meantime
                continue


def compact(db: "Database") -> Compacted:
    """Delete unused vectors and checkpoint the WAL into the database, so that the data is in one file.

    Readers are not blocked.
    """
    if not db.writable:
        raise ReadOnly(path=db.path, problem="it was opened for reading only")
    dropped = db.write(vectors.purge_vectors)
    with db.lock.held(), translate_sqlite_errors(db.path):
        db.connection.pragma("optimize")  # may write statistics, so the lock is needed
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
        vectors_dropped=dropped,
    )


def _check_target_free(target: str) -> None:
    if os.path.lexists(target):
        raise AlreadyExists(path=target, hint="Name a new file for the backup.")
    if not os.path.isdir(os.path.dirname(target)):
        raise FileTrouble(path=target, problem="its folder is not there")


def _check_copy(path: str) -> None:
    with translate_sqlite_errors(path):
        copy = openings.connect(path, False)
        try:
            problems = copy.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            copy.close()
    if problems != [("ok",)]:
        raise DamagedDatabase(path=path, problem=str(problems[0][0]))


MIGRATION_BACKUP_INFIX = ".backup-v"
"""Part of the name of a backup made by a migration, between the memory's file name and the schema version."""

PAGES_COMPARED = 20
"""Up to this many pages are compared to recognise a copy of a memory without an id."""

PAGES_SCANNED = 4
"""The file of a damaged memory is scanned for the UUIDs of this many first and this many last pages of a copy."""


class DatabaseCopy(NamedTuple):
    """A database file found in the folder of a memory, and whether it contains a given page."""

    path: str
    size: int
    ours: bool
    """True if a migration made the file, or its contents show that it is a copy of this memory.

    Only such files may be deleted.
    """
    made_by: str
    """"migration", "backup", or "somebody" if unknown."""
    holds_it: bool
    """True if the file contains the page, or might contain it because it cannot be read."""
    deleted: bool = False


class IntactCopy(NamedTuple):
    """A copy that passes SQLite's quick_check and can replace a damaged memory."""

    path: str
    made: float
    """Modification time of the file."""
    version: int
    """Schema version. A copy with an older schema is migrated when it is opened."""
    pages: int
    changed: str | None
    """Time of the latest change to a page in the copy."""
    is_same: bool = True
    """False if the file is only assumed to be a copy of the same memory."""


def copies_beside(path: str, target: "EraseTarget") -> list[DatabaseCopy]:
    """Return the other database files in the folder of a memory, and whether each contains the target page."""
    folder, name = os.path.split(path)
    copies = []
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
        copies.append(DatabaseCopy(other, size, made_by != "somebody", made_by, _holds_page(other, target)))
    return copies


def backups_of(path: str, folders: "Iterable[str]") -> "Iterator[tuple[str, float]]":
    """Yield path and modification time of the copies of this memory in `folders`, newest first.

    Backups made by migrations are left out.
    """
    mine = _read_identity(path)
    for made, other in _databases_in(path, folders):
        if (
            MIGRATION_BACKUP_INFIX not in os.path.basename(other)
            and mine is not None
            and _is_same_database(mine, _read_identity(other))
        ):
            yield other, made


def all_copies_of(path: str, folders: "Iterable[str]") -> list[str]:
    """Return the paths of all readable copies of this memory in `folders`, including backups by migrations."""
    mine = _read_identity(path)
    return [
        other
        for _, other in _databases_in(path, folders)
        if other.startswith(path + MIGRATION_BACKUP_INFIX)
        or (mine is not None and _is_same_database(mine, _read_identity(other)))
    ]


def newest_backup(path: str, folders: "Iterable[str]") -> tuple[str, float] | None:
    """Return path and modification time of the newest of backups_of(), or None."""
    return next(backups_of(path, folders), None)


def verify_backup(path: str) -> IntactCopy:
    """Check a backup and return its schema version and page count. Raise DamagedDatabase if it is not intact."""
    copy = _check_intact(path, os.path.getmtime(path))
    if copy is None:
        raise DamagedDatabase(path=path, problem="it is damaged, or not a memory")
    return copy


def newest_copy_with_id(id: str, folders: "Iterable[str]", *, but: str) -> str | None:
    """Return the path of the newest copy of the memory with this id in `folders`, or None.

    The file `but` is left out. Backups made by migrations are included.
    """
    matching = (
        other
        for _, other in _databases_in(but, folders)
        if (identity := _read_identity(other)) and identity.id == id
    )
    return next(matching, None)


class DatabaseIdentity(NamedTuple):
    """Values that a memory shares with its copies but not with other memories."""

    id: str
    made: str
    """Creation time of the memory, or "" if unknown. With `pages`, it identifies a memory that has no id."""
    pages: frozenset[tuple[int, str, str]]
    """Id, UUID and creation time of the memory's first pages."""


def _read_identity(path: str) -> DatabaseIdentity | None:
    """Return the identity of the memory in a file, or None if the file cannot be read."""
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
    """Return True if two memories are the same, by id, or by creation time and first pages if either has no id."""
    if other is None:
        return False
    if one.id and other.id:
        return one.id == other.id
    shared = one.pages & other.pages or not (one.pages and other.pages)
    return bool(one.made and one.made == other.made and shared)


def newest_intact_copy(path: str, folders: "Iterable[str]") -> IntactCopy | None:
    """Return the newest intact copy of a damaged memory in `folders`, or None.

    Copies of other memories are skipped. A memory that is an empty file cannot be compared with copies, so
    the newest intact database with pages in the same folder is returned with `is_same=False`.
    """
    path = os.path.realpath(path)
    is_empty = os.path.getsize(path) == 0
    perhaps = None
    for made, other in _databases_in(path, folders):
        if os.path.exists(other + "-wal"):  # the file is in use by a process, so it is not a backup
            continue
        copy = _check_intact(other, made)
        if copy is None or copy.version > storage.SCHEMA_VERSION:
            continue
        if other.startswith(path + MIGRATION_BACKUP_INFIX) or _is_copy_of_damaged(path, other):
            return copy
        is_beside = os.path.dirname(other) == os.path.dirname(path)
        if is_empty and is_beside and copy.pages and perhaps is None:
            perhaps = copy._replace(is_same=False)
    return perhaps


def _databases_in(path: str, folders: "Iterable[str]") -> list[tuple[float, str]]:
    """Return (modification time, path) of the other memories in `folders`, newest first."""
    databases: list[tuple[float, str]] = []
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            other = os.path.join(folder, entry)
            if entry.startswith(UNFINISHED_BACKUP) or entry.endswith(
                ("-unfinished", openings.UNFINISHED_COPY)
            ):
                continue
            if other != os.path.realpath(path) and _is_database(other):
                databases.append((os.path.getmtime(other), other))
    return sorted(databases, reverse=True)


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
    cipher = openings.cipher_header(path)
    if cipher is not None and cipher == openings.cipher_header(other):
        return True  # a backup has the same salt as its memory
    mine, copied = _read_identity(path), _read_identity(other)
    if mine and copied and mine.id and copied.id:
        return mine.id == copied.id
    if copied and copied.id and durable_files.scan_files_in_subprocess([path, path + "-wal"], [copied.id]):
        return True
    return _shares_pages(path, other)


def _shares_pages(path: str, other: str) -> bool:
    """Return True if the UUID of a first or last page of `other` occurs in the file at `path`.

    Scans the raw file, because the tables of a damaged database may be unreadable.
    """
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
    """Delete these database files with their journal, WAL and shared-memory files."""
    for copy in copies:
        with translate_os_errors(copy.path):
            durable_files.remove_with_sidecars(copy.path)
            durable_files.sync_folder(os.path.dirname(copy.path))


def _is_database(path: str) -> bool:
    if path.endswith(("-wal", "-shm", "-journal", "-lock")) or not os.path.isfile(path):
        return False
    try:
        # The header of an encrypted file cannot be read without its key.
        if openings.cipher_header(path) is None:
            openings.read_header(path)
    except QuaidError:
        return False
    return True


def _holds_page(path: str, target: "EraseTarget") -> bool:
    try:
        with translate_sqlite_errors(path):
            connection = openings.connect(path, False)
            try:
                row = connection.execute(
                    "SELECT 1 FROM pages WHERE slug = ? OR uuid = ?", (target.slug, target.uuid)
                ).fetchone()
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return True
    return row is not None


def _is_copy_with_page(path: str, memory: str, target: "EraseTarget") -> bool:
    """Return True if `path` contains this page and has not been written to since it was copied from `memory`.

    Two memories that imported the same folder share UUIDs but not creation times. A copy with newer pages than this
    memory is in use as a separate memory and must not be treated as a backup.
    """
    try:
        with translate_sqlite_errors(path):
            connection = openings.connect(memory, False)
            try:
                openings.attach(connection, path, "copy")
                row = connection.execute(_SAME_PAGE_SQL, (target.id, target.uuid)).fetchone()
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return False
    return row is not None


_SAME_PAGE_SQL = (
    "SELECT 1 FROM copy.pages AS c JOIN main.pages AS p ON p.id = c.id AND p.uuid = c.uuid"
    " AND p.created_at = c.created_at WHERE c.id = ? AND c.uuid = ?"
    " AND NOT EXISTS (SELECT 1 FROM copy.pages AS d LEFT JOIN main.pages AS m ON m.uuid = d.uuid"
    " WHERE d.version > m.version OR (m.id IS NULL AND d.created_at > (SELECT max(updated_at) FROM main.pages)))"
)
