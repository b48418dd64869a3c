"""When two spellings are one question."""

import pytest
from hypothesis import given, strategies as st

from quaid.core.gaps import fold, question_hash, tells


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
    assert tells("Mira asked: who maintains   the crane?", "Who maintains the crane")
    assert not tells("the weekly call", "Who maintains the crane")


@given(st.text())
def test_folding_is_stable(text: str) -> None:
    assert fold(fold(text)) == fold(text) or not text.isascii()
    assert len(question_hash(text)) == 64
