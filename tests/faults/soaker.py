"""Somebody who uses a memory until the file `enough` is there: `soaker.py HOME NAME ROLE TOKEN`.

The role is a way of writing pages ("resident", "stdio", "http"), "kb" (nodes of a knowledge base), "timer" (pushes it
now and then, as the timer that `kb install-timer` sets up does), "editor" (files of a watched folder) or "reader"
(pages and searches over HTTP). What was acknowledged goes into the file `said/NAME`, a line each, at once. A server
that is killed is waited for; nothing else may go wrong.
"""

import itertools
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults import updater
from tests.faults.full_memory import open_memory
from tests.faults.updater import Call, Refused
from tests.faults.workspace import FOLDER, page_text, run

PAGES = 40
"""Of each writer: they are written again and again, so that what grows is not the memory itself."""

PATIENCE = 60.0
QUESTIONS = ("begins", "Line 3", "somebody", "harbour tea", "w1")
ADDRESSES = ("/", "/search?q=begins", "/timeline", "/graph", "/api/memory/stats", "/api/memory/list?limit=20")


class Soaker:
    def __init__(self, home: Path, name: str, role: str, token: str) -> None:
        self.home, self.name, self.role, self.token = home, name, role, token
        self.chance = random.Random(name)
        self._said = os.open(home / "said" / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def say(self, *words: object) -> None:
        os.write(self._said, (" ".join(map(str, words)) + "\n").encode())

    def rounds(self, pause: float, until: str = "enough") -> Iterator[int]:
        """Numbers, one after another with pauses between them, until it is enough."""
        for number in itertools.count():
            if (self.home / until).exists():
                return
            yield number
            time.sleep(pause * (0.5 + self.chance.random()))

    def address(self) -> str:
        return (self.home / "address").read_text()

    # Those who write

    def work(self) -> None:
        if self.role in ("kb", "timer", "editor", "reader"):
            getattr(self, self.role)()
        elif self.role == "http":
            for _ in self.rounds(0.2):  # anew for every server
                self.over_http(self.write)
        else:
            with getattr(updater, self.role)(str(self.home), "", "") as call:
                self.write(call)

    def over_http(self, deed: Callable[[Call], None]) -> None:
        import httpx

        with updater.http(str(self.home), self.address(), self.token) as call:
            try:
                deed(call)
            except httpx.TransportError:
                self.wait_for_server()

    def wait_for_server(self) -> None:
        """Until there is one again."""
        import httpx

        until = time.monotonic() + PATIENCE
        while not (self.home / "enough").exists():
            try:
                httpx.get(self.address() + "/health", timeout=5)
                return
            except httpx.TransportError:
                assert time.monotonic() < until, "the server did not come back"
                time.sleep(0.1)

    def write(self, call: Call) -> None:
        """One page after another, each against the version that it has."""
        for number in self.rounds(0.1):
            page = self.chance.randrange(PAGES)
            slug = f"{FOLDER}::{self.name}/p{page}" if page % 2 else f"{self.name}/p{page}"
            word = f"{self.name}x{time.time_ns()}"
            try:
                self.put(call, slug, page_text(word, 5))
            except Refused as refusal:
                if refusal.code != "version_conflict":
                    raise
                continue
            self.say(slug, word, number)

    def put(self, call: Call, slug: str, text: str) -> None:
        try:
            version = call("memory_get", {"slug": slug})["version"]
        except Refused as refusal:
            if refusal.code != "page_not_found":
                raise
            call("memory_put", {"slug": slug, "content": text})
        else:
            call("memory_put", {"slug": slug, "compiled_truth": text, "expected_version": version})

    def kb(self) -> None:
        for number in self.rounds(1.0):
            with open_memory(self.home) as brain:
                title = f"Thing {self.name} {time.time_ns()}"
                fields: dict[str, Any] = {"title": title, "text": f"All of {title}. ", "force": True}
                run(brain, "kb remember", **fields, summary=f"What number {number} is")
                self.say("kb", title.replace(" ", "_"), number)

    # Those who do not

    def timer(self) -> None:
        """It goes on when the others have stopped: what they said last is pushed the next time."""
        for _ in self.rounds(2.0, "pushed"):
            with open_memory(self.home) as brain:
                run(brain, "kb push")

    def editor(self) -> None:
        """New files, other texts, other names, and none at all, now and then."""
        root = self.home / FOLDER / "theirs"
        root.mkdir(exist_ok=True)
        for number in self.rounds(0.1):
            path = root / f"f{self.chance.randrange(30)}.md"
            kind = self.chance.choice(["save", "save", "save", "move", "delete"])
            if kind == "save" or not path.exists():
                unfinished = path.with_name(f".{path.name}.swp")
                unfinished.write_text(page_text(f"e{number}", 5) + "\n")
                os.replace(unfinished, path)
            elif kind == "move":
                os.replace(path, root / f"f{self.chance.randrange(30)}.md")
            else:
                path.unlink()

    def reader(self) -> None:
        import httpx

        for _ in self.rounds(0.05):
            headers = {"Authorization": f"Bearer {self.token}"}
            with httpx.Client(base_url=self.address(), headers=headers, timeout=60) as client:
                try:
                    for _ in self.rounds(0.05):
                        self.ask(client)
                except httpx.TransportError:
                    self.wait_for_server()

    def ask(self, client: Any) -> None:
        if self.chance.random() < 0.5:
            question = {"query": self.chance.choice(QUESTIONS)}
            answer = client.post("/api/memory/search", json=question)
        else:
            answer = client.get(self.chance.choice(ADDRESSES))
        assert answer.status_code == 200, (answer.status_code, answer.request.url, answer.text[:300])


def main(home: str, name: str, role: str, token: str) -> None:
    Soaker(Path(home), name, role, token).work()


if __name__ == "__main__":
    main(*sys.argv[1:])
