"""Texts as HTML: what is shown, where links lead, which line is which, and what never comes through."""

import time

import pytest
from tests.web.active_content import active_nodes

from quaid.app import Brain
from quaid.operations import dispatch
from quaid.web.pages import markdown
from quaid.web.pages.base import LinkTarget, resolver_of_page
from quaid.web.pages.markdown import make_snippet, move_item, tick_line


def lead(named: str) -> LinkTarget | None:
    known = {
        "people/ada": LinkTarget("/page/people/ada", "Ada"),
        "id:42": LinkTarget("/page/kb::node", "Node"),
    }
    return known.get(named)


def test_wiki_link_shows_the_title_of_its_page() -> None:
    html = markdown.render_markdown("See [[people/ada]], [[people/ada|her]] and [[id:42][the node]].", lead)
    assert '<a href="/page/people/ada" class="wiki" rel="noopener noreferrer nofollow">Ada</a>' in html
    assert ">her</a>" in html
    assert '<a href="/page/kb::node" class="wiki" rel="noopener noreferrer nofollow">the node</a>' in html


def test_unresolved_link_leads_to_a_search() -> None:
    assert 'href="/search?q=Nobody&amp;link=1" class="wiki unknown"' in markdown.render_markdown(
        "[[Nobody]]", lead
    )


def test_links_in_code_are_not_rendered() -> None:
    html = markdown.render_markdown("`[[people/ada]]`\n\n    [[people/ada]]\n", lead)
    assert "<a " not in html
    assert html.count("[[people/ada]]") == 2


def test_external_links_are_marked_and_send_no_referrer() -> None:
    html = markdown.render_markdown(
        "[a](https://example.com/x) <mailto:a@b.c> [b](notes.pdf) [c](//evil.example)"
    )
    assert 'href="https://example.com/x" class="out" rel="noopener noreferrer nofollow"' in html
    assert "notes.pdf" not in html
    assert "evil.example" not in html


def test_only_embedded_images_are_shown() -> None:
    html = markdown.render_markdown("![far](https://example.com/a.png) ![near](data:image/png;base64,AAAA)")
    assert "example.com" not in html
    assert '<img src="data:image/png;base64,AAAA" alt="near">' in html
    assert "<img" not in markdown.render_markdown("![x](data:image/svg+xml;base64,AAAA)")


def test_raw_html_is_text() -> None:
    html = markdown.render_markdown("<script>alert(1)</script>\n\n<b onclick=x>bold</b>")
    assert active_nodes(html) == []
    assert "&lt;script&gt;" in html


def test_checkboxes_tables_and_code_are_rendered() -> None:
    html = markdown.render_markdown(
        "- [ ] open\n- [x] done\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\nx = 1\n```\n"
    )
    assert '<span class="box">☐</span>' in html
    assert '<span class="box done">☑</span>' in html
    assert "<td>1</td>" in html
    assert 'class="language-python"' in html
    assert "style=" not in html


def test_blocks_have_line_ids() -> None:
    html = markdown.render_markdown("# A\n\ntext\nmore\n\n- one\n- two\n")
    assert '<h1 id="L1">' in html
    assert '<p id="L3">' in html
    assert html.count('id="L6"') == 1
    assert html.count('id="L7"') == 1


def test_requested_line_marks_its_block() -> None:
    html = markdown.render_markdown("# A\n\ntext\nmore\nlast\n\nother\n", at=4)
    assert '<p id="L4" class="here">' in html
    assert html.count('class="here"') == 1


def test_heading_that_repeats_the_title_is_omitted() -> None:
    html = markdown.render_markdown("# Ada\n\n> In short.\n\nText.", title="Ada", summary="In short.")
    assert "Ada" not in html
    assert "In short" not in html
    assert '<p id="L5">Text.</p>' in html
    assert "Bo" in markdown.render_markdown("# Bo\n\nText.", title="Ada")


def test_org_is_rendered_and_never_evaluated() -> None:
    text = (
        ":PROPERTIES:\n:ID: 42\n:END:\n#+title: Node\n\n* A heading\n\nText with [[id:42][a link]] and /slants/.\n\n"
        '#+begin_src emacs-lisp\n(delete-file "x")\n#+end_src\n\n#+include: /etc/passwd\n<script>x</script>\n'
    )
    html = markdown.render_org(text, lead)
    assert "A heading</h" in html
    assert ">a link</a>" in html
    assert "<code" in html
    assert "root:" not in html
    assert active_nodes(html) == []


