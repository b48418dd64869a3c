"""Versions of a page: list, compare and revert them, and show the author of each line."""

from collections.abc import Iterator
from difflib import SequenceMatcher, unified_diff
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound
from quaid.folders import indexer
from quaid.formats import markdown
from quaid.model import dates, timeline
from quaid.model.page import CLASSES, IMPORTED, PERSON, Page, TrustName
from quaid.operations import page_changes, pages
from quaid.operations.pages import Slug
from quaid.operations.registry import Arg, op
from quaid.storage import collections, expiry, history as store, pages as page_store, trust
from quaid.storage.agents import AgentCalls
from quaid.storage.collections import Collections
from quaid.storage.facts import PastTexts
from quaid.storage.history import PageVersion, VersionAuthor
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Transaction

VersionOrigin = Literal["edit", "sync", "import", "made"]


class VersionRecord(NamedTuple):
    version: int
    since: str
    """The time when this version was created."""
    size: int
    by: VersionOrigin
    """The kind of write that created the version."""
    is_present: bool
    author: str = ""
    """The client that wrote the version, "owner", "sync", "import", or "" if unknown."""
    source: str = ""
    """The source of an ingested version, the path of the file of a synced or imported version, or ""."""
    agent: str = ""
    """The program that wrote the version; "" for a person."""
    device: str = ""
    """The device on which it was written, or "" if unknown."""
    base: int | None = None
    """The version that the author changed; 0 for a new page, None if unknown."""
    session: str = ""
    """The session of the agent that wrote it, as listed by `quaid activity`, or ""."""
    trust: TrustName = "person"
    """The trust class of the lines that the version added."""


class HistoryRecord(NamedTuple):
    slug: str
    version: int
    versions: tuple[VersionRecord, ...]
    """The versions, newest first."""


class RevertRecord(NamedTuple):
    slug: str
    version: int
    changed: bool
    to: int
    path: str | None
    """Path of the page's file, or None if the page has no file."""
    timeline_removed: tuple[str, ...] = ()
    """Timeline entries removed by the revert. The previous version still has them."""
    collection: str = "default"


class DiffRecord(NamedTuple):
    slug: str
    from_version: int
    from_since: str
    to_version: int
    to_since: str
    diff: str
    same_text: bool
    """True if both versions have the same text. The bytes may still differ, for example in line endings."""
    older: str | None
    """Why the diff starts later than requested, or None."""
    collection: str = "default"


class _VersionText(NamedTuple):
    """A version, and the row of raw_imports with its content, or None if the content is in the table `pages`."""

    record: VersionRecord
    row: PageVersion | None


@op("read", examples=("quaid history people/alice",))
def history(brain: Brain, slug: Slug) -> HistoryRecord:
    """List the stored versions of a page: the last 10 within 90 days."""
    with brain.db.reading():
        stored = pages.require_page(brain, slug)
        versions = _versions(brain, stored)
        by_version = AgentCalls(brain.db).sessions_of_page(stored.id)
    # Versions with equal text share one stored row, which has the number of the last of them or, for a page with a
    # file, of the first.
    records = []
    for version, older in zip(versions, [*versions[1:], None], strict=True):
        first = _first_version(version, older)
        last = version.record.version
        sessions = [by_version[number] for number in sorted(by_version) if first <= number <= last]
        records.append(version.record._replace(session=sessions[0] if sessions else ""))
    return HistoryRecord(stored.slug, stored.version, tuple(records))


class BlameLine(NamedTuple):
    line: int
    text: str
    version: int | None
    """The version in which the line appeared, or None if it is older than the stored history."""
    author: str
    source: str
    since: str | None
    agent: str = ""
    device: str = ""
    trust: TrustName = "person"


class BlameRecord(NamedTuple):
    slug: str
    version: int
    lines: tuple[BlameLine, ...]
    oldest_version: int
    """The oldest stored version. Unless it is the first of the page, the version of its lines is unknown."""


