"""Answer a question in one sentence from facts and links, or from a sentence of a page.

Only questions of known forms are answered, such as where someone lives or since when, and only if each name
belongs to exactly one page or subject. Other questions have no direct answer, because a wrong answer is worse
than none.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import QuaidError
from quaid.model.dates import find_dates
from quaid.model.english import blank_out_code, split_sentences
from quaid.model.facts import (
    INVERSE_PREDICATES,
    SINGLE_VALUED,
    canonical_predicate,
    is_valid_on,
    object_key,
    person_name_parts,
)
from quaid.model.page import CLASSES, PERSON, WEB, TrustName
from quaid.model.plain_text import RuleFile, one_line, shorten
from quaid.model.slug import address, fold_name
from quaid.search.facts import pages_by_part
from quaid.storage import facts, links, pages, trust

if TYPE_CHECKING:
    from quaid.storage.facts import FactLine, PastTexts
    from quaid.storage.sqlite.connection import Database

LONGEST_QUESTION = 200
MOST_VALUES = 20
"""A question that matches more values than this has no direct answer."""
MOST_FORMER = 3
LONGEST_QUOTE = 240
WORD_STEM = 6
"""Number of leading letters by which words of predicates and sentences are compared, so that headquartered
equals headquarters.
"""


class AnswerFact(NamedTuple):
    """A fact or link that answers a question, with its source."""

    says: str
    value: str
    value_slug: str
    """The address of the page about the value, or ""."""
    since: str
    until: str
    slug: str
    """The slug of the page that contains the fact; for an answer read from a page, its address."""
    quote: str
    author: str
    """The client that recorded the fact, "owner" for a person, or "" if unknown."""
    source: str
    confidence: float
    recorded_at: str
    trust: TrustName = "person"


class DirectAnswer(NamedTuple):
    """An answer from facts and links, or from a sentence of a page."""

    says: str
    facts: tuple[AnswerFact, ...]
    before: tuple[AnswerFact, ...] = ()
    """Values that have ended, latest first."""
    is_disputed: bool = False
    """True if several current values contradict each other."""
    is_read: bool = False
    """True if the answer was read from a sentence of a page instead of a fact or link."""
    claims: tuple[AnswerFact, ...] = ()
    """Other values, of a lower trust class than the answer. They do not replace it."""

    @property
    def line(self) -> str:
        """The answer in one line, for agents."""
        first = self.facts[0]
        mark = f"{first.trust}; " if first.trust != "person" else ""
        others = "".join(f"; {claim_text(claim)}" for claim in self.claims[:MOST_FORMER])
        if self.is_read:
            return f"{self.says} ({mark}read from {first.slug}){others}"
        since = f", since {first.since}" if first.since and len(self.facts) == 1 else ""
        disputed = "contradictory; " if self.is_disputed else ""
        return f"{self.says}{since} ({mark}{disputed}{first.slug}){others}"


def claim_text(claim: AnswerFact) -> str:
    """Format a claim of a lower trust class, with its author."""
    author = f" by {claim.author}" if claim.author not in ("", "owner") else ""
    return f"claimed{author} ({claim.trust}): {claim.value}"


_Wants = Literal["value", "former", "subjects", "begin", "end"]


class Question(NamedTuple):
    """A parsed question: it asks for values or subjects of predicates, or when a relation began or ended."""

    wants: _Wants
    predicates: tuple[str, ...]
    subject: str = ""
    object: str = ""
    year: str = ""


_LIVES, _WORKS = ("lives_in",), ("works_at",)
_STARTS, _ENDS, _COSTS = ("starts_on", "start_date"), ("ends_on", "end_date"), ("price", "cost")
_VERBS = {
    **dict.fromkeys(("live", "living", "lived", "reside", "residing"), _LIVES),
    **dict.fromkeys(("work", "working", "worked"), _WORKS),
    **dict.fromkeys(("start", "begin", "open", "take place"), _STARTS),
    **dict.fromkeys(("end", "close", "finish"), _ENDS),
}
_NOUNS = {
    **dict.fromkeys(
        ("phone number", "telephone number", "telephone", "mobile", "mobile number", "number"), ("phone",)
    ),
    **dict.fromkeys(("email address", "e-mail", "e-mail address", "mail address"), ("email",)),
    **dict.fromkeys(("boss", "manager"), ("reports_to",)),
    **dict.fromkeys(("birthday", "date of birth"), ("birthday", "born_on")),
    **dict.fromkeys(("job", "position", "title"), ("role",)),
    **dict.fromkeys(("wife", "husband", "spouse"), ("married_to",)),
    **dict.fromkeys(("founder", "founders"), ("founder", "founded_by")),
    **dict.fromkeys(("owner",), ("owner", "owned_by")),
    **dict.fromkeys(("deadline", "due date"), ("due_on", "deadline")),
    **dict.fromkeys(("home", "city"), _LIVES),
    **dict.fromkeys(("employer",), _WORKS),
    **dict.fromkeys(("headquarters", "head office", "office", "location"), ("headquartered_in", "location")),
    **dict.fromkeys(("leader", "head"), ("leads", "leader")),
    **dict.fromkeys(("start", "start date", "opening"), _STARTS),
    **dict.fromkeys(("end", "end date"), _ENDS),
    **dict.fromkeys(("price", "cost"), _COSTS),
}
_INVERSE = {
    **INVERSE_PREDICATES,
    "founder": "founded",
    "founded_by": "founded",
    "owner": "owns",
    "owned_by": "owns",
}
"""Maps a predicate of a question to the same relation with subject and object swapped."""
_NO_NOUNS = frozenset(
    "name names point idea best way difference problem matter thing latest first last next".split()
)
"""Nouns that do not name a predicate, as in "what is the point of X"."""


_LIVE, _YEAR = r"(?P<verb>live|reside|work)", r"(?: in (?P<year>(?:19|20)\d\d))?"
_EMPLOYER = r"(?:who|(?:what|which) company)"
_FORMS: tuple[tuple[str, _Wants, tuple[str, ...]], ...] = (
    (rf"where (?:does|do) (?P<x>.+?) {_LIVE}", "value", ()),
    (r"where(?: is|'s) (?P<x>.+?) (?P<verb>living|residing|working)", "value", ()),
    (r"(?:what|which) (?:city|town|place|country) does (?P<x>.+?) live in", "value", _LIVES),
    (rf"{_EMPLOYER} does (?P<x>.+?) work (?:for|at)", "value", _WORKS),
    (rf"where did (?P<x>.+?) {_LIVE} (?:before|previously|earlier)", "former", ()),
    (rf"where did (?P<x>.+?) {_LIVE} in (?P<year>(?:19|20)\d\d)", "former", ()),
    (rf"where did (?P<x>.+?) use to {_LIVE}", "former", ()),
    (
        rf"{_EMPLOYER} did (?P<x>.+?) (?:use to )?(?P<verb>work) (?:for|at)(?: before| previously)?",
        "former",
        (),
    ),
    (r"(?:how|where) (?:can|do) (?:I|we|you) (?:call|phone|ring) (?P<x>.+)", "value", ("phone",)),
    (
        r"how (?:can|do) (?:I|we|you) (?:reach|contact) (?P<x>.+?) (?:by|on the|over the) "
        r"(?P<p>phone|telephone|mobile|e-?mail)",
        "value",
        (),
    ),
    (
        r"(?:when|what day) (?:does|do|will) (?P<x>.+?) (?P<verb>start|begin|open|take place|end|close|finish)",
        "value",
        (),
    ),
    (r"(?:how much|what) (?:does|do|will) (?P<x>.+?) cost", "value", _COSTS),
    (
        r"(?:how much|how high)(?: is|'s) the (?P<p>rent|price|budget|cost) (?:of|for) (?P<x>.+)",
        "value",
        (),
    ),
    (r"what does (?P<x>.+?) do(?: for a living| for work)?", "value", ("role",)),
    (r"who (?:lives|is living) in (?P<y>.+)", "subjects", _LIVES),
    (r"who (?:works|is working) (?:at|for) (?P<y>.+)", "subjects", _WORKS),
    (
        r"when did (?P<x>.+?) (?:join|start (?:working )?(?:at|for)|begin at) (?P<y>.+)",
        "begin",
        _WORKS,
    ),
    (r"when did (?P<x>.+?) move to (?P<y>.+)", "begin", _LIVES),
    (r"when did (?P<x>.+?) (?:leave|quit) (?P<y>.+)", "end", (*_WORKS, *_LIVES)),
    (
        r"since when (?:does|has|did) (?P<x>.+?) (?:been )?"
        r"(?:(?:live|lived|reside|living) in|(?:work|worked|working) (?:at|for)) (?P<y>.+)",
        "begin",
        (*_WORKS, *_LIVES),
    ),
    (r"who founded (?P<x>.+)", "value", _NOUNS["founder"]),
    (r"when was (?P<x>.+?) founded", "value", ("founded_on",)),
    (r"when was (?P<x>.+?) born", "value", ("born_on", "birthday")),
    (r"where was (?P<x>.+?) born", "value", ("born_in",)),
    (r"who(?: is|'s) (?P<x>.+?) married to", "value", ("married_to",)),
    (r"who(?: is|'s) married to (?P<x>.+)", "value", ("married_to",)),
    (
        r"where(?: is|'s) (?P<x>.+?) (?:based|headquartered|located)",
        "value",
        ("headquartered_in", "location"),
    ),
    (r"when(?: is|'s) (?P<x>.+?) due", "value", ("due_on", "deadline")),
    (r"who owns (?P<x>.+)", "value", ("owner", "owned_by")),
    (r"who does (?P<x>.+?) report to", "value", ("reports_to",)),
    (r"who reports to (?P<y>.+)", "subjects", ("reports_to",)),
    (r"what does (?P<x>.+?) prefer", "value", ("prefers",)),
    (r"who (?P<verb>advises|manages|leads|runs|chairs) (?P<y>.+)", "subjects", ()),
    (rf"(?:what|who|where|when)(?: is|'s) (?P<x>.+?)(?:'s|(?<=s)') (?P<p>[\w -]+?){_YEAR}", "value", ()),
    (r"(?:what|who|where|when)(?: is|'s) the (?P<p>[\w -]+?) (?:of|for) (?P<x>.+)", "value", ()),
    (r"what was (?P<x>.+?)(?:'s|(?<=s)') (?:old|former|previous) (?P<p>[\w -]+)", "former", ()),
)
"""The known forms of questions, each with what it asks for and its predicates.

