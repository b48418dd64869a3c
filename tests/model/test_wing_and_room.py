"""Wing and room: front matter, then slug, then headings."""

from typing import Any

import pytest

from quaid.model import page as page_model


@pytest.mark.parametrize(
    ("slug", "page_type", "frontmatter", "expected"),
    [
        ("people/alice", "person", {}, "people"),
        ("1-projects/x", "project", {}, "projects"),
        ("2024-03/x", "concept", {}, "2024-03"),
        ("alice", "person", {}, "people"),
        ("people/alice", "person", {"wing": "Inner Circle"}, "inner-circle"),
        ("people/alice", "person", {"wing": 2024}, "2024"),
        ("people/alice", "person", {"wing": "  "}, "people"),
        ("people/alice", "person", {"wing": ["a"]}, "people"),
        ("project/x", "project", {}, "projects"),
        ("02_area/x", "area", {}, "areas"),
        ("action-item/x", "action_item", {}, "actions"),
    ],
)
def test_the_wing_is_named_or_is_the_first_folder_or_that_of_the_type(
    slug: str, page_type: str, frontmatter: dict[str, Any], expected: str
) -> None:
    assert page_model.page_wing(slug, page_type, frontmatter) == expected


@pytest.mark.parametrize(
    ("slug", "frontmatter", "text", "expected"),
    [
        ("people/founders/alice", {}, "## State", "founders"),
        ("projects/01-house/roof/tiles", {}, "", "house"),
        ("people/alice", {}, "# Alice\n\n## What we Know ##\n\n## Other", "what-we-know"),
        ("people/alice", {}, "# Alice", ""),
        ("people/a/b", {"room": "Kitchen Sink"}, "", "kitchen-sink"),
    ],
)
def test_room_is_from_front_matter_second_folder_or_first_section(
    slug: str, frontmatter: dict[str, Any], text: str, expected: str
) -> None:
    assert page_model.page_room(slug, frontmatter, text) == expected
