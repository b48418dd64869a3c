"""Collections, the files behind them, the processes that watch them, and the settings of the database."""

import json
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import NotFound
from quaid.model.dates import day_number
from quaid.storage import files as durable_files

if TYPE_CHECKING:
    import apsw

    from quaid.model.sync_plan import LastSeenFile, ScannedFile
    from quaid.storage.sqlite.connection import Database


def get_setting(db: "Database", key: str) -> str | None:
    """The value of a setting, if it is set."""
    row = db.one("SELECT value FROM config WHERE key = ?", (key,))
    return None if row is None else row[0]


def set_setting(tx: "apsw.Connection", key: str, value: str) -> None:
    """Give a setting a value."""
    tx.execute(
        "INSERT INTO config (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def list_settings(db: "Database") -> list[tuple[str, str]]:
    """Every setting with its value, by key."""
    return [(key, value) for key, value in db.rows("SELECT key, value FROM config ORDER BY key")]


MEMORY_ID_KEY = "memory_id"
"""The key in quaid_config of the id by which a memory and its copies are known as one."""


def read_memory_id(db: "Database") -> str | None:
    """The id of a memory; None if it was made before memories had one and was never backed up."""
    row = db.one("SELECT value FROM quaid_config WHERE key = ?", (MEMORY_ID_KEY,))
    return None if row is None else str(row[0])


def set_memory_id(tx: "apsw.Connection", id: str) -> None:
    """Give a memory its id, unless it has one."""
    tx.execute("INSERT OR IGNORE INTO quaid_config (key, value) VALUES (?, ?)", (MEMORY_ID_KEY, id))


CollectionState = Literal["active", "detached", "restoring"]

DEFAULT_COLLECTION = "default"


class Collection(NamedTuple):
    id: int
    name: str
    kind: str
    root: str | None
    """The folder; none for pages that live in the database."""
    state: CollectionState
    writable: bool
    is_write_target: bool
    ignore_patterns: str
    ignore_problem: str | None
    halted_at: str | None
    """Since when syncing waits for a person."""
    halt_reason: str | None
    last_sync_at: str | None
    created_at: str


_COLLECTION_COLUMNS = (
    "id, name, kind, root_path, state, writable, is_write_target, ignore_patterns, ignore_problem,"
    " reconcile_halted_at, reconcile_halt_reason, last_sync_at, created_at"
)


def list_all(db: "Database") -> list[Collection]:
    """All collections, the default one first."""
    rows = db.rows(f"SELECT {_COLLECTION_COLUMNS} FROM collections ORDER BY id")  # noqa: S608 (fixed columns)
    return [_collection_of_row(row) for row in rows]


def find(db: "Database", name: str) -> Collection | None:
    row = db.one(f"SELECT {_COLLECTION_COLUMNS} FROM collections WHERE name = ?", (name,))  # noqa: S608 (fixed columns)
    return None if row is None else _collection_of_row(row)


def require(db: "Database", name: str) -> Collection:
    """The collection of this name; NotFound with all names when there is none."""
    found = find(db, name)
    if found is None:
        known = ", ".join(each.name for each in list_all(db))
        raise NotFound(what="collection", name=name, hint=f" There is: {known}.")
    return found


def write_target(db: "Database") -> Collection:
    """The collection that takes new pages whose address names none."""
    row = db.one(f"SELECT {_COLLECTION_COLUMNS} FROM collections ORDER BY is_write_target DESC, id LIMIT 1")  # noqa: S608
    assert row is not None, "every memory has the default collection"
    return _collection_of_row(row)


def add(tx: "apsw.Connection", name: str, kind: str, root: str, writable: bool, now: str) -> int:
    """Attach a folder."""
    tx.execute(
        "INSERT INTO collections (name, kind, root_path, writable, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (name, kind, root, writable, now, now),
    )
    return tx.last_insert_rowid()


def set_state(tx: "apsw.Connection", collection_id: int, state: CollectionState, now: str) -> None:
    tx.execute("UPDATE collections SET state = ?, updated_at = ? WHERE id = ?", (state, now, collection_id))


def set_kind(tx: "apsw.Connection", collection_id: int, kind: str, now: str) -> None:
    tx.execute("UPDATE collections SET kind = ?, updated_at = ? WHERE id = ?", (kind, now, collection_id))


def set_root(tx: "apsw.Connection", collection_id: int, root: str, writable: bool, now: str) -> None:
    """Let a collection live in another folder, or be written or not."""
    tx.execute(
        "UPDATE collections SET root_path = ?, writable = ?, updated_at = ? WHERE id = ?",
        (root, writable, now, collection_id),
    )


def set_write_target(tx: "apsw.Connection", collection_id: int) -> None:
    """Let one collection, and no other, take new pages."""
    tx.execute("UPDATE collections SET is_write_target = 0 WHERE is_write_target = 1")
    tx.execute("UPDATE collections SET is_write_target = 1 WHERE id = ?", (collection_id,))


def set_ignore(tx: "apsw.Connection", collection_id: int, patterns: str, problem: str | None) -> None:
    """Remember the last good set of patterns, and what is wrong with the present file, if anything."""
    tx.execute(
        "UPDATE collections SET ignore_patterns = ?, ignore_problem = ? WHERE id = ?",
        (patterns, problem, collection_id),
    )


def mark_synced(tx: "apsw.Connection", collection_id: int, now: str) -> None:
    """A sync saw the whole folder and did all it had to."""
    tx.execute(
        "UPDATE collections SET last_sync_at = ?, reconcile_halted_at = NULL, reconcile_halt_reason = NULL"
        " WHERE id = ?",
        (now, collection_id),
    )


def mark_halted(tx: "apsw.Connection", collection_id: int, reason: str, now: str) -> None:
    """A sync left something undone until a person says so."""
    tx.execute(
        "UPDATE collections SET last_sync_at = ?1, reconcile_halted_at = coalesce(reconcile_halted_at, ?1),"
        " reconcile_halt_reason = ?2 WHERE id = ?3",
        (now, reason, collection_id),
    )


def remove(tx: "apsw.Connection", collection_id: int) -> None:
    """Forget a collection that has no pages any more."""
    tx.execute("DELETE FROM raw_imports WHERE collection_id = ?", (collection_id,))
    tx.execute("DELETE FROM collections WHERE id = ?", (collection_id,))


def page_counts(db: "Database") -> dict[int, tuple[int, int]]:
    """How many pages each collection shows, and how many are quarantined."""
    rows = db.rows(
        "SELECT collection_id, count(*) FILTER (WHERE quarantined_at IS NULL),"
        " count(*) FILTER (WHERE quarantined_at IS NOT NULL) FROM pages GROUP BY collection_id"
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def _collection_of_row(row: tuple[object, ...]) -> Collection:
    return Collection._make((*row[:5], bool(row[5]), bool(row[6]), *row[7:]))


def root_identity(db: "Database", collection_id: int) -> str | None:
    """What the file system called the folder when it was last seen whole."""
    row = db.one("SELECT value FROM quaid_config WHERE key = ?", (_root_key(collection_id),))
    return None if row is None else str(row[0])


def set_root_identity(tx: "apsw.Connection", collection_id: int, identity: str) -> None:
    tx.execute(
        "INSERT OR REPLACE INTO quaid_config (key, value) VALUES (?, ?)", (_root_key(collection_id), identity)
    )


def _root_key(collection_id: int) -> str:
    return f"root_of_collection_{collection_id}"


LARGEST_FOLDER_LIST = 1024 * 1024


class AttachedFolder(NamedTuple):
    name: str
    kind: str
    root: str
    writable: bool
    is_write_target: bool


class FolderList(NamedTuple):
    memory_id: str
    """Empty: the memory had none."""
    folders: tuple[AttachedFolder, ...]


def folder_list_path(database_path: str) -> str:
    folder, name = os.path.split(database_path)
    return os.path.join(folder, f"folders-of-{name}.json")


def read_folder_list(database_path: str) -> FolderList | None:
    """Return the list beside a memory; None if there is none that can be used."""
    try:
        with open(folder_list_path(database_path), "rb") as file:
            found = json.loads(file.read(LARGEST_FOLDER_LIST))
        folders = tuple(AttachedFolder(**each) for each in found["folders"])
        known = FolderList(str(found["memory_id"]), folders)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_usable = all(isinstance(each.root, str) and os.path.isabs(each.root) for each in folders)
    return known if folders and is_usable else None


def write_folder_list(db: "Database") -> None:
    """Write the list anew; a memory without attached folders has none. Failing to do so costs the memory nothing."""
    rows = [each for each in list_all(db) if each.root and each.state == "active"]
    folders = [
        AttachedFolder(each.name, each.kind, each.root or "", each.writable, each.is_write_target)._asdict()
        for each in rows
    ]
    path = folder_list_path(db.path)
    unfinished = f"{path}-{os.getpid()}"
    try:
        if not folders:
            if os.path.exists(path):
                os.unlink(path)
            return
        known = {"memory_id": read_memory_id(db) or "", "folders": folders}
        durable_files.make_private_file(unfinished)
        try:
            with open(unfinished, "w", encoding="utf-8") as file:
                json.dump(known, file, indent=2)
            durable_files.rename_durably(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError:
        pass


HEARTBEAT_SECONDS = 3.0
"""Between two signs of life, and between two looks of those who stand by."""

STALE_SECONDS = 10.0
"""A session that was silent for so long is over. With a look and times kept to the second: taken over within 15."""

Clock = Callable[[float], str]
"""The time, some seconds from now. Asked within the transaction: the wait for it may have been long."""


class WatchSession(NamedTuple):
    """A process that may watch."""

    id: str
    pid: int
    host: str
    stale_after: float = STALE_SECONDS


class WatchOwner(NamedTuple):
    """A collection that another process watches."""

    collection: str
    pid: int
    host: str


class WatchLeases(NamedTuple):
    mine: frozenset[int]
    """Collections that this session holds."""
    others: tuple[WatchOwner, ...]
    free: tuple[str, ...]
    """Collections that nobody living holds."""


class _LeaseRow(NamedTuple):
    collection_id: int
    collection: str
    session_id: str | None
    pid: int
    host: str
    heartbeat_at: str


def read_leases(db: "Database", me: WatchSession, clock: Clock, name: str | None = None) -> WatchLeases:
    """How things are, for somebody who writes nothing: all collections, or the one of this name."""
    with db.reading():
        holders = _lease_rows(db.rows(_LEASES_SQL, (name,)))
    return _watch_leases(holders, me, clock)


def take_leases(db: "Database", me: WatchSession, clock: Clock, name: str | None = None) -> WatchLeases:
    """Say that I live, and lease what nobody living holds: in one transaction, so that one wins."""

    def work(tx: "apsw.Connection") -> WatchLeases:
        _remove_dead_sessions(tx, me, clock)
        now = clock(0)
        tx.execute(
            "INSERT INTO serve_sessions (session_id, pid, host, started_at, heartbeat_at)"
            " VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT (session_id) DO UPDATE SET heartbeat_at = ?4",
            (me.id, me.pid, me.host, now),
        )
        tx.execute(
            "DELETE FROM collection_owners WHERE session_id = ? AND collection_id NOT IN"  # noqa: S608
            f" (SELECT id FROM collections WHERE {_WATCHED_CONDITION})",
            (me.id,),
        )
        tx.execute(
            "INSERT OR IGNORE INTO collection_owners (collection_id, session_id, acquired_at)"  # noqa: S608
            f" SELECT id, ?, ? FROM collections WHERE {_WATCHED_CONDITION} AND (?3 IS NULL OR name = ?3)",
            (me.id, now, name),
        )
        return _watch_leases(_lease_rows(tx.execute(_LEASES_SQL, (name,))), me, clock)

    return db.write(work)


def release_leases(db: "Database", me: WatchSession) -> None:
    """Give back every lease."""
    db.write(lambda tx: tx.execute("DELETE FROM serve_sessions WHERE session_id = ?", (me.id,)))


def is_process_running(pid: int) -> bool:
    """Whether a process of this machine lives; in doubt it does, until its signs of life stop."""
    if os.name == "nt":
        return True  # signal 0 would end it there
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:  # one that ended, and whose parent has not taken note of it, still has a number
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return True


_WATCHED_CONDITION = "state = 'active' AND root_path IS NOT NULL"

_LEASES_SQL = (
    "SELECT c.id, c.name, s.session_id, s.pid, s.host, s.heartbeat_at FROM collections c"  # noqa: S608
    " LEFT JOIN collection_owners o ON o.collection_id = c.id"
    " LEFT JOIN serve_sessions s ON s.session_id = o.session_id"
    f" WHERE {_WATCHED_CONDITION} AND (?1 IS NULL OR c.name = ?1) ORDER BY c.id"
)


def _lease_rows(rows: Iterable[tuple[object, ...]]) -> list[_LeaseRow]:
    return [_LeaseRow._make(row) for row in rows]


def _watch_leases(holders: list[_LeaseRow], me: WatchSession, clock: Clock) -> WatchLeases:
    mine = frozenset(each.collection_id for each in holders if each.session_id == me.id)
    others: list[WatchOwner] = []
    free: list[str] = []
    for each in holders:
        if each.session_id is None or _is_dead(each, me, clock):
            free.append(each.collection)
        elif each.session_id != me.id:
            others.append(WatchOwner(each.collection, each.pid, each.host))
    return WatchLeases(mine, tuple(others), tuple(free))


def _remove_dead_sessions(tx: "apsw.Connection", me: WatchSession, clock: Clock) -> None:
    """Forget sessions that are over; their leases go with them."""
    rows = tx.execute("SELECT 0, '', session_id, pid, host, heartbeat_at FROM serve_sessions").fetchall()
    over = [each.session_id for each in _lease_rows(rows) if _is_dead(each, me, clock)]
    for session_id in over:
        tx.execute("DELETE FROM serve_sessions WHERE session_id = ?", (session_id,))


def _is_dead(each: _LeaseRow, me: WatchSession, clock: Clock) -> bool:
    if each.session_id == me.id:
        return False
    if each.host == me.host and (each.pid == me.pid or not is_process_running(each.pid)):
        return True  # a number that is ours now was somebody else's before
    # A sign of life out of the future was given before the clock was set back.
    return not clock(-me.stale_after) <= each.heartbeat_at <= clock(me.stale_after)


NOT_INDEXED = ""
"""Stands for the hash of a file that was read and could not be taken in."""


class FileProblem(NamedTuple):
    """A file that something is wrong with."""

    path: str
    problem: str
    taken_in: bool
    """Whether its page says what the file says, as far as it could be understood."""


def known_files(
    db: "Database", collection_id: int, keys: "Iterable[str] | None" = None
) -> "list[LastSeenFile]":
    """What is known of the files of a folder, or of some of them."""
    from quaid.model.sync_plan import FileSignature, LastSeenFile

    some, values = "", ()  # type: str, tuple[str, ...]
    if keys is not None:
        some = " AND f.path_key IN (SELECT value FROM json_each(?))"
        values = (json.dumps(sorted(keys), ensure_ascii=False),)
    rows = db.rows(
        "SELECT f.relative_path, f.path_key, f.size_bytes, f.mtime_ns, f.ctime_ns, f.inode, f.content_hash,"  # noqa: S608
        " f.seen_at, f.page_id, p.uuid, f.problem IS NOT NULL AND f.page_id IS NULL"
        f" FROM file_state f LEFT JOIN pages p ON p.id = f.page_id WHERE f.collection_id = ?{some}",
        (collection_id, *values),
    )
    return [
        LastSeenFile(
            row[0],
            row[1],
            FileSignature(*row[2:6]),
            row[6],
            timestamp_nanoseconds(row[7]),
            row[8],
            row[9],
            bool(row[10]),
        )
        for row in rows
    ]


def quarantined_files(db: "Database", collection_id: int) -> "list[LastSeenFile]":
    """Files whose pages wait in quarantine: when they come back, perhaps elsewhere, the pages do."""
    from quaid.model.sync_plan import FileSignature, LastSeenFile

    rows = db.rows(
        "SELECT r.file_path, r.content_hash, p.id, p.uuid FROM pages p JOIN raw_imports r ON r.page_id = p.id"
        " AND r.is_active = 1 WHERE p.collection_id = ? AND p.quarantined_at IS NOT NULL",
        (collection_id,),
    )
    nothing = FileSignature(-1, -1, -1, -1)
    return [
        LastSeenFile(path, f"\0{path}", nothing, content, 0, page, uuid) for path, content, page, uuid in rows
    ]


def record_file(
    tx: "apsw.Connection",
    collection_id: int,
    file: "ScannedFile",
    content_hash: str,
    page_id: int | None,
    now: str,
    problem: str | None = None,
) -> None:
    """Remember a file as it was read."""
    record_files(tx, collection_id, [(file, content_hash, page_id, problem)], now)


def record_files(
    tx: "apsw.Connection",
    collection_id: int,
    files: "Iterable[tuple[ScannedFile, str, int | None, str | None]]",
    now: str,
) -> None:
    """Remember files as they were read: of each the hash of its content, its page, and what is wrong with it."""
    tx.executemany(
        "INSERT OR REPLACE INTO file_state (collection_id, relative_path, path_key, page_id, size_bytes,"
        " mtime_ns, ctime_ns, inode, content_hash, problem, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (collection_id, file.path, file.key, page_id, *file.stat, content_hash, problem, now)
            for file, content_hash, page_id, problem in files
        ],
    )


def seen_paths(tx: "apsw.Connection", collection_id: int, paths: list[str]) -> set[str]:
    """Those of the files that were seen before."""
    found = tx.execute(
        "SELECT f.relative_path FROM json_each(?) AS wanted CROSS JOIN file_state AS f"
        " ON f.collection_id = ? AND f.relative_path = wanted.value",
        (json.dumps(paths, ensure_ascii=False), collection_id),
    )
    return {str(path) for (path,) in found}


def content_hash_of_file(tx: "apsw.Connection", collection_id: int, path: str) -> str | None:
    """The hash of a file's content as it was last taken in."""
    for (found,) in tx.execute(
        "SELECT content_hash FROM file_state WHERE collection_id = ? AND relative_path = ?",
        (collection_id, path),
    ):
        return str(found)
    return None


def page_of_file(tx: "apsw.Connection", collection_id: int, path: str) -> int | None:
    """The page of a file, as far as it is known."""
    for (found,) in tx.execute(
        "SELECT page_id FROM file_state WHERE collection_id = ? AND relative_path = ?", (collection_id, path)
    ):
        return None if found is None else int(found)
    return None


def is_file_unchanged(tx: "apsw.Connection", collection_id: int, known: "LastSeenFile") -> bool:
    """Whether a file is still what it was when somebody looked at it: the same content, of the same page."""
    found = tx.execute(
        "SELECT 1 FROM file_state WHERE collection_id = ? AND relative_path = ? AND content_hash = ?"
        " AND page_id IS ?",
        (collection_id, known.path, known.content_hash, known.page_id),
    )
    return found.fetchone() is not None


def forget_file(tx: "apsw.Connection", collection_id: int, path: str, page_id: int | None = None) -> None:
    """A file is not there any more; with a page: unless another page's file stands there by now."""
    tx.execute(
        "DELETE FROM file_state WHERE collection_id = ?1 AND relative_path = ?2 AND (?3 IS NULL OR page_id IS ?3)",
        (collection_id, path, page_id),
    )


def file_of_page(db: "Database", page_id: int) -> "LastSeenFile | None":
    """The file of a page, as it was last seen."""
    row = db.one(
        "SELECT collection_id, relative_path, path_key FROM file_state WHERE page_id = ?", (page_id,)
    )
    if row is None:
        return None
    return next(each for each in known_files(db, row[0], [row[2]]) if each.path == row[1])


FileStamp = tuple[int, int, int, int]
"""Size, times of change and number of a file, as Stat has them: a plain tuple, for thousands of them."""


def settled_files(db: "Database", collection_id: int, racy_ns: int) -> dict[str, FileStamp]:
    """How each file looked that need not be read again if it still does: not one that was read while it was so new
    that it may have changed unseen."""
    found = {}
    for path, size, mtime, ctime, inode, seen in db.rows(
        "SELECT relative_path, size_bytes, mtime_ns, ctime_ns, inode, seen_at FROM file_state"
        " WHERE collection_id = ?",
        (collection_id,),
    ):
        latest = timestamp_nanoseconds(seen) - racy_ns
        found[path] = (size, mtime, ctime, inode) if ctime <= latest and mtime <= latest else (-1, -1, -1, -1)
    return found


class IndexedPage(NamedTuple):
    """What the index has of a file: the page, its version, and the hash of the bytes that made it."""

    page_id: int
    version: int
    content_hash: str


def indexed_page(db: "Database", collection_id: int, path: str) -> IndexedPage | None:
    """The page of a file."""
    row = db.one(
        "SELECT p.id, p.version, f.content_hash FROM file_state f JOIN pages p ON p.id = f.page_id"
        " WHERE f.collection_id = ? AND f.relative_path = ?",
        (collection_id, path),
    )
    return None if row is None else IndexedPage(*row)


def paths_of_pages(db: "Database", page_ids: "Iterable[int]") -> dict[int, str]:
    """Where the files of these pages are."""
    rows = db.rows(
        "SELECT page_id, relative_path FROM file_state WHERE page_id IN (SELECT value FROM json_each(?))",
        (str(list(page_ids)),),
    )
    return dict(rows)


def file_problems(db: "Database", collection_id: int) -> list[FileProblem]:
    """The files that something is wrong with."""
    rows = db.rows(
        "SELECT relative_path, problem, content_hash <> '' FROM file_state"
        " WHERE collection_id = ? AND problem IS NOT NULL ORDER BY relative_path",
        (collection_id,),
    )
    return [FileProblem(path, problem, bool(taken_in)) for path, problem, taken_in in rows]


def files_not_indexed(db: "Database") -> dict[str, list[FileProblem]]:
    """The files that could not be taken in, by the name of their collection."""
    found: dict[str, list[FileProblem]] = {}
    for name, path, problem in db.rows(
        "SELECT c.name, f.relative_path, f.problem FROM file_state f JOIN collections c ON c.id = f.collection_id"
        " WHERE f.content_hash = '' AND f.problem IS NOT NULL AND c.state = 'active' ORDER BY 1, 2"
    ):
        found.setdefault(name, []).append(FileProblem(path, problem, False))
    return found


def count_files(db: "Database", collection_id: int) -> int:
    row = db.one("SELECT count(*) FROM file_state WHERE collection_id = ?", (collection_id,))
    return int(row[0]) if row else 0


def _timestamp_seconds(timestamp: str) -> int:
    # Not by strptime: it would cost every cold command the import of the calendar.
    hour, minute, second = int(timestamp[11:13]), int(timestamp[14:16]), int(timestamp[17:19])
    return day_number(timestamp[:10]) * 86_400 + hour * 3_600 + minute * 60 + second


def timestamp_nanoseconds(timestamp: str, known: dict[str, int] = {}) -> int:  # noqa: B006 (a cache: many files, few times)
    """When a file was seen; times are kept to the second, and the earliest moment of it is the safe one."""
    if timestamp not in known:
        if len(known) > 1_000:
            known.clear()
        known[timestamp] = _timestamp_seconds(timestamp) * 1_000_000_000
    return known[timestamp]


def has_files_below(db: "Database", collection_id: int, path: str) -> bool:
    """Whether files are known below this path: it was a folder."""
    row = db.one(
        "SELECT 1 FROM file_state WHERE collection_id = ? AND relative_path >= ? AND relative_path < ?",
        (collection_id, f"{path}/", f"{path}0"),
    )
    return row is not None


class PageFile(NamedTuple):
    """A page that is seen, with its file as it was last read and the bytes that are kept of it."""

    page_id: int
    slug: str
    uuid: str
    path: str | None
    """Where its file is; none: the index knows of no file."""
    content_hash: str | None
    raw_id: int | None
    raw_path: str | None
    raw_hash: str | None


def page_files(db: "Database", collection_id: int) -> list[PageFile]:
    """The pages of a collection that are seen, by path; not those that are headings in the file of another."""
    rows = db.rows(
        "SELECT p.id, p.slug, p.uuid, f.relative_path, f.content_hash, r.id, r.file_path, r.content_hash"
        " FROM pages p LEFT JOIN file_state f ON f.page_id = p.id AND f.collection_id = p.collection_id"
        " LEFT JOIN raw_imports r ON r.page_id = p.id AND r.is_active = 1"
        " WHERE p.collection_id = ? AND p.quarantined_at IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM file_nodes n WHERE n.page_id = p.id)"
        " ORDER BY coalesce(f.relative_path, r.file_path), p.id",
        (collection_id,),
    )
    return [PageFile(*row) for row in rows]


def forget_all_files(tx: "apsw.Connection", collection_id: int) -> None:
    """Forget all files of a folder: the collection lives in another one."""
    tx.execute("DELETE FROM file_state WHERE collection_id = ?", (collection_id,))


def page_of_heading(tx: "apsw.Connection", collection_id: int, node_id: str) -> int | None:
    """The page of a heading, in whichever file of the folder it was last seen."""
    for (page_id,) in tx.execute(
        "SELECT page_id FROM file_nodes WHERE collection_id = ? AND node_id = ?", (collection_id, node_id)
    ):
        return int(page_id)
    return None


def other_file_with_heading(tx: "apsw.Connection", page_id: int, file_page_id: int) -> str | None:
    """The path of another file, whose page is seen, that had this heading when it was last read."""
    for (path,) in tx.execute(
        "SELECT f.relative_path FROM file_nodes n JOIN file_state f ON f.page_id = n.file_page_id"
        " JOIN pages p ON p.id = n.page_id AND p.quarantined_at IS NULL"
        " WHERE n.page_id = ? AND n.file_page_id <> ?",
        (page_id, file_page_id),
    ):
        return str(path)
    return None


def record_heading(
    tx: "apsw.Connection", collection_id: int, page_id: int, file_page_id: int, node_id: str
) -> None:
    """Remember that a page is a heading of a file."""
    tx.execute("DELETE FROM file_nodes WHERE page_id = ?", (page_id,))
    tx.execute(
        "INSERT OR REPLACE INTO file_nodes (page_id, file_page_id, collection_id, node_id) VALUES (?, ?, ?, ?)",
        (page_id, file_page_id, collection_id, node_id),
    )


def file_of_heading(db: "Database", page_id: int) -> str | None:
    """The path of the file that a page is a heading of; "" when that file is away; None: it is none."""
    row = db.one(
        "SELECT coalesce(f.relative_path, '') FROM file_nodes n LEFT JOIN file_state f ON f.page_id = n.file_page_id"
        " WHERE n.page_id = ?",
        (page_id,),
    )
    return None if row is None else str(row[0])
