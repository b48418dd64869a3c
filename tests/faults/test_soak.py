"""A memory in daily use for a long time, sped up: writers of every kind, an editor, readers, pushes, and now and then
one of them is killed. Nobody else notices, nothing grows without end, and at the end everything is there."""

import os
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.faults import index_check, operations
from tests.faults.full_memory import KB, create_memory, open_memory, settings_for
from tests.faults.killer import kill_process
from tests.faults.ledger import LONG, SHARE, Cases
from tests.faults.workspace import FOLDER, PROJECT, files, run
from tests.kb.stores import plain
from tests.web.server_process import Process

from quaid.operations import service
from quaid.storage import embedding_queue

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
    pytest.mark.promise("soak"),
]

ROLES = ("resident", "stdio", "http", "kb", "timer", "editor", "reader", "reader")
SECONDS = max(30.0, 1800 * SHARE) if LONG else 8.0
KILLS = 6 if LONG else 2
"""In half an hour one every five minutes; shorter runs have as many."""

PATIENCE = 120.0
"""Seconds in which all that goes on in the background comes to an end, once nobody writes any more."""

LARGEST_LOG = 64 * 2**20
STEEPEST = 1.0
"""Megabytes a minute, in the second half, of a server that has not been killed in it."""

LONG_ENOUGH = 600.0
"""Seconds below which a slope says more about how a server warms up than about what it loses."""


class Server:
    """The resident server: what it says is kept, how much memory it takes is noted."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.said: list[str] = []
        self.sizes: list[tuple[float, float]] = []
        self.process = self._started()

    def _started(self) -> Process:
        embedding = {"QUAID_BACKGROUND_EMBEDDING": "on" if LONG else "off"}
        process = Process(settings_for(self.home), "serve", "--http", environ=embedding, cold=True)
        self._ears = threading.Thread(target=self._listen, args=(process.process.stderr,), daemon=True)
        self._ears.start()
        (self.home / "address.new").write_text(process.address)
        os.replace(self.home / "address.new", self.home / "address")
        self.sizes = []
        return process

    def _listen(self, errors: Any) -> None:
        self.said.extend(errors)

    def look(self) -> None:
        """Note how much memory it has now, in megabytes, with the minute."""
        status = Path(f"/proc/{self.process.process.pid}/statm").read_text()
        size = int(status.split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
        self.sizes.append((time.monotonic() / 60, size))

    def kill(self) -> None:
        self.end()
        self.process = self._started()

    def end(self) -> None:
        """Killed, unless it has ended already."""
        process = self.process.process
        process.kill()
        process.wait()
        self._ears.join(60)
        for pipe in (process.stdout, process.stderr):
            assert pipe
            pipe.close()


class House:
    """All who use one memory."""

    def __init__(self, home: Path, token: str) -> None:
        self.home, self.token = home, token
        (home / "said").mkdir()
        self.server = Server(home)
        self.users: dict[str, subprocess.Popen[bytes]] = {}
        self.killed = 0
        self.largest_log = 0
        for number, role in enumerate(ROLES):
            self._start(f"{role}{number}", role)

    def _start(self, name: str, role: str) -> None:
        with open(self.home / "said" / f"{name}.errors", "ab") as errors:
            self.users[name] = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name("soaker.py")),
                    self.home,
                    name,
                    role,
                    self.token,
                ],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}{os.pathsep}{PROJECT}"},
            )

    def live(self, seconds: float) -> None:
        """Let time go by; nobody may give up meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.25)
            for name, user in self.users.items():
                assert user.poll() is None, (name, self.complaints())
            assert self.server.process.process.poll() is None, self.server.said
            self.server.look()
            self.largest_log = max(self.largest_log, size_of(self.home / "memory.db-wal"))

    def kill(self, name: str) -> None:
        """One of them, with all that it has started, at any moment; another one takes its place."""
        if name == "server":
            self.server.kill()
        else:
            kill_process(self.users[name].pid, family=True)
            self.users[name].wait()
            self._start(name, name.rstrip("0123456789"))
        self.killed += 1

    def complaints(self) -> dict[str, str]:
        results = {path.name: path.read_text() for path in (self.home / "said").glob("*.errors")}
        return {name: output[-2000:] for name, output in results.items() if output}

    def rest(self, remote: Path, environ: dict[str, str]) -> None:
        """Nobody writes any more; the server and the timer bring everything in and out, without being asked."""
        (self.home / "enough").touch()
        for name, user in self.users.items():
            if not name.startswith("timer"):
                assert user.wait(90) == 0, (name, self.complaints())
        until = time.monotonic() + PATIENCE
        while left := undone(self.home, remote, environ):
            assert time.monotonic() < until, (left, self.server.said)
            time.sleep(0.5)

    def end(self) -> None:
        (self.home / "pushed").touch()
        for name, user in self.users.items():
            assert user.wait(90) == 0, (name, self.complaints())
        status, _ = self.server.process.stop()
        assert status == 0, self.server.said
        assert self.complaints() == {}
        assert not [line for line in self.server.said if "Traceback" in line or "Quaid itself" in line]

    def stop(self) -> None:
        """Whatever happened: nobody stays behind."""
        for user in self.users.values():
            if user.poll() is None:
                kill_process(user.pid, family=True)
                user.wait()
        self.server.end()


