"""Read pages with their timeline entries and names, read and write raw data, and find possible duplicates."""

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quaid.errors import AmbiguousSlug, DamagedDatabase, NotFound, PageNotFound
from quaid.model.page import CLOSED_STATUSES
from quaid.model.slug import (
    COMPANY_SUFFIXES,
    NAME_KINDS,
    address,
    escaped_from_path,
    fold_name,
    is_similar_name,
    may_be_escaped,
)
from quaid.model.timeline import TimelineEntry
from quaid.storage import as_json, expiry
from quaid.storage.collections import LAST_CHARACTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np

    from quaid.storage.sqlite.connection import Database, Row, Transaction
    from quaid.storage.vectors import EmbeddingModel

PageSort = Literal["updated", "created", "title"]

PAGE_ORDER: dict[PageSort, str] = {
    "updated": "updated_at DESC, id DESC",
    "created": "created_at DESC, id DESC",
    "title": "title COLLATE NOCASE, slug",
}


class PageRow(NamedTuple):
    """A page as stored in the database."""

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


class PageListItem(NamedTuple):
    """A page without its content, which is the compiled truth (the text above the timeline) and the timeline."""

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


_PAGE_SQL = (
    "SELECT p.id, p.uuid, c.name, p.slug, p.type, p.title, p.summary, p.compiled_truth, p.timeline,"
    " p.frontmatter, p.wing, p.room,"
    " (SELECT json_group_array(tag ORDER BY id) FROM tags WHERE page_id = p.id),"
    " p.version, p.created_at, p.updated_at, p.truth_updated_at, p.timeline_updated_at"
    " FROM collections c JOIN pages p ON p.collection_id = c.id"
    " WHERE p.quarantined_at IS NULL AND c.name = ? AND "
)
_MOVED_PAGE_SQL = _PAGE_SQL + "p.id = (SELECT page_id FROM redirects WHERE collection_id = c.id AND slug = ?)"  # noqa: S608


def find(db: "Database", slug: str, collection: str = "default") -> PageRow | None:
    """Return the page with this slug, else the page that the slug redirects to, or None.

    If neither exists, the other spelling of the slug is tried (see _other_spelling). Raise DamagedDatabase if the
    page does not match its chunks.
    """

    key = (collection, slug)
    row = db.one(_PAGE_SQL + "p.slug = ?", key) or db.one(_MOVED_PAGE_SQL, key)
    if row is None and (other := _other_spelling(db, slug)):
        row = db.one(_PAGE_SQL + "p.slug = ?", (collection, other))
    if row is None:
        return None
    check_against_chunks(db, {row[0]: (row[7], row[8])})
    tags = tuple(json.loads(row[12]))
    return PageRow._make((*row[:9], json.loads(row[9]), *row[10:12], tags, *row[13:]))


def _other_spelling(db: "Database", slug: str) -> str | None:
    """Return the other spelling of a slug with non-ASCII letters, or None.

    Earlier versions of Quaid wrote such letters as code points: zh/用户 was zh/u7528u6237. For a slug in the new
    spelling, return the old spelling. For a slug in the old spelling, return the slug of the matching page, if any.
    """
    if not slug.isascii():
        return escaped_from_path(slug)
    if not may_be_escaped(slug):
        return None
    rows = db.rows("SELECT slug FROM pages WHERE slug GLOB '*[^ -~]*'")
    return next((other for (other,) in rows if escaped_from_path(str(other)) == slug), None)


def require(db: "Database", slug: str, collection: str = "default") -> PageRow:
    """Return the page with this slug; raise PageNotFound with suggestions if it does not exist.

    Raise NotFound if the collection does not exist.
    """
    page = find(db, slug, collection)
    if page is None:
        require_collection_id(db.connection, collection)  # reports an unknown collection first
        hint = _quarantine_hint(db, slug, collection) or _did_you_mean(db, slug)
        raise PageNotFound(slug=address(collection, slug), hint=hint)
    return page


def _quarantine_hint(db: "Database", slug: str, collection: str) -> str:
    """Return a sentence with the command that restores an expired or quarantined page with this slug, or ""."""
    if gone := expiry.expired_page(db, slug, collection):
        holder, reason = gone
        why = (
            f"its time is over ({reason})" if reason.startswith(expiry.RETENTION) else f"it expired: {reason}"
        )
        place = address(holder, slug)
        return f"It is hidden, because {why}: `quaid expired {place}` shows it, with --keep it comes back."
    row = db.one(
        "SELECT c.name, substr(p.quarantined_at, 1, 10), c.root_path FROM pages p"
        " JOIN collections c ON c.id = p.collection_id"
        " WHERE p.slug = ?1 AND p.quarantined_at IS NOT NULL AND ?2 IN (c.name, 'default') LIMIT 1",
        (slug, collection),
    )
    if row is None:
        return ""
    holder, day, root = row
    reason = "its file was deleted or is ignored" if root else "it was deleted on another device"
    return (
        f"It is in quarantine since {day}, because {reason}:"
        f" `quaid collection quarantine restore {holder}::{slug}` restores it."
    )


