"""What happened when: chunks and pages by their date.

Knows where a date may stand: on a timeline entry, in the front matter, in the slug of a journal or a meeting.
Does not know how a question says a time.
"""

import json
from typing import TYPE_CHECKING

from quaid.core.patterns import pattern
from quaid.store.chunks import narrowed

if TYPE_CHECKING:
    from quaid.store.db import Database
    from quaid.store.words import Filters

_DAY = pattern(r"(?<![0-9])[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?(?![0-9])")


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
    """The first chunk of each page that is called by a day between the two, the newest first."""
    allowed, values = narrowed(filters, "first.id")
    rows = db.rows(
        "SELECT DISTINCT first.id FROM page_names AS n CROSS JOIN chunks AS first"  # noqa: S608
        " ON first.page_id = n.page_id AND first.chunk_index = 0"
        f" WHERE n.name >= ? AND n.name < ?{allowed} ORDER BY n.name DESC LIMIT ?",
        (start.replace("-", " "), end.replace("-", " ") + "!", *values, limit),
    )
    return [chunk_id for (chunk_id,) in rows]


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
        "SELECT id, slug, frontmatter FROM pages WHERE id IN (SELECT value FROM json_each(?))",
        (str(page_ids),),
    )
    found = {}
    for page_id, slug, frontmatter in rows:
        given = json.loads(frontmatter).get("date") if '"date"' in frontmatter else None
        match = (_DAY.search(given) if isinstance(given, str) else None) or _DAY.search(slug)
        if match:
            found[page_id] = match.group()
    return found
