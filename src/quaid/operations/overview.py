"""Views across all pages: the briefing, today, dated items, wings (top-level categories) and titles; tick a to-do."""

import json
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import FileChanged, InvalidArgument, NotFound
from quaid.formats import sections
from quaid.model import dates, page as page_model, plain_text, slug as slugs
from quaid.model.page import CLOSED_STATUSES, Page
from quaid.model.plain_text import count_noun
from quaid.notebook import layout
from quaid.operations.links import EDGES_PER_NODE, GraphEdge, graph_edges
from quaid.operations.notebook import fresh_notebook
from quaid.operations.page_changes import edit_page
from quaid.operations.pages import IfVersion, Slug, type_notes
from quaid.operations.registry import Arg, Named, op
from quaid.storage import briefing as store, collections, links
from quaid.storage.agents import Proposals
from quaid.storage.briefing import BriefingLine, BriefingPart, DatedFilter, DatedItem, NameCount
from quaid.storage.collections import Collection, Collections
from quaid.storage.contradictions import Contradictions
from quaid.storage.links import MapNode
from quaid.storage.pages import PageHead, PageRow, count as count_pages, page_heads, pages_with_conflicts

BRIEFING_PARTS = {
    "shifted": "What shifted",
    "todos": "To-dos",
    "commitments": "Commitments due",
    "actions": "Open actions",
    "contradictions": "Open contradictions",
    "review": "Waiting for review",
    "gaps": "Open questions",
    "stale": "Stale pages",
    "threads": "Open threads",
    "deals": "Active deals",
    "people": "People in play",
    "changed": "Pages changed",
}
"""Parts of a briefing and their titles, in order of importance."""
SLOW_PARTS = ("shifted", "stale", "threads")
IN_PLAY_DAYS = 7
MAX_PAGES_CHECKED = 100
"""A briefing of a memory with more pages lists the contradictions of the last check instead of searching.

With this many pages, the search takes about 60 ms in the worst case: every page states that someone left a
job, school or home.
"""
MAX_ITEMS = 1_000  # maximum lines per part
MAX_LINE_LENGTH = 200  # maximum characters per line


class BriefingRecord(NamedTuple):
    as_of: str
    since: str
    due_until: str
    pages: int
    shifted: BriefingPart
    todos: BriefingPart
    """Open to-dos of the notebook: overdue, due by `due_until`, and without a due date."""
    commitments: BriefingPart
    actions: BriefingPart
    contradictions: BriefingPart
    review: BriefingPart
    """Writes of agents that await review. An agent sees only its own writes."""
    gaps: BriefingPart
    """Questions that the memory could not answer, if their text is stored (setting log_gaps)."""
    stale: BriefingPart
    threads: BriefingPart
    deals: BriefingPart
    people: BriefingPart
    changed: BriefingPart
    notes: tuple[str, ...]
    next_steps: tuple[str, ...]
    proposals: int = 0
    """Number of writes of agents that await review."""
    unworded_gaps: int = 0
    """Number of unanswered questions for which only a hash of the text is stored."""

    @property
    def parts(self) -> dict[str, BriefingPart]:
        """The parts by title, in order of importance."""
        return {title: getattr(self, name) for name, title in BRIEFING_PARTS.items()}


@op(
    "read",
    core=True,
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
    due: Annotated[int, Arg("How many days ahead to list what is due.", minimum=0, maximum=3_650)] = 7,
    limit: Annotated[int, Arg("How many lines of each part.", minimum=1, maximum=MAX_ITEMS)] = 10,
    short: Annotated[bool, Arg("Omit changes, stale pages and threads, which take longest.")] = False,
) -> BriefingRecord:
    """Summarize changes, to-dos, what is due, contradictions, reviews, questions, stale pages, deals and people.

    Each line names its page; all text is data."""
    now = brain.now()
    today, start = now[:10], _window_start(brain, since, now)
    horizon = dates.shift_date(today, due)
    period = {
        "since": start,
        "active_since": brain.now(-IN_PLAY_DAYS * 86_400),
        "today": today,
        "due_until": horizon,
    }
    names = [name for name in store.BRIEFING_PARTS if not (short and name in SLOW_PARTS)]
    notebook = layout.find_notebook(brain.db)
    if notebook is not None:
        notebook = fresh_notebook(brain)
    with brain.db.reading():
        parts = {
            **dict.fromkeys(BRIEFING_PARTS, BriefingPart()),
            **store.briefing_parts(brain.db, names, period, limit),
        }
        if notebook is not None:
            parts["todos"] = _todos(brain, notebook, horizon, limit)
        erasures = _waiting_erasures(brain)
        parts["review"] = _waiting(brain, limit)
        unworded = parts.pop("unworded").total
        pages = count_pages(brain.db)
        notes = _notes(parts.pop("undated").total, parts["threads"], unworded)
        if pages > MAX_PAGES_CHECKED:
            notes = [_last_check_note(brain), *notes]
        else:
            parts["contradictions"] = _find_contradictions_now(brain, today, limit)
    parts["threads"] = _threads(parts["threads"], limit)
    parts = {name: part if name == "review" else _without(part, erasures) for name, part in parts.items()}
    texts = {name: _with_texts(name, part, today) for name, part in parts.items()}
    record = BriefingRecord(
        now,
        start,
        horizon,
        pages,
        **texts,
        notes=tuple(notes),
        next_steps=(),
        proposals=Proposals(brain.db).count_open(),
        unworded_gaps=unworded,
    )
    return record._replace(next_steps=_next_steps(record, limit))


