"""Full-text search over pages, with excerpts.

Pages that contain all words come first, then pages with some of the words, by score. Ranking takes about half
a microsecond per matching page and word, so in a large database very common words are left out of OR queries.
If even the pages with all words are too many to rank, only pages with the words in their names and the newest
pages are ranked. Excerpts are made with the tokenizer of the index, because FTS5's snippet() takes seven
times as long.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from quaid.model.dates import fold_days
from quaid.model.page import ALL_BY_PERSON, CLASSES, TrustName
from quaid.model.plain_text import cjk_bigrams, count_tokens, has_cjk, split_cjk
from quaid.storage import chunks, pages, text_index, trust
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import NAME_COLUMNS, SPACED, UNSPACED, SearchFilters, Stemmer, TextIndex

LONGEST_QUERY = 10_000
"""Maximum characters of a query. The rest is ignored."""

MOST_WORDS = 32
MOST_PARTS = 64
LONGEST_PHRASE = 64

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being both but by can could did do does
    doing down during each few for from had has have having he her here hers him his how i if in into is it its
    just me more most my no nor not now of off on once only or other our out over own same she should so some such
    t than that the their them then there these they this those through to too under until up very was we were what
    when where which while who whom why will with would you your""".split()
)
"""English words that a result need not contain, unless they are part of a phrase or the query has no other words."""

_PHRASE = re.compile(r'"([^"]*)"|“([^“”]*)”')
# Combining accents that have no precomposed letter are part of the word.
_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")
_POSSESSIVE = re.compile(r"(?i)(?<=[^\W_])['’]s(?![^\W_])")


class Term(NamedTuple):
    """A word or phrase to search for."""

    text: str
    """One word or a phrase, as tokens of the index separated by spaces."""
    unspaced: bool = False
    """True if only page_fts_unspaced, the index of scripts written without spaces, can contain the term."""
    prefix: bool = False
    """True if the last word is a prefix."""
    literal: str = ""
    """The text as it appears in a page, if it differs from the tokens."""

    @property
    def quoted(self) -> str:
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


class QueryPlan(NamedTuple):
    """The terms of a query: all words, the words except stop words, and the parts of these words."""

    words: tuple[Term, ...]
    telling: tuple[Term, ...]
    """`words` without stop words, or all words if all of them are stop words."""
    parts: tuple[Term, ...]
    """The terms in `telling`, and the components of compound words such as e-mail or 東京都."""

    @property
    def unspaced(self) -> bool:
        return any(word.unspaced for word in self.words)


def plan_query(text: str) -> QueryPlan:
    """Parse a query. Text without words results in an empty plan."""
    words: dict[str, Term] = {}
    parts: dict[str, Term] = {}
    for piece, is_phrase in _pieces(_readable(text)):
        if not is_phrase and ("'" in piece or "’" in piece):
            piece = _POSSESSIVE.sub(" ", piece)
        word = _phrase(piece)
        if word is None:
            continue
        words.setdefault(word.text.lower(), word)
        if not is_phrase:
            for part in _parts(piece):
                parts.setdefault(part.text.lower(), part)
        if len(words) == MOST_WORDS or len(parts) >= MOST_PARTS:
            break
    telling = _without_stop_words(words)
    return QueryPlan(
        tuple(words.values()),
        tuple(telling.values()),
        tuple({**telling, **_without_stop_words(parts)}.values())[:MOST_PARTS],
    )


def _without_stop_words(terms: dict[str, Term]) -> dict[str, Term]:
    return {text: term for text, term in terms.items() if text not in STOP_WORDS} or terms


def whole_phrase(text: str) -> Term | None:
    """Return the whole text as one phrase, or None if it has no words."""
    return _phrase(_readable(text))


