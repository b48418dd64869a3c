"""Collections: which sets of documents there are, where they live, and how they are.

Knows the rows of collections. Does not know what is in a folder.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import NotFound

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database

State = Literal["active", "detached", "restoring"]

DEFAULT = "default"


class Collection(NamedTuple):
    id: int
    name: str
    kind: str
    root: str | None
    """The folder; none for pages that live in the database."""
    state: State
    writable: bool
    is_write_target: bool
    ignore_patterns: str
    ignore_problem: str | None
    halted_at: str | None
    """Since when syncing waits for a person."""
    halt_reason: str | None
    last_sync_at: str | None
    created_at: str


_COLUMNS = (
    "id, name, kind, root_path, state, writable, is_write_target, ignore_patterns, ignore_problem,"
    " reconcile_halted_at, reconcile_halt_reason, last_sync_at, created_at"
)


def every(db: "Database") -> list[Collection]:
    """All collections, the default one first."""
    return [_made(row) for row in db.rows(f"SELECT {_COLUMNS} FROM collections ORDER BY id")]  # noqa: S608


def find(db: "Database", name: str) -> Collection | None:
    row = db.one(f"SELECT {_COLUMNS} FROM collections WHERE name = ?", (name,))  # noqa: S608 (fixed columns)
    return None if row is None else _made(row)


def require(db: "Database", name: str) -> Collection:
    """The collection of this name; NotFound with all names when there is none."""
    found = find(db, name)
    if found is None:
        known = ", ".join(each.name for each in every(db))
        raise NotFound(what="collection", name=name, hint=f" There is: {known}.")
    return found


def write_target(db: "Database") -> Collection:
    """The collection that takes new pages whose address names none."""
    row = db.one(f"SELECT {_COLUMNS} FROM collections ORDER BY is_write_target DESC, id LIMIT 1")  # noqa: S608
    assert row is not None, "every memory has the default collection"
    return _made(row)


def add(tx: "apsw.Connection", name: str, kind: str, root: str, writable: bool, now: str) -> int:
    """Attach a folder."""
    tx.execute(
        "INSERT INTO collections (name, kind, root_path, writable, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (name, kind, root, writable, now, now),
    )
    return tx.last_insert_rowid()


def set_state(tx: "apsw.Connection", collection_id: int, state: State, now: str) -> None:
    tx.execute("UPDATE collections SET state = ?, updated_at = ? WHERE id = ?", (state, now, collection_id))


def set_kind(tx: "apsw.Connection", collection_id: int, kind: str, now: str) -> None:
    tx.execute("UPDATE collections SET kind = ?, updated_at = ? WHERE id = ?", (kind, now, collection_id))


def set_place(tx: "apsw.Connection", collection_id: int, root: str, writable: bool, now: str) -> None:
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


def synced(tx: "apsw.Connection", collection_id: int, now: str) -> None:
    """A sync saw the whole folder and did all it had to."""
    tx.execute(
        "UPDATE collections SET last_sync_at = ?, reconcile_halted_at = NULL, reconcile_halt_reason = NULL"
        " WHERE id = ?",
        (now, collection_id),
    )


def halt(tx: "apsw.Connection", collection_id: int, reason: str, now: str) -> None:
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


def _made(row: tuple[object, ...]) -> Collection:
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
