"""Contradictions are checked by themselves, and a repeated check finds what a new one finds."""

import random
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.operations import dispatch, facts
from quaid.operations.facts import ContradictionMonitor
from quaid.storage.contradictions import Contradictions, DepartureTexts

TODAY = "2026-11-18"
PEOPLE = ("Ada Berg", "Bo Lund", "Cy Moe", "Ada Moe")
PLACES = ("Oslo", "Bergen", "Rome")
FIRMS = ("River", "Hexa", "Brex")


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def change(brain: Brain, dice: random.Random) -> None:
    """Make a random change, of which some are refused."""
    person, other, firm, place = (dice.choice(names) for names in (PEOPLE, PEOPLE, FIRMS, PLACES))
    page, company = f"people/{slug(person)}", f"companies/{slug(firm)}"
    day = f"2026-0{dice.randint(1, 9)}-0{dice.randint(1, 9)}"
    texts = (
        f"{person} left {firm} on {day}.",
        f"{other} no longer works at {firm}.",
        f"{person} lives in {place}.",
        f"Works with [[people/{slug(other)}]] at [[{company}]].",
    )
    alias = f"aliases: [{dice.choice((*PEOPLE, *FIRMS))}]\n" if dice.random() < 0.2 else ""
    actions = [
        lambda: run(
            *(brain, "put"),
            slug=dice.choice((page, company)),
            content=f"---\ntitle: {dice.choice((person, firm))}\ntype: person\n{alias}---\n"
            f"{dice.choice(texts)}\n\n---\n\n"
            f"- **{day}** | note — {dice.choice(texts)}\n",
        ),
        lambda: run(brain, "assert", slug=page, predicate="works_at", object=firm, valid_from=day),
        lambda: run(brain, "assert", slug=page, predicate="lives_in", object=place, subject=other),
        lambda: run(brain, "assert", slug=company, predicate="works_at", object=firm, subject=person),
        lambda: run(brain, "link", **{"from": page, "to": company}, relationship="works_at", valid_until=day),
        lambda: run(brain, "rename", slug=page, new_slug=f"people/{slug(other)}"),
        lambda: run(brain, "forget", slug=page, yes=True),
        lambda: run(brain, "merge", slug=page, other=f"people/{slug(other)}", into=page, yes=True),
        lambda: run(brain, "revert", slug=page, to=1),
    ]
    try:
        dice.choices(actions, weights=(8, 4, 3, 3, 3, 1, 1, 1, 1))[0]()
    except QuaidError:
        pass


@pytest.mark.parametrize("seed", range(3))
def test_a_repeated_check_finds_what_a_new_one_finds(brain: Brain, seed: int) -> None:
    dice, texts = random.Random(seed), DepartureTexts()
    found: set[str] = set()
    for _ in range(60):
        for _ in range(dice.randint(1, 3)):
            change(brain, dice)
        with brain.db.reading():
            repeated = Contradictions(brain.db).check(None, None, TODAY, texts)
            new = Contradictions(brain.db).check(None, None, TODAY)
        assert repeated == new
        found |= {finding.type for finding in new.findings}
    assert {"temporal", "cross_page"} <= found


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_change_is_checked_when_it_is_quiet(brain: Brain) -> None:
    clock = Clock()
    monitor = ContradictionMonitor(clock)
    run(brain, "put", slug="people/ada", content="# Ada")
    for city in ("Oslo", "Rome"):
        brain.db.write(
            lambda tx, city=city: tx.execute(  # type: ignore[misc]
                "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, valid_from, created_at)"
                " VALUES (1, 'Ada', 'ada', 'lives_in', ?, '2026-01-01', '2026-01-01T00:00:00Z')",
                (city,),
            )
        )
    assert not monitor.look(brain)
    clock.now += facts.QUIET_SECONDS + 0.1
    assert monitor.look(brain)
    record = run(brain, "contradictions")
    assert (record.total, record.changed_pages) == (1, 0)
    clock.now += 1_000
    assert not monitor.look(brain)
    run(brain, "put", slug="people/bo", content="# Bo")
    assert not monitor.look(brain)
    clock.now += facts.QUIET_SECONDS + 0.1
    assert monitor.look(brain)


def test_a_steady_stream_of_changes_is_checked_after_a_while(brain: Brain) -> None:
    clock = Clock()
    monitor = ContradictionMonitor(clock)
    checked = []
    for number in range(80):
        run(brain, "put", slug=f"notes/{number}", content=f"# Note {number}")
        clock.now += 1
        checked.append(monitor.look(brain))
    assert sum(checked) == 1


def test_nothing_is_checked_at_the_start_if_it_was_checked_today(brain: Brain) -> None:
    clock = Clock()
    run(brain, "put", slug="people/ada", content="# Ada")
    run(brain, "check")
    monitor = ContradictionMonitor(clock)
    monitor.look(brain)
    clock.now += facts.QUIET_SECONDS + 0.1
    assert not monitor.look(brain)
    later = Brain(brain.settings, clock=lambda: 4_000_000_000.0)
    with later:
        clock.now += facts.QUIET_SECONDS + 0.1
        assert monitor.look(later)  # another day
