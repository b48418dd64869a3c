"""Write files atomically and durably, without losing an edit that someone else makes at the same moment.

The new text is written beside the file and synced, then the two change places in one step. If what comes out is not
the text that the caller had read, they change back; what cannot go back is kept beside the file as a conflict copy.
"""

import errno
import hashlib
import os
import re
import signal
import stat
import sys
from collections.abc import Callable

from quaid.errors import FileChanged, FileTrouble, FolderNotEmpty, QuaidError
from quaid.folders.scanner import FILE_FLAGS, FOLDER_FLAGS, FileNote, Folder
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

NEW_FILE_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
UNFINISHED_NAME = ".quaid-{token}.new"
"""Ours, and perhaps not all of it. Hidden, so that neither we nor an editor takes it for a page."""

TEMPORARY_NAME = ".quaid-{token}-{ours}-{theirs}.tmp"
"""Ours, until it changes places with the user's file; then that one, until it is judged. The hashes of both texts,
or how they begin, tell later which one it is, and that it is neither."""

HASH_PREFIX_LENGTH = 16
MAX_NAME_BYTES = 255

_RENAME_EXCHANGE = 2
_EXCHANGE_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
_LINK_UNSUPPORTED = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)

ExchangeFunction = Callable[[int, str, str], bool]


def create_file(folder: Folder, path: str, data: bytes, token: str) -> None:
    """Put a new file in its place, with the folders that it needs. FileChanged when one is there already."""
    with translate_os_errors(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent, make=True)
        unfinished = _write_unfinished(place, data, token)
        try:
            _rename_exclusive(place, unfinished, name)
        except FileExistsError:
            raise FileChanged(path=path) from None
        finally:
            _unlink_if_exists(place, unfinished)
        os.fsync(place)


def replace_file(
    folder: Folder,
    path: str,
    data: bytes,
    expected: str,
    token: str,
    exchange: ExchangeFunction | None = None,
) -> None:
    """Replace a file whose bytes have the hash `expected`; FileChanged, and nothing changed, when they have not."""
    swap = exchange or exchange_files
    with translate_os_errors(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent)
        before = _stat_plain_file(place, name, path)
        if _stable_hash(place, name) != expected:
            raise FileChanged(path=path)
        ours = hashlib.sha256(data).hexdigest()
        temporary = TEMPORARY_NAME.format(
            token=token, ours=ours[:HASH_PREFIX_LENGTH], theirs=expected[:HASH_PREFIX_LENGTH]
        )
        unfinished = _write_unfinished(place, data, token, stat.S_IMODE(before.st_mode))
        try:
            os.rename(unfinished, temporary, src_dir_fd=place, dst_dir_fd=place)
            if not swap(place, temporary, name):
                if _stable_hash(place, name) != expected:
                    raise FileChanged(path=path)
                os.rename(temporary, name, src_dir_fd=place, dst_dir_fd=place)
            elif _stable_hash(place, temporary) != expected:
                swap(place, temporary, name)
                raise FileChanged(path=path)
            os.fsync(place)
        finally:
            _remove_temporary(place, temporary, name, (ours, expected), token)


def remove_file(folder: Folder, path: str, expected: str, token: str) -> None:
    """Take a file away whose bytes have this hash; any other stays."""
    with translate_os_errors(os.path.join(folder.root, path)):
        parent, _, name = path.rpartition("/")
        place = folder.enter(parent)
        if _stable_hash(place, name) != expected:
            return
        temporary = TEMPORARY_NAME.format(
            token=token, ours=expected[:HASH_PREFIX_LENGTH], theirs=expected[:HASH_PREFIX_LENGTH]
        )
        os.rename(name, temporary, src_dir_fd=place, dst_dir_fd=place)
        if _stable_hash(place, temporary) != expected:
            try:
                _rename_exclusive(place, temporary, name)
            except FileExistsError:
                pass
        _remove_temporary(place, temporary, name, (expected,), token)
        os.fsync(place)