def listing(
    db: "Database",
    *,
    type: str | None = None,
    tag: str | None = None,
    wing: str | None = None,
    collection: str | None = None,
    sort: PageSort = "updated",
    limit: int = 50,
    offset: int = 0,
) -> list[PageListItem]:
    """Return up to `limit` visible pages that match these filters, sorted by `sort`, without content."""
    where, params = _page_filters(type, tag, wing, collection)
    sql = (
        "SELECT id, slug, (SELECT name FROM collections WHERE id = collection_id), type, title, summary,"
        " wing, room, version, created_at, updated_at FROM pages WHERE "
    )
    with db.reading():
        rows = db.rows(
            sql + where + f" ORDER BY {PAGE_ORDER[sort]} LIMIT ? OFFSET ?", (*params, limit, offset)
        )
        tags = _tags_of_pages(db, [row[0] for row in rows])
    return [PageListItem._make((*row[1:8], tuple(tags.get(row[0], ())), *row[8:])) for row in rows]


def pages_with_conflicts(db: "Database", limit: int) -> list[PageRow]:
    """Return up to `limit` visible pages whose text or front matter may contain merge conflicts (see model.merge)."""
    rows = db.rows(
        "SELECT c.name, p.slug FROM pages p JOIN collections c ON c.id = p.collection_id"
        " WHERE p.quarantined_at IS NULL AND (instr(p.frontmatter, '\"conflicts\"') OR p.id IN"
        " (SELECT rowid FROM page_fts WHERE page_fts MATCH 'compiled_truth : \"end of conflict\"'))"
        " ORDER BY c.id, p.slug LIMIT ?",
        (limit,),
    )
    candidates = (find(db, str(slug), str(collection)) for collection, slug in rows)
    return [page for page in candidates if page is not None]


def any_page_contains(db: "Database", text: str, *, without_file: bool = False) -> bool:
    """Return True if the text of a page, hidden or not, contains `text`. This may scan all pages.

    With `without_file`, pages in attached folders are skipped.
    """
    row = db.one(
        "SELECT 1 FROM pages p JOIN collections c ON c.id = p.collection_id WHERE (NOT ?2 OR c.root_path IS NULL)"
        " AND (instr(p.compiled_truth, ?1) OR instr(p.timeline, ?1)) LIMIT 1",
        (text, without_file),
    )
    return row is not None


def count(
    db: "Database",
    *,
    type: str | None = None,
    tag: str | None = None,
    wing: str | None = None,
    collection: str | None = None,
    changed_since: str | None = None,
) -> int:
    """Count the visible pages that match these filters."""
    where, params = _page_filters(type, tag, wing, collection, changed_since)
    row = db.one(f"SELECT count(*) FROM pages WHERE {where}", params)  # noqa: S608 (fixed parts)
    return int(row[0]) if row else 0


def memory_counts(db: "Database", today: str) -> dict[str, int]:
    """Return the counts that `quaid` without arguments shows, without reading the text of most pages.

    Pages in notebooks are counted as "notes", other pages as "pages". "unindexed" counts pages with text that are not
    split into chunks yet. "due" counts open commitments and action items that are due.
    """
    notes = "collection_id IN (SELECT id FROM collections WHERE kind = 'notebook')"
    row = db.one(
        f"SELECT (SELECT count(*) FROM pages WHERE quarantined_at IS NULL AND NOT {notes}),"  # noqa: S608 (fixed parts)
        f" (SELECT count(*) FROM pages WHERE quarantined_at IS NULL AND {notes}),"
        " (SELECT count(*) FROM chunks),"
        " (SELECT count(*) FROM (SELECT id AS bare FROM pages INDEXED BY pages_by_filter WHERE quarantined_at IS NULL"
        "  AND NOT EXISTS (SELECT 1 FROM chunks WHERE page_id = pages.id)) CROSS JOIN pages ON pages.id = bare"
        "  WHERE compiled_truth <> '' OR timeline <> ''),"
        " (SELECT count(*) FROM proposals WHERE decided_at IS NULL),"
        " (SELECT count(*) FROM contradictions WHERE resolved_at IS NULL AND type <> 'stale'),"
        " (SELECT count(*) FROM knowledge_gaps WHERE resolved_at IS NULL),"
        " (SELECT count(*) FROM pages WHERE quarantined_at IS NOT NULL)"
        " - (SELECT count(*) FROM expired WHERE kind = 'page'), (SELECT count(*) FROM expired)"
    )
    assert row is not None
    names = (
        "pages",
        "notes",
        "chunks",
        "unindexed",
        "proposals",
        "contradictions",
        "gaps",
        "quarantined",
        "expired",
    )
    return {**dict(zip(names, row, strict=True)), "due": _count_due(db, today)}


