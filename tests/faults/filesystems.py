"""Folders for fault tests: in shared memory for speed, and on a small disk that can be filled."""

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
    """Yield a folder in shared memory: a killed process leaves the same state there as on a disk."""
    above = IN_MEMORY if os.path.isdir(IN_MEMORY) and os.access(IN_MEMORY, os.W_OK) else None
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="quaid-faults-", dir=above)))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def tiny_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount a file system of that many bytes; skip the test if mounting is not permitted."""
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
    """Fill a small disk up to that many free bytes."""
    with open(disk / BALLAST, "wb") as file:
        left = shutil.disk_usage(disk).free - room
        while left > 0:
            left -= file.write(bytes(min(left, 1 << 20)))


def make_room(disk: Path) -> None:
    """Remove the file that fills the disk."""
    (disk / BALLAST).unlink()
