"""The full-text indexes of pages, and queries that also work with the indexes of chunks and turns.

A turn is a message of a conversation. page_fts contains all visible pages and is maintained by triggers.
page_fts_unspaced contains the visible pages with scripts written without spaces between words. Runs of such
characters are stored as overlapping bigrams followed by the last character alone. A query finds a word of two
characters as one token, a longer word as a phrase and a single character as a prefix.
"""

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import InvalidArgument, InvalidSearch
from quaid.model.plain_text import cut_cjk, has_cjk
from quaid.storage.sqlite.errors import translate_sqlite_errors

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction, Values

SPACED = "page_fts"
UNSPACED = "page_fts_unspaced"
CHUNKS = "chunk_fts"
TURNS = "turn_fts"

BM25 = {
    SPACED: "bm25(page_fts, 10.0, 5.0, 1.0, 0.8)",  # title, slug, compiled_truth, timeline
    UNSPACED: "bm25(page_fts_unspaced, 10.0, 1.0)",  # title and slug, body
    CHUNKS: "bm25(chunk_fts, 2.0, 2.0, 1.0)",  # title, heading_path, chunk_text
    TURNS: "bm25(turn_fts)",
}
NAME_COLUMNS = {SPACED: "{title slug}", UNSPACED: "{title}"}
"""The columns of each index that contain the names of a page."""

COUNT_WINDOWS, COUNT_WINDOW = 4, 256
"""`count` samples COUNT_WINDOWS windows, each of COUNT_WINDOW row ids."""

MOST_COUNTED = 2_000
"""`document_counts` is exact up to this many matches."""

ESTIMATE_SECONDS = 1.0
"""Seconds for which `document_counts` keeps using an estimate after writes."""

MOST_CACHED_COUNTS = 10_000
"""`document_counts` clears its caches when they contain more words than this."""

MOST_SEGMENTS = 4
"""`merge_segments` merges an index that has more segments than this. Each word is looked up in every segment."""

MERGED_PAGES = 500
"""Each transaction of `merge_segments` writes about this many database pages, which takes 30 ms."""


class SearchFilters(NamedTuple):
    """Filters that restrict a search to some pages. None means no restriction.

    A new filter needs a condition in _PAGE_CONDITIONS below and one in chunks._CHUNK_CONDITIONS. If the latter
    reads a column of pages, vector_index._filtered_pages must select that column.
    """

    type: str | None = None
    wing: str | None = None
    tag: str | None = None
    collection: str | None = None
    since: str | None = None
    """The first day. Chunks are filtered by their day, or else by the day of their page (see chunks.PAGE_DAY).

    Page indexes are filtered by the day of the last change of the page.
    """
    until: str | None = None
    trust: int | None = None
    """Leave out pages whose lines all have this trust class or a less trusted one."""

    @property
    def trust_limit(self) -> int | None:
        """The lowest trust class that is not left out, or None if there is no such filter."""
        return None if self.trust is None else self.trust - 1


# The page is looked up in a narrow index, because reading the page row itself takes six times as long.
_PAGE_LOOKUP = (
    "EXISTS (SELECT 1 FROM pages AS p INDEXED BY pages_by_filter"
    " WHERE p.id = {page} AND p.quarantined_at IS NULL AND p."
)
_PAGE_CONDITIONS = {
    "type": _PAGE_LOOKUP + "type = ?)",
    "wing": _PAGE_LOOKUP + "wing = ?)",
    "tag": "EXISTS (SELECT 1 FROM tags WHERE page_id = {page} AND tag = ?)",
    "collection": _PAGE_LOOKUP + "collection_id = (SELECT id FROM collections WHERE name = ?))",  # noqa: S608 (no value is in it)
    "since": "EXISTS (SELECT 1 FROM pages AS p NOT INDEXED WHERE p.id = {page} AND p.updated_at >= ?)",
    "until": "EXISTS (SELECT 1 FROM pages AS p NOT INDEXED WHERE p.id = {page}"
    " AND substr(p.updated_at, 1, 10) <= ?)",
    "trust": "NOT EXISTS (SELECT 1 FROM page_trust WHERE page_id = {page} AND highest >= ?)",
}


# Indexing


