"""Attached folders and the server: it looks whether somebody watches them, and has it done if nobody does.

The looking is one statement every few seconds; the watching is a process of its own (`watcher`), so that of many
servers on one memory only one has to carry it.
"""

import json
import time
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any

from quaid.brain import Brain
from quaid.operations import background
from quaid.surfaces.mcp import children

if TYPE_CHECKING:
    from subprocess import Popen

AFTER_START, BETWEEN_LOOKS, AFTER_FAILURE = 3.0, 3.0, 60.0  # seconds
RHYTHM = background.HEARTBEAT
MODULE = "quaid.surfaces.mcp.watcher"
Hear = Callable[[dict[str, Any]], None]
MOST_TRIES = 3
"""Watchers in a row that ended at once; whoever comes next waits longer."""


class Folders:
    """Due from time to time. Belongs to the thread that owns the memory."""

    def __init__(self, hear: "Hear | None" = None) -> None:
        self.due = time.monotonic() + AFTER_START
        self._hear = hear
        self.watcher: Popen[bytes] | None = None
        self._started = 0.0
        self._tries = 0
        self._saw_free = False

    def look(self, brain: Brain) -> None:
        """Have folders watched that nobody watches."""
        self.due = time.monotonic() + BETWEEN_LOOKS
        if self._is_at_work(brain):
            return
        wanted = background.watch_demand(brain, RHYTHM)
        # Whoever watches one folder takes a new one too: leave him the time of a look.
        if wanted.watcher and (self._saw_free or not wanted.soon) and time.monotonic() >= self._started:
            self.watcher = self._begun(brain.settings.db_path)
            self._started = time.monotonic()
        self._saw_free = wanted.watcher

    def _begun(self, path: str) -> "Popen[bytes]":
        if self._hear is None:
            return children.start(MODULE, path)
        watcher = children.start(MODULE, path, "--tell", heard=True)
        Thread(target=_listen, args=(watcher, self._hear), name="watcher", daemon=True).start()
        return watcher

    def end(self) -> None:
        """Have the process ended that watches."""
        if self.watcher is not None:
            children.end(self.watcher)
            self.watcher = None

    def _is_at_work(self, brain: Brain) -> bool:
        if self.watcher is None:
            return False
        status = self.watcher.poll()
        if status is None:
            return True
        children.release(self.watcher)
        if status:
            self._note_end(brain, status)
        soon = time.monotonic() - self._started < 2 * BETWEEN_LOOKS
        self._tries = self._tries + 1 if soon else 0
        self._started = time.monotonic() + (AFTER_FAILURE if self._tries >= MOST_TRIES else 0.0)
        self.watcher = None
        return False

    def _note_end(self, brain: Brain, status: int) -> None:
        """Leave word that a watcher died, unless it did so itself."""
        from quaid.operations.collections import record_watch_failure

        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        record_watch_failure(brain, f"the process that watches folders {how}")


def _listen(watcher: "Popen[bytes]", hear: Hear) -> None:
    """Pass on what a watcher says, a line for each event, until it ends."""
    if watcher.stdout is None:
        return
    with watcher.stdout as lines:
        for line in lines:
            try:
                hear(json.loads(line))
            except ValueError:
                pass
