"""The graph: pages around a page, or those of a wing, and the links between them with their time.

The page lists the links; a script draws them. The script gets every link of any time, and shows a day by itself.
"""

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from quaid.core import slug as slugs
from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.asking import ask, attempt, lately, number, together
from quaid.surfaces.web.pages.rendering import page

MOST = 2_000
DEEPEST = 4
LISTED = 200
"""Links that the list below the drawing shows."""


class Found(NamedTuple):
    centre: str
    """The page in the middle; "" for a wing."""
    wing: str
    depth: int
    nodes: list[tuple[str, str, str, int]]
    """Address, title, type, and how far from the centre."""
    links: Any
    complete: bool

    @property
    def source(self) -> str:
        """Where a script finds the same, and more of it."""
        return addresses.with_values(
            "/ui/graph", {"slug": self.centre, "wing": self.wing, "depth": self.depth}
        )


async def gather(request: Request, most: int) -> Found | None:
    """The nodes and links that the address asks for; None: it names neither a page nor a wing."""
    slug, wing = request.query_params.get("slug", ""), request.query_params.get("wing", "")
    depth = min(max(number(request.query_params.get("depth", ""), 2), 1), DEEPEST)
    if slug:
        record = await ask(request, "graph", slug=slug, depth=depth, temporal="all", limit=most)
        nodes = [
            (slugs.address(each.collection, each.slug), each.title, each.type, each.distance)
            for each in record.nodes
        ]
        return Found(nodes[0][0], "", depth, nodes, record.links, record.complete)
    if wing:
        record = await ask(request, "wing", wing=wing, limit=most)
        nodes = [(each.slug, each.title, each.type, 0) for each in record.nodes]
        return Found("", wing, 0, nodes, record.links, len(nodes) >= record.pages)
    return None


async def show(request: Request) -> Response:
    found, wings, recent = await together(
        gather(request, LISTED), lately(request, "wings"), attempt(request, "list", limit=12)
    )
    known = recent.pages if recent else ()
    return page(
        request,
        "graph.html",
        found=found,
        titles={address: title for address, title, _, _ in found.nodes} if found else {},
        wings=wings.wings if wings else [],
        recent=[(slugs.address(each.collection, each.slug), each.title) for each in known],
        links=found.links[:LISTED] if found else [],
        types=sorted({kind for _, _, kind, _ in found.nodes}) if found else [],
    )


async def data(request: Request) -> Response:
    """The same for a script: nodes as rows, links by the numbers of their nodes."""
    found = await gather(request, MOST)
    if found is None:
        return JSONResponse({"nodes": [], "links": []})
    places = {address: place for place, (address, _, _, _) in enumerate(found.nodes)}
    links = [
        (places[each.from_slug], places[each.to_slug], each.relationship, each.valid_from, each.valid_until)
        for each in found.links
        if each.from_slug in places and each.to_slug in places
    ]
    told = {"centre": found.centre, "complete": found.complete, "nodes": found.nodes, "links": links}
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


def routes() -> list[Route]:
    return [Route("/graph", show), Route("/ui/graph", data)]
