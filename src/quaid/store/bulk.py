"""Many pages that are not there yet: what `pages.save` writes for each, table by table instead of page by page.

FTS5 gathers words in memory and writes them out as a small index. It must do so before every statement that could
have to take itself back, and a save has several: page by page, each page becomes an index of its own, and these are
merged again and again. Here one statement inserts many pages, and their words go out together.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model.page import DerivedData, derive_data
from quaid.store import links, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from quaid.model.page import Page

ROWS = 128
"""Pages in one statement: more of them save little."""

BYTES = 2 * 1024 * 1024
"""Of texts that wait for their statement."""

_COLUMNS = (
    "id, collection_id, slug, uuid, type, title, summary, wing, room, created_at, updated_at,"
    " truth_updated_at, timeline_updated_at, frontmatter, compiled_truth, timeline"
)
_ROW = f"({', '.join('?' * len(_COLUMNS.split(',')))})"


class NewPage(NamedTuple):
    page: "Page"
    uuid: str
    derived: DerivedData | None = None
    """What follows from the page, where somebody has worked it out already."""


def taken(tx: "apsw.Connection", collection_id: int, slugs: "Iterable[str]") -> set[str]:
    """Those of the slugs that a page has, hidden or not, or had before."""
    found = tx.execute(
        "SELECT p.slug FROM json_each(?1) AS wanted CROSS JOIN pages AS p"
        " ON p.collection_id = ?2 AND p.slug = wanted.value UNION ALL"
        " SELECT r.slug FROM json_each(?1) AS wanted CROSS JOIN redirects AS r"
        " ON r.collection_id = ?2 AND r.slug = wanted.value",
        (json.dumps(list(slugs), ensure_ascii=False), collection_id),
    )
    return {str(slug) for (slug,) in found}


def add(
    tx: "apsw.Connection", new: list[NewPage], *, now: str, collection_id: int, collection: str
) -> list[int]:
    """Write pages whose slugs are free, each with version 1, and leave them uncut. Returns their ids."""
    first = next_id(tx, "pages")
    numbered = [
        (page_id, each.page, each.derived or derive_data(each.page))
        for page_id, each in enumerate(new, first)
    ]
    values: list[Any] = []
    for (page_id, page, derived), each in zip(numbered, new, strict=True):
        values += (page_id, collection_id, page.slug, each.uuid, page.type, page.title, page.summary)
        values += (page.wing, page.room, now, now, now, now, derived.frontmatter, page.truth, page.timeline)
    if new:
        rows = ", ".join([_ROW] * len(new))
        tx.execute(f"INSERT INTO pages ({_COLUMNS}) VALUES {rows}", values)  # noqa: S608 (fixed parts)
    tx.executemany(
        "INSERT INTO tags (page_id, tag) VALUES (?, ?)",
        [(page_id, tag) for page_id, page, _ in numbered for tag in page.tags],
    )
    tx.executemany(
        "INSERT OR IGNORE INTO timeline_entries (page_id, date, source, summary, summary_hash, detail, line)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (page_id, date, source, summary, hash_, detail, line)
            for page_id, page, derived in numbered
            for (date, source, summary, detail, line), hash_ in zip(page.entries, derived.hashes, strict=True)
        ],
    )
    tx.executemany(
        "INSERT OR IGNORE INTO page_names (name, page_id, kind) VALUES (?, ?, ?)",
        [(name, page_id, kind) for page_id, _, derived in numbered for name, kind in derived.names],
    )
    links.resettle(tx, {name for _, _, derived in numbered for name, _ in derived.names})
    linking = [(page_id, page.slug, derived.references) for page_id, page, derived in numbered]
    links.add_from_texts(tx, [each for each in linking if each[2]], collection, now)
    for page_id, page, derived in numbered:
        if derived.is_unspaced:
            words.add_page(tx, page_id, page.title, page.slug, page.truth, page.timeline)
    return [page_id for page_id, _, _ in numbered]


def next_id(tx: "apsw.Connection", table: str) -> int:
    """The id of the next row of a table whose ids are never used twice."""
    last = tx.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return 1 + (int(last[0]) if last else 0)
