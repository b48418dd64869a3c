"""Models and the vectors that they made, kept by the content of chunks.

Knows the registry of models, one table of vectors for each width, and the codes beside them. Does not know how
a text becomes a vector, nor which one is asked for.

A vector belongs to a model and to the hash of a content, not to a chunk: whoever has that content has the vector.
So nothing is embedded twice, switching to another model and back is a matter of one row, and a chunk that goes
takes nothing along. Vectors that no chunk needs any more stay until they are purged.
"""

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import InvalidArgument, NotFound
from quaid.model.chunker import embedding_text
from quaid.store import shelves
from quaid.store.shelves import Shelf

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from quaid.store.db import Database

MOST_LINKS = 1_000
"""So many links to a page are counted: whether there are more makes no difference."""

_VEC_TABLE = re.compile(r"page_embeddings_vec_[0-9]+")


class Model(NamedTuple):
    """A model that the memory knows."""

    name: str
    dimensions: int
    vec_table: str
    active: bool


class Missing(NamedTuple):
    """A content without a vector, and the text that is embedded."""

    content_hash: bytes
    text: str


class Sample(NamedTuple):
    """A text that was embedded, and its vector as it is kept."""

    text: str
    vector: bytes


_MODEL = "SELECT name, dimensions, vec_table, active FROM embedding_models"


def models(db: "Database") -> list[Model]:
    """Every model that was ever registered."""
    return [_model(row) for row in db.rows(_MODEL + " ORDER BY created_at, name")]


def active(db: "Database") -> Model | None:
    """The model that is searched with."""
    row = db.one(_MODEL + " WHERE active = 1")
    return None if row is None else _model(row)


def find(db: "Database", name: str) -> Model | None:
    """The model of this name, if it is registered."""
    row = db.one(_MODEL + " WHERE name = ?", (name,))
    return None if row is None else _model(row)


def _model(row: tuple[Any, ...]) -> Model:
    return Model(row[0], row[1], row[2], bool(row[3]))


def register(tx: "apsw.Connection", name: str, dimensions: int, now: str) -> None:
    """Make a model known. It is not active by that; a second time changes nothing."""
    if not 0 < dimensions <= 65_536:
        raise InvalidArgument(name="dimensions", problem=f"{dimensions} is no width of a vector")
    known = tx.execute("SELECT dimensions FROM embedding_models WHERE name = ?", (name,)).fetchone()
    if known and known[0] != dimensions:
        problem = f"{name} has vectors of {known[0]} dimensions here, not {dimensions}; give it another name"
        raise InvalidArgument(name="dimensions", problem=problem)
    if known is None:
        add_table(tx, dimensions)
        tx.execute(
            "INSERT INTO embedding_models (name, dimensions, vec_table, created_at) VALUES (?, ?, ?, ?)",
            (name, dimensions, vec_table(dimensions), now),
        )


def activate(tx: "apsw.Connection", name: str) -> None:
    """Search with this model from now on."""
    if not tx.execute("SELECT 1 FROM embedding_models WHERE name = ?", (name,)).fetchone():
        raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
    tx.execute("UPDATE embedding_models SET active = 0 WHERE active = 1 AND name <> ?", (name,))
    tx.execute("UPDATE embedding_models SET active = 1 WHERE name = ?", (name,))


def vec_table(dimensions: int) -> str:
    """The name of the table for vectors of a width."""
    return f"page_embeddings_vec_{int(dimensions)}"


def add_table(tx: "apsw.Connection", dimensions: int) -> None:
    """Make the table for a width like the one that every memory has, and show it in page_embeddings."""
    table, pattern = vec_table(dimensions), vec_table(384)
    if tx.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone():
        return
    (sql,) = tx.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (pattern,)).fetchone() or ("",)
    (view,) = tx.execute("SELECT sql FROM sqlite_schema WHERE name = 'page_embeddings'").fetchone() or ("",)
    tx.execute(str(sql).replace(pattern, table))
    first = str(view).partition("UNION ALL")[0].rstrip()
    every = [first.replace(pattern, each) for each in vec_tables(tx) if each != pattern]
    selects = [each[each.index("SELECT") :] for each in every]
    tx.execute("DROP VIEW page_embeddings")
    tx.execute("\nUNION ALL\n".join([first, *selects]))


