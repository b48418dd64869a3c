"""Bytes that pages were made of: former versions, imports, and sources that were ingested one by one.

Rows of raw_imports are never changed; old ones are trimmed unless an import needs them. A file is known by its path
relative to its folder: a moved or copied folder must not look new. Paths of ingested sources begin with './', as no
path in a folder does.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from quaid.storage.sqlite.connection import Database

MOST_VERSIONS = 10
"""Of a page that are kept, besides the present one."""

HISTORY_DAYS = 90


class PageVersion(NamedTuple):
    """One version of a page."""

    id: int
    version: int | None
    """The page's version with this text; none: a file's text that the page never had."""
    created_at: str
    size: int
    path: str
    content_hash: str
    is_present: bool
    batch: str
    """What brought it: an import, or `sync-` or `edit-` and an id."""


def keep_version(
    tx: "apsw.Connection",
    collection_id: int,
    page_id: int,
    version: int | None,
    path: str,
    data: bytes,
    now: str,
    batch: str,
    *,
    present: bool = True,
) -> None:
    """Keep the bytes of a version; `present` ones become the active row of their page and path."""
    if present:
        # Two statements: with an OR between them SQLite would look at every active row.
        tx.execute("UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND page_id = ?", (page_id,))
        tx.execute(
            "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND collection_id = ? AND file_path = ?",
            (collection_id, path),
        )
    tx.execute(
        "INSERT INTO raw_imports (collection_id, page_id, page_version, import_id, is_active, content_hash,"
        " file_path, created_at, raw_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(collection_id, page_id, version, batch, present),
            *(hashlib.sha256(data).hexdigest(), path, now, data),
        ),
    )


def keep_sidecar_file(
    tx: "apsw.Connection", collection_id: int, path: str, data: bytes, now: str, batch: str
) -> None:
    """Keep the bytes of a file that makes no page and hangs on one: only the last ones."""
    tx.execute(
        "DELETE FROM raw_imports WHERE collection_id = ? AND file_path = ? AND page_id IS NULL",
        (collection_id, path),
    )
    tx.execute(
        "INSERT INTO raw_imports (collection_id, import_id, content_hash, file_path, created_at, raw_bytes)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (collection_id, batch, hashlib.sha256(data).hexdigest(), path, now, data),
    )


def read_sidecar_file(db: "Database", collection_id: int, path: str) -> bytes | None:
    """The bytes that `keep_beside` kept."""
    row = db.one(
        "SELECT raw_bytes FROM raw_imports WHERE collection_id = ? AND file_path = ? AND is_active = 1"
        " AND page_id IS NULL",
        (collection_id, path),
    )
    return None if row is None else bytes(row[0])


def keep_first_versions(
    tx: "apsw.Connection",
    collection_id: int,
    files: "list[tuple[int, str, bytes, str]]",
    now: str,
    batch: str,
) -> None:
    """Keep the first version of pages that are new: of each its id, its path, its bytes and their hash."""
    tx.execute(
        "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND collection_id = ?"
        " AND file_path IN (SELECT value FROM json_each(?))",
        (collection_id, json.dumps([path for _, path, _, _ in files], ensure_ascii=False)),
    )
    tx.executemany(
        "INSERT INTO raw_imports (collection_id, page_id, page_version, import_id, content_hash, file_path,"
        " created_at, raw_bytes) VALUES (?, ?, 1, ?, ?, ?, ?, ?)",
        [
            (collection_id, page_id, batch, content_hash, path, now, data)
            for page_id, path, data, content_hash in files
        ],
    )


def trim_versions(tx: "apsw.Connection", page_id: int, oldest: str) -> None:
    """Drop what was replaced too long ago, or is too much. Whatever an import stands for stays."""
    # A version's age counts from the day on which the next one took its place: a text of ten years that is changed
    # today is kept from today on.
    tx.execute(
        "DELETE FROM raw_imports WHERE page_id = ?1 AND is_active = 0"
        " AND NOT EXISTS (SELECT 1 FROM import_files f WHERE f.raw_id = raw_imports.id)"
        " AND (EXISTS (SELECT 1 FROM raw_imports n WHERE n.page_id = ?1 AND n.id > raw_imports.id"
        " AND n.created_at < ?2)"
        " OR id NOT IN (SELECT id FROM raw_imports WHERE page_id = ?1 AND is_active = 0"
        " ORDER BY id DESC LIMIT ?3))",
        (page_id, oldest, MOST_VERSIONS),
    )


def versions_of_page(db: "Database", page_id: int) -> list[PageVersion]:
    """The versions of a page that are kept, the newest first."""
    rows = db.rows(
        "SELECT id, page_version, created_at, length(raw_bytes), file_path, content_hash, is_active, import_id"
        " FROM raw_imports WHERE page_id = ? ORDER BY id DESC",
        (page_id,),
    )
    return [PageVersion._make((*row[:6], bool(row[6]), row[7])) for row in rows]


def version_bytes(db: "Database", version_id: int) -> bytes:
    row = db.one("SELECT raw_bytes FROM raw_imports WHERE id = ?", (version_id,))
    return b"" if row is None else bytes(row[0])


INGESTED_PREFIX = "./"
"""How paths of ingested sources begin, and no path that a folder has."""


class EarlierIngest(NamedTuple):
    """The last time that some bytes were taken in, with the pages of then that are still there."""

    import_id: str | None
    source_ref: str
    created_at: str
    slugs: tuple[str, ...]


class IngestSource(NamedTuple):
    """What is taken in, and from where."""

    kind: str
    """meeting, article, doc, conversation, or what its author calls it."""
    ref: str
    file_path: str
    """The name under which `export --raw` writes it: relative, with no step out of a folder."""
    data: bytes
    content_hash: str


def earlier_ingest(db: "Database", content_hash: str, source_ref: str | None = None) -> EarlierIngest | None:
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
            return EarlierIngest(import_id, ref, created_at, tuple(slug for (slug,) in slugs))
    return None


def pages_changed_by(db: "Database", content_hash: str, source_ref: str) -> set[int]:
    """The ids of all pages that these bytes from this source changed, whenever that was."""
    rows = db.rows(
        "SELECT DISTINCT wanted.value FROM ingest_log AS l, json_each(l.pages_updated) AS wanted"
        " WHERE l.content_hash = ? AND l.source_ref = ?",
        (content_hash, source_ref),
    )
    return {int(page_id) for (page_id,) in rows}


def page_of_source(db: "Database", content_hash: str, source_ref: str) -> str | None:
    """The slug of the page that these bytes from this source became, if it is still there."""
    row = db.one(
        "SELECT p.slug FROM ingest_log AS l JOIN raw_imports AS r ON r.import_id = l.import_id"
        " AND r.content_hash = l.content_hash JOIN pages AS p ON p.id = r.page_id"
        " WHERE l.content_hash = ? AND l.source_ref = ? AND p.quarantined_at IS NULL ORDER BY r.id DESC LIMIT 1",
        (content_hash, source_ref),
    )
    return None if row is None else str(row[0])


def newest_source(db: "Database", page_id: int) -> tuple[str, bytes] | None:
    """The source that a page's text was last taken from, and its bytes."""
    row = db.one(
        "SELECT l.source_ref, r.raw_bytes FROM raw_imports AS r JOIN ingest_log AS l"
        " ON l.content_hash = r.content_hash AND l.import_id = r.import_id"
        " WHERE r.page_id = ? ORDER BY r.id DESC LIMIT 1",
        (page_id,),
    )
    return None if row is None else (str(row[0]), bytes(row[1]))


