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

if TYPE_CHECKING:
    import numpy as np

    from quaid.store.codes import Array
    from quaid.store.db import Database
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

        with self._db.reading():
            known = self._view(model).model
            rows = self._db.rows(
                "SELECT c.id, v.vector FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name)
                " CROSS JOIN chunks AS c ON c.id = wanted.value"
                f" CROSS JOIN {known.table} AS v ON v.content_hash = c.content_hash AND v.model = ?",
                (str(chunk_ids), model),
            )
        if not rows:
            return {}
        vectors = np.frombuffer(b"".join([row[1] for row in rows]), "<f2").reshape(len(rows), -1)
        scores = vectors.astype(np.float32) @ np.asarray(query, np.float32)
        return {row[0]: float(score) for row, score in zip(rows, scores, strict=True)}

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

        conditions, values = page_conditions(filters)
        if self._chunks is not None:
            return self._chunks.places(self._db, conditions, values, len(self))
        ids = _numbers(
            self._db,
            "SELECT group_concat(v.id) FROM pages AS p CROSS JOIN chunks AS c ON c.page_id = p.id"  # noqa: S608
            f" CROSS JOIN {self.model.table} AS v ON v.content_hash = c.content_hash AND v.model = ?"
            f" WHERE {conditions}",
            (self.model.name, *values),
        )
        return np.flatnonzero(np.isin(self._ids, ids))

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
        top = np.argsort(-scores, kind="stable")[:count]
        return [(int(ids[place]), float(scores[place])) for place in top]

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
        import numpy as np

        rows = self._db.rows(f"SELECT id, vector FROM {self.model.table} WHERE {where}", values)  # noqa: S608
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
        self._rows = np.empty((3, 0), np.int64)  # chunk, page, place of the vector

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
            self._rows = np.concatenate([self._rows, rows], axis=1)
        self._last = max(self._last, (db.one("SELECT max(id) FROM chunks") or (0,))[0] or 0)

    def places(self, db: "Database", conditions: str, values: tuple[str, ...], count: int) -> "Array":
        """The places of the vectors whose chunks meet the conditions."""
        import numpy as np

        dated = "c." in conditions
        chunk = " CROSS JOIN chunks AS c ON c.page_id = p.id" if dated else ""
        wanted = _numbers(
            db,
            f"SELECT group_concat({'c' if dated else 'p'}.id) FROM pages AS p{chunk} WHERE {conditions}",  # noqa: S608
            values,
        )
        rows = self._rows[0 if dated else 1]
        known = np.zeros(max(rows.max(initial=0), wanted.max(initial=0)) + 1, bool)
        known[wanted] = True
        mask = np.zeros(count, bool)
        mask[self._rows[2][known[rows]]] = True
        return np.flatnonzero(mask)


def _numbers(db: "Database", sql: str, values: tuple[str, ...]) -> "Array":
    """Ids that come as one text: far cheaper than as many rows."""
    import numpy as np

    row = db.one(sql, values)
    return np.fromstring(row[0], np.int64, sep=",") if row and row[0] else np.empty(0, np.int64)
