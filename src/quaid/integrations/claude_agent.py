"""Claude Agent SDK: the tools of the memory as an MCP server inside the process."""

from typing import Any

import quaid
from quaid import integrations
from quaid.errors import MissingFramework
from quaid.library import Memory

try:
    from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, ToolAnnotations, create_sdk_mcp_server
except ImportError as error:
    raise MissingFramework(package="claude-agent-sdk", extra="claude-agent", problem=error) from error


def mcp_server(memory: Memory, tools: str = "core", *, name: str = "quaid") -> McpSdkServerConfig:
    """Return a server for ClaudeAgentOptions(mcp_servers={"quaid": ...}).

    `memory` must be opened with the name of an agent, or read-only.
    """
    entries = [_tool(memory, entry) for entry in integrations.list_tools(memory, tools)]
    return create_sdk_mcp_server(name, quaid.__version__, entries)


def allowed_tools(memory: Memory, tools: str = "core", *, name: str = "quaid") -> list[str]:
    """Return the names of the tools for ClaudeAgentOptions(allowed_tools=...)."""
    return [f"mcp__{name}__{entry['name']}" for entry in integrations.list_tools(memory, tools)]


def _tool(memory: Memory, entry: dict[str, Any]) -> SdkMcpTool[Any]:
    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        text, failed = await integrations.call_tool(memory, entry["name"], arguments)
        return {"content": [{"type": "text", "text": text}], "is_error": failed}

    hints = ToolAnnotations(**entry["annotations"])
    return SdkMcpTool(entry["name"], entry["description"], entry["inputSchema"], handle, hints)
