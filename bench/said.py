"""Turns found by words, and by words and meaning: LoCoMo's questions, and what a search costs.

LoCoMo's sessions become conversations, their speakers the roles. What is found is judged by turns: the share of those
with the answer among the first ten. Talks 1-5 were used to choose how lanes are mixed, 6-10 were not. Vectors are
those of the real model and kept under .cache/bench, as for `bench.retrieval`.

    python -m bench.said [--quick]
"""

import sys
import tempfile
import time
from typing import NamedTuple

from bench.asking import NOW
from bench.corpora import Corpus, data_file, locomo
from bench.measures import judge
from bench.table import show, verdict
from bench.vectors import Kept
from quaid.embedding.backfill import Backfill
from quaid.embedding.registry import Embedder
from quaid.search import conversations as conversation_search
from quaid.storage import embedding_queue, vectors
from quaid.storage.conversations import NewTurn, TurnBatch
from quaid.storage.sqlite.connection import Database
from quaid.storage.vector_index import TurnIndex

TUNED_ON = 5
SHARE = 0.70
"""What both lanes should find of the turns with the answer, in talks that were not tuned on."""

P95_MS = 50
QUESTIONS = (
    "why did we choose this database?",
    "connection pool",
    "what did the assistant say about the first word",
    "how long does the import take",
    "the and of",
)
Rows = list[tuple[str, str, str]]


class Talk(NamedTuple):
    """How one talk's questions were answered."""

    words: list[float]
    both: list[float]
    seconds: list[float]


def main() -> None:
    path = data_file("locomo10.json", "said")
    if path is None:
        return
    talks, embedder = [], Kept.open()
    for number, (turns, _) in enumerate(locomo(path)):
        if "--quick" in sys.argv and number not in (0, TUNED_ON):
            continue
        talks.append((number, ask(turns, embedder)))
        print(f"  LoCoMo {number + 1} done", file=sys.stderr, flush=True)
    rows: Rows = []
    for told, held_out in (("1-5, tuned on", False), ("6-10, held out", True)):
        some = [talk for number, talk in talks if (number >= TUNED_ON) == held_out]
        words = mean([word for talk in some for word in talk.words])
        both = mean([each for talk in some for each in talk.both])
        rows.append((f"turn share@10, talks {told}, words", f"{words:.3f}", ""))
        goal = verdict(both, SHARE, at_least=True) if held_out else ""
        rows.append((f"turn share@10, talks {told}, words and meaning", f"{both:.3f}", goal))
    spent = sorted(second for _, talk in talks for second in talk.seconds)
    p95 = spent[len(spent) * 95 // 100] * 1000
    rows.append(
        ("a search by both, resident, without the model, p95, CPU ms", f"{p95:.1f}", verdict(p95, P95_MS))
    )
    show("Conversations of LoCoMo, by words and by meaning", rows, ("figure", "measured", "target"))


def mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def ask(corpus: Corpus, embedder: Embedder) -> Talk:
    """All questions about one talk."""
    talk = Talk([], [], [])
    with tempfile.TemporaryDirectory() as folder, Database.create(f"{folder}/memory.db", NOW) as db:
        for page in corpus.pages:
            turns = []
            for place, line in enumerate(page.truth.split("\n\n")):
                role, _, text = line.partition(": ")
                turns.append(NewTurn(role, text, "", str(place)))
            batch = TurnBatch("plain", page.slug, turns)
            db.write(lambda tx, batch=batch: batch.save(tx, NOW, {}, anew=True))  # type: ignore[misc]
        Backfill(db, embedder, lambda: NOW, lambda *_: None).embed_turns()
        index = TurnIndex(db)
        for each in corpus.asks:
            embedder.embed_query(each.text)  # kept: what is measured is the search
            started = time.process_time()
            both = conversation_search.search_turns(db, embedder, each.text, vectors=lambda: index).hits
            talk.seconds.append(time.process_time() - started)
            for hits, shares in (
                (conversation_search.search_turns_by_words(db, each.text), talk.words),
                (both, talk.both),
            ):
                found = [f"{hit.session}#{2 * hit.turn - 1}" for hit in hits]
                shares.append(judge(found, each.gains).fraction10)
    return talk


def at_scale(memory: str) -> Rows:
    """A search by both in a large memory. Vectors are made up: where they point does not change what it costs."""
    import numpy as np

    chance, embedder = np.random.default_rng(7), Kept.open()
    with Database.open(memory, NOW) as db:
        name, width = embedder.name, embedder.dimensions

        def work(tx: object) -> None:
            vectors.register_model(tx, name, width, NOW)  # type: ignore[arg-type]
            vectors.activate_model(tx, name)  # type: ignore[arg-type]

        db.write(work)
        hashes = [row for (row,) in db.rows("SELECT DISTINCT content_hash FROM turn_parts")]
        for at in range(0, len(hashes), 5_000):
            some = hashes[at : at + 5_000]
            made = chance.normal(size=(len(some), width)).astype("<f4")
            found = [(each, row.tobytes()) for each, row in zip(some, made, strict=True)]
            db.write(lambda tx, found=found: vectors.keep_turn_vectors(tx, name, found, NOW))  # type: ignore[misc]
        index, spent = TurnIndex(db), []
        for question in QUESTIONS * 8:
            embedder.embed_query(question)
            started = time.process_time()
            conversation_search.search_turns(db, embedder, question, vectors=lambda: index)
            spent.append(time.process_time() - started)
        missing = time.process_time()
        embedding_queue.TurnQueue(db, name).count_turns()
        missing = time.process_time() - missing
    p95 = sorted(spent[len(QUESTIONS) :])[-2] * 1000  # of 35, after each was asked once
    return [
        ("parts of turns with vectors", f"{len(hashes):,}", ""),
        ("search by both, resident, without the model, p95, CPU ms", f"{p95:.1f}", verdict(p95, P95_MS)),
        ("counting turns without vectors, CPU ms", f"{missing * 1000:.0f}", ""),
    ]


if __name__ == "__main__":
    main()
