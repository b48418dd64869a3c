"""Read and list pages, their tags and timelines."""

import hashlib
import os
from typing import Annotated, Any, Literal, NamedTuple

from quaid import errors
from quaid.app import Brain
from quaid.formats import markdown
from quaid.model import dates, page as page_model, slug as slugs
from quaid.model.page import CLASSES, EntryInput, Page, TrustName
from quaid.operations.registry import Arg, op
from quaid.storage import collections, pages, trust
from quaid.storage.collections import Collection, Collections
from quaid.storage.history import Imports
from quaid.storage.pages import Namesakes, PageListItem, PageRow

Slug = Annotated[str, Arg("The page, as in people/alice.", positional=True)]
PageVersion = Annotated[int | None, Arg("The version you read.", version="page", minimum=1)]
IfVersion = Annotated[int | None, Arg("Fail unless this is its version.", version="optional", minimum=1)]

ForPeriod = Annotated[str | None, Arg("Forget it after this period, as in 12h, 30d, 2w or 1y.", flag="--for")]
ExpiryDay = Annotated[str | None, Arg("Forget it after this day or time, as in Friday.")]

MAX_PAGES_READ = 50
"""One `get` returns at most this many pages."""

HASH_DIGITS = 12
"""A content hash has this many hexadecimal digits."""


def locate_page(brain: Brain, address: str) -> tuple[Collection, str]:
    """Return the collection and slug of an address.

    The collection is the one named in the address, else the only collection that has the page, else the write
    target (the collection for new pages).
    """
    named, name = _split_address(brain, address)
    holder = named or pages.single_collection_with(brain.db, name)
    if holder is None:
        # Return the collection for new pages. If none is set, this is the default collection, which is listed
        # first.
        known = Collections(brain.db).all() or [Collections(brain.db).require(collections.DEFAULT_COLLECTION)]
        return max(known, key=lambda row: row.is_write_target), name
    return Collections(brain.db).require(holder), name


def require_page(brain: Brain, address: str) -> PageRow:
    named, name = _split_address(brain, address)
    holder = named or pages.single_collection_with(brain.db, name) or Collections(brain.db).home_name()
    return pages.require(brain.db, name, holder)


def _split_address(brain: Brain, address: str) -> tuple[str | None, str]:
    """Split an address into collection (None if the address names none) and slug.

    If the slug is invalid but is the title of a page, raise PageNotFound with the slug of that page as a
    hint.
    """
    named, name = slugs.split_address(address)
    try:
        return named, slugs.check(name)
    except errors.InvalidSlug:
        hint = Namesakes(brain.db, name, named).hint()
        if not hint:
            raise
        raise errors.PageNotFound(slug=address, hint=hint) from None


def requested_moment(brain: Brain, day: str | None, period: str | None) -> str | None:
    """Return the expiry that is given as a day or as a period, or None if neither is given.

    Raise InvalidArgument if both are given, or if the expiry cannot be parsed or is in the past.
    """
    if day is not None and period is not None:
        raise errors.InvalidArgument(name="for", problem="cannot be combined with expires; use one of them")
    clock = brain.clock
    if period is not None:
        seconds = dates.retention_seconds(period)
        if seconds is None:
            problem = f"must be a period from 1h to 100y, as in 12h, 30d, 2w or 1y, not {period!r}"
            raise errors.InvalidArgument(name="for", problem=problem)
        is_hours = period.strip().lower().endswith("h")
        return brain.now(seconds) if is_hours else dates.shift_date(clock.today, seconds // 86_400)
    if day is None:
        return None
    moment = dates.parse_moment(day) or dates.parse_day(day, clock.today)
    if not moment or moment == dates.NEVER:
        problem = (
            f"must be a day such as 2026-11-20 or Friday, or a time such as 2026-11-20T12:00Z, not {day!r}"
        )
        raise errors.InvalidArgument(name="expires", problem=problem)
    if clock.is_past(moment):
        raise errors.InvalidArgument(name="expires", problem=f"{day} is past; name a later day")
    return moment


def content_hash_of(page: PageRow) -> str:
    """Return the first digits of the SHA-256 of a page's text. Writes accept it instead of the version."""
    text = markdown.render(page.frontmatter, page.truth, page.timeline)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:HASH_DIGITS]


def rebuild_page(
    old: PageRow,
    *,
    frontmatter: dict[str, Any] | None = None,
    truth: str | None = None,
    lines: str | None = None,
) -> Page:
    """Return a stored page with its front matter, compiled truth or timeline replaced."""
    return page_model.build_page(
        old.slug,
        old.frontmatter if frontmatter is None else frontmatter,
        old.truth if truth is None else truth,
        old.timeline if lines is None else lines,
        fallback_title=old.title,
    )


