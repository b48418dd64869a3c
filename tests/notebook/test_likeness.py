"""What counts as the same line."""

import pytest

from quaid.notebook.likeness import same


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Milk", "milk.", True),
        ("Call Zoë", "call zoe!", True),
        ("The wifi password at the cabin is bluewhale42", "wifi password at the cabin is bluewhale42", True),
        ("I like coffee", "I don't like coffee", False),
        ("The meeting with Anna about the budget for the house is at 3 pm on Monday in the office",
         "The meeting with Anna about the budget for the house is at 4 pm on Monday in the office", False),
        ("Tell the team that we will never ship the old client on a Friday evening again, please",
         "Tell the team that we will ship the old client on a Friday evening again, please", False),
        ("Anna likes Bob", "Bob likes Anna", False),
        ("", "x", False),
    ],
)  # fmt: skip
def test_only_words_that_say_nothing_may_differ(one: str, other: str, is_same: bool) -> None:
    assert same(one, other) is is_same
    assert same(other, one) is is_same
