"""Pages in the database: found, listed and saved, each save against the version that its author had read.

Knows the rows of pages and what is derived from a page in the same transaction: tags, timeline entries, names,
links, words and chunks. Does not know how a page is written as text, nor how pages are ranked.
"""

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quaid.errors import NoSuchVersion, NotFound, PageExists, PageMoved, PageNotFound, VersionConflict
from quaid.store.json_text import as_json

if TYPE_CHECKING:
    import apsw

    from quaid.model.page import Page
    from quaid.model.timeline import TimelineEntry
    from quaid.store.db import Database, Row

Sort = Literal["updated", "created", "title"]

ORDER: dict[Sort, str] = {
    "updated": "updated_at DESC, id DESC",
    "created": "created_at DESC, id DESC",
    "title": "title COLLATE NOCASE, slug",
}


class Stored(NamedTuple):
    """A page as it is in the database."""

    id: int
    uuid: str
    collection: str
    slug: str
    type: str
    title: str
    summary: str
    truth: str
    timeline: str
    frontmatter: dict[str, Any]
    wing: str
    room: str
    tags: tuple[str, ...]
    version: int
    created_at: str
    updated_at: str
    truth_updated_at: str
    timeline_updated_at: str


class Header(NamedTuple):
    """A page without its texts."""

    slug: str
    collection: str
    type: str
    title: str
    summary: str
    wing: str
    room: str
    tags: tuple[str, ...]
    version: int
    created_at: str
    updated_at: str


class Saved(NamedTuple):
    """What a save did."""

    id: int
    version: int
    created: bool
    changed: bool


class _Present(NamedTuple):
    """What a save must know about the row that is there."""

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


_PAGE = (
    "SELECT p.id, p.uuid, c.name, p.slug, p.type, p.title, p.summary, p.compiled_truth, p.timeline,"
    " p.frontmatter, p.wing, p.room,"
    " (SELECT json_group_array(tag ORDER BY id) FROM tags WHERE page_id = p.id),"
    " p.version, p.created_at, p.updated_at, p.truth_updated_at, p.timeline_updated_at"
    " FROM collections c JOIN pages p ON p.collection_id = c.id"
    " WHERE p.quarantined_at IS NULL AND c.name = ? AND "
)
_MOVED_PAGE = _PAGE + "p.id = (SELECT page_id FROM redirects WHERE collection_id = c.id AND slug = ?)"  # noqa: S608


def find(db: "Database", slug: str, collection: str = "default") -> Stored | None:
    """The page with this slug, else the one that had it before it was renamed or merged, if there is one."""
    from quaid.store import second_copy

    key = (collection, slug)
    row = db.one(_PAGE + "p.slug = ?", key) or db.one(_MOVED_PAGE, key)
    if row is None:
        return None
    second_copy.check(db, {row[0]: (row[7], row[8])})
    tags = tuple(json.loads(row[12]))
    return Stored._make((*row[:9], json.loads(row[9]), *row[10:12], tags, *row[13:]))


def require(db: "Database", slug: str, collection: str = "default") -> Stored:
    """The page with this slug; PageNotFound, with slugs that look like it, when there is none."""
    page = find(db, slug, collection)
    if page is None:
        _collection_id(db.connection, collection)  # an unknown collection is the better answer
        raise PageNotFound(slug=slug, hint=_did_you_mean(db, slug))
    return page


def save(
    tx: "apsw.Connection",
    page: "Page",
    *,
    uuid: str,
    now: str,
    expected_version: int | None,
    collection: str = "default",
    cut: bool = True,
) -> Saved:
    """Write a page unless it is there already, word for word.

    `expected_version` is what the author had read: 0 for "there is none yet", None for "whatever is there".
    Who writes many pages leaves them uncut; `vaults.embedding.cut_up` makes their chunks afterwards.
    """
    collection_id = _collection_id(tx, collection)
    present = _present(tx, page.slug, collection_id)
    visible = present.version if present and present.quarantined_at is None else 0
    if expected_version is not None and expected_version not in (visible, present.version if present else 0):
        kind = NoSuchVersion if not visible else VersionConflict if expected_version else PageExists
        raise kind(slug=page.slug, expected=expected_version, current_version=visible)
    frontmatter = as_json(page.frontmatter)
    if present is None:
        _refuse_moved(tx, page.slug, collection_id, expected_version)
        page_id = _insert(tx, page, frontmatter, uuid, now, collection_id)
        derive(tx, page_id, page, cut=cut)
        return Saved(page_id, 1, created=True, changed=True)
    if visible and _same(present, page, frontmatter):
        return Saved(present.id, present.version, created=False, changed=False)
    _update(tx, present, page, frontmatter, now)
    derive(tx, present.id, page, cut=cut)
    if not visible:
        _found_again(tx, present.id)
    return Saved(present.id, present.version + 1, created=not visible, changed=True)


