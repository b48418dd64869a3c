"""A few words of a page around those that were asked for."""

import pytest

from quaid.search.text import EXCERPT_LEAD, EXCERPT_WIDTH, ExcerptMarker, plan_query
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import Stemmer


def excerpt(db: Database, query: str, *texts: str) -> str:
    return ExcerptMarker(Stemmer(db), plan_query(query)).excerpt(*texts)


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("river", "The river rose.", "The **river** rose."),
        ("running", "She runs daily.", "She **runs** daily."),
        ("zoe", "Then Zoë came.", "Then **Zoë** came."),
        ("support group", "a support group met", "a **support group** met"),
        ("the river", "the river", "the **river**"),
        ("alice@example.com", "to alice@example.com now", "to **alice**@**example**.**com** now"),
        ("river", "Ünder dem Brücke: river\n\n  wide", "Ünder dem Brücke: **river** wide"),
        ("東京", "私は東京に住む", "私は**東京**に住む"),
        ("東京都", "東京都の東京", "**東京都**の**東京**"),
        ("ｶﾀｶﾅ", "カタカナで書く", "**カタカナ**で書く"),
        ("Python 编程", "使用Python编程", "使用**Python编程**"),
        ("python", "使用Python编程", "使用**Python**编程"),
        ("ไทย", "ประเทศไทยสวยงาม", "ประเทศ**ไทย**สวยงาม"),
        ("한국어", "한국어를 배운다", "**한국어**를 배운다"),
    ],
)
def test_the_words_are_marked(db: Database, query: str, text: str, shown: str) -> None:
    assert excerpt(db, query, text) == shown


def test_page_matching_only_by_name_has_no_excerpt(db: Database) -> None:
    assert excerpt(db, "river", "nothing of it", "") == ""


def test_the_second_text_is_shown_when_the_first_does_not_hold_the_words(db: Database) -> None:
    assert excerpt(db, "river", "nothing of it", "the river") == "the **river**"


def test_the_marks_can_be_chosen(db: Database) -> None:
    assert ExcerptMarker(Stemmer(db), plan_query("river"), ("<", ">")).excerpt("the river") == "the <river>"


def test_the_stretch_with_most_of_the_words_is_shown(db: Database) -> None:
    text = (
        "The river. " + "Something else is said here. " * 40 + "The board of the river met. " + "More. " * 80
    )
    shown = excerpt(db, "river board", text)
    assert shown.startswith("…The **board** of the **river** met. More.")
    assert shown.endswith("…")
    assert len(shown) < EXCERPT_WIDTH + EXCERPT_LEAD


def test_a_long_text_is_cut_between_words(db: Database) -> None:
    words = "abcdefghij " * 100
    shown = excerpt(db, "river", words + "river " + words)
    assert set(shown.strip("…").replace("*", "").split()) == {"abcdefghij", "river"}
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_word_far_behind_in_a_long_text_is_found(db: Database) -> None:
    assert "**river**" in excerpt(db, "river", "filling " * 10_000 + "river " + "filling " * 100)
    assert "**東京**" in excerpt(db, "東京", "别的" * 40_000 + "東京" + "别的" * 100)


@pytest.mark.parametrize("text", ["", "\n\n", "x" * 100_000, "東" * 100_000])
def test_odd_texts_do_no_harm(db: Database, text: str) -> None:
    assert excerpt(db, "river 京", text) == ""
