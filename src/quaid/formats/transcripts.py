"""Conversation transcripts of Claude Code and Codex, and exports of ChatGPT, Claude.ai and Gemini, as turns.

A turn is a message of the user or an agent; tool calls, reasoning and notes of the client program are left
out.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from json import JSONDecodeError, JSONDecoder, loads
from typing import Any, NamedTuple

from quaid.formats.html_text import read_note
from quaid.model.dates import timestamp

LONGEST_TURN = 100_000
"""At most this many characters of a turn are kept."""

LONGEST_ITEM = 64 * 1024 * 1024
"""Maximum size of one conversation in an export, in characters."""

LATEST_SECONDS = 4_102_444_800.0  # 2100-01-01; larger values are milliseconds

ROLE_NAMES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "agent": "assistant",
}
IGNORED_ROLES = frozenset(
    ("system", "developer", "tool", "function", "toolresult", "tool_result", "critic", "discriminator")
)
"""Roles of messages that are from neither the user nor an agent."""

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_BLANK = re.compile(r"[\s,]*")
_EXPORT_NAME = re.compile(
    r"(?:.*/)?conversations(?:-\d+)?\.json|(?:.*/)?[^/]*(?:gemini|bard)[^/]*/[^/]+\.json|my ?activity\.json"
)


class TranscriptTurn(NamedTuple):
    """One message of a conversation."""

    role: str
    text: str
    at: str = ""
    """Time in UTC, such as 2026-04-25T12:00:00Z, or "" if it was not recorded."""
    key: str = ""
    """The client's id of the message."""


class TranscriptLine(NamedTuple):
    """The content of one line of a transcript."""

    session: str = ""
    """Id of the conversation; empty if it is the same as in the previous line."""
    turn: TranscriptTurn | None = None
    title: str = ""
    project: str = ""


class ExportedConversation(NamedTuple):
    """One conversation of an export."""

    client: str
    session: str
    title: str
    turns: tuple[TranscriptTurn, ...]


class BrokenTranscript(ValueError):
    """A line or an export does not have the expected format."""


def is_export_name(name: str) -> bool:
    """Return True if a file of this name, with its path in an archive, contains exported conversations."""
    return _EXPORT_NAME.fullmatch(name.lower()) is not None


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object, or raise BrokenTranscript."""
    try:
        value = loads(line)
    except (ValueError, RecursionError) as error:
        raise BrokenTranscript(str(error)) from None
    if not isinstance(value, dict):
        raise BrokenTranscript("not an object")
    return value


def detect_client(value: dict[str, Any]) -> str | None:
    """Return the client that wrote the line (claude-code, codex, or plain for {role, content}), or None."""
    kind = value.get("type")
    if "sessionId" in value or (kind == "summary" and "leafUuid" in value):
        return "claude-code"
    payload = value.get("payload")
    if kind in ("session_meta", "response_item", "turn_context", "event_msg") and isinstance(payload, dict):
        return "codex"
    if value.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= value.keys():
        return "codex"  # this is the format of early versions
    if isinstance(value.get("role"), str) and "content" in value:
        return "codex" if kind == "message" and isinstance(value["content"], list) else "plain"
    return None


def read_line(client: str, value: dict[str, Any]) -> TranscriptLine:
    """Parse a line of the given client."""

    readers = {"claude-code": read_claude_code_line, "codex": read_codex_line, "plain": read_plain_line}
    return readers[client](value)


def read_plain_line(value: dict[str, Any]) -> TranscriptLine:
    """Parse a line {role, content, timestamp} with optional session, title and project."""
    session = next((value[key] for key in ("session", "session_id", "conversation_id") if value.get(key)), "")
    at = next((value[key] for key in ("timestamp", "created_at", "time", "date") if value.get(key)), "")
    turn = make_turn(value.get("role"), content_text(value.get("content")), at, value.get("id"))
    title = value.get("title")
    return TranscriptLine(
        short_text(session), turn, title if isinstance(title, str) else "", short_text(value.get("project"))
    )


def make_turn(role: Any, text: str, at: Any, key: Any = "") -> TranscriptTurn | None:
    """Return a turn, or None if the role is ignored or the text is empty."""
    name = role.strip().lower()[:40] if isinstance(role, str) else ""
    if not name or name in IGNORED_ROLES or not text.strip():
        return None
    return TranscriptTurn(
        clean_text(ROLE_NAMES.get(name, name)),
        clean_text(text),
        parse_time(at),
        key[:200] if isinstance(key, str) else "",
    )


def content_text(content: Any) -> str:
    """Return the text of a message, joining its text parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = content.get("parts") or [content]
    if not isinstance(content, list):
        return ""
    return "\n\n".join([text for part in content if (text := _part_text(part))])


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type", "text") in ("text", "input_text", "output_text"):
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return ""


