import asyncio

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import quaid
from quaid.integrations.openai_agents import QuaidSession, function_tools


class Script(Model):
    """Stands in for a model, so that this example needs no key: it asks the memory once, then answers."""

    async def get_response(self, system_instructions, input, *args, **options):
        if isinstance(input, str) or input[-1].get("type") != "function_call_output":
            step = ResponseFunctionToolCall(
                type="function_call",
                call_id="1",
                name="memory_query",
                arguments='{"query": "When does Ines prefer calls?"}',
            )
        else:
            found = "before noon" in input[-1]["output"]
            text = "Call her before noon." if found else "I do not know."
            content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
            step = ResponseOutputMessage(
                id="2", type="message", role="assistant", status="completed", content=content
            )
        return ModelResponse(output=[step], usage=Usage(), response_id=None)

    def stream_response(self, *args, **options):
        raise NotImplementedError


async def main() -> None:
    set_tracing_disabled(True)
    with quaid.open(agent="secretary") as memory:
        memory.remember("Ines prefers calls before noon.")
        agent = Agent(name="Secretary", model=Script(), tools=function_tools(memory))
        session = QuaidSession("ines-call", memory)
        result = await Runner.run(agent, "When should I call Ines?", session=session)
        print(result.final_output)
        print([item.get("type", "message") for item in await session.get_items()])


asyncio.run(main())
