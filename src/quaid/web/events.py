"""Server-sent events about changes in the memory, at /api/events.

Each listener has a bounded queue: a slow reader loses the oldest events and is told how many. An event says what
happened and where; it never holds text of a page or a question.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from quaid.errors import TooMany

MAX_LISTENERS = 32
MAX_QUEUE = 256
HEARTBEAT_SECONDS = 15.0
MAX_RECENT = 50
"""Events that somebody who comes later is still shown."""

RETRY_MS = 2_000


class EventListener:
    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.lost = 0
        self.news = asyncio.Event()
        self.over = False

    def put(self, frame: bytes) -> None:
        if len(self.waiting) >= MAX_QUEUE:
            self.waiting.popleft()
            self.lost += 1
        self.waiting.append(frame)
        self.news.set()

    def end(self) -> None:
        self.over = True
        self.news.set()


class EventBus:
    """Takes events from any thread and hands them to the listeners of one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[EventListener] = set()
        self._number = 0
        self._closed = False
        self.recent: deque[tuple[float, str, dict[str, Any]]] = deque(maxlen=MAX_RECENT)

    def open(self) -> None:
        """Called in the event loop that serves."""
        self._loop, self._closed = asyncio.get_running_loop(), False

    def close(self) -> None:
        """Let every listener go, so that a server can end. May be called by any thread, or a signal's handler."""
        self._closed = True
        self._in_the_loop(self._end_all)

    def tell(self, kind: str, facts: dict[str, Any]) -> None:
        """Tell everybody. May be called by any thread."""
        self._in_the_loop(self._put, kind, facts)

    def join(self) -> EventListener:
        if len(self._listeners) >= MAX_LISTENERS:
            raise TooMany(limit=MAX_LISTENERS, what="listeners")
        listener = EventListener()
        if self._closed:
            listener.end()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: EventListener) -> None:
        self._listeners.discard(listener)

    def _in_the_loop(self, act: Any, *given: Any) -> None:
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(act, *given)
            except RuntimeError:
                pass  # closed; nobody listens

    def _put(self, kind: str, facts: dict[str, Any]) -> None:
        self._number += 1
        if kind != "progress" and facts.get("finished", True):
            self.recent.append((time.time(), kind, facts))
        frame = _event_frame(kind, facts, self._number)
        for each in self._listeners:
            each.put(frame)

    def _end_all(self) -> None:
        for each in self._listeners:
            each.end()


async def stream_events(request: Request) -> StreamingResponse:
    """The stream of events, with a heartbeat while nothing happens."""
    bus: EventBus = request.app.state.bus
    listener = bus.join()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = _event_frames(bus, listener, lambda: request.state.guard.still_lets(request))
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _event_frames(
    bus: EventBus, listener: EventListener, may_hear: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Ends with the token or the session that it was opened with."""
    try:
        yield f"retry: {RETRY_MS}\n\n".encode() + _event_frame("hello", {})
        while not listener.over and may_hear():
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await listener.news.wait()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            listener.news.clear()
            if not may_hear():
                return
            if listener.lost:
                yield _event_frame("lost", {"events": listener.lost})
                listener.lost = 0
            while listener.waiting:
                yield listener.waiting.popleft()
    finally:
        bus.leave(listener)


def _event_frame(kind: str, facts: dict[str, Any], number: int = 0) -> bytes:
    data = json.dumps(facts, ensure_ascii=True, separators=(",", ":"), default=str)
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {kind}\ndata: {data}\n\n".encode()
