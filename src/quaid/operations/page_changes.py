"""Write pages: whole or in parts, their tags, timeline entries and raw data."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from quaid import errors
from quaid.app import Brain
from quaid.folders import page_writer
from quaid.formats import markdown, sections
from quaid.model import dates, page as page_model, slug as slugs, timeline
from quaid.model.page import EntryInput, Page
from quaid.model.plain_text import close_fence
from quaid.operations import facts
from quaid.operations.facts import ContradictingQuotes, OldLine, OpenFact, Receipt, ReplacedStatement
from quaid.operations.pages import (
    HASH_DIGITS,
    IfVersion,
    Slug,
    TagsRecord,
    content_hash_of,
    locate_page,
    rebuild_page,
    require_page,
)
from quaid.operations.registry import Arg, op
from quaid.storage import expiry, page_edits, pages
from quaid.storage.collections import Collections
from quaid.storage.facts import FactChange
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageRow
from quaid.storage.questions import Gaps
from quaid.storage.sqlite.connection import Transaction

MAX_GAPS_TRIED = 20
"""At most this many gaps (unanswered questions) are checked against a new page, with a search each."""

MAX_CONFLICT_TEXT = 8_000
"""The error for a version conflict contains at most this many characters of the page's text."""


def edit_page(
    brain: Brain,
    address: str,
    expected: int | None,
    change: Callable[[PageRow | None], Page],
    *,
    content_hash: str | None = None,
    may_create: bool = False,
    also: Callable[[Transaction, int, Page, str], bool] | None = None,
    exact: Callable[[], bytes | None] | None = None,
) -> tuple[SaveResult, Page, str]:
    """Read, change and save a page in one transaction, so that no concurrent write is lost.

    Return the result, the page and the name of its collection. `expected` and `content_hash` are the version and the
    hash of the text that the caller had read. `also` writes related rows in the same transaction and returns True if
    the page needs a new version for them. `exact` is called after `change` and returns the exact bytes for
    the page's file, or None to render the page. If another program has changed the file, sync the file and
    raise FileChanged.
    """
    now, uuid = brain.now(), brain.new_uuid()
    find = pages.find if may_create else pages.require

    def work(tx: Transaction) -> tuple[SaveResult, Page, str]:
        collection, name = locate_page(brain, address)
        old = find(brain.db, name, collection.name)
        if old is None and (gone := expiry.expired_page(brain.db, name, collection.name, anywhere=False)):
            place = slugs.address(gone[0], name)
            command = f"quaid expired {place}"
            hint = f"It has expired. `{command} --keep` brings it back, `{command} --now` erases it."
            raise errors.AlreadyExists(path=place, hint=hint)
        new = change(old)
        _check_expiry(brain, new, old)
        data = exact() if exact else None
        try:
            check_content_hash(old, content_hash, slugs.address(collection.name, name))
            saved = page_writer.save_page(
                brain.db, tx, collection, old, new, uuid=uuid, now=now, expected_version=expected, data=data
            )
        except errors.VersionConflict as conflict:
            raise with_current_text(conflict, old) from None
        if also and also(tx, saved.id, new, now) and not saved.changed:
            _, version = page_edits.touch(
                tx, new.slug, expected_version=None, now=now, collection=collection.name
            )
            saved = saved._replace(version=version, changed=True)
        return saved, new, collection.name

    try:
        return brain.db.write(work)
    except errors.FileChanged as changed:
        _sync_changed_file(brain, address, str(changed.facts["path"]))
        raise


def _check_expiry(brain: Brain, new: Page, old: PageRow | None) -> None:
    """Raise InvalidArgument if a new or changed expiry is not a day or time, or is in the past."""
    value = new.frontmatter.get(dates.EXPIRY_KEY)
    if value is None or (old is not None and old.frontmatter.get(dates.EXPIRY_KEY) == value):
        return
    moment = dates.parse_moment(value)
    if moment is None:
        raise errors.InvalidArgument(
            name=dates.EXPIRY_KEY, problem=f"must be {dates.MOMENT_FORMS}, not {value!r}"
        )
    if moment != dates.NEVER and brain.clock.is_past(moment):
        raise errors.InvalidArgument(
            name=dates.EXPIRY_KEY, problem=f"{value} is past; `quaid forget` erases a page now"
        )


