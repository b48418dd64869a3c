"""Pages that are headings in the file of another page: they come, change and go with it.

Knows the rows of file_nodes. Does not know what is in a file.
"""

from typing import TYPE_CHECKING

from quaid.store import quarantine

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


def page_of(tx: "apsw.Connection", collection_id: int, node_id: str) -> int | None:
    """The page of a heading, in whichever file of the folder it was last seen."""
    for (page_id,) in tx.execute(
        "SELECT page_id FROM file_nodes WHERE collection_id = ? AND node_id = ?", (collection_id, node_id)
    ):
        return int(page_id)
    return None


def other_file(tx: "apsw.Connection", page_id: int, file_page_id: int) -> str | None:
    """The path of another file, whose page is seen, that had this heading when it was last read."""
    for (path,) in tx.execute(
        "SELECT f.relative_path FROM file_nodes n JOIN file_state f ON f.page_id = n.file_page_id"
        " JOIN pages p ON p.id = n.page_id AND p.quarantined_at IS NULL"
        " WHERE n.page_id = ? AND n.file_page_id <> ?",
        (page_id, file_page_id),
    ):
        return str(path)
    return None


def keep(tx: "apsw.Connection", collection_id: int, page_id: int, file_page_id: int, node_id: str) -> None:
    """Remember that a page is a heading of a file."""
    tx.execute("DELETE FROM file_nodes WHERE page_id = ?", (page_id,))
    tx.execute(
        "INSERT OR REPLACE INTO file_nodes (page_id, file_page_id, collection_id, node_id) VALUES (?, ?, ?, ?)",
        (page_id, file_page_id, collection_id, node_id),
    )


def put_away(
    tx: "apsw.Connection", file_page_id: int, now: str, but: "frozenset[int] | set[int]" = frozenset()
) -> None:
    """Hide the pages of a file's headings, but for those that are still there."""
    rows = tx.execute(
        "SELECT n.page_id FROM file_nodes n JOIN pages p ON p.id = n.page_id"
        " WHERE n.file_page_id = ? AND p.quarantined_at IS NULL",
        (file_page_id,),
    )
    for page_id in [int(row[0]) for row in rows]:
        if page_id not in but:
            quarantine.put_away(tx, page_id, now)


def file_of(db: "Database", page_id: int) -> str | None:
    """The path of the file that a page is a heading of; "" when that file is away; None: it is none."""
    row = db.one(
        "SELECT coalesce(f.relative_path, '') FROM file_nodes n LEFT JOIN file_state f ON f.page_id = n.file_page_id"
        " WHERE n.page_id = ?",
        (page_id,),
    )
    return None if row is None else str(row[0])
