"""Embed the chunks and conversation turns that have no vector yet, in batches.

No transaction is open while a model works, and each batch is stored before the next, so interrupted work continues
where it stopped.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from quaid.errors import Cancelled, EmbedderUnavailable, QuaidError
from quaid.model.plain_text import count_noun
from quaid.storage import chunks, embedding_queue, vectors
from quaid.storage.embedding_queue import EmbeddingLease, PendingText
from quaid.storage.vectors import EmbeddingModel

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database

BATCH_SIZE = 32
"""Texts embedded and stored together: one or two seconds of work."""

CHUNKS_LABEL, TURNS_LABEL = "Embedding", "Embedding conversations"


PAGES_PER_CUT = 200
"""Pages cut into chunks per transaction: a fraction of a second."""

MAX_INLINE_CHUNKS, MAX_INLINE_TOKENS = 16, 2_400
"""Maximum work done before a query is answered: within a second of CPU time, including loading the model."""

INLINE_LOCK_TIMEOUT = 1.0
"""Seconds that a query waits for the write lock, which an import may hold for long."""

PROBE_TEXT = "A plain sentence."
"""A text every model accepts: a model that rejects it is considered down."""

MAX_EXTRA_FAILURES = 3 * BATCH_SIZE
"""How many more texts may fail than succeed before the model is considered unusable."""

MAX_NAMED_FAILURES = 3
"""Maximum number of pages named in a failure message."""

POLL_SECONDS = 0.2
"""Seconds between checks while another process is embedding."""


class PassageEmbedder(Protocol):
    """The part of an embedder that a backfill needs."""

    name: str
    dimensions: int

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]: ...


class BackfillReport(NamedTuple):
    """The result of a backfill, counted in chunks."""

    embedded: int
    """Chunks embedded by this run."""
    cached: int
    """Chunks that already had a vector, possibly from the same text elsewhere."""
    total: int
    failed: int
    """Chunks for which the model gave no usable vector."""
    failures: tuple[str, ...] = ()
    """The pages or conversations of the failed texts."""
    turns: int = 0
    """Conversation turns embedded by this run."""
    turns_left: int = 0
    """Conversation turns still without a vector."""


class _BatchTotals(NamedTuple):
    """The result of embedding some pending texts."""

    embedded: int
    cached: int
    refused: dict[bytes, None]


NOTHING_EMBEDDED = BackfillReport(0, 0, 0, 0)


def run_backfill(
    db: "Database",
    embedder: PassageEmbedder,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    slugs: list[str] | None = None,
    turns_since: str | None = None,
    patient: bool = True,
) -> BackfillReport | None:
    """Embed pages, then turns, while holding the embedding lease, and record failures.

    Only turns of conversations that ended since `turns_since` are embedded: all with "", none with None. If another
    process holds the lease, wait for it, or return None if not `patient`.
    """
    turn = EmbeddingLease(db.path)
    while db.writable and not turn.try_take():
        if not patient:
            return None
        _report_other_process(db, embedder, progress)
        time.sleep(POLL_SECONDS)
    if not db.writable:
        return embed_chunks(db, embedder, now=now, progress=progress, slugs=slugs)
    try:
        turn.begin(embedder.name, now())
        filled = embed_chunks(db, embedder, now=now, progress=progress, slugs=slugs)
        if turns_since is not None and slugs is None:
            filled = embed_turns(db, embedder, filled, now=now, progress=progress, since=turns_since)
        if filled.failed:
            turn.fail(embedder.name, _failure_text(filled), now())
        else:
            turn.succeed()
        return filled
    except (Cancelled, KeyboardInterrupt):
        turn.succeed()
        raise
    except QuaidError as failure:
        turn.fail(
            embedder.name, failure_reason(failure), now(), down=isinstance(failure, EmbedderUnavailable)
        )
        raise
    finally:
        turn.release()


def _failure_text(filled: BackfillReport) -> str:
    named = ", ".join(filled.failures[:MAX_NAMED_FAILURES])
    chunks_ = count_noun(filled.failed, "chunk")
    more = " …" if len(filled.failures) > MAX_NAMED_FAILURES else ""
    return f"it gives nothing usable for {chunks_} ({named}{more})"


def failure_reason(failure: QuaidError) -> str:
    """Return the reason of a model failure, without the model's name and without text that a server replied."""
    facts = failure.facts
    return str(facts.get("noted") or facts.get("problem") or failure).rstrip(".")


def _report_other_process(
    db: "Database", embedder: PassageEmbedder, progress: Callable[[int, int, str], None]
) -> None:
    known = vectors.find_model(db, embedder.name)
    made, total = embedding_queue.chunk_coverage(db, known.name) if known else (0, chunks.count(db))
    progress(min(made, total - 1), total, "Another process makes vectors")


