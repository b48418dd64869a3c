"""Correct what is stored: end or withdraw one fact, and change the one line that says the same.

`correct`, `remember` and the removal of a sentence find their lines here, in the notebook, in the text, timeline and
front matter of pages, and among facts.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import CollectionReadOnly, InvalidArgument, NotFound, PartOfOrgFile, QuaidError
from quaid.folders import page_writer
from quaid.formats import sections
from quaid.model import corrections as model, dates, facts as fact_model, similarity, slug as slugs, timeline
from quaid.model.corrections import StatementPlace, Wording
from quaid.model.english import split_sentences
from quaid.model.page import Page
from quaid.model.slug import fold_name
from quaid.notebook import changes, layout
from quaid.operations import notebook as notebooks, pages, receipts
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.storage import (
    collections,
    erase as erasure,
    facts as fact_store,
    history,
    page_edits,
    pages as page_store,
)
from quaid.storage.facts import FactRow
from quaid.storage.pages import PageName, PageRow

if TYPE_CHECKING:
    from quaid.storage.page_edits import SaveResult
    from quaid.storage.sqlite.connection import Transaction

MAX_CANDIDATES = 8
MAX_PAGES_SEARCHED = 20
MAX_NAME_WORDS = 12
MIN_QUOTED_WORDS = 4
"""Fewer words are a name or a to-do, not a sentence that is quoted."""

MIN_SHARE_OF_QUERY = 0.6
"""A sentence matches a request to forget it if it has at least this share of the words."""

MAX_SUBJECT_WORDS = 40
SOURCES = "sources/"
SEVERAL = "Several statements match; nothing was changed. Call again with the id of one."
SAYS_MORE = (
    "Nothing was changed: the line says more than `was`. Send in `was` the exact words to replace, or its id."
)
NOT_STORED = (
    "Nothing stored clearly says so; nothing was changed. Call again with the id of the one that is meant, or write"
    " it with `quaid remember` or `quaid put`."
)


class CorrectionCandidate(NamedTuple):
    id: str
    """The id to send as `id`: fact:12, or line:3:people/alice (line and page)."""
    says: str
    slug: str


class CorrectedStatement(NamedTuple):
    id: str
    says: str
    until: str | None
    """The day on which a fact ended; None for a line."""


class CorrectRecord(NamedTuple):
    changed: bool
    now: str
    """The line that now has the corrected statement, or ""."""
    slug: str
    collection: str
    version: int
    path: str
    """Path of the notebook file, if the corrected line is in the notebook."""
    replaced: tuple[CorrectedStatement, ...]
    """Everything that was changed."""
    fact: int | None
    """The id of the new fact, if there is one."""
    candidates: tuple[CorrectionCandidate, ...] = ()
    """Set if no statement matches clearly. Nothing was changed; one more call with one of these ids does it."""
    note: str = ""
    still_says: tuple[CorrectionCandidate, ...] = ()
    """Other lines that still have the old statement, which were not changed."""
    more: int | None = None
    """How many further candidates are not listed."""
    merge_proposal: int | None = None
    """The id of the proposal to merge two pages, if the correction says that they are about the same thing."""

    def agent_view(self) -> dict[str, Any]:
        """Return the fields that agents need. The slug names the page of a notebook file too."""
        return {name: value for name, value in self._asdict().items() if name != "path"}


class StoredStatement(NamedTuple):
    """A sentence of a page or notebook file, or a value of the front matter."""

    page: PageRow
    place: StatementPlace
    part: Literal["truth", "timeline", "field"] = "truth"
    file: str = ""
    """The path of the notebook file; "" for a page outside of the notebook."""

    @property
    def id(self) -> str:
        address = _address(self.page)
        if self.part == "field":
            return f"field:{self.place.heading}:{address}"
        kind = "line" if self.part == "truth" else "entry"
        sentence = f".{self.place.sentence}" if self.place.sentence > 1 else ""
        return f"{kind}:{self.place.line}{sentence}:{address}"

    @property
    def path(self) -> str:
        return self.file or self.page.slug

    @property
    def text(self) -> str:
        return self.place.text

    @property
    def section(self) -> str:
        return self.place.heading

    @property
    def box(self) -> str | None:
        return self.place.box

    @property
    def candidate(self) -> CorrectionCandidate:
        return CorrectionCandidate(self.id, self.text, _address(self.page))


class _Fact(NamedTuple):
    row: FactRow
    page: PageRow

    @property
    def id(self) -> str:
        return f"fact:{self.row.id}"

    @property
    def says(self) -> str:
        return f"{self.row.subject} {self.row.predicate} {self.row.object}"

    @property
    def statement(self) -> tuple[str, str]:
        """The same for facts that say the same on several pages."""
        return fact_model.canonical_predicate(self.row.predicate), fact_model.object_key(self.row.object)

    @property
    def candidate(self) -> CorrectionCandidate:
        return CorrectionCandidate(self.id, self.says, _address(self.page))


def _address(page: PageRow) -> str:
    return slugs.address(page.collection, page.slug)


@op(
    "write",
    core=True,
    examples=(
        "quaid correct 'Alice' --now 'lives in Oslo'",
        "quaid correct people/alice --was Paris --now Oslo --date 2026-03-01",
        "quaid correct 'Bob' --was 'works at Acme, that was wrong'",
        "quaid correct 'call the bank' --now done",
    ),
)
def correct(
    brain: Brain,
    about: Annotated[
        str, Arg("The page, person, thing or to-do.", positional=True, any_text=True, question=True)
    ],
    now: Annotated[str, Arg("What is true; done or cancelled for a to-do; or: same as PAGE (merge).")] = "",
    was: Annotated[str, Arg("The old words. Alone: never true; with date: true until then.")] = "",
    date: Annotated[str | None, Arg("Since when, YYYY-MM-DD [today].")] = None,
    id: Annotated[str | None, Arg("The fact or line to change, as any tool shows it.")] = None,
) -> CorrectRecord:
    """Correct what is stored: "X is now Y", "that was wrong", "done". The old fact and line stay in the history."""
    day = dates.check_date(date, "date") if date else None
    wording = model.read_wording(was, now, has_date=day is not None)
    if len([sentence for sentence in split_sentences(wording.was) if sentence.strip()]) > 1:
        raise InvalidArgument(name="was", problem="has several sentences; correct one sentence in each call")
    if was.strip() and was.strip() == now.strip():
        raise InvalidArgument(name="now", problem="is the same as was; nothing would change")
    if not about.strip() or not (was.strip() or now.strip()):
        name = "now" if about.strip() else "about"
        raise InvalidArgument(name=name, problem="is empty; say what is true now, or in was what was wrong")
    if merge := propose_merge_of(brain, f"{about} {now}"):
        return merge
    book = notebook_statements(brain)
    with brain.db.reading():
        finder = _Finder(brain, about, wording, book)
        plan = finder.by_id(id.strip()) if id is not None else finder.plan()
    if isinstance(plan, CorrectRecord):
        return plan
    record = _Correction(brain, plan, day).apply()
    with brain.db.reading():
        others = finder.still_saying(plan)
    return record._replace(
        still_says=tuple(others[:MAX_CANDIDATES]),
        more=max(0, len(others) - MAX_CANDIDATES) or None,
    )


def _candidates(items: "Iterable[_Fact | StoredStatement]") -> list[CorrectionCandidate]:
    return [item.candidate for item in items]


def _choice(candidates: Iterable[CorrectionCandidate], note: str) -> CorrectRecord:
    """Return the record of a call that changed nothing, with the statements to choose from."""
    listed = list(candidates)
    more = max(0, len(listed) - MAX_CANDIDATES)
    note += f" {more} more are not listed; use more words of the one that is meant." if more else ""
    return CorrectRecord(
        *(False, "", "", "", 0, "", (), None, tuple(listed[:MAX_CANDIDATES]), note), more=more or None
    )


_SAME_AS = re.compile(
    r"(?i)\b(?:(?:is|are) (?:also |actually |really )?(?:one and )?"
    r"(?:the same(?: person| company| page| thing| project| one)?(?: as)?|a duplicate of|identical (?:to|with))"
    r"|(?:the )?same (?:person |company |page |thing |project )?as|duplicate of)\b"
)


def propose_merge_of(brain: Brain, sentence: str) -> CorrectRecord | None:
    """Propose to merge two pages if a sentence says that they are about the same thing, else return None.

    "Bob is the same person as Robert" and "Bob and Robert are the same person" both do.
    """
    match = _SAME_AS.search(sentence)
    if match is None:
        return None
    other = sentence[match.end() :].strip(" .!,")
    name = sentence[: match.start()].strip(" ,")
    if not other:
        name, _, other = name.partition(" and ")
    with brain.db.reading():
        (one, rest), (kept, other_rest) = find_subject(brain, name), find_subject(brain, other)
    if one is None or kept is None or one.id == kept.id or rest.strip() or other_rest.strip():
        return None
    from quaid.operations import review  # imported late, because it imports this module

    proposed = review.propose_merge(brain, _address(one), _address(kept), _address(kept), sentence)
    number = getattr(proposed, "proposal", 0)
    note = f"Proposal {number}: merge {_address(one)} into {_address(kept)}. A person decides with `quaid review`."
    if not number:
        note = f"Merged {_address(one)} into {_address(kept)}."
    place = (kept.slug, kept.collection, kept.version, "")
    return CorrectRecord(not number, sentence, *place, (), None, note=note, merge_proposal=number or None)


# Finding what a correction is about


class _Plan(NamedTuple):
    """What a correction changes: facts with one statement, the line with the same statement, and a field."""

    wording: Wording
    facts: tuple[tuple[_Fact, str | None], ...] = ()
    """Each fact with its new value; None if it only ends."""
    line: StoredStatement | None = None
    new: str = ""
    """The sentence that replaces the line; "" if the line is only removed or a to-do is closed."""
    field: StoredStatement | None = None
    """A value of the front matter that changes together with a line or fact."""
    page: PageRow | None = None
    """The page on whose timeline a change of facts alone is noted."""
    keeps_trace: bool = True
    """False: the old words are removed instead of struck through."""


_FACT_ID = re.compile(r"(?:fact:)?(\d+)\Z")


class _Finder:
    """Finds the one statement that a correction is about.

    If the subject is a page, only statements of that page, facts about it and to-dos that name it are changed.
    """

    def __init__(self, brain: Brain, about: str, wording: Wording, book: list[StoredStatement]) -> None:
        self.brain, self.about, self.wording, self.book = brain, about, wording, book
        self.subject, self.rest = find_subject(brain, about)
        self.names = about
        self.facts: list[_Fact] = []
        self.lines: list[StoredStatement] = []
        if self.subject is not None:
            titles = page_store.page_names(brain.db, [self.subject.id])
            self.names = " ".join([self.subject.title, *titles])
            self.facts = _current_facts(brain, self.subject)
            self.lines = _own_statements(self.subject, book)
        else:
            self.facts = _facts_called(brain, [fold_name(about)])
            near = _statements_near(brain, f"{about} {wording.was or wording.now}", book)
            self.lines = [line for line in near if not line.page.slug.startswith(SOURCES)]

    def by_id(self, id: str) -> _Plan:
        """Return the plan for the fact or line with an id; raise NotFound if there is none."""
        match = _FACT_ID.match(id)
        rows = fact_store.read_facts(self.brain.db, ids=[int(match[1])]) if match else []
        if facts := _with_pages(self.brain, rows):
            self.subject = self.subject or _subject_page(self.brain, facts[0])
            return self._plan_fact(facts, None)
        line = _statement_with_id(self.brain, id, self.book)
        if line is None:
            raise NotFound(what="candidate", name=id, hint="Call without id to list the candidates.")
        wording, text = self.wording, line.text
        if line.box is not None and wording.outcome:
            return _Plan(wording, line=line)
        self.names += f" {line.page.title}"
        new = self._rewritten(line)
        if new is None:
            label, _ = model.label_of(wording.now)
            same = label and label == model.label_of(text)[0]
            new = model.replace_labelled(text, model.label_of(wording.now)[1]) if same else None
        if new is None:
            value = wording.now.removeprefix(f"{line.section}: ")
            new = f"{line.section}: {value}" if line.part == "field" and value else wording.now
        return self._plan_line(line, new)

    def plan(self) -> _Plan | CorrectRecord:
        """Return what to change, or the candidates if no statement matches clearly. Raise NotFound without any."""
        wording = self.wording
        if tasks := self._tasks():
            if len(tasks) > 1:
                return _choice(_candidates(tasks), SEVERAL)
            return self._plan_task(tasks[0])
        if not wording.was and not wording.outcome and (quoted := _quoted(self.lines, self.about)):
            self.wording = wording._replace(was=self.about)
            return self._plan_by_words(quoted)
        if wording.was:
            return self._plan_by_words(self.lines)
        if wording.outcome:
            return self._unmatched()
        return self._plan_by_label()

    def _tasks(self) -> list[StoredStatement]:
        """Return the open to-dos that a correction finishes or cancels, or whose words it quotes."""
        wording, words = self.wording, f"{self.about} {self.wording.was}"
        near = _statements_near(self.brain, words, self.book)
        own = self.lines if self.subject is not None else []
        todos = [line for line in {line.id: line for line in [*own, *near]}.values() if line.box is not None]
        reports = wording.outcome or (
            wording.now and not wording.was and changes.reports_finished(wording.now)
        )
        if wording.was:
            quoted = [line for line in todos if model.quotes_task(wording.was, line.text)]
            if not quoted and model.stems(wording.was) <= {
                stem for line in todos for stem in model.stems(line.text)
            }:
                quoted = [
                    line
                    for line in todos
                    if model.quotes_task(words, line.text)
                    and (reports or model.has_value(line.text, wording.was))
                ]
            return quoted
        if not reports:
            return []
        if self.subject is not None and not self.rest.strip():
            key = f" {fold_name(self.subject.title)} "
            mine = [line for line in todos if line in own or key in f" {fold_name(line.text)} "]
            said = changes.find_task(wording.now, mine) if not wording.outcome else []
            return said or changes.find_task(self.about, mine) or mine
        return changes.find_task(words, todos)

    def _plan_task(self, line: StoredStatement) -> _Plan:
        """Return the plan for a to-do: it is closed, or its text is replaced."""
        wording = self.wording
        if not wording.was or wording.outcome or not wording.now:
            outcome = wording.outcome or ("done" if wording.now else "cancelled")
            return _Plan(wording._replace(outcome=outcome), line=line)
        new = model.rewrite(line.text, wording.was, wording.now, self.names)
        return _Plan(wording, line=line, new=new or wording.now)

    def _plan_by_words(self, lines: list[StoredStatement]) -> _Plan | CorrectRecord:
        """Return the plan for a correction that has the old words."""
        wording = self.wording
        ranks = [
            model.match_fact(wording, fact.row.subject, fact.row.predicate, fact.row.object)
            for fact in self.facts
        ]
        best = max(ranks, default=0)
        facts = [fact for fact, rank in zip(self.facts, ranks, strict=True) if rank == best > 0]
        matches = self._matching_lines(lines)
        if quoted := _quoted(matches, wording.was):
            own = [line for line in quoted if line.part == "truth"] or quoted
            facts = facts if len({fact.statement for fact in facts}) == 1 else []
            matches = own
        elif facts:
            bare = any(fold_name(wording.was) == fold_name(fact.row.object) for fact in facts)
            matches = [
                line for line in matches if line.part == "truth" and (not bare or self._states(line, facts))
            ]
        else:
            matches = [line for line in matches if line.part == "truth"] or matches
        if len({fact.statement for fact in facts}) > 1 or len(matches) > 1:
            return _choice([*_candidates(facts), *_candidates(matches)], SEVERAL)
        if facts:
            return self._plan_fact(facts, matches[0] if matches else None)
        if not matches:
            return self._unmatched()
        new = self._rewritten(matches[0])
        if new is None:
            return _choice([matches[0].candidate], SAYS_MORE)
        return self._plan_line(matches[0], new)

    def _matching_lines(self, lines: Iterable[StoredStatement]) -> list[StoredStatement]:
        """Return the lines, fields and entries that have the old words. Open to-dos have been considered before."""
        was = self.wording.was
        matches = []
        for line in lines:
            if line.box is not None:
                continue
            if line.part == "field":
                is_match = self._names_field(line)
            elif line.part == "timeline":
                is_match = similarity.same_line(line.text, was)
            else:
                is_match = model.has_value(line.text, was) or self._rewritten(line) is not None
            if is_match:
                matches.append(line)
        if self.subject is not None:
            return matches
        known = [line for line in matches if model.stems(self.about) <= _stems_around(line)]
        return known or [line for line in matches if line.file and len(was.split()) > 1]

    def _names_field(self, line: StoredStatement) -> bool:
        """Return True if the old words are the value of a field, perhaps after its key."""
        key, _, value = line.text.partition(": ")
        words = {
            fold_name(self.wording.was),
            fold_name(model.split_label(self.wording.was, self.names, key)[1]),
        }
        return fold_name(value) in words

    def _rewritten(self, line: StoredStatement) -> str | None:
        """Return a line with the old words replaced; None if that is not clearly possible."""
        was, now = self.wording.was, self.wording.now
        if not was:
            return None
        if line.part == "field":
            key = line.section
            new = model.split_label(now, self.names, key)[1]
            return (f"{key}: {new}" if now else "") if self._names_field(line) else None
        if line.part == "timeline" and similarity.same_line(line.text, was):
            return now
        return model.rewrite(line.text, was, now, f"{self.names} {line.page.title}")

    def _plan_by_label(self) -> _Plan | CorrectRecord:
        """Return the plan for a correction that has only the new words."""
        now, rest = self.wording.now, model.stems(self.rest)
        facts: list[_Fact] = []
        same: list[_Fact] = []
        for fact in self.facts:
            row = fact.row
            labelled, value = model.split_label(now, row.subject, row.predicate, strict=True)
            own = model.stems(row.predicate.replace("_", " "))
            if labelled or (own and own <= rest):
                is_same = fact_model.object_key(value) == fact_model.object_key(row.object)
                (same if is_same else facts).append(fact)
        if same and self.subject is not None:
            note = "Nothing was changed: the memory says so already."
            place = (self.subject.slug, self.subject.collection, self.subject.version, "")
            return CorrectRecord(False, now, *place, (), same[0].row.id, note=note)
        if len({fact.statement for fact in facts}) == 1:
            return self._plan_fact(facts, None)
        lines = [] if facts else self._labelled_lines()
        if len(facts) + len(lines) > 1:
            return _choice([*_candidates(facts), *_candidates(line for line, _ in lines)], SEVERAL)
        return self._plan_line(*lines[0]) if lines else self._unmatched()

    def _labelled_lines(self) -> list[tuple[StoredStatement, str]]:
        """Return lines and fields with the same label as the new words, each with its new text."""
        names = model.stems(self.names) if self.subject is not None else frozenset()
        label, value = model.label_of(self.wording.now)
        topic = model.stems(self.rest if self.subject is not None else self.about)
        is_value = len(self.wording.now.split()) <= model.MAX_VALUE_WORDS
        lines = [
            line
            for line in self.lines
            if line.part != "timeline" and not line.place.is_row and line.box is None
        ]
        found: dict[str, tuple[StoredStatement, str]] = {}
        for line in lines:
            own, old = model.label_of(line.text)
            own = (model.stems(line.section) if line.part == "field" else own) - names
            same = bool(own) and own == label - names
            is_topic = own and own <= topic <= own | model.stems(line.section) and is_value
            text = value if same else self.wording.now
            if (same or is_topic) and fold_name(text) != fold_name(old):
                new = model.replace_labelled(line.text, text)
                if new is not None:
                    found[line.id] = line, new
        if found:
            return list(found.values())
        first = [self.names.split()[0]] if self.names.split() else []
        for lead in dict.fromkeys(["", *first, self.about, "She", "He", "It", "They"]):
            text = f"{lead} {self.wording.now}".strip()
            for line in changes.find_corrected(text, [line for line in lines if line.part == "truth"]):
                if (new := model.replace_after_prefix(line.text, text)) is not None:
                    found.setdefault(line.id, (line, new))
        return list(found.values())

    def _states(self, line: StoredStatement, facts: list[_Fact]) -> bool:
        row = facts[0].row
        return model.states_fact(line.text, row.predicate, receipts.spellings(self.brain, row.object))

    def _plan_fact(self, facts: list[_Fact], line: StoredStatement | None) -> _Plan:
        """Return the plan for facts with one statement, and the line of the subject's page that says the same."""
        wording, row = self.wording, facts[0].row
        value: str | None = None
        if wording.now:
            value = model.new_value(wording, row.subject, row.predicate, row.object)
        if line is None and self.subject is not None:
            lines = [
                line
                for line in _own_statements(self.subject, self.book)
                if line.part == "truth" and line.box is None and self._states(line, facts)
            ]
            line = lines[0] if len(lines) == 1 else None
        new = None if line is None else self._with_value(line, row, value)
        field = self._field_of(row)
        plan = _Plan(
            wording,
            tuple((fact, value) for fact in facts),
            field=field,
            page=self.subject if self.subject is not None else facts[0].page,
        )
        return plan if line is None or new is None else plan._replace(line=line, new=new)

    def _with_value(self, line: StoredStatement, row: FactRow, value: str | None) -> str | None:
        """Return a line with the old words, or the value of a fact, replaced; None if the line says more."""
        new = self._rewritten(line)
        if new is not None:
            return new
        for spelling in receipts.spellings(self.brain, row.object):
            left, place, right = model.cut_words(line.text, spelling)
            if place and value is not None:
                return left + value + right
            own = model.relation_stems(row.predicate) | model.stems(f"{self.names} {line.page.title}")
            if place and not model.stems(left + right) - own:
                return ""
        return None

    def _field_of(self, row: FactRow) -> StoredStatement | None:
        """Return the field of the subject's page with the old words as value and a word of the predicate as key."""
        if self.subject is None or not self.wording.now:
            return None
        keys = model.relation_stems(row.predicate)
        fields = [
            line
            for line in _own_statements(self.subject, self.book)
            if line.part == "field" and self._names_field(line) and model.stems(line.section) & keys
        ]
        return fields[0] if len(fields) == 1 else None

    def _plan_line(self, line: StoredStatement, new: str) -> _Plan:
        """Return the plan for a line, and for the fact that it states if that has its value in the same place."""
        facts = []
        for fact in _current_facts(self.brain, line.page):
            row = fact.row
            spellings = receipts.spellings(self.brain, row.object)
            if not model.states_fact(line.text, row.predicate, spellings):
                continue
            if not any(model.has_value(new, spelling) for spelling in spellings):
                values = (model.value_in_place(new, line.text, spelling) for spelling in spellings)
                facts.append((fact, next(filter(None, values), None)))
        if len({fact.statement for fact, _ in facts}) > 1 or (new and any(not value for _, value in facts)):
            facts = []
        if line.text.endswith(".") and new[-1:].isalnum() and line.part != "field":
            new += "."
        return _Plan(self.wording, tuple(facts), line, new)

    def _unmatched(self) -> CorrectRecord:
        """Return what is stored about the subject, the nearest first, or raise NotFound."""
        wording = self.wording
        old, new = model.stems(f"{self.rest} {wording.was}"), model.stems(wording.now)
        if self.subject is None:
            if wording.outcome:
                hint = "It may be ticked already; `quaid query` shows it."
                raise NotFound(what="open to-do", name=repr(f"{self.about} {wording.was}".strip()), hint=hint)
            hint = "Nothing stored says so. Write it with `quaid remember` or `quaid put`."
            raise NotFound(
                what="statement", name=repr(f"{self.about}: {wording.was or wording.now}"), hint=hint
            )
        old, new = old - model.stems(self.names), new - old - model.stems(self.names)
        near = (
            _statements_near(self.brain, f"{self.subject.title} {wording.was}", self.book)
            if wording.was
            else []
        )
        others = [
            line
            for line in near
            if line.page.id != self.subject.id
            and model.has_value(line.text, wording.was)
            and self._names_subject(line, self.subject)
        ]
        own = [
            line
            for line in self.lines
            if not line.place.is_row and (line.box is not None or not wording.outcome)
        ]
        items = [*_candidates(self.facts), *_candidates(own), *_candidates(others)]
        words = {item.id: model.stems(item.says.replace("_", " ")) for item in items}
        items.sort(key=lambda item: -3 * len(old & words[item.id]) - len(new & words[item.id]))
        return _choice(items, NOT_STORED)

    def _names_subject(self, line: StoredStatement, page: PageRow) -> bool:
        """Return True if a line, or the title above it, has a name of a page."""
        text = f" {fold_name(f'{line.page.title} {line.text}')} "
        return any(f" {name} " in text for name in _name_keys(self.brain, page))

    def still_saying(self, plan: _Plan) -> list[CorrectionCandidate]:
        """Return lines that still have the old statement: on the subject's page, or on other pages that name it.

        Facts whose value only the old line had are returned too.
        """
        line, changed = plan.line, [fact.row.object for fact, _ in plan.facts]
        page = self.subject or plan.page or (line.page if line else None)
        if plan.wording.outcome or page is None:
            return []
        values = {plan.wording.was} if len(plan.wording.was.split()) > 1 or not changed else set()
        values.update(spelling for value in changed for spelling in receipts.spellings(self.brain, value))
        values -= {""}
        new = [value for _, value in plan.facts if value] + ([plan.new] if plan.new else [])
        found = {
            fact.id: fact.candidate
            for fact in _current_facts(self.brain, page)
            if line
            and model.has_value(line.text, fact.row.object)
            and not model.has_value(plan.new, fact.row.object)
        }
        query = f"{page.title} {max(values, key=len, default='')}"
        lines = _own_statements(page_store.require(self.brain.db, page.slug, page.collection), self.book)
        lines += _statements_near(self.brain, query, self.book) if values else []
        for other in lines:
            named = other.page.id == page.id or self._names_subject(other, page)
            is_new = any(model.has_value(other.text, value) for value in new)
            if named and not is_new and any(model.has_value(other.text, value) for value in values):
                found[other.id] = other.candidate
        return list(found.values())


