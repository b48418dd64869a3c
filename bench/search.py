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

from bench.corpora import data_folder
from bench.table import show, verdict
from quaid.model.page import Page, build_page
from quaid.search.text import plan_query, search_pages
from quaid.storage import checks, page_edits
from quaid.storage.pages import page_heads
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.text_index import SPACED, SearchFilters, TextIndex

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOW = "2026-04-25T12:00:00Z"
PAGES, QUICK_PAGES = 100_000, 5_000
BATCH = 1_000
VOCABULARY = 60_000
QUESTIONS = 180
LIMIT = 10
TYPES = ("person", "company", "concept", "concept", "concept", "project", "source", "concept")
ADVERSARIAL = 5
"""LoCoMo's category of questions that have no answer in the conversation."""

Rows = list[tuple[str, str, str, str]]
Statement = tuple[str, Any]


def main() -> None:
    count = QUICK_PAGES if "--quick" in sys.argv else PAGES
    with tempfile.TemporaryDirectory() as folder:
        texts = list(made_up_pages(count))
        memory = os.path.join(folder, "memory.db")
        built, bare = build_cpu(memory, os.path.join(folder, "bare.db"), texts)
        rows: Rows = [
            ("building the memory, pages left whole", f"{built:.1f} s", "", ""),
            ("  bare FTS5 inserts", f"{bare:.1f} s", f"{built / bare:.2f}", verdict(built / bare, 2)),
        ]
        with Database.open(memory, NOW) as db:
            rows += asking(db, texts)
    rows += locomo()
    show(f"Search by words, {count:,} pages, CPU", rows, ("what", "figure", "ratio", "target"))


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
        yield build_page(
            f"{kind}s/{'-'.join(text[3:6])}-{number}",
            {"title": " ".join(text[3:6]), "type": kind, "tags": tags, "wing": f"wing-{number % 7}"},
            ".\n".join(lines[:cut]),
            "\n".join(lines[cut:]),
        )


def build_cpu(memory: str, bare: str, texts: list[Page]) -> tuple[float, float]:
    """CPU seconds to save the pages as an import does, and to put their texts into the FTS5 table alone.

    Chunks are for questions, not for this search, and are made later: `bench.importing` has their cost.

    The two take turns, so that a busy minute of the machine hits both.
    """
    statement = re.search(r"CREATE VIRTUAL TABLE page_fts USING .*?;", checks.read_schema(), re.S)
    assert statement is not None
    plain = apsw.Connection(bare)
    plain.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768")
    plain.execute(statement.group())
    taken = [0.0, 0.0]
    with Database.create(memory, NOW) as db:
        for batch in batches(texts):
            started = time.process_time()
            save(db, batch)
            saved = time.process_time()
            save_bare(plain, batch)
            taken = [taken[0] + saved - started, taken[1] + time.process_time() - saved]
    plain.close()
    return taken[0], taken[1]


def save(db: Database, batch: list[tuple[int, Page]]) -> None:
    def work(tx: Transaction) -> None:
        for number, page in batch:
            page_edits.save(tx, page, uuid=f"uuid-{number}", now=NOW, expected_version=0, cut=False)

    db.write(work)


def save_bare(plain: apsw.Connection, batch: list[tuple[int, Page]]) -> None:
    with plain:
        for number, page in batch:
            plain.execute(
                "INSERT INTO page_fts (rowid, title, slug, compiled_truth, timeline) VALUES (?, ?, ?, ?, ?)",
                (number + 1, page.title, page.slug, page.truth, page.timeline),
            )


def batches(texts: list[Page]) -> Iterator[list[tuple[int, Page]]]:
    numbered = list(enumerate(texts))
    for at in range(0, len(numbered), BATCH):
        yield numbered[at : at + BATCH]


# Asking it


class Question(NamedTuple):
    text: str
    filters: SearchFilters


