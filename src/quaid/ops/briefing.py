"""A briefing: what shifted, what is due, what is open, compiled from the memory itself without any model.

Knows how to say each finding in one line. What counts as changed, due or stale is the store's business.
"""

from typing import Annotated, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument
from quaid.model import dates, markdown_text
from quaid.model.plain_text import count_noun
from quaid.ops.register import Arg, op
from quaid.storage import briefing as store
from quaid.storage.briefing import BriefingPage, BriefingSection

PARTS = {
    "shifted": "What shifted",
    "commitments": "Commitments due",
    "actions": "Open actions",
    "contradictions": "Open contradictions",
    "gaps": "Open questions",
    "stale": "Stale pages",
    "threads": "Open threads",
    "deals": "Active deals",
    "people": "People in play",
    "changed": "Pages changed",
}
"""The parts in the order in which they matter, each with its title."""
IN_PLAY_DAYS = 7
MOST_CHECKED = 100
"""Pages of a memory that is looked through for contradictions at once: about 60 ms if each tells of a departure."""
MOST = 1_000  # lines of a part
LONGEST = 200  # characters of a line; the page itself says more


class Item(NamedTuple):
    """One line of a briefing: on which page, of which day, how it stands."""

    slug: str
    day: str
    state: str
    text: str
    owner: str = ""
    id: int | None = None  # of a contradiction or a gap: what their commands take


class Part(NamedTuple):
    """The first items of a part; total counts also those that the limit cut."""

    items: tuple[Item, ...]
    total: int


class BriefingRecord(NamedTuple):
    as_of: str
    since: str
    due_until: str
    pages: int
    shifted: Part
    commitments: Part
    actions: Part
    contradictions: Part
    gaps: Part
    stale: Part
    threads: Part
    deals: Part
    people: Part
    changed: Part
    notes: tuple[str, ...]
    next_steps: tuple[str, ...]


@op(
    "read",
    examples=(
        "quaid briefing",
        "quaid briefing --since 7d --due 14",
        "quaid briefing --since 2026-04-01 --json",
        "quaid briefing --short",
    ),
)
def briefing(
    brain: Brain,
    since: Annotated[str, Arg("What counts as new: a period (24h, 7d, 2w) or a day (2026-04-25).")] = "24h",
    due: Annotated[int, Arg("How many days ahead to look for what is due.", minimum=0, maximum=3_650)] = 7,
    limit: Annotated[int, Arg("How many lines of each part.", minimum=1, maximum=MOST)] = 10,
    short: Annotated[bool, Arg("Without what shifted, stale pages and threads, which take longest.")] = False,
) -> BriefingRecord:
    """Brief me: what shifted, promises due, open actions, contradictions, gaps, stale pages, threads, deals, people.

    Compiled from the memory alone, without a model. Each line names its page; every text in it is data."""
    now = brain.now()
    today, start = now[:10], _beginning(brain, since, now)
    horizon = dates.shift_date(today, due)
    db = brain.db
    with db.reading():
        record = BriefingRecord(
            as_of=now,
            since=start,
            due_until=horizon,
            pages=store.visible_page_count(db),
            shifted=Part((), 0) if short else _shifted(brain, start, today, limit),
            commitments=_part(store.due_commitments(db, horizon, limit), today),
            actions=_part(store.open_actions(db, limit), today),
            contradictions=_contradictions(brain, today, limit),
            gaps=_gaps(brain, limit),
            stale=Part((), 0) if short else _stale(brain, today, limit),
            threads=Part((), 0),
            deals=_part(store.open_deals(db, limit), today),
            people=_people(brain, limit),
            changed=_changed(brain, start, limit),
            notes=(),
            next_steps=(),
        )
        found = store.BriefingSection([], 0) if short else store.pages_with_threads(db)
        undated = store.count_undated_commitments(db)
    record = record._replace(threads=_threads(found, limit))
    notes = (*_checked(brain), *_notes(undated, found))
    return record._replace(notes=notes, next_steps=_next_steps(record, limit))


def _beginning(brain: Brain, since: str, now: str) -> str:
    """The time at which the window opens."""
    length = dates.period_seconds(since)
    if length is not None:
        return brain.now(-length)
    if not dates.is_date(since):
        raise InvalidArgument(
            name="since", problem=f"must be a period or a day, as in 24h, 7d, 2w or 2026-04-25, not {since!r}"
        )
    if since > now[:10]:
        raise InvalidArgument(name="since", problem=f"{since} is still to come; name a day that has been")
    return f"{since}T00:00:00Z"


def _line(text: str) -> str:
    return markdown_text.shorten(markdown_text.one_line(text), LONGEST)


def _part(found: BriefingSection, today: str) -> Part:
    """Pages with a day on which something is due."""
    return Part(tuple(_due(each, today) for each in found.rows), found.total)


def _due(entry: BriefingPage, today: str) -> Item:
    states = [entry.state or "open", entry.priority, _distance(entry.day, today)]
    state = ", ".join(filter(None, map(_line, states)))
    return Item(entry.address, entry.day, state, _line(entry.title), _line(entry.owner))


def _distance(day: str, today: str) -> str:
    if not day:
        return ""
    ahead = dates.day_number(day) - dates.day_number(today)
    if ahead == 0:
        return "today"
    number = count_noun(abs(ahead), "day")
    return f"in {number}" if ahead > 0 else f"overdue by {number}"


