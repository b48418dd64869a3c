"""What an ingest wants of one page: its text, and the evidence that hangs on it.

Knows how a change is written on the wire, and says which part of it is wrong, as in `pages[2].links[1].to`,
counting from 1. Does not know which pages there are.
"""

from typing import Any, NamedTuple

from quaid.core import dates, links, slug, tags
from quaid.core.prose import shorten
from quaid.errors import InvalidArgument

PARTS = (
    *("slug", "content", "compiled_truth", "timeline_append", "frontmatter", "expected_version"),
    *("assertions", "links", "timeline_entries", "tags"),
)
LINK_PARTS = ("to", "relationship", "context", "valid_from", "valid_until", "target", "type")
ENTRY_PARTS = ("date", "summary", "source", "detail")

MOST_PAGES = 500
"""In one ingest."""


class LinkGiven(NamedTuple):
    where: str
    to: str
    relationship: str
    context: str
    valid_from: str | None
    valid_until: str | None


class EntryGiven(NamedTuple):
    date: str
    summary: str
    source: str
    detail: str


class Change(NamedTuple):
    """One page of an ingest. Facts are checked later: they may leave their subject to the page's title."""

    where: str
    slug: str
    collection: str | None
    """None: whichever collection has the page, or takes new ones."""
    expected_version: int = 0
    """What its author had read; 0: there is none yet."""
    content: str | None = None
    compiled_truth: str | None = None
    timeline_append: str | None = None
    frontmatter: dict[str, Any] | None = None
    assertions: tuple[dict[str, Any], ...] = ()
    links: tuple[LinkGiven, ...] = ()
    entries: tuple[EntryGiven, ...] = ()
    tags: tuple[str, ...] = ()
    title: str | None = None
    """What a page is called that does not name itself."""

    @property
    def address(self) -> str:
        return self.slug if self.collection in (None, "default") else f"{self.collection}::{self.slug}"


def read(pages: list[dict[str, Any]]) -> list[Change]:
    """The changes that an ingest is given, each page once."""
    if len(pages) > MOST_PAGES:
        problem = f"holds {len(pages):,} pages and {MOST_PAGES} are allowed; ingest it in parts"
        raise InvalidArgument(name="pages", problem=problem)
    changes = [_change(values, f"pages[{place}]") for place, values in enumerate(pages, 1)]
    seen: set[str] = set()
    for change in changes:
        if change.address in seen:
            raise InvalidArgument(
                name=f"{change.where}.slug", problem=f"{change.address} is there twice; put it into one"
            )
        seen.add(change.address)
    return changes


def _change(values: dict[str, Any], where: str) -> Change:
    _check_names(values, PARTS, where)
    given = {name: value for name, value in values.items() if value is not None}
    address = _text(given, "slug", where, needed=True)
    collection, name = slug.split_address(address)
    content = _optional(given, "content", where)
    parts = [part for part in ("compiled_truth", "timeline_append", "frontmatter") if part in given]
    if content is not None and parts:
        problem = f"is the whole page; send either it or {parts[0]}, not both"
        raise InvalidArgument(name=f"{where}.content", problem=problem)
    if content is not None and not content.strip():
        raise InvalidArgument(name=f"{where}.content", problem="is empty; a page needs text")
    front = given.get("frontmatter")
    if front is not None and not isinstance(front, dict):
        raise InvalidArgument(name=f"{where}.frontmatter", problem="must be an object")
    return Change(
        where=where,
        slug=slug.check(name),
        collection=collection,
        expected_version=_version(given.get("expected_version", 0), f"{where}.expected_version"),
        content=content,
        compiled_truth=_optional(given, "compiled_truth", where),
        timeline_append=_optional(given, "timeline_append", where),
        frontmatter=front,
        assertions=tuple(value for value, _ in _objects(given, "assertions", where)),
        links=tuple(_link(*each) for each in _objects(given, "links", where, "to")),
        entries=tuple(_entry(*each) for each in _objects(given, "timeline_entries", where)),
        tags=tuple(tags.check(each) for each in _texts(given, "tags", where)),
    )


def _link(values: dict[str, Any], where: str) -> LinkGiven:
    _check_names(values, LINK_PARTS, where)
    given = {{"target": "to", "type": "relationship"}.get(name, name): each for name, each in values.items()}
    since, until = _day(given, "valid_from", where), _day(given, "valid_until", where)
    if since and until and until < since:
        raise InvalidArgument(name=f"{where}.valid_until", problem=f"{until} is before valid_from, {since}")
    named = _text(given, "relationship", where) or links.RELATED
    relationship = links.relationship_of(named)
    if not relationship:
        raise InvalidArgument(name=f"{where}.relationship", problem=f"{named!r} holds no letter or digit")
    context = " ".join(_text(given, "context", where).split())
    return LinkGiven(
        *(where, _text(given, "to", where, needed=True), relationship),
        *(shorten(context, links.LONGEST_CONTEXT), since, until),
    )


def _entry(values: dict[str, Any], where: str) -> EntryGiven:
    _check_names(values, ENTRY_PARTS, where)
    date = dates.check_date(_text(values, "date", where, needed=True), f"{where}.date")
    summary = _text(values, "summary", where, needed=True).strip()
    source = _text(values, "source", where).strip()
    for name, text in (("summary", summary), ("source", source)):
        if "\n" in text or "\r" in text:
            raise InvalidArgument(
                name=f"{where}.{name}", problem="must be one line; put the rest into detail"
            )
    if "—" in source:
        raise InvalidArgument(
            name=f"{where}.source", problem="'—' ends a source in a timeline; write '-' in it instead"
        )
    return EntryGiven(date, summary, source, _text(values, "detail", where))


def _objects(
    given: dict[str, Any], name: str, where: str, short: str = ""
) -> list[tuple[dict[str, Any], str]]:
    """A list of objects with the place of each; where there is a short form, plain text stands for one."""
    found = []
    for place, each in enumerate(_list(given, name, where), 1):
        here = f"{where}.{name}[{place}]"
        if short and isinstance(each, str):
            each = {short: each}
        if not isinstance(each, dict):
            raise InvalidArgument(name=here, problem="must be an object")
        found.append((each, here))
    return found


def _texts(given: dict[str, Any], name: str, where: str) -> list[str]:
    for place, each in enumerate(_list(given, name, where), 1):
        if not isinstance(each, str):
            raise InvalidArgument(name=f"{where}.{name}[{place}]", problem="must be text")
    return _list(given, name, where)


def _list(given: dict[str, Any], name: str, where: str) -> list[Any]:
    value = given.get(name, [])
    if not isinstance(value, list):
        raise InvalidArgument(name=f"{where}.{name}", problem="must be a list")
    return value


def _text(given: dict[str, Any], name: str, where: str, *, needed: bool = False) -> str:
    value = given.get(name)
    value = "" if value is None else value
    if not isinstance(value, str):
        raise InvalidArgument(name=f"{where}.{name}", problem="must be text")
    if needed and not value.strip():
        raise InvalidArgument(name=f"{where}.{name}", problem="is required")
    return value


def _optional(given: dict[str, Any], name: str, where: str) -> str | None:
    return _text(given, name, where) if name in given else None


def _day(given: dict[str, Any], name: str, where: str) -> str | None:
    text = _text(given, name, where)
    return dates.check_date(text, f"{where}.{name}") if text else None


def _version(value: Any, name: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidArgument(name=name, problem="must be the version that you read, a whole number")
    return value


def _check_names(values: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in values:
        if name not in known:
            raise InvalidArgument(
                name=f"{where}.{name}", problem=f"is no part of it; there are: {', '.join(known)}"
            )
