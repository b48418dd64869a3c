"""Write pages: save, add in bulk, rename and merge them.

A save fails if the page has changed since the version that the author read. Rows derived from a page (tags,
timeline entries, names, links, full-text entries, chunks) are written in the same transaction. Bulk inserts
use one statement for many pages, because FTS5 flushes its pending terms before every statement that may be
rolled back, which would otherwise happen for each page.
"""

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid import errors
from quaid.model import dates
from quaid.model.links import GraphLink, join_spans
from quaid.model.page import DerivedData, LineTrust, derive_data
from quaid.model.slug import names_of
from quaid.model.timeline import summary_hash
from quaid.storage import as_json, chunks, history, links, questions, text_index, trust
from quaid.storage.pages import require_collection_id, slug_of
from quaid.storage.sqlite.connection import Transaction, next_row_id

if TYPE_CHECKING:
    from quaid.model.page import Page
    from quaid.storage.collections import Collection
    from quaid.storage.pages import PageRow

BULK_ROWS = 128
"""A bulk insert writes this many pages per INSERT statement. Larger batches save little time."""

BULK_BYTES = 2 * 1024 * 1024
"""A bulk insert is flushed when this many bytes of text are buffered."""

_BULK_COLUMNS = (
    "id, collection_id, slug, uuid, type, title, summary, wing, room, created_at, updated_at,"
    " truth_updated_at, timeline_updated_at, frontmatter, compiled_truth, timeline"
)
_BULK_ROW = f"({', '.join('?' * len(_BULK_COLUMNS.split(',')))})"


class NewPage(NamedTuple):
    page: "Page"
    uuid: str
    derived: DerivedData | None = None
    """Data derived from the page, if already computed."""


def add_pages(tx: Transaction, collection: "Collection", new: list[NewPage], now: str) -> list[int]:
    """Insert pages with unused slugs at version 1, without splitting them into chunks. Return their ids."""
    first = next_row_id(tx, "pages")
    numbered = [
        (page_id, entry.page, entry.derived or derive_data(entry.page))
        for page_id, entry in enumerate(new, first)
    ]
    values: list[Any] = []
    for (page_id, page, derived), entry in zip(numbered, new, strict=True):
        values += (page_id, collection.id, page.slug, entry.uuid, page.type, page.title, page.summary)
        values += (page.wing, page.room, now, now, now, now, derived.frontmatter, page.truth, page.timeline)
    if new:
        rows = ", ".join([_BULK_ROW] * len(new))
        tx.execute(f"INSERT INTO pages ({_BULK_COLUMNS}) VALUES {rows}", values)  # noqa: S608 (fixed parts)
    tx.executemany(
        "INSERT INTO tags (page_id, tag) VALUES (?, ?)",
        [(page_id, tag) for page_id, page, _ in numbered for tag in page.tags],
    )
    tx.executemany(
        "INSERT OR IGNORE INTO timeline_entries (page_id, date, source, summary, summary_hash, detail, line)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (page_id, date, source, summary, hash_, detail, line)
            for page_id, page, derived in numbered
            for (date, source, summary, detail, line, _), hash_ in zip(
                page.entries, derived.hashes, strict=True
            )
        ],
    )
    tx.executemany(
        "INSERT OR IGNORE INTO page_names (name, page_id, kind) VALUES (?, ?, ?)",
        [(name, page_id, kind) for page_id, _, derived in numbered for name, kind in derived.names],
    )
    links.resolve_again(tx, {name for _, _, derived in numbered for name, _ in derived.names})
    linking = [(page_id, page.slug, derived.references) for page_id, page, derived in numbered]
    links.add_from_texts(tx, [entry for entry in linking if entry[2]], collection.name, now)
    trust.set_of_new_pages(tx, [page_id for page_id, _, _ in numbered])
    for page_id, page, derived in numbered:
        index_moments(tx, page_id, page)
        if derived.is_unspaced:
            text_index.add_page(tx, page_id, page.title, page.slug, page.truth, page.timeline)
    return [page_id for page_id, _, _ in numbered]


