"""Connections over real sockets: ambiguous requests, slow clients and many clients."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from tests.web.conftest import token
from tests.web.dashboard import program_address, served
from tests.web.server_process import Process

from quaid import http_server
from quaid.config import Settings
from quaid.operations import service
from quaid.web import auth

SERVERS = (("serve", "--http"), ("web", "--no-open"))


@pytest.fixture(scope="module", params=SERVERS, ids=" ".join)
def port(request: pytest.FixtureRequest, memory: Settings) -> Iterator[int]:
    """The port of a server that runs as users run it."""
    with Process(memory, *request.param) as process:
        yield process.port


@pytest.fixture
def hasty(memory: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server in this process, with short timeouts."""
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.3)
    monkeypatch.setattr(http_server, "LINGER_SECONDS", 0.3)
    monkeypatch.setattr(auth, "BODY_TIMEOUT", 0.3)
    with served(memory) as address:
        yield int(address.rpartition(":")[2])


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def read_all(connection: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    data = b""
    try:
        while part := connection.recv(65_536):
            data += part
    except ConnectionResetError:
        pass
    return data


def statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def head(port: int, first: str, *lines: str) -> bytes:
    return "\r\n".join([first, f"Host: 127.0.0.1:{port}", *lines, "", ""]).encode()


def exchange(port: int, data: bytes) -> list[int]:
    """The statuses that the server answers before it closes the connection."""
    with connect(port) as connection:
        connection.sendall(data)
        return statuses(read_all(connection))


CHUNKED = "Transfer-Encoding: chunked"
SECOND = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (("Content-Length: 5", CHUNKED), b"0\r\n\r\n"),
        ((CHUNKED, "Content-Length: 5"), b"0\r\n\r\n"),
        (("Content-Length: 5", "Content-Length: 5"), b"12345"),
        (("Content-Length: 5", "Content-Length: 6"), b"12345"),
        (("Content-Length: 5, 5",), b"12345"),
        (("Content-Length: +5",), b"12345"),
        (("Content-Length: -1",), b""),
        (("Content-Length: 0x5",), b"12345"),
        (("Content-Length: 5 5",), b"12345"),
        (("Content-Length : 5",), b"12345"),
        (("Transfer-Encoding: gzip",), b""),
        (("Transfer-Encoding: gzip, chunked",), b"0\r\n\r\n"),
        (("Transfer-Encoding: chunked, chunked",), b"0\r\n\r\n"),
        (("Transfer-Encoding: identity",), b""),
        (("Transfer-Encoding: xchunked",), b"0\r\n\r\n"),
        ((CHUNKED, CHUNKED), b"0\r\n\r\n"),
        (("Transfer-Encoding:\x0bchunked",), b"0\r\n\r\n"),
        (("X-Folded: one", " two"), b""),
        (("Transfer-Encoding:", " chunked"), b"0\r\n\r\n"),
        (("X-Null: a\0b",), b""),
        (("X-Feed: a\nContent-Length: 5",), b"12345"),
        (("X-Return: a\rContent-Length: 5",), b"12345"),
        (("no colon",), b""),
        ((" X-First: 1",), b""),
    ],
)
def test_ambiguous_requests_are_refused_and_the_connection_is_closed(
    port: int, method: str, lines: tuple[str, ...], body: bytes
) -> None:
    assert exchange(port, head(port, f"{method} /health HTTP/1.1", *lines) + body + SECOND) == [400]


@pytest.mark.parametrize(
    "data",
    [
        b"GET /health HTTP/1.1\nHost: 127.0.0.1\n\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET /hea\0lth HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET  /health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 40_000,
        b"a" * 40_000,
        b"GET /health HTTP/1.1\r\n" + b"X-Many: 1\r\n" * 4_000,
        b"POST /health HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET http://evil.example/health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n",
    ],
)
def test_malformed_heads_are_refused_and_the_connection_is_closed(port: int, data: bytes) -> None:
    assert exchange(port, data) == [400]


