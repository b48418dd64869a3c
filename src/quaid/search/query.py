"""Find the candidates for a question: by name, by full-text search, by vector search and by date.

Filters are applied within each search, so that narrow filters still leave enough candidates. If the model is
not available, vector search is left out. Names and times in a question raise the scores of pages but never
exclude a page.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.embedding.registry import Embedder
from quaid.errors import DamagedDatabase, QuaidError
from quaid.model import slug as slugs
from quaid.model.chunker import split_statements
from quaid.model.dates import find_dates
from quaid.search.fusion import ChunkPosition, Evidence, Ranking, Turn, lift, meaning_share
from quaid.search.plan import STOP_WORDS, QueryPlan, plan_query
from quaid.search.strength import ENOUGH_CHUNKS, Unrelated, expected_baseline, word_share, word_weights
from quaid.search.text import page_scores, terms_worth_ranking
from quaid.storage import chunks, pages, text_index, vectors
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters, TextIndex

if TYPE_CHECKING:  # not imported at run time, because it loads numpy
    from quaid.storage.vector_index import ChunkIndex, TurnIndex

FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
_ONE_DAY = timedelta(days=1)
LONGEST_DATED_TEXT = 2_000
"""This many characters of a question are searched for dates."""

_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_SMALL_NUMBERS = dict(
    zip("a an one two three four five six seven eight nine ten".split(), (1, 1, *range(1, 11)), strict=True)
)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})\b"
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?\b"
_COUNT = rf"(?P<count>[0-9]{{1,3}}|{'|'.join(_SMALL_NUMBERS)}|few|couple of)"
_UNIT = r"(?P<unit>day|week|fortnight|month|year)s?\b"
# A month or year alone is a date only after these words, because "may" is also a verb and 2024 may be any
# number.
_LEADING_WORDS = (
    r"\b(?:in|since|during|before|after|until|till|by|from|between|of|last|this|and|to|year)\W+"
    r"(?:(?:early|late|mid|the)\W+)?"
)

_PHRASES = tuple(
    (name, re.compile(f"{led}(?P<phrase>{text})", re.IGNORECASE))
    for name, led, text in (
        ("iso", r"(?<![\w-])", r"(?P<year>[0-9]{4})-(?P<month>[01][0-9])(?:-(?P<day>[0-3][0-9]))?(?![\w-])"),
        ("day", r"\b", rf"{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?"),
        ("day", r"\b", rf"{_MONTH} {_DAY}(?!:)(?:,? {_YEAR})?"),
        ("month", r"\b", rf"{_MONTH},?(?: of)? {_YEAR}"),
        ("month", _LEADING_WORDS, _MONTH),
        ("season", r"\b", rf"(?P<season>{'|'.join(_SEASONS)})(?: of)? {_YEAR}"),
        ("quarter", r"\b", rf"q(?P<quarter>[1-4])[ /-]?{_YEAR}"),
        ("year", _LEADING_WORDS, _YEAR),
        ("ago", r"\b", rf"{_COUNT} {_UNIT} ago\b"),
        ("past", r"\b", rf"(?:last|past|previous) {_COUNT} {_UNIT}"),
        ("relative", r"\b", rf"(?P<which>last|this|past|previous) {_UNIT}"),
        ("weekday", r"\b(?:on|last|this|since) ", rf"(?P<weekday>{'|'.join(_WEEKDAYS)})\b"),
        ("near", r"\b", r"(?P<near>day before yesterday|today|yesterday|tonight|this morning|last night)\b"),
    )
)
# This is a fast pre-check, because most questions contain no time expression.
_HINT = re.compile(
    rf"[0-9]|\b(?:last|past|previous|this|ago|today|yesterday|tonight|{'|'.join(month[:3] for month in _MONTHS)})"
    rf"|\b(?:{'|'.join(_WEEKDAYS)})\b",
    re.IGNORECASE,
)
_OPEN_END = re.compile(r"\b(since|from|after)\W+(?:the )?\Z", re.IGNORECASE)
_OPEN_START = re.compile(r"\b(before|until|till|up to|prior to)\W+(?:the )?\Z", re.IGNORECASE)
_JOINT = re.compile(r"\W+(?:and|to|until|till|through|-|–)\W+\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|from)\W+(?:the )?\Z", re.IGNORECASE)


class Period(NamedTuple):
    """A range of days as YYYY-MM-DD, both included."""

    start: str
    end: str
    text: str
    """The words of the question that name the period."""
    span: tuple[int, int] = (0, 0)
    """Start and end offset in the question."""

    def holds(self, day: str) -> bool:
        """Return True if a day (or month as YYYY-MM) is within the period."""
        return self.start[: len(day)] <= day <= self.end[: len(day)] if day else False


_DatedSpan = tuple[int, int, date, date]
"""Start and end offset of a time expression, and the first and last day that it names."""


def find_periods(question: str, now: str) -> tuple[Period, ...]:
    """Return the periods that a question names, in order; `now` is today's date or a timestamp."""
    text = question[:LONGEST_DATED_TEXT]
    if not _HINT.search(text):
        return ()
    today = date(int(now[:4]), int(now[5:7]), int(now[8:10]))
    spans: list[_DatedSpan] = []
    unread: list[tuple[int, int]] = []
    for kind, phrase in _PHRASES:
        for match in phrase.finditer(text):
            begin, end = match.span("phrase")
            taken = [*unread, *(span[:2] for span in spans)]
            if any(first < end and begin < last for first, last in taken):
                continue
            if kind == "day" and _is_verb(text, match):
                continue
            days = _days_of_phrase(kind, match, today)
            if days:
                spans.append((begin, end, *days))
            elif kind == "day":  # in an invalid date such as 30 February, the month alone is not used either
                unread.append((begin, end))
    return _join_periods(text, sorted(spans))


