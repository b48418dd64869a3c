"""The graph of the links around a page or within a wing.

The page lists the links that are valid on a day. The script gets the links of all days and filters them itself. A
link without a start date begins with the page that contains it.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from quaid.model import slug as slugs
from quaid.web.pages import links as urls
from quaid.web.pages.base import (
    cached_operation,
    call_operation,
    gather_all,
    parse_number,
    read_days,
    render_page,
    try_operation,
)

MAX_NODES = 2_000
MAX_DEPTH = 4
MAX_SUGGESTIONS = 12
"""Number of pages suggested as a centre."""
MAX_LISTED = 200
"""Number of links in the list below the drawing."""

COLOURS = (
    *("person", "company", "project", "concept", "source", "journal", "decision"),
    *("commitment", "action_item", "media", "original", "deal"),
)
"""Page types with a fixed colour. Colours of types that do not occur are given to other types."""
MAX_QUERY = 200
"""Maximum length of the text that searches for a page, in characters."""
SHAPES = ("circle", "square", "diamond", "triangle")


class NodeStyle(NamedTuple):
    """How pages of one type are drawn, and how many there are."""

    type: str
    colour: str
    shape: str
    pages: int


class GraphView(NamedTuple):
    centre: str
    """Address of the page in the centre; empty for a wing."""
    wing: str
    depth: int
    nodes: list[tuple[str, str, str, int]]
    """Address, title, type and distance from the centre."""
    links: list[Any]
    complete: bool

    @property
    def source(self) -> str:
        """Return the URL of the same graph as JSON."""
        return urls.with_query("/ui/graph", {"slug": self.centre, "wing": self.wing, "depth": self.depth})

    def on(self, day: str) -> list[Any]:
        """Return the links that were valid on a day."""
        return [
            each
            for each in self.links
            if (each.begins or "") <= day and (not each.valid_until or day < each.valid_until)
        ]


def node_styles(types: Iterable[str]) -> list[NodeStyle]:
    """Return a style for each type, the most frequent first.

    The first twelve types have distinct colours; further ones reuse a colour with another shape.
    """
    counted = Counter(types).most_common()
    free = [each for each in COLOURS if each not in {name for name, _ in counted}]
    found, more = [], 0
    for name, pages in sorted(counted, key=lambda each: (-each[1], each[0])):
        if name in COLOURS:
            found.append(NodeStyle(name, name, SHAPES[0], pages))
        elif free:
            found.append(NodeStyle(name, free.pop(), SHAPES[0], pages))
        else:
            shape = SHAPES[1 + more // len(COLOURS) % (len(SHAPES) - 1)]
            found.append(NodeStyle(name, COLOURS[more % len(COLOURS)], shape, pages))
            more += 1
    return found


async def load_graph(request: Request) -> GraphView | None:
    """Return the nodes and links that the query asks for, or None if it names neither a page nor a wing."""
    slug, wing = request.query_params.get("slug", ""), request.query_params.get("wing", "")
    depth = min(max(parse_number(request.query_params.get("depth", ""), 2), 1), MAX_DEPTH)
    if slug:
        record = await call_operation(
            request, "graph", slug=slug, depth=depth, temporal="all", limit=MAX_NODES
        )
        nodes = [
            (slugs.address(each.collection, each.slug), each.title, each.type, each.distance)
            for each in record.nodes
        ]
        return GraphView(nodes[0][0], "", depth, nodes, _links_between(nodes, record.links), record.complete)
    if wing:
        record = await call_operation(request, "wing", wing=wing, limit=MAX_NODES)
        nodes = [(each.slug, each.title, each.type, 0) for each in record.nodes]
        return GraphView("", wing, 0, nodes, _links_between(nodes, record.links), len(nodes) >= record.pages)
    return None


def _links_between(nodes: list[tuple[str, str, str, int]], links: Iterable[Any]) -> list[Any]:
    """Return the links whose two ends are both shown."""
    there = {address for address, *_ in nodes}
    return [each for each in links if each.from_slug in there and each.to_slug in there]


async def suggest_pages(request: Request, wanted: str) -> list[Any]:
    """Return pages to choose as a centre: those that match `wanted`, or the most recently changed ones."""
    if wanted:
        record = await try_operation(request, "glance", text=wanted, limit=MAX_SUGGESTIONS)
        return list(record.answer.results) if record else []
    record = await try_operation(request, "list", limit=MAX_SUGGESTIONS)
    return list(record.pages) if record else []


async def show_graph(request: Request) -> Response:
    wanted = request.query_params.get("find", "").strip()[:MAX_QUERY]
    found, wings, known = await gather_all(
        load_graph(request), cached_operation(request, "wings"), suggest_pages(request, wanted)
    )
    days, wrong = read_days(request, "on")
    day = days["on"] or f"{datetime.now(UTC):%Y-%m-%d}"
    links = found.on(day) if found else []
    return render_page(
        request,
        "graph.html",
        found=found,
        titles={address: title for address, title, _, _ in found.nodes} if found else {},
        wings=wings.wings if wings else [],
        wanted=wanted,
        offered=[(slugs.address(each.collection, each.slug), each.title, each.type) for each in known],
        links=links[:MAX_LISTED],
        total=len(links),
        day=day,
        wrong=wrong,
        is_asked=bool(days["on"]),
        most=MAX_LISTED,
        looks=node_styles(kind for _, _, kind, _ in found.nodes) if found else [],
    )


async def graph_data(request: Request) -> Response:
    """Return the graph as JSON. Links refer to nodes by their index."""
    found = await load_graph(request)
    if found is None:
        return JSONResponse({"nodes": [], "links": []})
    places = {address: place for place, (address, _, _, _) in enumerate(found.nodes)}
    links = [
        (
            *(places[each.from_slug], places[each.to_slug], each.relationship),
            *(each.valid_from, each.valid_until, each.begins),
        )
        for each in found.links
    ]
    told = {"centre": found.centre, "complete": found.complete, "nodes": found.nodes, "links": links}
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


def routes() -> list[Route]:
    return [Route("/graph", show_graph), Route("/ui/graph", graph_data)]
