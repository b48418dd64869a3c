"""Tags: their spelling, and where they are read from."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from quaid.errors import InvalidArgument
from quaid.model import page as page_model


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
    assert page_model.check_tag(written) == stored


@pytest.mark.parametrize(
    ("bad", "why"),
    [("", "empty"), (" # ", "empty"), ("x" * 101, "longer"), ("a,b", "comma"), ("a\x00b", "control")],
)
def test_invalid_tags_are_refused(bad: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        page_model.check_tag(bad)


@given(st.text())
def test_a_stored_tag_is_spelled_as_itself(text: str) -> None:
    try:
        stored = page_model.check_tag(text)
    except InvalidArgument:
        return
    assert page_model.check_tag(stored) == stored


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
    assert page_model.parse_tags(value) == expected


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_front_matter_of_any_kind_gives_only_valid_tags(value: Any) -> None:
    for tag in page_model.parse_tags(value):
        assert page_model.check_tag(tag) == tag


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#idea", ("idea",)),
        ("An #Idea, and #another.", ("idea", "another")),
        ("#area/sub/ #a_b-c #näme #日本 #🚀", ("area/sub", "a_b-c", "näme", "日本", "🚀")),
        ("twice #one #ONE", ("one",)),
        ("(#aside) - [ ] task #todo", ("aside", "todo")),
        ("  - deep\n    - deeper #kept", ("kept",)),
        ("# Heading #no\n### Another #no\nText #yes", ("yes",)),
        ("`#no` and ``#no `#no`` then #yes", ("yes",)),
        ("    #include <stdio.h>\n\t#define X", ()),
        ("[here](#no) url(#no) [1]: #no https://x.org/#no [[Note#no]] [[#no]] <a href='#no'>", ()),
        ("C# F# &#39; x#y #1 #2024 #12-13 #- #", ()),
        ("#fff #FFFFFF #a1b2c3 #12ab #abc", ()),
        ("#face #cafe #decade", ("face", "cafe", "decade")),
        ("#" + "x" * 101, ()),
    ],
)
def test_tags_of_running_text(text: str, found: tuple[str, ...]) -> None:
    assert page_model.text_tags(text) == found


@given(st.text(alphabet="#a1 `\n\t([]-/é."))
def test_a_tag_of_a_text_is_spelled_as_any_other(text: str) -> None:
    assert all(page_model.check_tag(tag) == tag for tag in page_model.text_tags(text))


def test_a_text_cannot_give_a_page_any_number_of_tags() -> None:
    text = " ".join(f"#t{number}" for number in range(2_000))
    assert len(page_model.text_tags(text)) == page_model.MOST_TAGS_IN_TEXT
