"""Parts of all HTTP servers: the address and its checks, the listening socket, and limits for slow clients.

A server listens on the loopback address by default, and is reachable from other machines only with TLS. No
server writes a request log, because a URL may contain a question or a code.
"""

import asyncio
import errno
import os
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from quaid.errors import FileTrouble, InvalidArgument, OpenToOthers, PortTaken

MAX_HEAD = 32 * 1024
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 (listed to be refused)
MAX_CONNECTIONS = 256
HEAD_TIMEOUT = 15.0
KEEP_ALIVE_SECONDS = 20


@dataclass(frozen=True)
class ListenOptions:
    """Where a server listens, and how TLS is done."""

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
    address: str  # base URL, shown to users
    secure: bool = False  # True if reached over TLS, terminated here or by a proxy

    @classmethod
    def local(cls, port: int, bind: str = "127.0.0.1") -> "ServerAddress":
        """Return the address of a server that only this machine can reach."""
        own = f"[{bind}]" if ":" in bind else bind
        hosts = [f"{name}:{port}" for name in (own, "127.0.0.1", "localhost", "[::1]")]
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
    """Return the address of the server. Raise an error if the options would expose it without TLS."""
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
        own = (
            []
            if options.bind in ANY_ADDRESS
            else [f"[{options.bind}]" if ":" in options.bind else options.bind]
        )
        names = dict.fromkeys([*own, *hosts, LOOPBACK, "localhost"])
        hosts = [_with_port(name, port) for name in names]
    return ServerAddress.named(port, hosts)


def _check_bind(bind: str) -> None:
    """Refuse a bind value that is neither an IP address nor a possible host name."""
    is_name = "." in bind and any(letter.isalpha() for letter in bind) and not set(bind) & set(" :/")
    if not (bind in ANY_ADDRESS or bind.lower() == "localhost" or is_name or _parse_address(bind)):
        problem = f"must be an address of this machine, as in 127.0.0.1 or ::1, not {bind!r}"
        raise InvalidArgument(name="--bind", problem=problem)


def is_loopback(bind: str) -> bool:
    """Return True if only this machine can reach an address: 127.0.0.0/8, ::1 or localhost.

    Other names are not resolved.
    """
    address = _parse_address(bind)
    address = getattr(address, "ipv4_mapped", None) or address
    return bind.lower() == "localhost" or (address is not None and address.is_loopback)


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _with_port(name: str, port: int) -> str:
    return name if port == 443 or ":" in name.rpartition("]")[2] else f"{name}:{port}"


def open_listener(bind: str, port: int) -> socket.socket:
    """Return a listening socket, or raise PortTaken."""
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


class HeadTimeoutProtocol(H11Protocol):
    """An HTTP connection that is closed if the head of a request does not arrive within HEAD_TIMEOUT.

    This limits the harm that slow clients can do.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_TIMEOUT, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        between = self.cycle is None or self.cycle.response_complete
        if self.conn.their_state is h11.IDLE and between:
            self._timer = self._timer or self.loop.call_later(HEAD_TIMEOUT, self._give_up)
        else:
            self._disarm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.close()


def uvicorn_config(app: Any, options: ListenOptions, connections: int = MAX_CONNECTIONS) -> uvicorn.Config:
    """Return the settings of a server without a request log, with limits for slow and many clients."""
    import logging

    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    return uvicorn.Config(
        app,
        http=HeadTimeoutProtocol,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,  # seconds, out of SHUTDOWN_SECONDS
        h11_max_incomplete_event_size=MAX_HEAD,
        ssl_certfile=options.tls_cert or None,
        ssl_keyfile=options.tls_key or None,
    )
