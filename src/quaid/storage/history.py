"""Stored source bytes of pages: earlier versions, imported files and individually ingested sources.

The bytes are stored in raw_imports; old rows are deleted unless an import refers to them. Files are
identified by their path relative to the imported folder, so that a moved or copied folder is recognised.
Paths of ingested sources begin with './', which paths in a folder never do.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quaid.model.dates import shift_date

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

MOST_VERSIONS = 10
"""At most this many former versions are kept per page."""

HISTORY_DAYS = 90


class PageVersion(NamedTuple):
    """A stored version of a page, without its bytes."""

    id: int
    version: int | None
    """The page version with this text; None if the text was only in a file and never became the page text."""
    created_at: str
    size: int
    path: str
    content_hash: str
    is_present: bool
    batch: str
    """The id of the import, or `sync-` or `edit-` followed by an id."""


StoredFile = tuple[int | None, int | None, str, bytes, str]
"""Page id, page version, path, bytes and their SHA-256."""


def keep_versions(
    tx: "Transaction",
    collection_id: int,
    files: Sequence[StoredFile],
    now: str,
    batch: str,
    *,
    present: bool = True,
    trim: bool = False,
) -> None:
    """Store the bytes of page versions.

    If `present`, the new rows become the active rows of their pages and paths.
    With `trim`, delete former versions of these pages that were replaced more than HISTORY_DAYS ago or exceed
    MOST_VERSIONS, except versions that an import refers to.
    """
    if present:
        # There are two statements because with OR, SQLite would scan all active rows.
        tx.execute(
            "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1"
            " AND page_id IN (SELECT value FROM json_each(?))",
            (json.dumps([page_id for page_id, *_ in files]),),
        )
        tx.execute(
            "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND collection_id = ?"
            " AND file_path IN (SELECT value FROM json_each(?))",
            (collection_id, json.dumps([path for _, _, path, *_ in files], ensure_ascii=False)),
        )
    tx.executemany(
        "INSERT INTO raw_imports (collection_id, page_id, page_version, import_id, is_active, content_hash,"
        " file_path, created_at, raw_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (collection_id, page_id, version, batch, present, content_hash, path, now, data)
            for page_id, version, path, data, content_hash in files
        ],
    )
    if trim:
        _trim_versions(tx, [page_id for page_id, *_ in files], shift_date(now[:10], -HISTORY_DAYS))


def record_author(tx: "Transaction", page_id: int, version: int, source: str = "") -> None:
    """Record the author, device and source of a version of a page."""
    tx.written.append((page_id, version, True))
    device = tx.device if tx.device or tx.replicating else device_name(tx)
    tx.execute(
        "INSERT OR REPLACE INTO page_authors (page_id, version, author, source, agent, device, base_version, trust)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (page_id, version, tx.author, source, tx.agent, device, version - 1, tx.trust),
    )


def device_name(db: "Database | Transaction") -> str:
    """Return the setting `device_name`, or else the host name."""
    row = db.one("SELECT value FROM config WHERE key = 'device_name'")
    return str(row[0]) if row else os.uname().nodename if hasattr(os, "uname") else ""


class VersionAuthor(NamedTuple):
    """Author, source, device and trust class of a version of a page."""

    version: int
    author: str
    source: str
    agent: str
    device: str
    base_version: int | None
    trust: int


def page_authors(db: "Database", page_id: int) -> list[VersionAuthor]:
    """Return the recorded authors of a page's versions, newest first."""
    rows = db.rows(
        "SELECT version, author, source, agent, device, base_version, trust FROM page_authors WHERE page_id = ?"
        " ORDER BY version DESC",
        (page_id,),
    )
    return [VersionAuthor(*row) for row in rows]


