"""The replay of a power loss: what was not synced is lost, and what was is as the program left it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import syscalls
from tests.faults.power_loss_replay import Disk, Model, options, steps

FILE, OTHER = "a.txt", "b.txt"


def left(tmp_path: Path, program: str, model: Model = "lazy") -> dict[str, bytes | None]:
    """What is left of a folder, with one file in it, when the current goes off right after a program has ended."""
    home, template = tmp_path / "home", tmp_path / "template"
    home.mkdir()
    (home / FILE).write_bytes(b"old")
    shutil.copytree(home, template)
    file = tmp_path / "program.py"
    file.write_text(f"import os, sys, threading, subprocess\nos.chdir({str(home)!r})\n{HELP}{program}")
    words = ["strace", "-qq", "-f", *options(tmp_path / "log"), sys.executable, "-S", str(file)]
    subprocess.run(words, check=True, timeout=120)
    seen = list(steps(tmp_path / "log", str(home)))
    shutil.move(home, tmp_path / "after")
    shutil.copytree(template, home)
    disk = Disk(home)
    for step in seen:
        if step.call != "said":
            disk.take(step)
    return disk.left(model)


HELP = f"""
def opened(flags=os.O_RDWR, name={FILE!r}):
    return os.open(name, flags | os.O_CREAT, 0o600)

def synced(handle):
    os.fsync(handle)
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
"""

pytestmark = syscalls.needs_strace


@pytest.mark.parametrize("model", ["eager", "lazy"])
def test_bytes_that_were_not_synced_are_lost(tmp_path: Path, model: Model) -> None:
    program = "h = opened(); os.write(h, b'first'); synced(h); os.write(h, b' second')"
    assert left(tmp_path, program, model) == {FILE: b"first"}


@pytest.mark.parametrize(("model", "there"), [("eager", {FILE: b"new"}), ("lazy", {FILE: b"old"})])
def test_a_rename_without_a_sync_of_the_folder_is_lost_where_names_are_lazy(
    tmp_path: Path, model: Model, there: dict[str, bytes]
) -> None:
    program = f"h = opened(name={OTHER!r}); os.write(h, b'new'); os.fsync(h); os.rename({OTHER!r}, {FILE!r})"
    assert left(tmp_path, program, model) == there


@pytest.mark.parametrize(("model", "there"), [("eager", {}), ("lazy", {FILE: b"old"})])
def test_a_removal_without_a_sync_of_the_folder_is_undone_where_names_are_lazy(
    tmp_path: Path, model: Model, there: dict[str, bytes]
) -> None:
    assert left(tmp_path, f"os.unlink({FILE!r})", model) == there


def test_a_new_file_in_a_folder_that_was_synced_is_there_and_empty_without_a_sync_of_its_own(
    tmp_path: Path,
) -> None:
    program = f"h = opened(name={OTHER!r}); os.write(h, b'new'); os.fsync(os.open('.', os.O_RDONLY))"
    assert left(tmp_path, program) == {FILE: b"old", OTHER: b""}


TWO_SECTORS = f"h = opened(); os.write(h, {'a' * 1024!r}.encode()); synced(h); os.lseek(h, 0, os.SEEK_SET);"


@pytest.mark.parametrize(
    ("model", "there"),
    [
        ("eager", "a" * 1024),
        ("lazy", "a" * 1024),
        ("torn", "b" * 512 + "a" * 512),
        ("early", "b" * 1024),
    ],
)
def test_torn_write_leaves_half_of_a_block(tmp_path: Path, model: Model, there: str) -> None:
    program = f"{TWO_SECTORS} os.write(h, {'b' * 1024!r}.encode())"
    assert left(tmp_path, program, model) == {FILE: there.encode()}


@pytest.mark.parametrize(
    ("model", "there"), [("eager", b""), ("lazy", b"old"), ("torn", b"new"), ("early", b"new")]
)
def test_truncated_file_is_empty_unless_the_truncation_is_lost(
    tmp_path: Path, model: Model, there: bytes
) -> None:
    assert left(tmp_path, "os.write(opened(os.O_WRONLY | os.O_TRUNC), b'new')", model) == {FILE: there}


@pytest.mark.parametrize(("model", "there"), [("torn", b"one\0two"), ("early", b"old\0two")])
def test_second_write_may_reach_the_disk_without_the_first(
    tmp_path: Path, model: Model, there: bytes
) -> None:
    assert left(tmp_path, "h = opened(); os.write(h, b'one'); os.pwrite(h, b'two', 4)", model) == {
        FILE: there
    }


@pytest.mark.parametrize("model", ["torn", "early"])
def test_one_file_is_on_the_disk_before_another_that_was_written_first(tmp_path: Path, model: Model) -> None:
    program = f"os.write(opened(name={OTHER!r}), b'log'); os.write(opened(), b'NEW')"
    assert left(tmp_path, program, model) == {FILE: b"NEW", OTHER: b""}


@pytest.mark.parametrize(
    "program",
    [
        "os.write(h, b'a longer text'); os.lseek(h, 2, os.SEEK_SET); os.write(h, b'XY')",
        "os.write(h, b'a longer text'); os.lseek(h, -4, os.SEEK_END); os.write(h, b'XY')",
        "os.write(h, b'one'); os.lseek(h, 0, os.SEEK_SET); os.ftruncate(h, 0); os.write(h, b'2')",
        "os.pwrite(h, b'far', 10); os.write(h, b'near')",
        "os.write(h, b'a longer text'); os.ftruncate(h, 4)",
        "os.ftruncate(h, 9); os.write(h, b'begin')",
        "a = opened(os.O_WRONLY | os.O_APPEND); os.write(a, b'1'); os.write(h, b'OLDER'); os.write(a, b'2')",
        "os.read(h, 2); os.write(h, b'behind what was read')",
        "os.writev(h, [b'in ', b'pieces'])",
        "os.write(h, b'abc'); d = os.dup(h); os.write(d, b'def'); os.lseek(d, 1, os.SEEK_SET); os.write(h, b'X')",
        "t = threading.Thread(target=os.write, args=(h, b'theirs')); t.start(); t.join(); os.write(h, b'ours')",
        "t = threading.Thread(target=lambda: globals().update(g=opened())); t.start(); t.join();"
        " os.write(g, b'g'); os.write(h, b'h'); os.write(g, b'gg')",
        "c = os.fork() or (os.write(h, b'child') and os._exit(0)); os.waitpid(c, 0); os.write(h, b'parent')",
        "os.write(h, b'before '); subprocess.run(['/bin/sh', '-c', 'echo shell'], stdout=h); os.write(h, b'after')",
    ],
    ids=[
        *("lseek", "lseek from the end", "lseek and ftruncate", "pwrite", "ftruncate", "ftruncate beyond"),
        *("append", "read", "writev", "dup", "two threads", "opened in a thread", "fork", "shell"),
    ],
)
def test_a_file_that_was_synced_is_as_the_program_left_it(tmp_path: Path, program: str) -> None:
    result = left(tmp_path, f"h = opened(); {program}; synced(h)")
    assert result == {FILE: (tmp_path / "after" / FILE).read_bytes()}
    assert result != {FILE: b"old"}


@pytest.mark.parametrize(
    "program",
    [f"os.truncate({FILE!r}, 1)", f"os.symlink({FILE!r}, {OTHER!r})", "os.posix_fallocate(opened(), 0, 9)"],
)
def test_a_call_that_the_replay_does_not_know_ends_it(tmp_path: Path, program: str) -> None:
    with pytest.raises(AssertionError, match="not known here"):
        left(tmp_path, program)
