"""Rules that find where the memory disagrees with itself, each finding with both sides.

Knows the four kinds: a fact whose link has ended, a text that says it is over (core.over), two values of a predicate
that has one at a time, a truth older than its evidence. Does not know where anything is stored.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from quaid.core import dates
from quaid.core.facts import needles, object_key, value_key
from quaid.core.links import RELATED
from quaid.core.predicates import INVERSE, canonical, family
from quaid.core.told_dates import dates_in
from quaid.core.world import STALE_DAYS, Claim, Tie, Whom, World, claims, is_current, title

MOST_LOOKS = 20
"""Values that one is compared with before it is taken to agree with the rest."""

_NEVER = "~"  # after every day


class Cite(NamedTuple):
    """One side of a contradiction: where it stands, in which words."""

    page_id: int
    quote: str
    part: str
    """truth, timeline or frontmatter; "" when the words are still to be found in the page."""
    line: int | None
    source: str
    """What says so besides a text: fact 12 (meeting/7), link 3."""
    needles: tuple[str, ...] = ()
    """Words by which the place in the page can be found."""
    fact: int | None = None
    link: int | None = None
    """The row that says so; a text has none."""
    says: str = ""
    """What the row says, as in lives_in Oslo."""
    since: str | None = None
    until: str | None = None
    object: str = ""
    """Of what a fact says something: a text that mentions it may still say the same."""
    recorded_at: str = ""
    """When a fact without evidence was written down: a text that changed later is not what it was taken from."""


class Finding(NamedTuple):
    """One contradiction."""

    type: str
    page_id: int
    other_page_id: int | None
    fingerprint: str
    description: str
    cites: tuple[Cite, ...]
    day: str | None = None
    """When it is over, where one side says that it is."""


def find(world: World, type: str | None = None) -> list[Finding]:
    """Every contradiction of the world, or those of one type; each once."""
    found: dict[str, Finding] = {}
    all_claims = claims(world) if type != "stale" else []
    rules: list[Iterator[Finding]] = []
    if type in (None, "temporal"):
        from quaid.core.over import said_to_be_over

        rules += [ended_links(world, all_claims), said_to_be_over(world, all_claims)]
    if type in (None, "cross_page"):
        rules.append(conflicts(world, all_claims))
    if type in (None, "stale"):
        rules.append(stale(world))
    for rule in rules:
        for finding in rule:
            found.setdefault(finding.fingerprint, finding)
    return list(found.values())


def fingerprint(*parts: object) -> str:
    """What makes a finding the same finding, whatever words describe it."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


def cite_fact(claim: Claim) -> Cite:
    """A fact as one side: in the words that were given for it, else in its own."""
    fact = claim.fact
    own = f"{fact.subject} {fact.predicate} {fact.object}"
    time = "".join(
        [f" since {fact.since}" if fact.since else "", f" until {fact.until}" if fact.until else ""]
    )
    source = f"fact {fact.id}" + (f", {fact.source}" if fact.source else "")
    words = needles(fact.evidence, fact.object)
    return Cite(
        *(fact.page_id, fact.evidence or own + time, "", None, source, words),
        *(fact.id, None, f"{claim.predicate} {claim.says}", fact.since, fact.until),
        object=fact.object,
        recorded_at="" if fact.evidence else fact.recorded_at,
    )


def cite_link(world: World, tie: Tie) -> Cite:
    """A link as one side."""
    page = world.pages.get(tie.to_id)
    target, name = (page.slug, page.title) if page else ("?", "?")
    time = "".join([f" since {tie.since}" if tie.since else "", f" until {tie.until}" if tie.until else ""])
    quote = f"{tie.relationship} {target}{time}"
    return Cite(
        *(tie.from_id, quote, tie.part or "links", tie.line, f"link {tie.id}", ()),
        *(None, tie.id, f"{tie.relationship} {name}", tie.since, tie.until),
    )


def ended_links(world: World, all_claims: list[Claim]) -> Iterator[Finding]:
    """Facts that stand although the link that says the same has ended, and no later one took its place."""
    between: dict[tuple[int, int], list[Tie]] = {}
    for tie in world.links:
        between.setdefault((tie.from_id, tie.to_id), []).append(tie)
    for claim in all_claims:
        if not (isinstance(claim.subject, int) and isinstance(claim.object, int)):
            continue
        ties = [tie for tie in between.get((claim.subject, claim.object), ()) if _ends(tie, claim.predicate)]
        turned = INVERSE.get(claim.predicate)
        if turned:
            ties += [
                tie
                for tie in between.get((claim.object, claim.subject), ())
                if _ends(tie, turned, exactly=True)
            ]
        if not ties or not is_current(claim.since, claim.until, world.today):
            continue
        last = max(ties, key=lambda tie: tie.until or _NEVER)
        ended = last.until
        if ended is None or ended > world.today or (claim.since is not None and claim.since >= ended):
            continue
        target = world.pages[claim.object].slug
        yield Finding(
            "temporal",
            claim.subject,
            claim.fact.page_id if claim.fact.page_id != claim.subject else claim.object,
            fingerprint("ended link", claim.subject, claim.predicate, claim.object, last.id, ended),
            f"{claim.about} {claim.fact.predicate} {claim.says} stands as a fact, but the link {last.relationship}"
            f" to {target} ended on {ended}.",
            (cite_fact(claim), cite_link(world, last)),
            ended,
        )


def _ends(tie: Tie, predicate: str, exactly: bool = False) -> bool:
    """Whether the end of a link is the end of what a fact says: leaving a company ends every post there."""
    relationship = canonical(tie.relationship)
    if relationship == predicate:
        return True
    return not exactly and relationship in ("works_at", RELATED) and family(predicate) in ("work", "post")


