"""The editor in a real browser: new pages, links that complete themselves, images, lists, and the keyboard alone."""

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.dashboard import NARROW, NEEDS_BROWSER, Visit, call, lifelike, opened

from quaid.config import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = NEEDS_BROWSER

TEXT = "textarea[name=text]"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return lifelike(str(tmp_path_factory.mktemp("editor")))


def tab_to(page: "Page", selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached with Tab")


def saved(page: "Page") -> None:
    page.locator(".save-state", has_text="Saved at").wait_for()


def test_a_page_is_found_edited_linked_and_saved_with_the_keyboard(visit: Visit, memory: Settings) -> None:
    page = visit.go("/")
    page.keyboard.press("/")
    page.keyboard.type("patience")
    page.wait_for_selector(".quick [role=option]:has-text('Patience')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/page/concepts/patience*")
    page.keyboard.press("e")
    page.wait_for_url("**/page/concepts/patience/edit")
    tab_to(page, TEXT)
    page.keyboard.press("Control+End")
    page.keyboard.type("Ask [[dahl")
    page.wait_for_selector(".offers [role=option]:has-text('Mira Dahlquist')")
    area = page.locator(TEXT)
    assert area.get_attribute("role") == "combobox"
    assert area.get_attribute("aria-activedescendant") == "offer-0"
    page.keyboard.press("Escape")
    assert page.locator(".offers:visible").count() == 0
    assert area.evaluate("each => each === document.activeElement"), "the first Esc only closes the list"
    page.keyboard.press("Backspace")
    page.wait_for_selector(".offers [role=option]:has-text('Mira Dahlquist')")
    while "Mira" not in page.locator(".offers [aria-selected=true]").inner_text():
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type(" first.")
    assert area.input_value().endswith("Ask [[people/mira-dahlquist]] first.")
    assert area.get_attribute("role") is None
    page.wait_for_selector("#preview a:has-text('Mira Dahlquist')")
    page.keyboard.press("Control+s")
    saved(page)
    page.keyboard.type(" Then wait.")
    page.keyboard.press("Control+s")
    page.wait_for_selector("[name=version][value='5']", state="attached")
    truth = call(memory, "get", slug="concepts/patience").compiled_truth
    assert truth.endswith("Ask [[people/mira-dahlquist]] first. Then wait.")


def test_the_address_of_a_new_page_follows_its_title(visit: Visit, memory: Settings) -> None:
    page = visit.go("/new")
    page.keyboard.type("Zoë's Harbour: part 2")
    assert page.input_value("#slug") == "zoe-s-harbour-part-2"
    page.fill("#slug", "projects/harbour-2")
    page.fill("#title", "Harbour two")
    assert page.input_value("#slug") == "projects/harbour-2"
    page.fill(TEXT, "A long quay.")
    page.wait_for_selector("#preview h1:has-text('Harbour two')")
    page.keyboard.press("Control+s")
    page.wait_for_url("**/page/projects/harbour-2/edit")
    assert call(memory, "get", slug="projects/harbour-2").title == "Harbour two"


def test_the_editor_fits_a_narrow_screen(browser: "Browser", memory: Settings, address: str) -> None:
    visit = opened(browser, memory, address, NARROW)
    for path in ("/new", "/page/people/mira-dahlquist/edit", "/notebook/lists/todos.md?edit=1"):
        page = visit.go(path)
        page.focus(TEXT)
        page.keyboard.press("Control+End")
        page.keyboard.type(" [[br")
        offers = page.locator(".offers")
        offers.locator("li").first.wait_for()
        box = offers.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= NARROW[0]
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0], path
    assert visit.problems == []
    visit.page.context.close()


