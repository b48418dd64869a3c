"""Today: the box for notes, to-dos that are ticked in place, changes since the last look."""

import os
import re
import time
from collections.abc import Iterator

import pytest
from tests.web.dashboard import (
    CHROMIUM,
    FLAGS,
    NARROW,
    NEEDS_BROWSER,
    Visitor,
    call,
    called,
    opened,
    served,
    settings_in,
    visiting,
)

from quaid.app import Brain
from quaid.config import Settings
from quaid.model import dates
from quaid.web.pages.review import TABS
from quaid.web.pages.today import WAITING_URLS


@pytest.fixture
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = str(tmp_path_factory.mktemp("today"))
    settings = settings_in(folder)
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        brain._clock = lambda: time.time() - 60
        called(brain, "notebook init")
        today = brain.local()[:10]
        late = dates.shift_date(today, -2)
        called(brain, "remember", content="call the bank", category="todos")
        called(brain, "put", slug="projects/harbour", content=f"# Harbour\n\n- [ ] Order piles ({late})\n")
        text = f"---\ntype: commitment\nstatus: in progress\ndue: {today}\n---\n# The <b>draft</b>\n"
        called(brain, "put", slug="c/draft", content=text)
        called(brain, "put", slug="people/ines", content="# Ines\n\nMine.\n")
        called(brain, "config set", key="agent_writes", value="direct")
        brain.agent = "claude-code"
        called(brain, "put", slug="people/ines", content="# Ines\n\nTheirs.\n", expected_version=1)
        called(brain, "put", slug="notes/new", content="# New note\n", expected_version=0)
    return settings


@pytest.fixture
def visitor(memory: Settings) -> Iterator[Visitor]:
    with visiting(memory) as visitor:
        yield visitor


