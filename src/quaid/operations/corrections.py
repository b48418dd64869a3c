"""Correct what is stored: end or withdraw the old fact and the old line, and write the new ones."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from quaid.app import Brain
from quaid.errors import CollectionReadOnly, InvalidArgument, NotFound, PartOfOrgFile, QuaidError
from quaid.model import corrections as model, dates, facts as fact_model, slug as slugs, timeline
from quaid.model.claims import stem_words
from quaid.model.corrections import StatementPlace, Wording
from quaid.model.english import split_sentences
from quaid.model.names import fold_name
from quaid.model.page import Page
from quaid.notebook import layout
from quaid.operations import notebook as notebooks, pages
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.storage import collections, facts as fact_store, history, page_edits, pages as page_store
from quaid.storage.facts import FactRow
from quaid.storage.pages import PageRow

if TYPE_CHECKING:
    from quaid.storage.page_edits import SaveResult
    from quaid.storage.sqlite.connection import Transaction

MAX_CANDIDATES = 8
MAX_PAGES_SEARCHED = 20
CLOSE_SCORE = 0.75
"""A statement is also a candidate if its score is at least this share of the best score."""

MAX_NAME_WORDS = 4
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

    def agent_view(self) -> dict[str, Any]:
        """Return the fields that agents need. The slug names the page of a notebook file too."""
        return {name: value for name, value in self._asdict().items() if name != "path"}


class _PageLine(NamedTuple):
    """A sentence of a page or notebook file that a correction may be about."""

    page: PageRow
    place: StatementPlace
    part: str = "truth"

    @property
    def id(self) -> str:
        kind = "line" if self.part == "truth" else "entry"
        sentence = f".{self.place.sentence}" if self.place.sentence > 1 else ""
        address = slugs.address(self.page.collection, self.page.slug)
        return f"{kind}:{self.place.line}{sentence}:{address}"


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
    if len([sentence for sentence in split_sentences(was) if sentence.strip()]) > 1:
        raise InvalidArgument(name="was", problem="has several sentences; correct one sentence in each call")
    if was.strip() and was.strip() == now.strip():
        raise InvalidArgument(name="now", problem="is the same as was; nothing would change")
    if not about.strip() or not (was.strip() or now.strip()):
        name = "now" if about.strip() else "about"
        raise InvalidArgument(name=name, problem="is empty; say what is true now, or in was what was wrong")
    with brain.db.reading():
        if id is None and (record := _already_so(brain, about, wording)):
            return record
        facts, lines, others = _candidates(brain, about, wording, id)
        if not facts and not lines:
            return _without_match(brain, about, wording)
    if len({(fact.row.predicate, fact.row.object) for fact in facts}) > 1 or len(lines) > 1:
        found = [
            *(CorrectionCandidate(fact.id, fact.says, _address(fact.page)) for fact in facts),
            *map(_line_candidate, [*lines, *others]),
        ]
        note = "Several statements match; nothing was changed. Call again with id."
        return CorrectRecord(False, "", "", "", 0, "", (), None, tuple(found[:MAX_CANDIDATES]), note)
    if (
        id is None
        and lines
        and model.says_more(lines[0].place.text, wording, f"{about} {lines[0].page.title}")
    ):
        note = "Nothing was changed: the line says more than `was`. Send in `was` the exact words to replace."
        return CorrectRecord(False, "", "", "", 0, "", (), None, (_line_candidate(lines[0]),), note)
    record = _Correction(brain, about, wording, day, facts, lines[0] if lines else None).apply()
    return record._replace(remaining=tuple(map(_line_candidate, others[:MAX_CANDIDATES])))


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
        facts = [_Fact(row, subject, 1) for row in _current_facts(brain, subject)]
        stored = [CorrectionCandidate(fact.id, fact.says, _address(subject)) for fact in facts]
        stored += [
            _line_candidate(_PageLine(subject, place)) for place in model.all_statements(subject.truth)
        ]
    if not stored:
        hint = "Nothing stored says so. Write it with `quaid remember` or `quaid put`."
        raise NotFound(what="statement", name=repr(f"{about}: {wording.was or wording.now}"), hint=hint)
    note = "No statement matches; nothing was changed. Call again with the id of the one that is meant."
    return CorrectRecord(False, "", "", "", 0, "", (), None, tuple(stored[:MAX_CANDIDATES]), note)


def _current_facts(brain: Brain, page: PageRow) -> list[FactRow]:
    today = brain.now()[:10]
    rows = fact_store.read_facts(brain.db, page.id)
    return [row for row in rows if fact_model.is_valid_on(row.valid_from, row.valid_until, today)]


def _line_candidate(line: "_PageLine") -> CorrectionCandidate:
    return CorrectionCandidate(line.id, line.place.text, _address(line.page))


def _address(page: PageRow) -> str:
    return slugs.address(page.collection, page.slug)


def line_to_remove(brain: Brain, query: str) -> _PageLine:
    """Return the one sentence of a page or notebook file that has these words, or raise InvalidArgument."""
    wording = Wording(query, "", never_held=True, is_done=False)
    with brain.db.reading():
        lines = _matching_lines(brain, None, query, frozenset(), wording)
    lines = _best(lines, lambda line: line.place.score)
    if len(lines) == 1:
        return lines[0]
    texts = "; ".join(repr(line.place.text) for line in lines[:MAX_CANDIDATES])
    several = f"matches {len(lines)} lines ({texts}); use more of the words of one"
    raise InvalidArgument(name="query", problem=several if lines else "matches no line")


def remove_line(brain: Brain, query: str) -> CorrectRecord:
    """Remove the sentence that has these words, also from stored versions, and withdraw the facts that it states."""
    line = line_to_remove(brain, query)
    wording = Wording(line.place.text, "", never_held=True, is_done=False)
    facts = _facts_in_line(brain, line, wording, brain.now()[:10])
    record = _Correction(brain, query, wording, None, facts, line, keeps_trace=False).apply()
    brain.db.write(lambda tx: history.drop_versions_with(tx, line.page.id, line.place.text))
    return record


class _Correction:
    """Applies one correction to facts with the same statement, to a line of a page or notebook, or to both."""

    def __init__(
        self,
        brain: Brain,
        about: str,
        wording: Wording,
        day: str | None,
        facts: list[_Fact],
        line: _PageLine | None,
        keeps_trace: bool = True,
    ) -> None:
        self.keeps_trace = keeps_trace  # False: the old words are removed instead of struck through
        self.brain, self.wording, self.facts, self.line = brain, wording, facts, line
        self.about = about
        self.now = brain.now()
        self.day = day
        self.today = day or self.now[:10]
        self.fact_id: int | None = None
        self.says = ""

    def apply(self) -> CorrectRecord:
        path = ""
        if self.line is not None and self._is_notebook(self.line):
            path, version = self._edit_file(self.line)
            if self.facts:
                self.brain.db.write(self._end_facts)
            page = self.line.page
        elif self.line is not None:
            page, version = self.line.page, self._edit_page(self.line)
        else:
            page, version = self.facts[0].page, self._note_on_page(self.facts[0])
        replaced = [CorrectedStatement(fact.id, fact.says, self._end_of(fact)) for fact in self.facts]
        if self.line is not None:
            replaced.append(CorrectedStatement(self.line.id, self.line.place.text, None))
        return CorrectRecord(
            *(True, self.says, page.slug, page.collection, version, path, tuple(replaced), self.fact_id)
        )

    def _is_notebook(self, line: _PageLine) -> bool:
        return collections.require(self.brain.db, line.page.collection).kind == layout.NOTEBOOK_KIND

    def _value(self) -> tuple[str, str] | None:
        """Return the old and the new value of the fact, if the correction contains a new value."""
        if not self.facts or not self.wording.now:
            return None
        row = self.facts[0].row
        return row.object, model.new_value(self.wording, row.subject, row.predicate, row.object)

    def _new_sentence(self, line: _PageLine) -> str:
        about = f"{self.about} {line.page.title}"
        self.says = model.replaced_sentence(line.place.text, self.wording, about, self._value())
        return self.says

    def _edit_page(self, line: _PageLine) -> int:
        """Replace the line in the compiled truth (the text above the timeline) of a page.

        A timeline entry with the old and the new text is added.
        """
        new = self._new_sentence(line)

        def change(old: PageRow | None) -> Page:
            assert old is not None
            if line.part == "timeline":
                place = self._find_again(old.timeline, line)
                struck = f"~~{place.text}~~" if self.keeps_trace else "(removed)"
                lines = old.timeline[: place.start] + struck + old.timeline[place.end :]
                return pages.rebuild_page(old, lines=lines)
            place = self._find_again(old.truth, line)
            ticked = model.tick_box(old.truth, place) if self.wording.is_done else None
            if ticked is not None:
                self.says = f"[x] {place.text}"
                return pages.build_checked_page(old.slug, old.frontmatter, ticked, old.timeline, old)
            truth = model.replace_in_page(old.truth, place, new)
            lines = old.timeline
            if self.keeps_trace:
                lines = self._with_entry(lines, line.place.text, new)
            return pages.build_checked_page(old.slug, old.frontmatter, truth, lines, old)

        return self._save(line.page, change)

    def _note_on_page(self, fact: _Fact) -> int:
        """Change facts that no line states, and note it on their page, so that searches find it.

        A new statement in a sentence is added to the compiled truth. The timeline gets the old and the new one.
        """
        value, row = self._value(), fact.row
        is_sentence = len(self.wording.now.split()) > 2
        new = self.wording.now if is_sentence or not value else f"{row.subject} {row.predicate} {value[1]}"
        former = self.wording.was if len(self.wording.was.split()) > 2 else fact.says

        def change(old: PageRow | None) -> Page:
            assert old is not None
            lines = self._with_entry(old.timeline, former, new)
            truth = f"{old.truth.rstrip()}\n\n{new.rstrip('.')}.".lstrip() if is_sentence else old.truth
            return pages.build_checked_page(old.slug, old.frontmatter, truth, lines, old)

        try:
            return self._save(fact.page, change)
        except (CollectionReadOnly, PartOfOrgFile):
            self.brain.db.write(self._end_facts)
            return page_store.require(self.brain.db, fact.page.slug, fact.page.collection).version

    def _with_entry(self, lines: str, former: str, new: str) -> str:
        """Return a timeline with an entry that has the former text, struck through, and the new text."""
        entry = f"~~{former}~~ {new or ('was wrong' if self.wording.never_held else '')}".strip()
        return timeline.add_entry_once(lines, self.today, entry, "correction", "")

    def _save(self, page: PageRow, change: Callable[[PageRow | None], Page]) -> int:
        """Save a page and end the facts in one transaction. Return the new version."""

        def also(tx: "Transaction", saved: "SaveResult", _page: Page, _now: str) -> "SaveResult":
            self._end_facts(tx, but=saved.id)
            return saved

        address = slugs.address(page.collection, page.slug)
        saved, _ = pages.edit_page(self.brain, address, None, change, also=also)
        return saved.version

    def _edit_file(self, line: _PageLine) -> tuple[str, int]:
        """Tick the to-do, or strike the line in the notebook file and write the new line below it."""
        notebook = collections.require(self.brain.db, line.page.collection)
        file, _ = collections.file_of_page(self.brain.db, line.page.id)
        path = file.path if file else f"{line.page.slug}.md"

        def change(old: str | None) -> str:
            place = self._find_again(old or "", line)
            ticked = model.tick_box(old or "", place) if self.wording.is_done else None
            self.says = f"[x] {place.text}"
            if not self.keeps_trace:
                self.says = ""
                return model.replace_in_page(old or "", place, "")
            return ticked or model.strike_in_notebook(old or "", place, self._new_sentence(line), self.today)

        edited = notebooks.edit_file(self.brain, notebook, path, change)
        return edited.path, edited.version

    def _find_again(self, text: str, line: _PageLine) -> StatementPlace:
        """Return the place of the sentence in the current text. The sentence may have moved since it was found."""
        start = text.find(line.place.text, max(0, line.place.start - 200))
        start = start if start >= 0 else text.find(line.place.text)
        if start < 0:
            raise NotFound(what="line", name=repr(line.place.text), hint="It was just changed; try again.")
        return line.place._replace(start=start, end=start + len(line.place.text))

    def _end_facts(self, tx: "Transaction", but: int | None = None) -> None:
        """End or withdraw the facts and add the new fact. The page `but` has already got its new version."""
        value = self._value()
        for fact in self.facts:
            row = fact.row
            if value is not None:
                self._add_value(tx, row, value[1])
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

    def _end_of(self, fact: _Fact) -> str:
        row = fact.row
        if self.wording.never_held:
            return row.valid_from or row.created_at[:10]
        return max(self.today, row.valid_from or "")


def _candidates(
    brain: Brain, about: str, wording: Wording, id: str | None
) -> tuple[list[_Fact], list[_PageLine], list[_PageLine]]:
    """Return the facts and lines that best match a correction, including those with a similar score.

    If a line on the page of the subject matches, matching lines on other pages are returned separately.
    """
    today = brain.now()[:10]
    subject, rest = _find_subject(brain, about)
    words = stem_words(about.lower()) if subject is None else stem_words(rest.lower())
    facts = _matching_facts(brain, subject, about, words, wording, today)
    lines = _matching_lines(brain, subject, about, words, wording)
    if not facts and not lines and wording.was:
        # The subject may be a description that is stored nowhere. The old words themselves are enough then.
        everywhere = _matching_lines(brain, None, "", frozenset(), wording)
        lines = [line for line in everywhere if line.place.score == 1]
    if id is not None:
        chosen = {part.strip() for part in id.split(",")}
        facts = [fact for fact in facts if fact.id in chosen]
        lines = [line for line in lines if line.id in chosen]
        if not facts and not lines and subject is not None:
            facts = [
                _Fact(row, subject, 1)
                for row in fact_store.read_facts(brain.db, subject.id)
                if f"fact:{row.id}" in chosen
            ]
            lines = [_PageLine(subject, place) for place in model.all_statements(subject.truth)]
            lines = [line for line in lines if line.id in chosen]
        if not facts and not lines:
            raise NotFound(what="candidate", name=id, hint="Call without id to list the candidates.")
    facts = _best(facts, lambda fact: fact.score)
    lines = _best(lines, lambda line: line.place.score)
    others: list[_PageLine] = []
    if subject is not None and any(line.page.id == subject.id for line in lines):
        others = [line for line in lines if line.page.id != subject.id]
        lines = [line for line in lines if line.page.id == subject.id]
    elif subject is not None and not wording.was:
        # Without the old words, a line on the page of something else is no safe match.
        names = {row.name for row in collections.list_all(brain.db) if row.kind == layout.NOTEBOOK_KIND}
        others = [line for line in lines if line.page.collection not in names]
        lines = [line for line in lines if line.page.collection in names]
    if len(lines) == 1 and not facts:
        facts = _facts_in_line(brain, lines[0], wording, today)
    if facts and not lines:
        lines = _lines_with_fact(facts[0], subject)
    return facts, lines, others


def _facts_in_line(brain: Brain, line: _PageLine, wording: Wording, today: str) -> list[_Fact]:
    """Return the facts of a page that the line states and the correction does not repeat."""
    return [
        _Fact(row, line.page, 1)
        for row in fact_store.read_facts(brain.db, line.page.id)
        if fact_model.is_valid_on(row.valid_from, row.valid_until, today)
        and model.states_fact(line.place.text, row.predicate, row.object)
        and model.touches_value(wording, row.object)
        and not model.states_fact(f"{row.predicate} {wording.now}", row.predicate, row.object)
    ]


def _lines_with_fact(fact: _Fact, subject: PageRow | None) -> list[_PageLine]:
    """Return the line that states a fact on its page or the page of its subject, if there is exactly one.

    A line with the value and a word of the predicate is preferred to a line with only the value.
    """
    pages_of_fact = {page.id: page for page in (fact.page, subject) if page is not None}
    own = [page for page in pages_of_fact.values() if not page.slug.startswith(SOURCES)]
    lines = [
        _PageLine(page, place)
        for page in own
        for place in model.statements_of_fact(page.truth, fact.row.predicate, fact.row.object)
    ]
    stating = [
        line for line in lines if model.states_fact(line.place.text, fact.row.predicate, fact.row.object)
    ]
    lines = stating or lines
    return lines if len(lines) == 1 else []


def _best(candidates: list[Candidate], score: Callable[[Candidate], float]) -> list[Candidate]:
    top = max(map(score, candidates), default=0)
    return [candidate for candidate in candidates if score(candidate) >= top * CLOSE_SCORE]


def _find_subject(brain: Brain, about: str) -> tuple[PageRow | None, str]:
    """Return the page that the first words of `about` name, if there is one, and the remaining words.

    The whole text is tried as an address, title or alias, then fewer and fewer of its first words.
    """
    try:
        return pages.require_page(brain, about.strip()), ""
    except QuaidError:
        pass  # neither an address nor a unique title
    words = about.replace("'s ", " ").replace("’s ", " ").split()
    for length in range(min(len(words), MAX_NAME_WORDS), 0, -1):
        for start in range(len(words) - length + 1):
            name = fold_name(" ".join(words[start : start + length]))
            named = page_store.pages_called(brain.db, [name]) if name else []
            ids = {row.page_id for row in named if row.kind == named[0].kind}
            if len(ids) == 1:
                head = page_store.page_heads(brain.db, sorted(ids))[ids.pop()]
                page = page_store.require(brain.db, head.slug, head.collection)
                return page, " ".join([*words[:start], *words[start + length :]])
    return None, about


def _matching_facts(
    brain: Brain,
    subject: PageRow | None,
    about: str,
    words: frozenset[str],
    wording: Wording,
    today: str,
) -> list[_Fact]:
    if subject is not None:
        keys = [fold_name(subject.title), fold_name(subject.slug.rpartition("/")[2].replace("-", " "))]
        rows = {row.id: row for row in fact_store.facts_about(brain.db, keys)}
        rows |= {row.id: row for row in fact_store.read_facts(brain.db, subject.id)}
        about_words = stem_words(subject.title.lower()) | words
    else:
        rows = {row.id: row for row in fact_store.facts_about(brain.db, [fold_name(about)])}
        about_words = words
    heads = page_store.page_heads(brain.db, sorted({row.page_id for row in rows.values()}))
    facts = []
    for row in rows.values():
        holds = row.valid_until is None or row.valid_until > today
        if not holds or row.page_id not in heads:
            continue
        score = model.fact_score(row.predicate, row.object, wording, about_words)
        if score:
            head = heads[row.page_id]
            facts.append(_Fact(row, page_store.require(brain.db, head.slug, head.collection), score))
    return facts


def _matching_lines(
    brain: Brain, subject: PageRow | None, about: str, words: frozenset[str], wording: Wording
) -> list[_PageLine]:
    query = f"{about} {wording.was or wording.now}"
    hits = text_search.search_pages(brain.db, query, limit=MAX_PAGES_SEARCHED)
    found = {
        (hit.collection, hit.slug): page_store.require(brain.db, hit.slug, hit.collection) for hit in hits
    }
    if subject is not None:
        found = {(subject.collection, subject.slug): subject, **found}
    kinds = {collection.name: collection.kind for collection in collections.list_all(brain.db)}
    # On other pages a line has to name the subject as the caller does; an address stands for the title.
    name = subject.title if subject is not None and "/" in about else about
    title = stem_words(name.lower()) if subject is not None else frozenset()
    lines = []
    for page in found.values():
        kind = kinds.get(page.collection, "")
        if kind == "kb" or (kind == layout.NOTEBOOK_KIND and page.slug.startswith("daily/")):
            continue  # nodes are corrected with `ai-kb`, and a log records what was known on its day
        if page.slug.startswith(SOURCES) and (subject is None or page.id != subject.id):
            continue  # a source stays as it was received
        known = stem_words(f"{page.title} {page.slug}".lower().replace("-", " ").replace("/", " "))
        own = subject is not None and page.id == subject.id
        needed = words if own else words | title
        topic = words if subject is not None or len(words) > 1 else frozenset()
        places = model.find_statements(page.truth, wording, needed, known, topic)
        lines += [_PageLine(page, place) for place in places]
        if (
            wording.never_held
        ):  # a timeline records its days, but a statement that never held is struck there too
            lines += [
                _PageLine(page, place._replace(score=place.score * CLOSE_SCORE * 0.9), "timeline")
                for place in model.find_statements(page.timeline, wording, needed, known)
            ]
    return lines
