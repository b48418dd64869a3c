"""Parts of all HTTP servers: the address and its checks, the listening socket, and limits for slow clients.

A server listens on the loopback address by default, and is reachable from other machines only with TLS, its own or
that of a proxy. No server writes a request log, because a URL may contain a question or a code.
"""

import asyncio
import errno
import os
import signal
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from quaid.errors import (
    FileTrouble,
    InvalidArgument,
    NoSuchAddress,
    OpenToOthers,
    PortTaken,
    QuaidError,
    ServerBusy,
    TooLarge,
    TooMany,
    WrongHost,
    WrongMethod,
)

if TYPE_CHECKING:
    import ssl

MAX_HEAD = 32 * 1024
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 (listed to be refused)
MAX_CONNECTIONS = 256
HEAD_TIMEOUT = 15.0
WRITE_TIMEOUT, MIN_READ_BYTES = 30.0, 16 * 1024
LINGER_SECONDS, MAX_LINGER_BYTES = 2.0, 8 * 1024 * 1024
KEEP_ALIVE_SECONDS = 20
HANDSHAKE_TIMEOUT, MAX_HANDSHAKES = 10.0, 64
"""Timeout of a TLS handshake in seconds, and the maximum number of unfinished handshakes."""
MAX_SMALL_CHUNKS, SMALL_CHUNK_BYTES = 1_000, 64
"""After MAX_SMALL_CHUNKS, chunks must have SMALL_CHUNK_BYTES on average, because each takes about 10 µs of CPU."""


@dataclass(frozen=True)
class ListenOptions:
    """Options for the listening address and TLS of a server."""

    port: int = 0
    bind: str = LOOPBACK
    tls_cert: str = ""
    tls_key: str = ""
    behind_proxy: bool = False
    allow_hosts: tuple[str, ...] = ()


class ServerAddress(NamedTuple):
    """The server's port and the Host and Origin values that it accepts."""

    port: int
    hosts: frozenset[str]
    origins: frozenset[str]
    url: str  # base URL, shown to users
    secure: bool = False  # True if reached over TLS, terminated here or by a proxy

    @classmethod
    def local(cls, port: int, bind: str = "127.0.0.1") -> "ServerAddress":
        """Return the address of a server that only this machine can reach."""
        hosts = [f"{name}:{port}" for name in (url_host(bind), "127.0.0.1", "localhost", "[::1]")]
        origins = [f"http://{host}" for host in hosts]
        return cls(port, frozenset(hosts), frozenset(origins), origins[0])

    @classmethod
    def named(cls, port: int, hosts: list[str]) -> "ServerAddress":
        """Return the address of a server that is reached over TLS by these names.

        Each name includes its port unless the port is 443.
        """
        origins = [f"https://{host}" for host in hosts]
        return cls(port, frozenset(hosts), frozenset(origins), origins[0], secure=True)


def server_address(options: ListenOptions, port: int) -> ServerAddress:
    """Return the address of the server.

    Raise an error if the options would expose it without TLS, or do not fit together.
    """
    _check_bind(options.bind)
    if bool(options.tls_cert) != bool(options.tls_key):
        raise InvalidArgument(name="--tls-cert", problem="and --tls-key belong together; give both")
    if options.allow_hosts and not (options.tls_cert or options.behind_proxy):
        raise InvalidArgument(
            name="--allow-host", problem="needs --behind-proxy, or --tls-cert and --tls-key"
        )
    if options.behind_proxy and not options.allow_hosts:
        problem = "needs --allow-host NAME, the name under which the proxy is reached"
        raise InvalidArgument(name="--behind-proxy", problem=problem)
    if not options.tls_cert and not options.behind_proxy:
        if not is_loopback(options.bind):
            raise OpenToOthers(address=options.bind or "Every address of this machine")
        return ServerAddress.local(port, options.bind.lower())
    if options.bind in ANY_ADDRESS and not options.allow_hosts:
        problem = "is needed with --bind to every address: the name under which this machine is reached"
        raise InvalidArgument(name="--allow-host", problem=problem)
    hosts = [host.lower() for host in options.allow_hosts]
    if options.tls_cert:
        own = [] if options.bind in ANY_ADDRESS else [url_host(options.bind)]
        names = dict.fromkeys([*own, *hosts, LOOPBACK, "localhost"])
        hosts = [_with_port(name, port) for name in names]
    return ServerAddress.named(port, hosts)


