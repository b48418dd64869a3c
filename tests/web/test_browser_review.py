"""Review, Settings and New in a real browser: each click on a memory of its own, and what the next page says."""

import os
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.web.dashboard import NARROW, NEEDS_BROWSER, Visit, call, lifelike, opened, program_address

from quaid.config import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = NEEDS_BROWSER

MIRA = "people/mira-dahlquist"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """One memory; each test changes another part of it."""
    return lifelike(str(tmp_path_factory.mktemp("review")))


def homes(memory: Settings) -> set[str]:
    facts = call(memory, "facts", subject=MIRA).facts
    return {item.object for item in facts if item.predicate == "lives_in"}


def two_values(visit: Visit) -> Any:
    return visit.page.locator(".contradiction", has_text="lives in Oslo, or lives in Malmö?")


def test_one_click_resolves_a_contradiction(visit: Visit, memory: Settings) -> None:
    page = visit.go("/review")
    sides = two_values(visit).locator(".version-of")
    left, right = (sides.nth(place).bounding_box() for place in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] < right["x"]
    sides.nth(0).locator("button").click()
    element = page.locator(".flash")
    assert "lives in Malmö never held" in element.inner_text()
    assert homes(memory) == {"Oslo"}
    assert two_values(visit).count() == 0
    element.locator("a").first.click()
    assert page.url.endswith(f"/page/{MIRA}/edit")
    page.goto(f"{visit.address}/review")
    page.click("text=Check now")
    assert two_values(visit).count() == 0


def test_gap_without_words_is_found_approved_and_closed(visit: Visit, memory: Settings) -> None:
    call(memory, "gaps add", query_text="When is the next dive?")
    call(memory, "gaps add", query_text="What is the number of the policy?")
    page = visit.go("/review?tab=gaps")
    page.fill("#which", "when is the next dive")
    page.click("button:text-is('Find')")
    element = page.locator(".gap.found")
    assert element.locator("details").get_attribute("open") is not None
    element.locator("input[name=approver]").fill("Mira")
    element.locator("select[name=sensitivity]").select_option("redacted")
    element.locator("button:has-text('Approve')").click()
    assert "redacted_query: is required" in page.locator(".gap.found .trouble").inner_text()
    assert page.locator(".gap.found input[name=query_text]").input_value() == "when is the next dive"
    visit.problems.clear()  # the browser notes that the form was refused
    page.locator(".gap.found input[name=redacted_query]").fill("When do they go out?")
    page.click(".gap.found button:has-text('Approve')")
    assert "is approved" in page.locator(".flash").inner_text()
    page.click("text=Close all 2 without words")
    assert "Closed 2 questions" in page.locator(".flash").inner_text()
    assert page.locator(".gap h2").all_inner_texts() == ["When do they go out?"]
    page.click(".gap button:has-text('Close')")
    assert page.locator(".empty").inner_text() == "No open questions."


def test_duplicates_are_kept_or_merged(visit: Visit, memory: Settings) -> None:
    twin = call(memory, "get", slug="concepts/salt-creep").compiled_truth
    call(memory, "put", slug="concepts/salt-comb", content=twin.replace("# Salt creep", "# Salt comb"))
    page = visit.go("/review?tab=duplicates")
    pairs = page.locator(".card")
    count = pairs.count()
    assert count == 3
    pairs.filter(has_text="Salt beard").filter(has_text="Salt creep").locator("text=Keep both").click()
    assert "are not the same" in page.locator(".flash").inner_text()
    assert page.locator(".card").count() == count - 1
    pairs.filter(has_text="Salt comb").filter(has_text="Salt creep").locator(
        "button:has-text('Merge into Salt creep')"
    ).click()
    page.click("button:text-is('Merge')")
    assert "Salt comb is now part of Salt creep" in page.locator(".flash").inner_text()
    assert call(memory, "get", slug="concepts/salt-comb").slug == "concepts/salt-creep"


def test_quarantined_page_is_restored_or_discarded(visit: Visit, memory: Settings) -> None:
    lost = Path(memory.cwd, "notes", "lost.md")
    page = visit.go("/review?tab=quarantine")
    page.click("text=Restore")
    assert "“The lost note” and its file lost.md are restored." in page.locator(".flash").inner_text()
    assert lost.exists()
    lost.unlink()
    visit.go("/settings")
    page.locator("tr", has_text="notes").locator("button").last.click()
    assert "notes is in sync with its folder: 1 removed." in page.locator(".flash").inner_text()
    visit.go("/review?tab=quarantine")
    page.check("input[name=sure]")
    page.click("text=Discard")
    assert page.locator(".flash").inner_text() == "“The lost note” is deleted."
    assert page.locator(".empty").inner_text() == "No pages in quarantine."


