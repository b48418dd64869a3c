"""Where each client keeps its settings, on each system."""

import pytest

from quaid.clients import CLIENTS, ClientPaths, find_client
from quaid.errors import NotFound

SERVERS = {
    "linux": {
        "claude-code": "/h/.claude.json",
        "claude-desktop": "/h/.config/Claude/claude_desktop_config.json",
        "cursor": "/h/.cursor/mcp.json",
        "codex": "/h/.codex/config.toml",
        "vscode": "/h/.config/Code/User/mcp.json",
        "windsurf": "/h/.codeium/windsurf/mcp_config.json",
        "zed": "/h/.config/zed/settings.json",
        "gemini-cli": "/h/.gemini/settings.json",
    },
    "darwin": {
        "claude-desktop": "/h/Library/Application Support/Claude/claude_desktop_config.json",
        "vscode": "/h/Library/Application Support/Code/User/mcp.json",
        "zed": "/h/.config/zed/settings.json",
    },
    "win32": {
        "claude-code": "/h/.claude.json",
        "claude-desktop": "/h/AppData/Roaming/Claude/claude_desktop_config.json",
        "vscode": "/h/AppData/Roaming/Code/User/mcp.json",
        "zed": "/h/AppData/Roaming/Zed/settings.json",
    },
}


@pytest.mark.parametrize("platform", SERVERS)
def test_servers_stand_where_each_system_has_them(platform: str) -> None:
    where = ClientPaths("/h", "/p", platform, {})
    results = {name: where.path(CLIENTS[name].servers) for name in SERVERS[platform]}
    assert results == SERVERS[platform]


def test_variables_that_move_a_folder_are_heeded() -> None:
    where = ClientPaths(
        "/h", "/p", "linux", {"XDG_CONFIG_HOME": "/x", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/k"}
    )
    assert where.path(CLIENTS["vscode"].servers) == "/x/Code/User/mcp.json"
    assert where.path(CLIENTS["zed"].servers) == "/x/zed/settings.json"
    assert where.path(CLIENTS["claude-code"].servers) == "/c/.claude.json"
    assert where.path(CLIENTS["claude-code"].hooks) == "/c/settings.json"
    assert where.path(CLIENTS["codex"].servers) == "/k/config.toml"
    windows = ClientPaths("/h", "/p", "win32", {"APPDATA": "/roaming"})
    assert windows.path(CLIENTS["claude-desktop"].servers) == "/roaming/Claude/claude_desktop_config.json"


def test_unknown_client_error_lists_the_known_ones() -> None:
    with pytest.raises(NotFound, match="Quaid knows claude-code"):
        find_client("emacs")
