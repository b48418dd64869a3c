"""What the fault tests and their processes share: a memory with a folder, and texts that show when they are torn."""

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
    """The memory in a folder, as a client of its own; `later` moves its clock, in seconds."""
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
    """An operation as a person calls it, its record as plain values. Ctrl-C ends the run and is no refusal."""
    try:
        return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))
    except Cancelled:
        raise KeyboardInterrupt from None


def attach(brain: Brain, root: Path) -> None:
    """Let a memory know the folder of pages, unless it does: one of schema 5 knew no folders."""
    if not brain.db.rows("SELECT 1 FROM collections WHERE name = ?", (FOLDER,)):
        run(brain, "collection add", name=FOLDER, path=str(root))


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """One of the programs beside this file, as a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(PROJECT / "tests" / "faults" / program), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}{os.pathsep}{PROJECT}"},
    )


def saying(word: str, lines: int = 30) -> str:
    """A text about a word that is whole only from its first line to its last."""
    middle = "\n".join(f"Line {number} of it." for number in range(lines))
    return f"# Page\n\n{word} begins.\n\n{middle}\n\n{word} ends."


def is_whole(text: str) -> bool:
    """Whether everything that begins in a text also ends."""
    return bool(text.strip()) and re.findall(r"(\S+) begins\.", text) == re.findall(r"(\S+) ends\.", text)


def files(root: Path) -> dict[str, bytes]:
    """The pages of a folder, by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*.md"))
        if not path.name.startswith(".")
    }


def everything_kept(brain: Brain, slug: str) -> str:
    """What a page says and what it said before, as far as it is kept."""
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
    """The page of a client's n-th update: pages with a file and without in turn, and no page without end."""
    page = number // EACH * AT_ONCE + chance.randrange(AT_ONCE)
    return f"{FOLDER}::p{page}" if page % 2 else f"p{page}"
