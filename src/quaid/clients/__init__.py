"""The clients (programs with an AI agent) that Quaid can connect to, and edits of their configuration files.

`add_server` and similar functions add and remove Quaid's ("our") server, hooks and instructions. Each file is backed
up first, and all other content is kept byte for byte. A file that cannot be parsed, or that another program changes
at the same time, is left unchanged.
"""

import os
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from quaid.errors import ClientFile, NotFound, QuaidError
from quaid.formats import config_text
from quaid.formats.config_text import UnreadableConfig
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors


class ClientPaths(NamedTuple):
    """The folders and environment variables for resolving path patterns such as HOME/.cursor."""

    home: str  # the home folder of the user
    project: str
    platform: str  # as in sys.platform
    environ: Mapping[str, str]

    def path(self, pattern: str) -> str:
        """Resolve a pattern to a path on this machine."""
        name, _, rest = pattern.partition("/")
        root = {
            "HOME": lambda: self.home,
            "PROJECT": lambda: self.project,
            "CONFIG": self._config,
            "CLAUDE": lambda: self._named("CLAUDE_CONFIG_DIR", ".claude"),
            "CLAUDE_JSON": lambda: self._named("CLAUDE_CONFIG_DIR", ""),
            "CODEX": lambda: self._named("CODEX_HOME", ".codex"),
            "ZED": self._zed,
        }[name]()
        return os.path.join(root, *rest.split("/")) if rest else root

    def _named(self, variable: str, default: str) -> str:
        return self.environ.get(variable) or os.path.join(self.home, default).rstrip("/")

    def _config(self) -> str:
        if self.platform == "darwin":
            return os.path.join(self.home, "Library", "Application Support")
        if self.platform == "win32":
            return self.environ.get("APPDATA") or os.path.join(self.home, "AppData", "Roaming")
        return self.environ.get("XDG_CONFIG_HOME") or os.path.join(self.home, ".config")

    def _zed(self) -> str:
        if self.platform == "win32":
            return os.path.join(self._config(), "Zed")
        if self.platform == "darwin":
            return os.path.join(self.home, ".config", "zed")
        return os.path.join(self._config(), "zed")


DEFAULT_CONTEXT = 32_000
"""Default limit, in characters, of the context added at the start of a session."""


class Client(NamedTuple):
    name: str
    title: str
    marks: tuple[str, ...]  # files or folders; the client counts as installed if one of them exists
    servers: str  # the file with the MCP servers for all projects
    project_servers: str = ""
    keys: tuple[str, ...] = ("mcpServers",)  # the path of the server list within the file
    format: Literal["json", "toml"] = "json"
    typed: bool = False  # entries need "type": "stdio"
    hooks: str = ""
    project_hooks: str = ""
    instructions: str = ""
    project_instructions: str = ""
    shows_instructions: bool = True
    """False if the model does not reliably see the instructions that an MCP server sends in the handshake."""
    rules: str = ""  # a separate rules file, used for the knowledge base
    project_rules: str = ""
    context: int = DEFAULT_CONTEXT
    """Maximum number of characters accepted from a hook. The model sees only a preview of longer output."""
    hook_variable: str = ""  # an environment variable that the client sets for hooks


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            ("CLAUDE", "CLAUDE_JSON/.claude.json"),
            "CLAUDE_JSON/.claude.json",
            "PROJECT/.mcp.json",
            typed=True,
            hooks="CLAUDE/settings.json",
            # The settings file that is not committed, because the hook commands contain local paths.
            project_hooks="PROJECT/.claude/settings.local.json",
            instructions="CLAUDE/CLAUDE.md",
            project_instructions="PROJECT/CLAUDE.md",
            rules="CLAUDE/rules/ai-kb.md",
            project_rules="PROJECT/.claude/rules/ai-kb.md",
            context=10_000,
            hook_variable="CLAUDE_PROJECT_DIR",
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            ("CONFIG/Claude",),
            "CONFIG/Claude/claude_desktop_config.json",
        ),
        Client(
            "cursor",
            "Cursor",
            ("HOME/.cursor",),
            "HOME/.cursor/mcp.json",
            "PROJECT/.cursor/mcp.json",
            project_instructions="PROJECT/AGENTS.md",
        ),
        Client(
            "codex",
            "Codex",
            ("CODEX",),
            "CODEX/config.toml",
            "PROJECT/.codex/config.toml",
            ("mcp_servers",),
            "toml",
            instructions="CODEX/AGENTS.md",
            project_instructions="PROJECT/AGENTS.md",
            shows_instructions=False,
        ),
        Client(
            "vscode",
            "VS Code",
            ("CONFIG/Code/User",),
            "CONFIG/Code/User/mcp.json",
            "PROJECT/.vscode/mcp.json",
            ("servers",),
            typed=True,
            project_instructions="PROJECT/AGENTS.md",
        ),
        Client(
            "windsurf",
            "Windsurf",
            ("HOME/.codeium/windsurf",),
            "HOME/.codeium/windsurf/mcp_config.json",
            project_instructions="PROJECT/AGENTS.md",
        ),
        Client(
            "zed",
            "Zed",
            ("ZED",),
            "ZED/settings.json",
            "PROJECT/.zed/settings.json",
            ("context_servers",),
            project_instructions="PROJECT/AGENTS.md",
        ),
        Client(
            "gemini-cli",
            "Gemini CLI",
            ("HOME/.gemini",),
            "HOME/.gemini/settings.json",
            "PROJECT/.gemini/settings.json",
            instructions="HOME/.gemini/GEMINI.md",
            project_instructions="PROJECT/GEMINI.md",
        ),
    )
}


