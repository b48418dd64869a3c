"""Links between pages: those derived from page text, and those added explicitly by a person or program.

A derived link stores the name of its target as written. When a page with that name is added, renamed or
removed, the link is resolved again.
"""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quaid.errors import LinkFromText, LinkOverlaps, NotFound, TextSaysSo
from quaid.model.links import (
    GraphLink,
    LinkCandidate,
    LinkReference,
    find_references,
    resolve_link,
    target_key,
)
from quaid.model.slug import address
from quaid.storage import trust

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quaid.model.page import Page
    from quaid.storage.sqlite.connection import Database, Transaction

Temporal = Literal["current", "historical", "all"]

FROM_TEXT = "wiki_link"

# An absolute path without an extension, as in [About](/about/), leads to a page of a website. If the collection does
# not have that page, the link is not listed, because the text is probably a copy of a web page. Such a target begins
# with OR_FROM_ROOT (see quaid.model.links).
_NAMES_A_PAGE = "NOT GLOB '//*'"


class LinkRow(NamedTuple):
    """A link with the slugs of both ends."""

    id: int
    from_slug: str
    to_slug: str
    """Slug of the target page; if there is no such page, the target as written in the text."""
    relationship: str
    valid_from: str | None
    valid_until: str | None
    context: str
    source_kind: str
    resolved: bool
    from_collection: str
    to_collection: str
    part: str | None
    line: int | None
    created_at: str
    as_written: tuple[str, ...] = ()
    """The names by which the text refers to the target page."""

    def close(self, tx: "Transaction", valid_until: str | None) -> None:
        """Set the day from which a link is no longer valid; None makes it open-ended.

        Raise LinkOverlaps or TextSaysSo if it would overlap with another link of the same pages and relationship.
        """
        start, end, own = _require_row(
            tx, "SELECT from_page_id, to_page_id, trust FROM links WHERE id = ?", (self.id,)
        )
        trust.guard(tx, own)
        _refuse_overlap(tx, start, end, self.relationship, self.valid_from, valid_until, besides=self.id)
        tx.execute("UPDATE links SET valid_until = ? WHERE id = ?", (valid_until, self.id))

    def remove(self, tx: "Transaction") -> None:
        """Delete a link permanently."""
        for own in classes(tx, [self.id]).values():
            trust.guard(tx, own)
        tx.execute("DELETE FROM links WHERE id = ?", (self.id,))


class AddedLink(NamedTuple):
    """A link added explicitly, not derived from page text, with the collections and slugs of both ends."""

    id: int
    from_collection: str
    from_slug: str
    to_collection: str
    to_slug: str
    relationship: str
    context: str
    valid_from: str | None
    valid_until: str | None
    created_at: str


def derive(tx: "Transaction", page_id: int, page: "Page") -> None:
    """Update the links derived from a page's text. Links that are still in the text keep their row and id."""
    references = {_identity(reference): reference for reference in find_references(page)}
    stored = {
        (target, relationship, since): (link, *rest)
        for link, target, relationship, since, *rest in tx.execute(
            "SELECT id, target, relationship, valid_from, valid_until, context, part, line FROM links"
            " WHERE from_page_id = ? AND source_kind = 'wiki_link'",
            (page_id,),
        )
    }
    gone = [(row[0],) for key, row in stored.items() if key not in references]
    if gone:
        tx.executemany("DELETE FROM links WHERE id = ?", gone)
    moved = [
        (reference.valid_until, reference.context, reference.part, reference.line, stored[key][0])
        for key, reference in references.items()
        if key in stored
        and stored[key][1:] != (reference.valid_until, reference.context, reference.part, reference.line)
    ]
    if moved:
        tx.executemany(
            "UPDATE links SET valid_until = ?, context = ?, part = ?, line = ? WHERE id = ?", moved
        )
    new = [reference for key, reference in references.items() if key not in stored]
    if new:
        _add_references(tx, page_id, page.slug, new)


def _identity(reference: LinkReference) -> tuple[str, str, str | None]:
    return reference.target, reference.relationship, reference.valid_from


def _add_references(tx: "Transaction", page_id: int, slug: str, new: list[LinkReference]) -> None:
    collection, now = _require_row(
        tx,
        "SELECT c.name, p.updated_at FROM pages p JOIN collections c ON c.id = p.collection_id WHERE p.id = ?",
        (page_id,),
    )
    add_from_texts(tx, [(page_id, slug, new)], collection, now)


