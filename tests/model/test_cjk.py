"""Scripts without spaces are stored as overlapping pairs, however long a run is."""

import random

import pytest

from quaid.model.plain_text import cjk_bigrams, cut_cjk


@pytest.mark.parametrize("length", [1, 2, 3, 9_999, 10_000, 10_001, 20_000, 25_001])
def test_a_run_is_cut_into_its_pairs_and_its_last_character(length: int) -> None:
    chance = random.Random(length)
    run = "".join(chance.choice("かなカナ漢字") for _ in range(length))
    assert cut_cjk(f"a{run}b {run}").split() == ["a", *cjk_bigrams(run), "b", *cjk_bigrams(run)]


def test_text_without_cjk_is_unchanged() -> None:
    assert cut_cjk("Oslo, and – naïve") == "Oslo, and – naïve"
