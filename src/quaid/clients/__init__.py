"""The clients (programs with an AI agent) that Quaid can connect to, and their configuration files."""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from quaid.errors import NotFound


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
    marks: tuple[str, ...]  # files or folders; the client is installed if one of them exists
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

    Without a name, the client that runs this hook is detected by its environment variable.
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
