"""Find contradictions in the memory, and decide which facts and links end when a contradiction is resolved.

There are four kinds: a fact that is current although the corresponding link has ended, a fact or link that is
current although it has ended according to the text of a page, two values of a single-valued predicate, and a
compiled truth (the text of a page above the timeline) that is older than the timeline of the page.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from quaid.model import timeline as timelines
from quaid.model.dates import find_dates, whole_date
from quaid.model.english import (
    IMPLIED_OBJECT,
    OWNER,
    Departure,
    PageOwner,
    comebacks,
    find_departures,
    may_mention_departure,
    pairs,
    pattern,
    word_list,
)
from quaid.model.facts import (
    INVERSE_PREDICATES,
    EntityRef,
    ResolvedFact,
    Snapshot,
    canonical_predicate,
    entity_title,
    fact_needles,
    is_valid_on,
    object_key,
    person_name_parts,
    post_of_predicate,
    predicate_family,
    resolve_facts,
    value_key,
)
from quaid.model.links import RELATED, GraphLink
from quaid.model.slug import fold_name

MOST_COMPARED = 20
"""A value is compared with at most this many other values; the rest are assumed to agree with it."""

_OPEN_END = "~"  # sorts after every date


class Citation(NamedTuple):
    """One side of a contradiction: its page, position and wording."""

    page_id: int
    quote: str
    part: str
    """truth, timeline, frontmatter, or "links" for a link that is not in the page; "" if not known yet."""
    line: int | None
    source: str
    """The origin of the statement, such as `fact 12, meeting/7` or `changed on 2026-04-25`; "" for text."""
    needles: tuple[str, ...] = ()
    """Strings by which the position in the page can be found."""
    fact: int | None = None
    """The id of the fact; None if this side is a link or text."""
    link: int | None = None
    """The id of the link; None if this side is a fact or text."""
    says: str = ""
    """The statement of the fact or link, such as lives_in Oslo."""
    since: str | None = None
    until: str | None = None
    object: str = ""
    """The object of the fact. A line that mentions this object may be the source of the fact."""
    recorded_at: str = ""
    """The time when a fact without evidence was recorded.

    The line that states the fact is looked up in the version that the page had at that time.
    """


class ContradictionFinding(NamedTuple):
    """A contradiction with its two sides."""

    type: str
    page_id: int
    other_page_id: int | None
    fingerprint: str
    description: str
    cites: tuple[Citation, ...]
    day: str | None = None
    """The day on which the relation ended, if one of the sides gives it."""


def find_contradictions(world: Snapshot, type: str | None = None) -> list[ContradictionFinding]:
    """Return all contradictions in the snapshot, or all of one type, without duplicates."""
    findings: dict[str, ContradictionFinding] = {}
    all_claims = resolve_facts(world) if type != "stale" else []
    rules: list[Iterator[ContradictionFinding]] = []
    if type in (None, "temporal"):
        rules += [ended_links(world, all_claims), ended_in_text(world, all_claims)]
    if type in (None, "cross_page"):
        rules.append(conflicting_values(world, all_claims))
    if type in (None, "stale"):
        rules.append(_stale_pages(world))
    for rule in rules:
        for finding in rule:
            findings.setdefault(finding.fingerprint, finding)
    return list(findings.values())


def fingerprint(*parts: object) -> str:
    """Return a hash that identifies a finding independently of its wording."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


def cite_fact(claim: ResolvedFact) -> Citation:
    """Return a citation of a fact: its evidence or, without evidence, subject, predicate, object and validity."""
    fact = claim.fact
    own = f"{fact.subject} {fact.predicate} {fact.object}"
    source = f"fact {fact.id}" + (f", {fact.source}" if fact.source else "")
    words = fact_needles(fact.evidence, fact.object)
    quote = fact.evidence or own + _interval_text(fact.since, fact.until)
    return Citation(
        *(fact.page_id, quote, "", None, source, words),
        *(fact.id, None, f"{claim.predicate} {claim.says}", fact.since, fact.until),
        object=fact.object,
        recorded_at="" if fact.evidence else fact.recorded_at,
    )