def _readable(text: str) -> str:
    text = text[:LONGEST_QUERY]
    if text.isascii():
        return text
    # The index folds accents only in precomposed letters.
    return unicodedata.normalize("NFC", text)


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Split text at whitespace. Text between quotation marks is one piece, marked as a phrase.

    If the number of straight quotation marks is odd, no piece is a phrase.
    """
    pieces: list[tuple[str, bool]] = []
    end = 0
    if ('"' in text or "“" in text) and text.count('"') % 2 == 0:
        for phrase in _PHRASE.finditer(text):
            pieces += [(piece, False) for piece in text[end : phrase.start()].split()]
            pieces.append((phrase[1] or phrase[2] or "", True))
            end = phrase.end()
    return pieces + [(piece, False) for piece in text[end:].split()]


def _words(text: str) -> list[str]:
    """Return the words of the text, without punctuation."""
    words: list[str] = []
    for piece in text.split():
        words += [piece] if piece.isalnum() else _WORD.findall(piece)
    return words


def _phrase(piece: str) -> Term | None:
    """Return a whole piece as one phrase, or None if it has no words."""
    if not has_cjk(piece):
        words = _words(piece)[:LONGEST_PHRASE]
        return Term(" ".join(words)) if words else None
    between_and_runs = split_cjk(piece)
    literal = "".join(between_and_runs).strip()
    words = []
    for place, text in enumerate(between_and_runs):
        words += cjk_bigrams(text) if place % 2 else _words(text)
    ends_in_run = not _WORD.search(between_and_runs[-1])
    prefix = ends_in_run and len(between_and_runs[-2]) == 1
    if ends_in_run and not prefix:
        # In a page, more characters may follow. In that case the last character is not indexed as a separate
        # token.
        words.pop()
    if len(words) > LONGEST_PHRASE:
        words, prefix = words[:LONGEST_PHRASE], False
    return Term(" ".join(words), unspaced=True, prefix=prefix, literal=literal)


def _parts(piece: str) -> list[Term]:
    """Return the components of a piece as separate terms."""
    if not has_cjk(piece):
        return [Term(word) for word in _words(piece)]
    parts = []
    for place, text in enumerate(split_cjk(piece)):
        if place % 2 == 0:
            parts += [Term(word) for word in _words(text)]
        elif len(text) == 1:
            parts.append(Term(text, unspaced=True, prefix=True, literal=text))
        else:
            parts += [Term(pair, unspaced=True, literal=pair) for pair in cjk_bigrams(text)[:-1]]
    return parts


EXCERPT_WIDTH = 200
"""Approximate length of an excerpt in characters.

