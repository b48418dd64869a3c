"""What agents did: calls are recorded without their arguments, and writes are accepted or undone."""

import time
from typing import Any

import pytest

from quaid.app import Brain, new_calls
from quaid.cli.render import render
from quaid.errors import ChangedSinceCreated, InvalidArgument, InvalidDate, NotFound
from quaid.operations import cleanup, dispatch
from quaid.operations.review import ActivityRecord
from quaid.storage import erase
from quaid.storage.agents import AgentCalls

TEXT = "# Ada\n\nAda lives in Oslo."


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    brain.agent = ""
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def agent(brain: Brain) -> Brain:
    run(brain, "put", slug="people/ada", content=TEXT)
    run(brain, "config set", key="agent_writes", value="direct")
    brain.calls = new_calls()
    return brain


def call(brain: Brain, tool: str, *, client: str = "Codex", session: str = "s1", **arguments: Any) -> Any:
    """Call a tool as an agent and store the record of the call."""
    brain.agent, brain.session = client, session
    try:
        return dispatch.call(brain, dispatch.find_tool(tool), arguments, "write")
    finally:
        brain.agent = brain.session = ""
        dispatch.store_calls(brain)


def test_reads_and_writes_are_listed_by_session(agent: Brain) -> None:
    call(agent, "memory_query", question="Where does Ada live?")
    call(agent, "memory_put", slug="people/ada", content="# Ada\n\nBergen.", expected_version=1)
    call(agent, "memory_get", client="Claude", session="s2", slug="people/ada")
    record: ActivityRecord = run(agent, "activity", diffs=True)
    assert [(row.client, row.session, row.reads, row.writes) for row in record.sessions] == [
        ("Claude", "s2", 1, 0),
        ("Codex", "s1", 1, 1),
    ]
    assert record.clients == ("Claude", "Codex")
    write, read = record.sessions[1].calls
    assert [page.slug for page in read.read] == ["people/ada"]
    (page,) = write.written
    assert (page.slug, page.change, page.version, page.can_undo) == ("people/ada", "text", 2, True)
    assert "-Ada lives in Oslo." in page.diff
    assert "+Bergen." in page.diff
    text = render(record)
    assert "Codex" in text
    assert "memory_put  people/ada" in text


def test_questions_and_texts_are_not_stored(agent: Brain) -> None:
    call(agent, "memory_query", question="Who owns the zyxwvut crane?")
    rows = agent.db.rows("SELECT * FROM activity")
    assert len(rows) == 1
    assert "zyxwvut" not in str(rows) + str(agent.db.rows("SELECT * FROM activity_pages"))


def test_calls_of_a_person_are_not_recorded(agent: Brain) -> None:
    run(agent, "get", slug="people/ada")
    dispatch.store_calls(agent)
    assert run(agent, "activity").total == 0


def test_a_failed_call_is_counted_and_changes_nothing(agent: Brain) -> None:
    with pytest.raises(InvalidArgument):
        call(agent, "memory_put", slug="people/ada", content="x", expected_version="y")
    with pytest.raises(Exception, match="nobody"):
        call(agent, "memory_get", slug="people/nobody")
    (session,) = run(agent, "activity").sessions
    assert (session.failed, session.calls[0].outcome, session.calls[0].written) == (1, "failed", ())


def test_filters(agent: Brain) -> None:
    call(agent, "memory_get", slug="people/ada")
    call(
        agent,
        "memory_put",
        client="Claude",
        session="s2",
        slug="people/bo",
        content="# Bo",
        expected_version=0,
    )
    assert [row.client for row in run(agent, "activity", client="codex").sessions] == ["Codex"]
    assert [row.client for row in run(agent, "activity", writes=True).sessions] == ["Claude"]
    assert [row.client for row in run(agent, "activity", session="s1").sessions] == ["Codex"]
    assert run(agent, "activity", until="2000-01-01", since="1999-01-01").total == 0
    with pytest.raises(InvalidDate):
        run(agent, "activity", since="yesterday")


def test_undo_restores_the_text_before_the_write(agent: Brain) -> None:
    call(agent, "memory_put", slug="people/ada", content="# Ada\n\nBergen.", expected_version=1)
    (write,) = run(agent, "activity").sessions[0].calls
    done = run(agent, "activity undo", id=write.id)
    assert done.undone == ("people/ada",)
    page = run(agent, "get", slug="people/ada")
    assert "Oslo" in page.compiled_truth
    assert page.version == 3
    (write,) = run(agent, "activity").sessions[0].calls
    assert write.decision == "undone"
    with pytest.raises(InvalidArgument):
        run(agent, "activity undo", id=write.id)


def test_a_page_that_changed_since_is_not_undone(agent: Brain) -> None:
    call(agent, "memory_put", slug="people/ada", content="# Ada\n\nBergen.", expected_version=1)
    run(agent, "put", slug="people/ada", content="# Ada\n\nRome.", expected_version=2)
    (write,) = run(agent, "activity").sessions[0].calls
    assert not write.written[0].can_undo
    with pytest.raises(InvalidArgument, match="has changed since"):
        run(agent, "activity undo", id=write.id)
    assert "Rome" in run(agent, "get", slug="people/ada").compiled_truth


