"""Rules that the tables themselves hold."""

import re
from pathlib import Path

import apsw
import pytest

from quaid.model.page import build_page
from quaid.storage import checks, migrations, page_edits
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"


@pytest.fixture
def two_pages(db: Database) -> Database:
    for slug in ("a", "b"):
        page = build_page(slug, {}, f"engine {slug}", "")
        db.write(
            lambda tx, page=page: page_edits.save(tx, page, uuid=page.slug, now=NOW, expected_version=0)  # type: ignore[misc]
        )
    return db


def refused(db: Database, sql: str, *params: object) -> bool:
    try:
        db.write(lambda tx: tx.execute(sql, params))
    except apsw.ConstraintError:
        return True
    return False


def test_the_schema_file_makes_exactly_the_tables_of_a_memory(db: Database) -> None:
    named = set(re.findall(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", checks.read_schema(), re.MULTILINE))
    there = {
        name
        for (name,) in db.rows(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow'"
        )
        if not name.startswith("sqlite_")
    }
    assert there == named | {"searchable_pages", "page_embeddings"}


def test_every_plain_table_is_strict(db: Database) -> None:
    loose = db.rows(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict"
        " AND name NOT LIKE 'sqlite_%'"
    )
    assert loose == []


def test_nothing_in_the_schema_reads_the_clock() -> None:
    assert not re.search(r"strftime|CURRENT_|datetime\(|'now'", checks.read_schema())


def test_the_schema_needs_no_double_quoted_text(path: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.execute(checks.read_schema())
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] > 20  # type: ignore[index]
    connection.close()


def test_a_link_cannot_end_before_it_begins(two_pages: Database) -> None:
    add = (
        "INSERT INTO links (from_page_id, to_page_id, valid_from, valid_until, created_at)"
        " VALUES (1, 2, ?, ?, '')"
    )
    assert refused(two_pages, add, "2020-01-02", "2020-01-01")
    assert not refused(two_pages, add, "2020-01-01", "2020-01-01")
    assert not refused(two_pages, add, None, "2020-01-01")


def test_a_link_needs_both_pages(two_pages: Database) -> None:
    assert refused(two_pages, "INSERT INTO links (from_page_id, to_page_id, created_at) VALUES (1, 9, '')")


def test_one_model_at_most_is_active(db: Database) -> None:
    add = (
        "INSERT INTO embedding_models (name, dimensions, vec_table, active, created_at)"
        " VALUES (?, 384, 'page_embeddings_vec_384', ?, '')"
    )
    assert not refused(db, add, "a", 1)
    assert not refused(db, add, "b", 0)
    assert refused(db, add, "c", 1)


@pytest.mark.parametrize(
    ("text", "sensitivity", "by", "at", "allowed"),
    [
        (None, "internal", None, None, True),
        ("words", "internal", None, None, False),
        ("words", "internal", "ada", NOW, True),
        (None, "external", None, None, False),
        (None, "redacted", "ada", None, False),
        ("words", "external", "ada", NOW, True),
        (None, "public", "ada", NOW, False),
    ],
)
def test_a_question_leaves_no_words_without_an_approval(
    db: Database, text: str | None, sensitivity: str, by: str | None, at: str | None, allowed: bool
) -> None:
    add = (
        "INSERT INTO knowledge_gaps (query_hash, query_text, sensitivity, approved_by, approved_at,"
        " detected_at, last_seen_at) VALUES ('h', ?, ?, ?, ?, '', '')"
    )
    assert refused(db, add, text, sensitivity, by, at) is not allowed


def test_an_assertion_has_a_known_author(two_pages: Database) -> None:
    add = (
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, asserted_by, created_at)"
        " VALUES (1, 's', 's', 'p', 'o', ?, '')"
    )
    assert refused(two_pages, add, "rumour")
    assert not refused(two_pages, add, "manual")


def test_the_index_is_left_alone_when_no_word_changes(two_pages: Database) -> None:
    before = two_pages.rows("SELECT * FROM page_fts_data")
    two_pages.write(
        lambda tx: tx.execute("UPDATE pages SET title = title, compiled_truth = compiled_truth, wing = 'new'")
    )
    assert two_pages.rows("SELECT * FROM page_fts_data") == before


def test_quarantine_takes_words_out_and_puts_them_back(two_pages: Database) -> None:
    search = "SELECT rowid FROM page_fts WHERE page_fts MATCH 'engine' ORDER BY rowid"
    two_pages.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = ? WHERE slug = 'a'", (NOW,)))
    assert two_pages.rows(search) == [(2,)]
    two_pages.write(
        lambda tx: tx.execute("UPDATE pages SET title = 'engine', quarantined_at = 'x' WHERE slug = 'a'")
    )
    assert two_pages.rows(search) == [(2,)]
    two_pages.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = NULL"))
    assert two_pages.rows(search) == [(1,), (2,)]
    two_pages.write(
        lambda tx: tx.execute("INSERT INTO page_fts (page_fts, rank) VALUES ('integrity-check', 1)")
    )


def test_the_schema_file_is_in_the_package() -> None:
    assert Path(migrations.__file__).with_name("schema.sql").is_file()
