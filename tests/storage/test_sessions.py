"""Who holds the lease of a folder: one of them, and another when he is gone."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.model import dates
from quaid.storage import collections
from quaid.storage.collections import WatchOwner, WatchSession
from quaid.storage.sqlite.connection import Database

NOON = 1_777_118_400.0
HERE, ELSEWHERE = "here", "elsewhere"


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self, shift: float = 0) -> str:
        return dates.timestamp(self.time + shift)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(brain: Brain) -> Database:
    """A memory with the folders notes and wiki."""
    for name in ("notes", "wiki"):
        add(brain.db, name)
    return brain.db


def add(db: Database, name: str) -> int:
    return db.write(
        lambda tx: collections.add(tx, name, "markdown", f"/{name}", True, "2026-01-01T00:00:00Z")
    )


def ended() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        return process.pid


def far(id: str, pid: int = 1) -> WatchSession:
    """Each on a machine of its own: only time tells whether it lives."""
    return WatchSession(id, pid, f"host of {id}")


def test_the_first_takes_every_folder_and_the_second_none(db: Database, clock: Clock) -> None:
    first, second = (
        collections.take_leases(db, far("a", 11), clock),
        collections.take_leases(db, far("b", 12), clock),
    )
    assert (len(first.mine), first.others, first.free) == (2, (), ())
    assert second.mine == frozenset()
    assert second.others == (WatchOwner("notes", 11, "host of a"), WatchOwner("wiki", 11, "host of a"))


def test_looking_writes_nothing(db: Database, clock: Clock) -> None:
    before = db.connection.total_changes()
    assert collections.read_leases(db, far("a"), clock).free == ("notes", "wiki")
    assert db.connection.total_changes() == before
    collections.take_leases(db, far("b"), clock)
    before = db.connection.total_changes()
    assert collections.read_leases(db, far("a"), clock).free == ()
    assert db.connection.total_changes() == before


def test_one_folder_can_be_leased_alone_and_another_session_takes_the_rest(
    db: Database, clock: Clock
) -> None:
    mine = collections.take_leases(db, far("a"), clock, "wiki")
    rest = collections.take_leases(db, far("b"), clock)
    assert (len(mine.mine), mine.free, len(rest.mine)) == (1, (), 1)
    assert [each.collection for each in rest.others] == ["wiki"]


def test_who_is_silent_for_too_long_loses_the_lease_and_hears_of_it(db: Database, clock: Clock) -> None:
    collections.take_leases(db, far("a"), clock)
    clock.time += collections.STALE_SECONDS
    assert collections.take_leases(db, far("b"), clock).mine == frozenset()
    clock.time += 1
    assert collections.read_leases(db, far("b"), clock).free == ("notes", "wiki")
    assert len(collections.take_leases(db, far("b"), clock).mine) == 2
    assert collections.take_leases(db, far("a"), clock).mine == frozenset()


def test_a_sign_of_life_keeps_the_lease(db: Database, clock: Clock) -> None:
    for _ in range(5):
        clock.time += collections.STALE_SECONDS
        assert len(collections.take_leases(db, far("a"), clock).mine) == 2
    assert collections.take_leases(db, far("b"), clock).mine == frozenset()


def test_a_sign_of_life_out_of_the_future_counts_for_nothing(db: Database, clock: Clock) -> None:
    collections.take_leases(db, far("a"), clock)
    clock.time -= 3_600
    assert len(collections.take_leases(db, far("b"), clock).mine) == 2


@pytest.mark.skipif(os.name == "nt", reason="asks the system about processes")
def test_a_process_of_this_machine_that_ended_loses_the_lease_at_once(db: Database, clock: Clock) -> None:
    gone = ended()
    collections.take_leases(db, WatchSession("a", gone, HERE), clock)
    assert collections.take_leases(db, WatchSession("b", os.getpid(), ELSEWHERE), clock).mine == frozenset()
    assert len(collections.take_leases(db, WatchSession("c", os.getpid(), HERE), clock).mine) == 2


def test_a_number_that_is_ours_now_was_somebody_elses_before(db: Database, clock: Clock) -> None:
    collections.take_leases(db, WatchSession("a", os.getpid(), HERE), clock)
    assert len(collections.take_leases(db, WatchSession("b", os.getpid(), HERE), clock).mine) == 2


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a number that waits for its parent")
def test_a_process_that_ended_and_was_not_waited_for_does_not_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    try:
        assert process.stdout
        process.stdout.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not collections.is_process_running(process.pid)
        assert collections.is_process_running(os.getpid())
    finally:
        process.communicate()


def test_who_leaves_frees_the_folders(db: Database, clock: Clock) -> None:
    collections.take_leases(db, far("a"), clock)
    collections.release_leases(db, far("a"))
    assert collections.read_leases(db, far("b"), clock).free == ("notes", "wiki")
    assert db.rows("SELECT * FROM serve_sessions UNION ALL SELECT *, 1, 1 FROM collection_owners") == []


def test_a_new_folder_goes_to_the_next_beat_and_a_detached_one_is_let_go(db: Database, clock: Clock) -> None:
    before = collections.take_leases(db, far("a"), clock).mine
    id = add(db, "more")
    assert collections.take_leases(db, far("a"), clock).mine == before | {id}
    db.write(lambda tx: collections.set_state(tx, id, "detached", clock()))
    assert collections.take_leases(db, far("a"), clock).mine == before
    assert len(db.rows("SELECT * FROM collection_owners")) == 2


def test_of_many_who_ask_at_once_exactly_one_wins(
    db: Database, clock: Clock, settings: Settings, tmp_path: Path
) -> None:
    won: list[str] = []
    start = threading.Barrier(8)

    def ask(number: int) -> Callable[[], None]:
        def work() -> None:
            with Brain(settings) as brain:
                memory = brain.db
                start.wait()
                if collections.take_leases(memory, far(str(number)), clock).mine:
                    won.append(str(number))

        return work

    threads = [threading.Thread(target=ask(number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
