"""Run git safely in a store: read its tree and history, fetch, commit, push.

Nothing in a repository can run a program on this machine: settings are overridden in the environment. A commit is
built by plumbing, so that nothing staged beside it slips in and no hook takes part. Verbs that change the tree expect
the store's lock.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import (
    CloneFailed,
    DiskFull,
    FileChanged,
    GitFailed,
    GitMissing,
    InvalidArgument,
    StagedBeside,
    StoreDirty,
    StoreDiverged,
    StoreLocked,
    StoreMissing,
    StoreOccupied,
    StoreUnfinished,
    UnsafeStore,
)
from quaid.kb import layout, repo_policy, state
from quaid.kb.repo_policy import ALLOWED_PROTOCOLS, GitCommit, TreeState
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from subprocess import Popen
    from typing import Self

LOCAL_TIMEOUT = 120.0
"""No verb that stays on this machine takes as long, unless something is wrong."""

STOP_GRACE_SECONDS = 2.0
"""Seconds that a git which is told to stop has to take its lock files away."""

SSH_COMMAND = "ssh -oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=10 -oServerAliveCountMax=3"

GIT_SETTINGS = {
    # Programs that a repository could name.
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": ":",
    "core.askPass": "",
    "core.editor": ":",
    "sequence.editor": ":",
    "core.pager": "cat",
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "log.showSignature": "false",
    "merge.verifySignatures": "false",
    # Other repositories inside this one.
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "diff.ignoreSubmodules": "all",
    # The bytes of a file are the bytes of its blob, and nobody's list of ignored files hides a node.
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.symlinks": "false",  # a link in a clone becomes a file with a path in it, and leads nowhere
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "transfer.fsckObjects": "true",
    # What was acknowledged survives a power cut.
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    # Nothing goes on in the background; pushing.py tidies up.
    "gc.auto": "0",
    "gc.autoDetach": "false",
    "maintenance.auto": "false",
    # A server that has fallen silent.
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "30",
}

KEPT_VARIABLES = (
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
"""The only variables of git that the caller may set: who they are, and whom they trust."""


class CommandResult(NamedTuple):
    """How a call ended."""

    status: int
    out: bytes
    err: str
    timed_out: bool = False


def git_program(environ: Mapping[str, str]) -> str:
    """Where git is. Only whole paths count: the folder we work in may hold a program of that name."""
    names = ("git.exe",) if os.name == "nt" else ("git",)
    for folder in program_folders(environ):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    raise GitMissing()


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What git gets to know, before a repository is named."""
    ours = {
        key: value for key, value in environ.items() if not key.startswith("GIT_") or key in KEPT_VARIABLES
    }
    ours |= {
        "PATH": os.pathsep.join(program_folders(environ)),
        "LC_ALL": "C",
        "LANGUAGE": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
        "GIT_EDITOR": ":",
        "GIT_SEQUENCE_EDITOR": ":",
        "GIT_MERGE_AUTOEDIT": "no",
        "GIT_PAGER": "cat",
        "GIT_SSH_COMMAND": SSH_COMMAND,
        "GIT_ALLOW_PROTOCOL": ":".join(ALLOWED_PROTOCOLS),
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_COUNT": str(len(GIT_SETTINGS)),
    }
    for number, (key, value) in enumerate(GIT_SETTINGS.items()):
        ours[f"GIT_CONFIG_KEY_{number}"] = key
        ours[f"GIT_CONFIG_VALUE_{number}"] = value
    return ours


def served_command(verb: str) -> str:
    """The other end of a remote on this disk, which git starts here with that repository's settings and hooks."""
    settings = {
        key: GIT_SETTINGS[key] for key in ("core.hooksPath", "core.fsmonitor", "core.alternateRefsCommand")
    }
    return " ".join(("git", *(f"-c {key}={value}" for key, value in settings.items()), verb))


