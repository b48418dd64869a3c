"""How a store stood when somebody last looked: fetched, pushed, diverged, indexed, curated.

Knows one small file in .git/ai-kb, which says what no look at the repository can: that the remote was not reached,
and why. Holds times, outcomes and counts; no word of a node, and no password of an address. A file that cannot be
read counts as empty.
"""

import json
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from quaid.kb.guarding import look_at, masked, write_private
from quaid.kb.layout import OURS
from quaid.storage import files as durable_files
from quaid.storage.files import LONGEST_LOCK_PAUSE, try_lock_file
from quaid.storage.sqlite.errors import translate_os_errors

NAME = "state.json"
LARGEST = 64 * 1024
LONGEST_PROBLEM = 300
PATIENCE = 5.0


class Event(NamedTuple):
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
    fetch: Event | None = None
    push: Event | None = None
    divergence: Divergence | None = None
    indexed_at: str = ""
    curated_at: str = ""
    curated_nodes: int = 0  # how many nodes there were then
    accepted: str = ""  # hash of the address of a remote that a person wants although it holds other things


def read(root: str) -> StoreState:
    """What was last noted."""
    try:
        with open(_path(root), "rb") as file:
            told = json.loads(file.read(LARGEST))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return StoreState()
    return _understood(told if isinstance(told, dict) else {})


def note(root: str, **facts: Any) -> StoreState:
    """Note some of it, and keep the rest."""
    return change(root, lambda before: before._replace(**facts))


def change(root: str, how: Callable[[StoreState], StoreState]) -> StoreState:
    """Note what follows from what was noted before. Others who note something at the same time wait."""
    look_at(root)
    path = _path(root)
    with translate_os_errors(path):
        durable_files.make_folders(os.path.dirname(path))
        handle = os.open(path + "-lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            deadline = time.monotonic() + PATIENCE
            # Nobody holds it for long; after that a note may get lost rather than the work it is about.
            while not try_lock_file(handle) and time.monotonic() < deadline:
                time.sleep(LONGEST_LOCK_PAUSE)
            before = read(root)
            after = _masked(how(before))
            if after != before:
                write_private(path, (json.dumps(_told(after), indent=1) + "\n").encode())
        finally:
            os.close(handle)
    return after


def _path(root: str) -> str:
    return os.path.join(root, ".git", OURS, NAME)


def _told(state: StoreState) -> dict[str, Any]:
    events = {key: value for key, value in state._asdict().items() if isinstance(value, Event | Divergence)}
    return state._asdict() | {key: event._asdict() for key, event in events.items()}


def _understood(told: dict[str, Any]) -> StoreState:
    state = StoreState(
        _event(told.get("fetch")), _event(told.get("push")), _divergence(told.get("divergence"))
    )
    for key in ("indexed_at", "curated_at", "accepted"):
        if isinstance(told.get(key), str):
            state = state._replace(**{key: told[key]})
    if isinstance(told.get("curated_nodes"), int):
        state = state._replace(curated_nodes=told["curated_nodes"])
    return state


def _event(told: Any) -> Event | None:
    if not isinstance(told, dict) or not isinstance(told.get("at"), str):
        return None
    return Event(told["at"], str(told.get("outcome", "")), str(told.get("problem", "")))


def _divergence(told: Any) -> Divergence | None:
    if not isinstance(told, dict) or not isinstance(told.get("at"), str):
        return None
    counts = (told.get("ahead"), told.get("behind"))
    return Divergence(told["at"], *(count if isinstance(count, int) else 0 for count in counts))


def _masked(state: StoreState) -> StoreState:
    def safe(event: Event | None) -> Event | None:
        if event is None or not event.problem:
            return event
        return event._replace(problem=masked(event.problem)[:LONGEST_PROBLEM])

    return state._replace(fetch=safe(state.fetch), push=safe(state.push))
