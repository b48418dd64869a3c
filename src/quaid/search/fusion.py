"""Combine full-text search (words) and vector search (meaning) into one ranking.

A lane is the result list of full-text search or of vector search. There are three strategies:

- `sum` adds a chunk's own score, a part of its neighbours' scores, and the score of its page. The own score is the
  word score relative to the best one, plus the cosine, scaled from an unrelated chunk to the best chunk. A page
  gets the score of its best chunk without the neighbours, because otherwise longer pages would win. The best pages
  are also compared as a whole, and turns of conversations by a few features. If even the best chunk contains few
  of the question's words, then word scores, neighbours and page scores get less weight.
- `set-union` keeps the order of vector search and appends the results that only full-text search found.
- `rrf` (reciprocal rank fusion) adds 1 / (60 + rank) over both lanes.

docs/decisions/008-fusing.md, 074-weak-words.md and 082-turns.md have the measurements behind each number.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

MEANING_SHARE = 0.55
"""Weight of meaning in a score. The rest is the weight of words."""

FAMILIAR, UNFAMILIAR_SHARE = 0.5, 0.2
"""Meaning has its full weight if at least this share (FAMILIAR) of the question is familiar to the model.

For smaller shares the weight is lower, down to UNFAMILIAR_SHARE of the full weight.
"""

NEIGHBOUR_SHARES = (0.3, 0.15)
"""Weight of each chunk directly before or after a chunk, and of each chunk at a distance of two."""

PAGE_SHARE = 1.0
"""Weight of the page's score in the score of a chunk."""

WHOLE_PAGE_SHARE = 0.35
"""Weight of the whole page in its meaning score. The rest is the weight of its best chunk."""

ENOUGH_COVER = 0.45
"""Words, neighbours and pages have their full weight if the best chunk covers at least this share of the words.

See `Evidence.cover`. Below it, their weights fall with the square of the share.
"""

TURN_WEIGHTS = (0.44, -0.22, 0.20, 0.53)
"""Weights of the features of a turn (see `turn_features`), learned by bench/turn_weights.py from LoCoMo 1-5."""

TURN_LENGTHS, TYPICAL_TURN = (20, 500), 100
"""The length of a turn is limited to the range TURN_LENGTHS and compared with TYPICAL_TURN, all in characters."""

HIGHEST_SCORE = 1.0 + PAGE_SHARE
"""The score of a chunk that is the best in words and meaning on the best page, without its neighbours."""

LEAD = 0.3
"""How much a chunk that is raised to the front by `lift` is above the best of the others."""

RRF_K = 60

FUSION_STRATEGIES = ("sum", "set-union", "rrf")

Key = TypeVar("Key", bound=Hashable)


ChunkPosition = tuple[int, int]
"""Page id and position within the page.

This is a plain tuple, because a question has about a thousand candidates.
"""


class Evidence(NamedTuple):
    """The scores of all candidate chunks, by words and by meaning."""

    places: Mapping[int, ChunkPosition]
    words: Mapping[int, float]
    """BM25 of the chunks that contain words of the question. It is greater than 0, and a higher value is better."""
    page_words: Mapping[int, float]
    """BM25 of whole pages."""
    cosines: Mapping[int, float]
    """The similarity in meaning of the chunks that have a vector (see `query.CENTRING`)."""
    baseline: float
    """The similarity of an unrelated chunk."""
    lanes: Sequence[Sequence[int]] = ()
    """The chunks found by vector search, and the chunks found by full-text search, each best first.

    The other candidates are neighbours of these chunks, or were found by a name or a date.
    """
    favours: Mapping[int, float] = {}
    """Additional scores of chunks, such as for a matching date or a mentioned page."""
    cover: float = 1.0
    """The share of the question's words in the chunk with the best word score. Rare words weigh more."""
    meaning_share: float = MEANING_SHARE
    """Weight of meaning, see `meaning_share`."""


class Ranking(NamedTuple):
    """Scores of chunks and pages. A higher score is better. Scores are not comparable between questions."""

    chunks: dict[int, float]
    pages: dict[int, float]
    best: dict[int, int]
    """The best chunk of each page."""
    nearest: Mapping[int, float | None] = {}
    """The highest meaning score, from 0 to 1, among each page's chunks; None if no chunk of the page has one."""


def meaning_share(familiarity: float, coverage: float = 1.0) -> float:
    """Return the weight of meaning.

    `familiarity` is the share of the question's words that are familiar to the model (0 to 1). The vector of a
    question in a language that the model was not trained on has little information. With the full weight, it would
    put other pages before those that have the exact words. `coverage` is the share of the chunks that have a
    vector. The nearest of a few chunks is often not near, but gets the highest score for meaning.
    """
    known = UNFAMILIAR_SHARE + (1 - UNFAMILIAR_SHARE) * min(1.0, familiarity / FAMILIAR)
    return MEANING_SHARE * known * coverage


