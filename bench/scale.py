"""How cost grows: made-up but lifelike memories of ten thousand, a hundred thousand and a million chunks.

A memory is made once and kept in a folder of its own (QUAID_BENCH_CACHE names another); each is measured in a fresh
process. The vector of a question comes with it, so that no figure holds the time of a model: one question of the
built-in model costs about 10 ms more. Times are CPU, whatever thread it was on.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from typing import Any, Literal, NamedTuple

# One thread: what several of numpy's burn while they wait is nobody's work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from bench.plot import Curve
from bench.standin import MODEL, brain_of
from bench.table import cpu_of, draw, show, verdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000,)
ASKED, EXACT, COLD_RUNS = 120, 200, 5
K = 10
MOST_MS = {"query": 150.0, "filtered query": 150.0, "query after a put": 150.0}
MEGABYTES, RECALL, FLAT = 2_500, 0.98, 3.0
"""At the largest size; what is to stay flat may cost so many times what it costs at the smallest."""

DRAWN = ("search", "query", "filtered query", "query after a put", "recall", "backlinks", "put", "get")

RECIPE = 4
"""Rises when memories are made otherwise: none is kept then."""

Times = dict[str, tuple[float, float]]


class Measured(NamedTuple):
    size: int
    megabytes: float
    """Of the file."""
    made: float
    """CPU seconds of making it; 0: it was there."""
    resident: Times
    """p50 and p95 in milliseconds, by what was done."""
    cold: dict[str, float]
    rss: float
    recall: float
    notes: dict[str, str]


def main() -> None:
    found = [_one(size) for size in (QUICK_SIZES if "--quick" in sys.argv else SIZES)]
    head = ("what", *(f"{each.size:,}" for each in found), "target")
    show("Scale, by chunks; CPU, p50 / p95 ms", _rows(found), head)
    if len(found) > 1:
        for curve in _curves(found):
            draw(curve)


def _curves(found: list[Measured]) -> list[Curve]:
    """How what is done costs more with size, and what that takes of disk and memory."""
    resident = {name: [(each.size, each.resident[name][1]) for each in found] for name in DRAWN}
    space = {
        "file": [(each.size, each.megabytes) for each in found],
        "memory": [(each.size, each.rss) for each in found],
    }
    return [
        Curve("Resident, p95", "chunks", "CPU ms", resident),
        Curve("Space", "chunks", "MB", space),
    ]


def _rows(found: list[Measured]) -> list[tuple[str, ...]]:
    first, last = found[0], found[-1]
    grown = len(found) > 1
    rows: list[tuple[str, ...]] = [
        ("file, MB", *(f"{each.megabytes:,.0f}" for each in found), ""),
        ("making it, CPU s", *(f"{each.made:.0f}" if each.made else "kept" for each in found), ""),
    ]
    for name in first.resident:
        cells = [f"{each.resident[name][0]:.1f} / {each.resident[name][1]:.1f}" for each in found]
        target = ""
        if name in MOST_MS:
            target = verdict(last.resident[name][1], MOST_MS[name])
        elif name in ("put", "get") and grown:
            target = "grown x: " + verdict(last.resident[name][0] / first.resident[name][0], FLAT)
        rows.append((f"{name}, resident", *cells, target))
    rows += [(f"{name}, cold", *(f"{each.cold[name]:.0f}" for each in found), "") for name in first.cold]
    for name in first.notes:
        rows.append((name, *(each.notes[name] for each in found), ""))
    rows += [
        ("resident memory, MB", *(f"{each.rss:,.0f}" for each in found), verdict(last.rss, MEGABYTES)),
        (f"recall@{K} of exact", *(f"{each.recall:.4f}" for each in found),
         verdict(min(each.recall for each in found), RECALL, at_least=True)),
    ]  # fmt: skip
    return rows


def folder_of(size: int) -> str:
    """Where the memory of so many chunks is kept."""
    import tempfile

    root = os.environ.get("QUAID_BENCH_CACHE") or os.path.join(tempfile.gettempdir(), "quaid-bench-scale")
    return os.path.join(root, f"{size}-{RECIPE}")


def _one(size: int) -> Measured:
    path, made = os.path.join(folder_of(size), "memory.db"), 0.0
    if not os.path.exists(path):
        made = _child("--make", str(size))[1]
    said = json.loads(_child("--measure", path)[0])
    cold = _colds(path)
    megabytes = sum(os.path.getsize(each) for each in _files(path)) / 2**20
    return Measured(size, megabytes, made, said["resident"], cold, said["rss"], said["recall"], said["notes"])


def _files(path: str) -> list[str]:
    folder, name = os.path.split(path)
    return [os.path.join(folder, each) for each in os.listdir(folder) if each.startswith(name)]


def _environ() -> dict[str, str]:
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**environ, "PYTHONPATH": os.pathsep.join((os.path.join(ROOT, "src"), ROOT))}


def _child(*words: str) -> tuple[str, float]:
    """What a fresh process of this benchmark prints, and its CPU seconds."""
    environ = _environ()
    command = [sys.executable, "-m", "bench.scale", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return said, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _cold(path: str, verb: str, arguments: dict[str, Any]) -> float:
    """CPU milliseconds of a whole fresh process that does one thing and imports no more than that, the median."""
    command = [sys.executable, "-m", "bench.standin", path, verb, json.dumps(arguments)]
    times = cpu_of(command, COLD_RUNS, env=_environ())
    return 1000 * times[len(times) // 2]


def _colds(path: str) -> dict[str, float]:
    folder = os.path.dirname(path)
    with open(os.path.join(folder, "question.json"), encoding="utf-8") as file:
        question = json.load(file)[0][0]
    return {
        "search": _cold(path, "search", {"query": question}),
        "query": _cold(path, "query", {"question": question}),
        "filtered query": _cold(path, "query", {"question": question, "wing": "wing-3"}),
        "list": _cold(path, "list", {"limit": 50}),
    }


# In a process of its own


class Work(NamedTuple):
    """One thing that is done again and again."""

    verb: str
    calls: list[dict[str, Any]]
    scope: Literal["read", "write"] = "read"


def works(asked: list[str], slugs: list[str]) -> dict[str, Work]:
    stamp = f"{os.getpid()}"
    return {
        "search": Work("search", [{"query": each} for each in asked]),
        "query": Work("query", [{"question": each} for each in asked]),
        "filtered query": Work("query", [{"question": each, "wing": "wing-3"} for each in asked]),
        "query by day": Work("query", [{"question": each, "since": "2023-01-01"} for each in asked[::2]]),
        "recall": Work("recall", [{"query": f"word{at * 31 % 5_000} topic{at % 40}"} for at in range(60)], "write"),
        "backlinks": Work("backlinks", [{"slug": each} for each in slugs]),
        "graph": Work("graph", [{"slug": each, "depth": 2} for each in slugs]),
        "list": Work("list", [{"limit": 50}] * 20),
        "get": Work("get", [{"slug": each} for each in slugs]),
        "put": Work(
            "put",
            [
                {"slug": f"bench/{stamp}-{at}", "content": f"# Put {at}\n\n{asked[at]} [[{slugs[at]}]]\n",
                 "expected_version": 0}
                for at in range(60)
            ],
            "write",
        ),
        "query after a put": Work("query", [{"question": each} for each in asked[:30]]),
    }  # fmt: skip


def measure(path: str) -> dict[str, Any]:
    from quaid.ops import gate

    brain, questions = brain_of(path)
    asked = questions[:: max(1, len(questions) // ASKED)][:ASKED]
    rows = brain.db.rows(
        "SELECT slug FROM pages WHERE id <= 60 OR id % (SELECT 1 + max(id) / 60 FROM pages) = 1"
    )
    slugs = [slug for (slug,) in rows][:ASKED]
    times: Times = {}
    try:
        gate.call(brain, gate.command("notebook init"), {}, "owner")
        gate.call(brain, gate.command("embed"), {"all": True}, "owner")
        time.sleep(2.5)  # files that changed just before they were read are read again
        for name, work in works(asked, slugs).items():
            operation = gate.command(work.verb)
            for each in work.calls[:3] if work.scope == "read" or name == "recall" else ():
                gate.call(brain, operation, each, work.scope)
            taken = []
            for number, each in enumerate(work.calls):
                if name == "query after a put":
                    _touch(brain, number)
                started = time.process_time()
                gate.call(brain, operation, each, work.scope)
                taken.append(1000 * (time.process_time() - started))
            taken.sort()
            times[name] = (taken[len(taken) // 2], taken[(len(taken) - 1) * 95 // 100])
        rss = _rss()
        recall, notes = recall_of(brain, questions)
    finally:
        brain.db.write(_tidy)
        brain.close()
    return {"resident": times, "rss": rss, "recall": recall, "notes": notes}


def _touch(brain: Any, number: int) -> None:
    from quaid.ops import gate

    slug = f"bench/after-{os.getpid()}-{number}"
    content = f"# After {number}\n\nSomething new.\n"
    put = {"slug": slug, "content": content, "expected_version": 0}
    gate.call(brain, gate.command("put"), put, "write")


def _tidy(tx: Any) -> None:
    """Leave the memory as it was made."""
    from quaid.store import vectors

    tx.execute("DELETE FROM pages WHERE slug GLOB 'bench/*'")
    tx.execute("DELETE FROM knowledge_gaps")
    vectors.purge(tx)


def _rss() -> float:
    """Megabytes in memory now."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def recall_of(brain: Any, questions: list[str]) -> tuple[float, dict[str, str]]:
    """How many of the exact ten nearest are found, and what that alone costs."""
    import numpy as np

    asked = questions[:: max(1, len(questions) // EXACT)][:EXACT]
    vectors = np.stack([np.frombuffer(brain.embedder.embed_query(each), "<f4") for each in asked])
    started = time.process_time()
    found = [[chunk for chunk, _ in brain.vectors.nearest(MODEL, each, K)] for each in vectors]
    cost = 1000 * (time.process_time() - started) / len(asked)
    exact = _exact(brain.db, vectors)
    share = sum(len({*ours} & {*theirs}) for ours, theirs in zip(found, exact, strict=True)) / (
        K * len(asked)
    )
    return share, {f"nearest {K} alone, resident, mean ms": f"{cost:.1f}"}


def _exact(db: Any, vectors: Any) -> list[list[int]]:
    """The chunks that are nearest to each of some vectors, all of them compared."""
    import numpy as np

    best_scores = np.empty((0, len(vectors)), np.float32)
    best_ids = np.empty((0, len(vectors)), np.int64)
    last, step = 0, 20_000
    while rows := db.rows(
        "SELECT v.id, c.id, v.vector FROM page_embeddings_vec_384 v JOIN chunks c USING (content_hash)"
        " WHERE v.id > ? ORDER BY v.id LIMIT ?",
        (last, step),
    ):
        last = rows[-1][0]
        some = np.frombuffer(b"".join([row[2] for row in rows]), "<f2").reshape(len(rows), -1)
        scores = np.concatenate([best_scores, some.astype(np.float32) @ vectors.T])
        ids = np.array([row[1] for row in rows])[:, None].repeat(len(vectors), axis=1)
        ids = np.concatenate([best_ids, ids])
        order = np.argsort(-scores, axis=0)[:K]
        best_scores, best_ids = (np.take_along_axis(each, order, 0) for each in (scores, ids))
    return [column.tolist() for column in best_ids.T]


def child() -> bool:
    """What a process does that the benchmark itself has started."""
    words = sys.argv[1:]
    if words[:1] == ["--make"]:
        from bench.lifelike import make

        shutil.rmtree(folder_of(int(words[1])), ignore_errors=True)
        make(int(words[1]))
    elif words[:1] == ["--measure"]:
        print(json.dumps(measure(words[1])))
    else:
        return False
    return True


if __name__ == "__main__":
    if not child():
        main()
