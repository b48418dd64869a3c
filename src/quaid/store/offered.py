"""Names that begin in some way, for whoever is typing one: wings, tags, files of a folder.

Reads only, and walks from one name to the next over an index: how many pages share a name makes no difference.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quaid.store.db import Database

LAST = "\U0010ffff"  # after every other character


def wings(db: "Database", start: str, most: int) -> list[str]:
    """The wings of visible pages that begin so, in order."""
    return _walked(
        db,
        "SELECT wing FROM pages INDEXED BY pages_by_wing WHERE quarantined_at IS NULL",
        "wing",
        "1",
        start,
        most,
    )


def tags(db: "Database", start: str, most: int) -> list[str]:
    """The tags of visible pages that begin so, in order."""
    visible = (
        "EXISTS (SELECT 1 FROM tags AS t JOIN pages AS p ON p.id = t.page_id"
        " WHERE t.tag = name AND p.quarantined_at IS NULL)"
    )
    return _walked(db, "SELECT tag FROM tags WHERE 1", "tag", visible, start, most)


def files(db: "Database", collection_id: int, start: str, most: int) -> list[str]:
    """The files of a folder whose paths begin so, as they were when it was last looked at."""
    rows = db.rows(
        "SELECT relative_path FROM file_state WHERE collection_id = ?1"
        " AND relative_path >= ?2 AND relative_path < ?2 || ?3 ORDER BY 1 LIMIT ?4",
        (collection_id, start, LAST, most),
    )
    return [str(path) for (path,) in rows]


def _walked(db: "Database", among: str, column: str, condition: str, start: str, most: int) -> list[str]:
    """Each name once: the first one, the first after it, and so on, which is one look into the index each."""
    first, later = (f"{among} AND {column} {sign} {{}} ORDER BY {column} LIMIT 1" for sign in (">=", ">"))
    rows = db.rows(
        f"WITH RECURSIVE names (name) AS (SELECT ({first.format('?1')}) UNION ALL"  # noqa: S608 - our own words
        f" SELECT ({later.format('names.name')}) FROM names WHERE name < ?1 || ?2)"
        f" SELECT name FROM names WHERE name <> '' AND name < ?1 || ?2 AND {condition} LIMIT ?3",
        (start, LAST, most),
    )
    return [str(name) for (name,) in rows]
