"""Search the turns (messages) of conversations by words and by meaning.

In a search by words alone, turns with all words come first, then turns with all words except stop words, then
turns with any of the words. With vectors, turns are ranked like chunks (see search.candidates), with
conversations in place of pages. A turn is returned only if it contains a word of the question or is close
enough in meaning, so the result may be empty.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quaid.embedding.registry import Embedder
from quaid.model.page import CLASSES
from quaid.model.plain_text import fold_question, one_line, shorten
from quaid.search.candidates import (
    CANDIDATES,
    EDGE,
    REACH,
    STANDING_FAVOUR,
    WORD_BUDGET,
    ChunkPosition,
    Evidence,
    MeaningLane,
    RankedQuestion,
    add_turns,
    best_with_neighbours,
    cover_of_best,
    embed_question,
    find_standing,
    fuse,
    read_turns,
    standing_out,
    turn_features,
)
from quaid.search.question import find_time_order, names_asked, sought
from quaid.search.results import Entry, Measures, SearchResult, Strength, attribute_share, missing_names, rate
from quaid.search.text import (
    EXCERPT_WIDTH,
    ROW_BUDGET,
    ExcerptMarker,
    QueryPlan,
    Term,
    plan_query,
    stem_text,
    terms_worth_ranking,
    word_share,
    word_weights,
)
from quaid.storage import text_index
from quaid.storage.conversations import ConversationRow, Conversations, TurnRow
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import TURNS, SearchFilters, TextIndex

if TYPE_CHECKING:  # not imported at run time, because it loads numpy
    from quaid.storage.vector_index import TurnIndex


STANDING_OUT = 0.25
"""A turn without any word of the question is returned only if `standing_out` is at least this.