# Carrying it out


class _Correction:
    """Carries out the plan of one correction."""

    def __init__(self, brain: Brain, plan: _Plan, day: str | None = None) -> None:
        self.brain, self.plan, self.wording, self.day = brain, plan, plan.wording, day
        self.now = brain.now()
        self.today = day or self.now[:10]
        self.fact_id: int | None = None
        self.says = plan.new

    def apply(self) -> CorrectRecord:
        plan, line, path = self.plan, self.plan.line, ""
        page = line.page if line is not None else plan.page
        assert page is not None
        if line is not None and line.file:
            path, version = self._edit_file(line)
            self.brain.db.write(self._end_facts)
        elif line is not None:
            version = self._save(page, lambda old: self._changed_page(old, line))
        else:
            version = self._note_on_page(page)
        changed = [line for line in (line, plan.field) if line is not None]
        replaced = [CorrectedStatement(fact.id, fact.says, self._end_of(fact)) for fact, _ in plan.facts]
        replaced += [CorrectedStatement(line.id, line.text, None) for line in changed]
        return CorrectRecord(
            *(True, self.says, page.slug, page.collection, version, path, tuple(replaced), self.fact_id)
        )

    def apply_to_facts(self) -> CorrectRecord:
        """End the facts and add the new values, and leave the text of pages as it is."""
        self.brain.db.write(self._end_facts)
        page = self.plan.facts[0][0].page
        version = page_store.require(self.brain.db, page.slug, page.collection).version
        replaced = [CorrectedStatement(fact.id, fact.says, self._end_of(fact)) for fact, _ in self.plan.facts]
        return CorrectRecord(
            *(True, self.says, page.slug, page.collection, version, "", tuple(replaced), self.fact_id)
        )

    def _changed_page(self, old: PageRow, line: StoredStatement) -> Page:
        """Return the page with the line changed. A timeline entry has the old and the new text."""
        front, truth, lines, new = old.frontmatter, old.truth, old.timeline, self.plan.new
        if line.part == "timeline":
            return pages.rebuild_page(old, lines=self._changed_entry(lines, line))
        if line.part == "field":
            front = _with_field(front, line.place, new)
        else:
            place = _find_again(truth, line)
            closed = self._closed(truth, place)
            if closed is not None:
                return pages.build_checked_page(old.slug, front, closed, lines, old)
            truth = model.replace_in_page(truth, place, new)
            front = self._with_own_field(front)
        if self.plan.keeps_trace:
            lines = self._with_entry(lines, line.text, new)
        return pages.build_checked_page(old.slug, front, truth, lines, old)

    def _changed_entry(self, lines: str, line: StoredStatement) -> str:
        """Return a timeline with one entry struck or removed, and the right one added."""
        place, new = _find_again(lines, line), self.plan.new
        begin = lines.rfind("\n", 0, place.start) + 1
        day = _ISO_DAY.search(lines, begin, place.start)
        struck = f"~~{place.text}~~" if self.plan.keeps_trace else "(removed)"
        lines = lines[: place.start] + struck + lines[place.end :]
        if not new or not self.plan.keeps_trace:
            return lines
        entry = f"{new} (corrects {day[0]})" if day else new
        return timeline.add_entry_once(lines, self.today, entry, "correction", "")

    def _closed(self, text: str, place: StatementPlace) -> str | None:
        """Return the text with a to-do ticked or cancelled, if that is what the correction says."""
        if not self.wording.outcome or place.box is None:
            return None
        closed = model.close_task(text, place, self.wording, self.day, self.now[:10])
        if closed is not None:
            is_done = self.wording.outcome == "done"
            self.says = f"[x] {place.text}" if is_done else f"~~{place.text}~~ (cancelled)"
        return closed

    def _with_own_field(self, front: dict[str, Any]) -> dict[str, Any]:
        field, value = self.plan.field, next((value for _, value in self.plan.facts if value), None)
        if field is None or value is None:
            return front
        return _with_field(front, field.place, f"{field.section}: {value}")

    def _note_on_page(self, page: PageRow) -> int:
        """Change facts that no line states, and note it on the timeline, so that searches find it."""
        fact, value = self.plan.facts[0]
        new = "" if value is None else f"{fact.row.subject} {fact.row.predicate} {value}"

        def change(old: PageRow) -> Page:
            lines = self._with_entry(old.timeline, fact.says, new)
            return pages.build_checked_page(
                old.slug, self._with_own_field(old.frontmatter), old.truth, lines, old
            )

        try:
            return self._save(page, change)
        except (CollectionReadOnly, PartOfOrgFile):
            self.plan = self.plan._replace(field=None)
            self.brain.db.write(self._end_facts)
            return page_store.require(self.brain.db, page.slug, page.collection).version

    def _with_entry(self, lines: str, former: str, new: str) -> str:
        """Return a timeline with an entry that has the former text, struck through, and the new text."""
        right = new or ("was wrong" if self.wording.never_held else f"ended on {self.today}")
        return timeline.add_entry_once(lines, self.today, f"~~{former}~~ {right}", "correction", "")

    def _save(self, page: PageRow, change: Callable[[PageRow], Page]) -> int:
        """Save a page and end the facts in one transaction. Return the new version."""

        def also(tx: "Transaction", saved: "SaveResult", _page: Page, _now: str) -> "SaveResult":
            self._end_facts(tx, but=saved.id)
            return saved

        def checked(old: PageRow | None) -> Page:
            assert old is not None
            return change(old)

        saved, _ = pages.edit_page(self.brain, _address(page), None, checked, also=also)
        return saved.version

    def _edit_file(self, line: StoredStatement) -> tuple[str, int]:
        """Close the to-do, or strike the line in the notebook file and write the new line below it."""
        notebook = collections.require(self.brain.db, line.page.collection)

        def change(old: str | None) -> str:
            text = old or ""
            place = _find_again(text, line)
            if not self.plan.keeps_trace:
                return model.replace_in_page(text, place, "")
            closed = self._closed(text, place)
            if closed is not None:
                return closed
            return model.strike_in_notebook(text, place, self.plan.new, self.today)

        edited = notebooks.edit_file(self.brain, notebook, line.file, change)
        return edited.path, edited.version

    def _end_facts(self, tx: "Transaction", but: int | None = None) -> None:
        """End or withdraw the facts and add the new values. The page `but` has already got its new version."""
        for fact, value in self.plan.facts:
            row = fact.row
            if value is not None:
                self._add_value(tx, row, value)
            if self.wording.never_held:
                since = row.valid_from or row.created_at[:10]
                fact_store.shorten_fact(
                    tx, fact_store.read_facts(self.brain.db, ids=[row.id])[0], since, since, None
                )
            elif value is None:
                fact_store.end_fact(tx, row, self._end_of(fact))
            if row.page_id != but:
                page_edits.touch(
                    tx, fact.page.slug, expected_version=None, now=self.now, collection=fact.page.collection
                )

    def _add_value(self, tx: "Transaction", row: FactRow, value: str) -> None:
        values: dict[str, Any] = {
            "subject": row.subject,
            "predicate": row.predicate,
            "object": value,
            "valid_from": row.valid_from if self.wording.never_held else self._start(row),
            "evidence_text": self.wording.now,
            "source_ref": "correction",
        }
        if not self.wording.never_held:
            values["supersedes_id"] = row.id
        fact = fact_model.check_fact(values, "")
        self.fact_id = fact_store.add_fact(tx, row.page_id, fact, self.now, alone=True).id
        self.says = self.says or f"{row.subject} {row.predicate} {value}"

    def _start(self, row: FactRow) -> str:
        return max(self.today, row.valid_from or "")

    def _end_of(self, fact: _Fact) -> str:
        row = fact.row
        return (row.valid_from or row.created_at[:10]) if self.wording.never_held else self._start(row)


