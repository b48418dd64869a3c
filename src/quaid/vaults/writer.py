"""Files into a folder that is not ours: private, whole or not at all, and never through a link.

Every file is opened from the handle of its folder, written under another name and then renamed, so that a
reader sees the old file or the new one. Knows paths and bytes, not what they mean.
"""

import errno
import os

from quaid.errors import FileTrouble, FolderNotEmpty
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors
from quaid.vaults.scan import FOLDER_FLAGS

UNFINISHED = ".quaid-unfinished"
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


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
            handle = os.open(UNFINISHED, NEW_FILE, 0o600, dir_fd=folder)
        except FileExistsError:  # an export was cut short here
            _forget(folder)
            handle = os.open(UNFINISHED, NEW_FILE, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.rename(UNFINISHED, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _forget(folder)
            raise

    def _enter(self, names: list[str]) -> int:
        place = "/".join(names)
        if self._near[0] == place:
            return self._near[1]
        self._leave()
        handle = self._handle
        for depth, name in enumerate(names, 1):
            try:
                below, made = _open_or_make(name, handle)
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


def _open_or_make(name: str, above: int) -> tuple[int, bool]:
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


def _forget(folder: int) -> None:
    try:
        os.unlink(UNFINISHED, dir_fd=folder)
    except FileNotFoundError:
        pass
