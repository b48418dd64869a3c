"""Quaid beside the memories people use today: one corpus, one machine, one run.

`.ci/peers` installs them. One that is not here is left out with a line. Everybody starts with an empty home, indexes
the same folder by words (no model is downloaded) and answers the same question; everybody's MCP server is asked for
its tools. CPU and memory are those of the whole process with its children; a tool list is counted as JSON without
spaces, for everybody. The table says how many files there were: more of them change the ratios.
"""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import Any, NamedTuple

from bench.corpora import data_file
from bench.importing import CORPUS, ROOT
from bench.mcp import HELLO, on_the_wire
from bench.table import show
from bench.weight import Weighed, weight

FILES, QUICK_FILES = 150, 50
RUNS, QUICK_RUNS = 3, 1
ASKED = "drain a node"
PATIENCE = 600
"""Seconds that a peer may take for one step."""

HERE = os.path.join(ROOT, ".cache", "peers")


class Peer(NamedTuple):
    """How a memory is told to index a folder, to search and to serve; `{folder}` is the corpus."""

    name: str
    indexing: tuple[tuple[str, ...], ...]
    search: tuple[str, ...]
    serve: tuple[str, ...]
    missing: str = ""


class Figures(NamedTuple):
    index_cpu: float | None
    again_cpu: float | None
    index_peak: float | None  # MB
    search_cpu: float | None
    hello_wall: float
    hello_cpu: float
    serve_memory: float  # MB
    tools: int
    tool_bytes: int
    changed: str

    @property
    def bytes_each(self) -> float:
        return self.tool_bytes / self.tools


def main() -> None:
    data = data_file(CORPUS, "peers")
    if data is None:
        return
    quick = "--quick" in sys.argv
    measured: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as place:
        corpus = _corpus(data, place, QUICK_FILES if quick else FILES)
        for peer in _peers():
            if peer.missing:
                print(f"bench.peers: {peer.name} is left out: {peer.missing}")
                continue
            try:
                measured[peer.name] = _measure(peer, corpus, place, QUICK_RUNS if quick else RUNS)
            except (OSError, subprocess.SubprocessError, ValueError) as problem:
                print(f"bench.peers: {peer.name} is left out: {_short(problem)}")
        count = sum(len(files) for _, _, files in os.walk(corpus))
        whole = sum(len(files) for _, _, files in os.walk(os.path.join(place, "whole")))
    title = f"Peers, {count:,} of {whole:,} files of the Kubernetes documentation"
    show(title, _rows(measured), ("what", *measured, "Quaid is"))


def _peers() -> list[Peer]:
    quaid = os.path.join(os.path.dirname(sys.executable), "quaid")
    qmd, memory = _found("qmd", ".ci/peers"), _found("mcp-server-memory", ".ci/peers")
    basic = _found("basic-memory", ".ci/peers, with a Python of 3.12 or newer")
    return [
        Peer(
            "quaid",
            ((quaid, "init"), (quaid, "collection", "add", "corpus", "{folder}")),
            (quaid, "search", ASKED),
            (quaid, "serve"),
        ),
        Peer("quaid lean", (), (), (quaid, "serve", "--tools", "lean")),
        Peer(
            "qmd",
            ((qmd[0], "collection", "add", "{folder}", "--name", "corpus"),),
            (qmd[0], "search", ASKED),
            (qmd[0], "mcp"),
            qmd[1],
        ),
        Peer(
            "basic-memory",
            (
                (basic[0], "project", "add", "corpus", "{folder}", "--default"),
                (basic[0], "reindex", "--search", "--project", "corpus"),
            ),
            (basic[0], "tool", "search-notes", ASKED, "--project", "corpus"),
            (basic[0], "mcp"),
            basic[1],
        ),
        Peer("memory server", (), (), (memory[0],), memory[1]),
    ]


def _found(program: str, how: str) -> tuple[str, str]:
    """Where a peer's program is, or how to get it."""
    for folder in (os.path.join(HERE, "node_modules", ".bin"), os.path.join(HERE, "python", "bin")):
        if os.path.exists(os.path.join(folder, program)):
            return os.path.join(folder, program), ""
    found = shutil.which(program)
    return (found, "") if found else (program, f"not installed ({how})")


