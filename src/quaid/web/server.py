"""The web server: the Starlette app with its routes, login and errors, and the process that serves it.

The server listens on the loopback address by default, and is reachable from other machines only with TLS, behind a
proxy, or with --insecure. It writes no request log, because a URL may contain a question, and a login link contains a
code.

The server also listens on a Unix socket for commands that the command line delegates to it. A delegated command
is refused unless it only reads and would use the same memory, settings and version as this process; see
quaid.server_socket for the client side.
"""

import asyncio
import io
import json
import os
import re
import socket
import ssl
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import quaid
from quaid import config, errors, server_socket
from quaid.app import Brain
from quaid.cli import parser
from quaid.cli.main import (
    format_error,
    format_record,
    format_side_notes,
    print_notice,
    strip_control_characters,
)
from quaid.config import Settings
from quaid.http_server import (
    ANY_ADDRESS,
    LOOPBACK,
    ListenOptions,
    ServerAddress,
    TlsHandshake,
    is_loopback,
    open_listener,
    parse_ip,
    routing_error,
    server_address,
    stopping_on_signals,
    url_host,
    uvicorn_config,
)
from quaid.mcp.server import log_to_stderr
from quaid.operations import dispatch, index, service
from quaid.web import api, mcp as web_mcp, oauth
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
from quaid.web.pages.base import PAGE_ROUTES, error_page, login_page, page_url
from quaid.web.workers import MaintenanceThread, WorkerPool, queue_name
from quaid.worker import share_one_arena, start_memory_trim

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
    address: ServerAddress | None = None,
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
    address = address or ServerAddress.local(DEFAULT_PORT)
    bus = EventBus()
    pool = WorkerPool(settings, tell=bus.tell, readonly=readonly, processes=upkeep)
    sessions = BrowserSessions(settings, address, host_name, lan)

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
        *PAGE_ROUTES,
    ]
    app = Starlette(
        routes=routes,
        lifespan=_lifespan,
        exception_handlers={
            errors.QuaidError: _error_response,
            HTTPException: _error_response,
        },  # AuthMiddleware handles all other exceptions
    )
    app.router.redirect_slashes = False
    app.state.settings, app.state.address, app.state.tools = settings, address, tools
    app.state.workers, app.state.bus, app.state.sessions = pool, bus, sessions
    app.state.mcp_sessions = web_mcp.McpSessions()
    app.state.oauth_codes = oauth.AuthorizationCodes()
    app.state.operation_cache, app.state.flashes = {}, {}  # used by the pages
    app.state.ends_by = float("inf")  # shutdown deadline (time.monotonic()), set when a signal arrives
    app.state.debug_routes, app.state.readonly, app.state.stopped_cleanly = debug, readonly, True
    app.state.upkeep = upkeep
    app.state.lan_fingerprint = ""

    service.owner_token(settings)  # creates the token if there is none
    app.add_middleware(
        AuthMiddleware,
        settings=settings,
        address=address,
        sessions=sessions,
        routes=app.routes,
        refuse=_error_response,
        readonly=readonly,
    )
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    """Run the workers and the maintenance thread, and answer delegated commands, while the app runs."""
    bus, pool = app.state.bus, app.state.workers
    bus.open()
    pool.start()
    maintenance = MaintenanceThread(
        app.state.settings, bus.tell, maintains=app.state.upkeep, calls=pool.calls
    )
    maintenance.start()
    try:
        async with _listen_for_commands(app):
            yield
    finally:
        bus.close()
        maintenance.end()
        deadline = max(time.monotonic() + 0.2, min(app.state.ends_by, time.monotonic() + SHUTDOWN_SECONDS))
        stopped = pool.stop(deadline - time.monotonic())
        app.state.stopped_cleanly = maintenance.is_over(max(0.1, deadline - time.monotonic())) and stopped


