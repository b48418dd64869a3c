"""What is not an operation, and the help that walks the register."""

import pytest

from quaid.ops import gate, index
from quaid.surfaces.cli import main, manual
from quaid.surfaces.cli.local import COMMANDS


def test_the_commands_that_are_no_operations_are_these() -> None:
    assert list(COMMANDS) == [
        *("init", "serve", "web", "watch", "hook", "call", "pipe"),
        *("completion", "demo", "version", "--tools-json"),
    ]


def test_the_overview_names_every_command() -> None:
    shown = manual.overview()
    for name in [*COMMANDS, *index.COMMANDS]:
        family, _, member = name.partition(" ")
        assert f"\n  {family} " in shown
        assert member.partition(" ")[0] in shown.partition(f"\n  {family} ")[2].partition("\n\n")[0]
    assert max(map(len, shown.splitlines())) <= manual.WIDTH


@pytest.mark.parametrize("name", manual.page_names())
def test_every_command_has_a_page(name: str) -> None:
    shown = manual.page(name)
    assert shown.startswith(f"Usage: quaid {name}")
    assert (
        max(len(line) for line in shown.splitlines() if not line.startswith(("  quaid", "  ai-kb")))
        <= manual.WIDTH
    )


@pytest.mark.parametrize(
    "name", [each for each in index.COMMANDS if any(one.startswith(each + " ") for one in index.COMMANDS)]
)
def test_help_of_a_group_begins_with_its_own_command(name: str) -> None:
    own, _, members = manual.page(name).partition("\nCommands\n")
    operation = gate.command(name)
    assert operation.summary.rstrip(".") in " ".join(own.split())
    for param in operation.params:
        assert (manual.slot if param.arg.positional else manual.flag)(param) in own
    listed = [each for each in index.COMMANDS if each.startswith(name + " ")]
    assert [each for each in listed if f"  {each} " in members] == listed


def test_help_of_an_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "serach"]) == 2
    assert "Did you mean 'search'" in capsys.readouterr().err


def test_a_newcomer_finds_the_first_steps_first() -> None:
    first = manual.overview().partition("Start here\n")[2].split("\n\n")[0]
    assert [line.split()[0] for line in first.splitlines()][:5] == [
        "init",
        "import",
        "connect",
        "doctor",
        "demo",
    ]
