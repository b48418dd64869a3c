"""Read-only views across all pages: the briefing, dated items, wings (top-level categories) and titles."""

from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound
from quaid.formats import sections
from quaid.model import dates, markdown_text, page as page_model, slug as slugs
from quaid.model.plain_text import count_noun
from quaid.notebook import files as notebook_files, layout
from quaid.operations.filters import type_notes
from quaid.operations.links import EDGES_PER_NODE, GraphEdge, graph_edges
from quaid.operations.registry import Arg, Named, op
from quaid.storage import briefing as store, collections, contradictions, links, proposals
from quaid.storage.briefing import BriefingLine, BriefingPart, DatedFilter, DatedItem, NameCount
from quaid.storage.collections import Collection
from quaid.storage.pages import PageHead, count as count_pages, page_heads

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
"""A briefing searches for contradictions if there are at most this many pages.

The search takes about 60 ms if every page states that someone left a job, school or home.
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
    """Open to-dos of the notebook: overdue, due until `due_until`, and without a day."""
    commitments: BriefingPart
    actions: BriefingPart
    contradictions: BriefingPart
    review: BriefingPart
    """Writes of agents that wait for review. An agent sees only its own."""
    gaps: BriefingPart
    """Questions that the memory could not answer and whose words are stored."""
    stale: BriefingPart
    threads: BriefingPart
    deals: BriefingPart
    people: BriefingPart
    changed: BriefingPart
    notes: tuple[str, ...]
    next_steps: tuple[str, ...]
    proposals: int = 0
    """Number of writes of agents that wait for review."""
    unworded_gaps: int = 0
    """Number of open questions of which only the hash is stored."""

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

    Compiled from the memory alone, without a model. Each line names its page; all text is data."""
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
        from quaid.operations.notebook import fresh_notebook  # imported late: a memory may have no notebook

        notebook = fresh_notebook(brain)
    with brain.db.reading():
        parts = {
            **dict.fromkeys(BRIEFING_PARTS, BriefingPart()),
            **store.briefing_parts(brain.db, names, period, limit),
        }
        if notebook is not None:
            parts["todos"] = _todos(brain, notebook, horizon, limit)
        erasures = proposals.waiting_erasures(brain.db)
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
        proposals=proposals.count_open(brain.db),
        unworded_gaps=unworded,
    )
    return record._replace(next_steps=_next_steps(record, limit))


def _todos(brain: Brain, notebook: Collection, horizon: str, limit: int) -> BriefingPart:
    """Return the open to-dos of the notebook: those due until `horizon`, earliest first, then those without a day.

    Checkboxes of files other than the list of to-dos count only if they name a day.
    """
    items: list[BriefingLine] = []
    for slug, text in store.checklist_pages(brain.db, notebook.id):
        for item in sections.list_items(text):
            is_todo = item.box == " " or (item.box is None and slug == store.TODO_LIST)
            if not is_todo or not item.text or item.text.startswith("~~"):
                continue
            days = dates.find_dates(item.text)
            day = days[0].last if days else ""
            if day <= horizon and (day or slug == store.TODO_LIST):
                items.append(BriefingLine(slugs.address(notebook.name, slug), day, "open", item.text))
    items.sort(key=lambda item: item.day or "9999")
    return BriefingPart(tuple(items[:limit]), len(items))


def _waiting(brain: Brain, limit: int) -> BriefingPart:
    """Return the proposals that wait for review, oldest first. An agent gets only its own."""
    items = [
        BriefingLine(
            slugs.address(row.collection or "default", row.slug) if row.slug else "",
            row.created_at[:10],
            f"{row.tool} by {row.author}",
            # The text that is to be erased is shown only to those who decide about it.
            "Erase a page or sentence" if row.tool == "memory_forget" else row.summary,
            id=row.id,
        )
        for row in proposals.open_proposals(brain.db)
        if not brain.agent or row.author == brain.agent
    ]
    return BriefingPart(tuple(items[:limit]), len(items))


def _without(part: BriefingPart, erasures: frozenset[str]) -> BriefingPart:
    """Return a part without the lines of pages that wait to be erased, or with a sentence that does."""
    kept = tuple(
        line
        for line in part.items
        if line.slug not in erasures and not any(words in line.text for words in erasures)
    )
    return part._replace(items=kept, total=part.total - len(part.items) + len(kept))


def _window_start(brain: Brain, since: str, now: str) -> str:
    """Return the time since which changes count as new, from the argument `since`."""
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
    return markdown_text.shorten(markdown_text.one_line(text), MAX_LINE_LENGTH)


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
    findings = [row for row in contradictions.current_findings(brain.db, today) if row[0].type != "stale"]
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
        page._replace(text=thread) for page in pages.items for thread in markdown_text.open_threads(page.text)
    ]
    return BriefingPart(tuple(items[:limit]), len(items))


def _last_check_note(brain: Brain) -> str:
    """Return a note with the date of the last check, which found the listed contradictions."""
    last = contradictions.last_check(brain.db)
    when = f"as of the last check, {last[:10]}" if last else "unknown before the first check"
    return f"contradictions are {when}; `quaid check` finds new ones"


def _notes(undated: int, with_threads: BriefingPart, unworded: int) -> list[str]:
    """Return notes on commitments without a due date, pages not read for open threads, and gaps without words."""
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
        collections.require(brain.db, collection).name if collection else "",
        " ".join(text.split()),
    )
    kinds, most = (kind,) if kind else store.DATED_KINDS, offset + limit + 1
    with brain.db.reading():
        items = store.dated_items(brain.db, filters, kinds, most)
        if "log" in kinds:
            items = store.sort_dated([*items, *_log_entries(brain, filters, most)])
    notes = () if items else type_notes(brain, type)
    return DaysRecord(tuple(items[offset : offset + limit]), offset, len(items) > offset + limit, notes)


def _log_entries(brain: Brain, filters: DatedFilter, most: int) -> list[DatedItem]:
    """Return up to `most` entries of daily logs that match the filters. Within a day, the latest comes first."""
    items: list[DatedItem] = []
    needle = filters.text.lower()
    for log, is_whole in store.daily_logs(brain.db, filters, most):
        for entry in reversed(notebook_files.parse_daily_file(log.text)):
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
        return WingsRecord(
            wings, types, tuple(collection.name for collection in collections.list_all(brain.db))
        )


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
