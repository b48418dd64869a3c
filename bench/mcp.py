"""The MCP server: what its start costs every client, what it weighs, and what the protocol adds to a call."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.table import show, verdict
from quaid import config
from quaid.app import Brain
from quaid.model.page import build_page
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.storage import page_edits

RUNS, QUICK_RUNS = 15, 5
CALLS, QUICK_CALLS = 1_000, 200
PAGES = 1_000
NOW = "2026-04-25T12:00:00Z"
SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
# The smallest server that the official SDK makes: what our own loop is measured against.
WITH_SDK = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
@server.tool()
def memory_get(slug: str) -> dict[str, str]:
    return {"slug": slug}
@server.tool()
def memory_search(query: str) -> dict[str, str]:
    return {"query": query}
server.run("stdio")
"""

Arguments = Iterator[dict[str, Any]]


class Cost(NamedTuple):
    cpu: float  # seconds, user and system, of the whole process
    memory: int  # bytes resident before it ended
    answers: list[bytes]


def main() -> None:
    quick = "--quick" in sys.argv
    runs, calls = (QUICK_RUNS, QUICK_CALLS) if quick else (RUNS, CALLS)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memory.db")
        fill(path)
        ours = [sys.executable, "-m", "quaid", "serve", "--db", path]
        rows = [*starting(ours, runs), *weighing(ours), *calling(ours, path, calls)]
    show(f"MCP over stdio, {PAGES:,} pages", rows, ("what", "figure", "compared", "target"))


def starting(ours: list[str], runs: int) -> list[tuple[str, ...]]:
    """CPU of a process that answers the handshake and ends."""
    hello = [request("initialize", HELLO)]
    bare = middle(visit([sys.executable, "-c", "input(); print()"], hello).cpu for _ in range(runs))
    mine = middle(visit(ours, hello).cpu for _ in range(runs))
    theirs = middle(visit([sys.executable, "-c", WITH_SDK], hello).cpu for _ in range(min(runs, 5)))
    return [
        ("handshake CPU, bare Python that answers a line", f"{bare * 1000:.0f} ms", "", ""),
        (
            "handshake CPU, quaid serve",
            f"{mine * 1000:.0f} ms",
            f"{mine / bare:.1f} x bare",
            verdict(mine, 0.15),
        ),
        (
            "handshake CPU, smallest server of the SDK",
            f"{theirs * 1000:.0f} ms",
            f"{theirs / mine:.0f} x ours",
            "",
        ),
    ]


def weighing(ours: list[str]) -> list[tuple[str, ...]]:
    """Memory after a get and a search, and the size of the tool list that every conversation carries."""
    lines = [
        request("initialize", HELLO),
        request("tools/list", {}),
        request("tools/call", {"name": "memory_get", "arguments": {"slug": "concepts/c1"}}),
        request("tools/call", {"name": "memory_search", "arguments": {"query": "river meeting oslo"}}),
    ]
    mine, theirs = visit(ours, lines), visit([sys.executable, "-c", WITH_SDK], lines)
    size = on_the_wire(json.loads(mine.answers[1])["result"]["tools"])
    megabytes, heavier = mine.memory / 2**20, f"{theirs.memory / mine.memory:.1f} x ours"
    return [
        ("memory after get and search, quaid serve", f"{megabytes:.1f} MB", "", verdict(megabytes, 30)),
        ("memory after the same, SDK without a database", f"{theirs.memory / 2**20:.1f} MB", heavier, ""),
        ("tool list (core)", f"{size:,} bytes", "", verdict(size, 12 * 1024)),
    ]


def calling(ours: list[str], path: str, calls: int) -> list[tuple[str, ...]]:
    """CPU of a call through the pipe against the same call at the gate."""
    rows: list[tuple[str, ...]] = []
    idle = middle(visit(ours, [request("initialize", HELLO), tool("memory_stats", {})]).cpu for _ in range(5))
    for name, make in (("memory_get", get), ("memory_search", search), ("memory_put", put)):
        lines = [tool(name, each) for each in make(calls, "served")]
        served = (visit(ours, [request("initialize", HELLO), *lines]).cpu - idle) / calls
        direct = at_the_gate(path, name, make(calls, "direct")) / calls
        figure = f"{served * 1000:.2f} ms"
        rows.append(
            (
                f"{name}, CPU of a call",
                figure,
                f"{served / direct:.1f} x {direct * 1000:.2f} ms at the gate",
                "",
            )
        )
    return rows


def at_the_gate(path: str, name: str, arguments: Arguments) -> float:
    with Brain(config.read_settings(path, {}, os.getcwd())) as brain:
        dispatch.call(brain, dispatch.find_tool("memory_stats"), {}, "read")
        started = time.process_time()
        for argument in arguments:
            json_value(dispatch.call(brain, dispatch.find_tool(name), argument, "write"))
        return time.process_time() - started


def get(calls: int, _who: str) -> Arguments:
    return ({"slug": f"concepts/c{number % PAGES}"} for number in range(calls))


def search(calls: int, _who: str) -> Arguments:
    return ({"query": f"river meeting topic{number % 50}"} for number in range(calls))


def put(calls: int, who: str) -> Arguments:
    return ({"slug": f"concepts/{who}{number}", "content": text(number)} for number in range(calls))


def text(number: int) -> str:
    lines = (
        f"Line {line} on topic{(number + line) % 50}: a meeting by the river in Oslo." for line in range(30)
    )
    return f"# Concept {number}\n\n" + "\n".join(lines) + "\n"


def fill(path: str) -> None:
    with Brain(config.read_settings(path, {}, os.getcwd())) as brain:
        made = [build_page(f"concepts/c{number}", {}, text(number), "") for number in range(PAGES)]

        def work(tx: Any) -> None:
            for page in made:
                page_edits.save(tx, page, uuid=brain.new_uuid(), now=NOW, expected_version=0)

        brain.create(path).write(work)


def request(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


def tool(name: str, arguments: dict[str, Any]) -> bytes:
    return request("tools/call", {"name": name, "arguments": arguments})


def visit(command: list[str], lines: list[bytes]) -> Cost:
    """Start a server, ask it line by line, end it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": SOURCE, "QUAID_BACKGROUND_EMBEDDING": "off"},
    )
    assert process.stdin
    assert process.stdout
    answers = []
    for line in lines:
        process.stdin.write(line)
        process.stdin.flush()
        answers.append(process.stdout.readline())
        if b'"error"' in answers[-1][:40] or b'"isError":true' in answers[-1]:
            raise SystemExit(answers[-1].decode())
    memory = resident(process.pid)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return Cost(usage.ru_utime + usage.ru_stime, memory, answers)


def on_the_wire(tools: list[Any]) -> int:
    """Bytes of a tool list as JSON without a space too many, whoever's it is and however they write it."""
    return len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode())


def resident(pid: int) -> int:
    """Bytes that a process holds in memory. (The peak that wait4 tells may be ours, from before the exec.)"""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        done = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True
        )
        return int(done.stdout) * 1024


def middle(figures: Iterator[float]) -> float:
    found = sorted(figures)
    return found[len(found) // 2]


if __name__ == "__main__":
    main()
