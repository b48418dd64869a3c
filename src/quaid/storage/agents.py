"""Tool calls of agents, and proposals: writes of agents that wait for a person's decision.

The log of calls has the client, the tool, and the pages that the call read and wrote, but no arguments or results.
Pages are referenced by id, so erasing a page also erases it here.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import NotFound
from quaid.model import slug as slugs
from quaid.storage import trust
from quaid.storage.text_index import Stemmer

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

_PROPOSAL_COLUMNS = (
    "id, author, tool, slug, collection, base_version, created_at, decided_at, decision, decided_by, note,"
    " summary, arguments, diff, kind, fingerprint, evidence, scope"
)


class ProposalRow(NamedTuple):
    """A row of the proposals table."""

    id: int
    author: str
    tool: str
    slug: str
    """The page or file that would change, or "" if several pages or files would change."""
    collection: str
    base_version: int
    created_at: str
    decided_at: str | None
    decision: str | None
    decided_by: str
    note: str
    summary: str
    arguments: str
    """The arguments of the tool call as JSON. A decision clears the arguments, the diff and the summary."""
    diff: str
    kind: str = ""
    """The kind of a proposal of `quaid dream`; "" for proposals of agents."""
    fingerprint: str | None = None
    evidence: str = "[]"
    """Pairs of a page or source and a quote, as JSON. A decision clears them."""
    scope: str = ""
    """The restriction of the agent as JSON (see sqlite.restriction.Only); "" for the whole memory."""

    def add(self, tx: "Transaction") -> int:
        """Insert an open proposal and return its new id."""
        tx.execute(
            "INSERT INTO proposals (author, tool, slug, collection, base_version, created_at, summary, arguments,"
            " diff, kind, fingerprint, evidence, scope) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(self.author, self.tool, self.slug, self.collection, self.base_version),
                *(self.created_at, self.summary, self.arguments, self.diff),
                *(self.kind, self.fingerprint, self.evidence, tx.scope),
            ),
        )
        return tx.last_insert_rowid()

    def decide(self, tx: "Transaction", decision: str, *, decided_by: str, note: str, now: str) -> None:
        """Mark a proposal as accepted or rejected, and clear its arguments, diff, summary and evidence.

        Accepted text is in the page and its history. Rejected text should not stay in the memory.
        """
        tx.execute(
            "UPDATE proposals SET decided_at = ?, decision = ?, decided_by = ?, note = ?, arguments = '{}',"
            " diff = '', summary = '', evidence = '[]' WHERE id = ? AND decided_at IS NULL",
            (now, decision, decided_by, note, self.id),
        )


class Proposals:
    """Reads the proposals of a memory."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def all_open(self) -> list[ProposalRow]:
        """Return the open proposals, oldest first, so that a proposal is applied after the proposals it builds on."""
        rows = self._db.rows(
            f"SELECT {_PROPOSAL_COLUMNS} FROM proposals WHERE decided_at IS NULL ORDER BY id LIMIT 10000"  # noqa: S608
        )
        return [ProposalRow(*row) for row in rows]

    def count_open(self) -> int:
        row = self._db.one("SELECT count(*) FROM proposals WHERE decided_at IS NULL")
        return int(row[0]) if row else 0

    def has(self, fingerprint: str) -> bool:
        """Return True if a proposal with this fingerprint exists, open or decided."""
        return self._db.one("SELECT 1 FROM proposals WHERE fingerprint = ?", (fingerprint,)) is not None

    def require(self, proposal_id: int) -> ProposalRow:
        """Return the proposal with this id, open or decided. Raise NotFound if it does not exist."""
        row = self._db.one(f"SELECT {_PROPOSAL_COLUMNS} FROM proposals WHERE id = ?", (proposal_id,))  # noqa: S608 (fixed)
        if row is None:
            raise NotFound(what="proposal", name=proposal_id, hint=" `quaid review` lists the open ones.")
        return ProposalRow(*row)

    def search(self, author: str, words: Iterable[str], limit: int = 5) -> list[tuple[ProposalRow, float]]:
        """Return up to `limit` matching open proposals of an author, best first, each with the share of words in it.

        A proposal matches if the last part of its slug contains one of the words, or its slug and added text contain
        half of them. Words are compared by their stems. Only the author finds an open proposal in searches.
        """
        stemmer = Stemmer(self._db)

        def stems(text: str) -> set[str]:
            return {stem for *_, stem in stemmer.words(text.encode("utf-8", "replace"))}

        wanted = [(word.lower(), stems(word)) for word in words]
        matches: list[tuple[float, int, ProposalRow]] = []
        for row in self.all_open():
            added = added_text(row.diff)
            if row.author != author or not added.strip():  # a deletion adds no text to search
                continue
            text = f"{row.slug} {added}".lower()
            named, found = stems(row.slug.rpartition("/")[2]), stems(text)
            count = sum(
                # Scripts without spaces between words have no stems of single words.
                (bool(parts) and parts <= found) or (not word.isascii() and word in text)
                for word, parts in wanted
            )
            if count and (2 * count >= len(wanted) or any(parts and parts <= named for _, parts in wanted)):
                matches.append((-count / len(wanted), -row.id, row))
        return [(row, -share) for share, _, row in sorted(matches)[:limit]]