def embed_few_chunks(
    db: "Database",
    embedder: PassageEmbedder,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
) -> int:
    """Embed missing chunks if they are few, so that recent changes are found. Return their number."""
    active = vectors.active_model(db)
    if active is None:
        made, total, waiting = 0, chunks.count(db), None
    elif active.name == embedder.name:
        made, total = embedding_queue.estimate_coverage(db, active)
        waiting = embedding_queue.pending_chunks(db, active)
    else:
        return 0
    if not 0 < total - made <= MAX_INLINE_CHUNKS or chunks.tokens(db, waiting) > MAX_INLINE_TOKENS:
        return 0
    patience, db.lock.patience = db.lock.patience, INLINE_LOCK_TIMEOUT
    try:
        if active is None or waiting is None:
            return embed_chunks(
                db, embedder, now=now, progress=progress, limit=MAX_INLINE_CHUNKS, insist=False
            ).embedded
        # The pending ids are known, and finding them again would take longer than embedding them.
        return _embed_chunk_ids(db, embedder, waiting, now=now, progress=progress, insist=False).embedded
    finally:
        db.lock.patience = patience


def embed_few_turns(
    db: "Database",
    embedder: PassageEmbedder,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    since: str = "",
) -> int:
    """Embed missing conversation turns if they are few. Return their number."""
    active = vectors.active_model(db)
    if active is None or active.name != embedder.name:
        return 0
    made, total = embedding_queue.turn_coverage(db, active.name)
    if not 0 < total - made <= MAX_INLINE_CHUNKS:
        return 0
    waiting = embedding_queue.missing_parts(db, active.name, since)
    if embedding_queue.characters_of_parts(db, waiting) > 4 * MAX_INLINE_TOKENS:
        return 0
    patience, db.lock.patience = db.lock.patience, INLINE_LOCK_TIMEOUT
    try:
        return embed_turns(db, embedder, now=now, progress=progress, since=since).turns
    finally:
        db.lock.patience = patience


def embed_chunks(
    db: "Database",
    embedder: PassageEmbedder,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    slugs: list[str] | None = None,
    limit: int | None = None,
    insist: bool = True,
) -> BackfillReport:
    """Embed the chunks without a vector of this model, most recently changed pages first.

    An unknown model is registered; the first one becomes active. `slugs` restricts the pages, `limit` the number of
    chunks. With `insist`, the texts of a rejected batch are retried one by one.
    """
    cut_pages(db, progress)
    model = _registered_model(db, embedder, now)
    waiting = embedding_queue.missing_chunks(db, model.name, slugs)[:limit]
    cached, total = embedding_queue.chunk_coverage(db, model.name)
    made = _embed_chunk_ids(db, embedder, waiting, now=now, progress=progress, insist=insist)
    refused = list(made.refused)
    return BackfillReport(
        made.embedded,
        cached + made.cached,
        total,
        len(refused),
        embedding_queue.slugs_of_contents(db, refused) if refused else (),
    )


def _embed_chunk_ids(
    db: "Database",
    embedder: PassageEmbedder,
    waiting: list[int],
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    insist: bool,
) -> _BatchTotals:
    name = embedder.name
    return _embed_in_batches(
        db,
        embedder,
        waiting,
        lambda chunk_ids: embedding_queue.texts_of_chunks(db, name, chunk_ids),
        lambda tx, found: vectors.keep_chunk_vectors(tx, name, found, now()),
        lambda done: progress(done, len(waiting), CHUNKS_LABEL),
        insist,
    )


def embed_turns(
    db: "Database",
    embedder: PassageEmbedder,
    filled: BackfillReport = NOTHING_EMBEDDED,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    since: str = "",
) -> BackfillReport:
    """Embed turns of conversations that ended since a timestamp, latest first, and add the result to `filled`."""
    waiting = (
        embedding_queue.missing_parts(db, embedder.name, since) if embedding_queue.highest_part_id(db) else []
    )
    if not waiting:
        return filled
    model = _registered_model(db, embedder, now)
    turns = embedding_queue.count_missing_turns(db, model.name, since)
    made = _embed_in_batches(
        db,
        embedder,
        waiting,
        lambda part_ids: embedding_queue.texts_of_parts(db, model.name, part_ids),
        lambda tx, found: vectors.keep_turn_vectors(tx, model.name, found, now()),
        lambda done: progress(done, len(waiting), TURNS_LABEL),
    )
    refused = list(made.refused)
    left = embedding_queue.count_missing_turns(db, model.name, since)
    return filled._replace(
        failed=filled.failed + len(refused),
        failures=(
            *filled.failures,
            *(embedding_queue.conversations_of_contents(db, refused) if refused else ()),
        ),
        turns=max(0, turns - left),
        turns_left=left,
    )


