"""Find files that changed since they were indexed.

Only stat is used, which is fast enough to run before every search.
"""

import os

from quaid.errors import FileTrouble, NotFound
from quaid.folders import ignore
from quaid.folders.scanner import FOLDER_FLAGS, MAX_DEPTH, SKIPPED_FOLDERS, Folder, IgnoreCheck, page_endings
from quaid.model.sync_plan import RACY_NS
from quaid.storage import collections
from quaid.storage.collections import Collection, FileStamp
from quaid.storage.sqlite.connection import Database


class FileStatCache:
    """A cache of the stat data that the index has for the files of one collection.

    The cache is loaded again after a write to the database, and when it is used for a different collection.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._of: tuple[tuple[int, int], int] | None = None
        self._looks: dict[str, FileStamp] = {}

    def looks(self, collection: Collection) -> dict[str, FileStamp]:
        present = (self._db.change_stamp(), collection.id)
        if present != self._of:
            self._looks = collections.settled_files(self._db, collection.id, RACY_NS)
            self._of = present
        return dict(self._looks)


def changed_paths(seen: FileStatCache, collection: Collection) -> list[str]:
    """Return the paths of new, removed and changed files, as shown by stat; [] if the folder is unavailable."""
    last_seen = seen.looks(collection)
    new_paths: list[str] = []
    try:
        with Folder(collection.root or "") as folder:
            ignored = ignore.ignore_matcher(collection.ignore_patterns, collection.kind)
            pages = page_endings(collection.kind)
            _scan_folder(
                folder.enter(""),
                "",
                last_seen,
                lambda path: not path.lower().endswith(pages) or ignore.is_ignored(ignored, path),
                new_paths,
            )
    except (NotFound, FileTrouble):
        return []
    return sorted([*new_paths, *last_seen])


def _scan_folder(
    handle: int, prefix: str, last_seen: dict[str, FileStamp], passed_over: IgnoreCheck, new_paths: list[str]
) -> None:
    """Delete unchanged files from `last_seen` and append new files to `new_paths`; changed and missing files stay."""
    folders = []
    try:
        with os.scandir(handle) as listing:
            for entry in listing:
                name = entry.name
                path = prefix + name
                expected = last_seen.get(path)
                if expected is not None:
                    looks = entry.stat(follow_symlinks=False)
                    if (looks.st_size, looks.st_mtime_ns, looks.st_ctime_ns, looks.st_ino) == expected:
                        del last_seen[path]
                elif name[0] == "." or name in SKIPPED_FOLDERS or entry.is_symlink():
                    continue
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif not passed_over(path):
                    new_paths.append(path)
    except OSError:
        return  # files of this folder stay in `last_seen`, so they are returned as changed
    for name in folders if prefix.count("/") < MAX_DEPTH else ():
        try:
            below = os.open(name, FOLDER_FLAGS, dir_fd=handle)
        except OSError:
            continue
        try:
            _scan_folder(below, f"{prefix}{name}/", last_seen, passed_over, new_paths)
        finally:
            os.close(below)
