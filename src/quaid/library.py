"""The Python library: a memory whose methods are the operations of the registry.

The methods are built from the registry when they are first used. For editors and type checkers they
are declared in signatures.pyi, which `make docs` generates.
"""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import wraps
from keyword import iskeyword
from threading import BoundedSemaphore, Event, Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from quaid.app import Brain, ModelCache, make_view_cache, new_calls
from quaid.config import Settings, read_settings
from quaid.errors import AlreadyExists, Cancelled, FileTrouble, InvalidArgument
from quaid.operations import background, dispatch, index
from quaid.operations.dispatch import json_value as as_json
from quaid.operations.registry import Operation, Scope, python_params

if TYPE_CHECKING:
    from types import TracebackType

    from quaid.signatures import AsyncOperations, Operations
else:
    Operations = AsyncOperations = object

__all__ = ["AsyncMemory", "Memory", "as_json", "open", "open_async"]

Result = TypeVar("Result")

MAX_CONNECTIONS = 8
"""At most this many calls of one memory run at a time. Further calls wait."""

METHODS = {
    name + "_" * iskeyword(name): key
    for key in dict.fromkeys(key for key, _ in index.COMMANDS.values())
    for name in [key.partition(".")[2]]
}
"""Names of methods, such as `query` or `import_`, and the keys of their operations."""


class CallBrain(Brain):
    """A Brain that runs one call of a Memory at a time, and aborts it on request."""

    def __init__(self, settings: Settings, models: ModelCache, views: Any) -> None:
        super().__init__(
            settings,
            unwanted=self.is_unwanted,
            progress=self._check,
            models=models,
            views=views,
            notice=_log_notice,
        )
        self.stop: Event | None = None  # set by the caller to abort the current call

    def is_unwanted(self) -> bool:
        return self.stop is not None and self.stop.is_set()

    def _check(self, done: int, total: int, what: str) -> None:  # noqa: ARG002 (the arguments of a Progress)
        if self.is_unwanted():
            raise Cancelled


class Memory(Operations):
    """An open memory. Its methods are the operations of the registry, and may be called from several threads.

    Concurrent calls use separate database connections, which share the embedding model and the vectors in RAM.
    """

    def __init__(self, settings: Settings, scope: Scope = "owner", agent: str = "") -> None:
        self._settings, self._scope, self._agent = settings, scope, agent
        self._calls = new_calls() if agent else None
        self._session = os.urandom(4).hex()
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._models, self._views = ModelCache(), make_view_cache()
        self._idle: list[CallBrain] = []
        self._slots, self._recording = BoundedSemaphore(MAX_CONNECTIONS), Lock()
        self._process = os.getpid()

    @property
    def location(self) -> str:
        """The path of the database file."""
        return self._settings.db_path

    @contextmanager
    def _connected(self, stop: Event | None = None) -> Iterator[CallBrain]:
        if self._process != os.getpid():
            # After a fork, SQLite connections must not be used or closed, and the threads of models do not exist.
            self._inherited = self._idle, self._models
            self._reset()
        with self._slots:
            self._require_open()
            brain = self._take_idle() or self._new_brain()
            brain.stop = stop
            try:
                yield brain
            finally:
                brain.stop = None
                self._idle.append(brain)
                if self._closed:  # another thread has closed the memory during the call
                    self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError("the memory is closed")

    def _take_idle(self) -> CallBrain | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _new_brain(self) -> CallBrain:
        brain = CallBrain(self._settings, self._models, self._views)
        brain.agent, brain.session, brain.calls = self._agent, self._session, self._calls
        return brain

    def _call(self, operation: Operation, arguments: dict[str, Any], stop: Event | None = None) -> Any:
        """Run an operation. `arguments` have the same names as for tools. Setting `stop` aborts the call."""
        return self._run(
            lambda brain: dispatch.call(brain, operation, arguments, self._scope), operation.scope, stop
        )

    def _run(self, work: Callable[[Brain], Result], scope: Scope, stop: Event | None = None) -> Result:
        """Run a function with a connection. `scope` is the scope of the operation that it calls."""
        with self._connected(stop) as brain:
            try:
                return work(brain)
            except Cancelled as error:
                if isinstance(error.__context__, KeyboardInterrupt):
                    raise KeyboardInterrupt from None
                raise
            finally:
                if scope != "read":
                    self._record_calls(brain)

    def _record_calls(self, brain: CallBrain) -> None:
        """Store the calls of an agent, for `quaid activity`."""
        if self._calls and self._recording.acquire(blocking=False):  # else another thread is storing them
            try:
                dispatch.store_calls(brain)
            finally:
                self._recording.release()

    def close(self) -> None:
        """Close the memory. Calls that other threads are running may finish; later calls fail."""
        if self._calls and not self._closed:
            with self._connected() as brain:
                self._record_calls(brain)
        self._closed = True
        while self._process == os.getpid() and (idle := self._take_idle()):
            idle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}{' (closed)' * self._closed}>"

    if not TYPE_CHECKING:  # type checkers use signatures.pyi, so that they report unknown methods

        def __getattr__(self, name: str) -> Any:
            return _add_method(Memory, name).__get__(self)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *METHODS})


