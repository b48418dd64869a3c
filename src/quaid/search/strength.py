"""How well an answer is founded: strong, weak or none.

Judged by raw evidence, not by rescaled scores: how far the nearest chunk stands out from an unrelated one, and how
much of the question's words the best results hold, rare words counting more. The limits were set on the first five
conversations of LoCoMo, each asked its own questions and those of another: 79 % of its own are strong and 3 % none,
of the others 1 % are strong and 79 % none.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal

Strength = Literal["strong", "weak", "none"]

STRONG, WEAK = 1.0, 0.65
MEANING_WEIGHT = 1.5
"""What standing out counts, beside a share of words."""

STRONG_WORDS, WEAK_WORDS = 0.6, 0.3
"""The limits where there is only the share of words."""

ENOUGH_CHUNKS = 50
"""So many chunks have a mean that says what is unrelated."""

LEAST_WEIGHT = 0.1
"""Of a word that is on every page."""


def judge_strength(words: float, meaning: float | None, *, exact: bool = False) -> Strength:
    """The strength of an answer by its share of words and by how far it stands out; None: nothing is known."""
    if exact:
        return "strong"
    if meaning is None:
        return "strong" if words >= STRONG_WORDS else "weak" if words >= WEAK_WORDS else "none"
    evidence = words + MEANING_WEIGHT * meaning
    return "strong" if evidence >= STRONG else "weak" if evidence >= WEAK else "none"


def evidence_score(words: float, meaning: float | None) -> float:
    """Return the evidence as one number from 0 to 1 that can be compared between questions.

    Half is the share of words, half how far the meaning stands out; without a meaning the share alone. It is the
    scale of `judge`: 0.5 is strong and 0.33 weak, by words alone 0.6 and 0.3.
    """
    if meaning is None:
        return round(words, 2)
    return round(min(1.0, (words + min(1.0, MEANING_WEIGHT * meaning)) / 2), 2)


def below_strong(value: float, meaning: float | None) -> float:
    """Return a score that is not called strong, for a result that lacks what the question asks for."""
    return min(value, (STRONG_WORDS if meaning is None else STRONG / 2) - 0.01)


def standing_out(cosine: float, baseline: float, chunks: int) -> float | None:
    """The way of the nearest chunk from an unrelated one (0) to the question itself (1).

    `baseline` is the mean over all chunks, the nearest included; in a small memory that one is taken out of it.
    In a very small one it is what the model is known for (`expected`), if it is known for anything.
    """
    if chunks < 2 and baseline == cosine:  # nothing else is there, and the model is not known for anything
        return None
    others = baseline if chunks < 2 else (baseline * chunks - cosine) / (chunks - 1)
    return max(0.0, (cosine - others) / (1 - others)) if others < 1 else 0.0


def expected_baseline(mean: float, chunks: int, known: float | None) -> float:
    """The cosine of an unrelated chunk: the mean over a memory, as far as that has enough chunks to tell.

    `known` is what the model gives to unrelated texts; None: nobody has measured it.
    """
    if known is None or chunks >= ENOUGH_CHUNKS:
        return mean
    share = chunks / ENOUGH_CHUNKS
    return share * mean + (1 - share) * known


def word_weights(counts: Mapping[str, int], total: int) -> dict[str, float]:
    """What each word of a question says, by how many of the chunks hold it.

    In a small memory a word that is everywhere may still be a rare one: it counts as if there were more chunks.
    """
    total = max(total, ENOUGH_CHUNKS)
    return {
        word: max(LEAST_WEIGHT, math.log((total + 0.5) / (count + 0.5))) for word, count in counts.items()
    }


def word_share(held: Iterable[str], weight: Mapping[str, float]) -> float:
    """How much of a question's words a text holds, the rare ones counting more."""
    every = sum(weight.values())
    return sum(weight[word] for word in set(held) if word in weight) / every if every else 0.0
