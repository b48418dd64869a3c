"""The workers of a server: threads with their own database connection, and processes for questions and jobs.

Callers await a future. There is a queue for each kind of work, which serves its callers in turn (FairQueue).
Questions are answered by separate processes, because a question runs about sixty statements, each of which releases
Python's global lock; without processes (in tests), by threads that share the model and vectors. Writers wait for
the lock of the database. Operations that wait for git or another machine have separate threads, and jobs that take
minutes run one at a time in a process of low priority.

A background thread reports changes to the event bus and keeps folders and vectors up to date.
"""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event, Lock, Semaphore, Thread
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from quaid.app import Brain, ModelCache, make_view_cache, new_calls
from quaid.config import Settings
from quaid.errors import Cancelled, NotAllowed, QuaidError, TooMany, UnknownCommand
from quaid.mcp.server import log_failure
from quaid.operations import dispatch, index
from quaid.operations.background import ChangeDetector
from quaid.operations.facts import ContradictionMonitor
from quaid.operations.registry import Operation, Scope
from quaid.worker import CACHE_KIB, OperationCall, OperationProcess, ServerBrain, Supervisor

T = TypeVar("T")
EventSink = Callable[[str, dict[str, Any]], None]
Work = Callable[[Brain], Any]

READERS, QUESTIONS, WRITERS, SLOW_WORKERS = 2, 4, 1, 2
"""Threads of each queue. QUESTIONS is used without processes."""

QUESTION_PROCESSES = 2
"""Processes that answer questions. The second is started when a question has to wait, and ends when it is idle."""

MAX_QUEUED = 500
MAX_OF_CALLER, MAX_JOBS_OF_CALLER = 64, 2
"""Maximum number of tasks of one caller that wait in a queue; the second is for the queue of long jobs."""

MOST_JOBS = 20
"""The states of this many jobs are kept."""

LEAST_COST = 0.005
"""A task that starts is charged at least this many seconds until its time is known."""

RECENT_SECONDS = 10.0
"""A caller counts as active (see FairQueue) for this time after the last request."""

IDLE_SECONDS = 60.0
"""An additional process for questions ends after this many seconds without a question."""

PROGRESS_DELAY, PROGRESS_INTERVAL = 0.3, 0.2
KILL_SECONDS = 0.3
"""Processes that are still busy this long before the end of a shutdown are killed."""

CALLER: ContextVar[str] = ContextVar("caller", default="")
"""Who sent the request: the name of a token, or a browser session. Requests of one caller wait in one line."""

ONLY: ContextVar[tuple[tuple[str, ...], ...]] = ContextVar("only", default=())
"""The part of the memory that the caller may see; () for all of it."""
SCOPED_WORKERS = 2
"""Threads for callers who see only a part of the memory. Each builds an index of that part."""

SEMANTIC_OPERATIONS = frozenset(
    "query.query query.glance notebook.recall conversations.conversation_search kb.kb_query".split()
)
"""Operations that use the model or the vectors in RAM.

A test compares this set with the imports of the operations.
"""

SLOW_OPERATIONS = frozenset(
    {"kb.kb_remember", "kb.kb_status", "kb.kb_show", "kb.kb_backlinks", "facts.check"}
)
"""Operations for agents that run git, access a remote, or compare many texts.

The queue `slow` runs them, and the owner's operations unless they are long.
"""

LONG_OPERATIONS = frozenset(
    "cleanup.dupes maintenance.rebuild maintenance.compact maintenance.backup maintenance.validate models.embed"
    " collections.collection_add collections.collection_sync collections.import collections.export"
    " conversations.conversations_add conversations.conversations_sync".split()
)
"""Jobs that may take minutes in a large memory, as does a `facts.check` of all pages."""

READ_ONLY_OWNER_OPERATIONS = frozenset(
    "collections.collection_info collections.collection_folders collections.quarantine_list"
    " collections.ignore_list collections.imports"
    " models.embeddings_list models.embeddings_status models.model_list models.rerank_status"
    " maintenance.backup_list maintenance.backup_verify service.token_list service.daemon_status"
    " maintenance.config_get maintenance.config_list maintenance.validate clients.skills_list clients.skills_show"
    " instructions.instructions kb.kb_doctor".split()
)
"""Owner operations that change nothing, so a read-only server allows them too."""


