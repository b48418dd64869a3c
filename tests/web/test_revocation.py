"""A token that is revoked, deleted, edited or expired stops working at once, wherever it is in use."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.web.conftest import client, token
from tests.web.dashboard import served
from tests.web.test_api import failed
from tests.web.test_mcp import begun, rpc

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch, service
from quaid.web import workers


def path_of(settings: Settings, name: str) -> str:
    return os.path.join(os.path.dirname(service.owner_token_path(settings)), "tokens", f"{name}.json")


def revoke(settings: Settings, name: str) -> None:
    with Brain(settings) as brain:
        dispatch.call(brain, dispatch.find_command("token revoke"), {"name": name}, "owner")


def delete(settings: Settings, name: str) -> None:
    os.unlink(path_of(settings, name))


def expire(settings: Settings, name: str) -> None:
    with open(path_of(settings, name), encoding="ascii") as file:
        content = json.load(file)
    content["expires_at"] = "2026-01-01T00:00:00Z"
    with open(path_of(settings, name), "w", encoding="ascii") as file:
        json.dump(content, file)


def spoil(settings: Settings, name: str) -> None:
    with open(path_of(settings, name), "w", encoding="ascii") as file:
        file.write("{")


ENDINGS = [revoke, delete, expire, spoil]
Ending = Callable[[Settings, str], None]


@contextmanager
def stuck_readers(app: Starlette) -> Iterator[None]:
    """All workers that read are busy, so further requests wait."""
    release = threading.Event()
    busy = [threading.Event() for _ in range(workers.READERS)]

    def hold(number: int) -> None:
        def work(_: Brain) -> None:
            busy[number].set()
            release.wait(20)

        async def run() -> None:
            workers.CALLER.set(f"holder {number}")  # one caller leaves a worker free for others
            await app.state.workers.run("read", work)

        app.state.bus._loop.call_soon_threadsafe(lambda: app.state.bus._loop.create_task(run()))

    for number in range(workers.READERS):
        hold(number)
    assert all(event.wait(20) for event in busy)
    try:
        yield
    finally:
        release.set()


@pytest.mark.parametrize("end", ENDINGS)
def test_the_next_request_is_refused(memory: Settings, app: Starlette, end: Ending) -> None:
    name = f"next-{end.__name__}"
    asked = client(app, token(memory, name, "write"))
    assert asked.get("/api/memory/stats").status_code == 200
    session = begun(asked)
    assert asked.post("/mcp", json=rpc("tools/list"), headers=session).status_code == 200
    end(memory, name)
    message = failed(asked.get("/api/memory/stats"), 401)["message"]
    expected = f"The token {name} expired at 2026-01-01T00:00:00Z" if end is expire else "was revoked"
    assert expected in message
    assert asked.post("/mcp", json=rpc("tools/list"), headers=session).status_code == 401
    assert asked.get("/settings", headers={"Accept": "text/html"}).status_code == 401


@pytest.mark.parametrize("end", ENDINGS)
def test_a_request_that_waits_is_refused(memory: Settings, app: Starlette, end: Ending) -> None:
    name = f"wait-{end.__name__}"
    asked = client(app, token(memory, name, "write"))
    session = begun(asked)
    call = rpc("tools/call", name="memory_get", arguments={"slug": "people/alice"})
    with ThreadPoolExecutor(2) as threads:
        with stuck_readers(app):
            over_http = threads.submit(asked.get, "/api/memory/get", params={"slug": "people/alice"})
            over_mcp = threads.submit(asked.post, "/mcp", json=call, headers=session)
            time.sleep(0.3)
            end(memory, name)
        failed(over_http.result(), 401)
        assert "Alice" not in over_mcp.result().text
        assert "not_logged_in" in over_mcp.result().text


@pytest.mark.parametrize("end", [revoke, expire])
def test_open_streams_end(memory: Settings, end: Ending, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def slow(*_: Any) -> Any:
        release.wait(10)
        raise AssertionError("too late")

    name = f"open-{end.__name__}"
    with served(memory) as name_of_server:
        address = "http://127.0.0.1:" + name_of_server.rpartition(":")[2]
        headers = {"Authorization": f"Bearer {token(memory, name, 'read')}"}
        with httpx.Client(base_url=address, headers=headers, timeout=20) as asked:
            session = begun(asked)  # type: ignore[arg-type]
            with asked.stream("GET", "/api/events") as events:
                lines = events.iter_lines()
                assert next(lines).startswith("retry")
                monkeypatch.setattr("quaid.web.mcp.answer_request", slow)
                call = rpc("tools/call", name="memory_get", arguments={"slug": "people/alice"})
                call["params"]["_meta"] = {"progressToken": 1}
                with asked.stream("POST", "/mcp", json=call, headers=session) as answer:
                    end(memory, name)
                    began = time.monotonic()
                    assert answer.read() == b""
                list(lines)
                assert time.monotonic() - began < 4
        release.set()


def test_a_scope_that_was_reduced_holds_at_once(memory: Settings, app: Starlette) -> None:
    asked = client(app, token(memory, "reduced", "write"))
    assert asked.post("/api/notebook/daily_log", json={"content": "One"}).status_code == 200
    path = path_of(memory, "reduced")
    with open(path, encoding="ascii") as file:
        text = file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write(text.replace('"write"', '"read"'))
    failed(asked.post("/api/notebook/daily_log", json={"content": "Two"}), 403)


def test_the_owners_token_ends_with_its_file(memory: Settings, app: Starlette, owner: TestClient) -> None:
    assert owner.get("/api/memory/stats").status_code == 200
    os.rename(service.owner_token_path(memory), service.owner_token_path(memory) + ".old")
    failed(owner.get("/api/memory/stats"), 401)
    other = service.owner_token(memory)
    assert client(app, other).get("/api/memory/stats").status_code == 200
    failed(owner.get("/api/memory/stats"), 401)
    os.rename(service.owner_token_path(memory) + ".old", service.owner_token_path(memory))
    assert owner.get("/api/memory/stats").status_code == 200
