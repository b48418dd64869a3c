"""Claude Code hooks: parse events, estimate tokens from the end of a transcript, build responses."""

import json
from re import search
from typing import Any, NamedTuple

BYTES_PER_TOKEN = 5  # for parts of a transcript without usage figures; the bytes include the JSON syntax
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
    source: str  # how a session started: startup, resume, clear, compact
    trigger: str  # what triggered a compaction: manual, auto
    stopped_before: bool  # the session continues because of a Stop hook


def parse_event(text: str) -> HookEvent:
    """Parse a hook event, or raise ValueError."""
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
    """Return a response that adds text to the model's context."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}} if text else {}


def message_response(text: str) -> dict[str, Any]:
    """Return a response that shows a message to the user."""
    return {"systemMessage": text}


def block_response(reason: str) -> dict[str, Any]:
    """Return a response that keeps the model from stopping, with a reason for the model to act on."""
    return {"decision": "block", "reason": reason}


def tokens_in_use(tail: bytes, size: int) -> int:
    """Estimate the tokens in the context, from the usage figure of the last response and the bytes after it.

    `tail` is the end of a transcript of `size` bytes. If no usage figure is found, only bytes are counted:
    the bytes after the last compaction, which resets the context, or the whole transcript.
    """
    lines = tail.split(b"\n")
    whole = lines if size <= len(tail) else lines[1:]
    behind = 0  # bytes after the current line
    for line in reversed(whole):
        if b'"compact_boundary"' in line:
            return behind // BYTES_PER_TOKEN
        used = _usage(line) if b'"usage"' in line else 0
        if used:
            return used + behind // BYTES_PER_TOKEN
        behind += len(line) + 1
    return size // BYTES_PER_TOKEN


def context_window(tokens: int, configured: int) -> int:
    """Return the size of the context window in tokens.

    A session that uses more tokens than the configured size must have a window of at least LONG_WINDOW.
    """
    return configured if tokens <= configured else max(LONG_WINDOW, configured)


def calls_writing_tool(data: bytes) -> bool:
    """Return True if a part of a transcript calls one of Quaid's tools that write."""
    if b"mcp__" not in data:
        return False
    tools = "|".join(WRITING_TOOLS)
    return search(rf'"name": ?"mcp__[^"]*__(?:{tools})"'.encode(), data) is not None


def _usage(line: bytes) -> int:
    try:
        values = json.loads(line)
        if values.get("isSidechain") is True:  # subagents have a separate context
            return 0
        usage = values["message"]["usage"]
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        return sum(int(usage.get(name) or 0) for name in names)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0
