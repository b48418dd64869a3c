"""Write files atomically and durably, without losing a concurrent edit by another process.

The new content is written to a temporary file beside the target and synced to disk, then the two files are
exchanged atomically (or, where the system cannot exchange files, the temporary file is renamed over the
target). If the displaced file is not the version that the caller had read, the exchange is reversed. If
another process's edit is in the temporary file at the end, that file is kept beside the target as a conflict
copy.
"""

import errno
import hashlib
import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from quaid.errors import FileChanged, FileTrouble, FolderNotEmpty, QuaidError
from quaid.folders.scanner import FILE_FLAGS, FileNote, Folder
from quaid.model.sync_plan import ScannedFile
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

NEW_FILE_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
UNFINISHED_NAME = ".quaid-{token}.new"
"""The name of a new file that may be incomplete.

It begins with a dot, so that a sync does not treat the file as a page.
"""

HASH_PREFIX_LENGTH = 16
MAX_NAME_BYTES = 255

_RENAME_EXCHANGE = 2
_EXCHANGE_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
_LINK_UNSUPPORTED = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)

ExchangeFunction = Callable[[int, str, str], bool]


@contextmanager
def _entered(folder: Folder, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Enter the folder of a file. Yield the handle of that folder and the name of the file.

    With `make`, missing folders are created. Errors of the operating system are translated to classes of
    quaid.errors.
    """
    with translate_os_errors(os.path.join(folder.root, path)):
        yield folder.enter_parent(path, make=make)


def create_file(folder: Folder, path: str, data: bytes, token: str) -> None:
    """Create a file atomically, with its missing parent folders. Raise FileChanged if the file exists."""
    with _entered(folder, path, make=True) as (place, name):
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
    """Write `data` to a file whose present content has the SHA-256 `expected`; otherwise raise FileChanged."""
    swap = exchange or exchange_files
    with _entered(folder, path) as (place, name):
        before = _stat_plain_file(place, name, path)
        if _stable_hash(place, name) != expected:
            raise FileChanged(path=path)
        ours = hashlib.sha256(data).hexdigest()
        temporary = temporary_name(token, ours, expected)
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
    """Remove a file if the SHA-256 of its bytes is `expected`; otherwise leave it."""
    with _entered(folder, path) as (place, name):
        if _stable_hash(place, name) != expected:
            return
        temporary = temporary_name(token, expected, expected)
        os.rename(name, temporary, src_dir_fd=place, dst_dir_fd=place)
        if _stable_hash(place, temporary) != expected:
            with suppress(FileExistsError):
                _rename_exclusive(place, temporary, name)
        _remove_temporary(place, temporary, name, (expected,), token)
        os.fsync(place)


def written_file(folder: Folder, path: str) -> ScannedFile:
    """Return a file that was just written, with its stat. Raise FileChanged if it is not a page file any more."""
    file = folder.look(path)
    if not isinstance(file, ScannedFile):
        raise FileChanged(path=path)
    return file


def keep_conflict_copy(place: int, temporary: str, name: str, content_hash: str, token: str) -> str:
    """Rename a temporary file that contains another process's edit to a conflict copy of `name`.

    Return the new name, or `temporary` if both candidate names are taken.
    """
    for mark in (content_hash[:8], token):
        beside = _conflict_name(name, mark)
        try:
            _rename_exclusive(place, temporary, beside)
        except FileExistsError:
            continue
        os.fsync(place)
        return beside
    return temporary


def _remove_temporary(
    place: int, temporary: str, name: str, expected_hashes: tuple[str, ...], token: str
) -> None:
    """Delete the temporary file if its hash is in `expected_hashes`; otherwise keep it as a conflict copy."""
    if not _exists(place, temporary):
        return
    digest = _stable_hash(place, temporary)
    if digest in expected_hashes:
        _unlink_if_exists(place, temporary)
    else:
        keep_conflict_copy(place, temporary, name, digest, token)


def temporary_name(token: str, ours: str, theirs: str) -> str:
    """Return the name of the temporary file that is exchanged with the target.

    Before the exchange, the file contains the new content, with the SHA-256 `ours`; after it, the old
    content, with the SHA-256 `theirs`. The name contains a prefix of both hashes, so that after a crash an
    edit by another process can be told from these two contents.
    """
    return f".quaid-{token}-{ours[:HASH_PREFIX_LENGTH]}-{theirs[:HASH_PREFIX_LENGTH]}.tmp"


def _conflict_name(name: str, mark: str) -> str:
    stem, dot, ending = name.rpartition(".")
    tail = f".conflict-{mark}{dot}{ending}"
    while len(os.fsencode(stem + tail)) > MAX_NAME_BYTES:
        stem = stem[:-1]
    return stem + tail


def _rename_exclusive(place: int, old: str, new: str) -> None:
    """Rename a file without overwriting. Raise FileExistsError if the new name is taken."""
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
        status = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        raise FileChanged(path=path) from None
    if not stat.S_ISREG(status.st_mode):
        raise FileTrouble(path=path, problem="is not a plain file; it was not written")
    return status


def _exists(place: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _stable_hash(place: int, name: str) -> str:
    """Return the SHA-256 of a file; "" if it is missing, not regular, unreadable or (on Linux) open for writing."""
    try:
        handle = os.open(name, FILE_FLAGS, dir_fd=place)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        lease = _take_read_lease(handle)
        with os.fdopen(os.dup(handle), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return "" if lease is False or (lease and not _holds_read_lease(handle)) else digest
    finally:
        os.close(handle)


def _take_read_lease(handle: int) -> bool | None:
    """Take a read lease, which Linux grants only if no process has the file open for writing.

    Return True if the lease was granted, False if it was refused, and None if leases are not available. While
    the lease is held, a process that opens the file for writing blocks until our handle is closed.
    """
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)  # the default signal, SIGIO, would end the process
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as refusal:
        return False if refusal.errno == errno.EAGAIN else None
    return True


def _holds_read_lease(handle: int) -> bool:
    """Return True if no other process has tried to open the file for writing since the lease was taken."""
    import fcntl

    return sys.platform != "linux" or fcntl.fcntl(handle, fcntl.F_GETLEASE) == fcntl.F_RDLCK


def _write_unfinished(place: int, data: bytes, token: str, mode: int | None = None) -> str:
    """Write the data to a new temporary file, sync it to disk and return its name.

    The file gets the permissions `mode` or, without `mode`, the default permissions under the umask.
    """
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
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)


def exchange_files(place: int, one: str, other: str) -> bool:
    """Exchange two files of a folder atomically. Return False if the system does not support this."""
    if sys.platform != "linux":
        return False
    import ctypes  # imported late, because it is only needed to write files

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(place, os.fsencode(one), place, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _EXCHANGE_UNSUPPORTED:
        return False
    raise OSError(problem, os.strerror(problem), other)


# Temporary files of interrupted writes

_LEFTOVER_NAME = re.compile(
    r"\.quaid-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.new|-([0-9a-f]{16})-([0-9a-f]{16})\.tmp)"
)


def is_leftover(path: str) -> bool:
    """Return True if the file name has the form of our temporary file names."""
    return _LEFTOVER_NAME.fullmatch(path.rpartition("/")[2]) is not None


def settle_leftover(folder: Folder, path: str, name_to_keep: str = "saved.md") -> FileNote | None:
    """Delete a temporary file that an interrupted write left behind, unless it contains another process's edit.

    A new file that may be incomplete is always deleted. A file of an exchange is kept as a conflict copy of
    `name_to_keep` if its hash matches neither of the two prefixes in its name. The caller must hold the
    writer lock. Return a note if the file was kept or could not be handled, else None.
    """
    match = _LEFTOVER_NAME.fullmatch(path.rpartition("/")[2])
    assert match is not None
    token, ours, theirs = match.groups()
    try:
        with translate_os_errors(path):
            place, name = folder.enter_parent(path)
            digest = hashlib.sha256(folder.read(path)).hexdigest() if ours else ""
            if not ours or digest.startswith((ours, theirs)):
                os.unlink(name, dir_fd=place)
                return None
            copy_name = keep_conflict_copy(place, name, name_to_keep, digest, token)
    except QuaidError as trouble:
        return FileNote(path, str(trouble).rstrip("."))
    return FileNote(path, f"somebody's text, saved while Quaid was killed; it is in {copy_name} now")


# Export folders

EXPORT_UNFINISHED_NAME = ".quaid-unfinished"


class FolderWriter(Folder):
    """A folder that an export writes into. It must be new or empty unless `force` is True."""

    def __init__(self, root: str, *, force: bool) -> None:
        self.written: list[str] = []
        self._made: list[str] = []  # paths to remove if the export fails, in order of creation
        self._may_take_back = not force
        with translate_os_errors(root):
            if os.path.lexists(root) and not os.path.isdir(root):
                raise FileTrouble(path=root, problem="is a file, not a folder; name another one")
            self._made_root = not os.path.exists(root)
            durable_files.make_folders(root)
            if not force and os.listdir(root):
                raise FolderNotEmpty(path=root)
            super().__init__(root)

    def __enter__(self) -> "FolderWriter":
        return self

    def __exit__(self, *error: object) -> None:
        failed = error[0] is not None
        try:
            if not failed:
                os.fsync(self._handle)
        finally:
            super().__exit__(*error)
            if failed and self._may_take_back:
                self._take_back()

    def _take_back(self) -> None:
        """Remove the files and folders that a failed export created, and nothing else."""
        for path in reversed(self._made):
            with suppress(OSError):
                (os.rmdir if path.endswith("/") else os.unlink)(os.path.join(self.root, path))
        if self._made_root:
            with suppress(OSError):
                os.rmdir(self.root)

    def write(self, path: str, data: bytes) -> None:
        """Write the data to a file below the root, replacing an existing file atomically.

        Missing parent folders are created. Raise FileTrouble if the path has an empty part, a dot, two dots or a NUL.
        """
        if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
            raise FileTrouble(path=path, problem="leads out of the folder; it was not written")
        with translate_os_errors(os.path.join(self.root, path)):
            self._put(*self.enter_parent(path, make=True), data)
        self._made.append(path)
        self.written.append(path)

    def _put(self, folder: int, name: str, data: bytes) -> None:
        _unlink_if_exists(folder, EXPORT_UNFINISHED_NAME)  # left by an interrupted export
        handle = os.open(EXPORT_UNFINISHED_NAME, NEW_FILE_FLAGS, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.rename(EXPORT_UNFINISHED_NAME, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _unlink_if_exists(folder, EXPORT_UNFINISHED_NAME)
            raise

    def make_folder(self, name: str, above: int, path: str) -> None:
        """Create a folder that only its owner can enter, unless it exists.

        `_take_back` removes it if the export fails.
        """
        try:
            os.mkdir(name, 0o700, dir_fd=above)
        except FileExistsError as error:
            if not stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                problem = f"a file or a link named {name} is where a folder must be"
                raise OSError(error.errno, f"{problem}; remove it or name another folder") from None
        else:
            self._made.append(f"{path}/")
