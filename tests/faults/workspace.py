"""A memory with one folder, and page texts in which a torn write can be detected."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.ledger import LONG as LONG

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import Cancelled
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value

if TYPE_CHECKING:
    from quaid.embedding.registry import ModelCache

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = "notes"
STORE = "kb"
"""Where a knowledge base is, if there is one."""


def open_brain(home: Path, *, later: float = 0, models: "ModelCache | None" = None) -> Brain:
    """Open the memory in a folder as a separate client; `later` moves its clock by that many seconds."""
    settings = Settings(
        db_path=str(home / "memory.db"),
        home=str(home / "home"),
        cwd=str(home),
        environ={
            "QUAID_BACKGROUND_EMBEDDING": "off",
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "AI_KB_DIR": str(home / STORE),
        },
    )
    return Brain(settings, clock=lambda: time.time() + later, models=models)


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    """Call an operation as the owner and return its record as plain values. Ctrl-C ends the run."""
    try:
        return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))
    except Cancelled:
        raise KeyboardInterrupt from None


def attach(brain: Brain, root: Path) -> None:
    """Attach the folder of pages unless it is attached: a memory of schema 5 has no folders."""
    if not brain.db.rows("SELECT 1 FROM collections WHERE name = ?", (FOLDER,)):
        run(brain, "collection add", name=FOLDER, path=str(root))


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start one of the programs beside this file."""
    return subprocess.Popen(
        [sys.executable, str(PROJECT / "tests" / "faults" / program), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}{os.pathsep}{PROJECT}"},
    )


def page_text(word: str, lines: int = 30) -> str:
    """Return a text that begins and ends with a word, so that a torn copy can be detected."""
    middle = "\n".join(f"Line {number} of it." for number in range(lines))
    return f"# Page\n\n{word} begins.\n\n{middle}\n\n{word} ends."


def is_whole(text: str) -> bool:
    """Return True if every text that begins also ends."""
    return bool(text.strip()) and re.findall(r"(\S+) begins\.", text) == re.findall(r"(\S+) ends\.", text)


def files(root: Path) -> dict[str, bytes]:
    """The pages of a folder, by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*.md"))
        if not path.name.startswith(".")
    }


def everything_kept(brain: Brain, slug: str) -> str:
    """Return the current and all kept former texts of a page."""
    collection, _, name = slug.rpartition("::")
    rows = brain.db.rows(
        "SELECT p.compiled_truth || p.timeline FROM pages p JOIN collections c ON c.id = p.collection_id"
        " WHERE c.name = ?1 AND p.slug = ?2 UNION ALL SELECT CAST(r.raw_bytes AS TEXT) FROM raw_imports r"
        " JOIN pages p ON p.id = r.page_id JOIN collections c ON c.id = p.collection_id"
        " WHERE c.name = ?1 AND p.slug = ?2",
        (collection or "default", name),
    )
    return "\n".join(row[0] for row in rows)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


AT_ONCE, EACH = 4, 25
"""How many pages are being updated at the same time, and after how many updates a client goes on to the next ones."""


def slug_of(number: int, chance: random.Random) -> str:
    """Return the page of a client's n-th update; pages with and without a file alternate."""
    page = number // EACH * AT_ONCE + chance.randrange(AT_ONCE)
    return f"{FOLDER}::p{page}" if page % 2 else f"p{page}"
