"""Create databases, and migrate older databases to the current schema.

A database with schema 8 to 11 is extended in place. A database of the predecessor written in Rust (schema 5) is
imported: its rows are copied and derived rows are rebuilt. Either way the database is backed up first,
changed in one transaction and checked before the commit.
"""

import hashlib
import json
import os
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from quaid.errors import AlreadyExists, MigrationFailed
from quaid.model import page as page_model, timeline
from quaid.model.page import build_page
from quaid.model.slug import fold_name, uuid7
from quaid.storage import (
    PREVIOUS_VERSIONS,
    SCHEMA_VERSION,
    as_json,
    chunks,
    collections,
    files as durable_files,
    page_edits,
    trust,
    vectors,
)
from quaid.storage.checks import (
    read_schema,
    rebuild_derived_rows,
    schema_statements,
    update_links,
    update_types,
)
from quaid.storage.sqlite.connection import Transaction, WriterLock
from quaid.storage.sqlite.errors import translate_os_errors, translate_sqlite_errors

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database
    from quaid.storage.sqlite.encryption import CipherHeader

DEFAULT_COLLECTION_ID = 1


def create_database(path: str, now: str, memory_id: str = "", cipher: "CipherHeader | None" = None) -> None:
    """Create a database at an unused path. It is built under a temporary name and then renamed."""
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
                _create_tables(unfinished, now, memory_id, cipher)
                durable_files.rename_durably(unfinished, path)
            except BaseException:
                durable_files.remove_with_sidecars(unfinished)
                lock.remove_file()
                raise


def add_default_collection(tx: Transaction, now: str) -> None:
    """Insert the collection for pages that exist only in the database."""
    tx.execute(
        "INSERT INTO collections (id, name, kind, is_write_target, created_at, updated_at)"
        " VALUES (?, 'default', 'pages', 1, ?, ?)",
        (DEFAULT_COLLECTION_ID, now, now),
    )


def _check_path_free(path: str) -> None:
    if os.path.lexists(path):
        raise AlreadyExists(path=path, hint="Use it as it is, or name another file.")
    # SQLite would apply a leftover WAL to the new file and corrupt it.
    if os.path.lexists(path + "-wal"):
        raise AlreadyExists(path=path + "-wal", hint="Its database is gone: bring that back, or move this.")


def _create_tables(path: str, now: str, memory_id: str, cipher: "CipherHeader | None") -> None:
    connection = Transaction(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        if cipher is not None:
            from quaid.storage.sqlite.encryption import CipherKey, find_key, unlock

            unlock(connection, CipherKey(find_key(path, cipher), cipher))
        connection.pragma("journal_mode", "MEMORY")
        connection.pragma("synchronous", "OFF")
        connection.execute("BEGIN")
        connection.execute(read_schema())
        add_default_collection(connection, now)
        if memory_id:
            collections.set_memory_id(connection, memory_id)
        if cipher is not None:
            collections.set_image_key(connection, os.urandom(32).hex())
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

INSERT INTO assertions (id, page_id, subject, subject_key, predicate, object, valid_from, valid_until, supersedes_id,
    confidence, asserted_by, source_ref, evidence_text, created_at)
SELECT id, page_id, subject, fold_name(subject), predicate, object, valid_from, valid_until, supersedes_id,
    coalesce(confidence, 1.0), asserted_by, source_ref, evidence_text, created_at
FROM v5_assertions;

INSERT INTO raw_data (id, page_id, source, fetched_at, data)
SELECT id, page_id, source, fetched_at, data FROM v5_raw_data;

INSERT INTO contradictions (id, page_id, other_page_id, type, description, detected_at, resolved_at)
SELECT id, page_id, other_page_id, type, description, detected_at, resolved_at FROM v5_contradictions;

-- Schema 5 accepted an exported question without the name of an approver; such a question becomes internal
-- again. Schema 5 added a row each time a question found no answer; now one open row counts the repetitions.
INSERT INTO knowledge_gaps (id, query_hash, query_text, context, confidence_score, sensitivity, approved_by,
    approved_at, redacted_query, resolved_at, resolved_by_slug, detected_at, times_seen, last_seen_at)
SELECT id, query_hash, query_text, context, confidence_score,
    iif(approved_by IS NULL OR approved_at IS NULL, 'internal', sensitivity), approved_by,
    approved_at, redacted_query, resolved_at, resolved_by_slug, detected_at,
    iif(resolved_at IS NULL, times, 1), iif(resolved_at IS NULL, latest, detected_at)
FROM (
    SELECT *, row_number() OVER (same ORDER BY id) AS repetition, count(*) OVER same AS times,
        max(detected_at) OVER same AS latest
    FROM v5_knowledge_gaps WINDOW same AS (PARTITION BY query_hash, resolved_at IS NULL)
) WHERE resolved_at IS NOT NULL OR repetition = 1;

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

-- A page that has not changed since its file was read still has the version that it got from the file. Of
-- several rows marked as active, only the newest stays active.
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


def import_v5(tx: Transaction, now: str) -> None:
    """Rename the old tables, create the current tables, copy the rows and drop the old tables."""
    _rename_v5_tables(tx)
    tx.execute(read_schema())
    add_default_collection(tx, now)
    _copy_v5_pages(tx)
    tx.create_scalar_function("fold_name", lambda *names: fold_name(str(names[0])), 1, deterministic=True)
    try:
        tx.execute(V5_ROWS_SQL)
    finally:
        tx.create_scalar_function("fold_name", None)
    tx.execute(V5_FILES_SQL)
    for raw_id, data in _fetch_rows(tx, "SELECT id, raw_bytes FROM raw_imports WHERE content_hash = ''"):
        content_hash = hashlib.sha256(data).hexdigest()
        tx.execute("UPDATE raw_imports SET content_hash = ? WHERE id = ?", (content_hash, raw_id))
    for (dimensions,) in _fetch_rows(tx, "SELECT dimensions FROM embedding_models"):
        vectors.add_vector_table(tx, dimensions)
    for table in V5_TABLES_CARRIED:
        tx.execute(f"DROP TABLE v5_{table}")
    trust.classify_all(tx)


def uuid_of_v5_page(slug: str, created_at: str) -> str:
    """Return a UUIDv7 for a page that has no UUID.

    It is computed from the slug and the creation time, so that every copy of the database gets the same
    value.
    """
    try:
        milliseconds = int(datetime.fromisoformat(created_at).timestamp() * 1000)
    except ValueError:
        milliseconds = 0
    return uuid7(milliseconds, hashlib.sha256(slug.encode()).digest()[:10])


def _rename_v5_tables(tx: Transaction) -> None:
    for kind, name in tx.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL"
    ).fetchall():
        tx.execute(f'DROP {kind} "{name}"')
    for table in (*V5_TABLES_DROPPED, *vectors.vector_tables(tx)):
        tx.execute(f"DROP TABLE {table}")
    for table in V5_TABLES_CARRIED:
        tx.execute(f"ALTER TABLE {table} RENAME TO v5_{table}")


