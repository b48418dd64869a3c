"""Corrections: find the stored fact or line that is wrong or outdated, and end or replace it.

The search covers the notebook, facts, and the text, timeline and front matter of pages. `remember` and the
erasure of single sentences use the search too.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import CollectionReadOnly, InvalidArgument, NotFound, PartOfOrgFile, QuaidError
from quaid.folders import page_writer
from quaid.model import corrections as model, dates, facts as fact_model, plain_text, slug as slugs, timeline
from quaid.model.corrections import StatementPlace, Wording
from quaid.model.english import split_sentences
from quaid.model.page import Page
from quaid.model.slug import fold_name
from quaid.notebook import changes, layout
from quaid.operations import facts as fact_operations, notebook as notebooks, page_changes, pages
from quaid.operations.facts import ReplacedStatement
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.storage import (
    erase as erasure,
    facts as fact_store,
    history,
    page_edits,
    pages as page_store,
)
from quaid.storage.collections import Collections
from quaid.storage.facts import FactRow
from quaid.storage.pages import PageName, PageRow
from quaid.storage.sqlite.connection import Transaction

MAX_CANDIDATES = 8
MAX_PAGES_SEARCHED = 20
MAX_NAME_WORDS = 12
MIN_QUOTED_WORDS = 4
"""Text with fewer words is treated as a name or a to-do, not as a quoted sentence."""

MIN_SHARE_OF_QUERY = 0.6
"""A sentence matches a request to erase it if it contains at least this share of the query's words."""

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
    """The id to send as `id`, such as fact:12, line:5d41ab:people/alice (with a digest of the line) or
    field:city:people/alice.
    """
    says: str
    slug: str


class CorrectRecord(NamedTuple):
    changed: bool
    now: str = ""
    """The text of the line or fact after the correction. For a merge, the sentence that asked for it."""
    slug: str = ""
    collection: str = ""
    version: int = 0
    path: str = ""
    """Path of the notebook file, or "" if the corrected line is not in the notebook."""
    replaced: tuple[ReplacedStatement, ...] = ()
    """The facts, lines and front matter values that were changed."""
    fact: int | None = None
    """The id of the new fact, or of the stored fact that already says so; None if there is neither."""
    candidates: tuple[CorrectionCandidate, ...] = ()
    """Statements to choose from, if none matches clearly. To correct one, call again with its id."""
    note: str = ""
    still_says: tuple[CorrectionCandidate, ...] = ()
    """Facts and lines that were not changed and still state the old value."""
    more: int | None = None
    """The number of candidates that are not listed, or None if all are."""
    merge_proposal: int | None = None
    """The id of the proposal to merge two pages, if the correction says that they are about the same thing."""

    def agent_view(self) -> dict[str, Any]:
        """Return the fields that agents need. The path is omitted, because the slug identifies the file."""
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
        """The key of a field, or a hash of a line's text, and the page. It stays valid if other lines change."""
        address = address_of(self.page)
        if self.part == "field":
            return f"field:{self.place.heading}:{address}"
        kind = "line" if self.part == "truth" else "entry"
        digest = hashlib.blake2b(self.place.text.encode("utf-8", "replace"), digest_size=3).hexdigest()
        return f"{kind}:{digest}:{address}"

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


class StoredFact(NamedTuple):
    row: FactRow
    page: PageRow

    @property
    def id(self) -> str:
        return f"fact:{self.row.id}"

    @property
    def text(self) -> str:
        return self.with_value(self.row.object)

    def with_value(self, value: str) -> str:
        """Return the fact as text, with `value` as its object."""
        return f"{self.row.subject} {self.row.predicate} {value}"


def address_of(page: PageRow) -> str:
    return slugs.address(page.collection, page.slug)


def candidate(item: StoredFact | StoredStatement) -> CorrectionCandidate:
    """Return a fact or line in the form that results contain."""
    return CorrectionCandidate(item.id, item.text, address_of(item.page))


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
    if sum(bool(sentence.strip()) for sentence in split_sentences(wording.was)) > 1:
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
    record = Correction(brain, plan, day).apply()
    with brain.db.reading():
        still_says, more = _listed(finder.still_saying(plan))
    return record._replace(still_says=still_says, more=more)


def _listed(
    items: "Sequence[StoredFact | StoredStatement]",
) -> tuple[tuple[CorrectionCandidate, ...], int | None]:
    """Return the first items as candidates, and the number of omitted items, or None if all are listed."""
    return tuple(map(candidate, items[:MAX_CANDIDATES])), max(0, len(items) - MAX_CANDIDATES) or None


def choice(items: "Sequence[StoredFact | StoredStatement]", note: str) -> CorrectRecord:
    """Return the record of a call that changed nothing, with the statements to choose from."""
    candidates, more = _listed(items)
    note += f" {more} more are not listed; use more words of the one that is meant." if more else ""
    return CorrectRecord(False, candidates=candidates, note=note, more=more)


_SAME_AS = re.compile(
    r"(?i)\b(?:(?:is|are) (?:also |actually |really )?(?:one and )?"
    r"(?:the same(?: person| company| page| thing| project| one)?(?: as)?|a duplicate of|identical (?:to|with))"
    r"|(?:the )?same (?:person |company |page |thing |project )?as|duplicate of)\b"
)


