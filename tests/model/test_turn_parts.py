"""What is embedded of a turn."""

import itertools

import pytest

from quaid.model.chunker import MOST_TURN_PARTS, TURN_PART_TOKENS, split_turn
from quaid.model.plain_text import count_tokens


@pytest.mark.parametrize("text", ["", " \n ", "yes", "go on", "ok, thanks!", "👍"])
def test_short_turns_have_no_parts(text: str) -> None:
    assert split_turn(text) == ()


@pytest.mark.parametrize("text", ["The boat to the island leaves at nine.", "東京の図書館はどこですか"])
def test_an_ordinary_turn_is_one_part(text: str) -> None:
    assert split_turn(text) == ((0, len(text)),)


def test_a_long_turn_is_cut_into_parts_that_a_model_can_read() -> None:
    text = "\n\n".join(f"Paragraph {number} says that the boat is late again." for number in range(120))
    turn = split_turn(text)
    assert 1 < len(turn) < MOST_TURN_PARTS
    assert (turn[0][0], turn[-1][1]) == (0, len(text))
    assert all(count_tokens(text[start:end]) <= TURN_PART_TOKENS for start, end in turn)
    assert all(before[1] >= after[0] - 2 for before, after in itertools.pairwise(turn))


@pytest.mark.parametrize("line", ["a line of some log\n", "x", "図", "0123456789" * 10 + " "])
def test_only_the_beginning_of_a_very_long_turn_has_parts(line: str) -> None:
    turn = split_turn(line * 400_000)
    assert 0 < len(turn) <= MOST_TURN_PARTS
    assert turn[-1][1] <= 4 * TURN_PART_TOKENS * (MOST_TURN_PARTS + 1)