It is half as long in scripts without spaces, which are denser.
"""

EXCERPT_LEAD = 50
"""An excerpt starts at most this many characters before the first marked word."""

BLOCK_CHARACTERS = 16_000
MOST_BLOCKS = 16
"""A long text is searched in up to this many blocks, until a block contains a word. The rest is ignored."""

SENTENCE_ENDS = ("\n", ". ", "! ", "? ", "。")
LINE_MARKS = "#>-*+ \t\n"
"""Characters that introduce a heading, a quotation or a list item."""


class WordSpan(NamedTuple):
    """Position of a matched word, as character offsets."""

    start: int
    end: int
    word: str


class Excerpt(NamedTuple):
    text: str
    source: int
    """Index of the text that the excerpt is from."""
    start: int
    """Offset of the first marked word in that text."""


class ExcerptMarker:
    """Makes excerpts for one query."""

    def __init__(self, stemmer: Stemmer, plan: QueryPlan, marks: tuple[str, str] = ("**", "**")) -> None:
        self._stemmer = stemmer
        self._marks = marks
        self._by_letters = plan.unspaced
        words = " ".join(term.text for term in plan.parts if not term.unspaced)
        self._stems = {stem for _, _, stem in stemmer.words(words.encode())}
        self._literals = [term.literal or term.text for term in plan.parts]
        self._letters: re.Pattern[str] | None = None  # compiled only if no stem matches

    def excerpt(self, *texts: str) -> str:
        """Return the best excerpt of the first text that contains a word, or ""."""
        return self.find(*texts).text

    def find(self, *texts: str) -> "Excerpt":
        """Return the best excerpt of the first text that contains a word, and where it is."""
        find_first, find_then = self._by_stem, self._by_letter
        if self._by_letters:
            find_first, find_then = find_then, find_first
        width = EXCERPT_WIDTH // 2 if self._by_letters else EXCERPT_WIDTH
        for find in (find_first, find_then):
            for number, text in enumerate(texts):
                offset = 0
                for block in _blocks(text):
                    if spans := find(block):
                        shown, start = _cut_excerpt(block, spans, width, self._marks)
                        return Excerpt(shown, number, offset + start)
                    offset += len(block)
        return Excerpt("", 0, 0)

    def _by_stem(self, text: str) -> list[WordSpan]:
        encoded = text.encode("utf-8", "replace")
        spans = []
        at = characters = 0
        for start, end, stem in self._stemmer.words(encoded):
            if stem in self._stems:
                begin = characters + len(encoded[at:start].decode())
                at, characters = end, begin + len(encoded[start:end].decode())
                spans.append(WordSpan(begin, characters, stem))
        return spans

    def _by_letter(self, text: str) -> list[WordSpan]:
        if not self._literals:
            return []
        if self._letters is None:
            self._letters = _literal_pattern(self._literals)
        return [
            WordSpan(match.start(), match.end(), match.group().lower())
            for match in self._letters.finditer(text)
        ]


def _literal_pattern(literals: list[str]) -> re.Pattern[str]:
    longest_first = sorted(literals, key=len, reverse=True)
    # An ASCII word may directly follow a character of another script, but not another ASCII letter or digit.
    alternatives = [
        rf"(?<![a-z0-9]){re.escape(literal)}" if literal.isascii() else re.escape(literal)
        for literal in longest_first
    ]
    return re.compile("|".join(alternatives), re.IGNORECASE)


def _blocks(text: str) -> Iterator[str]:
    start = 0
    for _ in range(MOST_BLOCKS):
        end = start + BLOCK_CHARACTERS
        if end >= len(text):
            yield text[start:]
            return
        gap = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = gap if gap > start else end
        yield text[start:end]
        start = end


def _cut_excerpt(text: str, spans: list[WordSpan], width: int, marks: tuple[str, str]) -> tuple[str, int]:
    """Return the excerpt with the most distinct words, each between the marks, and the offset of the first."""
    best = max(
        range(len(spans)), key=lambda place: (_count_words_from(spans, place, width - EXCERPT_LEAD), -place)
    )
    start = _excerpt_start(text, spans[best].start)
    end = _excerpt_end(text, max(start + width, spans[best].end))
    pieces = []
    at = start
    for span in _join_adjacent(text, [span for span in spans[best:] if span.end <= end]):
        pieces += [text[at : span.start], marks[0], text[span.start : span.end], marks[1]]
        at = span.end
    pieces.append(text[at:end])
    shown = " ".join("".join(pieces).split())
    shown = ("…" if text[:start].strip(LINE_MARKS) else "") + shown + ("…" if text[end:].strip() else "")
    return shown, spans[best].start


def _count_words_from(spans: list[WordSpan], place: int, width: int) -> int:
    within = set()
    for span in spans[place : place + 50]:
        if span.end > spans[place].start + width:
            break
        within.add(span.word)
    return len(within)


def _excerpt_start(text: str, first: int) -> int:
    """Return where an excerpt starts: at the start of the line or sentence if it is near, else at a word."""
    start = max(0, first - EXCERPT_LEAD)
    ends = [at + len(mark) for mark in SENTENCE_ENDS if (at := text.rfind(mark, start, first)) >= 0]
    if ends:
        start = max(ends)
    elif start:
        gap = text.find(" ", start, first)
        start = gap + 1 if gap >= 0 else start
    while start < first and text[start] in LINE_MARKS:
        start += 1
    return start


def _excerpt_end(text: str, end: int) -> int:
    if end >= len(text):
        return len(text)
    gap = text.rfind(" ", end - 20, end + 1)
    return gap if gap > 0 else end


def _join_adjacent(text: str, spans: list[WordSpan]) -> Iterator[WordSpan]:
    """Join spans that are separated only by whitespace."""
    held: WordSpan | None = None
    for span in spans:
        if held and not text[held.end : span.start].strip():
            held = WordSpan(held.start, span.end, held.word)
            continue
        if held:
            yield held
        held = span
    if held:
        yield held


class TextStems(NamedTuple):
    """The stems of the words of some text."""

    every: frozenset[str]
    telling: frozenset[str]
    """The stems of the words that are not stop words."""

    def hold(self, other: "TextStems") -> bool:
        """Return True if this text contains all words of a term.

        A stop word in this text does not match a word of the term that has the same stem, unless the term
        itself contains stop words.
        """
        if other.every == other.telling:
            return bool(other.every) and other.every <= self.telling
        return other.every <= self.every


def stem_text(stemmer: Stemmer, text: str) -> TextStems:
    raw = text.encode("utf-8", "replace")
    every, telling = set(), set()
    for start, end, stem in stemmer.words(raw):
        every.add(stem)
        if raw[start:end].lower().decode("utf-8", "replace") not in STOP_WORDS:
            telling.add(stem)
    return TextStems(frozenset(every), frozenset(telling))


_DERIVED = re.compile(r"(?<=\w{5})(?:is|iz|ist|er|or|ment)\Z")
"""Endings that the stemmer leaves on some words of a family: randomised, supplier, deployment."""


def content_stems(stemmer: Stemmer, text: str) -> frozenset[str]:
    """Return the stems of all words except stop words, so that related words and spellings compare equal.

    For example, random and randomised have the same stem, and so do a date in digits and the same date in
    words.
    """
    stems = stem_text(stemmer, fold_days(text.replace("_", " "))).telling
    return frozenset(re.sub(r"i\Z", "y", _DERIVED.sub("", stem)) for stem in stems)


def match_stems(stemmer: Stemmer, text: str, stems: frozenset[str]) -> list[tuple[int, str, bool]]:
    """Return the offset and stem of each word that has one of these stems, and True if it is not a stop word."""
    raw = text.encode("utf-8", "replace")
    found = [word for word in stemmer.words(raw) if word[2] in stems]
    if not found:
        return []
    matches = []
    at = characters = 0
    for start, end, stem in found:
        characters += start - at if len(raw) == len(text) else len(raw[at:start].decode("utf-8", "replace"))
        at = start
        word = raw[start:end].lower().decode("utf-8", "replace")
        matches.append((characters, stem, word not in STOP_WORDS))
    return matches


ENOUGH_CHUNKS = 50
"""From this many chunks on, word frequencies and the mean cosine of a memory are reliable."""

LEAST_WEIGHT = 0.1
"""Minimum weight of a word, however many chunks contain it."""


def word_weights(counts: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word of a question, by the number of chunks that contain it.

    In a small database even a rare word may be in every chunk, so the total is at least ENOUGH_CHUNKS.
    """
    total = max(total, ENOUGH_CHUNKS)
    return {
        word: max(LEAST_WEIGHT, math.log((total + 0.5) / (count + 0.5))) for word, count in counts.items()
    }


