"""Price of encryption: the same folder in a plain and an encrypted memory, asked, written to and opened in turn.

Needs apsw-sqlite3mc; with another apsw the benchmark runs itself in the environment that .ci/encryption makes. All
figures are CPU times of one process that alternates between both memories. Questions are answered by words alone,
because the CPU time of a model would hide the difference.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import time
from statistics import median, quantiles
from typing import Any

import apsw

from bench.corpora import data_file
from bench.importing import CORPUS, ROOT
from bench.table import show, verdict
from quaid import storage
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch
from quaid.storage.sqlite import encryption

QUESTIONS, QUICK_QUESTIONS = 300, 60
QUERY_PERCENT = 15
SOURCES = ("plain", "key", "passphrase")


def main() -> None:
    if not hasattr(apsw, "mc_version"):
        python = os.path.join(ROOT, ".cache", "encryption", "bin", "python")
        if not os.path.exists(python):
            print("bench.encryption: run .ci/encryption first; the installed apsw cannot encrypt")
            return
        if subprocess.run([python, "-m", "bench", "encryption", *sys.argv[2:]], cwd=ROOT).returncode:
            raise SystemExit("bench.encryption failed in .cache/encryption")
        return
    data = data_file(CORPUS, "encryption")
    if data is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data) as archive:
            archive.extractall(os.path.join(folder, "docs"), filter="data")
        _measure(folder, QUICK_QUESTIONS if "--quick" in sys.argv else QUESTIONS)


def _measure(folder: str, number: int) -> None:
    memories = {name: _new_memory(os.path.join(folder, name), name) for name in SOURCES}
    imports = {name: _import(memories[name], os.path.join(folder, "docs")) for name in ("plain", "key")}
    questions = [
        f"{page.title} {page.slug.rpartition('/')[2]}"
        for page in _run(memories["plain"], "list", limit=number).pages
    ]
    rows = [_row("import of the folder", [imports["plain"]], [imports["key"]], "s", 1)]
    for words in ("query", "search"):
        name = {"query": "question"}.get(words, "query")
        for which, is_new in (("open connection", False), ("new connection", True)):
            times = _alternate(memories, questions, words, name, is_new=is_new)
            limit = QUERY_PERCENT if words == "query" else 0
            rows.append(_row(f"{words}, {which}", *times, "ms", 1000, limit))
    rows.append(_row("write of a page", *_writes(memories, number // 3), "ms", 1000))
    show(
        f"Encrypted against plain memory: {_run(memories['plain'], 'stats').pages:,} pages",
        rows,
        ("what", "plain p50", "encrypted p50", "plain p95", "encrypted p95", "difference of p95", "target"),
    )
    opening = _openings(memories)
    show(
        "Opening a memory in a process that has loaded Quaid",
        [(name, f"{median(opening[name]) * 1000:.1f} ms") for name in SOURCES],
        ("key", "CPU p50"),
    )
    for brain in memories.values():
        brain.close()


def _new_memory(folder: str, kind: str) -> Brain:
    os.makedirs(folder)
    secret = {"key": os.urandom(32).hex(), "passphrase": "five words are not enough"}.get(kind, "")
    environ = {"QUAID_EMBEDDING_PLUGIN": "off", "QUAID_BACKGROUND_EMBEDDING": "off", "QUAID_KEY": secret}
    brain = Brain(Settings(os.path.join(folder, "memory.db"), os.path.join(folder, "home"), folder, environ))
    brain.create(brain.settings.db_path)
    if secret:
        _run(brain, "encrypt", environment=True)
    return brain


def _run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def _cpu(brain: Brain, command: str, **arguments: Any) -> float:
    started = time.process_time()
    _run(brain, command, **arguments)
    return time.process_time() - started


def _import(brain: Brain, folder: str) -> float:
    return _cpu(brain, "import", folder=folder) + _cpu(brain, "query", question="x")


def _alternate(
    memories: dict[str, Brain], questions: list[str], command: str, name: str, *, is_new: bool
) -> tuple[list[float], list[float]]:
    times: dict[str, list[float]] = {"plain": [], "key": []}
    for number, question in enumerate(questions):
        for kind in ("plain", "key") if number % 2 else ("key", "plain"):
            if is_new:
                memories[kind].close()
            times[kind].append(_cpu(memories[kind], command, **{name: question}))
    return times["plain"], times["key"]


def _writes(memories: dict[str, Brain], number: int) -> tuple[list[float], list[float]]:
    times: dict[str, list[float]] = {"plain": [], "key": []}
    for count in range(number):
        text = f"# Page {count}\n\n" + f"Sentence {count} about pods and services. " * 40
        for kind, measured in times.items():
            measured.append(_cpu(memories[kind], "put", slug=f"notes/n{count}", content=text))
    return times["plain"], times["key"]


def _openings(memories: dict[str, Brain]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in SOURCES}
    for _ in range(15):
        for name, brain in memories.items():
            brain.close()
            encryption._known_keys.clear()
            storage.key_sources.clear()
            sources = storage.KeySources(brain.settings.environ["QUAID_KEY"], "")
            storage.key_sources[sources] = None
            started = time.process_time()
            _ = brain.db
            times[name].append(time.process_time() - started)
    return times


def _row(
    what: str, plain: list[float], encrypted: list[float], unit: str, factor: int, limit: int = 0
) -> tuple[str, ...]:
    p95 = [quantiles(times, n=20)[-1] if len(times) > 1 else times[0] for times in (plain, encrypted)]
    percent = (p95[1] / p95[0] - 1) * 100
    return (
        what,
        *(f"{median(times) * factor:.2f} {unit}" for times in (plain, encrypted)),
        *(f"{value * factor:.2f} {unit}" for value in p95),
        f"{percent:+.0f} %",
        verdict(round(percent), limit) if limit else "",
    )
