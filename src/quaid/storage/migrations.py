"""Create databases and migrate older schemas to the current one.

A migration backs the database up, runs its steps in one transaction and checks the result. Derived rows are not
converted but rebuilt. schema.sql is the current schema; schema_6.sql and schema_7.sql stay as they were released.
"""

import hashlib
import json
import os
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from quaid.errors import AlreadyExists, MigrationFailed
from quaid.model import tags, timeline
from quaid.model.names import fold_name
from quaid.model.slug import uuid7
from quaid.storage import SCHEMA_VERSION, collections, conversations, files as durable_files, vectors
from quaid.storage.checks import rebuild_derived_rows
from quaid.storage.sqlite.connection import WriterLock, as_json
from quaid.storage.sqlite.errors import translate_os_errors, translate_sqlite_errors

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database

DEFAULT_COLLECTION_ID = 1


def read_schema(name: str = "schema.sql") -> str:
    """The text of the present schema, or of an older one."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


def schema_statements(name: str = "schema.sql") -> dict[str, str]:
    """The statement that makes each table, index, trigger and view of a schema, in their order."""
    fresh = apsw.Connection(":memory:")
    fresh.execute(read_schema(name))
    found = fresh.execute(
        "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB '*_fts*_*'"
        " AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    fresh.close()
    return {str(name): str(sql) for name, sql in found}


def create_database(path: str, now: str, memory_id: str = "") -> None:
    """Make a memory at a path where nothing is. It is built beside it and then given its name."""
    _check_path_free(path)
    with translate_os_errors(path):
        durable_files.make_folders(os.path.dirname(path))
    lock = WriterLock(path)
    with lock.held():
        _check_path_free(path)
        unfinished = path + "-new"
        with translate_os_errors(path), translate_sqlite_errors(path):
            try:
                durable_files.remove_with_sidecars(unfinished)
                durable_files.make_private_file(unfinished)
                _create_tables(unfinished, now, memory_id)
                durable_files.rename_durably(unfinished, path)
            except BaseException:
                durable_files.remove_with_sidecars(unfinished)
                lock.remove_file()
                raise


def add_default_collection(tx: apsw.Connection, now: str) -> None:
    """The collection of the pages that live only in the database."""
    tx.execute(
        "INSERT INTO collections (id, name, kind, is_write_target, created_at, updated_at)"
        " VALUES (?, 'default', 'pages', 1, ?, ?)",
        (DEFAULT_COLLECTION_ID, now, now),
    )


def _check_path_free(path: str) -> None:
    if os.path.lexists(path):
        raise AlreadyExists(path=path, hint="Use it as it is, or name another file.")
    # SQLite would take an old log for the new file's own, and spoil it.
    if os.path.lexists(path + "-wal"):
        raise AlreadyExists(path=path + "-wal", hint="Its database is gone: bring that back, or move this.")


def _create_tables(path: str, now: str, memory_id: str) -> None:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.pragma("journal_mode", "MEMORY")
        connection.pragma("synchronous", "OFF")
        connection.execute("BEGIN")
        connection.execute(read_schema())
        add_default_collection(connection, now)
        if memory_id:
            collections.set_memory_id(connection, memory_id)
        connection.execute("COMMIT")
        connection.pragma("journal_mode", "WAL")
    finally:
        connection.close()


V5_TABLES_CARRIED = (
    "pages",
    "links",
    "assertions",
    "tags",
    "timeline_entries",
    "raw_data",
    "raw_imports",
    "import_manifest",
    "contradictions",
    "knowledge_gaps",
    "embedding_models",
    "config",
)
V5_TABLES_DROPPED = ("page_fts", "page_embeddings")

V5_ROWS_SQL = """
INSERT INTO links (id, from_page_id, to_page_id, relationship, context, source_kind, valid_from, valid_until,
    created_at)
SELECT id, from_page_id, to_page_id, relationship, context, 'programmatic', valid_from, valid_until,
    created_at
FROM v5_links;

INSERT INTO assertions (id, page_id, subject, predicate, object, valid_from, valid_until, supersedes_id,
    confidence, asserted_by, source_ref, evidence_text, created_at)
SELECT id, page_id, subject, predicate, object, valid_from, valid_until, supersedes_id,
    coalesce(confidence, 1.0), asserted_by, source_ref, evidence_text, created_at
