"""Walk a folder and read its files without following links: which files are pages or sidecars, and why others are
skipped.
"""

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from quaid.errors import FileTrouble, NotFound

MARKDOWN = (".md", ".markdown")
PAGE_ENDINGS = (*MARKDOWN, ".org")
RAW_FOLDER = ".raw"
SPECIAL_NAMES = ("index.md", "schema.md", "readme.md")  # at the root, in any case; they make no page
SKIPPED_FOLDERS = ("node_modules",)
LARGEST_FILE = 4 * 1024 * 1024
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
FOLDER_FLAGS = os.O_RDONLY | NO_LINK | getattr(os, "O_DIRECTORY", 0)
# Opening a named pipe that nobody writes to would wait for ever.
FILE_FLAGS = os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0)
MAX_DEPTH = 150  # folders within folders, more than any slug can have; each keeps a handle open

HIDDEN_FOLDER = "hidden folder"
HIDDEN_FILE = "hidden file"
TOOL_FOLDER = "folder of another tool"
OTHER_KIND = "other kind of file"
SYMLINK = "link"
NOT_A_FILE = "neither file nor folder"
UNREADABLE = "unreadable"
BAD_NAME = "name is not UTF-8"
TOO_DEEP = "too many folders deep"
GONE = "gone while it was read"
IGNORED = "ignored"

FileKind = Literal["page", "special", "sidecar"]

IgnoreCheck = Callable[[str], bool]
"""Whether a path is to be left out; that of a folder ends with a slash."""


def ignore_nothing(_path: str) -> bool:
    return False


class FoundFile(NamedTuple):
    """A file that an import takes in. The path is relative to the root, as the disk spells it."""

    path: str
    kind: FileKind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @property
    def key(self) -> str:
        """The path in one spelling: file systems disagree on how to compose accents."""
        return path_key(self.path)


class SkippedEntry(NamedTuple):
    path: str  # printable; a folder that was not entered ends with a slash
    reason: str


def page_endings(kind: str) -> tuple[str, ...]:
    """How the names of files end that are pages in a collection of this kind: a notebook is markdown."""
    return MARKDOWN if kind == "notebook" else PAGE_ENDINGS


def path_key(path: str) -> str:
    if path.isascii():
        return path
    return unicodedata.normalize("NFC", path)


def is_visible(path: str) -> bool:
    """Whether a walk would come by this path: no hidden folder or folder of another tool on the way."""
    return not any(name.startswith(".") or name in SKIPPED_FOLDERS for name in path.split("/")[:-1])


class Folder:
    """An open folder. Files below it are opened step by step, links refused."""

    def __init__(self, root: str, endings: tuple[str, ...] = MARKDOWN) -> None:
        self.root = root
        self.endings = endings
        self._handle = _open_root(root)
        self._near: tuple[str, int] = ("", self._handle)  # the folder of the last file read

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        os.close(self._handle)

    @property
    def identity(self) -> int:
        """The number by which the file system knows the folder: another one means that it was replaced."""
        return os.fstat(self._handle).st_ino

    def walk(self, ignored: IgnoreCheck = ignore_nothing) -> Iterator[FoundFile | SkippedEntry]:
        """Everything in the folder, each folder's entries in the order of their names."""
        yield from _FolderWalk(self.endings, ignored).entries(self._handle, "", 0)

    def look(self, path: str) -> FoundFile | SkippedEntry | None:
        """One entry, as walk would give it; None when it is not there. A folder is left out, and so is a link, which
        is named when it stands for a folder on the way."""
        parent, _, name = path.rpartition("/")
        try:
            facts = os.stat(name, dir_fd=self.enter(parent), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            link = self._link_on_the_way(parent)
            return SkippedEntry(link, SYMLINK) if link else None
        except OSError:
            return SkippedEntry(path, UNREADABLE)
        if stat.S_ISLNK(facts.st_mode):
            return SkippedEntry(path, SYMLINK)
        in_raw = f"/{path}".rpartition("/")[0].endswith(f"/{RAW_FOLDER}")
        kind = _file_kind(name, parent, in_raw, self.endings)
        if not stat.S_ISREG(facts.st_mode) or kind is None:
            return SkippedEntry(path, OTHER_KIND if stat.S_ISREG(facts.st_mode) else NOT_A_FILE)
        return FoundFile(path, kind, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)

    def _link_on_the_way(self, parent: str) -> str:
        """The first folder of a path that is a link, or nothing."""
        steps = parent.split("/")
        for depth in range(len(steps)):
            path = "/".join(steps[: depth + 1])
            try:
                if path and stat.S_ISLNK(os.stat(path, dir_fd=self._handle, follow_symlinks=False).st_mode):
                    return path
            except OSError:
                return ""
        return ""

    def read(self, path: str, largest: int = LARGEST_FILE) -> bytes:
        """The bytes of a file, or one more than `largest` of them. OSError when it cannot be read."""
        parent, _, name = path.rpartition("/")
        handle = os.open(name, FILE_FLAGS, dir_fd=self.enter(parent))
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, NOT_A_FILE, path)
            return _read_up_to(handle, largest + 1)
        finally:
            os.close(handle)

    def enter(self, parent: str, *, make: bool = False) -> int:
        """The handle of a folder below, which may have to be made. It stays open until the next one is entered."""
        if self._near[0] == parent:
            return self._near[1]
        self._leave()
        handle = self._handle
        for name in parent.split("/") if parent else ():
            try:
                if make:
                    _make_folder(name, handle)
                below = os.open(name, FOLDER_FLAGS, dir_fd=handle)
            finally:
                if handle != self._handle:
                    os.close(handle)
            handle = below
        self._near = (parent, handle)
        return handle

    def _leave(self) -> None:
        if self._near[1] != self._handle:
            os.close(self._near[1])
        self._near = ("", self._handle)


