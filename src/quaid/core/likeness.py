"""How much two texts say the same: the share of runs of three words that they have in common.

A run that many texts have is the form they are written in, not what they say, and weighs less.

Knows words, and how to find the few pairs among many texts that are worth comparing (locality-sensitive hashing of
minimal hashes), so that ten thousand texts do not make fifty million comparisons. Knows no page.
"""

import re
from collections import defaultdict
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np

    Array = np.ndarray[Any, Any]

RUN = 3
"""Words in a run."""

LEAST_RUNS = 12
"""A text with fewer says too little for its likeness to mean anything."""

BANDS, ROWS = 16, 4
"""Of texts with half of their runs in common 64 % are compared, with 70 % 99 %, with 80 % 99.98 %."""

LEAST_THRESHOLD = 0.5

FEW = 4
"""A run that more texts have weighs less, in proportion."""

CROWD = 40
"""In a larger group of texts that look alike each is compared with the first and its neighbours only."""

# Scripts without spaces between words count by characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


class Pair(NamedTuple):
    """Two texts by their keys, the smaller one first, and what part of their runs they share."""

    first: int
    second: int
    likeness: float


class Texts:
    """Texts that are being compared, each known by a number."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._runs: dict[int, Array] = {}

    def add(self, key: int, text: str) -> None:
        """Take in a text. One that says too little is passed over."""
        import numpy as np

        words = _WORD.findall(text.lower())
        if len(words) < LEAST_RUNS + RUN - 1:
            return
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.uint64, len(words))
        runs = np.zeros(len(words) - RUN + 1, np.uint64)
        for place in range(RUN):
            runs = _mixed(runs ^ numbers[place : len(numbers) - RUN + 1 + place])
        runs = np.unique(runs)
        if len(runs) >= LEAST_RUNS:
            self._runs[key] = runs

    def weigh(self) -> None:
        """Count in how many texts each run is. To be called once all texts are there."""
        import numpy as np

        if not self._runs:
            return
        every = np.concatenate(list(self._runs.values()))
        _, of_run, counts = np.unique(every, return_inverse=True, return_counts=True)
        weights = np.minimum(1.0, FEW / counts)[of_run]
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

    def pairs(self, threshold: float, progress: "Callable[[int, int], None]") -> list[Pair]:
        """The pairs that share at least this part of their runs, the most alike first."""
        keys = list(self._runs)
        if len(keys) < 2:
            return []
        found: dict[tuple[int, int], float] = {}
        seen: set[tuple[int, int]] = set()
        bands = self._bands(keys, progress)
        for band in range(BANDS):
            for places in _groups(bands[:, band]):
                for one, other in _couples(places):
                    pair = (min(keys[one], keys[other]), max(keys[one], keys[other]))
                    if pair not in seen:
                        seen.add(pair)
                        likeness = self.likeness(*pair)
                        if likeness is not None and likeness >= threshold:
                            found[pair] = likeness
        return sorted((Pair(*pair, likeness) for pair, likeness in found.items()), key=_most_alike_first)

    def _bands(self, keys: list[int], progress: "Callable[[int, int], None]") -> "Array":
        """For each text one number for each band: two texts with the same one are worth comparing."""
        import numpy as np

        factors = _mixed(np.arange(1, BANDS * ROWS + 1, dtype=np.uint64)) | np.uint64(1)
        signatures = np.empty((len(keys), BANDS * ROWS), np.uint64)
        for place, key in enumerate(keys):
            if place % 500 == 0:
                progress(place, len(keys))
            # The upper half of a product is well mixed: the smallest one is as good as drawn by lot.
            signatures[place] = ((self._runs[key][:, None] * factors) >> np.uint64(16)).min(axis=0)
        numbers = np.zeros((len(keys), BANDS), np.uint64)
        for row in range(ROWS):
            numbers = _mixed(numbers ^ signatures[:, row::ROWS])
        return numbers


def _mixed(values: "Array") -> "Array":
    """Numbers of 64 bits, each scrambled so that every bit depends on every other (splitmix64)."""
    import numpy as np

    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _groups(numbers: "Array") -> "Iterator[list[int]]":
    """The places of equal numbers, where there are at least two."""
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends = np.r_[starts[1:], len(ordered)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start > 1:
            yield order[start:end].tolist()


def _couples(places: list[int]) -> "Iterable[tuple[int, int]]":
    if len(places) <= CROWD:
        return [(one, other) for at, one in enumerate(places) for other in places[at + 1 :]]
    with_first = [(places[0], other) for other in places[1:]]
    return with_first + list(pairwise(places[1:]))


def _most_alike_first(pair: Pair) -> tuple[float, int, int]:
    return -pair.likeness, pair.first, pair.second