def test_very_long_text_is_shown_as_plain_text() -> None:
    html = markdown.render_markdown("<b>x</b> " * 40_000)
    assert html.startswith('<pre class="plain">&lt;b&gt;')


def test_very_long_table_is_shown_as_plain_text() -> None:
    head = "|a|b|\n|-|-|\n"
    assert markdown.render_markdown(head + "|a|b|\n" * 30_000).startswith('<pre class="plain">|a|b|')
    assert markdown.render_markdown(head + "|a|b|\n" * 5_000).startswith("<table")


@pytest.mark.parametrize(
    "text", ["[" * 20_000, "> " * 5_000, "[[" * 10_000, "*a **b " * 8_000, "`" * 30_001, "|a" * 20_000]
)
def test_rendering_time_is_bounded(text: str) -> None:
    began = time.process_time()
    markdown.render_markdown(text, lead)
    assert time.process_time() - began < 8


def test_links_of_a_stored_page_are_resolved(brain: Brain) -> None:
    def call(name: str, **arguments: object) -> object:
        return dispatch.call(brain, dispatch.find_command(name), arguments, "owner")

    call("put", slug="people/ada-lovelace", content="---\naliases: [Countess]\n---\n\n# Ada Lovelace\n")
    call("put", slug="people/bo", content="# Bo\n")
    call(
        "put",
        slug="projects/engine",
        content="# Engine\n\nBy [[Countess]], [Bo](../people/bo.md) and [[people/ada-lovelace]]; not [[Nobody]].\n",
    )
    record = call("get", slug="projects/engine")
    links = call("links", slug="projects/engine")
    html = markdown.render_markdown(record.compiled_truth, resolver_of_page(record, links.links))  # type: ignore[attr-defined, arg-type]
    assert html.count('href="/page/people/ada-lovelace"') == 2
    assert 'href="/page/people/bo"' in html
    assert 'href="/search?q=Nobody&amp;link=1"' in html


def test_snippet_highlights_the_query() -> None:
    text = (
        "## Head\n\n"
        + "Nothing of note. " * 30
        + "The **tide** charged it 5 < 6 & so on. "
        + "And so on. " * 30
    )
    shown = make_snippet(text, "does the tide charge?")
    assert "<mark>tide</mark> <mark>charged</mark>" in shown
    assert "5 &lt; 6 &amp; so on" in shown
    assert "##" not in shown
    assert shown.startswith("… ")
    assert len(shown) < 400
    assert make_snippet("a & b", "") == "a &amp; b"
    assert make_snippet("…[ ] Call her - [x] Write", "") == "…Call her · Write"
    assert "<mark>電池</mark>" in make_snippet("この電池は大きい", "電池")


LIST = "# Order\n\n1. One\n   more of one\n2. Two\n\n3. Three\n   - a\n   - b\n\nAfter.\n"


@pytest.mark.parametrize(
    ("line", "steps", "expected", "at"),
    [
        (3, 1, "# Order\n\n1. Two\n2. One\n   more of one\n\n3. Three\n   - a\n   - b\n\nAfter.\n", 4),
        (7, -2, "# Order\n\n1. Three\n   - a\n   - b\n2. One\n   more of one\n\n3. Two\n\nAfter.\n", 3),
        (8, 1, LIST.replace("- a\n   - b", "- b\n   - a"), 9),
        (3, -1, LIST, 3),
    ],
)
def test_list_items_move_with_everything_below_them(line: int, steps: int, expected: str, at: int) -> None:
    assert move_item(LIST, line, steps) == (expected, at)
    assert move_item(LIST, 1, steps) is None


def test_a_tick_changes_one_line() -> None:
    text = "- [ ] One\n- [x] Two\n1. [ ] Three\n"
    assert tick_line(text, 1, done=True) == text.replace("[ ] One", "[x] One")
    assert tick_line(text, 2, done=False) == text.replace("[x]", "[ ]")
    assert tick_line(text, 3, done=True) == text.replace("[ ] Three", "[x] Three")
    assert tick_line(text, 4, done=True) is None
    assert tick_line(text, 9, done=True) is None
