"""Correct what is stored: end or withdraw the old fact and the old line, and write the new ones.

`correct`, `remember` and the removal of a line by its words find their lines here, in the notebook, in the text,
timeline and front matter of pages, and among facts.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from quaid.app import Brain
from quaid.errors import CollectionReadOnly, InvalidArgument, NotFound, PartOfOrgFile, QuaidError
from quaid.folders import page_writer
from quaid.formats import sections
from quaid.model import corrections as model, dates, facts as fact_model, similarity, slug as slugs, timeline
from quaid.model.claims import stem_words
from quaid.model.corrections import StatementPlace, Wording
from quaid.model.english import split_sentences
from quaid.model.page import Page
from quaid.model.slug import fold_name
from quaid.notebook import changes, layout
from quaid.operations import notebook as notebooks, pages, receipts
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.storage import collections, facts as fact_store, history, page_edits, pages as page_store
from quaid.storage.facts import FactRow
from quaid.storage.pages import PageName, PageRow

if TYPE_CHECKING:
    from quaid.storage.page_edits import SaveResult
    from quaid.storage.sqlite.connection import Transaction

MAX_CANDIDATES = 8
MAX_PAGES_SEARCHED = 20
CLOSE_SCORE = 0.75
"""A statement is also a candidate if its score is at least this share of the best score."""

MAX_NAME_WORDS = 4
MIN_QUOTED_WORDS = 4
"""Fewer words are a name or a to-do, not a sentence that is quoted."""

MAX_SUBJECT_WORDS = 40
SOURCES = "sources/"


Candidate = TypeVar("Candidate")


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
    fact: int | None
    """The id of the new fact, if there is one."""
    candidates: tuple[CorrectionCandidate, ...] = ()
    """Set if several statements match. Nothing was changed; the caller should call again with one of these ids."""
    note: str = ""
    remaining: tuple[CorrectionCandidate, ...] = ()
    """Lines on other pages that still have the old statement."""
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
        address = slugs.address(self.page.collection, self.page.slug)
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


class _Fact(NamedTuple):
    row: FactRow
    page: PageRow
    score: float

    @property
    def id(self) -> str:
        return f"fact:{self.row.id}"

    @property
    def says(self) -> str:
        return f"{self.row.subject} {self.row.predicate} {self.row.object}"


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
    now: Annotated[str, Arg("What is true now, or done for a to-do.")] = "",
    was: Annotated[str, Arg("What is no longer true, or was wrong.")] = "",
    date: Annotated[str | None, Arg("Since when, YYYY-MM-DD [today].")] = None,
    id: Annotated[str | None, Arg("The candidate to change, if an earlier call listed several.")] = None,
) -> CorrectRecord:
    """Correct what is stored: "X is now Y", "that was wrong", "done". The old fact and line stay in the history."""
    day = dates.check_date(date, "date") if date else None
    wording = model.read_wording(was, now)
    if len([sentence for sentence in split_sentences(wording.was) if sentence.strip()]) > 1:
        raise InvalidArgument(name="was", problem="has several sentences; correct one sentence in each call")
    if was.strip() and was.strip() == now.strip():
        raise InvalidArgument(name="now", problem="is the same as was; nothing would change")
    if not about.strip() or not (was.strip() or now.strip()):
        name = "now" if about.strip() else "about"
        raise InvalidArgument(name=name, problem="is empty; say what is true now, or in was what was wrong")
    if merge := propose_merge_of(brain, f"{about} {now}"):
        return merge
    lines = notebook_statements(brain)
    name = about  # the words that name the subject
    with brain.db.reading():
        if not (was.strip() or wording.is_done) and _quoted(
            _statements_near(brain, about, None, lines), about
        ):
            wording, name = model.read_wording(about, now), ""
        if id is None and (record := _already_so(brain, about, wording)):
            return record
        matches = _find_matches(brain, about, wording, id, lines)
        if not matches.facts and not matches.lines:
            return _without_match(brain, about, wording)
    statements = {(fact.row.predicate, fact.row.object) for fact in matches.facts}
    if len(statements) > 1 or len(matches.lines) > 1:
        note = "Several statements match; nothing was changed. Call again with id."
        return _choice(
            [*map(_fact_candidate, matches.facts), *map(candidate, [*matches.lines, *matches.others])], note
        )
    line = matches.lines[0] if matches.lines else None
    is_value = bool(matches.facts and wording.now)  # then only the value of the fact is replaced in the line
    if (
        id is None
        and line
        and not is_value
        and model.says_more(line.text, wording, f"{name} {line.page.title}")
    ):
        note = "Nothing was changed: the line says more than `was`. Send in `was` the exact words to replace."
        return _choice([candidate(line)], note)
    record = _Correction(brain, name, matches.wording, day, matches.facts, line).apply()
    remaining = tuple(map(candidate, matches.others))
    return record._replace(
        remaining=remaining[:MAX_CANDIDATES], more=max(0, len(remaining) - MAX_CANDIDATES) or None
    )


def _choice(candidates: list[CorrectionCandidate], note: str) -> CorrectRecord:
    """Return the record of a call that changed nothing, with the statements to choose from."""
    more = max(0, len(candidates) - MAX_CANDIDATES)
    note += f" {more} more are not listed; use more words of the one that is meant." if more else ""
    return CorrectRecord(
        *(False, "", "", "", 0, "", (), None, tuple(candidates[:MAX_CANDIDATES]), note), more=more or None
    )


def _already_so(brain: Brain, about: str, wording: Wording) -> CorrectRecord | None:
    """Return the record for a correction that a current fact about the subject states already, else None."""
    subject, _ = _find_subject(brain, about)
    if subject is None or wording.was or not wording.now:
        return None
    for row in _current_facts(brain, subject):
        if model.states_fact(wording.now, row.predicate, row.object):
            note = "Nothing was changed: the memory says so already."
            place = (subject.slug, subject.collection, subject.version, "")
            return CorrectRecord(False, wording.now, *place, (), row.id, note=note)
    return None


def _without_match(brain: Brain, about: str, wording: Wording) -> CorrectRecord:
    """Return what is stored about the subject if nothing matches the correction, or raise NotFound."""
    subject, _ = _find_subject(brain, about)
    stored: list[CorrectionCandidate] = []
    if subject is not None:
        stored = [_fact_candidate(_Fact(row, subject, 1)) for row in _current_facts(brain, subject)]
        lines = [
            line
            for line in _page_statements(subject)
            if not (line.place.is_row or (line.part == "field" and line.place.heading in ("type", "title")))
        ]
        if wording.is_done:
            lines = [line for line in lines if line.box is not None] or lines
        stored += map(candidate, lines)
    if not stored:
        if wording.is_done:
            hint = "It may be ticked already; `quaid query` shows it."
            raise NotFound(what="open to-do", name=repr(f"{about} {wording.was}".strip()), hint=hint)
        hint = "Nothing stored says so. Write it with `quaid remember` or `quaid put`."
        raise NotFound(what="statement", name=repr(f"{about}: {wording.was or wording.now}"), hint=hint)
    note = "No statement matches; nothing was changed. Call again with the id of the one that is meant."
    if wording.now:
        note += " What is new is added with `quaid put` or `quaid remember`."
    return _choice(stored, note)


def _current_facts(brain: Brain, page: PageRow) -> list[FactRow]:
    """Return the facts of a page, and facts about it on other pages, that hold today."""
    today = brain.now()[:10]
    keys = [fold_name(page.title), fold_name(page.slug.rpartition("/")[2].replace("-", " "))]
    rows = {row.id: row for row in fact_store.facts_about(brain.db, keys)}
    rows |= {row.id: row for row in fact_store.read_facts(brain.db, page.id)}
    return [row for row in rows.values() if fact_model.is_valid_on(row.valid_from, row.valid_until, today)]


def candidate(line: StoredStatement) -> CorrectionCandidate:
    return CorrectionCandidate(line.id, line.text, _address(line.page))


def _fact_candidate(fact: "_Fact") -> CorrectionCandidate:
    return CorrectionCandidate(fact.id, fact.says, _address(fact.page))


def _address(page: PageRow) -> str:
    return slugs.address(page.collection, page.slug)


_SAME_AS = re.compile(
    r"(?i)\b(?:is|are) (?:also |actually |really )?(?:one and )?"
    r"(?:the same(?: person| company| page| thing| project| one)?(?: as)?|a duplicate of|identical (?:to|with))\b"
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
        (one, rest), (kept, other_rest) = _find_subject(brain, name), _find_subject(brain, other)
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


def line_to_remove(brain: Brain, query: str) -> StoredStatement | CorrectRecord:
    """Return the one sentence that has these words or this id, or the sentences to choose from.

    Raise InvalidArgument if no sentence matches.
    """
    wording = Wording(query, "", never_held=True, is_done=False)
    book = notebook_statements(brain)
    with brain.db.reading():
        ids = [query.strip()] if _ID.match(query) else []
        lines = _statements_near(brain, query, None, book, ids)
        chosen = [line for line in lines if line.id == query.strip()]
        ranked = chosen or _ranked(lines, None, "", frozenset(), wording)
    exact = [line for line in ranked if fold_name(line.text) == fold_name(query)]
    best = (
        exact
        or _best(ranked, lambda line: line.place.score)
        or changes.find_subject(changes.subject_of(query), book)
    )
    if len(best) == 1:
        return best[0]
    if not best:
        raise InvalidArgument(name="query", problem="matches no line")
    note = "Several lines have these words; nothing was proposed. Call again with the id of one as query."
    return _choice([*map(candidate, best)], note)


_ID = re.compile(r"\s*(?:line|entry|field):\S+:\S+\s*\Z")


def remove_line(brain: Brain, line: StoredStatement) -> CorrectRecord:
    """Remove a sentence, also from stored versions, and withdraw the facts that it states."""
    wording = Wording(line.text, "", never_held=True, is_done=False)
    record = _Correction(brain, "", wording, None, [], line, keeps_trace=False).apply()
    brain.db.write(lambda tx: history.drop_versions_with(tx, line.page.id, line.text))
    return record


class _Correction:
    """Applies one correction to facts with the same statement, to a line of a page or notebook, or to both."""

    def __init__(
        self,
        brain: Brain,
        about: str,
        wording: Wording,
        day: str | None,
        facts: "list[_Fact]",
        line: StoredStatement | None,
        *,
        keeps_trace: bool = True,
        new_text: str | None = None,
    ) -> None:
        self.keeps_trace = keeps_trace  # False: the old words are removed instead of struck through
        self.new_text = new_text
        self.brain, self.about, self.wording, self.line = brain, about, wording, line
        self.now = brain.now()
        self.day = day
        self.today = day or self.now[:10]
        self.fact_id: int | None = None
        self.says = ""
        self.facts = [(fact, self._new_value(fact.row)) for fact in facts]

    def _new_value(self, row: FactRow) -> str | None:
        """Return the new value of a fact; None if it only ends."""
        if not self.wording.now or self.wording.ends:
            return None
        return model.new_value(self.wording, row.subject, row.predicate, row.object)

    def apply(self) -> CorrectRecord:
        path, line = "", self.line
        if line is not None and line.file:
            path, version = self._edit_file(line)
            if self.facts:
                self.brain.db.write(self._end_facts)
        elif line is not None:
            version = self._edit_page(line)
        else:
            version = self._note_on_page(*self.facts[0])
        page = line.page if line is not None else self.facts[0][0].page
        return self._record(page, version, path)

    def apply_to_facts(self) -> CorrectRecord:
        """End the facts and add the new values, and leave the text of pages as it is."""
        self.brain.db.write(self._end_facts)
        page = self.facts[0][0].page
        return self._record(page, page_store.require(self.brain.db, page.slug, page.collection).version, "")

    def _record(self, page: PageRow, version: int, path: str) -> CorrectRecord:
        replaced = [CorrectedStatement(fact.id, fact.says, self._end_of(fact)) for fact, _ in self.facts]
        if self.line is not None:
            replaced.append(CorrectedStatement(self.line.id, self.line.text, None))
        return CorrectRecord(
            *(True, self.says, page.slug, page.collection, version, path, tuple(replaced), self.fact_id)
        )

    def _new_sentence(self, line: StoredStatement) -> str:
        """Return the sentence that replaces the line. Facts whose value the line loses are ended too."""
        about = f"{self.about} {line.page.title}"
        values = [(self._as_written(line, fact.row.object), value) for fact, value in self.facts if value]
        new = self.new_text
        if new is None:
            new = model.replaced_sentence(line.text, self.wording, about, values[0] if values else None)
        if line.text.endswith(".") and new[-1:].isalnum() and line.part != "field":
            new += "."
        self.says = new
        if not line.file:
            self._add_lost_facts(line, new)
        return new

    def _as_written(self, line: StoredStatement, value: str) -> str:
        """Return a value in the spelling of the line, which may be a link to its page."""
        spellings = receipts.spellings(self.brain, value)
        return next((spelling for spelling in spellings if model.has_value(line.text, spelling)), value)

    def _add_lost_facts(self, line: StoredStatement, new: str) -> None:
        """Add the facts of the page that the old sentence states and the new sentence does not.

        If several facts have the same value, only those with a word of their predicate in the sentence count.
        """
        ids = {fact.row.id for fact, _ in self.facts}
        lost = [
            row
            for row in _current_facts(self.brain, line.page)
            if row.id not in ids
            and model.has_value(line.text, row.object)
            and not model.has_value(new, row.object)
        ]
        for row in lost:
            rivals = [other for other in lost if fold_name(other.object) == fold_name(row.object)]
            states = model.states_fact(line.text, row.predicate, row.object)
            if states or (len(rivals) == 1 and new and row.page_id == line.page.id):
                value = model.value_in_place(new, line.text, row.object)
                self.facts.append((_Fact(row, line.page, 1), value or None))

    def _edit_page(self, line: StoredStatement) -> int:
        """Change the line on its page. A timeline entry with the old and the new text is added."""
        new = self._new_sentence(line)

        def change(old: PageRow | None) -> Page:
            assert old is not None
            front, truth, lines = old.frontmatter, old.truth, old.timeline
            if line.part == "field":
                front = _with_field(front, line.place, new)
            elif line.part == "timeline":
                place = self._find_again(lines, line)
                struck = f"~~{place.text}~~" if self.keeps_trace else "(removed)"
                lines = lines[: place.start] + struck + lines[place.end :]
                if new and self.keeps_trace:
                    begin = old.timeline.rfind("\n", 0, place.start) + 1
                    day = _ISO_DAY.search(old.timeline, begin, place.start)
                    entry = f"{new} (corrects {day[0]})" if day else new
                    lines = timeline.add_entry_once(lines, self.today, entry, "correction", "")
                return pages.rebuild_page(old, lines=lines)
            else:
                place = self._find_again(truth, line)
                ticked = model.tick_box(truth, place, self.day) if self.wording.is_done else None
                if ticked is not None:
                    self.says = f"[x] {place.text}"
                    return pages.build_checked_page(old.slug, front, ticked, lines, old)
                truth = model.replace_in_page(truth, place, new)
                front = self._with_same_values(front)
            if self.keeps_trace:
                lines = self._with_entry(lines, line.text, new)
            return pages.build_checked_page(old.slug, front, truth, lines, old)

        return self._save(line.page, change)

    def _with_same_values(self, front: dict[str, Any]) -> dict[str, Any]:
        """Return front matter in which values that are equal to a corrected value have the new value."""
        values = {fold_name(fact.row.object): value for fact, value in self.facts if value}
        if self.wording.was and self.wording.now:
            values[fold_name(self.wording.was)] = self.wording.now
        for place in _fields(front):
            key, _, value = place.text.partition(": ")
            if new := values.get(fold_name(value)):
                front = _with_field(front, place, f"{key}: {new}")
        return front

    def _note_on_page(self, fact: "_Fact", value: str | None) -> int:
        """Change facts that no line states, and note it on their page, so that searches find it.

        A new statement in a sentence is added to the compiled truth. The timeline gets the old and the new one.
        """
        row = fact.row
        is_sentence = len(self.wording.now.split()) > 2
        new = self.wording.now if is_sentence or not value else f"{row.subject} {row.predicate} {value}"
        former = self.wording.was if len(self.wording.was.split()) > 2 else fact.says

        def change(old: PageRow | None) -> Page:
            assert old is not None
            lines = self._with_entry(old.timeline, former, new)
            truth = f"{old.truth.rstrip()}\n\n{new.rstrip('.')}.".lstrip() if is_sentence else old.truth
            front = self._with_same_values(old.frontmatter)
            return pages.build_checked_page(old.slug, front, truth, lines, old)

        try:
            return self._save(fact.page, change)
        except (CollectionReadOnly, PartOfOrgFile):
            self.brain.db.write(self._end_facts)
            return page_store.require(self.brain.db, fact.page.slug, fact.page.collection).version

    def _with_entry(self, lines: str, former: str, new: str) -> str:
        """Return a timeline with an entry that has the former text, struck through, and the new text."""
        right = new or ("was wrong" if self.wording.never_held else "done" if self.wording.is_done else "")
        entry = f"~~{former}~~ {right}".strip()
        return timeline.add_entry_once(lines, self.today, entry, "correction", "")

    def _save(self, page: PageRow, change: Callable[[PageRow | None], Page]) -> int:
        """Save a page and end the facts in one transaction. Return the new version."""

        def also(tx: "Transaction", saved: "SaveResult", _page: Page, _now: str) -> "SaveResult":
            self._end_facts(tx, but=saved.id)
            return saved

        saved, _ = pages.edit_page(self.brain, _address(page), None, change, also=also)
        return saved.version

    def _edit_file(self, line: StoredStatement) -> tuple[str, int]:
        """Tick the to-do, or strike the line in the notebook file and write the new line below it."""
        notebook = collections.require(self.brain.db, line.page.collection)

        def change(old: str | None) -> str:
            text = old or ""
            place = self._find_again(text, line)
            if not self.keeps_trace:
                return model.replace_in_page(text, place, "")
            ticked = model.tick_box(text, place, self.day) if self.wording.is_done else None
            if ticked is not None:
                self.says = f"[x] {place.text}"
                return ticked
            return model.strike_in_notebook(text, place, self._new_sentence(line), self.today)

        edited = notebooks.edit_file(self.brain, notebook, line.file, change)
        return edited.path, edited.version

    def _find_again(self, text: str, line: StoredStatement) -> StatementPlace:
        """Return the place of the sentence in the current text. The sentence may have moved since it was found."""
        start = text.find(line.text, max(0, line.place.start - 200))
        if text[line.place.start : line.place.end] == line.text:
            start = line.place.start
        start = start if start >= 0 else text.find(line.text)
        if start < 0:
            raise NotFound(what="line", name=repr(line.text), hint="It was just changed; try again.")
        return line.place._replace(start=start, end=start + len(line.text))

    def _end_facts(self, tx: "Transaction", but: int | None = None) -> None:
        """End or withdraw the facts and add the new values. The page `but` has already got its new version."""
        for fact, value in self.facts:
            row = fact.row
            if value is not None:
                self._add_value(tx, row, value)
            if self.wording.never_held:
                since = row.valid_from or row.created_at[:10]
                tx_row = fact_store.read_facts(self.brain.db, ids=[row.id])[0]
                fact_store.shorten_fact(tx, tx_row, since, since, None)
            elif value is None:
                ended = fact_model.FactInput(
                    row.subject, row.predicate, row.object, row.valid_from, valid_until=self._end_of(fact)
                )
                fact_store.add_fact(tx, row.page_id, ended, self.now)
            if row.page_id != but:
                page_edits.touch(
                    tx, fact.page.slug, expected_version=None, now=self.now, collection=fact.page.collection
                )

    def _add_value(self, tx: "Transaction", row: FactRow, value: str) -> None:
        values: dict[str, Any] = {
            "subject": row.subject,
            "predicate": row.predicate,
            "object": value,
            "valid_from": row.valid_from if self.wording.never_held else self.day,
            "evidence_text": self.wording.now,
            "source_ref": "correction",
        }
        if not self.wording.never_held:
            values["supersedes_id"] = row.id
        self.fact_id = fact_store.add_fact(tx, row.page_id, fact_model.check_fact(values, ""), self.now).id
        self.says = self.says or f"{row.subject} {row.predicate} {value}"

    def _end_of(self, fact: "_Fact") -> str:
        row = fact.row
        if self.wording.never_held:
            return row.valid_from or row.created_at[:10]
        return max(self.today, row.valid_from or "")


# Sentences of `remember`


class SentenceChange(NamedTuple):
    """What a sentence ticked, struck or replaced, or the lines that it may be about."""

    action: Literal["ticked", "struck", "replaced", "nothing"]
    category: str
    record: CorrectRecord
    line: StoredStatement | None = None
    lines: tuple[StoredStatement, ...] = ()


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
            todos = [line for line in _statements_near(brain, text, None, book) if line.box is not None]
        tasks = changes.find_task(text, todos, 1 if explicit else 2, verb)
        if len(tasks) == 1:
            return _change_line(
                brain, tasks[0], "ticked", "todo", Wording("", "", never_held=False, is_done=True)
            )
        if explicit and tasks:
            return _several(tasks, "todo", "to-do")
        if not tasks and (thing := changes.bought_thing(text)):
            items = [line for line in book if line.path.startswith(f"{layout.LISTS}/") and line.box is None]
            bought = changes.find_task(thing, items)
            if len(bought) == 1:
                wording = Wording(bought[0].text, "", never_held=False, is_done=False)
                return _change_line(brain, bought[0], "struck", "shopping", wording)
    if category == "removal" and changes.is_removal_command(content):
        return _remove_by_sentence(brain, content, book)
    if category in ("removal", "correction"):
        statement = changes.ended_statement(content)
        lines = changes.find_ended(statement, book) if statement else changes.find_corrected(content, book)
        if len(lines) == 1:
            new = sections.sanitize(changes.strip_correction(" ".join(content.split())))
            wording = Wording(statement, new, never_held=False, is_done=False)
            return _change_line(brain, lines[0], "replaced", "correction", wording)
    return None


def _remove_by_sentence(brain: Brain, content: str, book: list[StoredStatement]) -> SentenceChange | None:
    """Strike the line of the notebook that a removal names, or list the lines that it may be about."""
    named = changes.find_removed(content, book)
    if len(named) == 1:
        is_todo = named[0].box is not None
        wording = Wording("" if is_todo else named[0].text, "", never_held=False, is_done=is_todo)
        return _change_line(brain, named[0], "ticked" if is_todo else "struck", "removal", wording)
    if named:
        return _several(named, "removal", "line")
    if not changes.names_stored_thing(content):
        return None
    with brain.db.reading():
        near = _statements_near(brain, content, None, [])
    on_pages = changes.find_removed(content, [line for line in near if line.part == "truth"])
    if on_pages:
        note = "A page says so; nothing was changed. `quaid correct` withdraws such a line, memory_forget removes it."
        return SentenceChange(
            "nothing", "removal", _choice([*map(candidate, on_pages)], note), None, (*on_pages,)
        )
    note = "No line of the notebook fits, so nothing was changed. `quaid recall` shows what is there."
    return SentenceChange("nothing", "removal", _choice([], note))


def _several(lines: list[StoredStatement], category: str, what: str) -> SentenceChange:
    note = f"Several lines fit, so nothing was changed; name the {what} more exactly."
    return SentenceChange("nothing", category, _choice([*map(candidate, lines)], note), None, tuple(lines))


def _change_line(
    brain: Brain,
    line: StoredStatement,
    action: Literal["ticked", "struck", "replaced"],
    category: str,
    wording: Wording,
) -> SentenceChange:
    correction = _Correction(brain, "", wording, None, [], line, new_text=wording.now)
    return SentenceChange(action, category, correction.apply(), line)


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
        wording = model.read_wording("", text)._replace(was=statement, never_held=False, ends=bool(statement))
        rows = _current_facts(brain, subject)
        single = fact_store.single_valued_predicates(brain.db)
        clashing = [_Fact(row, subject, 1) for row in rows if _clashes(row, wording, rest, single)]
        lines = [StoredStatement(subject, place) for place in model.statements(subject.truth)]
    # On its own page, the subject may be named by its first name or a pronoun, or not at all.
    name = text[: len(text) - len(rest)] if text.endswith(rest) else text.split()[0]
    find = changes.find_ended if statement else changes.find_corrected
    body = statement.removeprefix(name).strip() if statement else rest
    variants = [
        statement or text,
        *(f"{lead} {body}".strip() for lead in (text.split()[0], "She", "He", "It", "They", "")),
    ]
    fitting = [line for variant in variants for line in find(variant, lines)]
    report = SubjectReport(_address(subject))
    changed: list[_Fact] = []
    if len(clashing) == 1 and changes.tells_change(text):
        day = _ISO_DAY.search(text)
        correction = _Correction(brain, "", wording, day[0] if day else None, clashing, None)
        value = correction.facts[0][1]
        value = None if value is None else _VALUE_END.split(value, maxsplit=1)[0].strip(" ,.")
        if statement or (value and len(value.split()) <= MAX_VALUE_WORDS):
            correction.facts = [(clashing[0], value)]
            try:
                record = correction.apply_to_facts()
            except CollectionReadOnly:
                record = None
            if record:
                changed, report = clashing, report._replace(replaced=record.replaced, fact=record.fact)
    said = {line.id: line for line in fitting}
    for fact in changed:
        values = receipts.spellings(brain, fact.row.object)
        places = model.statements_of_fact(subject.truth, fact.row.predicate, values)
        old = [*(StoredStatement(subject, place) for place in places), *_fields_with(subject, values)]
        said |= {line.id: line for line in old}
    facts = [] if changed else [*map(_fact_candidate, clashing)]
    shown = {fact.row.id for fact in clashing}
    open_rows = [row for row in rows if row.id not in shown][: receipts.MAX_OPEN_FACTS]
    return report._replace(
        contradicts=tuple([*facts, *([] if changed else map(candidate, said.values()))][:MAX_CANDIDATES]),
        open_facts=tuple(
            receipts.OpenFact(row.id, f"{row.predicate} {row.object}", row.valid_from) for row in open_rows
        ),
        still_says=tuple(
            receipts.OldLine(_address(subject), line.text[: receipts.MAX_LINE_LENGTH])
            for line in (said.values() if changed else ())
        )[: receipts.MAX_OLD_LINES],
    )


_ISO_DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_VALUE_END = re.compile(
    r"(?i),|;| \(| (?:as|since|from|after|because|and|but|with|starting|until|instead|again|this|next|last)\b"
)
"""Words after the value of a fact in a sentence: "works at Acme since May"."""
MAX_VALUE_WORDS = 6


def _clashes(row: FactRow, wording: Wording, rest: str, single: frozenset[str]) -> bool:
    """Return True if a sentence says another value of a fact, or that the fact has ended."""
    if wording.ends:
        return model.states_fact(wording.was, row.predicate, row.object)
    predicate = fact_model.canonical_predicate(row.predicate)
    if not fact_model.is_single_valued(predicate, single, None):
        return False
    return bool(model.fact_score(row.predicate, row.object, wording, stem_words(rest.lower())))


# Finding what a correction is about


def notebook_statements(brain: Brain) -> list[StoredStatement]:
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
            lines += [StoredStatement(page, place, file=path) for place in model.statements(text.text)]
    return lines


_FIXED_FIELDS = frozenset("id uuid slug created created_at updated updated_at version source_ref".split())
"""Keys of the front matter that identify a page or record its history, so that they are not corrected."""


def _fields(front: dict[str, Any]) -> Iterator[StatementPlace]:
    """Yield the values of front matter as statements such as "city: Oslo", with the key as heading."""
    for key, value in front.items():
        values = value if isinstance(value, list) else [value]
        for number, item in enumerate(values, 1):
            if key not in _FIXED_FIELDS and isinstance(item, str | int | float) and str(item).strip():
                yield StatementPlace(0, 0, 0, f"{key}: {item}", number, key)


def _fields_with(page: PageRow, values: Iterable[str]) -> list[StoredStatement]:
    """Return the values of a page's front matter that are equal to one of these values."""
    wanted = set(map(fold_name, values))
    fields = (StoredStatement(page, place, "field") for place in _fields(page.frontmatter))
    return [line for line in fields if fold_name(line.text.partition(": ")[2]) in wanted]


