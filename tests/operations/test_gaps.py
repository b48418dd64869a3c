"""Gaps: a weak answer leaves one, a page that answers it closes it, and words stay out until approved."""

import json
import os
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import GapResolved, InvalidArgument, NotAllowed, NotFound, PageNotFound, WrongQuestion
from quaid.model.plain_text import question_hash
from quaid.operations import dispatch, page_changes
from quaid.operations.dispatch import json_value
from quaid.operations.query import GapRecord
from quaid.operations.registry import Scope

QUESTION = "Who maintains the harbour crane?"
ANSWER = "# Harbour crane\n\nIngrid maintains the harbour crane since 2024."


def call(brain: Brain, tool: str, scope: Scope = "write", **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool("memory_" + tool), arguments, scope)


def approved(brain: Brain, question: str = QUESTION) -> int:
    gap = call(brain, "gap", query_text=question).gap
    call(brain, "gap_approve", gap_id=gap.id, query_text=question, sensitivity="external", approver="Mira")
    return int(gap.id)


@pytest.fixture
def boats(brain: Brain) -> Brain:
    call(brain, "put", slug="concepts/boats", content="# Boats\n\nWooden hulls need paint every spring.")
    call(brain, "put", slug="people/bo", content="# Bo\n\nSails on Sundays with his sister.")
    return brain


def test_a_weak_answer_leaves_a_gap_without_words(boats: Brain) -> None:
    assert call(boats, "query", question=QUESTION).strength != "strong"
    listed = call(boats, "gaps", "read")
    gap = listed.gaps[0]
    assert (listed.total, gap.query_text, gap.sensitivity, gap.times_seen) == (1, None, "internal", 1)
    assert "crane" not in json.dumps(json_value(listed))


def test_a_gap_keeps_the_score_of_the_best_result(boats: Brain) -> None:
    results = call(boats, "query", question="Who paints the harbour crane?")
    (gap,) = call(boats, "gaps").gaps
    assert gap.confidence_score == max(result.score for result in results.results) < 0.5


def test_the_same_question_counts_up_whatever_its_spelling(boats: Brain) -> None:
    for question in (QUESTION, "who maintains the  harbour crane", "WHO MAINTAINS THE HARBOUR CRANE??"):
        call(boats, "query", question=question)
    assert [gap.times_seen for gap in call(boats, "gaps").gaps] == [3]


def test_the_words_of_a_gap_are_nowhere_in_the_file(boats: Brain) -> None:
    call(boats, "query", question="Who maintains the zyxwvut crane?")
    call(boats, "gap", query_text="Where is the zyxwvut?", context="the weekly call")
    boats.close()
    path = boats.settings.db_path
    for name in os.listdir(os.path.dirname(path)):
        file = os.path.join(os.path.dirname(path), name)
        if os.path.isfile(file):
            with open(file, "rb") as opened:
                assert b"zyxwvut" not in opened.read(), name


def test_a_redacted_approval_keeps_no_raw_question(boats: Brain) -> None:
    question = "What does Zyxwvut pay for the crane?"
    gap_id = call(boats, "gap", query_text=question).gap.id
    redacted: dict[str, Any] = {
        "sensitivity": "redacted",
        "redacted_query": "What do cranes cost?",
        "approver": "Mira",
    }
    gap = call(boats, "gap_approve", gap_id=gap_id, query_text=question, **redacted).gap
    assert (gap.query_text, gap.redacted_query, gap.approved_by) == (None, "What do cranes cost?", "Mira")
    assert "approved by Mira (redacted): What do cranes cost?" in render(GapRecord(gap, "approved"))
    assert dispatch.call(boats, dispatch.find_command("gaps clear"), {}, "owner").closed == 0
    assert question_hash(question) == call(boats, "gaps").gaps[0].query_hash
    boats.close()
    with open(boats.settings.db_path, "rb") as file:
        assert b"yxwvut" not in file.read()


def test_an_external_approval_that_becomes_a_redacted_one_loses_the_question(boats: Brain) -> None:
    gap_id = approved(boats)
    redacted: dict[str, Any] = {
        "sensitivity": "redacted",
        "redacted_query": "Who looks after cranes?",
        "approver": "Bo",
    }
    gap = call(boats, "gap_approve", gap_id=gap_id, query_text=QUESTION, **redacted).gap
    assert (gap.query_text, gap.sensitivity) == (None, "redacted")
    assert "external, approved by Mira" in gap.context


def test_a_page_that_answers_a_redacted_gap_resolves_it(boats: Brain) -> None:
    gap_id = call(boats, "gap", query_text="What does Zyxwvut pay for the harbour crane?").gap.id
    redacted: dict[str, Any] = {"sensitivity": "redacted", "redacted_query": "What do harbour cranes cost?"}
    question = "What does Zyxwvut pay for the harbour crane?"
    call(boats, "gap_approve", gap_id=gap_id, query_text=question, approver="Mira", **redacted)
    call(
        boats, "put", slug="concepts/cranes", content="# Harbour cranes\n\nHarbour cranes cost 90,000 euros."
    )
    assert call(boats, "gaps", include_resolved=True).gaps[0].resolved_by_slug == "concepts/cranes"