def cite_link(world: Snapshot, link: GraphLink) -> Citation:
    """Return a citation of a link."""
    page = world.pages.get(link.to_id)
    target, name = (page.slug, page.title) if page else ("?", "?")
    quote = f"{link.relationship} {target}{_interval_text(link.valid_from, link.valid_until)}"
    return Citation(
        *(link.from_id, quote, link.part or "links", link.line, f"link {link.id}", ()),
        *(None, link.id, f"{link.relationship} {name}", link.valid_from, link.valid_until),
    )


def _interval_text(since: str | None, until: str | None) -> str:
    return "".join([f" since {since}" if since else "", f" until {until}" if until else ""])


def ended_links(world: Snapshot, all_claims: list[ResolvedFact]) -> Iterator[ContradictionFinding]:
    """Yield a contradiction for each current fact whose corresponding link has ended.

    There is no contradiction if a later link continues the relation, or if the fact did not begin before the link
    ended.
    """
    between: dict[tuple[int, int], list[GraphLink]] = {}
    for link in world.links:
        between.setdefault((link.from_id, link.to_id), []).append(link)
    for claim in all_claims:
        if not (isinstance(claim.subject, int) and isinstance(claim.object, int)):
            continue
        links = [
            link
            for link in between.get((claim.subject, claim.object), ())
            if _ends_fact(link, claim.predicate)
        ]
        turned = INVERSE_PREDICATES.get(claim.predicate)
        if turned:
            links += [
                link
                for link in between.get((claim.object, claim.subject), ())
                if _ends_fact(link, turned, exactly=True)
            ]
        if not links or not is_valid_on(claim.since, claim.until, world.today):
            continue
        last = max(links, key=lambda link: link.valid_until or _OPEN_END)
        ended = last.valid_until
        if ended is None or ended > world.today or (claim.since is not None and claim.since >= ended):
            continue
        target = world.pages[claim.object].slug
        yield ContradictionFinding(
            "temporal",
            claim.subject,
            claim.fact.page_id if claim.fact.page_id != claim.subject else claim.object,
            fingerprint("ended link", claim.subject, claim.predicate, claim.object, last.id, ended),
            f"{claim.about} {claim.fact.predicate} {claim.says} stands as a fact, but the link {last.relationship}"
            f" to {target} ended on {ended}.",
            (cite_fact(claim), cite_link(world, last)),
            ended,
        )


def _ends_fact(link: GraphLink, predicate: str, exactly: bool = False) -> bool:
    """Return True if the end of a link implies the end of a fact with this predicate.

    Unless `exactly` is set, the end of works_at or related also ends every fact about work or a post.
    """
    relationship = canonical_predicate(link.relationship)
    if relationship == predicate:
        return True
    return (
        not exactly
        and relationship in ("works_at", RELATED)
        and predicate_family(predicate) in ("work", "post")
    )


def conflicting_values(world: Snapshot, all_claims: list[ResolvedFact]) -> Iterator[ContradictionFinding]:
    """Yield the contradictions between values of a single-valued predicate that are valid at the same time."""
    groups: dict[tuple[EntityRef, str], list[ResolvedFact]] = {}
    for claim in all_claims:
        if claim.predicate in world.single:
            groups.setdefault((claim.subject, claim.predicate), []).append(claim)
        turned = INVERSE_PREDICATES.get(claim.predicate)
        if turned in world.single:
            name = entity_title(world, claim.object, claim.says)
            turned_round = ResolvedFact(claim.fact, turned, claim.object, claim.subject, name, claim.about)
            groups.setdefault((claim.object, turned), []).append(turned_round)
    for group in groups.values():
        if len({claim.object for claim in group}) > 1:
            yield from _overlapping(world, group)


