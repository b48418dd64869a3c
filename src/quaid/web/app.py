"""The Starlette app: its routes, and the scope that each route needs.

A route that is missing from ROUTE_SCOPES needs the owner scope.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope as Asked

from quaid.config import Settings
from quaid.errors import Defect, InvalidArgument, NoSuchAddress, NotLoggedIn, QuaidError, WrongMethod
from quaid.http_server import ServerAddress
from quaid.mcp.server import log_to_stderr
from quaid.operations import service
from quaid.web import api, mcp as web_mcp, pages
from quaid.web.api import EventBus
from quaid.web.auth import (
    API_PREFIXES,
    AuthMiddleware,
    BrowserSessions,
    form_field,
    is_navigation,
)
from quaid.web.workers import MaintenanceThread, WorkerPool

DEFAULT_PORT = 4321
SHUTDOWN_SECONDS = 1.5  # limit for the whole shutdown; open requests have the first second to finish

ROUTE_SCOPES: dict[str, dict[str, str]] = {
    # No login needed
    "/login": {"GET": "public", "POST": "public"},
    "/health": {"GET": "public"},
    # For programs
    **api.tool_scopes(),
    **api.DEBUG_SCOPES,
    "/api/openapi.json": {"GET": "read"},
    "/api/events": {"GET": "read"},
    "/mcp": {"GET": "read", "POST": "read", "DELETE": "read"},  # each tool checks its own scope
    "/logout": {"POST": "read"},
    **pages.PAGE_SCOPES,
}
DEFAULT_SCOPE = "owner"

LOGGED_IN_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Quaid</title>
<meta http-equiv="refresh" content="0; url=/"></head>
<body><p>You are logged in. <a href="/">Open the memory</a>.</p></body></html>
"""
"""Shown after logging in.

This is a page with a refresh and not a redirect. After a navigation from another site (a chat, a mail) a
browser does not send the new SameSite=Strict cookie with a redirect, but sends it from a page of this origin.
"""

LOGIN_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Quaid</title></head>
<body><form method="post" action="/login"><input type="hidden" name="code" value="{code}">
<p>This link opens the memory once. <button>Open it</button></p></form></body></html>
"""
"""Shown if the login link is fetched without a navigation, for example by a link preview.

Such a request must not use up the one-time code.
"""


def build_app(
    settings: Settings,
    *,
    debug: bool = False,
    readonly: bool = False,
    place: ServerAddress | None = None,
    tools: str = "core",
    upkeep: bool = False,
) -> Starlette:
    """Return the app for one memory.

    With `upkeep`, the app also syncs folders and computes vectors, as `quaid serve` does.
    """
    place = place or ServerAddress.local(DEFAULT_PORT)
    bus = EventBus()
    pool = WorkerPool(settings, tell=bus.tell, readonly=readonly)
    sessions = BrowserSessions(place.port, place.secure)

    routes: list[BaseRoute] = [
        Route("/login", _login, methods=["GET", "POST"]),
        Route("/logout", _logout, methods=["POST"]),
        Route("/health", _health),
        *api.tool_routes(),
        Route("/api/openapi.json", _openapi),
        Route("/api/events", api.stream_events),
        *(api.DEBUG_ROUTES if debug else ()),
        Route("/mcp", web_mcp.serve_mcp, methods=["GET", "POST", "DELETE"]),
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
    app.state.operation_cache, app.state.flashes = {}, {}  # used by the pages
    app.state.ends_by = float("inf")  # shutdown deadline (time.monotonic()), set when a signal arrives
    app.state.debug_routes, app.state.readonly, app.state.stopped_cleanly = debug, readonly, True
    app.state.upkeep = upkeep

    app.add_middleware(
        AuthMiddleware,
        settings=settings,
        place=place,
        sessions=sessions,
        owner_token=service.owner_token(settings),
        needed=lambda asked: required_scope(app.routes, asked),
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
    maintenance = MaintenanceThread(app.state.settings, bus.tell, maintains=app.state.upkeep)
    maintenance.start()
    try:
        yield
    finally:
        bus.close()
        maintenance.end()
        deadline = max(time.monotonic() + 0.2, min(app.state.ends_by, time.monotonic() + SHUTDOWN_SECONDS))
        stopped = pool.stop(deadline - time.monotonic())
        app.state.stopped_cleanly = maintenance.is_over(max(0.1, deadline - time.monotonic())) and stopped


def required_scope(routes: Sequence[BaseRoute], asked: Asked) -> str:
    """Return the scope that the matching route needs, or "public".

    An unknown address needs the read scope, so that only a caller who is logged in gets a 404.
    """
    partial = "read"
    for route in routes:
        match, _ = route.matches(asked)
        methods = ROUTE_SCOPES.get(getattr(route, "path", ""), {})
        if match == Match.FULL:
            return methods.get("GET" if asked["method"] == "HEAD" else asked["method"], DEFAULT_SCOPE)
        if match == Match.PARTIAL and "public" in methods.values():
            partial = "public"
    return partial


async def _login(request: Request) -> Response:
    """Start a session with a one-time code. Only a navigation or the form's button uses the code up."""
    state = request.app.state
    code = request.query_params.get("code", "")
    if request.method == "POST":
        code = form_field(await request.body(), "code")
    elif service.TOKEN_PATTERN.fullmatch(code) and not is_navigation(request):
        return HTMLResponse(LOGIN_PAGE.format(code=code))
    if not code or not service.redeem_login_code(state.settings, state.place.port, time.time(), code):
        problem = "This link was already used, or is older than a minute"
        raise NotLoggedIn(problem=problem, remedy="`quaid web` makes a new one")
    response = HTMLResponse(LOGGED_IN_PAGE)
    state.sessions.begin(response)
    return response


async def _logout(request: Request) -> Response:
    request.app.state.sessions.end(request.state.session)
    response = PlainTextResponse("You are logged out. `quaid web` opens the memory again.")
    response.delete_cookie(request.app.state.sessions.cookie, path="/")
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
    if request.url.path.startswith(API_PREFIXES):
        response = api.error_response(error)
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
