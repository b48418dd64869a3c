"""Golden questions: what the memory has to answer, and a check before something changes the answers."""

import json
import os
import time
from collections.abc import Callable
from shlex import quote
from typing import Annotated, NamedTuple, TypeVar

from quaid.app import Brain
from quaid.errors import FileTrouble, GoldenFails, InvalidArgument, QuaidError
from quaid.model import slug as slugs
from quaid.model.plain_text import count_noun
from quaid.model.similarity import fold_question, question_hash
from quaid.operations.registry import Arg, Named, op
from quaid.storage import embedding_queue, gaps, golden as store
from quaid.storage.golden import GoldenQuestion

T = TypeVar("T")

DEFAULT_WITHIN = 5
SHOWN_FAILURES = 3
TRY_SECONDS = 600
"""Another version of Quaid has this many seconds for all questions."""
RESULT_TOKENS = 100_000
"""So many tokens that no result is left out of an answer."""


class GoldenResult(NamedTuple):
    id: int
    question: str
    passed: bool
    within: int
    expected: tuple[str, ...]
    ranks: tuple[int | None, ...]
    """The place of each expected page among the results, from 1; None if it was not found."""
    problem: str = ""


class GoldenRun(NamedTuple):
    results: tuple[GoldenResult, ...]
    passed: int
    failed: int
    cpu_seconds: float
    notes: tuple[str, ...] = ()
    """Why answers may be worse than usual, such as missing vectors."""

    @property
    def exit_status(self) -> int:
        return 1 if self.failed else 0


class GoldenTry(NamedTuple):
    program: str
    version: str
    run: GoldenRun
    worse: tuple[str, ...]
    """Questions that pass with this version of Quaid and fail with the other one."""

    @property
    def exit_status(self) -> int:
        return 1 if self.worse else 0


class GoldenSuggestion(NamedTuple):
    question: str
    slug: str
    times: int
    reason: str
    next_step: str
    """The command that adds the question."""


@op(
    "owner",
    command="golden add",
    examples=(
        "quaid golden add 'Who restores tidal batteries?' --expect people/ines",
        "quaid golden add 'What did we decide about the quay?' --expect decisions/quay projects/quay --within 3",
    ),
)
def golden_add(
    brain: Brain,
    query: Annotated[str, Arg("The question.", positional=True, question=True)],
    expect: Annotated[list[str], Arg("The pages that must be among the results, one or more.")],
    within: Annotated[
        int, Arg("They must be among this many first results.", minimum=1, maximum=50)
    ] = DEFAULT_WITHIN,
) -> GoldenRun:
    """Add a golden question, or change the expected pages of one, and ask it.

    A change that would make it fail is refused: an import, a folder, a rebuild, another model. `golden run` asks
    all of them again.
    """
    from quaid.operations.pages import require_page

    question = " ".join(query.split())
    if not fold_question(question):
        raise InvalidArgument(name="query", problem="is empty; write the question")
    ids = list(dict.fromkeys(require_page(brain, slug).id for slug in expect))
    if not ids:
        raise InvalidArgument(name="expect", problem="is missing; name at least one page")
    if within < len(ids):
        raise InvalidArgument(name="within", problem=f"must be at least {len(ids)}, the number of pages")
    now = brain.now()
    added = brain.db.write(lambda tx: store.add(tx, question, ids, within, now))
    return ask_all(brain, [row for row in store.listing(brain.db) if row.id == added])


@op("owner", command="golden list", aliases={"golden": {}}, examples=("quaid golden list",))
def golden_list(brain: Brain) -> Named[tuple[GoldenQuestion, ...]]:
    """List the golden questions with the pages that they expect."""
    none = "No golden questions. `quaid golden add QUESTION --expect SLUG` adds one"
    return Named(
        "questions", tuple(store.listing(brain.db)), f"{none}; `quaid golden suggest` proposes some."
    )


@op("owner", command="golden remove", examples=("quaid golden remove 3",))
def golden_remove(
    brain: Brain,
    id: Annotated[int, Arg("Its number, as `quaid golden list` shows it.", positional=True, minimum=1)],
) -> Named[int]:
    """Remove a golden question. Its pages stay."""
    brain.db.write(lambda tx: store.remove(tx, id))
    return Named("id", id, f"Removed golden question {id}")


@op("owner", command="golden run", examples=("quaid golden run", "quaid golden run --json"))
def golden_run(brain: Brain) -> GoldenRun:
    """Ask all golden questions and show the rank of each expected page. Exits 1 if one fails."""
    return ask_all(brain, store.listing(brain.db))


