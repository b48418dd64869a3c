"""Copies of a memory that lie beside it: those that migrations made, and others that look like one.

Knows the names of our backups and the header of a memory. Reads the copies, removes those that it is told to.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

import apsw

from quaid.errors import QuaidError
from quaid.store import durable, opening
from quaid.store.trouble import sqlite_told_plainly, system_told_plainly

if TYPE_CHECKING:
    from quaid.store.forgetting import Target

BACKUP = ".backup-v"
"""What stands between a memory's name and the schema version in the name of a backup that a migration made."""


class Copy(NamedTuple):
    """A file with the pages of a memory in it."""

    path: str
    size: int
    ours: bool
    """Made by a migration. Any other was named by somebody else, and is not ours to delete."""
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
        ours = entry.startswith(name + BACKUP)
        found.append(Copy(other, os.path.getsize(other), ours, _holds(other, target)))
    return found


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
