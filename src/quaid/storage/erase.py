"""Remove pages: quarantine, discard, or erase all traces and search for remnants.

A DELETE statement alone leaves traces: the content of deleted rows stays in free space of the file, words
stay in the segments of an index until the segments are merged, and the WAL keeps its content until it is
truncated.
"""

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from quaid.errors import ChangedSinceCreated, QuaidError
from quaid.model import slug as slugs
from quaid.storage import history, links, vectors
from quaid.storage.sqlite.errors import BUSY_SECONDS, translate_sqlite_errors
from quaid.storage.text_index import query_vocabulary

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

QUARANTINE_DAYS = 30
"""A quarantined page is discarded after this many days, unless it has data that exists nowhere else."""

_QUARANTINED_SQL = (
    "SELECT p.id, p.uuid, p.slug, p.title, c.name, r.file_path, p.quarantined_at,"
    " (SELECT count(*) FROM links l WHERE l.source_kind = 'programmatic' AND p.id IN (l.from_page_id, l.to_page_id)),"
    " (SELECT count(*) FROM assertions a WHERE a.page_id = p.id),"
    " (SELECT count(*) FROM raw_data d WHERE d.page_id = p.id), e.path, r.id"
    " FROM pages p JOIN collections c ON c.id = p.collection_id"
    " LEFT JOIN raw_imports r ON r.id = (SELECT id FROM raw_imports WHERE page_id = p.id"
    " ORDER BY is_active DESC, id DESC LIMIT 1)"
    " LEFT JOIN quarantine_exports e ON e.page_id = p.id AND e.quarantined_at = p.quarantined_at"
    " WHERE p.quarantined_at IS NOT NULL AND p.id NOT IN (SELECT page_id FROM expired WHERE kind = 'page') AND "
)


class QuarantinedPage(NamedTuple):
    """A quarantined page. `links`, `assertions` and `raw_data` are the numbers of rows that are in no file."""

    id: int
    uuid: str
    slug: str
    title: str
    collection: str
    path: str | None
    """Path of the page's former file."""
    quarantined_at: str
    links: int
    assertions: int
    raw_data: int
    exported_to: str | None
    raw_id: int | None
    """Id of the raw_imports row that contains the bytes of the page's file as last read."""

    @property
    def is_only_here(self) -> bool:
        return bool(self.links or self.assertions or self.raw_data)

    @property
    def is_safe(self) -> bool:
        """Return True if discarding the page loses nothing, because its data was in its file or was exported."""
        return self.exported_to is not None or not self.is_only_here

    def mark_exported(self, tx: "Transaction", path: str, now: str) -> None:
        """Record that the page was exported to `path`."""
        tx.execute(
            "INSERT OR REPLACE INTO quarantine_exports (page_id, collection_id, slug, quarantined_at, exported_at,"
            " path) SELECT id, collection_id, slug, quarantined_at, ?, ? FROM pages"
            " WHERE id = ? AND quarantined_at = ?",
            (now, path, self.id, self.quarantined_at),
        )

    def discard(self, tx: "Transaction") -> None:
        """Delete the page with its history. Raw bytes that an import still refers to are kept."""
        _discard_page(tx, self.id)


def quarantine_page(
    tx: "Transaction", page_id: int, now: str, keep: "frozenset[int] | set[int]" = frozenset()
) -> None:
    """Hide a page and the pages made from headings in its file, except the pages in `keep`.

    Links to the hidden pages are resolved again, because other pages may have the same names.
    """
    headings = tx.rows(
        "SELECT n.page_id FROM file_nodes n JOIN pages p ON p.id = n.page_id"
        " WHERE n.file_page_id = ? AND p.quarantined_at IS NULL",
        (page_id,),
    )
    for hidden in sorted({page_id, *(heading for (heading,) in headings)} - keep):
        tx.execute(
            "UPDATE pages SET quarantined_at = ?1, updated_at = ?1, version = version + 1 WHERE id = ?2",
            (now, hidden),
        )
        links.resolve_again(tx, _names_of(tx, hidden))


def quarantined_pages(
    db: "Database | Transaction", collection_id: int | None = None, *, slug: str = "", before: str = "9999"
) -> list[QuarantinedPage]:
    """Return the quarantined pages, except expired ones, most recently quarantined first.

    The result can be limited to a collection, a slug, and pages quarantined before a time.
    """
    rows = db.rows(
        f"{_QUARANTINED_SQL} (?1 IS NULL OR c.id = ?1) AND (?2 = '' OR p.slug = ?2) AND p.quarantined_at < ?3"
        " ORDER BY p.quarantined_at DESC, p.slug, c.id",
        (collection_id, slug, before),
    )
    return [QuarantinedPage(*row) for row in rows]


