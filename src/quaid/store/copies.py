"""Copies of a memory that lie beside it: those that migrations made, and others that look like one.

Knows the names of our backups and the header of a memory. Reads the copies, removes those that it is told to.
"""

import os
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import apsw

from quaid import store as opening
from quaid.errors import QuaidError
from quaid.store import durable, opening as openings, rawscan, settings
from quaid.store.trouble import sqlite_told_plainly, system_told_plainly
from quaid.store.upkeep import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quaid.store.forgetting import Target

BACKUP = ".backup-v"
"""What stands between a memory's name and the schema version in the name of a backup that a migration made."""

FIRST = 20
"""Pages by which memories without ids are compared."""

FEW = 4
"""Pages of a copy at either end that are looked for in a memory: each is a look through the whole file."""


class Copy(NamedTuple):
    """A file with the pages of a memory in it."""

    path: str
    size: int
    ours: bool
    """Made by a migration, or a copy of this memory by what is in it. Any other is not ours to delete."""
    made_by: str
    """migration, backup or somebody."""
    holds: bool
    """Whether the page is in it; one that cannot be read may hold it."""


class Whole(NamedTuple):
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


def beside(path: str, target: "Target") -> list[Copy]:
    """The copies in the folder of a memory, with whether they hold a page."""
    folder, name = os.path.split(path)
    found = []
    with system_told_plainly(folder):
        entries = sorted(os.listdir(folder))
    for entry in entries:
        other = os.path.join(folder, entry)
        if entry == name or not _is_memory(other):
            continue
        made_by = "somebody"
        if entry.startswith(name + BACKUP):
            made_by = "migration"
        elif _is_copy(other, path, target):
            made_by = "backup"
        size = os.path.getsize(other)
        found.append(Copy(other, size, made_by != "somebody", made_by, _holds(other, target)))
    return found


def newest(path: str, folders: "Iterable[str]") -> tuple[str, float] | None:
    """The youngest copy of this memory in these folders that no migration made, with the time of its file."""
    mine = _identity(path)
    for made, other in _in(path, folders):
        if BACKUP not in os.path.basename(other) and mine is not None and _is_same(mine, _identity(other)):
            return other, made
    return None


def newest_with_id(id: str, folders: "Iterable[str]", *, but: str) -> str | None:
    """The youngest copy in these folders of the memory with this id, whoever made it."""
    found = (other for _, other in _in(but, folders) if (known := _identity(other)) and known.id == id)
    return next(found, None)


class Identity(NamedTuple):
    """What a memory and its copies have in common and other memories have not."""

    id: str
    made: str
    """When the memory was made; with its pages, the mark of one without an id. Empty: not known."""
    pages: frozenset[tuple[int, str, str]]
    """Some of its first pages."""


def _identity(path: str) -> Identity | None:
    """Return None if the file cannot be read."""
    try:
        with sqlite_told_plainly(path):
            connection = openings.connect(os.path.realpath(path), False)
            try:
                ((id, made),) = connection.execute(
                    "SELECT (SELECT value FROM quaid_config WHERE key = ?),"
                    " (SELECT created_at FROM collections WHERE id = 1)",
                    (settings.MEMORY_ID,),
                ).fetchall()
                rows = connection.execute(
                    "SELECT id, uuid, created_at FROM pages ORDER BY id LIMIT ?", (FIRST,)
                )
                pages = frozenset((int(number), str(uuid), str(at)) for number, uuid, at in rows)
                return Identity(str(id or ""), str(made or ""), pages)
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return None


def _is_same(one: Identity, other: Identity | None) -> bool:
    """By their ids. One that was made before memories had ids is known by when it was made and its first pages."""
    if other is None:
        return False
    if one.id and other.id:
        return one.id == other.id
    shared = one.pages & other.pages or not (one.pages and other.pages)
    return bool(one.made and one.made == other.made and shared)


