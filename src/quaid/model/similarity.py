"""Similarity of texts: equal lines, equal questions, and near-duplicate pages by MinHash."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np

LEAST_LINE_SHARE = 0.85
"""Two lines are equal only if the shorter one has at least this share of the words of the longer one."""

SMALL_WORDS = frozenset(
    """a an the and of to in on at for is are was were be been am my our your his her their its that this it
    please also so just i we you he she they with by as""".split()
)


def same_line(one: str, other: str) -> bool:
    """Return True if two lines are equal except for a few SMALL_WORDS that one of them has in addition."""
    short, long = sorted((_line_words(one), _line_words(other)), key=len)
    if len(short) < LEAST_LINE_SHARE * len(long) or not short:
        return False
    rest = iter(long)
    for word in short:
        for other_word in rest:
            if other_word == word:
                break
            if other_word not in SMALL_WORDS:
                return False
        else:
            return False
    return all(other_word in SMALL_WORDS for other_word in rest)


LEAST_SHARED_WORDS = 2
LEAST_NEAR_SHARE = 0.5
"""Minimum share of common words, among all words of two lines, for the lines to be near-duplicates."""


def is_near_line(one: str, other: str) -> bool:
    """Return True if two lines have at least half of their words in common, apart from SMALL_WORDS."""
    words, others = ({word.lower() for word in _line_words(text)} - SMALL_WORDS for text in (one, other))
    shared = len(words & others)
    return shared >= LEAST_SHARED_WORDS and shared >= LEAST_NEAR_SHARE * len(words | others)


def _line_words(text: str) -> list[str]:
    """Split a line into words, keeping signs and capitals that carry meaning.

    Only punctuation around words is removed: `milk.` becomes `milk`, but `-18`, `C++`, `3,500` and `Secret1`
    are kept.
    """
    pieces = text.replace("’", "'").split()
    words = [_fold_case(_strip_signs(piece)) for piece in pieces if piece.strip(LINE_PUNCTUATION)]
    return words or pieces


def _strip_signs(piece: str) -> str:
    word = piece.strip(LINE_PUNCTUATION)
    # An operator such as != counts as a word.
    return word if any(character.isalnum() for character in word) else piece


LINE_PUNCTUATION = "\"'`*_()[]{}“”‘„«»,;:.!?…"


def _fold_case(word: str) -> str:
    """Lowercase a word, except codes with digits and names with inner capitals."""
    if any(character.isdigit() for character in word) or (
        not word.isupper() and any(character.isupper() for character in word[1:])
    ):
        return word
    return word.lower()


LONGEST_GAP_CONTEXT = 500
"""The context stored with a gap (a question that the memory could not answer) has at most this many characters."""

LONGEST_QUESTION_WORD = 64
"""A plausible ASCII word has at most this many letters. Other scripts may have no spaces, so they have no limit."""

_QUESTION_WORD = re.compile(r"[^\W\d_]+")
_QUESTION_PUNCTUATION = " ?!.,;:…¿¡。？！．，、；：｡؟،؛"


def fold_question(question: str) -> str:
    """Normalize case, spacing and surrounding punctuation, so that repeated questions compare equal."""
    if not question.isascii():
        question = unicodedata.normalize("NFKC", question)
    folded = " ".join(question.casefold().split())
    return folded.strip(_QUESTION_PUNCTUATION) or folded


def is_question(text: str) -> bool:
    """Return True if the text contains a plausible word, not only signs, numbers or one repeated letter."""
    return any(
        not word.isascii() or (len(word) <= LONGEST_QUESTION_WORD and len(set(word)) > 1)
        for word in _QUESTION_WORD.findall(fold_question(text))
    )


def question_hash(question: str) -> str:
    """Return the key under which a question is stored: the SHA-256 of its normalized text."""
    return hashlib.sha256(fold_question(question).encode("utf-8", "replace")).hexdigest()


def reveals_question(text: str, question: str) -> bool:
    """Return True if the text contains the question, ignoring case, spacing and surrounding punctuation."""
    return fold_question(question) in fold_question(text)


if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

SHINGLE_WORDS = 3
"""Number of words in a shingle, a sequence of consecutive words."""

LEAST_SHINGLES = 12
"""Texts with fewer distinct shingles are too short to compare."""

LSH_BANDS, LSH_ROWS = 16, 4
"""The number of bands of a MinHash signature, and of rows per band.

