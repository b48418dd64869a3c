"""Which chunks are nearest to a vector.

Knows codes and vectors in memory, and the rows that they come from. Does not know what a vector means.

An Index serves one process. Its first question reads the codes, and of the vectors only those that the codes
leave over: so a cold command stays cheap. From the second question on the vectors are kept in memory as well,
as far as they fit, and the pages of the chunks, so that a filter is a mask. What was written meanwhile, here or
by others, is read before the next answer. What has gone is not tracked: every answer is looked up in the chunks
that are there, in the same snapshot, and a search that comes short looks further.
"""

from typing import TYPE_CHECKING, Any

from quaid.errors import NotFound
from quaid.store.chunk_days import Days
from quaid.store.chunks import count, highest_id, narrow, page_conditions
from quaid.store.days import PAGE_DAY
from quaid.store.growing import Growing
from quaid.store.view import SPARE, Counted, Source, View

if TYPE_CHECKING:
    import numpy as np

    from quaid.store.codes import Array
    from quaid.store.db import Database
    from quaid.store.vectors import Model
    from quaid.store.words import Filters

RESIDENT_BYTES = 256 * 1024 * 1024
"""The vectors of a model are kept in memory up to this size; beyond, the shortlist is read from the file."""

MOST_GONE = 1_000
"""Chunks that are gone may stay in memory, a quarter of all and so many."""


class Index:
    """The vectors of a memory, searched."""

    def __init__(self, db: "Database", resident_bytes: int = RESIDENT_BYTES) -> None:
        self._db = db
        self._resident_bytes = resident_bytes
        self._views: dict[str, _ChunkView] = {}
        self._made = Counted(db)

    def made(self, model: "Model") -> tuple[int, int]:
        """How many chunks have a vector, and how many there are, as `filling` tells; kept until a write."""
        from quaid.store import filling

        return self._made.of(model.name, lambda: filling.made(self._db, model))

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
        self, view: "_ChunkView", found: list[tuple[int, float]], allowed: "Filters | None"
    ) -> list[tuple[int, float]]:
        """The chunks of these vectors that are there now."""
        conditions, values = page_conditions(allowed) if allowed is not None else ("", ())
        where = ""
        if allowed is not None and conditions:
            pages = f"pages AS p{narrow(allowed)} ON p.id = c.page_id"
            where = f" CROSS JOIN {pages} WHERE p.quarantined_at IS NULL AND {conditions}"
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

    def _view(self, name: str) -> "_ChunkView":
        """What is known of a model, as of this snapshot."""
        row = self._db.one(
            "SELECT name, dimensions, vec_table, encoding, mean FROM embedding_models WHERE name = ?", (name,)
        )
        if row is None:
            raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
        model = Source(*row)
        view = self._views.get(name)
        if view is None or view.model != model:
            questions = view.questions if view else 0
            view = self._views[name] = _ChunkView(self._db, model, self._resident_bytes, questions)
        view.refresh()
        return view


class _ChunkView(View):
    """The vectors of chunks, and, once it is worth it, which chunk has which."""

    def __init__(self, db: "Database", model: Source, resident_bytes: int, questions: int) -> None:
        self._chunks: _Chunks | None = None
        super().__init__(db, model, resident_bytes, questions)

    def refresh(self) -> int | None:
        """Take in what was written since the last look."""
        last = super().refresh()
        if last is not None and self._chunks is not None:
            self._chunks.refresh(self._db, self.model, last, self._ids)
        return last

    def warm_up(self) -> None:
        """Count a question, and keep in memory what makes the next ones fast."""
        super().warm_up()
        if self.questions > 1 and self._chunks is None:
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
            f" WHERE p.quarantined_at IS NULL AND {conditions}",
            (self.model.name, *values),
        )
        return np.flatnonzero(np.isin(self._ids, ids))

    def of_chunks(self, chunk_ids: list[int]) -> "tuple[Array, Array]":
        """Those of these chunks that have a vector, and the vectors: from memory, or else from the file."""
        import numpy as np

        if self._chunks is not None:
            found, places = self._chunks.with_vectors(np.array(chunk_ids, np.int64))
            if self._vectors is not None:
                return found, self._vectors[places]
            # By their ids: half the price of finding them by the content of their chunks.
            there, vectors = self._rows_at(np.unique(places))
            at = np.searchsorted(there, places)
            known = at < len(there)
            known[known] = there[at[known]] == places[known]
            return found[known], vectors[at[known]]
        return self._vectors_in(
            self._db.rows(
                "SELECT c.id, v.vector FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name)
                " CROSS JOIN chunks AS c ON c.id = wanted.value"
                f" CROSS JOIN {self.model.table} AS v ON v.content_hash = c.content_hash AND v.model = ?",
                (str(chunk_ids), self.model.name),
            )
        )


