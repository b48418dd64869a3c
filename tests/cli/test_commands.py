"""What is not an operation, and the help that walks the register."""

import json
from pathlib import Path

import apsw
import pytest

from quaid.cli import parser
from quaid.cli.commands import COMMANDS
from quaid.cli.main import main
from quaid.operations import dispatch, index
from quaid.storage import SCHEMA_VERSION


def test_commands_that_are_not_operations() -> None:
    assert list(COMMANDS) == [
        *("init", "edit", "serve", "web", "open", "hub", "watch", "hook", "call", "pipe"),
        *("completion", "demo", "version", "--tools-json"),
    ]


def test_the_overview_names_every_command() -> None:
    shown = parser.help_overview()
    for name in [*COMMANDS, *index.COMMANDS]:
        family, _, member = name.partition(" ")
        assert f"\n  {family} " in shown
        assert member.partition(" ")[0] in shown.partition(f"\n  {family} ")[2].partition("\n\n")[0]
    assert max(map(len, shown.splitlines())) <= parser.HELP_WIDTH


def test_every_command_has_a_page() -> None:
    for name in (*COMMANDS, *index.COMMANDS):
        shown = parser.help_page(name)
        assert shown.startswith(f"Usage: quaid {name}")
        lines = [line for line in shown.splitlines() if not line.startswith(("  quaid", "  ai-kb"))]
        assert max(map(len, lines)) <= parser.HELP_WIDTH, name


@pytest.mark.parametrize(
    "name",
    [command for command in index.COMMANDS if any(one.startswith(command + " ") for one in index.COMMANDS)],
)
def test_help_of_a_group_begins_with_its_own_command(name: str) -> None:
    own, _, members = parser.help_page(name).partition("\nCommands\n")
    operation = dispatch.find_command(name)
    assert operation.summary.rstrip(".") in " ".join(own.split())
    for param in operation.params:
        assert (parser.placeholder if param.arg.positional else parser.option_usage)(param) in own
    listed = [command for command in index.COMMANDS if command.startswith(name + " ")]
    assert [item for item in listed if f"  {item} " in members] == listed


def test_help_of_an_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "serach"]) == 2
    assert "Did you mean 'search'" in capsys.readouterr().err


def test_a_newcomer_finds_the_first_steps_first() -> None:
    first = parser.help_overview().partition("Start here\n")[2].split("\n\n")[0]
    assert [line.split()[0] for line in first.splitlines() if line[2] != " "][:5] == [
        "init",
        "import",
        "connect",
        "doctor",
        "demo",
    ]


def memory_of(path: Path, schema: int) -> None:
    """A memory of an older or a newer schema; of the oldest, one with pages."""
    connection = apsw.Connection(str(path))
    if schema == 5:
        script = Path(__file__).parents[1] / "storage" / "fixtures" / "v5.sql"
        connection.execute(script.read_text(encoding="utf-8"))
    else:
        connection.execute(
            f"PRAGMA application_id = 0x51414944; PRAGMA user_version = {schema}; CREATE TABLE t(a)"
        )
    connection.close()


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (5, f"schema 5, {SCHEMA_VERSION} after the next command that opens it"),
        (SCHEMA_VERSION, f"schema {SCHEMA_VERSION}"),
        (3, "schema 3: older than 5, the oldest that can be upgraded"),
        (
            7,
            "schema 7: an unreleased Quaid made it; `quaid export` of that one writes its pages,"
            " and `quaid import` reads them",
        ),
        (99, "schema 99: a newer Quaid made it"),
    ],
)
def test_version_shows_the_schema_of_the_memory_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: int, told: str
) -> None:
    path = tmp_path / "memory.db"
    memory_of(path, schema)
    before = path.read_bytes()
    assert main(["--db", str(path), "version"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"memory: {path} ({told})"
    assert main(["--db", str(path), "--json", "version"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["schema"], facts["memory_schema"]) == (SCHEMA_VERSION, schema)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


def test_version_reports_a_file_that_is_not_a_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.db").write_text("just notes")
    assert main(["--db", str(tmp_path / "notes.db"), "version"]) == 0
    assert "notes.db (cannot be used: it is not a SQLite file)" in capsys.readouterr().out
