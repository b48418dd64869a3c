"""Small files in .git/ai-kb: the recorded state of fetches and pushes, the journal of a change, and the session
nudge.

They are never committed and hold neither text of nodes nor passwords of addresses. A file that cannot be read counts
as empty.
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
    """A fetch ("reached", "unreachable", or "silent" after a long wait) or a push (as git.Pushed has it)."""

    at: str
    outcome: str
    problem: str = ""


class Divergence(NamedTuple):
    """Commits that only one side has."""

    at: str  # when it was first seen
    ahead: int
    behind: int


class StoreState(NamedTuple):
    fetch: RemoteEvent | None = None
    push: RemoteEvent | None = None
    divergence: Divergence | None = None
    indexed_at: str = ""
    curated_at: str = ""
    curated_nodes: int = 0  # how many nodes there were then
    accepted: str = ""  # hash of the address of a remote that a person wants although it holds other things


def read_state(root: str) -> StoreState:
    """What was last noted."""
    try:
        with open(_state_path(root), "rb") as file:
            told = json.loads(file.read(MAX_STATE_BYTES))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return StoreState()
    return _state_from_json(told if isinstance(told, dict) else {})


def note_state(root: str, **facts: Any) -> StoreState:
    """Note some of it, and keep the rest."""
    return change_state(root, lambda before: before._replace(**facts))


def change_state(root: str, how: Callable[[StoreState], StoreState]) -> StoreState:
    """Note what follows from what was noted before. Others who note something at the same time wait."""
    check_git_folder(root)
    path = _state_path(root)
    with translate_os_errors(path):
        durable_files.make_folders(os.path.dirname(path))
        handle = os.open(path + "-lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            deadline = time.monotonic() + STATE_LOCK_TIMEOUT
            # Nobody holds it for long; after that a note may get lost rather than the work it is about.
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
"""Paths, and the hash of what the change writes there; WHATEVER where that is not known beforehand."""

ANY_CONTENT, NO_FILE = "", "-"
"""NOTHING: the change takes the file away."""


def begin_journal(folder: str, paths: Iterable[str], writes: Mapping[str, bytes | None]) -> JournalEntries:
    """Note these paths, durably, beside those of a change around this one, which are returned."""
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
    """The change is whole, or undone; the one around it may go on."""
    if around:
        _write_journal(folder, around)
        return
    with translate_os_errors(folder):
        try:
            os.unlink(os.path.join(folder, JOURNAL_FILE))
        except FileNotFoundError:
            return


def unfinished_paths(folder: str) -> tuple[str, ...]:
    """The paths of a change that was not finished."""
    return tuple(read_journal(folder))


def read_journal(folder: str) -> JournalEntries:
    """The change that was not finished. A note that cannot be read names none: it is written whole."""
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
"""What changed so shortly ago may change again without looking otherwise."""

NUDGE_DEPENDENCIES = ("index", "config", "info/exclude", "ai-kb/state.json")
"""Files in .git that the answer depends on, besides branches and the catalog."""


class NudgeFacts(NamedTuple):
    """What is worth a word."""

    secrets: int
    diverged: bool
    push_failed: bool
    ahead: int
    """Commits that the remote does not have; none where there is no remote."""
    uncommitted: int
    new_nodes: int
    """Nodes to look through; none unless it is time."""
    unfinished: bool = False
    """Whether a merge or a rebase was begun and not finished."""


class _TreeMark(NamedTuple):
    tree: int
    catalog: int
    newest: int


def nudge_text(facts: NudgeFacts) -> str:
    """The line; nothing when all is well."""
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
    """The line of a store, as `status` tells it."""
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
    """Everything that the answer depends on, as it looks now."""
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
    # Thousands of files: a line for each, as plainly as can be.
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
    """For the next one who begins. Where that is not possible they wait a little longer."""
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
