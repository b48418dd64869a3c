"""Where a knowledge base is, and which of its files is what.

Knows names only: nodes are org files anywhere but in raw/ and in hidden folders, `index*.org` is generated,
AGENT_CONTRACT.org tells agents the rules. Walks from a handle and follows no link. Does not know what files say.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

CONTRACT = "AGENT_CONTRACT.org"
RAW = "raw"
RAW_FILES = "raw/files"
INDEX = "index"
ENDING = ".org"

OURS = "ai-kb"
"""The folder in .git with the lock, the state and the journal: never committed, never pushed."""

NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What the system says of a path on which something is missing, or a link by now."""


class Looks(NamedTuple):
    """What a look at a file's entry tells without reading it."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int


class Found(NamedTuple):
    path: str
    looks: Looks


def default_root(environ: Mapping[str, str], home: str) -> str:
    """The store of this person: AI_KB_DIR, else ai-kb where the system wants data to be."""
    if environ.get("AI_KB_DIR"):
        return environ["AI_KB_DIR"]
    data = environ.get("XDG_DATA_HOME", "")
    return os.path.join(data if os.path.isabs(data) else os.path.join(home, ".local", "share"), "ai-kb")


def require(root: str) -> str:
    """The folder of git inside a store; an error where there is no store."""
    folder = os.path.join(root, ".git")
    if not os.path.isdir(folder):
        from quaid.errors import StoreMissing

        raise StoreMissing(path=root)
    return folder


def is_index(path: str) -> bool:
    return path.startswith(INDEX) and path.endswith(ENDING) and "/" not in path


def is_raw(path: str) -> bool:
    return path.startswith(f"{RAW}/")


def is_node(path: str) -> bool:
    return (
        path.endswith(ENDING)
        and not is_raw(path)
        and not is_index(path)
        and path != CONTRACT
        and not is_passed_over(path)
    )


def is_passed_over(path: str) -> bool:
    """Hidden files, and what editors leave behind: .#a.org, #a.org#, a.org~."""
    name = path.rpartition("/")[2]
    return name.startswith("#") or name.endswith("~") or any(part.startswith(".") for part in path.split("/"))


def is_ours(path: str) -> bool:
    """Whether a file belongs to the knowledge base at all."""
    return not is_passed_over(path) and (path.endswith(ENDING) or is_raw(path))


def walk(root: str) -> list[Found]:
    """Every file of the knowledge base, in the order of their paths."""
    found: list[Found] = []
    handle = _opened(root)
    try:
        _walk(handle, "", found)
    finally:
        os.close(handle)
    found.sort(key=lambda each: each[0])
    return found


def _walk(handle: int, below: str, found: list[Found]) -> None:
    is_captured = is_raw(below)
    with os.scandir(handle) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            if entry.is_dir(follow_symlinks=False):
                _walk_folder(handle, name, f"{below}{name}/", found)
            elif (  # is_ours, of which half is known here: a look at thousands of files must be quick
                (is_captured or name.endswith(ENDING))
                and name[0] != "#"
                and name[-1] != "~"
                and entry.is_file(follow_symlinks=False)
            ):
                try:
                    told = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # it went away while we looked
                    continue
                looks = Looks(told.st_mtime_ns, told.st_ctime_ns, told.st_size, told.st_ino)
                found.append(Found(below + name, looks))


def _walk_folder(above: int, name: str, below: str, found: list[Found]) -> None:
    try:
        handle = os.open(name, FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno in NOT_THERE:  # gone, or another thing by now
            return
        raise
    try:
        _walk(handle, below, found)
    finally:
        os.close(handle)


def looks(root: str, path: str) -> Looks | None:
    """What one file looks like; None where there is no plain file of the knowledge base."""
    try:
        with Root(root) as store:
            found = store.stat(path)
    except OSError as error:
        if error.errno in NOT_THERE:
            return None
        raise
    if not stat.S_ISREG(found.st_mode) or not is_ours(path):
        return None
    return Looks(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def read(root: str, path: str, limit: int | None = None) -> bytes:
    """The bytes of a file, which is no link and below none; those of a longer one up to the limit."""
    with Root(root) as store:
        return store.read(path, limit)


class Root:
    """A store that is opened once to read many of its files."""

    def __init__(self, root: str) -> None:
        self._handle = _opened(root)

    def __enter__(self) -> "Root":
        return self

    def __exit__(self, *how: object) -> None:
        os.close(self._handle)

    def stat(self, path: str) -> os.stat_result:
        """How a file is, or the link that stands in its place."""
        found: os.stat_result
        found = self._at(path, lambda name, folder: os.stat(name, dir_fd=folder, follow_symlinks=False))
        return found

    def read(self, path: str, limit: int | None = None) -> bytes:
        """The bytes of a file, which is no link and below none; those of a longer one up to the limit."""
        handle = self._at(path, lambda name, folder: os.open(name, os.O_RDONLY | NO_LINK, dir_fd=folder))
        try:
            size = os.fstat(handle).st_size
            # Asked for as much as there is: a buffer of the size of the limit would cost more than the reading.
            left = size + 1 if limit is None else min(size + 1, limit)
            data = os.read(handle, left)
            if len(data) == size:  # it has no more, though it was asked for
                return data
            parts = [data]
            while parts[-1] and (limit is None or sum(map(len, parts)) < limit):
                parts.append(os.read(handle, left))
            return b"".join(parts)[:limit]
        finally:
            os.close(handle)

    def _at(self, path: str, act: Callable[[str, int], Any]) -> Any:
        """Do something with a name in its folder, to which one goes step by step from the store."""
        *above, name = path.split("/")
        folder = self._handle
        try:
            for each in above:
                deeper = os.open(each, FOLDER, dir_fd=folder)
                if folder != self._handle:
                    os.close(folder)
                folder = deeper
            return act(name, folder)
        finally:
            if folder != self._handle:
                os.close(folder)


def _opened(root: str) -> int:
    """A handle of the store, to be closed. It may be a link itself: the person named it."""
    return os.open(root, FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
