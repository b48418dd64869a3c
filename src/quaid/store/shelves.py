"""Vectors on their shelf: kept, encoded, dropped.

A shelf is one model's vectors of one kind of text: those of pages and those of turns stand apart, each with codes and
a mean of its own, so that neither is scanned for the other. Knows rows and bits. Does not know which text a vector
is of, beyond the hash of its content.
"""

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from quaid.store.codes import Array

BLOCK = 1_024
"""Codes in one row."""

FIRST_MEAN, LAST_MEAN = 256, 65_536
"""With so many vectors the mean is taken first, and after the last of these never again by itself."""


class Shelf(NamedTuple):
    """Where one model's vectors of one kind stand. Names of tables are never a caller's text."""

    model: str
    dimensions: int
    vectors: str
    codes: str
    means: str
    """The table with encoding, mean_of and mean."""
    key: str
    """Its column that names the model."""


def usable(raw: bytes, dimensions: int) -> bool:
    """Whether this is a vector of 32-bit floats of this width that points anywhere."""
    import numpy as np

    if len(raw) != 4 * dimensions:
        return False
    vector = np.frombuffer(raw, "<f4")
    return bool(np.isfinite(vector).all() and vector.any())


def keep(tx: "apsw.Connection", shelf: Shelf, found: list[tuple[bytes, bytes]], now: str) -> int:
    """Keep vectors, each with the hash of its content: f32, little endian. Returns how many were new."""
    import numpy as np

    inserted: list[int] = []
    added: list[Array] = []
    for content_hash, raw in found:
        if not usable(raw, shelf.dimensions):
            problem = f"of {shelf.model} is not of {shelf.dimensions} finite numbers"
            raise InvalidArgument(name="vector", problem=problem)
        vector = np.frombuffer(raw, "<f4").astype(np.float64)  # the squares of some floats are none
        vector = (vector / np.linalg.norm(vector)).astype("<f2")
        row = tx.execute(
            f"INSERT OR IGNORE INTO {shelf.vectors} (model, content_hash, embedded_at, vector)"  # noqa: S608 (fixed)
            " VALUES (?, ?, ?, ?) RETURNING id",
            (shelf.model, content_hash, now, vector.tobytes()),
        ).fetchone()
        if row:
            inserted.append(int(row[0]))
            added.append(vector)
    if inserted:
        _add_codes(tx, shelf, inserted, np.stack(added).astype("<f4"))
    return len(inserted)


def _one(tx: "apsw.Connection", sql: str, model: str) -> tuple[Any, ...] | None:
    return tx.execute(sql, (model,)).fetchone()


def _mean(tx: "apsw.Connection", shelf: Shelf) -> tuple[bytes | None, int]:
    """The mean of the codes, and of how many vectors it was taken."""
    row = _one(tx, f"SELECT mean, mean_of FROM {shelf.means} WHERE {shelf.key} = ?", shelf.model)  # noqa: S608
    return (row[0], row[1]) if row else (None, 0)


# Codes


def _add_codes(tx: "apsw.Connection", shelf: Shelf, ids: list[int], added: "Array") -> None:
    """Encode new vectors; all of them anew when there are twice as many as the mean was taken of."""
    import numpy as np

    from quaid.store.codes import encode

    mean, mean_of = _mean(tx, shelf)
    last = _one(
        tx,
        f"SELECT block, vec_rowids, codes FROM {shelf.codes} WHERE model = ? ORDER BY block DESC LIMIT 1",  # noqa: S608
        shelf.model,
    )
    block, old_ids, old_codes = last or (0, b"", b"")
    count = block * BLOCK + len(old_ids) // 8 + len(ids)
    if mean is None:
        (count,) = _one(tx, f"SELECT count(*) FROM {shelf.vectors} WHERE model = ?", shelf.model) or (0,)  # noqa: S608
    if count >= max(FIRST_MEAN, 2 * mean_of) and mean_of < LAST_MEAN:
        encode_all(tx, shelf)
    elif mean is not None:
        all_ids = old_ids + np.array(ids, "<i8").tobytes()
        codes = old_codes + encode(added, np.frombuffer(mean, "<f4")).tobytes()
        _write_blocks(tx, shelf, block, all_ids, codes)