class SaveResult(NamedTuple):
    """The result of saving a page."""

    id: int
    version: int
    created: bool
    changed: bool


class _ExistingPage(NamedTuple):
    """The columns of an existing page row that a save needs."""

    id: int
    version: int
    quarantined_at: str | None
    type: str
    title: str
    summary: str
    wing: str
    room: str
    frontmatter: str
    truth: str
    timeline: str
    truth_updated_at: str
    timeline_updated_at: str


def save(
    tx: Transaction,
    page: "Page",
    *,
    uuid: str,
    now: str,
    expected_version: int | None,
    collection: str = "default",
    cut: bool = True,
) -> SaveResult:
    """Save a page unless the stored page is identical and visible.

    `expected_version` is the version that the author read: 0 if the page must not exist yet, None to skip the check.
    Raise VersionConflict, PageExists or NoSuchVersion if it is not the current version, and PageMoved if the slug
    redirects to another page.
    With `cut=False` the page is left without chunks, which is faster for many pages; `chunks.cut_pages`
    makes the chunks afterwards.
    """
    collection_id = require_collection_id(tx, collection)
    present = _find_existing(tx, page.slug, collection_id)
    stored_version = present.version if present else 0
    visible_version = stored_version if present and present.quarantined_at is None else 0
    # A quarantined page counts as absent (version 0), but a sync that restores it passes its stored version.
    if expected_version not in (None, visible_version, stored_version):
        raise _version_conflict(page.slug, expected_version, visible_version)
    frontmatter = as_json(page.frontmatter)
    _check_right(tx, collection_id, present, page)
    if present is None:
        _refuse_moved(tx, page.slug, collection_id, expected_version)
        page_id = _insert(tx, page, frontmatter, uuid, now, collection_id)
        trust.set_of_new_pages(tx, [page_id])
        text = f"{page.truth}\n{page.timeline}"
        if lower := trust.of_new_lines(tx, page.frontmatter, "", text):
            trust.set_of_page(tx, page_id, LineTrust(tx.trust).lowered(text, lower))
        derive(tx, page_id, page, cut=cut)
        return SaveResult(page_id, 1, created=True, changed=True)
    if visible_version and _is_unchanged(present, page, frontmatter):
        return SaveResult(present.id, present.version, created=False, changed=False)
    _update_trust(tx, present, page)
    _update(tx, present, page, frontmatter, now)
    free_slug(tx, collection_id, page.slug)
    derive(tx, present.id, page, cut=cut)
    if not visible_version:
        _resolve_links_to(tx, present.id)
    return SaveResult(present.id, present.version + 1, created=not visible_version, changed=True)


def save_with_slug(
    tx: Transaction,
    collection: "Collection",
    page: "Page",
    page_id: int | None,
    *,
    uuid: str,
    now: str,
    left: str | None = None,
) -> SaveResult:
    """Save the page of a file, without chunks, under a slug that may differ from its previous slug.

    `left` is the slug that the page had before vacate_slug() gave it a temporary slug. It redirects to the
    page, unless another page has it now.
    """
    before = slug_of(tx, page_id)
    if page_id is not None and before is not None and before != page.slug:
        old = left or before
        is_taken = old != before and collection.slug_holder(tx, old) is not None
        change_slug(tx, collection.id, page_id, old, page.slug, now, redirect=not is_taken)
    free_slug(tx, collection.id, page.slug)
    saved = save(tx, page, uuid=uuid, now=now, expected_version=None, collection=collection.name, cut=False)
    if not saved.changed and before != page.slug:
        # The content is unchanged, but links to and from the page resolve differently under the new slug.
        derive(tx, saved.id, page, cut=False)
    return saved