def sources_without_page(db: "Database") -> list[IngestSource]:
    """Sources that were taken in when a source made no page of its own."""
    rows = db.rows(
        "SELECT substr(m.source_dir, 1, length(m.source_dir) - length(l.source_ref) - 2), l.source_ref,"
        " r.file_path, r.raw_bytes, r.content_hash FROM ingest_log AS l JOIN import_manifest AS m USING (import_id)"
        " JOIN raw_imports AS r ON r.import_id = l.import_id AND r.content_hash = l.content_hash"
        " WHERE r.page_id IS NULL AND m.source_dir LIKE '%_: _%'"
        " AND substr(m.source_dir, -length(l.source_ref) - 2) = ': ' || l.source_ref ORDER BY l.id"
    )
    return [IngestSource(*row) for row in rows]


def source_of_page(db: "Database", page_id: int) -> tuple[str, int | None] | None:
    """The source that a page's text was last taken from, and the version that it had right afterwards."""
    row = db.one(
        "SELECT l.source_ref, r.page_version FROM raw_imports AS r JOIN ingest_log AS l"
        " ON l.content_hash = r.content_hash AND l.import_id = r.import_id"
        " WHERE r.page_id = ? ORDER BY r.id DESC LIMIT 1",
        (page_id,),
    )
    return None if row is None else (str(row[0]), row[1])


