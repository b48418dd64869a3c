"""File layout of a knowledge base (called a store here), and access to its files.

Nodes are the .org files outside raw/ and hidden folders, except index*.org, which are generated, and
AGENT_CONTRACT.org, the rules for agents. Files are opened relative to a folder descriptor, and symlinks are
not followed.
"""

import errno
import os
import stat
import sys

from quaid.folders.scanner import FOLDER_FLAGS, Folder, signature_of
from quaid.model.sync_plan import FileSignature

CONTRACT_FILE = "AGENT_CONTRACT.org"
RAW_FOLDER = "raw"
RAW_FILES_FOLDER = "raw/files"
RAW_README = f"{RAW_FOLDER}/README.org"
INDEX_PREFIX = "index"
NODE_ENDING = ".org"

OWN_FOLDER = "ai-kb"
"""The folder inside .git for the lock, the state, the journal and caches. Git never commits or pushes it."""

MISSING_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Error numbers raised when part of a path is missing or has become a symlink."""


StoreFile = tuple[str, FileSignature]
"""The path of a file and its stat."""

KB_KIND = "kb"
"""The kind of the collection of a knowledge base, and the name of the first collection of this kind."""


def own_folder(root: str) -> str:
    """Return the path of the folder with our files inside .git."""
    return os.path.join(root, ".git", OWN_FOLDER)


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
    """Return True for hidden files and for editor backups and lock files: .#a.org, #a.org#, a.org~."""
    name = path.rpartition("/")[2]
    return name.startswith("#") or name.endswith("~") or any(part.startswith(".") for part in path.split("/"))


def is_store_file(path: str) -> bool:
    """Return True if the file is part of the store: an .org file or any file in raw/, unless skipped."""
    return not is_skipped_file(path) and (path.endswith(NODE_ENDING) or is_raw_file(path))


def walk_store(root: str) -> list[StoreFile]:
    """Return all files of the knowledge base, sorted by path."""
    files: list[StoreFile] = []
    with Folder(root) as folder:
        _walk_entries(folder.enter(""), "", files)
    files.sort()
    return files


def _walk_entries(handle: int, below: str, files: list[StoreFile]) -> None:
    is_captured = is_raw_file(below)
    with os.scandir(handle) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            if entry.is_dir(follow_symlinks=False):
                _walk_folder(handle, name, f"{below}{name}/", files)
            elif (  # is_store_file() inlined, without the checks already done, because there may be many files
                (is_captured or name.endswith(NODE_ENDING))
                and name[0] != "#"
                and name[-1] != "~"
                and entry.is_file(follow_symlinks=False)
            ):
                try:
                    files.append((below + name, signature_of(entry.stat(follow_symlinks=False))))
                except FileNotFoundError:  # deleted since scandir() listed it
                    continue


def _walk_folder(above: int, name: str, below: str, files: list[StoreFile]) -> None:
    try:
        handle = os.open(name, FOLDER_FLAGS, dir_fd=above)
    except OSError as error:
        if error.errno in MISSING_ERRNOS:  # deleted or replaced since scandir() listed it
            return
        raise
    try:
        _walk_entries(handle, below, files)
    finally:
        os.close(handle)


def stat_file(root: str, path: str) -> FileSignature | None:
    """Return the stat fields of a file, or None if it is missing, not regular or not part of the store."""
    try:
        with Folder(root) as folder:
            status = folder.stat(path)
    except OSError as error:
        if error.errno in MISSING_ERRNOS:
            return None
        raise
    return signature_of(status) if stat.S_ISREG(status.st_mode) and is_store_file(path) else None


def read_file(root: str, path: str) -> bytes:
    """Return the content of a file. Fail if any part of the path is a symlink."""
    with Folder(root) as folder:
        return folder.read(path, sys.maxsize)
