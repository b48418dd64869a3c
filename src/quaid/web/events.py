"""Server-sent events about changes in the memory, at /api/events.

Each listener has a bounded queue. If a reader is slow, the oldest events are lost, and the reader receives
the number of lost events. An event has a kind and details of the change; it never contains text of a page or
a question.
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
"""This many past events are kept, to be shown on the settings page."""

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
    """Accepts events from any thread and passes them to the listeners of one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[EventListener] = set()
        self._number = 0
        self._closed = False
        self.recent: deque[tuple[float, str, dict[str, Any]]] = deque(maxlen=MAX_RECENT)

    def open(self) -> None:
        """Attach to the running event loop."""
        self._loop, self._closed = asyncio.get_running_loop(), False

    def close(self) -> None:
        """End all listeners so that the server can stop.

        This is safe to call from any thread or a signal handler.
        """
        self._closed = True
        self._run_in_loop(self._end_all)

    def tell(self, kind: str, facts: dict[str, Any]) -> None:
        """Send an event to all listeners. This is safe to call from any thread."""
        self._run_in_loop(self._put, kind, facts)

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

    def _run_in_loop(self, function: Any, *arguments: Any) -> None:
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(function, *arguments)
            except RuntimeError:
                pass  # the event loop is closed, so there are no listeners

    def _put(self, kind: str, facts: dict[str, Any]) -> None:
        self._number += 1
        if kind != "progress" and facts.get("finished", True):
            self.recent.append((time.time(), kind, facts))
        frame = _event_frame(kind, facts, self._number)
        for listener in self._listeners:
            listener.put(frame)

    def _end_all(self) -> None:
        for listener in self._listeners:
            listener.end()


async def stream_events(request: Request) -> StreamingResponse:
    """Stream events, with a heartbeat while there are none."""
    bus: EventBus = request.app.state.bus
    listener = bus.join()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = _event_frames(bus, listener, lambda: request.state.auth.is_still_valid(request))
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _event_frames(
    bus: EventBus, listener: EventListener, is_allowed: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield frames until the listener is ended or the credentials of the request become invalid."""
    try:
        yield f"retry: {RETRY_MS}\n\n".encode() + _event_frame("hello", {})
        while not listener.over and is_allowed():
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await listener.news.wait()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            listener.news.clear()
            if not is_allowed():
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
