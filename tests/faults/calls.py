"""Whatever happens at the n-th system call of a worker: it is killed there, or the call fails. By strace.

Every kind of call has a counter of its own, and so has every process; git's calls are counted beside ours.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.killer import End, Nursery
from tests.faults.operations import ONCE

CALLS = (
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "renameat2"),
    *("link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat"),
)

needs_strace = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("strace") is None, reason="strace is not here"
)


def run(nursery: Nursery, home: Path, kind: str, *options: str, rounds: int = 0, seed: object = 0) -> End:
    """A worker from its first step to its end under strace."""
    worker = nursery.bear(home, kind, seed, rounds, traced=True)
    wait_for(worker, lambda status: "\nState:\tT" in status)
    tracer = subprocess.Popen(
        ["strace", "-qq", "-f", *options, "-p", str(worker)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(worker, lambda status: "\nTracerPid:\t0\n" not in status)
        os.kill(worker, signal.SIGCONT)
        ended = nursery.end()
        assert tracer.wait(timeout=60) == 0
    finally:
        tracer.kill()
        _, errors = tracer.communicate()
    assert errors == ""
    return ended


def wait_for(process: int, reached: Callable[[str], bool]) -> None:
    """Until a process is as it should be."""
    until = time.monotonic() + 30
    while not reached(Path(f"/proc/{process}/status").read_text()):
        assert time.monotonic() < until, "strace may not look at processes here"
        time.sleep(0.0005)


def count(nursery: Nursery, home: Path, name: str, log: Path) -> list[tuple[str, int]]:
    """Every call that an operation makes to change something on a disk: which, and the how manieth of its kind.

    Of several processes the one that makes most of a kind counts."""
    ended = run(nursery, home, ONCE, "-e", f"trace={','.join(CALLS)}", "-o", str(log), seed=name)
    assert ended.acknowledged == [["done"]], ended
    by_process: dict[str, Counter[str]] = {}
    for line in log.read_text().splitlines():
        found = re.match(r"(\d+)\s+(\w+)\(", line)
        if found and found[2] in CALLS:
            by_process.setdefault(found[1], Counter())[found[2]] += 1
    most = {call: max(each[call] for each in by_process.values()) for call in CALLS}
    return [(call, number) for call in CALLS for number in range(1, most[call] + 1)]


def hit(nursery: Nursery, home: Path, name: str, fault: str, call: str, number: int) -> End:
    """An operation whose n-th call of a kind meets a fault: signal=KILL, error=ENOSPC."""
    inject = f"inject={call}:{fault}:when={number}"
    return run(nursery, home, ONCE, "-e", f"trace={call}", "-e", inject, "-o", os.devnull, seed=name)
