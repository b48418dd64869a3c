"""Whether there are vectors to be made, found out for next to nothing.

A server asks this after every pause. Knows that ids of chunks and parts only rise, and that none of them loses its
vector: what was found whole once is not looked at again. Does not know how vectors are made.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.store import chunks, turn_vectors

if TYPE_CHECKING:
    from quaid.store.db import Database


class Stamp(NamedTuple):
    """Differs when something was written: by others, or through this connection."""

    others: int
    own: int


class Whole(NamedTuple):
    """The last chunk, and the last part of a turn, up to which all have a vector of the model."""

    model: str | None = None
    chunk_id: int = 0
    part_id: int = 0
    turns: str = "off"
    """Which turns were looked at."""


class Turns(NamedTuple):
    """Which turns are to have vectors: the word for it, and the moment since which."""

    which: str = "off"
    since: str = ""


NO_TURNS = Turns()


def stamp(db: "Database") -> Stamp:
    """Of the present state."""
    with db.reading():
        db.one("SELECT 1 FROM embedding_models")  # what others wrote shows with the first read
        return Stamp(db.connection.data_version(), db.connection.total_changes())


def whole(db: "Database", known: Whole, turns: Turns = NO_TURNS) -> Whole | None:
    """How far all have vectors of the active model: to the end. None when one has not, or is not cut yet."""
    with db.reading():
        if chunks.uncut(db):
            return None
        model = db.one("SELECT name, vec_table FROM embedding_models WHERE active = 1")
        last = (db.one("SELECT max(id) FROM chunks") or (0,))[0] or 0
        last_part = turn_vectors.highest_part(db) if turns.which != "off" else 0
        if model is None:
            return None if last or last_part else Whole()
        name, table = model
        first = known.chunk_id if known.model == name else 0
        lacks = db.one(
            "SELECT 1 FROM chunks AS c WHERE c.id > ? AND NOT EXISTS"  # noqa: S608 (the registry's name)
            f" (SELECT 1 FROM {table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?) LIMIT 1",
            (first, name),
        )
        same = known.model == name and known.turns == turns.which
        after = known.part_id if same else 0
        if lacks or (last_part > after and turn_vectors.lacks_some(db, name, turns.since, after)):
            return None
        return Whole(name, last, last_part, turns.which)
