"""Sockets, TLS, the one-time link, and an end that leaves things whole.

Listens on this machine alone unless it is told otherwise, and beyond it only with TLS, ours or a proxy's. Writes no
log of requests: an address may hold a question, and a link a code.
"""

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from types import FrameType
from typing import Any, NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

import quaid
from quaid.app import Brain
from quaid.cli.output import print_notice
from quaid.config import Settings
from quaid.errors import FileTrouble, InvalidArgument, OpenToOthers, PortTaken, ServedAlready
from quaid.operations import service
from quaid.surfaces.web import app, taking_over, trimming
from quaid.surfaces.web.guard import MAX_HEAD, Place

LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 (named to be refused)
MOST_CONNECTIONS = 256
SECONDS_OF_A_HEAD = 15.0
SECONDS_KEPT_ALIVE = 20
SECONDS_TO_TELL = 3.0  # who we are; a machine may be busy


class How(NamedTuple):
    """How to listen."""

    port: int = app.PORT
    bind: str = LOOPBACK
    tls_cert: str = ""
    tls_key: str = ""
    behind_proxy: bool = False
    allow_hosts: tuple[str, ...] = ()
    debug: bool = False
    readonly: bool = False
    tools: str = "core"


class Patient(H11Protocol):
    """A connection whose head must come within some seconds: whoever sends a letter a minute does not keep it."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(SECONDS_OF_A_HEAD, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        between = self.cycle is None or self.cycle.response_complete
        if self.conn.their_state is h11.IDLE and between:
            self._timer = self._timer or self.loop.call_later(SECONDS_OF_A_HEAD, self._give_up)
        else:
            self._disarm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.close()


class Server(uvicorn.Server):
    """A server that lets its listeners go as soon as it is told to end: a stream would keep it from ending."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        state = self.config.app.state  # type: ignore[union-attr]
        state.bus.close()
        state.ends_by = min(state.ends_by, time.monotonic() + app.SECONDS_TO_STOP)
        super().handle_exit(sig, frame)


def place_of(how: How, port: int) -> Place:
    """The names that a server answers to; refuses what would let others listen in."""
    _check_bind(how.bind)
    if bool(how.tls_cert) != bool(how.tls_key):
        raise InvalidArgument(name="--tls-cert", problem="and --tls-key belong together; give both")
    if how.allow_hosts and not (how.tls_cert or how.behind_proxy):
        raise InvalidArgument(
            name="--allow-host", problem="needs --behind-proxy, or --tls-cert and --tls-key"
        )
    if how.behind_proxy and not how.allow_hosts:
        problem = "needs --allow-host NAME, the name under which the proxy is reached"
        raise InvalidArgument(name="--behind-proxy", problem=problem)
    if not how.tls_cert and not how.behind_proxy:
        if not is_loopback(how.bind):
            raise OpenToOthers(address=how.bind or "Every address of this machine")
        return Place.local(port, how.bind.lower())
    if how.bind in EVERYWHERE and not how.allow_hosts:
        problem = "is needed with --bind to every address: the name under which this machine is reached"
        raise InvalidArgument(name="--allow-host", problem=problem)
    hosts = [each.lower() for each in how.allow_hosts]
    if how.tls_cert:
        own = [] if how.bind in EVERYWHERE else [f"[{how.bind}]" if ":" in how.bind else how.bind]
        every = dict.fromkeys([*own, *hosts, LOOPBACK, "localhost"])
        hosts = [_with_port(each, port) for each in every]
    return Place.named(port, hosts)


def _check_bind(bind: str) -> None:
    """Refuse what is neither an address nor could be the name of a machine: nobody reaches it from anywhere."""
    from ipaddress import ip_address

    is_name = "." in bind and any(each.isalpha() for each in bind) and not set(bind) & set(" :/")
    if bind in EVERYWHERE or bind.lower() == "localhost" or is_name:
        return
    try:
        ip_address(bind)
    except ValueError:
        problem = f"must be an address of this machine, as in 127.0.0.1 or ::1, not {bind!r}"
        raise InvalidArgument(name="--bind", problem=problem) from None


def is_loopback(bind: str) -> bool:
    """Whether only this machine reaches an address: all of 127.0.0.0/8, and ::1. A name could lead anywhere."""
    from ipaddress import IPv6Address, ip_address

    if bind.lower() == "localhost":
        return True
    try:
        found = ip_address(bind)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


def _with_port(name: str, port: int) -> str:
    return name if port == 443 or ":" in name.rpartition("]")[2] else f"{name}:{port}"