def _count_due(db: "Database", today: str) -> int:
    """Count the open commitments and action items that are due today or overdue."""
    rows = db.rows(
        "SELECT type, lower(trim(coalesce(frontmatter ->> '$.status', ''))) FROM pages INDEXED BY pages_due"
        " WHERE quarantined_at IS NULL AND instr(frontmatter, '\"due\"') AND type IN ('commitment', 'action_item')"
        " AND frontmatter ->> '$.due' GLOB '[0-9][0-9][0-9][0-9]-*' AND substr(frontmatter ->> '$.due', 1, 10) <= ?",
        (today,),
    )
    return sum(status not in CLOSED_STATUSES[type] for type, status in rows)


def timeline_entries(db: "Database", page_id: int, limit: int | None = None) -> "list[TimelineEntry]":
    """Return the newest `limit` or all timeline entries of a page, newest first.

    Entries of the same day are in page order.
    """
    rows = db.rows(
        "SELECT date, source, summary, detail, line FROM timeline_entries WHERE page_id = ?"
        " ORDER BY date DESC, line LIMIT ?",
        (page_id, -1 if limit is None else limit),
    )
    return [TimelineEntry(*row) for row in rows]


def page_addresses(db: "Database") -> list[tuple[str, str, str]]:
    """Return collection, type and slug of every visible page, the default collection first."""
    return db.rows(
        "SELECT c.name, p.type, p.slug FROM pages AS p JOIN collections AS c ON c.id = p.collection_id"
        " WHERE p.quarantined_at IS NULL ORDER BY c.id, p.type, p.slug"
    )


def require_collection_id(tx: "Transaction", name: str) -> int:
    for (collection_id,) in tx.execute("SELECT id FROM collections WHERE name = ?", (name,)):
        return int(collection_id)
    names = ", ".join(row for (row,) in tx.execute("SELECT name FROM collections ORDER BY name"))
    raise NotFound(what="collection", name=name, hint=f" Collections: {names}.")


def _page_filters(
    type: str | None, tag: str | None, wing: str | None, collection: str | None, since: str | None = None
) -> "tuple[str, Row]":
    conditions = {
        "collection_id = (SELECT id FROM collections WHERE name = ?)": collection,
        "type = ?": type,
        "wing = ?": wing,
        "id IN (SELECT page_id FROM tags WHERE tag = ?)": tag,
        "updated_at >= ?": since,
    }
    used = {part: value for part, value in conditions.items() if value is not None}
    return " AND ".join(["quarantined_at IS NULL", *used]), tuple(used.values())


def _tags_of_pages(db: "Database", page_ids: list[int]) -> dict[int, list[str]]:
    tags: dict[int, list[str]] = {}
    for page_id, tag in db.rows(
        "SELECT page_id, tag FROM tags WHERE page_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (f"[{','.join(map(str, page_ids))}]",),  # JSON, built by hand to avoid importing json
    ):
        tags.setdefault(page_id, []).append(tag)
    return tags


def _did_you_mean(db: "Database", slug: str) -> str:
    """Return a sentence that suggests pages for an unknown slug, or "" if no page is similar.

    It names pages of the first kind that exists: with this name in another folder, with this title or alias, with a
    similar slug, or with the name in their title or alias.
    """
    import difflib

    name = slug.rpartition("/")[2]
    elsewhere = "slug = ? OR substr(slug, -length(?)) = ? ORDER BY slug LIMIT 3"
    near = _matching_slugs(db, elsewhere, (name, "/" + name, "/" + name))
    if not near and (called := Namesakes(db, slug).hint()):
        return called
    # difflib is slow, so only a few candidates are compared: first the neighbours in sort order, then slugs of
    # similar length that begin with the same two letters, or that have a segment beginning with the first two
    # letters of the name.
    for among, values in (
        ("slug < ? ORDER BY slug DESC LIMIT 20", (slug,)),
        ("slug > ? ORDER BY slug LIMIT 20", (slug,)),
        (
            "abs(length(slug) - length(?)) <= 3 AND (substr(slug, 1, 2) = substr(?, 1, 2)"
            " OR instr(slug, '/' || substr(?, 1, 2))) LIMIT 2000",
            (slug, slug, name),
        ),
    ):
        near = near or difflib.get_close_matches(slug, _matching_slugs(db, among, values), n=3, cutoff=0.7)
    return f"Did you mean {' or '.join(near)}?" if near else Namesakes(db, name).partial_hint()


def _matching_slugs(db: "Database", among: str, values: tuple[str, ...]) -> list[str]:
    sql = "SELECT DISTINCT slug FROM searchable_pages WHERE "
    return [slug for (slug,) in db.rows(sql + among, values)]


PageTexts = dict[int, tuple[str, str]]
"""The compiled truth (the text above the timeline) and the timeline of pages, by page id."""


