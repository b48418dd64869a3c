"""What counts as the same line, and as the same word."""

import pytest

from quaid.model.english import stem
from quaid.model.plain_text import same_line


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Milk", "milk.", True),
        ("Call Zoë", "call zoë!", True),
        ("Buy MILK", "buy milk", True),
        ("**Milk** (two)", "milk two", True),
        ("The wifi password is Secret1", "The wifi password is secret1", False),
        ("The freezer is set to 18", "The freezer is set to -18", False),
        ("I like C", "I like C++", False),
        ("Rate it 👍", "Rate it 👎", False),
        ("🎂", "🎉", False),
        ("The budget is 3,500", "The budget is 3.500", False),
        ("x = y", "x != y", False),
        ("a<b", "a>b", False),
        ("10%", "10", False),
        ("año", "ano", False),
        ("see https://x.org/a?b", "see https://x.org/a#b", False),
        ("The key is in the box on the shelf", "The key is on the box in the shelf", False),
        ("...", "!!!", False),
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
    assert same_line(one, other) is is_same
    assert same_line(other, one) is is_same


@pytest.mark.parametrize(
    "family",
    [
        "format formats formatting formatter formatted",
        "indent indents indentation",
        "merge merges merging merged",
        "library libraries",
        "deploy deploys deployment deploying",
        "migration migrations migrate migrating",
        "commit commits committed committing",
        "tab tabs",
        "space spaces",
        "string strings",
        "process processes processing",
    ],
)
def test_the_forms_of_a_word_have_one_stem(family: str) -> None:
    stems = {stem(word) for word in family.split()}
    assert len(stems) == 1
    assert all(word.startswith(next(iter(stems))) for word in family.split())


def test_words_that_mean_two_things_keep_two_stems() -> None:
    for one, other in (("string", "strict"), ("before", "after"), ("main", "master"), ("this", "thing")):
        assert stem(one) != stem(other)
