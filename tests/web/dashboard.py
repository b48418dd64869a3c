"""A lifelike memory, and the dashboard over it: in this process for requests, on a port for a browser."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx
import pytest
from tests import commands

from quaid.app import Brain
from quaid.config import Settings
from quaid.http_server import ListenOptions, ServerAddress, uvicorn_config
from quaid.operations import dispatch, service
from quaid.web import server as web_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHROMIUM = next(
    (path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if os.path.exists(path)), ""
)
CHROMIUM = os.environ.get("QUAID_CHROMIUM", CHROMIUM)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
).split()
WIDE, NARROW = (1280, 860), (390, 780)
NEEDS_BROWSER = pytest.mark.skipif(
    not (CHROMIUM and find_spec("playwright")),
    reason="needs Chromium (apt install chromium) and playwright (pip install playwright)",
)
VAULT = os.path.join(ROOT, "examples", "vault")
NOTES = {
    "lists/shopping.md": "## Shopping List\n\n- Milk\n- Oat flakes\n- Sea salt\n",
    "lists/todos.md": "## To Do\n\n- [ ] Call the harbour master\n- [x] Order the second press\n",
    "reference/contacts.md": "## Sarah Chen\n\n- Phone: 555-1234\n- Prefers email to phone\n\n"
    "## Teo Varland\n\n- Builds the cells: [[people/teo-varland]]\n",
    "reference/preferences.md": "## Mornings\n\n- Coffee before meetings, never after four\n",
    "knowledge/facts.md": "## Energy\n\n- The morning tariff of Fjellmyr is three times the night price\n",
    "daily/2026-05-01.md": "## 09:10 — Called Sarah about the timeline\n\nShe will send the diver's report.\n",
    "daily/2026-05-02.md": "## 18:40 — Walk along the harbour\n\nNo call yet.\n",
}


def settings_in(folder: str) -> Settings:
    return Settings(
        db_path=os.path.join(folder, "memory.db"),
        home=os.path.join(folder, "home"),
        cwd=folder,
        environ={
            "QUAID_BACKGROUND_EMBEDDING": "off",
            **commands.SHARED_MODELS,
            "HOME": os.path.join(folder, "person"),
            "PATH": os.environ.get("PATH", ""),
        },
    )


def call(settings: Settings, command: str, /, **arguments: Any) -> Any:
    """An operation, as the owner of the memory would call it."""
    with Brain(settings) as brain:
        return called(brain, command, **arguments)


def called(brain: Brain, command: str, /, **arguments: Any) -> Any:
    items = {key.rstrip("_"): value for key, value in arguments.items()}
    return dispatch.call(brain, dispatch.find_command(command), items, "owner")


def lifelike(folder: str) -> Settings:
    """A memory with pages, links of a time, facts that contradict each other, gaps, a notebook, quarantine, twins."""
    settings = settings_in(folder)
    os.makedirs(os.path.join(folder, "person"))
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        called(brain, "import", folder=VAULT)
        called(brain, "notebook init")
        root = os.path.join(folder, "notebook")
        for path, text in NOTES.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        called(brain, "collection sync")
        tied = "people/teo-varland", "companies/brineloop"
        called(brain, "link", from_=tied[0], to=tied[1], relationship="works_at", valid_from="2024-02-01")
        called(
            *(brain, "link"),
            from_="people/teo-varland",
            to="companies/fjellmyr-energilag",
            relationship="worked_at",
            valid_from="2019-01-01",
            valid_until="2024-01-31",
        )
        for city, source in (("Oslo", "call"), ("Malmö", "letter")):
            called(
                *(brain, "assert"),
                slug="people/mira-dahlquist",
                predicate="lives_in",
                object=city,
                source_ref=source,
                evidence_text=f"She says that she lives in {city} now.",
                valid_from="2026-04-25",
            )
        called(brain, "check")
        called(brain, "gaps add", query_text="Who insures the pier?", context="asked in the weekly call")
        twin = called(brain, "get", slug="concepts/salt-creep").compiled_truth
        called(brain, "put", slug="concepts/salt-beard", content=twin.replace("# Salt creep", "# Salt beard"))
        for text in ("The first thought.", "The second thought.", "The third thought."):
            called(
                brain, "put", slug="concepts/patience", content=f"# Patience\n\n> About waiting.\n\n{text}\n"
            )
        _lost_folder(brain, folder)
    return settings


def _lost_folder(brain: Brain, folder: str) -> None:
    """A collection, one of whose files has vanished."""
    notes = os.path.join(folder, "notes")
    os.makedirs(notes)
    for name in ("kept", "lost"):
        with open(os.path.join(notes, f"{name}.md"), "w", encoding="utf-8") as file:
            file.write(f"# The {name} note\n\nA note that was {name}.\n")
    called(brain, "collection add", name="notes", path=notes)
    os.unlink(os.path.join(notes, "lost.md"))
    called(brain, "collection sync", name="notes")


def browser_address(settings: Settings, port: int) -> str:
    """The address under which browsers have sessions."""
    return f"http://{service.web_host_name(settings)}:{port}"


def program_address(address: str) -> str:
    """The address of the same server for programs, which cannot resolve the name of the browsers."""
    return f"http://127.0.0.1:{address.rpartition(':')[2]}"


class Visitor:
    """Somebody who is logged in, without a browser."""

    def __init__(self, client: httpx.AsyncClient, loop: asyncio.AbstractEventLoop, csrf: str) -> None:
        self._client, self._loop, self.csrf = client, loop, csrf

    def get(self, path: str, /, **headers: str) -> httpx.Response:
        return self._loop.run_until_complete(self._client.get(path, headers=headers))

    def post(self, path: str, /, **fields: str | int) -> httpx.Response:
        body = urlencode({"csrf_token": self.csrf, **fields})
        return self.send(path, body.encode(), {"Content-Type": "application/x-www-form-urlencoded"})

    def send(self, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        return self._loop.run_until_complete(self._client.post(path, content=body, headers=headers))


@contextmanager
def visiting(settings: Settings) -> Iterator[Visitor]:
    """The whole app, guard included, asked without a socket."""
    app = web_app.build_app(settings)
    loop = asyncio.new_event_loop()
    started = app.router.lifespan_context(app)
    loop.run_until_complete(started.__aenter__())
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=browser_address(settings, web_app.DEFAULT_PORT)
    )
    try:
        code = service.login_code(settings, web_app.DEFAULT_PORT, time.time())
        answer = loop.run_until_complete(client.post("/login", data={"code": code}))
        assert answer.status_code == 200, answer.text
        page = loop.run_until_complete(client.get("/")).text
        csrf = page.partition('<meta name="csrf" content="')[2].partition('"')[0]
        yield Visitor(client, loop, csrf)
    finally:
        loop.run_until_complete(client.aclose())
        loop.run_until_complete(started.__aexit__(None, None, None))
        loop.close()


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """The dashboard on a port of its own; the address that logs a browser in."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = web_app.build_app(settings, address=ServerAddress.local(port))
    server = uvicorn.Server(uvicorn_config(app, ListenOptions()))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.started
    try:
        yield browser_address(settings, port)
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()


def login(settings: Settings, address: str) -> str:
    port = int(address.rpartition(":")[2])
    return f"{address}/login?code={service.login_code(settings, port, time.time())}"


class Visit:
    """A tab that is logged in, and what went wrong in it."""

    def __init__(self, page: "Page", address: str) -> None:
        self.page, self.address = page, address
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: self._outside(request.url))

    def _outside(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"asked {url}")

    def go(self, path: str) -> "Page":
        self.page.goto(self.address + path)
        return self.page


def opened(
    browser: "Browser", memory: Settings, address: str, size: tuple[int, int] = WIDE, **more: Any
) -> Visit:
    more = {"service_workers": "block", **more}  # a test of its own allows it
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
    context.set_default_timeout(60_000)
    visit = Visit(context.new_page(), address)
    visit.page.goto(login(memory, address))
    visit.page.wait_for_url(f"{address}/")
    return visit


def where(page: "Page", slug: str) -> dict[str, float]:
    """Return the position of a page on the canvas of the graph."""
    result: dict[str, float] = page.evaluate(
        "slug => { const detail = { address: slug };"
        " document.querySelector('.drawing').dispatchEvent(new CustomEvent('where', { detail }));"
        " return detail.answer; }",
        slug,
    )
    return result
