"""The worker processes of a server, which embed text, watch folders and sync shared spaces, and their supervision.

A server decides here whether work is due and starts `python -m quaid.worker JOB PATH`. The standard input of
a worker is a pipe held open by the server; when the pipe closes, the worker exits. Leases
(storage/leases.py), each held by one process at a time, keep several servers of a memory from doing the same
job. Embedding is a process apart, because a loaded model takes ten times the RAM of the others, and is freed when
its process exits. Shared spaces are synced by another one, which waits for hubs.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from quaid import config
from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.storage import collections as stored_collections, embedding_queue, leases, spaces as stored_spaces
from quaid.storage.embedding_queue import EmbeddedRange

if TYPE_CHECKING:
    from subprocess import Popen

    from quaid.folders.watcher import WatchPace

    EventListener = Callable[[dict[str, Any]], None]

# The operations are imported where they are used, because the import takes 100 ms, which would delay a
# server's first answer.

# Durations in seconds
START_DELAY = 3.0
WATCH_INTERVAL, EMBED_INTERVAL = 3.0, 60.0
LONGEST_DELAY = 20.0  # the longest time for which calls can delay the check for missing vectors
CALL_DELAY = 2.0  # delay between a call and the next check for missing vectors
FAILURE_DELAY = 60.0
EXIT_TIMEOUT = 1.0
STOP_TIMEOUT = 0.7  # time in which a watcher must finish its sync; less than EXIT_TIMEOUT

MAX_EARLY_EXITS = 3
"""After this many watchers in a row have exited early, the next start is delayed by FAILURE_DELAY."""

WORKER_MODULE = "quaid.worker"
WINDOWS_CREATION_FLAGS = 0x08004000  # CREATE_NO_WINDOW | BELOW_NORMAL_PRIORITY_CLASS
# From 0 to 19; higher values yield more to other processes, but a watcher should notice edits soon.
NICENESS = {"embed": 10, "watch": 5, "sync": 5}


class EmbeddingMonitor:
    """Decides when a server should start an embedding process. The state is kept between checks."""

    def __init__(self) -> None:
        self._stamp: tuple[int, int] | None = None
        self._whole: EmbeddedRange | None = EmbeddedRange()  # None if some text has no vector
        self._tried: tuple[int, int] | None = None  # the value of _stamp when embedding was last started
        self._troubled = False  # True if the previous check found a recorded failure

    def wants(self, brain: Brain) -> bool:
        """Return True if an embedding process should be started now."""
        from quaid.operations import background

        if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
            return False
        stamp = brain.db.change_stamp()
        if stamp != self._stamp:
            self._whole = embedding_queue.embedded_range(
                brain.db, self._whole or EmbeddedRange(), background.turns_since(brain)
            )
            self._stamp = stamp
        if (
            self._whole is not None
            or not background.is_embedding_on(brain)
            or embedding_queue.current_run(brain.db.path)
        ):
            return False
        failed = embedding_queue.last_failure(brain.db.path) is not None
        recovered, self._troubled = self._troubled and not failed, failed
        if background.failed_recently(brain):
            is_due = stamp[1] != (self._tried[1] if self._tried else 0)
        else:
            # A further run on the same state would fail again, unless the model has recovered.
            is_due = recovered or failed or self._tried != stamp
        if is_due:
            self._tried = stamp
        return is_due


class WorkerProcess:
    """A worker process of a server. It may not be running."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._process: Popen[bytes] | None = None
        self._started = 0.0
        self._early_exits = 0
        self.not_before = 0.0

    def start(self, path: str, hear: "EventListener | None" = None) -> "Popen[bytes]":
        """Start the worker for the memory at this path. `hear` is called with the events of the worker."""
        import subprocess  # takes half a megabyte, so import it only when needed

        flags = ["--tell"] if hear else []
        # -P keeps Python from importing modules from the client's working folder.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", WORKER_MODULE, self._job, os.path.abspath(path), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if hear else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=WINDOWS_CREATION_FLAGS if os.name == "nt" else 0,
        )
        self._started = time.monotonic()
        if hear:
            Thread(target=_forward_events, args=(self._process, hear), name="watcher", daemon=True).start()
        return self._process

    def is_running(self, brain: Brain) -> bool:
        """Return True if the worker runs.

        If it has failed, record the failure for `quaid doctor` and `quaid status`.
        """
        if self._process is None:
            return False
        status = self._process.poll()
        if status is None:
            return True
        self.release()
        self._process = None
        if status:
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            _record_failure(brain, self._job, how)
        is_early = time.monotonic() - self._started < 2 * WATCH_INTERVAL
        self._early_exits = self._early_exits + 1 if is_early else 0
        if self._early_exits >= MAX_EARLY_EXITS:
            self.not_before = time.monotonic() + FAILURE_DELAY
        return False

    def release(self) -> None:
        """Close the standard input of the worker, which makes the worker exit."""
        if self._process is not None and self._process.stdin:
            self._process.stdin.close()

    def end(self) -> None:
        """Stop the worker, killing it after a timeout."""
        if self._process is None:
            return
        from subprocess import TimeoutExpired

        self.release()
        try:
            self._process.wait(EXIT_TIMEOUT)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _record_failure(brain: Brain, job: str, how: str) -> None:
    """Record that a worker died, unless an embedding worker has just recorded a failure itself."""
    from quaid.operations import background, collections

    if job == "watch":
        collections.record_watch_failure(brain, f"the process that watches folders {how}")
    elif job == "sync":
        _record_sync_failure(brain, f"the process that syncs shared spaces {how}")
    elif not background.failed_recently(brain):
        model = stored_collections.get_setting(brain.db, "embedding_model") or ""
        background.record_failure(brain, model, f"the process that makes vectors {how}")


