"""How many tokens a text has, about."""

import pytest
from hypothesis import given, strategies as st

from quaid.model.plain_text import count_tokens, token_measure


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
