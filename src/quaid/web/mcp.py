"""MCP over streamable HTTP, with the same handlers as MCP over stdio.

Revisions up to 2025-11-25 open a session with a handshake, and the session belongs to the token that opened
it. From 2026-07-28 on, requests are stateless and repeat their method, name and revision in headers.
Responses are JSON; a client that asks for progress and accepts a stream gets server-sent events. A GET is
refused with 405.
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
from quaid.errors import QuaidError, TooMany
from quaid.mcp import jsonrpc
from quaid.mcp.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    IgnoredMessage,
    Request as Message,
    RpcError,
)
from quaid.mcp.server import (
    BATCH_VERSIONS,
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Connection,
    PendingCall,
    answer_request,
    failure_response,
    needs_no_memory,
    progress_reporter,
)
from quaid.operations import dispatch, index
from quaid.web import api
from quaid.web.workers import WorkerPool, queue_name

MAX_MCP_SESSIONS = 100
IDLE_SECONDS = 3600.0
MAX_BATCH = 50
HEADER_MISMATCH = -32020
HEADER_NAMED_PARAMS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods that repeat a parameter in the header Mcp-Name, with the parameter's name."""

HTTP_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
}
"""HTTP status of these error codes in stateless revisions (from 2026-07-28 on); all other errors are sent
with 200."""

_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


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
        """Create a session and return its id. Ends idle sessions, and one more if the limit is reached."""
        now = time.monotonic()
        for id in [id for id, each in self._open.items() if now - each.used > IDLE_SECONDS]:
            self.end(id)
        if len(self._open) >= MAX_MCP_SESSIONS:
            self._make_room()
        id = secrets.token_urlsafe(24)
        self._open[id] = McpSession(connection, owner)
        return id

    def _make_room(self) -> None:
        """End the idle session that was unused longest, of the owner with the most sessions.

        A program that opens sessions without ending them therefore affects only itself. Its client gets a 404
        and sends initialize again. Sessions with running requests are never ended.
        """
        idle = {id: each for id, each in self._open.items() if not each.running}
        if not idle:
            raise TooMany(limit=MAX_MCP_SESSIONS, what="sessions")
        held = Counter(each.owner for each in self._open.values())
        self.end(min(idle, key=lambda id: (-held[idle[id].owner], idle[id].used)))

    def of(self, id: str, owner: str) -> McpSession | None:
        session = self._open.get(id)
        if session is None or session.owner != owner or time.monotonic() - session.used > IDLE_SECONDS:
            return None
        session.used = time.monotonic()
        return session

    def end(self, id: str) -> None:
        session = self._open.pop(id, None)
        for each in session.running.values() if session else ():
            each.cancel()


async def serve_mcp(request: Request) -> Response:
    """Handle all requests to /mcp."""
    if request.method == "DELETE":
        return _end_session(request)
    if request.method != "POST":
        return Response(status_code=405, headers={"Allow": "POST, DELETE"})
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return _error_response(None, INVALID_REQUEST, "Invalid request: send application/json", 415)
    if not _accepts(request, "application/json"):
        return _error_response(None, INVALID_REQUEST, "Invalid request: accept application/json", 406)
    try:
        value = jsonrpc.decode(await request.body())
    except RpcError as error:
        return _error_response(None, error.code, str(error), 400)
    if _is_stateless(request, value):
        return await _answer_stateless(request, value)
    return await _answer_in_session(request, value)


# Stateless revisions, from 2026-07-28 on


def _is_stateless(request: Request, value: Any) -> bool:
    if request.headers.get("mcp-protocol-version") in STATELESS_VERSIONS:
        return True
    _, frame = jsonrpc.parse_message(value)
    return isinstance(frame, Message) and VERSION_KEY in frame.meta and frame.method != "initialize"


async def _answer_stateless(request: Request, value: Any) -> Response:
    id, frame = jsonrpc.parse_message(value)
    if isinstance(frame, RpcError):
        return _error_response(id, frame.code, str(frame), 400)
    if isinstance(frame, IgnoredMessage):
        return _error_response(None, INVALID_REQUEST, "Invalid request: nobody asked for an answer", 400)
    if frame.id is None:
        return Response(status_code=202)
    if frame.method == "initialize":  # stateless revisions have no handshake
        return _error_response(frame.id, METHOD_NOT_FOUND, "Method not found: initialize", 404)
    problem = _header_mismatch(request, frame)
    if problem:
        return _error_response(frame.id, HEADER_MISMATCH, problem, 400)
    if VERSION_KEY not in frame.meta:
        told = f"Invalid params: _meta must name the revision as {VERSION_KEY}"
        return _error_response(frame.id, INVALID_PARAMS, told, 400)
    connection = Connection(request.app.state.tools, api.tool_scope(request))
    return await _respond(request, connection, frame, stateless=True)


