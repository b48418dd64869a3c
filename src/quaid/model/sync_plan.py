"""Decide what a sync must do, from the files in a folder, the index, and what was last seen.

`classify_files` decides from stat results which files to read; `plan_sync` decides what to do with each one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

RACY_NS = 2_000_000_000
"""Nanoseconds. A file that changed this shortly before it was read may have changed again without a new mtime,
because timestamps are coarse."""

FEW_REMOVALS = 10
SHARE_OF_REMOVALS = 0.1
"""More removals in one sync than the larger of FEW_REMOVALS and this share of the files need confirmation."""


class FileSignature(NamedTuple):
    """Stat fields that identify an unchanged file without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class ScannedFile(NamedTuple):
    """A file that is in the folder now."""

    path: str
    key: str
    stat: FileSignature


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


class FileToRead(NamedTuple):
    """A file that must be read, and the index entry for its path."""

    file: ScannedFile
    old: LastSeenFile | None


class ReadFile(NamedTuple):
    """A file with the hash and id of its current content."""

    file: ScannedFile
    old: LastSeenFile | None
    content_hash: str
    page_uuid: str | None
    """The page id in its front matter, if any."""


class SortedFiles(NamedTuple):
    unchanged: list[LastSeenFile]
    to_read: list[FileToRead]
    missing: list[LastSeenFile]


class MovedFile(NamedTuple):
    old: LastSeenFile
    read: ReadFile


class ChangedFile(NamedTuple):
    old: LastSeenFile
    read: ReadFile


class SyncPlan(NamedTuple):
    """What to do with the files that were read and those that are missing."""

    touched: list[ChangedFile]
    """Same content, different stat fields."""
    changed: list[ChangedFile]
    moved: list[MovedFile]
    """The page is kept; its file has a new path and possibly new content."""
    new: list[ReadFile]
    gone: list[LastSeenFile]

    @property
    def is_empty(self) -> bool:
        return not any(self)


def classify_files(files: Iterable[ScannedFile], known: Iterable[LastSeenFile]) -> SortedFiles:
    """Sort files into unchanged ones, ones to read, and missing ones.

    Files are matched by path. A file whose path differs from a known one only in case or Unicode normalization is
    matched with it, unless a file with exactly the known path exists.
    """
    there = list(files)
    paths = {file.path for file in there}
    left = {each.path: each for each in known}
    by_key = {each.key: each for each in left.values() if each.path not in paths}
    unchanged: list[LastSeenFile] = []
    to_read: list[FileToRead] = []
    for file in there:
        before = left.get(file.path) or by_key.pop(file.key, None)
        if before is not None:
            del left[before.path]
        if (
            before is not None
            and before.path == file.path
            and before.stat == file.stat
            and not _is_racy(before)
        ):
            unchanged.append(before)
        else:
            to_read.append(FileToRead(file, before))
    return SortedFiles(unchanged, to_read, list(left.values()))


def _is_racy(known: LastSeenFile) -> bool:
    return known.stat.ctime_ns > known.seen_ns - RACY_NS or known.stat.mtime_ns > known.seen_ns - RACY_NS


_FileKey = tuple[str, int | None]


def plan_sync(
    read: Iterable[ReadFile], known: Iterable[LastSeenFile], missing: Iterable[LastSeenFile]
) -> SyncPlan:
    """Decide what to do. A page is matched by its id first, then by content that only one missing file had."""
    reads = list(read)
    lost = {_file_key(each): each for each in missing}
    moved = _follow_ids(reads, known, lost)
    taken = {_file_key(each.old) for each in moved}
    carried = {each.read.file.path for each in moved}
    touched: list[ChangedFile] = []
    changed: list[ChangedFile] = []
    fresh: list[ReadFile] = []
    for each in reads:
        old = each.old
        if each.file.path in carried:
            if old is not None and _file_key(old) not in taken:
                lost[_file_key(old)] = old  # another page moved here and replaced the old one
        elif old is None or _file_key(old) in taken:
            fresh.append(each)
        else:
            same = (old.path, old.content_hash) == (each.file.path, each.content_hash) and not old.has_problem
            (touched if same else changed).append(ChangedFile(old, each))
    for key in taken:
        lost.pop(key, None)
    new = _follow_content(fresh, lost, moved)
    return SyncPlan(touched, changed, moved, new, list(lost.values()))


def _file_key(known: LastSeenFile) -> _FileKey:
    """Return path and page id. The path alone is ambiguous: a quarantined page may have had the path of another
    page."""
    return known.path, known.page_id


def _follow_ids(
    reads: list[ReadFile], known: Iterable[LastSeenFile], lost: Mapping[_FileKey, LastSeenFile]
) -> list[MovedFile]:
    """Return files with the id of a page whose own file is missing or now contains another id."""
    named = Counter(each.page_uuid for each in reads if each.page_uuid)
    names_now = {_file_key(each.old): each.page_uuid for each in reads if each.old}
    by_uuid = {each.page_uuid: each for each in known if each.page_uuid}
    moved = []
    for each in reads:
        old = by_uuid.get(each.page_uuid) if each.page_uuid and named[each.page_uuid] == 1 else None
        if old is None or (each.old is not None and _file_key(each.old) == _file_key(old)):
            continue
        if _file_key(old) in lost or names_now.get(_file_key(old), each.page_uuid) not in (
            None,
            each.page_uuid,
        ):
            moved.append(MovedFile(old, each))
    return moved


def _follow_content(
    fresh: list[ReadFile], lost: dict[_FileKey, LastSeenFile], moved: list[MovedFile]
) -> list[ReadFile]:
    """Match new files with missing ones by content: append matches to `moved`, remove them from `lost`, return the
    rest."""
    old_hashes = Counter(each.content_hash for each in lost.values())
    new_hashes = Counter(each.content_hash for each in fresh)
    by_hash = {each.content_hash: each for each in lost.values() if old_hashes[each.content_hash] == 1}
    new: list[ReadFile] = []
    for read in fresh:
        old = by_hash.get(read.content_hash) if new_hashes[read.content_hash] == 1 else None
        if old is None or (read.page_uuid and old.page_uuid and read.page_uuid != old.page_uuid):
            new.append(read)
        else:
            moved.append(MovedFile(lost.pop(_file_key(old)), read))
    return new


class RemovalVerdict(NamedTuple):
    """Whether pages without files may be removed, and if not, why."""

    allowed: bool
    reason: str


def may_remove(gone: int, known: int, files: int, *, complete: bool, confirmed: bool) -> RemovalVerdict:
    """Decide whether pages may be removed: never after a partial scan, and many at once only if confirmed."""
    if not gone:
        return RemovalVerdict(True, "")
    if not complete:
        return RemovalVerdict(False, "a part of the folder could not be read")
    if not files and known:
        return RemovalVerdict(confirmed, "" if confirmed else "the folder is empty; it may not be mounted")
    if gone > max(FEW_REMOVALS, SHARE_OF_REMOVALS * known) and not confirmed:
        return RemovalVerdict(False, f"{gone} of {known} files are missing at once")
    return RemovalVerdict(True, "")


def may_hide(hidden: int, known: int, *, confirmed: bool) -> RemovalVerdict:
    """Decide whether newly ignored files may be hidden. A mistake in the ignore rules must not hide most of the
    memory."""
    too_many = hidden == known or hidden > max(FEW_REMOVALS, SHARE_OF_REMOVALS * known)
    if hidden and too_many and not confirmed:
        return RemovalVerdict(False, f"the ignore rules would hide {hidden} of {known} files at once")
    return RemovalVerdict(True, "")
