import asyncio

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory

import quaid
from quaid.integrations.llama_index import QuaidMemoryBlock, QuaidNodeRetriever


async def main() -> None:
    with quaid.open(agent="planner") as memory:
        memory.put("people/ines", "# Ines\n\nInes restores tidal batteries at Brineloop.")
        block = QuaidMemoryBlock(memory=memory, token_budget=300)
        chat = SimpleChatEngine.from_defaults(
            llm=MockLLM(),  # stands in for a model: it repeats what it was sent
            memory=Memory.from_defaults(session_id="ines", memory_blocks=[block]),
        )
        reply = await chat.achat("Who restores tidal batteries?")
        print("at Brineloop" in str(reply))
        for found in await QuaidNodeRetriever(memory, limit=3).aretrieve("tidal batteries"):
            print(found.node.metadata["slug"], found.node.metadata["strength"])


asyncio.run(main())