def _with_field(front: dict[str, Any], place: StatementPlace, new: str) -> dict[str, Any]:
    """Return front matter with one value replaced by the value of `new`, or removed if `new` is empty."""
    key, old = place.heading, front.get(place.heading)
    text = new.partition(": ")[2].strip() if new.startswith(f"{key}: ") else new.strip()
    value: Any = text
    if isinstance(old, int | float) and not isinstance(old, bool):
        try:
            value = type(old)(text)
        except ValueError:
            pass  # the new value is no number
    if isinstance(old, list):
        wanted = place.text.partition(": ")[2]
        items = [value if str(item) == wanted else item for item in old]
        return {**front, key: [item for item in items if item != ""]}
    return {**front, key: value} if text else {name: item for name, item in front.items() if name != key}


def _page_statements(page: PageRow) -> Iterator[StoredStatement]:
    for place in model.statements(page.truth):
        yield StoredStatement(page, place)
    for place in _fields(page.frontmatter):
        yield StoredStatement(page, place, "field")
    for place in model.statements(page.timeline):
        yield StoredStatement(page, place, "timeline")


def _statements_near(
    brain: Brain,
    query: str,
    subject: PageRow | None,
    book: list[StoredStatement],
    ids: Iterable[str] = (),
) -> list[StoredStatement]:
    """Return the statements of the pages that match a query best, of the subject's page, and of the notebook.

    `ids` has ids of statements whose pages are read too.
    """
    kinds = {collection.name: collection.kind for collection in collections.list_all(brain.db)}
    found = [] if subject is None else [(subject.collection, subject.slug)]
    for id in ids:
        collection, slug = slugs.split_address(id.split(":", 2)[-1])
        found.append((collection or "default", slug))
    hits = text_search.search_pages(brain.db, query, limit=MAX_PAGES_SEARCHED)
    found += [(hit.collection, hit.slug) for hit in hits]
    lines: list[StoredStatement] = []
    for collection, slug in dict.fromkeys(found):
        if kinds.get(collection) in (None, "kb", layout.NOTEBOOK_KIND):
            continue  # nodes are corrected with `ai-kb`; the notebook's lines are those of its files
        page = page_store.find(brain.db, slug, collection)
        if page is None or (slug.startswith(SOURCES) and (subject is None or page.id != subject.id)):
            continue  # a source stays as it was received
        lines += _page_statements(page)
    return [*lines, *book]