def index_page(tx: "Transaction", page_id: int, title: str, slug: str, truth: str, timeline: str) -> None:
    """Update the entry of a page in page_fts_unspaced. page_fts is maintained by triggers."""
    remove_page(tx, page_id)
    if has_cjk(title) or has_cjk(truth) or has_cjk(timeline):
        add_page(tx, page_id, title, slug, truth, timeline)


def add_page(
    tx: "Transaction", page_id: int, title: str, slug: str, truth: str, timeline: str, schema: str = ""
) -> None:
    """Insert a page into page_fts_unspaced, which must not contain it yet."""
    tx.execute(
        f"INSERT INTO {schema}page_fts_unspaced (rowid, title, body) VALUES (?, ?, ?)",  # noqa: S608
        (page_id, cut_cjk(f"{title}\n{slug}"), cut_cjk(f"{truth}\n{timeline}")),
    )


def remove_page(tx: "Transaction", page_id: int) -> None:
    """Remove a page from page_fts_unspaced, if present."""
    # A lookup takes a third of the time of a DELETE that matches no row.
    if tx.execute("SELECT 1 FROM main.page_fts_unspaced_docsize WHERE id = ?", (page_id,)).fetchone():
        tx.execute("DELETE FROM page_fts_unspaced WHERE rowid = ?", (page_id,))


# Matching


_INDEXED_ROWS = {
    SPACED: "pages",
    UNSPACED: "page_fts_unspaced_docsize",
    CHUNKS: "chunks",
    TURNS: "conversation_turns",
}


