"""A file of a folder edited as text: read, changed, exchanged for the old one, and found at once.

Quaid's own writers take turns (the memory's lock); against everybody else the exchange is the guard: if the file is
not what was read, it is read again and the change is made again, so that neither edit is lost. The text comes and
goes with its line ends and its byte order mark. Knows which paths may be written. Does not know what the text means.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from quaid.errors import (
    CollectionReadOnly,
    FileChanged,
    FileTrouble,
    InvalidArgument,
    NoSuchVersion,
    PageExists,
    TooLarge,
    VersionConflict,
)
from quaid.storage import collections
from quaid.storage.collections import Collection
from quaid.storage.sqlite.connection import Database
from quaid.storage.sqlite.errors import os_error
from quaid.vaults import ignoring, index, replacing, scan
from quaid.vaults.scan import LARGEST_FILE, Folder, Found
from quaid.vaults.taking_files import Progress

TRIES = 10
PAUSE = 0.01
"""Seconds before the second try; each further one waits longer, half a second in all."""

LONGEST_PATH, LONGEST_NAME = 1_000, 200
BOM = "\ufeff"

Change = Callable[[str | None], str]
"""The new text from the old one; None: there is no file. May be asked more than once."""


class Text(NamedTuple):
    """A file as it was read."""

    text: str
    content_hash: str
    crlf: bool
    bom: bool


class Edited(NamedTuple):
    """What an edit did."""

    path: str
    text: str
    created: bool
    changed: bool
    version: int
    """Of the page that the file makes; 0: it makes none."""


def check_path(path: str, name: str = "path") -> str:
    """A path within a folder, as in reference/contacts.md; InvalidArgument for any other text."""
    problem = _problem(path)
    if problem:
        raise InvalidArgument(name=name, problem=f"{scan.printable(path)[:100]!r} {problem}")
    return path


def _problem(path: str) -> str:
    names = path.split("/")
    if not path or not path.isprintable() or "\\" in path:
        return "is no path within the folder, as in reference/contacts.md"
    if path.startswith(("/", "~")) or path[1:2] == ":":
        return "must be relative to the folder, as in reference/contacts.md"
    if any(each in ("", ".", "..") for each in names):
        return "leaves the folder or has an empty part; write it as in reference/contacts.md"
    if any(each.startswith(".") for each in names) or not scan.is_shown(path):
        return "is hidden, and hidden files are not pages; choose another name"
    if not path.lower().endswith(".md"):
        return "must end with .md"
    if len(path.encode()) > LONGEST_PATH or any(len(each.encode()) > LONGEST_NAME for each in names):
        return f"is too long; a name may have {LONGEST_NAME} bytes"
    return ""


def read(collection: Collection, path: str) -> Text | None:
    """A file's text; None when it is not there."""
    check_path(path)
    with Folder(collection.root or "") as folder:
        return _read(folder, path)


def edit(
    db: Database,
    collection: Collection,
    path: str,
    change: Change,
    *,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
    expected_version: int | None = None,
) -> Edited:
    """Change a file, or make it, and take it in. With the version that its author had read (0: none), only if the
    file is still that."""
    check_path(path)
    _refuse(collection, path)

    def follow() -> None:
        take_in(db, collection, path, now=now, new_uuid=new_uuid, progress=progress)

    for attempt in range(TRIES):
        try:
            with db.lock.held(), Folder(collection.root or "") as folder:
                old = _read(folder, path)
                if expected_version is not None:
                    _check_version(db, collection, path, expected_version, old)
                new = change(old.text if old else None)
                changed = old is None or new != old.text
                if changed:
                    _write(folder, path, old, new, new_uuid())
            break
        except FileChanged:
            if attempt == TRIES - 1:
                raise
            if expected_version is not None:
                follow()  # a version is only known of what was taken in
            time.sleep(PAUSE * (attempt + 1))  # somebody is just saving
    follow()
    found = collections.indexed_page(db, collection.id, path)
    return Edited(path, new, old is None, changed, found.version if found else 0)


def take_in(
    db: Database,
    collection: Collection,
    path: str,
    *,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
) -> None:
    """Bring one file's page in step with it."""
    from quaid.vaults.syncing import sync

    sync(db, collection, now=now, new_uuid=new_uuid, progress=progress, only=[path])


def _refuse(collection: Collection, path: str) -> None:
    if not collection.writable or collection.state != "active":
        why = "is read-only" if collection.state == "active" else f"is {collection.state}"
        raise CollectionReadOnly(name=collection.name, why=why)
    if ignoring.hides(ignoring.matcher(collection.ignore_patterns, collection.kind), path):
        problem = f"is left out of {collection.name} by its ignore rules; choose another name"
        raise FileTrouble(path=path, problem=problem)


def _read(folder: Folder, path: str) -> Text | None:
    try:
        found = folder.look(path)
        if found is None:
            return None
        if not isinstance(found, Found):
            told = "a link; links are not followed" if found.reason == scan.LINK else found.reason
            raise FileTrouble(path=path, problem=f"cannot be read or written here: it is {told}")
        data = folder.read(path)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise os_error(path, problem) from None
    if len(data) > LARGEST_FILE:
        raise TooLarge(what=path, size=found.size, limit=LARGEST_FILE)
    return _decoded(path, data)


def _decoded(path: str, data: bytes) -> Text:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise FileTrouble(path=path, problem="is not UTF-8; convert it before you change it here") from None
    bom = text.startswith(BOM)
    # Only a file that has one kind of line end can be given it back.
    crlf = text.count("\r\n") == text.count("\n") == text.count("\r") > 0
    text = text.removeprefix(BOM)
    return Text(text.replace("\r\n", "\n") if crlf else text, index.digest(data), crlf, bom)


def _write(folder: Folder, path: str, old: Text | None, new: str, token: str) -> None:
    text = new.replace("\n", "\r\n") if old and old.crlf else new
    data = ((BOM if old and old.bom else "") + text).encode()
    if len(data) > LARGEST_FILE:
        raise TooLarge(what=path, size=len(data), limit=LARGEST_FILE)
    if old is None:
        replacing.create(folder, path, data, token)
    else:
        replacing.replace(folder, path, data, old.content_hash, token)


def _check_version(db: Database, collection: Collection, path: str, expected: int, old: Text | None) -> None:
    known = collections.indexed_page(db, collection.id, path)
    if old is None and not expected:
        return
    if old is None:
        raise NoSuchVersion(slug=path, expected=expected, current_version=0)
    if known is None or known.content_hash != old.content_hash:
        raise FileChanged(path=path)  # saved since it was taken in: look again
    if known.version != expected:
        kind = VersionConflict if expected else PageExists
        raise kind(slug=path, expected=expected, current_version=known.version)