def vec_tables(tx: "apsw.Connection") -> list[str]:
    """Every table of vectors."""
    names = tx.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return [str(name) for (name,) in names if _VEC_TABLE.fullmatch(str(name))]


# Filling


def missing_chunks(db: "Database", model: str, slugs: list[str] | None = None) -> list[int]:
    """Chunks without a vector of this model: those of the pages that changed last first.

    Of pages that changed at one moment, as in an import, those come first that most links lead to.
    """
    known = _known(db, model)
    among = "" if slugs is None else " AND p.slug IN (SELECT value FROM json_each(?))"
    rows = db.rows(
        # Two indexes in the same order are gone through side by side, as for `coverage`.
        "SELECT c.id FROM (SELECT content_hash FROM chunks EXCEPT"  # noqa: S608 (checked)
        f" SELECT content_hash FROM {known.vec_table} WHERE model = ?) AS lacking"
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash"
        f" CROSS JOIN pages AS p ON p.id = c.page_id{among}"
        " ORDER BY p.updated_at DESC, (SELECT count(*) FROM"
        " (SELECT 1 FROM links WHERE to_page_id = p.id LIMIT ?)) DESC, p.id DESC, c.chunk_index",
        (model, *([] if slugs is None else [json.dumps(slugs)]), MOST_LINKS),
    )
    return [chunk_id for (chunk_id,) in rows]


def texts(db: "Database", model: str, chunk_ids: list[int]) -> list[Missing]:
    """What is to be embedded of these chunks, in their order: each content once, and none that has a vector."""
    known = _known(db, model)
    rows = db.rows(
        "SELECT c.content_hash, p.title, c.heading_path, c.chunk_text FROM json_each(?) AS wanted"  # noqa: S608
        " CROSS JOIN chunks AS c ON c.id = wanted.value CROSS JOIN pages AS p ON p.id = c.page_id"
        f" WHERE NOT EXISTS (SELECT 1 FROM {known.vec_table} AS v"
        " WHERE v.content_hash = c.content_hash AND v.model = ?)",
        (str(chunk_ids), model),
    )
    return list({row[0]: Missing(row[0], embedding_text(*row[1:])) for row in rows}.values())


def pages_of(db: "Database", hashes: list[bytes]) -> tuple[str, ...]:
    """The slugs of the pages that contents stand on."""
    if not hashes:
        return ()
    rows = db.rows(
        "SELECT DISTINCT p.slug FROM json_each(?) AS wanted CROSS JOIN chunks AS c"
        " ON c.content_hash = unhex(wanted.value) CROSS JOIN pages AS p ON p.id = c.page_id ORDER BY p.slug",
        (json.dumps([each.hex() for each in hashes]),),
    )
    return tuple(slug for (slug,) in rows)


def missing(db: "Database", model: str, limit: int) -> list[Missing]:
    """The first contents without a vector."""
    with db.reading():
        return texts(db, model, missing_chunks(db, model)[:limit])


def sample(db: "Database", model: str) -> Sample | None:
    """Some text of a chunk with its vector of this model."""
    known = _known(db, model)
    row = db.one(
        f"SELECT p.title, c.heading_path, c.chunk_text, v.vector FROM {known.vec_table} AS v"  # noqa: S608 (checked)
        " CROSS JOIN chunks AS c ON c.content_hash = v.content_hash CROSS JOIN pages AS p ON p.id = c.page_id"
        " WHERE v.model = ? LIMIT 1",
        (model,),
    )
    return Sample(embedding_text(*row[:3]), row[3]) if row else None


def cosine(raw: bytes, kept: bytes) -> float:
    """How near a vector as a model gives it is to one as it is kept."""
    import numpy as np

    given, there = np.frombuffer(raw, "<f4"), np.frombuffer(kept, "<f2").astype(np.float32)
    length = float(np.linalg.norm(given) * np.linalg.norm(there))
    return float(given @ there) / length if length else 0.0


