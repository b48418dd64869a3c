"""Vectors for the chunks that have none: made in batches, kept one batch at a time.

Knows the order of work and what is durable when. Does not know how a model works, nor how vectors are stored.

No transaction is open while a model works. Each batch is kept before the next one is begun, so whoever is
stopped goes on where he was; two who fill at once only do some of the work twice.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from quaid.errors import InvalidArgument
from quaid.store import chunks, vectors
from quaid.store.vectors import Missing, Model

if TYPE_CHECKING:
    from quaid.store.db import Database

BATCH = 32
"""Texts that are embedded and kept together: one or two seconds of work."""

WHAT = "Embedding"


CUT_AT_ONCE = 200
"""Pages that are cut into chunks in one transaction: a fraction of a second."""


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


def fill(
    db: "Database",
    embedder: Passages,
    *,
    now: Callable[[], str],
    progress: Callable[[int, int, str], None],
    slugs: list[str] | None = None,
    limit: int | None = None,
) -> Filled:
    """Embed what the embedder's model has no vector for yet: the pages that changed last come first.

    A model that is not known yet is registered; the first one becomes the active one. With `slugs` only those
    pages are looked at, with `limit` only so many chunks.
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
        found = _embedded(embedder, texts)
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


def _embedded(embedder: Passages, texts: list[Missing]) -> list[tuple[Missing, bytes]]:
    """The texts with their vectors; without those that the model gave nothing usable for."""
    if not texts:
        return []
    found = embedder.embed_passages([each.text for each in texts])
    if len(found) != len(texts):
        raise InvalidArgument(
            name=embedder.name, problem=f"gave {len(found)} vectors for {len(texts)} texts; try another model"
        )
    return [pair for pair in zip(texts, found, strict=True) if vectors.usable(pair[1], embedder.dimensions)]
