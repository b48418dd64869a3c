"""The knowledge base in the dashboard: start one, list, create and edit nodes, lint before saving."""

import html
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.dashboard import NARROW, NEEDS_BROWSER, Visitor, call, opened, served, settings_in, visiting

from quaid.app import Brain
from quaid.config import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ODD_STATUS = partial(re.sub, r":STATUS:( +)current", r":STATUS:\1odd")


@pytest.fixture
def memory(tmp_path: Path) -> Settings:
    settings = settings_in(str(tmp_path))
    (tmp_path / "person").mkdir()
    settings = settings._replace(environ={**settings.environ, "AI_KB_DIR": str(tmp_path / "kb")})
    with Brain(settings) as brain:
        brain.create(settings.db_path)
    return settings


@pytest.fixture
def known(memory: Settings) -> Settings:
    """A memory with a knowledge base of two nodes."""
    call(memory, "kb init")
    for title, kind in (("Formatter order", "principle"), ("Commit hook", "reference")):
        summary = f"All about the {title.lower()}."
        call(memory, "kb remember", content=f"The {title}.", title=title, summary=summary, type=kind)
    return memory


@pytest.fixture
def visitor(known: Settings) -> Iterator[Visitor]:
    with visiting(known) as client:
        yield client


def node(memory: Settings, title: str) -> tuple[str, str]:
    """Return id and text of a node."""
    shown = call(memory, "kb show", node=title)
    return shown.node.id, shown.text