def word_share(held: Iterable[str], weight: Mapping[str, float]) -> float:
    """Return the share of a question's words that are in `held`. Each word counts by its weight."""
    every = sum(weight.values())
    return sum(weight[word] for word in set(held) if word in weight) / every if every else 0.0


def is_mistakable(stemmer: Stemmer, part: str) -> bool:
    """Return True if a word is not a stop word but has the same stem as a stop word."""
    stems = stem_text(stemmer, part)
    return stems.every == stems.telling and not stems.every.isdisjoint(
        stem_text(stemmer, " ".join(STOP_WORDS)).every
    )


ROW_BUDGET = 30_000
"""Maximum number of (page, word) pairs to rank per query."""

FEW_PAGES = 1_000
"""If there are at most this many pages, chunks or turns, even the most common words are ranked."""

LONGEST_COMPARED_NAME = 500
"""A query of at most this many characters is compared with page names."""

PageScores = dict[int, float]
Terms = tuple[Term, ...]


class PageHit(NamedTuple):
    """A page that matches a query."""

    slug: str
    collection: str
    title: str
    type: str
    wing: str
    room: str
    summary: str
    snippet: str
    """An excerpt with the matching words between ** and **."""
    rank_score: float
    """BM25, by which pages with the same kind of match are ordered. It is greater than 0, and not comparable between
    searches.
    """
    all_words: bool
    id: int
    heading: str = ""
    """The heading above the excerpt, as in "Page 14" of a document, unless it is the title."""
    trust: TrustName = "person"
    """The lowest trust class of the lines in the excerpt."""