def _find_again(text: str, line: StoredStatement) -> StatementPlace:
    """Return the place of a sentence in the current text. The sentence may have moved since it was found."""
    start = text.find(line.text, max(0, line.place.start - 200))
    if text[line.place.start : line.place.end] == line.text:
        start = line.place.start
    start = start if start >= 0 else text.find(line.text)
    if start < 0:
        raise NotFound(what="line", name=repr(line.text), hint="It was just changed; try again.")
    return line.place._replace(start=start, end=start + len(line.text))


_FIXED_FIELDS = frozenset(
    "id uuid slug title type aliases alias created created_at updated updated_at version source_ref".split()
)
"""Keys of the front matter that identify a page or record its history, so that they are not corrected."""


def _fields(front: dict[str, Any]) -> Iterator[StatementPlace]:
    """Yield the values of front matter as statements such as "city: Oslo", with the key as heading."""
    for key, value in front.items():
        values = value if isinstance(value, list) else [value]
        for number, item in enumerate(values, 1):
            if key not in _FIXED_FIELDS and isinstance(item, str | int | float) and str(item).strip():
                yield StatementPlace(0, 0, 0, f"{key}: {item}", number, key)


def _with_field(front: dict[str, Any], place: StatementPlace, new: str) -> dict[str, Any]:
    """Return front matter with one value replaced by the value of `new`, or removed if `new` is empty."""
    key, old = place.heading, front.get(place.heading)
    text = new.removeprefix(f"{key}: ").strip()
    value: Any = text
    if isinstance(old, int | float) and not isinstance(old, bool):
        try:
            value = type(old)(text)
        except ValueError:
            pass  # the new value is no number
    if isinstance(old, list):
        wanted = place.text.removeprefix(f"{key}: ")
        items = [value if str(item) == wanted else item for item in old]
        return {**front, key: [item for item in items if item != ""]}
    return {**front, key: value} if text else {name: item for name, item in front.items() if name != key}