def _overlapping(world: Snapshot, group: list[ResolvedFact]) -> Iterator[ContradictionFinding]:
    """Yield, for each value, the contradiction with the first value that disagrees and overlaps in time."""
    begun = [
        claim
        for claim in group
        # A fact that ended on its first day is left out, because it was corrected and was never valid.
        if claim.since is None or (claim.since <= world.today and claim.since != claim.until)
    ]
    spans = sorted(
        [(*_certain_span(claim, world.today), claim.fact.id, claim) for claim in begun],
        key=lambda span: span[:3],
    )
    standing: dict[EntityRef, tuple[str, str, ResolvedFact]] = {}
    for start, end, _, claim in spans:
        standing = {key: span for key, span in standing.items() if span[1] > start}
        for first, _, other in list(standing.values())[:MOST_COMPARED]:
            if first < end and not _agree(other, claim) and not _is_succeeded(claim, other):
                yield _conflict(other, claim)
                break
        before = standing.get(claim.object)
        if before is None or before[1] < end:
            standing[claim.object] = (start, end, claim)


def _certain_span(claim: ResolvedFact, today: str) -> tuple[str, str]:
    """Return the interval in which a fact is certainly valid.

    Without a start date, the interval is the end date alone or, if the fact has not ended, starts on
    9999-12-31. A fact with an end date in the future counts as not ended.
    """
    until = claim.until if claim.until and claim.until <= today else None
    return claim.since or until or "9999-12-31", until or _OPEN_END


def _is_succeeded(claim: ResolvedFact, later: ResolvedFact) -> bool:
    """Return True if a claim has no dates and was recorded before `later` began, so that it has ended."""
    is_undated = claim.since is None and claim.until is None
    return is_undated and later.since is not None and claim.fact.recorded_at[:10] < later.since


def _conflict(one: ResolvedFact, other: ResolvedFact) -> ContradictionFinding:
    page_id = one.subject if isinstance(one.subject, int) else min(one.fact.page_id, other.fact.page_id)
    others = [
        candidate_id for candidate_id in (other.fact.page_id, one.fact.page_id) if candidate_id != page_id
    ]
    names = sorted((str(one.object), str(other.object)))
    return ContradictionFinding(
        "cross_page",
        page_id,
        others[0] if others else None,
        fingerprint("cross_page", one.subject, one.predicate, *names),
        f"{one.about} {one.predicate} is said to be both {one.says} ({_validity_text(one)}) and {other.says}"
        f" ({_validity_text(other)}).",
        (cite_fact(one), cite_fact(other)),
    )


def _validity_text(claim: ResolvedFact) -> str:
    since = f"since {claim.since}" if claim.since else "since an unknown day"
    return f"{since}, until {claim.until}" if claim.until else since


def _agree(one: ResolvedFact, other: ResolvedFact) -> bool:
    """Return True if two values can denote the same thing with different precision."""
    if one.object == other.object or object_key(one.says) == object_key(other.says):
        return True
    if one.predicate == "role":
        first, second = _role_words(one.says), _role_words(other.says)
        return first <= second or second <= first
    if _is_date_within(one.says, other.says):
        return True
    if value_key(one.says) or value_key(other.says):
        return False  # a comma in a number is not a separator
    parts = ([object_key(part) for part in claim.says.split(",")] for claim in (one, other))
    short, long = sorted(parts, key=len)
    return len(short) < len(long) and short in (long[: len(short)], long[-len(short) :])


def _is_date_within(one: str, other: str) -> bool:
    """Return True if both texts are dates and one includes the other, as 1980 includes 1980-07-04."""
    a, b = whole_date(one), whole_date(other)
    if a is None or b is None:
        return False
    return (a.first <= b.first and b.last <= a.last) or (b.first <= a.first and a.last <= b.last)


def _role_words(text: str) -> set[str]:
    """Return the words of a role. "founder" is left out, because it is compatible with any other role."""
    text = text.lower().replace("co-founder", "founder").replace("vice president", "vp")
    text = re.sub(
        r"\bchief (\w+) officer\b", lambda role: pairs("chiefs").get(role[1], role[0]), text
    ).replace("cofounder", "founder")
    return set(re.findall(r"\w+", text)) - {"and", "of", "the", "at", "founder"}


