"""What a server does while nobody asks: it looks whether vectors are missing, and has them made.

The looking is a few statements; the making is a process of its own (`filler`), so that no client's server has to
carry a model for it. A look comes some seconds after the start, after each pause behind a call, and every minute.
Attached folders are looked after in the same pauses (`folders`).
"""

import time
from typing import TYPE_CHECKING

from quaid.brain import Brain
from quaid.operations.background import EmbeddingMonitor, record_exit
from quaid.surfaces.mcp import children
from quaid.surfaces.mcp.folders import Folders, Hear

if TYPE_CHECKING:
    from subprocess import Popen

AFTER_START, AFTER_CALL, OTHERWISE = 3.0, 2.0, 60.0  # seconds


class Idle:
    """Due from time to time. Belongs to the thread that owns the memory."""

    def __init__(self, hear: Hear | None = None) -> None:
        self._due = time.monotonic() + AFTER_START
        self._watch = EmbeddingMonitor()
        self._filler: Popen[bytes] | None = None
        self._folders = Folders(hear)

    def put_off(self) -> None:
        """Somebody has just asked something."""
        self._due = time.monotonic() + AFTER_CALL

    def seconds(self) -> float:
        """Until the next look is due."""
        return max(0.0, min(self._due, self._folders.due) - time.monotonic())

    def look(self, brain: Brain) -> None:
        """Do what is due."""
        if self._folders.due <= time.monotonic():
            self._folders.look(brain)
        if self._due <= time.monotonic():
            self._look_for_vectors(brain)

    def _look_for_vectors(self, brain: Brain) -> None:
        """Have vectors made if some are missing and nobody is at it."""
        self._due = time.monotonic() + (AFTER_CALL if self._filler else OTHERWISE)
        if self._is_at_work(brain) or not self._watch.wants(brain):
            return
        self._filler = _start(brain.settings.db_path)
        self._due = time.monotonic() + AFTER_CALL

    def end(self) -> None:
        """Have the processes ended that make vectors and watch."""
        for each in (self._filler, self._folders.watcher):
            if each is not None:
                children.release(each)  # both at once, then wait for each
        self._folders.end()
        if self._filler is not None:
            children.end(self._filler)
            self._filler = None

    def _is_at_work(self, brain: Brain) -> bool:
        if self._filler is None:
            return False
        status = self._filler.poll()
        if status is None:
            return True
        children.release(self._filler)
        self._filler = None
        if status:
            record_exit(brain, f"the process that makes vectors ended with status {status}")
        return False


def _start(path: str) -> "Popen[bytes]":
    return children.start("quaid.surfaces.mcp.filler", path)
