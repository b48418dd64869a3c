"""The full-text indexes of pages.

page_fts holds every page and is maintained by triggers. page_fts_unspaced holds the pages with scripts that put no
spaces between words: runs of such scripts are stored as overlapping pairs of characters, each run closed by its last
character alone, so that a word of two characters is one entry, a longer one a phrase and a single character a prefix.
"""

from typing import TYPE_CHECKING, NamedTuple

import apsw

from quaid.errors import InvalidArgument, InvalidSearch
from quaid.model.plain_text import cut_cjk, has_cjk

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database

SPACED = "page_fts"
UNSPACED = "page_fts_unspaced"

BM25 = {
    SPACED: "bm25(page_fts, 10.0, 5.0, 1.0, 0.8)",  # title, slug, compiled_truth, timeline
    UNSPACED: "bm25(page_fts_unspaced, 10.0, 1.0)",  # title and slug, body
}
NAME_COLUMNS = {SPACED: "{title slug}", UNSPACED: "{title}"}
"""The columns that name a page."""

COUNT_WINDOWS, COUNT_WINDOW = 4, 256
"""How many places of an index a count looks at, and how many pages wide each is."""

MOST_COUNTED = 2_000
"""Up to this number everything that holds a word is counted."""


class SearchFilters(NamedTuple):
    """Which pages a search may find. None: any."""

    type: str | None = None
    wing: str | None = None
    tag: str | None = None
    collection: str | None = None
    since: str | None = None
    """The first day: of what happened, where a chunk is dated, else of the page (see store.days)."""
    until: str | None = None


# Each form looks up one page in a narrow index: reading the page's own row costs six times as much.
_PAGE_CONDITION = (
    "EXISTS (SELECT 1 FROM pages AS p INDEXED BY pages_by_filter"
    " WHERE p.id = {page} AND p.quarantined_at IS NULL AND p."
)
_FILTER_CONDITIONS = {
    "type": _PAGE_CONDITION + "type = ?)",
    "wing": _PAGE_CONDITION + "wing = ?)",
    "tag": "EXISTS (SELECT 1 FROM tags WHERE page_id = {page} AND tag = ?)",
    "collection": _PAGE_CONDITION + "collection_id = (SELECT id FROM collections WHERE name = ?))",  # noqa: S608 (no value is in it)
    "since": "EXISTS (SELECT 1 FROM pages AS p NOT INDEXED WHERE p.id = {page} AND p.updated_at >= ?)",
    "until": "EXISTS (SELECT 1 FROM pages AS p NOT INDEXED WHERE p.id = {page}"
    " AND substr(p.updated_at, 1, 10) <= ?)",
}


# Feeding


def index_page(tx: "apsw.Connection", page_id: int, title: str, slug: str, truth: str, timeline: str) -> None:
    """Make the second index hold this page as it is now. The first one is kept by triggers."""
    remove_page(tx, page_id)
    if has_cjk(title) or has_cjk(truth) or has_cjk(timeline):
        add_page(tx, page_id, title, slug, truth, timeline)


def add_page(tx: "apsw.Connection", page_id: int, title: str, slug: str, truth: str, timeline: str) -> None:
    """Put a page with such scripts into the second index, which does not hold it yet."""
    tx.execute(
        "INSERT INTO page_fts_unspaced (rowid, title, body) VALUES (?, ?, ?)",
        (page_id, cut_cjk(f"{title}\n{slug}"), cut_cjk(f"{truth}\n{timeline}")),
    )


def remove_page(tx: "apsw.Connection", page_id: int) -> None:
    """Take a page out of the second index, if it is there."""
    # Looking costs a third of a delete that finds nothing.
    if tx.execute("SELECT 1 FROM page_fts_unspaced_docsize WHERE id = ?", (page_id,)).fetchone():
        tx.execute("DELETE FROM page_fts_unspaced WHERE rowid = ?", (page_id,))


# Matching


def highest_id(db: "Database", index: str) -> int:
    """The id of the newest page in an index, which is at least the number of pages; 0 when it is empty."""
    table = "pages" if index == SPACED else "page_fts_unspaced_docsize"
    row = db.one(f"SELECT max(id) FROM {table}")  # noqa: S608
    return row[0] or 0 if row else 0


def matching_pages(
    db: "Database", index: str, expression: str, filters: SearchFilters, limit: int
) -> list[int]:
    """Some pages that match, the newest first. Far cheaper than ranking them, and it stops at the limit."""
    allowed, values = _filter_sql(index, filters)
    rows = db.rows(
        f"SELECT rowid FROM {index} WHERE {index} MATCH ?{allowed} ORDER BY rowid DESC LIMIT ?",  # noqa: S608
        (expression, *values, limit),
    )
    return [page_id for (page_id,) in rows]