def _todos(brain: Brain, notebook: Collection, horizon: str, limit: int) -> BriefingPart:
    """Return the notebook's open to-dos: those due by `horizon`, earliest first, then those without a date.

    Checkboxes outside the to-do list count only if they have a due date.
    """
    items: list[BriefingLine] = []
    pages = sorted(store.checklists(brain.db, notebook.id), key=lambda page: page.slug)
    for page in pages:
        for item in sections.list_items(f"{page.truth}\n{page.timeline}"):
            is_todo = item.box == " " or (item.box is None and page.slug == store.TODO_LIST)
            if not is_todo or not item.text or item.text.startswith("~~"):
                continue
            day = dates.due_day_of(item.text)
            if day <= horizon and (day or page.slug == store.TODO_LIST):
                items.append(BriefingLine(page.address, day, "open", item.text))
    items.sort(key=lambda item: item.day or "9999")
    return BriefingPart(tuple(items[:limit]), len(items))


def _waiting_erasures(brain: Brain) -> frozenset[str]:
    """Return the page addresses and the sentences that agents have proposed to erase."""
    waiting = (
        json.loads(row.arguments) for row in Proposals(brain.db).all_open() if row.tool == "memory_forget"
    )
    return frozenset(str(own.get("slug") or own.get("query") or "") for own in waiting) - {""}


def _waiting(brain: Brain, limit: int) -> BriefingPart:
    """Return the proposals that await review, oldest first. An agent gets only its own proposals."""
    items = [
        BriefingLine(
            slugs.address(row.collection or "default", row.slug) if row.slug else "",
            row.created_at[:10],
            f"{row.tool} by {row.author}",
            # The text to erase is not repeated here; `quaid review` shows it to the user who decides.
            "Erase a page or sentence" if row.tool == "memory_forget" else row.summary,
            id=row.id,
        )
        for row in Proposals(brain.db).all_open()
        if not brain.agent or row.author == brain.agent
    ]
    return BriefingPart(tuple(items[:limit]), len(items))


def _without(part: BriefingPart, erasures: frozenset[str]) -> BriefingPart:
    """Return a part without the lines that `erasures`, from `_waiting_erasures`, would erase."""
    kept = tuple(
        line
        for line in part.items
        if line.slug not in erasures and not any(words in line.text for words in erasures)
    )
    return part._replace(items=kept, total=part.total - len(part.items) + len(kept))


def _window_start(brain: Brain, since: str, now: str) -> str:
    """Parse `since`, and return the time from which changes count as new."""
    length = dates.period_seconds(since)
    if length is not None:
        return brain.now(-length)
    if not dates.is_date(since):
        raise InvalidArgument(
            name="since", problem=f"must be a period or a day, as in 24h, 7d, 2w or 2026-04-25, not {since!r}"
        )
    if since > now[:10]:
        raise InvalidArgument(name="since", problem=f"{since} is in the future; use a past day")
    return f"{since}T00:00:00Z"


def _line(text: str) -> str:
    return plain_text.shorten(plain_text.one_line(text), MAX_LINE_LENGTH)


def _with_texts(name: str, part: BriefingPart, today: str) -> BriefingPart:
    """Return a part with each text on one line, and with states such as "overdue by 3 days"."""
    return part._replace(
        items=tuple(
            line._replace(state=_state(name, line, today), text=_line(line.text), owner=_line(line.owner))
            for line in part.items
        )
    )


def _state(name: str, line: BriefingLine, today: str) -> str:
    if name in ("todos", "commitments", "actions", "deals"):
        return ", ".join(filter(None, [_line(line.state), _distance(line.day, today)]))
    if name == "stale":
        return f"truth is {count_noun(dates.day_number(today) - dates.day_number(line.day), 'day')} old"
    return _line(line.state) or ("in play" if name == "people" else "")


