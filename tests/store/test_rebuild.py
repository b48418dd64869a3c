"""Derived rows burn and come back as they were."""

import apsw

from quaid.core.page import build
from quaid.store import pages
from quaid.store.db import Database
from quaid.store.rebuild import rebuild

NOW = "2026-04-25T12:00:00Z"
DERIVED = {
    "tags": "SELECT page_id, tag FROM tags ORDER BY id",
    "timeline_entries": "SELECT page_id, date, source, summary, summary_hash, detail, line"
    " FROM timeline_entries ORDER BY page_id, line",
    "chunks": "SELECT page_id, chunk_index, chunk_type, content_hash, token_count, start_line, end_line, date,"
    " heading_path, chunk_text FROM chunks ORDER BY page_id, chunk_index",
    "chunk_fts": "SELECT term, page_id, chunk_index, col, offset FROM temp.chunk_words JOIN chunks ON id = doc"
    " ORDER BY 1, 2, 3, 4, 5",
    "page_fts": "SELECT term, doc, col, offset FROM temp.spaced_words",
    "page_fts_unspaced": "SELECT term, doc, col, offset FROM temp.unspaced_words",
}


def everything(db: Database) -> dict[str, list[tuple[object, ...]]]:
    for name, table in (
        ("spaced_words", "page_fts"),
        ("unspaced_words", "page_fts_unspaced"),
        ("chunk_words", "chunk_fts"),
    ):
        db.connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name} USING fts5vocab (main, {table}, instance)"
        )
    return {name: db.rows(sql) for name, sql in DERIVED.items()}


def fill(db: Database) -> None:
    def work(tx: apsw.Connection) -> None:
        for slug, frontmatter, truth, timeline in (
            (
                "a",
                {"title": "Réseau", "tags": ["Zeta", "b"]},
                "Engines weave.",
                "- **2020-01-01** | s — One.\n",
            ),
            (
                "b",
                {"tags": "x y"},
                "東京の図書館",
                "- **2020-01-01** — 図。\n  more\n- **2020-01-01** — 図。\n",
            ),
            ("c", {}, "Nothing special.", ""),
            ("d", {"tags": ["hidden"]}, "隠", "- **2020-01-01** — Hidden."),
        ):
            pages.save(
                tx, build(slug, dict(frontmatter), truth, timeline), uuid=slug, now=NOW, expected_version=None
            )
        tx.execute("UPDATE pages SET quarantined_at = ? WHERE slug = 'd'", (NOW,))

    db.write(work)


def test_derived_rows_burn_and_come_back_as_they_were(db: Database) -> None:
    fill(db)
    before = everything(db)
    assert all(before.values())

    def burn(tx: apsw.Connection) -> None:
        tx.execute("DELETE FROM tags")
        tx.execute("DELETE FROM timeline_entries")
        for table in ("page_fts", "page_fts_unspaced", "chunk_fts"):
            tx.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
        tx.execute("DELETE FROM chunks")

    db.write(burn)
    assert not any(everything(db).values())
    db.write(rebuild)
    assert everything(db) == before


def test_rebuilding_what_is_right_changes_nothing(db: Database) -> None:
    fill(db)
    before, rows = everything(db), db.rows("SELECT * FROM pages")
    db.write(rebuild)
    assert everything(db) == before
    assert db.rows("SELECT * FROM pages") == rows


def test_wrong_rows_go(db: Database) -> None:
    fill(db)
    before = everything(db)
    db.write(lambda tx: tx.execute("INSERT INTO tags (page_id, tag) VALUES (1, 'wrong')"))
    db.write(lambda tx: tx.execute("INSERT INTO page_fts (rowid, title) VALUES (77, 'wrong')"))
    assert everything(db) != before
    db.write(rebuild)
    assert everything(db) == before
