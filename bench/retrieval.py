"""How well questions find their answers: words alone, meaning alone, each way of merging, and the default.

    python -m bench.retrieval [--quick] [--data PATH]... [--write]

--data names a folder in BEIR's format or a LongMemEval file. Everything goes through the real store, the real
model and the real pipeline; vectors are kept under .cache/bench, so that a second run is fast. The figures are
compared with bench/baseline.json: one that dropped by more than 2 % makes the exit status 1. --write keeps the
present ones. LoCoMo 1-5 were used to choose the weights, 6-10 were not.
"""

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

from bench.corpora import Ask, Corpus, beir, diary, locomo, long_mem_eval
from bench.measures import Quality, judge, mean
from bench.table import show, verdict
from bench.vectors import Kept, MadeUp
from quaid.core.page import Page
from quaid.embed.protocol import Embedder
from quaid.search import pipeline
from quaid.search.answer import Looked
from quaid.search.fuse import STRATEGIES, fuse
from quaid.store import chunks, pages, settings, vectors
from quaid.store import words as index
from quaid.store.db import Database

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BASELINE = os.path.join(ROOT, "bench", "baseline.json")
MAY_DROP = 0.02
NOW = "2026-04-25T12:00:00Z"
BATCH = 500
ADVERSARIAL = "5"
CATEGORIES = {"1": "multi-hop", "2": "temporal", "3": "open domain", "4": "single-hop", "5": "adversarial"}
DEFAULT = STRATEGIES[0]
WAYS = ("words", "meaning", *STRATEGIES)
HEAD = ("way", *(name.replace("fraction", "share") for name in Quality._fields))

Figures = dict[str, float]


class Judged(NamedTuple):
    ask: Ask
    by_way: dict[str, Quality]


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as brain.py does
    figures: Figures = {}
    figures.update(conversations(quick="--quick" in sys.argv))
    figures.update(diary_figures())
    for path in _named_data():
        figures.update(given(path, quick="--quick" in sys.argv))
    figures.update(names())
    speed()
    if not compare(figures, quick="--quick" in sys.argv):
        sys.exit(1)


def _named_data() -> list[str]:
    return [word for before, word in zip(sys.argv, sys.argv[1:], strict=False) if before == "--data"]


# A memory with a corpus in it


@contextmanager
def memory(corpus: Corpus, embedder: Embedder | None) -> Iterator[Database]:
    """A new memory that holds the corpus, with vectors."""
    with tempfile.TemporaryDirectory() as folder, Database.create(f"{folder}/memory.db", NOW) as db:
        db.write(lambda tx: settings.set(tx, "chunk_strategy", corpus.cut))
        for at in range(0, len(corpus.pages), BATCH):
            save(db, corpus.pages[at : at + BATCH], at)
        if embedder is not None:
            fill(db, embedder)
        yield db


def fill(db: Database, embedder: Embedder) -> None:
    """Give every chunk its vector."""
    db.write(lambda tx: vectors.register(tx, embedder.name, embedder.dimensions, NOW))
    db.write(lambda tx: vectors.activate(tx, embedder.name))
    wanted = vectors.missing_chunks(db, embedder.name)
    for at in range(0, len(wanted), BATCH):
        batch = vectors.texts(db, embedder.name, wanted[at : at + BATCH])
        made = embedder.embed_passages([each.text for each in batch])
        found = [(each.content_hash, vector) for each, vector in zip(batch, made, strict=True)]
        db.write(lambda tx, found=found: vectors.keep(tx, embedder.name, found, NOW))  # type: ignore[misc]


def save(db: Database, batch: Sequence[Page], at: int) -> None:
    def work(tx: apsw.Connection) -> None:
        for number, page in enumerate(batch, at):
            pages.save(tx, page, uuid=f"uuid-{number}", now=NOW, expected_version=0)

    db.write(work)


# Asking it


def ask_all(corpus: Corpus, db: Database, embedder: Embedder) -> list[Judged]:
    resident = vectors.Index(db)
    judged = []
    for ask in corpus.asks:
        looked = pipeline.look(db, embedder, ask.text, now=corpus.now, vectors=lambda: resident)
        found = by_chunk(db, looked) if corpus.by_chunk else by_page(db, looked)
        judged.append(Judged(ask, {way: judge(order, ask.gains) for way, order in found.items()}))
    return judged


