"""Shells with a memory to complete names out of: one that is asked, and one that somebody types into."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

from tests import commands

import quaid
from quaid.cli.commands import SHELLS
from quaid.cli.parser import generated_file

MANY_PAGES = 220  # more than are offered at once
MANY = ("people/alice", "people/alan", "projects/pier-ten")


class Shell:
    """A home with a memory, a `quaid` on the path and the three scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "bin" / "quaid"
        program.parent.mkdir()
        commands.install(program)
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
        self.run("quaid tag people/alan harbour; quaid tag people/alice harp")
        (folder / "notes").mkdir()
        (folder / "notes" / "one.md").write_text("# One\n")
        self.run("quaid collection add notes notes --read-only")
        self.run("quaid notebook init && quaid remember 'call Alice' --file 'lists/my calls.md'")
        self.run("quaid init other/work.db")
        for name in ("settings.yaml", "settings.txt", "my memory.db"):
            (folder / "other" / name).touch()
        (folder / "other" / "in").mkdir()
        nodes = folder / ".local" / "share" / "ai-kb" / "python"
        nodes.mkdir(parents=True)
        for name in ("formatter.org", "packaging.org", "left-behind.org~"):
            (nodes / name).touch()
        (folder / "many" / "yards" / "old").mkdir(parents=True)
        for number in range(MANY_PAGES):
            (folder / "many" / "yards" / f"y{number}.md").write_text("# One\n")
        self.run("quaid --db many.db init && quaid --db many.db import many")
        for shell in SHELLS:
            (folder / f"complete.{shell}").write_text(generated_file(f"quaid.{shell}"), encoding="utf-8")

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
        output = self.run(
            f"source complete.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _quaid {words[0]};"
            " printf '%s\\n' \"${COMPREPLY[@]}\"",
            "bash",
        )
        return output.splitlines() if output.strip() else []

    def fish(self, line: str) -> list[str]:
        output = self.run(f"source complete.fish; complete -C '{line}'", "fish")
        return [line.partition("\t")[0] for line in output.splitlines()]


class Terminal:
    """A shell that somebody types into; what it has to tell, it writes into the file `told`."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self.told = shell.folder / "told"
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.chdir(shell.folder)
            os.execvpe(words[0], list(words), {**shell.environ, "COLUMNS": "200"})

    def type(self, text: str) -> list[str]:
        """Type something, and wait for what it makes the shell tell."""
        self.told.unlink(missing_ok=True)
        os.write(self.handle, text.encode())
        shown, end = b"", time.monotonic() + 60
        while not self.told.exists():
            assert time.monotonic() < end, shown.decode("utf-8", "replace")
            if select.select([self.handle], [], [], 0.05)[0]:
                shown += os.read(self.handle, 4096)
        return self.told.read_text(encoding="utf-8").splitlines()

    def close(self) -> None:
        os.close(self.handle)
        os.waitpid(self.pid, 0)


class Zsh(Terminal):
    """Tab is played by a widget: it completes the line in the file `asked`, and tells the line and all matches."""

    SETUP = r"""
PS1=; fpath=($PWD/zfunc $fpath); autoload -U compinit; compinit -u -D
compadd() {
    local -a matches
    if (( ${argv[(I)-O]} + ${argv[(I)-A]} + ${argv[(I)-D]} )); then builtin compadd "$@"; return; fi
    builtin compadd -O matches "$@"
    offered+=("${matches[@]}")
    builtin compadd "$@"
}
tell() { print -rl -- "$@" > telling; mv telling told }
played() {
    offered=(); BUFFER=$(<asked); CURSOR=$#BUFFER
    zle complete-word
    tell "$BUFFER" "${(u)offered[@]}"
    BUFFER=
}
typeset -ga offered; zle -N played; bindkey '^T' played; tell ready
"""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell, "zsh", "-f", "-i")
        self.asked = shell.folder / "asked"
        (shell.folder / "zfunc").mkdir(exist_ok=True)
        shutil.copy(shell.folder / "complete.zsh", shell.folder / "zfunc" / "_quaid")
        (shell.folder / "setup.zsh").write_text(self.SETUP)
        assert self.type("source setup.zsh\n") == ["ready"]

    def line_and_offers(self, line: str) -> tuple[str, list[str]]:
        self.asked.write_text(line)
        after, *offered = self.type("\x14")
        return after, [item.replace("\\", "") for item in offered if item]
