"""The methods of MCP, independent of the transport, and the server on standard input and output.

Protocol revisions up to 2025-11-25 start with a handshake. From 2026-07-28 on, each request names its
revision in `_meta`. The revision is determined for each request, so both kinds are served side by side. Tool
calls, resources and filled-in prompts use the memory on the call thread only, so that the reader can handle
pings and cancellations during a long call; the instructions are made with a separate connection.

On standard input and output there is one client, and one JSON message per line. Our own loop is used instead of the
SDK, because it needs a fraction of the startup time and RAM (docs/decisions/004-own-stdio-loop.md).
"""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock, Thread
from types import FrameType
from typing import Any, BinaryIO, NamedTuple

import quaid
from quaid.app import Brain, Progress, new_calls
from quaid.config import Settings
from quaid.errors import Cancelled, Defect, FileTrouble, MissingDatabase, QuaidError, UnknownTool
from quaid.mcp import jsonrpc, tools
from quaid.mcp.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_LINE_BYTES,
    METHOD_NOT_FOUND,
    OversizedLine,
    Request,
    RequestId,
    RpcError,
)
from quaid.operations import dispatch
from quaid.operations.registry import Scope
from quaid.worker import Supervisor

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
BATCH_VERSIONS = ("2024-11-05", "2025-03-26")  # later revisions have no batches
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

UNSUPPORTED_VERSION = -32022
NO_RESOURCE = -32002  # up to 2025-11-25; later revisions use INVALID_PARAMS
MAX_NAME_LENGTH = 100  # a method, tool or client name from a client is truncated to this many characters
META_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY, CAPABILITIES_KEY, LEVEL_KEY, CLIENT_KEY = (
    META_PREFIX + "protocolVersion",
    META_PREFIX + "clientCapabilities",
    META_PREFIX + "logLevel",
    META_PREFIX + "clientInfo",
)
OWN_AUTHORS = frozenset(
    {"owner", "sync", "import"}
)  # authors of page versions whose names a client may not use

SERVER_INFO = {"name": "quaid", "title": "Quaid", "version": quaid.__version__}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
Params = dict[str, Any]


class Connection:
    """The state of one client connection: the selected tools, its scope and its log level."""

    def __init__(self, selection: str, scope: Scope = "write", token: str = "") -> None:
        self.selection = selection
        self.token = token  # name of an HTTP client's token, recorded as the author of its writes
        self.has_log = True  # False over HTTP, where no log messages are sent
        self.scope = scope
        self.served = tools.selected_tools(selection)
        self.version: str | None = None  # negotiated in the handshake; None before it
        self.level = "warning"
        self.client = "agent"
        self.session = os.urandom(4).hex()  # identifies the connection in `quaid activity`

    def hears(self, request: Request, level: str) -> bool:
        """Return True if the client wants log messages of this level for this request."""
        threshold = request.meta.get(LEVEL_KEY) if VERSION_KEY in request.meta else self.level
        return threshold in LEVELS and LEVELS.index(level) >= LEVELS.index(threshold)


class MethodCall(NamedTuple):
    connection: Connection
    brain: Brain
    params: Params


Handler = Callable[[MethodCall], dict[str, Any]]


def answer_request(connection: Connection, brain: Brain, request: Request) -> dict[str, Any]:
    """Return the JSON-RPC response to a request. An unexpected exception is reported without its text."""
    try:
        return jsonrpc.result(request.id, _result(connection, brain, request))
    except RpcError as error:
        return jsonrpc.failure(request.id, error.code, str(error), error.data)
    except QuaidError as error:
        return failure_response(request, error)
    except Exception as error:
        log_to_stderr(f"quaid: internal error: {type(error).__name__}")
        if request.method == "tools/call":
            return failure_response(request, Defect(problem=type(error).__name__))
        return jsonrpc.failure(request.id, jsonrpc.INTERNAL_ERROR, "Internal error")


def failure_response(request: Request, error: QuaidError) -> dict[str, Any]:
    """Return the response to a failed request.

    Clients pass tool results on to the model, but may hide protocol errors from it. Therefore a failed tool
    call is a result, unless it was cancelled or, as the specification of MCP asks, its tool does not exist.
    """
    if request.method == "tools/call" and not isinstance(error, Cancelled | UnknownTool):
        result = tools.tool_failure(error, str((request.params or {}).get("name")))
        return jsonrpc.result(
            request.id, _stamped(request.method, result) if is_stateless(request) else result
        )
    if isinstance(error, UnknownTool):
        record = tools.failure_record(error)
        return jsonrpc.failure(request.id, error.rpc_code, record.pop("message"), record)
    return jsonrpc.failure(
        request.id, error.rpc_code, str(error), {**tools.error_facts(error), "code": error.code}
    )


