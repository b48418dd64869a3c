"""A hub that listens on a port of this machine, in a thread or in a process of its own."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from quaid.http_server import ListenOptions, open_listener, server_address, uvicorn_config
from quaid.hub.direct import SpaceCopies, StoreHub
from quaid.hub.server import build_app
from quaid.hub.store import OPERATOR, HubStore
from quaid.model.bundle import Bundle, digest, encode
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import Push, Right, Space, hash_secret, new_token


class RunningHub:
    """A hub with its address. It also makes people and devices."""

    def __init__(self, store: HubStore, url: str, app: Any) -> None:
        self.store, self.url, self.app = store, url, app
        self.log: list[str] = []
        self._connections: list[HttpHub] = []

    def connect(self, token: str = "", hub_id: str = "") -> HttpHub:
        """Return a connection that is closed with the hub."""
        self._connections.append(HttpHub(self.url, token, hub_id))
        return self._connections[-1]

    def close_connections(self) -> None:
        for connection in self._connections:
            connection.close()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def device(self, person: str, *, is_admin: bool = False, **fields: Any) -> HttpHub:
        """Return the connection of a new device. The person is added if new."""
        if person not in {known.name for known in self.store.people(OPERATOR)}:
            self.store.add_person(person, is_admin)
        token = new_token()
        self.store.add_device(person, f"{person}'s laptop", hash_secret(token), **fields)
        return self.connect(token, self.store.hub_id)

    def member(self, owner: HttpHub, space: Space, person: str, right: Right) -> HttpHub:
        """Return the connection of a new member of a space."""
        device = self.device(person)
        owner.set_member(space.id, person, right)
        return device


@contextmanager
def running(store: HubStore, port: int = 0, copies: SpaceCopies | None = None) -> Iterator[RunningHub]:
    """Serve a hub in a thread."""
    options = ListenOptions(port=port)
    listener = open_listener(options.bind, options.port)
    address = server_address(options, int(listener.getsockname()[1]))
    log: list[str] = []
    app = build_app(store, address, log.append, copies)
    hub = RunningHub(store, address.url, app)
    hub.log = log
    server = uvicorn.Server(uvicorn_config(app, options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield hub
    finally:
        hub.close_connections()
        app.state.hub.stop_waiting()
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


class HubProcess:
    """`quaid hub serve` in a process of its own."""

    def __init__(self, place: str, *options: str) -> None:
        command = [sys.executable, "-m", "quaid", "hub", "serve", "--store", place, "--port", "0", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        found = re.search(r"https?://\S+", first)
        assert found, first + self.process.stderr.read()
        self.url = found[0]

    def kill(self) -> None:
        self.process.kill()
        self._finish()

    def stop(self) -> tuple[int, str]:
        """End the process and return its status and what it printed."""
        self.process.terminate()
        return self._finish()

    def _finish(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out + err


def wait_until(condition: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.01)


def uuid_of(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def bundle_of(number: int, truth: str = "", timeline: str = "", **fields: Any) -> Bundle:
    slug = fields.pop("slug", f"people/p{number}")
    return Bundle(uuid_of(number), slug, fields.pop("frontmatter", {}), truth, timeline, **fields)


def push_of(bundle: Bundle, base: int = 0) -> Push:
    """Return the push of a bundle."""
    data = encode(bundle)
    slug = "" if bundle.deleted else bundle.slug
    return Push(bundle.uuid, base, digest(data), data, slug, deleted=bundle.deleted)


def invited(hub: RunningHub, space: str, right: Right, person: str = "") -> str:
    """Return an invitation code that the operator made."""
    return StoreHub(hub.store, OPERATOR).invite(space, right, person).code
