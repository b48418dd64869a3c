"""Chunks of pages: writing, full-text matching, reading and dating.

When a page is written again, chunks whose title, headings and text are unchanged keep their rows, so that
they are not indexed or embedded again. A page is dated by `date` in its front matter, else by its slug, else
by `updated` or `created` in its front matter, else by its last change; dates are written as 2024-03-05, or
2024-03 for a month.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model import chunker, plain_text
from quaid.storage import text_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quaid.model.chunker import Chunk
    from quaid.storage.sqlite.connection import Database, Transaction
    from quaid.storage.text_index import SearchFilters

_PLACES = str(list(range(1, 257)))


def _first_day(text: str) -> str:
    """Return an SQL expression for the first day or month in `text`, or NULL."""
    padded = f"(' ' || {text} || ' ')"
    month = f"substr({padded}, place.value + 1, 7)"
    return (
        # This is a fast path, because most values are just a date. The search below takes ten times as long.
        f"CASE WHEN {text} GLOB '[12][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]' THEN {text}"  # noqa: S608
        f" WHEN {text} GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*' THEN (SELECT substr({padded}, place.value + 1,"
        f" CASE WHEN substr({padded}, place.value + 8, 4) GLOB '-[0-3][0-9][^0-9]' THEN 10 ELSE 7 END)"
        f" FROM json_each('{_PLACES}') AS place WHERE substr({padded}, place.value, 9)"
        f" GLOB '[^0-9][0-9][0-9][0-9][0-9]-[01][0-9][^0-9]' AND date({month} || '-01') IS NOT NULL LIMIT 1) END"
    )


def _frontmatter_day(key: str) -> str:
    """Return an SQL expression for the day in a front-matter key. Front matter without the key is not parsed."""
    value = f"p.frontmatter ->> '$.{key}'"
    return f"""CASE WHEN instr(p.frontmatter, '"{key}"') THEN {_first_day(f"({value})")} END"""


def _whole_day(day: str) -> str:
    """Return an SQL expression for `day`, with a month replaced by its first day."""
    return f"substr(({day}) || '-01', 1, 10)"


OWN_DAY = f"coalesce({_frontmatter_day('date')}, {_first_day('p.slug')})"
"""SQL expression for the day that page p is about: its `date`, else a date in its slug, else NULL."""

_OTHER_DAYS = f"{_frontmatter_day('updated')}, {_frontmatter_day('created')}, substr(p.updated_at, 1, 10)"
PAGE_DAY = f"coalesce({OWN_DAY}, {_OTHER_DAYS})"
"""SQL expression for the day of page p: OWN_DAY, else `updated`, `created` or the time of the last change."""

_FIRST_ENTRY = "(SELECT min(date) FROM timeline_entries WHERE page_id = p.id)"

FIRST_STATED_DAY = "nullif(min({}), '~')".format(
    ", ".join(
        f"coalesce({expression}, '~')"
        for expression in (_whole_day(OWN_DAY), _whole_day(_frontmatter_day("created")), _FIRST_ENTRY)
    )
)
"""SQL expression for the earliest of OWN_DAY, `created` and the first timeline entry of page p, or NULL."""

HASH_BYTES = 16

NOTEBOOK_WINDOW = "notebook_window"
"""Config key that overrides how pages of notebooks are chunked."""


PAGES_PER_CUT = 200
"""This many pages are split into chunks per transaction, which takes a fraction of a second."""

MANY_PAGES = 64
"""If at least this many pages are chunked at once, as after an import, the background process has to embed them."""

LAST_IMPORTED_KEY = "last_imported_chunk"
"""Key in quaid_config under which the highest chunk id after the last import of many pages is stored."""

UNCUT_COUNTER = "pages_left_uncut"
"""Config key of a counter that leave_uncut() increments.

