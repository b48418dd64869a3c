"""What an ingest may be given for a page, and how what is wrong is told."""

from typing import Any

import pytest

from quaid.errors import InvalidArgument, InvalidDate, InvalidSlug, QuaidError
from quaid.model import page as page_model
from quaid.model.page import EntryInput, LinkInput


def test_a_whole_change_is_read() -> None:
    (change,) = page_model.parse_changes(
        [
            {
                "slug": "people/bo",
                "expected_version": 3.0,
                "compiled_truth": "# Bo",
                "links": [
                    {"target": "companies/river", "type": "Works at", "valid_from": "2024-01-01"},
                    "people/al",
                ],
                "timeline_entries": [{"date": "2026-04-25", "summary": " Moved ", "source": None}],
                "assertions": [{"predicate": "lives_in", "object": "Oslo"}],
                "tags": ["#Founder"],
                "frontmatter": None,
            }
        ]
    )
    assert (change.address, change.expected_version, change.tags) == ("people/bo", 3, ("founder",))
    assert change.links[0] == LinkInput(
        "pages[1].links[1]", "companies/river", "works_at", "", "2024-01-01", None
    )
    assert (change.links[1].to, change.links[1].relationship) == ("people/al", "related")
    assert change.entries == (EntryInput("2026-04-25", "Moved", "", ""),)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "pages[1].slug"),
        ({"slug": 5}, "pages[1].slug"),
        ({"slug": "a", "titel": "x"}, "pages[1].titel"),
        ({"slug": "a", "content": "x", "compiled_truth": "y"}, "pages[1].compiled_truth"),
        ({"slug": "a", "content": " "}, "pages[1].content"),
        ({"slug": "a", "content": ["x"]}, "pages[1].content"),
        ({"slug": "a", "frontmatter": "x"}, "pages[1].frontmatter"),
        ({"slug": "a", "expected_version": "1"}, "pages[1].expected_version"),
        ({"slug": "a", "expected_version": True}, "pages[1].expected_version"),
        ({"slug": "a", "expected_version": -1}, "pages[1].expected_version"),
        ({"slug": "a", "links": {}}, "pages[1].links"),
        ({"slug": "a", "links": [5]}, "pages[1].links[1]"),
        ({"slug": "a", "links": [{}]}, "pages[1].links[1].to"),
        ({"slug": "a", "links": [{"to": "b", "relationship": "--"}]}, "pages[1].links[1].relationship"),
        (
            {"slug": "a", "links": [{"to": "b", "valid_from": "2026-02-01", "valid_until": "2026-01-01"}]},
            "pages[1].links[1].valid_until",
        ),
        ({"slug": "a", "links": [{"to": "b", "since": "2026"}]}, "pages[1].links[1].since"),
        ({"slug": "a", "timeline_entries": [{"date": "2026-01-01"}]}, "pages[1].timeline_entries[1].summary"),
        (
            {"slug": "a", "timeline_entries": [{"date": "2026-01-01", "summary": "a\nb"}]},
            "pages[1].timeline_entries[1].summary",
        ),
        (
            {"slug": "a", "timeline_entries": [{"date": "2026-01-01", "summary": "a", "source": "b — c"}]},
            "pages[1].timeline_entries[1].source",
        ),
        ({"slug": "a", "tags": "x"}, "pages[1].tags"),
        ({"slug": "a", "tags": [1]}, "pages[1].tags[1]"),
        ({"slug": "a", "assertions": ["x"]}, "pages[1].assertions[1]"),
    ],
)
def test_errors_name_the_position_of_the_change(values: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        page_model.parse_changes([values])
    assert caught.value.facts["name"] == name


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"slug": "Bo"}, InvalidSlug),
        ({"slug": "::bo"}, InvalidSlug),
        ({"slug": "a", "timeline_entries": [{"date": "soon", "summary": "x"}]}, InvalidDate),
        ({"slug": "a", "links": [{"to": "b", "valid_from": "2026"}]}, InvalidDate),
        ({"slug": "a", "tags": ["a,b"]}, InvalidArgument),
    ],
)
def test_slugs_and_dates_keep_their_own_errors(values: dict[str, Any], error: type[QuaidError]) -> None:
    with pytest.raises(error):
        page_model.parse_changes([values])


def test_a_page_comes_once() -> None:
    with pytest.raises(InvalidArgument, match="twice"):
        page_model.parse_changes([{"slug": "a"}, {"slug": "default::a"}])
    with pytest.raises(InvalidArgument, match="501 pages"):
        page_model.parse_changes([{"slug": f"a{number}"} for number in range(501)])
