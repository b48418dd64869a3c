"""Editing and beginning a page without a browser: whoever was faster, what was removed, and no text that is lost."""

import html
import os
import re

import pytest
from tests.web.dashboard import Visitor, call

from quaid.config import Settings
from quaid.web.auth import MAX_BODY

MIRA = "people/mira-dahlquist"


def heading(text: str) -> str:
    match = re.search(r"<h1>(.*?)</h1>", text)
    return html.unescape(match[1]) if match else ""


def test_conflict_with_a_changed_file_shows_both_texts(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="notes::kept")
    path = os.path.join(mine.cwd, "notes", "kept.md")
    with open(path, "a", encoding="utf-8") as file:
        file.write("\nWritten in an editor.\n")
    text = "# The kept note\n\nWritten in the browser.\n"
    answer = visitor.post("/page/notes::kept/edit", text=text, version=page.version)
    assert answer.status_code == 409
    assert heading(answer.text) == "The kept note"
    assert "was changed by another program while you were editing" in answer.text
    theirs = answer.text.partition('id="theirs"')[2]
    assert "Written in an editor." in theirs
    assert "Written in the browser." in answer.text.partition('id="theirs"')[0]
    version = re.search(r'name="version" value="(\d+)"', answer.text)
    assert version
    assert visitor.post("/page/notes::kept/edit", text=text, version=version[1]).status_code == 303
    with open(path, encoding="utf-8") as file:
        assert "Written in the browser." in file.read()


def test_page_removed_during_an_edit_can_be_saved_again(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="concepts/patience")
    call(mine, "forget", slug="concepts/patience", yes=True)
    text = "# Patience\n\nHours of work.\n"
    answer = visitor.post("/page/concepts/patience/edit", text=text, version=page.version)
    assert answer.status_code == 409
    assert "was removed while you were editing" in answer.text
    assert "Hours of work." in answer.text
    assert 'name="version" value="0"' in answer.text
    again = visitor.post("/page/concepts/patience/edit", text=text, version=0)
    assert again.status_code == 303
    assert call(mine, "get", slug="concepts/patience").compiled_truth.endswith("Hours of work.")


def test_edit_of_a_page_whose_file_was_removed_keeps_the_text(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="notes::kept")
    os.unlink(os.path.join(mine.cwd, "notes", "kept.md"))
    answer = visitor.post("/page/notes::kept/edit", text="# Kept\n\nHours of work.\n", version=page.version)
    assert answer.status_code == 409
    assert "Hours of work." in answer.text
    assert "<textarea" in answer.text


def test_page_renamed_during_an_edit_is_saved_at_its_new_address(visitor: Visitor, mine: Settings) -> None:
    page = call(mine, "get", slug="concepts/patience")
    call(mine, "rename", slug="concepts/patience", new_slug="concepts/waiting")
    text = "# Patience\n\nMine.\n"
    answer = visitor.post("/page/concepts/patience/edit", text=text, version=page.version)
    assert answer.status_code == 409
    assert 'action="/page/concepts/waiting/edit"' in answer.text
    version = re.search(r'name="version" value="(\d+)"', answer.text)
    assert version
    assert visitor.post("/page/concepts/waiting/edit", text=text, version=version[1]).status_code == 303


def test_refused_text_keeps_title_and_links(visitor: Visitor) -> None:
    text = "---\ntype: [nonsense]\n---\n# Patience\n\nAsk [[companies/brineloop]].\n"
    answer = visitor.post("/page/concepts/patience/edit", text=text, version=3)
    assert answer.status_code == 400
    assert heading(answer.text) == "Patience"
    assert '<a href="/page/companies/brineloop" class="wiki"' in answer.text
    assert ">Brineloop</a>" in answer.text
    assert 'name="version" value="3"' in answer.text


def test_preview_shows_titles_of_new_links(visitor: Visitor) -> None:
    text = "# Somebody\n\nKnows [[people/mira-dahlquist]] and [[people/nobody-here]].\n"
    for slug in ("concepts/patience", "people/somebody-new"):
        preview = visitor.post("/ui/preview", slug=slug, text=text).text
        assert ">Mira Dahlquist</a>" in preview
        assert 'class="wiki unknown"' in preview


