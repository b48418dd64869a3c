"""Sending to the remote what is only here, and learning what is only there: at best, never by force, never an error.

Knows what to do when the remote is away (note it), has moved (fetch, note the divergence, leave everything), or has
all (note that). Needs no lock: neither the tree nor the index is touched, and a remote that hangs keeps no writer
waiting.
"""

from quaid.kb import state
from quaid.kb.git import FETCH_SECONDS, PUSH_SECONDS, Fetched, Git, Pushed
from quaid.kb.reading import TreeState
from quaid.kb.state import Divergence, Event, StoreState


def push(git: Git, now: str, seconds: float = PUSH_SECONDS) -> Pushed:
    """Push if there is anything to push, and note what came of it."""
    tree = git.state()
    if git.remote() is None or tree.branch is None or tree.head is None:
        if git.remote() is not None and tree.branch is None:
            return Pushed("rejected", "no branch is checked out; `git switch main` does")
        return Pushed(
            "nothing", "there is no remote" if git.remote() is None else "there is no commit to push"
        )
    if tree.upstream is not None and not tree.ahead:
        state.change(git.root, lambda before: _settled(before, now, tree))
        return Pushed("nothing")
    done = git.push(seconds)
    if done.outcome == "rejected":
        fetched = git.fetch(min(seconds, FETCH_SECONDS))
        tree = git.state()
        state.note(git.root, fetch=_fetch_event(fetched, now))
    elif done.outcome in ("pushed", "nothing"):
        tree = tree._replace(ahead=0, behind=0)
    event = Event(now, done.outcome, done.problem)
    state.change(git.root, lambda before: _seen(before, now, tree)._replace(push=event))
    return done


def fetch(
    git: Git, now: str, seconds: float = FETCH_SECONDS, before: TreeState | None = None
) -> tuple[Fetched, TreeState]:
    """Fetch, note whether the remote was reached and whether the two have diverged; how they stand then.

    `before`: how the tree stood a moment ago. It is looked at again only when a branch has moved since."""
    fetched = git.fetch(seconds)
    tree = before if before is not None and git.stands_as(before) else git.state()
    if git.remote() is not None:
        event = _fetch_event(fetched, now)
        state.change(git.root, lambda before: _seen(before, now, tree)._replace(fetch=event))
    return fetched, tree


def _fetch_event(fetched: Fetched, now: str) -> Event:
    return Event(now, "reached" if fetched.reached else "unreachable", fetched.problem)


def _seen(before: StoreState, now: str, tree: TreeState) -> StoreState:
    """A divergence keeps the time at which it was first seen."""
    if not tree.has_diverged:
        return before._replace(divergence=None)
    since = before.divergence.at if before.divergence else now
    return before._replace(divergence=Divergence(since, tree.ahead, tree.behind))


def _settled(before: StoreState, now: str, tree: TreeState) -> StoreState:
    """All is there: an earlier failure is over. A success keeps its time."""
    after = _seen(before, now, tree)
    if before.push is not None and before.push.outcome in ("rejected", "unreachable"):
        after = after._replace(push=Event(now, "nothing"))
    return after
