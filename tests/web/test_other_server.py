"""A second server on this machine, visited by the browser that is logged in: what it learns, and what it can do."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.web.conftest import filled, settings_in
from tests.web.dashboard import NEEDS_BROWSER, call, opened, program_address

from quaid.config import Settings
from quaid.operations import service

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = NEEDS_BROWSER


class OtherServer(ThreadingHTTPServer):
    """Records every request head, and tries to plant a cookie for all names of this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), OtherHandler)
        self.heads: list[str] = []
        self.port = self.server_address[1]


class OtherHandler(BaseHTTPRequestHandler):
    server: OtherServer

    def do_GET(self) -> None:
        self.server.heads.append(f"{self.requestline}\n{self.headers}")
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "planted=1; Domain=localhost; Path=/")
        self.end_headers()
        self.wfile.write(b"<title>other</title>")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def other() -> Iterator[OtherServer]:
    with OtherServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, other: OtherServer) -> Settings:
    settings = filled(settings_in(tmp_path_factory.mktemp("other")))
    link = f"http://127.0.0.1:{other.port}/linked"
    call(settings, "put", slug="concepts/link", content=f"# Link\n\n[Elsewhere]({link})\n")
    return settings


def test_another_server_on_this_machine_cannot_open_the_memory(
    browser: "Browser", memory: Settings, address: str, other: OtherServer
) -> None:
    name = service.web_host_name(memory)
    visit = opened(browser, memory, address)
    page, context = visit.page, visit.page.context
    ours = context.cookies(address)
    assert [cookie["domain"] for cookie in ours] == [name]
    for host in ("127.0.0.1", "localhost", "other.localhost"):
        context.new_page().goto(f"http://{host}:{other.port}/typed")
    page.goto(f"{address}/page/concepts/link")
    page.click("text=Elsewhere")
    page.wait_for_url("**/linked")
    assert page.title() == "other"
    assert page.evaluate("[window.opener, document.referrer]") == [None, ""]
    heads = "".join(other.heads)
    assert heads.count("GET /typed") == 3
    assert heads.count("GET /linked") == 1
    for secret in (name, *(cookie["value"] for cookie in ours)):
        assert secret not in heads
    page.goto(f"{address}/page/concepts/link")
    assert "planted" not in page.evaluate("document.cookie")

    port = int(address.rpartition(":")[2])
    programs = program_address(address)
    for head in other.heads:
        lines = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
        received = {key: value for key, value in lines.items() if key in ("Cookie", "Origin", "Referer")}
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", lines["Host"]):
            answer = httpx.get(f"{programs}/api/memory/list", headers={**received, "Host": host})
            assert answer.status_code in (401, 421)
    context.close()


def test_a_visit_without_a_login_shows_the_notice_and_not_the_name(
    browser: "Browser", memory: Settings, address: str
) -> None:
    page = browser.new_page()
    answer = page.goto(program_address(address) + "/settings")
    assert answer
    assert answer.status == 401
    assert "quaid web" in page.locator("main").inner_text()
    assert service.web_host_name(memory).partition(".")[0] not in page.content()
    page.close()


def test_login_link_at_127_0_0_1_leads_to_the_own_host(
    browser: "Browser", memory: Settings, address: str
) -> None:
    import time

    port = int(address.rpartition(":")[2])
    page = browser.new_page()
    code = service.login_code(memory, port, time.time())
    page.goto(f"{program_address(address)}/login?code={code}&next=/timeline")
    page.wait_for_url(f"{address}/timeline")
    assert page.locator("nav").first.is_visible()
    assert page.context.cookies(program_address(address)) == []
    page.close()


def test_event_stream_ends_with_the_session(memory: Settings, address: str) -> None:
    import time

    host = address.removeprefix("http://")
    secret = service.begin_session(memory, host, "A browser", time.time())
    headers = {"Host": host, "Cookie": f"quaid-{host.rpartition(':')[2]}={secret}"}
    with httpx.stream("GET", f"{program_address(address)}/api/events", headers=headers, timeout=20) as events:
        assert events.status_code == 200
        lines = events.iter_lines()
        assert next(lines).startswith("retry")
        call(memory, "login end", all=True)
        began = time.monotonic()
        list(lines)
        assert time.monotonic() - began < 10