def added_text(diff: str) -> str:
    """Return the lines that a diff adds, without the leading plus signs."""
    lines = diff.split("\n")
    return "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++"))


class ChangedRow(NamedTuple):
    """The state of a page, fact or link that an operation changes."""

    kind: str
    """page, fact, link or raw data."""
    collection: str
    slug: str
    version: int
    parts: tuple[str, ...]
    """For a page: front matter as JSON, compiled truth and timeline. For other rows: one sentence."""


_STATE_SQL = {
    "pages": "SELECT p.id, 'page', c.name, p.slug, p.version, p.frontmatter, p.compiled_truth, p.timeline"
    " FROM pages p JOIN collections c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL AND p.id",
    "assertions": "SELECT a.id, 'fact', c.name, p.slug, p.version, a.subject || ' ' || a.predicate || ' ' || a.object"
    " || iif(a.valid_from IS NULL, '', ' from ' || a.valid_from)"
    " || iif(a.valid_until IS NULL, '', ' until ' || a.valid_until)"
    " FROM assertions a JOIN pages p ON p.id = a.page_id JOIN collections c ON c.id = p.collection_id WHERE a.id",
    "links": "SELECT l.id, 'link', c.name, p.slug, p.version, p.slug || ' ' || l.relationship || ' ' || t.slug"
    " || iif(l.valid_from IS NULL, '', ' from ' || l.valid_from)"
    " || iif(l.valid_until IS NULL, '', ' until ' || l.valid_until)"
    " FROM links l JOIN pages p ON p.id = l.from_page_id JOIN collections c ON c.id = p.collection_id"
    " JOIN pages t ON t.id = l.to_page_id WHERE l.source_kind = 'programmatic' AND l.id",
    "raw_data": "SELECT d.id, 'raw data', c.name, p.slug, p.version, d.source || ' ' || d.data FROM raw_data d"
    " JOIN pages p ON p.id = d.page_id JOIN collections c ON c.id = p.collection_id WHERE d.id",
}


def read_state(db: "Database", rows: set[tuple[str, int]]) -> dict[tuple[str, int], ChangedRow]:
    """Return the state of the rows (table and id) that are pages, facts, links or raw data, in a stable order."""
    state = {}
    for table, sql in _STATE_SQL.items():
        ids = sorted(row_id for name, row_id in rows if name == table)
        for row_id, kind, collection, slug, version, *parts in db.rows(
            f"{sql} IN (SELECT value FROM json_each(?))",  # noqa: S608 (fixed statements)
            (json.dumps(ids),),
        ):
            state[table, int(row_id)] = ChangedRow(kind, collection, slug, version, tuple(parts))
    return state


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
    """The first version with text that the call changed; None if the call changed no text."""
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
    """The calls of the session. AgentCalls.sessions() leaves this empty; the caller fills it in."""


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


