"""One model's vectors in the memory of a process: ids, codes, and, once it is worth it, the vectors themselves.

Knows the tables that they come from, and how the nearest are found. Does not know what text a vector is of: those
who ask look that up.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.store.growing import Growing

if TYPE_CHECKING:
    from collections.abc import Callable

    from quaid.store.codes import Array
    from quaid.store.db import Database

FEW = 2_000
"""So many vectors are compared without codes."""

SPARE = 32
"""Vectors that are looked at beyond the number asked for, because their texts may be gone."""


class Source(NamedTuple):
    """Where a model's vectors are, and what their codes were made with."""

    name: str
    dimensions: int
    table: str
    encoding: int
    mean: bytes | None
    codes: str = "vector_codes"


class Counted:
    """How many vectors there are of how many, for each model; counted again only after a write."""

    def __init__(self, db: "Database") -> None:
        self._db = db
        self._known: dict[str, tuple[int, tuple[int, int]]] = {}

    def of(self, model: str, count: "Callable[[], tuple[int, int]]") -> tuple[int, int]:
        with self._db.reading():
            self._db.one(
                "SELECT 1 FROM embedding_models"
            )  # only reading takes the snapshot that has a version
            version = self._db.connection.data_version()
            seen, found = self._known.get(model, (None, (0, 0)))
            if seen != version:
                found = count()
                self._known[model] = version, found
            return found


class View:
    """One model's vectors: ids in ascending order, their codes, and, once it is worth it, themselves."""

    def __init__(self, db: "Database", model: Source, resident_bytes: int, questions: int) -> None:
        import numpy as np

        self.model = model
        self.questions = questions
        self._db = db
        self._resident_bytes = resident_bytes
        self._seen: int | None = None
        self._kept_ids = Growing(np.empty(0, np.int64))
        self._kept_codes: Growing | None = None
        self._kept_vectors: Growing | None = None
        self._mean: Array | None = None
        self._read_codes()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def _ids(self) -> "Array":
        return self._kept_ids.now

    @property
    def _codes(self) -> "Array | None":
        """A row for each word and a column for each vector; None: there are too few for codes."""
        return self._kept_codes.now if self._kept_codes else None

    @property
    def _vectors(self) -> "Array | None":
        return self._kept_vectors.now if self._kept_vectors else None

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

    def refresh(self) -> int | None:
        """Take in what was written since the last look. The last vector that was known before; None: nothing new."""
        import numpy as np

        version = self._db.connection.data_version()
        if version == self._seen:
            return None
        self._seen = version
        last = int(self._ids[-1]) if len(self) else 0
        new, vectors = self._read("id > ? AND model = ? ORDER BY id", (last, self.model.name))
        if len(new):
            self._kept_ids.add(new)
            if self._kept_codes is not None:
                from quaid.store.codes import encode

                self._kept_codes.add(encode(vectors, np.frombuffer(self.model.mean or b"", "<f4")).T)
            elif self.model.mean is None:
                self._mean = None
            if self._kept_vectors is not None:
                self._kept_vectors.add(vectors)
        return last

    def warm_up(self) -> None:
        """Count a question, and keep in memory what makes the next ones fast."""
        self.questions += 1
        if self.questions == 1:
            return
        if self._kept_vectors is None and len(self) * self.model.dimensions * 4 <= self._resident_bytes:
            found = self._aligned(*self._read("model = ? ORDER BY id", (self.model.name,)))
            self._kept_vectors = Growing(found, axis=0)

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
            if self._vectors is None:
                places = codes.refined(
                    self._codes, places, query, max(codes.LEAST_SHORTLIST, codes.REFINED * count)
                )
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
            f"SELECT vec_rowids, codes FROM {self.model.codes} WHERE model = ? ORDER BY block",  # noqa: S608 (fixed)
            (self.model.name,),
        )
        ids = np.frombuffer(b"".join([block[0] for block in blocks]), "<i8")
        if len(ids) > FEW:
            words = np.frombuffer(b"".join([block[1] for block in blocks]), "<u8").reshape(len(ids), -1)
            self._kept_ids, self._kept_codes = Growing(ids), Growing(np.ascontiguousarray(words.T))
        else:  # all of them are read as they are, by the first refresh
            self._kept_vectors = Growing(np.empty((0, self.model.dimensions), np.float32), axis=0)

    def _read(self, where: str, values: tuple[Any, ...]) -> "tuple[Array, Array]":
        """Ids and vectors."""
        return self._vectors_in(
            self._db.rows(f"SELECT id, vector FROM {self.model.table} WHERE {where}", values)  # noqa: S608
        )

    def _rows_at(self, places: "Array") -> "tuple[Array, Array]":
        """The places of vectors that are there, and the vectors, read from the file."""
        import numpy as np

        ids, vectors = self._read(
            "id IN (SELECT value FROM json_each(?)) AND model = ?",
            (str(self._ids[places].tolist()), self.model.name),
        )
        return np.searchsorted(self._ids, ids), vectors

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
