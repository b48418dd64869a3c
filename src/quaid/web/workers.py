"""Worker threads of a server, each with its own database connection; callers await a future.

There are four queues. Readers run in parallel, and so do semantic queries, which share the model and the
vectors in RAM; a run of the model uses one thread. Writers wait for the store's lock. Operations that may take
minutes get a fresh connection each, so that a rebuild never delays a search. A background thread reports
changes to the event bus and keeps folders and vectors up to date; another thread returns freed RAM to the
system.
"""

import asyncio
import ctypes
import gc
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Event, Thread
from types import MappingProxyType
from typing import Any, TypeVar

from quaid.app import Brain, ModelCache, make_view_cache
from quaid.config import Settings
from quaid.errors import Cancelled, NotAllowed, QuaidError, TooMany, UnknownCommand
from quaid.mcp.server import log_to_stderr
from quaid.operations import dispatch, index
from quaid.operations.background import ChangeDetector
from quaid.operations.registry import Operation, Scope
from quaid.worker import Supervisor

T = TypeVar("T")
EventSink = Callable[[str, dict[str, Any]], None]
Work = Callable[[Brain], Any]

READERS, QUESTIONS, WRITERS, LONG_WORKERS = 2, 4, 1, 2
"""Threads of each queue, which are also the shares of the queues in Python's lock.

A question runs about 60 statements, each of which releases the lock and waits for it again, so two threads for
questions got too little of it beside three for reads. Writers wait for each other anyway.
"""

MAX_QUEUED = 500
CACHE_KIB = 8 * 1024
"""Size of the page cache of each connection, in KiB.

It is small, because each thread has a connection, and the operating system caches the file anyway.
"""

PROGRESS_DELAY, PROGRESS_INTERVAL = 0.3, 0.2

SEMANTIC_OPERATIONS = frozenset(
    "query.query query.glance notebook.recall conversations.conversation_search kb.kb_query".split()
)
"""Operations that use the model or the vectors in RAM.

A test compares this set with the imports of the operations.
"""

LONG_OPERATIONS = frozenset(
    {"kb.kb_remember", "kb.kb_status", "kb.kb_show", "kb.kb_backlinks", "cleanup.dupes", "facts.check"}
)
"""Slow operations that agents may call: they run git, access a remote, or compare all pairs of pages."""

READ_ONLY_OWNER_OPERATIONS = frozenset(
    "collections.collection_info collections.quarantine_list collections.ignore_list collections.imports"
    " models.embeddings_list models.embeddings_status models.model_list models.rerank_status"
    " service.token_list service.daemon_status"
    " maintenance.config_get maintenance.config_list maintenance.validate clients.skills_list clients.skills_show"
    " instructions.instructions kb.kb_curate kb.kb_doctor".split()
)
"""Owner operations that change nothing, so a read-only server allows them too."""


class Worker(Brain):
    """A Brain that stops when its task is cancelled and shares models and vectors with the other workers."""

    def __init__(self, settings: Settings, models: ModelCache, views: Any) -> None:
        super().__init__(settings, unwanted=self.is_unwanted, models=models, views=views)
        self.task: Task | None = None

    def is_unwanted(self) -> bool:
        return self.task is not None and self.task.cancelled

    @property
    def db(self) -> Any:
        fresh = self._db is None
        db = super().db
        if fresh:
            db.limit_cache(CACHE_KIB)
        return db


