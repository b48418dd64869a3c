"""Checks on each request before it reaches a route: host, origin, token, cookie, CSRF token and body size.

Another site that is open in the browser can send requests to this machine. That site cannot forge Host (which
reveals DNS rebinding), Origin or Sec-Fetch-Site, does not have the token, and because of SameSite=Strict the browser
does not send the cookie with its requests. Cookies are not separated by port: a browser sends the cookies of
127.0.0.1 to every server at that address. Therefore sessions exist only on a random host name, and a change
needs the CSRF token of the session in addition to the cookie.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope as AsgiScope, Send

from quaid.config import Settings
from quaid.errors import ForeignRequest, NotAllowed, NotLoggedIn, TooLarge, TooMany, TooSlow
from quaid.http_server import RequestLimits, ServerAddress, check_head, url_host
from quaid.mcp.jsonrpc import MAX_LINE_BYTES, MAX_RAW_LINE_BYTES, decoded_size
from quaid.operations import service
from quaid.operations.registry import SCOPES
from quaid.web.workers import CALLER, ONLY

NOT_LOGGED_IN = "You are not logged in"
MAX_RETURN_PATH = 8_000  # the URL of an OAuth request contains the client's registration
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def _cookie_name(address: ServerAddress) -> str:
    return "__Host-quaid" if address.secure else f"quaid-{address.port}"


class BrowserSessions:
    """The sessions of browsers, and the address of each host whose cookies are accepted.

    `name` replaces the random host name of the memory. `lan` is a second address, for other devices in the network.
    """

    def __init__(
        self,
        settings: Settings,
        address: ServerAddress,
        name: str = "",
        lan: ServerAddress | None = None,
    ) -> None:
        self._settings, self.lan = settings, lan
        scheme = "https" if address.secure else "http"
        own = address.url.partition("://")[2]
        names = sorted(host for host in address.hosts if not _is_loopback_name(host))
        if address.secure and names and not name:
            hosts = [own, *names] if own in names else names
        elif _is_loopback_name(own) or name:
            hosts = [f"{name or service.web_host_name(settings)}:{address.port}"]
        else:
            hosts = []  # the random name resolves to 127.0.0.1, where another program may listen
        self.hosts = {host: address._replace(url=f"{scheme}://{host}") for host in hosts}
        self._local_hosts = address.hosts | self.hosts.keys()
        self._scheme = scheme
        if lan:
            self.hosts |= dict.fromkeys(lan.hosts, lan)
        self.origins = address.origins | {host.url for host in self.hosts.values()}

    def accepted_hosts(self, asgi_scope: AsgiScope) -> Set[str]:
        """Return the Host values that are accepted on the address at which a request arrived."""
        ip, port = asgi_scope.get("server") or ("", 0)
        own = f"{url_host(ip)}:{port}"
        return self.lan.hosts if self.lan and own in self.lan.hosts else self._local_hosts

    def origin(self, request: Request) -> str:
        """Return the address under which a request has reached this server, as in http://127.0.0.1:4321."""
        host = request_host(request)
        return self.hosts[host].url if host in self.hosts else f"{self._scheme}://{host}"

    def begin(self, request: Request, response: Response) -> None:
        """Create a session and set its cookie on the response."""
        host = request_host(request)
        device = device_name(request.headers.get("user-agent", ""))
        response.set_cookie(
            _cookie_name(self.hosts[host]),
            service.begin_session(self._settings, host, device, time.time()),
            max_age=int(service.MAX_SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self.hosts[host].secure,
        )

    def of(self, request: Request) -> tuple[str, str] | None:
        """Return the id of the request's session and its CSRF token, or None if there is no session."""
        host = request_host(request)
        if host not in self.hosts:
            return None
        secret = request.cookies.get(_cookie_name(self.hosts[host]), "")
        session = service.find_session(self._settings, host, secret, time.time()) if secret else None
        return (session.id, csrf_token(secret)) if session else None

    def end(self, request: Request, response: Response) -> None:
        """End the session of a request and delete its cookie."""
        service.end_session(self._settings, request.state.session)
        if own := self.hosts.get(request_host(request)):
            response.delete_cookie(
                _cookie_name(own), path="/", secure=own.secure, httponly=True, samesite="strict"
            )


def request_host(request: Request) -> str:
    return request.headers.get("host", "").lower()


def csrf_token(secret: str) -> str:
    """Return the CSRF token of a session. It is derived from the cookie, so that it need not be stored."""
    return hmac.new(secret.encode("utf-8", "replace"), b"csrf", hashlib.sha256).hexdigest()


def device_name(user_agent: str) -> str:
    """Return the browser and the system that a User-Agent header names, as in "Firefox on Android"."""
    browsers = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "FxiOS": "Firefox", "CriOS": "Chrome"}
    browsers |= {"SamsungBrowser": "Samsung Internet", "Chrome": "Chrome", "Safari": "Safari"}
    systems = {"iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows"}
    systems |= {"Macintosh": "Mac", "CrOS": "ChromeOS", "Linux": "Linux"}
    browser = next((name for word, name in browsers.items() if word in user_agent), "A browser")
    system = next((name for word, name in systems.items() if word in user_agent), "")
    return f"{browser} on {system}" if system else browser


