"""The frame of the dashboard in a real browser: command palette, keys, focus, installation, accessibility."""

import os
import re
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from tests import commands
from tests.mcp.pipes import SOURCE
from tests.web.dashboard import (
    NARROW,
    NEEDS_BROWSER,
    WIDE,
    Visit,
    call,
    lifelike,
    login,
    opened,
    served,
)
from tests.web.test_browser import PAGES

from quaid.config import Settings
from quaid.web.pages import base
from quaid.web.pages.base import NAVIGATION

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = NEEDS_BROWSER

AXE = find_spec("axe_playwright_python")
NEEDS_AXE = pytest.mark.skipif(AXE is None, reason="needs axe (pip install axe-playwright-python)")


def violations(page: "Page", *rules: str) -> list[str]:
    """The rules of axe that the page violates, each with its first element. Empty if axe is not installed."""
    if AXE is None or AXE.origin is None:
        return []
    if not page.evaluate("'axe' in window"):
        with open(os.path.join(os.path.dirname(AXE.origin), "axe.min.js"), encoding="utf-8") as file:
            page.evaluate(file.read())
    options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    if rules:
        options = {**options, "runOnly": {"type": "rule", "values": rules}}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return lifelike(str(tmp_path_factory.mktemp("frame")))


def entries(page: "Page", group: str) -> list[str]:
    return page.locator(f"#palette [role=group]:has-text('{group}') [role=option]").all_inner_texts()


def test_palette_offers_sections_actions_and_commands_and_returns_the_focus(visit: Visit) -> None:
    page = visit.go("/page/concepts/patience")
    page.focus(".page-head [data-key=g]")
    page.keyboard.press("Control+k")
    assert entries(page, "Go to") == [name for _, name, _ in NAVIGATION]
    on_page = entries(page, "On this page")
    assert {"Edit this page", "Graph of this page", "History of this page", "Revert to version 2"} <= set(
        on_page
    )
    assert {"New page", "Light or dark", "Log out", "Sync all folders"} <= set(entries(page, "Commands"))
    field = page.locator("#palette [role=combobox]")
    for _ in range(3):  # the focus stays inside
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('body, #palette, #palette *')")
    field.focus()
    page.keyboard.press("ArrowDown")
    active = field.get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    assert page.locator(f"#{active}").inner_text() == on_page[1]
    page.keyboard.press("Escape")
    assert not page.locator("#palette").is_visible()
    assert page.evaluate("document.activeElement.dataset.key") == "g"


def test_palette_runs_what_is_chosen(visit: Visit, memory: Settings) -> None:
    page = visit.go("/timeline")
    page.keyboard.press("Control+k")
    page.keyboard.type("tidal batt")
    page.wait_for_selector("#palette [role=option]:has-text('Tidal battery')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/page/concepts/tidal-battery")
    page.keyboard.press("Control+k")
    page.keyboard.type("check contr")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review*")
    page.keyboard.press("Control+k")
    page.keyboard.type("Ebba prefers tea")
    page.click("#palette [role=option]:has-text('Remember “Ebba prefers tea”')")
    page.wait_for_selector(".flash")
    assert "Ebba prefers tea" in str(call(memory, "recall", query="Ebba tea"))
    page.keyboard.press("Control+k")
    page.keyboard.type("keyb")
    page.keyboard.press("Enter")
    assert page.locator("#help").is_visible()


def test_every_key_in_the_table_is_listed_in_the_help(visit: Visit) -> None:
    page = visit.go("/")
    page.keyboard.press("?")
    shown = page.locator("#help kbd").all_inner_texts()
    script = page.evaluate("fetch('/static/app.js').then(answer => answer.text())")
    keys = re.findall(r'keys: \["([^"]+)"\](, ctrl: true)?', script)
    assert len(keys) >= 6
    for key, ctrl in keys:
        assert (f"Ctrl {key.upper()}" if ctrl else key) in shown
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    page.wait_for_url("**" + NAVIGATION[2][0])


