"""The HTTP server of a hub. Most requests are one call of a StoreHub; see docs/hub.md for the protocol.

The store is called on threads. A request is admitted by its token before its body is read. Only problems of the hub
are logged; for an unexpected exception, only its name.
"""

import asyncio
import inspect
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quaid import errors
from quaid.http_server import RequestLimits, ServerAddress, check_head, routing_error
from quaid.hub.direct import NOBODY, SpaceCopies, StoreHub
from quaid.hub.store import HubStore
from quaid.spaces.protocol import HUB_ID_HEADER, REQUESTS, Caller, from_json, hash_secret, to_json, types_of

PUBLIC_REQUESTS = ("about", "redeem")
MAX_BODY = 32 * 1024 * 1024
"""Maximum size of a request body. A bundle of up to 16 MB takes 22 MB as base64."""
MAX_PUBLIC_BODY = 4 * 1024
MAX_QUESTION = 1024 * 1024
MAX_BODIES = 256 * 1024 * 1024
"""Maximum total size of the request bodies that are being read."""
MAX_DEVICE_BODIES = 64 * 1024 * 1024
"""Maximum total size of the request bodies of one device that are being read."""
BODY_TIMEOUT = 15.0  # maximum seconds without receiving a new part of the body
SEND_TIMEOUT = 30.0  # maximum seconds for sending one part of the answer
PART_BYTES = 256 * 1024
THREADS = 16
MAX_CONNECTIONS = 2_000
REQUESTS_PER_SECOND = 100
BURST = 400
MAX_AT_ONCE = 8
MAX_WAITS = 64
REFUSED_CODES_PER_MINUTE = 30
MAX_WAIT = 60.0
HEARTBEAT = 15.0
REFRESH_SECONDS = 1.0
JOIN_TEXT = """This is the address of an invitation to a shared space.

Copy it with the part after # and run:  quaid join 'ADDRESS'
"""

Result = TypeVar("Result")


class HubLimits(RequestLimits):
    """Limits per device (requests per second, concurrent and waiting requests), and on wrong invitation codes."""

    def __init__(self) -> None:
        super().__init__()
        self._busy: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._refused: list[float] = []

    @contextmanager
    def slot(self, who: str, kind: str, limit: int) -> Iterator[None]:
        """Occupy one of `limit` slots of a device during a request. Raise TooMany if none is free."""
        if self._busy[who, kind] >= limit:
            raise errors.TooMany(limit=limit, what=f"{kind} of this device at one time")
        self._busy[who, kind] += 1
        try:
            yield
        finally:
            self._busy[who, kind] -= 1
            if not self._busy[who, kind]:
                del self._busy[who, kind]

    @contextmanager
    def body(self, who: str, size: int) -> Iterator[None]:
        """Reserve memory for a request body. Raise TooMany if the limit is exceeded."""
        with self.reserve_body(who, MAX_DEVICE_BODIES, MAX_BODIES) as reserve:
            try:
                reserve(size)
            except errors.ServerBusy:  # devices retry a request after status 429
                raise errors.TooMany(limit=MAX_BODIES, what="bytes in requests at one time") from None
            yield

    def check_codes(self) -> None:
        """Raise TooMany if too many invitation codes were refused in the last minute."""
        now = self._clock()
        self._refused = [at for at in self._refused if at > now - 60]
        if len(self._refused) >= REFUSED_CODES_PER_MINUTE:
            raise errors.TooMany(limit=REFUSED_CODES_PER_MINUTE, what="refused invitations in a minute")

    def code_refused(self) -> None:
        self._refused.append(self._clock())


class WakeUps:
    """Wakes requests that wait for a change of a space."""

    def __init__(self) -> None:
        self._events: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def listen(self, space: str) -> Iterator[asyncio.Event]:
        """Provide an event that is set at each change of a space."""
        event = asyncio.Event()
        self._events[space].add(event)
        try:
            yield event
        finally:
            self._events[space].discard(event)
            if not self._events[space]:
                del self._events[space]

    def wake(self, space: str) -> None:
        for event in self._events.get(space, ()):
            event.set()

    def wake_all(self) -> None:
        for space in list(self._events):
            self.wake(space)


