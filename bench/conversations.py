"""Transcripts: turns per CPU-second without embeddings, what a second run and a search cost, and the memory it takes.
Then `bench.said`: how well and how fast turns are found by meaning, too.

The transcripts are made up in the format of Claude Code: words drawn as often as in English, turns of 20 to 2,000
characters, a tool call with its output beside every second one, now and then a secret. Each run is a fresh process,
measured whole.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from bench import said
from bench.table import child_environ, show, verdict

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
TURNS, QUICK_TURNS = 100_000, 10_000
TURNS_OF_A_SESSION = 200
TURNS_PER_SECOND = 5_000
SEARCH_MS = 50
PEAK_MEGABYTES = 100
SEARCHES = (
    "connection pool",
    "why did we choose the first word",
    "the and of",
    "w17 w1042",
    "nothing-like-this",
)


class Run(NamedTuple):
    cpu: float
    megabytes: float
    said: dict[str, Any]


def main() -> None:
    turns = QUICK_TURNS if "--quick" in sys.argv else TURNS
    with tempfile.TemporaryDirectory() as folder:
        transcripts, memory = os.path.join(folder, "projects"), os.path.join(folder, "memory.db")
        size = _write(transcripts, turns)
        _quaid("init", memory)
        first = _quaid("conversations", "add", transcripts, "--db", memory)
        second = _quaid("conversations", "add", transcripts, "--db", memory)
        with open(os.path.join(transcripts, "session-0.jsonl"), "a", encoding="utf-8") as file:
            file.write(_line("user", "one more turn", "session-0", turns + 1))
        grown = _quaid("conversations", "add", transcripts, "--db", memory)
        searches = _searches(memory)
        stored = os.path.getsize(memory)
        by_meaning = said.at_scale(memory)
    made, speed = first.said["report"]["turns"], turns / first.cpu
    rows = [
        ("turns", f"{made:,}", "" if made == turns else f"NOT {turns:,}"),
        ("transcripts, MB", f"{size / 1e6:.0f}", ""),
        ("memory.db, MB", f"{stored / 1e6:.0f}", ""),
        ("secrets masked", f"{first.said['report']['masked']:,}", ""),
        ("first run, CPU s", f"{first.cpu:.2f}", ""),
        ("turns per CPU-second", f"{speed:,.0f}", verdict(speed, TURNS_PER_SECOND, at_least=True)),
        ("second run, nothing new, CPU s", f"{second.cpu:.2f}", ""),
        ("third run, one turn more, CPU s", f"{grown.cpu:.2f}", ""),
        ("search, resident, slowest of 5, CPU ms", f"{searches:.1f}", verdict(searches, SEARCH_MS)),
        ("peak memory, MB", f"{first.megabytes:.0f}", verdict(first.megabytes, PEAK_MEGABYTES)),
    ]
    show("Conversations", rows + by_meaning, ("figure", "measured", "target"))
    said.main()


def _write(folder: str, turns: int) -> int:
    """Make transcripts, and say how many bytes they have."""
    os.makedirs(folder)
    chance = random.Random(7)
    words = [
        f"w{number}" if number % 3 else f"word{chr(97 + number % 26)}{number}" for number in range(20_000)
    ]
    words[:8] = "the and of to connection pool first word".split()
    weights = [1 / (place + 1) for place in range(len(words))]
    size = 0
    for session in range(turns // TURNS_OF_A_SESSION):
        name = f"session-{session}"
        path = os.path.join(folder, name + ".jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for turn in range(TURNS_OF_A_SESSION):
                length = int(chance.lognormvariate(4.0, 0.9)) + 3
                text = " ".join(chance.choices(words, weights, k=min(length, 350)))
                if turn % 100 == 7:
                    text += f" export API_KEY={chance.getrandbits(128):032x}"
                role = "assistant" if turn % 2 else "user"
                file.write(_line(role, text, name, session * TURNS_OF_A_SESSION + turn))
                if turn % 2:
                    file.write(_line("user", [{"type": "tool_result", "content": text * 4}], name, turn))
        size += os.path.getsize(path)
    return size


def _line(role: str, content: Any, session: str, number: int) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_770_000_000 + number))
    blocks = [{"type": "text", "text": content}] if role == "assistant" else content
    line = {
        "parentUuid": f"p{number}",
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/me/project",
        "sessionId": session,
        "version": "2.0.0",
        "type": role,
        "uuid": f"{session}-{number}",
        "timestamp": at,
        "message": {"role": role, "content": blocks},
    }
    return json.dumps(line) + "\n"


def _searches(memory: str) -> float:
    """The slowest search in a process that stays, in milliseconds of CPU."""
    code = (
        "import sys, time\nfrom quaid.storage.sqlite.connection import Database\n"
        "from quaid.search.conversations import search_turns_by_words\n"
        "db = Database.open(sys.argv[1], '2026-04-25T12:00:00Z')\nworst = 0.0\n"
        "for words in sys.argv[2:]:\n    search_turns_by_words(db, words)\n    spent = []\n    for _ in range(5):\n"
        "        started = time.process_time(); search_turns_by_words(db, words)\n"
        "        spent.append(time.process_time() - started)\n"
        "    worst = max(worst, sorted(spent)[2])\nprint(worst * 1000)"
    )
    command = [sys.executable, "-c", code, memory, *SEARCHES]
    return float(
        subprocess.run(command, env=child_environ(SOURCE), capture_output=True, text=True, check=True).stdout
    )


def _quaid(*words: str) -> Run:
    """Run a command as a fresh process and measure all of it."""
    command = [sys.executable, "-m", "quaid", *words, "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=child_environ(SOURCE)
    ) as child:
        assert child.stdout
        said = json.loads(child.stdout.read())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"quaid {' '.join(words)} failed")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Run(usage.ru_utime + usage.ru_stime, kilobytes / 1024, said)


if __name__ == "__main__":
    main()
