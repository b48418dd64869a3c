"""Vectors for the chunks that have none: made in batches, kept one batch at a time.

Knows the order of work and what is durable when. Does not know how a model works, nor how vectors are stored.

No transaction is open while a model works. Each batch is kept before the next one is begun, so whoever is
stopped goes on where he was. Long work is done in turn; two who fill at once only do some of it twice.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from quaid.errors import Cancelled, EmbedderUnavailable, QuaidError
from quaid.store import chunks, filling, vectors
from quaid.store.filling_turn import Turn
from quaid.store.vectors import Missing, Model

if TYPE_CHECKING:
    from quaid.store.db import Database

BATCH = 32
"""Texts that are embedded and kept together: one or two seconds of work."""

WHAT = "Embedding"


CUT_AT_ONCE = 200
"""Pages that are cut into chunks in one transaction: a fraction of a second."""

FEW, FEW_TOKENS = 16, 2_400
"""So much is embedded before a question is answered: with a cold model within a second of CPU."""

SHORT_PATIENCE = 1.0
"""Seconds that a question waits for somebody who writes: an import may take long."""

SPARE_TRIES = 1
"""So many more texts of a refused batch may fail alone than succeed; with another one the model itself is down."""

SECONDS_BETWEEN_LOOKS = 0.2
"""While another process makes vectors."""


class Passages(Protocol):
    """What filling needs of a model."""

    name: str
    dimensions: int

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]: ...


class Filled(NamedTuple):
    """What filling did, in chunks."""

    embedded: int
    """Got a vector now."""
    cached: int
    """Had one already, from before or from the same text elsewhere."""
    total: int
    failed: int
    """The model gave nothing usable for them."""


def fill_in_turn(
    db: "Database",
    embedder: Passages,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    slugs: list[str] | None = None,
    patient: bool = True,
) -> Filled | None:
    """Fill while nobody else does, and leave word of what went wrong.

    Waits for another process that fills already; without patience it leaves that to him: None.
    """
    turn = Turn(db.path)
    while db.writable and not turn.try_take():
        if not patient:
            return None
        _tell_of_another(db, embedder, progress)
        time.sleep(SECONDS_BETWEEN_LOOKS)
    if not db.writable:
        return fill(db, embedder, now=now, progress=progress, slugs=slugs)
    try:
        turn.begin(embedder.name, now())
        filled = fill(db, embedder, now=now, progress=progress, slugs=slugs)
        if filled.failed:
            turn.fail(embedder.name, f"it gives nothing usable for {filled.failed:,} chunks", now())
        else:
            turn.succeed()
        return filled
    except (Cancelled, KeyboardInterrupt):
        turn.succeed()
        raise
    except QuaidError as failure:
        turn.fail(embedder.name, told(failure), now())
        raise
    finally:
        turn.release()


def told(failure: QuaidError) -> str:
    """A failure of a model, without the name of the model."""
    return str(failure.facts.get("problem") or failure).rstrip(".")


def _tell_of_another(db: "Database", embedder: Passages, progress: Callable[[int, int, str], None]) -> None:
    known = vectors.find(db, embedder.name)
    made, total = vectors.coverage(db, known.name) if known else (0, chunks.count(db))
    progress(min(made, total - 1), total, "Another process makes vectors")


def fill_few(
    db: "Database", embedder: Passages, *, now: Callable[[], str], progress: Callable[[int, int, str], None]
) -> int:
    """Embed what is missing if that is little, so that what was just written is found. How many it were."""
    active = vectors.active(db)
    if active is None:
        made, total, waiting = 0, chunks.count(db), None
    elif active.name == embedder.name:
        made, total = filling.made(db, active)
        waiting = vectors.missing_chunks(db, active.name) if 0 < total - made <= FEW else None
    else:
        return 0
    if not 0 < total - made <= FEW or chunks.tokens(db, waiting) > FEW_TOKENS:
        return 0
    patience, db.lock.patience = db.lock.patience, SHORT_PATIENCE
    try:
        return fill(db, embedder, now=now, progress=progress, limit=FEW, insist=False).embedded
    finally:
        db.lock.patience = patience


def fill(
    db: "Database",
    embedder: Passages,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    slugs: list[str] | None = None,
    limit: int | None = None,
    insist: bool = True,
) -> Filled:
    """Embed what the embedder's model has no vector for yet: the pages that changed last come first.

    A model that is not known yet is registered; the first one becomes the active one. With `slugs` only those
    pages are looked at, with `limit` only so many chunks. Who insists has the texts of a refused batch tried alone.
    """
    cut_up(db, progress)
    model = _registered(db, embedder, now)
    waiting = vectors.missing_chunks(db, model.name, slugs)[:limit]
    cached, total = vectors.coverage(db, model.name)
    embedded = failed = done = 0
    refused: set[bytes] = set()
    for chunk_ids in _batches(waiting):
        progress(done, len(waiting), WHAT)
        texts = [
            each for each in vectors.texts(db, model.name, chunk_ids) if each.content_hash not in refused
        ]
        found = _embedded(embedder, texts, insist)
        if found:
            kept = [(each.content_hash, vector) for each, vector in found]
            db.write(lambda tx, kept=kept: vectors.keep(tx, model.name, kept, now()))  # type: ignore[misc]
        refused.update({each.content_hash for each in texts} - {each.content_hash for each, _ in found})
        embedded += len(found)
        failed += len(texts) - len(found)
        cached += len(chunk_ids) - len(texts)
        done += len(chunk_ids)
    progress(done, len(waiting), WHAT)
    return Filled(embedded, cached, total, failed)


def cut_up(db: "Database", progress: Callable[[int, int, str], None]) -> int:
    """Cut the pages that an import left whole. How many there were."""
    page_ids = chunks.uncut(db)
    for start in range(0, len(page_ids), CUT_AT_ONCE):
        progress(start, len(page_ids), "Cutting into chunks")
        some = page_ids[start : start + CUT_AT_ONCE]
        db.write(lambda tx, some=some: chunks.write_pages(tx, some))  # type: ignore[misc]
    if page_ids:
        progress(len(page_ids), len(page_ids), "Cutting into chunks")
    return len(page_ids)


def _registered(db: "Database", embedder: Passages, now: Callable[[], str]) -> Model:
    known = vectors.find(db, embedder.name)
    if known is None or known.dimensions != embedder.dimensions or vectors.active(db) is None:
        moment = now()

        def work(tx: object) -> None:
            vectors.register(tx, embedder.name, embedder.dimensions, moment)  # type: ignore[arg-type]
            if vectors.active(db) is None:
                vectors.activate(tx, embedder.name)  # type: ignore[arg-type]

        db.write(work)
        known = vectors.find(db, embedder.name)
    assert known is not None
    return known


def _batches(chunk_ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(chunk_ids), BATCH):
        yield chunk_ids[start : start + BATCH]


def _embedded(embedder: Passages, texts: list[Missing], insist: bool) -> list[tuple[Missing, bytes]]:
    """The texts with their vectors; without those that the model gave nothing usable for."""
    if not texts:
        return []
    try:
        found = embedder.embed_passages([each.text for each in texts])
    except EmbedderUnavailable:
        if not insist or len(texts) == 1:
            raise
        return _one_by_one(embedder, texts)
    if len(found) != len(texts):
        raise EmbedderUnavailable(
            name=embedder.name,
            problem=f"it gave {len(found)} vectors for {len(texts)} texts",
            remedy="Try another model",
        )
    return [pair for pair in zip(texts, found, strict=True) if vectors.usable(pair[1], embedder.dimensions)]


def _one_by_one(embedder: Passages, texts: list[Missing]) -> list[tuple[Missing, bytes]]:
    """One text that a model cannot stand must not keep the others back. A model that can stand none is down."""
    found: list[tuple[Missing, bytes]] = []
    for tried, text in enumerate(sorted(texts, key=lambda each: len(each.text)), 1):
        try:
            found += _embedded(embedder, [text], insist=False)
        except EmbedderUnavailable:
            if tried - len(found) > SPARE_TRIES:
                raise
    return found