def _page_statements(page: PageRow, *, closed: bool = False) -> Iterator[StoredStatement]:
    for place in model.statements(page.truth, closed=closed):
        yield StoredStatement(page, place)
    for place in _fields(page.frontmatter):
        yield StoredStatement(page, place, "field")
    for place in model.statements(page.timeline, closed=closed):
        yield StoredStatement(page, place, "timeline")


def _own_statements(page: PageRow, book: list[StoredStatement]) -> list[StoredStatement]:
    """Return the statements of a page, or of its notebook file."""
    return [line for line in book if line.page.id == page.id] or list(_page_statements(page))


def _stems_around(line: StoredStatement) -> frozenset[str]:
    """Return the stems of a line, its heading and the name of its page."""
    slug = re.sub(r"[-/_]", " ", line.page.slug)
    return model.stems(f"{line.text} {line.section} {line.page.title} {slug}")


def notebook_statements(brain: Brain, *, closed: bool = False) -> list[StoredStatement]:
    """Return the statements of all notebook files except daily logs, which record what was known on their day."""
    notebook = layout.find_notebook(brain.db)
    if notebook is None or not layout.folder_exists(notebook):
        return []
    paths = layout.list_files(notebook.root or "")
    unknown = [path for path in paths if collections.indexed_file(brain.db, notebook.id, path) is None]
    if unknown and brain.db.writable:
        notebooks.sync_folder(brain, notebook, unknown)
    lines: list[StoredStatement] = []
    for path in paths:
        file = collections.indexed_file(brain.db, notebook.id, path)
        page = page_store.find(brain.db, file.slug, notebook.name) if file and file.slug else None
        text = page_writer.read_text_file(notebook, path)
        if page is not None and text is not None:
            places = model.statements(text.text, closed=closed)
            lines += [StoredStatement(page, place, file=path) for place in places]
    return lines


