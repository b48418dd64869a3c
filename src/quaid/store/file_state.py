"""What was last seen of each file of a folder: enough to tell by stat alone that it is unchanged.

Knows the rows of file_state, and the bytes that were read, which raw_imports keeps as a page's history. Does
not know the disk.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

from quaid.model.dates import day_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from quaid.model.sync_plan import LastSeenFile, ScannedFile
    from quaid.store.db import Database

NOT_TAKEN_IN = ""
"""Stands for the hash of a file that was read and could not be taken in."""


class Trouble(NamedTuple):
    """A file that something is wrong with."""

    path: str
    problem: str
    taken_in: bool
    """Whether its page says what the file says, as far as it could be understood."""


def known(db: "Database", collection_id: int, keys: "Iterable[str] | None" = None) -> "list[LastSeenFile]":
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
            nanoseconds(row[7]),
            row[8],
            row[9],
            bool(row[10]),
        )
        for row in rows
    ]


def quarantined(db: "Database", collection_id: int) -> "list[LastSeenFile]":
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


def saw(
    tx: "apsw.Connection",
    collection_id: int,
    file: "ScannedFile",
    content_hash: str,
    page_id: int | None,
    now: str,
    problem: str | None = None,
) -> None:
    """Remember a file as it was read."""
    saw_all(tx, collection_id, [(file, content_hash, page_id, problem)], now)


def saw_all(
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


def seen(tx: "apsw.Connection", collection_id: int, paths: list[str]) -> set[str]:
    """Those of the files that were seen before."""
    found = tx.execute(
        "SELECT f.relative_path FROM json_each(?) AS wanted CROSS JOIN file_state AS f"
        " ON f.collection_id = ? AND f.relative_path = wanted.value",
        (json.dumps(paths, ensure_ascii=False), collection_id),
    )
    return {str(path) for (path,) in found}


def content_of(tx: "apsw.Connection", collection_id: int, path: str) -> str | None:
    """The hash of a file's content as it was last taken in."""
    for (found,) in tx.execute(
        "SELECT content_hash FROM file_state WHERE collection_id = ? AND relative_path = ?",
        (collection_id, path),
    ):
        return str(found)
    return None


def page_at(tx: "apsw.Connection", collection_id: int, path: str) -> int | None:
    """The page of a file, as far as it is known."""
    for (found,) in tx.execute(
        "SELECT page_id FROM file_state WHERE collection_id = ? AND relative_path = ?", (collection_id, path)
    ):
        return None if found is None else int(found)
    return None


def is_as(tx: "apsw.Connection", collection_id: int, known: "LastSeenFile") -> bool:
    """Whether a file is still what it was when somebody looked at it: the same content, of the same page."""
    found = tx.execute(
        "SELECT 1 FROM file_state WHERE collection_id = ? AND relative_path = ? AND content_hash = ?"
        " AND page_id IS ?",
        (collection_id, known.path, known.content_hash, known.page_id),
    )
    return found.fetchone() is not None


def forget(tx: "apsw.Connection", collection_id: int, path: str, page_id: int | None = None) -> None:
    """A file is not there any more; with a page: unless another page's file stands there by now."""
    tx.execute(
        "DELETE FROM file_state WHERE collection_id = ?1 AND relative_path = ?2 AND (?3 IS NULL OR page_id IS ?3)",
        (collection_id, path, page_id),
    )


def path_of(db: "Database", page_id: int) -> "LastSeenFile | None":
    """The file of a page, as it was last seen."""
    row = db.one(
        "SELECT collection_id, relative_path, path_key FROM file_state WHERE page_id = ?", (page_id,)
    )
    if row is None:
        return None
    return next(each for each in known(db, row[0], [row[2]]) if each.path == row[1])


Looks = tuple[int, int, int, int]
"""Size, times of change and number of a file, as Stat has them: a plain tuple, for thousands of them."""