def derive(
    tx: Transaction, page_id: int, page: "Page", quarantined: bool = False, *, cut: bool = True
) -> None:
    """Rebuild the rows derived from a page.

    The text of a quarantined page is not indexed or split into chunks. With `cut=False`, the chunks are
    deleted and made later.
    """
    tx.check_page(page_id)
    tx.execute("DELETE FROM tags WHERE page_id = ?", (page_id,))
    tx.executemany("INSERT INTO tags (page_id, tag) VALUES (?, ?)", [(page_id, tag) for tag in page.tags])
    tx.execute("DELETE FROM timeline_entries WHERE page_id = ?", (page_id,))
    tx.executemany(
        "INSERT OR IGNORE INTO timeline_entries (page_id, date, source, summary, summary_hash, detail, line)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (page_id, date, source, summary, summary_hash(summary), detail, line)
            for date, source, summary, detail, line, _ in page.entries
        ],
    )
    renamed = index_names(tx, page_id, page)
    links.derive(tx, page_id, page)
    if renamed:
        links.resolve_again(tx, renamed)
    tx.execute("DELETE FROM expirations WHERE page_id = ?", (page_id,))
    if not quarantined:
        index_moments(tx, page_id, page)
        text_index.index_page(tx, page_id, page.title, page.slug, page.truth, page.timeline)
        if cut:
            chunks.write(tx, page_id, page.title, page.truth, page.timeline)
        else:
            chunks.leave_uncut(tx, page_id)


def index_moments(tx: Transaction, page_id: int, page: "Page") -> None:
    """Store the times at which the page and its lines expire. Values that are not dates are ignored.

    Existing notes may use the same words for something else, such as the end of a contract or the expiry of a
    passport. Therefore dates before the page was first read are ignored, and in attached folders other than the
    notebook, expiry marks at the end of lines are ignored.
    """
    moment = dates.parse_moment(page.frontmatter.get(dates.EXPIRY_KEY))
    moments = {("page", moment)} if moment else set()
    for text in (page.truth, page.timeline):
        moments |= {("line", line.moment) for line in dates.expiring_lines(text)}
    if not moments:
        return
    row = tx.one(
        "SELECT p.created_at, c.root_path IS NOT NULL AND c.kind <> 'notebook' FROM pages AS p"
        " JOIN collections AS c ON c.id = p.collection_id WHERE p.id = ?",
        (page_id,),
    )
    first_read, is_own_folder = row or ("", 0)
    tx.executemany(
        "INSERT INTO expirations (page_id, kind, expires_at) VALUES (?, ?, ?)",
        [
            (page_id, kind, at)
            for kind, at in sorted(moments)
            if at >= first_read[: len(at)] and not (is_own_folder and kind == "line")
        ],
    )


def _resolve_links_to(tx: Transaction, page_id: int) -> None:
    """Resolve links to a page that has become visible again."""

    rows = tx.execute("SELECT name FROM page_names WHERE page_id = ?", (page_id,))
    links.resolve_again(tx, [str(name) for (name,) in rows])


def touch(
    tx: Transaction, slug: str, *, expected_version: int | None, now: str, collection: str = "default"
) -> tuple[int, int]:
    """Increment a page's version because related rows change. Return its id and new version."""
    present = _find_existing(tx, slug, require_collection_id(tx, collection))
    if present is None or present.quarantined_at is not None:
        raise errors.PageNotFound(slug=slug, hint="")
    if expected_version not in (None, present.version):
        raise _version_conflict(slug, expected_version, present.version)
    _check_right(tx, require_collection_id(tx, collection), present, None)
    tx.execute("UPDATE pages SET version = version + 1, updated_at = ? WHERE id = ?", (now, present.id))
    tx.written.append((present.id, present.version + 1, False))
    return present.id, present.version + 1


def require_write_right(tx: Transaction, collection_id: int, added: bool = False) -> None:
    """Raise SpaceRight if the pages belong to a shared space in which the member may not change them.

    `added` is True for a change that only adds content, which the right `append` allows. Changes by a member with the
    right `propose` become proposals on the hub. Collections with a folder are not checked, because their files can be
    edited outside Quaid; the hub refuses such changes.
    """
    if tx.replicating:
        return
    row = tx.one(
        "SELECT s.name, s.member_right FROM spaces AS s JOIN collections AS c ON c.id = s.collection_id"
        " WHERE s.collection_id = ? AND c.root_path IS NULL AND s.member_right IN ('read', 'append')",
        (collection_id,),
    )
    if row is not None and not (added and row[1] == "append"):
        raise errors.SpaceRight(space=row[0], right=row[1])


