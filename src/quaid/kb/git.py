"""A store's git: how it begins, what comes from the remote, what is committed, what goes there.

Knows the verbs that change something; repository.py has those that only look. Who may write when is locking.py's
business: every verb that changes the tree expects the store's lock.

A commit is built by plumbing: the index gets the paths, the tree is compared with what was asked for, and only then
the branch moves, in one step and only from where it was. Nothing that a person has staged beside it slips in, and no
hook, editor or signature takes part.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from quaid.errors import (
    CloneFailed,
    FileChanged,
    GitFailed,
    InvalidArgument,
    StagedBeside,
    StoreDirty,
    StoreDiverged,
    StoreOccupied,
    StoreUnfinished,
)
from quaid.kb import calling, guarding, journal, reading
from quaid.kb.repository import REMOTE, Repository
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

BRANCH = "main"
FETCH_SECONDS = 10.0
PUSH_SECONDS = 60.0
CLONE_SECONDS = 600.0

NOBODY = ("ai-kb", "ai-kb@localhost")
"""Who commits on a machine where git does not know its user."""


class Identity(NamedTuple):
    name: str
    email: str


class Fetched(NamedTuple):
    reached: bool
    problem: str = ""
    is_silent: bool = False  # it took long to fail


class Pushed(NamedTuple):
    outcome: Literal["pushed", "nothing", "rejected", "unreachable"]
    problem: str = ""


class Git(Repository):
    """One store, to read and to write."""

    # Beginning

    def init(self, branch: str = BRANCH) -> None:
        """Make a repository, unless there is one."""
        guarding.check_branch(branch)
        if self.is_repository():
            return
        with translate_os_errors(self.root):
            durable_files.make_folders(self.root)
        self._plain("init", "--quiet", "--template=", f"--initial-branch={branch}", "--", self.root)
        self.call("config", "core.symlinks", "false")

    @classmethod
    def clone(
        cls,
        url: str,
        folder: str,
        environ: Mapping[str, str],
        seconds: float = CLONE_SECONDS,
        check: "Callable[[Git], None] | None" = None,
    ) -> "Git":
        """Fetch a store into a new folder. The folder is there when all of it is, and not before.

        `check` sees the repository before any file is written, and may raise."""
        folder = os.path.abspath(folder)
        url = guarding.from_here(url)
        guarding.check_url(url, folder)
        cls._refuse_occupied(folder)
        with translate_os_errors(folder):
            durable_files.make_folders(os.path.dirname(folder))
        unfinished = f"{folder}.cloning-{os.getpid()}"
        git = cls(unfinished, environ)
        try:
            with translate_os_errors(unfinished):
                os.mkdir(unfinished, 0o700)
            serving = git._serving(url, "upload-pack")
            options = ("--quiet", "--no-checkout", "--no-local", "--template=", "--no-tags", *serving)
            try:
                git._plain(
                    *("-c", f"init.defaultBranch={BRANCH}", "clone", *options),
                    *("--no-recurse-submodules", f"--origin={REMOTE}", "--", url, unfinished),
                    seconds=seconds,
                )
            except GitFailed as failure:
                raise CloneFailed(url=guarding.masked(url), problem=failure.facts["problem"]) from failure
            git.call("config", "core.symlinks", "false")
            if git.head() is None:  # the remote's own HEAD names a branch that nobody pushed: many say master
                git.call("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
                git.set_remote(url)
                git.follow_the_only_branch()
                there = reading.ref(git.folder, f"refs/remotes/{REMOTE}/{git.branch()}")
                if there is not None:
                    git.call("update-ref", f"refs/heads/{git.branch()}", there)
            if check is not None:
                check(git)
            if git.head() is not None:
                git.call("read-tree", "--reset", "-u", "HEAD")
            with translate_os_errors(folder):
                os.rename(unfinished, folder)
                durable_files.sync_folder(os.path.dirname(folder))
        except BaseException:
            import shutil

            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        return cls(folder, environ)

    def follow_the_only_branch(self) -> None:
        """Let a store without a commit use the branch that the remote has, if it has one and not ours."""
        names = [
            name.removeprefix(f"refs/remotes/{REMOTE}/") for name in self.branches(f"refs/remotes/{REMOTE}")
        ]
        url = self.remote()
        if self.head() is None and len(names) == 1 and url is not None and names[0] != self.branch():
            self.call("symbolic-ref", "HEAD", f"refs/heads/{guarding.check_branch(names[0])}")
            self.set_remote(url)

    @staticmethod
    def _refuse_occupied(folder: str) -> None:
        if not os.path.lexists(folder):
            return
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else [os.path.basename(folder)]
        if not names:
            return
        remedy = "Name a folder that does not exist yet"
        if ".git" in names:
            remedy = (
                f"`ai-kb init` mends a knowledge base that is there; else {remedy[0].lower()}{remedy[1:]}"
            )
        raise StoreOccupied(path=folder, told=reading.some(names), remedy=remedy)

    def look_into(self, url: str, seconds: float = CLONE_SECONDS) -> bool:
        """Fetch the newest commits of a remote into this repository, which is a passing one. False: not reached.

        Fetched is our branch if there is one, else all of them: a remote that another program uses may be large."""
        self.init()
        self.set_remote(url)
        serving = self._serving(url, "upload-pack")
        done = self._done("ls-remote", "--heads", "--quiet", *serving, "--", REMOTE, seconds=FETCH_SECONDS)
        if done.status != 0:
            return False
        names = [line.partition("\t")[2] for line in os.fsdecode(done.out).splitlines()]
        wanted = [f"refs/heads/{BRANCH}"] if f"refs/heads/{BRANCH}" in names else names
        refs = [f"+{name}:refs/remotes/{REMOTE}/{name.removeprefix('refs/heads/')}" for name in wanted[:20]]
        if refs:
            options = ("--quiet", "--no-tags", "--depth=1", "--no-recurse-submodules", "--refmap=")
            self.call("fetch", *options, *serving, "--", REMOTE, *refs, seconds=seconds)
        return True

    def set_remote(self, url: str) -> None:
        """Say where the store is pushed to, in place of what was said before."""
        guarding.check_url(url, self.root)
        branch = self.branch() or BRANCH
        for key, value in (
            (f"remote.{REMOTE}.url", url),
            (f"remote.{REMOTE}.fetch", f"+refs/heads/*:refs/remotes/{REMOTE}/*"),
            (f"branch.{branch}.remote", REMOTE),
            (f"branch.{branch}.merge", f"refs/heads/{branch}"),
        ):
            self.call("config", "--replace-all", key, value)

    # The remote

    def fetch(self, seconds: float = FETCH_SECONDS) -> Fetched:
        """Learn what the remote has. The tree stays as it is, and being offline is no error."""
        url = self.remote()
        if url is None:
            return Fetched(False, "there is no remote")
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--refmap=")
        refs = f"+refs/heads/*:refs/remotes/{REMOTE}/*"
        serving = self._serving(url, "upload-pack")
        done = self._done(
            *("fetch", *options, "--no-write-fetch-head", *serving, "--", REMOTE, refs), seconds=seconds
        )
        return Fetched(True) if done.status == 0 else Fetched(False, self._told(done))

    def fast_forward(self) -> bool:
        """Bring the branch to where the remote has been seen, if nothing is lost by it. Whether it moved."""
        branch, head = self.branch(), self.head()
        if branch is None:
            raise InvalidArgument(name="branch", problem="none is checked out; `git switch main` does")
        there = f"refs/remotes/{REMOTE}/{branch}"
        target = reading.ref(self.folder, there)
        if target is None or target == head:
            return False
        tree = self.state()
        if tree.in_progress:
            raise StoreUnfinished(path=self.root, act=tree.in_progress)
        if tree.head is not None and tree.ahead:
            if tree.behind:
                raise StoreDiverged(path=self.root, ahead=tree.ahead, behind=tree.behind)
            return False
        touched = self._differences(head, target)
        others = sorted({*tree.changed, *tree.untracked, *tree.conflicted} & set(touched))
        if others:
            raise StoreDirty(path=self.root, told=reading.some(others))
        with self.changing(tuple(touched)):
            options = ("--ff-only", "--quiet", "--no-stat", "--no-autostash", "--no-verify-signatures")
            self.call("merge", *options, there)
        return True

    def push(self, seconds: float = PUSH_SECONDS) -> Pushed:
        """Send the branch to the remote. Never forces; says what came of it and raises nothing for it."""
        url, branch = self.remote(), self.branch()
        if url is None or branch is None or self.head() is None:
            return Pushed("nothing", "there is no remote" if url is None else "there is no commit to push")
        ref = f"refs/heads/{branch}"
        options = ("--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--no-follow-tags")
        serving = self._serving(url, "receive-pack")
        done = self._done("push", *options, *serving, "--", REMOTE, f"{ref}:{ref}", seconds=seconds)
        return Pushed(*reading.pushed(done.status, done.out, self._told(done)))

    # Writing, under the store's lock

    def commit(
        self,
        paths: Sequence[str],
        message: str,
        author: Identity | None = None,
        when: float | None = None,
        expected: Mapping[str, bytes | None] | None = None,
    ) -> str:
        """Commit these files as they are on the disk, gone ones as gone, and nothing else; the commit's id.

        `expected` are bytes that were judged (None: there was no file): a file that holds others by now is not
        committed (FileChanged). When nothing differs, the id is that of the last commit.
        """
        branch, parent = self.branch(), self.head()
        begun = os.stat(self.folder).st_mtime_ns
        if branch is None:
            raise InvalidArgument(name="branch", problem="none is checked out; `git switch main` does")
        act = reading.in_progress(self.folder)
        if act:
            raise StoreUnfinished(path=self.root, act=act)
        wanted = [self._plain_file(path) for path in paths]
        listed = b"".join(os.fsencode(path) + b"\0" for path in wanted)
        try:
            self.call("update-index", "--add", "--remove", "-z", "--stdin", data=listed)
            tree = self.call("write-tree").decode().strip()
            changed = self._differences(parent, tree)
            self._judge(changed, wanted, expected or {})
            if parent is not None and not changed:
                self._check_same(tree, parent)
                return parent
            line = ("-p", parent) if parent else ()
            told = self.call("commit-tree", *line, tree, data=message.encode(), also=self._who(author, when))
            new = told.decode().strip()
            subject = message.partition("\n")[0]
            none = "0" * len(new)
            reading.sync_objects(self.folder, begun)
            self.call("update-ref", "-m", f"commit: {subject}", "HEAD", new, parent or none)
        except BaseException:
            self._done("reset", "--quiet", "--", *wanted)
            raise
        reading.sync_branch(self.folder, branch)
        return new

    def _check_same(self, tree: str, commit: str) -> None:
        """Where no difference was told there is none: git says nothing of what it could not hand to us."""
        if tree != self.call("rev-parse", f"{commit}^{{tree}}", reads=True).decode().strip():
            raise GitFailed(
                verb="diff-tree", path=self.root, problem="it told of no difference where there is one"
            )

    def restore(self, paths: Sequence[str]) -> None:
        """Make these files what the last commit has, on the disk and in the index; those it has not vanish."""
        wanted = [guarding.check_tracked(path) for path in paths]
        if not wanted:
            return
        known = self._committed(wanted)
        kept = [path for path in wanted if path in known]
        gone = [path for path in wanted if path not in known]
        for path in gone:  # first of all: where a disk is full, what follows needs the room
            self._remove(path)
        staged = self.call("ls-files", "-z", "--", *gone, reads=True) if gone else b""
        if staged:
            self.call("update-index", "--force-remove", "-z", "--stdin", data=staged)
        if kept:
            self.call("checkout", "--quiet", "--no-recurse-submodules", "HEAD", "--", *kept)

    @contextmanager
    def changing(
        self, paths: Sequence[str], writes: Mapping[str, bytes | None] | None = None
    ) -> Iterator[None]:
        """Change these files, or nothing: a failure puts them back at once, a kill when the lock is next taken.

        `writes` is what will stand in some of them (None: nothing): one of those that holds something else by then is
        somebody's, and stays. The others belong to the change until its end."""
        wanted = [guarding.check_tracked(path) for path in paths]
        guarding.look_at(self.root)
        around = journal.begin(self.ours, wanted, writes or {})
        try:
            yield
        except BaseException:
            note = journal.noted(self.ours)
            self.restore(self._still_ours({path: note.get(path, journal.WHATEVER) for path in wanted}))
            journal.end(self.ours, around)
            raise
        journal.end(self.ours, around)

    def _still_ours(self, note: journal.Note) -> list[str]:
        """The files of a change that hold what it wrote into them, or what is not known beforehand.

        A new one that is gone may be one that we were putting back, and it may be left in the index."""
        found, missing = [], []
        for path, written in note.items():
            try:
                with open(os.path.join(self.root, path), "rb") as file:
                    there = journal.hash_of(file.read())
            except OSError:
                there = journal.NOTHING
            if written in (journal.WHATEVER, there):
                found.append(path)
            elif there == journal.NOTHING:
                missing.append(path)
        known = self._committed(missing)
        return [*found, *(path for path in missing if path not in known)]

    def _committed(self, paths: Sequence[str]) -> set[str]:
        """Which of these files the last commit has."""
        if not paths or self.head() is None:
            return set()
        out = self.call("ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *paths, reads=True)
        return set(os.fsdecode(out).split("\0"))

    def recover(self) -> tuple[str, ...]:
        """Put back what a killed process was changing; which files. Done whenever the lock is taken."""
        note = journal.noted(self.ours)
        paths = self._still_ours(note)
        if paths:
            self.restore(paths)
        if note:
            journal.end(self.ours)
        return tuple(paths)

    def tidy(self) -> None:
        """Pack what has piled up, if much has."""
        self.call("-c", "gc.auto=2000", "gc", "--auto", "--quiet", seconds=calling.LOCAL_SECONDS * 5)

    def _serving(self, url: str, verb: str) -> tuple[str, ...]:
        return () if guarding.on_disk(url, self.root) is None else (f"--{verb}={calling.served(verb)}",)

    def _judge(
        self, changed: Mapping[str, str], wanted: Sequence[str], expected: Mapping[str, bytes | None]
    ) -> None:
        others = sorted(set(changed) - set(wanted))
        if others:
            raise StagedBeside(path=self.root, told=reading.some(others), first=others[0])
        for path, data in expected.items():
            blob = changed.get(path)
            if blob is None:
                continue
            judged = "0" * len(blob) if data is None else reading.blob_id(data, self._config.sha256)
            if blob != judged:
                raise FileChanged(path=path)

    @property
    def knows_the_person(self) -> bool:
        """Return whether git has a name and an address for commits; without, git itself refuses to commit."""
        given = (self._environ.get("GIT_COMMITTER_NAME"), self._environ.get("GIT_COMMITTER_EMAIL"))
        known = (self._config.name, self._config.email)
        return all(one or other for one, other in zip(given, known, strict=True))

    def _who(self, author: Identity | None, when: float | None) -> dict[str, str]:
        """The identity of a commit: the person's, as git knows it, else a neutral one."""
        who: dict[str, str] = {}
        for role in ("AUTHOR", "COMMITTER"):
            known = (self._config.name, self._config.email)
            given = (author.name, author.email) if author and role == "AUTHOR" else (None, None)
            for part, value, mine, nobody in zip(("NAME", "EMAIL"), given, known, NOBODY, strict=True):
                variable = f"GIT_{role}_{part}"
                who[variable] = value or self._environ.get(variable) or mine or nobody
            if when is not None:
                who[f"GIT_{role}_DATE"] = f"@{int(when)} +0000"
        return who

    def _plain_file(self, path: str) -> str:
        full = os.path.join(self.root, guarding.check_tracked(path))
        if os.path.lexists(full) and (os.path.islink(full) or not os.path.isfile(full)):
            raise InvalidArgument(
                name="path", problem=f"{path} is not a plain file and cannot be committed; move it elsewhere"
            )
        return path

    def _remove(self, path: str) -> None:
        full = os.path.join(self.root, path)
        if guarding.within(os.path.dirname(full), self.root):  # not through a link
            with translate_os_errors(full):
                try:
                    os.unlink(full)
                except (FileNotFoundError, NotADirectoryError):
                    pass