async def _login(request: Request) -> Response:
    """Start a session with a one-time code. Only a navigation or the form's button uses the code up.

    On a host without sessions, such as 127.0.0.1, the browser is sent to the host that has sessions, with a
    second code. Other users may see the link with the first code among the arguments of the browser's process,
    but must not learn the name of the host that has sessions.
    """
    state, sessions = request.app.state, request.app.state.sessions
    code, target = request.query_params.get("code", ""), request.query_params.get("next", "")
    if request.method == "POST":
        body = await request.body()
        code, target = form_field(body, "code"), form_field(body, "next")
    elif not code:
        return login_page(request, target=local_path(target))
    elif not service.TOKEN_PATTERN.fullmatch(code):
        # Numeric codes are accepted only from the form: links on other sites could use up the allowed tries.
        return login_page(request, status=401, message=WRONG_CODE, target=local_path(target))
    elif not is_navigation(request):
        # A link preview must not use up the code.
        return login_page(request, grant=code, target=local_path(target))
    target, moment, port = local_path(target), time.time(), state.address.port
    if not sessions.hosts:
        problem = (
            "Browsers cannot log in at this address, because other servers of this machine could share it"
        )
        raise errors.NotLoggedIn(problem=problem, remedy="Start the server without --bind")
    digits = re.sub(r"[\s-]", "", code)
    is_short = digits.isascii() and digits.isdigit()
    redeem = service.redeem_short_code if is_short else service.redeem_login_code
    if not redeem(state.settings, port, moment, digits if is_short else code):
        message = WRONG_SHORT_CODE if is_short else WRONG_CODE
        return login_page(request, status=401, message=message, target=target)
    if request_host(request) not in sessions.hosts:
        second = service.login_code(state.settings, port, moment)
        query = urlencode({"code": second, **({"next": target} if target != "/" else {})})
        # This is a page and not a redirect, because the policy for forms forbids redirects to another host.
        home = next(iter(sessions.hosts.values())).url
        is_safari = device_name(request.headers.get("user-agent", "")).startswith("Safari")
        hint = SAFARI_HINT if is_safari and not home.startswith("http://localhost:") else ""
        return login_page(request, forward=f"{home}/login?{query}", hint=hint)
    # This is a page with a refresh and not a redirect. After a navigation from another site (a chat, a mail) a
    # browser does not send the new SameSite=Strict cookie with a redirect, but sends it from a page of this origin.
    response = login_page(request, forward=target)
    sessions.begin(request, response)
    return response


async def _logout(request: Request) -> Response:
    response = login_page(request, heading="You are logged out")
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
        error = routing_error(request, error)
    elif not isinstance(error, errors.QuaidError):
        log_to_stderr(f"quaid: internal error: {type(error).__name__}")
        error = errors.Defect(problem=type(error).__name__)  # the message of the exception must not be leaked
    if isinstance(error, errors.TooMany | errors.ServerBusy):
        headers.setdefault("retry-after", "1")
    if request.url.path.startswith(API_PREFIXES):
        response = api.error_response(error)
        is_mcp = request.url.path == oauth.MCP_PATH and error.http_status == 401
        if is_mcp and request.app.state.settings.option("web.oauth") == "on":
            headers["www-authenticate"] = oauth.challenge_header(request)
    elif isinstance(error, errors.TooMany) and not getattr(request.state, "scope", ""):
        response = PlainTextResponse(str(error), error.http_status)  # costs less than a page
    else:
        try:
            response = error_page(request, error)
        except Exception:  # rendering the error page failed too
            response = PlainTextResponse(str(error), error.http_status)
    response.headers.update(headers)
    return response


MAX_COMMANDS = 32
REQUEST_TIMEOUT = 5.0


