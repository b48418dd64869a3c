"""Limits of each caller: requests in a second, bytes in memory, and the length of a question."""

import asyncio
import json
import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.web.conftest import client, filled, settings_in, token
from tests.web.dashboard import served
from tests.web.server_process import Process
from tests.web.test_api import failed
from tests.web.test_connections import connect, head, read_all, statuses

from quaid.config import Settings
from quaid.errors import TooMany
from quaid.http_server import RequestLimits
from quaid.mcp import jsonrpc
from quaid.operations.dispatch import MAX_QUESTION
from quaid.web import auth, server as web_app
from quaid.web.pages import markdown


@pytest.fixture
def limited(tmp_path: Path) -> Settings:
    """A memory whose server takes one request in a second, and ten at once."""
    settings = filled(settings_in(tmp_path))
    few = {"QUAID_WEB_REQUESTS_PER_SECOND": "1", "QUAID_WEB_BURST": "10"}
    return settings._replace(environ={**settings.environ, **few})


def test_a_token_that_sends_too_much_is_told_to_wait(limited: Settings) -> None:
    app = web_app.build_app(limited)
    with client(app, token(limited, "noisy", "read")) as noisy:
        calm = client(app, token(limited, "calm", "read"))
        answers = [noisy.get("/api/memory/stats") for _ in range(15)]
        assert [answer.status_code for answer in answers[:10]] == [200] * 10
        refused = answers[-1]
        assert failed(refused, 429)["code"] == "too_many"
        assert refused.headers["retry-after"] == "1"
        assert calm.get("/api/memory/stats").status_code == 200
        assert noisy.post("/mcp", json={}).status_code == 429
        assert noisy.get("/settings").status_code == 429
        time.sleep(1.1)
        assert noisy.get("/api/memory/stats").status_code == 200


def test_spellings_of_a_token_count_as_one_caller(limited: Settings) -> None:
    app, secret = web_app.build_app(limited), token(limited, "noisy", "read")
    with client(app) as http:
        answers = []
        for number in range(12):
            header = f"{'bBEARER'[number % 2 :][:1]}earer{' ' * (number + 1)}{secret}"
            answers.append(http.get("/api/memory/stats", headers={"Authorization": header}).status_code)
    assert answers[:10] == [200] * 10
    assert answers[-1] == 429


def test_a_stranger_sends_only_small_bodies(memory: Settings) -> None:
    with client(web_app.build_app(memory)) as stranger:
        answer = stranger.post("/login", data={"code": "1" * auth.MAX_PUBLIC_BODY})
        assert answer.status_code == 413
        assert stranger.post("/login", data={"code": "1" * 1_000}).status_code == 401


def test_requests_are_counted_with_a_bucket_for_each_caller() -> None:
    now = 0.0
    limits = RequestLimits(lambda: now)

    def allowed(who: str, requests: int) -> int:
        count = 0
        for _ in range(requests):
            try:
                limits.count_request(who, 50, 200)
                count += 1
            except TooMany:
                continue
        return count

    assert allowed("a", 300) == 200
    assert allowed("b", 10) == 10
    now = 1.0
    assert allowed("a", 300) == 50
    now = 100.0
    assert allowed("a", 300) == 200


def test_bodies_in_memory_are_limited(memory: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "MAX_CALLER_BODIES", 1_000)
    monkeypatch.setattr(auth, "MAX_BODIES", 1_500)
    keys = [f"Authorization: Bearer {token(memory, f'body-{number}', 'read')}" for number in range(2)]

    def send(port: int, key: str, size: str) -> socket.socket:
        connection = connect(port)
        kind = "Content-Type: application/json"
        connection.sendall(head(port, "POST /api/memory/stats HTTP/1.1", key, kind, size) + b"{")
        return connection

    with served(memory) as address, ExitStack() as stack:
        port = int(address.rpartition(":")[2])
        first = stack.enter_context(send(port, keys[0], "Content-Length: 900"))
        time.sleep(0.3)
        second = read_all(stack.enter_context(send(port, keys[0], "Content-Length: 200")))
        assert statuses(second) == [429]
        assert b"retry-after: 1" in second
        third = read_all(stack.enter_context(send(port, keys[1], "Content-Length: 700")))
        assert statuses(third) == [503]
        assert b"server_busy" in third
        assert b"retry-after: 1" in third
        first.sendall(b"}" + b" " * 898)
        assert first.recv(65_536).startswith(b"HTTP/1.1 200")
        fourth = stack.enter_context(send(port, keys[1], "Content-Length: 2"))
        fourth.sendall(b"}")
        assert fourth.recv(65_536).startswith(b"HTTP/1.1 200")
        chunked = stack.enter_context(send(port, keys[0], "Content-Length: 1001"))
        assert statuses(read_all(chunked)) == [429]


