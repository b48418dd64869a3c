"""One file of the user's folder, made or replaced: durably, whole or not at all, and never over unread text.

The new text is written beside the file under a name that nobody has, and synced. Then the two change places in one
step, and only what comes out of the old place is judged: is it the text that the caller had read? If not, they
change back. So no moment exists in which somebody's edit could be overwritten unseen. Where the system cannot
exchange two files, the old one is read again right before the rename.

Knows bytes and hashes, not pages.
"""

import ctypes
import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable

from quaid.errors import FileChanged, FileTrouble
from quaid.store.trouble import system_told_plainly
from quaid.vaults.scan import FILE_FLAGS, Folder

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
TEMPORARY = ".quaid-{}.tmp"
"""Hidden, so that neither we nor an editor takes it for a page."""

_EXCHANGE = 2
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)

Exchange = Callable[[int, str, str], bool]


def create(folder: Folder, path: str, data: bytes, token: str) -> None:
    """Put a new file in its place, with the folders that it needs. FileChanged when one is there already."""
    with system_told_plainly(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent, make=True)
        temporary = _write(place, data, token, 0o644)
        try:
            os.link(temporary, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
        except FileExistsError:
            raise FileChanged(path=path) from None
        finally:
            os.unlink(temporary, dir_fd=place)
        os.fsync(place)


def replace(
    folder: Folder, path: str, data: bytes, expected: str, token: str, exchange: Exchange | None = None
) -> None:
    """Replace a file whose bytes have the hash `expected`; FileChanged, and nothing changed, when they have not."""
    with system_told_plainly(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent)
        before = _look(place, name, path)
        if _hash_of(place, name) != expected:
            raise FileChanged(path=path)
        temporary = _write(place, data, token, stat.S_IMODE(before.st_mode))
        try:
            if (exchange or exchanged)(place, temporary, name):
                _judge(place, temporary, name, data, expected, path, exchange or exchanged)
            else:
                if _hash_of(place, name) != expected:
                    raise FileChanged(path=path)
                os.rename(temporary, name, src_dir_fd=place, dst_dir_fd=place)
                os.fsync(place)
                return
        except BaseException:
            _forget(place, temporary)
            raise
        os.fsync(place)
        _forget(place, temporary)


def _judge(
    place: int, temporary: str, name: str, data: bytes, expected: str, path: str, exchange: Exchange
) -> None:
    """Look at what came out of the old place; what nobody had read goes back."""
    if _hash_of(place, temporary) == expected:
        return
    exchange(place, temporary, name)
    ours = _hash_of(place, temporary)
    if ours != hashlib.sha256(data).hexdigest():
        # Somebody wrote again in the moment between: their newest text stays beside the file.
        stem, dot, ending = name.rpartition(".")
        os.rename(temporary, f"{stem}.conflict-{ours[:8]}{dot}{ending}", src_dir_fd=place, dst_dir_fd=place)
        os.fsync(place)
    raise FileChanged(path=path)


def _look(place: int, name: str, path: str) -> os.stat_result:
    try:
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        raise FileChanged(path=path) from None
    if not stat.S_ISREG(found.st_mode):
        raise FileTrouble(path=path, problem="is not a plain file; it was not written")
    return found


def _hash_of(place: int, name: str) -> str:
    try:
        handle = os.open(name, FILE_FLAGS, dir_fd=place)
    except FileNotFoundError:
        return ""
    with os.fdopen(handle, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(place: int, data: bytes, token: str, mode: int) -> str:
    """The bytes under a name of their own, on the disk."""
    name = TEMPORARY.format(token)
    handle = os.open(name, NEW_FILE, 0o600, dir_fd=place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        _forget(place, name)
        raise
    return name


def _forget(place: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        pass


def exchanged(place: int, one: str, other: str) -> bool:
    """Let two files of a folder change places in one step. False where the system cannot."""
    rename = (
        getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    )
    if rename is None:
        return False
    if rename(place, os.fsencode(one), place, os.fsencode(other), _EXCHANGE) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _NOT_HERE:
        return False
    raise OSError(problem, os.strerror(problem), other)
