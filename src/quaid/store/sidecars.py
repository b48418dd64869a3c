"""What other services answered about a page: one JSON value for each source.

Knows the rows of raw_data. Does not know the sources, nor page versions: a caller touches the page in the
same transaction.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.store.json_text import as_json

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


class RawData(NamedTuple):
    """One answer of one source."""

    source: str
    data: Any
    fetched_at: str


def read(db: "Database", page_id: int, source: str | None = None) -> list[RawData]:
    """What is known about a page from one source, or from all."""
    found = db.rows(
        "SELECT source, data, fetched_at FROM raw_data WHERE page_id = ? AND (? IS NULL OR source = ?)"
        " ORDER BY source",
        (page_id, source, source),
    )
    return [RawData(name, json.loads(data), fetched_at) for name, data, fetched_at in found]


def write(tx: "apsw.Connection", page_id: int, source: str, data: Any, now: str) -> None:
    """Keep a source's newest answer in place of its last one."""
    tx.execute(
        "INSERT INTO raw_data (page_id, source, fetched_at, data) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (page_id, source) DO UPDATE SET fetched_at = excluded.fetched_at, data = excluded.data",
        (page_id, source, now, as_json(data)),
    )


def remove(tx: "apsw.Connection", page_id: int, source: str) -> bool:
    """Forget what a source said. Returns whether there was anything."""
    tx.execute("DELETE FROM raw_data WHERE page_id = ? AND source = ?", (page_id, source))
    return tx.changes() > 0
