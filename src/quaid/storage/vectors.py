"""Embedding models and their stored vectors, with one-bit codes for fast comparison.

A vector belongs to a model and a content hash, not to a chunk: chunks with equal content share a vector, and
switching models only changes which model is active. Vectors of chunks and of turns (messages of
conversations) are stored in separate tables, each with its one-bit codes and the mean that the codes are
relative to. Measurements are in docs/decisions/007-vectors.md.
"""

import json
import os
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import InvalidArgument, NotFound
from quaid.model.chunker import embedding_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import apsw
    import numpy as np

    from quaid.storage.sqlite.connection import Database

    Array = np.ndarray[Any, Any]


class ViewCache:
    """In-memory views of vectors (see vector_index) that several connections to one database share.

    A view is used by one thread at a time, which holds `lock`.
    """

    def __init__(self) -> None:
        from threading import RLock

        self.lock = RLock()
        self._file: tuple[int, int] | None = None
        self._views: dict[str, dict[str, Any]] = {}

    def views(self, kind: str, path: str) -> dict[str, Any]:
        """Return the views of one kind of vectors by model. They are dropped if the file at `path` was replaced."""
        status = os.stat(path)
        file = status.st_dev, status.st_ino
        with self.lock:
            if file != self._file:
                self._file, self._views = file, {}
            return self._views.setdefault(kind, {})


