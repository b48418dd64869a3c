"""Tools: what the register's operations look like to an agent, and how one is called.

A server started with `lean`, `core` or `all` answers every tool, listed or not: the first two keep the list short.
A server started with names answers those alone.
"""

from typing import Any

from quaid.brain import Brain
from quaid.errors import QuaidError, UnknownTool
from quaid.operations import dispatch, index
from quaid.operations.dispatch import json_value
from quaid.operations.registry import SCOPES, Operation, Scope, schema
from quaid.surfaces.mcp import labels
from quaid.surfaces.mcp.frames import compact

GROUPS = frozenset({"lean", "core", "all", "kb"})
LEAN = frozenset({"memory_get", "memory_put", "memory_query", "recall", "remember"})
"""For agents whose context is dear: ask, read, write, and the notebook."""


def chosen(selection: str) -> frozenset[str] | None:
    """The names in a selection, or None for one with `lean`, `core` or `all`, which keep none from being called."""
    names = frozenset(name.strip() for name in selection.split(",") if name.strip())
    for name in sorted(names - GROUPS):
        dispatch.find_tool(name)
    if names & {"lean", "core", "all"}:
        return None
    if "kb" in names:
        names = names - {"kb"} | {name for name in index.TOOLS if name.startswith("kb_")}
    if not names:
        raise UnknownTool(name=selection, hint=" Write lean, core, all, or names with commas between.")
    return names


def described(selection: str, scope: Scope = "write") -> list[dict[str, Any]]:
    """The tools of a selection as MCP lists them, always in the register's order; only those that may be called."""
    chosen(selection)
    words = {word.strip() for word in selection.split(",")}
    operations = [dispatch.find_tool(name) for name in index.TOOLS]
    return [
        _described(each)
        for each in operations
        if _is_listed(each, words) and SCOPES.index(each.scope) <= SCOPES.index(scope)
    ]


def _is_listed(operation: Operation, words: set[str]) -> bool:
    return (
        "all" in words
        or operation.tool in words
        or ("core" in words and operation.core)
        or ("lean" in words and operation.tool in LEAN)
        or ("kb" in words and operation.tool.startswith("kb_"))
    )


def call(
    brain: Brain,
    served: frozenset[str] | None,
    name: str,
    arguments: dict[str, Any],
    scope: Scope = "write",
) -> dict[str, Any]:
    """Run a tool for a client: its labelled record as an object, and as text for models that see nothing else."""
    if served is not None and name not in served:
        raise UnknownTool(name=name, hint=" This server was started with other tools only.")
    record = labels.labelled(
        name, json_value(dispatch.call(brain, dispatch.find_tool(name), arguments, scope))
    )
    return {
        "content": [{"type": "text", "text": compact(record)}],
        "structuredContent": record,
        "isError": False,
    }


def failure(error: QuaidError) -> dict[str, Any]:
    """Return the result of a tool that failed: message and code for the model, and all of it as an object."""
    told = {**facts(error), "code": error.code, "message": str(error), "rpc_code": error.rpc_code}
    return {
        "content": [{"type": "text", "text": f"{error} ({error.code})"}],
        "structuredContent": {"error": told},
        "isError": True,
    }


def facts(error: QuaidError) -> dict[str, Any]:
    """Return those facts of an error that JSON can carry, such as the current version of a page."""
    return {key: value for key, value in error.facts.items() if isinstance(value, str | int | float | list)}


def _described(operation: Operation) -> dict[str, Any]:
    return {
        "name": operation.tool,
        "title": _title(operation.summary),
        "description": operation.description,
        "inputSchema": schema(operation),
        "annotations": _hints(operation),
    }


def _hints(operation: Operation) -> dict[str, bool]:
    """What a client may rely on; what the protocol assumes anyway is not said, for every agent pays for the list."""
    if operation.scope == "read":
        return {"readOnlyHint": True, "openWorldHint": False}
    # A write names the version it read, so a second one like it is refused.
    return {"destructiveHint": not operation.adds_only, "idempotentHint": True, "openWorldHint": False}


def _title(summary: str) -> str:
    """The first clause of a summary: "Read a page: current truth, ..." is called "Read a page"."""
    end = min((summary.find(mark) for mark in ":,.;(" if mark in summary), default=len(summary))
    return summary[:end].strip()
