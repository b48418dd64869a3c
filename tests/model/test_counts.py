"""Numbers with their nouns."""

import pytest

from quaid.model.plain_text import count_noun


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1_000_000, "1,000,000 pages")]
)
def test_singular_is_used_only_for_one(number: int, told: str) -> None:
    assert count_noun(number, "page") == told


def test_a_plural_that_is_irregular_is_given() -> None:
    assert [count_noun(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
