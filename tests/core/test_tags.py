"""Tags: their spelling, and where they are read from."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.core import tags
from quaid.errors import InvalidArgument


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("Infra", "infra"),
        ("#ops", "ops"),
        ("Deep  Work", "deep-work"),
        ("a/b", "a/b"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_a_tag_is_spelled_one_way(written: str, stored: str) -> None:
    assert tags.check(written) == stored


@pytest.mark.parametrize(
    ("bad", "why"),
    [("", "empty"), (" # ", "empty"), ("x" * 101, "longer"), ("a,b", "comma"), ("a\x00b", "control")],
)
def test_what_cannot_be_a_tag_is_refused(bad: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        tags.check(bad)


@given(st.text())
def test_a_stored_tag_is_spelled_as_itself(text: str) -> None:
    try:
        stored = tags.check(text)
    except InvalidArgument:
        return
    assert tags.check(stored) == stored


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["Infra", "#ops", "infra"], ("infra", "ops")),
        ("one, two words, #three", ("one", "two-words", "three")),
        ("one two #three", ("one", "two", "three")),
        (["a, b", 2024, 1.5, None, "", {"x": 1}], ("a", "b", "2024", "1.5")),
        (2024, ("2024",)),
        (None, ()),
        ({"a": 1}, ()),
        (["x" * 101, "a\x07", "good"], ("good",)),
    ],
)
def test_tags_are_read_from_lists_and_from_text(value: Any, expected: tuple[str, ...]) -> None:
    assert tags.from_frontmatter(value) == expected


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_whatever_the_front_matter_holds_only_good_tags_come_out(value: Any) -> None:
    for tag in tags.from_frontmatter(value):
        assert tags.check(tag) == tag