class Worker(ServerBrain):
    """A Brain that stops when its task is cancelled.

    It shares models and vectors with the other workers, or runs its operations in a process.
    """

    def __init__(
        self, settings: Settings, models: ModelCache, views: Any, process: OperationProcess | None = None
    ) -> None:
        super().__init__(settings, unwanted=self.is_unwanted, models=models, views=views)
        self.task: Task | None = None
        self.process = process
        self._usual_settings = settings
        if process is not None:
            self.runner = self._run_in_process

    def is_unwanted(self) -> bool:
        return self.task is not None and self.task.cancelled

    def _run_in_process(self, operation: Operation, arguments: Mapping[str, Any], scope: Scope) -> Any:
        assert self.process is not None
        settings = None if self.settings is self._usual_settings else self.settings
        call = OperationCall(operation_key(operation), dict(arguments), scope, self.agent, settings)
        if self.task is not None:
            self.task.on_cancel = self.process.cancel
            if self.task.cancelled:
                raise Cancelled
        return self.process.run(call, self, repeatable=operation.scope == "read")


@dataclass
class Job:
    """The state of a long job. It contains no text of pages."""

    id: int
    operation: str
    queued_at: float
    """Unix time."""
    state: Literal["waiting", "running", "finished", "failed", "cancelled"] = "waiting"
    done: int = 0
    total: int = 0
    what: str = ""
    """What `done` and `total` count, as last reported."""
    seconds: float = 0.0
    """How long the job ran, once it has ended."""
    error: str = ""
    """The code of the error if the job failed, else ""."""

    def end(self, error: BaseException | None, seconds: float) -> None:
        self.seconds = round(seconds, 2)
        self.state = "finished"
        if isinstance(error, Cancelled):
            self.state = "cancelled"
        elif error is not None:
            self.state, self.error = "failed", getattr(error, "code", "defect")


class Task:
    """A function to run on a worker thread, and the future for its result."""

    def __init__(self, work: Work, name: str, loop: asyncio.AbstractEventLoop, caller: str = "") -> None:
        self.work, self.name, self.caller = work, name, caller
        self.job: Job | None = None
        self.stopped = False
        self.reported = False
        self.cost = 0.0  # seconds that the caller was charged for when the task started
        self.on_cancel: Callable[[], None] | None = None
        self._loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.future.add_done_callback(self._tell_worker)

    @property
    def cancelled(self) -> bool:
        """Return True if the server is stopping or the caller has cancelled the future."""
        return self.stopped or self.future.cancelled()

    def _tell_worker(self, future: "asyncio.Future[Any]") -> None:
        if future.cancelled() and self.on_cancel is not None:
            self.on_cancel()

    def stop(self) -> None:
        self.stopped = True
        if self.on_cancel is not None:
            self.on_cancel()

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


