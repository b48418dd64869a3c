"""The one line that a knowledge base has for whoever begins a session, told without calling git where that can be.

What `status` found is remembered beside a mark of everything that it looked at: how the files look, where the branch
and its remote stand, git's index, our own notes. While all of it is as it was, so is the answer, and no program is
started for it. Remembered are numbers, never words: what lies in a repository must not speak to an agent.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from zlib import crc32

from quaid.kb import guarding, layout, reading
from quaid.model.plain_text import count_noun

NAME = "nudge.json"
LARGEST = 4096
VERSION = 2
RACY_NS = 2_000_000_000
"""What changed so shortly ago may change again without looking otherwise."""

LOOKED_AT = ("index", "config", "info/exclude", "ai-kb/state.json")
"""Files in .git that the answer depends on, besides branches and the catalog."""


class Facts(NamedTuple):
    """What is worth a word."""

    secrets: int
    diverged: bool
    push_failed: bool
    ahead: int
    """Commits that the remote does not have; none where there is no remote."""
    uncommitted: int
    new_nodes: int
    """Nodes to look through; none unless it is time."""
    unfinished: bool = False
    """Whether a merge or a rebase was begun and not finished."""


class _Mark(NamedTuple):
    tree: int
    catalog: int
    newest: int


def worded(facts: Facts) -> str:
    """The line; nothing when all is well."""
    told = []
    if facts.secrets:
        told.append(f"{count_noun(facts.secrets, 'secret')} in it: `ai-kb lint`")
    if facts.unfinished:
        told.append("a merge or rebase is not finished: `ai-kb doctor`")
    if facts.diverged:
        told.append("it and its remote have diverged: `ai-kb doctor`")
    elif facts.push_failed:
        told.append(f"{count_noun(facts.ahead, 'commit')} not pushed, the last push failed: `ai-kb doctor`")
    elif facts.ahead:
        told.append(f"{count_noun(facts.ahead, 'commit')} not pushed yet: `ai-kb push`")
    if facts.uncommitted:
        told.append(f"{count_noun(facts.uncommitted, 'file')} not committed: `ai-kb commit`")
    if facts.new_nodes:
        told.append(f"{count_noun(facts.new_nodes, 'node')} to look through: `ai-kb curate --dry-run`")
    return f"ai-kb: {'; '.join(told)}" if told else ""


def nudge(root: str, environ: Mapping[str, str], clock: Callable[[], int] = time.time_ns) -> str:
    """The line of a store, as `status` tells it."""
    guarding.look_at(root)
    before = _mark(root)
    known = _remembered(root, before)
    if known is not None:
        return worded(known)
    from quaid.kb import health
    from quaid.kb.git import Git

    _, facts = health.look(Git(root, environ))
    after = _mark(root)
    if after.tree == before.tree and after.newest < clock() - RACY_NS:
        _remember(root, after, facts)
    return worded(facts)


def _mark(root: str) -> _Mark:
    """Everything that the answer depends on, as it looks now."""
    folder = os.path.join(root, ".git")
    files = layout.walk(root)
    below = {found.path.rpartition("/")[0] for found in files} | {""}
    ignoring = [_looks(os.path.join(root, each, ".gitignore")) for each in sorted(below)]
    ours = [_looks(os.path.join(folder, *name.split("/"))) for name in LOOKED_AT]
    branch = reading.branch(folder)
    remote = branch and reading.ref(folder, f"refs/remotes/origin/{branch}")
    all_looks = [*(found.looks for found in files), *filter(None, (*ignoring, *ours))]
    newest = max((max(looks.mtime_ns, looks.ctime_ns) for looks in all_looks), default=0)
    tree = repr((VERSION, ignoring, ours, branch, reading.in_progress(folder), reading.head(folder), remote))
    # Thousands of files: a line for each, as plainly as can be.
    tree += "\n".join([f"{path} {m} {c} {size} {inode}" for path, (m, c, size, inode) in files])
    catalog = repr(_looks(os.path.join(folder, layout.OURS, "catalog")))
    return _Mark(crc32(tree.encode("utf-8", "surrogatepass")), crc32(catalog.encode()), newest)


def _looks(path: str) -> layout.Looks | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return layout.Looks(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _path(root: str) -> str:
    return os.path.join(root, ".git", layout.OURS, NAME)


def _remembered(root: str, mark: _Mark) -> Facts | None:
    try:
        with open(os.open(_path(root), os.O_RDONLY | layout.NO_LINK), "rb") as file:
            tree, catalog, facts = json.loads(file.read(LARGEST))
            numbers = Facts._make(map(int, facts))
    except (OSError, ValueError, TypeError):
        return None
    return numbers if (tree, catalog) == (mark.tree, mark.catalog) else None


def _remember(root: str, mark: _Mark, facts: Facts) -> None:
    """For the next one who begins. Where that is not possible they wait a little longer."""
    path = _path(root)
    unfinished = f"{path}-{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump([mark.tree, mark.catalog, list(facts)], file)
        os.replace(unfinished, path)
    except OSError:
        try:
            os.unlink(unfinished)
        except OSError:
            pass