class _Matches(NamedTuple):
    facts: "list[_Fact]"
    lines: list[StoredStatement]
    others: list[StoredStatement]
    """Lines on other pages that match too."""
    wording: Wording


def _find_matches(
    brain: Brain, about: str, wording: Wording, id: str | None, book: list[StoredStatement]
) -> _Matches:
    """Return the facts and lines that best match a correction, including those with a similar score.

    If a line on the page of the subject matches, matching lines on other pages are returned separately.
    """
    subject, rest = _find_subject(brain, about)
    words = stem_words(about.lower()) if subject is None else stem_words(rest.lower())
    chosen = {part.strip() for part in (id or "").split(",") if part.strip()}
    near = _statements_near(brain, f"{about} {wording.was or wording.now}", subject, book, chosen)
    if id is None and (tasks := _finished_tasks(about, wording, near, subject if not rest.strip() else None)):
        return _Matches([], tasks, [], wording._replace(now="", is_done=True))
    facts = _matching_facts(brain, subject, about, words, wording)
    if id is None and (quoted := _quoted(near, wording.was)):
        return _with_quoted(subject, wording, facts, quoted)
    lines = _ranked(near, subject, about, words, wording)
    if subject is None and not (facts or lines) and len(wording.was.split()) >= MIN_QUOTED_WORDS:
        # The subject may be a description that is stored nowhere. Several old words are enough then; a single value
        # may be about anything.
        everywhere = _statements_near(brain, wording.was, None, book)
        lines = [
            line for line in _ranked(everywhere, None, "", frozenset(), wording) if line.place.score == 1
        ]
    if id is not None:
        rows = [] if subject is None else _current_facts(brain, subject)
        facts = [fact for fact in facts if fact.id in chosen] or [
            _Fact(row, subject, 1) for row in rows if subject and f"fact:{row.id}" in chosen
        ]
        lines = [line for line in near if line.id in chosen]
        if not facts and not lines:
            raise NotFound(what="candidate", name=id, hint="Call without id to list the candidates.")
        return _Matches(facts, lines, [], wording)
    return _with_best(brain, subject, wording, facts, lines)


