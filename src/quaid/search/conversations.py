"""Finding turns of conversations by their words.

The same plan as for pages: turns that hold all words come first, then all telling words, then any of them. Knows in
which order the index is asked and how much a question may cost. Does not know SQL, pages or the notebook.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.search.excerpt import Marker
from quaid.search.plan import Plan, plan
from quaid.search.words import ROW_BUDGET, worth_ranking
from quaid.store import conversations as store
from quaid.store import words as index
from quaid.store.words import Filters

if TYPE_CHECKING:
    from quaid.store.db import Database


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
    score: float
    """Above 0, and higher is better; scores of two searches cannot be compared."""
    all_words: bool


def search(db: "Database", query: str, limit: int = 10) -> list[TurnHit]:
    """Find turns. Any text will do."""
    wanted = plan(query)
    if not wanted.words or limit < 1:
        return []
    with db.reading():
        highest = store.highest_id(db)
        found = _found(db, wanted, limit, highest) if highest else {}
        return _hits(db, wanted, found)


def _found(db: "Database", wanted: Plan, limit: int, highest: int) -> dict[int, tuple[float, bool]]:
    """Turns with their scores, best first, and whether each holds all words."""
    found: dict[int, tuple[float, bool]] = {}
    for terms in dict.fromkeys((wanted.words, wanted.telling)):
        expression = " AND ".join(term.quoted for term in terms)
        for turn, score in _ranked(db, expression, len(terms), limit, highest):
            found.setdefault(turn, (score, terms == wanted.words))
        if len(found) >= limit:
            return dict(list(found.items())[:limit])
    quoted = [part.quoted for part in wanted.parts]
    if highest * len(quoted) > ROW_BUDGET:
        counts = index.document_counts(db, store.INDEX, quoted, highest)
        held = {term: number for term, number in zip(quoted, counts, strict=True) if number}
        quoted = worth_ranking(held, highest, ROW_BUDGET)
    for turn, score in store.match(db, " OR ".join(quoted), limit) if quoted else ():
        found.setdefault(turn, (score, False))
    return dict(list(found.items())[:limit])


def _ranked(db: "Database", expression: str, terms: int, limit: int, highest: int) -> list[tuple[int, float]]:
    """The best of all matches, or, when they are too many to rank, of the newest."""
    above = 0
    if highest * terms > ROW_BUDGET:
        cost = terms * index.count(db, store.INDEX, expression, Filters(), highest)
        above = highest - highest * ROW_BUDGET // cost if cost > ROW_BUDGET else 0
    return store.match(db, expression, limit, above)


def _hits(db: "Database", wanted: Plan, found: dict[int, tuple[float, bool]]) -> list[TurnHit]:
    turns = store.load(db, list(found))
    about = store.by_id(db, list({each.conversation_id for each in turns.values()}))
    marker = Marker(index.Stemmer(db), wanted)
    hits = []
    for turn_id, (score, all_words) in found.items():
        if (turn := turns.get(turn_id)) is None:
            continue
        held = about[turn.conversation_id]
        snippet = marker.excerpt(turn.text) or " ".join(turn.text[:200].split())
        hits.append(
            TurnHit(
                *(held.client, held.session, held.title, held.project, turn.said_at or held.started_at),
                *(turn.role, turn.turn, snippet, round(score, 6), all_words),
            )
        )
    return hits
