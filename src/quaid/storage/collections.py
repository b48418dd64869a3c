"""Collections, their files, and the settings of the database."""

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import NotFound
from quaid.model.dates import day_number
from quaid.storage import files as durable_files

if TYPE_CHECKING:
    from quaid.model.sync_plan import LastSeenFile, ScannedFile
    from quaid.storage.sqlite.connection import Database, Transaction


def get_setting(db: "Database", key: str) -> str | None:
    """Return the value of a setting, or None if it is not set."""
    row = db.one("SELECT value FROM config WHERE key = ?", (key,))
    return None if row is None else row[0]


def set_setting(tx: "Transaction", key: str, value: str | None) -> None:
    """Store the value of a setting, or remove the setting if the value is None."""
    if value is None:
        tx.execute("DELETE FROM config WHERE key = ?", (key,))
        return
    tx.execute(
        "INSERT INTO config (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def list_settings(db: "Database") -> list[tuple[str, str]]:
    """Return all settings as (key, value), sorted by key."""
    return [(key, value) for key, value in db.rows("SELECT key, value FROM config ORDER BY key")]


MEMORY_ID_KEY = "memory_id"
"""Key in quaid_config under which the id of a memory is stored. Copies of the memory have the same id."""


def read_memory_id(db: "Database") -> str | None:
    """Return the id of a memory; None if it was created before ids existed and was never backed up."""
    row = db.one("SELECT value FROM quaid_config WHERE key = ?", (MEMORY_ID_KEY,))
    return None if row is None else str(row[0])


def set_memory_id(tx: "Transaction", id: str) -> None:
    """Set the id of a memory that has no id yet."""
    tx.execute("INSERT OR IGNORE INTO quaid_config (key, value) VALUES (?, ?)", (MEMORY_ID_KEY, id))


IMAGE_KEY = "image_key"
"""Key in quaid_config under which an encrypted memory stores the encryption key of its image files.

Changing the key of the memory does not change the key of the images.
"""


def read_image_key(db: "Database") -> bytes | None:
    """Return the encryption key of the memory's image files, or None if they are not encrypted."""
    row = db.one("SELECT value FROM quaid_config WHERE key = ?", (IMAGE_KEY,))
    return None if row is None else bytes.fromhex(str(row[0]))


def set_image_key(tx: "Transaction", key: str) -> None:
    """Store the encryption key of the image files, unless a key is already stored."""
    tx.execute("INSERT OR IGNORE INTO quaid_config (key, value) VALUES (?, ?)", (IMAGE_KEY, key))


def delete_image_key(tx: "Transaction") -> None:
    tx.execute("DELETE FROM quaid_config WHERE key = ?", (IMAGE_KEY,))


CollectionState = Literal["active", "detached", "restoring"]

DEFAULT_COLLECTION = "default"

LAST_CHARACTER = "\U0010ffff"
"""The last character in sort order. Strings that begin with `start` sort before `start` + LAST_CHARACTER."""


NOT_INDEXED = ""
"""Content hash of a file that was read but could not be indexed."""


class FileProblem(NamedTuple):
    """A file that could not be indexed, or only in part."""

    path: str
    problem: str
    taken_in: bool
    """True if the parts of the file that could be parsed were indexed."""


class IndexedFile(NamedTuple):
    """The indexed state of a file: the hash of its content, and the id of its page, if it has a page."""

    content_hash: str
    page_id: int | None
    slug: str | None
    version: int | None


class PageFile(NamedTuple):
    """A visible page, its file as last read, and its raw import (the stored bytes of the file)."""

    page_id: int
    slug: str
    uuid: str
    path: str | None
    """Path of the page's file; None if no file is known."""
    content_hash: str | None
    raw_id: int | None
    raw_path: str | None
    raw_hash: str | None


class SlugHolder(NamedTuple):
    """The id of the page that has a slug, and whether the page is hidden (quarantined)."""

    page_id: int
    is_hidden: bool


FileStamp = tuple[int, int, int, int]
"""Size, mtime, ctime and inode of a file, as in FileSignature.

A plain tuple is used because there are thousands of them.
"""


class Collection(NamedTuple):
    id: int
    name: str
    kind: str
    root: str | None
    """Path of the attached folder; None if the pages are stored only in the database."""
    state: CollectionState
    writable: bool
    is_write_target: bool
    ignore_patterns: str
    ignore_problem: str | None
    halted_at: str | None
    """The time when the sync stopped to wait for confirmation by the user; None if it is not waiting."""
    halt_reason: str | None
    last_sync_at: str | None
    created_at: str

    @property
    def is_attached(self) -> bool:
        """True if the collection has a folder that is kept in sync."""
        return self.root is not None and self.state == "active"

    @property
    def watch_lease(self) -> str:
        """The name of the lease that is held by the process that watches the folder."""
        return f"watch-{self.id}"

    def update(self, tx: "Transaction", **values: object) -> None:
        """Set columns of a collection. A new write target replaces the current write target."""
        if values.get("is_write_target"):
            tx.execute("UPDATE collections SET is_write_target = 0 WHERE is_write_target = 1")
        columns = ", ".join(f"{name} = ?" for name in values)
        tx.execute(f"UPDATE collections SET {columns} WHERE id = ?", (*values.values(), self.id))  # noqa: S608

    def record_sync(
        self, tx: "Transaction", now: str, *, root_identity: str = "", halted: str | None = None
    ) -> None:
        """Record the time of a sync, the folder's inode if given, and the reason if the sync was halted."""
        tx.execute(
            "UPDATE collections SET last_sync_at = ?1, reconcile_halt_reason = ?2,"
            " reconcile_halted_at = iif(?2 IS NULL, NULL, coalesce(reconcile_halted_at, ?1)) WHERE id = ?3",
            (now, halted, self.id),
        )
        if root_identity:
            tx.execute(
                "INSERT OR REPLACE INTO quaid_config (key, value) VALUES (?, ?)",
                (f"root_of_collection_{self.id}", root_identity),
            )

    def last_root_identity(self, db: "Database") -> str | None:
        """Return the inode of the collection's folder when it was last scanned completely, or None."""
        row = db.one("SELECT value FROM quaid_config WHERE key = ?", (f"root_of_collection_{self.id}",))
        return None if row is None else str(row[0])

    def non_ascii_files(self, db: "Database") -> list[tuple[str, str]]:
        """Return path and slug of each file with a non-ASCII path, unless its front matter states the slug."""
        rows = db.rows(
            "SELECT f.relative_path, p.slug FROM file_state AS f JOIN pages AS p ON p.id = f.page_id"
            " WHERE f.collection_id = ? AND f.relative_path GLOB '*[^ -~]*'"
            " AND p.slug IS NOT json_extract(p.frontmatter, '$.slug')",
            (self.id,),
        )
        return [(str(path), str(slug)) for path, slug in rows]

    def known_files(self, db: "Database", keys: Iterable[str] | None = None) -> "list[LastSeenFile]":
        """Return the last seen state of a folder's files, or of those with the given path keys."""
        if keys is None:
            return _last_seen_files(db, "f.collection_id = ?", (self.id,))
        wanted = json.dumps(sorted(keys), ensure_ascii=False)
        among = "f.collection_id = ? AND f.path_key IN (SELECT value FROM json_each(?))"
        return _last_seen_files(db, among, (self.id, wanted))

    def hidden_paths(self, db: "Database") -> set[str]:
        """Return the paths of files whose pages are hidden because they have expired."""
        rows = db.rows(
            "SELECT relative_path FROM file_state AS f WHERE collection_id = ? AND page_id IS NOT NULL AND NOT EXISTS"
            " (SELECT 1 FROM pages AS p WHERE p.id = f.page_id AND p.quarantined_at IS NULL)",
            (self.id,),
        )
        return {str(path) for (path,) in rows}

    def quarantined_files(self, db: "Database") -> "list[LastSeenFile]":
        """Return the files of quarantined pages. If a file reappears, perhaps elsewhere, its page is restored."""
        from quaid.model.sync_plan import FileSignature, LastSeenFile

        rows = db.rows(
            "SELECT r.file_path, r.content_hash, p.id, p.uuid FROM pages p JOIN raw_imports r ON r.page_id = p.id"
            " AND r.is_active = 1 WHERE p.collection_id = ? AND p.quarantined_at IS NOT NULL",
            (self.id,),
        )
        nothing = FileSignature(-1, -1, -1, -1)
        return [
            LastSeenFile(path, f"\0{path}", nothing, content, 0, page, uuid)
            for path, content, page, uuid in rows
        ]

    def record_files(
        self,
        tx: "Transaction",
        files: "Iterable[tuple[ScannedFile, str, int | None, str | None]]",
        now: str,
    ) -> None:
        """Store the state of files that were read, given as (file, content hash, page id, problem)."""
        tx.executemany(
            "INSERT OR REPLACE INTO file_state (collection_id, relative_path, path_key, page_id, size_bytes,"
            " mtime_ns, ctime_ns, inode, content_hash, problem, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (self.id, file.path, file.key, page_id, *file.stat, content_hash, problem, now)
                for file, content_hash, page_id, problem in files
            ],
        )

    def indexed_file(self, db: "Database | Transaction", path: str) -> IndexedFile | None:
        """Return the indexed state of a file, or None if it is unknown."""
        row = db.one(
            "SELECT f.content_hash, p.id, p.slug, p.version FROM file_state f LEFT JOIN pages p ON p.id = f.page_id"
            " WHERE f.collection_id = ? AND f.relative_path = ?",
            (self.id, path),
        )
        return None if row is None else IndexedFile(*row)

    def forget_files(self, tx: "Transaction", path: str | None = None, page_id: int | None = None) -> None:
        """Delete the stored state of a file, or of all files of a collection.

        With `page_id`, only files of that page are affected.
        """
        tx.execute(
            "DELETE FROM file_state WHERE collection_id = ?1 AND (?2 IS NULL OR relative_path = ?2)"
            " AND (?3 IS NULL OR page_id IS ?3)",
            (self.id, path, page_id),
        )

    def settled_files(self, db: "Database", racy_ns: int) -> dict[str, FileStamp]:
        """Return the stamp of each file by path. A file whose stamp still matches does not have to be read again.

        A file that was read less than `racy_ns` after its last change may have changed again unnoticed. Its stamp
        is replaced by a stamp that never matches.
        """
        stamps = {}
        for path, size, mtime, ctime, inode, seen in db.rows(
            "SELECT relative_path, size_bytes, mtime_ns, ctime_ns, inode, seen_at FROM file_state"
            " WHERE collection_id = ?",
            (self.id,),
        ):
            latest = timestamp_nanoseconds(seen) - racy_ns
            stamps[path] = (
                (size, mtime, ctime, inode) if ctime <= latest and mtime <= latest else (-1, -1, -1, -1)
            )
        return stamps

    def count_files(self, db: "Database") -> int:
        row = db.one("SELECT count(*) FROM file_state WHERE collection_id = ?", (self.id,))
        return int(row[0]) if row else 0

    def page_files(self, db: "Database") -> list[PageFile]:
        """Return the visible pages of a collection, ordered by path.

        Pages made from headings in another page's file are left out.
        """
        rows = db.rows(
            "SELECT p.id, p.slug, p.uuid, f.relative_path, f.content_hash, r.id, r.file_path, r.content_hash"
            " FROM pages p LEFT JOIN file_state f ON f.page_id = p.id AND f.collection_id = p.collection_id"
            " LEFT JOIN raw_imports r ON r.page_id = p.id AND r.is_active = 1"
            " WHERE p.collection_id = ? AND p.quarantined_at IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM file_nodes n WHERE n.page_id = p.id)"
            " ORDER BY coalesce(f.relative_path, r.file_path), p.id",
            (self.id,),
        )
        return [PageFile(*row) for row in rows]

    def page_of_heading(
        self, tx: "Transaction", node_id: str, file_page_id: int
    ) -> tuple[int | None, str | None]:
        """Return the page made from a heading with this id in any file of the collection, or None.

        Also return the path of the file that contained the heading when last read, if the page is visible and
        that file is not the file of `file_page_id`.
        """
        row = tx.one(
            "SELECT n.page_id, (SELECT f.relative_path FROM file_state f JOIN pages p ON p.id = n.page_id"
            " WHERE f.page_id = n.file_page_id AND n.file_page_id <> ?3 AND p.quarantined_at IS NULL)"
            " FROM file_nodes n WHERE n.collection_id = ?1 AND n.node_id = ?2",
            (self.id, node_id, file_page_id),
        )
        return (None, None) if row is None else (int(row[0]), row[1])

    def record_heading(self, tx: "Transaction", page_id: int, file_page_id: int, node_id: str) -> None:
        """Record that a page was made from a heading of a file."""
        tx.execute("DELETE FROM file_nodes WHERE page_id = ?", (page_id,))
        tx.execute(
            "INSERT OR REPLACE INTO file_nodes (page_id, file_page_id, collection_id, node_id) VALUES (?, ?, ?, ?)",
            (page_id, file_page_id, self.id, node_id),
        )

    def slug_holder(self, tx: "Transaction", slug: str) -> SlugHolder | None:
        for page_id, hidden in tx.execute(
            "SELECT id, quarantined_at IS NOT NULL FROM pages WHERE collection_id = ? AND slug = ?",
            (self.id, slug),
        ):
            return SlugHolder(page_id, bool(hidden))
        return None

    def slugs_beginning(self, tx: "Transaction", start: str) -> set[str]:
        """Return the slugs of a collection that begin with `start`."""
        rows = tx.execute(
            "SELECT slug FROM pages WHERE collection_id = ? AND slug >= ? AND slug < ?",
            (self.id, start, start + LAST_CHARACTER),
        )
        return {str(slug) for (slug,) in rows}

    def paths_beginning(self, db: "Database", start: str, most: int) -> list[str]:
        """Return up to `most` file paths of a collection that begin with `start`, as of its last sync."""
        rows = db.rows(
            "SELECT relative_path FROM file_state WHERE collection_id = ?1"
            " AND relative_path >= ?2 AND relative_path < ?2 || ?3 ORDER BY 1 LIMIT ?4",
            (self.id, start, LAST_CHARACTER, most),
        )
        return [str(path) for (path,) in rows]

    def keep_sidecar(self, tx: "Transaction", path: str, data: bytes, now: str, batch: str) -> None:
        """Store the bytes of a sidecar (a JSON file with raw data beside a page file). Replace earlier bytes."""
        import hashlib  # imported late, because loading OpenSSL takes 3 ms

        tx.execute(
            "DELETE FROM raw_imports WHERE collection_id = ? AND file_path = ? AND page_id IS NULL",
            (self.id, path),
        )
        tx.execute(
            "INSERT INTO raw_imports (collection_id, import_id, content_hash, file_path, created_at, raw_bytes)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (self.id, batch, hashlib.sha256(data).hexdigest(), path, now, data),
        )

    def sidecar_bytes(self, db: "Database", path: str) -> bytes | None:
        """Return the bytes stored by `keep_sidecar`, or None."""
        row = db.one(
            "SELECT raw_bytes FROM raw_imports WHERE collection_id = ? AND file_path = ? AND is_active = 1"
            " AND page_id IS NULL",
            (self.id, path),
        )
        return None if row is None else bytes(row[0])

    def taken_slugs(self, tx: "Transaction", slugs: dict[str, str]) -> set[str]:
        """Return the slugs that cannot be given to new pages. `slugs` maps the paths of new files to slugs.

        A slug is taken if a page, hidden or not, or a redirect has it, or if another process has indexed the file
        meanwhile.
        """
        rows = tx.execute(
            "SELECT p.slug FROM json_each(?1) AS wanted CROSS JOIN pages AS p"
            " ON p.collection_id = ?2 AND p.slug = wanted.value UNION ALL"
            " SELECT r.slug FROM json_each(?1) AS wanted CROSS JOIN redirects AS r"
            " ON r.collection_id = ?2 AND r.slug = wanted.value UNION ALL"
            " SELECT wanted.value FROM json_each(?1) AS wanted CROSS JOIN file_state AS f"
            " ON f.collection_id = ?2 AND f.relative_path = wanted.key",
            (json.dumps(slugs, ensure_ascii=False), self.id),
        )
        return {str(slug) for (slug,) in rows}


