"""Programs that log in over OAuth: discovery, registration, approval, tokens, and what attackers try."""

import base64
import hashlib
import html
import json
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, client, filled, own_client, settings_in, token
from tests.web.dashboard import call
from tests.web.test_auth import VISIT

from quaid.config import Settings
from quaid.http_server import ServerAddress
from quaid.operations import service
from quaid.web import oauth, server as web_app

LOOPBACK = "http://127.0.0.1:33418/callback"
HOSTED = "https://assistant.example/callback?team=7"
RESOURCE = f"{ADDRESS}/mcp"
PUBLIC = "https://memory.example.org"


class Person(NamedTuple):
    """The owner in a browser that is logged in, and a program without credentials."""

    settings: Settings
    browser: TestClient
    program: TestClient
    csrf: str


def entered(settings: Settings, app: Any, browser: TestClient, program: TestClient) -> Person:
    code = service.login_code(settings, app.state.address.port, time.time())
    assert browser.post("/login", data={"code": code}).status_code == 200
    page = browser.get("/").text
    return Person(
        settings, browser, program, page.partition('<meta name="csrf" content="')[2].partition('"')[0]
    )


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    settings = filled(settings_in(tmp_path))
    app = web_app.build_app(settings)
    with client(app) as program:
        yield entered(settings, app, own_client(app), program)


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Person]:
    """A server behind a proxy."""
    (tmp_path / "hosted").mkdir()
    settings = filled(settings_in(tmp_path / "hosted"))
    app = web_app.build_app(settings, address=ServerAddress.named(4321, ["memory.example.org"]))
    with TestClient(app, base_url=PUBLIC) as program:
        yield entered(settings, app, TestClient(app, base_url=PUBLIC), program)


def registered(person: Person, *uris: str, name: Any = "Claude Code") -> str:
    response = person.program.post(
        "/oauth/register", json={"client_name": name, "redirect_uris": uris or [LOOPBACK]}
    )
    assert response.status_code == 201, response.text
    return str(response.json()["client_id"])


VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


def asked(client_id: str, /, **changes: str | None) -> dict[str, str]:
    """The request that a program sends the browser with. None leaves a value out."""
    values = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": LOOPBACK,
        "state": "s t/ä&x=1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "scope": "read write",
        "resource": RESOURCE,
        "issuer": ADDRESS,
        **changes,
    }
    return {name: value for name, value in values.items() if value is not None}


def answered(person: Person, values: dict[str, str], **chosen: str) -> Any:
    """The response to the form that the owner submits."""
    form = {
        "csrf_token": person.csrf,
        "answer": "allow",
        "allowed": "read",
        "period": "90d",
        "name": "claude",
    }
    return person.browser.post("/oauth/authorize", data={**values, **form, **chosen})


def sent_to(response: Any) -> str:
    """The address to which a page sends the browser."""
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]*)"', response.text)
    assert found, response.text
    return html.unescape(found[1])


def code_of(response: Any) -> str:
    return parse_qs(urlsplit(sent_to(response)).query)["code"][0]


def exchanged(person: Person, client_id: str, code: str, /, **changes: str) -> Any:
    form = {"grant_type": "authorization_code", "code": code, "client_id": client_id}
    form |= {"redirect_uri": LOOPBACK, "code_verifier": VERIFIER, "resource": RESOURCE, **changes}
    return person.program.post("/oauth/token", data=form)


def connected(person: Person, **chosen: str) -> tuple[str, dict[str, Any]]:
    """A program with access: its id and its tokens."""
    id = registered(person)
    response = exchanged(person, id, code_of(answered(person, asked(id), **chosen)))
    assert response.status_code == 200, response.text
    return id, response.json()


def refreshed(person: Person, id: str, refresh: str, **changes: str) -> Any:
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": id, **changes}
    return person.program.post("/oauth/token", data=form)