class Hub:
    """State of a running hub server, shared by its request handlers."""

    def __init__(self, store: HubStore, log: Callable[[str], None], copies: SpaceCopies | None) -> None:
        self.store = store
        self.log = log
        self.copies = copies
        self.limits = HubLimits()
        self.wakeups = WakeUps()
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="hub")
        self.is_stopping = False
        self.changed_spaces: set[str] = set()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run a function on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def refresh_copies(self) -> None:
        """Apply new changes to the copies of spaces on disk, until cancelled."""
        copies = self.copies
        if copies is None:
            return
        self.changed_spaces.update(await self.run(copies.existing))
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            spaces, self.changed_spaces = self.changed_spaces, set()
            for space in spaces:
                try:
                    await self.run(partial(copies.refresh, space))
                except errors.QuaidError as error:
                    self.log(str(error))

    def wake(self, space: str) -> None:
        """Wake the requests that wait for a change of this space, and queue a refresh of its copy."""
        self.wakeups.wake(space)
        if self.copies is not None:
            self.changed_spaces.add(space)

    def stop_waiting(self) -> None:
        """End all waiting requests when the server stops."""
        self.is_stopping = True
        self.wakeups.wake_all()


def build_app(
    store: HubStore, address: ServerAddress, log: Callable[[str], None], copies: SpaceCopies | None = None
) -> Starlette:
    """Return the app of a hub. `log` is called with problems of the hub; `copies` answer reads of spaces."""
    hub = Hub(store, log, copies)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def wake(space: str) -> None:
            loop.call_soon_threadsafe(hub.wake, space)

        stop = store.follow(wake)
        refreshing = asyncio.create_task(hub.refresh_copies())
        try:
            yield
        finally:
            stop()
            refreshing.cancel()
            hub.threads.shutdown(wait=False, cancel_futures=True)

    app = Starlette(
        routes=[
            Route("/health", _health),
            Route("/join", _join_page),
            Route("/hub/v1/spaces/{space}/events", _events),
            Route("/hub/v1/spaces/{space}/wait", _wait, methods=["POST"]),
            Route("/hub/v1/spaces/{space}/call/{operation}", _read, methods=["POST"]),
            Route("/hub/v1/spaces/{space}/{request}", _call, methods=["POST"]),
            Route("/hub/v1/{request}", _call, methods=["POST"]),
        ],
        lifespan=lifespan,
        exception_handlers={errors.QuaidError: _refuse, HTTPException: _refuse},
    )
    app.router.redirect_slashes = False
    app.state.hub = hub
    app.add_middleware(HubGuard, hub=hub, address=address)
    return app