A form without predicates has those of its verb or of the noun `p`. `x` is the subject, `y` the object.
"""


@cache
def _forms() -> list[tuple[re.Pattern[str], _Wants, tuple[str, ...]]]:
    """Return the forms of questions, compiled at first use."""
    return [(re.compile(form, re.IGNORECASE), wants, predicates) for form, wants, predicates in _FORMS]


def _predicates_of(parts: dict[str, str]) -> tuple[str, ...]:
    """Return the predicates that the verb or the noun of a question names; () if there are none."""
    if "verb" in parts:
        verb = parts["verb"].lower()
        return _VERBS.get(verb) or (canonical_predicate(verb),)
    noun = re.sub(r"^(?:current|present) ", "", parts["p"].lower().strip())
    if noun in _NO_NOUNS or parts.get("year"):
        return ()
    return _NOUNS.get(noun) or (canonical_predicate(noun),)


_LEAD = re.compile(
    r"^(?:(?:hey|hi|so|and|please|ok(?:ay)?)[, ]+)*(?:(?:do you know|can you tell me|tell me|remind me) )?",
    re.IGNORECASE,
)
_NOW = re.compile(
    r" (?:now|currently|today|these days|at the moment|right now|nowadays|at present)$", re.IGNORECASE
)
_CURRENTLY = re.compile(r"\b(?:currently|now) ", re.IGNORECASE)


def read_question(text: str) -> Question | None:
    """Parse a question. Return None if it has no known form."""
    text = " ".join(text.replace("’", "'").split()).rstrip(" ?!.")
    if not text or len(text) > LONGEST_QUESTION:
        return None
    text = _CURRENTLY.sub("", _NOW.sub("", _LEAD.sub("", text)))
    for form, wants, named in _forms():
        if match := form.fullmatch(text):
            parts = match.groupdict("")
            predicates = named or _predicates_of(parts)
            whom = (parts.get(name, "") for name in ("x", "y", "year"))
            return Question(wants, predicates, *whom) if predicates else None
    return None


class _Entity(NamedTuple):
    """The page that a name in a question refers to, or the subject of facts if there is no such page."""

    name: str
    slug: str
    page_id: int | None
    address: str
    keys: frozenset[str]
    """Normalized names of the entity."""

    def is_named(self, text: str) -> bool:
        return fold_name(text.rpartition("/")[2]) in self.keys or fold_name(text) in self.keys


def _find_entity(db: "Database", text: str) -> _Entity | None:
    """Return the entity with this name, or else the only one with it as a part of its name.

    Return None if there is no such entity or more than one.
    """
    text = re.sub(r"^(?:the|my|our) ", "", text.strip(" \"“”'"), flags=re.IGNORECASE)
    key = fold_name(text)
    if not key:
        return None
    named = pages.pages_called(db, [key])
    ids = facts.pages_meant(db, named)
    if len(ids) > 1:
        return None
    if not ids and not facts.read_facts(db, "subject", [key]):
        parts, ambiguous, _ = pages_by_part(db, [text]) if " " not in text else ({}, set(), set())
        subjects = set() if parts or ambiguous else facts.subjects_beginning(db, [key])
        if len(parts) + len(subjects) != 1:
            return None
        if subjects:
            return _subject_entity(db, subjects.pop())
        ids = set(parts)
    return _page_entity(db, ids.pop()) if ids else _subject_entity(db, key)


def _page_entity(db: "Database", page_id: int) -> _Entity | None:
    head = pages.page_heads(db, [page_id]).get(page_id)
    if head is None:
        return None
    keys = {*pages.page_names(db, [page_id]), fold_name(head.title), fold_name(head.slug)}
    return _Entity(head.title, head.slug, page_id, address(head.collection, head.slug), frozenset(keys))


def _subject_entity(db: "Database", key: str) -> _Entity:
    rows = facts.read_facts(db, "subject", [key])
    name = rows[-1].subject if rows else key
    return _Entity(name, "", None, name, frozenset({key}))


def find_answer(db: "Database", text: str, today: str, past: "PastTexts") -> DirectAnswer | None:
    """Return the answer to a question from facts and links, or else from the page of its subject, or None.

    If a sentence of the page is of a higher trust class than the facts, the sentence is the answer, and the facts
    with other values are in `claims`.
    """
    question = read_question(text)
    if question is None:
        return None
    search = _Search(db, question, today, past)
    answer = search.answer() if facts.has_facts(db) or links.count(db) else None
    if answer is not None and answer.facts[0].trust == "person":
        return answer
    read = search.read_page()
    if answer is not None and read is None:
        read = search.read_sentence()
    if answer is None or read is None:
        return answer or read
    if CLASSES.index(read.facts[0].trust) >= CLASSES.index(answer.facts[0].trust):
        return answer
    stated = object_key(read.facts[0].value)
    others = [row for row in answer.facts if object_key(row.value) != stated]
    return read._replace(claims=(*read.claims, *others))


class _Search:
    """Finds the facts and links that answer one question."""

    def __init__(self, db: "Database", question: Question, today: str, past: "PastTexts") -> None:
        self.db, self.question, self.today, self.past = db, question, today, past
        self._ended: dict[str, int] = {}
        """Values of facts that have ended, with their trust classes."""

    def answer(self) -> DirectAnswer | None:
        question = self.question
        if question.wants == "subjects":
            return self._subjects()
        entity = _find_entity(self.db, question.subject)
        if entity is None:
            return None
        rows = self._values(entity)
        if question.wants in ("begin", "end"):
            return self._time(_most_trusted(rows)[0])
        current, former = self._split(rows)
        self._ended = {object_key(row.value): _class(row) for row in former}
        if question.wants == "former":
            chosen = [
                row for row in (former if not question.year else [*current, *former]) if self._held(row)
            ]
            if not chosen or (question.year and len({object_key(row.value) for row in chosen}) > 1):
                return None
            return DirectAnswer(chosen[0].says, tuple(chosen[:1]), tuple(chosen[1 : 1 + MOST_FORMER]))
        if not current or len(current) > MOST_VALUES:
            return None
        current, claims = _most_trusted(current)
        is_single = any(predicate in SINGLE_VALUED for predicate in question.predicates)
        if is_single:
            current, former = _without_succeeded(current, former)
        others = (row.value for row in current[1:])
        says = (" or " if is_single else ", ").join([current[0].says, *others])
        former = [row for row in former if _class(row) <= _class(current[0])]
        return DirectAnswer(
            *(says, tuple(current), tuple(former[:MOST_FORMER]), is_single and len(current) > 1),
            claims=tuple(claims),
        )

    def read_page(self) -> DirectAnswer | None:
        """Return the answer from the text of the subject's page, or None."""
        question = self.question
        kind = next((_kinds()[name] for name in question.predicates if name in _kinds()), "")
        is_asked = question.wants in ("value", "former") or (
            question.wants == "subjects" and kind == "leader"
        )
        if not kind or not is_asked or question.year:
            return None
        entity = _find_entity(self.db, question.subject or question.object)
        if entity is None or entity.page_id is None:
            return None
        reader = _PageReader(self.db, entity, kind, self.today)
        return reader.answer(is_former=question.wants == "former", ended=self._ended)

    def read_sentence(self) -> DirectAnswer | None:
        """Return a sentence on the subject's page that has the words of the predicate and was written by the user.

        It is preferred to a fact of a lower trust class. Return None if there is no such sentence.
        """
        entity = _find_entity(self.db, self.question.subject)
        if self.question.wants != "value" or entity is None or entity.page_id is None:
            return None
        truth = pages.page_texts(self.db, [entity.page_id])[entity.page_id][0][:LONGEST_READ]
        classes = trust.of_page(self.db, entity.page_id)
        wanted = [fold_name(predicate.replace("_", " ")).split() for predicate in self.question.predicates]
        for sentence in split_sentences(truth):
            words = {word[:WORD_STEM] for word in fold_name(sentence).split()}
            is_stated = any(words.issuperset(word[:WORD_STEM] for word in name) for name in wanted)
            if is_stated and classes.of_excerpt(sentence, truth) == PERSON:
                says = shorten(one_line(sentence), LONGEST_QUOTE)
                fact = AnswerFact(says, says, "", "", "", entity.address, says, "", "", 1.0, "")
                return DirectAnswer(says, (fact,), is_read=True)
        return None

    def _held(self, row: AnswerFact) -> bool:
        """Return True if a value was valid in the year of the question."""
        year = self.question.year
        return not year or ((row.since or "0") <= f"{year}-12-31" and (row.until or "9999") > f"{year}-01-01")

    def _values(self, entity: _Entity) -> list[AnswerFact]:
        """Return the values that the predicates have for a subject, at any time, facts before links."""
        wanted = set(self.question.predicates)
        inverse = {_INVERSE[predicate] for predicate in wanted if predicate in _INVERSE}
        rows = []
        for line in self._lines(entity):
            predicate = canonical_predicate(line.predicate)
            if predicate in wanted and self._is_subject(entity, line):
                rows.append(self._fact(line, line.object))
            elif predicate in inverse and entity.is_named(line.object):
                rows.append(self._fact(line, line.subject))
        return rows

    def _is_subject(self, entity: _Entity, line: "FactLine") -> bool:
        if line.kind == "link":
            return line.subject == entity.slug
        own_parts = person_name_parts(entity.name) if line.slug == entity.slug else set()
        return entity.is_named(line.subject) or fold_name(line.subject) in own_parts

    def _lines(self, entity: _Entity) -> "list[FactLine]":
        try:
            _, lines, _, _ = facts.facts_of_subject(self.db, entity.address, None, "", 0, self.past)
        except QuaidError:  # the name belongs to several pages
            return []
        lines = [
            line for line in lines if line.since is None or line.until is None or line.since < line.until
        ]
        return sorted(lines, key=lambda line: line.kind)

    def _subjects(self) -> DirectAnswer | None:
        """Return the subjects that have one of the predicates with the object of the question."""
        question = self.question
        entity = _find_entity(self.db, question.object)
        name = entity.name if entity else question.object.strip(" \"“”'")
        wanted = set(question.predicates)
        lines: list[FactLine] = []
        if entity and entity.page_id is not None:
            lines = [line for line in self._lines(entity) if entity.is_named(line.object)]
        else:
            subjects = {row.subject for row in facts.read_facts(self.db, "object", [name])}
            for subject in sorted(subjects)[: MOST_VALUES + 1]:
                if found := _find_entity(self.db, subject):
                    lines += (
                        line for line in self._lines(found) if object_key(line.object) == object_key(name)
                    )
        rows = [
            self._fact(line, line.subject) for line in lines if canonical_predicate(line.predicate) in wanted
        ]
        current, former = self._split(rows)
        current.sort(key=lambda row: row.value)
        if not current or len(current) > MOST_VALUES:
            return None
        says = current[0].says
        if len(current) > 1:
            says = f"{phrase(question.predicates[0]).capitalize()} {name}: {', '.join(row.value for row in current)}"
        return DirectAnswer(says, tuple(current), tuple(former[:MOST_FORMER]))

    def _time(self, rows: list[AnswerFact]) -> DirectAnswer | None:
        """Return when the relation to the object of the question began or ended, or None if that is not one day."""
        other = _find_entity(self.db, self.question.object)
        key = object_key(self.question.object)
        is_begin = self.question.wants == "begin"
        rows = [
            row
            for row in rows
            if (object_key(row.value) == key or (other is not None and other.is_named(row.value)))
            and (row.since if is_begin else row.until)
        ]
        rows.sort(key=lambda row: row.since or row.until, reverse=True)
        if not rows or len({row.since if is_begin else row.until for row in rows}) > 1:
            return None
        first = rows[0]
        return DirectAnswer(
            f"{first.says} {f'since {first.since}' if is_begin else f'until {first.until}'}", (first,)
        )

    def _split(self, rows: list[AnswerFact]) -> tuple[list[AnswerFact], list[AnswerFact]]:
        """Return the current values, and the ended values, latest first, without duplicates."""
        current: dict[str, AnswerFact] = {}
        former: dict[str, AnswerFact] = {}
        for row in sorted(rows, key=_class):
            if is_valid_on(row.since or None, row.until or None, self.today):
                current.setdefault(object_key(row.value), row)
        for row in sorted(rows, key=lambda row: row.until, reverse=True):
            if row.until and row.until <= self.today and object_key(row.value) not in current:
                former.setdefault(object_key(row.value), row)
        return list(current.values()), list(former.values())

    def _fact(self, line: "FactLine", shown: str) -> AnswerFact:
        """Return a fact as an answer with the value `shown`, which is the subject or the object of the fact."""
        subject, value = (
            page[1] if (page := find_page(self.db, name)) else name for name in (line.subject, line.object)
        )
        page = find_page(self.db, shown)
        return AnswerFact(
            says=sentence(
                subject, line.predicate, value, is_past=bool(line.until and line.until <= self.today)
            ),
            value=subject if shown == line.subject else value,
            value_slug=page[0] if page else "",
            since=line.since or "",
            until=line.until or "",
            slug=line.slug,
            quote=shorten(one_line(line.quote), LONGEST_QUOTE),
            author=line.author,
            source=line.source,
            confidence=line.confidence,
            recorded_at=line.recorded_at,
            trust=line.trust,
        )


