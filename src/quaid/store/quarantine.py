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

_WAITING = (
    "SELECT p.id, p.uuid, p.slug, p.title, c.name, r.file_path, p.quarantined_at,"
    " (SELECT count(*) FROM links l WHERE l.source_kind = 'programmatic' AND p.id IN (l.from_page_id, l.to_page_id)),"
    " (SELECT count(*) FROM assertions a WHERE a.page_id = p.id),"
    " (SELECT count(*) FROM raw_data d WHERE d.page_id = p.id), e.path"
    " FROM pages p JOIN collections c ON c.id = p.collection_id"
    " LEFT JOIN raw_imports r ON r.id = (SELECT id FROM raw_imports WHERE page_id = p.id"
    " ORDER BY is_active DESC, id DESC LIMIT 1)"
    " LEFT JOIN quarantine_exports e ON e.page_id = p.id AND e.quarantined_at = p.quarantined_at"
    " WHERE p.quarantined_at IS NOT NULL AND "
)


class Waiting(NamedTuple):
    """A quarantined page, with what no file can give back."""

    id: int
    uuid: str
    slug: str
    title: str
    collection: str
    path: str | None
    """Where its file was."""
    quarantined_at: str
    links: int
    assertions: int
    raw_data: int
    exported_to: str | None

    @property
    def is_only_here(self) -> bool:
        return bool(self.links or self.assertions or self.raw_data)

    @property
    def is_safe(self) -> bool:
        """Whether nothing is lost when it goes: all of it was in its file, or it was written out."""
        return self.exported_to is not None or not self.is_only_here


class AddedLink(NamedTuple):
    """A link that somebody added, with both its ends."""

    id: int
    from_page: str
    to_page: str
    relationship: str
    valid_from: str | None
    valid_until: str | None
    context: str
    created_at: str


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
        f"{_WAITING} (?1 IS NULL OR c.id = ?1) ORDER BY p.quarantined_at DESC, p.slug, c.id", (collection_id,)
    )
    return [Waiting(*row) for row in rows]


def find(db: "Database", slug: str, collection: str | None) -> list[Waiting]:
    """The quarantined pages of this slug, in one collection or in all."""
    rows = db.rows(
        f"{_WAITING} p.slug = ?1 AND (?2 IS NULL OR c.name = ?2) ORDER BY c.id", (slug, collection)
    )
    return [Waiting(*row) for row in rows]


def bytes_of(db: "Database", page_id: int) -> bytes | None:
    """What the page's file said when it was last read."""
    row = db.one(
        "SELECT raw_bytes FROM raw_imports WHERE page_id = ? ORDER BY is_active DESC, id DESC LIMIT 1",
        (page_id,),
    )
    return None if row is None else bytes(row[0])


def links_of(db: "Database", page_id: int) -> list[AddedLink]:
    """The links from and to a page that no text makes."""
    rows = db.rows(
        "SELECT l.id, ca.name || '::' || a.slug, cb.name || '::' || b.slug, l.relationship, l.valid_from,"
        " l.valid_until, l.context, l.created_at FROM links l JOIN pages a ON a.id = l.from_page_id"
        " JOIN collections ca ON ca.id = a.collection_id JOIN pages b ON b.id = l.to_page_id"
        " JOIN collections cb ON cb.id = b.collection_id"
        " WHERE l.source_kind = 'programmatic' AND ? IN (l.from_page_id, l.to_page_id) ORDER BY l.id",
        (page_id,),
    )
    return [AddedLink(*row) for row in rows]


def exported(tx: "apsw.Connection", chosen: list[Waiting], path: str, now: str) -> None:
    """Remember that pages were written out, and where to."""
    tx.executemany(
        "INSERT OR REPLACE INTO quarantine_exports (page_id, collection_id, slug, quarantined_at, exported_at, path)"
        " SELECT id, collection_id, slug, quarantined_at, ?, ? FROM pages WHERE id = ? AND quarantined_at = ?",
        [(now, path, each.id, each.quarantined_at) for each in chosen],
    )


def discard(tx: "apsw.Connection", page_id: int) -> None:
    """Let a page go for good, and its history with it, but for the bytes that an import stands for."""
    names = links.let_go(tx, page_id)
    tx.execute(
        "UPDATE raw_imports SET page_id = NULL, is_active = 0 WHERE page_id = ?"
        " AND EXISTS (SELECT 1 FROM import_files f WHERE f.raw_id = raw_imports.id)",
        (page_id,),
    )
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


def expired(tx: "apsw.Connection", collection_id: int, before: str) -> list[Waiting]:
    """Pages whose time in quarantine is over."""
    rows = tx.execute(f"{_WAITING} p.collection_id = ? AND p.quarantined_at < ?", (collection_id, before))
    return [Waiting._make(row) for row in rows]


def _names(tx: "apsw.Connection", page_id: int) -> set[str]:
    return {str(name) for (name,) in tx.execute("SELECT name FROM page_names WHERE page_id = ?", (page_id,))}
