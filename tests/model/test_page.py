"""A page: everything that follows from its parts."""

import json
from typing import Any

from hypothesis import given, strategies as st

from quaid.model import page as page_model
from quaid.model.timeline import TimelineEntry


def test_a_page_is_derived_from_its_text_and_its_slug() -> None:
    made = page_model.build_page(
        "people/alice",
        {"tags": ["Infra", "#ops"], "email": "a@x"},
        "# Alice Example\n\n> Founder of [River](../companies/river.md).\n\n## State\n\nBusy.",
        "## Timeline\n\n- **2026-04-14** | demo day — Met.\n",
    )
    assert made.type == "person"
    assert made.title == "Alice Example"
    assert made.summary == "Founder of River."
    assert (made.wing, made.room) == ("people", "state")
    assert made.tags == ("infra", "ops")
    assert made.entries == (TimelineEntry("2026-04-14", "demo day", "Met.", "", 3),)
    assert made.frontmatter == {"tags": ["Infra", "#ops"], "email": "a@x"}


def test_the_front_matter_overrides_what_would_be_inferred() -> None:
    given_by_hand = {
        "title": "T",
        "type": "Action Item",
        "summary": "S",
        "wing": "W",
        "room": "R",
        "tag": "one two",
    }
    made = page_model.build_page("people/alice", given_by_hand, "# A\n\n> B", "", fallback_title="F")
    assert made[:4] == ("people/alice", "action_item", "T", "S")
    assert (made.wing, made.room, made.tags) == ("w", "r", ("one", "two"))


def test_unknown_type_is_kept_and_stays_in_the_front_matter() -> None:
    made = page_model.build_page("people/alice", {"type": "Wizard"}, "", "")
    assert (made.type, made.wing) == ("wizard", "people")
    assert made.frontmatter == {"type": "Wizard"}
    assert page_model.build_page("people/alice", {"type": ["x"]}, "", "").type == "person"


def test_code_is_not_used_for_title_summary_or_room() -> None:
    made = page_model.build_page("x", {}, "```\n# Title\n> quote\n## Room\n```\n\nReal text.", "")
    assert (made.title, made.summary, made.room) == ("X", "Real text.", "")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(
    st.sampled_from(["title", "type", "summary", "wing", "room", "tags", "tag", "x"]), VALUES
)


@given(FIELDS, st.text(), st.text())
def test_any_parts_make_a_page_whose_own_fields_are_sound(
    frontmatter: dict[str, Any], truth: str, timeline: str
) -> None:
    made = page_model.build_page("notes/x", frontmatter, truth, timeline)
    assert page_model.type_name(made.type) == made.type
    assert made.title.strip()
    assert "\n" not in made.title + made.summary
    assert len(made.summary) <= 300
    assert made.wing
    assert (made.truth, made.timeline, made.frontmatter) == (truth, timeline, frontmatter)
    json.dumps(made.entries)


def test_tags_of_front_matter_come_first_then_those_of_the_text() -> None:
    made = page_model.build_page(
        "x", {"tags": ["b"]}, "Text #a.\n\n```\n#no\n```\n<!-- #no -->", "- 2026-01-01 — Said #c and #b"
    )
    assert made.tags == ("b", "a", "c")