@asynccontextmanager
async def _listen_for_commands(app: Starlette) -> AsyncIterator[None]:
    """Answer delegated commands if the server has `upkeep`, is not read-only, and serves the whole memory.

    Do nothing if delegation is off or the platform has no Unix sockets. Commands that are not answered run locally.
    """
    settings: Settings = app.state.settings
    answers = (
        app.state.upkeep
        and not app.state.readonly
        and not settings.only  # the owner's commands need the whole memory
        and not server_socket.is_handover_off(settings.environ)
        and hasattr(socket, "AF_UNIX")
    )
    bound = None
    with suppress(OSError):
        bound = _bind_socket(settings) if answers else None
    if bound is None:
        yield
        return
    listener, path, inode = bound
    database = os.stat(settings.db_path)
    tasks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            if server_socket.is_same_user(writer.get_extra_info("socket")) and len(tasks) <= MAX_COMMANDS:
                line = await asyncio.wait_for(reader.readline(), REQUEST_TIMEOUT)
                queue, work = _command_work(json.loads(line), settings, database)
                # Tells the client that the command was accepted, so that the client waits longer.
                writer.write(b"\n")
                reply = await _unless_gone(reader, app.state.workers.run(queue, work))
                writer.write(json.dumps(reply).encode())
                await writer.drain()
        except (Exception, SystemExit, asyncio.CancelledError):  # noqa: S110 (the client runs the command itself, or has gone)
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(answer, sock=listener, limit=server_socket.MAX_MESSAGE_BYTES)
    try:
        yield
    finally:
        with suppress(OSError):
            if os.stat(path).st_ino == inode:  # if the inode differs, another server has replaced the socket
                os.unlink(path)
        server.close()
        for task in tasks:
            task.cancel()


def _bind_socket(settings: Settings) -> tuple[socket.socket, str, int]:
    """Create the socket of this memory and return it with its path and inode.

    The socket is bound to a temporary name and renamed once it listens.
    """
    path = server_socket.socket_path(settings.home, settings.db_path)
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise PermissionError
    os.chmod(folder, 0o700)
    new = f"{path}.{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(new)
        server_socket.use_socket_path(new, listener.bind)
        os.chmod(new, 0o600)
        listener.listen(MAX_COMMANDS)
        listener.setblocking(False)
        inode = os.stat(new).st_ino
        os.replace(new, path)  # atomic; clients connect to the newest server
    except BaseException:
        listener.close()
        raise
    return listener, path, inode


async def _unless_gone(reader: asyncio.StreamReader, work: Any) -> Any:
    """Return the result of `work`; cancel it and raise EOFError if the client disconnects."""
    job, gone = asyncio.ensure_future(work), asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((job, gone), return_when=asyncio.FIRST_COMPLETED)
        if not job.done():
            raise EOFError
        return job.result()
    finally:
        job.cancel()
        gone.cancel()


def _command_work(
    request: dict[str, Any], ours: Settings, database: os.stat_result
) -> tuple[str, Callable[[Brain], tuple[int, str, str, str]]]:
    """Return the queue for a delegated command, and a function that runs it and returns status and output.

    Raise ValueError or QuaidError unless the command only reads, and its version, environment, memory and
    settings equal ours. Commands that read a file or show progress are refused too, because only the client
    can do that.
    """
    here = {"version": quaid.__version__, "package": os.path.dirname(os.path.abspath(quaid.__file__))}
    environ = request["environ"]
    line = parser.split_command_line(request["words"])
    settings = config.read_settings(line.db, environ, request["cwd"], line.config)
    if (
        any(request[name] != value for name, value in here.items())
        or server_socket.shared_environment(environ) != server_socket.shared_environment(ours.environ)
        or (settings.config_path, settings.options) != (ours.config_path, ours.options)
        or not os.path.samestat(os.stat(settings.db_path), database)
        or line.wants_help
        or line.command not in index.COMMANDS
    ):
        raise ValueError("the command has to run in its own process")
    _, out_is_terminal, err_is_terminal = request["terminals"]
    program = request["program"]
    operation = dispatch.find_command(line.command)
    queue = queue_name(operation)
    takes_file = any(
        param.arg.file for param in operation.params
    )  # only the client process can read the file
    shows_progress = queue == "long" and err_is_terminal
    if operation.scope != "read" or takes_file or shows_progress:
        raise ValueError("the command has to run in its own process")
    arguments = parser.operation_arguments(line, operation)
    before = "".join(f"quaid: {warning}\n" for warning in settings.warnings)

    def work(brain: Brain) -> tuple[int, str, str, str]:
        usual, brain.settings = brain.settings, settings
        notices: list[str] = []
        brain.notice = notices.append
        try:
            record = dispatch.call(brain, operation, arguments, "owner")
        except errors.Cancelled:
            raise
        except errors.QuaidError as error:
            if isinstance(error, errors.InvalidArgument | errors.InvalidDate):
                error = parser.as_typed(error, operation)
            message = format_error(error, line.as_json, err_is_terminal, program)
            return error.exit_status, before, "", message
        finally:
            brain.settings, brain.notice = usual, None
        text = format_record(record, line.as_json, out_is_terminal, program, int(request["width"]))
        asked = arguments.get("slug")
        notes = format_side_notes(asked, record, line.as_json, err_is_terminal, program)
        notice_lines = "".join(f"quaid: {strip_control_characters(notice)}.\n" for notice in notices)
        return int(getattr(record, "exit_status", 0)), before + notice_lines, text, notes

    return queue, work


