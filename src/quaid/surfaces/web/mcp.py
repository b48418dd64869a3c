"""MCP's streamable HTTP: the handlers of `surfaces/mcp` with another carrier.

Our own, since the SDK costs a process 35 MB and a second of CPU before its first answer (docs/decisions/017-web.md).
Both ways of speaking are served at one address. Revisions up to 2025-11-25 open a session with a handshake; it
belongs to the token that opened it. From 2026-07-28 on a request stands alone and says in its headers what is in it.
Answers are JSON; who asked for progress and can read a stream gets one. There is no stream without a question (405).
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
from quaid.surfaces.web import api
from quaid.surfaces.web.crew import Crew, lane_of

MOST_SESSIONS = 100
IDLE_SECONDS = 3600.0
LARGEST_BATCH = 50
HEADER_MISMATCH = -32020
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose request says in a header, too, what it is about."""

STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
}
"""What these errors are in HTTP, from 2026-07-28 on; every other one is an answer like any: 200."""

_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


class Session:
    """One client that has shaken hands."""

    def __init__(self, connection: Connection, owner: str) -> None:
        self.connection, self.owner = connection, owner
        self.used = time.monotonic()
        self.began, self.calls = time.time(), 0  # for people who look
        self.running: dict[tuple[type, Any], asyncio.Task[Any]] = {}


class Sessions:
    def __init__(self) -> None:
        self._open: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._open.values()))

    def begin(self, connection: Connection, owner: str) -> str:
        """A new session. Those that were silent for long end, and of too many one more."""
        now = time.monotonic()
        for id in [id for id, each in self._open.items() if now - each.used > IDLE_SECONDS]:
            self.end(id)
        if len(self._open) >= MOST_SESSIONS:
            self._make_room()
        id = secrets.token_urlsafe(24)
        self._open[id] = Session(connection, owner)
        return id

    def _make_room(self) -> None:
        """Whoever has most sessions loses the one that was silent longest: a program that opens and never ends them
        shuts out nobody else. Its client is told 404 and begins anew. Nobody loses one that is at work."""
        idle = {id: each for id, each in self._open.items() if not each.running}
        if not idle:
            raise TooMany(limit=MOST_SESSIONS, what="sessions")
        held = Counter(each.owner for each in self._open.values())
        self.end(min(idle, key=lambda id: (-held[idle[id].owner], idle[id].used)))

    def of(self, id: str, owner: str) -> Session | None:
        session = self._open.get(id)
        if session is None or session.owner != owner or time.monotonic() - session.used > IDLE_SECONDS:
            return None
        session.used = time.monotonic()
        return session

    def end(self, id: str) -> None:
        session = self._open.pop(id, None)
        for each in session.running.values() if session else ():
            each.cancel()


async def serve(request: Request) -> Response:
    """Everything that happens at /mcp."""
    if request.method == "DELETE":
        return _ended(request)
    if request.method != "POST":
        return Response(status_code=405, headers={"Allow": "POST, DELETE"})
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return _failed(None, INVALID_REQUEST, "Invalid request: send application/json", 415)
    if not _accepts(request, "application/json"):
        return _failed(None, INVALID_REQUEST, "Invalid request: accept application/json", 406)
    try:
        value = jsonrpc.decode(await request.body())
    except RpcError as error:
        return _failed(None, error.code, str(error), 400)
    if _is_stateless(request, value):
        return await _stateless(request, value)
    return await _with_handshake(request, value)


# From 2026-07-28 on


def _is_stateless(request: Request, value: Any) -> bool:
    if request.headers.get("mcp-protocol-version") in STATELESS_VERSIONS:
        return True
    _, frame = jsonrpc.parse_message(value)
    return isinstance(frame, Message) and VERSION_KEY in frame.meta and frame.method != "initialize"


