"""The lines that Codex writes: ~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl.

Knows the present shape, in which every line wraps a payload, and that of the first months, without wrapping. Events
repeat what the items say, and instructions and surroundings come in the person's name: both are left out.
"""

from typing import Any

from quaid.formats.transcripts import Line, said, short, texts

NOT_TYPED = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>", "<turn_aborted>"),
    *("<INSTRUCTIONS>", "# AGENTS.md instructions", "<user_shell_command>", "<skill>"),
)
"""How a text begins that the client wrote in the person's name."""


def read(value: dict[str, Any]) -> Line:
    """What one line says."""
    kind, payload = value.get("type"), value.get("payload")
    if kind == "session_meta" and isinstance(payload, dict):
        return Line(short(payload.get("id")), project=short(payload.get("cwd")))
    if kind == "response_item" and isinstance(payload, dict):
        return _message(payload, value.get("timestamp"))
    if kind == "turn_context" and isinstance(payload, dict):
        return Line(project=short(payload.get("cwd")))
    if kind == "message":
        return _message(value, value.get("timestamp"))
    if kind is None and "instructions" in value:
        return Line(short(value.get("id")))
    return Line()


def _message(item: dict[str, Any], at: Any) -> Line:
    if item.get("type") != "message":
        return Line()
    text = texts(item.get("content"))
    if item.get("role") == "user" and text.lstrip().startswith(NOT_TYPED):
        return Line()
    return Line(turn=said(item.get("role"), text, at, item.get("id")))