def has_content_hash(page: PageRow, content_hash: str) -> bool:
    """Return True if a page's text has this hash. Digits after the first HASH_DIGITS are ignored."""
    return content_hash_of(page) == content_hash.strip().lower()[:HASH_DIGITS]


def check_content_hash(page: PageRow | None, content_hash: str | None, address: str) -> None:
    """If a hash is given, raise a kind of VersionConflict unless the page exists and its text has this hash."""
    if content_hash is None or (page and has_content_hash(page, content_hash)):
        return
    if page is None:
        raise errors.NoSuchVersion(slug=address, expected=content_hash, current_version=0)
    raise errors.ContentChanged(slug=address, expected=content_hash, current_version=page.version)


def with_current_text(
    conflict: errors.VersionConflict, page: PageRow | None, length: int = MAX_CONFLICT_TEXT
) -> errors.VersionConflict:
    """Add the current text of the page to a conflict, so that the caller can merge without another read.

    Text longer than `length` is omitted, not shortened: merging into a part of it would delete the rest.
    """
    if page is None:
        return conflict
    text = markdown.render(page.frontmatter, page.truth, page.timeline)
    if len(text) > length:
        return conflict
    return type(conflict)(**conflict.facts, content_hash=content_hash_of(page), current_text=text)


def _sync_changed_file(brain: Brain, address: str, path: str) -> None:
    """Sync a file that another program changed, so that the next read of the page returns the new content."""
    from quaid.folders.sync import sync_collection

    collection, _ = locate_page(brain, address)
    if collection.root is not None:
        now = brain.now()
        sync_collection(
            brain.db, collection, now=now, new_uuid=brain.new_uuid, progress=brain.progress, only=[path]
        )


def refuse_page_of_folder(brain: Brain, address: str, collection: str, act: str) -> None:
    """Raise PageOfFolder if the collection has a folder. The user has to change the file instead."""
    if Collections(brain.db).require(collection).root is not None:
        page = slugs.address(collection, slugs.split_address(address)[1])
        raise errors.PageOfFolder(slug=page, collection=collection, act=act)


def build_checked_page(
    address: str, front: dict[str, Any], truth: str, lines: str, old: PageRow | None, title: str | None = None
) -> Page:
    """Build a page. Raise an error if its type or a date is invalid, unless the old page has the same value.

    An unknown type is valid; `new_type_notes` reports it.
    """
    named = front.get("type")
    if named is not None and (old is None or old.frontmatter.get("type") != named):
        page_model.check_type(named)
    name = slugs.check(slugs.split_address(address)[1])
    if lines:
        truth = close_fence(truth)
    made = page_model.build_page(name, front, truth, lines, fallback_title=old.title if old else title)
    _check_dates(made, old)
    return made


def new_type_notes(new: Page, old: PageRow | Page | None) -> tuple[str, ...]:
    """Return a note if a page gets an unknown type."""
    named = new.frontmatter.get("type")
    if old is not None and old.frontmatter.get("type") == named:
        return ()
    return tuple(filter(None, [page_model.unknown_type_note(named)]))


def _check_dates(made: Page, old: PageRow | None) -> None:
    """Raise an error for an invalid value of a date key, unless the page already had that value."""
    before = page_model.invalid_dates(old.slug, old.type, old.frontmatter) if old else {}
    for name, value in page_model.invalid_dates(made.slug, made.type, made.frontmatter).items():
        if name in before and before[name] == value:
            continue
        if value in (None, ""):
            raise errors.MissingDate(slug=made.slug, name=name)
        raise errors.InvalidPageDate(slug=made.slug, name=name, value=value)


