"""Location of the notebook, the names of its folders and daily files, and the records its commands return."""

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import FileTrouble, NoNotebook, NotebookGone
from quaid.model import dates
from quaid.storage import collections
from quaid.storage.collections import Collection

if TYPE_CHECKING:  # not imported at run time, because it loads SQLite
    from quaid.storage.sqlite.connection import Database

NOTEBOOK_NAME = NOTEBOOK_KIND = "notebook"
LISTS, REFERENCE, KNOWLEDGE, DAILY = NOTEBOOK_FOLDERS = ("lists", "reference", "knowledge", "daily")


def find_notebook(db: "Database") -> Collection | None:
    """Return the active notebook: the collection named "notebook", else the first notebook, else None."""
    named = collections.find(db, NOTEBOOK_NAME)
    if named is not None and named.kind == NOTEBOOK_KIND and named.state == "active":
        return named
    return next(
        (
            collection
            for collection in collections.list_all(db)
            if collection.kind == NOTEBOOK_KIND and collection.state == "active"
        ),
        None,
    )


def require_notebook(db: "Database") -> Collection:
    """Return the notebook. Raise NoNotebook if there is none, or NotebookGone if its folder is missing."""
    notebook = find_notebook(db)
    if notebook is None:
        raise NoNotebook(what="notebook", name="", hint="")
    if not folder_exists(notebook):
        raise folder_missing(notebook)
    return notebook


def folder_exists(notebook: Collection) -> bool:
    """Return True if the notebook's folder exists. It is missing if it was moved or its disk is not mounted."""
    return os.path.isdir(notebook.root or "")


def folder_missing(notebook: Collection) -> NotebookGone:
    """Return the error for a notebook whose folder is missing."""
    return NotebookGone(path=notebook.root or "", name=notebook.name)


def default_notebook_root(database_path: str) -> str:
    """Return the default path of the notebook's folder, next to the database."""
    return os.path.join(os.path.dirname(os.path.realpath(database_path)), NOTEBOOK_NAME)


def create_folders(root: str) -> tuple[str, ...]:
    """Create the missing folders of a notebook and return their names."""
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
    """Return the Markdown files directly in lists, reference and knowledge, indexed or not."""
    files = []
    for folder in (LISTS, REFERENCE, KNOWLEDGE):
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            continue
        files += [f"{folder}/{name}" for name in sorted(names) if name.lower().endswith(".md")]
    return files


class RememberedLine(NamedTuple):
    """A remembered line and its location."""

    text: str
    path: str
    line: int
    written: bool
    """False if the line already existed."""


class RecallHit(NamedTuple):
    """A range of lines in a file that matches a query."""

    path: str
    start_line: int
    end_line: int
    heading: str
    snippet: str
    score: float
    """The score from 0 to 1, which is comparable between queries."""
    lane: Literal["words", "meaning", "both"] = "words"
    """The kind of search that found the lines."""


class RecallResult(NamedTuple):
    query: str
    notebook: tuple[RecallHit, ...]
    """Hits in the folders lists, reference and knowledge."""
    daily: tuple[RecallHit, ...]
    semantic: bool
    """True if semantic search was used, False for full-text search only."""
    note: str
    """Why semantic search was not used, else empty."""
    missing: str = ""
    """The error message if the folder is missing and the result comes from the index alone, else empty."""


class PromptPart(NamedTuple):
    """A file included in the prompt."""

    path: str
    characters: int
    left_out: int
    """Number of characters truncated by the limits."""


class SessionPrompt(NamedTuple):
    text: str
    parts: tuple[PromptPart, ...]
    tokens: int


class MigratedFile(NamedTuple):
    """A file of the legacy layout and its destination."""

    source: str
    path: str
    """Destination path; empty if the file is not migrated."""
    outcome: Literal["copied", "same", "differs", "unreadable", "stays", "link"]


def daily_path(day: str) -> str:
    """Return the path of a day's log, such as daily/2026-04-25.md."""
    return f"{DAILY}/{day}.md"


def recent_days(local: str, days: int = 2) -> tuple[str, ...]:
    """Return the most recent days, today first."""
    return tuple(dates.shift_date(local[:10], -ago) for ago in range(days))