def _class(row: AnswerFact) -> int:
    return CLASSES.index(row.trust)


def _most_trusted(rows: list[AnswerFact]) -> tuple[list[AnswerFact], list[AnswerFact]]:
    """Split values into those of the highest trust class and the others."""
    best = min(map(_class, rows), default=PERSON)
    return [row for row in rows if _class(row) == best], [row for row in rows if _class(row) != best]


def find_page(db: "Database", name: str) -> tuple[str, str] | None:
    """Return the address and title of the page with this name, or None if there is not exactly one."""
    ids = facts.pages_meant(db, pages.pages_called(db, [fold_name(name)]))
    heads = pages.page_heads(db, sorted(ids)) if len(ids) == 1 else {}
    return next(((address(head.collection, head.slug), head.title) for head in heads.values()), None)


def _without_succeeded(
    current: list[AnswerFact], former: list[AnswerFact]
) -> tuple[list[AnswerFact], list[AnswerFact]]:
    """Treat undated values as former if they were recorded before another current value began."""
    latest = max((row.since for row in current), default="")
    old = [row for row in current if not row.since and row.recorded_at[:10] < latest]
    return [row for row in current if row not in old], [*old, *former]


_VERB_PHRASES = {
    "lives": "lived",
    "works": "worked",
    "reports": "reported",
    "owns": "owned",
    "prefers": "preferred",
    "advises": "advised",
    "leads": "led",
    "manages": "managed",
    "runs": "ran",
    "studies": "studied",
    "likes": "liked",
    "founded": "founded",
    "is": "was",
}
"""Verbs at the beginning of predicates, with their past forms."""
_PARTICIPLES = frozenset(
    "married headquartered based located born owned founded employed managed led due".split()
)
_ACRONYMS = re.compile(r"\b(?:ceo|cto|cfo|coo|cmo|cpo|vp)\b")


