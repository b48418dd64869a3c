"""Reads hostile files, each in a process that is measured: `hostile_reader.py HOME ROOM`, then names on stdin.

Answers each name with a line of JSON: CPU seconds, megabytes over those of a look without the file, how the process
ended, and what it said if that was badly. After the file was read the rest is asked for: it must be found as ever.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.faults import hostile_files
from tests.faults.here import FOLDER, STORE, run
from tests.faults.household import living_in, settle

from quaid.brain import Brain
from quaid.errors import QuaidError

PATIENCE = 20  # CPU seconds after which a child is stopped
GOOD = 3


class Room(NamedTuple):
    """Where a hostile file lies, which ones there are, and how it is read."""

    place: str
    made: Callable[[], list[hostile_files.Hostile]]
    read: Callable[[Brain, Path], object]


def _sync(brain: Brain, _: Path) -> object:
    return run(brain, "collection sync", name=FOLDER)


def _leave_out(brain: Brain, victim: Path) -> object:
    deep = victim.parent.joinpath(*["a"] * 300)
    deep.mkdir(parents=True, exist_ok=True)
    for place in (victim.parent, deep):
        (place / f"{'a' * 200}.md").write_text("# A\n")
    return run(brain, "collection sync", name=FOLDER)


def _import(brain: Brain, victim: Path) -> object:
    return run(brain, "import", folder=str(victim.parent))


def _ingest(brain: Brain, victim: Path) -> object:
    content = victim.read_bytes().decode("utf-8", "replace")
    page = {"slug": "people/alice", "content": content}
    return run(brain, "ingest", content=content, source_type="doc", source_ref="doc/1", pages=[page])


def _notebook(brain: Brain, _: Path) -> object:
    return run(brain, "recall", query="gooseberry"), run(brain, "prompt")


def _talk(brain: Brain, victim: Path) -> object:
    return run(brain, "conversations add", paths=[str(victim.parent)])


def _lint(brain: Brain, _: Path) -> object:
    return run(brain, "kb lint"), run(brain, "kb query", query="gooseberry")


def _rendered(_: Brain, victim: Path) -> object:
    from quaid.surfaces.web.pages import markdown

    text = victim.read_text(encoding="utf-8")
    return markdown.render(text), markdown.org(text)


ROOMS = {
    "markdown": Room(f"{FOLDER}/hostile.md", hostile_files.pages, _sync),
    "org": Room(f"{FOLDER}/hostile.org", hostile_files.pages, _sync),
    "ignore": Room(f"{FOLDER}/.quaidignore", hostile_files.ignores, _leave_out),
    "import": Room("vault/hostile.md", hostile_files.pages, _import),
    "ingest": Room("inbox/hostile.md", hostile_files.pages, _ingest),
    "notebook": Room(".quaid/notebook/hostile.md", hostile_files.pages, _notebook),
    "kb": Room(f"{STORE}/hostile.org", hostile_files.pages, _lint),
    "transcript": Room("talks/hostile.jsonl", hostile_files.transcripts, _talk),
    "export": Room("talks/hostile.zip", hostile_files.exports, _talk),
    "dashboard": Room("shown/hostile.md", hostile_files.short_pages, _rendered),
}


class Cost(NamedTuple):
    seconds: float
    megabytes: float
    status: int
    said: str


def measured(work: Callable[[], object]) -> Cost:
    """CPU seconds, megabytes and exit status of some work, done in a child, and its last words."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
        try:
            work()
        except QuaidError:
            os._exit(0)  # a refusal is a fine answer
        except BaseException as error:  # the parent tells
            os.write(mouth, f"{type(error).__name__}: {error}"[:2_000].encode("utf-8", "replace"))
            os._exit(1)
        os._exit(0)
    os.close(mouth)
    said = os.read(ear, 4_096).decode("utf-8", "replace")
    os.close(ear)
    _, status, used = os.wait4(child, 0)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, status, said)


def main(place: str, name: str) -> None:
    home, room = Path(place), ROOMS[name]
    victim = home / room.place
    with settle(home, kb=name == "kb") as brain:
        victim.parent.mkdir(parents=True, exist_ok=True)
        for number in range(GOOD):
            (home / FOLDER / f"good{number}.md").write_text(f"# Good {number}\n\nA gooseberry.\n")
        run(brain, "collection sync", name=FOLDER)

    def read() -> None:
        with living_in(home) as brain:
            room.read(brain, victim)

    def ask() -> None:
        with living_in(home) as brain:
            found = run(brain, "search", query="gooseberry")["hits"]
            assert len(found) >= GOOD, found
            assert run(brain, "query", question="gooseberry")["results"]

    def tidy() -> None:
        with living_in(home) as brain:
            run(brain, "collection sync", name=FOLDER)

    made = {each.name: each for each in room.made()}
    victim.write_bytes(b"{}\n")
    base = max(measured(read).megabytes, measured(ask).megabytes)
    for line in sys.stdin:
        victim.write_bytes(made[line.strip()].make())
        costs = measured(read), measured(ask)
        victim.unlink()
        measured(tidy)
        worst = Cost(
            max(each.seconds for each in costs),
            max(each.megabytes for each in costs) - base,
            max(each.status for each in costs),
            " ".join(each.said for each in costs).strip(),
        )
        sys.stdout.write(json.dumps(worst._asdict()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
