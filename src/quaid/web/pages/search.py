"""Search all parts of the memory, and the timeline of dated items.

A search that finds no good answer is recorded as a gap, unless it is as-you-type, filtered, or came from a link.
"""

import re
import time
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.model import names, slug as slugs, timeline
from quaid.model.similarity import is_question
from quaid.web.pages import links as urls
from quaid.web.pages.base import (
    cached_operation,
    format_day as say_day,
    gather_all,
    humanize,
    may_write,
    parse_number,
    read_days,
    render_fragment,
    render_page,
    try_operation,
)
from quaid.web.pages.markdown import (
    STOP_WORDS,
    PageNames,
    highlight,
    look_up_names,
    make_snippet,
    plain_text,
    query_pattern,
    shorten_markdown,
)
from quaid.web.pages.notebook import NOTEBOOK_COLLECTION, NOTEBOOK_COLLECTION as NOTEBOOK

MAX_RESULTS = 12
MAX_BRIEF_RESULTS = 4
"""Number of results of each group in the drop-down list of the search field."""
GOOD_RECALL = 0.5
"""Score from which a notebook result counts as a good answer (see quaid.notebook.recall)."""
GOOD_SHARE, NEAR_SHARE = 0.6, 0.3
"""Share of the question's words in a node from which it is a strong or a weak match (compare
quaid.search.strength)."""
KB_COLLECTION = "kb"
MAX_QUERY = 2_000
MAX_NAME_WORDS = 5
"""A question with at most this many words may be a name."""
SEARCH_FILTERS, DATE_FILTERS = ("collection", "type", "wing"), ("since", "until")
_LINK_ADDRESS = re.compile(r"\[\[[^\[\]|\n]+[|\]]|\]\([^()\n]*\)")
LANE_NAMES = {
    "exact": "its name",
    "name": "its name",
    "words": "words",
    "meaning": "meaning",
    "both": "words and meaning",
    "date": "date",
}


class ResultView(NamedTuple):
    href: str
    title: Markup
    place: str
    snippet: Markup
    score: float
    lane: str
    reason: str
    type: str
    strength: str
    """strong, weak or none, judged for this result alone."""
    fit: int = 0
    """How well its name matches the question (see quaid.model.names.match_strength)."""

    @property
    def is_good(self) -> bool:
        return self.strength == "strong" or self.fit > 0


STRENGTHS = ("none", "weak", "strong")


class ResultGroup(NamedTuple):
    name: str
    findings: list[ResultView]
    note: str

    @property
    def halves(self) -> list[tuple[str, list[ResultView]]]:
        """Return the good results, then the weaker ones, each with a heading."""
        good = [each for each in self.findings if each.is_good]
        rest = [each for each in self.findings if not each.is_good]
        return [("", good), ("Weaker" if good else "", rest)]

    @property
    def worth(self) -> tuple[int, bool, int]:
        """Return the sort key of a group: best name match, pages before nodes and files, then best strength."""
        fit = max((each.fit for each in self.findings), default=0)
        best = max((STRENGTHS.index(each.strength) for each in self.findings), default=-1)
        return fit, bool(fit) and self.name == "Pages", best


class SearchView(NamedTuple):
    groups: list[ResultGroup]
    is_answered: bool
    """True if some part of the memory has a good answer."""
    notes: tuple[str, ...]
    total: int
    ms: int

    @property
    def strong(self) -> int:
        return self._count("strong")

    @property
    def weaker(self) -> int:
        return sum(not each.is_good for group in self.groups for each in group.findings)

    @property
    def is_named(self) -> bool:
        return any(each.fit for group in self.groups for each in group.findings)

    def _count(self, strength: str) -> int:
        return sum(each.strength == strength for group in self.groups for each in group.findings)

    def brief(self) -> list[ResultGroup]:
        """Return a few results of each group, for the drop-down list."""
        return [
            group._replace(findings=group.findings[:MAX_BRIEF_RESULTS])
            for group in self.groups
            if group.findings
        ]


def search_filters(request: Request) -> tuple[dict[str, str], dict[str, str]]:
    """Return the filters in the query, and an error message for each invalid date."""
    days, wrong = read_days(request, *DATE_FILTERS)
    return {
        **{name: request.query_params.get(name, "").strip()[:100] for name in SEARCH_FILTERS},
        **days,
    }, wrong


