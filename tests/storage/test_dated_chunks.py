"""What happened when."""

from pathlib import Path

import pytest

from quaid.model.page import build_page
from quaid.storage import chunks, page_edits
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

NOW = "2026-04-25T12:00:00Z"


@pytest.fixture
def db(tmp_path: Path) -> Database:
    return Database.create(str(tmp_path / "memory.db"), NOW)


def put(db: Database, slug: str, truth: str = "", timeline: str = "", **front: object) -> int:
    page = build_page(slug, front, truth, timeline)
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def test_entries_of_a_time_are_found_newest_first(db: Database) -> None:
    put(
        db,
        "people/a",
        "Text.",
        "- **2024-03-05** | call — One.\n- **2024-03-09** | call — Two.",
        type="person",
    )
    put(db, "people/b", "Text.", "- **2024-04-01** | call — Three.", type="person")
    hits = chunks.chunks_in_period(db, "2024-03-01", "2024-03-31", SearchFilters(), 10)
    assert list(chunks.chunk_dates(db, chunks.neighbours(db, hits, 0)).values()) == [
        "2024-03-09",
        "2024-03-05",
    ]
    assert hits == sorted(hits, reverse=True)
    assert chunks.chunks_in_period(db, "2024-03-01", "2024-03-31", SearchFilters(type="concept"), 10) == []
    assert len(chunks.chunks_in_period(db, "2024-01-01", "2024-12-31", SearchFilters(), 2)) == 2


def test_pages_that_are_called_by_a_day_are_found(db: Database) -> None:
    put(db, "journal/2024-03-07", "Rain.")
    put(db, "journal/2024-04-07", "Sun.")
    assert len(chunks.chunks_in_period(db, "2024-03-01", "2024-03-31", SearchFilters(), 10)) == 1
    assert len(chunks.chunks_in_period(db, "2024-03-07", "2024-03-07", SearchFilters(), 10)) == 1


def test_pages_of_a_month_and_pages_that_say_their_day_are_found_too(db: Database) -> None:
    put(db, "journal/2024-03", "All of March.")
    put(db, "meetings/kickoff", "Began.", date="2024-03-05")
    assert len(chunks.chunks_in_period(db, "2024-03-01", "2024-03-31", SearchFilters(), 10)) == 2
    assert len(chunks.chunks_in_period(db, "2024-04-01", "2024-04-30", SearchFilters(), 10)) == 0


def test_the_date_of_a_page_is_in_its_front_matter_or_its_slug(db: Database) -> None:
    inputs = put(db, "notes/a", date="2024-05-06T10:00:00Z")
    named = put(db, "meetings/2024-04-14-pier-review")
    month = put(db, "journal/2024-02")
    none = put(db, "notes/b", date=7)
    places = {number: (page_id, 0) for number, page_id in enumerate((inputs, named, month, none))}
    assert chunks.chunk_dates(db, places) == {0: "2024-05-06", 1: "2024-04-14", 2: "2024-02"}