def derive(
    tx: "apsw.Connection", page_id: int, page: "Page", quarantined: bool = False, *, cut: bool = True
) -> None:
    """Make the rows again that follow from a page."""
    from quaid.model.timeline import summary_hash
    from quaid.store import chunks, links, names, words

    tx.execute("DELETE FROM tags WHERE page_id = ?", (page_id,))
    tx.executemany("INSERT INTO tags (page_id, tag) VALUES (?, ?)", [(page_id, tag) for tag in page.tags])
    tx.execute("DELETE FROM timeline_entries WHERE page_id = ?", (page_id,))
    tx.executemany(
        "INSERT OR IGNORE INTO timeline_entries (page_id, date, source, summary, summary_hash, detail, line)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (page_id, date, source, summary, summary_hash(summary), detail, line)
            for date, source, summary, detail, line in page.entries
        ],
    )
    renamed = names.index_page(tx, page_id, page)
    links.derive(tx, page_id, page)
    if renamed:
        links.resettle(tx, renamed)
    if not quarantined:
        words.index_page(tx, page_id, page.title, page.slug, page.truth, page.timeline)
        if cut:
            chunks.write(tx, page_id, page.title, page.truth, page.timeline)
        else:
            chunks.forget(tx, page_id)


def _found_again(tx: "apsw.Connection", page_id: int) -> None:
    """A page that was hidden is there again: links that name it lead to it."""
    from quaid.store import links

    rows = tx.execute("SELECT name FROM page_names WHERE page_id = ?", (page_id,))
    links.resettle(tx, [str(name) for (name,) in rows])


def touch(
    tx: "apsw.Connection", slug: str, *, expected_version: int | None, now: str, collection: str = "default"
) -> tuple[int, int]:
    """Raise a page's version because something that hangs on it changes. Returns its id and new version."""
    present = _present(tx, slug, _collection_id(tx, collection))
    if present is None or present.quarantined_at is not None:
        raise PageNotFound(slug=slug, hint="")
    if expected_version not in (None, present.version):
        kind = VersionConflict if expected_version else PageExists
        raise kind(slug=slug, expected=expected_version, current_version=present.version)
    tx.execute("UPDATE pages SET version = version + 1, updated_at = ? WHERE id = ?", (now, present.id))
    return present.id, present.version + 1


def listing(
    db: "Database",
    *,
    type: str | None = None,
    tag: str | None = None,
    wing: str | None = None,
    collection: str | None = None,
    sort: Sort = "updated",
    limit: int = 50,
    offset: int = 0,
) -> list[Header]:
    """Pages without their texts; the newest first, or by title."""
    where, params = _filters(type, tag, wing, collection)
    sql = (
        "SELECT id, slug, (SELECT name FROM collections WHERE id = collection_id), type, title, summary,"
        " wing, room, version, created_at, updated_at FROM pages WHERE "
    )
    with db.reading():
        found = db.rows(sql + where + f" ORDER BY {ORDER[sort]} LIMIT ? OFFSET ?", (*params, limit, offset))
        tags = _tags(db, [row[0] for row in found])
    return [Header._make((*row[1:8], tuple(tags.get(row[0], ())), *row[8:])) for row in found]


def count(
    db: "Database",
    *,
    type: str | None = None,
    tag: str | None = None,
    wing: str | None = None,
    collection: str | None = None,
) -> int:
    """How many pages a listing with these filters has."""
    where, params = _filters(type, tag, wing, collection)
    row = db.one(f"SELECT count(*) FROM pages WHERE {where}", params)  # noqa: S608 (fixed parts)
    return int(row[0]) if row else 0


def entries(db: "Database", page_id: int, limit: int | None = None) -> "list[TimelineEntry]":
    """A page's timeline, the newest first; within one day as the page has them."""
    from quaid.model.timeline import TimelineEntry

    found = db.rows(
        "SELECT date, source, summary, detail, line FROM timeline_entries WHERE page_id = ?"
        " ORDER BY date DESC, line LIMIT ?",
        (page_id, -1 if limit is None else limit),
    )
    return [TimelineEntry(*row) for row in found]


