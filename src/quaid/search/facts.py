"""Find the facts that answer a question, and the results that state an outdated value."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quaid.model.chunker import is_struck, split_statements, without_struck
from quaid.model.dates import DAY_WORD, fold_days
from quaid.model.facts import (
    canonical_predicate,
    is_valid_on,
    object_key,
    person_name_parts,
    predicate_spellings,
)
from quaid.model.page import CLASSES, PERSON, WEB
from quaid.model.slug import SPELLED_LETTERS, fold_name
from quaid.search import text as text_search
from quaid.search.candidates import RankedQuestion
from quaid.search.question import VAGUE_WORDS, name_spans, names_asked, sought
from quaid.search.results import ENTRY_MARK, SUPERSEDED, Entry, SearchResult
from quaid.search.text import STOP_WORDS
from quaid.storage import facts, pages, text_index
from quaid.storage.facts import FactRow
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters


class OutdatedValue(NamedTuple):
    """A value of a fact that has ended."""

    value: str
    current: tuple[str, ...]
    """The current values of the same subject and predicate."""
    subject: str
    names: tuple[str, ...]
    """Normalized names of the subject."""
    cues: frozenset[str]
    """Stems of words that state the predicate."""
    now: str
    """The predicate, followed by the current values or by how the fact ended."""
    source: str = ""
    """The source of the fact: the end of the slug of the page that it was taken from."""
    ended: str = ""
    """The day on which the value was replaced, or "" if that is not known or if it was never valid."""
    newer_sources: tuple[str, ...] = ()
    """The sources of the current values."""
    words: tuple[frozenset[str], ...] = ()
    """For each word of the predicate, its stem and those of related words."""
    trust: int = 0
    """The trust class of the fact. Texts of a higher class are not outdated because of it."""


_REMARK = re.compile(r"(?<!\s)\s*\([^()]*\)")
_NOT_STATED = re.compile(
    r"\b(?:not|never|from|no longer|instead of|rather than|former|formerly|previously|until|replaces|was)"
    r"(?: the| a| an| at| in| on)?\Z"
)
"""Words directly before a value that show that the value is mentioned, but not stated as current."""
_TAKEN_BACK = re.compile(
    r"\b(no longer|any ?more|gave \w+ (up|back)|given (up|back)|(was|were|is) (wrong|too|vacant)|retracted|withdrawn"
    r"|replace[sd]?|supersede[sd]?|instead of|rather than|used to|retire[sd]?|resign(s|ed)|leaves|left|promoted"
    r"|dropped|removed)\b",
    re.IGNORECASE,
)
"""Words of a statement that reports an end, a change or a withdrawal."""
_TASK = re.compile(r"\[[ xX]\]\s")
_BETWEEN_NAME_AND_VALUE = r"(?: (?:is|as|the|a|an|our|their|its))*"
ENOUGH_OF_VALUE = 0.75
"""A statement contains a value if it has all of its numbers and days, and at least this share of its words."""


class OutdatedCheck:
    """Finds statements of outdated values."""

    def __init__(self, stemmer: text_index.Stemmer, outdated: Sequence[OutdatedValue]) -> None:
        self._stemmer, self._outdated = stemmer, outdated
        self._value_stems = {value: self._stems(_REMARK.sub("", value.value)) for value in outdated}

    def mark(self, entry: "Entry") -> "Entry":
        """Mark an entry that states an outdated value.

        The statement becomes the line, `status` is set to superseded and `now` to the current value. But if the
        section also states the current value, that statement becomes the line, and the entry is not marked.
        Tasks do not count as statements. If `latest` states an outdated value, it is cleared.
        """
        if not self._outdated:
            return entry
        result = entry.result
        if result.latest and any(self._find(value, result.latest, entry) for value in self._outdated):
            result = result._replace(latest="")
        # Entries of the notebook are unrelated to each other, so only the shown line counts.
        is_list = result.origin in ("notebook", "daily")
        statements = [] if is_list else split_statements(entry.section)
        for value in self._outdated:
            if self._is_newer(value, result) or value.trust > CLASSES.index(result.trust):
                continue
            old = next((text for text in (entry.line, *statements) if self._find(value, text, entry)), "")
            if not old:
                continue
            current = next((text for text in statements if self._has_current(value, text)), "")
            if current and not is_struck(current):
                return entry._replace(line=current[: text_search.LONGEST_LINE], result=result)
            result = result._replace(status=SUPERSEDED, now=value.now)
            return entry._replace(line=old[: text_search.LONGEST_LINE], result=result)
        return entry._replace(result=result)

    def _is_newer(self, value: OutdatedValue, result: SearchResult) -> bool:
        """Return True if a result is from the day of the change or later, or is the source of a current value.

        For the source of the outdated value, only a later day counts.
        """
        if any(result.slug.endswith(source) for source in value.newer_sources):
            return True
        if not value.ended or not result.date:
            return False
        is_source = bool(value.source) and result.slug.endswith(value.source)
        return result.date > value.ended if is_source else result.date >= value.ended

    def _find(self, value: OutdatedValue, line: str, entry: "Entry") -> bool:
        """Return True if a line states the outdated value for its subject, and none of the current values."""
        line = ENTRY_MARK.sub("", without_struck(line))
        if not line or _TASK.search(line) or _TAKEN_BACK.search(line) or not self._has_value(value, line):
            return False
        return self._is_about(value, line, entry) and not self._has_current(value, line)

    def _has_value(self, value: OutdatedValue, line: str) -> bool:
        text = _folded(line)
        phrase = _folded(_REMARK.sub("", value.value))
        if f" {phrase} " in f" {text} ":
            before = [
                text[: match.start()].rstrip() for match in re.finditer(rf"\b{re.escape(phrase)}\b", text)
            ]
            return not all(_NOT_STATED.search(words) for words in before)
        stems, own = self._value_stems[value], self._stems(line)
        numbers = {stem for stem in stems if any(character.isdigit() for character in stem)}
        return (
            len(stems) > 1
            and numbers <= own
            and len(stems & own) >= ENOUGH_OF_VALUE * len(stems)
            and not any(
                _NOT_STATED.search(text[: match.start()].rstrip())
                for number in numbers
                for match in re.finditer(rf"\b{number}\b", text)
            )
        )

    def _is_about(self, value: OutdatedValue, line: str, entry: "Entry") -> bool:
        """Return True if the line, or the title and headings above it, name the subject and the predicate.

        The page from which the fact was taken need not name the subject. The predicate need not be named if the
        value is next to the name of the subject.
        """
        result, text = entry.result, f" {_folded(line)} "
        above = f" {_folded(f'{result.title} {result.heading_path}')} "
        is_source = bool(value.source) and result.slug.endswith(value.source)
        subject = self._stems(value.subject)
        is_subject = is_source or any(f" {name} " in text or f" {name} " in above for name in value.names)
        if not is_subject and len(subject) > 1:
            is_subject = subject <= self._stems(
                f"{result.title} {result.heading_path} {entry.section} {line}"
            )
        if not is_subject:
            return False
        stems = self._value_stems[value]
        words = self._stems(f"{line} {result.heading_path.partition(' > ')[2]}")
        is_short = len(stems) < 2 and not any(map(DAY_WORD.fullmatch, stems))
        # If a word of the predicate is missing, a value of one word may belong to something else in the line.
        is_stated = not is_short or all(word & words for word in value.words)
        if is_stated and ((value.cues & words) - stems or (is_source and len(stems) > 1)):
            return True
        if value.value[:1].isupper():  # two names side by side, as in "Ada Moreau, Birchworks"
            return False
        phrase = re.escape(_folded(_REMARK.sub("", value.value)))
        return any(
            re.search(
                rf" {re.escape(name)}{_BETWEEN_NAME_AND_VALUE} {phrase} | {phrase} {re.escape(name)} ", text
            )
            for name in value.names
        )

    def _has_current(self, value: OutdatedValue, line: str) -> bool:
        """Return True if a line states a current value: as a phrase, by a new number, or by most of its new words."""
        text, own = f" {_folded(line)} ", self._stems(line)
        for current in value.current:
            stems = self._stems(_REMARK.sub("", current))
            new = stems - self._value_stems[value]
            numbers = {stem for stem in new if any(character.isdigit() for character in stem)}
            if f" {_folded(_REMARK.sub('', current))} " in text or numbers & own:
                return True
            if new and not numbers and len(new & own) >= ENOUGH_OF_VALUE * len(new):
                return True
        return False

    def _stems(self, text: str) -> frozenset[str]:
        return text_search.content_stems(self._stemmer, text)


def _folded(text: str) -> str:
    """Return text in normalized form, with each day as one word."""
    return fold_name(fold_days(text))


MOST_SOURCES = 3
"""Facts taken from one of this many first pages are compared with the question, whichever page they belong to."""
MOST_FACTS = 5
MOST_PAGES_NAMED = 5
MOST_FIRST_PAGES = 10
"""Number of first pages whose own facts are compared with the question."""


class MatchingFacts(NamedTuple):
    """Facts that answer a question."""

    lines: tuple[str, ...]
    """Current facts, then those that have ended; for questions about the past, see `_FactOrder.lines`."""
    outdated: tuple[OutdatedValue, ...]
    is_answer: bool
    """True if a current fact answers the question about a subject that it names."""
    is_past: bool = False
    """True if the question is only about the past. Then no value is outdated."""


NO_FACTS = MatchingFacts((), (), False)

_PAST = re.compile(
    r"""\bbefore(?=\s*(?:[?.!,;)]|\Z|and\b|or\b|that\b|then\b))
    | \bprevious(?:ly)?\b (?!\ (?:meeting|call|session|mail|message|conversation|answer|question|chat)s?\b)
    | \bformer(?:ly)?\b | \bhistory\b | \bearlier\b (?!\ than) | \boriginal(?:ly)?\b | \binitial(?:ly)?\b
    | \b(?<!is\ )(?<!are\ )(?<!be\ )used\ to\b | \b(?:in|from)\ the\ past\b | \bat\ first\b
    | \bfirst\ (?:\w+ed|set|chosen|given)\b | \b(?:was|were)\ once\b | \bonce\ (?:was|were)\b
    | \b(?:was|were|did)\b.*\b(?:the|our|my|their|his|her|its|'s)\ old\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PRESENT = re.compile(
    r"\b(now|current(ly)?|today|at present|at the moment|these days|still|nowadays|latest)\b"
    r"|\A\W*(what|who|where|which( \w+)?|how( \w+)?|when)('s| is| are| does| do| has| have)\b",
    re.IGNORECASE,
)

