"""MCP over HTTP: the official client, and what a carrier must refuse."""

import json
import os
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.mcp import test_inspector as inspector
from tests.mcp.pipes import HELLO, content_of, failure_of
from tests.mcp.test_client import failure
from tests.web.conftest import token
from tests.web.server_process import Process

from quaid.config import Settings
from quaid.errors import TooMany
from quaid.mcp.server import HANDSHAKE_VERSIONS, Connection
from quaid.operations import dispatch, index, service
from quaid.web import mcp as web_mcp, workers

Visit = Callable[[Client], Awaitable[None]]
MODES = ["legacy", "auto", "2026-07-28"]
STATELESS = "2026-07-28"


def visit(server: Process, shown: str, mode: str, what: Visit) -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {shown}"}
        with anyio.fail_after(120):
            async with _http(headers) as http:
                carrier = streamable_http_client(f"{server.address}/mcp", http_client=http)
                async with Client(carrier, mode=mode) as client:
                    await what(client)

    anyio.run(run)


def _http(headers: dict[str, str]) -> Any:
    from mcp.shared._httpx_utils import create_mcp_http_client

    return create_mcp_http_client(headers=headers)


async def record(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error
    return content_of(result.model_dump(by_alias=True, exclude_none=True))


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_reads_and_writes(server: Process, memory: Settings, mode: str) -> None:
    slug = f"people/zoe-{MODES.index(mode)}"

    async def work(client: Client) -> None:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == [name for name in index.TOOLS if dispatch.find_tool(name).core]
        made = await record(client, "memory_put", slug=slug, content="# Zoe\n\nA pilot.")
        assert made["version"] == 1
        conflict = await failure(client, "memory_put", slug=slug, content="# Z", expected_version=9)
        assert conflict["code"] == "version_conflict"
        assert conflict["current_version"] == 1
        missing = await failure(client, "memory_get", slug="people/nobody")
        assert missing["code"] == "page_not_found"
        resources = (await client.list_resources()).resources
        assert "memory://index" in [resource.uri for resource in resources]
        (content,) = (await client.read_resource(f"memory://pages/{slug}")).contents
        assert "A pilot." in content.text  # type: ignore[union-attr]
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["memory_briefing", "memory_ingest_meeting"]

    visit(server, service.owner_token(memory), mode, work)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_the_official_client_speaks_each_older_revision(
    server: Process, memory: Settings, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", version)

    async def work(client: Client) -> None:
        assert client.protocol_version == version
        assert (await record(client, "memory_get", slug="people/alice"))["title"] == "Alice Berg"
        assert (await failure(client, "memory_get", slug="people/nobody"))["code"] == "page_not_found"
        assert (await client.list_resources()).resources

    visit(server, service.owner_token(memory), "legacy", work)


@pytest.mark.parametrize("mode", MODES)
def test_read_token_lists_and_calls_reading_tools(server: Process, memory: Settings, mode: str) -> None:
    shown = token(memory, f"agent-{MODES.index(mode)}", "read")

    async def look(client: Client) -> None:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == [
            n for n in index.TOOLS if dispatch.find_tool(n).core and dispatch.find_tool(n).scope == "read"
        ]
        assert (await record(client, "memory_get", slug="people/alice"))["title"] == "Alice Berg"
        refused = await failure(client, "memory_put", slug="people/eve", content="# Eve")
        assert refused["code"] == "not_allowed"
        assert "scope" in refused["message"]

    visit(server, shown, mode, look)


def test_client_without_a_token_is_refused(server: Process) -> None:
    async def nothing(_client: Client) -> None:
        raise AssertionError("came in")

    with pytest.raises(BaseException) as caught:  # noqa: PT011
        visit(server, "qd_wrong", "legacy", nothing)
    assert "came in" not in str(caught.value)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_progress_reaches_a_client_that_asked_for_it(server: Process, memory: Settings, mode: str) -> None:
    import mcp_types as types

    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async def watch(client: Client) -> None:
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri="memory://index"))
        await client.session.send_request(request, types.ReadResourceResult, progress_callback=note)

    visit(server, service.owner_token(memory), mode, watch)
    assert len(seen) == 1


