"""One writer at a time, and nothing stays stuck: real processes, really killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.kb.stores import add, environ_of, has_all_objects, log, store, write

from quaid.errors import GitFailed, StoreLocked, StoreMissing
from quaid.kb import transaction
from quaid.kb.git import Git

ROOT = Path(__file__).parents[2]


def start(what: str, git: Git) -> "subprocess.Popen[str]":
    home = os.path.join(os.path.dirname(git.root), "home")
    return subprocess.Popen(
        [sys.executable, "-m", "tests.kb.worker", what, git.root, home],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def ended(process: "subprocess.Popen[str]") -> int:
    process.communicate()
    return process.returncode


def killed(process: "subprocess.Popen[str]") -> str:
    """Kill the process and return its output."""
    process.send_signal(signal.SIGKILL)
    return process.communicate()[0]


def test_second_writer_waits_and_its_error_names_the_lock_holder(tmp_path: Path) -> None:
    git = store(tmp_path)
    other = start("hold", git)
    assert first_line(other) == "held"
    with (
        pytest.raises(StoreLocked, match=rf"remember \(process {other.pid}\)"),
        transaction.store_lock(git, patience=0.1),
    ):
        pass
    killed(other)
    with transaction.store_lock(git, patience=60):
        assert git.state().is_clean


def test_folder_that_is_not_a_store_gets_no_lock(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing), transaction.store_lock(Git(str(tmp_path), environ_of(tmp_path))):
        pass
    assert os.listdir(tmp_path) == ["home"]


def test_locks_of_git_that_a_killed_writer_left_do_not_stick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "GIT_LOCK_TIMEOUT", 0.0)  # they go at the first look
    git = store(tmp_path)
    assert ended(start("die_with_index_lock", git)) == -signal.SIGKILL
    with transaction.store_lock(git):
        add(git, "next.org", "next")
    assert git.state().is_clean


def write_with_a_git_that_is_killed(git: Git) -> None:
    (Path(git.folder) / "index.lock").touch()
    raise GitFailed(verb="commit", path=git.root, problem="it was killed")


def test_the_lock_of_a_git_that_was_killed_under_a_writer_does_not_stick(tmp_path: Path) -> None:
    git = store(tmp_path)
    (Path(git.folder) / "HEAD.lock").touch()
    os.utime(Path(git.folder) / "HEAD.lock", (time.time() - 5, time.time() - 5))
    with pytest.raises(StoreLocked), transaction.store_lock(git, patience=1):
        pass
    (Path(git.folder) / "HEAD.lock").unlink()
    with pytest.raises(GitFailed), transaction.store_lock(git, patience=1):
        write_with_a_git_that_is_killed(git)
    assert not (Path(git.folder) / "index.lock").exists()
    with transaction.store_lock(git, patience=1):
        assert git.state().is_clean


def write_beside_a_git_that_was_killed(git: Git) -> None:
    """A git process whose status is ignored was killed; the next one meets its lock file."""
    (Path(git.folder) / "index.lock").touch()
    with git.changing(["first.org"]):
        write(git, "first.org", "again\n")
        git.commit(["first.org"], "again")


def test_the_lock_that_our_next_git_meets_does_not_stick(tmp_path: Path) -> None:
    git = store(tmp_path)
    with pytest.raises(StoreLocked), transaction.store_lock(git, patience=1):
        write_beside_a_git_that_was_killed(git)
    assert not (Path(git.folder) / "index.lock").exists()
    with transaction.store_lock(git, patience=1):
        assert git.state().is_clean


def test_a_lock_that_git_could_not_remove_does_not_stick(tmp_path: Path) -> None:
    git = store(tmp_path)
    with transaction.store_lock(git, patience=1):
        (Path(git.folder) / "HEAD.lock").touch()
    assert not (Path(git.folder) / "HEAD.lock").exists()


PROGRAM = "import sys; file = open(sys.argv[1], 'w'); print('open', flush=True); sys.stdin.read()"


def fail_beside(git: Git, others: "list[subprocess.Popen[str]]") -> None:
    """Another program takes a git lock; then one of our git processes fails."""
    lock = os.path.join(git.folder, "index.lock")
    others.append(
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    assert first_line(others[0]) == "open"
    raise GitFailed(verb="commit", path=git.root, problem="of something else")


def test_a_new_lock_that_some_program_has_open_is_left_alone(tmp_path: Path) -> None:
    git = store(tmp_path)
    others: list[subprocess.Popen[str]] = []
    with pytest.raises(GitFailed), transaction.store_lock(git, patience=1):
        fail_beside(git, others)
    assert (Path(git.folder) / "index.lock").exists()
    others[0].communicate()


def test_a_refused_writer_keeps_the_name_of_the_killed_one(tmp_path: Path) -> None:
    git = store(tmp_path)
    first = start("hold", git)
    assert first_line(first) == "held"
    (Path(git.folder) / "index.lock").touch()
    killed(first)
    with subprocess.Popen(
        ["git", "cat-file", "--batch-check"],
        cwd=git.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as reader:
        assert reader.stdin
        reader.stdin.write("HEAD\n")
        assert "commit" in first_line(reader)  # at work: a program that only begins has not its name yet
        with pytest.raises(StoreLocked), transaction.store_lock(git, patience=1):
            pass
    with transaction.store_lock(git, patience=1):
        assert git.state().is_clean


def test_files_of_a_killed_writer_are_restored(tmp_path: Path) -> None:
    git = store(tmp_path)
    assert ended(start("die_changing", git)) == -signal.SIGKILL
    assert not git.state().is_clean
    with transaction.store_lock(git):
        assert git.state().is_clean
    assert Path(git.root, "first.org").read_text() == "first\n"


def test_lock_of_another_users_git_is_respected_while_it_is_young(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "GIT_LOCK_TIMEOUT", 0.1)
    git = store(tmp_path)
    lock = Path(git.folder, "index.lock")
    lock.touch()
    with pytest.raises(StoreLocked, match=r"index\.lock"), transaction.store_lock(git):
        pass
    assert lock.exists()
    with pytest.raises(StoreLocked), transaction.store_lock(git):
        pass
    old = time.time() - 2 * transaction.MINUTE
    os.utime(lock, (old, old))
    with transaction.store_lock(git):
        assert not lock.exists()


def test_a_persons_commit_with_its_editor_open_keeps_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "GIT_LOCK_TIMEOUT", 0.1)
    git = store(tmp_path)
    write(git, "first.org", "by hand\n")
    lock, ready = Path(git.folder, "index.lock"), tmp_path / "ready"
    person = subprocess.Popen(
        ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qa"],
        cwd=git.root,
        env=environ_of(tmp_path) | {"GIT_EDITOR": f": > '{ready}'; sleep 60 #"},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not ready.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    old = time.time() - 2 * transaction.HOUR
    os.utime(lock, (old, old))
    with pytest.raises(StoreLocked), transaction.store_lock(git):
        pass
    assert lock.exists()
    os.killpg(person.pid, signal.SIGKILL)
    person.wait()
    with transaction.store_lock(git):
        assert not lock.exists()


def test_any_git_counts_without_process_information(tmp_path: Path) -> None:
    assert transaction.is_git_running(str(tmp_path), "linux") is False
    assert transaction.is_git_running(str(tmp_path), "win32") is None


def opened_for_writing(pipe: str) -> int:
    """Open the pipe, once another process reads from it."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_the_lock_lasts_as_long_as_a_git_that_its_killed_holder_had_started(tmp_path: Path) -> None:
    git = store(tmp_path)
    pipe = os.path.join(git.root, "pipe")
    os.mkfifo(pipe)
    other = start("wait_for_git", git)
    assert first_line(other) == "held"
    writer = opened_for_writing(pipe)
    killed_pid = other.pid
    other.send_signal(signal.SIGKILL)
    other.wait()
    with pytest.raises(StoreLocked, match=str(killed_pid)), transaction.store_lock(git, patience=0.3):
        pass
    os.close(writer)  # which ends what that git reads
    os.unlink(pipe)
    with transaction.store_lock(git, patience=60):
        assert git.state().is_clean
    if other.stdout:
        other.stdout.close()


def test_killed_at_any_moment_nothing_is_lost_stuck_or_half_done(tmp_path: Path) -> None:
    git = store(tmp_path)
    dice = random.Random(7)
    acknowledged: list[str] = []
    for _ in range(int(os.environ.get("QUAID_KILLS", "12"))):
        worker = start("remember", git)
        line = first_line(worker)
        time.sleep(dice.random() * 0.2)
        acknowledged += [line, *killed(worker).split("\n")]
        with transaction.store_lock(git):
            assert git.state().is_clean
    known = set(log(git))
    whole = [item for item in acknowledged if len(item) == 40]
    assert len(whole) > 10
    assert set(whole) <= known
    assert has_all_objects(git)


def test_eight_at_once_take_turns(tmp_path: Path) -> None:
    git = store(tmp_path)
    workers = [start("remember_twice", git) for _ in range(8)]
    words = [word for worker in workers for word in worker.communicate()[0].split()]
    assert [worker.returncode for worker in workers] == [0] * 8
    commits = log(git)
    assert len(set(words)) == 16
    assert set(commits) == {*words, commits[-1]}
    assert git.state().is_clean
    assert has_all_objects(git)