def _quoted(lines: Iterable[StoredStatement], sentence: str) -> list[StoredStatement]:
    """Return the statements that are exactly this sentence, unless it is as short as a name, a value or a to-do."""
    if len(sentence.split()) < MIN_QUOTED_WORDS:
        return []
    return [line for line in lines if similarity.same_line(line.text, sentence)]


def _with_quoted(
    subject: PageRow | None, wording: Wording, facts: "list[_Fact]", quoted: list[StoredStatement]
) -> _Matches:
    """Return the matches for a correction that quotes a stored sentence.

    A fact counts only if the sentence states it alone. Otherwise the facts that the line loses are found when it is
    changed.
    """
    own = [line for line in quoted if subject is not None and line.page.id == subject.id] or quoted
    chosen = [line for line in own if line.part == "truth"] or own
    text = chosen[0].text
    stated = [fact for fact in facts if model.states_fact(text, fact.row.predicate, fact.row.object)]
    others = [line for line in quoted if line not in chosen]
    return _Matches(stated if len(stated) == 1 else [], chosen, others, wording)


def _with_best(
    brain: Brain,
    subject: PageRow | None,
    wording: Wording,
    facts: "list[_Fact]",
    lines: list[StoredStatement],
) -> _Matches:
    """Keep the best matches.

    A line of the text is preferred to a value of the front matter, and that to an entry of the timeline.
    """
    facts = _best(facts, lambda fact: fact.score)
    entries = [line for line in lines if line.part == "timeline"]
    fields = _best([line for line in lines if line.part == "field"], lambda line: line.place.score)
    lines = _best([line for line in lines if line.part == "truth"], lambda line: line.place.score)
    others: list[StoredStatement] = []
    if subject is not None and any(line.page.id == subject.id for line in lines):
        others = [line for line in lines if line.page.id != subject.id]
        lines = [line for line in lines if line.page.id == subject.id]
    elif subject is not None and not wording.was:
        # Without the old words, a line on the page of something else is no safe match.
        others = [line for line in lines if not line.file]
        lines = [line for line in lines if line.file]
    if subject is not None:
        fields = [line for line in fields if line.page.id == subject.id]
    if facts and not lines:
        lines = _lines_with_fact(brain, facts[0], subject)
    elif not lines:
        lines = fields or (_best(entries, lambda line: line.place.score) if wording.was else [])
    if wording.never_held:
        others += [
            entry for entry in entries if entry not in lines
        ]  # it never held, so the entry is wrong too
    return _Matches(facts, lines, others, wording)