def _is_verb(text: str, match: re.Match[str]) -> bool:
    """Return True if "may" in a match such as "may 2" is a verb: it follows a pronoun and has no year."""
    if match["month"].lower() != "may" or match["year"]:
        return False
    return match.start("month") < match.start("day") and _WHO_MAY.search(text[: match.start()]) is not None


_WHO_MAY = re.compile(r"\b(?:i|you|he|she|it|we|they|who|which|that|there)\W+\Z", re.IGNORECASE)


def _days_of_phrase(kind: str, match: re.Match[str], today: date) -> tuple[date, date] | None:
    """Return the first and last day of a time expression, or None if it is not a valid date."""
    groups = {name: value.lower() for name, value in match.groupdict().items() if value}
    try:
        return _PERIOD_READERS[kind](groups, today)
    except (ValueError, OverflowError):
        return None


def _read_iso(groups: dict[str, str], _: date) -> tuple[date, date]:
    year, month = int(groups["year"]), int(groups["month"])
    if "day" in groups:
        day = date(year, month, int(groups["day"]))
        return day, day
    return _month_of(year, month)


def _read_day(groups: dict[str, str], today: date) -> tuple[date, date]:
    month = _month_number(groups["month"])
    if "year" in groups:
        day = date(int(groups["year"]), month, int(groups["day"]))
    else:
        day = date(today.year, month, int(groups["day"]))
        if day > today:
            day = date(today.year - 1, month, int(groups["day"]))
    return day, day


def _read_month(groups: dict[str, str], today: date) -> tuple[date, date]:
    month = _month_number(groups["month"])
    year = int(groups["year"]) if "year" in groups else today.year - (month > today.month)
    return _month_of(year, month)


def _read_season(groups: dict[str, str], _: date) -> tuple[date, date]:
    first = date(int(groups["year"]), _SEASONS[groups["season"]], 1)
    return first, _month_of(*_plus_months(first.year, first.month, 2))[1]


def _read_quarter(groups: dict[str, str], _: date) -> tuple[date, date]:
    year, first = int(groups["year"]), 3 * int(groups["quarter"]) - 2
    return date(year, first, 1), _month_of(year, first + 2)[1]


def _read_year(groups: dict[str, str], _: date) -> tuple[date, date]:
    year = int(groups["year"])
    return date(year, 1, 1), date(year, 12, 31)


