"""What pages are called."""

from pathlib import Path

import pytest

from quaid.model import slug as slugs
from quaid.model.page import build_page
from quaid.storage import chunks, page_edits, pages
from quaid.storage.pages import Namesakes
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

NOW = "2026-04-25T12:00:00Z"


@pytest.fixture
def db(tmp_path: Path) -> Database:
    return Database.create(str(tmp_path / "memory.db"), NOW)


def put(db: Database, slug: str, truth: str = "Text.", **front: object) -> int:
    page = build_page(slug, front, truth, "")
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mira Dahlquist", "mira-dahlquist"),
        ("MIRA  DAHLQUIST?", "mira dahlquist"),
        ("Malmö", "malmo"),
        ("Malmo\u0308", "Malmö"),
        ("people/mira_d", "people mira d"),
        ("ＲＩＶＥＲ", "river"),
    ],
)
def test_spellings_of_a_name_fold_to_one(one: str, other: str) -> None:
    assert slugs.fold_name(one) == slugs.fold_name(other)


def test_marks_of_other_scripts_are_letters() -> None:
    assert slugs.fold_name("がき") != slugs.fold_name("かき")
    assert slugs.fold_name("й") != slugs.fold_name("и")


def test_a_page_is_found_by_title_slug_alias_and_last_name(db: Database) -> None:
    page_id = put(db, "people/mira-d", title="Mira Dahlquist", aliases=["Captain", 7, None])
    for name, kind in (
        ("mira dahlquist", "title"),
        ("people mira d", "slug"),
        ("captain", "alias"),
        ("mira d", "name"),
    ):
        assert pages.pages_called(db, [name]) == [pages.PageName(name, page_id, kind)]


def test_a_single_alias_may_be_text(db: Database) -> None:
    put(db, "people/mira", alias="The Captain")
    assert [item.kind for item in pages.pages_called(db, ["the captain"])] == ["alias"]


def test_the_most_certain_name_comes_first(db: Database) -> None:
    put(db, "one/captain", title="Somebody")
    titled = put(db, "two/x", title="Captain")
    assert pages.pages_called(db, ["captain"])[0].page_id == titled


def test_names_follow_the_page(db: Database) -> None:
    put(db, "people/mira", title="Old")
    put(db, "people/mira", title="New")
    assert pages.pages_called(db, ["old"]) == []
    assert len(pages.pages_called(db, ["new"])) == 1
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = ?", (NOW,)))
    assert pages.pages_called(db, ["new"]) == []
    db.write(lambda tx: tx.execute("DELETE FROM pages"))
    assert db.rows("SELECT * FROM page_names") == []


def test_wings_are_known_by_their_names(db: Database) -> None:
    put(db, "river-ai/plan")
    assert pages.wings_called(db, ["river-ai", "ai", "nothing"]) == ["river-ai"]


def test_the_first_chunk_of_a_page_is_the_one_that_filters_allow(db: Database) -> None:
    page_id = put(db, "people/mira", "# A\n\nOne.\n\n## B\n\nTwo.", type="person")
    assert list(chunks.first_chunks_of_pages(db, [page_id, 99], SearchFilters())) == [page_id]
    assert chunks.first_chunks_of_pages(db, [page_id], SearchFilters(type="concept")) == {}


def test_taken_title_or_alias_is_reported_with_its_slug(db: Database) -> None:
    put(db, "people/mira", "# Mira Dahlquist\n", aliases=["MD"])
    assert Namesakes(db, "mira dahlquist").hint() == "The page of that name is people/mira (Mira Dahlquist)."
    assert Namesakes(db, "md").hint() == "The page of that name is people/mira (Mira Dahlquist)."
    assert Namesakes(db, "Mira Dahlquist", "elsewhere").hint() == ""
    assert Namesakes(db, "Nobody").hint() == ""
    put(db, "notes/mira", "# Mira Dahlquist\n")
    message = "The pages of that name are notes/mira (Mira Dahlquist) and people/mira (Mira Dahlquist)."
    assert Namesakes(db, "Mira Dahlquist").hint() == message
