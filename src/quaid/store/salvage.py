"""What a damaged memory still knows, where it can no longer list it all at once.

Reads rows by ranges of ids, ever smaller ones around what is hurt. Changes nothing.
"""

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from quaid.errors import DamagedDatabase

if TYPE_CHECKING:
    from collections.abc import Callable

    from quaid.store.db import Database

T = TypeVar("T")


class Readable(NamedTuple):
    addresses: list[tuple[str, str, str]]
    """Collection, type and slug of each page."""
    lost: list[int]
    """Ids that cannot be read; some may be of pages that were deleted before."""


def addresses(db: "Database") -> Readable:
    """Return the pages whose rows can be read, and the ids of the others."""
    names = _collections(db)
    if not _last(db, "pages"):
        raise DamagedDatabase(path=db.path, problem="not even the number of its pages can be read")
    found: list[tuple[int, str, str]]
    found, lost = by_ids(
        db,
        "pages",
        lambda low, high: db.rows(
            "SELECT collection_id, type, slug FROM pages WHERE id BETWEEN ? AND ? AND quarantined_at IS NULL",
            (low, high),
        ),
    )
    return Readable(
        [(names.get(id_, f"collection-{id_}"), kind, slug) for id_, kind, slug in sorted(found)], lost
    )


def by_ids(db: "Database", table: str, read: "Callable[[int, int], list[T]]") -> "tuple[list[T], list[int]]":
    """What `read` gives for the ids of a table, by their order, and the ids for which it cannot be read."""
    found: list[T] = []
    lost: list[int] = []
    last = _last(db, table)
    ranges = [(1, last)] if last else []
    while ranges:
        low, high = ranges.pop()
        try:
            found += read(low, high)
        except DamagedDatabase:
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]
            else:
                lost.append(low)
    return found, lost


def _collections(db: "Database") -> dict[int, str]:
    """The names of the collections, as far as they can be read."""
    try:
        return dict(db.rows("SELECT id, name FROM collections"))
    except DamagedDatabase:
        return {1: "default"}


def _last(db: "Database", table: str) -> int:
    """The last id of a table; 0: it never had a row."""
    read = False
    for sql in (
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",  # noqa: S608 (fixed)
        f"SELECT max(id) FROM {table}",  # noqa: S608
    ):
        try:
            row = db.one(sql)
        except DamagedDatabase:
            continue
        read = True
        if row and row[0]:
            return int(row[0])
    if not read:
        raise DamagedDatabase(path=db.path, problem=f"not even the number of its {table} can be read")
    return 0