def _finished_tasks(
    about: str, wording: Wording, lines: Iterable[StoredStatement], page: PageRow | None
) -> list[StoredStatement]:
    """Return the open to-dos that a correction such as "call the bank: done" finishes.

    `page` is the page that `about` names, if it names nothing else; then only its to-dos count.
    """
    now = wording.now
    reports = wording.is_done or (now and not wording.was and changes.reports_finished(now))
    if not reports:
        return []
    todos = [line for line in lines if line.box is not None and line.part == "truth"]
    if page is None:
        return changes.find_task(f"{about} {wording.was}", todos)
    own = [line for line in todos if line.page.id == page.id]
    if wording.was or now:
        return changes.find_task(wording.was or now, own) or changes.find_task(
            f"{about} {wording.was or now}", todos
        )
    return changes.find_task(about, todos) or own


def _lines_with_fact(brain: Brain, fact: "_Fact", subject: PageRow | None) -> list[StoredStatement]:
    """Return the line that states a fact on its page or the page of its subject, if there is exactly one.

    A line with the value and a word of the predicate is preferred to a line with only the value.
    """
    pages_of_fact = {page.id: page for page in (fact.page, subject) if page is not None}
    own = [page for page in pages_of_fact.values() if not page.slug.startswith(SOURCES)]
    spellings = receipts.spellings(brain, fact.row.object)
    lines = [
        StoredStatement(page, place)
        for page in own
        for place in model.statements_of_fact(page.truth, fact.row.predicate, spellings)
    ]
    stating = [line for line in lines if model.states_fact(line.text, fact.row.predicate, fact.row.object)]
    lines = stating or lines
    return lines if len(lines) == 1 else []


