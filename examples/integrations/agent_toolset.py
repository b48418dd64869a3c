from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import quaid
from quaid.integrations.pydantic_ai import QuaidToolset


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands in for a model, so that this example needs no key: it asks the memory once, then answers."""
    last = messages[-1].parts[-1]
    if last.part_kind == "user-prompt":
        return ModelResponse(parts=[ToolCallPart("memory_query", {"query": last.content})])
    found = "before noon" in str(last.content)
    return ModelResponse(parts=[TextPart("Call her before noon." if found else "I do not know.")])


with quaid.open(agent="secretary") as memory:
    memory.remember("Ines prefers calls before noon.")
    agent = Agent(FunctionModel(answer), toolsets=[QuaidToolset(memory)])
    print(agent.run_sync("When should I call Ines?").output)
