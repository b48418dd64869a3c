"""What an answer has besides pages: turns of conversations, the caller's own proposals, and facts."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from quaid.embedding.registry import Embedder
from quaid.model.chunker import split_statements
from quaid.model.facts import (
    canonical_predicate,
    is_valid_on,
    object_key,
    person_name_parts,
    predicate_spellings,
)
from quaid.model.markdown_text import one_line, shorten
from quaid.model.similarity import fold_question, is_question
from quaid.model.slug import fold_name
from quaid.search import text as text_search
from quaid.search.answer import OtherResult, OutdatedValue, RankedQuestion, SearchResult
from quaid.search.conversations import TurnEvidence, turns_with_evidence
from quaid.search.plan import STOP_WORDS
from quaid.search.query import VAGUE_WORDS, name_spans
from quaid.search.strength import STRONG_WORDS
from quaid.storage import conversations, facts, pages, proposals, text_index
from quaid.storage.facts import FactRow
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

if TYPE_CHECKING:  # not imported at run time, because it loads numpy
    from quaid.storage.vector_index import TurnIndex

LONGEST_TURN = 2_400
"""Maximum characters of a turn in an answer, around its best line."""

QUESTION_SHARE = 0.5
"""Weight of a turn that only asks: it repeats the words of the question, but does not answer it."""

LONGEST_REPLY_LINE = 120
"""At most this many characters of the reply are in the line of a turn that is a question."""

MOST_FACTS = 5
MOST_PAGES_NAMED = 5
MOST_FIRST_PAGES = 10
"""If a question names no subject, the facts of this many first pages are compared with it."""


def conversation_results(
    db: Database,
    embedder: Embedder | None,
    question: str,
    filters: SearchFilters,
    limit: int,
    *,
    vectors: "Callable[[], TurnIndex]",
) -> list[OtherResult]:
    """Return the best turn of each conversation that is at least a weak match, best first."""
    best: dict[int, tuple[float, TurnEvidence]] = {}
    asked = fold_question(question)
    for found in turns_with_evidence(db, embedder, question, 4 * limit, vectors=vectors):
        day = (found.turn.said_at or found.conversation.started_at or "")[:10]
        if found.strength == "none" or fold_question(found.turn.text) == asked:
            continue
        if (filters.since and day < filters.since) or (filters.until and day > filters.until):
            continue
        score = found.score * (QUESTION_SHARE if is_question(found.turn.text) else 1.0)
        if score > best.get(found.conversation.id, (0.0, found))[0]:
            best[found.conversation.id] = (score, found)
    ranked = sorted(best.values(), key=lambda pair: -pair[0])[:limit]
    return [_turn_result(db, found, score) for score, found in ranked]


def _turn_result(db: Database, found: TurnEvidence, score: float) -> OtherResult:
    held, turn = found.conversation, found.turn
    text = turn.text.strip()
    at = max(0, text.find(found.line.strip("…")) - LONGEST_TURN // 4)
    section = text if len(text) <= LONGEST_TURN else f"…{text[at : at + LONGEST_TURN]}…"
    line = found.line
    if is_question(turn.text):  # the answer is in the reply
        for reply in conversations.read_turns(db, held.id, turn.turn + 1, 1):
            line = f"{line} — {reply.role}: {shorten(one_line(reply.text), LONGEST_REPLY_LINE)}"
            section = f"{section}\n\n{reply.role}: {shorten(reply.text.strip(), LONGEST_TURN)}"
    result = SearchResult(
        *("", "", held.title, "conversation", "", "", "summary", "", ""),
        score=round(score, 2),
        tokens_used=0,
        lane="both" if len(found.lanes) > 1 else found.lanes[0],
        reason=f"turn {turn.turn} of the conversation, by {turn.role}",
        heading_path="",
        part="",
        start_line=1,
        end_line=1,
        strength=found.strength,
        rank_score=round(score, 4),
        date=(turn.said_at or held.started_at or "")[:10],
        origin="conversation",
        session=f"{held.client}:{held.session}",
        turn=turn.turn,
    )
    return OtherResult(result, line, section)


def proposal_results(db: Database, author: str, question: str, limit: int) -> list[OtherResult]:
    """Return the author's own open proposals that contain most words of the question."""
    results = []
    wanted = {word for word in fold_question(question).split() if len(word) > 2}
    for row in proposals.search(db, author, question, limit):
        text = proposals.added_text(row.diff)
        held = {word for word in wanted if word in fold_question(f"{row.slug} {text}")}
        score = round(len(held) / max(1, len(wanted)), 2)
        result = SearchResult(
            *(row.slug, row.collection or "default", row.summary, "proposal", "", "", "summary", "", ""),
            score=score,
            tokens_used=0,
            lane="words",
            reason=f"proposal {row.id}, not accepted yet",
            heading_path="",
            part="",
            start_line=1,
            end_line=1,
            strength="strong" if score >= STRONG_WORDS else "weak",
            rank_score=score,
            date=row.created_at[:10],
            origin="proposal",
            proposal=row.id,
        )
        statements = split_statements(text)
        line = max(statements, key=lambda each: sum(word in each.lower() for word in wanted), default=text)
        results.append(OtherResult(result, line[: text_search.LONGEST_LINE], text.strip()))
    return results


