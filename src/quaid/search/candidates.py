"""Find the candidates of a question by name, words, meaning and date, and combine their scores.

Filters are applied within each search, so that narrow filters still leave enough candidates. If the model is
not available, vector search is left out. Names and times in a question raise the scores of pages but never
exclude a page.

A lane is the result list of full-text search or of vector search. There are three strategies to combine the lanes:

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
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from quaid.embedding.registry import Embedder
from quaid.errors import DamagedDatabase, InvalidArgument, QuaidError
from quaid.model.chunker import split_statements
from quaid.model.dates import LONGEST_DATED_TEXT, DatePhrase, find_dates, find_periods
from quaid.search.question import (
    VAGUE_WORDS,
    Entities,
    TimeOrder,
    correct_spelling,
    find_entities,
    find_time_order,
    names_short_period,
)
from quaid.search.text import (
    ENOUGH_CHUNKS,
    NO_FILTERS,
    STOP_WORDS,
    QueryPlan,
    page_scores,
    plan_query,
    terms_worth_ranking,
    word_share,
    word_weights,
)
from quaid.storage import chunks, pages, text_index, vectors
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters, TextIndex

if TYPE_CHECKING:  # not imported at run time, because it loads numpy
    from quaid.search.rerank import Reranker
    from quaid.storage.vector_index import ChunkIndex, TurnIndex


LONGEST_EMBEDDED_TEXT = 4_000
"""Maximum characters of a question that are passed to the model, which reads about half of them."""

CENTRING = 0.5
"""This part of the mean of all vectors is subtracted from the vector of a question before texts are ranked.

Texts that are near the mean are near to every question. The mean of only a few vectors represents only a few
subjects, so less of it is subtracted.
"""


class MeaningLane(NamedTuple):
    """The input of vector search: the embedded question, and the vectors that it is compared with."""

    model: str
    vector: Any  # numpy.ndarray; not imported here to keep startup fast
    vectors: Any  # a ChunkIndex or a TurnIndex
    baseline: float
    """The expected cosine of the question and an unrelated text."""
    spread: float
    """The standard deviation of such cosines."""
    compared: int
    """Number of vectors. A chunk has more than one if its entries have vectors too."""
    embedded: int
    """Number of chunks or turns (messages) that have a vector."""
    total: int
    """Number of all chunks or turns."""
    familiarity: float
    """The share of the question's letters, from 0 to 1, that are in words of the model's vocabulary."""
    centred: Any  # numpy.ndarray
    """The question's vector minus a part of the mean vector. Texts are ranked by it; see CENTRING."""
    centred_baseline: float
    """The expected score of an unrelated text."""

    def excess(self, cosine: float) -> float | None:
        """Return how much nearer a chunk is than the nearest unrelated chunk is expected to be.

        The result is negative if the chunk is less near, and None if the nearness is unknown (see
        `standing_out`).
        """
        nearness = standing_out(cosine, self.baseline, self.compared)
        return None if nearness is None else nearness - by_chance(self.spread, self.compared)

    def nearest(self, count: int, filters: SearchFilters) -> dict[int, float]:
        """Return the nearest chunks or turns with their scores, best first."""
        return dict(self.vectors.nearest(self.model, self.vector, count, filters, self.centred))

    def scores(self, ids: list[int]) -> dict[int, float]:
        """Return the scores of chunks or turns for ranking, omitting those without a vector."""
        scores: dict[int, float] = self.vectors.cosines(self.model, self.centred, ids)
        return scores

    def cosines(self, ids: list[int]) -> dict[int, float]:
        """Return the cosines of the chunks or turns with these ids, omitting those without a vector."""
        cosines: dict[int, float] = self.vectors.cosines(self.model, self.vector, ids)
        return cosines


WORDS_ONLY = "no model is set up"
"""The reason, in place of an embedder, for a search that never uses one."""


