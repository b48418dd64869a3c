"""The light reading of markdown: headings, quotations, paragraphs, plain words."""

import time

import pytest
from hypothesis import given, strategies as st

from quaid.model import markdown_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\n\n# Two", "One"),
        ("text\n\n   # Indented #", "Indented"),
        ("    # code", ""),
        ("#hashtag\n# Real", "Real"),
        ("# ##\n# C#", "C#"),
        ("Under\n=====\n\n# Later", "Under"),
        ("# Sooner\n\nUnder\n===", "Sooner"),
        ("- item\n===\n", ""),
        ("\n===\n", ""),
        ("# [Link](x.md) and `code`", "Link and code"),
        ("## Two", ""),
    ],
)
def test_the_first_h1(text: str, expected: str) -> None:
    assert markdown_text.first_heading(text, 1) == expected


def test_headings_in_code_and_comments_are_not_headings() -> None:
    text = "```\n# code\n```\n<!--\n# hidden\n-->\n<style>\n# {}\n</style>\n# Real"
    assert markdown_text.first_heading(markdown_text.visible_text(text), 1) == "Real"


def test_a_comment_that_is_never_closed_hides_the_rest() -> None:
    assert markdown_text.visible_text("a\n<!-- b\n# c") == "a\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n\n> One\n> two.\n\n> Three", "One two."),
        ("A\n===\n> Below", "Below"),
        ("[[Home]]\n\n# A\n> Below", "Below"),
        ("\n\n> At the top\n\n# A\n\nText", "At the top"),
        ("> > nested\n>> again", "nested again"),
        ("# A\n\nText first.\n\n> Later", ""),
        ("# A\n\n## B\n\n> Of B", ""),
        (">\n\n> —\n\n> Second", ""),
        ("# A\n\n> [!NOTE]\n> Mind the gap.", ""),
        ("# A\n\n> [!tip]- Fold\n\n> Quoted", ""),
        ("a > b", ""),
    ],
)
def test_the_quotation_below_the_title(text: str, expected: str) -> None:
    assert markdown_text.top_quote(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\nThe first\nparagraph.\n\nSecond.", "The first paragraph."),
        ("Title\n=====\nText", "Text"),
        ("Title\n  ---\nText", "Text"),
        ("- a\n- b\n  more\n\n  still b\n\nText", "Text"),
        ("1. a\nlazy\n\nText", "Text"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nText", "Text"),
        ("a | b\n--|--\n1 | 2\n\nText", "Text"),
        ("    indented code\n\nText", "Text"),
        ("***\n\nText", "Text"),
        ("![image](x.png)\n\nText", "Text"),
        ("[![badge](a.svg)](b)\n\nText", "Text"),
        ("{{< toc >}}\n\n{{% note %}}\n\nText", "Text"),
        ("[ref]: http://x\n[^1]: note\n\nText", "Text"),
        ("<br/>\n\nText", "Text"),
        ("> quoted\n\nText", "Text"),
        ("**Introduction**\n\nText", "Text"),
        ("`apiVersion: v1`\n\nText", "Text"),
        ("**Only a label**", "Only a label"),
        ("# Nothing else", ""),
    ],
)
def test_the_first_paragraph(text: str, expected: str) -> None:
    assert markdown_text.first_paragraph(text) == expected


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("a [link](http://x/(y)) b", "a link b"),
        ("a [link][ref] and [^1]", "a link and"),
        ("[[people/alice]] [[people/bob|Bob]] ![[embed]]", "people/alice Bob"),
        ("**bold** _it_ __b__ ~~no~~ ***x***", "bold it b no x"),
        ("snake_case and 2*3 and a * b", "snake_case and 2*3 and a * b"),
        ("`a*b` **`c_d`** ``x`y``", "a*b c_d x`y"),
        ("<https://x.y> <b>bold</b> a < b", "https://x.y bold a < b"),
        (r"\*not\* \[x\]", "*not* [x]"),
        ('{{< glossary text="Pods" id="pod" >}} run', "Pods run"),
        ("a&nbsp;b &amp; c", "a b & c"),
        ("  many\n  spaces ", "many spaces"),
        ("\U0010f000 kept `code`", "kept code"),
    ],
)
def test_inline_markup_is_reduced_to_its_words(markdown: str, words: str) -> None:
    assert markdown_text.strip_markdown(markdown) == words


@pytest.mark.parametrize(
    "markup",
    ["[[{}]]", "![x]({})", "[![x](a.png)]({})", "[x]({})", "<img src='{}'>", "[{}](x.md)", "![[{}]]"],
)
def test_a_long_text_is_not_cut_within_markup(markup: str) -> None:
    assert markdown_text.strip_markdown("Words. " + markup.format("y" * 9_000)) == "Words."


MARKUP = st.text(alphabet="#>-*_=|`~[](){}<!%&; \n\tab1\\", max_size=200)


@given(MARKUP)
def test_no_markup_makes_the_reading_fail(text: str) -> None:
    for item in (
        markdown_text.first_heading(text, 1),
        markdown_text.first_heading(text, 2),
        markdown_text.top_quote(text),
        markdown_text.first_paragraph(markdown_text.visible_text(text)),
    ):
        assert "\n" not in item
        assert len(markdown_text.shorten(item, 50)) <= 50


@pytest.mark.parametrize(
    "unit",
    [
        "# ",
        "#",
        ">",
        "> ",
        "[",
        "![",
        "{{<",
        "<!--",
        "<",
        "`",
        "`a",
        "*",
        "_a",
        "- ",
        "--",
        "=\n",
        " ",
        "a|-",
        "<a ",
    ],
)
def test_hostile_repetition_is_read_in_linear_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    start = time.process_time()
    readable = markdown_text.visible_text(text)
    markdown_text.first_heading(readable, 1)
    markdown_text.top_quote(readable)
    markdown_text.first_paragraph(readable)
    assert time.process_time() - start < 2
