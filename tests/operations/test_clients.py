"""Connecting clients, with homes that are not ours."""

import json
import re
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from quaid.app import Brain
from quaid.clients import CLIENTS, launch_command
from quaid.config import Settings
from quaid.errors import ClientFile, InvalidArgument
from quaid.model import plain_text
from quaid.operations import clients, dispatch
from quaid.operations.instructions import instructions_for_file, static_text


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "person" / "work").mkdir(parents=True)
    return tmp_path / "person"


@pytest.fixture
def there(home: Path) -> Brain:
    settings = Settings(str(home / ".quaid" / "memory.db"), str(home / ".quaid"), str(home / "work"))
    return Brain(settings._replace(platform="linux"), clock=lambda: 1_777_118_400.0)


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def everything(folder: Path) -> dict[str, bytes]:
    """All files, except those of the memory, which connect creates."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".quaid" not in path.parts)
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_client_is_connected_once_and_taken_out_whole(
    there: Brain, home: Path, name: str, platform: str
) -> None:
    there.settings = there.settings._replace(platform=platform)
    first = call(there, "connect", client=name)
    assert "is not installed yet: there was no" in first.next_step
    assert {file.outcome for file in first.files} == {"made"}
    written = everything(home)
    assert {file.path for file in first.files} == set(written)
    second = call(there, "connect", client=name)
    assert {file.outcome for file in second.files} == {"as it should be"}
    assert everything(home) == written
    states = {client.client: client.state for client in call(there, "connect").clients}
    assert states.pop(name) == "connected"
    assert set(states.values()) <= {"not installed", "not connected"}
    call(there, "disconnect", client=name)
    left = {path: data for path, data in everything(home).items() if not path.endswith("backup")}
    assert {data.strip() for data in left.values()} <= {b"", b"{}"}


def test_the_rest_of_a_file_stays_byte_for_byte(there: Brain, home: Path) -> None:
    path = home / ".config" / "zed" / "settings.json"
    path.parent.mkdir(parents=True)
    text = '// mine\r\n{\r\n\t"theme": "One", // dark\r\n\t"context_servers": { "a": {} },\r\n}\r\n'
    path.write_bytes(text.encode())
    (record,) = call(there, "connect", client="zed").files
    assert record.outcome == "changed"
    assert Path(record.backup).read_bytes() == text.encode()
    assert b'"theme": "One", // dark\r\n' in path.read_bytes()
    call(there, "disconnect", client="zed")
    assert path.read_bytes() == text.encode()


def test_a_dry_run_shows_the_difference_and_writes_nothing(there: Brain, home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{\n  "mcpServers": {}\n}\n')
    before = everything(home)
    (record,) = call(there, "connect", client="cursor", dry_run=True).files
    assert '+    "quaid": {' in record.difference
    assert everything(home) == before


def test_one_broken_file_keeps_all_from_being_written(there: Brain, home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"hooks": ')
    before = everything(home)
    with pytest.raises(ClientFile, match="line 1"):
        call(there, "connect", client="claude-code")
    assert everything(home) == before
    states = {client.client: client for client in call(there, "connect").clients}
    assert states["claude-code"].state == "unreadable"


def test_a_project_has_its_own_files(there: Brain, home: Path) -> None:
    call(there, "connect", client="claude-code", project=True, instructions=True)
    assert sorted(str(Path(item).relative_to(home / "work")) for item in everything(home)) == [
        ".claude/settings.local.json",
        ".mcp.json",
        "CLAUDE.md",
    ]
    with pytest.raises(InvalidArgument, match="no project settings"):
        call(there, "connect", client="windsurf", project=True)


def test_instructions_go_into_the_file_of_a_client_on_request(there: Brain, home: Path) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini" / "GEMINI.md").write_text("# Mine\n")
    call(there, "connect", client="gemini-cli")
    assert (home / ".gemini" / "GEMINI.md").read_text() == "# Mine\n"
    call(there, "connect", client="gemini-cli", instructions=True)
    assert instructions_for_file().strip() in (home / ".gemini" / "GEMINI.md").read_text()
    call(there, "disconnect", client="gemini-cli")
    assert (home / ".gemini" / "GEMINI.md").read_text() == "# Mine\n"


def test_instructions_are_written_for_a_client_that_does_not_show_those_of_servers(
    there: Brain, home: Path
) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "AGENTS.md").write_text("# Mine\n")
    call(there, "connect", client="codex", dry_run=True)
    call(there, "connect", client="codex", project=True)
    assert (home / ".codex" / "AGENTS.md").read_text() == "# Mine\n"
    call(there, "connect", client="codex")
    assert instructions_for_file().strip() in (home / ".codex" / "AGENTS.md").read_text()
    call(there, "disconnect", client="codex")
    assert (home / ".codex" / "AGENTS.md").read_text() == "# Mine\n"
    with pytest.raises(InvalidArgument, match="add --project"):
        call(there, "connect", client="vscode", instructions=True)
    with pytest.raises(InvalidArgument, match="paste"):
        call(there, "connect", client="claude-desktop", instructions=True)


def test_another_memory_is_reported_and_replaced(there: Brain, home: Path) -> None:
    call(there, "connect", client="cursor")
    there.settings = there.settings._replace(db_path=str(home / "other.db"))
    state = next(client for client in call(there, "connect").clients if client.client == "cursor")
    assert (state.state, state.detail) == ("another memory", str(home / ".quaid" / "memory.db"))
    call(there, "connect", client="cursor")
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["quaid"]
    assert entry["args"][-3:] == ["serve", "--db", str(home / "other.db")]


def test_quaid_is_started_by_the_program_that_was_called(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = home / "bin" / "quaid"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert launch_command("memory.db", {})[:2] == (sys.executable, ("-m", "quaid"))
    assert launch_command("memory.db", {"PATH": str(program.parent)}).command == str(program)
    monkeypatch.setattr(sys, "argv", [str(program), "connect"])
    assert launch_command("memory.db", {})[:2] == (str(program), ())


def test_the_names_are_those_of_the_clients() -> None:
    assert list(get_args(clients.ClientName)) == list(CLIENTS)


def test_the_instructions_name_the_listed_tools_in_400_tokens(there: Brain) -> None:
    for number in range(12):
        page = {"slug": f"area-{number}/page-{number}", "content": "# Page"}
        dispatch.call(there, dispatch.find_tool("memory_put"), page, "write")
    text = call(there, "instructions").value
    named = set(re.findall(r"\bmemory_\w+|\bremember\b", text))
    assert named >= {"memory_query", "remember", "memory_put", "memory_ingest", "memory_correct"}
    assert all(dispatch.find_tool(name).core for name in named)
    assert "12 pages; wings area-" in text
    assert "collections default" in text
    assert "type: commitment, status: open" in text, "memory_correct closes only what is open"
    assert plain_text.count_tokens(text) <= 400
    assert static_text() in text


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {}}',
        '{\n  "mcpServers": {},\n  "theme": "dark"\n}\n',
        '{"theme": "dark"}',
        '{"mcpServers": {"a": {"command": "b"}}}',
        "{}",
    ],
)
def test_a_client_that_is_disconnected_has_its_file_as_before(there: Brain, home: Path, text: str) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text(text)
    for _ in range(3):  # several changes within one second: the backups are told apart
        call(there, "connect", client="cursor")
        assert path.read_text() != text
        call(there, "disconnect", client="cursor")
        assert path.read_text() == text


@pytest.mark.parametrize(
    "text", ['{"hooks": {}, "model": "x"}', '{"hooks": {"Stop": []}}', '{"model": "x"}', '{"hooks": {}}']
)
def test_empty_hooks_that_were_there_stay(there: Brain, home: Path, text: str) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(text)
    call(there, "connect", client="claude-code")
    call(there, "disconnect", client="claude-code")
    assert json.loads(path.read_text()) == json.loads(text)


def test_connect_creates_a_missing_memory(there: Brain, home: Path) -> None:
    (home / ".cursor").mkdir()
    call(there, "connect", client="cursor", dry_run=True)
    assert not (home / ".quaid/memory.db").exists()
    assert call(there, "connect", client="cursor").next_step == "Restart Cursor to use the memory"
    assert there.created == [f"the memory {home / '.quaid/memory.db'}"]
    assert (home / ".quaid/memory.db").exists()


def test_connect_does_not_create_a_memory_in_a_missing_folder(there: Brain, home: Path) -> None:
    (home / ".cursor").mkdir()
    there.settings = there.settings._replace(db_path=str(home / "typo/memory.db"))
    assert "quaid init" in call(there, "connect", client="cursor").next_step
    assert not (home / "typo").exists()


def test_a_memory_that_cannot_be_opened_is_connected_all_the_same(there: Brain, home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".quaid").mkdir()
    (home / ".quaid/memory.db").write_bytes(b"not a database at all" * 500)
    assert call(there, "connect", client="cursor").connected