def run_command(
    command: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    *,
    data: bytes | None = None,
    seconds: float = LOCAL_TIMEOUT,
    keep: Sequence[int] = (),
) -> CommandResult:
    """Run a command to its end, or end it with all it has started. `keep`: open files that it inherits.

    It gets a session of its own, and so no terminal that it could ask anything on.
    """
    import subprocess  # 5 ms, and most commands need no git

    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=keep if os.name != "nt" else (),
    )
    try:
        out, err = process.communicate(data, seconds)
    except subprocess.TimeoutExpired:
        stop_process(process)
        return CommandResult(-1, b"", f"no answer within {seconds:g} s", timed_out=True)
    except BaseException:
        stop_process(process)
        raise
    return CommandResult(process.returncode, out, err.decode(errors="replace"))


def stop_process(process: "Popen[bytes]") -> None:
    """End a process and what it has started: politely, then at once."""
    import subprocess

    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        try:
            if os.name == "nt":
                process.kill()
            else:
                os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS says the latter of a group that has ended
            pass
        try:
            process.communicate(timeout=STOP_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        except ValueError:  # its pipes were closed by an earlier end
            process.wait()
        return
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


def program_folders(environ: Mapping[str, str]) -> list[str]:
    """Where programs are looked for."""
    return [each for each in environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]


REMOTE_NAME = "origin"
UNFILTERED_VERBS = frozenset({"cat-file", "for-each-ref", "ls-remote", "ls-tree"})
"""Verbs that ask no attribute of the store. A repository is looked at by these before anything is written to it."""

MIN_FREE_BYTES = 64 * 1024
"""Bytes; with less on the disk, a failure is taken to be for want of room."""


class Repository:
    """One store. `keep` holds the handle of the store's lock, which every git that writes inherits."""

    def __init__(self, root: str, environ: Mapping[str, str]) -> None:
        self.root = os.path.abspath(root)
        self.folder = os.path.join(self.root, ".git")
        self.ours = os.path.join(self.folder, layout.OWN_FOLDER)
        self.keep: tuple[int, ...] = ()
        self._program = git_program(environ)
        self._environ = git_environment(environ)
        self._here = {"GIT_DIR": self.folder, "GIT_WORK_TREE": self.root}
        self._config = repo_policy.GitConfig()
        self._judged: object = ()
        self._settled: object = ()

    def is_repository(self) -> bool:
        """Whether there is a store that may be used; an unsafe one raises."""
        try:
            repo_policy.check_git_folder(self.root)
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
        repo_policy.check_git_folder(self.root)
        return repo_policy.current_branch(self.folder)

    def head(self) -> str | None:
        """The newest commit of the branch."""
        repo_policy.check_git_folder(self.root)
        return repo_policy.head_commit(self.folder)

    def state(self) -> TreeState:
        """What differs from the last commit, and how the branch stands to its remote as it was last seen."""
        seen = self._seen(self.branch())  # before the rest: what moves meanwhile shows later
        options = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=all")
        out = self.call("status", *options, "--untracked-files=all", "--ignored=traditional", reads=True)
        tree = repo_policy.parse_status(out, repo_policy.unfinished_act(self.folder))._replace(seen=seen)
        if seen is None or not tree.head or tree.upstream:
            return tree
        # Somebody named the remote by hand, and git does not know that the branch goes there.
        counts = self.call("rev-list", "--left-right", "--count", f"{tree.head}...{seen}", "--", reads=True)
        ahead, behind = map(int, counts.split())
        return tree._replace(upstream=f"{REMOTE_NAME}/{tree.branch}", ahead=ahead, behind=behind)

    def stands_as(self, tree: TreeState) -> bool:
        """Whether the branch and its remote as it was last seen are where that look has found them."""
        return (self.branch(), self.head(), self._seen(tree.branch)) == (tree.branch, tree.head, tree.seen)

    def _seen(self, branch: str | None) -> str | None:
        return branch and repo_policy.read_ref(self.folder, f"refs/remotes/{REMOTE_NAME}/{branch}")

    def log(self, count: int = 20, paths: Sequence[str] = ()) -> tuple[GitCommit, ...]:
        """The newest commits, the newest first."""
        if self.head() is None:
            return ()
        options = (
            "-z",
            f"--max-count={int(count)}",
            f"--format={repo_policy.LOG_FORMAT}",
            "--no-show-signature",
        )
        out = self.call("log", *options, "HEAD", "--", *map(repo_policy.check_store_path, paths), reads=True)
        return repo_policy.parse_commits(out)

    def diff(self, paths: Sequence[str] = ()) -> str:
        """How the tree differs from the last commit, as a patch."""
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all")
        out = self.call("diff", *options, "HEAD", "--", *map(repo_policy.check_store_path, paths), reads=True)
        return out.decode(errors="replace")

    def content(self, path: str, commit: str = "HEAD") -> bytes | None:
        """A file as a commit has it."""
        if commit != "HEAD":
            repo_policy.check_commit_id(commit)
        done = self._done("cat-file", "blob", f"{commit}:{repo_policy.check_store_path(path)}", reads=True)
        return done.out if done.status == 0 else None

    def top(self, commit: str) -> list[str]:
        """The names at the top of a commit, folders with a slash."""
        out = os.fsdecode(self.call("ls-tree", "-z", repo_policy.check_commit_id(commit), reads=True))
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
            return repo_policy.parse_tree(self.call("ls-tree", "-r", "-z", new, reads=True))
        return repo_policy.parse_diff(
            self.call("diff-tree", "-r", "-z", "--no-renames", old, new, reads=True)
        )

    # Calling

    def config(self) -> repo_policy.GitConfig:
        """The settings, judged again whenever the store's own have changed; an unsafe store raises."""
        found = repo_policy.check_git_folder(self.root)
        mark = found and (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        if mark != self._judged:
            command = (self._program, "config", "--list", "-z", "--show-scope")
            done = run_command(command, self.root, self._environ | self._here, seconds=10)
            if done.status != 0:
                remedy = "Clone it afresh with `ai-kb clone URL`"
                raise UnsafeStore(path=self.root, problem="its git settings cannot be read", remedy=remedy)
            self._config = repo_policy.check_config(done.out, self.root)
            self._judged = mark
        return self._config

    def call(
        self,
        *arguments: str,
        data: bytes | None = None,
        reads: bool = False,
        seconds: float = LOCAL_TIMEOUT,
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
        seconds: float = LOCAL_TIMEOUT,
        also: Mapping[str, str] | None = None,
        keep: tuple[int, ...] = (),
    ) -> CommandResult:
        config = self.config()
        if arguments[0] not in UNFILTERED_VERBS and self._settled != self._judged:
            repo_policy.neutralize_attributes(self.root)
            self._settled = self._judged
        environ = self._environ | self._here | dict(also or {})
        if reads:
            environ["GIT_OPTIONAL_LOCKS"] = "0"
        if config.ssh:
            environ["GIT_SSH_COMMAND"] = config.ssh
        command = (self._program, *arguments)
        return run_command(command, self.root, environ, data=data, seconds=seconds, keep=keep)

    def _plain(self, *arguments: str, seconds: float = LOCAL_TIMEOUT) -> None:
        """A verb that makes a repository, and so has none yet."""
        done = run_command((self._program, *arguments), self.root, self._environ, seconds=seconds)
        if done.status != 0:
            raise self._failure(arguments, done)

    def _failure(self, arguments: Sequence[str], done: CommandResult) -> Exception:
        if "No space left on device" in done.err or _is_disk_full(self.root):
            return DiskFull(path=self.root)
        if ".lock': File exists" in done.err:
            hint = " If no git is running there, wait a minute: a lock that was left behind is then removed."
            return StoreLocked(path=self.root, holder="another git", hint=hint)
        verb = next((each for each in arguments if each[:1] != "-" and "=" not in each), "")
        return GitFailed(verb=verb, path=self.root, problem=self._told(done))

    def _told(self, done: CommandResult) -> str:
        return repo_policy.mask_urls(repo_policy.error_line(done.err)) if done.status else ""


def _is_disk_full(folder: str) -> bool:
    """Whether there is hardly any room: git often says only that it could not write."""
    if not hasattr(os, "statvfs"):
        return False
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize < MIN_FREE_BYTES


DEFAULT_BRANCH = "main"
FETCH_TIMEOUT = 10.0
PUSH_TIMEOUT = 60.0
CLONE_TIMEOUT = 600.0

FALLBACK_IDENTITY = ("ai-kb", "ai-kb@localhost")
"""Who commits on a machine where git does not know its user."""


class GitIdentity(NamedTuple):
    name: str
    email: str


class FetchResult(NamedTuple):
    reached: bool
    problem: str = ""
    is_silent: bool = False  # it took long to fail


class PushResult(NamedTuple):
    outcome: Literal["pushed", "nothing", "rejected", "unreachable"]
    problem: str = ""


class Git(Repository):
    """One store, to read and to write."""

    # Beginning

    def init(self, branch: str = DEFAULT_BRANCH) -> None:
        """Make a repository, unless there is one."""
        repo_policy.check_branch(branch)
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
        seconds: float = CLONE_TIMEOUT,
        check: "Callable[[Git], None] | None" = None,
    ) -> "Git":
        """Fetch a store into a new folder. The folder is there when all of it is, and not before.

        `check` sees the repository before any file is written, and may raise."""
        folder = os.path.abspath(folder)
        url = repo_policy.absolute_url(url)
        repo_policy.check_url(url, folder)
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
                    *("-c", f"init.defaultBranch={DEFAULT_BRANCH}", "clone", *options),
                    *("--no-recurse-submodules", f"--origin={REMOTE_NAME}", "--", url, unfinished),
                    seconds=seconds,
                )
            except GitFailed as failure:
                raise CloneFailed(
                    url=repo_policy.mask_urls(url), problem=failure.facts["problem"]
                ) from failure
            git.call("config", "core.symlinks", "false")
            if git.head() is None:  # the remote's own HEAD names a branch that nobody pushed: many say master
                git.call("symbolic-ref", "HEAD", f"refs/heads/{DEFAULT_BRANCH}")
                git.set_remote(url)
                git.follow_the_only_branch()
                there = repo_policy.read_ref(git.folder, f"refs/remotes/{REMOTE_NAME}/{git.branch()}")
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
            name.removeprefix(f"refs/remotes/{REMOTE_NAME}/")
            for name in self.branches(f"refs/remotes/{REMOTE_NAME}")
        ]
        url = self.remote()
        if self.head() is None and len(names) == 1 and url is not None and names[0] != self.branch():
            self.call("symbolic-ref", "HEAD", f"refs/heads/{repo_policy.check_branch(names[0])}")
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
        raise StoreOccupied(path=folder, told=repo_policy.shorten_paths(names), remedy=remedy)

    def look_into(self, url: str, seconds: float = CLONE_TIMEOUT) -> bool:
        """Fetch the newest commits of a remote into this repository, which is a passing one. False: not reached.

        Fetched is our branch if there is one, else all of them: a remote that another program uses may be large."""
        self.init()
        self.set_remote(url)
        serving = self._serving(url, "upload-pack")
        done = self._done(
            "ls-remote", "--heads", "--quiet", *serving, "--", REMOTE_NAME, seconds=FETCH_TIMEOUT
        )
        if done.status != 0:
            return False
        names = [line.partition("\t")[2] for line in os.fsdecode(done.out).splitlines()]
        wanted = [f"refs/heads/{DEFAULT_BRANCH}"] if f"refs/heads/{DEFAULT_BRANCH}" in names else names
        refs = [
            f"+{name}:refs/remotes/{REMOTE_NAME}/{name.removeprefix('refs/heads/')}" for name in wanted[:20]
        ]
        if refs:
            options = ("--quiet", "--no-tags", "--depth=1", "--no-recurse-submodules", "--refmap=")
            self.call("fetch", *options, *serving, "--", REMOTE_NAME, *refs, seconds=seconds)
        return True

    def set_remote(self, url: str) -> None:
        """Say where the store is pushed to, in place of what was said before."""
        repo_policy.check_url(url, self.root)
        branch = self.branch() or DEFAULT_BRANCH
        for key, value in (
            (f"remote.{REMOTE_NAME}.url", url),
            (f"remote.{REMOTE_NAME}.fetch", f"+refs/heads/*:refs/remotes/{REMOTE_NAME}/*"),
            (f"branch.{branch}.remote", REMOTE_NAME),
            (f"branch.{branch}.merge", f"refs/heads/{branch}"),
        ):
            self.call("config", "--replace-all", key, value)

    # The remote

    def fetch(self, seconds: float = FETCH_TIMEOUT) -> FetchResult:
        """Learn what the remote has. The tree stays as it is, and being offline is no error."""
        url = self.remote()
        if url is None:
            return FetchResult(False, "there is no remote")
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--refmap=")
        refs = f"+refs/heads/*:refs/remotes/{REMOTE_NAME}/*"
        serving = self._serving(url, "upload-pack")
        done = self._done(
            *("fetch", *options, "--no-write-fetch-head", *serving, "--", REMOTE_NAME, refs), seconds=seconds
        )
        return FetchResult(True) if done.status == 0 else FetchResult(False, self._told(done))

    def fast_forward(self) -> bool:
        """Bring the branch to where the remote has been seen, if nothing is lost by it. Whether it moved."""
        branch, head = self.branch(), self.head()
        if branch is None:
            raise InvalidArgument(name="branch", problem="none is checked out; `git switch main` does")
        there = f"refs/remotes/{REMOTE_NAME}/{branch}"
        target = repo_policy.read_ref(self.folder, there)
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
            raise StoreDirty(path=self.root, told=repo_policy.shorten_paths(others))
        with self.changing(tuple(touched)):
            options = ("--ff-only", "--quiet", "--no-stat", "--no-autostash", "--no-verify-signatures")
            self.call("merge", *options, there)
        return True

    def push(self, seconds: float = PUSH_TIMEOUT) -> PushResult:
        """Send the branch to the remote. Never forces; says what came of it and raises nothing for it."""
        url, branch = self.remote(), self.branch()
        if url is None or branch is None or self.head() is None:
            return PushResult(
                "nothing", "there is no remote" if url is None else "there is no commit to push"
            )
        ref = f"refs/heads/{branch}"
        options = ("--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--no-follow-tags")
        serving = self._serving(url, "receive-pack")
        done = self._done("push", *options, *serving, "--", REMOTE_NAME, f"{ref}:{ref}", seconds=seconds)
        return PushResult(*repo_policy.parse_push(done.status, done.out, self._told(done)))

    # Writing, under the store's lock

    def commit(
        self,
        paths: Sequence[str],
        message: str,
        author: GitIdentity | None = None,
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
        act = repo_policy.unfinished_act(self.folder)
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
            repo_policy.sync_objects(self.folder, begun)
            self.call("update-ref", "-m", f"commit: {subject}", "HEAD", new, parent or none)
        except BaseException:
            self._done("reset", "--quiet", "--", *wanted)
            raise
        repo_policy.sync_branch(self.folder, branch)
        return new

    def _check_same(self, tree: str, commit: str) -> None:
        """Where no difference was told there is none: git says nothing of what it could not hand to us."""
        if tree != self.call("rev-parse", f"{commit}^{{tree}}", reads=True).decode().strip():
            raise GitFailed(
                verb="diff-tree", path=self.root, problem="it told of no difference where there is one"
            )

    def restore(self, paths: Sequence[str]) -> None:
        """Make these files what the last commit has, on the disk and in the index; those it has not vanish."""
        wanted = [repo_policy.check_tracked_path(path) for path in paths]
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
        wanted = [repo_policy.check_tracked_path(path) for path in paths]
        repo_policy.check_git_folder(self.root)
        around = state.begin_journal(self.ours, wanted, writes or {})
        try:
            yield
        except BaseException:
            note = state.read_journal(self.ours)
            self.restore(self._still_ours({path: note.get(path, state.ANY_CONTENT) for path in wanted}))
            state.end_journal(self.ours, around)
            raise
        state.end_journal(self.ours, around)

    def _still_ours(self, note: state.JournalEntries) -> list[str]:
        """The files of a change that hold what it wrote into them, or what is not known beforehand.

        A new one that is gone may be one that we were putting back, and it may be left in the index."""
        found, missing = [], []
        for path, written in note.items():
            try:
                with open(os.path.join(self.root, path), "rb") as file:
                    there = state.journal_hash(file.read())
            except OSError:
                there = state.NO_FILE
            if written in (state.ANY_CONTENT, there):
                found.append(path)
            elif there == state.NO_FILE:
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
        note = state.read_journal(self.ours)
        paths = self._still_ours(note)
        if paths:
            self.restore(paths)
        if note:
            state.end_journal(self.ours)
        return tuple(paths)

    def tidy(self) -> None:
        """Pack what has piled up, if much has."""
        self.call("-c", "gc.auto=2000", "gc", "--auto", "--quiet", seconds=LOCAL_TIMEOUT * 5)

    def _serving(self, url: str, verb: str) -> tuple[str, ...]:
        return (
            () if repo_policy.url_to_path(url, self.root) is None else (f"--{verb}={served_command(verb)}",)
        )

    def _judge(
        self, changed: Mapping[str, str], wanted: Sequence[str], expected: Mapping[str, bytes | None]
    ) -> None:
        others = sorted(set(changed) - set(wanted))
        if others:
            raise StagedBeside(path=self.root, told=repo_policy.shorten_paths(others), first=others[0])
        for path, data in expected.items():
            blob = changed.get(path)
            if blob is None:
                continue
            judged = "0" * len(blob) if data is None else repo_policy.blob_id(data, self._config.sha256)
            if blob != judged:
                raise FileChanged(path=path)

    @property
    def knows_the_person(self) -> bool:
        """Return whether git has a name and an address for commits; without, git itself refuses to commit."""
        given = (self._environ.get("GIT_COMMITTER_NAME"), self._environ.get("GIT_COMMITTER_EMAIL"))
        known = (self._config.name, self._config.email)
        return all(one or other for one, other in zip(given, known, strict=True))

    def _who(self, author: GitIdentity | None, when: float | None) -> dict[str, str]:
        """The identity of a commit: the person's, as git knows it, else a neutral one."""
        who: dict[str, str] = {}
        for role in ("AUTHOR", "COMMITTER"):
            known = (self._config.name, self._config.email)
            given = (author.name, author.email) if author and role == "AUTHOR" else (None, None)
            for part, value, mine, nobody in zip(
                ("NAME", "EMAIL"), given, known, FALLBACK_IDENTITY, strict=True
            ):
                variable = f"GIT_{role}_{part}"
                who[variable] = value or self._environ.get(variable) or mine or nobody
            if when is not None:
                who[f"GIT_{role}_DATE"] = f"@{int(when)} +0000"
        return who

    def _plain_file(self, path: str) -> str:
        full = os.path.join(self.root, repo_policy.check_tracked_path(path))
        if os.path.lexists(full) and (os.path.islink(full) or not os.path.isfile(full)):
            raise InvalidArgument(
                name="path", problem=f"{path} is not a plain file and cannot be committed; move it elsewhere"
            )
        return path

    def _remove(self, path: str) -> None:
        full = os.path.join(self.root, path)
        if repo_policy.is_within(os.path.dirname(full), self.root):  # not through a link
            with translate_os_errors(full):
                try:
                    os.unlink(full)
                except (FileNotFoundError, NotADirectoryError):
                    pass
