"""Who comes in: every combination of name, origin, method and route."""

import html
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, client, filled, own_client, settings_in
from tests.web.dashboard import browser_address

from quaid.config import Settings
from quaid.errors import FileTrouble
from quaid.http_server import ServerAddress
from quaid.operations import service
from quaid.web import server as web_app
from quaid.web.auth import MAX_BODY, SECURITY_HEADERS, device_name

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
    result = own_client(app)
    code = service.login_code(memory, 4321, time.time())
    assert result.get("/login", params={"code": code}, headers=VISIT).status_code == 200
    return result


def csrf_of(browser: TestClient) -> str:
    return browser.get("/settings").text.partition('<meta name="csrf" content="')[2].partition('"')[0]


def test_a_link_logs_in_once(app: Starlette, memory: Settings) -> None:
    first, second = own_client(app), own_client(app)
    code = service.login_code(memory, 4321, time.time())
    assert first.get("/api/memory/stats").status_code == 401
    response = first.get("/login", params={"code": code}, headers=VISIT)
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie
    assert code not in response.text
    assert "location" not in response.headers
    assert first.get("/api/memory/stats").status_code == 200
    assert second.get("/login", params={"code": code}, headers=VISIT).status_code == 401
    assert second.get("/api/memory/stats").status_code == 401


@pytest.mark.parametrize("host", OURS)
def test_login_at_a_loopback_address_leads_to_the_own_host(
    app: Starlette, memory: Settings, host: str
) -> None:
    own = browser_address(memory, 4321)
    visitor = TestClient(app, base_url=f"http://{host}")
    for method in ("GET", "POST"):
        code = service.login_code(memory, 4321, time.time())
        how: dict[str, Any] = {"params": {"code": code}, "headers": VISIT}
        response = visitor.request(method, "/login", **(how if method == "GET" else {"data": {"code": code}}))
        assert response.status_code == 200
        assert "set-cookie" not in response.headers
        assert code not in response.text
        link = html.unescape(response.text.partition("0; url=")[2].partition('"')[0])
        assert link.startswith(f"{own}/login?code=qd_")
        browser = own_client(app)
        assert browser.get(link, headers=VISIT).status_code == 200
        assert browser.get("/api/memory/stats").status_code == 200
        assert own_client(app).get(link, headers=VISIT).status_code == 401


@pytest.mark.parametrize("host", OURS)
def test_cookie_is_not_accepted_at_a_loopback_address(app: Starlette, browser: TestClient, host: str) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    assert cookie
    headers = {"Host": host, "Cookie": cookie}
    assert client(app).get("/api/memory/stats", headers=headers).status_code == 401
    own = {**headers, "Host": browser.base_url.netloc.decode()}
    assert client(app).get("/api/memory/stats", headers=own).status_code == 200