_COLLECTION_COLUMNS = (
    "id, name, kind, root_path, state, writable, is_write_target, ignore_patterns, ignore_problem,"
    " reconcile_halted_at, reconcile_halt_reason, last_sync_at, created_at"
)


class Collections:
    """Reads the collections of a memory."""

    def __init__(self, db: "Database | Transaction") -> None:
        self._db = db

    def all(self) -> list[Collection]:
        """Return all collections, starting with the default collection."""
        rows = self._db.rows(f"SELECT {_COLLECTION_COLUMNS} FROM collections ORDER BY id")  # noqa: S608 (fixed columns)
        return [_collection_of_row(row) for row in rows]

    def find(self, name: str) -> Collection | None:
        row = self._db.one(f"SELECT {_COLLECTION_COLUMNS} FROM collections WHERE name = ?", (name,))  # noqa: S608
        return None if row is None else _collection_of_row(row)

    def require(self, name: str) -> Collection:
        """Return the collection with this name. Raise NotFound, listing all names, if there is none."""
        collection = self.find(name)
        if collection is None:
            names = ", ".join(row.name for row in self.all())
            raise NotFound(what="collection", name=name, hint=f" Collections: {names}.")
        return collection

    def home_name(self) -> str:
        """Return the name of the collection that is used if none is given.

        This is the default collection or, for a caller restricted to some collections, the write target.
        """
        if not self._db.scope:
            return DEFAULT_COLLECTION
        return next((row.name for row in self.all() if row.is_write_target), DEFAULT_COLLECTION)

    def page_counts(self) -> dict[int, tuple[int, int]]:
        """Return the numbers of visible and quarantined pages by collection id. Expired pages are not counted."""
        rows = self._db.rows(
            "SELECT collection_id, count(*) FILTER (WHERE quarantined_at IS NULL),"
            " count(*) FILTER (WHERE quarantined_at IS NOT NULL AND id NOT IN"
            " (SELECT page_id FROM expired WHERE kind = 'page')) FROM pages GROUP BY collection_id"
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def file_problems(self, collection_id: int | None = None) -> dict[str, list[FileProblem]]:
        """Return the files with problems of one collection, or of all active collections, by collection name."""
        problems: dict[str, list[FileProblem]] = {}
        for name, path, problem, is_indexed in self._db.rows(
            "SELECT c.name, f.relative_path, f.problem, f.content_hash <> '' FROM file_state f"
            " JOIN collections c ON c.id = f.collection_id WHERE f.problem IS NOT NULL"
            " AND iif(?1 IS NULL, c.state = 'active', c.id = ?1) ORDER BY 1, 2",
            (collection_id,),
        ):
            problems.setdefault(name, []).append(FileProblem(path, problem, bool(is_indexed)))
        return problems


def add(tx: "Transaction", name: str, kind: str, root: str | None, writable: bool, now: str) -> int:
    """Add a collection and return its id. `root` is its folder; None if its pages are only in the database."""
    tx.execute(
        "INSERT INTO collections (name, kind, root_path, writable, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (name, kind, root, writable, now, now),
    )
    return tx.last_insert_rowid()


def _collection_of_row(row: tuple[object, ...]) -> Collection:
    return Collection._make((*row[:5], bool(row[5]), bool(row[6]), *row[7:]))


LARGEST_FOLDER_LIST = 1024 * 1024


class AttachedFolder(NamedTuple):
    name: str
    kind: str
    root: str
    writable: bool
    is_write_target: bool


class FolderList(NamedTuple):
    memory_id: str
    """The id of the memory, or "" if it has none."""
    folders: tuple[AttachedFolder, ...]
    cipher: str = ""
    """The cipher header of an encrypted memory (the first bytes of its file) in hexadecimal, or ""."""


def folder_list_path(database_path: str) -> str:
    folder, name = os.path.split(database_path)
    return os.path.join(folder, f"folders-of-{name}.json")


def read_folder_list(database_path: str) -> FolderList | None:
    """Return the list of attached folders stored beside a memory, or None if it is missing or unusable."""
    try:
        with open(folder_list_path(database_path), "rb") as file:
            content = json.loads(file.read(LARGEST_FOLDER_LIST))
        folders = tuple(AttachedFolder(**folder) for folder in content["folders"])
        folder_list = FolderList(str(content["memory_id"]), folders, str(content.get("cipher", "")))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_usable = all(isinstance(folder.root, str) and os.path.isabs(folder.root) for folder in folders)
    return folder_list if folders and is_usable else None


def write_folder_list(db: "Database") -> None:
    """Write the list of attached folders beside the memory, or delete the list if there are no such folders.

    Errors are ignored, because the memory works without the list. A rehearsal (dry run) writes nothing.
    """
    if db.rehearsal is not None:
        return
    rows = [row for row in Collections(db).all() if row.is_attached]
    folders = [
        AttachedFolder(row.name, row.kind, row.root or "", row.writable, row.is_write_target)._asdict()
        for row in rows
    ]
    path = folder_list_path(db.path)
    try:
        if not folders:
            if os.path.exists(path):
                os.unlink(path)
            return
        content: dict[str, object] = {"memory_id": read_memory_id(db) or "", "folders": folders}
        if db.cipher is not None:
            content["cipher"] = db.cipher.raw.hex()
        durable_files.write_file(path, json.dumps(content, indent=2).encode())
    except OSError:
        pass


def file_of_page(db: "Database", page_id: int) -> "tuple[LastSeenFile | None, str | None]":
    """Return the last seen state of a page's file, and the path of the file with the page's heading.

    The state is None if the page has no file. The path is "" if that file is gone, and None if the page was not
    made from a heading.
    """
    heading = db.one(
        "SELECT coalesce(f.relative_path, '') FROM file_nodes n LEFT JOIN file_state f ON f.page_id = n.file_page_id"
        " WHERE n.page_id = ?",
        (page_id,),
    )
    files = _last_seen_files(db, "f.page_id = ?", (page_id,))
    return files[0] if files else None, None if heading is None else str(heading[0])


def _last_seen_files(db: "Database", where: str, values: tuple[object, ...]) -> "list[LastSeenFile]":
    from quaid.model.sync_plan import FileSignature, LastSeenFile

    rows = db.rows(
        "SELECT f.relative_path, f.path_key, f.size_bytes, f.mtime_ns, f.ctime_ns, f.inode, f.content_hash,"  # noqa: S608
        " f.seen_at, f.page_id, p.uuid, f.problem IS NOT NULL AND f.page_id IS NULL"
        f" FROM file_state f LEFT JOIN pages p ON p.id = f.page_id WHERE {where}",
        values,
    )
    return [
        LastSeenFile(
            *(path, key, FileSignature(*stat), content_hash),
            *(timestamp_nanoseconds(seen_at), page_id, uuid, bool(is_unusable)),
        )
        for path, key, *stat, content_hash, seen_at, page_id, uuid, is_unusable in rows
    ]


def paths_of_pages(db: "Database", page_ids: "Iterable[int]") -> dict[int, str]:
    """Return the file paths of these pages by page id."""
    rows = db.rows(
        "SELECT page_id, relative_path FROM file_state WHERE page_id IN (SELECT value FROM json_each(?))",
        (str(list(page_ids)),),
    )
    return dict(rows)


def _timestamp_seconds(timestamp: str) -> int:
    # strptime is avoided, because it imports the calendar module, which slows down every new process.
    hour, minute, second = int(timestamp[11:13]), int(timestamp[14:16]), int(timestamp[17:19])
    return day_number(timestamp[:10]) * 86_400 + hour * 3_600 + minute * 60 + second


def timestamp_nanoseconds(timestamp: str, cache: dict[str, int] = {}) -> int:  # noqa: B006 (a cache: many files share a timestamp)
    """Return a timestamp in nanoseconds since 1970.

    Timestamps have whole seconds. As they are rounded down, a file may be read again unnecessarily, but no
    change is missed.
    """
    if timestamp not in cache:
        if len(cache) > 1_000:
            cache.clear()
        cache[timestamp] = _timestamp_seconds(timestamp) * 1_000_000_000
    return cache[timestamp]