def _record_sync_failure(brain: Brain, problem: str) -> None:
    for space in stored_spaces.list_spaces(brain.db):
        brain.db.write(
            partial(stored_spaces.update_space, collection_id=space.collection_id, problem=problem)
        )


def _forward_events(process: "Popen[bytes]", hear: "EventListener") -> None:
    """Pass the events of a worker to the listener until the worker exits. Invalid lines are skipped."""
    if process.stdout is None:
        return
    with process.stdout as lines:
        for line in lines:
            with suppress(ValueError):
                hear(json.loads(line))


class Supervisor:
    """Starts and monitors the workers of a server. It is used only by the thread that has the database open."""

    def __init__(self, hear: "EventListener | None" = None) -> None:
        self._hear = hear
        self._embed, self._watch = WorkerProcess("embed"), WorkerProcess("watch")
        self._sync = WorkerProcess("sync")
        self._embed_due = self._watch_due = time.monotonic() + START_DELAY
        self._monitor = EmbeddingMonitor()
        self._saw_free = False
        self._put_off_since: float | None = None

    def put_off(self) -> None:
        """Delay the next check for missing vectors, because a call has just been handled.

        A steady stream of calls delays it for LONGEST_DELAY at most.
        """
        now = time.monotonic()
        self._put_off_since = self._put_off_since or now
        self._embed_due = min(now + CALL_DELAY, self._put_off_since + LONGEST_DELAY)

    def is_overdue(self) -> bool:
        """Return True if calls have delayed the check for LONGEST_DELAY, so that it runs without further delay."""
        since = self._put_off_since
        return since is not None and time.monotonic() - since >= LONGEST_DELAY

    def seconds(self) -> float:
        """Return the seconds until the next check is due."""
        return max(0.0, min(self._embed_due, self._watch_due) - time.monotonic())

    def start_due_workers(self, brain: Brain) -> None:
        """Run the checks that are due, and start the workers that are needed."""
        path = brain.settings.db_path
        if self._watch_due <= time.monotonic():
            self._watch_due = time.monotonic() + WATCH_INTERVAL
            if not self._watch.is_running(brain) and self._wants_watcher(brain):
                self._watch.start(path, self._hear)
            if not self._sync.is_running(brain) and self._wants_sync(brain):
                self._sync.start(path)
        if self._embed_due <= time.monotonic():
            self._put_off_since = None
            is_running = self._embed.is_running(brain)
            if not is_running and self._monitor.wants(brain):
                self._embed.start(path)
                is_running = True
            self._embed_due = time.monotonic() + (CALL_DELAY if is_running else EMBED_INTERVAL)

    def _wants_sync(self, brain: Brain) -> bool:
        """Return True if a collection is shared and no process syncs shared spaces."""
        if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
            return False
        is_due = time.monotonic() >= self._sync.not_before and stored_spaces.has_spaces(brain.db)
        return is_due and not leases.is_leased(brain.db.path, stored_spaces.LEASE)

    def _wants_watcher(self, brain: Brain) -> bool:
        """Return True if a folder has no watcher, and no other process is likely to watch it soon."""
        from quaid.operations import collections

        if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
            return False
        watched = [
            leases.is_leased(brain.db.path, collections.watch_lease(collection.id))
            for collection in collections.watched_collections(brain)
        ]
        is_free = not all(watched)
        # A process that watches other folders usually starts to watch a new folder too, so wait one interval.
        may_start = is_free and (self._saw_free or not any(watched))
        self._saw_free = is_free
        return may_start and time.monotonic() >= self._watch.not_before

    def end(self) -> None:
        """Stop all workers."""
        self._embed.release()  # signal all before waiting for one
        self._sync.release()
        self._watch.end()
        self._sync.end()
        self._embed.end()