def _corpus(data: str, place: str, files: int) -> str:
    """Every n-th file of the Kubernetes documentation, in its folders."""
    whole, corpus = os.path.join(place, "whole"), os.path.join(place, "corpus")
    with tarfile.open(data) as archive:
        archive.extractall(whole, filter="data")
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(whole)
        for name in names
        if name.endswith(".md")
    )
    for path in paths[:: max(1, len(paths) // files)][:files]:
        target = os.path.join(corpus, os.path.relpath(path, whole))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(path, target)
    return corpus


def _measure(peer: Peer, corpus: str, place: str, runs: int) -> Figures:
    home = os.path.join(place, f"home {peer.name}")
    folder = os.path.join(place, f"notes {peer.name}")
    os.makedirs(home)
    shutil.copytree(corpus, folder)
    before = _digests(folder)
    environ = _environ(home)
    first = [_run([word.format(folder=folder) for word in step], environ) for step in peer.indexing]
    again = [_run([word.format(folder=folder) for word in _again(peer)], environ)] if peer.indexing else []
    asked = [_run(list(peer.search), environ) for _ in range(runs)] if peer.search else []
    hellos = [_hello(list(peer.serve), environ) for _ in range(runs)]
    hello = sorted(hellos, key=lambda hello: hello[1])[runs // 2]
    return Figures(
        sum(each.cpu for each in first) if first else None,
        again[0].cpu if again else None,
        max(each.megabytes for each in first) if first else None,
        sorted(each.cpu for each in asked)[runs // 2] if asked else None,
        *hello,
        _changes(before, _digests(folder)) if peer.indexing else "–",
    )


def _again(peer: Peer) -> tuple[str, ...]:
    """Index once more when nothing has changed."""
    program = peer.indexing[0][0]
    return {
        "quaid": (program, "collection", "sync", "corpus"),
        "qmd": (program, "update"),
        "basic-memory": peer.indexing[-1],
    }[peer.name]


class Run(NamedTuple):
    cpu: float
    megabytes: float


def _run(command: list[str], environ: dict[str, str]) -> Run:
    before = _children()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=environ
        )
        with Weighed(process.pid, files_once=True) as weighed:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
        if process.returncode:
            said.seek(0)
            raise ValueError(said.read().decode(errors="replace").strip()[-200:] or "it failed")
    return Run(_children() - before, weighed.megabytes)


def _children() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _hello(command: list[str], environ: dict[str, str]) -> tuple[float, float, float, int, int]:
    """Wall seconds to the answer of `initialize`, then CPU and memory after the tool list, tools, and their bytes."""
    before = _children()
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ
    )
    assert process.stdin
    assert process.stdout
    try:
        _ask(process, 1, "initialize", {**HELLO, "protocolVersion": "2025-06-18"})
        wall = time.perf_counter() - began
        process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        tools = _ask(process, 2, "tools/list", {})["tools"]
        memory = weight(process.pid, files_once=True)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
    return (
        wall,
        _children() - before,
        memory / 2**20,
        len(tools),
        on_the_wire(tools),
    )


def _ask(process: "subprocess.Popen[bytes]", number: int, method: str, params: dict[str, Any]) -> Any:
    assert process.stdin
    assert process.stdout
    line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(line).encode() + b"\n")
    process.stdin.flush()
    while said := process.stdout.readline():
        answer = json.loads(said)
        if answer.get("id") == number:
            return answer["result"]
    raise ValueError("its server ended without an answer")


def _environ(home: str) -> dict[str, str]:
    """An empty home, and no word of ours that a peer could trip over."""
    bins = [os.path.join(HERE, "node_modules", ".bin"), os.environ.get("PATH", "")]
    return {
        "HOME": home,
        "PATH": os.pathsep.join(bins),
        "LANG": "C.UTF-8",
        "QUAID_BACKGROUND_EMBEDDING": "off",
    }


def _digests(folder: str) -> dict[str, str]:
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def _changes(before: dict[str, str], after: dict[str, str]) -> str:
    changed = sum(1 for path in before if path in after and before[path] != after[path])
    made, gone = len(after.keys() - before.keys()), len(before.keys() - after.keys())
    return f"{changed} changed, {made} made, {gone} gone"


def _short(problem: BaseException) -> str:
    return " ".join(str(problem).split())[:200]


def _rows(measured: dict[str, Figures]) -> list[tuple[str, ...]]:
    lines = (
        ("index, CPU s", "index_cpu", "{:.2f}"),
        ("index again, nothing changed, CPU s", "again_cpu", "{:.2f}"),
        ("index, peak memory with children, MB", "index_peak", "{:.0f}"),
        ("cold search, CPU s", "search_cpu", "{:.3f}"),
        ("MCP initialise, wall s", "hello_wall", "{:.2f}"),
        ("MCP initialise and tool list, CPU s", "hello_cpu", "{:.2f}"),
        ("MCP server, memory with children, MB", "serve_memory", "{:.0f}"),
        ("tools", "tools", "{}"),
        ("tool list, bytes of JSON for each tool", "bytes_each", "{:.0f}"),
        ("tool list, bytes of JSON without spaces", "tool_bytes", "{:,}"),
        ("files in the person's folder", "changed", "{}"),
    )
    rows = []
    for title, field, form in lines:
        values = {name: getattr(figures, field) for name, figures in measured.items()}
        cells = tuple("–" if value is None else form.format(value) for value in values.values())
        rows.append((title, *cells, "" if field in ("tools", "changed") else _ahead(values)))
    return rows


def _ahead(values: dict[str, Any]) -> str:
    """How each form of ours stands against the best of the others."""
    others = [value for name, value in values.items() if not name.startswith("quaid") and value is not None]
    if not others:
        return ""
    ours = {name: value for name, value in values.items() if name.startswith("quaid") and value is not None}
    return "; ".join(
        f"{min(others) / value:.1f} x ahead"
        if value <= min(others)
        else f"BEHIND by {value / min(others):.2f} x"
        for value in ours.values()
    )


if __name__ == "__main__":
    main()
