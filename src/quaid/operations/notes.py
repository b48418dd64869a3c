"""Remember a sentence: add it to the notebook, or apply the correction or removal that it states."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.embedding.registry import DEFAULT_MODEL
from quaid.errors import CollectionReadOnly, InvalidArgument, QuaidError
from quaid.formats import sections
from quaid.model import corrections as model, dates, facts as fact_model, plain_text
from quaid.model.corrections import Wording
from quaid.model.plain_text import shorten
from quaid.model.slug import fold_name
from quaid.notebook import changes, layout, router
from quaid.notebook.router import Classification, RememberedLine
from quaid.operations import background, corrections
from quaid.operations.corrections import (
    Correction,
    CorrectionCandidate,
    CorrectionPlan,
    CorrectRecord,
    StoredFact,
    StoredStatement,
)
from quaid.operations.facts import (
    MAX_LINE_LENGTH,
    MAX_OLD_LINES,
    MAX_OPEN_FACTS,
    OldLine,
    OpenFact,
    ReplacedStatement,
    spellings,
)
from quaid.operations.notebook import edit_file
from quaid.operations.pages import ExpiryDay, ForPeriod, requested_moment
from quaid.operations.registry import Arg, op
from quaid.storage import facts as fact_store
from quaid.storage.collections import Collection, Collections

MAX_NOTE = 10_000
"""Maximum characters of a note. A longer text should be ingested as a source."""

MAX_ECHO = 200
"""Results for agents contain at most this many characters of each line."""

MAX_SIMILAR_LINES = 3

MAX_SHOWN_LINES = 20
"""If a sentence matches several lines, at most this many are listed."""

SEVERAL = "Several lines fit, so nothing was changed; name the {what} more exactly."

_TICK = Wording("", "", outcome="done")

_VALUE_END = re.compile(
    r"(?i),|;| \(| (?:as|since|from|after|because|and|but|with|starting|until|instead|again|this|next|last)\b"
)
"""Matches where the value of a fact ends in a sentence, as at " since" in "works at Acme since May"."""

RememberAction = Literal["added", "ticked", "struck", "replaced", "question", "nothing"]


class RememberRecord(NamedTuple):
    path: str
    section: str
    lines: tuple[RememberedLine, ...]
    """The added, ticked or struck lines; if nothing was changed, lines to which the sentence may refer."""
    version: int
    category: str = ""
    """The category of the sentence.

    One of todo, shopping, contact, order, preference, pattern, fact, list, removal, question and correction.
    """
    near: tuple[str, ...] = ()
    """Categories that are nearly as likely as `category`."""
    action: RememberAction = "added"
    note: str = ""
    """A hint for the caller, for example that another line contradicts the sentence; "" if there is none."""
    collection: str = ""
    replaced: tuple[ReplacedStatement, ...] = ()
    """The line that was ticked, struck or replaced, and the fact that was ended."""
    similar: tuple[str, ...] = ()
    """Lines with nearly the same content as the added line or on its subject, each as `path:line: text`."""
    slug: str = ""
    """The slug of the page made from the file `path`."""
    about: str = ""
    """The address of the page whose name the sentence begins with, or ""."""
    contradicts: tuple[CorrectionCandidate, ...] = ()
    """Facts and lines with another value, on the page `about` or in the notebook. `correct` accepts their ids."""
    open_facts: tuple[OpenFact, ...] = ()
    """Facts of the page `about` that still hold and do not contradict the sentence."""
    still_says: tuple[OldLine, ...] = ()
    """Lines of the page `about` that still state the value of an ended fact."""
    merge_proposal: int | None = None
    """The id of the proposal to merge two pages, if the sentence says that they are about the same thing."""
    due: str = ""
    """The due date of a to-do, or ""."""

    def agent_view(self) -> dict[str, Any]:
        """Return the fields for agents. Lines are shortened, and omit their path if it equals `self.path`."""
        lines = [
            line._replace(path="" if line.path == self.path else line.path, text=shorten(line.text, MAX_ECHO))
            for line in self.lines
        ]
        return {**self._asdict(), "lines": lines}


@op(
    "write",
    creates=True,
    tool="remember",
    core=True,
    adds_only=True,
    examples=(
        "quaid remember Sarah prefers email to phone",
        "quaid remember 'buy milk, eggs and bread'",
        "quaid remember 'The Dispossessed' --category lists --file reading",
        "quaid remember 'guest wifi is hunter2' --expires Friday",
    ),
)
def remember(
    brain: Brain,
    content: Annotated[
        str, Arg("What to remember, in plain words: one thing, or a list.", positional=True, any_text=True)
    ],
    category: Annotated[
        Literal[
            "lists",
            "reference",
            "knowledge",
            "contacts",
            "preferences",
            "standing-orders",
            "todos",
            "shopping",
            "facts",
            "patterns",
            "list",
            "contact",
            "preference",
            "order",
            "todo",
            "fact",
            "pattern",
        ]
        | None,
        Arg("The kind of note; by default chosen from the text."),
    ] = None,
    file: Annotated[str | None, Arg("The file, as in reading or lists/reading.md.")] = None,
    section: Annotated[str | None, Arg("The heading to add it under; created if missing.")] = None,
    expires: ExpiryDay = None,
    for_: ForPeriod = None,
) -> RememberRecord:
    """Remember one thing that the user said: fact, preference, to-do, contact, standing order, shopping, pattern.

    It is added once, under the matching heading of the matching file. A sentence that removes, corrects or finishes
    something ("remove milk", "done: renew passport") ticks, strikes or replaces the line it is about."""
    if len(content) > MAX_NOTE:
        remedy = "store a long text with `quaid ingest-source`"
        raise InvalidArgument(
            name="content", problem=f"has {len(content):,} characters and {MAX_NOTE:,} are allowed; {remedy}"
        )
    moment = requested_moment(brain, expires, for_)
    notebook = layout.require_notebook(brain.db)
    guess = Classification("", ())
    place: str | None = router.CATEGORY_ARGUMENTS.get(category, category) if category else None
    if content.strip() and not (category or file or section):
        guess = router.classify(content, _sentence_embedder(brain))
    if guess.category in ("shopping", "order") and router.is_task(content):
        due = dates.find_due(content, brain.local()[:10])
        if due and due.is_deadline:
            guess = Classification("todo", (guess.category, *guess.near))
    if guess.category == "question":
        note = "This is a question; `quaid query` answers it."
        return RememberRecord("", "", (), 0, "question", guess.near, "question", note)
    record = _apply_sentence(brain, content, guess.category) if guess.category and moment is None else None
    record = record or _add_note(brain, notebook, content, place, file, section, guess, moment)
    if record.action in ("ticked", "struck", "nothing") or record.category in ("shopping", "list", "todo"):
        return record
    return _with_note(_with_subject(brain, record, content), record)


def _add_note(
    brain: Brain,
    notebook: Collection,
    content: str,
    category: str | None,
    file: str | None,
    section: str | None,
    guess: Classification,
    moment: str | None,
) -> RememberRecord:
    """Add a note to the notebook file and section that fit it. It expires at `moment`; None means never."""
    paths: dict[str, None] = {}
    if router.needs_file_list(content, file):
        indexed = (row.path for row in notebook.known_files(brain.db))
        paths = dict.fromkeys([*layout.list_files(notebook.root or ""), *indexed])
    kind = router.KIND_OF.get(guess.category)
    finished = bool(guess.category) and changes.finished_task(content) is not None
    if guess.category in ("removal", "correction") or (finished and kind in (None, "todos", "shopping")):
        # A sentence that changes no line is stored as a note, so that nothing is lost.
        stripped = changes.strip_correction(content)
        statement = finished or changes.ended_statement(content)
        task = not statement and (router.is_task(stripped) or changes.is_removal_task(stripped))
        goal = router.choose_target(stripped, "todos" if task else "facts", None, None)
    else:
        goal = router.choose_target(content, category, file, section, tuple(paths), guessed=kind)
    if goal.path == router.NOTE_KINDS["todos"].path:
        goal = goal._replace(lines=[_with_due_day(brain, line) for line in goal.lines])
    if moment:
        goal = goal._replace(lines=[dates.with_expiry(line, moment) for line in goal.lines])
    written = router.UpdatedNote("", "", ())

    def change(old: str | None) -> str:
        nonlocal written
        written = router.add_lines(old, goal)
        return written.text

    edited = edit_file(brain, notebook, goal.path, change)
    indexed_file = notebook.indexed_file(brain.db, goal.path)
    filed = router.category_of(goal.path)
    near = tuple(name for name in dict.fromkeys((guess.category, *guess.near)) if name and name != filed)
    note = ""
    statements = corrections.notebook_statements(brain)
    similar, contradicts = _similar_lines(statements, written.lines)
    name = "to-do" if filed == "todo" else filed
    if guess.category in ("removal", "correction"):
        what = "corrects" if guess.category == "correction" else "removes"
        note = f"No line was found that this clearly {what}, so it was filed as a {name}."
    elif changes.says_finished(content):
        note = f"No to-do was found that this clearly finishes, so it was filed as a {name}."
    about = changes.similar_subject(content, statements) if note else []
    if not note and filed in ("fact", "pattern"):
        about = changes.similar_subject(content, [line for line in statements if line.box is not None])
        note = "Open to-dos on this are listed. If one is done, say so with its words." if about else ""
    if about:
        own = {(line.path, line.line) for line in written.lines}
        shown = (_show_line(line) for line in about if (line.path, line.place.line) not in own)
        similar = tuple(dict.fromkeys((*similar, *shown)))[:MAX_SIMILAR_LINES]
    return RememberRecord(
        *(goal.path, written.section, written.lines, edited.version, filed, near, "added", note),
        collection=notebook.name,
        similar=similar,
        slug=(indexed_file and indexed_file.slug) or "",
        contradicts=contradicts,
        due=dates.due_day_of(written.lines[0].text) if filed == "todo" and len(written.lines) == 1 else "",
    )


def _with_due_day(brain: Brain, line: str) -> str:
    """Return a to-do with its due date added in parentheses, unless it has that date already or the date is past.

    A relative date such as "by Friday" would mean a different day when it is read later.
    """
    today = brain.local()[:10]
    due = dates.find_due(line, today)
    if due is None or due.day < today or dates.due_day_of(line) == due.day:
        return line
    first, newline, rest = line.partition("\n")
    return f"{first} (due {due.day}){newline}{rest}"


def _show_line(line: StoredStatement) -> str:
    return f"{line.path}:{line.place.line}: {line.text}"


def _similar_lines(
    statements: list[StoredStatement], lines: tuple[RememberedLine, ...]
) -> tuple[tuple[str, ...], tuple[CorrectionCandidate, ...]]:
    """Return notebook lines with nearly the same content as a new line, and lines with a different value.

    If several lines were added, as for a list of items, return no lines.
    """
    if len(lines) != 1:
        return (), ()
    (new,) = lines
    others = [line for line in statements if (line.path, line.place.line) != (new.path, new.line)]
    clashing = changes.find_corrected(new.text, others)
    near = [line for line in others if line not in clashing and plain_text.is_near_line(new.text, line.text)]
    return (
        tuple(map(_show_line, near[:MAX_SIMILAR_LINES])),
        tuple(map(corrections.candidate, clashing[:MAX_SIMILAR_LINES])),
    )


def _sentence_embedder(brain: Brain) -> Callable[[str], bytes] | None:
    """Return a function that embeds a sentence with the default model.

    Return None if that model is not in use, not ready or has failed recently.

    The model is opened only when the function is called.
    """
    try:
        embedder = brain.embedder
    except QuaidError:
        return None
    if embedder.name != DEFAULT_MODEL or background.backoff_reason(brain, embedder.name) or embedder.ready():
        return None
    return embedder.embed_query


# Sentences that change stored lines


def _apply_sentence(brain: Brain, content: str, category: str) -> RememberRecord | None:
    """Apply a sentence that finishes, removes, ends or corrects something.

    Return None if the sentence has to be stored as a note. On pages, only to-dos are changed.
    """
    if merge := corrections.propose_merge_of(brain, content):
        return _unchanged("correction", merge.note)._replace(merge_proposal=merge.merge_proposal)
    task = changes.finished_task(content)
    if not task and category not in ("removal", "correction") and not changes.names_new_value(content):
        return None
    book = corrections.notebook_statements(brain)
    if any(plain_text.same_line(line.text, content) for line in book):
        return None  # the sentence repeats a line and changes nothing
    if task:
        text, explicit, verb = task
        with brain.db.reading():
            todos = [line for line in corrections.statements_near(brain, text, book) if line.box is not None]
        tasks = changes.find_task(text, todos, 1 if explicit else 2, verb)
        if len(tasks) == 1:
            return _change_line(brain, tasks[0], "ticked", "todo", _TICK)
        if explicit and tasks:
            return _unchanged("todo", SEVERAL.format(what="to-do"), tasks)
        if not tasks and (thing := changes.bought_thing(text)):
            items = [line for line in book if line.path.startswith(f"{layout.LISTS}/") and line.box is None]
            if bought := corrections.single(changes.find_task(thing, items)):
                return _change_line(brain, bought, "struck", "shopping", Wording(bought.text, ""))
    if category == "removal" and changes.is_removal_command(content):
        return _remove_by_sentence(brain, content, book)
    if category in ("removal", "correction") or changes.names_new_value(content):
        statement = changes.ended_statement(content)
        lines = changes.find_ended(statement, book) if statement else changes.find_corrected(content, book)
        if line := corrections.single(lines):
            new = sections.sanitize(changes.strip_correction(" ".join(content.split())))
            return _change_line(brain, line, "replaced", "correction", Wording(statement, new))
    return None


def _remove_by_sentence(brain: Brain, content: str, book: list[StoredStatement]) -> RememberRecord | None:
    """Strike or tick the notebook line that a sentence removes, or list the lines to which it may refer.

    Return None if the sentence has to be stored as a note.
    """
    named = changes.find_removed(content, book)
    if line := corrections.single(named):
        if line.box is None:
            return _change_line(brain, line, "struck", "removal", Wording(line.text, ""))
        if changes.cancels(content):
            return _change_line(brain, line, "struck", "removal", Wording("", "", outcome="cancelled"))
        return _change_line(brain, line, "ticked", "removal", _TICK)
    if named:
        return _unchanged("removal", SEVERAL.format(what="line"), named)
    if not changes.names_stored_thing(content):
        return None
    with brain.db.reading():
        near = [line for line in corrections.statements_near(brain, content, []) if line.part == "truth"]
    on_pages = changes.find_removed(content, near)
    note = (
        "No line of the notebook fits, so nothing was changed or added. `quaid recall` shows what is there; say it"
        " with words of the line, or use `quaid correct`."
    )
    if on_pages:
        note = "A page says so; nothing was changed. `quaid correct` withdraws such a line, memory_forget removes it."
    return _unchanged("removal", note, on_pages)


def _unchanged(category: str, note: str, lines: Sequence[StoredStatement] = ()) -> RememberRecord:
    """Return the record of a sentence that changed nothing, with the lines to which it may refer."""
    shown = tuple(_shown_line(line, written=False) for line in lines[:MAX_SHOWN_LINES])
    note = corrections.choice(lines, note).note
    return RememberRecord("", "", shown, 0, category, action="nothing", note=note)


def _change_line(
    brain: Brain, line: StoredStatement, action: RememberAction, category: str, wording: Wording
) -> RememberRecord:
    """Apply `wording` to a line, and return the record of the change."""
    done = Correction(brain, CorrectionPlan(wording, line=line, new=wording.now)).apply()
    lines = [_shown_line(line, written=True)]
    if action == "replaced":
        lines.append(RememberedLine(done.now, line.path, line.place.line + 1, written=True))
    return RememberRecord(
        *(line.path, line.section, tuple(lines), done.version, category, (), action),
        collection=done.collection,
        replaced=done.replaced,
        slug=done.slug,
    )


def _shown_line(line: StoredStatement, *, written: bool) -> RememberedLine:
    return RememberedLine(line.text, line.path, line.place.line, written)


# Stored facts and lines about the subject of a sentence


def _with_note(record: RememberRecord, before: RememberRecord) -> RememberRecord:
    """Add a note about contradictions to a record. `before` is the record that `_with_subject` was given."""
    is_new = record.contradicts != before.contradicts
    note = "" if is_new or record.replaced != before.replaced else before.note
    if record.contradicts:
        place = record.about if is_new else "An earlier line"
        note += f" {place} says otherwise; if it is outdated, `quaid correct` with its id changes it."
    elif record.still_says:
        note += f" The text of {record.about} still says otherwise; `quaid correct` changes it."
    return record._replace(note=note.strip())


def _with_subject(brain: Brain, record: RememberRecord, sentence: str) -> RememberRecord:
    """Add the page whose name the sentence begins with, its facts and all contradictions to a record.

    If the sentence clearly states a change and contradicts exactly one fact, that fact ends or gets the new value.
    The text of the page is not changed.
    """
    text = changes.strip_correction(" ".join(sentence.split()))[: changes.MAX_SENTENCE]
    with brain.db.reading():
        subject, rest = corrections.named_page(brain, text, leads=True)
        if subject is None or Collections(brain.db).require(subject.collection).kind == layout.NOTEBOOK_KIND:
            return record
        statement = changes.ended_statement(text)
        facts = corrections.current_facts(brain, subject)
        clashing = _clashing_facts(brain, facts, text, statement)
    lines = [line for line in corrections.page_statements(subject) if line.part == "truth"]
    name = text[: len(text) - len(rest)] if text.endswith(rest) else text.split()[0]
    body = statement.removeprefix(name).strip() if statement else rest
    find = changes.find_ended if statement else changes.find_corrected
    variants = [statement or text, *corrections.spoken_variants(body, text.split()[0], "")]
    said = {line.id: line for variant in variants for line in find(variant, lines)}
    shown = {fact.row.id for fact, _ in clashing}
    open_rows = [fact.row for fact in facts if fact.row.id not in shown][:MAX_OPEN_FACTS]
    open_facts = (OpenFact(row.id, f"{row.predicate} {row.object}", row.valid_from) for row in open_rows)
    record = record._replace(about=corrections.address_of(subject), open_facts=tuple(open_facts))
    done = None
    if len(clashing) == 1 and changes.tells_change(text):
        done = _change_fact(brain, text, *clashing[0])
    if done is None:
        stored: list[StoredFact | StoredStatement] = [*(fact for fact, _ in clashing), *said.values()]
        candidates = map(corrections.candidate, stored[: corrections.MAX_CANDIDATES])
        return record._replace(contradicts=(*record.contradicts, *candidates))
    row = clashing[0][0].row
    values = spellings(brain, row.object)
    for place in model.statements_of_fact(subject.truth, row.predicate, values):
        line = StoredStatement(subject, place)
        said[line.id] = line
    old = [line.text for line in said.values()]
    keys = {fold_name(value) for value in values}
    fields = (place.text for place in corrections.field_places(subject.frontmatter))
    old += [field for field in fields if fold_name(field.partition(": ")[2]) in keys]
    still = tuple(OldLine(record.about, text[:MAX_LINE_LENGTH]) for text in old[:MAX_OLD_LINES])
    return record._replace(replaced=(*record.replaced, *done.replaced), still_says=still)


def _clashing_facts(
    brain: Brain, facts: list[StoredFact], text: str, statement: str
) -> list[tuple[StoredFact, str | None]]:
    """Return the facts that a sentence ends or contradicts, each with its new value, or None if it ends."""
    if statement:
        return [(f, None) for f in facts if model.states_fact(statement, f.row.predicate, [f.row.object])]
    clashing: list[tuple[StoredFact, str | None]] = []
    single = fact_store.single_valued_predicates(brain.db)
    for fact in facts:
        row = fact.row
        labelled, value = model.split_label(text, row.subject, row.predicate, strict=True)
        predicate = fact_model.canonical_predicate(row.predicate)
        is_single = labelled and fact_model.is_single_valued(predicate, single, None)
        if is_single and not model.has_value(text, row.object):
            clashing.append((fact, _VALUE_END.split(value, maxsplit=1)[0].strip(" ,.")))
    return clashing


def _change_fact(brain: Brain, text: str, fact: StoredFact, value: str | None) -> CorrectRecord | None:
    """End a fact or change its value. Return None if the value is empty or too long, or the page is read-only."""
    if value is not None and not 0 < len(value.split()) <= model.MAX_VALUE_WORDS:
        return None
    day = corrections.ISO_DAY.search(text)
    try:
        return Correction(
            brain, CorrectionPlan(Wording("", text), (fact,), value), day[0] if day else None
        ).apply()
    except CollectionReadOnly:
        return None
