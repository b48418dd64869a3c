"""The worker processes of a server, which embed text, watch folders, sync shared spaces and run operations.

A server decides here whether work is due and starts `python -m quaid.worker JOB PATH`. The standard input of
a worker is a pipe held open by the server; when the pipe closes, the worker exits. Leases
(storage/leases.py), each held by one process at a time, keep several servers of a memory from doing the same
job. Embedding has a separate process, because a loaded model takes ten times the RAM of the other workers, and its
RAM is freed when the process exits. Shared spaces also have a separate process, because it waits for hubs.

An HTTP server runs queries and long operations in processes (OperationProcess), because threads of one process
would compete for Python's global interpreter lock.
"""

import gc
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread, Timer
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid import config
from quaid.app import Brain
from quaid.errors import Cancelled, Defect, QuaidError
from quaid.operations import dispatch
from quaid.storage import collections as stored_collections, embedding_queue, leases, spaces as stored_spaces
from quaid.storage.collections import Collections
from quaid.storage.embedding_queue import EmbeddedRange
from quaid.storage.spaces import Spaces

if TYPE_CHECKING:
    from subprocess import Popen

    from quaid.config import Settings
    from quaid.folders.watcher import WatchPace
    from quaid.operations.registry import Scope
    from quaid.storage.sqlite.connection import Database

EventHandler = Callable[[dict[str, Any]], None]

# Modules of operations are imported where they are used, because the import takes 100 ms, which would delay a
# server's first answer.

# Durations in seconds
START_DELAY = 3.0
WATCH_INTERVAL, EMBED_INTERVAL = 3.0, 60.0
LONGEST_DELAY = 20.0  # the longest time for which calls can delay the check for missing vectors
CALL_DELAY = 2.0  # delay between a call and the next check for missing vectors
FAILURE_DELAY = 60.0
EXIT_TIMEOUT = 1.0
STOP_TIMEOUT = 0.7  # time in which a watcher must finish its sync; less than EXIT_TIMEOUT
REPORT_INTERVAL = 0.1  # minimum time between two progress reports of an operation
TRIM_SECONDS = 60.0
ANSWER_SECONDS = 120.0  # a process that does not answer a query in this time is killed
CANCEL_SECONDS = 10.0  # a process that does not end a cancelled query in this time is killed

CACHE_KIB = 8 * 1024
"""Size of the page cache of each connection of a server, in KiB."""

TRIM_AFTER = 10
"""A process that has run this many operations begins to return freed RAM to the system."""

MAX_EARLY_EXITS = 3
"""After a worker has exited early this many times in a row, its next start is delayed by FAILURE_DELAY."""

WORKER_MODULE = "quaid.worker"
WINDOWS_CREATION_FLAGS = 0x08004000  # CREATE_NO_WINDOW | BELOW_NORMAL_PRIORITY_CLASS
PROCESS_NAMES = {
    "watch": "the process that watches folders",
    "sync": "the process that syncs shared spaces",
    "dream": "its process",
    "embed": "the process that makes vectors",
}
"""How recorded failures name the workers. Failures of the job `expire` are not recorded."""
# Unix nice values (0 to 19). The watcher has a lower one than embedding, because it should notice edits soon.
NICENESS = {"embed": 10, "watch": 5, "sync": 5, "dream": 19, "expire": 10, "run": 0, "run-long": 10}


class EmbeddingMonitor:
    """Decides when a server should start an embedding process, from the changes since the previous check."""

    def __init__(self) -> None:
        self._stamp: tuple[int, int] | None = None
        self._whole: EmbeddedRange | None = EmbeddedRange()  # None if some text has no vector
        self._tried: tuple[int, int] | None = None  # the value of _stamp when embedding was last started
        self._troubled = False  # True if the previous check found a recorded failure

    def wants(self, brain: Brain) -> bool:
        """Return True if an embedding process should be started now."""
        from quaid.operations import background

        if not _is_writable(brain):
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