class HubGuard:
    """Outermost ASGI layer: checks request headers, adds response headers, and disconnects slow readers."""

    def __init__(self, app: ASGIApp, hub: Hub, address: ServerAddress) -> None:
        self._app, self._hub, self._address = app, hub, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        has_begun = False

        async def send_limited(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[HUB_ID_HEADER] = self._hub.store.hub_id
                headers.setdefault("cache-control", "no-store")
                headers["x-content-type-options"] = "nosniff"
            await _send_in_parts(message, send)

        try:
            check_head(Headers(scope=scope), self._address.hosts, self._address.url)
        except errors.QuaidError as error:
            await _error_answer(error)(scope, receive, send_limited)
            return
        try:
            await self._app(scope, receive, send_limited)
        except ClientDisconnect:
            pass
        except Exception as error:
            if has_begun:  # no error can be sent within an answer; the server closes the connection
                raise
            # The message of the exception may contain text of a page.
            self._hub.log(f"internal error: {type(error).__name__}")
            await _error_answer(errors.Defect(problem=type(error).__name__))(scope, receive, send_limited)


async def _send_in_parts(message: Message, send: Send) -> None:
    """Send a message. A large body is sent in parts, so that a client that does not read is noticed."""
    body = message.get("body", b"")
    for start in range(0, max(1, len(body)), PART_BYTES):
        if len(body) > PART_BYTES:
            part = body[start : start + PART_BYTES]
            is_last = start + PART_BYTES >= len(body)
            message = {"type": "http.response.body", "body": part, "more_body": not is_last}
        async with asyncio.timeout(SEND_TIMEOUT):
            await send(message)


async def _health(request: Request) -> Response:
    """Check that the database answers."""
    hub: Hub = request.app.state.hub
    await hub.run(lambda: hub.store.authenticate(""))
    return PlainTextResponse("ok\n")


async def _join_page(_: Request) -> Response:
    """Explain an invitation that was opened in a browser. The code is after # and never reaches the hub."""
    return PlainTextResponse(JOIN_TEXT)


async def _call(request: Request) -> Response:
    """Answer a request by calling the method of StoreHub that has its name."""
    name = request.path_params["request"]
    if name not in REQUESTS:
        raise errors.NoSuchAddress(path=request.url.path[:200])
    caller = await _admit(request, is_public=name in PUBLIC_REQUESTS)
    hub: Hub = request.app.state.hub
    token_hash: str = request.state.caller_key
    arguments: dict[str, Any] | None = None
    if not token_hash:  # all clients without a token share slots, which slow ones must not occupy
        arguments = await _arguments(request, name, MAX_PUBLIC_BODY)
    with hub.limits.slot(token_hash, "requests", MAX_AT_ONCE):
        if arguments is None:
            arguments = await _arguments(request, name, MAX_BODY)
        if name == "redeem":
            hub.limits.check_codes()

        def work() -> bytes:
            result = getattr(StoreHub(hub.store, caller), name)(**arguments)
            return json.dumps({"result": to_json(result)}, ensure_ascii=False).encode()

        try:
            body = await hub.run(work)
        except errors.InvitationRefused:
            hub.limits.code_refused()
            raise
    return Response(body, media_type="application/json")


async def _read(request: Request) -> Response:
    """Answer a read operation, such as query or get, from the copy of a space."""
    caller = await _admit(request)
    hub: Hub = request.app.state.hub
    params = request.path_params
    if hub.copies is None:
        raise errors.NoSuchAddress(path=request.url.path[:200])
    with hub.limits.slot(request.state.caller_key, "requests", MAX_AT_ONCE):
        arguments = await _json_object(request, MAX_QUESTION)
        read = partial(hub.copies.call, caller, params["space"], params["operation"], arguments)
        result = await hub.run(read)
    return JSONResponse({"result": result})


async def _wait(request: Request) -> Response:
    """Answer as soon as the space has a newer change, or after the timeout."""
    caller = await _admit(request)
    hub: Hub = request.app.state.hub
    arguments = await _arguments(request, "wait", MAX_PUBLIC_BODY)
    with hub.limits.slot(request.state.caller_key, "waiting requests", MAX_WAITS):
        seq = await _next_seq(hub, caller, **arguments)
    return JSONResponse({"result": seq is not None})


async def _next_seq(hub: Hub, caller: Caller, space: str, after: int, timeout: float) -> int | None:
    """Return the last sequence number of a space once it is greater than `after`; None after the timeout."""
    deadline = time.monotonic() + min(max(timeout, 0), MAX_WAIT)
    with hub.wakeups.listen(space) as changed:
        while True:
            changed.clear()
            current = (await hub.run(lambda: hub.store.space(caller, space))).last_seq
            if current > after:
                return current
            left = deadline - time.monotonic()
            if left <= 0 or hub.is_stopping:
                return None
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                return None


async def _events(request: Request) -> Response:
    """Stream the last sequence number of a space after each change, as server-sent events."""
    caller = await _admit(request)
    hub: Hub = request.app.state.hub
    space, token_hash = request.path_params["space"], request.state.caller_key
    after = from_json(int, _number(request.query_params.get("after", "0")), "after")
    await hub.run(lambda: hub.store.space(caller, space))  # report errors before the stream begins

    async def stream() -> AsyncIterator[str]:
        seen = after
        with hub.limits.slot(token_hash, "waiting requests", MAX_WAITS):
            while not hub.is_stopping:
                if await hub.run(lambda: hub.store.authenticate(token_hash)) is None:
                    return
                try:
                    seq = await _next_seq(hub, caller, space, seen, HEARTBEAT)
                except errors.QuaidError:
                    return
                if seq is not None:
                    seen = seq
                yield ": waiting\n\n" if seq is None else f"event: change\ndata: {seq}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


def _number(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


async def _admit(request: Request, is_public: bool = False) -> Caller:
    """Check the token and the rate of a request, and return its author; NOBODY for a public request without a token.

    The hash of the token, or "" without one, becomes `request.state.caller_key`.
    """
    hub: Hub = request.app.state.hub
    expected = request.headers.get(HUB_ID_HEADER)
    if expected and expected != hub.store.hub_id:
        raise errors.DifferentHub(hub=request.url.netloc, actual=hub.store.hub_id, expected=expected[:64])
    header = request.headers.get("authorization", "")
    if not header and is_public:
        request.state.caller_key = ""
        return NOBODY
    kind, _, token = header.partition(" ")
    token_hash = request.state.caller_key = hash_secret(token.strip())
    hub.limits.count_request(token_hash, REQUESTS_PER_SECOND, BURST)
    caller = None
    if kind.lower() == "bearer":
        caller = await hub.run(lambda: hub.store.authenticate(token_hash))
    if caller is None:
        problem = "The token is not valid, has expired or was revoked"
        raise errors.NotLoggedIn(problem=problem, remedy="Ask for an invitation and run `quaid join`")
    return caller


async def _arguments(request: Request, name: str, limit: int) -> dict[str, Any]:
    """Read the body of a request, of at most `limit` bytes, and return the arguments of the method.

    Raise InvalidArgument if an argument is unknown, missing or of the wrong type.
    """
    values = await _json_object(request, limit)
    if "space" in request.path_params:
        values["space"] = request.path_params["space"]
    types = {key: hint for key, hint in types_of(name).items() if key != "return"}
    unknown = sorted(set(values) - set(types))
    if unknown:
        raise errors.InvalidArgument(name=unknown[0][:100], problem=f"is not an argument of {name}")
    arguments = {key: from_json(types[key], value, key) for key, value in values.items()}
    missing = [key for key in types if key not in arguments and key not in _defaults(name)]
    if missing:
        raise errors.InvalidArgument(name=missing[0], problem="is missing")
    return arguments


async def _json_object(request: Request, limit: int) -> dict[str, Any]:
    body = await _read_body(request, limit)
    try:
        values = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise errors.BodyRefused(problem="it is not JSON") from None
    if not isinstance(values, dict):
        raise errors.BodyRefused(problem="it is not a JSON object")
    return values


@cache
def _defaults(name: str) -> tuple[str, ...]:
    """Return the names of the arguments of a method that have default values."""
    parameters = inspect.signature(getattr(StoreHub, name)).parameters.values()
    return tuple(param.name for param in parameters if param.default is not param.empty)


async def _read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request. Raise TooLarge if it has more than `limit` bytes.

    Raise TooSlow if no part of the body arrives within BODY_TIMEOUT.
    """
    hub: Hub = request.app.state.hub
    declared = _number(request.headers.get("content-length", "0"))
    size = declared if isinstance(declared, int) else limit + 1
    if "transfer-encoding" in request.headers:
        size = limit
    if size > limit:
        raise errors.TooLarge(what="The body", size=size, limit=limit)
    received = bytearray()
    with hub.limits.body(request.state.caller_key, size):
        parts = request.stream().__aiter__()
        while True:
            try:
                received += await asyncio.wait_for(anext(parts), BODY_TIMEOUT)
            except StopAsyncIteration:
                return bytes(received)
            except TimeoutError:
                raise errors.TooSlow(seconds=round(BODY_TIMEOUT)) from None
            if len(received) > limit:
                raise errors.TooLarge(what="The body", size=len(received), limit=limit)


def _error_answer(error: errors.QuaidError) -> Response:
    """Return an error as JSON. If the body of the request may not have been read, the connection is closed.

    Problems of the hub itself are described without details, which may contain paths or addresses.
    """
    message, facts = str(error), error.facts
    if error.http_status >= 500:
        message, facts = f"The hub has a problem ({error.code}). Its operator finds details in its log.", {}
    facts = {key: value for key, value in facts.items() if isinstance(value, str | int | float)}
    body = {"error": {"code": error.code, "message": message, "facts": facts}}
    headers = {"retry-after": "1"} if isinstance(error, errors.TooMany) else {}
    if isinstance(
        error, errors.BodyRefused | errors.TooLarge | errors.TooSlow | errors.TooMany | errors.NotLoggedIn
    ):
        headers["connection"] = "close"
    return JSONResponse(body, error.http_status, headers)


async def _refuse(request: Request, error: Exception) -> Response:
    """Convert an exception to an error response."""
    if isinstance(error, HTTPException):
        error = routing_error(request, error)
    assert isinstance(error, errors.QuaidError)
    if error.http_status >= 500:
        request.app.state.hub.log(str(error))
    return _error_answer(error)
