"""Similarity of texts: word stems, equal lines, equal questions, and near-duplicate pages by MinHash."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from functools import cache
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np

LEAST_LINE_SHARE = 0.85
"""Of the words of the longer line, how many they must share."""

SMALL_WORDS = frozenset(
    """a an the and of to in on at for is are was were be been am my our your his her their its that this it
    please also so just i we you he she they with by as""".split()
)


def same_line(one: str, other: str) -> bool:
    """Whether two lines say the same: one is the other, but for a few small words that it has more."""
    short, long = sorted((_line_words(one), _line_words(other)), key=len)
    if len(short) < LEAST_LINE_SHARE * len(long) or not short:
        return False
    rest = iter(long)
    for word in short:
        for each in rest:
            if each == word:
                break
            if each not in SMALL_WORDS:
                return False
        else:
            return False
    return all(each in SMALL_WORDS for each in rest)


@cache
def stem(word: str) -> str:
    """The beginning that the forms of an English word share: "format" of "formatters"."""
    for endings, least in _SUFFIXES[word.endswith(("ss", "us", "is")) :]:
        for ending in endings:
            if word.endswith(ending) and len(word) - len(ending) >= least:
                word = word[: -len(ending)]
                break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] in "bdgklmnprt":
        return word[:-1]
    return word


_SUFFIXES = (
    (("ies", "s"), 3),
    (("ations", "ation", "ating", "ated", "ate", "ment", "ing", "er", "ed", "ly"), 4),
    (("y", "e", "i"), 3),
)
"""Each line takes one ending off, if so many letters stay."""


def _line_words(text: str) -> list[str]:
    """The words of a line with all that tells them apart: signs in and around them, case where it means something.

    Only what ends or sets off a sentence goes: `milk.` is `milk`, but `-18`, `C++`, `3,500` and `Secret1` stay.
    """
    pieces = text.replace("’", "'").split()
    words = [_fold_case(_strip_signs(piece)) for piece in pieces if piece.strip(LINE_PUNCTUATION)]
    return words or pieces


def _strip_signs(piece: str) -> str:
    word = piece.strip(LINE_PUNCTUATION)
    return word if any(each.isalnum() for each in word) else piece  # != is a word too


LINE_PUNCTUATION = "\"'`*_()[]{}“”‘„«»,;:.!?…"


def _fold_case(word: str) -> str:
    """A code or a name with odd capitals is itself; a word may be written large."""
    if any(each.isdigit() for each in word) or (
        not word.isupper() and any(each.isupper() for each in word[1:])
    ):
        return word
    return word.lower()


LONGEST_GAP_CONTEXT = 500
"""Characters. A context says where a question came up, no more."""

LONGEST_QUESTION_WORD = 64
"""Letters of a word in ASCII; elsewhere a whole sentence may be without a space."""

_QUESTION_WORD = re.compile(r"[^\W\d_]+")
_QUESTION_PUNCTUATION = " ?!.,;:…¿¡。？！．，、；：｡؟،؛"


def fold_question(question: str) -> str:
    """The question without what differs when it is asked again: case, spaces, the signs at its ends."""
    if not question.isascii():
        question = unicodedata.normalize("NFKC", question)
    folded = " ".join(question.casefold().split())
    return folded.strip(_QUESTION_PUNCTUATION) or folded


def is_question(text: str) -> bool:
    """Whether a text has a word that somebody would write: signs, numbers and a key that was held down are none."""
    return any(
        not word.isascii() or (len(word) <= LONGEST_QUESTION_WORD and len(set(word)) > 1)
        for word in _QUESTION_WORD.findall(fold_question(text))
    )


def question_hash(question: str) -> str:
    """The name under which a question is kept: SHA-256 of its folded text."""
    return hashlib.sha256(fold_question(question).encode("utf-8", "replace")).hexdigest()


def reveals_question(text: str, question: str) -> bool:
    """Whether a text gives the words of a question away."""
    return fold_question(question) in fold_question(text)


if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

SHINGLE_WORDS = 3
"""Words in a run."""

LEAST_SHINGLES = 12
"""A text with fewer says too little for its likeness to mean anything."""

LSH_BANDS, LSH_ROWS = 16, 4
"""Of texts with half of their runs in common 64 % are compared, with 70 % 99 %, with 80 % 99.98 %."""

LEAST_THRESHOLD = 0.5

RARE_SHINGLE_LIMIT = 4
"""A run that more texts have weighs less, in proportion."""

LARGE_GROUP = 40
"""In a larger group of texts that look alike each is compared with the first and its neighbours only."""

# Scripts without spaces between words count by characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+"  # takes 6 ms to compile: only where texts are compared


class SimilarPair(NamedTuple):
    """Two texts by their keys, the smaller one first, and what part of their runs they share."""

    first: int
    second: int
    likeness: float


class TextSimilarity:
    """Texts that are being compared, each known by a number."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._runs: dict[int, Array] = {}

    def add(self, key: int, text: str) -> None:
        """Take in a text. One that says too little is passed over."""
        import numpy as np

        words = re.findall(_WORD, text.lower())
        if len(words) < LEAST_SHINGLES + SHINGLE_WORDS - 1:
            return
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.uint64, len(words))
        runs = np.zeros(len(words) - SHINGLE_WORDS + 1, np.uint64)
        for place in range(SHINGLE_WORDS):
            runs = _splitmix64(runs ^ numbers[place : len(numbers) - SHINGLE_WORDS + 1 + place])
        runs = np.unique(runs)
        if len(runs) >= LEAST_SHINGLES:
            self._runs[key] = runs

    def weigh(self) -> None:
        """Count in how many texts each run is. To be called once all texts are there."""
        import numpy as np

        if not self._runs:
            return
        every = np.concatenate(list(self._runs.values()))
        _, of_run, counts = np.unique(every, return_inverse=True, return_counts=True)
        weights = np.minimum(1.0, RARE_SHINGLE_LIMIT / counts)[of_run]
        ends = np.cumsum([len(runs) for runs in self._runs.values()])
        self._weights = dict(zip(self._runs, np.split(weights, ends[:-1]), strict=True))
        self._totals = {key: float(each.sum()) for key, each in self._weights.items()}

    def likeness(self, first: int, second: int) -> float | None:
        """The share of common runs, by their weight; None when one of the texts says too little."""
        import numpy as np

        if first not in self._runs or second not in self._runs:
            return None
        one, other = self._runs[first], self._runs[second]
        places = np.minimum(np.searchsorted(other, one), len(other) - 1)
        common = float(self._weights[first][other[places] == one].sum())
        return common / (self._totals[first] + self._totals[second] - common)

    def pairs(self, threshold: float, progress: "Callable[[int, int], None]") -> list[SimilarPair]:
        """The pairs that share at least this part of their runs, the most alike first."""
        keys = list(self._runs)
        if len(keys) < 2:
            return []
        found: dict[tuple[int, int], float] = {}
        seen: set[tuple[int, int]] = set()
        bands = self._bands(keys, progress)
        for band in range(LSH_BANDS):
            for places in _equal_groups(bands[:, band]):
                for one, other in _candidate_pairs(places):
                    pair = (min(keys[one], keys[other]), max(keys[one], keys[other]))
                    if pair not in seen:
                        seen.add(pair)
                        likeness = self.likeness(*pair)
                        if likeness is not None and likeness >= threshold:
                            found[pair] = likeness
        return sorted(
            (SimilarPair(*pair, likeness) for pair, likeness in found.items()), key=_most_alike_first
        )

    def _bands(self, keys: list[int], progress: "Callable[[int, int], None]") -> "Array":
        """For each text one number for each band: two texts with the same one are worth comparing."""
        import numpy as np

        factors = _splitmix64(np.arange(1, LSH_BANDS * LSH_ROWS + 1, dtype=np.uint64)) | np.uint64(1)
        signatures = np.empty((len(keys), LSH_BANDS * LSH_ROWS), np.uint64)
        for place, key in enumerate(keys):
            if place % 500 == 0:
                progress(place, len(keys))
            # The upper half of a product is well mixed: the smallest one is as good as drawn by lot.
            signatures[place] = ((self._runs[key][:, None] * factors) >> np.uint64(16)).min(axis=0)
        numbers = np.zeros((len(keys), LSH_BANDS), np.uint64)
        for row in range(LSH_ROWS):
            numbers = _splitmix64(numbers ^ signatures[:, row::LSH_ROWS])
        return numbers


def _splitmix64(values: "Array") -> "Array":
    """Numbers of 64 bits, each scrambled so that every bit depends on every other (splitmix64)."""
    import numpy as np

    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _equal_groups(numbers: "Array") -> "Iterator[list[int]]":
    """The places of equal numbers, where there are at least two."""
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends = np.r_[starts[1:], len(ordered)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start > 1:
            yield order[start:end].tolist()


def _candidate_pairs(places: list[int]) -> "Iterable[tuple[int, int]]":
    if len(places) <= LARGE_GROUP:
        return [(one, other) for at, one in enumerate(places) for other in places[at + 1 :]]
    with_first = [(places[0], other) for other in places[1:]]
    return with_first + list(pairwise(places[1:]))


def _most_alike_first(pair: SimilarPair) -> tuple[float, int, int]:
    return -pair.likeness, pair.first, pair.second