def _copy_v5_pages(tx: Transaction) -> None:
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
    """Return the front matter, extended by the tags that were only in the tags table."""
    values: dict[str, Any] = json.loads(frontmatter)
    key = "tag" if "tag" in values and "tags" not in values else "tags"
    inside = page_model.parse_tags(values.get(key))
    missing = [tag for tag in page_model.parse_tags(beside) if tag not in inside]
    if not missing:
        return frontmatter
    listed = values.get(key)
    values[key] = [*(listed if isinstance(listed, list) else inside), *missing]
    return as_json(values)


def _with_entries(text: str, entries: list[tuple[Any, ...]]) -> str:
    """Return the timeline, extended by the entries that were only in the timeline_entries table."""
    inside = {(entry.date, entry.summary) for entry in timeline.parse(text)}
    for date, summary, source, detail in entries:
        line = " ".join(summary.split())
        if (date, line) not in inside:
            text = timeline.add_entry(text, date, line, " ".join(source.replace("—", "-").split()), detail)
    return text


def _fetch_rows(tx: Transaction, sql: str, params: tuple[int | str, ...] = ()) -> list[tuple[Any, ...]]:
    return tx.execute(sql, params).fetchall()


def extend_v8(tx: Transaction) -> None:
    """Add the tables and columns of schema 9: authors of versions and facts, and proposals.

    Also recompute types and links, because their rules have changed.
    """
    statements = schema_statements()
    for name in ("page_authors", "proposals", "proposals_open"):
        tx.execute(statements[name])
    tx.execute("ALTER TABLE assertions ADD COLUMN author TEXT NOT NULL DEFAULT ''")
    # A value of 4000 is the default of schema 8, so it is replaced by the current default.
    tx.execute("UPDATE config SET value = '1500' WHERE key = 'default_token_budget' AND value = '4000'")
    update_types(tx)
    update_links(tx)


def extend_v9(tx: Transaction) -> None:
    """Add the table of schema 10: the entries of chunks."""
    statements = schema_statements()
    for name in ("chunk_entries", "chunk_entries_by_chunk", "chunk_entries_by_content"):
        tx.execute(statements[name])
    chunks.write_all_entries(tx)


def extend_v10(tx: Transaction) -> None:
    """Add the tables and columns of schema 11: shared spaces, and agent, device and base of versions."""
    statements = schema_statements()
    for name in (
        *("spaces", "space_pages", "space_pages_by_page", "space_pages_open", "space_outbox"),
        *("pages_shared_ai", "pages_shared_au", "pages_shared_ad"),
    ):
        tx.execute(statements[name])
    # The table is copied, so that its definition is the same as in a new database.
    columns = "page_id, version, author, source"
    tx.execute("ALTER TABLE page_authors RENAME TO page_authors_v10")
    tx.execute(statements["page_authors"])
    tx.execute(f"INSERT INTO page_authors ({columns}) SELECT {columns} FROM page_authors_v10")  # noqa: S608
    tx.execute("DROP TABLE page_authors_v10")