def test_a_large_body_does_not_stop_the_event_loop(memory: Settings) -> None:
    """Other requests are answered while the escapes of a body of 30 MB are counted."""
    body = b'{"slug": "' + b"\\u0061" * 5_000_000 + b'"}'
    with served(memory) as address:
        url = f"http://127.0.0.1:{address.rpartition(':')[2]}"
        key = {"Authorization": f"Bearer {token(memory, 'large', 'read')}"}

        async def run() -> tuple[int, float]:
            async with httpx.AsyncClient(base_url=url, headers=key, timeout=60) as asked:
                kind = {"Content-Type": "application/json"}
                large = asyncio.create_task(asked.post("/api/memory/get", content=body, headers=kind))
                longest = 0.0
                while not large.done():
                    began = time.monotonic()
                    assert (await asked.get("/health")).status_code == 200
                    longest = max(longest, time.monotonic() - began)
                return (await large).status_code, longest

        status, longest = asyncio.run(run())
    assert status == 413
    assert longest < 5  # on a busy machine; 0.6 s of work are spread over many turns


def test_a_question_that_is_too_long_is_refused(memory: Settings) -> None:
    app = web_app.build_app(memory)
    with client(app, token(memory, "asker", "read")) as asked:
        for path in ("query", "search"):
            for size, status in ((MAX_QUESTION, 200), (MAX_QUESTION + 1, 400)):
                text = ("harbour pilot " * 400)[:size].ljust(size, "x")
                answer = asked.post(f"/api/memory/{path}", json={"query": text})
                assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    "path", ["/page/people/alice", "/notebook/reference/contacts.md", "/ui/preview", "/ui/preview/kb"]
)
def test_texts_are_rendered_on_threads_that_serve_callers_in_turn(
    memory: Settings, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    threads = []
    render = markdown.render_markdown

    def recorded(*words: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return render(*words, **options)

    monkeypatch.setattr(markdown, "render_markdown", recorded)
    with client(web_app.build_app(memory), token(memory, f"w{len(path)}", "write")) as writer:
        form = {"slug": "people/alice", "text": "# Alice"}
        answer = writer.post(path, data=form) if path.startswith("/ui/") else writer.get(path)
    assert answer.status_code == 200
    assert threads
    assert all(name.startswith("reader") for name in threads)


def test_json_of_four_megabytes_is_parsed_quickly() -> None:
    text = json.dumps({"content": "word, " * 700_000}).encode()
    began = time.process_time()
    assert len(jsonrpc.decode(text)["content"]) == 4_200_000
    assert time.process_time() - began < 0.5


def test_strangers_of_one_address_are_told_to_wait_and_callers_are_not(limited: Settings) -> None:
    app = web_app.build_app(limited)
    with client(app) as stranger:
        assert [stranger.get("/login").status_code for _ in range(10)] == [200] * 10
        began = time.monotonic()
        refused = stranger.get("/login")
        assert time.monotonic() - began >= auth.REFUSAL_SECONDS - 0.05
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert "<html" not in refused.text
        wrong = {"Authorization": "Bearer qd_wrong"}  # counts too; one request is allowed in each second
        assert any(stranger.get("/api/memory/stats", headers=wrong).status_code == 429 for _ in range(20))
        assert client(app, token(limited, "calm", "read")).get("/api/memory/stats").status_code == 200
        other = TestClient(app, base_url=str(stranger.base_url), client=("192.0.2.7", 50_000))
        assert other.get("/login").status_code == 200


def test_flood_of_a_stranger_leaves_the_processor_to_others(tmp_path: Path) -> None:
    """64 connections that ask again as soon as they get an answer."""
    few = {"QUAID_WEB_REQUESTS_PER_SECOND": "5", "QUAID_WEB_BURST": "20"}
    with Process(filled(settings_in(tmp_path)), "serve", "--http", environ=few) as server:
        began, counts = time.monotonic(), Counter[int]()

        def flood() -> None:
            with httpx.Client(base_url=server.address, timeout=30) as stranger:
                for _ in range(4):
                    counts[stranger.get("/login").status_code] += 1

        threads = [threading.Thread(target=flood) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with server.client() as owner:
            assert owner.get("/api/memory/stats").status_code == 200
        seconds = time.monotonic() - began
    assert counts[200] <= 20 + 5 * (seconds + 1)
    assert counts[200] + counts[429] == 64 * 4