class MatchingFacts(NamedTuple):
    """Facts about what a question names."""

    lines: tuple[str, ...]
    """What holds and has a word of the question, what has ended and has one, then what else holds."""
    outdated: tuple[OutdatedValue, ...]
    is_answer: bool
    """True if predicate or value of one of the facts has a word of the question besides the names."""


NO_FACTS = MatchingFacts((), (), False)

_PAST = re.compile(
    r"\b(before|previous(ly)?|former(ly)?|used to|history|earlier|past|once|original(ly)?|until|old)\b",
    re.IGNORECASE,
)

MOST_ENDED = 2
"""At most this many facts that have ended are listed, unless the question is about the past."""
MOST_NAMESAKES = 40
"""The first or last name of a person is not looked for among more pages than this."""
MOST_SUBJECTS = 20
"""Facts of at most this many subjects are read if the question names the object."""

_RELATED_WORDS = (
    "job role title position post work employer employed occupation profession head",
    "due deadline eta release date finish ship launch",
    "live home city residence reside address based move location located",
    "boss manager report lead supervisor",
    "spouse husband wife married partner",
    "phone telephone mobile number",
    "email mail",
    "price cost budget fee",
    "birthday born birth",
    "provider vendor supplier send host",
)
"""Words of questions and of predicates that ask for the same thing."""


def asks_for_past(ranked: RankedQuestion) -> bool:
    """Return True if a question is about an earlier time, so that what has ended answers it."""
    return bool(ranked.candidates.periods) or bool(_PAST.search(ranked.question))


def matching_facts(db: Database, ranked: RankedQuestion, today: str) -> MatchingFacts:
    """Return the facts whose subject the question names, and current ones whose object it names."""
    if not facts.has_facts(db):
        return MatchingFacts((), (), False)
    named = _NamedPages.find(db, ranked)
    judge = _FactJudge(db, ranked.question)
    rows = {row.id: row for row in facts.facts_about(db, {*name_spans(ranked.question), *named.keys})}
    about = set(rows)
    for page in named.page_ids:
        own = facts.read_facts(db, page)
        about |= {row.id for row in own if row.subject_key in named.parts[page]}
        rows |= {row.id: row for row in own if row.id in about or judge.score(row)}
    is_answer = any(judge.score(row) for row in rows.values())
    if not rows and not named.objects:
        rows = _facts_of_first_pages(db, ranked, judge)
    replaced = {row.supersedes_id for row in rows.values()}
    holding = _distinct([row for row in rows.values() if row.id not in replaced and _holds(row, today)])
    ended = [row for row in rows.values() if row.id in replaced or not _holds(row, today)]
    if not any(judge.score(row) for row in holding):
        by_object = _facts_by_object(db, named, judge)
        if not asks_for_past(ranked):
            by_object = [row for row in by_object if _holds(row, today)]
        is_answer = is_answer or any(judge.has_words(row, " ".join(named.objects)) for row in by_object)
        holding = _distinct([*holding, *(row for row in by_object if _holds(row, today))])
        ended += _distinct([row for row in by_object if not _holds(row, today) and row not in ended])
    matching = [row for row in holding if judge.score(row)]
    matching.sort(key=lambda row: (-judge.score(row), _newest_first(row)))
    past = [row for row in ended if judge.score(row)]
    past.sort(key=lambda row: (-judge.score(row), _newest_first(row)))
    if asks_for_past(ranked):
        order = [*matching, *past] if ranked.candidates.periods else [*past, *matching]
        order.sort(key=lambda row: not _held_in_period(row, ranked))
    else:
        order = [*matching, *past[:MOST_ENDED]]
    order += sorted((row for row in holding if row not in matching), key=_newest_first)
    shown = order[:MOST_FACTS]
    slugs = {page: head.slug for page, head in pages.page_heads(db, [row.page_id for row in shown]).items()}
    lines = [_fact_text(row, slugs.get(row.page_id, ""), row in holding) for row in shown]
    return MatchingFacts(tuple(lines), _outdated_values(holding, ended), is_answer)


