"""Stores for tests: real repositories, a bare remote on the disk, and a home without git settings."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from quaid.kb.git import Git


def environ_of(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which git has no user configured."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


def plain(folder: Path | str, *arguments: str, environ: dict[str, str], status: int | None = 0) -> str:
    """Git as a person calls it."""
    whole = environ | {
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Ann"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ann@example.org"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=whole, capture_output=True, timeout=60, stdin=subprocess.DEVNULL
    )
    if status is not None:
        assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode()


def wait_for_orphans(folder: Path) -> None:
    """Wait until no git process works below a folder: one whose parent was killed may still run.

    A process that was just forked has not yet changed to the folder, so two checks in a row must find none.
    """
    deadline, quiet = time.monotonic() + 60, 0
    while quiet < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        quiet = 0 if _at_work(os.path.realpath(folder)) else quiet + 1


def wait_for_git(folder: Path) -> None:
    """Wait until a git process works below a folder."""
    deadline = time.monotonic() + 60
    while not _at_work(os.path.realpath(folder)):
        assert time.monotonic() < deadline


def _at_work(folder: str) -> list[str]:
    results = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # gone by now, or of somebody else
            place = os.readlink(f"/proc/{number}/cwd")
            if place.startswith(folder + os.sep) and int(number) != os.getpid():
                results.append(number)
    return results


def bare(tmp_path: Path, environ: dict[str, str]) -> str:
    remote = tmp_path / "remote.git"
    plain(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote), environ=environ)
    return str(remote)


def store(tmp_path: Path, name: str = "store", environ: dict[str, str] | None = None) -> Git:
    """A store with one committed node."""
    git = Git(str(tmp_path / name), environ or environ_of(tmp_path))
    git.init()
    add(git, "first.org", "first\n")
    return git


def add(git: Git, path: str, text: str) -> str:
    """Write and commit a node."""
    write(git, path, text)
    return git.commit([path], f"add {path}")


def log(git: Git, form: str = "%H") -> list[str]:
    """Return one line for each commit, newest first."""
    environ = {"PATH": os.environ["PATH"], "HOME": os.devnull}
    return plain(git.root, "log", f"--format={form}", environ=environ).splitlines()


def has_all_objects(git: Git) -> bool:
    environ = {"PATH": os.environ["PATH"], "HOME": os.devnull}
    return plain(git.root, "fsck", "--full", "--strict", "--no-dangling", environ=environ) == ""


def write(git: Git, path: str, text: str) -> None:
    whole = Path(git.root, path)
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.write_text(text)