PORT_ATTEMPTS = 10
INSECURE_LAN = (
    "WARNING: --insecure serves the memory without encryption. Everyone in this network can read what you open, and"
    " can take over the login. Use it only in a network where you trust every device."
)
GUESSABLE_NAME = (
    "WARNING: the login cookie belongs to {name}, a name that other programs can guess. While you are logged in,"
    " every server on this machine that your browser visits under that name receives the cookie, and with it the"
    " whole memory. Leave out --host-name if your browser opens names such as quaid.localhost (Chrome, Edge and"
    " Firefox do)."
)
PROBE_TIMEOUT = 3.0  # seconds; this is long, because the machine may be busy


@dataclass(frozen=True)
class ServerOptions(ListenOptions):
    """Options of `quaid web` and `quaid serve --http`."""

    port: int = DEFAULT_PORT
    debug: bool = False
    readonly: bool = False
    tools: str = "core"
    host_name: str = ""
    lan: bool = False  # also listen on the local network
    lan_address: str = ""  # address of this machine on that network; detected if empty
    insecure: bool = False  # without TLS


def network_address() -> str:
    """Return the address of this machine in the local network. Raise InvalidArgument if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Selects the address from which packets to other networks would be sent. No packet is sent.
            probe.connect(("192.0.2.1", 9))
            address = str(probe.getsockname()[0])
        except OSError:
            address = LOOPBACK
    if is_loopback(address) or address in ANY_ADDRESS:
        problem = "found no network; connect this machine, or give its address with --lan-address"
        raise errors.InvalidArgument(name="--lan", problem=problem)
    return address


class LanListener(NamedTuple):
    """The socket for other devices in the network."""

    address: ServerAddress
    listener: socket.socket
    context: ssl.SSLContext | None  # None without TLS
    fingerprint: str  # of the certificate


def _open_lan(settings: Settings, options: ServerOptions, port: int) -> LanListener:
    """Listen on the local network, on one address of this machine, with TLS unless --insecure was given."""
    ip = options.lan_address or network_address()
    if parse_ip(ip) is None or ip in ANY_ADDRESS:
        problem = f"must be one address of this machine in the network, as in 192.168.1.20, not {ip!r}"
        raise errors.InvalidArgument(name="--lan-address", problem=problem)
    host = f"{url_host(ip)}:{port}"
    url = f"{'http' if options.insecure else 'https'}://{host}"
    address = ServerAddress(port, frozenset({host}), frozenset({url}), url, secure=not options.insecure)
    if options.insecure:
        return LanListener(address, open_listener(ip, port), None, "")
    cert, key = service.certificate_files(settings, ip, time.time())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return LanListener(address, open_listener(ip, port), context, service.certificate_fingerprint(cert))


def _show_lan(settings: Settings, lan: LanListener) -> None:
    """Print the login for a phone: a QR code if the output is a terminal, the link, and a code to type."""
    port, moment = lan.address.port, time.time()
    seconds = service.SHORT_CODE_SECONDS
    link = f"{lan.address.url}/login?code={service.login_code(settings, port, moment, seconds)}"
    code = service.short_login_code(settings, port, moment)
    lines = [f"On a phone in the same network, open {link}"]
    if sys.stdout.isatty():
        import segno

        picture = io.StringIO()
        segno.make(link, error="l").terminal(picture, border=2, compact=True)
        lines = ["On a phone in the same network, scan:", picture.getvalue()]
    lines += [f"or open {lan.address.url} and type the code {code[:4]} {code[4:]}"]
    lines += [
        f"Link and code work once, within {seconds // 60} minutes. Settings, Add a phone, shows new ones."
    ]
    if lan.fingerprint:
        lines += [
            "The phone will warn that it does not know the certificate. Its SHA-256 fingerprint must be",
            lan.fingerprint,
        ]
    else:
        lines += [INSECURE_LAN]
    print("\n".join(lines), flush=True)


class WebServer(uvicorn.Server):
    """A server that also listens in the network with `lan`, and ends event streams on a signal.

    Open streams would delay the shutdown.
    """

    lan: LanListener | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.lan:
            context = self.lan.context
            unfinished: dict[TlsHandshake, asyncio.Transport] = {}

            def protocol() -> asyncio.Protocol:
                return self.config.http_protocol_class(  # type: ignore[call-arg]
                    config=self.config, server_state=self.server_state, app_state=self.lifespan.state
                )

            def accepted() -> asyncio.Protocol:
                return TlsHandshake(context, protocol, unfinished) if context else protocol()

            loop = asyncio.get_running_loop()
            self.servers.append(await loop.create_server(accepted, sock=self.lan.listener))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        state = self.config.app.state  # type: ignore[union-attr]
        state.bus.close()
        state.ends_by = min(state.ends_by, time.monotonic() + SHUTDOWN_SECONDS)
        super().handle_exit(sig, frame)


def serve_web(settings: Settings, options: ServerOptions, *, opens: bool, page: str = "") -> int:
    """Run `quaid web` or `quaid open`: serve the memory and open a logged-in browser, at `page` if given.

    If a server of this memory is already running on the port, use that server.
    """
    target = page_url(page) if page else ""
    listeners = _prepare(settings, options)
    if listeners:
        return _run_server(settings, options, listeners, opens=opens, link=True, target=target)
    if options.lan:
        problem = f"needs a server of its own: stop the one on port {options.port}, or add --port N"
        raise errors.InvalidArgument(name="--lan", problem=problem)
    _show_link(_login_link(settings, options.port, target), opens, "Already running at")
    return 0


def serve_http(settings: Settings, options: ServerOptions) -> int:
    """Run `quaid serve --http`: serve until the process is ended."""
    listeners = _prepare(settings, options)
    if not listeners:
        raise errors.ServedAlready(where=server_address(options, options.port).url)
    return _run_server(settings, options, listeners, opens=False, link=False)


def _prepare(settings: Settings, options: ServerOptions) -> list[socket.socket]:
    """Check the options, open the memory, and listen. Return no sockets if a server of this memory has the port."""
    server_address(options, options.port)
    with Brain(settings, notice=print_notice) as brain:
        brain.create_if_missing()
        _ = brain.db  # opens the memory, so that problems are reported here and not in the browser
    try:
        return open_listeners(options.bind, options.port)
    except errors.PortTaken:
        if not _is_same_memory(options.port, settings, options.bind):
            raise
        return []


def open_listeners(bind: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on an address and, if it is a loopback address, on that of the other IP version.

    Browsers try both for a name that ends in .localhost, often ::1 first. A program of another user that
    listens there would receive the cookie.
    """
    others = {LOOPBACK: "::1", "localhost": "::1", "::1": LOOPBACK}
    for attempt in range(PORT_ATTEMPTS):
        first = open_listener(bind, port)
        if bind.lower() not in others:
            return [first]
        try:
            return [first, open_listener(others[bind.lower()], int(first.getsockname()[1]))]
        except errors.PortTaken:
            first.close()
            if port or attempt == PORT_ATTEMPTS - 1:
                raise
        except (errors.FileTrouble, OSError):  # this machine has only one IP version
            return [first]
    raise AssertionError


