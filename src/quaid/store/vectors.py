"""Models and the vectors that they made, kept by the content of chunks.

Knows the registry of models, one table of vectors for each width, and the codes beside them. Does not know how
a text becomes a vector, nor which one is asked for.

A vector belongs to a model and to the hash of a content, not to a chunk: whoever has that content has the vector.
So nothing is embedded twice, switching to another model and back is a matter of one row, and a chunk that goes
takes nothing along. Vectors that no chunk needs any more stay until they are purged.
"""

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.core.chunk import embedded
from quaid.errors import InvalidArgument, NotFound
from quaid.store.nearest import Index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import apsw

    from quaid.store.codes import Array
    from quaid.store.db import Database

__all__ = ["Index", "Missing", "Model", "activate", "active", "coverage", "keep", "models", "register"]

BLOCK = 1_024
"""Codes in one row."""

FIRST_MEAN, LAST_MEAN = 256, 65_536
"""With so many vectors the mean is taken first, and after the last of these never again by itself."""

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
    """Chunks without a vector of this model, those of the pages that changed last first."""
    known = _known(db, model)
    among = "" if slugs is None else " AND p.slug IN (SELECT value FROM json_each(?))"
    rows = db.rows(
        "SELECT c.id FROM pages AS p CROSS JOIN chunks AS c ON c.page_id = p.id"  # noqa: S608 (checked)
        f" WHERE NOT EXISTS (SELECT 1 FROM {known.vec_table} AS v"
        f" WHERE v.content_hash = c.content_hash AND v.model = ?){among}"
        " ORDER BY p.updated_at DESC, p.id DESC, c.chunk_index",
        (model, *([] if slugs is None else [json.dumps(slugs)])),
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
    return list({row[0]: Missing(row[0], embedded(*row[1:])) for row in rows}.values())


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
    return Sample(embedded(*row[:3]), row[3]) if row else None


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
        "SELECT (SELECT count(*) FROM chunks AS c"  # noqa: S608 (checked)
        f" WHERE EXISTS (SELECT 1 FROM {known.vec_table} AS v"
        " WHERE v.content_hash = c.content_hash AND v.model = ?)), (SELECT count(*) FROM chunks)",
        (model,),
    )
    return (row[0], row[1]) if row else (0, 0)


def _known(db: "Database", name: str) -> Model:
    found = find(db, name)
    if found is None or not _VEC_TABLE.fullmatch(found.vec_table):
        raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
    return found


def usable(raw: bytes, dimensions: int) -> bool:
    """Whether this is a vector of 32-bit floats of this width that points anywhere."""
    import numpy as np

    if len(raw) != 4 * dimensions:
        return False
    vector = np.frombuffer(raw, "<f4")
    return bool(np.isfinite(vector).all() and vector.any())


def keep(tx: "apsw.Connection", model: str, found: list[tuple[bytes, bytes]], now: str) -> int:
    """Keep vectors, each with the hash of its content: f32, little endian. Returns how many were new."""
    import numpy as np

    table, dimensions = _table_of(tx, model)
    inserted: list[int] = []
    added: list[Array] = []
    for content_hash, raw in found:
        if not usable(raw, dimensions):
            raise InvalidArgument(name="vector", problem=f"of {model} is not of {dimensions} finite numbers")
        vector = np.frombuffer(raw, "<f4").astype(np.float64)  # the squares of some floats are none
        vector = (vector / np.linalg.norm(vector)).astype("<f2")
        row = tx.execute(
            f"INSERT OR IGNORE INTO {table} (model, content_hash, embedded_at, vector) VALUES (?, ?, ?, ?)"  # noqa: S608
            " RETURNING id",
            (model, content_hash, now, vector.tobytes()),
        ).fetchone()
        if row:
            inserted.append(int(row[0]))
            added.append(vector)
    if inserted:
        _add_codes(tx, model, table, inserted, np.stack(added).astype("<f4"))
    return len(inserted)


def _table_of(tx: "apsw.Connection", model: str) -> tuple[str, int]:
    row = _one(tx, "SELECT vec_table, dimensions FROM embedding_models WHERE name = ?", model)
    if row is None or not _VEC_TABLE.fullmatch(str(row[0])):
        raise NotFound(what="model", name=model, hint=" `quaid model list` shows them all.")
    return str(row[0]), int(row[1])


def _one(tx: "apsw.Connection", sql: str, model: str) -> tuple[Any, ...] | None:
    return tx.execute(sql, (model,)).fetchone()


# Codes


