"""Reads hostile files, each in a process that is measured: `hostile_reader.py HOME ENDING KIND NAME...`.

Prints a line of JSON for each: its name, CPU seconds, megabytes over those of a look at the folder without it, and
whether the rest of the folder is found.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from tests.faults import hostile_files
from tests.faults.here import FOLDER, run
from tests.faults.household import living_in, settle

from quaid.errors import QuaidError

PATIENCE = 20  # CPU seconds after which a child is stopped


def measured(work: Callable[[], None]) -> tuple[float, float, int]:
    """CPU seconds, megabytes and exit status of some work, done in a child."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
        try:
            work()
        except QuaidError:
            os._exit(0)  # a refusal is a fine answer
        except BaseException as error:  # the parent tells
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, status


def sync(home: Path) -> None:
    with living_in(home) as brain:
        run(brain, "collection sync", name=FOLDER)


def ask(home: Path) -> None:
    with living_in(home) as brain:
        found = run(brain, "search", query="gooseberry")["hits"]
        assert len(found) == 3, found
        assert run(brain, "query", question="gooseberry")["results"]


def talk(home: Path) -> None:
    with living_in(home) as brain:
        run(brain, "conversations add", paths=[str(home / "talks")])


def main(place: str, ending: str, kind: str, *names: str) -> None:
    home = Path(place)
    with settle(home, kb=False) as brain:
        (home / "talks").mkdir()
        for number in range(3):
            (home / FOLDER / f"good{number}.md").write_text(f"# Good {number}\n\nA gooseberry.\n")
        run(brain, "collection sync", name=FOLDER)
    makers = {
        "page": [*hostile_files.shapes(), *hostile_files.floods()],
        "talk": hostile_files.transcripts(),
    }
    victim = home / (FOLDER if kind == "page" else "talks") / f"hostile{ending}"
    for each in makers[kind]:
        if each.name not in names:
            continue
        read = sync if kind == "page" else talk
        base = max(measured(lambda: sync(home))[1], measured(lambda: ask(home))[1])
        victim.write_bytes(each.make())
        taken, asked = measured(lambda: read(home)), measured(lambda: ask(home))  # noqa: B023 (done at once)
        victim.unlink()
        measured(lambda: sync(home))
        told = {
            "name": each.name,
            "seconds": max(taken[0], asked[0]),
            "megabytes": max(taken[1], asked[1]) - base,
            "status": taken[2] or asked[2],
        }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
