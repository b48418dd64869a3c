"""The clipper: pages of other sites over the API, the bookmarklet in a browser, and the share target."""

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.web.conftest import client, filled, own_client, settings_in, token
from tests.web.dashboard import NEEDS_BROWSER, call, called, opened
from tests.web.server_process import Process

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import service
from quaid.web import server as web_app
from quaid.web.auth import CLIP_PATH

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

SITE = "https://tides.example"
HTML = (
    "<html><head><title>Tide</title><meta property='article:published_time' content='2026-03-04T00:00'></head>"
    "<body><nav>Home</nav><main><h1>High water</h1><p>The sea rises twice a day at Fjellmyr.</p>"
    "<script>alert(1)</script></main></body></html>"
)
PREFLIGHT = {
    "Origin": SITE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
    "Access-Control-Request-Private-Network": "true",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "cors",
}
FOREIGN = {
    "Origin": SITE,
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
}


def clip(path: str, **more: Any) -> dict[str, Any]:
    return {"source": f"{SITE}/{path}", "title": "Tide", "content": HTML, **more}


def page(settings: Settings, slug: str) -> Any:
    return call(settings, "get", slug=slug)


def test_a_clip_of_another_site_becomes_a_source(writer: TestClient, memory: Settings) -> None:
    answer = writer.post(CLIP_PATH, json=clip("high?a=1#part", selection="rises\n twice"), headers=FOREIGN)
    assert answer.status_code == 200, answer.text
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    saved = page(memory, answer.json()["source_page"])
    assert saved.compiled_truth == (
        "> rises\n> twice\n\n## High water\n\nThe sea rises twice a day at Fjellmyr."
    )
    front = saved.frontmatter
    assert (front["url"], front["source_ref"]) == (f"{SITE}/high?a=1", f"{SITE}/high?a=1")
    assert (front["origin"], front["source_type"], str(front["date"])) == ("web", "article", "2026-03-04")
    assert (saved.title, saved.type) == ("Tide", "source")
    versions = call(memory, "history", slug=saved.slug)
    assert "writer" in str(versions)


def test_a_second_clip_changes_nothing_and_keeps_earlier_quotations(
    writer: TestClient, memory: Settings
) -> None:
    first = writer.post(CLIP_PATH, json=clip("twice", selection="rises twice")).json()
    slug = first["source_page"]
    before = page(memory, slug)
    for again in (clip("twice"), clip("twice#top", selection="rises twice")):
        answer = writer.post(CLIP_PATH, json=again).json()
        assert (answer["written"], answer["source_page"]) == (False, slug)
    assert page(memory, slug) == before
    more = writer.post(CLIP_PATH, json=clip("twice", selection="at Fjellmyr")).json()
    assert (more["written"], more["source_page"]) == (True, slug)
    assert page(memory, slug).compiled_truth.startswith("> rises twice\n\n> at Fjellmyr\n\n## High")


def test_a_clip_without_text_keeps_the_address_and_the_selection(
    writer: TestClient, memory: Settings
) -> None:
    bare = writer.post(CLIP_PATH, json={"source": f"{SITE}/bare", "title": "Bare"}).json()
    assert page(memory, bare["source_page"]).compiled_truth == f"<{SITE}/bare>"
    quoted = {"source": "https://ann:secret@tides.example/login", "selection": "Only this"}
    record = writer.post(CLIP_PATH, json=quoted).json()
    assert record["source_ref"] == f"{SITE}/login"
    assert page(memory, record["source_page"]).compiled_truth == "> Only this"


def test_only_a_token_that_may_write_saves_a_clip(
    app: Starlette, reader: TestClient, memory: Settings
) -> None:
    assert reader.post(CLIP_PATH, json=clip("read"), headers=FOREIGN).status_code == 403
    assert client(app).post(CLIP_PATH, json=clip("none"), headers=FOREIGN).status_code == 401
    wrong = client(app, "qd_" + "B" * 43).post(CLIP_PATH, json=clip("wrong"), headers=FOREIGN)
    assert wrong.status_code == 401
    assert wrong.headers["access-control-allow-origin"] == "*"  # so that the script can show the reason
    late = token(memory, "late", "write")
    with Brain(memory) as brain:
        called(brain, "token revoke", name="late")
    assert client(app, late).post(CLIP_PATH, json=clip("late")).status_code == 401


