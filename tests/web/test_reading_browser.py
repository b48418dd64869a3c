"""The reading pages in a real browser: the graph through time, findings that drop down, filters that stay."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from tests.web.dashboard import NARROW, NEEDS_BROWSER, Visit, call, lifelike, opened, served
from tests.web.test_browser import hurry

from quaid.config import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return lifelike(str(tmp_path_factory.mktemp("reading")))


def count(page: "Page") -> int:
    match = re.search(r"(\d+) links?", page.locator("[data-hint]").inner_text())
    assert match is not None
    return int(match[1])


def test_the_list_follows_the_slider_and_agrees_with_the_drawing(visit: Visit) -> None:
    page = visit.go("/graph?slug=companies/brineloop")
    page.wait_for_selector(".drawing[data-ready]")
    assert page.locator("[data-day]").inner_text().startswith("today, ")
    today = count(page)
    assert int(page.locator("[data-count]").inner_text()) == today
    slider = page.locator("[data-when]")
    slider.focus()
    days = []
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
        days.append(page.locator("[data-day]").inner_text())
    assert len(set(days)) == 6, "each arrow goes to another change"
    assert re.fullmatch(r"\d{1,2} [A-Z][a-z]+ 20\d\d", days[-1])
    then = count(page)
    assert 0 < then < today
    page.wait_for_function("n => document.querySelector('[data-count]').textContent === String(n)", arg=then)
    assert page.locator("[data-links] > li > a:first-child").count() == then
    assert page.locator("[data-list-title]").inner_text() == f"Links on {days[-1]}"
    page.wait_for_function("() => location.search.includes('on=')")
    page.reload()
    page.wait_for_selector(".drawing[data-ready]")
    assert page.locator("[data-day]").inner_text() == days[-1]
    assert count(page) == then


def test_play_runs_until_today(visit: Visit) -> None:
    page = visit.go("/graph?slug=people/teo-varland&depth=1")
    page.wait_for_selector(".drawing[data-ready]")
    page.click("[data-play]")
    page.wait_for_function("() => document.querySelector('[data-when]').valueAsNumber > 0")
    assert page.locator("[data-play]").get_attribute("aria-pressed") == "true"
    page.wait_for_selector("[data-play]:has-text('Play')", timeout=60_000)
    assert page.locator("[data-day]").inner_text().startswith("today, ")


def test_quick_search_on_any_page(visit: Visit) -> None:
    page = visit.go("/timeline")
    asked: list[str] = []
    page.on("request", lambda each: asked.append(each.url) if "/ui/search" in each.url else None)
    page.keyboard.press("/")
    hurry(page, "harbour")
    page.wait_for_selector(".quick-list [role=option] mark")
    assert len(asked) <= 3
    assert page.locator(".quick input").get_attribute("aria-expanded") == "true"
    leading = page.locator(".quick-list [role=option] a").evaluate_all("all => all.map((each) => each.hash)")
    steps = next(place for place, line in enumerate(leading, 1) if line)  # a finding within a text
    for _ in range(steps):
        page.keyboard.press("ArrowDown")
    chosen = page.locator(".quick-list [aria-selected=true] a")
    assert chosen.count() == 1
    href = chosen.get_attribute("href")
    assert href is not None
    page.keyboard.press("Escape")
    assert not page.locator(".quick-list").is_visible()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".quick-list:visible")
    for _ in range(steps):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{href}")
    assert page.locator(".here").count() == 1


def test_quick_search_opens_a_person_with_two_keys(visit: Visit) -> None:
    page = visit.go("/timeline")
    page.keyboard.press("/")
    page.keyboard.type("mira", delay=10)
    page.wait_for_selector(".quick-list [role=option] mark")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/page/people/mira-dahlquist")


def test_escape_leaves_the_field_with_its_text(visit: Visit) -> None:
    page = visit.go("/search?q=harbour")
    field = page.locator(".big-search input")
    field.focus()
    page.keyboard.press("Escape")
    assert field.input_value() == "harbour"
    assert page.evaluate("document.activeElement.tagName") != "INPUT"
    page.keyboard.press("j")
    assert page.locator(".findings .is-at").count() == 1
    visit.go("/timeline")
    page.keyboard.press("/")
    page.keyboard.type("harbour", delay=10)
    page.wait_for_selector(".quick-list [role=option]")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert page.locator(".quick input").input_value() == "harbour"
    assert page.evaluate("document.activeElement.tagName") != "INPUT"


@pytest.mark.parametrize("setting", ["off", "words"])
def test_opened_results_are_recorded_only_if_the_owner_wants_it(
    browser: "Browser", mine: Settings, setting: str
) -> None:
    pytest.importorskip("nacl")
    call(mine, "config set", key="log_opened", value=setting)
    with served(mine) as server:
        visit = opened(browser, mine, server)
        page = visit.go("/search?q=harbour+master")
        link = page.locator('#results a[data-item][href^="/page/"]').first
        slug = (
            unquote(str(link.get_attribute("href")))
            .removeprefix("/page/")
            .partition("#")[0]
            .partition("?")[0]
        )
        link.click()
        page.wait_for_url("**/page/**")
        page.wait_for_load_state("networkidle")
        page.context.close()
    proposed = [(row.question, row.slug) for row in call(mine, "golden suggest").value]
    assert proposed == ([("harbour master", slug)] if setting == "words" else [])


def test_enter_without_a_selection_searches(visit: Visit) -> None:
    page = visit.go("/")
    page.locator(".quick input").fill("harbour")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=harbour")
    page.click(".filters summary")
    page.select_option("select[name=type]", "person")
    page.wait_for_function("() => location.search.includes('type=person')")
    page.wait_for_function("() => document.querySelectorAll('.findings .t-person').length > 0")
    page.reload()
    assert page.locator("select[name=type]").input_value() == "person"
    assert page.locator(".findings .kind:not(.t-person)").count() == 0


def test_quick_search_fits_a_narrow_screen(
    browser: "Browser",
    memory: Settings,
    address: str,
) -> None:
    result = opened(browser, memory, address, NARROW)
    page = result.go("/page/people/mira-dahlquist")
    page.locator(".quick input").press_sequentially("harbour", delay=10)
    page.wait_for_selector(".quick-list [role=option]")
    frame = page.locator(".quick-list").bounding_box()
    assert frame is not None
    assert frame["x"] >= 0
    assert frame["x"] + frame["width"] <= NARROW[0]
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    assert result.problems == []
    page.context.close()


def test_truth_and_timeline_are_side_by_side_on_wide_screens(visit: Visit) -> None:
    page = visit.go("/page/people/mira-dahlquist")
    truth, line = (page.locator(name).bounding_box() for name in (".truth", ".line"))
    assert truth is not None
    assert line is not None
    assert abs(truth["y"] - line["y"]) < 40
    assert truth["x"] + truth["width"] <= line["x"]


def test_version_is_compared_and_reverted(visit: Visit) -> None:
    page = visit.go("/page/concepts/patience")
    page.click(".versions li:last-child >> text=Diff")
    page.wait_for_selector(".diff .added")
    assert page.locator(".diff .removed").inner_text() == "-The first thought."
    page.click(".versions li:last-child >> text=Revert")
    page.wait_for_selector(".flash")
    assert page.locator(".truth").inner_text().strip() == "The first thought."


def test_results_by_words_are_completed_unless_they_are_being_read(visit: Visit) -> None:
    page = visit.go("/search?q=harbour&fast=1")
    page.wait_for_selector("#results[aria-busy=false]")
    assert "fast" not in page.url
    waiting: list[Any] = []
    page.route("**/ui/search**", lambda route: waiting.append(route))
    with page.expect_request("**/ui/search**"):
        page.goto(f"{visit.address}/search?q=harbour&fast=1", wait_until="commit")
    first = page.locator("#results .group a").first
    first.focus()
    focused = first.get_attribute("href")
    assert waiting
    waiting.pop().continue_()
    page.wait_for_selector(".fuller")
    assert page.evaluate("document.activeElement.getAttribute('href')") == focused
    page.click(".fuller")
    assert page.locator("#results .group").count() > 0
    page.unroute("**/ui/search**")
    assert visit.problems == []
