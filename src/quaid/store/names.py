"""What pages are called, and which pages are called so: the table page_names.

Does not know what a question means, nor how a name is folded (core.names does).
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model.names import NAME_KINDS, fold_name, names_of
from quaid.store.chunks import page_conditions

if TYPE_CHECKING:
    import apsw

    from quaid.model.page import Page
    from quaid.store.db import Database
    from quaid.store.words import Filters


class Named(NamedTuple):
    """A page that has a name."""

    name: str
    page_id: int
    kind: str


def index_page(tx: "apsw.Connection", page_id: int, page: "Page") -> set[str]:
    """Make the table hold what this page is called now. Returns the names that it gained or lost."""
    return _hold(tx, page_id, page.title, page.slug, page.frontmatter)


def without_redirect(tx: "apsw.Connection", page_id: int) -> set[str]:
    """Take away what a page was called by a slug that leads to it no more. Returns the names that it lost."""
    for title, slug, frontmatter in tx.execute(
        "SELECT title, slug, frontmatter FROM pages WHERE id = ?", (page_id,)
    ).fetchall():
        return _hold(tx, page_id, str(title), str(slug), json.loads(str(frontmatter)))
    return set()


def _hold(
    tx: "apsw.Connection", page_id: int, title: str, address: str, frontmatter: dict[str, Any]
) -> set[str]:
    before = {
        (name, kind)
        for name, kind in tx.execute("SELECT name, kind FROM page_names WHERE page_id = ?", (page_id,))
    }
    former = [slug for (slug,) in tx.execute("SELECT slug FROM redirects WHERE page_id = ?", (page_id,))]
    now = set(names_of(title, address, frontmatter, former))
    if now == before:
        return set()
    tx.execute("DELETE FROM page_names WHERE page_id = ?", (page_id,))
    tx.executemany(
        "INSERT OR IGNORE INTO page_names (name, page_id, kind) VALUES (?, ?, ?)",
        [(name, page_id, kind) for name, kind in sorted(now)],
    )
    return {name for name, _ in now ^ before}


def called(db: "Database", names: list[str]) -> list[Named]:
    """The pages that have one of these folded names; the most certain kind of name first."""
    rows = db.rows(
        "SELECT n.name, n.page_id, n.kind FROM json_each(?) AS wanted CROSS JOIN page_names AS n"
        " ON n.name = wanted.value JOIN pages AS p ON p.id = n.page_id AND p.quarantined_at IS NULL",
        (json.dumps(names, ensure_ascii=False),),
    )
    found = [Named(*row) for row in rows]
    return sorted(found, key=lambda each: (NAME_KINDS.index(each.kind), each.page_id))


def whose(db: "Database", name: str, collection: str | None = None) -> str:
    """A sentence that says which pages have this title or alias, up to three of them; nothing when none has."""
    from quaid.model.slug import address

    rows = db.rows(
        "SELECT c.name, p.slug, p.title FROM page_names n CROSS JOIN pages p ON p.id = n.page_id"
        " JOIN collections c ON c.id = p.collection_id WHERE n.name = ?1 AND n.kind IN ('title', 'alias')"
        " AND p.quarantined_at IS NULL AND (?2 IS NULL OR c.name = ?2) ORDER BY n.kind DESC, p.slug LIMIT 3",
        (fold_name(name), collection),
    )
    told = " and ".join(f"{address(where, slug)} ({called_so})" for where, slug, called_so in rows)
    return (
        told
        and f"The page{'s' if len(rows) > 1 else ''} of that name {'are' if len(rows) > 1 else 'is'} {told}."
    )


def beginning(db: "Database", start: str, limit: int) -> list[Named]:
    """Some of the pages with a folded name that begins so, by the alphabet."""
    rows = db.rows(
        "SELECT n.name, n.page_id, n.kind FROM page_names AS n CROSS JOIN pages AS p ON p.id = n.page_id"
        " WHERE n.name >= ? AND n.name < ? AND p.quarantined_at IS NULL ORDER BY n.name LIMIT ?",
        (start, f"{start}\U0010ffff", limit),
    )
    return [Named(*row) for row in rows]


def wings_called(db: "Database", names: list[str]) -> list[str]:
    """Those of the names that are wings."""
    rows = db.rows(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM pages INDEXED BY pages_by_wing"
        " WHERE wing = value AND quarantined_at IS NULL)",
        (json.dumps(names, ensure_ascii=False),),
    )
    return [name for (name,) in rows]


def first_chunks(db: "Database", page_ids: list[int], filters: "Filters") -> dict[int, int]:
    """The first chunk of each of these pages that the filters allow; pages without one are left out."""
    conditions, values = page_conditions(filters)
    rows = db.rows(
        "SELECT c.page_id, c.id, min(c.chunk_index) FROM json_each(?) AS wanted"  # noqa: S608
        " CROSS JOIN pages AS p ON p.id = wanted.value CROSS JOIN chunks AS c ON c.page_id = p.id"
        f"{' WHERE ' + conditions if conditions else ''} GROUP BY c.page_id",
        (str(page_ids), *values),
    )
    return {page_id: chunk_id for page_id, chunk_id, _ in rows}