def listening(bind: str, port: int) -> socket.socket:
    """A socket that listens, or PortTaken."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    # Named as TCP, asyncio sends at once what it has; else each answer waits 40 ms for the other side's nod.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name != "nt":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((bind, port))
        found.listen(MOST_CONNECTIONS)
    except OSError as error:
        found.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise PortTaken(port=port, address=bind) from None
        raise FileTrouble(path=f"{bind}:{port}", problem=error.strerror or str(error)) from None
    return found


def web(settings: Settings, how: How, *, opens: bool) -> int:
    """`quaid web`: serve, and open a browser that is logged in. A server that runs already is asked instead."""
    with Brain(settings, notice=print_notice) as brain:
        _ = brain.db  # what is wrong with the memory is told here, not in a browser
    try:
        found = listening(how.bind, how.port)
    except PortTaken:
        if not _is_ours(how.port, settings):
            raise
        _show(_link(settings, how.port), opens, "Running already at")
        return 0
    return _serve(settings, how, found, opens=opens, link=True)


def http(settings: Settings, how: How) -> int:
    """`quaid serve --http`: serve until somebody ends the process."""
    for path in filter(None, (how.tls_cert, how.tls_key)):
        if not os.access(path, os.R_OK):
            raise FileTrouble(path=path, problem="cannot be read")
    place_of(how, how.port)
    with Brain(settings, notice=print_notice) as brain:
        _ = brain.db
    try:
        found = listening(how.bind, how.port)
    except PortTaken:
        if not _is_ours(how.port, settings, how.bind):
            raise
        raise ServedAlready(where=place_of(how, how.port).address) from None
    return _serve(settings, how, found, opens=False, link=False)


def _serve(settings: Settings, how: How, found: socket.socket, *, opens: bool, link: bool) -> int:
    port = int(found.getsockname()[1])
    place = place_of(how, port)
    built = app.build(
        settings, debug=how.debug, readonly=how.readonly, place=place, tools=how.tools, upkeep=True
    )
    taking_over.attend(built, settings)
    trimming.start()
    server = Server(_config(built, how))

    def end(_number: int, _frame: FrameType | None) -> None:
        """Before the server listens to signals, and after it has ended, when it raises again what ended it."""
        server.should_exit = True

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        _announce(settings, place, how)
        if link:
            _show(_link(settings, port), opens, "Open")
        server.run(sockets=[found])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if not built.state.stopped_well:
        sys.stdout.flush()
        os._exit(0)  # some work hangs; a transaction that is not finished never was
    return 0


def _config(built: Any, how: How) -> uvicorn.Config:
    import logging

    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    return uvicorn.Config(
        built,
        http=Patient,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=SECONDS_KEPT_ALIVE,
        timeout_graceful_shutdown=1,  # of the seconds that `app` has for all of it
        h11_max_incomplete_event_size=MAX_HEAD,
        ssl_certfile=how.tls_cert or None,
        ssl_keyfile=how.tls_key or None,
    )


def _announce(settings: Settings, place: Place, how: How) -> None:
    extra = "".join([", debug endpoints" if how.debug else "", ", for reading only" if how.readonly else ""])
    if how.behind_proxy and not how.tls_cert:
        extra += f", for a proxy at {how.bind}:{place.port}"
    told = f"quaid {quaid.__version__}: {place.address}, MCP at {place.address}/mcp{extra}"
    print(f"{told}, memory: {settings.db_path}", file=sys.stderr, flush=True)


def _link(settings: Settings, port: int) -> str:
    return f"http://{LOOPBACK}:{port}/login?code={service.login_code(settings, port, time.time())}"


def _show(link: str, opens: bool, verb: str) -> None:
    """Open a link in a browser, or print it where nobody can."""
    address = link.partition("/login")[0]
    if opens and _opened(link):
        print(f"{verb} {address} (a browser was opened; Ctrl-C ends it)", flush=True)
    else:
        print(f"{verb} {link}\nThe link is good for one minute and one browser.", flush=True)


def _opened(link: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False


def _is_ours(port: int, settings: Settings, bind: str = LOOPBACK) -> bool:
    """Whether a Quaid of this memory answers there. A stranger who says so gains a code that is good nowhere else."""
    wanted = f"quaid {service.memory_fingerprint(settings)}\n".encode()
    where = LOOPBACK if bind in EVERYWHERE else bind
    try:
        with socket.create_connection((where, port), timeout=SECONDS_TO_TELL) as there:
            host = f"[{where}]" if ":" in where else where
            request = f"GET /health HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
            there.sendall(request.encode())
            return there.recv(4_096).endswith(wanted) or there.recv(4_096).endswith(wanted)
    except OSError:
        return False
