"""Which pages and wings a question names."""

from collections.abc import Callable

import pytest

from quaid.search.question import find_entities, name_spans
from quaid.storage.sqlite.connection import Database

Put = Callable[..., int]


@pytest.fixture
def mira(put: Put) -> int:
    return put("people/mira-dahlquist", "Text.", title="Mira Dahlquist", wing="people")


@pytest.mark.parametrize(
    "question", ["Mira Dahlquist", "tell me of [[people/mira-dahlquist]]", "[[mira-dahlquist#Views|her]]"]
)
def test_a_page_is_meant_when_it_is_the_question_or_in_brackets(
    db: Database, mira: int, question: str
) -> None:
    assert list(find_entities(db, question).exact) == [mira]


@pytest.mark.parametrize("question", ["What does Mira Dahlquist think?", "Is this Mira Dahlquist's boat?"])
def test_a_page_is_mentioned_when_its_name_is_among_the_words(db: Database, mira: int, question: str) -> None:
    entities = find_entities(db, question)
    assert (entities.exact, list(entities.mentioned)) == ({}, [mira])


def test_a_wing_may_be_named(db: Database, mira: int) -> None:
    assert mira
    assert find_entities(db, "which people sail?").wings == ("people",)


def test_words_of_every_text_are_not_names(db: Database, put: Put) -> None:
    put("notes/about", "Text.", title="About")
    assert find_entities(db, "what is it about here").mentioned == {}


def test_a_long_question_costs_no_more_than_its_first_words(db: Database, mira: int) -> None:
    assert mira
    assert len(name_spans("Mira Dahlquist " * 10_000)) < 300
    assert list(find_entities(db, "Mira Dahlquist and " + "x " * 50_000).mentioned) == [mira]
