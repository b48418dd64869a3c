"""What is pinned to a page: tags, dated entries, raw data."""

from typing import Annotated, Any, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument, TagInText
from quaid.model import dates, tags, timeline
from quaid.model.page import Page
from quaid.ops import editing
from quaid.ops.editing import PageVersion, Slug
from quaid.ops.register import Arg, op
from quaid.storage import page_edits, pages
from quaid.storage.pages import PageRow


class TagsRecord(NamedTuple):
    slug: str
    version: int
    changed: bool
    tags: tuple[str, ...]
    removed: str | None = None
    """The tag that was to be taken away; `changed` says whether it was there."""


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
    data: tuple[pages.RawData, ...]


@op("read", command="tags", examples=("quaid tags people/alice",))
def tags_(brain: Brain, slug: Slug) -> TagsRecord:
    """List the tags of a page."""
    stored = editing.require(brain, slug)
    return TagsRecord(stored.slug, stored.version, False, stored.tags)


@op(
    "write",
    aliases={"untag": {"remove": True}},
    examples=("quaid tag people/alice founder", "quaid untag people/alice founder"),
)
def tag(
    brain: Brain,
    slug: Slug,
    tag: Annotated[str, Arg("The tag, as in founder.", positional=True)],
    remove: Annotated[bool, Arg("Take the tag away instead.")] = False,
    expected_version: PageVersion = None,
) -> TagsRecord:
    """Add a tag to a page, or take one away."""
    label = tags.check(tag)

    def change(old: PageRow | None) -> Page:
        assert old is not None
        if (label in old.tags) is not remove:
            return editing.rebuilt(old)
        named = tags.of_frontmatter(old.frontmatter)
        kept = [each for each in named if each != label]
        new = editing.rebuilt(
            old, frontmatter=editing.with_tags(old.frontmatter, kept if remove else [*kept, label])
        )
        if remove and label in new.tags:
            raise TagInText(tag=label, slug=old.slug)
        return new

    saved, new = editing.edit(brain, slug, expected_version, change)
    return TagsRecord(new.slug, saved.version, saved.changed, new.tags, label if remove else None)


@op("read", command="timeline", examples=("quaid timeline people/alice --limit 5",))
def timeline_(
    brain: Brain,
    slug: Slug,
    limit: Annotated[int, Arg("How many entries.", minimum=1, maximum=10_000)] = 50,
) -> TimelineRecord:
    """Show the dated entries of a page, newest first."""
    stored = editing.require(brain, slug)
    found = pages.timeline_entries(brain.db, stored.id)
    entries = tuple(EntryRecord(each.date, each.source, each.summary, each.detail) for each in found[:limit])
    return TimelineRecord(stored.slug, stored.version, entries, len(found))


@op(
    "write",
    core=True,
    adds_only=True,
    examples=("quaid timeline-add people/alice --date 2026-04-25 --summary 'Moved to Oslo' --source call",),
)
def timeline_add(
    brain: Brain,
    slug: Slug,
    date: Annotated[str, Arg("Day of the event, YYYY-MM-DD.")],
    summary: Annotated[str, Arg("What happened, in one line.")],
    source: Annotated[str, Arg("Where it is known from, as in meeting/123.")] = "",
    detail: Annotated[str, Arg("More, as markdown.")] = "",
    expected_version: PageVersion = None,
) -> TimelineAddRecord:
    """Add a dated entry to a page's timeline. The same day and summary again changes nothing."""
    day = dates.check_date(date, "date")
    digest = timeline.summary_hash(summary)

    def change(old: PageRow | None) -> Page:
        assert old is not None
        known = {(each.date, timeline.summary_hash(each.summary)) for each in timeline.parse(old.timeline)}
        if (day, digest) in known:
            return editing.rebuilt(old)
        return editing.rebuilt(old, lines=timeline.add_entry(old.timeline, day, summary, source, detail))

    saved, new = editing.edit(brain, slug, expected_version, change)
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
    expected_version: Annotated[
        int | None, Arg("The page's version as you read it; needed with data.", version="or new", minimum=0)
    ] = None,
) -> RawRecord:
    """Read the raw data kept beside a page, or (with source and data) replace what one source gave."""
    stored = editing.require(brain, slug)
    if data is None:
        return RawRecord(
            stored.slug, stored.version, False, tuple(pages.read_raw_data(brain.db, stored.id, source))
        )
    if not source or not source.strip():
        raise InvalidArgument(name="source", problem="is required with data")
    if expected_version == 0:  # left out by a caller that must not
        raise InvalidArgument(name="expected_version", problem="is required with data")
    now = brain.now()

    def work(tx: Any) -> int:
        page_id, version = page_edits.touch(
            tx, stored.slug, expected_version=expected_version, now=now, collection=stored.collection
        )
        pages.write_raw_data(tx, page_id, source, data, now)
        return version

    version = brain.db.write(work)
    return RawRecord(stored.slug, version, True, (pages.RawData(source, data, now),))
