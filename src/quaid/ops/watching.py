"""Keeping folders fresh as long as a process lives: `quaid watch`, and the process that a server starts for it.

Not operations. Who may watch is told by leasing.py, how it is done by folders/watcher.py.
"""

from collections.abc import Callable
from threading import Event
from typing import Any, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument, NotFound
from quaid.folders import watcher
from quaid.folders.watcher import DEFAULT_PACE, Watcher, WatchPace
from quaid.ops.leasing import RHYTHM, Lease, Rhythm
from quaid.storage import collections
from quaid.storage.collections import WatchOwner

Tell = Callable[[Any], None]


class WatchStandby(NamedTuple):
    """Other processes watch these collections."""

    owners: tuple[WatchOwner, ...]


def watch(
    brain: Brain,
    tell: Tell,
    stop: Event,
    *,
    name: str | None = None,
    patient: bool = True,
    rhythm: Rhythm = RHYTHM,
    pace: WatchPace = DEFAULT_PACE,
) -> None:
    """Watch all folders, or one, until told to stop. Who is not patient ends when others watch them."""
    if patient:
        folders(brain, name)
    lease = Lease(brain, name, rhythm)
    told: tuple[WatchOwner, ...] = ()

    def which() -> frozenset[int] | None:
        nonlocal told
        standing = lease.standing
        if standing.others != told:
            told = standing.others
            if told:
                tell(WatchStandby(told))
        return standing.mine if standing.mine or patient else None

    lease.beat()
    with lease:
        _watcher(brain, tell, stop, pace).run(which)


def note_failure(brain: Brain, problem: str) -> None:
    """Keep beside every attached folder that the process which watches them failed."""
    for each in collections.list_all(brain.db):
        if each.root and each.state == "active" and not each.halt_reason:
            watcher.record_sync_failure(brain.db, each, problem, brain.now())


def look_once(brain: Brain, tell: Tell, name: str | None = None) -> bool:
    """Bring all folders, or one, up to date. Is all well?"""
    return _watcher(brain, tell, Event(), DEFAULT_PACE).once(folders(brain, name))


def folders(brain: Brain, name: str | None) -> frozenset[int]:
    """The collections that can be watched; an error says so when there is none."""
    chosen = [collections.require(brain.db, name)] if name else collections.list_all(brain.db)
    found = frozenset(each.id for each in chosen if each.root and each.state == "active")
    if not found and name:
        raise InvalidArgument(name="name", problem=f"{name} has no folder that could be watched")
    if not found:
        hint = " `quaid collection add NAME FOLDER` attaches one."
        raise NotFound(what="folder", name="to watch", hint=hint)
    return found


def _watcher(brain: Brain, tell: Tell, stop: Event, pace: WatchPace) -> Watcher:
    quiet, _ = brain.settings.said("sync.watch_debounce_ms")
    pace = pace if quiet is None else pace._replace(debounce=quiet / 1000)
    if not brain.settings.option("sync.sync_on_start"):
        pace = pace._replace(first=pace.rescan)
    return Watcher(brain.db, now=brain.now, new_uuid=brain.new_uuid, tell=tell, stop=stop, pace=pace)