def _distance(day: str, today: str) -> str:
    if not day:
        return ""
    ahead = dates.day_number(day) - dates.day_number(today)
    if ahead == 0:
        return "today"
    number = count_noun(abs(ahead), "day")
    return f"in {number}" if ahead > 0 else f"overdue by {number}"


def _find_contradictions_now(brain: Brain, today: str, limit: int) -> BriefingPart:
    """Find contradictions without storing them, because the caller may have only the read scope."""
    findings = [row for row in Contradictions(brain.db).unresolved_now(today) if row[0].type != "stale"]
    heads = page_heads(brain.db, [finding.page_id for finding, *_ in findings])
    items = [
        BriefingLine(
            slugs.address(head.collection, head.slug), day, finding.type, finding.description, id=number
        )
        for finding, number, day in findings
        if (head := heads[finding.page_id])
    ]
    items.sort(key=lambda item: (item.day, item.id or 0), reverse=True)
    return BriefingPart(tuple(items[:limit]), len(items))


def _threads(pages: BriefingPart, limit: int) -> BriefingPart:
    """Return the open threads in the text of these pages."""
    items = [
        page._replace(text=thread) for page in pages.items for thread in plain_text.open_threads(page.text)
    ]
    return BriefingPart(tuple(items[:limit]), len(items))


def _last_check_note(brain: Brain) -> str:
    """Return a note that the listed contradictions were found by the last check, with its date."""
    last, _ = Contradictions(brain.db).last_check()
    when = f"as of the last check, {last[:10]}" if last else "unknown before the first check"
    return f"contradictions are {when}; `quaid check` finds new ones"


def _notes(undated: int, with_threads: BriefingPart, unworded: int) -> list[str]:
    """Return notes on undated commitments, pages not searched for threads, and questions without text."""
    notes = []
    if undated:
        named = count_noun(undated, "open commitment names", "open commitments name")
        notes.append(f"{named} no day: no `due` in the front matter")
    read = len(with_threads.items)
    if read < with_threads.total:
        notes.append(
            f"open threads are those of the {count_noun(read, 'page')} left alone for longest,"
            f" of {with_threads.total:,}"
        )
    if unworded:
        notes.append(
            f"{count_noun(unworded, 'question')} without an answer, stored without words;"
            " `quaid config set log_gaps text` stores the words of later ones"
        )
    return notes


def _next_steps(record: BriefingRecord, limit: int) -> tuple[str, ...]:
    steps = []
    if not record.pages:
        steps.append("`quaid put SLUG FILE` or `quaid import FOLDER` adds pages")
    if record.proposals:
        steps.append(f"`quaid review` decides on {count_noun(record.proposals, 'proposal')} of agents")
    late = [item.slug for item in record.commitments.items if item.day < record.as_of[:10]]
    if late:
        steps.append(f"`quaid get {late[0]}`: check its progress, then set its status or due day")
    if record.contradictions.items:
        steps.append(f"`quaid check {record.contradictions.items[0].slug}` shows what contradicts what")
    if record.gaps.items or record.unworded_gaps:
        steps.append(
            "`quaid gaps` lists the open questions; `quaid skills show research` explains how to close them"
        )
    if record.stale.items:
        steps.append(f"`quaid get {record.stale.items[0].slug}`: rewrite the truth from the timeline")
    longest = max(part.total for part in record.parts.values())
    if longest > limit:
        steps.append(f"`quaid briefing --limit {min(longest, MAX_ITEMS)}` shows the omitted lines")
    return tuple(steps)


TODAY_DAYS = 30
"""Items due within this many days are listed as due; items with a later date are listed separately."""
LAST_DAY = "9999-12-31"
FIRST_LOOK_DAYS = 7
"""On the first visit, changes of the last FIRST_LOOK_DAYS days count as new."""
VISIT_MINUTES = 30
MAX_CHANGES_READ = 500
MAX_GROUP_PAGES = (3, 5)
"""Maximum pages listed in a ChangeGroup of an author who is not an agent, and in one of an agent."""
MAX_FACTS = 5
MAX_WAITING = 3
DONE_STATUS = "done"


class DueItem(NamedTuple):
    """A to-do, commitment or action item."""

    text: str
    day: str
    """The due date, or "" if there is none."""
    kind: Literal["to-do", "commitment", "action item"]
    slug: str
    title: str = ""
    line: int | None = None
    """The line of a to-do, counted from the start of its part of the page."""
    part: str = ""
    """The part of the page with the line: "truth" or "timeline"."""
    path: str = ""
    """Path of the notebook file with the line, or "" if the lines of the file and of the page may differ."""
    owner: str = ""

    @property
    def words(self) -> str:
        """The text without the mark that gives its due date, such as "(due 2026-11-20)"."""
        return dates.without_due_mark(self.text)