def ping(person: Person, access: str, path: str = "/mcp") -> int:
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    body["params"] |= {"capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}  # type: ignore[operator]
    headers = {"Authorization": f"Bearer {access}", "Accept": "application/json, text/event-stream"}
    return person.program.post(path, json=body, headers=headers).status_code


def test_401_of_mcp_leads_to_the_metadata(person: Person) -> None:
    response = person.program.post("/mcp", json={})
    assert response.status_code == 401
    where = f"{ADDRESS}/.well-known/oauth-protected-resource/mcp"
    assert response.headers["www-authenticate"] == f'Bearer resource_metadata="{where}"'
    resource = person.program.get(urlsplit(where).path).json()
    assert resource["resource"] == RESOURCE
    assert resource["authorization_servers"] == [ADDRESS]
    server = person.program.get("/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == ADDRESS
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"] is True
    wrong = person.program.post("/mcp", json={}, headers={"Authorization": "Bearer qd_wrong"})
    assert wrong.headers["www-authenticate"].startswith('Bearer error="invalid_token", resource_metadata=')


def test_issuer_is_the_address_that_the_client_used(person: Person, hosted: Person) -> None:
    path = "/.well-known/oauth-authorization-server"
    told = person.program.get(path, headers={"Host": "localhost:4321"}).json()
    assert told["issuer"] == "http://localhost:4321"
    assert told["token_endpoint"] == "http://localhost:4321/oauth/token"
    assert person.program.get(path, headers={"Host": "evil.example"}).status_code == 421
    assert hosted.program.get(path).json()["issuer"] == PUBLIC
    name = service.web_host_name(person.settings)
    for public in (path, "/.well-known/oauth-protected-resource", "/oauth/authorize?client_id=x"):
        assert name not in person.program.get(public).text


def test_whole_flow_gives_access_to_mcp_only(person: Person) -> None:
    id, tokens = connected(person)
    assert (tokens["token_type"], tokens["scope"], tokens["expires_in"]) == ("Bearer", "read", 3600)
    assert ping(person, tokens["access_token"]) == 200
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    refused = person.program.get("/api/memory/stats", headers=bearer)
    assert refused.status_code == 401
    assert f"only for {RESOURCE}" in refused.text
    other = {**bearer, "Host": "localhost:4321"}
    assert person.program.post("/mcp", json={}, headers=other).status_code == 401
    assert person.program.get("/settings", headers=bearer).status_code == 401
    assert ping(person, tokens["refresh_token"]) == 401
    assert id not in json.dumps(tokens)


def test_answer_carries_state_and_issuer(person: Person) -> None:
    id = registered(person, LOOPBACK, HOSTED)
    there = sent_to(answered(person, asked(id, redirect_uri=HOSTED)))
    assert there.startswith(HOSTED + "&code=qc_")
    fields = dict(parse_qsl(urlsplit(there).query))
    assert (fields["team"], fields["state"], fields["iss"]) == ("7", "s t/ä&x=1", ADDRESS)
    refused = sent_to(answered(person, asked(id), answer="refuse"))
    assert dict(parse_qsl(urlsplit(refused).query))["error"] == "access_denied"
    assert "code" not in parse_qs(urlsplit(refused).query)
    assert call(person.settings, "token list").tokens == ()


def test_grant_is_a_token_of_the_list_and_ends_there(person: Person) -> None:
    id, tokens = connected(person, name="claude", allowed="write", period="7d")
    [listed] = call(person.settings, "token list").tokens
    assert (listed.name, listed.scope, listed.client) == ("claude", "write", "Claude Code (127.0.0.1)")
    assert listed.last_used_at is None
    assert 6.9 < (_seconds(listed.expires_at) - time.time()) / 86_400 <= 7
    assert ping(person, tokens["access_token"]) == 200
    assert call(person.settings, "token list").tokens[0].last_used_at
    shown = person.browser.get("/settings").text
    assert "Claude Code (127.0.0.1)" in shown
    call(person.settings, "token revoke", name="claude")
    assert ping(person, tokens["access_token"]) == 401
    assert refreshed(person, id, tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_grant_can_be_bound_to_a_part_of_the_memory(person: Person) -> None:
    id, tokens = connected(person, name="claude", allowed="write", only="default, wing:people")
    [listed] = call(person.settings, "token list").tokens
    assert listed.only == ("default", "wing:people")
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    grant = service.TokenReader(person.settings).find(tokens["access_token"], time.time())
    assert grant is not None
    assert grant.only == ("default", "wing:people")
    assert person.program.get("/api/memory/memory_list", headers=headers).status_code == 401  # only /mcp
    renewed = refreshed(person, id, tokens["refresh_token"]).json()["access_token"]
    again = service.TokenReader(person.settings).find(renewed, time.time())
    assert again is not None
    assert again.only == ("default", "wing:people")


def test_a_part_of_the_memory_without_a_name_is_refused(person: Person) -> None:
    response = answered(person, asked(registered(person)), only="work,,")
    assert response.status_code == 400
    assert "names of collections" in response.text


def _seconds(timestamp: str | None) -> float:
    from datetime import datetime

    assert timestamp
    return datetime.fromisoformat(timestamp).timestamp()


def test_tokens_are_stored_as_hashes_only(person: Person) -> None:
    id, tokens = connected(person)
    folder = Path(service.owner_token_path(person.settings)).parent
    stored = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert any(service.token_hash(tokens["refresh_token"]) in text for text in stored)
    for secret in (tokens["access_token"], tokens["refresh_token"], id):
        assert not any(secret in text for text in stored)
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.rglob("*.json"))


def test_author_of_a_change_is_the_chosen_name(person: Person) -> None:
    _, tokens = connected(person, name="my-claude", allowed="write")
    arguments = {"slug": "people/oauth", "content": "# Oauth\n\nWritten by a program.\n"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    meta |= {"io.modelcontextprotocol/clientInfo": {"name": "Someone else", "version": "1"}}  # type: ignore[dict-item]
    meta |= {"io.modelcontextprotocol/clientCapabilities": {}}  # type: ignore[dict-item]
    body["params"] = {"name": "memory_put", "arguments": arguments, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {tokens['access_token']}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "memory_put",
    }
    response = person.program.post("/mcp", json=body, headers=headers)
    assert response.status_code == 200, response.text
    assert "error" not in response.json(), response.text
    versions = call(person.settings, "history", slug="people/oauth").versions
    assert [version.agent for version in versions] == ["my-claude"]


def test_refresh_replaces_both_tokens(person: Person) -> None:
    id, first = connected(person)
    second = refreshed(person, id, first["refresh_token"]).json()
    assert second["scope"] == first["scope"]
    assert ping(person, first["access_token"]) == 401
    assert ping(person, second["access_token"]) == 200
    third = refreshed(person, id, second["refresh_token"])
    assert third.status_code == 200


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + seconds)


def test_refresh_token_that_was_replaced_ends_the_grant(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, first = connected(person)
    second = refreshed(person, id, first["refresh_token"]).json()
    # Two processes of one program may refresh at once; the second gets nothing, and the first goes on.
    assert refreshed(person, id, first["refresh_token"]).json()["error"] == "invalid_grant"
    assert ping(person, second["access_token"]) == 200
    later(monkeypatch, service.LATE_REFRESH_SECONDS + 1)
    assert refreshed(person, id, first["refresh_token"]).json()["error"] == "invalid_grant"
    assert ping(person, second["access_token"]) == 401
    assert refreshed(person, id, second["refresh_token"]).json()["error"] == "invalid_grant"
    assert call(person.settings, "token list").tokens == ()


def test_tokens_expire(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    id, tokens = connected(person, period="7d")
    later(monkeypatch, service.ACCESS_SECONDS + 1)
    assert ping(person, tokens["access_token"]) == 401
    tokens = refreshed(person, id, tokens["refresh_token"]).json()
    assert ping(person, tokens["access_token"]) == 200
    later(monkeypatch, 7 * 86_400)
    assert refreshed(person, id, tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_second_use_of_a_code_ends_the_grant(person: Person) -> None:
    id = registered(person)
    code = code_of(answered(person, asked(id)))
    tokens = exchanged(person, id, code).json()
    assert ping(person, tokens["access_token"]) == 200
    assert exchanged(person, id, code).json()["error"] == "invalid_grant"
    assert ping(person, tokens["access_token"]) == 401
    assert refreshed(person, id, tokens["refresh_token"]).status_code == 400


def test_code_is_valid_for_a_minute(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    id = registered(person)
    code = code_of(answered(person, asked(id)))
    later(monkeypatch, oauth.CODE_SECONDS + 1)
    assert exchanged(person, id, code).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "w" * 64},
        {"code_verifier": ""},
        {"code_verifier": CHALLENGE},
        {"redirect_uri": "http://127.0.0.1:1/callback"},
        {"resource": "https://other.example/mcp"},
        {"grant_type": "password"},
        {"code": "qc_" + secrets.token_urlsafe(32)},
    ],
)
def test_code_needs_its_verifier_and_address(person: Person, changes: dict[str, str]) -> None:
    id = registered(person)
    response = exchanged(person, id, code_of(answered(person, asked(id))), **changes)
    assert response.status_code == 400
    assert response.json()["error"] in ("invalid_grant", "invalid_target", "unsupported_grant_type")
    assert call(person.settings, "token list").tokens == ()


def test_code_and_refresh_token_belong_to_their_client(person: Person) -> None:
    id, other = registered(person), registered(person)
    code = code_of(answered(person, asked(id)))
    assert exchanged(person, other, code).json()["error"] == "invalid_grant"
    tokens = exchanged(person, id, code).json()
    assert refreshed(person, other, tokens["refresh_token"]).json()["error"] == "invalid_grant"
    person.program.post("/oauth/revoke", data={"token": tokens["access_token"], "client_id": other})
    assert ping(person, tokens["access_token"]) == 200
    unknown = exchanged(person, id[:-2] + "AA", code)
    assert (unknown.status_code, unknown.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_client_can_revoke_its_access(person: Person, kind: str) -> None:
    id, tokens = connected(person)
    gone = person.program.post("/oauth/revoke", data={"token": tokens[kind], "client_id": id})
    assert gone.status_code == 200
    assert ping(person, tokens["access_token"]) == 401
    assert refreshed(person, id, tokens["refresh_token"]).status_code == 400
    assert call(person.settings, "token list").tokens == ()
    again = person.program.post("/oauth/revoke", data={"token": tokens[kind], "client_id": id})
    assert again.status_code == 200


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "javascript://x/%0aalert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://evil.example/callback",
        "http://127.0.0.1.evil.example/callback",
        "http://localhost.evil.example/",
        "https://user:word@evil.example/",
        "https://evil.example/#fragment",
        "https://evil.example/ space",
        'https://evil.example/"><script>',
        "https://evil.example\\@good.example/",
        "https://ex\u0430mple.com/",
        "https://",
        "https://[::1/",
        "//evil.example/",
        "ws://127.0.0.1/",
        "about:blank",
        "https://a.example:99999/",
        "https://a.example/" + "a" * 2_000,
    ],
)
def test_hostile_redirect_addresses_are_not_registered(person: Person, uri: str) -> None:
    response = person.program.post("/oauth/register", json={"client_name": "x", "redirect_uris": [uri]})
    assert response.status_code == 400
    assert response.json()["error"] == "invalid_redirect_uri"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"null", b"{}", b"[" * 10_000),
        *(b'{"redirect_uris": "https://a.example/"}', b'{"redirect_uris": [1]}', b'{"redirect_uris": []}'),
        b'{"redirect_uris": ["https://a.example/"], "client_name": 7}',
        json.dumps({"redirect_uris": ["https://a.example/"] * 21}).encode(),
    ],
)
def test_malformed_registrations_are_refused(person: Person, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    response = person.program.post("/oauth/register", content=body, headers=headers)
    assert response.status_code == 400, response.text
    assert response.json()["error"].startswith("invalid_")


def test_registrations_are_small_and_not_stored(person: Person) -> None:
    folder = Path(service.owner_token_path(person.settings)).parent
    registered(person)
    before = sorted(folder.rglob("*"))
    for _ in range(50):
        registered(person, name="n" * 5_000)
    assert sorted(folder.rglob("*")) == before
    large = {"client_name": "x", "redirect_uris": [LOOPBACK], "logo_uri": "x" * 20_000}
    assert person.program.post("/oauth/register", json=large).status_code == 413


def test_registration_from_a_web_page_is_refused(person: Person) -> None:
    body = {"client_name": "x", "redirect_uris": [LOOPBACK]}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        for path in ("/oauth/register", "/oauth/token", "/oauth/revoke"):
            response = person.program.post(path, json=body, headers=headers)
            assert response.status_code == 403
            assert "access-control-allow-origin" not in response.headers
    preflight = person.program.options("/oauth/register", headers={"Origin": "https://evil.example"})
    assert preflight.status_code == 403
    form = person.program.post("/oauth/register", data={"client_name": "x"})
    assert form.status_code == 400


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"client_id": "unknown"}, "not registered"),
        ({"client_id": None}, "not registered"),
        ({"redirect_uri": "https://evil.example/"}, "did not register"),
        ({"redirect_uri": "http://localhost:33418/callback"}, "did not register"),
        ({"redirect_uri": "http://127.0.0.1:33418/other"}, "did not register"),
        ({"redirect_uri": "http://127.0.0.1:33418/callback?x=1"}, "did not register"),
        ({"redirect_uri": "http://127.0.0.1:1@evil.example/callback"}, "did not register"),
        ({"redirect_uri": "javascript:alert(1)"}, "did not register"),
        ({"response_type": "token"}, "another kind of answer"),
        ({"code_challenge": None}, "PKCE"),
        ({"code_challenge_method": "plain"}, "PKCE"),
        ({"code_challenge_method": None}, "PKCE"),
        ({"resource": "https://other.example/mcp"}, "another server"),
        ({"issuer": "https://other.example"}, "another server"),
        ({"state": "s" * 1_001}, "another kind of answer"),
    ],
)
def test_wrong_request_shows_a_page_and_leads_nowhere(
    person: Person, changes: dict[str, str | None], told: str
) -> None:
    values = asked(registered(person), **changes)
    for response in (
        person.browser.get("/oauth/authorize", params=values, headers=VISIT, follow_redirects=False),
        answered(person, values),
        answered(person, values, answer="refuse"),
    ):
        assert response.status_code == 400
        assert told in response.text
        assert "refresh" not in response.text
        assert "location" not in response.headers