def questions(texts: list[Page], *, rare: float, filtered: bool) -> list[Question]:
    """One to six words of one page: with chance `rare` from its longest, rarest third, else as they occur."""
    rng = random.Random(11)
    found = []
    for number in range(QUESTIONS):
        page = rng.choice(texts)
        text = re.findall(r"\w+", page.truth)
        by_length = sorted(set(text), key=len)
        longest = by_length[len(by_length) * 2 // 3 :]
        chosen = [rng.choice(longest if rng.random() < rare else text) for _ in range(number % 6 + 1)]
        some = (
            SearchFilters(type=page.type),
            SearchFilters(wing=page.wing),
            SearchFilters(tag=(*page.tags, "tag-3")[0]),
        )
        found.append(Question(" ".join(chosen), rng.choice(some) if filtered else SearchFilters()))
    return found


def asking(db: Database, texts: list[Page]) -> Rows:
    rows: Rows = []
    for name, asked in (
        ("frequent and rare words", questions(texts, rare=0.5, filtered=False)),
        ("the same, filtered", questions(texts, rare=0.5, filtered=True)),
        ("words as they occur", questions(texts, rare=0.0, filtered=False)),
    ):
        figures = [ask(db, question) for question in asked]
        ours, bare, naive = (sorted(times) for times in zip(*figures, strict=True))
        high, high_bare = percentile(ours, 95), percentile(bare, 95)
        ratio = high / high_bare
        rows += [
            (f"1-6 {name}: p50", f"{percentile(ours, 50):.1f} ms", "", ""),
            (f"1-6 {name}: p95", f"{high:.1f} ms", "", verdict(high, 60)),
            (
                "  the same ranked MATCH, bare: p95",
                f"{high_bare:.1f} ms",
                f"{ratio:.2f}",
                verdict(ratio, 1.5),
            ),
            ("  OR of all words by rank, bare: p95", f"{percentile(naive, 95):.1f} ms", "", ""),
        ]
    return rows


def ask(db: Database, question: Question) -> tuple[float, float, float]:
    """CPU milliseconds of a search, of the ranked matches that it ran, and of the plainest match."""
    every = " OR ".join(f'"{word}"' for word in question.text.split())
    plain = [("SELECT rowid FROM page_fts WHERE page_fts MATCH ? ORDER BY rank LIMIT ?", (every, LIMIT))]

    def ours() -> None:
        search_pages(db, question.text, question.filters, LIMIT)

    ranked: list[Statement] = []

    def note(_: apsw.Cursor, sql: str, values: Any) -> bool:
        if "bm25(" in sql:
            ranked.append((sql, values))
        return True

    db.connection.exec_trace = note
    ours()
    db.connection.exec_trace = None
    return cpu(ours), cpu(lambda: run(db, ranked)), cpu(lambda: run(db, plain), times=1)


def run(db: Database, statements: list[Statement]) -> None:
    for sql, values in statements:
        db.connection.execute(sql, values).fetchall()


def cpu(work: Callable[[], object], times: int = 2) -> float:
    """CPU milliseconds, the best of some times."""
    taken = []
    for _ in range(times):
        started = time.process_time()
        work()
        taken.append((time.process_time() - started) * 1000)
    return min(taken)


def percentile(times: list[float], share: int) -> float:
    return times[(len(times) - 1) * share // 100]


# LoCoMo


class Conversation(NamedTuple):
    sessions: dict[str, str]
    questions: list[tuple[str, set[str]]]
    """Each with the sessions that hold its answer."""


def locomo() -> Rows:
    """How much of the evidence is in the first ten sessions that a question finds."""
    named = (word for word in sys.argv[1:] if word.endswith(".json"))
    path = next(named, os.path.join(data_folder(), "locomo10.json"))
    if not os.path.exists(path):
        return [("LoCoMo: skipped, there is no locomo10.json; QUAID_BENCH_DATA names its folder", "", "", "")]
    with open(path, encoding="utf-8") as file:
        conversations = [conversation(each) for each in json.load(file)]
    shares: dict[str, list[float]] = {"all words": [], "any word": [], "as quaid search does": []}
    for each in conversations:
        with tempfile.TemporaryDirectory() as folder, Database.create(f"{folder}/memory.db", NOW) as db:
            built = [build_page(slug, {"type": "source"}, text, "") for slug, text in each.sessions.items()]
            save(db, list(enumerate(built)))
            for question, evidence in each.questions:
                for name, found in zip(shares, answers(db, question), strict=True):
                    shares[name].append(len(evidence & found) / len(evidence))
    asked = len(shares["all words"])
    return [
        (f"LoCoMo, {asked:,} questions, evidence in the top 10: {name}", f"{sum(share) / asked:.3f}", "", "")
        for name, share in shares.items()
    ]


def conversation(record: dict[str, Any]) -> Conversation:
    talk = record["conversation"]
    sessions = {}
    for name in talk:
        if re.fullmatch(r"session_\d+", name):
            turns = [
                f"{turn['speaker']}: {turn['text']} {turn.get('blip_caption', '')}" for turn in talk[name]
            ]
            heading = f"# {name.replace('_', ' ')}, {talk.get(name + '_date_time', '')}"
            sessions[name] = "\n".join([heading, *turns])
    questions = []
    for each in record["qa"]:
        evidence = {f"session_{number}" for number in re.findall(r"D(\d+):", " ".join(each["evidence"]))}
        if evidence and each["category"] != ADVERSARIAL:
            questions.append((each["question"], evidence))
    return Conversation(sessions, questions)


def answers(db: Database, question: str) -> tuple[set[str], set[str], set[str]]:
    """The slugs that a question finds by all of its words, by any of them, and as a user would."""
    asked = plan_query(question)
    every = " AND ".join(word.quoted for word in asked.words)
    any_word = " OR ".join(word.quoted for word in asked.words)
    found = [
        [page_id for page_id, _ in TextIndex(db, SPACED).match(each, SearchFilters(), LIMIT)]
        for each in (every, any_word)
    ]
    by_all, by_any = ({head.slug for head in page_heads(db, ids).values()} for ids in found)
    return by_all, by_any, {hit.slug for hit in search_pages(db, question, limit=LIMIT)}


if __name__ == "__main__":
    main()