def _check_bind(bind: str) -> None:
    """Refuse a bind value that is neither an IP address nor a possible host name."""
    is_name = "." in bind and any(letter.isalpha() for letter in bind) and not set(bind) & set(" :/")
    if not (bind in ANY_ADDRESS or bind.lower() == "localhost" or is_name or parse_ip(bind)):
        problem = f"must be an address of this machine, as in 127.0.0.1 or ::1, not {bind!r}"
        raise InvalidArgument(name="--bind", problem=problem)


def is_loopback(bind: str) -> bool:
    """Return True if only this machine can reach an address: 127.0.0.0/8, ::1 or localhost.

    Names other than localhost are not resolved; the result for them is False.
    """
    address = parse_ip(bind)
    address = getattr(address, "ipv4_mapped", None) or address
    return bind.lower() == "localhost" or (address is not None and address.is_loopback)


def parse_ip(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address. Return None if the text is not one."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def url_host(address: str) -> str:
    """Return a host name or IP address as written in a URL: an IPv6 address gets brackets."""
    return f"[{address}]" if ":" in address else address


def _with_port(name: str, port: int) -> str:
    return name if port == 443 or ":" in name.rpartition("]")[2] else f"{name}:{port}"


def check_head(headers: Headers, hosts: Set[str], url: str) -> None:
    """Raise TooLarge if the headers of a request are too large, or WrongHost unless it names one of these hosts."""
    size = sum(len(name) + len(value) for name, value in headers.raw)
    if size > MAX_HEAD:
        raise TooLarge(what="The head", size=size, limit=MAX_HEAD)
    named = headers.getlist("host")
    if len(named) != 1 or named[0].lower() not in hosts:
        raise WrongHost(host=", ".join(named)[:100], address=url)


def routing_error(request: Request, error: HTTPException) -> QuaidError:
    """Return the error of Quaid for an exception that Starlette raised because it could not route a request."""
    path = request.url.path[:200]
    if error.status_code == 404:
        return NoSuchAddress(path=path)
    if error.status_code == 405:
        return WrongMethod(path=path, method=request.method[:20])
    return InvalidArgument(name="request", problem=str(error.detail)[:200])


@contextmanager
def stopping_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """Stop a server on SIGINT or SIGTERM, also before uvicorn installs its handlers and after it has stopped.

    When uvicorn has stopped, it raises the signal again.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_listener(bind: str, port: int) -> socket.socket:
    """Return a listening socket. Raise PortTaken if the port cannot be used, or FileTrouble for other problems."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    # With an explicit IPPROTO_TCP, asyncio sets TCP_NODELAY; otherwise each response waits 40 ms for a delayed ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name != "nt":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((bind, port))
        listener.listen(MAX_CONNECTIONS)
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise PortTaken(port=port, address=bind) from None
        raise FileTrouble(path=f"{bind}:{port}", problem=error.strerror or str(error)) from None
    return listener


class RequestLimits:
    """Limits for each caller: requests per second, and bytes of request bodies in memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when
        self._body_bytes: Counter[str] = Counter()

    def count_request(self, who: str, rate: float, burst: float) -> None:
        """Count a request. Raise TooMany if a caller exceeds `rate` requests per second after `burst` requests."""
        now = self._clock()
        left, at = self._buckets.pop(who, (burst, now))
        left = min(burst, left + (now - at) * rate)
        self._buckets[who] = (max(0.0, left - 1), now)
        if len(self._buckets) > 10_000:
            self._buckets.popitem(last=False)
        if left < 1:
            raise TooMany(limit=rate, what="requests of this caller in a second")

    @contextmanager
    def reserve_body(self, who: str, each: int, total: int) -> Iterator[Callable[[int], None]]:
        """Yield a function that raises the number of bytes reserved by this block to its argument.

        The function raises TooMany if the caller would have more than `each` bytes in all blocks, and ServerBusy if
        all callers together would have more than `total`. The end of the block releases the bytes.
        """
        reserved = 0

        def reserve(size: int) -> None:
            nonlocal reserved
            more = max(0, size - reserved)
            if self._body_bytes[who] + more > each:
                raise TooMany(limit=each, what="bytes in requests of this caller at one time")
            if self._body_bytes.total() + more > total:
                raise ServerBusy(limit=total)
            self._body_bytes[who] += more
            reserved += more

        try:
            yield reserve
        finally:
            self._body_bytes[who] -= reserved
            if not self._body_bytes[who]:
                del self._body_bytes[who]


class StrictConnection(h11.Connection):
    """A parser that rejects ambiguous requests with RemoteProtocolError, to prevent request smuggling.

    If a proxy in front of the server parsed such a request differently, a part of its body could be taken for the
    request of another client.
    """

    _chunks = _chunk_bytes = 0

    def next_event(self) -> Any:
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._chunk_bytes = 0
            head = before[: len(before) - len(self.trailing_data[0])]
            return _checked_request(event, head)
        if isinstance(event, h11.Data):
            self._chunks += 1
            self._chunk_bytes += len(event.data)
            if self._chunks > MAX_SMALL_CHUNKS and self._chunk_bytes < self._chunks * SMALL_CHUNK_BYTES:
                raise h11.RemoteProtocolError("the chunks of the body are too small")
        return event


def _checked_request(request: h11.Request, head: bytes) -> h11.Request:
    """Check that a request's head is unambiguous. Return the request, with the path alone as its target."""
    if len(head) > MAX_HEAD or request.http_version not in (b"1.0", b"1.1"):
        raise h11.RemoteProtocolError("the head is too large, or of another version of HTTP")
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if not head.endswith(b"\r\n\r\n") or any(set(line) & {0, 10, 13} for line in lines):
        raise h11.RemoteProtocolError("a line of the head has another end than CR LF")
    if any(line[:1] in (b" ", b"\t") for line in lines):
        raise h11.RemoteProtocolError("a header is continued on a second line")
    headers = [(name.lower(), value) for name, _, value in (line.partition(b":") for line in lines[1:])]
    lengths = [value for name, value in headers if name == b"content-length"]
    encodings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) + len(encodings) > 1 or b"," in b"".join(lengths):
        raise h11.RemoteProtocolError("the length of the body is given twice")
    if encodings and request.http_version < b"1.1":
        raise h11.RemoteProtocolError("HTTP/1.0 has no transfer encoding")
    scheme, _, rest = request.target.partition(b"://")
    if scheme.lower() not in (b"http", b"https"):
        return request
    authority, slash, path = rest.partition(b"/")
    if [authority.lower()] != [value.strip().lower() for name, value in headers if name == b"host"]:
        raise h11.RemoteProtocolError("the target names another host than the header")
    return h11.Request(
        method=request.method,
        target=(slash or b"/") + path,
        headers=list(request.headers),
        http_version=request.http_version,
    )


