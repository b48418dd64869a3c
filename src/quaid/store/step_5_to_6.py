"""Schema 5 to schema 6: collections, identities, files without a page.

Knows both shapes. In schema 5 a slug was unique in the whole memory, tags and timeline entries could stand
beside a page without standing in it, and only the bytes of files that made a page were kept. In schema 6 tags
and timeline entries follow from the page, so what stood only beside it is first written into it.

The new shape is schema_6.sql, which stays as it was when 6 was the newest version.
"""

import hashlib
import json
from datetime import datetime
from typing import Any

import apsw

from quaid.model import tags, timeline
from quaid.model.slug import uuid7
from quaid.store import vectors
from quaid.store.creating import add_default_collection, schema
from quaid.store.json_text import as_json

CARRIED = (
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
BURNED = ("page_fts", "page_embeddings")

AS_THEY_ARE = """
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

FILES = """
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


def step_5_to_6(tx: apsw.Connection, now: str) -> None:
    """Put the old tables aside, make the new ones, carry every kept row over, drop the old ones."""
    _put_aside(tx)
    tx.execute(schema("schema_6.sql"))
    add_default_collection(tx, now)
    _carry_pages(tx)
    tx.execute(AS_THEY_ARE)
    tx.execute(FILES)
    _hash_files(tx)
    for (dimensions,) in _rows(tx, "SELECT dimensions FROM embedding_models"):
        vectors.add_table(tx, dimensions)
    for table in CARRIED:
        tx.execute(f"DROP TABLE v5_{table}")


def identity(slug: str, created_at: str) -> str:
    """The UUIDv7 of a page that had none: from what never changed, so that every copy gets the same."""
    try:
        milliseconds = int(datetime.fromisoformat(created_at).timestamp() * 1000)
    except ValueError:
        milliseconds = 0
    return uuid7(milliseconds, hashlib.sha256(slug.encode()).digest()[:10])


def _put_aside(tx: apsw.Connection) -> None:
    for kind, name in tx.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL"
    ).fetchall():
        tx.execute(f'DROP {kind} "{name}"')
    for table in (*BURNED, *vectors.vec_tables(tx)):
        tx.execute(f"DROP TABLE {table}")
    for table in CARRIED:
        tx.execute(f"ALTER TABLE {table} RENAME TO v5_{table}")


def _carry_pages(tx: apsw.Connection) -> None:
    for page_id, slug, created_at, frontmatter, text in _rows(
        tx, "SELECT id, slug, created_at, frontmatter, timeline FROM v5_pages"
    ):
        beside = _rows(tx, "SELECT tag FROM v5_tags WHERE page_id = ? ORDER BY id", (page_id,))
        entries = _rows(
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
                identity(slug, created_at),
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
    for raw_id, data in _rows(tx, "SELECT id, raw_bytes FROM raw_imports WHERE content_hash = ''"):
        found = hashlib.sha256(data).hexdigest()
        tx.execute("UPDATE raw_imports SET content_hash = ? WHERE id = ?", (found, raw_id))


def _rows(tx: apsw.Connection, sql: str, params: tuple[int, ...] = ()) -> list[tuple[Any, ...]]:
    return tx.execute(sql, params).fetchall()