class AgentCalls:
    """Reads and writes the log of tool calls. Each write is a transaction."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def sessions(self, which: CallFilter, limit: int) -> tuple[list[AgentSession], int]:
        """Return up to `limit` sessions with matching calls, latest first, and the total number of sessions.

        The counts of reads, writes and failures include only matching calls.
        """
        condition, values = which.condition()
        rows = self._db.rows(
            "SELECT session, client, min(called_at), max(called_at), sum(NOT is_write),"  # noqa: S608 (fixed)
            " sum(is_write AND outcome <> 'failed'), sum(outcome = 'failed')"
            f" FROM activity WHERE {condition} GROUP BY session ORDER BY max(id) DESC LIMIT ?6",
            (*values, limit),
        )
        count = f"SELECT count(DISTINCT session) FROM activity WHERE {condition}"  # noqa: S608
        (total,) = self._db.one(count, values) or (0,)
        return [AgentSession(*row) for row in rows], total

    def of_sessions(self, which: CallFilter, sessions: Sequence[str], limit: int) -> list[StoredCall]:
        """Return up to `limit` matching calls of these sessions, newest first, with their pages."""
        condition, values = which.condition()
        matching = (
            f"(SELECT * FROM activity WHERE {condition} AND session IN (SELECT value FROM json_each(?6))"  # noqa: S608
        )
        return _select_calls(
            self._db, matching + " ORDER BY id DESC LIMIT ?7) AS a", (*values, json.dumps(sessions), limit)
        )

    def find(self, call_id: int) -> StoredCall | None:
        return next(iter(_select_calls(self._db, "activity AS a WHERE a.id = ?", (call_id,))), None)

    def clients(self) -> list[str]:
        """Return the names of the clients with stored calls, most recently active first."""
        rows = self._db.rows("SELECT client FROM activity GROUP BY client ORDER BY max(id) DESC")
        return [name for (name,) in rows]

    def sessions_of_page(self, page_id: int) -> dict[int, str]:
        """Return the session that created each version of a page, by version, where it is known."""
        rows = self._db.rows(
            "SELECT l.first_version, l.last_version, a.session FROM activity_pages AS l"
            " JOIN activity AS a ON a.id = l.activity_id WHERE l.page_id = ? AND l.last_version IS NOT NULL",
            (page_id,),
        )
        return {
            version: session
            for first, last, session in rows
            for version in range(max(first or last, last - 100), last + 1)
        }

    def store(self, calls: Iterable[NewCall], oldest: str) -> None:
        """Store calls, then delete calls made before `oldest` and all but the newest MAX_CALLS calls."""

        def work(tx: "Transaction") -> None:
            for call in calls:
                _store_call(tx, call)
            tx.execute(
                "DELETE FROM activity WHERE called_at < ? OR id <= (SELECT max(id) FROM activity) - ?",
                (oldest, MAX_CALLS),
            )

        self._db.write(work)

    def accept(self, call_ids: Sequence[int], lines: Iterable[tuple[int, str, int, int]]) -> int:
        """Mark writes as accepted unless they were undone, and return the number of marked writes.

        The lines that they added, given as (page id, lines, first version, last version), get the trust class PERSON.
        """

        def work(tx: "Transaction") -> int:
            for page_id, text, first, last in lines:
                trust.accept(tx, page_id, text, first, last)
            return _decide(tx, call_ids, "accepted")

        return self._db.write(work)

    def mark_undone(self, call_id: int) -> None:
        """Mark a write as undone, accepted or not."""
        self._db.write(lambda tx: _decide(tx, [call_id], "undone"))


def _decide(tx: "Transaction", call_ids: Sequence[int], decision: str) -> int:
    tx.execute(
        "UPDATE activity SET decision = ? WHERE id IN (SELECT value FROM json_each(?)) AND is_write"
        " AND outcome = 'done' AND (decision IS NULL OR ?1 = 'undone')",
        (decision, json.dumps(call_ids)),
    )
    return tx.changes()


def _store_call(tx: "Transaction", call: NewCall) -> None:
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
