"""Who has which slug, in which collection, and how a page comes to another one.

Knows the addresses of pages and the redirects that old ones leave. Does not know what pages say.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import AmbiguousSlug

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


class Holder(NamedTuple):
    """The page that has a slug."""

    page_id: int
    is_hidden: bool


def collections_with(db: "Database", slug: str) -> list[str]:
    """The collections that show a page of this slug; if none does, those where it was renamed or merged."""
    # CROSS JOIN: the few collections first, then one look by their unique key; else every page would be scanned.
    there = db.rows(
        "SELECT c.name FROM collections c CROSS JOIN pages p ON p.collection_id = c.id AND p.slug = ?"
        " WHERE p.quarantined_at IS NULL ORDER BY c.id",
        (slug,),
    ) or db.rows(
        "SELECT c.name FROM collections c CROSS JOIN redirects r ON r.collection_id = c.id AND r.slug = ?"
        " ORDER BY c.id",
        (slug,),
    )
    return [name for (name,) in there]


def the_collection_with(db: "Database", slug: str) -> str | None:
    """The one collection that has a page of this slug, or None; AmbiguousSlug when several have."""
    found = collections_with(db, slug)
    if len(found) > 1:
        raise AmbiguousSlug(slug=slug, candidates=", ".join(f"{name}::{slug}" for name in found))
    return found[0] if found else None


def holder(tx: "apsw.Connection", collection_id: int, slug: str) -> Holder | None:
    for page_id, hidden in tx.execute(
        "SELECT id, quarantined_at IS NOT NULL FROM pages WHERE collection_id = ? AND slug = ?",
        (collection_id, slug),
    ):
        return Holder(page_id, bool(hidden))
    return None


def slug_of(tx: "apsw.Connection", page_id: int) -> str | None:
    for (slug,) in tx.execute("SELECT slug FROM pages WHERE id = ?", (page_id,)):
        return str(slug)
    return None


def beginning_with(tx: "apsw.Connection", collection_id: int, start: str) -> set[str]:
    """The slugs of a collection that begin so."""
    rows = tx.execute(
        "SELECT slug FROM pages WHERE collection_id = ? AND slug >= ? AND slug < ?",
        (collection_id, start, start + "~"),
    )
    return {str(slug) for (slug,) in rows}


def shown(db: "Database", start: str, most: int, collection: str | None = None) -> list[str]:
    """The first slugs of visible pages that begin so, in order: those of one collection, or of all."""
    found: set[str] = set()
    for (number,) in db.rows("SELECT id FROM collections WHERE ?1 IS NULL OR name = ?1", (collection,)):
        rows = db.rows(  # a range of their unique key, and no further than needed
            "SELECT slug FROM pages WHERE collection_id = ?1 AND slug >= ?2 AND slug < ?2 || '~'"
            " AND quarantined_at IS NULL ORDER BY slug LIMIT ?3",
            (number, start, most),
        )
        found.update(str(slug) for (slug,) in rows)
    return sorted(found)[:most]


def parted(db: "Database", start: str, most: int, collection: str | None = None) -> list[str]:
    """The same, but a folder stands there once, as in people/, and not with all that is in it."""
    found: set[str] = set()
    for (number,) in db.rows("SELECT id FROM collections WHERE ?1 IS NULL OR name = ?1", (collection,)):
        found.update(_parted(db, number, start, most))
    return sorted(found)[:most]


def _parted(db: "Database", collection_id: int, start: str, most: int) -> list[str]:
    found: list[str] = []
    at, wanted = start, 1  # after a page there are probably more; after a folder what follows is within it
    while len(found) < most:
        rows = db.rows(
            "SELECT slug FROM pages WHERE collection_id = ?1 AND slug >= ?2 AND slug < ?3 || '~'"
            " AND quarantined_at IS NULL ORDER BY slug LIMIT ?4",
            (collection_id, at, start, wanted),
        )
        wanted *= 2
        for (slug,) in rows:
            name, mark, _ = slug[len(start) :].partition("/")
            found.append(f"{start}{name}{mark}")
            at = f"{start}{name}0" if mark else f"{slug} "  # the first that sorts after it
            if mark:
                wanted = 1
                break
        if not rows:
            break
    return found


def has_uuid(tx: "apsw.Connection", uuid: str) -> bool:
    return tx.execute("SELECT 1 FROM pages WHERE uuid = ?", (uuid,)).fetchone() is not None


def free(tx: "apsw.Connection", collection_id: int, slug: str) -> None:
    """Let a slug lead nowhere else, as a page is about to have it: one that had it before is no longer called so."""
    rows: list[tuple[Any, ...]] = tx.execute(
        "DELETE FROM redirects WHERE collection_id = ? AND slug = ? RETURNING page_id", (collection_id, slug)
    ).fetchall()
    for (former,) in rows:
        from quaid.store import links, names

        links.resettle(tx, names.without_redirect(tx, former))


def move(
    tx: "apsw.Connection",
    collection_id: int,
    page_id: int,
    old: str,
    new: str,
    now: str,
    *,
    redirect: bool = True,
) -> None:
    """Give a page a slug that is free; the old one leads to it. Its text and names are saved afterwards."""
    free(tx, collection_id, new)
    tx.execute("UPDATE pages SET slug = ? WHERE id = ?", (new, page_id))
    tx.execute("UPDATE knowledge_gaps SET resolved_by_slug = ? WHERE resolved_by_slug = ?", (new, old))
    from quaid.store import links

    if redirect and not has_stepped_aside(old, page_id):
        links.redirect(tx, collection_id, old, page_id, now)
    # A name without a folder means the page that is nearest, whichever end of the link has moved.
    near = "SELECT name FROM page_names WHERE page_id = ?1 UNION SELECT target_key FROM links WHERE from_page_id = ?1"
    links.resettle(tx, [name for (name,) in tx.execute(near, (page_id,)) if name is not None])


def step_aside(tx: "apsw.Connection", page_id: int) -> None:
    """Let a page leave its slug to another one. It gets a new one soon, or is hidden and gets it when it returns."""
    tx.execute("UPDATE pages SET slug = 'moving-' || id || '-' || version WHERE id = ?", (page_id,))


def has_stepped_aside(slug: str, page_id: int) -> bool:
    """Whether this is no name of a page, but what it is called while another one has its own."""
    return slug.startswith(f"moving-{page_id}-")
