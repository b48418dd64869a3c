"""Where a knowledge base is, which of its files is what, and the records that its commands return.

Nodes are org files outside raw/ and hidden folders, index*.org is generated, AGENT_CONTRACT.org holds the rules for
agents. Files are opened from a folder handle, and no link is followed.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from quaid.errors import StoreMissing

CONTRACT_FILE = "AGENT_CONTRACT.org"
RAW_FOLDER = "raw"
RAW_FILES_FOLDER = "raw/files"
INDEX_PREFIX = "index"
NODE_ENDING = ".org"

OWN_FOLDER = "ai-kb"
"""The folder in .git with the lock, the state and the journal: never committed, never pushed."""

NO_FOLLOW_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
MISSING_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What the system says of a path on which something is missing, or a link by now."""


class FileStat(NamedTuple):
    """What a look at a file's entry tells without reading it."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int


class StoreFile(NamedTuple):
    path: str
    looks: FileStat


def default_store_root(environ: Mapping[str, str], home: str) -> str:
    """The store of this person: AI_KB_DIR, else ai-kb where the system wants data to be."""
    if environ.get("AI_KB_DIR"):
        return environ["AI_KB_DIR"]
    data = environ.get("XDG_DATA_HOME", "")
    return os.path.join(data if os.path.isabs(data) else os.path.join(home, ".local", "share"), "ai-kb")


def require_git_folder(root: str) -> str:
    """The folder of git inside a store; an error where there is no store."""
    folder = os.path.join(root, ".git")
    if not os.path.isdir(folder):
        raise StoreMissing(path=root)
    return folder


def is_index_file(path: str) -> bool:
    return path.startswith(INDEX_PREFIX) and path.endswith(NODE_ENDING) and "/" not in path


def is_raw_file(path: str) -> bool:
    return path.startswith(f"{RAW_FOLDER}/")


def is_node_file(path: str) -> bool:
    return (
        path.endswith(NODE_ENDING)
        and not is_raw_file(path)
        and not is_index_file(path)
        and path != CONTRACT_FILE
        and not is_skipped_file(path)
    )


def is_skipped_file(path: str) -> bool:
    """Hidden files, and what editors leave behind: .#a.org, #a.org#, a.org~."""
    name = path.rpartition("/")[2]
    return name.startswith("#") or name.endswith("~") or any(part.startswith(".") for part in path.split("/"))


def is_store_file(path: str) -> bool:
    """Whether a file belongs to the knowledge base at all."""
    return not is_skipped_file(path) and (path.endswith(NODE_ENDING) or is_raw_file(path))


def walk_store(root: str) -> list[StoreFile]:
    """Every file of the knowledge base, in the order of their paths."""
    found: list[StoreFile] = []
    handle = _open_root(root)
    try:
        _walk_entries(handle, "", found)
    finally:
        os.close(handle)
    found.sort(key=lambda each: each[0])
    return found


def _walk_entries(handle: int, below: str, found: list[StoreFile]) -> None:
    is_captured = is_raw_file(below)
    with os.scandir(handle) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            if entry.is_dir(follow_symlinks=False):
                _walk_folder(handle, name, f"{below}{name}/", found)
            elif (  # is_ours, of which half is known here: a look at thousands of files must be quick
                (is_captured or name.endswith(NODE_ENDING))
                and name[0] != "#"
                and name[-1] != "~"
                and entry.is_file(follow_symlinks=False)
            ):
                try:
                    told = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # it went away while we looked
                    continue
                looks = FileStat(told.st_mtime_ns, told.st_ctime_ns, told.st_size, told.st_ino)
                found.append(StoreFile(below + name, looks))


def _walk_folder(above: int, name: str, below: str, found: list[StoreFile]) -> None:
    try:
        handle = os.open(name, FOLDER_FLAGS, dir_fd=above)
    except OSError as error:
        if error.errno in MISSING_ERRNOS:  # gone, or another thing by now
            return
        raise
    try:
        _walk_entries(handle, below, found)
    finally:
        os.close(handle)


def stat_file(root: str, path: str) -> FileStat | None:
    """What one file looks like; None where there is no plain file of the knowledge base."""
    try:
        with OpenStore(root) as store:
            found = store.stat(path)
    except OSError as error:
        if error.errno in MISSING_ERRNOS:
            return None
        raise
    if not stat.S_ISREG(found.st_mode) or not is_store_file(path):
        return None
    return FileStat(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def read_file(root: str, path: str, limit: int | None = None) -> bytes:
    """The bytes of a file, which is no link and below none; those of a longer one up to the limit."""
    with OpenStore(root) as store:
        return store.read(path, limit)


class OpenStore:
    """A store that is opened once to read many of its files."""

    def __init__(self, root: str) -> None:
        self._handle = _open_root(root)

    def __enter__(self) -> "OpenStore":
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
        handle = self._at(
            path, lambda name, folder: os.open(name, os.O_RDONLY | NO_FOLLOW_FLAGS, dir_fd=folder)
        )
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
                deeper = os.open(each, FOLDER_FLAGS, dir_fd=folder)
                if folder != self._handle:
                    os.close(folder)
                folder = deeper
            return act(name, folder)
        finally:
            if folder != self._handle:
                os.close(folder)


def _open_root(root: str) -> int:
    """A handle of the store, to be closed. It may be a link itself: the person named it."""
    return os.open(root, FOLDER_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))


class KbStatus(NamedTuple):
    root: str
    nodes: int
    contested: int
    branch: str
    remote: str
    """Without secrets; nothing: there is none."""
    ahead: int
    """Commits that the remote does not have."""
    behind: int
    uncommitted: tuple[str, ...]
    push_problem: str
    """Why the last push failed; nothing: it did not."""
    diverged: bool
    indexed_at: str
    raw_bytes: int
    secrets: int
    """As far as lint has looked."""
    curation_due: bool
    nudge: str
    """One line for whoever begins a session; nothing when all is well."""
    unfinished: str = ""
    """A merge, rebase, cherry-pick, revert or bisect that was begun; nothing: none."""
    conflicted: tuple[str, ...] = ()
    remote_problem: str = ""
    """Why the remote was not reached when it was last asked; nothing: it was."""


class KbCheck(NamedTuple):
    name: str
    well: bool
    told: str
    remedy: str = ""
    missing: bool = False
    """Something optional that is not there, or that cannot be known: neither fine nor wrong."""


class KbInitReport(NamedTuple):
    root: str
    created: bool
    """False: there was a repository already."""
    files: tuple[str, ...]
    """Files that were written now."""
    remote: str
    """Without secrets."""
    commit: str


class KbTimerReport(NamedTuple):
    """What was done, and what is left for the person."""

    kind: str  # systemd, launchd or cron
    written: tuple[str, ...]  # files that are new or changed
    unchanged: tuple[str, ...]
    enabled: bool
    to_run: tuple[str, ...]  # commands to type, or the line to put into a crontab
    problem: str = ""


RAW_README = f"{RAW_FOLDER}/README.org"
