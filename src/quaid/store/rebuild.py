"""Derived rows, burned and made again from the kept ones.

Knows which rows follow from pages and turns alone: words, tags, timeline entries, chunks and parts. Does not know
vectors, which need a model, nor what follows from files.
"""

import json
from collections.abc import Callable, Iterator

import apsw

from quaid.core.page import Page, build
from quaid.store import chunks, conversations, pages, turn_vectors, vectors

TOLD_EACH = 50
"""After so many pages it is told how far things are."""


def rebuild(tx: apsw.Connection, told: Callable[[int, int], None] = lambda _done, _total: None) -> None:
    """Make every row again that follows from the pages, and tell how many of them are done."""
    total: int = tx.execute("SELECT count(*) FROM pages").get
    tx.execute("DELETE FROM tags")
    tx.execute("DELETE FROM timeline_entries")
    tx.execute("INSERT INTO page_fts_unspaced (page_fts_unspaced) VALUES ('delete-all')")
    # Chunks that say what the pages say keep their ids, which questions break ties by and guess their number from.
    tx.execute("INSERT INTO chunk_fts (chunk_fts) VALUES ('delete-all')")
    tx.execute("DELETE FROM chunks WHERE page_id IN (SELECT id FROM pages WHERE quarantined_at IS NOT NULL)")
    for done, (page_id, page, quarantined) in enumerate(built_pages(tx)):
        if done % TOLD_EACH == 0:
            told(done, total)
        pages.derive(tx, page_id, page, quarantined)
    told(total, total)
    tx.execute("INSERT INTO page_fts (page_fts) VALUES ('rebuild')")
    chunks.index_all_words(tx)
    conversations.rebuild_words(tx)
    turn_vectors.recut(tx)
    for (model,) in tx.execute("SELECT name FROM embedding_models").fetchall():
        vectors.encode_all(tx, str(model))
    turn_vectors.encode_all(tx)


def recut(tx: apsw.Connection) -> None:
    """Cut every page anew, as the settings say now. What is cut as before keeps its rows."""
    for page_id, page, quarantined in built_pages(tx):
        if not quarantined:
            chunks.write(tx, page_id, page.title, page.truth, page.timeline)


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