def test_absolute_targets_name_the_same_host(port: int) -> None:
    own = f"GET http://127.0.0.1:{port}/health HTTP/1.1"
    assert exchange(port, head(port, own, "Connection: close")) == [200]
    assert exchange(port, head(port, f"GET http://127.0.0.1:{port} HTTP/1.1", "Connection: close")) == [401]
    other = b"GET http://evil.example/health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
    assert exchange(port, other) == [400]


def test_http_1_0_is_answered_once(port: int) -> None:
    twice = head(port, "GET /health HTTP/1.0") * 2
    assert exchange(port, twice) == [200]


def test_pipelined_requests_are_answered_in_order(port: int, memory: Settings) -> None:
    key = f"Authorization: Bearer {service.owner_token(memory)}"
    body = b'{"slug": "people/alice"}'
    length, kind = f"Content-Length: {len(body)}", "Content-Type: application/json"
    data = (
        head(port, "GET /health HTTP/1.1")
        + head(port, "GET /api/memory/stats HTTP/1.1")
        + head(port, "POST /api/memory/get HTTP/1.1", key, kind, length)
        + body
        + head(port, "POST /api/memory/get HTTP/1.1", key, kind, CHUNKED)
        + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        + head(port, "GET /api/memory/stats HTTP/1.1", key, "Connection: close")
    )
    assert exchange(port, data) == [200, 401, 200, 200, 200]


def test_a_refused_body_is_not_taken_for_a_request(port: int) -> None:
    request = head(port, "POST /api/memory/get HTTP/1.1", "Content-Length: 100000")
    with connect(port) as connection:
        connection.sendall(request)
        first = connection.recv(65_536)
        connection.sendall(SECOND * 3)
        answer = first + read_all(connection)
    assert statuses(answer) == [401]
    assert b"connection: close" in answer.lower()


def test_tiny_chunks_are_refused(port: int, memory: Settings) -> None:
    key = f"Authorization: Bearer {service.owner_token(memory)}"
    chunk = b"1\r\na\r\n"
    request = head(port, "POST /api/memory/get HTTP/1.1", key, "Content-Type: application/json", CHUNKED)
    assert exchange(port, request + chunk * 2_000) == [400]
    assert exchange(port, head(port, "POST /health HTTP/1.1", CHUNKED) + chunk * 2_000) in ([400], [405])


# Slow clients


def drip(port: int, data: bytes, drops: bytes, seconds: float = 5.0) -> tuple[list[int], float]:
    """Send `data`, then drops until the server closes the connection. Return the answers and the time it took."""
    with connect(port) as connection:
        connection.sendall(data)
        began, answer = time.monotonic(), b""
        connection.settimeout(0.05)
        while time.monotonic() - began < seconds:
            try:
                connection.sendall(drops)
                part = connection.recv(65_536)
                answer += part
                if not part:  # the server has closed its side; it accepts bytes until it closes the other
                    time.sleep(0.05)
            except TimeoutError:
                continue
            except OSError:
                return statuses(answer), time.monotonic() - began
    raise AssertionError(f"still open after {seconds} s: {statuses(answer)}")


@pytest.mark.parametrize(
    ("first", "lines", "drops", "expected"),
    [
        ("POST /api/memory/get HTTP/1.1", ("Content-Length: 9999",), b"x", [401]),
        ("POST /api/memory/get HTTP/1.1", (CHUNKED,), b"1\r\nx\r\n", [401]),
        ("GET /api/memory/get HTTP/1.1", ("Content-Length: 9999",), b"x", [401]),
        ("GET /health HTTP/1.1", (CHUNKED,), b"1\r\nx\r\n", [200]),
        ("POST /login HTTP/1.1", ("Content-Length: 9999",), b"x", [408]),
        ("POST /login HTTP/1.1", (CHUNKED,), b"1\r\nx\r\n", [408]),
        ("POST /mcp HTTP/1.1", ("Content-Length: 9999", "Expect: 100-continue"), b"x", [401]),
    ],
)
def test_a_connection_that_drips_after_its_answer_is_closed(
    hasty: int, first: str, lines: tuple[str, ...], drops: bytes, expected: list[int]
) -> None:
    result, seconds = drip(hasty, head(hasty, first, *lines), drops)
    assert result == expected
    assert seconds < 3


