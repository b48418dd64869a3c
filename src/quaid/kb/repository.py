"""A store's repository, to be looked at: its settings judged, its tree, its history.

Knows the verbs that change nothing, each in one call, and how a call's failure is told. How git is called is
calling.py's business, what is refused guarding.py's, what git prints reading.py's.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quaid.errors import DiskFull, GitFailed, StoreLocked, StoreMissing, UnsafeStore
from quaid.kb import calling, guarding, layout, reading
from quaid.kb.reading import Commit, TreeState

if TYPE_CHECKING:
    from typing import Self

REMOTE = "origin"
UNFILTERED = frozenset({"cat-file", "for-each-ref", "ls-remote", "ls-tree"})
"""Verbs that ask no attribute of the store. A repository is looked at by these before anything is written to it."""

LEAST_ROOM = 64 * 1024
"""Bytes; with less on the disk, a failure is taken to be for want of room."""


class Repository:
    """One store. `keep` holds the handle of the store's lock, which every git that writes inherits."""

    def __init__(self, root: str, environ: Mapping[str, str]) -> None:
        self.root = os.path.abspath(root)
        self.folder = os.path.join(self.root, ".git")
        self.ours = os.path.join(self.folder, layout.OURS)
        self.keep: tuple[int, ...] = ()
        self._program = calling.program(environ)
        self._environ = calling.environment(environ)
        self._here = {"GIT_DIR": self.folder, "GIT_WORK_TREE": self.root}
        self._config = guarding.Config()
        self._judged: object = ()
        self._settled: object = ()

    def is_repository(self) -> bool:
        """Whether there is a store that may be used; an unsafe one raises."""
        try:
            guarding.look_at(self.root)
        except StoreMissing:
            return False
        return True

    def beside(self, root: str) -> "Self":
        """Another store, called in the same environment."""
        return type(self)(root, self._environ)

    # Looking

    def remote(self) -> str | None:
        """The address of the remote, as it is, secrets and all."""
        return self.config().remote

    def branch(self) -> str | None:
        """The branch that is checked out; None when a bare commit is."""
        guarding.look_at(self.root)
        return reading.branch(self.folder)

    def head(self) -> str | None:
        """The newest commit of the branch."""
        guarding.look_at(self.root)
        return reading.head(self.folder)

    def state(self) -> TreeState:
        """What differs from the last commit, and how the branch stands to its remote as it was last seen."""
        seen = self._seen(self.branch())  # before the rest: what moves meanwhile shows later
        options = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=all")
        out = self.call("status", *options, "--untracked-files=all", "--ignored=traditional", reads=True)
        tree = reading.tree_state(out, reading.in_progress(self.folder))._replace(seen=seen)
        if seen is None or not tree.head or tree.upstream:
            return tree
        # Somebody named the remote by hand, and git does not know that the branch goes there.
        counts = self.call("rev-list", "--left-right", "--count", f"{tree.head}...{seen}", "--", reads=True)
        ahead, behind = map(int, counts.split())
        return tree._replace(upstream=f"{REMOTE}/{tree.branch}", ahead=ahead, behind=behind)

    def stands_as(self, tree: TreeState) -> bool:
        """Whether the branch and its remote as it was last seen are where that look has found them."""
        return (self.branch(), self.head(), self._seen(tree.branch)) == (tree.branch, tree.head, tree.seen)

    def _seen(self, branch: str | None) -> str | None:
        return branch and reading.ref(self.folder, f"refs/remotes/{REMOTE}/{branch}")

    def log(self, count: int = 20, paths: Sequence[str] = ()) -> tuple[Commit, ...]:
        """The newest commits, the newest first."""
        if self.head() is None:
            return ()
        options = ("-z", f"--max-count={int(count)}", f"--format={reading.LOG}", "--no-show-signature")
        out = self.call("log", *options, "HEAD", "--", *map(guarding.check_path, paths), reads=True)
        return reading.commits(out)

    def diff(self, paths: Sequence[str] = ()) -> str:
        """How the tree differs from the last commit, as a patch."""
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all")
        out = self.call("diff", *options, "HEAD", "--", *map(guarding.check_path, paths), reads=True)
        return out.decode(errors="replace")

    def content(self, path: str, commit: str = "HEAD") -> bytes | None:
        """A file as a commit has it."""
        if commit != "HEAD":
            reading.check_id(commit)
        done = self._done("cat-file", "blob", f"{commit}:{guarding.check_path(path)}", reads=True)
        return done.out if done.status == 0 else None

    def top(self, commit: str) -> list[str]:
        """The names at the top of a commit, folders with a slash."""
        out = os.fsdecode(self.call("ls-tree", "-z", reading.check_id(commit), reads=True))
        entries = [entry.partition("\t") for entry in out.split("\0") if entry]
        return [name + ("/" if facts.split(" ")[1] == "tree" else "") for facts, _, name in entries]

    def branches(self, below: str) -> dict[str, str]:
        """The branches below refs/heads or refs/remotes/NAME with their commits."""
        out = self.call("for-each-ref", "--format=%(objectname) %(refname)", below, reads=True)
        pairs = [line.partition(" ") for line in os.fsdecode(out).splitlines()]
        return {name: commit for commit, _, name in pairs if not name.endswith("/HEAD")}

    def fsck(self) -> tuple[str, ...]:
        """What is wrong with the repository's objects and branches; nothing when all is well."""
        done = self._done("fsck", "--full", "--no-dangling", "--no-progress", reads=True)
        if done.status == 0:
            return ()
        lines = (done.out.decode(errors="replace") + done.err).splitlines()
        return tuple(filter(None, lines)) or (f"git fsck ended with {done.status}",)

    def _differences(self, old: str | None, new: str) -> dict[str, str]:
        """Path and blob (all zeroes: gone) of each file in which two trees differ."""
        if old is None:
            return reading.listed(self.call("ls-tree", "-r", "-z", new, reads=True))
        return reading.differences(self.call("diff-tree", "-r", "-z", "--no-renames", old, new, reads=True))

    # Calling

    def config(self) -> guarding.Config:
        """The settings, judged again whenever the store's own have changed; an unsafe store raises."""
        found = guarding.look_at(self.root)
        mark = found and (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        if mark != self._judged:
            command = (self._program, "config", "--list", "-z", "--show-scope")
            done = calling.run(command, self.root, self._environ | self._here, seconds=10)
            if done.status != 0:
                remedy = "Clone it afresh with `ai-kb clone URL`"
                raise UnsafeStore(path=self.root, problem="its git settings cannot be read", remedy=remedy)
            self._config = guarding.judge(done.out, self.root)
            self._judged = mark
        return self._config

    def call(
        self,
        *arguments: str,
        data: bytes | None = None,
        reads: bool = False,
        seconds: float = calling.LOCAL_SECONDS,
        also: Mapping[str, str] | None = None,
    ) -> bytes:
        """What git says to a verb that must succeed."""
        done = self._done(*arguments, data=data, reads=reads, seconds=seconds, also=also, keep=self.keep)
        if done.status != 0:
            raise self._failure(arguments, done)
        return done.out

    def _done(
        self,
        *arguments: str,
        data: bytes | None = None,
        reads: bool = False,
        seconds: float = calling.LOCAL_SECONDS,
        also: Mapping[str, str] | None = None,
        keep: tuple[int, ...] = (),
    ) -> calling.Done:
        config = self.config()
        if arguments[0] not in UNFILTERED and self._settled != self._judged:
            guarding.settle_attributes(self.root)
            self._settled = self._judged
        environ = self._environ | self._here | dict(also or {})
        if reads:
            environ["GIT_OPTIONAL_LOCKS"] = "0"
        if config.ssh:
            environ["GIT_SSH_COMMAND"] = config.ssh
        command = (self._program, *arguments)
        return calling.run(command, self.root, environ, data=data, seconds=seconds, keep=keep)

    def _plain(self, *arguments: str, seconds: float = calling.LOCAL_SECONDS) -> None:
        """A verb that makes a repository, and so has none yet."""
        done = calling.run((self._program, *arguments), self.root, self._environ, seconds=seconds)
        if done.status != 0:
            raise self._failure(arguments, done)

    def _failure(self, arguments: Sequence[str], done: calling.Done) -> Exception:
        if "No space left on device" in done.err or _is_full(self.root):
            return DiskFull(path=self.root)
        if ".lock': File exists" in done.err:
            hint = " If no git is running there, wait a minute: a lock that was left behind is then removed."
            return StoreLocked(path=self.root, holder="another git", hint=hint)
        verb = next((each for each in arguments if each[:1] != "-" and "=" not in each), "")
        return GitFailed(verb=verb, path=self.root, problem=self._told(done))

    def _told(self, done: calling.Done) -> str:
        return guarding.masked(reading.complaint(done.err)) if done.status else ""


def _is_full(folder: str) -> bool:
    """Whether there is hardly any room: git often says only that it could not write."""
    if not hasattr(os, "statvfs"):
        return False
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize < LEAST_ROOM
