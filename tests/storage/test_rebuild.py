"""Derived rows burn and come back as they were."""

import pytest

from quaid.model import chunker
from quaid.model.page import build_page
from quaid.storage import checks, page_edits
from quaid.storage.checks import rebuild_derived_rows
from quaid.storage.sqlite.connection import Database, Transaction

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
    def work(tx: Transaction) -> None:
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
            page_edits.save(
                tx,
                build_page(slug, dict(frontmatter), truth, timeline),
                uuid=slug,
                now=NOW,
                expected_version=None,
            )
        tx.execute("UPDATE pages SET quarantined_at = ? WHERE slug = 'd'", (NOW,))

    db.write(work)


def test_derived_rows_burn_and_come_back_as_they_were(db: Database) -> None:
    fill(db)
    before = everything(db)
    assert all(before.values())

    def burn(tx: Transaction) -> None:
        tx.execute("DELETE FROM tags")
        tx.execute("DELETE FROM timeline_entries")
        for table in ("page_fts", "page_fts_unspaced", "chunk_fts"):
            tx.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
        tx.execute("DELETE FROM chunks")

    db.write(burn)
    assert not any(everything(db).values())
    db.write(rebuild_derived_rows)
    assert everything(db) == before


def test_rebuilding_what_is_right_changes_nothing(db: Database) -> None:
    fill(db)
    before, rows = everything(db), db.rows("SELECT * FROM pages")
    db.write(rebuild_derived_rows)
    assert everything(db) == before
    assert db.rows("SELECT * FROM pages") == rows


def test_wrong_rows_go(db: Database) -> None:
    fill(db)
    before = everything(db)
    db.write(lambda tx: tx.execute("INSERT INTO tags (page_id, tag) VALUES (1, 'wrong')"))
    db.write(lambda tx: tx.execute("INSERT INTO page_fts (rowid, title) VALUES (77, 'wrong')"))
    assert everything(db) != before
    db.write(rebuild_derived_rows)
    assert everything(db) == before


@pytest.mark.parametrize(
    ("frontmatter", "problem"),
    [
        ("[1]", "its front matter is not a JSON object"),
        ("{tags: 'x'}", "its front matter is not JSON"),  # JSON5, which SQLite reads and Python does not
        ("{", "its front matter is not JSON"),
    ],
)
def test_a_page_that_nothing_can_be_derived_from_is_named_and_costs_no_other(
    db: Database, frontmatter: str, problem: str
) -> None:
    fill(db)
    db.write(lambda tx: tx.execute("UPDATE pages SET frontmatter = ? WHERE slug = 'a'", (frontmatter,)))
    db.write(rebuild_derived_rows)
    assert checks.run_checks(db, ("integrity",)) == [("integrity", "page a", problem)]
    assert db.rows("SELECT tag FROM tags") != []


def test_a_page_that_is_cut_by_its_length_alone_is_named(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError("zip() argument 2 is longer")

    monkeypatch.setattr(chunker, "chunk_by_structure", fails)
    monkeypatch.setattr(checks, "chunk_by_structure", fails)
    fill(db)
    named = [finding for finding in checks.run_checks(db, ("integrity",)) if finding.where == "page a"]
    assert len(named) == 1
    assert named[0].problem.startswith(
        "it is cut by its length alone: Quaid fails on its text (ValueError: zip() argument 2 is longer)"
    )
