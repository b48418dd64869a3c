"""How well an answer is founded."""

import pytest

from quaid.search.strength import expected_baseline, judge_strength, standing_out, word_share, word_weights


@pytest.mark.parametrize(
    ("words", "meaning", "strength"),
    [
        (0.9, 0.45, "strong"),  # its own conversation
        (0.2, 0.24, "none"),  # the questions of another
        (0.4, 0.3, "weak"),
        (0.0, 0.7, "strong"),  # said in other words
        (0.8, None, "strong"),  # no model
        (0.4, None, "weak"),
        (0.1, None, "none"),
    ],
)
def test_words_and_meaning_make_the_strength(words: float, meaning: float | None, strength: str) -> None:
    assert judge_strength(words, meaning) == strength


def test_a_page_of_that_name_is_always_strong() -> None:
    assert judge_strength(0.0, None, exact=True) == "strong"


def test_the_nearest_chunk_is_not_compared_with_itself() -> None:
    # Two chunks, one at 0.9 and one at 0.5: the mean is 0.7, but an unrelated one has 0.5.
    assert standing_out(0.9, 0.7, 2) == pytest.approx(0.8)
    assert standing_out(0.9, 0.5, 10_000) == pytest.approx(0.8, abs=0.001)


def test_single_chunk_has_no_baseline() -> None:
    assert standing_out(0.9, 0.9, 1) is None


def test_rare_words_count_more() -> None:
    weight = word_weights({"vanadium": 1, "battery": 60}, 100)
    assert word_share(["vanadium"], weight) > 0.8
    assert word_share(["battery", "other"], weight) < 0.2
    assert word_share(["vanadium", "battery", "battery"], weight) == pytest.approx(1.0)
    assert word_share(["anything"], {}) == 0.0


def test_a_small_memory_goes_by_what_the_model_is_known_for() -> None:
    assert expected_baseline(0.7, 0, 0.45) == 0.45
    assert expected_baseline(0.7, 25, 0.45) == pytest.approx(0.575)
    assert expected_baseline(0.7, 50, 0.45) == expected_baseline(0.7, 3, None) == 0.7