def test_stranger_sees_only_the_login_page(person: Person) -> None:
    values = asked(registered(person, name="Recognisable"))
    for changed in (values, {**values, "client_id": "unknown"}, {**values, "code_challenge": "x"}):
        response = person.program.get("/oauth/authorize", params=changed, headers=VISIT)
        assert response.status_code == 401
        assert "Log in to connect a program" in response.text
        assert "Recognisable" not in response.text
        assert "refresh" not in response.text
    assert person.program.post("/oauth/authorize", data={**values, "answer": "allow"}).status_code == 401


def test_token_of_a_program_cannot_approve_another(person: Person) -> None:
    values = asked(registered(person))
    bearer = {"Authorization": f"Bearer {token(person.settings, 'agent', 'write')}"}
    assert person.program.get("/oauth/authorize", params=values, headers=bearer).status_code == 403
    form = {**values, "answer": "allow", "allowed": "read", "period": "7d", "name": "x"}
    assert person.program.post("/oauth/authorize", data=form, headers=bearer).status_code == 403


def test_approval_needs_the_csrf_token_and_a_choice(person: Person) -> None:
    values = asked(registered(person))
    assert answered(person, values, csrf_token="wrong").status_code == 403
    foreign = person.browser.post("/oauth/authorize", data=values, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert answered(person, values, allowed="").status_code == 400
    assert answered(person, values, allowed="owner").status_code == 400
    assert answered(person, values, period="9999d").status_code == 400
    assert answered(person, {**values, "scope": "read"}, allowed="write").status_code == 400
    page = person.browser.get("/oauth/authorize", params=values, headers=VISIT)
    assert " checked" not in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "same-origin"


def test_field_that_is_given_twice_is_refused(person: Person) -> None:
    values = asked(registered(person))
    twice = urlencode([*values.items(), ("redirect_uri", "https://evil.example/")])
    response = person.browser.get(f"/oauth/authorize?{twice}", headers=VISIT)
    assert response.status_code == 400
    body = "grant_type=refresh_token&grant_type=authorization_code"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert person.program.post("/oauth/token", content=body, headers=form).status_code == 400


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("Cla\u202eedu\u200b\u2066de", "Cla edu de"),
        ("two\nlines\t\x00here", "two lines here"),
        ("\uff23\uff4c\uff41\uff55\uff44\uff45", "Claude"),
        ("\u202e\u200b", "A program without a name"),
        ("n" * 500, "n" * 80),
    ],
)
def test_name_is_shown_as_text_beside_the_place(person: Person, name: str, shown: str) -> None:
    id = registered(person, HOSTED, name=name)
    page = person.browser.get("/oauth/authorize", params=asked(id, redirect_uri=HOSTED), headers=VISIT).text
    assert f'claimed-name"><bdi>{shown}</bdi>' in page
    assert 'claimed-place"><bdi>assistant.example</bdi>' in page