async def search_memory(request: Request, question: str, filters: dict[str, str]) -> SearchView:
    """Search pages, notebook and knowledge base for a question."""
    began = time.perf_counter()
    given = {name: value for name, value in filters.items() if value}
    asked = [try_operation(request, "glance", text=question, limit=MAX_RESULTS, **given)]
    if not given:
        asked.append(try_operation(request, "kb query", context=question, max_results=6))
    found, *others = await gather_all(*asked)
    recalled = found.recalled if found else None
    nodes = others[0] if others and others[0] else None
    results = found.answer.results if found else ()
    told = _ResultFormatter(question, await look_up_names(request, _result_texts(results, recalled, nodes)))
    groups: dict[str, list[ResultView]] = {"Notebook": [], "Daily": [], "Pages": [], "Knowledge base": []}
    if recalled:
        groups["Notebook"] += map(told.file, recalled.notebook)
        groups["Daily"] += map(told.file, recalled.daily)
    if nodes:
        groups["Knowledge base"] += map(told.node, nodes.matches)
    files = {hit.path for hit in (*recalled.notebook, *recalled.daily)} if recalled else set()
    for each in results:
        if recalled and each.collection == NOTEBOOK:
            is_wanted = name_fit(each) and f"{each.slug}.md" not in files
        else:
            is_wanted = not (nodes and each.collection == KB_COLLECTION)
        if is_wanted:
            groups[_group_name(each)].append(told.page(each))
    notes = {"Pages": "" if found else found.told, "Knowledge base": nodes.note if nodes else ""}
    made = [ResultGroup(name, _sort_results(each), notes.get(name, "")) for name, each in groups.items()]
    made.sort(key=lambda group: group.worth, reverse=True)
    is_answered = any(each.is_good for group in made for each in group.findings)
    return SearchView(
        made,
        is_answered or bool(found and found.answer.strength == "strong"),
        found.answer.notes if found else (),
        sum(map(len, groups.values())),
        round((time.perf_counter() - began) * 1000),
    )


def _sort_results(findings: list[ResultView]) -> list[ResultView]:
    """Sort by name match, then by strength; the order is otherwise kept."""
    return sorted(findings, key=lambda each: (-each.fit, -STRENGTHS.index(each.strength)))


def name_fit(result: Any) -> int:
    """Return how well a page's name matches the question."""
    if result.lane == "exact":
        return names.EXACT_MATCH
    return (
        0
        if result.lane != "name"
        else names.WORD_MATCH
        if result.strength == "strong"
        else names.PREFIX_MATCH
    )


def _group_name(result: Any) -> str:
    """Return the group of a result: notebook files, daily logs and knowledge base nodes are separate from pages."""
    if result.collection == NOTEBOOK:
        return "Daily" if result.slug.startswith("daily/") else "Notebook"
    return "Knowledge base" if result.collection == KB_COLLECTION else "Pages"


def _result_texts(results: Any, recalled: Any, nodes: Any) -> Iterator[str]:
    """Yield all texts of results that may contain page names."""
    for each in results:
        yield from (each.content, each.summary)
    for each in (*recalled.notebook, *recalled.daily) if recalled else ():
        yield from (each.snippet, each.heading)
    for each in nodes.matches if nodes else ():
        yield each.summary


