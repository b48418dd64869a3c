"""Whether a text says anything new."""

import pytest
from hypothesis import given, strategies as st

from quaid.core.novelty import corrects, jaccard, likeness


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("", "", 1.0),
        ("a", "", 0.0),
        ("The crane is red", "the  CRANE\nis red", 1.0),
        ("a b c", "b c d", 0.5),
        ("red. red", "red", 0.5),  # words are split at white space and nowhere else
    ],
)
def test_the_share_of_common_words(one: str, other: str, share: float) -> None:
    assert jaccard(one, other) == pytest.approx(share)


@given(st.text(), st.text())
def test_the_share_is_the_same_from_both_sides(one: str, other: str) -> None:
    assert jaccard(one, other) == jaccard(other, one)
    assert 0 <= jaccard(one, other) <= 1
    assert jaccard(one, one) == 1


@pytest.mark.parametrize(
    ("words", "meaning", "found"),
    [
        (0.85, None, None),
        (0.86, None, 0.86),
        (0.2, 0.95, None),
        (0.2, 0.96, 0.96),
        (0.9, 0.99, 0.9),
    ],
)
def test_the_limits_are_not_duplicates_themselves(
    words: float, meaning: float | None, found: float | None
) -> None:
    assert likeness(words, meaning) == found


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("She is the owner of the crane.", "The crane's owner: she.", False),
        ("It costs 10 crowns.", "It costs 12 crowns.", True),
        ("Due in March.", "Due in April.", True),
        ("He is in charge.", "He is not in charge.", True),
        ("He can come.", "He can't come.", True),
    ],
)
def test_another_number_date_or_denial_is_a_correction(old: str, new: str, found: bool) -> None:
    assert corrects(old, new) is found
