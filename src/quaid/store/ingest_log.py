"""Sources that were taken in one by one: their bytes, and which pages each of them changed.

Knows the rows of ingest_log, and those of import_manifest, raw_imports and import_files that belong to a single
source: it is listed and given back like an import of one file. One row is active for each page that a source made;
its path tells it from files of folders that are imported later. Does not know what a source says.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


INGESTED = "./"
"""How paths of ingested sources begin, and no path that a folder has."""


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


def touched(db: "Database", content_hash: str, source_ref: str) -> set[int]:
    """The ids of all pages that these bytes from this source changed, whenever that was."""
    rows = db.rows(
        "SELECT DISTINCT wanted.value FROM ingest_log AS l, json_each(l.pages_updated) AS wanted"
        " WHERE l.content_hash = ? AND l.source_ref = ?",
        (content_hash, source_ref),
    )
    return {int(page_id) for (page_id,) in rows}


def page_with(db: "Database", content_hash: str, source_ref: str) -> str | None:
    """The slug of the page that these bytes from this source became, if it is still there."""
    row = db.one(
        "SELECT p.slug FROM ingest_log AS l JOIN raw_imports AS r ON r.import_id = l.import_id"
        " AND r.content_hash = l.content_hash JOIN pages AS p ON p.id = r.page_id"
        " WHERE l.content_hash = ? AND l.source_ref = ? AND p.quarantined_at IS NULL ORDER BY r.id DESC LIMIT 1",
        (content_hash, source_ref),
    )
    return None if row is None else str(row[0])


def newest_of(db: "Database", page_id: int) -> tuple[str, bytes] | None:
    """The source that a page's text was last taken from, and its bytes."""
    row = db.one(
        "SELECT l.source_ref, r.raw_bytes FROM raw_imports AS r JOIN ingest_log AS l"
        " ON l.content_hash = r.content_hash AND l.import_id = r.import_id"
        " WHERE r.page_id = ? ORDER BY r.id DESC LIMIT 1",
        (page_id,),
    )
    return None if row is None else (str(row[0]), bytes(row[1]))


def without_page(db: "Database") -> list[Source]:
    """Sources that were taken in when a source made no page of its own."""
    rows = db.rows(
        "SELECT substr(m.source_dir, 1, length(m.source_dir) - length(l.source_ref) - 2), l.source_ref,"
        " r.file_path, r.raw_bytes, r.content_hash FROM ingest_log AS l JOIN import_manifest AS m USING (import_id)"
        " JOIN raw_imports AS r ON r.import_id = l.import_id AND r.content_hash = l.content_hash"
        " WHERE r.page_id IS NULL AND m.source_dir LIKE '%_: _%'"
        " AND substr(m.source_dir, -length(l.source_ref) - 2) = ': ' || l.source_ref ORDER BY l.id"
    )
    return [Source(*row) for row in rows]


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
    """Keep a source's bytes and say which pages it changed.

    `page` is the page that these bytes make now, with its version; None: they made it before."""
    tx.execute(
        "INSERT INTO import_manifest (import_id, source_dir, page_count, created_at) VALUES (?, ?, ?, ?)",
        (import_id, f"{source.kind}: {source.ref}", len(page_ids), now),
    )
    raw_id = _kept(tx, source, page)
    if raw_id is None:
        path = source.file_path if page is None else _path(tx, source, page[0])
        is_active = path.startswith(INGESTED)
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
    note(tx, import_id, source.ref, source.content_hash, page_ids, now)
    if page is not None:
        _adopt(tx, source, page[0])


def move(tx: "apsw.Connection", earlier: Earlier, source: Source) -> None:
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


def _kept(tx: "apsw.Connection", source: Source, page: tuple[int, int] | None) -> int | None:
    """The row that holds these bytes of this source already: as the present ones of its page, if that is written."""
    row = tx.execute(
        "SELECT r.id FROM ingest_log AS l JOIN import_files AS f ON f.import_id = l.import_id"
        " JOIN raw_imports AS r ON r.id = f.raw_id WHERE l.content_hash = ?1 AND r.content_hash = ?1"
        " AND l.source_ref = ?2 AND (?3 IS NULL OR (r.page_id = ?3 AND r.is_active AND r.page_version = ?4))"
        " ORDER BY r.page_id IS NULL, r.id DESC LIMIT 1",
        (source.content_hash, source.ref, *(page or (None, None))),
    ).fetchone()
    return None if row is None else int(row[0])


def _path(tx: "apsw.Connection", source: Source, page_id: int) -> str:
    """The name under which `export --raw` writes a source: in the folder of its page.

    It begins with './', as no path of a folder does: an import must not take the row for a file of its own. The page
    of an attached folder has its file already, and the bytes of that are its active row."""
    (slug, is_ours), *_ = tx.execute("SELECT slug, collection_id = 1 FROM pages WHERE id = ?", (page_id,))
    if not is_ours:
        return source.file_path
    folder, name = slug.rpartition("/")[0], source.file_path.rpartition("/")[2]
    path = f"{INGESTED}{folder}/{name}" if folder else f"{INGESTED}{name}"
    other = tx.execute(
        "SELECT 1 FROM raw_imports WHERE is_active = 1 AND collection_id = 1 AND file_path = ? AND page_id <> ?",
        (path, page_id),
    ).fetchone()
    return f"{INGESTED}{page_id}/{name}" if other else path


def _adopt(tx: "apsw.Connection", source: Source, page_id: int) -> None:
    """Let rows of this source that were kept without a page belong to it, so that they go with it."""
    tx.execute(
        "UPDATE raw_imports SET page_id = ?1 WHERE page_id IS NULL AND content_hash = ?2 AND import_id IN"
        " (SELECT import_id FROM ingest_log WHERE content_hash = ?2 AND source_ref = ?3)",
        (page_id, source.content_hash, source.ref),
    )