_ScoredPage = tuple[int, float, bool]
"""Page id, score, and True if the page contains all words."""
NO_FILTERS = SearchFilters()


def search_pages(
    db: Database, query: str, filters: SearchFilters = NO_FILTERS, limit: int = 10, *, raw: bool = False
) -> list[PageHit]:
    """Find pages by words.

    Any query is valid. With `raw`, the query must be an FTS5 expression, otherwise InvalidSearch is raised.
    """
    plan = plan_query(query)
    scored: list[_ScoredPage] = []
    with db.reading():
        if raw:
            scored = [
                (*page, True) for page in TextIndex(db, text_index.SPACED).match_raw(query, filters, limit)
            ]
        elif plan.words and limit > 0:
            scored = _TextSearch(db, plan, filters, limit).run(query)
        return _page_hits(db, plan, scored, filters.trust)


def page_scores(db: Database, plan: QueryPlan, filters: SearchFilters, limit: int, budget: int) -> PageScores:
    """Return up to `limit` pages that contain any part of the plan, with their scores. A higher score is better."""
    return _TextSearch(db, plan, filters, limit, budget).ranked_any([]) if plan.parts else {}


class _TextSearch:
    """One query against both full-text indexes."""

    def __init__(
        self, db: Database, plan: QueryPlan, filters: SearchFilters, limit: int, budget: int | None = None
    ) -> None:
        self._db = db
        self._plan = plan
        self._filters = filters
        self._limit = limit
        self._budget = ROW_BUDGET if budget is None else budget
        self._highest = {name: TextIndex(db, name).highest_id() for name in (SPACED, UNSPACED)}

    def run(self, query: str) -> list[_ScoredPage]:
        """Return the pages named like the query, then pages with all words, all except stop words, and any word.

        Each group is sorted by score.
        """
        kinds = [self._named(query)]
        scores: PageScores | None = None
        for terms in dict.fromkeys((self._plan.words, self._plan.telling)):
            first = [page_id for kind in kinds for page_id in kind]
            kinds.append(self._holding(terms))
            if len(kinds[-1]) >= self._limit:
                scores = self._ranked_all(terms, first)
                kinds[-1] = list(scores)
                break
        first = [page_id for kind in kinds for page_id in kind]
        if scores is None:
            scores = self.ranked_any(first)
        best = max(scores.values(), default=1.0)
        scores = dict.fromkeys(first, best) | scores
        kind_of = {page_id: place for place, kind in reversed([*enumerate(kinds)]) for page_id in kind}
        order = sorted(scores, key=lambda page_id: (kind_of.get(page_id, len(kinds)), -scores[page_id]))
        return [(page_id, scores[page_id], kind_of.get(page_id, 2) < 2) for page_id in order[: self._limit]]

    def _named(self, query: str) -> list[int]:
        """Return pages whose title or slug equals the query."""
        text = query[:LONGEST_COMPARED_NAME].encode("utf-8", "ignore").decode().strip()
        phrase = whole_phrase(text)
        if phrase is None or len(query) > LONGEST_COMPARED_NAME:
            return []
        name = UNSPACED if phrase.unspaced else SPACED
        spellings = list(dict.fromkeys((text, text.lower(), text.upper(), text.title())))
        return TextIndex(self._db, name).pages_named(phrase.quoted, spellings, text.lower(), self._filters)

    def _holding(self, terms: Terms) -> list[int]:
        """Return up to `limit` pages that contain all of the terms."""
        return list(
            dict.fromkeys(
                page_id
                for name in self._indexes_for_all()
                for page_id in TextIndex(self._db, name).matching_pages(
                    _all_terms(terms), self._filters, self._limit
                )
            )
        )

    def _ranked_all(self, terms: Terms, first: list[int]) -> PageScores:
        scores: PageScores = {}
        for name in self._indexes_for_all():
            scores = self._ranked_all_in(name, terms, first) | scores
        return scores

    def _ranked_all_in(self, name: str, terms: Terms, first: list[int]) -> PageScores:
        expression = _all_terms(terms)
        highest = self._highest[name]
        if highest * len(terms) > self._budget:
            cost = len(terms) * TextIndex(self._db, name).count(expression, self._filters)
            if cost > self._budget:
                # Two queries follow, and each gets half of the budget.
                above = highest - highest * self._budget // (2 * cost)
                newest = self._match(name, expression, above=above)
                return newest | self._match(name, f"{NAME_COLUMNS[name]} : ({expression})")
        return self._match(name, expression, first=first)

    def ranked_any(self, first: list[int]) -> PageScores:
        """Return pages with any of the words, and their scores.

        The pages in `first` are always ranked.
        """
        spaced = self._ranked_any_in(SPACED, [part for part in self._plan.parts if not part.unspaced], first)
        unspaced = self._ranked_any_in(UNSPACED, list(self._plan.parts), first)
        if self._plan.unspaced and spaced and unspaced:
            # The indexes contain different numbers of pages, so their BM25 scores are not on the same scale.
            lift = max(1.0, max(spaced.values()) / max(unspaced.values()))
            unspaced = {page_id: score * lift for page_id, score in unspaced.items()}
            return {
                page_id: max(unspaced.get(page_id, 0.0), spaced.get(page_id, 0.0))
                for page_id in unspaced | spaced
            }
        return unspaced | spaced

    def _ranked_any_in(self, name: str, parts: list[Term], first: list[int]) -> PageScores:
        highest = self._highest[name]
        if not parts or not highest:
            return {}
        quoted = [part.quoted for part in parts]
        if highest * len(quoted) > self._budget:
            counts = TextIndex(self._db, name).document_counts(quoted)
            quoted = terms_worth_ranking(counts, highest, self._budget)
        return self._match(name, " OR ".join(quoted), first=first)

    def _match(
        self, name: str, expression: str, *, first: list[int] | None = None, above: int = 0
    ) -> PageScores:
        return dict(
            TextIndex(self._db, name).match(expression, self._filters, self._limit, first=first, above=above)
        )

    def _indexes_for_all(self) -> list[str]:
        # Only the index of scripts without spaces can match a query that has words in such a script.
        names = [UNSPACED] if self._plan.unspaced else [SPACED, UNSPACED]
        return [name for name in names if self._highest[name]]


