"""What is put into the texts of other programs, and taken out again."""

import json

import pytest

from quaid import clients
from quaid.clients import CLIENTS, LaunchCommand, shell_quote
from quaid.formats.config_text import UnreadableConfig

LAUNCH = LaunchCommand("/opt/my tools/quaid", (), "/h/memory.db")
COMMANDS = clients.hook_commands(LAUNCH, shell_quote("linux"), "claude-code")
SETTINGS = """\
{
  "model": "opus",
  "hooks": {
    "Stop": [
      { "hooks": [ { "type": "command", "command": "say done" } ] }
    ]
  }
}
"""
ENTRY_KEYS = {
    "claude-code": "mcpServers",
    "claude-desktop": "mcpServers",
    "cursor": "mcpServers",
    "vscode": "servers",
    "windsurf": "mcpServers",
    "zed": "context_servers",
    "gemini-cli": "mcpServers",
}


@pytest.mark.parametrize("name", ENTRY_KEYS)
def test_the_client_can_parse_the_entry(name: str) -> None:
    client = CLIENTS[name]
    entry = json.loads(clients.add_server(client, "", LAUNCH))[ENTRY_KEYS[name]]["quaid"]
    assert entry["command"] == "/opt/my tools/quaid"
    assert entry["args"] == ["serve", "--db", "/h/memory.db"]
    assert entry.get("type") == ("stdio" if name in ("claude-code", "vscode") else None)


@pytest.mark.parametrize("name", CLIENTS)
def test_coming_and_going_leaves_no_trace(name: str) -> None:
    client = CLIENTS[name]
    texts = (
        ["a = 1\n"] if client.format == "toml" else ['{\n    "x": 1\n}\n', "{}", '{"mcpServers": {"o": {}}}']
    )
    for text in texts:
        new = clients.add_server(client, text, LAUNCH)
        assert clients.add_server(client, new, LAUNCH) == new
        assert clients.remove_server(client, new) == text


def test_null_is_as_good_as_nothing() -> None:
    new = clients.add_server(CLIENTS["cursor"], '{"mcpServers": null, "x": 1}', LAUNCH)
    assert json.loads(new)["mcpServers"]["quaid"]["command"] == LAUNCH.command
    assert clients.add_server(CLIENTS["cursor"], new, LAUNCH) == new
    assert json.loads(clients.remove_server(CLIENTS["cursor"], new)) == {"x": 1}
    assert clients.remove_server(CLIENTS["cursor"], '{"mcpServers": null}') == '{"mcpServers": null}'
    for text in ('{"hooks": null}', '{"hooks": {"Stop": null}}'):
        assert clients.installed_hooks(clients.add_hooks(text, COMMANDS)) == list(clients.HOOK_EVENTS)


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        'model = "o"\nmcp_servers = { quaid = { command = "x" } }\n',
        '[mcp_servers]\nquaid = { command = "x" }\n',
    ],
)
def test_an_inline_table_is_refused_in_plain_words(text: str) -> None:
    with pytest.raises(UnreadableConfig, match=r"inline tables are not edited here; write it as tables"):
        clients.add_server(CLIENTS["codex"], text, LAUNCH)


def test_lookalike_of_an_inline_table_is_accepted() -> None:
    text = 'note = """\nmcp_servers = { }\n"""\n'
    assert clients.remove_server(CLIENTS["codex"], clients.add_server(CLIENTS["codex"], text, LAUNCH)) == text


def test_keys_that_the_user_added_to_our_entry_are_kept() -> None:
    text = '{"mcpServers": {"quaid": {"command": "old", "args": [], "env": {"A": "1"}}}}'
    entry = json.loads(clients.add_server(CLIENTS["cursor"], text, LAUNCH))["mcpServers"]["quaid"]
    assert entry == {"command": LAUNCH.command, "args": ["serve", "--db", "/h/memory.db"], "env": {"A": "1"}}


def test_hooks_stand_beside_those_of_others_and_go_alone() -> None:
    new = clients.add_hooks(SETTINGS, COMMANDS)
    assert clients.add_hooks(new, COMMANDS) == new
    values = json.loads(new)
    assert [len(values["hooks"][event]) for event in clients.HOOK_EVENTS] == [1, 1, 1, 2]
    assert values["hooks"]["SessionStart"][0]["hooks"][0] == {
        "type": "command",
        "command": "'/opt/my tools/quaid' hook session-start --client claude-code --db /h/memory.db",
        "timeout": 5,
    }
    assert clients.installed_hooks(new) == list(clients.HOOK_EVENTS)
    assert clients.remove_hooks(new) == SETTINGS


def test_another_memory_takes_the_place_of_the_first() -> None:
    old = clients.add_hooks(
        "", clients.hook_commands(LAUNCH._replace(db="/other.db"), shell_quote("linux"), "claude-code")
    )
    assert clients.add_hooks(old, COMMANDS) == clients.add_hooks("", COMMANDS)


def test_a_group_that_holds_other_hooks_too_keeps_those() -> None:
    ours, theirs = (
        {"type": "command", "command": COMMANDS["Stop"]},
        {"type": "command", "command": "say done"},
    )
    text = json.dumps({"hooks": {"Stop": [{"hooks": [ours, theirs]}]}})
    assert json.loads(clients.remove_hooks(text)) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_unexpected_settings_do_not_fail() -> None:
    for text in ('{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [1, {"hooks": 2}]}}'):
        assert clients.remove_hooks(text) == text
        assert clients.installed_hooks(text) == []
    for text in ("{", "[]", '{"hooks": []}'):
        with pytest.raises(UnreadableConfig):
            clients.add_hooks(text, COMMANDS)


def test_commands_are_quoted_for_the_shell_of_the_system() -> None:
    windows = clients.hook_commands(
        LaunchCommand("C:\\Program Files\\quaid.exe", (), "C:\\m.db"), shell_quote("win32"), "claude-code"
    )
    assert windows["Stop"] == '"C:\\Program Files\\quaid.exe" hook stop --client claude-code --db C:\\m.db'
    assert clients.add_hooks("", windows)


@pytest.mark.parametrize("text", ["", "# Mine\n", "# Mine", "# Mine\r\n\r\nText\r\n", "# Mine\n\n"])
def test_instructions_come_and_go(text: str) -> None:
    new = clients.add_instructions(text, "Look first.\nThen ask.\n")
    assert new.startswith(text)
    assert clients.INSTRUCTIONS_BEGIN in new
    assert clients.add_instructions(new, "Look first.\nThen ask.\n") == new
    assert clients.remove_instructions(new).rstrip() == text.rstrip()
    assert "Only this" in clients.add_instructions(new, "Only this.")
    assert "Then ask" not in clients.add_instructions(new, "Only this.")


def test_text_after_the_instructions_is_kept() -> None:
    new = clients.add_instructions("# Mine\n", "Look.") + "\n# More\n"
    assert clients.remove_instructions(new) == "# Mine\n\n# More\n"


def test_a_lonely_mark_is_refused() -> None:
    for text in (
        clients.INSTRUCTIONS_BEGIN,
        clients.INSTRUCTIONS_END,
        f"{clients.INSTRUCTIONS_END}\n{clients.INSTRUCTIONS_BEGIN}",
        clients.INSTRUCTIONS_BEGIN * 2 + clients.INSTRUCTIONS_END,
    ):
        with pytest.raises(UnreadableConfig):
            clients.add_instructions(text, "x")
        with pytest.raises(UnreadableConfig):
            clients.remove_instructions(text)