def keep_source(
    tx: "apsw.Connection",
    source: IngestSource,
    *,
    import_id: str,
    now: str,
    page_ids: list[int],
    page: tuple[int, int] | None = None,
) -> None:
    """Keep a source's bytes and say which pages it changed.

    `page` is the page that these bytes make now, with its version; None: they made it before."""
    tx.execute(
        "INSERT INTO import_manifest (import_id, source_dir, page_count, created_at) VALUES (?, ?, ?, ?)",
        (import_id, f"{source.kind}: {source.ref}", len(page_ids), now),
    )
    raw_id = _stored_source(tx, source, page)
    if raw_id is None:
        path = source.file_path if page is None else _source_path(tx, source, page[0])
        is_active = path.startswith(INGESTED_PREFIX)
        if is_active and page is not None:
            tx.execute("UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND page_id = ?", page[:1])
        tx.execute(
            "INSERT INTO raw_imports (page_id, page_version, import_id, is_active, content_hash, file_path,"
            " created_at, raw_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(page or (None, None)),
                *(import_id, is_active, source.content_hash, path, now, source.data),
            ),
        )
        raw_id = tx.last_insert_rowid()
    tx.execute(
        "INSERT INTO import_files (import_id, file_path, raw_id)"
        " SELECT ?, file_path, id FROM raw_imports WHERE id = ?",
        (import_id, raw_id),
    )
    log_ingest(tx, import_id, source.ref, source.content_hash, page_ids, now)
    if page is not None:
        _adopt_rows(tx, source, page[0])


def move_source(tx: "apsw.Connection", earlier: EarlierIngest, source: IngestSource) -> None:
    """Say that a source which was taken in lies elsewhere now."""
    tx.execute(
        "UPDATE ingest_log SET source_ref = ? WHERE source_ref = ? AND EXISTS (SELECT 1 FROM import_manifest AS m"
        " WHERE m.import_id = ingest_log.import_id AND m.source_dir LIKE '%: ' || ingest_log.source_ref)",
        (source.ref, earlier.source_ref),
    )
    tx.execute(
        "UPDATE import_manifest SET source_dir = ? WHERE import_id = ?",
        (f"{source.kind}: {source.ref}", earlier.import_id),
    )


