"""The queue of chunks and turn parts without a vector, and the state of the process that embeds them.

A turn part is a piece of a conversation turn (message). Row ids only increase and no row loses its vector, so
after a write only new rows and rows without a vector have to be checked. For turn parts, a parameter `since` is a
timestamp: conversations that ended before it are skipped.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model import chunker
from quaid.model.chunker import embedding_text
from quaid.storage import chunks, leases
from quaid.storage.vectors import (
    active_model,
    find_model,
    keep_chunk_vectors,
    keep_turn_vectors,
    require_model,
)

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction
    from quaid.storage.vectors import EmbeddingModel

LEASE = "embed"
"""Name of the lease (see leases.py) of the embedding process.

The lease contains the current run or the last failure.
"""

LONGEST_PROBLEM = 600  # characters; a message of this length fits into the lease file even with JSON escapes


class EmbeddingRun(NamedTuple):
    """A process that is embedding now."""

    model: str
    process: int
    since: str


class EmbeddingFailure(NamedTuple):
    """The last failure to embed."""

    model: str
    problem: str
    at: str
    down: bool = False
    """True if the model did not respond; False if the model returned no vectors for some of the inputs."""


def current_run(database_path: str) -> EmbeddingRun | None:
    """Return the current embedding run, or None."""
    state = leases.read_state(database_path, LEASE)
    if "model" not in state or not leases.is_leased(database_path, LEASE):
        return None
    return EmbeddingRun(str(state["model"]), int(state.get("pid", 0)), str(state.get("since", "")))


def last_failure(database_path: str) -> EmbeddingFailure | None:
    """Return the last failure, or None if embedding has succeeded since."""
    state = leases.read_state(database_path, LEASE)
    if "failed" not in state:
        return None
    model, problem, moment = [str(state.get(name, "")) for name in ("failed", "problem", "at")]
    return EmbeddingFailure(model, problem, moment, bool(state.get("down")))


def failure_state(model: str, problem: str, now: str, *, down: bool = False) -> dict[str, Any]:
    """Return the content of the lease that records a failure."""
    if len(problem) > LONGEST_PROBLEM:
        problem = problem[: LONGEST_PROBLEM - 1] + "…"
    return {"failed": model, "problem": problem, "at": now, "down": down}


def record_state(database_path: str, state: dict[str, Any]) -> None:
    """Record a failure, or clear it with {}. Do nothing while another process embeds."""
    lease = leases.Lease(database_path, LEASE)
    if lease.try_take():
        try:
            lease.write(state)
        finally:
            lease.release()


MOST_LINKS_COUNTED = 1_000
"""Incoming links per page are counted up to this number to order the queue; more make no difference."""

RECENT_PAGES = 32
"""All chunks of this many most recently changed pages are embedded before the first chunks of other pages."""


class PendingText(NamedTuple):
    """A content hash without a vector, and the text to embed."""

    content_hash: bytes
    text: str


def _no_vector(table: str, text: str = "c") -> str:
    """Return the SQL condition that a row has no vector. Its parameter is the model's name.

    `text` is the table alias of the row: a chunk or a turn part.
    """
    return (
        f"NOT EXISTS (SELECT 1 FROM {table} AS v WHERE v.content_hash = {text}.content_hash AND v.model = ?)"  # noqa: S608
    )


def _chunks_without_vector(table: str) -> str:
    """Return an SQL join that selects all chunks c without a vector. Its parameter is the model's name.

    EXCEPT merges two indexes of the same order; looking up each chunk would take twice as long.
    """
    return (
        f"(SELECT content_hash FROM chunks EXCEPT SELECT content_hash FROM {table} WHERE model = ?) AS lacking"  # noqa: S608
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash"
    )


class ChunkQueue:
    """The chunks of pages that have no vector from a model."""

    def __init__(self, db: "Database", model: str) -> None:
        self._db, self._model = db, model

    def missing(self, slugs: list[str] | None = None) -> list[int]:
        """Return the ids of chunks without a vector in the order in which they are to be embedded.

        The chunks of the most recently changed pages come first. Then follow the first chunks of the other
        pages, which mostly contain the summary, and then all other chunks. In each group, pages changed later
        come first; pages changed at the same time, as in an import, are ordered by their number of incoming
        links. `slugs` limits the result to these pages.
        """
        among = "" if slugs is None else " AND p.slug IN (SELECT value FROM json_each(?))"
        table = require_model(self._db, self._model).vec_table
        rows = self._db.rows(
            f"SELECT c.id, p.id, c.chunk_index FROM {_chunks_without_vector(table)}"  # noqa: S608 (checked)
            f" CROSS JOIN pages AS p ON p.id = c.page_id{among}"
            " ORDER BY p.updated_at DESC, (SELECT count(*) FROM"
            " (SELECT 1 FROM links WHERE to_page_id = p.id LIMIT ?)) DESC, p.id DESC, c.chunk_index",
            (self._model, *([] if slugs is None else [json.dumps(slugs)]), MOST_LINKS_COUNTED),
        )
        recent = set(list(dict.fromkeys(page_id for _, page_id, _ in rows))[:RECENT_PAGES])
        groups: tuple[list[int], ...] = ([], [], [])
        for chunk_id, page_id, position in rows:
            groups[0 if page_id in recent else 1 if position == 0 else 2].append(chunk_id)
        return [chunk_id for group in groups for chunk_id in group]

    def pages_begun(self) -> int:
        """Return the number of pages whose first chunk has a vector."""
        model = find_model(self._db, self._model)
        if model is None:
            return 0
        row = self._db.one(
            f"SELECT count(*) FROM chunks AS c WHERE c.chunk_index = 0 AND NOT {_no_vector(model.vec_table)}",  # noqa: S608
            (self._model,),
        )
        return row[0] if row else 0

    def coverage(self) -> tuple[int, int]:
        """Return the numbers of chunks with a vector (0 if the model is not registered) and of all chunks."""
        model = find_model(self._db, self._model)
        if model is None:
            return 0, chunks.count(self._db)
        missing = _chunks_without_vector(model.vec_table)
        row = self._db.one(
            f"SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM {missing})",  # noqa: S608
            (self._model,),
        )
        return (row[0] - row[1], row[0]) if row else (0, 0)

    def estimate_coverage(self) -> "VectorCoverage":
        """Return the cached coverage of a registered model. It may miss a few chunks without a vector."""
        db, model = self._db, require_model(self._db, self._model)
        return db.cached(
            f"vectors made by {model.name}",
            lambda: _measure_coverage(db, model),
            lambda seen: _update_coverage(db, model, seen),
        )

    def by_page(self, chunk_ids: list[int]) -> list[tuple[int, int]]:
        """Return these chunks as (id, token count). Chunks of the most recently chunked pages come first."""
        rows = self._db.rows(
            "SELECT c.id, c.token_count, max(c.id) OVER (PARTITION BY c.page_id) AS latest"
            " FROM json_each(?) AS wanted CROSS JOIN chunks AS c ON c.id = wanted.value ORDER BY latest DESC, c.id",
            (str(chunk_ids),),
        )
        return [(chunk_id, tokens) for chunk_id, tokens, _ in rows]

    def newest(self, after: int, since: str, limit: int) -> list[tuple[int, int]]:
        """Return up to `limit` recent chunks without a vector as (id, token count), ordered like by_page().

        The chunks have an id above `after` and belong to pages saved since the time `since`.
        """
        table = require_model(self._db, self._model).vec_table
        rows = self._db.rows(
            f"SELECT c.id FROM chunks AS c WHERE c.id > ? AND {_no_vector(table)}"  # noqa: S608 (the registry's name)
            " AND (SELECT p.updated_at FROM pages AS p WHERE p.id = c.page_id) >= ? ORDER BY c.id DESC LIMIT ?",
            (max(after, chunks.highest_id(self._db) - RECENT_IDS), self._model, since, limit),
        )
        return self.by_page([chunk_id for (chunk_id,) in rows])

    def texts(self, chunk_ids: list[int]) -> list[PendingText]:
        """Return the content of these chunks in order, except duplicates and content that has a vector."""
        rows = self._db.rows(
            "SELECT c.content_hash, p.title, c.heading_path, c.chunk_text FROM json_each(?) AS wanted"  # noqa: S608
            " CROSS JOIN chunks AS c ON c.id = wanted.value CROSS JOIN pages AS p ON p.id = c.page_id"
            f" WHERE {_no_vector(require_model(self._db, self._model).vec_table)}",
            (str(chunk_ids), self._model),
        )
        return list({row[0]: PendingText(row[0], embedding_text(*row[1:])) for row in rows}.values())

    def tokens(self, chunk_ids: list[int] | None) -> int:
        """Return the total token count of these chunks, or of all chunks."""
        among = "" if chunk_ids is None else " WHERE id IN (SELECT value FROM json_each(?))"
        values = () if chunk_ids is None else (str(chunk_ids),)
        row = self._db.one(f"SELECT sum(token_count) FROM chunks{among}", values)  # noqa: S608
        return row[0] or 0 if row else 0

    def owners(self, hashes: list[bytes]) -> tuple[str, ...]:
        """Return the slugs of the pages with chunks that have these content hashes."""
        rows = self._db.rows(
            "SELECT DISTINCT p.slug FROM json_each(?) AS wanted CROSS JOIN chunks AS c"
            " ON c.content_hash = unhex(wanted.value) CROSS JOIN pages AS p ON p.id = c.page_id ORDER BY p.slug",
            (json.dumps([content_hash.hex() for content_hash in hashes]),),
        )
        return tuple(slug for (slug,) in rows)

    def store(self, tx: "Transaction", vectors: list[tuple[bytes, bytes]], now: str) -> int:
        """Store vectors as (content hash, little-endian float32 bytes). Return the number of new rows."""
        return keep_chunk_vectors(tx, self._model, vectors, now)


class EntryQueue:
    """The entries of chunks, such as list items (see chunker.find_entries()), without a vector of a model."""

    def __init__(self, db: "Database", model: str) -> None:
        self._db, self._model = db, model

    def missing(self, slugs: list[str] | None = None) -> list[int]:
        """Return the ids of entries without a vector. Entries of the most recently changed pages come first.

        `slugs` limits the result to these pages.
        """
        among = "" if slugs is None else " AND p.slug IN (SELECT value FROM json_each(?))"
        table = require_model(self._db, self._model).vec_table
        rows = self._db.rows(
            "SELECT e.id FROM (SELECT content_hash FROM chunk_entries EXCEPT"  # noqa: S608 (checked)
            f" SELECT content_hash FROM {table} WHERE model = ?) AS lacking"
            " CROSS JOIN chunk_entries AS e ON e.content_hash = lacking.content_hash"
            " CROSS JOIN chunks AS c ON c.id = e.chunk_id"
            f" CROSS JOIN pages AS p ON p.id = c.page_id{among} ORDER BY p.updated_at DESC, e.id",
            (self._model, *([] if slugs is None else [json.dumps(slugs)])),
        )
        return [entry_id for (entry_id,) in rows]

    def newest(self, limit: int) -> list[int]:
        """Return the ids of up to `limit` entries without a vector, among the RECENT_ENTRIES newest entries."""
        table = require_model(self._db, self._model).vec_table
        rows = self._db.rows(
            "SELECT e.id FROM (SELECT id, content_hash FROM chunk_entries ORDER BY id DESC LIMIT ?) AS e"  # noqa: S608
            f" WHERE {_no_vector(table, 'e')} ORDER BY e.id DESC LIMIT ?",
            (RECENT_ENTRIES, self._model, limit),
        )
        return [entry_id for (entry_id,) in rows]

    def count(self) -> int:
        """Return the number of entries without a vector. Entries with the same text are counted once."""
        model = find_model(self._db, self._model)
        made = f" EXCEPT SELECT content_hash FROM {model.vec_table} WHERE model = ?" if model else ""  # noqa: S608
        row = self._db.one(
            f"SELECT count(*) FROM (SELECT DISTINCT content_hash FROM chunk_entries{made})",  # noqa: S608 (checked)
            (self._model,) if model else (),
        )
        return row[0] if row else 0

    def texts(self, entry_ids: list[int]) -> list[PendingText]:
        """Return the content of these entries in order, except duplicates and content that has a vector."""
        rows = self._db.rows(
            "SELECT e.content_hash, e.start_at, p.title, c.heading_path, c.chunk_text FROM json_each(?) AS wanted"  # noqa: S608
            " CROSS JOIN chunk_entries AS e ON e.id = wanted.value CROSS JOIN chunks AS c ON c.id = e.chunk_id"
            " CROSS JOIN pages AS p ON p.id = c.page_id"
            f" WHERE {_no_vector(require_model(self._db, self._model).vec_table, 'e')}",
            (str(entry_ids), self._model),
        )
        texts: dict[bytes, PendingText] = {}
        for content_hash, start, title, heading_path, chunk in rows:
            for entry in chunker.find_entries(chunk, heading_path):
                if entry.start == start:
                    text = chunker.entry_embedding_text(title, chunk, entry)
                    texts.setdefault(content_hash, PendingText(content_hash, text))
        return list(texts.values())

    def owners(self, hashes: list[bytes]) -> tuple[str, ...]:
        """Return the slugs of the pages with entries that have these content hashes."""
        rows = self._db.rows(
            "SELECT DISTINCT p.slug FROM json_each(?) AS wanted CROSS JOIN chunk_entries AS e"
            " ON e.content_hash = unhex(wanted.value) CROSS JOIN chunks AS c ON c.id = e.chunk_id"
            " CROSS JOIN pages AS p ON p.id = c.page_id ORDER BY p.slug",
            (json.dumps([content_hash.hex() for content_hash in hashes]),),
        )
        return tuple(slug for (slug,) in rows)

    def store(self, tx: "Transaction", vectors: list[tuple[bytes, bytes]], now: str) -> int:
        """Store vectors as (content hash, little-endian float32 bytes). Return the number of new rows."""
        return keep_chunk_vectors(tx, self._model, vectors, now)


def pending_texts(db: "Database", model: str, limit: int) -> list[PendingText]:
    """Return the content of the first `limit` chunks without a vector, except duplicates."""
    with db.reading():
        queue = ChunkQueue(db, model)
        return queue.texts(queue.missing()[:limit])


RECENT_IDS = 1_000
"""Number of newest chunk ids among which `ChunkQueue.newest` searches."""

RECENT_ENTRIES = 64
"""Number of newest entries among which `EntryQueue.newest` searches."""

FEW_CHUNKS = 2_000
"""Up to this many chunks are checked one by one, and up to this many ids of chunks without a vector are cached."""

SAMPLE_WINDOWS, SAMPLE_WINDOW = 8, 128
"""In larger memories, SAMPLE_WINDOWS windows of SAMPLE_WINDOW chunk ids are sampled.

