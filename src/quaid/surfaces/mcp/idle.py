"""What a server does while nobody asks: it looks whether vectors are missing, and has them made.

The looking is a few statements; the making is a process of its own (`filler`), so that no client's server has to
carry a model for it. A look comes some seconds after the start, after each pause behind a call, and every minute.
"""

import os
import sys
import time
from typing import TYPE_CHECKING

from quaid.brain import Brain
from quaid.ops.background import Watch, note_end

if TYPE_CHECKING:
    from subprocess import Popen

AFTER_START, AFTER_CALL, OTHERWISE = 3.0, 2.0, 60.0  # seconds
SECONDS_TO_END = 1.0
NO_WINDOW_LOW_PRIORITY = 0x08004000  # on Windows


class Idle:
    """Due from time to time. Belongs to the thread that owns the memory."""

    def __init__(self) -> None:
        self._due = time.monotonic() + AFTER_START
        self._watch = Watch()
        self._filler: Popen[bytes] | None = None

    def put_off(self) -> None:
        """Somebody has just asked something."""
        self._due = time.monotonic() + AFTER_CALL

    def seconds(self) -> float:
        """Until the next look is due."""
        return max(0.0, self._due - time.monotonic())

    def look(self, brain: Brain) -> None:
        """Have vectors made if some are missing and nobody is at it."""
        self._due = time.monotonic() + (AFTER_CALL if self._filler else OTHERWISE)
        if self._is_at_work(brain) or not self._watch.wants(brain):
            return
        self._filler = _start(brain.settings.db_path)
        self._due = time.monotonic() + AFTER_CALL

    def end(self) -> None:
        """Have the process ended that makes vectors."""
        if self._filler is None:
            return
        _release(self._filler)
        try:
            self._filler.wait(SECONDS_TO_END)
        except Exception:  # it hangs
            self._filler.kill()
            self._filler.wait()
        self._filler = None

    def _is_at_work(self, brain: Brain) -> bool:
        if self._filler is None:
            return False
        status = self._filler.poll()
        if status is None:
            return True
        _release(self._filler)
        self._filler = None
        if status:
            note_end(brain, f"the process that makes vectors ended with status {status}")
        return False


def _start(path: str) -> "Popen[bytes]":
    import subprocess  # half a megabyte, so not before it is needed

    # -P: without it Python would look for modules in the folder that the client happens to stand in.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "quaid.surfaces.mcp.filler", os.path.abspath(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=NO_WINDOW_LOW_PRIORITY if os.name == "nt" else 0,
    )


def _release(filler: "Popen[bytes]") -> None:
    if filler.stdin:
        filler.stdin.close()
