"""Run git safely in a store (a knowledge base): read its tree and history, fetch, commit, push.

Repository settings that could start a program are overridden in the environment. Commits are built with
plumbing commands, so that no hook runs and no other staged file is included. Methods that change the tree
expect the caller to hold the store's lock.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid import errors
from quaid.kb import layout, repository
from quaid.kb.repository import ALLOWED_PROTOCOLS, JournalEntries, RemoteEvent, TreeState
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from subprocess import Popen

LOCAL_TIMEOUT = 120.0
"""Timeout in seconds for commands without network access. It is far longer than any of them needs."""

STOP_GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL, in which git can remove its lock files."""

SSH_COMMAND = "ssh -oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=10 -oServerAliveCountMax=3"

GIT_SETTINGS = {
    # Settings with which a repository could start programs.
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
    # Nested repositories and submodules.
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "diff.ignoreSubmodules": "all",
    # Store files byte for byte, and ignore the user's global exclude file, which could hide nodes.
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.symlinks": "false",  # check out a symlink as a plain file that contains its target path
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "transfer.fsckObjects": "true",
    # A commit must survive a power failure once it has been reported to the user.
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    # Git starts no maintenance in the background; Git.tidy() runs gc explicitly.
    "gc.auto": "0",
    "gc.autoDetach": "false",
    "maintenance.auto": "false",
    # Abort transfers from servers that have stopped responding.
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "30",
}

