"""Which files a change is about, and what it will write into them, noted before the first of them is touched.

Whoever finds this note while holding the store's lock knows that the change was never finished, since its process
cannot be alive. Knows one small file. Putting the files back is git.py's business.
"""

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256

from quaid.kb.guarding import check_tracked, write_private
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

NAME = "unfinished.json"


Note = dict[str, str]
"""Paths, and the hash of what the change writes there; WHATEVER where that is not known beforehand."""

WHATEVER, NOTHING = "", "-"
"""NOTHING: the change takes the file away."""


def begin(folder: str, paths: Iterable[str], writes: Mapping[str, bytes | None]) -> Note:
    """Note these paths, durably, beside those of a change around this one, which are returned."""
    around = noted(folder)
    _write(
        folder,
        around | {path: hash_of(writes.get(path, b"")) if path in writes else WHATEVER for path in paths},
    )
    return around


def hash_of(data: bytes | None) -> str:
    if data is None:
        return NOTHING
    return sha256(data).hexdigest()


def end(folder: str, around: Note | None = None) -> None:
    """The change is whole, or undone; the one around it may go on."""
    if around:
        _write(folder, around)
        return
    with translate_os_errors(folder):
        try:
            os.unlink(os.path.join(folder, NAME))
        except FileNotFoundError:
            return


def unfinished(folder: str) -> tuple[str, ...]:
    """The paths of a change that was not finished."""
    return tuple(noted(folder))


def noted(folder: str) -> Note:
    """The change that was not finished. A note that cannot be read names none: it is written whole."""
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8", errors="surrogateescape") as file:
            return {check_tracked(str(path)): str(hash) for path, hash in json.load(file).items()}
    except (FileNotFoundError, ValueError, AttributeError):
        return {}


def _write(folder: str, note: Note) -> None:
    path = os.path.join(folder, NAME)
    with translate_os_errors(path):
        durable_files.make_folders(folder)
        write_private(path, json.dumps(dict(sorted(note.items()))).encode())
