"""Tables of TOML texts changed in place."""

import pytest

from quaid.formats import config_text

PATH = ("mcp_servers", "quaid")
ENTRY: dict[str, str | list[str]] = {"command": "/bin/quaid", "args": ["serve", "--db", 'C:\\a "b"']}
CODEX = """\
# my settings
model = "o5"   # the best

[mcp_servers.other]
command = "x"
args = [
  "one", # first
]

# below
[tui]
theme = "dark"
"""


@pytest.mark.parametrize("text", ["", CODEX, "a = 1", "a = 1\r\n", "[mcp_servers]\n", "# nothing\n\n"])
def test_a_table_comes_and_goes(text: str) -> None:
    new = config_text.put_toml(text, PATH, ENTRY)
    assert config_text.parse_toml(new)["mcp_servers"]["quaid"] == ENTRY
    assert new.startswith(text)
    assert config_text.put_toml(new, PATH, ENTRY) == new
    assert config_text.remove_toml(new, PATH).rstrip() == text.rstrip()


def test_a_table_in_the_middle_goes_with_what_is_below_it() -> None:
    text = CODEX.replace(
        "[tui]",
        '[mcp_servers."quaid"]\ncommand = "q"\n\n[mcp_servers.quaid.env]\nA = "1"\n\n# of the screen\n[tui]',
    )
    back = config_text.remove_toml(text, PATH)
    assert back == CODEX.replace("[tui]", "\n# of the screen\n[tui]")


def test_a_changed_entry_keeps_its_other_keys_and_remarks() -> None:
    text = "[mcp_servers.quaid]\n# slow disk\nstartup_timeout_sec = 30\n"
    text += 'args = [\n  "serve",\n]\ncommand = "old"\n\n[z]\n'
    new = config_text.put_toml(text, PATH, ENTRY)
    assert "# slow disk\nstartup_timeout_sec = 30\n" in new
    assert config_text.parse_toml(new)["mcp_servers"]["quaid"] == {**ENTRY, "startup_timeout_sec": 30}
    assert new.endswith("\n\n[z]\n")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { quaid = { command = "q" } }\n',
        'mcp_servers.quaid.command = "q"\n',
        '[mcp_servers]\nquaid = { command = "q" }\n',
        "a = \n",
    ],
)
def test_toml_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(config_text.NotToml):
        config_text.put_toml(text, PATH, ENTRY)
    with pytest.raises(config_text.NotToml):
        config_text.remove_toml(text, PATH)


def test_a_header_inside_a_text_is_not_one() -> None:
    text = 'a = """\n[mcp_servers.quaid]\n"""\n'
    new = config_text.put_toml(text, PATH, ENTRY)
    with pytest.raises(config_text.NotToml):
        config_text.remove_toml(new, PATH)


def test_a_number_in_the_place_of_the_tables_is_refused() -> None:
    with pytest.raises(config_text.NotToml):
        config_text.put_toml("mcp_servers = 1\n", PATH, ENTRY)