@pytest.mark.skipif(
    not os.path.exists(os.path.join(inspector.FOLDER, "installed")),
    reason="the MCP Inspector is not installed; .ci/inspector installs it",
)
@pytest.mark.parametrize(
    "words", [["tools/list"], ["tools/call", "--tool-name", "memory_get", "--tool-arg", "slug=people/alice"]]
)
def test_inspector_over_http(server: Process, memory: Settings, words: list[str]) -> None:
    shown = f"Authorization: Bearer {service.owner_token(memory)}"
    done = subprocess.run(
        [
            *(inspector.NODE, inspector.INSPECTOR, "--cli", f"{server.address}/mcp", "--transport", "http"),
            *("--header", shown, "--method", *words),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "HOME": os.path.dirname(memory.db_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    payload = json.loads(done.stdout)
    assert payload.get("tools") or content_of(payload)["title"] == "Alice Berg"


# The carrier itself


def rpc(method: str, id: int = 1, /, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def begun(asked: TestClient, version: str = "2025-11-25") -> dict[str, str]:
    """The headers of a session that has shaken hands."""
    response = asked.post("/mcp", json=rpc("initialize", 1, **{**HELLO, "protocolVersion": version}))
    assert response.status_code == 200, response.text
    assert response.json()["result"]["protocolVersion"] == version
    headers = {"Mcp-Session-Id": response.headers["mcp-session-id"], "Mcp-Protocol-Version": version}
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert asked.post("/mcp", json=noted, headers=headers).status_code == 202
    return headers


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_session_lifecycle(reader: TestClient, version: str) -> None:
    session = begun(reader, version)
    call = rpc("tools/call", name="memory_get", arguments={"slug": "people/alice"})
    answered = reader.post("/mcp", json=call, headers=session)
    assert content_of(answered.json()["result"])["title"] == "Alice Berg"
    assert reader.delete("/mcp", headers=session).status_code == 204
    assert reader.post("/mcp", json=call, headers=session).status_code == 404
    assert reader.delete("/mcp", headers=session).status_code == 404


def test_a_session_belongs_to_the_token_that_began_it(reader: TestClient, writer: TestClient) -> None:
    session = begun(writer)
    assert reader.post("/mcp", json=rpc("ping"), headers=session).status_code == 404
    assert reader.delete("/mcp", headers=session).status_code == 404
    assert writer.post("/mcp", json=rpc("ping"), headers=session).status_code == 200


def test_get_is_refused(reader: TestClient) -> None:
    response = reader.get("/mcp", headers={"Accept": "text/event-stream"})
    assert response.status_code == 405
    assert response.headers["allow"] == "POST, DELETE"


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, -32700),
        (b"[]", {}, 400, -32600),
        (b'{"jsonrpc": "1.0"}', {}, 400, -32600),
        (json.dumps(rpc("tools/list")).encode(), {}, 400, -32600),
        (json.dumps(rpc("tools/list")).encode(), {"Mcp-Session-Id": "unknown"}, 404, -32600),
        (json.dumps(rpc("ping")).encode(), {"Mcp-Protocol-Version": "1999-01-01"}, 400, -32600),
        (json.dumps(rpc("ping")).encode(), {"Accept": "text/html"}, 406, -32600),
        (json.dumps(rpc("ping")).encode(), {"Content-Type": "text/plain"}, 415, -32600),
    ],
)
def test_invalid_request_is_refused(
    reader: TestClient, body: bytes, headers: dict[str, str], status: int, code: int
) -> None:
    response = reader.post("/mcp", content=body, headers={"Content-Type": "application/json", **headers})
    assert response.status_code == status
    assert response.json()["error"]["code"] == code


def test_batches_only_in_old_revisions(reader: TestClient) -> None:
    both = [rpc("ping", 1), {"jsonrpc": "2.0", "method": "notifications/x"}, rpc("ping", 2)]
    answers = reader.post("/mcp", json=both, headers=begun(reader, "2025-03-26")).json()
    assert [answer["id"] for answer in answers] == [1, 2]
    assert reader.post("/mcp", json=both, headers=begun(reader)).status_code == 400


def stateless(method: str, **params: Any) -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": STATELESS, f"{prefix}clientCapabilities": {}}
    return rpc(method, **params, _meta=meta)


def test_stateless_request_needs_no_session(reader: TestClient) -> None:
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "memory_get"}
    call = stateless("tools/call", name="memory_get", arguments={"slug": "people/alice"})
    answered = reader.post("/mcp", json=call, headers=headers)
    assert answered.status_code == 200
    assert content_of(answered.json()["result"])["title"] == "Alice Berg"
    assert "mcp-session-id" not in answered.headers


