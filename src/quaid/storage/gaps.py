"""Knowledge gaps: queries that found no answer.

A gap stores the hash of its query. The query text is stored only with an approval, which the table definition
enforces.
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

    def approve(
        self,
        tx: "Transaction",
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
        context = self.context
        if self.approved_by is not None:
            before = f"(before: {self.sensitivity}, approved by {self.approved_by} at {self.approved_at})"
            context = f"{context} {before}".strip()
        tx.execute(
            "UPDATE knowledge_gaps SET query_text = ?, sensitivity = ?, approved_by = ?, approved_at = ?,"
            " redacted_query = ?, context = ? WHERE id = ?",
            (query_text, sensitivity, approver, now, redacted_query, context, self.id),
        )


APPROVED_BY_SETTING = "log_gaps"
"""Approver of query texts that are stored because the setting `log_gaps` is "text"."""


def log_gap(
    tx: "Transaction",
    query_hash: str,
    context: str,
    score: float | None,
    now: str,
    text: str | None = None,
    sealed: bytes | None = None,
) -> Gap:
    """Record that a query found no answer, or increment the counter of its open gap.

    `text` is the query if the setting `log_gaps` allows storing it; `sealed` is the encrypted query.
    """
    approval = (text, APPROVED_BY_SETTING, now) if text else (None, None, None)
    rows: list[tuple[Any, ...]] = tx.execute(
        "UPDATE knowledge_gaps SET times_seen = times_seen + 1, last_seen_at = ?,"  # noqa: S608
        " context = coalesce(nullif(?, ''), context), confidence_score = coalesce(?, confidence_score),"
        # An earlier decision of a person about the text is not overwritten.
        " query_text = iif(approved_by IS NULL, ?, query_text), approved_at = coalesce(approved_at, ?),"
        " approved_by = coalesce(approved_by, ?), sealed_query = coalesce(?, sealed_query)"
        f" WHERE query_hash = ? AND scope = ? AND resolved_at IS NULL RETURNING {_COLUMNS}",
        (now, context, score, text, approval[2], approval[1], sealed, query_hash, tx.scope),
    ).fetchall()
    rows = (
        rows
        or tx.execute(
            "INSERT INTO knowledge_gaps (query_hash, context, confidence_score, detected_at, last_seen_at,"  # noqa: S608
            " query_text, approved_by, approved_at, sealed_query, scope) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6,"
            f" ?7, ?8, ?9) RETURNING {_COLUMNS}",
            (query_hash, context, score, now, *approval, sealed, tx.scope),
        ).fetchall()
    )
    return Gap(*rows[0])


def listing(
    db: "Database", limit: int, *, resolved: bool = False, with_text: bool = False
) -> tuple[list[Gap], int]:
    """Return up to `limit` open gaps, most frequent first, and the total number.

    With `resolved`, the resolved gaps follow, most recently resolved first. With `with_text`, return only
    gaps whose query or redacted query is stored.
    """
    where = "(resolved_at IS NULL OR ?) AND (NOT ? OR coalesce(query_text, redacted_query) IS NOT NULL)"
    rows = db.rows(
        f"SELECT {_COLUMNS} FROM knowledge_gaps WHERE {where}"  # noqa: S608
        # The id breaks ties between gaps that were resolved within the same second.
        " ORDER BY resolved_at IS NOT NULL, resolved_at DESC, iif(resolved_at IS NULL, times_seen, id) DESC,"
        " detected_at, id LIMIT ?",
        (resolved, with_text, limit),
    )
    (total,) = db.one(f"SELECT count(*) FROM knowledge_gaps WHERE {where}", (resolved, with_text)) or (0,)  # noqa: S608
    return [Gap(*row) for row in rows], total


def sealed_queries(db: "Database") -> dict[int, bytes]:
    """Return the encrypted queries of open gaps by gap id."""
    rows = db.rows("SELECT id, sealed_query FROM knowledge_gaps WHERE sealed_query IS NOT NULL")
    return {int(id): bytes(data) for id, data in rows}


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


def resolve(tx: "Transaction", gap_id: int | None, slug: str | None, now: str) -> int:
    """Resolve an open gap, or, if `gap_id` is None, all open gaps without a stored query.

    `slug` names the page that answers the gap, if there is one. Return the number of gaps resolved.
    """
    tx.execute(
        "UPDATE knowledge_gaps SET resolved_at = ?1, resolved_by_slug = ?2, sealed_query = NULL"
        " WHERE resolved_at IS NULL AND (scope = ?4 OR ?4 = '')"
        " AND iif(?3 IS NULL, coalesce(query_text, redacted_query) IS NULL, id = ?3)",
        (now, slug, gap_id, tx.scope),
    )
    return tx.changes()
