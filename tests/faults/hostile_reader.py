"""Reads hostile files, each in a process that is measured: `hostile_reader.py HOME ROOM`, then names on stdin.

Answers each name with a line of JSON: CPU seconds, megabytes over those of a look without the file, how the process
ended, and what it said if that was badly. Good files come together with the hostile one, before and behind it by
name, and one more comes after it: all of them must be taken in and found. Only a hostile text that is handed over
alone may be refused; a folder with it may not.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.faults import hostile_files
from tests.faults.full_memory import create_memory, open_memory
from tests.faults.workspace import FOLDER, STORE, run
from tests.kb import nodes

from quaid.app import Brain
from quaid.errors import QuaidError

PATIENCE = 20  # CPU seconds after which a child is stopped
GOOD = 3


class Room(NamedTuple):
    """Where a hostile file lies, which ones there are, how it is read, and with what."""

    place: str
    made: Callable[[], list[hostile_files.Hostile]]
    read: Callable[[Brain, Path], object]
    good: Callable[[str, int], str] | None = None
    """The text of a good file about a word. Where there is none, a hostile text comes alone and may be refused."""
    ending: str = ".md"
    found: Callable[[Brain, str], Sequence[object]] = lambda brain, word: run(brain, "search", query=word)[
        "hits"
    ]
    """The good files that a word finds."""


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


def _documents(brain: Brain, victim: Path) -> object:
    data = victim.read_bytes()
    endings = {b"PK\3\4": ".docx", b"\xd0\xcf\x11\xe0": ".docx", b"%PDF": ".pdf", b"From": ".mbox"}
    ending = ".epub" if b"META-INF/container.xml" in data else endings.get(data[:4], ".html")
    victim.with_suffix(ending).write_bytes(data)
    try:
        return run(brain, "import", folder=str(victim.parent), documents=True)
    finally:
        victim.with_suffix(ending).unlink()


def _ingest(brain: Brain, victim: Path) -> object:
    content = victim.read_bytes().decode("utf-8", "replace")
    page = {"slug": "people/alice", "content": content}
    return run(brain, "ingest", content=content, source_type="doc", source_ref="doc/1", pages=[page])


def _notebook(brain: Brain, _: Path) -> object:
    run(brain, "collection sync", name="notebook")
    return run(brain, "recall", query="gooseberry"), run(brain, "prompt")


def _talk(brain: Brain, victim: Path) -> object:
    return run(brain, "conversations add", paths=[str(victim.parent)])


def _lint(brain: Brain, _: Path) -> object:
    return run(brain, "kb lint"), run(brain, "kb query", context="gooseberry")


def _rendered(_: Brain, victim: Path) -> object:
    from quaid.web.pages import markdown

    text = victim.read_text(encoding="utf-8")
    return markdown.render_markdown(text), markdown.render_org(text)


def _page(word: str, _: int) -> str:
    return f"# Good\n\nA {word}.\n"


def _org(word: str, _: int) -> str:
    return f"#+title: Good\n\nA {word}.\n"


def _node(word: str, number: int) -> str:
    return nodes.text(number, f"All about a {word}.\n", title=f"The {word} {number}")


def _turn(word: str, number: int) -> str:
    turn = {
        "role": "user",
        "content": f"A {word}.",
        "timestamp": 1777118400 + number,
        "session": f"{word}{number}",
    }
    return json.dumps(turn) + "\n"


def _said(brain: Brain, word: str) -> Sequence[object]:
    return list(run(brain, "conversations search", query=word)["hits"])


def _known(brain: Brain, word: str) -> Sequence[object]:
    return [match for match in run(brain, "kb query", context=word)["matches"] if word in match["title"]]


PAGES = hostile_files.pages
ROOMS = {
    "markdown": Room(f"{FOLDER}/hostile.md", PAGES, _sync, _page),
    "org": Room(f"{FOLDER}/hostile.org", PAGES, _sync, _org, ".org"),
    "ignore": Room(f"{FOLDER}/.quaidignore", hostile_files.ignores, _leave_out, _page),
    "import": Room("vault/hostile.md", PAGES, _import, _page),
    "documents": Room("papers/hostile.bin", hostile_files.documents, _documents, _page),
    "ingest": Room("inbox/hostile.md", PAGES, _ingest),
    "notebook": Room("notebook/hostile.md", PAGES, _notebook, _page),
    "kb": Room(f"{STORE}/hostile.org", PAGES, _lint, _node, ".org", _known),
    "transcript": Room("talks/hostile.jsonl", hostile_files.transcripts, _talk, _turn, ".jsonl", _said),
    "export": Room("talks/hostile.zip", hostile_files.exports, _talk, _turn, ".jsonl", _said),
    "dashboard": Room("shown/hostile.md", hostile_files.short_pages, _rendered),
}


class Cost(NamedTuple):
    seconds: float
    megabytes: float
    status: int
    said: str


def measured(work: Callable[[], object], *, may_refuse: bool = False) -> Cost:
    """CPU seconds, megabytes and exit status of some work, done in a child, and its last words."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
        try:
            work()
        except BaseException as error:  # the parent tells
            if may_refuse and isinstance(error, QuaidError):
                os._exit(0)
            os.write(mouth, f"{type(error).__name__}: {error}"[:2_000].encode("utf-8", "replace"))
            os._exit(1)
        os._exit(0)
    os.close(mouth)
    output = os.read(ear, 4_096).decode("utf-8", "replace")
    os.close(ear)
    _, status, used = os.wait4(child, 0)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, status, output)


def main(place: str, name: str) -> None:
    home, room = Path(place), ROOMS[name]
    victim = home / room.place
    with create_memory(home, kb=name == "kb") as brain:
        victim.parent.mkdir(parents=True, exist_ok=True)
        for number in range(GOOD):
            (home / FOLDER / f"good{number}.md").write_text(f"# Good {number}\n\nA gooseberry.\n")
        run(brain, "collection sync", name=FOLDER)

    def read() -> None:
        with open_memory(home) as brain:
            room.read(brain, victim)

    def ask(word: str = "", count: int = 0) -> None:
        with open_memory(home) as brain:
            hits = run(brain, "search", query="gooseberry")["hits"]
            assert len(hits) >= GOOD, hits
            assert run(brain, "query", question="gooseberry")["results"]
            beside = room.found(brain, word) if count else []
            assert len(beside) == count, f"{count} good files are there, and found are {beside}"

    def tidy() -> None:
        with open_memory(home) as brain:
            run(brain, "collection sync")

    made = {item.name: item for item in room.made()}
    victim.write_bytes(b"{}\n")
    base = max(measured(read, may_refuse=True).megabytes, measured(ask).megabytes)
    for number, line in enumerate(sys.stdin):
        word = f"redcurrant{number}"
        victim.write_bytes(made[line.strip()].make())
        costs: list[Cost] = []
        good: list[Path] = []
        for names in (("a", "z"), ("later",)) if room.good else ((),):  # with the hostile file, and after it
            for name in names:
                good.append(victim.parent / f"{name}{number}{room.ending}")
                assert room.good
                good[-1].write_text(room.good(word, 3 * number % 1_900 + len(good)))
            costs.append(measured(read, may_refuse=room.good is None))
            costs.append(measured(partial(ask, word, len(good))))
        for path in (victim, *good):
            path.unlink()
        measured(tidy)
        worst = Cost(
            max(cost.seconds for cost in costs),
            max(cost.megabytes for cost in costs) - base,
            max(cost.status for cost in costs),
            " ".join(cost.said for cost in costs).strip(),
        )
        sys.stdout.write(json.dumps(worst._asdict()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