def page_text(
    old: PageRow | None,
    content: str | None,
    truth: str | None,
    appended: str | None,
    keys: dict[str, Any] | None,
    prefix: str = "",
) -> tuple[dict[str, Any], str, str]:
    """Return the front matter, compiled truth (text above the timeline) and timeline of a changed page.

    `content` replaces the whole page. Otherwise `truth` replaces the text above the timeline, `appended` is added
    to the timeline, and `keys` are set in the front matter. Entries of the old timeline are kept. `prefix` is put
    before the names of arguments in errors.
    """
    front, lines = (old.frontmatter, old.timeline) if old else ({}, "")
    if content is not None:
        if not content.strip():
            raise errors.InvalidArgument(name=f"{prefix}content", problem="is empty; a page needs text")
        document = markdown.parse(content)
        markdown.check_front_matter(document, front)
        return document.frontmatter, document.truth, timeline.merge_timelines(lines, document.timeline)
    if keys is not None:
        front = with_front_matter_keys(front, keys)
    if appended is not None:
        lines = markdown.normalize_part(f"{lines}\n{markdown.normalize_part(appended)}")
    if truth is None:
        return front, old.truth if old else "", lines
    truth = markdown.normalize_part(truth)
    if markdown.has_divider(truth):
        problem = "contains a '---' line, which starts the timeline"
        raise errors.InvalidArgument(name=f"{prefix}compiled_truth", problem=problem)
    return front, truth, lines


