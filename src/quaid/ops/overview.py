"""The memory from afar: everything dated by day, wings and how their pages hang together, titles, contradictions.

All of it only reads. `check` looks for contradictions; here they are listed as it left them.
"""

from typing import Annotated, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import NotFound
from quaid.model import dates, page as page_model, slug as slugs
from quaid.ops.graph import EDGES_FOR_A_NODE, Arrow
from quaid.ops.register import Arg, op
from quaid.storage import briefing, collections, contradictions, links
from quaid.storage.briefing import DatedFilter, DatedItem, NameCount
from quaid.storage.contradictions import Contradiction
from quaid.storage.pages import page_heads

Kind = Literal["entry", "log", "page", "due", "link", "fact"]


class DaysRecord(NamedTuple):
    dated: tuple[DatedItem, ...]
    offset: int
    more: bool
    """Whether something is older, or left out by the limit."""


class WingsRecord(NamedTuple):
    wings: tuple[NameCount, ...]
    types: tuple[NameCount, ...]
    collections: tuple[str, ...]


class Titled(NamedTuple):
    """What a name stands for."""

    name: str
    slug: str
    title: str
    type: str


class TitlesRecord(NamedTuple):
    titles: tuple[Titled, ...]
    """Without the names that no page has, or several."""


class Member(NamedTuple):
    """A page of a wing."""

    slug: str
    title: str
    type: str


class WingRecord(NamedTuple):
    wing: str
    nodes: tuple[Member, ...]
    links: tuple[Arrow, ...]
    """Of any time, between these pages."""
    pages: int
    """How many there are in all."""


class ContradictionsRecord(NamedTuple):
    contradictions: tuple[Contradiction, ...]
    total: int
    checked_at: str | None
    """When the whole memory was looked at last."""


@op("read", examples=("quaid days", "quaid days --since 2026-04-01 --kind entry", "quaid days --wing people"))
def days(
    brain: Brain,
    since: Annotated[str | None, Arg("Only what is of this day or later, as in 2026-04-25.")] = None,
    until: Annotated[str | None, Arg("Only what is of this day or earlier.")] = None,
    kind: Annotated[
        Kind | None,
        Arg("Only entries of timelines, the daily log, pages about a day, what is due, links, or facts."),
    ] = None,
    type: Annotated[str | None, Arg("Only of pages of this type, as in person.")] = None,
    wing: Annotated[str | None, Arg("Only of pages of this wing, as in people.")] = None,
    collection: Annotated[str | None, Arg("Only of pages of this collection.")] = None,
    text: Annotated[str, Arg("Only what holds these letters, in its text or its page's title.")] = "",
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50,
    offset: Annotated[int, Arg("How many to pass over first.", minimum=0, maximum=1_000_000)] = 0,
) -> DaysRecord:
    """Show everything that is of a day, on all pages together, the newest day first."""
    chosen = DatedFilter(
        dates.check_date(since, "since") if since else "0000",
        dates.check_date(until, "until") if until else "9999-12-31",
        page_model.check_type(type) if type else "",
        wing or "",
        collections.require(brain.db, collection).name if collection else "",
        " ".join(text.split()),
    )
    kinds, most = (kind,) if kind else briefing.DATED_KINDS, offset + limit + 1
    with brain.db.reading():
        found = briefing.dated_items(brain.db, chosen, kinds, most)
        if "log" in kinds:
            found = briefing.sort_dated([*found, *_logged(brain, chosen, most)])
    return DaysRecord(tuple(found[offset : offset + limit]), offset, len(found) > offset + limit)


def _logged(brain: Brain, chosen: DatedFilter, most: int) -> list[DatedItem]:
    """What the daily log says, entry by entry, the latest of a day first."""
    from quaid.notebook import files as notebook_files

    found: list[DatedItem] = []
    for each in briefing.daily_logs(brain.db, chosen, most):
        wanted = chosen.text.lower()
        for entry in reversed(notebook_files.parse_daily_file(each.text)):
            text = f"{entry.heading}\n{entry.body}".strip()
            if wanted and wanted not in text.lower() and wanted not in each.title.lower():
                continue
            line = entry.line if each.is_whole else None
            found.append(DatedItem(each.day, "log", "", *each[1:5], text, entry.time, line, each.id))
        if len(found) >= most:
            break
    return found


@op("read", examples=("quaid titles people/alice Brineloop",))
def titles(
    brain: Brain,
    names: Annotated[list[str], Arg("What a text calls a page: a slug, an alias, a title.", positional=True)],
) -> TitlesRecord:
    """Say which pages these names stand for, as links in a text would find them, and how they are called."""
    with brain.db.reading():
        found = links.resolve_targets(brain.db, list(dict.fromkeys(names)), collections.DEFAULT_COLLECTION)
        known = page_heads(brain.db, sorted(set(found.values())))
    return TitlesRecord(
        tuple(
            Titled(name, slugs.address(known[id].collection, known[id].slug), known[id].title, known[id].type)
            for name, id in found.items()
            if id in known
        )
    )


@op("read", examples=("quaid wings",))
def wings(brain: Brain) -> WingsRecord:
    """List the wings and the types of pages with their number, and the names of the collections."""
    with brain.db.reading():
        named = tuple(each.name for each in collections.list_all(brain.db))
        return WingsRecord(
            tuple(briefing.wing_counts(brain.db)), tuple(briefing.type_counts(brain.db)), named
        )


@op("read", examples=("quaid wing people", "quaid wing people --limit 500 --json"))
def wing(
    brain: Brain,
    wing: Annotated[str, Arg("The wing, as in people.", positional=True)],
    limit: Annotated[int, Arg("How many pages at most.", minimum=1, maximum=10_000)] = 200,
) -> WingRecord:
    """Show the pages of a wing and the links between them, those with the most links first."""
    with brain.db.reading():
        total = next((each.pages for each in briefing.wing_counts(brain.db) if each.name == wing), 0)
        if not total:
            raise NotFound(what="wing", name=wing, hint=" `quaid wings` lists them.")
        ids = briefing.pages_of_wing(brain.db, wing, limit)
        known = page_heads(brain.db, ids)
        edges = links.edges_among(brain.db, ids, "all", brain.now()[:10], limit * EDGES_FOR_A_NODE)
        begins = briefing.link_beginnings(brain.db, edges)
    named = {id: slugs.address(head.collection, head.slug) for id, head in known.items()}
    nodes = tuple(Member(named[id], known[id].title, known[id].type) for id in ids)
    arrows = tuple(
        Arrow(
            *(each.id, named[each.from_id], named[each.to_id], each.relationship),
            *(each.valid_from, each.valid_until, begins.get(each.id)),
        )
        for each in edges
    )
    return WingRecord(wing, nodes, arrows, total)


@op("read", command="contradictions", examples=("quaid contradictions", "quaid contradictions --limit 5"))
def contradictions_(
    brain: Brain, limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50
) -> ContradictionsRecord:
    """List the open contradictions with both quotes, as `quaid check` last found them."""
    with brain.db.reading():
        return ContradictionsRecord(
            tuple(contradictions.listing(brain.db, None, None, limit)),
            contradictions.count(brain.db, None, None),
            contradictions.last_check(brain.db),
        )