def _stale_pages(world: Snapshot) -> Iterator[ContradictionFinding]:
    """Yield a contradiction for each stale page."""
    for stale in world.stale:
        title = world.pages[stale.page_id].title
        yield ContradictionFinding(
            "stale",
            stale.page_id,
            None,
            fingerprint("stale", stale.page_id, stale.reviewed_at),
            f"{title}: the timeline is {stale.days} days newer than the truth ({stale.reviewed_at[:10]}).",
            (
                Citation(stale.page_id, "", "truth", 1, f"changed on {stale.truth_updated_at[:10]}"),
                Citation(stale.page_id, "", "timeline", None, f"changed on {stale.timeline_updated_at[:10]}"),
            ),
        )


SCOPE_FAMILIES = {
    "work": ("work", "post"),
    "move": ("work", "post", "home"),
    "board": ("board",),
    "home": ("home",),
    "marriage": ("marriage",),
    "property": ("property",),
    "parent": ("parent",),
}
"""Maps each scope of a departure to the predicate families that it ends.

A departure is a statement that someone left a job, school or home. Its scopes "post" and "study" end only some
relations of a family; see _is_ended().
"""

_TOKEN = re.compile(r"[\w&+#][\w'’&.+#/-]*|[,;()]")


class OpenRelation(NamedTuple):
    """A current fact or link of a page."""

    relationship: str
    since: str | None
    names: frozenset[str]
    """Normalized names of the entity on the other side of the relation."""
    shown: str
    target: int | None
    cite: Citation


class _OpenRelations:
    """The current facts and links that a departure may end, by page."""

    def __init__(self, world: Snapshot, all_claims: list[ResolvedFact]) -> None:
        self._world = world
        self._links: dict[int, list[GraphLink]] = {}
        self._claims: dict[int, list[ResolvedFact]] = {}
        for link in world.links:
            if (
                is_valid_on(link.valid_from, link.valid_until, world.today)
                and canonical_predicate(link.relationship) != RELATED
            ):
                self._links.setdefault(link.from_id, []).append(link)
        for claim in all_claims:
            if isinstance(claim.subject, int) and is_valid_on(claim.since, claim.until, world.today):
                self._claims.setdefault(claim.subject, []).append(claim)

    def of(self, page_id: int) -> Iterator[OpenRelation]:
        world = self._world
        for link in self._links.get(page_id, ()):
            if predicate_family(link.relationship):
                names = frozenset(world.names.of(link.to_id))
                shown = world.pages[link.to_id].title if link.to_id in world.pages else "?"
                yield OpenRelation(
                    link.relationship, link.valid_from, names, shown, link.to_id, cite_link(world, link)
                )
        for claim in self._claims.get(page_id, ()):
            if predicate_family(claim.predicate):
                target = claim.object if isinstance(claim.object, int) else None
                names = frozenset(
                    {fold_name(claim.says), *(world.names.of(target) if target is not None else ())}
                )
                yield OpenRelation(claim.predicate, claim.since, names, claim.says, target, cite_fact(claim))


def ended_in_text(world: Snapshot, all_claims: list[ResolvedFact]) -> Iterator[ContradictionFinding]:
    """Yield a contradiction for each current fact or link that has ended according to the text of a page."""
    relations = _OpenRelations(world, all_claims)
    for page_id, truth, timeline in world.texts:
        page = world.pages[page_id]
        is_person = page.type == "person"
        names = world.names.of(page_id)
        owner = PageOwner(
            frozenset(names | person_name_parts(page.title)) if is_person else frozenset(names), is_person
        )
        for departure in find_departures(truth, owner):
            yield from _ended_relations(world, relations, page_id, truth, "truth", departure)
        if may_mention_departure(timeline):
            for entry in timelines.parse(timeline):
                for departure in (
                    *find_departures(entry.summary, owner, entry.line, entry.date),
                    *find_departures(entry.detail, owner, entry.line + 1, entry.date),
                ):
                    yield from _ended_relations(world, relations, page_id, timeline, "timeline", departure)