@op("read", examples=("quaid blame people/alice",))
def blame(brain: Brain, slug: Slug) -> BlameRecord:
    """Show who wrote each line of a page: version, author, source, date and trust class."""
    with brain.db.reading():
        stored = pages.require_page(brain, slug)
        classes = trust.of_page(brain.db, stored.id)
        versions = _versions(brain, stored)
        texts = [_text_of_version(brain, stored, version).splitlines() for version in reversed(versions)]
    oldest = versions[-1]
    is_first = oldest.record.version == 1 or (
        oldest.record.by in ("made", "import") and _start_of(oldest, stored) is not None
    )
    # Versions that only added facts or links share one stored text, recorded under the last of them.
    first_versions = {
        version.record.version: _first_version(version, older)
        for version, older in zip(versions, [*versions[1:], None], strict=True)
    }
    origins: list[_VersionText | None] = [oldest if is_first else None] * len(texts[0])
    for version, before, after in zip(reversed(versions[:-1]), texts, texts[1:], strict=False):
        origins = _line_origins(origins, before, after, version)
    lines = []
    front = texts[-1].index("---", 1) + 1 if texts[-1][:1] == ["---"] and "---" in texts[-1][1:] else 0
    for number, (text, origin) in enumerate(zip(texts[-1], origins, strict=True), 1):
        if origin is None:
            unknown = CLASSES[classes.of_line(text)]
            lines.append(BlameLine(number, text, None, "", "", None, trust=unknown))
            continue
        record = origin.record
        entry = timeline.parse(text)
        source = (entry[0].source if entry else "") or record.source
        version_number = first_versions[record.version]
        lines.append(
            BlameLine(
                *(
                    number,
                    text,
                    version_number,
                    record.author,
                    source,
                    record.since,
                    record.agent,
                    record.device,
                    # Front matter has no trust classes per line.
                    record.trust if number <= front else CLASSES[classes.of_line(text)],
                )
            )
        )
    return BlameRecord(stored.slug, stored.version, tuple(lines), oldest.record.version)


def _first_version(version: "_VersionText", older: "_VersionText | None") -> int:
    """Return the first version that has the text of a stored version. `older` is the stored version before it."""
    is_file = version.record.by in ("sync", "import") or (
        version.row is not None and version.record.is_present
    )
    if is_file and version.row is not None and version.row.version is not None:
        return version.row.version  # the bytes of a file are stored when they are read
    return older.record.version + 1 if older else 1


def _line_origins(
    origins: "list[_VersionText | None]", before: list[str], after: list[str], version: "_VersionText"
) -> "list[_VersionText | None]":
    """Return the version that added each line of `after`, or None if unknown. Lines of `before` keep their
    version.
    """
    result: list[_VersionText | None] = [version] * len(after)
    for start, new_start, size in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        result[new_start : new_start + size] = origins[start : start + size]
    return result


class AcceptRecord(NamedTuple):
    slug: str
    version: int
    before: TrustName
    """The lowest trust class among the lines before they were accepted."""
    lines: int
    """The number of lines that had another trust class than person."""
    collection: str = "default"


@op("owner", examples=("quaid accept people/alice",))
def accept(brain: Brain, slug: Slug) -> AcceptRecord:
    """Accept a page as your own words: its lines and facts get the trust class person.

    Read it first: `quaid blame` shows what agents, imports and web pages have written. History and blame still
    name them as authors."""

    def work(tx: Transaction) -> PageRow:
        stored = pages.require_page(brain, slug)
        trust.accept(tx, stored.id)
        return stored

    before = trust.of_page(brain.db, pages.require_page(brain, slug).id)
    stored = brain.db.write(work)
    text = f"{stored.truth}\n{stored.timeline}".splitlines()
    lines = sum(1 for line in text if line.strip() and before.of_line(line) != PERSON)
    return AcceptRecord(stored.slug, stored.version, CLASSES[before.lowest], lines, stored.collection)


