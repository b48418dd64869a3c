"""What an answer says: its results, each with the reason why it is there, and how well it is founded.

Knows how findings are told. Does not know how they were found, nor how a record is printed.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.model.chunker import TRUTH_KIND
from quaid.search import budget, held, strength
from quaid.search.fuse import Ranking
from quaid.search.meaning import Meaning, NoMeaning
from quaid.search.plan import COMMON, LONGEST_TEXT
from quaid.search.retrieve import Found
from quaid.search.strength import Strength
from quaid.storage import chunks, pages, text_index

if TYPE_CHECKING:
    from quaid.storage.chunks import ChunkRow
    from quaid.storage.pages import PageHead
    from quaid.storage.sqlite.connection import Database

JUDGED = 3
"""How many of the first results the strength of an answer is judged by."""

MOST_WORDS_TOLD = 6
LONGEST_ECHO = 500
"""Characters of the question that the answer repeats."""


class Result(NamedTuple):
    """A page, by the chunk of it that answers best."""

    slug: str
    collection: str
    title: str
    type: str
    wing: str
    room: str
    depth: str
    """What `content` is: the best chunk (section), the compiled truth (full), or nothing (summary)."""
    summary: str
    content: str
    score: float
    """How well it is founded by itself, from 0 to 1 (search.strength); comparable between questions."""
    tokens_used: int
    lane: str
    """What found it: exact, words, meaning, both or date; in a glance its name, too (search.by_name)."""
    reason: str
    heading_path: str
    part: str
    """Where the chunk stands: truth or timeline; its lines are counted there, from 1."""
    start_line: int
    end_line: int
    strength: Strength
    """How well this result is founded by itself, whatever stands beside it."""
    rank_score: float
    """By what the results are ordered; it means nothing beside that of another question."""


class Trace(NamedTuple):
    """What the lanes said about the chunk of a result."""

    slug: str
    start_line: int
    words: float
    """BM25 of the chunk, and its place in the lane of words; 0: not among the first."""
    words_place: int
    page_words: float
    cosine: float | None
    meaning_place: int
    favour: float


class Answer(NamedTuple):
    """What the memory says to a question."""

    question: str
    strength: Strength
    results: tuple[Result, ...]
    total_tokens: int
    budget_remaining: int
    notes: tuple[str, ...]
    lanes: tuple[Trace, ...] = ()


class Looked(NamedTuple):
    """A question with everything that was found for it, in order."""

    question: str
    meaning: Meaning | NoMeaning
    found: Found
    ranking: Ranking

    @property
    def pages(self) -> list[int]:
        """The pages: those that are asked for by name, then by score."""
        scores = self.ranking.pages
        ranked = sorted(scores, key=lambda page: -scores[page])
        return list(dict.fromkeys([*self.found.named.exact, *ranked]))


class _Shown(NamedTuple):
    head: "PageHead"
    chunk: "ChunkRow | None"
    truth: str


def answer(
    db: "Database", looked: Looked, *, limit: int, depth: str, token_budget: int, explain: bool
) -> Answer:
    """The answer, as deep as the budget allows."""
    shown = _shown(db, looked, limit)
    told = _Teller(db, looked)
    servings = budget.spend([_texts(each) for each in shown], token_budget, depth)
    results = tuple(told.result(each, serving) for each, serving in zip(shown, servings, strict=False))
    spent = sum(result.tokens_used for result in results)
    return Answer(
        question=_echoed(looked.question),
        strength=told.strength(shown),
        results=results,
        total_tokens=spent,
        budget_remaining=token_budget - spent,
        notes=tuple(_notes(looked, len(results), len(shown) - len(results))),
        lanes=tuple(told.trace(each) for each in shown) if explain else (),
    )


def _shown(db: "Database", looked: Looked, limit: int) -> list[_Shown]:
    page_ids = looked.pages[:limit]
    # Who asks for a page by its name wants its beginning, not the place that repeats the name.
    best = {
        **looked.ranking.best,
        **{
            page: looked.found.openings[page]
            for page in looked.found.named.exact
            if page in looked.found.openings
        },
    }
    rows = {row.page_id: row for row in chunks.load(db, [best[page] for page in page_ids if page in best])}
    heads = pages.page_heads(db, page_ids)
    texts = pages.page_texts(db, page_ids)
    return [_Shown(heads[page], rows.get(page), texts[page][0]) for page in page_ids if page in heads]


def _texts(shown: _Shown) -> budget.Texts:
    section = shown.chunk.text.strip("\n") if shown.chunk else ""
    full = shown.truth.strip("\n")
    if shown.chunk and shown.chunk.kind != TRUTH_KIND:
        full = f"{full}\n\n{section}" if full else section
    return budget.Texts(shown.head.title, shown.head.summary, section, full)


class _Judged(NamedTuple):
    strength: Strength
    score: float


class _Teller:
    """Says why something was found."""

    def __init__(self, db: "Database", looked: Looked) -> None:
        self._looked = looked
        self._evidence = looked.found.evidence
        self._lane_pages = [
            {self._evidence.places[chunk][0] for chunk in lane} for lane in self._evidence.lanes
        ]
        self._stemmer = text_index.Stemmer(db)
        self._holding: dict[int, list[str]] = {}
        spaced = [part for part in looked.found.plan.parts if not part.unspaced]
        self._stems = {part.text: held.stems(self._stemmer, part.text) for part in spaced}
        self._letters = {part.text: part.literal for part in looked.found.plan.parts if part.unspaced}
        counts = {part.text: looked.found.counts.get(part.quoted, 0) for part in looked.found.plan.parts}
        self._weights = strength.weights(counts, chunks.highest_id(db))

    def result(self, shown: _Shown, serving: budget.Serving) -> Result:
        head, chunk = shown.head, shown.chunk
        exact = head.id in self._looked.found.named.exact
        judged = self._own(shown)
        return Result(
            *(head.slug, head.collection, serving.title, head.type, head.wing, head.room),
            *(serving.depth, serving.summary, serving.content),
            score=judged.score,
            tokens_used=serving.tokens,
            lane="exact" if exact else self._lane(head.id),
            reason=self._reason(shown),
            heading_path=chunk.heading_path if chunk else "",
            part="timeline" if chunk and chunk.kind != TRUTH_KIND else "truth",
            start_line=chunk.start_line if chunk else 1,
            end_line=chunk.end_line if chunk else 1,
            strength=judged.strength,
            rank_score=1.0 if exact else round(self._looked.ranking.pages.get(head.id, 0.0), 4),
        )

    def _own(self, shown: _Shown) -> _Judged:
        """How well one result is founded, by what it holds and how near it is itself."""
        found, meaning = self._looked.found, None
        exact = shown.head.id in found.named.exact
        if exact or (found.only_time and self._is_of_time(shown)):
            return _Judged("strong", 1.0)
        if isinstance(self._looked.meaning, Meaning) and self._evidence.cosines:
            cosine = self._evidence.cosines.get(shown.chunk.id) if shown.chunk else None
            near = self._evidence.baseline if cosine is None else cosine
            meaning = strength.standing_out(near, self._evidence.baseline, self._looked.meaning.embedded)
        share = self._share(shown)
        judged, score = strength.judge(share, meaning), strength.score(share, meaning)
        if judged == "strong" and found.periods and not self._is_of_time(shown):
            return _Judged("weak", strength.below_strong(score, meaning))
        return _Judged(judged, score)

    def _share(self, shown: _Shown) -> float:
        """How much of the question's words a result holds; words that every text holds say nothing."""
        if all(word.lower() in COMMON for word in self._weights):
            return 0.0
        return strength.share(self._held(shown), self._weights)

    def strength(self, shown: list[_Shown]) -> Strength:
        """How well the first results are founded, by what they hold and how near they are."""
        if not shown:
            return "none"
        found = self._looked.found
        of_time = any(self._is_of_time(each) for each in shown[:JUDGED])
        if found.only_time and of_time:
            return "strong"
        words = max(map(self._share, shown[:JUDGED]))
        meaning = None
        if isinstance(self._looked.meaning, Meaning) and self._evidence.cosines:
            nearest = max(self._evidence.cosines.values())
            meaning = strength.standing_out(nearest, self._evidence.baseline, self._looked.meaning.embedded)
        judged = strength.judge(words, meaning, exact=bool(found.named.exact))
        # What is of another time than the question asks about may be the wrong answer.
        outside = bool(found.periods) and not of_time and not found.named.exact
        return "weak" if judged == "strong" and outside else judged

    def _is_of_time(self, shown: _Shown) -> bool:
        """Whether a result is of the time that the question names, or speaks of it."""
        if shown.chunk is None:
            return False
        text = f"{shown.head.title}\n{shown.chunk.heading_path}\n{shown.chunk.text}".casefold()
        periods = self._looked.found.periods
        return shown.chunk.id in self._looked.found.dates or any(
            period.text.casefold() in text for period in periods
        )

    def trace(self, shown: _Shown) -> Trace:
        chunk_id = shown.chunk.id if shown.chunk else 0
        near, worded = self._evidence.lanes
        return Trace(
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

    def _reason(self, shown: _Shown) -> str:
        found = self._looked.found
        reasons = []
        if shown.head.id in found.named.exact:
            reasons.append(f"its {found.named.exact[shown.head.id]} is what was asked for")
        elif shown.head.id in found.named.mentioned:
            reasons.append(f"the question names it ({found.named.mentioned[shown.head.id]})")
        words = sorted(self._held(shown), key=lambda word: -self._weights[word])
        if words:
            reasons.append(
                f"holds {', '.join(self._letters.get(word, word) for word in words[:MOST_WORDS_TOLD])}"
            )
        if shown.chunk:
            cosine = self._cosine(shown.chunk.id)
            if cosine is not None and cosine > self._evidence.baseline:
                reasons.append(f"near in meaning ({cosine:.2f}; unrelated {self._evidence.baseline:.2f})")
            day = found.dates.get(shown.chunk.id)
            if day:
                said = next(period.text for period in found.periods if period.holds(day))
                reasons.append(f"dated {day} ({said})")
        return "; ".join(reasons) or "stands beside what was found"

    def _held(self, shown: _Shown) -> list[str]:
        """The words of the question that a result's chunk or title holds."""
        known = self._holding.get(shown.head.id)
        if known is not None:
            return known
        text = "\n".join(
            (shown.head.title, shown.chunk.heading_path, shown.chunk.text)
            if shown.chunk
            else (shown.head.title,)
        )
        stems = held.stems(self._stemmer, text)
        found = [word for word, wanted in self._stems.items() if stems.hold(wanted)]
        found += [word for word, literal in self._letters.items() if literal and literal in text]
        self._holding[shown.head.id] = found
        return found

    def _cosine(self, chunk_id: int) -> float | None:
        cosine = self._evidence.cosines.get(chunk_id)
        return None if cosine is None else round(cosine, 3)


def _echoed(question: str) -> str:
    return question if len(question) <= LONGEST_ECHO else question[: LONGEST_ECHO - 1] + "…"


def _notes(looked: Looked, served: int, left_out: int) -> list[str]:
    notes = []
    if isinstance(looked.meaning, NoMeaning):
        notes.append(f"by words only: {looked.meaning.reason}")
    elif looked.meaning.embedded < looked.meaning.total:
        made, total = looked.meaning.embedded, looked.meaning.total
        notes.append(f"{made:,} of {total:,} chunks have vectors; `quaid embed` makes the others")
    if len(looked.question) > LONGEST_TEXT:
        notes.append(f"only the first {LONGEST_TEXT:,} characters of the question were read")
    if len(looked.question) > LONGEST_ECHO:
        notes.append(f"the question is repeated up to its first {LONGEST_ECHO} characters")
    if left_out and not served:
        notes.append(f"{left_out} found, but the budget is too small for any of them")
    elif left_out:
        notes.append(f"{left_out} more did not fit into the budget")
    return notes