class ChangeGroup(NamedTuple):
    """Pages that were changed by the same person or agent, by an import, or in a folder."""

    who: str
    kind: Literal["agent", "you", "person", "folder", "import", "unknown"]
    source: str
    """The collection or source that the pages belong to."""
    pages: int
    items: tuple[store.ChangedPage, ...]
    """The most recently changed pages of the group."""


class WaitingItem(NamedTuple):
    """The number of items of one kind that need a decision by the user."""

    kind: Literal["proposals", "conflicts", "contradictions", "gaps", "quarantine", "expired", "stale"]
    number: int
    text: str
    cost: str


class TodayRecord(NamedTuple):
    day: str
    since: str
    """Changes from this time on count as new."""
    as_of: str
    looked_at: str
    """When the user last viewed the changes, or "" if never."""
    due: tuple[DueItem, ...]
    """Items that are overdue or due within TODAY_DAYS days, earliest first."""
    due_total: int
    later: tuple[DueItem, ...]
    """Items that are due later, earliest first."""
    later_total: int
    undated: tuple[DueItem, ...]
    undated_total: int
    changed: tuple[ChangeGroup, ...]
    changed_total: int
    facts: tuple[BriefingLine, ...]
    """Facts that ended or were superseded since the time `since`, and open contradictions."""
    waiting: tuple[WaitingItem, ...]
    pages: int
    log: tuple[DatedItem, ...] = ()
    """Entries of today's log, the latest first."""


@op("read", examples=("quaid today", "quaid today --since 7d"))
def today(
    brain: Brain,
    since: Annotated[
        str | None, Arg("What counts as new: a period (24h, 7d, 2w) or a day [since the last visit].")
    ] = None,
    limit: Annotated[int, Arg("How many to-dos of each list.", minimum=1, maximum=MAX_ITEMS)] = 20,
) -> TodayRecord:
    """Show what is due, today's log, what changed since you last looked, facts that became false, and what waits."""
    now, day = brain.now(), brain.local()[:10]
    notebook = layout.find_notebook(brain.db)
    if notebook is not None:
        fresh_notebook(brain)
    with brain.db.reading():
        look = store.LastLook.read(brain.db)
        start = _window_start(brain, since, now) if since else _new_since(brain, look, now)
        erasures = _waiting_erasures(brain)
        due, later, undated = _due_items(brain, day, erasures)
        changed = store.changed_pages(brain.db, start, MAX_CHANGES_READ)
        changed = [page for page in changed if page.slug not in erasures]
        total = (
            count_pages(brain.db, changed_since=start) if len(changed) >= MAX_CHANGES_READ else len(changed)
        )
        return TodayRecord(
            *(day, start, now, look.loaded_at if look else ""),
            *(tuple(due[:limit]), len(due), tuple(later[:limit]), len(later)),
            *(tuple(undated[:limit]), len(undated)),
            *(_change_groups(changed), total),
            facts=_fact_news(brain, start, day, erasures),
            waiting=_waiting_items(brain),
            pages=count_pages(brain.db),
            log=tuple(_log_entries(brain, DatedFilter(since=day, until=day), limit)[:limit]),
        )


def _new_since(brain: Brain, look: store.LastLook | None, now: str) -> str:
    """Return the time up to which the user saw all changes in the previous visit; later changes are new."""
    if look is None:
        return brain.now(-FIRST_LOOK_DAYS * 86_400)
    return look.loaded_at if _is_over(look, now) else look.seen_until


def _is_over(look: store.LastLook, now: str) -> bool:
    """Return True if the visit began more than VISIT_MINUTES ago, so that a new visit begins now."""
    return dates.seconds_of(now) - dates.seconds_of(look.visit_started) > VISIT_MINUTES * 60


@op("owner", examples=("quaid seen",))
def seen(
    brain: Brain,
    until: Annotated[str | None, Arg("The time up to which changes were seen [now].")] = None,
    visit: Annotated[
        bool,
        Arg(f"Record a look. What it showed counts as seen {VISIT_MINUTES} minutes after the first look."),
    ] = False,
) -> Named[str]:
    """Mark what changed as seen, so that `quaid today` lists only later changes."""
    now = brain.now()
    if until is not None and not dates.is_timestamp(until):
        raise InvalidArgument(name="until", problem=f"must be a time as in {now}, not {until!r}")
    look = store.LastLook.read(brain.db)
    until = min(until or now, now)
    if not visit:
        new = store.LastLook(until, now, until)
    elif look is not None and not _is_over(look, now):
        new = look._replace(loaded_at=max(look.loaded_at, until))
    else:
        new = store.LastLook(_new_since(brain, look, now), now, until)
    brain.db.write(lambda tx: new.save(tx))
    return Named("seen_until", new.seen_until, f"Changes up to {new.seen_until} are seen.")


