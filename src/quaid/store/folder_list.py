"""The list of attached folders that is kept beside a memory, so that a deleted memory can be rebuilt from them.

Its name does not begin with that of the memory: `rm memory.db*` leaves it. It holds no text of any page.
"""

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from quaid.store import collections, durable, settings

if TYPE_CHECKING:
    from quaid.store.db import Database

LARGEST = 1024 * 1024


class Attached(NamedTuple):
    name: str
    kind: str
    root: str
    writable: bool
    is_write_target: bool


class FolderList(NamedTuple):
    memory_id: str
    """Empty: the memory had none."""
    folders: tuple[Attached, ...]


def path_of(database_path: str) -> str:
    folder, name = os.path.split(database_path)
    return os.path.join(folder, f"folders-of-{name}.json")


def read(database_path: str) -> FolderList | None:
    """Return the list beside a memory; None if there is none that can be used."""
    try:
        with open(path_of(database_path), "rb") as file:
            found = json.loads(file.read(LARGEST))
        folders = tuple(Attached(**each) for each in found["folders"])
        known = FolderList(str(found["memory_id"]), folders)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_usable = all(isinstance(each.root, str) and os.path.isabs(each.root) for each in folders)
    return known if folders and is_usable else None


def write(db: "Database") -> None:
    """Write the list anew; a memory without attached folders has none. Failing to do so costs the memory nothing."""
    rows = [each for each in collections.every(db) if each.root and each.state == "active"]
    folders = [
        Attached(each.name, each.kind, each.root or "", each.writable, each.is_write_target)._asdict()
        for each in rows
    ]
    path = path_of(db.path)
    unfinished = f"{path}-{os.getpid()}"
    try:
        if not folders:
            if os.path.exists(path):
                os.unlink(path)
            return
        known = {"memory_id": settings.memory_id(db) or "", "folders": folders}
        durable.make_private_file(unfinished)
        try:
            with open(unfinished, "w", encoding="utf-8") as file:
                json.dump(known, file, indent=2)
            durable.put_in_place(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError:
        pass
