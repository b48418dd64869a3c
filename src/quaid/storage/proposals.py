"""Proposals: writes of agents that wait for a person's decision."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import NotFound
from quaid.storage.text_index import Stemmer

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

_COLUMNS = (
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


def open_proposals(db: "Database") -> list[ProposalRow]:
    """Return the open proposals, oldest first, so that a proposal is applied after the proposals it builds on."""
    rows = db.rows(
        f"SELECT {_COLUMNS} FROM proposals WHERE decided_at IS NULL ORDER BY id LIMIT 10000"  # noqa: S608
    )
    return [ProposalRow(*row) for row in rows]


def is_known(db: "Database", fingerprint: str) -> bool:
    """Return True if a proposal with this fingerprint exists, open or decided."""
    return db.one("SELECT 1 FROM proposals WHERE fingerprint = ?", (fingerprint,)) is not None


def count_open(db: "Database") -> int:
    row = db.one("SELECT count(*) FROM proposals WHERE decided_at IS NULL")
    return int(row[0]) if row else 0


def require(db: "Database", proposal_id: int) -> ProposalRow:
    """Return the proposal with this id, open or decided. Raise NotFound if it does not exist."""
    row = db.one(f"SELECT {_COLUMNS} FROM proposals WHERE id = ?", (proposal_id,))  # noqa: S608 (fixed)
    if row is None:
        raise NotFound(what="proposal", name=proposal_id, hint=" `quaid review` lists the open ones.")
    return ProposalRow(*row)


def search(
    db: "Database", author: str, words: Iterable[str], limit: int = 5
) -> list[tuple[ProposalRow, float]]:
    """Return matching open proposals of one author, each with the share of the words that it contains, best first.

    A proposal matches if its slug contains one of the words, or its added text and slug contain half of them. Words
    are compared by their stems. Only the author finds an open proposal in searches.
    """
    stemmer = Stemmer(db)

    def stems(text: str) -> set[str]:
        return {stem for *_, stem in stemmer.words(text.encode("utf-8", "replace"))}

    wanted = [(word.lower(), stems(word)) for word in words]
    matches: list[tuple[float, int, ProposalRow]] = []
    for row in open_proposals(db):
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
