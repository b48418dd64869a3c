"""Where faults are tried: in memory, where nobody waits for a disk; and on a disk so small that it fills up."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

IN_MEMORY = "/dev/shm"
BALLAST = "ballast"


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder that costs no waiting for a disk: a process that dies cannot tell the difference."""
    above = IN_MEMORY if os.path.isdir(IN_MEMORY) and os.access(IN_MEMORY, os.W_OK) else None
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="quaid-faults-", dir=above)))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def tiny_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes at a folder. Passed over where nobody may mount one."""
    if sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("no small disk can be mounted here")
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "quaid-faults", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def leave_room(disk: Path, room: int) -> None:
    """Fill a tiny disk up to so many bytes."""
    with open(disk / BALLAST, "wb") as file:
        left = shutil.disk_usage(disk).free - room
        while left > 0:
            left -= file.write(bytes(min(left, 1 << 20)))


def make_room(disk: Path) -> None:
    """Take away what fills it."""
    (disk / BALLAST).unlink()