MOST_ENDED = 2
"""Maximum number of ended facts to list, unless the question is about the past."""
ENOUGH_OF_BEST = 0.6
"""Facts with at least this share of the best rating are listed."""
WHOLE_PREDICATE = 3
"""Weight of the words of a predicate of several words if the question has all of them; otherwise the weight is 2."""
LEAST_SHARE = 0.25
"""A fact matches by its value alone if the value has at least this share of the question's words, by weight."""
MOST_NAMESAKES = 40
"""A word in the titles of this many pages or more is treated as ambiguous."""
MOST_SUBJECTS = 20
"""If the question names the object, the facts of at most this many subjects are read."""

_RELATED_WORDS = (
    "job role title position post work employer employed occupation profession head",
    "due deadline eta release date finish ship launch",
    "live home city residence reside address based move location located",
    "boss manager report lead supervisor",
    "spouse husband wife married partner",
    "phone telephone mobile number",
    "email mail",
    "price cost budget fee rate charge pay",
    "birthday born birth",
    "provider vendor supplier send host",
    "staff headcount people employee",
    "retry attempt try",
    "keep kept retention retain",
)
"""Groups of words that ask for the same thing in questions and predicates."""

_GENERIC_WORDS = " ".join(VAGUE_WORDS) + (
    " use used using current currently today present moment know known about info information summary overview"
    " details fact facts remember say said many much long often status state date day please name exactly"
)
"""Words of a question that do not indicate which fact it asks for."""

