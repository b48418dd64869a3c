"""Who comes in: every combination of name, origin, method and route."""

import json
from itertools import product

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, client

from quaid.config import Settings
from quaid.operations import service
from quaid.web import app as web_app
from quaid.web.auth import MAX_BODY, SECURITY_HEADERS

OURS = ("127.0.0.1:4321", "localhost:4321", "[::1]:4321")
FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:4321",
    "127.0.0.1:80",
    "127.0.0.1",
    "0.0.0.0:4321",
    "127.0.0.1.nip.io:4321",
)
FOREIGN_ORIGINS = (
    "http://evil.example",
    "http://127.0.0.1:8000",
    "https://127.0.0.1:4321",
    "null",
    "http://127.0.0.1:4321.evil.example",
    "file://",
)
VISIT = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
"""What a browser says when somebody goes to an address."""

METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH")
PATHS = (
    "/",
    "/settings/rebuild",
    "/page/people/alice",
    "/health",
    "/login",
    "/api/memory/get?slug=people/alice",
    "/api/memory/put",
    "/api/events",
    "/api/debug/memory/rebuild",
    "/mcp",
    "/nowhere",
)
CASES = [
    *product(FOREIGN_HOSTS, ("", "http://127.0.0.1:4321"), METHODS, PATHS),
    *product(OURS[:1], FOREIGN_ORIGINS, METHODS, PATHS),
]


def test_there_are_enough_foreign_origins() -> None:
    assert len(CASES) >= 500


