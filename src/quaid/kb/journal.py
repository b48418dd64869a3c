"""Which files a change is about, written down before the first of them is touched.

Whoever finds this note while holding the store's lock knows that the change was never finished, since its process
cannot be alive. Knows one small file. Putting the files back is git.py's business.
"""

import json
import os
from collections.abc import Sequence

from quaid.kb.guarding import check_path, write_private
from quaid.store import durable
from quaid.store.trouble import system_told_plainly

NAME = "unfinished.json"


def begin(folder: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Note these paths, durably, beside those of a change around this one, which are returned."""
    around = unfinished(folder)
    _write(folder, {*around, *paths})
    return around


def end(folder: str, around: Sequence[str] = ()) -> None:
    """The change is whole, or undone; the one around it may go on."""
    if around:
        _write(folder, set(around))
        return
    with system_told_plainly(folder):
        try:
            os.unlink(os.path.join(folder, NAME))
        except FileNotFoundError:
            return


def unfinished(folder: str) -> tuple[str, ...]:
    """The paths of a change that was not finished. A note that cannot be read names none: it is written whole."""
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8", errors="surrogateescape") as file:
            return tuple(check_path(str(path)) for path in json.load(file))
    except (FileNotFoundError, ValueError):
        return ()


def _write(folder: str, paths: set[str]) -> None:
    path = os.path.join(folder, NAME)
    with system_told_plainly(path):
        durable.make_folders(folder)
        write_private(path, json.dumps(sorted(paths)).encode())
