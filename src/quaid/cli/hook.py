"""Respond to hook events of a client such as Claude Code (`quaid hook`): JSON in, JSON out.

A hook must not disturb the session. After 0.3 s of CPU time or 2 s of wall time it returns its response so
far, it always exits with status 0, and it never runs a model. Errors are one line on standard error. A marker
file per session and message keeps a message from being repeated.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from re import search
from typing import Any, NamedTuple

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import QuaidError
from quaid.operations import dispatch

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
    stopped_before: bool  # True if a Stop hook has already kept the session from stopping


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
        values.get("stop_hook_active") is True,
    )


def context_response(event: str, text: str) -> dict[str, Any]:
    """Return a response that adds text to the model's context."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}} if text else {}


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


CPU_SECONDS = 0.3
WALL_SECONDS = 2.0
MAX_EVENT_BYTES = 4 * 1024 * 1024
TRANSCRIPT_TAIL_BYTES = 512 * 1024
MAX_SCAN_BYTES = 32 * 1024 * 1024
NUDGE_ROOM = 500  # characters reserved for the reminder from the knowledge base
SHORT_SESSION = 50_000  # bytes; a session with a shorter transcript gets no reminder
SESSIONS_KEPT = 200

FLUSH_PROMPT = (
    "The context of this session is nearly full and will be compacted soon. Write down now what should outlast it:"
    " what stays true with remember, what was done, decided or left open with daily_log. After the"
    " compaction only the summary, the notebook and the latest daily logs are left. If there is nothing to keep,"
    " go on without a word about this."
)
COMPACTED_PROMPT = (
    "This session was just compacted. If its summary holds something that should outlast the session and is not in"
    " the memory yet, write it down now with remember or daily_log, before you go on."
)
PRE_COMPACT_MESSAGE = (
    "Quaid: compacting now. What was not written to the memory survives only in the summary."
)
STOP_PROMPT = (
    "Nothing of this session was written to the memory. If something should outlast it (a fact, a preference, a"
    " decision, what is left open), write it with remember or daily_log now; else just stop."
)


def run_hook(event: str, settings: Callable[[], Settings], client: str | None = None) -> int:
    """Respond to one event of a client. Stop at the time limit with the response so far."""
    responses: list[dict[str, Any]] = [{}]

    def work() -> None:
        try:
            for response in _responses(event, settings(), client):
                responses.append(response)  # read by the main thread
        except Exception as error:  # a failing hook must not stop the session
            _log(_describe_error(error))

    began = time.monotonic()
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(0.01)
        if time.process_time() > CPU_SECONDS or time.monotonic() - began > WALL_SECONDS:
            _log(f"{event} took too long; {'the rest' if len(responses) > 1 else 'it'} was left out")
            print(json.dumps(responses[-1], ensure_ascii=False), flush=True)
            os._exit(0)  # the worker may hang in a call that cannot be interrupted
    print(json.dumps(responses[-1], ensure_ascii=False), flush=True)
    return 0


def _describe_error(error: Exception) -> str:
    """Return a description of an error for the log of the client.

    The message of an unexpected error is omitted, because it may contain private text.
    """
    if isinstance(error, json.JSONDecodeError):
        return f"standard input is not JSON (line {error.lineno}, column {error.colno})"
    words = " ".join(str(error).split())
    return words if isinstance(error, QuaidError | ValueError | OSError) and words else type(error).__name__


def _log(problem: str) -> None:
    print(f"quaid: hook: {problem}", file=sys.stderr, flush=True)


def _responses(name: str, settings: Settings, client: str | None) -> Iterator[dict[str, Any]]:
    """Yield a response, and possibly more complete ones. The last one within the time limit is used."""
    if name not in HANDLERS:
        raise ValueError(f"there is no event {name!r}; write one of {', '.join(HANDLERS)}")
    if sys.stdin.isatty():
        raise ValueError("the event has to come as JSON on standard input")
    data = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
    if len(data) > MAX_EVENT_BYTES:
        raise ValueError("the event is too large")
    event = parse_event(data.decode("utf-8", "replace"))
    yield from HANDLERS[name](event, settings, client)


def _session_start(event: HookEvent, settings: Settings, client: str | None) -> Iterator[dict[str, Any]]:
    from quaid.operations import notebook

    limit = notebook.session_limit(client, settings.environ)
    parts = (
        [COMPACTED_PROMPT] if event.source == "compact" and _mark_once(settings, event, "compacted") else []
    )
    if event.source == "compact":
        _clear_mark(settings, event, "flushed")
    room = limit - sum(len(part) + 2 for part in parts) - NUDGE_ROOM
    settings = _client_settings(settings, client)
    parts += filter(None, [_notebook_context(event, settings, room)])
    yield context_response("SessionStart", "\n\n".join(parts)[:limit])
    parts += filter(None, [_kb_nudge(settings)])
    yield context_response("SessionStart", "\n\n".join(parts)[:limit])


