"""Search by words: building the index, asking a large memory, and LoCoMo's questions."""

import itertools
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw

from bench.table import show, verdict
from quaid.core.page import Page, build
from quaid.search import words as search_words
from quaid.search.plan import plan
from quaid.store import creating, pages, words
from quaid.store.db import Database, Row

NOW = "2026-04-25T12:00:00Z"
PAGES, QUICK_PAGES = 100_000, 5_000
BATCH = 1_000
VOCABULARY = 60_000
QUESTIONS = 300
LIMIT = 10
TYPES = ("person", "company", "concept", "concept", "concept", "project", "source", "concept")
ADVERSARIAL = 5
"""LoCoMo's category of questions that have no answer in the conversation."""


def main() -> None:
    count = QUICK_PAGES if "--quick" in sys.argv else PAGES
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        texts = list(made_up_pages(count))
        built = build_cpu(os.path.join(folder, "memory.db"), texts)
        bare = bare_cpu(os.path.join(folder, "bare.db"), texts)
        rows.append(("building, quaid", f"{built:.1f} s", "", ""))
        rows.append(
            ("building, bare FTS5 inserts", f"{bare:.1f} s", f"{built / bare:.2f}", verdict(built / bare, 2))
        )
        with Database.open(os.path.join(folder, "memory.db"), NOW) as db:
            rows += asking(db, texts)
    rows += locomo()
    show(f"Search by words, {count:,} pages", rows, ("what", "figure", "ratio", "target"))


# A memory of made-up words


def vocabulary(rng: random.Random) -> list[str]:
    """Pronounceable words, the frequent ones short."""
    onsets = "b c d f g h j k l m n p r s t v w z br cr dr fl gr pl st tr ch sh th".split()
    vowels = "a e i o u ai ea ou".split()
    codas = ("", "", "", "n", "r", "s", "l", "t", "m", "nd", "st")
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        syllables = 1 if len(found) < 150 else 2 if len(found) < 4_000 else rng.choice((2, 3, 3, 4))
        word = "".join(rng.choice(onsets) + rng.choice(vowels) + rng.choice(codas) for _ in range(syllables))
        found[word] = None
    return list(found)


def made_up_pages(count: int) -> Iterator[Page]:
    """Pages of about 2 KB whose words are as unevenly frequent as those of a language."""
    rng = random.Random(7)
    every_word = vocabulary(rng)
    weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))
    for number in range(count):
        text = rng.choices(every_word, cum_weights=weights, k=max(60, int(rng.gauss(270, 60))))
        lines = [" ".join(text[at : at + 14]) for at in range(0, len(text), 14)]
        cut = len(lines) * 4 // 5
        kind = TYPES[number % len(TYPES)]
        tags = [f"tag-{number % 20}"] if number % 3 == 0 else []
        yield build(
            f"{kind}s/{'-'.join(text[3:6])}-{number}",
            {"title": " ".join(text[3:6]), "type": kind, "tags": tags, "wing": f"wing-{number % 7}"},
            ".\n".join(lines[:cut]),
            "\n".join(lines[cut:]),
        )


def build_cpu(path: str, texts: list[Page]) -> float:
    """CPU seconds to save the pages, with everything that is derived from them."""
    with Database.create(path, NOW) as db:
        started = time.process_time()
        for batch in batches(texts):
            db.write(lambda tx, batch=batch: [save(tx, number, page) for number, page in batch])
        return time.process_time() - started


def save(tx: apsw.Connection, number: int, page: Page) -> None:
    pages.save(tx, page, uuid=f"uuid-{number}", now=NOW, expected_version=0)


def bare_cpu(path: str, texts: list[Page]) -> float:
    """CPU seconds to put the same texts into the same FTS5 table, and nothing else."""
    statement = re.search(r"CREATE VIRTUAL TABLE page_fts USING .*?;", creating.schema(), re.S)
    assert statement is not None
    db = apsw.Connection(path)
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768")
    db.execute(statement.group())
    started = time.process_time()
    for batch in batches(texts):
        with db:
            for number, page in batch:
                db.execute(
                    "INSERT INTO page_fts (rowid, title, slug, compiled_truth, timeline) VALUES (?, ?, ?, ?, ?)",
                    (number + 1, page.title, page.slug, page.truth, page.timeline),
                )
    taken = time.process_time() - started
    db.close()
    return taken


