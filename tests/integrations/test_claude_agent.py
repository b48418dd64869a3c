"""The server in the process of the Claude Agent SDK, asked by an MCP client."""

import asyncio
import json
from typing import Any

from tests.integrations import frameworks

import quaid

frameworks.require("claude_agent_sdk")

from claude_agent_sdk import ClaudeAgentOptions  # noqa: E402
from mcp.client import Client  # noqa: E402

from quaid.integrations.claude_agent import allowed_tools, mcp_server  # noqa: E402
from quaid.mcp.tools import list_tools  # noqa: E402


def answer_of(result: Any) -> Any:
    return json.loads(result.content[0].text)


def test_a_client_lists_and_calls_the_tools(memory: quaid.Memory) -> None:
    config = mcp_server(memory)
    options = ClaudeAgentOptions(mcp_servers={"quaid": config}, allowed_tools=allowed_tools(memory))
    assert (config["type"], config["name"]) == ("sdk", "quaid")

    async def work() -> None:
        async with Client(config["instance"]) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            expected = {entry["name"]: entry for entry in list_tools("core")}
            assert list(listed) == list(expected)
            assert options.allowed_tools == [f"mcp__quaid__{name}" for name in expected]
            for name, tool in listed.items():
                assert (tool.description, tool.input_schema) == (
                    expected[name]["description"],
                    expected[name]["inputSchema"],
                )
            assert listed["memory_query"].model_dump()["annotations"]["read_only_hint"] is True
            put: dict[str, Any] = {"slug": "people/alice", "content": "# Alice\n\nShe lives in Ostrava."}
            assert not (await client.call_tool("memory_put", put)).is_error
            answer = await client.call_tool("memory_query", {"query": "Where does Alice live?"})
            assert "Ostrava" in answer_of(answer)["results"][0]["text"]
            failed = await client.call_tool("memory_get", {"slug": ["people/nowhere"]})
            assert failed.is_error
            assert answer_of(failed)["code"] == "page_not_found"

    asyncio.run(work())
