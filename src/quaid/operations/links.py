"""Links between pages, the graph around a page, and paths between pages."""

from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, LinkFromText, NotFound
from quaid.model import dates, links as link_model, slug as slugs
from quaid.model.links import LONGEST_CONTEXT, RELATED, normalize_relationship
from quaid.model.plain_text import shorten
from quaid.operations import facts, pages as page_operations
from quaid.operations.facts import ContradictingQuotes, OpenFact
from quaid.operations.pages import IfVersion, Slug
from quaid.operations.registry import Arg, op
from quaid.storage import links as store, page_edits
from quaid.storage.briefing import link_beginnings
from quaid.storage.links import LinkRow
from quaid.storage.pages import PageHead, page_heads
from quaid.storage.sqlite.connection import Transaction

Temporal = Annotated[
    Literal["current", "historical", "all"],
    Arg("Which links: current ones, ended ones, or all."),
]
LinkLimit = Annotated[int, Arg("How many.", minimum=1, maximum=100_000)]
FromPage = Annotated[str, Arg("The page that the link starts from.", positional=True)]
ToPage = Annotated[str, Arg("The page that the link leads to.", positional=True)]
AsOf = Annotated[str | None, Arg("As of this day instead of today, as in 2024-03-01.")]
Relationship = Annotated[str | None, Arg("Only this relationship, as in works_at.")]


class LinkRecord(NamedTuple):
    slug: str
    version: int
    link: LinkRow
    closed: bool = False
    """True if an existing link was ended; False if it is new."""
    collection: str = "default"
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    """Facts about the page that still hold."""


class LinksRecord(NamedTuple):
    slug: str
    version: int
    direction: str
    temporal: str
    as_of: str
    links: tuple[LinkRow, ...]
    total: int
    collection: str = "default"


class UnlinkRecord(NamedTuple):
    slug: str
    to_slug: str
    version: int
    removed: tuple[LinkRow, ...]
    from_text: tuple[LinkRow, ...]
    """Links that remain because the page's text contains them."""


@op(
    "write",
    adds_only=True,
    examples=(
        "quaid link people/alice companies/acme --relationship works_at --valid-from 2024-01-15",
        "quaid link people/alice people/bob --relationship knows --context 'Met at the harbour.'",
    ),
)
def link(
    brain: Brain,
    from_: FromPage,
    to: ToPage,
    relationship: Annotated[str, Arg("The relationship, as in works_at.")] = RELATED,
    context: Annotated[str, Arg("The sentence that states it.")] = "",
    valid_from: Annotated[str | None, Arg("The first day on which it holds, if known.")] = None,
    valid_until: Annotated[
        str | None, Arg("The first day on which it no longer holds, if it has ended.")
    ] = None,
    expected_version: IfVersion = None,
) -> LinkRecord:
    """Link a page to another, with a relationship and an optional validity period. Returns the link's id."""
    start, end = page_operations.require_page(brain, from_), page_operations.require_page(brain, to)
    if start.id == end.id:
        raise InvalidArgument(name="to", problem="is the same page; name another one")
    since, until = _interval(valid_from, valid_until)
    now = brain.now()

    def work(tx: Transaction) -> tuple[int, int]:
        _, version = page_edits.touch(
            tx, start.slug, expected_version=expected_version, now=now, collection=start.collection
        )
        link_id = store.add(
            tx,
            start.id,
            end.id,
            relationship=_relationship(relationship),
            context=shorten(" ".join(context.split()), LONGEST_CONTEXT),
            valid_from=since,
            valid_until=until,
            now=now,
        )
        return version, link_id

    version, link_id = brain.db.write(work)
    receipt = facts.receipt(brain, [start.id])
    return LinkRecord(
        *(start.slug, version, store.require_added(brain.db, link_id), False, start.collection),
        *(receipt.contradicts, receipt.open_facts),
    )


@op("write", examples=("quaid link-close 12 --valid-until 2026-03-01",))
def link_close(
    brain: Brain,
    link_id: Annotated[int, Arg("The link's id, as `quaid links` shows it.", positional=True, minimum=1)],
    valid_until: Annotated[str, Arg("The first day on which it no longer holds.")],
    expected_version: IfVersion = None,
) -> LinkRecord:
    """Set the end date of a link. It stays in the memory as history."""
    until = dates.check_date(valid_until, "valid_until")
    now = brain.now()

    def work(tx: Transaction) -> tuple[int, LinkRow]:
        row = store.require_added(brain.db, link_id)
        if row.valid_from and until < row.valid_from:
            raise InvalidArgument(name="valid_until", problem=f"is before the link's start, {row.valid_from}")
        _, version = page_edits.touch(
            tx, row.from_slug, expected_version=expected_version, now=now, collection=row.from_collection
        )
        row.close(tx, until)
        return version, row._replace(valid_until=until)

    version, closed = brain.db.write(work)
    return LinkRecord(closed.from_slug, version, closed, closed=True, collection=closed.from_collection)


