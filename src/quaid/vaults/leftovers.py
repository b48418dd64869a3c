"""What a process that was killed while it wrote a file left beside it.

Knows the names that replacing.py gives, and which of those files may go: what was never finished, what we wrote
ourselves, what we had read. Anything else is a text that somebody saved in the moment of the kill: it becomes a
conflict copy. Nothing younger than an hour is touched, because another memory may be at work in the same folder.
"""

import hashlib
import os
import re

from quaid.errors import QuaidError
from quaid.storage.collections import Collection
from quaid.storage.sqlite.connection import Database
from quaid.storage.sqlite.errors import translate_os_errors
from quaid.vaults import replacing
from quaid.vaults.report import Note
from quaid.vaults.scan import Folder

PATIENCE_NS = 3_600_000_000_000

_NAME = re.compile(
    r"\.quaid-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.new|-([0-9a-f]{16})-([0-9a-f]{16})\.tmp)"
)


def is_ours(path: str) -> bool:
    """Whether a file has a name that only we give."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def clear(db: Database, collection: Collection, folder: Folder, paths: list[str], now_ns: int) -> list[Note]:
    """Remove what was left behind. Returns what had to be kept, and where."""
    old = [path for path in paths if _age(folder, path, now_ns) > PATIENCE_NS]
    notes: list[Note] = []
    if old and collection.writable:
        # Whoever writes a file holds the writer's lock meanwhile: under it, these are nobody's.
        db.write(lambda _tx: notes.extend(filter(None, [settle(folder, path) for path in old])))
    return notes


def _age(folder: Folder, path: str, now_ns: int) -> int:
    parent, _, name = path.rpartition("/")
    try:
        found = os.stat(name, dir_fd=folder.enter(parent), follow_symlinks=False)
    except OSError:
        return 0
    return now_ns - max(found.st_ctime_ns, found.st_mtime_ns)


def settle(folder: Folder, path: str, name_to_keep: str = "saved.md") -> Note | None:
    """Remove one of them, or keep it under another name; the caller holds the lock under which it was made."""
    parent, _, name = path.rpartition("/")
    match = _NAME.fullmatch(name)
    assert match is not None
    token, ours, theirs = match.groups()
    try:
        with translate_os_errors(path):
            place = folder.enter(parent)
            found = hashlib.sha256(folder.read(path)).hexdigest() if ours else ""
            if not ours or found.startswith((ours, theirs)):
                os.unlink(name, dir_fd=place)
                return None
            kept = replacing.keep_beside(place, name, name_to_keep, found, token)
    except QuaidError as trouble:
        return Note(path, str(trouble).rstrip("."))
    return Note(path, f"somebody's text, saved while Quaid was killed; it is in {kept} now")