def phrase(predicate: str, *, is_past: bool = False) -> str:
    """Return a predicate as a phrase, such as "is married to"; "" if it begins with no known verb or participle."""
    words = _ACRONYMS.sub(lambda match: match[0].upper(), predicate.replace("_", " "))
    first, _, rest = words.partition(" ")
    if first in _PARTICIPLES and rest:
        return f"{'was' if is_past or first in ('born', 'founded') else 'is'} {words}"
    if first not in _VERB_PHRASES:
        return ""
    return f"{_VERB_PHRASES[first] if is_past else first} {rest}".strip()


def sentence(subject: str, predicate: str, value: str, *, is_past: bool = False) -> str:
    """Return a fact as a sentence without a full stop."""
    if words := phrase(predicate, is_past=is_past):
        if words.endswith(" on") and len(value) == 4 and value.isdigit():
            words = f"{words[:-3]} in"
        return f"{subject} {words} {value}"
    return f"The {predicate.replace('_', ' ')} of {subject} {'was' if is_past else 'is'} {value}"


LONGEST_READ = 20_000
"""Maximum characters of a page that are read for an answer."""
MOST_ENTRIES = 40


@cache
def _rules() -> RuleFile:
    return RuleFile("answers.toml")


@cache
def _kinds() -> dict[str, str]:
    """Map each predicate of a question to the kind of value that is read from a page."""
    kinds = _rules().data["kind"]
    return {predicate: name for name, kind in kinds.items() for predicate in kind["predicates"].split()}


