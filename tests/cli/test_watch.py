"""`quaid watch` as a process: what it prints, how it ends, and who takes over."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.timing import takes_at_most

from quaid.app import Brain
from quaid.cli.commands import stop_on_signals
from quaid.config import Settings
from quaid.operations import dispatch

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of this kind")
PATIENCE = 60
TAKEN_OVER_WITHIN = 30


class Watching:
    """The process, and its lines as they come."""

    def __init__(self, db: str, *more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "quaid", "--db", db, "watch", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def next(self) -> str:
        return self.lines.get(timeout=PATIENCE)

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stderr
        assert self.process.stdout
        output = self.process.stderr.read()
        self.process.stderr.close()
        self.process.stdout.close()
        return status, output


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tide.md").write_text("# Tide\n\nIt comes twice a day.\n")
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        dispatch.call(
            brain, dispatch.find_command("collection add"), {"name": "notes", "path": str(folder)}, "owner"
        )
    return folder


@pytest.fixture
def start(settings: Settings) -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def begin(*more: str) -> Watching:
        started.append(Watching(settings.db_path, *more))
        return started[-1]

    yield begin
    for item in started:
        if item.process.poll() is None:
            item.process.kill()
        item.process.wait()
        for pipe in (item.process.stdout, item.process.stderr):
            if pipe and not pipe.closed:
                pipe.close()


def test_watch_prints_a_line_per_sync_and_exits_0_on_ctrl_c(
    start: Callable[..., Watching], folder: Path
) -> None:
    watch = start("notes")
    assert watch.next()[10:] == f"notes: watching {folder}"
    assert watch.next()[10:] == "notes: nothing changed (1 file)"
    (folder / "ebb.md").write_text("# Ebb\n")
    assert watch.next()[10:] == "notes: 1 new"
    assert watch.end(signal.SIGINT) == (0, "Stopped watching; the next sync or watch goes on from here.\n")
    assert watch.lines.empty()


def test_watch_ends_within_two_seconds(start: Callable[..., Watching], folder: Path) -> None:
    def end(_: int) -> float:
        watch = start("notes")
        watch.next()
        watch.next()
        began = time.monotonic()
        assert watch.end(signal.SIGINT)[0] == 0
        return time.monotonic() - began

    takes_at_most(2, end)


def test_a_standby_watcher_reports_it_and_takes_over(
    start: Callable[..., Watching], folder: Path, settings: Settings
) -> None:
    first = start()
    first.next()
    second = start("--json")
    payload = json.loads(second.next())
    assert (payload["event"], payload["owners"][0]["collection"]) == ("standby", "notes")
    assert payload["owners"][0]["pid"] == first.process.pid
    third = start()
    assert third.next()[10:] == f"process {first.process.pid} watches notes; this process waits to take over"
    assert third.end(signal.SIGTERM)[0] == 0
    first.process.kill()
    died = time.monotonic()
    assert json.loads(second.next())["event"] == "began"
    assert time.monotonic() - died < TAKEN_OVER_WITHIN
    assert json.loads(second.next())["sync"]["unchanged"] == 1
    (folder / "tide.md").write_text("# Tide\n\nIt turned.\n")
    assert json.loads(second.next())["sync"]["changed"] == 1
    assert second.end(signal.SIGINT) == (0, "")


def test_a_signal_during_a_wait_does_not_deadlock() -> None:
    stop = threading.Event()
    with stop_on_signals(stop):
        with stop._cond:  # type: ignore[attr-defined]  # the lock that Event.wait() holds for a moment
            signal.raise_signal(signal.SIGTERM)
        assert stop.wait(PATIENCE)