def _is_writable(brain: Brain) -> bool:
    """Return True if the memory exists and can be written, so that a worker has something to do."""
    return os.path.exists(brain.settings.db_path) and brain.db.writable


def _start_process(job: str, path: str, *flags: str, reads_output: bool) -> "Popen[bytes]":
    """Start a worker process, which ends when its standard input is closed."""
    import subprocess  # takes half a megabyte, so import it only when needed

    # -P keeps Python from importing modules from the client's working folder.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", WORKER_MODULE, job, path, *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if reads_output else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=WINDOWS_CREATION_FLAGS if os.name == "nt" else 0,
    )


class WorkerProcess:
    """A worker process of a server, which is started when needed and may be restarted."""

    def __init__(self, job: str) -> None:
        self.job = job
        self._process: Popen[bytes] | None = None
        self._started = 0.0
        self._early_exits = 0
        self._not_before = 0.0

    def start(self, path: str, hear: EventHandler | None = None) -> None:
        """Start the worker for the memory at `path`. `hear` is called with each event that the worker reports."""
        flags = ["--tell"] if hear else []
        self._process = _start_process(self.job, os.path.abspath(path), *flags, reads_output=bool(hear))
        self._started = time.monotonic()
        if hear:
            Thread(target=_forward_events, args=(self._process, hear), name="watcher", daemon=True).start()

    def is_running(self, brain: Brain) -> bool:
        """Return True if the worker is running.

        If it has failed, record the failure for `quaid doctor` and `quaid status`.
        """
        if self._process is None:
            return False
        status = self._process.poll()
        if status is None:
            return True
        self.release()
        self._process = None
        if status and self.job in PROCESS_NAMES:
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            _record_failure(brain, self.job, f"{PROCESS_NAMES[self.job]} {how}")
        is_early = time.monotonic() - self._started < 2 * WATCH_INTERVAL
        self._early_exits = self._early_exits + 1 if is_early else 0
        if self._early_exits >= MAX_EARLY_EXITS:
            self._not_before = time.monotonic() + FAILURE_DELAY
        return False

    def may_start(self) -> bool:
        """Return False for a while after the worker has exited early several times."""
        return time.monotonic() >= self._not_before

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


def _record_failure(brain: Brain, job: str, problem: str) -> None:
    """Record that a worker failed, unless an embedding worker has just recorded a failure itself."""
    from quaid.operations import background, collections, dream

    if job == "watch":
        collections.record_watch_failure(brain, problem)
    elif job == "sync":
        for space in Spaces(brain.db).all():
            brain.db.write(partial(space.update, problem=problem))
    elif job == "dream":
        dream.record_failure(brain, problem)
    elif job == "embed" and not background.failed_recently(brain):
        model = stored_collections.get_setting(brain.db, "embedding_model") or ""
        background.record_failure(brain, model, problem)


def _forward_events(process: "Popen[bytes]", hear: EventHandler) -> None:
    """Pass the events of a worker to the listener until the worker exits. Invalid lines are skipped."""
    if process.stdout is None:
        return
    with process.stdout as lines:
        for line in lines:
            with suppress(ValueError):
                hear(json.loads(line))