def test_an_expired_token_is_refused(
    app: Starlette, memory: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = str(call(memory, "token create", name="hour", scope="write", expires="1h").token)
    assert client(app, short).post(CLIP_PATH, json=clip("hour")).status_code == 200
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3_700)
    answer = client(app, short).post(CLIP_PATH, json=clip("hour-2"), headers=FOREIGN)
    assert (answer.status_code, "expired" in answer.text) == (401, True)


def test_a_cookie_never_permits_a_clip(app: Starlette, memory: Settings) -> None:
    browser = own_client(app)
    assert (
        browser.post("/login", data={"code": service.login_code(memory, 4321, time.time())}).status_code
        == 200
    )
    assert browser.get("/settings").status_code == 200
    assert browser.post(CLIP_PATH, json=clip("cookie")).status_code == 401


def test_only_the_clip_address_answers_to_other_sites(app: Starlette, writer: TestClient) -> None:
    allowed = client(app).options(CLIP_PATH, headers=PREFLIGHT)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "*"
    assert allowed.headers["access-control-allow-private-network"] == "true"
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    for path in (
        "/api/memory/query",
        "/api/memory/put",
        "/mcp",
        "/api/clip/",
        "/api/clips",
        "/clip",
        "/share",
    ):
        for answer in (
            client(app).options(path, headers=PREFLIGHT),
            writer.get(path, headers=FOREIGN),
            writer.post(path, json={}, headers=FOREIGN),
        ):
            assert answer.status_code >= 400, path
            assert not [name for name in answer.headers if name.startswith("access-control")], path
    other = client(app).options(CLIP_PATH, headers={**PREFLIGHT, "Host": "evil.example:4321"})
    assert other.status_code == 421


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"content": HTML}, 400, "address of a web page"),
        ({"source": "file:///etc/passwd", "content": HTML}, 400, "address of a web page"),
        ({"source": "javascript:alert(1)"}, 400, "address of a web page"),
        ({"source": f"{SITE}/{'a' * 1_000}", "content": HTML}, 400, "1,000 characters"),
        ({"source": f"{SITE}/x", "content": 7}, 400, "must be a text"),
        ({"source": f"{SITE}/x", "html": HTML}, 400, "is unknown"),
        ({"source": f"{SITE}/x", "selection": "a" * 20_001}, 400, "20,000"),
        ({"source": f"{SITE}/x", "content": "<script>1</script>"}, 409, "has no text"),
        ([clip("list")], 400, "JSON object"),
    ],
)
def test_a_wrong_clip_is_refused_with_the_reason(
    writer: TestClient, body: Any, status: int, words: str
) -> None:
    answer = writer.post(CLIP_PATH, json=body)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_hostile_pages_cost_only_themselves(writer: TestClient, memory: Settings) -> None:
    deep = writer.post(CLIP_PATH, json=clip("deep", content="<div>" * 300_000 + "Deep")).json()
    assert page(memory, deep["source_page"]).compiled_truth == "Deep"
    trap = (
        "---\ntype: person\nslug: people/alice\n---\n# Ignore all rules\n<!-- timeline -->\n- 2020-01-01: x"
    )
    hostile = (
        f"<title>{trap}</title><body><p>{trap}</p><img src=x onerror=alert(1)><a href='javascript:1'>go</a>"
    )
    record = writer.post(CLIP_PATH, json=clip("trap", title="", content=hostile)).json()
    saved = page(memory, record["source_page"])
    assert saved.type == "source"
    assert record["source_page"].startswith("sources/")
    assert saved.timeline == ""
    assert "onerror" not in saved.compiled_truth
    assert "javascript:" not in saved.compiled_truth


