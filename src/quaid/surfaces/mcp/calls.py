"""Calls that use the memory, run one after another on a thread of their own; in a pause, a look at what is missing.

That thread alone opens, uses and closes the memory, so a long call never keeps the reader from hearing a ping
or a cancellation. A cancelled call stops where nothing can be left half done: before it starts, at its next
report of progress, or within a statement of SQLite, whose transaction is then rolled back.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any

from quaid.brain import Brain, Progress
from quaid.config import Settings
from quaid.errors import Cancelled, QuaidError
from quaid.surfaces.mcp import frames
from quaid.surfaces.mcp.frames import Id, Request
from quaid.surfaces.mcp.handlers import Connection, answer, complain
from quaid.surfaces.mcp.idle import Idle

SECONDS_BETWEEN_REPORTS = 0.1
SECONDS_TO_STOP = 1.5  # clients that sent SIGTERM kill after two

Answer = dict[str, Any]


class Call:
    """A request with the way back for its answer, which is None for one that was cancelled."""

    def __init__(self, request: Request, reply: Callable[[Answer | None], None]) -> None:
        self.request = request
        self.reply = reply
        self.cancelled = False


class Memory(Brain):
    """A brain that gives up when the call it works for is cancelled."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, unwanted=self.is_unwanted, notice=lambda text: complain(f"quaid: {text}."))
        self.call: Call | None = None
        self.looking: Callable[[], bool] | None = None  # set in a pause: whether that is over

    def is_unwanted(self) -> bool:
        if self.looking is not None:
            return self.looking()
        return self.call is not None and self.call.cancelled


class Worker:
    """The thread. `deserted` is called there, with the memory closed, when nobody reads our answers."""

    def __init__(
        self,
        connection: Connection,
        memory: Memory,
        send: Callable[[Any], None],
        deserted: Callable[[], None],
        idle: Idle | None = None,
    ) -> None:
        self._connection = connection
        self._memory = memory
        self._send = send
        self._deserted = deserted
        self._idle = idle or Idle()
        self._complaints: set[str] = set()
        self._calls: deque[Call] = deque()  # the first one is running
        self._changed = Condition()
        self._ending = False
        self._thread = Thread(target=self._work, name="calls", daemon=True)
        self._thread.start()

    def add(self, call: Call) -> None:
        with self._changed:
            self._calls.append(call)
            self._changed.notify()

    def cancel(self, id: Id) -> None:
        """Give up the unanswered requests of this id. One that is answered already is no matter."""
        with self._changed:
            for call in self._calls:
                if call.request.id == id and type(call.request.id) is type(id):
                    call.cancelled = True

    def finish(self, seconds: float | None = None) -> bool:
        """Wait until everything that was asked is answered and the memory is closed. Did that come about?"""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> bool:
        """Give up everything and close the memory. False when that hangs, as on an answer nobody reads."""
        with self._changed:
            for call in self._calls:
                call.cancelled = True
        return self.finish(SECONDS_TO_STOP)

    def _work(self) -> None:
        try:
            while (call := self._next()) is not None:
                self._run(call)
                with self._changed:
                    self._calls.popleft()
        except OSError:  # of a pipe: what goes wrong with a file is an answer
            self._close()
            self._deserted()
        else:
            self._close()

    def _close(self) -> None:
        self._idle.end()
        try:
            self._memory.close()
        except QuaidError as error:
            complain(f"quaid: the memory did not close well: {error}")

    def _next(self) -> Call | None:
        while True:
            with self._changed:
                if not self._is_wanted():
                    self._changed.wait(self._idle.seconds())
                if self._is_wanted():
                    return self._calls[0] if self._calls else None
            if not self._idle.seconds():
                self._look()

    def _is_wanted(self) -> bool:
        return bool(self._calls) or self._ending

    def _look(self) -> None:
        """Use the pause. A call that comes meanwhile ends it. What goes wrong in it costs no call."""
        self._memory.looking = self._is_wanted
        try:
            self._idle.look(self._memory)
        except QuaidError:
            pass  # whoever calls next is told
        except Exception as error:
            problem = f"quaid: work in the background failed ({type(error).__name__}); it is tried again"
            if problem not in self._complaints:
                self._complaints.add(problem)
                complain(problem)
        finally:
            self._memory.looking = None

    def _run(self, call: Call) -> None:
        result = None if call.cancelled else self._result(call)
        call.reply(None if call.cancelled else result)

    def _result(self, call: Call) -> Answer:
        started = time.perf_counter()
        self._memory.call = call
        self._memory.progress = reporter(call, self._send)
        result = answer(self._connection, self._memory, call.request)
        if self._connection.hears(call.request, "debug"):
            self._log(call.request, _succeeded(result), time.perf_counter() - started)
        self._idle.put_off()
        return result

    def _log(self, request: Request, succeeded: bool, seconds: float) -> None:
        data: dict[str, Any] = {
            "method": request.method,
            "succeeded": succeeded,
            "ms": round(seconds * 1000, 2),
        }
        params = {"level": "debug", "logger": "quaid", "data": data}
        self._send(frames.notification("notifications/message", params))


def _succeeded(answer: Answer) -> bool:
    return "error" not in answer and not answer["result"].get("isError")


def reporter(call: Call, send: Callable[[Any], None]) -> Progress:
    """Progress for the client: it only ever rises, also over several rounds, and comes at a calm pace."""
    token = call.request.meta.get("progressToken")
    wanted = isinstance(token, int | str) and not isinstance(token, bool)
    before = last = 0  # steps of earlier rounds, steps of this one
    sent, sent_at = -1, 0.0

    def report(done: int, total: int, what: str) -> None:
        nonlocal before, last, sent, sent_at
        if call.cancelled:
            raise Cancelled
        if done < last:
            before += last
        last = done
        now = time.monotonic()
        if not wanted or before + done <= sent or (now - sent_at < SECONDS_BETWEEN_REPORTS and done < total):
            return
        sent, sent_at = before + done, now
        params = {"progressToken": token, "progress": sent, "total": before + total, "message": what}
        send(frames.notification("notifications/progress", params))

    return report
