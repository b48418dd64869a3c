"""Servers that are shouted at: bad frames, dropped connections, huge bodies. They answer, stay small, stay clean."""

import json
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.faults.hostile_frames import INVALID_REQUEST, Debt, Owed, frame, owed, paid
from tests.faults.ledger import Cases
from tests.mcp.pipes import HELLO, Pipes, failure_of
from tests.web.conftest import filled, settings_in
from tests.web.server_process import Process

from quaid.config import Settings

pytestmark = pytest.mark.promise("server under abuse")
BATCH = 250
"""Frames in one case."""
LARGE = 5 * 1024 * 1024
WITH_BATCHES = "2025-03-26"
VERSIONS = ("2025-11-25", WITH_BATCHES)
"""Of the protocol, in turn: only in the second may a frame be a list of messages."""
MOST_GROWTH = 20.0  # MB
WARM = 40
"""Connections after which a server has all that it needs. In the short form too few come after them to show a
growth of memory: what it checks is that every handle is given back."""


@pytest.fixture
def memory(tmp_path: Path) -> Settings:
    return filled(settings_in(tmp_path))


@pytest.fixture
def server(memory: Settings) -> Iterator[Process]:
    with Process(memory, "serve", "--http", cold=True) as process:
        yield process


def megabytes(pid: int) -> float:
    """What a process holds in memory now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def test_bad_frames_on_stdio_are_answered_and_standard_output_stays_clean(
    memory: Settings, cases: Cases
) -> None:
    """Every frame gets the one answer that it is owed, and no frame gets another one."""
    server = Pipes(memory.db_path, cold=True)
    try:
        server.greet()
        server.call("memory_search", query="oslo")
        before, answers = 0.0, 0
        for seed in cases.walk(8, 100):
            version = VERSIONS[seed % len(VERSIONS)]
            assert server.greet(version)["protocolVersion"] == version
            bad = [frame(seed * BATCH + number) for number in range(BATCH)]
            bad += [b"x" * (LARGE + 10)] if seed % 8 == 7 else []
            server.write(*bad)
            due = Counter(debt for one in bad for debt in debts(one, version))
            answered = settled(server, f"end-{seed}")
            assert answered == due, f"{due - answered} is owed, {answered - due} was never asked for"
            assert due.total() > BATCH // 2, "these frames ask for next to nothing"
            answers += answered.total()
            before = before or megabytes(server.process.pid)
            cases.count(BATCH - 1)
        after = megabytes(server.process.pid)
        assert server.record("memory_get", slug="people/alice")["title"] == "Alice Berg"
        status, _, errors = server.end()
    finally:
        server.kill()
    assert (status, "Traceback" in errors, "internal error" in errors) == (0, False, False), errors[-2_000:]
    assert after - before <= MOST_GROWTH
    cases.note(f"stdio {answers:,} answers, {after - before:+.0f} MB")


def debts(data: bytes, version: str) -> list[Debt]:
    """What is owed for a line; one that is too long is read past, so that nobody knows what it was."""
    if len(data) > LARGE:
        return [Owed("null", INVALID_REQUEST)]
    return owed(data, batches=version == WITH_BATCHES)


def settled(server: Pipes, id: str) -> Counter[Debt]:
    """Everything that is answered until the answers to two good questions after all the bad ones; those two are
    left out. The second is asked of the memory, which takes its questions one after another."""
    good = {id: "ping", id + "w": "tools/call"}
    for name, method in good.items():
        server.write({"jsonrpc": "2.0", "id": name, "method": method, "params": {"name": "memory_stats"}})
    counted: Counter[Debt] = Counter()
    waiting = set(good)
    while waiting:
        answer = server.next()
        for item in answer if isinstance(answer, list) else [answer]:
            assert item["jsonrpc"] == "2.0"
            assert len({"result", "error"} & set(item)) == 1, item
            assert item.get("error", {}).get("code") != -32603, item
            if item.get("result", {}).get("isError"):
                assert failure_of(item)["code"] != "defect", item
        if isinstance(answer, dict) and answer["id"] in good:
            waiting.remove(answer["id"])
            assert "isError" not in answer["result"] or answer["result"]["isError"] is False, answer
        else:
            counted[paid(answer)] += 1
    return counted


def post(client: httpx.Client, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
    """Send a request, and again after the time that the server asks for if its rate limit refused it."""
    while True:
        answer = client.post(path, content=body, headers=headers)
        if answer.status_code != 429:
            return answer
        time.sleep(float(answer.headers["Retry-After"]))


def test_bad_bodies_over_http_are_answered_and_the_server_stays_small(server: Process, cases: Cases) -> None:
    before = 0.0
    with server.client() as client:
        opened = client.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        )
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        for seed in cases.walk(24, 5_000):
            chance = random.Random(seed)
            place = chance.choice(
                ("/mcp", "/mcp", "/api/memory/get", "/api/memory/put", "/api/notebook/write")
            )
            for number in range(5):
                headers = {**accept, **(session if chance.random() < 0.7 else {})}
                answer = post(client, place, frame(seed * 5 + number), headers)
                assert answer.status_code < 500 or answer.status_code == 503, (place, answer.text)
            if seed % 20 == 0:
                large = post(client, place, b"[" + b" " * LARGE, accept)
                assert large.status_code in (400, 413), large.status_code
            before = before or (megabytes(server.process.pid) if seed > 10 or cases.alone else 0.0)
            cases.count(4)
        assert client.get("/api/memory/stats").json()["pages"] >= 2
        grown = megabytes(server.process.pid) - before
    assert grown <= MOST_GROWTH
    assert server.process.poll() is None
    cases.note(f"HTTP {grown:+.0f} MB")


def test_dropped_connections_leave_nothing_behind(server: Process, cases: Cases) -> None:
    token = server.client().headers["Authorization"]
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: {token}\r\n"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    kind = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    whole = f"{head}{kind}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    with server.client() as client:
        assert client.get("/api/memory/stats").status_code == 200
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client_socket:
        client_socket.sendall(whole)  # the first handshake opens the memory on a worker
        client_socket.recv(100)
    before, handles = 0.0, open_handles(server.process.pid)
    for seed in cases.walk(60, 10_000):
        chance = random.Random(seed)
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(whole[: chance.randrange(1, len(whole) + 1)] if seed % 3 else whole)
            if chance.random() < 0.5 and seed % 3 == 0:
                client.recv(chance.randrange(1, 100))
        before = before or (megabytes(server.process.pid) if seed >= WARM or cases.alone else 0.0)
    left = wait_for_handles(server.process.pid, handles)
    assert left <= handles, "connections that nobody holds any more are still open"
    with server.client() as client:
        assert client.get("/api/memory/stats").status_code == 200
    grown = megabytes(server.process.pid) - before
    assert grown <= MOST_GROWTH
    with httpx.Client(base_url=server.address) as nobody:
        assert nobody.get("/api/memory/stats").status_code == 401
    status, _ = server.stop()
    assert server.process.stderr
    output = server.process.stderr.read()
    assert status == 0
    assert "Traceback" not in output
    assert "internal error" not in output
    cases.note(f"dropped {grown:+.0f} MB after the first {WARM}, {left - handles:+} open handles")


def open_handles(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def wait_for_handles(pid: int, most: int) -> int:
    """How many are open when those of dropped connections have been closed, or some seconds have passed."""
    until = time.monotonic() + 60
    while (handles := open_handles(pid)) > most and time.monotonic() < until:
        time.sleep(0.05)
    return handles