def _ended_relations(
    world: Snapshot, relations: _OpenRelations, page_id: int, text: str, part: str, departure: Departure
) -> Iterator[ContradictionFinding]:
    """Yield a contradiction for each relation that a departure ended and that did not resume.

    `text` is the part of the page, truth or timeline, that states the departure.
    """
    subject = page_id if departure.subject == OWNER else world.names.page(departure.subject)
    if subject is None or (departure.first and departure.first > world.today):
        return
    ended = [relation for relation in relations.of(subject) if _is_ended(relation, departure)]
    if departure.object == IMPLIED_OBJECT:
        if subject != page_id:
            ended = [relation for relation in ended if relation.target == page_id]
        elif len({relation.shown for relation in ended}) != 1:
            return
    else:
        named_object = f" {fold_name(departure.object)} "
        named = [
            any(f" {name} " in named_object for name in relation.names)
            and _is_named(departure.object, relation.names, departure.scope)
            for relation in ended
        ]
        # If a company got a new parent, the text names the new parent, and the relations to all other parents
        # ended.
        ends_named = departure.scope != "parent"
        ended = [relation for relation, is_named in zip(ended, named, strict=True) if is_named is ends_named]
    reported: set[int | str] = set()
    for relation in ended:
        key = relation.target if relation.target is not None else fold_name(relation.shown)
        if key not in reported and not _came_back(text, relation, departure):
            reported.add(key)
            yield _ended_contradiction(world, page_id, part, subject, relation, departure)


def _is_ended(relation: OpenRelation, departure: Departure) -> bool:
    """Return True if the departure covers this kind of relation and can have ended it.

    A relation with a start date must have begun before the departure or, if the departure gives only a month
    or year, by the last day of that period. A departure without a date ends such a relation only if it
    describes a state ("no longer at Hexa"), not an event ("left Hexa").
    """
    kind = predicate_family(relation.relationship)
    if departure.scope == "post":
        if kind != "post" or post_of_predicate(relation.relationship) != departure.post:
            return False
    elif departure.scope == "study":
        if canonical_predicate(relation.relationship) != "studies_at":
            return False
    elif kind not in SCOPE_FAMILIES[departure.scope]:
        return False
    if not departure.first:
        return relation.since is None or not departure.is_event
    if relation.since is None or relation.since < departure.last:
        return True
    return relation.since == departure.last != departure.first


def _is_named(words: str, names: frozenset[str], scope: str) -> bool:
    """Return True if the words start with one of the names, or with a list that contains one of the names.

    A name that is only part of a longer name does not count.
    """
    tokens = list(_TOKEN.finditer(words[:200]))
    for start in _name_starts(tokens):
        for name in names:
            end = _match_name(tokens, start, name.split())
            if end and _name_ends_at(words, tokens, end, scope):
                return True
    return False


def _name_starts(tokens: list["re.Match[str]"]) -> Iterator[int]:
    """Yield the token indexes where a name can start: the first, the next after "the", and after each listed name."""
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


def _match_name(tokens: list["re.Match[str]"], start: int, name: list[str]) -> int:
    """Return the index of the token after the name if the name starts at token `start`; otherwise 0."""
    at = start
    have: list[str] = []
    while at < len(tokens) and len(have) < len(name):
        word = tokens[at][0]
        have += fold_name(re.sub(r"['’]s\Z", "", word)).split()
        at += 1
    return at if have == name else 0


def _name_ends_at(words: str, tokens: list["re.Match[str]"], end: int, scope: str) -> bool:
    last = tokens[end - 1][0]
    rest = words[tokens[end - 1].end() :].lstrip()
    if last.endswith(("'s", "’s")):
        return scope == "board" and bool(re.match(r"(?:\w+ )?board\b", rest))
    while (
        end < len(tokens)
        and tokens[end][0].lower().strip(".") in word_list("company_suffixes")
        and tokens[end][0][0].isupper()
    ):
        rest = words[tokens[end].end() :].lstrip()
        end += 1
    if not rest or not rest[0].isalnum() or rest[0].isdigit():
        return True
    if pattern("errand").match(rest):
        return False
    following = rest.split(None, 1)[0].strip(".,;:").lower()
    if following == "at":
        return bool(re.match(r"at the (?:end|start|beginning)|at age", rest))
    return following in word_list("following") or (following in word_list("role_nouns") and scope == "work")


