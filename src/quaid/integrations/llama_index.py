"""LlamaIndex: a retriever, and a memory block that recalls passages and stores old messages as a conversation."""

from typing import Any

from quaid import integrations
from quaid.errors import MissingFramework
from quaid.library import Memory
from quaid.operations import conversations
from quaid.operations.conversations import SessionTurn

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingFramework(package="llama-index-core", extra="llama-index", problem=error) from error

CLIENT = "llama-index"
"""The client name under which memory blocks store conversations."""


class QuaidNodeRetriever(BaseRetriever):
    """Finds passages with `memory.query`, which takes `options` such as limit, type, wing, tag and token_budget."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__()
        self._memory, self._options = memory, options

    def _retrieve(self, query_bundle: QueryBundle, stop: Any = None) -> list[NodeWithScore]:
        answer = integrations.query(self._memory, query_bundle.query_str, stop, **self._options)
        return [
            NodeWithScore(
                node=TextNode(
                    text=result.text,
                    id_=f"{result.collection}::{result.slug}",
                    metadata=integrations.metadata(result),
                ),
                score=result.score,
            )
            for result in answer.results
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await integrations.in_thread(lambda stop: self._retrieve(query_bundle, stop))


class QuaidMemoryBlock(BaseMemoryBlock[str]):
    """A block for Memory.from_defaults(memory_blocks=[...]).

    It recalls facts and passages for the last message of the user. Messages that leave the short-term memory are
    stored as turns of a conversation, which later questions search.
    """

    name: str = "quaid"
    memory: Any = Field(exclude=True, description="The open memory, a quaid.Memory.")
    session: str = Field(
        default="llama-index", description="The conversation for messages without a session."
    )
    token_budget: int = Field(default=800, description="At most this many tokens are recalled.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:  # noqa: ARG002
        questions = [message.content for message in messages or [] if message.role.value == "user"]
        question = questions[-1] if questions else None
        if not question:
            return ""
        answer = await integrations.in_thread(
            lambda stop: integrations.query(self.memory, question, stop, token_budget=self.token_budget)
        )
        texts = [*answer.facts, *(result.text for result in answer.results if answer.strength != "none")]
        return "\n\n".join(texts)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str, list[SessionTurn]] = {}
        for message in messages:
            session = str(message.additional_kwargs.get("session_id") or self.session)
            if message.content:
                sessions.setdefault(session, []).append(SessionTurn(message.role.value, message.content))

        def work(_: Any) -> None:
            for session, turns in sessions.items():
                integrations.session_work(
                    self.memory, conversations.add_session_turns, CLIENT, session, turns
                )

        await integrations.in_thread(work)