def _statements_near(
    brain: Brain, query: str, book: list[StoredStatement], *, closed: bool = False
) -> list[StoredStatement]:
    """Return the statements of the pages that match a query best, sources too, and of the notebook."""
    kinds = {collection.name: collection.kind for collection in collections.list_all(brain.db)}
    lines: list[StoredStatement] = []
    for hit in text_search.search_pages(brain.db, query, limit=MAX_PAGES_SEARCHED):
        if kinds.get(hit.collection) in (None, "kb", layout.NOTEBOOK_KIND):
            continue  # nodes are corrected with `ai-kb`; the notebook's lines are those of its files
        page = page_store.find(brain.db, hit.slug, hit.collection)
        lines += _page_statements(page, closed=closed) if page is not None else ()
    return [*lines, *book]


def _statement_with_id(
    brain: Brain, id: str, book: list[StoredStatement], *, closed: bool = False
) -> StoredStatement | None:
    """Return the statement with an id such as line:3:people/alice."""
    collection, slug = slugs.split_address(id.split(":", 2)[-1])
    page = page_store.find(brain.db, slug, collection or "default") if id.count(":") > 1 else None
    lines = [*book, *(_page_statements(page, closed=closed) if page is not None else ())]
    return next((line for line in lines if line.id == id), None)


