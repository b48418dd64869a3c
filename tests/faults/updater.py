"""A client that adds its own words to the texts of shared pages, to what it read or by appending.

Called as `updater.py HOME SEED NAME ROUNDS STRIDE WAY ADDRESS TOKEN`. The way is "resident" (the memory open in this
process, as in `quaid pipe`), "stdio" (a server of its own, over MCP), "http" (a server that others ask, too) or "cli"
(a `quaid get` and a `quaid put` for each update). Two of three updates send the whole truth of a page as it was read,
with a word more and the version or the hash of what was read: writing over a text that was not read would remove the
words of others. The third appends its word without a version.

All walk over the same pages at about the same time, so that they meet; whoever is slower takes longer strides. And
they are sure to meet on the first ones, which each reads before it says "ready" and waits for a line on stdin. At the
end it prints what it saw: how often it was too late, the code of every other error, and how long each put took.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.workspace import FOLDER, open_brain, run, slug_of

from quaid.errors import QuaidError

TOO_LATE = "version_conflict"
FIRST = ("p0", f"{FOLDER}::p1")
"""Where everybody is too late but one: a page without a file and one with it, read by all before anybody writes."""

Call = Callable[[str, dict[str, Any]], Any]
"""A tool by its name; an error is raised as Refused."""


class Refused(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def resident(home: str, address: str, token: str) -> Iterator[Call]:
    with open_brain(Path(home)) as brain:

        def call(tool: str, arguments: dict[str, Any]) -> Any:
            try:
                return run(brain, tool.removeprefix("memory_"), **arguments)
            except QuaidError as error:
                raise Refused(error.code) from error

        yield call


@contextmanager
def stdio(home: str, address: str, token: str) -> Iterator[Call]:
    from tests.mcp.pipes import Pipes, content_of, failure_of

    server = Pipes(str(Path(home) / "memory.db"), environ={"HOME": home}, cold=True)
    server.greet()

    def call(tool: str, arguments: dict[str, Any]) -> Any:
        answer = server.call(tool, **arguments)
        if answer["result"]["isError"]:
            raise Refused(failure_of(answer)["code"])
        return content_of(answer["result"])

    try:
        yield call
        status, _, errors = server.end()
        assert status == 0, errors
        assert "Traceback" not in errors, errors
    finally:
        server.kill()


@contextmanager
def http(home: str, address: str, token: str) -> Iterator[Call]:
    import httpx

    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:

        def call(tool: str, arguments: dict[str, Any]) -> Any:
            answer = client.post(f"/api/memory/{tool.removeprefix('memory_')}", json=arguments)
            if answer.is_error:
                raise Refused(answer.json()["error"]["code"])
            return answer.json()

        yield call


@contextmanager
def cli(home: str, address: str, token: str) -> Iterator[Call]:
    quaid = [sys.executable, "-P", "-m", "quaid", "--db", str(Path(home) / "memory.db"), "--json"]
    environ = {**os.environ, "HOME": home, "QUAID_BACKGROUND_EMBEDDING": "off"}

    def call(tool: str, arguments: dict[str, Any]) -> Any:
        slug, *others = arguments.items()
        options = [word for key, value in others for word in (f"--{key.replace('_', '-')}", str(value))]
        words = [*quaid, tool.removeprefix("memory_"), slug[1], *options]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise Refused(json.loads(done.stderr)["error"]["code"])
        assert done.stderr == "", done.stderr
        return json.loads(done.stdout)

    yield call


WAYS = {"resident": resident, "stdio": stdio, "http": http, "cli": cli}


def change(there: dict[str, Any], word: str, number: int) -> dict[str, Any]:
    """Add a word: to the version that was read, to the text with the hash that was read, or without having read."""
    if number % 3 == 2:
        return {"append": word}
    text = f"{there['compiled_truth'].rstrip()}\n{word}\n"
    name = "content_hash" if number % 3 else "expected_version"
    return {"compiled_truth": text, name: there["content_hash" if number % 3 else "version"]}


def update(
    call: Call, seed: str, name: str, rounds: int, stride: int, codes: Counter[str], read: list[Any]
) -> list[float]:
    """Write one word after another, the first ones into what was read before; how long each put took."""
    chance = random.Random(f"{seed} {name}")
    seconds = []
    for number in range(rounds):
        slug = FIRST[number] if number < len(FIRST) else slug_of(number * stride, chance)
        word = f"{name}x{number}"
        there = read[number] if number < len(read) else call("memory_get", {"slug": slug})
        while True:
            arguments = {
                "slug": slug,
                "timeline_append": f"- **2026-04-25** | {name} — {word} was here.",
                **change(there, word, number),
            }
            began = time.perf_counter()
            try:
                call("memory_put", arguments)
            except Refused as refusal:
                codes[refusal.code] += 1
                if refusal.code != TOO_LATE:
                    raise
                there = call("memory_get", {"slug": slug})
                continue
            seconds.append(time.perf_counter() - began)
            break
    return seconds


def main(
    home: str, seed: str, name: str, rounds: str, stride: str, way: str, address: str, token: str
) -> None:
    codes: Counter[str] = Counter()
    with WAYS[way](home, address, token) as call:
        read = [call("memory_get", {"slug": slug}) for slug in FIRST]
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        seconds = update(call, seed, name, int(rounds), int(stride), codes, read)
    sys.stdout.write(json.dumps({"codes": codes, "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