def check_against_chunks(db: "Database", texts: PageTexts) -> None:
    """Raise DamagedDatabase if a chunk is not a substring of its page, or a page's content is not text."""
    for page_id, pair in texts.items():
        if not (isinstance(pair[0], str) and isinstance(pair[1], str)):
            raise DamagedDatabase(path=db.path, problem=f"the text of page {page_id} is none")
    torn = _first_mismatch(db, texts)
    if torn is None:
        return
    with db.reading():  # the page may have changed between the two reads, so repeat both in one snapshot
        rows = db.rows("SELECT slug, compiled_truth, timeline FROM pages WHERE id = ?", (torn,))
        for slug, truth, timeline in rows:
            if _first_mismatch(db, {torn: (truth, timeline)}) is not None:
                problem = f"the page {slug} and its chunks say different things"
                raise DamagedDatabase(path=db.path, problem=problem)


def _first_mismatch(db: "Database", texts: PageTexts) -> int | None:
    """Return the id of the first page whose chunks do not occur in its text in their order, or None."""
    rows = db.rows(
        "SELECT page_id, chunk_type, chunk_text FROM json_each(?) AS wanted"
        " CROSS JOIN chunks AS c INDEXED BY chunks_by_page ON c.page_id = wanted.value"
        " ORDER BY page_id, chunk_index",
        (str([*texts]),),
    )
    at: dict[tuple[int, str], int] = {}
    for page_id, kind, text in rows:
        # Chunks may overlap, so the search continues from the start of the previous chunk.
        page = texts[page_id][kind != "truth_section"]
        start = page.find(text, at.get((page_id, kind), 0)) if isinstance(text, str) else -1
        if start < 0:
            return int(page_id)
        at[page_id, kind] = start
    return None


class PageName(NamedTuple):
    """A normalized name, the id of a page that has it, and the kind of name."""

    name: str
    page_id: int
    kind: str


def pages_called(db: "Database", names: list[str]) -> list[PageName]:
    """Return the visible pages that have one of these normalized names, the most reliable kind of name first."""
    rows = db.rows(
        "SELECT n.name, n.page_id, n.kind FROM json_each(?) AS wanted CROSS JOIN page_names AS n"
        " ON n.name = wanted.value JOIN pages AS p ON p.id = n.page_id AND p.quarantined_at IS NULL",
        (json.dumps(names, ensure_ascii=False),),
    )
    page_names = [PageName(*row) for row in rows]
    return sorted(page_names, key=lambda row: (NAME_KINDS.index(row.kind), row.page_id))


class Namesakes(NamedTuple):
    """The visible pages with a name as title or alias, in one collection or, if it is None, in all."""

    db: "Database"
    name: str
    collection: str | None = None

    def only(self) -> tuple[str, str] | None:
        """Return slug and collection of the only page with this name, or None."""
        rows = self.db.rows(
            "SELECT DISTINCT p.slug, c.name FROM page_names n CROSS JOIN pages p ON p.id = n.page_id"
            " JOIN collections c ON c.id = p.collection_id WHERE n.name = ?1 AND n.kind IN ('title', 'alias')"
            " AND p.quarantined_at IS NULL AND (?2 IS NULL OR c.name = ?2) LIMIT 2",
            (fold_name(self.name), self.collection),
        )
        return (rows[0][0], rows[0][1]) if len(rows) == 1 else None

    def hint(self) -> str:
        """Return a sentence listing up to three pages with this name, or "" if there are none."""
        rows = self.db.rows(
            "SELECT c.name, p.slug, p.title FROM page_names n CROSS JOIN pages p ON p.id = n.page_id"
            " JOIN collections c ON c.id = p.collection_id WHERE n.name = ?1 AND n.kind IN ('title', 'alias')"
            " AND p.quarantined_at IS NULL AND (?2 IS NULL OR c.name = ?2) ORDER BY n.kind DESC, p.slug LIMIT 3",
            (fold_name(self.name), self.collection),
        )
        addresses = " and ".join(f"{address(where, slug)} ({title})" for where, slug, title in rows)
        return (
            addresses
            and f"The page{'s' if len(rows) > 1 else ''} of that name {'are' if len(rows) > 1 else 'is'} {addresses}."
        )

    def partial_hint(self) -> str:
        """Return a question listing up to three pages whose title or alias contains this name, or ""."""
        part = fold_name(self.name)
        if len(part) < MIN_PARTIAL_NAME:
            return ""
        rows = self.db.rows(
            "SELECT DISTINCT c.name, p.slug, p.title FROM page_names n CROSS JOIN pages p ON p.id = n.page_id"
            " JOIN collections c ON c.id = p.collection_id WHERE ' ' || n.name LIKE '% ' || ?1 || '%'"
            " AND n.kind IN ('title', 'alias') AND p.quarantined_at IS NULL AND (?2 IS NULL OR c.name = ?2)"
            " ORDER BY p.slug LIMIT 3",
            (part, self.collection),
        )
        addresses = " or ".join(f"{address(where, slug)} ({title})" for where, slug, title in rows)
        return addresses and f"Did you mean {addresses}?"


def page_names(db: "Database", page_ids: "Iterable[int]") -> list[str]:
    """Return the normalized names of these pages."""
    rows = db.rows(
        "SELECT n.name FROM json_each(?) AS wanted CROSS JOIN page_names AS n ON n.page_id = wanted.value",
        (str(sorted(page_ids)),),
    )
    return [str(name) for (name,) in rows]


