"""The folders and files of the notebook: where they are, how texts are edited, the daily log, and legacy folders.

The records that its commands return are here as well.
"""

import os
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import FileTrouble, InvalidArgument, NoNotebook, NotebookGone, QuaidError
from quaid.folders import page_writer
from quaid.folders.scanner import LARGEST_FILE, SYMLINK, Folder
from quaid.formats import sections
from quaid.formats.sections import SectionEdit
from quaid.model import dates
from quaid.model.sync_plan import ScannedFile, SkippedEntry
from quaid.storage import collections
from quaid.storage.collections import Collection

if TYPE_CHECKING:  # not imported at run time, because it loads SQLite
    from quaid.storage.sqlite.connection import Database

NOTEBOOK_NAME = NOTEBOOK_KIND = "notebook"
LISTS, REFERENCE, KNOWLEDGE, DAILY = NOTEBOOK_FOLDERS = ("lists", "reference", "knowledge", "daily")


def find_notebook(db: "Database") -> Collection | None:
    """Return the active notebook: the collection named "notebook", else the first notebook, else None."""
    notebooks = [
        collection
        for collection in collections.list_all(db)
        if collection.kind == NOTEBOOK_KIND and collection.state == "active"
    ]
    return min(notebooks, key=lambda notebook: notebook.name != NOTEBOOK_NAME, default=None)


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


def update_file_text(
    old: str | None, content: str, section: str | None, replace: bool, expected: int | None
) -> SectionEdit:
    """Return the file's new text and the line where the content starts.

    The content is appended to the section, or to the file if `section` is None. With `replace`, it replaces
    the old text. `expected` is the version that the caller had read; raise InvalidArgument if it is None and
    existing text would be replaced.
    """
    if section is not None and not sections.heading_title(section):
        raise InvalidArgument(name="section", problem="is empty; name a heading, as in To Do")
    content = content.replace("\r\n", "\n")
    loses = old is not None and bool(old.strip() if section is None else sections.find_section(old, section))
    if replace and loses and expected is None:
        problem = "is required to replace text; notebook_read (`quaid notebook read --json`) returns it"
        raise InvalidArgument(name="expected_version", problem=problem)
    if not replace and not content.strip():
        raise InvalidArgument(name="content", problem="is empty; there is nothing to add")
    if section is None:
        if replace or old is None:
            return content if content.endswith("\n") or not content else content + "\n", 1
        return sections.append_to_section(old, None, content)
    return (sections.replace_section if replace else sections.append_to_section)(old or "", section, content)


MAX_HEADING_LENGTH = 100

_ENTRY_TIME = re.compile(r"([0-2]?[0-9]:[0-5][0-9])(?:[ \t]*[—–:-])?(?:[ \t]+|\Z)")
_DAY_TITLE = re.compile(r"\A\s*#[ \t][^\n]*")


class DailyEntry(NamedTuple):
    """A parsed entry of the daily log."""

    time: str
    """Time such as 09:10, or "" if the entry has none."""
    heading: str
    body: str
    line: int
    """Line number in the file, starting at 1."""


def render_entry(local: str, text: str) -> str:
    """Render an entry: a heading with the time and the first line, then the rest of the text.

    If the first line is too long for the heading, it is shortened there, and the whole text follows.
    """
    text = sections.sanitize(text)
    if not text:
        raise InvalidArgument(name="content", problem="is empty; write what happened")
    first, _, rest = text.partition("\n")
    plain = first.removeprefix("\\").lstrip("#").strip()
    plain = plain.removeprefix("- ").strip() or first.strip()
    heading = plain if len(plain) <= MAX_HEADING_LENGTH else _shorten_heading(plain)
    body = rest.strip("\n") if heading == plain else text
    if plain.startswith(("```", "~~~")):  # the first line of a code block cannot be a heading
        heading, body = "Note", text
    return f"## {local[11:16]} — {heading}\n{body}".rstrip("\n")


