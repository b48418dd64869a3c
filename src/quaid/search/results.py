"""Build results from the ranked pages: choose the chunk and line of each page, rate its evidence and explain it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from quaid.model import timeline
from quaid.model.chunker import (
    TRUTH_KIND,
    is_struck,
    is_ticked,
    statement_spans,
    statement_text,
    without_struck,
)
from quaid.model.dates import DAY_WORD, find_dates, fold_days
from quaid.model.page import (
    ALL_BY_PERSON,
    CLASSES,
    CLOSED_STATUSES,
    PERSON,
    LineTrust,
    TrustName,
    escape_delimiters,
    is_superseded,
)
from quaid.model.slug import address, fold_name
from quaid.search import text as text_search
from quaid.search.candidates import MEANING_SHARE, MeaningLane, RankedQuestion
from quaid.search.question import names_asked, sought
from quaid.search.text import NO_FILTERS, STOP_WORDS, TextStems, fit_text, word_share
from quaid.storage import chunks, pages, text_index, trust
from quaid.storage.chunks import ChunkRow
from quaid.storage.pages import PageHead
from quaid.storage.sqlite.connection import Database

COMPARABLE = 0.75
"""If the question asks for the first or latest, texts with at least this share of the best evidence are compared.
"""

RESULTS_JUDGED = 3
"""The strength of an answer is the highest strength among its first results, at most this many."""

MOST_WORDS_NAMED = 6

TRUST_SHARE = 0.6
"""A result is placed before a less trusted one if its evidence score is at least this share of the other's."""

MOST_TRUSTED_ADDED = 3
PAGES_COMPARED = 200
"""If most of the first results are of a lower trust class than `person`, up to MOST_TRUSTED_ADDED pages of the
highest class among the first PAGES_COMPARED pages are added.
"""

LATEST_TOKENS = 60
"""Maximum tokens of the timeline entry (`latest`) in a result."""

SUMMARY_TOKENS = 200
"""Maximum tokens of a page summary in a result. Agents receive the summary only with the depth `summary`."""

NOTEBOOK_KIND = "notebook"

CHUNKS_COMPARED = 3
"""Entries of a notebook file come from this many of its best chunks, and this many of its nearest in meaning."""

ENTRY_SHARE, MOST_ENTRIES = 0.5, 5
"""A notebook file shows up to MOST_ENTRIES entries that have at least ENTRY_SHARE of the best evidence."""

ATTRIBUTE_SHARE = 0.5
"""The answer is looked for in the statement with the most words besides the subject, and in statements with at least
this share of that weight.
"""

DAY_WEIGHT = 1.0
"""Evidence added to a statement that contains a day of the question, written in digits or in words."""

LEAST_OUTDATED = 0.15
"""An outdated statement with less evidence than this is not used as the line if there is a current one."""

LEAST_STRUCK = 0.3
"""A partly struck statement is outdated only if more than this share of the question's words is struck."""

WORDS_ADDED = 2
"""An entry is also shown if it has at least this many words of the question that the chosen entries lack."""

Strength = Literal["strong", "weak", "none"]
STRENGTHS: tuple[Strength, ...] = ("strong", "weak", "none")
SUPERSEDED = "superseded"


class SearchResult(NamedTuple):
    """A page, represented by its best chunk, or a turn of a conversation or an open proposal."""

    slug: str
    collection: str
    title: str
    type: str
    wing: str = ""
    room: str = ""
    depth: str = "summary"
    """The kind of text in `content`: Entry.section (section), Entry.full (full) or none (summary)."""
    summary: str = ""
    content: str = ""
    score: float = 0.0
    """The strength of the evidence from 0 to 1 (see `rate`). It is comparable between questions."""
    tokens_used: int = 0
    lane: str = "words"
    """How the page was found: exact (by name), words, meaning, both, date, or name (see put_named_first)."""
    reason: str = ""
    heading_path: str = ""
    part: str = ""
    """The part of the page that contains the chunk: truth or timeline.

    Line numbers count from 1 within the part.
    """
    start_line: int = 1
    end_line: int = 1
    strength: Strength = "none"
    """Strength of the evidence for this result alone."""
    rank_score: float = 0.0
    """The score by which results are ordered. It is not comparable between questions."""
    line: str = ""
    """The best sentence or list entry."""
    date: str = ""
    """The day or month of the text, if it has one."""
    origin: str = "page"
    """Where the text is stored: page, notebook, daily, conversation, kb or proposal."""
    status: str = ""
    """"superseded" if the page has such a status, or the line is struck or states an outdated value.

    For a commitment, task or deal that is closed, its status, such as done or cancelled; else "".
    """
    session: str = ""
    """The conversation as client:session, or "" for other results."""
    turn: int = 0
    """The number of the turn in the conversation, or 0 for other results."""
    proposal: int = 0
    """The id of an open proposal, or 0."""
    latest: str = ""
    """The newest matching entry of the timeline, or else the newest entry; see `ResultBuilder._latest`.

    Empty if the text itself is a timeline entry that is at least as new.
    """
    now: str = ""
    """The current value, or how the fact ended, if the text states an outdated value."""
    trust: TrustName = "person"
    """The lowest trust class of the lines in the result."""

    @property
    def text(self) -> str:
        """The text that agents receive. If it is not the user's, it is escaped, so it cannot end a quotation."""
        text = self.content or self.line
        return text if self.trust == "person" else escape_delimiters(text)

    def agent_fields(self) -> dict[str, Any]:
        """Return the fields that agents receive, except the text."""
        fields = {
            "origin": self.origin,
            "slug": self.slug and address(self.collection, self.slug),
            "session": self.session,
            "turn": self.turn,
            "proposal": self.proposal,
            "title": self.title,
            "date": self.date,
            "strength": self.strength,
            "status": self.status,
            "now": self.now,
            "latest": self.latest,
            "trust": self.trust if self.trust != "person" else "",
        }
        return {name: value for name, value in fields.items() if value}