def _came_back(text: str, relation: OpenRelation, departure: Departure) -> bool:
    """Return True if the text with the departure also states that the relation resumed.

    If both statements have dates, the relation must have resumed at the time of the departure or later.
    """
    for sentence in comebacks(text):
        if sentence == departure.quote or not any(
            f" {name} " in f" {fold_name(sentence)} " for name in relation.names
        ):
            continue
        date_phrases = find_dates(sentence)
        if not date_phrases or not departure.first or date_phrases[-1].last >= departure.first:
            return True
    return False


def _ended_contradiction(
    world: Snapshot, page_id: int, part: str, subject: int, relation: OpenRelation, departure: Departure
) -> ContradictionFinding:
    who = world.pages[subject].title if subject in world.pages else departure.subject
    when = ""
    if departure.first:
        when = f" ({departure.first if departure.first == departure.last else departure.first[:4]})"
    other = page_id if page_id != subject else relation.target
    return ContradictionFinding(
        "temporal",
        subject,
        other,
        fingerprint(
            "over",
            subject,
            relation.target or fold_name(relation.shown),
            predicate_family(relation.relationship),
            departure.first,
        ),
        f"The text says that it is over between {who} and {relation.shown}{when},"
        f" but “{relation.relationship}” is recorded as still true.",
        (Citation(page_id, departure.quote, part, departure.line, ""), relation.cite),
        # If the text gives only a month or year, the relation has certainly ended by the last day of that
        # period.
        min(departure.last, world.today) if departure.first else None,
    )


class ResolutionChange(NamedTuple):
    """A change of the validity of a fact or link when a contradiction is resolved."""

    kind: str
    """fact or link."""
    id: int
    page_id: int
    says: str
    since: str | None
    """The new start of validity."""
    until: str | None
    """The new end of validity; None if the validity is open."""
    successor: int | None = None
    """Id of the fact that replaces this fact, or None if no fact replaces it."""

    @property
    def never_held(self) -> bool:
        return self.since is not None and self.since == self.until


def resolution_changes(
    world: Snapshot, finding: ContradictionFinding, winner_index: int
) -> list[ResolutionChange]:
    """Return the changes to make if the side with index `winner_index`, 0 or 1, is right.

    Text is never changed. If the rejected side is text, or a link in text, the user has to edit the page.
    """
    winner, loser = finding.cites[winner_index], finding.cites[1 - winner_index]
    facts = resolve_facts(world)
    lost = next((fact for fact in facts if fact.fact.id == loser.fact), None)
    link = next((link for link in world.links if link.id == loser.link), None)
    if winner.fact is None and winner.link is None:
        return _end_relation(world, finding, facts, lost, link)
    if lost is not None:
        # Every fact with the same statement is changed, on all pages, because otherwise the contradiction
        # would remain.
        won = next((fact for fact in facts if fact.fact.id == winner.fact), None)
        changes = [
            _shorten_fact(fact, won, finding.day, world.today)
            for fact in facts
            if _is_same_statement(fact, lost)
        ]
        return [change for change in changes if change is not None]
    if link is None or is_text_link(link):
        return []
    return [
        ResolutionChange("link", link.id, link.from_id, _describe_link(world, link), link.valid_from, None)
    ]


