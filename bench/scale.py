"""How cost grows: made-up but lifelike memories of ten thousand, a hundred thousand and a million chunks.

A memory is made once and kept in a folder of its own (QUAID_BENCH_CACHE names another), with what making it cost
beside it; each is measured in a fresh process. The vector of a question comes with it, so that no figure holds the
time of a model: one question of the built-in model costs about 10 ms more. Times are CPU, whatever thread it was on.

How much each operation may grow from the smallest memory to the largest is said in GROWTH. The limits are our own:
what follows an index is to stay flat (a tree of pages is half as deep again, which the limit covers); what looks at
all matching rows or at the codes of all vectors may grow as they do. So may two that were to be flat at first: a
list, which says of how many pages it is the beginning, and the links to a page, which are sorted: 11 to the page in
the middle of those asked for in the smallest memory, 509 in the largest.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from typing import Any, Literal, NamedTuple

from bench.exact import recall_of
from bench.plot import Curve
from bench.standin import brain_of
from bench.table import child_environ, cpu_of, draw, show, verdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000,)
ASKED = 120
COLD_RUNS, QUICK_COLD_RUNS = 20, 5
K = 10
MOST_MS = dict.fromkeys(("query", "filtered query", "query by day", "query after a put"), 100.0)
MEGABYTES, RECALL = 2_500, 0.98
"""At the largest size."""

FLAT, LINEAR = 3.0, 0.0
"""So many times what it costs at the smallest; linear is as many times as there are more chunks."""

GROWTH = {
    "search": LINEAR,
    "query": LINEAR,
    "filtered query": LINEAR,
    "query by day": LINEAR,
    "query after a put": LINEAR,
    "recall": FLAT,
    "backlinks": LINEAR,  # of the oldest pages, half of them: the links that lead there grow with the memory
    "graph": FLAT,
    "list": LINEAR,  # it says how many there are, which SQLite counts
    "get": FLAT,
    "put": FLAT,
}

NOTEBOOK_FILES = 500
"""Of the notebook beside a memory: the same at every size."""

NAMED = {"recall": f"recall, of a notebook of {NOTEBOOK_FILES} files at every size"}
"""What a row is called, where the name of what is done would say too much."""

DRAWN = ("search", "query", "filtered query", "query after a put", "backlinks", "put", "get")
BUILT = "built.json"

RECIPE = 4
"""Rises when memories are made otherwise: none is kept then."""

Times = dict[str, tuple[float, float]]


class Measured(NamedTuple):
    size: int
    megabytes: float
    """Of the file."""
    built: dict[str, Any]
    """What making it cost: `cpu_seconds`, `megabytes`, and `told` if somebody wrote them down by hand."""
    resident: Times
    """p50 and p95 in milliseconds, by what was done."""
    cold: Times
    """The same of whole fresh processes."""
    rss: float
    recall: float
    notes: dict[str, str]


def main() -> None:
    found = [_one(size) for size in (QUICK_SIZES if "--quick" in sys.argv else SIZES)]
    head = ("what", *(f"{each.size:,}" for each in found), "p50 grown (our own limit)", "target")
    show("Scale, by chunks; CPU, p50 / p95 ms", rows_of(found), head)
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


def rows_of(found: list[Measured]) -> list[tuple[str, ...]]:
    last = found[-1]
    rows: list[tuple[str, ...]] = [
        ("file, MB", *(f"{each.megabytes:,.0f}" for each in found), "", ""),
        ("file, MB, when built", *(_built(each, "megabytes") for each in found), "", ""),
        ("making it, CPU s, when built", *(_built(each, "cpu_seconds") for each in found), "", ""),
    ]
    for name in last.resident:
        target = verdict(last.resident[name][1], MOST_MS[name]) if name in MOST_MS else ""
        rows.append(_timed(name, "resident", [each.resident[name] for each in found], found, target))
    for name in last.cold:
        rows.append(_timed(name, "cold", [each.cold[name] for each in found], found, ""))
    for name in last.notes:
        rows.append((name, *(each.notes[name] for each in found), "", ""))
    rows += [
        ("resident memory, MB", *(f"{each.rss:,.0f}" for each in found), "", verdict(last.rss, MEGABYTES)),
        (f"recall@{K} of exact", *(f"{each.recall:.4f}" for each in found), "",
         verdict(min(each.recall for each in found), RECALL, at_least=True)),
    ]  # fmt: skip
    return rows


def _timed(
    name: str, how: str, times: list[tuple[float, float]], found: list[Measured], target: str
) -> tuple[str, ...]:
    """One operation at each size, and whether it grew by no more than it may."""
    cells = [f"{middle:.1f} / {slow:.1f}" for middle, slow in times]
    grown = ""
    if len(found) > 1:
        factor = times[-1][0] / times[0][0]
        grown = f"{factor:.1f} x: {verdict(factor, GROWTH[name] or found[-1].size / found[0].size)}"
    return f"{NAMED.get(name, name)}, {how}", *cells, grown, target


def _built(each: Measured, figure: str) -> str:
    if figure not in each.built:
        return "not noted"
    return f"{each.built[figure]:,.0f}{' (told by hand)' if each.built.get('told') else ''}"


def folder_of(size: int) -> str:
    """Where the memory of so many chunks is kept."""
    import tempfile

    root = os.environ.get("QUAID_BENCH_CACHE") or os.path.join(tempfile.gettempdir(), "quaid-bench-scale")
    return os.path.join(root, f"{size}-{RECIPE}")


def _one(size: int) -> Measured:
    path = os.path.join(folder_of(size), "memory.db")
    if not os.path.exists(path):
        build(size)
    said = json.loads(_child("--measure", path)[0])
    try:
        cold = _colds(path, QUICK_COLD_RUNS if "--quick" in sys.argv else COLD_RUNS)
    finally:
        _child("--tidy", path)
    megabytes = _megabytes(path)
    built = built_of(size)
    return Measured(
        size, megabytes, built, said["resident"], cold, said["rss"], said["recall"], said["notes"]
    )


def build(size: int) -> None:
    """Make a memory, and keep beside it what that cost."""
    cpu = _child("--make", str(size))[1]
    megabytes = _megabytes(os.path.join(folder_of(size), "memory.db"))
    with open(os.path.join(folder_of(size), BUILT), "w", encoding="utf-8") as file:
        json.dump({"cpu_seconds": round(cpu, 1), "megabytes": round(megabytes, 1)}, file)


def built_of(size: int) -> dict[str, Any]:
    """What making a memory cost, if that was noted."""
    try:
        with open(os.path.join(folder_of(size), BUILT), encoding="utf-8") as file:
            return dict(json.load(file))
    except FileNotFoundError:
        return {}


def _megabytes(path: str) -> float:
    return sum(os.path.getsize(file) for file in _files(path)) / 2**20


def _files(path: str) -> list[str]:
    folder, name = os.path.split(path)
    return [os.path.join(folder, each) for each in os.listdir(folder) if each.startswith(name)]


def _environ() -> dict[str, str]:
    return child_environ(os.path.join(ROOT, "src"), ROOT)


def _child(*words: str) -> tuple[str, float]:
    """What a fresh process of this benchmark prints, and its CPU seconds."""
    environ = _environ()
    command = [sys.executable, "-m", "bench.scale", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return said, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _cold(
    path: str, verb: str, calls: list[dict[str, Any]], scope: Literal["read", "write"] = "read"
) -> tuple[float, float]:
    """CPU milliseconds of whole fresh processes that do one thing each and import no more than that."""
    command = [sys.executable, "-m", "bench.standin", path, verb]
    return _spread(
        [1000 * cpu_of([*command, json.dumps(call), scope], 1, env=_environ())[0] for call in calls]
    )


def _colds(path: str, runs: int) -> Times:
    folder = os.path.dirname(path)
    with open(os.path.join(folder, "question.json"), encoding="utf-8") as file:
        question = json.load(file)[0][0]
    slugs = json.loads(_child("--slugs", path)[0])
    stamp = f"bench/cold-{os.getpid()}"
    some = [{"slug": slugs[at * 7 % len(slugs)]} for at in range(runs)]
    puts = [
        {"slug": f"{stamp}-{at}", "content": f"# Put {at}\n\n{question} [[{each['slug']}]]\n",
         "expected_version": 0}
        for at, each in enumerate(some)
    ]  # fmt: skip
    return {
        "search": _cold(path, "search", [{"query": question}] * runs),
        "query": _cold(path, "query", [{"question": question}] * runs),
        "filtered query": _cold(path, "query", [{"question": question, "wing": "wing-3"}] * runs),
        "recall": _cold(path, "recall", [{"query": "word31 topic1"}] * runs, "write"),
        "backlinks": _cold(path, "backlinks", some),
        "graph": _cold(path, "graph", [{**each, "depth": 2} for each in some]),
        "list": _cold(path, "list", [{"limit": 50}] * runs),
        "get": _cold(path, "get", some),
        "put": _cold(path, "put", puts, "write"),
    }


def _spread(taken: list[float]) -> tuple[float, float]:
    """p50 and p95."""
    taken = sorted(taken)
    return taken[len(taken) // 2], taken[(len(taken) - 1) * 95 // 100]


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
        "backlinks": Work("backlinks", [{"slug": slug} for slug in slugs]),
        "graph": Work("graph", [{"slug": slug, "depth": 2} for slug in slugs]),
        "list": Work("list", [{"limit": 50}] * 20),
        "get": Work("get", [{"slug": slug} for slug in slugs]),
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
    from quaid.operations import dispatch

    brain, questions = brain_of(path)
    asked = questions[:: max(1, len(questions) // ASKED)][:ASKED]
    slugs = _slugs(brain)
    times: Times = {}
    try:
        dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
        dispatch.call(brain, dispatch.find_command("embed"), {"all": True}, "owner")
        time.sleep(2.5)  # files that changed just before they were read are read again
        for name, work in works(asked, slugs).items():
            operation = dispatch.find_command(work.verb)
            for each in work.calls[:3] if work.scope == "read" or name == "recall" else ():
                dispatch.call(brain, operation, each, work.scope)
            taken = []
            for number, each in enumerate(work.calls):
                if name == "query after a put":
                    _touch(brain, number)
                started = time.process_time()
                dispatch.call(brain, operation, each, work.scope)
                taken.append(1000 * (time.process_time() - started))
            times[name] = _spread(taken)
        rss = _rss()
        recall, notes = recall_of(brain, questions, K)
    finally:
        brain.db.write(_tidy)
        brain.close()
    return {"resident": times, "rss": rss, "recall": recall, "notes": notes}


def _slugs(brain: Any) -> list[str]:
    """The oldest pages, which most links lead to, and as many from all over."""
    rows = brain.db.rows(
        "SELECT slug FROM pages WHERE id <= 60 OR id % (SELECT 1 + max(id) / 60 FROM pages) = 1"
    )
    return [slug for (slug,) in rows][:ASKED]


def _touch(brain: Any, number: int) -> None:
    from quaid.operations import dispatch

    slug = f"bench/after-{os.getpid()}-{number}"
    content = f"# After {number}\n\nSomething new.\n"
    put = {"slug": slug, "content": content, "expected_version": 0}
    dispatch.call(brain, dispatch.find_command("put"), put, "write")


def _tidy(tx: Any) -> None:
    """Leave the memory as it was made."""
    from quaid.storage import vectors

    tx.execute("DELETE FROM pages WHERE slug GLOB 'bench/*'")
    tx.execute("DELETE FROM knowledge_gaps")
    vectors.purge_vectors(tx)


def _rss() -> float:
    """Megabytes in memory now."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def child() -> bool:
    """What a process does that the benchmark itself has started."""
    words = sys.argv[1:]
    if words[:1] == ["--make"]:
        from bench.lifelike import make

        shutil.rmtree(folder_of(int(words[1])), ignore_errors=True)
        make(int(words[1]))
    elif words[:1] == ["--measure"]:
        print(json.dumps(measure(words[1])))
    elif words[:1] == ["--slugs"]:
        with brain_of(words[1])[0] as brain:
            print(json.dumps(_slugs(brain)))
    elif words[:1] == ["--tidy"]:
        with brain_of(words[1])[0] as brain:
            brain.db.write(_tidy)
    else:
        return False
    return True


if __name__ == "__main__":
    if not child():
        main()
