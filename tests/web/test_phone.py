"""A phone in the same network: `quaid web --lan` on a second address of this machine."""

import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.web.conftest import filled, settings_in
from tests.web.dashboard import NEEDS_BROWSER, call
from tests.web.server_process import PATIENCE, Process
from tests.web.test_auth import VISIT
from tests.web.test_server import run

from quaid.config import Settings
from quaid.errors import InvalidArgument
from quaid.http_server import HANDSHAKE_TIMEOUT, MAX_HANDSHAKES, ServerAddress
from quaid.operations import service
from quaid.web.auth import BrowserSessions

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LAN = "127.0.0.2"
PHONE = {"width": 390, "height": 800}


class LanProcess(Process):
    """The server, and what it printed for the phone."""

    def __init__(self, settings: Settings, *words: str) -> None:
        super().__init__(settings, "web", "--no-open", "--lan", "--lan-address", LAN, *words)
        assert self.process.stdout
        self.printed = ""
        while "fingerprint must be" not in self.printed and "WARNING" not in self.printed:
            self.printed += self.process.stdout.readline()
        self.printed += self.process.stdout.readline() if "fingerprint" in self.printed else ""
        self.lan = f"{'http' if words else 'https'}://{LAN}:{self.port}"
        link = re.search(rf"{self.lan}/login\?code=\S+", self.printed)
        code = re.search(r"the code (\d{4} \d{4})$", self.printed, re.MULTILINE)
        assert link
        assert code
        self.link, self.code = link[0], code[1]

    def trusted(self) -> ssl.SSLContext:
        """A client that trusts exactly the certificate of this server."""
        folder = os.path.dirname(service.owner_token_path(self.settings))
        return ssl.create_default_context(cafile=os.path.join(folder, "lan-cert.pem"))


@pytest.fixture(scope="module")
def lan(memory: Settings) -> Iterator[LanProcess]:
    with LanProcess(memory) as process:
        yield process


def test_certificate_is_made_once_and_its_fingerprint_shown(lan: LanProcess, memory: Settings) -> None:
    folder = Path(service.owner_token_path(memory)).parent
    cert, key = folder / "lan-cert.pem", folder / "lan-key.pem"
    assert [path.stat().st_mode & 0o777 for path in (cert, key)] == [0o600, 0o600]
    shown = subprocess.run(
        ["openssl", "x509", "-in", str(cert), "-noout", "-fingerprint", "-sha256"],
        capture_output=True,
        text=True,
    )
    if shown.returncode == 0:
        assert shown.stdout.strip().partition("=")[2] in lan.printed
    before = cert.read_bytes()
    assert service.certificate_files(memory, "192.0.2.9", time.time()) == (str(cert), str(key))
    assert cert.read_bytes() == before
    with httpx.Client(verify=lan.trusted(), timeout=PATIENCE) as phone:
        assert phone.get(lan.lan + "/health").status_code == 200


def test_host_must_be_the_address_that_received_the_request(lan: LanProcess) -> None:
    own = f"{service.web_host_name(lan.settings)}:{lan.port}"
    with httpx.Client(verify=lan.trusted(), timeout=PATIENCE) as phone:
        for host in (f"127.0.0.1:{lan.port}", f"localhost:{lan.port}", own, "evil.example", f"{LAN}:1", LAN):
            assert phone.get(lan.lan + "/health", headers={"Host": host}).status_code == 421
        token = {"Authorization": f"Bearer {service.owner_token(lan.settings)}"}
        assert phone.get(lan.lan + "/api/memory/stats").status_code == 401
        assert phone.get(lan.lan + "/api/memory/stats", headers=token).status_code == 200
        evil = {**token, "Origin": f"http://{LAN}:{lan.port}"}
        assert phone.get(lan.lan + "/api/memory/stats", headers=evil).status_code == 403
    named = {"Host": f"{LAN}:{lan.port}"}
    assert httpx.get(lan.address + "/health", headers=named, timeout=PATIENCE).status_code == 421
    with pytest.raises(httpx.TransportError):
        httpx.get(lan.lan.replace("https", "http") + "/health", timeout=PATIENCE)


