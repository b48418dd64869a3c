"""Finding turns of conversations: by their words, and by their meaning where they have vectors.

By words alone the plan is that of pages: turns that hold all words come first, then all telling words, then any of
them. With meaning the turns of both lanes are fused as chunks are (`fuse`), a conversation in the place of a page:
what is said beside a turn speaks for it. A turn is shown when it holds a word of the question or stands out in
meaning; nothing is a possible answer. Knows in which order the lanes are asked. Does not know SQL, pages or the
notebook.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.search import strength
from quaid.search.excerpt import Marker
from quaid.search.fuse import Evidence, Place, fuse
from quaid.search.meaning import NoMeaning, Question, as_vector
from quaid.search.plan import Plan, plan
from quaid.search.retrieve import WORD_BUDGET
from quaid.search.words import ROW_BUDGET, worth_ranking
from quaid.storage import conversations, text_index
from quaid.storage.text_index import SearchFilters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quaid.embedding.registry import Embedder
    from quaid.storage.sqlite.connection import Database
    from quaid.storage.vector_index import TurnIndex

CANDIDATES = 100
"""Turns that each lane brings; their neighbours come along."""

REACH = 2
"""How far a neighbour may be."""

STANDING_OUT = 0.25
"""A turn without any word of the question is shown from here on: of ten turns for LoCoMo's questions 1.2 are such,
and 0.5 for questions about somebody else."""

WORDS, MEANING = "words", "meaning"


class TurnHit(NamedTuple):
    """A turn that was found."""

    client: str
    session: str
    title: str
    project: str
    date: str | None
    role: str
    turn: int
    snippet: str
    """A few words around those that were asked for, which stand between ** and **."""
    rank_score: float
    """By what the hits are ordered: above 0, and it means nothing beside that of another search."""
    all_words: bool
    lanes: tuple[str, ...] = (WORDS,)
    """What found it: words, meaning, or both."""


class Looked(NamedTuple):
    """What was found, and how it was looked for."""

    hits: tuple[TurnHit, ...]
    semantic: bool
    """Whether meaning was looked at, too."""
    note: str
    """Why it was not, or for how much only."""


class _Scored(NamedTuple):
    score: float
    all_words: bool
    lanes: tuple[str, ...] = (WORDS,)
    start: int = 0
    """Where the part begins that stands for a turn without words."""


def search(db: "Database", query: str, limit: int = 10) -> list[TurnHit]:
    """Find turns by their words. Any text will do."""
    wanted = plan(query)
    if not wanted.words or limit < 1:
        return []
    with db.reading():
        highest = conversations.highest_id(db)
        found = _found(db, wanted, limit, highest) if highest else {}
        return _hits(db, wanted, {turn: _Scored(*each) for turn, each in found.items()})


def look(
    db: "Database",
    embedder: "Embedder | None",
    query: str,
    limit: int = 10,
    *,
    vectors: "TurnIndex",
    no_model: str = "no model is set up",
) -> Looked:
    """Find turns by words and by meaning, or by words alone and why."""
    wanted = plan(query)
    if not wanted.words or limit < 1 or not conversations.highest_id(db):
        return Looked((), True, "")
    # The model is asked outside of any transaction: it may take its time.
    asked = as_vector(db, embedder, query, vectors) if embedder else NoMeaning(no_model)
    if isinstance(asked, NoMeaning):
        return Looked(tuple(search(db, query, limit)), False, asked.reason)
    with db.reading():
        hits = _hits(db, wanted, _fused(db, wanted, asked, vectors, limit))
    note = ""
    if asked.embedded < asked.total:
        note = f"{asked.embedded:,} of {asked.total:,} texts have vectors; of the others only words were searched"
    return Looked(tuple(hits), True, note)


def _fused(
    db: "Database", wanted: Plan, asked: Question, vectors: "TurnIndex", limit: int
) -> dict[int, _Scored]:
    """The best turns of both lanes."""
    most = max(CANDIDATES, limit)
    expression = " OR ".join(_worth_ranking(db, wanted, conversations.highest_id(db), WORD_BUDGET))
    words = dict(conversations.match(db, expression, most)) if expression else {}
    near = dict(vectors.nearest(asked.model, asked.vector, most))
    lanes = (list(near), list(words))
    places = conversations.neighbours(db, list({*words, *near}), REACH)
    others = [turn for turn in places if turn not in words]
    if expression and others:
        words.update(conversations.scores_of(db, expression, others))
    cosines = near | vectors.cosines(asked.model, asked.vector, [turn for turn in places if turn not in near])
    ranking = fuse(
        Evidence(
            places,
            words,
            page_words=_best_words(places, words),
            cosines=cosines,
            baseline=asked.baseline,
            lanes=lanes,
        )
    )
    best: dict[int, _Scored] = {}
    for turn in sorted(places, key=lambda each: (-ranking.chunks[each], -each)):
        found_by = _lanes(turn, words, cosines, asked)
        if found_by:
            best[turn] = _Scored(ranking.chunks[turn], False, found_by)
        if len(best) == limit:
            break
    every_word = " AND ".join(term.quoted for term in wanted.words)
    for turn in conversations.scores_of(db, every_word, list(best)):
        best[turn] = best[turn]._replace(all_words=True)
    silent = [turn for turn, each in best.items() if WORDS not in each.lanes]
    for turn, (_, start) in vectors.best_parts(asked.model, asked.vector, silent).items():
        best[turn] = best[turn]._replace(start=start)
    return best


def _best_words(places: "Mapping[int, Place]", words: dict[int, float]) -> dict[int, float]:
    """What the words of each conversation's best turn are worth: they speak for the others, too."""
    best: dict[int, float] = {}
    for turn, (conversation, _) in places.items():
        best[conversation] = max(best.get(conversation, 0.0), words.get(turn, 0.0))
    return best