@cache
def _patterns(kind: str) -> "tuple[re.Pattern[str], ...]":
    """Return the patterns of sentences that state a kind of value. Compiled on first use."""
    rules = _rules()
    return tuple(
        re.compile(rules.expand(source), re.IGNORECASE) for source in rules.data["kind"][kind]["patterns"]
    )


@cache
def _cues(kind: str) -> "re.Pattern[str]":
    rules = _rules()
    return re.compile(rules.expand(rules.data["kind"][kind]["cues"]), re.IGNORECASE)


@cache
def _words(name: str) -> "re.Pattern[str]":
    return re.compile(rf"\b(?:{'|'.join(sorted(_rules().words(name)))})\b", re.IGNORECASE)


@cache
def _no_name() -> "re.Pattern[str]":
    return re.compile(_rules().expand("{no_name}"), re.IGNORECASE)


@cache
def _other_subject() -> "re.Pattern[str]":
    """Return the pattern of sentences about a person other than the page's subject."""
    relatives = "|".join(sorted(f for name in ("she", "he", "they", "anyone") for f in _rules().words(name)))
    return re.compile(
        rf"(?i:[§~]'s (?:\w+ )?(?P<relative>{relatives})\b)|(?!(?:You|I|We|One|This|That|There|It) )"
        + _rules().expand(
            r"(?:\[|{word} {word}|{word} (?:and {word} )?(?:is|was|are|were|has|had|said|says|told|thinks|lives|"
            r"works|can|will|could|moved|left|joined|met|visited|wants|called|also|never)\b)"
        )
    )


