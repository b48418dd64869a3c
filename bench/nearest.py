"""The nearest vectors: how many of the exact ones are found, and what that costs against a bare matrix product.

Recall is measured on vectors of the real model only: turns of LoCoMo and the questions about them, or the arrays
t* (passages) and q* (questions) of a .npz file that is named. For times these vectors are repeated with a little
noise, because what they say does not matter there.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.corpora import data_folder
from bench.table import show, verdict
from quaid.storage import vector_index, vectors
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.text_index import SearchFilters
from quaid.storage.vector_index import ChunkIndex

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOW = "2026-04-25T12:00:00Z"
MODEL = "measured"
SIZE, LARGE, QUICK = 50_000, 500_000, 10_000
PER_PAGE = 10
QUESTIONS, ALSO = 200, 40
K = 10
BATCH = 10_000

Array = np.ndarray[Any, Any]
Rows = list[tuple[str, str, str]]


def main() -> None:
    passages, questions = real_vectors()
    quick = "--quick" in sys.argv
    rows = recall_rows(passages, questions)
    with tempfile.TemporaryDirectory() as folder:
        for size in (QUICK,) if quick else (SIZE, LARGE):
            path = os.path.join(folder, f"{size}.db")
            many = repeated(passages, size)
            build(path, many)
            rows += time_rows(path, many, questions, size)
            os.remove(path)
    show("Vectors, CPU", rows, ("figure", "measured", "target"))


# Real vectors


def real_vectors() -> tuple[Array, Array]:
    named = next((word for word in sys.argv[1:] if word.endswith(".npz")), None)
    if named:
        with np.load(named) as arrays:
            passages = [arrays[name] for name in sorted(arrays.files) if name[0] == "t"]
            questions = [arrays[f"q{array}"] for array in range(len(passages))]
            return np.concatenate(passages), np.concatenate(questions)
    from bench.vectors import Kept

    with open(os.path.join(data_folder(), "locomo10.json"), encoding="utf-8") as file:
        talks = json.load(file)
    talks = talks[:2] if "--quick" in sys.argv else talks
    turns = [
        f"{turn['speaker']}: {turn['text']}"
        for talk in talks
        for name, session in talk["conversation"].items()
        if isinstance(session, list) and name.startswith("session_")
        for turn in session
    ]
    asked = [each["question"] for talk in talks for each in talk["qa"]][:: max(1, len(talks) // 2)]
    model = Kept.open()
    found = [np.frombuffer(raw, "<f4") for raw in model.embed_passages(turns)]
    return np.stack(found), np.stack([np.frombuffer(model.embed_query(each), "<f4") for each in asked])


def repeated(passages: Array, size: int) -> Array:
    rng = np.random.default_rng(1)
    many = passages[np.arange(size) % len(passages)].astype(np.float32)
    many[len(passages) :] += rng.normal(scale=0.01, size=(max(0, size - len(passages)), many.shape[1]))
    return np.asarray(many / np.linalg.norm(many, axis=1, keepdims=True))


# Recall


def recall_rows(passages: Array, questions: Array) -> Rows:
    mean = passages.mean(axis=0)
    coded = np.ascontiguousarray(vectors.encode_vectors(passages, mean).T)
    size = vector_index.shortlist_size(len(passages), K)
    shares = []
    for query in questions[:1_000]:
        exact = passages @ query
        places = vector_index.nearest_codes(
            coded, vectors.encode_vectors(query[None, :], mean)[0], size, None
        )
        rows = passages[places].astype(np.float16).astype(np.float32) @ query
        found = places[np.argsort(-rows)[:K]]
        shares.append(len(set(found.tolist()) & set(np.argsort(-exact)[:K].tolist())) / K)
    share = sum(shares) / len(shares)
    what = f"recall@{K} of exact, {len(passages):,} real vectors, shortlist of {size:,}"
    return [(what, f"{share:.4f}", verdict(share, 0.99, at_least=True))]


# Times


def build(path: str, many: Array) -> None:
    """A memory whose pages say nothing but have vectors."""
    with Database.create(path, NOW) as db:
        db.write(lambda tx: vectors.register_model(tx, MODEL, many.shape[1], NOW))
        db.write(lambda tx: vectors.activate_model(tx, MODEL))
        for start in range(0, len(many), BATCH):
            db.write(lambda tx, start=start: add(tx, start, many[start : start + BATCH]))  # type: ignore[misc]


def add(tx: Transaction, start: int, rows: Array) -> None:
    numbers = range(start, start + len(rows))
    tx.executemany(
        "INSERT INTO pages (slug, uuid, type, title, wing, created_at, updated_at, truth_updated_at,"
        " timeline_updated_at) VALUES (?1, ?1, 'concept', '', ?2, ?3, ?3, ?3, ?3)",
        [(f"p{number}", f"wing-{number // PER_PAGE % 10}", NOW) for number in numbers[::PER_PAGE]],
    )
    tx.executemany(
        "INSERT INTO chunks (page_id, chunk_index, chunk_type, content_hash, token_count, start_line, end_line,"
        " heading_path, chunk_text) VALUES (?, ?, 'truth_section', ?, 1, 1, 1, '', ?)",
        [
            (number // PER_PAGE + 1, number % PER_PAGE, number.to_bytes(16, "big"), "word " * 40)
            for number in numbers
        ],
    )
    found = [(number.to_bytes(16, "big"), row.tobytes()) for number, row in zip(numbers, rows, strict=True)]
    vectors.keep_chunk_vectors(tx, MODEL, found, NOW)


def time_rows(path: str, many: Array, questions: Array, size: int) -> Rows:
    asked = questions[:: max(1, len(questions) // QUESTIONS)][:QUESTIONS]
    bare = times(lambda query: many @ query, asked[:ALSO])
    with Database.open(path, NOW) as db:
        index = ChunkIndex(db)
        for query in asked[:3]:
            index.nearest(MODEL, query, K)
        ours = times(lambda query: index.nearest(MODEL, query, K), asked)
        wide = times(lambda query: index.nearest(MODEL, query, 100), asked[:ALSO])
        narrow = times(
            lambda query: index.nearest(MODEL, query, K, SearchFilters(wing="wing-3")), asked[:ALSO]
        )
    ratio = middle(ours) / middle(bare)
    cold, started = cold_cpu(path, asked[0])
    rows = [
        (f"{size:,}: bare numpy product of 32-bit floats, p50", f"{middle(bare):.2f} ms", ""),
        (f"{size:,}: nearest {K}, resident, p50", f"{middle(ours):.2f} ms", ""),
        ("  as a share of the product", f"{ratio:.2f}", verdict(ratio, 0.6) if size >= SIZE else ""),
        (f"{size:,}: nearest {K}, resident, p95", f"{high(ours):.2f} ms", verdict(high(ours), 100)),
        (f"{size:,}: nearest 100, resident, p50", f"{middle(wide):.2f} ms", ""),
        (f"{size:,}: nearest {K} of a tenth by filter, resident, p50", f"{middle(narrow):.2f} ms", ""),
        (f"{size:,}: start-up with numpy", f"{started:.0f} ms", ""),
    ]
    return [
        *rows,
        (
            f"{size:,}: nearest {K}, cold, beyond start-up",
            f"{cold:.0f} ms",
            verdict(cold, 60) if size <= SIZE else "",
        ),
    ]


def times(work: Callable[[Array], object], asked: Array) -> list[float]:
    """CPU milliseconds for each question, sorted."""
    found = []
    for query in asked:
        started = time.process_time()
        work(query)
        found.append((time.process_time() - started) * 1000)
    return sorted(found)


def middle(values: list[float]) -> float:
    return values[len(values) // 2]


def high(values: list[float]) -> float:
    return values[(len(values) - 1) * 95 // 100]


COLD = """
import sys, time
import numpy as np
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.vector_index import ChunkIndex
started = time.process_time()
query = np.frombuffer(bytes.fromhex(sys.argv[2]), "<f4")
db = Database.open(sys.argv[1], "2026-04-25T12:00:00Z")
found = ChunkIndex(db).nearest("measured", query, 10)
assert len(found) == 10
print(time.process_time() - started, started)
"""


def cold_cpu(path: str, query: Array) -> tuple[float, float]:
    """CPU milliseconds of a first question in a fresh process, and of what comes before it."""
    environ = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "src")}
    runs = []
    for _ in range(5):
        said = subprocess.run(
            [sys.executable, "-c", COLD, path, query.astype("<f4").tobytes().hex()],
            env=environ,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        runs.append((float(said[0]) * 1000, float(said[1]) * 1000))
    return sorted(runs)[len(runs) // 2]


if __name__ == "__main__":
    main()
