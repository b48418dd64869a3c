"""Sources that were taken in one by one: their bytes, and which pages each of them changed.

Knows the rows of ingest_log, and those of import_manifest, raw_imports and import_files that belong to a single
source: it is listed and given back like an import of one file. Such a row is never the active one of its path:
folders that are imported later must not take it for a file of theirs. Does not know what a source says.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


class Earlier(NamedTuple):
    """The last time that some bytes were taken in, with the pages of then that are still there."""

    import_id: str | None
    source_ref: str
    created_at: str
    slugs: tuple[str, ...]


class Source(NamedTuple):
    """What is taken in, and from where."""

    kind: str
    """meeting, article, doc, conversation, or what its author calls it."""
    ref: str
    file_path: str
    """The name under which `export --raw` writes it: relative, with no step out of a folder."""
    data: bytes
    content_hash: str


def earlier(db: "Database", content_hash: str, source_ref: str | None = None) -> Earlier | None:
    """When these bytes were taken in last, from this source or from any; not if all their pages are gone."""
    rows = db.rows(
        "SELECT import_id, source_ref, created_at, pages_updated FROM ingest_log"
        " WHERE content_hash = ? AND coalesce(source_ref = ?, 1) ORDER BY id DESC",
        (content_hash, source_ref),
    )
    for import_id, ref, created_at, updated in rows:
        slugs = db.rows(
            "SELECT p.slug FROM json_each(?) AS wanted JOIN pages AS p ON p.id = wanted.value"
            " WHERE p.quarantined_at IS NULL",
            (updated,),
        )
        if slugs or updated == "[]":
            return Earlier(import_id, ref, created_at, tuple(slug for (slug,) in slugs))
    return None


def made_by(db: "Database", page_id: int) -> tuple[str, int | None] | None:
    """The source that a page's text was last taken from, and the version that it had right afterwards."""
    row = db.one(
        "SELECT l.source_ref, r.page_version FROM raw_imports AS r JOIN ingest_log AS l"
        " ON l.content_hash = r.content_hash AND l.import_id = r.import_id"
        " WHERE r.page_id = ? ORDER BY r.id DESC LIMIT 1",
        (page_id,),
    )
    return None if row is None else (str(row[0]), row[1])


def keep(
    tx: "apsw.Connection",
    source: Source,
    *,
    import_id: str,
    now: str,
    page_ids: list[int],
    page: tuple[int, int] | None = None,
) -> None:
    """Keep a source's bytes and say which pages it changed; `page`: the one that it became, with its version."""
    tx.execute(
        "INSERT INTO import_manifest (import_id, source_dir, page_count, created_at) VALUES (?, ?, ?, ?)",
        (import_id, f"{source.kind}: {source.ref}", len(page_ids), now),
    )
    raw_id = _kept(tx, source) if page is None else None
    if raw_id is None:
        tx.execute(
            "INSERT INTO raw_imports (page_id, page_version, import_id, is_active, content_hash, file_path,"
            " created_at, raw_bytes) VALUES (?, ?, ?, 0, ?, ?, ?, ?)",
            (
                *(page or (None, None)),
                *(import_id, source.content_hash, source.file_path, now, source.data),
            ),
        )
        raw_id = tx.last_insert_rowid()
    tx.execute(
        "INSERT INTO import_files (import_id, file_path, raw_id) VALUES (?, ?, ?)",
        (import_id, source.file_path, raw_id),
    )
    note(tx, import_id, source.ref, source.content_hash, page_ids, now)


def note(
    tx: "apsw.Connection",
    import_id: str,
    source_ref: str,
    content_hash: str,
    page_ids: list[int],
    now: str,
) -> None:
    """Remember that bytes were taken in, and which pages they changed, without keeping them."""
    tx.execute(
        "INSERT INTO ingest_log (import_id, source_ref, content_hash, pages_updated, created_at)"
        " VALUES (?, ?, ?, ?, ?)",
        (import_id, source_ref, content_hash, json.dumps(page_ids), now),
    )


def _kept(tx: "apsw.Connection", source: Source) -> int | None:
    """The row that holds these bytes under this name already."""
    row = tx.execute(
        "SELECT r.id FROM ingest_log AS l JOIN import_files AS f ON f.import_id = l.import_id"
        " JOIN raw_imports AS r ON r.id = f.raw_id WHERE l.content_hash = ?1 AND r.content_hash = ?1"
        " AND r.file_path = ?2 AND r.page_id IS NULL LIMIT 1",
        (source.content_hash, source.file_path),
    ).fetchone()
    return None if row is None else int(row[0])
