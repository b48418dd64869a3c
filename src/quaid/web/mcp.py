"""MCP over streamable HTTP, with the same handlers as MCP over stdio.

In protocol revisions up to 2025-11-25, a client opens a session with a handshake, and the session belongs to
the client's token. From revision 2026-07-28 on, requests are stateless and repeat their
method, name and revision in headers. Responses are JSON; a client that asks for progress and accepts a
stream gets server-sent events. A GET is refused with 405.
"""

import asyncio
import base64
import binascii
import hashlib
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import QuaidError, TooMany
from quaid.mcp import jsonrpc
from quaid.mcp.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Request as Message,
    RpcError,
)
from quaid.mcp.server import (
    BATCH_VERSIONS,
    CLIENT_KEY,
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Connection,
    answer_request,
    failure_response,
    is_stateless,
    needs_no_memory,
    progress_reporter,
)
from quaid.operations import dispatch, index
from quaid.web import api
from quaid.web.auth import media_type
from quaid.web.workers import WorkerPool, queue_name

MAX_MCP_SESSIONS = 100
IDLE_SECONDS = 3600.0
MAX_BATCH = 50
HEADER_MISMATCH = -32020
HEADER_NAMED_PARAMS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods that repeat one of their parameters in the header Mcp-Name, with the name of that parameter."""

HTTP_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
}
"""HTTP status of these error codes in stateless revisions (from 2026-07-28 on).

