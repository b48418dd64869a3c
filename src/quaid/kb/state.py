"""Small files in .git/ai-kb: the state of fetches and pushes, the journal of a change, and lock files.

These files are never committed, and contain neither node text nor passwords. A file that cannot be parsed
counts as empty.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from quaid.kb.layout import NO_FOLLOW_FLAGS, OWN_FOLDER
from quaid.kb.repo_policy import (
    TreeState,
    check_git_folder,
    check_tracked_path,
    mask_urls,
)
from quaid.storage import files as durable_files
from quaid.storage.files import FIRST_LOCK_PAUSE, LONGEST_LOCK_PAUSE, is_file_at, try_lock_file
from quaid.storage.sqlite.errors import translate_os_errors

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
    accepted: str = ""  # hash of the URL of a remote that the user accepted although it holds other files


def read_json(folder: str, name: str) -> Any:
    """Return the content of a small file, or None if it is missing or invalid."""
    path = os.path.join(folder, name)
    with translate_os_errors(path):
        try:
            handle = os.open(path, os.O_RDONLY | NO_FOLLOW_FLAGS)
            with open(handle, encoding="utf-8", errors="surrogateescape") as file:
                return json.load(file)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None


def _write_json(folder: str, name: str, value: Any) -> None:
    path = os.path.join(folder, name)
    with translate_os_errors(path):
        durable_files.make_folders(folder)
        durable_files.write_file(path, f"{json.dumps(value, indent=1)}\n".encode())


def lock_file(path: str, patience: float) -> tuple[int, bool]:
    """Open a file and wait for its lock.

    Return the descriptor, and False if another process kept the lock.
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


def _own_folder(root: str) -> str:
    return os.path.join(root, ".git", OWN_FOLDER)


def read_state(root: str) -> StoreState:
    """Return the recorded state."""
    record = read_json(_own_folder(root), STATE_FILE)
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
    folder = _own_folder(root)
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
            _write_json(folder, STATE_FILE, after._asdict() | events)
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


def begin_journal(folder: str, paths: Iterable[str], writes: Mapping[str, bytes | None]) -> JournalEntries:
    """Durably add these paths to the journal.

    Return the previous entries, which belong to an enclosing change.
    """
    around = read_journal(folder)
    entries = {path: journal_hash(writes[path]) if path in writes else ANY_CONTENT for path in paths}
    _write_json(folder, JOURNAL_FILE, around | entries)
    return around


def journal_hash(data: bytes | None) -> str:
    return NO_FILE if data is None else sha256(data).hexdigest()


def end_journal(folder: str, around: JournalEntries | None = None) -> None:
    """Close the journal of a completed or undone change, restoring the entries of the enclosing change."""
    if around:
        _write_json(folder, JOURNAL_FILE, around)
        return
    with translate_os_errors(folder):
        try:
            os.unlink(os.path.join(folder, JOURNAL_FILE))
        except FileNotFoundError:
            return


def read_journal(folder: str) -> JournalEntries:
    """Return the entries of an unfinished change.

    An invalid journal is ignored, since journals are written atomically.
    """
    entries = read_json(folder, JOURNAL_FILE)
    if not isinstance(entries, dict):
        return {}
    return {check_tracked_path(path): str(hash) for path, hash in entries.items()}
