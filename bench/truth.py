"""Contradictions: how many labelled cases are found, how many traps are fallen into, what a check costs.

The cases are in bench/data, as text. Each becomes a real memory, and `quaid check` looks at it. A finding is right if
its type and page are expected and its description holds the expected words.
"""

import itertools
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench.table import show, verdict
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch

HERE = os.path.dirname(os.path.abspath(__file__))
SETS = ("contradictions", "contradictions-held-out")
TODAY = "2026-04-25"
PRECISION, RECALL = 0.95, 0.9
SIZES, QUICK_SIZES = (1_000, 10_000, 50_000), (1_000, 10_000)
WORDS = (
    "harbour river plan meeting notes budget call team review open draft owner week price boat road paper field light"
    " wind stone market garden window kitchen letter answer reason number story table chair lamp song bridge train"
    " coat bread salt sugar apple cloud hill valley lake forest summer winter monday friday morning evening minute"
    " colour circle square engine wheel sail anchor rope deck cabin ticket coin bank vote rule law judge nurse doctor"
    " pupil lesson map guide tour hotel beach sand shell fish bird horse dog cat left until moved sold previous"
).split()
SECONDS = 2.0
"""CPU for 50,000 facts on 10,000 pages."""


class Case(NamedTuple):
    name: str
    is_trap: bool
    lines: tuple[str, ...]

    @property
    def expected(self) -> list[tuple[str, str, tuple[str, ...]]]:
        found = []
        for line in self.lines:
            if line.startswith("find "):
                head, _, words = line.partition(":")
                _, kind, slug = head.split()
                found.append((kind, slug, tuple(word.strip() for word in words.split(","))))
        return found


class Outcome(NamedTuple):
    right: int
    wrong: list[str]
    missed: list[str]