def remaining_text_links(world: Snapshot, finding: ContradictionFinding, winner_index: int) -> list[Citation]:
    """Return the links in page text that still state the rejected side and need an edit of the page.

    Links that repeat a rejected fact are returned only if the other side is text.
    """
    loser = finding.cites[1 - winner_index]
    link = next((link for link in world.links if link.id == loser.link), None)
    if link is not None:
        return [cite_link(world, link)] if is_text_link(link) else []
    if (
        loser.fact is None
        or finding.cites[winner_index].link is not None
        or finding.cites[winner_index].fact is not None
    ):
        return []
    lost = next((fact for fact in resolve_facts(world) if fact.fact.id == loser.fact), None)
    if lost is None:
        return []
    return [
        cite_link(world, link)
        for link in world.links
        if _connects(link, lost.subject, lost.object, lost.predicate)
        and is_text_link(link)
        and is_valid_on(link.valid_from, link.valid_until, world.today)
    ]


def is_text_link(link: GraphLink) -> bool:
    """Return True if the link comes from the text of a page, so that every write of the page recreates it."""
    return link.part is not None


def _end_relation(
    world: Snapshot,
    finding: ContradictionFinding,
    facts: list[ResolvedFact],
    lost: ResolvedFact | None,
    link: GraphLink | None,
) -> list[ResolutionChange]:
    """Return the changes that end the relation of the rejected fact (`lost`) or link (`link`).

    The changes end all current facts and links of the same predicate family between the same two entities,
    except links in page text.
    """
    if lost is not None:
        ends = (lost.subject, lost.object, lost.predicate)
    elif link is not None:
        ends = (link.from_id, link.to_id, link.relationship)
    else:
        return []
    standing = [
        fact
        for fact in facts
        if (fact.subject, fact.object) == ends[:2]
        and predicate_family(fact.predicate) == predicate_family(ends[2])
        and is_valid_on(fact.since, fact.until, world.today)
    ]
    changes = [_shorten_fact(fact, None, finding.day, world.today) for fact in standing]
    return [
        *(change for change in changes if change is not None),
        *(
            ResolutionChange(
                *("link", link.id, link.from_id, _describe_link(world, link), link.valid_from),
                _not_before(finding.day or world.today, link.valid_from),
            )
            for link in world.links
            if _connects(link, *ends)
            and is_valid_on(link.valid_from, link.valid_until, world.today)
            and not is_text_link(link)
        ),
    ]


def _connects(link: GraphLink, subject: EntityRef, target: EntityRef, relationship: str) -> bool:
    return (link.from_id, link.to_id) == (subject, target) and predicate_family(
        link.relationship
    ) == predicate_family(relationship)


def _is_same_statement(one: ResolvedFact, other: ResolvedFact) -> bool:
    statement = (other.subject, other.predicate, other.object)
    return statement in (
        (one.subject, one.predicate, one.object),
        (one.object, INVERSE_PREDICATES.get(one.predicate), one.subject),
    )


def _shorten_fact(
    lost: ResolvedFact, won: ResolvedFact | None, over: str | None, today: str
) -> ResolutionChange | None:
    fact = lost.fact
    says = f"{lost.about} {lost.predicate} {lost.says}"
    if won is not None and won.until and won.until <= today:
        if fact.since and fact.since >= won.until:
            return None  # the rejected fact began after the other had ended
        if fact.since and fact.since >= (won.since or "") and (fact.until is None or fact.until > won.until):
            return ResolutionChange("fact", fact.id, fact.page_id, says, won.until, fact.until)
    day = (won.since if won is not None else over) or today
    if fact.until is not None and fact.until <= day:
        return None
    follows = won is not None and (won.subject, won.predicate) == (lost.subject, lost.predicate)
    until = _not_before(day, fact.since)
    if fact.until is not None and fact.until <= until:
        return None
    successor = won.fact.id if won is not None and follows else None
    return ResolutionChange("fact", fact.id, fact.page_id, says, fact.since, until, successor)


def _not_before(day: str, since: str | None) -> str:
    """Return the later of `day` and `since`. A fact that is wrong from its first day on ends on that day."""
    return max(day, since or day)


def _describe_link(world: Snapshot, link: GraphLink) -> str:
    names = [
        world.pages[page_id].title if page_id in world.pages else "?"
        for page_id in (link.from_id, link.to_id)
    ]
    return f"{names[0]} {link.relationship} {names[1]}"
