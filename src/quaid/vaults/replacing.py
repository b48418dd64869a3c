"""One file of the user's folder, made, replaced or taken back: durably, whole or not at all, never over unread text.

The new text is written beside the file under a name that nobody has, and synced. Then the two change places in one
step, and only what comes out of the old place is judged: is it the text that the caller had read, and has nobody it
open to write? If not, they change back. So no moment exists in which somebody's edit could be overwritten unseen;
what cannot go back stays beside the file as a conflict copy. Where the system cannot exchange two files, the old one
is read again right before the rename.

Knows bytes and hashes, not pages. What a killed process leaves behind is leftovers.py's business.
"""

import errno
import hashlib
import os
import signal
import stat
import sys
from collections.abc import Callable

from quaid.errors import FileChanged, FileTrouble
from quaid.storage.sqlite.errors import translate_os_errors
from quaid.vaults.scan import FILE_FLAGS, Folder

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
UNFINISHED = ".quaid-{token}.new"
"""Ours, and perhaps not all of it. Hidden, so that neither we nor an editor takes it for a page."""

TEMPORARY = ".quaid-{token}-{ours}-{theirs}.tmp"
"""Ours, until it changes places with the user's file; then that one, until it is judged. The hashes of both texts,
or how they begin, tell later which one it is, and that it is neither."""

MARK = 16
LONGEST_NAME = 255

_EXCHANGE = 2
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)

Exchange = Callable[[int, str, str], bool]


def create(folder: Folder, path: str, data: bytes, token: str) -> None:
    """Put a new file in its place, with the folders that it needs. FileChanged when one is there already."""
    with translate_os_errors(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent, make=True)
        unfinished = _write(place, data, token)
        try:
            _move(place, unfinished, name)
        except FileExistsError:
            raise FileChanged(path=path) from None
        finally:
            _forget(place, unfinished)
        os.fsync(place)


def replace(
    folder: Folder, path: str, data: bytes, expected: str, token: str, exchange: Exchange | None = None
) -> None:
    """Replace a file whose bytes have the hash `expected`; FileChanged, and nothing changed, when they have not."""
    swap = exchange or exchanged
    with translate_os_errors(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent)
        before = _look(place, name, path)
        if _hash_of(place, name) != expected:
            raise FileChanged(path=path)
        ours = hashlib.sha256(data).hexdigest()
        temporary = TEMPORARY.format(token=token, ours=ours[:MARK], theirs=expected[:MARK])
        unfinished = _write(place, data, token, stat.S_IMODE(before.st_mode))
        try:
            os.rename(unfinished, temporary, src_dir_fd=place, dst_dir_fd=place)
            if not swap(place, temporary, name):
                if _hash_of(place, name) != expected:
                    raise FileChanged(path=path)
                os.rename(temporary, name, src_dir_fd=place, dst_dir_fd=place)
            elif _hash_of(place, temporary) != expected:
                swap(place, temporary, name)
                raise FileChanged(path=path)
            os.fsync(place)
        finally:
            _clear(place, temporary, name, (ours, expected), token)


def remove(folder: Folder, path: str, expected: str, token: str) -> None:
    """Take a file away whose bytes have this hash; any other stays."""
    with translate_os_errors(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent)
        if _hash_of(place, name) != expected:
            return
        temporary = TEMPORARY.format(token=token, ours=expected[:MARK], theirs=expected[:MARK])
        os.rename(name, temporary, src_dir_fd=place, dst_dir_fd=place)
        if _hash_of(place, temporary) != expected:
            try:
                _move(place, temporary, name)
            except FileExistsError:
                pass
        _clear(place, temporary, name, (expected,), token)
        os.fsync(place)


def keep_beside(place: int, temporary: str, name: str, content_hash: str, token: str) -> str:
    """Let somebody's text that has lost its place stand beside the file that has it now. Under which name?"""
    for mark in (content_hash[:8], token):
        beside = _beside(name, mark)
        try:
            _move(place, temporary, beside)
        except FileExistsError:
            continue
        os.fsync(place)
        return beside
    return temporary


def _clear(place: int, temporary: str, name: str, known: tuple[str, ...], token: str) -> None:
    """Nothing of ours stays beside the file, and nothing goes that was not read."""
    if not _is_there(place, temporary):
        return
    found = _hash_of(place, temporary)
    if found in known:
        _forget(place, temporary)
    else:
        keep_beside(place, temporary, name, found, token)


def _beside(name: str, mark: str) -> str:
    stem, dot, ending = name.rpartition(".")
    tail = f".conflict-{mark}{dot}{ending}"
    while len(os.fsencode(stem + tail)) > LONGEST_NAME:
        stem = stem[:-1]
    return stem + tail


def _move(place: int, old: str, new: str) -> None:
    """Give a file another name, which must be free: FileExistsError."""
    try:
        os.link(old, new, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        if _is_there(place, new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(old, new, src_dir_fd=place, dst_dir_fd=place)
        return
    os.unlink(old, dir_fd=place)


def _look(place: int, name: str, path: str) -> os.stat_result:
    try:
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        raise FileChanged(path=path) from None
    if not stat.S_ISREG(found.st_mode):
        raise FileTrouble(path=path, problem="is not a plain file; it was not written")
    return found


def _is_there(place: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _hash_of(place: int, name: str) -> str:
    """The hash of a file's bytes; nothing for what is no file, cannot be read, or is just being written."""
    try:
        handle = os.open(name, FILE_FLAGS, dir_fd=place)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        lease = _lease(handle)
        with os.fdopen(os.dup(handle), "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return "" if lease is False or (lease and not _is_leased(handle)) else found
    finally:
        os.close(handle)


def _lease(handle: int) -> bool | None:
    """Ask for a read lease, which the system grants on a file that nobody has open to write. None: it cannot tell.

    Who opens the file to write while we have it waits until our handle is closed."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)  # the usual signal for this ends the process
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as refusal:
        return False if refusal.errno == errno.EAGAIN else None
    return True


def _is_leased(handle: int) -> bool:
    """Whether nobody waits for the end of our lease."""
    import fcntl

    return sys.platform != "linux" or fcntl.fcntl(handle, fcntl.F_GETLEASE) == fcntl.F_RDLCK


def _write(place: int, data: bytes, token: str, mode: int | None = None) -> str:
    """The bytes under a name of their own, on the disk. Without a mode, that of any new file of this user."""
    name = UNFINISHED.format(token=token)
    handle = os.open(name, NEW_FILE, 0o666 if mode is None else 0o600, dir_fd=place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
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
    if sys.platform != "linux":
        return False
    import ctypes  # a page without a file can spare it

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(place, os.fsencode(one), place, os.fsencode(other), _EXCHANGE) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _NOT_HERE:
        return False
    raise OSError(problem, os.strerror(problem), other)
