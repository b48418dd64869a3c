"""What is still to be embedded, and which process embeds now.

Ids of chunks and parts only rise and none of them loses its vector, so after a write only new rows and those that
lacked a vector are looked at. `since` is a timestamp: conversations that ended before it are left out.
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

LOCKED_BYTE = 1 << 30  # Windows keeps others from reading what is locked: no line reaches this far
LONGEST_LINE = 4_096
LONGEST_PROBLEM = 600  # characters: written with escapes they still fit into a line


class EmbeddingRun(NamedTuple):
    """Somebody who makes vectors now."""

    model: str
    process: int
    since: str


class EmbeddingFailure(NamedTuple):
    """Why vectors could not be made."""

    model: str
    problem: str
    at: str
    down: bool = False
    """The model itself did not answer; else it only gave nothing for some texts."""


class EmbeddingLease:
    """The right to make vectors for one memory."""

    def __init__(self, database_path: str) -> None:
        self._database_path = database_path
        self._handle: int | None = None

    def try_take(self) -> bool:
        """Take the turn, unless another process has it."""
        handle = _open_lease_file(self._database_path, os.O_RDWR | os.O_CREAT)
        if not _try_lock(handle):
            os.close(handle)
            return False
        self._handle = handle
        return True

    def begin(self, model: str, now: str) -> None:
        """Say who is at work."""
        self._write({"filling": model, "process": os.getpid(), "since": now})

    def fail(self, model: str, problem: str, now: str, *, down: bool = False) -> None:
        """Say what went wrong."""
        if len(problem) > LONGEST_PROBLEM:
            problem = problem[: LONGEST_PROBLEM - 1] + "…"
        said = {"failed": model, "problem": problem, "at": now}
        self._write({**said, "down": True} if down else said)

    def succeed(self) -> None:
        """Nothing is wrong any more."""
        self._write({})

    def release(self) -> None:
        """Give the turn back."""
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
    """Who makes vectors at this moment, if anybody does."""
    said = _read_state(database_path)
    if "filling" not in said or not _is_leased(database_path):
        return None
    return EmbeddingRun(str(said["filling"]), int(said.get("process", 0)), str(said.get("since", "")))


def last_failure(database_path: str) -> EmbeddingFailure | None:
    """What went wrong the last time, if it has not gone right since."""
    said = _read_state(database_path)
    if "failed" not in said:
        return None
    return EmbeddingFailure(
        *(str(said["failed"]), str(said.get("problem", "")), str(said.get("at", ""))), bool(said.get("down"))
    )


def record_failure(database_path: str, model: str, problem: str, now: str, *, down: bool = False) -> None:
    """Say what went wrong, for somebody who had no turn; whoever fills now knows better."""
    turn = EmbeddingLease(database_path)
    if turn.try_take():
        try:
            turn.fail(model, problem, now, down=down)
        finally:
            turn.release()


def clear_failure(database_path: str) -> None:
    """Say that it goes right again; whoever fills now says so himself."""
    turn = EmbeddingLease(database_path)
    if turn.try_take():
        try:
            turn.succeed()
        finally:
            turn.release()


def _is_leased(database_path: str) -> bool:
    try:
        handle = _open_lease_file(database_path, os.O_RDWR)
    except Exception:  # a reader who may not write cannot find out
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
    except (OSError, ValueError):  # ValueError: half a line, by somebody who writes now
        return {}
    return said if isinstance(said, dict) else {}


def _open_lease_file(database_path: str, how: int) -> int:
    with translate_os_errors(database_path):
        return os.open(_lease_path(database_path), how, 0o600)


def _lease_path(database_path: str) -> str:
    return database_path + "-filling-lock"


MOST_LINKS_COUNTED = 1_000
"""So many links to a page are counted: whether there are more makes no difference."""


class PendingText(NamedTuple):
    """A content without a vector, and the text that is embedded."""

    content_hash: bytes
    text: str


# Filling


def missing_chunks(db: "Database", model: str, slugs: list[str] | None = None) -> list[int]:
    """Chunks without a vector of this model: those of the pages that changed last first.

    Of pages that changed at one moment, as in an import, those come first that most links lead to.
    """
    known = require_model(db, model)
    among = "" if slugs is None else " AND p.slug IN (SELECT value FROM json_each(?))"
    rows = db.rows(
        # Two indexes in the same order are gone through side by side, as for `coverage`.
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
    """What is to be embedded of these chunks, in their order: each content once, and none that has a vector."""
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
    """The slugs of the pages that contents stand on."""
    if not hashes:
        return ()
    rows = db.rows(
        "SELECT DISTINCT p.slug FROM json_each(?) AS wanted CROSS JOIN chunks AS c"
        " ON c.content_hash = unhex(wanted.value) CROSS JOIN pages AS p ON p.id = c.page_id ORDER BY p.slug",
        (json.dumps([each.hex() for each in hashes]),),
    )
    return tuple(slug for (slug,) in rows)


def pending_texts(db: "Database", model: str, limit: int) -> list[PendingText]:
    """The first contents without a vector."""
    with db.reading():
        return texts_of_chunks(db, model, missing_chunks(db, model)[:limit])


def chunk_coverage(db: "Database", model: str) -> tuple[int, int]:
    """How many chunks have a vector of this model, and how many there are."""
    known = require_model(db, model)
    row = db.one(
        # Two indexes in the same order are gone through side by side; to look each chunk up takes twice as long.
        "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM"  # noqa: S608 (checked)
        " (SELECT content_hash FROM chunks EXCEPT"
        f" SELECT content_hash FROM {known.vec_table} WHERE model = ?) AS lacking"
        " CROSS JOIN chunks AS c ON c.content_hash = lacking.content_hash)",
        (model,),
    )
    return (row[0] - row[1], row[0]) if row else (0, 0)


FEW_CHUNKS = 2_000
"""So many chunks are counted, and so many that lack a vector are kept in mind."""

SAMPLE_WINDOWS, SAMPLE_WINDOW = 8, 128
"""Of more, this many places are looked at, each so many chunks wide; one without a vector has all counted."""

MOST_UPDATES = 64
"""So many writes are followed by what they added before all chunks are counted again: 11 ms of a million."""


class VectorCoverage(NamedTuple):
    """How far they are made, and in which state of the memory that was found out."""

    total: int
    """Chunks; in a large memory some that went lately may be counted in."""
    lacking: int
    waiting: list[int] | None
    """The chunks without a vector, newest first; None: more than a few."""
    last: int
    """The newest chunk."""
    looks: int = 0
    """Since the last count."""


def estimate_coverage(db: "Database", model: "EmbeddingModel") -> tuple[int, int]:
    """How many chunks have a vector, and how many there are; a few that lack one may go unseen."""
    found = _cached_coverage(db, model)
    return found.total - found.lacking, found.total


def pending_chunks(db: "Database", model: "EmbeddingModel") -> list[int] | None:
    """The chunks that lack a vector, newest first; None: more than a few."""
    return _cached_coverage(db, model).waiting


def _cached_coverage(db: "Database", model: "EmbeddingModel") -> VectorCoverage:
    return db.known(
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
    """The chunks without a vector among some."""
    rows = db.rows(
        f"SELECT c.id FROM chunks AS c WHERE {where} AND NOT EXISTS"  # noqa: S608 (the registry's name)
        f" (SELECT 1 FROM {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?)",
        (value, model.name),
    )
    return [chunk_id for (chunk_id,) in rows]


def _sample_lacks_vector(db: "Database", model: "EmbeddingModel", last: int) -> bool:
    """Whether one is missing anywhere but among the newest, as far as a few places tell."""
    starts = [last * place // SAMPLE_WINDOWS for place in range(SAMPLE_WINDOWS)]
    row = db.one(
        "SELECT 1 FROM json_each(?) AS start CROSS JOIN chunks AS c"  # noqa: S608 (the registry's name)
        " ON c.id BETWEEN start.value AND start.value + ? WHERE NOT EXISTS"
        f" (SELECT 1 FROM {model.vec_table} AS v WHERE v.content_hash = c.content_hash AND v.model = ?) LIMIT 1",
        (str(starts), SAMPLE_WINDOW, model.name),
    )
    return row is not None


def _newest_without_vector(db: "Database", model: "EmbeddingModel") -> list[int] | None:
    """Those that lack one among the newest, back to where none does; None: more than a few."""
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


# Filling

_PARTS_WITHOUT_VECTOR = (
    " FROM conversations AS c CROSS JOIN conversation_turns AS t ON t.conversation_id = c.id"
    " CROSS JOIN turn_parts AS p ON p.turn_id = t.id"
    " WHERE coalesce(c.ended_at, c.added_at) >= ? AND NOT EXISTS"
    " (SELECT 1 FROM turn_vectors AS v WHERE v.content_hash = p.content_hash AND v.model = ?)"
)


def missing_parts(db: "Database", model: str, since: str = "") -> list[int]:
    """Parts without a vector of this model, those of the conversations that ended last first."""
    rows = db.rows(
        f"SELECT p.id{_PARTS_WITHOUT_VECTOR}"
        " ORDER BY coalesce(c.ended_at, c.added_at) DESC, c.id DESC, t.turn DESC, p.part",
        (since, model),
    )
    return [part_id for (part_id,) in rows]


def count_missing_turns(db: "Database", model: str, since: str = "") -> int:
    """How many turns lack a vector of this model."""
    row = db.one(f"SELECT count(DISTINCT t.id){_PARTS_WITHOUT_VECTOR}", (since, model))
    return row[0] if row else 0


def texts_of_parts(db: "Database", model: str, part_ids: list[int]) -> list[PendingText]:
    """What is to be embedded of these parts, in their order: each content once, and none that has a vector."""
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
    """How long these parts are together."""
    row = db.one(
        "SELECT sum(end_at - start_at) FROM turn_parts WHERE id IN (SELECT value FROM json_each(?))",
        (str(part_ids),),
    )
    return row[0] or 0 if row else 0


def conversations_of_contents(db: "Database", hashes: list[bytes]) -> tuple[str, ...]:
    """The conversations in which contents were said, as a person would name them."""
    rows = db.rows(
        "SELECT DISTINCT c.client || ':' || c.session FROM json_each(?) AS wanted CROSS JOIN turn_parts AS p"
        " ON p.content_hash = unhex(wanted.value) CROSS JOIN conversation_turns AS t ON t.id = p.turn_id"
        " CROSS JOIN conversations AS c ON c.id = t.conversation_id ORDER BY 1",
        (json.dumps([each.hex() for each in hashes]),),
    )
    return tuple(name for (name,) in rows)


def turn_coverage(db: "Database", model: str) -> tuple[int, int]:
    """How many contents have a vector of this model, and how many there are, of all conversations."""
    row = db.one(
        "SELECT (SELECT count(*) FROM turn_vectors WHERE model = ?),"
        " (SELECT count(DISTINCT content_hash) FROM turn_parts)",
        (model,),
    )
    return (min(row), row[1]) if row else (0, 0)


def highest_part_id(db: "Database") -> int:
    """The id of the newest part; 0 when there is none."""
    row = db.one("SELECT max(id) FROM turn_parts")
    return row[0] or 0 if row else 0


def has_missing_parts(db: "Database", model: str, since: str, after: int) -> bool:
    """Whether a part behind the first so many lacks a vector."""
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
    """Differs when something was written: by others, or through this connection."""

    others: int
    own: int


class EmbeddedRange(NamedTuple):
    """The last chunk, and the last part of a turn, up to which all have a vector of the model."""

    model: str | None = None
    chunk_id: int = 0
    part_id: int = 0
    turns: str = "off"
    """Which turns were looked at."""


class TurnScope(NamedTuple):
    """Which turns are to have vectors: the word for it, and the moment since which."""

    which: str = "off"
    since: str = ""


NO_TURNS = TurnScope()


def change_stamp(db: "Database") -> ChangeStamp:
    """Of the present state."""
    with db.reading():
        db.one("SELECT 1 FROM embedding_models")  # what others wrote shows with the first read
        return ChangeStamp(db.connection.data_version(), db.connection.total_changes())


def embedded_range(db: "Database", known: EmbeddedRange, turns: TurnScope = NO_TURNS) -> EmbeddedRange | None:
    """How far all have vectors of the active model: to the end. None when one has not, or is not cut yet."""
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
