"""What other services answered about a page."""

from typing import Any

import pytest

from quaid.model.page import build_page
from quaid.storage import page_edits, pages
from quaid.storage.pages import RawData
from quaid.storage.sqlite.connection import Database

T1, T2 = "2026-04-25T12:00:01Z", "2026-04-25T12:00:02Z"


@pytest.fixture
def page_id(db: Database) -> int:
    page = build_page("people/ada", {}, "x", "")
    return db.write(lambda tx: page_edits.save(tx, page, uuid="u", now=T1, expected_version=0)).id


def write(db: Database, page_id: int, source: str, data: Any, now: str = T1) -> None:
    db.write(lambda tx: pages.write_raw_data(tx, page_id, {source: data}, now))


@pytest.mark.parametrize("data", [{"b": 1, "a": [None, "é", 2.5]}, [], "text", 3, None, True])
def test_any_json_comes_back_as_it_was(db: Database, page_id: int, data: Any) -> None:
    write(db, page_id, "register", data)
    assert pages.read_raw_data(db, page_id) == [RawData("register", data, T1)]


def test_each_source_has_its_newest_answer(db: Database, page_id: int) -> None:
    write(db, page_id, "b", 1)
    write(db, page_id, "a", 1)
    write(db, page_id, "b", 2, T2)
    assert pages.read_raw_data(db, page_id) == [RawData("a", 1, T1), RawData("b", 2, T2)]
    assert pages.read_raw_data(db, page_id, "b") == [RawData("b", 2, T2)]
    assert pages.read_raw_data(db, page_id, "c") == []


def test_an_answer_can_be_forgotten(db: Database, page_id: int) -> None:
    write(db, page_id, "a", 1)
    db.write(lambda tx: pages.write_raw_data(tx, page_id, {}, T2, ["a", "unknown"]))
    assert pages.read_raw_data(db, page_id) == []
