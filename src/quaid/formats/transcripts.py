"""Transcripts of conversations with agents: lines and exports to turns.

Knows what is common to all clients: what a turn is, how a text is taken out of the parts of a message, how times
are written, and by which line a client is known. What each client writes is in claude_code.py, codex.py and
exports.py. Does not know files, nor what was read before.

Only what a person and an agent said to each other is a turn. Tool calls and their output, hidden reasoning,
instructions, and what a client puts into the conversation by itself are left out: they are most of the bytes
and little of the memory.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from json import JSONDecodeError, JSONDecoder, loads
from typing import Any, NamedTuple

from quaid.model.dates import timestamp

LONGEST_TURN = 100_000
"""Characters of a turn that are kept."""

LONGEST_ITEM = 64 * 1024 * 1024
"""Characters of one conversation in an export."""

LATEST = 4_102_444_800.0  # 2100-01-01: what is larger counts milliseconds

ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant", "agent": "assistant"}
NOT_SAID = frozenset(
    ("system", "developer", "tool", "function", "toolresult", "tool_result", "critic", "discriminator")
)
"""Roles that neither a person nor an agent has."""

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_BLANK = re.compile(r"[\s,]*")


class Turn(NamedTuple):
    """What somebody said."""

    role: str
    text: str
    at: str = ""
    """In UTC, as in 2026-04-25T12:00:00Z; empty when nobody wrote it down."""
    key: str = ""
    """The client's own name for it."""


class Line(NamedTuple):
    """What one line of a transcript says."""

    session: str = ""
    """Empty: the same as the line before."""
    turn: Turn | None = None
    title: str = ""
    project: str = ""


class Conversation(NamedTuple):
    """One conversation of an export."""

    client: str
    session: str
    title: str
    turns: tuple[Turn, ...]


class Broken(ValueError):
    """A line or an export that is not what it should be."""


def parsed(line: bytes) -> dict[str, Any]:
    """A line as an object; Broken when it is none."""
    try:
        value = loads(line)
    except (ValueError, RecursionError) as error:
        raise Broken(str(error)) from None
    if not isinstance(value, dict):
        raise Broken("not an object")
    return value


def known_by(value: dict[str, Any]) -> str | None:
    """The client that writes such lines: claude-code, codex or plain; None when the line does not tell."""
    kind = value.get("type")
    if "sessionId" in value or (kind == "summary" and "leafUuid" in value):
        return "claude-code"
    payload = value.get("payload")
    if kind in ("session_meta", "response_item", "turn_context", "event_msg") and isinstance(payload, dict):
        return "codex"
    if value.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= value.keys():
        return "codex"  # as it wrote in its first months
    if isinstance(value.get("role"), str) and "content" in value:
        return "codex" if kind == "message" and isinstance(value["content"], list) else "plain"
    return None


def read(client: str, value: dict[str, Any]) -> Line:
    """What a line of that client says."""
    from quaid.formats import claude_code, codex

    readers = {"claude-code": claude_code.read, "codex": codex.read, "plain": plain}
    return readers[client](value)


def plain(value: dict[str, Any]) -> Line:
    """A line {role, content, timestamp}, perhaps with a session and a project."""
    session = next((value[key] for key in ("session", "session_id", "conversation_id") if value.get(key)), "")
    at = next((value[key] for key in ("timestamp", "created_at", "time", "date") if value.get(key)), "")
    turn = said(value.get("role"), texts(value.get("content")), at, value.get("id"))
    title = value.get("title")
    return Line(short(session), turn, title if isinstance(title, str) else "", short(value.get("project")))


def said(role: Any, text: str, at: Any, key: Any = "") -> Turn | None:
    """A turn; None when the role is none of a person or an agent, or nothing was said."""
    name = role.strip().lower()[:40] if isinstance(role, str) else ""
    if not name or name in NOT_SAID or not text.strip():
        return None
    return Turn(
        clean(ROLES.get(name, name)), clean(text), time(at), key[:200] if isinstance(key, str) else ""
    )


def texts(content: Any) -> str:
    """The text of a message: itself, or its parts that are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = content.get("parts") or [content]
    if not isinstance(content, list):
        return ""
    return "\n\n".join([text for part in content if (text := _of_part(part))])


def _of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type", "text") in ("text", "input_text", "output_text"):
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return ""


def clean(text: str) -> str:
    """A text that can be stored: no NUL, no half characters, not endless."""
    text = text.strip()
    if len(text) > LONGEST_TURN:
        text = text[:LONGEST_TURN] + "… [cut]"
    if text.isascii():
        return text.replace("\0", "")
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def short(value: Any) -> str:
    """A name as it stands in a line, if there is one."""
    return clean(value[:1000]) if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def time(value: Any) -> str:
    """A time in UTC to the second: from ISO 8601, seconds or milliseconds since 1970; "" when it is none."""
    if isinstance(value, str):
        if _UTC.fullmatch(value):
            return value[:19] + "Z"
        return _other_time(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1000 * LATEST:
        seconds = value / 1000 if value > LATEST else value
        return timestamp(float(seconds)) if 0 < seconds < LATEST else ""
    return ""


def _other_time(value: str) -> str:
    if not value.strip():
        return ""
    try:
        at = datetime.fromisoformat(value.strip())
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at.year >= 1970 else ""
    except (ValueError, OverflowError):
        return ""


def items(chunks: Iterable[str]) -> Iterator[Any]:
    """What a JSON list holds, one after the other, without ever holding all of it; Broken when it is no list."""
    decoder = JSONDecoder()
    source = iter(chunks)
    text = next(source, "").lstrip("\ufeff \t\r\n")
    if not text.startswith("["):
        raise Broken("not a list of conversations")
    at, wanted, ended = 1, 0, False
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if text.startswith("]", at):
            return
        if ended or len(text) - at >= wanted:
            try:
                value, at = decoder.raw_decode(text, at)
                wanted = 0
                yield value
                continue
            except RecursionError:
                raise Broken("nested too deeply") from None
            except JSONDecodeError:
                if ended:
                    raise Broken("it ends in the middle of a conversation") from None
                wanted = 2 * (len(text) - at)  # so that a long one is not tried with each piece that comes
        more = next(source, "")
        ended = not more
        text, at = text[at:] + more, 0
        if len(text) > LONGEST_ITEM:
            raise Broken(f"a conversation has more than {LONGEST_ITEM:,} characters, or is broken")