def test_preview_and_page_derive_the_same_title(visitor: Visitor, mine: Settings) -> None:
    with open(os.path.join(mine.cwd, "notes", "100% weird #1?.md"), "w", encoding="utf-8") as file:
        file.write("Only a line.\n")
    call(mine, "collection sync", name="notes")
    (result,) = [page for page in call(mine, "list", limit=100).pages if "weird" in page.slug]
    shown = heading(visitor.get(f"/page/notes::{result.slug}").text)
    preview = visitor.post("/ui/preview", slug=f"notes::{result.slug}", text="Only a line.\n").text
    assert heading(preview) == shown == "100% weird #1?"


@pytest.mark.parametrize(
    ("typed", "offer", "title"),
    [
        ("Bob Smith", "bob-smith", "Bob Smith"),
        ("people/Zoë Müller", "people/zoe-muller", "Zoë Müller"),
        ("notes::A & B: c", "notes::a-b-c", "A & B: c"),
    ],
)
def test_new_page_has_a_title_and_an_address_for_a_name(
    visitor: Visitor, mine: Settings, typed: str, offer: str, title: str
) -> None:
    from urllib.parse import quote

    form = visitor.get(f"/new?slug={quote(typed)}").text
    assert f'name="title" value="{html.escape(title)}"' in form
    assert f'name="slug" value="{offer}"' in form
    answer = visitor.post("/new", title=title, slug=offer, text="Written once.\n", version=0)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/page/{offer}")
    page = call(mine, "get", slug=offer)
    assert (page.title, page.compiled_truth) == (title, f"# {title}\n\nWritten once.")
    again = visitor.post("/new", title=title, slug=offer, text="Written once.\n", version=0)
    assert again.status_code == 303, "the first answer was lost, so the browser tries again"
    other = visitor.post("/new", title=title, slug=offer, text="Another text.\n", version=0)
    assert other.status_code == 409
    assert "Another text." in other.text
    assert "already exists" in other.text
    assert call(mine, "get", slug=offer).compiled_truth.endswith("Written once.")


def test_address_of_a_new_page_follows_its_title(visitor: Visitor) -> None:
    answer = visitor.post("/new", title="The Zoë / Müller letters", text="")
    assert answer.headers["location"] == "/page/the-zoe-muller-letters"
    assert visitor.post("/new", title="??", text="Kept.").status_code == 400
    assert visitor.get("/new?slug=%3F%3F").status_code == 400


def test_pages_are_offered_for_a_link(visitor: Visitor) -> None:
    offers = visitor.get("/ui/links?q=mira").json()
    assert offers[0] == {
        "title": "Mira Dahlquist",
        "address": MIRA,
        "type": "person",
        "insert": f"[[{MIRA}]]",
    }
    assert len(visitor.get("/ui/links?q=").json()) == 8
    (note,) = [offer for offer in visitor.get("/ui/links?q=kept").json() if "::" in offer["address"]]
    preview = visitor.post("/ui/preview", slug="concepts/patience", text=f"See {note['insert']}.").text
    assert '<a href="/page/notes::kept" class="wiki"' in preview


def test_text_that_is_too_long_links_back_to_the_form(visitor: Visitor) -> None:
    edit = f"/page/{MIRA}/edit"
    assert f'data-limit="{MAX_BODY}"' in visitor.get(edit).text
    answer = visitor.post(edit, text="x" * MAX_BODY, version=1)
    assert answer.status_code == 413
    assert heading(answer.text) == "Too long"
    assert "Go back with the browser" in answer.text
    assert f'href="{edit}"' in answer.text