def _lanes(turn: int, words: dict[int, float], cosines: dict[int, float], asked: Question) -> tuple[str, ...]:
    """What speaks for a turn by itself."""
    cosine = cosines.get(turn)
    far = 0.0 if cosine is None else strength.standing_out(cosine, asked.baseline, asked.embedded) or 0.0
    return (WORDS,) * (turn in words) + (MEANING,) * (far >= STANDING_OUT)


def _found(db: "Database", wanted: Plan, limit: int, highest: int) -> dict[int, tuple[float, bool]]:
    """Turns with their scores, best first, and whether each holds all words."""
    found: dict[int, tuple[float, bool]] = {}
    for terms in dict.fromkeys((wanted.words, wanted.telling)):
        expression = " AND ".join(term.quoted for term in terms)
        for turn, score in _ranked(db, expression, len(terms), limit, highest):
            found.setdefault(turn, (score, terms == wanted.words))
        if len(found) >= limit:
            return dict(list(found.items())[:limit])
    quoted = _worth_ranking(db, wanted, highest, ROW_BUDGET)
    for turn, score in conversations.match(db, " OR ".join(quoted), limit) if quoted else ():
        found.setdefault(turn, (score, False))
    return dict(list(found.items())[:limit])


def _worth_ranking(db: "Database", wanted: Plan, highest: int, budget: int) -> list[str]:
    """The words that any of which is looked for."""
    quoted = [part.quoted for part in wanted.parts]
    if highest * len(quoted) > budget:
        counts = text_index.document_counts(db, conversations.INDEX, quoted, highest)
        held = {term: number for term, number in zip(quoted, counts, strict=True) if number}
        quoted = worth_ranking(held, highest, budget)
    return quoted


def _ranked(db: "Database", expression: str, terms: int, limit: int, highest: int) -> list[tuple[int, float]]:
    """The best of all matches, or, when they are too many to rank, of the newest."""
    above = 0
    if highest * terms > ROW_BUDGET:
        cost = terms * text_index.count(db, conversations.INDEX, expression, SearchFilters(), highest)
        above = highest - highest * ROW_BUDGET // cost if cost > ROW_BUDGET else 0
    return conversations.match(db, expression, limit, above)


def _hits(db: "Database", wanted: Plan, found: dict[int, _Scored]) -> list[TurnHit]:
    turns = conversations.load_turns(db, list(found))
    about = conversations.load_conversations(db, list({each.conversation_id for each in turns.values()}))
    marker = Marker(text_index.Stemmer(db), wanted)
    hits = []
    for turn_id, each in found.items():
        if (turn := turns.get(turn_id)) is None:
            continue
        held = about[turn.conversation_id]
        snippet = marker.excerpt(turn.text) or " ".join(turn.text[each.start : each.start + 200].split())
        hits.append(
            TurnHit(
                *(held.client, held.session, held.title, held.project, turn.said_at or held.started_at),
                *(turn.role, turn.turn, snippet, round(each.score, 6), each.all_words),
                lanes=each.lanes,
            )
        )
    return hits