def _outdated_values(holding: list[FactRow], ended: list[FactRow]) -> tuple[OutdatedValue, ...]:
    outdated = []
    for row in ended:
        predicate = canonical_predicate(row.predicate)
        now = tuple(
            other.object
            for other in holding
            if other.subject_key == row.subject_key and canonical_predicate(other.predicate) == predicate
        )
        if now and row.object not in now:
            outdated.append(
                OutdatedValue(row.object, now, (row.subject_key, *person_name_parts(row.subject)))
            )
    return tuple(outdated)


def _distinct(rows: list[FactRow]) -> list[FactRow]:
    """Return the facts without those that another page states in the same words."""
    unique: dict[tuple[str, str, str], FactRow] = {}
    for row in rows:
        key = (row.subject_key, canonical_predicate(row.predicate), object_key(row.object))
        unique.setdefault(key, row)
    return list(unique.values())


class _NamedPages(NamedTuple):
    """The pages that a question names by title or alias, by a person's first or last name, or by the first words."""

    page_ids: list[int]
    keys: set[str]
    """Normalized names of subjects that the question gives only in part."""
    parts: dict[int, set[str]]
    """The normalized names of each page, and of a person the first and last name."""
    objects: set[str]
    """The names as written, to compare with objects of facts."""

    @classmethod
    def find(cls, db: Database, ranked: RankedQuestion) -> "_NamedPages":
        named = ranked.candidates.named
        words = _capitalized_words(ranked.question)
        partly, ambiguous = ({}, set()) if named.exact else _pages_by_part(db, words)
        heads = pages.page_heads(db, [*dict.fromkeys([*named.exact, *named.mentioned, *partly])])
        page_ids = [page for page in [*named.exact, *named.mentioned, *partly] if page in heads]
        page_ids = list(dict.fromkeys(page_ids))[:MOST_PAGES_NAMED]
        parts: dict[int, set[str]] = {}
        for page in page_ids:
            head = heads[page]
            parts[page] = {fold_name(head.title), fold_name(head.slug.rpartition("/")[2])}
            if head.type == "person":
                parts[page] |= person_name_parts(head.title)
            if page in named.mentioned:
                parts[page].add(fold_name(named.mentioned[page]))
        keys = {fold_name(heads[page].title) for page in page_ids}
        keys |= facts.subjects_beginning(db, [fold_name(word) for word in words if word not in ambiguous])
        objects = {*_full_names(ranked.question), *words}
        objects |= {name for page in page_ids for name in (heads[page].title, heads[page].slug)}
        return cls(page_ids, keys, parts, objects)


def _capitalized_words(question: str) -> list[str]:
    """Return the words that may be part of a name, without possessive ending, each with its case.

    These are the words that begin with a capital letter, or all words if none does. Of a name with several
    words, none is returned, since the name is found as a whole.
    """
    spans = [text for text in name_spans(question).values() if " " not in text]
    texts = [re.sub(r"['’]s\Z", "", text) for text in spans]
    capitalized = [text for text in texts if text[:1].isupper()]
    if not any(character.isupper() for character in question):
        return texts
    return [
        text
        for text in capitalized
        if not _is_part_of_name(question, text) and text.lower() not in VAGUE_WORDS
    ]


def _full_names(question: str) -> list[str]:
    """Return the names of several words: those with a capital letter each, or all if no word has one."""
    spans = [text for text in name_spans(question).values() if " " in text]
    if not any(character.isupper() for character in question):
        return spans
    return [text for text in spans if all(word[:1].isupper() for word in text.split())]


def _is_part_of_name(question: str, word: str) -> bool:
    """Return True if the word before or after has a capital letter too, as in a full name."""
    at = question.find(word)
    before, after = question[:at].split(" ")[-2:-1], question[at + len(word) :].split(" ")[1:2]
    is_followed = question[at + len(word) :].startswith(" ")
    neighbours = [*before, *(after if is_followed else [])]
    return any(
        text[:1].isupper() and text.strip(".,;:?!").lower() not in STOP_WORDS | VAGUE_WORDS
        for text in neighbours
    )