def conflicts(world: World, all_claims: list[Claim]) -> Iterator[Finding]:
    """Two values at the same time of a predicate that has one. One after the other is no conflict."""
    groups: dict[tuple[Whom, str], list[Claim]] = {}
    for claim in all_claims:
        if claim.predicate in world.single:
            groups.setdefault((claim.subject, claim.predicate), []).append(claim)
        turned = INVERSE.get(claim.predicate)
        if turned in world.single:
            name = title(world, claim.object, claim.says)
            turned_round = Claim(claim.fact, turned, claim.object, claim.subject, name, claim.about)
            groups.setdefault((claim.object, turned), []).append(turned_round)
    for group in groups.values():
        if len({claim.object for claim in group}) > 1:
            yield from _overlapping(world, group)


def _overlapping(world: World, group: list[Claim]) -> Iterator[Finding]:
    """Each value against the first other one that holds at the same time."""
    begun = [
        claim
        for claim in group
        # One that ended on its first day was corrected: it never held.
        if claim.since is None or (claim.since <= world.today and claim.since != claim.until)
    ]
    spans = sorted(
        [(*_span(claim, world.today), claim.fact.id, claim) for claim in begun], key=lambda each: each[:3]
    )
    standing: dict[Whom, tuple[str, str, Claim]] = {}
    for start, end, _, claim in spans:
        standing = {key: each for key, each in standing.items() if each[1] > start}
        for first, _, other in list(standing.values())[:MOST_LOOKS]:
            if first < end and not _agree(other, claim):
                yield _conflict(other, claim)
                break
        before = standing.get(claim.object)
        if before is None or before[1] < end:
            standing[claim.object] = (start, end, claim)


def _span(claim: Claim, today: str) -> tuple[str, str]:
    """When a fact holds for certain. One without a beginning holds on its last day; what ends later holds now."""
    until = claim.until if claim.until and claim.until <= today else None
    return claim.since or until or "9999-12-31", until or _NEVER


def _conflict(one: Claim, other: Claim) -> Finding:
    page_id = one.subject if isinstance(one.subject, int) else min(one.fact.page_id, other.fact.page_id)
    others = [each for each in (other.fact.page_id, one.fact.page_id) if each != page_id]
    names = sorted((str(one.object), str(other.object)))
    return Finding(
        "cross_page",
        page_id,
        others[0] if others else None,
        fingerprint("cross_page", one.subject, one.predicate, *names),
        f"{one.about} {one.predicate} is said to be both {one.says} ({_time(one)}) and {other.says}"
        f" ({_time(other)}).",
        (cite_fact(one), cite_fact(other)),
    )


def _time(claim: Claim) -> str:
    since = f"since {claim.since}" if claim.since else "since an unknown day"
    return f"{since}, until {claim.until}" if claim.until else since


def _agree(one: Claim, other: Claim) -> bool:
    """Whether two values can be the same thing, told more or less exactly."""
    if one.object == other.object or object_key(one.says) == object_key(other.says):
        return True
    if one.predicate == "role":
        return _roles(one.says) <= _roles(other.says) or _roles(other.says) <= _roles(one.says)
    if _within(one.says, other.says):
        return True
    if value_key(one.says) or value_key(other.says):
        return False  # the commas of a number part nothing
    first, second = _parts(one.says), _parts(other.says)
    short, long = sorted((first, second), key=len)
    return len(short) < len(long) and short in (long[: len(short)], long[-len(short) :])


def _within(one: str, other: str) -> bool:
    """Whether both are dates and one lies within the other: 1980 and 1980-07-04."""
    spans = [dates_in(text) for text in (one, other)]
    if any(
        len(told) != 1 or told[0].start or told[0].end < len(text)
        for told, text in zip(spans, (one, other), strict=True)
    ):
        return False
    a, b = spans[0][0], spans[1][0]
    return (a.first <= b.first and b.last <= a.last) or (b.first <= a.first and a.last <= b.last)


def _parts(text: str) -> list[str]:
    return [object_key(part) for part in text.split(",")]


_CHIEF = {"executive": "ceo", "technology": "cto", "technical": "cto", "financial": "cfo", "operating": "coo"}


def _roles(text: str) -> set[str]:
    """The words of a role; to be a founder as well says nothing against another one."""
    text = re.sub(
        r"\bchief (\w+) officer\b", lambda role: _CHIEF.get(role[1].lower(), role[0]), text, flags=re.I
    )
    text = re.sub(
        r"\bvice president\b", "vp", re.sub(r"\bco-?founder\b", "founder", text, flags=re.I), flags=re.I
    )
    return set(re.findall(r"\w+", text.lower())) - {"and", "of", "the", "at", "founder"}


def stale(world: World) -> Iterator[Finding]:
    """Pages whose evidence is at least thirty days newer than their truth, and than the last look at it."""
    for age in world.ages:
        base = max(age.truth_updated_at, age.reviewed_at or "")
        if base >= age.timeline_updated_at:
            continue
        days = dates.days(age.timeline_updated_at[:10]) - dates.days(base[:10])
        days -= age.timeline_updated_at[10:] < base[10:]  # of the last day not all has passed
        if days >= STALE_DAYS:
            page = world.pages[age.page_id]
            yield Finding(
                "stale",
                age.page_id,
                None,
                fingerprint("stale", age.page_id, base),
                f"{page.title}: the timeline is {days} days newer than the truth ({base[:10]}).",
                (
                    Cite(age.page_id, "", "truth", 1, f"changed on {age.truth_updated_at[:10]}"),
                    Cite(age.page_id, "", "timeline", None, f"changed on {age.timeline_updated_at[:10]}"),
                ),
            )