def _read_ago(groups: dict[str, str], today: date) -> tuple[date, date]:
    count, unit = _parse_count(groups["count"]), groups["unit"]
    if unit == "day":
        day = today - timedelta(days=count)
        return day, day
    if unit in ("week", "fortnight"):
        return _unit_of(today - timedelta(weeks=count * (2 if unit == "fortnight" else 1)), "week")
    if unit == "month":
        return _month_of(*_plus_months(today.year, today.month, -count))
    return _unit_of(date(today.year - count, 1, 1), "year")


def _read_past(groups: dict[str, str], today: date) -> tuple[date, date]:
    count, unit = _parse_count(groups["count"]), groups["unit"]
    days = {"day": 1, "week": 7, "fortnight": 14, "month": 31, "year": 366}[unit]
    return today - timedelta(days=count * days), today


def _read_relative(groups: dict[str, str], today: date) -> tuple[date, date]:
    unit = groups["unit"]
    if groups["which"] == "this":
        return _unit_of(today, unit)
    if unit == "month":
        return _month_of(*_plus_months(today.year, today.month, -1))
    if unit == "year":
        return _unit_of(date(today.year - 1, 1, 1), unit)
    days = {"day": 1, "week": 7, "fortnight": 14}[unit]
    first, last = _unit_of(today - timedelta(days=days), unit)
    return first, max(last, first)


def _read_weekday(groups: dict[str, str], today: date) -> tuple[date, date]:
    back = (today.weekday() - _WEEKDAYS.index(groups["weekday"])) % 7 or 7
    day = today - timedelta(days=back)
    return day, day


def _read_near(groups: dict[str, str], today: date) -> tuple[date, date]:
    back = {"yesterday": 1, "last night": 1, "day before yesterday": 2}.get(groups["near"], 0)
    day = today - timedelta(days=back)
    return day, day


_PERIOD_READERS = {
    "iso": _read_iso,
    "day": _read_day,
    "month": _read_month,
    "season": _read_season,
    "quarter": _read_quarter,
    "year": _read_year,
    "ago": _read_ago,
    "past": _read_past,
    "relative": _read_relative,
    "weekday": _read_weekday,
    "near": _read_near,
}


def _join_periods(text: str, spans: list[_DatedSpan]) -> tuple[Period, ...]:
    """Extend periods after words such as "since" and "before", and join the two periods of "between … and …"."""
    periods: list[Period] = []
    place = 0
    while place < len(spans):
        begin, end, first, last = spans[place]
        before = text[:begin]
        after = spans[place + 1] if place + 1 < len(spans) else None
        if after and _BETWEEN.search(before) and _JOINT.fullmatch(text[end : after[0]]):
            if first > after[3]:
                first = date(after[3].year, first.month, 1)
            last, end = max(after[3], first), after[1]
            place += 1
        elif opened := _OPEN_END.search(before):
            first = last + _ONE_DAY if opened[1].lower() == "after" and last < LAST_DAY else first
            last = LAST_DAY
        elif opened := _OPEN_START.search(before):
            excludes = opened[1].lower() in ("before", "prior to")
            last = first - _ONE_DAY if excludes and first > FIRST_DAY else first if excludes else last
            first = FIRST_DAY
        named = text[begin:end].strip(" ,.")
        periods.append(Period(first.isoformat(), last.isoformat(), named, (begin, end)))
        place += 1
    return tuple(dict.fromkeys(periods))


def _parse_count(text: str) -> int:
    return int(text) if text.isdigit() else _SMALL_NUMBERS.get(text, 3 if text == "few" else 2)


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month[:3] == name[:3])


def _plus_months(year: int, month: int, count: int) -> tuple[int, int]:
    years, months = divmod(month - 1 + count, 12)
    return year + years, months + 1


def _month_of(year: int, month: int) -> tuple[date, date]:
    first = date(year, month, 1)
    following = date(*_plus_months(year, month, 1), 1)
    return first, following - timedelta(days=1)


def _unit_of(day: date, unit: str) -> tuple[date, date]:
    if unit in ("week", "fortnight"):
        first = day - timedelta(days=day.weekday())
        return first, first + timedelta(days=6 if unit == "week" else 13)
    if unit == "month":
        return _month_of(day.year, day.month)
    if unit == "year":
        return date(day.year, 1, 1), date(day.year, 12, 31)
    return day, day


