"""Finding turns by their words."""

import pytest

from quaid.brain import Brain
from quaid.search.conversations import search
from quaid.store import conversations as store
from quaid.store.conversations import Batch, NewTurn


@pytest.fixture
def talk(brain: Brain) -> Brain:
    said = [
        ("user", "Which database shall we take for the archive?"),
        ("assistant", "SQLite: one file, and the archive is easy to carry."),
        ("user", "東京都の図書館はどこですか"),
        ("assistant", "Überall gibt es Bibliotheken, sagt José."),
        ("user", "The file is large."),
    ]
    turns = [NewTurn(role, text, f"2026-04-25T12:00:0{at}Z", "") for at, (role, text) in enumerate(said)]
    batch = Batch("codex", "abc", turns, "Databases", "/p")
    brain.db.write(lambda tx: store.add(tx, batch, brain.now(), {}, anew=True))
    return brain


def found(brain: Brain, query: str, limit: int = 10) -> list[int]:
    return [hit.turn for hit in search(brain.db, query, limit)]


def test_a_hit_says_where_and_when_and_who(talk: Brain) -> None:
    (hit,) = search(talk.db, "carrying SQLite")
    assert hit[:7] == ("codex", "abc", "Databases", "/p", "2026-04-25T12:00:01Z", "assistant", 2)
    assert hit.snippet == "**SQLite**: one file, and the archive is easy to **carry**."
    assert hit.all_words


def test_turns_with_all_words_come_first(talk: Brain) -> None:
    assert found(talk, "archive file")[0] == 2
    assert set(found(talk, "archive file")) == {1, 2, 5}
    assert found(talk, "archive file", 1) == [2]


@pytest.mark.parametrize(
    ("query", "turn"), [("図書館", 3), ("東", 3), ("uberall", 4), ("JOSE", 4), ('"one file"', 2)]
)
def test_every_script_is_found(talk: Brain, query: str, turn: int) -> None:
    assert found(talk, query) == [turn]


@pytest.mark.parametrize(
    "query", ["", " ", "***", "AND OR NOT (", '"', "x" * 1_000_000, "the " * 250_000, "\ud800", "\0"]
)
def test_any_text_is_a_search(talk: Brain, query: str) -> None:
    assert len(search(talk.db, query)) <= 10


def test_pages_are_not_searched(talk: Brain) -> None:
    from quaid.ops.pages import put

    put(talk, "notes/sqlite", "# SQLite\n\nUnmistakable words.")
    assert found(talk, "unmistakable") == []


def test_among_many_turns_the_newest_of_the_common_are_found(brain: Brain) -> None:
    turns = [NewTurn("user", f"common words here and number{at}", "", f"k{at}") for at in range(20_000)]
    brain.db.write(lambda tx: store.add(tx, Batch("plain", "x", turns), brain.now(), {}, anew=True))
    assert found(brain, "number77") == [78]
    assert len(found(brain, "common words here")) == 10
    assert len(found(brain, "common words elsewhere")) == 10