def _shifted(brain: Brain, start: str, today: str, limit: int) -> Part:
    """Facts, links, decisions and promises that are not what they were, the newest first."""
    db, first = brain.db, start[:10]
    facts = [
        store.superseded_facts(db, start, first, limit),
        store.ended_facts(db, start, first, today, limit),
    ]
    links = store.changed_links(db, start, first, today, limit)
    turned = store.reversed_decisions(db, start, limit)
    items = [
        Item(
            each.address,
            each.day,
            "ended" if each.successor is None else "superseded",
            _line(
                f"{each.subject} {each.predicate} {each.object}"
                + ("" if each.successor is None else f" → {each.successor}")
            ),
        )
        for found in facts
        for each in found.rows
    ]
    items += [
        Item(
            each.address,
            each.day,
            "link ended" if each.ended else "link begun",
            _line(f"{each.relationship} {each.other}"),
        )
        for each in links.rows
    ]
    items += [
        Item(each.address, each.day, _line(each.state), _line(each.title), _line(each.owner))
        for each in turned.rows
    ]
    items.sort(key=lambda item: item.day, reverse=True)
    return Part(tuple(items[:limit]), sum(each.total for each in [*facts, links, turned]))


def _contradictions(brain: Brain, today: str, limit: int) -> Part:
    """What contradicts itself now; of a large memory, what the last check found."""
    if not _is_large(brain):
        return _found_now(brain, today, limit)
    found = store.open_contradictions(brain.db, limit)
    items = [
        Item(each.address, each.day, each.type, _line(each.description), id=each.id) for each in found.rows
    ]
    return Part(tuple(items), found.total)


def _is_large(brain: Brain) -> bool:
    return store.visible_page_count(brain.db) > MOST_CHECKED


def _found_now(brain: Brain, today: str, limit: int) -> Part:
    """Looked for, and not kept: who briefs may be allowed to read only."""
    from quaid.model.contradictions import find_contradictions
    from quaid.storage import contradictions

    kept = contradictions.known_findings(brain.db)
    world = contradictions.full_snapshot(brain.db, today)
    items = []
    for each in find_contradictions(world):
        number, found, settled = kept.get(each.fingerprint, (None, today, None))
        if settled is None and each.type != "stale":
            address = store.page_address(brain.db, each.page_id)
            items.append(Item(address, found[:10], each.type, _line(each.description), id=number))
    items.sort(key=lambda item: (item.day, item.id or 0), reverse=True)
    return Part(tuple(items[:limit]), len(items))


def _gaps(brain: Brain, limit: int) -> Part:
    found = store.open_gaps(brain.db, limit)
    items = [
        Item(
            "",
            each.day,
            f"{each.sensitivity}, asked {count_noun(each.times_seen, 'time')}",
            _line(each.text or ""),
            id=each.id,
        )
        for each in found.rows
    ]
    return Part(tuple(items), found.total)


def _stale(brain: Brain, today: str, limit: int) -> Part:
    found = store.stale_pages(brain.db, limit)
    items = [
        Item(
            each.address,
            each.day,
            f"truth is {count_noun(dates.day_number(today) - dates.day_number(each.day), 'day')} old",
            _line(each.title),
        )
        for each in found.rows
    ]
    return Part(tuple(items), found.total)


def _threads(found: BriefingSection, limit: int) -> Part:
    items = [
        Item(address, day, "open", _line(thread))
        for address, day, truth in found.rows
        for thread in markdown_text.open_threads(truth)
    ]
    return Part(tuple(items[:limit]), len(items))


def _people(brain: Brain, limit: int) -> Part:
    found = store.changed_people(brain.db, brain.now(-IN_PLAY_DAYS * 86_400), limit)
    items = [
        Item(each.address, each.day, _line(each.state) or "in play", _line(each.title)) for each in found.rows
    ]
    return Part(tuple(items), found.total)


def _changed(brain: Brain, start: str, limit: int) -> Part:
    found = store.changed_pages(brain.db, start, limit)
    items = [Item(each.address, each.day, each.state, _line(each.title)) for each in found.rows]
    return Part(tuple(items), found.total)


def _checked(brain: Brain) -> tuple[str, ...]:
    """How old the contradictions are, where they were not looked for now."""
    from quaid.storage import contradictions

    if not _is_large(brain):
        return ()
    last = contradictions.last_check(brain.db)
    when = f"as of the last check, {last[:10]}" if last else "not known before a first check"
    return (f"contradictions are {when}; `quaid check` looks for them",)


def _notes(undated: int, with_threads: BriefingSection) -> tuple[str, ...]:
    """What the parts leave out."""
    notes = []
    if undated:
        named = count_noun(undated, "open commitment names", "open commitments name")
        notes.append(f"{named} no day: no `due` in the front matter")
    read = len(with_threads.rows)
    if read < with_threads.total:
        notes.append(
            f"open threads are those of the {count_noun(read, 'page')} left alone for longest, of {with_threads.total:,}"
        )
    return tuple(notes)


def _next_steps(record: BriefingRecord, limit: int) -> tuple[str, ...]:
    steps = []
    if not record.pages:
        steps.append("`quaid put SLUG FILE` or `quaid import FOLDER` brings pages in")
    late = [each.slug for each in record.commitments.items if each.day < record.as_of[:10]]
    if late:
        steps.append(f"`quaid get {late[0]}`: ask how it stands, then set its status or due day")
    if record.contradictions.items:
        steps.append(f"`quaid check {record.contradictions.items[0].slug}` shows what contradicts what")
    if record.gaps.items:
        steps.append("`quaid gaps` lists the open questions; `quaid skills show research` says how to go on")
    if record.stale.items:
        steps.append(f"`quaid get {record.stale.items[0].slug}`: rewrite the truth from the timeline")
    longest = max(getattr(record, name).total for name in PARTS)
    if longest > limit:
        steps.append(f"`quaid briefing --limit {min(longest, MOST)}` shows what was cut here")
    return tuple(steps)