class _Chunks:
    """Which chunk of which page has which vector; some of them may be gone."""

    def __init__(self) -> None:
        self._days = Days()
        self._forget()

    def _forget(self) -> None:
        import numpy as np

        self._last = self._looked_at = 0
        self._kept = Growing(np.empty((3, 0), np.int64))

    @property
    def _rows(self) -> "Array":
        """Chunk in ascending order, page, place of the vector."""
        return self._kept.now

    def refresh(self, db: "Database", model: Source, last_vector: int, ids: "Array") -> None:
        """Take in chunks and vectors that came since the last look."""
        import numpy as np

        if self._rows.shape[1] > self._looked_at + MOST_GONE:  # to count all is dear: only after so many
            self._looked_at = self._rows.shape[1]
            if self._looked_at > 1.25 * count(db) + MOST_GONE:
                self._forget()
                last_vector = 0
        new = self._all(db, model) if not self._last else self._new(db, model, last_vector)
        if new.size:
            new[2] = np.searchsorted(ids, new[2])
            new = new[:, np.argsort(new[0], kind="stable")]
            if self._rows.shape[1] and new[0, 0] < self._rows[0, -1]:
                rows = np.concatenate([self._rows, new], axis=1)
                self._kept = Growing(rows[:, np.argsort(rows[0], kind="stable")])
            else:
                self._kept.add(new)
        self._last = max(self._last, highest_id(db))

    def _all(self, db: "Database", model: Source) -> "Array":
        """Chunk, page and vector of every chunk that has one: out of two indexes, without a look at the rows."""
        found = _numbers(
            db,
            "SELECT group_concat(c.id || ',' || c.page_id || ',' || v.id)"  # noqa: S608 (the registry's name)
            f" FROM chunks AS c INDEXED BY chunks_by_page CROSS JOIN {model.table} AS v"
            " ON v.content_hash = c.content_hash AND v.model = ?",
            (model.name,),
        )
        return found.reshape(-1, 3).T.copy()

    def _new(self, db: "Database", model: Source, last_vector: int) -> "Array":
        """The same of what came since: vectors, and chunks whose vector was there before them."""
        import numpy as np

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
        return np.array(new, np.int64).reshape(-1, 3).T.copy()

    def with_vectors(self, chunk_ids: "Array") -> "tuple[Array, Array]":
        """Those of these chunks that have a vector, and its place; of two, the one that came last."""
        import numpy as np

        at = np.searchsorted(self._rows[0], chunk_ids, side="right") - 1
        known = at >= 0
        known[known] = self._rows[0][at[known]] == chunk_ids[known]
        return chunk_ids[known], self._rows[2][at[known]]

    def places(self, db: "Database", filters: "Filters", size: int) -> "Array":
        """The places of the vectors whose chunks the filters allow."""
        import numpy as np

        if filters.since or filters.until:
            of_days = self._days.within(db, self._rows, filters.since, filters.until)
            if of_days is not None:
                others = filters._replace(since=None, until=None)
                mask = np.zeros(size, bool)
                mask[self._rows[2][of_days]] = True
                if any(others):
                    allowed = np.zeros(size, bool)
                    allowed[self.places(db, others, size)] = True
                    mask &= allowed
                return np.flatnonzero(mask)
        pages, conditions, values = _pages(filters)
        dated = bool(pages)
        chunk = " CROSS JOIN chunks AS c ON c.page_id = p.id" if dated else ""
        wanted = _numbers(
            db,
            f"{pages}SELECT group_concat({'c' if dated else 'p'}.id)"  # noqa: S608 (fixed conditions)
            f" FROM pages AS p{chunk} WHERE p.quarantined_at IS NULL AND {conditions}",
            values,
        )
        rows = self._rows[0 if dated else 1]
        known = np.zeros(max(rows.max(initial=0), wanted.max(initial=0)) + 1, bool)
        known[wanted] = True
        mask = np.zeros(size, bool)
        mask[self._rows[2][known[rows]]] = True
        return np.flatnonzero(mask)


def _pages(filters: "Filters") -> tuple[str, str, tuple[str, ...]]:
    """What makes the pages that conditions speak of, the conditions, and their values.

    Where the day counts, it is found once for each page, and not again for each of its chunks.
    """
    if not (filters.since or filters.until):
        return "", *page_conditions(filters)
    dated = f"SELECT id, type, wing, collection_id, quarantined_at, {PAGE_DAY} AS day FROM main.pages AS p"  # noqa: S608
    return f"WITH pages AS MATERIALIZED ({dated}) ", *page_conditions(filters, "p.day")


def _numbers(db: "Database", sql: str, values: tuple[str, ...]) -> "Array":
    """Ids that come as one text: far cheaper than as many rows."""
    import numpy as np

    row = db.one(sql, values)
    return np.fromstring(row[0], np.int64, sep=",") if row and row[0] else np.empty(0, np.int64)
