"""`ai-kb` is `quaid kb`, and calls itself by the name under which it was called."""

import subprocess
import sys

import pytest

from quaid.cli import parser
from quaid.cli.main import main


def ai_kb(*words: str) -> "subprocess.CompletedProcess[str]":
    script = "import sys; from quaid.cli.main import ai_kb_main; sys.exit(ai_kb_main())"
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
def test_its_help_is_headed_by_its_own_name(words: tuple[str, ...]) -> None:
    shown = ai_kb(*words).stdout
    assert shown.startswith("ai-kb: ")
    assert "Usage: ai-kb COMMAND" in shown
    assert "\n  remember " in shown
    assert "\n  kb " not in shown


@pytest.mark.parametrize("words", [("remember", "--help"), ("--help", "remember"), ("help", "remember")])
def test_the_page_of_a_command_shows_how_it_was_called(words: tuple[str, ...]) -> None:
    assert ai_kb(*words).stdout.startswith("Usage: ai-kb remember ")
    assert parser.help_page("kb remember").startswith("Usage: quaid kb remember ")


def test_a_wrong_option_leads_to_its_own_help() -> None:
    done = ai_kb("remember", "--titl", "x")
    assert done.returncode == 2
    assert "did you mean '--title'?" in done.stderr
    assert "`ai-kb remember --help` shows how" in done.stderr


def test_its_manual_page_names_every_command() -> None:
    page = parser.generated_file("ai-kb.1")
    assert ai_kb("help", "--man").stdout == page
    for name, _ in parser.kb_commands():
        assert f"\n.SS ai-kb {name}\n".replace("-", r"\-") in page, name
    assert "quaid kb " not in page.partition(".SH COMMANDS")[2]


@pytest.mark.parametrize(
    ("family", "member"), [("kb", "kb remember"), ("collection ignore", "collection ignore add")]
)
def test_the_first_words_of_a_family_alone_list_its_commands(
    family: str, member: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUAID_HANDOVER", "off")
    assert main(family.split()) == 0
    said = capsys.readouterr()
    assert (f"  {member} " in said.out, said.err) == (True, "")
    assert main([*family.split(), "nonsense"]) == 2
    assert "There is no command" in capsys.readouterr().err


def test_a_slip_of_the_pen_is_told_without_the_word_that_nobody_typed() -> None:
    told = "ai-kb: There is no command 'rember'. Did you mean 'remember'? `ai-kb --help` lists them all.\n"
    assert ai_kb("rember", "x").stderr == told
