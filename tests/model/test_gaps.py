"""When two spellings are one question."""

import pytest
from hypothesis import given, strategies as st

from quaid.model.plain_text import fold_question, is_question, question_hash, reveals_question


@pytest.mark.parametrize(
    "again",
    [
        "who maintains the crane",
        "  Who   maintains\nthe CRANE?! ",
        "Who maintains the crane…",
        "¿Who maintains the crane?",
    ],
)
def test_the_same_question_has_one_hash(again: str) -> None:
    assert question_hash(again) == question_hash("Who maintains the crane?")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is C#?", "What is C?"),
        ("What is C++?", "What is C?"),
        ("Who is Bo?", "Who was Bo?"),
        ("?", "!"),
    ],
)
def test_other_questions_have_another_hash(one: str, other: str) -> None:
    assert question_hash(one) != question_hash(other)


def test_a_context_that_holds_the_question_tells_it() -> None:
    assert reveals_question("Mira asked: who maintains   the crane?", "Who maintains the crane")
    assert not reveals_question("the weekly call", "Who maintains the crane")


@given(st.text())
def test_folding_is_stable(text: str) -> None:
    assert fold_question(fold_question(text)) == fold_question(text) or not text.isascii()
    assert len(question_hash(text)) == 64


@pytest.mark.parametrize(
    "text", ["Who insures the pier?", "vanadium", "東京", "é", "C3PO at 9", "ok " + "a" * 5_000]
)
def test_a_text_with_a_word_is_a_question(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text", ["", "???", "\x00", "\ufffd\ufffd", "2026-04-25", "a" * 5_000, "aaaa", "_ _", "x"]
)
def test_signs_numbers_and_repeated_letters_are_not_questions(text: str) -> None:
    assert not is_question(text)
