"""Versions of a page: list, compare and revert."""

from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound
from quaid.folders import indexer
from quaid.formats import markdown
from quaid.model import dates, page as page_model, timeline
from quaid.model.page import Page
from quaid.operations import pages
from quaid.operations.pages import Slug
from quaid.operations.registry import Arg, op
from quaid.storage import collections, history as store
from quaid.storage.history import PageVersion
from quaid.storage.pages import PageRow

VersionOrigin = Literal["edit", "sync", "import", "made"]


class VersionRecord(NamedTuple):
    version: int
    since: str
    """When this version began."""
    size: int
    by: VersionOrigin
    """How the version was created."""
    is_present: bool


class HistoryRecord(NamedTuple):
    slug: str
    version: int
    versions: tuple[VersionRecord, ...]
    """Newest first."""


class RevertRecord(NamedTuple):
    slug: str
    version: int
    changed: bool
    to: int
    path: str | None
    """The file that was written, if the page has one."""
    timeline_removed: tuple[str, ...] = ()
    """Entries removed by the revert. The version before this one still has them."""


class DiffRecord(NamedTuple):
    slug: str
    from_version: int
    from_since: str
    to_version: int
    to_since: str
    diff: str
    same_text: bool
    """True if the texts are equal. The bytes may still differ, for example in line endings."""
    older: str | None
    """Why the diff starts later than requested, or None."""


class _VersionText(NamedTuple):
    """A version and the row with its content, or None if the page row has it."""

    told: VersionRecord
    row: PageVersion | None


@op("read", examples=("quaid history people/alice",))
def history(brain: Brain, slug: Slug) -> HistoryRecord:
    """List the versions of a page that are kept: the last 10 of 90 days."""
    with brain.db.reading():
        stored = pages.require_page(brain, slug)
        found = _versions(brain, stored)
    return HistoryRecord(stored.slug, stored.version, tuple(each.told for each in found))


@op("write", examples=("quaid revert people/alice --to 3",))
def revert(
    brain: Brain,
    slug: Slug,
    to: Annotated[int, Arg("The version to bring back, as `history` lists it.", minimum=1)],
    expected_version: pages.PageVersion = None,
) -> RevertRecord:
    """Bring an earlier version of a page back, as a new version. A page with a file gets the very bytes back."""
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

    saved, new = pages.edit_page(brain, slug, expected_version, change, exact=lambda: brought[-1])
    known = collections.file_of_page(brain.db, saved.id)
    path = known.path if known else None
    return RevertRecord(new.slug, saved.version, saved.changed, to, path, tuple(removed))


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
    since: Annotated[str | None, Arg("From what it said when this day began, YYYY-MM-DD.")] = None,
    from_: Annotated[int | None, Arg("From this version [the one before].", minimum=1)] = None,
    to: Annotated[int | None, Arg("To this version [the present one].", minimum=1)] = None,
) -> DiffRecord:
    """Show what changed in a page, as a unified diff: since its last version, another one, or a day."""
    if since is not None and from_ is not None:
        raise InvalidArgument(name="since", problem="says where to begin, and so does --from; choose one")
    day = dates.check_date(since, "since") if since is not None else None
    with brain.db.reading():
        stored = pages.require_page(brain, slug)
        found = _versions(brain, stored)
        new = found[0] if to is None else _find_version(found, to)
        older = None
        if day is not None:
            old, older = _version_on(found, day)
        elif from_ is not None:
            old = _find_version(found, from_)
        else:
            at = found.index(new)
            old = found[min(at + 1, len(found) - 1)]
            older = None if old is not new else "no earlier version is kept"
        before, after = _text_of_version(brain, stored, old), _text_of_version(brain, stored, new)
    lines = _unified_diff(before, after, old.told, new.told)
    return DiffRecord(
        *(stored.slug, old.told.version, old.told.since, new.told.version, new.told.since),
        *(lines, not lines, older),
    )


def _versions(brain: Brain, stored: PageRow) -> list[_VersionText]:
    """Return the versions of a page without duplicates, the current one first."""
    rows = store.versions_of_page(brain.db, stored.id)
    collection = collections.require(brain.db, stored.collection)
    told = (
        _versions_of_file(rows, stored)
        if collection.root is not None
        else _versions_of_database(rows, stored)
    )
    present, *others = told if collection.root is not None else _without_repeats(brain, stored, told)
    seen = {present.told.version}
    kept = [present]
    for each in others:
        if each.told.version not in seen:
            seen.add(each.told.version)
            kept.append(each)
    return kept


def _versions_of_file(rows: list[PageVersion], stored: PageRow) -> list[_VersionText]:
    """Return the versions of a page with a file. Bytes are stored when read, so each row starts a version."""
    active = next((row for row in rows if row.is_present), None)
    since = stored.updated_at if active is None else active.created_at
    by: VersionOrigin = "made" if active is None else _origin(active.batch)
    size = _size(stored) if active is None else active.size
    found = [_VersionText(VersionRecord(stored.version, since, size, by, True), active)]
    for row in rows:
        if row is not active and row.version is not None:
            found.append(
                _VersionText(
                    VersionRecord(row.version, row.created_at, row.size, _origin(row.batch), False), row
                )
            )
    return found


