"""Page types: their names, and the folders that stand for them."""

from typing import Any

import pytest

from quaid.errors import InvalidType
from quaid.model import page as page_model


def test_known_types_include_meeting_paper_and_note_and_each_has_a_wing() -> None:
    assert {"meeting", "paper", "note"} <= set(page_model.PAGE_TYPES)
    assert page_model.PAGE_TYPES["action_item"] == "actions"
    assert all(page_model.PAGE_TYPES.values())


@pytest.mark.parametrize("written", ["action_item", "Action Item", "ACTION-ITEM", " action  item "])
def test_a_type_may_be_written_in_several_ways(written: str) -> None:
    assert page_model.check_type(written) == "action_item"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("spaceship", "spaceship"),
        ("Case Study", "case_study"),
        ("会议", "会议"),
        ("Re\u0301union", "r\u00e9union"),
    ],
)
def test_unknown_type_is_kept(written: str, stored: str) -> None:
    assert page_model.check_type(written) == stored
    assert page_model.build_page("people/a", {"type": written}, "x", "").type == stored
    assert page_model.build_page("a", {"type": written}, "x", "").wing


@pytest.mark.parametrize("value", ["", "  ", "x" * 51, 5, ["a"], "a\x00b", None])
def test_value_that_cannot_be_a_type_is_refused(value: Any) -> None:
    with pytest.raises(InvalidType, match="journal"):
        page_model.check_type(value)


def test_note_on_an_unknown_type_names_a_similar_known_one() -> None:
    assert page_model.unknown_type_note("persno") == (
        "type 'persno' is not one of the known types (did you mean person?); kept as it is"
    )
    assert "did you mean" not in page_model.unknown_type_note("zzzz")
    assert page_model.unknown_type_note("Action Item") == page_model.unknown_type_note(None) == ""


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("people/alice", "person"),
        ("person/alice", "person"),
        ("companies/river", "company"),
        ("yc/w24", "yc"),
        ("meetings/2024", "meeting"),
        ("programs/x", "source"),
        ("actions/call", "action_item"),
        ("action-items/call", "action_item"),
        ("action_items/call", "action_item"),
        ("1-projects/x", "project"),
        ("01_areas/x", "area"),
        ("3-resources/x", "resource"),
        ("4-archive/projects/x", "archive"),
        ("archives/x", "archive"),
        ("daily/2026-04-25", "journal"),
        ("journals/2026-04-25", "journal"),
        ("ideas/x", "project"),
        ("papers/x", "paper"),
        ("notes/x", "note"),
        ("notes/people/alice", "note"),
        ("work/people/alice", "concept"),
        ("work/misc/alice", "concept"),
        ("people", "concept"),
        ("x/people", "concept"),
    ],
)
def test_top_folder_gives_the_type(slug: str, expected: str) -> None:
    assert page_model.type_from_folders(slug) == expected


def test_every_type_and_every_wing_is_a_telling_folder() -> None:
    for name, wing in page_model.PAGE_TYPES.items():
        assert page_model.type_from_folders(f"{name}/x") == page_model.type_from_folders(f"{wing}/x") == name


@pytest.mark.parametrize(
    ("folder", "bare"), [("1-projects", "projects"), ("2024-03", "2024-03"), ("2024", "2024")]
)
def test_only_a_number_that_orders_a_name_is_stripped(folder: str, bare: str) -> None:
    assert page_model.strip_order_number(folder) == bare


@pytest.mark.parametrize(
    ("slug", "kind", "front", "wrong"),
    [
        ("journal/a", "journal", {"date": "2026-04-25"}, {}),
        ("journal/a", "journal", {"date": "2026-04-25T10:00:00Z"}, {}),
        ("journal/a", "journal", {"date": "2026-02-30"}, {"date": "2026-02-30"}),
        ("journal/a", "journal", {"date": 20260425}, {"date": 20260425}),
        ("journal/a", "journal", {}, {}),
        ("journal/a", "journal", {"type": "Journal"}, {"date": None}),
        ("journal/2026-04-25", "journal", {"type": "journal"}, {}),
        ("journal/2026-04-25", "journal", {"type": "journal", "date": "yesterday"}, {"date": "yesterday"}),
        ("actions/a", "action_item", {"due": "soon", "date": "x"}, {"due": "soon"}),
        ("actions/a", "action_item", {"due": ""}, {}),
        (
            "decisions/a",
            "decision",
            {"made_at": "x", "revisit_at": ["2026-01-01"]},
            {"made_at": "x", "revisit_at": ["2026-01-01"]},
        ),
        ("people/a", "person", {"date": "x", "due": "y"}, {}),
    ],
)
def test_days_are_expected_where_a_type_has_them(
    slug: str, kind: str, front: dict[str, Any], wrong: dict[str, Any]
) -> None:
    assert page_model.invalid_dates(slug, kind, front) == wrong
