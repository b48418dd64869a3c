"""Pages: read, write, list, tag, date, and the raw data beside them."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.core import dates, page, slug, tags, timeline
from quaid.core.page import Page
from quaid.errors import InvalidArgument, InvalidFrontMatter, InvalidType
from quaid.formats import markdown
from quaid.ops.register import Arg, op
from quaid.store import pages, sidecars
from quaid.store.pages import Header, Saved, Stored

Slug = Annotated[str, Arg("The page, as in people/alice.", positional=True)]
PageVersion = Annotated[int | None, Arg("The page's version as you read it.", version="page", minimum=1)]


class PageRecord(NamedTuple):
    slug: str
    title: str
    type: str
    version: int
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


class PutRecord(NamedTuple):
    slug: str
    version: int
    created: bool
    changed: bool
    title: str
    type: str
    summary: str
    wing: str
    room: str


class ListRecord(NamedTuple):
    pages: tuple[Header, ...]
    total: int
    offset: int


class TagsRecord(NamedTuple):
    slug: str
    version: int
    changed: bool
    tags: tuple[str, ...]


class EntryRecord(NamedTuple):
    date: str
    source: str
    summary: str
    detail: str


class TimelineRecord(NamedTuple):
    slug: str
    version: int
    entries: tuple[EntryRecord, ...]
    total: int


class TimelineAddRecord(NamedTuple):
    slug: str
    version: int
    added: bool
    entry: EntryRecord


class RawRecord(NamedTuple):
    slug: str
    version: int
    written: bool
    data: tuple[sidecars.RawData, ...]


@op("read", core=True, examples=("quaid get people/alice", "quaid get people/alice --json"))
def get(brain: Brain, slug: Slug) -> PageRecord:
    """Read a page: current truth, timeline, front matter, and the version to send with a change."""
    stored = _require(brain, slug)
    return PageRecord(
        slug=stored.slug,
        title=stored.title,
        type=stored.type,
        version=stored.version,
        summary=stored.summary,
        compiled_truth=stored.truth,
        timeline=stored.timeline,
        frontmatter=stored.frontmatter,
        tags=stored.tags,
        wing=stored.wing,
        room=stored.room,
        collection=stored.collection,
        uuid=stored.uuid,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        truth_updated_at=stored.truth_updated_at,
        timeline_updated_at=stored.timeline_updated_at,
    )


@op(
    "write",
    core=True,
    examples=(
        "quaid put people/alice alice.md",
        "echo '# Alice' | quaid put people/alice",
        "quaid put people/alice --timeline-append '- **2026-04-25** | call — Moved to Oslo.'",
    ),
)
def put(
    brain: Brain,
    slug: Slug,
    content: Annotated[
        str | None,
        Arg("The whole page as markdown: front matter, truth, '---', timeline.", positional=True, file=True),
    ] = None,
    compiled_truth: Annotated[str | None, Arg("New text above the line; the rest stays.")] = None,
    timeline_append: Annotated[str | None, Arg("Markdown to add at the end of the timeline.")] = None,
    frontmatter: Annotated[
        dict[str, Any] | None, Arg("Front-matter keys to set; null removes a key; the others stay.")
    ] = None,
    expected_version: Annotated[
        int | None, Arg("The version you read; leave out for a new page.", version="or new", minimum=0)
    ] = None,
) -> PutRecord:
    """Write a page, whole (content) or in parts (compiled_truth, timeline_append, frontmatter).

    A version that is no longer current is refused with the current one, and nothing is written."""
    parts = (compiled_truth, timeline_append, frontmatter)
    if content is None and all(part is None for part in parts):
        raise InvalidArgument(name="content", problem="is required, or one of the parts of a page")
    if content is not None and any(part is not None for part in parts):
        raise InvalidArgument(name="content", problem="is the whole page; send either it or parts, not both")

    def change(old: Stored | None) -> Page:
        if content is not None:
            return _whole(slug, content, old)
        return _parts(slug, old, compiled_truth, timeline_append, frontmatter)

    saved, new = _edit(brain, slug, expected_version, change, may_create=True)
    return PutRecord(
        new.slug,
        saved.version,
        saved.created,
        saved.changed,
        new.title,
        new.type,
        new.summary,
        new.wing,
        new.room,
    )


@op(
    "read",
    command="list",
    core=True,
    examples=("quaid list --type person --tag founder", "quaid list --sort title"),
)
def list_(
    brain: Brain,
    type: Annotated[str | None, Arg("Only pages of this type, as in person.")] = None,
    tag: Annotated[str | None, Arg("Only pages with this tag.")] = None,
    wing: Annotated[str | None, Arg("Only pages of this wing, as in people.")] = None,
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50,
    offset: Annotated[int, Arg("How many to pass over first.", minimum=0)] = 0,
    sort: Annotated[
        Literal["updated", "created", "title"], Arg("Order: newest first, or by title.")
    ] = "updated",
) -> ListRecord:
    """List pages, newest first."""
    wanted = page.check_type(type) if type else None
    label = tags.check(tag) if tag else None
    with brain.db.reading():
        found = pages.listing(
            brain.db, type=wanted, tag=label, wing=wing or None, sort=sort, limit=limit, offset=offset
        )
        total = pages.count(brain.db, type=wanted, tag=label, wing=wing or None)
    return ListRecord(tuple(found), total, offset)


@op("read", command="tags", examples=("quaid tags people/alice",))
def tags_(brain: Brain, slug: Slug) -> TagsRecord:
    """List the tags of a page."""
    stored = _require(brain, slug)
    return TagsRecord(stored.slug, stored.version, False, stored.tags)


@op(
    "write",
    core=True,
    aliases={"untag": {"remove": True}},
    examples=("quaid tag people/alice founder", "quaid untag people/alice founder"),
)
def tag(
    brain: Brain,
    slug: Slug,
    tag: Annotated[str, Arg("The tag, as in founder.", positional=True)],
    remove: Annotated[bool, Arg("Take the tag away instead.")] = False,
    page_version: PageVersion = None,
) -> TagsRecord:
    """Add a tag to a page, or take one away."""
    label = tags.check(tag)

    def change(old: Stored | None) -> Page:
        assert old is not None
        if (label in old.tags) is not remove:
            return _rebuilt(old)
        kept = [each for each in old.tags if each != label]
        return _rebuilt(old, frontmatter=_with_tags(old.frontmatter, kept if remove else [*kept, label]))

    saved, new = _edit(brain, slug, page_version, change)
    return TagsRecord(new.slug, saved.version, saved.changed, new.tags)


@op("read", command="timeline", core=True, examples=("quaid timeline people/alice --limit 5",))
def timeline_(
    brain: Brain,
    slug: Slug,
    limit: Annotated[int, Arg("How many entries.", minimum=1, maximum=10_000)] = 50,
) -> TimelineRecord:
    """Show the dated entries of a page, newest first."""
    stored = _require(brain, slug)
    found = pages.entries(brain.db, stored.id)
    entries = tuple(EntryRecord(each.date, each.source, each.summary, each.detail) for each in found[:limit])
    return TimelineRecord(stored.slug, stored.version, entries, len(found))


@op(
    "write",
    core=True,
    examples=("quaid timeline-add people/alice --date 2026-04-25 --summary 'Moved to Oslo' --source call",),
)
def timeline_add(
    brain: Brain,
    slug: Slug,
    date: Annotated[str, Arg("Day of the event, YYYY-MM-DD.")],
    summary: Annotated[str, Arg("What happened, in one line.")],
    source: Annotated[str, Arg("Where it is known from, as in meeting/123.")] = "",
    detail: Annotated[str, Arg("More, as markdown.")] = "",
    page_version: PageVersion = None,
) -> TimelineAddRecord:
    """Add a dated entry to a page's timeline. The same day and summary again changes nothing."""
    day = dates.check_date(date, "date")
    digest = timeline.summary_hash(summary)

    def change(old: Stored | None) -> Page:
        assert old is not None
        known = {(each.date, timeline.summary_hash(each.summary)) for each in timeline.parse(old.timeline)}
        if (day, digest) in known:
            return _rebuilt(old)
        return _rebuilt(old, lines=timeline.add(old.timeline, day, summary, source, detail))

    saved, new = _edit(brain, slug, page_version, change)
    return TimelineAddRecord(
        new.slug, saved.version, saved.changed, EntryRecord(day, source, summary, detail)
    )


