"""Embed the chunks and conversation turns (messages) that have no vector yet, in batches.

No transaction is open while a model works, and each batch is stored before the next one is embedded, so
interrupted work continues where it stopped.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.embedding.registry import Embedder
from quaid.errors import Cancelled, EmbedderUnavailable, QuaidError
from quaid.model.plain_text import count_noun
from quaid.storage import chunks, embedding_queue, text_index, vectors
from quaid.storage.embedding_queue import ChunkQueue, EntryQueue, PendingText, TurnQueue
from quaid.storage.leases import Lease

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database

BATCH_SIZE = 32
"""Number of texts that are embedded and stored together, which takes one or two seconds."""

CHUNKS_LABEL, ENTRIES_LABEL = "Embedding", "Embedding list entries"
TURNS_LABEL = "Embedding conversations"


MAX_INLINE_CHUNKS, MAX_INLINE_TOKENS = 16, 2_400
"""Maximum numbers of chunks (or list entries, or turns) and of tokens that are embedded before a query is answered.

Embedding them takes up to a second, including loading the model.
"""

MAX_BACKLOG = 256
"""If more chunks than this lack a vector, a query embeds only those written since the previous query."""

NEWEST_CHUNKS = 64
"""Maximum number of the newest chunks to consider while more than MAX_BACKLOG lack a vector."""

INLINE_LOCK_TIMEOUT = 1.0
"""Seconds that a query waits for the write lock, which an import may hold for a long time."""

PROBE_TEXT = "A plain sentence."
"""A sentence that every working model accepts. A model that rejects it is considered unavailable."""

MAX_EXTRA_FAILURES = 3 * BATCH_SIZE
"""A model is considered unusable if the texts that fail outnumber those that succeed by more than this."""

MAX_NAMED_FAILURES = 3
"""Maximum number of pages and conversations that a failure message names."""

POLL_SECONDS = 0.2
"""Seconds between checks while another process is embedding."""


class BackfillReport(NamedTuple):
    """The result of a backfill, as numbers of chunks and of conversation turns."""

    embedded: int
    """Number of chunks embedded by this run."""
    cached: int
    """Number of chunks that already had a vector, possibly from the same text elsewhere."""
    total: int
    failed: int
    """Number of chunks, list entries and parts of turns for which the model returned no usable vector."""
    failures: tuple[str, ...] = ()
    """Names of the pages or conversations of the failed texts."""
    turns: int = 0
    """Number of conversation turns embedded by this run."""
    turns_left: int = 0
    """Number of conversation turns that still have no vector."""


NOTHING_EMBEDDED = BackfillReport(0, 0, 0, 0)

Batch = tuple[list[tuple[PendingText, bytes]], EmbedderUnavailable | None]
"""Texts with their vectors, and the error if the model became unavailable. The vectors are valid in either case."""


class Backfill:
    """Embeds the chunks and turns of a memory that have no vector of a given model."""

    def __init__(
        self,
        db: "Database",
        embedder: Embedder,
        now: Callable[[], str],
        progress: Callable[[int, int, str], None],
    ) -> None:
        self._db = db
        self._embedder = embedder
        self._now = now
        self._progress = progress
        self.checked_up_to = 0

    def run(
        self, *, slugs: list[str] | None = None, turns_since: str | None = None, patient: bool = True
    ) -> BackfillReport | None:
        """Embed pages, then turns, while holding the embedding lease, and record failures.

        The lease lets only one process embed at a time. If another process holds the lease, wait for it or,
        if not `patient`, return None. Only turns (messages) of conversations that ended since `turns_since`
        are embedded; "" means all turns and None no turns. If `slugs` is given, only these pages are
        embedded, and no turns.
        """
        name = self._embedder.name
        lease = Lease(self._db.path, embedding_queue.LEASE)
        while self._db.writable and not lease.try_take():
            if not patient:
                return None
            made, total = ChunkQueue(self._db, name).coverage()
            self._progress(min(made, total - 1), total, "Another process makes vectors")
            time.sleep(POLL_SECONDS)
        if not self._db.writable:
            return self.embed_chunks(slugs)
        state: dict[str, Any] = {}
        try:
            lease.hold(model=name, since=self._now())
            report = self.embed_chunks(slugs)
            if turns_since is not None and slugs is None:
                report = self.embed_turns(turns_since, report)
            text_index.merge_segments(self._db)
            if report.failed:
                state = embedding_queue.failure_state(name, _failure_text(report), self._now())
            return report
        except Cancelled:
            raise
        except QuaidError as failure:
            down = isinstance(failure, EmbedderUnavailable)
            state = embedding_queue.failure_state(name, failure_reason(failure), self._now(), down=down)
            raise
        finally:
            try:
                lease.write(state)
            finally:
                lease.release()

    def embed_few(self, turns_since: str | None = None, after: int = 0, recent: str = "") -> int:
        """Embed a few chunks without a vector, or turns if `turns_since` is given, newest pages first.

        This is called before a query, so that the query finds recent changes. Return the number of chunks and their
        entries, or of turns, that were embedded. `checked_up_to` is set to the highest chunk id that later queries
        need not check.

        While many chunks lack a vector, as after an import, only chunks with an id above `after`, of pages
        saved since the time `recent`, are embedded. Imported chunks are left to the background process,
        because a few of their vectors would not improve the answer.
        """
        db, name = self._db, self._embedder.name
        self.checked_up_to = after
        active = vectors.active_model(db)
        if active is not None and active.name != name:
            return 0
        if active is None and turns_since is not None:
            return 0
        patience, db.lock.patience = db.lock.patience, INLINE_LOCK_TIMEOUT
        try:
            if turns_since is not None:
                return self._embed_few_turns(turns_since)
            if active is None:
                if not chunks.highest_id(db):
                    return 0
                self._register_model()
            return self._embed_newest(after, recent) + self._embed_newest_entries()
        finally:
            db.lock.patience = patience

    def _embed_few_turns(self, turns_since: str) -> int:
        turns = TurnQueue(self._db, self._embedder.name, turns_since)
        made, total = turns.coverage()
        if not 0 < total - made <= MAX_INLINE_CHUNKS or turns.tokens(turns.missing()) > MAX_INLINE_TOKENS:
            return 0
        return self.embed_turns(turns_since).turns

    def _embed_newest(self, after: int, recent: str) -> int:
        queue = ChunkQueue(self._db, self._embedder.name)
        coverage = queue.estimate_coverage()
        if not coverage.lacking:
            self.checked_up_to = coverage.last
            return 0
        if coverage.waiting is not None and coverage.lacking <= MAX_BACKLOG:
            pending = queue.by_page(coverage.waiting)
        else:
            imported = chunks.last_imported_chunk(self._db)
            pending = queue.newest(max(after, imported), recent, NEWEST_CHUNKS)
        few = _within_tokens(pending)
        # The ids are passed on, because finding them again would take longer than embedding the chunks.
        embedded = self._embed_in_batches(queue, few, CHUNKS_LABEL, insist=False)[0] if few else 0
        if len(few) == len(pending):
            self.checked_up_to = coverage.last
        return embedded

    def _embed_newest_entries(self) -> int:
        """Embed a few of the newest entries of chunks, such as items that were just added to a list."""
        if ChunkQueue(self._db, self._embedder.name).estimate_coverage().lacking > MAX_BACKLOG:
            return 0
        queue = EntryQueue(self._db, self._embedder.name)
        few = queue.newest(MAX_INLINE_CHUNKS)
        return self._embed_in_batches(queue, few, ENTRIES_LABEL, insist=False)[0] if few else 0

    def embed_chunks(
        self, slugs: list[str] | None = None, limit: int | None = None, *, insist: bool = True
    ) -> BackfillReport:
        """Embed the chunks without a vector of this model, most recently changed pages first, then their entries.

        The model is registered if it is new to the database, and becomes active if there is no active model.
        `slugs` restricts the pages, `limit` the number of chunks; with a limit, no entries are embedded. With
        `insist`, the texts of a rejected batch are retried one by one.
        """
        chunks.cut_pages(self._db, self._progress)
        self._register_model()
        queue = ChunkQueue(self._db, self._embedder.name)
        pending = queue.missing(slugs)[:limit]
        cached, total = ChunkQueue(self._db, self._embedder.name).coverage()
        embedded, more, refused = self._embed_in_batches(queue, pending, CHUNKS_LABEL, insist)
        owners = queue.owners(refused)
        if limit is None:
            entries = EntryQueue(self._db, self._embedder.name)
            _, _, refused_entries = self._embed_in_batches(
                entries, entries.missing(slugs), ENTRIES_LABEL, insist
            )
            refused += refused_entries
            owners = tuple(dict.fromkeys((*owners, *entries.owners(refused_entries))))
        return BackfillReport(embedded, cached + more, total, len(refused), owners)

    def embed_turns(self, since: str = "", report: BackfillReport = NOTHING_EMBEDDED) -> BackfillReport:
        """Embed turns of conversations that ended since `since`, latest first; add the result to `report`."""
        queue = TurnQueue(self._db, self._embedder.name, since)
        pending = queue.missing()
        if not pending:
            return report
        self._register_model()
        before = queue.count_turns()
        _, _, refused = self._embed_in_batches(queue, pending, TURNS_LABEL)
        left = queue.count_turns()
        return report._replace(
            failed=report.failed + len(refused),
            failures=(*report.failures, *queue.owners(refused)),
            turns=max(0, before - left),
            turns_left=left,
        )

    def _embed_in_batches(
        self, queue: ChunkQueue | EntryQueue | TurnQueue, pending: list[int], label: str, insist: bool = True
    ) -> tuple[int, int, list[bytes]]:
        """Embed pending texts batch by batch and store the vectors.

        Return how many texts were embedded, how many were skipped, and the content hashes of the texts that the
        model rejected. Texts are skipped if they received a vector in the meantime, or if the model has already
        rejected the same content.
        """
        embedded = cached = done = 0
        refused: dict[bytes, None] = {}
        for start in range(0, len(pending), BATCH_SIZE):
            ids = pending[start : start + BATCH_SIZE]
            self._progress(done, len(pending), label)
            texts = [text for text in queue.texts(ids) if text.content_hash not in refused]
            batch, failure = self._embed_texts(texts, insist)
            if batch:
                rows = [(text.content_hash, vector) for text, vector in batch]
                self._db.write(lambda tx, rows=rows: queue.store(tx, rows, self._now()))  # type: ignore[misc]
            if failure is not None:
                raise failure
            embedded += len(batch)
            cached += len(ids) - len(texts)
            done += len(ids)
            made = {text.content_hash for text, _ in batch}
            refused.update({text.content_hash: None for text in texts if text.content_hash not in made})
            if len(refused) > embedded + MAX_EXTRA_FAILURES:
                raise self._unavailable(f"it refuses nearly every text ({len(refused):,})")
        self._progress(done, len(pending), label)
        return embedded, cached, list(refused)

    def _embed_texts(self, texts: list[PendingText], insist: bool) -> Batch:
        """Return the texts with their vectors. Texts without a usable vector are left out."""
        if not texts:
            return [], None
        try:
            embeddings = self._embedder.embed_passages([text.text for text in texts])
        except EmbedderUnavailable as failure:
            return self._embed_one_by_one(texts, failure) if insist else ([], failure)
        if len(embeddings) != len(texts):
            return [], self._unavailable(f"it gave {len(embeddings)} vectors for {len(texts)} texts")
        pairs = zip(texts, embeddings, strict=True)
        return [pair for pair in pairs if vectors.is_usable_vector(pair[1], self._embedder.dimensions)], None

    def _embed_one_by_one(self, texts: list[PendingText], failure: EmbedderUnavailable) -> Batch:
        """Embed texts one by one and skip texts that the model rejects.

        Stop if the model also rejects PROBE_TEXT.
        """
        embedded: list[tuple[PendingText, bytes]] = []
        for text in texts:
            alone, problem = ([], failure) if len(texts) == 1 else self._embed_texts([text], insist=False)
            embedded += alone
            if problem is not None:
                try:
                    self._embedder.embed_passages([PROBE_TEXT])
                except EmbedderUnavailable as down:
                    return embedded, down
        return embedded, None

    def _register_model(self) -> None:
        db, embedder = self._db, self._embedder
        models = vectors.list_models(db)
        model = models.get(embedder.name)
        is_any_active = any(row.active for row in models.values())
        if model is None or model.dimensions != embedder.dimensions or not is_any_active:
            moment = self._now()
            db.write(
                lambda tx: vectors.use_model(tx, embedder.name, embedder.dimensions, moment, replace=False)
            )

    def _unavailable(self, problem: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(name=self._embedder.name, problem=problem, remedy="Try another model")


def _within_tokens(pending: list[tuple[int, int]]) -> list[int]:
    """Return the ids of the first pending chunks that may be embedded before a query, at least one.

    `pending` lists the id and the number of tokens of each chunk.
    """
    ids: list[int] = []
    total = 0
    for chunk_id, tokens in pending[:MAX_INLINE_CHUNKS]:
        total += tokens
        if ids and total > MAX_INLINE_TOKENS:
            break
        ids.append(chunk_id)
    return ids


def _failure_text(report: BackfillReport) -> str:
    named = ", ".join(report.failures[:MAX_NAMED_FAILURES])
    more = " …" if len(report.failures) > MAX_NAMED_FAILURES else ""
    return f"it gives nothing usable for {count_noun(report.failed, 'chunk')} ({named}{more})"


def failure_reason(failure: QuaidError) -> str:
    """Return why a model failed, without the model's name and without the text of a server's response."""
    facts = failure.facts
    return str(facts.get("noted") or facts.get("problem") or failure).rstrip(".")