def _discard_page(tx: "Transaction", page_id: int) -> None:
    names = links.detach_page(tx, page_id)
    tx.execute(
        "UPDATE raw_imports SET page_id = NULL, is_active = 0 WHERE page_id = ?"
        " AND EXISTS (SELECT 1 FROM import_files f WHERE f.raw_id = raw_imports.id)",
        (page_id,),
    )
    tx.execute("DELETE FROM pages WHERE id = ?", (page_id,))
    links.resolve_again(tx, names)


def remove_collection(tx: "Transaction", db: "Database", collection_id: int, now: str) -> tuple[int, int]:
    """Delete a collection and its pages. Pages with data that is in no file are quarantined instead.

    If there are such pages, the collection is kept. Return the numbers of discarded and quarantined pages.
    """
    shown = [
        int(row[0]) for row in tx.execute("SELECT id FROM pages WHERE collection_id = ?", (collection_id,))
    ]
    tx.execute(
        "UPDATE pages SET quarantined_at = coalesce(quarantined_at, ?) WHERE collection_id = ?",
        (now, collection_id),
    )
    only_here = {page.id for page in quarantined_pages(db, collection_id) if page.is_only_here}
    tx.execute("DELETE FROM file_state WHERE collection_id = ?", (collection_id,))
    for page_id in shown:
        if page_id in only_here:
            links.resolve_again(tx, _names_of(tx, page_id))
        else:
            _discard_page(tx, page_id)
    if not only_here:
        tx.execute("DELETE FROM raw_imports WHERE collection_id = ?", (collection_id,))
        tx.execute("DELETE FROM collections WHERE id = ?", (collection_id,))
    return len(shown) - len(only_here), len(only_here)


def discard_collection(tx: "Transaction", collection_id: int) -> None:
    """Delete a collection without a folder, its pages and their history."""
    rows = tx.rows("SELECT id FROM pages WHERE collection_id = ?", (collection_id,))
    for (page_id,) in rows:
        _discard_page(tx, page_id)
    tx.execute("DELETE FROM raw_imports WHERE collection_id = ?", (collection_id,))
    tx.execute("DELETE FROM collections WHERE id = ?", (collection_id,))


def _names_of(tx: "Transaction", page_id: int) -> set[str]:
    return {str(name) for (name,) in tx.execute("SELECT name FROM page_names WHERE page_id = ?", (page_id,))}


PAGE_INDEXES = ("page_fts", "page_fts_unspaced", "chunk_fts")
READERS_WAIT_MS = 2_000
VACUUM_IN_MEMORY_BYTES = 512 * 1024 * 1024
"""VACUUM of a database larger than this uses a temporary file instead of RAM."""

MOST_PLACES = 50
"""Maximum number of reported places per table that still contain a probe (a string from the erased page)."""


class EraseTarget(NamedTuple):
    """A page to erase, quarantined or not."""

    id: int
    collection: str
    slug: str
    uuid: str
    title: str
    version: int
    quarantined: bool
    frontmatter: str
    truth: str
    timeline: str
    former: tuple[str, ...]
    """The former slugs that redirect to the page."""
    files: tuple[str, ...]
    """Paths of the files that the page was imported from."""
    hashes: tuple[bytes, ...]
    """Content hashes of the page's chunks and their entries, except those that another page also has."""


_PAGE_HASHES = (
    "SELECT e.content_hash FROM chunk_entries AS e JOIN chunks AS c ON c.id = e.chunk_id WHERE c.page_id = ?1"
    " UNION ALL SELECT content_hash FROM chunks WHERE page_id = ?1"
)
"""SQL for the content hashes of a page's chunks and entries. The id of the page is parameter 1."""


