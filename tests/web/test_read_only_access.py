"""Whoever may only read leaves no mark; and what is looked for may be anything, but not long."""

import re
import sqlite3
from importlib.resources import files
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.mcp.pipes import failure_of
from tests.web.test_mcp import STATELESS, begun, rpc, stateless

from quaid.cli.main import main
from quaid.config import Settings
from quaid.operations.dispatch import MAX_QUESTION
from quaid.operations.registry import Operation, all_operations
from quaid.web import api

UNKNOWN = "Which barometer hangs in the lighthouse of Skagen?"


def gaps(asked: TestClient) -> int:
    return int(asked.get("/api/memory/gaps").json()["total"])


def kept(settings: Settings) -> dict[str, list[Any]]:
    """Every row that no file can give back, of every table that the schema marks so.

    The record of calls is left out: it also lists what agents read.
    """
    schema = files("quaid.storage").joinpath("schema.sql").read_text()
    names = re.findall(r"^-- kept:.*\n(?:--.*\n)*CREATE TABLE (\w+)", schema, re.MULTILINE)
    assert {"pages", "knowledge_gaps", "config", "activity"} <= set(names)
    with sqlite3.connect(f"file:{settings.db_path}?mode=ro", uri=True) as db:
        return {
            name: db.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
            for name in names
            if not name.startswith("activity")
        }


def over_http(asked: TestClient, question: str) -> Any:
    return asked.get("/api/memory/query", params={"question": question})


def with_a_session(asked: TestClient, question: str) -> Any:
    call = rpc("tools/call", name="memory_query", arguments={"question": question})
    return asked.post("/mcp", json=call, headers=begun(asked))


def standing_alone(asked: TestClient, question: str) -> Any:
    call = stateless("tools/call", name="memory_query", arguments={"question": question})
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "memory_query"}
    return asked.post("/mcp", json=call, headers=headers)


def in_the_browser(asked: TestClient, question: str) -> Any:
    return asked.get("/search", params={"q": question})


@pytest.mark.parametrize("way", [over_http, with_a_session, standing_alone, in_the_browser])
def test_read_token_records_no_gap(way: Any, reader: TestClient, writer: TestClient) -> None:
    question = f"{UNKNOWN} {way.__name__}"
    before = gaps(reader)
    assert way(reader, question).status_code == 200
    assert gaps(reader) == before
    assert way(writer, question).status_code == 200
    assert gaps(reader) == before + 1


def test_read_token_closes_no_gap(reader: TestClient, writer: TestClient) -> None:
    question = "founder alice berg oslo"
    noted = writer.post("/api/memory/gap", json={"query_text": question}).json()["gap"]["id"]

    def is_open() -> bool:
        return noted in [gap["id"] for gap in writer.get("/api/memory/gaps").json()["gaps"]]

    assert over_http(reader, question).json()["strength"] == "strong"
    assert is_open()
    assert over_http(writer, question).json()["strength"] == "strong"
    assert not is_open()


def arguments(operation: Operation) -> dict[str, Any]:
    """Something for every argument that must be there."""
    known = {"slug": "people/alice", "path": "MEMORY.md", "session": "debug", "gap_id": 1, "id": "x"}
    kinds = {"string": UNKNOWN, "integer": 1, "array": [], "object": {}}
    return {
        param.name: known.get(param.name, kinds.get(param.kind))
        for param in operation.params
        if param.required
    }


def test_reading_tools_change_nothing(memory: Settings, reader: TestClient) -> None:
    over_http(reader, "alice")  # has everything cut as configured
    before, answered = kept(memory), 0
    for operation in all_operations():
        if operation.scope == "read":
            response = reader.post(api.tool_path(operation.tool), json=arguments(operation))
            assert response.status_code < 500 or response.json()["error"]["code"] != "defect", operation.tool
            answered += response.status_code == 200
    assert answered >= 15
    assert kept(memory) == before


# How long a question may be

LONGEST = [
    "x" * MAX_QUESTION,
    ("barometer " * MAX_QUESTION)[:MAX_QUESTION],
    "東" * (MAX_QUESTION // 3),
    "\N{PARTY POPPER}" * (MAX_QUESTION // 4),
    '"' * MAX_QUESTION,
    "AND ( " * (MAX_QUESTION // 6),
]
SEARCHES = [
    ("memory_query", "question"),
    ("memory_search", "query"),
    ("memory_glance", "text"),
    ("recall", "query"),
    ("conversation_search", "query"),
]
OTHERS = [("memory_facts", "subject"), ("kb_query", "context"), ("memory_gap", "query_text")]


@pytest.mark.parametrize(("tool", "name"), SEARCHES)
def test_any_query_up_to_the_limit_is_accepted(reader: TestClient, tool: str, name: str) -> None:
    for text in LONGEST:
        response = reader.get(api.tool_path(tool), params={name: text})
        assert response.status_code == 200, response.text[:300]
        assert reader.post(api.tool_path(tool), json={name: text}).status_code == 200


@pytest.mark.parametrize(("tool", "name"), [*SEARCHES, *OTHERS])
@pytest.mark.parametrize("text", ["x" * (MAX_QUESTION + 1), "ø" * MAX_QUESTION, "why " * 1_000_000])
def test_longer_query_is_refused_everywhere(writer: TestClient, tool: str, name: str, text: str) -> None:
    response = writer.post(api.tool_path(tool), json={name: text})
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "invalid_argument")
    assert "4,096 are allowed; ask in fewer words" in error["message"]
    assert len(response.content) < 1_000
    call = rpc("tools/call", name=tool, arguments={name: text})
    answer = failure_of(writer.post("/mcp", json=call, headers=begun(writer)).json())
    assert answer["code"] == "invalid_argument"
    assert answer["message"] == error["message"]


def test_command_line_refuses_a_long_query(memory: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("query", "search", "recall"):
        assert main(["--db", memory.db_path, verb, "x" * 5_000]) == 2
        assert "has 5,000 bytes and 4,096 are allowed; ask in fewer words" in capsys.readouterr().err


def test_every_text_parameter_is_limited_or_listed_here() -> None:
    stored = {"remember", "daily_log", "kb_remember"}
    for operation in all_operations():
        for param in operation.params:
            if param.arg.any_text:
                assert param.arg.question or operation.tool in stored, operation.tool