def log_to_stderr(text: str) -> None:
    """Write a line to standard error. The line must not contain text of pages, queries or other client data."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # the client has closed our standard error


def log_failure(error: Exception, logged: set[str]) -> None:
    """Log that background work failed, unless `logged` has the message.

    Only the type of the error is logged, because its text may be private.
    """
    problem = f"quaid: background work failed ({type(error).__name__}) and will be retried"
    if problem not in logged:
        logged.add(problem)
        log_to_stderr(problem)


def needs_no_memory(request: Request) -> bool:
    """Return True if the request can be answered at once, even while a call is using the memory."""
    return request.method not in METHODS_USING_MEMORY


def _result(connection: Connection, brain: Brain, request: Request) -> dict[str, Any]:
    stateless = is_stateless(request)
    if stateless:
        _check_envelope(request.meta)
        connection.client = _client_name(request.meta.get(CLIENT_KEY))
    handler = (STATELESS_METHODS if stateless else HANDSHAKE_METHODS).get(request.method)
    if handler is None:
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method[:MAX_NAME_LENGTH]}")
    if request.params is None:
        raise RpcError(INVALID_PARAMS, "Invalid params: they must be an object")
    if not stateless and connection.version is None and request.method not in ("initialize", "ping"):
        raise RpcError(INVALID_REQUEST, "Invalid request: send initialize first")
    try:
        if request.method in METHODS_USING_MEMORY:
            brain = brain.for_client(connection.token, connection.client)
        result = _handle(handler, MethodCall(connection, brain, request.params))
    except QuaidError as error:
        if request.method != "resources/read" or error.http_status != 404:
            raise
        code = INVALID_PARAMS if stateless else NO_RESOURCE
        raise RpcError(code, str(error), {"uri": request.params.get("uri"), "code": error.code}) from None
    return _stamped(request.method, result) if stateless else result


def _handle(handler: Handler, call: MethodCall) -> dict[str, Any]:
    """Run a handler. If no write has created the memory yet, run the handler with an empty temporary memory."""
    try:
        return handler(call)
    except MissingDatabase:
        if not call.brain.is_creatable:
            raise
    from tempfile import TemporaryDirectory  # imported late, because it loads 0.6 MB

    with (
        TemporaryDirectory(prefix="quaid-") as folder,
        call.brain.beside(os.path.join(folder, "memory.db")) as empty,
    ):
        empty.create(empty.settings.db_path)
        result = handler(call._replace(brain=empty))
    for block in result.get("content", ()):
        block["text"] = block["text"].replace(empty.settings.db_path, call.brain.settings.db_path)
    return result


def is_stateless(request: Request) -> bool:
    """Return True if a request names its protocol revision, as requests do from revision 2026-07-28 on."""
    return VERSION_KEY in request.meta and request.method != "initialize"


def _check_envelope(meta: Params) -> None:
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {VERSION_KEY} must be text")
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {CAPABILITIES_KEY} must be an object")
    if version not in STATELESS_VERSIONS:
        # Older revisions are not listed, because they start with the handshake.
        versions = {"supported": [*STATELESS_VERSIONS], "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", versions)


def _stamped(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Add the fields that 2026-07-28 requires: result type, server info and, if cacheable, a lifetime of zero."""
    stamped = {"resultType": "complete", **result, "_meta": {META_PREFIX + "serverInfo": SERVER_INFO}}
    return {**stamped, "ttlMs": 0, "cacheScope": "private"} if method in CACHEABLE_METHODS else stamped


def _initialize(call: MethodCall) -> dict[str, Any]:
    version = _text_param(call.params, "protocolVersion")
    call.connection.version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    call.connection.client = _client_name(call.params.get("clientInfo"))
    return {
        "protocolVersion": call.connection.version,
        "capabilities": {**CAPABILITIES, **({"logging": {}} if call.connection.has_log else {})},
        "serverInfo": SERVER_INFO,
        "instructions": _instructions(call),
    }


def _instructions(call: MethodCall) -> str:
    """Return the instructions for agents.

    The memory is opened separately, because the call thread may be using its own connection.
    """
    from quaid.operations.instructions import instructions_for  # imported late, for a fast start

    listed = tools.listed_names(call.connection.selection, call.connection.scope)
    with call.brain.beside(call.brain.settings.db_path) as own:
        try:
            visible = own.for_client(call.connection.token, call.connection.client)
        except QuaidError:
            visible = own  # the memory cannot be read; the instructions then omit its contents
        return instructions_for(visible, listed)