def find_target(db: "Database", slug: str, collection: str) -> EraseTarget | None:
    """Return the page with exactly this slug, quarantined or not, or None. Redirects are not followed."""
    row = db.one(
        "SELECT p.id, c.name, p.slug, p.uuid, p.title, p.version, p.quarantined_at IS NOT NULL, p.frontmatter,"
        " p.compiled_truth, p.timeline, (SELECT json_group_array(slug) FROM redirects WHERE page_id = p.id),"
        " (SELECT json_group_array(DISTINCT file_path) FROM raw_imports WHERE page_id = p.id)"
        " FROM pages AS p JOIN collections AS c ON c.id = p.collection_id WHERE c.name = ? AND p.slug = ?",
        (collection, slug),
    )
    if row is None:
        return None
    former, files = (tuple(json.loads(values)) for values in row[10:])
    files = tuple(file for file in files if not file.startswith(history.INGESTED_PREFIX))
    hashes = db.rows(
        f"SELECT DISTINCT content_hash FROM ({_PAGE_HASHES}) AS c WHERE NOT EXISTS"  # noqa: S608 (fixed)
        " (SELECT 1 FROM chunks AS o WHERE o.content_hash = c.content_hash AND o.page_id <> ?1)"
        " AND NOT EXISTS (SELECT 1 FROM chunk_entries AS e JOIN chunks AS o ON o.id = e.chunk_id"
        " WHERE e.content_hash = c.content_hash AND o.page_id <> ?1)",
        (row[0],),
    )
    own = tuple(content_hash for (content_hash,) in hashes)
    return EraseTarget._make((*row[:6], bool(row[6]), *row[7:10], former, files, own))


# A layer is the rows of a table with data about the page, given as its name, and the table with a condition.
# Parameters: ?1 is the page id, ?2 a JSON list of the page's slugs, and ?3 a JSON list of the paths of its
# sidecars (JSON files beside the page file).
_LAYERS: tuple[tuple[str, str], ...] = (
    ("page", "pages WHERE id = ?1"),
    ("redirects", "redirects WHERE page_id = ?1"),
    ("names", "page_names WHERE page_id = ?1"),
    ("tags", "tags WHERE page_id = ?1"),
    ("timeline entries", "timeline_entries WHERE page_id = ?1"),
    ("words", "(SELECT id FROM page_fts_docsize UNION ALL SELECT id FROM page_fts_unspaced_docsize) WHERE id = ?1"),
    ("chunks", "chunks WHERE page_id = ?1"),
    ("links out", "links WHERE from_page_id = ?1"),
    ("links in", "links WHERE to_page_id = ?1 AND from_page_id <> ?1"),
    ("facts", "assertions WHERE page_id = ?1"),
    ("expired lines and facts", "expired WHERE page_id = ?1"),
    ("contradictions", "contradictions WHERE ?1 IN (page_id, other_page_id) OR EXISTS (SELECT 1 FROM json_tree"
     "(iif(json_valid(evidence), evidence, '[]')) WHERE atom IN (SELECT value FROM json_each(?2)))"),
    ("gaps that it answered", "knowledge_gaps WHERE resolved_by_slug IN (SELECT value FROM json_each(?2))"),
    ("golden questions", "golden_questions WHERE id IN (SELECT question_id FROM golden_pages WHERE page_id = ?1)"),
    ("opened results", "opened_results WHERE page_id = ?1"),
    ("raw data", "raw_data WHERE page_id = ?1"),
    ("authors", "page_authors WHERE page_id = ?1"),
    ("trust classes", "page_trust WHERE page_id = ?1"),
    ("calls of agents", "activity_pages WHERE page_id = ?1"),
    ("similar pages", "duplicate_pairs WHERE ?1 IN (page_id, other_page_id)"),
    ("shared revisions", "space_pages WHERE page_id = ?1"),
    ("proposals", "proposals WHERE EXISTS (SELECT 1 FROM json_each(?2) WHERE value = slug"
     " OR instr(diff, '+++ ' || value || char(10)))"),
    # The page's files, its sidecar files, and ingested sources that changed only this page.
    ("imported files", "raw_imports AS r WHERE page_id = ?1 OR (page_id IS NULL AND (file_path IN"
     " (SELECT value FROM json_each(?3)) OR EXISTS (SELECT 1 FROM ingest_log AS l WHERE l.import_id = r.import_id"
     " AND l.content_hash = r.content_hash AND l.pages_updated = json_array(?1))))"),
    ("entries of the log of imports", "ingest_log WHERE EXISTS (SELECT 1 FROM json_each(pages_updated)"
     " WHERE value = ?1) OR (pages_updated = '[]' AND source_ref IN (SELECT value FROM json_each(?3)))"),
    ("known files", "file_state WHERE page_id = ?1"),
    ("records of quarantine exports", "quarantine_exports WHERE page_id = ?1"),
)  # fmt: skip