def context_limit(name: str | None, environ: Mapping[str, str]) -> int:
    """Return the context limit of a client in characters.

    Without a name, the client that runs this hook is detected by its environment variable. If none is detected, the
    limit is DEFAULT_CONTEXT.
    """
    if name is not None:
        return find_client(name).context
    running = [
        client for client in CLIENTS.values() if client.hook_variable and environ.get(client.hook_variable)
    ]
    return min((client.context for client in running), default=DEFAULT_CONTEXT)


def find_client(name: str) -> Client:
    """Return the client with this name. Raise NotFound if it is unknown."""
    if name not in CLIENTS:
        raise NotFound(what="client", name=name, hint=f" Quaid knows {', '.join(CLIENTS)}.")
    return CLIENTS[name]


SERVER_NAME = "quaid"
HOOK_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt",
    "PreCompact": "pre-compact",
    "Stop": "stop",
}
"""Event names of Claude Code, and the corresponding names of `quaid hook`."""
HOOK_TIMEOUT = 5  # seconds; the client kills a hook that takes longer
INSTRUCTIONS_BEGIN, INSTRUCTIONS_END = "<!-- quaid:begin -->", "<!-- quaid:end -->"


class LaunchCommand(NamedTuple):
    """The command with which a client starts Quaid."""

    command: str
    args: tuple[str, ...]  # arguments before the subcommand, as in -m quaid
    db: str
    tools: str = ""  # value of --tools; "" for the default
    only: tuple[str, ...] = ()  # values of --only

    @property
    def only_args(self) -> list[str]:
        return [word for part in self.only for word in ("--only", part)]


def launch_command(db: str, environ: Mapping[str, str]) -> LaunchCommand:
    """Return the command for this installation: the running program, else `quaid` on PATH, else `python -m quaid`."""
    db = os.path.abspath(db)
    called = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    if os.path.basename(called).split(".")[0] == "quaid" and os.access(called, os.X_OK):
        return LaunchCommand(called, (), db)
    program = shutil.which("quaid", path=environ.get("PATH", ""))
    return LaunchCommand(program, (), db) if program else LaunchCommand(sys.executable, ("-m", "quaid"), db)


def add_server(client: Client, text: str, launch: LaunchCommand) -> str:
    """Return the text with our server added or updated. Keys that the user added to our entry are kept."""
    tools = ("--tools", launch.tools) if launch.tools else ()
    args = [*launch.args, "serve", *tools, *launch.only_args, "--db", launch.db]
    path = (*client.keys, SERVER_NAME)
    if client.format == "toml":
        return config_text.put_toml(text, path, {"command": launch.command, "args": args})
    text = text if text.strip() else "{}\n"
    entry = {**({"type": "stdio"} if client.typed else {}), "command": launch.command, "args": args}
    old = find_server(client, text)
    return config_text.put_json(text, path, {**old, **entry} if isinstance(old, dict) else entry)


def remove_server(client: Client, text: str, before: str = "") -> str:
    """Return the text without our server.

    An object left empty is kept only if `before`, an older text, had it.
    """
    path = (*client.keys, SERVER_NAME)
    if client.format == "toml":
        return config_text.remove_toml(text, path)
    keep = _existing_paths(before, [path[:-1]])
    return config_text.remove_json(text, path, keep) if text.strip() else text


def find_server(client: Client, text: str) -> Any:
    """Return our entry in the text, or None."""
    if client.format == "toml":
        return _value_at(config_text.parse_toml(text), (*client.keys, SERVER_NAME))
    return _value_at(config_text.parse_json(text) if text.strip() else {}, (*client.keys, SERVER_NAME))