def _quoted(lines: Iterable[StoredStatement], sentence: str) -> list[StoredStatement]:
    """Return the statements that are exactly this sentence, unless it is as short as a name, a value or a to-do."""
    if len(sentence.split()) < MIN_QUOTED_WORDS:
        return []
    return [line for line in lines if line.part != "field" and similarity.same_line(line.text, sentence)]


def _with_pages(brain: Brain, rows: Iterable[FactRow]) -> list[_Fact]:
    """Return facts that hold today or later, with their pages."""
    today = brain.now()[:10]
    rows = [row for row in rows if row.valid_until is None or row.valid_until > today]
    heads = page_store.page_heads(brain.db, sorted({row.page_id for row in rows}))
    return [
        _Fact(row, page_store.require(brain.db, head.slug, head.collection))
        for row in rows
        if (head := heads.get(row.page_id)) is not None
    ]


def _facts_called(brain: Brain, keys: list[str]) -> list[_Fact]:
    return _with_pages(brain, fact_store.facts_about(brain.db, keys))


def _current_facts(brain: Brain, page: PageRow) -> list[_Fact]:
    """Return the facts that hold today and have a page as their subject, also if they are on other pages."""
    keys = {row.name for row in page_store.pages_called(brain.db, _name_keys(brain, page))}
    mine = [key for key in keys if _single_page(page_store.pages_called(brain.db, [key])) == page.id]
    parts = fact_model.person_name_parts(page.title)
    rows = {row.id: row for row in fact_store.facts_about(brain.db, mine)}
    own = fact_store.read_facts(brain.db, page.id)
    rows |= {row.id: row for row in own if row.subject_key in parts or row.subject_key in keys}
    today = brain.now()[:10]
    held = [row for row in rows.values() if fact_model.is_valid_on(row.valid_from, row.valid_until, today)]
    return _with_pages(brain, held)


