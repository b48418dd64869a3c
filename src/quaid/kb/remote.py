"""Exchange with the remote of a store: fetch, push, and check its contents and its privacy.

Pushes are never forced. A failure to reach the remote is recorded and does not raise an error. No lock is
needed.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256

from quaid.errors import RemoteOccupied, StoreForeign
from quaid.kb import git as git_cli, layout, node as nodes, repository
from quaid.kb.git import DEFAULT_BRANCH, FETCH_TIMEOUT, PUSH_TIMEOUT, REMOTE_NAME, Git
from quaid.kb.layout import KbCheck
from quaid.kb.repository import RemoteEvent, TreeState, mask_urls, shorten_paths

IGNORABLE_NAMES = frozenset(
    {".DS_Store", ".directory", ".gitattributes", ".gitignore", ".gitkeep", ".localized"}
)
"""Files that operating systems and git hosts create in an otherwise empty folder."""

MAX_FILES_READ = 20
"""To find a complete node, at most this many org files are read."""

MAX_BRANCHES = 20
MAX_HEAD_BYTES = 64 * 1024
"""At most this many bytes are read from each file."""

Listing = tuple[Iterable[str], Callable[[str], bytes | None]]
"""The top-level names in a folder or commit (folders end with a slash), and a function that reads a file."""


def _foreign_files(listings: Iterable[Listing]) -> str:
    """Return the first file names in these listings as text; empty if there are no files.

    The text is also empty if a file shows that one of the listings is a knowledge base.
    """
    foreign: set[str] = set()
    for entries, read in listings:
        names = sorted(name for name in entries if name not in IGNORABLE_NAMES and ".quaid-" not in name)
        org_files = sorted(filter(layout.is_index_file, names)) + list(filter(layout.is_node_file, names))
        if layout.CONTRACT_FILE in names or any(_is_mark(name, read) for name in org_files[:MAX_FILES_READ]):
            return ""
        foreign.update(names)
    return shorten_paths(sorted(foreign))


def _is_mark(name: str, read: Callable[[str], bytes | None]) -> bool:
    text = (read(name) or b"").decode("utf-8", "replace")
    if layout.is_index_file(name):
        return nodes.is_generated_index(text)
    properties = nodes.parse_node(name, text).parsed.properties
    return all(properties.get(required, "").strip() for required in nodes.REQUIRED_PROPERTIES)


def _list_folder(root: str) -> Listing:
    """List a folder. A missing folder counts as empty, and folders without files are left out, as in git."""
    try:
        with os.scandir(root) as entries:
            names = [_entry_name(entry) for entry in entries if entry.name != ".git"]
    except FileNotFoundError:
        names = []

    def read(name: str) -> bytes | None:
        try:
            with open(os.path.join(root, name), "rb") as file:
                return file.read(MAX_HEAD_BYTES)
        except OSError:
            return None

    return filter(None, names), read


def _entry_name(entry: "os.DirEntry[str]") -> str:
    if not entry.is_dir(follow_symlinks=False):
        return entry.name
    return f"{entry.name}/" if any(files for _, _, files in os.walk(entry.path)) else ""


def _list_commits(git: Git, commits: Iterable[str]) -> Iterator[Listing]:
    for commit in list(commits)[:MAX_BRANCHES]:
        yield git.top(commit), partial(git.content, commit=commit)


def foreign_store(git: Git) -> str:
    """Return the names of files in a folder and its repository; "" if both are empty or a knowledge base."""

    def listings() -> Iterator[Listing]:
        yield _list_folder(git.root)
        if not git.is_repository():
            return
        head = git.head()
        yield from _list_commits(git, [head] if head else git.branches("refs/heads").values())

    if git.is_repository() and git.head() is None and repository.read_journal(git.ours):
        return ""  # the folder is a store whose init was interrupted before the first commit
    return _foreign_files(listings())


def require_own_store(git: Git) -> Git:
    """Return the store.

    Raise StoreForeign if AI_KB_DIR or kb.store names a repository that is not a knowledge base.
    """
    files = foreign_store(git)
    if files:
        raise StoreForeign(path=git.root, detail=files)
    return git


def foreign_remote(git: Git) -> str:
    """Return the names of files on the remote, as last fetched; "" if it is empty or a knowledge base.

    If the remote has the current branch, only that branch is inspected; otherwise up to MAX_BRANCHES branches
    are.
    """
    branches = git.branches(f"refs/remotes/{REMOTE_NAME}")
    current = branches.get(f"refs/remotes/{REMOTE_NAME}/{git.branch() or DEFAULT_BRANCH}")
    return _foreign_files(_list_commits(git, [current] if current else branches.values()))


SLOW_SECONDS = 3.0
"""A remote that takes at least this many seconds to fail counts as slow, because it would delay every writer."""

SILENT_MINUTES = 10
"""Writers do not contact a remote for this many minutes after it was slow to fail."""


def push_store(git: Git, now: str, seconds: float = PUSH_TIMEOUT) -> RemoteEvent:
    """Push if there are commits to push, and record the outcome."""
    tree = git.state()
    if git.remote() is None:
        return RemoteEvent("nothing", "there is no remote")
    if tree.branch is None:
        act = tree.in_progress
        return RemoteEvent("rejected", f"a {act} is not finished" if act else "no branch is checked out")
    if tree.head is None:
        return RemoteEvent("nothing", "there is no commit to push")
    if tree.upstream is not None and not tree.ahead:
        event = repository.read_state(git.root).push
        if event.outcome in ("rejected", "unreachable"):
            event = RemoteEvent("nothing", at=now)  # the commits of the failed push are on the remote by now
        repository.note_state(git.root, tree, now, push=event)
        return RemoteEvent("nothing")
    if tree.upstream is None:  # before the first push of this branch, inspect the remote
        problem = _first_push_problem(git, now, seconds)
        if problem is not None:
            repository.note_state(git.root, push=problem._replace(at=now))
            return problem
    event = git.push(seconds)
    if event.outcome == "rejected":
        fetched = git.fetch(min(seconds, FETCH_TIMEOUT))
        tree = git.state()
        repository.note_state(git.root, fetch=fetched._replace(at=now))
    elif event.outcome in ("pushed", "nothing"):
        tree = tree._replace(ahead=0, behind=0)
    reached = {} if event.outcome == "unreachable" else {"fetch": RemoteEvent("reached", at=now)}
    repository.note_state(git.root, tree, now, push=event._replace(at=now), **reached)
    return event


def _first_push_problem(git: Git, now: str, seconds: float) -> RemoteEvent | None:
    """Inspect a remote before the first push to it.

    Return a failed event if the remote must not be used, or else None.
    """
    fetched, _ = fetch_store(git, now, min(seconds, FETCH_TIMEOUT))
    if fetched.outcome != "reached":
        return RemoteEvent("unreachable", fetched.problem)
    try:
        refuse_foreign_remote(git)
    except RemoteOccupied as error:
        return RemoteEvent("rejected", str(error).rstrip("."))
    return None


def refuse_foreign_remote(git: Git) -> None:
    """Raise RemoteOccupied if the remote, as last fetched, has files but is not a knowledge base.

    A remote that the user accepted with --force is not checked.
    """
    url = git.remote() or ""
    files = "" if repository.read_state(git.root).accepted == url_hash(url) else foreign_remote(git)
    if files:
        remedy = (
            "Name another one with `ai-kb init --remote URL`; `ai-kb init --force` pushes beside these files"
        )
        raise RemoteOccupied(url=mask_urls(url), detail=files, remedy=remedy)


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
) -> tuple[RemoteEvent, TreeState]:
    """Fetch, record the outcome and any divergence, and return both the outcome and the state of the tree.

    `before` is a recent tree state, which is reused unless a branch has moved since. With `sparing`, the
    fetch is skipped if the remote timed out a few minutes ago.
    """
    until = _silent_until(repository.read_state(git.root).fetch, now) if sparing else ""
    began = time.monotonic()
    if until:
        problem = f"it did not answer before; it is asked again after {until}, or by `ai-kb push`"
        fetched = RemoteEvent("unreachable", problem)
    else:
        fetched = git.fetch(seconds)
        if fetched.outcome != "reached" and time.monotonic() - began >= min(SLOW_SECONDS, seconds):
            fetched = fetched._replace(outcome="silent")
    tree = before if before is not None and git.stands_as(before) else git.state()
    if git.remote() is not None and not until:
        repository.note_state(git.root, tree, now, fetch=fetched._replace(at=now))
    return fetched, tree


def _silent_until(fetch: RemoteEvent, now: str) -> str:
    """Return the time until which writers skip a remote that timed out, or "" if it can be contacted."""
    if fetch.outcome != "silent":
        return ""
    try:
        since, moment = datetime.fromisoformat(fetch.at), datetime.fromisoformat(now)
        until = since + timedelta(minutes=SILENT_MINUTES)
        return f"{until:%H:%M} UTC" if since <= moment < until else ""
    except (ValueError, TypeError):
        return ""


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


def check_privacy(url: str, root: str, environ: Mapping[str, str], seconds: float) -> KbCheck:
    """Check whether the remote is private. The caller has just reached the remote."""
    folder = repository.url_to_path(url, root)
    if folder is not None:
        return _check_folder(folder, environ)
    scheme, separator, rest = url.partition("://")
    if separator and scheme.lower() in ("http", "https"):
        return _check_server(scheme.lower(), rest, environ, seconds)
    return _unknown(
        "cannot be known behind ssh: a key opens public and private repositories alike."
        " Look at its settings on the server; it should be readable by you only"
    )


def _unknown(message: str) -> KbCheck:
    return KbCheck("private", True, message, missing=True)


def _check_folder(folder: str, environ: Mapping[str, str]) -> KbCheck:
    path = os.path.realpath(folder)
    if os.path.isdir(os.path.join(path, ".git")):
        path = os.path.join(path, ".git")
    if os.path.exists(os.path.join(path, DAEMON_EXPORT_FILE)):
        message = f"git daemon may serve it to everybody ({DAEMON_EXPORT_FILE})"
        return KbCheck("private", False, message, f"`rm {path}/{DAEMON_EXPORT_FILE}`")
    # Only the config file of the repository is read, so nothing in it is executed.
    pattern = r"^remote\..*\.(push)?url$"
    command = ("config", "--file", os.path.join(path, "config"), "--get-regexp", pattern)
    mirrors = _run_git(command, environ, 10).out.decode(errors="replace").splitlines()
    if mirrors:
        mirror = mask_urls(mirrors[0].partition(" ")[2])
        return _unknown(
            f"it has a remote of its own, {mirror}; whether that is private cannot be known."
            " Take the remote away if it is a public mirror"
        )
    if os.name == "nt":
        return _unknown("cannot be known of a folder on this system")
    try:
        is_open = _is_world_readable(path)
    except OSError as error:
        return _unknown(f"cannot be known: {error.strerror}")
    if is_open:
        return KbCheck("private", False, "every user of this machine can read it", f"`chmod -R o-rwx {path}`")
    return KbCheck("private", True, "a folder that other users of this machine cannot read")


def _run_git(
    arguments: tuple[str, ...], environ: Mapping[str, str], seconds: float, **variables: str
) -> git_cli.CommandResult:
    """Run git outside of any repository."""
    command = (git_cli.git_program(environ), *arguments)
    return git_cli.run_command(command, os.sep, git_cli.git_environment(environ) | variables, seconds=seconds)


def _is_world_readable(path: str) -> bool:
    """Return True if other users can enter the folder and all its parents and read its HEAD file."""
    place = path
    while os.stat(place).st_mode & 0o001:
        above = os.path.dirname(place)
        if above == place:
            return bool(os.stat(os.path.join(path, "HEAD")).st_mode & 0o004)
        place = above
    return False


def _check_server(scheme: str, rest: str, environ: Mapping[str, str], seconds: float) -> KbCheck:
    host = rest.partition("/")[0].rpartition("@")[2]
    name = host if host.startswith("[") else host.partition(":")[0]
    if scheme == "http" and name.lower() not in LOCAL_HOSTS:
        message = "http sends everything in the clear, so the network can read it"
        return KbCheck("private", False, message, "`ai-kb init --remote URL` with https or ssh")
    # Try without the user's credentials, that is without credential helper, .netrc, headers or client
    # certificate.
    anonymous = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "NETRC", "GIT_CONFIG_GLOBAL"), os.devnull)
    anonymous["GIT_CONFIG_NOSYSTEM"] = "1"
    address = f"{scheme}://{host}/{rest.partition('/')[2]}"
    done = _run_git(("ls-remote", "--heads", "--", address), environ, seconds, **anonymous)
    if done.status == 0:
        return KbCheck("private", False, "it answers without a password", "Make it private on the server")
    if any(message in done.err for message in REFUSAL_MESSAGES):
        return KbCheck("private", True, "it shows nothing without a password")
    return _unknown(f"cannot be known: {mask_urls(repository.error_line(done.err))}")