def _value_at(tree: Any, keys: Sequence[str]) -> Any:
    """Return the value at a path of keys, or None."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


# Hooks


def hook_commands(launch: LaunchCommand, quoted: Callable[[str], str], client: str) -> dict[str, str]:
    """Return the shell command of our hook for each event of a client."""
    start = [launch.command, *launch.args]
    return {
        event: " ".join(
            map(quoted, [*start, "hook", name, "--client", client, *launch.only_args, "--db", launch.db])
        )
        for event, name in HOOK_EVENTS.items()
    }


def shell_quote(platform: str) -> Callable[[str], str]:
    """Return the function that quotes a word for the shell of a platform."""
    if platform == "win32":
        return lambda word: f'"{word}"' if " " in word else word
    return shlex.quote


def add_hooks(text: str, commands: Mapping[str, str]) -> str:
    """Return the text of Claude Code's settings with our hooks added. Other hooks are kept."""
    text = text if text.strip() else "{}\n"
    for event, command in commands.items():
        entry = {"hooks": [{"type": "command", "command": command, "timeout": HOOK_TIMEOUT}]}
        if _our_commands(text, event) != [command]:
            text = config_text.append_json(_remove_event_hooks(text, event), ("hooks", event), entry)
    return text


def remove_hooks(text: str, before: str = "") -> str:
    """Return the text without our hooks.

    Containers left empty are kept only if `before`, an older text, had them.
    """
    keep = _existing_paths(before, [("hooks",), *(("hooks", event) for event in HOOK_EVENTS)])
    for event in HOOK_EVENTS if text.strip() else ():
        text = _remove_event_hooks(text, event, keep)
    return text


def installed_hooks(text: str) -> list[str]:
    """Return the events that have one of our hooks."""
    return [event for event in HOOK_EVENTS if _our_commands(text, event)]


def _existing_paths(before: str, paths: Sequence[tuple[str | int, ...]]) -> list[tuple[str | int, ...]]:
    """Return the paths that exist in a JSON document; [] if the document cannot be parsed."""
    try:
        return [path for path in paths if before.strip() and config_text.has_json(before, path)]
    except config_text.NotJson:
        return []


def _remove_event_hooks(text: str, event: str, keep: config_text.JsonPaths = ()) -> str:
    path = ("hooks", event)
    text = config_text.remove_json_items(text, path, lambda group: _is_our_group(group, event), keep)
    for at in range(len(_hook_groups(text, event))):  # groups that also contain hooks of other programs
        text = config_text.remove_json_items(
            text, (*path, at, "hooks"), lambda hook: _is_our_hook(_command_of_hook(hook), event)
        )
    return text


def _hook_groups(text: str, event: str) -> list[Any]:
    groups = _value_at(config_text.parse_json(text) if text.strip() else {}, ("hooks", event))
    return groups if isinstance(groups, list) else []


def _our_commands(text: str, event: str) -> list[str]:
    """Return the commands of our hooks for an event."""
    hooks = [hook for group in _hook_groups(text, event) for hook in _hooks_of_group(group)]
    return [command for command in map(_command_of_hook, hooks) if _is_our_hook(command, event)]


def _hooks_of_group(group: Any) -> list[Any]:
    hooks = _value_at(group, ("hooks",))
    return hooks if isinstance(hooks, list) else []


def _command_of_hook(hook: Any) -> str:
    return str(hook.get("command", "")) if isinstance(hook, dict) else ""


def _is_our_hook(command: str, event: str) -> bool:
    before, subcommand, _ = command.partition(f" hook {HOOK_EVENTS[event]}")
    return bool(subcommand) and SERVER_NAME in before


def _is_our_group(group: Any, event: str) -> bool:
    inner = _hooks_of_group(group)
    return bool(inner) and all(_is_our_hook(_command_of_hook(hook), event) for hook in inner)


# Instructions


def add_instructions(text: str, body: str) -> str:
    """Return the text with our instructions between markers. Existing ones are replaced."""
    newline = "\r\n" if "\r\n" in text else "\n"
    part = newline.join([INSTRUCTIONS_BEGIN, *body.strip().splitlines(), INSTRUCTIONS_END])
    start, end = _instructions_span(text)
    if start >= 0:
        return text[:start] + part + text[end:]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{part}{newline}"