def _name_keys(brain: Brain, page: PageRow) -> list[str]:
    return [fold_name(page.title), *map(fold_name, page_store.page_names(brain.db, [page.id]))]


def _single_page(rows: list[PageName]) -> int | None:
    """Return the page that a name refers to; None if several pages have it in the same way."""
    ids = {row.page_id for row in rows if row.kind == rows[0].kind}
    return ids.pop() if len(ids) == 1 else None


def _subject_page(brain: Brain, fact: _Fact) -> PageRow:
    """Return the page of the subject of a fact; the page that has the fact if the subject has none."""
    id = _single_page(page_store.pages_called(brain.db, [fact.row.subject_key]))
    head = page_store.page_heads(brain.db, [id]).get(id) if id is not None else None
    return page_store.require(brain.db, head.slug, head.collection) if head is not None else fact.page


def find_subject(brain: Brain, about: str) -> tuple[PageRow | None, str]:
    """Return the page that `about` names, if there is one, and the remaining words.

    The whole text is tried as slug, path of a file, title and alias, then fewer and fewer of its words as a name.
    """
    if not about.strip():
        return None, about
    try:
        return pages.open_page(brain, about.strip()), ""
    except QuaidError:  # neither an address nor a unique title
        return _named_page(brain, about)


def _named_page(brain: Brain, about: str, *, leads: bool = False) -> tuple[PageRow | None, str]:
    """Return the page that has the longest name in a text, and the other words.

    With `leads`, only the first words count, as in a sentence about somebody.
    """
    words = about.replace("'s ", " ").replace("’s ", " ").split()[:MAX_SUBJECT_WORDS]
    spans = {
        (start, length): fold_name(" ".join(words[start : start + length]))
        for length in range(min(len(words), MAX_NAME_WORDS), 0, -1)
        for start in range(len(words) - length + 1)
        if not leads or {word.lower() for word in words[:start]} <= {"the", "my", "our"}
    }
    named: dict[str, list[PageName]] = {}
    for row in page_store.pages_called(brain.db, [name for name in spans.values() if name]):
        named.setdefault(row.name, []).append(row)
    for (start, length), name in spans.items():
        id = _single_page(named[name]) if name in named else None
        if id is not None:
            head = page_store.page_heads(brain.db, [id])[id]
            page = page_store.require(brain.db, head.slug, head.collection)
            return page, " ".join([*words[:start], *words[start + length :]])
    return None, about


# Removing a sentence for good


def line_to_remove(brain: Brain, query: str) -> StoredStatement | CorrectRecord:
    """Return the one sentence that has these words or this id, or the sentences to choose from.

    Sentences of all pages are searched, also of sources, ticked to-dos and struck lines. Raise InvalidArgument if
    none matches.
    """
    book = notebook_statements(brain, closed=True)
    with brain.db.reading():
        if chosen := _statement_with_id(brain, query.strip(), book, closed=True):
            return chosen
        lines = _statements_near(brain, query, book, closed=True)
    wanted = model.stems(query)
    shares = [len(wanted & model.stems(line.text)) / max(1, len(wanted)) for line in lines]
    exact = [line for line in lines if fold_name(line.text) == fold_name(query)]
    literal = [line for line in lines if model.has_value(line.text, query)]
    best = max(shares, default=0)
    near = [line for line, share in zip(lines, shares, strict=True) if share == best >= MIN_SHARE_OF_QUERY]
    found = exact or literal or near or changes.find_subject(changes.subject_of(query), book)
    if len(found) == 1:
        return found[0]
    if not found:
        problem = (
            "matches no sentence of any page; use words of the sentence, or send slug to erase a whole page"
        )
        raise InvalidArgument(name="query", problem=problem)
    note = "Several sentences have these words; nothing was proposed. Call again with the id of one as query."
    return _choice(_candidates(found), note)


def remove_line(brain: Brain, line: StoredStatement) -> CorrectRecord:
    """Erase a sentence, also from stored versions, and the facts that state it or quote it."""
    with brain.db.reading():
        facts = fact_store.read_facts(brain.db, line.page.id)
    ids = [
        row.id
        for row in facts
        if line.text in row.evidence_text or model.states_fact(line.text, row.predicate, [row.object])
    ]
    plan = _Plan(Wording(line.text, "", never_held=True), line=line, keeps_trace=False)
    record = _Correction(brain, plan).apply()

    def erase(tx: "Transaction") -> None:
        history.drop_versions_with(tx, line.page.id, line.text)
        fact_store.delete_facts(tx, ids)
        erasure.optimize_indexes(tx)

    brain.db.write(erase)
    if brain.rehearsal is None:
        erasure.vacuum_and_checkpoint(brain.db)
    erased = [CorrectedStatement(f"fact:{row.id}", "erased", None) for row in facts if row.id in ids]
    return record._replace(replaced=(*record.replaced, *erased))


# Sentences of `remember`


class SentenceChange(NamedTuple):
    """What a sentence ticked, struck or replaced, or the lines that it may be about."""

    action: Literal["ticked", "struck", "replaced", "nothing"]
    category: str
    record: CorrectRecord
    line: StoredStatement | None = None
    lines: tuple[StoredStatement, ...] = ()


_TICK = Wording("", "", outcome="done")


def apply_sentence(brain: Brain, content: str, category: str) -> SentenceChange | None:
    """Carry out a sentence that finishes, removes, ends or corrects something.

    Return None if it changes no line. To-dos are ticked on pages too, but no other line of a page is changed.
    """
    if merge := propose_merge_of(brain, content):
        return SentenceChange("nothing", "correction", merge)
    task = changes.finished_task(content)
    if not task and category not in ("removal", "correction"):
        return None
    book = notebook_statements(brain)
    if any(similarity.same_line(line.text, content) for line in book):
        return None  # a repetition of a line is not a change of it
    if task:
        text, explicit, verb = task
        with brain.db.reading():
            todos = [line for line in _statements_near(brain, text, book) if line.box is not None]
        tasks = changes.find_task(text, todos, 1 if explicit else 2, verb)
        if len(tasks) == 1:
            return _change_line(brain, tasks[0], "ticked", "todo", _TICK)
        if explicit and tasks:
            return _several(tasks, "todo", "to-do")
        if not tasks and (thing := changes.bought_thing(text)):
            items = [line for line in book if line.path.startswith(f"{layout.LISTS}/") and line.box is None]
            bought = changes.find_task(thing, items)
            if len(bought) == 1:
                return _change_line(brain, bought[0], "struck", "shopping", Wording(bought[0].text, ""))
    if category == "removal" and changes.is_removal_command(content):
        return _remove_by_sentence(brain, content, book)
    if category in ("removal", "correction"):
        statement = changes.ended_statement(content)
        lines = changes.find_ended(statement, book) if statement else changes.find_corrected(content, book)
        if len(lines) == 1:
            new = sections.sanitize(changes.strip_correction(" ".join(content.split())))
            return _change_line(brain, lines[0], "replaced", "correction", Wording(statement, new))
    return None


