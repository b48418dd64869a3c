"""Of which day a page is."""

import pytest

from quaid.model.page import build_page
from quaid.storage import page_edits
from quaid.storage.chunks import OWN_DAY, PAGE_DAY
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"


@pytest.mark.parametrize(
    ("slug", "front", "own", "day"),
    [
        ("notes/a", {"date": "2024-05-06"}, "2024-05-06", "2024-05-06"),
        ("notes/a", {"date": "2024-05-06T10:00:00Z"}, "2024-05-06", "2024-05-06"),
        ("notes/a", {"date": "[[2024-05-06]]"}, "2024-05-06", "2024-05-06"),
        ("notes/a", {"date": "2024-05"}, "2024-05", "2024-05"),
        ("daily/2026-04-20", {}, "2026-04-20", "2026-04-20"),
        ("daily/2026-04-20", {"date": "2020-01-02"}, "2020-01-02", "2020-01-02"),
        ("meetings/2024-04-14-pier-review", {}, "2024-04-14", "2024-04-14"),
        ("standup-2024-04-14", {"created": "2025-01-01"}, "2024-04-14", "2024-04-14"),
        ("2024-04/plans", {}, "2024-04", "2024-04"),
        ("notes/a", {"created": "2023-01-01", "updated": "2024-01-01"}, None, "2024-01-01"),
        ("notes/a", {"created": "2023-01-01"}, None, "2023-01-01"),
        ("notes/a", {}, None, "2026-04-25"),
        ("notes/a", {"date": 7, "created": ["x"], "updated": None}, None, "2026-04-25"),
        ("notes/a", {"date": "in spring", "other": {"date": "2020-01-01"}}, None, "2026-04-25"),
        ("rfc/1234-56", {}, None, "2026-04-25"),
        ("phone/12024-04-14", {}, None, "2026-04-25"),
        ("iso/2024-04-145", {}, "2024-04", "2024-04"),
        ("rfc/1234-56-2024-04-14", {}, "2024-04-14", "2024-04-14"),
    ],
)
def test_a_page_is_of_the_day_that_it_says_or_was_last_changed(
    db: Database, slug: str, front: dict[str, object], own: str | None, day: str
) -> None:
    page = build_page(slug, {"title": "t", **front}, "text", "")
    db.write(lambda tx: page_edits.save(tx, page, uuid="u", now=NOW, expected_version=None))
    assert db.rows(f"SELECT {OWN_DAY}, {PAGE_DAY} FROM pages AS p") == [(own, day)]
