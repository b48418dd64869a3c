"""Links between pages: add, close, list, remove."""

from typing import Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument, LinkFromText, NotFound
from quaid.model import dates
from quaid.model.links import LONGEST_CONTEXT, RELATED, normalize_relationship
from quaid.model.markdown_text import shorten
from quaid.ops import editing
from quaid.ops.editing import PageVersion, Slug
from quaid.ops.register import Arg, op
from quaid.storage import links as store, page_edits
from quaid.storage.links import LinkRow

Temporal = Annotated[
    Literal["current", "historical", "all"],
    Arg("Which links: those that hold, those that have ended, or all."),
]
AsOf = Annotated[str | None, Arg("The day to look at instead of today, as in 2024-03-01.")]
Relationship = Annotated[str | None, Arg("Only this relationship, as in works_at.")]


class LinkRecord(NamedTuple):
    slug: str
    version: int
    link: LinkRow
    closed: bool = False
    """A link that was there ended; otherwise it is new."""


class LinksRecord(NamedTuple):
    slug: str
    version: int
    direction: str
    temporal: str
    as_of: str
    links: tuple[LinkRow, ...]
    total: int


class UnlinkRecord(NamedTuple):
    slug: str
    to_slug: str
    version: int
    removed: tuple[LinkRow, ...]
    from_text: tuple[LinkRow, ...]
    """Links that stay because the page's text makes them."""


@op(
    "write",
    core=True,
    adds_only=True,
    examples=(
        "quaid link people/alice companies/acme --relationship works_at --valid-from 2024-01-15",
        "quaid link people/alice people/bob --relationship knows --context 'Met at the harbour.'",
    ),
)
def link(
    brain: Brain,
    from_: Annotated[str, Arg("The page that the link leads from.", positional=True)],
    to: Annotated[str, Arg("The page that it leads to.", positional=True)],
    relationship: Annotated[str, Arg("What the one is to the other, as in works_at.")] = RELATED,
    context: Annotated[str, Arg("The sentence that says so.")] = "",
    valid_from: Annotated[str | None, Arg("The day on which it began, if known.")] = None,
    valid_until: Annotated[str | None, Arg("The day on which it ended, if it has.")] = None,
    expected_version: PageVersion = None,
) -> LinkRecord:
    """Link a page to another, with a relationship and its time. Answers with the id that closes it."""
    start, end = editing.require(brain, from_), editing.require(brain, to)
    if start.id == end.id:
        raise InvalidArgument(name="to", problem="is the page itself")
    since, until = _interval(valid_from, valid_until)
    now = brain.now()

    def work(tx: Any) -> tuple[int, int]:
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
    return LinkRecord(start.slug, version, store.require_added(brain.db, link_id))


@op("write", examples=("quaid link-close 12 --valid-until 2026-03-01",))
def link_close(
    brain: Brain,
    link_id: Annotated[int, Arg("The link's id, as `quaid links` shows it.", positional=True, minimum=1)],
    valid_until: Annotated[str, Arg("The first day on which it does not hold any more.")],
    expected_version: Annotated[
        int | None, Arg("The version of the page that it leads from.", version="page", minimum=1)
    ] = None,
) -> LinkRecord:
    """Say when a link ended. It stays in the memory as history."""
    until = dates.check_date(valid_until, "valid_until")
    now = brain.now()

    def work(tx: Any) -> tuple[int, LinkRow]:
        found = store.require_added(brain.db, link_id)
        if found.valid_from and until < found.valid_from:
            raise InvalidArgument(
                name="valid_until", problem=f"is before the link began, on {found.valid_from}"
            )
        _, version = page_edits.touch(
            tx, found.from_slug, expected_version=expected_version, now=now, collection=found.from_collection
        )
        store.close(tx, found, until)
        return version, found._replace(valid_until=until)

    version, closed = brain.db.write(work)
    return LinkRecord(closed.from_slug, version, closed, closed=True)


@op("read", examples=("quaid links people/alice", "quaid links people/alice --temporal current"))
def links(
    brain: Brain,
    slug: Slug,
    temporal: Temporal = "all",
    as_of: AsOf = None,
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=100_000)] = 200,
) -> LinksRecord:
    """List where a page leads, with the ids of the links and their time."""
    return _listing(brain, slug, "out", temporal, as_of, limit)


@op("read", examples=("quaid backlinks companies/acme", "quaid backlinks companies/acme --as-of 2024-03-01"))
def backlinks(
    brain: Brain,
    slug: Slug,
    temporal: Temporal = "current",
    as_of: AsOf = None,
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=100_000)] = 200,
) -> LinksRecord:
    """List what leads to a page, with the ids of the links and their time."""
    return _listing(brain, slug, "in", temporal, as_of, limit)


@op("write", examples=("quaid unlink people/alice companies/acme --relationship works_at",))
def unlink(
    brain: Brain,
    from_: Annotated[str, Arg("The page that the link leads from.", positional=True)],
    to: Annotated[str, Arg("The page that it leads to.", positional=True)],
    relationship: Relationship = None,
    expected_version: PageVersion = None,
) -> UnlinkRecord:
    """Remove links that were wrong from the start; `quaid link-close` is for those that ended."""
    start, end = editing.require(brain, from_), editing.require(brain, to)
    named = _relationship(relationship) if relationship else None
    now = brain.now()

    def work(tx: Any) -> UnlinkRecord:
        found = store.between(brain.db, start.id, end.id, named)
        from_text = tuple(each for each in found if each.source_kind == store.FROM_TEXT)
        added = tuple(each for each in found if each.source_kind != store.FROM_TEXT)
        if not added and from_text:
            raise LinkFromText(id=from_text[0].id, slug=start.slug)
        if not added:
            what = f"{named} link" if named else "link"
            raise NotFound(
                what=what,
                name=f"from {start.slug} to {end.slug}",
                hint=f" `quaid links {start.slug}` shows them.",
            )
        _, version = page_edits.touch(
            tx, start.slug, expected_version=expected_version, now=now, collection=start.collection
        )
        store.remove(tx, list(added))
        return UnlinkRecord(start.slug, end.slug, version, added, from_text)

    return brain.db.write(work)


def _listing(
    brain: Brain,
    address: str,
    direction: str,
    temporal: Literal["current", "historical", "all"],
    as_of: str | None,
    limit: int,
) -> LinksRecord:
    day = dates.check_date(as_of, "as_of") if as_of else brain.now()[:10]
    if as_of and temporal == "all":
        temporal = "current"  # who names a day wants to see that day
    with brain.db.reading():
        page = editing.require(brain, address)
        if direction == "in":
            found, total = store.first_incoming(brain.db, page.id, temporal, day, limit)
        else:
            found = store.outgoing(brain.db, page.id, temporal, day)
            total = len(found)
    return LinksRecord(page.slug, page.version, direction, temporal, day, tuple(found[:limit]), total)


def _relationship(given: str) -> str:
    name = normalize_relationship(given)
    if not name:
        raise InvalidArgument(name="relationship", problem="is empty; write it as in works_at")
    return name


def _interval(valid_from: str | None, valid_until: str | None) -> tuple[str | None, str | None]:
    since = dates.check_date(valid_from, "valid_from") if valid_from else None
    until = dates.check_date(valid_until, "valid_until") if valid_until else None
    if since and until and until < since:
        raise InvalidArgument(name="valid_until", problem=f"is before valid_from, {since}")
    return since, until
