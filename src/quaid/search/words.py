"""Finding pages by their words: what `quaid search` does.

Pages that hold all words come first, then pages with some of them, by score. Knows in which order the indexes
are asked and how much a question may cost. Does not know SQL, nor how a hit is printed.

Ranking costs about half a microsecond for each page and word that match. In a large memory the words that are
everywhere are therefore left out when any word will do; FTS5 gives them no weight anyway once they are on more
than half of the pages. When even pages with all words are too many to rank, those with the words in their name
are taken, then the best of the newest.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.search.excerpt import Marker
from quaid.search.plan import Plan, Term, plan, whole
from quaid.store import words as index
from quaid.store.words import NAMES, SPACED, UNSPACED, Filters

if TYPE_CHECKING:
    from quaid.store.db import Database

ROW_BUDGET = 50_000
"""How many pairs of a page and a word may be ranked for one question."""

Scores = dict[int, float]
Terms = tuple[Term, ...]


class Hit(NamedTuple):
    """A page that was found."""

    slug: str
    collection: str
    title: str
    type: str
    wing: str
    summary: str
    snippet: str
    """A few words around those that were asked for, which stand between ** and **."""
    score: float
    """Higher is better; comparable only within one search."""
    all_words: bool
    id: int


class _Found(NamedTuple):
    id: int
    score: float
    all_words: bool


def search(
    db: "Database",
    query: str,
    *,
    type: str | None = None,
    wing: str | None = None,
    tag: str | None = None,
    collection: str | None = None,
    limit: int = 10,
    raw: bool = False,
) -> list[Hit]:
    """Find pages by their words. Any text will do; with `raw` it is FTS5 syntax, or else InvalidSearch."""
    filters = Filters(type, wing, tag, collection)
    wanted = plan(query)
    with db.reading():
        if raw:
            scored = index.match_raw(db, query, filters, limit)
            found = [_Found(page_id, score, all_words=True) for page_id, score in scored]
        elif wanted.words:
            found = _Search(db, wanted, filters, limit).run(query)
        else:
            found = []
        return _hits(db, wanted, found)


class _Search:
    """One question to the two indexes."""

    def __init__(self, db: "Database", wanted: Plan, filters: Filters, limit: int) -> None:
        self.db = db
        self.plan = wanted
        self.filters = filters
        self.limit = limit
        self.highest = {name: index.highest_id(db, name) for name in (SPACED, UNSPACED)}

    def run(self, query: str) -> list[_Found]:
        """Pages of that name, pages with all words, with all telling words, with any; each kind by score."""
        kinds: list[list[int]] = [self._exact(query)]
        scores = None
        for terms in dict.fromkeys((self.plan.words, self.plan.telling)):
            kinds.append(self._holding(terms))
            if len(kinds[-1]) >= self.limit:
                scores = self._ranked_all(terms, [page_id for kind in kinds[:-1] for page_id in kind])
                kinds[-1] = list(scores)
                break
        known = dict.fromkeys(page_id for kind in kinds for page_id in kind)
        if scores is None:
            scores = self._ranked_any(list(known))
        best = max(scores.values(), default=1.0)
        for page_id in known:
            scores.setdefault(page_id, best)
        kind_of = {page_id: place for place, kind in reversed([*enumerate(kinds)]) for page_id in kind}
        order = sorted(scores, key=lambda page_id: (kind_of.get(page_id, len(kinds)), -scores[page_id]))
        return [_Found(found, scores[found], kind_of.get(found, 2) < 2) for found in order[: self.limit]]

    def _exact(self, query: str) -> list[int]:
        """Pages whose title or slug is the query."""
        text = query.strip()
        phrase = whole(text)
        if phrase is None:
            return []
        name = UNSPACED if phrase.unspaced else SPACED
        cases = list(dict.fromkeys([text, text.lower(), text.upper(), text.title()]))
        found = index.named(self.db, name, phrase.quoted, cases, self.filters)
        return found + [
            page_id for page_id in index.with_slug(self.db, text.lower(), self.filters) if page_id not in found
        ]

    def _holding(self, terms: Terms) -> list[int]:
        """Pages with all of the terms: as many as were asked for, or all that there are."""
        found: dict[int, None] = {}
        for name in self._indexes_for_all():
            found.update(dict.fromkeys(index.matching(self.db, name, _all(terms), self.filters, self.limit)))
        return list(found)

    def _ranked_all(self, terms: Terms, first: list[int]) -> Scores:
        scores: Scores = {}
        for name in self._indexes_for_all():
            scores = dict(self._ranked_all_in(name, terms, first)) | scores
        return scores

    def _ranked_all_in(self, name: str, terms: Terms, first: list[int]) -> list[tuple[int, float]]:
        expression = _all(terms)
        highest = self.highest[name]
        if highest * len(terms) > ROW_BUDGET:
            cost = len(terms) * index.count(self.db, name, expression, self.filters, highest)
            if cost > ROW_BUDGET:
                named = index.match(self.db, name, f"{NAMES[name]} : ({expression})", self.filters, self.limit)
                above = highest - highest * ROW_BUDGET // cost
                newest = index.match(self.db, name, expression, self.filters, self.limit, above=above)
                return [*newest, *named]
        return index.match(self.db, name, expression, self.filters, self.limit, first=first)

    def _ranked_any(self, first: list[int]) -> Scores:
        spaced = self._any_in(SPACED, [part for part in self.plan.parts if not part.unspaced], first)
        unspaced = self._any_in(UNSPACED, list(self.plan.parts), first)
        if self.plan.unspaced and spaced and unspaced:
            # The indexes count pages differently, and with them how much a rare word weighs.
            lift = max(1.0, max(spaced.values()) / max(unspaced.values()))
            lifted = {page_id: score * lift for page_id, score in unspaced.items()}
            return {page_id: max(lifted.get(page_id, 0.0), spaced.get(page_id, 0.0)) for page_id in lifted | spaced}
        return unspaced | spaced

    def _any_in(self, name: str, parts: list[Term], first: list[int]) -> Scores:
        highest = self.highest[name]
        if not parts or not highest:
            return {}
        quoted = [part.quoted for part in parts]
        if highest * len(quoted) > ROW_BUDGET:
            quoted = affordable(quoted, index.document_counts(self.db, name, quoted, highest), ROW_BUDGET)
        return dict(index.match(self.db, name, " OR ".join(quoted), self.filters, self.limit, first=first))

    def _indexes_for_all(self) -> list[str]:
        names = [UNSPACED] if self.plan.unspaced else [SPACED, UNSPACED]
        return [name for name in names if self.highest[name]]


def affordable(terms: list[str], counts: list[int], budget: int) -> list[str]:
    """The rarest terms, as many as the budget of pages allows; at least one."""
    kept: list[str] = []
    for pages, term in sorted(zip(counts, terms, strict=True), key=lambda pair: pair[0]):
        budget -= pages
        if kept and budget < 0:
            break
        kept.append(term)
    return kept


def _all(terms: Terms) -> str:
    return " AND ".join(term.quoted for term in terms)


def _hits(db: "Database", wanted: Plan, found: list[_Found]) -> list[Hit]:
    ids = [each.id for each in found]
    heads = index.heads(db, ids)
    texts = index.texts(db, ids)
    marker = Marker(index.Stemmer(db), wanted)
    return [
        Hit(*heads[each.id][1:], marker.excerpt(*texts[each.id]), each.score, each.all_words, each.id)
        for each in found
        if each.id in heads
    ]
