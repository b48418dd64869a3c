"""A process that works on a store and is killed by a test: python -m tests.kb.worker WHAT ROOT HOME."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from quaid.kb import transaction
from quaid.kb.git import Git


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def hold(git: Git) -> None:
    with transaction.store_lock(git, "remember"):
        say("held")
        time.sleep(60)


def die_with_index_lock(git: Git) -> None:
    with transaction.store_lock(git, "remember"):
        Path(git.folder, "index.lock").touch()
        Path(git.folder, "refs", "heads", "main.lock").touch()
        die()


def die_changing(git: Git) -> None:
    with transaction.store_lock(git), git.changing(["first.org", "new.org"]):
        for path in ("first.org", "new.org"):
            Path(git.root, path).write_text("half")
        git.call("update-index", "--add", "new.org", "first.org")
        die()


def wait_for_git(git: Git) -> None:
    """A git process that ends when the pipe is written to."""
    with transaction.store_lock(git, "remember"):
        say("held")
        git.call("hash-object", "--", "pipe")


def remember(git: Git, times: int = 10_000) -> None:
    """Change and commit repeatedly; print each commit when it is acknowledged."""
    for number in range(times):
        with transaction.store_lock(git):
            paths = [f"node-{os.getpid()}-{number}.org", "index.org"]
            with git.changing(paths):
                for path in paths:
                    Path(git.root, path).write_text(f"{os.getpid()} {number}\n")
                new = git.commit(paths, f"node {number}")
        say(new)


def remember_twice(git: Git) -> None:
    remember(git, 2)


def push(git: Git) -> None:
    say(json.dumps(transaction.push_store(git, "2026-04-25T12:00:00Z")))


WORK: dict[str, Callable[[Git], None]] = {
    item.__name__: item
    for item in (hold, die_with_index_lock, die_changing, wait_for_git, remember, remember_twice, push)
}

if __name__ == "__main__":
    _, what, root, home = sys.argv
    WORK[what](Git(root, {"PATH": os.environ["PATH"], "HOME": home}))
