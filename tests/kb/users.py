"""Users with separate homes and knowledge bases, who call ai-kb as the command line does."""

import functools
import itertools
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests import commands
from tests.kb.stores import has_all_objects, plain

from quaid.app import Brain
from quaid.config import Settings
from quaid.kb.git import Git
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value as as_plain

ROOT = Path(__file__).resolve().parents[2]
NOON = 1_777_118_400.0
"""2026-04-25T12:00:00Z"""

_moments = itertools.count()


@functools.cache
def programs_without_emacs() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder with links to all programs in PATH except Emacs; it is deleted when Python exits."""
    folder = tempfile.TemporaryDirectory(prefix="quaid-programs-")
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if not name.startswith("emacs"):
                link = os.path.join(folder.name, name)
                if os.path.lexists(link):
                    os.unlink(link)
                os.symlink(os.path.join(place, name), link)
    return folder


class Person:
    """A user with a home and a knowledge base, on a machine without Emacs.

    `doctor` lets an installed Emacs build an index, which takes a second of CPU for each call."""

    def __init__(self, folder: Path, name: str = "ann") -> None:
        self.home = folder / f"home-{name}"
        self.home.mkdir()
        self.root = folder / name
        path = programs_without_emacs().name
        self.environ = {"PATH": path, "HOME": str(self.home), "AI_KB_DIR": str(self.root)}

    def __call__(self, command: str, **arguments: Any) -> Any:
        """One command, its record as plain values."""
        settings = Settings(
            db_path=str(self.home / "memory.db"),
            home=str(self.home),
            cwd=str(self.home),
            environ=self.environ,
        )
        with Brain(settings, clock=lambda: NOON + next(_moments), offset=lambda _: 0) as brain:
            return as_plain(dispatch.call(brain, dispatch.find_command(f"kb {command}"), arguments, "owner"))

    def later(self, minutes: int) -> None:
        """Let time pass."""
        for _ in range(minutes * 60):
            next(_moments)

    def remember(self, title: str, text: str = "", **arguments: Any) -> Any:
        fields = {
            "text": text or f"About {title}.",
            "summary": f"What is known of {title.lower()}",
            **arguments,
        }
        return self("remember", title=title, **fields)

    def start(self, *words: str, cold: bool = False) -> "subprocess.Popen[str]":
        """Run the same as a process; `cold` if the test will kill it."""
        code = "import sys; from quaid.__main__ import ai_kb_main; sys.exit(ai_kb_main())"
        return subprocess.Popen(
            [commands.script(code), *words],
            env=self.environ | (commands.ON_ITS_OWN if cold else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def put(self, path: str, text: str) -> None:
        """A file, as an editor saves it."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    @property
    def git(self) -> Git:
        return Git(str(self.root), self.environ)

    def by_git(self, *arguments: str) -> str:
        """Run plain git in the store and return its output."""
        return plain(self.root, *arguments, environ=self.environ)

    @property
    def titles(self) -> set[str]:
        """Titles of the nodes that the last commit holds."""
        git = self.by_git(
            "grep", "-h", "-i", "^#+title:", "HEAD", "--", "*.org", ":!raw", ":!index*", ":!AGENT*"
        )
        return {line.partition(":")[2].strip() for line in git.splitlines()}

    def everything(self) -> dict[str, bytes]:
        """Return all files of the tree, and the content of git's index."""
        files = {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }
        staged = self.by_git("ls-files", "--stage").encode()
        return files | {".staged": staged, ".head": self.by_git("rev-parse", "HEAD").encode()}

    def is_sound(self) -> bool:
        """Whether lint finds nothing, the tree is that of the last commit, and git's objects are whole."""
        return (
            self("lint")["findings"] == []
            and self.by_git("status", "--porcelain") == ""
            and has_all_objects(self.git)
        )
