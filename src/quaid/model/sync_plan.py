"""Decide what a sync must do, from the files in a folder and the files as the index last saw them.

`classify_files` decides from stat results which files to read; `plan_sync` decides what to do with each file.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Literal, NamedTuple

RACY_NS = 2_000_000_000
"""A file that changed less than this many nanoseconds before it was read is uncertain.

Timestamps are coarse, so such a file may have changed again without a new mtime.
"""

FEW_REMOVALS = 10
SHARE_OF_REMOVALS = 0.1
"""Removals need confirmation if they exceed both FEW_REMOVALS and this share of the files."""

FileKind = Literal["page", "special", "sidecar"]


def path_key(path: str) -> str:
    """Return the path in Unicode NFC, because file systems differ in how they compose accents."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


_COPY = re.compile(
    r"""(?P<name>.+?)(?:
        \.sync-conflict-[0-9]{8}-[0-9]{6}-[A-Z0-9]{7}            # Syncthing
        | \.conflict-[0-9a-f-]{8,36}                            # Quaid, see folders.atomic_write
        | [ ]\((?:[^()/]*['’]s?[ ])?conflicted[ ]copy[^()/]*\)   # Dropbox, Obsidian, Nextcloud
          (?:[ ]\([0-9]+\))?
    )(?P<ending>\.[^./]+)""",
    re.VERBOSE | re.IGNORECASE,
)


def copied_path(path: str) -> str | None:
    """Return the path of the file of which this file is a conflict copy, or None.

    Programs that sync folders create such a copy if a file was changed on two machines.
    """
    match = _COPY.fullmatch(path) if "conflict" in path.lower() else None
    return match["name"] + match["ending"] if match else None