def _versions_of_database(rows: list[PageVersion], stored: PageRow) -> list[_VersionText]:
    """Return the versions of a page without a file. Text is stored when replaced, so each row, except
    imported ones, ends a version.
    """
    found: list[_VersionText] = []
    texts: list[PageVersion | None] = [None, *(row for row in rows if row.version is not None)]
    for place, row in enumerate(texts):
        before = texts[place + 1] if place + 1 < len(texts) else None
        if row is not None and _origin(row.batch) == "import":
            before = row
        by: VersionOrigin = "made" if before is None else _origin(before.batch)
        since = stored.created_at if before is None else before.created_at
        version, size = (stored.version, _size(stored)) if row is None else (row.version or 0, row.size)
        found.append(_VersionText(VersionRecord(version, since, size, by, row is None), row))
    return found


def _without_repeats(brain: Brain, stored: PageRow, found: list[_VersionText]) -> list[_VersionText]:
    """Drop an imported text that is equal to the next version.

    The version also increases when facts, links or tags are added. The text of that version is stored, or
    is the current one, and shows that the import created it, so the import's own row would be a duplicate.
    """
    kept = found[:1]
    for newer, each in pairwise(found):
        is_import = each.row is not None and _origin(each.row.batch) == "import"
        if not is_import or _content(brain, stored, each) != _content(brain, stored, newer):
            kept.append(each)
    return kept


def _content(brain: Brain, stored: PageRow, each: _VersionText) -> tuple[object, ...]:
    """Return the parsed content of a version, regardless of how its bytes are formatted."""
    if each.row is None:
        return stored.frontmatter, stored.truth.strip(), stored.timeline.strip()
    made = _page_of_version(stored, each.row.path, store.version_bytes(brain.db, each.row.id))
    return made.frontmatter, made.truth.strip(), made.timeline.strip()


def _origin(batch: str) -> VersionOrigin:
    return "edit" if batch.startswith("edit-") else "sync" if batch.startswith("sync-") else "import"


def _size(stored: PageRow) -> int:
    return len(markdown.render(stored.frontmatter, stored.truth, stored.timeline).encode())


def _find_version(found: list[_VersionText], version: int) -> _VersionText:
    for each in found:
        if each.told.version == version:
            return each
    known = ", ".join(str(each.told.version) for each in found)
    raise NotFound(what="version", name=version, hint=f" There is: {known}.")


def _version_on(found: list[_VersionText], day: str) -> tuple[_VersionText, str | None]:
    """Return the version at the start of a day, and a note if no version is that old."""
    for each in found:
        if each.told.since < day:
            return each, None
    oldest = found[-1]
    return oldest, f"what is kept begins on {oldest.told.since[:10]}"


def texts_at(brain: Brain, stored: PageRow, time: str) -> list[tuple[int | None, Page | PageRow]]:
    """Return the texts of a page at a time, each with its version, or None for the current one.

    Times have a resolution of one second: if the text changed within that second, the previous text is
    returned too. Return [] if no version of that time is kept.
    """
    found: list[tuple[int | None, Page | PageRow]] = []
    for each in _versions(brain, stored):
        since = _start_of(each, stored)
        if since is None or since > time:
            continue
        if each.row is None or each.told.is_present:
            found.append((None, stored))
        else:
            data = store.version_bytes(brain.db, each.row.id)
            found.append((each.told.version, _page_of_version(stored, each.row.path, data)))
        if since < time:
            break
    return found


def _start_of(each: _VersionText, stored: PageRow) -> str | None:
    """Return when a version began, or None if that is unknown because earlier versions were pruned."""
    if each.told.is_present:
        return max(each.told.since, stored.truth_updated_at, stored.timeline_updated_at)
    is_first = each.told.since == stored.created_at and each.told.by == "made"
    if not is_first or each.told.version == 1:
        return each.told.since
    forgotten = dates.shift_date(stored.updated_at[:10], -store.HISTORY_DAYS) > stored.created_at[:10]
    return None if forgotten or stored.version > store.MOST_VERSIONS else each.told.since


def _page_of_version(old: PageRow, path: str, data: bytes) -> Page:
    """Parse the bytes of an earlier version as a page with the current slug."""
    if indexer.is_org(path):
        return indexer.with_slug(indexer.parse_file(path, data).page, old.slug)
    document = markdown.parse(markdown.decode(data).text)
    return page_model.build_page(
        old.slug, document.frontmatter, document.truth, document.timeline, fallback_title=old.title
    )


def _text_of_version(brain: Brain, stored: PageRow, each: _VersionText) -> str:
    if each.row is None:
        return markdown.render(stored.frontmatter, stored.truth, stored.timeline)
    return markdown.decode(store.version_bytes(brain.db, each.row.id)).text


def _unified_diff(old: str, new: str, before: VersionRecord, after: VersionRecord) -> str:
    from difflib import unified_diff

    lines = unified_diff(
        old.splitlines(),
        new.splitlines(),
        f"version {before.version}",
        f"version {after.version}",
        before.since,
        after.since,
        lineterm="",
    )
    return "\n".join(lines)
