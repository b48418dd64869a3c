"""Which pages a damaged memory still knows, where it can no longer list them all at once.

Reads the rows of pages by ranges of ids, ever smaller ones around what is hurt. Changes nothing.
"""

from quaid.annotations import TYPE_CHECKING
from quaid.errors import DamagedDatabase
from quaid.records import NamedTuple

if TYPE_CHECKING:
    from quaid.store.db import Database


class Found(NamedTuple):
    groups: list[tuple[str, list[str]]]
    """Slugs by the type of page."""
    lost: list[int]
    """Ids that cannot be read; some may be of pages that were gone before."""


def slugs(db: "Database") -> Found:
    """The slugs of the pages whose rows can be read, and where the others are."""
    groups: dict[str, list[str]] = {}
    lost: list[int] = []
    ranges = [(1, _last(db))]
    while ranges:
        low, high = ranges.pop()
        try:
            rows = db.rows(
                "SELECT type, slug FROM pages WHERE id BETWEEN ? AND ? AND quarantined_at IS NULL",
                (low, high),
            )
        except DamagedDatabase:
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]
            else:
                lost.append(low)
            continue
        for kind, slug in rows:
            groups.setdefault(kind, []).append(slug)
    return Found([(kind, sorted(groups[kind])) for kind in sorted(groups)], lost)


def _last(db: "Database") -> int:
    for sql in ("SELECT seq FROM sqlite_sequence WHERE name = 'pages'", "SELECT max(id) FROM pages"):
        try:
            row = db.one(sql)
        except DamagedDatabase:
            continue
        if row and row[0]:
            return int(row[0])
    raise DamagedDatabase(path=db.path, problem="not even the number of its pages can be read")