def add_from_texts(
    tx: "Transaction", new: list[tuple[int, str, list[LinkReference]]], collection: str, now: str
) -> None:
    """Insert derived links, none of which may be stored yet. Each item of `new` is (page id, slug, references)."""
    keys = {reference.key for _, _, named in new for reference in named}
    candidates = _candidates(tx, keys, "main.") if new else {}
    tx.executemany(
        "INSERT INTO links (from_page_id, to_page_id, relationship, context, source_kind, valid_from,"
        " valid_until, created_at, target, target_key, part, line)"
        " VALUES (?, ?, ?, ?, 'wiki_link', ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(
                    page_id,
                    resolve_link(reference.target, slug, collection, candidates.get(reference.key, ())),
                ),
                *(
                    reference.relationship,
                    reference.context,
                    reference.valid_from,
                    reference.valid_until,
                    now,
                ),
                *(reference.target, reference.key, reference.part, reference.line),
            )
            for page_id, slug, named in new
            for reference in {_identity(reference): reference for reference in named}.values()
        ],
    )


def resolve_again(tx: "Transaction", names: "Iterable[str]") -> None:
    """Resolve again all derived links whose target, as written, has one of these normalized names."""
    # Stored targets must not depend on the caller. With `main.`, the tables are read instead of the views of a
    # restricted caller, so pages that this caller cannot see count too.
    rows = tx.execute(
        "SELECT l.id, l.target, l.target_key, l.to_page_id, p.slug, c.name FROM json_each(?) AS wanted"
        " CROSS JOIN main.links AS l ON l.target_key = wanted.value JOIN main.pages AS p ON p.id = l.from_page_id"
        " JOIN main.collections AS c ON c.id = p.collection_id",
        (_sorted_json(names),),
    ).fetchall()
    if rows:
        tx.executemany("UPDATE links SET to_page_id = ? WHERE id = ?", changed_targets(tx, rows))


def changed_targets(
    tx: "Transaction", rows: list[tuple[Any, ...]], schema: str = "main."
) -> list[tuple[int | None, int]]:
    """Return (new target page, link id) for each link that now resolves to a different page.

    Each row is (link id, target, normalized target, id of the current target page), then slug and collection of the
    page that contains the link.
    """
    candidates = _candidates(tx, {row[2] for row in rows}, schema)
    changed = []
    for link, target, key, before, slug, collection in rows:
        page_id = resolve_link(target, slug, collection, candidates.get(key, ()))
        if page_id != before:
            changed.append((page_id, link))
    return changed


def differ_from_text(tx: "Transaction", page_id: int, page: "Page") -> bool:
    """Return True if the stored derived links of a page differ from the links in its text."""
    rows = tx.execute(
        "SELECT target, target_key, relationship, context, part, line, valid_from, valid_until FROM links"
        " WHERE from_page_id = ? AND source_kind = 'wiki_link'",
        (page_id,),
    )
    return set(rows) != {tuple(reference) for reference in find_references(page)}


def correct_targets(tx: "Transaction") -> None:
    """Resolve all derived links again, except those from or to hidden pages."""
    rows = tx.execute(_ALL_TARGETS).fetchall()
    tx.executemany("UPDATE links SET to_page_id = ? WHERE id = ?", changed_targets(tx, rows))


_ALL_TARGETS = (
    "SELECT l.id, l.target, l.target_key, l.to_page_id, p.slug, c.name FROM links AS l"
    " JOIN pages AS p ON p.id = l.from_page_id JOIN collections AS c ON c.id = p.collection_id"
    " LEFT JOIN pages AS b ON b.id = l.to_page_id"
    " WHERE l.source_kind = 'wiki_link' AND b.quarantined_at IS NULL AND p.quarantined_at IS NULL"
)


def wrong_targets(tx: "Transaction") -> list[int]:
    """Return the ids of derived links whose stored target is wrong.

    Links from or to hidden pages are skipped, because they are resolved again when the page becomes visible.
    """
    rows = tx.execute(_ALL_TARGETS).fetchall()
    return [link for _, link in changed_targets(tx, rows)]