def _due_items(
    brain: Brain, today: str, erasures: frozenset[str]
) -> tuple[list[DueItem], list[DueItem], list[DueItem]]:
    """Return items due within TODAY_DAYS days and items due later, by date, and items without a date."""
    horizon = dates.shift_date(today, TODAY_DAYS)
    items = list(_checklist_items(brain))
    period = {"since": today, "active_since": today, "today": today, "due_until": LAST_DAY}
    parts = store.briefing_parts(brain.db, ("commitments", "undated", "actions"), period, MAX_ITEMS)
    for name, part in parts.items():
        kind: Literal["action item", "commitment"] = "action item" if name == "actions" else "commitment"
        items += (
            DueItem(_line(line.text), line.day, kind, line.slug, line.text, owner=_line(line.owner))
            for line in part.items
        )
    items = [
        item
        for item in items
        if item.slug not in erasures and not any(words in item.text for words in erasures)
    ]
    dated = sorted((item for item in items if item.day), key=lambda item: item.day)
    due = [item for item in dated if item.day <= horizon]
    return due, dated[len(due) :], [item for item in items if not item.day]


def _checklist_items(brain: Brain) -> Iterator[DueItem]:
    """Yield the open items of the to-do list, and open checkboxes with a due date on all other pages."""
    pages = store.checklists(brain.db)
    files = collections.paths_of_pages(brain.db, [page.page_id for page in pages if page.is_notebook])
    for page in pages:
        is_list = page.is_notebook and page.slug == store.TODO_LIST
        for part, text in (("truth", page.truth), ("timeline", page.timeline)):
            for item in sections.list_items(text) if is_list or "[ ]" in text else ():
                is_open = item.box == " " or (item.box is None and is_list)
                if not is_open or not item.text or item.text.startswith("~~"):
                    continue
                day = dates.due_day_of(item.text)
                if day or is_list:
                    path = files.get(page.page_id, "") if page.is_plain and part == "truth" else ""
                    yield DueItem(item.text, day, "to-do", page.address, page.title, item.line, part, path)


def _change_groups(pages: list[store.ChangedPage]) -> tuple[ChangeGroup, ...]:
    """Group changed pages by author and source, groups of agents first."""
    groups: dict[tuple[str, str, str], list[store.ChangedPage]] = {}
    for page in pages:
        groups.setdefault(_changed_by(page), []).append(page)
    order = ("agent", "person", "folder", "import", "unknown", "you")
    rows = [
        ChangeGroup(who, kind, source, len(own), tuple(own[: MAX_GROUP_PAGES[kind == "agent"]]))  # type: ignore[arg-type]
        for (who, kind, source), own in groups.items()
    ]
    return tuple(sorted(rows, key=lambda group: (order.index(group.kind), -group.pages)))


def _changed_by(page: store.ChangedPage) -> tuple[str, str, str]:
    """Return the author of a page's last change, the kind of author, and the source or collection."""
    place = "" if page.collection == collections.DEFAULT_COLLECTION else page.collection
    if page.batch:
        is_sync = page.batch.startswith("sync-")
        return ("folder" if is_sync else "import", "folder" if is_sync else "import", page.collection)
    if page.agent:
        return page.agent, "agent", page.source or place
    if page.author in ("owner", ""):
        return ("you", "you", place) if page.author else ("unknown", "unknown", place)
    return page.author, "person", place


def _fact_news(brain: Brain, since: str, today: str, erasures: frozenset[str]) -> tuple[BriefingLine, ...]:
    """Return facts that ended or were superseded since a time, and then open contradictions."""
    period = {"since": since, "active_since": since, "today": today, "due_until": today}
    parts = store.briefing_parts(brain.db, ("shifted", "contradictions"), period, MAX_FACTS)
    ended = [line for line in parts["shifted"].items if line.state in ("superseded", "ended")]
    open_ = [line._replace(state="contradiction") for line in parts["contradictions"].items]
    kept = min(len(ended), max(MAX_FACTS - len(open_), 2))
    lines = BriefingPart((*ended[:kept], *open_[: MAX_FACTS - kept]), 0)
    return tuple(line._replace(text=_line(line.text)) for line in _without(lines, erasures).items)