class _LingeringTransport:
    """A transport whose close() lets the client read the response before the connection is closed."""

    def __init__(self, transport: asyncio.Transport, protocol: "GuardedProtocol") -> None:
        self._transport, self._protocol = transport, protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._protocol.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        self._protocol.close_politely(self._transport)


class GuardedProtocol(H11Protocol):
    """An HTTP connection with limits against slow clients, ambiguous requests and too many connections.

    It is closed if the head of a request does not arrive within HEAD_TIMEOUT, if the client reads less than
    MIN_READ_BYTES of its answer in WRITE_TIMEOUT, and after an answer to a request whose body has not arrived
    completely. At the limit of connections, a new one replaces another: see _replace_connection().
    """

    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _is_known = False  # True after a request with valid credentials
    is_lingering = False
    _discarded = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn = StrictConnection(h11.SERVER, MAX_HEAD)
        self._inner_app, self.app = self.app, self._closing_app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_LingeringTransport(transport, self))  # type: ignore[arg-type]
        self._idle_since = self.loop.time()
        self._timer = self.loop.call_later(HEAD_TIMEOUT, self._give_up)
        if self.limit_concurrency and len(self.connections) >= self.limit_concurrency // 2:
            self._replace_connection()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.is_lingering:
            self._discarded += len(data)
            if self._discarded > MAX_LINGER_BYTES:
                self._give_up()
            return
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.IDLE and self._is_between_requests():
            self._timer = self._timer or self.loop.call_later(HEAD_TIMEOUT, self._give_up)
        else:
            self._disarm()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        self._is_known = self._is_known or bool(self._caller())
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # a response has begun
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._watch_reader()

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _watch_reader(self, before: int | None = None) -> None:
        """Close the connection unless the write buffer is at least MIN_READ_BYTES smaller than `before`.

        This is checked again every WRITE_TIMEOUT. The first call has no `before`.
        """
        size = self.transport.get_write_buffer_size()
        if before is not None and size > before - MIN_READ_BYTES:
            self._give_up()
        else:
            self._write_timer = self.loop.call_later(WRITE_TIMEOUT, self._watch_reader, size)

    def close_politely(self, transport: asyncio.Transport) -> None:
        """Close the connection. While a request is arriving, wait up to LINGER_SECONDS for the client to close it.

        Closing with unread bytes would reset the connection, and the client might not get its answer. The bytes
        are not parsed.
        """
        if self.is_lingering:
            return
        if self.conn.their_state not in (h11.SEND_BODY, h11.ERROR) or not transport.can_write_eof():
            transport.close()
            return
        self.is_lingering = True
        self._unset_keepalive_if_required()
        self._disarm()
        transport.resume_reading()
        transport.write_eof()
        self._timer = self.loop.call_later(LINGER_SECONDS, self._give_up)

    async def _closing_app(self, scope: Any, receive: Any, send: Any) -> None:
        """Run the app. If the request has not arrived completely, the response has the header Connection: close."""
        cycle = self.cycle

        async def send_and_close(message: Any) -> None:
            if message["type"] == "http.response.start" and cycle.more_body:
                cycle.keep_alive = False
                others = [item for item in message.get("headers", []) if item[0].lower() != b"connection"]
                message = {**message, "headers": [*others, (b"connection", b"close")]}
            await send(message)

        await self._inner_app(scope, receive, send_and_close)

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _replace_connection(self) -> None:
        """Close a connection of the caller who has the most, if these are more than a quarter of all connections.

        Otherwise, close an idle connection. Idle connections are chosen before busy ones, then those of unknown
        clients, then the one that has been idle for the longest time. All unknown clients count as one caller, and
        as idle while their request is arriving.
        """
        others = [
            connection
            for connection in self.connections
            if isinstance(connection, GuardedProtocol) and connection is not self
        ]
        idle = {connection for connection in others if connection._is_idle()}
        [(most, count)] = Counter(connection._caller() for connection in others).most_common(1) or [("", 0)]
        if count > len(others) / 4:
            others = [connection for connection in others if connection._caller() == most]
        else:
            others = list(idle)
        if others:
            oldest = min(others, key=lambda each: (each not in idle, each._is_known, each._idle_since))
            self.connections.discard(oldest)
            oldest._give_up()

    def _caller(self) -> str:
        """Return the caller of the last request, stored by the app as request.state.caller_key; "" if unknown."""
        state = (self.scope.get("state") or {}) if self.cycle else {}
        return str(state.get("caller_key", ""))

    def _is_idle(self) -> bool:
        return self._is_between_requests() or (self.cycle.more_body and not self._caller())

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._disarm()
        self.transport.abort()


