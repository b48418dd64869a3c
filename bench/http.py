"""The server over HTTP: how long the API takes, what the process weighs, and readers and writers at once."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from bench.dashboard import PAGES, QUICK_PAGES, WINGS, fill, made_up
from bench.search import percentile
from bench.table import show, verdict
from quaid.config import Settings
from quaid.operations import service

RUNS = 200
READERS, WRITERS = 50, 4
SECONDS, QUICK_SECONDS = 60, 20
SEARCH_MS, RSS_MB = 80, 350
SESSIONS, QUICK_SESSIONS, GROWN_MB = 10_000, 1_000, 20
SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")

READ = """
local paths = {%s}
local at = 0
request = function()
  at = at + 1
  return wrk.format("GET", paths[at %% #paths + 1])
end
"""
WRITE = """
local number = 0
local name = 0
setup = function(thread) name = name + 1; thread:set("name", name) end
request = function()
  number = number + 1
  local slug = string.format("concepts/written-%d-%d", name, number)
  local body = string.format('{"slug": "%s", "content": "Written by wrk."}', slug)
  wrk.headers["Content-Type"] = "application/json"
  return wrk.format("POST", "/api/memory/put", nil, body)
end
"""


class Load(NamedTuple):
    """What wrk tells."""

    requests: int
    errors: int  # answers that are none of 2xx, and broken connections
    p50: str
    p99: str


def main() -> None:
    quick = "--quick" in sys.argv
    count = QUICK_PAGES if quick else PAGES
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            db_path=os.path.join(folder, "memory.db"),
            home=os.path.join(folder, ".quaid"),
            cwd=folder,
            environ={"QUAID_BACKGROUND_EMBEDDING": "off", "HOME": folder},
        )
        fill(settings, list(made_up(count)))
        with serving(settings, folder) as (process, address):
            rows: list[tuple[str, ...]] = [("RSS at the start", _weight(process), "", "")]
            rows += times(settings, address, count, process)
            rows.append(("RSS with model and vectors", _weight(process), "", verdict(_rss(process), RSS_MB)))
            rows += load(settings, address, folder, QUICK_SECONDS if quick else SECONDS, count)
            rows.append(("RSS after that", _weight(process), "", verdict(_rss(process), RSS_MB)))
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


def load(settings: Settings, address: str, folder: str, seconds: int, count: int) -> list[tuple[str, ...]]:
    """Many readers and a few writers at once, by wrk."""
    program = shutil.which("wrk")
    if program is None:
        return [("readers and writers", "wrk is not installed", "", "")]
    paths = [f"/api/memory/get?slug={_slug(number * 97 % count)}" for number in range(40)]
    paths += [f"/api/memory/search?query=page%20{number}" for number in range(20)]
    paths += [f"/api/memory/query?question=what%20is%20page%20{number}" for number in range(4)]
    paths += ["/api/memory/stats", "/api/memory/list?limit=20", "/health"]
    scripts = {"read.lua": READ % ", ".join(f'"{path}"' for path in paths), "write.lua": WRITE}
    for name, text in scripts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    shown = f"Authorization: Bearer {service.owner_token(settings)}"

    def start(script: str, connections: int, threads: int) -> "subprocess.Popen[str]":
        words = [program, "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s", "--latency"]
        return subprocess.Popen(
            [*words, "--timeout", "30s", "-H", shown, "-s", os.path.join(folder, script), address],
            stdout=subprocess.PIPE,
            text=True,
        )

    both = start("read.lua", READERS, 2), start("write.lua", WRITERS, 1)
    read, written = (_read(each.communicate()[0]) for each in both)
    return [
        (
            f"{READERS} readers, {seconds} s: {read.errors} errors",
            f"{read.requests / seconds:.0f}/s, p50 {read.p50}",
            f"p99 {read.p99}",
            verdict(read.errors, 0),
        ),
        (
            f"{WRITERS} writers: {written.errors} errors",
            f"{written.requests / seconds:.0f}/s, p50 {written.p50}",
            f"p99 {written.p99}",
            verdict(written.errors, 0),
        ),
    ]


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


def _read(said: str) -> Load:
    requests = re.search(r"(\d+) requests in", said)
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    half, most = re.search(r"50%\s+(\S+)", said), re.search(r"99%\s+(\S+)", said)
    errors = int(bad[1]) if bad else 0
    errors += sum(map(int, broken.groups())) if broken else 0
    return Load(
        int(requests[1]) if requests else 0, errors, half[1] if half else "?", most[1] if most else "?"
    )


def _slug(number: int) -> str:
    return f"{WINGS[number % len(WINGS)]}/page-{number}"


def _cpu(process: "subprocess.Popen[str]") -> float:
    """Seconds that a process has used so far."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss(process: "subprocess.Popen[str]") -> float:
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1]) / 1024


def _weight(process: "subprocess.Popen[str]") -> str:
    return f"{_rss(process):.0f} MB"
