"""Whoever writes into a knowledge base is killed, the disk is full, the remote is dead: no commit is lost, no lock
stays, git is whole.

Every other kill takes every git with it that the writer has started; the others leave git alone, which goes on until
it is done.
"""

import os
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.faults import operations
from tests.faults.filesystems import leave_room, make_room, tiny_disk
from tests.faults.killer import ForkServer
from tests.faults.ledger import Cases
from tests.faults.workspace import open_brain, percentile, run
from tests.kb.stores import plain

from quaid.errors import QuaidError

ROUNDS_PER_STORE = 50
AT_ONCE = 10.0
"""Seconds: far more than a busy machine takes, and less than anybody waits for a lock to grow old."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds the processes to kill in /proc"),
    pytest.mark.promise("git store"),
]


def make(home: Path, **more: Any) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "kb init", **more)
    return home


def remember(home: Path, title: str) -> Any:
    with open_brain(home) as brain:
        fields = {"text": f"All of {title}. " * 40, "title": title, "summary": f"What {title} is"}
        return run(brain, "kb remember", **fields, force=True)


def check(home: Path, seed: int, titles: set[str]) -> float:
    """All is well, and the next one gets to write at once; after how long."""
    begun = time.monotonic()
    after = remember(home, f"After {seed}")
    took = time.monotonic() - begun
    assert took < AT_ONCE
    assert titles <= operations.nodes(home), "an acknowledged node is lost"
    assert operations.by_git(home, "rev-parse", "HEAD").strip() == after["commit"]
    assert operations.by_git(home, "status", "--porcelain") == "", "something lies about"
    operations.by_git(home, "fsck", "--strict", "--no-dangling")
    with open_brain(home) as brain:
        assert run(brain, "kb lint")["findings"] == []
    return took


def test_a_killed_writer_loses_no_commit_and_leaves_no_lock(
    fork_server: ForkServer, quick: Path, cases: Cases
) -> None:
    took: list[float] = []
    home, titles, number = quick, set[str](), 0
    for seed in cases.walk(4, 800):
        if seed % ROUNDS_PER_STORE == 0 or home == quick:
            home, titles = make(quick / f"home{seed}"), set()
        now = fork_server.kill(home, "kb", seed, family=bool(seed % 2)).acknowledged
        titles |= {f"Thing {word}" for *_, word in now}
        number += len(now)
        took.append(check(home, seed, titles))
    cases.note(
        f"{number:,} nodes acknowledged, the next commit after {percentile(took, 1):.1f} s at the latest"
    )


def test_a_disk_without_room_refuses_a_node_and_keeps_all_others(tmp_path: Path, cases: Cases) -> None:
    with tiny_disk(tmp_path / "disk", 30_000_000) as disk:
        home, titles, refused = make(disk / "home"), set[str](), 0
        for seed in cases.walk(3, 100):
            if seed and seed % ROUNDS_PER_STORE == 0:
                shutil.rmtree(home)
                home, titles = make(disk / "home"), set()
            rooms = [*range(24), 32, 48, 64]
            room = random.Random(f"room {seed}").choice(rooms) * 4096 if seed else 0
            leave_room(disk, room)
            try:
                remember(home, f"Full {seed}")
                titles.add(f"Full {seed}")
            except QuaidError:
                refused += 1
            finally:
                make_room(disk)
            check(home, seed, titles)
        assert refused or cases.alone
        cases.note(f"{refused} refused on a full disk")


def test_unreachable_remote_does_not_block_writes_and_gets_them_later(
    fork_server: ForkServer, quick: Path, cases: Cases
) -> None:
    remote, away = quick / "remote.git", quick / "away.git"
    environ = {"PATH": os.environ["PATH"], "HOME": str(quick)}
    plain(quick, "init", "-q", "--bare", "-b", "main", str(remote), environ=environ)
    home, titles = make(quick / "home", remote=str(remote)), set[str]()
    remember(home, "First")
    push(home)
    for seed in cases.walk(2, 100):
        how = ("away", "locked", "empty")[seed % 3]
        lock = remote / "refs/heads/main.lock"
        if how == "locked":
            lock.touch()
        else:
            os.rename(remote, away)
            if how == "empty":
                remote.mkdir()
        titles.add(f"Alone {seed}")
        made = remember(home, f"Alone {seed}")
        assert bool(made["offline"]) == (how != "locked")
        assert push(home) not in ("pushed", "nothing")
        titles |= {f"Thing {word}" for *_, word in fork_server.kill(home, "kb", seed).acknowledged}
        if how == "locked":
            lock.unlink()
        else:
            if how == "empty":
                remote.rmdir()
            os.rename(away, remote)
        check(home, seed, titles)
        assert push(home) == "pushed"
        head = operations.by_git(home, "rev-parse", "HEAD")
        assert plain(remote, "rev-parse", "main", environ=environ) == head
        plain(remote, "fsck", "--strict", "--no-dangling", environ=environ)


def push(home: Path) -> str:
    with open_brain(home) as brain:
        return str(run(brain, "kb push")["outcome"])