def _check_right(tx: Transaction, collection_id: int, old: _ExistingPage | None, new: "Page | None") -> None:
    """Raise SpaceRight if the member may not make this change. `new` is None for links, facts and raw data."""
    try:
        require_write_right(tx, collection_id)
    except errors.SpaceRight:
        added = old is None or new is None or old.quarantined_at is not None
        if not added and old is not None and new is not None:
            from quaid.model.bundle import Bundle
            from quaid.model.merge import is_addition  # imported late, because few collections are shared

            uuid = "00000000-0000-7000-8000-000000000000"
            before = Bundle(uuid, new.slug, json.loads(old.frontmatter), old.truth, old.timeline)
            added = is_addition(before, Bundle(uuid, new.slug, new.frontmatter, new.truth, new.timeline))
        require_write_right(tx, collection_id, added)


def _version_conflict(slug: str, expected: int | None, current: int) -> errors.QuaidError:
    """Return the error for a page that is not at the expected version; `current` is 0 if it is missing."""
    if not current:
        kind: type[errors.QuaidError] = errors.NoSuchVersion
    elif expected:
        kind = errors.VersionConflict
    else:
        kind = errors.PageExists
    return kind(slug=slug, expected=expected, current_version=current)


def _find_existing(tx: Transaction, slug: str, collection_id: int) -> _ExistingPage | None:
    row = tx.execute(
        "SELECT id, version, quarantined_at, type, title, summary, wing, room, frontmatter, compiled_truth,"
        " timeline, truth_updated_at, timeline_updated_at FROM pages WHERE collection_id = ? AND slug = ?",
        (collection_id, slug),
    ).fetchone()
    return None if row is None else _ExistingPage(*row)


def _refuse_moved(tx: Transaction, slug: str, collection_id: int, expected: int | None) -> None:
    """Raise PageMoved if the slug redirects to a visible page. Delete the redirect if it leads to a hidden page."""
    for target, version, hidden in tx.execute(
        "SELECT p.slug, p.version, p.quarantined_at IS NOT NULL FROM redirects AS r"
        " JOIN pages AS p ON p.id = r.page_id WHERE r.collection_id = ? AND r.slug = ?",
        (collection_id, slug),
    ).fetchall():
        if not hidden:
            raise errors.PageMoved(slug=slug, target=target, expected=expected, current_version=version)

        free_slug(tx, collection_id, slug)


def _is_unchanged(present: _ExistingPage, page: "Page", frontmatter: str) -> bool:
    now = (page.type, page.title, page.summary, page.wing, page.room, frontmatter, page.truth, page.timeline)
    return present[3:11] == now


def _insert(tx: Transaction, page: "Page", frontmatter: str, uuid: str, now: str, collection_id: int) -> int:
    tx.execute(
        "INSERT INTO pages (collection_id, slug, uuid, type, title, summary, wing, room, created_at,"
        " updated_at, truth_updated_at, timeline_updated_at, frontmatter, compiled_truth, timeline)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            collection_id,
            page.slug,
            uuid,
            *(page.type, page.title, page.summary, page.wing, page.room),
            *(now, now, now, now),
            *(frontmatter, page.truth, page.timeline),
        ),
    )
    return tx.last_insert_rowid()


def _update(tx: Transaction, present: _ExistingPage, page: "Page", frontmatter: str, now: str) -> None:
    tx.execute(
        "UPDATE pages SET type = ?, title = ?, summary = ?, wing = ?, room = ?, updated_at = ?,"
        " truth_updated_at = ?, timeline_updated_at = ?, frontmatter = ?, compiled_truth = ?, timeline = ?,"
        " version = version + 1, quarantined_at = NULL WHERE id = ?",
        (
            *(page.type, page.title, page.summary, page.wing, page.room, now),
            now if page.truth != present.truth else present.truth_updated_at,
            now if page.timeline != present.timeline else present.timeline_updated_at,
            *(frontmatter, page.truth, page.timeline),
            present.id,
        ),
    )


