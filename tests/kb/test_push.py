"""Pushes to a remote that is missing, hangs or has moved, and pushes that are killed."""

import json
import os
import random
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kb.stores import add, bare, environ_of, plain, store, wait_for_git, wait_for_orphans, write
from tests.kb.test_locks import start
from tests.kb.users import Person

from quaid.kb import health, repository, transaction
from quaid.kb.git import Git
from quaid.kb.repository import RemoteEvent

NOON, LATER = "2026-04-25T12:00:00Z", "2026-04-25T12:15:00Z"


@pytest.fixture
def one(tmp_path: Path) -> Git:
    environ = environ_of(tmp_path)
    git = store(tmp_path, "one", environ)
    git.set_remote(bare(tmp_path, environ))
    return git


@pytest.fixture
def two(one: Git, tmp_path: Path) -> Git:
    one.push()
    return Git.clone(one.remote() or "", str(tmp_path / "two"), environ_of(tmp_path))


@pytest.fixture
def silence() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port that refuses connections, and that no other program can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_local_commits_are_pushed_once(one: Git) -> None:
    assert transaction.push_store(one, NOON).outcome == "pushed"
    assert repository.read_state(one.root).push == RemoteEvent("pushed", at=NOON)
    assert transaction.push_store(one, LATER).outcome == "nothing"
    assert repository.read_state(one.root).push == RemoteEvent("pushed", at=NOON)
    assert one.state().ahead == 0


def test_without_a_remote_nothing_happens(tmp_path: Path) -> None:
    git = store(tmp_path)
    assert transaction.push_store(git, NOON) == RemoteEvent("nothing", "there is no remote")
    assert repository.read_state(git.root) == repository.StoreState()


def test_a_rejected_push_records_the_divergence_and_leaves_the_commit(
    one: Git, two: Git, tmp_path: Path
) -> None:
    there = add(one, "one.org", "one")
    assert transaction.push_store(one, NOON).outcome == "pushed"
    here = add(two, "two.org", "two")
    assert transaction.push_store(two, NOON).outcome == "rejected"
    noted = repository.read_state(two.root)
    assert noted.push is not None
    assert noted.push.outcome == "rejected"
    assert noted.fetch == RemoteEvent("reached", at=NOON)
    assert noted.diverged_at == NOON
    assert two.head() == here
    assert two.state().is_clean
    assert plain(tmp_path / "remote.git", "rev-parse", "main", environ=environ_of(tmp_path)).strip() == there
    add(two, "three.org", "three")
    transaction.push_store(two, LATER)
    assert repository.read_state(two.root).diverged_at == NOON

    plain(two.root, "rebase", "-q", "origin/main", environ=environ_of(tmp_path))
    assert transaction.push_store(two, LATER).outcome == "pushed"
    assert repository.read_state(two.root).diverged_at == ""


def test_a_fetch_records_whether_the_remote_was_reached(one: Git, two: Git, tmp_path: Path) -> None:
    add(one, "one.org", "one")
    one.push()
    fetched, tree = transaction.fetch_store(two, NOON)
    assert (fetched.outcome, tree.behind) == ("reached", 1)
    os.rename(tmp_path / "remote.git", tmp_path / "away.git")
    fetched, tree = transaction.fetch_store(two, LATER)
    noted = repository.read_state(two.root).fetch
    assert (fetched.outcome, tree.behind) == ("unreachable", 1)
    assert noted is not None
    assert (noted.at, noted.outcome) == (LATER, "unreachable")
    assert noted.problem


def test_a_fetch_looks_at_the_tree_again_only_when_a_branch_has_moved(one: Git, two: Git) -> None:
    before = two.state()
    assert transaction.fetch_store(two, NOON, before=before)[1] is before
    add(one, "one.org", "one")
    one.push()
    behind = transaction.fetch_store(two, NOON, before=before)[1]
    assert (behind.ahead, behind.behind) == (0, 1)
    assert transaction.fetch_store(two, NOON, before=behind)[1] is behind
    add(two, "two.org", "two")  # by somebody else, meanwhile
    apart = transaction.fetch_store(two, LATER, before=behind)[1]
    assert (apart.ahead, apart.behind) == (1, 1)
    assert repository.read_state(two.root).diverged_at == LATER


def test_a_conflict_is_left_for_a_person(one: Git, two: Git) -> None:
    for git, text in ((one, "theirs\n"), (two, "mine\n")):
        write(git, "first.org", text)
        git.commit(["first.org"], text)
    transaction.push_store(one, NOON)
    assert transaction.push_store(two, NOON).outcome == "rejected"
    assert Path(two.root, "first.org").read_text() == "mine\n"
    assert two.state().in_progress is None


def test_a_remote_that_refuses_connections_is_noted_and_no_error(one: Git, nobody: int) -> None:
    one.set_remote(f"http://ann:hunter2@127.0.0.1:{nobody}/kb.git")
    head = one.head()
    done = transaction.push_store(one, NOON, seconds=60)
    noted = repository.read_state(one.root).push
    assert done.outcome == "unreachable"
    assert noted is not None
    assert noted.outcome == "unreachable"
    assert "hunter2" not in noted.problem + done.problem
    assert one.head() == head


def test_a_hanging_remote_times_out(one: Git, silence: int) -> None:
    one.set_remote(f"http://127.0.0.1:{silence}/kb.git")
    began = time.monotonic()
    assert transaction.push_store(one, NOON, seconds=0.5) == RemoteEvent(
        "unreachable", "no answer within 0.5 s"
    )
    assert one.fetch(0.5).outcome != "reached"
    assert time.monotonic() - began < 30