@pytest.mark.parametrize(
    "wrong",
    [
        {"Mcp-Protocol-Version": "2025-11-25"},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Name": "memory_put"},
        {"Mcp-Name": "=?base64?!!?="},
    ],
)
def test_headers_that_contradict_the_body_are_refused(reader: TestClient, wrong: dict[str, str]) -> None:
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "memory_get"}
    call = stateless("tools/call", name="memory_get", arguments={"slug": "people/alice"})
    response = reader.post("/mcp", json=call, headers={**headers, **wrong})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == web_mcp.HEADER_MISMATCH


def test_a_name_in_base64_is_read(reader: TestClient) -> None:
    import base64

    name = "=?base64?" + base64.b64encode(b"memory_stats").decode() + "?="
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": name}
    response = reader.post("/mcp", json=stateless("tools/call", name="memory_stats"), headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(("method", "status"), [("nowhere", 404), ("tools/call", 400), ("initialize", 404)])
def test_stateless_errors_have_an_http_status(reader: TestClient, method: str, status: int) -> None:
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": method}
    assert reader.post("/mcp", json=stateless(method), headers=headers).status_code == status


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
def test_call_with_a_full_queue_returns_a_tool_error(
    reader: TestClient, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    call = {"name": "memory_get", "arguments": {"slug": "people/alice"}}
    if revision == STATELESS:
        headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "memory_get"}
        asked = stateless("tools/call", **call)
    else:
        headers, asked = begun(reader, revision), rpc("tools/call", **call)
    monkeypatch.setattr(workers, "MAX_QUEUED", 0)
    response = reader.post("/mcp", json=asked, headers=headers)
    assert response.status_code == 200
    error = failure_of(response.json())
    assert error["code"] == "too_many"
    assert ("resultType" in response.json()["result"]) == (revision == STATELESS)


def pings(asked: TestClient, session: dict[str, str]) -> bool:
    return asked.post("/mcp", json=rpc("ping"), headers=session).status_code == 200


def test_session_limit_ends_the_oldest_of_the_token_with_most(
    app: Starlette, reader: TestClient, writer: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_mcp, "MAX_MCP_SESSIONS", 4)
    app.state.mcp_sessions = web_mcp.McpSessions()
    mine = begun(writer)
    flood = [begun(reader) for _ in range(9)]
    assert len(app.state.mcp_sessions) == 4
    assert pings(writer, mine)
    assert [pings(reader, item) for item in flood] == [False] * 6 + [True] * 3


def test_session_limit_spares_busy_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_mcp, "MAX_MCP_SESSIONS", 2)
    sessions = web_mcp.McpSessions()
    busy, idle = (sessions.begin(Connection("core"), "one") for _ in range(2))
    sessions._open[busy].running[(int, 1)] = None  # type: ignore[assignment]
    third = sessions.begin(Connection("core"), "one")
    assert sessions.of(idle, "one") is None
    sessions._open[third].running[(int, 1)] = None  # type: ignore[assignment]
    with pytest.raises(TooMany):
        sessions.begin(Connection("core"), "two")
    sessions._open[busy].running.clear()
    assert sessions.begin(Connection("core"), "two")


def test_idle_session_expires(app: Starlette, reader: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    app.state.mcp_sessions = web_mcp.McpSessions()
    old = begun(reader)
    monkeypatch.setattr(web_mcp, "IDLE_SECONDS", -1.0)
    assert not pings(reader, old)
    assert reader.delete("/mcp", headers=old).status_code == 404
    assert reader.post("/mcp", json=rpc("initialize", 1, **HELLO)).status_code == 200
    assert len(app.state.mcp_sessions) == 1


def test_cancelled_call_is_stopped(server: Process) -> None:
    """A session gives up a call of its own that waits for the writer's lock."""
    import threading

    with server.client() as asked:
        hello = asked.post("/mcp", json=rpc("initialize", 1, **HELLO))
        session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]}
        words = " ".join(f"word{number}" for number in range(300_000))
        put = rpc("tools/call", 7, name="memory_put", arguments={"slug": "concepts/long", "content": words})
        answers: list[httpx.Response] = []
        thread = threading.Thread(
            target=lambda: answers.append(asked.post("/mcp", json=put, headers=session))
        )
        thread.start()
        with server.client() as other:
            while thread.is_alive():
                cancel = {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": {"requestId": 7},
                }
                assert other.post("/mcp", json=cancel, headers=session).status_code == 202
        thread.join()
        assert answers[0].status_code == 200
        assert asked.post("/mcp", json=rpc("ping", 8), headers=session).json()["result"] == {}