def last_commit(memory: Settings) -> str:
    folder = memory.environ["AI_KB_DIR"]
    command = ["git", "-C", folder, "log", "-1", "--format=%s"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_page_offers_to_start_a_knowledge_base(memory: Settings) -> None:
    with visiting(memory) as visitor:
        assert "Start a knowledge base" in visitor.get("/kb").text
        assert visitor.post("/kb").status_code == 303
        text = visitor.get("/kb").text
        assert "Start a knowledge base" not in text
        assert "New node" in text


def test_nodes_are_listed_searched_and_filtered(visitor: Visitor) -> None:
    def titles(query: str) -> list[str]:
        return re.findall(r'class="main-line">([^<]+)<', visitor.get(f"/kb{query}").text)

    assert {"Formatter order", "Commit hook"} < set(titles(""))
    assert titles("?q=hook") == ["Commit hook"]
    assert titles("?tag=principle&q=formatter") == ["Formatter order"]
    assert titles("?tag=principle&q=hook") == []
    assert titles("?status=contested") == []


def test_an_edit_is_linted_merged_and_committed(visitor: Visitor, known: Settings) -> None:
    id, text = node(known, "Formatter order")
    page = f"/kb/{id}/edit"
    assert "Formatter order" in visitor.get(page).text
    form = {"version": sha256(text.encode()).hexdigest(), "base": text}
    broken = ODD_STATUS(text)
    assert "fatal" in visitor.post("/ui/preview/kb", slug=id, text=broken).text
    refused = visitor.post(page, text=broken, **form)
    assert refused.status_code == 400
    assert "have to be solved first" in refused.text
    assert node(known, "Formatter order")[1] == text
    moved = text.replace(id, "00000000-0000-4000-8000-000000000000")
    assert "must keep the line :ID:" in html.unescape(visitor.post(page, text=moved, **form).text)
    torn = text + "\nA [[id:broken link.\n"
    assert "(can be saved)" in visitor.post("/ui/preview/kb", slug=id, text=torn).text
    assert visitor.post(page, text=text + "\nAdded at the end.\n", **form).status_code == 303
    assert last_commit(known) == "edit: Formatter order"
    now = node(known, "Formatter order")[1]
    assert now.endswith("Added at the end.\n")
    late = visitor.post(page, text=text.replace("The Formatter order.", "Black first."), **form)
    assert late.status_code == 303, "another part was changed, so both edits are kept"
    now = node(known, "Formatter order")[1]
    assert "Black first.\n\nAdded at the end." in now
    conflict = visitor.post(page, text=text.replace("The Formatter order.", "Ruff first."), **form)
    assert conflict.status_code == 409
    assert "Ruff first." in conflict.text.partition('id="theirs"')[0]
    assert "Black first." in conflict.text.partition('id="theirs"')[2]
    assert node(known, "Formatter order")[1] == now


def test_a_new_node_is_linted_and_committed(visitor: Visitor, known: Settings) -> None:
    draft = {"title": "Locks", "summary": "How locks are taken.", "type": "procedure", "tags": "threads, io"}
    assert "needs a title" in visitor.post("/ui/preview/kb", title="Locks", text="").text
    token = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert 'class="fatal"' in visitor.post("/ui/preview/kb", **draft, text=f"The token is {token}.").text
    refused = visitor.post("/new/node", **draft, text=f"The token is {token}.")
    assert refused.status_code >= 400
    assert "How locks are taken." in refused.text
    assert "No problems found." in visitor.post("/ui/preview/kb", **draft, text="In order.").text
    answer = visitor.post("/new/node", **draft, text="In order.")
    assert answer.status_code == 303
    assert last_commit(known) == "remember: Locks"
    shown = visitor.get(answer.headers["location"]).text
    assert "In order." in shown
    id, text = node(known, "Locks")
    assert ":procedure:threads:io:" in text
    (offer,) = visitor.get("/ui/links/kb?q=lock").json()
    assert offer["insert"] == f"[[id:{id}][Locks]]"


def test_the_command_lints_and_saves_a_node(known: Settings) -> None:
    id, text = node(known, "Commit hook")
    assert [each.title for each in call(known, "kb list", tag="reference").nodes] == [
        "Commit hook",
        "How this knowledge base is used",
    ]
    assert not call(known, "kb edit", node=id, content=text).changed
    saved = call(known, "kb edit", node=id, content=text + "\nMore.\n")
    assert (saved.changed, bool(saved.commit), saved.exit_status) == (True, True, 0)
    broken = call(known, "kb edit", node=id, content=ODD_STATUS(text))
    assert (broken.exit_status, broken.commit) == (1, "")


@NEEDS_BROWSER
def test_a_node_is_written_and_edited_in_the_browser(browser: "Browser", known: Settings) -> None:
    with served(known) as address:
        visit = opened(browser, known, address)
        page = visit.go("/kb")
        page.click("text=New node")
        page.fill("#title", "Tide tables")
        page.fill("#summary", "Where the tides of Pier Nine are listed.")
        page.focus("#text")
        page.keyboard.type("In the harbour office. See [[hook")
        page.wait_for_selector(".offers li:has-text('Commit hook')")
        page.keyboard.press("Enter")
        page.wait_for_selector("#preview a:has-text('Commit hook')")
        page.click("button:has-text('Create')")
        page.wait_for_selector(".page-head h1:has-text('Tide tables')")
        page.keyboard.press("e")
        page.wait_for_selector("textarea")
        good = page.input_value("#text")
        page.fill("#text", ODD_STATUS(good))
        page.wait_for_selector("#preview .fatal")
        page.keyboard.press("Control+s")
        page.wait_for_selector("text=have to be solved first")
        assert "Tide tables" in page.input_value("#text")
        page.fill("#text", good + "\nNew moon.\n")
        page.wait_for_selector("#preview >> text=New moon.")
        page.keyboard.press("Control+s")
        page.locator(".save-state", has_text="Saved at").wait_for()
        assert "New moon." in node(known, "Tide tables")[1]
        narrow = opened(browser, known, address, NARROW)
        for path in ("/kb", "/new/node"):
            assert narrow.go(path).evaluate("document.documentElement.scrollWidth") <= NARROW[0], path
        assert [each for each in visit.problems if "400" not in each] == []
        visit.page.context.close()
        narrow.page.context.close()