def _client_name(info: Any) -> str:
    """Return the name from the client's `clientInfo` on one line, or "agent" if it is missing or reserved."""
    name = info.get("name") if isinstance(info, dict) else None
    name = " ".join(name.split())[:MAX_NAME_LENGTH] if isinstance(name, str) else ""
    return "agent" if name.casefold() in {"", *OWN_AUTHORS} else name


def _discover(call: MethodCall) -> dict[str, Any]:
    return {
        "supportedVersions": [*STATELESS_VERSIONS],
        "capabilities": CAPABILITIES,
        "instructions": _instructions(call),
    }


def _ping(_call: MethodCall) -> dict[str, Any]:
    return {}


def _set_level(call: MethodCall) -> dict[str, Any]:
    level = _text_param(call.params, "level")
    if level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"Invalid params: level must be one of {', '.join(LEVELS)}")
    call.connection.level = level
    return {}


def _list_tools(call: MethodCall) -> dict[str, Any]:
    _refuse_cursor(call.params)
    return {"tools": tools.list_tools(call.connection.selection, call.connection.scope)}


def _call_tool(call: MethodCall) -> dict[str, Any]:
    name = _text_param(call.params, "name")[:MAX_NAME_LENGTH]
    arguments = _object_param(call.params, "arguments")
    call.brain.agent = call.connection.token or call.connection.client
    call.brain.session = call.connection.session
    return tools.call_tool(call.brain, call.connection.served, name, arguments, call.connection.scope)


def _list_resources(call: MethodCall) -> dict[str, Any]:
    cursor = None if call.params.get("cursor") is None else _text_param(call.params, "cursor")
    return tools.list_resources(call.brain, cursor)


def _list_templates(call: MethodCall) -> dict[str, Any]:
    _refuse_cursor(call.params)
    return {"resourceTemplates": tools.TEMPLATES}


def _read_resource(call: MethodCall) -> dict[str, Any]:
    return tools.read_resource(call.brain, _text_param(call.params, "uri"))


def _list_prompts(call: MethodCall) -> dict[str, Any]:
    _refuse_cursor(call.params)
    return {"prompts": tools.PROMPTS}


def _get_prompt(call: MethodCall) -> dict[str, Any]:
    return tools.get_prompt(
        call.brain, _text_param(call.params, "name"), _object_param(call.params, "arguments")
    )


def _text_param(params: Params, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {name} must be text")
    return value


def _object_param(params: Params, name: str) -> dict[str, Any]:
    value = params.get(name)
    if value is not None and not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {name} must be an object")
    return value or {}


def _refuse_cursor(params: Params) -> None:
    """Raise RpcError if a cursor is given.

    These lists are not paginated, so the server never issues a cursor.
    """
    if params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "Invalid params: cursor was not issued by this server")


_SHARED_METHODS: dict[str, Handler] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
}
HANDSHAKE_METHODS: dict[str, Handler] = {
    "initialize": _initialize,
    "ping": _ping,
    "logging/setLevel": _set_level,
    **_SHARED_METHODS,
}
STATELESS_METHODS: dict[str, Handler] = {"server/discover": _discover, **_SHARED_METHODS}
METHODS_USING_MEMORY = frozenset({"tools/call", "resources/list", "resources/read", "prompts/get"})
CACHEABLE_METHODS = frozenset({"server/discover", *_SHARED_METHODS} - {"tools/call", "prompts/get"})

SECONDS_BETWEEN_REPORTS = 0.1
CALL_STOP_SECONDS = 1.5  # clients send SIGKILL two seconds after SIGTERM

Response = dict[str, Any]
Send = Callable[[Any], None]
Reply = Callable[[Response | None], None]


class PendingCall:
    """A request and the callback for its response. The callback gets None if the request was cancelled."""

    def __init__(self, request: Request, reply: Reply) -> None:
        self.request = request
        self.reply = reply
        self.cancelled = False


