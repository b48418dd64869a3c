"""Pages whose file vanished: hidden everywhere, kept for a while, brought back whole when the file returns.

Knows quarantined_at and what belongs to a page only here, in the database. Does not know the disk.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.store import links

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database

DAYS = 30
"""How long a page waits before it is discarded."""

_ONLY_HERE = (
    "(SELECT count(*) FROM links l WHERE l.source_kind = 'programmatic' AND p.id IN (l.from_page_id, l.to_page_id)),"
    " (SELECT count(*) FROM assertions a WHERE a.page_id = p.id),"
    " (SELECT count(*) FROM raw_data d WHERE d.page_id = p.id)"
)


class Waiting(NamedTuple):
    """A quarantined page, with what no file can give back."""

    id: int
    slug: str
    title: str
    collection: str
    path: str | None
    quarantined_at: str
    links: int
    assertions: int
    raw_data: int

    @property
    def is_only_here(self) -> bool:
        return bool(self.links or self.assertions or self.raw_data)


def put_away(tx: "apsw.Connection", page_id: int, now: str) -> None:
    """Hide a page. Links of other texts look for another page of its name."""
    tx.execute(
        "UPDATE pages SET quarantined_at = ?1, updated_at = ?1, version = version + 1 WHERE id = ?2",
        (now, page_id),
    )
    links.resettle(tx, _names(tx, page_id))


def waiting(db: "Database", collection_id: int | None = None) -> list[Waiting]:
    """The quarantined pages, the newest first."""
    rows = db.rows(
        "SELECT p.id, p.slug, p.title, c.name, (SELECT file_path FROM raw_imports r WHERE r.page_id = p.id"  # noqa: S608
        f" AND r.is_active = 1), p.quarantined_at, {_ONLY_HERE} FROM pages p JOIN collections c"
        " ON c.id = p.collection_id WHERE p.quarantined_at IS NOT NULL AND (?1 IS NULL OR c.id = ?1)"
        " ORDER BY p.quarantined_at DESC, p.slug",
        (collection_id,),
    )
    return [Waiting(*row) for row in rows]


def discard(tx: "apsw.Connection", page_id: int) -> None:
    """Let a page go for good; the bytes of its file stay in the history for their time."""
    names = links.let_go(tx, page_id)
    tx.execute("UPDATE raw_imports SET page_id = NULL, is_active = 0 WHERE page_id = ?", (page_id,))
    tx.execute("DELETE FROM pages WHERE id = ?", (page_id,))
    links.resettle(tx, names)


def clear_out(tx: "apsw.Connection", db: "Database", collection_id: int, now: str) -> tuple[int, int]:
    """Let all pages of a collection go, but those with something that is only here. How many went and stayed."""
    shown = [
        int(row[0]) for row in tx.execute("SELECT id FROM pages WHERE collection_id = ?", (collection_id,))
    ]
    tx.execute(
        "UPDATE pages SET quarantined_at = coalesce(quarantined_at, ?) WHERE collection_id = ?",
        (now, collection_id),
    )
    kept = {each.id for each in waiting(db, collection_id) if each.is_only_here}
    tx.execute("DELETE FROM file_state WHERE collection_id = ?", (collection_id,))
    for page_id in shown:
        if page_id in kept:
            links.resettle(tx, _names(tx, page_id))
        else:
            discard(tx, page_id)
    return len(shown) - len(kept), len(kept)


def expired(tx: "apsw.Connection", collection_id: int, before: str) -> list[int]:
    """Pages whose time in quarantine is over."""
    rows = tx.execute(
        "SELECT id FROM pages WHERE collection_id = ? AND quarantined_at < ?", (collection_id, before)
    )
    return [int(row[0]) for row in rows]


def _names(tx: "apsw.Connection", page_id: int) -> set[str]:
    return {str(name) for (name,) in tx.execute("SELECT name FROM page_names WHERE page_id = ?", (page_id,))}
