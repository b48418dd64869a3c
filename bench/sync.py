"""Folders kept in step: the first sync, one that finds nothing, one file that changed, and how time grows.

Every figure is that of fresh processes, measured whole: `collection add`, `collection sync`, `watch`.
"""

import json
import os
import queue
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench.corpora import data_folder
from bench.table import child_environ, show, verdict
from bench.weight import Weighed

CORPUS = "kubernetes-docs-en.tar.gz"
SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
FILES = 10_000
SIZES, QUICK_SIZES = (1_000, 10_000, 50_000), (1_000, 10_000)
EDITS, QUICK_EDITS = 10, 3
DEBOUNCE = 1.5
FILES_PER_SECOND, LATENCY_MS, PEAK_MEGABYTES, GROWTH = 600, 300, 300, 1.5
NO_CHANGE_SECONDS = {10_000: 1.0, 50_000: 2.0}


class Run(NamedTuple):
    cpu: float
    megabytes: float
    """At the peak, with the process that helps it."""
    said: dict[str, Any]


class Grown(NamedTuple):
    files: int
    first: Run
    again: Run


def main() -> None:
    quick = "--quick" in sys.argv
    rows = [*_corpus(), *_one_change(QUICK_EDITS if quick else EDITS)]
    rows += _growth([_grown(size) for size in (QUICK_SIZES if quick else SIZES)])
    show("Sync", rows, ("figure", "measured", "target"))


def _corpus() -> list[tuple[str, str, str]]:
    data = os.path.join(data_folder(), CORPUS)
    if not os.path.exists(data):
        return [(f"{CORPUS} is not here; QUAID_BENCH_DATA names its folder", "", "")]
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data) as archive:
            archive.extractall(folder, filter="data")
        memory = _memory(folder)
        runs = []
        for number in range(2):
            runs.append(_add(f"{memory}-{number}", os.path.join(folder, "en")))
    first = min(runs, key=lambda run: run.cpu)
    files = first.said["sync"]["new"]
    return [
        ("kubernetes docs, files", f"{files:,}", ""),
        ("first sync, files per CPU-second", f"{files / first.cpu:.0f}",
         verdict(files / first.cpu, FILES_PER_SECOND, at_least=True)),
        ("first sync, peak memory of both processes, MB", f"{first.megabytes:.0f}",
         verdict(first.megabytes, PEAK_MEGABYTES)),
    ]  # fmt: skip


def _one_change(edits: int) -> list[tuple[str, str, str]]:
    """From the write of one file in 10,000 to the moment when a search can find it."""
    with tempfile.TemporaryDirectory() as folder:
        memory, vault = _memory(folder), os.path.join(folder, "vault")
        _fill(vault, FILES)
        _add(memory, vault)
        waits = []
        with _watching(memory) as (lines, process):
            for _ in range(2):
                lines.get(timeout=120)  # began, and what it found
            for number in range(edits):
                written = time.monotonic()
                with open(os.path.join(vault, _path(number * 7)), "a", encoding="utf-8") as file:
                    file.write(f"\nEdited {number}.\n")
                assert json.loads(lines.get(timeout=60))["sync"]["changed"] == 1
                waits.append(1000 * (time.monotonic() - written - DEBOUNCE))
            idle = _idle(process.pid)
        waits.sort()
    middle = waits[len(waits) // 2]
    return [
        (f"one file of {FILES:,} changed: searchable after the debounce, ms, p50", f"{middle:.0f}",
         verdict(middle, LATENCY_MS)),
        ("the same, worst", f"{waits[-1]:.0f}", ""),
        ("a watcher that waits, % of a CPU", f"{idle:.2f}", ""),
    ]  # fmt: skip


def _grown(size: int) -> Grown:
    with tempfile.TemporaryDirectory() as folder:
        memory, vault = _memory(folder), os.path.join(folder, "vault")
        _fill(vault, size)
        first = _add(memory, vault)
        # A file that changed less than two seconds before it was read is read again: let that pass.
        _quaid("collection", "sync", "--db", memory)
        time.sleep(2.5)
        _quaid("collection", "sync", "--db", memory)
        again = min((_quaid("collection", "sync", "--db", memory) for _ in range(3)), key=lambda run: run.cpu)
        assert again.said["syncs"][0]["unchanged"] == size
    return Grown(size, first, again)


def _growth(grown: list[Grown]) -> list[tuple[str, str, str]]:
    rows = []
    smallest = grown[0]
    for each in grown:
        cost, before = each.first.cpu / each.files, smallest.first.cpu / smallest.files
        rows += [
            (f"{each.files:,} files: first sync, ms of CPU a file", f"{1000 * cost:.2f}",
             verdict(cost / before, GROWTH) if each is not smallest else ""),
            (f"{each.files:,} files: first sync, peak memory of both processes, MB", f"{each.first.megabytes:.0f}",
             verdict(each.first.megabytes, PEAK_MEGABYTES) if each.files == FILES else ""),
            (f"{each.files:,} files: sync without a change, CPU s", f"{each.again.cpu:.2f}",
             verdict(each.again.cpu, NO_CHANGE_SECONDS[each.files]) if each.files in NO_CHANGE_SECONDS else ""),
        ]  # fmt: skip
    return rows


def _path(number: int) -> str:
    return f"d{number % 100:02}/p{number}.md"


def _fill(vault: str, files: int) -> None:
    for number in range(files):
        path = os.path.join(vault, _path(number))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        words = " ".join(f"word{(number * 31 + place) % 5_000}" for place in range(150))
        text = f"---\ntags: [t{number % 40}]\n---\n# Page {number}\n\n{words}\n\nSee [[p{(number + 1) % files}]].\n"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _memory(folder: str) -> str:
    return os.path.join(folder, "memory.db")


def _add(memory: str, vault: str) -> Run:
    _quaid("init", memory)
    return _quaid("collection", "add", "notes", vault, "--db", memory)


def _quaid(*words: str) -> Run:
    """Run a command as a fresh process and measure all of it."""
    command = [sys.executable, "-m", "quaid", *words, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=child_environ(SOURCE)) as child:
        assert child.stdout
        with Weighed(child.pid) as weighed:
            said = json.loads(child.stdout.read())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"quaid {' '.join(words)} failed")
    return Run(usage.ru_utime + usage.ru_stime, weighed.megabytes, said)


@contextmanager
def _watching(memory: str) -> Iterator[tuple["queue.Queue[str]", "subprocess.Popen[str]"]]:
    """`quaid watch`, and its lines as they come."""
    command = [sys.executable, "-m", "quaid", "watch", "--json", "--db", memory]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=child_environ(SOURCE), text=True) as child:
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            assert child.stdout
            for line in child.stdout:
                lines.put(line)

        threading.Thread(target=read, daemon=True).start()
        yield lines, child
        child.terminate()


def _idle(pid: int, seconds: float = 10.0) -> float:
    """Percent of a CPU that a process uses while nothing happens."""

    def used() -> float:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / float(os.sysconf("SC_CLK_TCK"))

    if not os.path.isdir("/proc/self"):
        return 0.0
    before = used()
    time.sleep(seconds)
    return 100 * (used() - before) / seconds


if __name__ == "__main__":
    main()
