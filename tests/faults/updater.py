"""A client that adds its own lines to shared pages, each against the version that it read.

Called as `updater.py HOME NAME ROUNDS PAGES`. Waits for a line on stdin, then prints what it saw: how often it was
too late, the code of every other error, and how long each put took.
"""

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

from tests.faults.here import open_brain, run

from quaid.errors import QuaidError

TOO_LATE = "version_conflict"


def main(home: str, name: str, rounds: str, pages: str) -> None:
    chance = random.Random(name)
    codes: Counter[str] = Counter()
    seconds = []
    with open_brain(Path(home)) as brain:
        brain.db  # noqa: B018 (open before the start)
        sys.stdin.readline()
        for number in range(int(rounds)):
            slug = chance.choice(pages.split(","))
            while True:
                there = run(brain, "get", slug=slug)
                line = f"- **2026-04-25** | {name} — {name}x{number} was here."
                began = time.perf_counter()
                try:
                    run(
                        brain,
                        "put",
                        slug=slug,
                        timeline_append=line,
                        expected_version=there["version"],
                    )
                except QuaidError as error:
                    codes[error.code] += 1
                    if error.code == TOO_LATE:
                        continue
                    raise
                seconds.append(time.perf_counter() - began)
                break
    sys.stdout.write(json.dumps({"codes": codes, "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
