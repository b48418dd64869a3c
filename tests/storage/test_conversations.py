"""Turns as rows: their words burn and come back, and what is wrong is seen."""

import apsw
import pytest

from quaid.storage import checks, conversations
from quaid.storage.checks import rebuild_derived_rows
from quaid.storage.conversations import Conversations, NewTurn, TurnBatch
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"


def add(db: Database, *texts: str, title: str = "", session: str = "s") -> conversations.TurnsAdded:
    turns = [NewTurn("user", text, NOW, "") for text in texts]
    return db.write(lambda tx: TurnBatch("plain", session, turns, title).save(tx, NOW, {}, anew=True))


def words(db: Database) -> list[tuple[object, ...]]:
    db.connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.v USING fts5vocab (main, turn_fts, instance)"
    )
    return db.rows("SELECT term, doc, offset FROM temp.v")


def test_words_burn_and_come_back_as_they_were(db: Database) -> None:
    add(db, "engines weave", "東京の図書館", "third")
    before = words(db)
    db.write(lambda tx: tx.execute("INSERT INTO turn_fts (turn_fts) VALUES ('delete-all')"))
    assert words(db) == []
    db.write(rebuild_derived_rows)
    assert words(db) == before
    assert checks.validate(db) == []


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("DELETE FROM turn_fts WHERE rowid = 1", "missing"),
        ("INSERT INTO turn_fts (rowid, text) VALUES (77, 'x')", "it has not"),
        ("UPDATE conversation_turns SET text = 'many more words than before' WHERE id = 1", "not those"),
    ],
)
def test_validate_sees_wrong_words(db: Database, sql: str, problem: str) -> None:
    add(db, "engines weave", "third")
    db.write(lambda tx: tx.execute(sql))
    (result,) = checks.validate(db, ["fts"])
    assert result.where.startswith("turn ")
    assert problem in result.problem


def test_the_words_of_a_removed_conversation_go(db: Database) -> None:
    add(db, "engines weave", session="s")
    add(db, "looms", session="t")
    (conversation,) = Conversations(db).with_session("s")
    db.write(lambda tx: conversation.remove(tx, NOW))
    assert {term for term, _, _ in words(db)} == {"loom"}
    assert Conversations(db).latest(0)[1:] == (1, 1)
    assert add(db, "engines weave").removed


def test_the_first_turn_is_the_title_until_a_title_is_set(db: Database) -> None:
    add(db, "How do\nengines weave? " + "x" * 500)
    (held,), *_ = Conversations(db).latest(10)
    assert held.title.startswith("How do engines weave? xxx")
    assert len(held.title) == conversations.LONGEST_TITLE
    add(db, "more", title="Looms")
    assert Conversations(db).latest(10)[0][0].title == "Looms"


def test_a_title_without_a_turn_makes_no_conversation(db: Database) -> None:
    assert add(db, title="Looms") == (0, 0, False, False)
    assert Conversations(db).latest(0)[1:] == (0, 0)


def test_a_turn_needs_its_conversation(db: Database) -> None:
    columns = "conversation_id, turn, role, identity, text"
    sql = f"INSERT INTO conversation_turns ({columns}) VALUES (9, 1, 'user', x'00', '')"
    with pytest.raises(apsw.ConstraintError):
        db.write(lambda tx: tx.execute(sql))