def _make_folder(name: str, above: int) -> None:
    try:
        os.mkdir(name, dir_fd=above)
        os.fsync(above)
    except FileExistsError:
        pass


def _open_root(root: str) -> int:
    # The root itself may be a link: the person named it.
    try:
        return os.open(root, FOLDER_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        raise NotFound(what="folder", name=root, hint=" Check the spelling.") from None
    except NotADirectoryError:
        raise FileTrouble(path=root, problem="is a file; name the folder that holds it") from None
    except OSError as error:
        problem = f"cannot be read ({error.strerror}); check its permissions"
        raise FileTrouble(path=root, problem=problem) from None
    except ValueError:
        raise FileTrouble(path=printable(root), problem="is not a path: it holds a NUL character") from None


def _read_up_to(handle: int, limit: int) -> bytes:
    data = os.read(handle, limit)
    if not data or len(data) == limit:
        return data
    parts = [data]
    size = len(data)
    while size < limit and (data := os.read(handle, limit - size)):
        parts.append(data)
        size += len(data)
    return b"".join(parts)


class _FolderWalk(NamedTuple):
    """What a walk looks for, and what it leaves out."""

    endings: tuple[str, ...]
    ignored: IgnoreCheck

    def entries(self, handle: int, prefix: str, depth: int) -> Iterator[FoundFile | SkippedEntry]:
        in_raw = prefix == RAW_FOLDER + "/" or prefix.endswith(f"/{RAW_FOLDER}/")
        try:
            with os.scandir(handle) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            yield SkippedEntry(prefix or "./", UNREADABLE)
            return
        for entry in entries:
            path = prefix + entry.name
            if not _is_utf8_name(entry.name):
                yield SkippedEntry(printable(path), BAD_NAME)
            elif entry.is_symlink():
                yield SkippedEntry(path, SYMLINK)
            elif entry.is_dir(follow_symlinks=False):
                if self.ignored(path + "/"):
                    yield SkippedEntry(path + "/", IGNORED)
                else:
                    yield from self._below(handle, path, entry.name, in_raw, depth)
            elif not entry.is_file(follow_symlinks=False):
                yield SkippedEntry(path, NOT_A_FILE)
            elif self.ignored(path):
                yield SkippedEntry(path, IGNORED)
            else:
                yield _file_entry(entry, path, _file_kind(entry.name, prefix, in_raw, self.endings))

    def _below(
        self, handle: int, path: str, name: str, in_raw: bool, depth: int
    ) -> Iterator[FoundFile | SkippedEntry]:
        reason = _skip_reason(name, in_raw, depth)
        if reason:
            yield SkippedEntry(path + "/", reason)
            return
        try:
            below = os.open(name, FOLDER_FLAGS, dir_fd=handle)
        except OSError:
            yield SkippedEntry(path + "/", UNREADABLE)
            return
        try:
            yield from self.entries(below, path + "/", depth + 1)
        finally:
            os.close(below)


def _skip_reason(name: str, in_raw: bool, depth: int) -> str:
    if in_raw or (name.startswith(".") and name != RAW_FOLDER):
        return HIDDEN_FOLDER
    if name in SKIPPED_FOLDERS:
        return TOOL_FOLDER
    return TOO_DEEP if depth >= MAX_DEPTH else ""


def _file_entry(entry: os.DirEntry[str], path: str, kind: FileKind | None) -> FoundFile | SkippedEntry:
    if kind is None:
        return SkippedEntry(path, HIDDEN_FILE if entry.name.startswith(".") else OTHER_KIND)
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return SkippedEntry(path, GONE)
    return FoundFile(path, kind, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)


def _file_kind(name: str, prefix: str, in_raw: bool, endings: tuple[str, ...]) -> FileKind | None:
    lower = name.lower()
    if in_raw:
        return "sidecar" if lower.endswith(".json") and not name.startswith(".") else None
    if name.startswith(".") or not lower.endswith(endings):
        return None
    return "special" if not prefix and lower in SPECIAL_NAMES else "page"


def _is_utf8_name(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(path: str) -> str:
    """The path with everything escaped that is no text, or that a terminal would obey."""
    if path.isprintable():
        return path
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join([each if each.isprintable() else each.encode("unicode_escape").decode() for each in text])


class FileNote(NamedTuple):
    """Something about a file that a person should know."""

    path: str
    note: str


Progress = Callable[[int, int, str], None]
