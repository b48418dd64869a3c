"""A small memory, the app on it, and a server of its own where sockets matter."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests import commands
from tests.mcp.conftest import fill
from tests.web.dashboard import (
    CHROMIUM,
    FLAGS,
    Visit,
    Visitor,
    browser_address,
    lifelike,
    opened,
    served,
    visiting,
)
from tests.web.server_process import Process

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch, service
from quaid.web import server as web_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

ADDRESS = "http://127.0.0.1:4321"
Enter = Callable[..., TestClient]


def settings_in(folder: Path) -> Settings:
    return Settings(
        db_path=str(folder / "memory.db"),
        home=str(folder / "home"),
        cwd=str(folder),
        environ={"QUAID_BACKGROUND_EMBEDDING": "off", **commands.SHARED_MODELS},
    )


def filled(settings: Settings) -> Settings:
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        fill(brain)
        dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
        dispatch.call(
            brain,
            dispatch.find_tool("remember"),
            {"content": "Sarah Chen's phone number is 555-1234"},
            "write",
        )
    return settings


def token(settings: Settings, name: str, scope: str) -> str:
    with Brain(settings) as brain:
        made = dispatch.call(
            brain, dispatch.find_command("token create"), {"name": name, "scope": scope}, "owner"
        )
    return str(made.token)


def client(app: Starlette, bearer: str = "") -> TestClient:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    return TestClient(app, base_url=ADDRESS, headers=headers)


def own_client(app: Starlette) -> TestClient:
    """A client that uses the name of the dashboard as a browser does."""
    return TestClient(app, base_url=browser_address(app.state.settings, web_app.DEFAULT_PORT))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A memory with two pages and a notebook, shared by the tests of a module."""
    return filled(settings_in(tmp_path_factory.mktemp("web")))


@pytest.fixture(scope="module")
def app(memory: Settings) -> Iterator[Starlette]:
    """The app on it with the debug endpoints, running."""
    built = web_app.build_app(memory, debug=True)
    with client(built):
        yield built


@pytest.fixture(scope="module")
def owner(app: Starlette, memory: Settings) -> TestClient:
    return client(app, service.owner_token(memory))


@pytest.fixture(scope="module")
def reader(app: Starlette, memory: Settings) -> TestClient:
    return client(app, token(memory, "reader", "read"))


@pytest.fixture(scope="module")
def writer(app: Starlette, memory: Settings) -> TestClient:
    return client(app, token(memory, "writer", "write"))


@pytest.fixture(scope="module")
def server(memory: Settings) -> Iterator[Process]:
    """`quaid serve --http --debug` on the same memory."""
    with Process(memory, "serve", "--http", "--debug") as process:
        yield process


@pytest.fixture
def mine(tmp_path: object) -> Settings:
    """A lifelike memory of a test's own."""
    return lifelike(str(tmp_path))


@pytest.fixture
def visitor(mine: Settings) -> Iterator[Visitor]:
    """Somebody who looks at it through the pages."""
    with visiting(mine) as client:
        yield client


@pytest.fixture(scope="module")
def address(memory: Settings) -> Iterator[str]:
    """The dashboard over the memory of a module, on a port."""
    with served(memory) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def login_context(browser: "Browser", memory: Settings, address: str) -> Iterator["BrowserContext"]:
    """A window of the browser that is logged in, for the tabs of a module."""
    context = opened(browser, memory, address).page.context
    yield context
    context.close()


@pytest.fixture
def visit(login_context: "BrowserContext", address: str) -> Iterator[Visit]:
    """A new tab in it."""
    tab = Visit(login_context.new_page(), address)
    yield tab
    tab.page.evaluate("localStorage.clear()")
    tab.page.close()
    assert tab.problems == []
