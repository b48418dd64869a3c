"""What a folder and its index must do to agree again: a pure function of files, index and what was last seen.

Two steps. `sort_out` tells from stat alone which files need reading. `plan`, with what reading found, says what
becomes of each file and page. Knows nothing of the disk and the database, and decides nothing that it cannot
tell from its arguments.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

RACY_NS = 2_000_000_000
"""A file that changed so shortly before it was read may have changed again within the same tick of its clock."""

FEW_REMOVALS = 10
SHARE_OF_REMOVALS = 0.1
"""More removals in one pass than the larger of these wait for a person."""


class Stat(NamedTuple):
    """What tells that a file is unchanged without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class File(NamedTuple):
    """A file that is in the folder now."""

    path: str
    key: str
    stat: Stat


class Known(NamedTuple):
    """A file as the index last saw it."""

    path: str
    key: str
    stat: Stat
    content_hash: str
    seen_ns: int
    page_id: int | None
    page_uuid: str | None
    has_problem: bool = False


class Opened(NamedTuple):
    """A file that must be read, and what the index knows at its place."""

    file: File
    old: Known | None


class Read(NamedTuple):
    """A file that was read now."""

    file: File
    old: Known | None
    content_hash: str
    page_uuid: str | None
    """The id that its front matter names, if any."""


class Sorted(NamedTuple):
    unchanged: list[Known]
    to_read: list[Opened]
    missing: list[Known]


class Moved(NamedTuple):
    old: Known
    read: Read


class Changed(NamedTuple):
    old: Known
    read: Read


class Plan(NamedTuple):
    """What becomes of the files that were read, and of those that are missing."""

    touched: list[Changed]
    """The same bytes under other dates."""
    changed: list[Changed]
    moved: list[Moved]
    """The page stays; its file has another name, and perhaps other words."""
    new: list[Read]
    gone: list[Known]

    @property
    def is_empty(self) -> bool:
        return not any(self)


def sort_out(files: Iterable[File], known: Iterable[Known]) -> Sorted:
    """Which files are as they were, which must be read, and which are not there.

    A file stands at its path. One that differs from a known path only in case or composition of accents stands
    there too, unless that path has a file of its own."""
    there = list(files)
    paths = {file.path for file in there}
    left = {each.path: each for each in known}
    by_key = {each.key: each for each in left.values() if each.path not in paths}
    unchanged: list[Known] = []
    to_read: list[Opened] = []
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
            to_read.append(Opened(file, before))
    return Sorted(unchanged, to_read, list(left.values()))


def _is_racy(known: Known) -> bool:
    return known.stat.ctime_ns > known.seen_ns - RACY_NS or known.stat.mtime_ns > known.seen_ns - RACY_NS


_Key = tuple[str, int | None]


def plan(read: Iterable[Read], known: Iterable[Known], missing: Iterable[Known]) -> Plan:
    """What to do. A page follows its id first, then content that only one missing file had."""
    reads = list(read)
    lost = {_key(each): each for each in missing}
    moved = _follow_ids(reads, known, lost)
    taken = {_key(each.old) for each in moved}
    carried = {each.read.file.path for each in moved}
    touched: list[Changed] = []
    changed: list[Changed] = []
    fresh: list[Read] = []
    for each in reads:
        old = each.old
        if each.file.path in carried:
            if old is not None and _key(old) not in taken:
                lost[_key(old)] = old  # another page moved to this path, over the one that was here
        elif old is None or _key(old) in taken:
            fresh.append(each)
        else:
            same = (old.path, old.content_hash) == (each.file.path, each.content_hash) and not old.has_problem
            (touched if same else changed).append(Changed(old, each))
    for key in taken:
        lost.pop(key, None)
    new = _follow_content(fresh, lost, moved)
    return Plan(touched, changed, moved, new, list(lost.values()))


def _key(known: Known) -> _Key:
    """A page in quarantine may have had the path that another page has now."""
    return known.path, known.page_id


def _follow_ids(reads: list[Read], known: Iterable[Known], lost: Mapping[_Key, Known]) -> list[Moved]:
    """Files that name the id of a page whose own file is missing, or names another id by now."""
    named = Counter(each.page_uuid for each in reads if each.page_uuid)
    names_now = {_key(each.old): each.page_uuid for each in reads if each.old}
    by_uuid = {each.page_uuid: each for each in known if each.page_uuid}
    moved = []
    for each in reads:
        old = by_uuid.get(each.page_uuid) if each.page_uuid and named[each.page_uuid] == 1 else None
        if old is None or (each.old is not None and _key(each.old) == _key(old)):
            continue
        if _key(old) in lost or names_now.get(_key(old), each.page_uuid) not in (None, each.page_uuid):
            moved.append(Moved(old, each))
    return moved


def _follow_content(fresh: list[Read], lost: dict[_Key, Known], moved: list[Moved]) -> list[Read]:
    """Find new files that are missing ones under another name: they go to `moved` and leave `lost`."""
    old_hashes = Counter(each.content_hash for each in lost.values())
    new_hashes = Counter(each.content_hash for each in fresh)
    by_hash = {each.content_hash: each for each in lost.values() if old_hashes[each.content_hash] == 1}
    new: list[Read] = []
    for read in fresh:
        old = by_hash.get(read.content_hash) if new_hashes[read.content_hash] == 1 else None
        if old is None or (read.page_uuid and old.page_uuid and read.page_uuid != old.page_uuid):
            new.append(read)
        else:
            moved.append(Moved(lost.pop(_key(old)), read))
    return new


class Verdict(NamedTuple):
    """Whether pages whose files are missing may go."""

    allowed: bool
    reason: str


def may_remove(gone: int, known: int, files: int, *, complete: bool, confirmed: bool) -> Verdict:
    """Only positive absence removes a page: a scan that saw everything, of a folder that is still itself."""
    if not gone:
        return Verdict(True, "")
    if not complete:
        return Verdict(False, "a part of the folder could not be read")
    if not files and known:
        return Verdict(confirmed, "" if confirmed else "the folder is empty; it may not be mounted")
    if gone > max(FEW_REMOVALS, SHARE_OF_REMOVALS * known) and not confirmed:
        return Verdict(False, f"{gone} of {known} files are missing at once")
    return Verdict(True, "")


def may_hide(hidden: int, known: int, *, confirmed: bool) -> Verdict:
    """Files that are there, and that the ignore rules leave out now: a slip in the rules must not hide a memory."""
    too_many = hidden == known or hidden > max(FEW_REMOVALS, SHARE_OF_REMOVALS * known)
    if hidden and too_many and not confirmed:
        return Verdict(False, f"the ignore rules would hide {hidden} of {known} files at once")
    return Verdict(True, "")