Two texts that share 50 % of their shingles are compared with a probability of 64 %; with 70 %, the
probability is 99 %.
"""

LEAST_THRESHOLD = 0.5

RARE_SHINGLE_LIMIT = 4
"""A shingle that occurs in more texts than this gets a lower weight, in inverse proportion to their number."""

LARGE_GROUP = 40
"""In a larger group of candidates, each text is compared only with the first text and its neighbours."""

# In scripts written without spaces, each character is counted as a word.
UNSPACED_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD = rf"[{UNSPACED_LETTERS}]|[^\W_{UNSPACED_LETTERS}]+"  # takes 6 ms to compile, so it is compiled on first use


class TextSimilarity:
    """A set of texts to compare, each identified by an integer key."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._runs: dict[int, Array] = {}

    def add(self, key: int, text: str) -> None:
        """Add a text. Texts with too few shingles (sequences of SHINGLE_WORDS words) are ignored."""
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
        """Weight each shingle by the number of texts with it.

        This must be called once, after all texts were added.
        """
        import numpy as np

        if not self._runs:
            return
        every = np.concatenate(list(self._runs.values()))
        _, of_run, counts = np.unique(every, return_inverse=True, return_counts=True)
        weights = np.minimum(1.0, RARE_SHINGLE_LIMIT / counts)[of_run]
        ends = np.cumsum([len(runs) for runs in self._runs.values()])
        self._weights = dict(zip(self._runs, np.split(weights, ends[:-1]), strict=True))
        self._totals = {key: float(weight.sum()) for key, weight in self._weights.items()}

    def likeness(self, first: int, second: int) -> float | None:
        """Return the weighted share of common shingles, or None if either text is too short."""
        import numpy as np

        if first not in self._runs or second not in self._runs:
            return None
        one, other = self._runs[first], self._runs[second]
        places = np.minimum(np.searchsorted(other, one), len(other) - 1)
        common = float(self._weights[first][other[places] == one].sum())
        return common / (self._totals[first] + self._totals[second] - common)

    def pairs(self, threshold: float, progress: "Callable[[int, int], None]") -> list[tuple[int, int]]:
        """Return the keys of pairs with at least this similarity, the smaller key first, most similar pairs first."""
        keys = list(self._runs)
        if len(keys) < 2:
            return []
        likenesses: dict[tuple[int, int], float] = {}
        bands = self._bands(keys, progress)
        for band in range(LSH_BANDS):
            for places in _equal_groups(bands[:, band]):
                for one, other in _candidate_pairs(places):
                    pair = (min(keys[one], keys[other]), max(keys[one], keys[other]))
                    if pair not in likenesses:
                        likenesses[pair] = self.likeness(*pair) or 0.0
        similar = [pair for pair, likeness in likenesses.items() if likeness >= threshold]
        return sorted(similar, key=lambda pair: (-likenesses[pair], pair))

    def _bands(self, keys: list[int], progress: "Callable[[int, int], None]") -> "Array":
        """Return one hash per text and band; texts with an equal hash in a band are candidates."""
        import numpy as np

        factors = _splitmix64(np.arange(1, LSH_BANDS * LSH_ROWS + 1, dtype=np.uint64)) | np.uint64(1)
        signatures = np.empty((len(keys), LSH_BANDS * LSH_ROWS), np.uint64)
        for place, key in enumerate(keys):
            if place % 50 == 0:
                progress(place, len(keys))
            # The upper bits of a product are well mixed, so their minimum approximates the minimum of a
            # random hash.
            signatures[place] = ((self._runs[key][:, None] * factors) >> np.uint64(16)).min(axis=0)
        numbers = np.zeros((len(keys), LSH_BANDS), np.uint64)
        for row in range(LSH_ROWS):
            numbers = _splitmix64(numbers ^ signatures[:, row::LSH_ROWS])
        return numbers


def _splitmix64(values: "Array") -> "Array":
    """Scramble 64-bit integers so that every bit depends on every other (splitmix64)."""
    import numpy as np

    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _equal_groups(numbers: "Array") -> "Iterator[list[int]]":
    """Yield the indexes of equal numbers, for each number that occurs at least twice."""
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