def test_boxes_and_lists_of_a_note_are_changed_in_place(visit: Visit, memory: Settings) -> None:
    path = "lists/trip.md"
    first = (
        "---\ntags: [trip]\n---\n## Trip\n\n- [ ] Rope\n- [ ] Charts\n  - north\n  - south\n- [x] Flares\n"
    )
    call(memory, "notebook write", path=path, content=first, replace=True)

    def text() -> str:
        return str(call(memory, "notebook read", path=path).text)

    page = visit.go(f"/notebook/{path}")
    page.click("[role=checkbox][aria-label=Rope]")
    page.wait_for_selector("[role=checkbox][aria-label=Rope][aria-checked=true]")
    assert text() == first.replace("[ ] Rope", "[x] Rope")
    page.focus("[role=checkbox][aria-label=Flares]")
    page.keyboard.press("Space")
    page.wait_for_selector("[role=checkbox][aria-label=Flares][aria-checked=false]")
    page.keyboard.press("Alt+ArrowUp")
    page.wait_for_selector("[data-line-state]:has-text('Moved to place 2.')")
    assert text().split("\n", 5)[5] == "- [x] Rope\n- [ ] Flares\n- [ ] Charts\n  - north\n  - south\n"
    page.click("button[aria-label='Move down: north']")
    page.wait_for_selector("li:has-text('south') + li:has-text('north')")
    page.drag_and_drop("li:has-text('Charts') > .mover .grip", "li:has-text('Rope')")
    page.wait_for_selector("[data-line-state]:has-text('Moved to place 1.')")
    assert text().split("\n", 5)[5] == "- [ ] Charts\n  - south\n  - north\n- [x] Rope\n- [ ] Flares\n"
    call(memory, "notebook write", path=path, content="- [ ] Elsewhere\n")
    page.click("[role=checkbox][aria-label=Flares]")
    page.wait_for_selector("[data-line-state]:has-text('changed meanwhile')")
    assert "- [ ] Flares" in text()
    assert page.locator("[role=checkbox][aria-label=Elsewhere]").count() == 1
    page = visit.go(f"/notebook/{path}?edit=1")
    page.locator(TEXT).evaluate(
        "area => { area.focus(); const at = area.value.indexOf('Rope'); area.setSelectionRange(at, at); }"
    )
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.type("Long ")
    page.keyboard.press("Control+s")
    saved(page)
    assert "\n- [x] Long Rope\n- [ ] Charts\n  - south\n  - north\n- [ ] Flares\n" in text()
    visit.problems[:] = [problem for problem in visit.problems if "409" not in problem]


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_pasted_image_is_stored_shown_exported_and_forgotten(
    visit: Visit, memory: Settings, tmp_path: Path
) -> None:
    call(memory, "put", slug="concepts/photo", content="# Photo\n\nSee:\n")
    name = f"{hashlib.sha256(PIXEL).hexdigest()[:32]}.png"
    for path in ("/page/concepts/photo/edit", "/notebook/lists/shopping.md?edit=1"):
        page = visit.go(path)
        page.focus(TEXT)
        page.keyboard.press("Control+End")
        page.evaluate(
            "encoded => { const bytes = Uint8Array.from(atob(encoded), (each) => each.charCodeAt(0));"
            " const data = new DataTransfer();"
            " data.items.add(new File([bytes], 'Pier [9].png', { type: 'image/png' }));"
            " document.activeElement.dispatchEvent("
            "new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); }",
            base64.b64encode(PIXEL).decode(),
        )
        page.wait_for_selector(f"#preview img[src^='/attachment/{name}']")
        assert page.input_value(TEXT).endswith(f"![Pier  9 ](attachments/{name})")
        assert page.evaluate("document.querySelector('#preview img').decode().then(() => true)")
        page.keyboard.press("Control+s")
        saved(page)
    beside = Path(memory.cwd)
    assert (beside / "memory.attachments" / name).read_bytes() == PIXEL
    assert (beside / "notebook" / "lists" / "attachments" / name).read_bytes() == PIXEL
    fake = tmp_path / "fake.png"
    fake.write_bytes(b"<svg>")
    page.set_input_files("[data-add-image] input", fake)
    page.locator(".save-state", has_text="must be a PNG, JPEG, GIF or WebP image").wait_for()
    call(memory, "export", dir=str(tmp_path / "out"))
    assert (tmp_path / "out" / "concepts" / "attachments" / name).read_bytes() == PIXEL
    assert len(list((tmp_path / "out").glob(f"**/attachments/{name}"))) == 2
    call(memory, "forget", slug="concepts/photo", yes=True)
    assert not (beside / "memory.attachments" / name).exists()
    assert (beside / "notebook" / "lists" / "attachments" / name).exists()
    visit.problems[:] = [problem for problem in visit.problems if "400" not in problem]