MOST_NAME_WORDS = 48
LONGEST_NAME_WORDS = 5
"""Names of up to LONGEST_NAME_WORDS words are searched for in the first MOST_NAME_WORDS words of a question."""

MOST_EXACT = 5

_REFERENCE = re.compile(r"\[\[([^\[\]|#\n]{1,255})(?:[|#][^\[\]\n]*)?\]\]")
_NAME_WORD = re.compile(r"[^\W_]+(?:[_'’-][^\W_]+)*")


class Entities(NamedTuple):
    """The pages and wings (top-level categories of pages) that a question names."""

    exact: dict[int, str]
    """Pages whose name is the whole question, with the kind of name, and pages linked in it, with the link."""
    mentioned: dict[int, str]
    """Pages whose name occurs in the question, with that name."""
    wings: tuple[str, ...]
    """Wings whose name occurs in the question."""


def find_entities(db: Database, question: str) -> Entities:
    """Return the pages and wings that a question names, the most reliable matches first."""
    whole = slugs.fold_name(question)
    references = {slugs.fold_name(name) for name in _REFERENCE.findall(question[:10_000])}
    keys = references | ({whole} if len(question) <= slugs.LONGEST_NAME else set())
    parts = name_spans(question)
    named_pages = pages.pages_called(db, sorted((keys | parts.keys()) - {""}))
    exact: dict[int, str] = {}
    mentioned: dict[int, str] = {}
    for page in named_pages:
        if page.name in keys:
            exact.setdefault(page.page_id, f"[[{page.name}]]" if page.name in references else page.kind)
        elif page.name in parts:
            mentioned.setdefault(page.page_id, parts[page.name])
    wings = pages.wings_called(db, sorted(name.replace(" ", "-") for name in parts if name))
    return Entities(dict(list(exact.items())[:MOST_EXACT]), mentioned, tuple(wings))


@lru_cache(8)  # called in several steps of one question
def name_spans(question: str) -> Mapping[str, str]:
    """Return all word sequences that could be a name, normalized, with their original text."""
    words = [match.span() for match in _NAME_WORD.finditer(question)][:MOST_NAME_WORDS]
    spans: dict[str, str] = {}
    for first, (start, _) in enumerate(words):
        for _, end in words[first : first + LONGEST_NAME_WORDS]:
            text = question[start:end]
            if _may_be_name(text):
                spans.setdefault(slugs.fold_name(_TRAILING_POSSESSIVE.sub("", text)), text)
    return spans


_TRAILING_POSSESSIVE = re.compile(r"['’]s\Z", re.IGNORECASE)


def _may_be_name(text: str) -> bool:
    """Return True if text may be a name: neither its first nor its last word is a stop word."""
    first, last = text.split()[0].lower(), text.split()[-1].lower()
    return first not in STOP_WORDS and last not in STOP_WORDS and len(text) > 1


LONGEST_EMBEDDED_TEXT = 4_000
"""This many characters of a question are passed to the model, which reads about half of them."""


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
    """Number of vectors. Chunks have more than one if their entries have vectors too."""
    embedded: int
    total: int
    """`embedded` is the number of chunks or turns (messages) that have a vector, and `total` the number of all."""
    familiarity: float
    """The share of the question, from 0 to 1, that is in words of the model's language."""
    centred: Any  # numpy.ndarray
    """The vector without a part of the mean vector, by which texts are ranked. See CENTRING."""
    centred_baseline: float
    """The expected score of an unrelated text."""

    @property
    def unrelated(self) -> Unrelated:
        return Unrelated(self.baseline, self.spread, self.compared)

    def nearest(self, count: int, filters: SearchFilters) -> dict[int, float]:
        """Return the nearest chunks with their scores, best first."""
        return dict(self.vectors.nearest(self.model, self.vector, count, filters, self.centred))

    def scores(self, ids: list[int]) -> dict[int, float]:
        """Return the scores of chunks or turns for ranking, omitting those without a vector."""
        scores: dict[int, float] = self.vectors.cosines(self.model, self.centred, ids)
        return scores

    def cosines(self, ids: list[int]) -> dict[int, float]:
        """Return the cosines of the chunks or turns with these ids, omitting those without a vector."""
        cosines: dict[int, float] = self.vectors.cosines(self.model, self.vector, ids)
        return cosines