def test_wrong_used_and_expired_codes_are_refused(lan: LanProcess) -> None:
    def enter(code: str) -> int:
        with httpx.Client(verify=lan.trusted(), timeout=PATIENCE) as phone:
            answer = phone.post(lan.lan + "/login", data={"code": code})
            assert ("set-cookie" in answer.headers) == (answer.status_code == 200)
            return answer.status_code

    for age, tries, status in ((0, 0, 200), (301, 0, 401), (0, 4, 200), (0, 5, 401)):
        code = service.short_login_code(lan.settings, lan.port, time.time() - age)
        for _ in range(tries):
            assert enter(f"{(int(code) + 1) % 10**8:08}") == 401
        assert enter(code) == status
        assert enter(code) == 401
    assert enter("") == 401


def test_cookie_of_the_phone_counts_only_at_its_address(lan: LanProcess) -> None:
    code = service.short_login_code(lan.settings, lan.port, time.time())
    with httpx.Client(verify=lan.trusted(), timeout=PATIENCE) as phone:
        cookie = phone.post(lan.lan + "/login", data={"code": code}).headers["set-cookie"]
        assert cookie.startswith("__Host-quaid=")
        assert "Secure" in cookie
        assert phone.get(lan.lan + "/api/memory/stats").status_code == 200
    secret = cookie.partition(";")[0].partition("=")[2]
    own = f"{service.web_host_name(lan.settings)}:{lan.port}"
    for host in (own, f"127.0.0.1:{lan.port}"):
        for name in ("__Host-quaid", f"quaid-{lan.port}"):
            headers = {"Host": host, "Cookie": f"{name}={secret}"}
            stats = lan.address + "/api/memory/stats"
            assert httpx.get(stats, headers=headers, timeout=PATIENCE).status_code == 401


def test_silent_connections_are_closed_and_keep_nobody_out(lan: LanProcess) -> None:
    """More connections than may be unfinished: the oldest are replaced, and the others closed after ten seconds."""
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection((LAN, lan.port), timeout=PATIENCE))
            for _ in range(MAX_HANDSHAKES + 30)
        ]
        began = time.monotonic()
        with httpx.Client(verify=lan.trusted(), timeout=PATIENCE) as phone:
            assert phone.get(lan.lan + "/health").status_code == 200

        def is_open(connection: socket.socket) -> bool:
            connection.setblocking(False)
            try:
                return bool(connection.recv(1))
            except BlockingIOError:
                return True
            except OSError:
                return False

        states = [is_open(connection) for connection in silent]
        closed = states.index(True)
        assert 30 <= closed <= 31, "the oldest were replaced, one more by the phone"
        assert all(states[closed:])
        silent[-1].settimeout(PATIENCE)
        with suppress(ConnectionError):
            assert silent[-1].recv(1) == b""
        assert time.monotonic() - began > HANDSHAKE_TIMEOUT - 1
        assert not any(map(is_open, silent))


