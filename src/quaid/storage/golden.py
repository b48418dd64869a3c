"""Golden questions, which test the search, with their expected pages, and opened search results."""

import json
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import NotFound
from quaid.model import slug as slugs

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction


class GoldenQuestion(NamedTuple):
    id: int
    question: str
    within: int
    """The expected pages must be among the first `within` search results."""
    expected: tuple[str, ...]
    """Addresses of the expected pages that are visible."""
    missing: int
    """Number of expected pages that were deleted or quarantined."""


class OpenedResult(NamedTuple):
    sealed_query: bytes
    address: str
    times: int
    last_at: str


def add(tx: "Transaction", question: str, page_ids: list[int], within: int, now: str) -> int:
    """Store a question with its expected pages and return its id. An existing question gets the new pages."""
    [(question_id,)] = tx.execute(
        "INSERT INTO golden_questions (question, within, expected, created_at) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (question) DO UPDATE SET within = ?2, expected = ?3 RETURNING id",
        (question, within, len(page_ids), now),
    ).fetchall()
    tx.execute("DELETE FROM golden_pages WHERE question_id = ?", (question_id,))
    tx.executemany("INSERT INTO golden_pages VALUES (?, ?)", [(question_id, page) for page in page_ids])
    return int(str(question_id))


def listing(db: "Database") -> list[GoldenQuestion]:
    """Return the questions in the order in which they were added."""
    pages: dict[int, list[str]] = {}
    for question_id, collection, slug in db.rows(
        "SELECT g.question_id, c.name, p.slug FROM golden_pages AS g JOIN pages AS p ON p.id = g.page_id"
        " JOIN collections AS c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL ORDER BY p.slug"
    ):
        pages.setdefault(question_id, []).append(slugs.address(collection, slug))
    return [
        GoldenQuestion(id, question, within, tuple(pages.get(id, ())), expected - len(pages.get(id, ())))
        for id, question, within, expected in db.rows(
            "SELECT id, question, within, expected FROM golden_questions ORDER BY id"
        )
    ]


def remove(tx: "Transaction", question_id: int) -> None:
    tx.execute("DELETE FROM golden_questions WHERE id = ?", (question_id,))
    if not tx.changes():
        raise NotFound(
            what="golden question", name=question_id, hint="`quaid golden list` shows their numbers."
        )


def move_page(tx: "Transaction", gone: int, target: int) -> None:
    """Replace a page by the page it was merged into, in all questions that expect it."""
    tx.execute("UPDATE OR IGNORE golden_pages SET page_id = ? WHERE page_id = ?", (target, gone))
    tx.execute(
        "UPDATE golden_questions SET expected = expected - 1"
        " WHERE id IN (SELECT question_id FROM golden_pages WHERE page_id = ?)",
        (gone,),
    )


MAX_OPENED = 2_000
"""Only this many most recently opened results are kept."""


def log_opened(tx: "Transaction", query_hash: str, page_id: int, sealed: bytes, now: str) -> None:
    """Record that a page was opened from the results of a search. `sealed` is the encrypted query."""
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


def opened_results(db: "Database") -> list[OpenedResult]:
    """Return the opened results, most frequently opened first."""
    return [
        OpenedResult(bytes(sealed), slugs.address(collection, slug), times, last_at)
        for sealed, collection, slug, times, last_at in db.rows(
            "SELECT o.sealed_query, c.name, p.slug, o.times, o.last_at FROM opened_results AS o"
            " JOIN pages AS p ON p.id = o.page_id JOIN collections AS c ON c.id = p.collection_id"
            " WHERE p.quarantined_at IS NULL ORDER BY o.times DESC, o.last_at DESC, p.slug"
        )
    ]


def forget_opened(tx: "Transaction") -> int:
    tx.execute("DELETE FROM opened_results")
    return tx.changes()


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
