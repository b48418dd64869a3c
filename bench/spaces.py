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
from contextlib import contextmanager
from http.client import HTTPConnection

from bench.search import percentile
from bench.table import show, verdict
from quaid.hub.sqlite_store import SqliteHubStore
from quaid.model.bundle import Bundle, digest, encode
from quaid.spaces.connection import hash_secret, new_token
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import Push

RUNS, QUICK_RUNS = 300, 50
PUSH_MS, DELAY_SECONDS, RSS_MB = 30, 1, 600
SPACES, QUICK_SPACES, PAGES = 200, 20, 5
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
