"""Knowledge gaps: questions that found no answer.

A gap holds the hash of its question. The words are stored only with an approval, which the table itself enforces.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import NotFound

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

_COLUMNS = (
    "id, query_hash, query_text, context, confidence_score, sensitivity, approved_by, approved_at,"
    " redacted_query, resolved_at, resolved_by_slug, times_seen, detected_at, last_seen_at"
)


class Gap(NamedTuple):
    """A row of the knowledge_gaps table."""

    id: int
    query_hash: str
    query_text: str | None
    """None unless storing the full query text was approved; `redacted_query` may be set instead."""
    context: str
    confidence_score: float | None
    sensitivity: str
    approved_by: str | None
    approved_at: str | None
    redacted_query: str | None
    resolved_at: str | None
    resolved_by_slug: str | None
    times_seen: int
    detected_at: str
    last_seen_at: str


def log_gap(tx: "Transaction", query_hash: str, context: str, score: float | None, now: str) -> Gap:
    """Record that a query found no answer, or increment the counter of its open gap."""
    rows: list[tuple[Any, ...]] = tx.execute(
        "UPDATE knowledge_gaps SET times_seen = times_seen + 1, last_seen_at = ?,"  # noqa: S608
        " context = coalesce(nullif(?, ''), context), confidence_score = coalesce(?, confidence_score)"
        f" WHERE query_hash = ? AND resolved_at IS NULL RETURNING {_COLUMNS}",
        (now, context, score, query_hash),
    ).fetchall()
    rows = (
        rows
        or tx.execute(
            "INSERT INTO knowledge_gaps (query_hash, context, confidence_score, detected_at, last_seen_at)"  # noqa: S608
            f" VALUES (?1, ?2, ?3, ?4, ?4) RETURNING {_COLUMNS}",
            (query_hash, context, score, now),
        ).fetchall()
    )
    return Gap(*rows[0])


def listing(db: "Database", *, resolved: bool, limit: int) -> list[Gap]:
    """Return gaps: open ones first, most frequent first, then resolved ones, most recently resolved first."""
    rows = db.rows(
        f"SELECT {_COLUMNS} FROM knowledge_gaps WHERE resolved_at IS NULL OR ?"  # noqa: S608
        # For resolved gaps, the id breaks ties between those resolved within the same second.
        " ORDER BY resolved_at IS NOT NULL, resolved_at DESC, iif(resolved_at IS NULL, times_seen, id) DESC,"
        " detected_at, id LIMIT ?",
        (resolved, limit),
    )
    return [Gap(*row) for row in rows]


def count(db: "Database", *, resolved: bool) -> int:
    """Count the gaps that `listing` returns without a limit."""
    row = db.one("SELECT count(*) FROM knowledge_gaps WHERE resolved_at IS NULL OR ?", (resolved,))
    return int(row[0]) if row else 0


def require(db: "Database", gap_id: int) -> Gap:
    """Return the gap with this id; raise NotFound if it does not exist."""
    row = db.one(f"SELECT {_COLUMNS} FROM knowledge_gaps WHERE id = ?", (gap_id,))  # noqa: S608
    if row is None:
        raise NotFound(what="gap", name=gap_id, hint=" `quaid gaps --resolved` lists them all.")
    return Gap(*row)


def open_with(db: "Database", query_hash: str) -> int | None:
    """Return the id of the open gap for a query hash, or None."""
    row = db.one("SELECT id FROM knowledge_gaps WHERE query_hash = ? AND resolved_at IS NULL", (query_hash,))
    return None if row is None else int(row[0])


def with_words(db: "Database", limit: int) -> list[tuple[int, str]]:
    """Return id and query text (or redacted text) of open gaps that have one, most frequent first."""
    rows = db.rows(
        "SELECT id, coalesce(query_text, redacted_query) AS words FROM knowledge_gaps"
        " WHERE words IS NOT NULL AND resolved_at IS NULL"
        " ORDER BY times_seen DESC, id LIMIT ?",
        (limit,),
    )
    return [(gap_id, text) for gap_id, text in rows]


def approve(
    tx: "Transaction",
    gap: Gap,
    *,
    query_text: str | None,
    sensitivity: str,
    approver: str,
    redacted_query: str | None,
    now: str,
) -> None:
    """Store the query text of a gap, or only its redacted form, together with the approver.

    A previous approval is appended to the context.
    """
    context = gap.context
    if gap.approved_by is not None:
        before = f"(before: {gap.sensitivity}, approved by {gap.approved_by} at {gap.approved_at})"
        context = f"{context} {before}".strip()
    tx.execute(
        "UPDATE knowledge_gaps SET query_text = ?, sensitivity = ?, approved_by = ?, approved_at = ?,"
        " redacted_query = ?, context = ? WHERE id = ?",
        (query_text, sensitivity, approver, now, redacted_query, context, gap.id),
    )


def resolve(tx: "Transaction", gap_id: int, slug: str | None, now: str) -> bool:
    """Resolve a gap, optionally with the page that answers it. Return False if it was already resolved."""
    tx.execute(
        "UPDATE knowledge_gaps SET resolved_at = ?, resolved_by_slug = ? WHERE id = ? AND resolved_at IS NULL",
        (now, slug, gap_id),
    )
    return tx.changes() > 0


def clear(tx: "Transaction", now: str) -> int:
    """Resolve every open gap without a stored query and return their number."""
    tx.execute(
        "UPDATE knowledge_gaps SET resolved_at = ? WHERE resolved_at IS NULL AND query_text IS NULL"
        " AND redacted_query IS NULL",
        (now,),
    )
    return tx.changes()
