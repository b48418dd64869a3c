"""Where things belong, told from their words; the measured set is bench/data/remember.txt."""

import pytest
from bench import notebook as measured

from quaid.notebook import router

KINDS = router.NOTE_KINDS


@pytest.mark.parametrize("held_out", [False, True])
def test_nine_of_ten_sentences_find_their_place(held_out: bool) -> None:
    sentences = measured.sentences(held_out)
    assert len(sentences) >= (50 if held_out else 100)
    assert measured.accuracy(sentences) >= 0.9


@pytest.mark.parametrize("chosen", ["seen", "fresh"])
def test_sentences_find_their_file_and_the_list_they_name(chosen: str) -> None:
    sentences = measured.filed(chosen)
    assert len(sentences) >= 100
    assert measured.filing(sentences) >= 0.95


def test_a_shopping_sentence_becomes_its_items() -> None:
    assert router.lines_to_write("Please remember: buy milk, eggs and 2 kg of rice", KINDS["shopping"]) == [
        "Milk",
        "Eggs",
        "2 kg of rice",
    ]
    assert router.lines_to_write("- milk\n- [ ] eggs", KINDS["shopping"]) == ["milk", "eggs"]


@pytest.mark.parametrize(
    ("said", "kind", "written"),
    [
        ("Remember to call Ann", "todos", "Call Ann"),
        ("- [ ] call Ann", "todos", "Call Ann"),
        ("Remember that I like tea", "preferences", "I like tea"),
        ("iPhones charge slowly here", "facts", "iPhones charge slowly here"),
        ("note that iOS 19 is out", "facts", "iOS 19 is out"),
        ("remember that", "facts", "remember that"),
    ],
)
def test_only_the_words_that_ask_for_it_go(said: str, kind: str, written: str) -> None:
    assert router.lines_to_write(said, KINDS[kind]) == [written]


@pytest.mark.parametrize("text", ["?", "…", "日本語のメモ", "x" * 10_000, "a, " * 5_000, "- ", "(" * 2_000])
def test_any_text_has_a_place_and_a_line(text: str) -> None:
    kind = router.route_kind(text)
    assert router.lines_to_write(text, kind)
    assert isinstance(router.find_person(text), str)


def test_a_category_narrows_the_choice() -> None:
    assert router.route_kind("Call the dentist", ("facts", "patterns")).name == "facts"
