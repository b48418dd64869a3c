"""The parts of turns and their vectors: cut, wanted, kept, dropped.

Knows turn_parts and the shelf of vectors beside them. Does not know how a text becomes a vector, nor which one is
asked for. A vector belongs to a model and a content, as those of pages do; but a turn that is taken out takes the
vectors along that no other turn needs.

`since` is a moment: conversations that ended before it are left out. Empty, all count.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model import chunker
from quaid.store import shelves, vectors
from quaid.store.shelves import Shelf
from quaid.store.vectors import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import apsw

    from quaid.store.db import Database

HASH_BYTES = 16
TURNS_AT_ONCE = 1_000


class PartRow(NamedTuple):
    part: int
    start: int
    end: int
    content_hash: bytes


# Parts


def cut(tx: "apsw.Connection", turns: "Iterable[tuple[int, str, str]]") -> None:
    """Cut turns, each with its id, role and text, into parts."""
    tx.executemany(
        "INSERT INTO turn_parts (turn_id, part, start_at, end_at, content_hash) VALUES (?, ?, ?, ?, ?)",
        [(turn_id, *row) for turn_id, role, text in turns for row in _parts(role, text)],
    )


def _parts(role: str, text: str) -> "Iterator[PartRow]":
    for number, (start, end) in enumerate(chunker.split_turn(text)):
        said = chunker.turn_embedding_text(role, text[start:end]).encode("utf-8", "surrogatepass")
        yield PartRow(number, start, end, hashlib.sha256(said).digest()[:HASH_BYTES])


def recut(tx: "apsw.Connection") -> None:
    """Cut all turns anew. Vectors of what is cut as before go on serving."""
    tx.execute("DELETE FROM turn_parts")
    for turns in _every_turn(tx):
        cut(tx, turns)


def wrong_parts(connection: "apsw.Connection") -> "Iterator[tuple[int, str]]":
    """Turns whose parts are not those of their text."""
    for turns in _every_turn(connection):
        there: dict[int, list[PartRow]] = {}
        for turn_id, *row in connection.execute(
            "SELECT turn_id, part, start_at, end_at, content_hash FROM turn_parts"
            " WHERE turn_id BETWEEN ? AND ? ORDER BY turn_id, part",
            (turns[0][0], turns[-1][0]),
        ):
            there.setdefault(turn_id, []).append(PartRow(*row))
        for turn_id, role, text in turns:
            if there.get(turn_id, []) != list(_parts(role, text)):
                yield turn_id, "its parts in turn_parts are not those of its text"


def _every_turn(connection: "apsw.Connection") -> "Iterator[list[tuple[int, str, str]]]":
    after = 0
    while True:
        found: Iterable[tuple[int, str, str]] = connection.execute(
            "SELECT id, role, text FROM conversation_turns WHERE id > ? ORDER BY id LIMIT ?",
            (after, TURNS_AT_ONCE),
        )
        rows = list(found)
        if not rows:
            return
        yield rows
        after = rows[-1][0]


# Filling

_NEWEST_FIRST = (
    " FROM conversations AS c CROSS JOIN conversation_turns AS t ON t.conversation_id = c.id"
    " CROSS JOIN turn_parts AS p ON p.turn_id = t.id"
    " WHERE coalesce(c.ended_at, c.added_at) >= ? AND NOT EXISTS"
    " (SELECT 1 FROM turn_vectors AS v WHERE v.content_hash = p.content_hash AND v.model = ?)"
)


def missing_parts(db: "Database", model: str, since: str = "") -> list[int]:
    """Parts without a vector of this model, those of the conversations that ended last first."""
    rows = db.rows(
        f"SELECT p.id{_NEWEST_FIRST} ORDER BY coalesce(c.ended_at, c.added_at) DESC, c.id DESC, t.turn DESC, p.part",
        (since, model),
    )
    return [part_id for (part_id,) in rows]


def missing_turns(db: "Database", model: str, since: str = "") -> int:
    """How many turns lack a vector of this model."""
    row = db.one(f"SELECT count(DISTINCT t.id){_NEWEST_FIRST}", (since, model))
    return row[0] if row else 0


def texts(db: "Database", model: str, part_ids: list[int]) -> list[Missing]:
    """What is to be embedded of these parts, in their order: each content once, and none that has a vector."""
    rows = db.rows(
        "SELECT p.content_hash, t.role, t.text, p.start_at, p.end_at FROM json_each(?) AS wanted"
        " CROSS JOIN turn_parts AS p ON p.id = wanted.value CROSS JOIN conversation_turns AS t ON t.id = p.turn_id"
        " WHERE NOT EXISTS (SELECT 1 FROM turn_vectors AS v WHERE v.content_hash = p.content_hash AND v.model = ?)",
        (str(part_ids), model),
    )
    return list(
        {
            content_hash: Missing(content_hash, chunker.turn_embedding_text(role, text[start:end]))
            for content_hash, role, text, start, end in rows
        }.values()
    )


def characters(db: "Database", part_ids: list[int]) -> int:
    """How long these parts are together."""
    row = db.one(
        "SELECT sum(end_at - start_at) FROM turn_parts WHERE id IN (SELECT value FROM json_each(?))",
        (str(part_ids),),
    )
    return row[0] or 0 if row else 0


def conversations_of(db: "Database", hashes: list[bytes]) -> tuple[str, ...]:
    """The conversations in which contents were said, as a person would name them."""
    rows = db.rows(
        "SELECT DISTINCT c.client || ':' || c.session FROM json_each(?) AS wanted CROSS JOIN turn_parts AS p"
        " ON p.content_hash = unhex(wanted.value) CROSS JOIN conversation_turns AS t ON t.id = p.turn_id"
        " CROSS JOIN conversations AS c ON c.id = t.conversation_id ORDER BY 1",
        (json.dumps([each.hex() for each in hashes]),),
    )
    return tuple(name for (name,) in rows)


def made(db: "Database", model: str) -> tuple[int, int]:
    """How many contents have a vector of this model, and how many there are, of all conversations."""
    row = db.one(
        "SELECT (SELECT count(*) FROM turn_vectors WHERE model = ?),"
        " (SELECT count(DISTINCT content_hash) FROM turn_parts)",
        (model,),
    )
    return (min(row), row[1]) if row else (0, 0)


def highest_part(db: "Database") -> int:
    """The id of the newest part; 0 when there is none."""
    row = db.one("SELECT max(id) FROM turn_parts")
    return row[0] or 0 if row else 0


def lacks_some(db: "Database", model: str, since: str, after: int) -> bool:
    """Whether a part behind the first so many lacks a vector."""
    in_time = (
        " AND EXISTS (SELECT 1 FROM conversation_turns AS t JOIN conversations AS c ON c.id = t.conversation_id"
        " WHERE t.id = p.turn_id AND coalesce(c.ended_at, c.added_at) >= ?3)"
    )
    row = db.one(
        "SELECT 1 FROM turn_parts AS p WHERE p.id > ?1 AND NOT EXISTS"  # noqa: S608 (fixed)
        " (SELECT 1 FROM turn_vectors AS v WHERE v.content_hash = p.content_hash AND v.model = ?2)"
        f"{in_time if since else ''} LIMIT 1",
        (after, model, since)[: 3 if since else 2],
    )
    return row is not None


# Keeping and dropping


def shelf(tx: "apsw.Connection", model: str) -> Shelf:
    """Where the vectors of turns stand."""
    dimensions = vectors.dimensions_of(tx, model)
    return Shelf(model, dimensions, "turn_vectors", "turn_codes", "turn_encodings", "model")


def keep(tx: "apsw.Connection", model: str, found: list[tuple[bytes, bytes]], now: str) -> int:
    """Keep vectors, each with the hash of its content; those that nobody says any more are not. How many were new."""
    tx.execute("INSERT OR IGNORE INTO turn_encodings (model) VALUES (?)", (model,))
    there = {
        content_hash
        for (content_hash,) in tx.execute(
            "SELECT content_hash FROM turn_parts WHERE content_hash IN (SELECT unhex(value) FROM json_each(?))",
            (json.dumps([each.hex() for each, _ in found]),),
        )
    }
    return shelves.keep(tx, shelf(tx, model), [pair for pair in found if pair[0] in there], now)


def encode_all(tx: "apsw.Connection") -> None:
    """Make the codes of all models anew."""
    for (model,) in tx.execute("SELECT model FROM turn_encodings").fetchall():
        shelves.encode_all(tx, shelf(tx, str(model)))


def purge(tx: "apsw.Connection") -> int:
    """Drop the vectors of contents that no turn has any more, of every model. Returns how many."""
    gone: dict[str, set[int]] = {}
    rows: list[tuple[Any, ...]] = tx.execute(
        "DELETE FROM turn_vectors AS v WHERE NOT EXISTS"
        " (SELECT 1 FROM turn_parts AS p WHERE p.content_hash = v.content_hash) RETURNING model, id"
    ).fetchall()
    for model, vector_id in rows:
        gone.setdefault(model, set()).add(vector_id)
    for model, ids in gone.items():
        shelves.drop_codes(tx, shelf(tx, model), ids)
    return len(rows)
