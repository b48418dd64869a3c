"""The graph: pages around a page, or those of a wing, and the links between them with their time.

The page lists the links of a day; a script draws them. Both have the same links: the script gets those of any time,
shows a day by itself and lists anew what it shows. A link that says no time begins with the page that makes it.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from quaid.model import slug as slugs
from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.asking import ask, attempt, days_of, lately, number, together
from quaid.surfaces.web.pages.rendering import page

MOST = 2_000
DEEPEST = 4
OFFERED = 12
"""Pages that are offered to look around from."""
LISTED = 200
"""Links that the list below the drawing shows."""

COLOURS = (
    *("person", "company", "project", "concept", "source", "journal", "decision"),
    *("commitment", "action_item", "media", "original", "deal"),
)
"""Types that have a colour of their own, which another type gets where they are missing."""
LONGEST = 200
"""Characters of what a page is looked for by."""
SHAPES = ("circle", "square", "diamond", "triangle")


class Look(NamedTuple):
    """How the pages of a type are drawn."""

    type: str
    colour: str
    shape: str
    pages: int


class Found(NamedTuple):
    centre: str
    """The page in the middle; "" for a wing."""
    wing: str
    depth: int
    nodes: list[tuple[str, str, str, int]]
    """Address, title, type, and how far from the centre."""
    links: list[Any]
    complete: bool

    @property
    def source(self) -> str:
        """Where a script finds the same."""
        return addresses.with_values(
            "/ui/graph", {"slug": self.centre, "wing": self.wing, "depth": self.depth}
        )

    def on(self, day: str) -> list[Any]:
        """The links that there were on a day."""
        return [
            each
            for each in self.links
            if (each.begins or "") <= day and (not each.valid_until or day < each.valid_until)
        ]


def looks(types: Iterable[str]) -> list[Look]:
    """A look for each type, the most frequent first: no two of twelve share a colour, after that none shares both."""
    counted = Counter(types).most_common()
    free = [each for each in COLOURS if each not in {name for name, _ in counted}]
    found, more = [], 0
    for name, pages in sorted(counted, key=lambda each: (-each[1], each[0])):
        if name in COLOURS:
            found.append(Look(name, name, SHAPES[0], pages))
        elif free:
            found.append(Look(name, free.pop(), SHAPES[0], pages))
        else:
            shape = SHAPES[1 + more // len(COLOURS) % (len(SHAPES) - 1)]
            found.append(Look(name, COLOURS[more % len(COLOURS)], shape, pages))
            more += 1
    return found


async def gather(request: Request) -> Found | None:
    """The nodes and links that the address asks for; None: it names neither a page nor a wing."""
    slug, wing = request.query_params.get("slug", ""), request.query_params.get("wing", "")
    depth = min(max(number(request.query_params.get("depth", ""), 2), 1), DEEPEST)
    if slug:
        record = await ask(request, "graph", slug=slug, depth=depth, temporal="all", limit=MOST)
        nodes = [
            (slugs.address(each.collection, each.slug), each.title, each.type, each.distance)
            for each in record.nodes
        ]
        return Found(nodes[0][0], "", depth, nodes, _between(nodes, record.links), record.complete)
    if wing:
        record = await ask(request, "wing", wing=wing, limit=MOST)
        nodes = [(each.slug, each.title, each.type, 0) for each in record.nodes]
        return Found("", wing, 0, nodes, _between(nodes, record.links), len(nodes) >= record.pages)
    return None


def _between(nodes: list[tuple[str, str, str, int]], links: Iterable[Any]) -> list[Any]:
    """The links whose two ends are shown."""
    there = {address for address, *_ in nodes}
    return [each for each in links if each.from_slug in there and each.to_slug in there]


async def offered(request: Request, wanted: str) -> list[Any]:
    """Pages to look around from: those that somebody looks for, else those that changed last."""
    if wanted:
        record = await attempt(request, "glance", text=wanted, limit=OFFERED)
        return list(record.answer.results) if record else []
    record = await attempt(request, "list", limit=OFFERED)
    return list(record.pages) if record else []


async def show(request: Request) -> Response:
    wanted = request.query_params.get("find", "").strip()[:LONGEST]
    found, wings, known = await together(gather(request), lately(request, "wings"), offered(request, wanted))
    days, wrong = days_of(request, "on")
    day = days["on"] or f"{datetime.now(UTC):%Y-%m-%d}"
    links = found.on(day) if found else []
    return page(
        request,
        "graph.html",
        found=found,
        titles={address: title for address, title, _, _ in found.nodes} if found else {},
        wings=wings.wings if wings else [],
        wanted=wanted,
        offered=[(slugs.address(each.collection, each.slug), each.title, each.type) for each in known],
        links=links[:LISTED],
        total=len(links),
        day=day,
        wrong=wrong,
        is_asked=bool(days["on"]),
        most=LISTED,
        looks=looks(kind for _, _, kind, _ in found.nodes) if found else [],
    )


async def data(request: Request) -> Response:
    """The same for a script: nodes as rows, links by the numbers of their nodes."""
    found = await gather(request)
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
    return [Route("/graph", show), Route("/ui/graph", data)]