def embed_question(
    db: Database, embedder: Embedder | str, question: str, vectors_of: "Callable[[], ChunkIndex | TurnIndex]"
) -> MeaningLane | str:
    """Embed a question with the active model, or return the reason why that is not possible.

    `embedder` may already be such a reason. `vectors_of` returns the vectors to compare the question with.
    """
    if isinstance(embedder, str):
        return embedder
    index = vectors_of()
    with db.reading():
        active = vectors.active_model(db)
        embedded, total = index.made(active) if active else (0, 0)
    reason = embedder.ready()
    if reason:
        return f"the model is not available: {reason}"
    if active is None or active.name != embedder.name or not embedded:
        return "nothing is embedded yet; run `quaid embed --all`"
    try:
        raw = embedder.embed_query(question[:LONGEST_EMBEDDED_TEXT])
        familiarity = embedder.familiarity(question) if hasattr(embedder, "familiarity") else 1.0
    except QuaidError as failure:
        return str(failure).rstrip(".")
    import numpy

    vector = numpy.frombuffer(raw, dtype="<f4")
    with db.reading():
        mean, count = index.mean(active.name)
        spread = index.spread(active.name)
    baseline = expected_baseline(float(mean @ vector), embedded, getattr(embedder, "unrelated", None))
    share = CENTRING * min(1.0, count / ENOUGH_CHUNKS)
    return MeaningLane(
        *(active.name, vector, index, baseline, *spread, embedded, total, familiarity),
        centred=vector - share * mean,
        centred_baseline=baseline - share * float(mean @ mean),
    )


CHANCE = 2.0
"""The expected nearness of the nearest unrelated chunk, in units of spread times sqrt(2 ln n).

Questions vary most in the directions in which chunks vary too, so this is more than 1.
"""

TYPICAL_SPREAD, MOST_BY_CHANCE = 0.03, 0.35
"""The spread assumed for a memory with few chunks, and the maximum that `by_chance` returns."""


def by_chance(spread: float, chunks: int) -> float:
    """Return the value of `standing_out` that the nearest of this many unrelated chunks is expected to reach.

    The nearest of many unrelated chunks is nearer than the nearest of a few, so the same cosine means less in a
    large memory. For n independent values, the highest is about sqrt(2 ln n) standard deviations above the mean.
    The standard deviation `spread` is that of the memory itself: the distance of its chunks from their mean,
    spread evenly over all dimensions. Therefore the limits of `results.rate` hold for memories of any size and
    for any model.
    """
    share = min(1.0, chunks / ENOUGH_CHUNKS)
    spread = share * spread + (1 - share) * TYPICAL_SPREAD
    return min(MOST_BY_CHANCE, CHANCE * spread * math.sqrt(2 * math.log(max(chunks, ENOUGH_CHUNKS))))


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

    This is `mean`, the mean cosine over the database, mixed with `prior` if there are few chunks. `prior` is the
    model's measured cosine of unrelated texts, or None.
    """
    if prior is None or chunks >= ENOUGH_CHUNKS:
        return mean
    share = chunks / ENOUGH_CHUNKS
    return share * mean + (1 - share) * prior


MEANING_SHARE = 0.55
"""Weight of meaning in a score. The rest is the weight of words."""

FAMILIAR, UNFAMILIAR_SHARE = 0.5, 0.2
"""Meaning has its full weight if the question's familiarity (see MeaningLane) is at least FAMILIAR. Below that, the
weight is lower, down to UNFAMILIAR_SHARE of the full weight.
"""

NEIGHBOUR_SHARES = (0.3, 0.15)
"""Weight of each chunk directly before or after a chunk, and of each chunk at a distance of two."""

PAGE_SHARE = 1.0
"""Weight of the page's score in the score of a chunk."""

WHOLE_PAGE_SHARE = 0.35
"""Weight of the whole page in its meaning score. The rest is the weight of its best chunk."""

ENOUGH_COVER = 0.45
"""Words, neighbours and pages have their full weight if `Evidence.cover` is at least this share.

Below it, their weights fall with the square of cover / ENOUGH_COVER.
"""

TURN_WEIGHTS = (0.44, -0.22, 0.20, 0.53)
"""Weights of the features of a turn (see `turn_features`), learned by bench/turn_weights.py from LoCoMo 1-5."""

TURN_LENGTHS, TYPICAL_TURN = (20, 500), 100
"""The length of a turn is limited to the range TURN_LENGTHS and compared with TYPICAL_TURN, all in characters."""