class _IdleWorker:
    """A worker that waits for a task."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.task: Task | None = None
        self.woken = Semaphore(0)

    def give(self, task: Task | None) -> None:
        self.task = task
        self.woken.release()


class FairQueue:
    """A queue of tasks for workers that shares their time fairly between callers.

    The next task is one of the caller who has used the least time. A new or returning caller starts with the time
    of the caller served last, so that idle time does not accumulate as credit. When a task starts, its caller is
    charged the average time of the caller's tasks; finish() corrects the charge. While several callers are active,
    each of them leaves one worker free for the others. A task goes to the idle worker of the lowest rank, so that
    idle workers of a higher rank can end.
    """

    def __init__(
        self,
        workers: int = 1,
        most_of_caller: int = MAX_OF_CALLER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers, self._most_of_caller, self._clock = workers, most_of_caller, clock
        self._lock = Lock()
        self._lines: dict[str, deque[Task]] = {}
        self._used: dict[str, float] = {}
        self._average: dict[str, float] = {}
        self._running: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        """When each caller last added a task."""
        self._now = 0.0
        self._idle: list[_IdleWorker] = []
        self.is_closed = False

    def put(self, task: Task) -> None:
        with self._lock:
            line = self._lines.get(task.caller, ())
            if len(line) >= self._most_of_caller:
                raise TooMany(limit=self._most_of_caller, what="of your requests waiting")
            if sum(map(len, self._lines.values())) >= MAX_QUEUED:
                raise TooMany(limit=MAX_QUEUED, what="requests waiting")
            if not line and not self._running.get(task.caller):
                self._used[task.caller] = max(self._now, self._used.get(task.caller, 0.0))
            self._asked[task.caller] = self._clock()
            self._lines.setdefault(task.caller, deque()).append(task)
            self._hand_out()

    def take(
        self, rank: int = 0, seconds: float | None = None, ready: Callable[[], None] | None = None
    ) -> Task | None:
        """Return the next task, or None if the queue is closed or no task came within `seconds`.

        `ready` sends the answer to the previous task. It is called once this worker counts as idle, so that a
        task sent in reaction to that answer can go to this worker.
        """
        idle = _IdleWorker(rank)
        with self._lock:
            task = None if self.is_closed else self._next()
            if task is None and not self.is_closed:
                self._idle.append(idle)
        if ready is not None:
            ready()
        if task is not None or self.is_closed:
            return task or idle.task
        if not idle.woken.acquire(timeout=seconds):
            with self._lock:
                if idle in self._idle:
                    self._idle.remove(idle)
        return idle.task

    def finish(self, task: Task, seconds: float) -> None:
        """Charge the caller of a task for the seconds that it took."""
        caller = task.caller
        with self._lock:
            self._used[caller] += seconds - task.cost
            average = self._average.get(caller, seconds)
            self._average[caller] = average + (seconds - average) / 4
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller]
            self._forget_callers()
            self._hand_out()

    def close(self) -> list[Task]:
        """Close the queue and wake all idle workers. Return the tasks that were waiting."""
        with self._lock:
            self.is_closed = True
            waiting = [task for line in self._lines.values() for task in line]
            self._lines.clear()
            for idle in self._idle:
                idle.give(None)
            self._idle.clear()
            return waiting

    def _hand_out(self) -> None:
        while self._idle and (task := self._next()) is not None:
            idle = min(self._idle, key=lambda worker: worker.rank)
            self._idle.remove(idle)
            idle.give(task)

    def _next(self) -> Task | None:
        others_ask = len(self._asked) > 1
        may_run = [
            caller
            for caller in self._lines
            if not others_ask or self._workers == 1 or self._running.get(caller, 0) < self._workers - 1
        ]
        if not may_run:
            return None
        caller = min(may_run, key=self._used.__getitem__)
        line = self._lines.pop(caller)
        task = line.popleft()
        if line:
            self._lines[caller] = line  # the caller now comes after callers with the same time
        self._now = max(self._now, self._used[caller])
        task.cost = max(LEAST_COST, self._average.get(caller, 0.0))
        self._used[caller] += task.cost
        self._running[caller] = self._running.get(caller, 0) + 1
        return task

    def _forget_callers(self) -> None:
        """Forget callers who have no task and added none in the last RECENT_SECONDS."""
        before = self._clock() - RECENT_SECONDS
        for caller in [name for name, asked in self._asked.items() if asked < before]:
            if caller not in self._lines and caller not in self._running:
                del self._asked[caller], self._used[caller]
                self._average.pop(caller, None)


class WorkerQueue:
    """Threads that take tasks from a FairQueue. With `keeps` false, a worker closes the memory after each task."""

    def __init__(
        self,
        name: str,
        threads: int,
        make: Callable[[], Worker],
        tell: EventSink,
        *,
        keeps: bool = True,
        most_of_caller: int = MAX_OF_CALLER,
    ) -> None:
        self._queue = FairQueue(threads, most_of_caller)
        self._make, self._tell, self._keeps = make, tell, keeps
        self._running: set[Task] = set()
        self._workers: set[Worker] = set()
        self._threads = [
            Thread(target=self._work, args=(n,), name=f"{name}-{n}", daemon=True) for n in range(threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def add(self, task: Task) -> None:
        self._queue.put(task)

    def end(self) -> None:
        """Cancel waiting and running tasks and accept no more."""
        for task in self._queue.close():
            task.settle(None, Cancelled())
        for task in list(self._running):
            task.stop()

    def is_over(self, deadline: float) -> bool:
        """Return True if all threads end before the deadline. Kill processes still busy KILL_SECONDS before
        the deadline.
        """
        for thread in self._threads:
            thread.join(max(0.0, deadline - KILL_SECONDS - time.monotonic()))
        for worker in list(self._workers):
            if worker.process is not None:
                worker.process.release()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self, number: int) -> None:
        worker = self._make()
        self._workers.add(worker)
        answer: Callable[[], None] | None = None
        while True:
            # The first process stays, because the next question would wait for its start.
            task = self._queue.take(number, IDLE_SECONDS if number and worker.process else None, answer)
            answer = None
            if task is None:
                if self._queue.is_closed:
                    break
                if worker.process is not None:
                    worker.process.end()
                continue
            began = time.monotonic()
            self._running.add(task)
            answer = self._do(worker, task)
            self._running.discard(task)
            self._queue.finish(task, time.monotonic() - began)
            if not self._keeps:
                _close_quietly(worker)
        _close_quietly(worker)

    def _do(self, worker: Worker, task: Task) -> Callable[[], None]:
        """Run a task. Return a function that passes its result to the caller."""
        began = time.monotonic()
        worker.task, worker.progress = task, _progress_reporter(task, self._tell)
        result: Any = None
        error: BaseException | None = None
        try:
            if task.cancelled:
                raise Cancelled
            if task.job is not None:
                task.job.state = "running"
            result = task.work(worker)
        except BaseException as caught:
            error = caught
        worker.task = None
        seconds = time.monotonic() - began
        if task.job is not None:
            task.job.end(error, seconds)
        if task.reported:
            facts = {"operation": task.name, "succeeded": error is None, "seconds": round(seconds, 2)}
            self._tell("finished", facts)
        return lambda: task.settle(result, error)


class WorkerPool:
    """All workers of one server, for one memory. With `processes`, questions and jobs run in processes."""

    def __init__(
        self,
        settings: Settings,
        *,
        tell: EventSink | None = None,
        readonly: bool = False,
        processes: bool = False,
    ) -> None:
        if readonly:  # otherwise, a search without a good answer would be recorded as a gap
            settings = settings._replace(environ={**settings.environ, "QUAID_LOG_GAPS": "off"})
        self.settings, self.readonly = settings, readonly
        self.jobs: deque[Job] = deque(maxlen=MOST_JOBS)
        """The last long jobs, newest first."""
        self._job_ids = itertools.count(1)
        tell = tell or (lambda _kind, _facts: None)
        models, views = ModelCache(), make_view_cache()
        self.calls = None if readonly else new_calls()

        def make(job: str = "") -> Worker:
            process = OperationProcess(settings, job) if job and processes else None
            worker = Worker(settings, models, views, process)
            worker.calls = self.calls
            return worker

        self._queues = {
            "read": WorkerQueue("reader", READERS, make, tell),
            "meaning": WorkerQueue(
                "meaning", QUESTION_PROCESSES if processes else QUESTIONS, lambda: make("run"), tell
            ),
            "write": WorkerQueue("writer", WRITERS, make, tell),
            "scoped": WorkerQueue("scoped", SCOPED_WORKERS, make, tell),
            "slow": WorkerQueue("slow", SLOW_WORKERS, make, tell, keeps=False),
            "long": WorkerQueue(
                "long", 1, lambda: make("run-long"), tell, keeps=False, most_of_caller=MAX_JOBS_OF_CALLER
            ),
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

    async def call(
        self, operation: str, arguments: Mapping[str, Any], scope: Scope = "owner", *, stays: bool = False
    ) -> Any:
        """Run an operation, named as a command ("kb status") or as a tool ("memory_get"), and return its record.

        The owner is the author of its changes.
        With `stays`, the operation goes on if the caller is cancelled, for example because a page was closed.
        """
        entry, preset = find_operation(operation)
        key = operation_key(entry)
        listing = key == "clients.connect" and not arguments.get("client")
        if self.readonly and entry.scope != "read" and key not in READ_ONLY_OWNER_OPERATIONS and not listing:
            raise NotAllowed(
                name=operation, needed=entry.scope, granted="read, because the server is read-only"
            )
        values = {**arguments, **preset}

        def work(brain: Brain) -> Any:
            # Set each time, because MCP calls on the same worker set the author to the name of their client.
            brain.agent = brain.session = ""
            return dispatch.call(brain, entry, values, scope)

        return await self.run(queue_name(entry, values), work, entry.command, stays=stays)

    async def run(self, queue: str, work: Callable[[Brain], T], name: str = "", *, stays: bool = False) -> T:
        """Run a function on a worker of a queue and return its result.

        Cancelling the call cancels the task, unless `stays` is set.
        """
        if only := ONLY.get() or self.settings.only:
            whole, queue = work, "scoped"

            def work(brain: Brain) -> T:
                return whole(brain.bound(only))

        task = Task(work, name, asyncio.get_running_loop(), CALLER.get())
        if queue == "long":
            task.job = Job(next(self._job_ids), name, time.time())
        self._queues[queue].add(task)
        if task.job is not None:
            self.jobs.appendleft(task.job)
        return await (asyncio.shield(task.future) if stays else task.future)


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
    if key == "cleanup.dupes" and arguments.get("stored"):
        return "read"
    if key in LONG_OPERATIONS or (key == "facts.check" and not {"slug", "resolve"} & {*arguments}):
        return "long"
    if key in SLOW_OPERATIONS or operation.scope == "owner":
        return "slow"
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
        if task.job is not None:
            task.job.done, task.job.total, task.job.what = done, total, what
        now = time.monotonic()
        if now - began < PROGRESS_DELAY or now - reported < PROGRESS_INTERVAL:
            return
        reported, task.reported = now, True
        tell("progress", {"operation": task.name, "done": done, "total": total, "what": what})

    return report


def _close_quietly(worker: Worker) -> None:
    if worker.process is not None:
        worker.process.end()
    try:
        worker.close()
    except Exception:  # noqa: S110 (committed transactions are durable, the rest is rolled back)
        pass


POLL_SECONDS = 1.0
READ_CALL_SECONDS = 10.0
"""Maximum delay before reads by agents are recorded in the activity log.

