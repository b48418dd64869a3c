"""The light reading of markdown: headings, quotations, paragraphs, plain words."""

import random
import time

import pytest
from hypothesis import given, strategies as st

from quaid.model import plain_text
from quaid.model.plain_text import cjk_bigrams, count_noun, count_tokens, cut_cjk, token_measure


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
    assert plain_text.first_heading(text, 1) == expected


def test_headings_in_code_and_comments_are_not_headings() -> None:
    text = "```\n# code\n```\n<!--\n# hidden\n-->\n<style>\n# {}\n</style>\n# Real"
    assert plain_text.first_heading(plain_text.visible_text(text), 1) == "Real"


def test_a_comment_that_is_never_closed_hides_the_rest() -> None:
    assert plain_text.visible_text("a\n<!-- b\n# c") == "a\n"


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
    assert plain_text.top_quote(text) == expected


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
    assert plain_text.first_paragraph(text) == expected


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
    assert plain_text.strip_markdown(markdown) == words


@pytest.mark.parametrize(
    "markup",
    ["[[{}]]", "![x]({})", "[![x](a.png)]({})", "[x]({})", "<img src='{}'>", "[{}](x.md)", "![[{}]]"],
)
def test_a_long_text_is_not_cut_within_markup(markup: str) -> None:
    assert plain_text.strip_markdown("Words. " + markup.format("y" * 9_000)) == "Words."


MARKUP = st.text(alphabet="#>-*_=|`~[](){}<!%&; \n\tab1\\", max_size=200)


@given(MARKUP)
def test_no_markup_makes_the_reading_fail(text: str) -> None:
    for item in (
        plain_text.first_heading(text, 1),
        plain_text.first_heading(text, 2),
        plain_text.top_quote(text),
        plain_text.first_paragraph(plain_text.visible_text(text)),
    ):
        assert "\n" not in item
        assert len(plain_text.shorten(item, 50)) <= 50


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
    readable = plain_text.visible_text(text)
    plain_text.first_heading(readable, 1)
    plain_text.top_quote(readable)
    plain_text.first_paragraph(readable)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("a\n```\nb\n```\nc", "a\n\nc"),
        ("a\n~~~ python\nb\n~~~\nc", "a\n\nc"),
        ("a\n````\n```\nb\n````\nc", "a\n\nc"),
        ("a\n```\n~~~\nb\n```\nc", "a\n\nc"),
        ("   ```\nb\n   ```\nc", "\nc"),
        ("```\nb\n``` not a closing line\nc", ""),
        ("a\n```\nb", "a\n"),
        ("    ```\nb", "    ```\nb"),
        ("``` inline ```\nb", "``` inline ```\nb"),
        ("``\nb", "``\nb"),
        ("no code", "no code"),
        ("```\na\n```\n```\nb\n```", "\n"),
    ],
)
def test_fences_follow_commonmark(text: str, outside: str) -> None:
    assert plain_text.remove_fences(text) == outside


def test_a_fence_left_open_says_what_would_close_it() -> None:
    assert [block.left_open for block in plain_text.find_fences("```\na\n```\n~~~~ x\nb")] == ["", "~~~~"]


@given(
    st.lists(st.sampled_from(["```", "~~~", "````", "   ```", "    ```", "``` x", "`", "text", "", "~~~ `"]))
)
def test_blocks_are_in_order_whole_lines_and_apart(lines: list[str]) -> None:
    text = "\n".join(lines)
    position = 0
    for block in plain_text.find_fences(text):
        assert position <= block.start < block.end <= len(text)
        assert block.start == 0 or text[block.start - 1] == "\n"
        assert block.end == len(text) or text[block.end] == "\n"
        position = block.end


def test_only_empty_boxes_under_their_heading_are_threads() -> None:
    truth = """# Alice

- [ ] not under the heading

## Open Threads

- [ ] Ask about **the crane**
* [ ] See [Bob](../people/bob.md)
- [x] Done already
- No box at all
  - [ ] A smaller one

### For later

- [ ] Still below

## State

- [ ] another heading ended it
"""
    assert plain_text.open_threads(truth) == [
        "Ask about the crane",
        "See Bob",
        "A smaller one",
        "Still below",
    ]


@pytest.mark.parametrize(
    "heading", ["# open threads", "## OPEN THREADS ##", "#### **Open threads**", "## Open threads:"]
)
def test_the_heading_may_be_of_any_level_and_case(heading: str) -> None:
    assert plain_text.open_threads(f"{heading}\n- [ ] x\n") == ["x"]


@pytest.mark.parametrize(
    "truth",
    [
        "",
        "## Open Threads\n\n- [x] a\n",
        "Open Threads\n\n- [ ] a\n",
        "## Open Threads of last year\n\n- [ ] a\n",
        "```\n## Open Threads\n- [ ] a\n```\n",
        "## Open Threads\n- [ ]\n- [ ]   \n",
    ],
)
def test_lookalike_of_a_thread_is_ignored(truth: str) -> None:
    assert plain_text.open_threads(truth) == []


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1_000_000, "1,000,000 pages")]
)
def test_singular_is_used_only_for_one(number: int, told: str) -> None:
    assert count_noun(number, "page") == told


def test_a_plural_that_is_irregular_is_given() -> None:
    assert [count_noun(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("", 0),
        ("word", 1),
        ("東京の図書館", 6),
        ("Привет", 6),
        ("안녕", 4),
        ("😀", 1),
        ("a b c d", 1),
        ("1234", 2),
        ("{}[]()", 6),
    ],
)
def test_tokens_are_not_underrated_in_any_script(text: str, least: int) -> None:
    assert count_tokens(text) >= least
    assert count_tokens(text * 10) <= 10 * count_tokens(text)


def test_prose_has_about_four_letters_to_a_token() -> None:
    text = "The engine weaves algebraic patterns just as the loom weaves flowers and leaves. " * 10
    assert 140 <= count_tokens(text) <= 190


@given(st.text(), st.data())
def test_measuring_a_part_never_finds_less_than_counting_it(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    assert token_measure(text, 0, len(text))(first, last) >= count_tokens(text[first:last])


@pytest.mark.parametrize("length", [1, 2, 3, 9_999, 10_000, 10_001, 20_000, 25_001])
def test_a_run_is_cut_into_its_pairs_and_its_last_character(length: int) -> None:
    chance = random.Random(length)
    run = "".join(chance.choice("かなカナ漢字") for _ in range(length))
    assert cut_cjk(f"a{run}b {run}").split() == ["a", *cjk_bigrams(run), "b", *cjk_bigrams(run)]


def test_text_without_cjk_is_unchanged() -> None:
    assert cut_cjk("Oslo, and – naïve") == "Oslo, and – naïve"