def pages_beginning(db: "Database", start: str, limit: int, last_word: str = "") -> list[PageName]:
    """Return up to `limit` normalized names of visible pages that begin with `start`, in order, with their pages.

    With `last_word`, only names that end with this word are returned.
    """
    rows = db.rows(
        "SELECT n.name, n.page_id, n.kind FROM page_names AS n CROSS JOIN pages AS p ON p.id = n.page_id"
        " WHERE n.name >= ? AND n.name < ? AND n.name LIKE ? AND p.quarantined_at IS NULL ORDER BY n.name LIMIT ?",
        (start, start + LAST_CHARACTER, f"% {last_word}" if last_word else "%", limit),
    )
    return [PageName(*row) for row in rows]


def wings_called(db: "Database", names: list[str]) -> list[str]:
    """Return the names that are wings (top-level categories) of visible pages."""
    rows = db.rows(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM pages INDEXED BY pages_by_wing"
        " WHERE wing = value AND quarantined_at IS NULL)",
        (json.dumps(names, ensure_ascii=False),),
    )
    return [name for (name,) in rows]


def collections_with(db: "Database", slug: str) -> list[str]:
    """Return the collections that have a visible page with this slug, or else a redirect from this slug.

    If there are none, look for the other spelling of the slug (see _other_spelling).
    """
    # With CROSS JOIN, SQLite loops over the few collections and looks up the unique key; otherwise it would
    # scan all pages.
    rows = db.rows(
        "SELECT c.name FROM collections c CROSS JOIN pages p ON p.collection_id = c.id AND p.slug = ?"
        " WHERE p.quarantined_at IS NULL ORDER BY c.id",
        (slug,),
    ) or db.rows(
        "SELECT c.name FROM collections c CROSS JOIN redirects r ON r.collection_id = c.id AND r.slug = ?"
        " ORDER BY c.id",
        (slug,),
    )
    if not rows and (other := _other_spelling(db, slug)):
        rows = db.rows(
            "SELECT c.name FROM collections c CROSS JOIN pages p ON p.collection_id = c.id AND p.slug = ?"
            " WHERE p.quarantined_at IS NULL ORDER BY c.id",
            (other,),
        )
    return [name for (name,) in rows]


def single_collection_with(db: "Database", slug: str) -> str | None:
    """Return the only collection that has this slug, or None; raise AmbiguousSlug if there are several."""
    names = collections_with(db, slug)
    if len(names) > 1:
        raise AmbiguousSlug(slug=slug, candidates=", ".join(f"{name}::{slug}" for name in names))
    return names[0] if names else None


def slug_of(tx: "Transaction", page: int | str | None) -> str | None:
    """Return the slug of the page with this id or UUID, hidden or not, or None."""
    row = tx.one("SELECT slug FROM pages WHERE id = ?1 OR uuid = ?1", (page,))
    return None if row is None else str(row[0])


def slugs_or_folders(
    db: "Database", start: str, most_slugs: int, most_names: int, collection: str | None = None
) -> list[str]:
    """Return up to `most_names` slugs of visible pages that begin with `start`, in one collection or in all.

    If there are more than `most_slugs` such slugs, the slugs in a folder are replaced by the folder, such as
    `people/`.
    """
    ids = [
        id_ for (id_,) in db.rows("SELECT id FROM collections WHERE ?1 IS NULL OR name = ?1", (collection,))
    ]
    slugs: set[str] = set()
    for collection_id in ids:
        rows = db.rows(  # this is a limited range scan of the unique key
            "SELECT slug FROM pages WHERE collection_id = ?1 AND slug >= ?2 AND slug < ?2 || ?4"
            " AND quarantined_at IS NULL ORDER BY slug LIMIT ?3",
            (collection_id, start, most_slugs + 1, LAST_CHARACTER),
        )
        slugs.update(str(slug) for (slug,) in rows)
    if len(slugs) > most_slugs:
        slugs = {name for id_ in ids for name in _slugs_by_folder_in(db, id_, start, most_names)}
    return sorted(slugs)[:most_names]


def _slugs_by_folder_in(db: "Database", collection_id: int, start: str, most: int) -> list[str]:
    slugs: list[str] = []
    # The batch grows as long as only pages are found. After a folder, it is small again, and the next query starts
    # behind the contents of the folder.
    at, batch = start, 1
    while len(slugs) < most:
        rows = db.rows(
            "SELECT slug FROM pages WHERE collection_id = ?1 AND slug >= ?2 AND slug < ?3 || ?5"
            " AND quarantined_at IS NULL ORDER BY slug LIMIT ?4",
            (collection_id, at, start, batch, LAST_CHARACTER),
        )
        batch *= 2
        for (slug,) in rows:
            name, mark, _ = slug[len(start) :].partition("/")
            slugs.append(f"{start}{name}{mark}")
            at = f"{start}{name}0" if mark else f"{slug} "  # sorts right after the folder or the page
            if mark:
                batch = 1
                break
        if not rows:
            break
    return slugs