class PageRecord(NamedTuple):
    slug: str
    title: str
    type: str
    version: int
    content_hash: str
    """The first digits of the SHA-256 of the page's text; `put` accepts it in place of the version."""
    summary: str
    compiled_truth: str
    timeline: str
    frontmatter: dict[str, Any]
    tags: tuple[str, ...]
    wing: str
    room: str
    collection: str
    uuid: str
    created_at: str
    updated_at: str
    truth_updated_at: str
    timeline_updated_at: str
    trust: TrustName = "person"
    """The lowest trust class of the page's lines; `blame` shows the class of each line."""

    def agent_view(self) -> dict[str, Any]:
        """Return the fields that agents need. The summary is left out, because other fields contain its words."""
        left_out = ("summary", "uuid", "created_at", "truth_updated_at", "timeline_updated_at", "trust")
        fields = {name: value for name, value in self._asdict().items() if name not in left_out}
        return fields if self.trust == "person" else {**fields, "trust_class": self.trust}


class LinesRecord(NamedTuple):
    """Some lines of a page."""

    slug: str
    title: str
    version: int
    content_hash: str
    lines: str
    """The range of lines below the front matter, as in 10-40 or timeline 2-5."""
    total_lines: int
    text: str
    collection: str


class MissingPage(NamedTuple):
    slug: str
    """The name of the page as the caller wrote it."""
    hint: str
    """Pages with a similar name, or the problem with the name."""


class PagesRecord(NamedTuple):
    pages: tuple[PageRecord | LinesRecord, ...]
    missing: tuple[MissingPage, ...]

    @property
    def exit_status(self) -> int:
        return errors.PageNotFound.exit_status if self.missing else 0


class ListRecord(NamedTuple):
    pages: tuple[PageListItem, ...]
    total: int
    offset: int
    notes: tuple[str, ...] = ()


@op(
    "read",
    core=True,
    examples=(
        "quaid get people/alice",
        "quaid get people/alice companies/acme --json",
        "quaid get 'Alice Example' --lines 10-40",
    ),
    cli_note="As text, standard output has only the page, so that `quaid put` accepts it unchanged; the version is "
    "shown on a terminal's standard error, and in --json.",
)
def get(
    brain: Brain,
    slug: Annotated[
        list[str], Arg("One page or several, each by slug, title, alias or file path.", positional=True)
    ],
    lines: Annotated[str | None, Arg("Only lines 10-40, or timeline 2-5.")] = None,
) -> PageRecord | LinesRecord | PagesRecord:
    """Read pages: current truth, timeline, front matter, and the version to send with a change."""
    if not 0 < len(slug) <= MAX_PAGES_READ:
        raise errors.InvalidArgument(name="slug", problem=f"must name from 1 to {MAX_PAGES_READ} pages")
    span = _line_range(lines) if lines is not None else None
    with brain.db.reading():
        if len(slug) == 1:
            return _page_record(brain, open_page(brain, slug[0]), span)
        records: list[PageRecord | LinesRecord] = []
        missing: list[MissingPage] = []
        for address in dict.fromkeys(slug):
            try:
                records.append(_page_record(brain, open_page(brain, address), span))
            except (errors.PageNotFound, errors.InvalidSlug, errors.AmbiguousSlug, errors.NotFound) as error:
                hint = error.facts.get("hint") or str(error)
                missing.append(MissingPage(address, str(hint)))
        return PagesRecord(tuple(records), tuple(missing))


def open_page(brain: Brain, name: str) -> PageRow:
    """Return the page with this slug, else the page of this file, else the only page with this title or alias."""
    try:
        return require_page(brain, name)
    except (errors.InvalidSlug, errors.PageNotFound) as error:
        collection, title = slugs.split_address(name)
        namesakes = Namesakes(brain.db, title, collection)
        place = _page_of_file(brain, name) or namesakes.only()
        if place is not None:
            return pages.require(brain.db, *place)
        hint = namesakes.partial_hint()
        if isinstance(error, errors.InvalidSlug) and hint:
            raise errors.PageNotFound(slug=name, hint=hint) from None
        raise


def _page_of_file(brain: Brain, path: str) -> tuple[str, str] | None:
    """Return slug and collection of the page of a file, or None unless exactly one page matches.

    The path is absolute, or relative to the folder of a collection. A relative path may follow the name of the
    collection and `::`, or the name of the collection or of its folder and a slash. If no collection has the
    file, imported files are searched.
    """
    named, path = slugs.split_address(path)
    first, _, rest = path.partition("/")
    found: list[tuple[str, str]] = []
    for collection in Collections(brain.db).all():
        if collection.root is None or named not in (None, collection.name):
            continue
        folder = os.path.basename(collection.root)
        for candidate in (
            _path_inside(path, collection.root) if os.path.isabs(path) else os.path.normpath(path),
            rest if first in (collection.name, folder) else "",
        ):
            file = collection.indexed_file(brain.db, candidate) if candidate else None
            if file and file.slug and pages.find(brain.db, file.slug, collection.name):
                found.append((file.slug, collection.name))
                break
    if not found:
        found = [place for place in Imports(brain.db).pages_of_file(path) if named in (None, place[1])]
    return found[0] if len(found) == 1 else None


def _path_inside(path: str, root: str) -> str:
    """Return an absolute path relative to a folder, or "" if it is outside. Symlinks are followed only if needed."""
    for file, folder in ((os.path.normpath(path), root), (os.path.realpath(path), os.path.realpath(root))):
        if file.startswith(f"{folder}{os.sep}"):
            return file[len(folder) + 1 :].replace(os.sep, "/")
    return ""