@op("write", examples=("quaid revert people/alice --to 3",))
def revert(
    brain: Brain,
    slug: Slug,
    to: Annotated[int, Arg("The version to restore, as listed by `quaid history`.", minimum=1)],
    expected_version: pages.PageVersion = None,
) -> RevertRecord:
    """Restore an earlier version of a page as a new version. The file of a page is restored byte for byte."""
    brought: list[bytes | None] = []
    removed: list[str] = []

    def change(old: PageRow | None) -> Page:
        assert old is not None
        chosen = _find_version(_versions(brain, old), to)
        row = chosen.row
        brought.append(None if row is None else store.version_bytes(brain.db, row.id))
        if row is None or brought[-1] is None:
            return pages.rebuild_page(old)
        earlier = _page_of_version(old, row.path, brought[-1])
        removed[:] = timeline.describe_entries(timeline.missing_entries(old.timeline, earlier.timeline))
        return earlier

    saved, new, collection = page_changes.edit_page(
        brain, slug, expected_version, change, exact=lambda: brought[-1]
    )
    file, _ = collections.file_of_page(brain.db, saved.id)
    path = file.path if file else None
    return RevertRecord(*(new.slug, saved.version, saved.changed, to, path, tuple(removed), collection))


@op(
    "read",
    examples=(
        "quaid diff people/alice",
        "quaid diff people/alice --since 2026-04-01",
        "quaid diff people/alice --from 3 --to 5",
    ),
)
def diff(
    brain: Brain,
    slug: Slug,
    since: Annotated[str | None, Arg("From the version at the start of this day, YYYY-MM-DD.")] = None,
    from_: Annotated[int | None, Arg("From this version [the previous one].", minimum=1)] = None,
    to: Annotated[int | None, Arg("To this version [the current one].", minimum=1)] = None,
) -> DiffRecord:
    """Show the changes of a page as a unified diff, since its previous version, another version or a day."""
    if since is not None and from_ is not None:
        raise InvalidArgument(name="since", problem="cannot be combined with --from")
    day = dates.check_date(since, "since") if since is not None else None
    with brain.db.reading():
        stored = pages.require_page(brain, slug)
        versions = _versions(brain, stored)
        new = versions[0] if to is None else _find_version(versions, to)
        older = None
        if day is not None:
            old = next((version for version in versions if version.record.since < day), versions[-1])
            if old.record.since >= day:
                older = f"the oldest stored version is of {old.record.since[:10]}"
        elif from_ is not None:
            old = _find_version(versions, from_)
        else:
            old = versions[min(versions.index(new) + 1, len(versions) - 1)]
            older = None if old is not new else "no earlier version is stored"
        before, after = _text_of_version(brain, stored, old), _text_of_version(brain, stored, new)
    lines = "\n".join(
        unified_diff(
            *(before.splitlines(), after.splitlines()),
            *(f"version {old.record.version}", f"version {new.record.version}"),
            *(old.record.since, new.record.since),
            lineterm="",
        )
    )
    return DiffRecord(
        *(stored.slug, old.record.version, old.record.since, new.record.version, new.record.since),
        *(lines, not lines, older, stored.collection),
    )


class VersionChange(NamedTuple):
    """The change that one version made to a page."""

    before: int | None
    """The stored version before it, or None."""
    is_present: bool
    """True if its text is the current text of the page."""
    diff: str


def change_of_version(brain: Brain, slug: str, first: int, with_diff: bool) -> VersionChange:
    """Return the change that version `first` made to the text of a page.

    The diff is "" unless `with_diff` is set and the text is stored.
    """
    stored = pages.require_page(brain, slug)
    versions = _versions(brain, stored)
    after = next((version for version in reversed(versions) if version.record.version >= first), None)
    before = next((version for version in versions if version.record.version < first), None)
    diff = ""
    if with_diff and after is not None and (before is not None or first == 1):
        old = _text_of_version(brain, stored, before) if before else ""
        lines = unified_diff(
            *(old.splitlines(), _text_of_version(brain, stored, after).splitlines()),
            "before",
            "after",
            lineterm="",
        )
        diff = "\n".join(lines)
    is_present = after is not None and after.record.is_present
    return VersionChange(before.record.version if before else None, is_present, diff)


