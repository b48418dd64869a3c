"""Every route, with no token, a wrong one, one for reading, one for writing, and the owner's."""

import re
import time

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.mcp.pipes import failure_of
from tests.web.conftest import client, own_client
from tests.web.test_mcp import STATELESS, stateless

from quaid.config import Settings
from quaid.errors import NotAllowed, UnknownTool
from quaid.operations import service
from quaid.operations.registry import SCOPES, Operation, all_operations
from quaid.web import api, server as web_app
from quaid.web.auth import CLIP_PATH, ScopedRoute

LEVELS = ("public", *SCOPES)
STREAMS = ("/api/events",)  # an answer without an end; tests of their own


def asked(app: Starlette) -> list[tuple[str, str, str]]:
    """Method, address and need of every route."""
    results = []
    for route in app.routes:
        assert isinstance(route, ScopedRoute)
        address = re.sub(r"\{[^}]*\}", "x", route.path)
        results += [(method, address, scope) for method, scope in sorted(route.scopes.items())]
    return results


def test_every_route_declares_its_scope(app: Starlette) -> None:
    for route in app.routes:
        assert isinstance(route, ScopedRoute), route
        assert (route.methods or set()) - {"HEAD"} == set(route.scopes), route
        assert set(route.scopes.values()) <= set(LEVELS), route


def test_only_public_routes_answer_without_a_token(app: Starlette) -> None:
    nobody = client(app)
    for method, address, need in asked(app):
        response = nobody.request(method, address)
        if need == "public":
            # 401: /login without a code. 400: a registration or a token request without content.
            assert response.status_code in (200, 400, 401, 404), address
        else:
            assert response.status_code == 401, (method, address)


def test_wrong_token_is_refused_everywhere(app: Starlette) -> None:
    stranger = client(app, "qd_" + "A" * 43)
    for method, address, _ in asked(app):
        assert stranger.request(method, address).status_code == 401, (method, address)


@pytest.mark.parametrize("scope", ["read", "write"])
def test_token_opens_routes_of_its_scope(
    app: Starlette, reader: TestClient, writer: TestClient, scope: str
) -> None:
    who = {"read": reader, "write": writer}[scope]
    for method, address, need in asked(app):
        if address in STREAMS or need == "public":
            continue
        allowed = LEVELS.index(need) <= LEVELS.index(scope)
        response = who.request(method, address)
        if allowed:
            assert response.status_code not in (401, 403), (method, address, response.text)
        else:
            assert response.status_code == 403, (method, address)


def test_a_cookie_without_its_csrf_token_changes_nothing(app: Starlette, memory: Settings) -> None:
    browser = own_client(app)
    login = service.login_code(memory, 4321, time.time())
    assert browser.post("/login", data={"code": login}).status_code == 200
    assert browser.get("/settings").status_code == 200
    tried = 0
    for method, address, need in asked(app):
        if method != "GET" and need != "public" and address != CLIP_PATH:  # it ignores cookies
            for token in ("", "0" * 64):
                answer = browser.request(method, address, headers={"X-CSRF-Token": token})
                assert answer.status_code == 403, (method, address)
                assert "not opened in this session" in answer.text, (method, address)
                tried += 1
    assert tried > 100


def test_a_read_only_server_refuses_the_owner_every_change(memory: Settings) -> None:
    app = web_app.build_app(memory, debug=True, readonly=True)
    tried = 0
    with client(app, service.owner_token(memory)) as owner:
        for method, address, need in asked(app):
            if need in ("write", "owner"):
                assert owner.request(method, address).status_code == 403, (method, address)
                tried += 1
    assert tried > 60


def test_every_route_refuses_foreign_hosts_and_origins(app: Starlette, owner: TestClient) -> None:
    tried = 0
    for method, address, _ in asked(app):
        if address == CLIP_PATH:
            continue  # other sites may call it: test_clip.py
        for host, origin, status in (
            ("evil.example:4321", "", 421),
            ("127.0.0.1:8000", "http://127.0.0.1:4321", 421),
            ("127.0.0.1:4321", "http://evil.example", 403),
            ("127.0.0.1:4321", "http://127.0.0.1:8000", 403),
        ):
            headers = {"Host": host, **({"Origin": origin} if origin else {})}
            assert owner.request(method, address, headers=headers).status_code == status, (method, address)
            tried += 1
    assert tried >= 500


def called(who: TestClient, tool: str) -> tuple[int, int | str | None]:
    """Status and code of a tool that is called over MCP without arguments: of the protocol, or the tool's own."""
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    response = who.post("/mcp", json=stateless("tools/call", name=tool), headers=headers)
    answer = response.json()
    if answer.get("result", {}).get("isError"):
        return response.status_code, str(failure_of(answer)["code"])
    return response.status_code, answer.get("error", {}).get("code")


def operations_with_own_tool() -> list[Operation]:
    """All operations, without those of the owner that an agent proposes with a tool of the same name."""
    tools = {operation.tool for operation in all_operations() if operation.is_tool}
    return [item for item in all_operations() if item.is_tool or item.tool not in tools]


def test_every_tool_over_mcp_with_each_kind_of_token(
    app: Starlette, reader: TestClient, writer: TestClient
) -> None:
    nobody, stranger = client(app), client(app, "qd_" + "A" * 43)
    refused = NotAllowed.code
    for operation in operations_with_own_tool():
        assert called(nobody, operation.tool)[0] == 401
        assert called(stranger, operation.tool)[0] == 401
        if not operation.is_tool:  # what only the person at this machine may do is not there for anybody
            assert called(writer, operation.tool) == (400, UnknownTool.rpc_code), operation.tool
            continue
        assert (called(reader, operation.tool)[1] == refused) == (operation.scope != "read"), operation.tool
        assert called(writer, operation.tool)[1] != refused, operation.tool


def test_an_api_route_needs_what_its_tool_needs() -> None:
    scopes = {route.path: set(route.scopes.values()) for route in api.tool_routes()}
    for operation in operations_with_own_tool():
        if operation.is_tool:
            assert scopes[api.tool_path(operation.tool)] == {operation.scope}
        else:
            assert api.tool_path(operation.tool) not in scopes


def test_a_token_that_was_revoked_is_refused_from_the_next_request_on(app: Starlette) -> None:
    from tests.web.conftest import token

    from quaid.app import Brain
    from quaid.operations import dispatch

    settings = app.state.settings
    shown = token(settings, "phone", "read")
    phone = client(app, shown)
    assert phone.get("/api/memory/stats").status_code == 200
    with Brain(settings) as brain:
        dispatch.call(brain, dispatch.find_command("token revoke"), {"name": "phone"}, "owner")
    assert phone.get("/api/memory/stats").status_code == 401


def test_unknown_address_needs_a_login(app: Starlette, reader: TestClient) -> None:
    assert client(app).get("/api/nowhere").status_code == 401
    response = reader.get("/api/nowhere")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "no_such_address"
    assert reader.put("/api/memory/get").status_code == 405
