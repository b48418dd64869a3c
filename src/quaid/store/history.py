"""What a page said before: the bytes of its file, or its text, a few versions back.

Knows raw_imports as the history of pages. A row is never changed; old ones go when there are too many. Rows that
an import stands for stay. Does not know how a page is written as text.
"""

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database

MOST_VERSIONS = 10
"""Of a page that are kept, besides the present one."""

DAYS = 90


class Version(NamedTuple):
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


def keep(
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


def keep_beside(
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


def kept_beside(db: "Database", collection_id: int, path: str) -> bytes | None:
    """The bytes that `keep_beside` kept."""
    row = db.one(
        "SELECT raw_bytes FROM raw_imports WHERE collection_id = ? AND file_path = ? AND is_active = 1"
        " AND page_id IS NULL",
        (collection_id, path),
    )
    return None if row is None else bytes(row[0])


def keep_new(
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


def trim(tx: "apsw.Connection", page_id: int, oldest: str) -> None:
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


def of_page(db: "Database", page_id: int) -> list[Version]:
    """The versions of a page that are kept, the newest first."""
    rows = db.rows(
        "SELECT id, page_version, created_at, length(raw_bytes), file_path, content_hash, is_active, import_id"
        " FROM raw_imports WHERE page_id = ? ORDER BY id DESC",
        (page_id,),
    )
    return [Version._make((*row[:6], bool(row[6]), row[7])) for row in rows]


def bytes_of(db: "Database", version_id: int) -> bytes:
    row = db.one("SELECT raw_bytes FROM raw_imports WHERE id = ?", (version_id,))
    return b"" if row is None else bytes(row[0])