def code_width(dimensions: int) -> int:
    """Return the number of 64-bit words in the one-bit code of a vector."""
    return -(-dimensions // 64)


def encode_vectors(vectors: "Array", mean: "Array") -> "Array":
    """Return the one-bit codes of float32 vectors, one row each, padded to whole 64-bit words.

    A bit is set where the vector is greater than the mean.
    """
    import numpy as np

    bits = np.packbits(vectors > mean, axis=1)
    codes = np.zeros((len(vectors), code_width(vectors.shape[1]) * 8), np.uint8)
    codes[:, : bits.shape[1]] = bits
    return codes.view("<u8")


CODES_PER_BLOCK = 1_024
"""A row of a code table contains at most this many codes."""

FIRST_MEAN, LAST_MEAN = 256, 65_536
"""The mean is first computed when there are FIRST_MEAN vectors, and is final once LAST_MEAN vectors were used."""


class VectorTables(NamedTuple):
    """The tables with a model's chunk or turn vectors, and the version and mean of their one-bit codes.

    Table names never come from user input.
    """

    model: str
    dimensions: int
    vectors: str
    encoding: int
    mean: bytes | None
    mean_of: int
    """Number of vectors that the mean was computed from."""
    codes: str
    means: str
    """The table with the columns encoding, mean_of and mean."""
    key: str
    """The column of `means` with the model name."""


CHUNK_TABLES = (
    "SELECT name, dimensions, vec_table, encoding, mean, mean_of, 'vector_codes', 'embedding_models', 'name'"
    " FROM embedding_models WHERE name = ?"
)
TURN_TABLES = (
    "SELECT m.name, m.dimensions, 'turn_vectors', coalesce(e.encoding, 0), e.mean, coalesce(e.mean_of, 0),"
    " 'turn_codes', 'turn_encodings', 'model'"
    " FROM embedding_models AS m LEFT JOIN turn_encodings AS e ON e.model = m.name WHERE m.name = ?"
)
"""The queries for the VectorTables of a model, first of chunk vectors and then of turn vectors."""


def tables_of_row(row: tuple[Any, ...] | None, model: str) -> VectorTables:
    """Convert a row of the query CHUNK_TABLES or TURN_TABLES. Raise NotFound if it is None or names no table."""
    if row is None or not (row[2] == "turn_vectors" or _VECTOR_TABLE.fullmatch(row[2])):
        raise NotFound(what="model", name=model, hint=" `quaid model list` shows them all.")
    return VectorTables(*row)


def _tables(tx: "apsw.Connection", query: str, model: str) -> VectorTables:
    return tables_of_row(tx.execute(query, (model,)).fetchone(), model)


def is_usable_vector(raw: bytes, dimensions: int) -> bool:
    """Return True if `raw` is a finite, nonzero float32 vector with this number of dimensions."""
    import numpy as np

    if len(raw) != 4 * dimensions:
        return False
    vector = np.frombuffer(raw, "<f4")
    return bool(np.isfinite(vector).all() and vector.any())


def _insert_vectors(
    tx: "apsw.Connection", tables: VectorTables, rows: list[tuple[bytes, bytes]], now: str
) -> int:
    """Store vectors as (content hash, little-endian float32 bytes). Return the number of new rows."""
    import numpy as np

    inserted: list[int] = []
    added: list[Array] = []
    for content_hash, raw in rows:
        if not is_usable_vector(raw, tables.dimensions):
            problem = f"of {tables.model} is not of {tables.dimensions} finite numbers"
            raise InvalidArgument(name="vector", problem=problem)
        vector = np.frombuffer(raw, "<f4").astype(np.float64)  # squares of float32 values may underflow
        vector = (vector / np.linalg.norm(vector)).astype("<f2")
        row = tx.execute(
            f"INSERT OR IGNORE INTO {tables.vectors} (model, content_hash, embedded_at, vector)"  # noqa: S608 (fixed)
            " VALUES (?, ?, ?, ?) RETURNING id",
            (tables.model, content_hash, now, vector.tobytes()),
        ).fetchone()
        if row:
            inserted.append(int(row[0]))
            added.append(vector)
    if inserted:
        _add_codes(tx, tables, inserted, np.stack(added).astype("<f4"))
    return len(inserted)


# One-bit codes


def _add_codes(tx: "apsw.Connection", tables: VectorTables, ids: list[int], added: "Array") -> None:
    """Encode new vectors, or all vectors if their number has doubled since the mean was computed.

    Below FIRST_MEAN vectors there is no mean, and nothing is encoded. After LAST_MEAN the mean is final.
    """
    import numpy as np

    last: tuple[Any, ...] | None = tx.execute(
        f"SELECT block, vec_rowids, codes FROM {tables.codes} WHERE model = ? ORDER BY block DESC LIMIT 1",  # noqa: S608
        (tables.model,),
    ).fetchone()
    block, old_ids, old_codes = last or (0, b"", b"")
    count = block * CODES_PER_BLOCK + len(old_ids) // 8 + len(ids)
    if tables.mean is None:
        query = f"SELECT count(*) FROM {tables.vectors} WHERE model = ?"  # noqa: S608 (a fixed table)
        (count,) = tx.execute(query, (tables.model,)).fetchone() or (0,)
    if count >= max(FIRST_MEAN, 2 * tables.mean_of) and tables.mean_of < LAST_MEAN:
        _encode_tables(tx, tables)
    elif tables.mean is not None:
        all_ids = old_ids + np.array(ids, "<i8").tobytes()
        codes = old_codes + encode_vectors(added, np.frombuffer(tables.mean, "<f4")).tobytes()
        _write_code_blocks(tx, tables, block, all_ids, codes)


def _encode_tables(tx: "apsw.Connection", tables: VectorTables) -> None:
    """Recompute the mean and all one-bit codes of one set of tables, or delete them below FIRST_MEAN vectors."""
    import numpy as np

    rows = f"SELECT id, vector FROM {tables.vectors} WHERE model = ? ORDER BY id"  # noqa: S608 (fixed)
    total, count = np.zeros(tables.dimensions), 0
    for _, vectors in _vector_batches(tx, rows, tables):
        total += vectors.sum(axis=0, dtype=np.float64)
        count += len(vectors)
    tx.execute(f"DELETE FROM {tables.codes} WHERE model = ?", (tables.model,))  # noqa: S608 (fixed)
    mean = (total / max(count, 1)).astype("<f4")
    enough = count >= FIRST_MEAN
    tx.execute(
        f"UPDATE {tables.means} SET mean = ?, mean_of = ?, encoding = encoding + 1 WHERE {tables.key} = ?",  # noqa: S608
        (mean.tobytes() if enough else None, count if enough else 0, tables.model),
    )
    if enough:
        for block, (ids, vectors) in enumerate(_vector_batches(tx, rows, tables)):
            _write_code_blocks(tx, tables, block, ids.tobytes(), encode_vectors(vectors, mean).tobytes())


def _vector_batches(tx: "apsw.Connection", sql: str, tables: VectorTables) -> "Iterator[tuple[Array, Array]]":
    """Yield ids and vectors, one block at a time."""
    import numpy as np

    cursor = tx.execute(sql, (tables.model,))
    rows: list[tuple[Any, ...]]
    while rows := list(islice(cursor, CODES_PER_BLOCK)):
        ids = np.array([row[0] for row in rows], "<i8")
        vectors = np.frombuffer(b"".join([row[1] for row in rows]), "<f2").reshape(-1, tables.dimensions)
        yield ids, vectors.astype("<f4")


def _write_code_blocks(
    tx: "apsw.Connection", tables: VectorTables, block: int, ids: bytes, codes: bytes
) -> None:
    size = len(codes) // (len(ids) // 8)
    for start in range(0, len(ids) // 8, CODES_PER_BLOCK):
        tx.execute(
            f"INSERT OR REPLACE INTO {tables.codes} (model, block, vec_rowids, codes) VALUES (?, ?, ?, ?)",  # noqa: S608
            (
                tables.model,
                block + start // CODES_PER_BLOCK,
                ids[start * 8 : (start + CODES_PER_BLOCK) * 8],
                codes[start * size : (start + CODES_PER_BLOCK) * size],
            ),
        )


def _drop_codes(tx: "apsw.Connection", tables: VectorTables, gone: set[int]) -> None:
    """Remove the codes of deleted vectors from their blocks. Empty blocks are deleted."""
    import numpy as np

    unwanted = np.array(sorted(gone), "<i8")
    rows: list[tuple[Any, ...]] = tx.execute(
        f"SELECT block, vec_rowids, codes FROM {tables.codes} WHERE model = ? ORDER BY block",  # noqa: S608 (fixed)
        (tables.model,),
    ).fetchall()
    for block, ids, codes in rows:
        numbers = np.frombuffer(ids, "<i8")
        stay = ~np.isin(numbers, unwanted)
        if stay.all():
            continue
        if stay.any():
            codes = np.frombuffer(codes, np.uint8).reshape(len(numbers), -1)[stay]
            _write_code_blocks(tx, tables, block, numbers[stay].tobytes(), codes.tobytes())
        else:
            tx.execute(f"DELETE FROM {tables.codes} WHERE model = ? AND block = ?", (tables.model, block))  # noqa: S608
    tx.execute(
        f"UPDATE {tables.means} SET encoding = encoding + 1 WHERE {tables.key} = ?",  # noqa: S608 (fixed)
        (tables.model,),
    )


_VECTOR_TABLE = re.compile(r"page_embeddings_vec_[0-9]+")


class EmbeddingModel(NamedTuple):
    """A registered embedding model."""

    name: str
    dimensions: int
    vec_table: str
    active: bool

    def sample(self, db: "Database") -> tuple[str, bytes] | None:
        """Return the embedded text and the vector of any chunk that has a vector from this model, or None."""
        row = db.one(
            f"SELECT p.title, c.heading_path, c.chunk_text, v.vector FROM {self.vec_table} AS v"  # noqa: S608 (checked)
            " CROSS JOIN chunks AS c ON c.content_hash = v.content_hash CROSS JOIN pages AS p ON p.id = c.page_id"
            " WHERE v.model = ? LIMIT 1",
            (self.name,),
        )
        return (embedding_text(*row[:3]), row[3]) if row else None


_MODEL_SQL = "SELECT name, dimensions, vec_table, active FROM embedding_models"


def list_models(db: "Database") -> dict[str, EmbeddingModel]:
    """Return all registered models by name."""
    rows = db.rows(_MODEL_SQL + " ORDER BY created_at, name")
    return {row[0]: EmbeddingModel._make((*row[:3], bool(row[3]))) for row in rows}


def active_model(db: "Database") -> EmbeddingModel | None:
    """Return the model used for search, or None."""
    return next((model for model in list_models(db).values() if model.active), None)


def find_model(db: "Database", name: str) -> EmbeddingModel | None:
    """Return the model with this name, or None."""
    return list_models(db).get(name)


def register_model(tx: "apsw.Connection", name: str, dimensions: int, now: str) -> None:
    """Register a model without activating it. Registering it again has no effect.

    Raise InvalidArgument if it is registered with a different number of dimensions.
    """
    if not 0 < dimensions <= 65_536:
        raise InvalidArgument(name="dimensions", problem=f"{dimensions} is no width of a vector")
    row = tx.execute("SELECT dimensions FROM embedding_models WHERE name = ?", (name,)).fetchone()
    if row and row[0] != dimensions:
        problem = f"{name} has vectors of {row[0]} dimensions here, not {dimensions}; give it another name"
        raise InvalidArgument(name="dimensions", problem=problem)
    if row is None:
        add_vector_table(tx, dimensions)
        tx.execute(
            "INSERT INTO embedding_models (name, dimensions, vec_table, created_at) VALUES (?, ?, ?, ?)",
            (name, dimensions, vector_table(dimensions), now),
        )


def activate_model(tx: "apsw.Connection", name: str) -> None:
    """Make this the model that is used for search."""
    if not tx.execute("SELECT 1 FROM embedding_models WHERE name = ?", (name,)).fetchone():
        raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
    tx.execute("UPDATE embedding_models SET active = 0 WHERE active = 1 AND name <> ?", (name,))
    tx.execute("UPDATE embedding_models SET active = 1 WHERE name = ?", (name,))


def use_model(tx: "apsw.Connection", name: str, dimensions: int, now: str, *, replace: bool = True) -> None:
    """Register a model. Activate it if `replace` is True or no model is active."""
    register_model(tx, name, dimensions, now)
    if replace or not tx.execute("SELECT 1 FROM embedding_models WHERE active = 1").fetchone():
        activate_model(tx, name)


def vector_table(dimensions: int) -> str:
    """Return the name of the table for vectors with this number of dimensions."""
    return f"page_embeddings_vec_{int(dimensions)}"


def add_vector_table(tx: "apsw.Connection", dimensions: int) -> None:
    """Create the table for vectors of this size, like the table for size 384, and add it to page_embeddings."""
    table, pattern = vector_table(dimensions), vector_table(384)
    if tx.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone():
        return
    (sql,) = tx.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (pattern,)).fetchone() or ("",)
    (view,) = tx.execute("SELECT sql FROM sqlite_schema WHERE name = 'page_embeddings'").fetchone() or ("",)
    tx.execute(str(sql).replace(pattern, table))
    first = str(view).partition("UNION ALL")[0].rstrip()
    every = [first.replace(pattern, table) for table in vector_tables(tx) if table != pattern]
    selects = [statement[statement.index("SELECT") :] for statement in every]
    tx.execute("DROP VIEW page_embeddings")
    tx.execute("\nUNION ALL\n".join([first, *selects]))


def vector_tables(tx: "apsw.Connection") -> list[str]:
    """Return the names of all vector tables."""
    names = tx.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return [str(name) for (name,) in names if _VECTOR_TABLE.fullmatch(str(name))]


def cosine_to_stored(raw: bytes, stored: bytes) -> float:
    """Return the cosine similarity of a float32 vector from a model and a stored float16 vector."""
    import numpy as np

    query_vector, stored_vector = np.frombuffer(raw, "<f4"), np.frombuffer(stored, "<f2").astype(np.float32)
    length = float(np.linalg.norm(query_vector) * np.linalg.norm(stored_vector))
    return float(query_vector @ stored_vector) / length if length else 0.0


def require_model(db: "Database", name: str) -> EmbeddingModel:
    model = find_model(db, name)
    if model is None or not _VECTOR_TABLE.fullmatch(model.vec_table):
        raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
    return model


def keep_chunk_vectors(tx: "apsw.Connection", model: str, rows: list[tuple[bytes, bytes]], now: str) -> int:
    """Store chunk vectors as (content hash, little-endian float32 bytes). Return the number of new rows."""
    return _insert_vectors(tx, _tables(tx, CHUNK_TABLES, model), rows, now)


def keep_half_vectors(
    tx: "apsw.Connection",
    model: str,
    dimensions: int,
    rows: "Sequence[tuple[bytes, bytes]]",
    wanted: set[bytes],
    now: str,
) -> int:
    """Store vectors from other devices, given as content hash and 16-bit floats. Return the number of new rows.

    The model is registered, and activated if no model is active. Vectors whose hash is not in `wanted`, and vectors
    with a wrong size, infinite values or only zeros, are skipped.
    """
    import numpy as np

    use_model(tx, model, dimensions, now, replace=False)
    usable = [
        (content_hash, np.frombuffer(raw, "<f2").astype("<f4").tobytes())
        for content_hash, raw in rows
        if content_hash in wanted and len(raw) == 2 * dimensions
    ]
    usable = [row for row in usable if is_usable_vector(row[1], dimensions)]
    return _insert_vectors(tx, _tables(tx, CHUNK_TABLES, model), usable, now)


def encode_chunk_vectors(tx: "apsw.Connection", model: str) -> None:
    """Recompute the mean and all one-bit codes of a model's chunk vectors."""
    _encode_tables(tx, _tables(tx, CHUNK_TABLES, model))


# Deletion

DELETE_BATCH = 2_000
"""One write transaction deletes at most this many vectors."""

FEW_UNUSED = 1_000
"""This many unused vectors are always kept, because deleted text may be restored."""


def purge_vectors(tx: "apsw.Connection") -> int:
    """Delete all vectors, of any model, whose content is in no chunk, entry or turn. Return their number."""
    return _drop_vectors(tx, f"NOT EXISTS {_CHUNK_EXISTS}", ()) + purge_turn_vectors(tx)


def unused_contents(db: "Database", few: int = FEW_UNUSED) -> list[bytes]:
    """Return the content hashes of the active model's vectors that no chunk and no entry of a chunk uses.

    Return an empty list if there are at most twice as many vectors as chunks and entries, plus `few`.
    """
    model = active_model(db)
    if model is None:
        return []
    of_model = f"FROM {model.vec_table} AS v WHERE model = ?"
    texts = "(SELECT count(*) FROM chunks) + (SELECT count(*) FROM chunk_entries)"
    row = db.one(f"SELECT (SELECT count(*) {of_model}), {texts}", (model.name,))
    if row is None or row[0] <= 2 * row[1] + few:
        return []
    return [
        row
        for (row,) in db.rows(f"SELECT content_hash {of_model} AND NOT EXISTS {_CHUNK_EXISTS}", (model.name,))
    ]


def drop_outlived_vectors(db: "Database") -> None:
    """Delete unused vectors if there are many (see unused_contents), because a server keeps all vectors in RAM."""
    hashes = unused_contents(db)
    for start in range(0, len(hashes), DELETE_BATCH):
        some = hashes[start : start + DELETE_BATCH]
        db.write(lambda tx, some=some: drop_unused_vectors(tx, some))  # type: ignore[misc]


def drop_all_unused_vectors(tx: "apsw.Connection") -> None:
    """Delete the vectors of all models that no chunk or entry uses, such as those of quarantined pages."""
    _drop_vectors(tx, f"NOT EXISTS {_CHUNK_EXISTS}", ())


def drop_unused_vectors(tx: "apsw.Connection", hashes: "Iterable[bytes]") -> int:
    """Delete the vectors with these content hashes that no chunk or entry uses, for all models. Return their number.

    Indexes in RAM are reloaded before the next query.
    """
    hex_hashes = json.dumps([digest.hex() for digest in hashes])
    among = "v.content_hash IN (SELECT unhex(value) FROM json_each(?))"
    return _drop_vectors(tx, f"{among} AND NOT EXISTS {_CHUNK_EXISTS}", (hex_hashes,))


_CHUNK_EXISTS = (
    "(SELECT 1 FROM chunks AS c WHERE c.content_hash = v.content_hash"
    " UNION ALL SELECT 1 FROM chunk_entries AS e WHERE e.content_hash = v.content_hash)"
)


def _drop_vectors(tx: "apsw.Connection", which: str, values: tuple[str, ...]) -> int:
    dropped = (_drop_rows(tx, CHUNK_TABLES, table, which, values) for table in vector_tables(tx))
    return sum(dropped)


def _drop_rows(
    tx: "apsw.Connection", query: str, table: str, which: str, values: tuple[str, ...] = ()
) -> int:
    """Delete the rows of a vector table that satisfy `which`, and their codes. Return the number of rows."""
    ids: dict[str, set[int]] = {}
    rows: list[tuple[Any, ...]] = tx.execute(
        f"DELETE FROM {table} AS v WHERE {which} RETURNING model, id",  # noqa: S608 (checked)
        values,
    ).fetchall()
    for model, vector_id in rows:
        ids.setdefault(model, set()).add(vector_id)
    for model, gone in ids.items():
        _drop_codes(tx, _tables(tx, query, model), gone)
    return len(rows)


# Vectors of turns


def keep_turn_vectors(tx: "apsw.Connection", model: str, rows: list[tuple[bytes, bytes]], now: str) -> int:
    """Store vectors of turn parts, except of parts that no longer exist. Return the number of new rows."""
    tx.execute("INSERT OR IGNORE INTO turn_encodings (model) VALUES (?)", (model,))
    present = {
        content_hash
        for (content_hash,) in tx.execute(
            "SELECT content_hash FROM turn_parts WHERE content_hash IN (SELECT unhex(value) FROM json_each(?))",
            (json.dumps([content_hash.hex() for content_hash, _ in rows]),),
        )
    }
    return _insert_vectors(
        tx, _tables(tx, TURN_TABLES, model), [row for row in rows if row[0] in present], now
    )


def encode_turn_vectors(tx: "apsw.Connection") -> None:
    """Recompute the mean and the one-bit codes of turn vectors for all models."""
    for (model,) in tx.execute("SELECT model FROM turn_encodings").fetchall():
        _encode_tables(tx, _tables(tx, TURN_TABLES, str(model)))


def purge_turn_vectors(tx: "apsw.Connection") -> int:
    """Delete all turn vectors, of any model, whose content is in no turn. Return their number."""
    unused = "NOT EXISTS (SELECT 1 FROM turn_parts AS p WHERE p.content_hash = v.content_hash)"
    return _drop_rows(tx, TURN_TABLES, "turn_vectors", unused)