FROM v5_assertions;

INSERT INTO raw_data (id, page_id, source, fetched_at, data)
SELECT id, page_id, source, fetched_at, data FROM v5_raw_data;

INSERT INTO contradictions (id, page_id, other_page_id, type, description, detected_at, resolved_at)
SELECT id, page_id, other_page_id, type, description, detected_at, resolved_at FROM v5_contradictions;

-- Schema 5 let a question leave the house without a name under the permission; such a one is internal again.
INSERT INTO knowledge_gaps (id, query_hash, query_text, context, confidence_score, sensitivity, approved_by,
    approved_at, redacted_query, resolved_at, resolved_by_slug, detected_at, last_seen_at)
SELECT id, query_hash, query_text, context, confidence_score,
    iif(approved_by IS NULL OR approved_at IS NULL, 'internal', sensitivity), approved_by,
    approved_at, redacted_query, resolved_at, resolved_by_slug, detected_at, detected_at
FROM v5_knowledge_gaps;

-- The settings embedding_model and embedding_dimensions follow from this. The vectors themselves are made anew.
INSERT INTO embedding_models (name, dimensions, vec_table, active, created_at)
SELECT name, dimensions, 'page_embeddings_vec_' || dimensions, active, created_at FROM v5_embedding_models;

INSERT OR REPLACE INTO config (key, value)
SELECT key, value FROM v5_config WHERE key NOT IN ('version', 'embedding_model', 'embedding_dimensions');
"""

V5_FILES_SQL = """
CREATE INDEX v5_by_path ON v5_raw_imports (file_path);

INSERT INTO import_manifest (import_id, source_dir, page_count, created_at)
SELECT import_id, source_dir, page_count, created_at FROM v5_import_manifest;

INSERT OR IGNORE INTO import_manifest (import_id, source_dir, page_count, created_at)
SELECT import_id, '', count(*), min(created_at) FROM v5_raw_imports GROUP BY import_id;

-- A page that nobody changed since its file was read still has the version that the file gave it. Of several
-- rows that call themselves active, the newest is.
INSERT INTO raw_imports (id, page_id, page_version, import_id, is_active, content_hash, file_path, created_at,
    raw_bytes)
SELECT r.id, r.page_id, iif(p.updated_at <= r.created_at, p.version, NULL), r.import_id,
    r.is_active AND NOT EXISTS (
        SELECT 1 FROM v5_raw_imports n
        WHERE n.is_active AND n.id > r.id AND (n.page_id = r.page_id OR n.file_path = r.file_path)
    ),
    r.content_hash, r.file_path, r.created_at, r.raw_bytes
FROM v5_raw_imports r JOIN pages p ON p.id = r.page_id;

