"""Files that are private from their first byte and still there after a power cut.

Knows modes, fsync and rename. Does not know what is in the files.
"""

import errno
import os


def make_folders(path: str) -> None:
    """Make a folder and those above it that are missing, for their owner only."""
    if not path or os.path.isdir(path):
        return
    make_folders(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):  # else another process was faster
            problem = "a file stands where a folder must be"
            raise NotADirectoryError(errno.ENOTDIR, problem, path) from None
    sync_folder(os.path.dirname(path))


def make_private_file(path: str) -> None:
    """Make an empty file for its owner only; FileExistsError when there is one."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def sync_file(path: str) -> None:
    """Wait until a file's bytes are on the disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: str) -> None:
    """Wait until a folder's names are on the disk."""
    if os.name == "nt":
        return
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_in_place(finished: str, path: str) -> None:
    """Give a finished file its name, durably. The caller knows that the name is free."""
    sync_file(finished)
    os.rename(finished, path)
    sync_folder(os.path.dirname(path))


def discard(path: str) -> None:
    """Remove a database file that was not finished, and what SQLite put beside it."""
    for ending in ("", "-journal", "-wal", "-shm"):
        try:
            os.unlink(path + ending)
        except FileNotFoundError:
            pass