def _header_mismatch(request: Request, frame: Message) -> str:
    """Return how the headers contradict the body, or an empty string.

    Proxies may route by the headers, so they must agree with the body.
    """
    for name in ("mcp-protocol-version", "mcp-method", "mcp-name"):
        if len(request.headers.getlist(name)) > 1:
            return f"{name} is given more than once"
    version = frame.meta.get(VERSION_KEY)
    if version is not None and request.headers.get("mcp-protocol-version") != version:
        return "the header MCP-Protocol-Version says another revision than the body"
    if request.headers.get("mcp-method") != frame.method:
        return "the header Mcp-Method says another method than the body"
    about = (frame.params or {}).get(HEADER_NAMED_PARAMS.get(frame.method, ""))
    if about is not None and _decode_header(request.headers.get("mcp-name")) != about:
        return "the header Mcp-Name says something else than the body"
    return ""


def _decode_header(value: str | None) -> str | None:
    """Return a header's value, decoding the base64 form used for values that are not plain ASCII. Return None
    if invalid."""
    found = _ENCODED.fullmatch(value or "")
    if not found:
        return value
    try:
        data = base64.b64decode(found[1], validate=True)
        return data.decode() if base64.b64encode(data).decode() == found[1] else None
    except (binascii.Error, ValueError):
        return None


# Revisions with sessions, up to 2025-11-25


async def _answer_in_session(request: Request, value: Any) -> Response:
    told = request.headers.get("mcp-protocol-version")
    if told is not None and told not in HANDSHAKE_VERSIONS:
        known = ", ".join([*HANDSHAKE_VERSIONS, *STATELESS_VERSIONS])
        return _error_response(None, INVALID_REQUEST, f"Unsupported protocol version; known are {known}", 400)
    if isinstance(value, dict) and value.get("method") == "initialize":
        return await _begin_session(request, value)
    id = request.headers.get("mcp-session-id")
    if id is None:
        return _error_response(
            None, INVALID_REQUEST, "Invalid request: send initialize first, then its session", 400
        )
    session = _sessions(request).of(id, _session_owner(request))
    if session is None:
        return _error_response(None, INVALID_REQUEST, "There is no such session; send initialize again", 404)
    if isinstance(value, list):
        return await _answer_batch(request, session, value)
    return await _answer_single(request, session, value)


async def _begin_session(request: Request, value: Any) -> Response:
    id, frame = jsonrpc.parse_message(value)
    if isinstance(frame, RpcError) or not isinstance(frame, Message) or frame.id is None:
        return _error_response(
            id, INVALID_REQUEST, "Invalid request: initialize must be a request with an id", 400
        )
    connection = Connection(request.app.state.tools, api.tool_scope(request))
    result = answer_request(connection, Brain(request.app.state.settings), frame)
    if "error" in result:
        return api.json_response(result)
    try:
        session = _sessions(request).begin(connection, _session_owner(request))
    except QuaidError as error:
        return _error_response(frame.id, error.rpc_code, str(error), error.http_status)
    return api.json_response(result, headers={"Mcp-Session-Id": session})


async def _answer_single(request: Request, session: McpSession, value: Any) -> Response:
    id, frame = jsonrpc.parse_message(value)
    if isinstance(frame, RpcError):
        return _error_response(id, frame.code, str(frame), 400)
    if isinstance(frame, IgnoredMessage) or frame.id is None:
        _handle_notification(session, frame)
        return Response(status_code=202)
    return await _respond(request, session.connection, frame, session)


async def _answer_batch(request: Request, session: McpSession, values: list[Any]) -> Response:
    if session.connection.version not in BATCH_VERSIONS:
        told = f"Invalid request: batches belong to {' and '.join(BATCH_VERSIONS)}"
        return _error_response(None, INVALID_REQUEST, told, 400)
    if not 0 < len(values) <= MAX_BATCH:
        told = f"Invalid request: a batch has from 1 to {MAX_BATCH} messages"
        return _error_response(None, INVALID_REQUEST, told, 400)
    answers = []
    for each in values:
        id, frame = jsonrpc.parse_message(each)
        if isinstance(frame, RpcError):
            answers.append(jsonrpc.failure(id, frame.code, str(frame)))
        elif isinstance(frame, IgnoredMessage) or frame.id is None:
            _handle_notification(session, frame)
        else:
            answers.append(await _call_result(request, session.connection, frame, session))
    return api.json_response(answers) if answers else Response(status_code=202)


