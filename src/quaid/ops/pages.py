"""Pages: read, write, list."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument
from quaid.ops import editing
from quaid.ops.editing import Slug
from quaid.ops.register import Arg, op
from quaid.storage import page_edits, pages
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageListItem, PageRow

if TYPE_CHECKING:
    from quaid.model.page import Page
    from quaid.storage.facts import FactChange


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
    assertions: tuple["FactChange", ...] = ()
    """What became of the facts that came with it."""
    timeline_kept: tuple[str, ...] = ()
    """Entries that the text left out and that the page keeps."""
    timeline_removed: tuple[str, ...] = ()
    """Entries that `replace_timeline` took out; the version before has them."""
    keys_removed: tuple[str, ...] = ()
    """Keys of the front matter that the text leaves out and the page no longer has."""
    tags_removed: tuple[str, ...] = ()
    """Tags that the text leaves out and the page no longer has."""


class ListRecord(NamedTuple):
    pages: tuple[PageListItem, ...]
    total: int
    offset: int


@op(
    "read",
    core=True,
    examples=("quaid get people/alice", "quaid get people/alice --json"),
    cli_note="As text, the page alone goes to standard output, so that `quaid put` takes it back as it is; a "
    "terminal shows the version beside it, --json within.",
)
def get(brain: Brain, slug: Slug) -> PageRecord:
    """Read a page: current truth, timeline, front matter, and the version to send with a change."""
    stored = editing.require(brain, slug)
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
        'quaid put people/alice alice.md --assertions \'{"predicate": "works_at", "object": "River AI"}\'',
    ),
)
def put(
    brain: Brain,
    slug: Slug,
    content: Annotated[
        str | None,
        Arg("The whole page as markdown: front matter, truth, '---', timeline.", positional=True, file=True),
    ] = None,
    compiled_truth: Annotated[str | None, Arg("New text above the line.")] = None,
    timeline_append: Annotated[str | None, Arg("Markdown to add to the timeline.")] = None,
    frontmatter: Annotated[
        dict[str, Any] | None, Arg("Front-matter keys to set; null removes a key.")
    ] = None,
    expected_version: Annotated[
        int | None, Arg("The version you read; leave out for a new page.", version="or new", minimum=0)
    ] = None,
    assertions: Annotated[
        list[dict[str, Any]] | None,
        Arg(
            "Facts: predicate, object; subject, valid_from, valid_until, source_ref, evidence_text, supersedes_id."
        ),
    ] = None,
    replace_timeline: Annotated[bool, Arg("Remove entries that content leaves out.")] = False,
) -> PutRecord:
    """Write a page, whole (content) or in parts (compiled_truth, timeline_append, frontmatter).

    Timeline entries that content leaves out stay; keys and tags go. A version that is not current is refused,
    with the current one."""
    parts = (compiled_truth, timeline_append, frontmatter)
    if content is None and all(part is None for part in parts) and not assertions:
        raise InvalidArgument(name="content", problem="is required, or one of the parts of a page")
    if content is not None and any(part is not None for part in parts):
        raise InvalidArgument(name="content", problem="is the whole page; send either it or parts, not both")
    if content is None and replace_timeline:
        raise InvalidArgument(name="replace_timeline", problem="needs content, which has the new timeline")
    left_out: list[str] = []
    lost: list[tuple[str, ...]] = [(), ()]

    def change(old: PageRow | None) -> "Page":
        if content is not None:
            page, left_out[:] = _whole(slug, content, old, replace_timeline)
            lost[:] = editing.removed_front(old, page)
            return page
        return _parts(slug, old, compiled_truth, timeline_append, frontmatter)

    may_create = any(part is not None for part in (content, *parts))
    keep = _Facts(brain, slug, assertions or [])
    saved, new = editing.edit(brain, slug, expected_version, change, may_create=may_create, also=keep)
    if saved.changed:
        from quaid.ops import gaps

        gaps.answered_by(brain, [new.slug])
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
        tuple(keep.added),
        *(((), tuple(left_out)) if replace_timeline else (tuple(left_out), ())),
        *lost,
    )


class _Facts:
    """The facts that come with a page, written in the page's own transaction."""

    def __init__(self, brain: Brain, address: str, given: list[dict[str, Any]]) -> None:
        self._brain = brain
        self._address = address
        self._given = given
        self.added: list[FactChange] = []

    def __call__(self, tx: Any, saved: SaveResult, page: "Page", now: str) -> SaveResult:
        if not self._given:
            return saved
        from quaid.model import facts
        from quaid.storage import facts as assertions

        for place, values in enumerate(self._given, 1):
            fact = facts.check_fact(values, f"assertions[{place}]", page.title)
            self.added.append(assertions.add_fact(tx, saved.id, fact, now))
        if not saved.changed and any(each.changed for each in self.added):
            collection, _ = editing.locate(self._brain, self._address)
            _, version = page_edits.touch(
                tx, page.slug, expected_version=None, now=now, collection=collection.name
            )
            return saved._replace(version=version, changed=True)
        return saved


