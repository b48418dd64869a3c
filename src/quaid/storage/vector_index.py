"""In-memory search for the chunks, pages and turns nearest to a vector.

A turn is a message of a conversation. Each process has its own index; the connections of a process may share the
data in RAM (vectors.ViewCache). The first query reads all one-bit codes, but only those vectors that are on the
shortlist: the candidates with the nearest codes. From the second query on, vectors are cached in RAM if they
fit. Rows written since the last query are read before the next query. Deleted rows are dropped when the
matches are looked up, in the same snapshot.
"""

import re
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from quaid.storage import embedding_queue, vectors
from quaid.storage.chunks import (
    PAGE_DAY,
    chunks_of_pages,
    count,
    highest_id,
    page_conditions,
    page_index_hint,
)
from quaid.storage.vectors import VectorTables, encode_vectors

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database
    from quaid.storage.text_index import SearchFilters
    from quaid.storage.vectors import Array, EmbeddingModel, ViewCache

GROWTH_DIVISOR = 8
"""A growing array gets spare capacity of 1/GROWTH_DIVISOR of its size."""

LEAST_GROWTH = 1_024


class GrowingArray:
    """An array with spare capacity that can be appended to along one axis."""

    def __init__(self, now: "Array", axis: int = -1) -> None:
        self.now = now
        """The current content, a view that is valid until the next `add`."""
        self._axis = axis % now.ndim
        self._all = now

    def add(self, more: "Array") -> None:
        """Append along the axis."""
        count = self.now.shape[self._axis]
        size = count + more.shape[self._axis]
        if size > self._all.shape[self._axis]:
            shape = list(self.now.shape)
            shape[self._axis] = size + max(LEAST_GROWTH, size // GROWTH_DIVISOR)
            self._all = np.empty(shape, self.now.dtype)
            self._all[self._part(0, count)] = self.now
        self._all[self._part(count, size)] = more
        self.now = self._all[self._part(0, size)]

    def _part(self, start: int, end: int) -> tuple[slice, ...]:
        return (*[slice(None)] * self._axis, slice(start, end))


SHORTLIST, SHORTLIST_AT = 2_048, 50_000
"""With SHORTLIST_AT vectors, SHORTLIST candidates are compared exactly.

Their number grows with the cube root of the vector count.
"""

LEAST_SHORTLIST, SHORTLIST_PER_RESULT = 1_024, 16
"""Two lower limits for the number of candidates: in all, and for each requested result.

The recall of the 100 nearest vectors is 0.988 among 50,000 vectors, and 0.997 among 12,000.
"""

REFINED_PER_RESULT = 8
"""If the vectors are not cached in RAM, this many are read for each requested result, but at least LEAST_SHORTLIST.

They are chosen from the shortlist by comparing their codes with the query itself instead of its code. If 1,024
vectors are read from a shortlist of 8,192 of 200,000 vectors, the recall of the 10 nearest is 0.9995.
"""

CODES_PER_STRIDE = 32_768
"""This many codes are compared at once, so that intermediate arrays stay in the processor cache."""


def code_distances(codes: "Array", code: "Array") -> "Array":
    """Return the Hamming distance of each code to `code`.

    `codes` has a row per 64-bit word and a column per vector.
    """
    count = codes.shape[1]
    total = np.empty(count, np.uint16)
    for start in range(0, count, CODES_PER_STRIDE):
        block = codes[:, start : start + CODES_PER_STRIDE]
        part = total[start : start + CODES_PER_STRIDE]
        part[:] = np.bitwise_count(block[0] ^ code[0])
        for word in range(1, len(block)):
            part += np.bitwise_count(block[word] ^ code[word])
    return total


def shortlist_size(count: int, results: int) -> int:
    """Return how many of `count` vectors to compare exactly."""
    size = int(SHORTLIST * (count / SHORTLIST_AT) ** (1 / 3))
    return max(LEAST_SHORTLIST, size, SHORTLIST_PER_RESULT * results)


def nearest_codes(codes: "Array", code: "Array", size: int, allowed: "Array | None") -> "Array":
    """Return the positions of the `size` nearest codes, or of more if some are tied.

    `allowed` limits the positions.
    """
    if allowed is not None:
        if len(allowed) <= size:
            return allowed
        codes = np.ascontiguousarray(codes[:, allowed])
    elif codes.shape[1] <= size:
        return np.arange(codes.shape[1])
    total = code_distances(codes, code)
    within = np.searchsorted(np.cumsum(np.bincount(total)), size)
    nearest = np.flatnonzero(total <= within)
    return nearest if allowed is None else allowed[nearest]


def refine_codes(codes: "Array", places: "Array", query: "Array", size: int) -> "Array":
    """Return the `size` positions whose code bits agree best with the query, weighted by its components."""
    if len(places) <= size:
        return places
    padded = np.zeros(len(codes) * 64, np.float32)
    padded[: len(query)] = query
    # Precompute the contribution of each byte value at each position, so that a score is a sum of table lookups.
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
    worth = padded.reshape(-1, 8) @ signs.T
    code_bytes = np.ascontiguousarray(codes[:, places].T).view(np.uint8)
    scores = worth.ravel()[code_bytes + np.arange(0, worth.size, 256)].sum(axis=1)
    return places[np.argpartition(-scores, size - 1)[:size]]


def highest_scores(scores: "Array", count: int) -> "Array":
    """Return the positions of the `count` highest scores, best first; ties in order of position."""
    if count >= len(scores):
        return np.argsort(-scores, kind="stable")
    top = np.sort(np.argpartition(-scores, count - 1)[:count])
    return top[np.argsort(-scores[top], kind="stable")]


def widen_halves(halves: "Array") -> "Array":
    """Return finite 16-bit floats as 32-bit floats, like `astype`, in a quarter of its time.

    The sign stays the highest bit and the exponent gets three more bits. The product corrects for the bias of the
    exponent, which is 15 with 16 bits and 127 with 32.
    """
    bits = halves.view(np.int16).astype(np.int32)  # copies the sign into the upper half
    bits <<= 13
    bits &= ~0x70000000
    wide = bits.view(np.float32)
    wide *= np.float32(2.0 ** (127 - 15))
    return wide


FEW_VECTORS = 2_000
"""Up to this many vectors are compared exactly, without using codes."""

HALVED_BYTES = 32 * 1024 * 1024
"""Vectors that would take more RAM than this as float32 are cached as float16, and converted when compared.

The conversion takes 0.3 ms per query and gives the same scores.
"""

READ_AT_ONCE = 4_096
"""Number of vectors that are read from the database at once."""

SPARE_RESULTS = 32
"""Number of extra vectors that are fetched, because the chunks or turns of some may have been deleted."""


class VectorView:
    """In-memory view of a model's vectors: ascending ids, one-bit codes and, if they fit into RAM, the vectors."""

    def __init__(self, db: "Database", tables: VectorTables, resident_bytes: int, questions: int) -> None:
        self.tables = tables
        self.questions = questions
        self._db = db
        self._resident_bytes = resident_bytes
        self._kept_ids = GrowingArray(np.empty(0, np.int64))
        self._kept_codes: GrowingArray | None = None
        self._kept_vectors: GrowingArray | None = None
        self._mean: Array | None = None
        self._read_codes()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def _ids(self) -> "Array":
        return self._kept_ids.now

    @property
    def _codes(self) -> "Array | None":
        """A row per 64-bit word and a column per vector; None if there are too few vectors for codes."""
        return self._kept_codes.now if self._kept_codes else None

    @property
    def _vectors(self) -> "Array | None":
        return self._kept_vectors.now if self._kept_vectors else None

    def mean(self) -> "Array":
        """Return the stored mean, or the mean of all vectors if no mean is stored."""
        if self._mean is None:
            if self.tables.mean is not None:
                self._mean = np.frombuffer(self.tables.mean, "<f4")
            elif not len(self):
                return np.zeros(self.tables.dimensions, np.float32)
            else:
                every = self._vectors if self._vectors is not None else self._read_all()
                self._mean = np.asarray(every.mean(axis=0, dtype=np.float32))
        return self._mean

    def use(self, db: "Database") -> None:
        """Use this connection for further reads."""
        self._db = db

    def refresh(self) -> int:
        """Read the vectors added since the last call. Return the highest id read by earlier calls."""
        last = int(self._ids[-1]) if len(self) else 0
        new, vectors = self._read("id > ? AND model = ? ORDER BY id", (last, self.tables.model))
        if len(new):
            self._kept_ids.add(new)
            if self._kept_codes is not None:
                self._kept_codes.add(encode_vectors(vectors, np.frombuffer(self.tables.mean or b"", "<f4")).T)
            elif self.tables.mean is None:
                self._mean = None
            if self._kept_vectors is not None:
                self._kept_vectors.add(vectors)
        return last

    def is_incomplete(self) -> bool:
        """Return True if vectors that were hidden from a restricted caller have become visible."""
        last = int(self._ids[-1]) if len(self) else 0
        row = self._db.one(
            f"SELECT count(*) FROM {self.tables.vectors} WHERE id <= ? AND model = ?",  # noqa: S608 (fixed)
            (last, self.tables.model),
        )
        return bool(row and row[0] > len(self))

    def warm_up(self) -> None:
        """Count a query and, from the second query on, cache the vectors if they fit into RAM."""
        self.questions += 1
        if self.questions == 1:
            return
        if self._kept_vectors is None and len(self) * self.tables.dimensions * 4 <= self._resident_bytes:
            self._kept_vectors = GrowingArray(self._read_all(), axis=0)

    def allowed(self, filters: "SearchFilters") -> "Array":
        """Return the positions of the vectors whose chunks or turns pass the filters."""
        raise NotImplementedError

    def best(
        self, query: "Array", count: int, slots: "Array | None", scored_by: "Array | None" = None
    ) -> list[tuple[int, float]]:
        """Return ids and scores of the `count` nearest vectors, best first; `slots` limits the positions.

        The shortlist is made with the code of `query`. Scores are dot products with `scored_by`, by default `query`.
        """
        if not count:
            return []
        if self._codes is None:
            places = np.arange(len(self)) if slots is None else slots
            query = query if scored_by is None else scored_by
        else:
            code = encode_vectors(query[None, :], self.mean())[0]
            size = shortlist_size(len(self), count)
            places = nearest_codes(self._codes, code, size, slots)
            query = query if scored_by is None else scored_by
            if self._vectors is None:
                places = refine_codes(
                    self._codes,
                    places,
                    query,
                    max(LEAST_SHORTLIST, REFINED_PER_RESULT * count),
                )
        whole = self._vectors is not None and len(places) == len(self)
        ids, scores = self._scored(query, slice(None) if whole else places)
        top = highest_scores(scores, count)
        return list(zip(ids[top].tolist(), scores[top].tolist(), strict=True))

    def cosines(self, query: "Array", vector_ids: list[int]) -> dict[int, float]:
        """Return the cosines of the vectors with these ids, by id. Ids without a vector are left out."""
        wanted = np.unique(np.array(vector_ids, np.int64))
        places = np.searchsorted(self._ids, wanted)
        places = places[places < len(self)]
        ids, scores = self._scored(query, places[self._ids[places] == wanted[: len(places)]])
        return dict(zip(ids.tolist(), scores.tolist(), strict=True))

    def _scored(self, query: "Array", places: "Array | slice") -> "tuple[Array, Array]":
        if self._vectors is not None:
            return self._ids[places], self._cached_at(places) @ query
        ids, vectors = self._read_at(places)
        return ids, vectors @ query

    def _read_codes(self) -> None:
        blocks = self._db.rows(
            f"SELECT vec_rowids, codes FROM {self.tables.codes} WHERE model = ? ORDER BY block",  # noqa: S608 (fixed)
            (self.tables.model if not self._db.only else "",),
        )
        ids = np.frombuffer(b"".join([block[0] for block in blocks]), "<i8")
        if len(ids) > FEW_VECTORS:
            words = np.frombuffer(b"".join([block[1] for block in blocks]), "<u8").reshape(len(ids), -1)
            self._kept_ids, self._kept_codes = GrowingArray(ids), GrowingArray(np.ascontiguousarray(words.T))
        else:  # the first refresh reads all vectors
            self._kept_vectors = GrowingArray(np.empty((0, self.tables.dimensions), np.float32), axis=0)

    def _read(self, where: str, values: tuple[Any, ...]) -> "tuple[Array, Array]":
        """Return ids and vectors of the matching rows."""
        return self._vectors_in(
            self._db.rows(f"SELECT id, vector FROM {self.tables.vectors} WHERE {where}", values)  # noqa: S608
        )

    def _read_all(self) -> "Array":
        """Return all vectors, aligned with the ids of the view; zeros where a vector was deleted."""
        size = len(self) * self.tables.dimensions * 4
        every = np.zeros(
            (len(self), self.tables.dimensions), np.float16 if size > HALVED_BYTES else np.float32
        )
        where, last = "id > ? AND model = ? ORDER BY id LIMIT ?", -1
        while True:
            ids, vectors = self._read(where, (last, self.tables.model, READ_AT_ONCE))
            if not len(ids):
                return every
            every[np.searchsorted(self._ids, ids)] = vectors
            last = int(ids[-1])

    def _cached_at(self, places: "Array | slice") -> "Array":
        """Return the cached vectors at these positions."""
        assert self._vectors is not None
        found = self._vectors[places]
        return widen_halves(found) if found.dtype == np.float16 else found

    def _read_at(self, places: "Array | slice") -> "tuple[Array, Array]":
        """Return ids and vectors of the rows at these positions that still exist."""
        ids = str(self._ids[places].tolist())
        return self._read("id IN (SELECT value FROM json_each(?)) AND model = ?", (ids, self.tables.model))

    def _vectors_in(self, rows: "list[tuple[Any, ...]]") -> "tuple[Array, Array]":
        """Convert rows of id and vector into two arrays."""
        ids = np.array([row[0] for row in rows], np.int64)
        vectors = np.frombuffer(b"".join([row[1] for row in rows]), "<f2")
        return ids, vectors.reshape(len(rows), self.tables.dimensions).astype(np.float32)


_DAY_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class ChunkDays:
    """Caches the day of each chunk until the next write, for each connection."""

    def __init__(self) -> None:
        self._cached: WeakKeyDictionary[Database, tuple[int, Array]] = WeakKeyDictionary()

    def within(self, db: "Database", rows: "Array", since: str | None, until: str | None) -> "Array | None":
        """Return a mask of the chunks dated from `since` to `until`; None if a given date is not a full date.

        `rows` has chunk ids in its first row and page ids in its second.
        """
        if not all(_DAY_PATTERN.fullmatch(day) for day in (since, until) if day is not None):
            return None
        version = db.connection.data_version()
        seen, first = self._cached.get(db, (None, np.empty(0)))
        if seen != version or len(first) != rows.shape[1]:
            first = _day_numbers(db, rows)
            self._cached[db] = version, first
        in_range = np.ones(len(first), bool)
        if since is not None:  # a month without a day is stored as day 00, and counts up to its last day
            in_range &= np.where(first % 100 == 0, first + 31, first) >= int(since.replace("-", ""))
        if until is not None:
            in_range &= first <= int(until.replace("-", ""))
        return in_range


def _day_numbers(db: "Database", rows: "Array") -> "Array":
    """Return the day of each chunk, or of its page, as the number YYYYMMDD; months have day 00."""
    chunks, pages = rows[0], rows[1]
    query = f"SELECT group_concat(p.id || ',' || {_day_number_sql(PAGE_DAY)}) FROM pages AS p"  # noqa: S608
    ids, days = _read_ids(db, query).reshape(-1, 2).T
    of_page = np.zeros(max(int(pages.max(initial=0)), int(ids.max(initial=0))) + 1, np.int32)
    of_page[ids] = days
    day_numbers: Array = of_page[pages]
    query = (
        f"SELECT group_concat(c.id || ',' || {_day_number_sql('c.date')}) FROM chunks AS c"  # noqa: S608 (fixed)
        " INDEXED BY chunks_by_date WHERE c.date IS NOT NULL"
    )
    ids, days = _read_ids(db, query).reshape(-1, 2).T
    order = np.argsort(ids)
    ids, days = ids[order], days[order]
    at = np.minimum(np.searchsorted(ids, chunks), max(len(ids) - 1, 0))
    dated = ids[at] == chunks if len(ids) else np.zeros(len(chunks), bool)
    day_numbers[dated] = days[at[dated]]
    return day_numbers


def _day_number_sql(day: str) -> str:
    """Return an SQL expression that converts a day or month into a number."""
    return f"CAST(substr(replace({day}, '-', '') || '00', 1, 8) AS INTEGER)"


CHUNK_RESIDENT_BYTES = 256 * 1024 * 1024
"""Vectors of a model are cached in RAM up to this size.

Beyond it, those on the shortlist are read from the database.
"""

MOST_DELETED = 1_000
"""A cached table of chunks or entries is reloaded if it has over 1.25 times the existing rows plus this number."""


COVERAGE_SECONDS = 1.0
"""Seconds for which the number of embedded chunks is cached despite writes."""

MOST_PAGE_VECTORS = 1_500
"""At most this many vectors are summed per query. Of the last page, only some vectors may be included."""


ENTRY_DISCOUNT = 0.03
"""Subtracted from the cosine of an entry, because the nearest of many short texts is often near by chance."""


class VectorIndex:
    """Base class: nearest-neighbour search over chunk or turn vectors, which are cached in this process."""

    TABLES = ""
    """The query for the VectorTables of a model."""

    COUNTED = 1
    """`nearest` counts the distinct values in this column of the rows of `_texts`, and stops when there are enough.

    Column 0 is the id of the vector, and column 1 the id of the chunk or turn.
    """

    def __init__(self, db: "Database", resident_bytes: int, shared: "ViewCache | None" = None) -> None:
        self._db = db
        self._resident_bytes = resident_bytes
        self._lock: AbstractContextManager[Any] = nullcontext()
        self._views: dict[str, VectorView] = {}
        if shared is not None:
            self._lock, self._views = shared.lock, shared.views(type(self).__name__, db.path)
        self._seen: dict[str, tuple[VectorView, int]] = {}
        """The view of each model, and the database version at which this connection last refreshed it."""

    def nearest(
        self,
        model: str,
        query: np.ndarray[Any, Any],
        k: int,
        filters: "SearchFilters | None" = None,
        scored_by: np.ndarray[Any, Any] | None = None,
    ) -> list[tuple[int, float]]:
        """Return ids and scores of the `k` nearest chunks or turns that pass the filters, best first.

        Scores are cosines with `query`, or dot products with `scored_by` if it is given. Fewer than `k` chunks may be
        returned if several of the nearest vectors belong to one chunk.
        """
        query = np.ascontiguousarray(query, np.float32)
        with self._db.reading(), self._lock:
            view = self._view(model)
            view.warm_up()
            slots = view.allowed(filters) if filters is not None and any(filters) else None
            most = len(view) if slots is None else len(slots)
            fetch = k + SPARE_RESULTS
            while True:
                matches = view.best(query, min(fetch, most), slots, scored_by)
                rows = self._texts(view.tables.vectors, matches, filters)
                if len({row[self.COUNTED] for row in rows}) >= k or fetch >= most:
                    return _scored_texts(rows, matches)[:k]
                fetch *= 4

    def mean(self, model: str) -> "tuple[Array, int]":
        """Return the mean of all vectors, and their number.

        The dot product of the mean with a query is the expected cosine of unrelated content.
        """
        with self._db.reading(), self._lock:
            view = self._view(model)
            return view.mean(), len(view)

    def spread(self, model: str) -> tuple[float, int]:
        """Return the standard deviation of all vectors from their mean, averaged over the dimensions.

        Return also the number of vectors.
        """
        mean, count = self.mean(model)
        return float(np.sqrt(max(0.0, 1 - float(mean @ mean)) / len(mean))), count

    def _view(self, model: str) -> "VectorView":
        """Return the view of a model, refreshed to the current snapshot."""
        version = self._db.snapshot_version()
        view = self._views.get(model)
        if view is None or self._seen.get(model) != (view, version):
            tables = vectors.tables_of_row(self._db.one(self.TABLES, (model,)), model)
            if self._db.only:
                # Codes and mean cover all vectors. If only some are visible, the visible ones are compared exactly.
                tables = tables._replace(encoding=0, mean=None, mean_of=0)
                view = None if view is not None and view.is_incomplete() else view
            if view is None or view.tables != tables:
                questions = view.questions if view else 0
                view = self._views[model] = self._new_view(tables, questions)
        view.use(self._db)
        if self._seen.get(model) != (view, version):
            try:
                view.refresh()
            except BaseException:  # for example, a cancelled call may leave a partly refreshed view
                del self._views[model]
                raise
            self._seen[model] = view, version
        return view

    def _new_view(self, tables: "VectorTables", questions: int) -> "VectorView":
        return VectorView(self._db, tables, self._resident_bytes, questions)

    def _texts(
        self, table: str, matches: list[tuple[int, float]], filters: "SearchFilters | None"
    ) -> list[tuple[int, int, float]]:
        """Return the existing chunks or turns that have these vectors and pass the filters.

        Each row has a vector id, the id of a chunk or turn, and the amount to subtract from the cosine.
        """
        raise NotImplementedError


class ChunkIndex(VectorIndex):
    """Nearest-neighbour search over the vectors of chunks and of their entries.

    An entry is a part of a chunk, such as a list item. The score of a chunk is the best score of its own vector and
    the vectors of its entries; ENTRY_DISCOUNT is subtracted from the score of an entry.
    """

    TABLES = vectors.CHUNK_TABLES
    COUNTED = 0
    """Vectors are counted, because many of the nearest vectors may belong to one chunk.

    If chunks were counted, nearest() might repeat its search many times.
    """

    def __init__(
        self,
        db: "Database",
        resident_bytes: int = CHUNK_RESIDENT_BYTES,
        shared: "ViewCache | None" = None,
    ) -> None:
        super().__init__(db, resident_bytes, shared)

    def made(self, model: "EmbeddingModel") -> tuple[int, int]:
        """Return the numbers of embedded chunks and of all chunks.

        If there are many chunks, the numbers may be COVERAGE_SECONDS old, so that frequent writes do not force a
        new count for each query.
        """
        estimate = embedding_queue.ChunkQueue(self._db, model.name).estimate_coverage
        coverage = self._db.cached(
            f"vectors lately made by {model.name}", estimate, lambda _: estimate(), COVERAGE_SECONDS
        )
        if coverage.total <= embedding_queue.FEW_CHUNKS or coverage.lacking == coverage.total:
            coverage = estimate()
        return coverage.total - coverage.lacking, coverage.total

    def cosines(self, model: str, query: np.ndarray[Any, Any], chunk_ids: list[int]) -> dict[int, float]:
        """Return the cosine of each of these chunks, or of its nearest entry if that is higher.

        ENTRY_DISCOUNT is subtracted from the cosine of an entry. Chunks without any vector are left out.
        """
        query = np.asarray(query, np.float32)
        with self._db.reading(), self._lock:
            view = self._view(model)
            assert isinstance(view, _ChunkView)
            cosines: dict[int, float] = {}
            for (ids, vectors), less in (
                (view.of_chunks(chunk_ids), 0.0),
                (view.of_entries(chunk_ids), ENTRY_DISCOUNT),
            ):
                for chunk_id, score in zip(ids.tolist(), (vectors @ query - less).tolist(), strict=True):
                    if chunk_id not in cosines or score > cosines[chunk_id]:
                        cosines[chunk_id] = score
        return cosines

    def entry_cosines(
        self, model: str, query: np.ndarray[Any, Any], chunk_ids: list[int]
    ) -> dict[tuple[int, int], float]:
        """Return the cosines of the entries of these chunks by chunk id and start offset."""
        with self._db.reading(), self._lock:
            view = self._view(model)
            rows = self._db.rows(
                "SELECT e.chunk_id, e.start_at, v.id FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name)
                " CROSS JOIN chunk_entries AS e ON e.chunk_id = wanted.value"
                f" CROSS JOIN {view.tables.vectors} AS v ON v.content_hash = e.content_hash AND v.model = ?",
                (str(chunk_ids), model),
            )
            scores = view.cosines(np.asarray(query, np.float32), [row[2] for row in rows])
        return {row[:2]: scores[row[2]] for row in rows if row[2] in scores}

    def vectors_of(self, model: str, chunk_ids: list[int]) -> "tuple[Array, Array]":
        """Return the ids of those chunks that have a vector, in the given order, and their vectors.

        The caller must have read the chunk ids in the same snapshot.
        """
        with self._db.reading(), self._lock:
            view = self._view(model)
            assert isinstance(view, _ChunkView)
            return view.of_chunks(chunk_ids)

    def page_cosines(self, model: str, query: np.ndarray[Any, Any], page_ids: list[int]) -> dict[int, float]:
        """Return the cosine of the summed chunk vectors of each page, by page id.

        Pages without vectors, and pages beyond the first MOST_PAGE_VECTORS chunks, are left out.
        """
        with self._db.reading():
            page_of = chunks_of_pages(self._db, page_ids, MOST_PAGE_VECTORS)
            ids, vectors = self.vectors_of(model, list(page_of))
        if not len(ids):
            return {}
        pages = np.array([page_of[chunk_id] for chunk_id in ids.tolist()])
        starts = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]])
        sums = np.add.reduceat(vectors, starts, axis=0)
        scores = sums @ np.asarray(query, np.float32) / np.maximum(np.linalg.norm(sums, axis=1), 1e-9)
        return dict(zip(pages[starts].tolist(), scores.tolist(), strict=True))

    def _new_view(self, tables: "VectorTables", questions: int) -> "VectorView":
        return _ChunkView(self._db, tables, self._resident_bytes, questions)

    def _texts(
        self, table: str, matches: list[tuple[int, float]], filters: "SearchFilters | None"
    ) -> list[tuple[int, int, float]]:
        conditions, values = page_conditions(filters) if filters is not None else ("", ())
        where = ""
        if filters is not None and conditions:
            pages = f"pages AS p{page_index_hint(filters)} ON p.id = c.page_id"
            where = f" CROSS JOIN {pages} WHERE p.quarantined_at IS NULL AND {conditions}"
        wanted = f"FROM json_each(?) AS wanted CROSS JOIN {table} AS v ON v.id = wanted.value CROSS JOIN"
        entries = "chunk_entries AS e ON e.content_hash = v.content_hash CROSS JOIN chunks AS c ON c.id = e.chunk_id"
        ids = (str([vector_id for vector_id, _ in matches]), *values)
        return self._db.rows(
            f"SELECT v.id, c.id, 0.0 {wanted} chunks AS c ON c.content_hash = v.content_hash{where}"
            f" UNION ALL SELECT v.id, c.id, {ENTRY_DISCOUNT} {wanted} {entries}{where}",
            (*ids, *ids),
        )


