"""Edit notebook files at a given place (whole files, sections, the daily log), and migrate legacy folders."""

import os
import re
from typing import Literal, NamedTuple

from quaid.errors import FileTrouble, InvalidArgument, QuaidError
from quaid.folders import page_writer
from quaid.folders.scanner import LARGEST_FILE, SYMLINK, Folder
from quaid.formats import sections
from quaid.formats.sections import SectionEdit
from quaid.model.sync_plan import ScannedFile, SkippedEntry
from quaid.notebook.layout import REFERENCE, MigratedFile
from quaid.storage.collections import Collection


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
    if plain.startswith(("```", "~~~")):  # the first line of a code block is not a heading
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