LEAD = 0.3
"""The margin by which `lift` raises a chunk above the best of the others."""

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
    """The similarity in meaning of the chunks that have a vector (see CENTRING)."""
    baseline: float
    """The similarity of an unrelated chunk."""
    lanes: Sequence[Sequence[int]] = ()
    """The chunks found by vector search, and the chunks found by full-text search, each best first.

    The other candidates are neighbours of these chunks, were found by a name or a date, or state an instruction.
    """
    favours: Mapping[int, float] = {}
    """Additional scores of chunks, such as for a matching date or a mentioned page."""
    cover: float = 1.0
    """The share of the question's words in the chunk with the best word score. Rare words weigh more."""
    meaning_share: float = MEANING_SHARE
    """The weight of meaning; see the function `meaning_share`."""

    @property
    def highest_score(self) -> float:
        """The highest possible score of a page, by which scores are divided."""
        return 1.0 + PAGE_SHARE + max(self.favours.values(), default=0.0)

    @property
    def highest_of_chunk(self) -> float:
        """The highest possible score of a chunk, including the shares of its neighbours' scores."""
        return self.highest_score + 2 * sum(NEIGHBOUR_SHARES)


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

    `familiarity` is the share of the question's letters that are in words familiar to the model (0 to 1). The
    vector of a question in a language that the model was not trained on has little information. With the full
    weight, it would put other pages before those that have the exact words. `coverage` is the share of the chunks
    that have a vector. If only a few chunks have one, the nearest of them gets the highest meaning score even
    if it is unrelated.
    """
    known = UNFAMILIAR_SHARE + (1 - UNFAMILIAR_SHARE) * min(1.0, familiarity / FAMILIAR)
    return MEANING_SHARE * known * coverage


def fuse(evidence: Evidence, strategy: str = "sum", k: int = RRF_K) -> Ranking:
    """Combine the evidence into one ranking. Only `sum` uses more than the lanes. `k` is the constant of rrf."""
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
    highest, highest_of_chunk = evidence.highest_score, evidence.highest_of_chunk
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
    """Add the similarity of whole pages (the mean of their vectors) to a ranking made by _fuse_by_sum().

    `cosines` maps the best pages to their similarity. The mean of these values is the baseline, which is also
    used for pages without a cosine.
    """
    low = sum(cosines.values()) / max(1, len(cosines))
    width = max(cosines.values(), default=low) - low
    if width <= 0:
        return ranking
    share = evidence.meaning_share if evidence.page_words else 1.0
    part = _trust(evidence) * PAGE_SHARE * share * WHOLE_PAGE_SHARE / evidence.highest_score
    pages = {}
    for page, score in ranking.pages.items():
        best = ranking.nearest[page]
        whole = max(0.0, (cosines.get(page, low) - low) / width)
        pages[page] = score if best is None else score + part * (whole - best)
    return ranking._replace(pages=pages)


class Turn(NamedTuple):
    """A chunk that is a turn of a conversation."""

    length: int
    """Length of the text in characters."""
    asks: bool
    words: frozenset[str]
    """The words of the question that the turn contains."""


def turn_features(
    places: Mapping[int, ChunkPosition], turns: Mapping[int, Turn], weights: Mapping[str, float]
) -> dict[int, tuple[float, float, float, float]]:
    """Return features that distinguish a turn that answers a question from one that only mentions its words.

    The features are the share of the question's words in the turn and its neighbours; 1 if the turn asks
    something; the logarithm of its length; and the share of the question's words in the turn before, if that
    turn asks something. `weights` maps each word to its weight.
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
    """Raise the scores of chunks and their pages in a ranking made by _fuse_by_sum().

    A share of 1 raises a chunk above the best one; a smaller share raises it by that part of the difference.
    """
    chunks, pages = dict(ranking.chunks), dict(ranking.pages)
    top_chunk = max(chunks.values(), default=0.0) + LEAD / evidence.highest_of_chunk
    top_page = max(pages.values(), default=0.0) + LEAD / evidence.highest_score
    for chunk, share in shares.items():
        page = evidence.places[chunk][0]
        chunks[chunk] += share * (top_chunk - chunks[chunk])
        pages[page] = max(pages[page], ranking.pages[page] + share * (top_page - ranking.pages[page]))
    return ranking._replace(chunks=chunks, pages=pages, best=_best_chunks(evidence, chunks))


def add_turns(
    evidence: Evidence, ranking: Ranking, features: Mapping[int, tuple[float, float, float, float]]
) -> Ranking:
    """Add the weighted features of turns to the scores of chunks in a ranking made by _fuse_by_sum().

    Pages keep their scores.

    Like word scores, the features have less weight if no chunk contains enough of the question's words.
    """
    trust = _trust(evidence) ** 2
    highest, chunks = evidence.highest_of_chunk, dict(ranking.chunks)
    for chunk, values in features.items():
        added = sum(weight * value for weight, value in zip(TURN_WEIGHTS, values, strict=True))
        chunks[chunk] += trust * added / highest
    return ranking._replace(chunks=chunks, best=_best_chunks(evidence, chunks))


