"""Words that must not leak, a household to try it in, and where a leak would be found.

Everything below a person's home is looked into, whatever its name, but what is the person's own: their pages, their
memory, their conversations, their git, and the one file that keeps the token.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

from tests.faults.full_memory import KB, environment
from tests.faults.workspace import FOLDER, PROJECT

from quaid.kb import layout

PAGE, ASKED, PASSWORD = "pagecanary81", "askedcanary82", "passwordcanary83"
REMOTE = f"https://ann:{PASSWORD}@127.0.0.1:1/kb.git"

QUAID = ("-m", "quaid")
INBOX, COPIES, TEMPORARY = "inbox", "copies", "tmp"
OWN = {FOLDER, "notebook", "chats", INBOX, COPIES, "transcript.jsonl"}
"""A person's own, in their home."""
MEMORY = {"memory.db", "memory.db-wal"}
TOKEN = "owner-token"
WHILE_OPEN = {"memory.db", "memory.db-wal", "memory.db-shm", "memory.db-lock"}


def around(home: Path) -> dict[str, str]:
    """What a process of this household finds around itself; what it keeps for a moment is in the household, too."""
    return {**environment(home), "PYTHONPATH": str(PROJECT / "src"), "TMPDIR": str(home / TEMPORARY)}


def called(
    home: Path, *words: str, program: tuple[str, ...] = QUAID, said: str = "", db: str = "memory.db"
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", *program, "--db", str(home / db), *words],
        env=around(home),
        capture_output=True,
        text=True,
        input=said,
        timeout=120,
    )


def kept_by_us(home: Path) -> list[Path]:
    """The files that a log, a note or something half done might be in."""
    return [
        path for path in sorted(home.rglob("*")) if path.is_file() and not _is_own(path.relative_to(home))
    ]


def _is_own(path: Path) -> bool:
    """A repository is its owner's, but for git's logs and for what we remember of it in there."""
    if path.parts[0] == KB:
        return ".git" not in path.parts or not {"logs", layout.OWN_FOLDER} & {*path.parts}
    return path.parts[0] in OWN or str(path) in MEMORY or path.name == TOKEN


def leaks(home: Path, *words: str) -> list[tuple[Path, str]]:
    """Which files hold one of these words."""
    results = []
    for path in kept_by_us(home):
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # it was there for a moment, beside a server at work
            continue
        results += [(path, word) for word in words if word.encode() in data]
    return results


def open_to_others(home: Path) -> list[str]:
    """What somebody else of this machine could read: of the memory, what lies beside it, and what we keep."""
    results = []
    ours = home / ".quaid"
    for path in [*home.glob("memory.db*"), *(home / COPIES).iterdir(), ours, *ours.rglob("*")]:
        try:
            mode = stat.S_IMODE(os.lstat(path).st_mode)
        except FileNotFoundError:
            continue
        if not path.is_symlink() and mode & 0o077:
            results.append(f"{path} {mode:o}")
    return results


def seen(home: Path, token: str) -> list[str]:
    """What there is to see for others. Asked while somebody has the memory open: it is then that there is most."""
    missing = WHILE_OPEN - {path.name for path in home.glob("memory.db*")}
    messages = [f"{path} holds {word}" for path, word in leaks(home, PAGE, ASKED, PASSWORD, token)]
    return [*(f"{name} is not there" for name in sorted(missing)), *open_to_others(home), *messages]
