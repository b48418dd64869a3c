"""The knowledge base's story, told by a client over a real connection, with a person who edits beside it."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.kb.users import Person
from tests.mcp import test_client
from tests.mcp.pipes import command, environment
from tests.mcp.test_client import Visit, record


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    person("init")
    return person


def tell(ann: Person, story: Visit) -> None:
    program, *arguments = command(str(ann.home / "memory.db"), "--tools", "all")
    server = StdioServerParameters(command=program, args=arguments, env={**environment(), **ann.environ})

    async def run() -> None:
        with anyio.fail_after(120):
            async with Client(server) as client:
                await story(client)

    anyio.run(run)


async def failure(client: Client, tool: str, **arguments: Any) -> str:
    error = await test_client.failure(client, tool, **arguments)
    return f"{error['message']} {error.get('next', '')}"


def test_agent_works_with_the_knowledge_base(ann: Person) -> None:
    order = {"title": "Formatter order", "summary": "black first, then ruff", "type": "principle"}
    never = "ruff first, then black, never the other way round"
    other = {"title": "Formatter order, again", "summary": never, "type": "principle"}

    async def story(client: Client) -> None:
        assert "matches" not in await record(client, "kb_query", context="formatter")
        made = await record(
            client, "kb_remember", text="Run black before ruff.", created_by="claude-code", **order
        )
        assert made["created"]
        result = await record(client, "kb_query", context="which formatter first")
        assert [match["id"] for match in result["matches"]] == [made["node"]["id"]]
        shown = await record(client, "kb_show", node=made["node"]["id"])
        assert ":CREATED_BY: claude-code" in shown["text"]

        error = await failure(client, "kb_remember", text="Run black before ruff.", **order)
        assert "already" in error
        token = {"title": "Login", "summary": "How to get in", "text": "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"}
        error = await failure(client, "kb_remember", **token)
        assert "secret" in error
        assert "a1B2c3D4e5" not in error

        path = made["node"]["path"]
        ann.put(path, (ann.root / path).read_text() + "\nA person's line.\n")
        assert "ai-kb commit" in await failure(client, "kb_remember", text="Never black first.", **other)
        assert "1 file not committed" in (await record(client, "kb_status"))["nudge"]
        ann("commit")

        against = await record(client, "kb_remember", text="Never run black before ruff.", **other)
        assert [node["id"] for node in against["contradicts"]] == [made["node"]["id"]]
        assert (await record(client, "kb_status"))["contested"] == 2
        linked = await record(client, "kb_backlinks", node=made["node"]["id"])
        assert [backlink["id"] for backlink in linked["backlinks"]] == [against["node"]["id"]]
        names = {tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("kb_")}
        assert names == {"kb_query", "kb_list", "kb_show", "kb_remember", "kb_backlinks", "kb_status"}
        for only_people in ("kb_delete", "kb_merge", "kb_supersede", "kb_contest", "kb_push"):
            _, unknown = await test_client.protocol_error(client, only_people, node=made["node"]["id"])
            assert unknown["code"] == "unknown_tool"

    tell(ann, story)
    assert ann.is_sound()
    assert ann.by_git("log", "--format=%s").splitlines()[:3] == [
        "remember: Formatter order, again",
        ann.by_git("log", "-1", "--skip=1", "--format=%s").strip(),
        "remember: Formatter order",
    ]