def _line_range(lines: str) -> tuple[str, int, int]:
    """Return part, first and last line of a range such as 10-40, 10-, 10 or timeline 2-5.

    Lines are numbered as in facts and search results, from the first line of the truth or of the timeline.
    Without a part, the truth and the timeline after it are numbered as one text.
    """
    part, _, numbers = f" {lines.strip()}".rpartition(" ")
    first, dash, last = (number.strip() for number in numbers.partition("-"))
    if part.strip() in ("", "truth", "timeline") and first.isdecimal() and (last.isdecimal() or not last):
        start, end = int(first), int(last) if last else 10**9 if dash else int(first)
        if 0 < start <= end:
            return part.strip(), start, end
    raise errors.InvalidArgument(name="lines", problem=f"must be a range such as 10-40, not {lines!r}")


def _page_record(brain: Brain, page: PageRow, lines: tuple[str, int, int] | None) -> PageRecord | LinesRecord:
    if lines is None:
        own = {name: value for name, value in page._asdict().items() if name in PageRecord._fields}
        lowest = CLASSES[trust.of_page(brain.db, page.id).lowest]
        return PageRecord(**own, compiled_truth=page.truth, content_hash=content_hash_of(page), trust=lowest)
    part, start, end = lines
    whole = "\n\n---\n\n".join(filter(None, (page.truth, page.timeline)))
    text = {"truth": page.truth, "timeline": page.timeline}.get(part, whole).removesuffix("\n").split("\n")
    end = min(end, len(text))
    if start > len(text):
        address = f"{slugs.address(page.collection, page.slug)}{part and f' ({part})'}"
        raise errors.InvalidArgument(name="lines", problem=f"{address} has {len(text)} lines, not {start}")
    return LinesRecord(
        *(page.slug, page.title, page.version, content_hash_of(page), f"{part} {start}-{end}".strip()),
        *(len(text), "\n".join(text[start - 1 : end]), page.collection),
    )


@op(
    "read",
    command="list",
    examples=("quaid list --type person --tag founder", "quaid list --sort title"),
)
def list_(
    brain: Brain,
    type: Annotated[
        str | None, Arg(f"Only pages of this type: {', '.join(page_model.PAGE_TYPES)}, or one of your own.")
    ] = None,
    tag: Annotated[str | None, Arg("Only pages with this tag.")] = None,
    wing: Annotated[str | None, Arg("Only pages of this wing, as in people.")] = None,
    collection: Annotated[str | None, Arg("Only pages of this collection.")] = None,
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50,
    offset: Annotated[int, Arg("How many to skip first.", minimum=0)] = 0,
    sort: Annotated[
        Literal["updated", "created", "title"], Arg("Order: newest first, or by title.")
    ] = "updated",
) -> ListRecord:
    """List pages, newest first or by title."""
    filters: dict[str, Any] = {
        "type": page_model.check_type(type) if type else None,
        "tag": page_model.check_tag(tag) if tag else None,
        "wing": wing or None,
        "collection": Collections(brain.db).require(collection).name if collection else None,
    }
    with brain.db.reading():
        rows = pages.listing(brain.db, **filters, sort=sort, limit=limit, offset=offset)
        total = pages.count(brain.db, **filters)
        if total:
            return ListRecord(tuple(rows), total, offset)
        return ListRecord((), 0, offset, type_notes(brain, type))


def type_notes(brain: Brain, type: str | None) -> tuple[str, ...]:
    """Return a note if results were filtered by an unknown type that no page has."""
    if not type:
        return ()
    name = page_model.check_type(type)
    if name in page_model.PAGE_TYPES or pages.count(brain.db, type=name):
        return ()
    return (page_model.unused_type_note(name),)


class TagsRecord(NamedTuple):
    slug: str
    version: int
    changed: bool
    tags: tuple[str, ...]
    removed: str | None = None
    """The tag that the caller asked to remove, or None. `changed` is True if the page had the tag."""
    collection: str = "default"


class TimelineRecord(NamedTuple):
    slug: str
    version: int
    entries: tuple[EntryInput, ...]
    total: int
    collection: str = "default"


@op("read", command="tags", examples=("quaid tags people/alice",))
def tags_(brain: Brain, slug: Slug) -> TagsRecord:
    """List the tags of a page."""
    stored = require_page(brain, slug)
    return TagsRecord(stored.slug, stored.version, False, stored.tags, None, stored.collection)


@op("read", command="timeline", examples=("quaid timeline people/alice --limit 5",))
def timeline_(
    brain: Brain,
    slug: Slug,
    limit: Annotated[int, Arg("How many entries.", minimum=1, maximum=10_000)] = 50,
) -> TimelineRecord:
    """Show the dated entries of a page, newest first."""
    stored = require_page(brain, slug)
    entries = [
        EntryInput(entry.date, entry.summary, entry.source, entry.detail)
        for entry in pages.timeline_entries(brain.db, stored.id)
    ]
    shown = tuple(entries[:limit])
    return TimelineRecord(stored.slug, stored.version, shown, len(entries), stored.collection)