_WAITING_TEXTS: dict[str, tuple[str, str, str]] = {
    "proposals": (
        "change that an agent proposes",
        "changes that agents propose",
        "about half a minute each: read the difference, then accept or reject",
    ),
    "conflicts": ("page with two versions", "pages with two versions", "one choice each"),
    "contradictions": ("contradiction", "contradictions", "one choice each: which of two sentences is true"),
    "gaps": ("question without an answer", "questions without an answer", "a sentence each, or dismiss them"),
    "quarantine": (
        "page whose file is gone",
        "pages whose files are gone",
        "one choice each: restore the file or discard the page",
    ),
    "expired": (
        "expired thing, hidden and erased later",
        "expired things, hidden and erased later",
        "one choice each: keep it or let it go",
    ),
    "stale": (
        "page that is older than its timeline",
        "pages that are older than their timelines",
        "a few minutes each: rewrite the text from the timeline",
    ),
}
"""For each kind of WaitingItem, most important first: singular, plural, and the effort of a decision."""


def _waiting_items(brain: Brain) -> tuple[WaitingItem, ...]:
    """Return the kinds of items that need a decision by the user, the MAX_WAITING most important ones."""
    numbers = store.open_counts(brain.db)
    numbers["conflicts"] = brain.db.cached(
        "conflicts", lambda: len(pages_with_conflicts(brain.db, MAX_ITEMS))
    )
    items = [
        WaitingItem(kind, number, count_noun(number, one, many), cost)  # type: ignore[arg-type]
        for kind, (one, many, cost) in _WAITING_TEXTS.items()
        if (number := numbers[kind])
    ]
    return tuple(items[:MAX_WAITING])


class TickRecord(NamedTuple):
    slug: str
    version: int
    changed: bool
    """False if the item was already in the requested state."""
    done: bool
    text: str
    collection: str = "default"
    line: int | None = None
    was: str = ""
    """The earlier status of a commitment or action item; "" for a to-do."""


@op(
    "write",
    examples=(
        "quaid tick notebook::lists/todos 'Book flights by Friday (due 2026-11-20)'",
        "quaid tick commitments/send-the-draft",
        "quaid tick commitments/send-the-draft --undo",
    ),
)
def tick(
    brain: Brain,
    slug: Slug,
    text: Annotated[
        str,
        Arg(
            "The to-do, as it is written after the box. Empty for a commitment or action item.",
            positional=True,
        ),
    ] = "",
    line: Annotated[int | None, Arg("Its line, if several lines have the same text.", minimum=1)] = None,
    undo: Annotated[bool, Arg("Open it again.")] = False,
    status: Annotated[str, Arg("With `undo`, the status to restore.")] = "open",
    expected_version: IfVersion = None,
) -> TickRecord:
    """Tick a to-do of a page or notebook file, or close a commitment or action item. Only that line is changed."""
    words = " ".join(text.split())
    outcome: tuple[bool, int | None, str] = (False, None, "")

    def change(old: PageRow | None) -> Page:
        nonlocal outcome
        assert old is not None
        front, truth, entries = old.frontmatter, old.truth, old.timeline
        if words:
            truth, entries, place, is_changed = _ticked_text(old, words, line, undo)
            outcome = (is_changed, place, "")
        else:
            was = str(front.get("status") or "")
            is_closed = was.strip().lower() in _closed_statuses(old)
            outcome = (is_closed == undo, None, was)
            front = {**front, "status": status if undo else DONE_STATUS} if outcome[0] else front
        return page_model.build_page(old.slug, front, truth, entries, fallback_title=old.title)

    try:
        saved, new, collection = edit_page(brain, slug, expected_version, change)
    except FileChanged:  # edit_page has synced the changed file; the to-do may still be there
        saved, new, collection = edit_page(brain, slug, expected_version, change)
    is_changed, place, was = outcome
    return TickRecord(
        new.slug, saved.version, is_changed, not undo, words or new.title, collection, place, was
    )


def _closed_statuses(page: PageRow) -> tuple[str, ...]:
    """Return the statuses that count as closed for the page's type.

    Raise InvalidArgument unless the page is a commitment or action item.
    """
    if page.type not in ("commitment", "action_item"):
        problem = f"is required, because {page.slug} is not a commitment or action item"
        raise InvalidArgument(name="text", problem=problem)
    return CLOSED_STATUSES[page.type]


def _ticked_text(old: PageRow, words: str, line: int | None, undo: bool) -> tuple[str, str, int, bool]:
    """Tick or untick a to-do. Return truth and timeline of the page, the line number, and whether the text
    changed.
    """
    texts = [old.truth, old.timeline]
    matches = [
        (part, item)
        for part, text in enumerate(texts)
        for item in sections.list_items(text)
        if " ".join(item.text.split()) == words
    ]
    if not matches:
        hint = f" The line was changed; `quaid get {old.slug}` shows it."
        raise NotFound(what="to-do", name=repr(words), hint=hint)
    wanted = [(part, item) for part, item in matches if (item.box in ("x", "X")) == undo]
    if not wanted:
        return old.truth, old.timeline, matches[0][1].line, False
    part, item = min(wanted, key=lambda match: abs(match[1].line - (line or 0)))
    rows = texts[part].split("\n")
    rows[item.line - 1] = sections.with_box(rows[item.line - 1], " " if undo else "x")
    texts[part] = "\n".join(rows)
    return texts[0], texts[1], item.line, True


