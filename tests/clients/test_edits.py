"""What is put into the texts of other programs, and taken out again."""

import json

import pytest

from quaid.clients import CLIENTS, config_files
from quaid.clients.config_files import LaunchCommand, shell_quote
from quaid.formats.config_text import UnreadableConfig

LAUNCH = LaunchCommand("/opt/my tools/quaid", (), "/h/memory.db")
COMMANDS = config_files.hook_commands(LAUNCH, shell_quote("linux"), "claude-code")
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
    entry = json.loads(config_files.add_server(client, "", LAUNCH))[ENTRY_KEYS[name]]["quaid"]
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
        new = config_files.add_server(client, text, LAUNCH)
        assert config_files.add_server(client, new, LAUNCH) == new
        assert config_files.remove_server(client, new) == text


def test_null_is_as_good_as_nothing() -> None:
    new = config_files.add_server(CLIENTS["cursor"], '{"mcpServers": null, "x": 1}', LAUNCH)
    assert json.loads(new)["mcpServers"]["quaid"]["command"] == LAUNCH.command
    assert config_files.add_server(CLIENTS["cursor"], new, LAUNCH) == new
    assert json.loads(config_files.remove_server(CLIENTS["cursor"], new)) == {"x": 1}
    assert config_files.remove_server(CLIENTS["cursor"], '{"mcpServers": null}') == '{"mcpServers": null}'
    for text in ('{"hooks": null}', '{"hooks": {"Stop": null}}'):
        assert config_files.installed_hooks(config_files.add_hooks(text, COMMANDS)) == list(
            config_files.HOOK_EVENTS
        )


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
        config_files.add_server(CLIENTS["codex"], text, LAUNCH)


def test_lookalike_of_an_inline_table_is_accepted() -> None:
    text = 'note = """\nmcp_servers = { }\n"""\n'
    assert (
        config_files.remove_server(CLIENTS["codex"], config_files.add_server(CLIENTS["codex"], text, LAUNCH))
        == text
    )


def test_keys_that_the_user_added_to_our_entry_are_kept() -> None:
    text = '{"mcpServers": {"quaid": {"command": "old", "args": [], "env": {"A": "1"}}}}'
    entry = json.loads(config_files.add_server(CLIENTS["cursor"], text, LAUNCH))["mcpServers"]["quaid"]
    assert entry == {"command": LAUNCH.command, "args": ["serve", "--db", "/h/memory.db"], "env": {"A": "1"}}


def test_hooks_stand_beside_those_of_others_and_go_alone() -> None:
    new = config_files.add_hooks(SETTINGS, COMMANDS)
    assert config_files.add_hooks(new, COMMANDS) == new
    values = json.loads(new)
    assert [len(values["hooks"][event]) for event in config_files.HOOK_EVENTS] == [1, 1, 1, 2]
    assert values["hooks"]["SessionStart"][0]["hooks"][0] == {
        "type": "command",
        "command": "'/opt/my tools/quaid' hook session-start --client claude-code --db /h/memory.db",
        "timeout": 5,
    }
    assert config_files.installed_hooks(new) == list(config_files.HOOK_EVENTS)
    assert config_files.remove_hooks(new) == SETTINGS


def test_another_memory_takes_the_place_of_the_first() -> None:
    old = config_files.add_hooks(
        "", config_files.hook_commands(LAUNCH._replace(db="/other.db"), shell_quote("linux"), "claude-code")
    )
    assert config_files.add_hooks(old, COMMANDS) == config_files.add_hooks("", COMMANDS)


def test_a_group_that_holds_other_hooks_too_keeps_those() -> None:
    ours, theirs = (
        {"type": "command", "command": COMMANDS["Stop"]},
        {"type": "command", "command": "say done"},
    )
    text = json.dumps({"hooks": {"Stop": [{"hooks": [ours, theirs]}]}})
    assert json.loads(config_files.remove_hooks(text)) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_unexpected_settings_do_not_fail() -> None:
    for text in ('{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [1, {"hooks": 2}]}}'):
        assert config_files.remove_hooks(text) == text
        assert config_files.installed_hooks(text) == []
    for text in ("{", "[]", '{"hooks": []}'):
        with pytest.raises(UnreadableConfig):
            config_files.add_hooks(text, COMMANDS)


def test_commands_are_quoted_for_the_shell_of_the_system() -> None:
    windows = config_files.hook_commands(
        LaunchCommand("C:\\Program Files\\quaid.exe", (), "C:\\m.db"), shell_quote("win32"), "claude-code"
    )
    assert windows["Stop"] == '"C:\\Program Files\\quaid.exe" hook stop --client claude-code --db C:\\m.db'
    assert config_files.add_hooks("", windows)


@pytest.mark.parametrize("text", ["", "# Mine\n", "# Mine", "# Mine\r\n\r\nText\r\n", "# Mine\n\n"])
def test_instructions_come_and_go(text: str) -> None:
    new = config_files.add_instructions(text, "Look first.\nThen ask.\n")
    assert new.startswith(text)
    assert config_files.INSTRUCTIONS_BEGIN in new
    assert config_files.add_instructions(new, "Look first.\nThen ask.\n") == new
    assert config_files.remove_instructions(new).rstrip() == text.rstrip()
    assert "Only this" in config_files.add_instructions(new, "Only this.")
    assert "Then ask" not in config_files.add_instructions(new, "Only this.")


def test_text_after_the_instructions_is_kept() -> None:
    new = config_files.add_instructions("# Mine\n", "Look.") + "\n# More\n"
    assert config_files.remove_instructions(new) == "# Mine\n\n# More\n"


def test_a_lonely_mark_is_refused() -> None:
    for text in (
        config_files.INSTRUCTIONS_BEGIN,
        config_files.INSTRUCTIONS_END,
        f"{config_files.INSTRUCTIONS_END}\n{config_files.INSTRUCTIONS_BEGIN}",
        config_files.INSTRUCTIONS_BEGIN * 2 + config_files.INSTRUCTIONS_END,
    ):
        with pytest.raises(UnreadableConfig):
            config_files.add_instructions(text, "x")
        with pytest.raises(UnreadableConfig):
            config_files.remove_instructions(text)
