"""The toolset of Pydantic AI, called by its TestModel and by a FunctionModel."""

import json
from typing import Any

from tests.integrations import frameworks

import quaid

frameworks.require("pydantic_ai")

from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart  # noqa: E402
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.models.test import TestModel as EveryToolModel  # noqa: E402

from quaid.integrations.pydantic_ai import QuaidToolset  # noqa: E402
from quaid.mcp.tools import list_tools  # noqa: E402


def test_the_model_gets_the_tools_of_the_registry(memory: quaid.Memory) -> None:
    model = EveryToolModel(call_tools=["memory_briefing"])
    result = Agent(model, toolsets=[QuaidToolset(memory)]).run_sync("What is new?")
    assert json.loads(json.loads(result.output)["memory_briefing"])["trust"] == "data"
    seen = model.last_model_request_parameters
    assert seen is not None
    assert [(tool.name, tool.description, tool.parameters_json_schema) for tool in seen.function_tools] == [
        (entry["name"], entry["description"], entry["inputSchema"]) for entry in list_tools("core")
    ]


def test_a_failed_call_returns_to_the_model_with_the_next_step(memory: quaid.Memory) -> None:
    steps: list[Any] = [
        ToolCallPart("memory_put", {"slug": "people/alice", "content": "# Alice"}),
        ToolCallPart("memory_put", {"slug": "people/alice", "content": "# Other"}),
        ToolCallPart("memory_get", {"page_number": 7}),
        TextPart("done"),
    ]
    answers: list[Any] = []

    def step(messages: list[Any], info: Any) -> Any:
        answers.append(messages[-1].parts[-1].content)
        return ModelResponse(parts=[steps.pop(0)])

    agent = Agent(FunctionModel(step), toolsets=[QuaidToolset(memory, "lean")])
    assert agent.run_sync("Write about Alice").output == "done"
    assert json.loads(answers[1])["created"] is True
    assert json.loads(answers[2])["code"] == "version_conflict"
    assert json.loads(answers[3])["code"] == "invalid_argument"
    assert memory.get("people/alice").title == "Alice"
