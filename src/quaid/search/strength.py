"""Rate the evidence for an answer: strong, weak or none.

The rating of a result uses raw evidence instead of rescaled scores:

- the share of the question's words that it contains, with rare words weighted more
- how much nearer its chunk is than the nearest of as many unrelated chunks would be
- whether it contains the names in the question

The nearest of many unrelated chunks is nearer than the nearest of a few, so the same cosine means less in a
large memory. For n independent values, the highest is about sqrt(2 ln n) standard deviations above the mean.
The standard deviation is that of the memory itself: the distance of its chunks from their mean, spread
evenly over all dimensions. Therefore the limits hold for memories of any size and for any model.
`python -m bench strength` measures them, and docs/decisions/078-strength.md has the figures.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Strength = Literal["strong", "weak", "none"]

STRONG, WEAK = 0.85, 0.36
"""The limits of the evidence for strong and weak."""

MEANING_WEIGHT = 1.5
"""Weight of the similarity in meaning, relative to the share of words."""

NAMES_WEIGHT = 0.4
"""This much is subtracted if a result has none of the names in the question."""

STRONG_WORDS, WEAK_WORDS = 0.6, 0.3
"""The limits for strong and weak if only words are known."""

ENOUGH_CHUNKS = 50
"""The mean of at least this many chunks is a reliable baseline (the cosine of an unrelated chunk)."""

LEAST_WEIGHT = 0.1
"""A word has at least this weight, however many chunks contain it."""

CHANCE = 2.0
"""The nearest unrelated chunk, in units of spread times sqrt(2 ln n).

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


def rate(words: float, meaning: float | None, missing_names: float = 0.0) -> tuple[Strength, float]:
    """Return the strength of a result, and its evidence as a number from 0 to 1, comparable between questions.

    `words` is the share of the question's words in the result, `meaning` the result of `Unrelated.excess`, or
    None if the result has no vector, and `missing_names` the share of the question's names that are not in the
    result. The number is at least 0.5 for strong results, and at least 0.24 for weak ones.
    """
    evidence = words - NAMES_WEIGHT * missing_names
    limits = _WORD_LIMITS
    if meaning is not None:
        evidence += MEANING_WEIGHT * meaning
        limits = _LIMITS
    score = round(min(1.0, max(0.0, _scaled(evidence, limits))), 2)
    strength: Strength = "none"
    if evidence >= limits.weak:
        strength = "strong" if evidence >= limits.strong else "weak"
    return strength, score


STRONG_SCORE, WEAK_SCORE = 0.5, 0.24
"""The limits of the number that `rate` returns."""


class _Limits(NamedTuple):
    """The evidence from which on a result is weak, strong, or has the highest score."""

    weak: float
    strong: float
    most: float


_LIMITS = _Limits(WEAK, STRONG, 2.0)
_WORD_LIMITS = _Limits(WEAK_WORDS, STRONG_WORDS, 1.0)


def _scaled(evidence: float, limits: _Limits) -> float:
    """Return evidence on a scale on which the limits are WEAK_SCORE and STRONG_SCORE."""
    weak, strong, most = limits
    if evidence >= strong:
        return STRONG_SCORE + (1 - STRONG_SCORE) * (evidence - strong) / (most - strong)
    if evidence >= weak:
        return WEAK_SCORE + (STRONG_SCORE - WEAK_SCORE - 0.01) * (evidence - weak) / (strong - weak)
    return (WEAK_SCORE - 0.01) * evidence / weak


def below_strong(score: float) -> float:
    """Limit a score to less than the limit for strong, for a result that lacks what the question asks for."""
    return min(score, STRONG_SCORE - 0.01)


def evidence_score(words: float, meaning: float | None) -> float:
    """Return the share of words and the result of `standing_out` as one number from 0 to 1; each counts half.

    If `meaning` is None, only the share of words counts.
    """
    if meaning is None:
        return round(words, 2)
    return round(min(1.0, (words + min(1.0, MEANING_WEIGHT * meaning)) / 2), 2)


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


# Names in a question

_WORD = re.compile(r"[^\W_]+(?:[’'-][^\W_]+)*|[.!?:;\"“”\n]")
_POSSESSIVE_END = re.compile(r"[’']s?\Z", re.IGNORECASE)
_GERMAN = frozenset(
    "der die das den dem des ein eine einen einem einer ist sind war hat und wo wer wann wie".split()
)
"""In a question with one of these words, nouns are capitalized, so that capitals do not mark names."""
_CALENDAR = frozenset(
    """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday i i'm i've i'd""".split()
)


def names_asked(question: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the capitalized words of a question, except the first of each sentence, with their weights.

    The first word is a name too if it is a possessive, or if another name follows. Months and weekdays are no
    names. If most words are capitalized, as in a heading, none is a name.
    """
    words = _WORD.findall(question)
    names: set[str] = set()
    letters = [word for word in words if word[0].isalpha()]
    if len(letters) > 2 and 2 * sum(word[0].isupper() for word in letters) > len(letters):
        return {}
    if not _GERMAN.isdisjoint(word.lower() for word in letters):
        return {}
    starts = True
    for word, after in zip(words, [*words[1:], ""], strict=False):
        bare = _POSSESSIVE_END.sub("", word).lower()
        is_name = word[0].isupper() and bare not in _CALENDAR
        if starts:
            is_name = is_name and (bare != word.lower() or after[:1].isupper())
        if is_name:
            names.update((bare, *re.split(r"[’'-]", bare)))
        starts = not word[0].isalnum()
    return {word: weight for word, weight in weights.items() if word.lower() in names}


def missing_names(names: Mapping[str, float], held: Iterable[str]) -> float:
    """Return the share of the names that are not in `held`, or 0 if there are none. Rare names count more."""
    return 1 - word_share(held, names) if names else 0.0