def add_log_entry(old: str | None, local: str, text: str) -> SectionEdit:
    """Append an entry to a day's file. Return the new text and the line of the entry."""
    before = old if old and old.strip() else f"# {local[:10]}\n"
    return sections.append_to_section(before, None, render_entry(local, text))


def parse_daily_file(text: str) -> tuple[DailyEntry, ...]:
    """Return the entries of a day's file in order. Text before the first heading is an entry with no time."""
    places = sections.find_sections(text)
    entries = []
    before = text[: places[0].start] if places else text
    opening = _DAY_TITLE.sub("", before, count=1)
    if opening.strip():
        start = len(before) - len(opening.lstrip())
        first, _, rest = opening.strip().partition("\n")
        entries.append(DailyEntry("", first.strip(), rest.strip(), text.count("\n", 0, start) + 1))
    for place in places:
        time = _ENTRY_TIME.match(place.title)
        heading = place.title[time.end() :] if time else place.title
        body, line = text[place.body : place.end].strip(), text.count("\n", 0, place.start) + 1
        entries.append(DailyEntry(time[1] if time else "", heading.strip(), body, line))
    return tuple(entries)


def _shorten_heading(text: str) -> str:
    short = text[: MAX_HEADING_LENGTH - 1]
    return (short.rpartition(" ")[0] or short) + "…"


LEGACY_FOLDERS = ("runtime", "brain/memory/core")
UNMIGRATED_FILES = ("identity.md",)
"""Legacy files that are not migrated, because the agent's identity is not part of the notebook."""


def plan_migration(root: str, notebook: Collection) -> list[tuple[MigratedFile, str]]:
    """Return the planned outcome for each file of the legacy folders, with its text or "" if it is not read."""
    if not os.path.isdir(root):
        raise FileTrouble(
            path=root, problem="is not a folder; name the folder that contains runtime/ or brain/"
        )
    moves: list[tuple[MigratedFile, str]] = []
    taken: dict[str, str] = {}
    for old in LEGACY_FOLDERS:
        moves += [(file, "") for file in _skipped_files(root, old)]
        for path, text in _legacy_texts(root, old):
            goal = f"{REFERENCE}/{path.rpartition('/')[2]}"
            if text is None:
                moves.append((MigratedFile(path, goal, "unreadable"), ""))
                continue
            file = page_writer.read_text_file(notebook, goal)
            existing = taken.get(goal, file.text if file else None)
            outcome: Literal["copied", "same", "differs"] = (
                "copied" if existing is None else "same" if existing == text else "differs"
            )
            moves.append((MigratedFile(path, goal, outcome), text))
            taken.setdefault(goal, text)
    return moves


def _skipped_files(root: str, folder: str) -> list[MigratedFile]:
    """Return the files that are deliberately not migrated: UNMIGRATED_FILES and symlinks."""
    try:
        with Folder(os.path.join(root, folder)) as opened:
            entries = list(opened.walk())
    except QuaidError:
        return []
    own = [entry.path for entry in entries if entry.path in UNMIGRATED_FILES]
    links = [entry.path for entry in entries if isinstance(entry, SkippedEntry) and entry.reason == SYMLINK]
    return [
        *(MigratedFile(f"{folder}/{path}", "", "stays") for path in own),
        *(MigratedFile(f"{folder}/{path}", "", "link") for path in links),
    ]


def _legacy_texts(root: str, folder: str) -> list[tuple[str, str | None]]:
    try:
        with Folder(os.path.join(root, folder)) as opened:
            files = sorted(entry.path for entry in opened.walk() if isinstance(entry, ScannedFile))
            return [
                (f"{folder}/{path}", _read_legacy_text(opened, path))
                for path in files
                if path.lower().endswith(".md") and path not in UNMIGRATED_FILES
            ]
    except QuaidError:
        return []


def _read_legacy_text(folder: Folder, path: str) -> str | None:
    try:
        data = folder.read(path)
        return data.decode("utf-8") if len(data) <= LARGEST_FILE else None
    except (OSError, UnicodeDecodeError):
        return None