class LaneTrace(NamedTuple):
    """The scores of a result's chunk by words and by meaning, for --explain."""

    slug: str
    start_line: int
    words: float
    """BM25 of the chunk."""
    words_place: int
    """The rank of the chunk in full-text search, or 0 if full-text search did not find it."""
    page_words: float
    cosine: float | None
    meaning_place: int
    """The rank of the chunk in vector search, or 0 if vector search did not find it."""
    favour: float


class Entry(NamedTuple):
    """A search result with alternative texts, one of which is returned depending on the budget."""

    result: SearchResult
    line: str
    """The sentence or list entry with the most evidence."""
    section: str
    """The text of the best chunk."""
    full: str
    """The text of the page above its timeline, followed by the best chunk if it is from the timeline."""
    held: frozenset[str] = frozenset()
    """The words of the question that the result contains."""
    is_named: bool = False
    """True if the question names the page."""
    line_class: int = PERSON
    """The trust class of the best line."""


class ShownPage(NamedTuple):
    head: PageHead
    chunk: ChunkRow | None
    truth: str
    date: str
    kind: str
    """The kind of the collection that contains the page."""
    status: str
    """`status` in the front matter of the page."""
    timeline: str = ""
    truth_day: str = ""
    """The day of the last change of the text above the timeline."""
    more: tuple[ChunkRow, ...] = ()
    """Other chunks of a notebook file that may have better entries than `chunk`."""
    classes: LineTrust = ALL_BY_PERSON


ASKS_FOR_OPEN = re.compile(
    r"\b(open|to-?dos?|pending|outstanding|still|left|unfinished|remain\w*|(have|need) to do)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b((?<!be )done|finished|completed?|delivered|sent|kept|fulfilled|ticked|already|whether)\b"
    r"|\bwhich of (these|those|the following)\b"
    r"|\A\W*(did|has|have|was|were|is|are) (i|we|the|it|they)\b",
    re.IGNORECASE,
)
"""Matches a question that asks whether something was done."""
ENTRY_MARK = re.compile(r"\A(?:[-*+] )?\*\*[\d-]+\*\* \| (?:\S+ — )?")
"""Matches the date and source at the beginning of a timeline entry."""
_CORRECTION = re.compile(r"(?:[-*+] )?\*\*[\d-]+\*\* \| correction — .*~~")
"""Matches the beginning of a timeline entry about a correction, including the struck text."""
_BOOKKEEPING = re.compile(r"(?:was wrong|done|\(removed\))\.?", re.IGNORECASE)
"""Matches what is left of a correction entry without its struck text, if it says nothing about the subject."""
_LETTER = re.compile(r"[^\W\d_]")
_UNFINISHED = re.compile(r"(?::|\b(?:Mrs?|Ms|Dr|Prof|St)\.)\s*\Z")
"""Matches the end of a statement that continues in the next one."""
_OPEN_TASK = re.compile(r"^[^\S\n]*[-*+] \[ \]", re.MULTILINE)
_TASK_WORDS = STOP_WORDS | {"task", "tasks", "todo", "todos", "dos", "thing", "things", "list", "need"}
LONGEST_TIMELINE = 20_000
"""A longer timeline is searched only in its first and last characters, half of this number each."""


def _origin(head: PageHead, kind: str) -> str:
    """Return the origin of a page in a collection of this kind."""
    if kind == "notebook":
        return "daily" if head.slug.startswith("daily/") else "notebook"
    return "kb" if kind == "kb" else "page"


def _load_pages(db: Database, ranked: RankedQuestion, limit: int) -> list[ShownPage]:
    page_ids, classes = _with_trusted(db, ranked.pages, limit)
    # A user who asks for a page by name wants its beginning, not the chunk that repeats the name.
    openings = ranked.candidates.openings
    exact = {page: openings[page] for page in ranked.candidates.named.exact if page in openings}
    best = {**ranked.ranking.best, **exact}
    labels = pages.page_labels(db, page_ids)
    notes = [page for page in page_ids if page in labels and labels[page][0] == NOTEBOOK_KIND]
    more = _chunks_with_entries(ranked, [page for page in notes if page in best and page not in exact])
    if days_asked := set(DAY_WORD.findall(fold_days(ranked.question))):
        for page in more:
            of_page = chunks.of_page(db, page)
            more[page] += [row.id for row in of_page if days_asked & {*DAY_WORD.findall(fold_days(row.text))}]
    chosen = {chunk: page for page, chunk in best.items() if page in page_ids}
    loaded = chunks.load(db, list({*chosen, *(chunk for ids in more.values() for chunk in ids)}))
    rows = {row.page_id: row for row in loaded if row.id in chosen}
    heads = pages.page_heads(db, page_ids)
    asked = text_search.content_stems(text_index.Stemmer(db), ranked.question)
    minor = [
        row
        for row in rows.values()
        if row.page_id in heads
        and (
            _repeats_title(row, heads[row.page_id])
            or _is_minor(db, row, heads[row.page_id], asked)
            or _is_less_trusted(row, classes.get(row.page_id, ALL_BY_PERSON))
        )
    ]
    rows |= _chunks_with_text(db, ranked, minor)
    dates = chunks.chunk_dates(db, {row.id: (row.page_id, row.position) for row in rows.values()})
    texts = pages.page_texts(db, page_ids)
    shown = []
    for page in page_ids:
        if page in heads:
            row = rows.get(page)
            date = dates.get(row.id, "") if row else ""
            truth, timeline = texts[page]
            kind, status, day = labels[page]
            others = tuple(other for other in loaded if other.id in more.get(page, ()) and other != row)
            shown.append(
                ShownPage(
                    *(heads[page], row, truth, date, kind, status, timeline, day if timeline else "", others),
                    classes=classes.get(page, ALL_BY_PERSON),
                )
            )
    return shown