def test_writers_wait_only_once_for_a_silent_remote(
    tmp_path: Path, silence: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waits are counted at git's own time-out, shortened for the test."""
    monkeypatch.setattr(transaction.fetch_store, "__defaults__", (0.5, None))
    monkeypatch.setattr(transaction, "FETCH_TIMEOUT", 0.5)
    monkeypatch.setattr(health, "CHECK_TIMEOUT", 0.5)
    ann = Person(tmp_path)
    ann("init")
    ann.by_git("remote", "add", "origin", f"http://127.0.0.1:{silence}/kb.git")
    waits = []
    ask = Git.fetch

    def counted(git: Git, seconds: float) -> object:
        waits.append(seconds)
        return ask(git, seconds)

    monkeypatch.setattr(Git, "fetch", counted)
    for title in ("Ports", "Doors", "Keys"):
        assert "answer" in ann.remember(title)["offline"]
    assert len(waits) == 1
    assert "no answer within 0.5 s" in ann("status")["remote_problem"]
    assert ann("push")["outcome"] == "unreachable"  # a push asks all the same
    assert len(waits) == 2
    remote = {check["name"]: check for check in ann("doctor")["checks"]}["remote"]
    assert "10 minutes" in remote["remedy"]
    assert len(waits) == 3
    ann.later(minutes=11)
    ann.remember("Locks")
    assert len(waits) == 4
    ann.by_git("remote", "set-url", "origin", bare(tmp_path, ann.environ))
    assert ann("push")["outcome"] == "pushed"
    assert ann("status")["remote_problem"] == ""
    ann.remember("Windows")
    assert len(waits) == 6


def test_a_remote_that_refuses_at_once_is_asked_every_time(tmp_path: Path, nobody: int) -> None:
    ann = Person(tmp_path)
    ann("init")
    ann.by_git("remote", "add", "origin", f"http://127.0.0.1:{nobody}/kb.git")
    for title in ("Ports", "Doors"):
        assert "did not answer before" not in ann.remember(title)["offline"]


def test_failed_ssh_connection_does_not_prompt_and_is_recorded(one: Git, nobody: int) -> None:
    one.set_remote(f"ssh://git@127.0.0.1:{nobody}/kb.git")
    done = transaction.push_store(one, NOON, seconds=60)
    assert done.outcome == "unreachable"
    assert done.problem


def test_a_failure_that_is_over_is_forgotten(one: Git, tmp_path: Path) -> None:
    os.rename(tmp_path / "remote.git", tmp_path / "away.git")
    assert transaction.push_store(one, NOON).outcome == "unreachable"
    os.rename(tmp_path / "away.git", tmp_path / "remote.git")
    plain(one.root, "push", "-q", "origin", "main", environ=environ_of(tmp_path))
    assert transaction.push_store(one, LATER).outcome == "nothing"
    assert repository.read_state(one.root).push == RemoteEvent("nothing", at=LATER)


def test_a_killed_push_is_made_good_by_the_next(one: Git, tmp_path: Path) -> None:
    dice = random.Random(3)
    ends = []
    began = time.monotonic()
    start("push", one).communicate()
    duration = time.monotonic() - began
    for number in range(8):
        add(one, f"n{number}.org", "x" * 10_000)
        worker = start("push", one)
        wait_for_git(tmp_path)  # the first worker is killed now, the others between now and their end
        time.sleep(duration * 0.6 * dice.random() if number else 0)
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        ends.append(worker.returncode)
    wait_for_orphans(tmp_path)
    assert -signal.SIGKILL in ends
    done = transaction.push_store(one, NOON)
    assert done.outcome in ("pushed", "nothing"), done
    assert one.state().ahead == 0
    assert (
        plain(tmp_path / "remote.git", "rev-parse", "main", environ=environ_of(tmp_path)).strip()
        == one.head()
    )
    plain(tmp_path / "remote.git", "fsck", "--full", environ=environ_of(tmp_path))


def test_the_state_is_private_and_holds_no_secret_of_an_address(one: Git) -> None:
    secret = "https://ann:hunter2@example.org/kb.git?token=abcdef is away"
    repository.note_state(one.root, push=RemoteEvent("unreachable", secret, NOON), accepted="150")
    path = Path(one.own_folder, "state.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "hunter2" not in path.read_text()
    assert "abcdef" not in path.read_text()
    repository.note_state(one.root, indexed_at=NOON)
    noted = repository.read_state(one.root)
    assert (noted.accepted, noted.indexed_at) == ("150", NOON)
    assert json.loads(path.read_text())["push"]["outcome"] == "unreachable"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"push": 3, "fetch": {"at": 1}, "accepted": 3}', "\0\0"])
def test_a_state_that_cannot_be_read_counts_as_empty(one: Git, text: str) -> None:
    repository.note_state(one.root, accepted="1")
    Path(one.own_folder, "state.json").write_text(text)
    assert repository.read_state(one.root) == repository.StoreState()
    repository.note_state(one.root, indexed_at=NOON)
    assert repository.read_state(one.root).indexed_at == NOON


def test_state_is_not_a_part_of_the_tree(one: Git) -> None:
    repository.note_state(one.root, accepted="1")
    assert one.state().is_clean
