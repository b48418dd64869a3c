"""A new memory with a corpus in it, asked by words, by meaning, by each way of merging, and by the default."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from bench.corpora import Ask, Corpus
from bench.measures import Quality, judge, mean
from quaid.embedding.registry import Embedder
from quaid.model.page import Page
from quaid.search.candidates import (
    FUSION_STRATEGIES,
    WORDS_ONLY,
    RankedQuestion,
    best_first,
    fuse,
    rank_question,
)
from quaid.storage import chunks, collections, embedding_queue, page_edits, pages, vector_index, vectors
from quaid.storage.sqlite.connection import Database, Transaction

NOW = "2026-04-25T12:00:00Z"
BATCH = 500
DEFAULT = FUSION_STRATEGIES[0]
WAYS = ("words", "meaning", *FUSION_STRATEGIES)
HEAD = ("way", *(name.replace("fraction", "share") for name in Quality._fields))

Figures = dict[str, float]


class Judged(NamedTuple):
    """A question, and how well each way answers it."""

    ask: Ask
    by_way: dict[str, Quality]


# A memory with a corpus in it


@contextmanager
def memory(corpus: Corpus, embedder: Embedder | None) -> Iterator[Database]:
    """A new memory that holds the corpus, with vectors."""
    with tempfile.TemporaryDirectory() as folder, Database.create(f"{folder}/memory.db", NOW) as db:
        db.write(lambda tx: collections.set_setting(tx, "chunk_strategy", corpus.cut))
        for at in range(0, len(corpus.pages), BATCH):
            save(db, corpus.pages[at : at + BATCH], at)
        if embedder is not None:
            fill(db, embedder)
        yield db


def fill(db: Database, embedder: Embedder) -> None:
    """Give every chunk and every entry its vector."""
    db.write(lambda tx: vectors.register_model(tx, embedder.name, embedder.dimensions, NOW))
    db.write(lambda tx: vectors.activate_model(tx, embedder.name))
    for queue in (
        embedding_queue.ChunkQueue(db, embedder.name),
        embedding_queue.EntryQueue(db, embedder.name),
    ):
        wanted = queue.missing()
        for at in range(0, len(wanted), BATCH):
            batch = queue.texts(wanted[at : at + BATCH])
            made = embedder.embed_passages([each.text for each in batch])
            found = [(each.content_hash, vector) for each, vector in zip(batch, made, strict=True)]
            db.write(lambda tx, found=found: vectors.keep_chunk_vectors(tx, embedder.name, found, NOW))  # type: ignore[misc]


def save(db: Database, batch: Sequence[Page], at: int) -> None:
    def work(tx: Transaction) -> None:
        for number, page in enumerate(batch, at):
            page_edits.save(tx, page, uuid=f"uuid-{number}", now=NOW, expected_version=0)

    db.write(work)


# Asking it


def ask_all(corpus: Corpus, db: Database, embedder: Embedder | None) -> list[Judged]:
    resident = vector_index.ChunkIndex(db) if embedder else None
    judged = []
    for ask in corpus.asks:
        looked = rank_question(
            db,
            embedder or WORDS_ONLY,
            ask.text,
            now=corpus.now,
            vectors=(lambda: resident) if resident else None,
        )
        found = by_chunk(db, looked) if corpus.by_chunk else by_page(db, looked)
        judged.append(Judged(ask, {way: judge(order, ask.gains) for way, order in found.items()}))
    return judged


def by_chunk(db: Database, looked: RankedQuestion) -> dict[str, list[str]]:
    """The ten best chunks by each way, as slug#line."""
    evidence = looked.candidates.evidence
    near, worded = evidence.lanes
    orders = {"words": list(worded), "meaning": list(near)}
    for strategy in FUSION_STRATEGIES[1:]:
        orders[strategy] = best_first(fuse(evidence, strategy).chunks)
    orders[DEFAULT] = best_first(looked.ranking.chunks)
    rows = {
        row.id: row
        for row in chunks.load(db, list({each for order in orders.values() for each in order[:10]}))
    }
    slugs = {
        head.id: head.slug
        for head in pages.page_heads(db, list({row.page_id for row in rows.values()})).values()
    }
    return {
        way: [f"{slugs[rows[each].page_id]}#{rows[each].start_line}" for each in order[:10]]
        for way, order in orders.items()
    }


def by_page(db: Database, looked: RankedQuestion) -> dict[str, list[str]]:
    """The ten best pages by each way, as slugs; the merged ones as a user sees them, exact names first."""
    evidence = looked.candidates.evidence
    nearest = list(dict.fromkeys(evidence.places[each][0] for each in evidence.lanes[0]))
    orders = {"words": best_first(evidence.page_words), "meaning": nearest}
    for strategy in FUSION_STRATEGIES[1:]:
        orders[strategy] = looked._replace(ranking=fuse(evidence, strategy)).pages
    orders[DEFAULT] = looked.pages
    heads = pages.page_heads(db, list({each for order in orders.values() for each in order[:10]}))
    return {way: [heads[each].slug for each in order[:10]] for way, order in orders.items()}


# What is told of it


def ways(judged: Sequence[Judged]) -> list[tuple[str, ...]]:
    names = {DEFAULT: f"{DEFAULT} (default)"}
    return [row(names.get(way, way), judged, way) for way in WAYS]


def row(name: str, judged: Sequence[Judged], way: str = DEFAULT) -> tuple[str, ...]:
    return (name, *(f"{value:.3f}" for value in quality(judged, way)))


def quality(judged: Iterable[Judged], way: str = DEFAULT) -> Quality:
    return mean([each.by_way[way] for each in judged])


def figures(name: str, judged: Sequence[Judged], *measures: str) -> Figures:
    """What is kept of a corpus: these measures of every way, the default without its name."""
    found = {}
    for measure in measures:
        for way in WAYS:
            told = f"{name} {measure.replace('fraction', 'share@').replace('ndcg', 'ndcg@')}"
            key = told if way == DEFAULT else f"{told}, {way}"
            found[key] = float(getattr(quality(judged, way), measure))
    return found