def _embed_in_batches(
    db: "Database",
    embedder: PassageEmbedder,
    waiting: list[int],
    texts_of: Callable[[list[int]], list[PendingText]],
    keep: Callable[[Any, list[tuple[bytes, bytes]]], int],
    progress: Callable[[int], None],
    insist: bool = True,
) -> _BatchTotals:
    """Embed pending texts batch by batch and store the vectors."""
    embedded = cached = done = 0
    refused: dict[bytes, None] = {}
    for ids in _batches(waiting):
        progress(done)
        texts = [each for each in texts_of(ids) if each.content_hash not in refused]
        found, failure = _embed_texts(embedder, texts, insist)
        if found:
            kept = [(each.content_hash, vector) for each, vector in found]
            db.write(lambda tx, kept=kept: keep(tx, kept))  # type: ignore[misc]
        if failure is not None:
            raise failure
        embedded += len(found)
        cached += len(ids) - len(texts)
        done += len(ids)
        made = {each.content_hash for each, _ in found}
        refused.update({each.content_hash: None for each in texts if each.content_hash not in made})
        if len(refused) > embedded + MAX_EXTRA_FAILURES:
            raise _model_unusable(embedder, len(refused))
    progress(done)
    return _BatchTotals(embedded, cached, refused)


def cut_pages(db: "Database", progress: Callable[[int, int, str], None]) -> int:
    """Cut the pages into chunks that an import left uncut. Return their number."""
    page_ids = chunks.uncut_pages(db)
    for start in range(0, len(page_ids), PAGES_PER_CUT):
        progress(start, len(page_ids), "Cutting into chunks")
        some = page_ids[start : start + PAGES_PER_CUT]
        db.write(lambda tx, some=some: chunks.write_pages(tx, some))  # type: ignore[misc]
    if page_ids:
        progress(len(page_ids), len(page_ids), "Cutting into chunks")
    return len(page_ids)


def _registered_model(db: "Database", embedder: PassageEmbedder, now: Callable[[], str]) -> EmbeddingModel:
    known = vectors.find_model(db, embedder.name)
    if known is None or known.dimensions != embedder.dimensions or vectors.active_model(db) is None:
        moment = now()

        def work(tx: object) -> None:
            vectors.register_model(tx, embedder.name, embedder.dimensions, moment)  # type: ignore[arg-type]
            if vectors.active_model(db) is None:
                vectors.activate_model(tx, embedder.name)  # type: ignore[arg-type]

        db.write(work)
        known = vectors.find_model(db, embedder.name)
    assert known is not None
    return known


def _batches(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), BATCH_SIZE):
        yield ids[start : start + BATCH_SIZE]


def _model_unusable(embedder: PassageEmbedder, refused: int) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        name=embedder.name, problem=f"it refuses nearly every text ({refused:,})", remedy="Try another model"
    )


class _BatchResult(NamedTuple):
    found: list[tuple[PendingText, bytes]]
    failure: EmbedderUnavailable | None = None
    """Set if the model is down; the vectors in `found` are still valid."""


def _embed_texts(embedder: PassageEmbedder, texts: list[PendingText], insist: bool) -> _BatchResult:
    """Return the texts with their vectors, omitting those without a usable vector."""
    if not texts:
        return _BatchResult([])
    try:
        found = embedder.embed_passages([each.text for each in texts])
    except EmbedderUnavailable as failure:
        return _embed_one_by_one(embedder, texts, failure) if insist else _BatchResult([], failure)
    if len(found) != len(texts):
        problem = f"it gave {len(found)} vectors for {len(texts)} texts"
        return _BatchResult(
            [], EmbedderUnavailable(name=embedder.name, problem=problem, remedy="Try another model")
        )
    return _BatchResult(
        [
            pair
            for pair in zip(texts, found, strict=True)
            if vectors.is_usable_vector(pair[1], embedder.dimensions)
        ]
    )


def _embed_one_by_one(
    embedder: PassageEmbedder, texts: list[PendingText], failure: EmbedderUnavailable
) -> _BatchResult:
    """Embed texts one by one and skip those the model rejects. Stop if it also rejects PROBE_TEXT."""
    found: list[tuple[PendingText, bytes]] = []
    for text in texts:
        alone = _BatchResult([], failure) if len(texts) == 1 else _embed_texts(embedder, [text], insist=False)
        found += alone.found
        if alone.failure is not None:
            probed = _probe_failure(embedder)
            if probed is not None:
                return _BatchResult(found, probed)
    return _BatchResult(found)


def _probe_failure(embedder: PassageEmbedder) -> EmbedderUnavailable | None:
    try:
        embedder.embed_passages([PROBE_TEXT])
    except EmbedderUnavailable as failure:
        return failure
    return None