_KINDS_OF_VALUE = (
    (re.compile(r"\bhow (many|much|long|often|large|big|fast|high|old)\b", re.IGNORECASE), re.compile(r"\d")),
    (re.compile(r"\bwhen\b|\bwhat (date|day)\b", re.IGNORECASE), re.compile(r"\d|\b[A-Z][a-z]+day\b")),
    (re.compile(r"\bwho\b", re.IGNORECASE), re.compile(r"\b[A-Z]")),
)
"""Patterns of questions, each with a pattern of the values that can answer them."""


def _asks_for_past(ranked: RankedQuestion) -> bool:
    """Return True if a question is about the past, so that facts that have ended may answer it."""
    is_dated = any(period.first <= ranked.today for period in ranked.candidates.periods)
    return is_dated or bool(_PAST.search(ranked.question))


def _asks_only_for_past(ranked: RankedQuestion) -> bool:
    """Return True if a question is about the past and not also about the present."""
    return _asks_for_past(ranked) and not _PRESENT.search(ranked.question)


def matching_facts(db: Database, ranked: RankedQuestion) -> MatchingFacts:
    """Return the facts that answer a question: facts about its subject that have one of the question's other words.

    If the question consists only of the subject, the newest facts about the subject are returned.
    """
    if not facts.has_facts(db):
        return NO_FACTS._replace(is_past=_asks_only_for_past(ranked))
    named = _NamedPages.find(db, ranked)
    rows = {
        row.id: row for row in facts.read_facts(db, "subject", {*name_spans(ranked.question), *named.keys})
    }
    about = set(rows)
    for page in dict.fromkeys([*named.page_ids, *ranked.pages[:MOST_FIRST_PAGES]]):
        own = facts.read_facts(db, "page", [page])
        about |= {row.id for row in own if row.subject_key in named.parts.get(page, ())}
        rows |= {row.id: row for row in own}
    judge = _FactJudge(db, ranked, named, list(rows.values()))
    from_sources = [row for row in _facts_from_first_results(db, ranked) if row.id not in rows]
    judge.add(from_sources)
    rows |= {row.id: row for row in from_sources if judge.has_predicate(row)}
    replaced = {row.supersedes_id for row in rows.values()}
    holding = [row for row in rows.values() if row.id not in replaced and _is_current(row, ranked)]
    if not any(judge.rate(row) and judge.has_names(row) for row in holding):
        by_object = _facts_by_object(db, named)
        judge.add(by_object)
        if not _asks_for_past(ranked):
            by_object = [row for row in by_object if _is_current(row, ranked)]
        rows |= {row.id: row for row in by_object}
        holding += [row for row in by_object if _is_current(row, ranked) and row not in holding]
    ended = [row for row in rows.values() if row not in holding]
    holding = _distinct(holding)
    choice = _FactOrder(judge, holding, ended, ranked)
    limit = WEB if ranked.filters.trust_limit is None else ranked.filters.trust_limit
    order = [row for row in choice.lines() if row.trust <= limit]
    is_answer = any(judge.answers(row) for row in order if row in holding)
    if not order and not judge.asks_for_more:
        known = [row for row in holding if row.id in about and row.trust <= limit]
        order = sorted(known, key=_newest_first)[:MOST_FACTS]
    slugs = {page: head.slug for page, head in pages.page_heads(db, [row.page_id for row in order]).items()}
    lines = [_fact_text(row, slugs.get(row.page_id, ""), row in holding) for row in order]
    asked = [row for row in ended if row.id in choice.asked or (row.id in about and not judge.asks_for_more)]
    is_past = _asks_only_for_past(ranked)
    trusted = [row for row in holding if row.trust <= limit]
    outdated = (
        () if is_past else _outdated_values(judge, trusted, [row for row in asked if row.trust <= limit])
    )
    return MatchingFacts(tuple(lines), outdated, is_answer, is_past)


