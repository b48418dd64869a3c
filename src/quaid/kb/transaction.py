"""Change a store in transactions: lock, fetch, change, rebuild the index, lint and commit. Also push.

A failure restores the tree. The operating system releases the store's lock when its holder dies; git
processes started by the holder inherit the lock.

A lock file of git itself is removed if no git process runs in the store and a killed holder left the file. A
lock file of unknown origin must also be a minute old. Where processes cannot be listed, a lock file that a
killed holder left must be a minute old, and any other an hour.

Pushes are never forced. A failure to reach the remote is recorded and does not raise an error. Fetch and push
need no lock.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import uuid4

from quaid import errors
from quaid.folders import atomic_write
from quaid.folders.scanner import Folder
from quaid.kb import catalog as catalogs, layout, node as nodes, repository
from quaid.kb.catalog import Catalog
from quaid.kb.git import DEFAULT_BRANCH, FETCH_TIMEOUT, PUSH_TIMEOUT, REMOTE_NAME, Git, run_command
from quaid.kb.node import LintFinding
from quaid.kb.repository import RemoteEvent, TreeState, mask_urls, shorten_paths
from quaid.storage import files as durable_files
from quaid.storage.files import LONGEST_LOCK_PAUSE
from quaid.storage.sqlite.errors import translate_os_errors

LOCK_TIMEOUT = 30.0
"""Seconds that a writer waits for the store's lock."""

GIT_LOCK_TIMEOUT = 2.0
"""Seconds to wait for git lock files held by the user's own git processes."""

MINUTE, HOUR = 60.0, 3600.0
INDEX_MESSAGE = "index: made anew"

GIT_LOCK_FILES = (
    "index.lock",
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "shallow.lock",
    "ORIG_HEAD.lock",
)

REMOTE_VERBS = frozenset(
    "push fetch send-pack receive-pack upload-pack pack-objects index-pack unpack-objects rev-list remote-https "
    "remote-http remote".split()
)
"""Subcommands of git that talk to a remote. They may hang for a long time, but hold locks only briefly."""


