"""The graph of the whole memory: its data, groups without links, and the drawing of 1,500 pages in a browser."""

import gzip
import json
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.web.dashboard import (
    NARROW,
    NEEDS_BROWSER,
    Visit,
    Visitor,
    call,
    opened,
    settings_in,
    visiting,
    where,
)

from quaid.app import Brain
from quaid.config import Settings
from quaid.model.page import Page, build_page
from quaid.storage import page_edits
from quaid.web.pages import search as graph_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page as BrowserPage

PAGES, TEAMS = 1_500, 12
WINGS = ("people", "companies", "projects")
NOW = "2026-04-25T12:00:00Z"


def slug_of(number: int) -> str:
    return f"{WINGS[number % len(WINGS)]}/page-{number}"


def teams(count: int) -> Iterator[Page]:
    """Pages in teams: most links stay inside the team, and the first page of a team is its hub."""
    rng = random.Random(3)
    size = count // TEAMS
    for number in range(count):
        team = min(number // size, TEAMS - 1) * size
        ends = [team, *(team + rng.randrange(size) for _ in range(3))]
        if rng.random() < 0.1:
            ends.append(rng.randrange(count))
        links = " ".join(f"[[{slug_of(end)}]]" for end in ends if end != number)
        title = f"Hub {number // size}" if number == team else f"Page {number}"
        yield build_page(slug_of(number), {}, f"# {title}\n\n> About {title}.\n\n{links}\n", "")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = settings_in(str(tmp_path_factory.mktemp("teams")))
    with Brain(settings) as brain:
        db = brain.create(settings.db_path)

        def work(tx: Any) -> None:
            for number, page in enumerate(teams(PAGES)):
                uuid = f"00000000-0000-4000-8000-{number:012x}"
                page_edits.save(tx, page, uuid=uuid, now=NOW, expected_version=0)

        db.write(work)
    return settings


@pytest.fixture(scope="module")
def visitor(memory: Settings) -> Iterator[Visitor]:
    with visiting(memory) as visitor:
        yield visitor


def test_data_of_the_whole_memory_is_packed_and_kept_until_a_write(
    visitor: Visitor, memory: Settings
) -> None:
    answer = visitor.get("/ui/graph", **{"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    output = answer.json()
    assert len(output["slugs"]) == len(output["type"]) == len(output["ages"]) == output["pages"] == PAGES
    assert len(output["links"]) % 6 == 0
    assert max(output["links"][::6]) < PAGES
    assert visitor.get("/ui/graph", **{"Accept-Encoding": "identity"}).json() == output
    call(memory, "put", slug="people/late", content="# Late\n\nKnows [[people/page-0]].\n")
    assert len(visitor.get("/ui/graph").json()["slugs"]) == PAGES + 1
    call(memory, "forget", slug="people/late", yes=True)


def test_pages_beyond_the_limit_are_left_out_and_the_page_says_so(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_pages, "MAX_NODES", 300)
    page = visitor.get("/graph").text
    assert "The drawing shows the 300 with the most links." in page
    output = json.loads(gzip.decompress(graph_pages.encode_graph(graph_pages.GraphView([], (), (), 0))))
    assert output["slugs"] == []
    degrees = visitor.get("/ui/graph").json()
    assert len(degrees["slugs"]) == 300
    assert {f"Hub {team}" for team in range(TEAMS)} <= set(degrees["titles"])


def test_a_group_without_links_offers_pages_and_links(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = settings_in(str(tmp_path_factory.mktemp("loose")))
    with Brain(settings) as brain:
        brain.create(settings.db_path)
    with visiting(settings) as visitor:
        assert "Nothing to draw yet" in visitor.get("/graph").text
        call(settings, "put", slug="people/ada", content="# Ada Lovell\n\nA pilot.\n")
        call(settings, "put", slug="people/bo", content="# Bo Lindqvist\n\nSails with Ada Lovell.\n")
        page = visitor.get("/graph?wing=people").text
        assert "not linked yet" in page
        assert 'class="drawing' not in page
        assert 'names <a href="/page/people/ada">' in page
        answer = visitor.post("/graph/link", **{"wing": "people", "from": "people/bo", "to": "people/ada"})
        assert answer.headers["location"] == "/graph?wing=people"
        page = visitor.get("/graph?wing=people").text
        assert "Bo now links to Ada." in page
        assert 'class="drawing' in page
        wrong = visitor.post("/graph/link", **{"wing": "people", "from": "people/bo", "to": "people/bo"})
        assert wrong.status_code == 400
        assert "is the same page" in wrong.text


def test_panel_shows_summary_and_links(visitor: Visitor) -> None:
    panel = visitor.get("/ui/graph/page?slug=people/page-0").text
    assert "About Hub 0." in panel
    assert panel.count("data-node=") == graph_pages.MAX_PANEL_LINKS
    assert "<html" not in panel
    assert visitor.get("/ui/graph/page?slug=people/nobody").status_code == 404


def drawn(visit: Visit, path: str = "/graph") -> "BrowserPage":
    page = visit.go(path)
    page.wait_for_selector(".drawing[data-resting][data-first]")
    return page


@NEEDS_BROWSER
def test_whole_memory_is_drawn_found_filtered_and_opened(visit: Visit) -> None:
    page = drawn(visit)
    assert page.locator("[data-hint]").inner_text().startswith("1,500 pages, ")
    page.fill("#find", "hub 7")
    page.wait_for_selector("#find-list [role=option]")
    page.keyboard.press("Enter")
    page.wait_for_selector(".panel >> text=About Hub 7.")
    assert page.locator(".panel .trouble").count() == 0
    spot = where(page, slug_of(7 * (PAGES // TEAMS)))
    frame = page.locator("canvas").bounding_box()
    assert frame is not None
    assert abs(spot["x"] - frame["width"] / 2) < 2, "the page is in the centre"
    page.click("[data-panel-close]")
    page.click("[data-legend] button:has-text('person')")
    assert "of 1,500 pages" in page.locator("[data-hint]").inner_text()
    page.wait_for_selector("[data-count]:has-text('1,000')")
    page.click("[data-legend] button:has-text('person')")
    for mode, row in (("group", "companies"), ("age", "earlier"), ("cluster", "around Hub")):
        page.select_option("[data-colour]", mode)
        assert row in page.locator("[data-legend]").inner_text()
    page.locator("canvas").focus()
    page.keyboard.press("n")
    page.wait_for_selector(".panel >> text=About Hub")
    page.keyboard.press("Escape")
    assert not page.locator(".panel").is_visible()
    page.keyboard.press("n")
    page.wait_for_selector(".panel >> text=About Hub")
    page.keyboard.press("Enter")
    page.wait_for_url("**/page/*/page-*")
    assert visit.problems == []


@NEEDS_BROWSER
def test_clusters_are_the_teams_and_the_same_each_time(visit: Visit) -> None:
    page = visit.go("/graph")
    result = page.evaluate(
        """async () => {
            const { communities } = await import('/static/layout.js');
            const data = await (await fetch('/ui/graph')).json();
            const links = data.links.filter((_, i) => i % 6 < 2);
            const run = () => [...communities(data.slugs.length, Int32Array.from(links))];
            const first = run();
            return { same: String(first) === String(run()), groups: first, slugs: data.slugs };
        }"""
    )
    assert result["same"]
    size = PAGES // TEAMS
    together = 0
    for team in range(TEAMS):
        found = [
            group
            for group, slug in zip(result["groups"], result["slugs"], strict=True)
            if int(slug.rpartition("-")[2]) // size == team
        ]
        together += max(found.count(group) for group in set(found))
    assert together > 0.9 * PAGES


@NEEDS_BROWSER
def test_a_return_shows_the_same_picture_without_a_new_layout(visit: Visit) -> None:
    page = drawn(visit)
    before = where(page, "people/page-0")
    visit.go("/timeline")
    page = drawn(visit)
    after = where(page, "people/page-0")
    assert abs(before["x"] - after["x"]) < 2
    assert abs(before["y"] - after["y"]) < 2


@NEEDS_BROWSER
def test_graph_fits_a_narrow_screen(browser: "Browser", memory: Settings, address: str) -> None:
    visit = opened(browser, memory, address, NARROW)
    page = drawn(visit)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    page.fill("#find", "hub 3")
    page.keyboard.press("Enter")
    page.wait_for_selector(".panel >> text=About Hub 3.")
    panel, canvas = page.locator(".panel").bounding_box(), page.locator("canvas").bounding_box()
    assert panel is not None
    assert canvas is not None
    assert panel["y"] >= canvas["y"] + canvas["height"] - 1, "the panel is below the drawing"
    assert visit.problems == []
    page.context.close()
