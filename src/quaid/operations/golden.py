"""Search quality on the user's own memory: golden questions (regression tests for search) and a benchmark."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple, TypeVar

from quaid.app import Brain
from quaid.errors import Cancelled, FileTrouble, GoldenFails, InvalidArgument, QuaidError
from quaid.model import slug as slugs
from quaid.model.chunker import split_statements
from quaid.model.plain_text import count_noun, fold_question, question_hash, strip_markdown, visible_text
from quaid.operations.pages import get, require_page
from quaid.operations.query import open_words, query as ask, seal_words
from quaid.operations.registry import Arg, Named, op
from quaid.operations.search import search
from quaid.search.text import STOP_WORDS
from quaid.storage import chunks, embedding_queue, pages
from quaid.storage.questions import Gaps, GoldenQuestion, GoldenQuestions, OpenedResults, sample_pages
from quaid.storage.sqlite import backup as backups

T = TypeVar("T")

DEFAULT_WITHIN = 5
SHOWN_FAILURES = 3
TRY_SECONDS = 600
"""Time limit in seconds for another version of Quaid to answer all questions."""
RESULT_TOKENS = 100_000
"""A token budget so large that no result is left out of an answer."""


class GoldenResult(NamedTuple):
    id: int
    question: str
    passed: bool
    within: int
    expected: tuple[str, ...]
    ranks: tuple[int | None, ...]
    """The rank of each expected page among the results, starting at 1; None if it was not found."""
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
    """Questions that pass with this version of Quaid and fail with the version that was tried."""

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

    A change that would make it fail (an import, a folder, a rebuild, another model) is refused unless it is forced.
    `golden run` asks all golden questions again.
    """
    question = " ".join(query.split())
    if not fold_question(question):
        raise InvalidArgument(name="query", problem="is empty; write the question")
    ids = list(dict.fromkeys(require_page(brain, slug).id for slug in expect))
    if not ids:
        raise InvalidArgument(name="expect", problem="is missing; name at least one page")
    if within < len(ids):
        raise InvalidArgument(name="within", problem=f"must be at least {len(ids)}, the number of pages")
    added = GoldenQuestions(brain.db).add(question, ids, within, brain.now())
    return ask_all(brain, [row for row in GoldenQuestions(brain.db).all() if row.id == added])


@op("owner", command="golden list", aliases={"golden": {}}, examples=("quaid golden list",))
def golden_list(brain: Brain) -> Named[tuple[GoldenQuestion, ...]]:
    """List the golden questions with the pages that they expect."""
    none = "No golden questions. `quaid golden add QUESTION --expect SLUG` adds one"
    return Named(
        "questions",
        tuple(GoldenQuestions(brain.db).all()),
        f"{none}; `quaid golden suggest` proposes some.",
    )


@op("owner", command="golden remove", examples=("quaid golden remove 3",))
def golden_remove(
    brain: Brain,
    id: Annotated[int, Arg("Its number, as `quaid golden list` shows it.", positional=True, minimum=1)],
) -> Named[int]:
    """Remove a golden question. Its pages stay."""
    GoldenQuestions(brain.db).remove(id)
    return Named("id", id, f"Removed golden question {id}")


@op("owner", command="golden run", examples=("quaid golden run", "quaid golden run --json"))
def golden_run(brain: Brain) -> GoldenRun:
    """Ask all golden questions and show the rank of each expected page. Exits 1 if one fails."""
    return ask_all(brain, GoldenQuestions(brain.db).all())