def whole(path: str, folders: "Iterable[str]") -> Whole | None:
    """The youngest copy of a damaged memory in these folders that is whole itself, whoever made it.

    Another memory is none. Of a file that is empty there is nothing to compare with: then the youngest beside it
    may be one.
    """
    path = os.path.realpath(path)
    is_empty = os.path.getsize(path) == 0
    perhaps = None
    for made, other in _in(path, folders):
        if os.path.exists(other + "-wal"):  # somebody works with it: it is no copy
            continue
        found = _looked_through(other, made)
        if found is None or found.version > opening.SCHEMA_VERSION:
            continue
        if other.startswith(path + BACKUP) or _is_copy_of_damaged(path, other):
            return found
        is_beside = os.path.dirname(other) == os.path.dirname(path)
        if is_empty and is_beside and found.pages and perhaps is None:
            perhaps = found._replace(is_same=False)
    return perhaps


def _in(path: str, folders: "Iterable[str]") -> list[tuple[float, str]]:
    """The other memories in these folders with the times of their files, the youngest first."""
    found: list[tuple[float, str]] = []
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            other = os.path.join(folder, entry)
            if entry.startswith(UNFINISHED) or entry.endswith("-unfinished"):
                continue
            if other != os.path.realpath(path) and _is_memory(other):
                found.append((os.path.getmtime(other), other))
    return sorted(found, reverse=True)


def _looked_through(path: str, made: float) -> Whole | None:
    try:
        with sqlite_told_plainly(path):
            connection = openings.connect(path, False)
            try:
                if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                    return None
                row: tuple[Any, ...] = connection.execute(
                    "SELECT count(*), max(updated_at) FROM pages WHERE quarantined_at IS NULL"
                ).fetchall()[0]
                return Whole(path, made, int(connection.pragma("user_version")), *row)
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return None


def _is_copy_of_damaged(path: str, other: str) -> bool:
    mine, copied = _identity(path), _identity(other)
    if mine and copied and mine.id and copied.id:
        return mine.id == copied.id
    if copied and copied.id and rawscan.scan_apart([path, path + "-wal"], [copied.id]):
        return True
    return _shares_pages(path, other)


def _shares_pages(path: str, other: str) -> bool:
    """Whether one of some pages of a copy is in a memory, whose tables may not be readable any more."""
    connection = openings.connect(other, False)
    try:
        pages = [str(uuid) for order in _FIRST_AND_LAST for (uuid,) in connection.execute(order, (FEW,))]
    finally:
        connection.close()
    return bool(pages and rawscan.scan_apart([path, path + "-wal"], pages))


_FIRST_AND_LAST = (
    "SELECT uuid FROM pages ORDER BY id LIMIT ?",
    "SELECT uuid FROM pages ORDER BY id DESC LIMIT ?",
)


def remove(copies: list[Copy]) -> None:
    """Delete these files for good."""
    for copy in copies:
        with system_told_plainly(copy.path):
            durable.discard(copy.path)
            durable.sync_folder(os.path.dirname(copy.path))


def _is_memory(path: str) -> bool:
    if path.endswith(("-wal", "-shm", "-journal", "-lock")) or not os.path.isfile(path):
        return False
    try:
        openings.header_of(path)
    except QuaidError:
        return False
    return True


def _holds(path: str, target: "Target") -> bool:
    try:
        with sqlite_told_plainly(path):
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


def _is_copy(path: str, memory: str, target: "Target") -> bool:
    """Whether the page in it is this very page, and nothing was written to it since it was copied.

    Two memories that took in the same folder share uuids, but not when they did so. Whoever works in a copy makes
    pages of which this memory knows nothing: such a one is a memory of its own.
    """
    try:
        with sqlite_told_plainly(path):
            connection = openings.connect(memory, False)
            try:
                connection.execute("ATTACH ? AS copy", (f"file:{quote(os.path.abspath(path))}?mode=ro",))
                found = connection.execute(_SAME, (target.id, target.uuid)).fetchone()
            finally:
                connection.close()
    except (QuaidError, apsw.Error):
        return False
    return found is not None


_SAME = (
    "SELECT 1 FROM copy.pages AS c JOIN main.pages AS p ON p.id = c.id AND p.uuid = c.uuid"
    " AND p.created_at = c.created_at WHERE c.id = ? AND c.uuid = ?"
    " AND NOT EXISTS (SELECT 1 FROM copy.pages AS d LEFT JOIN main.pages AS m ON m.uuid = d.uuid"
    " WHERE d.version > m.version OR (m.id IS NULL AND d.created_at > (SELECT max(updated_at) FROM main.pages)))"
)