class _FactOrder:
    """Chooses and orders the facts that are listed.

    Facts with the same subject and predicate are one group, which is rated by its best fact.
    """

    def __init__(
        self,
        judge: "_FactJudge",
        holding: list[FactRow],
        ended: list[FactRow],
        ranked: RankedQuestion,
    ) -> None:
        self._judge, self._ranked = judge, ranked
        self._is_past = _asks_for_past(ranked)
        self._is_only_past = _asks_only_for_past(ranked)
        groups: dict[tuple[str, str], list[FactRow]] = {}
        for row in [*holding, *ended]:
            groups.setdefault((row.subject_key, canonical_predicate(row.predicate)), []).append(row)
        rated = [(self._rate_group(own, holding), own) for own in groups.values()]
        best = max((rating for rating, _ in rated), default=0.0)
        chosen = [pair for pair in rated if pair[0] and pair[0] >= ENOUGH_OF_BEST * best]
        chosen.sort(key=lambda pair: (-pair[0], min(map(_newest_first, pair[1]))))
        self._holding = [row for _, own in chosen for row in sorted(own, key=_newest_first) if row in holding]
        # Ended facts without a successor are listed only if they answer better than current facts.
        most = max((rating for rating, own in rated if any(row in holding for row in own)), default=0.0)
        self._ended = [
            row
            for _, own in chosen
            if self._is_past or any(row in holding for row in own) or max(map(judge.rate, own)) > most
            for row in sorted(own, key=_newest_first)
            if row not in holding
        ]
        self.asked = {
            row.id
            for own in groups.values()
            if max(map(judge.rate, own)) >= ENOUGH_OF_BEST * best > 0
            for row in own
        }

    def _rate_group(self, rows: list[FactRow], holding: list[FactRow]) -> float:
        """Return a group's best rating. Ended values count half, unless the question is only about the past."""
        share = 1.0 if self._is_only_past else 0.5
        return max(self._judge.rate(row) * (1.0 if row in holding else share) for row in rows)

    def lines(self) -> list[FactRow]:
        """Return up to MOST_FACTS facts: current facts first, then ended ones.

        If the question is about the past, up to MOST_ENDED places are reserved for ended facts. If it is only
        about the past, current facts with a day of the question come first, then the facts that were valid in
        its period, then all others; within the last two groups, ended facts come first.
        """
        if not self._is_past:
            current = self._holding[:MOST_FACTS]
            return [*current, *self._ended[: min(MOST_ENDED, MOST_FACTS - len(current))]]
        ended = sorted(self._ended, key=lambda row: not _held_in_period(row, self._ranked))
        current = self._holding[: MOST_FACTS - min(len(ended), MOST_ENDED)]
        ended = ended[: MOST_FACTS - len(current)]
        if not self._is_only_past:
            return [*current, *ended]
        days = {row.id for row in current if self._judge.has_day(row)}
        return sorted(
            [*ended, *current], key=lambda row: (row.id not in days, not _held_in_period(row, self._ranked))
        )