def _update_trust(tx: Transaction, present: _ExistingPage, page: "Page") -> None:
    """Set the trust class of the new lines of a page to that of this write, or lower if they repeat or cite web text.

    Raise TextOfPerson if the write changes text that only a person may change.
    """
    old, new = (f"{text.truth}\n{text.timeline}" for text in (present, page))
    trust.guard_lines(tx, present.id, old, new)
    trust.guard_front(tx, present.id, json.loads(present.frontmatter), page.frontmatter)
    before = trust.of_page(tx, present.id)
    after = before.after_write(old, new, tx.trust)
    if (after := after.lowered(new, trust.of_new_lines(tx, page.frontmatter, old, new))) != before:
        trust.set_of_page(tx, present.id, after)


def set_created(tx: Transaction, page_id: int, created_at: str) -> None:
    """Set the creation time of a page to that recorded by another program, if it is earlier."""
    tx.execute("UPDATE pages SET created_at = min(created_at, ?) WHERE id = ?", (created_at, page_id))


def free_slug(tx: Transaction, collection_id: int, slug: str) -> None:
    """Delete redirects from a slug that a page will use, and remove the slug from the names of their targets."""
    rows: list[tuple[Any, ...]] = tx.execute(
        "DELETE FROM redirects WHERE collection_id = ? AND slug = ? RETURNING page_id", (collection_id, slug)
    ).fetchall()
    for (former,) in rows:
        links.resolve_again(tx, drop_redirect_names(tx, former))


def change_slug(
    tx: Transaction,
    collection_id: int,
    page_id: int,
    old: str,
    new: str,
    now: str,
    *,
    redirect: bool = True,
) -> None:
    """Change the slug of a page to an unused slug and, with `redirect`, redirect the old slug to the page.

    The caller saves the page's text and names afterwards.
    """
    free_slug(tx, collection_id, new)
    tx.execute("UPDATE pages SET slug = ? WHERE id = ?", (new, page_id))
    tx.execute("UPDATE knowledge_gaps SET resolved_by_slug = ? WHERE resolved_by_slug = ?", (new, old))

    if redirect and not is_vacated_slug(old, page_id):
        links.add_redirect(tx, collection_id, old, page_id, now)
    # A link without a folder resolves to the nearest page, which may change when its source or target is moved.
    near = "SELECT name FROM page_names WHERE page_id = ?1 UNION SELECT target_key FROM links WHERE from_page_id = ?1"
    links.resolve_again(tx, [name for (name,) in tx.execute(near, (page_id,)) if name is not None])


def vacate_slug(tx: Transaction, page_id: int) -> None:
    """Give a page a temporary slug so that another page can take its slug.

    The caller sets a new slug later, for a hidden page when it becomes visible again.
    """
    tx.execute("UPDATE pages SET slug = 'moving-' || id || '-' || version WHERE id = ?", (page_id,))


def is_vacated_slug(slug: str, page_id: int) -> bool:
    """Return True if a slug is a temporary slug set by `vacate_slug`."""
    return slug.startswith(f"moving-{page_id}-")


class MergedRows(NamedTuple):
    """Numbers of rows moved or changed by a merge."""

    links: int
    """Number of explicitly added links that were moved to the kept page."""
    links_joined: int
    """Number of links deleted because they overlapped in time with a link of the same pages and relationship."""
    links_between: int
    """Number of explicitly added links between the two pages. These links were deleted."""
    links_in_texts: int
    """Number of links to the removed page in the text of other pages."""
    assertions: int
    assertions_same: int
    """Number of facts that the kept page already had."""
    raw_data: int
    raw_data_renamed: tuple[str, ...]
    """New source names of moved raw data, because the kept page has different data under the old name."""
    imports: int
    contradictions: int
    gaps: int


def rename_page(tx: Transaction, old: "PageRow", page: "Page", now: str, *, redirect: bool) -> int:
    """Rename a page, optionally with a redirect from its old slug. Return the new version."""
    collection_id = _collection_id_of_page(tx, old.id)
    require_write_right(tx, collection_id)
    check_slug_free(tx, collection_id, page.slug, old.id)
    change_slug(tx, collection_id, old.id, old.slug, page.slug, now, redirect=redirect)
    return _save_and_touch(tx, page, old.collection, now)


