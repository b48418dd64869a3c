"""Kill a worker, or a git that it starts, at its n-th system call, or let that call fail, using strace.

Every kind of call has a counter of its own, and so has every process. Which process is to be hit is chosen: strace
lets go of the gits when it is our turn; when it is git's, a program of that name stands in front of it and has only
the wanted one traced. Whether the fault came about is read from strace's log, never assumed.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.faults.killer import End, ForkServer
from tests.faults.operations import IN_FRONT, ONCE

CALLS = (
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "renameat2"),
    *("link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat"),
)

FAULTS = {"KILL": "signal=KILL", "ENOSPC": "error=ENOSPC", "EIO": "error=EIO"}

needs_strace = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("strace") is None, reason="strace is not here"
)


def run(
    fork_server: ForkServer, home: Path, kind: str, *options: str, rounds: int = 0, seed: object = 0
) -> End:
    """A worker from its first step to its end under strace."""
    worker = fork_server.spawn(home, kind, seed, rounds, traced=True)
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
        ended = fork_server.end()
        assert tracer.wait(timeout=60) == 0
    finally:
        tracer.kill()
        _, errors = tracer.communicate()
    assert errors == ""
    return ended


def wait_for(process: int, reached: Callable[[str], bool]) -> None:
    """Until a process is as it should be."""
    until = time.monotonic() + 60
    while not reached(Path(f"/proc/{process}/status").read_text()):
        assert time.monotonic() < until, "strace may not look at processes here"
        time.sleep(0.0005)


class Point(NamedTuple):
    """A call that changes something on a disk."""

    program: str
    """What git is asked to do, as in write-tree; nothing: the call is our own."""
    call: str
    number: int
    """The how manieth of its kind in its process."""

    def __str__(self) -> str:
        return ":".join(filter(None, (self.program, self.call, str(self.number))))


def count(fork_server: ForkServer, home: Path, name: str, log: Path) -> list[Point]:
    """Every call that an operation, and each git that it starts, makes to change something on a disk."""
    ended = run(fork_server, home, ONCE, "-e", f"trace=execve,{','.join(CALLS)}", "-o", str(log), seed=name)
    assert ended.acknowledged == [["done"]], ended
    programs: dict[str, str] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for line in log.read_text().splitlines():
        if started := re.match(r'(\d+)\s+execve\("[^"]*/git", \["[^"]*", "([a-z-]+)"', line):
            programs[started[1]] = started[2]
        elif match := re.match(r"(\d+)\s+(\w+)\(", line):
            assert match[2] != "execve", f"this program is not known here: {line}"
            counted[match[1], match[2]] += 1
    ours = {process for process, _ in counted} - {*programs}
    assert len(ours) == 1, "a thread that writes has a counter of its own"
    assert len({*programs.values()}) == len(programs), "two gits that are asked the same"
    return [
        Point(programs.get(process, ""), call, number)
        for (process, call), most in counted.items()
        for number in range(1, most + 1)
    ]


def hit(fork_server: ForkServer, home: Path, name: str, fault: str, point: Point, log: Path) -> End | None:
    """An operation that meets a fault at a point. None: the call was not made, and so nothing was tried."""
    log.unlink(missing_ok=True)
    shutil.rmtree(home.parent / IN_FRONT, ignore_errors=True)
    inject = f"inject={point.call}:{FAULTS[fault]}:when={point.number}"
    options = ("-e", f"trace={point.call}", "-e", inject, "-o", str(log))
    if point.program:
        stand_in_front(home.parent / IN_FRONT, point.program, options)
        fork_server.spawn(home, ONCE, name)
        ended = fork_server.end()
    else:
        ended = run(fork_server, home, ONCE, "-b", "execve", *options, seed=name)
    content = log.read_text() if log.exists() else ""
    if fault != "KILL":
        return ended if content.count("(INJECTED)") == 1 else None
    killed = "+++ killed by SIGKILL +++" in content if point.program else ended.status == signal.SIGKILL
    return ended if killed else None


def stand_in_front(folder: Path, verb: str, options: tuple[str, ...]) -> None:
    """A git that is found before the real one: asked for this verb it is traced, else it is as ever."""
    git, strace = shutil.which("git"), shutil.which("strace")
    assert git
    assert strace
    folder.mkdir()
    traced = shlex.join([strace, *options, git])
    (folder / "git").write_text(
        f'#!/bin/sh\n[ "$1" = {shlex.quote(verb)} ] && exec {traced} "$@"\nexec {shlex.quote(git)} "$@"\n'
    )
    (folder / "git").chmod(0o700)