def test_a_head_that_never_ends_is_closed(hasty: int) -> None:
    for data in (b"", b"GET /health HTTP/1.1\r\n", head(hasty, "GET /health HTTP/1.1") + b"GET /"):
        _, seconds = drip(hasty, data, b"X-A: 1\r\n" if data else b"G")
        assert seconds < 3


def test_a_connection_is_kept_for_the_next_request(hasty: int) -> None:
    with connect(hasty) as connection:
        connection.sendall(head(hasty, "GET /health HTTP/1.1"))
        answer = connection.recv(65_536)
        connection.sendall(head(hasty, "GET /health HTTP/1.1", "Connection: close"))
        assert statuses(answer + read_all(connection)) == [200, 200]


def test_a_client_that_does_not_read_is_closed(memory: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "WRITE_TIMEOUT", 0.3)
    with served(memory) as address, connect(int(address.rpartition(":")[2])) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        port = int(address.rpartition(":")[2])
        key = f"Authorization: Bearer {service.owner_token(memory)}"
        connection.settimeout(0.5)
        with pytest.raises(OSError):  # noqa: PT011, PT012 (reset or closed: which one depends on the system)
            for _ in range(20_000):
                connection.sendall(head(port, "GET /api/openapi.json HTTP/1.1", key) * 10)
        time.sleep(1)
        connection.settimeout(20)
        received = read_all(connection)
    assert len(statuses(received)) < 200


# Many clients


def test_a_new_client_gets_in_when_all_connections_are_taken(memory: Settings) -> None:
    with served(memory) as address, ExitStack() as stack:
        port = int(address.rpartition(":")[2])
        address = f"http://127.0.0.1:{port}"
        honest = stack.enter_context(
            httpx.Client(
                base_url=program_address(address),
                headers={"Authorization": f"Bearer {token(memory, 'busy', 'read')}"},
            )
        )
        assert honest.get("/api/memory/stats").status_code == 200
        stream = stack.enter_context(honest.stream("GET", "/api/events"))
        lines = stream.iter_lines()
        assert next(lines).startswith("retry")
        idle = [stack.enter_context(connect(port)) for _ in range(http_server.MAX_CONNECTIONS)]
        for number, connection in enumerate(idle):
            if number % 3 == 0:
                connection.sendall(b"GET /health HT")
            elif number % 3 == 1:
                connection.sendall(head(port, "POST /login HTTP/1.1", "Content-Length: 99") + b"x")
        for _ in range(10):
            assert httpx.get(f"{program_address(address)}/health", timeout=20).status_code == 200
        assert honest.get("/api/memory/stats").status_code == 200
        for connection in idle[:2]:
            assert read_all(connection) == b""  # the longest idle ones were closed
        for connection in idle[-2:]:
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):  # still open
                connection.recv(1)


def test_a_caller_with_most_connections_does_not_keep_others_out(
    memory: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "KEEP_ALIVE_SECONDS", 120)
    key = f"Authorization: Bearer {token(memory, 'hog', 'read')}"
    other = {"Authorization": f"Bearer {token(memory, 'modest', 'read')}"}
    with served(memory) as address, ExitStack() as stack:
        port = int(address.rpartition(":")[2])
        idle = stack.enter_context(connect(port))
        question = head(port, "HEAD /health HTTP/1.1", f"Authorization: {other['Authorization']}")
        idle.sendall(question)
        assert statuses(idle.recv(65_536)) == [200]
        hogs = [stack.enter_context(connect(port)) for _ in range(http_server.MAX_CONNECTIONS - 2)]
        for connection in hogs:
            lines = "Content-Type: application/json", "Content-Length: 99"
            connection.sendall(head(port, "POST /api/memory/query HTTP/1.1", key, *lines) + b"{")
        time.sleep(0.5)
        kept = stack.enter_context(httpx.Client(base_url=program_address(address), headers=other, timeout=20))
        for _ in range(5):
            assert kept.get("/api/memory/stats").status_code == 200
            fresh = httpx.get(f"{program_address(address)}/api/memory/stats", headers=other, timeout=20)
            assert fresh.status_code == 200
        assert read_all(hogs[0]) == b""
        idle.sendall(question)  # still open, though it has been idle for the longest time
        assert statuses(idle.recv(65_536)) == [200]