All other errors are sent with status 200.
"""

_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


class HttpRpcError(RpcError):
    """A protocol error that is sent with its own HTTP status."""

    def __init__(self, status: int, message: str, code: int = INVALID_REQUEST, id: Any = None) -> None:
        self.status, self.id = status, id
        super().__init__(code, message)


class McpSession:
    """A client that has completed the handshake."""

    def __init__(self, connection: Connection, owner: str) -> None:
        self.connection, self.owner = connection, owner
        self.used = time.monotonic()
        self.began, self.calls = time.time(), 0  # shown on the settings page
        self.running: dict[tuple[type, Any], asyncio.Task[Any]] = {}


class McpSessions:
    def __init__(self) -> None:
        self._open: dict[str, McpSession] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[McpSession]:
        return iter(list(self._open.values()))

    def begin(self, connection: Connection, owner: str) -> str:
        """Create a session and return its id. End sessions unused for IDLE_SECONDS, and at the limit one more
        session.
        """
        now = time.monotonic()
        for id in [id for id, session in self._open.items() if now - session.used > IDLE_SECONDS]:
            self.end(id)
        if len(self._open) >= MAX_MCP_SESSIONS:
            self._make_room()
        id = secrets.token_urlsafe(24)
        self._open[id] = McpSession(connection, owner)
        return id

    def _make_room(self) -> None:
        """Of the owner with the most sessions, end the idle session that has been unused for the longest time.

        A program that opens sessions without ending them therefore affects only its own sessions. The client
        of the ended session gets a 404 and sends initialize again. Sessions with running requests are never
        ended; if all sessions have running requests, raise TooMany.
        """
        idle = {id: session for id, session in self._open.items() if not session.running}
        if not idle:
            raise TooMany(limit=MAX_MCP_SESSIONS, what="sessions")
        counts = Counter(session.owner for session in self._open.values())
        self.end(min(idle, key=lambda id: (-counts[idle[id].owner], idle[id].used)))

    def of(self, id: str, owner: str) -> McpSession | None:
        session = self._open.get(id)
        if session is None or session.owner != owner or time.monotonic() - session.used > IDLE_SECONDS:
            return None
        session.used = time.monotonic()
        return session

    def end(self, id: str) -> None:
        session = self._open.pop(id, None)
        for task in session.running.values() if session else ():
            task.cancel()


async def serve_mcp(request: Request) -> Response:
    """Handle all requests to /mcp."""
    try:
        return await _answer(request)
    except HttpRpcError as error:
        return api.json_response(jsonrpc.failure(error.id, error.code, str(error)), error.status)


async def _answer(request: Request) -> Response:
    if request.method == "DELETE":
        return _end_session(request)
    if request.method != "POST":
        return Response(status_code=405, headers={"Allow": "POST, DELETE"})
    if media_type(request.headers) != "application/json":
        raise HttpRpcError(415, "Invalid request: send application/json")
    if not _accepts(request, "application/json"):
        raise HttpRpcError(406, "Invalid request: accept application/json")
    try:
        value = await api.decode_json(await request.body())
    except RpcError as error:
        raise HttpRpcError(400, str(error), error.code) from None
    if _is_stateless(request, value):
        return await _answer_stateless(request, value)
    return await _answer_in_session(request, value)


def _parse(value: Any) -> Message | None:
    id, message = jsonrpc.parse_message(value)
    if isinstance(message, RpcError):
        raise HttpRpcError(400, str(message), message.code, id)
    return message


# Stateless revisions, from 2026-07-28 on


def _is_stateless(request: Request, value: Any) -> bool:
    if request.headers.get("mcp-protocol-version") in STATELESS_VERSIONS:
        return True
    _, frame = jsonrpc.parse_message(value)
    return isinstance(frame, Message) and is_stateless(frame)


async def _answer_stateless(request: Request, value: Any) -> Response:
    message = _parse(value)
    if message is None:
        raise HttpRpcError(400, "Invalid request: a response to a request that was not sent")
    if message.id is None:
        return Response(status_code=202)
    if message.method == "initialize":  # stateless revisions have no handshake
        raise HttpRpcError(404, "Method not found: initialize", METHOD_NOT_FOUND, message.id)
    if problem := _header_mismatch(request, message):
        raise HttpRpcError(400, problem, HEADER_MISMATCH, message.id)
    if VERSION_KEY not in message.meta:
        problem = f"Invalid params: _meta must name the revision as {VERSION_KEY}"
        raise HttpRpcError(400, problem, INVALID_PARAMS, message.id)
    connection = _connection(request)
    # Without sessions, the calls of one client with one token on one day are listed together.
    parts = (_session_owner(request), time.strftime("%Y-%m-%d"), message.meta.get(CLIENT_KEY))
    connection.session = hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:8]
    return await _respond(request, connection, message, stateless=True)


def _header_mismatch(request: Request, message: Message) -> str:
    """Return how the headers contradict the body, or an empty string.

    Proxies may route by the headers, so the headers must agree with the body.
    """
    for name in ("mcp-protocol-version", "mcp-method", "mcp-name"):
        if len(request.headers.getlist(name)) > 1:
            return f"{name} must be given only once"
    version = message.meta.get(VERSION_KEY)
    if version is not None and request.headers.get("mcp-protocol-version") != version:
        return "the header MCP-Protocol-Version differs from the body"
    if request.headers.get("mcp-method") != message.method:
        return "the header Mcp-Method differs from the body"
    value = (message.params or {}).get(HEADER_NAMED_PARAMS.get(message.method, ""))
    if value is not None and _decode_header(request.headers.get("mcp-name")) != value:
        return "the header Mcp-Name differs from the body"
    return ""


def _decode_header(value: str | None) -> str | None:
    """Return the value of a header, or None if it is invalid.

    A value that is not plain ASCII is sent in base64, and is decoded here.
    """
    match = _ENCODED.fullmatch(value or "")
    if not match:
        return value
    try:
        data = base64.b64decode(match[1], validate=True)
        return data.decode() if base64.b64encode(data).decode() == match[1] else None
    except (binascii.Error, ValueError):
        return None


# Revisions with sessions, up to 2025-11-25


async def _answer_in_session(request: Request, value: Any) -> Response:
    version = request.headers.get("mcp-protocol-version")
    if version is not None and version not in HANDSHAKE_VERSIONS:
        versions = ", ".join([*HANDSHAKE_VERSIONS, *STATELESS_VERSIONS])
        raise HttpRpcError(400, f"Unsupported protocol version; supported are {versions}")
    if isinstance(value, dict) and value.get("method") == "initialize":
        return _begin_session(request, value)
    id = request.headers.get("mcp-session-id")
    if id is None:
        raise HttpRpcError(400, "Invalid request: send initialize first, then its session")
    session = _sessions(request).of(id, _session_owner(request))
    if session is None:
        raise HttpRpcError(404, "There is no such session; send initialize again")
    if isinstance(value, list):
        return await _answer_batch(request, session, value)
    message = _parse(value)
    if message is None or message.id is None:
        _handle_notification(session, message)
        return Response(status_code=202)
    return await _respond(request, session.connection, message, session)


def _begin_session(request: Request, value: Any) -> Response:
    id, message = jsonrpc.parse_message(value)
    if not isinstance(message, Message) or message.id is None:
        raise HttpRpcError(400, "Invalid request: initialize must be a request with an id", id=id)
    connection = _connection(request)
    result = answer_request(connection, Brain(_settings(request)), message)
    if "error" in result:
        return api.json_response(result)
    try:
        session = _sessions(request).begin(connection, _session_owner(request))
    except QuaidError as error:
        raise HttpRpcError(error.http_status, str(error), error.rpc_code, message.id) from None
    return api.json_response(result, headers={"Mcp-Session-Id": session})


async def _answer_batch(request: Request, session: McpSession, values: list[Any]) -> Response:
    if session.connection.version not in BATCH_VERSIONS:
        raise HttpRpcError(400, f"Invalid request: only {' and '.join(BATCH_VERSIONS)} have batches")
    if not 0 < len(values) <= MAX_BATCH:
        raise HttpRpcError(400, f"Invalid request: a batch has from 1 to {MAX_BATCH} messages")
    answers = []
    for value in values:
        id, message = jsonrpc.parse_message(value)
        if isinstance(message, RpcError):
            answers.append(jsonrpc.failure(id, message.code, str(message)))
        elif message is None or message.id is None:
            _handle_notification(session, message)
        else:
            answers.append(await _call_result(request, session.connection, message, session))
    return api.json_response(answers) if answers else Response(status_code=202)


def _handle_notification(session: McpSession, message: Message | None) -> None:
    """Cancel a running request when its client sends notifications/cancelled."""
    if isinstance(message, Message) and message.method == "notifications/cancelled":
        id = (message.params or {}).get("requestId")
        task = session.running.get((type(id), id)) if isinstance(id, int | str) else None
        if task is not None:
            task.cancel()


def _end_session(request: Request) -> Response:
    id = request.headers.get("mcp-session-id", "")
    if _sessions(request).of(id, _session_owner(request)) is None:
        return Response(status_code=404)
    _sessions(request).end(id)
    return Response(status_code=204)


def _connection(request: Request) -> Connection:
    connection = Connection(request.app.state.tools, api.tool_scope(request), request.state.token)
    connection.has_log = False
    return connection


def _settings(request: Request) -> Settings:
    """Return the settings, bound to the part of the memory that the caller may see."""
    settings: Settings = request.app.state.settings
    return settings._replace(only=request.state.only)


def _sessions(request: Request) -> McpSessions:
    sessions: McpSessions = request.app.state.mcp_sessions
    return sessions


def _session_owner(request: Request) -> str:
    """Return a hash of the caller's credentials and scope.

    Only the token that opened a session, or a later token of the same OAuth grant, can continue it. After a
    change of the token's scope or of the part of the memory that it may see, the session cannot be continued.
    """
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    credentials = request.state.grant or token or request.state.session
    return hashlib.sha256(f"{request.state.scope} {request.state.only} {credentials}".encode()).hexdigest()


# Responses


async def _respond(
    request: Request,
    connection: Connection,
    message: Message,
    session: McpSession | None = None,
    stateless: bool = False,
) -> Response:
    if (
        "progressToken" in message.meta
        and _accepts(request, "text/event-stream")
        and not needs_no_memory(message)
    ):
        stream = _response_stream(request, connection, message, session)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
    result = await _call_result(request, connection, message, session)
    code = result.get("error", {}).get("code")
    return api.json_response(result, HTTP_STATUSES.get(code, 200) if stateless else 200)


async def _response_stream(
    request: Request, connection: Connection, message: Message, session: McpSession | None
) -> AsyncIterator[bytes]:
    """Yield progress notifications, then the response."""
    waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    task = asyncio.ensure_future(_call_result(request, connection, message, session, waiting))
    try:
        while not task.done() or not waiting.empty():
            news = asyncio.ensure_future(waiting.get())
            await asyncio.wait([task, news], timeout=api.CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not request.state.auth.is_still_valid(request):
                news.cancel()
                return
            if news.done():
                yield _sse_event(news.result())
            else:
                news.cancel()
        yield _sse_event(task.result())
    finally:
        task.cancel()


async def _call_result(
    request: Request,
    connection: Connection,
    message: Message,
    session: McpSession | None,
    progress: "asyncio.Queue[dict[str, Any]] | None" = None,
) -> dict[str, Any]:
    """Return the response to one request.

    The request can be cancelled through its session, and is cancelled if the client disconnects.
    """
    if needs_no_memory(message):
        # The handshake reads the memory for its instructions, which must not block the event loop.
        return await asyncio.to_thread(answer_request, connection, Brain(_settings(request)), message)
    pool: WorkerPool = request.app.state.workers
    loop = asyncio.get_running_loop()

    def work(brain: Brain) -> dict[str, Any]:
        request.state.auth.check_again(request)  # the token may have been revoked while the request waited
        if progress is not None:
            publish = brain.progress
            notify = progress_reporter(
                message, lambda news: loop.call_soon_threadsafe(progress.put_nowait, news)
            )

            def both(done: int, total: int, what: str) -> None:
                publish(done, total, what)
                notify(done, total, what)

            brain.progress = both
        return answer_request(connection, brain, message)

    task = asyncio.ensure_future(pool.run(_queue_of(message), work, message.method))
    key = (type(message.id), message.id)
    if session is not None:
        session.running[key] = task
        session.calls += message.method == "tools/call"
    try:
        return await task
    except QuaidError as error:
        return failure_response(message, error)
    except asyncio.CancelledError:
        task.cancel()
        if (current := asyncio.current_task()) and current.cancelling():
            raise
        return jsonrpc.failure(message.id, -32800, "Cancelled on request", {"code": "cancelled"})
    finally:
        if session is not None:
            session.running.pop(key, None)


def _queue_of(message: Message) -> str:
    name = (message.params or {}).get("name")
    if message.method == "tools/call" and isinstance(name, str) and name in index.TOOLS:
        return queue_name(dispatch.find_tool(name))
    return "read"


def _accepts(request: Request, kind: str) -> bool:
    accepted = request.headers.get("accept", "*/*")
    accepted_kinds = (kind, kind.partition("/")[0] + "/*", "*/*")
    return any(part.partition(";")[0].strip().lower() in accepted_kinds for part in accepted.split(","))


def _sse_event(message: dict[str, Any]) -> bytes:
    return b"event: message\ndata: " + jsonrpc.encode(message) + b"\n"
