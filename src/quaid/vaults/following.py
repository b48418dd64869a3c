"""Transcripts that were read before, found again: where they were, or under the name that they have now.

Knows that a renamed file keeps its number, and that the number of a deleted one is given to another. Looks where the
file was; whoever names further folders has them listed. Does not read what is said in the files.
"""

import os
from collections.abc import Iterable

from quaid.storage import conversations
from quaid.storage.conversations import TranscriptState
from quaid.storage.sqlite.connection import Database
from quaid.vaults.scan import FILE_FLAGS
from quaid.vaults.transcripts import is_same_file, may_be


def follow(db: Database, listed: Iterable[str]) -> list[str]:
    """The files that were listed and all that were read before; one that was renamed stands there once."""
    found = set(listed)
    lost: dict[int, TranscriptState] = {}
    for known in conversations.list_transcripts(db):
        if os.path.lexists(known.path):
            found.add(known.path)
        else:
            lost[known.inode] = known
    if not lost:
        return sorted(found)
    near = [path for folder in {os.path.dirname(each.path) for each in lost.values()} for path in _in(folder)]
    for path in {*found, *near}:
        inode = _inode(path)
        if inode in lost and _is(path, lost[inode]):
            found.add(path)
            del lost[inode]
    return sorted({*found, *(each.path for each in lost.values())})


def _in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [each.path for each in entries if may_be(each.name)]
    except OSError:
        return []


def _inode(path: str) -> int | None:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None


def _is(path: str, known: TranscriptState) -> bool:
    try:
        with os.fdopen(os.open(path, FILE_FLAGS), "rb") as file:
            return is_same_file(file, os.fstat(file.fileno()), known)
    except OSError:
        return False
