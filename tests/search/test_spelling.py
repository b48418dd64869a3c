"""Misspelled words of a question."""

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st
from tests.search.asking import ask

from quaid.embedding import registry
from quaid.search import question as questions
from quaid.search.question import correct_spelling, edit_distance
from quaid.search.text import search_pages
from quaid.storage.sqlite.connection import Database

Put = Callable[..., int]
NOW = "2026-04-25T12:00:00Z"


@pytest.fixture(autouse=True)
def pages(put: Put) -> None:
    put("medicine/spread", "Metastases of the liver are seen late. Zubrowski examined them.")
    put(
        "medicine/other",
        "The contract for the tomograph ends in June. It needs an adapter, a scheduler and a plane.",
    )


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("matasteses of the liver", "metastases of the liver"),
        ("where are metastasse?", "where are metastases?"),
        ("what did Zubrovski examine", "what did Zubrowski examine"),
        ("tomogarph contract", "tomograph contract"),
        ("who is the schedulr", "who is the scheduler"),  # "schedule" without e, and r
    ],
)
def test_a_word_that_the_memory_lacks_is_corrected(db: Database, question: str, expected: str) -> None:
    assert correct_spelling(db, question)[0] == expected


@pytest.mark.parametrize(
    "question",
    [
        "metastases of the liver",
        "contrast of colours",  # an English word, though the memory has "contract"
        "who are the early adopters",  # an inflection of "adopt", though the memory has "adapter"
        "notes on planners",
        'exactly "matasteses"',
        "[[matasteses]]",
        "notes/matasteses",
        "who is Zzyzx?",
        "tmgrph",
        "",
        "転移",
    ],
)
def test_other_words_stay_as_they_are(db: Database, question: str) -> None:
    assert correct_spelling(db, question) == (question, ())


def test_nothing_is_corrected_without_a_list_of_english_words(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "BUILT_IN_PACKAGE", "no_such_package")
    assert correct_spelling(db, "matasteses of the liver")[1] == ()


def test_in_a_large_memory_the_first_two_letters_must_be_right(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "MANY_ROWS", 0)
    assert correct_spelling(db, "matasteses metastesas")[0] == "matasteses metastases"


def test_an_answer_tells_what_was_searched_for_instead(db: Database) -> None:
    answer = ask(db, "matasteses of the livr")
    assert answer.results[0].slug == "medicine/spread"
    assert answer.question == "matasteses of the livr"
    assert 'searched for "metastases" instead of "matasteses"' in answer.notes


def test_words_of_erased_pages_are_not_offered(db: Database, put: Put) -> None:
    put("medicine/spread", "Nothing is left.")
    assert correct_spelling(db, "matasteses of the liver")[1] == ()
    assert search_pages(db, "metastases") == []


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(0, 3))
def test_the_distance_has_a_limit_and_no_direction(first: str, second: str, most: int) -> None:
    distance = edit_distance(first, second, most)
    assert distance == edit_distance(second, first, most)
    assert 0 <= distance <= most + 1
    assert (distance == 0) == (first == second)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [("abcd", "abdc", 1), ("abcd", "abxd", 1), ("abcd", "abcde", 1), ("abcd", "acbde", 2), ("ab", "xyz", 3)],
)
def test_letters_are_inserted_deleted_replaced_and_swapped(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second, 2) == distance