async def _stateless(request: Request, value: Any) -> Response:
    id, frame = jsonrpc.parse_message(value)
    if isinstance(frame, RpcError):
        return _failed(id, frame.code, str(frame), 400)
    if isinstance(frame, IgnoredMessage):
        return _failed(None, INVALID_REQUEST, "Invalid request: nobody asked for an answer", 400)
    if frame.id is None:
        return Response(status_code=202)
    if frame.method == "initialize":  # of the other revisions: here nobody shakes hands
        return _failed(frame.id, METHOD_NOT_FOUND, "Method not found: initialize", 404)
    problem = _disagreement(request, frame)
    if problem:
        return _failed(frame.id, HEADER_MISMATCH, problem, 400)
    if VERSION_KEY not in frame.meta:
        told = f"Invalid params: _meta must name the revision as {VERSION_KEY}"
        return _failed(frame.id, INVALID_PARAMS, told, 400)
    connection = Connection(request.app.state.tools, api.scope_of(request))
    return await _answered(request, connection, frame, stateless=True)


def _disagreement(request: Request, frame: Message) -> str:
    """How the headers say something else than the body; whoever routes by them must not be led astray."""
    for name in ("mcp-protocol-version", "mcp-method", "mcp-name"):
        if len(request.headers.getlist(name)) > 1:
            return f"{name} is given more than once"
    version = frame.meta.get(VERSION_KEY)
    if version is not None and request.headers.get("mcp-protocol-version") != version:
        return "the header MCP-Protocol-Version says another revision than the body"
    if request.headers.get("mcp-method") != frame.method:
        return "the header Mcp-Method says another method than the body"
    about = (frame.params or {}).get(NAMED.get(frame.method, ""))
    if about is not None and _decoded(request.headers.get("mcp-name")) != about:
        return "the header Mcp-Name says something else than the body"
    return ""


def _decoded(value: str | None) -> str | None:
    """A header's value; what is no plain ASCII comes in base64."""
    found = _ENCODED.fullmatch(value or "")
    if not found:
        return value
    try:
        data = base64.b64decode(found[1], validate=True)
        return data.decode() if base64.b64encode(data).decode() == found[1] else None
    except (binascii.Error, ValueError):
        return None


# Up to 2025-11-25


async def _with_handshake(request: Request, value: Any) -> Response:
    told = request.headers.get("mcp-protocol-version")
    if told is not None and told not in HANDSHAKE_VERSIONS:
        known = ", ".join([*HANDSHAKE_VERSIONS, *STATELESS_VERSIONS])
        return _failed(None, INVALID_REQUEST, f"Unsupported protocol version; known are {known}", 400)
    if isinstance(value, dict) and value.get("method") == "initialize":
        return await _begun(request, value)
    id = request.headers.get("mcp-session-id")
    if id is None:
        return _failed(None, INVALID_REQUEST, "Invalid request: send initialize first, then its session", 400)
    session = _sessions(request).of(id, _owner(request))
    if session is None:
        return _failed(None, INVALID_REQUEST, "There is no such session; send initialize again", 404)
    if isinstance(value, list):
        return await _batch(request, session, value)
    return await _single(request, session, value)


async def _begun(request: Request, value: Any) -> Response:
    id, frame = jsonrpc.parse_message(value)
    if isinstance(frame, RpcError) or not isinstance(frame, Message) or frame.id is None:
        return _failed(id, INVALID_REQUEST, "Invalid request: initialize must be a request with an id", 400)
    connection = Connection(request.app.state.tools, api.scope_of(request))
    result = answer_request(connection, Brain(request.app.state.settings), frame)
    if "error" in result:
        return api.sent(result)
    try:
        session = _sessions(request).begin(connection, _owner(request))
    except QuaidError as error:
        return _failed(frame.id, error.rpc_code, str(error), error.http_status)
    return api.sent(result, headers={"Mcp-Session-Id": session})


async def _single(request: Request, session: Session, value: Any) -> Response:
    id, frame = jsonrpc.parse_message(value)
    if isinstance(frame, RpcError):
        return _failed(id, frame.code, str(frame), 400)
    if isinstance(frame, IgnoredMessage) or frame.id is None:
        _notice(session, frame)
        return Response(status_code=202)
    return await _answered(request, session.connection, frame, session)