@op(
    "write",
    examples=(
        "quaid raw people/alice",
        "quaid raw people/alice --source crm --data '{\"id\": 7}'",
    ),
)
def raw(
    brain: Brain,
    slug: Slug,
    source: Annotated[str | None, Arg("Where the data is from, as in crm.")] = None,
    data: Annotated[
        dict[str, Any] | None, Arg("What to keep; replaces what this source gave before.")
    ] = None,
    page_version: Annotated[
        int | None, Arg("The page's version as you read it; needed with data.", version="or new", minimum=0)
    ] = None,
) -> RawRecord:
    """Read the raw data kept beside a page, or (with source and data) replace what one source gave."""
    stored = _require(brain, slug)
    if data is None:
        return RawRecord(
            stored.slug, stored.version, False, tuple(sidecars.read(brain.db, stored.id, source))
        )
    if not source or not source.strip():
        raise InvalidArgument(name="source", problem="is required with data")
    now = brain.now()

    def work(tx: Any) -> int:
        page_id, version = pages.touch(tx, stored.slug, expected_version=page_version, now=now)
        sidecars.write(tx, page_id, source, data, now)
        return version

    version = brain.db.write(work)
    return RawRecord(stored.slug, version, True, (sidecars.RawData(source, data, now),))


def _require(brain: Brain, address: str) -> Stored:
    collection, name = slug.split_address(address)
    return pages.require(brain.db, slug.check(name), collection or "default")