def _is_loopback_name(host: str) -> bool:
    return host in LOOPBACK_NAMES or host.rpartition(":")[0] in LOOPBACK_NAMES


MAX_BODY = MAX_LINE_BYTES
MAX_CALLER_BODIES, MAX_BODIES = 32 * 1024 * 1024, 128 * 1024 * 1024
"""Maximum bytes of request bodies in memory at one time: per caller, and in total."""
MAX_PUBLIC_BODY = 16 * 1024
"""Maximum bytes of the body of a request to a public route.

For MAX_CALLER_BODIES, all callers without credentials together count as one caller.
"""
BODY_TIMEOUT = 30.0
REFUSAL_SECONDS = 1.0
SAFE_METHODS = ("GET", "HEAD")
TOOL_PREFIXES = ("/api/memory/", "/api/notebook/")
API_PREFIXES = ("/api/", "/mcp", "/oauth/register", "/oauth/token", "/oauth/revoke", "/.well-known/")
"""Paths that only programs request; a browser never navigates to them."""

CLIP_PATH = "/api/clip"
"""The only path that pages of other sites may call. Cookies are ignored there, and a token is required."""
CLIP_HEADERS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": "authorization, content-type",
    "access-control-allow-private-network": "true",
    "access-control-max-age": "600",
}

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " worker-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers would send our own forms with Origin: null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()",
}
NO_STORE = "no-store"

Endpoint = Callable[[Request], Awaitable[Response]]
ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]
DEFAULT_SCOPE = "owner"
"""The scope of a route that declares none."""


class ScopedRoute(Route):
    """A route with the scope that each of its methods needs: read, write, owner, or "public" for no login."""

    def __init__(self, path: str, endpoint: Endpoint, **scopes: str) -> None:
        super().__init__(path, endpoint, methods=list(scopes))
        self.scopes = scopes


def required_scope(routes: Sequence[BaseRoute], asgi_scope: AsgiScope) -> str:
    """Return the scope that the matching route needs, or "public".

    An unknown address needs the read scope, so that only a caller who is logged in gets a 404. A method that a
    public address does not have needs no login either.
    """
    partial = "read"
    method = "GET" if asgi_scope["method"] == "HEAD" else asgi_scope["method"]
    for route in routes:
        match, _ = route.matches(asgi_scope)
        scopes = route.scopes if isinstance(route, ScopedRoute) else {}
        if match == Match.FULL:
            return scopes.get(method, DEFAULT_SCOPE)
        if match == Match.PARTIAL and "public" in scopes.values():
            partial = "public"
    return partial


class WebCaller(NamedTuple):
    scope: str  # read, write or owner; empty without credentials
    csrf: str = ""  # token of the browser's session
    session: str = ""
    token: str = ""  # name of the token; empty for the owner
    grant: str = ""  # id of the grant to which an OAuth token belongs
    only: tuple[tuple[str, ...], ...] = ()  # the part of the memory that the caller may see; () for all of it

    @property
    def key(self) -> str:
        """The name of the caller in rate limits and queues."""
        return self.session or (f"token {self.token}" if self.token else "owner")


