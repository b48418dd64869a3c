"""Fenced code: where it begins and ends."""

import pytest
from hypothesis import given, strategies as st

from quaid.model import markdown_text


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
    assert markdown_text.remove_fences(text) == outside


def test_a_fence_left_open_says_what_would_close_it() -> None:
    assert [block.left_open for block in markdown_text.find_fences("```\na\n```\n~~~~ x\nb")] == ["", "~~~~"]


@given(
    st.lists(st.sampled_from(["```", "~~~", "````", "   ```", "    ```", "``` x", "`", "text", "", "~~~ `"]))
)
def test_blocks_are_in_order_whole_lines_and_apart(lines: list[str]) -> None:
    text = "\n".join(lines)
    position = 0
    for block in markdown_text.find_fences(text):
        assert position <= block.start < block.end <= len(text)
        assert block.start == 0 or text[block.start - 1] == "\n"
        assert block.end == len(text) or text[block.end] == "\n"
        position = block.end