def test_short_note_repeats_nothing(visitor: Visitor, mine: Settings) -> None:
    call(mine, "put", slug="concepts/short", content="# Short\n\nOne sentence alone.\n")
    text = visitor.get("/page/concepts/short").text
    assert text.count("One sentence alone.") == 1
    preview = visitor.post("/ui/preview", slug="concepts/short", text="# Short\n\nOne sentence alone.\n").text
    assert preview.count("One sentence alone.") == 1
    call(mine, "put", slug="concepts/quoted", content="# Quoted\n\n> In one sentence.\n")
    text = visitor.get("/page/concepts/quoted").text
    assert '<p class="lede">In one sentence.</p>' in text
    assert "Nothing is written" not in text
    call(mine, "put", slug="concepts/empty", content="# Empty\n")
    assert "No text yet." in visitor.get("/page/concepts/empty").text


def test_revert_of_a_changed_page_shows_the_current_text(visitor: Visitor, mine: Settings) -> None:
    answer = visitor.post("/ui/revert", slug="concepts/patience", to=1, version=1)
    assert answer.status_code == 409
    assert "so it was not reverted" in answer.text
    assert "The third thought." in answer.text


def test_facts_that_still_hold_come_before_superseded_ones(visitor: Visitor, mine: Settings) -> None:
    for city, day in (("Cork", "2025-01-01"), ("Galway", "2026-01-01")):
        call(mine, "assert", slug="people/teo-varland", predicate="lives_in", object=city, valid_from=day)
    facts = visitor.get("/page/people/teo-varland").text.partition('id="facts-title"')[2]
    assert 0 < facts.index("Galway") < facts.index("Cork")
    assert "entered by hand" in facts


def test_contradicted_facts_link_to_review(visitor: Visitor, mine: Settings) -> None:
    clashes = call(mine, "contradictions").contradictions
    (id,) = [clash.id for clash in clashes if clash.type == "cross_page"]
    text = visitor.get(f"/page/{MIRA}").text
    assert text.count(f'href="/review#contradiction-{id}"') == 2
    assert f'id="contradiction-{id}"' in visitor.get("/review").text
    visitor.post("/review/resolve", id=id, keep="left")
    assert f'href="/review#contradiction-{id}"' not in visitor.get(f"/page/{MIRA}").text


def test_omitted_timeline_entries_are_kept_unless_removal_is_ticked(visitor: Visitor, mine: Settings) -> None:
    before = call(mine, "get", slug=MIRA)
    count = len(call(mine, "timeline", slug=MIRA).entries)
    assert count
    text = f"---\ntitle: {before.title}\ntype: person\n---\n# {before.title}\n\nA new text.\n"
    answer = visitor.post(f"/page/{MIRA}/edit", text=text, version=before.version)
    assert answer.status_code == 303
    assert "were kept" in visitor.get(answer.headers["location"]).text
    assert len(call(mine, "timeline", slug=MIRA).entries) == count
    assert 'name="replace_timeline"' in visitor.get(f"/page/{MIRA}/edit").text
    visitor.post(f"/page/{MIRA}/edit", text=text, version=before.version + 1, replace_timeline="yes")
    assert call(mine, "timeline", slug=MIRA).entries == ()


SHARED = """\
---
title: Shared
status: open
---

# Shared

First.

Second.

---

- **2026-02-01** — Called.
- **2026-01-01** — Met.
"""


def form_of(visitor: Visitor, address: str) -> dict[str, str]:
    """Return version, base and text of the edit form."""
    page = visitor.get(f"/page/{address}/edit").text
    fields = dict(re.findall(r'<input type="hidden" name="(version|base)" value="([^"]*)">', page))
    return {name: html.unescape(value) for name, value in fields.items()}


@pytest.mark.parametrize("address", ["concepts/shared", "notes::shared"])
def test_an_edit_is_merged_with_one_that_was_saved_meanwhile(
    visitor: Visitor, mine: Settings, address: str
) -> None:
    call(mine, "put", slug=address, content=SHARED)
    form = form_of(visitor, address)
    assert form["base"].replace("\r\n", "\n") == SHARED
    text = SHARED.replace("First.", "First, mine.").replace(
        "- **2026-02", "- **2026-03-01** — Wrote.\n- **2026-02"
    )
    theirs = (
        SHARED.replace("open", "done").replace("Second.", "Second, theirs.").replace("Met.", "Met. Late.")
    )
    call(mine, "put", slug=address, content=theirs, replace_timeline=True)
    answer = visitor.post(f"/page/{address}/edit", text=text.replace("\n", "\r\n"), **form)
    assert answer.status_code == 303
    assert "Saved, and merged with a change" in visitor.get(answer.headers["location"]).text
    page = call(mine, "get", slug=address)
    assert (page.version, page.frontmatter["status"]) == (3, "done")
    assert page.compiled_truth == "# Shared\n\nFirst, mine.\n\nSecond, theirs."
    assert page.timeline.split("\n") == [
        "- **2026-03-01** — Wrote.",
        "- **2026-02-01** — Called.",
        "- **2026-01-01** — Met. Late.",
    ]