class _ResultFormatter:
    """Converts results of the different searches to ResultView."""

    def __init__(self, question: str, names: PageNames) -> None:
        self._question, self._names = question, names
        self._looked = query_pattern(question)

    def file(self, hit: Any) -> ResultView:
        lines = f"{hit.start_line}–{hit.end_line}" if hit.end_line > hit.start_line else f"{hit.start_line}"
        heading = plain_text(self._names.worded(hit.heading)).lstrip("# ")
        shown = plain_text(self._names.worded(hit.snippet))
        return ResultView(
            urls.file_url(hit.path, hit.start_line),
            highlight(heading or hit.path, self._looked),
            f"{hit.path}:{lines}",
            make_snippet(shown.removeprefix(heading).lstrip() or shown, self._question),
            hit.score,
            LANE_NAMES[hit.lane],
            "",
            "note",
            # A match by meaning alone may be about something else.
            "strong" if hit.score >= GOOD_RECALL and hit.lane != "meaning" else "weak",
        )

    def page(self, result: Any) -> ResultView:
        address = slugs.address(result.collection, result.slug)
        text, day = _without_heading(result.content) or result.summary, ""
        entries = timeline.parse(result.content) if result.part == "timeline" else ()
        if entries:
            first = entries[0]
            text = f"{first.summary} {first.detail}"
            day = f"{say_day(first.date)}{f', {first.source}' if first.source else ''}"
        return ResultView(
            urls.page_url(address, result.part, self._line(result)),
            highlight(result.title, self._looked),
            " › ".join(filter(None, (_wing_path(result), day or self._heading(result)))),
            make_snippet(self._names.worded(text), self._question),
            result.score,
            LANE_NAMES.get(result.lane, result.lane),
            result.reason,
            result.type,
            result.strength,
            name_fit(result),
        )

    def _line(self, result: Any) -> int | None:
        """Return the line of the first match in a passage, or None if the link should lead to the top of the page."""
        found = self._looked.search(_without_links(result.content)) if self._looked else None
        line: int = result.start_line + (result.content.count("\n", 0, found.start()) if found else 0)
        return line if result.part == "timeline" or line > 1 else None

    def _heading(self, result: Any) -> str:
        """Return the headings above a passage, without the page's title."""
        names = [
            plain_text(self._names.worded(each)).lstrip("# ") for each in result.heading_path.split(" > ")
        ]
        return " › ".join(name for name in names if name and name != result.title)

    def node(self, match: Any) -> ResultView:
        return ResultView(
            urls.node_url(match.id),
            highlight(match.title, self._looked),
            match.path,
            make_snippet(self._names.worded(match.summary), self._question),
            match.held,
            ", ".join(match.match),
            match.status,
            "node",
            _node_strength(match),
            self._fit(match.title),
        )

    def _fit(self, title: str) -> int:
        """Return how well a node's title matches. Full questions and stop words only count if they match exactly."""
        typed = names.fold_name(self._question)
        words = typed.split()
        is_name = len(words) <= MAX_NAME_WORDS and not STOP_WORDS.issuperset(words)
        fit = names.match_strength(names.fold_name(title), typed)
        return fit if is_name or fit == names.EXACT_MATCH else 0


def _node_strength(match: Any) -> str:
    """Return the strength of a node: by its share of the question's words, and whether its title or summary
    has them."""
    is_about_it = match.held == 1 or not {"title", "summary"}.isdisjoint(match.match)
    if match.held >= GOOD_SHARE and is_about_it:
        return "strong"
    return "weak" if match.held >= NEAR_SHARE else "none"


def _wing_path(result: Any) -> str:
    wing = humanize(result.wing)
    return (
        wing
        if result.collection == "default"
        else f"{result.collection} › {wing}"
        if wing
        else result.collection
    )


def _without_links(text: str) -> str:
    """Replace the targets of links by spaces, so that they are not matched and offsets stay the same."""
    return _LINK_ADDRESS.sub(lambda link: " " * len(link[0]), text)