INSERT INTO import_files (import_id, file_path, raw_id) SELECT import_id, file_path, id FROM raw_imports;
"""


def migrate_5_to_6(tx: apsw.Connection, now: str) -> None:
    """Put the old tables aside, make the new ones, carry every kept row over, drop the old ones."""
    _rename_v5_tables(tx)
    tx.execute(read_schema("schema_6.sql"))
    add_default_collection(tx, now)
    _copy_v5_pages(tx)
    tx.execute(V5_ROWS_SQL)
    tx.execute(V5_FILES_SQL)
    _hash_files(tx)
    for (dimensions,) in _fetch_rows(tx, "SELECT dimensions FROM embedding_models"):
        vectors.add_vector_table(tx, dimensions)
    for table in V5_TABLES_CARRIED:
        tx.execute(f"DROP TABLE v5_{table}")


def uuid_of_v5_page(slug: str, created_at: str) -> str:
    """The UUIDv7 of a page that had none: from what never changed, so that every copy gets the same."""
    try:
        milliseconds = int(datetime.fromisoformat(created_at).timestamp() * 1000)
    except ValueError:
        milliseconds = 0
    return uuid7(milliseconds, hashlib.sha256(slug.encode()).digest()[:10])


def _rename_v5_tables(tx: apsw.Connection) -> None:
    for kind, name in tx.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL"
    ).fetchall():
        tx.execute(f'DROP {kind} "{name}"')
    for table in (*V5_TABLES_DROPPED, *vectors.vector_tables(tx)):
        tx.execute(f"DROP TABLE {table}")
    for table in V5_TABLES_CARRIED:
        tx.execute(f"ALTER TABLE {table} RENAME TO v5_{table}")


def _copy_v5_pages(tx: apsw.Connection) -> None:
    for page_id, slug, created_at, frontmatter, text in _fetch_rows(
        tx, "SELECT id, slug, created_at, frontmatter, timeline FROM v5_pages"
    ):
        beside = _fetch_rows(tx, "SELECT tag FROM v5_tags WHERE page_id = ? ORDER BY id", (page_id,))
        entries = _fetch_rows(
            tx,
            "SELECT date, summary, source, detail FROM v5_timeline_entries WHERE page_id = ? ORDER BY id",
            (page_id,),
        )
        tx.execute(
            "INSERT INTO pages (id, slug, uuid, type, title, summary, wing, room, version, created_at,"
            " updated_at, truth_updated_at, timeline_updated_at, frontmatter, compiled_truth, timeline)"
            " SELECT id, slug, ?, type, title, summary, wing, room, version, created_at,"
            " updated_at, truth_updated_at, timeline_updated_at, ?, compiled_truth, ?"
            " FROM v5_pages WHERE id = ?",
            (
                uuid_of_v5_page(slug, created_at),
                _with_tags(frontmatter, [tag for (tag,) in beside]),
                _with_entries(text, entries),
                page_id,
            ),
        )


def _with_tags(frontmatter: str, beside: list[str]) -> str:
    """The front matter with the tags that stood only beside the page."""
    values: dict[str, Any] = json.loads(frontmatter)
    key = "tag" if "tag" in values and "tags" not in values else "tags"
    inside = tags.parse(values.get(key))
    missing = [tag for tag in tags.parse(beside) if tag not in inside]
    if not missing:
        return frontmatter
    given = values.get(key)
    values[key] = [*(given if isinstance(given, list) else inside), *missing]
    return as_json(values)


def _with_entries(text: str, entries: list[tuple[Any, ...]]) -> str:
    """The timeline with the entries that stood only beside the page."""
    inside = {(entry.date, entry.summary) for entry in timeline.parse(text)}
    for date, summary, source, detail in entries:
        line = " ".join(summary.split())
        if (date, line) not in inside:
            text = timeline.add_entry(text, date, line, " ".join(source.replace("—", "-").split()), detail)
    return text


def _hash_files(tx: apsw.Connection) -> None:
    for raw_id, data in _fetch_rows(tx, "SELECT id, raw_bytes FROM raw_imports WHERE content_hash = ''"):
        found = hashlib.sha256(data).hexdigest()
        tx.execute("UPDATE raw_imports SET content_hash = ? WHERE id = ?", (found, raw_id))


def _fetch_rows(tx: apsw.Connection, sql: str, params: tuple[int, ...] = ()) -> list[tuple[Any, ...]]:
    return tx.execute(sql, params).fetchall()


V6_TABLES_REPLACED = ("links", "assertions", "contradictions")
"""Tables with other columns than before. SQLite cannot change them in place so that they look like new ones."""

# The same question was logged anew each time; now its first row counts them.
MERGE_GAPS_SQL = """
UPDATE knowledge_gaps AS first SET (times_seen, last_seen_at) = (
    SELECT sum(times_seen), max(last_seen_at) FROM knowledge_gaps
    WHERE query_hash = first.query_hash AND resolved_at IS NULL
) WHERE resolved_at IS NULL;