_NAME_SOURCES = {
    "wing": ("SELECT wing FROM pages INDEXED BY pages_by_wing WHERE quarantined_at IS NULL", "1"),
    "tag": (
        "SELECT tag FROM tags WHERE 1",
        "EXISTS (SELECT 1 FROM tags AS t JOIN pages AS p ON p.id = t.page_id"
        " WHERE t.tag = name AND p.quarantined_at IS NULL)",
    ),
}
"""For each kind of name: the query for all such names, and the condition that a visible page has the name."""


def names_beginning(db: "Database", column: Literal["wing", "tag"], start: str, most: int) -> list[str]:
    """Return up to `most` wings (top-level categories) or tags of visible pages that begin with `start`.

    The names are sorted. Each name takes one index lookup; the table is not scanned.
    """
    among, condition = _NAME_SOURCES[column]
    first, later = (f"{among} AND {column} {sign} {{}} ORDER BY {column} LIMIT 1" for sign in (">=", ">"))
    rows = db.rows(
        f"WITH RECURSIVE names (name) AS (SELECT ({first.format('?1')}) UNION ALL"  # noqa: S608 - our own words
        f" SELECT ({later.format('names.name')}) FROM names WHERE name < ?1 || ?2)"
        f" SELECT name FROM names WHERE name <> '' AND name < ?1 || ?2 AND {condition} LIMIT ?3",
        (start, LAST_CHARACTER, most),
    )
    return [str(name) for (name,) in rows]


class RawData(NamedTuple):
    """The stored data of one source about a page."""

    source: str
    data: Any
    fetched_at: str


def read_raw_data(db: "Database", page_id: int, source: str | None = None) -> list[RawData]:
    """Return the raw data of a page from one source, or from all its sources."""
    rows = db.rows(
        "SELECT source, data, fetched_at FROM raw_data WHERE page_id = ? AND (? IS NULL OR source = ?)"
        " ORDER BY source",
        (page_id, source, source),
    )
    return [RawData(name, json.loads(data), fetched_at) for name, data, fetched_at in rows]


def write_raw_data(
    tx: "Transaction", page_id: int, sources: dict[str, Any], now: str, gone: "Iterable[str]" = ()
) -> None:
    """Insert or replace raw data of a page by source, and delete its raw data from the sources in `gone`."""
    tx.executemany(
        "INSERT INTO raw_data (page_id, source, fetched_at, data) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (page_id, source) DO UPDATE SET fetched_at = excluded.fetched_at, data = excluded.data",
        [(page_id, source, now, as_json(data)) for source, data in sources.items()],
    )
    tx.executemany(
        "DELETE FROM raw_data WHERE page_id = ? AND source = ?", [(page_id, source) for source in gone]
    )


if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

TEXTS_PER_QUERY = 500
"""Duplicates.texts() reads this many pages per query."""

DISTINCT_KEY = "distinct "
"""Prefix of the configuration keys that mark two pages as distinct.

The sorted UUIDs of both pages follow the prefix.
"""

MOST_NAMES_COMPARED = 40
"""A title is compared with at most this many names that have the same beginning."""

MIN_PARTIAL_NAME = 2
"""Namesakes.partial_hint() ignores names with fewer characters than this."""

MOST_NAMESAKES = 3
"""A name shared by more pages than this, such as "Overview", is ignored."""


class StoredPair(NamedTuple):
    """Two similar pages found by the last comparison of all pages."""

    page_id: int
    other_page_id: int
    likeness: float | None
    why: tuple[str, ...]


COMPARED_KEY = "compared_at"
"""Key in quaid_config for the time of the last comparison of all pages. The value also has the page count."""


