"""Checks on each request before it reaches a route: host, origin, token, cookie, CSRF token and body size.

Another site that is open in the browser can send requests to this machine. That site cannot forge Host (DNS
rebinding), Origin or Sec-Fetch-Site, does not have the token, and because of SameSite=Strict the browser does
not send the cookie with its requests. A page on another port of this machine counts as the same site, so the
cookie alone never permits a change: a form also sends its CSRF token.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope as Asked, Send

from quaid.config import Settings
from quaid.errors import ForeignRequest, NotAllowed, NotLoggedIn, TooLarge, TooSlow, WrongHost
from quaid.http_server import MAX_HEAD, ServerAddress
from quaid.mcp.jsonrpc import MAX_LINE_BYTES, MAX_RAW_LINE_BYTES, decoded_size
from quaid.operations import service
from quaid.operations.registry import SCOPES

MAX_BROWSER_SESSIONS = 100
SESSION_SECONDS = 7 * 24 * 3600.0


class BrowserSession(NamedTuple):
    id: str
    csrf: str
    until: float


class BrowserSessions:
    def __init__(self, port: int, secure: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.cookie = "__Host-quaid" if secure else f"quaid-{port}"
        self._secure = secure
        self._clock = clock
        # The keys are hashes of the cookies, so that the timing of a lookup leaks nothing.
        self._open: dict[str, BrowserSession] = {}

    def begin(self, response: Response) -> BrowserSession:
        """Create a session and set its cookie on the response. At the limit, the oldest session ends."""
        secret = secrets.token_urlsafe(32)
        id = hashlib.sha256(secret.encode()).hexdigest()
        session = BrowserSession(id, secrets.token_urlsafe(32), self._clock() + SESSION_SECONDS)
        while len(self._open) >= MAX_BROWSER_SESSIONS:
            del self._open[next(iter(self._open))]
        self._open[id] = session
        response.set_cookie(
            self.cookie, secret, path="/", httponly=True, samesite="strict", secure=self._secure
        )
        return session

    def of(self, secret: str) -> BrowserSession | None:
        """Return the session of a cookie, or None if it is unknown or expired."""
        session = self._open.get(hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest())
        if session and session.until < self._clock():
            self.end(session.id)
            return None
        return session

    def end(self, id: str) -> None:
        self._open.pop(id, None)


MAX_BODY = MAX_LINE_BYTES
BODY_TIMEOUT = 30.0
SAFE_METHODS = ("GET", "HEAD")
API_PREFIXES = ("/api/", "/mcp")
"""Paths that only programs request; a browser never navigates to them."""

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers would send our own forms with Origin: null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()",
}
NO_STORE = "no-store"

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


class ClientDisconnected(Exception):
    """The client closed the connection before the request was complete."""


class WebCaller(NamedTuple):
    scope: str  # read, write or owner; empty without credentials
    csrf: str = ""  # token of the browser's session
    session: str = ""


class AuthMiddleware:
    """The outermost ASGI layer: admits or rejects each request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        place: ServerAddress,
        sessions: BrowserSessions,
        owner_token: str,
        needed: Callable[[Asked], str],
        refuse: ErrorHandler,
        readonly: bool = False,
    ) -> None:
        self._app = app
        self._settings, self._place, self._sessions = settings, place, sessions
        self._owner_token, self._needed, self._refuse = owner_token, needed, refuse
        self._most = "read" if readonly else "owner"

    async def __call__(self, asked: Asked, receive: Receive, send: Send) -> None:
        if asked["type"] == "lifespan":
            await self._app(asked, receive, send)
            return
        if asked["type"] != "http":  # websockets are not supported
            await send({"type": "websocket.close", "code": 1008})
            return
        asked.setdefault("state", {})
        request = Request(asked)
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("cache-control", NO_STORE)
            await send(message)

        try:
            body = await self._admitted(request, receive)
            await _run_until_disconnect(self._app, asked, body, receive, send_with_headers)
        except ClientDisconnected:
            pass
        except Exception as error:
            if has_begun:  # an error page cannot be sent any more; close the connection
                raise
            await (await self._refuse(request, error))(asked, _empty_receive, send_with_headers)

    async def _admitted(self, request: Request, receive: Receive) -> bytes:
        """Check a request and return its body, or raise an error."""
        size = sum(len(name) + len(value) for name, value in request.scope["headers"])
        if size > MAX_HEAD:
            raise TooLarge(what="The head", size=size, limit=MAX_HEAD)
        self._check_origin(request)
        caller = self._caller(request)
        # Streaming responses check the credentials again with `auth`.
        request.scope["state"].update((caller or WebCaller(""))._asdict(), auth=self)
        needed = self._needed(request.scope)
        if needed != "public":
            self._check_scope(request, caller, needed)
        # JSON from an authenticated caller may be larger on the wire, because `_read_body` limits its size
        # after unescaping.
        most = (
            MAX_RAW_LINE_BYTES
            if needed != "public" and media_type(request.headers) == "application/json"
            else MAX_BODY
        )
        body = b"" if request.method in SAFE_METHODS else await _read_body(request.headers, receive, most)
        if needed != "public" and caller and caller.session and request.method not in SAFE_METHODS:
            _check_csrf(request, caller.csrf, body)
        return body

    def _check_origin(self, request: Request) -> None:
        headers = request.headers
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._place.hosts:
            raise WrongHost(host=", ".join(hosts)[:100], address=self._place.address)
        site = headers.get("sec-fetch-site")
        for origin in headers.getlist("origin"):
            # A page with a strict referrer policy sends "null" as its origin, but Sec-Fetch-Site shows that
            # the page is ours.
            if origin.lower() not in self._place.origins and (origin, site) != ("null", "same-origin"):
                raise ForeignRequest(problem="its Origin is another site")
        if site not in (None, "", "same-origin", "none") and not is_navigation(request):
            raise ForeignRequest(problem="another site sent it")

    def _caller(self, request: Request) -> WebCaller | None:
        """Return the caller, or None if the request has no credentials.

        If there is an Authorization header, the cookie is ignored. Raise NotLoggedIn if the token is invalid.
        """
        headers = request.headers.getlist("authorization")
        if headers:
            kind, _, token = headers[0].partition(" ")
            scope = None
            if len(headers) == 1 and kind.lower() == "bearer":
                scope = service.scope_of_token(self._settings, self._owner_token, token.strip())
            if scope is None:
                problem = "The token is not valid, or was revoked"
                raise NotLoggedIn(problem=problem, remedy="`quaid token create NAME` makes one")
            return WebCaller(self._capped(scope))
        session = self._sessions.of(request.cookies.get(self._sessions.cookie, ""))
        return WebCaller(self._capped("owner"), session.csrf, session.id) if session else None

    def is_still_valid(self, request: Request) -> bool:
        """Return True if the credentials of a request are still valid."""
        try:
            return self._caller(request) is not None
        except NotLoggedIn:
            return False

    def _capped(self, scope: str) -> str:
        return min(scope, self._most, key=SCOPES.index)

    def _check_scope(self, request: Request, caller: WebCaller | None, needed: str) -> None:
        if caller is None:
            remedy = "`quaid web` opens a browser that is logged in"
            if request.url.path.startswith(API_PREFIXES):
                remedy = "Send Authorization: Bearer with a token that `quaid token create NAME` makes"
            raise NotLoggedIn(problem="You are not logged in", remedy=remedy)
        if SCOPES.index(needed) > SCOPES.index(caller.scope):
            name = f"{request.method} {request.url.path[:100]}"
            raise NotAllowed(name=name, needed=needed, granted=caller.scope)


