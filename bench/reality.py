"""A corpus as people have it: real pages asked for by name and by what they are about, dated facts, and time.

The pages are those of the Kubernetes documentation: odd headings, huge tables, 2,453 files. A title is to find its
page at rank 1; a description, which no index holds, the page that it was written for. Time is CPU of a whole
query with a loaded model, over made-up vectors: they cost what real ones do.
"""

import gc
import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench import asking
from bench.asking import HEAD, NOW, Figures, ask_all, memory, quality, ways
from bench.corpora import Corpus, data_file, data_folder, described, diary, kubernetes, locomo
from bench.table import show, verdict
from bench.vectors import Kept, MadeUp
from quaid.model.page import Page
from quaid.search.answer import build_answer
from quaid.search.candidates import WORDS_ONLY, rank_question
from quaid.storage import chunks, vector_index
from quaid.storage.sqlite.connection import Database

QUESTIONS = 100
NAMED = 300
LONGEST_QUESTION = 12
"""Words."""

WARM_UP = 20
"""Questions before the first that is timed: a long-lived process opens its model anew after some."""


def figures(*, quick: bool) -> Figures:
    found = dated()
    if path := data_file("kubernetes-docs-en.tar.gz", "reality"):
        found.update(documentation(kubernetes(path, every=5 if quick else 1)))
    if not quick:
        conversations_speed()
    return found


def dated() -> Figures:
    """Dated facts: the entry of the right month among the first five chunks. And each person's page by name."""
    corpus = diary()
    embedder = Kept.open()
    with memory(corpus, embedder) as db:
        judged = ask_all(corpus, db, embedder)
        share = by_name(db, corpus.pages)
    show(f"Dated facts, {len(judged)} questions, entries of a timeline", ways(judged), HEAD)
    return {"dated facts share@5": quality(judged).fraction5, "names at rank 1": share}


def by_name(db: Database, pages: Sequence[Page]) -> float:
    """The share of pages that their title finds at rank 1."""
    first = [
        build_answer(db, rank_question(db, WORDS_ONLY, page.title, now=NOW), limit=1).results
        for page in pages
    ]
    return sum(
        bool(found) and found[0].slug == page.slug for found, page in zip(first, pages, strict=True)
    ) / len(pages)


def documentation(pages: list[Page]) -> Figures:
    corpus = described(pages)
    embedder = Kept.open()
    with memory(corpus, embedder) as db:
        judged = ask_all(corpus, db, embedder)
    show(f"Kubernetes, description -> page, {len(judged)} of {len(corpus.pages)} pages", ways(judged), HEAD)
    found = asking.figures("kubernetes descriptions", judged, "ndcg10")
    best = max(quality(judged, way).ndcg10 for way in ("words", "meaning"))
    gain = quality(judged).ndcg10 - best
    titles = Counter(page.title.casefold() for page in pages)
    alone = [page for page in pages if titles[page.title.casefold()] == 1]
    model = MadeUp(embedder)
    with memory(Corpus("kubernetes", pages, []), model) as db:
        share = by_name(db, alone[:: max(1, len(alone) // NAMED)])
        asked = [" ".join(ask.text.split()[:LONGEST_QUESTION]) for ask in corpus.asks]
        rows = speed_rows(db, model, asked)
        longest = sorted((ask.text for ask in corpus.asks), key=lambda text: -len(text.split()))
        rows += speed_rows(db, model, longest[: len(longest) // 2], "the longer half of the descriptions")
    told = [
        ("title -> its page at rank 1", f"{share:.3f}", verdict(share, 1.0, at_least=True)),
        ("nDCG@10 above the better of words and meaning", f"{gain:+.4f}", verdict(gain, 0.02, at_least=True)),
    ]
    show(f"Kubernetes, {len(pages):,} pages", [*told, *rows], ("figure", "measured", "target"))
    return {**found, "kubernetes names at rank 1": share}


def conversations_speed() -> None:
    """The same over the turns of LoCoMo, twice."""
    path = os.path.join(data_folder(), "locomo10.json")
    if not os.path.exists(path):
        return
    every = [turns for turns, _ in locomo(path)]
    once = [
        page._replace(slug=f"{number}/{page.slug}")
        for number, each in enumerate(every)
        for page in each.pages
    ]
    again = [page._replace(slug=f"again/{page.slug}") for page in once]
    model = MadeUp(Kept.open())
    with memory(Corpus("speed", once + again, [], "paragraph"), model) as db:
        rows = speed_rows(db, model, [ask.text for each in every for ask in each.asks])
    show("Turns of LoCoMo, twice", rows, ("figure", "measured", "target"))


class Timed:
    """A model that notes the CPU milliseconds of each question."""

    def __init__(self, model: MadeUp) -> None:
        self._model = model
        self.taken: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def embed_query(self, text: str) -> bytes:
        started = time.process_time()
        vector = self._model.embed_query(text)
        self.taken.append((time.process_time() - started) * 1000)
        return vector


def speed_rows(
    db: Database, model: MadeUp, asked: Sequence[str], what: str = "whole query"
) -> list[tuple[str, str, str]]:
    """CPU of a whole query: p50 and p95 over a hundred questions, and of the model alone."""
    asked = asked[:: max(1, len(asked) // QUESTIONS)][:QUESTIONS]
    resident = vector_index.ChunkIndex(db)
    timed: Any = Timed(model)
    # No question is asked twice, because the vectors of recent ones are cached.
    for text in asked[:WARM_UP]:
        build_answer(db, rank_question(db, timed, f"{text} also", now=NOW, vectors=lambda: resident))
    gc.collect()
    gc.freeze()  # what this benchmark keeps in memory is no part of a query
    times = []
    timed.taken.clear()
    for text in asked:
        started = time.process_time()
        build_answer(db, rank_question(db, timed, text, now=NOW, vectors=lambda: resident))
        times.append((time.process_time() - started) * 1000)
    gc.unfreeze()
    middle, high = _spread(times)
    of_model = _spread(timed.taken)
    what = f"{what}, {chunks.count(db):,} chunks, model loaded, CPU"
    return [
        (f"{what}: p50", f"{middle:.1f} ms", ""),
        (f"{what}: p95", f"{high:.1f} ms", verdict(high, 40)),
        ("  of which the model: p50 and p95", f"{of_model[0]:.1f} and {of_model[1]:.1f} ms", ""),
    ]


def _spread(times: list[float]) -> tuple[float, float]:
    """p50 and p95."""
    times = sorted(times)
    return times[len(times) // 2], times[len(times) * 95 // 100]