WATCH_FOCUS = """() => {
  const tabbable = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
  window.wanted = [...document.querySelectorAll(tabbable)].filter(each =>
    each.checkVisibility({ visibilityProperty: true }) && !each.disabled && each.tabIndex >= 0
    && !(each.type === 'radio' && !each.checked && document.querySelector(`input[name='${each.name}']:checked`)));
  window.reached = new Set();
  window.obscured = [];
  addEventListener('focusin', ({ target }) => {
    if (window.reached.has(target)) return;
    window.reached.add(target);
    const box = (target.closest('label') ?? target).getClientRects()[0]; // the first line of a link
    const x = Math.min(Math.max(box.x + box.width / 2, 0), innerWidth - 1);
    const y = Math.min(Math.max(box.y + Math.min(box.height / 2, 12), 0), innerHeight - 1);
    const top = document.elementFromPoint(x, y);
    const shown = top && (target.contains(top) || top.closest('label')?.contains(target));
    const ring = each => each && getComputedStyle(each).outlineStyle !== 'none';
    const ringed = ring(target) || target.closest('.big-search') || ring(target.nextElementSibling);
    if (!shown || !ringed) window.obscured.push(target.outerHTML.slice(0, 120));
  });
}"""


MISSED = """window.wanted.filter(each => each.isConnected && !window.reached.has(each))
  .map(each => each.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def sizes(browser: "Browser", memory: Settings, address: str) -> Iterator[list[Visit]]:
    visits = [opened(browser, memory, address), opened(browser, memory, address, NARROW)]
    yield visits
    for visit in visits:
        visit.page.context.close()


def test_tab_reaches_every_control_of_every_page_and_shows_it(sizes: list[Visit]) -> None:
    for at, (name, path) in enumerate(PAGES.items()):
        page = sizes[at % 2].go(path)  # every other page on the narrow screen
        if name in ("graph", "wing"):
            page.wait_for_selector(".drawing[data-ready]")  # the script has replaced the list
        page.evaluate(WATCH_FOCUS)
        page.evaluate("document.activeElement.blur()")
        for _ in range(page.evaluate("window.wanted.length") + 5):
            page.keyboard.press("Tab")
        assert page.evaluate(MISSED) == [], name
        assert page.evaluate("window.obscured") == [], name


CACHED = """async () => {
  const found = {};
  for (const name of await caches.keys())
    found[name] = (await (await caches.open(name)).keys()).map(each => each.url.slice(location.origin.length));
  return found;
}"""


REPLACED = """async old => {
  for (let names = [old]; names.length !== 1 || names[0] === old; names = await caches.keys())
    await new Promise(done => setTimeout(done, 50));
}"""


def test_offline_page_lists_unsaved_texts_and_only_static_files_are_cached(
    browser: "Browser", memory: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(memory) as address:
        visit = opened(browser, memory, address, service_workers="allow")
        page = visit.page
        page.evaluate("navigator.serviceWorker.ready")
        page.wait_for_function("navigator.serviceWorker.controller")
        page.goto(login(memory, address))  # a login while the service worker is active
        page.wait_for_url(f"{address}/")
        visit.go("/search?q=harbour")
        page.click("nav[aria-label=Main] >> text=Timeline")
        page.wait_for_url("**/timeline")
        [(release, urls)] = page.evaluate(CACHED).items()
        assert "/offline" in urls
        assert [url for url in urls if not re.fullmatch(r"/static/[\w.-]+\?v=[0-9a-f]{12}", url)] == [
            "/offline"
        ]
        monkeypatch.setitem(base.static_assets(), "new.js", base.StaticAsset(b"", b"", "", "0123456789ab"))
        page.evaluate("navigator.serviceWorker.ready.then(each => each.update())")
        page.evaluate(REPLACED, release)
        visit.go("/page/concepts/patience/edit")
        page.fill("textarea[name=text]", "# Patience\n\nA sentence that is not saved.\n")
        page.wait_for_selector("text=kept in this browser")
        page.wait_for_timeout(500)  # drafts are stored after a pause
        visit.problems.clear()
    page.goto(f"{address}/timeline")
    assert page.locator("h1").inner_text() == "Quaid is not running"
    page.click("summary")
    assert "A sentence that is not saved." in page.locator("[data-drafts]").inner_text()
    assert violations(page) == []
    page.context.close()


MORE_PAGES = {
    "not found": "/nowhere",
    "missing page": "/page/no/such",
    "start of the graph": "/graph",
    "knowledge base": "/kb",
    "agents": "/agents",
    "conversations": "/conversations",
    "folders": "/settings/folders",
    "phone": "/phone",
    "welcome": "/welcome",
    "proposals": "/review?tab=proposals",
    "conflicts": "/review?tab=conflicts",
}


SCREENS: list[tuple[int, Literal["light", "dark"]]] = [(1280, "light"), (390, "dark")]
"""QUAID_AXE=1 also tries the two other combinations, which takes twice as long."""
if os.environ.get("QUAID_AXE"):
    SCREENS += [(1280, "dark"), (390, "light")]


@NEEDS_AXE
def test_axe_finds_no_violation_on_any_page(browser: "Browser", memory: Settings, address: str) -> None:
    visit = opened(browser, memory, address, reduced_motion="reduce")
    for name, path in {**PAGES, **MORE_PAGES}.items():
        page = visit.go(path)
        for width, theme in SCREENS:
            page.set_viewport_size({"width": width, "height": 860})
            page.emulate_media(color_scheme=theme)
            assert violations(page) == [], (name, width, theme)
    page.context.close()


@NEEDS_AXE
def test_axe_finds_no_violation_in_dialogs_menus_and_the_login_page(
    browser: "Browser", memory: Settings, address: str
) -> None:
    for size in (WIDE, NARROW):
        for theme in ("light", "dark"):
            visit = opened(browser, memory, address, size, reduced_motion="reduce", color_scheme=theme)
            page = visit.go("/page/people/mira-dahlquist")
            page.keyboard.press("?")
            assert violations(page) == [], ("help", size, theme)
            page.keyboard.press("Escape")
            page.keyboard.press("Control+k")
            page.keyboard.type("tidal")
            page.wait_for_selector("#palette [role=option]:has-text('Tidal battery')")
            assert violations(page) == [], ("palette", size, theme)
            page.keyboard.press("Escape")
            if size is NARROW:
                page.click(".tab-bar button")
                assert violations(page) == [], ("menu", size, theme)
            page.context.clear_cookies()
            visit.go("/settings")
            assert violations(page) == [], ("login", size, theme)
            page.context.close()


def test_first_run_from_an_empty_home(browser: "Browser", tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "Notes").mkdir(parents=True)
    (home / "Notes" / "pier.md").write_text("# Pier nine\n\nThe crane is booked for May.\n")
    (home / ".cursor").mkdir()
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **commands.SHARED_MODELS}
    words = (commands.program(), "web", "--no-open", "--port", "0")
    with subprocess.Popen(words, cwd=home, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            link = re.search(r"http://\S+", process.stdout.readline())
            assert link is not None
            page = browser.new_context(service_workers="block").new_page()
            page.goto(link[0])
            page.wait_for_url("**/welcome")
            page.fill("#path", "Notes")
            page.click("text=Attach")
            assert "whole path" in page.locator("[role=alert]").inner_text()
            assert page.input_value("#path") == "Notes"
            page.fill("#path", "~/Notes")
            page.click("text=Attach")
            page.wait_for_selector(".flash:has-text('notes is attached: 1 page.')")
            page.click("[aria-label='Connect Cursor']")
            page.wait_for_selector(".flash:has-text('Cursor is connected.')")
            assert "quaid" in (home / ".cursor" / "mcp.json").read_text()
            page.click("text=Add the sample")
            page.wait_for_selector(".flash:has-text('The sample is there')")
            assert violations(page) == []
            page.click("text=Continue to Today")
            page.wait_for_selector(".hint-card")
            assert violations(page) == []
            address = page.url
            page.goto(f"{address}search?q=crane")
            assert page.locator(".findings a").count() >= 1
            page.goto(address)
            page.click("text=Remove the sample")
            page.wait_for_selector(".flash:has-text('The sample is removed.')")
            assert not (home / ".quaid" / "memory-sample").exists()
            page.click("text=Close this hint")
            page.wait_for_selector("h1:has-text('Today')")
            assert page.locator(".hint-card").count() == 0
            page.goto(address)
            assert page.url == address  # the questions do not come again
            page.context.close()
        finally:
            process.terminate()
            process.wait(60)