def propose_merge_of(brain: Brain, sentence: str) -> CorrectRecord | None:
    """Propose to merge two pages if a sentence says that they are about the same thing, else return None.

    The pages are merged at once if the setting `agents_may` contains "merge".

    Examples are "Bob is the same person as Robert" and "Bob and Robert are the same person".
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

    source, target = address_of(one), address_of(kept)
    number = getattr(review.propose_merge(brain, source, target, target, sentence), "proposal", 0)
    note = f"Merged {source} into {target}."
    if number:
        note = f"Proposal {number}: merge {source} into {target}. A person decides with `quaid review`."
    place = (kept.slug, kept.collection, kept.version)
    return CorrectRecord(not number, sentence, *place, note=note, merge_proposal=number or None)


# Finding the statement to correct


class CorrectionPlan(NamedTuple):
    """The changes of a correction: facts with one predicate and value, the line that states them, and a field."""

    wording: Wording
    facts: tuple[StoredFact, ...] = ()
    value: str | None = None
    """The new value of the facts; None to end them without a new value."""
    line: StoredStatement | None = None
    new: str = ""
    """The sentence that replaces the line; "" to remove the line or close the to-do."""
    field: StoredStatement | None = None
    """A front matter value that is changed together with a line or fact."""
    page: PageRow | None = None
    """The page whose timeline gets an entry if only facts are changed; None to change no page."""
    keeps_trace: bool = True
    """False to delete the old text instead of striking it through."""


TASK_TYPES = ("commitment", "action_item", "task", "todo")
"""Types of pages that are themselves a task and can be marked as done or cancelled."""

_FACT_ID = re.compile(r"(?:fact:)?(\d+)\Z")


class _Finder:
    """Finds the fact or line that a correction refers to.

    If the subject has a page, only lines of that page, facts about the subject and to-dos that name it are
    considered.
    """

    def __init__(self, brain: Brain, about: str, wording: Wording, book: list[StoredStatement]) -> None:
        self.brain, self.about, self.wording, self.book = brain, about, wording, book
        self.subject, self.rest = find_subject(brain, about)
        if self.subject is not None:
            self.names = " ".join([self.subject.title, *page_store.page_names(brain.db, [self.subject.id])])
            self.facts = current_facts(brain, self.subject)
            self.lines = _own_statements(self.subject, book)
        else:
            self.names = about
            self.facts = _with_pages(brain, fact_store.read_facts(brain.db, "subject", [fold_name(about)]))
            near = statements_near(brain, f"{about} {wording.was or wording.now}", book)
            self.lines = [line for line in near if not line.page.slug.startswith(SOURCES)]

    def by_id(self, id: str) -> CorrectionPlan:
        """Plan the correction of the fact or line with this id. Raise NotFound if there is none."""
        match = _FACT_ID.match(id)
        rows = fact_store.read_facts(self.brain.db, "id", [int(match[1])]) if match else []
        if facts := _with_pages(self.brain, rows):
            if self.subject is None:
                named = _single_page(page_store.pages_called(self.brain.db, [facts[0].row.subject_key]))
                self.subject = _page_with_id(self.brain, named) or facts[0].page
                self.lines = _own_statements(self.subject, self.book)
            return self._plan_fact(facts, None)
        line = _statement_with_id(self.brain, id, self.book)
        if line is None:
            raise NotFound(what="candidate", name=id, hint="Call without id to list the candidates.")
        now = self.wording.now
        if line.box is not None and self.wording.outcome:
            return CorrectionPlan(self.wording, line=line)
        self.names += f" {line.page.title}"
        new = self._rewritten(line)
        (label, value), (own, _) = model.label_of(now), model.label_of(line.text)
        if new is None and label and label == own:
            new = model.replace_labelled(line.text, value)
        if new is None:
            value = now.removeprefix(f"{line.section}: ")
            new = f"{line.section}: {value}" if line.part == "field" and value else now
        return self._plan_line(line, new)

    def plan(self) -> CorrectionPlan | CorrectRecord:
        """Return a plan, or a record with candidates if no statement matches clearly.

        Raise NotFound if no statement matches and the subject has no page.
        """
        wording, tasks = self.wording, self._tasks()
        if len(tasks) > 1:
            return choice(tasks, SEVERAL)
        if tasks and wording.was and wording.now and not wording.outcome:
            new = model.rewrite(tasks[0].text, wording.was, wording.now, self.names)
            return CorrectionPlan(wording, line=tasks[0], new=new or wording.now)
        if tasks:
            outcome = wording.outcome or ("done" if wording.now else "cancelled")
            return CorrectionPlan(wording._replace(outcome=outcome), line=tasks[0])
        if wording.was:
            return self._plan_by_words(self.lines)
        if wording.outcome:
            status = self._open_status()
            return self._plan_line(status, f"status: {wording.outcome}") if status else self._unmatched()
        if quoted := _quoted(self.lines, self.about):
            self.wording = wording._replace(was=self.about)
            return self._plan_by_words(quoted)
        return self._plan_by_label()

    def _tasks(self) -> list[StoredStatement]:
        """Return the open to-dos that the correction finishes, cancels or quotes."""
        was, now, outcome = self.wording.was, self.wording.now, self.wording.outcome
        words = f"{self.about} {was}"
        own = self.lines if self.subject is not None else []
        lines = [*own, *statements_near(self.brain, words, self.book)]
        todos = list({line.id: line for line in lines if line.box is not None}.values())
        if was:
            return [line for line in todos if model.quotes_task(was, line.text)] or [
                line
                for line in todos
                if model.quotes_task(words, line.text)
                and (
                    model.stems(was) <= model.stems(line.text) if outcome else model.has_value(line.text, was)
                )
            ]
        if not outcome and not changes.reports_finished(now):
            return []
        if self.subject is None or self.rest.strip():
            return changes.find_task(words, todos)
        mine = [line for line in todos if line in own or model.has_value(line.text, self.subject.title)]
        reported = [] if outcome else changes.find_task(now, mine)
        return reported or changes.find_task(self.about, mine) or mine

    def _open_status(self) -> StoredStatement | None:
        """Return the status field of a task page, or a field "open" if it has none. Return None for other pages."""
        if self.subject is None or self.subject.type not in TASK_TYPES:
            return None
        fields = (line for line in self.lines if line.part == "field" and line.section == "status")
        missing = StatementPlace(0, 0, 0, "status: open", 1, "status")
        return next(fields, StoredStatement(self.subject, missing, "field"))

    def _plan_by_words(self, lines: list[StoredStatement]) -> CorrectionPlan | CorrectRecord:
        """Plan a correction that quotes the old words."""
        was = self.wording.was

        def clearness(fact: StoredFact) -> int:
            return model.match_fact(self.wording, fact.row.subject, fact.row.predicate, fact.row.object)

        facts = changes.best_matches(self.facts, clearness)
        matches = self._lines_with_old_words(lines)
        if quoted := _quoted(matches, was):
            facts, matches = facts if _says_one_thing(facts) else [], quoted
        texts = [line for line in matches if line.part == "truth"]
        if facts and not quoted:
            is_value = any(fold_name(was) == fold_name(fact.row.object) for fact in facts)
            matches = [line for line in texts if not is_value or self._states(line, facts[0].row)]
        else:
            matches = texts or matches
        if (facts and not _says_one_thing(facts)) or len(matches) > 1:
            return choice([*facts, *matches], SEVERAL)
        if facts:
            return self._plan_fact(facts, matches[0] if matches else None)
        if not matches:
            return self._unmatched()
        new = self._rewritten(matches[0])
        return choice(matches, SAYS_MORE) if new is None else self._plan_line(matches[0], new)

    def _lines_with_old_words(self, lines: Iterable[StoredStatement]) -> list[StoredStatement]:
        """Return lines, fields and timeline entries with the old words. To-dos are left to `_tasks`.

        If the subject has no page, prefer those whose text, heading or page names it.
        """
        was, matches = self.wording.was, []
        for line in lines:
            if line.part == "timeline":
                is_match = plain_text.same_line(line.text, was)
            else:
                has_words = line.part == "truth" and model.has_value(line.text, was)
                is_match = has_words or self._rewritten(line) is not None
            if is_match and line.box is None:
                matches.append(line)
        if self.subject is not None:
            return matches
        topic, near = model.stems(self.about), []
        for line in matches:
            slug = re.sub(r"[-/_]", " ", line.page.slug)
            if topic <= model.stems(f"{line.text} {line.section} {line.page.title} {slug}"):
                near.append(line)
        return near or [line for line in matches if line.file and len(was.split()) > 1]

    def _rewritten(self, line: StoredStatement) -> str | None:
        """Return a line with the old words replaced, or None if it is unclear what to replace."""
        was, now = self.wording.was, self.wording.now
        if not was:
            return None
        if line.part == "field":
            key, value = line.section, fold_name(line.text.partition(": ")[2])
            if value not in (fold_name(was), fold_name(model.split_label(was, self.names, key)[1])):
                return None
            return f"{key}: {model.split_label(now, self.names, key)[1]}" if now else ""
        if line.part == "timeline" and plain_text.same_line(line.text, was):
            return now
        return model.rewrite(line.text, was, now, f"{self.names} {line.page.title}")

    def _plan_by_label(self) -> CorrectionPlan | CorrectRecord:
        """Plan a correction that does not quote the old words, by the predicate or label of the new words."""
        now, rest = self.wording.now, model.stems(self.rest)
        facts: list[StoredFact] = []
        for fact in self.facts:
            row = fact.row
            labelled, value = model.split_label(now, row.subject, row.predicate, strict=True)
            own = model.stems(row.predicate.replace("_", " "))
            if not (labelled or (own and own <= rest)):
                continue
            if fact_model.object_key(value) != fact_model.object_key(row.object):
                facts.append(fact)
            elif (page := self.subject) is not None:
                note = "Nothing was changed: the memory says so already."
                place = (page.slug, page.collection, page.version)
                return CorrectRecord(False, now, *place, fact=row.id, note=note)
        if _says_one_thing(facts):
            return self._plan_fact(facts, None)
        lines = [] if facts else self._labelled_lines()
        if len(facts) + len(lines) > 1:
            return choice([*facts, *(line for line, _ in lines)], SEVERAL)
        return self._plan_line(*lines[0]) if lines else self._unmatched()

    def _labelled_lines(self) -> list[tuple[StoredStatement, str]]:
        """Return lines and fields with the label, topic or beginning of the new words, each with its new text."""
        now = self.wording.now
        names = model.stems(self.names) if self.subject is not None else frozenset()
        topic = model.stems(self.rest if self.subject is not None else self.about)
        label, value = model.label_of(now)
        lines = [line for line in self.lines if line.part != "timeline" and not line.place.is_row]
        lines = [line for line in lines if line.box is None]
        found: dict[str, tuple[StoredStatement, str]] = {}
        for line in lines:
            own, old = model.label_of(line.text)
            own = (model.stems(line.section) if line.part == "field" else own) - names
            same = bool(own) and own == label - names
            is_topic = own and own <= topic <= own | model.stems(line.section)
            if not same and not (is_topic and len(now.split()) <= model.MAX_VALUE_WORDS):
                continue
            text = value if same else now
            new = model.replace_labelled(line.text, text) if fold_name(text) != fold_name(old) else None
            if new is not None:
                found[line.id] = line, new
        if found:
            return list(found.values())
        texts = [line for line in lines if line.part == "truth"]
        for text in spoken_variants(now, "", *self.names.split()[:1], self.about):
            for line in changes.find_corrected(text, texts):
                if (new := model.replace_after_prefix(line.text, text)) is not None:
                    found.setdefault(line.id, (line, new))
        return list(found.values())

    def _states(self, line: StoredStatement, row: FactRow) -> bool:
        """Return True if a line states the fact in `row`."""
        return model.states_fact(line.text, row.predicate, fact_operations.spellings(self.brain, row.object))

    def _plan_fact(self, facts: list[StoredFact], line: StoredStatement | None) -> CorrectionPlan:
        """Plan the correction of facts with one predicate and value, and of the line that states them.

        The line is searched for on the subject's page unless it is given.
        """
        wording, row = self.wording, facts[0].row
        value = model.new_value(wording, row.subject, row.predicate, row.object) if wording.now else None
        own = self.lines if self.subject is not None else []
        texts = [line for line in own if line.part == "truth" and line.box is None]
        line = line or single([line for line in texts if self._states(line, row)])
        new = self._with_value(line, row, value) if line else None
        keys = model.relation_stems(row.predicate)
        fields = [line for line in own if line.part == "field" and model.stems(line.section) & keys]
        return CorrectionPlan(
            *(wording, tuple(facts), value),
            *((line, new) if new is not None else (None, "")),
            single([line for line in fields if self._rewritten(line)]),
            self.subject or facts[0].page,
        )

    def _with_value(self, line: StoredStatement, row: FactRow, value: str | None) -> str | None:
        """Return a line with the old words or the fact's value replaced, or None if that is not possible.

        If there is no new value, return "" if the line states only the fact.
        """
        new = self._rewritten(line)
        if new is not None:
            return new
        own = model.relation_stems(row.predicate) | model.stems(f"{self.names} {line.page.title}")
        for spelling in fact_operations.spellings(self.brain, row.object):
            left, place, right = model.cut_words(line.text, spelling)
            if place and value is not None:
                return left + value + right
            if place and model.stems(left + right) <= own:
                return ""
        return None

    def _plan_line(self, line: StoredStatement, new: str) -> CorrectionPlan:
        """Plan the correction of a line, and of the fact that it states if the line is removed or has a new value."""
        facts: list[StoredFact] = []
        value: str | None = None
        for fact in current_facts(self.brain, line.page):
            spellings = fact_operations.spellings(self.brain, fact.row.object)
            is_kept = any(model.has_value(new, spelling) for spelling in spellings)
            if model.states_fact(line.text, fact.row.predicate, spellings) and not is_kept:
                facts.append(fact)
                values = (model.value_in_place(new, line.text, spelling) for spelling in spellings)
                value = next(filter(None, values), None)
        if not _says_one_thing(facts) or (new and not value):
            facts = []
        if line.text.endswith(".") and new[-1:].isalnum() and line.part != "field":
            new += "."
        return CorrectionPlan(self.wording, tuple(facts), value, line, new)

    def _unmatched(self) -> CorrectRecord:
        """Return the facts and lines about the subject as candidates, the most similar first.

        Raise NotFound if the subject has no page.
        """
        page, was, now, outcome = self.subject, self.wording.was, self.wording.now, self.wording.outcome
        if page is None and outcome:
            hint = "It may be ticked already; `quaid query` shows it."
            raise NotFound(what="open to-do", name=repr(f"{self.about} {was}".strip()), hint=hint)
        if page is None:
            hint = "Nothing stored says so. Write it with `quaid remember` or `quaid put`."
            raise NotFound(what="statement", name=repr(f"{self.about}: {was or now}"), hint=hint)
        own = [line for line in self.lines if line.box is not None or not outcome]
        near = statements_near(self.brain, f"{page.title} {was}", self.book) if was else []
        others = [line for line in near if line.page.id != page.id and model.has_value(line.text, was)]
        items: list[StoredFact | StoredStatement] = [*self.facts]
        items += [line for line in own if not line.place.is_row]
        items += [line for line in others if self._names_subject(line, page)]
        names = model.stems(self.names)
        old = model.stems(f"{self.rest} {was}") - names
        new = model.stems(now) - names - old

        def nearness(item: StoredFact | StoredStatement) -> int:
            words = model.stems(item.text.replace("_", " "))
            return 3 * len(old & words) + len(new & words)

        return choice(sorted(items, key=nearness, reverse=True), NOT_STORED)

    def _names_subject(self, line: StoredStatement, page: PageRow) -> bool:
        """Return True if a line, or the title of its page, contains one of the names of `page`."""
        text = f" {fold_name(f'{line.page.title} {line.text}')} "
        return any(f" {name} " in text for name in _name_keys(self.brain, page))

    def still_saying(self, plan: CorrectionPlan) -> "list[StoredFact | StoredStatement]":
        """Return lines that still state the old value, on the subject's page or on pages that name it.

        A line counts if it has the old value together with a word of the fact's predicate or another word of the
        changed line; if the old words of the correction are more than two, the old value alone is enough.
        Facts whose value was in the old line but is not in the new one are returned too.
        """
        line, was = plan.line, plan.wording.was
        page = self.subject or plan.page or (line.page if line else None)
        if plan.wording.outcome or page is None:
            return []
        former = line.text if line else ""
        new = [text for text in (plan.new, plan.value) if text]
        spellings = {fact.id: fact_operations.spellings(self.brain, fact.row.object) for fact in plan.facts}
        found: dict[str, StoredFact | StoredStatement] = {}
        for fact in current_facts(self.brain, page):
            value = fact.row.object
            if model.has_value(former, value) and not model.has_value(plan.new, value):
                found[fact.id] = fact
        values = {was, *(value for own in spellings.values() for value in own)} - {""}
        lines = _own_statements(page_store.require(self.brain.db, page.slug, page.collection), self.book)
        if values:
            lines += statements_near(self.brain, f"{page.title} {max(values, key=len)}", self.book)
        known = model.stems(f"{self.names} {page.title} {' '.join([*values, *new])}")
        about = model.stems(former) - known

        def states(other: StoredStatement) -> bool:
            if any(model.states_fact(other.text, f.row.predicate, spellings[f.id]) for f in plan.facts):
                return True
            is_value = any(model.has_value(other.text, value) for value in values)
            return is_value and (len(was.split()) > 2 or not about.isdisjoint(model.stems(other.text)))

        for other in lines:
            named = other.page.id == page.id or self._names_subject(other, page)
            if named and states(other) and not any(model.has_value(other.text, value) for value in new):
                found[other.id] = other
        return list(found.values())


def single(lines: list[StoredStatement]) -> StoredStatement | None:
    """Return the only line of a list, or None if there are none or several."""
    return lines[0] if len(lines) == 1 else None


def _says_one_thing(facts: list[StoredFact]) -> bool:
    """Return True if there are facts, and all have the same predicate and value."""
    keys = {
        (fact_model.canonical_predicate(f.row.predicate), fact_model.object_key(f.row.object)) for f in facts
    }
    return len(keys) == 1


def spoken_variants(text: str, *names: str) -> list[str]:
    """Return the text with each of the names and pronouns in front of it.

    Lines of a page may refer to its subject by first name or pronoun.
    """
    return [f"{name} {text}".strip() for name in dict.fromkeys([*names, "She", "He", "It", "They"])]


# Applying corrections


class Correction:
    """Applies a CorrectionPlan."""

    def __init__(self, brain: Brain, plan: CorrectionPlan, day: str | None = None) -> None:
        self.brain, self.plan, self.wording, self.day = brain, plan, plan.wording, day
        self.now = brain.now()
        self.today = day or self.now[:10]
        self.fact_id: int | None = None
        self.says = plan.new

    def apply(self) -> CorrectRecord:
        """Change the line and the facts. If there is no line, add an entry to the page's timeline."""
        plan, line, path = self.plan, self.plan.line, ""
        page = line.page if line is not None else plan.page or plan.facts[0].page
        if line is not None and line.file:
            path, version = self._edit_file(line)
            self.brain.db.write(self._end_facts)
        else:
            version = self._edit_page(page)
        replaced = [ReplacedStatement(fact.id, fact.text, self._end_of(fact.row)) for fact in plan.facts]
        changed = [line for line in (line, self.plan.field) if line is not None]
        replaced += [ReplacedStatement(line.id, line.text, None) for line in changed]
        place = (page.slug, page.collection, version, path)
        return CorrectRecord(True, self.says, *place, tuple(replaced), self.fact_id)

    def _edit_page(self, page: PageRow) -> int:
        """Save a page and end the facts in one transaction. Return the new version.

        If only facts change, a timeline entry makes the change searchable, unless the page is read-only.
        """

        def also(tx: Transaction, page_id: int, _page: Page, _now: str) -> bool:
            self._end_facts(tx, but=page_id)
            return False

        if self.plan.line is not None or self.plan.page is not None:
            try:
                address = address_of(page)
                return page_changes.edit_page(self.brain, address, None, self._changed_page, also=also)[
                    0
                ].version
            except (CollectionReadOnly, PartOfOrgFile):
                if self.plan.line is not None:
                    raise
                self.plan = self.plan._replace(field=None)
        self.brain.db.write(self._end_facts)
        return page_store.require(self.brain.db, page.slug, page.collection).version

    def _changed_page(self, old: PageRow | None) -> Page:
        """Return the page with the line changed.

        A timeline entry keeps the old and the new text, except for closed to-dos, timeline lines and erasures.
        """
        assert old is not None
        plan, line, new = self.plan, self.plan.line, self.plan.new
        front, truth, lines = old.frontmatter, old.truth, old.timeline
        closed = None
        if line is None:
            former = plan.facts[0].text
            new = plan.facts[0].with_value(plan.value) if plan.value is not None else ""
        else:
            former = line.text
        if line is not None and line.part == "timeline":
            lines = self._changed_entry(lines, line)
        elif line is not None and line.part == "field":
            front = _with_field(front, line.place, new)
        elif line is not None:
            place = _find_again(truth, line)
            closed = self._closed(truth, place)
            truth = closed or model.replace_in_page(truth, place, new)
        if plan.field is not None and plan.value:
            front = _with_field(front, plan.field.place, f"{plan.field.section}: {plan.value}")
        is_noted = closed is None and (line is None or line.part != "timeline")
        if plan.keeps_trace and is_noted:
            right = new or ("was wrong" if self.wording.never_held else f"ended on {self.today}")
            lines = timeline.add_entry_once(lines, self.today, f"~~{former}~~ {right}", "correction", "")
        return page_changes.build_checked_page(old.slug, front, truth, lines, old)

    def _changed_entry(self, lines: str, line: StoredStatement) -> str:
        """Return a timeline with one entry struck or removed, and the corrected entry, if there is one, added."""
        place, new = _find_again(lines, line), self.plan.new
        begin = lines.rfind("\n", 0, place.start) + 1
        day = ISO_DAY.search(lines, begin, place.start)
        struck = f"~~{place.text}~~" if self.plan.keeps_trace else "(removed)"
        lines = lines[: place.start] + struck + lines[place.end :]
        if not new or not self.plan.keeps_trace:
            return lines
        entry = f"{new} (corrects {day[0]})" if day else new
        return timeline.add_entry_once(lines, self.today, entry, "correction", "")

    def _closed(self, text: str, place: StatementPlace) -> str | None:
        """Return the text with the to-do ticked or cancelled, or None if the correction does neither."""
        if not self.wording.outcome or place.box is None:
            return None
        is_done = self.wording.outcome == "done"
        self.says = f"[x] {place.text}" if is_done else f"~~{place.text}~~ (cancelled)"
        return model.close_task(text, place, self.wording, self.day, self.now[:10])

    def _edit_file(self, line: StoredStatement) -> tuple[str, int]:
        """Close the to-do, or strike the line in the notebook file and add the new line below it.

        If no trace is kept, delete the line. Return the path and the new version of the file.
        """

        def change(old: str | None) -> str:
            text = old or ""
            place = _find_again(text, line)
            if not self.plan.keeps_trace:
                return model.replace_in_page(text, place, "")
            closed = self._closed(text, place)
            return closed or model.strike_in_notebook(text, place, self.plan.new, self.today)

        notebook = Collections(self.brain.db).require(line.page.collection)
        edited = notebooks.edit_file(self.brain, notebook, line.file, change)
        return edited.path, edited.version

    def _end_facts(self, tx: Transaction, but: int | None = None) -> None:
        """End or withdraw the facts and add their new values.

        Each page with such a fact gets a new version, except the page with the id `but`.
        """
        never_held, value = self.wording.never_held, self.plan.value
        for fact in self.plan.facts:
            row, end = fact.row, self._end_of(fact.row)
            if value is not None:
                values: dict[str, Any] = {
                    "subject": row.subject,
                    "predicate": row.predicate,
                    "object": value,
                    "valid_from": row.valid_from if never_held else end,
                    "evidence_text": self.wording.now,
                    "source_ref": "correction",
                    "asserted_by": self.brain.stated_by,
                    **({} if never_held else {"supersedes_id": row.id}),
                }
                new = fact_model.check_fact(values, "")
                self.fact_id = fact_store.add_fact(tx, row.page_id, new, self.now, alone=True).id
                self.says = self.says or fact.with_value(value)
            if never_held:
                current = fact_store.read_facts(self.brain.db, "id", [row.id])[0]
                current.shorten(tx, end, end, None)
            elif value is None:
                row.end(tx, end)
            if row.page_id != but:
                page, collection = fact.page.slug, fact.page.collection
                page_edits.touch(tx, page, expected_version=None, now=self.now, collection=collection)

    def _end_of(self, row: FactRow) -> str:
        """Return the end date for a fact. A fact that was never true ends on the day it began."""
        if self.wording.never_held:
            return row.valid_from or row.created_at[:10]
        return max(self.today, row.valid_from or "")


