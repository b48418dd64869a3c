"""Ingest and gaps over a real server, as an agent uses them."""

from collections.abc import Callable
from typing import Any

from tests.mcp.pipes import Pipes, content_of

from quaid.app import Brain
from quaid.config import Settings
from quaid.storage import checks

Start = Callable[..., Pipes]

SOURCE = {"content": "Bo joined River in May.", "source_type": "meeting", "source_ref": "meeting/17"}
BO = {
    "slug": "people/bo",
    "content": "# Bo\n\nEngineer at River.",
    "links": [{"to": "companies/river", "relationship": "works_at", "valid_from": "2026-05-01"}],
    "assertions": [{"predicate": "works_at", "object": "River", "valid_from": "2026-05-01"}],
}


def river(version: int) -> dict[str, Any]:
    return {
        "slug": "companies/river",
        "expected_version": version,
        "timeline_entries": [{"date": "2026-05-01", "summary": "Bo joined"}],
    }


def test_agent_ingests_a_source_once(start: Start, db: str, settings: Settings) -> None:
    server = start(db)
    server.greet()
    stale = server.fail("memory_ingest", **SOURCE, pages=[BO, river(9)])
    assert (stale["code"], stale["current_version"]) == ("version_conflict", 1)
    assert "companies/river is at version 1, not 9" in stale["message"]
    assert server.fail("memory_get", slug="people/bo")["code"] == "page_not_found"  # nothing was written
    both = server.fail("memory_ingest", **SOURCE, pages=[{**BO, "expected_version": 4}, river(9)])
    assert [conflict["current_version"] for conflict in both["conflicts"]] == [0, 1]
    assert "call memory_ingest once more with all changes" in both["next"]
    done = server.record("memory_ingest", **SOURCE, pages=[BO, river(1)])
    assert [page["outcome"] for page in done["pages"]] == ["created", "updated"]
    again = server.record("memory_ingest", **SOURCE, pages=[BO, river(2)])
    assert (again.get("written"), again["known_pages"]) == (None, ["people/bo", "companies/river"])
    assert server.end()[0] == 0
    with Brain(settings) as brain:
        assert checks.validate(brain.db) == []


def test_weak_answer_records_a_gap_without_words(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    server.call("memory_query", question="Who repairs the zyxwvut crane?")
    listed = server.ask("tools/call", {"name": "memory_gaps", "arguments": {}})
    (gap,) = content_of(listed["result"])["gaps"]
    assert (gap.get("query_text"), gap["times_seen"], gap["sensitivity"]) == (None, 1, "internal")
    wrong = {"gap_id": gap["id"], "query_text": "Who?", "sensitivity": "external", "approver": "Mira"}
    refused = server.fail("memory_gap_approve", **wrong)
    assert refused["code"] == "wrong_question"
    assert "zyxwvut" not in f"{listed}{refused}"
    _, _, errors = server.end()
    assert "zyxwvut" not in errors
