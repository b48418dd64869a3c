"""The repository of a knowledge base: security checks, git's files and output, and our files in .git/ai-kb.

.git/config may contain only settings from an allowlist, none of which can start a program. A clone may
contain .gitattributes files, which are overridden at the end of .git/info/attributes. This module starts no
processes.

In .git/ai-kb, this module keeps the state of fetches and pushes, the journal of a change, and lock files. They are
never committed, and contain neither node text nor passwords. A file that cannot be parsed counts as empty.
"""

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from quaid.errors import InvalidArgument, StoreMissing, UnsafeStore
from quaid.folders.scanner import FILE_FLAGS
from quaid.kb.layout import OWN_FOLDER, own_folder
from quaid.model.secrets import mask
from quaid.storage import files as durable_files
from quaid.storage.files import FIRST_LOCK_PAUSE, LONGEST_LOCK_PAUSE, is_file_at, try_lock_file
from quaid.storage.sqlite.errors import translate_os_errors

ALLOWED_PROTOCOLS = ("file", "http", "https", "ssh")

ATTRIBUTES = """\
* !filter !diff !merge !ident !eol !working-tree-encoding -text
/index*.org merge=union
"""
"""Attribute overrides.

With merge=union, index files never conflict, because all lines are kept until the next rebuild.
"""

ALLOWED_SETTINGS = {
    "core": frozenset(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf"
        " sharedrepository".split()
    ),
    "extensions": {"objectformat"},
    "remote.": {"url", "fetch", "tagopt"},
    "branch.": {"remote", "merge", "rebase", "description"},
    "user": {"name", "email", "signingkey"},
    "commit": {"gpgsign"},
    "pull": {"ff", "rebase"},
    "merge": {"ff", "conflictstyle"},
    "gc": {"auto"},
    "maintenance": {"auto", "strategy"},
    "init": {"defaultbranch"},
}
"""Allowed keys by section, in lowercase. A trailing dot stands for any subsection."""

_SCP_LIKE = re.compile(r"(?:[^@/:\s]+@)?(?P<host>\[[^\]]+\]|[^/:\s]+):(?!:)")
_USERINFO = re.compile(r"(?i)\b(https?)://[^/@\s]+@")
_PASSWORD = re.compile(r"(\w://[^/:@\s]+):[^/@\s]+@")
_QUERY = re.compile(r"(\w://[^\s?]{1,2000})\?[^\s'\"]+")
MAX_MESSAGE_LENGTH = 10_000


class GitConfig(NamedTuple):
    """The git settings used here: the remote of the store and the identity of the user."""

    remote: str | None = None
    name: str | None = None
    email: str | None = None
    ssh: str | None = None  # core.sshCommand from the user's or system's settings
    sha256: bool = False


def check_git_folder(root: str) -> os.stat_result | None:
    """Raise StoreMissing if .git is missing, and UnsafeStore if it is unsafe.

    Return the stat of .git/config, or None if it does not exist.
    """
    folder = os.path.join(root, ".git")
    try:
        status = os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreMissing(path=root) from None
    if not stat.S_ISDIR(status.st_mode):
        raise _unsafe_store(root, "its .git is not a folder but points elsewhere")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise UnsafeStore(
            path=root, problem="it belongs to another user", remedy="Clone it, or take it over with chown"
        )
    if os.path.lexists(os.path.join(folder, "commondir")):
        raise _unsafe_store(root, "its settings lie in another repository (.git/commondir)")
    for name in ("info", OWN_FOLDER):
        path = os.path.join(folder, name)
        if os.path.islink(path) or (os.path.lexists(path) and not os.path.isdir(path)):
            raise _unsafe_store(root, f".git/{name} is not a folder")
    if not os.path.lexists(os.path.join(folder, "HEAD")):
        raise StoreMissing(path=root)
    try:
        return os.stat(os.path.join(folder, "config"))
    except FileNotFoundError:
        return None


def neutralize_attributes(root: str) -> None:
    """Write .git/info/attributes so that it overrides the .gitattributes files of the store."""
    path = os.path.join(root, ".git", "info", "attributes")
    try:
        with open(path, "rb") as file:
            before = file.read()
    except FileNotFoundError:
        before = b""
    ours = ATTRIBUTES.encode()
    if before == ours or before.endswith(b"\n" + ours):
        return
    with translate_os_errors(path):
        durable_files.make_folders(os.path.dirname(path))
        durable_files.write_file(
            path, before + (b"" if not before or before.endswith(b"\n") else b"\n") + ours
        )


