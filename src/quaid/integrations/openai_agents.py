"""OpenAI Agents SDK: tools of the memory, and sessions that are kept as conversations."""

import json
from typing import Any

from quaid import integrations
from quaid.errors import MissingFramework
from quaid.library import Memory
from quaid.operations import conversations
from quaid.operations.conversations import SessionTurn

try:
    from agents import FunctionTool
    from agents.memory.session_settings import SessionSettings
except ImportError as error:
    raise MissingFramework(package="openai-agents", extra="openai-agents", problem=error) from error

CLIENT = "openai-agents"
"""The client name under which sessions are stored as conversations."""


def function_tools(memory: Memory, tools: str = "core") -> list[FunctionTool]:
    """Return tools for an Agent. `memory` must be opened with the name of an agent, or read-only."""
    return [_function_tool(memory, entry) for entry in integrations.list_tools(memory, tools)]


def _function_tool(memory: Memory, entry: dict[str, Any]) -> FunctionTool:
    async def invoke(_: Any, arguments: str) -> str:
        try:
            values = json.loads(arguments or "{}")
        except ValueError:
            values = None
        if not isinstance(values, dict):
            return "The arguments are not a JSON object. Send them again as one."
        text, _ = await integrations.call_tool(memory, entry["name"], values)
        return text  # the error message if the call failed, because it tells the model what to do

    return FunctionTool(
        name=entry["name"],
        description=entry["description"],
        params_json_schema=entry["inputSchema"],
        on_invoke_tool=invoke,
        strict_json_schema=False,  # strict schemas make every argument required
    )


class QuaidSession:
    """Session memory for Runner.run(). The turns are a conversation that `quaid query` searches."""

    def __init__(
        self, session_id: str, memory: Memory, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id, self.session_settings = session_id, session_settings
        self._memory = memory

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, oldest first. With a limit (default: that of the session settings), omit the
        oldest items.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items: list[Any] = await self._work(conversations.session_items, limit, scope="read")
        return items

    async def add_items(self, items: list[Any]) -> None:
        """Append items. Secrets in them are masked."""
        if items:
            await self._work(conversations.add_session_turns, [_turn(dict(item)) for item in items])

    async def pop_item(self) -> Any:
        """Remove and return the last item, or None."""
        return await self._work(conversations.pop_session_item)

    async def clear_session(self) -> None:
        """Remove all items."""
        await self._work(conversations.clear_session)

    async def _work(self, work: Any, *args: Any, scope: Any = "write") -> Any:
        where = (CLIENT, self.session_id)
        return await integrations.in_thread(
            lambda _: integrations.session_work(self._memory, work, *where, *args, scope=scope)
        )


def _turn(item: dict[str, Any]) -> SessionTurn:
    """Convert an item to a turn. For items that are not messages, the text of the turn is the tool name, if any."""
    kind = str(item.get("type", "message"))
    if kind != "message":
        return SessionTurn(kind, str(item.get("name", "")), item)
    content = item.get("content", "")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [str(part.get("text") or "") for part in parts if isinstance(part, dict)]
    return SessionTurn(str(item.get("role", "user")), "\n\n".join(filter(None, texts)), item)
