"""Which pages a damaged memory still knows, where it can no longer list them all at once.

Reads the rows of pages by ranges of ids, ever smaller ones around what is hurt. Changes nothing.
"""

from quaid.annotations import TYPE_CHECKING
from quaid.errors import DamagedDatabase
from quaid.records import NamedTuple

if TYPE_CHECKING:
    from quaid.store.db import Database


class Readable(NamedTuple):
    addresses: list[tuple[str, str, str]]
    """Collection, type and slug of each page."""
    lost: list[int]
    """Ids that cannot be read; some may be of pages that were deleted before."""


def addresses(db: "Database") -> Readable:
    """Return the pages whose rows can be read, and the ids of the others."""
    names = _collections(db)
    found: list[tuple[int, str, str]] = []
    lost: list[int] = []
    ranges = [(1, _last(db))]
    while ranges:
        low, high = ranges.pop()
        try:
            found += db.rows(
                "SELECT collection_id, type, slug FROM pages WHERE id BETWEEN ? AND ? AND quarantined_at IS NULL",
                (low, high),
            )
        except DamagedDatabase:
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]
            else:
                lost.append(low)
    return Readable(
        [(names.get(id_, f"collection-{id_}"), kind, slug) for id_, kind, slug in sorted(found)], lost
    )


def _collections(db: "Database") -> dict[int, str]:
    """The names of the collections, as far as they can be read."""
    try:
        return dict(db.rows("SELECT id, name FROM collections"))
    except DamagedDatabase:
        return {1: "default"}


def _last(db: "Database") -> int:
    for sql in ("SELECT seq FROM sqlite_sequence WHERE name = 'pages'", "SELECT max(id) FROM pages"):
        try:
            row = db.one(sql)
        except DamagedDatabase:
            continue
        if row and row[0]:
            return int(row[0])
    raise DamagedDatabase(path=db.path, problem="not even the number of its pages can be read")