def _best(candidates: list[Candidate], score: Callable[[Candidate], float]) -> list[Candidate]:
    top = max(map(score, candidates), default=0)
    return [candidate for candidate in candidates if score(candidate) >= top * CLOSE_SCORE]


def _find_subject(brain: Brain, about: str) -> tuple[PageRow | None, str]:
    """Return the page that words of `about` name, if there is one, and the remaining words.

    The whole text is tried as an address, title or alias, then fewer and fewer of its words.
    """
    try:
        return pages.require_page(brain, about.strip()), ""
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
        rows = named.get(name, [])
        ids = {row.page_id for row in rows if row.kind == rows[0].kind}
        if len(ids) == 1:
            head = page_store.page_heads(brain.db, sorted(ids))[ids.pop()]
            page = page_store.require(brain.db, head.slug, head.collection)
            return page, " ".join([*words[:start], *words[start + length :]])
    return None, about


def _matching_facts(
    brain: Brain, subject: PageRow | None, about: str, words: frozenset[str], wording: Wording
) -> "list[_Fact]":
    today = brain.now()[:10]
    if subject is not None:
        rows = _current_facts(brain, subject)
        words |= stem_words(subject.title.lower())
    else:
        rows = fact_store.facts_about(brain.db, [fold_name(about)])
        rows = [row for row in rows if fact_model.is_valid_on(row.valid_from, row.valid_until, today)]
    heads = page_store.page_heads(brain.db, sorted({row.page_id for row in rows}))
    facts = []
    for row in rows:
        score = model.fact_score(row.predicate, row.object, wording, words)
        if score and row.page_id in heads:
            head = heads[row.page_id]
            facts.append(_Fact(row, page_store.require(brain.db, head.slug, head.collection), score))
    return facts


def _ranked(
    lines: Iterable[StoredStatement],
    subject: PageRow | None,
    about: str,
    words: frozenset[str],
    wording: Wording,
) -> list[StoredStatement]:
    """Return the statements that a correction may be about, each with its score."""
    lines = list(lines)
    # On other pages a line has to name the subject as the caller does; an address stands for the title.
    name = subject.title if subject is not None and "/" in about else about
    title = stem_words(name.lower()) if subject is not None else frozenset()
    topic = words if subject is not None or len(words) > 1 else frozenset()
    same: set[str] = set()
    if wording.now and not wording.was:
        texts = (
            (wording.now, f"{name} {wording.now}", f"{name.split()[0]} {wording.now}")
            if name
            else (wording.now,)
        )
        same = {line.id for text in texts for line in changes.find_corrected(text, lines)}
    ranked = []
    for line in lines:
        own = subject is not None and line.page.id == subject.id
        known = stem_words(f"{line.page.title} {line.page.slug}".lower().replace("-", " ").replace("/", " "))
        score = model.score(line.place, wording, words if own else words | title, known, topic)
        score = max(score, float(line.id in same and line.part != "timeline"))
        if score:
            ranked.append(line._replace(place=line.place._replace(score=score)))
    return ranked