def _run_server(
    settings: Settings,
    options: ServerOptions,
    listeners: list[socket.socket],
    *,
    opens: bool,
    link: bool,
    target: str = "",
) -> int:
    port = int(listeners[0].getsockname()[1])
    address = server_address(options, port)
    lan = _open_lan(settings, options, port) if options.lan else None
    app = build_app(
        settings,
        debug=options.debug,
        readonly=options.readonly,
        address=address,
        tools=options.tools,
        upkeep=True,
        host_name=options.host_name,
        lan=lan.address if lan else None,
    )
    app.state.lan_fingerprint = lan.fingerprint if lan else ""
    share_one_arena()
    start_memory_trim()
    server = WebServer(uvicorn_config(app, options))
    server.lan = lan
    with stopping_on_signals(server):
        _announce(settings, address, options)
        if link:
            _show_link(_login_link(settings, port, target), opens, "Open")
        if lan:
            _show_lan(settings, lan)
        server.run(sockets=listeners)
    if not app.state.stopped_cleanly:
        sys.stdout.flush()
        os._exit(0)  # a worker thread hangs; its open transaction is rolled back
    return 0


def _announce(settings: Settings, address: ServerAddress, options: ServerOptions) -> None:
    notes = ["debug endpoints"] * options.debug + ["read-only"] * options.readonly
    if options.behind_proxy and not options.tls_cert:
        notes.append(f"for a proxy at {options.bind}:{address.port}")
    details = ", ".join([f"memory: {settings.db_path}", *notes])
    # An address is followed by a space, so that it can be copied.
    text = f"quaid {quaid.__version__}: {address.url} and, for MCP, {address.url}/mcp ({details})"
    print(text, file=sys.stderr, flush=True)
    if options.host_name:
        print(GUESSABLE_NAME.format(name=options.host_name), file=sys.stderr, flush=True)


