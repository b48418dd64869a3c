"""Pydantic AI: the tools of the memory as a toolset."""

from typing import Any

from quaid import integrations
from quaid.errors import MissingFramework
from quaid.library import Memory

try:
    from pydantic_ai import RunContext, ToolDefinition
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise MissingFramework(package="pydantic-ai-slim", extra="pydantic-ai", problem=error) from error


class QuaidToolset(AbstractToolset[Any]):
    """A toolset for an Agent. `memory` must be opened with the name of an agent, or read-only."""

    def __init__(self, memory: Memory, tools: str = "core", *, id: str | None = "quaid") -> None:
        self._memory, self._id = memory, id
        self._entries = integrations.list_tools(memory, tools)

    @property
    def id(self) -> str | None:
        """The name of the toolset, unique within an agent."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002
        """Return the tools by name."""
        validator = SchemaValidator(core_schema.dict_schema())  # the memory checks the arguments
        return {
            entry["name"]: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=entry["name"],
                    parameters_json_schema=entry["inputSchema"],
                    description=entry["description"],
                ),
                max_retries=0,
                args_validator=validator,
            )
            for entry in self._entries
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002
        tool: ToolsetTool[Any],  # noqa: ARG002
    ) -> str:
        """Call a tool. If the call fails, raise ToolFailed with the error message and its remedy, for the model."""
        text, failed = await integrations.call_tool(self._memory, name, tool_args)
        if failed:
            raise ToolFailed(text)
        return text