KEPT_VARIABLES = (
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
"""The only GIT_* variables taken over from the caller's environment: identity and trusted certificates."""


class CommandResult(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: bytes
    err: str


def find_program(name: str, environ: Mapping[str, str]) -> str:
    """Return the path of a program, or an empty string.

    Relative PATH entries are skipped, because the working folder may contain a program of that name.
    """
    paths = (os.path.join(folder, name) for folder in _program_folders(environ))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")


def git_program(environ: Mapping[str, str]) -> str:
    """Return the path of git. Raise GitMissing if it is not installed."""
    program = find_program("git.exe" if os.name == "nt" else "git", environ)
    if not program:
        raise errors.GitMissing()
    return program


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git: the caller's, without its GIT_* variables except KEPT_VARIABLES.

    It disables prompts, editors and pagers, and contains GIT_SETTINGS.
    """
    ours = {
        key: value for key, value in environ.items() if not key.startswith("GIT_") or key in KEPT_VARIABLES
    }
    ours |= {
        "PATH": os.pathsep.join(_program_folders(environ)),
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


def run_command(
    command: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    *,
    data: bytes | None = None,
    seconds: float = LOCAL_TIMEOUT,
    keep: Sequence[int] = (),
) -> CommandResult:
    """Run a command with `data` as its input. After `seconds`, kill its process group and return the status -1.

    The command inherits the file descriptors in `keep`. It runs in a new session, so that it has no terminal
    for prompts.
    """
    import subprocess  # takes 5 ms, and most commands do not run git

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
        return CommandResult(-1, b"", f"no answer within {seconds:g} s")
    except BaseException:
        stop_process(process)
        raise
    return CommandResult(process.returncode, out, err.decode(errors="replace"))


def stop_process(process: "Popen[bytes]") -> None:
    """Stop a process group with SIGTERM, then with SIGKILL."""
    import subprocess

    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        try:
            if os.name == "nt":
                process.kill()
            else:
                os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS raises PermissionError if the group has exited
            pass
        try:
            process.communicate(timeout=STOP_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        except ValueError:  # the pipes are already closed
            process.wait()
        return
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


def _program_folders(environ: Mapping[str, str]) -> list[str]:
    """Return the absolute folders in PATH."""
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return [folder for folder in folders if os.path.isabs(folder)]


# The repository of a store

REMOTE_NAME = "origin"
DEFAULT_BRANCH = "main"
FETCH_TIMEOUT = 10.0
PUSH_TIMEOUT = 60.0
CLONE_TIMEOUT = 600.0

FALLBACK_IDENTITY = ("ai-kb", "ai-kb@localhost")
"""The name and address used for commits if git has no user configured."""

UNFILTERED_VERBS = frozenset({"cat-file", "for-each-ref", "ls-remote", "ls-tree"})
"""Commands that do not read git attributes, so they are safe to run before neutralize_attributes()."""

EMPTY_TREES = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)
"""IDs of the empty tree in SHA-1 and SHA-256 repositories.

Git knows the empty tree even if it is not stored.
"""

MIN_FREE_BYTES = 64 * 1024
"""If fewer bytes than this are free, a failed git command is attributed to a full disk."""


class Git:
    """The git repository of a store.

    Git processes started by call() inherit the lock's file descriptor in `keep`.
    """

    def __init__(self, root: str, environ: Mapping[str, str]) -> None:
        self.root = os.path.abspath(root)
        self.folder = os.path.join(self.root, ".git")
        self.own_folder = layout.own_folder(self.root)
        self.keep: tuple[int, ...] = ()
        self._program = git_program(environ)
        self._environ = git_environment(environ)
        self._here = {"GIT_DIR": self.folder, "GIT_WORK_TREE": self.root}
        self._config = repository.GitConfig()
        self._config_mark: object = ()
        self._attributes_mark: object = ()

    def is_repository(self) -> bool:
        """Return True if the store exists. Raise an error if it is unsafe to use."""
        try:
            repository.check_git_folder(self.root)
        except errors.StoreMissing:
            return False
        return True

    # Reading

    def remote(self) -> str | None:
        """Return the URL of the remote, including credentials in it, or None if there is no remote."""
        return self.config().remote

    def branch(self) -> str | None:
        """Return the checked-out branch, or None if HEAD is detached."""
        repository.check_git_folder(self.root)
        return repository.read_head(self.folder)[0]

    def head(self) -> str | None:
        """Return the newest commit of the branch, or None if the branch has no commit."""
        repository.check_git_folder(self.root)
        return repository.read_head(self.folder)[1]

    def state(self) -> TreeState:
        """Return uncommitted changes, and how far the branch is ahead of and behind the fetched remote."""
        # The ref is read before the status, so that is_at() notices a change made between the two.
        seen = self._seen(self.branch())
        options = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=all")
        out = self.call("status", *options, "--untracked-files=all", "--ignored=traditional", reads=True)
        tree = repository.parse_status(out, repository.unfinished_act(self.folder))._replace(seen=seen)
        if seen is None or not tree.head or tree.upstream:
            return tree
        # If the remote was configured by hand, the branch has no upstream, so the commits are counted here.
        counts = self.call("rev-list", "--left-right", "--count", f"{tree.head}...{seen}", "--", reads=True)
        ahead, behind = map(int, counts.split())
        return tree._replace(upstream=f"{REMOTE_NAME}/{tree.branch}", ahead=ahead, behind=behind)

    def is_at(self, tree: TreeState) -> bool:
        """Return True if the branch, HEAD and remote-tracking branch are the same as in this tree state."""
        return (self.branch(), self.head(), self._seen(tree.branch)) == (tree.branch, tree.head, tree.seen)

    def _seen(self, branch: str | None) -> str | None:
        return branch and repository.read_ref(self.folder, f"refs/remotes/{REMOTE_NAME}/{branch}")

    def count_commits(self, most: int) -> int:
        """Return the number of commits of the branch, counted up to `most`."""
        if self.head() is None:
            return 0
        return int(self.call("rev-list", "--count", f"--max-count={most}", "HEAD", "--", reads=True))

    def content(self, path: str, commit: str = "HEAD") -> bytes | None:
        """Return a file's content in a commit, or None if the file is not in the commit."""
        if commit != "HEAD":
            repository.check_commit_id(commit)
        done = self._run("cat-file", "blob", f"{commit}:{repository.check_store_path(path)}", reads=True)
        return done.out if done.status == 0 else None

    def top_level(self, commit: str) -> list[str]:
        """Return the top-level names in a commit; folders end with a slash."""
        out = os.fsdecode(self.call("ls-tree", "-z", repository.check_commit_id(commit), reads=True))
        entries = [entry.partition("\t") for entry in out.split("\0") if entry]
        return [name + ("/" if facts.split(" ")[1] == "tree" else "") for facts, _, name in entries]

    def branches(self, below: str) -> dict[str, str]:
        """Return the commit of each branch by full name. `below` is refs/heads or refs/remotes/NAME."""
        out = self.call("for-each-ref", "--format=%(objectname) %(refname)", below, reads=True)
        pairs = [line.partition(" ") for line in os.fsdecode(out).splitlines()]
        return {name: commit for commit, _, name in pairs if not name.endswith("/HEAD")}

    def _differences(self, old: str | None, new: str) -> dict[str, str]:
        """Return path and new blob ID (all zeros if deleted) of each file that differs between two trees."""
        old = old or EMPTY_TREES[self._config.sha256]
        parts = os.fsdecode(self.call("diff-tree", "-r", "-z", "--no-renames", old, new, reads=True)).split(
            "\0"
        )
        return {path: entry.split(" ")[3] for entry, path in zip(parts[::2], parts[1::2], strict=False)}

    # Running git

    def config(self) -> repository.GitConfig:
        """Return the settings, checked again when .git/config has changed.

        Raise an error if the store is unsafe.
        """
        status = repository.check_git_folder(self.root)
        mark = status and (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if mark != self._config_mark:
            command = (self._program, "config", "--list", "-z", "--show-scope")
            done = run_command(command, self.root, self._environ | self._here, seconds=10)
            if done.status != 0:
                remedy = "Clone it afresh with `ai-kb clone URL`"
                raise errors.UnsafeStore(
                    path=self.root, problem="its git settings cannot be read", remedy=remedy
                )
            self._config = repository.check_config(done.out, self.root)
            self._config_mark = mark
        return self._config

    def call(self, *arguments: str, reads: bool = False, **options: Any) -> bytes:
        """Run git and return its output, or raise an error. With `reads`, git takes no optional locks."""
        done = self._run(*arguments, reads=reads, keep=self.keep, **options)
        if done.status != 0:
            raise self._failure(arguments, done)
        return done.out

    def _run(
        self, *arguments: str, reads: bool = False, also: Mapping[str, str] | None = None, **options: Any
    ) -> CommandResult:
        """Run git with the options of run_command() and the environment variables in `also`."""
        config = self.config()
        if arguments[0] not in UNFILTERED_VERBS and self._attributes_mark != self._config_mark:
            repository.neutralize_attributes(self.root)
            self._attributes_mark = self._config_mark
        environ = self._environ | self._here | dict(also or {})
        if reads:
            environ["GIT_OPTIONAL_LOCKS"] = "0"
        if config.ssh:
            environ["GIT_SSH_COMMAND"] = config.ssh
        return run_command((self._program, *arguments), self.root, environ, **options)

    def _plain(self, *arguments: str, seconds: float = LOCAL_TIMEOUT) -> None:
        """Run a git command that creates a repository."""
        done = run_command((self._program, *arguments), self.root, self._environ, seconds=seconds)
        if done.status != 0:
            raise self._failure(arguments, done)

    def _failure(self, arguments: Sequence[str], done: CommandResult) -> Exception:
        if "No space left on device" in done.err or _is_disk_full(self.root):
            return errors.DiskFull(path=self.root)
        if ".lock': File exists" in done.err:
            hint = " If no git is running there, wait a minute: a lock that was left behind is then removed."
            return errors.StoreLocked(path=self.root, holder="another git", hint=hint)
        verb = next((word for word in arguments if word[:1] != "-" and "=" not in word), "")
        return errors.GitFailed(verb=verb, path=self.root, problem=self._problem(done))

    def _problem(self, done: CommandResult) -> str:
        return repository.mask_urls(repository.error_line(done.err)) if done.status else ""

    # Creating

    def init(self) -> None:
        """Create the repository if it does not exist."""
        if self.is_repository():
            return
        with translate_os_errors(self.root):
            durable_files.make_folders(self.root)
        self._plain("init", "--quiet", "--template=", f"--initial-branch={DEFAULT_BRANCH}", "--", self.root)
        self.call("config", "core.symlinks", "false")

    @classmethod
    def clone(
        cls,
        url: str,
        folder: str,
        environ: Mapping[str, str],
        check: "Callable[[Git], None] | None" = None,
    ) -> "Git":
        """Clone a store into a new folder. The folder is created atomically, once the clone is complete.

        `check` is called before any file is checked out, and may raise an error. Raise CloneFailed if git fails, and
        StoreOccupied if the folder is not empty."""
        folder = os.path.abspath(folder)
        url = repository.absolute_url(url)
        repository.check_url(url, folder)
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
            options += ("--no-recurse-submodules", f"--origin={REMOTE_NAME}", "--", url, unfinished)
            try:
                branch = f"init.defaultBranch={DEFAULT_BRANCH}"
                git._plain("-c", branch, "clone", *options, seconds=CLONE_TIMEOUT)
            except errors.GitFailed as failure:
                problem = failure.facts["problem"]
                raise errors.CloneFailed(url=repository.mask_urls(url), problem=problem) from failure
            git.call("config", "core.symlinks", "false")
            if git.head() is None:  # the remote's HEAD names a branch that was never pushed, often master
                git.call("symbolic-ref", "HEAD", f"refs/heads/{DEFAULT_BRANCH}")
                git.set_remote(url)
                git.follow_the_only_branch()
                remote_head = repository.read_ref(git.folder, f"refs/remotes/{REMOTE_NAME}/{git.branch()}")
                if remote_head is not None:
                    git.call("update-ref", f"refs/heads/{git.branch()}", remote_head)
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
        """Switch to the branch of the remote, if the remote has a single branch and this store has no commit."""
        prefix = f"refs/remotes/{REMOTE_NAME}"
        names = [name.removeprefix(f"{prefix}/") for name in self.branches(prefix)]
        url = self.remote()
        if self.head() is None and len(names) == 1 and url is not None and names[0] != self.branch():
            self.call("symbolic-ref", "HEAD", f"refs/heads/{repository.check_branch(names[0])}")
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
            remedy = "`ai-kb init` mends a knowledge base that is there; else name a folder that does not exist yet"
        raise errors.StoreOccupied(path=folder, detail=repository.shorten_paths(names), remedy=remedy)

    def fetch_latest(self, url: str) -> bool:
        """Fetch the latest commits of a remote into this temporary repository.

        Return False if the remote is unreachable. The remote may be a large repository that is used for
        something else, so only the branch `main` is fetched, with depth 1. If there is no such branch, up to 20
        branches are fetched.
        """
        self.init()
        self.set_remote(url)
        serving = self._serving(url, "upload-pack")
        command = ("ls-remote", "--heads", "--quiet", *serving, "--", REMOTE_NAME)
        done = self._run(*command, seconds=FETCH_TIMEOUT)
        if done.status != 0:
            return False
        names = [line.partition("\t")[2] for line in os.fsdecode(done.out).splitlines()]
        fetched_refs = [f"refs/heads/{DEFAULT_BRANCH}"] if f"refs/heads/{DEFAULT_BRANCH}" in names else names
        refs = [
            f"+{name}:refs/remotes/{REMOTE_NAME}/{name.removeprefix('refs/heads/')}"
            for name in fetched_refs[:20]
        ]
        if refs:
            options = ("--quiet", "--no-tags", "--depth=1", "--no-recurse-submodules", "--refmap=")
            self.call("fetch", *options, *serving, "--", REMOTE_NAME, *refs, seconds=CLONE_TIMEOUT)
        return True

    def set_remote(self, url: str) -> None:
        """Set the URL of the remote, replacing the current URL."""
        repository.check_url(url, self.root)
        branch = self.branch() or DEFAULT_BRANCH
        for key, value in (
            (f"remote.{REMOTE_NAME}.url", url),
            (f"remote.{REMOTE_NAME}.fetch", f"+refs/heads/*:refs/remotes/{REMOTE_NAME}/*"),
            (f"branch.{branch}.remote", REMOTE_NAME),
            (f"branch.{branch}.merge", f"refs/heads/{branch}"),
        ):
            self.call("config", "--replace-all", key, value)

    # The remote

    def fetch(self, seconds: float = FETCH_TIMEOUT) -> RemoteEvent:
        """Fetch from the remote without changing the working tree. An unreachable remote is not an error."""
        url = self.remote()
        if url is None:
            return RemoteEvent("unreachable", "there is no remote")
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--refmap=")
        serving = ("--no-write-fetch-head", *self._serving(url, "upload-pack"), "--", REMOTE_NAME)
        refs = f"+refs/heads/*:refs/remotes/{REMOTE_NAME}/*"
        done = self._run("fetch", *options, *serving, refs, seconds=seconds)
        return RemoteEvent("unreachable", self._problem(done)) if done.status else RemoteEvent("reached")

    def fast_forward(self) -> bool:
        """Fast-forward to the last fetched commit. Return True if the branch moved.

        Raise StoreDirty if uncommitted changes would be lost, StoreDiverged if the remote and this store both have
        new commits, StoreUnfinished during a merge or rebase, and InvalidArgument if no branch is checked out.
        """
        branch, head = self.branch(), self.head()
        if branch is None:
            raise errors.InvalidArgument(name="branch", problem="none is checked out; `git switch main` does")
        remote_ref = f"refs/remotes/{REMOTE_NAME}/{branch}"
        target = repository.read_ref(self.folder, remote_ref)
        if target is None or target == head:
            return False
        tree = self.state()
        if tree.in_progress:
            raise errors.StoreUnfinished(path=self.root, act=tree.in_progress)
        if tree.head is not None and tree.ahead:
            if tree.behind:
                raise errors.StoreDiverged(path=self.root, ahead=tree.ahead, behind=tree.behind)
            return False
        touched = self._differences(head, target)
        others = sorted({*tree.changed, *tree.untracked, *tree.conflicted} & set(touched))
        if others:
            raise errors.StoreDirty(path=self.root, detail=repository.shorten_paths(others))
        with self.changing(tuple(touched)):
            options = ("--ff-only", "--quiet", "--no-stat", "--no-autostash", "--no-verify-signatures")
            self.call("merge", *options, remote_ref)
        return True

    def push(self, seconds: float = PUSH_TIMEOUT) -> RemoteEvent:
        """Push the branch to the remote, never with force. Failures are returned, not raised."""
        url, branch = self.remote(), self.branch()
        if url is None or branch is None or self.head() is None:
            return RemoteEvent(
                "nothing", "there is no remote" if url is None else "there is no commit to push"
            )
        ref = f"refs/heads/{branch}"
        options = ("--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--no-follow-tags")
        serving = self._serving(url, "receive-pack")
        done = self._run("push", *options, *serving, "--", REMOTE_NAME, f"{ref}:{ref}", seconds=seconds)
        return RemoteEvent(*repository.parse_push(done.status, done.out, self._problem(done)))

    # Writing; the caller holds the store's lock

    def commit(
        self, paths: Sequence[str], message: str, expected: Mapping[str, bytes | None] | None = None
    ) -> str:
        """Commit exactly these files as they are on disk, and missing files as deleted. Return the commit ID.

        `expected` maps paths to the content that was checked (None means that there was no file). Raise
        FileChanged if a file has different content by now, StagedBeside if other files are staged, StoreUnfinished
        during a merge or rebase, and InvalidArgument if no branch is checked out. If nothing differs from the last
        commit, return the ID of that commit.
        """
        branch, parent = self.branch(), self.head()
        begun = os.stat(self.folder).st_mtime_ns
        if branch is None:
            raise errors.InvalidArgument(name="branch", problem="none is checked out; `git switch main` does")
        act = repository.unfinished_act(self.folder)
        if act:
            raise errors.StoreUnfinished(path=self.root, act=act)
        chosen = [self._plain_file(path) for path in paths]
        listed = b"".join(os.fsencode(path) + b"\0" for path in chosen)
        try:
            self.call("update-index", "--add", "--remove", "-z", "--stdin", data=listed)
            tree = self.call("write-tree").decode().strip()
            changed = self._differences(parent, tree)
            self._check_changed(changed, chosen, expected or {})
            if parent is not None and not changed:
                self._check_same(tree, parent)
                return parent
            options = ("-p", parent) if parent else ()
            out = self.call("commit-tree", *options, tree, data=message.encode(), also=self._identity())
            new = out.decode().strip()
            subject = message.partition("\n")[0]
            repository.sync_objects(self.folder, begun)
            self.call("update-ref", "-m", f"commit: {subject}", "HEAD", new, parent or "0" * len(new))
        except BaseException:
            self._run("reset", "--quiet", "--", *chosen)
            raise
        repository.sync_branch(self.folder, branch)
        return new

    def _check_same(self, tree: str, commit: str) -> None:
        """Verify an empty diff by comparing tree IDs: the diff also looks empty if git's output is lost."""
        if tree != self.call("rev-parse", f"{commit}^{{tree}}", reads=True).decode().strip():
            problem = "it told of no difference where there is one"
            raise errors.GitFailed(verb="diff-tree", path=self.root, problem=problem)

    def restore(self, paths: Sequence[str]) -> None:
        """Reset these files to the last commit, on disk and in the index. Files that are not in it are deleted."""
        chosen = [repository.check_tracked_path(path) for path in paths]
        if not chosen:
            return
        committed = self._committed(chosen)
        tracked = [path for path in chosen if path in committed]
        gone = [path for path in chosen if path not in committed]
        for path in gone:  # delete first, because on a full disk the following steps need the space
            self._remove(path)
        staged = self.call("ls-files", "-z", "--", *gone, reads=True) if gone else b""
        if staged:
            self.call("update-index", "--force-remove", "-z", "--stdin", data=staged)
        if tracked:
            self.call("checkout", "--quiet", "--no-recurse-submodules", "HEAD", "--", *tracked)

    @contextmanager
    def changing(
        self, paths: Sequence[str], writes: Mapping[str, bytes | None] | None = None
    ) -> Iterator[None]:
        """Change these files atomically.

        On an error they are restored; after a crash, they are restored when the store is next locked.

        `writes` gives the new content of some of the files (None means deleted). A file in `writes` that has
        different content when it would be restored was changed by another program, and is kept. All other
        files are restored.
        """
        checked = [repository.check_tracked_path(path) for path in paths]
        repository.check_git_folder(self.root)
        around = repository.begin_journal(self.root, checked, writes or {})
        try:
            yield
        except BaseException:
            note = repository.read_journal(self.root)
            self.restore(self._still_ours({path: note.get(path, repository.ANY_CONTENT) for path in checked}))
            repository.end_journal(self.root, around)
            raise
        repository.end_journal(self.root, around)

    def _still_ours(self, note: JournalEntries) -> list[str]:
        """Return the files of a journal that may be restored, because no other program has changed them.

        These are the files that still have the content in the journal, and those with ANY_CONTENT. Missing
        files that are not in the last commit are included too: a restore may have been interrupted after it
        deleted these files and before it removed them from the index.
        """
        unchanged, missing = [], []
        for path, written in note.items():
            try:
                with open(os.path.join(self.root, path), "rb") as file:
                    digest = repository.journal_hash(file.read())
            except OSError:
                digest = repository.NO_FILE
            if written in (repository.ANY_CONTENT, digest):
                unchanged.append(path)
            elif digest == repository.NO_FILE:
                missing.append(path)
        committed = self._committed(missing)
        return [*unchanged, *(path for path in missing if path not in committed)]

    def _committed(self, paths: Sequence[str]) -> set[str]:
        """Return the files among `paths` that are in the last commit."""
        if not paths or self.head() is None:
            return set()
        out = self.call("ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *paths, reads=True)
        return set(os.fsdecode(out).split("\0"))

    def recover(self) -> tuple[str, ...]:
        """Restore the files that a killed process was changing; return their paths.

        The caller must hold the lock.
        """
        note = repository.read_journal(self.root)
        paths = self._still_ours(note)
        if paths:
            self.restore(paths)
        if note:
            repository.end_journal(self.root)
        return tuple(paths)

    def tidy(self) -> None:
        """Run git gc if about 2000 loose objects have accumulated."""
        self.call("-c", "gc.auto=2000", "gc", "--auto", "--quiet", seconds=LOCAL_TIMEOUT * 5)

    def _serving(self, url: str, verb: str) -> tuple[str, ...]:
        """Return the option that disables the hooks and commands configured in a local remote; () for other remotes.

        For a remote in a folder, git runs the server's command `verb` on this machine, with the settings of the
        remote repository.
        """
        if repository.url_to_path(url, self.root) is None:
            return ()
        keys = ("core.hooksPath", "core.fsmonitor", "core.alternateRefsCommand")
        settings = [f"-c {key}={GIT_SETTINGS[key]}" for key in keys]
        return (f"--{verb}={' '.join(('git', *settings, verb))}",)

    def _check_changed(
        self, changed: Mapping[str, str], chosen: Sequence[str], expected: Mapping[str, bytes | None]
    ) -> None:
        others = sorted(set(changed) - set(chosen))
        if others:
            raise errors.StagedBeside(
                path=self.root, detail=repository.shorten_paths(others), first=others[0]
            )
        for path, data in expected.items():
            blob = changed.get(path)
            if blob is None:
                continue
            judged = "0" * len(blob) if data is None else repository.blob_id(data, self._config.sha256)
            if blob != judged:
                raise errors.FileChanged(path=path)

    @property
    def has_identity(self) -> bool:
        """True if a name and an address for commits are configured.

        Without them, plain git refuses to commit.
        """
        names = (self._environ.get("GIT_COMMITTER_NAME"), self._environ.get("GIT_COMMITTER_EMAIL"))
        configured = (self._config.name, self._config.email)
        return all(one or other for one, other in zip(names, configured, strict=True))

    def _identity(self) -> dict[str, str]:
        """Return the identity variables for a commit: the configured user, else FALLBACK_IDENTITY."""
        values = {
            "NAME": self._config.name or FALLBACK_IDENTITY[0],
            "EMAIL": self._config.email or FALLBACK_IDENTITY[1],
        }
        names = {f"GIT_{role}_{part}": part for role in ("AUTHOR", "COMMITTER") for part in values}
        return {name: self._environ.get(name) or values[part] for name, part in names.items()}

    def _plain_file(self, path: str) -> str:
        full = os.path.join(self.root, repository.check_tracked_path(path))
        if os.path.lexists(full) and (os.path.islink(full) or not os.path.isfile(full)):
            problem = f"{path} is not a plain file and cannot be committed; move it elsewhere"
            raise errors.InvalidArgument(name="path", problem=problem)
        return path

    def _remove(self, path: str) -> None:
        full = os.path.join(self.root, path)
        if repository.is_within(os.path.dirname(full), self.root):  # do not delete through a symlink
            with translate_os_errors(full), suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(full)


def _is_disk_full(folder: str) -> bool:
    """Return True if the disk is nearly full. In that case git often reports only that it could not write."""
    if not hasattr(os, "statvfs"):
        return False
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize < MIN_FREE_BYTES