async def _batch(request: Request, session: Session, values: list[Any]) -> Response:
    if session.connection.version not in BATCH_VERSIONS:
        told = f"Invalid request: batches belong to {' and '.join(BATCH_VERSIONS)}"
        return _failed(None, INVALID_REQUEST, told, 400)
    if not 0 < len(values) <= LARGEST_BATCH:
        told = f"Invalid request: a batch has from 1 to {LARGEST_BATCH} messages"
        return _failed(None, INVALID_REQUEST, told, 400)
    answers = []
    for each in values:
        id, frame = jsonrpc.parse_message(each)
        if isinstance(frame, RpcError):
            answers.append(jsonrpc.failure(id, frame.code, str(frame)))
        elif isinstance(frame, IgnoredMessage) or frame.id is None:
            _notice(session, frame)
        else:
            answers.append(await _result(request, session.connection, frame, session))
    return api.sent(answers) if answers else Response(status_code=202)


def _notice(session: Session, frame: Message | IgnoredMessage) -> None:
    """A client that gives up a request has it stopped; its answer, if one still comes, is nobody's."""
    if isinstance(frame, Message) and frame.method == "notifications/cancelled":
        id = (frame.params or {}).get("requestId")
        task = session.running.get((type(id), id)) if isinstance(id, int | str) else None
        if task is not None:
            task.cancel()


def _ended(request: Request) -> Response:
    id = request.headers.get("mcp-session-id", "")
    if _sessions(request).of(id, _owner(request)) is None:
        return Response(status_code=404)
    _sessions(request).end(id)
    return Response(status_code=204)


def _sessions(request: Request) -> Sessions:
    found: Sessions = request.app.state.mcp_sessions
    return found


def _owner(request: Request) -> str:
    """Whose session it is: nobody goes on with another one's, and no token with what a wider one began."""
    shown = request.headers.get("authorization", "") or request.state.session
    return hashlib.sha256(f"{request.state.scope} {shown}".encode()).hexdigest()


# Answers


async def _answered(
    request: Request,
    connection: Connection,
    frame: Message,
    session: Session | None = None,
    stateless: bool = False,
) -> Response:
    if (
        "progressToken" in frame.meta
        and _accepts(request, "text/event-stream")
        and not needs_no_memory(frame)
    ):
        stream = _stream(request, connection, frame, session)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
    result = await _result(request, connection, frame, session)
    code = result.get("error", {}).get("code")
    return api.sent(result, STATUS.get(code, 200) if stateless else 200)


async def _stream(
    request: Request, connection: Connection, frame: Message, session: Session | None
) -> AsyncIterator[bytes]:
    """Progress, and in the end the answer."""
    waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    task = asyncio.ensure_future(_result(request, connection, frame, session, waiting))
    try:
        while not task.done() or not waiting.empty():
            news = asyncio.ensure_future(waiting.get())
            await asyncio.wait([task, news], return_when=asyncio.FIRST_COMPLETED)
            if news.done():
                yield _event(news.result())
            else:
                news.cancel()
        yield _event(task.result())
    finally:
        task.cancel()


async def _result(
    request: Request,
    connection: Connection,
    frame: Message,
    session: Session | None,
    progress: "asyncio.Queue[dict[str, Any]] | None" = None,
) -> dict[str, Any]:
    """The answer to one request; it can be given up by its session, or by hanging up."""
    if needs_no_memory(frame):
        return answer_request(connection, Brain(request.app.state.settings), frame)
    crew: Crew = request.app.state.crew
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

    task = asyncio.ensure_future(crew.run(_lane(frame), work, frame.method))
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


def _lane(frame: Message) -> str:
    name = (frame.params or {}).get("name")
    if frame.method == "tools/call" and isinstance(name, str) and name in index.TOOLS:
        return lane_of(dispatch.find_tool(name))
    return "read"


def _accepts(request: Request, kind: str) -> bool:
    accepted = request.headers.get("accept", "*/*")
    wanted = (kind, kind.partition("/")[0] + "/*", "*/*")
    return any(each.partition(";")[0].strip().lower() in wanted for each in accepted.split(","))


def _event(message: dict[str, Any]) -> bytes:
    return b"event: message\ndata: " + jsonrpc.encode(message) + b"\n"


def _failed(id: Any, code: int, message: str, status: int) -> Response:
    return api.sent(jsonrpc.failure(id, code, message), status)