def test_edits_of_one_paragraph_are_not_merged(visitor: Visitor, mine: Settings) -> None:
    call(mine, "put", slug="concepts/shared", content=SHARED)
    form = form_of(visitor, "concepts/shared")
    call(mine, "put", slug="concepts/shared", content=SHARED.replace("First.", "Theirs."))
    answer = visitor.post("/page/concepts/shared/edit", text=SHARED.replace("First.", "Mine."), **form)
    assert answer.status_code == 409
    assert "Mine." in answer.text
    assert "Theirs." in answer.text.partition('id="theirs"')[2]
    assert "Theirs." in call(mine, "get", slug="concepts/shared").compiled_truth
    assert "Theirs." in re.findall(r'name="base" value="([^"]*)"', answer.text)[0]


@pytest.mark.parametrize(
    ("choices", "first", "status"),
    [
        (("yours", "theirs"), "Mine.", "done"),
        (("theirs", "yours"), "Theirs.", "mine"),
        (("all", "yours"), "Mine.\n\nTheirs.", "mine"),
    ],
)
def test_each_part_of_a_conflict_can_be_chosen(
    visitor: Visitor, mine: Settings, choices: tuple[str, str], first: str, status: str
) -> None:
    call(mine, "put", slug="concepts/shared", content=SHARED)
    form = form_of(visitor, "concepts/shared")
    theirs = SHARED.replace("First.", "Theirs.").replace("open", "done").replace("Second.", "Second, theirs.")
    call(mine, "put", slug="concepts/shared", content=theirs)
    text = SHARED.replace("First.", "Mine.").replace("open", "mine")
    shown = visitor.post("/page/concepts/shared/edit", text=text, **form)
    assert (shown.status_code, shown.text.count("<fieldset")) == (409, 2)
    origin = re.findall(r'name="origin" value="([^"]*)"', shown.text)[0]
    chosen = {f"choice-{place}": choice for place, choice in enumerate(choices)}
    fields = {"text": text, "origin": html.unescape(origin), "resolve": "yes", **chosen}
    assert (
        visitor.post("/page/concepts/shared/edit", **{**fields, "choice-0": "x"}, version=2).status_code
        == 409
    )
    assert visitor.post("/page/concepts/shared/edit", **fields, version=1).status_code == 409
    assert call(mine, "get", slug="concepts/shared").version == 2
    assert visitor.post("/page/concepts/shared/edit", **fields, version=2).status_code == 303
    page = call(mine, "get", slug="concepts/shared")
    blocks = page.compiled_truth.removeprefix("# Shared\n\n").removesuffix("\n\nSecond, theirs.")
    assert sorted(blocks.split("\n\n")) == sorted(first.split("\n\n"))
    assert page.frontmatter["status"] == status


def test_merging_removes_entries_only_if_removal_is_ticked(visitor: Visitor, mine: Settings) -> None:
    for ticked in ("", "yes"):
        call(mine, "put", slug="concepts/shared", content=SHARED, replace_timeline=True)
        form = form_of(visitor, "concepts/shared")
        call(mine, "put", slug="concepts/shared", content=SHARED.replace("Second.", f"Theirs {ticked}."))
        text = SHARED.replace("- **2026-01-01** — Met.\n", "")
        visitor.post("/page/concepts/shared/edit", text=text, replace_timeline=ticked, **form)
        page = call(mine, "get", slug="concepts/shared")
        assert f"Theirs {ticked}." in page.compiled_truth
        assert ("Met." in page.timeline) is not bool(ticked)