def coverage(db: "Database", model: str) -> tuple[int, int]:
    """How many chunks have a vector of this model, and how many there are."""
    known = _known(db, model)
    row = db.one(
        # Two indexes in the same order are gone through side by side; to look each chunk up takes twice as long.
        "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM"  # noqa: S608 (checked)
        " (SELECT content_hash FROM chunks EXCEPT"
        f" SELECT content_hash FROM {known.vec_table} WHERE model = ?) AS lacking"
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash)",
        (model,),
    )
    return (row[0] - row[1], row[0]) if row else (0, 0)


def _known(db: "Database", name: str) -> Model:
    found = find(db, name)
    if found is None or not _VEC_TABLE.fullmatch(found.vec_table):
        raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
    return found


def keep(tx: "apsw.Connection", model: str, found: list[tuple[bytes, bytes]], now: str) -> int:
    """Keep vectors, each with the hash of its content: f32, little endian. Returns how many were new."""
    return shelves.keep(tx, _shelf(tx, model), found, now)


def encode_all(tx: "apsw.Connection", model: str) -> None:
    """Take the mean of all vectors of a model, and make all of its codes anew."""
    shelves.encode_all(tx, _shelf(tx, model))


def dimensions_of(tx: "apsw.Connection", model: str) -> int:
    """How wide the vectors of a model are."""
    return _shelf(tx, model).dimensions


def _shelf(tx: "apsw.Connection", model: str) -> Shelf:
    sql = "SELECT vec_table, dimensions FROM embedding_models WHERE name = ?"
    row: tuple[Any, ...] | None = tx.execute(sql, (model,)).fetchone()
    if row is None or not _VEC_TABLE.fullmatch(str(row[0])):
        raise NotFound(what="model", name=model, hint=" `quaid model list` shows them all.")
    return Shelf(model, int(row[1]), str(row[0]), "vector_codes", "embedding_models", "name")


# Forgetting

FEW_OUTLIVED = 1_000
"""So many vectors of texts that are gone are kept at least: a text may come back."""


def purge(tx: "apsw.Connection") -> int:
    """Drop the vectors of contents that no chunk has any more, of every model. Returns how many."""
    return _drop(tx, f"NOT EXISTS {_HAS_IT}", ())


def outlived(db: "Database", few: int = FEW_OUTLIVED) -> list[bytes]:
    """Contents that only vectors of the active model still have, once they are more than the others and not few."""
    model = active(db)
    if model is None:
        return []
    of_model = f"FROM {model.vec_table} AS v WHERE model = ?"
    row = db.one(f"SELECT (SELECT count(*) {of_model}), (SELECT count(*) FROM chunks)", (model.name,))  # noqa: S608
    if row is None or row[0] <= 2 * row[1] + few:
        return []
    return [
        each for (each,) in db.rows(f"SELECT content_hash {of_model} AND NOT EXISTS {_HAS_IT}", (model.name,))
    ]


def forget(tx: "apsw.Connection", hashes: "Iterable[bytes]") -> int:
    """Drop the vectors of these contents now, of every model, except where a chunk still has the content.

    Returns how many. Whoever holds vectors in memory reads them anew before the next answer.
    """
    wanted = json.dumps([each.hex() for each in hashes])
    among = "v.content_hash IN (SELECT unhex(value) FROM json_each(?))"
    return _drop(tx, f"{among} AND NOT EXISTS {_HAS_IT}", (wanted,))


_HAS_IT = "(SELECT 1 FROM chunks AS c WHERE c.content_hash = v.content_hash)"


def _drop(tx: "apsw.Connection", which: str, values: tuple[str, ...]) -> int:
    gone: dict[str, set[int]] = {}
    for table in vec_tables(tx):
        rows: list[tuple[Any, ...]] = tx.execute(
            f"DELETE FROM {table} AS v WHERE {which} RETURNING model, id",  # noqa: S608 (checked)
            values,
        ).fetchall()
        for model, vector_id in rows:
            gone.setdefault(model, set()).add(vector_id)
    for model, ids in gone.items():
        shelves.drop_codes(tx, _shelf(tx, model), ids)
    return sum(len(ids) for ids in gone.values())
