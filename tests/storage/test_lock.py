"""One writer at a time."""

import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest

from quaid.errors import Busy, FileTrouble
from quaid.storage import files
from quaid.storage.sqlite import connection
from quaid.storage.sqlite.connection import WriterLock

HOLDS = """
    import sys
    from quaid.storage.sqlite.connection import WriterLock
    with WriterLock(sys.argv[1]).held():
        print("held", flush=True)
        sys.stdin.readline()
    """
Start = Callable[..., "Popen[str]"]


def test_the_lock_file_is_private(path: str) -> None:
    with WriterLock(path).held():
        assert stat.S_IMODE(os.stat(path + "-lock").st_mode) == 0o600


def test_two_locks_of_one_file_exclude_each_other(path: str) -> None:
    first, second = WriterLock(path), WriterLock(path)
    with first.held():
        assert not second.try_take()
    assert second.try_take()
    second.release()


def test_writer_that_waits_too_long_fails(path: str, start: Start) -> None:
    holder = start(HOLDS, path)
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    lock = WriterLock(path)
    lock.patience = 0.05
    with pytest.raises(Busy, match="locked by another process"), lock.held():
        pass


def test_a_waiting_writer_goes_on_when_the_holder_is_done(path: str, start: Start) -> None:
    holder = start(HOLDS, path)
    assert holder.stdout
    holder.stdout.readline()
    assert holder.stdin
    began = time.monotonic()
    threading.Timer(0.1, lambda: print(file=holder.stdin, flush=True)).start()
    with WriterLock(path).held():
        assert time.monotonic() - began > 0.05


def test_a_killed_holder_leaves_no_lock(path: str, start: Start) -> None:
    holder = start(HOLDS, path)
    assert holder.stdout
    holder.stdout.readline()
    holder.kill()
    holder.wait()
    assert WriterLock(path).try_take()


def test_a_lock_on_a_file_that_was_deleted_meanwhile_does_not_count(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = files.try_lock_file

    def deleted_meanwhile(handle: int) -> bool:
        os.unlink(path + "-lock")
        return take(handle)

    monkeypatch.setattr(connection, "try_lock_file", deleted_meanwhile)
    assert not WriterLock(path).try_take()
    monkeypatch.undo()
    assert WriterLock(path).try_take()


def test_the_holder_may_not_take_it_again(path: str) -> None:
    lock = WriterLock(path)
    with lock.held(), pytest.raises(RuntimeError), lock.held():
        pass
    assert lock.try_take()
    lock.release()


def test_another_thread_waits_its_turn(path: str) -> None:
    lock = WriterLock(path)
    order: list[str] = []

    def second() -> None:
        with lock.held():
            order.append("second")

    with lock.held():
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_another_file_at_the_path_of_the_lock_is_not_written(path: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_bytes(b"mine")
    os.symlink(victim, path + "-lock")
    with pytest.raises(FileTrouble, match="move it away"):
        WriterLock(path).try_take()
    assert WriterLock(path).noted() == b""
    assert victim.read_bytes() == b"mine"
    for make in (os.mkfifo, os.mkdir):
        os.rename(path + "-lock", f"{path}-aside-{make.__name__}")
        make(path + "-lock")
        with pytest.raises(FileTrouble, match="move it away"):
            WriterLock(path).try_take()
        assert WriterLock(path).noted() == b""