def ask_all(brain: Brain, questions: list[GoldenQuestion]) -> GoldenRun:
    """Ask questions as `query` does, without recording gaps, and compare the results with the expected pages."""
    from quaid.operations.query import query  # imports all of the search

    started, results = time.process_time(), []
    notes: dict[str, None] = {}
    leaves_marks, brain.leaves_marks = brain.leaves_marks, False
    try:
        for done, row in enumerate(questions):
            brain.progress(done, len(questions), "Asking golden questions")
            answer = query(
                brain, row.question, depth="summary", token_budget=RESULT_TOKENS, limit=max(10, row.within)
            )
            notes |= dict.fromkeys(answer.notes)
            addresses = [
                slugs.address(result.collection, result.slug) if result.slug else ""
                for result in answer.results
            ]
            results.append(_compare(row, addresses))
        brain.progress(len(questions), len(questions), "Asking golden questions")
    finally:
        brain.leaves_marks = leaves_marks
    failed = sum(not result.passed for result in results)
    spent = round(time.process_time() - started, 2)
    return GoldenRun(tuple(results), len(results) - failed, failed, spent, tuple(notes))


def _compare(row: GoldenQuestion, addresses: list[str]) -> GoldenResult:
    ranks = tuple(addresses.index(page) + 1 if page in addresses else None for page in row.expected)
    problem = ""
    if row.missing:
        problem = f"{count_noun(row.missing, 'expected page')} gone from the memory"
    elif None in ranks:
        problem = "not found: " + ", ".join(
            page for page, rank in zip(row.expected, ranks, strict=True) if rank is None
        )
    elif any(rank is not None and rank > row.within for rank in ranks):
        problem = f"not among the first {row.within}"
    return GoldenResult(row.id, row.question, not problem, row.within, row.expected, ranks, problem)


def guard(
    brain: Brain,
    change: Callable[[], T],
    *,
    what: str = "This change",
    force: bool = False,
    flag: str = "--force",
) -> T:
    """Apply a change, unless a golden question that passes now would fail after it; then raise GoldenFails.

    `change` is first run in a rehearsal, in which the questions are asked, and rolled back. It must be repeatable and
    write only through the database. Without golden questions, with `force`, and inside another rehearsal, it is just
    applied.
    """
    if force or brain.rehearsal is not None or not brain.db.writable or not store.count(brain.db):
        return change()
    questions = store.listing(brain.db)
    passing = {result.id for result in ask_all(brain, questions).results if result.passed}
    if not passing:
        return change()

    def rehearse() -> tuple[GoldenRun, int]:
        change()
        after = ask_all(brain, [row for row in store.listing(brain.db) if row.id in passing])
        return after, _missing_vectors(brain)

    after, missing = brain.rehearse(rehearse)
    if after.failed:
        broken = [result for result in after.results if not result.passed]
        lines = "; ".join(f"{result.question!r} ({result.problem})" for result in broken[:SHOWN_FAILURES])
        if len(broken) > SHOWN_FAILURES:
            lines += f"; and {len(broken) - SHOWN_FAILURES} more"
        raise GoldenFails(
            change=what, count=count_noun(after.failed, "golden question"), detail=lines, flag=flag
        )
    applied = change()
    if missing and brain.notice is not None:
        brain.notice(
            f"{count_noun(missing, 'text')} had no vectors when the golden questions were asked; after `quaid embed`,"
            " `quaid golden run` asks them again"
        )
    return applied


def _missing_vectors(brain: Brain) -> int:
    if not brain.model_name:
        return 0
    made, total = embedding_queue.ChunkQueue(brain.db, brain.model_name).coverage()
    return total - made


@op(
    "owner",
    command="golden try",
    examples=("quaid golden try ~/Downloads/quaid", "quaid golden try /opt/quaid-next/bin/quaid --json"),
)
def golden_try(
    brain: Brain,
    program: Annotated[str, Arg("The command of another version of Quaid.", positional=True, path=True)],
) -> GoldenTry:
    """Ask the golden questions with another version of Quaid, on a copy of the memory, before you upgrade.

    The copy is migrated if that version needs it, and deleted afterwards. Exits 1 if a question that passes now
    fails."""
    from tempfile import TemporaryDirectory

    from quaid.storage.sqlite import backup as backups

    questions = store.listing(brain.db)
    if not questions:
        raise InvalidArgument(
            name="program", problem="there are no golden questions; `quaid golden add` adds one"
        )
    path = brain.settings.path(program)
    now = ask_all(brain, questions)
    with TemporaryDirectory(prefix=".golden-", dir=os.path.dirname(brain.db.path)) as folder:
        copy = os.path.join(folder, "memory.db")
        brain.progress(0, 0, "Copying the memory")
        backups.create_backup(brain.db, copy)
        options = ["--config", brain.settings.config_path] if brain.settings.config_path else []
        version = _run_other(path, "version").partition("\n")[0]
        text = _run_other(path, "golden", "run", "--json", "--db", copy, *options)
    try:
        found = {row["question"]: row for row in json.loads(text)["results"]}
        other = [GoldenResult(**{**found[row.question], "expected": row.expected}) for row in questions]
    except (ValueError, KeyError, TypeError):
        raise FileTrouble(path=path, problem="did not answer as Quaid does; name its command") from None
    passing = {result.question for result in now.results if result.passed}
    worse = tuple(result.question for result in other if not result.passed and result.question in passing)
    failed = sum(not result.passed for result in other)
    run = GoldenRun(tuple(other), len(other) - failed, failed, json.loads(text).get("cpu_seconds", 0.0))
    return GoldenTry(path, version, run, worse)