class FileSignature(NamedTuple):
    """Stat fields by which an unchanged file is recognized without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class ScannedFile(NamedTuple):
    """A file in a folder. The path is relative to the root, spelled as on disk.

    The file is a page, a special file (such as README.md at the root) or a sidecar (a JSON file with raw data
    beside a page file).
    """

    path: str
    kind: FileKind
    stat: FileSignature

    @property
    def key(self) -> str:
        """The path without differences in case and Unicode normalization."""
        return path_key(self.path).casefold()


class SkippedEntry(NamedTuple):
    """A file, a folder or a part of a file that is not read, and the reason."""

    path: str  # escaped so that it is printable; the path of a folder that was not entered ends with a slash
    reason: str


class LastSeenFile(NamedTuple):
    """A file as the index last saw it."""

    path: str
    key: str
    stat: FileSignature
    content_hash: str
    seen_ns: int
    page_id: int | None
    page_uuid: str | None
    has_problem: bool = False


class ReadFile(NamedTuple):
    """A file with the hash and id of its current content, and the index entry for its path."""

    file: ScannedFile
    old: LastSeenFile | None
    content_hash: str
    page_uuid: str | None
    """The page id in the front matter of the file, if any."""


FilesToRead = list[tuple[ScannedFile, LastSeenFile | None]]
"""Files that must be read, each with the index entry for its path."""
MovedFiles = list[tuple[LastSeenFile, ReadFile]]


class SyncPlan(NamedTuple):
    """The actions for the files that were read and for the files that are missing."""

    touched: list[ReadFile]
    """Files with the same content but different stat fields."""
    changed: list[ReadFile]
    moved: MovedFiles
    """Files that have a new path, and possibly new content. Their pages are kept."""
    new: list[ReadFile]
    gone: list[LastSeenFile]


def classify_files(
    files: list[ScannedFile],
    last_seen: Iterable[LastSeenFile],
    *,
    retry: bool = False,
    again: Container[str] = (),
) -> tuple[int, FilesToRead, list[LastSeenFile]]:
    """Return the number of unchanged files, the files to read, and the missing files.

    Files are matched by path. A file whose path differs from a known path only in case or Unicode
    normalization is matched with it, unless a file with exactly the known path exists. With `retry`,
    unchanged files that could not be indexed, which have no content hash, are read again. Files with a path in
    `again` are treated as changed.
    """
    paths = {file.path for file in files}
    unseen = {old.path: old for old in last_seen}  # what is left in it at the end is missing
    by_key = {old.key: old for old in unseen.values() if old.path not in paths}
    to_read: FilesToRead = []
    for file in files:
        old = unseen.get(file.path) or by_key.pop(file.key, None)
        if old is not None:
            del unseen[old.path]
            if file.path in again:
                old = old._replace(has_problem=True)
        is_unchanged = (
            old is not None and (old.path, old.stat) == (file.path, file.stat) and not _is_racy(old)
        )
        if old is None or not is_unchanged or (retry and not old.content_hash) or file.path in again:
            to_read.append((file, old))
    return len(files) - len(to_read), to_read, list(unseen.values())


def _is_racy(last_seen: LastSeenFile) -> bool:
    return (
        last_seen.stat.ctime_ns > last_seen.seen_ns - RACY_NS
        or last_seen.stat.mtime_ns > last_seen.seen_ns - RACY_NS
    )


_FileKey = tuple[str, int | None]


def plan_sync(
    read: Iterable[ReadFile], last_seen: Iterable[LastSeenFile], missing: Iterable[LastSeenFile]
) -> SyncPlan:
    """Decide what to do with each file.

    A moved page is found by its id, else by content that only one missing file had.
    """
    reads = list(read)
    lost = {_file_key(file): file for file in missing}
    moved = _follow_ids(reads, last_seen, lost)
    taken = {_file_key(old) for old, _ in moved}
    carried = {read.file.path for _, read in moved}
    touched: list[ReadFile] = []
    changed: list[ReadFile] = []
    fresh: list[ReadFile] = []
    for read_file in reads:
        old = read_file.old
        if read_file.file.path in carried:
            if old is not None and _file_key(old) not in taken:
                lost[_file_key(old)] = old  # another page moved to this path and replaced the old one
        elif old is None or _file_key(old) in taken:
            fresh.append(read_file)
        else:
            same = (old.path, old.content_hash) == (
                read_file.file.path,
                read_file.content_hash,
            ) and not old.has_problem
            (touched if same else changed).append(read_file)
    for key in taken:
        lost.pop(key, None)
    new = _follow_content(fresh, lost, moved)
    return SyncPlan(touched, changed, moved, new, list(lost.values()))


def _file_key(last_seen: LastSeenFile) -> _FileKey:
    """Return path and page id.

    The path alone is ambiguous, because the file of a quarantined page may have had the same path.
    """
    return last_seen.path, last_seen.page_id


def _follow_ids(
    reads: list[ReadFile], last_seen: Iterable[LastSeenFile], lost: Mapping[_FileKey, LastSeenFile]
) -> MovedFiles:
    """Find moved files by page id. Return each with the old file of the page.

    A file has moved if the old file of its page is missing or has another id now.
    """
    named = Counter(read.page_uuid for read in reads if read.page_uuid)
    names_now = {_file_key(read.old): read.page_uuid for read in reads if read.old}
    by_uuid = {file.page_uuid: file for file in last_seen if file.page_uuid}
    moved = []
    for read in reads:
        old = by_uuid.get(read.page_uuid) if read.page_uuid and named[read.page_uuid] == 1 else None
        if old is None or (read.old is not None and _file_key(read.old) == _file_key(old)):
            continue
        if _file_key(old) in lost or names_now.get(_file_key(old), read.page_uuid) not in (
            None,
            read.page_uuid,
        ):
            moved.append((old, read))
    return moved


def _follow_content(
    fresh: list[ReadFile], lost: dict[_FileKey, LastSeenFile], moved: MovedFiles
) -> list[ReadFile]:
    """Match new files with missing files by content, and return the new files without a match.

    Matches are appended to `moved` and removed from `lost`.
    """
    old_hashes = Counter(file.content_hash for file in lost.values())
    new_hashes = Counter(read_file.content_hash for read_file in fresh)
    by_hash = {file.content_hash: file for file in lost.values() if old_hashes[file.content_hash] == 1}
    new: list[ReadFile] = []
    for read in fresh:
        old = by_hash.get(read.content_hash) if new_hashes[read.content_hash] == 1 else None
        if old is None or (read.page_uuid and old.page_uuid and read.page_uuid != old.page_uuid):
            new.append(read)
        else:
            moved.append((lost.pop(_file_key(old)), read))
    return new


def removal_obstacle(gone: int, total: int, files: int, *, complete: bool, confirmed: bool) -> str:
    """Return why pages without files may not be removed, or "".

    After a partial scan no page is removed. All pages of an empty folder, or many pages at once, are removed only
    if confirmed.
    """
    if not gone:
        return ""
    if not complete:
        return "a part of the folder could not be read"
    if confirmed:
        return ""
    if not files and total:
        return "the folder is empty; it may not be mounted"
    if gone > max(FEW_REMOVALS, SHARE_OF_REMOVALS * total):
        return f"{gone} of {total} files are missing at once"
    return ""


def hiding_obstacle(hidden: int, total: int, *, confirmed: bool) -> str:
    """Return why newly ignored files may not be hidden, or "".

    This prevents a mistake in the ignore rules from hiding most of the memory.
    """
    if not hidden or confirmed:
        return ""
    too_many = hidden == total or hidden > max(FEW_REMOVALS, SHARE_OF_REMOVALS * total)
    return f"the ignore rules would hide {hidden} of {total} files at once" if too_many else ""