def _find_again(text: str, line: StoredStatement) -> StatementPlace:
    """Return the place of a sentence in the current text, which may have changed since it was found."""
    starts = [match.start() for match in re.finditer(re.escape(line.text), text)]
    if not starts:
        raise NotFound(what="line", name=repr(line.text), hint="It was just changed; try again.")
    start = min(starts, key=lambda start: abs(start - line.place.start))
    return line.place._replace(start=start, end=start + len(line.text))


# Reading statements


_FIXED_FIELDS = frozenset(
    "id uuid slug title type aliases alias created created_at updated updated_at version source_ref".split()
)
"""Front matter keys that are never corrected, because they identify a page or record its history."""


def field_places(front: dict[str, Any]) -> Iterator[StatementPlace]:
    """Yield the values of front matter as statements such as "city: Oslo", with the key as heading."""
    for key, value in front.items():
        values = value if isinstance(value, list) else [value]
        for number, item in enumerate(values, 1):
            if key not in _FIXED_FIELDS and isinstance(item, str | int | float) and str(item).strip():
                yield StatementPlace(0, 0, 0, f"{key}: {item}", number, key)


def _with_field(front: dict[str, Any], place: StatementPlace, new: str) -> dict[str, Any]:
    """Return front matter with one value replaced by the value of `new`, or removed if `new` is empty."""
    key, old = place.heading, front.get(place.heading)
    value: Any = new.removeprefix(f"{key}: ").strip()
    if isinstance(old, list):
        wanted = place.text.removeprefix(f"{key}: ")
        items = [value if str(item) == wanted else item for item in old]
        return {**front, key: [item for item in items if item != ""]}
    if not value:
        return {name: item for name, item in front.items() if name != key}
    if isinstance(old, int | float) and not isinstance(old, bool):
        with contextlib.suppress(ValueError):  # the new value may not be a number
            value = type(old)(value)
    return {**front, key: value}