def keep_conflict_copy(place: int, temporary: str, name: str, content_hash: str, token: str) -> str:
    """Let somebody's text that has lost its place stand beside the file that has it now. Under which name?"""
    for mark in (content_hash[:8], token):
        beside = _conflict_name(name, mark)
        try:
            _rename_exclusive(place, temporary, beside)
        except FileExistsError:
            continue
        os.fsync(place)
        return beside
    return temporary


def _remove_temporary(place: int, temporary: str, name: str, known: tuple[str, ...], token: str) -> None:
    """Nothing of ours stays beside the file, and nothing goes that was not read."""
    if not _exists(place, temporary):
        return
    found = _stable_hash(place, temporary)
    if found in known:
        _unlink_if_exists(place, temporary)
    else:
        keep_conflict_copy(place, temporary, name, found, token)


def _conflict_name(name: str, mark: str) -> str:
    stem, dot, ending = name.rpartition(".")
    tail = f".conflict-{mark}{dot}{ending}"
    while len(os.fsencode(stem + tail)) > MAX_NAME_BYTES:
        stem = stem[:-1]
    return stem + tail


def _rename_exclusive(place: int, old: str, new: str) -> None:
    """Give a file another name, which must be free: FileExistsError."""
    try:
        os.link(old, new, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as problem:
        if problem.errno not in _LINK_UNSUPPORTED:
            raise
        if _exists(place, new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(old, new, src_dir_fd=place, dst_dir_fd=place)
        return
    os.unlink(old, dir_fd=place)


def _stat_plain_file(place: int, name: str, path: str) -> os.stat_result:
    try:
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        raise FileChanged(path=path) from None
    if not stat.S_ISREG(found.st_mode):
        raise FileTrouble(path=path, problem="is not a plain file; it was not written")
    return found


def _exists(place: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _stable_hash(place: int, name: str) -> str:
    """The hash of a file's bytes; nothing for what is no file, cannot be read, or is just being written."""
    try:
        handle = os.open(name, FILE_FLAGS, dir_fd=place)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        lease = _take_read_lease(handle)
        with os.fdopen(os.dup(handle), "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return "" if lease is False or (lease and not _holds_read_lease(handle)) else found
    finally:
        os.close(handle)


def _take_read_lease(handle: int) -> bool | None:
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


def _holds_read_lease(handle: int) -> bool:
    """Whether nobody waits for the end of our lease."""
    import fcntl

    return sys.platform != "linux" or fcntl.fcntl(handle, fcntl.F_GETLEASE) == fcntl.F_RDLCK


def _write_unfinished(place: int, data: bytes, token: str, mode: int | None = None) -> str:
    """The bytes under a name of their own, on the disk. Without a mode, that of any new file of this user."""
    name = UNFINISHED_NAME.format(token=token)
    handle = os.open(name, NEW_FILE_FLAGS, 0o666 if mode is None else 0o600, dir_fd=place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        _unlink_if_exists(place, name)
        raise
    return name


def _unlink_if_exists(place: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        pass


def exchange_files(place: int, one: str, other: str) -> bool:
    """Let two files of a folder change places in one step. False where the system cannot."""
    if sys.platform != "linux":
        return False
    import ctypes  # a page without a file can spare it

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(place, os.fsencode(one), place, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _EXCHANGE_UNSUPPORTED:
        return False
    raise OSError(problem, os.strerror(problem), other)


_LEFTOVER_NAME = re.compile(
    r"\.quaid-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.new|-([0-9a-f]{16})-([0-9a-f]{16})\.tmp)"
)


def is_leftover(path: str) -> bool:
    """Whether a file has a name that only we give."""
    return _LEFTOVER_NAME.fullmatch(path.rpartition("/")[2]) is not None


def settle_leftover(folder: Folder, path: str, name_to_keep: str = "saved.md") -> FileNote | None:
    """Remove one of them, or keep it under another name; the caller holds the lock under which it was made."""
    parent, _, name = path.rpartition("/")
    match = _LEFTOVER_NAME.fullmatch(name)
    assert match is not None
    token, ours, theirs = match.groups()
    try:
        with translate_os_errors(path):
            place = folder.enter(parent)
            found = hashlib.sha256(folder.read(path)).hexdigest() if ours else ""
            if not ours or found.startswith((ours, theirs)):
                os.unlink(name, dir_fd=place)
                return None
            kept = keep_conflict_copy(place, name, name_to_keep, found, token)
    except QuaidError as trouble:
        return FileNote(path, str(trouble).rstrip("."))
    return FileNote(path, f"somebody's text, saved while Quaid was killed; it is in {kept} now")


EXPORT_UNFINISHED_NAME = ".quaid-unfinished"
EXPORT_FILE_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)


class FolderWriter:
    """A folder to write into; it must be new or empty unless `force` is given."""

    def __init__(self, root: str, *, force: bool) -> None:
        self.root = root
        self.written: list[str] = []
        with translate_os_errors(root):
            if os.path.lexists(root) and not os.path.isdir(root):
                raise FileTrouble(path=root, problem="is a file, not a folder; name another one")
            self._made_root = not os.path.exists(root)
            self._made: list[str] = []  # what an export that fails takes back, in the order of making
            self._may_take_back = not force
            durable_files.make_folders(root)
            if not force and os.listdir(root):
                raise FolderNotEmpty(path=root)
            self._handle = os.open(root, FOLDER_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
        self._near: tuple[str, int] = ("", self._handle)

    def __enter__(self) -> "FolderWriter":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._leave()
        try:
            if kind is None:
                os.fsync(self._handle)
        finally:
            os.close(self._handle)
            if kind is not None and self._may_take_back:
                self._take_back()

    def _take_back(self) -> None:
        """Half an export is none: remove what we made, and nothing that somebody else put there meanwhile."""
        for path in reversed(self._made):
            whole = os.path.join(self.root, path)
            try:
                if path.endswith("/"):
                    os.rmdir(whole)
                else:
                    os.unlink(whole)
            except OSError:
                pass
        if self._made_root:
            try:
                os.rmdir(self.root)
            except OSError:
                pass

    def write(self, path: str, data: bytes) -> None:
        """Put a file in its place, with the folders that it needs."""
        parts = path.split("/")
        if "\0" in path or any(part in ("", ".", "..") for part in parts):
            raise FileTrouble(path=path, problem="leads out of the folder; it was not written")
        with translate_os_errors(os.path.join(self.root, path)):
            self._put(self._enter(parts[:-1]), parts[-1], data)
        self._made.append(path)
        self.written.append(path)

    def _put(self, folder: int, name: str, data: bytes) -> None:
        try:
            handle = os.open(EXPORT_UNFINISHED_NAME, EXPORT_FILE_FLAGS, 0o600, dir_fd=folder)
        except FileExistsError:  # an export was cut short here
            _unlink_unfinished_export(folder)
            handle = os.open(EXPORT_UNFINISHED_NAME, EXPORT_FILE_FLAGS, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.rename(EXPORT_UNFINISHED_NAME, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _unlink_unfinished_export(folder)
            raise

    def _enter(self, names: list[str]) -> int:
        place = "/".join(names)
        if self._near[0] == place:
            return self._near[1]
        self._leave()
        handle = self._handle
        for depth, name in enumerate(names, 1):
            try:
                below, made = _open_or_make_folder(name, handle)
                if made:
                    self._made.append("/".join(names[:depth]) + "/")
            finally:
                if handle != self._handle:
                    os.close(handle)
            handle = below
        self._near = (place, handle)
        return handle

    def _leave(self) -> None:
        if self._near[1] != self._handle:
            os.close(self._near[1])
        self._near = ("", self._handle)


def _open_or_make_folder(name: str, above: int) -> tuple[int, bool]:
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=above), False
    except FileNotFoundError:
        os.mkdir(name, 0o700, dir_fd=above)
        return os.open(name, FOLDER_FLAGS, dir_fd=above), True
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        problem = f"a file or a link named {name} is where a folder must be; remove it or name another folder"
        raise OSError(error.errno, problem) from None


def _unlink_unfinished_export(folder: int) -> None:
    try:
        os.unlink(EXPORT_UNFINISHED_NAME, dir_fd=folder)
    except FileNotFoundError:
        pass