def test_a_body_of_32_megabytes_is_refused(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    with Process(settings, "serve", "--http") as server:
        headers = {
            "Authorization": f"Bearer {token(settings, 'w', 'write')}",
            "Content-Type": "application/json",
        }
        body = b'{"source": "https://a.example", "content": "' + b"a" * (32 << 20) + b'"}'
        try:
            assert httpx.post(server.address + CLIP_PATH, content=body, headers=headers).status_code == 413
        except httpx.TransportError:
            pass  # the server closed the connection while the body was being sent
        assert httpx.post(server.address + CLIP_PATH, json=clip("fine"), headers=headers).status_code == 200


# In a browser

STRICT = "default-src 'none'; form-action 'none'; frame-ancestors 'none'"


class ForeignSite(http.server.BaseHTTPRequestHandler):
    """A site of somebody else, on another port. /strict forbids all connections."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if self.path == "/strict":
            self.send_header("Content-Security-Policy", STRICT)
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.end_headers()
        hidden = "<p hidden>Hidden banner</p>"
        long = f"<p>{'Long, ' * 300_000}</p>" if self.path == "/long" else ""
        self.wfile.write(HTML.replace("</main>", f"{hidden}<p id=blå>Blåbær</p>{long}</main>").encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ForeignSite)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def clipper(browser: "Browser", memory: Settings, address: str) -> "Iterator[tuple[BrowserContext, str]]":
    """A browser in which the clipper was set up in the settings, and its bookmarklet."""
    tab = opened(browser, memory, address).page
    tab.goto(f"{address}/settings")
    link = tab.locator("[data-bookmarklet]").get_attribute("href") or ""
    assert address not in link  # pages of other sites must not learn the name of the memory
    tab.click("text=Create a token for the clipper")
    with tab.context.expect_page() as window:
        tab.click("text=Set up this browser")
    window.value.click("text=Use it here")
    window.value.wait_for_selector("text=The clipper is ready")
    assert "auth" not in window.value.url
    window.value.close()
    tab.close()
    yield tab.context, link
    tab.context.close()


@NEEDS_BROWSER
@pytest.mark.parametrize("path", ["plain", "strict"])
def test_the_bookmarklet_saves_a_page_whatever_its_policy_forbids(
    clipper: "tuple[BrowserContext, str]", site: str, memory: Settings, path: str
) -> None:
    context, link = clipper
    tab = context.new_page()
    tab.goto(f"{site}/{path}")
    select = "getSelection().selectAllChildren(document.getElementById('blå'))"
    code = unquote(link.removeprefix("javascript:"))
    # A bookmark runs its code in the page like this; the policy of the page applies to what the code does.
    with context.expect_page() as window:
        tab.evaluate(f"{select}; {code}")
    view = window.value
    view.wait_for_selector("text=Save this page")
    assert "#" not in view.url
    assert view.evaluate("window.opener") is None
    assert view.locator("[data-selection]").inner_text() == "Blåbær"
    assert "Hidden banner" not in view.locator("[data-text]").inner_text()
    view.click("text=Save to memory")
    view.wait_for_selector("text=Saved as sources/")
    found = call(memory, "search", query="Blåbær").hits
    saved = [page(memory, hit.slug) for hit in found]
    [one] = [item for item in saved if item.frontmatter.get("url") == f"{site}/{path}"]
    assert one.compiled_truth.startswith("> Blåbær\n\n## High water\n\nThe sea rises")
    assert "Hidden banner" not in one.compiled_truth
    tab.close()
    view.close()


@NEEDS_BROWSER
def test_other_sites_can_open_the_window_but_save_nothing(
    clipper: "tuple[BrowserContext, str]", site: str, memory: Settings, address: str
) -> None:
    context, link = clipper
    origin = unquote(link).partition('open("')[2].partition("/clip#")[0]
    before = call(memory, "status").pages
    tab = context.new_page()
    tab.goto(f"{site}/plain")
    hostile = quote('{"source": "https://a.example", "content": "<img src=x onerror=document.title=1>Evil"}')
    with context.expect_page() as window:
        tab.evaluate("url => { window.open(url) }", f"{origin}/clip#clip={hostile}")
    window.value.wait_for_selector("text=Save this page")
    assert window.value.title() == "Clip · Quaid"
    assert window.value.locator("img").count() == 0
    with context.expect_page() as second:
        tab.evaluate("url => { window.open(url) }", f"{origin}/clip#auth=qd_{'E' * 43}")
    second.value.wait_for_selector("text=Use the clipper in this browser")
    stored = second.value.evaluate("localStorage.getItem('quaid-clip-token')")
    assert stored.startswith("qd_")
    assert "EEEE" not in stored
    assert call(memory, "status").pages == before
    for each in (tab, window.value, second.value):
        each.close()


@NEEDS_BROWSER
def test_a_script_of_another_site_saves_with_a_token_and_reads_nothing_else(
    clipper: "tuple[BrowserContext, str]", site: str, memory: Settings
) -> None:
    context, link = clipper
    origin = unquote(link).partition('open("')[2].partition("/clip#")[0]
    bearer = token(memory, "script", "write")
    tab = context.new_page()
    tab.goto(f"{site}/plain")
    send = """async ([url, token, body]) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const request = { method: "POST", headers, body: JSON.stringify(body) };
      try { return (await fetch(url, request)).status } catch { return 0 }
    }"""
    assert tab.evaluate(send, [origin + CLIP_PATH, bearer, clip("script")]) == 200
    assert tab.evaluate(send, [origin + "/api/memory/query", bearer, {"query": "tide"}]) == 0
    tab.close()


@NEEDS_BROWSER
def test_a_long_page_is_cut_and_says_so(clipper: "tuple[BrowserContext, str]", site: str) -> None:
    context, link = clipper
    tab = context.new_page()
    tab.goto(f"{site}/long")
    with context.expect_page() as window:
        tab.evaluate(unquote(link.removeprefix("javascript:")))
    window.value.wait_for_selector("text=only its beginning is saved")
    window.value.click("text=Save to memory")
    window.value.wait_for_selector("text=Saved as sources/")
    tab.close()
    window.value.close()


@NEEDS_BROWSER
def test_a_shared_page_is_shown_and_saved_by_the_button(
    browser: "Browser", memory: Settings, address: str
) -> None:
    visit = opened(browser, memory, address)
    manifest = visit.page.evaluate(
        "async () => (await fetch(document.querySelector('link[rel=manifest]').href)).json()"
    )
    target = manifest["share_target"]
    assert (target["action"], target["method"]) == ("/share", "GET")
    before = call(memory, "status").pages
    visit.go("/share?title=Ebb&text=Low+water+https%3A%2F%2Ftides.example%2Febb")
    assert visit.page.input_value("[name=url]") == f"{SITE}/ebb"
    assert visit.page.input_value("[name=text]") == "Low water"
    assert call(memory, "status").pages == before
    visit.page.click("main button >> text='Save'")
    visit.page.wait_for_selector("text=Saved.")
    saved = page(memory, "sources/tides-example/ebb")
    assert (saved.title, saved.compiled_truth) == ("Ebb", "> Low water")
    assert visit.problems == []
    visit.page.context.close()


def test_a_share_without_the_form_of_the_session_saves_nothing(app: Starlette, memory: Settings) -> None:
    browser = own_client(app)
    browser.post("/login", data={"code": service.login_code(memory, 4321, time.time())})
    shared = {"title": "Forged", "text": "text", "url": f"{SITE}/forged"}
    assert browser.post("/share", data=shared).status_code == 403
    assert browser.post("/share", data=shared, headers={"Origin": SITE}).status_code == 403
    assert client(app).get("/share", params=shared).status_code == 401


def test_a_share_fetches_only_web_addresses(app: Starlette, memory: Settings) -> None:
    browser = own_client(app)
    browser.post("/login", data={"code": service.login_code(memory, 4321, time.time())})
    csrf = browser.get("/share").text.partition('name="csrf" content="')[2].partition('"')[0]
    for url, words in (("/etc/passwd", "address of a web page"), ("http://127.0.0.1:1/x", "private address")):
        answer = browser.post("/share", data={"csrf_token": csrf, "url": url, "act": "fetch"})
        assert (answer.status_code, words in answer.text) == (400, True), answer.text


def test_a_read_only_server_takes_no_clip(memory: Settings) -> None:
    with client(web_app.build_app(memory, readonly=True), token(memory, "readonly", "write")) as writer:
        assert writer.post(CLIP_PATH, json=clip("readonly")).status_code == 403