_CLAUSE = re.compile(r"[,;:()–—] ?|\b(?:and|but|where|because|although|though|while) ", re.IGNORECASE)
_ENDED = re.compile(r"\b(?:until|till|no longer|back then|in those days|as an? (?:child|student|boy|girl)|"
                    r"at (?:that|the) time|years ago|from (?:19|20)\d\d (?:to|until))\b", re.IGNORECASE)  # fmt: skip
_STRESSED = re.compile(r"\b(?:now|today|currently|these days|nowadays|at the moment)\b", re.IGNORECASE)
_OWN_WORDS = re.compile(r"the |our |work |everything ", re.IGNORECASE)
_VERB_FIRST = re.compile(r"(?:\w+(?:s|ed)|born|left|quit|led|run|now|has|is) ", re.IGNORECASE)
_NOT_OWN = re.compile(
    r"\s*\((?:[^()]*(?:\b(?:old|former|wrong|outdated|not|until)\b|['’]s\b)|[^\W\d_]+\))"
    r"|,? (?:and|or) (?:(?:in|at|on|for) )?(?-i:[A-Z\[+\d])",
    re.IGNORECASE,
)
"""Text after a value which shows that the value is outdated or not the subject's own, or that more values follow."""
_JOB = re.compile(r"\b(?:as an?|team|department|role|job|company|firm|desk)\b", re.IGNORECASE)
_HEADING = re.compile(r"[ \t]*(#{1,6})[ \t]+(.*)")
_SKIPPED_LINE = re.compile(r"[ \t]*(?:>|\||[-*+] \[[ xX]\])")
_LINK = re.compile(r"\[\[([^\[\]|#^]+)[^\[\]|]*(?:\|([^\[\]]*))?\]\]|\[([^\[\]]+)\]\(([^()\s]*)\)")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_]|[*_](?!\w)")
_STRUCK = re.compile(r"~~.*?~~", re.DOTALL)


class _StatedValue(NamedTuple):
    """A value that a sentence of a page states."""

    value: str
    day: str
    """The first day of the value's date, or ""."""
    is_former: bool
    is_stressed: bool
    """True if a word such as "now" marks the value as the current one."""
    is_entry: bool
    """True if the sentence is in the timeline."""
    quote: str
    trust: int = PERSON

    @property
    def key(self) -> str:
        digits = re.sub(r"\D", "", self.value)
        return digits if len(digits) > 5 and self.value.strip("+( ")[:1].isdigit() else fold_name(self.value)