def test_the_threshold_says_which_answers_leave_a_gap(boats: Brain) -> None:
    weak = "Which spring paint do wooden ships of other countries carry?"
    assert call(boats, "query", question=weak).strength == "weak"
    assert call(boats, "gaps").total == 1
    dispatch.call(
        boats, dispatch.find_command("config set"), {"key": "gap_threshold", "value": "weak"}, "owner"
    )
    assert call(boats, "query", question=weak).strength == "weak"
    assert call(boats, "gaps").total == 0  # closed: it is answered well enough now
    assert call(boats, "query", question=QUESTION).strength == "none"
    assert call(boats, "gaps").total == 1
    assert call(boats, "gaps", include_resolved=True).total == 2
    with pytest.raises(InvalidArgument, match="must be one of strong, weak"):
        dispatch.call(
            boats, dispatch.find_command("config set"), {"key": "gap_threshold", "value": "0.3"}, "owner"
        )


def test_no_gap_is_noted_where_it_would_mean_nothing(brain: Brain) -> None:
    call(brain, "query", question=QUESTION)  # an empty memory
    call(brain, "put", slug="people/bo", content="# Bo\n\nSails on Sundays.")
    call(brain, "query", question=QUESTION, type="person")  # a filter may have hidden the answer
    dispatch.call(brain, dispatch.find_command("config set"), {"key": "log_gaps", "value": "off"}, "owner")
    call(brain, "query", question=QUESTION)
    assert call(brain, "gaps").total == 0
    dispatch.call(brain, dispatch.find_command("config set"), {"key": "log_gaps", "value": "on"}, "owner")
    call(brain, "query", question=QUESTION)
    assert call(brain, "gaps").total == 1


def test_a_text_without_words_leaves_no_gap(boats: Brain) -> None:
    for text in ("\ufffd\ufffd", "a" * 4_000, "????", "2026-04-25 17:00"):
        call(boats, "query", question=text)
    assert call(boats, "gaps").total == 0


def test_a_question_is_answered_when_no_gap_can_be_noted(boats: Brain) -> None:
    other = Brain(boats.settings)
    assert other.db.lock.try_take()  # somebody writes
    try:
        assert call(boats, "query", question=QUESTION).strength != "strong"
    finally:
        other.db.lock.release()
        other.close()
    assert call(boats, "gaps").total == 0


def test_a_strong_answer_to_the_same_question_resolves_its_gap(boats: Brain) -> None:
    call(boats, "query", question=QUESTION)
    call(boats, "put", slug="concepts/crane", content=ANSWER)
    assert call(boats, "gaps").total == 1  # its words are not known: nobody can tell yet
    assert call(boats, "query", question=QUESTION).strength == "strong"
    gap = call(boats, "gaps", include_resolved=True).gaps[0]
    assert (gap.resolved_by_slug, call(boats, "gaps").total) == ("concepts/crane", 0)


def test_a_page_that_answers_an_approved_gap_resolves_it(boats: Brain) -> None:
    gap_id = approved(boats)
    call(boats, "put", slug="concepts/paint", content="# Paint\n\nRed lead is poisonous.")
    assert call(boats, "gaps").total == 1
    call(boats, "put", slug="concepts/crane", content=ANSWER)
    gap = call(boats, "gaps", include_resolved=True).gaps[0]
    assert (gap.id, gap.resolved_by_slug) == (gap_id, "concepts/crane")


def test_an_approval_needs_the_question_itself(boats: Brain) -> None:
    gap = call(boats, "gap", query_text=QUESTION).gap
    fields = {"gap_id": gap.id, "sensitivity": "external", "approver": "Mira"}
    with pytest.raises(WrongQuestion) as caught:
        call(boats, "gap_approve", query_text="Who maintains the crane?", **fields)
    assert "harbour" not in str(caught.value)
    done = call(boats, "gap_approve", query_text="who maintains the harbour crane", **fields)
    assert (done.gap.query_text, done.gap.approved_by) == ("who maintains the harbour crane", "Mira")
    assert done.gap.approved_at is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitivity": "redacted"}, "redacted_query: is required"),
        (
            {"sensitivity": "redacted", "redacted_query": "Tell me: " + QUESTION},
            "still contains the question",
        ),
        ({"sensitivity": "external", "redacted_query": "Who?"}, "is only for sensitivity redacted"),
        ({"sensitivity": "internal"}, "must be one of redacted, external"),
        ({"sensitivity": "external", "approver": " "}, "approver: is empty"),
    ],
)
def test_a_wrong_approval_changes_nothing(boats: Brain, arguments: dict[str, Any], message: str) -> None:
    gap = call(boats, "gap", query_text=QUESTION).gap
    fields = {"gap_id": gap.id, "query_text": QUESTION, "approver": "Mira", **arguments}
    with pytest.raises(InvalidArgument, match=message):
        call(boats, "gap_approve", **fields)
    assert call(boats, "gaps").gaps[0] == gap