class TextIndex:
    """Queries one full-text index. Expressions are FTS5 queries; better matches have higher scores."""

    def __init__(self, db: "Database", index: str) -> None:
        self._db, self._index = db, index

    def highest_id(self) -> int:
        """Return the highest id in the index, an upper bound of the number of its rows; 0 if it is empty."""

        def read() -> int:
            row = self._db.one(f"SELECT max(id) FROM {_INDEXED_ROWS[self._index]}")  # noqa: S608
            return row[0] or 0 if row else 0

        return self._db.cached(f"highest id in {self._index}", read)

    def scores_of(self, expression: str, ids: list[int]) -> dict[int, float]:
        """Return the scores of the rows with these ids that match, by id."""
        index = self._index
        # The unary plus prevents FTS5 from starting a new search for every id.
        return dict(
            self._db.rows(
                f"SELECT rowid, -{BM25[index]} FROM {index} WHERE {index} MATCH ?"  # noqa: S608
                " AND +rowid IN (SELECT value FROM json_each(?))",
                (expression, str(ids)),
            )
        )

    def matching(self, expression: str, ids: list[int]) -> list[int]:
        """Return the ids, out of `ids`, whose rows match the expression."""
        index = self._index
        rows = self._db.rows(
            f"SELECT rowid FROM {index} WHERE {index} MATCH ?"  # noqa: S608
            " AND +rowid IN (SELECT value FROM json_each(?))",
            (expression, str(ids)),
        )
        return [row_id for (row_id,) in rows]

    def terms_in_row(self, row_id: int, terms: list[str]) -> list[str]:
        """Return the expressions, out of `terms`, that this row matches."""
        return self._terms_where("{index} MATCH term.value AND rowid = ?", terms, row_id)

    def known_terms(self, terms: list[str]) -> list[str]:
        """Return the expressions, out of `terms`, that at least one row matches."""
        return self._terms_where("{index} MATCH term.value", terms)

    def _terms_where(self, condition: str, terms: list[str], *values: int) -> list[str]:
        where = condition.format(index=self._index)
        rows = self._db.rows(
            f"SELECT value FROM json_each(?) AS term WHERE EXISTS (SELECT 1 FROM {self._index} WHERE {where})",  # noqa: S608
            (json.dumps(terms), *values),
        )
        return [term for (term,) in rows]

    def terms(self, prefix: str, shortest: int, longest: int) -> list[tuple[str, int]]:
        """Return the terms of this length that begin with a prefix, with the number of rows that contain each.

        Terms are lower-cased and stemmed.
        """
        return query_vocabulary(
            self._db,
            self._index,
            "row",
            "SELECT term, doc FROM {} WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? AND doc > 0",
            (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), shortest, longest),
        )

    def first_row_with_term(self, term: str) -> int | None:
        """Return the id of a row that contains a term, which is lower-cased and stemmed, or None."""
        sql = "SELECT doc FROM {} WHERE term = ? LIMIT 1"
        rows = query_vocabulary(self._db, self._index, "instance", sql, (term,))
        return rows[0][0] if rows else None

    def matching_pages(self, expression: str, filters: SearchFilters, limit: int) -> list[int]:
        """Return the ids of up to `limit` matching pages, last added first.

        This is far cheaper than ranking all matches.
        """
        index = self._index
        allowed, values = _filter_sql(index, filters)
        rows = self._db.rows(
            f"SELECT rowid FROM {index} WHERE {index} MATCH ?{allowed} ORDER BY rowid DESC LIMIT ?",  # noqa: S608
            (expression, *values, limit),
        )
        return [page_id for (page_id,) in rows]

    def match(
        self,
        expression: str,
        filters: SearchFilters,
        limit: int,
        *,
        first: list[int] | None = None,
        above: int = 0,
    ) -> list[tuple[int, float]]:
        """Return ids and scores of the best `limit` matches, best first; rows in `first` come before all others.

        Only rows with an id greater than `above` are considered.
        """
        index = self._index
        allowed, values = _filter_sql(index, filters)
        order = "score DESC, rowid DESC"
        if first:
            order = f"{index}.rowid IN (SELECT value FROM json_each(?)) DESC, {order}"  # noqa: S608
        # Ordering by bm25() keeps a heap of `limit` rows; ordering by the rank column of FTS5 sorts all rows.
        return self._db.rows(
            f"SELECT rowid, -{BM25[index]} AS score FROM {index}"  # noqa: S608
            f" WHERE {index} MATCH ? AND rowid > ?{allowed} ORDER BY {order} LIMIT ?",
            (expression, above, *values, *([str(first)] if first else []), limit),
        )

    def match_raw(self, query: str, filters: SearchFilters, limit: int) -> list[tuple[int, float]]:
        """Return the best `limit` matches of an FTS5 expression that a user wrote.

        Raise InvalidSearch if the expression is invalid.
        """
        # Imported late, because chunks.py imports this module in commands that do not open a database.
        import apsw

        try:
            return self.match(query, filters, limit)
        except (apsw.SQLError, InvalidArgument) as failure:
            raise InvalidSearch(query=query, problem=str(failure).rstrip(".")) from failure

    def count(self, expression: str, filters: SearchFilters) -> int:
        """Estimate the number of matching rows (pages, chunks or turns) from a few windows of ids.

        Filters can be used only with an index of pages. The time of an exact count grows with the number of matches;
        this estimate takes a third of a millisecond for any word.
        """
        index, highest = self._index, self.highest_id()
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
        row = self._db.one(
            f"SELECT count(*) FROM json_each(?) AS start CROSS JOIN {index} WHERE {index} MATCH ?"  # noqa: S608
            f" AND {index}.rowid BETWEEN start.value + 1 AND start.value + ?{allowed}",
            (str(starts), expression, width, *values),
        )
        return row[0] * highest // (len(starts) * width) if row and row[0] else 0

    def document_counts(self, terms: list[str]) -> dict[str, int]:
        """Return the number of rows of the index (pages, chunks or turns) that contain each term, by term.

        Counts below MOST_COUNTED are exact and take a third of the time of `count`; higher counts are
        estimated. Counts are cached until the next write, because most queries share common words. Estimates are
        cached for at least ESTIMATE_SECONDS, because a write hardly changes them.
        """
        index = self._index
        counts: dict[str, int] = self._db.cached(f"words counted in {index}", dict)
        estimates: dict[str, tuple[int, float]] = self._db.cached(
            f"words estimated in {index}", dict, lambda kept: kept
        )
        for cached in (counts, estimates):
            if len(cached) > MOST_CACHED_COUNTS:
                cached.clear()
        now = time.monotonic()
        found = {
            term: counts[term] if term in counts else estimates[term][0]
            for term in terms
            if term in counts or estimates.get(term, (0, now))[1] > now
        }
        new = [term for term in dict.fromkeys(terms) if term not in found]
        if new:
            rows = self._db.rows(
                f"SELECT value, (SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {index} MATCH term.value LIMIT ?))"  # noqa: S608
                " FROM json_each(?) AS term",
                (MOST_COUNTED, json.dumps(new)),
            )
            for term, pages in rows:
                found[term] = counts[term] = pages
                if pages >= MOST_COUNTED:
                    found[term] = counts[term] = max(pages, self.count(term, SearchFilters()))
                    estimates[term] = counts[term], now + ESTIMATE_SECONDS
        return {term: found[term] for term in terms}

    def pages_named(self, phrase: str, names: list[str], slug: str, filters: SearchFilters) -> list[int]:
        """Return the ids of pages with one of the names as title, then of pages with the slug.

        `names` are case variants of one name, and `phrase` is that name as an FTS5 phrase. ASCII case is ignored in
        titles.
        """
        index = self._index
        allowed, values = _filter_sql(index, filters)
        places = ", ".join("?" * len(names))
        titled = self._db.rows(
            f"SELECT {index}.rowid FROM {index} CROSS JOIN pages AS named ON named.id = {index}.rowid"  # noqa: S608
            f" WHERE {index} MATCH ? AND named.title COLLATE NOCASE IN ({places}){allowed}"
            f" ORDER BY {index}.rowid",
            (f"title : ^ {phrase}", *names, *values),
        )
        allowed, values = _filter_sql("page", filters, "id")
        with_slug = self._db.rows(
            "SELECT page.id FROM pages AS page WHERE page.collection_id IN (SELECT id FROM collections)"  # noqa: S608
            f" AND page.slug = ? AND page.quarantined_at IS NULL{allowed} ORDER BY page.collection_id",
            (slug, *values),
        )
        return [page_id for (page_id,) in titled + with_slug]


