"""Which chunks are nearest to a vector.

Knows codes and vectors in memory, and the rows that they come from. Does not know what a vector means.

An Index serves one process. Its first question reads the codes, and of the vectors only those that the codes
leave over: so a cold command stays cheap. From the second question on the vectors are kept in memory as well,
as far as they fit, and the pages of the chunks, so that a filter is a mask. What was written meanwhile, here or
by others, is read before the next answer. What has gone is not tracked: every answer is looked up in the chunks
that are there, in the same snapshot, and a search that comes short looks further.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import NotFound
from quaid.store.chunks import page_conditions
from quaid.store.days import PAGE_DAY

if TYPE_CHECKING:
    import numpy as np

    from quaid.store.codes import Array
    from quaid.store.db import Database
    from quaid.store.vectors import Model
    from quaid.store.words import Filters

RESIDENT_BYTES = 256 * 1024 * 1024
"""The vectors of a model are kept in memory up to this size; beyond, the shortlist is read from the file."""

FEW = 2_000
"""So many vectors are compared without codes."""

SPARE = 32
"""Vectors that are looked at beyond the number asked for, because their chunks may be gone."""


class _Model(NamedTuple):
    name: str
    dimensions: int
    table: str
    encoding: int
    mean: bytes | None


class Index:
    """The vectors of a memory, searched."""

    def __init__(self, db: "Database", resident_bytes: int = RESIDENT_BYTES) -> None:
        self._db = db
        self._resident_bytes = resident_bytes
        self._views: dict[str, _View] = {}
        self._made: dict[str, tuple[int, tuple[int, int]]] = {}

    def made(self, model: "Model") -> tuple[int, int]:
        """How many chunks have a vector, and how many there are, as `filling` tells; kept until a write."""
        from quaid.store import filling

        with self._db.reading():
            self._db.one(
                "SELECT 1 FROM embedding_models"
            )  # only reading takes the snapshot that has a version
            version = self._db.connection.data_version()
            seen, found = self._made.get(model.name, (None, (0, 0)))
            if seen != version:
                found = filling.made(self._db, model)
                self._made[model.name] = version, found
            return found

    def nearest(
        self, model: str, query: "np.ndarray[Any, Any]", k: int, allowed: "Filters | None" = None
    ) -> list[tuple[int, float]]:
        """The nearest chunks with their cosines, best first; only those that the filters allow."""
        import numpy as np

        query = np.ascontiguousarray(query, np.float32)
        with self._db.reading():
            view = self._view(model)
            view.warm_up()
            slots = view.allowed(allowed) if allowed is not None and any(allowed) else None
            most = len(view) if slots is None else len(slots)
            wanted = k + SPARE
            while True:
                found = self._chunks(view, view.best(query, min(wanted, most), slots), allowed)
                if len(found) >= k or wanted >= most:
                    return found[:k]
                wanted *= 4

    def cosines(self, model: str, query: "np.ndarray[Any, Any]", chunk_ids: list[int]) -> dict[int, float]:
        """The cosine of each of these chunks that has a vector."""
        import numpy as np

        found, vectors = self.vectors_of(model, chunk_ids)
        scores = vectors @ np.asarray(query, np.float32)
        return dict(zip(found.tolist(), scores.tolist(), strict=True))

    def vectors_of(self, model: str, chunk_ids: list[int]) -> "tuple[Array, Array]":
        """Those of these chunks that have a vector, in their order, and the vectors.

        Whoever asks knows that the chunks are there, in the same snapshot.
        """
        with self._db.reading():
            return self._view(model).of_chunks(chunk_ids)

    def baseline(self, model: str, query: "np.ndarray[Any, Any]") -> float:
        """The cosine of a chunk that has nothing to do with the question: that of the mean of all."""
        import numpy as np

        with self._db.reading():
            mean = self._view(model).mean()
        return float(mean @ np.asarray(query, np.float32))

    def _chunks(
        self, view: "_View", found: list[tuple[int, float]], allowed: "Filters | None"
    ) -> list[tuple[int, float]]:
        """The chunks of these vectors that are there now."""
        conditions, values = page_conditions(allowed) if allowed is not None else ("", ())
        where = f" CROSS JOIN pages AS p ON p.id = c.page_id WHERE {conditions}" if conditions else ""
        rows = self._db.rows(
            "SELECT v.id, c.id FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name, fixed conditions)
            f" CROSS JOIN {view.model.table} AS v ON v.id = wanted.value"
            f" CROSS JOIN chunks AS c ON c.content_hash = v.content_hash{where}",
            (str([vector_id for vector_id, _ in found]), *values),
        )
        chunks: dict[int, list[int]] = {}
        for vector_id, chunk_id in rows:
            chunks.setdefault(vector_id, []).append(chunk_id)
        return [(chunk_id, score) for vector_id, score in found for chunk_id in chunks.get(vector_id, ())]

    def _view(self, name: str) -> "_View":
        """What is known of a model, as of this snapshot."""
        row = self._db.one(
            "SELECT name, dimensions, vec_table, encoding, mean FROM embedding_models WHERE name = ?", (name,)
        )
        if row is None:
            raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
        model = _Model(*row)
        view = self._views.get(name)
        if view is None or view.model != model:
            questions = view.questions if view else 0
            view = self._views[name] = _View(self._db, model, self._resident_bytes, questions)
        view.refresh()
        return view


class _View:
    """One model's vectors: ids in ascending order, their codes, and, once it is worth it, themselves."""

    def __init__(self, db: "Database", model: _Model, resident_bytes: int, questions: int) -> None:
        import numpy as np

        self.model = model
        self.questions = questions
        self._db = db
        self._resident_bytes = resident_bytes
        self._seen: int | None = None
        self._chunks: _Chunks | None = None
        self._ids: Array = np.empty(0, np.int64)
        self._codes: Array | None = None
        self._vectors: Array | None = None
        self._mean: Array | None = None
        self._read_codes()

    def __len__(self) -> int:
        return len(self._ids)

    def mean(self) -> "Array":
        """Of all vectors, or of those that were there when it was last taken."""
        import numpy as np

        if self._mean is None:
            if self.model.mean is not None:
                self._mean = np.frombuffer(self.model.mean, "<f4")
            elif not len(self):
                return np.zeros(self.model.dimensions, np.float32)
            else:
                self._mean = np.asarray(self._rows(slice(None)).mean(axis=0))
        return self._mean

    def refresh(self) -> None:
        """Take in what was written since the last look."""
        import numpy as np

        version = self._db.connection.data_version()
        if version == self._seen:
            return
        self._seen = version
        last = int(self._ids[-1]) if len(self) else 0
        new, vectors = self._read("id > ? AND model = ? ORDER BY id", (last, self.model.name))
        if len(new):
            self._ids = np.concatenate([self._ids, new])
            if self._codes is not None:
                from quaid.store.codes import encode

                codes = encode(vectors, np.frombuffer(self.model.mean or b"", "<f4"))
                self._codes = np.concatenate([self._codes, codes.T], axis=1)
            elif self.model.mean is None:
                self._mean = None
            if self._vectors is not None:
                self._vectors = np.concatenate([self._vectors, vectors])
        if self._chunks is not None:
            self._chunks.refresh(self._db, self.model, last, self._ids)

    def warm_up(self) -> None:
        """Count a question, and keep in memory what makes the next ones fast."""
        self.questions += 1
        if self.questions == 1:
            return
        if self._vectors is None and len(self) * self.model.dimensions * 4 <= self._resident_bytes:
            self._vectors = self._aligned(*self._read("model = ? ORDER BY id", (self.model.name,)))
        if self._chunks is None:
            self._chunks = _Chunks()
            self._chunks.refresh(self._db, self.model, 0, self._ids)

    def allowed(self, filters: "Filters") -> "Array":
        """The places of the vectors whose chunks the filters allow."""
        import numpy as np

        if self._chunks is not None:
            return self._chunks.places(self._db, filters, len(self))
        pages, conditions, values = _pages(filters)
        ids = _numbers(
            self._db,
            f"{pages}SELECT group_concat(v.id) FROM pages AS p CROSS JOIN chunks AS c ON c.page_id = p.id"  # noqa: S608
            f" CROSS JOIN {self.model.table} AS v ON v.content_hash = c.content_hash AND v.model = ?"
            f" WHERE {conditions}",
            (self.model.name, *values),
        )
        return np.flatnonzero(np.isin(self._ids, ids))

    def of_chunks(self, chunk_ids: list[int]) -> "tuple[Array, Array]":
        """Those of these chunks that have a vector, and the vectors: from memory, or else from the file."""
        import numpy as np

        if self._vectors is not None and self._chunks is not None:
            found, places = self._chunks.with_vectors(np.array(chunk_ids, np.int64))
            return found, self._vectors[places]
        return self._vectors_in(
            self._db.rows(
                "SELECT c.id, v.vector FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name)
                " CROSS JOIN chunks AS c ON c.id = wanted.value"
                f" CROSS JOIN {self.model.table} AS v ON v.content_hash = c.content_hash AND v.model = ?",
                (str(chunk_ids), self.model.name),
            )
        )

    def best(self, query: "Array", count: int, slots: "Array | None") -> list[tuple[int, float]]:
        """The nearest vectors by id, with their cosines."""
        import numpy as np

        from quaid.store import codes

        if not count:
            return []
        if self._codes is None:
            places = np.arange(len(self)) if slots is None else slots
        else:
            code = codes.encode(query[None, :], self.mean())[0]
            size = codes.shortlist_size(len(self), count)
            places = codes.nearest(self._codes, code, size, slots)
        whole = self._vectors is not None and len(places) == len(self)
        ids, scores = self._scored(query, slice(None) if whole else places)
        top = codes.highest(scores, count)
        return list(zip(ids[top].tolist(), scores[top].tolist(), strict=True))

    def _scored(self, query: "Array", places: "Array | slice") -> "tuple[Array, Array]":
        if self._vectors is not None:
            return self._ids[places], self._vectors[places] @ query
        ids, vectors = self._read(
            "id IN (SELECT value FROM json_each(?)) AND model = ?",
            (str(self._ids[places].tolist()), self.model.name),
        )
        return ids, vectors @ query

    def _rows(self, places: slice) -> "Array":
        if self._vectors is not None:
            return self._vectors[places]
        return self._read("model = ? ORDER BY id", (self.model.name,))[1]

    def _read_codes(self) -> None:
        import numpy as np

        blocks = self._db.rows(
            "SELECT vec_rowids, codes FROM vector_codes WHERE model = ? ORDER BY block", (self.model.name,)
        )
        ids = np.frombuffer(b"".join([block[0] for block in blocks]), "<i8")
        if len(ids) > FEW:
            words = np.frombuffer(b"".join([block[1] for block in blocks]), "<u8").reshape(len(ids), -1)
            self._ids, self._codes = ids, np.ascontiguousarray(words.T)
        else:  # all of them are read as they are, by the first refresh
            self._vectors = np.empty((0, self.model.dimensions), np.float32)

    def _read(self, where: str, values: tuple[Any, ...]) -> "tuple[Array, Array]":
        """Ids and vectors."""
        return self._vectors_in(
            self._db.rows(f"SELECT id, vector FROM {self.model.table} WHERE {where}", values)  # noqa: S608
        )

    def _vectors_in(self, rows: "list[tuple[Any, ...]]") -> "tuple[Array, Array]":
        """Rows of an id and a vector as two arrays."""
        import numpy as np

        ids = np.array([row[0] for row in rows], np.int64)
        vectors = np.frombuffer(b"".join([row[1] for row in rows]), "<f2")
        return ids, vectors.reshape(len(rows), self.model.dimensions).astype(np.float32)

    def _aligned(self, ids: "Array", vectors: "Array") -> "Array":
        """The vectors in the places of their ids; a code whose vector is gone has zeros."""
        import numpy as np

        if len(ids) == len(self._ids):
            return vectors
        every = np.zeros((len(self._ids), self.model.dimensions), np.float32)
        every[np.searchsorted(self._ids, ids)] = vectors
        return every


