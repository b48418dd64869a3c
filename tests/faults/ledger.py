"""The promises that faults are tried against, and how often each was tried: one table at the end of a run.

A test asks for `cases` and walks them; every case has a number or a name, which is its seed. A case that fails says
how to run it alone: `make faults CASE='test_kill.py::test_…[put]@17'`. It ends its test; how many were left is told.
"""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

LONG = os.environ.get("QUAID_LONG") == "1"
"""`make faults`: the long forms."""

SHARE = float(os.environ.get("QUAID_SHARE") or 1)
"""How much of the long form to run: `make faults SHARE=0.1` is a tenth of it."""

_ASKED = os.environ.get("QUAID_CASE", "")
ONLY = _ASKED.rpartition("@")[2] if "@" in _ASKED else ""
"""The seed of the one case that is asked for; nothing without an "@"."""

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
    "a hub keeps what is pushed, and to itself",
    "stored text is data",
    "quiet logs",
    "soak",
    "guards that are taken out are missed",
)


Seed = TypeVar("Seed", int, str)


class Cases:
    """The cases of one test: walked once, counted, and named when they fail."""

    def __init__(self, node: Any, promise: str) -> None:
        self.node = node
        self.promise = promise
        self.tried = 0
        self.failed = 0
        self.planned = 0
        self.current: int | str | None = None
        self.fell = False
        """Whether the test ended with a failure."""
        self.began = time.perf_counter()
        self.notes: list[str] = []

    @property
    def alone(self) -> bool:
        """Whether one case alone is asked for. What is to hold for all of them together need not hold for it."""
        return bool(ONLY)

    def walk(self, short: int, long: int) -> Iterator[int]:
        """Seeds, one after another: `short` of them in `make test`, `long` in `make faults`, or the one asked for."""
        return self.each(self.seeds(short, long))

    def each(self, seeds: Iterable[int]) -> Iterator[int]:
        """These seeds, one after another, or the one asked for."""
        return self._each(self.wanted(seeds))

    def walk_names(self, short: int, names: Sequence[str]) -> Iterator[str]:
        """Cases that have names, one after another: `short` of them in `make test`, all in `make faults`, or one.

        Each one's place is given by its name and the test's alone: a few of them are a fair sample, and the same one
        next time, even if some names are no longer there."""
        if ONLY and ONLY not in names:
            self.refuse(f"there is no case {ONLY!r} here, but such as {', '.join(names[:3])}")
        count = max(short, round(len(names) * SHARE)) if LONG else short
        shuffled = sorted(
            names, key=lambda name: hashlib.sha256(f"{self.node.name} {name}".encode()).digest()
        )
        return self._each([ONLY] if ONLY else shuffled[:count])

    def _each(self, seeds: list[Seed]) -> Iterator[Seed]:
        self.planned += len(seeds)
        for seed in seeds:
            self.current = seed
            yield seed
            self.tried += 1
            self.planned -= 1
        self.current = None

    def seeds(self, short: int, long: int) -> list[int]:
        """The seeds that `walk` will walk over."""
        return self.wanted(range(max(short, round(long * SHARE)) if LONG else short))

    def wanted(self, seeds: Iterable[int]) -> list[int]:
        """The seeds that `each` will walk over."""
        if ONLY and not ONLY.isdecimal():
            self.refuse(f"a case has a number here, and {ONLY!r} is none")
        return [int(ONLY)] if ONLY else list(seeds)

    def refuse(self, why: str) -> NoReturn:
        """End it all: a case is asked for that there is not."""
        import pytest  # which workers and their nursery need not load

        pytest.exit(f"{self.node.nodeid}: {why}", pytest.ExitCode.USAGE_ERROR)

    def count(self, more: int) -> None:
        """Cases that were tried inside one seed, beyond the one that `walk` counts."""
        self.tried += more

    def wrong(self, count: int = 1) -> None:
        """Cases that went wrong in a test that allows for some: the table tells of them all the same."""
        self.failed += count

    def note(self, figure: str) -> None:
        """A figure for the table's last column."""
        self.notes.append(figure)

    def replay(self) -> str:
        """How to run the case again that is being tried now; the whole test, when it is none in particular."""
        name = self.node.nodeid.removeprefix("tests/faults/")
        return f"make faults CASE='{name}{'' if self.current is None else f'@{self.current}'}'"

    def told(self) -> list[Any]:
        """What a report carries to the table: plain values, as it may come from another process."""
        fallen = int(self.fell and self.current is not None)
        left = self.planned - fallen if self.fell else 0
        notes = [f"{left:,} cases not tried after one had failed"] if left else []
        return [self.tried + fallen, self.failed, time.perf_counter() - self.began, [*self.notes, *notes]]


class Tried(NamedTuple):
    """What became of one test, in all its stages."""

    promise: str
    tried: int = 0
    failures: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    skipped: str = ""
    """Why it was not run."""


HEAD = ("| promise | cases tried | failures | seconds | figures |", "|---|---|---|---|---|")


def table(tests: Iterable[Tried]) -> list[str]:
    """A line for every promise, also for those that nobody has tried: promise, cases, failures, seconds, figures."""
    by_promise: dict[str, list[Tried]] = {promise: [] for promise in PROMISES}
    for test in tests:
        by_promise.setdefault(test.promise, []).append(test)
    return [*HEAD, *(_row(promise, result) for promise, result in by_promise.items())]


def _row(promise: str, tests: list[Tried]) -> str:
    reasons = Counter(test.skipped for test in tests if test.skipped)
    failures = sum(test.failures for test in tests)
    if not failures and sum(reasons.values()) == len(tests):
        why = "; ".join(reasons) or "none of its tests was asked for"
        return f"| {promise} | 0 | – | – | not run: {why} |"
    notes = [note for test in tests for note in test.notes]
    notes += [f"{count} of {len(tests)} tests not run: {reason}" for reason, count in reasons.items()]
    tried, seconds = sum(test.tried for test in tests), sum(test.seconds for test in tests)
    return f"| {promise} | {tried:,} | {failures} | {seconds:.0f} | {'; '.join(notes)} |"