@pytest.mark.parametrize("path", ["/", "/login", "/login?code=x", "/health", "/nowhere", "/api/openapi.json"])
def test_own_host_is_not_revealed_without_a_code(app: Starlette, memory: Settings, path: str) -> None:
    name = service.web_host_name(memory).partition(".")[0]
    for headers in ({}, VISIT, {"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        response = client(app).get(path, headers=headers)
        assert name not in response.text + str(response.headers)


def test_own_host_accepts_only_its_own_origin(browser: TestClient) -> None:
    own = str(browser.base_url).rstrip("/")
    for origin, status in ((own, 200), (ADDRESS, 403), (own.replace(":4321", ":4322"), 403), ("null", 403)):
        assert browser.get("/api/memory/stats", headers={"Origin": origin}).status_code == status


def test_host_name_is_random_and_private(tmp_path: Path) -> None:
    one, two = (Settings(str(tmp_path / f"{name}.db"), str(tmp_path), str(tmp_path)) for name in "ab")
    assert service.web_host_name(one) != service.web_host_name(two)
    assert service.web_host_name(one) == service.web_host_name(one)
    path = Path(service.owner_token_path(one)).with_name("host-name")
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("localhost")
    with pytest.raises(FileTrouble, match="delete it"):
        service.web_host_name(one)


def test_chosen_host_name_replaces_the_random_one(memory: Settings) -> None:
    with TestClient(
        web_app.build_app(memory, host_name="localhost"), base_url="http://localhost:4321"
    ) as there:
        code = service.login_code(memory, 4321, time.time())
        assert there.get("/login", params={"code": code}, headers=VISIT).headers["set-cookie"]
        assert there.get("/api/memory/stats").status_code == 200
        assert there.get(browser_address(memory, 4321) + "/health").status_code == 421


def test_no_browser_logs_in_at_another_loopback_address(memory: Settings) -> None:
    address = ServerAddress.local(4321, "127.0.0.2")
    with TestClient(web_app.build_app(memory, address=address), base_url="http://127.0.0.2:4321") as there:
        code = service.login_code(memory, 4321, time.time())
        response = there.get("/login", params={"code": code}, headers=VISIT)
        assert (response.status_code, "set-cookie" in response.headers) == (401, False)


@pytest.mark.parametrize("code", ["x", "qd_" + "a" * 43, "../owner-token"])
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
    code = service.login_code(memory, 4321, time.time())
    previewer, browser = own_client(app), own_client(app)
    for method in ("HEAD", "GET", "GET"):
        seen = previewer.request(method, "/login", params={"code": code}, headers=looking)
        assert seen.status_code == 200
        assert "set-cookie" not in seen.headers
    assert seen.text.count("<script") == seen.text.count("/static/theme.js") == 1
    assert f'value="{code}"' in seen.text
    assert own_client(app).head("/login", params={"code": code}, headers=VISIT).status_code == 200
    assert browser.get("/login", params={"code": code}, headers=VISIT).status_code == 200
    assert browser.get("/api/memory/stats").status_code == 200
    assert previewer.post("/login", data={"code": code}).status_code == 401


def test_login_button_works_once_also_if_logged_in(
    app: Starlette, memory: Settings, browser: TestClient
) -> None:
    ours = {"Origin": browser_address(memory, 4321), "Sec-Fetch-Site": "same-origin"}
    for who in (own_client(app), browser):
        code = service.login_code(memory, 4321, time.time())
        assert who.post("/login", data={"code": code}, headers=ours).status_code == 200
        assert who.get("/api/memory/stats").status_code == 200
        assert own_client(app).post("/login", data={"code": code}, headers=ours).status_code == 401
    for nonsense in (b"\xff\xfe", b"a=b&" * 2_000, b"code"):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert own_client(app).post("/login", content=nonsense, headers=form).status_code == 401
    code = service.login_code(memory, 4321, time.time())
    evil = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert own_client(app).post("/login", data={"code": code}, headers=evil).status_code == 403
    assert own_client(app).post("/login", data={"code": code}).status_code == 200  # which used nothing up


@pytest.mark.parametrize("code", ["x", '"><b>', "qd_" + "a" * 44])
def test_malformed_login_code_is_not_echoed(app: Starlette, code: str) -> None:
    seen = client(app).get("/login", params={"code": code})
    assert seen.status_code == 401
    assert code not in seen.text or code == "x"


def test_login_link_is_bound_to_port_and_minute(app: Starlette, memory: Settings) -> None:
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
    right = browser.post("/api/memory/put", json=body, headers={"X-CSRF-Token": csrf_of(browser)})
    assert right.status_code == 200


def test_form_with_csrf_token_is_accepted(app: Starlette, browser: TestClient) -> None:
    assert browser.post("/logout", data={"csrf_token": csrf_of(browser)}).status_code == 200
    assert browser.get("/api/memory/stats").status_code == 401


def test_a_session_survives_a_restart(memory: Settings, browser: TestClient) -> None:
    csrf = csrf_of(browser)
    with own_client(web_app.build_app(memory)) as other:
        other.cookies = browser.cookies
        assert other.get("/api/memory/stats").status_code == 200
        assert csrf_of(other) == csrf
        body = {"slug": "people/after", "content": "x"}
        headers = {"X-CSRF-Token": csrf}
        assert other.post("/api/memory/put", json=body, headers=headers).status_code == 200


def test_a_session_ends_with_its_file_or_the_owner_token(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    token_file = Path(service.owner_token_path(settings))
    with own_client(web_app.build_app(settings)) as browser:

        def log_in() -> None:
            code = service.login_code(settings, 4321, time.time())
            assert browser.post("/login", data={"code": code}).status_code == 200
            assert browser.get("/api/memory/stats").status_code == 200

        log_in()
        files = list(token_file.with_name("sessions").iterdir())
        secret = next(iter(browser.cookies.values()))
        assert [file.stat().st_mode & 0o777 for file in files] == [0o600]
        assert secret not in files[0].read_text() + files[0].name
        assert csrf_of(browser) not in files[0].read_text()
        files[0].unlink()
        assert browser.get("/api/memory/stats").status_code == 401
        log_in()
        token_file.unlink()
        assert browser.get("/api/memory/stats").status_code == 401
        log_in()  # which makes a new token
        token_file.write_text("qd_" + "A" * 43)
        assert browser.get("/api/memory/stats").status_code == 401


def test_a_session_ends_after_seven_days_without_use_and_after_ninety_in_all(settings: Settings) -> None:
    day, host = 86_400.0, "quaid.localhost:1"
    idle = service.begin_session(settings, host, "", 0.0)
    assert service.find_session(settings, host, idle, 7 * day)
    assert not service.find_session(settings, host, idle, 14.1 * day)
    used = service.begin_session(settings, host, "", 0.0)
    assert not service.find_session(settings, "localhost:1", used, 1.0)
    days = [count for count in range(0, 100, 6) if service.find_session(settings, host, used, count * day)]
    assert days == list(range(0, 91, 6))
    assert service.sessions_of(settings, 100 * day) == []


def test_the_longest_idle_session_ends_at_the_limit(settings: Settings) -> None:
    host = "quaid.localhost:1"
    secrets = [service.begin_session(settings, host, "", float(moment)) for moment in range(100)]
    service.find_session(settings, host, secrets[0], 200.0)
    service.begin_session(settings, host, "", 201.0)
    still = [bool(service.find_session(settings, host, secret, 202.0)) for secret in secrets]
    assert still.index(False) == 1
    assert still.count(False) == 1


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/page/people/alice?at=L3", "/page/people/alice?at=L3"),
        ("//evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/a\r\nSet-Cookie: x", "/"),
        ("/login?code=x", "/"),
        ('/"><script>', '/"><script>'),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_login_leads_back_only_to_a_path_of_this_server(
    app: Starlette, memory: Settings, path: str, leads_to: str
) -> None:
    code = service.login_code(memory, 4321, time.time())
    response = client(app).get("/login", params={"code": code, "next": path}, headers=VISIT)
    link = html.unescape(response.text.partition("0; url=")[2].partition('"')[0])
    response = own_client(app).get(link, headers=VISIT)
    assert "<script>" not in response.text
    assert html.unescape(response.text.partition("0; url=")[2].partition('"')[0]) == leads_to


def test_safari_is_told_about_the_host_name(app: Starlette, memory: Settings) -> None:
    safari = (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.5 Safari/605.1.15"
    )
    chrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"
    for agent, hinted in ((safari, True), (chrome, False)):
        code = service.login_code(memory, 4321, time.time())
        headers = {**VISIT, "User-Agent": agent}
        page = client(app).get("/login", params={"code": code}, headers=headers).text
        assert ("--host-name localhost" in page) is hinted
        assert ('http-equiv="refresh"' in page) is not hinted
        assert f'href="{browser_address(memory, 4321)}/login?code=' in page


def test_a_typed_code_logs_in(app: Starlette, memory: Settings) -> None:
    code = service.short_login_code(memory, 4321, time.time())
    browser = own_client(app)
    wrong = browser.post("/login", data={"code": f"{(int(code) + 1) % 10**8:08}", "next": "/timeline"})
    assert wrong.status_code == 401
    assert "not right" in wrong.text
    assert 'value="/timeline"' in wrong.text
    right = browser.post("/login", data={"code": f" {code[:4]}-{code[4:]} ", "next": "/timeline"})
    assert 'content="0; url=/timeline"' in right.text
    assert browser.get("/api/memory/stats").status_code == 200
    assert own_client(app).post("/login", data={"code": code}).status_code == 401


def test_links_do_not_use_up_the_tries_of_a_typed_code(app: Starlette, memory: Settings) -> None:
    code = service.short_login_code(memory, 4321, time.time())
    headers = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"}
    for number in range(service.SHORT_CODE_TRIES):
        wrong = f"{(int(code) + 1 + number) % 10**8:08}"
        assert client(app).get(f"/login?code={wrong}", headers=headers).status_code == 401
    assert client(app).get(f"/login?code={code}", headers=headers).status_code == 401
    assert own_client(app).post("/login", data={"code": code}).status_code == 200


def test_page_without_a_session_leads_back_after_the_login(app: Starlette) -> None:
    page = own_client(app).get("/page/people/alice?at=L1")
    assert page.status_code == 401
    assert 'name="next" value="/page/people/alice?at=L1"' in page.text
    form = own_client(app).post("/new", data={"text": "x"})
    assert form.status_code == 401
    assert "Nothing was saved" in form.text


def test_logout_shows_a_page_with_a_way_back(browser: TestClient) -> None:
    page = browser.post("/logout", data={"csrf_token": csrf_of(browser)})
    assert page.status_code == 200
    assert "<h1>You are logged out</h1>" in page.text
    assert 'name="code"' in page.text
    assert "Max-Age=0" in page.headers["set-cookie"]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1",
            "Safari on iPhone",
        ),
        ("curl/8", "A browser"),
    ],
)
def test_device_is_named_by_its_browser_and_system(agent: str, name: str) -> None:
    assert device_name(agent) == name


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
