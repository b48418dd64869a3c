"""What agents did, and conversations, as pages without a browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.web.dashboard import Visitor, call

from quaid.app import Brain, new_calls
from quaid.config import Settings
from quaid.operations import dispatch

PAGE = "concepts/patience"


def act(mine: Settings, tool: str, client: str = "Codex", session: str = "s1", **arguments: Any) -> Any:
    with Brain(mine) as brain:
        brain.agent, brain.session, brain.calls = client, session, new_calls()
        try:
            return dispatch.call(brain, dispatch.find_tool(tool), arguments, "write")
        finally:
            dispatch.store_calls(brain)


def write(mine: Settings, text: str = "Wait <b>longer</b>.", mode: str = "direct") -> None:
    call(mine, "config set", key="agent_writes", value=mode)
    version = call(mine, "get", slug=PAGE).version
    act(mine, "memory_put", slug=PAGE, content=f"# Patience\n\n{text}", expected_version=version)


def test_a_session_shows_its_writes_with_the_change_and_its_reads(visitor: Visitor, mine: Settings) -> None:
    act(mine, "memory_get", slug="concepts/salt-creep")
    write(mine)
    page = visitor.get("/agents").text
    assert "1 read, 1 change" in page
    assert '<div class="removed">-The third thought.</div>' in page
    assert "Wait &lt;b&gt;longer&lt;/b&gt;." in page
    assert "1 page read" in page
    assert "Salt creep" in page
    assert "memory_put" not in page


def test_filters_choose_client_day_and_changes(visitor: Visitor, mine: Settings) -> None:
    write(mine)
    act(mine, "memory_get", client="Claude Desktop", session="s2", slug=PAGE)

    def sessions(query: str) -> list[str]:
        text = visitor.get(f"/agents?{query}").text
        return re.findall(r'<h2 id="session-(\w+)">', text)

    assert sessions("") == ["s2", "s1"]
    assert sessions("client=Codex") == ["s1"]
    assert sessions("writes=1") == ["s1"]
    assert sessions("session=s2") == ["s2"]
    assert sessions("day=2001-01-01") == []
    assert "Write a date." in visitor.get("/agents?day=soon").text


def test_a_write_is_undone_with_one_click(visitor: Visitor, mine: Settings) -> None:
    write(mine)
    (session,) = call(mine, "activity").sessions
    answer = visitor.post("/agents/decide", id=session.calls[0].id, act="undo", back="/agents?writes=1")
    assert answer.headers["location"] == "/agents?writes=1"
    assert "The third thought." in call(mine, "get", slug=PAGE).compiled_truth
    page = visitor.get("/agents").text
    assert "the earlier text is back" in page
    assert '<span class="badge">undone</span>' in page
    assert 'value="undo"' not in page


def test_a_new_page_is_erased_only_if_the_box_is_ticked(visitor: Visitor, mine: Settings) -> None:
    act(mine, "memory_put", slug="concepts/new-idea", content="# New idea", expected_version=0)
    (session,) = call(mine, "activity").sessions
    visitor.post("/agents/decide", id=session.calls[0].id, act="undo")
    assert call(mine, "get", slug="concepts/new-idea").version == 1
    assert "Nothing was changed." in visitor.get("/agents").text
    visitor.post("/agents/decide", id=session.calls[0].id, act="undo", sure="yes")
    assert "New idea" not in visitor.get("/agents").text


def test_a_new_page_that_was_changed_is_not_erased(visitor: Visitor, mine: Settings) -> None:
    act(mine, "memory_put", slug="concepts/new-idea", content="# New idea", expected_version=0)
    (session,) = call(mine, "activity").sessions
    assert "Erase the new page" in visitor.get("/agents").text
    call(mine, "put", slug="concepts/new-idea", content="# New idea\n\nMine.", expected_version=1)
    page = visitor.get("/agents").text
    assert "The page was changed since, from version 1 to 2, so Undo does not erase it." in page
    assert "Erase the new page" not in page
    visitor.post("/agents/decide", id=session.calls[0].id, act="undo", sure="yes")
    page = visitor.get("/agents").text
    assert "Nothing was changed. concepts/new-idea was not erased" in page
    assert "the agent wrote version 1, and the page is at version 2." in page
    assert "Mine." in call(mine, "get", slug="concepts/new-idea").compiled_truth


def test_writes_are_accepted_and_proposals_decided(visitor: Visitor, mine: Settings) -> None:
    write(mine)
    write(mine, "Twice.")
    visitor.post("/agents/decide", session="s1", act="accept_session")
    assert "Accepted 2 writes." in visitor.get("/agents").text
    write(mine, "Proposed.", mode="review")
    assert "waits for you" in visitor.get("/agents").text
    visitor.post("/agents/decide", id=1, act="accept_proposal")
    assert "Proposed." in call(mine, "get", slug=PAGE).compiled_truth


def test_a_form_leads_back_only_to_this_page(visitor: Visitor) -> None:
    answer = visitor.post("/agents/decide", id=1, act="accept", back="https://example.com/agents")
    assert answer.headers["location"] == "/agents"


def test_history_of_a_page_leads_to_the_session(visitor: Visitor, mine: Settings) -> None:
    write(mine)
    assert '<a href="/agents?session=s1">Codex</a>' in visitor.get(f"/page/{PAGE}").text


@pytest.fixture
def talk(mine: Settings, tmp_path: Path) -> str:
    lines = [
        {"role": "user", "content": f"Question {number} about **kelp** <script>alert(1)</script>"}
        if number % 2
        else {"role": "assistant", "content": f"Answer {number}: " + "long " * (900 if number == 4 else 1)}
        for number in range(1, 101)
    ]
    session = "0f3a9c1e-kelp"
    for line in lines:
        line |= {"session": session, "timestamp": "2026-04-25T10:00:00Z"}
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    call(mine, "conversations add", paths=[str(path)])
    call(mine, "assert", slug=PAGE, predicate="role", object="virtue", source=f"conversation/{session}")
    return f"plain:{session}"


def test_conversations_are_listed_opened_and_searched(visitor: Visitor, talk: str) -> None:
    listed = visitor.get("/conversations").text
    assert f'href="/conversations/{talk}"' in listed
    assert "Question 1 about" in listed
    assert "100 messages" in listed
    page = visitor.get(f"/conversations/{talk}").text
    assert "<strong>kelp</strong>" in page
    assert "<script>alert" not in page
    assert "Patience" in page
    assert "names it as a source" in page
    assert 'id="turn-40"' in page
    assert 'id="turn-41"' not in page
    assert "more characters" in page
    found = visitor.get("/conversations?q=kelp").text
    assert re.search(rf'href="/conversations/{talk}\?turn=(\d+)#turn-\1"', found)


def test_a_link_to_a_turn_shows_it(visitor: Visitor, talk: str) -> None:
    page = visitor.get(f"/conversations/{talk}?turn=70").text
    assert 'id="turn-70" class="turn here"' in page
    assert 'id="turn-100"' not in page
    later = visitor.get(f"/conversations/{talk}?from=41").text
    assert re.findall(r'id="turn-(\d+)"', later)[::39] == ["41", "80"]
    assert visitor.get("/conversations/plain:missing").status_code == 404


def test_a_conversation_is_deleted_after_a_tick(visitor: Visitor, mine: Settings, talk: str) -> None:
    visitor.post("/conversations/remove", session=talk)
    assert call(mine, "conversations list").total == 1
    visitor.post("/conversations/remove", session=talk, sure="yes")
    assert call(mine, "conversations list").total == 0