def embed_question(
    db: Database, embedder: Embedder, question: str, index: "ChunkIndex | TurnIndex"
) -> MeaningLane | str:
    """Embed a question with the active model, or return the reason why that is not possible."""
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


CANDIDATES = 100
"""Full-text search and vector search return at most this many chunks each. Their neighbours are added."""

WORD_BUDGET, PAGE_WORD_BUDGET = 8_000, 4_000
"""At most this many (chunk, word) pairs and (page, word) pairs are ranked, which takes 4 to 6 ms and 2 ms."""

REACH = 2
"""Chunks up to this many positions before or after a chunk are its neighbours."""

DATED_FAVOUR, MENTIONED_FAVOUR, WING_FAVOUR = 0.6, 0.2, 0.1
"""Additional scores of a chunk whose date, page or wing the question names.

For comparison, the chunk that is best in words and meaning has a score of 1 before its page and neighbours
are added.
"""

STANDING_FAVOUR = 0.5
"""Additional score of the standing instruction or preference that is nearest to a request; others have less."""

ONLY_DATED_FAVOUR = 3.0
"""Additional score by date if the question names only a time. It exceeds words and meaning together."""

VAGUE_WORDS = frozenset(
    """happen happened happening happens occur occurred event events news new thing things anything something
    everything went go going gone changed change changes took take place tell show list""".split()
)
"""Words that add nothing to the time in a question, as in "what happened last week"."""

MOST_DATED = 50


class Candidates(NamedTuple):
    """All candidates of a question with their evidence."""

    plan: QueryPlan
    """The terms by which results are scored and rated."""
    counts: dict[str, int]
    """Maps each part of the plan, in quoted form, to the approximate number of chunks that contain it."""
    evidence: Evidence
    named: Entities
    dates: dict[int, str]
    """Maps each chunk that is dated within a period of the question to its date."""
    periods: tuple[Period, ...]
    openings: dict[int, int]
    """The first chunk of each named page."""
    only_time: bool = False
    """True if the question names only a period, and some chunks are dated within it."""


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
        words.update(TextIndex(db, text_index.CHUNKS).scores_of(expression, others))
    if isinstance(meaning, MeaningLane):
        cosines = near | meaning.scores([chunk for chunk in places if chunk not in near])
    else:
        cosines = {}
    dates = _dates_in_periods(db, places, periods)
    only_time = bool(of_periods) and _says_nothing(plan)
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
        cover=cover_of_best(TextIndex(db, text_index.CHUNKS), words, counts),
    )
    return Candidates(plan, counts, evidence, named, dates, periods, openings, only_time)


_SUBJECT_WORDS = r"(?: [\w'’-]+){1,5}"
_LATEST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|(?:the )?last time(?: that)?|up to date)\b"
    rf"|\b(?:when|how long ago|where) (?:did|was|were|have|has|had){_SUBJECT_WORDS} (?P<word>last)"
    r"(?! (?:week|month|year|night|time|spring|summer|autumn|fall|winter|\w+day)\b)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?:earliest|initially|in the beginning(?! of)|(?:the |for the |my )?(?:very )?first (?:time|thing)(?: that)?"
    rf"|(?:did|have|has|was|were){_SUBJECT_WORDS} (?P<word>first)"
    r"(?! (?:place|name|aid|class|floor|half|two))"
    r"|(?P<verb>first) (?:mention|talk|say|tell|told|ask|bring|brought|come|came|start|beg[ai]n|hear)\w*)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:in (?:what|which) (?:order|sequence)|(?:in )?the (?:order|sequence) (?:in which|of)"
    r"|(?:in )?chronological(?:ly)?(?: order)?|(?:what|which)(?: of \w+)? (?:came|happened|was) (?:first|earlier))\b",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\b(?:mention(?:s|ed)?|sa(?:y|ys|id)|tell|told|talk(?:ed)?|sp(?:eak|oke)|hear|heard|br(?:ing|ought) up"
    r"|c[oa]me up|discuss(?:ed)?|news|things?|happen(?:ed)?|events?|list|order)\b",
    re.IGNORECASE,
)
_BETWEEN_THINGS = re.compile(r"[,;:]|\b(?:and|or|then|before|after)\b", re.IGNORECASE)