def said(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def part(visitor: Visitor, id: str) -> str:
    return visitor.get("/").text.partition(f'id="{id}"')[2].partition("</section>")[0]


def flash(visitor: Visitor) -> str:
    return said(
        visitor.get("/").text.partition('class="flash-line"')[2].partition("</div>")[0].partition(">")[2]
    )


def fields(html: str, before: str) -> dict[str, str]:
    """The hidden fields of the first form after a text."""
    form = html.partition(before)[2].partition("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_a_note_with_a_day_is_due_at_once_and_can_be_undone(visitor: Visitor, memory: Settings) -> None:
    assert visitor.post("/jot", text="book flights tomorrow").headers["location"] == "/"
    page = visitor.get("/").text
    day = dates.shift_date(call(memory, "today").day, 1)
    assert re.search(r"Added to your to-dos, due \d+ \w+ 20\d\d\.", said(page))
    assert 'href="/notebook/lists/todos.md?at=L3#L3">Show it</a>' in page
    assert "Book flights tomorrow" in said(part(visitor, "due"))
    assert f"Book flights tomorrow (due {day})" in call(memory, "notebook read", path="lists/todos.md").text
    visitor.post("/today/undo", **fields(page, 'class="undo"'))
    assert flash(visitor).startswith(" Undone.")
    assert "flights" not in call(memory, "notebook read", path="lists/todos.md").text
    again = visitor.post("/today/undo", **fields(page, 'class="undo"'))
    assert again.status_code == 303
    assert "not undone" in flash(visitor)


def test_the_box_says_where_a_note_went(visitor: Visitor, memory: Settings) -> None:
    for text, message in (
        ("Sarah prefers email", "Added to your preferences."),
        ("Sarah prefers email", "Your notebook already says so."),
        ("buy milk and eggs", "Added to your shopping list (Milk; Eggs)."),
        ("add Dune to my reading list", "Added to the list Reading."),
        ("done: call the bank", "Ticked off: Call the bank."),
    ):
        visitor.post("/jot", text=text)
        assert message in flash(visitor), text
    visitor.post("/jot", text="Shipped it", where="log")
    assert "Added to today" in flash(visitor)
    visitor.post("/jot", text="buy milk", where="")
    assert (
        visitor.post("/jot", text="Where does Ines live?").headers["location"].startswith("/search?q=Where")
    )
    new = visitor.post("/jot", text="add Emma to my film list")
    assert new.status_code == 303
    page = visitor.get("/").text
    visitor.post("/today/undo", **fields(page, 'class="undo"'))
    assert "Emma" not in call(memory, "notebook read", path="lists/film.md").text


def test_typed_text_survives_an_error(visitor: Visitor, memory: Settings) -> None:
    os.rename(os.path.join(memory.cwd, "notebook"), os.path.join(memory.cwd, "elsewhere"))
    answer = visitor.post("/jot", text="The key is under the <pot>")
    assert answer.status_code >= 400
    assert "The key is under the &lt;pot&gt;</textarea>" in answer.text


def test_items_are_ticked_and_opened_again_without_a_script(visitor: Visitor, memory: Settings) -> None:
    due = part(visitor, "due")
    assert said(due).index("Order piles") < said(due).index("The draft")
    assert "2 days late" in said(due)
    for slug, name in (("projects/harbour", "Order piles"), ("c/draft", "The draft")):
        visitor.post("/today/tick", **fields(due, 'class="due-item'))
        page = visitor.get("/").text
        assert "Done: " in said(page)
        assert name not in said(page.partition('id="due"')[2].partition("</section>")[0])
        due = page.partition('id="due"')[2].partition("</section>")[0]
        undo = fields(page, 'class="undo"')
        assert undo["slug"] == slug
        if slug == "c/draft":
            assert call(memory, "get", slug=slug).frontmatter["status"] == "done"
            visitor.post("/today/tick", **undo)
            assert call(memory, "get", slug=slug).frontmatter["status"] == "in progress"
            assert name in said(part(visitor, "due"))
    gone = visitor.post("/today/tick", slug="projects/harbour", text="Never written", line=3)
    assert gone.status_code == 303
    assert "was changed in the meantime" in flash(visitor)


def test_changes_of_an_agent_can_be_undone(visitor: Visitor, memory: Settings) -> None:
    changed = part(visitor, "changed")
    assert said(changed).index("claude-code changed 2 pages") < said(changed).index("You changed")
    assert 'href="/page/people/ines?diff=1#diff"' in changed
    assert changed.count(">Undo<") == 1  # a new page has no earlier text
    visitor.post("/today/undo", **fields(changed, 'class="news-actions"'))
    assert "Undone." in flash(visitor)
    assert "Mine." in call(memory, "get", slug="people/ines").compiled_truth


def test_changes_stay_until_they_are_marked_as_seen(visitor: Visitor, memory: Settings) -> None:
    for _ in range(3):
        assert "claude-code" in said(part(visitor, "changed"))
    assert call(memory, "today").looked_at
    until = fields(visitor.get("/").text, 'action="/today/seen"')["until"]
    with Brain(memory) as brain:
        brain.agent = "codex"
        called(brain, "put", slug="notes/later", content="# Written later\n", expected_version=0)
    visitor.post("/today/seen", until=until)
    shown = said(part(visitor, "changed"))
    assert "codex changed 1 page Written later" in shown
    assert "claude-code" not in shown


def test_reading_tokens_see_no_forms_and_record_no_look(memory: Settings) -> None:
    token = call(memory, "token create", name="phone", scope="read").token
    with visiting(memory) as visitor:
        call(memory, "seen", until="2026-01-01T00:00:00Z")
        visitor._client.cookies.clear()
        page = visitor.get("/", Authorization=f"Bearer {token}").text
        assert "Order piles" in page
        assert "/today/" not in page
    assert call(memory, "today").looked_at == "2026-01-01T00:00:00Z"


@NEEDS_BROWSER
def test_ticking_in_place_keeps_scroll_and_typed_text(memory: Settings) -> None:
    from playwright.sync_api import sync_playwright

    with Brain(memory) as brain:
        for number in range(12):
            called(brain, "remember", content=f"call number {number} tomorrow", category="todos")
    with served(memory) as address, sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        visit = opened(browser, memory, address, NARROW)
        page = visit.page
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
        box = page.locator(".tick").first.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
        page.fill("#jot", "half a thought")
        page.locator(".tick").nth(5).scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        page.locator(".tick").nth(5).click()
        page.wait_for_selector("#due .flash")
        assert "Done: " in page.locator("#due .flash").inner_text()
        assert page.evaluate("document.activeElement.textContent") == "Undo"
        assert page.evaluate("scrollY") == before
        assert page.input_value("#jot") == "half a thought"
        page.keyboard.press("Enter")
        page.wait_for_selector("#due .flash:has-text('Open again')")
        page.fill("#jot", "send the plan by 2 December")
        page.press("#jot", "Enter")
        page.wait_for_selector("main > .flash-line")
        assert "Added to your to-dos, due 2 December" in page.locator(".flash").inner_text()
        assert page.input_value("#jot") == ""
        assert visit.problems == []
        browser.close()


def test_what_waits_leads_to_a_tab_of_the_review_page() -> None:
    tabs = {tab for tab, _ in TABS}
    for kind, url in WAITING_URLS.items():
        tab = url.partition("?tab=")[2]
        assert tab in ("", kind), kind
        assert not tab or tab in tabs
