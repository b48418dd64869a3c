"""The server over HTTP: how long the API takes, what the process weighs, and readers and writers at once."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from bench.dashboard import PAGES, QUICK_PAGES, WINGS, made_up, made_up_memory
from bench.search import percentile
from bench.table import show, verdict
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch, service

RUNS = 200
READERS, WRITERS = 50, 4
SECONDS, QUICK_SECONDS = 60, 20
LOAD_P99_MS = 1_500
QUESTIONS_A_SECOND = 60
SEARCH_MS, RSS_MB = 80, 450
SESSIONS, QUICK_SESSIONS, GROWN_MB = 10_000, 1_000, 20
SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")


def main() -> None:
    quick = "--quick" in sys.argv
    count = QUICK_PAGES if quick else PAGES
    with made_up_memory(count) as settings, serving(settings, settings.cwd) as (process, address):
        rows: list[tuple[str, ...]] = [("RSS at the start", _weight(process), "", "")]
        rows += times(settings, address, count, process)
        rows.append(("RSS with model and vectors", _weight(process), "", verdict(_rss(process), RSS_MB)))
        seconds = QUICK_SECONDS if quick else SECONDS
        rows += load(settings, address, process, seconds, mixed_paths(count))
        rows += load(settings, address, process, seconds, QUESTIONS)
        rows.append(("RSS after that", _weight(process), "", verdict(_rss(process), RSS_MB)))
        rows += crowd(settings, address, seconds, count)
        rows += sessions(settings, address, process, QUICK_SESSIONS if quick else SESSIONS)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        ended = time.monotonic() - began
        rows.append(("told to end, ended", f"{ended:.2f} s", "", verdict(ended, 2)))
    show(f"HTTP, {count:,} pages", rows, ("what", "p50 or figure", "p95", "target"))


@contextmanager
def serving(settings: Settings, folder: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server on this memory."""
    environ = {**os.environ, "HOME": folder, "PYTHONPATH": SOURCE, "QUAID_BACKGROUND_EMBEDDING": "off"}
    environ |= {"QUAID_WEB_REQUESTS_PER_SECOND": "1000000", "QUAID_WEB_BURST": "1000000"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "quaid", "--db", settings.db_path, "serve", "--http", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    )
    try:
        found = re.search(r"http://\S+:\d+", process.stderr.readline() if process.stderr else "")
        if not found:
            raise SystemExit("the server did not start")
        time.sleep(2)
        yield process, found[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def times(
    settings: Settings, address: str, count: int, process: "subprocess.Popen[str]"
) -> list[tuple[str, ...]]:
    """One caller, one request after another."""
    rng = random.Random(9)
    texts = [
        [word for word in each.truth.split() if word.isalpha() and len(word) > 3] for each in made_up(50)
    ]

    def some(most: int) -> str:
        return " ".join(rng.sample(rng.choice(texts), most))

    asked: dict[str, Callable[[], tuple[str, dict[str, str]]]] = {
        "query": lambda: ("/api/memory/query", {"question": some(4)}),
        "search": lambda: ("/api/memory/search", {"query": some(2)}),
        "recall": lambda: ("/api/notebook/recall", {"query": some(3)}),
        "get": lambda: ("/api/memory/get", {"slug": _slug(rng.randrange(count))}),
    }
    rows: list[tuple[str, ...]] = []
    headers = {"Authorization": f"Bearer {service.owner_token(settings)}"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as client:
        for name, ask in asked.items():
            taken = []
            used = 0.0
            for run in range(RUNS + 5):
                if run == 5:
                    used = _cpu(process)
                path, params = ask()
                began = time.perf_counter()
                client.get(path, params=params).raise_for_status()
                if run >= 5:
                    taken.append((time.perf_counter() - began) * 1000)
            half, most = percentile(sorted(taken), 50), percentile(sorted(taken), 95)
            target = verdict(most, SEARCH_MS) if name in ("query", "search") else ""
            rows.append((f"{name}, wall", f"{half:.1f} ms", f"{most:.1f} ms", target))
            rows.append((f"{name}, CPU, mean", f"{(_cpu(process) - used) * 1000 / RUNS:.1f} ms", "", ""))
    return rows


QUESTIONS = {"query": ["/api/memory/query?question=what%20is%20page%20{}"]}
"""Each question differs, so that no vector of a question is cached."""


def mixed_paths(count: int) -> dict[str, list[str]]:
    return {
        "get": [f"/api/memory/get?slug={_slug(number * 97 % count)}" for number in range(40)],
        "search": [f"/api/memory/search?query=page%20{number}" for number in range(20)],
        "query": QUESTIONS["query"] * 4,
        "other": ["/api/memory/stats", "/api/memory/list?limit=20", "/health"],
    }


def _generate(paths: dict[str, list[str]], *words: str) -> tuple[dict[str, Any], float]:
    """Run the load generator. Return its results and its CPU seconds."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", *words],
        input=json.dumps(paths),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=os.path.dirname(SOURCE),
    )
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(done.stdout), used


def load(
    settings: Settings,
    address: str,
    process: "subprocess.Popen[str]",
    seconds: int,
    paths: dict[str, list[str]],
) -> list[tuple[str, ...]]:
    """Many readers and a few writers at once."""
    words = (address, service.owner_token(settings), str(seconds), str(READERS), str(WRITERS))
    used = _cpu(process)
    told, generator = _generate(paths, *words)
    used = _cpu(process) - used
    taken: dict[str, list[float]] = {kind: sorted(times) for kind, times in told["taken"].items()}
    reads = sorted(each for kind, times in taken.items() if kind != "put" for each in times)
    what = "readers" if len(paths) > 1 else "readers who only ask questions"
    rows = [_loaded(f"{READERS} {what}, {seconds} s: {told['errors']} errors", reads, seconds, LOAD_P99_MS)]
    rows += [_loaded(f"  {kind}", taken[kind], seconds) for kind in paths if len(paths) > 1]
    rows.append(_loaded(f"{WRITERS} writers", taken["put"], seconds, LOAD_P99_MS))
    each = used * 1000 / (len(reads) + len(taken["put"]))
    rows.append(("  CPU of the server for each request, mean", f"{each:.1f} ms", "", ""))
    share = (used + generator) / seconds / (os.cpu_count() or 1)
    rows.append(("  share of all processors that server and generator got", f"{share:.0%}", "", ""))
    if len(paths) == 1:
        speed = len(reads) / (used + generator) * (os.cpu_count() or 1)
        shown = f"{'reached' if speed >= QUESTIONS_A_SECOND else 'MISSED'} (>= {QUESTIONS_A_SECOND})"
        rows.append(
            ("  questions a second if they had all of them, beside the writers", f"{speed:.0f}", "", shown)
        )
        by_words = told["by_words"] / max(1, len(reads))
        rows.append(("  answered by words only", f"{by_words:.0%}", "", ""))
    return rows


def crowd(settings: Settings, address: str, seconds: int, count: int) -> list[tuple[str, ...]]:
    """A person, alone and beside a caller with 20 connections (see bench.load)."""
    with Brain(settings) as brain:
        create = dispatch.find_command("token create")
        token = dispatch.call(brain, create, {"name": "crowd", "scope": "read"}, "owner").token
    paths = {"page": [f"/page/{_slug(count // 2)}"], **QUESTIONS}
    person = service.owner_token(settings)
    alone, _ = _generate(paths, address, person, str(seconds // 4), "1", "0")
    beside, _ = _generate(paths, address, person, str(seconds // 2), "crowd", token)
    rows: list[tuple[str, ...]] = []
    for kind in paths:
        for who, told in (("alone", alone), ("beside 20 connections of one caller", beside)):
            times = sorted(told["taken"].get(kind, [float("inf")]))
            middle, most = percentile(times, 50), percentile(times, 99)
            rows.append((f"a person's {kind}, {who}", f"p50 {middle:.0f} ms", f"p99 {most:.0f} ms", ""))
    return rows


def _loaded(what: str, times: list[float], seconds: int, target: int = 0) -> tuple[str, ...]:
    half, most = percentile(times, 50), percentile(times, 99)
    shown = verdict(most, target) if target else ""
    return (what, f"{len(times) / seconds:.0f}/s, p50 {half:.0f} ms", f"p99 {most:.0f} ms", shown)


def sessions(
    settings: Settings, address: str, process: "subprocess.Popen[str]", count: int
) -> list[tuple[str, ...]]:
    """Clients of MCP that begin a session and never come back."""
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    headers = {"Authorization": f"Bearer {service.owner_token(settings)}"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as client:
        for _ in range(200):  # more than are ever open at once
            client.post("/mcp", json=hello).raise_for_status()
        before = _rss(process)
        for _ in range(count):
            client.post("/mcp", json=hello).raise_for_status()
    grown = _rss(process) - before
    return [(f"RSS grown by {count:,} dropped sessions", f"{grown:.1f} MB", "", verdict(grown, GROWN_MB))]


def _slug(number: int) -> str:
    return f"{WINGS[number % len(WINGS)]}/page-{number}"


def _processes(process: "subprocess.Popen[str]") -> list[int]:
    """Return the ids of a server and of its processes."""
    ids = [process.pid]
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", encoding="ascii") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == process.pid:
                ids.append(int(name))
    return ids


def _cpu(process: "subprocess.Popen[str]") -> float:
    """Seconds that a server, its processes and those that have ended have used so far."""
    ticks = 0
    for pid in _processes(process):
        with suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15] if pid == process.pid else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory(process: "subprocess.Popen[str]", kind: str) -> float:
    """Return the RSS or PSS of a server and its processes in MB. RSS counts shared memory once for each of them."""
    total = 0
    for pid in _processes(process):
        with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            total += int(next(line for line in file if line.startswith(kind)).split()[1])
    return total / 1024


def _rss(process: "subprocess.Popen[str]") -> float:
    return _memory(process, "Rss:")


def _weight(process: "subprocess.Popen[str]") -> str:
    return (
        f"{_rss(process):.0f} MB, PSS {_memory(process, 'Pss:'):.0f} MB, {len(_processes(process))} processes"
    )
