"""The graph of the whole memory, of a group of pages, or around a page: a drawing, and the same as a list."""

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import QuaidError
from quaid.model import slug as slugs
from quaid.operations.overview import LINK_FIELDS, MapRecord
from quaid.web.pages import base
from quaid.web.pages.base import (
    cached_operation,
    call_operation,
    error_flash,
    gather_all,
    parse_number,
    read_days,
    read_form,
    redirect,
    render_fragment,
    render_page,
    route,
    try_operation,
)
from quaid.web.pages.markdown import look_up_names, shorten_markdown

MAX_NODES = 10_000
"""The drawing shows at most this many pages."""
MAX_NEAR = 2_000
"""Around a page, the drawing shows at most this many pages."""
MAX_DEPTH = 4
MAX_SUGGESTIONS = 12
"""At most this many pages are suggested for a name."""
MAX_LISTED = 200
"""The list below the drawing shows at most this many links or pages."""
MAX_PANEL_LINKS = 14
MAX_PANEL_SUMMARY = 320
MAX_QUERY = 200
"""The text of a search for a page is cut to this many characters."""
PACKED_COPIES = 2
"""Encoded graphs that are kept: one for each thread that reads."""

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
    """As in MapRecord."""
    pages: int
    """Number of pages, also of those that are left out."""
    complete: bool = True
    centre: str = ""
    wing: str = ""
    depth: int = 0

    @property
    def scope(self) -> dict[str, str | int]:
        return {"slug": self.centre, "wing": self.wing, "depth": self.depth}

    def links_on(self, day: str) -> Iterator[tuple[int, int, str, str, str]]:
        """Yield the links that hold on a day: the places of both pages, relationship, first and last day."""
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

    The first twelve have distinct colours. Further ones reuse a colour with a different shape.
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
    slug, wing = request.query_params.get("slug", ""), request.query_params.get("wing", "")
    if slug:
        depth = min(max(parse_number(request.query_params.get("depth", ""), 2), 1), MAX_DEPTH)
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
    """Return the graph as JSON. Links refer to nodes by their place.

    The encoded graph of the whole memory is kept until the memory changes: the operation `map` returns the
    same record until then.
    """
    asked = request.query_params
    if asked.get("slug") or asked.get("wing"):
        packed = await asyncio.to_thread(encode_graph, await load_graph(request))
    else:
        record = await call_operation(request, "map", limit=MAX_NODES)
        kept: list[tuple[str, MapRecord, bytes]] = getattr(request.app.state, "packed_graphs", [])
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        packed = next((data for day, known, data in kept if known is record and day == today), b"")
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
    view, wings, pages = await gather_all(
        load_graph(request), cached_operation(request, "wings"), suggest_pages(request, query)
    )
    days, wrong = read_days(request, "on")
    day = days["on"] or f"{datetime.now(UTC):%Y-%m-%d}"
    is_whole = not view.centre and not view.wing
    links = [] if is_whole else list(view.links_on(day))
    missing = () if is_whole or view.links else await load_missing_links(request, view)
    return render_page(
        *(request, "graph.html"),
        http=error.http_status if error else 200,
        flash=error_flash(error) if error else None,
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
    """Return the numbers of links of the pages that the list shows, by place."""
    ends = Counter(view.links[::LINK_FIELDS]) + Counter(view.links[1::LINK_FIELDS])
    return {place: ends[place] for place in range(min(MAX_LISTED, len(view.nodes)))}


async def load_missing_links(request: Request, view: GraphView) -> tuple[Any, ...]:
    """Return suggestions of links for a group without links."""
    if not view.wing:
        return ()
    record = await try_operation(request, "link-suggestions", wing=view.wing, limit=MAX_SUGGESTIONS)
    return tuple(record.value) if record else ()


@route("/graph/link", POST="write", on_error=show_graph)
async def link_pages(request: Request) -> Response:
    """Link two pages of a group, and show the group again."""
    form = await read_form(request)
    record = await call_operation(
        *(request, "link"),
        from_=form.get("from", ""),
        to=form.get("to", ""),
        relationship=form.get("relationship", "").strip() or None,
    )
    link = record.link
    url = base.with_query("/graph", {"wing": form.get("wing", "")})
    return redirect(
        request,
        url,
        f"{base.title_from_address(link.from_slug)} now links to {base.title_from_address(link.to_slug)}.",
    )


@route("/ui/graph/page", GET="read")
async def show_panel(request: Request) -> Response:
    """Return the panel about one page: its summary, and its links of any time."""
    address = request.query_params.get("slug", "")
    record, near = await gather_all(
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