def _scored_texts(
    rows: list[tuple[int, int, float]], matches: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Return each chunk or turn id with its best score, best first. `rows` are as returned by `_texts`."""
    texts: dict[int, list[tuple[int, float]]] = {}
    for vector_id, text_id, less in rows:
        texts.setdefault(vector_id, []).append((text_id, less))
    best: dict[int, float] = {}
    for vector_id, cosine in matches:
        for text_id, less in texts.get(vector_id, ()):
            if text_id not in best or cosine - less > best[text_id]:
                best[text_id] = cosine - less
    return sorted(best.items(), key=lambda row: -row[1])


class _ChunkView(VectorView):
    """In-memory view of chunk vectors and, from the second query on, the mapping of chunks to vectors."""

    def __init__(self, db: "Database", tables: VectorTables, resident_bytes: int, questions: int) -> None:
        self._chunks: _ChunkTable | None = None
        self._entries: _EntryTable | None = None
        super().__init__(db, tables, resident_bytes, questions)

    def refresh(self) -> int:
        """Read the vectors and chunks added since the last call. Return the highest vector id read before."""
        last = super().refresh()
        for table in (self._chunks, self._entries):
            if table is not None:
                table.refresh(self._db, self.tables, last, self._ids)
        return last

    def warm_up(self) -> None:
        """Count a query and, from the second query on, cache the vectors and the mapping of chunks to vectors."""
        super().warm_up()
        if self.questions > 1 and self._chunks is None:
            self._chunks, self._entries = _ChunkTable(), _EntryTable()
            self._chunks.refresh(self._db, self.tables, 0, self._ids)
            self._entries.refresh(self._db, self.tables, 0, self._ids)

    def allowed(self, filters: "SearchFilters") -> "Array":
        """Return the positions of the vectors whose chunks pass the filters."""
        if self._chunks is not None and self._entries is not None:
            allowed = self._chunks.mask(self._db, filters, len(self))
            if len(self._entries):
                allowed |= self._entries.mask(self._db, filters, len(self))
            return np.flatnonzero(allowed)
        pages, conditions, values = _filtered_pages(self._db, filters)
        entries = " CROSS JOIN chunk_entries AS e ON e.chunk_id = c.id"
        ids = [
            _read_ids(
                self._db,
                f"{pages}SELECT group_concat(v.id) FROM pages AS p CROSS JOIN chunks AS c ON c.page_id = p.id{join}"  # noqa: S608
                f" CROSS JOIN {self.tables.vectors} AS v ON v.content_hash = {text}.content_hash AND v.model = ?"
                f" WHERE p.quarantined_at IS NULL AND {conditions}",
                (self.tables.model, *values),
            )
            for text, join in (("c", ""), ("e", entries))
        ]
        return np.flatnonzero(np.isin(self._ids, np.concatenate(ids)))

    def of_entries(self, chunk_ids: list[int]) -> "tuple[Array, Array]":
        """Return the vectors of the entries of these chunks, and the chunk id of each."""
        if self._entries is not None and self._vectors is not None:
            chunks, places = self._entries.of_chunks(np.array(chunk_ids, np.int64))
            return chunks, self._cached_at(places)
        return self._vectors_in(
            self._db.rows(
                "SELECT e.chunk_id, v.vector FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name)
                " CROSS JOIN chunk_entries AS e ON e.chunk_id = wanted.value"
                f" CROSS JOIN {self.tables.vectors} AS v ON v.content_hash = e.content_hash AND v.model = ?",
                (str(chunk_ids), self.tables.model),
            )
        )

    def of_chunks(self, chunk_ids: list[int]) -> "tuple[Array, Array]":
        """Return the ids of those chunks that have a vector, and their vectors, from the cache or the database."""
        if self._chunks is not None:
            with_vectors, places = self._chunks.with_vectors(np.array(chunk_ids, np.int64))
            if self._vectors is not None:
                return with_vectors, self._cached_at(places)
            # Reading by id takes half the time of a lookup by content hash.
            ids, vectors = self._read_at(np.unique(places))
            stored_places = np.searchsorted(self._ids, ids)
            at = np.searchsorted(stored_places, places)
            is_stored = at < len(stored_places)
            is_stored[is_stored] = stored_places[at[is_stored]] == places[is_stored]
            return with_vectors[is_stored], vectors[at[is_stored]]
        return self._vectors_in(
            self._db.rows(
                "SELECT c.id, v.vector FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name)
                " CROSS JOIN chunks AS c ON c.id = wanted.value"
                f" CROSS JOIN {self.tables.vectors} AS v ON v.content_hash = c.content_hash AND v.model = ?",
                (str(chunk_ids), self.tables.model),
            )
        )


class _ChunkTable:
    """A mapping of chunks to pages and vector positions, which may contain deleted chunks."""

    HASH = "c.content_hash"
    """The column with the content hash of a vector."""
    ALL = "chunks AS c INDEXED BY chunks_by_page"
    OF_CHUNK = "chunks AS c"
    OF_VECTOR = "chunks AS c ON c.content_hash = v.content_hash"
    """SQL joins that give chunks c with HASH: for all chunks, for given chunks, and for given vectors v."""

    def __init__(self) -> None:
        self._days = ChunkDays()
        self._forget()

    def _forget(self) -> None:
        self._last = self._looked_at = 0
        self._table = GrowingArray(np.empty((3, 0), np.int64))

    def __len__(self) -> int:
        return int(self._rows.shape[1])

    @property
    def _rows(self) -> "Array":
        """Three rows: chunk id (ascending), page id, vector position."""
        return self._table.now

    def refresh(self, db: "Database", tables: VectorTables, last_vector: int, ids: "Array") -> None:
        """Read the chunks and vectors added since the last call."""
        # Counting is expensive, so it is done rarely.
        if self._rows.shape[1] > self._looked_at + MOST_DELETED:
            self._looked_at = self._rows.shape[1]
            if self._looked_at > 1.25 * self._count(db) + MOST_DELETED:
                self._forget()
                last_vector = 0
        new = self._all(db, tables) if not self._last else self._new(db, tables, last_vector)
        if new.size:
            new[2] = np.searchsorted(ids, new[2])
            new = new[:, np.argsort(new[0], kind="stable")]
            if self._rows.shape[1] and new[0, 0] < self._rows[0, -1]:
                rows = np.concatenate([self._rows, new], axis=1)
                self._table = GrowingArray(rows[:, np.argsort(rows[0], kind="stable")])
            else:
                self._table.add(new)
        self._last = max(self._last, highest_id(db))

    def _count(self, db: "Database") -> int:
        return count(db)

    def _all(self, db: "Database", tables: VectorTables) -> "Array":
        """Return chunk, page and vector id of every embedded chunk, from two covering indexes."""
        values = _read_ids(
            db,
            "SELECT group_concat(c.id || ',' || c.page_id || ',' || v.id)"  # noqa: S608 (the registry's name)
            f" FROM {self.ALL} CROSS JOIN {tables.vectors} AS v"
            f" ON v.content_hash = {self.HASH} AND v.model = ?",
            (tables.model,),
        )
        return values.reshape(-1, 3).T.copy()

    def _new(self, db: "Database", tables: VectorTables, last_vector: int) -> "Array":
        """Return chunk, page and vector id for new vectors, and for new chunks that share an older vector."""
        columns = "SELECT c.id, c.page_id, v.id FROM "
        new = db.rows(
            f"{columns}{tables.vectors} AS v CROSS JOIN {self.OF_VECTOR} WHERE v.id > ? AND v.model = ?",
            (last_vector, tables.model),
        )
        new += db.rows(
            f"{columns}{self.OF_CHUNK} CROSS JOIN {tables.vectors} AS v"
            f" ON v.content_hash = {self.HASH} AND v.model = ? WHERE c.id > ? AND v.id <= ?",
            (tables.model, self._last, last_vector),
        )
        return np.array(new, np.int64).reshape(-1, 3).T.copy()

    def with_vectors(self, chunk_ids: "Array") -> "tuple[Array, Array]":
        """Return the ids of those chunks that have a vector, and the position of the last vector of each."""
        at = np.searchsorted(self._rows[0], chunk_ids, side="right") - 1
        is_stored = at >= 0
        is_stored[is_stored] = self._rows[0][at[is_stored]] == chunk_ids[is_stored]
        return chunk_ids[is_stored], self._rows[2][at[is_stored]]

    def mask(self, db: "Database", filters: "SearchFilters", size: int) -> "Array":
        """Return for each of `size` vector positions whether a chunk with this vector passes the filters."""
        if filters.since or filters.until:
            of_days = self._days.within(db, self._rows, filters.since, filters.until)
            if of_days is not None:
                others = filters._replace(since=None, until=None)
                mask = np.zeros(size, bool)
                mask[self._rows[2][of_days]] = True
                return mask & self.mask(db, others, size) if any(others) else mask
        pages, conditions, values = _filtered_pages(db, filters)
        dated = bool(pages)
        chunk = " CROSS JOIN chunks AS c ON c.page_id = p.id" if dated else ""
        allowed_ids = _read_ids(
            db,
            f"{pages}SELECT group_concat({'c' if dated else 'p'}.id)"  # noqa: S608 (fixed conditions)
            f" FROM pages AS p{chunk} WHERE p.quarantined_at IS NULL AND {conditions}",
            values,
        )
        rows = self._rows[0 if dated else 1]
        is_allowed = np.zeros(max(rows.max(initial=0), allowed_ids.max(initial=0)) + 1, bool)
        is_allowed[allowed_ids] = True
        mask = np.zeros(size, bool)
        mask[self._rows[2][is_allowed[rows]]] = True
        return mask


class _EntryTable(_ChunkTable):
    """A mapping of chunks to pages and the vector positions of their entries."""

    HASH = "e.content_hash"
    ALL = "chunk_entries AS e CROSS JOIN chunks AS c ON c.id = e.chunk_id"
    OF_CHUNK = "chunks AS c CROSS JOIN chunk_entries AS e ON e.chunk_id = c.id"
    OF_VECTOR = (
        "chunk_entries AS e ON e.content_hash = v.content_hash CROSS JOIN chunks AS c ON c.id = e.chunk_id"
    )

    def _count(self, db: "Database") -> int:
        return int((db.one("SELECT count(*) FROM chunk_entries") or (0,))[0])

    def of_chunks(self, chunk_ids: "Array") -> "tuple[Array, Array]":
        """Return chunk id and vector position of each entry of these chunks."""
        starts = np.searchsorted(self._rows[0], chunk_ids)
        counts = np.searchsorted(self._rows[0], chunk_ids, side="right") - starts
        before = np.cumsum(counts) - counts
        at = np.arange(counts.sum()) + np.repeat(starts - before, counts)
        return self._rows[0][at], self._rows[2][at]


def _filtered_pages(db: "Database", filters: "SearchFilters") -> tuple[str, str, tuple[str, ...]]:
    """Return WITH clause, WHERE conditions and parameters for the filters.

    With date filters, the day is computed once per page instead of once per chunk.
    """
    if not (filters.since or filters.until):
        return "", *page_conditions(filters)
    visible = f"{db.connection.schema}.pages"
    dated = f"SELECT id, type, wing, collection_id, quarantined_at, {PAGE_DAY} AS day FROM {visible} AS p"  # noqa: S608
    return f"WITH pages AS MATERIALIZED ({dated}) ", *page_conditions(filters, "p.day")


def _read_ids(db: "Database", sql: str, values: tuple[str, ...] = ()) -> "Array":
    """Read ids as one concatenated string, which is far cheaper than as many rows."""
    row = db.one(sql, values)
    return np.fromstring(row[0], np.int64, sep=",") if row and row[0] else np.empty(0, np.int64)


TURN_RESIDENT_BYTES = 64 * 1024 * 1024
"""Turn vectors are cached in RAM up to this size, enough for 42,000 parts of turns with 384 dimensions.

Beyond it only codes are cached.

The limit is lower than for chunks, because conversations are searched less often than pages.
"""


class TurnIndex(VectorIndex):
    """Nearest-neighbour search over the vectors of turns. The score of a turn is the score of its best part."""

    TABLES = vectors.TURN_TABLES

    def __init__(
        self,
        db: "Database",
        resident_bytes: int = TURN_RESIDENT_BYTES,
        shared: "ViewCache | None" = None,
    ) -> None:
        super().__init__(db, resident_bytes, shared)

    def made(self, model: "EmbeddingModel") -> tuple[int, int]:
        """Return the numbers of embedded and of all distinct turn parts, cached until the next write."""
        queue = embedding_queue.TurnQueue(self._db, model.name)
        return self._db.cached(f"turns embedded by {model.name}", queue.coverage)

    def cosines(self, model: str, query: np.ndarray[Any, Any], turn_ids: list[int]) -> dict[int, float]:
        """Return the cosine of the best part of each of these turns that has a vector."""
        return {turn: score for turn, (score, _) in self.best_parts(model, query, turn_ids).items()}

    def best_parts(
        self, model: str, query: np.ndarray[Any, Any], turn_ids: list[int]
    ) -> dict[int, tuple[float, int]]:
        """Return cosine and start offset of the best part of each of these turns that has a vector."""
        rows = self._db.rows(
            "SELECT p.turn_id, p.start_at, v.vector FROM json_each(?) AS wanted"
            " CROSS JOIN turn_parts AS p ON p.turn_id = wanted.value"
            " CROSS JOIN turn_vectors AS v ON v.content_hash = p.content_hash AND v.model = ?",
            (str(turn_ids), model),
        )
        if not rows:
            return {}
        vectors = np.frombuffer(b"".join([row[2] for row in rows]), "<f2").reshape(len(rows), -1)
        scores = (vectors.astype(np.float32) @ np.asarray(query, np.float32)).tolist()
        best: dict[int, tuple[float, int]] = {}
        for (turn_id, start, _), score in zip(rows, scores, strict=True):
            if turn_id not in best or score > best[turn_id][0]:
                best[turn_id] = score, start
        return best

    def _texts(
        self,
        table: str,
        matches: list[tuple[int, float]],
        filters: "SearchFilters | None",  # noqa: ARG002 (turns have no filters)
    ) -> list[tuple[int, int, float]]:
        return self._db.rows(
            f"SELECT v.id, p.turn_id, 0.0 FROM json_each(?) AS wanted CROSS JOIN {table} AS v ON v.id = wanted.value"  # noqa: S608
            " CROSS JOIN turn_parts AS p ON p.content_hash = v.content_hash ORDER BY p.id DESC",
            (str([vector_id for vector_id, _ in matches]),),
        )
