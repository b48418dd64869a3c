"""Derived rows, burned and made again from the kept ones.

Knows which rows follow from pages and turns alone: words, tags, timeline entries, chunks and parts. Does not know
vectors, which need a model, nor what follows from files. An index of words that is too damaged to be emptied is
thrown away and made anew.
"""

import json
from collections.abc import Callable, Iterator

import apsw

from quaid.model.page import Page, build_page
from quaid.store import chunks, conversations, pages, turn_vectors, vectors

INDEXES = ("page_fts", "page_fts_unspaced", "chunk_fts", "turn_fts")
"""The indexes of words. SQLite keeps each in tables of its own, named after it."""

LONGEST_REASON = 200
"""Characters of an exception that a check shows."""

TOLD_EACH = 50
"""After so many pages it is told how far things are."""


def rebuild(tx: apsw.Connection, told: Callable[[int, int], None] = lambda _done, _total: None) -> None:
    """Make every row again that follows from the pages, and tell how many of them are done."""
    total: int = tx.execute("SELECT count(*) FROM pages").get
    empty_indexes(tx)
    tx.execute("DELETE FROM tags")
    tx.execute("DELETE FROM timeline_entries")
    # Chunks that say what the pages say keep their ids, which questions break ties by and guess their number from.
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


def empty_indexes(tx: apsw.Connection) -> None:
    """Take all words out of the indexes; one that cannot even be emptied is made anew."""
    there = {str(name) for (name,) in tx.execute("SELECT name FROM sqlite_schema")}
    for index in INDEXES:
        try:
            if not all(each in there for each in _tables_of(index)):
                raise apsw.CorruptError(index)
            tx.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")  # noqa: S608 (our own names)
        except (apsw.CorruptError, apsw.SQLError):
            _make_anew(tx, index)


def _tables_of(index: str) -> tuple[str, ...]:
    return index, *(f"{index}_{each}" for each in ("data", "idx", "docsize", "config"))


def _make_anew(tx: apsw.Connection, index: str) -> None:
    from quaid.store.creating import shapes

    config = f"{index}_config"
    guarded = tx.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1)
    # The tables of an index are SQLite's own, and guarded from us.
    tx.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        # SQLite drops an index only after it has opened it, and for that it reads the version in this table.
        tx.execute(f"CREATE TABLE IF NOT EXISTS {config} (k PRIMARY KEY, v) WITHOUT ROWID")
        tx.execute(f"INSERT OR REPLACE INTO {config} (k, v) VALUES ('version', 4)")  # noqa: S608 (our own names)
        for each in _tables_of(index):
            tx.execute(f"DROP TABLE IF EXISTS {each}")
        tx.execute(shapes()[index])
    finally:
        tx.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, guarded)


def recut(tx: apsw.Connection) -> None:
    """Cut every page anew, as the settings say now. What is cut as before keeps its rows."""
    for page_id, page, quarantined in built_pages(tx):
        if not quarantined:
            chunks.write(tx, page_id, page.title, page.truth, page.timeline)


def built_pages(tx: apsw.Connection) -> Iterator[tuple[int, Page, bool]]:
    """Each page with its id, as its texts make it, and whether it is quarantined. Skip those of `unbuilt_pages`."""
    for page_id, _, page, quarantined in _built(tx):
        if isinstance(page, Page):
            yield page_id, page, quarantined


def unbuilt_pages(tx: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Return the slug of each page whose rows cannot be derived from its texts, and why."""
    for _, slug, problem, _ in _built(tx):
        if isinstance(problem, str):
            yield slug, problem


def _built(tx: apsw.Connection) -> Iterator[tuple[int, str, Page | str, bool]]:
    """Return id, slug, the page or what is wrong with it, and whether it is quarantined."""
    for page_id, slug, title, frontmatter, truth, timeline, quarantined in tx.execute(
        "SELECT id, slug, title, frontmatter, compiled_truth, timeline, quarantined_at IS NOT NULL FROM pages"
    ):
        made: Page | str
        try:
            values = json.loads(str(frontmatter))
            if isinstance(values, dict):
                made = build_page(str(slug), values, str(truth), str(timeline))._replace(title=str(title))
            else:
                made = "its front matter is not a JSON object"
        except json.JSONDecodeError:
            made = "its front matter is not JSON"
        except Exception as error:  # it keeps its text, and must not cost the other pages their rows
            made = failed_on(error)
        yield int(page_id), str(slug), made, bool(quarantined)


def failed_on(error: Exception) -> str:
    """Say in one line that Quaid failed on the text of a page."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return f"Quaid fails on its text ({reason[:LONGEST_REASON]}). That is a bug: please report it"