def undone(home: Path, remote: Path, environ: dict[str, str]) -> str:
    """What of the work in the background is not done: files to take in, commits to push, chunks without a vector."""
    with open_memory(home) as brain:
        index, there = index_check.indexed_files(brain), files(home / FOLDER)
        differing = [
            path
            for path in {*index, *there}
            if path not in there or index.get(path) != index_check.parse_file(path, there[path])
        ]
        models = brain.db.rows("SELECT name FROM embedding_models WHERE active = 1")
        covered, total = (
            embedding_queue.ChunkQueue(brain.db, models[0][0] if models else "").coverage()
            if LONG
            else (0, 0)
        )
    if differing:
        return f"the index is not in step with {sorted(differing)[:5]}"
    if plain(home / KB, "rev-parse", "HEAD", environ=environ) != plain(
        remote, "rev-parse", "main", environ=environ
    ):
        return "the last commit is not pushed"
    return "" if covered == total > 0 or not LONG else f"{covered} of {total} chunks have a vector"


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def slope(points: list[tuple[float, float]]) -> float:
    """Of the straight line that fits best."""
    if len(points) < 2:
        return 0.0
    across = sum(x for x, _ in points) / len(points)
    up = sum(y for _, y in points) / len(points)
    spread = sum((x - across) ** 2 for x, _ in points)
    return sum((x - across) * (y - up) for x, y in points) / spread


def test_a_long_time_of_daily_use_with_kills_leaves_everything_in_order(tmp_path: Path, cases: Cases) -> None:
    home, remote = tmp_path / "home", tmp_path / "remote.git"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    plain(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote), environ=environ)
    with create_memory(home, kb=False) as brain:
        run(brain, "kb init", remote=str(remote))
        run(brain, "kb push")
    token = service.owner_token(settings_for(home))
    for seed in cases.walk(1, 1):
        chance = random.Random(f"soak {seed}")
        house = House(home, token)
        try:
            for number in range(KILLS):
                house.live(SECONDS / (KILLS + 1))
                early = number < (KILLS + 1) // 2
                others = sorted(house.users)
                house.kill(
                    "server" if number == 0 else chance.choice([*others, *(["server"] if early else [])])
                )
            house.live(SECONDS / (KILLS + 1))
            sizes = house.server.sizes
            house.rest(remote, environ)
            house.end()
        finally:
            house.stop()
        writes = check(home, remote, environ)
        assert house.largest_log <= LARGEST_LOG
        begin = sizes[-1][0] - SECONDS / 120
        steep = slope([siz for siz in sizes if siz[0] >= begin])
        assert steep <= STEEPEST or SECONDS < LONG_ENOUGH, f"{steep:.2f} MB a minute"
        assert wait_until_gone(home) == []
        cases.count(writes)
        cases.note(
            f"{SECONDS:.0f} s, {writes:,} writes acknowledged, {house.killed} kills, 0 errors;"
            f" server {sizes[-1][1]:.0f} MB,"
            f" {steep:+.2f} MB a minute in the second half{'' if SECONDS >= LONG_ENOUGH else ', too short to judge'};"
            f" log at most {house.largest_log / 2**20:.1f} MB"
        )


def check(home: Path, remote: Path, environ: dict[str, str]) -> int:
    """Everything that was acknowledged is there, in order and pushed; how much was it?"""
    writes = 0
    output: dict[str, list[str]] = defaultdict(list)
    for path in (home / "said").glob("*[0-9]"):
        for line in path.read_text().splitlines():
            slug, word, _ = line.split()
            output[slug].append(word)
            writes += 1
    titles = {word.replace("_", " ") for word in output.pop("kb", [])}
    newest = {slug: max(words, key=number_of) for slug, words in output.items()}
    with open_memory(home) as brain:
        for report in run(brain, "collection sync")["syncs"]:
            assert not report["halted"], report
            assert [report[name] for name in ("new", "changed", "moved", "removed")] == [0] * 4, report
        assert run(brain, "validate")["violations"] == []
        for slug, word in newest.items():
            truth = run(brain, "get", slug=slug)["compiled_truth"]
            there = truth.split(" ends.")[0].split()[-1]
            assert number_of(there) >= number_of(word), f"{slug} has been put back"
        indexed = {
            row[0]
            for row in brain.db.rows(
                "SELECT slug FROM pages WHERE slug LIKE 'theirs/%' AND quarantined_at IS NULL"
            )
        }
        assert indexed == {f"theirs/{path.stem}" for path in (home / FOLDER / "theirs").glob("*.md")}
        state = run(brain, "kb status")
        assert (state["ahead"], state["behind"], state["uncommitted"], state["push_problem"]) == (
            0,
            0,
            [],
            "",
        )
        assert run(brain, "kb lint")["findings"] == []
    assert titles <= operations.nodes(home)
    head = plain(home / KB, "rev-parse", "HEAD", environ=environ)
    assert plain(remote, "rev-parse", "main", environ=environ) == head
    for store in (home / KB, remote):
        plain(store, "fsck", "--strict", "--no-dangling", environ=environ)
    return writes


def number_of(word: str) -> int:
    return int(word.rpartition("x")[2])


def wait_until_gone(home: Path) -> list[str]:
    """Processes that still name the memory, after some seconds in which they may end by themselves."""
    for _ in range(100):
        results = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = (
                    Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
            if str(home) in words:
                results.append(words)
        if not results:
            return []
        time.sleep(0.2)
    return results
