"""What Quaid puts into the texts of other programs, and how it is taken out: servers, hooks, instructions.

Text in, text out; whatever is not ours keeps its bytes. A text that cannot be read is refused. Opens no file.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quaid.clients.known import Client
from quaid.formats import config_text

NAME = "quaid"
EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt",
    "PreCompact": "pre-compact",
    "Stop": "stop",
}
"""Events of Claude Code, and what `quaid hook` calls them."""
HOOK_SECONDS = 5  # a hook that takes longer is ended by the client
BEGIN, END = "<!-- quaid:begin -->", "<!-- quaid:end -->"


class Unreadable(ValueError):
    """The text is not what it should be; the message says why."""


class Launch(NamedTuple):
    """How a client starts Quaid."""

    command: str
    args: tuple[str, ...]  # before the verb, as in -m quaid
    db: str
    tools: str = ""  # which of them are listed, where not the usual ones


def with_server(client: Client, text: str, launch: Launch) -> str:
    """The text with our server among the others; keys that a person added to our entry stay."""
    tools = ("--tools", launch.tools) if launch.tools else ()
    args = [*launch.args, "serve", *tools, "--db", launch.db]
    path = (*client.keys, NAME)
    try:
        if client.format == "toml":
            return config_text.put_toml(text, path, {"command": launch.command, "args": args})
        text = text if text.strip() else "{}\n"
        entry = {**({"type": "stdio"} if client.typed else {}), "command": launch.command, "args": args}
        known = server(client, text)
        return config_text.put_json(text, path, {**known, **entry} if isinstance(known, dict) else entry)
    except (config_text.NotJson, config_text.NotToml) as error:
        raise Unreadable(str(error)) from None


def without_server(client: Client, text: str, before: str = "") -> str:
    """The text without our server. An object that it leaves empty stays if it was there `before` ours came."""
    path = (*client.keys, NAME)
    try:
        if client.format == "toml":
            return config_text.remove_toml(text, path)
        keep = _there(before, [path[:-1]])
        return config_text.remove_json(text, path, keep) if text.strip() else text
    except (config_text.NotJson, config_text.NotToml) as error:
        raise Unreadable(str(error)) from None


def server(client: Client, text: str) -> Any:
    """Our entry as it stands in a text, or None."""
    try:
        if client.format == "toml":
            found: Any = config_text.parse_toml(text)
        else:
            found = config_text.parse_json(text) if text.strip() else {}
    except (config_text.NotJson, config_text.NotToml) as error:
        raise Unreadable(str(error)) from None
    for key in (*client.keys, NAME):
        found = found.get(key) if isinstance(found, dict) else None
    return found


# Hooks


def hook_commands(launch: Launch, quoted: "Quote", client: str) -> dict[str, str]:
    """The command line for each event of a client."""
    start = [launch.command, *launch.args]
    return {
        event: " ".join(map(quoted, [*start, "hook", name, "--client", client, "--db", launch.db]))
        for event, name in EVENTS.items()
    }


class Quote:
    """A word of a command line, for the shell of a system."""

    def __init__(self, platform: str) -> None:
        self._windows = platform == "win32"

    def __call__(self, word: str) -> str:
        if self._windows:
            return f'"{word}"' if " " in word else word
        return shlex.quote(word)


def with_hooks(text: str, commands: Mapping[str, str]) -> str:
    """The text of Claude Code's settings with our hooks; those of others stay where they are."""
    text = text if text.strip() else "{}\n"
    try:
        for event, command in commands.items():
            entry = {"hooks": [{"type": "command", "command": command, "timeout": HOOK_SECONDS}]}
            ours = [each for each in _commands(text, event) if _is_ours(each, event)]
            if ours != [command]:
                text = config_text.append_json(_without(text, event), ("hooks", event), entry)
    except config_text.NotJson as error:
        raise Unreadable(str(error)) from None
    return text


def without_hooks(text: str, before: str = "") -> str:
    """The text without our hooks. What they leave empty stays if it was there `before` ours came."""
    try:
        keep = _there(before, [("hooks",), *(("hooks", event) for event in EVENTS)])
        for event in EVENTS if text.strip() else ():
            text = _without(text, event, keep)
    except config_text.NotJson as error:
        raise Unreadable(str(error)) from None
    return text


def hooks(text: str) -> list[str]:
    """The events that our hooks stand at."""
    try:
        return [event for event in EVENTS if any(_is_ours(each, event) for each in _commands(text, event))]
    except config_text.NotJson as error:
        raise Unreadable(str(error)) from None


def _there(before: str, paths: Sequence[tuple[str | int, ...]]) -> list[tuple[str | int, ...]]:
    """Those of the paths that a text has; one that cannot be read has none."""
    try:
        return [path for path in paths if before.strip() and config_text.has_json(before, path)]
    except config_text.NotJson:
        return []


def _without(text: str, event: str, keep: config_text.JsonPaths = ()) -> str:
    path = ("hooks", event)
    text = config_text.remove_json_items(text, path, lambda group: _all_ours(group, event), keep)
    for at in range(len(_groups(text, event))):  # a group that somebody put other hooks into
        text = config_text.remove_json_items(
            text, (*path, at, "hooks"), lambda each: _is_ours(_command(each), event)
        )
    return text


def _groups(text: str, event: str) -> Sequence[Any]:
    found = config_text.parse_json(text) if text.strip() else {}
    for key in ("hooks", event):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, list) else []


def _commands(text: str, event: str) -> list[str]:
    return [_command(each) for group in _groups(text, event) for each in _inner(group)]


def _inner(group: Any) -> list[Any]:
    found = group.get("hooks") if isinstance(group, dict) else None
    return found if isinstance(found, list) else []


def _command(hook: Any) -> str:
    return str(hook.get("command", "")) if isinstance(hook, dict) else ""


def _is_ours(command: str, event: str) -> bool:
    before, found, _ = command.partition(f" hook {EVENTS[event]}")
    return bool(found) and NAME in before


def _all_ours(group: Any, event: str) -> bool:
    inner = _inner(group)
    return bool(inner) and all(_is_ours(_command(each), event) for each in inner)


# Instructions


def with_instructions(text: str, body: str) -> str:
    """The text with our part between its marks: where it stood, or at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    part = newline.join([BEGIN, *body.strip().splitlines(), END])
    start, end = _marks(text)
    if start >= 0:
        return text[:start] + part + text[end:]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{part}{newline}"


def without_instructions(text: str) -> str:
    """The same text without our part."""
    start, end = _marks(text)
    if start < 0:
        return text
    before, after = text[:start], text[end:]
    for newline in ("\r\n", "\n"):
        if after.startswith(newline):
            after = after[len(newline) :]
            if before.endswith(newline * 2):  # the blank line that stood before our part
                before = before[: -len(newline)]
            break
    return before + after


def _marks(text: str) -> tuple[int, int]:
    start, end = text.find(BEGIN), text.find(END)
    if start < 0 and end < 0:
        return -1, -1
    if start < 0 or end < start or text.count(BEGIN) > 1 or text.count(END) > 1:
        raise Unreadable(f"the marks {BEGIN} and {END} do not stand around one part")
    return start, end + len(END)
