"""An agent's older folder brought into the notebook: its runtime files and what it knew by heart become reference.

Only copies, never over a file that says something else, and leaves the old folder as it is. Knows the older layout.
Does not know how a file is written.
"""

import os
from typing import TYPE_CHECKING, Literal

from quaid.errors import FileTrouble, QuaidError
from quaid.folders import page_writer
from quaid.folders.scanner import LARGEST_FILE, SYMLINK, Folder, FoundFile, SkippedEntry
from quaid.notebook.layout import REFERENCE
from quaid.notebook.records import Move

if TYPE_CHECKING:
    from quaid.storage.collections import Collection

OLD_FOLDERS = ("runtime", "brain/memory/core")
STAYS = ("identity.md",)
"""Who the agent is belongs to the agent, not to the notebook."""


def plan(root: str, notebook: "Collection") -> list[tuple[Move, str]]:
    """What becomes of each old file, with its text."""
    if not os.path.isdir(root):
        raise FileTrouble(path=root, problem="is not a folder; name the one that holds runtime/ or brain/")
    moves: list[tuple[Move, str]] = []
    taken: dict[str, str] = {}
    for old in OLD_FOLDERS:
        moves += [(each, "") for each in _skipped(root, old)]
        for path, text in _texts(root, old):
            goal = f"{REFERENCE}/{path.rpartition('/')[2]}"
            if text is None:
                moves.append((Move(path, goal, "unreadable"), ""))
                continue
            found = page_writer.read_text_file(notebook, goal)
            there = taken.get(goal, found.text if found else None)
            outcome: Literal["copied", "same", "differs"] = (
                "copied" if there is None else "same" if there == text else "differs"
            )
            moves.append((Move(path, goal, outcome), text))
            taken.setdefault(goal, text)
    return moves


def _skipped(root: str, folder: str) -> list[Move]:
    """What is not brought over on purpose."""
    try:
        with Folder(os.path.join(root, folder)) as opened:
            found = list(opened.walk())
    except QuaidError:
        return []
    own = [Move(f"{folder}/{each.path}", "", "stays") for each in found if each.path in STAYS]
    links = [each for each in found if isinstance(each, SkippedEntry) and each.reason == SYMLINK]
    return [*own, *(Move(f"{folder}/{each.path}", "", "link") for each in links)]


def _texts(root: str, folder: str) -> list[tuple[str, str | None]]:
    try:
        with Folder(os.path.join(root, folder)) as opened:
            pages = sorted(
                each.path
                for each in opened.walk()
                if isinstance(each, FoundFile) and each.path.lower().endswith(".md")
            )
            return [(f"{folder}/{path}", _text(opened, path)) for path in pages if path not in STAYS]
    except QuaidError:
        return []


def _text(folder: Folder, path: str) -> str | None:
    try:
        data = folder.read(path)
        return data.decode("utf-8") if len(data) <= LARGEST_FILE else None
    except (OSError, UnicodeDecodeError):
        return None
