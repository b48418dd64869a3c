"""Derived rows, burned and made again from the kept ones.

Knows which rows follow from pages alone: words, tags and timeline entries. Does not know chunks and vectors,
which need a model, nor what follows from files.
"""

import json
from collections.abc import Iterator

import apsw

from quaid.core.page import Page, build
from quaid.store import pages


def rebuild(tx: apsw.Connection) -> None:
    """Make every row again that follows from the pages."""
    tx.execute("DELETE FROM tags")
    tx.execute("DELETE FROM timeline_entries")
    tx.execute("INSERT INTO page_fts_unspaced (page_fts_unspaced) VALUES ('delete-all')")
    for page_id, page, quarantined in built_pages(tx):
        pages.derive(tx, page_id, page, quarantined)
    tx.execute("INSERT INTO page_fts (page_fts) VALUES ('rebuild')")


def built_pages(tx: apsw.Connection) -> Iterator[tuple[int, Page, bool]]:
    """Each page with its id, as its texts make it, and whether it is quarantined."""
    for page_id, slug, title, frontmatter, truth, timeline, quarantined in tx.execute(
        "SELECT id, slug, title, frontmatter, compiled_truth, timeline, quarantined_at IS NOT NULL FROM pages"
    ):
        try:
            values = json.loads(str(frontmatter))
        except json.JSONDecodeError:  # validate names it; nothing can be derived from it
            continue
        page = build(str(slug), values, str(truth), str(timeline))
        yield int(page_id), page._replace(title=str(title)), bool(quarantined)