def remove_instructions(text: str) -> str:
    """Return the text without our instructions."""
    start, end = _instructions_span(text)
    if start < 0:
        return text
    before, after = text[:start], text[end:]
    for newline in ("\r\n", "\n"):
        if after.startswith(newline):
            after = after[len(newline) :]
            if before.endswith(newline * 2):  # remove the blank line that add_instructions inserted
                before = before[: -len(newline)]
            break
    return before + after


def _instructions_span(text: str) -> tuple[int, int]:
    start, end = text.find(INSTRUCTIONS_BEGIN), text.find(INSTRUCTIONS_END)
    if start < 0 and end < 0:
        return -1, -1
    if start < 0 or end < start or text.count(INSTRUCTIONS_BEGIN) > 1 or text.count(INSTRUCTIONS_END) > 1:
        raise UnreadableConfig(f"{INSTRUCTIONS_BEGIN} and {INSTRUCTIONS_END} do not enclose one part")
    return start, end + len(INSTRUCTIONS_END)


def kb_instructions(store: str, home: str) -> str:
    """Return the agent instructions for the knowledge base in this folder, with ~ for the home folder."""
    if store.startswith(home.rstrip("/") + "/"):
        store = "~" + store[len(home.rstrip("/")) :]
    path = os.path.join(os.path.dirname(__file__), "kb_instructions.md")
    with open(path, encoding="utf-8") as file:
        return file.read().replace("{store}", store)


MAX_CONFIG_BYTES = 64 * 1024 * 1024
BACKUP_SUFFIX = ".quaid-backup"


class ConfigChange(NamedTuple):
    """The current and the new text of a configuration file."""

    path: str
    before: str | None  # None if the file does not exist
    after: str

    @property
    def needed(self) -> bool:
        return (self.before or "") != self.after


def read_config(path: str) -> str | None:
    """Return the text of a file with its line endings unchanged, or None if it does not exist."""
    with translate_os_errors(path):
        try:
            # Without O_NONBLOCK, opening a named pipe that has no writer would block forever.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            return None
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            os.close(handle)
            problem = "it is a folder" if stat.S_ISDIR(kind) else "it is not a plain file"
            raise ClientFile(path=path, problem=problem)
        with os.fdopen(handle, "rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    if len(data) > MAX_CONFIG_BYTES:
        raise ClientFile(path=path, problem=f"it is larger than {MAX_CONFIG_BYTES:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ClientFile(path=path, problem=f"byte {error.start} is not UTF-8") from None


def write_config(change: ConfigChange, moment: str) -> str | None:
    """Write a change atomically and durably. Return the path of the backup, or None for a new file."""
    path = os.path.realpath(change.path)
    with translate_os_errors(change.path):
        durable_files.make_folders(os.path.dirname(path))
        backup = _make_backup(path, change.before, moment) if change.before is not None else None

        def check() -> None:
            if read_config(path) != change.before:
                raise ClientFile(path=change.path, problem="another program changed it just now; try again")

        durable_files.write_file(path, change.after.encode(), mode=_file_mode(path), check=check)
    return backup


def newest_backup(path: str) -> str | None:
    """Return the path of the newest backup of a file, or None."""
    return next(iter(list_backups(path)), None)


def list_backups(path: str) -> list[str]:
    """Return the paths of all backups of a file, newest first."""
    folder, name = os.path.split(os.path.realpath(path))
    try:
        files = os.listdir(folder)
    except OSError:
        return []

    def made(file: str) -> tuple[str, int]:
        stamp, _, number = file[len(name) + 1 : -len(BACKUP_SUFFIX)].partition("-")
        return stamp, int(number) if number.isdecimal() else 0

    backups = [file for file in files if file.startswith(f"{name}.") and file.endswith(BACKUP_SUFFIX)]
    return [os.path.join(folder, file) for file in sorted(backups, key=made, reverse=True)]


def text_before_install(path: str, ours: Callable[[str], bool]) -> str:
    """Return the text of the newest backup that does not contain our entries, or "" if there is none.

    `ours` returns True for a text with our entries.
    """
    for backup in list_backups(path):
        try:
            text = read_config(backup) or ""
            if not ours(text):
                return text
        except (QuaidError, ValueError):
            continue  # skip backups that cannot be read
    return ""


def _make_backup(path: str, text: str, moment: str) -> str:
    stamp = "".join(character for character in moment if character.isalnum())
    for number in range(100):
        backup = f"{path}.{stamp}{f'-{number}' if number else ''}{BACKUP_SUFFIX}"
        try:
            durable_files.write_file(backup, text.encode(), mode=_file_mode(path), exclusive=True)
        except FileExistsError:
            continue
        return backup
    raise ClientFile(path=path, problem="there are too many backups beside it")


def _file_mode(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o600