@pytest.mark.parametrize("path", PATHS)
def test_foreign_host_or_origin_is_refused(path: str, owner: TestClient) -> None:
    asked = [case for case in CASES if case[3] == path]
    assert asked
    for host, origin, method, _ in asked:
        headers = {"Host": host, **({"Origin": origin} if origin else {})}
        response = owner.request(method, path, headers=headers)
        wanted = 403 if host in OURS else 421
        assert response.status_code == wanted, (host, origin, method, path)
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("host", OURS)
@pytest.mark.parametrize("origin", ["", *(f"http://{item}" for item in OURS)])
def test_own_hosts_are_accepted(owner: TestClient, host: str, origin: str) -> None:
    headers = {"Host": host, **({"Origin": origin} if origin else {})}
    assert owner.get("/api/memory/stats", headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/api/memory/stats", "/mcp", "/"])
def test_cross_site_fetch_without_origin_is_refused(owner: TestClient, site: str, path: str) -> None:
    for mode in ("cors", "no-cors", "navigate"):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": "iframe"}
        assert owner.get(path, headers=headers).status_code == 403
        assert owner.post(path, headers=headers).status_code == 403


def test_null_origin_needs_sec_fetch_site_same_origin(owner: TestClient) -> None:
    body = {"slug": "people/null", "content": "x"}
    for site, status in (("same-origin", 200), ("same-site", 403), ("cross-site", 403), ("none", 403)):
        headers = {"Origin": "null", "Sec-Fetch-Site": site}
        assert owner.post("/api/memory/put", json=body, headers=headers).status_code == status


def test_link_from_another_site_opens_pages_but_not_the_api(owner: TestClient) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert owner.get("/health", headers=visit).status_code == 200
    assert owner.get("/api/memory/stats", headers=visit).status_code == 403
    assert owner.post("/logout", headers=visit).status_code == 403


@pytest.mark.parametrize("path", ["/health", "/api/memory/stats", "/nowhere", "/api/nowhere", "/login"])
def test_every_response_has_the_security_headers(owner: TestClient, path: str) -> None:
    response = owner.get(path)
    for name, value in SECURITY_HEADERS.items():
        assert response.headers[name] == value
    assert response.headers["cache-control"] == "no-store"
    assert "server" not in response.headers


def test_csp_forbids_foreign_scripts() -> None:
    policy = SECURITY_HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy
    assert "*" not in policy


def test_two_host_headers_are_refused(app: Starlette, memory: Settings) -> None:
    asked = client(app, service.owner_token(memory))
    response = asked.get("/health", headers=[("Host", "127.0.0.1:4321"), ("Host", "evil.example")])
    assert response.status_code == 421


# Bodies


def test_a_body_over_the_limit_is_refused(owner: TestClient) -> None:
    response = owner.post(
        "/api/memory/put", content=b"x" * (MAX_BODY + 1), headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "too_large"


def test_escaped_body_counts_as_its_text(owner: TestClient) -> None:
    text = "# Words\n\n" + "жук и мотылёк\n" * (3 * 1024 * 1024 // 25)
    body = json.dumps({"slug": "concepts/words", "content": text}).encode()
    assert len(body) > MAX_BODY
    response = owner.post("/api/memory/put", content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["created"]) == (200, True)
    response = owner.post("/api/memory/put", content=body * 2, headers={"Content-Type": "application/json"})
    assert response.status_code == 413
    response = owner.post("/api/memory/put", content=body, headers={"Content-Type": "text/plain"})
    assert response.status_code == 413


def test_chunked_body_is_limited(owner: TestClient) -> None:
    def parts() -> "object":
        for _ in range(MAX_BODY // 65_536 + 2):
            yield b"x" * 65_536

    response = owner.post("/api/memory/put", content=parts(), headers={"Content-Type": "application/json"})  # type: ignore[arg-type]
    assert response.status_code == 413


# Sessions


@pytest.fixture
def browser(app: Starlette, memory: Settings) -> TestClient:
    """A browser that followed a link."""
    import time

    result = client(app)
    code = service.login_code(memory, 4321, time.time())
    assert result.get("/login", params={"code": code}, headers=VISIT).status_code == 200
    return result


def csrf_of(app: Starlette, browser: TestClient) -> str:
    session = app.state.sessions.of(browser.cookies[app.state.sessions.cookie])
    return str(session.csrf)


def test_a_link_logs_in_once(app: Starlette, memory: Settings) -> None:
    import time

    first, second = client(app), client(app)
    code = service.login_code(memory, 4321, time.time())
    assert first.get("/api/memory/stats").status_code == 401
    response = first.get("/login", params={"code": code}, headers=VISIT)
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert code not in response.text
    assert "location" not in response.headers
    assert first.get("/api/memory/stats").status_code == 200
    assert second.get("/login", params={"code": code}, headers=VISIT).status_code == 401
    assert second.get("/api/memory/stats").status_code == 401


@pytest.mark.parametrize("code", ["", "x", "qd_" + "a" * 43, "../owner-token"])
def test_unknown_login_code_is_refused(app: Starlette, code: str) -> None:
    response = client(app).get("/login", params={"code": code}, headers=VISIT)
    assert response.status_code == 401
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "looking",
    [
        {},
        {"User-Agent": "Slackbot-LinkExpanding 1.0", "Range": "bytes=0-32768"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {**VISIT, "Sec-Fetch-Dest": "iframe"},
        {**VISIT, "Sec-Purpose": "prefetch;prerender"},
        {**VISIT, "Purpose": "prefetch"},
        {**VISIT, "X-Moz": "prefetch"},
    ],
)
def test_link_previews_do_not_use_up_a_login_code(
    app: Starlette, memory: Settings, looking: dict[str, str]
) -> None:
    import time

    code = service.login_code(memory, 4321, time.time())
    previewer, browser = client(app), client(app)
    for method in ("HEAD", "GET", "GET"):
        seen = previewer.request(method, "/login", params={"code": code}, headers=looking)
        assert seen.status_code == 200
        assert "set-cookie" not in seen.headers
    assert "<script" not in seen.text
    assert f'value="{code}"' in seen.text
    assert client(app).head("/login", params={"code": code}, headers=VISIT).status_code == 200
    assert browser.get("/login", params={"code": code}, headers=VISIT).status_code == 200
    assert browser.get("/api/memory/stats").status_code == 200
    assert previewer.post("/login", data={"code": code}).status_code == 401


def test_login_button_works_once_also_if_logged_in(
    app: Starlette, memory: Settings, browser: TestClient
) -> None:
    import time

    ours = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}
    for who in (client(app), browser):
        code = service.login_code(memory, 4321, time.time())
        assert who.post("/login", data={"code": code}, headers=ours).status_code == 200
        assert who.get("/api/memory/stats").status_code == 200
        assert client(app).post("/login", data={"code": code}, headers=ours).status_code == 401
    for nonsense in (b"\xff\xfe", b"a=b&" * 2_000, b"code"):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert client(app).post("/login", content=nonsense, headers=form).status_code == 401
    code = service.login_code(memory, 4321, time.time())
    evil = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert client(app).post("/login", data={"code": code}, headers=evil).status_code == 403
    assert client(app).post("/login", data={"code": code}).status_code == 200  # which used nothing up


@pytest.mark.parametrize("code", ["x", '"><b>', "qd_" + "a" * 44])
def test_malformed_login_code_is_not_echoed(app: Starlette, code: str) -> None:
    seen = client(app).get("/login", params={"code": code})
    assert seen.status_code == 401
    assert code not in seen.text or code == "x"


def test_login_link_is_bound_to_port_and_minute(app: Starlette, memory: Settings) -> None:
    import time

    old = service.login_code(memory, 4321, time.time() - 61)
    elsewhere = service.login_code(memory, 4322, time.time())
    for code in (old, elsewhere):
        assert client(app).get("/login", params={"code": code}, headers=VISIT).status_code == 401


def test_cookie_without_csrf_token_cannot_write(app: Starlette, browser: TestClient) -> None:
    body = {"content": "x", "slug": "people/mallory"}
    assert browser.post("/api/memory/put", json=body).status_code == 403
    wrong = browser.post("/api/memory/put", json=body, headers={"X-CSRF-Token": "guess"})
    assert wrong.status_code == 403
    assert browser.post("/logout", data={"csrf_token": "guess"}).status_code == 403
    right = browser.post("/api/memory/put", json=body, headers={"X-CSRF-Token": csrf_of(app, browser)})
    assert right.status_code == 200


def test_form_with_csrf_token_is_accepted(app: Starlette, browser: TestClient) -> None:
    assert browser.post("/logout", data={"csrf_token": csrf_of(app, browser)}).status_code == 200
    assert browser.get("/api/memory/stats").status_code == 401


def test_a_session_ends_with_its_process(memory: Settings, browser: TestClient) -> None:
    with client(web_app.build_app(memory)) as other:
        other.cookies = browser.cookies
        assert other.get("/api/memory/stats").status_code == 401


def test_wrong_token_is_refused_despite_a_valid_cookie(browser: TestClient) -> None:
    assert browser.get("/api/memory/stats", headers={"Authorization": "Bearer nonsense"}).status_code == 401


@pytest.mark.parametrize("shown", ["Bearer", "Bearer ", "Basic abc", "bearer\tx", "", "Bearer é"])
def test_malformed_authorization_is_refused(app: Starlette, shown: str) -> None:
    headers = [(b"Authorization", shown.encode("latin-1"))]
    response = client(app).get("/api/memory/stats", headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


def test_read_only_server_refuses_writes(memory: Settings) -> None:
    with client(web_app.build_app(memory, readonly=True), service.owner_token(memory)) as asked:
        assert asked.get("/api/memory/stats").status_code == 200
        refused = asked.post("/api/memory/put", json={"slug": "people/zoe", "content": "# Zoe"})
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "not_allowed"


def test_a_web_socket_is_closed(owner: TestClient) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), owner.websocket_connect(ADDRESS.replace("http", "ws") + "/mcp"):
        pass