def _run_other(program: str, *words: str) -> str:
    """Run a command of another version and return its output."""
    import subprocess

    try:
        done = subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=TRY_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise FileTrouble(path=program, problem=f"did not answer within {TRY_SECONDS} s") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileTrouble(path=program, problem=f"cannot be run: {reason}") from None
    if done.returncode not in (0, 1) or not done.stdout:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise FileTrouble(path=program, problem=f"failed with {' '.join(words[:2])}: {last.rstrip('.')}")
    return done.stdout


@op(
    "owner",
    command="golden suggest",
    examples=("quaid golden suggest", "quaid golden suggest --limit 5 --json"),
)
def golden_suggest(
    brain: Brain, limit: Annotated[int, Arg("How many.", minimum=1, maximum=1_000)] = 20
) -> Named[tuple[GoldenSuggestion, ...]]:
    """Propose golden questions from what you asked.

    These are pages that you opened from the results of a question in the dashboard (recorded, encrypted, only while
    `quaid config set log_opened words` is in force), and questions whose words are stored and that a page answers
    since."""
    known = {question_hash(row.question) for row in store.listing(brain.db)}
    proposals: dict[tuple[str, str], GoldenSuggestion] = {}
    for question, slug, times, reason in (*_opened_questions(brain), *_answered_gaps(brain)):
        if question_hash(question) in known or (question_hash(question), slug) in proposals:
            continue
        step = f"quaid golden add {quote(question)} --expect {quote(slug)}"
        proposals[question_hash(question), slug] = GoldenSuggestion(question, slug, times, reason, step)
    note = (
        ""
        if brain.option("log_opened") == "words"
        else " `quaid config set log_opened words` records what you open."
    )
    rows = sorted(proposals.values(), key=lambda row: -row.times)[:limit]
    return Named("suggestions", tuple(rows), f"Nothing to propose.{note}")


def _opened_questions(brain: Brain) -> list[tuple[str, str, int, str]]:
    from quaid.operations.search import open_words

    rows = store.opened_results(brain.db)
    return [
        (words, row.address, row.times, f"opened {count_noun(row.times, 'time')}, last on {row.last_at[:10]}")
        for row, words in zip(rows, open_words(brain, [row.sealed_query for row in rows]), strict=True)
        if words
    ]


def _answered_gaps(brain: Brain) -> list[tuple[str, str, int, str]]:
    from quaid.operations.pages import require_page

    answered = []
    for gap in gaps.listing(brain.db, 10_000, resolved=True, with_text=True)[0]:
        if gap.query_text and gap.resolved_by_slug:
            try:
                require_page(brain, gap.resolved_by_slug)
            except QuaidError:  # the page is gone
                continue
            reason = f"a question without an answer until {str(gap.resolved_at)[:10]}"
            answered.append((gap.query_text, gap.resolved_by_slug, gap.times_seen, reason))
    return answered


@op("owner", command="golden opened", examples=("quaid golden opened 'who restores batteries?' people/ines",))
def golden_opened(
    brain: Brain,
    query: Annotated[str, Arg("The question.", positional=True, question=True)],
    slug: Annotated[str, Arg("The page that was opened.", positional=True)],
) -> Named[bool]:
    """Record that you opened a page from the results of a question, for `golden suggest`.

    The dashboard does this. Nothing is recorded unless the setting `log_opened` is words; then the question is stored
    encrypted, with a key beside the memory. `forget` deletes all of these questions."""
    from quaid.operations.pages import require_page
    from quaid.operations.search import seal_words

    page, now = require_page(brain, slug), brain.now()
    sealed = seal_words(brain, query.strip(), "log_opened") if fold_question(query) else None
    if sealed is None:
        return Named("recorded", False, "Not recorded; the setting log_opened is off")
    brain.db.write(lambda tx: store.log_opened(tx, question_hash(query), page.id, sealed, now))
    return Named("recorded", True, f"Recorded: {page.slug}")
