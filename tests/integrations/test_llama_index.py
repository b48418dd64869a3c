"""The memory block and the retriever of LlamaIndex. The model is its MockLLM, which repeats what it was sent."""

import asyncio
from typing import Any

import pytest
from tests.integrations import frameworks

import quaid

frameworks.require("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage  # noqa: E402
from llama_index.core.chat_engine import SimpleChatEngine  # noqa: E402
from llama_index.core.llms import MockLLM  # noqa: E402
from llama_index.core.memory import Memory  # noqa: E402
from llama_index.core.query_engine import RetrieverQueryEngine  # noqa: E402

from quaid.integrations.llama_index import QuaidMemoryBlock, QuaidNodeRetriever  # noqa: E402


@pytest.fixture
def filled(memory: quaid.Memory) -> quaid.Memory:
    memory.put("people/ines", "# Ines\n\nInes restores tidal batteries at Brineloop.")
    memory.put("people/tomas", "# Tomas\n\nTomas plays the cello.")
    return memory


def chat(memory: Memory, text: str) -> str:
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    return str(asyncio.run(engine.achat(text)))


def test_a_chat_gets_what_the_memory_has_about_the_message(filled: quaid.Memory) -> None:
    blocks: list[Any] = [QuaidMemoryBlock(memory=filled)]
    reply = chat(Memory.from_defaults(memory_blocks=blocks), "Who restores tidal batteries?")
    assert "Ines restores tidal batteries at Brineloop." in reply
    assert "cello" not in reply
    assert asyncio.run(blocks[0].aget([])) == ""
    assert asyncio.run(blocks[0].aget([ChatMessage(role="user", content="zzqx?")])) == ""


def test_messages_that_leave_the_short_term_memory_are_found_by_later_questions(memory: quaid.Memory) -> None:
    block = QuaidMemoryBlock(memory=memory)
    short = Memory.from_defaults(
        session_id="boat",
        token_limit=60,
        token_flush_size=10,
        chat_history_token_ratio=0.5,
        memory_blocks=[block],
    )
    texts = [
        "My boat is called Marlin.",
        "A fine name. " * 8,
        "It is blue.",
        "As the sea is. " * 8,
        "Yes.",
        "Good.",
    ]
    roles = ["user", "assistant"] * 3

    async def work() -> None:
        for role, text in zip(roles, texts, strict=True):
            await short.aput(ChatMessage(role=role, content=text))

    asyncio.run(work())
    rows = memory.conversations_list(client="llama-index").conversations
    assert [row.session for row in rows] == ["boat"]
    assert memory.conversation_show("llama-index:boat").turns[0].text == "My boat is called Marlin."
    assert "Marlin" in asyncio.run(block.aget([ChatMessage(role="user", content="What is my boat called?")]))


def test_the_retriever_returns_nodes_with_scores(filled: quaid.Memory) -> None:
    retriever = QuaidNodeRetriever(filled, limit=1)
    found = retriever.retrieve("tidal batteries")
    assert [node.node.metadata["slug"] for node in found] == ["people/ines"]
    assert 0 < (found[0].score or 0) <= 1
    assert [node.node.node_id for node in asyncio.run(retriever.aretrieve("tidal batteries"))] == [
        "default::people/ines"
    ]
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    assert "Brineloop" in str(engine.query("Who restores tidal batteries?"))