def batches(texts: list[Page]) -> Iterator[list[tuple[int, Page]]]:
    numbered = list(enumerate(texts))
    for at in range(0, len(numbered), BATCH):
        yield numbered[at : at + BATCH]


# Asking it


class Question(NamedTuple):
    text: str
    filters: dict[str, str]


def questions(texts: list[Page], *, rare: float, filtered: float) -> list[Question]:
    """Words of one page each: with chance `rare` from its rarest third, otherwise as they occur."""
    rng = random.Random(11)
    found = []
    for number in range(QUESTIONS):
        page = rng.choice(texts)
        text = re.findall(r"\w+", page.truth)
        by_length = sorted(set(text), key=len)
        chosen = [
            rng.choice(by_length[len(by_length) * 2 // 3 :] if rng.random() < rare else text)
            for _ in range(number % 6 + 1)
        ]
        filters: dict[str, str] = {}
        if rng.random() < filtered:
            filters = rng.choice(
                [{"type": page.type}, {"wing": page.wing}, {"tag": (*page.tags, "tag-3")[0]}]
            )
        found.append(Question(" ".join(chosen), filters))
    return found


def asking(db: Database, texts: list[Page]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    kinds = (
        ("1-6 words, frequent and rare", questions(texts, rare=0.5, filtered=0.0)),
        ("the same with filters", questions(texts, rare=0.5, filtered=1.0)),
        ("1-6 words as they occur", questions(texts, rare=0.0, filtered=0.0)),
    )
    for name, asked in kinds:
        taken, bare, naive = [], [], []
        for question in asked:
            ranked: list[tuple[str, Any]] = []
            with recorded(db, ranked):
                search_words.search(db, question.text, limit=LIMIT, **question.filters)
            taken.append(
                cpu(
                    lambda question=question: search_words.search(
                        db, question.text, limit=LIMIT, **question.filters
                    )
                )
            )
            bare.append(
                cpu(lambda ranked=ranked: [db.connection.execute(*each).fetchall() for each in ranked])
            )
            every = " OR ".join(f'"{word}"' for word in question.text.split())
            naive.append(cpu(lambda every=every: plain_match(db, every)))
        high, high_bare = percentile(taken, 95), percentile(bare, 95)
        rows.append((f"{name}: p50", f"{percentile(taken, 50):.1f} ms", "", ""))
        rows.append((f"{name}: p95", f"{high:.1f} ms", "", verdict(high, 60)))
        rows.append(
            (
                "  its ranked MATCH bare: p95",
                f"{high_bare:.1f} ms",
                f"{high / high_bare:.2f}",
                verdict(high / high_bare, 1.5),
            )
        )
        rows.append(("  OR of all words, ORDER BY rank: p95", f"{percentile(naive, 95):.1f} ms", "", ""))
    return rows


class recorded:  # noqa: N801
    """Notes each ranked MATCH that is run."""

    def __init__(self, db: Database, ranked: list[tuple[str, Any]]) -> None:
        self._connection = db.connection
        self._ranked = ranked

    def _note(self, cursor: apsw.Cursor, sql: str, values: Any) -> bool:
        if "bm25(" in sql:
            self._ranked.append((sql, values))
        return True

    def __enter__(self) -> None:
        self._connection.exec_trace = self._note

    def __exit__(self, *_: object) -> None:
        self._connection.exec_trace = None


def plain_match(db: Database, expression: str) -> list[Row]:
    return db.connection.execute(
        "SELECT rowid FROM page_fts WHERE page_fts MATCH ? ORDER BY rank LIMIT ?", (expression, LIMIT)
    ).fetchall()


def cpu(work: Callable[[], object]) -> float:
    """CPU milliseconds, the better of two."""
    times = []
    for _ in range(2):
        started = time.process_time()
        work()
        times.append((time.process_time() - started) * 1000)
    return min(times)


def percentile(times: list[float], share: int) -> float:
    return sorted(times)[(len(times) - 1) * share // 100]


# LoCoMo


def locomo() -> list[tuple[str, ...]]:
    return []


if __name__ == "__main__":
    main()