def check_config(listing: bytes, root: str) -> GitConfig:
    """Parse `git config --list -z --show-scope`.

    Raise UnsafeStore for a setting that is not on the allowlist, and for an unsafe remote.
    """
    parts = listing.decode(errors="surrogateescape").split("\0")
    settings: dict[str, str] = {}
    remotes: list[str] = []
    for scope, entry in zip(parts[::2], parts[1::2], strict=False):
        key, _, value = entry.partition("\n")
        if scope in ("local", "worktree"):
            _check_setting(key, value, root)
            if key == "remote.origin.url":
                remotes.append(value)
        if key != "core.sshcommand" or scope in ("system", "global"):
            settings[key] = value
    if len(remotes) > 1:
        raise _unsafe_store(root, "its remote has several addresses")
    for url in remotes:
        problem = url_problem(url, root)
        if problem:
            raise _unsafe_store(root, f"its remote {mask_urls(url)!r} {problem}")
    return GitConfig(
        remotes[0] if remotes else None,
        settings.get("user.name") or None,
        settings.get("user.email") or None,
        settings.get("core.sshcommand") or None,
        settings.get("extensions.objectformat") == "sha256",
    )


def _check_setting(key: str, value: str, root: str) -> None:
    section, _, rest = key.partition(".")
    name, _, last = rest.rpartition(".")
    if last not in ALLOWED_SETTINGS.get(f"{section}." if name else section, ()):
        remedy = f"Clone it afresh, or look at .git/config and remove {key} if you did not set it"
        raise UnsafeStore(path=root, problem=f"its own git settings hold {key}", remedy=remedy)
    if key == "core.bare" and value.lower() not in ("false", "no", "off", "0", ""):
        raise _unsafe_store(root, "it is a bare repository, without files")


def url_problem(url: str, root: str) -> str | None:
    """Return why a URL is rejected, or None."""
    if not url or url.startswith("-") or any(ord(character) < 32 for character in url):
        return "is not an address"
    scheme, separator, rest = url.partition("://")
    if separator:
        if scheme.lower() not in ALLOWED_PROTOCOLS:
            return f"uses {scheme}, not one of {', '.join(ALLOWED_PROTOCOLS)}"
        host = rest.partition("/")[0].rpartition("@")[2]
        if host.startswith(("-", "%")):
            return "has a host that begins with a dash"
    elif "::" in url.partition("/")[0]:
        return "names a program to run"
    elif (match := _SCP_LIKE.match(url)) and match["host"].startswith("-"):
        return "has a host that begins with a dash"
    path = url_to_path(url, root)
    if path is not None and is_within(path, root):
        return "lies in the store itself"
    return None


def url_to_path(url: str, root: str) -> str | None:
    """Return the local path of a URL, or None if the URL is not local."""
    scheme, separator, rest = url.partition("://")
    if separator:
        return os.path.join("/", rest.partition("/")[2]) if scheme.lower() == "file" else None
    if _SCP_LIKE.match(url) and not (os.name == "nt" and url[1:2] == ":"):
        return None
    return os.path.normpath(os.path.join(root, url))


def absolute_url(url: str) -> str:
    """Make a local path absolute, relative to the current folder. Return other URLs unchanged."""
    source = url_to_path(url, os.getcwd())
    is_path = source is not None and "://" not in url and "::" not in url and not url.startswith("-")
    return source if source is not None and url and is_path else url


def is_within(path: str, root: str) -> bool:
    """Return True if the path is the root or inside it, after resolving symlinks."""
    path, root = os.path.realpath(path), os.path.realpath(root)
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def check_url(url: str, root: str) -> str:
    problem = url_problem(url, root)
    if problem:
        raise InvalidArgument(name="url", problem=f"{mask_urls(url)!r} {problem}")
    return url


def check_branch(name: str) -> str:
    """Return the branch name. Raise InvalidArgument if git could interpret it as something else."""
    if (
        not name.replace("/", "").replace(".", "-").isprintable()
        or name.startswith(("-", "/", "."))
        or name.endswith(("/", ".", ".lock"))
        or any(part in name for part in ("..", "//", *" ~^:?*[\\\x7f@{"))
        or not name
    ):
        raise InvalidArgument(name="branch", problem=f"{name!r} is not a name for a branch")
    return name


