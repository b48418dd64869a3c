"""The log of tool calls by agents: which client called which tool, and which pages the call read and wrote.

Arguments and results are not stored. Pages are referenced by id, so erasing a page also erases it here.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model import slug as slugs

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

MAX_CALLS = 10_000
KEPT_DAYS = 90
"""Only the newest MAX_CALLS calls of the last KEPT_DAYS days are kept."""


class NewCall(NamedTuple):
    """A tool call to be stored."""

    session: str
    client: str
    tool: str
    is_write: bool
    outcome: str
    """One of "done", "proposed" and "failed"."""
    called_at: str
    ms: int
    proposal_id: int | None
    read: tuple[str, ...]
    """Addresses of the pages that the result of the call contains."""
    written: tuple[tuple[int, int, bool], ...]
    """(page id, version, whether the text changed) for each page version that the call created."""


class CallPage(NamedTuple):
    """A page that a call read or wrote."""

    address: str
    title: str
    first_version: int | None
    """The first version whose text the call changed; None if the call changed no text."""
    last_version: int | None
    """The last version that the call created; None if the call only read the page."""
    current_version: int


class StoredCall(NamedTuple):
    id: int
    session: str
    tool: str
    is_write: bool
    outcome: str
    called_at: str
    ms: int
    proposal_id: int | None
    decision: str | None
    """The decision of a person, or None if there is none yet.

    It is "accepted" or "undone" for a write, and "accepted" or "rejected" for a proposal.
    """
    pages: tuple[CallPage, ...]


class AgentSession(NamedTuple):
    """A session, which consists of the calls that a client made over one connection."""

    session: str
    client: str
    began_at: str
    ended_at: str
    reads: int
    writes: int
    failed: int
    calls: tuple[Any, ...] = ()
    """The calls of the session. CallFilter.sessions() leaves this empty; the caller fills it in."""


class CallFilter(NamedTuple):
    client: str | None = None
    session: str | None = None
    since: str = ""
    """The first day or time."""
    until: str = "9999"
    """The last day."""
    writes: bool = False

    def condition(self) -> tuple[str, tuple[object, ...]]:
        """Return a WHERE condition and its parameters."""
        sql = (
            "(?1 IS NULL OR client = ?1 COLLATE NOCASE) AND (?2 IS NULL OR session = ?2) AND called_at >= ?3"
            " AND substr(called_at, 1, 10) <= ?4 AND is_write >= ?5"
        )
        return sql, (self.client, self.session, self.since, self.until, int(self.writes))

    def sessions(self, db: "Database", limit: int) -> tuple[list[AgentSession], int]:
        """Return up to `limit` sessions with matching calls, latest first, and the total number of sessions.

        The counts of reads, writes and failures include only matching calls.
        """
        condition, values = self.condition()
        rows = db.rows(
            "SELECT session, client, min(called_at), max(called_at), sum(NOT is_write),"  # noqa: S608 (fixed)
            " sum(is_write AND outcome <> 'failed'), sum(outcome = 'failed')"
            f" FROM activity WHERE {condition} GROUP BY session ORDER BY max(id) DESC LIMIT ?6",
            (*values, limit),
        )
        (total,) = db.one(f"SELECT count(DISTINCT session) FROM activity WHERE {condition}", values) or (0,)  # noqa: S608
        return [AgentSession(*row) for row in rows], total

    def calls(self, db: "Database", sessions: Sequence[str], limit: int) -> list[StoredCall]:
        """Return up to `limit` matching calls of these sessions, newest first, with their pages."""
        condition, values = self.condition()
        matching = (
            f"(SELECT * FROM activity WHERE {condition} AND session IN (SELECT value FROM json_each(?6))"  # noqa: S608
        )
        return _select_calls(
            db, matching + " ORDER BY id DESC LIMIT ?7) AS a", (*values, json.dumps(sessions), limit)
        )


def record(tx: "Transaction", calls: Iterable[NewCall], oldest: str) -> None:
    """Store calls, then delete calls made before `oldest` and all but the newest MAX_CALLS calls."""
    for call in calls:
        tx.execute(
            "INSERT INTO activity (session, client, tool, is_write, outcome, called_at, ms, proposal_id)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            call[:8],
        )
        call_id = tx.last_insert_rowid()
        versions: dict[int, tuple[int | None, int]] = {}
        for page_id, version, has_text in call.written:
            first, last = versions.get(page_id, (None, 0))
            first = min(first or version, version) if has_text else first
            versions[page_id] = first, max(last, version)
        tx.executemany(
            "INSERT OR IGNORE INTO activity_pages (activity_id, page_id, first_version, last_version)"
            " SELECT ?, id, ?, ? FROM pages WHERE id = ?",
            [(call_id, *versions[page_id], page_id) for page_id in versions],
        )
        for address in call.read:
            collection, slug = slugs.split_address(address)
            tx.execute(
                "INSERT OR IGNORE INTO activity_pages (activity_id, page_id) SELECT ?, p.id FROM pages AS p"
                " JOIN collections AS c ON c.id = p.collection_id WHERE p.slug = ? AND (? IN ('', c.name))"
                " ORDER BY c.id LIMIT 1",
                (call_id, slug, collection or ""),
            )
    tx.execute(
        "DELETE FROM activity WHERE called_at < ? OR id <= (SELECT max(id) FROM activity) - ?",
        (oldest, MAX_CALLS),
    )


def find_call(db: "Database", call_id: int) -> StoredCall | None:
    return next(iter(_select_calls(db, "activity AS a WHERE a.id = ?", (call_id,))), None)


def _select_calls(db: "Database", source: str, values: tuple[object, ...]) -> list[StoredCall]:
    """Return calls with their pages. `source` is a FROM clause in which calls have the alias `a`."""
    rows = db.rows(
        "SELECT a.id, a.session, a.tool, a.is_write, a.outcome, a.called_at, a.ms, a.proposal_id,"  # noqa: S608
        f" coalesce(a.decision, (SELECT p.decision FROM proposals AS p WHERE p.id = a.proposal_id)) FROM {source}",
        values,
    )
    pages: dict[int, list[CallPage]] = {}
    for call_id, collection, slug, *rest in db.rows(
        "SELECT w.value, c.name, p.slug, p.title, l.first_version, l.last_version, p.version FROM json_each(?) AS w"
        " CROSS JOIN activity_pages AS l ON l.activity_id = w.value JOIN pages AS p ON p.id = l.page_id"
        " JOIN collections AS c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL ORDER BY p.slug",
        (json.dumps([row[0] for row in rows]),),
    ):
        page = CallPage(slugs.address(collection, slug), *rest)
        pages.setdefault(call_id, []).append(page)
    return [
        StoredCall._make((*row[:3], bool(row[3]), *row[4:], tuple(pages.get(int(str(row[0])), ()))))
        for row in rows
    ]


def clients(db: "Database") -> list[str]:
    """Return the names of the clients with stored calls, most recently active first."""
    return [name for (name,) in db.rows("SELECT client FROM activity GROUP BY client ORDER BY max(id) DESC")]


def sessions_of_page(db: "Database", page_id: int) -> dict[int, str]:
    """Return the session that created each version of a page, by version, where it is known."""
    rows = db.rows(
        "SELECT l.first_version, l.last_version, a.session FROM activity_pages AS l"
        " JOIN activity AS a ON a.id = l.activity_id WHERE l.page_id = ? AND l.last_version IS NOT NULL",
        (page_id,),
    )
    return {
        version: session
        for first, last, session in rows
        for version in range(max(first or last, last - 100), last + 1)
    }


def decide(tx: "Transaction", call_ids: Sequence[int], decision: str) -> int:
    """Mark writes as accepted or undone, and return the number of marked writes.

    An accepted write can be undone, but not the reverse.
    """
    tx.execute(
        "UPDATE activity SET decision = ? WHERE id IN (SELECT value FROM json_each(?)) AND is_write"
        " AND outcome = 'done' AND (decision IS NULL OR ?1 = 'undone')",
        (decision, json.dumps(call_ids)),
    )
    return tx.changes()
