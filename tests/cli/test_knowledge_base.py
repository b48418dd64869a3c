"""`ai-kb` is `quaid kb`, and calls itself by the name under which it was called."""

import os
import subprocess
from pathlib import Path

import pytest
from tests import commands

from quaid.cli import parser
from quaid.cli.main import format_record, main
from quaid.operations.kb import KbPushRecord, KbShowRecord, NodeRecord


def ai_kb(*words: str) -> "subprocess.CompletedProcess[str]":
    script = "import sys; from quaid.__main__ import ai_kb_main; sys.exit(ai_kb_main())"
    return subprocess.run([commands.script(script), *words], capture_output=True, text=True)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
def test_help_starts_with_the_name_ai_kb(words: tuple[str, ...]) -> None:
    shown = ai_kb(*words).stdout
    assert shown.startswith("ai-kb: ")
    assert "Usage: ai-kb COMMAND" in shown
    assert "\n  remember " in shown
    assert "\n  kb " not in shown


@pytest.mark.parametrize("words", [("remember", "--help"), ("--help", "remember"), ("help", "remember")])
def test_help_of_a_command_uses_the_name_ai_kb(words: tuple[str, ...]) -> None:
    assert ai_kb(*words).stdout.startswith("Usage: ai-kb remember ")
    assert parser.help_page("kb remember").startswith("Usage: quaid kb remember ")


def test_a_wrong_option_suggests_the_help_of_ai_kb() -> None:
    done = ai_kb("remember", "--titl", "x")
    assert done.returncode == 2
    assert "did you mean '--title'?" in done.stderr
    assert "`ai-kb remember --help` shows the usage" in done.stderr


def test_its_manual_page_names_every_command() -> None:
    page = parser.generated_file("ai-kb.1")
    assert ai_kb("help", "--man").stdout == page
    for name, _ in parser.kb_commands():
        assert f"\n.SS ai-kb {name}\n".replace("-", r"\-") in page, name
    assert "quaid kb " not in page.partition(".SH COMMANDS")[2]


@pytest.mark.parametrize(
    ("family", "member"), [("kb", "kb remember"), ("collection ignore", "collection ignore add")]
)
def test_a_command_group_alone_lists_its_commands(
    family: str, member: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUAID_HANDOVER", "off")
    assert main(family.split()) == 0
    captured = capsys.readouterr()
    assert (f"  {member} " in captured.out, captured.err) == (True, "")
    assert main([*family.split(), "nonsense"]) == 2
    assert "Unknown command" in capsys.readouterr().err


def test_a_misspelled_command_is_reported_without_the_prefix_kb() -> None:
    message = (
        "ai-kb: Unknown command: 'rember'. Did you mean 'remember'? `ai-kb --help` lists all commands.\n"
    )
    assert ai_kb("rember", "x").stderr == message


def test_messages_name_the_program_as_typed(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "QUAID_HANDOVER": "off"}
    for variable in ("AI_KB_DIR", "XDG_DATA_HOME"):
        environ.pop(variable, None)
    expected = {
        "quaid": "`quaid kb init` creates one; `quaid kb clone URL`",
        "ai-kb": "`ai-kb init` creates one;",
    }
    for function, program, words in (
        ("main", "quaid", ["kb", "status"]),
        ("ai_kb_main", "ai-kb", ["status"]),
    ):
        script = f"import sys; from quaid.__main__ import {function} as run; sys.exit(run())"
        done = subprocess.run(
            [commands.script(script), *words], capture_output=True, text=True, env=environ, cwd=tmp_path
        )
        assert done.stderr.startswith(f"{program}: There is no knowledge base at ")
        assert expected[program] in done.stderr


def test_text_of_a_node_is_not_reworded() -> None:
    node = NodeRecord("Title", "1", "", "", (), "", "", "title.org")
    shown = KbShowRecord(node, "Run `ai-kb index` and `quaid kb push`.", (), ())
    for program in ("quaid", "ai-kb"):
        assert "Run `ai-kb index` and `quaid kb push`." in format_record(shown, False, False, program)
    pushed = KbPushRecord("rejected", "it moved on", 0)
    assert "`quaid kb doctor` says" in format_record(pushed, False, False, "quaid")
    assert "`ai-kb doctor` says" in format_record(pushed, False, False, "ai-kb")
