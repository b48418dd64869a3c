"""What an agent is told at the beginning: all of reference, today's and yesterday's log, within limits.

Reads the files themselves, so that no database is needed; what is known of a project is handed in. The same files
give the same text, to the last character: a cache of prompts depends on it. Knows
limits and order; finds no root and knows no clock.
"""

import os
from typing import NamedTuple

from quaid.core.tokens import count_tokens
from quaid.errors import QuaidError
from quaid.formats import markdown
from quaid.notebook import daily
from quaid.notebook.layout import REFERENCE
from quaid.notebook.records import Part, Prompt
from quaid.vaults.scan import Folder, Found

LEGACY = "runtime"
"""Where standing orders were kept before there was a notebook: beside it."""


class Limits(NamedTuple):
    """How much of what is told. Characters, but for the days."""

    reference_dir: str = REFERENCE
    days: int = 2
    file: int = 8_000
    reference: int = 32_000


LIMITS = Limits()


class _File(NamedTuple):
    path: str
    text: str


def assemble(
    root: str, local: str, budget: int | None = None, limits: Limits = LIMITS, project: str = ""
) -> Prompt:
    """The prompt of a notebook at a local time, in at most so many tokens; `project` goes behind it."""
    room = _Room(budget)
    reference = limits.reference
    for file in _reference(root, limits.reference_dir):
        reference -= room.add(file, min(limits.file, reference))
    for day in daily.recent(local, limits.days):
        for file in _files(root, (daily.path_of(day),)):
            room.add(file, limits.file)
    if project:
        room.add(_File(PROJECT, project), limits.file)
    room.name_the_missing()
    text = "\n".join(room.texts)
    return Prompt(text, tuple(room.parts), count_tokens(text))


class _Room:
    def __init__(self, budget: int | None) -> None:
        self.texts: list[str] = []
        self.parts: list[Part] = []
        self._left = budget
        self._told: set[str] = set()  # files that have a place in the text, if only with their name

    def add(self, file: _File, limit: int) -> int:
        """Put a file in, or as much of it as there is room for. How many characters was that?"""
        shown = _cut(file.text, limit)
        head = f"<!-- {file.path} -->\n"
        if self._left is not None:
            shown = self._afford(shown, self._left - count_tokens(head) - RESERVE)
        left_out = len(file.text) - len(shown)
        note = f"[… {left_out:,} more characters of {file.path} were left out; notebook_read shows them]\n"
        block = f"{head}{shown}{'' if shown.endswith(NEW_LINE) or not shown else NEW_LINE}{note if left_out else ''}"
        if self._left is not None:
            self._left -= count_tokens(block) + 1
            if self._left < 0:  # not even the note
                self._left += count_tokens(block) + 1
                self.parts.append(Part(file.path, 0, len(file.text)))
                return 0
        self.texts.append(block)
        self._told.add(file.path)
        self.parts.append(Part(file.path, len(shown), left_out))
        return len(shown)

    def name_the_missing(self) -> None:
        """Say which files have no room at all, if there is room to say so."""
        missing = [part.path for part in self.parts if not part.characters and part.path not in self._told]
        note = f"[… no room for {', '.join(missing)}; notebook_read shows them]\n"
        if missing and (self._left is None or count_tokens(note) + 1 <= self._left):
            self.texts.append(note)

    def _afford(self, text: str, tokens: int) -> str:
        while text and count_tokens(text) > tokens:
            text = _cut(text, min(len(text) - 1, len(text) * max(tokens, 0) // count_tokens(text)))
        return text


RESERVE = 30
"""Tokens of the note that says what was left out."""
NEW_LINE = "\n"
PROJECT = "project"
"""The name of the part that is about the project at hand."""


def _cut(text: str, limit: int) -> str:
    """The text up to the last line that ends within the limit."""
    if len(text) <= limit:
        return text
    return text[: text.rfind("\n", 0, max(limit, 0)) + 1]


def _reference(root: str, folder: str) -> list[_File]:
    """The files of reference, by name; those that only the older layout has, from there."""
    files = _files(root, _pages(root, folder))
    names = {file.path.rpartition("/")[2] for file in files}
    above = os.path.dirname(os.path.abspath(root))
    old = [path for path in _pages(above, LEGACY) if path.rpartition("/")[2] not in names]
    return [*files, *_files(above, old)]


def _pages(root: str, folder: str) -> list[str]:
    """The pages of a folder and those below it, in the order of their paths."""
    try:
        with Folder(os.path.join(root, folder)) as opened:
            found = [
                each.path for each in opened.walk() if isinstance(each, Found) and each.kind != "sidecar"
            ]
    except QuaidError:
        return []
    return sorted(f"{folder}/{path}" for path in found)


def _files(root: str, paths: "tuple[str, ...] | list[str]") -> list[_File]:
    found = []
    try:
        with Folder(root) as folder:
            for path in paths:
                try:
                    text = markdown.decode(folder.read(path)).text
                except OSError:
                    continue
                text = text.removeprefix("\ufeff").replace("\r\n", "\n")
                if text.strip():
                    found.append(_File(path, text))
    except QuaidError:
        pass
    return found
