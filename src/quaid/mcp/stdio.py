"""MCP over standard input and output: one client, one JSON message per line.

This loop is used instead of the SDK, because it needs a fraction of the startup time and RAM
(docs/decisions/004-own-stdio-loop.md).
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
from quaid.mcp import jsonrpc
from quaid.mcp.jsonrpc import (
    INVALID_REQUEST,
    MAX_LINE_BYTES,
    OversizedLine,
    Request,
    RpcError,
)
from quaid.mcp.server import (
    BATCH_VERSIONS,
    CallThread,
    CancellableBrain,
    Connection,
    PendingCall,
    Response,
    answer_request,
    log_to_stderr,
    needs_no_memory,
)

Send = Callable[[Any], None]
Reply = Callable[[Response | None], None]


class StopSignal(BaseException):
    """Raised in the main thread on SIGTERM or SIGINT."""


def serve(settings: Settings, tools: str) -> int:
    """Serve one client until it closes standard input or the process is terminated."""
    connection = Connection(tools)
    with _private_pipes() as (source, sink), _stop_on_signals():
        _announce(settings, tools)
        send = _sender(sink)
        memory = CancellableBrain(settings)
        worker = CallThread(connection, memory, send, on_disconnect=lambda: os._exit(0))
        try:
            for line in jsonrpc.read_lines(source, "id", "method"):
                _handle_line(line, connection, memory, worker, send)
            worker.finish()
        except (StopSignal, OSError):  # OSError means that the client has closed the pipe for our responses
            if not worker.stop():
                os._exit(0)
    return 0


def _announce(settings: Settings, tools: str) -> None:
    missing = "" if os.path.exists(settings.db_path) else " (not made yet: the first write makes it)"
    only = "; ".join(f", only {', '.join(group)}" for group in settings.only)
    log_to_stderr(
        f"quaid {quaid.__version__}: MCP on stdio, tools: {tools}, memory: {settings.db_path}{missing}{only}"
    )


def _handle_line(
    line: bytes | OversizedLine,
    connection: Connection,
    memory: CancellableBrain,
    worker: CallThread,
    send: Send,
) -> None:
    """Handle one line: a message, a batch of messages, or invalid input."""
    if isinstance(line, OversizedLine):
        send(_too_long_response(line))
        return
    if not line.strip():
        return
    try:
        value = jsonrpc.decode(line)
    except RpcError as error:
        send(jsonrpc.failure(_id_in_line(line), error.code, str(error)))
        return
    try:
        if not isinstance(value, list):
            _handle_message(
                value, connection, memory, worker, lambda answer: send(answer) if answer else None
            )
            return
        if connection.version not in BATCH_VERSIONS:
            raise RpcError(
                INVALID_REQUEST, f"Invalid request: batches belong to {' and '.join(BATCH_VERSIONS)}"
            )
        if not value:
            raise RpcError(INVALID_REQUEST, "Invalid request: an empty batch")
        reply = _batch_reply(len(value), send)
        for message in value:
            _handle_message(message, connection, memory, worker, reply)
    except RpcError as error:
        send(jsonrpc.failure(None, error.code, str(error)))


def _too_long_response(line: OversizedLine) -> Any:
    """Return an error response for each request in an oversized line, because the client waits for a response."""
    text = f"Invalid request: a line has at most {MAX_LINE_BYTES:,} bytes of text; this one was skipped"
    ids = [id for message in line.messages if (id := _request_id(message)) is not None]
    answers = [jsonrpc.failure(id, INVALID_REQUEST, text) for id in ids]
    if not answers:
        return jsonrpc.failure(None, INVALID_REQUEST, text)
    return answers if line.is_list else answers[0]


def _id_in_line(line: bytes) -> jsonrpc.RequestId | None:
    """Return the ID of a request that cannot be parsed, for example because it contains NaN."""
    seen = OversizedLine(("id", "method"))
    seen.feed(line)
    return _request_id(seen.messages[0]) if len(seen.messages) == 1 and not seen.is_list else None


def _request_id(message: dict[str, Any]) -> jsonrpc.RequestId | None:
    id = message.get("id")
    is_id = isinstance(id, int | str) and not isinstance(id, bool)
    return id if is_id and isinstance(message.get("method"), str) else None


def _handle_message(
    value: Any, connection: Connection, memory: CancellableBrain, worker: CallThread, reply: Reply
) -> None:
    """Answer a message immediately if the memory is not needed; otherwise queue it for the call thread."""
    id, frame = jsonrpc.parse_message(value)
    if isinstance(frame, RpcError):
        reply(jsonrpc.failure(id, frame.code, str(frame)))
    elif frame is None:
        reply(None)
    elif frame.id is None:
        _handle_notification(frame, worker)
        reply(None)
    elif needs_no_memory(frame):
        reply(answer_request(connection, memory, frame))
    else:
        worker.add(PendingCall(frame, reply))


def _handle_notification(notification: Request, worker: CallThread) -> None:
    if notification.method == "notifications/cancelled":
        id = (notification.params or {}).get("requestId")
        if isinstance(id, int | str):
            worker.cancel(id)


def _batch_reply(count: int, send: Send) -> Reply:
    """Return a reply function for the messages of a batch. The last reply sends all responses together."""
    answers: list[Response] = []
    lock = Lock()

    def reply(answer: Response | None) -> None:
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
        data = memoryview(jsonrpc.encode(message))
        with lock:
            while data:
                data = data[os.write(sink, data) :]

    return send


@contextmanager
def _private_pipes() -> Iterator[tuple[BinaryIO, int]]:
    """Yield duplicates of standard input and output, for use by the protocol only.

    Until the block ends, anything else that prints, including C code, writes to standard error, and reads
    from standard input return end of file.
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
def _stop_on_signals() -> Iterator[None]:
    """Leave the block on SIGTERM or SIGINT. A second signal has its default effect and kills the process."""

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        raise StopSignal

    try:
        for number in before:
            signal.signal(number, stop)
        yield
    except StopSignal:
        pass  # the signal arrived before the loop started or after it ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