class CancellableBrain(Brain):
    """A Brain that aborts its work when the current call is cancelled."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            settings, unwanted=self.is_unwanted, notice=lambda text: log_to_stderr(f"quaid: {text}.")
        )
        self.calls = new_calls()
        self.call: PendingCall | None = None
        self.should_stop: Callable[[], bool] | None = (
            None  # set during background work; returns True if that work should stop
        )

    def is_unwanted(self) -> bool:
        if self.should_stop is not None:
            return self.should_stop()
        return self.call is not None and self.call.cancelled


class StdioServer:
    """Answers the lines of one client. Calls that use the memory run on a thread.

    If writing to the client fails, the thread closes the memory and calls `on_disconnect`.
    """

    def __init__(
        self, connection: Connection, memory: CancellableBrain, send: Send, on_disconnect: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._memory = memory
        self._send = send
        self._on_disconnect = on_disconnect
        self._supervisor = Supervisor()
        self._logged: set[str] = set()
        self._calls: deque[PendingCall] = deque()  # the first call is running, or is the next to run
        self._changed = Condition()
        self._ending = False
        self._thread = Thread(target=self._work, name="calls", daemon=True)
        self._thread.start()

    def handle_line(self, line: bytes | OversizedLine) -> None:
        """Handle one line: a message, a batch of messages, or invalid input."""
        if isinstance(line, OversizedLine):
            self._send(_too_long_response(line))
            return
        if not line.strip():
            return
        try:
            value = jsonrpc.decode(line)
        except RpcError as error:
            self._send(jsonrpc.failure(_id_in_line(line), error.code, str(error)))
            return
        if not isinstance(value, list):
            self._handle_message(value, lambda answer: self._send(answer) if answer else None)
            return
        problem = ""
        if self._connection.version not in BATCH_VERSIONS:
            problem = f"batches belong to {' and '.join(BATCH_VERSIONS)}"
        elif not value:
            problem = "an empty batch"
        if problem:
            self._send(jsonrpc.failure(None, INVALID_REQUEST, f"Invalid request: {problem}"))
            return
        reply = _batch_reply(len(value), self._send)
        for message in value:
            self._handle_message(message, reply)

    def _handle_message(self, value: Any, reply: Reply) -> None:
        """Answer a message immediately if the memory is not needed; otherwise queue it for the thread."""
        id, request = jsonrpc.parse_message(value)
        if isinstance(request, RpcError):
            reply(jsonrpc.failure(id, request.code, str(request)))
        elif request is None:
            reply(None)
        elif request.id is None:
            cancelled_id = (request.params or {}).get("requestId")
            if request.method == "notifications/cancelled" and isinstance(cancelled_id, int | str):
                self.cancel(cancelled_id)
            reply(None)
        elif needs_no_memory(request):
            reply(answer_request(self._connection, self._memory, request))
        else:
            self.add(PendingCall(request, reply))

    def add(self, call: PendingCall) -> None:
        with self._changed:
            self._calls.append(call)
            self._changed.notify()

    def cancel(self, id: RequestId) -> None:
        """Cancel the unanswered requests with this ID, if there are any."""
        with self._changed:
            for call in self._calls:
                if call.request.id == id and type(call.request.id) is type(id):
                    call.cancelled = True

    def finish(self, seconds: float | None = None) -> bool:
        """Wait until all requests are answered and the memory is closed.

        Return False if that takes longer than `seconds`.
        """
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> bool:
        """Cancel all calls and close the memory. Return False on timeout, e.g. if the client does not read."""
        with self._changed:
            for call in self._calls:
                call.cancelled = True
        return self.finish(CALL_STOP_SECONDS)

    def _work(self) -> None:
        try:
            while (call := self._next()) is not None:
                self._run(call)
                with self._changed:
                    self._calls.popleft()
        except OSError:  # the client closed its end; other file errors are returned as responses
            self._close()
            self._on_disconnect()
        else:
            self._close()

    def _close(self) -> None:
        self._supervisor.end()
        try:
            dispatch.store_calls(self._memory)
            self._memory.close()
        except QuaidError as error:
            log_to_stderr(f"quaid: closing the memory failed: {error}")

    def _next(self) -> PendingCall | None:
        while True:
            with self._changed:
                if not self._is_wanted():
                    self._changed.wait(self._supervisor.seconds())
                if self._is_wanted():
                    return self._calls[0] if self._calls else None
            if not self._supervisor.seconds():
                self._look()

    def _is_wanted(self) -> bool:
        return bool(self._calls) or self._ending

    def _look(self, is_idle: bool = True) -> None:
        """Start the background work that is due. Errors do not affect calls.

        If `is_idle`, this stops when a call arrives.
        """
        self._memory.should_stop = self._is_wanted if is_idle else None
        try:
            dispatch.store_calls(self._memory)
            self._supervisor.start_due_workers(self._memory)
        except QuaidError:
            pass  # the next call fails with the same error and reports it to the client
        except Exception as error:
            log_failure(error, self._logged)
        finally:
            self._memory.should_stop = None

    def _run(self, call: PendingCall) -> None:
        result = None if call.cancelled else self._result(call)
        call.reply(None if call.cancelled else result)
        if self._supervisor.is_overdue():
            self._look(is_idle=False)

    def _result(self, call: PendingCall) -> Response:
        started = time.perf_counter()
        self._memory.call = call
        self._memory.progress = progress_reporter(call.request, self._send, lambda: call.cancelled)
        result = answer_request(self._connection, self._memory, call.request)
        if self._connection.hears(call.request, "debug"):
            self._log(call.request, _is_success(result), time.perf_counter() - started)
        self._supervisor.put_off()
        return result

    def _log(self, request: Request, succeeded: bool, seconds: float) -> None:
        data: dict[str, Any] = {
            "method": request.method,
            "succeeded": succeeded,
            "ms": round(seconds * 1000, 2),
        }
        params = {"level": "debug", "logger": "quaid", "data": data}
        self._send(jsonrpc.notification("notifications/message", params))


def _is_success(answer: Response) -> bool:
    return "error" not in answer and not answer["result"].get("isError")


def progress_reporter(
    request: Request, send: Callable[[Any], object], is_cancelled: Callable[[], bool] = lambda: False
) -> Progress:
    """Return a progress callback that notifies the client. Values never decrease, and the rate is limited."""
    token = request.meta.get("progressToken")
    is_requested = isinstance(token, int | str) and not isinstance(token, bool)
    before = last = 0  # steps before the operation last restarted its count, and steps since then
    sent, sent_at = -1, 0.0

    def report(done: int, total: int, what: str) -> None:
        nonlocal before, last, sent, sent_at
        if is_cancelled():
            raise Cancelled
        if done < last:
            before += last
        last = done
        now = time.monotonic()
        if (
            not is_requested
            or before + done <= sent
            or (now - sent_at < SECONDS_BETWEEN_REPORTS and done < total)
        ):
            return
        sent, sent_at = before + done, now
        params = {"progressToken": token, "progress": sent, "total": before + total, "message": what}
        send(jsonrpc.notification("notifications/progress", params))

    return report


class StopSignal(BaseException):
    """Raised in the main thread on SIGTERM or SIGINT."""


def serve(settings: Settings, tools: str) -> int:
    """Serve one client until it closes standard input or the process is terminated."""
    connection = Connection(tools)
    with _private_pipes() as (source, sink), _stop_on_signals():
        _announce(settings, tools)
        memory = CancellableBrain(settings)
        server = StdioServer(connection, memory, _sender(sink), on_disconnect=lambda: os._exit(0))
        try:
            for line in jsonrpc.read_lines(source, "id", "method"):
                server.handle_line(line)
            server.finish()
        except (StopSignal, OSError):  # OSError means that the client has closed the pipe for our responses
            if not server.stop():
                os._exit(0)
    return 0


def _announce(settings: Settings, tools: str) -> None:
    missing = "" if os.path.exists(settings.db_path) else " (not made yet: the first write makes it)"
    only = "; ".join(f", only {', '.join(group)}" for group in settings.only)
    log_to_stderr(
        f"quaid {quaid.__version__}: MCP on stdio, tools: {tools}, memory: {settings.db_path}{missing}{only}"
    )


def _too_long_response(line: OversizedLine) -> Any:
    """Return an error response for each request in an oversized line, because the client waits for a response."""
    text = f"Invalid request: a line has at most {MAX_LINE_BYTES:,} bytes of text; this one was skipped"
    ids = [id for message in line.messages if (id := _request_id(message)) is not None]
    answers = [jsonrpc.failure(id, INVALID_REQUEST, text) for id in ids]
    if not answers:
        return jsonrpc.failure(None, INVALID_REQUEST, text)
    return answers if line.is_list else answers[0]


def _id_in_line(line: bytes) -> jsonrpc.RequestId | None:
    """Return the ID of a request that cannot be parsed, for example because it contains NaN, or None without
    an ID.
    """
    seen = OversizedLine(("id", "method"))
    seen.feed(line)
    return _request_id(seen.messages[0]) if len(seen.messages) == 1 and not seen.is_list else None


def _request_id(message: dict[str, Any]) -> jsonrpc.RequestId | None:
    return jsonrpc.request_id(message.get("id")) if isinstance(message.get("method"), str) else None


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