def _trust(evidence: Evidence) -> float:
    """Return the weight of words, neighbours and pages, from 0 to 1.

    It is less than 1 if even the best chunk by words has too few of the question's words. Word scores are relative
    to that chunk's score, so without this weight a chunk that has one common word of a long question would count as
    a perfect match, and so would its page. Without vectors, words are the only evidence, and the weight is 1.
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


def best_first(scores: Mapping[Key, float]) -> list[Key]:
    """Return the keys by score. Keys of equal score keep their order."""
    return sorted(scores, key=lambda key: -scores[key])


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


CANDIDATES = 100
"""Full-text search and vector search return at most this many chunks each. Their neighbours are added."""

WORD_BUDGET, PAGE_WORD_BUDGET = 8_000, 4_000
"""Maximum numbers of (chunk, word) pairs and (page, word) pairs to rank, which takes 4 to 6 ms and 2 ms."""

REACH = 2
"""Chunks up to this many positions before or after a chunk are its neighbours."""

DATED_FAVOUR, MENTIONED_FAVOUR, WING_FAVOUR = 0.6, 0.2, 0.1
"""Additional scores of a chunk whose date, page or wing the question names.

For comparison, the chunk that is best in words and meaning has a score of 1 before its page and neighbours
are added.
"""

STANDING_FAVOUR = 0.5
"""Additional score of the standing instruction or preference nearest to a request. Less near ones get less."""

ONLY_DATED_FAVOUR = 3.0
"""Additional score of a dated chunk if the question names only a time. It exceeds words and meaning together."""

MOST_DATED = 50


class Candidates(NamedTuple):
    """All candidates of a question with their evidence."""

    plan: QueryPlan
    """The search terms by which results are scored and rated."""
    counts: dict[str, int]
    """Maps each part of the plan, in quoted form, to the approximate number of chunks that contain it."""
    weights: dict[str, float]
    """Maps each part of the plan, in quoted form, to its weight. Rare words weigh more."""
    evidence: Evidence
    named: Entities
    dates: dict[int, str]
    """Maps each chunk that is dated within a period of the question to its date."""
    periods: tuple[DatePhrase, ...]
    openings: dict[int, int]
    """The first chunk of each named page."""
    only_time: bool = False
    """True if the question names only a period, and some chunks are dated within it."""

    @property
    def word_weights(self) -> dict[str, float]:
        """The weights of the words of the question."""
        return {part.text: self.weights[part.quoted] for part in self.plan.parts}


def gather_candidates(
    db: Database,
    question: str,
    meaning: MeaningLane | str,
    filters: SearchFilters,
    now: str,
) -> Candidates:
    """Find the candidates for a question and score them by words, by meaning and by date."""
    periods = find_periods(question, now)
    of_periods = _chunks_of_periods(db, periods, filters)
    searched, plan = plan_query(question), _without_time(question, periods if of_periods else ())
    index = TextIndex(db, text_index.CHUNKS)
    counts = _count_chunks(db, plan)
    expression = _any_word_expression(db, counts if plan == searched else _count_chunks(db, searched))
    matched = chunks.match(db, expression, filters, CANDIDATES) if expression else []
    words = {chunk: score for chunk, _, score in matched}
    near = meaning.nearest(CANDIDATES, filters) if isinstance(meaning, MeaningLane) else {}
    named, openings = _filter_entities(db, find_entities(db, question), filters)
    standing = find_standing(
        question,
        meaning,
        lambda words, count: chunks.newest_matching(db, words, filters, count),
        lambda ids: {row.id: row.text for row in chunks.load(db, ids)},
    )
    places = _chunk_places(db, {*words, *near, *of_periods, *openings.values(), *standing}, filters)
    if not words.keys() <= places.keys():
        raise DamagedDatabase(path=db.path, problem="its text index refers to missing text")
    if plan != searched:
        # The chunks of the period already get a score for their date, so the words that name the period must
        # not count too.
        expression, words = _any_word_expression(db, counts), {}
    others = [chunk for chunk in places if chunk not in words]
    if expression and others:
        words.update(index.scores_of(expression, others))
    if isinstance(meaning, MeaningLane):
        cosines = near | meaning.scores([chunk for chunk in places if chunk not in near])
    else:
        cosines = {}
    dates = _dates_in_periods(db, places, periods)
    only_time = bool(of_periods) and _says_nothing(plan)
    weights = word_weights(counts, index.highest_id())
    evidence = Evidence(
        places=places,
        words=words,
        page_words=_score_pages(db, searched, plan, filters),
        cosines=cosines,
        baseline=meaning.centred_baseline if isinstance(meaning, MeaningLane) else 0.0,
        lanes=(list(near), [chunk for chunk, _, _ in matched]),
        favours=_favours(
            db, places, named, dates, ONLY_DATED_FAVOUR if only_time else DATED_FAVOUR, standing
        ),
        meaning_share=(
            meaning_share(meaning.familiarity, meaning.embedded / max(1, meaning.total))
            if isinstance(meaning, MeaningLane)
            else meaning_share(1.0)
        ),
        cover=cover_of_best(index, words, weights),
    )
    return Candidates(plan, counts, weights, evidence, named, dates, periods, openings, only_time)


TIME_ORDER_COMPARED = 100
"""Number of best chunks that are compared by date if a question asks for the first or the latest of something."""

ABOUT_SUBJECT = 0.8
"""A chunk is about the subject if its match is at least this share of the best match."""

ALL_WORDS = 0.999
"""A text with at least this share of the words has all of them. The margin is for rounding."""


def favour_time_order(db: Database, candidates: Candidates, ranking: Ranking, order: TimeOrder) -> Ranking:
    """Raise the scores of chunks about the subject by their dates, the first or the latest to the front.

    If the question asks for the order of several things, move the best chunk of each thing to the front.
    """
    places = candidates.evidence.places
    best = best_first(ranking.chunks)[:TIME_ORDER_COMPARED]
    if order.kind == "order":
        return lift(candidates.evidence, ranking, _best_of_things(db, ranking, best, order.things))
    about = _about_subject(db, candidates, [chunk for chunk in best if chunk in candidates.dates] or best)
    days = _days_of_chunks(db, {chunk: places[chunk] for chunk in about}, order)
    dated = sorted(
        (chunk for chunk in about if chunk in days),
        key=lambda chunk: (days[chunk], places[chunk][1]),
        reverse=order.kind == "first",
    )
    last = max(1, len(dated) - 1)
    return lift(candidates.evidence, ranking, {chunk: place / last for place, chunk in enumerate(dated)})


def _about_subject(db: Database, candidates: Candidates, best: list[int]) -> list[int]:
    """Return the best chunks that match the question almost as well as the best match, by words and by meaning.

    Chunks with all words of the question are always included.
    """
    evidence = candidates.evidence
    low = evidence.baseline
    width = max((evidence.cosines.get(chunk, low) for chunk in best), default=low) - low
    shares = _word_shares(TextIndex(db, text_index.CHUNKS), candidates.counts, best)
    match = dict(shares)
    for chunk in best if width > 0 else ():
        match[chunk] += max(0.0, evidence.cosines.get(chunk, low) - low) / width
    least = ABOUT_SUBJECT * max(match.values(), default=0.0)
    return [chunk for chunk in best if match[chunk] >= least or shares[chunk] >= ALL_WORDS]


def _word_shares(index: TextIndex, counts: Mapping[str, int], ids: list[int]) -> dict[int, float]:
    """Return the share of the words in `counts` that each row contains. Rare words weigh more."""
    weights = word_weights(counts, index.highest_id())
    held: dict[int, list[str]] = {row: [] for row in ids}
    for term in counts:
        for row in index.matching(term, ids) if counts[term] else ():
            held[row].append(term)
    return {row: word_share(terms, weights) for row, terms in held.items()}


def _best_of_things(
    db: Database, ranking: Ranking, best: list[int], things: tuple[str, ...]
) -> dict[int, float]:
    """Return, for each thing, the chunk with most of its words. Ties go to the better ranked chunk."""
    index = TextIndex(db, text_index.CHUNKS)
    chosen = {}
    for thing in things:
        shares = _word_shares(index, _count_chunks(db, plan_query(thing)), best)
        chunk = max(best, key=lambda chunk: (round(shares[chunk], 3), ranking.chunks[chunk]), default=None)
        if chunk is not None and shares[chunk]:
            chosen[chunk] = 1.0
    return chosen


def _days_of_chunks(db: Database, places: dict[int, ChunkPosition], order: TimeOrder) -> dict[int, str]:
    """Return the day of each chunk: its own, that of its page, or the first or latest day in its text.

    If no chunk has a day, return the days on which the pages were saved. If all of several pages were saved on the
    same day, as by an import, return nothing.
    """
    days = chunks.chunk_dates(db, places)
    for row in chunks.load(db, [chunk for chunk in places if chunk not in days]):
        if dates := [phrase.first for phrase in find_dates(row.text)]:
            days[row.id] = order.extreme(dates)
    if days:
        return days
    saved = chunks.saved_days(db, places)
    return saved if len({*saved.values()}) > 1 or len({page for page, _ in places.values()}) == 1 else {}


_REQUEST = re.compile(
    r"\b(?:(?:can|could|would|will) you|help me|should i|how to|best way|tell me how"
    r"|(?:how|what|when|where|which\b.{0,40}|who) (?:do|can|could|should|would) (?:i|we)"
    r"|how (?:much|many|far|long|hot|often)\b.{0,20} (?:do|should) (?:i|we|the)"
    r"|(?:do|did) i (?:prefer|like|want)|my (?:preferences?|rules?|instructions?))\b"
    r"|\A\W*(?:(?:please|and|now) )?(?:write|draft|plan|suggest|recommend|explain|summari[sz]e|sum up|show me how"
    r"|make|create|book|give me|find me|list)\b",
    re.IGNORECASE,
)
"""A question that asks for help or advice, so that instructions and preferences may apply to it."""

_STANDING = re.compile(
    r"\b(?:always|never|from now on|going forward|in (?:the )?future|when(?:ever)? i ask|every time|each time"
    r"|(?:i|we)(?:[’']d| would| really| also| only| much)? (?:prefer|rather|like|love|hate|dislike|avoid|enjoy|want)"
    r"|i can[’']?(?:no)?t stand|(?:do not|don[’']t) (?:ever|like|eat|use|want)|my (?:rule|preference|favou?rite)"
    r"|instead of|use \w+ spelling|remember (?:that|to)|keep in mind|leave out)\b",
    re.IGNORECASE,
)
_STANDING_WORDS = " OR ".join(
    f'"{words}"'
    for words in (
        "always|never|from now on|going forward|when i ask|whenever|every time|each time|prefer|preference|rather"
        "|avoid|dislike|hate|i like|i love|i want|i only|my rule|instead of|keep in mind|stand|don t|spelling"
    ).split("|")
)
MOST_STANDING, STANDING_COMPARED, STANDING_KEPT = 400, 24, 8
"""Limits of the search for standing instructions.