def _with_trusted(db: Database, page_ids: list[int], limit: int) -> tuple[list[int], dict[int, LineTrust]]:
    """Return the first pages, and the trust classes of the pages that the user did not write alone.

    If most of the first pages are of a lower class than `person`, the best pages of the highest class among the
    next pages are added, so that many copies of a text cannot displace the user's pages. The added pages become
    results only if they have about as much evidence as the pages before them (see TRUST_SHARE).
    """
    first = page_ids[:limit]
    classes = trust.of_pages(db, first)
    lower = [page for page in first if page in classes and classes[page].highest > PERSON]
    if len(page_ids) <= limit or 2 * len(lower) <= len(first):
        return first, classes
    compared = page_ids[limit:PAGES_COMPARED]
    every = {**classes, **trust.of_pages(db, compared)}
    highest = {page: every[page].highest if page in every else PERSON for page in (*first, *compared)}
    best = min(highest.values())
    if not any(highest[page] > best for page in lower):
        return first, classes
    return first + [page for page in compared if highest[page] == best][:MOST_TRUSTED_ADDED], every


def _repeats_title(row: ChunkRow, head: PageHead) -> bool:
    """Return True if a chunk of a timeline contains only the title of its page."""
    return row.kind != TRUTH_KIND and ENTRY_MARK.sub("", row.text.strip()).strip() == head.title


def _is_less_trusted(row: ChunkRow, classes: LineTrust) -> bool:
    """Return True if a timeline entry has a lower trust class than other lines of its page."""
    return row.kind != TRUTH_KIND and bool(classes.lines) and classes.of_text(row.text) > classes.highest


def _is_minor(db: Database, row: ChunkRow, head: PageHead, asked: frozenset[str]) -> bool:
    """Return True for a correction in a timeline that has less than half of the question's words.

    Words of the title and "use" do not count. Such a correction is not evidence that the page is current.
    """
    if row.kind == TRUTH_KIND or not _CORRECTION.match(row.text.strip()):
        return False
    stemmer = text_index.Stemmer(db)
    wanted = asked - text_search.content_stems(stemmer, f"{head.title} use used")
    return 2 * len(wanted & text_search.content_stems(stemmer, row.text)) < len(wanted)


def _chunks_with_text(db: Database, ranked: RankedQuestion, rows: list[ChunkRow]) -> dict[int, ChunkRow]:
    """Return the best chunk above the timeline for the page of each of these chunks, by page id."""
    if not rows:
        return {}
    page_ids = [row.page_id for row in rows]
    first = chunks.first_chunks_of_pages(db, page_ids, NO_FILTERS)
    scores = ranked.ranking.chunks
    ids = {first[page]: page for page in first}
    ids |= {chunk: page for chunk, (page, _) in ranked.candidates.evidence.places.items() if page in page_ids}
    loaded = [row for row in chunks.load(db, list(ids)) if row.kind == TRUTH_KIND and row.text.strip()]
    return {row.page_id: row for row in sorted(loaded, key=lambda row: scores.get(row.id, 0.0))}


def _chunks_with_entries(ranked: RankedQuestion, page_ids: list[int]) -> dict[int, list[int]]:
    """Return the best chunks of each page, by their scores and by meaning alone."""
    if not page_ids:
        return {}
    scores, cosines = ranked.ranking.chunks, ranked.candidates.evidence.cosines
    of_page: dict[int, list[int]] = {page: [] for page in page_ids}
    for chunk, (page, _) in ranked.candidates.evidence.places.items():
        if page in of_page:
            of_page[page].append(chunk)
    best: dict[int, list[int]] = {}
    for page, ids in of_page.items():
        by_score = sorted(ids, key=lambda chunk: -scores.get(chunk, 0.0))[:CHUNKS_COMPARED]
        by_meaning = sorted(ids, key=lambda chunk: -cosines.get(chunk, 0.0))[:CHUNKS_COMPARED]
        best[page] = list(dict.fromkeys(by_score + by_meaning))
    return best


STRONG, WEAK = 0.68, 0.0
"""The least evidence for strong and for weak results."""

SHARE_WEIGHT, NEAR_WEIGHT, BM25_WEIGHT, MEANING_WEIGHT, LEAD_WEIGHT = 0.25, 0.35, 0.4, 1.0, 0.3
"""Weights of `words`, `near`, `bm25`, `meaning` and `lead` of Measures."""

NAMES_WEIGHT, SUBJECT_WEIGHT = 0.25, 0.2
"""The amounts subtracted if a result has none of the question's names, or none of its words besides the subject."""

LEAST_ATTRIBUTE = 0.1
"""A result with a smaller share of the question's words besides its subject is not strong."""

STRONG_WORDS, WEAK_WORDS = 0.6, 0.3
"""The limits for strong and weak results if only words are known."""

NAMES_WEIGHT_OF_WORDS = 0.4
"""The amount subtracted for missing names if only words are known."""


class Measures(NamedTuple):
    """Measures of how well a result matches a question. Shares of words are from 0 to 1; rare words weigh more."""

    words: float
    """The share of the question's words that the result contains."""
    near: float
    """The largest share of the question's words in one statement together with its title and heading."""
    bm25: float
    """BM25 of the result, divided by the sum of the weights of the question's words."""
    meaning: float | None
    """The value of `MeaningLane.excess`, or None if the result has no vector."""
    missing_names: float = 0.0
    """The share of the question's names that the result does not contain."""
    attribute: float = 1.0
    """The share of the question's words besides names and title words that the result contains; 1 if there
    are none.
    """
    lacking: float = 0.0
    """`Sought.weight` if the result lacks the kind of answer that the question asks for, otherwise 0."""
    lead: float = 0.0
    """For the first result, the difference between its ranking score and that of the second; otherwise 0."""


