"""The Python library: what `import quaid` costs, and its queries against the same pipeline called directly."""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Lock

import quaid
from bench.dashboard import made_up_memory
from bench.search import vocabulary
from bench.table import cpu_of, show, verdict
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations.query import query

PAGES, QUICK_PAGES = 5_000, 1_000
QUESTIONS, QUICK_QUESTIONS = 200, 60
STARTS = 21
THREADS = 4
IMPORT_MS, RATIO = 15, 1.05


def main() -> None:
    quick = "--quick" in sys.argv
    count = QUICK_PAGES if quick else PAGES
    bare, ours = _imports()
    cost = (ours - bare) * 1000
    rows: list[tuple[str, ...]] = [
        ("import quaid, over bare Python", f"{cost:.1f} ms", "", verdict(cost, IMPORT_MS))
    ]
    with made_up_memory(count) as settings:
        os.environ.update(settings.environ)
        rows += _queries(settings, QUICK_QUESTIONS if quick else QUESTIONS)
    show(f"Python library, {count:,} pages", rows, ("what", "figure (CPU, median)", "ratio", "target"))


def _imports() -> tuple[float, float]:
    """The median CPU seconds of a bare Python and of one that imports quaid, taking turns."""
    bare, ours = [], []
    for _ in range(STARTS):
        bare += cpu_of([sys.executable, "-c", "pass"], 1)
        ours += cpu_of([sys.executable, "-c", "import quaid"], 1)
    return statistics.median(bare), statistics.median(ours)


def _queries(settings: Settings, count: int) -> list[tuple[str, ...]]:
    import random

    words = vocabulary(random.Random(8))[:2_000]
    rng = random.Random(1)
    questions = [" ".join(rng.choices(words, k=4)) for _ in range(count)]
    with Brain(settings) as brain, quaid.open(settings.db_path) as memory, asyncio.Runner() as runner:
        other = runner.run(quaid.open_async(settings.db_path))
        ways: dict[str, Callable[[str], object]] = {
            "operations.query on one connection": lambda text: query(brain, text),
            "quaid.open(…).query": memory.query,
            "await quaid.open_async(…).query": lambda text: runner.run(other.query(text)),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for number, text in enumerate([questions[0], *questions]):
            for name in sorted(ways, key=lambda name: hash((name, number))):
                began = time.process_time()
                ways[name](text)
                if number:  # the first query loads the model
                    taken[name].append(time.process_time() - began)
        runner.run(other.close())
        rows = []
        middle = {name: statistics.median(times) for name, times in taken.items()}
        base = middle["operations.query on one connection"]
        for name, figure in middle.items():
            target = verdict(figure / base, RATIO) if name.startswith("quaid") else ""
            rows.append((name, f"{figure * 1000:.2f} ms", f"{figure / base:.3f}", target))
        return rows + _threads(memory, questions[:QUICK_QUESTIONS])


def _threads(memory: quaid.Memory, questions: list[str]) -> list[tuple[str, ...]]:
    """Queries by several threads, with connections for each and one after the other behind a lock."""
    rates: dict[str, list[float]] = {"a connection for each call": [], "one connection behind a lock": []}
    for _ in range(3):
        for name, rate in rates.items():
            lock = nullcontext() if name.startswith("a") else Lock()

            def ask(text: str, lock: "nullcontext[None] | Lock" = lock) -> None:
                with lock:
                    memory.query(text)

            with ThreadPoolExecutor(THREADS) as pool:
                began = time.monotonic()
                list(pool.map(ask, questions))
                rate.append(len(questions) / (time.monotonic() - began))
    base = max(rates["one connection behind a lock"])
    return [
        (
            f"{THREADS} threads, {name}: best of 3 runs",
            f"{max(rate):.0f} queries/s",
            f"{max(rate) / base:.2f}",
            "",
        )
        for name, rate in rates.items()
    ]
