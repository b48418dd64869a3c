"""Where a notebook is and what it looks like: four folders of markdown.

Knows the names of the folders and how the notebook is found. Does not know what is written where (routing.py does).
"""

import os
from typing import TYPE_CHECKING

from quaid.errors import FileTrouble, NoNotebook
from quaid.storage import collections

if TYPE_CHECKING:
    from quaid.errors import NotebookGone
    from quaid.storage.collections import Collection
    from quaid.storage.sqlite.connection import Database

NAME = KIND = "notebook"
LISTS, REFERENCE, KNOWLEDGE, DAILY = FOLDERS = ("lists", "reference", "knowledge", "daily")


def find(db: "Database") -> "Collection | None":
    """The notebook of a memory: the one of that name, else the first of that kind."""
    named = collections.find(db, NAME)
    if named is not None and named.kind == KIND and named.state == "active":
        return named
    return next(
        (each for each in collections.list_all(db) if each.kind == KIND and each.state == "active"), None
    )


def require(db: "Database") -> "Collection":
    """The notebook with its folder, or an error that says what is missing."""
    found = find(db)
    if found is None:
        raise NoNotebook(what="notebook", name="", hint="")
    if not is_there(found):
        raise gone(found)
    return found


def is_there(notebook: "Collection") -> bool:
    """Whether its folder is: somebody may have moved it away, or a disk is not mounted."""
    return os.path.isdir(notebook.root or "")


def gone(notebook: "Collection") -> "NotebookGone":
    """What is said of a notebook whose folder is not there, whoever asks for it."""
    from quaid.errors import NotebookGone

    return NotebookGone(path=notebook.root or "", name=notebook.name)


def default_root(database_path: str) -> str:
    """Beside the database."""
    return os.path.join(os.path.dirname(os.path.realpath(database_path)), NAME)


def lay_out(root: str) -> tuple[str, ...]:
    """Make the folders that are missing. Which were they?"""
    made = []
    for name in FOLDERS:
        path = os.path.join(root, name)
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
            raise FileTrouble(path=path, problem="is in the place of a folder of the notebook; move it away")
        if not os.path.isdir(path):
            os.makedirs(path)
            made.append(name)
    return tuple(made)


def present(root: str) -> list[str]:
    """The markdown files that stand directly in lists, reference and knowledge, whether they were indexed or not."""
    found = []
    for folder in (LISTS, REFERENCE, KNOWLEDGE):
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
        except OSError:
            continue
        found += [f"{folder}/{name}" for name in sorted(names) if name.lower().endswith(".md")]
    return found