@op("read", examples=("quaid links people/alice", "quaid links people/alice --temporal current"))
def links(
    brain: Brain,
    slug: Slug,
    temporal: Temporal = "all",
    as_of: AsOf = None,
    limit: LinkLimit = 200,
) -> LinksRecord:
    """List the links from a page, with ids and dates."""
    day, temporal = _day(brain, as_of, temporal)
    with brain.db.reading():
        page = page_operations.require_page(brain, slug)
        rows, total = store.listing(brain.db, page.id, "out", temporal, day, limit)
    return LinksRecord(page.slug, page.version, "out", temporal, day, tuple(rows), total, page.collection)


@op("read", examples=("quaid backlinks companies/acme", "quaid backlinks companies/acme --as-of 2024-03-01"))
def backlinks(
    brain: Brain,
    slug: Slug,
    temporal: Temporal = "current",
    as_of: AsOf = None,
    limit: LinkLimit = 200,
) -> LinksRecord:
    """List the links to a page, with ids and dates."""
    day, temporal = _day(brain, as_of, temporal)
    with brain.db.reading():
        page = page_operations.require_page(brain, slug)
        rows, total = store.listing(brain.db, page.id, "in", temporal, day, limit)
    return LinksRecord(page.slug, page.version, "in", temporal, day, tuple(rows), total, page.collection)


@op("write", examples=("quaid unlink people/alice companies/acme --relationship works_at",))
def unlink(
    brain: Brain,
    from_: FromPage,
    to: ToPage,
    relationship: Relationship = None,
    expected_version: IfVersion = None,
) -> UnlinkRecord:
    """Remove links that were never right; use `quaid link-close` for links that have ended."""
    start, end = page_operations.require_page(brain, from_), page_operations.require_page(brain, to)
    named = _relationship(relationship) if relationship else None
    now = brain.now()

    def work(tx: Transaction) -> UnlinkRecord:
        rows = store.between(brain.db, start.id, end.id, named)
        from_text = tuple(row for row in rows if row.source_kind == store.FROM_TEXT)
        added = tuple(row for row in rows if row.source_kind != store.FROM_TEXT)
        if not added and from_text:
            raise LinkFromText(id=from_text[0].id, slug=start.slug)
        if not added:
            raise NotFound(
                what=f"{named} link" if named else "link",
                name=f"from {start.slug} to {end.slug}",
                hint=f"`quaid links {start.slug}` lists its links.",
            )
        _, version = page_edits.touch(
            tx, start.slug, expected_version=expected_version, now=now, collection=start.collection
        )
        for row in added:
            row.remove(tx)
        return UnlinkRecord(start.slug, end.slug, version, added, from_text)

    return brain.db.write(work)


def _relationship(written: str) -> str:
    name = normalize_relationship(written)
    if not name:
        raise InvalidArgument(name="relationship", problem="is empty; write it as in works_at")
    return name


def _interval(valid_from: str | None, valid_until: str | None) -> tuple[str | None, str | None]:
    since = dates.check_date(valid_from, "valid_from") if valid_from else None
    until = dates.check_date(valid_until, "valid_until") if valid_until else None
    if since and until and until < since:
        raise InvalidArgument(name="valid_until", problem=f"is before valid_from, {since}")
    return since, until


EDGES_PER_NODE = 20
"""A graph has at most this many links per requested node."""

MAX_PATH_LENGTH = 100
MAX_EDGES_WALKED = 200_000
"""A path search visits at most this many pages and as many links."""


class GraphNode(NamedTuple):
    slug: str
    title: str
    type: str
    collection: str
    distance: int
    path: tuple[str, ...]
    """Addresses on the shortest path from the centre, including this node's own."""


class GraphEdge(NamedTuple):
    id: int
    from_slug: str
    """Address of the page, with its collection unless that is the default one. to_slug has the same form."""
    to_slug: str
    relationship: str
    valid_from: str | None
    valid_until: str | None
    begins: str | None
    """Start date of the link: valid_from, else a derived date (see link_beginnings).

    None if the link ended on or before the derived date.
    """


