"""Each check finds what is broken on purpose, and only that."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from quaid.model.page import build_page
from quaid.storage import checks, page_edits, vectors
from quaid.storage.sqlite.connection import Database, Transaction

NOW = "2026-04-25T12:00:00Z"


@pytest.fixture
def full(db: Database) -> Database:
    """A memory with a little of everything, and nothing wrong."""

    def work(tx: Transaction) -> None:
        for slug, truth in (("a", "engine"), ("b", "東京の図書館"), ("c", "")):
            page = build_page(slug, {"tags": ["t", slug]}, truth, "- **2020-01-01** | s — One.\n")
            page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=0)
        tx.execute("UPDATE pages SET quarantined_at = ? WHERE slug = 'c'", (NOW,))

    db.write(work)
    return db


def link(tx: Transaction, since: str | None, until: str | None, **other: Any) -> None:
    tx.execute(
        "INSERT INTO links (from_page_id, to_page_id, relationship, valid_from, valid_until, created_at)"
        " VALUES (?, ?, ?, ?, ?, '')",
        (other.get("start", 1), other.get("end", 2), other.get("relationship", "knows"), since, until),
    )


def claim(tx: Transaction, value: str, until: str | None = None, supersedes: int | None = None) -> None:
    tx.execute(
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, valid_until, supersedes_id,"
        " created_at)"
        " VALUES (1, 'ada', 'ada', 'lives_in', ?, ?, ?, '')",
        (value, until, supersedes),
    )


def without_rules(db: Database, work: Callable[[Transaction], object]) -> None:
    """Do what the tables forbid, as damage or another program would."""
    db.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    db.connection.pragma("ignore_check_constraints", 1)
    db.write(work)
    db.connection.pragma("ignore_check_constraints", 0)
    db.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)


def found(db: Database, *which: str) -> list[tuple[str, str]]:
    return [(violation.where, violation.problem) for violation in checks.validate(db, which)]


def test_a_good_memory_passes_every_check(full: Database) -> None:
    assert checks.validate(full) == []


def test_the_checks_are_those_that_upkeep_names() -> None:
    assert tuple(checks.CHECKS) == checks.CHECK_NAMES


# Links


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        (("2020-01-01", "2020-06-01"), ("2020-06-01", None), False),
        (("2020-01-01", "2020-06-02"), ("2020-06-01", None), True),
        (("2020-01-01", None), ("2021-01-01", None), True),
        (("2021-01-01", None), (None, "2020-01-01"), False),
        ((None, "2019-01-01"), (None, "2020-01-01"), False),
        ((None, None), (None, None), True),
        ((None, None), ("2020-01-01", "2020-06-01"), False),
        ((None, None), ("2020-01-01", None), True),
        ((None, "2020-03-01"), ("2020-01-01", "2020-06-01"), True),
        (("2020-01-01", "2020-01-01"), ("2020-01-01", "2020-01-01"), False),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_links_overlap_only_where_it_is_certain(
    full: Database,
    first: tuple[str | None, str | None],
    second: tuple[str | None, str | None],
    overlap: bool,
    turned: bool,
) -> None:
    for span in (second, first) if turned else (first, second):
        full.write(lambda tx, span=span: link(tx, *span))  # type: ignore[misc]
    expected = [("link 2", "its time overlaps with link 1 of the same pages and relationship")]
    assert found(full, "links") == (expected if overlap else [])


def test_links_of_other_pages_or_relationships_never_overlap(full: Database) -> None:
    full.write(lambda tx: link(tx, None, None))
    full.write(lambda tx: link(tx, None, None, relationship="admires"))
    full.write(lambda tx: link(tx, None, None, start=2, end=1))
    assert found(full, "links") == []


def test_a_link_that_runs_backwards_is_found(full: Database) -> None:
    without_rules(full, lambda tx: link(tx, "2020-01-02", "2020-01-01"))
    assert found(full, "links") == [("link 1", "it ends on 2020-01-01, before it begins on 2020-01-02")]


def test_a_link_to_nowhere_is_found(full: Database) -> None:
    without_rules(full, lambda tx: link(tx, None, None, end=99))
    assert found(full, "links") == [("link 1", "the page that it leads to is not there")]
    assert found(full, "integrity") == [("links 1", "it points to a row of pages that is not there")]


# Assertions


def test_a_fact_that_is_there_twice_is_found(full: Database) -> None:
    full.write(lambda tx: claim(tx, "London"))
    full.write(lambda tx: claim(tx, "London"))
    full.write(lambda tx: claim(tx, "London", "2020-01-01"))
    assert found(full, "assertions") == [("assertion 1", "ada lives_in London is there 2 times")]


def test_a_good_chain_of_supersession_passes(full: Database) -> None:
    full.write(lambda tx: claim(tx, "Kirkby", "1830-01-01"))
    full.write(lambda tx: claim(tx, "London", "1840-01-01", 1))
    full.write(lambda tx: claim(tx, "Ockham", None, 2))
    assert found(full, "assertions") == []


def test_a_superseded_fact_must_have_ended(full: Database) -> None:
    full.write(lambda tx: claim(tx, "Kirkby"))
    full.write(lambda tx: claim(tx, "London", None, 1))
    assert found(full, "assertions") == [
        ("assertion 1", "assertion 2 supersedes it, but it has no valid_until")
    ]


def test_a_circle_of_supersession_is_found_once(full: Database) -> None:
    for value in ("a", "b", "c"):
        full.write(lambda tx, value=value: claim(tx, value, "2020-01-01"))  # type: ignore[misc]
    full.write(lambda tx: tx.execute("UPDATE assertions SET supersedes_id = id % 3 + 1"))
    full.write(lambda tx: claim(tx, "d", None, 2))
    assert found(full, "assertions") == [("assertion 1", "it supersedes itself, over others or at once")]


def test_a_superseded_fact_that_is_gone_is_found(full: Database) -> None:
    without_rules(full, lambda tx: claim(tx, "London", None, 9))
    assert found(full, "assertions") == [("assertion 1", "it supersedes assertion 9, which is not there")]


@pytest.mark.parametrize(
    ("older", "circles"),
    [({}, []), ({1: 1}, [1]), ({2: 1}, []), ({2: 3, 3: 2, 4: 3, 5: 5}, [2, 5]), ({3: 2, 2: 1}, [])],
)
def test_circles_are_named_by_their_smallest_member(older: dict[int, int], circles: list[int]) -> None:
    assert checks.find_cycles(older) == circles


# Embeddings


def model(tx: Transaction, name: str, active: int) -> None:
    vectors.register_model(tx, name, 4, "")
    tx.execute("UPDATE embedding_models SET active = ? WHERE name = ?", (active, name))


def four(number: int) -> bytes:
    return struct.pack("<4f", 1, number, number % 7, -number)


def test_one_model_must_be_active_if_there_is_any(full: Database) -> None:
    full.write(lambda tx: model(tx, "m", 0))
    assert found(full, "embeddings") == [("embedding_models", "0 models are active; it must be exactly one")]
    full.write(lambda tx: model(tx, "n", 1))
    assert found(full, "embeddings") == []


def test_vectors_of_an_unknown_model_are_found(full: Database) -> None:
    full.write(lambda tx: model(tx, "m", 1))
    full.write(lambda tx: vectors.keep_chunk_vectors(tx, "m", [(b"1", four(1))], ""))
    without_rules(full, lambda tx: tx.execute("UPDATE page_embeddings_vec_4 SET model = 'ghost'"))
    assert found(full, "embeddings") == [("model ghost", "1 vectors are of it, but it is not registered")]


def test_vectors_of_another_width_are_found(full: Database) -> None:
    full.write(lambda tx: model(tx, "m", 1))
    full.write(lambda tx: vectors.keep_chunk_vectors(tx, "m", [(b"1", four(1)), (b"2", four(2))], ""))
    assert found(full, "embeddings") == []
    full.write(lambda tx: tx.execute("UPDATE page_embeddings_vec_4 SET vector = x'00' WHERE id = 2"))
    assert found(full, "embeddings") == [("model m", "1 vectors are not of 4 dimensions")]


def test_a_model_without_its_table_is_found(full: Database) -> None:
    full.write(lambda tx: model(tx, "m", 1))
    full.write(lambda tx: tx.execute("DROP VIEW page_embeddings; DROP TABLE page_embeddings_vec_4"))
    assert found(full, "embeddings") == [
        ("model m", "its table page_embeddings_vec_4 is not there, or not of 4 dimensions")
    ]


def test_codes_that_do_not_fit_the_vectors_are_found(full: Database) -> None:
    full.write(lambda tx: model(tx, "m", 1))
    many = [(str(number).encode(), four(number)) for number in range(300)]
    full.write(lambda tx: vectors.keep_chunk_vectors(tx, "m", many, ""))
    assert found(full, "embeddings") == []
    full.write(lambda tx: tx.execute("UPDATE vector_codes SET codes = x'00'"))
    assert found(full, "embeddings") == [("model m", "a block of its codes has not the length of its ids")]
    full.write(lambda tx: vectors.encode_chunk_vectors(tx, "m"))
    full.write(lambda tx: tx.execute("DELETE FROM page_embeddings_vec_4 WHERE id = 7"))
    assert found(full, "embeddings") == [("model m", "its codes are not those of its vectors")]


# Words

WRONG = ("page_fts", "its words are not those of the pages")


@pytest.mark.parametrize(
    "damage",
    [
        "INSERT INTO page_fts (page_fts, rowid, title, slug, compiled_truth, timeline)"
        " SELECT 'delete', id, title, slug, compiled_truth, timeline FROM pages WHERE id = 1",
        "INSERT INTO page_fts (rowid, title) VALUES (99, 'extra')",
        "INSERT INTO page_fts (rowid, title) VALUES (3, 'quarantined')",
        "DELETE FROM page_fts_docsize WHERE id = 1",
    ],
)
def test_a_missing_or_extra_row_of_words_is_found(full: Database, damage: str) -> None:
    full.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    full.write(lambda tx: tx.execute(damage))
    assert WRONG in found(full, "fts")


def test_old_words_are_found(full: Database) -> None:
    def work(tx: Transaction) -> None:
        (trigger,) = tx.execute("SELECT sql FROM sqlite_schema WHERE name = 'pages_au'").fetchall()[0]
        tx.execute("DROP TRIGGER pages_au")
        tx.execute("UPDATE pages SET compiled_truth = 'motor' WHERE id = 1")
        tx.execute(str(trigger))

    full.write(work)
    assert found(full, "fts") == [WRONG]


@pytest.mark.parametrize(
    ("damage", "where", "problem"),
    [
        ("DELETE FROM page_fts_unspaced", "page 2", "its words are missing in page_fts_unspaced"),
        (
            "INSERT INTO page_fts_unspaced (rowid, title) VALUES (1, '東')",
            "page 1",
            "page_fts_unspaced holds words that it has not",
        ),
        (
            "INSERT OR REPLACE INTO page_fts_unspaced (rowid, title, body) VALUES (2, '', '東')",
            "page 2",
            "its words in page_fts_unspaced are not those of its text",
        ),
    ],
)
def test_words_without_spaces_are_compared_with_the_pages(
    full: Database, damage: str, where: str, problem: str
) -> None:
    full.write(lambda tx: tx.execute(damage))
    assert found(full, "fts") == [(where, problem)]


# Integrity


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        ("UPDATE config SET value = '4' WHERE key = 'version'", "config"),
        ("UPDATE quaid_config SET value = '8'", "quaid_config"),
        ("DELETE FROM quaid_config", "quaid_config"),
        ("PRAGMA user_version = 5", "user_version"),
        ("PRAGMA application_id = 1", "application_id"),
        ("DELETE FROM tags WHERE page_id = 1 AND tag = 't'", "page a"),
        ("INSERT INTO tags (page_id, tag) VALUES (2, 'extra')", "page b"),
        ("UPDATE timeline_entries SET summary = 'Two.' WHERE page_id = 1", "page a"),
        ("DELETE FROM timeline_entries WHERE page_id = 3", "page c"),
        ("UPDATE pages SET frontmatter = '{' WHERE id = 1", "page a"),
    ],
)
def test_inconsistent_rows_are_found(full: Database, damage: str, where: str) -> None:
    full.write(lambda tx: tx.execute(damage))
    assert [violation[0] for violation in found(full, "integrity")] == [where]


@pytest.mark.parametrize("byte", [b"\0", b"\xff"])
def test_a_damaged_file_is_a_finding_and_not_a_crash(full: Database, byte: bytes) -> None:
    full.write(lambda tx: tx.execute("UPDATE pages SET compiled_truth = ?", ("x" * 50_000,)))
    full.close()
    file = Path(full.path)
    content = bytearray(file.read_bytes())
    at = content.index(b"x" * 4000) // 4096 * 4096
    content[at : at + 8192] = byte * 8192
    file.write_bytes(content)
    with Database.open(full.path, NOW) as again:
        violations = checks.validate(again)
    assert {violation.check for violation in violations} >= {"fts", "integrity"}


def test_links_that_are_not_those_of_the_text_are_found(full: Database) -> None:
    page = build_page("x/linking", {}, "To [[people/ada]].", "")
    full.write(lambda tx: page_edits.save(tx, page, uuid="linking", now="2026-01-01", expected_version=0))
    assert found(full, "links") == []
    full.write(lambda tx: tx.execute("UPDATE links SET context = 'lies' WHERE target IS NOT NULL"))
    assert found(full, "links") == [("page x/linking", "its links are not those of its text")]


def test_a_link_that_leads_elsewhere_than_its_text_says_is_found(full: Database) -> None:
    def work(tx: Transaction) -> None:
        for slug, text in (("x/linking", "To [[x/target]]."), ("x/target", ""), ("x/other", "")):
            page = build_page(slug, {}, text, "")
            page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=0)
        tx.execute("UPDATE links SET to_page_id = (SELECT id FROM pages WHERE slug = 'x/other')")

    full.write(work)
    problems = [problem for _, problem in found(full, "links")]
    assert problems == ["it does not lead to the page that its text names"]