def _handle_notification(session: McpSession, frame: Message | IgnoredMessage) -> None:
    """Cancel a running request when its client sends notifications/cancelled."""
    if isinstance(frame, Message) and frame.method == "notifications/cancelled":
        id = (frame.params or {}).get("requestId")
        task = session.running.get((type(id), id)) if isinstance(id, int | str) else None
        if task is not None:
            task.cancel()


def _end_session(request: Request) -> Response:
    id = request.headers.get("mcp-session-id", "")
    if _sessions(request).of(id, _session_owner(request)) is None:
        return Response(status_code=404)
    _sessions(request).end(id)
    return Response(status_code=204)


def _sessions(request: Request) -> McpSessions:
    found: McpSessions = request.app.state.mcp_sessions
    return found


def _session_owner(request: Request) -> str:
    """Return a hash of the caller's credentials and scope.

    A session can only be continued with the token that opened it, and not after that token's scope has
    changed.
    """
    shown = request.headers.get("authorization", "") or request.state.session
    return hashlib.sha256(f"{request.state.scope} {shown}".encode()).hexdigest()


# Responses


async def _respond(
    request: Request,
    connection: Connection,
    frame: Message,
    session: McpSession | None = None,
    stateless: bool = False,
) -> Response:
    if (
        "progressToken" in frame.meta
        and _accepts(request, "text/event-stream")
        and not needs_no_memory(frame)
    ):
        stream = _response_stream(request, connection, frame, session)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
    result = await _call_result(request, connection, frame, session)
    code = result.get("error", {}).get("code")
    return api.json_response(result, HTTP_STATUSES.get(code, 200) if stateless else 200)


async def _response_stream(
    request: Request, connection: Connection, frame: Message, session: McpSession | None
) -> AsyncIterator[bytes]:
    """Yield progress notifications, then the response."""
    waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    task = asyncio.ensure_future(_call_result(request, connection, frame, session, waiting))
    try:
        while not task.done() or not waiting.empty():
            news = asyncio.ensure_future(waiting.get())
            await asyncio.wait([task, news], return_when=asyncio.FIRST_COMPLETED)
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
    frame: Message,
    session: McpSession | None,
    progress: "asyncio.Queue[dict[str, Any]] | None" = None,
) -> dict[str, Any]:
    """Return the response to one request. It is cancelled by its session or if the client disconnects."""
    if needs_no_memory(frame):
        return answer_request(connection, Brain(request.app.state.settings), frame)
    pool: WorkerPool = request.app.state.workers
    loop = asyncio.get_running_loop()

    def work(brain: Brain) -> dict[str, Any]:
        if progress is not None:
            told, asked = brain.progress, progress_reporter(PendingCall(frame, lambda _: None), tell)

            def both(done: int, total: int, what: str) -> None:
                told(done, total, what)
                asked(done, total, what)

            brain.progress = both
        return answer_request(connection, brain, frame)

    def tell(message: Any) -> None:
        if progress is not None:
            loop.call_soon_threadsafe(progress.put_nowait, message)

    task = asyncio.ensure_future(pool.run(_frame_queue(frame), work, frame.method))
    key = (type(frame.id), frame.id)
    if session is not None:
        session.running[key] = task
        session.calls += frame.method == "tools/call"
    try:
        return await task
    except QuaidError as error:
        return failure_response(frame, error)
    except asyncio.CancelledError:
        task.cancel()
        if asyncio.current_task() is not None and asyncio.current_task().cancelling():  # type: ignore[union-attr]
            raise
        return jsonrpc.failure(frame.id, -32800, "Stopped on request", {"code": "cancelled"})
    finally:
        if session is not None:
            session.running.pop(key, None)


def _frame_queue(frame: Message) -> str:
    name = (frame.params or {}).get("name")
    if frame.method == "tools/call" and isinstance(name, str) and name in index.TOOLS:
        return queue_name(dispatch.find_tool(name))
    return "read"


def _accepts(request: Request, kind: str) -> bool:
    accepted = request.headers.get("accept", "*/*")
    wanted = (kind, kind.partition("/")[0] + "/*", "*/*")
    return any(each.partition(";")[0].strip().lower() in wanted for each in accepted.split(","))


def _sse_event(message: dict[str, Any]) -> bytes:
    return b"event: message\ndata: " + jsonrpc.encode(message) + b"\n"


def _error_response(id: Any, code: int, message: str, status: int) -> Response:
    return api.json_response(jsonrpc.failure(id, code, message), status)
