"""What becomes of facts and links when a person keeps one side of a contradiction.

Knows which of them say what was not kept, and how far each still holds. Nothing is taken away: what gives way ends.
Does not know where anything is stored.
"""

from typing import NamedTuple

from quaid.core.contradictions import Cite, Finding, cite_link
from quaid.core.predicates import INVERSE, family
from quaid.core.world import Claim, Tie, Whom, World, claims, is_current


class Giving(NamedTuple):
    """A fact or a link that gives way."""

    kind: str
    """fact or link."""
    id: int
    page_id: int
    says: str
    since: str | None
    """From when on it holds now."""
    until: str | None
    """Until when; none: it goes on, since it was its end that was wrong."""
    successor: int | None = None
    """The fact that took its place."""

    @property
    def never_held(self) -> bool:
        return self.since is not None and self.since == self.until


def giving_way(world: World, finding: Finding, kept: int) -> list[Giving]:
    """What changes when the side with this number, 0 or 1, is kept. A text gives way only where it is written."""
    winner, loser = finding.cites[kept], finding.cites[1 - kept]
    known = claims(world)
    lost = next((each for each in known if each.fact.id == loser.fact), None)
    tie = next((each for each in world.links if each.id == loser.link), None)
    if winner.fact is None and winner.link is None:
        return _over(world, finding, known, lost, tie)
    if lost is not None:
        # Every fact that says so, on whichever page: one alone would leave the others.
        won = next((each for each in known if each.fact.id == winner.fact), None)
        found = [_shortened(each, won, finding.day, world.today) for each in known if _says(each, lost)]
        return [each for each in found if each is not None]
    if tie is None or is_of_a_text(tie):
        return []
    return [Giving("link", tie.id, tie.from_id, _said(world, tie), tie.since, None)]


def in_texts(world: World, finding: Finding, kept: int) -> list[Cite]:
    """The links out of texts that still say what was not kept: they change with their page alone."""
    loser = finding.cites[1 - kept]
    tie = next((each for each in world.links if each.id == loser.link), None)
    if tie is not None:
        return [cite_link(world, tie)] if is_of_a_text(tie) else []
    if loser.fact is None or finding.cites[kept].link is not None or finding.cites[kept].fact is not None:
        return []
    lost = next((each for each in claims(world) if each.fact.id == loser.fact), None)
    ties = [each for each in world.links if lost and _binds(each, lost.subject, lost.object, lost.predicate)]
    return [cite_link(world, each) for each in ties if is_of_a_text(each) and _stands(each, world.today)]


def is_of_a_text(tie: Tie) -> bool:
    """Whether a text makes this link, anew with every write of its page."""
    return tie.part is not None


def _over(
    world: World, finding: Finding, known: list[Claim], lost: Claim | None, tie: Tie | None
) -> list[Giving]:
    """A text is right that it is over: whatever of that kind still stands between the two ends."""
    if lost is not None:
        ends = (lost.subject, lost.object, lost.predicate)
    elif tie is not None:
        ends = (tie.from_id, tie.to_id, tie.relationship)
    else:
        return []
    standing = [
        each
        for each in known
        if (each.subject, each.object) == ends[:2]
        and family(each.predicate) == family(ends[2])
        and _stands(each, world.today)
    ]
    found = [_shortened(each, None, finding.day, world.today) for each in standing]
    ties = [each for each in world.links if _binds(each, *ends) and _stands(each, world.today)]
    return [
        *(each for each in found if each is not None),
        *(
            Giving(
                *("link", each.id, each.from_id, _said(world, each), each.since),
                _no_sooner(finding.day or world.today, each.since),
            )
            for each in ties
            if not is_of_a_text(each)
        ),
    ]


def _binds(tie: Tie, subject: Whom, target: Whom, relationship: str) -> bool:
    return (tie.from_id, tie.to_id) == (subject, target) and family(tie.relationship) == family(relationship)


def _stands(each: Claim | Tie, today: str) -> bool:
    return is_current(each.since, each.until, today)


def _says(one: Claim, other: Claim) -> bool:
    wanted = (other.subject, other.predicate, other.object)
    return wanted in (
        (one.subject, one.predicate, one.object),
        (one.object, INVERSE.get(one.predicate), one.subject),
    )


def _shortened(lost: Claim, won: Claim | None, over: str | None, today: str) -> Giving | None:
    fact = lost.fact
    says = f"{lost.about} {lost.predicate} {lost.says}"
    if won is not None and won.until and won.until <= today:
        if fact.since and fact.since >= won.until:
            return None  # it began when the other was over
        if fact.since and fact.since >= (won.since or "") and (fact.until is None or fact.until > won.until):
            return Giving("fact", fact.id, fact.page_id, says, won.until, fact.until)
    day = (won.since if won is not None else over) or today
    if fact.until is not None and fact.until <= day:
        return None
    follows = won is not None and (won.subject, won.predicate) == (lost.subject, lost.predicate)
    until = _no_sooner(day, fact.since)
    if fact.until is not None and fact.until <= until:
        return None
    successor = won.fact.id if won is not None and follows else None
    return Giving("fact", fact.id, fact.page_id, says, fact.since, until, successor)


def _no_sooner(day: str, since: str | None) -> str:
    """Nothing ends before it began: what is wrong from its first day on never held."""
    return max(day, since or day)


def _said(world: World, tie: Tie) -> str:
    names = [world.pages[each].title if each in world.pages else "?" for each in (tie.from_id, tie.to_id)]
    return f"{names[0]} {tie.relationship} {names[1]}"