def removed_front(old: PageRow | None, new: Page) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the front matter keys and the tags that the new version drops."""
    if old is None:
        return (), ()
    keys = tuple(key for key in old.frontmatter if key not in (*new.frontmatter, "tag", "tags"))
    return keys, tuple(tag for tag in old.tags if tag not in new.tags)


def with_front_matter_keys(front: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    """Return front matter with some keys set. None removes a key."""
    plain = markdown.plain_values(keys)
    changed = {**front, **plain}
    return {key: value for key, value in changed.items() if value is not None or key not in plain}


def with_tags(front: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """Return front matter with these tags, under the key that the page already uses."""
    key = "tag" if "tag" in front and "tags" not in front else "tags"
    others = {name: value for name, value in front.items() if name != key}
    return {**front, key: labels} if labels else others


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
    assertions: tuple[FactChange, ...] = ()
    """The outcome for each fact sent with the page."""
    timeline_kept: tuple[str, ...] = ()
    """Timeline entries that the new text omits but the page keeps."""
    timeline_removed: tuple[str, ...] = ()
    """Timeline entries removed by `replace_timeline`. The previous version has them."""
    keys_removed: tuple[str, ...] = ()
    """Front matter keys that the new text omits."""
    tags_removed: tuple[str, ...] = ()
    """Tags that the new text omits."""
    collection: str = "default"
    notes: tuple[str, ...] = ()
    replaced: tuple[ReplacedStatement, ...] = ()
    """Facts that this write ended."""
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    """Facts about the page that still hold, except facts of this write."""
    similar: tuple[str, ...] = ()
    """Addresses of pages that may be about the same thing."""
    still_says: tuple[OldLine, ...] = ()
    """Lines of pages that still have the value of a replaced fact."""
    hint: str = ""


@op(
    "write",
    creates=True,
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
        Arg(
            "The whole page as markdown: front matter, truth, '---', timeline. Known types are"
            f" {', '.join(page_model.PAGE_TYPES)}; any other is kept.",
            positional=True,
            file=True,
        ),
    ] = None,
    compiled_truth: Annotated[str | None, Arg("New text above the line.")] = None,
    append: Annotated[str | None, Arg("Text to add above the line.")] = None,
    section: Annotated[str | None, Arg("Heading to append under.")] = None,
    timeline_append: Annotated[str | None, Arg("Markdown to add to the timeline.")] = None,
    frontmatter: Annotated[
        dict[str, Any] | None, Arg("Front-matter keys to set; null removes a key.")
    ] = None,
    expected_version: Annotated[
        int | None,
        Arg(
            "The version you read; only to replace text.",
            version="optional",
            minimum=0,
        ),
    ] = None,
    content_hash: Annotated[
        str | None, Arg("The hash you read, instead of the version.", version="optional")
    ] = None,
    assertions: Annotated[
        list[dict[str, Any]] | None,
        Arg(
            "Facts: predicate, object; subject, valid_from, valid_until, source_ref, evidence_text, supersedes_id."
        ),
    ] = None,
    replace_timeline: Annotated[bool, Arg("Remove timeline entries that `content` omits.")] = False,
) -> PutRecord:
    """Write a page of your own, about a person, project or idea: whole (`content`) or in parts.

    Adding needs no version. If the page has changed since you read it, nothing is written and the error has its text.
    Timeline entries that `content` omits are kept; keys and tags are removed."""
    parts = (compiled_truth, timeline_append, frontmatter)
    _check_put_parts(content, (compiled_truth, append, timeline_append, frontmatter), assertions)
    if content is None and replace_timeline:
        raise errors.InvalidArgument(name="replace_timeline", problem="needs `content` with the new timeline")
    if section is not None and append is None:
        raise errors.InvalidArgument(name="section", problem="needs `append` with the text to add")
    must_name_text = not brain.may_overwrite and expected_version is None and content_hash is None
    left_out: list[str] = []
    lost: list[tuple[str, ...]] = [(), ()]
    notes: list[str] = []

    def change(old: PageRow | None) -> Page:
        front, truth, lines = page_text(old, content, *parts)
        replaces = content is not None or compiled_truth is not None or not keeps_keys(old, front)
        # A redirected slug is refused later, when the page is saved.
        if old and must_name_text and replaces and old.slug == slugs.check(slugs.split_address(slug)[1]):
            conflict = errors.PageExists(slug=slug, expected=None, current_version=old.version)
            raise with_current_text(conflict, old)
        if append is not None:
            truth = _append_text(truth, append, section)
        if content is None:
            page = build_checked_page(slug, front, truth, lines, old)
            notes[:] = new_type_notes(page, old)
            if old is None and not truth and "title" not in front:
                # A heading keeps the title if the page moves, and a file without text is not a page.
                page = build_checked_page(slug, front, f"# {page.title}", lines, old)
                notes.append(f"a new page: its title is {page.title!r}, from the slug")
            return page
        own = markdown.parse(content).timeline
        if old and old.timeline != own:
            left_out[:] = timeline.describe_entries(timeline.missing_entries(old.timeline, own))
        page = build_checked_page(slug, front, truth, own if replace_timeline else lines, old)
        lost[:] = removed_front(old, page)
        notes[:] = new_type_notes(page, old)
        return page

    may_create = bool(assertions) or any(part is not None for part in (content, append, *parts))
    stated: list[FactChange] = []

    def add_facts(tx: Transaction, page_id: int, page: Page, now: str) -> bool:
        if not assertions:
            return False
        values = [{"asserted_by": brain.stated_by, **fact} for fact in assertions]
        stated[:] = facts.add_facts(tx, page_id, page.title, values, "assertions", now)
        return any(fact.changed for fact in stated)

    saved, new, collection = edit_page(
        *(brain, slug, expected_version, change),
        content_hash=content_hash,
        may_create=may_create,
        also=add_facts,
    )
    if saved.changed:
        close_answered_gaps(brain, [new.slug])
    # An agent already has the text that it wrote, and a short result saves context.
    shown = (
        ("", new.type, "", "", "") if brain.agent else (new.title, new.type, new.summary, new.wing, new.room)
    )
    return PutRecord(
        *(new.slug, saved.version, saved.created, saved.changed),
        *shown,
        tuple(stated),
        () if replace_timeline else tuple(left_out),
        tuple(left_out) if replace_timeline else (),
        lost[0],
        lost[1],
        collection,
        tuple(notes),
        **receipt_of(brain, saved, stated, similar=True)._asdict(),
    )


def receipt_of(
    brain: Brain, saved: SaveResult, changes: list[FactChange] | None = None, *, similar: bool = False
) -> Receipt:
    """Return the receipt of a write (see facts.receipt); an empty one if the page is unchanged."""
    if not saved.changed:
        return facts.Receipt()
    return facts.receipt(brain, [saved.id], changes or (), similar=[saved.id] if similar else ())


PUT_PARTS = ("compiled_truth", "append", "timeline_append", "frontmatter")


def _check_put_parts(content: str | None, parts: tuple[Any, ...], assertions: list[Any] | None) -> None:
    """Raise InvalidArgument unless a put has either the whole page, or parts of it that go together, or only
    facts.
    """
    if content is None and all(part is None for part in parts) and not assertions:
        raise errors.InvalidArgument(name="content", problem="is required, or a part of the page")
    sent = [name for name, part in zip(PUT_PARTS, parts, strict=True) if part is not None]
    if content is not None and sent:
        raise errors.InvalidArgument(name=sent[0], problem=page_model.WHOLE_OR_PARTS)
    truth, appended = parts[:2]
    if truth is not None and appended is not None:
        raise errors.InvalidArgument(
            name="append", problem="cannot be combined with compiled_truth; send one of them"
        )


def keeps_keys(old: PageRow | None, front: dict[str, Any]) -> bool:
    """Return True if front matter keeps all values of an old page. It may add keys, and items to lists."""

    def is_kept(value: Any, new: Any) -> bool:
        if isinstance(value, list):
            return isinstance(new, list) and all(item in new for item in value)
        return bool(value == new)

    return old is None or all(is_kept(value, front.get(key)) for key, value in old.frontmatter.items())


def _append_text(truth: str, text: str, section: str | None) -> str:
    """Return the compiled truth (the text above the timeline) with text appended to a section or at the end.

    Text that is already there is not added again.
    """
    text = markdown.normalize_part(text)
    if not text:
        raise errors.InvalidArgument(name="append", problem="is empty; write the text to add")
    if markdown.has_divider(text):
        raise errors.InvalidArgument(
            name="append", problem="contains a '---' line, which starts the timeline"
        )
    place = sections.find_section(truth, section) if section else None
    body = truth[place.body : place.end] if place else "" if section else truth
    if f"\n{text}\n" in f"\n{body.strip()}\n":
        return truth  # a repeated call changes nothing
    return markdown.normalize_part(
        sections.append_to_section(f"{truth}\n" if truth else "", section, text)[0]
    )


def close_answered_gaps(brain: Brain, slugs: list[str]) -> list[int]:
    """Resolve the gaps (unanswered questions) that one of these pages answers, and return their ids.

    Only gaps with stored text are tried, at most MAX_GAPS_TRIED of them, by text search. Errors are ignored.
    """
    closed: list[int] = []
    try:
        for gap in Gaps(brain.db).read(MAX_GAPS_TRIED, with_text=True)[0]:
            slug = _answering_page(brain, gap.query_text or gap.redacted_query or "", slugs)
            if slug is not None:
                Gaps(brain.db).resolve(gap.id, slug, brain.now())
                closed.append(gap.id)
    except errors.QuaidError:
        pass  # the pages are written, and the gap can be resolved later
    return closed


def _answering_page(brain: Brain, question: str, slugs: list[str]) -> str | None:
    """Return the page that text search finds first if it is one of `slugs` and the answer is strong, else None."""
    from quaid.search import answer as answers, candidates  # most pages are written while no gap is open

    ranked = candidates.rank_question(brain.db, candidates.WORDS_ONLY, question, now=brain.now())
    answer = answers.build_answer(brain.db, ranked, limit=1, depth="summary")
    first = answer.results[0].slug if answer.results else None
    return first if answer.strength == "strong" and first in slugs else None


class TimelineAddRecord(NamedTuple):
    slug: str
    version: int
    added: bool
    entry: EntryInput
    collection: str = "default"
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    """Facts about the page that still hold."""


class RawRecord(NamedTuple):
    slug: str
    version: int
    written: bool
    data: tuple[pages.RawData, ...]
    collection: str = "default"


@op(
    "write",
    aliases={"untag": {"remove": True}},
    examples=("quaid tag people/alice founder", "quaid untag people/alice founder"),
)
def tag(
    brain: Brain,
    slug: Slug,
    tag: Annotated[str, Arg("The tag, as in founder.", positional=True)],
    remove: Annotated[bool, Arg("Remove the tag instead.")] = False,
    expected_version: IfVersion = None,
) -> TagsRecord:
    """Add a tag to a page, or remove one."""
    label = page_model.check_tag(tag)

    def change(old: PageRow | None) -> Page:
        assert old is not None
        if (label in old.tags) is not remove:
            return rebuild_page(old)
        named = page_model.frontmatter_tags(old.frontmatter)
        others = [other for other in named if other != label]
        new = rebuild_page(
            old, frontmatter=with_tags(old.frontmatter, others if remove else [*others, label])
        )
        if remove and label in new.tags:
            raise errors.TagInText(tag=label, slug=slugs.address(old.collection, old.slug))
        return new

    saved, new, collection = edit_page(brain, slug, expected_version, change)
    removed = label if remove else None
    return TagsRecord(new.slug, saved.version, saved.changed, new.tags, removed, collection)


@op(
    "write",
    adds_only=True,
    examples=("quaid timeline-add people/alice --date 2026-04-25 --summary 'Moved to Oslo' --source call",),
)
def timeline_add(
    brain: Brain,
    slug: Slug,
    date: Annotated[str, Arg("Day of the event, YYYY-MM-DD.")],
    summary: Annotated[str, Arg("What happened, in one line.")],
    source: Annotated[str, Arg("The source, as in meeting/123.")] = "",
    detail: Annotated[str, Arg("Details, as markdown.")] = "",
    expected_version: IfVersion = None,
) -> TimelineAddRecord:
    """Add a dated entry to a page's timeline. Repeating the same day and summary changes nothing."""
    day = dates.check_date(date, "date")

    def change(old: PageRow | None) -> Page:
        assert old is not None
        return rebuild_page(old, lines=timeline.add_entry_once(old.timeline, day, summary, source, detail))

    saved, new, collection = edit_page(brain, slug, expected_version, change)
    entry = EntryInput(day, summary, source, detail)
    receipt = receipt_of(brain, saved)
    return TimelineAddRecord(
        *(new.slug, saved.version, saved.changed, entry, collection),
        *(receipt.contradicts, receipt.open_facts),
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
        dict[str, Any] | None, Arg("The data to store; replaces earlier data of this source.")
    ] = None,
    expected_version: Annotated[
        int | None,
        Arg("The version you read; needed to replace data of a source.", version="optional", minimum=0),
    ] = None,
) -> RawRecord:
    """Read the raw data stored with a page, or (with `source` and `data`) replace the data of one source."""
    stored = require_page(brain, slug)
    if data is None:
        rows = pages.read_raw_data(brain.db, stored.id, source)
        return RawRecord(stored.slug, stored.version, False, tuple(rows), stored.collection)
    if not source or not source.strip():
        raise errors.InvalidArgument(name="source", problem="is required with `data`")
    now = brain.now()

    def work(tx: Transaction) -> int:
        if expected_version is None and not brain.may_overwrite:
            before = pages.read_raw_data(brain.db, stored.id, source)
            if before and before[0].data != data:
                raise errors.InvalidArgument(
                    name="expected_version", problem=f"is required to replace the data of {source}"
                )
        page_id, version = page_edits.touch(
            tx, stored.slug, expected_version=expected_version, now=now, collection=stored.collection
        )
        pages.write_raw_data(tx, page_id, {source: data}, now)
        return version

    version = brain.db.write(work)
    return RawRecord(stored.slug, version, True, (pages.RawData(source, data, now),), stored.collection)
