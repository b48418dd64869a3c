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
from quaid.storage import pages, text_index
from quaid.storage.text_index import NAME_COLUMNS, SPACED, UNSPACED, SearchFilters

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database

ROW_BUDGET = 30_000
"""How many pairs of a page and a word may be ranked for one question."""

FEW = 1_000
"""Among so many every word of a question is looked for, however common."""

LONGEST_NAME = 500
"""Characters of a question that can be the name of a page."""

Scores = dict[int, float]
Terms = tuple[Term, ...]


class Hit(NamedTuple):
    """A page that was found."""

    slug: str
    collection: str
    title: str
    type: str
    wing: str
    room: str
    summary: str
    snippet: str
    """A few words around those that were asked for, which stand between ** and **."""
    rank_score: float
    """By what the hits are ordered, BM25: above 0, and it means nothing beside that of another search."""
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
    filters = SearchFilters(type, wing, tag, collection)
    wanted = plan(query)
    found: list[_Found] = []
    with db.reading():
        if raw:
            scored = text_index.match_raw(db, query, filters, limit)
            found = [_Found(page_id, score, all_words=True) for page_id, score in scored]
        elif wanted.words and limit > 0:
            found = _Search(db, wanted, filters, limit).run(query)
        return _hits(db, wanted, found)


def page_scores(db: "Database", wanted: Plan, filters: SearchFilters, limit: int, budget: int) -> Scores:
    """The pages that hold most of the words, whichever, with their scores; higher is better."""
    return _Search(db, wanted, filters, limit, budget).any_word() if wanted.parts else {}


class _Search:
    """One question to the two indexes."""

    def __init__(
        self, db: "Database", wanted: Plan, filters: SearchFilters, limit: int, budget: int | None = None
    ) -> None:
        self._db = db
        self._plan = wanted
        self._filters = filters
        self._limit = limit
        self._budget = ROW_BUDGET if budget is None else budget
        self._highest = {name: text_index.highest_id(db, name) for name in (SPACED, UNSPACED)}

    def run(self, query: str) -> list[_Found]:
        """Pages of that name, pages with all words, with all telling words, with any; each kind by score."""
        kinds = [self._named(query)]
        scores: Scores | None = None
        for terms in dict.fromkeys((self._plan.words, self._plan.telling)):
            known = [page_id for kind in kinds for page_id in kind]
            kinds.append(self._holding(terms))
            if len(kinds[-1]) >= self._limit:
                scores = self._ranked_all(terms, known)
                kinds[-1] = list(scores)
                break
        known = [page_id for kind in kinds for page_id in kind]
        if scores is None:
            scores = self._ranked_any(known)
        best = max(scores.values(), default=1.0)
        scores = dict.fromkeys(known, best) | scores
        kind_of = {page_id: place for place, kind in reversed([*enumerate(kinds)]) for page_id in kind}
        order = sorted(scores, key=lambda page_id: (kind_of.get(page_id, len(kinds)), -scores[page_id]))
        return [_Found(each, scores[each], kind_of.get(each, 2) < 2) for each in order[: self._limit]]

    def any_word(self) -> Scores:
        """Pages with any of the words."""
        return self._ranked_any([])

    def _named(self, query: str) -> list[int]:
        """Pages whose title or slug is the query."""
        text = query[:LONGEST_NAME].encode("utf-8", "ignore").decode().strip()
        phrase = whole(text)
        if phrase is None or len(query) > LONGEST_NAME:
            return []
        name = UNSPACED if phrase.unspaced else SPACED
        spellings = list(dict.fromkeys((text, text.lower(), text.upper(), text.title())))
        titled = text_index.pages_titled(self._db, name, phrase.quoted, spellings, self._filters)
        return [*titled, *text_index.pages_with_slug(self._db, text.lower(), self._filters)]

    def _holding(self, terms: Terms) -> list[int]:
        """Pages with all of the terms: as many as were asked for, or all that there are."""
        found: dict[int, None] = {}
        for name in self._indexes_for_all():
            ids = text_index.matching_pages(self._db, name, _all(terms), self._filters, self._limit)
            found.update(dict.fromkeys(ids))
        return list(found)

    def _ranked_all(self, terms: Terms, first: list[int]) -> Scores:
        scores: Scores = {}
        for name in self._indexes_for_all():
            scores = self._ranked_all_in(name, terms, first) | scores
        return scores

    def _ranked_all_in(self, name: str, terms: Terms, first: list[int]) -> Scores:
        expression = _all(terms)
        highest = self._highest[name]
        if highest * len(terms) > self._budget:
            cost = len(terms) * text_index.count(self._db, name, expression, self._filters, highest)
            if cost > self._budget:
                # Half of the budget for each: the two are asked one after the other.
                above = highest - highest * self._budget // (2 * cost)
                newest = self._match(name, expression, above=above)
                return newest | self._match(name, f"{NAME_COLUMNS[name]} : ({expression})")
        return self._match(name, expression, first=first)

    def _ranked_any(self, first: list[int]) -> Scores:
        spaced = self._ranked_any_in(SPACED, [part for part in self._plan.parts if not part.unspaced], first)
        unspaced = self._ranked_any_in(UNSPACED, list(self._plan.parts), first)
        if self._plan.unspaced and spaced and unspaced:
            # The indexes hold different numbers of pages, and so weigh a rare word differently.
            lift = max(1.0, max(spaced.values()) / max(unspaced.values()))
            unspaced = {page_id: score * lift for page_id, score in unspaced.items()}
            return {each: max(unspaced.get(each, 0.0), spaced.get(each, 0.0)) for each in unspaced | spaced}
        return unspaced | spaced

    def _ranked_any_in(self, name: str, parts: list[Term], first: list[int]) -> Scores:
        highest = self._highest[name]
        if not parts or not highest:
            return {}
        quoted = [part.quoted for part in parts]
        if highest * len(quoted) > self._budget:
            counts = text_index.document_counts(self._db, name, quoted, highest)
            quoted = worth_ranking(dict(zip(quoted, counts, strict=True)), highest, self._budget)
        return self._match(name, " OR ".join(quoted), first=first)

    def _match(self, name: str, expression: str, *, first: list[int] | None = None, above: int = 0) -> Scores:
        return dict(
            text_index.match(self._db, name, expression, self._filters, self._limit, first=first, above=above)
        )

    def _indexes_for_all(self) -> list[str]:
        # A page without such scripts cannot hold all words of a question that has them.
        names = [UNSPACED] if self._plan.unspaced else [SPACED, UNSPACED]
        return [name for name in names if self._highest[name]]


def worth_ranking(counts: dict[str, int], total: int, budget: int) -> list[str]:
    """Of these terms and how many hold them, of so many: the rarest, as many as the budget allows."""
    if total > FEW:
        # To FTS5 a word in more than half of all weighs nothing, and it is the dearest to rank.
        counts = {term: held for term, held in counts.items() if 2 * held <= total} or counts
    return affordable(list(counts), list(counts.values()), budget)


def affordable(terms: list[str], counts: list[int], budget: int) -> list[str]:
    """The rarest terms, as many as fit into a budget of pages; at least one."""
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
    if not found:
        return []
    ids = [each.id for each in found]
    heads = pages.page_heads(db, ids)
    texts = pages.page_texts(db, ids)
    marker = Marker(text_index.Stemmer(db), wanted)
    return [
        Hit(*heads[each.id][1:], marker.excerpt(*texts[each.id]), each.score, each.all_words, each.id)
        for each in found
        if each.id in heads
    ]