class GraphRecord(NamedTuple):
    slug: str
    depth: int
    temporal: str
    as_of: str
    nodes: tuple[GraphNode, ...]
    links: tuple[GraphEdge, ...]
    complete: bool
    """False if pages or links are left out because a limit was reached."""
    form: str = "text"


class PathRecord(NamedTuple):
    from_slug: str
    to_slug: str
    found: bool
    steps: tuple[GraphEdge, ...]
    pages: tuple[str, ...]
    complete: bool
    """False if the search reached a limit, so that there may be a path, or a shorter one."""

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
    dot: Annotated[bool, Arg("Print it in Graphviz format.")] = False,
    mermaid: Annotated[bool, Arg("Print it in Mermaid format.")] = False,
) -> GraphRecord:
    """Show the pages around a page and their links, the nearest first."""
    if dot and mermaid:
        raise InvalidArgument(name="mermaid", problem="cannot be combined with --dot")
    day, temporal = _day(brain, as_of, temporal)
    with brain.db.reading():
        centre = page_operations.require_page(brain, slug)
        reached, links_between, is_complete = link_model.walk_from(
            centre.id,
            lambda nodes, most: store.edges(brain.db, nodes, temporal, day, most),
            lambda nodes, most: store.edges(brain.db, nodes, temporal, day, most, among=True),
            depth=depth,
            most_nodes=limit,
            most_edges=limit * EDGES_PER_NODE,
        )
        heads = page_heads(brain.db, list(reached))
        edges = graph_edges(brain, links_between, heads)
    nodes = []
    for node, (distance, _) in reached.items():
        if head := heads.get(node):
            addresses = tuple(_address(heads[step]) for step in link_model.path_to(reached, node))
            nodes.append(GraphNode(head.slug, head.title, head.type, head.collection, distance, addresses))
    form = "dot" if dot else "mermaid" if mermaid else "text"
    return GraphRecord(centre.slug, depth, temporal, day, tuple(nodes), edges, is_complete, form)


@op("read", examples=("quaid path people/alice companies/acme",), cli_note="Exits 1 if there is none.")
def path(
    brain: Brain,
    from_: Annotated[str, Arg("The page to start from.", positional=True)],
    to: Annotated[str, Arg("The page to reach.", positional=True)],
    temporal: Temporal = "current",
    as_of: AsOf = None,
) -> PathRecord:
    """Find the shortest path of links between two pages."""
    day, temporal = _day(brain, as_of, temporal)
    with brain.db.reading():
        start, end = page_operations.require_page(brain, from_), page_operations.require_page(brain, to)
        if start.id == end.id:
            return PathRecord(start.slug, end.slug, True, (), (start.slug,), True)
        edges, is_complete = link_model.shortest_path(
            start.id,
            end.id,
            lambda nodes, most: store.edges(brain.db, nodes, temporal, day, most),
            longest=MAX_PATH_LENGTH,
            most_nodes=MAX_EDGES_WALKED,
            most_edges=MAX_EDGES_WALKED,
        )
        if not edges:
            return PathRecord(start.slug, end.slug, False, (), (), is_complete)
        heads = page_heads(brain.db, [node for edge in edges for node in (edge.from_id, edge.to_id)])
        steps = graph_edges(brain, edges, heads)
    pages = [start.id]
    for edge in edges:
        pages.append(edge.to_id if edge.from_id == pages[-1] else edge.from_id)
    return PathRecord(
        start.slug, end.slug, True, steps, tuple(_address(heads[page]) for page in pages), is_complete
    )


def _day(
    brain: Brain, as_of: str | None, temporal: Literal["current", "historical", "all"]
) -> tuple[str, Literal["current", "historical", "all"]]:
    """Return the day and the kind of links to include.

    If a day is given, "all" means all links valid on that day.
    """
    day = dates.check_date(as_of, "as_of") if as_of else brain.now()[:10]
    return day, "current" if as_of and temporal == "all" else temporal


def graph_edges(
    brain: Brain, rows: list[link_model.GraphLink], heads: dict[int, PageHead]
) -> tuple[GraphEdge, ...]:
    """Return the edges of a graph with the addresses of their pages and their start dates."""
    begins = link_beginnings(brain.db, rows)
    return tuple(
        GraphEdge(
            *(row.id, _address(heads[row.from_id]), _address(heads[row.to_id]), row.relationship),
            *(row.valid_from, row.valid_until, begins.get(row.id)),
        )
        for row in rows
    )


def _address(head: PageHead) -> str:
    return slugs.address(head.collection, head.slug)
