"""Brains on threads: whoever asks awaits, whoever works does so on a thread with a connection of its own.

There are four lanes. Readers run side by side. Questions by meaning share one brain, since the model and the vectors
in memory are what a resident process is made of: one of them, not one for each thread. Writers take turns at the
store's lock. What may take minutes (the owner's operations, the knowledge base with its remote) gets a fresh brain
that is closed afterwards, so that a rebuild never stands before a search.

A caller who goes away stops the work where nothing can be left half done: before it starts, at its next report of
progress, or within a statement of SQLite, whose transaction is then rolled back.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from quaid.app import Brain, shared_models
from quaid.config import Settings
from quaid.errors import Cancelled, NotAllowed, TooMany, UnknownCommand
from quaid.operations import dispatch, index
from quaid.operations.registry import Operation, Scope

T = TypeVar("T")
Tell = Callable[[str, dict[str, Any]], None]
Work = Callable[[Brain], Any]

READERS, WRITERS, LONG = 3, 2, 2
MOST_WAITING = 500
CACHE_KIB = 8 * 1024
"""Of each connection's pages: several threads carry one, and the system keeps the file in memory anyhow."""

QUIET_SECONDS, SECONDS_BETWEEN_REPORTS = 0.3, 0.2

MEANING = frozenset(
    {
        "query.query",
        "query.glance",
        "notebook.recall",
        "conversations.conversation_search",
        "kb.kb_query",
    }
)
"""Operations that ask the model or the vectors in memory. A test compares this with what they import."""

LONG_ONES = frozenset(
    {"kb.kb_remember", "kb.kb_status", "kb.kb_show", "kb.kb_backlinks", "merging.dupes", "truth.check"}
)
"""Operations of agents that may take long: git and a remote, or every pair of pages."""

HARMLESS = frozenset(
    {
        *(
            "collections.collection_info",
            "quarantine.quarantine_list",
            "ignoring.ignore_list",
            "vaults.imports",
        ),
        *(
            "embeddings.embeddings_list",
            "embeddings.embeddings_status",
            "models.model_list",
            "tokens.token_list",
        ),
        *(
            "upkeep.config_get",
            "upkeep.config_list",
            "upkeep.validate",
            "skills.skills_list",
            "skills.skills_show",
        ),
        *("clients.instructions", "daemon.daemon_status", "kb_upkeep.kb_curate", "kb_upkeep.kb_doctor"),
    }
)
"""The owner's operations that change nothing: a server for reading only answers them too."""


class Hand(Brain):
    """A brain that gives up when nobody waits for what it does, and shares the model with the others."""

    def __init__(self, settings: Settings, models: Any) -> None:
        super().__init__(settings, unwanted=self.is_unwanted, models=models)
        self.job: Job | None = None

    def is_unwanted(self) -> bool:
        return self.job is not None and self.job.cancelled

    @property
    def db(self) -> Any:
        fresh = self._db is None
        db = super().db
        if fresh:
            db.keep_small(CACHE_KIB)
        return db