def _without_heading(text: str) -> str:
    """Return a passage without its first heading, which is shown above it."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.startswith("#") and rest.strip() else text


async def show_search(request: Request) -> Response:
    question = request.query_params.get("q", "").strip()[:MAX_QUERY]
    filters, wrong = search_filters(request)
    choices = await cached_operation(request, "wings")
    found = await search_memory(request, question, filters) if question else None
    is_asked = "link" not in request.query_params and not any((*filters.values(), *wrong.values()))
    if found and not found.is_answered and is_asked and is_question(question) and may_write(request):
        await try_operation(request, "gaps add", query_text=question, context="asked in the dashboard")
    return render_page(
        request,
        "search.html",
        question=question,
        found=found,
        filters=filters,
        filtered=any((*filters.values(), *wrong.values())),
        wrong=wrong,
        left_out=[],
        choices=choices,
    )


async def search_as_typed(request: Request) -> Response:
    """Return only the results, for a script to insert."""
    question = request.query_params.get("q", "").strip()[:MAX_QUERY]
    filters, wrong = search_filters(request)
    found = await search_memory(request, question, filters) if question else None
    template = "quick.html" if "brief" in request.query_params else "results.html"
    return render_fragment(template, found=found, question=question, left_out=list(wrong.values()))


def routes() -> list[Route]:
    return [Route("/search", show_search), Route("/ui/search", search_as_typed)]


ITEMS_PER_PAGE = 80
MAX_LOG_TEXT = 400
"""Maximum length of a log entry, in characters."""
ITEM_KINDS = (
    ("", "Everything"),
    ("entry", "Entries"),
    ("log", "Daily log"),
    ("page", "Pages"),
    ("due", "Due"),
    ("link", "Links"),
    ("fact", "Facts"),
)
TIMELINE_FILTERS = ("kind", "type", "wing", "collection", "text")


class TimelineItem(NamedTuple):
    kind: str
    state: str
    href: str
    title: str
    type: str
    text: Markup
    source: str


class TimelineDay(NamedTuple):
    day: str
    weekday: str
    items: list[TimelineItem]


def group_by_day(dated: Any, names: PageNames) -> list[TimelineDay]:
    groups = groupby(dated, key=lambda each: each.day)
    return [
        TimelineDay(day, _weekday(day), [_timeline_item(each, names) for each in group])
        for day, group in groups
    ]


def _weekday(day: str) -> str:
    """Return the name of the weekday; empty for a month."""
    try:
        return f"{date.fromisoformat(day):%A}"
    except ValueError:
        return ""


def _timeline_item(each: Any, names: PageNames) -> TimelineItem:
    if each.kind == "log":
        return _log_item(each, names)
    text = each.text
    if each.kind == "link":
        relationship, _, other = text.partition(" ")
        text = f"{humanize(relationship)} {other}"
    part = "timeline" if each.kind == "entry" else ""
    return TimelineItem(
        *(each.kind, each.state, urls.page_url(each.slug, part, each.line), each.title, each.type),
        *(names.linked(text), each.source),
    )


def _log_item(each: Any, names: PageNames) -> TimelineItem:
    """Return an entry of the daily log. Its title links to the line in the notebook."""
    heading, _, body = each.text.partition("\n")
    title = names.worded(plain_text(heading)) or each.title
    collection, _, path = each.slug.rpartition("::")
    href = urls.page_url(each.slug)
    if collection == NOTEBOOK_COLLECTION:
        href = urls.file_url(f"{path}.md", each.line)
    text = names.linked(shorten_markdown(" ".join(body.split()), MAX_LOG_TEXT))
    return TimelineItem("log", "", href, title, each.type, text, each.source)


def timeline_filters(request: Request) -> tuple[dict[str, str], dict[str, str]]:
    """Return the filters in the query, and an error message for each invalid date."""
    given = {name: request.query_params.get(name, "").strip()[:100] for name in TIMELINE_FILTERS}
    if given["kind"] not in {name for name, _ in ITEM_KINDS}:
        given["kind"] = ""
    days, wrong = read_days(request, "since", "until")
    return {**given, **days}, wrong


async def show_timeline(request: Request) -> Response:
    filters, wrong = timeline_filters(request)
    offset = parse_number(request.query_params.get("offset", ""))
    given = {name: value for name, value in filters.items() if value}
    record, kinds = await gather_all(
        try_operation(request, "days", limit=ITEMS_PER_PAGE, offset=offset, **given),
        cached_operation(request, "wings"),
    )
    dated = record.dated if record else ()
    names = await look_up_names(request, (each.text for each in dated))
    older: dict[str, str | int] = {**filters, "offset": offset + ITEMS_PER_PAGE}
    return render_page(
        request,
        "timeline.html",
        trouble=None if record else record,
        days=group_by_day(dated, names),
        filters=filters,
        wrong=wrong,
        filtered=any((*filters.values(), *wrong.values())),
        narrowed=any(value for name, value in (*filters.items(), *wrong.items()) if name != "kind"),
        kinds=ITEM_KINDS,
        older=urls.with_query("/timeline", older) if record and record.more else "",
        newer=urls.with_query("/timeline", {**filters, "offset": max(0, offset - ITEMS_PER_PAGE)})
        if offset
        else "",
        choices=kinds,
    )


def timeline_routes() -> list[Route]:
    return [Route("/timeline", show_timeline)]