DatedKind = Literal["entry", "log", "page", "due", "link", "fact"]


class DaysRecord(NamedTuple):
    dated: tuple[DatedItem, ...]
    offset: int
    more: bool
    """True if there are more items."""
    notes: tuple[str, ...] = ()


class WingsRecord(NamedTuple):
    wings: tuple[NameCount, ...]
    types: tuple[NameCount, ...]
    collections: tuple[str, ...]


class PageTitle(NamedTuple):
    """A page, and the name by which it was looked up."""

    slug: str
    title: str
    type: str
    name: str = ""
    """The name by which the page was looked up; empty in a WingRecord."""


class WingRecord(NamedTuple):
    wing: str
    nodes: tuple[PageTitle, ...]
    links: tuple[GraphEdge, ...]
    """Past and current links between these pages."""
    pages: int
    """Total number of pages in the wing."""


@op("read", examples=("quaid days", "quaid days --since 2026-04-01 --kind entry", "quaid days --wing people"))
def days(
    brain: Brain,
    since: Annotated[str | None, Arg("Only items of this day or later, as in 2026-04-25.")] = None,
    until: Annotated[str | None, Arg("Only items of this day or earlier.")] = None,
    kind: Annotated[
        DatedKind | None,
        Arg("Only timeline entries, daily log entries, dated pages, due dates, links, or facts."),
    ] = None,
    type: Annotated[str | None, Arg("Only pages of this type, as in person.")] = None,
    wing: Annotated[str | None, Arg("Only pages of this wing, as in people.")] = None,
    collection: Annotated[str | None, Arg("Only pages of this collection.")] = None,
    text: Annotated[str, Arg("Only items whose text or page title contains this text.")] = "",
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50,
    offset: Annotated[int, Arg("How many to skip first.", minimum=0, maximum=1_000_000)] = 0,
) -> DaysRecord:
    """List dated items from all pages, newest first."""
    filters = DatedFilter(
        dates.check_date(since, "since") if since else "0000",
        dates.check_date(until, "until") if until else "9999-12-31",
        page_model.check_type(type) if type else "",
        wing or "",
        Collections(brain.db).require(collection).name if collection else "",
        " ".join(text.split()),
    )
    kinds, most = (kind,) if kind else store.DATED_KINDS, offset + limit + 1
    with brain.db.reading():
        items = filters.items(brain.db, kinds, most)
        if "log" in kinds:
            items = store.sort_dated([*items, *_log_entries(brain, filters, most)])
    notes = () if items else type_notes(brain, type)
    return DaysRecord(tuple(items[offset : offset + limit]), offset, len(items) > offset + limit, notes)


def _log_entries(brain: Brain, filters: DatedFilter, most: int) -> list[DatedItem]:
    """Return up to `most` entries of daily logs that match the filters. Within a day, the latest comes first."""
    items: list[DatedItem] = []
    needle = filters.text.lower()
    for log, is_whole in filters.daily_logs(brain.db, most):
        for entry in reversed(layout.parse_daily_file(log.text)):
            text = f"{entry.heading}\n{entry.body}".strip()
            if needle in text.lower() or needle in log.title.lower():
                line = entry.line if is_whole else None
                items.append(log._replace(text=text, source=entry.time, line=line))
        if len(items) >= most:
            break
    return items


@op("read", examples=("quaid titles people/alice Brineloop",))
def titles(
    brain: Brain,
    names: Annotated[list[str], Arg("Names as used in links: slugs, aliases or titles.", positional=True)],
) -> Named[tuple[PageTitle, ...]]:
    """Resolve names to pages as links do, and return their slugs, titles and types."""
    with brain.db.reading():
        ids = links.resolve_targets(brain.db, list(dict.fromkeys(names)), collections.DEFAULT_COLLECTION)
        heads = page_heads(brain.db, sorted(set(ids.values())))
    pages = tuple(PageTitle(*_member(heads[id]), name) for name, id in ids.items() if id in heads)
    missing = [name for name in dict.fromkeys(names) if ids.get(name) not in heads]
    warning = (
        f"no page has the name {' or '.join(missing)}; `quaid search WORDS` finds pages" if missing else ""
    )
    return Named("titles", pages, "No page has such a title.", warning if pages else "")


def _member(head: PageHead) -> tuple[str, str, str]:
    return slugs.address(head.collection, head.slug), head.title, head.type