def check_slug_free(tx: Transaction, collection_id: int, slug: str, page_id: int) -> None:
    """Raise AlreadyExists if another page has the slug, or PageMoved if another page had it before."""
    for hidden in _first_column(
        tx,
        "SELECT quarantined_at IS NOT NULL FROM pages WHERE collection_id = ? AND slug = ?",
        (collection_id, slug),
    ):
        hint = "It is quarantined; forget it first." if hidden else "`quaid merge` makes one page of two."
        raise errors.AlreadyExists(path=slug, hint=hint)
    for target, version in tx.execute(
        "SELECT p.slug, p.version FROM redirects AS r JOIN pages AS p ON p.id = r.page_id"
        " WHERE r.collection_id = ? AND r.slug = ? AND r.page_id <> ?",
        (collection_id, slug, page_id),
    ):
        raise errors.PageMoved(slug=slug, target=target, expected=None, current_version=version)


def merge_pages(
    tx: Transaction, target: "PageRow", gone: "PageRow", page: "Page", now: str
) -> tuple[int, MergedRows]:
    """Merge the page `gone` into `target`.

    `page` is the merged content. Return the new version and the numbers of rows moved.
    """
    require_write_right(tx, _collection_id_of_page(tx, gone.id))
    in_texts = _first_column(
        tx,
        "SELECT id FROM links WHERE to_page_id = ? AND source_kind = 'wiki_link' AND from_page_id NOT IN (?, ?)",
        (gone.id, gone.id, target.id),
    )
    names = links.detach_page(tx, gone.id)
    of_target, of_gone = trust.of_page(tx, target.id), trust.of_page(tx, gone.id)
    own, other = (f"{row.truth}\n{row.timeline}" for row in (target, gone))
    classes = of_target.joined(own, of_gone, other)
    between, moved_links, joined = _move_links(tx, target.id, gone.id)
    facts, facts_same = _move_facts(tx, target.id, gone.id)
    data, renamed = _move_raw_data(tx, target.id, gone)
    moved = MergedRows(
        *(moved_links, joined, between, len(in_texts), facts, facts_same, data, renamed),
        imports=_move_imports(tx, target.id, gone.id),
        contradictions=_move_contradictions(tx, target.id, gone.id),
        gaps=_count_changes(
            tx,
            "UPDATE knowledge_gaps SET resolved_by_slug = ? WHERE resolved_by_slug = ?",
            (target.slug, gone.slug),
        ),
    )
    questions.move_golden(tx, gone.id, target.id)
    tx.execute("UPDATE redirects SET page_id = ? WHERE page_id = ?", (target.id, gone.id))
    tx.execute("UPDATE file_state SET page_id = ? WHERE page_id = ?", (target.id, gone.id))
    collection_id = _collection_id_of_page(tx, gone.id)
    tx.execute("DELETE FROM pages WHERE id = ?", (gone.id,))
    links.add_redirect(tx, collection_id, gone.slug, target.id, now)
    version = _save_and_touch(tx, page, target.collection, now)
    # Lines of both pages keep their trust class. Only lines that neither page had get the class of this write.
    merged = classes.after_write(f"{own}\n{other}", f"{page.truth}\n{page.timeline}", tx.trust)
    trust.set_of_page(tx, target.id, merged)
    links.resolve_again(tx, names)
    return version, moved


def _save_and_touch(tx: Transaction, page: "Page", collection: str, now: str) -> int:
    """Save a page, increment its version even if its text is unchanged, and return the new version.

    The version is incremented because related rows have changed.
    """
    saved: SaveResult = save(tx, page, uuid="", now=now, expected_version=None, collection=collection)
    if saved.changed:
        history.record_author(tx, saved.id, saved.version)
        return saved.version
    derive(tx, saved.id, page)
    return touch(tx, page.slug, expected_version=None, now=now, collection=collection)[1]


