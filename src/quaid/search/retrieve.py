"""What is known about a question, gathered from every lane: names, words, meaning and dates.

Knows which lane is asked for how much. Does not know how their findings are weighed, nor what is shown of them.
Filters are applied inside each lane, so that a narrow one still fills its candidates.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import DamagedDatabase
from quaid.search import entities, when
from quaid.search.fuse import Evidence, Place
from quaid.search.meaning import Meaning, NoMeaning
from quaid.search.plan import COMMON, Plan, plan
from quaid.search.words import page_scores, worth_ranking
from quaid.storage import chunks, pages, text_index

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database
    from quaid.storage.text_index import SearchFilters

CANDIDATES = 100
"""Chunks that each lane brings; their neighbours come along."""

WORD_BUDGET = 8_000
"""How many pairs of a chunk, or of a page, and a word may be ranked for one question: 4 to 6 ms for either."""

REACH = 2
"""How far a neighbour may be."""

DATED, MENTIONED, WING = 0.6, 0.2, 0.1
"""What a chunk gains when it is of the time that the question names, when the question names its page, and when
it names its wing. A chunk that is the best in words and meaning has 1 for itself."""

ONLY_DATED = 3.0
"""What it gains when the question says nothing else: more than words and meaning together."""

VAGUE = frozenset(
    """happen happened happening happens occur occurred event events news new thing things anything something
    everything went go going gone changed change changes took take place tell show list""".split()
)
"""Words that ask for whatever was at a time, and name nothing."""

MOST_DATED = 50


class Found(NamedTuple):
    """All that was gathered."""

    plan: Plan
    """The words by which results are scored and judged."""
    counts: dict[str, int]
    """About how many chunks hold each part of that plan, by the part as it is quoted."""
    evidence: Evidence
    named: entities.Entities
    dates: dict[int, str]
    """Chunks that are of a time which the question names, and which day that is."""
    periods: tuple[when.Period, ...]
    openings: dict[int, int]
    """The first chunk of each page that is named."""
    only_time: bool = False
    """The question names a time that the memory has something of, and says nothing else."""


def gather(
    db: "Database",
    question: str,
    meaning: Meaning | NoMeaning,
    filters: "SearchFilters",
    now: str,
) -> Found:
    """Ask every lane."""
    periods = when.periods(question, now)
    of_periods = _of_periods(db, periods, filters)
    searched, wanted = plan(question), _without_time(question, periods if of_periods else ())
    counts = _counts(db, wanted)
    expression = _any_of(db, counts if wanted == searched else _counts(db, searched))
    matched = chunks.match(db, expression, filters, CANDIDATES) if expression else []
    words = {chunk: score for chunk, _, score in matched}
    near = meaning.nearest(CANDIDATES, filters) if isinstance(meaning, Meaning) else {}
    named, openings = _allowed(db, entities.find(db, question), filters)
    places = _places(db, {*words, *near, *of_periods, *openings.values()}, filters)
    if not words.keys() <= places.keys():
        raise DamagedDatabase(path=db.path, problem="its index of words leads to text that is not there")
    if wanted != searched:
        # A chunk of the time is favoured for its date; its date's words must not count a second time.
        expression, words = _any_of(db, counts), {}
    others = [chunk for chunk in places if chunk not in words]
    if expression and others:
        words.update(chunks.scores_of(db, expression, others))
    if isinstance(meaning, Meaning):
        cosines = near | meaning.cosines([chunk for chunk in places if chunk not in near])
    else:
        cosines = {}
    dates = _dates(db, places, periods)
    only_time = bool(of_periods) and _says_nothing(wanted)
    evidence = Evidence(
        places=places,
        words=words,
        page_words=_page_words(db, searched, wanted, filters),
        cosines=cosines,
        baseline=meaning.baseline if isinstance(meaning, Meaning) else 0.0,
        lanes=(list(near), [chunk for chunk, _, _ in matched]),
        favours=_favours(db, places, named, dates, ONLY_DATED if only_time else DATED),
    )
    return Found(wanted, counts, evidence, named, dates, periods, openings, only_time)


def _without_time(question: str, periods: Iterable[when.Period]) -> Plan:
    """The words of a question without those that name one of these times."""
    rest = question
    for period in sorted(periods, key=lambda each: each.span, reverse=True):
        first, last = period.span
        rest = f"{rest[:first]} {rest[last:]}"
    wanted = plan(rest)
    if all(word.text.lower() in COMMON for word in wanted.words):
        return plan(question)
    return wanted


def _says_nothing(wanted: Plan) -> bool:
    return all(word.text.lower() in VAGUE or word.text.lower() in COMMON for word in wanted.words)


def _counts(db: "Database", wanted: Plan) -> dict[str, int]:
    """About how many chunks hold each word."""
    quoted = [part.quoted for part in wanted.parts]
    counts = text_index.document_counts(db, chunks.INDEX, quoted, chunks.highest_id(db))
    return dict(zip(quoted, counts, strict=True))


def _any_of(db: "Database", counts: dict[str, int]) -> str:
    """Return the FTS5 expression for any of these words, without those that are too common to rank."""
    return " OR ".join(worth_ranking(counts, chunks.highest_id(db), WORD_BUDGET))


def _page_words(db: "Database", searched: Plan, wanted: Plan, filters: "SearchFilters") -> dict[int, float]:
    """Score pages by the words of the question.

    Where the question names a time, half of the score comes from all of its words and half from the others: a page
    may say its day in words, but a title with that day must not outweigh the page that the question is about.
    """
    # A page is as old as its last change, and what stands on it may be older: only chunks know their day.
    filters = filters._replace(since=None, until=None)
    scores = page_scores(db, searched, filters, CANDIDATES, WORD_BUDGET)
    if wanted == searched:
        return scores
    both = [scores, page_scores(db, wanted, filters, CANDIDATES, WORD_BUDGET)]
    highest = [max(each.values(), default=0.0) or 1.0 for each in both]
    return {
        page: sum(each.get(page, 0.0) / most / 2 for each, most in zip(both, highest, strict=True))
        for page in {**both[0], **both[1]}
    }


def _of_periods(db: "Database", periods: Iterable[when.Period], filters: "SearchFilters") -> list[int]:
    found: dict[int, None] = {}
    for period in periods:
        for lane in (chunks.chunks_in_period, chunks.first_chunks_in_period):
            found.update(dict.fromkeys(lane(db, period.start, period.end, filters, MOST_DATED)))
    return list(found)


def _allowed(
    db: "Database", named: entities.Entities, filters: "SearchFilters"
) -> tuple[entities.Entities, dict[int, int]]:
    """Without the pages that the filters leave out, and the first chunk of each of the others."""
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


def _places(db: "Database", chunk_ids: set[int], filters: "SearchFilters") -> dict[int, Place]:
    # The neighbour of a chunk may be of another day.
    reach = 0 if filters.since or filters.until else REACH
    return chunks.neighbours(db, list(chunk_ids), reach)


def _dates(db: "Database", places: dict[int, Place], periods: tuple[when.Period, ...]) -> dict[int, str]:
    if not periods:
        return {}
    of_chunks = chunks.chunk_dates(db, list(places))
    of_pages = chunks.page_dates(db, list({page for page, _ in places.values()}))
    days = {chunk: of_chunks.get(chunk) or of_pages.get(page, "") for chunk, (page, _) in places.items()}
    return {chunk: day for chunk, day in days.items() if any(period.holds(day) for period in periods)}


def _favours(
    db: "Database", places: dict[int, Place], named: entities.Entities, dates: dict[int, str], dated_: float
) -> dict[int, float]:
    if not (dates or named.mentioned or named.wings):
        return {}
    page_ids = list({page for page, _ in places.values()})
    heads = pages.page_heads(db, page_ids) if named.wings else {}
    in_wing = {page for page, head in heads.items() if head.wing in named.wings}
    return {
        chunk: dated_ * (chunk in dates) + MENTIONED * (page in named.mentioned) + WING * (page in in_wing)
        for chunk, (page, _) in places.items()
    }
