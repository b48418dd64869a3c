"""The lines that Claude Code writes: ~/.claude/projects/PROJECT/SESSION.jsonl.

Knows which of them a person or the agent said. Left out are what sub-agents were told and answered (sidechains),
the summary that takes the place of a conversation when it is compacted (the turns themselves are there), and the
notes and outputs of commands that the client writes in the person's name.
"""

import re
from typing import Any

from quaid.formats.transcripts import Line, said, short, texts

_NOTES = re.compile(
    r"<(system-reminder|local-command-stdout|local-command-stderr|local-command-caveat|command-message|command-name"
    r"|command-args|command-contents|bash-stdout|bash-stderr|bash-input|ide_opened_file|ide_selection"
    r"|task-notification)>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}


def read(value: dict[str, Any]) -> Line:
    """What one line says."""
    kind = value.get("type")
    session, project = short(value.get("sessionId")), short(value.get("cwd"))
    if isinstance(kind, str) and kind in _TITLES:
        return Line(session, title=short(value.get(_TITLES[kind])), project=project)
    message = value.get("message")
    left_out = value.get("isSidechain") or value.get("isMeta") or value.get("isCompactSummary")
    if kind not in ("user", "assistant") or left_out or not isinstance(message, dict):
        return Line(session, project=project)
    text = texts(message.get("content"))
    if kind == "user" and "<" in text:
        text = _NOTES.sub("", text)
    turn = said(message.get("role") or kind, text, value.get("timestamp"), value.get("uuid"))
    return Line(session, turn, project=project)