def fuse(evidence: Evidence, strategy: str = "sum", k: int = RRF_K) -> Ranking:
    """Combine all evidence into one ranking. `k` is the constant of rrf."""
    if strategy == "sum":
        return _fuse_by_sum(evidence)

    def merge(lanes: Sequence[Sequence[int]]) -> dict[int, float]:
        return rrf(lanes, k) if strategy == "rrf" else set_union(lanes)

    chunks = merge(evidence.lanes)
    page_lanes = [list(dict.fromkeys(evidence.places[chunk][0] for chunk in lane)) for lane in evidence.lanes]
    return Ranking(chunks, merge(page_lanes), _best_chunks(evidence, chunks))


def _fuse_by_sum(evidence: Evidence) -> Ranking:
    """Rank by the sum of the scores of a chunk, its neighbours and its page, and its additional score."""
    meaning = _scaled_meaning(evidence)
    nearest = _nearest_of_pages(evidence, meaning)
    trust = _trust(evidence)
    own, of_page = _chunk_scores(evidence, meaning, trust), _page_scores(evidence, nearest, trust)
    favours = evidence.favours
    highest = HIGHEST_SCORE + max(favours.values(), default=0.0)
    highest_of_chunk = highest + 2 * sum(NEIGHBOUR_SHARES)
    near, far = (trust * share for share in NEIGHBOUR_SHARES)
    page_share = trust * PAGE_SHARE
    rows: dict[int, dict[int, float]] = {}
    for chunk, (page, position) in evidence.places.items():
        rows.setdefault(page, {})[position] = own[chunk]
    chunks, pages = {}, dict.fromkeys(of_page, 0.0)
    for chunk, (page, position) in evidence.places.items():
        beside = rows[page].get
        alone = own[chunk] + page_share * of_page[page]
        if favours:
            alone += favours.get(chunk, 0.0)
        context = near * (beside(position - 1, 0.0) + beside(position + 1, 0.0))
        context += far * (beside(position - 2, 0.0) + beside(position + 2, 0.0))
        chunks[chunk] = (alone + context) / highest_of_chunk
        if alone > pages[page]:
            pages[page] = alone
    pages = {page: score / highest for page, score in pages.items()}
    return Ranking(chunks, pages, _best_chunks(evidence, chunks), nearest)


def add_whole_pages(evidence: Evidence, ranking: Ranking, cosines: Mapping[int, float]) -> Ranking:
    """Add the similarity of whole pages (the mean of their vectors) to a ranking by sum.

    `cosines` maps the best pages to their similarity. The mean of these values is the baseline, which is also
    used for pages without a cosine.
    """
    low = sum(cosines.values()) / max(1, len(cosines))
    width = max(cosines.values(), default=low) - low
    if width <= 0:
        return ranking
    share = evidence.meaning_share if evidence.page_words else 1.0
    part = (
        _trust(evidence)
        * PAGE_SHARE
        * share
        * WHOLE_PAGE_SHARE
        / (HIGHEST_SCORE + max(evidence.favours.values(), default=0.0))
    )
    pages = {}
    for page, score in ranking.pages.items():
        best = ranking.nearest[page]
        whole = max(0.0, (cosines.get(page, low) - low) / width)
        pages[page] = score if best is None else score + part * (whole - best)
    return ranking._replace(pages=pages)


class Turn(NamedTuple):
    """A chunk that is a turn of a conversation."""

    length: int
    """Characters."""
    asks: bool
    words: frozenset[str]
    """The words of the question that it contains."""


def turn_features(
    places: Mapping[int, ChunkPosition], turns: Mapping[int, Turn], weights: Mapping[str, float]
) -> dict[int, tuple[float, float, float, float]]:
    """Return what distinguishes the turn that answers a question from turns that only mention its words.

    The features are the share of the question's words in the turn and its neighbours; 1 if the turn asks
    something; the logarithm of its length; and the share of the question's words in the turn before, if that turn
    asks something. `weights` maps each word to its weight.
    """
    at = {places[chunk]: turn for chunk, turn in turns.items()}
    every = sum(weights.values()) or 1.0

    def share(words: Iterable[str]) -> float:
        return sum(weights.get(word, 0.0) for word in words) / every

    features = {}
    shortest, longest = TURN_LENGTHS
    for chunk, turn in turns.items():
        page, position = places[chunk]
        before, after = at.get((page, position - 1)), at.get((page, position + 1))
        near = turn.words.union(*(other.words for other in (before, after) if other))
        length = math.log(min(longest, max(shortest, turn.length)) / TYPICAL_TURN)
        reply = share(before.words) if before and before.asks else 0.0
        features[chunk] = (share(near), float(turn.asks), length, reply)
    return features


def lift(evidence: Evidence, ranking: Ranking, shares: Mapping[int, float]) -> Ranking:
    """Raise chunks and their pages in a ranking by sum.

    A share of 1 raises a chunk above the best of all, and a smaller one by this share of the way.
    """
    highest = HIGHEST_SCORE + max(evidence.favours.values(), default=0.0)
    chunks, pages = dict(ranking.chunks), dict(ranking.pages)
    top_chunk = max(chunks.values(), default=0.0) + LEAD / (highest + 2 * sum(NEIGHBOUR_SHARES))
    top_page = max(pages.values(), default=0.0) + LEAD / highest
    for chunk, share in shares.items():
        page = evidence.places[chunk][0]
        chunks[chunk] += share * (top_chunk - chunks[chunk])
        pages[page] = max(pages[page], ranking.pages[page] + share * (top_page - ranking.pages[page]))
    return ranking._replace(chunks=chunks, pages=pages, best=_best_chunks(evidence, chunks))


