"""The random killer: lets a client do a few things, kills it at any moment, and says what was acknowledged to it."""

import json
import os
import random
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.faults.here import start

LONGEST_PAUSE = {"put": 0.015, "ingest": 0.03, "sync": 0.03, "remember": 0.015, "embed": 0.08, "kb": 0.4}
"""Seconds from an acknowledgement to the kill at most: about as long as two writes take."""

MOST_WRITES = {"kb": 3, "embed": 3, "migrate": 2}


class End(NamedTuple):
    """How a worker ended."""

    acknowledged: list[list[str]]
    refused: str
    """What a user would have been told; nothing when all went well."""
    status: int
    """As waitpid tells it; -1: its own exit code is not known."""


class Nursery:
    """A process that brings forth workers; with it end all that are still there."""

    def __init__(self) -> None:
        self.process = start("nursery.py")
        self.worker = 0

    def bear(self, home: Path, kind: str, seed: object = 0, rounds: int = 0, *, traced: bool = False) -> int:
        """A new worker, by its process id."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([str(home), kind, str(seed), rounds, traced]) + "\n")
        self.process.stdin.flush()
        self.worker = int(self.line().removeprefix("born "))
        return self.worker

    def line(self) -> str:
        """What is said next."""
        assert self.process.stdout
        output = self.process.stdout.readline()
        if not output:
            assert self.process.stderr
            raise AssertionError(self.process.stderr.read())
        return output.rstrip("\n")

    def end(self, told: list[str] | None = None) -> End:
        """What the worker says until it is gone."""
        told = told or []
        while not (line := self.line()).startswith("gone "):
            told.append(line)
        self.worker = 0
        broken = [json.loads(line.removeprefix("broken ")) for line in told if line.startswith("broken ")]
        assert not broken, broken[0]
        refused = [line for line in told if line.startswith("refused ")]
        acknowledged = [line.split() for line in told if not line.startswith("refused ")]
        return End(acknowledged, "".join(refused), int(line.removeprefix("gone ")))

    def kill(self, home: Path, kind: str, seed: int, *, family: bool = False) -> End:
        """Let a worker do a few things and kill it; with all that it has started, if asked."""
        chance = random.Random(f"{kind} {seed}")
        writer = self.bear(home, kind, seed)
        messages = []
        for _ in range(chance.randrange(MOST_WRITES.get(kind, 6))):
            messages.append(self.line())
            if messages[-1].startswith(("broken", "refused", "gone")):
                break
        else:
            time.sleep(chance.random() * LONGEST_PAUSE.get(kind, 0.3))
            slay(writer, family)
        assert not messages or not messages[-1].startswith("gone"), "it was to work until it is killed"
        ended = self.end(messages)
        assert not ended.refused, ended.refused
        assert ended.status == signal.SIGKILL
        return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.worker:
            slay(self.worker, family=True)
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        finally:
            self.process.kill()
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe
                pipe.close()


def slay(process: int, family: bool = False) -> None:
    """Kill a process, and if asked all that came from it, without a chance to say goodbye."""
    if family:
        _send(process, signal.SIGSTOP)
    for descendant in [*(descendants(process) if family else []), process]:
        _send(descendant, signal.SIGKILL)


def _send(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def descendants(parent: int) -> list[int]:
    """All processes below one, the newest first."""
    children: dict[int, list[int]] = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(fields[1]), []).append(int(number))
    result, at = [parent], 0
    while at < len(result):
        result += children.get(result[at], [])
        at += 1
    return result[:0:-1]