def page_statements(page: PageRow, *, closed: bool = False) -> Iterator[StoredStatement]:
    """Yield the statements in the text, front matter and timeline of a page.

    Ticked to-dos and struck lines are included only if `closed` is set.
    """
    for place in model.statements(page.truth, closed=closed):
        yield StoredStatement(page, place)
    for place in field_places(page.frontmatter):
        yield StoredStatement(page, place, "field")
    for place in model.statements(page.timeline, closed=closed):
        yield StoredStatement(page, place, "timeline")


def _own_statements(page: PageRow, book: list[StoredStatement]) -> list[StoredStatement]:
    """Return the statements of a page. If it is in the notebook, they come from `book`."""
    return [line for line in book if line.page.id == page.id] or list(page_statements(page))


def notebook_statements(brain: Brain, *, closed: bool = False) -> list[StoredStatement]:
    """Return the statements of the notebook's files in lists, reference and knowledge, without subfolders.

    Daily logs are a record and are not corrected.
    """
    notebook = layout.find_notebook(brain.db)
    if notebook is None or not layout.folder_exists(notebook):
        return []
    paths = layout.list_files(notebook.root or "")
    unknown = [path for path in paths if notebook.indexed_file(brain.db, path) is None]
    if unknown and brain.db.writable:
        notebooks.sync_folder(brain, notebook, unknown)
    lines: list[StoredStatement] = []
    visible = notebooks.visible_file_text(brain, notebook)
    for path in paths:
        file = notebook.indexed_file(brain.db, path)
        page = page_store.find(brain.db, file.slug, notebook.name) if file and file.slug else None
        text = page_writer.read_text_file(notebook, path)
        if page is not None and text is not None:
            places = model.statements(visible(path, text.text), closed=closed)
            lines += [StoredStatement(page, place, file=path) for place in places]
    return lines