They are recorded in batches, because each write to the memory invalidates all readers' caches.
"""
RETRY_SECONDS = 10.0


class MaintenanceThread:
    def __init__(
        self, settings: Settings, tell: EventSink, *, maintains: bool, calls: deque[Any] | None = None
    ) -> None:
        settings = settings._replace(only=())  # folders and vectors are those of the whole memory
        self._settings, self._tell, self._calls = settings, tell, calls
        self._ending = Event()
        self._logged: set[str] = set()
        self._contradictions = ContradictionMonitor()
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
                    brain.calls = self._calls
                    brain.db.limit_cache(CACHE_KIB // 4)
                    self._look(brain)
                    dispatch.store_calls(brain)
            except QuaidError:  # the memory does not exist yet, is locked, or was moved
                self._ending.wait(RETRY_SECONDS)
            except Exception as error:
                log_failure(error, self._logged)
                self._ending.wait(RETRY_SECONDS)
        if self._supervisor is not None:
            self._supervisor.end()

    def _look(self, brain: Brain) -> None:
        changes, flushed_at = ChangeDetector(), 0.0
        while not self._ending.is_set():
            for kind, facts in changes.look(brain):
                self._tell(kind, facts)
            is_late = time.monotonic() - flushed_at > READ_CALL_SECONDS
            if is_late or any(call.is_write for call in list(self._calls or ())):
                dispatch.store_calls(brain)
                flushed_at = time.monotonic()
            if self._calls is not None:  # the server may write
                self._contradictions.look(brain)
            if self._supervisor is not None and self._supervisor.seconds() == 0:
                self._supervisor.start_due_workers(brain)
            self._ending.wait(POLL_SECONDS)

    def _forward_event(self, event: dict[str, Any]) -> None:
        """Forward an event from the process that watches folders."""
        self._tell("files", {**event, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