def rate(measures: Measures) -> tuple[Strength, float]:
    """Return the strength of a result, and its evidence as a number from 0 to 1, comparable between questions.

    The number is at least 0.5 for strong results, and at least 0.24 for weak ones. The evidence is made of
    absolute measures: the share of the question's words in the result and in one statement, and BM25; how
    much nearer its chunk is than the nearest unrelated chunk would be; the lead of the first result over the
    second; and whether the result has the names in the question, words besides its subject, and the kind of
    answer asked for, such as a phone number. Without a vector, only words, names and the kind of answer count.
    `python -m bench strength` measures the limits, and docs/decisions/076-strength.md has the figures.
    """
    limits = _LIMITS
    if measures.meaning is None:
        limits, evidence = _WORD_LIMITS, measures.words - NAMES_WEIGHT_OF_WORDS * measures.missing_names
    else:
        evidence = (
            SHARE_WEIGHT * measures.words
            + NEAR_WEIGHT * measures.near
            + BM25_WEIGHT * min(1.0, measures.bm25)
            + MEANING_WEIGHT * measures.meaning
            + LEAD_WEIGHT * measures.lead
            - NAMES_WEIGHT * measures.missing_names
            - SUBJECT_WEIGHT * (1 - measures.attribute)
        )
    evidence -= measures.lacking
    score = round(min(1.0, max(0.0, _scaled(evidence, limits))), 2)
    if measures.attribute < LEAST_ATTRIBUTE or measures.lacking:
        score = below_strong(score)
    strength: Strength = "none"
    if score >= WEAK_SCORE:
        strength = "strong" if score >= STRONG_SCORE else "weak"
    return strength, score


STRONG_SCORE, WEAK_SCORE = 0.5, 0.24
"""The lowest scores (see `rate`) of strong and of weak results."""
_LIMITS = (-0.4, WEAK, STRONG, 1.6)
_WORD_LIMITS = (0.0, WEAK_WORDS, STRONG_WORDS, 1.0)
"""The evidence that corresponds to the lowest score, a weak result, a strong result, and the highest score."""


def _scaled(evidence: float, limits: tuple[float, float, float, float]) -> float:
    """Scale evidence to a score. The limits for weak and strong become WEAK_SCORE and STRONG_SCORE."""
    least, weak, strong, most = limits
    if evidence >= strong:
        return STRONG_SCORE + (1 - STRONG_SCORE) * (evidence - strong) / (most - strong)
    if evidence >= weak:
        return WEAK_SCORE + (STRONG_SCORE - WEAK_SCORE - 0.01) * (evidence - weak) / (strong - weak)
    return (WEAK_SCORE - 0.01) * (evidence - least) / (weak - least)


def below_strong(score: float) -> float:
    """Limit a score to less than strong."""
    return min(score, STRONG_SCORE - 0.01)


def missing_names(names: Mapping[str, float], held: Iterable[str]) -> float:
    """Return the share of the names that are not in `held`, or 0 if there are no names. Rare names weigh more."""
    return 1 - word_share(held, names) if names else 0.0


_ASKING = frozenset(
    """tell show give list find explain describe know known remember say said information info note notes detail
    details overview summary news status latest thing things something anything everything happened""".split()
)
"""Words of a question that asks for general information about a subject."""


def attribute_share(weights: Mapping[str, float], held: Iterable[str], subject: Collection[str]) -> float:
    """Return the share of a question's words besides its subject that are in `held`; 1 if it has no such words.

    Words that ask for general information do not count either.
    """
    others = {
        word: weight
        for word, weight in weights.items()
        if word not in subject and word.lower() not in _ASKING
    }
    return word_share(held, others) if others else 1.0


class _ScannedText(NamedTuple):
    held: list[str]
    statements: dict[str, float]
    """Maps each statement to the evidence that it answers the question; see `_scan_statements`."""
    near: float
    """The largest share of the question's words in one statement with its title and heading."""
    in_title: list[str]
    """The words of the question that the title contains."""
    around: str
    """The statements with the question's words besides its subject, or all statements if none has such words."""
    best: float
    """The highest evidence among the statements, plus that of the words in the title and headings."""


