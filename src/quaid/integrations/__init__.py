"""Adapters for agent frameworks, and the functions that they share.

Each module needs the package of its framework, and is loaded only when imported.
"""

from collections.abc import Callable
from threading import Event
from typing import Any, TypeVar

from quaid.errors import InvalidArgument, NotAllowed, QuaidError
from quaid.library import Memory
from quaid.mcp import tools
from quaid.operations import dispatch
from quaid.operations.registry import Scope
from quaid.search.answer import Answer

Result = TypeVar("Result")


def list_tools(memory: Memory, selection: str) -> list[dict[str, Any]]:
    """Return name, description and input schema of the selected tools, as over MCP.

    `selection` is core, lean, seed, kb, all or names of tools, as for `quaid serve --tools`.
    """
    return tools.list_tools(selection, _tool_scope(memory))


async def call_tool(memory: Memory, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Call a tool on a thread. Return its result or error as text for a model, and True if the call failed."""
    scope = _tool_scope(memory)

    def work(brain: Any) -> tuple[str, bool]:
        try:
            answer = tools.call_tool(brain, None, name, arguments, scope)
        except QuaidError as error:
            answer = tools.tool_failure(error, name)
        return answer["content"][0]["text"], answer["isError"]

    return await in_thread(lambda stop: memory._run(work, dispatch.find_tool(name).scope, stop))


def _tool_scope(memory: Memory) -> Scope:
    """Return the scope with which models call tools. Raise InvalidArgument if it is the owner scope."""
    if memory._scope == "owner":
        problem = (
            "was opened without the name of an agent, and what models write would count as written by you; open"
            " it with quaid.open(agent=NAME)"
        )
        raise InvalidArgument(name="memory", problem=problem)
    return memory._scope


def query(memory: Memory, question: str, stop: Event | None = None, **options: Any) -> Answer:
    """Answer a question with `memory.query`. A question over the length limit is truncated."""
    text = question.encode(errors="replace")[: dispatch.MAX_QUESTION].decode(errors="ignore")
    answer: Answer = memory._call(dispatch.find_tool("memory_query"), {"query": text, **options}, stop)
    return answer


def metadata(result: Any) -> dict[str, Any]:
    """Return the fields of a search result other than its text, as a framework's metadata."""
    names = ("slug", "collection", "title", "type", "origin", "strength", "status", "date", "score")
    return {name: getattr(result, name) for name in names}


def session_work(memory: Memory, work: Callable[..., Result], *args: Any, scope: Scope = "write") -> Result:
    """Call `work` with a Brain and `args`. Raise NotAllowed if `scope` allows writes and the memory is
    read-only.
    """
    if memory._scope == "read" != scope:
        raise NotAllowed(name="session", needed="write", granted="read")
    return memory._run(lambda brain: work(brain, *args), scope)


async def in_thread(work: Callable[[Event], Result]) -> Result:
    """Run a function on a thread without blocking the event loop.

    The function receives an Event that is set if the task is cancelled.
    """
    import asyncio

    stop = Event()
    try:
        return await asyncio.to_thread(work, stop)
    except asyncio.CancelledError:
        stop.set()
        raise