class Supervisor:
    """Starts and monitors the workers of a server. Only the thread that opened the database may use it."""

    def __init__(self, hear: EventHandler | None = None) -> None:
        self._hear = hear
        self._embed = WorkerProcess("embed")
        # The other workers, each with the function that decides whether it is needed.
        self._others: dict[WorkerProcess, Callable[[Brain], bool]] = {
            WorkerProcess("watch"): self._wants_watcher,
            WorkerProcess("sync"): self._wants_sync,
            WorkerProcess("dream"): self._wants_dream,
            WorkerProcess("expire"): Brain.has_past_grace,
        }
        self._embed_due = self._watch_due = time.monotonic() + START_DELAY
        self._monitor = EmbeddingMonitor()
        self._saw_free = False
        self._put_off_since: float | None = None

    def put_off(self) -> None:
        """Delay the next check for missing vectors, because a call has just been handled.

        A steady stream of calls delays the check by LONGEST_DELAY at most.
        """
        now = time.monotonic()
        self._put_off_since = self._put_off_since or now
        self._embed_due = min(now + CALL_DELAY, self._put_off_since + LONGEST_DELAY)

    def is_overdue(self) -> bool:
        """Return True if calls have delayed the check for missing vectors by LONGEST_DELAY or more."""
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
            for worker, is_wanted in self._others.items():
                is_running = worker.is_running(brain)
                if not is_running and _is_writable(brain) and is_wanted(brain) and worker.may_start():
                    worker.start(path, self._hear if worker.job == "watch" else None)
        if self._embed_due <= time.monotonic():
            self._put_off_since = None
            is_running = self._embed.is_running(brain)
            if not is_running and self._monitor.wants(brain):
                self._embed.start(path)
                is_running = True
            self._embed_due = time.monotonic() + (CALL_DELAY if is_running else EMBED_INTERVAL)

    def _wants_sync(self, brain: Brain) -> bool:
        """Return True if a collection is shared and no process syncs shared spaces."""
        is_shared = bool(Spaces(brain.db).all())
        return is_shared and not leases.is_leased(brain.db.path, stored_spaces.LEASE)

    def _wants_dream(self, brain: Brain) -> bool:
        """Return True if nightly cleanup is on and due."""
        if stored_collections.get_setting(brain.db, "dream_nightly") != "on":
            return False
        from quaid.operations import dream

        return dream.is_due(brain)

    def _wants_watcher(self, brain: Brain) -> bool:
        """Return True if a folder has no watcher, and no other process is likely to watch it soon."""
        watched = [
            leases.is_leased(brain.db.path, collection.watch_lease)
            for collection in Collections(brain.db).all()
            if collection.is_attached
        ]
        is_free = not all(watched)
        # A process that watches other folders usually starts to watch a new folder too, so wait one interval.
        may_start = is_free and (self._saw_free or not any(watched))
        self._saw_free = is_free
        return may_start

    def end(self) -> None:
        """Stop all workers."""
        workers = (*self._others, self._embed)
        for worker in workers:  # ask all workers to exit before waiting for any
            worker.release()
        for worker in workers:
            worker.end()


class ServerBrain(Brain):
    """A Brain whose connection has a small page cache.

    A server has many connections, and the operating system caches the file anyway.
    """

    @property
    def db(self) -> "Database":
        is_new = self._db is None
        db = super().db
        if is_new:
            db.limit_cache(CACHE_KIB)
        return db


class OperationCall(NamedTuple):
    """A request to run an operation in an OperationProcess."""

    operation: str
    """Key of the operation in the registry, such as query.query."""
    arguments: dict[str, Any]
    scope: "Scope"
    agent: str = ""
    settings: "Settings | None" = None
    """Settings of this call, if they differ from those of the server."""