class Erasure:
    """Erases a page and its stored sidecar files, and searches the database for remnants of the page."""

    def __init__(self, db: "Database", target: EraseTarget, sidecars: list[str]) -> None:
        self._db, self._target, self._sidecars = db, target, sidecars
        self.probes: list[str] = []
        """Strings from the page to search for after it is erased."""
        self.words: list[str] = []
        """Indexed words that no other page contains."""

    def count_layers(self) -> list[tuple[str, int]]:
        """Return the number of rows in each layer of the page."""
        return _count_layers(self._db, self._target, self._sidecars)

    def run(self, expected_version: int | None = None) -> None:
        """Collect the probes and words of the page, then delete it from every layer.

        Raise ChangedSinceCreated if the page is at another version than `expected_version`.
        """
        self.probes = _page_probes(self._db, self._target)
        self.words = _own_words(self._db, self._target)

        def work(tx: "Transaction") -> None:
            if expected_version is not None:
                _require_version(tx, self._target, expected_version)
            _erase_page(tx, self._target, self._sidecars)

        self._db.write(work)

    def places_with_text(self, piece: str) -> list[str]:
        """Return the names of the rows (of a page, its slug) that still contain a string.

        If there are none, return the pages and conversations with an indexed term that contains the string.
        """
        return _rows_with_text(self._db, piece) or _pages_with_term(self._db, piece)

    def count_words_left(self) -> int:
        """Return how many of `words` are still in an index."""
        return sum(
            any(_index_holds(self._db, index, word, "[]") for index in PAGE_INDEXES) for word in self.words
        )


class TextErasure:
    """Searches the database for remnants of erased lines and facts."""

    def __init__(self, db: "Database", texts: list[str]) -> None:
        self._db = db
        probes = erasure_probes("", "", "", [], texts)
        self.probes = [probe for probe in probes if not _is_in_schema(db, probe)]

    def places_with_text(self, piece: str) -> list[str]:
        """Return where a string still occurs, as Erasure.places_with_text() does."""
        return _rows_with_text(self._db, piece) or _pages_with_term(self._db, piece)


def _count_layers(db: "Database", target: EraseTarget, sidecars: list[str]) -> list[tuple[str, int]]:
    """Return the number of rows in each layer of a page."""
    values = _layer_values(target, sidecars)
    layers = [(name, _count(db, f"SELECT count(*) FROM {where}", values)) for name, where in _LAYERS]  # noqa: S608
    place = [name for name, _ in layers].index("chunks") + 1
    return [*layers[:place], ("vectors", _count_vectors(db, target.hashes)), *layers[place:]]


def _count_vectors(db: "Database", hashes: tuple[bytes, ...]) -> int:
    hash_list = json.dumps([content_hash.hex() for content_hash in hashes])
    return sum(
        _count(
            db,
            f"SELECT count(*) FROM {table} WHERE content_hash IN (SELECT unhex(value) FROM json_each(?))",  # noqa: S608
            (hash_list,),
        )
        for table in vectors.vector_tables(db.connection)
    )


def _layer_values(target: EraseTarget, sidecars: list[str]) -> tuple[Any, ...]:
    return target.id, json.dumps([target.slug, *target.former]), json.dumps(sidecars)


def _require_version(tx: "Transaction", target: EraseTarget, expected: int) -> None:
    ((version,),) = tx.rows("SELECT coalesce(max(version), 0) FROM pages WHERE id = ?", (target.id,))
    if version != expected:
        raise ChangedSinceCreated(
            slug=slugs.address(target.collection, target.slug), expected=expected, current_version=version
        )