If a sampled chunk lacks a vector, all chunks are counted.
"""

MOST_UPDATES = 64
"""After this many incremental updates all chunks are counted again, which takes 11 ms per million chunks."""


class VectorCoverage(NamedTuple):
    """The numbers of all chunks and of the chunks without a vector, with the state needed to update them."""

    total: int
    """The number of chunks. In a large memory, recently deleted chunks may be included."""
    lacking: int
    waiting: list[int] | None
    """The ids of the chunks without a vector, newest first; None if there are more than FEW_CHUNKS of them."""
    last: int
    """Highest chunk id."""
    looks: int = 0
    """Number of incremental updates since the last full count."""


def _measure_coverage(db: "Database", model: "EmbeddingModel") -> VectorCoverage:
    total, last = chunks.count(db), chunks.highest_id(db)
    if total <= FEW_CHUNKS:
        return _coverage_of(total, _lacking_among(db, model, "c.id > ?", 0), last)
    if not _sample_lacks_vector(db, model, last):
        tail = _newest_without_vector(db, model)
        if tail is not None:
            return _coverage_of(total, tail, last)
    covered, total = ChunkQueue(db, model.name).coverage()
    if total - covered > FEW_CHUNKS:
        return VectorCoverage(total, total - covered, None, last)
    sql = f"SELECT c.id FROM {_chunks_without_vector(model.vec_table)}"  # noqa: S608 (the registry's name)
    return _coverage_of(total, [chunk_id for (chunk_id,) in db.rows(sql, (model.name,))], last)


def _coverage_of(total: int, ids: list[int], last: int, looks: int = 0) -> VectorCoverage:
    return VectorCoverage(total, len(ids), sorted(ids, reverse=True), last, looks)


def _update_coverage(db: "Database", model: "EmbeddingModel", seen: VectorCoverage) -> VectorCoverage:
    if seen.waiting is None or seen.total <= FEW_CHUNKS or seen.looks >= MOST_UPDATES:
        return _measure_coverage(db, model)
    last = max(seen.last, chunks.highest_id(db))
    new = (db.one("SELECT count(*) FROM chunks WHERE id > ?", (seen.last,)) or (0,))[0]
    if new > FEW_CHUNKS:
        return _measure_coverage(db, model)
    ids = _lacking_among(db, model, "c.id > ?", seen.last)
    if seen.waiting:
        ids += _lacking_among(db, model, "c.id IN (SELECT value FROM json_each(?))", str(seen.waiting))
    if len(ids) > FEW_CHUNKS:
        return _measure_coverage(db, model)
    return _coverage_of(seen.total + new, ids, last, seen.looks + 1)


def _lacking_among(db: "Database", model: "EmbeddingModel", where: str, value: int | str) -> list[int]:
    """Return the ids of chunks without a vector that satisfy the condition `where`."""
    sql = f"SELECT c.id FROM chunks AS c WHERE {where} AND {_no_vector(model.vec_table)}"  # noqa: S608
    return [chunk_id for (chunk_id,) in db.rows(sql, (value, model.name))]


def _sample_lacks_vector(db: "Database", model: "EmbeddingModel", last: int) -> bool:
    """Return True if a chunk in the sampled windows lacks a vector. The newest chunks are not sampled."""
    starts = [last * place // SAMPLE_WINDOWS for place in range(SAMPLE_WINDOWS)]
    row = db.one(
        "SELECT 1 FROM json_each(?) AS start CROSS JOIN chunks AS c"  # noqa: S608 (the registry's name)
        f" ON c.id BETWEEN start.value AND start.value + ? WHERE {_no_vector(model.vec_table)} LIMIT 1",
        (str(starts), SAMPLE_WINDOW, model.name),
    )
    return row is not None


def _newest_without_vector(db: "Database", model: "EmbeddingModel") -> list[int] | None:
    """Return the ids of the newest chunks without a vector, or None if there are more than FEW_CHUNKS.

    Search backwards in growing windows until a window contains no such chunk.
    """
    ids: list[int] = []
    below, width = chunks.highest_id(db) + 1, SAMPLE_WINDOW
    while True:
        rows = db.rows(
            f"SELECT c.id, {_no_vector(model.vec_table)} FROM chunks AS c"  # noqa: S608 (the registry's name)
            " WHERE c.id < ? ORDER BY c.id DESC LIMIT ?",
            (model.name, below, width),
        )
        bare = [chunk_id for chunk_id, is_lacking in rows if is_lacking]
        ids += bare
        if not bare or len(ids) > FEW_CHUNKS:
            return ids if len(ids) <= FEW_CHUNKS else None
        below, width = rows[-1][0], 2 * width


# Parts of turns

_PARTS_WITHOUT_VECTOR = (
    " FROM conversations AS c CROSS JOIN conversation_turns AS t ON t.conversation_id = c.id"
    " CROSS JOIN turn_parts AS p ON p.turn_id = t.id"
    f" WHERE coalesce(c.ended_at, c.added_at) >= ? AND {_no_vector('turn_vectors', 'p')}"
)


class TurnQueue:
    """The parts of turns that have no vector from a model, in conversations that ended since a timestamp."""

    def __init__(self, db: "Database", model: str, since: str = "") -> None:
        self._db, self._model, self._since = db, model, since

    def missing(self) -> list[int]:
        """Return the ids of parts without a vector, starting with the most recently ended conversations."""
        if not highest_part_id(self._db):
            return []
        rows = self._db.rows(
            f"SELECT p.id{_PARTS_WITHOUT_VECTOR}"
            " ORDER BY coalesce(c.ended_at, c.added_at) DESC, c.id DESC, t.turn DESC, p.part",
            (self._since, self._model),
        )
        return [part_id for (part_id,) in rows]

    def count_turns(self) -> int:
        """Return the number of turns with a part that has no vector."""
        row = self._db.one(f"SELECT count(DISTINCT t.id){_PARTS_WITHOUT_VECTOR}", (self._since, self._model))
        return row[0] if row else 0

    def coverage(self) -> tuple[int, int]:
        """Return the numbers of distinct parts with a vector and of all distinct parts, of any age."""
        row = self._db.one(
            "SELECT (SELECT count(*) FROM turn_vectors WHERE model = ?),"
            " (SELECT count(DISTINCT content_hash) FROM turn_parts)",
            (self._model,),
        )
        return (min(row), row[1]) if row else (0, 0)

    def texts(self, part_ids: list[int]) -> list[PendingText]:
        """Return the content of these parts in order, except duplicates and content that has a vector."""
        rows = self._db.rows(
            "SELECT p.content_hash, t.role, t.text, p.start_at, p.end_at FROM json_each(?) AS wanted"  # noqa: S608 (fixed)
            " CROSS JOIN turn_parts AS p ON p.id = wanted.value"
            " CROSS JOIN conversation_turns AS t ON t.id = p.turn_id"
            f" WHERE {_no_vector('turn_vectors', 'p')}",
            (str(part_ids), self._model),
        )
        return list(
            {
                content_hash: PendingText(content_hash, chunker.turn_embedding_text(role, text[start:end]))
                for content_hash, role, text, start, end in rows
            }.values()
        )

    def tokens(self, part_ids: list[int]) -> int:
        """Return the estimated number of tokens of these parts."""
        row = self._db.one(
            "SELECT sum(end_at - start_at) FROM turn_parts WHERE id IN (SELECT value FROM json_each(?))",
            (str(part_ids),),
        )
        return (row[0] or 0) // 4 if row else 0

    def owners(self, hashes: list[bytes]) -> tuple[str, ...]:
        """Return the conversations with parts that have these content hashes, as client:session."""
        rows = self._db.rows(
            "SELECT DISTINCT c.client || ':' || c.session FROM json_each(?) AS wanted CROSS JOIN turn_parts AS p"
            " ON p.content_hash = unhex(wanted.value) CROSS JOIN conversation_turns AS t ON t.id = p.turn_id"
            " CROSS JOIN conversations AS c ON c.id = t.conversation_id ORDER BY 1",
            (json.dumps([content_hash.hex() for content_hash in hashes]),),
        )
        return tuple(name for (name,) in rows)

    def store(self, tx: "Transaction", vectors: list[tuple[bytes, bytes]], now: str) -> int:
        """Store vectors, except vectors of parts that no longer exist. Return the number of new rows."""
        return keep_turn_vectors(tx, self._model, vectors, now)


def highest_part_id(db: "Database") -> int:
    """Return the highest part id, or 0."""
    row = db.one("SELECT max(id) FROM turn_parts")
    return row[0] or 0 if row else 0


def has_missing_parts(db: "Database", model: str, since: str, after: int) -> bool:
    """Return True if a turn part with an id above `after` has no vector.

    An empty `since` means conversations of any age.
    """
    in_time = (
        " AND EXISTS (SELECT 1 FROM conversation_turns AS t JOIN conversations AS c ON c.id = t.conversation_id"
        " WHERE t.id = p.turn_id AND coalesce(c.ended_at, c.added_at) >= ?)"
    )
    row = db.one(
        f"SELECT 1 FROM turn_parts AS p WHERE p.id > ? AND {_no_vector('turn_vectors', 'p')}"  # noqa: S608 (fixed)
        f"{in_time if since else ''} LIMIT 1",
        (after, model, since)[: 3 if since else 2],
    )
    return row is not None


class EmbeddedRange(NamedTuple):
    """The highest ids of chunks, turn parts and entries up to which all rows have a vector of the model."""

    model: str | None = None
    chunk_id: int = 0
    part_id: int = 0
    turns: str = "none"
    """The turns that were checked: "none", "recent" or "all"."""
    entry_id: int = 0


def embedded_range(db: "Database", earlier: EmbeddedRange, since: str | None = None) -> EmbeddedRange | None:
    """Return the range that covers all chunks, entries and turn parts, or None if some are not embedded yet.

    `since` is a timestamp: only turns of conversations that ended since then are checked. "" means all turns
    and None no turns. Pages that are not chunked yet count as not embedded. Rows within `earlier` are not
    checked again.
    """
    turns = {None: "none", "": "all"}.get(since, "recent")
    with db.reading():
        if chunks.uncut_pages(db):
            return None
        model = active_model(db)
        last = chunks.highest_id(db)
        last_part = highest_part_id(db) if since is not None else 0
        if model is None:
            return None if last or last_part else EmbeddedRange()
        if earlier.model != model.name:
            earlier = EmbeddedRange()
        for table, first in (("chunks", earlier.chunk_id), ("chunk_entries", earlier.entry_id)):
            sql = f"SELECT 1 FROM {table} AS c WHERE c.id > ? AND {_no_vector(model.vec_table)} LIMIT 1"  # noqa: S608
            if db.one(sql, (first, model.name)):
                return None
        last_entry = (db.one("SELECT max(id) FROM chunk_entries") or (0,))[0] or 0
        after = earlier.part_id if earlier.turns == turns else 0
        if since is not None and last_part > after and has_missing_parts(db, model.name, since, after):
            return None
        return EmbeddedRange(model.name, last, last_part, turns, last_entry)