@op(
    "read",
    command="list",
    examples=("quaid list --type person --tag founder", "quaid list --sort title"),
)
def list_(
    brain: Brain,
    type: Annotated[str | None, Arg("Only pages of this type, as in person.")] = None,
    tag: Annotated[str | None, Arg("Only pages with this tag.")] = None,
    wing: Annotated[str | None, Arg("Only pages of this wing, as in people.")] = None,
    collection: Annotated[str | None, Arg("Only pages of this collection.")] = None,
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50,
    offset: Annotated[int, Arg("How many to pass over first.", minimum=0)] = 0,
    sort: Annotated[
        Literal["updated", "created", "title"], Arg("Order: newest first, or by title.")
    ] = "updated",
) -> ListRecord:
    """List pages, newest first."""
    from quaid.model import page as page_model, tags
    from quaid.storage import collections

    filters: dict[str, Any] = {
        "type": page_model.check_type(type) if type else None,
        "tag": tags.check(tag) if tag else None,
        "wing": wing or None,
        "collection": collections.require(brain.db, collection).name if collection else None,
    }
    with brain.db.reading():
        found = pages.listing(brain.db, **filters, sort=sort, limit=limit, offset=offset)
        total = pages.count(brain.db, **filters)
    return ListRecord(tuple(found), total, offset)


def _whole(
    address: str, content: str, old: PageRow | None, replace_timeline: bool
) -> "tuple[Page, tuple[str, ...]]":
    """The page that a text makes, and the entries of the old timeline that the text leaves out."""
    from quaid.formats import markdown

    if not content.strip():
        raise InvalidArgument(name="content", problem="is empty; a page needs text")
    document = markdown.parse(content)
    markdown.check_front_matter(document, old.frontmatter if old else {})
    truth, lines = document.truth, document.timeline
    left_out: tuple[str, ...] = ()
    if old and old.timeline and old.timeline != lines:
        from quaid.model import timeline

        left_out = timeline.describe_entries(timeline.missing_entries(old.timeline, lines))
        if not replace_timeline:
            lines = timeline.merge_timelines(old.timeline, lines)
            truth = markdown.close_fence(truth)
    return editing.checked(address, document.frontmatter, truth, lines, old), left_out


def _parts(
    address: str,
    old: PageRow | None,
    truth: str | None,
    appended: str | None,
    keys: dict[str, Any] | None,
) -> "Page":
    from quaid.formats import markdown

    front = editing.with_keys(old.frontmatter if old else {}, keys or {})
    lines = old.timeline if old else ""
    if appended is not None:
        lines = markdown.normalize_part(f"{lines}\n{markdown.normalize_part(appended)}")
    truth = (old.truth if old else "") if truth is None else markdown.normalize_part(truth)
    if markdown.has_divider(truth):
        raise InvalidArgument(name="compiled_truth", problem="holds a '---' line, which begins the timeline")
    if lines:
        truth = markdown.close_fence(truth)
    return editing.checked(address, front, truth, lines, old)
