"""What tells a knowledge base from any other folder or branch: its contract, a generated index, or a complete node.

`init`, `clone` and the first push ask here before they write anything: somebody's code repository has none of these,
and our files do not belong there.
"""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quaid.errors import StoreForeign
from quaid.kb import indexing, journal, layout, node as nodes
from quaid.kb.git import BRANCH, Git
from quaid.kb.reading import some
from quaid.kb.repository import REMOTE

NEGLIGIBLE = frozenset({".DS_Store", ".directory", ".gitattributes", ".gitignore", ".gitkeep", ".localized"})
"""Files that a system or a host of repositories puts into an empty folder."""

MOST_READ = 20
"""Org files that are read in search of a complete node."""

MOST_BRANCHES = 20
LONGEST_HEAD = 64 * 1024
"""Bytes of a file that are read."""


class Contents(NamedTuple):
    names: tuple[str, ...]
    """What lies at the top, folders with a slash."""
    is_marked: bool

    @property
    def is_foreign(self) -> bool:
        return bool(self.names) and not self.is_marked

    @property
    def told(self) -> str:
        return some(self.names)


def of_names(names: Iterable[str], read: Callable[[str], bytes | None]) -> Contents:
    """Judge what lies at the top of a folder or of a commit."""
    listed = tuple(sorted(name for name in names if name not in NEGLIGIBLE and ".quaid-" not in name))
    return Contents(listed, layout.CONTRACT in listed or any(_marks(name, read) for name in _org(listed)))


def _org(names: Iterable[str]) -> list[str]:
    """The org files that may be a mark, those of an index first."""
    found = [name for name in names if layout.is_index(name)]
    return (found + [name for name in names if layout.is_node(name)])[:MOST_READ]


def _marks(name: str, read: Callable[[str], bytes | None]) -> bool:
    text = (read(name) or b"").decode("utf-8", "replace")
    if layout.is_index(name):
        return indexing.is_generated(text)
    properties = nodes.read(name, text).parsed.properties
    return all(properties.get(each, "").strip() for each in nodes.REQUIRED)


def on_disk(root: str) -> Contents:
    """Judge a folder; one that is not there is empty."""
    try:
        with os.scandir(root) as entries:
            names = [_listed(entry) for entry in entries if entry.name != ".git"]
    except FileNotFoundError:
        return Contents((), False)

    def read(name: str) -> bytes | None:
        try:
            with open(os.path.join(root, name), "rb") as file:
                return file.read(LONGEST_HEAD)
        except OSError:
            return None

    return of_names(filter(None, names), read)


def _listed(entry: "os.DirEntry[str]") -> str:
    """How an entry is listed; nothing for a folder without any file, which git does not know either."""
    if not entry.is_dir(follow_symlinks=False):
        return entry.name
    return f"{entry.name}/" if any(files for _, _, files in os.walk(entry.path)) else ""


def of_commit(git: Git, commit: str) -> Contents:
    """Judge what a commit holds."""
    return of_names(git.top(commit), lambda name: git.content(name, commit))


def of_store(git: Git) -> Contents:
    """Judge a folder together with the history that its repository has."""
    found = on_disk(git.root)
    if found.is_marked or not git.is_repository():
        return found
    head = git.head()
    if head is None and journal.unfinished(git.ours):
        return Contents((), False)  # a first commit of ours that was interrupted
    commits = [head] if head is not None else list(git.branches("refs/heads").values())
    return _joined([found, *(of_commit(git, commit) for commit in commits[:MOST_BRANCHES])])


def require(git: Git) -> Git:
    """The store, unless AI_KB_DIR or the option kb.store leads into a repository of something else by mistake."""
    found = of_store(git)
    if found.is_foreign:
        raise StoreForeign(path=git.root, told=found.told)
    return git


def of_remote(git: Git, branch: str | None = None) -> Contents:
    """Judge the remote by its branches as they were last seen: by ours if it is there, else by all of them."""
    seen = git.branches(f"refs/remotes/{REMOTE}")
    ours = seen.get(f"refs/remotes/{REMOTE}/{branch or git.branch() or BRANCH}")
    commits = [ours] if ours is not None else list(seen.values())
    return _joined([of_commit(git, commit) for commit in commits[:MOST_BRANCHES]])


def _joined(all_contents: list[Contents]) -> Contents:
    names = dict.fromkeys(name for each in all_contents for name in each.names)
    return Contents(tuple(sorted(names)), any(each.is_marked for each in all_contents))