class _PageReader:
    """Reads one kind of value from the page of a subject."""

    def __init__(self, db: "Database", entity: _Entity, kind: str, today: str) -> None:
        self.db, self.entity, self.today = db, entity, today
        page_id = entity.page_id or 0
        self.is_person = pages.page_heads(db, [page_id])[page_id].type == "person"
        self.kind = (
            {"home": "seat", "seat": "home"}.get(kind, kind) if self.is_person == (kind == "seat") else kind
        )
        self.rules = _rules().data["kind"][self.kind]
        self.links: dict[str, str] = {}
        names = {name for name in entity.keys if "/" not in name} | {fold_name(entity.name)}
        if self.is_person:
            names |= {*person_name_parts(entity.name), *entity.name.split()[:1], *entity.name.split()[-1:]}
            self.pronouns = {"she": "she", "her": "she's", "he": "he", "his": "he's", "him": "he"}
            self.pronouns |= {"they": "they", "their": "they's"}
        else:
            nouns = [
                *fold_name(entity.name).split()[-1:],
                "company",
                "firm",
                "project",
                "house",
                "place",
                "event",
            ]
            self.pronouns = {"it": "it", "its": "it's", "they": "it", "their": "it's", "our": "it's"}
            self.pronouns |= {f"the {noun}": "it" for noun in nouns}
        pronouns = "|".join(map(re.escape, self.pronouns))
        spelled = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self.subject = re.compile(
            rf"(?<![\w@.§-])(?:(?P<name>(?:the )?(?:{re.escape(entity.name)}|(?-i:(?=[^a-z]))(?:{spelled})))"
            rf"|(?P<pronoun>(?!the (?-i:[^a-z]))(?:{pronouns})))"
            r"(?P<own>['’]s|['’](?=\s))?(?![\w@§-]|\.\w)",
            re.IGNORECASE,
        )

    def statements(self) -> list[_StatedValue]:
        """Return the values that the page states: first those above the timeline, then those in its newest entries.

        The timeline is read only for kinds of values that can change.
        """
        page_id = self.entity.page_id or 0
        truth, timeline = pages.page_texts(self.db, [page_id])[page_id]
        truth, classes = truth[:LONGEST_READ], trust.of_page(self.db, page_id)
        found = [
            row._replace(trust=classes.of_excerpt(row.quote, truth))
            for paragraph in self._paragraphs(truth)
            for row in self._read(paragraph, "")
        ]
        if self.rules.get("has_past"):
            for entry in pages.timeline_entries(self.db, page_id, MOST_ENTRIES):
                own = classes.of_excerpt(entry.summary, timeline)
                read = self._read(f"{entry.summary}\n{entry.detail}", entry.date)
                found += (row._replace(trust=own) for row in read)
        return found

    def names_subject(self, sentence: str) -> bool:
        """Return True if a sentence contains a name of the subject and not only a pronoun."""
        return any(match["name"] for match in self.subject.finditer(sentence))

    def _paragraphs(self, text: str) -> "Iterator[str]":
        """Yield the paragraphs and list items of Markdown, except in sections about other people or the past."""
        lines: list[str] = []
        is_skipped = False
        for line in [*_STRUCK.sub(" ", blank_out_code(text)).splitlines(), ""]:
            heading, bullet = _HEADING.match(line), _BULLET.match(line)
            if heading or not line.strip() or bullet or _SKIPPED_LINE.match(line):
                if lines:
                    yield " ".join(lines)
                lines = []
            if heading:
                is_own = len(heading[1]) == 1 or not (
                    _words("sections").search(heading[2]) or "[" in heading[2]
                )
                is_skipped = not is_own
            elif line.strip() and not is_skipped and not _SKIPPED_LINE.match(line):
                lines.append(line[bullet.end() if bullet else 0 :].strip())

    def _read(self, paragraph: str, day: str) -> "Iterator[_StatedValue]":
        cues = _cues(self.kind)
        if not cues.search(paragraph):
            return
        other = ""  # the pronoun that means a person other than the subject; "anyone" if every pronoun may
        for raw in split_sentences(paragraph):
            sentence = self._marked(_LINK.sub(self._link, raw.replace("§", " ")).strip(), other)
            if not sentence or sentence.endswith("?"):
                continue
            about = _other_subject().match(sentence)
            if cues.search(raw):
                yield from self._statements_in(sentence, one_line(raw), day, bool(other), bool(about))
            if about:
                relative = (about["relative"] or "").lower()
                other = next(
                    (name for name in ("she", "he", "they") if relative in _rules().words(name)), "anyone"
                )
            elif "§" in sentence:
                other = ""

    def _link(self, match: "re.Match[str]") -> str:
        target = (match[1] or match[4]).strip()
        named = find_page(self.db, target)
        if named is not None and named[0] == self.entity.address:
            return self.entity.name
        shown = (named[1] if named else (match[2] or match[3] or target.rpartition("/")[2])).strip()
        self.links[shown] = named[0] if named else ""
        return f"[{shown}]" if named or match[1] else shown

    def _marked(self, sentence: str, other: str) -> str:
        """Replace names of the subject in a sentence by §, and pronouns that refer to the subject by ~."""

        def mark(match: "re.Match[str]") -> str:
            if match["name"]:
                return "§'s" if match["own"] else "§"
            meaning, _, own = self.pronouns[match["pronoun"].lower()].partition("'")
            if other and self.is_person and other in ("anyone", meaning):
                return match[0]
            return "~'s" if own or match["own"] else "~"

        return _EMPHASIS.sub("", self.subject.sub(mark, sentence))

    def _statements_in(
        self, sentence: str, quote: str, day: str, is_unclear: bool, is_about_other: bool
    ) -> "Iterator[_StatedValue]":
        for pattern in _patterns(self.kind):
            for match in pattern.finditer(sentence):
                groups = match.groupdict()
                if not self._is_stated(sentence, match, is_unclear, is_about_other):
                    continue
                following = re.split(r"[;.]", sentence[match.end() :], maxsplit=1)[0]
                has_ended = bool(_ENDED.search(following)) or bool(_ENDED.search(match[0]))
                date = self._date(sentence, match, day)
                if date is None:
                    continue
                is_stressed = bool(_STRESSED.search(_CLAUSE.split(following)[0] + match[0]))
                for group in ("v", "was"):
                    value = (groups.get(group) or "").strip(" .,[]")
                    value = re.sub(r"^(?:the|The) ", "", value.replace("[", "").replace("]", ""))
                    if value and self._is_possible(value, sentence):
                        is_former = group == "was" or has_ended
                        yield _StatedValue(
                            value, date, is_former, is_stressed and group == "v", bool(day), quote
                        )

    def _is_possible(self, value: str, sentence: str) -> bool:
        """Return False if a value cannot be a place or company: if it is no name, a job, or a person with a page.

        A place cannot be a company with a page either. Values of other kinds are not checked.
        """
        if self.kind not in ("home", "seat", "employer"):
            return True
        if _no_name().fullmatch(value) or (self.kind == "home" and _JOB.search(sentence)):
            return False
        entity = _find_entity(self.db, value)
        if entity is None or entity.page_id is None:
            return True
        kind = pages.page_heads(self.db, [entity.page_id])[entity.page_id].type
        return kind != "person" and (kind != "company" or self.kind == "employer")

    def _is_stated(
        self, sentence: str, match: "re.Match[str]", is_unclear: bool, is_about_other: bool
    ) -> bool:
        """Return True if the clause is about the page's subject and is neither hedged nor quoted."""
        start, before = match.start(), sentence[: match.start()]
        if before.count('"') % 2 or before.count("“") > before.count("”"):
            return False
        if _NOT_OWN.match(sentence, match.end()):
            return False
        clause = 0
        for cut in _CLAUSE.finditer(before):
            clause = cut.end()
        hedged = match.start("h") if "h" in match.re.groupindex and match["h"] is not None else clause
        if _words("hedges").search(sentence[hedged : match.end()]):
            return False
        if _OWN_WORDS.match(match[0]) or re.search(r"[§~]", match[0]):
            own = sentence[: match.end()].replace("§'s", "")
            return not (is_about_other and self.is_person and "§" not in own)
        if start == 0 or before.endswith("; "):
            return not (is_unclear and self.is_person)
        is_begun = re.search(r"[§~](?!')", before) or _VERB_FIRST.match(before)
        return bool(is_begun) and not (is_about_other or re.search(r"\bwho(?:se)?\b|\bthat\b", before))

    def _date(self, sentence: str, match: "re.Match[str]", day: str) -> str | None:
        """Return the first day of the date of a statement, "" if unknown, or None if it is in the future."""
        if not self.rules.get("has_past"):
            return ""
        end = next((cut.start() for cut in re.finditer(r"[;,]", sentence[match.end() :])), len(sentence))
        dates = find_dates(sentence[match.start() : match.end() + end])
        first = dates[0].first if len(dates) == 1 else day
        return None if first > self.today else first

    def answer(self, *, is_former: bool, ended: dict[str, int]) -> DirectAnswer | None:
        """Return the current or the former value with its sentence.

        Values whose fact has ended are former ones, unless the sentence is of a higher trust class than the fact.
        """
        every = self.statements()
        best_class = min((row.trust for row in every if not row.is_former), default=PERSON)
        rows = [row for row in every if row.trust <= best_class]
        former = [
            row for row in rows if row.is_former or ended.get(object_key(row.value), WEB + 1) <= row.trust
        ]
        current = [row for row in rows if row not in former]
        best = _current_statement(current)
        if best is not None and any(_is_same(best, row) and row.day >= best.day for row in former):
            best = None
        if is_former:
            older = [row for row in current if best and row.day < best.day]
            former = [row for row in (*former, *older) if best is None or not _is_same(best, row)]
            if best is None and current:
                return None
            best = _latest_former(former)
        if best is None:
            return None
        text = self.rules.get("before" if is_former else "says", "")
        if not text:
            return None
        if best.value[0].isdigit() and self.kind in ("home", "seat"):
            text = text.replace(" in {value}", " at {value}")
        elif re.fullmatch(r"[^\W\d]+ \d{4}", best.value):  # a month without a day
            text = text.replace(" on {value}", " in {value}")
        others = {
            row.key: self._fact(row, text)
            for row in every
            if row.trust > best_class and not row.is_former and not _is_same(best, row)
        }
        fact = self._fact(best, text)
        return DirectAnswer(fact.says, (fact,), is_read=True, claims=tuple(others.values()))

    def _fact(self, row: _StatedValue, text: str) -> AnswerFact:
        return AnswerFact(
            says=text.format(subject=self.entity.name, value=row.value),
            value=row.value,
            value_slug=self.links.get(row.value, ""),
            since="",
            until="",
            slug=self.entity.address,
            quote=shorten(row.quote, LONGEST_QUOTE),
            author="",
            source="",
            confidence=1.0,
            recorded_at="",
            trust=CLASSES[row.trust],
        )