def _pages_by_part(db: Database, words: list[str]) -> tuple[dict[int, str], set[str]]:
    """Return the pages that a word names uniquely, with that word, and the words that name several pages.

    The word is the first or last name of a person, or the beginning of another title.
    """
    matches: dict[int, str] = {}
    ambiguous: set[str] = set()
    index = text_index.TextIndex(db, text_index.SPACED)
    for word in words:
        key = fold_name(word)
        if not key:
            continue
        titled = index.matching_pages(f'title : "{key}"', SearchFilters(), MOST_NAMESAKES)
        heads = pages.page_heads(db, titled).values()
        people = [head.id for head in heads if head.type == "person" and key in person_name_parts(head.title)]
        others = [
            head.id for head in heads if head.type != "person" and fold_name(head.title).startswith(f"{key} ")
        ]
        namesakes = people or others
        if len(namesakes) > 1 or len(titled) == MOST_NAMESAKES:
            ambiguous.add(word)
        elif namesakes:
            matches[namesakes[0]] = word
    return matches, ambiguous


class _FactJudge:
    """Compares facts with the words of one question."""

    def __init__(self, db: Database, question: str) -> None:
        self._stemmer = text_index.Stemmer(db)
        self._asked = self._stems(question)
        self._related = [self._stems(words) for words in _RELATED_WORDS if self._stems(words) & self._asked]
        self._scores: dict[int, int] = {}

    def score(self, row: FactRow) -> int:
        """Return 0 if neither predicate nor value has a word of the question besides the subject's name."""
        if row.id not in self._scores:
            asked = self._asked - text_search.stem_text(self._stemmer, row.subject).every
            spellings = " ".join([row.predicate, *predicate_spellings(canonical_predicate(row.predicate))])
            own = self._stems(row.predicate)
            related = self._stems(spellings).union(*(words for words in self._related if words & own))
            values = self._stems(row.object)
            self._scores[row.id] = 4 * bool(own & asked) + 2 * bool(related & asked) + len(values & asked)
        return self._scores[row.id]

    def has_predicate(self, row: FactRow) -> bool:
        """Return True if the predicate itself has a word of the question."""
        return bool(self._stems(row.predicate) & self._asked)

    def has_words(self, row: FactRow, besides: str) -> bool:
        """Return True if predicate or value has a word of the question that is not in the text `besides`."""
        asked = self._asked - text_search.stem_text(self._stemmer, f"{row.subject} {besides}").every
        own = self._stems(f"{row.predicate} {row.object}")
        return bool(own.union(*(words for words in self._related if words & own)) & asked)

    def _stems(self, text: str) -> frozenset[str]:
        return text_search.stem_text(self._stemmer, text.replace("_", " ")).telling


def _facts_of_first_pages(db: Database, ranked: RankedQuestion, judge: "_FactJudge") -> dict[int, FactRow]:
    """Return facts of the pages that match best whose predicate has a word of the question.

    Some questions name no subject, because the context makes it clear, as in "who sends our mails?".
    """
    rows = [row for page in ranked.pages[:MOST_FIRST_PAGES] for row in facts.read_facts(db, page)]
    return {row.id: row for row in rows if judge.has_predicate(row)}


def _facts_by_object(db: Database, named: _NamedPages, judge: _FactJudge) -> list[FactRow]:
    """Return facts whose object is or contains a name of the question, the best matches first.

    Other facts of the same subjects follow if they have a word of the question: a question for the head of
    sales at a company is answered by two facts, the employer and the post.
    """
    rows = facts.facts_naming(db, named.objects)
    if not rows:
        return []
    subjects = list(dict.fromkeys(row.subject_key for row in rows))[:MOST_SUBJECTS]
    names = " ".join(named.objects)
    others = [
        row for row in facts.facts_about(db, subjects) if judge.has_words(row, names) and row not in rows
    ]
    answering = {row.subject_key for row in others}
    rows.sort(key=lambda row: (row.subject_key not in answering, not judge.has_words(row, names)))
    return [*rows, *others]


def _holds(row: FactRow, today: str) -> bool:
    return row.valid_until is None or is_valid_on(None, row.valid_until, today)


def _newest_first(row: FactRow) -> tuple[tuple[int, ...], int]:
    since = tuple(-int(part) for part in (row.valid_from or "0").split("-") if part.isdigit())
    return since, -row.id


def _held_in_period(row: FactRow, ranked: RankedQuestion) -> bool:
    return any(
        (row.valid_from or "") <= period.end and (row.valid_until or "9999") > period.start
        for period in ranked.candidates.periods
    )


def _fact_text(row: FactRow, slug: str, holds: bool) -> str:
    text = f"{row.subject} {row.predicate.replace('_', ' ')} {row.object}"
    if holds:
        text += f", since {row.valid_from}" if row.valid_from else ""
    elif row.valid_until and row.valid_until == row.valid_from:  # it never held
        text += ", withdrawn"
    else:
        text += f", ended {row.valid_until}" if row.valid_until else ", superseded"
    return f"{text} ({slug})" if slug else text