class TlsHandshake(asyncio.Protocol):
    """The protocol of a new connection until its TLS handshake ends. `make_protocol` creates its successor.

    asyncio can do the handshake before it creates a protocol, but does not limit how many are unfinished. Here a new
    connection beyond MAX_HANDSHAKES replaces the oldest one in `unfinished`, so that silent clients cannot block
    others.
    """

    def __init__(
        self,
        context: "ssl.SSLContext",
        make_protocol: Callable[[], asyncio.Protocol],
        unfinished: "dict[TlsHandshake, asyncio.Transport]",
    ) -> None:
        self._context, self._make_protocol, self._unfinished = context, make_protocol, unfinished
        self._task: asyncio.Task[None] | None = None
        self._early: list[bytes] = []  # data that arrived together with the last message of the handshake

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.pause_reading()  # until start_tls() resumes it
        if len(self._unfinished) >= MAX_HANDSHAKES:
            oldest = next(iter(self._unfinished))
            oldest.give_up()
        self._unfinished[self] = transport
        self._task = asyncio.get_running_loop().create_task(self._finish(transport))

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def give_up(self) -> None:
        self._unfinished.pop(self).abort()
        if self._task is not None:
            self._task.cancel()

    async def _finish(self, plain: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(
                plain, self, self._context, server_side=True, ssl_handshake_timeout=HANDSHAKE_TIMEOUT
            )
        except OSError:  # refused, disconnected or timed out; ssl.SSLError is an OSError
            return
        finally:
            self._unfinished.pop(self, None)
        if transport is None or transport.is_closing():
            return
        protocol = self._make_protocol()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        for data in self._early:
            protocol.data_received(data)


def uvicorn_config(app: Any, options: ListenOptions, connections: int = MAX_CONNECTIONS) -> uvicorn.Config:
    """Return the uvicorn configuration, with connection limits and without a request log."""
    import logging

    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    return uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=2 * connections,  # for tasks of connections that are being replaced
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,  # seconds; less than SHUTDOWN_SECONDS in web.server
        h11_max_incomplete_event_size=MAX_HEAD,
        ssl_certfile=options.tls_cert or None,
        ssl_keyfile=options.tls_key or None,
    )
