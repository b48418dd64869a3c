"""Where a notebook is and how its folders and daily files are named, with the records that its commands return."""

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import FileTrouble, NoNotebook, NotebookGone
from quaid.model import dates
from quaid.storage import collections

if TYPE_CHECKING:
    from quaid.errors import NotebookGone
    from quaid.storage.collections import Collection
    from quaid.storage.sqlite.connection import Database

NOTEBOOK_NAME = NOTEBOOK_KIND = "notebook"
LISTS, REFERENCE, KNOWLEDGE, DAILY = NOTEBOOK_FOLDERS = ("lists", "reference", "knowledge", "daily")


def find_notebook(db: "Database") -> "Collection | None":
    """The notebook of a memory: the one of that name, else the first of that kind."""
    named = collections.find(db, NOTEBOOK_NAME)
    if named is not None and named.kind == NOTEBOOK_KIND and named.state == "active":
        return named
    return next(
        (each for each in collections.list_all(db) if each.kind == NOTEBOOK_KIND and each.state == "active"),
        None,
    )


def require_notebook(db: "Database") -> "Collection":
    """The notebook with its folder, or an error that says what is missing."""
    found = find_notebook(db)
    if found is None:
        raise NoNotebook(what="notebook", name="", hint="")
    if not folder_exists(found):
        raise folder_missing(found)
    return found


def folder_exists(notebook: "Collection") -> bool:
    """Whether its folder is: somebody may have moved it away, or a disk is not mounted."""
    return os.path.isdir(notebook.root or "")


def folder_missing(notebook: "Collection") -> "NotebookGone":
    """What is said of a notebook whose folder is not there, whoever asks for it."""
    return NotebookGone(path=notebook.root or "", name=notebook.name)


def default_notebook_root(database_path: str) -> str:
    """Beside the database."""
    return os.path.join(os.path.dirname(os.path.realpath(database_path)), NOTEBOOK_NAME)


def create_folders(root: str) -> tuple[str, ...]:
    """Make the folders that are missing. Which were they?"""
    made = []
    for name in NOTEBOOK_FOLDERS:
        path = os.path.join(root, name)
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
            raise FileTrouble(path=path, problem="is in the place of a folder of the notebook; move it away")
        if not os.path.isdir(path):
            os.makedirs(path)
            made.append(name)
    return tuple(made)


def list_files(root: str) -> list[str]:
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


class RememberedLine(NamedTuple):
    """A line that is remembered, and where it stands."""

    text: str
    path: str
    line: int
    written: bool
    """False: it was there."""


class RecallHit(NamedTuple):
    """A stretch of a file that answers."""

    path: str
    start_line: int
    end_line: int
    heading: str
    snippet: str
    score: float
    """From 0 to 1, comparable from question to question."""
    lane: Literal["words", "meaning", "both"] = "words"
    """What found it."""


class RecallResult(NamedTuple):
    query: str
    notebook: tuple[RecallHit, ...]
    """From lists, reference and knowledge."""
    daily: tuple[RecallHit, ...]
    semantic: bool
    """Whether meaning was looked at, too; false: by words only."""
    note: str
    """Why it was not."""
    missing: str = ""
    """What is wrong when the files could not be looked at, and the index answered alone."""


class PromptPart(NamedTuple):
    """A file in the prompt."""

    path: str
    characters: int
    left_out: int
    """Characters that the limits cut off."""


class SessionPrompt(NamedTuple):
    text: str
    parts: tuple[PromptPart, ...]
    tokens: int


class MigratedFile(NamedTuple):
    """A file of the older layout and where it goes."""

    source: str
    path: str
    """Nothing: it stays where it is."""
    outcome: Literal["copied", "same", "differs", "unreadable", "stays", "link"]


def daily_path(day: str) -> str:
    """The file of a day, as in daily/2026-04-25.md."""
    return f"{DAILY}/{day}.md"


def recent_days(local: str, days: int = 2) -> tuple[str, ...]:
    """Today and yesterday, or more days, or fewer."""
    return tuple(dates.shift_date(local[:10], -ago) for ago in range(days))