def _candidates(tx: "Transaction", keys: "Iterable[str]", schema: str = "") -> dict[str, list[LinkCandidate]]:
    """Return the visible pages with one of these normalized names, by name."""
    candidates: dict[str, list[LinkCandidate]] = {}
    for name, page_id, collection, slug, kind, former in tx.execute(
        "SELECT n.name, p.id, c.name, p.slug, n.kind,"  # noqa: S608 (fixed schemas)
        f" (SELECT json_group_array(slug) FROM {schema}redirects WHERE page_id = p.id)"
        f" FROM json_each(?) AS wanted CROSS JOIN {schema}page_names AS n ON n.name = wanted.value"
        f" JOIN {schema}pages AS p ON p.id = n.page_id AND p.quarantined_at IS NULL"
        f" JOIN {schema}collections AS c ON c.id = p.collection_id ORDER BY p.id",
        (_sorted_json(keys),),
    ):
        slugs = tuple(json.loads(former)) if former != "[]" else ()
        candidates.setdefault(name, []).append(LinkCandidate(page_id, collection, slug, kind, slugs))
    return candidates


def resolve_targets(db: "Database", targets: list[str], collection: str) -> dict[str, int]:
    """Return the id of the page that each link target resolves to when written in a page of the collection.

    Unresolved targets are left out.
    """
    candidates = _candidates(db.connection, {target_key(target) for target in targets})
    page_ids = {
        target: resolve_link(target, "", collection, candidates.get(target_key(target), ()))
        for target in targets
    }
    return {target: page_id for target, page_id in page_ids.items() if page_id is not None}


def detach_page(tx: "Transaction", page_id: int) -> set[str]:
    """Unset the target of derived links to a page that is about to be removed.

    Return the names of the page, to be passed to `resolve_again` after the removal.
    """
    tx.execute(
        "UPDATE links SET to_page_id = NULL WHERE to_page_id = ? AND source_kind = 'wiki_link'", (page_id,)
    )
    return {name for (name,) in tx.execute("SELECT name FROM page_names WHERE page_id = ?", (page_id,))}


def add(
    tx: "Transaction",
    from_id: int,
    to_id: int,
    *,
    relationship: str,
    context: str,
    valid_from: str | None,
    valid_until: str | None,
    now: str,
    beside_texts: bool = False,
) -> int:
    """Add a link and return its id.

    Raise LinkOverlaps or TextSaysSo if there is a link with the same pages and relationship in an overlapping
    period. With `beside_texts`, which is used to restore links, a link derived from page text may overlap.
    """
    try:
        _refuse_overlap(tx, from_id, to_id, relationship, valid_from, valid_until)
    except TextSaysSo:
        if not beside_texts:
            raise
    tx.execute(
        "INSERT INTO links (from_page_id, to_page_id, relationship, context, valid_from, valid_until,"
        " created_at, trust) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (from_id, to_id, relationship, context, valid_from, valid_until, now, tx.trust),
    )
    return tx.last_insert_rowid()


def _refuse_overlap(
    tx: "Transaction",
    from_id: int,
    to_id: int,
    relationship: str,
    valid_from: str | None,
    valid_until: str | None,
    besides: int = 0,
) -> None:
    # As in checks.check_links: a missing start date counts as the end date, or as 9999-12-31 if both are
    # missing.
    overlap = tx.execute(
        "WITH given (first, last) AS (SELECT coalesce(?1, ?2, '9999-12-31'), coalesce(?2, '~'))"
        " SELECT id, source_kind FROM links, given WHERE from_page_id = ?3 AND to_page_id = ?4"
        " AND relationship = ?5 AND id <> ?6 AND coalesce(valid_from, valid_until, '9999-12-31') < given.last"
        " AND given.first < coalesce(valid_until, '~') ORDER BY source_kind LIMIT 1",
        (valid_from, valid_until, from_id, to_id, relationship, besides),
    ).fetchone()
    if overlap:
        kind = TextSaysSo if overlap[1] == FROM_TEXT else LinkOverlaps
        raise kind(id=overlap[0], relationship=relationship)