def test_a_request_sent_with_the_end_of_the_handshake_is_answered(lan: LanProcess) -> None:
    """A client of TLS 1.3 may send its request in one packet with the last message of the handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = lan.trusted().wrap_bio(incoming, outgoing, server_hostname=LAN)
    with socket.create_connection((LAN, lan.port), timeout=PATIENCE) as connection:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        client.write(f"GET /health HTTP/1.1\r\nHost: {LAN}:{lan.port}\r\nConnection: close\r\n\r\n".encode())
        connection.sendall(outgoing.read())
        answer = b""
        while not answer:
            received = connection.recv(65_536)
            assert received, "closed without an answer"
            incoming.write(received)
            try:
                answer = client.read(65_536)
            except ssl.SSLWantReadError:  # session tickets come before the answer
                continue
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_without_tls_there_is_a_warning(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    with LanProcess(settings, "--insecure") as lan:
        assert "without encryption" in lan.printed
        with httpx.Client(timeout=PATIENCE, headers=VISIT) as phone:
            assert phone.get(lan.link).status_code == 200
            assert (
                phone.get(lan.lan + "/api/memory/stats", headers={"Sec-Fetch-Mode": "cors"}).status_code
                == 200
            )
            assert phone.get(lan.link).status_code == 401
        taken = run(settings, "web", "--no-open", "--lan", "--lan-address", LAN, "--port", str(lan.port))
        assert taken.returncode == 2
        assert "needs a server of its own" in taken.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--insecure",),
        ("--lan-address", LAN),
        ("--lan", "--lan-address", "0.0.0.0"),
        ("--lan", "--lan-address", "laptop.example"),
    ],
)
def test_options_of_lan_are_checked(memory: Settings, words: tuple[str, ...]) -> None:
    done = run(memory, "web", "--no-open", "--port", "0", *words)
    assert done.returncode == 2
    assert "--lan" in done.stderr


def test_certificate_needs_openssl_or_cryptography(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    settings = Settings(str(tmp_path / "memory.db"), str(tmp_path), str(tmp_path), environ={"PATH": ""})
    cert, key = service.certificate_files(settings, "192.0.2.7", time.time())  # by the package
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    assert re.fullmatch("([0-9A-F]{2}:){31}[0-9A-F]{2}", service.certificate_fingerprint(cert))
    os.utime(cert, (0, 0))
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InvalidArgument, match="openssl"):
        service.certificate_files(settings, "192.0.2.7", time.time())


def test_page_for_phones_says_how_to_start_the_server(memory: Settings) -> None:
    from tests.web.dashboard import visiting

    with visiting(memory) as visitor:
        page = visitor.get("/phone").text
        assert "quaid web --lan" in page
        assert "<svg width" not in page


@NEEDS_BROWSER
def test_phone_logs_in_is_listed_and_logged_out(browser: "Browser", lan: LanProcess) -> None:
    phone = browser.new_context(viewport=PHONE, ignore_https_errors=True, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    page = phone.new_page()
    page.goto(lan.link)
    page.wait_for_url(lan.lan + "/")
    cookies = phone.cookies()
    assert [(cookie["name"], cookie["secure"]) for cookie in cookies] == [("__Host-quaid", True)]

    page.goto(lan.lan + "/phone")
    picture = page.locator(".qr svg").bounding_box()
    assert picture
    assert picture["width"] >= 200
    code = page.locator(".code-to-type").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

    second = browser.new_context(viewport=PHONE, ignore_https_errors=True)  # type: ignore[arg-type]
    other = second.new_page()
    other.goto(lan.lan + "/timeline")
    assert other.locator("h1").inner_text() == "Log in"
    other.fill("#code", code)
    other.click("button")
    other.wait_for_url(lan.lan + "/timeline")

    page.goto(lan.lan + "/settings")
    logins = page.locator("#logins")
    assert logins.locator(".badge:text-is('this one')").count() == 1
    others = logins.locator("button[name=id]")
    for _ in range(others.count()):
        others.first.click()
        assert "logged out" in page.locator(".flash").inner_text()
    assert logins.locator("li").count() == 1
    answer = other.reload()
    assert answer
    assert answer.status == 401
    assert other.input_value("#code") == ""
    assert len(call(lan.settings, "login list").value) == 1
    other.fill("#code", call(lan.settings, "login code", port=lan.port).code)
    other.click("button")
    other.wait_for_url(lan.lan + "/timeline")
    page.goto(lan.lan + "/settings")
    page.click("button:text-is('Log out everywhere')")
    assert page.locator("h1").inner_text() == "You are logged out on every device"
    assert call(lan.settings, "login list").value == ()
    for context in (phone, second):
        context.close()


def test_lan_address_is_no_loopback_name() -> None:
    address = ServerAddress.local(4321)
    lan = ServerAddress.named(4321, ["192.0.2.7:4321"])
    asgi_scope = {"server": ("192.0.2.7", 4321)}
    sessions = BrowserSessions(Settings("x", "x", "x"), address, "x.localhost", lan)
    assert sessions.accepted_hosts(asgi_scope) == {"192.0.2.7:4321"}
    assert "192.0.2.7:4321" not in sessions.accepted_hosts({"server": ("127.0.0.1", 4321)})
    assert "192.0.2.7:4321" not in sessions.accepted_hosts({"server": None})
