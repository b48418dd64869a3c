"""Completions and the manual page: made from the register, and tried in the shells themselves."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quaid
from quaid.ops import index
from quaid.surfaces.cli import completing, main, man
from quaid.surfaces.cli.local import COMMANDS

ROOT = Path(__file__).parent.parent.parent
MANY = ("people/alice", "people/alan", "projects/pier-ten")


class Shell:
    """A home with a memory, a `quaid` on the path and the three scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "bin" / "quaid"
        program.parent.mkdir()
        program.write_text(
            f"#!{sys.executable}\nimport sys\nfrom quaid.surfaces.cli import main\nsys.exit(main())\n"
        )
        program.chmod(0o755)
        shutil.copy(program, program.parent / "ai-kb")
        self.environ = {
            "HOME": str(folder),
            "PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": os.path.dirname(os.path.dirname(quaid.__file__)),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }
        self.run("quaid init")
        for slug in MANY:
            self.run(f"echo '# One' | quaid put {slug}")
        (folder / "notes").mkdir()
        (folder / "notes" / "one.md").write_text("# One\n")
        self.run("quaid collection add notes notes --read-only")
        for shell in completing.SHELLS:
            (folder / f"complete.{shell}").write_text(completing.script(shell), encoding="utf-8")

    def run(self, command: str, shell: str = "sh") -> str:
        done = subprocess.run(
            [shell, "-c", command],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def bash(self, line: str) -> list[str]:
        """What bash offers at the end of a line; readline takes words apart at = and : as it does here."""
        words = re.findall(r"[=:]+|[^\s=:]+", line) + ([""] if line.endswith(" ") else [])
        quoted = " ".join(f"'{word}'" for word in words)
        told = self.run(
            f"source complete.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _quaid {words[0]};"
            " printf '%s\\n' \"${COMPREPLY[@]}\"",
            "bash",
        )
        return told.split()

    def fish(self, line: str) -> list[str]:
        told = self.run(f"source complete.fish; complete -C '{line}'", "fish")
        return [each.partition("\t")[0] for each in told.splitlines()]

    def zsh(self, line: str) -> str:
        """What an interactive zsh shows after a line and Tab, in a terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**self.environ, "COLUMNS": "200"})
        try:
            setup = "PS1=; autoload -U compinit; compinit -u -D; source complete.zsh; print READY\n"
            os.write(terminal, setup.encode())
            self._until(terminal, "\nREADY")
            os.write(terminal, f"{line}\t".encode())
            shown = self._until(terminal, None)
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)
        return shown

    @staticmethod
    def _until(terminal: int, mark: str | None) -> str:
        """Everything until a mark, or until nothing comes for two seconds."""
        text = b""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            ready, _, _ = select.select([terminal], [], [], 10 if mark or not text else 2)
            if not ready:
                break
            try:
                text += os.read(terminal, 4096)
            except OSError:
                break
            if mark and mark in text.decode("utf-8", "replace").replace("\r", ""):
                break
        return text.decode("utf-8", "replace")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("shell"))


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed here")


CASES = [
    ("quaid coll", ["collection"]),
    ("quaid collection i", ["ignore", "info"]),
    ("quaid collection ignore a", ["add"]),
    ("quaid list --so", ["--sort"]),
    ("quaid list --sort c", ["created"]),
    ("quaid list --sort=c", ["created"]),
    ("quaid get people/al", ["people/alan", "people/alice"]),
    ("quaid --json get pr", ["projects/pier-ten"]),
    ("quaid link people/alice pr", ["projects/pier-ten"]),
    ("quaid list --collection no", ["notes"]),
    ("quaid collection info n", ["notes"]),
    ("quaid skills show cur", ["curate"]),
    ("quaid call memory_timeline_", ["memory_timeline_add"]),
    ("quaid --db no", ["notes"]),
    ("ai-kb back", ["backlinks"]),
    ("quaid get people/alice pe", []),
]


@needs("bash")
@pytest.mark.parametrize(("line", "offered"), CASES, ids=[line for line, _ in CASES])
def test_bash_offers_what_fits(shell: Shell, line: str, offered: list[str]) -> None:
    assert sorted(shell.bash(line)) == offered


@needs("bash")
def test_bash_puts_in_only_what_follows_the_last_colon(shell: Shell) -> None:
    assert shell.bash("quaid get notes::o") == ["one"]


@needs("fish")
@pytest.mark.parametrize(("line", "offered"), CASES, ids=[line for line, _ in CASES])
def test_fish_offers_what_fits(shell: Shell, line: str, offered: list[str]) -> None:
    before = line.rpartition(" ")[2].partition("=")[0] + "=" if "=" in line else ""
    found = [each.removeprefix(before).rstrip("/") for each in shell.fish(line)]
    assert sorted(found) == offered


@needs("zsh")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("quaid coll", "collection"),
        ("quaid list --so", "--sort"),
        ("quaid list --sort c", "created"),
        ("quaid get pro", "projects/pier-ten"),
        ("quaid get people/al", "people/alice"),
        ("quaid collection info n", "notes"),
        ("ai-kb back", "backlinks"),
    ],
)
def test_zsh_offers_what_fits(shell: Shell, line: str, shown: str) -> None:
    assert shown in shell.zsh(line)


def test_every_command_is_in_the_table() -> None:
    table = completing.table()
    for name in [*COMMANDS, *index.COMMANDS]:
        above, _, word = name.rpartition(" ")
        assert word in [entry.word for entry in table[above]], name
    assert not any(
        "\t" in part or "\n" in part for each in table.values() for entry in each for part in entry
    )


def test_a_tab_without_a_memory_finds_nothing_and_complains_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUAID_DB", str(tmp_path / "none.db"))
    assert main(["completion", "slugs", "people/"]) == 0
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_shell_is_refused_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err


def test_the_manual_page_names_every_command_and_option() -> None:
    page = man.page()
    for name in [*COMMANDS, *index.COMMANDS]:
        if not name.startswith("-"):
            assert f"\n.SS quaid {name}\n".replace("-", r"\-") in page, name
    assert r"\fB\-\-timeline\-append\fR \fITEXT\fR" in page


def test_help_prints_the_manual_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--man"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "quaid.1").read_text(encoding="utf-8")


@needs("mandoc")
def test_mandoc_finds_nothing_wrong_with_the_manual_page() -> None:
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "style", ROOT / "docs" / "quaid.1"], capture_output=True, text=True
    )
    assert done.stdout == ""


@needs("groff")
def test_groff_sets_the_manual_page_without_a_warning() -> None:
    page = ROOT / "docs" / "quaid.1"
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True)
    assert done.stderr == ""
    assert "the memory that you and your AI agents share" in done.stdout
