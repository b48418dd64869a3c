"""Exchange with the remote of a store: fetch, push, check whether it holds a knowledge base and who can read it.

Pushes are never forced. A failure to reach the remote is recorded and does not raise an error. No lock is needed.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Literal, NamedTuple

from quaid.errors import RemoteOccupied, StoreForeign
from quaid.kb import git as git_cli, layout, node as nodes, repo_policy, state
from quaid.kb.git import (
    DEFAULT_BRANCH,
    FETCH_TIMEOUT,
    PUSH_TIMEOUT,
    REMOTE_NAME,
    FetchResult,
    Git,
    PushResult,
)
from quaid.kb.repo_policy import TreeState, mask_urls, shorten_paths
from quaid.kb.state import Divergence, RemoteEvent, StoreState

IGNORABLE_NAMES = frozenset(
    {".DS_Store", ".directory", ".gitattributes", ".gitignore", ".gitkeep", ".localized"}
)
"""Files that operating systems and git hosts create in an otherwise empty folder."""

MAX_FILES_READ = 20
"""Maximum number of org files read when looking for a complete node."""

MAX_BRANCHES = 20
MAX_HEAD_BYTES = 64 * 1024
"""Maximum number of bytes read from each file."""


class StoreContents(NamedTuple):
    names: tuple[str, ...]
    """Top-level entries; folders end with a slash."""
    is_marked: bool

    @property
    def is_foreign(self) -> bool:
        return bool(self.names) and not self.is_marked

    @property
    def told(self) -> str:
        return shorten_paths(self.names)


def inspect_names(names: Iterable[str], read: Callable[[str], bytes | None]) -> StoreContents:
    """Return the entries, and whether one of them marks a knowledge base. `read` returns the content of an entry."""
    listed = tuple(sorted(name for name in names if name not in IGNORABLE_NAMES and ".quaid-" not in name))
    return StoreContents(
        listed,
        layout.CONTRACT_FILE in listed or any(_is_mark(name, read) for name in _org_candidates(listed)),
    )


def _org_candidates(names: Iterable[str]) -> list[str]:
    """Return the org files to examine, index files first."""
    found = [name for name in names if layout.is_index_file(name)]
    return (found + [name for name in names if layout.is_node_file(name)])[:MAX_FILES_READ]


def _is_mark(name: str, read: Callable[[str], bytes | None]) -> bool:
    text = (read(name) or b"").decode("utf-8", "replace")
    if layout.is_index_file(name):
        return nodes.is_generated_index(text)
    properties = nodes.parse_node(name, text).parsed.properties
    return all(properties.get(each, "").strip() for each in nodes.REQUIRED_PROPERTIES)


def inspect_folder(root: str) -> StoreContents:
    """Inspect a folder. A missing folder counts as empty."""
    try:
        with os.scandir(root) as entries:
            names = [_entry_name(entry) for entry in entries if entry.name != ".git"]
    except FileNotFoundError:
        return StoreContents((), False)

    def read(name: str) -> bytes | None:
        try:
            with open(os.path.join(root, name), "rb") as file:
                return file.read(MAX_HEAD_BYTES)
        except OSError:
            return None

    return inspect_names(filter(None, names), read)


def _entry_name(entry: "os.DirEntry[str]") -> str:
    """Return the name of an entry, or an empty string for a folder without files, which git does not track either."""
    if not entry.is_dir(follow_symlinks=False):
        return entry.name
    return f"{entry.name}/" if any(files for _, _, files in os.walk(entry.path)) else ""


def inspect_commit(git: Git, commit: str) -> StoreContents:
    """Inspect the top level of a commit."""
    return inspect_names(git.top(commit), lambda name: git.content(name, commit))


def inspect_store(git: Git) -> StoreContents:
    """Inspect a folder, and the history of its repository if the folder is not recognized as a knowledge base."""
    found = inspect_folder(git.root)
    if found.is_marked or not git.is_repository():
        return found
    head = git.head()
    if head is None and state.unfinished_paths(git.ours):
        return StoreContents((), False)  # init was interrupted before its first commit
    commits = [head] if head is not None else list(git.branches("refs/heads").values())
    return _join_contents([found, *(inspect_commit(git, commit) for commit in commits[:MAX_BRANCHES])])


def require_own_store(git: Git) -> Git:
    """Return the store. Raise StoreForeign if AI_KB_DIR or kb.store names a repository of something else."""
    found = inspect_store(git)
    if found.is_foreign:
        raise StoreForeign(path=git.root, told=found.told)
    return git


def inspect_remote(git: Git, branch: str | None = None) -> StoreContents:
    """Inspect the remote as last fetched: the current branch if the remote has it, else all of its branches."""
    seen = git.branches(f"refs/remotes/{REMOTE_NAME}")
    ours = seen.get(f"refs/remotes/{REMOTE_NAME}/{branch or git.branch() or DEFAULT_BRANCH}")
    commits = [ours] if ours is not None else list(seen.values())
    return _join_contents([inspect_commit(git, commit) for commit in commits[:MAX_BRANCHES]])


def _join_contents(all_contents: list[StoreContents]) -> StoreContents:
    names = dict.fromkeys(name for each in all_contents for name in each.names)
    return StoreContents(tuple(sorted(names)), any(each.is_marked for each in all_contents))


SLOW_SECONDS = 3.0
"""Seconds. A remote that takes this long to fail would delay every writer."""

SILENT_MINUTES = 10
"""Minutes during which writers do not contact such a remote again."""


def push_store(git: Git, now: str, seconds: float = PUSH_TIMEOUT) -> PushResult:
    """Push if there are commits to push, and record the outcome."""
    tree = git.state()
    if git.remote() is None or tree.branch is None or tree.head is None:
        if git.remote() is not None and tree.branch is None:
            act = tree.in_progress
            return PushResult("rejected", f"a {act} is not finished" if act else "no branch is checked out")
        return PushResult(
            "nothing", "there is no remote" if git.remote() is None else "there is no commit to push"
        )
    if tree.upstream is not None and not tree.ahead:
        state.change_state(git.root, lambda before: _with_all_pushed(before, now, tree))
        return PushResult("nothing")
    if tree.upstream is None:  # the first push of this branch: inspect the remote before sending files to it
        unsuited = _check_first_push(git, now, seconds)
        if unsuited is not None:
            state.note_state(git.root, push=RemoteEvent(now, unsuited.outcome, unsuited.problem))
            return unsuited
    done = git.push(seconds)
    if done.outcome == "rejected":
        fetched = git.fetch(min(seconds, FETCH_TIMEOUT))
        tree = git.state()
        state.note_state(git.root, fetch=_fetch_event(fetched, now))
    elif done.outcome in ("pushed", "nothing"):
        tree = tree._replace(ahead=0, behind=0)
    event = RemoteEvent(now, done.outcome, done.problem)
    heard = done.outcome != "unreachable"

    def noted(before: StoreState) -> StoreState:
        after = _with_divergence(before, now, tree)._replace(push=event)
        return _with_reached(after, now) if heard else after

    state.change_state(git.root, noted)
    return done


def _check_first_push(git: Git, now: str, seconds: float) -> PushResult | None:
    """Inspect a remote before the first push to it. Return why it must not be used, or None."""
    fetched, _ = fetch_store(git, now, min(seconds, FETCH_TIMEOUT))
    if not fetched.reached:
        return PushResult("unreachable", fetched.problem)
    try:
        refuse_foreign_remote(git)
    except RemoteOccupied as error:
        return PushResult("rejected", str(error).rstrip("."))
    return None


def refuse_foreign_remote(git: Git) -> None:
    """Raise RemoteOccupied if the remote, as last fetched, holds something other than a knowledge base."""
    url = git.remote() or ""
    if state.read_state(git.root).accepted == url_hash(url):
        return
    found = inspect_remote(git)
    if found.is_foreign:
        remedy = (
            "Name another one with `ai-kb init --remote URL`; `ai-kb init --force` pushes beside these files"
        )
        raise RemoteOccupied(url=mask_urls(url), told=found.told, remedy=remedy)


def url_hash(url: str) -> str:
    """Return a hash of the URL. It is stored in place of the URL, which may contain a password."""
    return sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def fetch_store(
    git: Git,
    now: str,
    seconds: float = FETCH_TIMEOUT,
    before: TreeState | None = None,
    *,
    sparing: bool = False,
) -> tuple[FetchResult, TreeState]:
    """Fetch, record the outcome and any divergence, and return both the outcome and the state of the tree.

    `before` is a recent tree state, which is reused unless a branch has moved since.
    `sparing`: skip the fetch if the remote timed out a few minutes ago."""
    until = silent_until(state.read_state(git.root), now) if sparing else ""
    if until:
        tree = before if before is not None and git.stands_as(before) else git.state()
        return FetchResult(
            False, f"it did not answer before; it is asked again after {until}, or by `ai-kb push`"
        ), tree
    began = time.monotonic()
    fetched = git.fetch(seconds)
    if not fetched.reached and time.monotonic() - began >= min(SLOW_SECONDS, seconds):
        fetched = fetched._replace(is_silent=True)
    tree = before if before is not None and git.stands_as(before) else git.state()
    if git.remote() is not None:
        event = _fetch_event(fetched, now)
        state.change_state(git.root, lambda before: _with_divergence(before, now, tree)._replace(fetch=event))
    return fetched, tree


def _fetch_event(fetched: FetchResult, now: str) -> RemoteEvent:
    outcome = "reached" if fetched.reached else "silent" if fetched.is_silent else "unreachable"
    return RemoteEvent(now, outcome, fetched.problem)


def silent_until(noted: StoreState, now: str) -> str:
    """Return the time until which writers skip a remote that timed out, or an empty string if it can be contacted."""
    if noted.fetch is None or noted.fetch.outcome != "silent":
        return ""
    try:
        since, moment = datetime.fromisoformat(noted.fetch.at), datetime.fromisoformat(now)
        until = since + timedelta(minutes=SILENT_MINUTES)
        return f"{until:%H:%M} UTC" if since <= moment < until else ""
    except (ValueError, TypeError):
        return ""


def _with_divergence(before: StoreState, now: str, tree: TreeState) -> StoreState:
    """Record whether the branches have diverged, keeping the time at which that was first noticed."""
    if not tree.has_diverged:
        return before._replace(divergence=None)
    since = before.divergence.at if before.divergence else now
    return before._replace(divergence=Divergence(since, tree.ahead, tree.behind))


def _with_reached(before: StoreState, now: str) -> StoreState:
    """Clear a recorded fetch failure, because the remote has responded."""
    is_over = before.fetch is not None and before.fetch.outcome != "reached"
    return before._replace(fetch=RemoteEvent(now, "reached")) if is_over else before


def _with_all_pushed(before: StoreState, now: str, tree: TreeState) -> StoreState:
    """Clear a recorded push failure, because there is nothing left to push. The time of a successful push is kept."""
    after = _with_divergence(before, now, tree)
    if before.push is not None and before.push.outcome in ("rejected", "unreachable"):
        after = after._replace(push=RemoteEvent(now, "nothing"))
    return after


DAEMON_EXPORT_FILE = "git-daemon-export-ok"
"""File that allows `git daemon` to serve a repository to everyone."""

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
REFUSAL_MESSAGES = (
    "Authentication failed",
    "could not read Username",
    "error: 401",
    "error: 403",
    "error: 404",
)
"""Error messages of git for servers that require authentication."""


class RemotePrivacy(NamedTuple):
    state: Literal["private", "public", "unknown"]
    told: str
    remedy: str = ""


def judge_privacy(url: str, root: str, environ: Mapping[str, str], seconds: float) -> RemotePrivacy:
    """Return whether the remote is private. The caller has just reached it."""
    folder = repo_policy.url_to_path(url, root)
    if folder is not None:
        return _folder_privacy(folder, environ)
    scheme, separator, rest = url.partition("://")
    if separator and scheme.lower() in ("http", "https"):
        return _server_privacy(scheme.lower(), rest, environ, seconds)
    return RemotePrivacy(
        "unknown",
        "cannot be known behind ssh: a key opens public and private repositories alike",
        "Look at its settings on the server; it should be readable by you only",
    )


def _folder_privacy(folder: str, environ: Mapping[str, str]) -> RemotePrivacy:
    path = os.path.realpath(folder)
    if os.path.isdir(os.path.join(path, ".git")):
        path = os.path.join(path, ".git")
    if os.path.exists(os.path.join(path, DAEMON_EXPORT_FILE)):
        return RemotePrivacy(
            "public",
            f"git daemon may serve it to everybody ({DAEMON_EXPORT_FILE})",
            f"`rm {path}/{DAEMON_EXPORT_FILE}`",
        )
    mirrors = _mirror_urls(path, environ)
    if mirrors:
        mirror = repo_policy.mask_urls(mirrors[0])
        told = f"it has a remote of its own, {mirror}; whether that is private cannot be known"
        return RemotePrivacy("unknown", told, "Take the remote away if it is a public mirror")
    if os.name == "nt":
        return RemotePrivacy("unknown", "cannot be known of a folder on this system")
    try:
        is_open = _is_world_readable(path)
    except OSError as error:
        return RemotePrivacy("unknown", f"cannot be known: {error.strerror}")
    if is_open:
        return RemotePrivacy("public", "every user of this machine can read it", f"`chmod -R o-rwx {path}`")
    return RemotePrivacy("private", "a folder that other users of this machine cannot read")


def _mirror_urls(path: str, environ: Mapping[str, str]) -> list[str]:
    """Return the remote URLs of a local repository. Only its config file is read, so nothing in it is executed."""
    file = os.path.join(path, "config")
    command = (
        git_cli.git_program(environ),
        "config",
        "--file",
        file,
        "--get-regexp",
        r"^remote\..*\.(push)?url$",
    )
    done = git_cli.run_command(command, os.sep, git_cli.git_environment(environ), seconds=10)
    return [line.partition(" ")[2] for line in done.out.decode(errors="replace").splitlines()]


def _is_world_readable(path: str) -> bool:
    """Return True if other users can enter the folder and all its parents and read its HEAD file."""
    place = path
    while True:
        if not os.stat(place).st_mode & 0o001:
            return False
        above = os.path.dirname(place)
        if above == place:
            break
        place = above
    return bool(os.stat(os.path.join(path, "HEAD")).st_mode & 0o004)


def _server_privacy(scheme: str, rest: str, environ: Mapping[str, str], seconds: float) -> RemotePrivacy:
    host = rest.partition("/")[0].rpartition("@")[2]
    name = host if host.startswith("[") else host.partition(":")[0]
    if scheme == "http" and name.lower() not in LOCAL_HOSTS:
        told = "http sends everything in the clear, so the network can read it"
        return RemotePrivacy("public", told, "`ai-kb init --remote URL` with https or ssh")
    address = f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}/{rest.partition('/')[2]}"
    # Try without the user's credentials: no credential helper, .netrc, headers or client certificate.
    nobody = {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull, "NETRC": os.devnull}
    nobody |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = (git_cli.git_program(environ), "ls-remote", "--heads", "--", address)
    done = git_cli.run_command(command, os.sep, git_cli.git_environment(environ) | nobody, seconds=seconds)
    if done.status == 0:
        return RemotePrivacy("public", "it answers without a password", "Make it private on the server")
    if any(each in done.err for each in REFUSAL_MESSAGES):
        return RemotePrivacy("private", "it shows nothing without a password")
    return RemotePrivacy(
        "unknown", f"cannot be known: {repo_policy.mask_urls(repo_policy.error_line(done.err))}"
    )
