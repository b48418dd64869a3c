"""The graph of the links around a page or within a wing, which is a top-level category of pages.

The page lists the links that are valid on a day. The script gets the links of all days and filters them
itself. A link without a start date begins with the page that contains it.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from quaid.model import slug as slugs
from quaid.web.pages import links as urls
from quaid.web.pages.base import (
    cached_operation,
    call_operation,
    gather_all,
    parse_number,
    read_days,
    render_page,
    route,
    try_operation,
)

MAX_NODES = 2_000
MAX_DEPTH = 4
MAX_SUGGESTIONS = 12
"""At most this many pages are suggested as a centre."""
MAX_LISTED = 200
"""The list below the drawing shows at most this many links."""

COLOURS = (
    *("person", "company", "project", "concept", "source", "journal", "decision"),
    *("commitment", "action_item", "media", "original", "deal"),
)
"""Page types that have a fixed colour. If a type does not occur, its colour is given to another type."""
MAX_QUERY = 200
"""The search text for finding a page has at most this many characters."""
SHAPES = ("circle", "square", "diamond", "triangle")


def node_styles(types: Iterable[str]) -> list[tuple[str, str, str, int]]:
    """Return type, colour, shape and number of pages for each type, the most frequent first.

    The first twelve types have distinct colours. Further types reuse a colour with a different shape.
    """
    counts = Counter(types)
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


async def load_graph(request: Request) -> dict[str, Any] | None:
    """Return the nodes and links that the query asks for, or None if it names neither a page nor a wing.

    A node is a tuple of address, title, type and distance from the centre. `centre` is empty for a wing.
    """
    slug, wing = request.query_params.get("slug", ""), request.query_params.get("wing", "")
    depth = min(max(parse_number(request.query_params.get("depth", ""), 2), 1), MAX_DEPTH)
    if slug:
        record = await call_operation(
            request, "graph", slug=slug, depth=depth, temporal="all", limit=MAX_NODES
        )
        nodes = [
            (slugs.address(node.collection, node.slug), node.title, node.type, node.distance)
            for node in record.nodes
        ]
        centre, wing, complete = nodes[0][0], "", record.complete
    elif wing:
        record = await call_operation(request, "wing", wing=wing, limit=MAX_NODES)
        nodes = [(node.slug, node.title, node.type, 0) for node in record.nodes]
        centre, depth, complete = "", 0, len(nodes) >= record.pages
    else:
        return None
    shown = {address for address, *_ in nodes}
    links = [link for link in record.links if link.from_slug in shown and link.to_slug in shown]
    source = urls.with_query("/ui/graph", {"slug": centre, "wing": wing, "depth": depth})
    return {
        "centre": centre,
        "wing": wing,
        "depth": depth,
        "nodes": nodes,
        "links": links,
        "complete": complete,
        "source": source,
    }


async def suggest_pages(request: Request, query: str) -> list[Any]:
    """Return pages to choose as a centre: pages that match `query`, or the most recently changed pages."""
    if query:
        record = await try_operation(request, "glance", text=query, limit=MAX_SUGGESTIONS)
        return list(record.answer.results) if record else []
    record = await try_operation(request, "list", limit=MAX_SUGGESTIONS)
    return list(record.pages) if record else []


@route("/graph", GET="read")
async def show_graph(request: Request) -> Response:
    query = request.query_params.get("find", "").strip()[:MAX_QUERY]
    graph, wings, pages = await gather_all(
        load_graph(request), cached_operation(request, "wings"), suggest_pages(request, query)
    )
    days, wrong = read_days(request, "on")
    day = days["on"] or f"{datetime.now(UTC):%Y-%m-%d}"
    nodes = graph["nodes"] if graph else []
    links = [
        link
        for link in (graph["links"] if graph else ())
        if (link.begins or "") <= day and (not link.valid_until or day < link.valid_until)
    ]
    return render_page(
        *(request, "graph.html"),
        graph=graph,
        titles={address: title for address, title, _, _ in nodes},
        wings=wings.wings if wings else [],
        wanted=query,
        suggestions=[(slugs.address(page.collection, page.slug), page.title, page.type) for page in pages],
        links=links[:MAX_LISTED],
        total=len(links),
        day=day,
        wrong=wrong,
        has_day=bool(days["on"]),
        most=MAX_LISTED,
        styles=node_styles(kind for _, _, kind, _ in nodes),
    )


@route("/ui/graph", GET="read")
async def graph_data(request: Request) -> Response:
    """Return the graph as JSON. Links refer to nodes by their index."""
    graph = await load_graph(request)
    if graph is None:
        return JSONResponse({"nodes": [], "links": []})
    places = {address: place for place, (address, *_) in enumerate(graph["nodes"])}
    links = [
        (
            *(places[link.from_slug], places[link.to_slug], link.relationship),
            *(link.valid_from, link.valid_until, link.begins),
        )
        for link in graph["links"]
    ]
    shown = {key: graph[key] for key in ("centre", "complete", "nodes")}
    return JSONResponse({**shown, "links": links}, headers={"Cache-Control": "no-store"})