def check_store_path(path: str) -> str:
    """Return the path.

    Raise InvalidArgument unless it is a relative path inside the store, separated by '/'.
    """
    parts = path.split("/")
    if not path or path.startswith("-") or "\0" in path or os.path.isabs(path) or "\\" in path:
        problem = f"{path!r} is not a path inside the store"
    elif any(part in ("", ".", "..") for part in parts):
        problem = f"{path!r} leads out of the store, or nowhere"
    elif any(part.lower().rstrip(". ") == ".git" for part in parts):
        problem = f"{path!r} is git's own"
    else:
        return path
    raise InvalidArgument(name="path", problem=problem)


def check_tracked_path(path: str) -> str:
    """Check a path reported by git. Unlike check_store_path(), allow names such as -x or a\\b.

    Such paths are passed after `--` or on standard input, where a leading dash has no meaning."""
    named = path if os.name == "nt" else path.replace("\\", "_")
    check_store_path(f"_{named}" if named.startswith("-") else named)
    return path


def mask_urls(text: str) -> str:
    """Return a message with the credentials and query strings of its URLs masked."""
    text = _USERINFO.sub(r"\1://…@", text[:MAX_MESSAGE_LENGTH])
    text = _PASSWORD.sub(r"\1:…@", text)
    return mask(_QUERY.sub(r"\1?…", text))[0]


def _unsafe_store(root: str, problem: str) -> UnsafeStore:
    return UnsafeStore(path=root, problem=problem, remedy="Clone it afresh with `ai-kb clone URL`")


# Files and output of git

UNFINISHED_ACTS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
NOISE_PREFIXES = ("hint:", "remote:", "warning:", "To ", "From ", " ")
SECOND_NS = 1_000_000_000


class TreeState(NamedTuple):
    branch: str | None  # None if HEAD is detached
    head: str | None  # None if there is no commit yet
    upstream: str | None  # None if the branch has no fetched counterpart on the remote
    ahead: int
    behind: int
    changed: tuple[str, ...]  # tracked files that differ from the last commit, staged or not
    untracked: tuple[str, ...]
    conflicted: tuple[str, ...]
    in_progress: str | None = None
    seen: str | None = None  # commit of the remote-tracking branch

    @property
    def is_clean(self) -> bool:
        return not (self.changed or self.untracked or self.conflicted or self.in_progress)

    @property
    def has_diverged(self) -> bool:
        return bool(self.ahead and self.behind)


def parse_status(out: bytes, act: str | None) -> TreeState:
    """Parse the output of `git status --porcelain=v2 --branch -z --no-renames`."""
    headers: dict[str, str] = {}
    changed, untracked, conflicted = [], [], []
    for line in os.fsdecode(out).split("\0"):
        mark, _, rest = line.partition(" ")
        if mark == "#":
            key, _, value = rest.partition(" ")
            headers[key] = value
        elif mark == "1":
            changed.append(rest.split(" ", 7)[7])
        elif mark == "u":
            conflicted.append(rest.split(" ", 9)[9])
        elif mark in ("?", "!"):
            # Ignored files are included, because a cloned .gitignore must not hide a node.
            untracked.append(rest)
    counts = headers.get("branch.ab", "")
    return TreeState(
        branch=headers.get("branch.head", "").replace("(detached)", "") or None,
        head=headers.get("branch.oid", "").replace("(initial)", "") or None,
        upstream=headers.get("branch.upstream") if counts else None,
        ahead=abs(int(counts.split()[0])) if counts else 0,
        behind=abs(int(counts.split()[1])) if counts else 0,
        changed=tuple(changed),
        untracked=tuple(untracked),
        conflicted=tuple(conflicted),
        in_progress=act,
    )


def unfinished_act(folder: str) -> str | None:
    """Return the git operation in progress (merge, rebase, …), or None."""
    return next(
        (act for name, act in UNFINISHED_ACTS.items() if os.path.lexists(os.path.join(folder, name))), None
    )


