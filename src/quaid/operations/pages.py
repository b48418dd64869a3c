"""Pages: read, write, list and tag them, add timeline entries and raw data."""

import hashlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid import errors
from quaid.app import Brain
from quaid.formats import markdown, sections
from quaid.model import dates, page as page_model, slug as slugs, timeline
from quaid.model.page import CLASSES, EntryInput, Page, TrustName
from quaid.model.plain_text import close_fence
from quaid.operations.registry import Arg, op
from quaid.storage import collections, expiry, pages, trust
from quaid.storage.collections import Collection, Collections
from quaid.storage.history import Imports
from quaid.storage.pages import Namesakes, PageListItem, PageRow
from quaid.storage.questions import Gaps

if TYPE_CHECKING:  # not at run time: `quaid get` does not need these modules, and help does not need SQLite
    from quaid.operations.facts import ContradictingQuotes, OldLine, OpenFact, Receipt, ReplacedStatement
    from quaid.storage.facts import FactChange
    from quaid.storage.page_edits import SaveResult
    from quaid.storage.sqlite.connection import Transaction

MAX_GAPS_TRIED = 20
"""At most this many gaps (unanswered questions) are checked against a new page, with a search each."""

Slug = Annotated[str, Arg("The page, as in people/alice.", positional=True)]
PageVersion = Annotated[int | None, Arg("The version you read.", version="page", minimum=1)]
IfVersion = Annotated[int | None, Arg("Fail unless this is its version.", version="optional", minimum=1)]

ForPeriod = Annotated[str | None, Arg("Forget it after this period, as in 12h, 30d, 2w or 1y.", flag="--for")]
ExpiryDay = Annotated[str | None, Arg("Forget it after this day or time, as in Friday.")]

MAX_PAGES_READ = 50
"""One `get` returns at most this many pages."""

MAX_CONFLICT_TEXT = 8_000
"""The error for a version conflict contains at most this many characters of the page's text."""

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
    """Split an address into collection and slug.

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


def edit_page(
    brain: Brain,
    address: str,
    expected: int | None,
    change: Callable[[PageRow | None], Page],
    *,
    content_hash: str | None = None,
    may_create: bool = False,
    also: "Callable[[Transaction, int, Page, str], bool] | None" = None,
    exact: Callable[[], bytes | None] | None = None,
) -> "tuple[SaveResult, Page, str]":
    """Read, change and save a page in one transaction, so that no concurrent write is lost.

    Return the result, the page and the name of its collection. `expected` and `content_hash` are the version and the
    hash of the text that the caller had read. `also` writes related rows in the same transaction and returns True if
    the page needs a new version for them. `exact` is called after `change` and returns the exact bytes for the page's
    file.
    """
    from quaid.folders import page_writer
    from quaid.storage import page_edits

    now, uuid = brain.now(), brain.new_uuid()
    find = pages.find if may_create else pages.require

    def work(tx: "Transaction") -> "tuple[SaveResult, Page, str]":
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


def has_content_hash(page: PageRow, content_hash: str) -> bool:
    """Return True if a page's text has this hash. Digits after the first HASH_DIGITS are ignored."""
    return content_hash_of(page) == content_hash.strip().lower()[:HASH_DIGITS]


def check_content_hash(page: PageRow | None, content_hash: str | None, address: str) -> None:
    """If a hash is given, raise VersionConflict unless the page exists and its text has this hash."""
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


def new_type_notes(new: Page, old: "PageRow | Page | None") -> tuple[str, ...]:
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
    """The lowest trust class of its lines; `blame` shows that of each line."""

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
    assertions: "tuple[FactChange, ...]" = ()
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
    replaced: "tuple[ReplacedStatement, ...]" = ()
    """Facts that this write ended."""
    contradicts: "tuple[ContradictingQuotes, ...]" = ()
    open_facts: "tuple[OpenFact, ...]" = ()
    """Other facts about the subject that still hold."""
    similar: tuple[str, ...] = ()
    """Addresses of pages that may be about the same thing."""
    still_says: "tuple[OldLine, ...]" = ()
    """Lines of pages that still have the value of a replaced fact."""
    hint: str = ""


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

    Lines are numbered as in facts and search results, from the first line of the truth or of the timeline. Without
    a part, they are those of the truth followed by the timeline.
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

    def add_facts(tx: "Transaction", page_id: int, page: Page, now: str) -> bool:
        if not assertions:
            return False
        from quaid.operations import facts

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
    brain: Brain, saved: "SaveResult", changes: "list[FactChange] | None" = None, *, similar: bool = False
) -> "Receipt":
    """Return the receipt of a write (see facts.receipt); an empty one if the page is unchanged."""
    from quaid.operations import facts  # imported late, because it is not needed to read pages

    if not saved.changed:
        return facts.Receipt()
    return facts.receipt(brain, [saved.id], changes or (), similar=[saved.id] if similar else ())


PUT_PARTS = ("compiled_truth", "append", "timeline_append", "frontmatter")


def _check_put_parts(content: str | None, parts: tuple[Any, ...], assertions: list[Any] | None) -> None:
    """Raise InvalidArgument unless a put has either the whole page or parts of it."""
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
    """Return the page that text search finds first, if it is one of `slugs` and the answer is strong."""
    from quaid.search.answer import build_answer
    from quaid.search.candidates import WORDS_ONLY, rank_question

    ranked = rank_question(brain.db, WORDS_ONLY, question, now=brain.now())
    answer = build_answer(brain.db, ranked, limit=1, depth="summary")
    first = answer.results[0].slug if answer.results else None
    return first if answer.strength == "strong" and first in slugs else None


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
    """The tag that the caller asked to remove. `changed` is True if the page had it."""
    collection: str = "default"


class TimelineRecord(NamedTuple):
    slug: str
    version: int
    entries: tuple[EntryInput, ...]
    total: int
    collection: str = "default"


class TimelineAddRecord(NamedTuple):
    slug: str
    version: int
    added: bool
    entry: EntryInput
    collection: str = "default"
    contradicts: "tuple[ContradictingQuotes, ...]" = ()
    open_facts: "tuple[OpenFact, ...]" = ()
    """Facts about the page that still hold."""


class RawRecord(NamedTuple):
    slug: str
    version: int
    written: bool
    data: tuple[pages.RawData, ...]
    collection: str = "default"


@op("read", command="tags", examples=("quaid tags people/alice",))
def tags_(brain: Brain, slug: Slug) -> TagsRecord:
    """List the tags of a page."""
    stored = require_page(brain, slug)
    return TagsRecord(stored.slug, stored.version, False, stored.tags, None, stored.collection)


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
    from quaid.storage import page_edits

    now = brain.now()

    def work(tx: "Transaction") -> int:
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