class Job:
    """Some work, and the way back for its result."""

    def __init__(self, work: Work, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.work, self.name = work, name
        self.stopped = False
        self.reported = False
        self._loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any more: the server ends, or the caller is gone, which its future knows first."""
        return self.stopped or self.future.cancelled()

    def settle(self, result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            pass  # the server is closed; nobody waits

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)
            self.future.exception()  # looked at: a server that ends may leave nobody to be told, and nothing to log


class Lane:
    """Threads that take work from one queue. A lane that does not keep its brains opens one for each piece."""

    def __init__(self, name: str, threads: int, make: Callable[[], Hand], tell: Tell, keeps: bool) -> None:
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._make, self._tell, self._keeps = make, tell, keeps
        self._running: set[Job] = set()
        self._threads = [Thread(target=self._work, name=f"{name}-{n}", daemon=True) for n in range(threads)]

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def add(self, job: Job) -> None:
        if self._queue.qsize() >= MOST_WAITING:
            raise TooMany(limit=MOST_WAITING, what="requests waiting")
        self._queue.put(job)

    def end(self) -> None:
        """Give up what is running and take nothing more."""
        for each in list(self._running):
            each.stopped = True
        for _ in self._threads:
            self._queue.put(None)

    def is_over(self, deadline: float) -> bool:
        for each in self._threads:
            each.join(max(0.0, deadline - time.monotonic()))
        return not any(each.is_alive() for each in self._threads)

    def _work(self) -> None:
        hand = self._make()
        while (job := self._queue.get()) is not None:
            if job.cancelled:
                job.settle(None, Cancelled())
                continue
            self._running.add(job)
            self._do(hand, job)
            self._running.discard(job)
            if not self._keeps:
                hand = self._renewed(hand)
        _closed(hand)

    def _do(self, hand: Hand, job: Job) -> None:
        began = time.monotonic()
        hand.job, hand.progress = job, _reporter(job, self._tell)
        result: Any = None
        error: BaseException | None = None
        try:
            result = job.work(hand)
        except BaseException as caught:
            error = caught
        hand.job = None
        if job.reported:
            seconds = round(time.monotonic() - began, 2)
            self._tell("finished", {"operation": job.name, "succeeded": error is None, "seconds": seconds})
        job.settle(result, error)

    def _renewed(self, hand: Hand) -> Hand:
        _closed(hand)
        return self._make()


class Crew:
    """Everybody who works on one memory for one server."""

    def __init__(self, settings: Settings, *, tell: Tell | None = None, readonly: bool = False) -> None:
        if readonly:  # a question that finds nothing would be noted as a gap
            settings = settings._replace(environ={**settings.environ, "QUAID_LOG_GAPS": "off"})
        self.settings, self.readonly = settings, readonly
        told: Tell = tell or (lambda _kind, _facts: None)
        models = shared_models()

        def make() -> Hand:
            return Hand(settings, models)

        self._lanes = {
            "read": Lane("reader", READERS, make, told, keeps=True),
            "meaning": Lane("meaning", 1, make, told, keeps=True),
            "write": Lane("writer", WRITERS, make, told, keeps=True),
            "long": Lane("long", LONG, make, told, keeps=False),
        }

    def start(self) -> None:
        for each in self._lanes.values():
            each.start()

    def stop(self, seconds: float) -> bool:
        """Give everything up. Whether all brains were closed in time; what was not finished never was."""
        deadline = time.monotonic() + seconds
        for each in self._lanes.values():
            each.end()
        over = [each.is_over(deadline) for each in self._lanes.values()]  # wait for each of them
        return all(over)

    async def call(self, operation: str, arguments: Mapping[str, Any], scope: Scope = "owner") -> Any:
        """The record of an operation, named as a command ("kb status") or as a tool ("memory_get")."""
        found, preset = find(operation)
        key = key_of(found)
        listing = key == "clients.connect" and not arguments.get("client")
        if self.readonly and found.scope != "read" and key not in HARMLESS and not listing:
            raise NotAllowed(name=operation, needed=found.scope, given="read: this server was started so")
        given = {**arguments, **preset}
        return await self.run(
            lane_of(found), lambda brain: dispatch.call(brain, found, given, scope), operation
        )

    async def run(self, lane: str, work: Callable[[Brain], T], name: str = "") -> T:
        """What some work with a brain gives. Cancelled, it stops the work too."""
        job = Job(work, name, asyncio.get_running_loop())
        self._lanes[lane].add(job)
        return await job.future  # type: ignore[no-any-return]


def find(name: str) -> tuple[Operation, Mapping[str, Any]]:
    """The operation of a command or a tool, and the arguments that an alias sets."""
    if name in index.COMMANDS:
        return dispatch.find_command(name), index.ALIASES.get(name, {})
    if name in index.TOOLS:
        return dispatch.find_tool(name), {}
    raise UnknownCommand(name=name, hint=dispatch.suggestion(name, index.COMMANDS))


def key_of(operation: Operation) -> str:
    return f"{operation.room}.{operation.function.__name__.rstrip('_')}"


def lane_of(operation: Operation) -> str:
    """Where an operation is done."""
    key = key_of(operation)
    if key in MEANING:
        return "meaning"
    if key in LONG_ONES or operation.scope == "owner":
        return "long"
    return operation.scope


def _reporter(job: Job, tell: Tell) -> Callable[[int, int, str], None]:
    """Progress of what takes more than a moment, at a calm pace."""
    began = told = time.monotonic()

    def report(done: int, total: int, what: str) -> None:
        nonlocal told
        if job.cancelled:
            raise Cancelled
        now = time.monotonic()
        if now - began < QUIET_SECONDS or now - told < SECONDS_BETWEEN_REPORTS:
            return
        told, job.reported = now, True
        tell("progress", {"operation": job.name, "done": done, "total": total, "what": what})

    return report


def _closed(hand: Hand) -> None:
    try:
        hand.close()
    except Exception:  # noqa: S110 (what was acknowledged is durable; the rest never was)
        pass
