"""Ways to find pages: a search in all parts of the memory, the timeline of dated items, and the graph of links.

A question that finds no good answer is recorded as a gap (an unanswered question) if the caller may write, unless
the search ran while typing, had filters, or came from a link.
"""

import asyncio
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import unquote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import QuaidError
from quaid.model import slug as slugs, timeline
from quaid.model.plain_text import is_question
from quaid.operations.overview import LINK_FIELDS, MapRecord
from quaid.web.pages import base
from quaid.web.pages.base import (
    Form,
    cached_operation,
    call_operation,
    format_day,
    humanize,
    may_write,
    parse_number,
    read_days,
    read_form,
    redirect,
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
from quaid.web.pages.page import MAX_QUERY

MAX_RESULTS = 12
MAX_BRIEF_RESULTS = 4
"""The drop-down list of the search field shows at most this many results per group."""
GOOD_RECALL = 0.5
"""A notebook result is a good answer if its score is at least this (see quaid.notebook.recall)."""
GOOD_SHARE, NEAR_SHARE = 0.6, 0.3
"""A node with at least GOOD_SHARE of the question's words may be a strong match, one with NEAR_SHARE is a
weak match.

quaid.search.results has the same limits for pages (STRONG_WORDS, WEAK_WORDS).
"""
KB_COLLECTION = "kb"
MAX_QUESTION = 2_000
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
    """Return a note of a search in the words of the dashboard, without names of commands."""
    if note.startswith("by words only: nothing is embedded"):
        return "Found by words only. Rebuild the index in Settings to search by meaning too."
    counts, is_partial, _ = note.partition(" chunks have vectors")
    if is_partial:
        return f"So far {counts} passages can be found by meaning; the others follow in the background."
    return note[:1].upper() + note[1:]


async def search_memory(
    request: Request, question: str, filters: dict[str, str], *, words: bool = False
) -> dict[str, Any]:
    """Search pages, notebook and knowledge base for a question. Return the template values.

    The knowledge base is searched only if there are no filters. With `words`, search only pages and notebook, and
    only by words, which does not wait for the model.
    """
    began = time.perf_counter()
    active = {name: value for name, value in filters.items() if value}
    searches = [
        try_operation(request, "glance", query=question, limit=MAX_RESULTS, words_only=words, **active)
    ]
    if not active and not words:
        searches.append(try_operation(request, "kb query", query=question, limit=6))
    pages, *others = await asyncio.gather(*searches)
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
    question = request.query_params.get("q", "").strip()[:MAX_QUESTION]
    filters, wrong = read_filters(request, *SEARCH_FILTERS)
    words = words or "words" in request.query_params
    results = await search_memory(request, question, filters, words=words) if question else None
    filtered = any((*filters.values(), *wrong.values()))
    return {"question": question, "found": results, "filters": filters, "wrong": wrong, "filtered": filtered}


async def _record_gap(request: Request, values: dict[str, Any]) -> None:
    """Record a question without a good answer as a gap, if the caller may write.

    A search with filters, a search from a link and a text that is not a question are not recorded.
    """
    question, results = values["question"], values["found"]
    is_asked = "link" not in request.query_params and not values["filtered"]
    if results and not results["is_answered"] and is_asked and is_question(question) and may_write(request):
        await try_operation(request, "gaps add", query_text=question, context="asked in the dashboard")


@route("/search", GET="read")
async def show_search(request: Request) -> Response:
    """Show the results. With `fast`, which a script adds, show only results by words; the script then loads all."""
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
    question, path = form["q"][:MAX_QUESTION], form["path"]
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
    record, choices = await asyncio.gather(
        try_operation(request, "days", limit=ITEMS_PER_PAGE, offset=offset, **active),
        cached_operation(request, "wings"),
    )
    dated = record.dated if record else ()
    names = await look_up_names(request, (item.text for item in dated))

    def page_at(start: int) -> str:
        return base.with_query("/timeline", {**filters, "offset": start})

    return render_page(
        request,
        "timeline.html",
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


MAX_NODES = 10_000
"""The drawing shows at most this many pages."""
MAX_NEAR = 2_000
"""A drawing centred on one page shows at most this many pages."""
MAX_DEPTH = 4
MAX_SUGGESTIONS = 12
"""At most this many pages are suggested for a name."""
MAX_LISTED = 200
"""The list below the drawing shows at most this many links or pages."""
MAX_PANEL_LINKS = 14
MAX_PANEL_SUMMARY = 320
PACKED_COPIES = 2
"""Number of encoded graphs that are cached: one for each reader thread."""

COLOURS = (
    *("person", "company", "project", "concept", "source", "journal", "decision"),
    *("commitment", "action_item", "media", "original", "deal"),
)
"""Page types that have a fixed colour. If a type does not occur, its colour is given to another type."""
SHAPES = ("circle", "square", "diamond", "triangle")


class GraphView(NamedTuple):
    """The nodes and links of one drawing."""

    nodes: list[tuple[str, str, str, str, str]]
    """Address, title, type, group (wing) and day of the last change. The last two may be empty."""
    relationships: tuple[str, ...]
    links: tuple[int, ...]
    """Flat list of links, in the format of MapRecord.links."""
    pages: int
    """Number of pages, including those that are left out."""
    complete: bool = True
    centre: str = ""
    wing: str = ""
    depth: int = 0

    @property
    def scope(self) -> dict[str, str | int]:
        return {"slug": self.centre, "wing": self.wing, "depth": self.depth}

    def links_on(self, day: str) -> Iterator[tuple[int, int, str, str, str]]:
        """Yield the links that are valid on a day: indexes of both nodes, relationship, stated start date and
        end date.
        """
        number = date.fromisoformat(day).toordinal()
        for at in range(0, len(self.links), LINK_FIELDS):
            a, b, name, begins, ends, since = self.links[at : at + LINK_FIELDS]
            if begins <= number and (not ends or number < ends):
                yield a, b, self.relationships[name], _day(since), _day(ends)


def _day(number: int) -> str:
    return date.fromordinal(number).isoformat() if number else ""


def _number(day: str | None) -> int:
    return date.fromisoformat(day).toordinal() if day else 0


def node_styles(names: Iterable[str]) -> list[tuple[str, str, str, int]]:
    """Return name, colour, shape and number of pages for each type or group, the most frequent first.

    Names in COLOURS have that colour. Others get the free colours, and then reuse a colour with another shape.
    """
    counts = Counter(names)
    free = [colour for colour in COLOURS if colour not in counts]
    styles, reused = [], 0
    for name, pages in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        colour, shape = name, SHAPES[0]
        if name not in COLOURS and free:
            colour = free.pop()
        elif name not in COLOURS:
            colour = COLOURS[reused % len(COLOURS)]
            shape = SHAPES[1 + reused // len(COLOURS) % (len(SHAPES) - 1)]
            reused += 1
        styles.append((name, colour, shape, pages))
    return styles


async def load_graph(request: Request) -> GraphView:
    """Return the graph that the query asks for: around a page, of a group, or of the whole memory."""
    params = Form(request.query_params)
    slug, wing = params["slug"], params["wing"]
    if slug:
        depth = min(max(parse_number(params["depth"], 2), 1), MAX_DEPTH)
        record = await call_operation(
            request, "graph", slug=slug, depth=depth, temporal="all", limit=MAX_NEAR
        )
        nodes = [
            (slugs.address(node.collection, node.slug), node.title, node.type, "", "")
            for node in record.nodes
        ]
        view = GraphView(nodes, *_flat_links(nodes, record.links), len(nodes), record.complete)
        return view._replace(centre=nodes[0][0], depth=depth)
    if wing:
        record = await call_operation(request, "wing", wing=wing, limit=MAX_NODES)
        nodes = [(node.slug, node.title, node.type, "", "") for node in record.nodes]
        view = GraphView(nodes, *_flat_links(nodes, record.links), record.pages)
        return view._replace(wing=wing, complete=len(nodes) >= record.pages)
    return _whole_view(await call_operation(request, "map", limit=MAX_NODES))


def _whole_view(record: MapRecord) -> GraphView:
    nodes = [(node.slug, node.title, node.type, node.wing, node.updated) for node in record.nodes]
    complete = len(nodes) >= record.pages
    return GraphView(nodes, record.relationships, record.links, record.pages, complete)


def _flat_links(nodes: list[Any], links: Iterable[Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the relationships, and the links between these nodes as in MapRecord."""
    places = {node[0]: place for place, node in enumerate(nodes)}
    shown = [link for link in links if link.from_slug in places and link.to_slug in places]
    names = {name: number for number, name in enumerate(sorted({link.relationship for link in shown}))}
    flat: list[int] = []
    for link in shown:
        flat += (places[link.from_slug], places[link.to_slug], names[link.relationship])
        flat += (_number(link.begins), _number(link.valid_until), _number(link.valid_from))
    return tuple(names), tuple(flat)


def encode_graph(view: GraphView) -> bytes:
    """Return the graph as packed JSON for the script: one list for each property of the nodes, and flat links."""
    slug_list, titles, types, groups, days = (
        map(list, zip(*view.nodes, strict=True)) if view.nodes else ([],) * 5
    )
    styles = {
        "type": node_styles(types),
        "group": node_styles(groups) if view.centre + view.wing == "" else [],
    }
    places = {kind: {style[0]: place for place, style in enumerate(rows)} for kind, rows in styles.items()}
    today = datetime.now(UTC).date().toordinal()
    numbers = {day: max(today - _number(day), 0) for day in set(days)}
    output = {
        "centre": 0 if view.centre else -1,
        "pages": view.pages,
        "slugs": slug_list,
        "titles": titles,
        "type": [places["type"][name] for name in types],
        "group": [places["group"][name] for name in groups] if styles["group"] else [],
        "ages": [numbers[day] for day in days] if styles["group"] else [],
        "styles": styles,
        "palette": COLOURS,
        "relationships": view.relationships,
        "links": view.links,
    }
    text = json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8", "replace"), 5, mtime=0)


@route("/ui/graph", GET="read")
async def graph_data(request: Request) -> Response:
    """Return the graph as JSON. Links refer to nodes by index.

    The encoded graph of the whole memory is cached until the memory changes; until then, the operation `map`
    returns the same record.
    """
    params = Form(request.query_params)
    if params["slug"] or params["wing"]:
        packed = await asyncio.to_thread(encode_graph, await load_graph(request))
    else:
        record = await call_operation(request, "map", limit=MAX_NODES)
        kept: list[tuple[str, MapRecord, bytes]] = getattr(request.app.state, "packed_graphs", [])
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        packed = next((data for day, encoded, data in kept if encoded is record and day == today), b"")
        if not packed:
            packed = await asyncio.to_thread(lambda: encode_graph(_whole_view(record)))
            request.app.state.packed_graphs = [(today, record, packed), *kept[: PACKED_COPIES - 1]]
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(
            packed, headers={**headers, "Content-Encoding": "gzip"}, media_type="application/json"
        )
    return Response(gzip.decompress(packed), headers=headers, media_type="application/json")


async def suggest_pages(request: Request, query: str) -> list[tuple[str, str, str]]:
    """Return address, title and type of pages that match a name."""
    if not query:
        return []
    record = await try_operation(request, "glance", text=query, limit=MAX_SUGGESTIONS)
    results = record.answer.results if record else ()
    return [(slugs.address(page.collection, page.slug), page.title, page.type) for page in results]


@route("/graph", GET="read")
async def show_graph(request: Request, error: QuaidError | None = None) -> Response:
    query = request.query_params.get("find", "").strip()[:MAX_QUERY]
    view, wings, pages = await asyncio.gather(
        load_graph(request), cached_operation(request, "wings"), suggest_pages(request, query)
    )
    days, wrong = read_days(request, "on")
    day = days["on"] or f"{datetime.now(UTC):%Y-%m-%d}"
    is_whole = not view.centre and not view.wing
    links = [] if is_whole else list(view.links_on(day))
    missing = () if is_whole or view.links else await load_missing_links(request, view)
    return render_page(
        request,
        "graph.html",
        error=error,
        graph=view,
        is_whole=is_whole,
        source=base.with_query("/ui/graph", view.scope),
        wings=wings.wings if wings else [],
        wanted=query,
        suggestions=pages,
        links=links[:MAX_LISTED],
        total=len(links),
        counts=_link_counts(view) if is_whole else {},
        missing=missing,
        day=day,
        wrong=wrong,
        has_day=bool(days["on"]),
        most=MAX_LISTED,
        styles=node_styles(kind for _, _, kind, _, _ in view.nodes),
    )


def _link_counts(view: GraphView) -> dict[int, int]:
    """Return the number of links of each listed page, by node index."""
    ends = Counter(view.links[::LINK_FIELDS]) + Counter(view.links[1::LINK_FIELDS])
    return {place: ends[place] for place in range(min(MAX_LISTED, len(view.nodes)))}


async def load_missing_links(request: Request, view: GraphView) -> tuple[Any, ...]:
    """Return suggested links to pages of the group, or () if the view does not show a group."""
    if not view.wing:
        return ()
    record = await try_operation(request, "link-suggestions", wing=view.wing, limit=MAX_SUGGESTIONS)
    return tuple(record.value) if record else ()


@route("/graph/link", POST="write", on_error=show_graph)
async def link_pages(request: Request) -> Response:
    """Link two pages, and show the group from which they were linked."""
    form = await read_form(request)
    record = await call_operation(
        request, "link", from_=form["from"], to=form["to"], relationship=form["relationship"].strip() or None
    )
    link = record.link
    url = base.with_query("/graph", {"wing": form["wing"]})
    return redirect(
        request,
        url,
        f"{base.title_from_address(link.from_slug)} now links to {base.title_from_address(link.to_slug)}.",
    )


@route("/ui/graph/page", GET="read")
async def show_panel(request: Request) -> Response:
    """Return the panel about one page: its summary, and its current and past links."""
    address = request.query_params.get("slug", "")
    record, near = await asyncio.gather(
        call_operation(request, "get", slug=address),
        call_operation(request, "graph", slug=address, depth=1, temporal="all", limit=MAX_NEAR),
    )
    own = slugs.address(record.collection, record.slug)
    titles = {slugs.address(node.collection, node.slug): (node.title, node.type) for node in near.nodes}
    links = [link for link in near.links if own in (link.from_slug, link.to_slug)]
    names = await look_up_names(request, [record.summary])
    return render_fragment(
        "graph_panel.html",
        record=record,
        address=own,
        summary=names.linked(shorten_markdown(record.summary, MAX_PANEL_SUMMARY)),
        links=links[:MAX_PANEL_LINKS],
        more=len(links) - MAX_PANEL_LINKS,
        titles=titles,
    )