def match(
    db: "Database",
    index: str,
    expression: str,
    filters: SearchFilters,
    limit: int,
    *,
    first: list[int] | None = None,
    above: int = 0,
) -> list[tuple[int, float]]:
    """The best matches with their scores, higher is better: those of `first`, then by score.

    With `above`, only pages with a higher id are looked at.
    """
    allowed, values = _filter_sql(index, filters)
    order = "score DESC, rowid DESC"
    if first:
        order = f"{index}.rowid IN (SELECT value FROM json_each(?)) DESC, {order}"  # noqa: S608
    # Ordering by the function keeps a heap of `limit` rows; ordering by FTS5's own rank sorts all of them.
    return db.rows(
        f"SELECT rowid, -{BM25[index]} AS score FROM {index}"  # noqa: S608
        f" WHERE {index} MATCH ? AND rowid > ?{allowed} ORDER BY {order} LIMIT ?",
        (expression, above, *values, *([str(first)] if first else []), limit),
    )


def match_raw(db: "Database", query: str, filters: SearchFilters, limit: int) -> list[tuple[int, float]]:
    """The best matches of an expression that a user wrote in FTS5's syntax; InvalidSearch when it is none."""
    try:
        return match(db, SPACED, query, filters, limit)
    except (apsw.SQLError, InvalidArgument) as failure:
        raise InvalidSearch(query=query, problem=str(failure).rstrip(".")) from failure


def count(db: "Database", index: str, expression: str, filters: SearchFilters, highest: int) -> int:
    """About how many pages match, seen from a few windows spread over the ids up to `highest`.

    A full count follows the number of matches; this costs a third of a millisecond for any word.
    """
    if highest <= COUNT_WINDOWS * COUNT_WINDOW:
        starts = [0]
        width = highest
    else:
        starts = [
            highest * (2 * place + 1) // (2 * COUNT_WINDOWS) - COUNT_WINDOW // 2
            for place in range(COUNT_WINDOWS)
        ]
        width = COUNT_WINDOW
    allowed, values = _filter_sql(index, filters)
    row = db.one(
        f"SELECT count(*) FROM json_each(?) AS start CROSS JOIN {index} WHERE {index} MATCH ?"  # noqa: S608
        f" AND {index}.rowid BETWEEN start.value + 1 AND start.value + ?{allowed}",
        (str(starts), expression, width, *values),
    )
    return row[0] * highest // (len(starts) * width) if row and row[0] else 0


def document_counts(db: "Database", index: str, terms: list[str], highest: int) -> list[int]:
    """How many pages hold each of the terms: exactly while they are few, which costs a third of `count`."""
    found = []
    for term in terms:
        row = db.one(
            f"SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {index} MATCH ? LIMIT ?)",  # noqa: S608
            (term, MOST_COUNTED),
        )
        held = int(row[0]) if row else 0
        found.append(
            max(held, count(db, index, term, SearchFilters(), highest)) if held == MOST_COUNTED else held
        )
    return found


def pages_titled(
    db: "Database", index: str, phrase: str, names: list[str], filters: SearchFilters
) -> list[int]:
    """The pages whose title is one of the names, ASCII letters in either case; `phrase` is their words."""
    allowed, values = _filter_sql(index, filters)
    places = ", ".join("?" * len(names))
    rows = db.rows(
        f"SELECT {index}.rowid FROM {index} CROSS JOIN pages AS named ON named.id = {index}.rowid"  # noqa: S608
        f" WHERE {index} MATCH ? AND named.title COLLATE NOCASE IN ({places}){allowed}"
        f" ORDER BY {index}.rowid",
        (f"title : ^ {phrase}", *names, *values),
    )
    return [page_id for (page_id,) in rows]


def pages_with_slug(db: "Database", slug: str, filters: SearchFilters) -> list[int]:
    """The pages with this slug, in any collection."""
    allowed, values = _filter_sql("page", filters)
    rows = db.rows(
        "SELECT page.rowid FROM pages AS page WHERE page.collection_id IN (SELECT id FROM collections)"  # noqa: S608
        f" AND page.slug = ? AND page.quarantined_at IS NULL{allowed} ORDER BY page.collection_id",
        (slug, *values),
    )
    return [page_id for (page_id,) in rows]


def _filter_sql(index: str, filters: SearchFilters) -> tuple[str, tuple[str, ...]]:
    given = {name: value for name, value in zip(filters._fields, filters, strict=True) if value is not None}
    return "".join(" AND " + _FILTER_CONDITIONS[name].format(page=f"{index}.rowid") for name in given), tuple(
        given.values()
    )


class Stemmer:
    """The words of a text as page_fts stores them, and where they stand."""

    def __init__(self, db: "Database") -> None:
        self._tokenize = db.connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])

    def words(self, text: bytes) -> list[tuple[int, int, str]]:
        """Begin and end, in bytes, and the stem of each word."""
        return self._tokenize(text, apsw.FTS5_TOKENIZE_DOCUMENT, None)  # type: ignore[return-value]
