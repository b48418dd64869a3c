"""The official SDK's OAuth client and MCP's conformance suite against a real server, with a real browser."""

import asyncio
import json
import os
import re
import subprocess
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl
from tests.web.conftest import filled, settings_in
from tests.web.dashboard import CHROMIUM, FLAGS, NEEDS_BROWSER, call
from tests.web.server_process import PATIENCE, Process
from tests.web.test_conformance import FOLDER, NODE, SUITE

from quaid.config import Settings
from quaid.operations import service

pytestmark = NEEDS_BROWSER


class Callback:
    """The address of a program on this machine to which the browser returns."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []  # address, and what the browser told about the page before
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/callback"):
                    outer.seen.append((self.path, self.headers.get("Referer", "")))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"You may close this window.")

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self._server.server_port}/callback"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def listening() -> Iterator[Callback]:
    callback = Callback()
    try:
        yield callback
    finally:
        callback.close()


class Storage:
    """What a client keeps."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def approve(
    settings: Settings, port: int, url: str, answer: str = "Allow", scope: str = "write"
) -> list[str]:
    """Open the address in a new browser, log in with a code, and answer. Return the addresses that it visited."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1_000)
        visited: list[str] = []
        problems: list[str] = []

        def note(line: Any) -> None:
            if line.type == "error" and f":{port}/" in line.location.get(
                "url", ""
            ):  # not the program's server
                problems.append(line.text)

        page.on("console", note)
        page.on("request", lambda request: visited.append(request.url))
        page.goto(url)
        page.get_by_role("heading", name="Log in to connect a program").wait_for()
        page.get_by_label("Type a code").fill(call(settings, "login code", port=port).code)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(re.compile(r"http://quaid-[a-z2-7]+\.localhost:\d+/oauth/authorize"))
        page.get_by_text("A program that calls itself").wait_for()
        if answer == "Allow":
            page.locator(f"input[name=allowed][value={scope}]").check()
        page.get_by_role("button", name=answer).click()
        page.wait_for_url(re.compile(r"/callback\?"))
        browser.close()
    assert [text for text in problems if "401" not in text] == []  # the status of the login page
    return visited


class OfficialClient:
    """The SDK's OAuth client, whose person uses a browser."""

    def __init__(self, server: Process, callback: Callback, answer: str = "Allow") -> None:
        self.server, self.callback, self.storage = server, callback, Storage()
        self.visited: list[list[str]] = []
        self.is_over = False
        self.auth = OAuthClientProvider(
            server_url=f"{server.address}/mcp",
            client_metadata=OAuthClientMetadata(
                client_name="Official client",
                redirect_uris=[AnyUrl(callback.uri)],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
            ),
            storage=self.storage,
            redirect_handler=self._open,
            callback_handler=self._wait,
        )
        self._answer = answer

    async def _open(self, url: str) -> None:
        if self.is_over:
            raise ValueError("a new login is needed")
        arguments = (self.server.settings, self.server.port, url, self._answer)
        self.visited.append(await asyncio.to_thread(approve, *arguments))

    async def _wait(self) -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(self.callback.seen[-1][0]).query)
        return AuthorizationCodeResult(
            code=query.get("code", [""])[0], state=query["state"][0], iss=query["iss"][0]
        )

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Connect and call a tool."""
        import httpx2

        async with httpx2.AsyncClient(auth=self.auth, timeout=120) as http:
            carrier = streamable_http_client(f"{self.server.address}/mcp", http_client=http)
            async with Client(carrier, mode="legacy") as client:
                return await client.call_tool(tool, arguments)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Process]:
    with Process(filled(settings_in(tmp_path)), "serve", "--http") as server:
        yield server


def test_official_client_connects_refreshes_and_is_revoked(served: Process) -> None:
    settings = served.settings
    with listening() as callback:
        program = OfficialClient(served, callback)
        first = asyncio.run(program.call("memory_get", slug="people/alice"))
        assert not first.is_error
        written = asyncio.run(
            program.call("memory_put", slug="people/from-far", content="# From far\n\nHello.\n")
        )
        assert not written.is_error, written
        assert len(program.visited) == 1
        assert callback.seen[0][1] == ""  # no Referer
        outside = [
            url
            for url in program.visited[0]
            if urlsplit(url).port not in (served.port, urlsplit(callback.uri).port)
        ]
        assert outside == []
    [listed] = call(settings, "token list").tokens
    assert (listed.name, listed.scope) == ("official-client", "write")
    assert listed.client == "Official client (127.0.0.1)"
    assert call(settings, "history", slug="people/from-far").versions[0].agent == "official-client"

    # The access token expires, on the server and as the client sees it.
    [state] = (Path(service.owner_token_path(settings)).parent / "grants").iterdir()
    content = json.loads(state.read_text())
    state.write_text(json.dumps({**content, "until": time.time() - 1}))
    program.auth.context.token_expiry_time = time.time() - 1
    before = program.storage.tokens
    assert not asyncio.run(program.call("memory_get", slug="people/from-far")).is_error
    assert len(program.visited) == 1
    assert before
    assert program.storage.tokens
    assert program.storage.tokens.access_token != before.access_token
    assert program.storage.tokens.refresh_token != before.refresh_token

    call(settings, "token revoke", name="official-client")
    with served.client(program.storage.tokens.access_token) as http:
        refused = http.post("/mcp", json={})
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    program.is_over = True
    with pytest.raises(BaseException) as failure:  # noqa: PT011 (an exception group of the SDK)
        asyncio.run(program.call("memory_get", slug="people/alice"))
    assert "a new login is needed" in "".join(traceback.format_exception(failure.value))
    served.process.terminate()
    output, errors = served.process.communicate(timeout=60)
    for secret in (program.storage.tokens.access_token, before.access_token, before.refresh_token):
        assert secret
        assert secret not in str(output) + str(errors)


def test_refusal_reaches_the_client(served: Process) -> None:
    with listening() as callback:
        program = OfficialClient(served, callback, answer="Refuse")
        with pytest.raises(BaseException) as failure:  # noqa: PT011 (an exception group of the SDK)
            asyncio.run(program.call("memory_get", slug="people/alice"))
        assert failure.value
        query = parse_qs(urlsplit(callback.seen[0][0]).query)
    assert query["error"] == ["access_denied"]
    assert program.storage.tokens is None
    assert call(served.settings, "token list").tokens == ()


@pytest.mark.skipif(
    not os.path.exists(os.path.join(FOLDER, "installed")),
    reason="MCP's conformance suite is not installed; .ci/conformance installs it",
)
def test_conformance_suite_for_authorization_servers_passes(served: Process, tmp_path: Path) -> None:
    import socket

    import httpx

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    registration = {"client_name": "Conformance", "redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
    client = httpx.post(f"{served.address}/oauth/register", json=registration).json()["client_id"]
    command = [NODE, SUITE, "authorization", "--url", served.address, "--client-id", client]
    command += [
        "--resource",
        f"{served.address}/mcp",
        "--port",
        str(port),
        "--output-dir",
        str(tmp_path / "out"),
    ]
    said = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
        assert suite.stdout
        for line in suite.stdout:
            said += line
            if "/oauth/authorize?" in line:
                approve(served.settings, served.port, line.strip())
    checks = [
        check for path in (tmp_path / "out").glob("**/checks.json") for check in json.loads(path.read_text())
    ]
    found = {check["id"]: check["status"] for check in checks}
    assert found == {
        "authorization-server-metadata": "SUCCESS",
        "authorization-server-metadata-cimd": "WARNING",  # it would need requests to other servers
        "authorization-code-grant": "SUCCESS",
    }, said