def log_ingest(
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


def _stored_source(tx: "apsw.Connection", source: IngestSource, page: tuple[int, int] | None) -> int | None:
    """The row that holds these bytes of this source already: as the present ones of its page, if that is written."""
    row = tx.execute(
        "SELECT r.id FROM ingest_log AS l JOIN import_files AS f ON f.import_id = l.import_id"
        " JOIN raw_imports AS r ON r.id = f.raw_id WHERE l.content_hash = ?1 AND r.content_hash = ?1"
        " AND l.source_ref = ?2 AND (?3 IS NULL OR (r.page_id = ?3 AND r.is_active AND r.page_version = ?4))"
        " ORDER BY r.page_id IS NULL, r.id DESC LIMIT 1",
        (source.content_hash, source.ref, *(page or (None, None))),
    ).fetchone()
    return None if row is None else int(row[0])


def _source_path(tx: "apsw.Connection", source: IngestSource, page_id: int) -> str:
    """The name under which `export --raw` writes a source: in the folder of its page.

    It begins with './', as no path of a folder does: an import must not take the row for a file of its own. The page
    of an attached folder has its file already, and the bytes of that are its active row."""
    (slug, is_ours), *_ = tx.execute("SELECT slug, collection_id = 1 FROM pages WHERE id = ?", (page_id,))
    if not is_ours:
        return source.file_path
    folder, name = slug.rpartition("/")[0], source.file_path.rpartition("/")[2]
    path = f"{INGESTED_PREFIX}{folder}/{name}" if folder else f"{INGESTED_PREFIX}{name}"
    other = tx.execute(
        "SELECT 1 FROM raw_imports WHERE is_active = 1 AND collection_id = 1 AND file_path = ? AND page_id <> ?",
        (path, page_id),
    ).fetchone()
    return f"{INGESTED_PREFIX}{page_id}/{name}" if other else path


def _adopt_rows(tx: "apsw.Connection", source: IngestSource, page_id: int) -> None:
    """Let rows of this source that were kept without a page belong to it, so that they go with it."""
    tx.execute(
        "UPDATE raw_imports SET page_id = ?1 WHERE page_id IS NULL AND content_hash = ?2 AND import_id IN"
        " (SELECT import_id FROM ingest_log WHERE content_hash = ?2 AND source_ref = ?3)",
        (page_id, source.content_hash, source.ref),
    )


class ImportedFile(NamedTuple):
    """The newest bytes that were taken in for a path. A file without a page has neither slug nor versions."""

    raw_id: int
    content_hash: str
    page_id: int | None
    slug: str | None
    page_version_at_import: int | None
    page_version_now: int | None


class ImportBatch(NamedTuple):
    """One import."""

    import_id: str
    source_dir: str
    page_count: int
    file_count: int
    created_at: str


def imported_files(db: "Database", collection: str = "default") -> dict[str, ImportedFile]:
    """What was last taken in for each path, whichever import it was."""
    found = db.rows(
        "SELECT r.file_path, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"
        " FROM raw_imports r LEFT JOIN pages p ON p.id = r.page_id"
        " WHERE r.is_active = 1 AND r.collection_id = (SELECT id FROM collections WHERE name = ?)"
        " AND r.file_path NOT LIKE ? || '%'",
        (collection, INGESTED_PREFIX),
    )
    return {path: ImportedFile(*rest) for path, *rest in found}


def files_of_import(db: "Database", import_id: str) -> dict[str, ImportedFile]:
    """What one import stands for, by path."""
    found = db.rows(
        "SELECT f.file_path, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"
        " FROM import_files f JOIN raw_imports r ON r.id = f.raw_id LEFT JOIN pages p ON p.id = r.page_id"
        " WHERE f.import_id = ?",
        (import_id,),
    )
    return {path: ImportedFile(*rest) for path, *rest in found}


def origin_of_page(db: "Database", page_id: int) -> tuple[str, str, ImportedFile] | None:
    """The folder, the path and the newest file that a page was taken in from, if it came from one."""
    row = db.one(
        "SELECT m.source_dir, r.file_path, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"
        " FROM raw_imports r JOIN pages p ON p.id = r.page_id JOIN import_manifest m USING (import_id)"
        " WHERE r.page_id = ? AND r.is_active = 1 AND r.file_path NOT LIKE ? || '%'",
        (page_id, INGESTED_PREFIX),
    )
    return None if row is None else (row[0], row[1], ImportedFile(*row[2:]))


def newest_import(db: "Database", source_dir: str | None = None) -> str | None:
    """The last import of a folder, or of any."""
    row = db.one(
        "SELECT import_id FROM import_manifest WHERE ? IS NULL OR source_dir = ?"
        " ORDER BY created_at DESC, import_id DESC LIMIT 1",
        (source_dir, source_dir),
    )
    return None if row is None else str(row[0])


def imported_bytes(db: "Database", raw_id: int) -> bytes:
    """The bytes of one file as they were read."""
    row = db.one("SELECT raw_bytes FROM raw_imports WHERE id = ?", (raw_id,))
    return b"" if row is None else bytes(row[0])


def begin_import(tx: "apsw.Connection", import_id: str, source_dir: str, now: str) -> None:
    """Open an import."""
    tx.execute(
        "INSERT INTO import_manifest (import_id, source_dir, created_at) VALUES (?, ?, ?)",
        (import_id, source_dir, now),
    )


def keep_imported_file(
    tx: "apsw.Connection",
    import_id: str,
    file_path: str,
    data: bytes,
    content_hash: str,
    page_id: int | None,
    page_version: int | None,
    now: str,
) -> int:
    """Keep a file's bytes as the newest of its path and of its page. Returns the row's id."""
    tx.execute(
        "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND collection_id = 1 AND file_path = ?",
        (file_path,),
    )
    tx.execute("UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND page_id = ?", (page_id,))
    tx.execute(
        "INSERT INTO raw_imports (page_id, page_version, import_id, content_hash, file_path, created_at,"
        " raw_bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (page_id, page_version, import_id, content_hash, file_path, now, data),
    )
    raw_id = tx.last_insert_rowid()
    tx.execute(
        "INSERT INTO ingest_log (import_id, source_ref, content_hash, pages_updated, created_at)"
        " VALUES (?, ?, ?, ?, ?)",
        (import_id, file_path, content_hash, "[]" if page_id is None else f"[{page_id}]", now),
    )
    add_file_to_import(tx, import_id, file_path, raw_id)
    return raw_id


def keep_imported_files(
    tx: "apsw.Connection", import_id: str, files: "list[tuple[str, bytes, str, int]]", now: str
) -> None:
    """Keep the bytes of files that made new pages: of each its path, its bytes, their hash and the page's id."""
    from quaid.storage.sqlite.connection import next_row_id

    tx.execute(
        "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND collection_id = 1"
        " AND file_path IN (SELECT value FROM json_each(?))",
        (json.dumps([path for path, *_ in files], ensure_ascii=False),),
    )
    first = next_row_id(tx, "raw_imports")
    tx.executemany(
        "INSERT INTO raw_imports (id, page_id, page_version, import_id, content_hash, file_path, created_at,"
        " raw_bytes) VALUES (?, ?, 1, ?, ?, ?, ?, ?)",
        [
            (raw_id, page_id, import_id, content_hash, path, now, data)
            for raw_id, (path, data, content_hash, page_id) in enumerate(files, first)
        ],
    )
    tx.executemany(
        "INSERT INTO ingest_log (import_id, source_ref, content_hash, pages_updated, created_at)"
        " VALUES (?, ?, ?, ?, ?)",
        [(import_id, path, content_hash, f"[{page_id}]", now) for path, _, content_hash, page_id in files],
    )
    tx.executemany(
        "INSERT INTO import_files (import_id, file_path, raw_id) VALUES (?, ?, ?)",
        [(import_id, path, raw_id) for raw_id, (path, *_) in enumerate(files, first)],
    )


def add_file_to_import(tx: "apsw.Connection", import_id: str, file_path: str, raw_id: int) -> None:
    """Let an import stand for a file whose bytes are kept already."""
    tx.execute(
        "INSERT INTO import_files (import_id, file_path, raw_id) VALUES (?, ?, ?)",
        (import_id, file_path, raw_id),
    )


def finish_import(tx: "apsw.Connection", import_id: str, page_count: int) -> None:
    """Close an import with the number of pages that it stands for."""
    tx.execute("UPDATE import_manifest SET page_count = ? WHERE import_id = ?", (page_count, import_id))


def list_imports(db: "Database") -> list[ImportBatch]:
    """All imports, the newest first."""
    found = db.rows(
        "SELECT import_id, source_dir, page_count,"
        " (SELECT count(*) FROM import_files f WHERE f.import_id = m.import_id), created_at"
        " FROM import_manifest m ORDER BY created_at DESC, import_id DESC"
    )
    return [ImportBatch(*row) for row in found]


def read_import_files(db: "Database", import_id: str) -> Iterator[tuple[str, bytes]]:
    """The files that an import stands for, with their bytes, by path; one after the other to save memory."""
    for path, raw_id in db.rows(
        "SELECT file_path, raw_id FROM import_files WHERE import_id = ? ORDER BY file_path", (import_id,)
    ):
        row = db.one("SELECT raw_bytes FROM raw_imports WHERE id = ?", (raw_id,))
        if row is not None:
            yield path.removeprefix(INGESTED_PREFIX), row[0]
