"""Rate the evidence for an answer: strong, weak or none.

The rating uses raw evidence instead of rescaled scores: how much nearer the nearest chunk is than an
unrelated chunk, and how many of the question's words the best results contain, with rare words weighted
more. The limits were set on the first five conversations of the LoCoMo benchmark. Each was queried with its
own questions and with questions about another conversation. Of its own questions, 79 % are rated strong and
3 % none. Of the others, 1 % are rated strong and 79 % none.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal

Strength = Literal["strong", "weak", "none"]

STRONG, WEAK = 1.0, 0.65
MEANING_WEIGHT = 1.5
"""Weight of the result of `standing_out`, relative to the share of words."""

STRONG_WORDS, WEAK_WORDS = 0.6, 0.3
"""The limits for strong and weak if only the share of words is known."""

ENOUGH_CHUNKS = 50
"""The mean of at least this many chunks is a reliable baseline (the cosine of an unrelated chunk)."""

LEAST_WEIGHT = 0.1
"""A word has at least this weight, however many chunks contain it."""


def judge_strength(words: float, meaning: float | None, *, exact: bool = False) -> Strength:
    """Rate an answer by the share of the question's words in it, and by the result of `standing_out`, if any.

    With `exact`, which means that the name of a page matches exactly, the answer is always strong.
    """
    if exact:
        return "strong"
    if meaning is None:
        return "strong" if words >= STRONG_WORDS else "weak" if words >= WEAK_WORDS else "none"
    evidence = words + MEANING_WEIGHT * meaning
    return "strong" if evidence >= STRONG else "weak" if evidence >= WEAK else "none"


def evidence_score(words: float, meaning: float | None) -> float:
    """Return the evidence as a number from 0 to 1 that is comparable between questions.

    The share of words and the meaning each count half. If `meaning` is None, only the share of words counts.
    `judge_strength` rates evidence as strong from 0.5 and as weak from 0.33; by words alone, from 0.6 and
    0.3.
    """
    if meaning is None:
        return round(words, 2)
    return round(min(1.0, (words + min(1.0, MEANING_WEIGHT * meaning)) / 2), 2)


def below_strong(value: float, meaning: float | None) -> float:
    """Limit a score to less than the limit for strong, for a result outside the period that the question names."""
    return min(value, (STRONG_WORDS if meaning is None else STRONG / 2) - 0.01)


def standing_out(cosine: float, baseline: float, chunks: int) -> float | None:
    """Return how near a chunk is to the question, from 0 (like an unrelated chunk) to 1 (identical).

    `cosine` is the cosine of the chunk, and `baseline` is the result of `expected_baseline`. The baseline is
    a mean that includes this chunk, so the chunk's share is subtracted from it. Return None if this is the
    only chunk and the model has no measured cosine of unrelated texts.
    """
    if chunks < 2 and baseline == cosine:  # this is the only chunk, and the model has no measured value
        return None
    others = baseline if chunks < 2 else (baseline * chunks - cosine) / (chunks - 1)
    return max(0.0, (cosine - others) / (1 - others)) if others < 1 else 0.0


def expected_baseline(mean: float, chunks: int, prior: float | None) -> float:
    """Return the expected cosine of an unrelated chunk.

    This is the mean over the database, mixed with `prior` if there are few chunks. `prior` is the model's
    measured cosine of unrelated texts, or None.
    """
    if prior is None or chunks >= ENOUGH_CHUNKS:
        return mean
    share = chunks / ENOUGH_CHUNKS
    return share * mean + (1 - share) * prior


def word_weights(counts: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word of a question, by the number of chunks that contain it.

    In a small database even a rare word may be in every chunk, so the total is at least ENOUGH_CHUNKS.
    """
    total = max(total, ENOUGH_CHUNKS)
    return {
        word: max(LEAST_WEIGHT, math.log((total + 0.5) / (count + 0.5))) for word, count in counts.items()
    }


def word_share(held: Iterable[str], weight: Mapping[str, float]) -> float:
    """Return the share of a question's words that are in `held`. Each word counts by its weight."""
    every = sum(weight.values())
    return sum(weight[word] for word in set(held) if word in weight) / every if every else 0.0