Of the newest MOST_STANDING chunks or turns with words of an instruction, the STANDING_COMPARED nearest to the
question are read. Of those that state an instruction, the nearest STANDING_KEPT are kept.
"""


def find_standing(
    question: str,
    meaning: MeaningLane | str,
    newest: Callable[[str, int], list[int]],
    read: Callable[[list[int]], dict[int, str]],
) -> dict[int, float]:
    """Return the chunks or turns with a standing instruction or preference that may apply to a request.

    Each id is mapped to its nearness to the question; the nearest has 1. An instruction has few words in common
    with the requests that it applies to, so without vectors the result is empty, as it is for a question that is not
    a request. `newest` returns the ids of the newest texts that match an expression, and `read` returns texts by id.
    """
    if isinstance(meaning, str) or not _REQUEST.search(question[:LONGEST_DATED_TEXT]):
        return {}
    low = meaning.centred_baseline
    scores = meaning.scores(newest(_STANDING_WORDS, MOST_STANDING))
    nearest = sorted((text for text in scores if scores[text] > low), key=lambda text: -scores[text])
    texts = read(nearest[:STANDING_COMPARED])
    kept = [
        text
        for text in nearest[:STANDING_COMPARED]
        if any(map(_states_rule, split_statements(texts.get(text, ""))))
    ]
    return {text: (scores[text] - low) / (scores[kept[0]] - low) for text in kept[:STANDING_KEPT]}


def _states_rule(statement: str) -> bool:
    return bool(_STANDING.search(statement)) and not statement.rstrip().endswith("?")


def _without_time(question: str, periods: Iterable[DatePhrase]) -> QueryPlan:
    """Parse a question without the words that name these periods, unless only stop words would be left."""
    rest = question
    for period in sorted(periods, key=lambda period: period.start, reverse=True):
        rest = f"{rest[: period.start]} {rest[period.end :]}"
    plan = plan_query(rest)
    if all(word.text.lower() in STOP_WORDS for word in plan.words):
        return plan_query(question)
    return plan


def _says_nothing(plan: QueryPlan) -> bool:
    return all(word.text.lower() in VAGUE_WORDS or word.text.lower() in STOP_WORDS for word in plan.words)


def _count_chunks(db: Database, plan: QueryPlan) -> dict[str, int]:
    """Return the approximate number of chunks that contain each term."""
    return TextIndex(db, text_index.CHUNKS).document_counts([part.quoted for part in plan.parts])


def cover_of_best(index: TextIndex, scores: dict[int, float], weights: Mapping[str, float]) -> float:
    """Return the share of the question's terms, by weight, in the row with the best score."""
    if not scores:
        return 0.0
    best = max(scores, key=lambda row: scores[row])
    return word_share(index.terms_in_row(best, list(weights)), weights)