def terms_worth_ranking(counts: dict[str, int], total: int, budget: int) -> list[str]:
    """Return the rarest terms that fit into the budget. `counts` maps each term to its number of documents."""
    if total > FEW_PAGES:
        # FTS5 gives almost no weight to a term that is in more than half of the documents, and ranking such a
        # term takes the longest.
        counts = {term: held for term, held in counts.items() if 2 * held <= total} or counts
    return affordable_terms(list(counts), list(counts.values()), budget)


def affordable_terms(terms: list[str], counts: list[int], budget: int) -> list[str]:
    """Return the rarest terms whose counts add up to at most the budget, but always at least one term."""
    affordable: list[str] = []
    for count, term in sorted(zip(counts, terms, strict=True), key=lambda pair: pair[0]):
        budget -= count
        if affordable and budget < 0:
            break
        affordable.append(term)
    return affordable


def _all_terms(terms: Terms) -> str:
    return " AND ".join(term.quoted for term in terms)


def _page_hits(db: Database, plan: QueryPlan, scored: list[_ScoredPage], hidden: int | None) -> list[PageHit]:
    """Return the hits, with equal scores sorted by trust class. Lines of class `hidden` or below are not quoted."""
    ids = [page_id for page_id, _, _ in scored]
    heads, texts = pages.page_heads(db, ids), pages.page_texts(db, ids)
    marker, classes = ExcerptMarker(text_index.Stemmer(db), plan), trust.of_pages(db, ids)
    hits = []
    for page_id, score, all_words in scored:
        if page_id not in heads:
            continue
        own, parts = classes.get(page_id, ALL_BY_PERSON), texts[page_id]
        if hidden is not None and own.lowest >= hidden:
            parts = own.without(parts[0], hidden - 1), own.without(parts[1], hidden - 1)
            snippet, heading = marker.excerpt(*parts), ""
        else:
            snippet, heading = _excerpt_of_page(db, plan, marker, page_id, parts)
        heading = "" if heading == heads[page_id].title else heading
        lowest = own.of_excerpt(snippet.replace("**", ""), "\n".join(parts)) if own.lines else own.rest
        hits.append(
            PageHit(*heads[page_id][1:], snippet, score, all_words, page_id, heading, CLASSES[lowest])
        )
    if classes:  # sorts only within groups of equal scores
        places = {(hit.all_words, hit.rank_score): place for place, hit in reversed([*enumerate(hits)])}
        hits.sort(key=lambda hit: (places[hit.all_words, hit.rank_score], CLASSES.index(hit.trust)))
    return hits