def test_port_of_a_loopback_address_may_differ(person: Person) -> None:
    id = registered(person)
    there = "http://127.0.0.1:50123/callback"
    assert sent_to(answered(person, asked(id, redirect_uri=there))).startswith(there + "?code=")


def test_login_leads_on_to_the_request_on_the_host_of_browsers(person: Person) -> None:
    values = asked(registered(person), issuer=None)
    page = person.program.get("/oauth/authorize", params=values, headers=VISIT)
    found = re.search(r'name="next" value="([^"]*)"', page.text)
    assert found
    code = call(person.settings, "login code").code
    response = person.program.post("/login", data={"code": code, "next": html.unescape(found[1])})
    forward = sent_to(response)
    assert urlsplit(forward).netloc == urlsplit(str(person.browser.base_url)).netloc
    person.browser.cookies.clear()
    entered_there = person.browser.get(forward, headers=VISIT)
    target = sent_to(entered_there)
    assert target.startswith("/oauth/authorize?")
    asking = person.browser.get(target, headers={**VISIT, "Sec-Fetch-Site": "same-origin"})
    assert "Connect a program?" in asking.text
    fields = dict(parse_qsl(urlsplit(target).query))
    assert fields["issuer"] == ADDRESS
    assert fields["state"] == values["state"]