def extend_v11(tx: Transaction) -> None:
    """Add the tables and columns of schema 12, such as those for tool calls, golden questions and expiry."""
    statements = schema_statements()
    for name in (
        "page_trust",
        *("activity", "activity_by_session", "activity_by_proposal"),
        *("activity_pages", "activity_pages_by_page", "duplicate_pairs", "duplicate_pairs_by_other"),
        "session_items",
        *("golden_questions", "golden_pages", "golden_pages_by_page"),
        *("opened_results", "opened_results_by_page"),
    ):
        tx.execute(statements[name])
    for table in ("knowledge_gaps", "proposals", "assertions", "links", "page_authors"):
        _copy_table(tx, table)
    _add_expiry(tx, statements)
    trust.classify_all(tx)
    tx.execute("UPDATE config SET value = ? WHERE key = 'version'", (str(SCHEMA_VERSION),))
    tx.execute("UPDATE quaid_config SET value = ? WHERE key = 'schema_version'", (str(SCHEMA_VERSION),))
    tx.pragma("user_version", SCHEMA_VERSION)


def _copy_table(tx: Transaction, table: str) -> None:
    """Copy a table, so that its definition is the same as in a new database. New columns get their defaults."""
    statements = schema_statements()
    columns = ", ".join(str(row[1]) for row in tx.execute(f"PRAGMA table_info({table})"))
    indexes = _fetch_rows(
        tx,
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?",
        (table,),
    )
    last = _fetch_rows(tx, "SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
    for (name,) in indexes:
        tx.execute(f"DROP INDEX {name}")
    tx.execute("PRAGMA legacy_alter_table = ON")  # keep the table name in foreign keys of other tables
    tx.execute(f"ALTER TABLE {table} RENAME TO {table}_old")
    tx.execute("PRAGMA legacy_alter_table = OFF")
    tx.execute(statements[table])
    tx.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {table}_old")  # noqa: S608 (fixed names)
    tx.execute(f"DROP TABLE {table}_old")
    for (name,) in indexes:
        tx.execute(statements[str(name)])
    for (number,) in last:
        tx.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (number, table))


def _add_expiry(tx: Transaction, statements: dict[str, str]) -> None:
    tx.execute("DROP TRIGGER pages_hidden")
    for name in (
        *("expirations", "expirations_by_time", "expired", "expired_by_page", "pages_by_age"),
        *("fact_expirations", "fact_expirations_by_time", "pages_hidden", "pages_shown"),
    ):
        tx.execute(statements[name])
    rows = _fetch_rows(
        tx,
        "SELECT id, slug, frontmatter, compiled_truth, timeline FROM pages WHERE quarantined_at IS NULL"
        " AND (instr(frontmatter, '\"expires\"') OR instr(compiled_truth, '(expires ')"
        " OR instr(timeline, '(expires '))",
    )
    for page_id, slug, frontmatter, truth, text in rows:
        page_edits.index_moments(tx, page_id, build_page(slug, json.loads(frontmatter), truth, text))


def migrate(db: "Database", now: str) -> None:
    """Migrate a memory to the current schema, unless another process did so during the wait for the lock."""
    with db.lock.held(), translate_sqlite_errors(db.path):
        connection = db.connection
        version = connection.pragma("user_version")
        if version == SCHEMA_VERSION:
            return
        backup = _back_up_before_migration(db, version)
        # Rows are copied in any order; foreign_key_check verifies the result before the commit.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
        try:
            _run_migration(connection, version, now)
        except Exception as failure:
            problem = str(failure) or type(failure).__name__
            raise MigrationFailed(
                path=db.path, version=version, target=SCHEMA_VERSION, problem=problem, backup=backup
            ) from failure
        finally:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        db.migrated = (
            f"{db.path} was migrated from schema {version} to {SCHEMA_VERSION} and checked. The previous state"
            f" is kept in {backup}"
        )


def _run_migration(connection: Transaction, version: int, now: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version in PREVIOUS_VERSIONS:
            for before, extend in ((8, extend_v8), (9, extend_v9), (10, extend_v10), (11, extend_v11)):
                if version <= before:
                    extend(connection)
        else:
            import_v5(connection, now)
            rebuild_derived_rows(connection)
        _check_result(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_result(connection: Transaction) -> None:
    damage = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if damage != [("ok",)]:
        raise ValueError(f"the result is damaged: {damage[0][0]}")
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        raise ValueError(f"row {row} of {table} points to a row of {parent} that is not there")


def _back_up_before_migration(db: "Database", version: int) -> str:
    """Copy the database to an unused path beside it and return that path.

    The copy is renamed only when it is complete.
    """
    name = f"{db.path}.backup-v{version}"
    unfinished = f"{name}-unfinished"
    with translate_os_errors(name):
        # A killed process may have left this file. No running process uses it, because the lock is held.
        durable_files.remove_with_sidecars(unfinished)
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