def merge_segments(db: "Database") -> None:
    """Merge the segments of indexes with many segments, in short transactions.

    Segments of similar size are merged, so that the time for all merges of an index grows little faster than
    the index.
    """
    for index in BM25:
        row = db.one(f"SELECT count(DISTINCT segid) FROM main.{index}_idx")  # noqa: S608
        if row and row[0] > MOST_SEGMENTS:
            command = f"INSERT INTO {index} ({index}, rank) VALUES (?, ?)"  # noqa: S608
            db.write(lambda tx, command=command: tx.execute(command, ("usermerge", 2)))  # type: ignore[misc]
            while db.write(lambda tx, command=command: _changes(tx, command, ("merge", MERGED_PAGES))) > 1:  # type: ignore[misc]
                pass


def _changes(tx: "Transaction", sql: str, values: "Values") -> int:
    """Run a statement and return the number of changed rows, which is 1 for a merge with nothing left to do."""
    before = tx.total_changes()
    tx.execute(sql, values)
    return tx.total_changes() - before


def query_vocabulary(
    db: "Database", index: str, shape: str, sql: str, values: "Values"
) -> list[tuple[Any, ...]]:
    """Run a query on the vocabulary of an index. `{}` in `sql` is replaced by the name of the vocabulary table."""
    table = f"temp.{shape}s_of_{index}"
    schema = "main" if index == TURNS else db.connection.schema
    with db.lock.turn, translate_sqlite_errors(db.path):
        db.connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5vocab ({schema}, {index}, {shape})"
        )
        return db.connection.execute(sql.format(table), values).fetchall()


def _filter_sql(index: str, filters: SearchFilters, id: str = "rowid") -> tuple[str, tuple[Any, ...]]:
    values = {name: value for name, value in zip(filters._fields, filters, strict=True) if value is not None}
    conditions = [" AND " + _PAGE_CONDITIONS[name].format(page=f"{index}.{id}") for name in values]
    return "".join(conditions), tuple(values.values())


class Stemmer:
    """Splits text into stemmed words with the tokenizer of page_fts."""

    def __init__(self, db: "Database") -> None:
        self._tokenize = db.connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])

    def words(self, text: bytes) -> list[tuple[int, int, str]]:
        """Return start, end (in bytes) and stem of each word."""
        import apsw

        return self._tokenize(text, apsw.FTS5_TOKENIZE_DOCUMENT, None)  # type: ignore[return-value]
