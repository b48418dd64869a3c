"""Of which day every chunk is, in the memory of a process that is asked for days more than once.

Finding the day of a page is dear (store.days), and a question by days would find that of every page. Knows days as
numbers, 20240305, and which places of an index they belong to. Does not know what a day is asked for.
"""

import re
from typing import TYPE_CHECKING

from quaid.store.days import PAGE_DAY

if TYPE_CHECKING:
    from quaid.store.codes import Array
    from quaid.store.db import Database

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Days:
    """The days of chunks, as long as nobody writes."""

    def __init__(self) -> None:
        self._version: int | None = None
        self._first: Array | None = None

    def within(self, db: "Database", rows: "Array", since: str | None, until: str | None) -> "Array | None":
        """Which of these chunks (first row) of these pages (second) are of the days; None: no such days are meant."""
        import numpy as np

        if not all(_DAY.fullmatch(day) for day in (since, until) if day is not None):
            return None
        version = db.connection.data_version()
        if self._first is None or version != self._version or len(self._first) != rows.shape[1]:
            self._first, self._version = _days(db, rows), version
        first = self._first
        wanted = np.ones(len(first), bool)
        if since is not None:  # a month reaches to its end
            wanted &= np.where(first % 100 == 0, first + 31, first) >= int(since.replace("-", ""))
        if until is not None:
            wanted &= first <= int(until.replace("-", ""))
        return wanted


def _days(db: "Database", rows: "Array") -> "Array":
    """The day of each chunk: its own, else that of its page; of a month the day 0."""
    import numpy as np

    chunks, pages = rows[0], rows[1]
    ids, days = _read(db, f"SELECT group_concat(p.id || ',' || {_number(PAGE_DAY)}) FROM pages AS p")  # noqa: S608
    of_page = np.zeros(max(int(pages.max(initial=0)), int(ids.max(initial=0))) + 1, np.int32)
    of_page[ids] = days
    found: Array = of_page[pages]
    ids, days = _read(
        db,
        f"SELECT group_concat(c.id || ',' || {_number('c.date')}) FROM chunks AS c"  # noqa: S608 (fixed)
        " INDEXED BY chunks_by_date WHERE c.date IS NOT NULL",
    )
    order = np.argsort(ids)
    ids, days = ids[order], days[order]
    at = np.minimum(np.searchsorted(ids, chunks), max(len(ids) - 1, 0))
    dated = ids[at] == chunks if len(ids) else np.zeros(len(chunks), bool)
    found[dated] = days[at[dated]]
    return found


def _number(day: str) -> str:
    """A day or month as a number, in SQL."""
    return f"CAST(substr(replace({day}, '-', '') || '00', 1, 8) AS INTEGER)"


def _read(db: "Database", sql: str) -> "tuple[Array, Array]":
    """Pairs of an id and a number that come as one text: far cheaper than as many rows."""
    import numpy as np

    row = db.one(sql)
    text = row[0] if row and row[0] else ""
    pairs = np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)
    return pairs[0::2], pairs[1::2]