@contextmanager
def store_lock(git: Git, what: str = "ai-kb", patience: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the store's lock. First restore the files that a killed writer was changing.

    `what` names this process in the lock file. Raise StoreLocked if the lock is not free after `patience` seconds, or
    if a lock file of git may still be in use.
    """
    repository.check_git_folder(git.root)
    path = os.path.join(git.own_folder, "lock")
    with translate_os_errors(path):
        durable_files.make_folders(git.own_folder)
        handle, is_locked = repository.lock_file(path, patience)
    before = _list_git_locks(git.folder)
    try:
        if not is_locked:
            name = _lock_holder(handle)[0]
            holder = f"{name} for more than {patience:g} s" if name else "another process"
            raise errors.StoreLocked(path=git.root, holder=holder, hint="")
        git.keep = (handle,)
        # The locks are cleared before the holder is overwritten. If clearing them fails, the next writer still
        # sees the killed holder.
        _clear_git_locks(git, _lock_holder(handle))
        _write_holder(handle, f"{os.getpid()} {what}".encode())
        try:
            git.recover()
            yield
        except Exception as error:
            # If one of our git processes was killed, it may have left a lock file, which would make the next
            # command fail. The holder is cleared below, because a name left in the file marks a killed
            # writer.
            if isinstance(error, (errors.GitFailed, errors.DiskFull, errors.StoreLocked)):
                _remove_new_locks(git, before)
            _write_holder(handle, b"")
            raise
        _remove_new_locks(git, before)  # git ignores a failure to remove its own lock file
        _write_holder(handle, b"")
    finally:
        git.keep = ()
        os.close(handle)


def _lock_holder(handle: int) -> tuple[str, float]:
    """Return the process named in the lock file, as in "query (process 4711)", and the time of writing.

    The name is empty if the process ended normally, or if the file cannot be read."""
    try:
        text = os.pread(handle, 200, 0).decode(errors="replace")
    except (AttributeError, OSError):  # there is no pread(), or the system has mandatory locks
        return "", 0.0
    number, _, what = text.strip().partition(" ")
    return (f"{what} (process {number})" if number else ""), os.fstat(handle).st_mtime


def _write_holder(handle: int, text: bytes) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    os.ftruncate(handle, 0)
    os.write(handle, text)


def _clear_git_locks(git: Git, left: tuple[str, float]) -> None:
    """Remove stale lock files of git. Raise StoreLocked if a lock file may still be in use."""
    deadline = time.monotonic() + GIT_LOCK_TIMEOUT
    for path in _list_git_locks(git.folder):
        while not _remove_stale_lock(path, git.root, left):
            if time.monotonic() >= deadline:
                name = os.path.relpath(path, git.root)
                hint = f" Its lock is {name}; if no git is running there, it can be deleted."
                raise errors.StoreLocked(path=git.root, holder="another git", hint=hint)
            time.sleep(LONGEST_LOCK_PAUSE)


def _remove_new_locks(git: Git, before: list[str]) -> None:
    """Remove lock files left by our own git processes: files not in `before` that no process has open."""
    for path in {*_list_git_locks(git.folder)} - {*before}:
        if _is_unopened(path):
            _remove_stale_lock(path, git.root, ("it", 0.0))


def _is_unopened(path: str) -> bool:
    """Return True if no process of this user has the file open; False if that cannot be determined."""
    if sys.platform != "linux":
        return False
    path = os.path.realpath(path)
    for number in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # the process belongs to another user or has exited
            for handle in os.listdir(f"/proc/{number}/fd"):
                with suppress(FileNotFoundError):
                    if os.readlink(f"/proc/{number}/fd/{handle}") == path:
                        return False
    return True


def _list_git_locks(folder: str) -> list[str]:
    paths = [os.path.join(folder, name) for name in GIT_LOCK_FILES]
    for place, _, names in os.walk(os.path.join(folder, "refs")):
        paths += [os.path.join(place, name) for name in names if name.endswith(".lock")]
    return list(filter(os.path.lexists, paths))


def _remove_stale_lock(path: str, root: str, left: tuple[str, float]) -> bool:
    """Remove a lock file if it is stale. Return True if the file no longer exists."""
    try:
        since = os.lstat(path).st_mtime
    except FileNotFoundError:
        return True
    age = time.time() - since
    ours = bool(left[0]) and since >= left[1] - 0.1  # timestamps of files may be coarser than the clock
    at_work = is_git_running(root)
    if at_work is None:
        is_stale = age >= (MINUTE if ours else HOUR)
    else:
        is_stale = not at_work and (ours or age >= MINUTE)
    if not is_stale:
        return False
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except PermissionError:  # Windows does not delete open files
        return False
    return True


def is_git_running(root: str, platform: str = sys.platform) -> bool | None:
    """Return True if a git process that could hold a lock runs in the store; None if this is unknown.

    Outside Linux, a git process in any folder counts.
    """
    if platform == "linux":
        return _is_git_running_by_proc(os.path.realpath(root))
    if platform == "win32":
        return None
    done = run_command(("ps", "-axo", "comm="), "/", {"PATH": "/bin:/usr/bin", "LC_ALL": "C"}, seconds=10)
    if done.status != 0:
        return None
    names = {os.path.basename(line.strip()) for line in done.out.decode(errors="replace").splitlines()}
    return any(name == "git" or name.startswith("git-") for name in names)


def _is_git_running_by_proc(root: str) -> bool:
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/comm", encoding="utf-8", errors="replace") as file:
                if not file.read().startswith("git"):
                    continue
            with open(f"/proc/{number}/cmdline", "rb") as file:
                words = os.fsdecode(file.read()).split("\0")
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] in ("Z", "X"):
                    continue  # zombie process
            place = os.readlink(f"/proc/{number}/cwd")
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:
            return True
        if len(words) > 1 and words[1] in REMOTE_VERBS:
            continue
        if place == root or place.startswith(root + "/") or any(root in word for word in words):
            return True
    return False


# Changes


class StoreChange(NamedTuple):
    files: Mapping[str, bytes | None]
    """The new content of each file; None to delete the file."""
    message: str
    details: tuple[Any, ...] = ()
    """Values that the caller reports about the change."""


class ChangeResult(NamedTuple):
    commit: str
    """ID of the commit; empty if nothing changed."""
    paths: tuple[str, ...]
    offline: str
    """Why the remote was not reached; empty if it was reached or if there is no remote."""
    adopted: tuple[str, ...] = ()
    """Files edited by the user that are part of the commit."""
    nodes: int = 0
    """Number of nodes after the change."""
    details: tuple[Any, ...] = ()
    """The `details` of the applied StoreChange."""


ChangePlan = Callable[[Catalog], StoreChange]


def apply_change(git: Git, now: str, what: str, plan: ChangePlan, *, foreign: bool = False) -> ChangeResult:
    """Apply the change that `plan` returns for the current catalog as one commit, or restore everything.

    With `foreign`, a store without commits may take over a remote that is not a knowledge base.
    """
    with store_lock(git, what):
        tree = _settled_tree(git)
        _refuse_dirty(git, tree)
        offline = _fetch_and_forward(git, now, tree, foreign=foreign)
        # The cached catalog is reused for files whose stat is unchanged. Git compares stats too, and has just
        # reported that the files match the last commit.
        catalog = catalogs.load_catalog(git.root, check=True)
        change = plan(catalog)
        change = change._replace(files=_changed_files(catalog, change.files))
        if not change.files:
            return ChangeResult("", (), offline, details=change.details)
        paths = [*change.files, *_index_paths(catalog)]
        with git.changing(paths, change.files):
            for path, data in change.files.items():
                write_store_file(catalog, path, data)
            catalog = catalogs.refresh_files(catalog, change.files, check=True)
            done = _index_and_commit(git, catalog, now, set(change.files), change.message, offline)
            return done._replace(details=change.details)


def commit_edits(git: Git, now: str, message: str = "", what: str = "commit", *, today: str) -> ChangeResult:
    """Commit files that the user has edited, with the same checks as apply_change().

    The files are not modified, except that :UPDATED: is set in edited nodes; if the commit fails, these nodes
    are changed back.
    """
    with store_lock(git, what):
        tree = _settled_tree(git)
        _refuse_unfinished(git, tree)
        offline = _fetch_and_forward(git, now, tree)
        edited_files = {*tree.changed, *(path for path in tree.untracked if layout.is_store_file(path))}
        catalog = catalogs.load_catalog(git.root, certain=bool(edited_files), check=True)
        adopted = tuple(sorted(path for path in edited_files if not layout.is_index_file(path)))
        index, before = [path for path in _index_paths(catalog) if path not in edited_files], git.head()
        files = adopted[0] if len(adopted) == 1 else f"{len(adopted)} files"
        message = message or (f"edit: {files}" if adopted else INDEX_MESSAGE)
        with git.changing(index), _stamp_edited(git, catalog, edited_files, today) as catalog:
            done = _index_and_commit(git, catalog, now, edited_files, message, offline)
        if done.commit == before:  # the staged or touched files are identical to the last commit
            done = done._replace(commit="", paths=tuple(filter(layout.is_index_file, done.paths)))
            adopted = ()
        return done._replace(adopted=adopted, nodes=catalog.count)


@contextmanager
def _stamp_edited(git: Git, catalog: Catalog, edited_files: set[str], today: str) -> Iterator[Catalog]:
    """Set :UPDATED: of edited nodes to today and yield the new catalog.

    On an error, write the old content back.
    """
    _refuse_fatal(catalogs.lint_files(catalog))  # before modifying any file of the user
    before = {
        path: layout.read_file(catalog.root, path)
        for path in _edited_nodes(git, catalog, edited_files, today)
    }
    stamped = {
        path: nodes.set_properties(data.decode("utf-8"), {"UPDATED": today}).encode()
        for path, data in before.items()
    }
    try:
        for path, data in stamped.items():
            write_store_file(catalog, path, data)
        catalog = catalogs.refresh_files(catalog, stamped, check=True) if stamped else catalog
        yield catalog
    except BaseException:
        after = catalogs.refresh_files(catalog, stamped)
        for path, data in before.items():
            if path in after.files and after.files[path].digest == catalogs.content_digest(stamped[path]):
                write_store_file(after, path, data)
        raise


def _findings_outside_store(expected: Mapping[str, bytes | None]) -> Iterator[LintFinding]:
    """Check changed files that are not part of the knowledge base, such as a staged README."""
    for path, data in sorted(expected.items()):
        if data is None or layout.is_store_file(path):
            continue
        if len(data) > catalogs.MAX_RAW_BYTES:
            remedy = f"`git rm --cached -- {path}` lets go of it"
            yield nodes.finding(path, 1, "too-large", "it is too large", remedy)
        else:
            for problem in catalogs.find_secrets(data):
                yield nodes.finding(path, *problem)


def _edited_nodes(git: Git, catalog: Catalog, edited_files: set[str], today: str) -> list[str]:
    """Return the paths of nodes whose text differs from the last commit but whose :UPDATED: does not.

    Nodes updated today are left out. A node in a renamed file is recognized by its ID, so that a mere
    renaming does not count as an edit.
    """
    gone = [path for path in edited_files - catalog.files.keys() if layout.is_node_file(path)]
    moved: dict[str, str] | None = None
    edited = []
    for path in sorted(edited_files & catalog.files.keys()):
        if not layout.is_node_file(path) or catalog.node(catalog.files[path]).updated >= today:
            continue
        old = git.content(path)
        if old is None and gone:
            if moved is None:
                texts = [(git.content(old_path) or b"").decode("utf-8", "replace") for old_path in gone]
                moved = {nodes.parse_node("", text).node.id: text for text in texts}
            old_text = moved.get(catalog.node(catalog.files[path]).id)
        else:
            old_text = None if old is None else old.decode("utf-8", "replace")
        if old_text is None or old_text == catalog.text(path):
            continue
        if nodes.parse_node(path, old_text).node.updated == catalog.node(catalog.files[path]).updated:
            edited.append(path)
    return edited


def _changed_files(catalog: Catalog, files: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
    """Return the files of a change that differ from the catalog."""
    existing = catalog.files
    return {
        path: data
        for path, data in files.items()
        if (path in existing) is (data is None)
        or (data is not None and catalogs.content_digest(data) != existing[path].digest)
    }


def check_change(catalog: Catalog, change: StoreChange) -> list[LintFinding]:
    """Return the lint findings for a change that is not written yet, including its links to other nodes."""
    every = {node.path: node for node in catalog.nodes}
    findings: list[LintFinding] = []
    for path, data in change.files.items():
        every.pop(path, None)
        if data is None:
            continue
        read = nodes.parse_node(path, data.decode("utf-8", "replace"))
        every[path] = read.node
        findings += [nodes.finding(path, *problem) for problem in catalogs.check_file(path, data, read)]
    across = nodes.lint_across_files(every.values())
    findings += [finding for finding in across if finding.path in change.files]
    return sorted(findings, key=lambda item: (not item.fatal, item.path, item.line, item.code))


def index_change(catalog: Catalog) -> StoreChange:
    """Return a change that only regenerates the index."""
    return StoreChange(_index_changes(catalog), INDEX_MESSAGE)


def _index_and_commit(
    git: Git, catalog: Catalog, now: str, changed: set[str], message: str, offline: str
) -> ChangeResult:
    _refuse_fatal(catalogs.lint_files(catalog))  # do not index files that will be rejected
    index = _index_changes(catalog)
    for path, data in index.items():
        write_store_file(catalog, path, data)
        changed.add(path)
    catalog = catalogs.refresh_files(catalog, index, check=True)
    _refuse_fatal(catalogs.lint_store(catalog))
    expected = _linted_bytes(catalog, changed)
    _refuse_fatal(_findings_outside_store(expected))
    commit = git.commit(sorted(changed), message, expected=expected) if changed else ""
    repository.note_state(git.root, indexed_at=now)
    return ChangeResult(commit, tuple(sorted(changed)), offline)


def _refuse_fatal(findings: Iterable[LintFinding]) -> None:
    fatal = [finding for finding in findings if finding.fatal]
    if not fatal:
        return
    texts = [f"{finding.path}:{finding.line}: {finding.message}" for finding in fatal[:3]]
    texts[0] += f" ({fatal[0].remedy})"
    if len(fatal) > 3:
        texts.append(f"and {len(fatal) - 3} more")
    details = [finding._asdict() for finding in fatal]
    raise errors.LintFailed(count=len(fatal), detail="; ".join(texts), findings=details)


def _linted_bytes(catalog: Catalog, changed: set[str]) -> dict[str, bytes | None]:
    """Return the linted content of each changed file, or None if it is missing, for comparison with the commit."""
    contents: dict[str, bytes | None] = dict.fromkeys(changed)
    for path in changed & catalog.files.keys():
        data = layout.read_file(catalog.root, path)
        if catalogs.content_digest(data) != catalog.files[path].digest:
            raise errors.FileChanged(path=path)
        contents[path] = data
    for path in changed - catalog.files.keys():
        full = os.path.join(catalog.root, path)
        if not layout.is_store_file(path) and os.path.isfile(full) and not os.path.islink(full):
            contents[path] = layout.read_file(catalog.root, path)
    return contents


# The tree before a change


def _settled_tree(git: Git) -> TreeState:
    """Return the state of the tree, after cleaning up temporary files of killed writers."""
    tree = git.state()
    if not any(".quaid-" in path for path in tree.untracked):
        return tree
    left = [path for path in tree.untracked if atomic_write.is_leftover(path)]
    with Folder(git.root) as folder:
        for path in left:
            atomic_write.settle_leftover(folder, path, "saved.org")
    return git.state()


def _refuse_unfinished(git: Git, tree: TreeState) -> None:
    if tree.in_progress or tree.conflicted:
        raise errors.StoreUnfinished(path=git.root, act=tree.in_progress or "merge")


def _refuse_dirty(git: Git, tree: TreeState) -> None:
    """Raise StoreDirty if the user has uncommitted changes.

    Index files, and untracked files that are not part of the knowledge base, are ignored.
    """
    _refuse_unfinished(git, tree)
    others = [
        path
        for path in (*tree.changed, *tree.untracked)
        if layout.is_store_file(path) and not layout.is_index_file(path)
    ]
    others += [path for path in tree.changed if not layout.is_store_file(path)]
    if others:
        raise errors.StoreDirty(path=git.root, detail=shorten_paths(others))


def _fetch_and_forward(git: Git, now: str, tree: TreeState, *, foreign: bool = False) -> str:
    """Fetch, and fast-forward if the remote is ahead. Return why the remote was not reached, or "".

    Raise StoreDiverged if the remote and this store both have new commits. `foreign` is as in apply_change().
    """
    if git.remote() is None:
        return ""
    fetched, tree = fetch_store(git, now, before=tree, sparing=True)
    if tree.has_diverged:
        raise errors.StoreDiverged(path=git.root, ahead=tree.ahead, behind=tree.behind)
    if tree.head is None and not foreign:
        refuse_foreign_remote(git)
    if tree.behind or tree.head is None:  # a store without commits takes over the commits of the remote
        git.fast_forward()
    return "" if fetched.outcome == "reached" else fetched.problem


# The remote

IGNORABLE_NAMES = frozenset(
    {".DS_Store", ".directory", ".gitattributes", ".gitignore", ".gitkeep", ".localized"}
)
"""Files that operating systems and git hosts create in an otherwise empty folder."""

MAX_FILES_READ = 20
"""Maximum number of org files that are read to find a complete node."""

MAX_BRANCHES = 20
MAX_HEAD_BYTES = 64 * 1024
"""Maximum number of bytes that are read from each file."""

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
        yield git.top_level(commit), partial(git.content, commit=commit)


def foreign_store(git: Git) -> str:
    """Return the names of files in a folder and its repository; "" if both are empty or a knowledge base."""

    def listings() -> Iterator[Listing]:
        yield _list_folder(git.root)
        if not git.is_repository():
            return
        head = git.head()
        yield from _list_commits(git, [head] if head else git.branches("refs/heads").values())

    if git.is_repository() and git.head() is None and repository.read_journal(git.root):
        return ""  # the folder is a store whose init was interrupted before the first commit
    return _foreign_files(listings())


def require_own_store(git: Git) -> Git:
    """Return the store.

    Raise StoreForeign if AI_KB_DIR or kb.store names a repository that is not a knowledge base.
    """
    files = foreign_store(git)
    if files:
        raise errors.StoreForeign(path=git.root, detail=files)
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
"""Minutes during which writers do not contact a remote after it was slow to fail."""


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
    except errors.RemoteOccupied as error:
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
        raise errors.RemoteOccupied(url=mask_urls(url), detail=files, remedy=remedy)


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
    fetch is skipped if the remote was slow to fail in the last SILENT_MINUTES.
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
    tree = before if before is not None and git.is_at(before) else git.state()
    if git.remote() is not None and not until:
        repository.note_state(git.root, tree, now, fetch=fetched._replace(at=now))
    return fetched, tree


def _silent_until(fetch: RemoteEvent, now: str) -> str:
    """Return the time until which writers skip a remote that was slow to fail, or "" if it can be contacted."""
    if fetch.outcome != "silent":
        return ""
    try:
        since, moment = datetime.fromisoformat(fetch.at), datetime.fromisoformat(now)
        until = since + timedelta(minutes=SILENT_MINUTES)
        return f"{until:%H:%M} UTC" if since <= moment < until else ""
    except (ValueError, TypeError):
        return ""


# Files


def write_store_file(catalog: Catalog, path: str, data: bytes | None) -> None:
    """Write or delete a file durably. Raise FileChanged if the file on disk does not match the catalog."""
    repository.check_store_path(path)
    token = str(uuid4())
    with Folder(catalog.root) as folder:
        if path not in catalog.files:
            if data is not None:
                atomic_write.create_file(folder, path, data, token)
            return
        old = layout.read_file(catalog.root, path)
        if catalogs.content_digest(old) != catalog.files[path].digest:
            raise errors.FileChanged(path=path)
        expected = sha256(old).hexdigest()
        if data is None:
            atomic_write.remove_file(folder, path, expected, token)
        elif data != old:
            atomic_write.replace_file(folder, path, data, expected, token)


def _index_paths(catalog: Catalog) -> list[str]:
    """Return all files that regenerating the index may write or delete."""
    return sorted(_generated_paths(catalog) | nodes.INDEX_NAMES)


def _generated_paths(catalog: Catalog) -> set[str]:
    """Return the existing files of the index, except files that only have a similar name."""
    index_files = {path for path in catalog.files if layout.is_index_file(path)}
    return {
        path
        for path in index_files
        if path in nodes.INDEX_NAMES or nodes.is_generated_index(catalog.text(path))
    }


def _index_changes(catalog: Catalog) -> dict[str, bytes | None]:
    """Return the changes needed to bring the index up to date."""
    if catalog.index_problem == "":  # the index was already compared, and no file has changed since
        return {}
    expected = catalog.index = catalog.index or nodes.build_index(catalog.nodes)
    generated = _generated_paths(catalog)
    changes: dict[str, bytes | None] = dict.fromkeys(generated - expected.keys())
    for path, text in expected.items():
        data = text.encode("utf-8", "replace")
        if path not in generated or layout.read_file(catalog.root, path) != data:
            changes[path] = data
    return changes