def by_chunk(db: Database, looked: Looked) -> dict[str, list[str]]:
    """The ten best chunks by each way, as slug#line."""
    evidence = looked.found.evidence
    near, worded = evidence.lanes
    orders = {"words": list(worded), "meaning": list(near)}
    for strategy in STRATEGIES:
        orders[strategy] = _best_first(fuse(evidence, strategy).chunks)
    rows = {
        row.id: row
        for row in chunks.load(db, list({each for order in orders.values() for each in order[:10]}))
    }
    slugs = {
        head.id: head.slug for head in index.heads(db, list({row.page_id for row in rows.values()})).values()
    }
    return {
        way: [f"{slugs[rows[each].page_id]}#{rows[each].start_line}" for each in order[:10]]
        for way, order in orders.items()
    }


def by_page(db: Database, looked: Looked) -> dict[str, list[str]]:
    """The ten best pages by each way, as slugs; the merged ones as a user sees them, exact names first."""
    evidence = looked.found.evidence
    nearest = list(dict.fromkeys(evidence.places[each][0] for each in evidence.lanes[0]))
    orders = {"words": _best_first(evidence.page_words), "meaning": nearest}
    for strategy in STRATEGIES[1:]:
        orders[strategy] = looked._replace(ranking=fuse(evidence, strategy)).pages
    orders[DEFAULT] = looked.pages
    heads = index.heads(db, list({each for order in orders.values() for each in order[:10]}))
    return {way: [heads[each].slug for each in order[:10]] for way, order in orders.items()}


def _best_first(scores: Any) -> list[int]:
    return sorted(scores, key=lambda each: -scores[each])


# LoCoMo


def conversations(*, quick: bool) -> Figures:
    path = os.path.join(data_folder(), "locomo10.json")
    if not os.path.exists(path):
        print("bench.retrieval: locomo10.json is not here; QUAID_BENCH_DATA names its folder")
        return {}
    embedder = Kept.open()
    levels: dict[str, list[list[Judged]]] = {"turns": [], "sessions": [], "sessions in windows": []}
    for number, (turns, sessions) in enumerate(locomo(path)):
        if quick and number >= 2:
            break
        with memory(turns, embedder) as db:
            levels["turns"].append(ask_all(turns, db, embedder))
            levels["sessions"].append(ask_all(sessions, db, embedder))
        with memory(sessions._replace(cut="section"), embedder) as db:
            levels["sessions in windows"].append(ask_all(sessions, db, embedder))
        print(f"  LoCoMo {number + 1} done", file=sys.stderr, flush=True)
    figures: Figures = {}
    for level, judged in levels.items():
        figures.update(locomo_tables(level, judged))
    return figures


def locomo_tables(level: str, judged: list[list[Judged]]) -> Figures:
    every = [each for conversation in judged for each in conversation]
    show(f"LoCoMo, {level}, {len(every):,} questions, adversarial included", ways(every), HEAD)
    rows = []
    parts = {"1-5 (tuned on)": judged[:5], "6-10 (held out)": judged[5:]}
    for name, part in parts.items():
        some = [each for conversation in part for each in conversation]
        rows += [row(f"conversations {name}", some)] if some else []
    rows.append(row("all but adversarial", [each for each in every if each.ask.category != ADVERSARIAL]))
    for key, name in CATEGORIES.items():
        some = [each for each in every if each.ask.category == key]
        rows += [row(f"{name} ({len(some)})", some)] if some else []
    show(f"LoCoMo, {level}, by the default", rows, ("part", *HEAD[1:]))
    unseen = [each for conversation in judged[5:] for each in conversation]
    found = {
        f"locomo {level} share@10": quality(every).fraction10,
        f"locomo {level} ndcg@10": quality(every).ndcg10,
    }
    if unseen:
        found[f"locomo {level} 6-10 share@10"] = quality(unseen).fraction10
    return found


def ways(judged: Sequence[Judged]) -> list[tuple[str, ...]]:
    names = {DEFAULT: f"{DEFAULT} (default)"}
    return [row(names.get(way, way), judged, way) for way in WAYS]


def row(name: str, judged: Sequence[Judged], way: str = DEFAULT) -> tuple[str, ...]:
    return (name, *(f"{value:.3f}" for value in quality(judged, way)))


def quality(judged: Iterable[Judged], way: str = DEFAULT) -> Quality:
    return mean([each.by_way[way] for each in judged])


# Other data