def _login_link(settings: Settings, port: int, target: str = "") -> str:
    query = {"code": service.login_code(settings, port, time.time()), **({"next": target} if target else {})}
    return f"http://{LOOPBACK}:{port}/login?{urlencode(query)}"


def _show_link(link: str, opens: bool, verb: str) -> None:
    """Open a link in a browser if `opens` is set. Otherwise, or if that fails, print the link."""
    address = link.partition("/login")[0]
    if opens and _open_browser(link):
        print(f"{verb} {address} (opened in a browser; Ctrl-C stops the server)", flush=True)
    else:
        print(f"{verb} {link}\nThe link works once, within one minute.", flush=True)


def _open_browser(link: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False


def _is_same_memory(port: int, settings: Settings, bind: str) -> bool:
    """Return True if a Quaid server of this memory listens on the port.

    Another program that pretends to be such a server would obtain only a login code that is useless
    elsewhere.
    """
    expected = f"quaid {service.memory_fingerprint(settings)}\n".encode()
    where = LOOPBACK if bind in ANY_ADDRESS else bind
    try:
        with socket.create_connection((where, port), timeout=PROBE_TIMEOUT) as connection:
            request = f"GET /health HTTP/1.1\r\nHost: {url_host(where)}:{port}\r\nConnection: close\r\n\r\n"
            connection.sendall(request.encode())
            return connection.recv(4_096).endswith(expected) or connection.recv(4_096).endswith(expected)
    except OSError:
        return False
