"""Gaps in the database: counted, approved, resolved; the table keeps the audit trail."""

import apsw
import pytest

from quaid.errors import NotFound
from quaid.storage.questions import Gap, Gaps
from quaid.storage.sqlite.connection import Database

NOW, LATER = "2026-04-25T12:00:00Z", "2026-04-26T12:00:00Z"


def log(db: Database, digest: str = "a" * 64, context: str = "", now: str = NOW) -> Gap:
    return Gaps(db).log(digest, context, 0.5, now)


def approve(db: Database, gap: Gap, approver: str, sensitivity: str = "external") -> Gap:
    return Gaps(db).approve(
        gap.id,
        query_text="What is it?",
        sensitivity=sensitivity,
        approver=approver,
        redacted_query=None,
        now=LATER,
    )


def test_the_same_question_counts_up(db: Database) -> None:
    first = log(db, context="a call")
    again = log(db, now=LATER)
    assert (first.times_seen, again.times_seen, again.id) == (1, 2, first.id)
    assert (again.detected_at, again.last_seen_at, again.context) == (NOW, LATER, "a call")
    assert Gaps(db).read(9, resolved=True)[1] == 1


def test_a_resolved_question_that_is_asked_again_is_a_new_gap(db: Database) -> None:
    first = log(db)
    assert Gaps(db).resolve(first.id, "people/bo", LATER)
    assert not Gaps(db).resolve(first.id, "people/bo", LATER)
    assert log(db).id != first.id
    assert [gap.id for gap in Gaps(db).read(9, resolved=True)[0]] == [first.id + 1, first.id]
    assert Gaps(db).read(0) == ([], 1)


def test_the_most_frequent_gap_comes_first(db: Database) -> None:
    log(db, "a" * 64)
    for _ in range(3):
        log(db, "b" * 64)
    assert [gap.times_seen for gap in Gaps(db).read(9)[0]] == [3, 1]
    assert len(Gaps(db).read(1)[0]) == 1


def test_words_without_an_approval_are_refused_by_the_table(db: Database) -> None:
    gap = log(db)
    for change in (
        "query_text = 'What?'",
        "sensitivity = 'external'",
        "approved_by = 'x', query_text = 'What?'",
    ):
        sql = f"UPDATE knowledge_gaps SET {change} WHERE id = ?"
        with pytest.raises(apsw.ConstraintError):
            db.write(lambda tx, sql=sql: tx.execute(sql, (gap.id,)))  # type: ignore[misc]


def test_an_earlier_approval_stays_readable(db: Database) -> None:
    gap = approve(db, log(db), "Mira", "redacted")
    again = approve(db, gap, "Bo")
    assert (again.approved_by, again.sensitivity, again.approved_at) == ("Bo", "external", LATER)
    assert "redacted, approved by Mira" in again.context


def test_only_open_gaps_with_words_are_tried(db: Database) -> None:
    silent, output, closed = log(db, "a" * 64), log(db, "b" * 64), log(db, "c" * 64)
    approve(db, output, "Mira")
    approve(db, closed, "Mira")
    Gaps(db).resolve(closed.id, None, LATER)
    assert [(gap.id, gap.query_text) for gap in Gaps(db).read(9, with_text=True)[0]] == [
        (output.id, "What is it?")
    ]
    assert Gaps(db).open_id(silent.query_hash) == silent.id
    assert Gaps(db).open_id(closed.query_hash) is None


def test_an_unknown_gap_is_not_found(db: Database) -> None:
    with pytest.raises(NotFound, match="no gap 7"):
        Gaps(db).require(7)
