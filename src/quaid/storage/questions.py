"""Questions: knowledge gaps (queries without an answer), golden questions (tests of the search), opened results.

A gap stores the hash of its query. The query text is stored only with an approval, which the table definition
enforces.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import NotFound
from quaid.model import slug as slugs

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

_GAP_COLUMNS = (
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


APPROVED_BY_SETTING = "log_gaps"
"""Approver of query texts that are stored because the setting `log_gaps` is "text"."""


class Gaps:
    """Reads and writes the knowledge gaps of a memory. Each write is a transaction."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def read(self, limit: int, *, resolved: bool = False, with_text: bool = False) -> tuple[list[Gap], int]:
        """Return up to `limit` open gaps, most frequent first, and the total number.

        With `resolved`, the resolved gaps follow, most recently resolved first. With `with_text`, return only
        gaps whose query or redacted query is stored.
        """
        where = "(resolved_at IS NULL OR ?) AND (NOT ? OR coalesce(query_text, redacted_query) IS NOT NULL)"
        rows = self._db.rows(
            f"SELECT {_GAP_COLUMNS} FROM knowledge_gaps WHERE {where}"  # noqa: S608
            # The id breaks ties between gaps that were resolved within the same second.
            " ORDER BY resolved_at IS NOT NULL, resolved_at DESC, iif(resolved_at IS NULL, times_seen, id) DESC,"
            " detected_at, id LIMIT ?",
            (resolved, with_text, limit),
        )
        count = f"SELECT count(*) FROM knowledge_gaps WHERE {where}"  # noqa: S608
        (total,) = self._db.one(count, (resolved, with_text)) or (0,)
        return [Gap(*row) for row in rows], total

    def require(self, gap_id: int) -> Gap:
        """Return the gap with this id; raise NotFound if it does not exist."""
        row = self._db.one(f"SELECT {_GAP_COLUMNS} FROM knowledge_gaps WHERE id = ?", (gap_id,))  # noqa: S608
        if row is None:
            raise NotFound(what="gap", name=gap_id, hint=" `quaid gaps --resolved` lists them all.")
        return Gap(*row)

    def open_id(self, query_hash: str) -> int | None:
        """Return the id of the open gap for a query hash, or None."""
        row = self._db.one(
            "SELECT id FROM knowledge_gaps WHERE query_hash = ? AND resolved_at IS NULL", (query_hash,)
        )
        return None if row is None else int(row[0])

    def sealed(self) -> dict[int, bytes]:
        """Return the encrypted queries of open gaps by gap id."""
        rows = self._db.rows("SELECT id, sealed_query FROM knowledge_gaps WHERE sealed_query IS NOT NULL")
        return {int(id): bytes(data) for id, data in rows}

    def log(
        self,
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

        def work(tx: "Transaction") -> Gap:
            row = tx.one(
                "UPDATE knowledge_gaps SET times_seen = times_seen + 1, last_seen_at = ?,"  # noqa: S608
                " context = coalesce(nullif(?, ''), context), confidence_score = coalesce(?, confidence_score),"
                # An earlier decision of a person about the text is not overwritten.
                " query_text = iif(approved_by IS NULL, ?, query_text), approved_at = coalesce(approved_at, ?),"
                " approved_by = coalesce(approved_by, ?), sealed_query = coalesce(?, sealed_query)"
                f" WHERE query_hash = ? AND scope = ? AND resolved_at IS NULL RETURNING {_GAP_COLUMNS}",
                (now, context, score, text, approval[2], approval[1], sealed, query_hash, tx.scope),
            ) or tx.one(
                "INSERT INTO knowledge_gaps (query_hash, context, confidence_score, detected_at, last_seen_at,"  # noqa: S608
                " query_text, approved_by, approved_at, sealed_query, scope) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6,"
                f" ?7, ?8, ?9) RETURNING {_GAP_COLUMNS}",
                (query_hash, context, score, now, *approval, sealed, tx.scope),
            )
            assert row is not None
            return Gap(*row)

        return self._db.write(work)

    def approve(
        self,
        gap_id: int,
        *,
        query_text: str | None,
        sensitivity: str,
        approver: str,
        redacted_query: str | None,
        now: str,
    ) -> Gap:
        """Store the query text of a gap, or only its redacted form, together with the approver.

        A previous approval is appended to the context.
        """

        def work(tx: "Transaction") -> Gap:
            gap = self.require(gap_id)
            context = gap.context
            if gap.approved_by is not None:
                before = f"(before: {gap.sensitivity}, approved by {gap.approved_by} at {gap.approved_at})"
                context = f"{context} {before}".strip()
            tx.execute(
                "UPDATE knowledge_gaps SET query_text = ?, sensitivity = ?, approved_by = ?, approved_at = ?,"
                " redacted_query = ?, context = ? WHERE id = ?",
                (query_text, sensitivity, approver, now, redacted_query, context, gap_id),
            )
            return self.require(gap_id)

        return self._db.write(work)

    def resolve(self, gap_id: int | None, slug: str | None, now: str) -> int:
        """Resolve an open gap, or, if `gap_id` is None, all open gaps without a stored query.

        `slug` names the page that answers the gap, if there is one. Return the number of gaps resolved.
        """

        def work(tx: "Transaction") -> int:
            tx.execute(
                "UPDATE knowledge_gaps SET resolved_at = ?1, resolved_by_slug = ?2, sealed_query = NULL"
                " WHERE resolved_at IS NULL AND (scope = ?4 OR ?4 = '')"
                " AND iif(?3 IS NULL, coalesce(query_text, redacted_query) IS NULL, id = ?3)",
                (now, slug, gap_id, tx.scope),
            )
            return tx.changes()

        return self._db.write(work)


class GoldenQuestion(NamedTuple):
    id: int
    question: str
    within: int
    """The expected pages must be among the first `within` search results."""
    expected: tuple[str, ...]
    """Addresses of the expected pages that are visible."""
    missing: int
    """Number of expected pages that were deleted or quarantined."""


class GoldenQuestions:
    """Reads and writes the golden questions of a memory. Each write is a transaction."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def all(self) -> list[GoldenQuestion]:
        """Return the questions in the order in which they were added."""
        pages: dict[int, list[str]] = {}
        for question_id, collection, slug in self._db.rows(
            "SELECT g.question_id, c.name, p.slug FROM golden_pages AS g JOIN pages AS p ON p.id = g.page_id"
            " JOIN collections AS c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL ORDER BY p.slug"
        ):
            pages.setdefault(question_id, []).append(slugs.address(collection, slug))
        return [
            GoldenQuestion(id, question, within, tuple(pages.get(id, ())), expected - len(pages.get(id, ())))
            for id, question, within, expected in self._db.rows(
                "SELECT id, question, within, expected FROM golden_questions ORDER BY id"
            )
        ]

    def add(self, question: str, page_ids: list[int], within: int, now: str) -> int:
        """Store a question with its expected pages and return its id. An existing question gets the new pages."""

        def work(tx: "Transaction") -> int:
            [(question_id,)] = tx.rows(
                "INSERT INTO golden_questions (question, within, expected, created_at) VALUES (?1, ?2, ?3, ?4)"
                " ON CONFLICT (question) DO UPDATE SET within = ?2, expected = ?3 RETURNING id",
                (question, within, len(page_ids), now),
            )
            tx.execute("DELETE FROM golden_pages WHERE question_id = ?", (question_id,))
            tx.executemany("INSERT INTO golden_pages VALUES (?, ?)", [(question_id, id) for id in page_ids])
            return int(question_id)

        return self._db.write(work)

    def remove(self, question_id: int) -> None:
        """Delete a question; raise NotFound if it does not exist."""

        def work(tx: "Transaction") -> None:
            tx.execute("DELETE FROM golden_questions WHERE id = ?", (question_id,))
            if not tx.changes():
                hint = "`quaid golden list` shows their numbers."
                raise NotFound(what="golden question", name=question_id, hint=hint)

        self._db.write(work)


def move_golden(tx: "Transaction", gone: int, target: int) -> None:
    """Replace a page by the page it was merged into, in all questions that expect it."""
    tx.execute("UPDATE OR IGNORE golden_pages SET page_id = ? WHERE page_id = ?", (target, gone))
    tx.execute(
        "UPDATE golden_questions SET expected = expected - 1"
        " WHERE id IN (SELECT question_id FROM golden_pages WHERE page_id = ?)",
        (gone,),
    )


MAX_OPENED = 2_000
"""Only this many of the most recently opened results are kept."""


class OpenedResult(NamedTuple):
    """A page that a person opened from the results of a search."""

    sealed_query: bytes
    address: str
    times: int
    last_at: str


class OpenedResults:
    """Reads and writes the opened results of a memory."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def all(self) -> list[OpenedResult]:
        """Return the opened results, most frequently opened first."""
        return [
            OpenedResult(bytes(sealed), slugs.address(collection, slug), times, last_at)
            for sealed, collection, slug, times, last_at in self._db.rows(
                "SELECT o.sealed_query, c.name, p.slug, o.times, o.last_at FROM opened_results AS o"
                " JOIN pages AS p ON p.id = o.page_id JOIN collections AS c ON c.id = p.collection_id"
                " WHERE p.quarantined_at IS NULL ORDER BY o.times DESC, o.last_at DESC, p.slug"
            )
        ]

    def log(self, query_hash: str, page_id: int, sealed: bytes, now: str) -> None:
        """Record that a page was opened from the results of a search. `sealed` is the encrypted query."""

        def work(tx: "Transaction") -> None:
            tx.execute(
                "INSERT INTO opened_results (query_hash, page_id, sealed_query, last_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET times = times + 1, sealed_query = excluded.sealed_query,"
                " last_at = excluded.last_at",
                (query_hash, page_id, sealed, now),
            )
            tx.execute(
                "DELETE FROM opened_results WHERE (query_hash, page_id) IN"
                " (SELECT query_hash, page_id FROM opened_results ORDER BY last_at DESC LIMIT -1 OFFSET ?)",
                (MAX_OPENED,),
            )

        self._db.write(work)

    def forget(self, tx: "Transaction") -> None:
        tx.execute("DELETE FROM opened_results")


def sample_pages(db: "Database", size: int) -> list[tuple[str, str, str]]:
    """Return the address, title and text of up to `size` evenly spaced pages. The sample is deterministic."""
    ids = [id for (id,) in db.rows("SELECT id FROM pages WHERE quarantined_at IS NULL ORDER BY id")]
    step = max(1, len(ids) // size) if ids else 1
    rows = db.rows(
        "SELECT c.name, p.slug, p.title, p.compiled_truth FROM json_each(?) AS w"
        " CROSS JOIN pages AS p ON p.id = w.value JOIN collections AS c ON c.id = p.collection_id",
        (json.dumps(ids[::step][:size]),),
    )
    return [(slugs.address(collection, slug), title, text) for collection, slug, title, text in rows]
