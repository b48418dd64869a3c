"""The neighbourhood of a page, and the way from one page to another."""

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument
from quaid.model import dates, links, slug as slugs
from quaid.ops import editing
from quaid.ops.editing import Slug
from quaid.ops.links import AsOf, Temporal
from quaid.ops.register import Arg, op
from quaid.storage import links as linkss
from quaid.storage.briefing import link_beginnings
from quaid.storage.links import GraphLink
from quaid.storage.pages import PageHead, page_heads

EDGES_FOR_A_NODE = 20
"""A graph of so many nodes shows at most this many times as many links."""

LONGEST_WAY = 100
MOST_WALKED = 200_000
"""Pages that the search for a way looks at before it gives up."""


class Node(NamedTuple):
    slug: str
    title: str
    type: str
    collection: str
    distance: int
    path: tuple[str, ...]
    """The addresses on the shortest way to it, from the centre on; the last one is its own."""


class Arrow(NamedTuple):
    id: int
    from_slug: str
    """With its collection before it, unless that is the default one; the same of to_slug."""
    to_slug: str
    relationship: str
    valid_from: str | None
    valid_until: str | None
    begins: str | None
    """Since when it is there: valid_from, else the day of its entry or of its page; None: it ended before that."""


class GraphRecord(NamedTuple):
    slug: str
    depth: int
    temporal: str
    as_of: str
    nodes: tuple[Node, ...]
    links: tuple[Arrow, ...]
    complete: bool
    """False: a limit was met, and there is more."""
    form: str = "text"


class PathRecord(NamedTuple):
    from_slug: str
    to_slug: str
    found: bool
    steps: tuple[Arrow, ...]
    pages: tuple[str, ...]
    complete: bool
    """False: the search was given up; there may be a way."""

    @property
    def exit_status(self) -> int:
        return 0 if self.found else 1


@op(
    "read",
    examples=(
        "quaid graph people/alice --depth 2",
        "quaid graph companies/acme --as-of 2024-03-01 --mermaid",
        "quaid graph people/alice --dot > alice.dot",
    ),
)
def graph_(
    brain: Brain,
    slug: Slug,
    depth: Annotated[int, Arg("How many links away.", minimum=0, maximum=10)] = 2,
    temporal: Temporal = "current",
    limit: Annotated[int, Arg("How many pages at most.", minimum=1, maximum=10_000)] = 50,
    as_of: AsOf = None,
    dot: Annotated[bool, Arg("Print it for Graphviz.")] = False,
    mermaid: Annotated[bool, Arg("Print it for Mermaid.")] = False,
) -> GraphRecord:
    """Show the pages around a page and how they are linked, the nearest first."""
    if dot and mermaid:
        raise InvalidArgument(name="mermaid", problem="is another form than --dot; choose one")
    day, temporal = _day(brain, as_of, temporal)
    with brain.db.reading():
        centre = editing.require(brain, slug)
        walk = links.walk_from(
            centre.id,
            lambda nodes, most: linkss.edges(brain.db, nodes, temporal, day, most),
            lambda nodes, most: linkss.edges_among(brain.db, nodes, temporal, day, most),
            depth=depth,
            most_nodes=limit,
            most_edges=limit * EDGES_FOR_A_NODE,
        )
        known = page_heads(brain.db, list(walk.reached))
        begins = _beginnings(brain, walk.edges)
    nodes = tuple(_node(walk, known, reached) for reached in walk.reached.values() if reached.node in known)
    arrows = tuple(_arrow(known, edge, begins) for edge in walk.edges)
    form = "dot" if dot else "mermaid" if mermaid else "text"
    return GraphRecord(centre.slug, depth, temporal, day, nodes, arrows, walk.complete, form)


@op("read", examples=("quaid path people/alice companies/acme",))
def path(
    brain: Brain,
    from_: Annotated[str, Arg("The page to start from.", positional=True)],
    to: Annotated[str, Arg("The page to reach.", positional=True)],
    temporal: Temporal = "current",
    as_of: AsOf = None,
) -> PathRecord:
    """Find the shortest connection between two pages. Exits 1 when there is none."""
    day, temporal = _day(brain, as_of, temporal)
    with brain.db.reading():
        start, end = editing.require(brain, from_), editing.require(brain, to)
        way = (
            links.GraphPath((), True)
            if start.id == end.id
            else links.shortest_path(
                start.id,
                end.id,
                lambda nodes, most: linkss.edges(brain.db, nodes, temporal, day, most),
                longest=LONGEST_WAY,
                most_nodes=MOST_WALKED,
                most_edges=MOST_WALKED,
            )
        )
        edges = way.edges if way else ()
        known = page_heads(
            brain.db, [start.id, *{node for edge in edges for node in (edge.from_id, edge.to_id)}]
        )
        begins = _beginnings(brain, edges)
    if not edges:
        same = start.id == end.id
        gave_up = way is not None and not way.complete
        return PathRecord(start.slug, end.slug, same, (), (start.slug,) if same else (), not gave_up)
    pages, at = [_address(known[start.id])], start.id
    for edge in edges:
        at = edge.to_id if edge.from_id == at else edge.from_id
        pages.append(_address(known[at]))
    steps = tuple(_arrow(known, edge, begins) for edge in edges)
    return PathRecord(start.slug, end.slug, True, steps, tuple(pages), True)


def _day(
    brain: Brain, as_of: str | None, temporal: Literal["current", "historical", "all"]
) -> tuple[str, Literal["current", "historical", "all"]]:
    day = dates.check_date(as_of, "as_of") if as_of else brain.now()[:10]
    return day, "current" if as_of and temporal == "all" else temporal


def _node(walk: links.GraphWalk, known: dict[int, PageHead], reached: links.ReachedNode) -> Node:
    head = known[reached.node]
    way = [_address(known[step.node]) for step in links.path_to(walk, reached.node)]
    start = _address(known[next(iter(walk.reached))])
    return Node(head.slug, head.title, head.type, head.collection, reached.distance, (start, *way))


def _beginnings(brain: Brain, edges: Iterable[links.EdgeLike]) -> dict[int, str]:
    return link_beginnings(brain.db, [edge for edge in edges if isinstance(edge, GraphLink)])


def _arrow(known: dict[int, PageHead], edge: links.EdgeLike, begins: dict[int, str]) -> Arrow:
    assert isinstance(edge, GraphLink)
    return Arrow(
        edge.id,
        _address(known[edge.from_id]),
        _address(known[edge.to_id]),
        edge.relationship,
        edge.valid_from,
        edge.valid_until,
        begins.get(edge.id),
    )


def _address(head: PageHead) -> str:
    return slugs.address(head.collection, head.slug)
