"""Claude Code hooks: parse events, estimate tokens from the end of a transcript, build responses."""

import json
from re import search
from typing import Any, NamedTuple

BYTES_PER_TOKEN = 5  # of a transcript without figures: its JSON around the words weighs something too
LONG_WINDOW = 1_000_000
WRITING_TOOLS = (
    "remember",
    "daily_log",
    "notebook_write",
    "memory_put",
    "memory_ingest",
    "memory_timeline_add",
)


class HookEvent(NamedTuple):
    name: str  # SessionStart, PreCompact, Stop, UserPromptSubmit
    session: str
    transcript: str
    cwd: str
    source: str  # of a session's start: startup, resume, clear, compact
    trigger: str  # of a compaction: manual, auto
    stopped_before: bool  # it goes on because a Stop hook told it to


def parse_event(text: str) -> HookEvent:
    """An event, or ValueError."""
    try:
        values = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is not an object")

    def word(key: str) -> str:
        value = values.get(key)
        return value if isinstance(value, str) else ""

    return HookEvent(
        word("hook_event_name"),
        word("session_id"),
        word("transcript_path"),
        word("cwd"),
        word("source"),
        word("trigger"),
        values.get("stop_hook_active") is True,
    )


def context_response(event: str, text: str) -> dict[str, Any]:
    """The answer that puts a text before the model, at the start of a session or beside a prompt."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}} if text else {}


def message_response(text: str) -> dict[str, Any]:
    """The answer that shows a text to the person."""
    return {"systemMessage": text}


def block_response(reason: str) -> dict[str, Any]:
    """The answer that lets the model do one thing more before it stops."""
    return {"decision": "block", "reason": reason}


def tokens_in_use(tail: bytes, size: int) -> int:
    """How full the context is: what the last answer was counted with, or a guess from the transcript's size.

    `tail` is the end of a transcript of `size` bytes; a compaction empties the context.
    """
    lines = tail.split(b"\n")
    whole = lines if size <= len(tail) else lines[1:]
    behind = 0  # bytes after the line that is looked at
    for line in reversed(whole):
        if b'"compact_boundary"' in line:
            return behind // BYTES_PER_TOKEN
        used = _usage(line) if b'"usage"' in line else 0
        if used:
            return used + behind // BYTES_PER_TOKEN
        behind += len(line) + 1
    return size // BYTES_PER_TOKEN


def context_window(tokens: int, configured: int) -> int:
    """The size of the context: a session that holds more than was thought possible has the long one."""
    return configured if tokens <= configured else max(LONG_WINDOW, configured)


def calls_writing_tool(data: bytes) -> bool:
    """Whether a piece of a transcript calls one of our tools that write."""
    if b"mcp__" not in data:
        return False
    tools = "|".join(WRITING_TOOLS)
    return search(rf'"name": ?"mcp__[^"]*__(?:{tools})"'.encode(), data) is not None


def _usage(line: bytes) -> int:
    try:
        values = json.loads(line)
        if values.get("isSidechain") is True:  # a helper of the model has a context of its own
            return 0
        usage = values["message"]["usage"]
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        return sum(int(usage.get(each) or 0) for each in names)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0
