"""Quality and speed of the search on the user's own memory."""

import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

from quaid.app import Brain
from quaid.errors import Cancelled
from quaid.model.chunker import split_statements
from quaid.model.markdown_text import strip_markdown, visible_text
from quaid.operations import golden
from quaid.operations.registry import Arg, op
from quaid.search.plan import STOP_WORDS
from quaid.storage import chunks, embedding_queue, golden as store, pages

SAMPLE = 100
"""At most this many pages are asked for."""
MIN_WORDS, MAX_WORDS = 3, 8
MAX_TEXT = 20_000
"""Sentences are taken from the first so many characters of a page."""
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
    """Questions: the titles of pages."""
    by_words: Quality
    """Questions: some words of one sentence of a page, without those of its title, asked with `query`."""
    by_words_search: Quality
    """The same questions, asked with `search`."""
    golden_passed: int
    golden_asked: int
    load_ms: float
    """CPU time of the first question, which loads the model and the vectors."""
    speeds: dict[str, Speed]
    seconds: float
    stopped: bool
    """True if it was stopped before all questions were asked."""
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
        self._golden: golden.GoldenRun | None = None
        self._is_stopped = False

    def run(self) -> BenchRecord:
        try:
            self._measure()
        except (KeyboardInterrupt, Cancelled):
            self._is_stopped = True
        return self._record()

    def _measure(self) -> None:
        from quaid.operations.pages import get
        from quaid.operations.query import query
        from quaid.operations.search import search

        brain = self._brain
        sample = store.sample_pages(brain.db, SAMPLE)
        if sample:
            before = time.process_time()
            query(brain, sample[0][1])
            self._load = (time.process_time() - before) * 1000
            query(brain, sample[0][1])  # the second question puts the vectors into RAM
            search(brain, sample[0][1])
            get(brain, [sample[0][0]])
        questions = store.listing(brain.db)
        if questions:
            self._golden = golden.ask_all(brain, questions)
        for done, (address, title, text) in enumerate(sample):
            if time.monotonic() > self._until:
                break
            brain.progress(done, len(sample), "Asking for pages")
            self._timed("get", get, [address])
            if title:
                self._ranks["title"].append(_rank(self._timed("query", query, title).results, address))
            words = held_out_words(title, text)
            if words:
                self._ranks["words"].append(_rank(self._timed("query", query, words).results, address))
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
    """Return every second word of the longest sentence of a text, without words of the title.

    Return "" if there are too few. The search has to find the page without the other words.
    """
    known = {word.lower() for word in _WORD.findall(title)} | STOP_WORDS
    best: list[str] = []
    for statement in split_statements(visible_text(text[:MAX_TEXT])):
        words = [word for word in _WORD.findall(strip_markdown(statement)) if word.lower() not in known]
        best = max(best, words, key=len)
    chosen = best[::2][:MAX_WORDS]
    return " ".join(chosen) if len(chosen) >= MIN_WORDS else ""


def _rank(results: Any, address: str) -> int:
    """Return the place of a page among results, from 1, or 0."""
    from quaid.model.slug import address as full

    found = [full(result.collection, result.slug) for result in results]
    return found.index(address) + 1 if address in found else 0


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
    query = record.speeds.get("query")
    if query and query.cpu_p95 > SLOW_MS:
        yield "questions are slow; `quaid compact` removes unused space, `quaid serve` keeps the model loaded"
