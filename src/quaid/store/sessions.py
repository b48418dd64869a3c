"""Who watches which folder: the processes that could, and the leases that they hold.

Of all processes on one memory, one holds the lease of a collection, and says every few seconds that it lives. A
lease whose holder is dead or silent is free for the next one who looks. Knows the rows of serve_sessions and
collection_owners, and how to ask the system about a process. Does not know folders or what watching is.
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database

BEAT_SECONDS = 3.0
"""Between two signs of life, and between two looks of those who stand by."""

STALE_SECONDS = 10.0
"""A session that was silent for so long is over. With a look and times kept to the second: taken over within 15."""

Clock = Callable[[float], str]
"""The time, some seconds from now. Asked within the transaction: the wait for it may have been long."""


class Session(NamedTuple):
    """A process that may watch."""

    id: str
    pid: int
    host: str
    stale_after: float = STALE_SECONDS


class Owner(NamedTuple):
    """A collection that another process watches."""

    collection: str
    pid: int
    host: str


class Standing(NamedTuple):
    mine: frozenset[int]
    """Collections that this session holds."""
    others: tuple[Owner, ...]
    free: tuple[str, ...]
    """Collections that nobody living holds."""


class _Holder(NamedTuple):
    collection_id: int
    collection: str
    session_id: str | None
    pid: int
    host: str
    heartbeat_at: str


def look(db: "Database", me: Session, clock: Clock, name: str | None = None) -> Standing:
    """How things are, for somebody who writes nothing: all collections, or the one of this name."""
    with db.reading():
        holders = _holders(db.rows(_HOLDERS, (name,)))
    return _standing(holders, me, clock)


def take(db: "Database", me: Session, clock: Clock, name: str | None = None) -> Standing:
    """Say that I live, and lease what nobody living holds: in one transaction, so that one wins."""

    def work(tx: "apsw.Connection") -> Standing:
        _reap(tx, me, clock)
        now = clock(0)
        tx.execute(
            "INSERT INTO serve_sessions (session_id, pid, host, started_at, heartbeat_at)"
            " VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT (session_id) DO UPDATE SET heartbeat_at = ?4",
            (me.id, me.pid, me.host, now),
        )
        tx.execute(
            "DELETE FROM collection_owners WHERE session_id = ? AND collection_id NOT IN"  # noqa: S608
            f" (SELECT id FROM collections WHERE {_WATCHED})",
            (me.id,),
        )
        tx.execute(
            "INSERT OR IGNORE INTO collection_owners (collection_id, session_id, acquired_at)"  # noqa: S608
            f" SELECT id, ?, ? FROM collections WHERE {_WATCHED} AND (?3 IS NULL OR name = ?3)",
            (me.id, now, name),
        )
        return _standing(_holders(tx.execute(_HOLDERS, (name,))), me, clock)

    return db.write(work)


def leave(db: "Database", me: Session) -> None:
    """Give back every lease."""
    db.write(lambda tx: tx.execute("DELETE FROM serve_sessions WHERE session_id = ?", (me.id,)))


def is_running(pid: int) -> bool:
    """Whether a process of this machine lives; in doubt it does, until its signs of life stop."""
    if os.name == "nt":
        return True  # signal 0 would end it there
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:  # one that ended, and whose parent has not taken note of it, still has a number
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return True


_WATCHED = "state = 'active' AND root_path IS NOT NULL"

_HOLDERS = (
    "SELECT c.id, c.name, s.session_id, s.pid, s.host, s.heartbeat_at FROM collections c"  # noqa: S608
    " LEFT JOIN collection_owners o ON o.collection_id = c.id"
    " LEFT JOIN serve_sessions s ON s.session_id = o.session_id"
    f" WHERE {_WATCHED} AND (?1 IS NULL OR c.name = ?1) ORDER BY c.id"
)


def _holders(rows: Iterable[tuple[object, ...]]) -> list[_Holder]:
    return [_Holder._make(row) for row in rows]


def _standing(holders: list[_Holder], me: Session, clock: Clock) -> Standing:
    mine = frozenset(each.collection_id for each in holders if each.session_id == me.id)
    others: list[Owner] = []
    free: list[str] = []
    for each in holders:
        if each.session_id is None or _is_over(each, me, clock):
            free.append(each.collection)
        elif each.session_id != me.id:
            others.append(Owner(each.collection, each.pid, each.host))
    return Standing(mine, tuple(others), tuple(free))


def _reap(tx: "apsw.Connection", me: Session, clock: Clock) -> None:
    """Forget sessions that are over; their leases go with them."""
    rows = tx.execute("SELECT 0, '', session_id, pid, host, heartbeat_at FROM serve_sessions").fetchall()
    over = [each.session_id for each in _holders(rows) if _is_over(each, me, clock)]
    for session_id in over:
        tx.execute("DELETE FROM serve_sessions WHERE session_id = ?", (session_id,))


def _is_over(each: _Holder, me: Session, clock: Clock) -> bool:
    if each.session_id == me.id:
        return False
    if each.host == me.host and (each.pid == me.pid or not is_running(each.pid)):
        return True  # a number that is ours now was somebody else's before
    # A sign of life out of the future was given before the clock was set back.
    return not clock(-me.stale_after) <= each.heartbeat_at <= clock(me.stale_after)