def _trim_versions(tx: "Transaction", page_ids: list[int | None], oldest: str) -> None:
    # The age of a version counts from the day it was replaced. If a page changes today, its previous text is
    # kept for the full period from today, even if that text is ten years old.
    tx.executemany(
        "DELETE FROM raw_imports WHERE page_id = ?1 AND is_active = 0"
        " AND NOT EXISTS (SELECT 1 FROM import_files f WHERE f.raw_id = raw_imports.id)"
        " AND (EXISTS (SELECT 1 FROM raw_imports n WHERE n.page_id = ?1 AND n.id > raw_imports.id"
        " AND n.created_at < ?2)"
        " OR id NOT IN (SELECT id FROM raw_imports WHERE page_id = ?1 AND is_active = 0"
        " ORDER BY id DESC LIMIT ?3))",
        [(page_id, oldest, MOST_VERSIONS) for page_id in page_ids],
    )
    # Keep the author of the oldest stored text, which is the newest author recorded up to its version.
    tx.executemany(
        "DELETE FROM page_authors WHERE page_id = ?1 AND version < (SELECT max(a.version) FROM page_authors a"
        " WHERE a.page_id = ?1 AND a.version <= (SELECT min(page_version) FROM raw_imports WHERE page_id = ?1))",
        [(page_id,) for page_id in page_ids],
    )


def versions_of_page(db: "Database | Transaction", page_id: int) -> list[PageVersion]:
    """Return the stored versions of a page, newest first."""
    rows = db.rows(
        "SELECT id, page_version, created_at, length(raw_bytes), file_path, content_hash, is_active, import_id"
        " FROM raw_imports WHERE page_id = ? ORDER BY id DESC",
        (page_id,),
    )
    return [PageVersion._make((*row[:6], bool(row[6]), row[7])) for row in rows]


def drop_versions_with(tx: "Transaction", page_id: int, text: str, *, everywhere: bool = False) -> None:
    """Delete the former versions of a page that contain a text, and overwrite their bytes in the file.

    The current bytes of an ingested source are kept without the text. With `everywhere`, so are the current bytes
    of any other file.
    """
    import hashlib  # imported late, because loading OpenSSL takes 3 ms

    tx.pragma("secure_delete", "ON")
    tx.execute(
        "DELETE FROM raw_imports WHERE page_id = ? AND is_active = 0 AND instr(raw_bytes, ?)",
        (page_id, text.encode()),
    )
    rows = tx.rows(
        "SELECT id, raw_bytes FROM raw_imports WHERE page_id = ? AND instr(raw_bytes, ?)"
        " AND (? OR substr(file_path, 1, ?) = ?)",
        (page_id, text.encode(), everywhere, len(INGESTED_PREFIX), INGESTED_PREFIX),
    )
    for id, data in rows:
        rest = re.sub(re.escape(text.encode()) + rb"[ ]?", b"", bytes(data))
        tx.execute(
            "UPDATE raw_imports SET raw_bytes = ?, content_hash = ? WHERE id = ?",
            (rest, hashlib.sha256(rest).hexdigest(), id),
        )


def version_bytes(db: "Database", version_id: int) -> bytes:
    row = db.one("SELECT raw_bytes FROM raw_imports WHERE id = ?", (version_id,))
    return b"" if row is None else bytes(row[0])


INGESTED_PREFIX = "./"
"""Prefix of the paths of ingested sources. Paths in a folder never begin with it."""


class IngestSource(NamedTuple):
    """A source to be ingested."""

    kind: str
    """Such as "meeting", "article", "doc" or "conversation"; other kinds are allowed."""
    ref: str
    file_path: str
    """The relative path that `export --raw` writes the source to, without `..` segments."""
    data: bytes
    content_hash: str

    def keep(
        self,
        tx: "Transaction",
        *,
        import_id: str,
        now: str,
        page_ids: list[int],
        page: tuple[int, int] | None = None,
    ) -> None:
        """Store a source's bytes and record which pages it changed.

        `page` is the id and version of the page written from these bytes, or None if the page was written
        earlier.
        """
        tx.execute(
            "INSERT INTO import_manifest (import_id, source_dir, page_count, created_at) VALUES (?, ?, ?, ?)",
            (import_id, f"{self.kind}: {self.ref}", len(page_ids), now),
        )
        raw_id = _stored_source(tx, self, page)
        if raw_id is None:
            path = self.file_path if page is None else _source_path(tx, self, page[0])
            is_active = path.startswith(INGESTED_PREFIX)
            if is_active and page is not None:
                tx.execute(
                    "UPDATE raw_imports SET is_active = 0 WHERE is_active = 1 AND page_id = ?", page[:1]
                )
            tx.execute(
                "INSERT INTO raw_imports (page_id, page_version, import_id, is_active, content_hash, file_path,"
                " created_at, raw_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(page or (None, None)),
                    *(import_id, is_active, self.content_hash, path, now, self.data),
                ),
            )
            raw_id = tx.last_insert_rowid()
        tx.execute(
            "INSERT INTO import_files (import_id, file_path, raw_id)"
            " SELECT ?, file_path, id FROM raw_imports WHERE id = ?",
            (import_id, raw_id),
        )
        NewImport(import_id, now).log(tx, self.ref, self.content_hash, page_ids)
        if page is not None:
            _adopt_rows(tx, self, page[0])