def statements_near(
    brain: Brain, query: str, book: list[StoredStatement], *, closed: bool = False
) -> list[StoredStatement]:
    """Return the statements of the pages that match a query best, then those in `book`.

    Sources are included. Pages of the notebook and of knowledge bases are left out.
    """
    kinds = {collection.name: collection.kind for collection in Collections(brain.db).all()}
    lines: list[StoredStatement] = []
    for hit in text_search.search_pages(brain.db, query, limit=MAX_PAGES_SEARCHED):
        if kinds.get(hit.collection) in (None, "kb", layout.NOTEBOOK_KIND):
            continue  # nodes are corrected with `ai-kb`, and `book` has the notebook's statements
        page = page_store.find(brain.db, hit.slug, hit.collection)
        lines += page_statements(page, closed=closed) if page is not None else ()
    return [*lines, *book]


def _statement_with_id(
    brain: Brain, id: str, book: list[StoredStatement], *, closed: bool = False
) -> StoredStatement | None:
    """Return the statement with this id, from `book` or from the page that the id names, or None."""
    collection, slug = slugs.split_address(id.split(":", 2)[-1])
    page = (
        page_store.find(brain.db, slug, collection or Collections(brain.db).home_name())
        if id.count(":") > 1
        else None
    )
    lines = [*book, *(page_statements(page, closed=closed) if page is not None else ())]
    return next((line for line in lines if line.id == id), None)