@pytest.mark.parametrize(
    "arguments",
    [
        {"query_text": " "},
        {"query_text": QUESTION, "confidence_score": 1.5},
        {"query_text": QUESTION, "context": "Mira asked: " + QUESTION},
        {"query_text": QUESTION, "context": "x" * 501},
    ],
)
def test_a_wrong_gap_is_not_kept(boats: Brain, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(boats, "gap", **arguments)
    assert "harbour" not in str(caught.value)
    assert call(boats, "gaps").total == 0


def test_a_resolved_gap_stays_as_it_is(boats: Brain) -> None:
    gap_id = approved(boats)
    with pytest.raises(PageNotFound):
        call(boats, "gap_resolve", gap_id=gap_id, resolved_by_slug="concepts/none")
    assert (
        call(boats, "gap_resolve", gap_id=gap_id, resolved_by_slug="people/bo").gap.resolved_by_slug
        == "people/bo"
    )
    with pytest.raises(GapResolved):
        call(boats, "gap_resolve", gap_id=gap_id)
    with pytest.raises(GapResolved):
        call(boats, "gap_approve", gap_id=gap_id, query_text=QUESTION, sensitivity="external", approver="Bo")
    with pytest.raises(NotFound):
        call(boats, "gap_resolve", gap_id=99)


def test_a_reader_sees_gaps_and_changes_none(boats: Brain) -> None:
    assert call(boats, "gaps", "read").total == 0
    with pytest.raises(NotAllowed):
        call(boats, "gap", "read", query_text=QUESTION)


def test_nothing_is_searched_when_no_gap_has_words(boats: Brain) -> None:
    call(boats, "gap", query_text=QUESTION)
    assert page_changes.close_answered_gaps(boats, ["people/bo"]) == []


def test_a_redacted_approval_needs_no_raw_question_and_an_external_one_does(boats: Brain) -> None:
    gap_id = call(boats, "gap", query_text=QUESTION).gap.id
    with pytest.raises(InvalidArgument, match="query: is required for external"):
        call(boats, "gap_approve", gap_id=gap_id, sensitivity="external", approver="Mira")
    redacted: dict[str, Any] = {
        "sensitivity": "redacted",
        "approver": "Mira",
        "redacted_query": "Who maintains cranes?",
    }
    gap = call(boats, "gap_approve", gap_id=gap_id, **redacted).gap
    assert (gap.query_text, gap.redacted_query, gap.approved_by) == (None, "Who maintains cranes?", "Mira")


def test_encrypted_words_are_shown_to_the_owner_only(boats: Brain) -> None:
    dispatch.call(boats, dispatch.find_command("config set"), {"key": "log_gaps", "value": "words"}, "owner")
    call(boats, "query", question="Who maintains the zyxwvut crane?")
    (gap,) = call(boats, "gaps", "owner").gaps
    assert (gap.query_text, gap.approved_by) == ("Who maintains the zyxwvut crane?", None)
    assert call(boats, "gaps", "write").gaps[0].query_text is None
    assert call(boats, "gaps", "read").gaps[0].query_text is None
    key = os.path.join(os.path.dirname(boats.db.path), f"key-of-{os.path.basename(boats.db.path)}")
    assert os.stat(key).st_mode & 0o777 == 0o600
    for name in (boats.db.path, boats.db.path + "-wal"):
        with open(name, "rb") as file:
            assert b"zyxwvut" not in file.read()
    os.unlink(key)
    assert call(boats, "gaps", "owner").gaps[0].query_text is None
    assert not os.path.exists(key)  # reading makes no other one


def test_closing_a_gap_or_forgetting_a_page_deletes_encrypted_words(boats: Brain) -> None:
    dispatch.call(boats, dispatch.find_command("config set"), {"key": "log_gaps", "value": "words"}, "owner")
    for question in (QUESTION, "Who paints the zyxwvut crane?"):
        call(boats, "gap", query_text=question)
    stored = "SELECT count(*) FROM knowledge_gaps WHERE sealed_query IS NOT NULL"
    assert boats.db.one(stored) == (2,)
    call(boats, "gap_resolve", gap_id=1)
    assert boats.db.one(stored) == (1,)
    dispatch.call(boats, dispatch.find_command("forget"), {"slug": "people/bo", "yes": True}, "owner")
    assert boats.db.one(stored) == (0,)
