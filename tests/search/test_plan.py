"""What a user's text asks for."""

import apsw
import pytest
from hypothesis import given, strategies as st

from quaid.search import text as text_search
from quaid.search.text import (
    LONGEST_PHRASE,
    MOST_PARTS,
    MOST_WORDS,
    STOP_WORDS,
    QueryPlan,
    Term,
    plan_query,
    whole_phrase,
)


def words(text: str) -> list[str]:
    return [term.text for term in plan_query(text).words]


def parts(text: str) -> list[str]:
    return [term.text for term in plan_query(text).parts]


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "?!", '"', '""', '"""', "\0", "\ud800", "🎉", "_ - _"])
def test_text_without_words_asks_for_nothing(text: str) -> None:
    assert plan_query(text) == QueryPlan((), (), ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("river board", ["river", "board"]),
        ("river, board!", ["river", "board"]),
        ("River river RIVER", ["River"]),
        ("e-mail", ["e mail"]),
        ("alice@example.com", ["alice example com"]),
        ("/usr/local/bin", ["usr local bin"]),
        ("2024-03-05", ["2024 03 05"]),
        ("c++", ["c"]),
        ("don't don’t", ["don t"]),
        ("Caroline's Caroline’s", ["Caroline"]),
        ("title:river", ["title river"]),
        ("river* ^board -x +y", ["river", "board", "x", "y"]),
        ("a\0b \ud800c", ["a b", "c"]),
    ],
)
def test_query_is_split_into_words_and_phrases(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_operators_are_only_words() -> None:
    assert words("x AND y OR z NOT NEAR") == ["x", "AND", "y", "OR", "z", "NOT", "NEAR"]


def test_a_pair_of_quotes_makes_a_phrase() -> None:
    assert words('ada "support group" oslo') == ["ada", "support group", "oslo"]
    assert words("ada “support group” oslo") == ["ada", "support group", "oslo"]
    assert parts('"support group"') == ["support group"]


def test_a_quote_without_its_partner_is_only_text() -> None:
    assert words('ada "support group') == ["ada", "support", "group"]
    assert words('5" disk and "hard drive"') == ["5", "disk", "and", "hard", "drive"]


def test_a_word_made_of_several_can_also_be_found_by_one_of_them() -> None:
    assert parts("write alice@example.com") == ["write", "alice example com", "alice", "example", "com"]


def test_words_of_every_text_count_only_beside_nothing_else() -> None:
    asked = plan_query("when did Ada go to the river")
    assert [term.text for term in asked.words] == ["when", "did", "Ada", "go", "to", "the", "river"]
    assert [term.text for term in asked.telling] == ["Ada", "go", "river"]
    assert asked.parts == asked.telling
    assert plan_query("The Who").telling == plan_query("The Who").words
    assert {"the", "who"} <= STOP_WORDS


def test_accents_are_joined_to_their_letters() -> None:
    assert words("Zoe\u0308") == ["Zoë"]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("京", '"京"*'),
        ("東京", '"東京"'),
        ("東京都", '"東京 京都"'),
        ("知识管理", '"知识 识管 管理"'),
        ("ｶﾀｶﾅ", '"カタ タカ カナ"'),
        ("한국어", '"한국 국어"'),
        ("ไทย", '"ไท ทย"'),
        ("iPhone手机壳", '"iPhone 手机 机壳"'),
        ("用Python", '"用 Python"'),
        ("第3章", '"第 3 章"*'),
        ("「東京」", '"東京"'),
    ],
)
def test_scripts_without_spaces_are_asked_for_in_pairs(text: str, quoted: str) -> None:
    (term,) = plan_query(text).words
    assert term.quoted == quoted
    assert term.unspaced


def test_a_sentence_without_spaces_can_be_found_by_its_pairs() -> None:
    assert parts("知识管理") == ["知识 识管 管理", "知识", "识管", "管理"]
    assert plan_query("東京 hotel").unspaced
    assert not plan_query("hotel").unspaced


def test_a_quoted_phrase_of_such_a_script_keeps_its_gaps() -> None:
    assert words('"知识 管理"') == ["知识 识 管理"]


def test_a_huge_question_has_a_small_plan() -> None:
    many = " ".join(f"word{number}" for number in range(100_000))
    assert len(plan_query(many).words) == MOST_WORDS
    assert len(plan_query("-".join(["a", "b"] * 50_000)).words[0].text.split()) == LONGEST_PHRASE
    assert len(plan_query("知识管理" * 250_000).parts) <= MOST_PARTS
    assert plan_query('"' * 1_000_000).words == ()


def test_the_whole_text_is_one_phrase() -> None:
    assert whole_phrase(" River AI (Oslo) ") == Term("River AI Oslo")
    assert whole_phrase("?") is None


@given(st.text() | st.text(alphabet='"“”ab 京都ไท\0\ud800*^:-+()', max_size=40))
def test_every_plan_is_valid_fts5(text: str) -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE pages USING fts5 (title, body)")
    asked = plan_query(text)
    for terms in (asked.words, asked.telling, asked.parts):
        if terms:
            for operator in (" AND ", " OR "):
                expression = operator.join(term.quoted for term in terms)
                assert (
                    db.execute("SELECT rowid FROM pages WHERE pages MATCH ?", (expression,)).fetchall() == []
                )
    assert bool(asked.words) == bool(asked.telling) == bool(asked.parts)
    db.close()


@given(st.text(st.sampled_from("ab Z9_-'.é\u0301\u0130²\u2009\u3000\x1f\x85"), max_size=30))
def test_the_words_of_a_text_are_those_of_its_pattern(text: str) -> None:
    assert text_search._words(text) == text_search._WORD.findall(text)