def _outdated_values(
    judge: "_FactJudge", holding: list[FactRow], ended: list[FactRow]
) -> tuple[OutdatedValue, ...]:
    """Return the ended values, each with the values that replaced it. Values that are also current are left out."""
    outdated = []
    for row in ended:
        predicate = canonical_predicate(row.predicate)
        newer = [
            other
            for other in holding
            if other.subject_key == row.subject_key and canonical_predicate(other.predicate) == predicate
        ]
        now = tuple(other.object for other in newer)
        if object_key(row.object) in map(object_key, now):
            continue
        is_withdrawn = row.valid_until is not None and row.valid_until == row.valid_from
        instead = "; ".join(now) or (
            "withdrawn" if is_withdrawn else f"ended {row.valid_until or ''}".strip()
        )
        outdated.append(
            OutdatedValue(
                row.object,
                now,
                row.subject,
                (row.subject_key, *person_name_parts(row.subject)),
                judge.cues(row),
                f"{row.predicate.replace('_', ' ')}: {instead}",
                row.source_ref,
                "" if is_withdrawn else row.valid_until or "",
                tuple(other.source_ref for other in newer if other.source_ref not in ("", row.source_ref)),
                judge.predicate_words(row),
                max([row.trust, *(other.trust for other in newer)]),
            )
        )
    return tuple(outdated)


def _distinct(rows: list[FactRow]) -> list[FactRow]:
    """Keep the most trusted of the facts with the same subject, predicate and object."""
    unique: dict[tuple[str, str, str], FactRow] = {}
    for row in sorted(rows, key=lambda row: row.trust):
        key = (row.subject_key, canonical_predicate(row.predicate), object_key(row.object))
        unique.setdefault(key, row)
    return list(unique.values())


