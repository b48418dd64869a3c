"""Text that was typed and not saved: kept in the browser over crashes, logins, conflicts, reloads and other tabs."""

import re
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.web.dashboard import NEEDS_BROWSER, browser_address, call, lifelike, login, opened, settings_in
from tests.web.server_process import Process

from quaid.app import Brain
from quaid.config import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = NEEDS_BROWSER

TEXT = "textarea[name=text]"
RESTORED = re.compile(r"Your unsaved text from \d\d:\d\d was restored\.")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return lifelike(str(tmp_path_factory.mktemp("drafts")))


@pytest.fixture
def context(login_context: "BrowserContext") -> Iterator["BrowserContext"]:
    """The window that is logged in, without drafts of another test."""
    yield login_context
    page = login_context.pages[0]
    page.evaluate("localStorage.clear()")


def page_of(memory: Settings, slug: str, text: str) -> str:
    """Write a page and return the address of its editor."""
    call(memory, "put", slug=slug, content=f"# Page\n\n{text}\n")
    return f"/page/{slug}/edit"


def tab(context: "BrowserContext", address: str) -> "Page":
    page = context.new_page()
    page.goto(address)
    return page


def add(page: "Page", line: str) -> None:
    """Type a paragraph at the end of the text."""
    page.focus(TEXT)
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(f"\n{line}\n")


def kept(page: "Page", text: str) -> None:
    """Wait until the browser has stored the text."""
    page.wait_for_function(
        "text => Object.entries(localStorage).some("
        "([key, value]) => key.startsWith('draft:') && value.includes(text))",
        arg=text,
    )


def state(page: "Page", words: str) -> None:
    page.locator(".save-state", has_text=words).wait_for()


def truth(memory: Settings, slug: str) -> str:
    return str(call(memory, "get", slug=slug).compiled_truth)


def test_text_survives_a_killed_server_and_is_saved_when_it_is_back(
    browser: "Browser", tmp_path: object
) -> None:
    mine = settings_in(str(tmp_path))
    with Brain(mine) as brain:
        brain.create(mine.db_path)
    edit = page_of(mine, "concepts/crash", "First.")
    with Process(mine, "serve", "--http") as server:
        address = browser_address(mine, server.port)
        visit = opened(browser, mine, address)
        page = visit.go(edit)
        add(page, "Typed before the crash.")
        server.stop(signal.SIGKILL)
        page.keyboard.press("Control+s")
        state(page, "Not saved: the server does not answer. Your text is kept in this browser.")
        add(page, "Typed while it was down.")
        kept(page, "while it was down")
        assert truth(mine, "concepts/crash") == "# Page\n\nFirst."
    with Process(mine, "serve", "--http", port=server.port) as server:
        other = page.context.new_page()
        other.goto(login(mine, address))
        other.wait_for_url(f"{address}/")
        state(page, "Saved at")
        assert truth(mine, "concepts/crash").endswith("Typed before the crash.\n\nTyped while it was down.")
        page.reload()
        assert page.locator("[data-restored]").count() == 0
        # The same with a tab that was closed: the text waits for the next visit.
        add(page, "Typed before the tab was closed.")
        kept(page, "tab was closed")
        page.close()
        other.goto(f"{address}/")
        other.click("[data-kept] a")
        other.locator("[data-restored]", has_text=RESTORED).wait_for()
        assert "Typed before the tab was closed." in other.input_value(TEXT)
        other.click("button:has-text('Save')")
        other.wait_for_url("**/page/concepts/crash")
        assert truth(mine, "concepts/crash").endswith("Typed before the tab was closed.")
        other.goto(f"{address}/")
        assert other.locator("[data-kept]").count() == 0
        other.context.close()


def test_text_survives_the_end_of_the_session(browser: "Browser", memory: Settings, address: str) -> None:
    edit = page_of(memory, "concepts/session", "First.")
    page = opened(browser, memory, address).go(edit)
    add(page, "Typed after the end of the session.")
    page.context.clear_cookies()
    page.keyboard.press("Control+s")
    state(page, "Not saved: you are no longer logged in.")
    assert "next=%2Fpage%2Fconcepts%2Fsession%2Fedit" in str(
        page.locator(".save-state a").get_attribute("href")
    )
    assert "Typed" not in truth(memory, "concepts/session")
    page.goto(login(memory, address))
    page.wait_for_url(f"{address}/")
    page.goto(address + edit)
    page.locator("[data-restored]", has_text=RESTORED).wait_for()
    page.click("button:has-text('Save')")
    page.wait_for_url("**/page/concepts/session")
    assert truth(memory, "concepts/session").endswith("Typed after the end of the session.")
    page.context.close()


def test_reload_back_button_and_discard(context: "BrowserContext", memory: Settings, address: str) -> None:
    edit = page_of(memory, "concepts/back", "First.")
    page = tab(context, address + edit)
    add(page, "Typed.")
    page.reload()
    page.locator("[data-restored]", has_text=RESTORED).wait_for()
    assert "Typed." in page.input_value(TEXT)
    page.wait_for_selector("#preview >> text=Typed.")
    page.click("text=Cancel")
    page.wait_for_selector("[data-kept] a")
    page.go_back()
    page.locator("[data-restored]").wait_for()
    assert "Typed." in page.input_value(TEXT)
    page.click("[data-restored] button")
    assert page.input_value(TEXT).endswith("First.\n")
    page.reload()
    page.wait_for_timeout(300)
    assert page.locator("[data-restored]").count() == 0
    page.close()