def encode_all(tx: "apsw.Connection", shelf: Shelf) -> None:
    """Take the mean of all vectors of a shelf, and make all of its codes anew."""
    import numpy as np

    from quaid.store.codes import encode

    rows = f"SELECT id, vector FROM {shelf.vectors} WHERE model = ? ORDER BY id"  # noqa: S608 (fixed)
    total, count = np.zeros(shelf.dimensions), 0
    for _, vectors in _batches(tx, rows, shelf):
        total += vectors.sum(axis=0, dtype=np.float64)
        count += len(vectors)
    tx.execute(f"DELETE FROM {shelf.codes} WHERE model = ?", (shelf.model,))  # noqa: S608 (fixed)
    mean = (total / max(count, 1)).astype("<f4")
    enough = count >= FIRST_MEAN
    tx.execute(
        f"UPDATE {shelf.means} SET mean = ?, mean_of = ?, encoding = encoding + 1 WHERE {shelf.key} = ?",  # noqa: S608
        (mean.tobytes() if enough else None, count if enough else 0, shelf.model),
    )
    if enough:
        for block, (ids, vectors) in enumerate(_batches(tx, rows, shelf)):
            _write_blocks(tx, shelf, block, ids.tobytes(), encode(vectors, mean).tobytes())


def _batches(tx: "apsw.Connection", sql: str, shelf: Shelf) -> "Iterator[tuple[Array, Array]]":
    """Ids and vectors, a block at a time."""
    import numpy as np

    cursor = tx.execute(sql, (shelf.model,))
    rows: list[tuple[Any, ...]]
    while rows := list(islice(cursor, BLOCK)):
        ids = np.array([row[0] for row in rows], "<i8")
        vectors = np.frombuffer(b"".join([row[1] for row in rows]), "<f2").reshape(-1, shelf.dimensions)
        yield ids, vectors.astype("<f4")


def _write_blocks(tx: "apsw.Connection", shelf: Shelf, block: int, ids: bytes, codes: bytes) -> None:
    size = len(codes) // (len(ids) // 8)
    for start in range(0, len(ids) // 8, BLOCK):
        tx.execute(
            f"INSERT OR REPLACE INTO {shelf.codes} (model, block, vec_rowids, codes) VALUES (?, ?, ?, ?)",  # noqa: S608
            (
                *(shelf.model, block + start // BLOCK, ids[start * 8 : (start + BLOCK) * 8]),
                codes[start * size : (start + BLOCK) * size],
            ),
        )


def drop_codes(tx: "apsw.Connection", shelf: Shelf, gone: set[int]) -> None:
    """Take single codes out of their blocks; a block may become short, or empty and go."""
    import numpy as np

    unwanted = np.array(sorted(gone), "<i8")
    rows: list[tuple[Any, ...]] = tx.execute(
        f"SELECT block, vec_rowids, codes FROM {shelf.codes} WHERE model = ? ORDER BY block",  # noqa: S608 (fixed)
        (shelf.model,),
    ).fetchall()
    for block, ids, codes in rows:
        numbers = np.frombuffer(ids, "<i8")
        stay = ~np.isin(numbers, unwanted)
        if stay.all():
            continue
        if stay.any():
            codes = np.frombuffer(codes, np.uint8).reshape(len(numbers), -1)[stay]
            _write_blocks(tx, shelf, block, numbers[stay].tobytes(), codes.tobytes())
        else:
            tx.execute(f"DELETE FROM {shelf.codes} WHERE model = ? AND block = ?", (shelf.model, block))  # noqa: S608
    tx.execute(
        f"UPDATE {shelf.means} SET encoding = encoding + 1 WHERE {shelf.key} = ?",  # noqa: S608 (fixed)
        (shelf.model,),
    )