def test_new_grant_of_a_client_replaces_its_old_one(person: Person) -> None:
    id, first = connected(person)
    tokens = exchanged(person, id, code_of(answered(person, asked(id), name="renamed"))).json()
    assert ping(person, first["access_token"]) == 401
    assert ping(person, tokens["access_token"]) == 200
    assert [each.name for each in call(person.settings, "token list").tokens] == ["renamed"]


def test_name_of_another_token_is_refused(person: Person) -> None:
    token(person.settings, "claude-code", "read")
    values = asked(registered(person))
    asking = person.browser.get("/oauth/authorize", params=values, headers=VISIT).text
    assert 'value="claude-code-2"' in asking
    for name in ("claude-code", "owner", "human", "../x", "A b", ""):
        response = answered(person, values, name=name)
        assert response.status_code in (400, 409), name
        assert 'role="alert"' in response.text
    assert ping(person, exchanged(person, values["client_id"], "x").json().get("access_token", "x")) == 401


def test_revoked_grant_does_not_return_with_a_refresh_at_the_same_time(person: Person) -> None:
    id, _ = connected(person)
    folder = Path(service.owner_token_path(person.settings)).parent
    content = service.token_files(person.settings)["claude"]
    assert content
    service._issue(person.settings, content, time.time())
    call(person.settings, "token revoke", name="claude")
    late = service._issue(person.settings, content, time.time())  # as a refresh that had read the file before
    assert ping(person, late.access) == 401
    assert refreshed(person, id, late.refresh).status_code == 400
    id, _ = connected(person)
    assert len(list((folder / "grants").iterdir())) == 1