class StatedFact(NamedTuple):
    """A fact about the subject of a page, stated in a text."""

    predicate: str
    value: str
    day: str
    """The first day of the fact's date, or ""."""
    quote: str


def stated_facts(db: "Database", page_id: int, text: str, day: str, today: str) -> list[StatedFact]:
    """Return the facts about the subject of a page that a text from elsewhere states.

    Only sentences that name the subject count, because a pronoun may refer to a person other than the subject.
    Values that the text describes as former ones are left out.
    """
    entity = _page_entity(db, page_id)
    found: dict[tuple[str, str], StatedFact] = {}
    for kind, rules in _rules().data["kind"].items() if entity else ():
        if not _cues(kind).search(text):
            continue
        assert entity is not None
        reader = _PageReader(db, entity, kind, today)
        if reader.kind != kind:  # `home` applies only to persons, and `seat` only to other subjects
            continue
        for paragraph in reader._paragraphs(text[:LONGEST_READ]):
            for row in reader._read(paragraph, day):
                if not row.is_former and reader.names_subject(row.quote):
                    predicate = "leader" if kind == "leader" else rules["predicates"].split()[0]
                    fact = StatedFact(predicate, row.value, row.day, row.quote)
                    found.setdefault((predicate, row.key), fact)
    return list(found.values())


def _is_same(one: _StatedValue, other: _StatedValue) -> bool:
    return one.key in other.key or other.key in one.key


def _current_statement(rows: list[_StatedValue]) -> _StatedValue | None:
    """Return the current statement, or None if several differ and their order is unknown."""
    if not rows:
        return None
    stressed = [row for row in rows if row.is_stressed]
    dated = [row for row in rows if row.day]
    if len(dated) == len(rows):
        latest = max(row.day for row in rows)
        rows = [row for row in rows if row.day == latest]
    elif stressed:
        rows = stressed + [row for row in rows if row.is_entry]
    best = max(rows, key=lambda row: len(row.key))
    return best if all(_is_same(best, row) for row in rows) else None


def _latest_former(rows: list[_StatedValue]) -> _StatedValue | None:
    if rows and all(row.day for row in rows):
        latest = max(row.day for row in rows)
        rows = [row for row in rows if row.day == latest]
    return rows[0] if rows and all(_is_same(rows[0], row) for row in rows) else None