@op("read", examples=("quaid wings",))
def wings(brain: Brain) -> WingsRecord:
    """List the wings and page types, each with its number of pages, and the collections."""
    with brain.db.reading():
        wings, types = (tuple(store.count_pages_by(brain.db, column)) for column in ("wing", "type"))
        return WingsRecord(wings, types, tuple(collection.name for collection in Collections(brain.db).all()))


@op("read", examples=("quaid wing people", "quaid wing people --limit 500 --json"))
def wing(
    brain: Brain,
    wing: Annotated[str, Arg("The wing, as in people.", positional=True)],
    limit: Annotated[int, Arg("How many pages at most.", minimum=1, maximum=10_000)] = 200,
) -> WingRecord:
    """Show the pages of a wing, those with the most links first, and the links between them."""
    with brain.db.reading():
        total = next((page.pages for page in store.count_pages_by(brain.db, "wing") if page.name == wing), 0)
        if not total:
            raise NotFound(what="wing", name=wing, hint=" `quaid wings` lists them.")
        ids = store.pages_of_wing(brain.db, wing, limit)
        heads = page_heads(brain.db, ids)
        rows = links.edges(brain.db, ids, "all", brain.now()[:10], limit * EDGES_PER_NODE, among=True)
        edges = graph_edges(brain, rows, heads)
    nodes = tuple(PageTitle(*_member(heads[id])) for id in ids)
    return WingRecord(wing, nodes, edges, total)


class MapRecord(NamedTuple):
    """The graph of the whole memory, in flat lists, because it may have tens of thousands of links."""

    nodes: tuple[MapNode, ...]
    relationships: tuple[str, ...]
    links: tuple[int, ...]
    """Six numbers for each link.

    These are the indexes of both pages in `nodes`, the index of the relationship in `relationships`, and
    three dates: the start (stated or derived), the end, and the stated start. A date is the number of days
    since 0000-12-31; 0 means unknown.
    """
    pages: int
    """Number of pages in the memory."""


LINK_FIELDS = 6
"""Numbers per link in MapRecord.links."""


@op(
    "read",
    command="map",
    tool="memory_map",
    examples=("quaid map", "quaid map --limit 10000 --json"),
)
def map_(
    brain: Brain,
    limit: Annotated[int, Arg("How many pages at most.", minimum=1, maximum=10_000)] = 200,
) -> MapRecord:
    """Show all pages with the links between them, those with the most links first."""
    return brain.db.cached(f"map {limit}", lambda: _make_map(brain, limit))


def _make_map(brain: Brain, limit: int) -> MapRecord:
    nodes, rows, total = links.whole_graph(brain.db, limit)
    begins = store.link_beginnings(brain.db, rows)
    places = {id: place for place, id in enumerate(nodes)}
    relationships = tuple(sorted({row.relationship for row in rows}))
    numbers = {name: number for number, name in enumerate(relationships)}
    days = {"": 0}

    def number_of(day: str | None) -> int:
        day = day or ""
        if day not in days:
            days[day] = date.fromisoformat(day).toordinal() if dates.is_date(day) else 0
        return days[day]

    flat: list[int] = []
    for row in rows:
        flat += (places[row.from_id], places[row.to_id], numbers[row.relationship])
        flat += (number_of(begins.get(row.id)), number_of(row.valid_until), number_of(row.valid_from))
    return MapRecord(tuple(nodes.values()), relationships, tuple(flat), total)


class Mention(NamedTuple):
    """A page that names another one without a link between them."""

    slug: str
    title: str
    to_slug: str
    to_title: str


@op("read", command="link-suggestions", examples=("quaid link-suggestions --wing people",))
def link_suggestions(
    brain: Brain,
    wing: Annotated[str, Arg("Only links to pages of this wing, as in people.")] = "",
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=1_000)] = 20,
) -> Named[tuple[Mention, ...]]:
    """List pages whose text names another page, without a link between the two."""
    pairs: list[tuple[int, int]] = []
    with brain.db.reading():
        if wing:
            ids = store.pages_of_wing(brain.db, wing, MAX_NAMES_SEARCHED)
        else:
            ids = list(links.whole_graph(brain.db, MAX_NAMES_SEARCHED)[0])
        heads = page_heads(brain.db, ids)
        for id in ids:
            if len(pairs) >= limit:
                break
            mentions = links.unlinked_mentions(brain.db, id, heads[id].title)
            pairs += [(other, id) for other in mentions if (id, other) not in pairs]
        heads |= page_heads(brain.db, [other for other, _ in pairs])
    named = [(_member(heads[other]), _member(heads[id])) for other, id in pairs[:limit]]
    return Named(
        "suggestions", tuple(Mention(*source[:2], *target[:2]) for source, target in named), "None found."
    )


MAX_NAMES_SEARCHED = 500
"""Other pages are searched for the titles of at most this many pages, those with the most links."""
