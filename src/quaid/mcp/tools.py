"""List and call operations as MCP tools, and label every result with its provenance.

A server started with `lean`, `core`, `seed` or `all` accepts calls of every tool, listed or not. A server
started with tool names accepts only those tools. Recalled text is data, not instructions: its label depends
on where it is stored, never on its content.
"""

from typing import Any

from quaid.app import Brain
from quaid.errors import QuaidError, UnknownTool
from quaid.mcp import messages
from quaid.mcp.jsonrpc import compact
from quaid.model import slug as slugs
from quaid.operations import dispatch, index
from quaid.operations.registry import SCOPES, Named, Operation, Scope, schema

TRUST_DATA = "data"  # text of pages, transcripts and nodes: information, not instructions
TRUST_OWN = "own"  # the notebook's files, in which the user writes instructions for agents

_ORIGINS = {"notebook": "notebook", "conversation": "conversations", "kb": "kb"}
_NOTEBOOK_TOOLS = frozenset({"memory_context", "remember", "daily_log"})
_OWN_TOOLS = frozenset({"memory_context", "notebook_list", "notebook_read"})


def provenance_of(name: str) -> dict[str, str]:
    """Return the label (origin and trust) of the results of a tool.

    Only results of _OWN_TOOLS count as written by the user. All other results, including those of `recall`,
    are data.
    """
    room = "notebook" if name in _NOTEBOOK_TOOLS else _ORIGINS.get(name.partition("_")[0], "memory")
    return {"origin": room, "trust": TRUST_OWN if name in _OWN_TOOLS else TRUST_DATA}


def with_provenance(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with its trust label first. Keys of the record cannot override the label."""
    label = {"trust": provenance_of(name)["trust"]}
    return {**label, **{key: value for key, value in record.items() if key not in label}}


def provenance_meta(name: str) -> dict[str, str]:
    """Return the label as `_meta` entries, for text that is passed on unchanged."""
    return {f"quaid/{key}": value for key, value in provenance_of(name).items()}


OPEN_GROUPS = frozenset({"lean", "core", "seed", "all"})
"""Groups that limit which tools are listed, not which tools can be called."""
TOOL_GROUPS = OPEN_GROUPS | {"kb"}
LEAN_TOOLS = frozenset({"memory_get", "memory_put", "memory_query", "memory_correct", "remember"})
"""A minimal set for agents with little context: query, read, write, correct."""
SEED_TOOLS = frozenset(
    {
        *("memory_get", "memory_put", "memory_list", "memory_search", "memory_query", "memory_stats"),
        *("memory_tag", "memory_tags", "memory_timeline", "memory_timeline_add", "memory_raw"),
        *("memory_link", "memory_link_close", "memory_links", "memory_backlinks", "memory_unlink"),
        *("memory_graph", "memory_check", "memory_gap", "memory_gaps", "memory_gap_approve"),
        *("memory_ingest", "memory_briefing"),
        *("remember", "recall", "daily_log", "notebook_read", "notebook_write", "conversation_search"),
    }
)
"""The tools of the first specifications, for agents whose instructions were written for these tools."""


def selected_tools(selection: str) -> frozenset[str] | None:
    """Return the tool names in a selection, or None if it has one of OPEN_GROUPS, which allow every tool."""
    names = frozenset(name.strip() for name in selection.split(",") if name.strip())
    for name in sorted(names - TOOL_GROUPS):
        dispatch.find_tool(name)
    if names & OPEN_GROUPS:
        return None
    if "kb" in names:
        names = names - {"kb"} | {name for name in index.TOOLS if name.startswith("kb_")}
    if not names:
        raise UnknownTool(name=selection, hint=" Write lean, core, seed, all, or names with commas between.")
    return names


def list_tools(selection: str, scope: Scope = "write") -> list[dict[str, Any]]:
    """Return the MCP entries of the selected tools that the scope allows, in the order of the tool index."""
    selected_tools(selection)
    words = {word.strip() for word in selection.split(",")}
    # Modules of tools that are not listed are not imported, which saves 5 MB in every server.
    operations = [dispatch.find_tool(name) for name in index.TOOLS if _is_listed(name, words)]
    return [
        _tool_entry(operation, is_short=not words & {"all", "seed", operation.tool})
        for operation in operations
        if SCOPES.index(operation.scope) <= SCOPES.index(scope)
    ]


def _is_listed(tool: str, words: set[str]) -> bool:
    return (
        "all" in words
        or tool in words
        or ("core" in words and tool in index.CORE_TOOLS)
        or ("lean" in words and tool in LEAN_TOOLS)
        or ("seed" in words and tool in SEED_TOOLS)
        or ("kb" in words and tool.startswith("kb_"))
    )


def call_tool(
    brain: Brain,
    served: frozenset[str] | None,
    name: str,
    arguments: dict[str, Any],
    scope: Scope = "write",
) -> dict[str, Any]:
    """Call a tool. Return its labeled record as compact JSON, without empty fields."""
    if served is not None and name not in served:
        raise UnknownTool(name=name, hint=" This server was started with other tools only.")
    result = dispatch.call(brain, dispatch.find_tool(name), arguments, scope)
    record = _without_empty(result)
    if brain.created:
        record["created"] = [*brain.created]
        brain.created.clear()
    return {"content": [{"type": "text", "text": compact(with_provenance(name, record))}], "isError": False}


def tool_failure(error: QuaidError, name: str) -> dict[str, Any]:
    """Return the result of a failed call of the tool with this name."""
    operation = dispatch.find_tool(name) if name in index.TOOLS else None
    text = compact(messages.failure_record(error, operation))
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _without_empty(value: Any) -> Any:
    """Convert a result to JSON types.

    A record with an `agent_view` has the fields of that view. A slug is given as a whole address. Empty fields
    of records are left out, and commands in text for the reader are replaced by tools. Objects that users
    wrote, such as front matter, are not changed.
    """
    if isinstance(value, Named):
        return {value.name: _without_empty(value.value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = (
            value.agent_view()
            if hasattr(value, "agent_view")
            else dict(zip(value._fields, value, strict=True))
        )
        fields = _with_address(fields)
        return {name: _field(name, item) for name, item in fields.items() if not _is_empty(item)}
    if isinstance(value, tuple | list):
        return [_without_empty(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items()}
    return value


def _with_address(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record with the whole address of its page as `slug`, which every tool accepts."""
    slug, collection = fields.get("slug"), fields.get("collection")
    if not (isinstance(slug, str) and isinstance(collection, str) and slug and collection) or "::" in slug:
        return fields
    return {**fields, "slug": slugs.address(collection, slug)}


def _is_empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str | tuple | list | dict) and not value)


