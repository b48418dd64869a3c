"""How far the vectors of a model are made, found out cheaply.

A full count looks at every chunk, which a question cannot wait for in a large memory. Knows where to look instead,
and that ids of chunks only rise and none of them loses its vector: after a write only what is new, and what lacked
one, is looked at. Does not know how vectors are made.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.store import chunks
from quaid.store.vectors import coverage

if TYPE_CHECKING:
    from quaid.store.db import Database
    from quaid.store.vectors import Model

FEW = 2_000
"""So many chunks are counted, and so many that lack a vector are kept in mind."""

WINDOWS, WINDOW = 8, 128
"""Of more, this many places are looked at, each so many chunks wide; one without a vector has all counted."""

LOOKS = 64
"""So many writes are followed by what they added before all chunks are counted again: 11 ms of a million."""


class Made(NamedTuple):
    """How far they are made, and in which state of the memory that was found out."""

    total: int
    """Chunks; in a large memory some that went lately may be counted in."""
    lacking: int
    waiting: list[int] | None
    """The chunks without a vector, newest first; None: more than a few."""
    last: int
    """The newest chunk."""
    looks: int = 0
    """Since the last count."""


def made(db: "Database", model: "Model") -> tuple[int, int]:
    """How many chunks have a vector, and how many there are; a few that lack one may go unseen."""
    found = _known(db, model)
    return found.total - found.lacking, found.total


def waiting(db: "Database", model: "Model") -> list[int] | None:
    """The chunks that lack a vector, newest first; None: more than a few."""
    return _known(db, model).waiting


def _known(db: "Database", model: "Model") -> Made:
    return db.known(
        f"vectors made by {model.name}", lambda: _find(db, model), lambda seen: _again(db, model, seen)
    )


def _find(db: "Database", model: "Model") -> Made:
    total, last = chunks.count(db), chunks.highest_id(db)
    if total <= FEW:
        return _few(total, _lacking(db, model, "c.id > ?", 0), last)
    if not _lacks_some(db, model, last):
        tail = _tail(db, model)
        if tail is not None:
            return _few(total, tail, last)
    covered, total = coverage(db, model.name)
    if total - covered > FEW:
        return Made(total, total - covered, None, last)
    return _few(total, _every(db, model), last)


def _few(total: int, ids: list[int], last: int, looks: int = 0) -> Made:
    return Made(total, len(ids), sorted(ids, reverse=True), last, looks)


def _again(db: "Database", model: "Model", seen: Made) -> Made:
    if seen.waiting is None or seen.total <= FEW or seen.looks >= LOOKS:
        return _find(db, model)
    last = max(seen.last, chunks.highest_id(db))
    new = (db.one("SELECT count(*) FROM chunks WHERE id > ?", (seen.last,)) or (0,))[0]
    if new > FEW:
        return _find(db, model)
    ids = _lacking(db, model, "c.id > ?", seen.last)
    if seen.waiting:
        ids += _lacking(db, model, "c.id IN (SELECT value FROM json_each(?))", str(seen.waiting))
    if len(ids) > FEW:
        return _find(db, model)
    return _few(seen.total + new, ids, last, seen.looks + 1)


def _lacking(db: "Database", model: "Model", where: str, value: int | str) -> list[int]:
    """The chunks without a vector among some."""
    rows = db.rows(
        f"SELECT c.id FROM chunks AS c WHERE {where} AND NOT EXISTS"  # noqa: S608 (the registry's name)
        f" (SELECT 1 FROM {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?)",
        (value, model.name),
    )
    return [chunk_id for (chunk_id,) in rows]


def _lacks_some(db: "Database", model: "Model", last: int) -> bool:
    """Whether one is missing anywhere but among the newest, as far as a few places tell."""
    starts = [last * place // WINDOWS for place in range(WINDOWS)]
    row = db.one(
        "SELECT 1 FROM json_each(?) AS start CROSS JOIN chunks AS c"  # noqa: S608 (the registry's name)
        " ON c.id BETWEEN start.value AND start.value + ? WHERE NOT EXISTS"
        f" (SELECT 1 FROM {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?) LIMIT 1",
        (str(starts), WINDOW, model.name),
    )
    return row is not None


def _tail(db: "Database", model: "Model") -> list[int] | None:
    """Those that lack one among the newest, back to where none does; None: more than a few."""
    found: list[int] = []
    below, width = chunks.highest_id(db) + 1, WINDOW
    while True:
        rows = db.rows(
            "SELECT c.id, EXISTS (SELECT 1 FROM"  # noqa: S608 (the registry's name)
            f" {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?)"
            " FROM chunks AS c WHERE c.id < ? ORDER BY c.id DESC LIMIT ?",
            (model.name, below, width),
        )
        bare = [chunk_id for chunk_id, has in rows if not has]
        found += bare
        if not bare or len(found) > FEW:
            return found if len(found) <= FEW else None
        below, width = rows[-1][0], 2 * width


def _every(db: "Database", model: "Model") -> list[int]:
    rows = db.rows(
        "SELECT c.id FROM (SELECT content_hash FROM chunks EXCEPT"  # noqa: S608 (the registry's name)
        f" SELECT content_hash FROM {model.vec_table} WHERE model = ?) AS lacking"
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash",
        (model.name,),
    )
    return [chunk_id for (chunk_id,) in rows]