def _versions(brain: Brain, stored: PageRow) -> list[_VersionText]:
    """Return the versions of a page without duplicates, starting with the current version."""
    rows = store.versions_of_page(brain.db, stored.id)
    collection = Collections(brain.db).require(stored.collection)
    if collection.root is not None:
        versions = _versions_of_file(rows, stored)
    else:
        versions = _without_repeats(brain, stored, _versions_of_database(rows, stored))
    first: dict[int, _VersionText] = {}
    for version in versions:
        first.setdefault(version.record.version, version)
    authors = store.page_authors(brain.db, stored.id)
    return [_with_author(version, authors, collection.kind == "documents") for version in first.values()]


def _with_author(version: _VersionText, authors: list[VersionAuthor], is_document: bool) -> _VersionText:
    """Return a version with its author, device, base and source.

    A new version number is also assigned when only facts are added. The author of a text is therefore the
    last author recorded up to its version. A text read from a file has an author only if a client wrote
    exactly that version of the file.
    """
    record = version.record
    is_file = record.by in ("sync", "import") and not record.source.startswith(store.INGESTED_PREFIX)
    is_document = is_document or record.by == "import"
    number = (version.row.version if version.row and is_file else None) or record.version
    match = next(
        (row for row in authors if row.version == number or (row.version < number and not is_file)), None
    )
    if match:
        record = record._replace(
            **{name: getattr(match, name) for name in ("author", "source", "agent", "device")},
            base=match.base_version,
            trust=CLASSES[match.trust],
        )
    elif is_file:
        record = record._replace(author=str(record.by), trust=CLASSES[IMPORTED if is_document else PERSON])
    else:
        record = record._replace(author="", source="")
    return version._replace(record=record)


def _versions_of_file(rows: list[PageVersion], stored: PageRow) -> list[_VersionText]:
    """Return the versions of a page with a file.

    The bytes of a file are stored when it is read, so each stored row marks the start of a version.
    """
    active = next((row for row in rows if row.is_present), None)
    since = stored.updated_at if active is None else active.created_at
    by: VersionOrigin = "made" if active is None else _origin(active.batch)
    size, path = (_size(stored), "") if active is None else (active.size, active.path)
    versions = [_VersionText(VersionRecord(stored.version, since, size, by, True, source=path), active)]
    for row in rows:
        if row is not active and row.version is not None:
            origin = _origin(row.batch)
            record = VersionRecord(row.version, row.created_at, row.size, origin, False, source=row.path)
            versions.append(_VersionText(record, row))
    return versions


def _versions_of_database(rows: list[PageVersion], stored: PageRow) -> list[_VersionText]:
    """Return the versions of a page without a file.

    The text of a page is stored when it is replaced, so each stored row marks the end of a version, except
    rows of imports.
    """
    versions: list[_VersionText] = []
    texts: list[PageVersion | None] = [None, *(row for row in rows if row.version is not None)]
    for place, row in enumerate(texts):
        before = texts[place + 1] if place + 1 < len(texts) else None
        if row is not None and _origin(row.batch) == "import":
            before = row
        by: VersionOrigin = "made" if before is None else _origin(before.batch)
        since = stored.created_at if before is None else before.created_at
        version, size = (stored.version, _size(stored)) if row is None else (row.version or 0, row.size)
        path = before.path if before is not None and by == "import" else ""
        versions.append(_VersionText(VersionRecord(version, since, size, by, row is None, source=path), row))
    return versions


def _without_repeats(brain: Brain, stored: PageRow, versions: list[_VersionText]) -> list[_VersionText]:
    """Drop an imported version that has the same content as the next newer version.

    The version number also increases when only facts, links or tags are added. The newer version then has the
    imported content and is shown as created by the import, so the row of the import would be a duplicate.
    """
    distinct = versions[:1]
    for newer, version in pairwise(versions):
        is_import = version.row is not None and _origin(version.row.batch) == "import"
        if not is_import or _content(brain, stored, version) != _content(brain, stored, newer):
            distinct.append(version)
    return distinct


def _content(brain: Brain, stored: PageRow, version: _VersionText) -> tuple[object, ...]:
    """Return the parsed content of a version, regardless of how its bytes are formatted."""
    if version.row is None:
        return stored.frontmatter, stored.truth.strip(), stored.timeline.strip()
    made = _page_of_version(stored, version.row.path, _visible_bytes(brain, stored, version.row.id))
    return made.frontmatter, made.truth.strip(), made.timeline.strip()