def _excerpt_of_page(
    db: Database, plan: QueryPlan, marker: ExcerptMarker, page_id: int, texts: tuple[str, str]
) -> tuple[str, str]:
    """Return an excerpt of a page and the heading above it."""
    excerpt = marker.find(*texts)
    if excerpt.text:
        line = texts[excerpt.source].count("\n", 0, excerpt.start) + 1
        kind = chunks.CHUNK_KINDS[excerpt.source]
        return excerpt.text, last_heading(chunks.heading_at(db, page_id, kind, line))
    if len(texts[0]) > MOST_BLOCKS * BLOCK_CHARACTERS and plan.parts:
        chunk = chunks.best_in_page(db, page_id, " OR ".join(term.quoted for term in plan.parts))
        if chunk:
            return marker.excerpt(chunk.text), last_heading(chunk.heading_path)
    return "", ""


def last_heading(path: str) -> str:
    """Return the last heading of a heading path, without its markup."""
    return path.rpartition(" > ")[2].lstrip("#* ")


LONGEST_LINE = 240
"""Maximum characters of a statement that is shown as the only line of a result."""

CHARACTERS_PER_TOKEN = 16
"""Assumed maximum number of characters per token, which limits how much text is counted. Only whitespace has more.
"""

CUT_MARK = "…"


def fits(text: str, tokens: int, measure: Callable[[str], int]) -> bool:
    return len(text) <= tokens * CHARACTERS_PER_TOKEN and measure(text) <= tokens


def fit_text(text: str, tokens: int, measure: Callable[[str], int] = count_tokens) -> tuple[str, bool]:
    """Truncate text to a number of tokens. Return the text, and True if it was cut.

    Text that was cut ends with CUT_MARK, or is "" if nothing fits.
    """
    if tokens <= 0:
        return "", bool(text)
    if fits(text, tokens, measure):
        return text, False
    room = tokens - measure(CUT_MARK)
    low, high = 0, min(len(text), tokens * CHARACTERS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    gap = max(text.rfind(" ", 0, low), text.rfind("\n", 0, low))
    cut = text[: gap if gap > low // 2 else low].rstrip()
    # Cutting at the end of a word may cost one more token than cutting within it.
    while cut and measure(cut + CUT_MARK) > tokens:
        cut = cut[:-1]
    return (cut + CUT_MARK, True) if cut else ("", True)