def classes(db: "Database | Transaction", ids: "Iterable[int]") -> dict[int, int]:
    """Return the trust classes of links by id. A link derived from page text has the class of its line."""
    rows = db.rows(
        "SELECT id, from_page_id, source_kind, trust, context FROM links"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    of_pages = trust.of_pages(db, {row[1] for row in rows if row[2] == FROM_TEXT})
    return {
        link_id: of_pages[page_id].of_line(context) if page_id in of_pages else own
        for link_id, page_id, _, own, context in rows
    }


def require_added(db: "Database", link_id: int) -> LinkRow:
    """Return an explicitly added link; raise NotFound, or LinkFromText for a link derived from page text."""
    rows = _select_links(db, "l.id = ?", (link_id,), "all", "")
    if not rows:
        raise NotFound(what="link", name=link_id, hint=" `quaid links SLUG` shows the ids.")
    if rows[0].source_kind == FROM_TEXT:
        raise LinkFromText(slug=rows[0].from_slug, id=link_id)
    return rows[0]


def between(db: "Database", from_id: int, to_id: int, relationship: str | None) -> list[LinkRow]:
    """Return the links from one page to another with this relationship, or with any relationship if it is None."""
    where, values = "l.from_page_id = ? AND l.to_page_id = ?", [from_id, to_id]
    rows = _select_links(db, where, tuple(values), "all", "")
    return [link for link in rows if relationship in (None, link.relationship)]


def added_links(db: "Database", first: int, last: int, page_id: int | None = None) -> list[AddedLink]:
    """Return the explicitly added links with ids from `first` to `last`, ordered by id.

    Links of quarantined pages are left out. With `page_id`, return only the links from or to that page, also if one
    of the pages is quarantined.
    """
    rows = db.rows(
        "SELECT l.id, ca.name, a.slug, cb.name, b.slug, l.relationship, l.context, l.valid_from, l.valid_until,"
        " l.created_at FROM links AS l CROSS JOIN pages AS a ON a.id = l.from_page_id"
        " JOIN collections AS ca ON ca.id = a.collection_id JOIN pages AS b ON b.id = l.to_page_id"
        " JOIN collections AS cb ON cb.id = b.collection_id"
        " WHERE l.id BETWEEN ?1 AND ?2 AND l.source_kind <> 'wiki_link' AND l.from_page_id <> l.to_page_id"
        " AND iif(?3 IS NULL, a.quarantined_at IS NULL AND b.quarantined_at IS NULL, ?3 IN (a.id, b.id))"
        " ORDER BY l.id",
        (first, last, page_id),
    )
    return [AddedLink(*row) for row in rows]


def outgoing(db: "Database", page_id: int, temporal: Temporal, day: str) -> list[LinkRow]:
    """Return the links from a page, with unresolved links last. `temporal` and `day` select links by validity."""
    return _merge_duplicates(_select_links(db, "l.from_page_id = ?", (page_id,), temporal, day))


def incoming(db: "Database", page_id: int, temporal: Temporal, day: str) -> list[LinkRow]:
    """Return the links to a page. `temporal` and `day` select links by validity."""
    return _merge_duplicates(_select_links(db, "l.to_page_id = ?", (page_id,), temporal, day))


def _merge_duplicates(rows: list[LinkRow]) -> list[LinkRow]:
    """Merge links that differ only in the name by which the text refers to the target page."""
    merged: dict[tuple[Any, ...], LinkRow] = {}
    for link in sorted(rows, key=lambda link: link.id):
        ends = (link.from_collection, link.from_slug, link.to_collection, link.to_slug, link.resolved)
        key = (*ends, *link[3:6], link.source_kind)
        first = merged.get(key)
        merged[key] = first._replace(as_written=first.as_written + link.as_written) if first else link
    by_id = {link.id: link for link in merged.values()}
    return [by_id[link.id] for link in rows if link.id in by_id]


def count(db: "Database", page_ids: list[int] | None = None) -> int:
    """Count all links, or only the links derived from the text of these pages.

    Merged links count once. Links to pages of websites, which are not listed, do not count.
    """
    among = " AND from_page_id IN (SELECT value FROM json_each(?))" if page_ids is not None else ""
    of_text = " AND source_kind = 'wiki_link'" if page_ids is not None else ""
    pages = () if page_ids is None else (str(page_ids),)
    (hidden,) = db.one(
        f"SELECT count(*) FROM links WHERE to_page_id IS NULL AND NOT target {_NAMES_A_PAGE}{among}",  # noqa: S608
        pages,
    ) or (0,)
    (rows,) = db.one(f"SELECT count(*) FROM links WHERE 1{of_text}{among}", pages) or (0,)  # noqa: S608 (fixed parts)
    # Duplicates are rare, and the index shows which pairs of pages have several links, so only those rows are
    # read.
    (again,) = db.one(
        "SELECT coalesce(sum(alike - 1), 0) FROM (SELECT count(*) AS alike FROM ("  # noqa: S608 (fixed parts)
        f"SELECT from_page_id, to_page_id FROM links WHERE to_page_id IS NOT NULL{among}"
        " GROUP BY from_page_id, to_page_id HAVING count(*) > 1) AS pair CROSS JOIN links AS l"
        " ON l.from_page_id = pair.from_page_id AND l.to_page_id = pair.to_page_id"
        f" WHERE l.source_kind = 'wiki_link' GROUP BY {_LINK_KEY})",
        pages,
    ) or (0,)
    return int(rows - again - hidden)


def listing(
    db: "Database", page_id: int, direction: Literal["out", "in"], temporal: Temporal, day: str, limit: int
) -> tuple[list[LinkRow], int]:
    """Return the first `limit` links from or to a page, and the total number of such links.

    Incoming links are read only up to the limit, because some pages have tens of thousands of them.
    """
    if direction == "out":
        rows = outgoing(db, page_id, temporal, day)
        return rows[:limit], len(rows)
    condition, days = _temporal_condition(temporal, day)
    ids = [
        row[0]
        for row in db.rows(
            "SELECT min(l.id) FROM links AS l WHERE l.to_page_id = ?"  # noqa: S608 (fixed parts)
            f"{_BOTH_SHOWN.format(end='from_page_id')}{condition} GROUP BY {_LINK_KEY}, l.source_kind"
            " ORDER BY l.relationship, coalesce(l.valid_from, '') DESC, min(l.id)",
            (page_id, *days),
        )
    ]
    first = str(ids[:limit])
    return _select_links(db, "l.id IN (SELECT value FROM json_each(?))", (first,), "all", ""), len(ids)


_LINK_KEY = "l.from_page_id, l.to_page_id, l.relationship, l.valid_from, l.valid_until"
"""Columns by which derived links are merged."""

# SQL condition that the page in the column `end` is visible and that the link does not lead to its own page.
# The index hint avoids reading the page row.
_BOTH_SHOWN = (
    " AND l.to_page_id IS NOT l.from_page_id AND EXISTS (SELECT 1 FROM pages AS p INDEXED BY pages_by_filter"
    " WHERE p.id = l.{end} AND p.quarantined_at IS NULL)"
)


def edges(
    db: "Database", page_ids: list[int], temporal: Temporal, day: str, limit: int, *, among: bool = False
) -> list[GraphLink]:
    """Return the links from or to these pages, at most `limit` per direction.

    With `among`, return at most `limit` links between these pages, with duplicates merged.
    """
    condition, values = _temporal_condition(temporal, day)
    if among:
        # The unary plus keeps SQLite from trying every pair of pages.
        rows = db.rows(
            f"SELECT min(l.id), {_LINK_KEY} FROM json_each(?1) AS w"  # noqa: S608 (fixed parts)
            " CROSS JOIN links AS l ON l.from_page_id = w.value"
            " WHERE +l.to_page_id IN (SELECT value FROM json_each(?1)) AND l.to_page_id <> l.from_page_id"
            f"{condition} GROUP BY {_LINK_KEY} ORDER BY min(l.id) LIMIT ?",
            (str(page_ids), *values, limit),
        )
        return [GraphLink(*row) for row in rows]
    links_by_id: dict[int, GraphLink] = {}
    for near, far in (("from_page_id", "to_page_id"), ("to_page_id", "from_page_id")):
        rows = db.rows(
            f"SELECT l.id, {_LINK_KEY} FROM json_each(?) AS w CROSS JOIN links AS l ON l.{near} = w.value"  # noqa: S608
            f" WHERE l.to_page_id IS NOT NULL{_BOTH_SHOWN.format(end=far)}{condition} LIMIT ?",
            (str(page_ids), *values, limit),
        )
        links_by_id.update((row[0], GraphLink(*row)) for row in rows)
    return list(links_by_id.values())


class MapNode(NamedTuple):
    """A page in the graph of all pages."""

    slug: str
    title: str
    type: str
    wing: str
    updated: str
    """The day of the last change."""
    links: int = 0
    """Number of links from and to the page."""


def whole_graph(db: "Database", limit: int) -> tuple[dict[int, MapNode], list[GraphLink], int]:
    """Return up to `limit` pages by id, the links between them, and the total number of pages.

    The pages with the most links come first.
    """
    pages = {
        row[0]: MapNode(address(row[1], row[2]), *row[3:])
        for row in db.rows(
            "SELECT p.id, c.name, p.slug, p.title, p.type, p.wing, substr(p.updated_at, 1, 10)"
            " FROM pages AS p JOIN collections AS c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL"
        )
    }
    rows = db.rows(
        f"SELECT min(l.id), {_LINK_KEY} FROM links AS l"  # noqa: S608 (fixed parts)
        f" WHERE l.to_page_id IS NOT NULL AND l.to_page_id <> l.from_page_id GROUP BY {_LINK_KEY}"
    )
    edges = [GraphLink(*row) for row in rows if row[1] in pages and row[2] in pages]
    counts = Counter(end for link in edges for end in (link.from_id, link.to_id))
    chosen = sorted(pages, key=lambda page: (-counts[page], page))[:limit]
    if len(chosen) < len(pages):
        kept = set(chosen)
        edges = [link for link in edges if link.from_id in kept and link.to_id in kept]
    return {id: pages[id]._replace(links=counts[id]) for id in chosen}, edges, len(pages)


MAX_MENTIONS = 20
"""A title that occurs on more pages than this is too common to suggest links."""


def unlinked_mentions(db: "Database", page_id: int, title: str) -> list[int]:
    """Return the visible pages whose text contains this page's title, and that have no link to or from it.

    Return [] for a title with fewer than four characters, or on more than MAX_MENTIONS pages.
    """
    words = title.replace('"', " ").strip()
    if len(words) < 4:
        return []
    rows = db.rows(
        "SELECT f.rowid, EXISTS (SELECT 1 FROM links WHERE from_page_id = f.rowid AND to_page_id = ?1)"
        " OR EXISTS (SELECT 1 FROM links WHERE from_page_id = ?1 AND to_page_id = f.rowid)"
        " FROM page_fts AS f WHERE page_fts MATCH ?2 AND f.rowid <> ?1 ORDER BY f.rowid LIMIT ?3",
        (page_id, f'{{compiled_truth timeline}} : "{words}"', MAX_MENTIONS + 1),
    )
    return [] if len(rows) > MAX_MENTIONS else [row[0] for row in rows if not row[1]]


def _select_links(
    db: "Database", where: str, values: tuple[Any, ...], temporal: Temporal, day: str
) -> list[LinkRow]:
    condition, days = _temporal_condition(temporal, day)
    rows = db.rows(
        "SELECT l.id, a.slug, coalesce(b.slug, replace(ltrim(l.target, '/'), '//', '/')), l.relationship,"  # noqa: S608
        " l.valid_from, l.valid_until, l.context, l.source_kind, b.id IS NOT NULL, ca.name,"
        " coalesce(cb.name, ca.name), l.part, l.line, l.created_at, l.target"
        " FROM links AS l JOIN pages AS a ON a.id = l.from_page_id AND a.quarantined_at IS NULL"
        " JOIN collections AS ca ON ca.id = a.collection_id"
        " LEFT JOIN pages AS b ON b.id = l.to_page_id AND b.quarantined_at IS NULL"
        " LEFT JOIN collections AS cb ON cb.id = b.collection_id"
        f" WHERE {where} AND (b.id IS NOT NULL OR l.target {_NAMES_A_PAGE})"
        f" AND l.from_page_id IS NOT l.to_page_id{condition}"
        " ORDER BY b.id IS NULL, l.relationship, coalesce(l.valid_from, '') DESC, 3, l.id",
        (*values, *days),
    )
    return [
        LinkRow._make((*row[:8], bool(row[8]), *row[9:14], (row[14],) if row[14] else ())) for row in rows
    ]


def _temporal_condition(temporal: Temporal, day: str) -> tuple[str, tuple[str, ...]]:
    """Return an SQL condition and its parameters that select links by their validity on a day."""
    if temporal == "current":
        return (
            " AND (l.valid_from IS NULL OR l.valid_from <= ?) AND (l.valid_until IS NULL OR l.valid_until > ?)",
            (day, day),
        )
    if temporal == "historical":
        return " AND l.valid_until <= ?", (day,)
    return "", ()


def add_redirect(tx: "Transaction", collection_id: int, slug: str, page_id: int, now: str) -> None:
    """Redirect an old slug to a page."""
    tx.execute(
        "INSERT OR REPLACE INTO redirects (collection_id, slug, page_id, created_at) VALUES (?, ?, ?, ?)",
        (collection_id, slug, page_id, now),
    )


def _require_row(tx: "Transaction", sql: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = tx.execute(sql, values).fetchone()
    assert row is not None
    return row


def _sorted_json(values: "Iterable[str]") -> str:
    return json.dumps(sorted(values), ensure_ascii=False)