def _erase_page(tx: "Transaction", target: EraseTarget, sidecars: list[str]) -> None:
    """Delete a page from every layer. Links to it in other pages become unresolved."""
    enable_secure_delete(tx)
    values = _layer_values(target, sidecars)
    layers = dict(_LAYERS)
    hashes = [row for (row,) in tx.execute(_PAGE_HASHES, (target.id,))]
    names = links.detach_page(tx, target.id)
    _execute_layer(tx, _LEAVE_GAPS, values)
    # Encrypted queries about this page cannot be told apart from others, so all of them are deleted.
    tx.execute("UPDATE knowledge_gaps SET sealed_query = NULL WHERE sealed_query IS NOT NULL")
    tx.execute("DELETE FROM opened_results")
    _execute_layer(tx, _FEWER_PAGES, values)
    _execute_layer(tx, _LEAVE_LOG, values)
    had_files = [row for (row,) in tx.execute("SELECT DISTINCT import_id FROM import_files")]
    for name in _LAYERS_WITHOUT_CASCADE:
        _execute_layer(tx, f"DELETE FROM {layers[name]}", values)  # noqa: S608 (fixed)
    tx.execute(_NO_FILES_LEFT, (json.dumps(had_files),))
    tx.execute("DELETE FROM pages WHERE id = ?", (target.id,))
    tx.execute("UPDATE space_outbox SET state = 'purge' WHERE uuid = ?", (target.uuid,))
    vectors.drop_unused_vectors(tx, hashes)
    if target.quarantined:  # its chunks were deleted earlier, so its vectors cannot be identified
        vectors.drop_all_unused_vectors(tx)
    links.resolve_again(tx, names)
    optimize_indexes(tx)
    if tx.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat4'").fetchone():
        # sqlite_stat4 contains samples of slugs and names; `quaid compact` collects new samples
        tx.execute("DELETE FROM sqlite_stat4")


def optimize_indexes(tx: "Transaction") -> None:
    """Merge the segments of the full-text indexes of pages, because unmerged segments keep deleted words."""
    for index in PAGE_INDEXES:
        tx.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")  # noqa: S608


# Layers that are deleted one by one. The rows of all other layers go with the page, by a foreign key or a trigger.
_LAYERS_WITHOUT_CASCADE = (
    *("imported files", "contradictions", "entries of the log of imports"),
    *("known files", "records of quarantine exports", "proposals", "shared revisions", "golden questions"),
)
_FEWER_PAGES = (
    "UPDATE import_manifest AS m SET page_count = max(0, page_count - gone.pages) FROM (SELECT f.import_id,"
    " count(*) AS pages FROM import_files AS f JOIN raw_imports AS r ON r.id = f.raw_id WHERE r.page_id = ?1"
    " GROUP BY f.import_id) AS gone WHERE gone.import_id = m.import_id"
)
_NO_FILES_LEFT = (
    "DELETE FROM import_manifest WHERE import_id IN (SELECT value FROM json_each(?))"
    " AND NOT EXISTS (SELECT 1 FROM import_files AS f WHERE f.import_id = import_manifest.import_id)"
)
_LEAVE_GAPS = (
    "UPDATE knowledge_gaps SET resolved_by_slug = NULL"
    " WHERE resolved_by_slug IN (SELECT value FROM json_each(?2))"
)
_LEAVE_LOG = (
    "UPDATE ingest_log SET pages_updated = (SELECT json_group_array(value) FROM json_each(pages_updated)"
    " WHERE value <> ?1) WHERE json_array_length(pages_updated) > 1"
    " AND EXISTS (SELECT 1 FROM json_each(pages_updated) WHERE value = ?1)"
)


def _execute_layer(tx: "Transaction", sql: str, values: tuple[Any, ...]) -> None:
    tx.execute(sql, values[: _parameter_count(sql)])


def enable_secure_delete(tx: "Transaction") -> None:
    """Make this connection overwrite deleted content from now on."""
    tx.pragma("secure_delete", "ON")


def vacuum_and_checkpoint(db: "Database") -> str:
    """Rewrite the file without free space and truncate the WAL. Return a description of the problem, or "".

    Readers of an older snapshot can prevent the truncation.
    """
    connection = db.connection
    with db.lock.held():
        connection.set_busy_timeout(READERS_WAIT_MS)
        try:
            with translate_sqlite_errors(db.path):
                _vacuum(connection)
                busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        except QuaidError as trouble:
            return str(trouble)
        finally:
            connection.set_busy_timeout(BUSY_SECONDS * 1000)
    return "another process still reads an older state of the memory" if busy else ""