class EarlierIngest(NamedTuple):
    """The last ingest of some content, with the slugs of the pages it changed that are still visible."""

    import_id: str | None
    source_ref: str
    created_at: str
    slugs: tuple[str, ...]

    def move_to(self, tx: "Transaction", source: IngestSource) -> None:
        """Record that an ingested source is now at another location."""
        tx.execute(
            "UPDATE ingest_log SET source_ref = ? WHERE source_ref = ? AND EXISTS (SELECT 1 FROM import_manifest AS m"
            " WHERE m.import_id = ingest_log.import_id AND m.source_dir LIKE '%: ' || ingest_log.source_ref)",
            (source.ref, self.source_ref),
        )
        tx.execute(
            "UPDATE import_manifest SET source_dir = ? WHERE import_id = ?",
            (f"{source.kind}: {source.ref}", self.import_id),
        )


def _stored_source(tx: "Transaction", source: IngestSource, page: tuple[int, int] | None) -> int | None:
    """Return the id of the raw_imports row that already stores this content from this source, or None.

    If `page` is given, the row must be the active row of that page and have that version.
    """
    row = tx.execute(
        "SELECT r.id FROM ingest_log AS l JOIN import_files AS f ON f.import_id = l.import_id"
        " JOIN raw_imports AS r ON r.id = f.raw_id WHERE l.content_hash = ?1 AND r.content_hash = ?1"
        " AND l.source_ref = ?2 AND (?3 IS NULL OR (r.page_id = ?3 AND r.is_active AND r.page_version = ?4))"
        " ORDER BY r.page_id IS NULL, r.id DESC LIMIT 1",
        (source.content_hash, source.ref, *(page or (None, None))),
    ).fetchone()
    return None if row is None else int(row[0])


def _source_path(tx: "Transaction", source: IngestSource, page_id: int) -> str:
    """Return the path that `export --raw` writes a source to, in the folder of its page.

    The path begins with './', unlike any path in a folder, so that an import does not mistake the row for one
    of its files. A page in an attached folder already has its file as the active row, so its sources keep
    their own path.
    """
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


def _adopt_rows(tx: "Transaction", source: IngestSource, page_id: int) -> None:
    """Assign the rows of this source that have no page to a page, so that deleting the page deletes them."""
    tx.execute(
        "UPDATE raw_imports SET page_id = ?1 WHERE page_id IS NULL AND content_hash = ?2 AND import_id IN"
        " (SELECT import_id FROM ingest_log WHERE content_hash = ?2 AND source_ref = ?3)",
        (page_id, source.content_hash, source.ref),
    )


class ImportedFile(NamedTuple):
    """An imported file, with its row in raw_imports. Slug and versions are None if the file has no page."""

    raw_id: int
    content_hash: str
    page_id: int | None
    slug: str | None
    page_version_at_import: int | None
    page_version_now: int | None


class ImportBatch(NamedTuple):
    """A row of the import manifest with its number of files."""

    import_id: str
    source_dir: str
    page_count: int
    file_count: int
    created_at: str