def _origin(batch: str) -> VersionOrigin:
    return "edit" if batch.startswith("edit-") else "sync" if batch.startswith("sync-") else "import"


def _size(stored: PageRow) -> int:
    return len(markdown.render(stored.frontmatter, stored.truth, stored.timeline).encode())


def _find_version(versions: list[_VersionText], number: int) -> _VersionText:
    by_number = {version.record.version: version for version in versions}
    if number not in by_number:
        hint = f"Stored versions: {', '.join(map(str, by_number))}."
        if number < max(by_number):
            hint += " A version that changed no text has the text of the next one and is not listed."
        raise NotFound(what="version", name=number, hint=hint)
    return by_number[number]


def texts_at(brain: Brain, stored: PageRow, time: str) -> list[tuple[int | None, Page | PageRow]]:
    """Return the versions of a page that were current at a time, as pairs of version and page.

    The version is None if it is still current. Times have a resolution of one second: if the page changed
    within that second, the previous version is returned too. Return [] if no version of that time is stored.
    """
    texts: list[tuple[int | None, Page | PageRow]] = []
    for version in _versions(brain, stored):
        since = _start_of(version, stored)
        if since is None or since > time:
            continue
        if version.row is None or version.record.is_present:
            texts.append((None, stored))
        else:
            data = _visible_bytes(brain, stored, version.row.id)
            texts.append((version.record.version, _page_of_version(stored, version.row.path, data)))
        if since < time:
            break
    return texts


def earlier_pages(brain: Brain, stored: PageRow) -> Iterator[Page]:
    """Yield the stored earlier versions of a page, newest first."""
    for version in _versions(brain, stored)[1:]:
        if version.row is not None:
            yield _page_of_version(stored, version.row.path, _visible_bytes(brain, stored, version.row.id))


def _start_of(version: _VersionText, stored: PageRow) -> str | None:
    """Return the time when a version was created; None if unknown, because earlier versions were pruned."""
    if version.record.is_present:
        return max(version.record.since, stored.truth_updated_at, stored.timeline_updated_at)
    is_first = version.record.since == stored.created_at and version.record.by == "made"
    if not is_first or version.record.version == 1:
        return version.record.since
    forgotten = dates.shift_date(stored.updated_at[:10], -store.HISTORY_DAYS) > stored.created_at[:10]
    return None if forgotten or stored.version > store.MOST_VERSIONS else version.record.since


def _page_of_version(old: PageRow, path: str, data: bytes) -> Page:
    """Parse the bytes of an earlier version as a page with the current slug."""
    if indexer.is_org(path):
        return indexer.with_slug(indexer.parse_file(path, data).page, old.slug)
    document = markdown.parse(markdown.decode(data)[0])
    return pages.rebuild_page(
        old, frontmatter=document.frontmatter, truth=document.truth, lines=document.timeline
    )


def _visible_bytes(brain: Brain, stored: PageRow, version_id: int) -> bytes:
    """Return the bytes of a version with its expired lines emptied."""
    data = store.version_bytes(brain.db, version_id)
    gone = expiry.expired_lines(brain.db, stored.id)
    if not gone and dates.EXPIRY_MARK.encode() not in data:
        return data
    text = dates.unexpired_text(data.decode("utf-8", "surrogateescape"), brain.clock, gone)
    return text.encode("utf-8", "surrogateescape")


def _text_of_version(brain: Brain, stored: PageRow, version: _VersionText) -> str:
    if version.row is None:
        return markdown.render(stored.frontmatter, stored.truth, stored.timeline)
    return markdown.decode(_visible_bytes(brain, stored, version.row.id))[0]


def past_texts(brain: Brain) -> PastTexts:
    """Return a function that yields the versions of a page's text at a given time."""

    def texts(slug: str, collection: str, time: str) -> Iterator[tuple[int | None, str, str]]:
        for version, page in texts_at(brain, page_store.require(brain.db, slug, collection), time):
            yield version, page.truth, page.timeline

    return texts