def addresses(db: "Database") -> list[tuple[str, str, str]]:
    """Collection, type and slug of every visible page, the default collection first."""
    return db.rows(
        "SELECT c.name, p.type, p.slug FROM pages AS p JOIN collections AS c ON c.id = p.collection_id"
        " WHERE p.quarantined_at IS NULL ORDER BY c.id, p.type, p.slug"
    )


def _collection_id(tx: "apsw.Connection", name: str) -> int:
    for (found,) in tx.execute("SELECT id FROM collections WHERE name = ?", (name,)):
        return int(found)
    known = ", ".join(each for (each,) in tx.execute("SELECT name FROM collections ORDER BY name"))
    raise NotFound(what="collection", name=name, hint=f" There is: {known}.")


def _present(tx: "apsw.Connection", slug: str, collection_id: int) -> _Present | None:
    row = tx.execute(
        "SELECT id, version, quarantined_at, type, title, summary, wing, room, frontmatter, compiled_truth,"
        " timeline, truth_updated_at, timeline_updated_at FROM pages WHERE collection_id = ? AND slug = ?",
        (collection_id, slug),
    ).fetchone()
    return None if row is None else _Present(*row)


def _refuse_moved(tx: "apsw.Connection", slug: str, collection_id: int, expected: int | None) -> None:
    """A slug that a page had before stays its own; that of a hidden page is free."""
    for target, version, hidden in tx.execute(
        "SELECT p.slug, p.version, p.quarantined_at IS NOT NULL FROM redirects AS r"
        " JOIN pages AS p ON p.id = r.page_id WHERE r.collection_id = ? AND r.slug = ?",
        (collection_id, slug),
    ).fetchall():
        if not hidden:
            raise PageMoved(slug=slug, target=target, expected=expected, current_version=version)
        from quaid.store import slugs

        slugs.free(tx, collection_id, slug)


def _same(present: _Present, page: "Page", frontmatter: str) -> bool:
    now = (page.type, page.title, page.summary, page.wing, page.room, frontmatter, page.truth, page.timeline)
    return present[3:11] == now


def _insert(
    tx: "apsw.Connection", page: "Page", frontmatter: str, uuid: str, now: str, collection_id: int
) -> int:
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


def _update(tx: "apsw.Connection", present: _Present, page: "Page", frontmatter: str, now: str) -> None:
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


def _filters(
    type: str | None, tag: str | None, wing: str | None, collection: str | None
) -> tuple[str, "Row"]:
    wanted = {
        "collection_id = (SELECT id FROM collections WHERE name = ?)": collection,
        "type = ?": type,
        "wing = ?": wing,
        "id IN (SELECT page_id FROM tags WHERE tag = ?)": tag,
    }
    given = {part: value for part, value in wanted.items() if value is not None}
    return " AND ".join(["quarantined_at IS NULL", *given]), tuple(given.values())


def _tags(db: "Database", page_ids: list[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for page_id, tag in db.rows(
        "SELECT page_id, tag FROM tags WHERE page_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (f"[{','.join(map(str, page_ids))}]",),  # JSON, and no need to load what writes it
    ):
        found.setdefault(page_id, []).append(tag)
    return found


def _did_you_mean(db: "Database", slug: str) -> str:
    """Up to three pages that a wrong slug may mean: the same name elsewhere, a title, else similar slugs."""
    import difflib

    from quaid.store import names

    name = slug.rpartition("/")[2]
    elsewhere = "slug = ? OR substr(slug, -length(?)) = ? ORDER BY slug LIMIT 3"
    near = _slugs(db, elsewhere, (name, "/" + name, "/" + name))
    if not near and (called := names.whose(db, slug)):
        return called
    # Comparing is slow. First those that begin alike, as their neighbours in the alphabet do; then those of
    # about this length whose first letters, or the first letters of whose name, are the same.
    for among, values in (
        ("slug < ? ORDER BY slug DESC LIMIT 20", (slug,)),
        ("slug > ? ORDER BY slug LIMIT 20", (slug,)),
        (
            "abs(length(slug) - length(?)) <= 3 AND (substr(slug, 1, 2) = substr(?, 1, 2)"
            " OR instr(slug, '/' || substr(?, 1, 2))) LIMIT 2000",
            (slug, slug, name),
        ),
    ):
        near = near or difflib.get_close_matches(slug, _slugs(db, among, values), n=3, cutoff=0.7)
    return f"Did you mean {' or '.join(near)}?" if near else ""


def _slugs(db: "Database", among: str, values: tuple[str, ...]) -> list[str]:
    sql = "SELECT DISTINCT slug FROM searchable_pages WHERE "
    return [found for (found,) in db.rows(sql + among, values)]