class Duplicates:
    """Finds pages that may be about the same thing, and stores the pairs that a comparison of all pages found."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def texts(self) -> "Iterator[tuple[int, str]]":
        """Yield id and compiled truth (the text above the timeline) of all visible pages, read in batches."""
        rows: list[Row] = [(0, "")]
        while rows:
            rows = self._db.rows(
                "SELECT id, compiled_truth FROM pages WHERE id > ? AND quarantined_at IS NULL ORDER BY id LIMIT ?",
                (rows[-1][0], TEXTS_PER_QUERY),
            )
            yield from rows

    def namesakes(self) -> list[tuple[int, int, str]]:
        """Return the pairs of visible pages that share a title or alias, the lower id first, with the shared name.

        Two pages that share a name form a pair only if they have the same type and collection, and at most
        MOST_NAMESAKES pages of this type and collection have the name.
        """
        rows = self._db.rows(
            "WITH called AS (SELECT n.name, n.page_id, p.type, p.collection_id FROM page_names AS n"
            " JOIN pages AS p ON p.id = n.page_id AND p.quarantined_at IS NULL WHERE n.kind IN ('title', 'alias')),"
            " few AS (SELECT name, type, collection_id FROM called GROUP BY 1, 2, 3 HAVING count(*) BETWEEN 2 AND ?)"
            " SELECT a.page_id, b.page_id, a.name FROM few JOIN called AS a USING (name, type, collection_id)"
            " JOIN called AS b USING (name, type, collection_id) WHERE a.page_id < b.page_id ORDER BY 1, 2, 3",
            (MOST_NAMESAKES,),
        )
        return [(first, second, str(name)) for first, second, name in rows]

    def mean_vectors(self, model: "EmbeddingModel", ids: set[int]) -> "dict[int, Array]":
        """Return the normalized sum of the chunk vectors of each page, by page id. Skip pages without vectors."""
        import numpy as np

        vectors_of_page: dict[int, list[Array]] = {}
        for page_id, vector in self._db.rows(
            "SELECT c.page_id, v.vector FROM json_each(?) AS wanted"  # noqa: S608 (checked)
            " CROSS JOIN chunks AS c ON c.page_id = wanted.value"
            f" CROSS JOIN {model.vec_table} AS v ON v.content_hash = c.content_hash AND v.model = ?",
            (str(sorted(ids)), model.name),
        ):
            vectors_of_page.setdefault(page_id, []).append(np.frombuffer(vector, "<f2").astype(np.float32))
        sums = {page_id: np.sum(vectors, axis=0) for page_id, vectors in vectors_of_page.items()}
        return {
            page_id: vector_sum / max(float(np.linalg.norm(vector_sum)), 1e-9)
            for page_id, vector_sum in sums.items()
        }

    def store(self, pairs: "Iterable[StoredPair]", pages: int, now: str) -> None:
        """Replace the stored pairs by the result of a new comparison. `pages` is the number of pages compared."""

        def work(tx: "Transaction") -> None:
            tx.execute("DELETE FROM duplicate_pairs")
            tx.executemany(
                "INSERT INTO duplicate_pairs (page_id, other_page_id, page_version, other_version, likeness, why)"
                " SELECT a.id, b.id, a.version, b.version, ?, ? FROM pages AS a, pages AS b"
                " WHERE a.id = ? AND b.id = ?",
                [(pair.likeness, json.dumps(pair.why), pair.page_id, pair.other_page_id) for pair in pairs],
            )
            tx.execute(
                "INSERT OR REPLACE INTO quaid_config (key, value) VALUES (?, ?)",
                (COMPARED_KEY, f"{now} {pages}"),
            )

        self._db.write(work)

    def stored(self) -> tuple[list[StoredPair], str | None, int]:
        """Return the stored pairs, the time of the comparison (None if never), and the number of pages compared.

        Pairs with a page that has changed or been hidden since, and pairs that were declared distinct, are left out.
        """
        row = self._db.one("SELECT value FROM quaid_config WHERE key = ?", (COMPARED_KEY,))
        at, _, count = str(row[0]).partition(" ") if row else ("", "", "0")
        rows = self._db.rows(
            "SELECT d.page_id, d.other_page_id, d.likeness, d.why FROM duplicate_pairs AS d"
            " JOIN pages AS a ON a.id = d.page_id AND a.version = d.page_version AND a.quarantined_at IS NULL"
            " JOIN pages AS b ON b.id = d.other_page_id AND b.version = d.other_version"
            " AND b.quarantined_at IS NULL WHERE NOT EXISTS (SELECT 1 FROM quaid_config"
            " WHERE key = ? || min(a.uuid, b.uuid) || ' ' || max(a.uuid, b.uuid))"
            " ORDER BY coalesce(d.likeness, 0) DESC, a.slug, b.slug",
            (DISTINCT_KEY,),
        )
        pairs = [
            StoredPair(one, other, likeness, tuple(json.loads(why))) for one, other, likeness, why in rows
        ]
        return pairs, at or None, int(count)

    def mark_distinct(self, one: int, other: int, now: str) -> bool:
        """Record that a user declared two pages distinct. Return False if this was already recorded."""

        def work(tx: "Transaction") -> bool:
            tx.execute(
                "INSERT INTO quaid_config (key, value)"
                " SELECT ? || min(a.uuid, b.uuid) || ' ' || max(a.uuid, b.uuid), ?"
                " FROM pages AS a, pages AS b WHERE a.id = ? AND b.id = ? ON CONFLICT DO NOTHING",
                (DISTINCT_KEY, now, one, other),
            )
            return tx.changes() > 0

        return self._db.write(work)

    def distinct(self) -> set[tuple[int, int]]:
        """Return the pairs of visible pages that a user declared distinct, the lower id first."""
        rows = self._db.rows(
            "SELECT min(a.id, b.id), max(a.id, b.id) FROM quaid_config AS q"
            " JOIN pages AS a ON a.uuid = substr(q.key, ?1, 36) JOIN pages AS b ON b.uuid = substr(q.key, ?1 + 37)"
            " WHERE q.key GLOB ?2",
            (len(DISTINCT_KEY) + 1, DISTINCT_KEY + "*"),
        )
        return {(first, second) for first, second in rows}

    def of_page(self, page_id: int, most: int) -> list[str]:
        """Return addresses of up to `most` pages that may be about the same thing, by their titles and aliases.

        Pages that a user declared distinct, and names of many pages such as "Overview", are left out.
        """
        own = self._db.rows(
            "SELECT n.name, n.kind, p.type, p.uuid FROM page_names AS n JOIN pages AS p ON p.id = n.page_id"
            " WHERE n.page_id = ? AND n.kind IN ('title', 'alias')",
            (page_id,),
        )
        similar: dict[int, None] = {}
        for name, kind, type_, _ in own:
            reordered = " ".join(reversed(name.split()))
            first = name.partition(" ")[0]
            same = [row for row in pages_called(self._db, list({name, reordered})) if row.page_id != page_id]
            if len({row.page_id for row in same}) < MOST_NAMESAKES:
                similar |= {row.page_id: None for row in same if row.kind in ("title", "alias")}
            if kind != "title":
                continue
            # Compare only names with the same beginning, which the index finds, and the first word alone, because one
            # page may have a first name and another the full name.
            starts = pages_beginning(self._db, name[: max(3, len(name) * 2 // 3)], MOST_NAMES_COMPARED)
            if type_ == "person" and name != first:
                starts += pages_beginning(self._db, name[0], MOST_NAMES_COMPARED, name.rpartition(" ")[2])
            starts += pages_called(self._db, [first, *(f"{first} {suffix}" for suffix in COMPANY_SUFFIXES)])
            near = {
                row.page_id
                for row in starts
                if row.page_id != page_id
                and row.kind in ("title", "alias")
                and is_similar_name(name, row.name, type_)
            }
            if len(near) <= MOST_NAMESAKES:
                types = {id: head.type for id, head in page_heads(self._db, list(near)).items()}
                similar |= {id: None for id, other in types.items() if other == type_}
        heads = page_heads(self._db, list(similar)[: 2 * most])
        distinct = self._distinct_from(page_id, list(heads))
        others = [head for id, head in heads.items() if id not in distinct]
        return [address(head.collection, head.slug) for head in others[:most]]

    def _distinct_from(self, page_id: int, others: list[int]) -> set[int]:
        """Return the pages in `others` that a user declared distinct from the page."""
        rows = self._db.rows(
            "SELECT b.id FROM pages AS a JOIN pages AS b ON b.id IN (SELECT value FROM json_each(?))"
            " JOIN quaid_config AS q ON q.key = ? || min(a.uuid, b.uuid) || ' ' || max(a.uuid, b.uuid)"
            " WHERE a.id = ?",
            (str(others), DISTINCT_KEY, page_id),
        )
        return {id for (id,) in rows}


class PageHead(NamedTuple):
    """The page columns shown in search results."""

    id: int
    slug: str
    collection: str
    title: str
    type: str
    wing: str
    room: str
    summary: str


def page_heads(db: "Database", page_ids: list[int]) -> dict[int, PageHead]:
    """Return the columns shown in search results, by page id. Hidden pages are left out."""
    rows = db.rows(
        "SELECT p.id, p.slug, c.name, p.title, p.type, p.wing, p.room, p.summary"
        " FROM pages AS p JOIN collections AS c ON c.id = p.collection_id"
        " WHERE p.id IN (SELECT value FROM json_each(?)) AND p.quarantined_at IS NULL",
        (str(page_ids),),
    )
    return {row[0]: PageHead(*row) for row in rows}


def page_labels(db: "Database", page_ids: list[int]) -> dict[int, tuple[str, str, str]]:
    """Return, by page id, the kind of the page's collection, its lower-case `status`, and the day of its text.

    The day is that of the last change of the compiled truth (the text above the timeline), or "" if the timeline
    changed later.
    """
    rows = db.rows(
        "SELECT p.id, c.kind, iif(instr(p.frontmatter, '\"status\"'), p.frontmatter ->> '$.status', ''),"
        " iif(p.timeline_updated_at > p.truth_updated_at, '', substr(p.truth_updated_at, 1, 10))"
        " FROM pages AS p JOIN collections AS c ON c.id = p.collection_id"
        " WHERE p.id IN (SELECT value FROM json_each(?))",
        (str(page_ids),),
    )
    return {page_id: (kind, str(status or "").lower(), day) for page_id, kind, status, day in rows}


def page_texts(db: "Database", page_ids: list[int]) -> dict[int, tuple[str, str]]:
    """Return the compiled truth (the text above the timeline) and the timeline of these pages, by page id.

    Raise DamagedDatabase if a page does not match its chunks.
    """

    rows = db.rows(
        "SELECT id, compiled_truth, timeline FROM pages WHERE id IN (SELECT value FROM json_each(?))",
        (str(page_ids),),
    )
    texts = {page_id: (truth, timeline) for page_id, truth, timeline in rows}
    check_against_chunks(db, texts)
    return texts