class ResultBuilder:
    """Rates and explains the best pages of one question."""

    def __init__(self, db: Database, ranked: RankedQuestion, limit: int, *, is_past: bool = False) -> None:
        """With `is_past`, struck entries of the notebook are shown too."""
        self._ranked = ranked
        self._is_past = is_past
        shown = _load_pages(db, ranked, limit)
        self._entry_cosines: dict[tuple[int, int], float] = {}
        self._cosines: dict[int, float] = {}
        meaning = ranked.meaning
        if isinstance(meaning, MeaningLane):
            rows = [row for page in shown for row in (page.chunk, *page.more) if row]
            ids = [row.id for row in rows]
            self._entry_cosines = meaning.vectors.entry_cosines(meaning.model, meaning.centred, ids)
            self._cosines = meaning.cosines(ids)
        self._evidence = ranked.candidates.evidence
        self._lane_pages = [
            {self._evidence.places[chunk][0] for chunk in lane} for lane in self._evidence.lanes
        ]
        self._stemmer = text_index.Stemmer(db)
        self._asks_for_open = bool(ASKS_FOR_OPEN.search(ranked.question))
        self._asks_for_done = bool(_DONE.search(ranked.question))
        self._marker = text_search.ExcerptMarker(self._stemmer, ranked.candidates.plan, ("", ""))
        self._scanned: dict[tuple[int, int], _ScannedText] = {}
        spaced = [part for part in ranked.candidates.plan.parts if not part.unspaced]
        self._stems = {part.text: text_search.stem_text(self._stemmer, part.text) for part in spaced}
        self._wanted = frozenset(stem for stems in self._stems.values() for stem in stems.every)
        self._letters = {part.text: part.literal for part in ranked.candidates.plan.parts if part.unspaced}
        self._weights = ranked.candidates.word_weights
        self._names = names_asked(ranked.question, self._weights)
        self._has_only_stop_words = all(word.lower() in STOP_WORDS for word in self._weights)
        self._sought = sought(ranked.question)
        places = sorted(ranked.ranking.pages.items(), key=lambda place: -place[1])[:2]
        self._first = places[0][0] if places else 0
        self._lead = places[0][1] - places[1][1] if len(places) > 1 else 0.0
        self._days = frozenset(DAY_WORD.findall(fold_days(ranked.question)))
        self._shown = self._best_notebook_first([self._with_best_chunk(page) for page in shown])

    def entries(self, depth: str) -> list[Entry]:
        """Return the entries of the pages, without the lines that the filter by trust class leaves out."""
        limit = self._ranked.filters.trust_limit
        entries = [(page, self._entry(page, depth)) for page in self._shown]
        if limit is None:
            return [entry for _, entry in entries]
        limited = (_limited(entry, page.classes, limit) for page, entry in entries)
        return [entry for entry in limited if entry is not None]

    def _with_best_chunk(self, shown: ShownPage) -> ShownPage:
        """Return a notebook file with `chunk` set to the chunk of its best entry. Return other pages unchanged."""
        if not shown.more or shown.chunk is None:
            return shown
        rows = [shown.chunk, *shown.more]
        best = max(
            rows, key=lambda row: max(self._scan_chunk(shown.head, row).statements.values(), default=0.0)
        )
        others = tuple(row for row in rows if row.id != best.id)
        return shown._replace(chunk=best, more=others)

    def _best_notebook_first(self, shown: list[ShownPage]) -> list[ShownPage]:
        """Sort the notebook files among the pages by their best entries.

        The score of a whole file is ignored, because most of its entries are unrelated to the question. Files
        that the question names keep their places.
        """
        exact = self._ranked.candidates.named.exact
        places = [
            place
            for place, page in enumerate(shown)
            if page.kind == NOTEBOOK_KIND and page.chunk and page.head.id not in exact
        ]
        files = sorted((shown[place] for place in places), key=lambda page: -self._scan(page).best)
        ordered = list(shown)
        for place, page in zip(places, files, strict=True):
            ordered[place] = page
        return ordered

    def _result(self, shown: ShownPage) -> SearchResult:
        """Return the result of a page without its line and content, which depend on the budget."""
        head, chunk = shown.head, shown.chunk
        exact = head.id in self._ranked.candidates.named.exact
        judged, score = self._own(shown)
        return SearchResult(
            *(head.slug, head.collection, head.title, head.type, head.wing, head.room),
            summary=fit_text(head.summary, SUMMARY_TOKENS)[0],
            score=score,
            lane="exact" if exact else self._lane(head.id),
            reason=self._reason(shown),
            heading_path=chunk.heading_path if chunk else "",
            part="timeline" if chunk and chunk.kind != TRUTH_KIND else "truth",
            start_line=chunk.start_line if chunk else 1,
            end_line=chunk.end_line if chunk else 1,
            strength=judged,
            rank_score=1.0 if exact else round(self._ranked.ranking.pages.get(head.id, 0.0), 4),
            date=shown.date,
            origin=_origin(head, shown.kind),
            trust=CLASSES[shown.classes.rest],  # a default; `_entry` compares single lines
        )

    def _entry(self, shown: ShownPage, depth: str) -> Entry:
        """Return the result of a page with the texts that may be returned."""
        result = self._result(shown)
        section = shown.chunk.text.strip("\n") if shown.chunk else ""
        full = shown.truth.strip("\n")
        if shown.chunk and shown.chunk.kind != TRUTH_KIND:
            full = f"{full}\n\n{section}" if full else section
        line, is_outdated = self._best_line(shown)
        if shown.kind == NOTEBOOK_KIND:
            line, section, is_outdated = self._notebook_texts(shown, line, section, is_outdated)
            full = full if depth == "full" else ""  # the other entries are unrelated to the question
        elif result.strength != "none":
            latest = self._latest(shown)
            is_newer = result.part == "truth" or latest[:10] > shown.date
            result = result._replace(latest=latest if is_newer else "")
        if is_outdated or is_superseded(shown.status):
            result = result._replace(status=SUPERSEDED)
        elif shown.status in CLOSED_STATUSES.get(shown.head.type, ()):
            result = result._replace(status=shown.status)
        if result.strength == "none" and self._is_open_task(shown):
            result = result._replace(strength="weak")
        line = result.summary or line if depth == "summary" else line
        if shown.classes.lines:
            is_whole = depth == "full" or not section
            own = shown.classes.lowest if is_whole else shown.classes.of_text(section)
            result = result._replace(trust=CLASSES[own])
        named = self._ranked.candidates.named
        is_named = shown.head.id in named.exact or shown.head.id in named.mentioned
        line_class = shown.classes.of_excerpt(line, section)
        return Entry(result, line, section, full, frozenset(self._held(shown)), is_named, line_class)

    def _best_line(self, shown: ShownPage) -> tuple[str, bool]:
        """Return the statement with the most evidence, and whether it is outdated.

        If the question is the name of the page, or the chunk has no statements, return the summary, or the text or
        heading of the chunk if the page has no summary.
        """
        if shown.chunk is None or shown.head.id in self._ranked.candidates.named.exact:
            return shown.head.summary or (shown.chunk.text.strip() if shown.chunk else ""), False
        weights = self._scan(shown).statements
        # A statement without letters, such as a date at the beginning of a note, contains no information.
        weights = {text: weight for text, weight in weights.items() if _LETTER.search(text)} or weights
        if not weights:
            return shown.head.summary or shown.chunk.heading_path, False
        best = self._of_time(weights, self._most_trusted(shown, weights))
        if weights[best] < LEAST_OUTDATED and self._is_outdated(best):
            best = max(weights, key=lambda text: (not self._is_outdated(text), weights[text]))
        is_outdated = self._is_outdated(best) or self._matches_struck(best)
        if len(best) > text_search.LONGEST_LINE:
            best = self._marker.excerpt(best) or fit_text(best, text_search.LONGEST_LINE // 4)[0]
        return best, is_outdated

    def _most_trusted(self, shown: ShownPage, weights: dict[str, float]) -> str:
        """Return the statement with the most evidence, or a more trusted one with about as much evidence."""
        best = max(weights, key=lambda text: weights[text])
        if not shown.classes.lines or shown.chunk is None:
            return best
        near = [text for text in weights if weights[text] >= TRUST_SHARE * weights[best]]
        rows = {text: shown.classes.of_excerpt(text, shown.chunk.text) for text in near}
        return min(near, key=lambda text: (rows[text], -weights[text]))

    def _of_time(self, weights: dict[str, float], best: str) -> str:
        """Return the first or latest dated statement with about as much evidence, if the question asks for one."""
        order = self._ranked.order
        days = {}
        for text, weight in weights.items() if order and order.kind != "order" else ():
            if weight >= COMPARABLE * weights[best] and (dates := find_dates(text)):
                days[text] = dates[0].first
        extreme = order.extreme(days.values()) if order and days else ""
        return next((text for text, day in days.items() if day == extreme), best)

    def _is_outdated(self, statement: str) -> bool:
        """Return True for a struck statement, and for a ticked one if the question asks only for open tasks."""
        if is_ticked(statement):
            return self._asks_for_open and not self._asks_for_done
        entry = ENTRY_MARK.sub("", statement)
        return is_struck(entry) or bool("~~" in entry and _BOOKKEEPING.fullmatch(without_struck(entry)))

    def _matches_struck(self, statement: str) -> bool:
        """Return True if the struck words of a statement match the question at least as well as its other words.

        The struck words must also include more than LEAST_STRUCK of the question's words.
        """
        if "~~" not in statement:
            return False
        held, left = self._words_in(statement), self._words_in(without_struck(statement))
        lost = sum(self._weights[word] for word in held if word not in left)
        return lost > LEAST_STRUCK * sum(self._weights.values()) and lost >= sum(
            self._weights[word] for word in left
        )

    def _latest(self, shown: ShownPage) -> str:
        """Return the newest timeline entry with words of the question, not counting those in the title.

        Entries with less than half as much evidence as the best one are skipped. If no entry has such a word,
        return the newest entry, or "" if the text above the timeline is newer. Struck text is left out.
        """
        text = shown.timeline
        if len(text) > LONGEST_TIMELINE:
            text = f"{text[: LONGEST_TIMELINE // 2]}\n\n{text[-LONGEST_TIMELINE // 2 :]}"
        entries = []
        for entry in timeline.parse(text):
            statement = without_struck(entry.summary)
            is_news = statement != shown.head.title and statement not in shown.truth
            if shown.classes.lines and shown.classes.of_excerpt(entry.summary, text) > shown.classes.highest:
                continue  # an entry of a lower trust class than the text is not shown as its latest news
            if statement and is_news and not _BOOKKEEPING.fullmatch(statement):
                entries.append((self._entry_weight(shown, statement), entry.date, statement))
        if not entries:
            return ""
        most = max(weight for weight, _, _ in entries)
        weight, day, statement = max(
            (row for row in entries if row[0] >= most / 2), key=lambda row: (row[1], row[0])
        )
        if not weight and day < shown.truth_day:
            return ""
        return f"{day}: {fit_text(statement, LATEST_TOKENS)[0]}"

    def _entry_weight(self, shown: ShownPage, statement: str) -> float:
        words = set(self._words_in(statement)) - set(self._words_in(shown.head.title))
        return sum(self._weights[word] for word in words)

    def _is_open_task(self, shown: ShownPage) -> bool:
        """Return True if the question asks for open tasks and the chunk or page is such a task.

        If the question also has other words, a chunk must contain one of them, and a page two.
        """
        if not self._asks_for_open or shown.chunk is None:
            return False
        words = self._task_words()
        if shown.head.type in CLOSED_STATUSES and shown.status:
            return len(words & set(self._held(shown))) >= min(2, len(words))
        if not _OPEN_TASK.search(shown.chunk.text):
            return False
        return not words or not words.isdisjoint(self._held(shown))

    def _is_asked_task(self, statement: str) -> bool:
        """Return True for an open task with all words of a question about open tasks (see `_task_words`)."""
        if not self._asks_for_open or not statement.startswith("[ ]"):
            return False
        words = self._task_words()
        return bool(words) and words.issubset(self._words_in(statement))

    def _task_words(self) -> set[str]:
        """Return the words of the question, except stop words and words that ask for open tasks."""
        return {
            word
            for word in self._weights
            if word.lower() not in _TASK_WORDS and not ASKS_FOR_OPEN.search(word)
        }

    def _notebook_texts(
        self, shown: ShownPage, line: str, section: str, is_outdated: bool
    ) -> tuple[str, str, bool]:
        """Return the best line and section of a notebook file, and whether they are outdated.

        The entries in a chunk of a list are unrelated to each other. The section therefore has only the
        matching entries below their heading. Outdated ones are left out if a current one matches as well,
        unless the question is about the past.
        """
        if shown.chunk is None:
            return line, section, is_outdated
        entries: dict[str, tuple[str, float]] = {}
        for row in (shown.chunk, *shown.more):
            heading = row.heading_path.rpartition(" > ")[2].lstrip("# ")
            for text, weight in self._scan_chunk(shown.head, row).statements.items():
                entries.setdefault(text, (heading, weight))
        most = max((weight for _, weight in entries.values()), default=0.0)
        if not most:
            current = [text for text in section.split("\n") if self._is_past or not is_struck(text)]
            is_left = any(text and not text.startswith("#") for text in current)
            return line, "\n".join(current) if is_left else section, is_outdated
        matching = self._with_other_words(
            [
                text
                for text, (_, weight) in entries.items()
                if weight >= ENTRY_SHARE * most or self._is_asked_task(text)
            ],
            sorted(entries, key=lambda text: -entries[text][1]),
        )
        current = [
            text for text in matching if not self._is_outdated(text) and not self._matches_struck(text)
        ]
        if current and len(current) < len(matching):
            matching = matching if self._is_past else current
            if is_outdated:
                line = max(current, key=lambda text: entries[text][1])[: text_search.LONGEST_LINE]
                is_outdated = False
        matching.sort(key=lambda text: -entries[text][1])
        lines: dict[str, list[str]] = {}
        for text in matching[:MOST_ENTRIES]:
            lines.setdefault(entries[text][0], []).append(f"- {text}")
        section = "\n".join([row for heading, texts in lines.items() for row in (heading, *texts)])
        heading = shown.chunk.heading_path.rpartition(" > ")[2].lstrip("# ")
        return (f"{heading}: {line}" if heading and heading != line else line), section, is_outdated

    def _with_other_words(self, matching: list[str], ranked: list[str]) -> list[str]:
        """Add the best entries with enough words of the question that the matching entries do not contain."""
        chosen = list(matching)
        covered = {word for text in matching for word in self._words_in(text)}
        for text in ranked:
            if len(chosen) >= MOST_ENTRIES:
                break
            words = set(self._words_in(text)) - covered
            if text not in chosen and len(words) >= WORDS_ADDED:
                chosen.append(text)
                covered |= words
        return chosen

    def _words_in(self, text: str) -> list[str]:
        """Return the words of the question that a text contains."""
        return self._words_of(text_search.match_stems(self._stemmer, text, self._wanted), text)

    def _own(self, shown: ShownPage) -> tuple[Strength, float]:
        """Return the strength and score of one result, from the words and names it contains and its cosine.

        A page whose name is the question is a strong result; so is one dated in the period, if the question names
        only a period.
        """
        candidates, meaning = self._ranked.candidates, None
        exact = shown.head.id in candidates.named.exact
        if exact or (candidates.only_time and self._is_of_time(shown)):
            return "strong", 1.0
        if isinstance(self._ranked.meaning, MeaningLane) and self._cosines:
            cosine = self._cosines.get(shown.chunk.id) if shown.chunk else None
            # A chunk that is not embedded yet is rated by words alone.
            meaning = None if cosine is None else self._ranked.meaning.excess(cosine)
        judged, score = rate(self._measures(shown, meaning))
        if judged == "strong" and candidates.periods and not self._is_of_time(shown):
            # A result from outside the period in the question may be wrong.
            return "weak", below_strong(score)
        return judged, score

    def _measures(self, shown: ShownPage, meaning: float | None) -> Measures:
        """Return the measures from which `rate` computes the strength of a result."""
        scanned, bm25 = self._scan(shown), 0.0
        if shown.chunk:
            bm25 = self._evidence.words.get(shown.chunk.id, 0.0) / (sum(self._weights.values()) or 1.0)
        name = fold_name(self._ranked.candidates.named.mentioned.get(shown.head.id, "")).split()
        named = [word for word in self._weights if word.lower() in name]
        lacking = 0.0
        if self._sought and not (self._sought.kind == "date" and shown.date):
            lacking = 0.0 if self._sought.is_in(scanned.around) else self._sought.weight
        return Measures(
            words=self._share(shown),
            near=0.0 if self._has_only_stop_words else scanned.near,
            bm25=bm25,
            meaning=meaning,
            # If the question names the page, the words of that name count as found.
            missing_names=missing_names(self._names, [*scanned.held, *named]),
            attribute=attribute_share(self._weights, scanned.held, {*self._names, *named, *scanned.in_title}),
            lacking=lacking,
            lead=self._lead if shown.head.id == self._first else 0.0,
        )

    def _share(self, shown: ShownPage) -> float:
        """Return the weighted share of the question's words in a result. Return 0 if all are stop words."""
        if self._has_only_stop_words:
            return 0.0
        return word_share(self._held(shown), self._weights)

    def strength(self) -> Strength:
        """Return the strength of the answer: the highest of its first results, or strong for the name of a page."""
        if self._ranked.candidates.named.exact:
            return "strong"
        return strongest([*(self._own(page)[0] for page in self._shown[:RESULTS_JUDGED]), "none"])

    def _is_of_time(self, shown: ShownPage) -> bool:
        """Return True if a result is dated within a period of the question, or contains the period's text."""
        if shown.chunk is None:
            return False
        text = f"{shown.head.title}\n{shown.chunk.heading_path}\n{shown.chunk.text}".casefold()
        return shown.chunk.id in self._ranked.candidates.dates or any(
            period.casefold() in text for period in self._ranked.period_texts
        )

    def traces(self) -> tuple[LaneTrace, ...]:
        return tuple(map(self._trace, self._shown))

    def _trace(self, shown: ShownPage) -> LaneTrace:
        chunk_id = shown.chunk.id if shown.chunk else 0
        near, worded = self._evidence.lanes
        return LaneTrace(
            slug=shown.head.slug,
            start_line=shown.chunk.start_line if shown.chunk else 1,
            words=round(self._evidence.words.get(chunk_id, 0.0), 3),
            words_place=worded.index(chunk_id) + 1 if chunk_id in worded else 0,
            page_words=round(self._evidence.page_words.get(shown.head.id, 0.0), 3),
            cosine=self._cosine(chunk_id),
            meaning_place=near.index(chunk_id) + 1 if chunk_id in near else 0,
            favour=round(self._evidence.favours.get(chunk_id, 0.0), 3),
        )

    def _lane(self, page_id: int) -> str:
        near, worded = (page_id in pages for pages in self._lane_pages)
        if near and worded:
            return "both"
        return "meaning" if near else "words" if worded or page_id in self._evidence.page_words else "date"

    def _reason(self, shown: ShownPage) -> str:
        candidates = self._ranked.candidates
        reasons = []
        if shown.head.id in candidates.named.exact:
            reasons.append(f"its {candidates.named.exact[shown.head.id]} is what was asked for")
        elif shown.head.id in candidates.named.mentioned:
            reasons.append(f"the question names it ({candidates.named.mentioned[shown.head.id]})")
        words = sorted(self._held(shown), key=lambda word: -self._weights[word])
        if words:
            reasons.append(
                f"holds {', '.join(self._letters.get(word, word) for word in words[:MOST_WORDS_NAMED])}"
            )
        if shown.chunk:
            cosine, meaning = self._cosine(shown.chunk.id), self._ranked.meaning
            if cosine is not None and isinstance(meaning, MeaningLane) and cosine > meaning.baseline:
                reasons.append(f"near in meaning ({cosine:.2f}; unrelated {meaning.baseline:.2f})")
            day = candidates.dates.get(shown.chunk.id)
            if day:
                texts = zip(candidates.periods, self._ranked.period_texts, strict=True)
                period = next(text for period, text in texts if period.holds(day))
                reasons.append(f"dated {day} ({period})")
        return "; ".join(reasons) or "next to other results"

    def _held(self, shown: ShownPage) -> list[str]:
        """Return the words of the question that a result's title, heading path or chunk contains."""
        return self._scan(shown).held

    def _scan(self, shown: ShownPage) -> _ScannedText:
        """Return the words of the question in a result, and the evidence in each of its statements."""
        return self._scan_chunk(shown.head, shown.chunk)

    def _scan_chunk(self, head: PageHead, row: ChunkRow | None) -> _ScannedText:
        key = (head.id, row.id if row else 0)
        if key not in self._scanned:
            text = "\n".join((head.title, *((row.heading_path, row.text) if row else ())))
            matches = text_search.match_stems(self._stemmer, text, self._wanted)
            first = len(text) - len(row.text) if row else len(text)
            above = self._words_of([match for match in matches if match[0] < first], text[:first])
            statements, near, around = self._scan_statements(text, first, matches, set(above), key[1])
            best = max(statements.values(), default=0.0)
            self._scanned[key] = _ScannedText(
                held=self._words_of(matches, text),
                statements=statements,
                near=near,
                in_title=self._words_of(
                    [match for match in matches if match[0] < len(head.title)], head.title
                ),
                around=around,
                best=best + (1 - MEANING_SHARE) * word_share(above, self._weights),
            )
        return self._scanned[key]

    def _scan_statements(
        self, text: str, first: int, matches: list[tuple[int, str, bool]], above: set[str], chunk_id: int
    ) -> tuple[dict[str, float], float, str]:
        """Return the statements of a text from the offset `first` on with their evidence, then `near` and `around`.

        The evidence is the share of the question's words, by weight, and for an entry with a vector also its
        meaning, from 0 to 1, plus DAY_WEIGHT if the statement contains a day of the question. An outdated
        statement counts half, so that a current one with as many words is preferred. The
        text before the offset consists of the title and headings, whose words `above` count for every statement.
        """
        weights: dict[str, float] = {}
        spans = statement_spans(text[first:])
        near = word_share(above, self._weights)
        attributes: list[float] = []
        at = 0
        for place, (start, end) in enumerate(spans):
            while at < len(matches) and matches[at][0] < first + start:
                at += 1
            after = at
            while after < len(matches) and matches[after][0] < first + end:
                after += 1
            statement = statement_text(text[first + start : first + end])
            words = self._words_of(matches[at:after], statement)
            weight = word_share(words, self._weights)
            if words:
                near = max(near, word_share([*above, *words], self._weights))
            attributes.append(word_share({*words} - above - {*self._names}, self._weights))
            if place and _UNFINISHED.search(text[first : first + start]):
                attributes[place] = max(attributes[-2:])
            cosine = self._entry_cosines.get((chunk_id, start))
            if cosine is not None:
                weight = (1 - MEANING_SHARE) * weight + MEANING_SHARE * self._scaled_meaning(cosine)
            if self._days and not self._days.isdisjoint(DAY_WORD.findall(fold_days(statement))):
                weight += DAY_WEIGHT
            weights.setdefault(statement, weight / 2 if weight and self._is_outdated(statement) else weight)
            at = after
        least = ATTRIBUTE_SHARE * max(attributes, default=0.0)
        texts = [
            text[first + start : first + end]
            for place, (start, end) in enumerate(spans)
            if attributes[place] >= least
        ]
        return weights, near, "\n".join(texts)

    def _scaled_meaning(self, cosine: float) -> float:
        """Scale a cosine so that an unrelated chunk has 0 and the nearest chunk or entry has 1."""
        low = self._evidence.baseline
        width = max((*self._evidence.cosines.values(), *self._entry_cosines.values()), default=low) - low
        return max(0.0, (cosine - low) / width) if width > 0 else 0.0

    def _words_of(self, matches: list[tuple[int, str, bool]], text: str) -> list[str]:
        """Return the words of the question that a text with these matches contains (see `match_stems`)."""
        words = []
        if matches:
            every = frozenset(stem for _, stem, _ in matches)
            present = TextStems(every, frozenset(stem for _, stem, is_telling in matches if is_telling))
            words = [word for word, word_stems in self._stems.items() if present.hold(word_stems)]
        return words + [word for word, literal in self._letters.items() if literal and literal in text]

    def _cosine(self, chunk_id: int) -> float | None:
        cosine = self._cosines.get(chunk_id)
        return None if cosine is None else round(cosine, 3)


def _limited(entry: Entry, classes: LineTrust, limit: int) -> Entry | None:
    """Return an entry without the lines whose trust class is below the limit, or None if no text is left."""
    if CLASSES.index(entry.result.trust) <= limit and classes.lowest <= limit:
        return entry
    section, full = classes.without(entry.section, limit), classes.without(entry.full, limit)
    if not section:
        return None
    line = entry.line if classes.of_excerpt(entry.line, entry.section) <= limit else section.split("\n")[-1]
    result = entry.result._replace(trust=CLASSES[classes.of_text(section)], latest="")
    return entry._replace(result=result, line=line, section=section, full=full)


def strongest(strengths: Sequence[Strength]) -> Strength:
    return next(strength for strength in STRENGTHS if strength in strengths)