class OperationProcess:
    """A process that runs operations for a server, one at a time. The first operation starts the process.

    Messages are pickled. The server sends its settings, then an OperationCall for each operation, and None to
    cancel the running one. The process replies with any number of ("progress", …) and ("notice", …) messages,
    then with ("result", …) or ("error", …).
    """

    def __init__(self, settings: "Settings", job: str) -> None:
        self._settings, self._job = settings, job
        self._process: Popen[bytes] | None = None
        self._writing = Lock()
        self._is_released = self._is_cancelled = self._is_hung = False
        self._watchdog: Timer | None = None
        self._watching = Lock()

    @property
    def pid(self) -> int | None:
        """The process id, or None if there is no process."""
        return self._process.pid if self._process else None

    def run(self, call: OperationCall, brain: Brain, repeatable: bool) -> Any:
        """Run an operation for this Brain and return its result.

        If the process dies and the operation is `repeatable`, it is retried once in a new process. A process that
        does not answer a query in time is killed.
        """
        for is_last in (not repeatable, True):
            try:
                return self._ask(call, brain)
            except (EOFError, OSError, ValueError) as error:  # the process has died
                self.end()
                if self._is_released or self._is_cancelled:
                    raise Cancelled from error
                if is_last or self._is_hung:
                    raise Defect(problem="a worker process ended unexpectedly") from error
        raise AssertionError

    def _ask(self, call: OperationCall, brain: Brain) -> Any:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._start()
        self._is_cancelled = self._is_hung = False
        self._send(call)
        with self._watching:
            self._watchdog = self._start_watchdog(ANSWER_SECONDS)
        try:
            return self._read_answer(process, brain)
        finally:
            with self._watching:
                self._watchdog.cancel()
                self._watchdog = None

    def _start_watchdog(self, seconds: float) -> Timer:
        """Start a timer that kills a process for queries (job `run`). Long operations are not limited."""
        process = self._process

        def give_up() -> None:
            if process is not None and self._job == "run":
                self._is_hung = True
                process.kill()

        watchdog = Timer(seconds, give_up)
        watchdog.daemon = True
        watchdog.start()
        return watchdog

    def _read_answer(self, process: "Popen[bytes]", brain: Brain) -> Any:
        import pickle

        while process.stdout is not None:
            kind, *values = pickle.load(process.stdout)  # noqa: S301 (our own process)
            if kind == "result":
                brain.created += values[1]
                return values[0]
            if kind == "error":
                raise values[0]
            if kind == "notice" and brain.notice is not None:
                brain.notice(*values)
            elif kind == "progress":
                try:
                    brain.progress(*values)
                except Cancelled:
                    self.cancel()
        raise EOFError

    def _start(self) -> "Popen[bytes]":
        self.end()
        self._process = _start_process(self._job, self._settings.db_path, reads_output=True)
        # Mappings such as os.environ cannot be pickled.
        settings = self._settings
        self._send(settings._replace(environ=dict(settings.environ), options=dict(settings.options)))
        return self._process

    def _send(self, message: Any) -> None:
        import pickle

        with self._writing:
            if self._is_released or self._process is None or self._process.stdin is None:
                raise EOFError
            self._process.stdin.write(pickle.dumps(message))
            self._process.stdin.flush()

    def cancel(self) -> None:
        """Cancel the running operation, so that run() raises Cancelled. This may be called by any thread."""
        with suppress(EOFError, OSError, ValueError):
            self._send(None)
        with self._watching:
            if self._watchdog is not None:
                self._is_cancelled = True
                self._watchdog.cancel()
                self._watchdog = self._start_watchdog(CANCEL_SECONDS)

    def release(self) -> None:
        """Kill the process, and prevent a new one from starting. This may be called by any thread."""
        self._is_released = True
        process = self._process
        if process is not None:
            process.kill()  # safe at any point, because SQLite rolls back unfinished transactions

    def end(self) -> None:
        """Kill the process. The next operation starts a new process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError):
                process.communicate()


# Memory of a server process

_M_ARENA_MAX = -8
"""Value of M_ARENA_MAX in glibc's malloc.h."""


def share_one_arena() -> None:
    """Let all threads allocate RAM from one heap, on platforms with glibc.

    Otherwise each worker thread keeps a heap as large as its largest query needed: 30 to 60 MB in total.
    """
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (AttributeError, OSError, TypeError):
        pass


def start_memory_trim() -> None:
    """Return freed RAM to the system every TRIM_SECONDS, on a daemon thread.

    Objects that exist when this is called (mostly code) are frozen, so later garbage collections skip them.
    """
    gc.collect()
    gc.freeze()
    Thread(target=_trim_loop, args=(_malloc_trim(),), name="trimming", daemon=True).start()


def _trim_loop(give_back: Callable[[int], int]) -> None:
    while True:
        time.sleep(TRIM_SECONDS)
        gc.collect()
        give_back(0)


def _malloc_trim() -> Callable[[int], int]:
    """Return glibc's malloc_trim, or a no-op on other platforms."""
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _pad: 0


# Code that runs in the worker process


