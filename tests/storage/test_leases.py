"""Leases: one process holds each, and another takes it when the holder is gone or hangs."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from quaid.app import Brain
from quaid.errors import FileTrouble, ReadOnly
from quaid.operations.collections import WatchOwner, take_watch_leases
from quaid.storage import collections, embedding_queue, leases
from quaid.storage.collections import Collections
from quaid.storage.embedding_queue import EmbeddingFailure, EmbeddingRun, failure_state, record_state
from quaid.storage.leases import Lease

NOON = "2026-04-25T12:00:00Z"
HOLD_LEASE = """
import sys
from quaid.storage.leases import Lease
lease = Lease(sys.argv[1], "embed")
assert lease.try_take()
lease.hold(model="m", since="then")
print("taken", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def lease(path: str) -> Lease:
    return Lease(path, embedding_queue.LEASE)


def test_one_process_holds_a_lease_and_others_see_it(path: str, lease: Lease) -> None:
    other = Lease(path, embedding_queue.LEASE)
    assert embedding_queue.current_run(path) is None
    assert lease.try_take()
    lease.hold(model="bge", since=NOON)
    assert embedding_queue.current_run(path) == EmbeddingRun("bge", os.getpid(), NOON)
    assert lease.is_held()
    assert not other.try_take()
    lease.release()
    assert not lease.is_held()
    assert embedding_queue.current_run(path) is None
    assert other.try_take()
    other.release()


def test_exactly_one_of_many_threads_takes_the_lease(path: str) -> None:
    winners: list[Lease] = []
    start = threading.Barrier(8)

    def work() -> None:
        lease = Lease(path, "x")
        start.wait()
        if lease.try_take():
            winners.append(lease)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    winners[0].release()


def test_lease_of_a_hanging_process_is_taken_over(path: str, lease: Lease) -> None:
    assert lease.try_take()
    lease.write({"model": "m"})
    past = time.time() - leases.HEARTBEAT_TIMEOUT - 1
    os.utime(path + "-embed-lock", (past, past))
    other = Lease(path, embedding_queue.LEASE)
    assert not leases.is_leased(path, embedding_queue.LEASE)
    assert other.try_take()
    other.hold(model="other")
    assert not lease.is_held()
    lease.release(remove=True)  # must not delete the file of the new holder
    assert other.is_held()
    other.release()


def test_heartbeat_keeps_a_lease(path: str, lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.01)
    assert lease.try_take()
    lease.hold()
    os.utime(path + "-embed-lock", (0, 0))
    deadline = time.monotonic() + 30
    while not leases.is_leased(path, embedding_queue.LEASE):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lease.release()


def test_released_lease_can_be_removed(path: str, lease: Lease) -> None:
    assert lease.try_take()
    lease.release(remove=True)
    assert not os.path.exists(path + "-embed-lock")
    assert not leases.is_leased(path, embedding_queue.LEASE)


def test_killed_process_loses_its_lease_at_once(path: str, lease: Lease) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_LEASE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdin
    assert process.stdout.readline() == "taken\n"
    assert embedding_queue.current_run(path) == EmbeddingRun("m", process.pid, "then")
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert embedding_queue.current_run(path) is None
    assert embedding_queue.last_failure(path) is None
    assert lease.try_take()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"failed"', "\xff"])
def test_partly_written_state_is_ignored(path: str, text: str) -> None:
    Path(path + "-embed-lock").write_text(text)
    assert embedding_queue.current_run(path) is None
    assert embedding_queue.last_failure(path) is None


def test_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises((FileTrouble, ReadOnly)):
        Lease(str(tmp_path / "nowhere" / "memory.db"), "x").try_take()


# Failures of embedding


def test_failure_is_kept_until_cleared(path: str) -> None:
    record_state(path, failure_state("bge", "it is gone", NOON))
    assert embedding_queue.last_failure(path) == EmbeddingFailure("bge", "it is gone", NOON)
    assert embedding_queue.current_run(path) is None
    record_state(path, {})
    assert embedding_queue.last_failure(path) is None


def test_state_is_not_changed_while_another_process_embeds(path: str, lease: Lease) -> None:
    assert lease.try_take()
    lease.hold(model="bge", since=NOON)
    record_state(path, failure_state("bge", "too late", NOON))
    assert embedding_queue.last_failure(path) is None
    lease.write(failure_state("bge", "it hangs", NOON, down=True))
    record_state(path, {})
    lease.release()
    assert embedding_queue.last_failure(path) == EmbeddingFailure("bge", "it hangs", NOON, down=True)


@pytest.mark.parametrize("problem", ["x" * 10_000, "\N{SNOWMAN}" * 5_000, '"' * 9_000, "\x00" * 9_000])
def test_long_problem_is_cut_and_stays_readable(path: str, problem: str) -> None:
    record_state(path, failure_state("bge", problem, NOON, down=True))
    failure = embedding_queue.last_failure(path)
    assert failure
    assert (failure.problem[:20], failure.at, failure.down) == (problem[:20], NOON, True)


# Folders


@pytest.fixture
def folders(brain: Brain) -> Brain:
    """A memory with the folders notes and wiki."""
    for name in ("notes", "wiki"):
        add(brain, name)
    return brain


def add(brain: Brain, name: str) -> int:
    return brain.db.write(lambda tx: collections.add(tx, name, "markdown", f"/{name}", True, NOON))


def release_all(*held: dict[int, Lease]) -> None:
    for some in held:
        for lease in some.values():
            lease.release(remove=True)


def test_first_watcher_takes_every_folder_and_the_second_none(folders: Brain) -> None:
    first: dict[int, Lease] = {}
    second: dict[int, Lease] = {}
    assert take_watch_leases(folders, first, None) == ()
    owners = take_watch_leases(folders, second, None)
    assert (len(first), len(second)) == (2, 0)
    assert [(owner.collection, owner.pid) for owner in owners] == [
        ("notes", os.getpid()),
        ("wiki", os.getpid()),
    ]
    assert all(isinstance(owner, WatchOwner) for owner in owners)
    release_all(first)
    assert take_watch_leases(folders, second, None) == ()
    assert len(second) == 2
    release_all(second)


def test_one_folder_can_be_leased_alone(folders: Brain) -> None:
    first: dict[int, Lease] = {}
    second: dict[int, Lease] = {}
    assert take_watch_leases(folders, first, "wiki") == ()
    assert [owner.collection for owner in take_watch_leases(folders, second, None)] == ["wiki"]
    assert (len(first), len(second)) == (1, 1)
    release_all(first, second)


def test_new_folder_is_taken_and_a_detached_one_released(folders: Brain) -> None:
    held: dict[int, Lease] = {}
    take_watch_leases(folders, held, None)
    before = set(held)
    id = add(folders, "more")
    take_watch_leases(folders, held, None)
    assert set(held) == before | {id}
    folders.db.write(lambda tx: Collections(tx).require("more").update(tx, state="detached"))
    take_watch_leases(folders, held, None)
    assert set(held) == before
    assert not leases.is_leased(folders.db.path, f"watch-{id}")
    release_all(held)