def clean_text(text: str) -> str:
    """Return the text as it can be stored: without NUL and lone surrogates, and truncated to LONGEST_TURN."""
    text = text.strip()
    if len(text) > LONGEST_TURN:
        text = text[:LONGEST_TURN] + "… [cut]"
    if text.isascii():
        return text.replace("\0", "")
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def short_text(value: Any) -> str:
    """Return a short string or an integer as text, or "" for other types."""
    return (
        clean_text(value[:1000]) if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    )


def parse_time(value: Any) -> str:
    """Convert ISO 8601, or seconds or milliseconds since 1970, to UTC in whole seconds. Return "" if invalid."""
    if isinstance(value, str):
        if _UTC.fullmatch(value):
            return value[:19] + "Z"
        return _parse_iso_time(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1000 * LATEST_SECONDS:
        seconds = value / 1000 if value > LATEST_SECONDS else value
        return timestamp(float(seconds)) if 0 < seconds < LATEST_SECONDS else ""
    return ""


def _parse_iso_time(value: str) -> str:
    if not value.strip():
        return ""
    try:
        at = datetime.fromisoformat(value.strip())
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at.year >= 1970 else ""
    except (ValueError, OverflowError):
        return ""


def iter_json_list(pieces: Iterable[bytes]) -> Iterator[Any]:
    """Yield the items of a JSON list without loading all of it. Raise BrokenTranscript for other values."""
    decoder = JSONDecoder()
    source = _decode_pieces(pieces)
    text = next(source, "").lstrip("\ufeff \t\r\n")
    if not text.startswith("["):
        raise BrokenTranscript("not a list of conversations")
    at, needed, ended = 1, 0, False
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if text.startswith("]", at):
            return
        if ended or len(text) - at >= needed:
            try:
                value, at = decoder.raw_decode(text, at)
                needed = 0
                yield value
                continue
            except RecursionError:
                raise BrokenTranscript("nested too deeply") from None
            except JSONDecodeError:
                if ended:
                    raise BrokenTranscript("it ends in the middle of a conversation") from None
                needed = 2 * (len(text) - at)  # this avoids parsing a long item again with every chunk
        more = next(source, "")
        ended = not more
        text, at = text[at:] + more, 0
        if len(text) > LONGEST_ITEM:
            raise BrokenTranscript(f"a conversation has more than {LONGEST_ITEM:,} characters, or is broken")


def _decode_pieces(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        if text := decoder.decode(piece):
            yield text
    if text := decoder.decode(b"", True):
        yield text


_CLIENT_NOTES = re.compile(
    r"<(system-reminder|local-command-stdout|local-command-stderr|local-command-caveat|command-message|command-name"
    r"|command-args|command-contents|bash-stdout|bash-stderr|bash-input|ide_opened_file|ide_selection"
    r"|task-notification)>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_TITLE_FIELDS = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}


def read_claude_code_line(value: dict[str, Any]) -> TranscriptLine:
    """Parse a line of a Claude Code transcript."""
    kind = value.get("type")
    session, project = short_text(value.get("sessionId")), short_text(value.get("cwd"))
    if isinstance(kind, str) and kind in _TITLE_FIELDS:
        return TranscriptLine(session, title=short_text(value.get(_TITLE_FIELDS[kind])), project=project)
    message = value.get("message")
    left_out = value.get("isSidechain") or value.get("isMeta") or value.get("isCompactSummary")
    if kind not in ("user", "assistant") or left_out or not isinstance(message, dict):
        return TranscriptLine(session, project=project)
    text = content_text(message.get("content"))
    if kind == "user" and "<" in text:
        text = _CLIENT_NOTES.sub("", text)
    turn = make_turn(message.get("role") or kind, text, value.get("timestamp"), value.get("uuid"))
    return TranscriptLine(session, turn, project=project)


CLIENT_TEXT_PREFIXES = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>", "<turn_aborted>"),
    *("<INSTRUCTIONS>", "# AGENTS.md instructions", "<user_shell_command>", "<skill>"),
)
"""Prefixes of messages that the client wrote in the user's name."""


def read_codex_line(value: dict[str, Any]) -> TranscriptLine:
    """Parse a line of a Codex transcript."""
    kind, payload = value.get("type"), value.get("payload")
    if kind == "session_meta" and isinstance(payload, dict):
        return TranscriptLine(short_text(payload.get("id")), project=short_text(payload.get("cwd")))
    if kind == "response_item" and isinstance(payload, dict):
        return _codex_message(payload, value.get("timestamp"))
    if kind == "turn_context" and isinstance(payload, dict):
        return TranscriptLine(project=short_text(payload.get("cwd")))
    if kind == "message":
        return _codex_message(value, value.get("timestamp"))
    if kind is None and "instructions" in value:
        return TranscriptLine(short_text(value.get("id")))
    return TranscriptLine()


def _codex_message(item: dict[str, Any], at: Any) -> TranscriptLine:
    if item.get("type") != "message":
        return TranscriptLine()
    text = content_text(item.get("content"))
    if item.get("role") == "user" and text.lstrip().startswith(CLIENT_TEXT_PREFIXES):
        return TranscriptLine()
    return TranscriptLine(turn=make_turn(item.get("role"), text, at, item.get("id")))


def read_export(value: Any) -> ExportedConversation | None:
    """Parse a conversation of an export, or return None if it has another format."""
    if not isinstance(value, dict):
        return None
    conversation = None
    if isinstance(value.get("mapping"), dict):
        conversation = _chatgpt_conversation(value)
    elif isinstance(value.get("chat_messages"), list):
        conversation = _claude_conversation(value)
    elif _is_gemini_activity(value):
        conversation = _gemini_activity(value)
    return conversation if conversation and conversation.session else None


def _is_gemini_activity(value: Any) -> bool:
    header = value.get("header") if isinstance(value, dict) else None
    return (
        isinstance(header, str)
        and header.startswith(("Gemini", "Bard"))
        and isinstance(value.get("time"), str)
    )


def activity_in_order(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of an export. Entries of My Activity, newest first in the file, are reversed day by day."""
    day: list[dict[str, Any]] = []
    for value in values:
        is_activity = _is_gemini_activity(value)
        if day and not (is_activity and value["time"][:10] == day[0]["time"][:10]):
            yield from reversed(day)
            day.clear()
        if is_activity:
            day.append(value)
        else:
            yield value
    yield from reversed(day)


def _gemini_activity(value: dict[str, Any]) -> ExportedConversation | None:
    """Return a prompt and its answer. Activity has no conversation ids, so each day is one conversation."""
    at = parse_time(value["time"])
    title = value.get("title")
    if not at or not isinstance(title, str):
        return None
    parts = value.get("safeHtmlItem")
    answers = (
        [part.get("html") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    )
    answer = "\n\n".join(read_note(part)[0] for part in answers if isinstance(part, str))
    if not answer and not title.startswith("Prompted "):
        return None  # other activity, such as feedback
    turns = (
        make_turn("user", title.removeprefix("Prompted ").strip(), at, f"{value['time']}/user"),
        make_turn("assistant", answer, at, f"{value['time']}/assistant"),
    )
    day = at[:10]
    return ExportedConversation("gemini", day, f"Gemini on {day}", tuple(turn for turn in turns if turn))


def _chatgpt_conversation(value: dict[str, Any]) -> ExportedConversation:
    session = short_text(value.get("conversation_id") or value.get("id"))
    turns = tuple(turn for node in _chatgpt_branch(value) if (turn := _chatgpt_turn(node)))
    return ExportedConversation("chatgpt", session, short_text(value.get("title")), turns)


def _chatgpt_branch(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes from the first message to the current message."""
    nodes: dict[str, Any] = value["mapping"]
    at = value.get("current_node")
    if not isinstance(at, str) or at not in nodes:  # fall back to the most recent node
        at = next(reversed(nodes), None)
    path: dict[str, dict[str, Any]] = {}
    while isinstance(at, str) and at not in path and isinstance(nodes.get(at), dict):
        path[at] = nodes[at]
        at = nodes[at].get("parent")
    return list(reversed(path.values()))


def _chatgpt_turn(node: dict[str, Any]) -> TranscriptTurn | None:
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    content, author, facts = (message.get(key) or {} for key in ("content", "author", "metadata"))
    if not all(isinstance(part, dict) for part in (content, author, facts)):
        return None
    if content.get("content_type") not in ("text", "multimodal_text"):
        return None
    if message.get("recipient", "all") != "all" or facts.get("is_visually_hidden_from_conversation"):
        return None
    parts = content.get("parts")
    text = "\n\n".join([part for part in parts if isinstance(part, str)]) if isinstance(parts, list) else ""
    return make_turn(author.get("role"), text, message.get("create_time"), message.get("id"))


def _claude_conversation(value: dict[str, Any]) -> ExportedConversation:
    turns = []
    for message in value["chat_messages"]:
        if isinstance(message, dict):
            text = content_text(message.get("content")) or content_text(message.get("text"))
            turns.append(
                make_turn(message.get("sender"), text, message.get("created_at"), message.get("uuid"))
            )
    present = tuple(turn for turn in turns if turn)
    session, title = short_text(value.get("uuid")), short_text(value.get("name"))
    return ExportedConversation("claude.ai", session, title, present)