# In the worker process


def main(job: str, path: str, *flags: str, pace: "WatchPace | None" = None) -> int:
    """Embed the text without vectors in the memory at this path, watch its folders, or sync its shared spaces.

    With --tell, print one line of JSON per event, with counts and collection names but no page text.
    """
    from quaid.folders import watcher
    from quaid.operations import background, collections, spaces

    if hasattr(os, "nice"):
        os.nice(NICENESS[job])
    stop = Event()
    Thread(
        target=_exit_with_server, args=(stop, STOP_TIMEOUT if job == "watch" else 0.0), daemon=True
    ).start()
    try:
        with _open_memory(path) as brain:
            if job == "embed":
                background.embed_missing(brain)
            elif job == "sync":
                spaces.follow_spaces(brain, stop, _ignore_event)
            else:
                tell = _print_event if "--tell" in flags else _ignore_event
                collections.watch_folders(brain, tell, stop, patient=False, pace=pace or watcher.DEFAULT_PACE)
    except Exception as error:
        if job == "watch":  # record the error for `quaid doctor`, because standard error is discarded
            with suppress(QuaidError), _open_memory(path) as brain:
                collections.record_watch_failure(brain, watcher.error_text(error))
        elif job == "sync":
            with suppress(QuaidError), _open_memory(path) as brain:
                _record_sync_failure(brain, watcher.error_text(error))
        return 1
    return 0


def _exit_with_server(stop: Event, seconds: float) -> None:
    """When the server exits or closes the pipe, set `stop`, and end the process after `seconds`.

    This is safe at any point, because SQLite rolls back unfinished transactions.
    """
    while os.read(0, 1):
        pass
    stop.set()
    time.sleep(seconds)
    os._exit(0)


def _open_memory(path: str) -> Brain:
    return Brain(config.read_settings(path, os.environ, os.path.dirname(path)))


def _ignore_event(_event: Any) -> None:
    pass


def _print_event(event: Any) -> None:
    """Print an event as one line of JSON for the server."""
    kind = type(event).__name__.removeprefix("Watch").lower()
    names = "collection problem"
    if kind == "synced":
        event, names = event.sync, "collection files new changed moved removed"
    facts = {name: getattr(event, name, None) for name in names.split()}
    with suppress(OSError):  # the server has exited, and this process will too
        sys.stdout.write(json.dumps({"event": kind, **facts}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
