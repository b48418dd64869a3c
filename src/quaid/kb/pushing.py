"""Sending to the remote what is only here, and learning what is only there: at best, never by force, never an error.

Knows what to do when the remote is away (note it), has moved (fetch, note the divergence, leave everything), or has
all (note that). Needs no lock: neither the tree nor the index is touched, and a remote that hangs keeps no writer
waiting.
"""

import time
from datetime import datetime, timedelta
from hashlib import sha256

from quaid.errors import RemoteOccupied
from quaid.kb import marker, state
from quaid.kb.git import FETCH_SECONDS, PUSH_SECONDS, Fetched, Git, Pushed
from quaid.kb.guarding import masked
from quaid.kb.reading import TreeState
from quaid.kb.state import Divergence, Event, StoreState

SLOW = 3.0
"""Seconds: a remote that fails only after so long costs every writer that time."""

SILENT_MINUTES = 10
"""How long writers do without such a remote."""


def push(git: Git, now: str, seconds: float = PUSH_SECONDS) -> Pushed:
    """Push if there is anything to push, and note what came of it."""
    tree = git.state()
    if git.remote() is None or tree.branch is None or tree.head is None:
        if git.remote() is not None and tree.branch is None:
            act = tree.in_progress
            return Pushed("rejected", f"a {act} is not finished" if act else "no branch is checked out")
        return Pushed(
            "nothing", "there is no remote" if git.remote() is None else "there is no commit to push"
        )
    if tree.upstream is not None and not tree.ahead:
        state.change(git.root, lambda before: _settled(before, now, tree))
        return Pushed("nothing")
    if tree.upstream is None:  # never seen with this branch: look before our files go there
        unsuited = _first_look(git, now, seconds)
        if unsuited is not None:
            state.note(git.root, push=Event(now, unsuited.outcome, unsuited.problem))
            return unsuited
    done = git.push(seconds)
    if done.outcome == "rejected":
        fetched = git.fetch(min(seconds, FETCH_SECONDS))
        tree = git.state()
        state.note(git.root, fetch=_fetch_event(fetched, now))
    elif done.outcome in ("pushed", "nothing"):
        tree = tree._replace(ahead=0, behind=0)
    event = Event(now, done.outcome, done.problem)
    heard = done.outcome != "unreachable"

    def noted(before: StoreState) -> StoreState:
        after = _seen(before, now, tree)._replace(push=event)
        return _heard(after, now) if heard else after

    state.change(git.root, noted)
    return done


def _first_look(git: Git, now: str, seconds: float) -> Pushed | None:
    """Why nothing is pushed to a remote that has not been seen before; None: it may be."""
    fetched, _ = fetch(git, now, min(seconds, FETCH_SECONDS))
    if not fetched.reached:
        return Pushed("unreachable", fetched.problem)
    try:
        refuse_foreign(git)
    except RemoteOccupied as error:
        return Pushed("rejected", str(error).rstrip("."))
    return None


def refuse_foreign(git: Git) -> None:
    """RemoteOccupied when the remote, as it was last seen, holds something else than a knowledge base."""
    url = git.remote() or ""
    if state.read(git.root).accepted == mark_of(url):
        return
    found = marker.of_remote(git)
    if found.is_foreign:
        remedy = (
            "Name another one with `ai-kb init --remote URL`; `ai-kb init --force` pushes beside these files"
        )
        raise RemoteOccupied(url=masked(url), told=found.told, remedy=remedy)


def mark_of(url: str) -> str:
    """What is remembered of an address: not the address, which may hold a password."""
    return sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def fetch(
    git: Git,
    now: str,
    seconds: float = FETCH_SECONDS,
    before: TreeState | None = None,
    *,
    sparing: bool = False,
) -> tuple[Fetched, TreeState]:
    """Fetch, note whether the remote was reached and whether the two have diverged; how they stand then.

    `before`: how the tree stood a moment ago. It is looked at again only when a branch has moved since.
    `sparing`: do not ask a remote that kept a caller waiting without an answer a few minutes ago."""
    until = silent_until(state.read(git.root), now) if sparing else ""
    if until:
        tree = before if before is not None and git.stands_as(before) else git.state()
        return Fetched(
            False, f"it did not answer before; it is asked again after {until}, or by `ai-kb push`"
        ), tree
    began = time.monotonic()
    fetched = git.fetch(seconds)
    if not fetched.reached and time.monotonic() - began >= min(SLOW, seconds):
        fetched = fetched._replace(is_silent=True)
    tree = before if before is not None and git.stands_as(before) else git.state()
    if git.remote() is not None:
        event = _fetch_event(fetched, now)
        state.change(git.root, lambda before: _seen(before, now, tree)._replace(fetch=event))
    return fetched, tree


def _fetch_event(fetched: Fetched, now: str) -> Event:
    outcome = "reached" if fetched.reached else "silent" if fetched.is_silent else "unreachable"
    return Event(now, outcome, fetched.problem)


def silent_until(noted: StoreState, now: str) -> str:
    """Until when a remote that gave no answer is not waited for again by writers; nothing: it may be asked."""
    if noted.fetch is None or noted.fetch.outcome != "silent":
        return ""
    try:
        since, moment = datetime.fromisoformat(noted.fetch.at), datetime.fromisoformat(now)
        until = since + timedelta(minutes=SILENT_MINUTES)
        return f"{until:%H:%M} UTC" if since <= moment < until else ""
    except (ValueError, TypeError):
        return ""


def _seen(before: StoreState, now: str, tree: TreeState) -> StoreState:
    """A divergence keeps the time at which it was first seen."""
    if not tree.has_diverged:
        return before._replace(divergence=None)
    since = before.divergence.at if before.divergence else now
    return before._replace(divergence=Divergence(since, tree.ahead, tree.behind))


def _heard(before: StoreState, now: str) -> StoreState:
    """The remote has answered: a failure to reach it is over."""
    is_over = before.fetch is not None and before.fetch.outcome != "reached"
    return before._replace(fetch=Event(now, "reached")) if is_over else before


def _settled(before: StoreState, now: str, tree: TreeState) -> StoreState:
    """All is there: an earlier failure is over. A success keeps its time."""
    after = _seen(before, now, tree)
    if before.push is not None and before.push.outcome in ("rejected", "unreachable"):
        after = after._replace(push=Event(now, "nothing"))
    return after