class NewImport:
    """Writes an import: its row in the manifest, its files and their entries in the log."""

    def __init__(self, import_id: str, now: str) -> None:
        self._id, self._now = import_id, now

    def begin(self, tx: "Transaction", source_dir: str, stored: "dict[str, int] | None" = None) -> None:
        """Insert the manifest row, and the files whose bytes are already stored.

        `stored` maps the paths of these files to row ids of raw_imports.
        """
        tx.execute(
            "INSERT INTO import_manifest (import_id, source_dir, created_at) VALUES (?, ?, ?)",
            (self._id, source_dir, self._now),
        )
        tx.executemany(
            "INSERT INTO import_files (import_id, file_path, raw_id) VALUES (?, ?, ?)",
            [(self._id, path, raw_id) for path, raw_id in (stored or {}).items()],
        )

    def add_files(self, tx: "Transaction", files: Sequence[StoredFile]) -> None:
        """Add files to the import, storing their bytes as the active rows of their paths and pages."""
        keep_versions(tx, 1, files, self._now, self._id)
        for page_id, _, path, _, content_hash in files:
            self.log(tx, path, content_hash, [] if page_id is None else [page_id])
        tx.execute(
            "INSERT INTO import_files (import_id, file_path, raw_id) SELECT import_id, file_path, id"
            " FROM raw_imports WHERE import_id = ? AND file_path IN (SELECT value FROM json_each(?))",
            (self._id, json.dumps([path for _, _, path, *_ in files], ensure_ascii=False)),
        )

    def log(self, tx: "Transaction", source_ref: str, content_hash: str, page_ids: list[int]) -> None:
        """Record that content was ingested and which pages it changed, without storing its bytes."""
        tx.execute(
            "INSERT INTO ingest_log (import_id, source_ref, content_hash, pages_updated, created_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (self._id, source_ref, content_hash, json.dumps(page_ids), self._now),
        )

    def finish(self, tx: "Transaction", page_count: int) -> None:
        """Set the number of pages of the finished import."""
        tx.execute("UPDATE import_manifest SET page_count = ? WHERE import_id = ?", (page_count, self._id))


