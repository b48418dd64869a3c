"""What happened when: chunks and pages by their date.

Knows what is of a time: entries of a timeline, and pages, by what store.days finds. Does not know how a question
says a time.
"""

from typing import TYPE_CHECKING

from quaid.store.chunks import narrowed
from quaid.store.days import OWN_DAY

if TYPE_CHECKING:
    from quaid.store.db import Database
    from quaid.store.words import Filters


def entries(db: "Database", start: str, end: str, filters: "Filters", limit: int) -> list[int]:
    """Chunks of the timeline whose date falls between two days, the newest first."""
    allowed, values = narrowed(filters, "dated.id")
    rows = db.rows(
        "SELECT dated.id FROM chunks AS dated WHERE dated.date BETWEEN ? AND ?"  # noqa: S608
        f"{allowed} ORDER BY dated.date DESC, dated.id DESC LIMIT ?",
        (start, end, *values, limit),
    )
    return [chunk_id for (chunk_id,) in rows]


def first_chunks(db: "Database", start: str, end: str, filters: "Filters", limit: int) -> list[int]:
    """The first chunk of each page that is about a day between the two, or a month that reaches there.

    The newest come first.
    """
    allowed, values = narrowed(filters, "first.id")
    rows = db.rows(
        f"SELECT first.id, {OWN_DAY} AS day FROM pages AS p CROSS JOIN chunks AS first"  # noqa: S608
        " ON first.page_id = p.id AND first.chunk_index = 0 WHERE p.quarantined_at IS NULL"
        """ AND (instr(p.frontmatter, '"date"') OR p.slug GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*')"""
        f" AND day BETWEEN substr(?, 1, length(day)) AND substr(?, 1, length(day)){allowed}"
        " ORDER BY day DESC, first.id DESC LIMIT ?",
        (start, end, *values, limit),
    )
    return [chunk_id for chunk_id, _ in rows]


def chunk_dates(db: "Database", chunk_ids: list[int]) -> dict[int, str]:
    """The dates of those chunks that have one."""
    rows = db.rows(
        "SELECT id, date FROM chunks WHERE date IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
        (str(chunk_ids),),
    )
    return dict(rows)


def page_dates(db: "Database", page_ids: list[int]) -> dict[int, str]:
    """The date of each page that has one: its front matter's, else the one in its slug; a day or a month."""
    rows = db.rows(
        f"SELECT p.id, {OWN_DAY} AS day FROM json_each(?) AS wanted CROSS JOIN pages AS p ON p.id = wanted.value",  # noqa: S608
        (str(page_ids),),
    )
    return {page_id: day for page_id, day in rows if day}
