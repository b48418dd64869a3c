"""How far transcripts on disk were read.

Knows the table transcript_files. Does not know what the files say.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


class FileState(NamedTuple):
    path: str
    client: str
    """Who writes it; "" when nobody that we know."""
    session: str
    """Of the line that was read last."""
    size: int
    mtime_ns: int
    inode: int
    read_to: int
    mark: bytes
    """Hash of the first and last bytes of what was read."""
    broken: int
    problem: str | None


_COLUMNS = "path, client, session, size_bytes, mtime_ns, inode, read_to, mark, broken_lines, problem"


def find(db: "Database", path: str) -> FileState | None:
    row = db.one(f"SELECT {_COLUMNS} FROM transcript_files WHERE path = ?", (path,))  # noqa: S608
    return None if row is None else FileState(*row)


def with_inode(db: "Database", inode: int) -> list[FileState]:
    """Files that were this one when they were read: one of them may have been renamed."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM transcript_files WHERE inode = ?", (inode,))  # noqa: S608
    return [FileState(*row) for row in rows]


def every(db: "Database") -> list[FileState]:
    """Every file that was read and turned out to be a transcript."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM transcript_files WHERE client <> '' ORDER BY path")  # noqa: S608
    return [FileState(*row) for row in rows]


def save(tx: "apsw.Connection", state: FileState, now: str) -> None:
    """Remember how far a file was read."""
    tx.execute(
        f"INSERT OR REPLACE INTO transcript_files ({_COLUMNS}, read_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (*state, now),
    )


def forget(tx: "apsw.Connection", path: str) -> None:
    tx.execute("DELETE FROM transcript_files WHERE path = ?", (path,))
