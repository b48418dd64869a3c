"""What a server does by itself: it looks whether something changed and tells those who listen; and, like `quaid
serve`, it has attached folders watched and missing vectors made, by processes of their own.

One thread with a brain of its own. What goes wrong here is told by `quaid status`, not to whoever happens to ask.
"""

import time
from threading import Event, Thread
from typing import Any

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import QuaidError
from quaid.mcp.server import log_to_stderr
from quaid.mcp.worker import HelperSupervisor
from quaid.operations.background import ChangeDetector
from quaid.surfaces.web.crew import CACHE_KIB, Tell

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_TRIES = 10.0


class Upkeep:
    def __init__(self, settings: Settings, tell: Tell, *, cares: bool) -> None:
        self._settings, self._tell = settings, tell
        self._ending = Event()
        self._complaints: set[str] = set()
        self._idle = HelperSupervisor(self._heard) if cares else None
        self._thread = Thread(target=self._work, name="upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ending.set()

    def is_over(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while not self._ending.is_set():
            try:
                with Brain(self._settings, unwanted=self._ending.is_set) as brain:
                    brain.db.keep_small(CACHE_KIB // 4)
                    self._look(brain)
            except QuaidError:  # a memory that is not there yet, is locked, or was moved away
                self._ending.wait(SECONDS_BETWEEN_TRIES)
            except Exception as error:
                self._complain(error)
                self._ending.wait(SECONDS_BETWEEN_TRIES)
        if self._idle is not None:
            self._idle.end()

    def _complain(self, error: Exception) -> None:
        """Say once what failed, without a word of any page."""
        problem = f"quaid: work in the background failed ({type(error).__name__}); it is tried again"
        if problem not in self._complaints:
            self._complaints.add(problem)
            log_to_stderr(problem)

    def _look(self, brain: Brain) -> None:
        pulse = ChangeDetector()
        while not self._ending.is_set():
            for news in pulse.look(brain):
                self._tell(news.kind, news.facts)
            if self._idle is not None and self._idle.seconds() == 0:
                self._idle.look(brain)
            self._ending.wait(SECONDS_BETWEEN_LOOKS)

    def _heard(self, event: dict[str, Any]) -> None:
        """Something that the process which watches folders has to tell."""
        self._tell("files", {**event, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
