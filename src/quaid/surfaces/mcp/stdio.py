"""MCP over standard input and output: one client, one JSON message to a line.

A loop of our own, without the SDK and its event loop: every client pays for a server process of its own, and
this one starts in a fraction of their time and memory (docs/decisions/004-own-stdio-loop.md).
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import FrameType
from typing import Any, BinaryIO

import quaid
from quaid.config import Settings
from quaid.errors import FileTrouble
from quaid.surfaces import json_lines
from quaid.surfaces.json_lines import MAX_DECODED, TooLong
from quaid.surfaces.mcp import frames
from quaid.surfaces.mcp.calls import Answer, Call, Memory, Worker
from quaid.surfaces.mcp.frames import INVALID_REQUEST, Ignored, Request, RpcError
from quaid.surfaces.mcp.handlers import BATCH_VERSIONS, Connection, answer, complain, is_quick

Send = Callable[[Any], None]
Reply = Callable[[Answer | None], None]


class Stopped(BaseException):
    """The process was told to end."""


def serve(settings: Settings, tools: str) -> int:
    """Answer one client until it closes the pipe, or somebody ends the process."""
    connection = Connection(tools)
    with _private_pipes() as (source, sink), _signals_stop():
        _announce(settings, tools)
        send = _sender(sink)
        memory = Memory(settings)
        worker = Worker(connection, memory, send, deserted=lambda: os._exit(0))
        try:
            for line in json_lines.lines(source, "id", "method"):
                _take(line, connection, memory, worker, send)
            worker.finish()
        except (Stopped, OSError):  # OSError: nobody reads our answers any more
            if not worker.stop():
                os._exit(0)
    return 0


def _announce(settings: Settings, tools: str) -> None:
    missing = "" if os.path.exists(settings.db_path) else " (not made yet: quaid init makes it)"
    complain(f"quaid {quaid.__version__}: MCP on stdio, tools: {tools}, memory: {settings.db_path}{missing}")


def _take(line: bytes | TooLong, connection: Connection, memory: Memory, worker: Worker, send: Send) -> None:
    """Handle one line: a message, a batch of them, or nonsense."""
    if isinstance(line, TooLong):
        send(_refusal(line))
        return
    if not line.strip():
        return
    try:
        value = frames.decode(line)
    except RpcError as error:
        send(frames.failure(_id_of(line), error.code, str(error)))
        return
    try:
        if not isinstance(value, list):
            _message(value, connection, memory, worker, lambda given: send(given) if given else None)
            return
        if connection.version not in BATCH_VERSIONS:
            raise RpcError(
                INVALID_REQUEST, f"Invalid request: batches belong to {' and '.join(BATCH_VERSIONS)}"
            )
        if not value:
            raise RpcError(INVALID_REQUEST, "Invalid request: an empty batch")
        reply = _collector(len(value), send)
        for each in value:
            _message(each, connection, memory, worker, reply)
    except RpcError as error:
        send(frames.failure(None, error.code, str(error)))


def _refusal(line: TooLong) -> Any:
    """The answer to each request of a line over the limit. Without an id the client would wait for it for ever."""
    text = f"Invalid request: a line has at most {MAX_DECODED:,} bytes of text; this one was skipped"
    ids = [id for message in line.messages if (id := _request_id(message)) is not None]
    answers = [frames.failure(id, INVALID_REQUEST, text) for id in ids]
    if not answers:
        return frames.failure(None, INVALID_REQUEST, text)
    return answers if line.is_list else answers[0]


def _id_of(line: bytes) -> frames.Id | None:
    """The id of a request that cannot be read, as one with a number that JSON does not have."""
    seen = TooLong(("id", "method"))
    seen.feed(line)
    return _request_id(seen.messages[0]) if len(seen.messages) == 1 and not seen.is_list else None


def _request_id(message: dict[str, Any]) -> frames.Id | None:
    id = message.get("id")
    is_id = isinstance(id, int | str) and not isinstance(id, bool)
    return id if is_id and isinstance(message.get("method"), str) else None


def _message(value: Any, connection: Connection, memory: Memory, worker: Worker, reply: Reply) -> None:
    """Answer one message at once if that needs no memory, else leave it to the worker."""
    id, frame = frames.read(value)
    if isinstance(frame, RpcError):
        reply(frames.failure(id, frame.code, str(frame)))
    elif isinstance(frame, Ignored):
        reply(None)
    elif frame.id is None:
        _notice(frame, worker)
        reply(None)
    elif is_quick(frame):
        reply(answer(connection, memory, frame))
    else:
        worker.add(Call(frame, reply))


def _notice(notification: Request, worker: Worker) -> None:
    if notification.method == "notifications/cancelled":
        id = (notification.params or {}).get("requestId")
        if isinstance(id, int | str):
            worker.cancel(id)


def _collector(count: int, send: Send) -> Reply:
    """A reply for each message of a batch; the last one sends them all."""
    answers: list[Answer] = []
    lock = Lock()

    def reply(answer: Answer | None) -> None:
        nonlocal count
        with lock:
            count -= 1
            if answer:
                answers.append(answer)
            if not count and answers:
                send(answers)

    return reply


def _sender(sink: int) -> Send:
    lock = Lock()

    def send(message: Any) -> None:
        data = memoryview(frames.encode(message))
        with lock:
            while data:
                data = data[os.write(sink, data) :]

    return send


@contextmanager
def _private_pipes() -> Iterator[tuple[BinaryIO, int]]:
    """The protocol's two pipes, moved to where nothing else can read or write them.

    Meanwhile whatever prints, even from C, prints to standard error, and whatever reads finds nothing.
    """
    try:
        source, sink, printed = os.dup(0), os.dup(1), sys.stdout
    except OSError as error:
        raise FileTrouble(path="standard input and output", problem=error.strerror) from error
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    reader = os.fdopen(source, "rb")
    try:
        yield reader, sink
    finally:
        sys.stdout = printed
        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.close(sink)
        reader.close()


@contextmanager
def _signals_stop() -> Iterator[None]:
    """SIGTERM and SIGINT end the loop in good order; a second one ends the process as ever."""

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def stop(_number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        raise Stopped

    try:
        for each in before:
            signal.signal(each, stop)
        yield
    except Stopped:
        pass  # it came before the loop had begun, or after its end
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