class _Chunks:
    """Which chunk of which page has which vector; some of them may be gone."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        import numpy as np

        self._last = 0
        self._rows = np.empty((3, 0), np.int64)  # chunk in ascending order, page, place of the vector

    def refresh(self, db: "Database", model: _Model, last_vector: int, ids: "Array") -> None:
        """Take in chunks and vectors that came since the last look."""
        import numpy as np

        if self._rows.shape[1] > 1.25 * (db.one("SELECT count(*) FROM chunks") or (0,))[0] + 1_000:
            self._forget()
            last_vector = 0
        columns = "SELECT c.id, c.page_id, v.id FROM "
        match = "v.content_hash = c.content_hash"
        new = db.rows(
            f"{columns}{model.table} AS v CROSS JOIN chunks AS c ON {match} WHERE v.id > ? AND v.model = ?",
            (last_vector, model.name),
        )
        new += db.rows(
            f"{columns}chunks AS c CROSS JOIN {model.table} AS v ON {match} AND v.model = ?"
            " WHERE c.id > ? AND v.id <= ?",
            (model.name, self._last, last_vector),
        )
        if new:
            rows = np.array(new, np.int64).T
            rows[2] = np.searchsorted(ids, rows[2])
            rows = np.concatenate([self._rows, rows], axis=1)
            self._rows = rows[:, np.argsort(rows[0], kind="stable")]
        self._last = max(self._last, (db.one("SELECT max(id) FROM chunks") or (0,))[0] or 0)

    def with_vectors(self, chunk_ids: "Array") -> "tuple[Array, Array]":
        """Those of these chunks that have a vector, and its place; of two, the one that came last."""
        import numpy as np

        at = np.searchsorted(self._rows[0], chunk_ids, side="right") - 1
        known = at >= 0
        known[known] = self._rows[0][at[known]] == chunk_ids[known]
        return chunk_ids[known], self._rows[2][at[known]]

    def places(self, db: "Database", filters: "Filters", count: int) -> "Array":
        """The places of the vectors whose chunks the filters allow."""
        import numpy as np

        pages, conditions, values = _pages(filters)
        dated = bool(pages)
        chunk = " CROSS JOIN chunks AS c ON c.page_id = p.id" if dated else ""
        wanted = _numbers(
            db,
            f"{pages}SELECT group_concat({'c' if dated else 'p'}.id)"  # noqa: S608 (fixed conditions)
            f" FROM pages AS p{chunk} WHERE {conditions}",
            values,
        )
        rows = self._rows[0 if dated else 1]
        known = np.zeros(max(rows.max(initial=0), wanted.max(initial=0)) + 1, bool)
        known[wanted] = True
        mask = np.zeros(count, bool)
        mask[self._rows[2][known[rows]]] = True
        return np.flatnonzero(mask)


def _pages(filters: "Filters") -> tuple[str, str, tuple[str, ...]]:
    """What makes the pages that conditions speak of, the conditions, and their values.

    Where the day counts, it is found once for each page, and not again for each of its chunks.
    """
    if not (filters.since or filters.until):
        return "", *page_conditions(filters)
    dated = f"SELECT id, type, wing, collection_id, {PAGE_DAY} AS day FROM main.pages AS p"  # noqa: S608
    return f"WITH pages AS MATERIALIZED ({dated}) ", *page_conditions(filters, "p.day")


def _numbers(db: "Database", sql: str, values: tuple[str, ...]) -> "Array":
    """Ids that come as one text: far cheaper than as many rows."""
    import numpy as np

    row = db.one(sql, values)
    return np.fromstring(row[0], np.int64, sep=",") if row and row[0] else np.empty(0, np.int64)