class AuthMiddleware:
    """The outermost ASGI layer: admits or rejects each request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        address: ServerAddress,
        sessions: BrowserSessions,
        routes: Sequence[BaseRoute],
        refuse: ErrorHandler,
        readonly: bool = False,
    ) -> None:
        self._app = app
        self._settings, self._address, self._sessions = settings, address, sessions
        self._tokens = service.TokenReader(settings)
        self._limits = RequestLimits()
        self._rate, self._burst = (
            float(settings.option(name)) for name in ("web.requests_per_second", "web.burst")
        )
        self._routes, self._refuse = routes, refuse
        self._most = "read" if readonly else "owner"

    async def __call__(self, asgi_scope: AsgiScope, receive: Receive, send: Send) -> None:
        if asgi_scope["type"] == "lifespan":
            await self._app(asgi_scope, receive, send)
            return
        if asgi_scope["type"] != "http":  # websockets are not supported
            await send({"type": "websocket.close", "code": 1008})
            return
        asgi_scope.setdefault("state", {})
        request = Request(asgi_scope)
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("cache-control", NO_STORE)
                if asgi_scope["path"] == CLIP_PATH:
                    headers.update(CLIP_HEADERS)
            await send(message)

        try:
            with ExitStack() as stack:
                body = await self._admitted(request, receive, stack)
                await _run_until_disconnect(self._app, asgi_scope, body, receive, send_with_headers)
        except ClientDisconnect:
            pass
        except Exception as error:
            if has_begun:  # an error page cannot be sent any more; close the connection
                raise
            await (await self._refuse(request, error))(asgi_scope, _empty_receive, send_with_headers)

    async def _admitted(self, request: Request, receive: Receive, stack: ExitStack) -> bytes:
        """Check a request and return its body, or raise an error. `stack` holds the memory reserved for it."""
        check_head(request.headers, self._sessions.accepted_hosts(request.scope), self._address.url)
        self._check_origin(request)
        try:
            caller = self._caller(request)
        except NotLoggedIn:
            await self._count_stranger(request, receive)
            raise
        # Streaming responses check the credentials again with `auth`.
        who = caller.key if caller else ""
        request.scope["state"].update((caller or WebCaller(""))._asdict(), caller_key=who, auth=self)
        CALLER.set(who)
        ONLY.set(caller.only if caller else self._settings.only)
        if caller:
            self._limits.count_request(who, self._rate, self._burst)
        else:
            await self._count_stranger(request, receive)
        needed = required_scope(self._routes, request.scope)
        if needed != "public":
            self._check_route(request, caller)
            self._check_scope(request, caller, needed)
        # JSON from an authenticated caller may be larger on the wire, because `_read_body` limits its size
        # after unescaping.
        most = MAX_RAW_LINE_BYTES if media_type(request.headers) == "application/json" else MAX_BODY
        most = MAX_PUBLIC_BODY if needed == "public" else most
        if request.method in SAFE_METHODS:
            return b""
        reserve = stack.enter_context(self._limits.reserve_body(who, MAX_CALLER_BODIES, MAX_BODIES))
        body = await _read_body(request.headers, receive, most, reserve)
        if needed != "public" and caller and caller.session:
            _check_csrf(request, caller.csrf, body)
        return body

    async def _count_stranger(self, request: Request, receive: Receive) -> None:
        """Count a request without valid credentials toward the rate limit of its network address.

        A refusal is delayed by REFUSAL_SECONDS, unless the client disconnects. An immediate refusal would take
        nearly as much CPU time as an answer, and the client could retry at once.
        """
        who = f"stranger {request.client.host if request.client else ''}"
        try:
            self._limits.count_request(who, self._rate, self._burst)
        except TooMany:
            with suppress(TimeoutError):
                async with asyncio.timeout(REFUSAL_SECONDS):
                    while (await receive())["type"] != "http.disconnect":
                        pass
            raise

    def _check_origin(self, request: Request) -> None:
        if request.scope["path"] == CLIP_PATH:
            return
        headers, own = request.headers, self._sessions.hosts.get(request_host(request))
        origins = {own.url} if own else self._address.origins
        site = headers.get("sec-fetch-site")
        for origin in headers.getlist("origin"):
            # A page with a strict referrer policy sends "null" as its origin, but Sec-Fetch-Site shows that
            # the page is ours.
            if origin.lower() not in origins and (origin, site) != ("null", "same-origin"):
                raise ForeignRequest(problem="its Origin is another site")
        if site not in (None, "", "same-origin", "none") and not is_navigation(request):
            raise ForeignRequest(problem="another site sent it")

    def _caller(self, request: Request) -> WebCaller | None:
        """Return the caller, or None if the request has no credentials.

        If there is an Authorization header, the cookie is ignored. So are cookies that were sent with a clip, or to
        a host on which there are no sessions. Raise NotLoggedIn if the token is invalid or belongs to another
        address.
        """
        headers = request.headers.getlist("authorization")
        if headers:
            kind, _, token = headers[0].partition(" ")
            grant = None
            if len(headers) == 1 and kind.lower() == "bearer":
                grant = self._tokens.find(token.strip(), time.time())
            if grant is None or grant.is_expired:
                problem = "The token is not valid, or was revoked"
                if grant and grant.expires_at:
                    problem = f"The token {grant.name} expired at {grant.expires_at}"
                raise NotLoggedIn(problem=problem, remedy="`quaid token create NAME` makes one")
            if grant.resource and grant.resource != self._sessions.origin(request) + request.url.path:
                problem = f"The token of {grant.name} is only for {grant.resource}"
                raise NotLoggedIn(problem=problem, remedy="`quaid token create NAME` makes one for the API")
            only = (*self._settings.only, *((grant.only,) if grant.only else ()))
            return WebCaller(self._capped(grant.scope), token=grant.name, grant=grant.grant, only=only)
        session = None if request.scope["path"] == CLIP_PATH else self._sessions.of(request)
        if session is None:
            return None
        scope = self._capped("owner")
        return WebCaller(scope, csrf=session[1], session=session[0], only=self._settings.only)

    def is_still_valid(self, request: Request) -> bool:
        """Return True if the credentials of a request are still valid."""
        try:
            self.check_again(request)
        except NotLoggedIn:
            return False
        return True

    def check_again(self, request: Request) -> None:
        """Raise NotLoggedIn if the credentials of a request are no longer valid or their permissions have
        changed.
        """
        caller = self._caller(request)
        if caller is None or (caller.scope, caller.only) != (request.state.scope, request.state.only):
            raise NotLoggedIn(problem="You are no longer logged in", remedy="Log in again")

    def _capped(self, scope: str) -> str:
        return min(scope, self._most, key=SCOPES.index)

    def _check_route(self, request: Request, caller: WebCaller | None) -> None:
        """Raise NotAllowed for a caller who sees only a part of the memory, unless the route is for tools.

        The dashboard and the events are about the whole memory.
        """
        path = request.url.path
        is_open = path == "/mcp" or (path.startswith(TOOL_PREFIXES) and "/debug" not in path)
        if caller is not None and caller.only and not is_open and path != "/api/openapi.json":
            raise NotAllowed(
                name=f"{request.method} {path[:100]}", needed="owner", granted="part of the memory"
            )

    def _check_scope(self, request: Request, caller: WebCaller | None, needed: str) -> None:
        if caller is None:
            remedy = "`quaid web` opens a browser that is logged in"
            if request.url.path.startswith(API_PREFIXES):
                remedy = "Send Authorization: Bearer with a token that `quaid token create NAME` makes"
            raise NotLoggedIn(problem=NOT_LOGGED_IN, remedy=remedy)
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


async def _read_body(headers: Headers, receive: Receive, most: int, reserve: Callable[[int], None]) -> bytes:
    """Read the whole body. Raise TooSlow if it does not arrive within BODY_TIMEOUT, and ClientDisconnect if
    the client disconnects.

    Raise TooLarge if more than `most` bytes arrive, or if the body has more than MAX_BODY bytes after its
    JSON escapes are decoded.
    """
    length = headers.get("content-length", "0")
    declared = int(length[:18]) if length.isascii() and length.isdigit() else 0
    if declared > most:
        raise TooLarge(what="The body", size=declared, limit=min(most, MAX_BODY))
    received = bytearray()
    reserve(declared)
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientDisconnect
                received += message.get("body", b"")
                reserve(len(received))
                if len(received) > most:
                    raise TooLarge(what="The body", size=len(received), limit=min(most, MAX_BODY))
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise TooSlow(seconds=round(BODY_TIMEOUT)) from None
    body, size = bytes(received), len(received)
    if size > MAX_BODY and (text := await asyncio.to_thread(decoded_size, body)) > MAX_BODY:
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


def local_path(text: str) -> str:
    """Return a path of this server to which a login leads back, or "/" if the text is anything else."""
    is_path = text.startswith("/") and not text.startswith("//") and len(text) <= MAX_RETURN_PATH
    is_plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if is_path and is_plain and not text.startswith(("/login", "/logout")) else "/"


async def _empty_receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _run_until_disconnect(
    app: ASGIApp, asgi_scope: AsgiScope, body: bytes, receive: Receive, send: Send
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

    answering = asyncio.ensure_future(app(asgi_scope, replay, send))
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