def _move_links(tx: Transaction, target_id: int, gone: int) -> tuple[int, int, int]:
    """Move explicitly added links to the kept page. Derived links are updated when the page is saved.

    Links between the two pages are deleted, and links that overlap in time are joined. Return the numbers of deleted,
    moved and joined links.
    """
    both = (target_id, gone)
    between = _count_changes(
        tx,
        "DELETE FROM links WHERE source_kind = 'programmatic' AND from_page_id IN (?, ?) AND to_page_id IN (?, ?)"
        " AND from_page_id <> to_page_id",
        both + both,
    )
    moved = 0
    for end in ("from_page_id", "to_page_id"):
        sql = f"UPDATE links SET {end} = ? WHERE {end} = ? AND source_kind = 'programmatic'"  # noqa: S608 (fixed)
        moved += _count_changes(tx, sql, both)
    rows: list[tuple[Any, ...]] = tx.execute(
        "SELECT from_page_id, to_page_id, relationship, id, valid_from, valid_until, context FROM links"
        " WHERE ? IN (from_page_id, to_page_id) AND source_kind = 'programmatic' ORDER BY 1, 2, 3, 4",
        (target_id,),
    ).fetchall()
    joined = 0
    for _, group in groupby(rows, key=lambda row: row[:3]):
        same = {row[3]: row for row in group}
        for link, absorbed in join_spans(GraphLink(row[3], *row[:3], *row[4:6]) for row in same.values()):
            if absorbed:
                _join_links(tx, link, absorbed, [str(same[id_][6]) for id_ in (link.id, *absorbed)])
                joined += len(absorbed)
    return between, moved, joined


def _join_links(tx: Transaction, link: GraphLink, absorbed: tuple[int, ...], contexts: list[str]) -> None:
    context = "; ".join(dict.fromkeys(filter(None, contexts)))
    tx.executemany("DELETE FROM links WHERE id = ?", [(link_id,) for link_id in absorbed])
    tx.execute(
        "UPDATE links SET valid_from = ?, valid_until = ?, context = ? WHERE id = ?",
        (link.valid_from, link.valid_until, context, link.id),
    )


def _move_facts(tx: Transaction, target_id: int, gone: int) -> tuple[int, int]:
    moved = _count_changes(tx, "UPDATE assertions SET page_id = ? WHERE page_id = ?", (target_id, gone))
    same: list[tuple[Any, ...]] = tx.execute(
        "SELECT min(id), json_group_array(id) FROM assertions WHERE page_id = ?"
        " GROUP BY subject, predicate, object, valid_from, valid_until HAVING count(*) > 1",
        (target_id,),
    ).fetchall()
    dropped = [(first, other) for first, every in same for other in json.loads(every) if other != first]
    for first, other in dropped:
        _merge_fact(tx, first, other)
    return moved, len(dropped)


def _merge_fact(tx: Transaction, first: int, other: int) -> None:
    """Merge a duplicate fact into the first fact, joining evidence, sources and supersession."""
    tx.execute(
        "UPDATE assertions AS a SET"
        " evidence_text = iif(instr(a.evidence_text, o.evidence_text), a.evidence_text,"
        " ltrim(a.evidence_text || ' / ' || o.evidence_text, ' /')),"
        " source_ref = iif(instr(a.source_ref, o.source_ref), a.source_ref,"
        " ltrim(a.source_ref || '; ' || o.source_ref, '; ')),"
        " supersedes_id = coalesce(a.supersedes_id, iif(o.supersedes_id <> a.id, o.supersedes_id, NULL))"
        " FROM assertions AS o WHERE a.id = ? AND o.id = ?",
        (first, other),
    )
    tx.execute(
        "UPDATE assertions SET supersedes_id = ?1 WHERE supersedes_id = ?2 AND id <> ?1"
        " AND id IS NOT (SELECT supersedes_id FROM assertions WHERE id = ?1)",
        (first, other),
    )
    tx.execute("DELETE FROM assertions WHERE id = ?", (other,))