def _add_codes(tx: "apsw.Connection", model: str, table: str, ids: list[int], added: "Array") -> None:
    """Encode new vectors; all of them anew when there are twice as many as the mean was taken of."""
    import numpy as np

    from quaid.store.codes import encode

    mean, mean_of = _one(tx, "SELECT mean, mean_of FROM embedding_models WHERE name = ?", model) or (None, 0)
    last = _one(
        tx,
        "SELECT block, vec_rowids, codes FROM vector_codes WHERE model = ? ORDER BY block DESC LIMIT 1",
        model,
    )
    block, old_ids, old_codes = last or (0, b"", b"")
    count = block * BLOCK + len(old_ids) // 8 + len(ids)
    if mean is None:
        (count,) = _one(tx, f"SELECT count(*) FROM {table} WHERE model = ?", model) or (0,)  # noqa: S608
    if count >= max(FIRST_MEAN, 2 * mean_of) and mean_of < LAST_MEAN:
        encode_all(tx, model)
    elif mean is not None:
        all_ids = old_ids + np.array(ids, "<i8").tobytes()
        codes = old_codes + encode(added, np.frombuffer(mean, "<f4")).tobytes()
        _write_blocks(tx, model, block, all_ids, codes)


def encode_all(tx: "apsw.Connection", model: str) -> None:
    """Take the mean of all vectors of a model, and make all of its codes anew."""
    import numpy as np

    from quaid.store.codes import encode

    table, dimensions = _table_of(tx, model)
    rows = f"SELECT id, vector FROM {table} WHERE model = ? ORDER BY id"  # noqa: S608 (checked)
    total, count = np.zeros(dimensions), 0
    for _, vectors in _batches(tx, rows, model, dimensions):
        total += vectors.sum(axis=0, dtype=np.float64)
        count += len(vectors)
    tx.execute("DELETE FROM vector_codes WHERE model = ?", (model,))
    mean = (total / max(count, 1)).astype("<f4")
    tx.execute(
        "UPDATE embedding_models SET mean = ?, mean_of = ?, encoding = encoding + 1 WHERE name = ?",
        (mean.tobytes() if count >= FIRST_MEAN else None, count if count >= FIRST_MEAN else 0, model),
    )
    if count >= FIRST_MEAN:
        for block, (ids, vectors) in enumerate(_batches(tx, rows, model, dimensions)):
            _write_blocks(tx, model, block, ids.tobytes(), encode(vectors, mean).tobytes())


def _batches(tx: "apsw.Connection", sql: str, model: str, dimensions: int) -> "Iterator[tuple[Array, Array]]":
    """Ids and vectors, a block at a time."""
    import numpy as np

    cursor = tx.execute(sql, (model,))
    rows: list[tuple[Any, ...]]
    while rows := list(islice(cursor, BLOCK)):
        ids = np.array([row[0] for row in rows], "<i8")
        vectors = np.frombuffer(b"".join([row[1] for row in rows]), "<f2").reshape(-1, dimensions)
        yield ids, vectors.astype("<f4")


def _write_blocks(tx: "apsw.Connection", model: str, block: int, ids: bytes, codes: bytes) -> None:
    size = len(codes) // (len(ids) // 8)
    for start in range(0, len(ids) // 8, BLOCK):
        tx.execute(
            "INSERT OR REPLACE INTO vector_codes (model, block, vec_rowids, codes) VALUES (?, ?, ?, ?)",
            (
                *(model, block + start // BLOCK, ids[start * 8 : (start + BLOCK) * 8]),
                codes[start * size : (start + BLOCK) * size],
            ),
        )


# Forgetting


def purge(tx: "apsw.Connection") -> int:
    """Drop the vectors of contents that no chunk has any more, of every model. Returns how many."""
    return _drop(tx, f"NOT EXISTS {_HAS_IT}", ())


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
        _drop_codes(tx, model, ids)
    return sum(len(ids) for ids in gone.values())


def _drop_codes(tx: "apsw.Connection", model: str, gone: set[int]) -> None:
    """Take single codes out of their blocks; a block may become short, or empty and go."""
    import numpy as np

    unwanted = np.array(sorted(gone), "<i8")
    rows: list[tuple[Any, ...]] = tx.execute(
        "SELECT block, vec_rowids, codes FROM vector_codes WHERE model = ? ORDER BY block", (model,)
    ).fetchall()
    for block, ids, codes in rows:
        numbers = np.frombuffer(ids, "<i8")
        stay = ~np.isin(numbers, unwanted)
        if stay.all():
            continue
        if stay.any():
            codes = np.frombuffer(codes, np.uint8).reshape(len(numbers), -1)[stay]
            _write_blocks(tx, model, block, numbers[stay].tobytes(), codes.tobytes())
        else:
            tx.execute("DELETE FROM vector_codes WHERE model = ? AND block = ?", (model, block))
    tx.execute("UPDATE embedding_models SET encoding = encoding + 1 WHERE name = ?", (model,))