DELETE FROM knowledge_gaps WHERE resolved_at IS NULL AND id NOT IN (
    SELECT min(id) FROM knowledge_gaps WHERE resolved_at IS NULL GROUP BY query_hash
);
"""


def migrate_6_to_7(tx: apsw.Connection, _now: str) -> None:
    """Replace three tables, add what is new. Links out of texts are derived: they are made again afterwards."""
    tx.create_scalar_function("fold", lambda *given: fold_name(str(given[0])), 1, deterministic=True)
    tx.pragma("legacy_alter_table", True)  # other tables go on pointing to the name, which the new table gets
    try:
        tx.execute("DELETE FROM links WHERE source_kind = 'wiki_link'")
        tx.execute(MERGE_GAPS_SQL)
        new = schema_statements("schema_7.sql")
        for table in V6_TABLES_REPLACED:
            _replace_table(tx, table, new[table])
        there = {name for (name,) in tx.execute("SELECT name FROM sqlite_schema")}
        for name, sql in new.items():
            if name not in there:
                tx.execute(sql)
    finally:
        tx.pragma("legacy_alter_table", False)
        tx.create_scalar_function("fold", None)
    tx.execute("UPDATE config SET value = '7' WHERE key = 'version'")
    tx.execute("UPDATE quaid_config SET value = '7' WHERE key = 'schema_version'")
    tx.pragma("user_version", 7)


def _replace_table(tx: apsw.Connection, table: str, sql: str) -> None:
    """The same rows in a table of the new shape, and the next id as it would have been."""
    columns = ", ".join(_table_columns(tx, table))
    (last,) = tx.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone() or (
        None,
    )
    tx.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    tx.execute(sql)
    added, values = (", subject_key", ", fold(subject)") if table == "assertions" else ("", "")
    tx.execute(f"INSERT INTO {table} ({columns}{added}) SELECT {columns}{values} FROM old_{table}")  # noqa: S608
    tx.execute(f"DROP TABLE old_{table}")
    tx.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
    if last is not None:
        tx.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))


def _table_columns(tx: apsw.Connection, table: str) -> list[str]:
    return [str(name) for (name,) in tx.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def migrate_7_to_8(tx: apsw.Connection, _now: str) -> None:
    """Add what is new; every table of schema 7 stays as it is. Turns are cut, so that they can be embedded."""
    there = {name for (name,) in tx.execute("SELECT name FROM sqlite_schema")}
    for name, sql in schema_statements().items():
        if name not in there:
            tx.execute(sql)
    conversations.recut_turns(tx)
    tx.execute("UPDATE config SET value = '8' WHERE key = 'version'")
    tx.execute("UPDATE quaid_config SET value = '8' WHERE key = 'schema_version'")
    tx.pragma("user_version", 8)


STEPS: dict[int, Callable[[apsw.Connection, str], None]] = {
    5: migrate_5_to_6,
    6: migrate_6_to_7,
    7: migrate_7_to_8,
}
"""From each version, the step to the next."""


def migrate(db: "Database", now: str) -> None:
    """Run the steps that are missing. Whoever waited for another process finds nothing left to do."""
    with db.lock.held(), translate_sqlite_errors(db.path):
        connection = db.connection
        found = connection.pragma("user_version")
        if found == SCHEMA_VERSION:
            return
        backup = _back_up_before_migration(db, found)
        # Tables are replaced under the rows that point to them; foreign_key_check looks before the commit.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
        try:
            _run_steps(connection, found, now)
        except Exception as failure:
            problem = str(failure) or type(failure).__name__
            raise MigrationFailed(
                path=db.path, found=found, known=SCHEMA_VERSION, problem=problem, backup=backup
            ) from failure
        finally:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        db.migrated = (
            f"{db.path} was brought from schema {found} to {SCHEMA_VERSION}: its tables were changed, its index was"
            f" made again, and the result was checked. The memory as it was is kept in {backup}"
        )


def _run_steps(connection: apsw.Connection, found: int, now: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(found, SCHEMA_VERSION):
            STEPS[version](connection, now)
        rebuild_derived_rows(connection)
        _check_result(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_result(connection: apsw.Connection) -> None:
    damage = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if damage != [("ok",)]:
        raise ValueError(f"the result is damaged: {damage[0][0]}")
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        raise ValueError(f"row {row} of {table} points to a row of {parent} that is not there")
    if connection.pragma("user_version") != SCHEMA_VERSION:
        raise ValueError(f"the steps end at schema {connection.pragma('user_version')}")


def _back_up_before_migration(db: "Database", version: int) -> str:
    """Copy the whole memory beside itself. The copy gets its name, which nobody has yet, when it is whole."""
    name = f"{db.path}.backup-v{version}"
    unfinished = f"{name}-unfinished"
    with translate_os_errors(name):
        durable_files.remove_with_sidecars(unfinished)  # of a process that was killed: we have the lock
        try:
            durable_files.make_private_file(unfinished)
            db.connection.execute("VACUUM INTO ?", (unfinished,))
            path, number = name, 1
            while os.path.lexists(path):
                number += 1
                path = f"{name}-{number}"
            durable_files.rename_durably(unfinished, path)
        except BaseException:
            durable_files.remove_with_sidecars(unfinished)
            raise
    return path
