"""Rows of a page that gets another slug, or becomes part of another page.

Knows every table that holds on to a page. Whatever hangs on a page that goes hangs on the other one afterwards;
what both have is there once. Does not know how two texts become one (core.merging does).
"""

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import AlreadyExists, PageMoved
from quaid.model import page_merge
from quaid.store import links, pages, slugs

if TYPE_CHECKING:
    import apsw

    from quaid.model.page import Page
    from quaid.store.pages import Saved, Stored


class Moved(NamedTuple):
    """What a merge did to everything but the texts."""

    links: int
    """Added ones that lead from or to the kept page now."""
    links_joined: int
    """Of these, those whose time overlapped with another of the same relationship: one link each time."""
    links_between: int
    """Added ones between the two pages: they are gone."""
    links_in_texts: int
    """Of other pages, to the page that went."""
    assertions: int
    assertions_same: int
    """That the kept page had already."""
    raw_data: int
    raw_data_renamed: tuple[str, ...]
    """New names of sources that said something else about the kept page."""
    imports: int
    contradictions: int
    gaps: int


def rename(tx: "apsw.Connection", old: "Stored", page: "Page", now: str, *, redirect: bool) -> int:
    """Give a page another slug; the old one leads to it. Returns the new version."""
    collection_id = _collection_id(tx, old.id)
    check_free(tx, collection_id, page.slug, old.id)
    slugs.move(tx, collection_id, old.id, old.slug, page.slug, now, redirect=redirect)
    return _save(tx, page, old.collection, now)


def check_free(tx: "apsw.Connection", collection_id: int, slug: str, page_id: int) -> None:
    """Refuse a slug that another page has, or had."""
    for hidden in _column(
        tx,
        "SELECT quarantined_at IS NOT NULL FROM pages WHERE collection_id = ? AND slug = ?",
        (collection_id, slug),
    ):
        hint = "It is quarantined; forget it first." if hidden else "`quaid merge` makes one page of two."
        raise AlreadyExists(path=slug, hint=hint)
    for target, version in tx.execute(
        "SELECT p.slug, p.version FROM redirects AS r JOIN pages AS p ON p.id = r.page_id"
        " WHERE r.collection_id = ? AND r.slug = ? AND r.page_id <> ?",
        (collection_id, slug, page_id),
    ):
        raise PageMoved(slug=slug, target=target, expected=None, current_version=version)


def merge(tx: "apsw.Connection", kept: "Stored", gone: "Stored", page: "Page", now: str) -> tuple[int, Moved]:
    """Make one page of two. `page` is what the kept one says then. Returns its version and what moved."""
    in_texts = _column(
        tx,
        "SELECT id FROM links WHERE to_page_id = ? AND source_kind = 'wiki_link' AND from_page_id NOT IN (?, ?)",
        (gone.id, gone.id, kept.id),
    )
    names = links.let_go(tx, gone.id)
    between, moved_links, joined = _move_links(tx, kept.id, gone.id)
    facts, facts_same = _move_assertions(tx, kept.id, gone.id)
    data, renamed = _move_raw_data(tx, kept.id, gone)
    moved = Moved(
        *(moved_links, joined, between, len(in_texts), facts, facts_same, data, renamed),
        imports=_move_imports(tx, kept.id, gone.id),
        contradictions=_move_contradictions(tx, kept.id, gone.id),
        gaps=_changes(
            tx,
            "UPDATE knowledge_gaps SET resolved_by_slug = ? WHERE resolved_by_slug = ?",
            (kept.slug, gone.slug),
        ),
    )
    tx.execute("UPDATE redirects SET page_id = ? WHERE page_id = ?", (kept.id, gone.id))
    tx.execute("UPDATE file_state SET page_id = ? WHERE page_id = ?", (kept.id, gone.id))
    collection_id = _collection_id(tx, gone.id)
    tx.execute("DELETE FROM pages WHERE id = ?", (gone.id,))
    links.redirect(tx, collection_id, gone.slug, kept.id, now)
    version = _save(tx, page, kept.collection, now)
    links.resettle(tx, names)
    return version, moved


def _save(tx: "apsw.Connection", page: "Page", collection: str, now: str) -> int:
    """Save a page and raise its version even if its text is the same: what hangs on it has changed."""
    saved: Saved = pages.save(tx, page, uuid="", now=now, expected_version=None, collection=collection)
    if saved.changed:
        return saved.version
    pages.derive(tx, saved.id, page)
    return pages.touch(tx, page.slug, expected_version=None, now=now, collection=collection)[1]


def _move_links(tx: "apsw.Connection", kept: int, gone: int) -> tuple[int, int, int]:
    """Added links only: those of texts follow the texts."""
    both = (kept, gone)
    between = _changes(
        tx,
        "DELETE FROM links WHERE source_kind = 'programmatic' AND from_page_id IN (?, ?) AND to_page_id IN (?, ?)"
        " AND from_page_id <> to_page_id",
        both + both,
    )
    moved = 0
    for end in ("from_page_id", "to_page_id"):
        sql = f"UPDATE links SET {end} = ? WHERE {end} = ? AND source_kind = 'programmatic'"  # noqa: S608 (fixed)
        moved += _changes(tx, sql, both)
    rows: list[tuple[Any, ...]] = tx.execute(
        "SELECT from_page_id, to_page_id, relationship, id, valid_from, valid_until, context FROM links"
        " WHERE ? IN (from_page_id, to_page_id) AND source_kind = 'programmatic' ORDER BY 1, 2, 3, 4",
        (kept,),
    ).fetchall()
    joined = 0
    for _, group in groupby(rows, key=lambda row: row[:3]):
        same = {row[3]: row for row in group}
        for each in page_merge.join_spans([page_merge.LinkSpan(*row[3:6]) for row in same.values()]):
            if each.absorbed:
                _join(tx, each, [str(same[link][6]) for link in (each.span.id, *each.absorbed)])
                joined += len(each.absorbed)
    return between, moved, joined