def settled(db: "Database", collection_id: int, racy_ns: int) -> dict[str, Looks]:
    """How each file looked that need not be read again if it still does: not one that was read while it was so new
    that it may have changed unseen."""
    found = {}
    for path, size, mtime, ctime, inode, seen in db.rows(
        "SELECT relative_path, size_bytes, mtime_ns, ctime_ns, inode, seen_at FROM file_state"
        " WHERE collection_id = ?",
        (collection_id,),
    ):
        latest = nanoseconds(seen) - racy_ns
        found[path] = (size, mtime, ctime, inode) if ctime <= latest and mtime <= latest else (-1, -1, -1, -1)
    return found


class Indexed(NamedTuple):
    """What the index has of a file: the page, its version, and the hash of the bytes that made it."""

    page_id: int
    version: int
    content_hash: str


def at_path(db: "Database", collection_id: int, path: str) -> Indexed | None:
    """The page of a file."""
    row = db.one(
        "SELECT p.id, p.version, f.content_hash FROM file_state f JOIN pages p ON p.id = f.page_id"
        " WHERE f.collection_id = ? AND f.relative_path = ?",
        (collection_id, path),
    )
    return None if row is None else Indexed(*row)


def paths_of(db: "Database", page_ids: "Iterable[int]") -> dict[int, str]:
    """Where the files of these pages are."""
    rows = db.rows(
        "SELECT page_id, relative_path FROM file_state WHERE page_id IN (SELECT value FROM json_each(?))",
        (str(list(page_ids)),),
    )
    return dict(rows)


def troubles(db: "Database", collection_id: int) -> list[Trouble]:
    """The files that something is wrong with."""
    rows = db.rows(
        "SELECT relative_path, problem, content_hash <> '' FROM file_state"
        " WHERE collection_id = ? AND problem IS NOT NULL ORDER BY relative_path",
        (collection_id,),
    )
    return [Trouble(path, problem, bool(taken_in)) for path, problem, taken_in in rows]


def not_taken_in(db: "Database") -> dict[str, list[Trouble]]:
    """The files that could not be taken in, by the name of their collection."""
    found: dict[str, list[Trouble]] = {}
    for name, path, problem in db.rows(
        "SELECT c.name, f.relative_path, f.problem FROM file_state f JOIN collections c ON c.id = f.collection_id"
        " WHERE f.content_hash = '' AND f.problem IS NOT NULL AND c.state = 'active' ORDER BY 1, 2"
    ):
        found.setdefault(name, []).append(Trouble(path, problem, False))
    return found


def count(db: "Database", collection_id: int) -> int:
    row = db.one("SELECT count(*) FROM file_state WHERE collection_id = ?", (collection_id,))
    return int(row[0]) if row else 0


def _seconds(timestamp: str) -> int:
    # Not by strptime: it would cost every cold command the import of the calendar.
    hour, minute, second = int(timestamp[11:13]), int(timestamp[14:16]), int(timestamp[17:19])
    return day_number(timestamp[:10]) * 86_400 + hour * 3_600 + minute * 60 + second


def nanoseconds(timestamp: str, known: dict[str, int] = {}) -> int:  # noqa: B006 (a cache: many files, few times)
    """When a file was seen; times are kept to the second, and the earliest moment of it is the safe one."""
    if timestamp not in known:
        if len(known) > 1_000:
            known.clear()
        known[timestamp] = _seconds(timestamp) * 1_000_000_000
    return known[timestamp]


def has_below(db: "Database", collection_id: int, path: str) -> bool:
    """Whether files are known below this path: it was a folder."""
    row = db.one(
        "SELECT 1 FROM file_state WHERE collection_id = ? AND relative_path >= ? AND relative_path < ?",
        (collection_id, f"{path}/", f"{path}0"),
    )
    return row is not None


class Kept(NamedTuple):
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


def kept(db: "Database", collection_id: int) -> list[Kept]:
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
    return [Kept(*row) for row in rows]


def clear(tx: "apsw.Connection", collection_id: int) -> None:
    """Forget all files of a folder: the collection lives in another one."""
    tx.execute("DELETE FROM file_state WHERE collection_id = ?", (collection_id,))
