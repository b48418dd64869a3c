"""Taking a page out of the memory for good, layer by layer, and looking for what is left of it.

Knows every table that holds something of a page, and how SQLite lets go of bytes: deleted rows leave free space,
words stay in the segments of an index until these are merged, and the log keeps what it held until it is emptied.
Does not know file formats, nor who asks.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from quaid.errors import QuaidError
from quaid.store import ingest_log, links, vectors
from quaid.store.trouble import BUSY_SECONDS, sqlite_told_plainly

if TYPE_CHECKING:
    from quaid.store.db import Database

INDEXES = ("page_fts", "page_fts_unspaced", "chunk_fts")
READERS_WAIT_MS = 2_000
IN_MEMORY = 512 * 1024 * 1024
"""A larger file is written anew by way of a temporary file."""

MOST_PLACES = 50
"""Where else a piece of a page may be named."""


class Target(NamedTuple):
    """A page that is to be forgotten, whatever its state."""

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
    """Slugs that lead to it."""
    files: tuple[str, ...]
    """Paths that it was imported from."""


class Cleaned(NamedTuple):
    """What became of the bytes that deleted rows had."""

    rewritten: bool
    """Whether the file was written anew."""
    emptied: bool
    """Whether the log is empty."""
    problem: str


def find(db: "Database", slug: str, collection: str) -> Target | None:
    """The page with this very slug, quarantined or not."""
    row = db.one(
        "SELECT p.id, c.name, p.slug, p.uuid, p.title, p.version, p.quarantined_at IS NOT NULL, p.frontmatter,"
        " p.compiled_truth, p.timeline, (SELECT json_group_array(slug) FROM redirects WHERE page_id = p.id),"
        " (SELECT json_group_array(DISTINCT file_path) FROM raw_imports WHERE page_id = p.id)"
        " FROM pages AS p JOIN collections AS c ON c.id = p.collection_id WHERE c.name = ? AND p.slug = ?",
        (collection, slug),
    )
    if row is None:
        return None
    former, files = (tuple(json.loads(each)) for each in row[10:])
    files = tuple(each for each in files if not each.startswith(ingest_log.INGESTED))
    return Target._make((*row[:6], bool(row[6]), *row[7:10], former, files))


# What there is of a page: the layer's name, where it is, and for which of its rows ?1 id, ?2 its slugs, ?3 files.
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
    ("contradictions", "contradictions WHERE ?1 IN (page_id, other_page_id) OR EXISTS (SELECT 1 FROM json_tree"
     "(iif(json_valid(evidence), evidence, '[]')) WHERE atom IN (SELECT value FROM json_each(?2)))"),
    ("gaps that it answered", "knowledge_gaps WHERE resolved_by_slug IN (SELECT value FROM json_each(?2))"),
    ("raw data", "raw_data WHERE page_id = ?1"),
    # Its files, its sidecars, and sources that changed this page and no other.
    ("imported files", "raw_imports AS r WHERE page_id = ?1 OR (page_id IS NULL AND (file_path IN"
     " (SELECT value FROM json_each(?3)) OR EXISTS (SELECT 1 FROM ingest_log AS l WHERE l.import_id = r.import_id"
     " AND l.content_hash = r.content_hash AND l.pages_updated = json_array(?1))))"),
    ("entries of the log of imports", "ingest_log WHERE EXISTS (SELECT 1 FROM json_each(pages_updated)"
     " WHERE value = ?1) OR (pages_updated = '[]' AND source_ref IN (SELECT value FROM json_each(?3)))"),
    ("known files", "file_state WHERE page_id = ?1"),
    ("records of quarantine exports", "quarantine_exports WHERE page_id = ?1"),
)  # fmt: skip


def count(db: "Database", target: Target, sidecars: list[str], hashes: list[bytes]) -> list[tuple[str, int]]:
    """How many rows each layer has of a page."""
    values = _values(target, sidecars)
    found = [(name, _number(db, f"SELECT count(*) FROM {where}", values)) for name, where in _LAYERS]  # noqa: S608
    place = [name for name, _ in found].index("chunks") + 1
    return [*found[:place], ("vectors", _vectors(db, hashes)), *found[place:]]


def hashes_of(db: "Database", page_id: int) -> list[bytes]:
    """The contents of a page that no other page has."""
    rows = db.rows(
        "SELECT DISTINCT c.content_hash FROM chunks AS c WHERE c.page_id = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM chunks AS o WHERE o.content_hash = c.content_hash AND o.page_id <> ?1)",
        (page_id,),
    )
    return [content_hash for (content_hash,) in rows]


def _vectors(db: "Database", hashes: list[bytes]) -> int:
    wanted = json.dumps([each.hex() for each in hashes])
    return sum(
        _number(
            db,
            f"SELECT count(*) FROM {table} WHERE content_hash IN (SELECT unhex(value) FROM json_each(?))",  # noqa: S608
            (wanted,),
        )
        for table in vectors.vec_tables(db.connection)
    )


def _values(target: Target, sidecars: list[str]) -> tuple[Any, ...]:
    return target.id, json.dumps([target.slug, *target.former]), json.dumps(sidecars)


def forget(tx: apsw.Connection, target: Target, sidecars: list[str]) -> None:
    """Take a page out of every layer. Links of other texts to it lead nowhere afterwards."""
    values = _values(target, sidecars)
    layers = dict(_LAYERS)
    hashes = [
        each for (each,) in tx.execute("SELECT content_hash FROM chunks WHERE page_id = ?", (target.id,))
    ]
    names = links.let_go(tx, target.id)
    _run(tx, _LEAVE_GAPS, values)
    _run(tx, _FEWER_PAGES, values)
    _run(tx, _LEAVE_LOG, values)
    had_files = [each for (each,) in tx.execute("SELECT DISTINCT import_id FROM import_files")]
    for name in _NOT_WITH_THE_PAGE:
        _run(tx, f"DELETE FROM {layers[name]}", values)  # noqa: S608 (fixed)
    tx.execute(_NO_FILES_LEFT, (json.dumps(had_files),))
    tx.execute("DELETE FROM pages WHERE id = ?", (target.id,))
    vectors.forget(tx, hashes)
    links.resettle(tx, names)
    for index in INDEXES:  # or deleted words stay in its segments
        tx.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")  # noqa: S608
    if tx.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat4'").fetchone():
        tx.execute("DELETE FROM sqlite_stat4")  # samples of slugs and names; `quaid compact` takes new ones


_NOT_WITH_THE_PAGE = (
    *("imported files", "contradictions", "entries of the log of imports"),
    *("known files", "records of quarantine exports"),
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


def _run(tx: apsw.Connection, sql: str, values: tuple[Any, ...]) -> None:
    tx.execute(sql, values[: _parameters(sql)])


def securely(db: "Database") -> None:
    """From now on, what this connection deletes is overwritten."""
    with db.lock.turn, sqlite_told_plainly(db.path):
        db.connection.pragma("secure_delete", "ON")


def clean(db: "Database") -> Cleaned:
    """Write the file anew without its free space, and empty the log. Whoever reads an older state hinders that."""
    problem = ""
    rewritten = emptied = False
    connection = db.connection
    with db.lock.held():
        connection.set_busy_timeout(READERS_WAIT_MS)
        try:
            with sqlite_told_plainly(db.path):
                rewritten = _vacuum(connection)
                busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
                emptied = not busy
        except QuaidError as trouble:
            problem = str(trouble)
        finally:
            connection.set_busy_timeout(BUSY_SECONDS * 1000)
    if not problem and not emptied:
        problem = "another process still reads an older state of the memory"
    return Cleaned(rewritten, emptied, problem)


def _vacuum(connection: apsw.Connection) -> bool:
    size = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    if size > IN_MEMORY:
        connection.pragma("temp_store", "FILE")
    try:
        connection.execute("VACUUM")
    finally:
        connection.pragma("temp_store", "MEMORY")
    return True


# Looking for what is left


def own_words(db: "Database", target: Target) -> list[str]:
    """The words, as the index spells them, that no other page has."""
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
    chunks = [each for (each,) in db.rows("SELECT id FROM chunks WHERE page_id = ?", (target.id,))]
    rows = {index: json.dumps(chunks if index == "chunk_fts" else [target.id]) for index in INDEXES}
    return [word for word in every if not any(_holds(db, index, word, rows[index]) for index in INDEXES)]


def words_left(db: "Database", words: list[str]) -> int:
    """How many of these words an index still holds."""
    return sum(any(_holds(db, index, word, "[]") for index in INDEXES) for word in words)


def _holds(db: "Database", index: str, word: str, but: str) -> bool:
    """Return whether a row of an index holds a word; `but` is a JSON list of rows that do not count."""
    sql = "SELECT 1 FROM {} WHERE term = ? AND doc NOT IN (SELECT value FROM json_each(?)) LIMIT 1"
    return bool(_vocabulary(db, index, "instance", sql, (word, but)))


def _vocabulary(
    db: "Database", index: str, shape: str, sql: str, values: tuple[str, ...]
) -> list[tuple[Any, ...]]:
    """Ask the terms of an index; `{}` in the statement stands for them."""
    table = f"temp.{shape}s_of_{index}"
    with db.lock.turn, sqlite_told_plainly(db.path):
        db.connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5vocab (main, {index}, {shape})"
        )
        return db.connection.execute(sql.format(table), values).fetchall()


def places(db: "Database", piece: str) -> list[str]:
    """Which rows of any table or terms of any index hold a text, named as a person would: pages by their slugs."""
    return _rows_with(db, piece) or _pages_with_term(db, piece)


def _pages_with_term(db: "Database", piece: str) -> list[str]:
    """The pages whose words an index spells so, in lower case and without endings: it is theirs in the index."""
    found: dict[str, None] = {}
    for index, named in _INDEXED.items():
        # A term that no row has any more is a remnant: only rows count.
        rows = _vocabulary(
            db,
            index,
            "row",
            "SELECT term FROM {} WHERE instr(CAST(term AS BLOB), CAST(? AS BLOB)) AND doc > 0",
            (piece,),
        )
        for (term,) in rows:
            sql = f"SELECT DISTINCT {named} FROM {{}} AS t WHERE term = ? LIMIT {MOST_PLACES}"  # noqa: S608
            names = _vocabulary(db, index, "instance", sql, (term,))
            found.update((str(name), None) for (name,) in names if name is not None)
    return list(found)[:MOST_PLACES]


_INDEXED = {
    "page_fts": "(SELECT slug FROM pages WHERE id = t.doc)",
    "page_fts_unspaced": "(SELECT slug FROM pages WHERE id = t.doc)",
    "chunk_fts": "(SELECT p.slug FROM chunks AS c JOIN pages AS p ON p.id = c.page_id WHERE c.id = t.doc)",
    "turn_fts": "(SELECT 'the conversation ' || c.session FROM conversation_turns AS o"
    " JOIN conversations AS c ON c.id = o.conversation_id WHERE o.id = t.doc)",
}


def is_in_schema(db: "Database", piece: str) -> bool:
    """Return whether the definitions of the tables, which are in every memory, hold a text."""
    row = db.one("SELECT 1 FROM sqlite_schema WHERE instr(name, ?1) OR instr(sql, ?1) LIMIT 1", (piece,))
    return row is not None


def _rows_with(db: "Database", piece: str) -> list[str]:
    found: dict[str, None] = {}
    for table, columns in _tables(db).items():
        holds = " OR ".join([f'instr(CAST("{column}" AS BLOB), CAST(?1 AS BLOB))' for column in columns])
        name = _NAMES.get(table, f"'a row of {table}'")
        sql = f'SELECT DISTINCT {name} FROM "{table}" AS t WHERE {holds} LIMIT {MOST_PLACES}'  # noqa: S608
        found.update((str(place), None) for (place,) in db.rows(sql, (piece,)))
    return list(found)


_OF_PAGE = "(SELECT slug FROM pages WHERE id = t.{column})"
_NAMES = {
    "pages": "t.slug",
    "links": _OF_PAGE.format(column="from_page_id"),
    **{
        table: _OF_PAGE.format(column="page_id")
        for table in (
            "tags",
            "page_names",
            "timeline_entries",
            "chunks",
            "redirects",
            "assertions",
            "raw_data",
        )
    },
    "contradictions": "'contradiction ' || t.id",
    "conversations": "'the conversation ' || t.session",
    "conversation_turns": "(SELECT 'the conversation ' || session FROM conversations WHERE id = t.conversation_id)",
    "knowledge_gaps": "'gap ' || t.id",
    "raw_imports": "'the imported file ' || t.file_path",
    "import_files": "'the imported file ' || t.file_path",
    "import_manifest": "'the import ' || t.import_id",
    "ingest_log": "'the log of imports, ' || t.source_ref",
    "config": "'the setting ' || t.key",
    "quaid_config": "'the setting ' || t.key",
}


def _tables(db: "Database") -> dict[str, list[str]]:
    """Every table with its columns of text or bytes, but for those inside of an index of words."""
    found: dict[str, list[str]] = {}
    for table, column in db.rows(
        "SELECT s.name, c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c WHERE s.type = 'table'"
        " AND s.sql NOT LIKE 'CREATE VIRTUAL%' AND c.type NOT IN ('INTEGER', 'REAL') AND s.name NOT LIKE 'sqlite%'"
    ):
        if not str(table).startswith((*INDEXES, "turn_fts")):
            found.setdefault(str(table), []).append(str(column))
    return found


def _number(db: "Database", sql: str, values: tuple[Any, ...]) -> int:
    row = db.one(sql, values[: _parameters(sql)])
    return int(row[0]) if row else 0


def _parameters(sql: str) -> int:
    """How many values a statement takes: the highest of its numbers."""
    return max((number for number in (1, 2, 3) if f"?{number}" in sql), default=1)
