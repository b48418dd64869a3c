"""Shared spaces over HTTP: the cost of a push, the delay until another device has an edit, many spaces on a hub.

CPU times are those of the device and of the hub process together, without PostgreSQL; delays are on this machine.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any

from bench.dashboard import fill, made_up
from bench.search import percentile
from bench.table import show, verdict
from quaid.app import Brain
from quaid.config import Settings
from quaid.hub.direct import StoreHub
from quaid.hub.store import OPERATOR, SqliteHubStore
from quaid.model.bundle import Bundle, digest, encode
from quaid.operations import dispatch, spaces
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import InvitationLink, Push, format_link, hash_secret, new_token
from quaid.storage.spaces import Spaces

RUNS, QUICK_RUNS = 300, 50
PUSH_MS, DELAY_SECONDS, RSS_MB = 30, 1, 600
SPACES, QUICK_SPACES, PAGES = 200, 20, 5
JOINED, QUICK_JOINED, JOIN_SECONDS, IDLE_MS, IDLE_RUNS = 10_000, 500, 20, 50, 50
TEXT = "Mira restores tide clocks. " * 60


def main() -> None:
    quick = "--quick" in sys.argv
    runs = QUICK_RUNS if quick else RUNS
    with tempfile.TemporaryDirectory() as folder:
        place, tokens = os.path.join(folder, "hub.db"), [new_token(), new_token()]
        store = SqliteHubStore(place)
        store.add_person("ana")
        for token in tokens:
            store.add_device("ana", "laptop", hash_secret(token))
        store.close()
        with served(place, os.path.join(folder, "data")) as (process, url):
            devices = [HttpHub(url, token) for token in tokens]
            rows = [pushes(process.pid, devices[0], runs), delays(devices, runs)]
            rows.append(
                many_spaces(process.pid, url, devices[0], tokens[0], QUICK_SPACES if quick else SPACES)
            )
            for device in devices:
                device.close()
            rows += join_and_idle(process.pid, url, place, folder, QUICK_JOINED if quick else JOINED)
    show("Shared spaces over HTTP", rows, ("what", "p50 or figure", "p95", "target"))


@contextmanager
def served(place: str, data: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A hub in a process of its own."""
    command = [sys.executable, "-m", "quaid", "hub", "serve", "--store", place, "--data", data, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        found = re.search(r"http://\S+", process.stderr.readline() if process.stderr else "")
        if not found:
            raise SystemExit("the hub did not start")
        yield process, found[0]
    finally:
        process.terminate()
        process.communicate()


def cpu_seconds(pid: int) -> float:
    """CPU time of this process and of another one, with its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def push_of(number: int, base: int = 0, text: str = "") -> Push:
    uuid = f"00000000-0000-4000-8000-{number:012x}"
    data = encode(Bundle(uuid, f"people/p{number}", {"type": "person"}, f"# P{number}\n\n{TEXT}{text}", ""))
    return Push(uuid, base, digest(data), data, f"people/p{number}")


def pushes(pid: int, device: HttpHub, runs: int) -> tuple[str, ...]:
    """One page for each push, new and changed in turn."""
    space = device.create_space("pushes", "private").id
    device.push(space, [push_of(1)])
    before = cpu_seconds(pid)
    for number in range(2, runs + 2):
        [result] = device.push(space, [push_of(number // 2 * 2, number % 2, str(number))])
        assert result.status == "stored", result
    spent = (cpu_seconds(pid) - before) / runs * 1000
    return "push of one page, CPU of device and hub", f"{spent:.1f} ms", "", verdict(spent, PUSH_MS)


def delays(devices: list[HttpHub], runs: int) -> tuple[str, ...]:
    """From the start of a push until another device, which waits, has the page."""
    writer, reader = devices
    space = writer.create_space("delays", "private").id
    times: list[float] = []
    for number in range(1, runs + 1):
        arrived = threading.Event()

        def follow(after: int = number - 1, done: threading.Event = arrived) -> None:
            while not reader.wait(space, after, 20):
                pass
            assert reader.changes(space, after).changes
            done.set()

        thread = threading.Thread(target=follow)
        thread.start()
        time.sleep(0.02)
        started = time.monotonic()
        writer.push(space, [push_of(number)])
        arrived.wait()
        times.append(time.monotonic() - started)
        thread.join()
    times.sort()
    figures = (f"{percentile(times, 50) * 1000:.0f} ms", f"{percentile(times, 95) * 1000:.0f} ms")
    return "an edit is on another device", *figures, verdict(percentile(times, 95), DELAY_SECONDS)


def many_spaces(pid: int, url: str, device: HttpHub, token: str, count: int) -> tuple[str, ...]:
    """Ask a question in each of many spaces, twice; a hub process keeps some of them open."""
    ids = []
    for number in range(count):
        space = device.create_space(f"space{number}", "private").id
        device.push(space, [push_of(number * PAGES + page) for page in range(1, PAGES + 1)])
        ids.append(space)
    connection = HTTPConnection(url.removeprefix("http://"))
    for space in ids * 2:
        body = json.dumps({"query": "who restores tide clocks?", "limit": 3})
        path = f"/hub/v1/spaces/{space}/call/query"
        connection.request("POST", path, body, {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        answer = response.read()
        assert response.status == 200, answer[:500]
    connection.close()
    used = megabytes(pid)
    return f"RSS of a hub process with {count} spaces", f"{used:.0f} MB", "", verdict(used, RSS_MB)


def join_and_idle(pid: int, url: str, place: str, folder: str, count: int) -> list[tuple[str, ...]]:
    """Share a memory with vectors, join it on a new device, and sync while nothing changes."""
    store = SqliteHubStore(place)
    code = StoreHub(store, OPERATOR).invite("", "owner", "ana").code
    store.close()
    first, second = (laptop(folder, name) for name in ("first", "second"))
    fill(first, list(made_up(count)))
    with Brain(first) as brain:
        link = format_link(InvitationLink(url, code))
        run(brain, "share", collection="default", hub=link, name="large", kind="private")
        link = run(brain, "space invite", space="default", right="owner", person="ana").link
    with Brain(second) as brain:
        brain.create(second.db_path)
        before, began = cpu_seconds(pid), time.process_time()
        joined = run(brain, "join", link=link)
        spent, own = cpu_seconds(pid) - before, time.process_time() - began
        assert joined.sync.pulled == count, joined.sync
        row = Spaces(brain.db).require("large")
        with closing(spaces.connect_space(brain, row)) as hub:
            spaces.sync_space(brain, row, hub)
            before = cpu_seconds(pid)
            for _ in range(IDLE_RUNS):
                result = spaces.sync_space(brain, row, hub)
            idle = (cpu_seconds(pid) - before) / IDLE_RUNS * 1000
        assert not result.problem, result
    figures = f"{spent:.1f} s", f"device alone {own:.1f} s"
    return [
        (
            f"join of {count:,} pages with {joined.sync.vectors:,} vectors, CPU",
            *figures,
            verdict(spent, JOIN_SECONDS),
        ),
        ("sync without changes, CPU of device and hub", f"{idle:.1f} ms", "", verdict(idle, IDLE_MS)),
    ]


def laptop(folder: str, name: str) -> Settings:
    home = os.path.join(folder, name)
    os.makedirs(home)
    environ = {"QUAID_BACKGROUND_EMBEDDING": "off", "HOME": home, "QUAID_DEVICE_NAME": name}
    return Settings(os.path.join(home, "memory.db"), os.path.join(home, ".quaid"), home, environ)


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")
