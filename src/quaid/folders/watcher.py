"""Watch folders and sync them when files change.

A change event is only a hint. The files that events name are synced after a quiet period, and the whole
folder is rescanned every few minutes and after an ambiguous event.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from typing import Any, NamedTuple

from quaid.errors import Busy, Cancelled, QuaidError
from quaid.folders import indexer, scanner, sync
from quaid.folders.scanner import FileNote
from quaid.folders.sync import SyncReport
from quaid.storage.collections import Collection, Collections
from quaid.storage.sqlite.connection import Database

MAX_HINTS = 100
"""Maximum number of changed files that are synced one by one. A rescan of the folder is faster for more."""

ADDED, MODIFIED, DELETED = 1, 2, 3  # the values that watchfiles uses


class WatchPace(NamedTuple):
    """Intervals of a watcher, in seconds."""

    debounce: float = 1.5
    """Quiet time after the last change before the changes are synced."""
    longest: float = 10.0
    """Maximum time that a change waits for a quiet period."""
    look: float = 3.0
    """Interval at which the list of folders and their identities are checked."""
    rescan: float = 300.0
    poll: float = 30.0
    """Interval between rescans where the system does not report changes."""
    retry: float = 10.0
    """Delay after an error."""
    step: float = 0.1
    """Interval at which change events are polled."""
    first: float = 0.0
    """Delay before the first scan of a folder."""


DEFAULT_PACE = WatchPace()


class WatchBegan(NamedTuple):
    collection: str
    root: str


class WatchSynced(NamedTuple):
    """Reports a sync that changed something, has new notes or a new state, or is the first of its folder."""

    sync: SyncReport
    whole: bool
    notes: tuple[FileNote, ...] = ()
    """Notes that were not reported before."""


class WatchTrouble(NamedTuple):
    collection: str
    problem: str
    remedy: str


class ChangeHints:
    """A source of change events.

    This base class yields no events. It is used if the system does not report changes.
    """

    def __init__(self, stop: Event) -> None:
        self._stop = stop

    def wait(self, seconds: float) -> set[tuple[int, str]]:
        """Return changes, or an empty set after the timeout.

        Raise OSError or RuntimeError if the source fails.
        """
        self._stop.wait(seconds)
        return set()

    def close(self) -> None:
        """End the subscription."""


class SystemHints(ChangeHints):
    """A source of change events that uses watchfiles."""

    def __init__(self, roots: list[str], stop: Event, step: float) -> None:
        from watchfiles._rust_notify import RustNotify  # the API that needs no event loop

        super().__init__(stop)
        self._step = round(1000 * step)
        self._notify = RustNotify(roots, False, False, 0, True, True)

    def wait(self, seconds: float) -> set[tuple[int, str]]:
        changes = self._notify.watch(self._step, self._step, max(1, round(1000 * seconds)), self._stop)
        return changes if isinstance(changes, set) else set()

    def close(self) -> None:
        self._notify.close()


class _WatchedFolder:
    """A watched folder and the change events waiting to be synced."""

    def __init__(self, collection: Collection, rescan_at: float = 0.0) -> None:
        self.collection = collection
        self.root = collection.root or ""
        self.identity = _folder_identity(self.root)
        self.hints: set[str] = set()
        self.is_unsure = False
        """True if the whole folder has to be scanned: an event was ambiguous, or there are too many hints."""
        self.first = self.last = 0.0
        self.rescan_at = rescan_at
        self.rescan_seconds = 0.0
        self.halted: str | None = None
        self.reported: set[FileNote] = set()
        """Notes of the last scan of the whole folder and of the syncs after it."""

    def forget_hints(self) -> None:
        self.hints, self.is_unsure, self.first = set(), False, 0.0

    def heard(self, at: float) -> None:
        self.first, self.last = self.first or at, at

    def due_at(self, pace: WatchPace) -> float:
        """Return when the folder is to be synced next, in monotonic seconds."""
        if not self.hints and not self.is_unsure:
            return self.rescan_at
        return min(self.rescan_at, self.last + pace.debounce, self.first + pace.longest)


class Watcher:
    def __init__(
        self,
        db: Database,
        *,
        now: Callable[[], str],
        new_uuid: Callable[[], str],
        tell: Callable[[Any], None],
        stop: Event,
        pace: WatchPace = DEFAULT_PACE,
        source: Callable[[list[str], Event, float], ChangeHints] = SystemHints,
    ) -> None:
        self.db, self.now, self.new_uuid = db, now, new_uuid
        self.tell, self.stop, self.pace, self.source = tell, stop, pace, source
        self._folders: dict[int, _WatchedFolder] = {}
        self._hints: ChangeHints = ChangeHints(stop)
        self._watched: set[tuple[str, object]] = set()
        self._is_blind = False
        self._look_at = self._open_again_at = 0.0

    def run(self, which: Callable[[], frozenset[int] | None]) -> None:
        """Watch the collections that `which` returns, until it returns None or `stop` is set."""
        try:
            while not self.stop.is_set() and (chosen := which()) is not None:
                try:
                    self._round(chosen)
                except Exception as error:  # the watcher must survive any error
                    self.tell(WatchTrouble("", error_text(error), "it is tried again"))
                    self.stop.wait(self.pace.retry)
        finally:
            self._hints.close()

    def _round(self, chosen: frozenset[int]) -> None:
        if time.monotonic() >= self._look_at or chosen != self._folders.keys():
            self._look(chosen)
        self._listen()
        for folder in list(self._folders.values()):
            if not self.stop.is_set() and time.monotonic() >= folder.due_at(self.pace):
                self._sync(folder)

    def once(self, chosen: frozenset[int]) -> bool:
        """Sync the folder of each chosen collection once. Return True if no sync was halted."""
        self._choose(chosen)
        for folder in self._folders.values():
            self._sync(folder)
        return not any(folder.halted for folder in self._folders.values())

    # Choice of folders

    def _look(self, chosen: frozenset[int]) -> None:
        """Update the list of folders and the subscription. Schedule a rescan of each folder that was replaced."""
        self._look_at = time.monotonic() + self.pace.look
        for new in self._choose(chosen):
            self.tell(WatchBegan(new.name, new.root or ""))
        for folder in self._folders.values():
            identity = _folder_identity(folder.root)
            if identity != folder.identity:
                folder.identity, folder.rescan_at = identity, 0.0
        roots = {(folder.root, folder.identity) for folder in self._folders.values() if folder.identity}
        if roots != self._watched or (self._is_blind and time.monotonic() >= self._open_again_at):
            self._open(roots)

    def _choose(self, chosen: frozenset[int]) -> list[Collection]:
        """Update the watched folders to the active ones of the chosen collections. Return the new collections."""
        present = {
            collection.id: collection
            for collection in Collections(self.db).all()
            if collection.id in chosen and collection.is_attached
        }
        for id, folder in list(self._folders.items()):
            if id not in present or present[id].root != folder.root:
                del self._folders[id]
        new = [collection for id, collection in present.items() if id not in self._folders]
        at = time.monotonic() + self.pace.first
        self._folders.update({collection.id: _WatchedFolder(collection, at) for collection in new})
        return new

    def _open(self, roots: set[tuple[str, object]]) -> None:
        """Subscribe to change events for these folders."""
        self._hints.close()
        self._hints, self._watched, was_blind = ChangeHints(self.stop), roots, self._is_blind
        self._is_blind = False
        if not roots:
            return
        try:
            self._hints = self.source(sorted(root for root, _ in roots), self.stop, self.pace.step)
        except (OSError, RuntimeError, ImportError) as error:
            self._is_blind, self._open_again_at = True, time.monotonic() + self.pace.rescan
            if not was_blind:
                self._tell_blind(str(error))

    def _tell_blind(self, problem: str) -> None:
        names = ", ".join(folder.collection.name for folder in self._folders.values())
        remedy = f"every file is looked at every {self.pace.poll:.0f} s instead"
        if "limit" in problem or "space" in problem:
            remedy += "; more changes can be told of with a higher fs.inotify.max_user_watches"
        self.tell(WatchTrouble(names, f"the system tells of no changes ({problem})", remedy))

    # Change events

    def _listen(self) -> None:
        """Wait for change events until the next sync or _look() is due, and record them for their folders."""
        due = min([self._look_at, *(folder.due_at(self.pace) for folder in self._folders.values())])
        seconds = due - time.monotonic()
        if seconds <= 0:
            return
        try:
            changes = self._hints.wait(seconds)
        except (OSError, RuntimeError):
            self._hints.close()
            self._hints, self._watched, changes = ChangeHints(self.stop), set(), set()
            self._look_at = time.monotonic() + min(1.0, self.pace.look)  # when _look() subscribes again
            for folder in self._folders.values():
                folder.is_unsure = True
                folder.heard(time.monotonic())
        for kind, path in changes:
            for folder in self._folders.values():
                if (path + os.sep).startswith(folder.root.rstrip(os.sep) + os.sep):
                    self._hear(folder, kind, path)

    def _hear(self, folder: _WatchedFolder, kind: int, path: str) -> None:
        """Process one change event."""
        relative = path[len(folder.root) :].strip(os.sep).replace(os.sep, "/")
        is_sidecar = indexer.is_sidecar(relative)
        if relative and relative != scanner.IGNORE_FILE and not is_sidecar and _is_skipped_path(relative):
            return
        if not folder.is_unsure and self._is_plain(folder, kind, path, relative):
            if not is_sidecar and not relative.lower().endswith(scanner.page_endings(folder.collection.kind)):
                return  # not a page, for example a temporary file or a picture
            folder.hints.add(relative)
            folder.is_unsure = len(folder.hints) > MAX_HINTS
        else:
            folder.is_unsure = True
        folder.heard(time.monotonic() - self.pace.step)

    def _is_plain(self, folder: _WatchedFolder, kind: int, path: str, relative: str) -> bool:
        """Return True if the event concerns a single file, so that no scan of the folder is needed."""
        if not relative or relative == scanner.IGNORE_FILE or kind not in (ADDED, MODIFIED, DELETED):
            return False
        if os.path.isdir(path) and not os.path.islink(path):
            return False
        return not (kind == DELETED and folder.collection.paths_beginning(self.db, f"{relative}/", 1))

    def _sync(self, folder: _WatchedFolder) -> None:
        started = time.monotonic()
        whole = folder.is_unsure or started >= folder.rescan_at
        only = None if whole else sorted(folder.hints)
        folder.forget_hints()  # events from now on belong to the next sync
        try:
            report = self._synced(folder, only)
        except Cancelled:
            return
        except Exception as error:  # an error in one folder must not stop the others
            folder.rescan_at = time.monotonic() + self.pace.retry
            self._fail(folder, error)
            return
        if report is None:
            return
        is_first = not folder.rescan_seconds
        if whole:
            folder.rescan_seconds = max(time.monotonic() - started, 0.001)
            calm = max(self.pace.poll, 20 * folder.rescan_seconds) if self._is_blind else self.pace.rescan
            folder.rescan_at = time.monotonic() + calm
        self._tell(folder, report, whole, is_first)

    def _fail(self, folder: _WatchedFolder, error: Exception) -> None:
        """Report a failed sync, and store the failure so that `quaid doctor` shows it."""
        problem = error_text(error)
        folder.halted = f"the last sync failed: {problem}"
        if not isinstance(error, Busy):  # a locked database is temporary
            record_sync_failure(self.db, folder.collection, problem, self.now())
        self.tell(WatchTrouble(folder.collection.name, problem, "it is tried again"))

    def _synced(self, folder: _WatchedFolder, only: list[str] | None) -> SyncReport | None:
        collection = Collections(self.db).find(folder.collection.name)
        if collection is None or collection.id != folder.collection.id or collection.root != folder.root:
            return None  # the collection was removed or moved in the meantime
        folder.collection = collection
        return sync.sync_collection(
            self.db,
            collection,
            now=self.now(),
            new_uuid=self.new_uuid,
            progress=self._progress,
            only=only,
        )

    def _progress(self, _done: int, _total: int, _what: str) -> None:
        if self.stop.is_set():
            raise Cancelled

    def _tell(self, folder: _WatchedFolder, report: SyncReport, whole: bool, is_first: bool) -> None:
        news = report.raw_data or report.new or report.changed or report.moved or report.removed
        is_back = whole and folder.halted and not report.halted
        notes = tuple(note for note in report.notes if note not in folder.reported)
        folder.reported = {*report.notes} if whole else {*folder.reported, *report.notes}
        if news or is_first or is_back or notes or (report.halted and report.halted != folder.halted):
            self.tell(WatchSynced(report, whole, notes))
        if whole or report.halted:
            folder.halted = report.halted


def error_text(error: Exception) -> str:
    """Return a one-line description of an error."""
    if isinstance(error, QuaidError | OSError):
        return str(error).rstrip(".")
    return f"Quaid itself failed ({type(error).__name__}: {error}). That is a bug: please report it"


def record_sync_failure(db: Database, collection: Collection, problem: str, now: str) -> None:
    """Record on a collection that its last sync failed; the next successful sync clears the record."""
    reason = f"the last sync failed: {problem}"
    with suppress(QuaidError):  # a database that cannot be written is reported elsewhere
        db.write(lambda tx: collection.record_sync(tx, now, halted=reason))


def _folder_identity(root: str) -> object:
    """Return the device and inode of a folder; None if it does not exist. They change if the folder is replaced."""
    try:
        status = os.stat(root)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _is_skipped_path(relative: str) -> bool:
    """Return True if a walk would not reach this path."""
    passed = (*scanner.SKIPPED_FOLDERS, scanner.TEMPLATES_FOLDER[:-1])
    return any(name.startswith(".") or name in passed for name in relative.split("/"))