def test_hosted_client_gets_through_the_strict_cookie(hosted: Person) -> None:
    values = asked(registered(hosted, HOSTED), redirect_uri=HOSTED, resource=f"{PUBLIC}/mcp", issuer=None)
    from_there = {**VISIT, "Sec-Fetch-Site": "cross-site"}
    first = hosted.program.get("/oauth/authorize", params=values, headers=from_there)  # without the cookie
    again = sent_to(first)
    page = hosted.browser.get(again, headers={**VISIT, "Sec-Fetch-Site": "same-origin"})
    assert "Connect a program?" in page.text
    there = sent_to(answered(hosted, {**values, "issuer": PUBLIC}))
    assert dict(parse_qsl(urlsplit(there).query))["iss"] == PUBLIC
    code = parse_qs(urlsplit(there).query)["code"][0]
    changed = {"redirect_uri": HOSTED, "resource": f"{PUBLIC}/mcp"}
    tokens = exchanged(hosted, values["client_id"], code, **changed).json()
    assert ping(hosted, tokens["access_token"]) == 200


def test_setting_turns_it_off(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    app = web_app.build_app(settings._replace(options={"web.oauth": "off"}))
    with client(app) as program:
        assert program.post("/oauth/register", json={}).status_code == 401
        assert program.get("/.well-known/oauth-authorization-server").status_code == 401
        assert program.post("/mcp", json={}).headers["www-authenticate"] == "Bearer"
