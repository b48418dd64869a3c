"""Import of a real folder: files per CPU-second, what a second run costs, and how much memory it takes.

Each import is a fresh `quaid import`, measured whole: start, reading, parsing, indexing, commit, close. An import
leaves the pages uncut, and the first question cuts them into chunks: so the speed is told twice, without and with
what that costs (the first question, less the same one asked again). In each round one process has one processor,
then two have all. What two gain is told of such pairs only, and the median of them counts: by CPU, the time of one
process over that of the writer or its helper, whichever is longer, as a free machine would have it; and by the clock
on the wall, as it was.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from statistics import median
from typing import NamedTuple

from bench.corpora import data_file
from bench.table import child_environ, show, verdict
from bench.weight import Weighed

CORPUS = "kubernetes-docs-en.tar.gz"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS, QUICK_RUNS = 3, 1
FILES_PER_SECOND = 600
GAIN = 1.6
SECOND_RUN_PERCENT = 10
PEAK_MEGABYTES = 300
SPLIT = """
import os, resource, sys
if sys.argv.pop(1) == "alone" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from quaid.cli.main import main
leave = os._exit
def tell(status):
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    os.write(2, " ".join(str(each.ru_utime + each.ru_stime) for each in used).encode())
    leave(status)
os._exit = tell  # a command ends without waiting for Python to tidy up
tell(main())
"""


class Run(NamedTuple):
    own: float
    """CPU seconds of the process that writes, and of the one that helps it."""
    helper: float
    wall: float
    megabytes: float
    """Of both together."""
    outcomes: dict[str, int]
    cutting: float
    """The part of `own` in which pages were cut into chunks."""

    @property
    def cpu(self) -> float:
        return self.own + self.helper


class Round(NamedTuple):
    """The same folder into two new memories; the second of them is then imported again and asked twice."""

    alone: Run
    both: Run
    again: Run
    asked: Run
    asked_again: Run

    @property
    def gain(self) -> float:
        """By which factor two processes are faster, apart from cutting into chunks, which one process does."""
        return (self.alone.cpu - self.alone.cutting) / max(
            self.both.own - self.both.cutting, self.both.helper
        )

    @property
    def wall_gain(self) -> float:
        return (self.alone.wall - self.alone.cutting) / (self.both.wall - self.both.cutting)


def main() -> None:
    data = data_file(CORPUS, "importing")
    if data is None:
        return
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data) as archive:
            archive.extractall(folder, filter="data")
        vault = os.path.join(folder, "en")
        for number in range(QUICK_RUNS if "--quick" in sys.argv else RUNS):
            memory, other = (os.path.join(folder, f"{name}-{number}.db") for name in ("memory", "other"))
            _quaid("init", memory)
            _quaid("init", other)
            question = ("query", "how to drain a node", "--db", memory)
            rounds.append(
                Round(
                    _quaid("import", vault, "--db", other, alone=True),
                    _quaid("import", vault, "--db", memory),
                    _quaid("import", vault, "--db", memory),
                    _quaid(*question),
                    _quaid(*question),
                )
            )
    show("Import", rows(rounds), ("figure", "measured", "target"))


def rows(rounds: list[Round]) -> list[tuple[str, str, str]]:
    # The machine's noise only ever adds: the cheapest round is the nearest to the truth, and all of it is told.
    best = min(rounds, key=lambda each: each.both.cpu + each.asked.cpu)
    files = best.both.outcomes["new"]
    percent = 100 * best.again.cpu / best.both.cpu
    gain, wall_gain = (
        median(each) for each in zip(*((one.gain, one.wall_gain) for one in rounds), strict=True)
    )
    walls = ", ".join(f"{each.alone.wall:.1f} / {each.both.wall:.1f}" for each in rounds)
    peak = max(each.megabytes for one in rounds for each in (one.alone, one.both, one.again))

    def speed(name: str, cpu: float) -> tuple[str, str, str]:
        return name, f"{files / cpu:.0f}", verdict(files / cpu, FILES_PER_SECOND, at_least=True)

    return [
        ("pages made", f"{files:,}", ""),
        ("first import, CPU s", f"{best.both.cpu:.2f}", ""),
        speed(
            "files per CPU-second: read, hashed, parsed, indexed by word; NOT cut into chunks",
            best.both.cpu - best.both.cutting,
        ),
        speed("  the same in one process", best.alone.cpu - best.alone.cutting),
        speed("files per CPU-second: all that, and cut into chunks; no vectors", best.both.cpu),
        speed("  the same in one process", best.alone.cpu),
        ("one process, CPU s", f"{best.alone.cpu:.2f}", ""),
        ("two: the writer's and the helper's CPU s", f"{best.both.own:.2f} and {best.both.helper:.2f}", ""),
        (
            f"two processes gain, by CPU, median of {len(rounds)} pairs",
            f"{gain:.2f} x",
            verdict(gain, GAIN, at_least=True),
        ),
        (
            f"two processes gain, by wall clock, median of {len(rounds)} pairs",
            f"{wall_gain:.2f} x",
            verdict(wall_gain, GAIN, at_least=True),
        ),
        ("  one / two, wall s of each pair", walls, ""),
        ("second import, CPU s", f"{best.again.cpu:.2f}", ""),
        ("second import, % of the first", f"{percent:.1f}", verdict(percent, SECOND_RUN_PERCENT)),
        ("pages unchanged in it", f"{best.again.outcomes['unchanged']:,}", ""),
        ("first question, CPU s", f"{best.asked.cpu:.2f}", ""),
        ("  the same question again, CPU s", f"{best.asked_again.cpu:.2f}", ""),
        (
            "peak memory of an import, both processes together, MB",
            f"{peak:.0f}",
            verdict(peak, PEAK_MEGABYTES),
        ),
    ]


def _quaid(*words: str, alone: bool = False) -> Run:
    """Run a command as a fresh process, on one processor or on all, and measure all of it."""
    environ = child_environ(os.path.join(ROOT, "src"))
    command = [sys.executable, "-c", SPLIT, "alone" if alone else "free", *words, "--json"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as child:
        assert child.stdout
        assert child.stderr
        with Weighed(child.pid) as weighed:
            answer = child.stdout.read()
            used = child.stderr.read().decode().splitlines()
        child.wait()
    wall = time.perf_counter() - started
    if child.returncode:
        raise SystemExit(f"quaid {' '.join(words)} failed")
    own, helper = map(float, used[-1].split())
    record = json.loads(answer)
    outcomes, cutting = record.get("report", {}).get("outcomes", {}), record.get("chunking_seconds", 0.0)
    return Run(own, helper, wall, weighed.megabytes, outcomes, cutting)


if __name__ == "__main__":
    main()
