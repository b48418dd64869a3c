"""Server-sent events: who hears what, who loses what, how many may listen."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.timing import takes_at_most
from tests.web.conftest import filled, settings_in
from tests.web.server_process import Process

from quaid.errors import TooMany
from quaid.web import api
from quaid.web.api import EventBus


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    with Process(filled(settings_in(tmp_path)), "serve", "--http", "--debug") as process:
        yield process


HEARTBEATS = 6


def heard(lines: Iterator[str], kind: str) -> dict[str, Any]:
    """The next event of a kind, within some heartbeats."""
    name, beats = "", 0
    for line in lines:
        beats += line.startswith(":")
        assert beats < HEARTBEATS, f"nothing was heard of {kind}"
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: ") and name == kind:
            value: dict[str, Any] = json.loads(line[6:])
            return value
    raise AssertionError(f"the stream ended without {kind}")


@contextmanager
def changing(server: Process) -> Iterator[None]:
    """Somebody who makes one page after another."""
    enough = threading.Event()

    def work() -> None:
        number = 0
        with server.client() as client:
            while not enough.wait(0.2):
                body = {"slug": f"notes/n{number}", "content": f"# Note {number}"}
                assert client.post("/api/memory/put", json=body).status_code == 200
                number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def test_listener_receives_changes_gaps_and_files(server: Process) -> None:
    with server.client() as listener, listener.stream("GET", "/api/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        lines = stream.iter_lines()
        assert heard(lines, "hello") == {}
        with server.client() as other:
            # The first look at the memory, whenever it comes, is the state that later ones are compared with.
            with changing(server):
                heard(lines, "changed")
            before = other.get("/api/memory/stats").json()["pages"]
            body = {"slug": "people/bo", "content": "# Bo\n\nA diver."}
            assert other.post("/api/memory/put", json=body).status_code == 200
            while heard(lines, "changed")["pages"] != before + 1:
                pass  # still of what was changed before
            question = "What is the boiling point of vanadium?"
            assert other.post("/api/memory/gap", json={"query_text": question}).status_code == 200
            gap = heard(lines, "gap")
            assert gap["id"] == 1
            assert "vanadium" not in json.dumps(gap)


def test_saved_file_sends_an_event(server: Process) -> None:
    folder = Path(server.settings.db_path).parent / "notebook"
    assert folder.is_dir()
    with server.client() as listener, listener.stream("GET", "/api/events") as stream:
        lines = stream.iter_lines()
        while True:  # until the process that watches has begun
            event = heard(lines, "files")
            if event["event"] in ("began", "synced"):
                break
        (folder / "lists" / "garden.md").write_text("## Garden\n- Beans\n", encoding="utf-8")
        while True:
            event = heard(lines, "files")
            if event["event"] == "synced" and event["new"]:
                break
        assert event["collection"] == "notebook"
        assert "Beans" not in json.dumps(event)


def test_listeners_end_with_the_server(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))

    def end(_: int) -> float:
        with (
            Process(settings, "serve", "--http") as server,
            server.client() as listener,
            listener.stream("GET", "/api/events") as stream,
        ):
            lines = stream.iter_lines()
            assert heard(lines, "hello") == {}
            status, seconds = server.stop()
            assert status == 0
            try:
                assert list(lines) is not None  # the stream ends
            except httpx.RemoteProtocolError:
                pass
        return seconds

    takes_at_most(2, end)


def test_slow_reader_loses_the_oldest_events() -> None:
    async def listen() -> None:
        bus = EventBus()
        bus.open()
        listener = bus.join()
        for number in range(api.MAX_QUEUE + 10):
            bus.tell("changed", {"number": number})
        await asyncio.sleep(0.01)
        assert len(listener.waiting) == api.MAX_QUEUE
        stream = api._event_frames(bus, listener, lambda: True)
        assert b"hello" in await anext(stream)
        assert b'event: lost\ndata: {"events":10}' in await anext(stream)
        assert b'{"number":10}' in await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        assert bus._listeners == set()

    asyncio.run(listen())


def test_idle_stream_sends_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "HEARTBEAT_SECONDS", 0.01)

    async def listen() -> None:
        bus = EventBus()
        bus.open()
        stream = api._event_frames(bus, bus.join(), lambda: True)
        await anext(stream)
        assert (await anext(stream)).startswith(b":")
        assert (await anext(stream)).startswith(b":")

    asyncio.run(listen())


def test_number_of_listeners_is_limited() -> None:
    async def join() -> None:
        bus = EventBus()
        bus.open()
        first = bus.join("a")
        for _ in range(api.MAX_LISTENERS_OF_CALLER - 1):
            bus.join("a")
        with pytest.raises(TooMany):
            bus.join("a")
        others = api.MAX_LISTENERS - api.MAX_LISTENERS_OF_CALLER
        for number in range(others):
            bus.join(f"other {number}")
        with pytest.raises(TooMany):
            bus.join("last")
        bus.leave(first)
        bus.join("last")

    asyncio.run(join())


def test_disconnected_listener_frees_its_place(server: Process) -> None:
    for _ in range(api.MAX_LISTENERS_OF_CALLER + 5):
        with server.client() as listener, listener.stream("GET", "/api/events") as stream:
            assert stream.status_code == 200
            assert next(stream.iter_lines())


def test_event_without_an_open_bus_is_ignored() -> None:
    bus = EventBus()
    listener = bus.join()
    bus.tell("changed", {})
    assert not listener.waiting


def test_stream_ends_when_its_token_is_revoked() -> None:
    async def listen() -> None:
        bus = EventBus()
        bus.open()
        allowed = [True]
        stream = api._event_frames(bus, bus.join(), lambda: allowed[0])
        assert b"hello" in await anext(stream)
        allowed[0] = False
        bus.tell("file", {"n": 1})
        assert [item async for item in stream] == []

    asyncio.run(listen())
