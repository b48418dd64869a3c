"""`quaid` without a command: the state of the memory and the commands that matter most."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from quaid.cli import parser
from quaid.cli.commands import COMMANDS
from quaid.cli.main import main
from quaid.operations import index


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUAID_HANDOVER", "off")
    monkeypatch.setenv("QUAID_BACKGROUND_EMBEDDING", "off")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_ten_commands_exist() -> None:
    names = [row.split()[0] for rows in parser.HOME_COMMANDS.values() for row in rows]
    assert len(names) == 10
    assert set(names) <= {*COMMANDS, *index.COMMANDS}
    assert max(map(len, parser.home_help().splitlines())) <= 80


def test_without_a_memory_it_says_how_to_make_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert f"There is no memory yet at {home / '.quaid' / 'memory.db'}." in shown
    assert "`quaid init`" in shown
    assert not (home / ".quaid").exists()


def test_it_counts_what_is_there(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "---\ntype: commitment\ndue: {}\nstatus: {}\n---\n# Draft\n\nSend it."
    for slug, due, status in (
        ("late", "2020-01-01", "open"),
        ("done", "2020-01-01", "Done"),
        ("far", "9000-01-01", "open"),
    ):
        file = home / f"{slug}.md"
        file.write_text(text.format(due, status))
        assert main(["put", f"commitments/{slug}", str(file)]) == 0
    assert main(["notebook", "init"]) == 0
    assert main(["remember", "I like tea"]) == 0
    (home / ".cursor").mkdir()
    assert main(["connect", "cursor"]) == 0
    capsys.readouterr()
    assert main(["--json"]) == 0
    state = json.loads(capsys.readouterr().out)
    assert (state["pages"], state["due"], state["clients"]) == (3, 1, ["Cursor"])
    assert state["notes"] > 0
    assert state["chunks"] >= 3
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "due      1 commitment or action item\n" in shown
    assert "clients  Cursor\n" in shown


def test_a_file_that_is_not_a_memory_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "memory.db").write_text("not a database " * 100)
    assert main([]) == 0
    assert "`quaid doctor` checks it." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_on_a_terminal(home: Path, variables: dict[str, str], coloured: bool) -> None:
    screen, end = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", **variables}
    subprocess.run([sys.executable, "-m", "quaid"], stdout=end, env=environ, check=True)
    os.close(end)
    with os.fdopen(screen, "rb") as file:
        assert (b"\033[" in file.read1(65_536)) == coloured


def test_no_colour_in_a_pipe(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "\033" not in capsys.readouterr().out
