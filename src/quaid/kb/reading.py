"""What git prints and keeps in its folder, as values.

Knows git's formats for machines (status, log, differences, push), its files for branches, and the names of blobs.
Calls nothing.
"""

import hashlib
import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

from quaid.errors import InvalidArgument
from quaid.storage import files as durable_files

LOG = "%H%x1f%ct%x1f%an%x1f%ae%x1f%s"

ACTS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
NOISE = ("hint:", "remote:", "warning:", "To ", "From ", " ")
SECOND = 1_000_000_000


class TreeState(NamedTuple):
    branch: str | None  # None: no branch is checked out
    head: str | None  # None: nothing is committed yet
    upstream: str | None  # None: the remote has not been seen with this branch
    ahead: int
    behind: int
    changed: tuple[str, ...]  # known files that differ from the last commit, staged or not
    untracked: tuple[str, ...]
    conflicted: tuple[str, ...]
    in_progress: str | None = None
    seen: str | None = None  # where the remote's branch stood when it was last seen

    @property
    def is_clean(self) -> bool:
        return not (self.changed or self.untracked or self.conflicted or self.in_progress)

    @property
    def has_diverged(self) -> bool:
        return bool(self.ahead and self.behind)


class Commit(NamedTuple):
    id: str
    when: int
    author: str
    email: str
    subject: str


def tree_state(out: bytes, act: str | None) -> TreeState:
    """`git status --porcelain=v2 --branch -z --no-renames`, read."""
    branch = head = upstream = None
    ahead = behind = 0
    counted = False
    changed, untracked, conflicted = [], [], []
    for line in os.fsdecode(out).split("\0"):
        mark, _, rest = line.partition(" ")
        if mark == "#":
            key, _, value = rest.partition(" ")
            if key == "branch.oid" and value != "(initial)":
                head = value
            elif key == "branch.head" and value != "(detached)":
                branch = value
            elif key == "branch.upstream":
                upstream = value
            elif key == "branch.ab":
                ahead, behind = (abs(int(number)) for number in value.split())
                counted = True
        elif mark == "1":
            changed.append(rest.split(" ", 7)[7])
        elif mark == "u":
            conflicted.append(rest.split(" ", 9)[9])
        elif mark in ("?", "!"):  # a .gitignore that came with a clone must not hide a node
            untracked.append(rest)
    if not counted:
        upstream = None
    lists = (tuple(changed), tuple(untracked), tuple(conflicted))
    return TreeState(branch, head, upstream, ahead, behind, *lists, act)


def in_progress(folder: str) -> str | None:
    """What a person has begun with git and not finished."""
    return next((act for name, act in ACTS.items() if os.path.lexists(os.path.join(folder, name))), None)


def branch(folder: str) -> str | None:
    try:
        with open(os.path.join(folder, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
            text = file.read().strip()
    except FileNotFoundError:
        return None
    return text.removeprefix("ref: refs/heads/") if text.startswith("ref: refs/heads/") else None


def head(folder: str) -> str | None:
    name = branch(folder)
    if name is not None:
        return ref(folder, f"refs/heads/{name}")
    try:
        with open(os.path.join(folder, "HEAD"), encoding="ascii", errors="replace") as file:
            return _id(file.read().strip())
    except FileNotFoundError:
        return None


def ref(folder: str, name: str) -> str | None:
    """The commit that a branch stands at: in a file of its own, or in the list of packed ones."""
    try:
        with open(os.path.join(folder, *name.split("/")), encoding="ascii", errors="replace") as file:
            return _id(file.read().strip())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        pass
    try:
        with open(os.path.join(folder, "packed-refs"), encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                found, _, packed = line.rstrip("\n").partition(" ")
                if packed == name:
                    return _id(found)
    except FileNotFoundError:
        pass
    return None


def check_id(text: str) -> str:
    """A commit's id in full."""
    if _id(text) is None:
        raise InvalidArgument(name="commit", problem=f"{text!r} is not the id of a commit")
    return text


def _id(text: str) -> str | None:
    return text if len(text) in (40, 64) and not text.strip("0123456789abcdef") else None


def commits(out: bytes) -> tuple[Commit, ...]:
    found = []
    for entry in out.decode(errors="replace").split("\0"):
        if entry.strip():
            name, when, author, email, subject = entry.strip("\n").split("\x1f", 4)
            found.append(Commit(name, int(when), author, email, subject))
    return tuple(found)


def differences(out: bytes) -> dict[str, str]:
    """`git diff-tree -r -z`: path to the blob it has now."""
    parts = os.fsdecode(out).split("\0")
    return {path: entry.split(" ")[3] for entry, path in zip(parts[::2], parts[1::2], strict=False)}


def listed(out: bytes) -> dict[str, str]:
    """`git ls-tree -r -z`: path to blob."""
    found = {}
    for entry in filter(None, os.fsdecode(out).split("\0")):
        facts, _, path = entry.partition("\t")
        found[path] = facts.split(" ")[2]
    return found


def blob_id(data: bytes, sha256: bool) -> str:
    """What git calls a file with these bytes."""
    make = hashlib.sha256 if sha256 else hashlib.sha1
    return make(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def pushed(
    status: int, out: bytes, problem: str
) -> tuple[Literal["pushed", "nothing", "rejected", "unreachable"], str]:
    """`git push --porcelain`: what came of it, and why not."""
    for line in out.decode(errors="replace").splitlines():
        flag, _, rest = line.partition("\t")
        if flag == "!":
            return "rejected", rest.partition("\t")[2] or problem
        if status == 0 and flag == "=":
            return "nothing", ""
    return ("pushed", "") if status == 0 else ("unreachable", problem)


def complaint(err: str) -> str:
    """The line of git's complaint that says why."""
    lines = [line.strip() for line in err.splitlines() if line.strip() and not line.startswith(NOISE)]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines
    line = telling[0] if telling else err.strip().rpartition("\n")[2]
    return line.removeprefix("fatal: ").removeprefix("error: ").rstrip(".") or "git said nothing"


def some(paths: Sequence[str]) -> str:
    """The first few of many paths."""
    more = len(paths) - 3
    return ", ".join(paths[:3]) + (f" and {more:,} more" if more > 0 else "")


def sync_objects(folder: str, begun: int) -> None:
    """Wait until the names of new objects are on the disk: git syncs files, not folders.

    Another git may be tidying up: what is in a folder goes into a pack, and the folder goes.
    """
    objects = os.path.join(folder, "objects")
    with os.scandir(objects) as entries:
        places = [entry.path for entry in entries if len(entry.name) == 2 and _is_newer(entry, begun)]
    for place in (*places, os.path.join(objects, "pack"), objects):
        try:
            durable_files.sync_folder(place)
        except FileNotFoundError:
            continue


def _is_newer(entry: "os.DirEntry[str]", begun: int) -> bool:
    try:
        return entry.stat().st_mtime_ns >= begun - 2 * SECOND
    except FileNotFoundError:
        return False


def sync_branch(folder: str, branch: str) -> None:
    """Wait until a branch's name and the index's are on the disk; what they point to must be there before."""
    durable_files.sync_folder(os.path.dirname(os.path.join(folder, "refs", "heads", *branch.split("/"))))
    durable_files.sync_folder(folder)