TURNS_COMPARED = 60
"""Number of best chunks whose turn features are compared. Chunks that are not turns of a conversation are skipped."""

EDGE = 60
"""Number of characters at the start and the end of a chunk that show whether it is a turn and a question."""

_SPEAKER = re.compile(r"\s*(?:\*\*)?\w[^:\n]{0,40}:(?:\*\*)? \S")


def turns_of_chunks(db: Database, candidates: Candidates, scores: Mapping[int, float]) -> dict[int, Turn]:
    """Return the turns of conversations among the best chunks and their direct neighbours.

    The result is empty if there is only one such turn.
    """
    ids = best_with_neighbours(candidates.evidence.places, scores)
    edges = {
        chunk: (length, last)
        for chunk, (length, first, last) in chunks.text_edges(db, ids, EDGE).items()
        if _SPEAKER.match(first)
    }
    index = TextIndex(db, text_index.CHUNKS)
    return read_turns(index, edges, candidates.counts) if len(edges) > 1 else {}


def best_with_neighbours(places: Mapping[int, ChunkPosition], scores: Mapping[int, float]) -> list[int]:
    """Return the ids of the best chunks or turns and of their direct neighbours."""
    best = best_first(scores)[:TURNS_COMPARED]
    beside = {
        (page, position + step) for page, position in (places[chunk] for chunk in best) for step in (-1, 0, 1)
    }
    return [chunk for chunk, place in places.items() if place in beside]


