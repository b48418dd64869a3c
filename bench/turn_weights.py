"""Learn the weights of the features of turns (search.candidates.TURN_WEIGHTS) from LoCoMo 1-5, and print them.

    python -m bench.turn_weights

The score of a turn is its score by sum plus the weighted features. The weights maximise the probability of the
turns with the evidence under a softmax over the best turns of each question. Each conversation is also scored
with weights learned from the other four, which is the honest figure for these five.
"""

import itertools
import os
from typing import Any, NamedTuple

import numpy as np

from bench.asking import memory
from bench.corpora import Corpus, data_folder, locomo
from bench.measures import judge
from bench.table import show
from bench.vectors import Kept
from quaid.search.candidates import (
    TURN_WEIGHTS,
    fuse,
    rank_question,
    turn_features,
    turns_of_chunks,
)
from quaid.storage import chunks, pages, vector_index

CONVERSATIONS, STEPS, BATCH, RATE, PENALTY, FIRST_SCALE = 5, 300, 64, 0.05, 1e-3, 4.0


class Question(NamedTuple):
    conversation: int
    keys: list[str]
    """The turns that are compared, as slug#line."""
    values: Any
    """Of each turn the features, and its score by sum."""
    gains: dict[str, float]


def questions(number: int, corpus: Corpus, embedder: Kept) -> list[Question]:
    gathered = []
    with memory(corpus, embedder) as db:
        index = vector_index.ChunkIndex(db)
        for ask in corpus.asks:
            ranked = rank_question(db, embedder, ask.text, now=corpus.now, vectors=lambda: index)
            candidates = ranked.candidates
            scores = fuse(candidates.evidence).chunks
            turns = turns_of_chunks(db, candidates, scores)
            features = turn_features(candidates.evidence.places, turns, candidates.weights)
            most = candidates.evidence.highest_of_chunk
            rows = chunks.load(db, list(features))
            slugs = {
                page: head.slug for page, head in pages.page_heads(db, [row.page_id for row in rows]).items()
            }
            keys = [f"{slugs[row.page_id]}#{row.start_line}" for row in rows]
            values = np.array([[*features[row.id], most * scores[row.id]] for row in rows])
            gathered.append(Question(number, keys, values, dict(ask.gains)))
    return gathered


def learn(asked: list[Question]) -> Any:
    """Return the weights of the features, relative to the score by sum."""
    usable = [
        (each.values, np.array([float(key in each.gains) for key in each.keys]))
        for each in asked
        if any(key in each.gains for key in each.keys)
    ]
    rng = np.random.default_rng(0)
    weights = np.zeros(usable[0][0].shape[1])
    weights[-1] = FIRST_SCALE
    momentum, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(STEPS):
        gradient = PENALTY * weights
        for place in rng.integers(0, len(usable), BATCH):
            values, wanted = usable[place]
            odds = np.exp(values @ weights - np.max(values @ weights))
            share = odds / odds.sum()
            target = (wanted * share / (wanted * share).sum() + wanted / wanted.sum()) / 2
            gradient = gradient + values.T @ (share - target) / BATCH
        momentum = 0.9 * momentum + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        weights = weights - RATE * (1 - step / STEPS) * momentum / (np.sqrt(square) + 1e-8)
    return weights[:-1] / weights[-1]


def score(asked: list[Question], weights: Any) -> list[tuple[float, float]]:
    """Return share@10 and nDCG@10 of each question."""
    figures = []
    for each in asked:
        order = np.argsort(-(each.values[:, :-1] @ weights + each.values[:, -1]), kind="stable")[:10]
        quality = judge([each.keys[place] for place in order], each.gains)
        figures.append((quality.fraction10, quality.ndcg10))
    return figures


def main() -> None:
    embedder = Kept.open()
    path = os.path.join(data_folder(), "locomo10.json")
    asked = [
        each
        for number, (turns, _) in enumerate(itertools.islice(locomo(path), CONVERSATIONS))
        for each in questions(number, turns, embedder)
    ]
    unseen = []
    for number in range(CONVERSATIONS):
        others = learn([each for each in asked if each.conversation != number])
        unseen += score([each for each in asked if each.conversation == number], others)
    weights = learn(asked)
    rows = [
        ("without features", score(asked, np.zeros(len(weights)))),
        ("weights in use", score(asked, np.array(TURN_WEIGHTS))),
        ("learned from the other four conversations", unseen),
        ("learned from all five", score(asked, weights)),
    ]
    table = [(name, *(f"{value:.4f}" for value in np.mean(figures, axis=0))) for name, figures in rows]
    show(f"LoCoMo 1-5, turns, {len(asked)} questions", table, ("weights", "share@10", "ndcg@10"))
    print("TURN_WEIGHTS =", tuple(round(float(weight), 2) for weight in weights))


if __name__ == "__main__":
    main()
