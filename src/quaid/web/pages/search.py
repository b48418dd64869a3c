"""Search all parts of the memory, and the timeline of dated items.

A search that finds no good answer is recorded as a gap (an unanswered question), unless it ran while typing,
had filters, or came from a link.
"""

import re
import time
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import unquote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from quaid.model import slug as slugs, timeline
from quaid.model.similarity import is_question
from quaid.web.pages import base
from quaid.web.pages.base import (
    cached_operation,
    format_day,
    gather_all,
    humanize,
    may_write,
    parse_number,
    read_days,
    render_fragment,
    render_page,
    route,
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
from quaid.web.pages.notebook import NOTEBOOK_COLLECTION

MAX_RESULTS = 12
MAX_BRIEF_RESULTS = 4
"""The drop-down list of the search field shows at most this many results per group."""
GOOD_RECALL = 0.5
"""A notebook result is a good answer if its score is at least this (see quaid.notebook.recall)."""
GOOD_SHARE, NEAR_SHARE = 0.6, 0.3
"""A node with at least GOOD_SHARE of the question's words is a strong match, with NEAR_SHARE a weak one.

quaid.search.strength has the same limits for pages (STRONG_WORDS, WEAK_WORDS).
"""
KB_COLLECTION = "kb"
MAX_QUERY = 2_000
MAX_NAME_WORDS = 5
"""A question with at most this many words may be a name."""
SEARCH_FILTERS = ("collection", "type", "wing")
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
    lane: str
    reason: str
    type: str
    strength: str
    """The strength of this result alone: strong, weak or none."""
    fit: int = 0
    """How well the name of the result matches the question (see quaid.model.slug.match_strength)."""

    @property
    def is_good(self) -> bool:
        return self.strength == "strong" or self.fit > 0


STRENGTHS = ("none", "weak", "strong")
ResultGroups = list[tuple[str, list[ResultView], str]]
"""Name, results and a note for each part of the memory."""


def sort_groups(groups: ResultGroups) -> ResultGroups:
    """Sort groups by their best name match, then by their best strength.

    Among groups whose best name matches are equal, pages come first.
    """

    def rank(group: tuple[str, list[ResultView], str]) -> tuple[int, bool, int]:
        name, results, _ = group
        fit = max((result.fit for result in results), default=0)
        best = max((STRENGTHS.index(result.strength) for result in results), default=-1)
        return fit, bool(fit) and name == "Pages", best

    return sorted(groups, key=rank, reverse=True)


def read_filters(request: Request, *names: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the filters in the query, dates included, and an error message for each invalid date."""
    days, wrong = read_days(request, "since", "until")
    return {**{name: request.query_params.get(name, "").strip()[:100] for name in names}, **days}, wrong


def _note_for_browser(note: str) -> str:
    """Replace notes that name a command by what the dashboard offers."""
    if note.startswith("by words only: nothing is embedded"):
        return "Found by words only. Rebuild the index in Settings to search by meaning too."
    counts, is_partial, _ = note.partition(" chunks have vectors")
    if is_partial:
        return f"So far {counts} passages can be found by meaning; the others follow in the background."
    return note[:1].upper() + note[1:]


async def search_memory(
    request: Request, question: str, filters: dict[str, str], *, words: bool = False
) -> dict[str, Any]:
    """Search pages, notebook and knowledge base for a question. Return what the template shows.

    With `words`, search pages and notebook by words only, which does not wait for the model.
    """
    began = time.perf_counter()
    active = {name: value for name, value in filters.items() if value}
    searches = [
        try_operation(request, "glance", query=question, limit=MAX_RESULTS, words_only=words, **active)
    ]
    if not active and not words:
        searches.append(try_operation(request, "kb query", query=question, limit=6))
    pages, *others = await gather_all(*searches)
    recalled = pages.recalled if pages else None
    nodes = others[0] if others and others[0] else None
    results = pages.answer.results if pages else ()
    direct = pages.answer.direct if pages else None
    sources = [fact.slug for fact in (*direct.facts, *direct.before)] if direct else []
    names = await look_up_names(request, (*_result_texts(results, recalled, nodes), *sources))
    formatter = _ResultFormatter(question, names)
    groups: dict[str, list[ResultView]] = {"Notebook": [], "Daily": [], "Pages": [], "Knowledge base": []}
    if recalled:
        groups["Notebook"] += map(formatter.file, recalled.notebook)
        groups["Daily"] += map(formatter.file, recalled.daily)
    if nodes:
        groups["Knowledge base"] += map(formatter.node, nodes.matches)
    files = {hit.path for hit in (*recalled.notebook, *recalled.daily)} if recalled else set()
    for result in results:
        if recalled and result.collection == NOTEBOOK_COLLECTION:
            is_wanted = name_fit(result) and f"{result.slug}.md" not in files
        else:
            is_wanted = not (nodes and result.collection == KB_COLLECTION)
        if is_wanted:
            groups[_group_name(result)].append(formatter.page(result))
    notes = {"Pages": "" if pages else pages.message, "Knowledge base": nodes.note if nodes else ""}
    views = [view for group in groups.values() for view in group]
    is_strong = bool(pages) and pages.answer.strength == "strong"
    return {
        "groups": sort_groups(
            [(name, _sort_results(group), notes.get(name, "")) for name, group in groups.items()]
        ),
        "is_answered": is_strong or any(view.is_good for view in views),
        "direct": direct,
        "names": names,
        "notes": [_note_for_browser(note) for note in pages.answer.notes] if pages else (),
        "total": len(views),
        "strong": sum(view.strength == "strong" for view in views),
        "weaker": sum(not view.is_good for view in views),
        "is_named": any(view.fit for view in views),
        "ms": round((time.perf_counter() - began) * 1000),
    }


def _sort_results(results: list[ResultView]) -> list[ResultView]:
    """Sort by name match, then by strength. Results that are equal in both keep their order."""
    return sorted(results, key=lambda result: (-result.fit, -STRENGTHS.index(result.strength)))


def name_fit(result: Any) -> int:
    """Return how well a page's name matches the question, or 0 if the page was not found by its name."""
    if result.lane == "name":
        return slugs.WORD_MATCH if result.strength == "strong" else slugs.PREFIX_MATCH
    return slugs.EXACT_MATCH if result.lane == "exact" else 0


def _group_name(result: Any) -> str:
    """Return the group of a result: notebook files, daily logs and knowledge base nodes are separate from pages."""
    if result.collection == NOTEBOOK_COLLECTION:
        return "Daily" if result.slug.startswith("daily/") else "Notebook"
    return "Knowledge base" if result.collection == KB_COLLECTION else "Pages"


def _result_texts(results: Any, recalled: Any, nodes: Any) -> Iterator[str]:
    """Yield the parts of all results that may contain page names."""
    for result in results:
        yield from (result.content, result.summary)
    for hit in (*recalled.notebook, *recalled.daily) if recalled else ():
        yield from (hit.snippet, hit.heading)
    for match in nodes.matches if nodes else ():
        yield match.summary


class _ResultFormatter:
    """Converts results of the different searches to ResultView."""

    def __init__(self, question: str, names: PageNames) -> None:
        self._question, self._names = question, names
        self._pattern = query_pattern(question)

    def file(self, hit: Any) -> ResultView:
        lines = f"{hit.start_line}–{hit.end_line}" if hit.end_line > hit.start_line else f"{hit.start_line}"
        heading = plain_text(self._names.worded(hit.heading)).lstrip("# ")
        shown = plain_text(self._names.worded(hit.snippet))
        return ResultView(
            base.file_url(hit.path, hit.start_line),
            highlight(heading or hit.path, self._pattern),
            f"{hit.path}:{lines}",
            make_snippet(shown.removeprefix(heading).lstrip() or shown, self._question),
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
            day = f"{format_day(first.date)}{f', {first.source}' if first.source else ''}"
        elif result.date:
            day = format_day(result.date)
        return ResultView(
            base.page_url(address, result.part, self._line(result)),
            highlight(result.title, self._pattern),
            " › ".join(filter(None, (_wing_path(result), self._heading(result) if not entries else "", day))),
            make_snippet(self._names.worded(text), self._question),
            LANE_NAMES.get(result.lane, result.lane),
            result.reason,
            result.type,
            result.strength,
            name_fit(result),
        )

    def _line(self, result: Any) -> int | None:
        """Return the line of the first match in a passage, or None for a link to the top of the page."""
        # Targets of links become spaces, so that they are not matched and offsets stay the same.
        text = _LINK_ADDRESS.sub(lambda link: " " * len(link[0]), result.content)
        match = self._pattern.search(text) if self._pattern else None
        line: int = result.start_line + (text.count("\n", 0, match.start()) if match else 0)
        return line if result.part == "timeline" or line > 1 else None

    def _heading(self, result: Any) -> str:
        """Return the headings above a passage, without the page's title."""
        path = result.heading_path.split(" > ")
        headings = (plain_text(self._names.worded(heading)).lstrip("# ") for heading in path)
        return " › ".join(heading for heading in headings if heading and heading != result.title)

    def node(self, match: Any) -> ResultView:
        return ResultView(
            base.node_url(match.id),
            highlight(match.title, self._pattern),
            match.path,
            make_snippet(self._names.worded(match.summary), self._question),
            ", ".join(match.match),
            match.status,
            "node",
            _node_strength(match),
            self._fit(match.title),
        )

    def _fit(self, title: str) -> int:
        """Return how well a node's title matches the question.

        A question that is not a name (it is too long, or has only stop words) counts only if it matches
        exactly.
        """
        typed = slugs.fold_name(self._question)
        words = typed.split()
        is_name = len(words) <= MAX_NAME_WORDS and not STOP_WORDS.issuperset(words)
        fit = slugs.match_strength(slugs.fold_name(title), typed)
        return fit if is_name or fit == slugs.EXACT_MATCH else 0


def _node_strength(match: Any) -> str:
    """Return how strong a match is: strong, weak or none.

    This depends on the share of the question's words that are in the node, and on the fields that contain
    them.
    """
    is_about_it = match.held == 1 or not {"title", "summary"}.isdisjoint(match.match)
    if match.held >= GOOD_SHARE and is_about_it:
        return "strong"
    return "weak" if match.held >= NEAR_SHARE else "none"


def _wing_path(result: Any) -> str:
    collection = "" if result.collection == "default" else result.collection
    return " › ".join(filter(None, (collection, humanize(result.wing))))


def _without_heading(text: str) -> str:
    """Return a passage without its first heading, which is shown above it."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.startswith("#") and rest.strip() else text


async def _search(request: Request, *, words: bool = False) -> dict[str, Any]:
    """Run the search that the URL parameters describe. Return the values for the search templates."""
    question = request.query_params.get("q", "").strip()[:MAX_QUERY]
    filters, wrong = read_filters(request, *SEARCH_FILTERS)
    words = words or "words" in request.query_params
    results = await search_memory(request, question, filters, words=words) if question else None
    filtered = any((*filters.values(), *wrong.values()))
    return {"question": question, "found": results, "filters": filters, "wrong": wrong, "filtered": filtered}


async def _record_gap(request: Request, values: dict[str, Any]) -> None:
    """Record a question without an answer, unless filters are set or it came from a link."""
    question, results = values["question"], values["found"]
    is_asked = "link" not in request.query_params and not values["filtered"]
    if results and not results["is_answered"] and is_asked and is_question(question) and may_write(request):
        await try_operation(request, "gaps add", query_text=question, context="asked in the dashboard")


@route("/search", GET="read")
async def show_search(request: Request) -> Response:
    """Show the results. With `fast`, which scripts add, show those by words; a script then loads all of them."""
    is_fast = "fast" in request.query_params
    values = await _search(request, words=is_fast)
    rest = ""
    if is_fast and values["found"]:
        rest = base.with_query("/ui/search", {**dict(request.query_params), "fast": "", "asked": 1})
    else:
        await _record_gap(request, values)
    choices = await cached_operation(request, "wings")
    shown = {"choices": choices, "problems": [], "rest": rest, "logs_opened": await _logs_opened(request)}
    return render_page(request, "search.html", **values, **shown)


async def _logs_opened(request: Request) -> bool:
    """Return True if the owner wants opened results to be recorded."""
    if base.request_scope(request) != "owner":
        return False
    setting = await cached_operation(request, "config get", key="log_opened")
    return bool(setting) and setting.value == "words"


@route("/ui/opened", POST="owner")
async def record_opened(request: Request) -> Response:
    """Record that a page was opened from the results of a question, for `quaid golden suggest`."""
    form = await base.read_form(request)
    question, path = form.get("q", "")[:MAX_QUERY], form.get("path", "")
    slug = unquote(path.removeprefix("/page/"))
    await try_operation(request, "golden opened", query=question, slug=slug)
    return Response(status_code=204)


@route("/ui/search", GET="read")
async def search_as_typed(request: Request) -> Response:
    """Return only the results, for a script to insert."""
    values = await _search(request)
    if "asked" in request.query_params:
        await _record_gap(request, values)
    template = "quick.html" if "brief" in request.query_params else "results.html"
    return render_fragment(
        template, **values, problems=list(values["wrong"].values()), most=MAX_BRIEF_RESULTS
    )


ITEMS_PER_PAGE = 80
MAX_LOG_TEXT = 400
"""At most this many characters are shown of a log entry."""
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


def group_by_day(dated: Any, names: PageNames) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Return each date with its weekday (empty if the date has no day) and its items."""
    return [
        (day, _weekday(day), [_timeline_item(item, names) for item in items])
        for day, items in groupby(dated, key=lambda item: item.day)
    ]


def _weekday(day: str) -> str:
    try:
        return f"{date.fromisoformat(day):%A}"
    except ValueError:
        return ""


def _timeline_item(item: Any, names: PageNames) -> dict[str, Any]:
    """Return an item with its URL, title and text as shown. An entry of the daily log links to the notebook."""
    text, title = item.text, item.title
    href = base.page_url(item.slug, "timeline" if item.kind == "entry" else "", item.line)
    if item.kind == "log":
        heading, _, body = text.partition("\n")
        title = names.worded(plain_text(heading)) or title
        text = shorten_markdown(" ".join(body.split()), MAX_LOG_TEXT)
        collection, _, path = item.slug.rpartition("::")
        is_file = collection == NOTEBOOK_COLLECTION
        href = base.file_url(f"{path}.md", item.line) if is_file else base.page_url(item.slug)
    elif item.kind == "link":
        relationship, _, other = text.partition(" ")
        text = f"{humanize(relationship)} {other}"
    return {"item": item, "href": href, "title": title, "text": names.linked(text)}


@route("/timeline", GET="read")
async def show_timeline(request: Request) -> Response:
    filters, wrong = read_filters(request, *TIMELINE_FILTERS)
    if filters["kind"] not in {name for name, _ in ITEM_KINDS}:
        filters["kind"] = ""
    offset = parse_number(request.query_params.get("offset", ""))
    active = {name: value for name, value in filters.items() if value}
    record, choices = await gather_all(
        try_operation(request, "days", limit=ITEMS_PER_PAGE, offset=offset, **active),
        cached_operation(request, "wings"),
    )
    dated = record.dated if record else ()
    names = await look_up_names(request, (item.text for item in dated))

    def page_at(start: int) -> str:
        return base.with_query("/timeline", {**filters, "offset": start})

    return render_page(
        *(request, "timeline.html"),
        record=record,
        days=group_by_day(dated, names),
        filters=filters,
        wrong=wrong,
        filtered=any((*filters.values(), *wrong.values())),
        narrowed=any(value for name, value in (*filters.items(), *wrong.items()) if name != "kind"),
        kinds=ITEM_KINDS,
        older=page_at(offset + ITEMS_PER_PAGE) if record and record.more else "",
        newer=page_at(max(0, offset - ITEMS_PER_PAGE)) if offset else "",
        choices=choices,
    )
