"""Small files in .git/ai-kb: the state of fetches and pushes, the journal of a change, and the session nudge.

They are never committed, and contain neither node text nor passwords. A file that cannot be parsed counts as empty.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

from quaid.kb import layout, repo_policy
from quaid.kb.layout import OWN_FOLDER
from quaid.kb.repo_policy import check_git_folder, check_tracked_path, mask_urls, write_private_file
from quaid.model.plain_text import count_noun
from quaid.storage import files as durable_files
from quaid.storage.files import LONGEST_LOCK_PAUSE, try_lock_file
from quaid.storage.sqlite.errors import translate_os_errors

STATE_FILE = "state.json"
MAX_STATE_BYTES = 64 * 1024
MAX_PROBLEM_LENGTH = 300
STATE_LOCK_TIMEOUT = 5.0


class RemoteEvent(NamedTuple):
    """Outcome of a fetch ("reached", "unreachable", or "silent" after a long wait) or of a push (see PushResult)."""

    at: str
    outcome: str
    problem: str = ""


class Divergence(NamedTuple):
    """The number of commits that only one side has, for a branch that has diverged from its remote."""

    at: str  # when it was first noticed
    ahead: int
    behind: int


class StoreState(NamedTuple):
    fetch: RemoteEvent | None = None
    push: RemoteEvent | None = None
    divergence: Divergence | None = None
    indexed_at: str = ""
    curated_at: str = ""
    curated_nodes: int = 0  # number of nodes at that time
    accepted: str = ""  # hash of the URL of a remote that the user accepted although it holds other files


def read_state(root: str) -> StoreState:
    """Return the recorded state."""
    try:
        with open(_state_path(root), "rb") as file:
            told = json.loads(file.read(MAX_STATE_BYTES))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return StoreState()
    return _state_from_json(told if isinstance(told, dict) else {})


def note_state(root: str, **facts: Any) -> StoreState:
    """Set some fields of the recorded state."""
    return change_state(root, lambda before: before._replace(**facts))


def change_state(root: str, how: Callable[[StoreState], StoreState]) -> StoreState:
    """Update the recorded state with a function of the current one, under a file lock."""
    check_git_folder(root)
    path = _state_path(root)
    with translate_os_errors(path):
        durable_files.make_folders(os.path.dirname(path))
        handle = os.open(path + "-lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            deadline = time.monotonic() + STATE_LOCK_TIMEOUT
            # The lock is held only briefly. After the timeout, risk losing an update rather than fail the operation.
            while not try_lock_file(handle) and time.monotonic() < deadline:
                time.sleep(LONGEST_LOCK_PAUSE)
            before = read_state(root)
            after = _mask_state(how(before))
            if after != before:
                write_private_file(path, (json.dumps(_state_to_json(after), indent=1) + "\n").encode())
        finally:
            os.close(handle)
    return after


def _state_path(root: str) -> str:
    return os.path.join(root, ".git", OWN_FOLDER, STATE_FILE)


def _state_to_json(state: StoreState) -> dict[str, Any]:
    events = {
        key: value for key, value in state._asdict().items() if isinstance(value, RemoteEvent | Divergence)
    }
    return state._asdict() | {key: event._asdict() for key, event in events.items()}


def _state_from_json(told: dict[str, Any]) -> StoreState:
    state = StoreState(
        _event_from_json(told.get("fetch")),
        _event_from_json(told.get("push")),
        _divergence_from_json(told.get("divergence")),
    )
    for key in ("indexed_at", "curated_at", "accepted"):
        if isinstance(told.get(key), str):
            state = state._replace(**{key: told[key]})
    if isinstance(told.get("curated_nodes"), int):
        state = state._replace(curated_nodes=told["curated_nodes"])
    return state


def _event_from_json(told: Any) -> RemoteEvent | None:
    if not isinstance(told, dict) or not isinstance(told.get("at"), str):
        return None
    return RemoteEvent(told["at"], str(told.get("outcome", "")), str(told.get("problem", "")))


def _divergence_from_json(told: Any) -> Divergence | None:
    if not isinstance(told, dict) or not isinstance(told.get("at"), str):
        return None
    counts = (told.get("ahead"), told.get("behind"))
    return Divergence(told["at"], *(count if isinstance(count, int) else 0 for count in counts))


def _mask_state(state: StoreState) -> StoreState:
    def safe(event: RemoteEvent | None) -> RemoteEvent | None:
        if event is None or not event.problem:
            return event
        return event._replace(problem=mask_urls(event.problem)[:MAX_PROBLEM_LENGTH])

    return state._replace(fetch=safe(state.fetch), push=safe(state.push))


JOURNAL_FILE = "unfinished.json"


JournalEntries = dict[str, str]
"""Paths, and the hash of the content that the change writes there; ANY_CONTENT if it is not known in advance."""

ANY_CONTENT, NO_FILE = "", "-"
"""NO_FILE: the change deletes the file."""


def begin_journal(folder: str, paths: Iterable[str], writes: Mapping[str, bytes | None]) -> JournalEntries:
    """Durably add these paths to the journal. Return the previous entries, which belong to an enclosing change."""
    around = read_journal(folder)
    _write_journal(
        folder,
        around
        | {path: journal_hash(writes.get(path, b"")) if path in writes else ANY_CONTENT for path in paths},
    )
    return around


def journal_hash(data: bytes | None) -> str:
    if data is None:
        return NO_FILE
    return sha256(data).hexdigest()


def end_journal(folder: str, around: JournalEntries | None = None) -> None:
    """Close the journal of a completed or undone change, restoring the entries of the enclosing change."""
    if around:
        _write_journal(folder, around)
        return
    with translate_os_errors(folder):
        try:
            os.unlink(os.path.join(folder, JOURNAL_FILE))
        except FileNotFoundError:
            return


def unfinished_paths(folder: str) -> tuple[str, ...]:
    """Return the paths of an unfinished change."""
    return tuple(read_journal(folder))


def read_journal(folder: str) -> JournalEntries:
    """Return the entries of an unfinished change. The journal is written atomically, so an invalid one is ignored."""
    try:
        with open(os.path.join(folder, JOURNAL_FILE), encoding="utf-8", errors="surrogateescape") as file:
            return {check_tracked_path(str(path)): str(hash) for path, hash in json.load(file).items()}
    except (FileNotFoundError, ValueError, AttributeError):
        return {}


def _write_journal(folder: str, note: JournalEntries) -> None:
    path = os.path.join(folder, JOURNAL_FILE)
    with translate_os_errors(path):
        durable_files.make_folders(folder)
        write_private_file(path, json.dumps(dict(sorted(note.items()))).encode())


NUDGE_FILE = "nudge.json"
MAX_NUDGE_BYTES = 4096
NUDGE_VERSION = 2
RACY_NS = 2_000_000_000
"""Nanoseconds. A file modified this recently may change again without a visible change of its timestamps."""

NUDGE_DEPENDENCIES = ("index", "config", "info/exclude", "ai-kb/state.json")
"""Files in .git that the nudge depends on, besides branches and the catalog."""


class NudgeFacts(NamedTuple):
    """The facts that the nudge reports."""

    secrets: int
    diverged: bool
    push_failed: bool
    ahead: int
    """Number of commits that the remote does not have; 0 without a remote."""
    uncommitted: int
    new_nodes: int
    """Number of nodes to review; 0 unless curation is due."""
    unfinished: bool = False
    """True if a merge, rebase or similar operation is in progress."""


class _TreeMark(NamedTuple):
    tree: int
    catalog: int
    newest: int


def nudge_text(facts: NudgeFacts) -> str:
    """Return the nudge; empty if there is nothing to report."""
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


def session_nudge(root: str, environ: Mapping[str, str], clock: Callable[[], int] = time.time_ns) -> str:
    """Return the nudge of a store, as shown by `status`, using a cache."""
    repo_policy.check_git_folder(root)
    before = _tree_mark(root)
    known = _cached_facts(root, before)
    if known is not None:
        return nudge_text(known)
    from quaid.kb import health
    from quaid.kb.git import Git

    _, facts = health.status_and_facts(Git(root, environ))
    after = _tree_mark(root)
    if after.tree == before.tree and after.newest < clock() - RACY_NS:
        _cache_facts(root, after, facts)
    return nudge_text(facts)


def _tree_mark(root: str) -> _TreeMark:
    """Return checksums of everything the nudge depends on, and the newest timestamp."""
    folder = os.path.join(root, ".git")
    files = layout.walk_store(root)
    below = {found.path.rpartition("/")[0] for found in files} | {""}
    ignoring = [_stat_or_none(os.path.join(root, each, ".gitignore")) for each in sorted(below)]
    ours = [_stat_or_none(os.path.join(folder, *name.split("/"))) for name in NUDGE_DEPENDENCIES]
    branch = repo_policy.current_branch(folder)
    remote = branch and repo_policy.read_ref(folder, f"refs/remotes/origin/{branch}")
    all_looks = [*(found.looks for found in files), *filter(None, (*ignoring, *ours))]
    newest = max((max(looks.mtime_ns, looks.ctime_ns) for looks in all_looks), default=0)
    tree = repr(
        (
            NUDGE_VERSION,
            ignoring,
            ours,
            branch,
            repo_policy.unfinished_act(folder),
            repo_policy.head_commit(folder),
            remote,
        )
    )
    # There may be thousands of files, so each is formatted as cheaply as possible.
    tree += "\n".join([f"{path} {m} {c} {size} {inode}" for path, (m, c, size, inode) in files])
    catalog = repr(_stat_or_none(os.path.join(folder, layout.OWN_FOLDER, "catalog")))
    return _TreeMark(crc32(tree.encode("utf-8", "surrogatepass")), crc32(catalog.encode()), newest)


def _stat_or_none(path: str) -> layout.FileStat | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return layout.FileStat(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _nudge_path(root: str) -> str:
    return os.path.join(root, ".git", layout.OWN_FOLDER, NUDGE_FILE)


def _cached_facts(root: str, mark: _TreeMark) -> NudgeFacts | None:
    try:
        with open(os.open(_nudge_path(root), os.O_RDONLY | layout.NO_FOLLOW_FLAGS), "rb") as file:
            tree, catalog, facts = json.loads(file.read(MAX_NUDGE_BYTES))
            numbers = NudgeFacts._make(map(int, facts))
    except (OSError, ValueError, TypeError):
        return None
    return numbers if (tree, catalog) == (mark.tree, mark.catalog) else None


def _cache_facts(root: str, mark: _TreeMark, facts: NudgeFacts) -> None:
    """Write the cache. Errors are ignored, since without it the next session only starts a little slower."""
    path = _nudge_path(root)
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