class OperationRunner:
    """Runs operations for the server, one at a time, until the server closes the pipe. See OperationProcess."""

    def __init__(self) -> None:
        from queue import SimpleQueue

        self._requests, self._replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # so that stray output is not mixed with the messages
        self._settings: Settings = self._receive()
        self._calls: SimpleQueue[OperationCall] = SimpleQueue()
        self._cancelled = Event()
        self._reported = 0.0
        self._brain = ServerBrain(
            self._settings,
            unwanted=self._cancelled.is_set,
            progress=self._report,
            notice=lambda text: self._send("notice", text),
        )

    def run(self) -> None:
        Thread(target=self._accept, daemon=True).start()
        for number in itertools.count(1):
            self._send(*self._reply(self._calls.get()))
            if number == TRIM_AFTER:
                start_memory_trim()

    def _reply(self, call: OperationCall) -> tuple[Any, ...]:
        brain = self._brain
        brain.agent, brain.settings, brain.created = call.agent, call.settings or self._settings, []
        try:
            operation = dispatch.operation_by_key(call.operation)
            return "result", dispatch.call(brain, operation, call.arguments, call.scope), brain.created
        except QuaidError as error:
            return "error", error
        except Exception as error:  # the message of the exception must not be leaked
            return "error", Defect(problem=type(error).__name__)

    def _accept(self) -> None:
        """Read requests in a thread, because a request may cancel the operation that is running."""
        try:
            while True:
                call = self._receive()
                if call is None:
                    self._cancelled.set()
                else:
                    self._cancelled.clear()
                    self._calls.put(call)
        finally:
            os._exit(0)  # the server has closed the pipe; unfinished transactions are rolled back

    def _receive(self) -> Any:
        import pickle

        return pickle.load(self._requests)  # noqa: S301 (from the server)

    def _send(self, *message: Any) -> None:
        import pickle

        self._replies.write(pickle.dumps(message))
        self._replies.flush()

    def _report(self, done: int, total: int, what: str) -> None:
        if self._cancelled.is_set():
            raise Cancelled
        if time.monotonic() - self._reported >= REPORT_INTERVAL:
            self._reported = time.monotonic()
            self._send("progress", done, total, what)


def main(job: str, path: str, *flags: str, pace: "WatchPace | None" = None) -> int:
    """Run one job (a key of NICENESS) on the memory at this path, and return the exit status.

    With --tell, the job `watch` prints one line of JSON per event, with counts and collection names but no page
    text. The jobs `run` and `run-long` run operations (see OperationRunner).
    """
    if hasattr(os, "nice"):
        os.nice(NICENESS[job])
    if job.startswith("run"):
        import signal

        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # Ctrl-C also reaches the server, which ends this process
        share_one_arena()
        OperationRunner().run()
        return 0
    from quaid.folders import watcher
    from quaid.operations import background, cleanup, collections, dream, spaces

    stop = Event()
    Thread(
        target=_exit_with_server, args=(stop, STOP_TIMEOUT if job == "watch" else 0.0), daemon=True
    ).start()
    try:
        with _open_memory(path) as brain:
            if job == "embed":
                background.embed_missing(brain)
            elif job == "expire":
                cleanup.erase_past_grace(brain)
            elif job == "sync":
                spaces.follow_spaces(brain, stop, _ignore_event)
            elif job == "dream":
                dream.dream(brain)
            else:
                tell = _print_event if "--tell" in flags else _ignore_event
                collections.watch_folders(brain, tell, stop, patient=False, pace=pace or watcher.DEFAULT_PACE)
    except Exception as error:
        if job != "embed":  # record the error for `quaid doctor`, because standard error is discarded
            with suppress(QuaidError), _open_memory(path) as brain:
                _record_failure(brain, job, watcher.error_text(error))
        return 1
    return 0


def _exit_with_server(stop: Event, seconds: float) -> None:
    """When the server exits or closes the pipe, set `stop`, and exit after `seconds`.

    Exiting is safe at any point, because SQLite rolls back unfinished transactions.
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
    with suppress(OSError):  # the server has exited, so this process is about to exit too
        sys.stdout.write(json.dumps({"event": kind, **facts}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