def test_a_conflict_keeps_the_text_and_the_version_that_it_was_based_on(
    context: "BrowserContext", memory: Settings, address: str
) -> None:
    edit = page_of(memory, "concepts/conflict", "First.")
    page = tab(context, address + edit)
    page.fill(TEXT, "# Page\n\nMine.\n")
    kept(page, "Mine.")
    call(memory, "put", slug="concepts/conflict", content="# Page\n\nTheirs.\n")
    page.reload()
    page.locator("[data-restored]", has_text="The saved text has changed since then").wait_for()
    page.keyboard.press("Control+s")
    page.locator(".conflict").wait_for()
    assert "Theirs." in truth(memory, "concepts/conflict")
    assert "Mine." in page.input_value(TEXT)
    page.reload()
    page.locator("[data-restored]").wait_for()
    assert "Mine." in page.input_value(TEXT)
    page.close()


def test_two_tabs_of_one_page_keep_their_own_texts(
    context: "BrowserContext", memory: Settings, address: str
) -> None:
    edit = page_of(memory, "concepts/tabs", "First.\n\nSecond.\n\nThird.")
    one = tab(context, address + edit)
    one.fill(TEXT, "# Page\n\nFirst, of one.\n\nSecond.\n\nThird.\n")
    kept(one, "of one")
    other = tab(context, address + edit)
    other.locator(".restored", has_text="also being edited in another tab").wait_for()
    assert "of one" not in other.input_value(TEXT)
    other.fill(TEXT, "# Page\n\nFirst.\n\nSecond.\n\nThird, of the other.\n")
    other.keyboard.press("Control+s")
    state(other, "Saved at")
    kept(one, "of one")
    one.keyboard.press("Control+s")
    state(one, "merged")
    text = "# Page\n\nFirst, of one.\n\nSecond.\n\nThird, of the other."
    assert truth(memory, "concepts/tabs") == text
    assert one.input_value(TEXT).strip() == text
    one.close()
    other.close()


def test_drafts_of_notes_and_of_the_first_page(
    context: "BrowserContext", memory: Settings, address: str
) -> None:
    page = tab(context, f"{address}/notebook/lists/shopping.md?edit=1")
    add(page, "- Rope")
    page.goto(address)
    page.locator("[data-kept] a").wait_for()
    page.fill("[data-draft] [name=text]", "Sarah has moved to Bergen.")
    page.reload()
    page.locator("[data-restored]", has_text=RESTORED).wait_for()
    assert page.input_value("[data-draft] [name=text]") == "Sarah has moved to Bergen."
    page.goto(f"{address}/notebook/lists/shopping.md?edit=1")
    page.locator("[data-restored]").wait_for()
    page.keyboard.press("Control+s")
    state(page, "Saved at")
    assert "- Rope" in call(memory, "notebook read", path="lists/shopping.md").text
    page.close()


def test_logging_out_asks_before_it_deletes_drafts(
    browser: "Browser", context: "BrowserContext", memory: Settings, address: str
) -> None:
    edit = page_of(memory, "concepts/logout", "First.")
    page = opened(browser, memory, address).go(edit)
    add(page, "Typed.")
    asked: list[str] = []

    def answer(dialog: object) -> None:
        asked.append(dialog.message)  # type: ignore[attr-defined]
        (dialog.accept if len(asked) > 1 else dialog.dismiss)()  # type: ignore[attr-defined]

    page.on("dialog", answer)
    page.click(".foot [action='/logout'] button")
    assert "keeps one unsaved text" in asked[0]
    assert page.url.endswith(edit)
    kept(page, "Typed.")
    page.goto(f"{address}/settings")  # the browser of the other tests is logged in, too
    page.click("text=Log out everywhere")
    page.wait_for_selector("text=logged out on every device")
    assert len(asked) == 2
    page.goto(login(memory, address))
    page.wait_for_url(f"{address}/")
    assert page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('draft:')).length") == 0
    page.context.close()
    tab(context, login(memory, address)).wait_for_url(f"{address}/")


def test_drafts_of_another_memory_are_not_shown_and_old_ones_expire(
    context: "BrowserContext", memory: Settings, address: str
) -> None:
    edit = page_of(memory, "concepts/private", "First.")
    page = tab(context, address + edit)
    add(page, "Typed.")
    kept(page, "Typed.")
    page.evaluate(
        "() => { for (const [key, value] of Object.entries(localStorage)) { if (!key.startsWith('draft:')) continue;"
        " const rest = key.split(':').slice(2).join(':');"
        " localStorage.setItem(`draft:0123456789abcdef:${rest}`, value);"
        " const old = { ...JSON.parse(value), at: Date.now() - 31 * 86400000, path: '/old' };"
        " localStorage.setItem(`${key}-old`, JSON.stringify(old)); } }"
    )
    page.goto(f"{address}/settings")  # nothing is typed there, so no form stores anything
    page.evaluate(
        "() => Object.keys(localStorage).filter(key => key.startsWith('draft:') && !key.includes('0123456789abcdef')"
        " && !key.endsWith('-old')).forEach(key => localStorage.removeItem(key))"
    )
    page.goto(address + edit)
    page.wait_for_timeout(300)
    assert page.locator("[data-restored]").count() == 0
    assert page.evaluate("Object.keys(localStorage).filter(key => key.endsWith('-old')).length") == 0
    page.goto(address)
    page.wait_for_timeout(300)
    assert page.locator("[data-kept]").count() == 0
    page.close()