def read_turns(
    index: TextIndex, edges: Mapping[int, tuple[int, str]], counts: Mapping[str, int]
) -> dict[int, Turn]:
    """Return turns by id.

    `edges` maps each id to the length and the last characters of its text, and `counts` each term to the number
    of rows that contain it.
    """
    held: dict[int, set[str]] = {turn: set() for turn in edges}
    present = {term: count for term, count in counts.items() if count}
    for term in terms_worth_ranking(present, index.highest_id(), WORD_BUDGET) if present else ():
        for turn in index.matching(term, list(edges)):
            held[turn].add(term)
    return {
        turn: Turn(length, last.rstrip().endswith("?"), frozenset(held[turn]))
        for turn, (length, last) in edges.items()
    }


def _any_word_expression(db: Database, counts: dict[str, int]) -> str:
    """Return an FTS5 expression that matches any of these terms, except terms that are too common to rank."""
    return " OR ".join(
        terms_worth_ranking(counts, TextIndex(db, text_index.CHUNKS).highest_id(), WORD_BUDGET)
    )


def _score_pages(
    db: Database, searched: QueryPlan, plan: QueryPlan, filters: SearchFilters
) -> dict[int, float]:
    """Return the word scores of pages. Date filters are ignored.

    `searched` has all words of the question, `plan` only the words that do not name a period. If the two
    differ, half of the score comes from each, because a page that mentions the date should score higher, but
    a date in a title should not outweigh the subject of the question.
    """
    # A page is dated by its last change, although its content may be older. Only chunks have reliable dates.
    filters = filters._replace(since=None, until=None)
    scores = page_scores(db, searched, filters, CANDIDATES, PAGE_WORD_BUDGET)
    if plan == searched:
        return scores
    both = [scores, page_scores(db, plan, filters, CANDIDATES, PAGE_WORD_BUDGET)]
    highest = [max(page_score.values(), default=0.0) or 1.0 for page_score in both]
    return {
        page: sum(
            page_score.get(page, 0.0) / most / 2 for page_score, most in zip(both, highest, strict=True)
        )
        for page in {**both[0], **both[1]}
    }


def _chunks_of_periods(db: Database, periods: Iterable[DatePhrase], filters: SearchFilters) -> list[int]:
    return list(
        dict.fromkeys(
            chunk
            for period in periods
            for chunk in chunks.chunks_in_period(db, period.first, period.last, filters, MOST_DATED)
        )
    )


def _filter_entities(
    db: Database, named: Entities, filters: SearchFilters
) -> tuple[Entities, dict[int, int]]:
    """Remove the pages that the filters exclude. Return the other entities, and the first chunk of each of them."""
    if not (named.exact or named.mentioned):
        return named, {}
    page_ids = [*named.exact, *named.mentioned][:CANDIDATES]
    first = chunks.first_chunks_of_pages(db, page_ids, filters)
    if any(filters):
        named = named._replace(
            exact={page: kind for page, kind in named.exact.items() if page in first},
            mentioned={page: name for page, name in named.mentioned.items() if page in first},
        )
    return named, first


def _chunk_places(db: Database, chunk_ids: set[int], filters: SearchFilters) -> dict[int, ChunkPosition]:
    # A neighbour may have another date, so date filters exclude neighbours.
    return chunks.neighbours(db, list(chunk_ids), 0 if filters.since or filters.until else REACH)