def _remove_by_sentence(brain: Brain, content: str, book: list[StoredStatement]) -> SentenceChange | None:
    """Strike the line of the notebook that a removal names, or list the lines that it may be about."""
    named = changes.find_removed(content, book)
    if len(named) == 1:
        is_todo = named[0].box is not None
        wording = _TICK if is_todo else Wording(named[0].text, "")
        return _change_line(brain, named[0], "ticked" if is_todo else "struck", "removal", wording)
    if named:
        return _several(named, "removal", "line")
    if not changes.names_stored_thing(content):
        return None
    with brain.db.reading():
        near = [line for line in _statements_near(brain, content, []) if line.part == "truth"]
    if on_pages := changes.find_removed(content, near):
        note = "A page says so; nothing was changed. `quaid correct` withdraws such a line, memory_forget removes it."
        listed = _choice(_candidates(on_pages), note)
        return SentenceChange("nothing", "removal", listed, None, (*on_pages,))
    note = "No line of the notebook fits, so nothing was changed. `quaid recall` shows what is there."
    return SentenceChange("nothing", "removal", _choice([], note))


def _several(lines: list[StoredStatement], category: str, what: str) -> SentenceChange:
    note = f"Several lines fit, so nothing was changed; name the {what} more exactly."
    listed = _choice(_candidates(lines), note)
    return SentenceChange("nothing", category, listed, None, tuple(lines))


def _change_line(
    brain: Brain,
    line: StoredStatement,
    action: Literal["ticked", "struck", "replaced"],
    category: str,
    wording: Wording,
) -> SentenceChange:
    record = _Correction(brain, _Plan(wording, line=line, new=wording.now)).apply()
    return SentenceChange(action, category, record, line)


class SubjectReport(NamedTuple):
    """What pages say about the subject of a sentence."""

    page: str = ""
    replaced: tuple[CorrectedStatement, ...] = ()
    fact: int | None = None
    """The id of the fact that the sentence added."""
    contradicts: tuple[CorrectionCandidate, ...] = ()
    open_facts: tuple[receipts.OpenFact, ...] = ()
    still_says: tuple[receipts.OldLine, ...] = ()


def report_subject(brain: Brain, sentence: str) -> SubjectReport:
    """Return facts and lines about the subject of a sentence, and those that say something else.

    If the sentence clearly tells a change and its first words name exactly one page, the fact on that page ends or
    gets the new value. The text of the page is not changed.
    """
    text = changes.strip_correction(" ".join(sentence.split()))[: changes.MAX_SENTENCE]
    with brain.db.reading():
        subject, rest = _named_page(brain, text, leads=True)
        if subject is None or collections.require(brain.db, subject.collection).kind == layout.NOTEBOOK_KIND:
            return SubjectReport()
        statement = changes.ended_statement(text)
        facts = _current_facts(brain, subject)
        clashing = _clashing_facts(brain, facts, text, statement)
        lines = [StoredStatement(subject, place) for place in model.statements(subject.truth)]
    # On its own page, the subject may be named by its first name or a pronoun, or not at all.
    name = text[: len(text) - len(rest)] if text.endswith(rest) else text.split()[0]
    find = changes.find_ended if statement else changes.find_corrected
    body = statement.removeprefix(name).strip() if statement else rest
    leads = (text.split()[0], "She", "He", "It", "They", "")
    variants = [statement or text, *(f"{lead} {body}".strip() for lead in leads)]
    said = {line.id: line for variant in variants for line in find(variant, lines)}
    record = None
    if len(clashing) == 1 and changes.tells_change(text):
        record = _change_fact(brain, text, *clashing[0], ended=bool(statement))
    shown = {fact.row.id for fact, _ in clashing}
    open_rows = [fact.row for fact in facts if fact.row.id not in shown][: receipts.MAX_OPEN_FACTS]
    report = SubjectReport(
        _address(subject),
        open_facts=tuple(
            receipts.OpenFact(row.id, f"{row.predicate} {row.object}", row.valid_from) for row in open_rows
        ),
    )
    if record is None:
        candidates = [*(fact.candidate for fact, _ in clashing), *(line.candidate for line in said.values())]
        return report._replace(contradicts=tuple(candidates[:MAX_CANDIDATES]))
    row = clashing[0][0].row
    values = receipts.spellings(brain, row.object)
    old = [
        StoredStatement(subject, place)
        for place in model.statements_of_fact(subject.truth, row.predicate, values)
    ]
    fields = [StoredStatement(subject, place, "field") for place in _fields(subject.frontmatter)]
    old += [line for line in fields if fold_name(line.text.partition(": ")[2]) in map(fold_name, values)]
    said |= {line.id: line for line in old}
    still = [
        receipts.OldLine(_address(subject), line.text[: receipts.MAX_LINE_LENGTH]) for line in said.values()
    ]
    return report._replace(
        replaced=record.replaced, fact=record.fact, still_says=tuple(still[: receipts.MAX_OLD_LINES])
    )


def _clashing_facts(
    brain: Brain, facts: list[_Fact], text: str, statement: str
) -> list[tuple[_Fact, str | None]]:
    """Return the facts that a sentence ends, or of which it says another value, each with that value."""
    if statement:
        return [
            (fact, None)
            for fact in facts
            if model.states_fact(statement, fact.row.predicate, [fact.row.object])
        ]
    single = fact_store.single_valued_predicates(brain.db)
    clashing: list[tuple[_Fact, str | None]] = []
    for fact in facts:
        row = fact.row
        labelled, value = model.split_label(text, row.subject, row.predicate, strict=True)
        predicate = fact_model.canonical_predicate(row.predicate)
        if (
            labelled
            and not model.has_value(text, row.object)
            and fact_model.is_single_valued(predicate, single, None)
        ):
            clashing.append((fact, _VALUE_END.split(value, maxsplit=1)[0].strip(" ,.")))
    return clashing


def _change_fact(
    brain: Brain, text: str, fact: _Fact, value: str | None, *, ended: bool
) -> CorrectRecord | None:
    """End a fact or give it a new value. Return None if the value is no short name, or the page is read-only."""
    if not ended and not (value and len(value.split()) <= model.MAX_VALUE_WORDS):
        return None
    day = _ISO_DAY.search(text)
    plan = _Plan(Wording("", text), ((fact, None if ended else value),))
    try:
        return _Correction(brain, plan, day[0] if day else None).apply_to_facts()
    except CollectionReadOnly:
        return None


_ISO_DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_VALUE_END = re.compile(
    r"(?i),|;| \(| (?:as|since|from|after|because|and|but|with|starting|until|instead|again|this|next|last)\b"
)
"""Words after the value of a fact in a sentence: "works at Acme since May"."""