def is_navigation(request: Request) -> bool:
    """Return True if the user navigates to a page. Prefetches and link previews do not count.

    The navigation may start from a link on another site, because that site cannot read the response.
    """
    headers = request.headers
    ahead = headers.get("sec-purpose", "") + headers.get("purpose", "") + headers.get("x-moz", "")
    return (
        request.method == "GET"
        and "prefetch" not in ahead.lower()
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
        and not request.url.path.startswith(API_PREFIXES)
    )


async def _read_body(headers: Headers, receive: Receive, most: int) -> bytes:
    """Read the whole body. Raise TooSlow if it does not arrive within BODY_TIMEOUT.

    Raise TooLarge if more than `most` bytes arrive, or if the body has more than MAX_BODY bytes after its
    JSON escapes are decoded.
    """
    declared = headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit() and int(declared[:18]) > most:
        raise TooLarge(what="The body", size=int(declared[:18]), limit=MAX_BODY)
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientDisconnected
                received += message.get("body", b"")
                if len(received) > most:
                    raise TooLarge(what="The body", size=len(received), limit=MAX_BODY)
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise TooSlow(seconds=round(BODY_TIMEOUT)) from None
    body, size = bytes(received), len(received)
    if size > MAX_BODY and (text := decoded_size(body)) > MAX_BODY:
        raise TooLarge(what="The body", size=text, limit=MAX_BODY)
    return body


def media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_csrf(request: Request, expected: str, body: bytes) -> None:
    token = request.headers.get("x-csrf-token", "")
    if not token and media_type(request.headers) == "application/x-www-form-urlencoded":
        token = form_field(body, "csrf_token")
    if not hmac.compare_digest(token.encode("utf-8", "replace"), expected.encode()):
        raise ForeignRequest(problem="the form was not opened in this session; load the page again")


def form_field(body: bytes, name: str) -> str:
    """Return one field of a URL-encoded form, or an empty string."""
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        return ""
    return fields.get(name, [""])[0]


async def _empty_receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _run_until_disconnect(
    app: ASGIApp, asked: Asked, body: bytes, receive: Receive, send: Send
) -> None:
    """Run the app on a request whose body was already read; cancel it if the client disconnects."""
    gone = asyncio.Event()
    read = False

    async def replay() -> Message:
        nonlocal read
        if not read:
            read = True
            return {"type": "http.request", "body": body, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def watch(answering: "asyncio.Task[Any]") -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()
        answering.cancel()

    answering = asyncio.ensure_future(app(asked, replay, send))
    watching = asyncio.ensure_future(watch(answering))
    try:
        await asyncio.wait([answering])
    except asyncio.CancelledError:  # the server is stopping
        answering.cancel()
        await asyncio.wait([answering])
        raise
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    if not answering.cancelled():
        answering.result()
