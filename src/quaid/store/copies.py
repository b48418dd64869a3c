"""Copies of a memory that lie beside it: those that migrations made, and others that look like one.

Knows the names of our backups and the header of a memory. Reads the copies, removes those that it is told to.
"""

import os
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import apsw

from quaid.errors import QuaidError
from quaid.store import durable, opening
from quaid.store.trouble import sqlite_told_plainly, system_told_plainly

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quaid.store.forgetting import Target

BACKUP = ".backup-v"
"""What stands between a memory's name and the schema version in the name of a backup that a migration made."""


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
    """The youngest copy in these folders that somebody made (not a migration), with the time of its file."""
    found: list[tuple[float, str]] = []
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            other = os.path.join(folder, entry)
            if BACKUP not in entry and other != os.path.realpath(path) and _is_memory(other):
                found.append((os.path.getmtime(other), other))
    return (max(found)[1], max(found)[0]) if found else None


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
        opening.header_of(path)
    except QuaidError:
        return False
    return True


def _holds(path: str, target: "Target") -> bool:
    try:
        with sqlite_told_plainly(path):
            connection = opening.connect(path, False)
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
            connection = opening.connect(memory, False)
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