class _NamedPages(NamedTuple):
    """The pages that a question names: by title, alias, first or last name, or the first word of a title."""

    page_ids: list[int]
    keys: set[str]
    """Normalized titles of the pages, and subjects of facts that begin with a word of the question."""
    parts: dict[int, set[str]]
    """The normalized names of each page; for a person also the first and the last name."""
    objects: set[str]
    """The names as written, to compare with objects of facts."""
    namesakes: set[str]
    """Words of the question that are a first or last name of several people."""

    @classmethod
    def find(cls, db: Database, ranked: RankedQuestion) -> "_NamedPages":
        named = ranked.candidates.named
        words = _capitalized_words(ranked.question)
        partly, ambiguous, namesakes = ({}, set(), set()) if named.exact else pages_by_part(db, words)
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
        return cls(page_ids, keys, parts, objects, namesakes)


def _capitalized_words(question: str) -> list[str]:
    """Return the words that may be part of a name, as written, but without a possessive ending.

    These are the capitalized words, or all words if the question has no capital letter. A capitalized word next
    to another one is not returned, since the name is found as a whole.
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
    """Return the sequences of several words that may be a name: those with only capitalized words.

    If the question has no capital letter, return all sequences.
    """
    spans = [text for text in name_spans(question).values() if " " in text]
    if not any(character.isupper() for character in question):
        return spans
    return [text for text in spans if all(word[:1].isupper() for word in text.split())]


def _is_part_of_name(question: str, word: str) -> bool:
    """Return True if the word before or after this word is capitalized too, as in a full name."""
    at = question.find(word)
    before, after = question[:at].split(" ")[-2:-1], question[at + len(word) :].split(" ")[1:2]
    is_followed = question[at + len(word) :].startswith(" ")
    neighbours = [*before, *(after if is_followed else [])]
    return any(
        text[:1].isupper() and text.strip(".,;:?!").lower() not in STOP_WORDS | VAGUE_WORDS
        for text in neighbours
    )


def pages_by_part(db: Database, words: list[str]) -> tuple[dict[int, str], set[str], set[str]]:
    """Find the pages that each word names, as a person's first or last name or as the first word of any other title.

    Return three values: the pages that a word names uniquely, each with that word; the words that name
    several pages; and the words that name several people.
    """
    matches: dict[int, str] = {}
    ambiguous: set[str] = set()
    shared: set[str] = set()
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
            shared |= {word} if len(people) > 1 else set()
        elif namesakes:
            matches[namesakes[0]] = word
    return matches, ambiguous, shared


_VALUES_SOUGHT = frozenset(
    {
        "mail address",
        "phone number",
        "password",
        "web address",
        "price",
        "duration",
        "measure",
        "number",
        "time",
    }
)
"""Kinds of values, such as a price. If a question asks for one, a fact without it is not an answer."""


class _FactJudge:
    """Rates how well facts answer one question."""

    def __init__(self, db: Database, ranked: RankedQuestion, named: _NamedPages, rows: list[FactRow]) -> None:
        self._db, self._stemmer = db, text_index.Stemmer(db)
        question = ranked.question
        weights = ranked.candidates.word_weights
        asked = self._stems(question) - self._stems(_GENERIC_WORDS)
        by_stem = {stem: weight for word, weight in weights.items() for stem in self._stems(word)}
        usual = max(weights.values(), default=1.0)
        self._weights = {stem: by_stem.get(stem, usual) for stem in asked}
        heads = pages.page_heads(db, named.page_ids).values()
        names = " ".join([*names_asked(question, weights), *(head.title for head in heads)])
        self._names = asked & self._stems(names)
        self._ambiguous = self._stems(" ".join(named.namesakes))
        full = _full_names(question) if any(character.isupper() for character in question) else []
        self._full_names = [self._stems(name) for name in full if name.split()[0].lower() not in VAGUE_WORDS]
        self._namesakes: set[int] = set()  # ids of the facts for which `_is_namesake` is true
        self._related = [stems for stems in map(self._stems, _RELATED_WORDS) if stems & asked]
        self._values = [value for asks, value in _KINDS_OF_VALUE if asks.search(question)]
        self._sought = sought(question)
        self._subjects: dict[int, frozenset[str]] = {}  # stems of the subject and the page, by fact
        self._names_by_subject: dict[str, frozenset[str]] = {}
        self._ratings: dict[int, tuple[float, bool]] = {}
        self.add(rows)

    @property
    def asks_for_more(self) -> bool:
        """True if the question has words besides names."""
        return bool(self._weights.keys() - self._names)

    def add(self, rows: list[FactRow]) -> None:
        """Add facts to be rated: index the words of their subjects, and the names of the question they contain."""
        heads = pages.page_heads(self._db, list({row.page_id for row in rows}))
        for row in rows:
            head = heads.get(row.page_id)
            page = f"{head.title} {head.slug.rpartition('/')[2].replace('-', ' ')}" if head else ""
            self._subjects[row.id] = self._stems(f"{row.subject} {page}")
            names = self._names & (self._subjects[row.id] | self._stems(f"{row.predicate} {row.object}"))
            if head and head.type == "person" and self._is_namesake(names, self._subjects[row.id]):
                self._namesakes.add(row.id)
            self._names_by_subject[row.subject_key] = names | self._names_by_subject.get(
                row.subject_key, frozenset()
            )
        self._ratings.clear()

    def _is_namesake(self, names: frozenset[str], subject: frozenset[str]) -> bool:
        """Return True if the subject may be a person who only shares a name with the person in the question.

        It may be if only an ambiguous name matches, or only a part of a full name in the question.
        """
        if names and names <= self._ambiguous:
            return True
        return any(full & subject and not full <= subject for full in self._full_names if len(full) == 2)

    def rate(self, row: FactRow) -> float:
        """Return how well a fact answers the question.

        Return 0 if the fact lacks the names in the question or may be about a namesake, or if its predicate has no
        other word of the question and its value too few (see LEAST_SHARE).
        """
        return self._rating(row)[0]

    def answers(self, row: FactRow) -> bool:
        """Return True if a fact is about a subject that the question names and has the value that it asks for."""
        return self._rating(row)[1]

    def has_names(self, row: FactRow) -> bool:
        """Return True if the question has no names, or if facts with the same subject contain one of them."""
        return not self._names or bool(self._names_by_subject[row.subject_key])

    def has_predicate(self, row: FactRow) -> bool:
        """Return True if the question has at least two words of the predicate."""
        return len(self._weights.keys() & self._stems(row.predicate)) > 1

    def has_day(self, row: FactRow) -> bool:
        """Return True if the value is or contains a day that the question names."""
        return any(DAY_WORD.fullmatch(stem) for stem in self._weights.keys() & self._stems(row.object))

    def cues(self, row: FactRow) -> frozenset[str]:
        """Return the stems of the words that can state the predicate of a fact, and of related words."""
        own = self._stems(row.predicate)
        spellings = self._stems(" ".join(predicate_spellings(canonical_predicate(row.predicate))))
        groups = (stems for stems in map(self._stems, _RELATED_WORDS) if stems & own)
        return own.union(spellings, *groups)

    def predicate_words(self, row: FactRow) -> tuple[frozenset[str], ...]:
        """Return, for each word of the predicate except generic ones, its stem and those of related words."""
        own = self._stems(row.predicate) - self._stems(_GENERIC_WORDS)
        groups = [self._stems(words) for words in _RELATED_WORDS]
        return tuple(
            frozenset({stem}).union(*(group for group in groups if stem in group)) for stem in sorted(own)
        )

    def _rating(self, row: FactRow) -> tuple[float, bool]:
        if row.id not in self._ratings:
            self._ratings[row.id] = self._compare(row)
        return self._ratings[row.id]

    def _compare(self, row: FactRow) -> tuple[float, bool]:
        names = self._names_by_subject[row.subject_key]
        if not self.has_names(row) or row.id in self._namesakes:
            return 0.0, False
        subject, value = self._subjects[row.id], self._stems(row.object)
        own = self._stems(row.predicate)
        is_whole = len(own) > 1 and own <= self._weights.keys()
        core = self._weights.keys() - (subject - own if is_whole else subject)
        spellings = self._stems(" ".join(predicate_spellings(canonical_predicate(row.predicate))))
        related = spellings.union(*(stems for stems in self._related if stems & own))
        in_own, in_related = core & own, (core & related) - own
        named_value = (self._names & value) - subject
        in_value = (core & value) - own - self._names
        answer = (WHOLE_PREDICATE if is_whole else 2) * self._sum(in_own) + self._sum(in_value)
        answer += 1.2 * max((self._weights[stem] for stem in in_related), default=0.0)
        is_direct = bool(in_own or in_related)
        if not is_direct and self._sum(in_value) < LEAST_SHARE * self._sum(core - named_value):
            answer = 0.0
        if not answer and named_value and not self.asks_for_more:
            answer = self._sum(named_value)
        if not answer:
            return 0.0, False
        has_kind = all(pattern.search(row.object) for pattern in self._values)
        answer /= 1 if has_kind else 2
        covered = self._sum(in_own | in_related | in_value | named_value)
        is_answer = (
            bool(names) and has_kind and 2 * covered >= self._sum(core) and not self._lacks_sought(row)
        )
        return answer + 0.5 * self._sum((self._weights.keys() & subject) | named_value), is_answer

    def _lacks_sought(self, row: FactRow) -> bool:
        """Return True if the question asks for a kind of value in _VALUES_SOUGHT, and the fact has none."""
        if self._sought is None or self._sought.kind not in _VALUES_SOUGHT:
            return False
        return not self._sought.is_in(f"{row.predicate.replace('_', ' ')} is {row.object}")

    def _sum(self, stems: "Iterable[str]") -> float:
        return sum(self._weights[stem] for stem in stems)

    def _stems(self, text: str) -> frozenset[str]:
        return text_search.content_stems(self._stemmer, text.translate(SPELLED_LETTERS))


def _facts_from_first_results(db: Database, ranked: RankedQuestion) -> list[FactRow]:
    """Return facts on any page that were taken from one of the first results."""
    heads = pages.page_heads(db, ranked.pages[:MOST_SOURCES]).values()
    return facts.read_facts(db, "source", [head.slug.removeprefix("sources/") for head in heads])


def _facts_by_object(db: Database, named: _NamedPages) -> list[FactRow]:
    """Return facts whose object is or contains a name of the question, and other facts of the same subjects.

    A question for the head of sales at a company is answered by two facts, the employer and the post.
    """
    rows = facts.facts_naming(db, named.objects)
    subjects = list(dict.fromkeys(row.subject_key for row in rows))[:MOST_SUBJECTS]
    return [*rows, *(row for row in facts.read_facts(db, "subject", subjects) if row not in rows)]


def _is_current(row: FactRow, ranked: RankedQuestion) -> bool:
    return is_valid_on(None, row.valid_until, ranked.today)


def _newest_first(row: FactRow) -> tuple[int, tuple[int, ...], int]:
    """Return a sort key: by trust class, then newest first."""
    since = tuple(-int(part) for part in (row.valid_from or "0").split("-") if part.isdigit())
    return row.trust, since, -row.id


def _held_in_period(row: FactRow, ranked: RankedQuestion) -> bool:
    return any(
        (row.valid_from or "") <= period.last and (row.valid_until or "9999") > period.first
        for period in ranked.candidates.periods
    )


def _fact_text(row: FactRow, slug: str, holds: bool) -> str:
    text = f"{row.subject} {row.predicate.replace('_', ' ')} {row.object}"
    if holds:
        text += f", since {row.valid_from}" if row.valid_from else ""
    elif row.valid_until and row.valid_until == row.valid_from:  # the fact was never valid
        text += ", withdrawn"
    else:
        text += f", ended {row.valid_until}" if row.valid_until else ", superseded"
    if row.trust != PERSON:
        author = f"claimed by {row.author}" if row.author not in ("", "owner") else CLASSES[row.trust]
        text += f", {author}"
    return f"{text} ({slug})" if slug else text