When the counter has changed, uncut_pages() checks all pages.
"""


class ChunkRow(NamedTuple):
    """A row of the chunks table."""

    id: int
    page_id: int
    position: int
    kind: str
    text: str
    heading_path: str
    start_line: int
    end_line: int
    tokens: int
    date: str | None


_CHUNK_COLUMNS = (
    "id, page_id, chunk_index, chunk_type, chunk_text, heading_path, start_line, end_line, token_count, date"
)


CHUNK_KINDS = ("truth_section", "timeline_entry")
"""Kinds of chunks: of the compiled truth and of the timeline."""


def heading_at(db: "Database", page_id: int, kind: str, line: int) -> str:
    """Return the heading path of the chunk that contains a line, or "" if there is none."""
    row = db.one(
        "SELECT heading_path FROM chunks WHERE page_id = ? AND chunk_type = ? AND start_line <= ? AND end_line >= ?"
        " ORDER BY chunk_index DESC LIMIT 1",
        (page_id, kind, line, line),
    )
    return str(row[0]) if row else ""


def best_in_page(db: "Database", page_id: int, expression: str) -> ChunkRow | None:
    """Return the chunk of a page that best matches an FTS5 expression, or None if none matches."""
    first, last = db.one("SELECT min(id), max(id) FROM chunks WHERE page_id = ?", (page_id,)) or (None, None)
    row = db.one(
        f"SELECT {_CHUNK_COLUMNS} FROM chunks WHERE id = (SELECT rowid FROM chunk_fts WHERE chunk_fts MATCH ?"  # noqa: S608
        " AND rowid BETWEEN ? AND ? AND rowid IN (SELECT id FROM chunks WHERE page_id = ?)"
        " ORDER BY bm25(chunk_fts) LIMIT 1)",
        (expression, first or 0, last or 0, page_id),
    )
    return ChunkRow(*row) if row else None


def content_hash(title: str, cut: "Chunk") -> bytes:
    """Return the hash of the text that is embedded for a chunk."""
    return _hash(chunker.embedding_text(title, cut.heading_path, cut.text))


def _hash(text: str) -> bytes:
    import hashlib  # imported late, because loading OpenSSL takes 3 ms

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:HASH_BYTES]


# Writing


class _UncutPages(NamedTuple):
    """The cached list of pages without chunks, and the state of the database when the list was computed."""

    pages: list[int]
    last: int
    """The highest page id when the list was computed."""
    left: str
    """The value of UNCUT_COUNTER when the list was computed."""


def uncut_pages(db: "Database") -> list[int]:
    """Return the ids of pages with text but without chunks, most recently changed first."""
    # This function is called for every search. Checking all pages of a large memory is slow, so the list is
    # cached and updated.
    return db.cached("uncut pages", lambda: _find_uncut(db), lambda seen: _update_uncut(db, seen)).pages


def cut_pages(db: "Database", progress: Callable[[int, int, str], None]) -> int:
    """Split pages that were saved without chunks into chunks, and return the number of these pages."""
    page_ids = uncut_pages(db)
    for start in range(0, len(page_ids), PAGES_PER_CUT):
        progress(start, len(page_ids), "Cutting into chunks")
        some = page_ids[start : start + PAGES_PER_CUT]
        db.write(lambda tx, some=some: write_pages(tx, some))  # type: ignore[misc]
    if len(page_ids) >= MANY_PAGES:
        db.write(_record_imported)
    if page_ids:
        text_index.merge_segments(db)
        progress(len(page_ids), len(page_ids), "Cutting into chunks")
    return len(page_ids)


def _record_imported(tx: "Transaction") -> None:
    """Store the highest chunk id under LAST_IMPORTED_KEY."""
    tx.execute(
        "INSERT OR REPLACE INTO quaid_config (key, value) SELECT ?, coalesce(max(id), 0) FROM chunks",
        (LAST_IMPORTED_KEY,),
    )


def last_imported_chunk(db: "Database") -> int:
    """Return the highest chunk id after the last import of many pages, or 0."""
    row = db.one("SELECT value FROM quaid_config WHERE key = ?", (LAST_IMPORTED_KEY,))
    return 0 if row is None else int(row[0])


def _find_uncut(db: "Database", above: int = 0, among: str = "[]") -> _UncutPages:
    """Return the pages without chunks whose ids exceed `above` or are in the JSON list `among`."""
    rows = db.rows(
        # A narrow index finds the pages without chunks, so that the text of other pages is not read.
        "SELECT pages.id FROM (SELECT id AS bare FROM pages INDEXED BY pages_by_filter"
        " WHERE id > ?1 AND quarantined_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM chunks WHERE page_id = pages.id) UNION SELECT value FROM json_each(?2)"
        " WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE page_id = value))"
        " CROSS JOIN pages ON pages.id = bare"
        " WHERE quarantined_at IS NULL AND (compiled_truth <> '' OR timeline <> '')"
        " ORDER BY updated_at DESC, pages.id",
        (above, among),
    )
    return _UncutPages([page_id for (page_id,) in rows], *_uncut_state(db))


def _uncut_state(db: "Database") -> tuple[int, str]:
    row = db.one(
        "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'pages'), 0),"
        " coalesce((SELECT value FROM quaid_config WHERE key = ?), '')",
        (UNCUT_COUNTER,),
    )
    return (row[0], row[1]) if row else (0, "")


def _update_uncut(db: "Database", seen: _UncutPages) -> _UncutPages:
    """Return the current list of pages without chunks.

    Only new pages and those on the old list are checked, unless UNCUT_COUNTER has changed.
    """
    if _uncut_state(db)[1] != seen.left:
        return _find_uncut(db)
    return _find_uncut(db, seen.last, str(seen.pages))


def write_pages(tx: "Transaction", page_ids: list[int]) -> None:
    """Split these pages into chunks, except hidden ones. The chunks of pages that had none are inserted together."""
    strategies: dict[Any, str] = {}
    new: list[_NewChunk] = []
    for page_id in page_ids:
        for collection, title, truth, timeline, is_cut in tx.execute(
            "SELECT collection_id, title, compiled_truth, timeline,"
            " EXISTS (SELECT 1 FROM chunks AS c WHERE c.page_id = p.id) FROM pages AS p"
            " WHERE id = ? AND quarantined_at IS NULL",
            (page_id,),
        ).fetchall():
            if is_cut:
                write(tx, page_id, str(title), str(truth), str(timeline))
                continue
            if collection not in strategies:
                strategies[collection] = strategy(tx, page_id)
            cuts = chunker.chunk_page(str(truth), str(timeline), strategies[collection])
            new += [
                _NewChunk(page_id, str(title), index, content_hash(str(title), cut), cut)
                for index, cut in enumerate(cuts)
            ]
    _insert_chunks(tx, new)


def leave_uncut(tx: "Transaction", page_id: int) -> None:
    """Delete the outdated chunks of a page and increment UNCUT_COUNTER, so that the page is chunked later."""
    tx.execute("DELETE FROM chunks WHERE page_id = ?", (page_id,))
    tx.execute(
        "INSERT INTO quaid_config (key, value) VALUES (?, '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(value + 1 AS TEXT)",
        (UNCUT_COUNTER,),
    )


def write(tx: "Transaction", page_id: int, title: str, truth: str, timeline: str) -> None:
    """Split a page into chunks and write them, keeping the rows of unchanged chunks."""
    present: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for chunk_id, index, start_line, end_line, *content in tx.execute(
        "SELECT id, chunk_index, start_line, end_line, content_hash, chunk_type, heading_path, chunk_text,"
        " token_count, coalesce(date, '')"
        " FROM chunks WHERE page_id = ? ORDER BY chunk_index DESC",
        (page_id,),
    ):
        present.setdefault(tuple(content), []).append((chunk_id, index, start_line, end_line))
    new: list[_NewChunk] = []
    for index, cut in enumerate(chunker.chunk_page(truth, timeline, strategy(tx, page_id))):
        hash_ = content_hash(title, cut)
        # The hash alone is not enough, because the hashed text leaves out some headings.
        rows = present.get((hash_, cut.kind, cut.heading_path, cut.text, cut.tokens, cut.date))
        if rows:
            chunk_id, *place = rows.pop()
            if place != [index, cut.start_line, cut.end_line]:
                tx.execute(
                    "UPDATE chunks SET chunk_index = ?, start_line = ?, end_line = ? WHERE id = ?",
                    (index, cut.start_line, cut.end_line, chunk_id),
                )
        else:
            new.append(_NewChunk(page_id, title, index, hash_, cut))
    gone = [(chunk_id,) for rows in present.values() for chunk_id, *_ in rows]
    if gone:
        tx.executemany("DELETE FROM chunks WHERE id = ?", gone)
    _insert_chunks(tx, new)


class _NewChunk(NamedTuple):
    page_id: int
    title: str
    number: int
    hash: bytes
    cut: "Chunk"


def _insert_chunks(tx: "Transaction", new: list[_NewChunk]) -> None:
    # Ids are never reused, so the ids of the new rows are known before the insert.
    last = tx.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'").fetchone()
    first = 1 + (int(last[0]) if last else 0)
    tx.executemany(
        "INSERT INTO chunks (id, page_id, chunk_index, chunk_type, content_hash, token_count, start_line,"
        " end_line, date, heading_path, chunk_text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(chunk_id, page_id, index, cut.kind, hash_, cut.tokens, cut.start_line, cut.end_line),
                *(cut.date or None, cut.heading_path, cut.text),
            )
            for chunk_id, (page_id, _, index, hash_, cut) in enumerate(new, first)
        ],
    )
    rows = [
        (chunk_id, title, cut.heading_path, cut.text)
        for chunk_id, (_, title, _, _, cut) in enumerate(new, first)
    ]
    index_words(tx, rows)
    _write_entries(tx, rows)


def index_words(tx: "Transaction", rows: list[tuple[int, str, str, str]], schema: str = "") -> None:
    """Add chunks, given as (id, title, heading path, text), to the full-text index."""
    tx.executemany(
        f"INSERT INTO {schema}chunk_fts (rowid, title, heading_path, chunk_text) VALUES (?, ?, ?, ?)",  # noqa: S608
        [(chunk_id, *[_cut_words(text) for text in texts]) for chunk_id, *texts in rows],
    )


def index_all_words(tx: "Transaction") -> None:
    """Rebuild the full-text index from the chunks."""
    tx.execute("INSERT INTO chunk_fts (chunk_fts) VALUES ('delete-all')")
    for rows in _batches(tx):
        index_words(tx, rows)


def _batches(tx: "Transaction") -> "Iterator[list[tuple[int, str, str, str]]]":
    """Yield all chunks as (id, title, heading path, text), in batches."""
    last: Any = 0
    while rows := tx.execute(
        "SELECT c.id, p.title, c.heading_path, c.chunk_text FROM chunks c JOIN pages p ON p.id = c.page_id"
        " WHERE c.id > ? ORDER BY c.id LIMIT 1000",
        (last,),
    ).fetchall():
        yield rows  # type: ignore[misc]
        last = rows[-1][0]


def _write_entries(tx: "Transaction", rows: list[tuple[int, str, str, str]]) -> None:
    """Write the entries (such as list items) of chunks, given as (id, title, heading path, text)."""
    tx.executemany(
        "INSERT INTO chunk_entries (chunk_id, start_at, end_at, content_hash) VALUES (?, ?, ?, ?)",
        [(chunk_id, *entry) for chunk_id, *texts in rows for entry in entry_rows(*texts)],
    )


def entry_rows(title: str, heading_path: str, text: str) -> list[tuple[int, int, bytes]]:
    """Return start, end and content hash of each entry of a chunk; see chunker.find_entries()."""
    return [
        (entry.start, entry.end, _hash(chunker.entry_embedding_text(title, text, entry)))
        for entry in chunker.find_entries(text, heading_path)
    ]


def write_all_entries(tx: "Transaction") -> None:
    """Delete the entries of all chunks and write them again."""
    tx.execute("DELETE FROM chunk_entries")
    for rows in _batches(tx):
        _write_entries(tx, rows)


def _cut_words(text: str) -> str:
    return plain_text.cut_cjk(text) if plain_text.has_cjk(text) else text


def strategy(tx: "Transaction", page_id: int) -> str:
    """Return the configured chunking strategy of a page; in notebooks, the default is "window".

    The first of chunker.STRATEGIES replaces an unknown strategy.
    """
    row = tx.execute(
        "SELECT coalesce((SELECT coalesce((SELECT value FROM config WHERE key = ?2), 'window')"
        " FROM pages p JOIN collections c ON c.id = p.collection_id WHERE p.id = ?1 AND c.kind = 'notebook'),"
        " (SELECT value FROM config WHERE key = 'chunk_strategy'))",
        (page_id, NOTEBOOK_WINDOW),
    ).fetchone()
    chosen = str(row[0]) if row else ""
    return chosen if chosen.partition(" ")[0] in chunker.STRATEGIES else chunker.STRATEGIES[0]


# Matching


def match(
    db: "Database", expression: str, filters: "SearchFilters", limit: int
) -> list[tuple[int, int, float]]:
    """Return the best `limit` matches as (chunk id, page id, score), best first. A higher score is better.

    `expression` is an FTS5 query of quoted words and character pairs.
    """
    allowed, values = chunk_filter(filters)
    # Ordering by the bm25() function keeps a heap of `limit` rows; ordering by FTS5's rank column sorts all
    # rows.
    matches = db.rows(
        f"SELECT rowid, -{text_index.BM25[text_index.CHUNKS]} AS score FROM chunk_fts"  # noqa: S608
        f" WHERE chunk_fts MATCH ?{allowed} ORDER BY score DESC, rowid DESC LIMIT ?",
        (expression, *values, limit),
    )
    pages = places(db, [chunk_id for chunk_id, _ in matches])
    return [(chunk_id, pages[chunk_id][0], score) for chunk_id, score in matches if chunk_id in pages]


def newest_matching(db: "Database", expression: str, filters: "SearchFilters", limit: int) -> list[int]:
    """Return the ids of up to `limit` matching chunks, newest first, which is faster than ranking all."""
    allowed, values = chunk_filter(filters)
    rows = db.rows(
        f"SELECT rowid FROM chunk_fts WHERE chunk_fts MATCH ?{allowed} ORDER BY rowid DESC LIMIT ?",  # noqa: S608
        (expression, *values, limit),
    )
    return [chunk_id for (chunk_id,) in rows]


def chunk_filter(filters: "SearchFilters", chunk_id: str = "chunk_fts.rowid") -> tuple[str, tuple[str, ...]]:
    """Return an SQL condition, starting with AND, that selects the chunks the filters allow, and its parameters."""
    conditions, values = page_conditions(filters)
    if not conditions:
        return "", ()
    return (
        f" AND EXISTS (SELECT 1 FROM chunks AS c CROSS JOIN pages AS p{page_index_hint(filters)} ON p.id = c.page_id"  # noqa: S608
        f" WHERE c.id = {chunk_id} AND p.quarantined_at IS NULL AND {conditions})",
        values,
    )


def page_index_hint(filters: "SearchFilters") -> str:
    """Return an index hint for pages p, or "" if there is a filter by day, which the index does not cover."""
    return "" if filters.since or filters.until else " INDEXED BY pages_by_filter"


def page_conditions(filters: "SearchFilters", day: str = PAGE_DAY) -> tuple[str, tuple[str, ...]]:
    """Return the filters as SQL conditions on a chunk c and its page p, and their parameters; "" without filters.

    `day` is the SQL expression for the day of the page.
    """
    present = {name: value for name, value in filters._asdict().items() if value is not None}
    return " AND ".join([_CHUNK_CONDITIONS[name].replace("{day}", day) for name in present]), tuple(
        present.values()
    )


_CHUNK_CONDITIONS = {
    "type": "p.type = ?",
    "wing": "p.wing = ?",
    "tag": "p.id IN (SELECT page_id FROM tags WHERE tag = ?)",
    "collection": "p.collection_id = (SELECT id FROM collections WHERE name = ?)",
    # Appending "-31" extends a month to its end. After a full date it makes no difference.
    "since": "coalesce(c.date, {day}) || '-31' >= ?",
    "until": "coalesce(c.date, {day}) <= ?",
    "trust": "NOT EXISTS (SELECT 1 FROM page_trust WHERE page_id = p.id AND highest >= ?)",
}


# Reading


def load(db: "Database", chunk_ids: list[int]) -> list[ChunkRow]:
    """Return these chunks in the given order. Missing chunks are skipped."""
    rows = db.rows(
        f"SELECT {_CHUNK_COLUMNS} FROM chunks WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608
        (str(chunk_ids),),
    )
    by_id = {row[0]: ChunkRow(*row) for row in rows}
    return [by_id[chunk_id] for chunk_id in chunk_ids if chunk_id in by_id]


def text_edges(db: "Database", chunk_ids: list[int], count: int) -> dict[int, tuple[int, str, str]]:
    """Return the length of each of these chunks, and its first and last `count` characters."""
    rows = db.rows(
        "SELECT id, length(chunk_text), substr(chunk_text, 1, ?), substr(chunk_text, -?) FROM chunks"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (count, count, str(chunk_ids)),
    )
    return {row[0]: row[1:] for row in rows}


def of_page(db: "Database", page_id: int) -> list[ChunkRow]:
    """Return all chunks of a page in order."""
    rows = db.rows(f"SELECT {_CHUNK_COLUMNS} FROM chunks WHERE page_id = ? ORDER BY chunk_index", (page_id,))  # noqa: S608
    return [ChunkRow(*row) for row in rows]


def chunks_of_pages(db: "Database", page_ids: list[int], limit: int) -> dict[int, int]:
    """Return the page ids of up to `limit` chunks of these pages, by chunk id, in the order of the pages."""
    rows = db.rows(
        "SELECT c.id, c.page_id FROM json_each(?) AS wanted"
        " CROSS JOIN chunks AS c INDEXED BY chunks_by_page ON c.page_id = wanted.value LIMIT ?",
        (str(page_ids), limit),
    )
    return dict(rows)


def places(db: "Database", chunk_ids: list[int]) -> dict[int, tuple[int, int]]:
    """Return the page id and position of each chunk by chunk id."""
    rows = db.rows(
        "SELECT id, page_id, chunk_index FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
        (str(chunk_ids),),
    )
    return {chunk_id: (page_id, index) for chunk_id, page_id, index in rows}


def neighbours(db: "Database", chunk_ids: list[int], reach: int = 2) -> dict[int, tuple[int, int]]:
    """Return page id and position, by chunk id, of these chunks and of their neighbours within `reach` positions."""
    rows = db.rows(
        "SELECT near.id, near.page_id, near.chunk_index FROM json_each(?) AS wanted"
        " CROSS JOIN chunks AS c ON c.id = wanted.value"
        " CROSS JOIN chunks AS near ON near.page_id = c.page_id"
        " AND near.chunk_index BETWEEN c.chunk_index - ? AND c.chunk_index + ?",
        (str(chunk_ids), reach, reach),
    )
    return {row[0]: row[1:] for row in rows}  # plain tuples are faster, and there can be a thousand of them


def count(db: "Database") -> int:
    """Return the number of chunks."""
    row = db.one("SELECT count(*) FROM chunks")
    return int(row[0]) if row else 0


def highest_id(db: "Database") -> int:
    """Return the highest chunk id, an upper bound for the number of chunks, or 0."""
    return text_index.TextIndex(db, text_index.CHUNKS).highest_id()


def chunks_in_period(db: "Database", start: str, end: str, filters: "SearchFilters", limit: int) -> list[int]:
    """Return the ids of up to `limit` timeline chunks dated between two days, newest first.

    After these follow the first chunks of up to `limit` pages that are dated to a day in the period, or to a
    month that overlaps the period.
    """
    allowed, values = chunk_filter(filters, "dated.id")
    entries = db.rows(
        "SELECT dated.id FROM chunks AS dated WHERE dated.date BETWEEN ? AND ?"  # noqa: S608
        f"{allowed} ORDER BY dated.date DESC, dated.id DESC LIMIT ?",
        (start, end, *values, limit),
    )
    allowed, values = chunk_filter(filters, "first.id")
    pages = db.rows(
        f"SELECT first.id, {OWN_DAY} AS day FROM pages AS p CROSS JOIN chunks AS first"  # noqa: S608
        " ON first.page_id = p.id AND first.chunk_index = 0 WHERE p.quarantined_at IS NULL"
        """ AND (instr(p.frontmatter, '"date"') OR p.slug GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*')"""
        f" AND day BETWEEN substr(?, 1, length(day)) AND substr(?, 1, length(day)){allowed}"
        " ORDER BY day DESC, first.id DESC LIMIT ?",
        (start, end, *values, limit),
    )
    return list(dict.fromkeys(row[0] for row in [*entries, *pages]))


