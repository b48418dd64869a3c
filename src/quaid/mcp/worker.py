"""Helper processes of a server: start, supervise and stop the embedder and the folder watcher.

Run as a program (`python -m quaid.mcp.worker PATH`), this module is the embedder. The standard input of a helper is a
pipe held open by the server; when it closes, the helper exits.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any

from quaid import config
from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.operations import background
from quaid.operations.background import EmbeddingMonitor, record_exit
from quaid.operations.collections import record_watch_failure

if TYPE_CHECKING:
    from subprocess import Popen

SECONDS_TO_END = 1.0
WINDOWS_CREATION_FLAGS = 0x08004000  # CREATE_NO_WINDOW | BELOW_NORMAL_PRIORITY_CLASS


def start_helper(module: str, path: str, *more: str, heard: bool = False) -> "Popen[bytes]":
    """Run a module as a helper process for the memory at this path. Its output is discarded unless `heard`."""
    import subprocess  # takes half a megabyte, so import it only when needed

    # -P keeps Python from importing modules from the client's working folder.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, os.path.abspath(path), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=WINDOWS_CREATION_FLAGS if os.name == "nt" else 0,
    )


def release_helper(child: "Popen[bytes]") -> None:
    """Close the helper's standard input, which tells it to exit."""
    if child.stdin:
        child.stdin.close()


def end_helper(child: "Popen[bytes]") -> None:
    """Stop a helper, killing it after a timeout."""
    from subprocess import TimeoutExpired

    release_helper(child)
    try:
        child.wait(SECONDS_TO_END)
    except TimeoutExpired:
        child.kill()
        child.wait()


def on_server_exit(act: Callable[[], None]) -> None:
    """In a helper: call `act` when the server has exited or closed the pipe."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        act()

    Thread(target=wait, daemon=True).start()


WATCH_AFTER_START, WATCH_CHECK_SECONDS, WATCH_AFTER_FAILURE = 3.0, 3.0, 60.0  # seconds
WATCH_HEARTBEAT = background.HEARTBEAT
WATCHER_MODULE = "quaid.mcp.watcher"
EventListener = Callable[[dict[str, Any]], None]
MAX_TRIES = 3
"""Number of watchers in a row that may exit early before the next start is delayed by WATCH_AFTER_FAILURE."""


class WatcherSupervisor:
    """Starts and monitors the watcher process. Used only by the thread that owns the memory."""

    def __init__(self, hear: "EventListener | None" = None) -> None:
        self.due = time.monotonic() + WATCH_AFTER_START
        self._hear = hear
        self.watcher: Popen[bytes] | None = None
        self._started = 0.0
        self._tries = 0
        self._saw_free = False

    def look(self, brain: Brain) -> None:
        """Start a watcher if a folder has none."""
        self.due = time.monotonic() + WATCH_CHECK_SECONDS
        if self._is_at_work(brain):
            return
        wanted = background.watch_demand(brain, WATCH_HEARTBEAT)
        # Another process that watches folders will usually take a new one too: wait one interval for it.
        if wanted.watcher and (self._saw_free or not wanted.soon) and time.monotonic() >= self._started:
            self.watcher = self._begun(brain.settings.db_path)
            self._started = time.monotonic()
        self._saw_free = wanted.watcher

    def _begun(self, path: str) -> "Popen[bytes]":
        if self._hear is None:
            return start_helper(WATCHER_MODULE, path)
        watcher = start_helper(WATCHER_MODULE, path, "--tell", heard=True)
        Thread(target=_forward_events, args=(watcher, self._hear), name="watcher", daemon=True).start()
        return watcher

    def end(self) -> None:
        """Stop the watcher process."""
        if self.watcher is not None:
            end_helper(self.watcher)
            self.watcher = None

    def _is_at_work(self, brain: Brain) -> bool:
        if self.watcher is None:
            return False
        status = self.watcher.poll()
        if status is None:
            return True
        release_helper(self.watcher)
        if status:
            self._note_end(brain, status)
        soon = time.monotonic() - self._started < 2 * WATCH_CHECK_SECONDS
        self._tries = self._tries + 1 if soon else 0
        self._started = time.monotonic() + (WATCH_AFTER_FAILURE if self._tries >= MAX_TRIES else 0.0)
        self.watcher = None
        return False

    def _note_end(self, brain: Brain, status: int) -> None:
        """Record that the watcher process died, unless it recorded a failure itself."""
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        record_watch_failure(brain, f"the process that watches folders {how}")


def _forward_events(watcher: "Popen[bytes]", hear: EventListener) -> None:
    """Pass the watcher's events to the listener until it exits. Lines that are not JSON are skipped."""
    if watcher.stdout is None:
        return
    with watcher.stdout as lines:
        for line in lines:
            try:
                hear(json.loads(line))
            except ValueError:
                pass


EMBED_AFTER_START, EMBED_AFTER_CALL, EMBED_INTERVAL = 3.0, 2.0, 60.0  # seconds


class HelperSupervisor:
    """Starts and monitors all helper processes. Used only by the thread that owns the memory."""

    def __init__(self, hear: EventListener | None = None) -> None:
        self._due = time.monotonic() + EMBED_AFTER_START
        self._watch = EmbeddingMonitor()
        self._filler: Popen[bytes] | None = None
        self._folders = WatcherSupervisor(hear)

    def put_off(self) -> None:
        """Delay the next embedding check, because a call has just been handled."""
        self._due = time.monotonic() + EMBED_AFTER_CALL

    def seconds(self) -> float:
        """Return the seconds until the next check is due."""
        return max(0.0, min(self._due, self._folders.due) - time.monotonic())

    def look(self, brain: Brain) -> None:
        """Run the checks that are due."""
        if self._folders.due <= time.monotonic():
            self._folders.look(brain)
        if self._due <= time.monotonic():
            self._look_for_vectors(brain)

    def _look_for_vectors(self, brain: Brain) -> None:
        """Start an embedder if vectors are missing and no process is computing them."""
        self._due = time.monotonic() + (EMBED_AFTER_CALL if self._filler else EMBED_INTERVAL)
        if self._is_at_work(brain) or not self._watch.wants(brain):
            return
        self._filler = _start_embedder(brain.settings.db_path)
        self._due = time.monotonic() + EMBED_AFTER_CALL

    def end(self) -> None:
        """Stop all helper processes."""
        for each in (self._filler, self._folders.watcher):
            if each is not None:
                release_helper(each)  # signal both before waiting for either
        self._folders.end()
        if self._filler is not None:
            end_helper(self._filler)
            self._filler = None

    def _is_at_work(self, brain: Brain) -> bool:
        if self._filler is None:
            return False
        status = self._filler.poll()
        if status is None:
            return True
        release_helper(self._filler)
        self._filler = None
        if status:
            record_exit(brain, f"the process that makes vectors ended with status {status}")
        return False


def _start_embedder(path: str) -> "Popen[bytes]":
    return start_helper("quaid.mcp.worker", path)


EMBEDDER_NICENESS = 10  # of 19: yield to other processes


def main(path: str) -> int:
    """Embed the missing texts of the memory at this path."""
    if hasattr(os, "nice"):
        os.nice(EMBEDDER_NICENESS)
    # Exiting at any point is safe: SQLite rolls back an unfinished transaction.
    on_server_exit(lambda: os._exit(0))
    try:
        with Brain(config.read_settings(path, os.environ, os.path.dirname(path))) as brain:
            background.embed_missing(brain)
    except QuaidError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