def test_settings_list_tokens_and_sessions(visit: Visit, memory: Settings, address: str) -> None:
    import httpx

    made = call(memory, "token create", name="phone")
    headers = {"Authorization": f"Bearer {made.token}", "Accept": "application/json"}
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "pocket <b>", "version": "1"},
    }
    with httpx.Client(base_url=program_address(address), headers=headers) as client:

        def post(method: str, params: dict[str, Any], **more: str) -> httpx.Response:
            frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return client.post("/mcp", json=frame, headers=more)

        begun = post("initialize", hello)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        for _ in range(2):
            post("tools/call", {"name": "memory_get", "arguments": {"slug": MIRA}}, **session)
    page = visit.go("/settings")
    there = page.locator("section", has=page.locator("#sessions-title"))
    assert "2 calls" in there.inner_text()
    assert "pocket" in there.inner_text()
    assert there.locator("b").count() == 0
    tokens = page.locator("#tokens")
    assert "last used" in tokens.inner_text()
    tokens.locator("summary:has-text('Revoke')").click()
    tokens.locator("button:has-text('Revoke phone')").click()
    assert "The token phone is revoked." in page.locator(".flash").inner_text()
    assert httpx.get(f"{program_address(address)}/api/memory/list", headers=headers).status_code == 401


def test_model_is_switched_and_its_state_shown(visit: Visit, memory: Settings) -> None:
    page = visit.go("/settings")
    page.check("input[value=off]")
    page.click("button:text-is('Change')")
    assert "Search by meaning is off" in page.locator(".flash").inner_text()
    assert page.locator("#embeddings .badge").first.inner_text() == "off"
    assert page.locator("input[value=off]").is_checked()
    name = page.locator("#embeddings input[name=name]:not([value=off]):not([disabled])")
    if name.count():
        name.first.check()
        page.click("button:text-is('Change')")
        assert "is in use" in page.locator(".flash").inner_text()
        assert call(memory, "embeddings status").on is True


def test_rebuild_shows_progress(visit: Visit, memory: Settings) -> None:
    call(memory, "embeddings off")
    page = visit.go("/settings")
    page.evaluate(
        "() => { const told = document.querySelector('[data-progress-text]'); window.seen = [];"
        " new MutationObserver(() => window.seen.push(told.textContent)).observe(told, {childList: true}); }"
    )
    page.click("button:text-is('Rebuild index')")
    page.locator("[data-progress-text]", has_text="is rebuilt.").wait_for()
    assert page.evaluate("window.seen")[0] == "Rebuilding the index …"
    log = page.locator("[data-log]").inner_text()
    assert "The index was rebuilt" in log
    for machine in ("True", "None", "finished", "succeeded"):
        assert machine not in log
    assert "Mira" not in log
    page.reload()
    assert page.locator("#index-title").count() == 1


def test_editor_warns_before_sending_a_text_that_is_too_long(visit: Visit, memory: Settings) -> None:
    before = call(memory, "get", slug=MIRA).version
    page = visit.go(f"/page/{MIRA}/edit")
    page.evaluate(
        "() => { const text = document.getElementById('text'); text.value = '# Mira\\n' + 'ä'.repeat(900000);"
        " text.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    page.click("button:text-is('Save')")
    element = page.locator("[data-too-long]")
    assert "it needs 5.2 MB, the limit is 5.0 MB" in element.inner_text()
    assert page.url.endswith("/edit")
    assert len(page.input_value("#text")) == 900_007
    assert call(memory, "get", slug=MIRA).version == before
    page.evaluate("() => { document.getElementById('text').value = '# Mira\\n'.repeat(3); }")
    page.once("dialog", lambda dialog: dialog.accept())


def test_save_button_is_visible_on_a_narrow_screen(
    browser: "Browser", memory: Settings, address: str
) -> None:
    visit = opened(browser, memory, address, NARROW)
    page = visit.go(f"/page/{MIRA}/edit")
    box = page.locator("button:text-is('Save')").bounding_box()
    menu = page.locator(".tab-bar").bounding_box()
    assert box
    assert menu
    assert box["y"] > 0
    assert box["y"] + box["height"] <= menu["y"] + 1
    page.context.close()


def test_collection_health_is_visible_on_a_narrow_screen(
    browser: "Browser", memory: Settings, address: str
) -> None:
    visit = opened(browser, memory, address, NARROW)
    page = visit.go("/settings")
    for badge in page.locator("#collections .badge").all():
        box = badge.bounding_box()
        assert box
        assert box["x"] + box["width"] <= NARROW[0]
    assert (
        page.evaluate(
            "() => { const t = document.querySelector('.table'); return t.scrollWidth - t.clientWidth; }"
        )
        <= 0
    )
    page.context.close()


def test_redacted_wording_is_requested_only_if_needed(visit: Visit, memory: Settings) -> None:
    call(memory, "gaps add", query_text="Who paints the hull?")
    page = visit.go("/review?tab=gaps")
    page.click("summary:has-text('Store its words')")
    wording = page.locator("input[name=redacted_query]").first
    assert not wording.is_visible()
    page.locator("select[name=sensitivity]").first.select_option("redacted")
    assert wording.is_visible()


def test_new_page_at_a_taken_address_links_to_that_page(visit: Visit) -> None:
    page = visit.go("/new")
    page.fill("#title", "Mira")
    page.fill("#slug", MIRA)
    page.fill("#text", "Another Mira.")
    page.click("button:has-text('Create')")
    assert "already exists" in page.locator(".there").inner_text()
    assert page.input_value("#text") == "Another Mira."
    page.click("text=Edit it")
    page.wait_for_url(f"**/page/{MIRA}/edit")
    visit.problems[:] = [problem for problem in visit.problems if "409" not in problem]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_pages_fit_in_light_and_dark(
    browser: "Browser", memory: Settings, address: str, scheme: Any
) -> None:
    visit = opened(browser, memory, address, NARROW, color_scheme=scheme)
    for path in ("/review", "/review?tab=gaps", f"/new?slug={MIRA}", "/settings", "/"):
        page = visit.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0], path
        if folder := os.environ.get("QUAID_LOOK"):
            name = path.strip("/").replace("/", "-").replace("?", "-") or "home"
            page.screenshot(path=os.path.join(folder, f"{name}-{scheme}.png"), full_page=True)
    visit.page.context.close()


