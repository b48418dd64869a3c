"""Import of a real folder: files per CPU-second, what a second run costs, and how much memory it takes.

Each import is a fresh `quaid import`, measured whole: start, reading, parsing, indexing, commit, close.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from typing import NamedTuple

from bench.table import show, verdict

CORPUS = "kubernetes-docs-en.tar.gz"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS, QUICK_RUNS = 3, 1
FILES_PER_SECOND = 300
SECOND_RUN_PERCENT = 10
PEAK_MEGABYTES = 300


class Run(NamedTuple):
    cpu: float
    megabytes: float
    outcomes: dict[str, int]


def main() -> None:
    data = os.path.join(
        os.environ.get("QUAID_BENCH_DATA") or os.path.join(ROOT, "..", "shared", "data"), CORPUS
    )
    if not os.path.exists(data):
        print(f"bench.importing: {CORPUS} is not here; QUAID_BENCH_DATA names its folder")
        return
    triples: list[tuple[Run, Run, Run]] = []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data) as archive:
            archive.extractall(folder, filter="data")
        vault = os.path.join(folder, "en")
        for number in range(QUICK_RUNS if "--quick" in sys.argv else RUNS):
            memory = os.path.join(folder, f"memory-{number}.db")
            _quaid("init", memory)
            triples.append(
                (
                    _quaid("import", vault, "--db", memory),
                    _quaid("import", vault, "--db", memory),
                    _quaid("query", "how to drain a node", "--db", memory),
                )
            )
    # The machine's noise only ever adds, so the cheapest of each is the nearest to the truth.
    first, second, asked = (min(runs, key=lambda run: run.cpu) for runs in zip(*triples, strict=True))
    show("Import", _rows(first, second, asked), ("figure", "measured", "target"))


def _rows(first: Run, second: Run, asked: Run) -> list[tuple[str, str, str]]:
    files = first.outcomes["new"]
    speed, percent = files / first.cpu, 100 * second.cpu / first.cpu
    peak = max(first.megabytes, second.megabytes)
    return [
        ("pages made", f"{files:,}", ""),
        ("first import, CPU s", f"{first.cpu:.2f}", ""),
        ("files per CPU-second", f"{speed:.0f}", verdict(speed, FILES_PER_SECOND, at_least=True)),
        ("second import, CPU s", f"{second.cpu:.2f}", ""),
        ("second import, % of the first", f"{percent:.1f}", verdict(percent, SECOND_RUN_PERCENT)),
        ("pages unchanged in it", f"{second.outcomes['unchanged']:,}", ""),
        ("first question, which cuts the pages into chunks, CPU s", f"{asked.cpu:.2f}", ""),
        ("peak memory, MB", f"{peak:.0f}", verdict(peak, PEAK_MEGABYTES)),
    ]


def _quaid(*words: str) -> Run:
    """Run a command as a fresh process and measure all of it."""
    # Installed software has its byte code beside it; without, this would measure the compiler.
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPATH"] = os.path.join(ROOT, "src")
    command = [sys.executable, "-m", "quaid", *words, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as child:
        assert child.stdout
        said = json.loads(child.stdout.read())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"quaid {' '.join(words)} failed")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    outcomes = said.get("report", {}).get("outcomes", {})
    return Run(usage.ru_utime + usage.ru_stime, kilobytes / 1024, outcomes)


if __name__ == "__main__":
    main()