def test_undoing_a_new_page_asks_before_it_is_erased(agent: Brain) -> None:
    call(agent, "memory_put", slug="people/bo", content="# Bo", expected_version=0)
    (write,) = run(agent, "activity").sessions[0].calls
    assert write.written[0].change == "created"
    asked = run(agent, "activity undo", id=write.id)
    assert asked.would_erase == ("people/bo",)
    assert asked.if_agreed == {"yes": True}
    assert run(agent, "get", slug="people/bo").version == 1
    assert run(agent, "activity undo", id=write.id, yes=True).erased == ("people/bo",)
    assert run(agent, "list").total == 1
    assert agent.db.rows("SELECT * FROM activity_pages") == []


@pytest.mark.parametrize("who", ["", "Claude"])
def test_a_new_page_that_somebody_changed_is_not_erased(agent: Brain, who: str) -> None:
    call(agent, "memory_put", slug="people/bo", content="# Bo", expected_version=0)
    (write,) = run(agent, "activity").sessions[0].calls
    fact = {"slug": "people/bo", "predicate": "lives_in", "object": "Oslo", "expected_version": 1}
    if who:
        call(agent, "memory_assert", client=who, session="s2", **fact)
    else:
        run(agent, "assert", **fact)
    (page,) = run(agent, "activity", session="s1").sessions[0].calls[0].written
    assert (page.can_undo, page.version, page.current_version) == (False, 1, 2)
    for yes in (False, True):
        with pytest.raises(ChangedSinceCreated, match="wrote version 1, and the page is at version 2"):
            run(agent, "activity undo", id=write.id, yes=yes)
    assert run(agent, "get", slug="people/bo").version == 2
    assert run(agent, "activity", session="s1").sessions[0].calls[0].decision is None


def test_the_version_is_compared_in_the_transaction_that_erases(agent: Brain) -> None:
    run(agent, "put", slug="people/bo", content="# Bo")
    target = erase.find_target(agent.db, "people/bo", "default")
    assert target
    run(agent, "put", slug="people/bo", content="# Bo\n\nKept.", expected_version=1)
    with pytest.raises(ChangedSinceCreated, match="people/bo was not erased"):
        cleanup.delete_page(agent, target, expected_version=1)
    assert run(agent, "get", slug="people/bo").compiled_truth == "# Bo\n\nKept."


def test_writes_are_accepted_one_by_one_or_by_session(agent: Brain) -> None:
    for version in (1, 2):
        call(agent, "memory_put", slug="people/ada", content=f"# Ada\n\n{version}", expected_version=version)
    newest, oldest = run(agent, "activity").sessions[0].calls
    assert run(agent, "activity accept", id=oldest.id).accepted == 1
    assert run(agent, "activity accept", session="s1").accepted == 1
    assert {row.decision for row in run(agent, "activity").sessions[0].calls} == {"accepted"}
    with pytest.raises(NotFound):
        run(agent, "activity accept", id=newest.id + 100)


def test_a_proposal_is_listed_with_its_decision(agent: Brain) -> None:
    run(agent, "config set", key="agent_writes", value="review")
    call(agent, "memory_put", slug="people/ada", content="# Ada\n\nBergen.", expected_version=1)
    (proposed,) = run(agent, "activity").sessions[0].calls
    assert (proposed.outcome, proposed.proposal, proposed.written) == ("proposed", 1, ())
    run(agent, "review", id=1, reject=True)
    assert run(agent, "activity").sessions[0].calls[0].decision == "rejected"


def test_facts_are_listed_without_undo(agent: Brain) -> None:
    call(
        *(agent, "memory_assert"),
        slug="people/ada",
        predicate="lives_in",
        object="Oslo",
        expected_version=1,
    )
    (write,) = run(agent, "activity").sessions[0].calls
    assert [(page.change, page.can_undo) for page in write.written] == [("related", False)]
    with pytest.raises(InvalidArgument, match="changed no text"):
        run(agent, "activity undo", id=write.id)


def test_nothing_is_stored_when_the_setting_is_off(agent: Brain) -> None:
    run(agent, "config set", key="log_activity", value="off")
    call(agent, "memory_get", slug="people/ada")
    record = run(agent, "activity")
    assert (record.total, record.is_on) == (0, False)


def test_old_calls_and_calls_beyond_the_limit_are_deleted(
    agent: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quaid.storage.agents.MAX_CALLS", 3)
    for _ in range(5):
        call(agent, "memory_get", slug="people/ada")
    assert agent.db.one("SELECT count(*) FROM activity") == (3,)
    AgentCalls(agent.db).store([], "9999-01-01")
    assert agent.db.rows("SELECT * FROM activity_pages") == []


def test_history_names_the_session_of_a_version(agent: Brain) -> None:
    call(agent, "memory_put", slug="people/ada", content="# Ada\n\nBergen.", expected_version=1)
    versions = run(agent, "history", slug="people/ada").versions
    assert [version.session for version in versions] == ["s1", ""]


def test_recording_a_call_takes_less_than_a_millisecond(agent: Brain) -> None:
    agent.agent, agent.session = "Codex", "s1"
    operation = dispatch.find_tool("memory_get")
    record = dispatch.call(agent, operation, {"slug": "people/ada"}, "write")
    began = time.process_time()
    for _ in range(200):
        dispatch.recorded(agent, operation, lambda: record)
    assert (time.process_time() - began) / 200 < 0.001
    agent.agent = agent.session = ""