def test_settings_do_what_the_shell_does(visit: Visit, memory: Settings) -> None:
    """The main path of each card: attach and detach a folder, connect a program, back up, change rights."""
    wiki = os.path.join(memory.user_home, "garden")
    os.makedirs(wiki)
    with open(os.path.join(wiki, "roses.md"), "w", encoding="utf-8") as file:
        file.write("# Roses\n\nThey need sun.\n")
    page = visit.go("/settings")
    page.click("text=Attach a folder")
    page.click(".folders >> text=garden")
    assert page.input_value("input[name=name]") == "garden"
    page.click("button:has-text('Attach this folder')")
    page.wait_for_selector(".flash:has-text('garden is attached, with 1 page.')")
    page.click("td >> text=garden")
    page.click("label:has-text('Remove its pages')")
    page.click("button:has-text('Detach')")
    page.wait_for_selector(".flash:has-text('1 page was removed')")
    page.click("#clients a:has-text('Connect Zed')")
    page.wait_for_selector(".diff .added")
    page.click("button:has-text('Connect')")
    page.wait_for_selector("#clients li:has-text('Zed') >> text=Disconnect")
    page.click("button:has-text('Back up now')")
    page.wait_for_selector(".flash:has-text('The backup is written and checked')")
    page.click("#backups button:has-text('Verify')")
    page.wait_for_selector(".flash:has-text('is intact')")
    page.check("#agents input[value=review]")
    page.click("#agents button:has-text('Save')")
    page.wait_for_selector(".flash:has-text('It applies to the next write of an agent.')")
    assert page.is_checked("#agents input[value=review]")
    call(memory, "config set", key="agent_writes", value="direct")
    page.click("summary:has-text('Use a model')")
    page.fill("input[name=place]", "/no/such/model")
    with page.expect_response("**/settings/rerank") as answer:
        page.click("button:has-text('Test and use')")
    assert answer.value.status >= 400
    assert page.input_value("input[name=place]") == "/no/such/model"
    assert page.locator("#embeddings [role=alert]").is_visible()
    visit.problems[:] = [problem for problem in visit.problems if "status of 4" not in problem]


def test_comparing_again_shows_progress(visit: Visit, memory: Settings) -> None:
    vault = Path(memory.cwd, "many")
    vault.mkdir()
    numbers = random.Random(1)
    for number in range(1_000):  # so many words that the comparison takes several times PROGRESS_DELAY
        words = " ".join(f"w{numbers.randrange(3_000)}" for _ in range(2_000))
        (vault / f"page-{number}.md").write_text(f"# Page {number}\n\n{words}\n")
    call(memory, "import", folder=str(vault))
    page = visit.go("/review?tab=duplicates")
    with page.expect_response("**/api/events"):  # the progress comes over this stream
        page.reload()
    page.evaluate(  # sessionStorage outlives the page, which the answer of the form replaces
        "() => new MutationObserver(() => { const words = document.querySelector('.progress p')?.textContent;"
        " if (words) sessionStorage.seen = [...(sessionStorage.seen ?? '').split('|'), words].join('|'); })"
        ".observe(document.body, {childList: true, subtree: true})"
    )
    page.click("text=Compare again")
    page.wait_for_selector(".flash:has-text('Compared ')")
    seen = page.evaluate("sessionStorage.seen").split("|")[1:]
    assert seen[0] == "Reading the pages …"
    assert any(re.match(r"(Reading|Comparing) [\d,]+ of [\d,]+ \(", words) for words in seen), seen
