"""Who watches the folders of a memory: whether somebody should, and the lease of the one who does.

Not operations. The lease is held by a thread that says every few seconds that we live, however long a sync takes.
Loads nothing that watching needs: every server asks here.
"""

import os
from threading import Event, Thread
from typing import NamedTuple

from quaid.brain import Brain
from quaid.errors import QuaidError
from quaid.storage import collections
from quaid.storage.collections import HEARTBEAT_SECONDS, STALE_SECONDS, WatchLeases, WatchSession

SECONDS_TO_LEAVE = 1.0
"""A memory that is busy for longer is not told that we go; others find out."""


class Rhythm(NamedTuple):
    """Seconds between two signs of life, and after which silence means death."""

    beat: float = HEARTBEAT_SECONDS
    stale: float = STALE_SECONDS


RHYTHM = Rhythm()


class Wanted(NamedTuple):
    watcher: bool
    """A folder is watched by nobody."""
    soon: bool
    """And whoever watches another one may take it in a moment."""


def wanted(brain: Brain, rhythm: Rhythm = RHYTHM) -> Wanted:
    """Whether somebody should be sent to watch."""
    if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
        return Wanted(False, False)
    standing = collections.read_leases(brain.db, session(brain, rhythm), brain.now)
    return Wanted(bool(standing.free), bool(standing.free and standing.others))


class Lease:
    """The right to watch, kept alive by a thread while this is entered."""

    def __init__(self, brain: Brain, name: str | None = None, rhythm: Rhythm = RHYTHM) -> None:
        self.standing = WatchLeases(frozenset(), (), ())
        self._brain = brain
        self._name = name
        self._seconds = rhythm.beat
        self._me = session(brain, rhythm)
        self._ending = Event()
        self._thread = Thread(target=self._keep, name="lease", daemon=True)

    def beat(self) -> None:
        """Say that we live, and take what is free. Who has nothing and finds nothing writes nothing."""
        standing = collections.read_leases(self._brain.db, self._me, self._brain.now, self._name)
        if standing.mine or standing.free:
            standing = collections.take_leases(self._brain.db, self._me, self._brain.now, self._name)
        self.standing = standing

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(SECONDS_TO_LEAVE)
        lock = self._brain.db.lock
        before, lock.patience = lock.patience, SECONDS_TO_LEAVE
        try:
            collections.release_leases(self._brain.db, self._me)
        except QuaidError:
            pass  # it counts as silent soon
        finally:
            lock.patience = before

    def _keep(self) -> None:
        while not self._ending.wait(self._seconds):
            try:
                self.beat()
            except Exception:  # noqa: S110 (a memory that is busy, full or just closed: the next beat tries again)
                pass


def session(brain: Brain, rhythm: Rhythm = RHYTHM) -> WatchSession:
    """This process, as others know it."""
    return WatchSession(brain.new_uuid(), os.getpid(), _host(), rhythm.stale)


def _host() -> str:
    """Where the numbers of processes mean the same: the machine, and the container on it."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        return f"{name} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return name
