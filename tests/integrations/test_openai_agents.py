"""Tools and sessions of the OpenAI Agents SDK. The model is a list of prepared answers."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from tests.integrations import frameworks

import quaid
from quaid import errors

agents = frameworks.require("agents")

from openai.types import responses  # noqa: E402

from quaid.integrations.openai_agents import QuaidSession, function_tools  # noqa: E402

NUMBERS = itertools.count()


class ScriptedModel(agents.Model):  # type: ignore[name-defined]
    """Returns prepared answers, and keeps what it was sent."""

    def __init__(self, *steps: Any) -> None:
        self.steps, self.inputs = list(steps), []  # type: list[Any], list[Any]

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
        self.inputs.append(input)
        return agents.ModelResponse(output=[self.steps.pop(0)], usage=agents.Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def says(text: str) -> Any:
    content = [responses.ResponseOutputText(type="output_text", text=text, annotations=[])]
    return responses.ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=content
    )


def asks(name: str, **arguments: Any) -> Any:
    return responses.ResponseFunctionToolCall(
        type="function_call", call_id=f"call-{next(NUMBERS)}", name=name, arguments=json.dumps(arguments)
    )


def run(model: ScriptedModel, memory: quaid.Memory, text: str, session: QuaidSession | None = None) -> str:
    agents.set_tracing_disabled(True)
    agent = agents.Agent(name="a", model=model, tools=function_tools(memory))
    result = asyncio.run(agents.Runner.run(agent, text, session=session))
    return str(result.final_output)


@pytest.mark.parametrize("arguments", ['{"query": ', "5", "null"])
def test_arguments_that_are_not_an_object_do_not_end_the_run(memory: quaid.Memory, arguments: str) -> None:
    call = asks("memory_query").model_copy(update={"arguments": arguments})
    model = ScriptedModel(call, says("Sorry."))
    assert run(model, memory, "Where does Alice live?") == "Sorry."
    assert "not a JSON object" in model.inputs[1][-1]["output"]


def test_a_run_writes_and_reads_pages_with_the_tools(memory: quaid.Memory) -> None:
    model = ScriptedModel(
        asks("memory_put", slug="people/alice", content="# Alice\n\nShe lives in Ostrava."),
        asks("memory_query", query="Where does Alice live?"),
        asks("memory_put", slug="people/alice", content="# Nothing"),
        says("Ostrava"),
    )
    assert run(model, memory, "Where does Alice live?") == "Ostrava"
    outputs = [
        json.loads(item["output"]) for item in model.inputs[-1] if item.get("type") == "function_call_output"
    ]
    assert "lives in Ostrava" in outputs[1]["results"][0]["text"]
    assert outputs[2]["code"] == "version_conflict"
    assert memory.get("people/alice").version == 1


def test_the_next_run_of_a_session_gets_all_items_of_the_one_before(memory: quaid.Memory) -> None:
    first = ScriptedModel(asks("memory_briefing"), says("Noted."))
    run(first, memory, "My boat is called Marlin.", QuaidSession("boat", memory))
    second = ScriptedModel(says("Marlin."))
    run(second, memory, "What is it called?", QuaidSession("boat", memory))
    kinds = [item.get("type", "message") for item in second.inputs[0]]
    assert kinds == ["message", "function_call", "function_call_output", "message", "message"]
    assert second.inputs[0][3]["content"][0]["text"] == "Noted."
    assert second.inputs[0][1]["arguments"] == "{}"


def test_a_session_keeps_items_as_they_are_and_can_be_shortened(memory: quaid.Memory) -> None:
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "Hello \ud800 there"},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gho_" + "a1B2" * 9},
        {"type": "function_call", "call_id": "1", "name": "memory_get", "arguments": '{"slug": "a"}'},
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:,"}, {"type": "input_text", "text": "x"}],
        },
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": "Hello"},
    ]

    async def work() -> None:
        session = QuaidSession("s", memory)
        assert isinstance(session, agents.memory.Session)
        assert (await session.get_items(), await session.pop_item()) == ([], None)
        await session.add_items([])
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(limit=2) == items[-2:]
        limited = QuaidSession("s", memory, agents.SessionSettings(limit=1))
        assert await limited.get_items() == items[-1:]
        assert await QuaidSession("other", memory).get_items() == []
        assert await session.pop_item() == items[-1]
        assert await session.get_items() == items[:-1]
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(items[:1])
        assert await session.get_items() == items[:1]

    asyncio.run(work())


def test_a_session_is_a_conversation_that_questions_find(memory: quaid.Memory) -> None:
    run(
        ScriptedModel(says("A fine name.")), memory, "My boat is called Marlin.", QuaidSession("boat", memory)
    )
    listed = memory.conversations_list(client="openai-agents").conversations
    assert [(row.session, row.turns, row.title) for row in listed] == [
        ("boat", 2, "My boat is called Marlin.")
    ]
    shown = memory.conversation_show("openai-agents:boat")
    assert [(turn.role, turn.text) for turn in shown.turns][1] == ("assistant", "A fine name.")
    assert memory.query("What is the boat called?").results[0].origin == "conversation"


def test_secrets_are_not_stored(memory: quaid.Memory) -> None:
    token = "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"

    async def work() -> None:
        session = QuaidSession("s", memory)
        await session.add_items([{"role": "user", "content": f"my token is {token}"}])
        assert "[masked" in (await session.get_items())[0]["content"]

    asyncio.run(work())
    with open(memory.location, "rb") as file, open(f"{memory.location}-wal", "rb") as wal:
        assert token.encode() not in file.read() + wal.read()


def test_a_memory_for_reading_refuses_new_items(memory: quaid.Memory) -> None:
    async def work() -> None:
        await QuaidSession("s", memory).add_items([{"role": "user", "content": "Hello"}])
        with quaid.open(memory.location, read_only=True) as reader:
            session = QuaidSession("s", reader)
            assert len(await session.get_items()) == 1
            for change in (session.add_items([{"role": "user", "content": "x"}]), session.pop_item()):
                with pytest.raises(errors.NotAllowed):
                    await change
        with pytest.raises(errors.InvalidArgument):
            await QuaidSession(" ", memory).add_items([{"role": "user", "content": "x"}])

    asyncio.run(work())
