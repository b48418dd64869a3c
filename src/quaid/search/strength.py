"""Rate the evidence for an answer: strong, weak or none.

The rating of a result uses raw evidence instead of rescaled scores:

- the question's words that it contains, in all, in one statement, and by BM25; rare words weigh more
- how much nearer its chunk is than the nearest of as many unrelated chunks would be
- how far the first result is ahead of the second
- whether it contains the names in the question, words of the question besides its subject, and what is asked
  for, such as a number or a phone number

The nearest of many unrelated chunks is nearer than the nearest of a few, so the same cosine means less in a
large memory. For n independent values, the highest is about sqrt(2 ln n) standard deviations above the mean.
The standard deviation is that of the memory itself: the distance of its chunks from their mean, spread
evenly over all dimensions. Therefore the limits hold for memories of any size and for any model.
`python -m bench strength` measures them, and docs/decisions/076-strength.md has the figures.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

Strength = Literal["strong", "weak", "none"]

STRONG, WEAK = 0.68, 0.0
"""The limits of the evidence for strong and weak."""

SHARE_WEIGHT, NEAR_WEIGHT, BM25_WEIGHT, MEANING_WEIGHT, LEAD_WEIGHT = 0.25, 0.35, 0.4, 1.0, 0.3
"""Weights of `words`, `near`, `bm25`, `meaning` and `lead` of Found."""

NAMES_WEIGHT, SUBJECT_WEIGHT = 0.25, 0.2
"""This much is subtracted if a result has none of the question's names, or none of its words besides the subject."""

LEAST_ATTRIBUTE = 0.1
"""A result with a smaller share of the question's words besides its subject is not strong."""

STRONG_WORDS, WEAK_WORDS = 0.6, 0.3
"""The limits for strong and weak if only words are known."""

NAMES_WEIGHT_OF_WORDS = 0.4
"""This much is subtracted for missing names if only words are known."""

ENOUGH_CHUNKS = 50
"""The mean of at least this many chunks is a reliable baseline (the cosine of an unrelated chunk)."""

LEAST_WEIGHT = 0.1
"""A word has at least this weight, however many chunks contain it."""

CHANCE = 2.0
"""The expected nearness of the nearest unrelated chunk, in units of spread times sqrt(2 ln n).

Questions vary most in the directions in which chunks vary too, so this is more than 1.
"""

TYPICAL_SPREAD, MOST_BY_CHANCE = 0.03, 0.35
"""The spread that is assumed in a memory of few chunks, and the highest value of `Unrelated.by_chance`."""


class Unrelated(NamedTuple):
    """What is expected of chunks that have nothing to do with a question."""

    baseline: float
    """Their mean cosine."""
    spread: float
    """The standard deviation of their cosines."""
    chunks: int
    """How many chunks were compared."""

    @property
    def by_chance(self) -> float:
        """The value of `standing_out` that the nearest unrelated chunk is expected to reach."""
        share = min(1.0, self.chunks / ENOUGH_CHUNKS)
        spread = share * self.spread + (1 - share) * TYPICAL_SPREAD
        return min(MOST_BY_CHANCE, CHANCE * spread * math.sqrt(2 * math.log(max(self.chunks, ENOUGH_CHUNKS))))

    def excess(self, cosine: float) -> float | None:
        """Return how much nearer a chunk is than the nearest unrelated one; negative if it is less near.

        Return None if that is not known (see `standing_out`).
        """
        nearness = standing_out(cosine, self.baseline, self.chunks)
        return None if nearness is None else nearness - self.by_chance


class Found(NamedTuple):
    """How a result matches a question. Shares of words are from 0 to 1, and rare words weigh more."""

    words: float
    """The share of the question's words that it contains."""
    near: float
    """The largest share of the question's words in one statement together with its title and heading."""
    bm25: float
    """Its BM25 score, divided by the sum of the weights of the question's words."""
    meaning: float | None
    """The result of `Unrelated.excess`, or None if it has no vector."""
    missing_names: float = 0.0
    """The share of the question's names that it does not contain."""
    attribute: float = 1.0
    """The share of the question's words, other than names and words of the title; 1 if there are no others."""
    lacking: float = 0.0
    """`Sought.weight` if the result does not have what the question asks for, otherwise 0."""
    lead: float = 0.0
    """For the first result, the difference between its ranking score and that of the second; otherwise 0."""


