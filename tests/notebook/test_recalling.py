"""The scale of scores; tests/ops/test_notebook.py asks real notebooks."""

import pytest

from quaid.notebook.recalling import LEAST_SCORE, score
from quaid.search import strength


@pytest.mark.parametrize(
    ("share", "near", "wanted"),
    [(1.0, None, 1.0), (0.4, None, 0.4), (0.0, 0.0, 0.0), (1.0, 0.0, 0.5), (1.0, 1.0, 1.0), (0.0, 0.4, 0.3)],
)
def test_half_is_words_and_half_is_meaning(share: float, near: float | None, wanted: float) -> None:
    assert score(share, near) == wanted


def test_the_scale_is_that_by_which_answers_are_judged() -> None:
    for share in (0.0, 0.3, 0.7):
        for near in (0.1, 0.3, 0.5):
            judged = strength.judge(share, near)
            assert (score(share, near) >= strength.STRONG / 2 - 0.005) >= (judged == "strong")
            assert score(share, near) >= LEAST_SCORE or judged == "none"