def _pre_compact(event: HookEvent, settings: Settings, _: str | None) -> Iterator[dict[str, Any]]:
    _clear_mark(settings, event, "compacted")  # so that the next session start can show the message again
    yield {"systemMessage": PRE_COMPACT_MESSAGE}  # shown to the user


def _user_prompt(event: HookEvent, settings: Settings, _: str | None) -> Iterator[dict[str, Any]]:
    tokens = _transcript_tokens(event.transcript)
    limit = context_window(tokens, int(settings.option("hooks.context_tokens")))
    if tokens < limit * float(settings.option("hooks.flush_at")):
        _clear_mark(settings, event, "flushed")
    elif _mark_once(settings, event, "flushed"):
        yield context_response("UserPromptSubmit", FLUSH_PROMPT)


def _stop(event: HookEvent, settings: Settings, _: str | None) -> Iterator[dict[str, Any]]:
    if (
        not settings.option("hooks.stop_reminder")
        or event.stopped_before
        or _needs_no_reminder(event.transcript)
    ):
        return
    if _mark_once(settings, event, "stopped"):
        yield {"decision": "block", "reason": STOP_PROMPT}  # the model continues and sees the reason


HANDLERS: dict[str, Callable[[HookEvent, Settings, str | None], Iterator[dict[str, Any]]]] = {
    "session-start": _session_start,
    "user-prompt": _user_prompt,
    "pre-compact": _pre_compact,
    "stop": _stop,
}


def _client_settings(settings: Settings, client: str | None) -> Settings:
    """Return the settings, bound to the part of the memory that the client may see."""
    try:
        with Brain(settings) as brain:
            return brain.for_client(client or "").settings
    except QuaidError:  # the next command reports the error; until then, the hook sees no part of the memory
        return settings._replace(only=(*settings.only, ()))


def _notebook_context(event: HookEvent, settings: Settings, room: int) -> str:
    """Return the text of `quaid prompt`, at most `room` characters, or "" if there is none. Errors are logged."""
    operation = dispatch.find_command("prompt")
    arguments = {"characters": room, "project": True}
    here = event.cwd if os.path.isdir(event.cwd) else settings.cwd
    try:
        with Brain(settings._replace(cwd=here)) as brain:
            record = dispatch.call(brain, operation, arguments, "owner")
    except QuaidError as error:
        if error.code != "not_found":  # having no notebook is not an error
            _log(str(error))
        return ""
    return str(getattr(record, "text", "")).strip()


def _kb_nudge(settings: Settings) -> str:
    """Return the knowledge base's reminder for the start of a session, or ""."""
    from quaid.operations import kb

    try:
        return kb.session_nudge(settings)
    except QuaidError as error:
        if error.code not in ("store_missing", "git_missing"):  # having no knowledge base is not an error
            _log(str(error))
        return ""


def _transcript_tokens(transcript: str) -> int:
    try:
        with open(transcript, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TRANSCRIPT_TAIL_BYTES))
            return tokens_in_use(file.read(TRANSCRIPT_TAIL_BYTES), size)
    except OSError:
        return 0  # a new session has no transcript yet


def _needs_no_reminder(transcript: str) -> bool:
    """Return True if the session is short, has written to the memory, or has no readable transcript."""
    try:
        if os.path.getsize(transcript) < SHORT_SESSION:
            return True
        with open(transcript, "rb") as file:
            return any(calls_writing_tool(line) for line in file.readlines(MAX_SCAN_BYTES))
    except OSError:
        return True


# Markers: files that record which messages were shown in a session


def _marker_path(settings: Settings, event: HookEvent, what: str) -> str:
    import hashlib

    session = hashlib.sha256(event.session.encode("utf-8", "replace")).hexdigest()[:20]
    return os.path.join(settings.home, "hooks", f"{session}.{what}")


def _mark_once(settings: Settings, event: HookEvent, what: str) -> bool:
    """Return True if the message was not shown in this session yet, and mark it as shown.

    Return False if it cannot be marked.
    """
    path = _marker_path(settings, event, what)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError as error:
        _log(f"{path}: {error.strerror}")
        return False  # without a marker, the message would be repeated at every prompt
    _prune_marks(os.path.dirname(path))
    return True


def _clear_mark(settings: Settings, event: HookEvent, what: str) -> None:
    try:
        os.unlink(_marker_path(settings, event, what))
    except OSError:
        pass


def _prune_marks(folder: str) -> None:
    """If there are more than SESSIONS_KEPT markers, keep only the newest ones, half as many."""
    marks = [entry for entry in os.scandir(folder) if entry.is_file()]
    if len(marks) > SESSIONS_KEPT:
        marks.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in marks[: len(marks) - SESSIONS_KEPT // 2]:
            os.unlink(entry.path)
