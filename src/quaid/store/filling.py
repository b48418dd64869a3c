"""How far the vectors of a model are made, found out cheaply.

A full count looks at every chunk, which a question cannot wait for in a large memory. Knows where to look
instead. Does not know how vectors are made.
"""

from typing import TYPE_CHECKING

from quaid.store import chunks
from quaid.store.vectors import coverage

if TYPE_CHECKING:
    from quaid.store.db import Database
    from quaid.store.vectors import Model

FEW = 2_000
"""So many chunks are counted."""

WINDOWS, WINDOW = 8, 128
"""Of more, this many places are looked at, each so many chunks wide; one without a vector has all counted."""


def made(db: "Database", model: "Model") -> tuple[int, int]:
    """How many chunks have a vector, and how many there are; a few that lack one may go unseen."""
    return db.known(f"vectors made by {model.name}", lambda: _made(db, model))


def _made(db: "Database", model: "Model") -> tuple[int, int]:
    total = chunks.count(db)
    if total <= FEW or _lacks_some(db, model):
        return coverage(db, model.name)
    return total, total


def _lacks_some(db: "Database", model: "Model") -> bool:
    highest = chunks.highest_id(db)
    starts = [highest * place // WINDOWS for place in range(1, WINDOWS)] + [highest - WINDOW, 0]
    row = db.one(
        "SELECT 1 FROM json_each(?) AS start CROSS JOIN chunks AS c"  # noqa: S608 (the registry's name)
        " ON c.id BETWEEN start.value AND start.value + ? WHERE NOT EXISTS"
        f" (SELECT 1 FROM {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?) LIMIT 1",
        (str(starts), WINDOW, model.name),
    )
    return row is not None