def read_head(folder: str) -> tuple[str | None, str | None]:
    """Return the branch, or None if HEAD is detached, and the commit of HEAD, or None if there is none."""
    try:
        with open(os.path.join(folder, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
            text = file.read().strip()
    except FileNotFoundError:
        return None, None
    branch = text.removeprefix("ref: refs/heads/")
    if branch == text:
        return None, _commit_id(text)
    return branch, read_ref(folder, f"refs/heads/{branch}")


def read_ref(folder: str, name: str) -> str | None:
    """Return the commit of a ref, from its loose file or from packed-refs, or None."""
    try:
        with open(os.path.join(folder, *name.split("/")), encoding="ascii", errors="replace") as file:
            return _commit_id(file.read().strip())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        pass
    try:
        with open(os.path.join(folder, "packed-refs"), encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                commit, _, packed = line.rstrip("\n").partition(" ")
                if packed == name:
                    return _commit_id(commit)
    except FileNotFoundError:
        pass
    return None


def check_commit_id(text: str) -> str:
    """Return the commit ID. Raise InvalidArgument unless it has the full length."""
    if _commit_id(text) is None:
        raise InvalidArgument(name="commit", problem=f"{text!r} is not the id of a commit")
    return text


def _commit_id(text: str) -> str | None:
    return text if len(text) in (40, 64) and not text.strip("0123456789abcdef") else None


def blob_id(data: bytes, sha256: bool) -> str:
    """Return the git ID of a blob with this content."""
    make = hashlib.sha256 if sha256 else hashlib.sha1
    return make(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def parse_push(status: int, out: bytes, problem: str) -> tuple[str, str]:
    """Parse the output of `git push --porcelain` into an outcome and the reason for a failure."""
    for line in out.decode(errors="replace").splitlines():
        flag, _, rest = line.partition("\t")
        if flag == "!":
            return "rejected", rest.partition("\t")[2] or problem
        if status == 0 and flag == "=":
            return "nothing", ""
    return ("pushed", "") if status == 0 else ("unreachable", problem)


def error_line(err: str) -> str:
    """Return the line of git's error output that explains the failure."""
    lines = [
        line.strip() for line in err.splitlines() if line.strip() and not line.startswith(NOISE_PREFIXES)
    ]
    lines = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines
    line = lines[0] if lines else err.strip().rpartition("\n")[2]
    return line.removeprefix("fatal: ").removeprefix("error: ").rstrip(".") or "git said nothing"


def shorten_paths(paths: Sequence[str]) -> str:
    """Return the first three paths and the number of further paths, as text."""
    more = len(paths) - 3
    return ", ".join(paths[:3]) + (f" and {more:,} more" if more > 0 else "")


def sync_objects(folder: str, begun: int) -> None:
    """Sync the folders of objects changed since `begun` to disk, because git syncs files but not folders.

    Folders that disappear meanwhile, because another git process packs their objects, are skipped.
    """
    objects = os.path.join(folder, "objects")
    with os.scandir(objects) as entries:
        places = [entry.path for entry in entries if len(entry.name) == 2 and _is_newer(entry, begun)]
    for place in (*places, os.path.join(objects, "pack"), objects):
        with suppress(FileNotFoundError):
            durable_files.sync_folder(place)


def _is_newer(entry: "os.DirEntry[str]", begun: int) -> bool:
    try:
        return entry.stat().st_mtime_ns >= begun - 2 * SECOND_NS
    except FileNotFoundError:
        return False


def sync_branch(folder: str, branch: str) -> None:
    """Sync the folders of the branch and of the index to disk. The objects must be synced first."""
    durable_files.sync_folder(os.path.dirname(os.path.join(folder, "refs", "heads", *branch.split("/"))))
    durable_files.sync_folder(folder)


# Files in .git/ai-kb

STATE_FILE = "state.json"
JOURNAL_FILE = "unfinished.json"
MAX_PROBLEM_LENGTH = 300
STATE_LOCK_TIMEOUT = 5.0


class RemoteEvent(NamedTuple):
    """The outcome of a fetch or of a push, the reason for a failure, and when the outcome was recorded.

    The outcome of a fetch is "reached", "unreachable", or "silent" after a long wait. The outcome of a push
    is "pushed", "nothing", "rejected" or "unreachable".
    """

    outcome: str = ""
    problem: str = ""
    at: str = ""


class StoreState(NamedTuple):
    fetch: RemoteEvent = RemoteEvent()
    push: RemoteEvent = RemoteEvent()
    diverged_at: str = ""  # when the branch was first seen to have diverged from the remote
    indexed_at: str = ""
    accepted: str = ""  # hash of the URL of a remote that the user accepted although it contains other files


def read_json(root: str, name: str) -> Any:
    """Return the content of a small file, or None if it is missing or invalid."""
    path = os.path.join(own_folder(root), name)
    with translate_os_errors(path):
        try:
            handle = os.open(path, FILE_FLAGS)
            with open(handle, encoding="utf-8", errors="surrogateescape") as file:
                return json.load(file)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None


def _write_json(root: str, name: str, value: Any) -> None:
    path = os.path.join(own_folder(root), name)
    with translate_os_errors(path):
        durable_files.make_folders(own_folder(root))
        durable_files.write_file(path, f"{json.dumps(value, indent=1)}\n".encode())


def lock_file(path: str, patience: float) -> tuple[int, bool]:
    """Open a file and wait up to `patience` seconds for its lock.

    Return the descriptor, and True if the lock was taken or False after the timeout.
    """
    deadline, pause = time.monotonic() + patience, FIRST_LOCK_PAUSE
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        is_locked = try_lock_file(handle) and is_file_at(handle, path)
        if is_locked or time.monotonic() >= deadline:
            return handle, is_locked
        os.close(handle)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_LOCK_PAUSE)


def read_state(root: str) -> StoreState:
    """Return the recorded state."""
    record = read_json(root, STATE_FILE)
    state = StoreState()
    for name, default in state._asdict().items() if isinstance(record, dict) else ():
        value = record.get(name)
        if isinstance(default, RemoteEvent) and isinstance(value, dict):
            texts = [value.get(field) for field in RemoteEvent._fields]
            value = RemoteEvent(*(text if isinstance(text, str) else "" for text in texts))
        if type(value) is type(default):
            state = state._replace(**{name: value})
    return state


def note_state(root: str, tree: TreeState | None = None, now: str = "", **values: Any) -> None:
    """Set some fields of the recorded state, under a file lock. With `tree`, `diverged_at` is updated too."""
    check_git_folder(root)
    folder = own_folder(root)
    with translate_os_errors(folder):
        durable_files.make_folders(folder)
        # The lock is held only briefly. After the timeout, an update may be lost, but the operation goes on.
        handle, _ = lock_file(os.path.join(folder, f"{STATE_FILE}-lock"), STATE_LOCK_TIMEOUT)
    try:
        before = read_state(root)
        if tree is not None:
            values["diverged_at"] = (before.diverged_at or now) if tree.has_diverged else ""
        after = before._replace(**values)
        after = after._replace(fetch=_masked(after.fetch), push=_masked(after.push))
        if after != before:
            events = {"fetch": after.fetch._asdict(), "push": after.push._asdict()}
            _write_json(root, STATE_FILE, after._asdict() | events)
    finally:
        os.close(handle)


def _masked(event: RemoteEvent) -> RemoteEvent:
    return event._replace(problem=mask_urls(event.problem)[:MAX_PROBLEM_LENGTH]) if event.problem else event


JournalEntries = dict[str, str]
"""For each path, the hash of the content that the change writes, or ANY_CONTENT if it is unknown."""

ANY_CONTENT, NO_FILE = "", "-"
"""Journal entries without a hash.

ANY_CONTENT means any content, and NO_FILE means that the change deletes the file.
"""


def begin_journal(root: str, paths: Iterable[str], writes: Mapping[str, bytes | None]) -> JournalEntries:
    """Durably add these paths to the journal.

    Return the previous entries, which belong to an enclosing change.
    """
    around = read_journal(root)
    entries = {path: journal_hash(writes[path]) if path in writes else ANY_CONTENT for path in paths}
    _write_json(root, JOURNAL_FILE, around | entries)
    return around


def journal_hash(data: bytes | None) -> str:
    return NO_FILE if data is None else hashlib.sha256(data).hexdigest()


def end_journal(root: str, around: JournalEntries | None = None) -> None:
    """Close the journal of a completed or undone change, restoring the entries of the enclosing change."""
    if around:
        _write_json(root, JOURNAL_FILE, around)
        return
    with translate_os_errors(own_folder(root)), suppress(FileNotFoundError):
        os.unlink(os.path.join(own_folder(root), JOURNAL_FILE))


def read_journal(root: str) -> JournalEntries:
    """Return the entries of an unfinished change.

    An invalid journal is ignored, since journals are written atomically.
    """
    entries = read_json(root, JOURNAL_FILE)
    if not isinstance(entries, dict):
        return {}
    return {check_tracked_path(path): str(hash) for path, hash in entries.items()}
