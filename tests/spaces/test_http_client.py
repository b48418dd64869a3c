"""The HTTP client against servers that are absent, foreign or hostile."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from quaid.errors import (
    DeviceRevoked,
    DifferentHub,
    HubRefused,
    HubUnreachable,
    InvalidArgument,
    NotFound,
    TooMany,
    UntrustworthyHub,
)
from quaid.spaces import http_client
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import Change, Push, to_json

BUNDLE = b"{}"
CHANGE = Change(
    1, "u1", 1, 0, sha256(BUNDLE).hexdigest(), BUNDLE, "a/b", False, False, "ana", "", "d", "2026-11-01"
)


class Enemy(ThreadingHTTPServer):
    """A server that answers every request with a prepared answer and records what it received."""

    daemon_threads = True
    status = 200
    hub_id: str | None = "hub-1"
    answer: Any = None
    missing = 0  # bytes at the end of the answer that are not sent
    headers: dict[str, str]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), EnemyHandler)
        self.seen: list[tuple[str, str, bytes]] = []
        self.headers = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class EnemyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Enemy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, self.headers.get("authorization", ""), body))
        answer = self.server.answer
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(self.server.status)
        if self.server.hub_id is not None:
            self.send_header("Quaid-Hub", self.server.hub_id)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) - self.server.missing])
        self.close_connection = self.server.missing > 0

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def enemy() -> Iterator[Enemy]:
    server = Enemy()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def connected(server: Enemy, hub_id: str = "hub-1") -> Iterator[HttpHub]:
    hub = HttpHub(server.url, "secret-token", hub_id)
    try:
        yield hub
    finally:
        hub.close()


def page(*changes: Change, last_seq: int = 1, is_complete: bool = True) -> dict[str, Any]:
    return {"result": {"changes": to_json(changes), "last_seq": last_seq, "is_complete": is_complete}}


def test_a_bundle_that_does_not_match_its_hash_is_refused(enemy: Enemy) -> None:
    enemy.answer = page(CHANGE._replace(bundle=b'{"truth": "forged"}'))
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub, match="u1 does not match its hash"):
        hub.changes("s", 0)
    enemy.answer = {"result": to_json(CHANGE._replace(bundle=b"forged"))}
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub):
        hub.get("s", "u1")
    stale = {"uuid": "u2", "status": "stale", "head": to_json(CHANGE._replace(bundle=b"forged"))}
    enemy.answer = {"result": [stale]}
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub):
        hub.push("s", [Push("u2", 1, "", b"", "a/b")])


def test_a_hub_that_answers_with_another_page_is_refused(enemy: Enemy) -> None:
    enemy.answer = {"result": to_json(CHANGE)}
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub, match="instead of u2"):
        hub.get("s", "u2")
    enemy.answer = {"result": [{"uuid": "u1", "status": "stored"}]}
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub, match="names other pages"):
        hub.push("s", [Push("u2", 1, "", b"", "a/b")])


def test_changes_that_go_back_or_never_end_are_refused(enemy: Enemy) -> None:
    enemy.answer = page(CHANGE, CHANGE)
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub, match="not in order"):
        hub.changes("s", 0)
    enemy.answer = page(is_complete=False)
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub, match="sends none"):
        hub.changes("s", 0)


def test_another_hub_gets_neither_the_token_nor_content(enemy: Enemy) -> None:
    enemy.answer = {"result": []}
    with connected(enemy, "hub-2") as hub, pytest.raises(DifferentHub, match="id hub-1, not hub-2"):
        hub.push("s", [Push("u1", 0, "", b"private", "a/b")])
    assert enemy.seen == [("/hub/v1/about", "", b"{}")]


def test_something_else_than_a_hub_counts_as_unreachable(enemy: Enemy) -> None:
    enemy.hub_id, enemy.answer = None, b"<html>It works!</html>"
    with connected(enemy) as hub, pytest.raises(HubUnreachable, match="something else"):
        hub.spaces()
    assert all(not token for _, token, _ in enemy.seen)


def test_redirects_are_not_followed(enemy: Enemy) -> None:
    enemy.status, enemy.headers = 302, {"Location": f"{enemy.url}/elsewhere"}
    with connected(enemy) as hub, pytest.raises(HubUnreachable, match="status 302"):
        hub.spaces()
    assert [path for path, _, _ in enemy.seen] == ["/hub/v1/about"]


@pytest.mark.parametrize(
    "answer", [b"[", b"[" * 100_000, b'{"result": [{}]}', b'{"result": 5}', b"5", b'{"other": []}', b"\xff"]
)
def test_answers_that_cannot_be_read_are_refused(enemy: Enemy, answer: bytes) -> None:
    enemy.answer = answer
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub, match="cannot be read"):
        hub.spaces()


def test_an_answer_without_end_is_refused(enemy: Enemy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_ANSWER", 1_000)
    enemy.answer = b" " * 10_000
    with connected(enemy) as hub, pytest.raises(UntrustworthyHub, match="more than 1,000 bytes"):
        hub.spaces()


def test_an_answer_that_is_cut_off_counts_as_unreachable(enemy: Enemy) -> None:
    enemy.answer, enemy.missing = {"result": []}, 5
    with connected(enemy) as hub, pytest.raises(HubUnreachable, match="closed the connection"):
        hub.spaces()


def test_errors_of_the_hub_keep_their_class(enemy: Enemy) -> None:
    def refuse(status: int, code: str, **facts: Any) -> None:
        enemy.status = status
        enemy.answer = {"error": {"code": code, "message": "It is gone.", "facts": facts}}

    refuse(404, "not_found", what="space", name="s", hint="")
    with connected(enemy) as hub, pytest.raises(NotFound, match="There is no space s"):
        hub.spaces()
    refuse(404, "not_found")  # another version with other facts
    with connected(enemy) as hub, pytest.raises(HubRefused, match="It is gone"):
        hub.spaces()
    refuse(401, "not_logged_in")
    with connected(enemy) as hub, pytest.raises(DeviceRevoked):
        hub.spaces()
    refuse(503, "busy")
    with connected(enemy) as hub, pytest.raises(HubUnreachable, match="It is gone"):
        hub.spaces()


def test_a_busy_hub_is_asked_again_a_few_times(enemy: Enemy, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    enemy.status, enemy.headers = 429, {"Retry-After": "3"}
    enemy.answer = {"error": {"code": "too_many", "message": "", "facts": {"limit": 1, "what": "requests"}}}
    with connected(enemy) as hub, pytest.raises(TooMany):
        hub.spaces()
    assert pauses == [3.0] * http_client.MOST_RETRIES


def test_a_hub_that_is_not_there_is_unreachable() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(HubUnreachable, match="refused"):
        HttpHub(f"http://127.0.0.1:{port}").about()


def test_an_idle_connection_that_the_hub_closed_is_opened_again(enemy: Enemy) -> None:
    enemy.answer = {"result": []}
    with connected(enemy) as hub:
        hub.spaces()
        assert hub._connection is not None
        sock = hub._connection.sock
        assert sock is not None
        sock.shutdown(socket.SHUT_RDWR)
        assert hub.spaces() == []


@pytest.mark.parametrize(
    "url",
    [
        "http://hub.example.org",
        "http://192.168.1.2:4399",
        "ftp://hub.example.org",
        "https://",
        "https://user:pass@hub.example.org",
        "https://hub.example.org/path",
        "https://hub.example.org:99999",
        "hub.example.org",
    ],
)
def test_addresses_without_tls_or_without_a_host_are_refused(url: str) -> None:
    with pytest.raises(InvalidArgument):
        HttpHub(url)


@pytest.mark.parametrize("url", ["https://hub.example.org", "http://localhost:1", "http://[::1]:4399"])
def test_tls_and_this_machine_are_allowed(url: str) -> None:
    assert HttpHub(url + "/").url == url