Of the first ten turns for a question of the LoCoMo benchmark, 1.2 reach this value on average, but only 0.5 if
the question is about a person who takes no part in the conversation.
"""

PERSON_ROLE = "user"
"""The role of the turns that a person wrote."""

WORDS, MEANING = "words", "meaning"


class TurnHit(NamedTuple):
    """A turn that matches a query."""

    client: str
    session: str
    title: str
    project: str
    date: str | None
    role: str
    turn: int
    snippet: str
    """An excerpt with the matching words between ** and **."""
    rank_score: float
    """The score by which turns are ordered. It is greater than 0, and not comparable between searches."""
    all_words: bool
    lanes: tuple[str, ...] = (WORDS,)
    """How the turn was found: by words, by meaning or by both."""


class ConversationSearchRecord(NamedTuple):
    """The turns that match a query."""

    query: str
    hits: tuple[TurnHit, ...]
    conversations: int
    """Number of conversations searched."""
    semantic: bool = True
    """False if the search was by words only because the model is not available."""
    note: str = ""
    """Why the search was by words only, or how many turns have vectors if some have none; otherwise ""."""


class _ScoredTurn(NamedTuple):
    score: float
    all_words: bool
    lanes: tuple[str, ...] = (WORDS,)
    start: int = 0
    """Start offset of the excerpt, for a turn that contains no word of the question."""


def search_turns_by_words(db: Database, query: str, limit: int = 10) -> list[TurnHit]:
    """Find turns by words. Any text is a valid query."""
    plan = plan_query(query)
    if not plan.words or limit < 1:
        return []
    with db.reading():
        return _turn_hits(db, plan, _match_turns(TextIndex(db, TURNS), plan, limit))


def search_turns(
    db: Database,
    embedder: Embedder | str,
    query: str,
    limit: int = 10,
    *,
    vectors: "Callable[[], TurnIndex]",
) -> ConversationSearchRecord:
    """Find turns by words and by meaning. If the model is not available, find them by words alone, with a note.

    `embedder` may be the reason why there is no model.
    """
    plan = plan_query(query)
    result = ConversationSearchRecord(query, (), Conversations(db).latest(0)[1])
    if not plan.words or limit < 1 or not TextIndex(db, TURNS).highest_id():
        return result
    # The model may be slow, so it is called outside of any transaction.
    asked = embed_question(db, embedder, query, vectors)
    if isinstance(asked, str):
        hits = search_turns_by_words(db, query, limit)
        return result._replace(hits=tuple(hits), semantic=False, note=asked)
    with db.reading():
        hits = _turn_hits(db, plan, _fuse_turns(db, query, plan, asked, limit))
    note = ""
    if asked.embedded < asked.total:
        note = f"{asked.embedded:,} of {asked.total:,} texts have vectors; of the others only words were searched"
    return result._replace(hits=tuple(hits), note=note)


class TurnEvidence(NamedTuple):
    """A turn, and how well it answers the question; comparable with results of pages."""

    turn: TurnRow
    conversation: ConversationRow
    line: str
    """The best excerpt."""
    lanes: tuple[str, ...]
    strength: Strength
    score: float


def _turns_with_evidence(
    db: Database, embedder: Embedder | str, query: str, limit: int, vectors: "Callable[[], TurnIndex]"
) -> list[TurnEvidence]:
    """Find turns by words and by meaning, and rate each by the evidence for it."""
    plan, index = plan_query(query), TextIndex(db, TURNS)
    if not plan.words or not index.highest_id():
        return []
    asked = embed_question(db, embedder, query, vectors)
    with db.reading():
        if isinstance(asked, str):
            scored = _match_turns(index, plan, limit)
        else:
            scored = _fuse_turns(db, query, plan, asked, limit)
        return _rate_turns(db, query, plan, scored, asked)


def _rate_turns(
    db: Database, query: str, plan: QueryPlan, scored: dict[int, _ScoredTurn], asked: MeaningLane | str
) -> list[TurnEvidence]:
    stemmer, index = text_index.Stemmer(db), TextIndex(db, TURNS)
    marker = ExcerptMarker(stemmer, plan, ("", ""))
    counts = index.document_counts([part.quoted for part in plan.parts])
    weights = word_weights({part.text: counts[part.quoted] for part in plan.parts}, index.highest_id())
    names, asked_for = names_asked(query, weights), sought(query)
    cosines = {} if isinstance(asked, str) else asked.cosines(list(scored))
    stems = {part: stem_text(stemmer, part.text) for part in plan.parts}
    rated = []
    for turn_id, (turn, held) in Conversations(db).turns(list(scored)).items():
        words = stem_text(stemmer, f"{held.title}\n{turn.text}")
        has = [
            part.text
            for part, stem in stems.items()
            if (part.unspaced and part.literal and part.literal in turn.text) or words.hold(stem)
        ]
        share, meaning = word_share(has, weights), None
        if not isinstance(asked, str):
            meaning = asked.excess(cosines.get(turn_id, asked.baseline))
        start = scored[turn_id].start
        line = marker.excerpt(turn.text) or " ".join(turn.text[start : start + EXCERPT_WIDTH].split())
        lacks = asked_for is not None and asked_for.kind != "date" and not asked_for.is_in(turn.text)
        strength, score = rate(
            Measures(
                *(share, share, share, meaning, missing_names(names, has)),
                attribute=attribute_share(weights, has, names),
                lacking=asked_for.weight if asked_for and lacks else 0.0,
            )
        )
        rated.append(TurnEvidence(turn, held, line, scored[turn_id].lanes, strength, score))
    return rated


def _fuse_turns(
    db: Database, query: str, plan: QueryPlan, asked: MeaningLane, limit: int
) -> dict[int, _ScoredTurn]:
    """Return the best turns of full-text and vector search."""
    index, most = TextIndex(db, TURNS), max(CANDIDATES, limit)
    expression = " OR ".join(_terms_to_rank(index, plan, WORD_BUDGET))
    words = dict(index.match(expression, SearchFilters(), most)) if expression else {}
    near = asked.nearest(most, SearchFilters())
    lanes = (list(near), list(words))
    standing = find_standing(
        query,
        asked,
        lambda words, count: index.matching_pages(words, SearchFilters(), count),
        lambda ids: {
            turn: row.text
            for turn, (row, _) in Conversations(db).turns(ids).items()
            if row.role == PERSON_ROLE
        },
    )
    places = Conversations(db).neighbours(list({*words, *near, *standing}), REACH)
    others = [turn for turn in places if turn not in words]
    if expression and others:
        words.update(index.scores_of(expression, others))
    scores = near | asked.scores([turn for turn in places if turn not in near])
    counts = index.document_counts([part.quoted for part in plan.parts])
    weights = word_weights(counts, index.highest_id())
    favours = {turn: STANDING_FAVOUR * share for turn, share in standing.items()}
    evidence = Evidence(
        places, words, _best_words(places, words), scores, asked.centred_baseline, lanes, favours
    )
    ranking = fuse(evidence._replace(cover=cover_of_best(index, words, weights)))
    edges = Conversations(db).text_edges(best_with_neighbours(places, ranking.chunks), EDGE)
    turns = read_turns(index, edges, counts)
    ranking = add_turns(evidence, ranking, turn_features(places, turns, weights))
    best: dict[int, _ScoredTurn] = {}
    cosines = asked.cosines(list(places))
    for turn in sorted(places, key=lambda place: (-ranking.chunks[place], -place)):
        found_by = _lanes_of(turn, words, cosines, asked)
        if found_by:
            best[turn] = _ScoredTurn(ranking.chunks[turn], False, found_by)
        if len(best) == limit:
            break
    every_word = " AND ".join(term.quoted for term in plan.words)
    for turn in index.scores_of(every_word, list(best)):
        best[turn] = best[turn]._replace(all_words=True)
    silent = [turn for turn, scored in best.items() if WORDS not in scored.lanes]
    for turn, (_, start) in asked.vectors.best_parts(asked.model, asked.vector, silent).items():
        best[turn] = best[turn]._replace(start=start)
    return best


def _best_words(places: Mapping[int, ChunkPosition], words: dict[int, float]) -> dict[int, float]:
    """Return the highest word score within each conversation. It is used as the score of the whole conversation."""
    best: dict[int, float] = {}
    for turn, (conversation, _) in places.items():
        best[conversation] = max(best.get(conversation, 0.0), words.get(turn, 0.0))
    return best


def _lanes_of(
    turn: int, words: dict[int, float], cosines: dict[int, float], asked: MeaningLane
) -> tuple[str, ...]:
    """Return how a turn qualifies: by words, by meaning, by both, or by neither (an empty tuple)."""
    cosine = cosines.get(turn)
    far = 0.0 if cosine is None else standing_out(cosine, asked.baseline, asked.embedded) or 0.0
    return (WORDS,) * (turn in words) + (MEANING,) * (far >= STANDING_OUT)


def _match_turns(index: TextIndex, plan: QueryPlan, limit: int) -> dict[int, _ScoredTurn]:
    """Return the best turns of full-text search, best first."""
    best: dict[int, _ScoredTurn] = {}
    if not index.highest_id():
        return best
    for terms in dict.fromkeys((plan.words, plan.telling)):
        for turn, score in _rank_all(index, terms, limit):
            best.setdefault(turn, _ScoredTurn(score, terms == plan.words))
        if len(best) >= limit:
            break
    else:
        expression = " OR ".join(_terms_to_rank(index, plan, ROW_BUDGET))
        for turn, score in index.match(expression, SearchFilters(), limit) if expression else ():
            best.setdefault(turn, _ScoredTurn(score, False))
    return dict(list(best.items())[:limit])


def _terms_to_rank(index: TextIndex, plan: QueryPlan, budget: int) -> list[str]:
    """Return the terms for an OR query, without terms that are too common to rank within the budget."""
    quoted, highest = [part.quoted for part in plan.parts], index.highest_id()
    if highest * len(quoted) > budget:
        held = {term: count for term, count in index.document_counts(quoted).items() if count}
        quoted = terms_worth_ranking(held, highest, budget)
    return quoted


def _rank_all(index: TextIndex, terms: Sequence[Term], limit: int) -> list[tuple[int, float]]:
    """Return the best turns with all terms, or, if there are too many to rank, the best of the newest ones."""
    expression, highest, above = " AND ".join(term.quoted for term in terms), index.highest_id(), 0
    if highest * len(terms) > ROW_BUDGET:
        cost = len(terms) * index.count(expression, SearchFilters())
        above = highest - highest * ROW_BUDGET // cost if cost > ROW_BUDGET else 0
    return index.match(expression, SearchFilters(), limit, above=above)


def _turn_hits(db: Database, plan: QueryPlan, scored: dict[int, _ScoredTurn]) -> list[TurnHit]:
    turns = Conversations(db).turns(list(scored))
    marker = ExcerptMarker(text_index.Stemmer(db), plan)
    hits = []
    for turn_id, score in scored.items():
        if turn_id not in turns:
            continue
        turn, held = turns[turn_id]
        snippet = marker.excerpt(turn.text) or " ".join(turn.text[score.start : score.start + 200].split())
        hits.append(
            TurnHit(
                *(held.client, held.session, held.title, held.project, turn.said_at or held.started_at),
                *(turn.role, turn.turn, snippet, round(score.score, 6), score.all_words),
                lanes=score.lanes,
            )
        )
    return hits


LONGEST_TURN = 2_400
"""Maximum characters of a turn in an answer, around its best line."""

QUESTION_SHARE = 0.5
"""Weight of a turn that ends with a question: it repeats words of the query, but does not answer it."""

LONGEST_REPLY_LINE = 120
"""If a turn is a question, its line includes at most this many characters of the reply."""

TURNS_OF_THING = 2
"""Number of turns to search for each thing that the question asks to order."""


def conversation_results(
    db: Database,
    ranked: RankedQuestion,
    embedder: Embedder | str,
    limit: int,
    *,
    vectors: "Callable[[], TurnIndex]",
) -> list[Entry]:
    """Return the best turn of each conversation that is at least a weak match, best first.

    If the question asks for the order of several things, turns about each of them are also searched. Turns that
    repeat the question or are outside of the date filters are left out.
    """
    best: dict[int, tuple[float, TurnEvidence]] = {}
    asked, order = fold_question(ranked.question), find_time_order(ranked.question)
    filters = ranked.filters
    turns = _turns_with_evidence(db, embedder, ranked.searched, 4 * limit, vectors)
    for thing in order.things if order else ():
        turns += _turns_with_evidence(db, embedder, thing, TURNS_OF_THING, vectors)
    for found in turns:
        day = (found.turn.said_at or found.conversation.started_at or "")[:10]
        if found.strength == "none" or fold_question(found.turn.text) == asked:
            continue
        if (filters.since and day < filters.since) or (filters.until and day > filters.until):
            continue
        score = found.score * (QUESTION_SHARE if _only_asks(found.turn.text) else 1.0)
        if score > best.get(found.conversation.id, (0.0, found))[0]:
            best[found.conversation.id] = (score, found)
    first = sorted(best.values(), key=lambda pair: -pair[0])[:limit]
    return [_turn_result(db, found, score) for score, found in first]


def _only_asks(text: str) -> bool:
    """Return True if a turn ends with a question mark, so that the answer is in the reply."""
    return text.rstrip().endswith(("?", "？"))


def _turn_result(db: Database, found: TurnEvidence, score: float) -> Entry:
    held, turn = found.conversation, found.turn
    text = turn.text.strip()
    at = max(0, text.find(found.line.strip("…")) - LONGEST_TURN // 4)
    section = text if len(text) <= LONGEST_TURN else f"…{text[at : at + LONGEST_TURN]}…"
    line = found.line
    if _only_asks(turn.text):  # the answer is in the reply
        for reply in held.read_turns(db, turn.turn + 1, 1):
            line = f"{line} — {reply.role}: {shorten(one_line(reply.text), LONGEST_REPLY_LINE)}"
            section = f"{section}\n\n{reply.role}: {shorten(reply.text.strip(), LONGEST_TURN)}"
    result = SearchResult(
        *("", "", held.title, "conversation"),
        score=round(score, 2),
        lane="both" if len(found.lanes) > 1 else found.lanes[0],
        reason=f"turn {turn.turn} of the conversation, by {turn.role}",
        strength=found.strength,
        rank_score=round(score, 4),
        date=(turn.said_at or held.started_at or "")[:10],
        origin="conversation",
        session=f"{held.client}:{held.session}",
        turn=turn.turn,
        trust="observed",
    )
    return Entry(result, line, section, section, line_class=CLASSES.index(result.trust))
