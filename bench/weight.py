"""What a process weighs together with those that it has started: their resident memory, added up at one moment.

What two of them have of the same file, such as the interpreter, is counted twice, so the sum is rather too high than
too low, as it should be beside a target. Between programs that would be unfair to one whose launcher is a process of
its own: with `files_once` only the one that holds most of files counts them. A peak between two looks is not seen.
It is looked at from outside: the peak that wait4 tells may be ours, from before the exec, and it is that of the
largest process, not of all.
"""

import os
import subprocess
import threading
from typing import Self

EVERY = 0.01
"""Seconds between two looks; without /proc, where each starts a program, twenty times as long."""


class Weighed:
    """`with Weighed(pid) as weighed`: the most that a process and its descendants held meanwhile."""

    def __init__(self, pid: int, *, files_once: bool = False) -> None:
        self.pid, self.peak = pid, 0
        self._files_once = files_once
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    @property
    def megabytes(self) -> float:
        return self.peak / 2**20

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        pause = EVERY if os.path.isdir("/proc/self") else 20 * EVERY
        while True:
            self.peak = max(self.peak, weight(self.pid, files_once=self._files_once))
            if self._over.wait(pause):
                return


def weight(pid: int, *, files_once: bool = False) -> int:
    """Bytes that a process and its descendants hold in memory now; 0 when it has ended."""
    if not os.path.isdir("/proc/self"):
        return _asked_of_ps(pid)
    own, of_files, waiting = 0, [0], [pid]
    while waiting:
        one = waiting.pop()
        try:
            with open(f"/proc/{one}/statm", encoding="ascii") as file:
                _, resident, shared, *_ = map(int, file.read().split())
            own += resident - shared
            of_files.append(shared)
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", encoding="ascii") as file:
                    waiting += map(int, file.read().split())
        except OSError:
            continue  # it, or one of its threads, has just ended
    return (own + (max if files_once else sum)(of_files)) * os.sysconf("SC_PAGE_SIZE")


def _asked_of_ps(pid: int) -> int:
    said = subprocess.run(["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in said.stdout.splitlines()]
    among, found = {pid}, 0
    for one, parent, kilobytes in sorted(rows):  # a child's number is above its parent's, but for a wrap
        if one in among or parent in among:
            among.add(one)
            found += kilobytes * 1024
    return found
