"""The promises that faults are tried against, and how often each was tried: one table at the end of a run.

A test asks for `cases` and walks them; every case has a number, which is its seed. A case that fails says how to run
it alone: `make faults CASE='test_kill.py::test_…[put]@17'`.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

LONG = os.environ.get("QUAID_LONG") == "1"
"""`make faults`: the long forms."""

SHARE = float(os.environ.get("QUAID_SHARE") or 1)
"""How much of the long form to run: `make faults SHARE=0.1` is a tenth of it."""

ONLY = os.environ.get("QUAID_CASE", "").rpartition("@")[2]

PROMISES = (
    "acknowledged writes survive process death",
    "… at every point",
    "… and power loss",
    "disk full, I/O error",
    "no lost update",
    "never overwrite unread text",
    "migration is all or nothing",
    "backups restore",
    "the index is disposable",
    "damage is seen, not served",
    "convergence",
    "missed events",
    "git store",
    "paths",
    "hostile files",
    "any text is a search",
    "server under abuse",
    "stored text is data",
    "quiet logs",
    "soak",
    "guards that are taken out are missed",
)


class Cases:
    """The cases of one test: walked once, counted, and named when they fail."""

    def __init__(self, node: Any, promise: str) -> None:
        self.node = node
        self.promise = promise
        self.tried = 0
        self.current: int | None = None
        self.began = time.perf_counter()
        self.notes: list[str] = []

    def walk(self, short: int, long: int, *, first: int = 0) -> Iterator[int]:
        """Seeds, one after another: `short` of them in `make test`, `long` in `make faults`, or the one asked for."""
        if ONLY:
            seeds = iter([int(ONLY)])
        else:
            seeds = iter(range(first, first + (max(short, round(long * SHARE)) if LONG else short)))
        for seed in seeds:
            self.current = seed
            yield seed
            self.tried += 1
        self.current = None

    def count(self, more: int) -> None:
        """Cases that were tried inside one seed, beyond the one that `walk` counts."""
        self.tried += more

    def note(self, figure: str) -> None:
        """A figure for the table's last column."""
        self.notes.append(figure)

    def replay(self) -> str:
        """How to run the case again that is being tried now."""
        name = self.node.nodeid.removeprefix("tests/faults/")
        return f"make faults CASE='{name}@{self.current}'"
