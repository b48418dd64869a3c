"""Attached folders and the server: it looks whether somebody watches them, and has it done if nobody does.

The looking is one statement every few seconds; the watching is a process of its own (`watcher`), so that of many
servers on one memory only one has to carry it.
"""

import time
from typing import TYPE_CHECKING

from quaid.brain import Brain
from quaid.ops import leasing
from quaid.surfaces.mcp import children

if TYPE_CHECKING:
    from subprocess import Popen

AFTER_START, BETWEEN_LOOKS, AFTER_FAILURE = 3.0, 3.0, 60.0  # seconds
RHYTHM = leasing.RHYTHM
MODULE = "quaid.surfaces.mcp.watcher"
MOST_TRIES = 3
"""Watchers in a row that ended at once; whoever comes next waits longer."""


class Folders:
    """Due from time to time. Belongs to the thread that owns the memory."""

    def __init__(self) -> None:
        self.due = time.monotonic() + AFTER_START
        self.watcher: Popen[bytes] | None = None
        self._started = 0.0
        self._tries = 0
        self._saw_free = False

    def look(self, brain: Brain) -> None:
        """Have folders watched that nobody watches."""
        self.due = time.monotonic() + BETWEEN_LOOKS
        if self._is_at_work():
            return
        wanted = leasing.wanted(brain, RHYTHM)
        # Whoever watches one folder takes a new one too: leave him the time of a look.
        if wanted.watcher and (self._saw_free or not wanted.soon) and time.monotonic() >= self._started:
            self.watcher = children.start(MODULE, brain.settings.db_path)
            self._started = time.monotonic()
        self._saw_free = wanted.watcher

    def end(self) -> None:
        """Have the process ended that watches."""
        if self.watcher is not None:
            children.end(self.watcher)
            self.watcher = None

    def _is_at_work(self) -> bool:
        if self.watcher is None:
            return False
        if self.watcher.poll() is None:
            return True
        children.release(self.watcher)
        soon = time.monotonic() - self._started < 2 * BETWEEN_LOOKS
        self._tries = self._tries + 1 if soon else 0
        self._started = time.monotonic() + (AFTER_FAILURE if self._tries >= MOST_TRIES else 0.0)
        self.watcher = None
        return False