def _dates_in_periods(
    db: Database, places: dict[int, ChunkPosition], periods: tuple[DatePhrase, ...]
) -> dict[int, str]:
    if not periods:
        return {}
    days = chunks.chunk_dates(db, places)
    return {chunk: day for chunk, day in days.items() if any(period.holds(day) for period in periods)}


def _favours(
    db: Database,
    places: dict[int, ChunkPosition],
    named: Entities,
    dates: dict[int, str],
    dated_: float,
    standing: dict[int, float],
) -> dict[int, float]:
    if not (dates or named.mentioned or named.wings or standing):
        return {}
    page_ids = list({page for page, _ in places.values()})
    heads = pages.page_heads(db, page_ids) if named.wings else {}
    in_wing = {page for page, head in heads.items() if head.wing in named.wings}
    return {
        chunk: dated_ * (chunk in dates)
        + MENTIONED_FAVOUR * (page in named.mentioned)
        + WING_FAVOUR * (page in in_wing)
        + STANDING_FAVOUR * standing.get(chunk, 0.0)
        for chunk, (page, _) in places.items()
    }


class RankedQuestion(NamedTuple):
    """A question with all its candidates and their ranking."""

    question: str
    meaning: MeaningLane | str
    """The embedded question, or why semantic search is not available."""
    candidates: Candidates
    ranking: Ranking
    searched: str = ""
    """The question with corrected spelling, by which the candidates were found."""
    corrections: tuple[str, ...] = ()
    """A note for each misspelled word."""
    notes: tuple[str, ...] = ()
    order: TimeOrder | None = None
    """The order in time that the question asks for, if any."""
    filters: SearchFilters = NO_FILTERS
    today: str = ""

    @property
    def period_texts(self) -> list[str]:
        """The words of the question that name each of its periods."""
        return [self.searched[period.start : period.end].strip(" ,.") for period in self.candidates.periods]

    @property
    def pages(self) -> list[int]:
        """The ids of the result pages: exact name matches first, then by score."""
        return list(dict.fromkeys([*self.candidates.named.exact, *best_first(self.ranking.pages)]))


WHOLE_PAGES = 25
"""Number of first pages that are also compared as a whole."""


def rank_question(
    db: Database,
    embedder: Embedder | str,
    question: str,
    *,
    now: str,
    filters: SearchFilters = NO_FILTERS,
    strategy: str = "sum",
    fusion_k: int = RRF_K,
    vectors: "Callable[[], ChunkIndex] | None" = None,
    reranker: "Reranker | None" = None,
) -> RankedQuestion:
    """Gather and rank the candidates of a question, with misspelled words corrected.

    Without an embedder, `embedder` is the reason why there is none, and the search is by words only. A
    long-running process passes `vectors` to share its in-memory index. `reranker` reorders the best pages, if
    given.
    """
    if not question.strip():
        raise InvalidArgument(name="query", problem="is empty; write a question")
    is_sum = strategy == "sum"
    with db.reading():
        order = find_time_order(question) if is_sum else None
        if order and (find_entities(db, question).exact or names_short_period(question, now)):
            order = None  # the question is the name of a page, or its period leaves few chunks to order
        searched, corrections = correct_spelling(db, order.subject if order else question)
    # The model may be slow, so it is called outside of any transaction.
    meaning = embed_question(db, embedder, searched, vectors or (lambda: _chunk_index(db)))
    with db.reading():
        candidates = gather_candidates(db, searched, meaning, filters, now)
        ranking = fuse(candidates.evidence, strategy, fusion_k)
        if is_sum:
            turns = turns_of_chunks(db, candidates, ranking.chunks)
            features = turn_features(candidates.evidence.places, turns, candidates.weights)
            ranking = add_turns(candidates.evidence, ranking, features) if features else ranking
        if is_sum and isinstance(meaning, MeaningLane):
            first = best_first(ranking.pages)[:WHOLE_PAGES]
            cosines = meaning.vectors.page_cosines(meaning.model, meaning.vector, first)
            ranking = add_whole_pages(candidates.evidence, ranking, cosines)
        if order:
            ranking = favour_time_order(db, candidates, ranking, order)
    note = ""
    if reranker:
        from quaid.search.rerank import rerank  # imported late, because it is rarely needed

        ranking, note = rerank(db, reranker, searched, ranking, list(candidates.named.exact))
    notes = (note,) if note else ()
    return RankedQuestion(
        *(question, meaning, candidates, ranking, searched, corrections, notes, order, filters, now[:10])
    )


def _chunk_index(db: Database) -> "ChunkIndex":
    from quaid.storage.vector_index import ChunkIndex  # imported late, because it loads numpy

    return ChunkIndex(db)