TIME_ORDER_COMPARED = 100
"""Number of best chunks that are compared by date if a question asks for the first or the latest of something."""

ABOUT_SUBJECT = 0.8
"""Such chunks are about the subject if they match at least this share as well as the best one."""

LONGEST_SHORT_PERIOD = 31
"""Within a period of up to this many days, the first or the latest is not searched for."""

ALL_WORDS = 0.999
"""The share of words, with a margin for rounding, of a text that has all of them."""


class TimeOrder(NamedTuple):
    """What a question asks about the order of things in time."""

    kind: str
    """"first", "latest", or "order" if it asks in which order things happened."""
    subject: str
    """The question without the words that ask for the order, by which candidates are found."""
    things: tuple[str, ...] = ()
    """The things whose order is asked for."""

    def extreme(self, days: Iterable[str]) -> str:
        """Return the first or the latest of these days."""
        return (max if self.kind == "latest" else min)(days)


@lru_cache(8)  # called in several steps of one question
def find_time_order(question: str) -> TimeOrder | None:
    """Return what a question asks about the order of things in time, or None."""
    text = question[:LONGEST_DATED_TEXT]
    patterns = (("order", _ORDER), ("latest", _LATEST), ("first", _FIRST))
    kind, match = next(
        ((kind, match) for kind, pattern in patterns if (match := pattern.search(text))), ("", None)
    )
    if match is None:
        return None
    named = next((name for name, value in match.groupdict().items() if value), 0)
    start, end = match.span(named)
    subject = _TELLING.sub(" ", f"{question[:start]} {question[end:]}")
    if all(word.text.lower() in STOP_WORDS | VAGUE_WORDS for word in plan_query(subject).words):
        subject = question
    things = [part.strip() for part in _BETWEEN_THINGS.split(subject)] if kind == "order" else []
    return TimeOrder(kind, subject, tuple(thing for thing in things if _names_something(thing)))


def names_short_period(question: str, now: str) -> bool:
    """Return True if a question names a period of at most a month."""
    return any(
        (date.fromisoformat(period.end) - date.fromisoformat(period.start)).days <= LONGEST_SHORT_PERIOD
        for period in find_periods(question, now)
    )


def _names_something(text: str) -> bool:
    return any(word.text.lower() not in STOP_WORDS for word in plan_query(text).words)


def favour_time_order(db: Database, candidates: Candidates, ranking: Ranking, order: TimeOrder) -> Ranking:
    """Return the ranking with the first or the latest of the chunks about the subject in front.

    If the question asks for the order of several things, the best chunk of each comes to the front.
    """
    places = candidates.evidence.places
    best = sorted(ranking.chunks, key=lambda chunk: -ranking.chunks[chunk])[:TIME_ORDER_COMPARED]
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
    """Return those of the best chunks that match the question almost as well as any, by words and by meaning.

    Chunks with all words of the question are always among them.
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
    """Return the share of the words with these counts that each row has. Rare words weigh more."""
    weights = word_weights(counts, index.highest_id())
    held: dict[int, list[str]] = {row: [] for row in ids}
    for term in counts:
        for row in index.matching(term, ids) if counts[term] else ():
            held[row].append(term)
    return {row: word_share(terms, weights) for row, terms in held.items()}


def _best_of_things(
    db: Database, ranking: Ranking, best: list[int], things: tuple[str, ...]
) -> dict[int, float]:
    """Return the chunk that has most of the words of each thing, or the better ranked of several."""
    index = TextIndex(db, text_index.CHUNKS)
    chosen = {}
    for thing in things:
        shares = _word_shares(index, _count_chunks(db, plan_query(thing)), best)
        chunk = max(best, key=lambda chunk: (round(shares[chunk], 3), ranking.chunks[chunk]), default=None)
        if chunk is not None and shares[chunk]:
            chosen[chunk] = 1.0
    return chosen


def _days_of_chunks(db: Database, places: dict[int, ChunkPosition], order: TimeOrder) -> dict[int, str]:
    """Return the day of each chunk that has one: its own, that of its page, or the first or latest in its text.

    If none has a day, return the days on which the pages were saved, unless several pages were saved on one day, as
    by an import.
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