def _join(tx: "apsw.Connection", joined: page_merge.JoinedSpan, contexts: list[str]) -> None:
    context = "; ".join(dict.fromkeys(filter(None, contexts)))
    link, since, until = joined.span
    tx.executemany("DELETE FROM links WHERE id = ?", [(each,) for each in joined.absorbed])
    tx.execute(
        "UPDATE links SET valid_from = ?, valid_until = ?, context = ? WHERE id = ?",
        (since, until, context, link),
    )


def _move_assertions(tx: "apsw.Connection", kept: int, gone: int) -> tuple[int, int]:
    moved = _changes(tx, "UPDATE assertions SET page_id = ? WHERE page_id = ?", (kept, gone))
    same: list[tuple[Any, ...]] = tx.execute(
        "SELECT min(id), json_group_array(id) FROM assertions WHERE page_id = ?"
        " GROUP BY subject, predicate, object, valid_from, valid_until HAVING count(*) > 1",
        (kept,),
    ).fetchall()
    dropped = [(first, other) for first, every in same for other in json.loads(every) if other != first]
    for first, other in dropped:
        _fold_assertion(tx, first, other)
    return moved, len(dropped)


def _fold_assertion(tx: "apsw.Connection", first: int, other: int) -> None:
    """Of the same fact twice keep one, with the words and sources of both, and its place in a succession."""
    tx.execute(
        "UPDATE assertions AS a SET"
        " evidence_text = iif(instr(a.evidence_text, o.evidence_text), a.evidence_text,"
        " ltrim(a.evidence_text || ' / ' || o.evidence_text, ' /')),"
        " source_ref = iif(instr(a.source_ref, o.source_ref), a.source_ref,"
        " ltrim(a.source_ref || '; ' || o.source_ref, '; ')),"
        " supersedes_id = coalesce(a.supersedes_id, iif(o.supersedes_id <> a.id, o.supersedes_id, NULL))"
        " FROM assertions AS o WHERE a.id = ? AND o.id = ?",
        (first, other),
    )
    tx.execute(
        "UPDATE assertions SET supersedes_id = ?1 WHERE supersedes_id = ?2 AND id <> ?1"
        " AND id IS NOT (SELECT supersedes_id FROM assertions WHERE id = ?1)",
        (first, other),
    )
    tx.execute("DELETE FROM assertions WHERE id = ?", (other,))


def _move_raw_data(tx: "apsw.Connection", kept: int, gone: "Stored") -> tuple[int, tuple[str, ...]]:
    """What a source said about both pages differently is kept twice, the second time under another name."""
    ours = dict(tx.execute("SELECT source, data FROM raw_data WHERE page_id = ?", (kept,)))
    theirs = tx.execute(
        "SELECT id, source, data FROM raw_data WHERE page_id = ? ORDER BY id", (gone.id,)
    ).fetchall()
    renamed = []
    moved = 0
    for row, source, data in theirs:
        if ours.get(source) == data:
            continue  # it goes with its page
        name = str(source)
        if name in ours:
            name, number = f"{source} ({gone.slug})", 1
            while name in ours:
                number += 1
                name = f"{source} ({gone.slug} {number})"
            renamed.append(name)
        ours[name] = data
        tx.execute("UPDATE raw_data SET page_id = ?, source = ? WHERE id = ?", (kept, name, row))
        moved += 1
    return moved, tuple(renamed)


def _move_imports(tx: "apsw.Connection", kept: int, gone: int) -> int:
    """The bytes stay as history: without a version, because the kept page never said just what they say."""
    is_active = "is_active AND NOT EXISTS (SELECT 1 FROM raw_imports WHERE page_id = ?1 AND is_active = 1)"
    moved = _changes(
        tx,
        f"UPDATE raw_imports SET page_id = ?1, page_version = NULL, is_active = {is_active} WHERE page_id = ?2",  # noqa: S608
        (kept, gone),
    )
    tx.execute(
        "UPDATE ingest_log SET pages_updated = (SELECT json_group_array(DISTINCT iif(value = ?2, ?1, value))"
        " FROM json_each(pages_updated)) WHERE EXISTS (SELECT 1 FROM json_each(pages_updated) WHERE value = ?2)",
        (kept, gone),
    )
    return moved


def _move_contradictions(tx: "apsw.Connection", kept: int, gone: int) -> int:
    moved = _changes(tx, "UPDATE contradictions SET page_id = ? WHERE page_id = ?", (kept, gone))
    return moved + _changes(
        tx, "UPDATE contradictions SET other_page_id = ? WHERE other_page_id = ?", (kept, gone)
    )


def _collection_id(tx: "apsw.Connection", page_id: int) -> int:
    return int(_column(tx, "SELECT collection_id FROM pages WHERE id = ?", (page_id,))[0])


def _changes(tx: "apsw.Connection", sql: str, values: tuple[Any, ...]) -> int:
    tx.execute(sql, values)
    return tx.changes()


def _column(tx: "apsw.Connection", sql: str, values: tuple[Any, ...]) -> list[Any]:
    return [value for (value,) in tx.execute(sql, values)]
