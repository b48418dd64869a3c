"""Import of a real folder: files per CPU-second, what a second run costs, and how much memory it takes.

Each import is a fresh `quaid import`, measured whole: start, reading, parsing, indexing, commit, close. In turns it
may use one processor or all: what two gain is the CPU time of one process over that of the writer beside its helper,
which is what a free machine takes; the wall clock of a busy one is shown beside it.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import NamedTuple

from bench.table import show, verdict

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
from quaid.surfaces.cli import main
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
    outcomes: dict[str, int]

    @property
    def cpu(self) -> float:
        return self.own + self.helper


def main() -> None:
    data = os.path.join(
        os.environ.get("QUAID_BENCH_DATA") or os.path.join(ROOT, "..", "shared", "data"), CORPUS
    )
    if not os.path.exists(data):
        print(f"bench.importing: {CORPUS} is not here; QUAID_BENCH_DATA names its folder")
        return
    runs: list[tuple[Run, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data) as archive:
            archive.extractall(folder, filter="data")
        vault = os.path.join(folder, "en")
        for number in range(QUICK_RUNS if "--quick" in sys.argv else RUNS):
            memory, other = (os.path.join(folder, f"{name}-{number}.db") for name in ("memory", "other"))
            _quaid("init", memory)
            _quaid("init", other)
            runs.append(
                (
                    _quaid("import", vault, "--db", other, alone=True),
                    _quaid("import", vault, "--db", memory),
                    _quaid("import", vault, "--db", memory),
                    _quaid("query", "how to drain a node", "--db", memory),
                )
            )
    show("Import", _rows(*zip(*runs, strict=True)), ("figure", "measured", "target"))


def _rows(
    alone: tuple[Run, ...], both: tuple[Run, ...], again: tuple[Run, ...], asked: tuple[Run, ...]
) -> list[tuple[str, str, str]]:
    # The machine's noise only ever adds, so the cheapest of each is the nearest to the truth.
    one, two, second, question = (min(each, key=lambda run: run.cpu) for each in (alone, both, again, asked))
    files = two.outcomes["new"]
    speed, percent = files / two.cpu, 100 * second.cpu / two.cpu
    gain = one.cpu / max(two.own, two.helper)
    gains = sorted(each.cpu / max(other.own, other.helper) for each, other in zip(alone, both, strict=True))
    walls = min(run.wall for run in alone), min(run.wall for run in both)
    peak = max(one.megabytes, two.megabytes, second.megabytes)
    return [
        ("pages made", f"{files:,}", ""),
        ("first import, CPU s", f"{two.cpu:.2f}", ""),
        ("files per CPU-second", f"{speed:.0f}", verdict(speed, FILES_PER_SECOND, at_least=True)),
        (
            "  in one process",
            f"{files / one.cpu:.0f}",
            verdict(files / one.cpu, FILES_PER_SECOND, at_least=True),
        ),
        ("one process, CPU s", f"{one.cpu:.2f}", ""),
        ("two: the writer's and the helper's CPU s", f"{two.own:.2f} and {two.helper:.2f}", ""),
        ("two processes gain, by CPU", f"{gain:.2f} x", verdict(gain, GAIN, at_least=True)),
        ("  median of the pairs", f"{gains[len(gains) // 2]:.2f} x", ""),
        ("  by wall clock, on this machine now", f"{walls[0]:.1f} s / {walls[1]:.1f} s", ""),
        ("second import, CPU s", f"{second.cpu:.2f}", ""),
        ("second import, % of the first", f"{percent:.1f}", verdict(percent, SECOND_RUN_PERCENT)),
        ("pages unchanged in it", f"{second.outcomes['unchanged']:,}", ""),
        ("first question, which cuts the pages into chunks, CPU s", f"{question.cpu:.2f}", ""),
        ("peak memory, MB", f"{peak:.0f}", verdict(peak, PEAK_MEGABYTES)),
    ]


def _quaid(*words: str, alone: bool = False) -> Run:
    """Run a command as a fresh process, on one processor or on all, and measure all of it."""
    # Installed software has its byte code beside it; without, this would measure the compiler.
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPATH"] = os.path.join(ROOT, "src")
    command = [sys.executable, "-c", SPLIT, "alone" if alone else "free", *words, "--json"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as child:
        assert child.stdout
        assert child.stderr
        said = json.loads(child.stdout.read())
        used = child.stderr.read().decode().splitlines()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if child.returncode:
        raise SystemExit(f"quaid {' '.join(words)} failed")
    own, helper = map(float, used[-1].split())
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    outcomes = said.get("report", {}).get("outcomes", {})
    return Run(own, helper, wall, kilobytes / 1024, outcomes)


if __name__ == "__main__":
    main()