def chunk_dates(db: "Database", places: "dict[int, tuple[int, int]]") -> dict[int, str]:
    """Return the dates of chunks by chunk id. `places` maps chunk ids to page id and position.

    A chunk without a date gets the day or month in its page's front matter or slug. Chunks without any date
    are left out.
    """
    of_chunks: dict[int, str] = dict(
        db.rows(
            "SELECT id, date FROM chunks WHERE date IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
            (str(list(places)),),
        )
    )
    of_pages: dict[int, str | None] = dict(
        db.rows(
            f"SELECT p.id, {OWN_DAY} FROM json_each(?) AS wanted CROSS JOIN pages AS p ON p.id = wanted.value",  # noqa: S608
            (str(list({page for page, _ in places.values()})),),
        )
    )
    dates = {chunk: of_chunks.get(chunk) or of_pages.get(page) for chunk, (page, _) in places.items()}
    return {chunk: date for chunk, date in dates.items() if date}


def saved_days(db: "Database", places: "dict[int, tuple[int, int]]") -> dict[int, str]:
    """Return the day of each chunk's page (see PAGE_DAY), by chunk id."""
    days: dict[int, str] = dict(
        db.rows(
            f"SELECT p.id, {PAGE_DAY} FROM json_each(?) AS wanted CROSS JOIN pages AS p ON p.id = wanted.value",  # noqa: S608
            (str(list({page for page, _ in places.values()})),),
        )
    )
    return {chunk: days[page] for chunk, (page, _) in places.items() if days.get(page)}


def first_chunks_of_pages(db: "Database", page_ids: list[int], filters: "SearchFilters") -> dict[int, int]:
    """Return, by page id, the id of each page's first chunk that passes the filters.

    Pages without such a chunk are left out.
    """
    conditions, values = page_conditions(filters)
    rows = db.rows(
        "SELECT c.page_id, c.id, min(c.chunk_index) FROM json_each(?) AS wanted"  # noqa: S608
        " CROSS JOIN pages AS p ON p.id = wanted.value CROSS JOIN chunks AS c ON c.page_id = p.id"
        f"{' WHERE ' + conditions if conditions else ''} GROUP BY c.page_id",
        (str(page_ids), *values),
    )
    return {page_id: chunk_id for page_id, chunk_id, _ in rows}