def given(path: str, *, quick: bool) -> Figures:
    """A folder in BEIR's format, or a LongMemEval file."""
    embedder = Kept.open()
    judged: list[Judged] = []
    if os.path.isdir(path):
        corpus = beir(path)
        with memory(corpus, embedder) as db:
            judged = ask_all(corpus, db, embedder)
    else:
        for number, corpus in enumerate(long_mem_eval(path)):
            if quick and number >= 20:
                break
            with memory(corpus, embedder) as db:
                judged += ask_all(corpus, db, embedder)
    name = os.path.basename(os.path.normpath(path))
    show(f"{name}, {len(judged):,} questions", ways(judged), HEAD)
    by_category: dict[str, list[Judged]] = {}
    for each in judged:
        by_category.setdefault(each.ask.category, []).append(each)
    if len(by_category) > 1:
        rows = [row(f"{key} ({len(some)})", some) for key, some in sorted(by_category.items())]
        show(f"{name}, by the default", rows, ("part", *HEAD[1:]))
    best_single = max(quality(judged, way).ndcg10 for way in ("words", "meaning"))
    gain = quality(judged).ndcg10 - best_single
    rows = [
        ("default above the better of words and meaning", f"{gain:+.4f}", verdict(gain, 0.02, at_least=True))
    ]
    show(f"{name}, nDCG@10", rows, ("figure", "measured", "target"))
    return {f"{name} ndcg@10": quality(judged).ndcg10}


def diary_figures() -> Figures:
    """Dated facts: the entry of the right month among the first five chunks."""
    corpus = diary()
    embedder = Kept.open()
    with memory(corpus, embedder) as db:
        judged = ask_all(corpus, db, embedder)
    show(f"Dated facts, {len(judged)} questions, entries of a timeline", ways(judged), HEAD)
    return {"dated facts share@5": quality(judged).fraction5}


def names() -> Figures:
    """Every page of the sample vault and of the diary, asked for by its title."""
    corpus = diary()
    with memory(corpus, None) as db:
        first = [
            pipeline.query(db, None, page.title, now=NOW, limit=1).results[0].slug for page in corpus.pages
        ]
    share = sum(slug == page.slug for slug, page in zip(first, corpus.pages, strict=True)) / len(first)
    show(
        "Names",
        [("title -> its page at rank 1", f"{share:.3f}", verdict(share, 1.0, at_least=True))],
        ("figure", "measured", "target"),
    )
    return {"names at rank 1": share}


# Speed


def speed(questions: int = 100) -> None:
    """CPU of a whole query with a loaded model, over made-up vectors: they cost what real ones do."""
    path = os.path.join(data_folder(), "locomo10.json")
    if not os.path.exists(path):
        return
    every = [turns for turns, _ in locomo(path)]
    pages_ = [
        page._replace(slug=f"{number}/{page.slug}")
        for number, each in enumerate(every)
        for page in each.pages
    ]
    asks = [ask.text for each in every for ask in each.asks][
        :: max(1, sum(len(e.asks) for e in every) // questions)
    ]
    more = [page._replace(slug=f"again/{page.slug}") for page in pages_]
    model = Kept.open()
    with memory(Corpus("speed", pages_ + more, [], "paragraph"), MadeUp(model)) as db:
        total = chunks.count(db)
        resident = vectors.Index(db)
        gc.collect()
        gc.freeze()  # what this benchmark keeps in memory is no part of a query
        times = []
        for text in [*asks[:5], *asks][: questions + 5]:
            started = time.process_time()
            pipeline.query(db, MadeUp(model), text, now=NOW, vectors=lambda: resident)
            times.append((time.process_time() - started) * 1000)
    times = sorted(times[5:])
    middle, high = times[len(times) // 2], times[len(times) * 95 // 100]
    rows = [("p50", f"{middle:.1f} ms", ""), ("p95", f"{high:.1f} ms", verdict(high, 40))]
    show(f"Whole query, {total:,} chunks, model loaded, CPU", rows, ("figure", "measured", "target"))


def data_folder() -> str:
    return os.environ.get("QUAID_BENCH_DATA") or os.path.join(ROOT, "..", "shared", "data")


# The last release


def compare(figures: Figures, *, quick: bool) -> bool:
    """Whether nothing dropped by more than 2 % since the figures were kept."""
    part = "quick" if quick else "full"
    with open(BASELINE, encoding="utf-8") as file:
        kept: dict[str, Figures] = json.load(file)
    rows, good = [], True
    for name, value in figures.items():
        before = kept.get(part, {}).get(name)
        dropped = before is not None and value < before * (1 - MAY_DROP)
        good = good and not dropped
        rows.append(
            (name, f"{value:.4f}", "-" if before is None else f"{before:.4f}", "DROPPED" if dropped else "")
        )
    show("Against bench/baseline.json", rows, ("figure", "now", "kept", ""))
    if "--write" in sys.argv:
        kept.setdefault(part, {}).update({name: round(value, 4) for name, value in figures.items()})
        with open(BASELINE, "w", encoding="utf-8") as file:
            file.write(json.dumps(kept, indent=2, sort_keys=True) + "\n")
    return good


if __name__ == "__main__":
    main()