def _move_raw_data(tx: Transaction, target_id: int, gone: "PageRow") -> tuple[int, tuple[str, ...]]:
    """Move raw data to the kept page.

    If the kept page has other data under the same source name, the moved data gets a new source name. Return
    the number of rows moved and the new names.
    """
    ours = dict(tx.execute("SELECT source, data FROM raw_data WHERE page_id = ?", (target_id,)))
    theirs = tx.execute(
        "SELECT id, source, data FROM raw_data WHERE page_id = ? ORDER BY id", (gone.id,)
    ).fetchall()
    renamed = []
    moved = 0
    for row, source, data in theirs:
        if ours.get(source) == data:
            continue  # identical data is deleted with its page
        name = str(source)
        if name in ours:
            name, number = f"{source} ({gone.slug})", 1
            while name in ours:
                number += 1
                name = f"{source} ({gone.slug} {number})"
            renamed.append(name)
        ours[name] = data
        tx.execute("UPDATE raw_data SET page_id = ?, source = ? WHERE id = ?", (target_id, name, row))
        moved += 1
    return moved, tuple(renamed)


def _move_imports(tx: Transaction, target_id: int, gone: int) -> int:
    """Move the stored source bytes (raw_imports) to the kept page as history. Return the number of rows moved.

    The moved rows get no page version, because the kept page never had exactly their text.
    """
    is_active = "is_active AND NOT EXISTS (SELECT 1 FROM raw_imports WHERE page_id = ?1 AND is_active = 1)"
    moved = _count_changes(
        tx,
        f"UPDATE raw_imports SET page_id = ?1, page_version = NULL, is_active = {is_active} WHERE page_id = ?2",  # noqa: S608
        (target_id, gone),
    )
    tx.execute(
        "UPDATE ingest_log SET pages_updated = (SELECT json_group_array(DISTINCT iif(value = ?2, ?1, value))"
        " FROM json_each(pages_updated)) WHERE EXISTS (SELECT 1 FROM json_each(pages_updated) WHERE value = ?2)",
        (target_id, gone),
    )
    return moved


def _move_contradictions(tx: Transaction, target_id: int, gone: int) -> int:
    moved = _count_changes(tx, "UPDATE contradictions SET page_id = ? WHERE page_id = ?", (target_id, gone))
    return moved + _count_changes(
        tx, "UPDATE contradictions SET other_page_id = ? WHERE other_page_id = ?", (target_id, gone)
    )


def _collection_id_of_page(tx: Transaction, page_id: int) -> int:
    return int(_first_column(tx, "SELECT collection_id FROM pages WHERE id = ?", (page_id,))[0])


def _count_changes(tx: Transaction, sql: str, values: tuple[Any, ...]) -> int:
    tx.execute(sql, values)
    return tx.changes()


def _first_column(tx: Transaction, sql: str, values: tuple[Any, ...]) -> list[Any]:
    return [value for (value,) in tx.execute(sql, values)]


def index_names(tx: Transaction, page_id: int, page: "Page") -> set[str]:
    """Update the name rows of a page. Return the names that were added or removed."""
    return _write_names(tx, page_id, page.title, page.slug, page.frontmatter)


def drop_redirect_names(tx: Transaction, page_id: int) -> set[str]:
    """Update the name rows of a page after a redirect to it was removed. Return the names that changed."""
    for title, slug, frontmatter in tx.execute(
        "SELECT title, slug, frontmatter FROM pages WHERE id = ?", (page_id,)
    ).fetchall():
        return _write_names(tx, page_id, str(title), str(slug), json.loads(str(frontmatter)))
    return set()


def _write_names(
    tx: Transaction, page_id: int, title: str, address: str, frontmatter: dict[str, Any]
) -> set[str]:
    before = {
        (name, kind)
        for name, kind in tx.execute("SELECT name, kind FROM page_names WHERE page_id = ?", (page_id,))
    }
    former = [slug for (slug,) in tx.execute("SELECT slug FROM redirects WHERE page_id = ?", (page_id,))]
    now = set(names_of(title, address, frontmatter, former))
    if now == before:
        return set()
    tx.execute("DELETE FROM page_names WHERE page_id = ?", (page_id,))
    tx.executemany(
        "INSERT OR IGNORE INTO page_names (name, page_id, kind) VALUES (?, ?, ?)",
        [(name, page_id, kind) for name, kind in sorted(now)],
    )
    return {name for name, _ in now ^ before}
