"""Texts that still have to be embedded, and the lease of the process that embeds them.

Ids of chunks and parts only increase and none of them loses its vector, so after a write only new rows and those
without a vector have to be checked. `since` is a timestamp: conversations that ended before it are skipped.
"""

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model import chunker
from quaid.model.chunker import embedding_text
from quaid.storage import chunks
from quaid.storage.files import try_lock_file
from quaid.storage.sqlite.errors import translate_os_errors
from quaid.storage.vectors import require_model

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database
    from quaid.storage.vectors import EmbeddingModel

LOCKED_BYTE = 1 << 30  # beyond the end of any state line, because Windows blocks reads of locked bytes
LONGEST_LINE = 4_096
LONGEST_PROBLEM = 600  # characters; short enough to fit into LONGEST_LINE with JSON escapes


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
    """True if the model did not respond; False if it only returned no vectors for some texts."""


class EmbeddingLease:
    """The lease on embedding for one memory: a lock file that also stores the current run or last failure as JSON."""

    def __init__(self, database_path: str) -> None:
        self._database_path = database_path
        self._handle: int | None = None

    def try_take(self) -> bool:
        """Take the lease. Return False if another process holds it."""
        handle = _open_lease_file(self._database_path, os.O_RDWR | os.O_CREAT)
        if not _try_lock(handle):
            os.close(handle)
            return False
        self._handle = handle
        return True

    def begin(self, model: str, now: str) -> None:
        """Record that this process is embedding."""
        self._write({"filling": model, "process": os.getpid(), "since": now})

    def fail(self, model: str, problem: str, now: str, *, down: bool = False) -> None:
        """Record a failure."""
        if len(problem) > LONGEST_PROBLEM:
            problem = problem[: LONGEST_PROBLEM - 1] + "…"
        said = {"failed": model, "problem": problem, "at": now}
        self._write({**said, "down": True} if down else said)

    def succeed(self) -> None:
        """Clear the recorded state."""
        self._write({})

    def release(self) -> None:
        """Release the lease."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _write(self, said: dict[str, Any]) -> None:
        assert self._handle is not None
        with translate_os_errors(self._database_path):
            os.ftruncate(self._handle, 0)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, json.dumps(said).encode() if said else b"")


def current_run(database_path: str) -> EmbeddingRun | None:
    """Return the current embedding run, or None."""
    said = _read_state(database_path)
    if "filling" not in said or not _is_leased(database_path):
        return None
    return EmbeddingRun(str(said["filling"]), int(said.get("process", 0)), str(said.get("since", "")))


def last_failure(database_path: str) -> EmbeddingFailure | None:
    """Return the last failure, or None if embedding has succeeded since."""
    said = _read_state(database_path)
    if "failed" not in said:
        return None
    return EmbeddingFailure(
        *(str(said["failed"]), str(said.get("problem", "")), str(said.get("at", ""))), bool(said.get("down"))
    )


def record_failure(database_path: str, model: str, problem: str, now: str, *, down: bool = False) -> None:
    """Record a failure without holding the lease. Does nothing if another process holds it, as its state is newer."""
    turn = EmbeddingLease(database_path)
    if turn.try_take():
        try:
            turn.fail(model, problem, now, down=down)
        finally:
            turn.release()


def clear_failure(database_path: str) -> None:
    """Clear the recorded failure. Does nothing if another process holds the lease, as it records its own state."""
    turn = EmbeddingLease(database_path)
    if turn.try_take():
        try:
            turn.succeed()
        finally:
            turn.release()


def _is_leased(database_path: str) -> bool:
    try:
        handle = _open_lease_file(database_path, os.O_RDWR)
    except Exception:  # without write access the lock cannot be tested; assume that it is held
        return True
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
    return try_lock_file(handle)


def _read_state(database_path: str) -> dict[str, Any]:
    try:
        with open(_lease_path(database_path), "rb") as file:
            said = json.loads(file.read(LONGEST_LINE) or b"{}")
    except (OSError, ValueError):  # ValueError: a partly written line
        return {}
    return said if isinstance(said, dict) else {}


def _open_lease_file(database_path: str, how: int) -> int:
    with translate_os_errors(database_path):
        return os.open(_lease_path(database_path), how, 0o600)


def _lease_path(database_path: str) -> str:
    return database_path + "-filling-lock"


MOST_LINKS_COUNTED = 1_000
"""Maximum number of links counted per page when ordering the queue; more make no difference."""


class PendingText(NamedTuple):
    """A content hash without a vector, and the text to embed."""

    content_hash: bytes
    text: str


# Chunks of pages


def missing_chunks(db: "Database", model: str, slugs: list[str] | None = None) -> list[int]:
    """Return chunks without a vector of this model, those of the most recently changed pages first.

    Pages changed at the same time, as in an import, are ordered by their number of incoming links.
    """
    known = require_model(db, model)
    among = "" if slugs is None else " AND p.slug IN (SELECT value FROM json_each(?))"
    rows = db.rows(
        # EXCEPT merges two indexes in the same order, as in chunk_coverage().
        "SELECT c.id FROM (SELECT content_hash FROM chunks EXCEPT"  # noqa: S608 (checked)
        f" SELECT content_hash FROM {known.vec_table} WHERE model = ?) AS lacking"
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash"
        f" CROSS JOIN pages AS p ON p.id = c.page_id{among}"
        " ORDER BY p.updated_at DESC, (SELECT count(*) FROM"
        " (SELECT 1 FROM links WHERE to_page_id = p.id LIMIT ?)) DESC, p.id DESC, c.chunk_index",
        (model, *([] if slugs is None else [json.dumps(slugs)]), MOST_LINKS_COUNTED),
    )
    return [chunk_id for (chunk_id,) in rows]


def texts_of_chunks(db: "Database", model: str, chunk_ids: list[int]) -> list[PendingText]:
    """Return the texts of these chunks in order, without duplicates and those that already have a vector."""
    known = require_model(db, model)
    rows = db.rows(
        "SELECT c.content_hash, p.title, c.heading_path, c.chunk_text FROM json_each(?) AS wanted"  # noqa: S608
        " CROSS JOIN chunks AS c ON c.id = wanted.value CROSS JOIN pages AS p ON p.id = c.page_id"
        f" WHERE NOT EXISTS (SELECT 1 FROM {known.vec_table} AS v"
        " WHERE v.content_hash = c.content_hash AND v.model = ?)",
        (str(chunk_ids), model),
    )
    return list({row[0]: PendingText(row[0], embedding_text(*row[1:])) for row in rows}.values())


def slugs_of_contents(db: "Database", hashes: list[bytes]) -> tuple[str, ...]:
    """Return the slugs of the pages that contain these contents."""
    if not hashes:
        return ()
    rows = db.rows(
        "SELECT DISTINCT p.slug FROM json_each(?) AS wanted CROSS JOIN chunks AS c"
        " ON c.content_hash = unhex(wanted.value) CROSS JOIN pages AS p ON p.id = c.page_id ORDER BY p.slug",
        (json.dumps([each.hex() for each in hashes]),),
    )
    return tuple(slug for (slug,) in rows)


def pending_texts(db: "Database", model: str, limit: int) -> list[PendingText]:
    """Return the first `limit` contents without a vector."""
    with db.reading():
        return texts_of_chunks(db, model, missing_chunks(db, model)[:limit])


def chunk_coverage(db: "Database", model: str) -> tuple[int, int]:
    """Return the number of chunks with a vector of this model, and of all chunks."""
    known = require_model(db, model)
    row = db.one(
        # EXCEPT merges two indexes in the same order; looking up each chunk takes twice as long.
        "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM"  # noqa: S608 (checked)
        " (SELECT content_hash FROM chunks EXCEPT"
        f" SELECT content_hash FROM {known.vec_table} WHERE model = ?) AS lacking"
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash)",
        (model,),
    )
    return (row[0] - row[1], row[0]) if row else (0, 0)


FEW_CHUNKS = 2_000
"""Up to this many chunks are checked one by one, and up to this many ids of chunks without a vector are cached."""

SAMPLE_WINDOWS, SAMPLE_WINDOW = 8, 128
"""Number of windows sampled in larger memories, and chunks per window. If one lacks a vector, all are counted."""

MOST_UPDATES = 64
"""Number of incremental updates before all chunks are counted again, which takes 11 ms for a million."""


class VectorCoverage(NamedTuple):
    """Number of chunks with and without vectors, cached with the state it was computed from."""

    total: int
    """Number of chunks; in a large memory it may include recently deleted ones."""
    lacking: int
    waiting: list[int] | None
    """Ids of the chunks without a vector, newest first; None if there are more than FEW_CHUNKS."""
    last: int
    """Highest chunk id."""
    looks: int = 0
    """Number of incremental updates since the last full count."""


def estimate_coverage(db: "Database", model: "EmbeddingModel") -> tuple[int, int]:
    """Return the number of chunks with a vector, and of all chunks. May overlook a few chunks without a vector."""
    found = _cached_coverage(db, model)
    return found.total - found.lacking, found.total


def pending_chunks(db: "Database", model: "EmbeddingModel") -> list[int] | None:
    """Return the chunks without a vector, newest first, or None if there are more than FEW_CHUNKS."""
    return _cached_coverage(db, model).waiting


def _cached_coverage(db: "Database", model: "EmbeddingModel") -> VectorCoverage:
    return db.cached(
        f"vectors made by {model.name}",
        lambda: _measure_coverage(db, model),
        lambda seen: _update_coverage(db, model, seen),
    )


def _measure_coverage(db: "Database", model: "EmbeddingModel") -> VectorCoverage:
    total, last = chunks.count(db), chunks.highest_id(db)
    if total <= FEW_CHUNKS:
        return _coverage_of(total, _chunks_without_vector(db, model, "c.id > ?", 0), last)
    if not _sample_lacks_vector(db, model, last):
        tail = _newest_without_vector(db, model)
        if tail is not None:
            return _coverage_of(total, tail, last)
    covered, total = chunk_coverage(db, model.name)
    if total - covered > FEW_CHUNKS:
        return VectorCoverage(total, total - covered, None, last)
    return _coverage_of(total, _all_without_vector(db, model), last)


def _coverage_of(total: int, ids: list[int], last: int, looks: int = 0) -> VectorCoverage:
    return VectorCoverage(total, len(ids), sorted(ids, reverse=True), last, looks)


def _update_coverage(db: "Database", model: "EmbeddingModel", seen: VectorCoverage) -> VectorCoverage:
    if seen.waiting is None or seen.total <= FEW_CHUNKS or seen.looks >= MOST_UPDATES:
        return _measure_coverage(db, model)
    last = max(seen.last, chunks.highest_id(db))
    new = (db.one("SELECT count(*) FROM chunks WHERE id > ?", (seen.last,)) or (0,))[0]
    if new > FEW_CHUNKS:
        return _measure_coverage(db, model)
    ids = _chunks_without_vector(db, model, "c.id > ?", seen.last)
    if seen.waiting:
        ids += _chunks_without_vector(
            db, model, "c.id IN (SELECT value FROM json_each(?))", str(seen.waiting)
        )
    if len(ids) > FEW_CHUNKS:
        return _measure_coverage(db, model)
    return _coverage_of(seen.total + new, ids, last, seen.looks + 1)


def _chunks_without_vector(
    db: "Database", model: "EmbeddingModel", where: str, value: int | str
) -> list[int]:
    """Return the chunks without a vector that satisfy the condition `where`."""
    rows = db.rows(
        f"SELECT c.id FROM chunks AS c WHERE {where} AND NOT EXISTS"  # noqa: S608 (the registry's name)
        f" (SELECT 1 FROM {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?)",
        (value, model.name),
    )
    return [chunk_id for (chunk_id,) in rows]


def _sample_lacks_vector(db: "Database", model: "EmbeddingModel", last: int) -> bool:
    """Return True if a chunk in the sampled windows lacks a vector. The newest chunks are not sampled."""
    starts = [last * place // SAMPLE_WINDOWS for place in range(SAMPLE_WINDOWS)]
    row = db.one(
        "SELECT 1 FROM json_each(?) AS start CROSS JOIN chunks AS c"  # noqa: S608 (the registry's name)
        " ON c.id BETWEEN start.value AND start.value + ? WHERE NOT EXISTS"
        f" (SELECT 1 FROM {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?) LIMIT 1",
        (str(starts), SAMPLE_WINDOW, model.name),
    )
    return row is not None


def _newest_without_vector(db: "Database", model: "EmbeddingModel") -> list[int] | None:
    """Return the newest chunks without a vector, back to a window without any, or None if more than FEW_CHUNKS."""
    found: list[int] = []
    below, width = chunks.highest_id(db) + 1, SAMPLE_WINDOW
    while True:
        rows = db.rows(
            "SELECT c.id, EXISTS (SELECT 1 FROM"  # noqa: S608 (the registry's name)
            f" {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?)"
            " FROM chunks AS c WHERE c.id < ? ORDER BY c.id DESC LIMIT ?",
            (model.name, below, width),
        )
        bare = [chunk_id for chunk_id, has in rows if not has]
        found += bare
        if not bare or len(found) > FEW_CHUNKS:
            return found if len(found) <= FEW_CHUNKS else None
        below, width = rows[-1][0], 2 * width


def _all_without_vector(db: "Database", model: "EmbeddingModel") -> list[int]:
    rows = db.rows(
        "SELECT c.id FROM (SELECT content_hash FROM chunks EXCEPT"  # noqa: S608 (the registry's name)
        f" SELECT content_hash FROM {model.vec_table} WHERE model = ?) AS lacking"
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash",
        (model.name,),
    )
    return [chunk_id for (chunk_id,) in rows]


# Parts of turns

_PARTS_WITHOUT_VECTOR = (
    " FROM conversations AS c CROSS JOIN conversation_turns AS t ON t.conversation_id = c.id"
    " CROSS JOIN turn_parts AS p ON p.turn_id = t.id"
    " WHERE coalesce(c.ended_at, c.added_at) >= ? AND NOT EXISTS"
    " (SELECT 1 FROM turn_vectors AS v WHERE v.content_hash = p.content_hash AND v.model = ?)"
)


def missing_parts(db: "Database", model: str, since: str = "") -> list[int]:
    """Return parts without a vector of this model, those of the most recently ended conversations first."""
    rows = db.rows(
        f"SELECT p.id{_PARTS_WITHOUT_VECTOR}"
        " ORDER BY coalesce(c.ended_at, c.added_at) DESC, c.id DESC, t.turn DESC, p.part",
        (since, model),
    )
    return [part_id for (part_id,) in rows]


def count_missing_turns(db: "Database", model: str, since: str = "") -> int:
    """Return the number of turns without a vector of this model."""
    row = db.one(f"SELECT count(DISTINCT t.id){_PARTS_WITHOUT_VECTOR}", (since, model))
    return row[0] if row else 0


def texts_of_parts(db: "Database", model: str, part_ids: list[int]) -> list[PendingText]:
    """Return the texts of these parts in order, without duplicates and those that already have a vector."""
    rows = db.rows(
        "SELECT p.content_hash, t.role, t.text, p.start_at, p.end_at FROM json_each(?) AS wanted"
        " CROSS JOIN turn_parts AS p ON p.id = wanted.value CROSS JOIN conversation_turns AS t ON t.id = p.turn_id"
        " WHERE NOT EXISTS (SELECT 1 FROM turn_vectors AS v WHERE v.content_hash = p.content_hash AND v.model = ?)",
        (str(part_ids), model),
    )
    return list(
        {
            content_hash: PendingText(content_hash, chunker.turn_embedding_text(role, text[start:end]))
            for content_hash, role, text, start, end in rows
        }.values()
    )


def characters_of_parts(db: "Database", part_ids: list[int]) -> int:
    """Return the total number of characters of these parts."""
    row = db.one(
        "SELECT sum(end_at - start_at) FROM turn_parts WHERE id IN (SELECT value FROM json_each(?))",
        (str(part_ids),),
    )
    return row[0] or 0 if row else 0


def conversations_of_contents(db: "Database", hashes: list[bytes]) -> tuple[str, ...]:
    """Return the conversations that contain these contents, as client:session."""
    rows = db.rows(
        "SELECT DISTINCT c.client || ':' || c.session FROM json_each(?) AS wanted CROSS JOIN turn_parts AS p"
        " ON p.content_hash = unhex(wanted.value) CROSS JOIN conversation_turns AS t ON t.id = p.turn_id"
        " CROSS JOIN conversations AS c ON c.id = t.conversation_id ORDER BY 1",
        (json.dumps([each.hex() for each in hashes]),),
    )
    return tuple(name for (name,) in rows)


def turn_coverage(db: "Database", model: str) -> tuple[int, int]:
    """Return the number of contents with a vector of this model, and of all contents, in all conversations."""
    row = db.one(
        "SELECT (SELECT count(*) FROM turn_vectors WHERE model = ?),"
        " (SELECT count(DISTINCT content_hash) FROM turn_parts)",
        (model,),
    )
    return (min(row), row[1]) if row else (0, 0)


def highest_part_id(db: "Database") -> int:
    """Return the highest part id, or 0."""
    row = db.one("SELECT max(id) FROM turn_parts")
    return row[0] or 0 if row else 0


def has_missing_parts(db: "Database", model: str, since: str, after: int) -> bool:
    """Return True if a part with an id above `after` lacks a vector."""
    in_time = (
        " AND EXISTS (SELECT 1 FROM conversation_turns AS t JOIN conversations AS c ON c.id = t.conversation_id"
        " WHERE t.id = p.turn_id AND coalesce(c.ended_at, c.added_at) >= ?3)"
    )
    row = db.one(
        "SELECT 1 FROM turn_parts AS p WHERE p.id > ?1 AND NOT EXISTS"  # noqa: S608 (fixed)
        " (SELECT 1 FROM turn_vectors AS v WHERE v.content_hash = p.content_hash AND v.model = ?2)"
        f"{in_time if since else ''} LIMIT 1",
        (after, model, since)[: 3 if since else 2],
    )
    return row is not None


class ChangeStamp(NamedTuple):
    """A value that changes when the database is written to, by other connections or by this one."""

    others: int
    own: int


class EmbeddedRange(NamedTuple):
    """The highest chunk id and turn part id up to which all rows have a vector of the model."""

    model: str | None = None
    chunk_id: int = 0
    part_id: int = 0
    turns: str = "off"
    """The TurnScope.which that was checked."""


class TurnScope(NamedTuple):
    """Which turns are to be embedded: the setting, and the time from which on."""

    which: str = "off"
    since: str = ""


NO_TURNS = TurnScope()


def change_stamp(db: "Database") -> ChangeStamp:
    """Return the stamp of the current state."""
    with db.reading():
        # writes by other connections only become visible with a read
        db.one("SELECT 1 FROM embedding_models")
        return ChangeStamp(db.connection.data_version(), db.connection.total_changes())


def embedded_range(db: "Database", known: EmbeddedRange, turns: TurnScope = NO_TURNS) -> EmbeddedRange | None:
    """Return the range of all chunks and turn parts, or None if some are not embedded yet.

    Pages that are not chunked yet count as not embedded. Rows within `known` are not checked again.
    """
    with db.reading():
        if chunks.uncut_pages(db):
            return None
        model = db.one("SELECT name, vec_table FROM embedding_models WHERE active = 1")
        last = (db.one("SELECT max(id) FROM chunks") or (0,))[0] or 0
        last_part = highest_part_id(db) if turns.which != "off" else 0
        if model is None:
            return None if last or last_part else EmbeddedRange()
        name, table = model
        first = known.chunk_id if known.model == name else 0
        lacks = db.one(
            "SELECT 1 FROM chunks AS c WHERE c.id > ? AND NOT EXISTS"  # noqa: S608 (the registry's name)
            f" (SELECT 1 FROM {table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?) LIMIT 1",
            (first, name),
        )
        same = known.model == name and known.turns == turns.which
        after = known.part_id if same else 0
        if lacks or (last_part > after and has_missing_parts(db, name, turns.since, after)):
            return None
        return EmbeddedRange(name, last, last_part, turns.which)