def _field(name: str, value: Any) -> Any:
    """Return a field of a record as JSON. In text for the reader, commands are replaced by tools."""
    if name == "command" and isinstance(value, str):
        return messages.tool_call(value) or value
    if name in messages.GUIDANCE_FIELDS:
        if isinstance(value, str):
            return messages.for_agent(value)
        if isinstance(value, tuple | list) and all(isinstance(line, str) for line in value):
            lines = [messages.for_agent(line) for line in value]
            return [line for line in lines if name != "next_steps" or messages.is_listed(line)]
    return _without_empty(value)


def _tool_entry(operation: Operation, is_short: bool) -> dict[str, Any]:
    """Return the entry of a tool. To save context, a short entry has no rare arguments, limits or defaults."""
    arguments = schema(operation)
    for name, entry in arguments["properties"].items():
        entry["description"] = messages.for_agent(entry["description"])
        if is_short:
            arguments["properties"][name] = {
                key: value for key, value in entry.items() if key not in ("minimum", "maximum", "default")
            }
    if is_short:
        for name in messages.RARE_ARGUMENTS.get(operation.tool, ()):
            arguments["properties"].pop(name, None)
        del arguments["additionalProperties"]  # arguments that are not listed are accepted
    return {
        "name": operation.tool,
        "title": _title(operation.summary),
        "description": messages.for_agent(operation.description),
        "inputSchema": arguments,
        "annotations": _annotations(operation),
    }


def _annotations(operation: Operation) -> dict[str, bool]:
    """Return only the hints that differ from the protocol's defaults, because the list takes up context."""
    if operation.scope == "read":
        return {"readOnlyHint": True, "openWorldHint": False}
    # A write is idempotent, because it sends the version it was based on, and a repeated write is rejected as
    # a conflict.
    return {"destructiveHint": not operation.adds_only, "idempotentHint": True, "openWorldHint": False}


def _title(summary: str) -> str:
    """Return the first clause of a summary: "Read a page" for "Read a page: current truth, ..."."""
    end = min((summary.find(mark) for mark in ":,.;(" if mark in summary), default=len(summary))
    return summary[:end].strip()
