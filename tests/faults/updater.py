"""A client that adds its own lines to shared pages, each against the version that it read.

Called as `updater.py HOME SEED NAME ROUNDS STRIDE WAY ADDRESS TOKEN`. The way is "resident" (the memory open in this
process, as in `quaid pipe`), "stdio" (a server of its own, over MCP), "http" (a server that others ask, too) or "cli"
(a `quaid get` and a `quaid put` for each update). All walk over the same pages at about the same time, so that they
meet; whoever is slower takes longer strides. Waits for a line on stdin, then prints what it saw: how often it was too
late, the code of every other error, and how long each put took.
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

from tests.faults.here import open_brain, run, slug_of

from quaid.errors import QuaidError

TOO_LATE = "version_conflict"

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
    from tests.surfaces.mcp.pipes import Pipes

    server = Pipes(str(Path(home) / "memory.db"), environ={"HOME": home})
    server.greet()

    def call(tool: str, arguments: dict[str, Any]) -> Any:
        answer = server.call(tool, **arguments)
        if "error" in answer:
            raise Refused(answer["error"]["data"]["code"])
        return answer["result"]["structuredContent"]

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


def update(call: Call, seed: str, name: str, rounds: int, stride: int, codes: Counter[str]) -> list[float]:
    chance = random.Random(f"{seed} {name}")
    seconds = []
    for number in range(rounds):
        slug = slug_of(number * stride, chance)
        line = f"- **2026-04-25** | {name} — {name}x{number} was here."
        while True:
            there = call("memory_get", {"slug": slug})
            arguments = {"slug": slug, "timeline_append": line, "expected_version": there["version"]}
            began = time.perf_counter()
            try:
                call("memory_put", arguments)
            except Refused as refusal:
                codes[refusal.code] += 1
                if refusal.code == TOO_LATE:
                    continue
                raise
            seconds.append(time.perf_counter() - began)
            break
    return seconds


def main(
    home: str, seed: str, name: str, rounds: str, stride: str, way: str, address: str, token: str
) -> None:
    codes: Counter[str] = Counter()
    with WAYS[way](home, address, token) as call:
        call("memory_get", {"slug": "p0"})  # open before the start
        sys.stdin.readline()
        seconds = update(call, seed, name, int(rounds), int(stride), codes)
    sys.stdout.write(json.dumps({"codes": codes, "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
