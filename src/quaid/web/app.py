"""The Starlette app: its routes, the login, and error responses."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from quaid.config import Settings
from quaid.errors import (
    Defect,
    InvalidArgument,
    NoSuchAddress,
    NotLoggedIn,
    QuaidError,
    ServerBusy,
    TooMany,
    WrongMethod,
)
from quaid.http_server import ServerAddress
from quaid.mcp.server import log_to_stderr
from quaid.operations import service
from quaid.web import api, mcp as web_mcp, oauth, pages
from quaid.web.api import EventBus
from quaid.web.auth import (
    API_PREFIXES,
    AuthMiddleware,
    BrowserSessions,
    ScopedRoute,
    device_name,
    form_field,
    is_navigation,
    local_path,
    request_host,
)
from quaid.web.workers import MaintenanceThread, WorkerPool

DEFAULT_PORT = 4321
SHUTDOWN_SECONDS = 1.5  # limit for the whole shutdown; open requests have the first second to finish

SAFARI_HINT = (
    "Safari may not be able to open the address of your memory, because it ends in .localhost. If the button below"
    " does not work, use Chrome, Edge or Firefox, or start the server with `quaid web --host-name localhost`, which"
    " is less safe."
)
WRONG_CODE = "This link was already used, or has expired."
WRONG_SHORT_CODE = "This code is not right, or no longer valid. After five wrong tries you need a new one."


def build_app(
    settings: Settings,
    *,
    debug: bool = False,
    readonly: bool = False,
    place: ServerAddress | None = None,
    tools: str = "core",
    upkeep: bool = False,
    host_name: str = "",
    lan: ServerAddress | None = None,
) -> Starlette:
    """Return the app for one memory.

    With `upkeep`, the app also syncs folders and computes vectors, as `quaid serve` does, and answers questions in
    separate processes. Browsers use the random name of the memory as the host, unless `host_name` is given.
    `lan` is an address for other devices in the network.
    """
    place = place or ServerAddress.local(DEFAULT_PORT)
    bus = EventBus()
    pool = WorkerPool(settings, tell=bus.tell, readonly=readonly, processes=upkeep)
    sessions = BrowserSessions(settings, place, host_name, lan)

    routes = [
        ScopedRoute("/login", _login, GET="public", POST="public"),
        ScopedRoute("/logout", _logout, POST="read"),
        ScopedRoute("/health", _health, GET="public"),
        *api.tool_routes(),
        ScopedRoute("/api/openapi.json", _openapi, GET="read"),
        ScopedRoute("/api/events", api.stream_events, GET="read"),
        ScopedRoute("/api/jobs", api.list_jobs, GET="read"),
        *(api.DEBUG_ROUTES if debug else ()),
        # Each tool checks its own scope.
        ScopedRoute("/mcp", web_mcp.serve_mcp, GET="read", POST="read", DELETE="read"),
        *(oauth.OAUTH_ROUTES if settings.option("web.oauth") == "on" else ()),
        *pages.PAGE_ROUTES,
    ]
    app = Starlette(
        routes=routes,
        lifespan=_lifespan,
        exception_handlers={
            QuaidError: _error_response,
            HTTPException: _error_response,
        },  # AuthMiddleware handles all other exceptions
    )
    app.router.redirect_slashes = False
    app.state.settings, app.state.place, app.state.tools = settings, place, tools
    app.state.workers, app.state.bus, app.state.sessions = pool, bus, sessions
    app.state.mcp_sessions = web_mcp.McpSessions()
    app.state.oauth_codes = oauth.AuthorizationCodes()
    app.state.operation_cache, app.state.flashes = {}, {}  # used by the pages
    app.state.ends_by = float("inf")  # shutdown deadline (time.monotonic()), set when a signal arrives
    app.state.debug_routes, app.state.readonly, app.state.stopped_cleanly = debug, readonly, True
    app.state.upkeep = upkeep
    app.state.lan_fingerprint = ""

    service.owner_token(settings)  # creates it
    app.add_middleware(
        AuthMiddleware,
        settings=settings,
        place=place,
        sessions=sessions,
        routes=app.routes,
        refuse=_error_response,
        readonly=readonly,
    )
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    """Run the workers and the maintenance thread while the app runs."""
    bus, pool = app.state.bus, app.state.workers
    bus.open()
    pool.start()
    maintenance = MaintenanceThread(
        app.state.settings, bus.tell, maintains=app.state.upkeep, calls=pool.calls
    )
    maintenance.start()
    try:
        yield
    finally:
        bus.close()
        maintenance.end()
        deadline = max(time.monotonic() + 0.2, min(app.state.ends_by, time.monotonic() + SHUTDOWN_SECONDS))
        stopped = pool.stop(deadline - time.monotonic())
        app.state.stopped_cleanly = maintenance.is_over(max(0.1, deadline - time.monotonic())) and stopped


async def _login(request: Request) -> Response:
    """Start a session with a one-time code. Only a navigation or the form's button uses the code up.

    On a host without sessions, such as 127.0.0.1, the browser is sent on to the host that has them, with a
    second code. The link with the first code may be visible to other users, as an argument of the browser's
    process; the name of that host must not be.
    """
    state, sessions = request.app.state, request.app.state.sessions
    code, target = request.query_params.get("code", ""), request.query_params.get("next", "")
    if request.method == "POST":
        body = await request.body()
        code, target = form_field(body, "code"), form_field(body, "next")
    elif not code:
        return pages.login_page(request, target=local_path(target))
    elif not service.TOKEN_PATTERN.fullmatch(code):
        # Codes of digits are taken from the form only: links on other sites would use up their tries.
        return pages.login_page(request, status=401, message=WRONG_CODE, target=local_path(target))
    elif not is_navigation(request):
        # A link preview must not use up the code.
        return pages.login_page(request, grant=code, target=local_path(target))
    target, moment, port = local_path(target), time.time(), state.place.port
    if not sessions.hosts:
        problem = (
            "Browsers cannot log in at this address, because other servers of this machine could share it"
        )
        raise NotLoggedIn(problem=problem, remedy="Start the server without --bind")
    digits = re.sub(r"[\s-]", "", code)
    is_short = digits.isascii() and digits.isdigit()
    redeem = service.redeem_short_code if is_short else service.redeem_login_code
    if not redeem(state.settings, port, moment, digits if is_short else code):
        message = WRONG_SHORT_CODE if is_short else WRONG_CODE
        return pages.login_page(request, status=401, message=message, target=target)
    if request_host(request) not in sessions.hosts:
        second = service.login_code(state.settings, port, moment)
        query = urlencode({"code": second, **({"next": target} if target != "/" else {})})
        # This is a page and not a redirect, because the policy for forms forbids redirects to another host.
        home = next(iter(sessions.hosts.values())).address
        is_safari = device_name(request.headers.get("user-agent", "")).startswith("Safari")
        hint = SAFARI_HINT if is_safari and not home.startswith("http://localhost:") else ""
        return pages.login_page(request, forward=f"{home}/login?{query}", hint=hint)
    # This is a page with a refresh and not a redirect. After a navigation from another site (a chat, a mail) a
    # browser does not send the new SameSite=Strict cookie with a redirect, but sends it from a page of this origin.
    response = pages.login_page(request, forward=target)
    sessions.begin(request, response)
    return response


async def _logout(request: Request) -> Response:
    response = pages.login_page(request, heading="You are logged out")
    request.app.state.sessions.end(request, response)
    return response


async def _health(request: Request) -> Response:
    """Return a fingerprint of the memory that is served.

    Only a program that knows the path of the memory can compute the fingerprint.
    """
    return PlainTextResponse(f"quaid {service.memory_fingerprint(request.app.state.workers.settings)}\n")


async def _openapi(request: Request) -> Response:
    return api.json_response(
        api.openapi_document(api.describe_debug_endpoints() if request.app.state.debug_routes else None)
    )


async def _error_response(request: Request, error: Exception) -> Response:
    """Convert an exception to a response: JSON for the API and MCP, an HTML page for everything else."""
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        error = _from_http_exception(request, error)
    elif not isinstance(error, QuaidError):
        log_to_stderr(f"quaid: internal error: {type(error).__name__}")
        error = Defect(problem=type(error).__name__)  # the message of the exception must not be leaked
    if isinstance(error, TooMany | ServerBusy):
        headers.setdefault("retry-after", "1")
    if request.url.path.startswith(API_PREFIXES):
        response = api.error_response(error)
        is_mcp = request.url.path == oauth.MCP_PATH and error.http_status == 401
        if is_mcp and request.app.state.settings.option("web.oauth") == "on":
            headers["www-authenticate"] = oauth.challenge_header(request)
    elif isinstance(error, TooMany) and not getattr(request.state, "scope", ""):
        response = PlainTextResponse(str(error), error.http_status)  # costs less than a page
    else:
        try:
            response = pages.error_page(request, error)
        except Exception:  # rendering the error page failed too
            response = PlainTextResponse(str(error), error.http_status)
    response.headers.update(headers)
    return response


def _from_http_exception(request: Request, error: HTTPException) -> QuaidError:
    path = request.url.path[:200]
    if error.status_code == 404:
        return NoSuchAddress(path=path)
    if error.status_code == 405:
        return WrongMethod(path=path, method=request.method[:20])
    return InvalidArgument(name="request", problem=str(error.detail)[:200])
