"""Imports: the bytes of every file that was read, and which files each import stands for.

Knows the rows of import_manifest, raw_imports, import_files and ingest_log. Does not know file formats, nor
which files a folder has now.

A file is known by its path relative to the folder, not by where the folder was: the path makes the slug, so
the same path is the same page, and a moved or copied folder must not look new.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from quaid.store.ingest_log import INGESTED

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


class KnownFile(NamedTuple):
    """The newest bytes that were taken in for a path. A file without a page has neither slug nor versions."""

    raw_id: int
    content_hash: str
    page_id: int | None
    slug: str | None
    page_version_at_import: int | None
    page_version_now: int | None


class Batch(NamedTuple):
    """One import."""

    import_id: str
    source_dir: str
    page_count: int
    file_count: int
    created_at: str


def known_files(db: "Database", collection: str = "default") -> dict[str, KnownFile]:
    """What was last taken in for each path, whichever import it was."""
    found = db.rows(
        "SELECT r.file_path, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"
        " FROM raw_imports r LEFT JOIN pages p ON p.id = r.page_id"
        " WHERE r.is_active = 1 AND r.collection_id = (SELECT id FROM collections WHERE name = ?)"
        " AND r.file_path NOT LIKE ? || '%'",
        (collection, INGESTED),
    )
    return {path: KnownFile(*rest) for path, *rest in found}


def files_of(db: "Database", import_id: str) -> dict[str, KnownFile]:
    """What one import stands for, by path."""
    found = db.rows(
        "SELECT f.file_path, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"
        " FROM import_files f JOIN raw_imports r ON r.id = f.raw_id LEFT JOIN pages p ON p.id = r.page_id"
        " WHERE f.import_id = ?",
        (import_id,),
    )
    return {path: KnownFile(*rest) for path, *rest in found}


def origin_of(db: "Database", page_id: int) -> tuple[str, str, KnownFile] | None:
    """The folder, the path and the newest file that a page was taken in from, if it came from one."""
    row = db.one(
        "SELECT m.source_dir, r.file_path, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"
        " FROM raw_imports r JOIN pages p ON p.id = r.page_id JOIN import_manifest m USING (import_id)"
        " WHERE r.page_id = ? AND r.is_active = 1 AND r.file_path NOT LIKE ? || '%'",
        (page_id, INGESTED),
    )
    return None if row is None else (row[0], row[1], KnownFile(*row[2:]))


def newest(db: "Database", source_dir: str | None = None) -> str | None:
    """The last import of a folder, or of any."""
    row = db.one(
        "SELECT import_id FROM import_manifest WHERE ? IS NULL OR source_dir = ?"
        " ORDER BY created_at DESC, import_id DESC LIMIT 1",
        (source_dir, source_dir),
    )
    return None if row is None else str(row[0])


def bytes_of(db: "Database", raw_id: int) -> bytes:
    """The bytes of one file as they were read."""
    row = db.one("SELECT raw_bytes FROM raw_imports WHERE id = ?", (raw_id,))
    return b"" if row is None else bytes(row[0])


def begin(tx: "apsw.Connection", import_id: str, source_dir: str, now: str) -> None:
    """Open an import."""
    tx.execute(
        "INSERT INTO import_manifest (import_id, source_dir, created_at) VALUES (?, ?, ?)",
        (import_id, source_dir, now),
    )


def keep(
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
    carry(tx, import_id, file_path, raw_id)
    return raw_id


def keep_new(
    tx: "apsw.Connection", import_id: str, files: "list[tuple[str, bytes, str, int]]", now: str
) -> None:
    """Keep the bytes of files that made new pages: of each its path, its bytes, their hash and the page's id."""
    from quaid.store.bulk import next_id

    tx.execute(
        "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND collection_id = 1"
        " AND file_path IN (SELECT value FROM json_each(?))",
        (json.dumps([path for path, *_ in files], ensure_ascii=False),),
    )
    first = next_id(tx, "raw_imports")
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


def carry(tx: "apsw.Connection", import_id: str, file_path: str, raw_id: int) -> None:
    """Let an import stand for a file whose bytes are kept already."""
    tx.execute(
        "INSERT INTO import_files (import_id, file_path, raw_id) VALUES (?, ?, ?)",
        (import_id, file_path, raw_id),
    )


def finish(tx: "apsw.Connection", import_id: str, page_count: int) -> None:
    """Close an import with the number of pages that it stands for."""
    tx.execute("UPDATE import_manifest SET page_count = ? WHERE import_id = ?", (page_count, import_id))


def batches(db: "Database") -> list[Batch]:
    """All imports, the newest first."""
    found = db.rows(
        "SELECT import_id, source_dir, page_count,"
        " (SELECT count(*) FROM import_files f WHERE f.import_id = m.import_id), created_at"
        " FROM import_manifest m ORDER BY created_at DESC, import_id DESC"
    )
    return [Batch(*row) for row in found]


def batch_files(db: "Database", import_id: str) -> Iterator[tuple[str, bytes]]:
    """The files that an import stands for, with their bytes, by path; one after the other to save memory."""
    for path, raw_id in db.rows(
        "SELECT file_path, raw_id FROM import_files WHERE import_id = ? ORDER BY file_path", (import_id,)
    ):
        row = db.one("SELECT raw_bytes FROM raw_imports WHERE id = ?", (raw_id,))
        if row is not None:
            yield path.removeprefix(INGESTED), row[0]