def add_turns(
    evidence: Evidence, ranking: Ranking, features: Mapping[int, tuple[float, float, float, float]]
) -> Ranking:
    """Add the weighted features of turns to the scores of chunks in a ranking by sum. Pages keep their scores.

    Like words, the features count less if no chunk has enough of the question's words.
    """
    trust = _trust(evidence) ** 2
    highest = HIGHEST_SCORE + max(evidence.favours.values(), default=0.0) + 2 * sum(NEIGHBOUR_SHARES)
    chunks = dict(ranking.chunks)
    for chunk, values in features.items():
        added = sum(weight * value for weight, value in zip(TURN_WEIGHTS, values, strict=True))
        chunks[chunk] += trust * added / highest
    return ranking._replace(chunks=chunks, best=_best_chunks(evidence, chunks))


def _trust(evidence: Evidence) -> float:
    """Return the weight of words, neighbours and pages: less than 1 if no chunk has enough of the question's words.

    Word scores are relative to the best word score for the question. Without this weight, a chunk that has one
    common word of a long question would count as a perfect match, and so would its page.
    """
    if not evidence.cosines:
        return 1.0
    # If meaning counts less because of an unfamiliar language, words must not count less too.
    missing = max(0.0, 1 - evidence.cover / ENOUGH_COVER) * evidence.meaning_share / MEANING_SHARE
    return (1 - missing) ** 2


def _chunk_scores(evidence: Evidence, meaning: Mapping[int, float], trust: float) -> dict[int, float]:
    words = _scaled_words(evidence, trust)
    if not words:
        return {chunk: meaning.get(chunk, 0.0) for chunk in evidence.places}
    if not meaning:
        return {chunk: words.get(chunk, 0.0) for chunk in evidence.places}
    share = evidence.meaning_share
    return {chunk: _mix(words.get(chunk, 0.0), meaning.get(chunk), share) for chunk in evidence.places}


def _scaled_words(evidence: Evidence, highest: float) -> dict[int, float]:
    """Scale the word scores of chunks to the range from 0 to `highest`."""
    most = max(evidence.words.values(), default=0.0) / highest if highest > 0 else 0.0
    return {chunk: score / most for chunk, score in evidence.words.items()} if most > 0 else {}


def _scaled_meaning(evidence: Evidence) -> dict[int, float]:
    """Scale the cosines of chunks to the range from 0 to 1."""
    low = evidence.baseline
    width = max(evidence.cosines.values(), default=low) - low
    if width <= 0:
        return {}
    return {
        chunk: (cosine - low) / width if cosine > low else 0.0 for chunk, cosine in evidence.cosines.items()
    }


def _mix(words: float, meaning: float | None, share: float) -> float:
    # A chunk that is not embedded yet is scored by words alone, so that it is not penalized.
    return words if meaning is None else (1 - share) * words + share * meaning


def _page_scores(evidence: Evidence, nearest: Mapping[int, float | None], trust: float) -> dict[int, float]:
    most = max(evidence.page_words.values(), default=0.0) / trust if trust > 0 else 0.0
    if most <= 0:
        return {page: near or 0.0 for page, near in nearest.items()}
    share, words = evidence.meaning_share, evidence.page_words
    return {page: _mix(words.get(page, 0.0) / most, near, share) for page, near in nearest.items()}


def _nearest_of_pages(evidence: Evidence, meaning: Mapping[int, float]) -> dict[int, float | None]:
    """Return the highest meaning score among each page's chunks; None if no chunk of the page has one."""
    nearest: dict[int, float | None] = {}
    for chunk, (page, _) in evidence.places.items():
        here, best = meaning.get(chunk), nearest.get(page)
        if best is None or (here is not None and here > best):
            nearest[page] = here
    return nearest


def _best_chunks(evidence: Evidence, chunks: Mapping[int, float]) -> dict[int, int]:
    """Return the best chunk of each page, or the first one in case of ties."""
    best: dict[int, int] = {}
    for chunk, score in chunks.items():
        page = evidence.places[chunk][0]
        if page not in best or score > chunks[best[page]]:
            best[page] = chunk
    return best


def rrf(lanes: Iterable[Sequence[Key]], k: int = RRF_K) -> dict[Key, float]:
    """Return the scores of reciprocal rank fusion over several rankings."""
    scores: dict[Key, float] = {}
    for lane in lanes:
        for place, key in enumerate(lane, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + place)
    return scores


def set_union(lanes: Iterable[Sequence[Key]]) -> dict[Key, float]:
    """Return the keys of the first ranking, then those that only the second has, and so on, with falling scores."""
    order = dict.fromkeys(key for lane in lanes for key in lane)
    return {key: 1 / (1 + place) for place, key in enumerate(order)}