def ask_all(brain: Brain, questions: list[GoldenQuestion]) -> GoldenRun:
    """Ask questions as `query` does, without recording gaps, and compare the results with the expected pages."""
    started, results = time.process_time(), []
    notes: dict[str, None] = {}
    leaves_marks, brain.leaves_marks = brain.leaves_marks, False
    try:
        for done, row in enumerate(questions):
            brain.progress(done, len(questions), "Asking golden questions")
            answer = ask(
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
    write only through the database. The change is applied without a rehearsal with `force`, inside another
    rehearsal, in a read-only memory, and if no golden question passes now.
    """
    if force or brain.rehearsal is not None or not brain.db.writable or not GoldenQuestions(brain.db).all():
        return change()
    questions = GoldenQuestions(brain.db).all()
    passing = {result.id for result in ask_all(brain, questions).results if result.passed}
    if not passing:
        return change()

    def rehearse() -> tuple[GoldenRun, int]:
        change()
        after = ask_all(brain, [row for row in GoldenQuestions(brain.db).all() if row.id in passing])
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
    questions = GoldenQuestions(brain.db).all()
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
        output = json.loads(text)
        answers = {row["question"]: row for row in output["results"]}
        other = [GoldenResult(**{**answers[row.question], "expected": row.expected}) for row in questions]
    except (ValueError, KeyError, TypeError):
        raise FileTrouble(path=path, problem="did not answer as Quaid does; name its command") from None
    passing = {result.question for result in now.results if result.passed}
    worse = tuple(result.question for result in other if not result.passed and result.question in passing)
    failed = sum(not result.passed for result in other)
    run = GoldenRun(tuple(other), len(other) - failed, failed, output.get("cpu_seconds", 0.0))
    return GoldenTry(path, version, run, worse)


def _run_other(program: str, *words: str) -> str:
    """Run a command of another version of Quaid and return its output. Raise FileTrouble if it fails."""
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
    `quaid config set log_opened words` is in force), and questions whose words are stored and that a page has since
    answered."""
    known = {question_hash(row.question) for row in GoldenQuestions(brain.db).all()}
    proposals: dict[tuple[str, str], GoldenSuggestion] = {}
    for question, slug, times, reason in (*_opened_questions(brain), *_answered_gaps(brain)):
        if question_hash(question) in known or (question_hash(question), slug) in proposals:
            continue
        step = f"quaid golden add {quote(question)} --expect {quote(slug)}"
        proposals[question_hash(question), slug] = GoldenSuggestion(question, slug, times, reason, step)
    note = " `quaid config set log_opened words` records what you open."
    note = "" if brain.option("log_opened") == "words" else note
    rows = sorted(proposals.values(), key=lambda row: -row.times)[:limit]
    return Named("suggestions", tuple(rows), f"Nothing to propose.{note}")


def _opened_questions(brain: Brain) -> list[tuple[str, str, int, str]]:
    rows = OpenedResults(brain.db).all()
    return [
        (words, row.address, row.times, f"opened {count_noun(row.times, 'time')}, last on {row.last_at[:10]}")
        for row, words in zip(rows, open_words(brain, [row.sealed_query for row in rows]), strict=True)
        if words
    ]


def _answered_gaps(brain: Brain) -> list[tuple[str, str, int, str]]:
    answered = []
    for gap in Gaps(brain.db).read(10_000, resolved=True, with_text=True)[0]:
        if gap.query_text and gap.resolved_by_slug:
            try:
                require_page(brain, gap.resolved_by_slug)
            except QuaidError:  # the page was deleted
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
    page = require_page(brain, slug)
    sealed = seal_words(brain, query.strip(), "log_opened") if fold_question(query) else None
    if sealed is None:
        return Named("recorded", False, "Not recorded; the setting log_opened is off")
    OpenedResults(brain.db).log(question_hash(query), page.id, sealed, brain.now())
    return Named("recorded", True, f"Recorded: {page.slug}")


# The benchmark


SAMPLE = 100
"""The benchmark asks for at most this many pages."""
MIN_WORDS, MAX_WORDS = 3, 8
MAX_TEXT = 20_000
"""Questions are made from this many characters at the start of a page."""
TOP = 5
GOOD_SHARE = 0.8
SLOW_MS = 300

_WORD = re.compile(r"[^\W_]{2,}")


class Speed(NamedTuple):
    """CPU and elapsed time of one operation, in milliseconds."""

    runs: int
    cpu_p50: float
    cpu_p95: float
    wall_p50: float
    wall_p95: float


class Quality(NamedTuple):
    """How often the page from which a question was made is found."""

    asked: int
    first: int
    """Number of questions whose page is the first result."""
    top: int
    """Number of questions whose page is among the first five results."""


class BenchRecord(NamedTuple):
    pages: int
    chunks: int
    vectors: int
    size: int
    model: str
    by_title: Quality
    """The result for questions that are page titles."""
    by_words: Quality
    """The result for questions of words from one sentence, without words of the title, asked with `query`."""
    by_words_search: Quality
    """The result for the questions of `by_words`, asked with `search`."""
    golden_passed: int
    golden_asked: int
    load_ms: float
    """CPU time of the first question, which loads the model and the vectors."""
    speeds: dict[str, Speed]
    seconds: float
    stopped: bool
    """True if the benchmark was stopped before all questions were asked."""
    next_steps: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        return 130 if self.stopped else 0


@op("owner", examples=("quaid bench", "quaid bench --seconds 20 --json"))
def bench(
    brain: Brain,
    seconds: Annotated[int, Arg("Stop after this many seconds.", minimum=1, maximum=3_600)] = 60,
) -> BenchRecord:
    """Measure quality and speed of the search on this memory, offline. Writes nothing; Ctrl-C shows what there is.

    Asks for up to 100 pages by their titles and by words of one of their sentences, and all golden questions.
    Questions with a page's own words are easier than yours: compare the figures of two days or two models, not of two
    memories.
    """
    with brain.beside(brain.db.path) as other:
        other.db.writable = False  # nothing is indexed, embedded, synced or recorded
        other.leaves_marks = False
        return _Bench(other, seconds).run()


class _Bench:
    def __init__(self, brain: Brain, seconds: int) -> None:
        self._brain = brain
        self._began = time.monotonic()
        self._until = self._began + seconds
        self._times: dict[str, list[tuple[float, float]]] = {"get": [], "search": [], "query": []}
        self._ranks: dict[str, list[int]] = {"title": [], "words": [], "search": []}
        self._load = 0.0
        self._golden: GoldenRun | None = None
        self._is_stopped = False

    def run(self) -> BenchRecord:
        try:
            self._measure()
        except (KeyboardInterrupt, Cancelled):
            self._is_stopped = True
        return self._record()

    def _measure(self) -> None:
        brain = self._brain
        sample = sample_pages(brain.db, SAMPLE)
        if sample:
            before = time.process_time()
            ask(brain, sample[0][1])
            self._load = (time.process_time() - before) * 1000
            ask(brain, sample[0][1])  # the second question puts the vectors into RAM
            search(brain, sample[0][1])
            get(brain, [sample[0][0]])
        questions = GoldenQuestions(brain.db).all()
        if questions:
            self._golden = ask_all(brain, questions)
        for done, (address, title, text) in enumerate(sample):
            if time.monotonic() > self._until:
                break
            brain.progress(done, len(sample), "Asking for pages")
            self._timed("get", get, [address])
            if title:
                self._ranks["title"].append(_rank(self._timed("query", ask, title).results, address))
            words = held_out_words(title, text)
            if words:
                self._ranks["words"].append(_rank(self._timed("query", ask, words).results, address))
                self._ranks["search"].append(_rank(self._timed("search", search, words).hits, address))
        brain.progress(len(sample), len(sample), "Asking for pages")

    def _timed(self, name: str, operation: Callable[..., Any], argument: Any) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = operation(self._brain, argument)
        self._times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
        return result

    def _record(self) -> BenchRecord:
        brain = self._brain
        model = brain.model_name
        vectors = embedding_queue.ChunkQueue(brain.db, model).coverage()[0] if model else 0
        asked = self._golden.results if self._golden else ()
        record = BenchRecord(
            pages=pages.count(brain.db),
            chunks=chunks.count(brain.db),
            vectors=vectors,
            size=os.path.getsize(brain.db.path),
            model=model,
            by_title=_quality(self._ranks["title"]),
            by_words=_quality(self._ranks["words"]),
            by_words_search=_quality(self._ranks["search"]),
            golden_passed=sum(result.passed for result in asked),
            golden_asked=len(asked),
            load_ms=round(self._load, 1),
            speeds={name: _speed(times) for name, times in self._times.items() if times},
            seconds=round(time.monotonic() - self._began, 1),
            stopped=self._is_stopped,
            next_steps=(),
        )
        return record._replace(next_steps=tuple(_next_steps(record)))


def held_out_words(title: str, text: str) -> str:
    """Return every second word of the longest sentence of a text, at most MAX_WORDS, or "" if there are too few.

    Words of the title and stop words are left out, so that a search for the words tests whether the page is found
    by its text alone.
    """
    known = {word.lower() for word in _WORD.findall(title)} | STOP_WORDS
    best: list[str] = []
    for statement in split_statements(visible_text(text[:MAX_TEXT])):
        words = [word for word in _WORD.findall(strip_markdown(statement)) if word.lower() not in known]
        best = max(best, words, key=len)
    chosen = best[::2][:MAX_WORDS]
    return " ".join(chosen) if len(chosen) >= MIN_WORDS else ""


def _rank(results: Any, address: str) -> int:
    """Return the rank of a page among results, starting at 1, or 0 if it is missing."""
    addresses = [slugs.address(result.collection, result.slug) for result in results]
    return addresses.index(address) + 1 if address in addresses else 0


def _quality(ranks: list[int]) -> Quality:
    return Quality(len(ranks), ranks.count(1), sum(0 < rank <= TOP for rank in ranks))


def _speed(times: list[tuple[float, float]]) -> Speed:
    def at(share: float, place: int) -> float:
        ordered = sorted(pair[place] for pair in times)
        return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 2)

    return Speed(len(times), at(0.5, 0), at(0.95, 0), at(0.5, 1), at(0.95, 1))


def _next_steps(record: BenchRecord) -> Iterator[str]:
    if not record.pages:
        yield "`quaid import FOLDER` fills the memory; there is nothing to measure yet"
    elif not record.model:
        yield "semantic search is off; `quaid embeddings status` says how to turn it on"
    elif record.vectors < record.chunks:
        yield f"`quaid embed` makes the {record.chunks - record.vectors:,} missing vectors, then measure again"
    if record.golden_passed < record.golden_asked:
        yield "`quaid golden run` shows which golden questions fail"
    elif record.pages and not record.golden_asked:
        yield "`quaid golden add QUESTION --expect SLUG` adds questions of your own, which say more than these"
    if record.by_words.asked and record.by_words.top < GOOD_SHARE * record.by_words.asked:
        yield "many pages are alike or very short; `quaid dupes` lists pages that could be merged"
    if (speed := record.speeds.get("query")) and speed.cpu_p95 > SLOW_MS:
        yield "questions are slow; `quaid compact` removes unused space, `quaid serve` keeps the model loaded"