def _edit(
    brain: Brain,
    address: str,
    expected: int | None,
    change: Callable[[Stored | None], Page],
    *,
    may_create: bool = False,
) -> tuple[Saved, Page]:
    """Read, change and save a page in one transaction, so that no other writer comes between."""
    collection, name = slug.split_address(address)
    name, collection = slug.check(name), collection or "default"
    now, uuid = brain.now(), brain.new_uuid()

    def work(tx: Any) -> tuple[Saved, Page]:
        find = pages.find if may_create else pages.require
        old = find(brain.db, name, collection)
        new = change(old)
        saved = pages.save(tx, new, uuid=uuid, now=now, expected_version=expected, collection=collection)
        return saved, new

    return brain.db.write(work)


def _whole(address: str, content: str, old: Stored | None) -> Page:
    if not content.strip():
        raise InvalidArgument(name="content", problem="is empty; a page needs text")
    document = markdown.parse(content)
    before = old.frontmatter if old else {}
    if document.problem and document.frontmatter != before:
        raise InvalidFrontMatter(problem=document.problem)
    return _checked(address, document.frontmatter, document.truth, document.timeline, old)


def _parts(
    address: str,
    old: Stored | None,
    truth: str | None,
    appended: str | None,
    keys: dict[str, Any] | None,
) -> Page:
    front = dict(old.frontmatter) if old else {}
    for key, value in (keys or {}).items():
        if value is None:
            front.pop(key, None)
        else:
            front[key] = value
    lines = old.timeline if old else ""
    if appended is not None:
        lines = f"{lines}\n{appended.strip()}".strip()
    if truth is None:
        truth = old.truth if old else ""
    if markdown.has_divider(truth):
        raise InvalidArgument(name="compiled_truth", problem="holds a '---' line, which begins the timeline")
    return _checked(address, front, truth, lines, old)


def _checked(address: str, front: dict[str, Any], truth: str, lines: str, old: Stored | None) -> Page:
    """A page whose type, if it names a new one, is a known type."""
    named = front.get("type")
    if named is not None and (old is None or old.frontmatter.get("type") != named):
        if not isinstance(named, str):
            raise InvalidType(type=named, hint="", known=", ".join(page.TYPES))
        page.check_type(named)
    name = slug.split_address(address)[1]
    return page.build(slug.check(name), front, truth, lines, fallback_title=old.title if old else None)


def _rebuilt(old: Stored, *, frontmatter: dict[str, Any] | None = None, lines: str | None = None) -> Page:
    return page.build(
        old.slug,
        old.frontmatter if frontmatter is None else frontmatter,
        old.truth,
        old.timeline if lines is None else lines,
        fallback_title=old.title,
    )


def _with_tags(front: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """Front matter with these tags, under the key that the page uses for them."""
    key = "tag" if "tag" in front and "tags" not in front else "tags"
    changed = {**front, key: labels}
    if not labels:
        del changed[key]
    return changed