def _vacuum(connection: "Transaction") -> None:
    size = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    if size > VACUUM_IN_MEMORY_BYTES:
        connection.pragma("temp_store", "FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.pragma("temp_store", "MEMORY")


# Searching for remnants


def _own_words(db: "Database", target: EraseTarget) -> list[str]:
    """Return the words of a page, as tokenized by the index, that no other page has."""
    aside = apsw.Connection(":memory:")
    for (sql,) in db.rows("SELECT sql FROM sqlite_schema WHERE name = 'page_fts'"):
        aside.execute(str(sql).replace("content = 'searchable_pages', content_rowid = 'id',", ""))
    aside.execute(
        "INSERT INTO page_fts (title, slug, compiled_truth, timeline) VALUES (?, ?, ?, ?)",
        (target.title, target.slug, target.truth, target.timeline),
    )
    aside.execute("CREATE VIRTUAL TABLE words USING fts5vocab (page_fts, row)")
    every = [str(word) for (word,) in aside.execute("SELECT term FROM words")]
    aside.close()
    chunks = [row for (row,) in db.rows("SELECT id FROM chunks WHERE page_id = ?", (target.id,))]
    rows = {index: json.dumps(chunks if index == "chunk_fts" else [target.id]) for index in PAGE_INDEXES}
    return [
        word
        for word in every
        if not any(_index_holds(db, index, word, rows[index]) for index in PAGE_INDEXES)
    ]


def _index_holds(db: "Database", index: str, word: str, but: str) -> bool:
    """Return True if a word occurs in an index in any row whose id is not in the JSON list `but`."""
    sql = "SELECT 1 FROM {} WHERE term = ? AND doc NOT IN (SELECT value FROM json_each(?)) LIMIT 1"
    return bool(query_vocabulary(db, index, "instance", sql, (word, but)))


def _pages_with_term(db: "Database", piece: str) -> list[str]:
    """Return the pages and conversations with an indexed term that contains a string.

    Terms are lower-cased and stemmed.
    """
    places: dict[str, None] = {}
    for index, named in _INDEX_OWNERS.items():
        # A term that no row contains is a remnant of an erased page and cannot be assigned to a page.
        rows = query_vocabulary(
            db,
            index,
            "row",
            "SELECT term FROM {} WHERE instr(CAST(term AS BLOB), CAST(? AS BLOB)) AND doc > 0",
            (piece,),
        )
        for (term,) in rows:
            sql = f"SELECT DISTINCT {named} FROM {{}} AS t WHERE term = ? LIMIT {MOST_PLACES}"  # noqa: S608
            names = query_vocabulary(db, index, "instance", sql, (term,))
            places.update((str(name), None) for (name,) in names if name is not None)
    return list(places)[:MOST_PLACES]


_INDEX_OWNERS = {
    "page_fts": "(SELECT slug FROM pages WHERE id = t.doc)",
    "page_fts_unspaced": "(SELECT slug FROM pages WHERE id = t.doc)",
    "chunk_fts": "(SELECT p.slug FROM chunks AS c JOIN pages AS p ON p.id = c.page_id WHERE c.id = t.doc)",
    "turn_fts": "(SELECT 'the conversation ' || c.session FROM conversation_turns AS o"
    " JOIN conversations AS c ON c.id = o.conversation_id WHERE o.id = t.doc)",
}


def _rows_with_text(db: "Database", piece: str) -> list[str]:
    places: dict[str, None] = {}
    for table, columns in _text_columns(db).items():
        holds = " OR ".join([f'instr(CAST("{column}" AS BLOB), CAST(?1 AS BLOB))' for column in columns])
        name = _ROW_NAMES.get(table, f"'a row of {table}'")
        sql = f'SELECT DISTINCT {name} FROM "{table}" AS t WHERE {holds} LIMIT {MOST_PLACES}'  # noqa: S608
        places.update((str(place), None) for (place,) in db.rows(sql, (piece,)))
    return list(places)


_SLUG_OF = "(SELECT slug FROM pages WHERE id = t.{column})"
_ROW_NAMES = {
    "pages": "t.slug",
    "links": _SLUG_OF.format(column="from_page_id"),
    **{
        table: _SLUG_OF.format(column="page_id")
        for table in (
            "tags",
            "page_names",
            "timeline_entries",
            "chunks",
            "redirects",
            "assertions",
            "raw_data",
            "expired",
        )
    },
    "contradictions": "'contradiction ' || t.id",
    "conversations": "'the conversation ' || t.session",
    "conversation_turns": "(SELECT 'the conversation ' || session FROM conversations WHERE id = t.conversation_id)",
    "session_items": "(SELECT 'the conversation ' || c.session FROM conversation_turns AS o"
    " JOIN conversations AS c ON c.id = o.conversation_id WHERE o.id = t.turn_id)",
    "knowledge_gaps": "'gap ' || t.id",
    "golden_questions": "'golden question ' || t.id",
    "proposals": "'proposal ' || t.id",
    "page_authors": _SLUG_OF.format(column="page_id"),
    "page_trust": _SLUG_OF.format(column="page_id"),
    "duplicate_pairs": _SLUG_OF.format(column="page_id"),
    "raw_imports": "'the imported file ' || t.file_path",
    "import_files": "'the imported file ' || t.file_path",
    "import_manifest": "'the import ' || t.import_id",
    "ingest_log": "'the log of imports, ' || t.source_ref",
    "config": "'the setting ' || t.key",
    "quaid_config": "'the setting ' || t.key",
    "space_outbox": "'the erasures that wait for the hub'",
}


def _text_columns(db: "Database") -> dict[str, list[str]]:
    """Return the text and blob columns of each table, except the tables of full-text indexes."""
    columns: dict[str, list[str]] = {}
    for table, column in db.rows(
        "SELECT s.name, c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c WHERE s.type = 'table'"
        " AND s.sql NOT LIKE 'CREATE VIRTUAL%' AND c.type NOT IN ('INTEGER', 'REAL') AND s.name NOT LIKE 'sqlite%'"
    ):
        if not str(table).startswith((*PAGE_INDEXES, "turn_fts")):
            columns.setdefault(str(table), []).append(str(column))
    return columns


def _count(db: "Database", sql: str, values: tuple[Any, ...]) -> int:
    row = db.one(sql, values[: _parameter_count(sql)])
    return int(row[0]) if row else 0


def _parameter_count(sql: str) -> int:
    """Return the number of parameters of a statement, which is the highest parameter number in it."""
    return max((number for number in (1, 2, 3) if f"?{number}" in sql), default=1)


PROBE_LENGTH = 40
"""A probe (a string to search for after a page is erased) from its text has at most this many characters."""

SHORTEST_PROBE = 12
"""A probe from the text has at least this many characters. Shorter strings may occur in other pages by chance."""

MOST_PROBES = 24

_PROBE_WORD = re.compile(r"[^\W_]{12,40}")
# A probe must not contain these characters, because JSON escapes them.
_PROBE_BREAK = re.compile(r'[\\"\x00-\x1f]+')


def _page_probes(db: "Database", target: EraseTarget) -> list[str]:
    """Return strings to search for after a page is erased, except strings that occur in the schema."""
    data = db.rows("SELECT data FROM raw_data WHERE page_id = ?", (target.id,))
    values = [json.loads(text) for (text,) in [(target.frontmatter,), *data]]
    texts = [target.truth, target.timeline, *json_strings(values)]
    probes = erasure_probes(target.slug, target.title, target.uuid, list(target.former), texts)
    return [probe for probe in probes if not _is_in_schema(db, probe)]


def erasure_probes(slug: str, title: str, uuid: str, names: list[str], texts: list[str]) -> list[str]:
    """Return search strings for a page: its names, evenly spread samples of its text, and long words."""
    called = [name.strip() for name in (uuid, slug, title, *names)]
    probes = dict.fromkeys(name for name in called if len(name) >= 5 and not _PROBE_BREAK.search(name))
    pieces = _probe_pieces(texts)
    step = max(1, len(pieces) // MOST_PROBES)
    probes.update(dict.fromkeys(pieces[::step]))
    words = sorted(
        {word for text in texts for word in _PROBE_WORD.findall(text)}, key=lambda word: (-len(word), word)
    )
    probes.update(dict.fromkeys(words[:8]))
    return list(probes)[: MOST_PROBES + 8]


def _is_in_schema(db: "Database", piece: str) -> bool:
    """Return True if the database schema, which is the same in every memory, contains a string."""
    row = db.one("SELECT 1 FROM sqlite_schema WHERE instr(name, ?1) OR instr(sql, ?1) LIMIT 1", (piece,))
    return row is not None


def _probe_pieces(texts: list[str]) -> list[str]:
    pieces = []
    for text in texts:
        for line in text.split("\n"):
            longest = max(_PROBE_BREAK.split(line), key=len).strip()
            middle = max(0, (len(longest) - PROBE_LENGTH) // 2)
            piece = longest[middle : middle + PROBE_LENGTH].strip()
            if len(piece) >= SHORTEST_PROBE:
                pieces.append(piece)
    return list(dict.fromkeys(pieces))


def json_strings(value: Any) -> list[str]:
    """Return all strings in a JSON value, except the names of fields."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in json_strings(item)]
