"""Sections are read, added to and replaced, and nothing else changes."""

import pytest
from hypothesis import given, strategies as st

from quaid.formats import sections

TODO = "# Lists\n\n## To Do\n- [ ] Call Ann\n- [x] Pay rent\n\n## Later\n1. Paint\n2. Sleep\n"


def test_a_line_goes_to_the_end_of_its_section() -> None:
    text, line = sections.append_to_section(TODO, "to do", "- [ ] Buy nails")
    assert text == TODO.replace("Pay rent\n", "Pay rent\n- [ ] Buy nails\n")
    assert line == 6


def test_a_missing_section_is_made_at_the_end() -> None:
    text, line = sections.append_to_section("# A\n\ntext", "## Notes", "- x")
    assert text == "# A\n\ntext\n\n## Notes\n- x\n"
    assert text.split("\n")[line - 1] == "- x"
    assert sections.append_to_section("", "Notes", "- x")[0] == "## Notes\n- x\n"


def test_text_is_added_to_an_empty_section_and_the_next_section_is_kept() -> None:
    assert sections.append_to_section("## A\n## B\n- b\n", "A", "- a")[0] == "## A\n- a\n## B\n- b\n"


def test_a_block_after_a_paragraph_is_separate() -> None:
    assert sections.append_to_section("## A\nWords.\n", "A", "- a")[0] == "## A\nWords.\n\n- a\n"
    assert sections.append_to_section("## A\n- a\n  more\n", "A", "- b")[0] == "## A\n- a\n  more\n- b\n"


def test_headings_in_code_and_front_matter_are_none() -> None:
    text = "---\nx: 1\n## Notes\n---\n```\n## Notes\n```\n\n## Notes\n- a\n"
    assert sections.append_to_section(text, "Notes", "- b")[0] == text + "- b\n"
    assert [section.title for section in sections.find_sections(text)] == ["Notes"]


def test_a_deeper_heading_belongs_to_its_section_and_a_higher_one_ends_it() -> None:
    text = "## A\n### B\n- b\n# C\nend\n"
    place = sections.find_section(text, "A")
    assert place is not None
    assert text[place.body : place.end] == "\n### B\n- b\n"
    assert sections.find_section(text, "missing") is None


def test_a_section_is_replaced_and_the_others_stay() -> None:
    assert sections.replace_section(TODO, "To Do", "- none\n")[0] == TODO.replace(
        "- [ ] Call Ann\n- [x] Pay rent", "- none"
    )
    assert sections.replace_section("## A\nold", "A", "new")[0] == "## A\nnew\n"
    assert sections.replace_section("## A\nold\n\n## B\nb\n", "A", "")[0] == "## A\n\n## B\nb\n"


@pytest.mark.parametrize(
    ("body", "box", "wanted"),
    [
        ("", False, "- x\n- y"),
        ("", True, "- [ ] x\n- [ ] y"),
        ("* a", False, "* x\n* y"),
        ("- [x] a", False, "- [ ] x\n- [ ] y"),
        ("1. a\n2. b", False, "3. x\n4. y"),
        ("9) a\n   - deeper", True, "10) x\n11) y"),
        ("```\n1. code\n```", False, "- x\n- y"),
    ],
)
def test_new_lines_are_like_the_list_that_is_there(body: str, box: bool, wanted: str) -> None:
    assert sections.format_items(["x", "y"], body, box) == wanted


def test_remembered_text_cannot_add_headings_or_hide_the_rest() -> None:
    assert sections.sanitize("# big\n---\n#tag stays") == "\\# big\n\\---\n#tag stays"
    assert sections.sanitize("see\n```\n# code\n") == "see\n```\n# code\n```"


MARKDOWN = st.text(alphabet="#ab -*`1.\n\r~", max_size=60)


@given(MARKDOWN, st.sampled_from([None, "a", "b a", "New"]), st.sampled_from(["- x", "words", "1. x"]))
def test_addition_leaves_the_rest_unchanged(text: str, section: str | None, block: str) -> None:
    added, number = sections.append_to_section(text, section, block)
    lines = added.split("\n")
    assert lines[number - 1] == block
    without = "\n".join([*lines[: number - 1], *lines[number:]])
    for line in text.split("\n"):
        assert line.strip() in without or not line.strip()
    if section:
        place = sections.find_section(added, section)
        assert place is None or block in added[place.body : place.end]
