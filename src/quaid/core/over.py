"""Texts that say it is over while a link or a fact says that it still holds.

Knows how the words of a text (core.leaving) meet the open ties of a page. Does not know where anything is stored.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from quaid.core import timeline
from quaid.core.contradictions import Cite, Finding, cite_fact, cite_link, fingerprint
from quaid.core.leaving import HERE, Departure, comebacks, departures, may_tell
from quaid.core.links import RELATED
from quaid.core.names import fold
from quaid.core.predicates import canonical, family, post
from quaid.core.sentences import OWN, Reader
from quaid.core.told_dates import dates_in
from quaid.core.world import Claim, Text, World, is_current, parts_of

SCOPES = {
    "work": ("work", "post"),
    "move": ("work", "post", "home"),
    "board": ("board",),
    "home": ("home",),
    "marriage": ("marriage",),
    "property": ("property",),
    "parent": ("parent",),
}
"""Which families of ties a kind of departure ends."""

_TOKEN = re.compile(r"[\w&+#][\w'’&.+#/-]*|[,;()]")
_COMPANY = {"inc", "llc", "ltd", "gmbh", "corp", "plc", "ag", "as", "limited", "corporation"}
_FOLLOWS = set(
    "in on for to after as when because before this last during since amid following due and but by around back"
    " earlier later early late mid where which who over upon once while yesterday permanently together again is was"
    " until from through any anymore completely altogether recently january february march april may june july august"
    " september october november december".split()
)
_ERRAND = re.compile(
    r"for (?:lunch|dinner|breakfast|the day|home|a meeting|a conference|the weekend|a week|a trip|the airport)\b"
    r"|to (?:catch|get|pick|buy|meet|attend|go home|fetch|see|visit)\b"
    r"|in (?:a hurry|tears|charge|limbo|the lurch|debt|trouble|ruins|good hands|the hands|peace)\b"
    r"|on (?:a|the) (?:trip|train|bus|plane|way|read|shelf)\b|as (?:is|it was)\b"
    r"|by (?:train|bus|car|bike|plane|taxi)\b",
    re.IGNORECASE,
)


class Open(NamedTuple):
    """Something that still holds between a page and something else."""

    relationship: str
    since: str | None
    names: frozenset[str]
    """What the other side is called, folded."""
    shown: str
    target: int | None
    cite: Cite


class _Ties:
    """The open ties of each page, by the page."""

    def __init__(self, world: World, all_claims: list[Claim]) -> None:
        self._world = world
        self._links: dict[int, list[int]] = {}
        self._claims: dict[int, list[Claim]] = {}
        for place, tie in enumerate(world.links):
            if is_current(tie.since, tie.until, world.today) and canonical(tie.relationship) != RELATED:
                self._links.setdefault(tie.from_id, []).append(place)
        for claim in all_claims:
            if isinstance(claim.subject, int) and is_current(claim.since, claim.until, world.today):
                self._claims.setdefault(claim.subject, []).append(claim)

    def of(self, page_id: int) -> Iterator[Open]:
        world = self._world
        for place in self._links.get(page_id, ()):
            tie = world.links[place]
            if family(tie.relationship):
                names = frozenset(world.names.of(tie.to_id))
                shown = world.pages[tie.to_id].title if tie.to_id in world.pages else "?"
                yield Open(tie.relationship, tie.since, names, shown, tie.to_id, cite_link(world, tie))
        for claim in self._claims.get(page_id, ()):
            if family(claim.predicate):
                target = claim.object if isinstance(claim.object, int) else None
                names = frozenset({fold(claim.says), *(world.names.of(target) if target is not None else ())})
                yield Open(claim.predicate, claim.since, names, claim.says, target, cite_fact(claim))


def said_to_be_over(world: World, all_claims: list[Claim]) -> Iterator[Finding]:
    """Each tie that is open while a text says that it ended after it had begun."""
    ties = _Ties(world, all_claims)
    for text in world.texts:
        page = world.pages[text.page_id]
        is_person = page.type == "person"
        names = world.names.of(text.page_id)
        reader = Reader(frozenset(names | parts_of(page.title)) if is_person else frozenset(names), is_person)
        for departure in departures(text.truth, reader):
            yield from _against(world, ties, text, "truth", departure)
        if may_tell(text.timeline):
            for entry in timeline.parse(text.timeline):
                for departure in departures(entry.summary, reader, entry.line, entry.date):
                    yield from _against(world, ties, text, "timeline", departure)
                for departure in departures(entry.detail, reader, entry.line + 1, entry.date):
                    yield from _against(world, ties, text, "timeline", departure)


def _against(world: World, ties: _Ties, text: Text, part: str, departure: Departure) -> Iterator[Finding]:
    subject = text.page_id if departure.subject == OWN else world.names.page(departure.subject)
    if subject is None or (departure.first and departure.first > world.today):
        return
    ended = [tie for tie in ties.of(subject) if _is_ended(tie, departure)]
    if departure.object == HERE:
        here = [tie for tie in ended if tie.target == text.page_id]
        ended = here if subject != text.page_id else ended if len({tie.shown for tie in ended}) == 1 else []
    else:
        said = f" {fold(departure.object)} "
        named = [
            any(f" {name} " in said for name in tie.names)
            and _is_named(departure.object, tie.names, departure.scope)
            for tie in ended
        ]
        wanted = departure.scope != "parent"  # a new owner is named, and it is the others' time that is over
        ended = [tie for tie, is_named in zip(ended, named, strict=True) if is_named is wanted]
    written = text.truth if part == "truth" else text.timeline
    told: set[int | str] = set()
    for tie in ended:
        key = tie.target if tie.target is not None else fold(tie.shown)
        if key not in told and not _came_back(written, tie, departure):
            told.add(key)
            yield _finding(world, text, part, subject, tie, departure)


def _is_ended(tie: Open, departure: Departure) -> bool:
    """Whether the tie is one that the words end, and began before that."""
    kind = family(tie.relationship)
    if departure.scope == "post":
        if kind != "post" or post(tie.relationship) != departure.post:
            return False
    elif departure.scope == "study":
        if canonical(tie.relationship) != "studies_at":
            return False
    elif kind not in SCOPES[departure.scope]:
        return False
    if not departure.first:
        return tie.since is None or not departure.is_event
    exact = departure.first == departure.last
    return tie.since is None or tie.since < departure.last or (not exact and tie.since == departure.last)


def _is_named(words: str, names: frozenset[str], scope: str) -> bool:
    """Whether the words begin with one of the names, and the name ends there."""
    tokens = list(_TOKEN.finditer(words[:200]))
    for start in _starts(tokens):
        for name in names:
            end = _match(tokens, start, name.split())
            if end and _ends_there(words, tokens, end, scope):
                return True
    return False


def _starts(tokens: list["re.Match[str]"]) -> Iterator[int]:
    """Where a name can begin: at first, behind "the", and behind each name of a list."""
    at = 1 if tokens and tokens[0][0].lower() == "the" else 0
    for _ in range(4):
        yield at
        if at == 1:
            yield 0
        while at < len(tokens) and (tokens[at][0][0].isupper() or "/" in tokens[at][0]):
            at += 1
        while at < len(tokens) and tokens[at][0].lower() in (",", "and"):
            at += 1
        if at >= len(tokens) or not (tokens[at][0][0].isupper() or "/" in tokens[at][0]):
            return


def _match(tokens: list["re.Match[str]"], start: int, name: list[str]) -> int:
    """Behind which token a name ends that begins at a token; 0: it is another name."""
    at = start
    have: list[str] = []
    while at < len(tokens) and len(have) < len(name):
        word = tokens[at][0]
        have += fold(re.sub(r"['’]s\Z", "", word)).split()
        at += 1
    return at if have == name else 0


def _ends_there(words: str, tokens: list["re.Match[str]"], end: int, scope: str) -> bool:
    last = tokens[end - 1][0]
    rest = words[tokens[end - 1].end() :].lstrip()
    if last.endswith(("'s", "’s")):
        return scope == "board" and bool(re.match(r"(?:\w+ )?board\b", rest))
    while end < len(tokens) and tokens[end][0].lower().strip(".") in _COMPANY and tokens[end][0][0].isupper():
        rest = words[tokens[end].end() :].lstrip()
        end += 1
    if not rest or not rest[0].isalnum() or rest[0].isdigit():
        return True
    if _ERRAND.match(rest):
        return False
    following = rest.split(None, 1)[0].strip(".,;:").lower()
    if following == "at":
        return bool(re.match(r"at the (?:end|start|beginning)|at age", rest))
    return following in _FOLLOWS or (following in _ROLES and scope == "work")


_ROLES = {
    "engineer",
    "employee",
    "executive",
    "manager",
    "designer",
    "ceo",
    "cto",
    "cfo",
    "researcher",
    "staffer",
}


def _came_back(written: str, tie: Open, departure: Departure) -> bool:
    """Whether the same page says that it began again, then or later."""
    for sentence in comebacks(written):
        if sentence == departure.quote or not any(f" {name} " in f" {fold(sentence)} " for name in tie.names):
            continue
        told = dates_in(sentence)
        if not told or not departure.first or told[-1].last >= departure.first:
            return True
    return False


def _finding(world: World, text: Text, part: str, subject: int, tie: Open, departure: Departure) -> Finding:
    who = world.pages[subject].title if subject in world.pages else departure.subject
    when = ""
    if departure.first:
        when = f" ({departure.first if departure.first == departure.last else departure.first[:4]})"
    other = text.page_id if text.page_id != subject else tie.target
    return Finding(
        "temporal",
        subject,
        other,
        fingerprint(
            "over", subject, tie.target or fold(tie.shown), family(tie.relationship), departure.first
        ),
        f"The text says that it is over between {who} and {tie.shown}{when}, but {tie.relationship} still stands.",
        (Cite(text.page_id, departure.quote, part, departure.line, ""), tie.cite),
        # Of a month or a year only its end is certain.
        min(departure.last, world.today) if departure.first else None,
    )