class Task:
    """A function to run on a worker thread, and the future for its result."""

    def __init__(self, work: Work, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.work, self.name = work, name
        self.stopped = False
        self.reported = False
        self._loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()

    @property
    def cancelled(self) -> bool:
        """Return True if the server is stopping or the caller has cancelled the future."""
        return self.stopped or self.future.cancelled()

    def settle(self, result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            pass  # the event loop is closed, because the server has stopped

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)
            # Mark the exception as retrieved, because asyncio would log it if the caller is gone.
            self.future.exception()


class WorkerQueue:
    """Threads that take tasks from one queue. With `keeps` false, each task gets a fresh Worker."""

    def __init__(
        self, name: str, threads: int, make: Callable[[], Worker], tell: EventSink, keeps: bool = True
    ) -> None:
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._make, self._tell, self._keeps = make, tell, keeps
        self._running: set[Task] = set()
        self._threads = [Thread(target=self._work, name=f"{name}-{n}", daemon=True) for n in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def add(self, task: Task) -> None:
        if self._queue.qsize() >= MAX_QUEUED:
            raise TooMany(limit=MAX_QUEUED, what="requests waiting")
        self._queue.put(task)

    def end(self) -> None:
        """Cancel running tasks and accept no more."""
        for task in list(self._running):
            task.stopped = True
        for _ in self._threads:
            self._queue.put(None)

    def is_over(self, deadline: float) -> bool:
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        worker = self._make()
        while (task := self._queue.get()) is not None:
            if task.cancelled:
                task.settle(None, Cancelled())
                continue
            self._running.add(task)
            self._do(worker, task)
            self._running.discard(task)
            if not self._keeps:
                _close_quietly(worker)
                worker = self._make()
        _close_quietly(worker)

    def _do(self, worker: Worker, task: Task) -> None:
        began = time.monotonic()
        worker.task, worker.progress = task, _progress_reporter(task, self._tell)
        result: Any = None
        error: BaseException | None = None
        try:
            result = task.work(worker)
        except BaseException as caught:
            error = caught
        worker.task = None
        if task.reported:
            seconds = round(time.monotonic() - began, 2)
            self._tell("finished", {"operation": task.name, "succeeded": error is None, "seconds": seconds})
        task.settle(result, error)


def _call_as_person(brain: Brain, operation: Operation, arguments: Mapping[str, Any], scope: Scope) -> Any:
    """Run an operation for the dashboard or the API, with the owner as author.

    The author is set each time, because MCP calls on the same worker set it to the name of their client.
    """
    brain.agent = ""
    return dispatch.call(brain, operation, arguments, scope)


class WorkerPool:
    """All worker threads of one server, for one memory."""

    def __init__(self, settings: Settings, *, tell: EventSink | None = None, readonly: bool = False) -> None:
        if readonly:  # otherwise, a search without a good answer would be recorded as a gap
            settings = settings._replace(environ={**settings.environ, "QUAID_LOG_GAPS": "off"})
        self.settings, self.readonly = settings, readonly
        tell = tell or (lambda _kind, _facts: None)
        models, views = ModelCache(), make_view_cache()

        def make() -> Worker:
            return Worker(settings, models, views)

        self._queues = {
            "read": WorkerQueue("reader", READERS, make, tell),
            "meaning": WorkerQueue("meaning", QUESTIONS, make, tell),
            "write": WorkerQueue("writer", WRITERS, make, tell),
            "long": WorkerQueue("long", LONG_WORKERS, make, tell, keeps=False),
        }

    def start(self) -> None:
        for queue in self._queues.values():
            queue.start()

    def stop(self, seconds: float) -> bool:
        """Cancel all tasks. Return True if all workers closed in time. Unfinished transactions are rolled back."""
        deadline = time.monotonic() + seconds
        for queue in self._queues.values():
            queue.end()
        over = [
            queue.is_over(deadline) for queue in self._queues.values()
        ]  # a list, so that every queue is joined
        return all(over)

    async def call(self, operation: str, arguments: Mapping[str, Any], scope: Scope = "owner") -> Any:
        """Run an operation, named as a command ("kb status") or as a tool ("memory_get"), and return its record."""
        entry, preset = find_operation(operation)
        key = operation_key(entry)
        listing = key == "clients.connect" and not arguments.get("client")
        if self.readonly and entry.scope != "read" and key not in READ_ONLY_OWNER_OPERATIONS and not listing:
            raise NotAllowed(
                name=operation, needed=entry.scope, granted="read, because the server is read-only"
            )
        values = {**arguments, **preset}
        return await self.run(
            queue_name(entry, values), lambda brain: _call_as_person(brain, entry, values, scope), operation
        )

    async def run(self, queue: str, work: Callable[[Brain], T], name: str = "") -> T:
        """Run a function on a worker of a queue and return its result. Cancelling the call cancels the task."""
        task = Task(work, name, asyncio.get_running_loop())
        self._queues[queue].add(task)
        return await task.future  # type: ignore[no-any-return]


def find_operation(name: str) -> tuple[Operation, Mapping[str, Any]]:
    """Return the operation of a command or tool, and the arguments that an alias presets."""
    if name in index.COMMANDS:
        return dispatch.find_command(name), index.ALIASES.get(name, {})
    if name in index.TOOLS:
        return dispatch.find_tool(name), {}
    raise UnknownCommand(name=name, hint=dispatch.suggestion(name, index.COMMANDS))


def operation_key(operation: Operation) -> str:
    return f"{operation.subject}.{operation.function.__name__.rstrip('_')}"


def queue_name(operation: Operation, arguments: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the name of the queue that runs an operation with these arguments."""
    key = operation_key(operation)
    if key in SEMANTIC_OPERATIONS:
        return "read" if key == "query.glance" and arguments.get("words_only") else "meaning"
    if key in LONG_OPERATIONS or operation.scope == "owner":
        return "long"
    return operation.scope


def _progress_reporter(task: Task, tell: EventSink) -> Callable[[int, int, str], None]:
    """Return a progress callback that publishes events, at most one per PROGRESS_INTERVAL.

    Tasks shorter than PROGRESS_DELAY are not reported.
    """
    began = reported = time.monotonic()

    def report(done: int, total: int, what: str) -> None:
        nonlocal reported
        if task.cancelled:
            raise Cancelled
        now = time.monotonic()
        if now - began < PROGRESS_DELAY or now - reported < PROGRESS_INTERVAL:
            return
        reported, task.reported = now, True
        tell("progress", {"operation": task.name, "done": done, "total": total, "what": what})

    return report


def _close_quietly(worker: Worker) -> None:
    try:
        worker.close()
    except Exception:  # noqa: S110 (committed transactions are durable, the rest is rolled back)
        pass


POLL_SECONDS = 1.0
RETRY_SECONDS = 10.0


class MaintenanceThread:
    def __init__(self, settings: Settings, tell: EventSink, *, maintains: bool) -> None:
        self._settings, self._tell = settings, tell
        self._ending = Event()
        self._logged: set[str] = set()
        self._supervisor = Supervisor(self._forward_event) if maintains else None
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
                    brain.db.limit_cache(CACHE_KIB // 4)
                    self._look(brain)
            except QuaidError:  # the memory does not exist yet, is locked, or was moved
                self._ending.wait(RETRY_SECONDS)
            except Exception as error:
                self._log_failure(error)
                self._ending.wait(RETRY_SECONDS)
        if self._supervisor is not None:
            self._supervisor.end()

    def _log_failure(self, error: Exception) -> None:
        """Log a failure once, without any content of pages."""
        problem = f"quaid: background work failed ({type(error).__name__}) and will be retried"
        if problem not in self._logged:
            self._logged.add(problem)
            log_to_stderr(problem)

    def _look(self, brain: Brain) -> None:
        changes = ChangeDetector()
        while not self._ending.is_set():
            for kind, facts in changes.look(brain):
                self._tell(kind, facts)
            if self._supervisor is not None and self._supervisor.seconds() == 0:
                self._supervisor.start_due_workers(brain)
            self._ending.wait(POLL_SECONDS)

    def _forward_event(self, event: dict[str, Any]) -> None:
        """Forward an event from the process that watches folders."""
        self._tell("files", {**event, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})


TRIM_SECONDS = 60.0


_M_ARENA_MAX = -8
"""The number of the option "largest number of arenas" in glibc's malloc.h."""


def share_one_arena() -> None:
    """Let all threads allocate RAM from one heap, on platforms with glibc.

    Otherwise each worker thread keeps a heap as large as its largest question needed: 30 to 60 MB in total.
    """
    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (AttributeError, OSError, TypeError):
        pass


def start_memory_trim() -> None:
    """Return freed RAM to the system every TRIM_SECONDS, on a daemon thread.

    Objects that exist when this is called, mostly code, are frozen, so that later garbage collections skip
    them.
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
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _pad: 0