Of the newest MOST_STANDING chunks with words of an instruction, the nearest STANDING_COMPARED are read. Of those
that state an instruction, the nearest STANDING_KEPT are kept.
"""


def find_standing(
    question: str,
    meaning: MeaningLane | str,
    newest: Callable[[str, int], list[int]],
    read: Callable[[list[int]], dict[int, str]],
) -> dict[int, float]:
    """Return the chunks or turns with a standing instruction or preference that may apply to a request.

    Each id is mapped to its nearness to the question, relative to the nearest one. An instruction has few words
    in common with the requests that it applies to, so without vectors the result is empty. `newest` returns the
    ids of the newest texts that match an expression, and `read` returns texts by id.
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


def _without_time(question: str, periods: Iterable[Period]) -> QueryPlan:
    """Parse a question without the words that name these periods, unless only stop words would be left."""
    rest = question
    for period in sorted(periods, key=lambda period: period.span, reverse=True):
        first, last = period.span
        rest = f"{rest[:first]} {rest[last:]}"
    plan = plan_query(rest)
    if all(word.text.lower() in STOP_WORDS for word in plan.words):
        return plan_query(question)
    return plan


def _says_nothing(plan: QueryPlan) -> bool:
    return all(word.text.lower() in VAGUE_WORDS or word.text.lower() in STOP_WORDS for word in plan.words)


def _count_chunks(db: Database, plan: QueryPlan) -> dict[str, int]:
    """Return the approximate number of chunks that contain each term."""
    quoted = [part.quoted for part in plan.parts]
    counts = TextIndex(db, text_index.CHUNKS).document_counts(
        quoted, TextIndex(db, text_index.CHUNKS).highest_id()
    )
    return dict(zip(quoted, counts, strict=True))


def cover_of_best(index: TextIndex, scores: dict[int, float], counts: dict[str, int]) -> float:
    """Return the share of the question's words in the row with the best score. Rare words weigh more.

    `counts` has the number of rows that contain each term of the question.
    """
    if not scores:
        return 0.0
    best = max(scores, key=lambda row: scores[row])
    held = index.terms_in_row(best, [term for term, count in counts.items() if count])
    return word_share(held, word_weights(counts, index.highest_id()))


TURNS_COMPARED = 60
"""Number of best chunks whose turn features are compared. Chunks that are not turns of a conversation are skipped."""

EDGE = 60
"""Whether a chunk is a turn, and whether it asks, is read from this many characters at its start and its end."""

_SPEAKER = re.compile(r"\s*(?:\*\*)?\w[^:\n]{0,40}:(?:\*\*)? \S")


def turns_of_chunks(db: Database, candidates: Candidates, scores: Mapping[int, float]) -> dict[int, Turn]:
    """Return the turns of conversations among the best chunks and their direct neighbours.

    The result is empty if there is only one.
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
    """Return the ids of the best chunks or turns and of those directly beside them."""
    best = sorted(scores, key=lambda chunk: -scores[chunk])[:TURNS_COMPARED]
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


def _chunks_of_periods(db: Database, periods: Iterable[Period], filters: SearchFilters) -> list[int]:
    return list(
        dict.fromkeys(
            chunk
            for period in periods
            for chunk in chunks.chunks_in_period(db, period.start, period.end, filters, MOST_DATED)
        )
    )


def _filter_entities(
    db: Database, named: Entities, filters: SearchFilters
) -> tuple[Entities, dict[int, int]]:
    """Return the entities without pages that the filters exclude, and the first chunk of each remaining page."""
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
    db: Database, places: dict[int, ChunkPosition], periods: tuple[Period, ...]
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