def cases(name: str) -> list[Case]:
    """The cases of one file."""
    with open(os.path.join(HERE, "data", f"{name}.txt"), encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    found = []
    for block in blocks:
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            kind, _, title = lines[0].partition(" ")
            found.append(Case(title, kind == "trap", tuple(lines[1:])))
    return found


def judge(case: Case, folder: str) -> Outcome:
    """Make the memory of a case, check it, and compare."""
    clock = Clock()
    settings = Settings(db_path=os.path.join(folder, "memory.db"), home=folder, cwd=folder)
    with Brain(settings, clock=clock) as brain:
        brain.create(settings.db_path)
        _fill(brain, case, clock)
        clock.day = TODAY
        found = _call(brain, "check").contradictions
    expected = case.expected
    wrong = []
    for each in found:
        fits = next((one for one in expected if _fits(each, one)), None)
        if fits:
            expected.remove(fits)
        else:
            wrong.append(f"{case.name}: {each.type} {each.slug}: {each.description}")
    missed = [f"{case.name}: {kind} {slug}: {', '.join(words)}" for kind, slug, words in expected]
    return Outcome(len(case.expected) - len(expected), wrong, missed)


class Clock:
    """A clock that stands still on a day, but for seconds."""

    def __init__(self) -> None:
        self.day = "2026-04-20"
        self._ticks = itertools.count()

    def __call__(self) -> float:
        from calendar import timegm

        return timegm(time.strptime(self.day, "%Y-%m-%d")) + 43_200 + next(self._ticks)


def _fits(found: Any, expected: tuple[str, str, tuple[str, ...]]) -> bool:
    kind, slug, words = expected
    return found.type == kind and found.slug == slug and all(word in found.description for word in words)


def _call(brain: Brain, tool: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool("memory_" + tool), arguments, "owner")


def _fill(brain: Brain, case: Case, clock: Clock) -> None:
    aliases = {}
    for line in case.lines:
        if line.startswith("alias "):
            slug, _, names = line.removeprefix("alias ").partition(": ")
            aliases[slug] = [name.strip() for name in names.split(",")]
    last = 0
    for line in case.lines:
        word, _, rest = line.partition(" ")
        if word == "on":
            clock.day = rest
        elif word == "alias":
            _page(brain, rest.partition(":")[0], aliases)
        elif word == "page":
            slug, _, text = rest.partition(": ")
            _page(brain, slug, aliases, text.replace("\\n", "\n"))
        elif word == "entry":
            head, _, text = rest.partition(": ")
            slug, day = head.split()
            _call(brain, "timeline_add", slug=slug, date=day, summary=text)
        elif word == "link":
            _link(brain, aliases, *rest.split())
        elif word in ("fact", "replace"):
            last = _fact(brain, aliases, rest, last if word == "replace" else None)


def _page(brain: Brain, slug: str, aliases: dict[str, list[str]], text: str = "") -> None:
    from quaid.storage import pages

    name = slug.rpartition("/")[2].replace("-", " ").title()
    if text and not text.startswith(("#", "---")):
        text = f"# {name}\n\n{text}"
    front = f"---\naliases: [{', '.join(aliases[slug])}]\n---\n" if slug in aliases else ""
    if text or pages.find(brain.db, slug) is None:
        _call(brain, "put", slug=slug, content=front + (text or f"# {name}"))


def _link(
    brain: Brain,
    aliases: dict[str, list[str]],
    start: str,
    kind: str,
    end: str,
    since: str = "-",
    until: str = "-",
) -> None:
    for slug in (start, end):
        _page(brain, slug, aliases)
    days = {"valid_from": since, "valid_until": until}
    given = {key: day for key, day in days.items() if day != "-"}
    dispatch.call(
        brain,
        dispatch.find_tool("memory_link"),
        {"from": start, "to": end, "relationship": kind, **given},
        "owner",
    )


def _fact(brain: Brain, aliases: dict[str, list[str]], text: str, supersedes: int | None) -> int:
    slug, subject, predicate, value, *days = [part.strip() for part in text.split("|")]
    _page(brain, slug, aliases)
    given: dict[str, Any] = {"subject": subject or None, "supersedes_id": supersedes}
    given |= {key: day for key, day in zip(("valid_from", "valid_until"), days, strict=False) if day != "-"}
    return int(_call(brain, "assert", slug=slug, predicate=predicate, object=value, **given).id)


def main() -> None:
    _quality()
    _speed(QUICK_SIZES if "--quick" in sys.argv else SIZES)


def _quality() -> None:
    rows = []
    for name in SETS:
        outcomes = []
        for case in cases(name):
            with tempfile.TemporaryDirectory() as folder:
                outcomes.append(judge(case, folder))
        right = sum(outcome.right for outcome in outcomes)
        wrong = [line for outcome in outcomes for line in outcome.wrong]
        missed = [line for outcome in outcomes for line in outcome.missed]
        precision, recall = right / max(1, right + len(wrong)), right / max(1, right + len(missed))
        traps = sum(case.is_trap for case in cases(name))
        rows.append(
            (
                *(name, f"{len(outcomes)} ({traps} traps)"),
                f"{precision:.3f}, {verdict(precision, PRECISION, at_least=True)}",
                f"{recall:.3f}, {verdict(recall, RECALL, at_least=True)}",
            )
        )
        for line in [*(f"wrong: {each}" for each in wrong), *(f"missed: {each}" for each in missed)]:
            print(line)
    show("Contradictions", rows, ("set", "cases", "precision", "recall"))


def _speed(sizes: tuple[int, ...]) -> None:
    rows = []
    for facts in sizes:
        with tempfile.TemporaryDirectory() as folder:
            pages = max(200, facts // 5)
            spent, found = _check_of(folder, pages, facts)
        target = verdict(spent, SECONDS) if facts == SIZES[-1] else ""
        rows.append(
            (f"{facts:,}", f"{pages:,}", f"{found:,}", f"{spent:.2f}", f"{1e6 * spent / facts:.1f}", target)
        )
    show("Check of the whole memory", rows, ("facts", "pages", "findings", "CPU s", "µs a fact", "target"))


def _check_of(folder: str, pages: int, facts: int) -> tuple[float, int]:
    settings = Settings(db_path=os.path.join(folder, "memory.db"), home=folder, cwd=folder)
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        brain.db.write(_filler(pages, facts))
        started = time.process_time()
        record = _call(brain, "check", limit=1)
        return time.process_time() - started, record.total


def _filler(pages: int, facts: int) -> Callable[[Any], None]:
    """A memory of many people and companies; a few facts in a hundred contradict another."""
    from quaid.model import facts as factss, page as page_model
    from quaid.storage import facts as assertions, page_edits

    chance = random.Random(7)
    now = "2026-04-20T12:00:00Z"
    firms = max(1, pages // 10)

    def work(tx: Any) -> None:
        ids = []
        for number in range(pages):
            slug = f"companies/firm-{number}" if number < firms else f"people/person-{number}"
            text = "\n".join(_sentences(chance, number, firms))
            built = page_model.build_page(slug, {}, text, "", fallback_title=None)
            ids.append(
                page_edits.save(tx, built, uuid=f"u{number}", now=now, expected_version=None, cut=False).id
            )
        for number in range(facts):
            who, firm = firms + number % (pages - firms), chance.randrange(firms)
            predicate = chance.choice(("works_at", "knows", "invested_in", "lives_in", "attended"))
            value = f"Firm {firm}" if predicate != "lives_in" else f"Town {chance.randrange(50)}"
            year = chance.randrange(1900, 2026)
            since, until = f"{year}-01-01", None if chance.random() < 0.02 else f"{year + 1}-01-01"
            given = factss.FactInput(f"Person {who}", predicate, value, since, until)
            assertions.add_fact(tx, ids[who], given, now)
            if number % 5 == 0:
                tx.execute(
                    "INSERT INTO links (from_page_id, to_page_id, relationship, valid_from, created_at)"
                    " VALUES (?, ?, 'works_at', ?, ?)",
                    (ids[who], ids[firm], since, now),
                )

    return work


def _sentences(chance: random.Random, number: int, firms: int) -> Iterator[str]:
    yield f"# {'Firm' if number < firms else 'Person'} {number}\n"
    for _ in range(16):
        yield " ".join(chance.choices(WORDS, k=14)).capitalize() + "."
    if number % 10 == 0:
        yield f"\nShe left Firm {chance.randrange(firms)} in {chance.randrange(2001, 2026)}."
        yield "He quit Firm 1 in May 2020."


if __name__ == "__main__":
    main()