def _quoted(lines: Iterable[StoredStatement], sentence: str) -> list[StoredStatement]:
    """Return the statements that equal this sentence; [] if it has fewer than MIN_QUOTED_WORDS words."""
    if len(sentence.split()) < MIN_QUOTED_WORDS:
        return []
    return [line for line in lines if line.part != "field" and plain_text.same_line(line.text, sentence)]


# Subjects and their facts


def _page_with_id(brain: Brain, id: int | None) -> PageRow | None:
    """Return the page with this id, or None if there is none or it is hidden."""
    head = page_store.page_heads(brain.db, [id]).get(id) if id is not None else None
    return page_store.require(brain.db, head.slug, head.collection) if head is not None else None


def _with_pages(brain: Brain, rows: Iterable[FactRow]) -> list[StoredFact]:
    """Return the facts that have not ended, with their pages. Facts of hidden pages are dropped."""
    today = brain.now()[:10]
    rows = [row for row in rows if row.valid_until is None or row.valid_until > today]
    found = {id: _page_with_id(brain, id) for id in {row.page_id for row in rows}}
    return [StoredFact(row, page) for row in rows if (page := found[row.page_id]) is not None]


def current_facts(brain: Brain, page: PageRow) -> list[StoredFact]:
    """Return the facts that hold today about the subject of a page, including facts on other pages."""
    keys = {row.name for row in page_store.pages_called(brain.db, _name_keys(brain, page))}
    mine = [key for key in keys if _single_page(page_store.pages_called(brain.db, [key])) == page.id]
    parts = fact_model.person_name_parts(page.title)
    own = [
        row
        for row in fact_store.read_facts(brain.db, "page", [page.id])
        if row.subject_key in {*parts, *keys}
    ]
    rows = {row.id: row for row in [*fact_store.read_facts(brain.db, "subject", mine), *own]}.values()
    today = brain.now()[:10]
    return _with_pages(
        brain, [row for row in rows if fact_model.is_valid_on(row.valid_from, row.valid_until, today)]
    )