class Imports:
    """Reads what was imported or ingested: the imports, their files and sources, and the pages made from these."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def all(self) -> list[ImportBatch]:
        """Return all imports, newest first."""
        rows = self._db.rows(
            "SELECT import_id, source_dir, page_count,"
            " (SELECT count(*) FROM import_files f WHERE f.import_id = m.import_id), created_at"
            " FROM import_manifest m ORDER BY created_at DESC, import_id DESC"
        )
        return [ImportBatch(*row) for row in rows]

    def files(self, import_id: str | None = None) -> dict[str, ImportedFile]:
        """Return the files of one import, or the active imported file of each path from any import, by path."""
        files, source, value = "r.file_path", "raw_imports r", f"{INGESTED_PREFIX}*"
        condition = "r.is_active = 1 AND r.collection_id = 1 AND NOT r.file_path GLOB ?"
        if import_id:
            files, source, value = (
                "f.file_path",
                "import_files f JOIN raw_imports r ON r.id = f.raw_id",
                import_id,
            )
            condition = "f.import_id = ?"
        rows = self._db.rows(
            f"SELECT {files}, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"  # noqa: S608
            f" FROM {source} LEFT JOIN pages p ON p.id = r.page_id WHERE {condition}",
            (value,),
        )
        return {path: ImportedFile(*rest) for path, *rest in rows}

    def contents(self, import_id: str) -> Iterator[tuple[str, bytes]]:
        """Yield path and bytes of the files of an import in path order, one at a time to save memory.

        Files of expired pages are left out, and expired lines are removed from the bytes.
        """
        for path, raw_id in self._db.rows(
            "SELECT file_path, raw_id FROM import_files WHERE import_id = ? ORDER BY file_path", (import_id,)
        ):
            row = self._db.one(
                "SELECT raw_bytes, page_id FROM raw_imports WHERE id = ? AND (page_id IS NULL OR page_id NOT IN"
                " (SELECT page_id FROM expired WHERE kind = 'page'))",
                (raw_id,),
            )
            if row is None:
                continue
            data = bytes(row[0])
            for (text,) in self._db.rows(
                "SELECT text FROM expired WHERE page_id = ? AND kind = 'line'", (row[1],)
            ):
                data = data.replace(text.encode(), b"")
            yield path.removeprefix(INGESTED_PREFIX), data

    def pages_of_file(self, path: str) -> list[tuple[str, str]]:
        """Return slug and collection of up to two pages of an imported file.

        `path` is absolute, or relative to the imported folder or to one of its parent folders.
        """
        return self._db.rows(
            "SELECT DISTINCT p.slug, c.name FROM raw_imports r JOIN import_manifest m USING (import_id)"
            " JOIN pages p ON p.id = r.page_id JOIN collections c ON c.id = p.collection_id"
            " WHERE p.quarantined_at IS NULL AND length(?1) >= length(r.file_path)"
            " AND '/' || ltrim(?1, '/') = substr('/' || ltrim(m.source_dir || '/' || r.file_path, '/'),"
            " iif(?1 LIKE '/%', 1, -length(?1) - 1)) LIMIT 2",
            (path,),
        )

    def origin(self, page_id: int) -> tuple[str, str, ImportedFile] | None:
        """Return the folder, path and newest file that a page was imported from, or None."""
        row = self._db.one(
            "SELECT m.source_dir, r.file_path, r.id, r.content_hash, r.page_id, p.slug, r.page_version, p.version"
            " FROM raw_imports r JOIN pages p ON p.id = r.page_id JOIN import_manifest m USING (import_id)"
            " WHERE r.page_id = ? AND r.is_active = 1 AND r.file_path NOT LIKE ? || '%'",
            (page_id, INGESTED_PREFIX),
        )
        return None if row is None else (row[0], row[1], ImportedFile(*row[2:]))

    def last_ingest(self, content_hash: str, source_ref: str | None = None) -> EarlierIngest | None:
        """Return the last ingest of this content from `source_ref`, or from any source if `source_ref` is None.

        An ingest is skipped if all the pages that it changed are gone or hidden.
        """
        rows = self._db.rows(
            "SELECT import_id, source_ref, created_at, pages_updated FROM ingest_log"
            " WHERE content_hash = ? AND coalesce(source_ref = ?, 1) ORDER BY id DESC",
            (content_hash, source_ref),
        )
        for import_id, ref, created_at, updated in rows:
            slugs = self._db.rows(
                "SELECT p.slug FROM json_each(?) AS wanted JOIN pages AS p ON p.id = wanted.value"
                " WHERE p.quarantined_at IS NULL",
                (updated,),
            )
            if slugs or updated == "[]":
                return EarlierIngest(import_id, ref, created_at, tuple(slug for (slug,) in slugs))
        return None

    def pages_of_source(self, content_hash: str, source_ref: str) -> tuple[str | None, set[int]]:
        """Return the slug of the visible page of a source, or None, and the ids of all pages that it changed."""
        row = self._db.one(
            "SELECT p.slug FROM ingest_log AS l JOIN raw_imports AS r ON r.import_id = l.import_id"
            " AND r.content_hash = l.content_hash JOIN pages AS p ON p.id = r.page_id"
            " WHERE l.content_hash = ? AND l.source_ref = ? AND p.quarantined_at IS NULL ORDER BY r.id DESC LIMIT 1",
            (content_hash, source_ref),
        )
        changed = self._db.rows(
            "SELECT DISTINCT wanted.value FROM ingest_log AS l, json_each(l.pages_updated) AS wanted"
            " WHERE l.content_hash = ? AND l.source_ref = ?",
            (content_hash, source_ref),
        )
        return None if row is None else str(row[0]), {int(page_id) for (page_id,) in changed}

    def newest_source(self, page_id: int) -> tuple[str, int | None, bytes] | None:
        """Return the source a page was last ingested from, the resulting page version and the bytes, or None."""
        row = self._db.one(
            "SELECT l.source_ref, r.page_version, r.raw_bytes FROM raw_imports AS r JOIN ingest_log AS l"
            " ON l.content_hash = r.content_hash AND l.import_id = r.import_id"
            " WHERE r.page_id = ? ORDER BY r.id DESC LIMIT 1",
            (page_id,),
        )
        return None if row is None else (str(row[0]), row[1], bytes(row[2]))

    def sources_without_page(self) -> list[IngestSource]:
        """Return the ingested sources that have no page. Older releases did not create a page for each source."""
        rows = self._db.rows(
            "SELECT substr(m.source_dir, 1, length(m.source_dir) - length(l.source_ref) - 2), l.source_ref,"
            " r.file_path, r.raw_bytes, r.content_hash FROM ingest_log AS l"
            " JOIN import_manifest AS m USING (import_id)"
            " JOIN raw_imports AS r ON r.import_id = l.import_id AND r.content_hash = l.content_hash"
            " WHERE r.page_id IS NULL AND m.source_dir LIKE '%_: _%'"
            " AND substr(m.source_dir, -length(l.source_ref) - 2) = ': ' || l.source_ref ORDER BY l.id"
        )
        return [IngestSource(*row) for row in rows]
