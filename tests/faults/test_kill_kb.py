"""Whoever writes into a knowledge base is killed at any moment: no commit is lost, no lock stays, git is whole.

Every other round kills the writer with every git that it has started; the others leave git alone, which goes on until
it is done. Each round has a number, which is its seed: `QUAID_KILL=17` runs that round alone.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.here import LONG, percentile, start
from tests.kb.people import Person

ROUNDS = 1_000 if LONG else 16
ROUNDS_PER_STORE = 50
AT_ONCE = 10.0
"""Seconds: far more than a busy machine takes, and less than anybody waits for a lock to grow old."""


def rounds() -> list[int]:
    one = os.environ.get("QUAID_KILL")
    return [int(one)] if one else list(range(ROUNDS))


@contextmanager
def nursery(ann: Person) -> "Iterator[subprocess.Popen[str]]":
    process = start("kb_nursery.py", ann.root, ann.home)
    yield process
    assert process.stdin
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    for pipe in (process.stdout, process.stderr):
        assert pipe
        pipe.close()


def kill(process: "subprocess.Popen[str]", seed: int) -> list[str]:
    """Let a writer remember a few things and kill it. What was acknowledged to it."""
    chance = random.Random(seed)
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{seed}\n")
    process.stdin.flush()
    born = process.stdout.readline().split()
    assert born[0] == "born"
    writer = int(born[1])
    titles = [process.stdout.readline().strip() for _ in range(chance.randrange(3))]
    time.sleep(chance.random() * 0.4)
    os.kill(writer, signal.SIGSTOP)
    for each in (descendants(writer) if seed % 2 else []) + [writer]:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.stdin.write("\n")  # the next one says "born", and so ends what this one has said
    process.stdin.flush()
    while not (line := process.stdout.readline()).startswith("born"):
        titles.append(line.strip())
    os.kill(int(line.split()[1]), signal.SIGKILL)
    return titles


def descendants(parent: int) -> list[int]:
    """All processes below one, the newest first."""
    children: dict[int, list[int]] = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(fields[1]), []).append(int(number))
    found, at = [parent], 0
    while at < len(found):
        found += children.get(found[at], [])
        at += 1
    return found[:0:-1]


def check(ann: Person, seed: int, titles: list[str]) -> float:
    """All is well, and the next one gets to write at once; after how long."""
    begun = time.monotonic()
    after = ann.remember(f"After {seed}", f"What came after {seed}.", force=True)
    took = time.monotonic() - begun
    assert took < AT_ONCE
    assert set(titles) <= ann.titles, "an acknowledged node is lost"
    assert ann.by_git("rev-parse", "HEAD").strip() == after["commit"]
    assert ann.by_git("status", "--porcelain") == "", "something lies about"
    assert ann.git.fsck() == ()
    assert ann("lint")["findings"] == []
    return took


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes to kill in /proc")
def test_a_killed_writer_loses_no_commit_and_leaves_no_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: Counter[str] = Counter()
    took: list[float] = []
    for number in range(0, ROUNDS, ROUNDS_PER_STORE):
        chosen = [seed for seed in rounds() if number <= seed < number + ROUNDS_PER_STORE]
        if not chosen:
            continue
        ann = Person(tmp_path, f"ann{number}")
        ann("init")
        titles: list[str] = []
        with nursery(ann) as process:
            for seed in chosen:
                now = kill(process, seed)
                titles += now
                told["kills"] += 1
                told["acknowledged"] += len(now)
                try:
                    took.append(check(ann, seed, titles))
                except BaseException as problem:
                    problem.add_note(f"round {seed}; QUAID_KILL={seed} runs it alone; {ann.root} is kept")
                    raise
    assert len(took) == told["kills"] > 0
    if LONG:
        with capsys.disabled():
            told["ms to the next commit at the latest"] = int(1000 * percentile(took, 1))
            sys.stdout.write("\nkb: " + ", ".join(f"{count} {what}" for what, count in told.items()))
