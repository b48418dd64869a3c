"""Start workers, kill them at random moments, and return what was acknowledged to them."""

import json
import os
import random
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.faults.workspace import start

LONGEST_PAUSE = {"put": 0.015, "ingest": 0.03, "sync": 0.03, "remember": 0.015, "embed": 0.08, "kb": 0.4}
"""Seconds from an acknowledgement to the kill at most: about as long as two writes take."""

MOST_WRITES = {"kb": 3, "embed": 3, "migrate": 2}


class End(NamedTuple):
    """How a worker ended."""

    acknowledged: list[list[str]]
    refused: str
    """The error message, empty on success."""
    status: int
    """As returned by waitpid; -1 if the exit code is unknown."""


class ForkServer:
    """A process that forks workers; leaving the context ends the remaining ones."""

    def __init__(self) -> None:
        self.process = start("fork_server.py")
        self.worker = 0

    def spawn(self, home: Path, kind: str, seed: object = 0, rounds: int = 0, *, traced: bool = False) -> int:
        """Fork a worker and return its process id."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([str(home), kind, str(seed), rounds, traced]) + "\n")
        self.process.stdin.flush()
        self.worker = int(self.line().removeprefix("started "))
        return self.worker

    def line(self) -> str:
        """Return the next output line."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr
            raise AssertionError(self.process.stderr.read())
        return line.rstrip("\n")

    def end(self, lines: list[str] | None = None) -> End:
        """Wait for the worker to exit and return how it ended."""
        lines = lines or []
        while not (line := self.line()).startswith("exited "):
            lines.append(line)
        self.worker = 0
        broken = [json.loads(line.removeprefix("broken ")) for line in lines if line.startswith("broken ")]
        assert not broken, broken[0]
        refused = [line for line in lines if line.startswith("refused ")]
        acknowledged = [line.split() for line in lines if not line.startswith("refused ")]
        return End(acknowledged, "".join(refused), int(line.removeprefix("exited ")))

    def kill(self, home: Path, kind: str, seed: int, *, family: bool = False) -> End:
        """Let a worker do a few writes, then kill it; with `family`, kill its child processes too."""
        chance = random.Random(f"{kind} {seed}")
        writer = self.spawn(home, kind, seed)
        messages = []
        for _ in range(chance.randrange(MOST_WRITES.get(kind, 6))):
            messages.append(self.line())
            if messages[-1].startswith(("broken", "refused", "exited")):
                break
        else:
            time.sleep(chance.random() * LONGEST_PAUSE.get(kind, 0.3))
            kill_process(writer, family)
        assert not messages or not messages[-1].startswith("exited"), "the worker exited before it was killed"
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
            kill_process(self.worker, family=True)
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        finally:
            self.process.kill()
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe
                pipe.close()


def kill_process(process: int, family: bool = False) -> None:
    """Send SIGKILL to a process; with `family`, to its descendants too."""
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
    """Return all descendants of a process, newest first."""
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
