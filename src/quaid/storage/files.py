"""Write private files atomically and durably, lock files, and search files in a separate process.

This module also runs as a program (`python -I -S files.py`) that searches files for byte strings. A process
that uses a database through SQLite must not open and close the file itself, because that would drop its POSIX
locks. The program reads JSON from standard input, {"files": [...], "pieces": [...]}, and prints
[[file, piece], ...]. Top-level imports must work in that mode.
"""

import errno
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def make_folders(path: str) -> None:
    """Create a directory and its missing parents with mode 0700."""
    if not path or os.path.isdir(path):
        return
    make_folders(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):  # if the folder exists, another process created it first
            problem = "a file stands where a folder must be"
            raise NotADirectoryError(errno.ENOTDIR, problem, path) from None
    sync_folder(os.path.dirname(path))


def make_private_file(path: str) -> None:
    """Create an empty file with mode 0600; raise FileExistsError if it exists."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def sync_file(path: str) -> None:
    """Flush a file to disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: str) -> None:
    """Flush a directory's entries to disk."""
    if os.name == "nt":
        return
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(
    path: str,
    data: bytes,
    *,
    mode: int = 0o600,
    durable: bool = True,
    exclusive: bool = False,
    check: "Callable[[], None] | None" = None,
) -> None:
    """Write a file with this mode atomically: write a temporary file in the same directory, and rename it.

    With `exclusive`, raise FileExistsError if the file exists. `check` is called before the rename, and may
    raise an error. Unless `durable` is False, the file and its directory entry are flushed to disk.
    """
    unfinished = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.new"
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if mode != 0o600:
            os.chmod(unfinished, mode)
        if check:
            check()
        if not exclusive:
            os.replace(unfinished, path)
        elif os.name == "nt":
            os.rename(unfinished, path)  # on Windows, rename fails if the target exists
        else:
            os.link(unfinished, path)
    except OSError as error:
        error.filename, error.filename2 = path, None  # name the target, not the temporary file
        raise
    finally:
        if os.path.lexists(unfinished):
            os.unlink(unfinished)
    if durable:
        sync_folder(os.path.dirname(path))


def rename_durably(finished: str, path: str) -> None:
    """Flush a finished file to disk and rename it. A file at the target is replaced."""
    sync_file(finished)
    os.replace(finished, path)
    sync_folder(os.path.dirname(path))


def remove_with_sidecars(path: str) -> None:
    """Remove a database file with its journal, WAL and shared-memory files, if they exist."""
    for ending in ("", "-journal", "-wal", "-shm"):
        try:
            os.unlink(path + ending)
        except FileNotFoundError:
            pass


FIRST_LOCK_PAUSE, LONGEST_LOCK_PAUSE = 0.0005, 0.01

if sys.platform == "win32":
    import msvcrt

    def try_lock_file(handle: int) -> bool:
        """Lock an open file and return True, or return False if it is locked. Closing it releases the lock."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock_file(handle: int) -> bool:
        """Lock an open file and return True, or return False if it is locked. Closing it releases the lock."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def is_file_at(handle: int, path: str) -> bool:
    """Return True if the open file is still the file at this path. Another process may have deleted it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


SCAN_BLOCK_BYTES = 16 * 1024 * 1024


def scan_files(files: list[str], pieces: list[str]) -> list[tuple[str, str]]:
    """Return the pairs (file, piece) where the file contains the piece. Missing files are skipped."""
    needles = [(piece, piece.encode("utf-8", "surrogatepass")) for piece in pieces]
    overlap = max((len(raw) for _, raw in needles), default=1) - 1
    hits: dict[tuple[str, str], None] = {}
    for path in files:
        try:
            file = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError:
            continue
        with file:
            rest = b""
            while block := file.read(SCAN_BLOCK_BYTES):
                data = rest + block
                for piece, raw in needles:
                    if (path, piece) not in hits and raw in data:
                        hits[path, piece] = None
                rest = data[len(data) - overlap :] if overlap else b""
    return list(hits)


def scan_files_in_subprocess(files: list[str], pieces: list[str]) -> list[tuple[str, str]]:
    """Run `scan_files` in a separate process."""
    import subprocess

    from quaid.errors import FileTrouble  # this file also runs as a program without our package

    done = subprocess.run(
        [sys.executable, "-I", "-S", os.path.abspath(__file__)],
        input=json.dumps({"files": files, "pieces": pieces}).encode("utf-8", "surrogatepass"),
        capture_output=True,
    )
    if done.returncode:
        raise FileTrouble(path=files[0], problem="could not be read to the end to prove that nothing is left")
    return [(path, piece) for path, piece in json.loads(done.stdout)]


if __name__ == "__main__":
    _request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(scan_files(_request["files"], _request["pieces"])))