def _name_keys(brain: Brain, page: PageRow) -> list[str]:
    """Return the title and other names of a page, normalized with fold_name()."""
    return [fold_name(name) for name in (page.title, *page_store.page_names(brain.db, [page.id]))]


def _single_page(rows: list[PageName]) -> int | None:
    """Return the id of the page that a name refers to, or None if no page or several have it.

    Only rows with the first row's kind of name (such as title or alias) count.
    """
    ids = {row.page_id for row in rows if row.kind == rows[0].kind}
    return ids.pop() if len(ids) == 1 else None


def find_subject(brain: Brain, about: str) -> tuple[PageRow | None, str]:
    """Return the page that `about` names, or None, and the remaining words.

    The whole text is tried first, as slug, file path, title and alias. Then the longest name in it is used.
    """
    try:
        return (pages.open_page(brain, about.strip()), "") if about.strip() else (None, about)
    except QuaidError:  # neither an address nor a unique title
        return named_page(brain, about)


def named_page(brain: Brain, about: str, *, leads: bool = False) -> tuple[PageRow | None, str]:
    """Return the page with the longest name that occurs in a text, or None, and the other words.

    With `leads`, the text must begin with the name, optionally after "the", "my" or "our".
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
        page = _page_with_id(brain, _single_page(named[name])) if name in named else None
        if page is not None:
            return page, " ".join([*words[:start], *words[start + length :]])
    return None, about


# Erasing a sentence

MIN_REPEATED_WORDS = 3
"""A title or slug with at least this many words, all from an erased sentence, is reported as a remnant."""


def line_to_remove(brain: Brain, query: str) -> StoredStatement | CorrectRecord:
    """Return the sentence that matches a text or an id. If several match, return a record with candidates.

    Sources, ticked to-dos and struck lines are searched too. Raise InvalidArgument if nothing matches.
    """
    book = notebook_statements(brain, closed=True)
    with brain.db.reading():
        if chosen := _statement_with_id(brain, query.strip(), book, closed=True):
            return chosen
        lines = statements_near(brain, query, book, closed=True)
    wanted = model.stems(query)

    def shared_words(line: StoredStatement) -> int:
        count = len(wanted & model.stems(line.text))
        return count if count >= MIN_SHARE_OF_QUERY * len(wanted) else 0

    found = (
        [line for line in lines if fold_name(line.text) == fold_name(query)]
        or [line for line in lines if model.has_value(line.text, query)]
        or changes.best_matches(lines, shared_words)
        or changes.find_subject(query, book)
    )
    if not found:
        advice = "use words of the sentence, or send slug to erase a whole page"
        raise InvalidArgument(name="query", problem=f"matches no sentence of any page; {advice}")
    note = "Several sentences have these words; nothing was proposed. Call again with the id of one as query."
    return found[0] if len(found) == 1 else choice(found, note)


def remove_line(brain: Brain, line: StoredStatement) -> CorrectRecord:
    """Erase a sentence from its page and earlier versions, and the facts that it states or that quote it."""
    with brain.db.reading():
        rows = fact_store.read_facts(brain.db, "page", [line.page.id])
    ids = [
        row.id
        for row in rows
        if line.text in row.evidence_text or model.states_fact(line.text, row.predicate, [row.object])
    ]
    plan = CorrectionPlan(Wording(line.text, "", never_held=True), line=line, keeps_trace=False)
    record = Correction(brain, plan).apply()

    def erase(tx: Transaction) -> None:
        history.drop_versions_with(tx, line.page.id, line.text)
        fact_store.delete_facts(tx, ids)
        erasure.optimize_indexes(tx)

    brain.db.write(erase)
    if brain.rehearsal is None:
        erasure.vacuum_and_checkpoint(brain.db)
    erased = [ReplacedStatement(f"fact:{id}", "erased", None) for id in ids]
    return record._replace(replaced=(*record.replaced, *erased), note=_remains_note(line))


def _remains_note(line: StoredStatement) -> str:
    """Return a note if the title or slug of the page repeats an erased sentence, else ""."""
    words, page = model.stems(line.text), line.page

    def repeats(name: str) -> bool:
        own = model.stems(name)
        return len(own) >= MIN_REPEATED_WORDS and own <= words

    slug = re.sub(r"[-/_]", " ", page.slug.rpartition("/")[2])
    parts = [part for part, text in (("title", page.title), ("slug", slug)) if repeats(text)]
    if not parts or line.file:
        return ""
    address = address_of(page)
    return (
        f"The {' and '.join(parts)} of {address} still {'has' if len(parts) == 1 else 'have'} words of it: "
        f"`quaid forget {address}` erases the page, `quaid rename` changes the slug."
    )


ISO_DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
