"""How good an order of results is, judged by what should have been in it."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class Quality(NamedTuple):
    """One question, or the mean of many. Each is from 0 to 1."""

    any5: float
    all5: float
    fraction5: float
    any10: float
    all10: float
    fraction10: float
    ndcg10: float


def judge(found: Sequence[str], gains: Mapping[str, float]) -> Quality:
    """One question's results against what should be found, each with its gain."""
    shares = []
    for count in (5, 10):
        share = _share(found[:count], [each for each, gain in gains.items() if gain > 0])
        shares += [float(share > 0), float(share == 1), share]
    return Quality._make([*shares, ndcg(found[:10], gains)])


def _share(found: Sequence[str], wanted: Collection[str]) -> float:
    return sum(each in set(found) for each in wanted) / len(wanted)


def ndcg(found: Sequence[str], gains: Mapping[str, float], count: int = 10) -> float:
    """Normalised discounted cumulative gain."""
    got = sum(gains.get(each, 0.0) / math.log2(place + 2) for place, each in enumerate(found[:count]))
    best = sorted(gains.values(), reverse=True)[:count]
    return got / sum(gain / math.log2(place + 2) for place, gain in enumerate(best))


def mean(qualities: Sequence[Quality]) -> Quality:
    return Quality._make(sum(values) / len(values) for values in zip(*qualities, strict=True))