def rate(found: Found) -> tuple[Strength, float]:
    """Return the strength of a result, and its evidence as a number from 0 to 1, comparable between questions.

    The number is at least 0.5 for strong results, and at least 0.24 for weak ones.
    """
    limits = _LIMITS
    if found.meaning is None:
        limits, evidence = _WORD_LIMITS, found.words - NAMES_WEIGHT_OF_WORDS * found.missing_names
    else:
        evidence = (
            SHARE_WEIGHT * found.words
            + NEAR_WEIGHT * found.near
            + BM25_WEIGHT * min(1.0, found.bm25)
            + MEANING_WEIGHT * found.meaning
            + LEAD_WEIGHT * found.lead
            - NAMES_WEIGHT * found.missing_names
            - SUBJECT_WEIGHT * (1 - found.attribute)
        )
    evidence -= found.lacking
    score = round(min(1.0, max(0.0, _scaled(evidence, limits))), 2)
    if found.attribute < LEAST_ATTRIBUTE or found.lacking:
        score = below_strong(score)
    strength: Strength = "none"
    if score >= WEAK_SCORE:
        strength = "strong" if score >= STRONG_SCORE else "weak"
    return strength, score


STRONG_SCORE, WEAK_SCORE = 0.5, 0.24
"""The limits of the number that `rate` returns."""


class _Limits(NamedTuple):
    """The evidence required for the lowest score, for a weak and a strong result, and for the highest score."""

    least: float
    weak: float
    strong: float
    most: float


_LIMITS = _Limits(-0.4, WEAK, STRONG, 1.6)
_WORD_LIMITS = _Limits(0.0, WEAK_WORDS, STRONG_WORDS, 1.0)


def _scaled(evidence: float, limits: _Limits) -> float:
    """Return the score for some evidence. The limits for weak and strong become WEAK_SCORE and STRONG_SCORE."""
    least, weak, strong, most = limits
    if evidence >= strong:
        return STRONG_SCORE + (1 - STRONG_SCORE) * (evidence - strong) / (most - strong)
    if evidence >= weak:
        return WEAK_SCORE + (STRONG_SCORE - WEAK_SCORE - 0.01) * (evidence - weak) / (strong - weak)
    return (WEAK_SCORE - 0.01) * (evidence - least) / (weak - least)


def below_strong(score: float) -> float:
    """Limit a score to less than the limit for strong, for a result that lacks what the question asks for."""
    return min(score, STRONG_SCORE - 0.01)


def evidence_score(words: float, meaning: float | None) -> float:
    """Return the share of words and the result of `standing_out` as one number from 0 to 1; each counts half.

    If `meaning` is None, only the share of words counts.
    """
    if meaning is None:
        return round(words, 2)
    return round(min(1.0, (words + min(1.0, 1.5 * meaning)) / 2), 2)


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


def missing_names(names: Mapping[str, float], held: Iterable[str]) -> float:
    """Return the share of the names that are not in `held`, or 0 if there are none. Rare names count more."""
    return 1 - word_share(held, names) if names else 0.0


_ASKING = frozenset(
    """tell show give list find explain describe know known remember say said information info note notes detail
    details overview summary news status latest thing things something anything everything happened""".split()
)
"""Words of a question that asks for anything about a subject."""


def attribute_share(weights: Mapping[str, float], held: Iterable[str], subject: Collection[str]) -> float:
    """Return the share of a question's words besides its subject that are in `held`, or 1 if it has no others."""
    others = {
        word: weight
        for word, weight in weights.items()
        if word not in subject and word.lower() not in _ASKING
    }
    return word_share(held, others) if others else 1.0