class AsyncMemory(AsyncOperations):
    """A memory whose methods are coroutines. Calls run one after the other on a worker thread.

    A cancelled call is aborted. A write that was cancelled is either complete or has changed nothing.
    """

    def __init__(self, memory: Memory, executor: ThreadPoolExecutor) -> None:
        self._memory, self._executor = memory, executor
        self._closed = False

    @property
    def location(self) -> str:
        """The path of the database file."""
        return self._memory.location

    async def _call(self, operation: Operation, arguments: dict[str, Any]) -> Any:
        import asyncio

        if self._closed:
            raise ValueError("the memory is closed")
        stop = Event()
        try:
            return await asyncio.wrap_future(
                self._executor.submit(self._memory._call, operation, arguments, stop)
            )
        except asyncio.CancelledError:
            stop.set()
            raise

    async def close(self) -> None:
        """Close the memory after the calls that are running or waiting."""
        if not self._closed:
            import asyncio

            self._closed = True
            closing = self._executor.submit(self._memory.close)
            self._executor.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(closing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._memory).replace("<Memory", "<AsyncMemory")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return _add_method(AsyncMemory, name).__get__(self)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *METHODS})


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    config: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    agent: str | None = None,
) -> Memory:
    """Open a memory. Without `path` it is the one that the command `quaid` uses in this folder.

    A missing memory is created, or with `create=False` or `read_only` reported as MissingDatabase. `config` names a
    config file. With `read_only`, operations that write raise NotAllowed. A memory opened with the name of an `agent`
    has the rights of an agent over MCP: its writes carry that name, follow the rules for reviews and are listed by
    `quaid activity`, and operations for the owner raise NotAllowed.
    """
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        raise FileTrouble(path="The current folder", problem="is gone; change to another one") from None
    if agent is not None and not (agent.isprintable() and agent.strip()):
        raise InvalidArgument(
            name="agent", problem="must be a name, as in planner; leave it out to act as the owner"
        )
    database, file = (None if name is None else os.fspath(name) for name in (path, config))
    if database is not None and (not database or "\0" in database):
        raise InvalidArgument(
            name="path", problem="must be the name of a file; leave it out for the usual memory"
        )
    settings = read_settings(database, dict(os.environ), folder, file)
    for warning in settings.warnings:
        logging.getLogger("quaid").warning(warning)
    memory = Memory(settings, "read" if read_only else "write" if agent else "owner", agent or "")
    try:
        with memory._connected() as brain:
            if create and not read_only:
                background.rebuild_if_deleted(brain)
                with suppress(AlreadyExists):  # it exists, or another process has just created it
                    brain.create_memory(settings.db_path)
            _ = brain.db
    except BaseException:
        memory.close()
        raise
    return memory


async def open_async(
    path: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    config: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    agent: str | None = None,
) -> AsyncMemory:
    """Open a memory like open(), for use in coroutines."""
    import asyncio

    executor = ThreadPoolExecutor(1, thread_name_prefix="quaid")
    future = executor.submit(open, path, create=create, config=config, read_only=read_only, agent=agent)
    try:
        return AsyncMemory(await asyncio.wrap_future(future), executor)
    except BaseException:
        future.add_done_callback(_close_opened)
        executor.shutdown(wait=False)
        raise


def _log_notice(text: str) -> None:
    """Log a notice at level WARNING (a migration or rebuild), or INFO if something missing was created."""
    logging.getLogger("quaid").log(logging.INFO if text.startswith("created ") else logging.WARNING, text)


def _close_opened(future: "Future[Memory]") -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()


def _add_method(kind: type, name: str) -> Callable[..., Any]:
    """Build the method of an operation and add it to the class."""
    if name not in METHODS:
        hint = "" if name.startswith("_") else dispatch.suggestion(name, METHODS)
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}.{hint}".rstrip("."))
    operation = dispatch.operation_by_key(METHODS[name])
    names = {param.variable: param.name for param in operation.params}
    positional = [param.name for param in python_params(operation)[0]]

    def arguments(args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(positional):
            raise TypeError(
                f"{name}() takes {len(positional)} positional arguments, but {len(args)} were given"
            )
        named = {names.get(option, option): value for option, value in options.items()}
        for param, value in zip(positional, args, strict=False):
            if param in named:
                raise TypeError(f"{name}() got multiple values for argument {param!r}")
            named[param] = value
        return {param: _plain(value) for param, value in named.items()}

    @wraps(operation.function)
    def method(self: Any, /, *args: Any, **options: Any) -> Any:
        return self._call(operation, arguments(args, options))

    @wraps(operation.function)
    async def coroutine(self: Any, /, *args: Any, **options: Any) -> Any:
        return await self._call(operation, arguments(args, options))

    function = coroutine if kind is AsyncMemory else method
    function.__name__, function.__qualname__ = name, f"{kind.__name__}.{name}"
    function.__module__ = __name__
    setattr(kind, name, function)
    return function


def _plain(value: Any) -> Any:
    """Convert paths to text and tuples to lists, as operations expect them."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
