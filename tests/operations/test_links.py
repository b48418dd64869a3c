"""Links and graphs through the gate, as every surface calls them."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import (
    InvalidArgument,
    InvalidDate,
    LinkFromText,
    NotFound,
    PageNotFound,
    QuaidError,
    VersionConflict,
)
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.registry import Scope


def call(brain: Brain, tool: str, scope: Scope = "owner", **arguments: Any) -> dict[str, Any]:
    record = dispatch.call(brain, dispatch.find_tool(f"memory_{tool}"), arguments, scope)
    answer: dict[str, Any] = json_value(record)
    return answer


def ends(start: str, end: str, **other: Any) -> dict[str, Any]:
    return {"from": start, "to": end, **other}


@pytest.fixture
def town(brain: Brain) -> Brain:
    """Alice knows Bob, who works at Acme; Carol stands alone."""
    for slug, text in (
        ("people/alice", "# Alice\n\nA friend of [[Bob]]."),
        ("people/bob", "# Bob"),
        ("people/carol", "# Carol"),
        ("companies/acme", "# Acme"),
    ):
        call(brain, "put", slug=slug, content=text)
    return brain


def link(town: Brain, **other: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "from": "people/bob",
        "to": "companies/acme",
        "relationship": "works at",
        **other,
    }
    return call(town, "link", **fields)


def test_a_link_is_made_closed_and_removed_with_the_version_rising(town: Brain) -> None:
    made = link(town, valid_from="2024-01-15", context="  As\n smith. ")
    assert made["version"] == 2
    assert made["link"] == {
        "id": 2,
        "from_slug": "people/bob",
        "to_slug": "companies/acme",
        "relationship": "works_at",
        "valid_from": "2024-01-15",
        "valid_until": None,
        "context": "As smith.",
        "source_kind": "programmatic",
        "resolved": True,
        "from_collection": "default",
        "to_collection": "default",
        "part": None,
        "line": None,
        "created_at": made["link"]["created_at"],
        "as_written": [],
    }
    closed = call(town, "link_close", link_id=2, valid_until="2025-03-01")
    assert (closed["version"], closed["link"]["valid_until"]) == (3, "2025-03-01")
    assert call(town, "backlinks", slug="companies/acme")["links"] == []
    assert call(town, "backlinks", slug="companies/acme", as_of="2025-02-28")["total"] == 1
    removed = call(town, "unlink", **ends("people/bob", "companies/acme"))
    assert (removed["version"], len(removed["removed"])) == (4, 1)


def test_an_agent_may_name_the_version_that_it_read(town: Brain) -> None:
    fields: dict[str, Any] = {"from": "people/bob", "to": "people/carol"}
    with pytest.raises(VersionConflict, match="at version 1, not 7"):
        call(town, "link", "write", **fields, expected_version=7)
    assert call(town, "link", "write", **fields, expected_version=1)["version"] == 2
    with pytest.raises(VersionConflict):
        call(town, "link_close", "write", link_id=2, valid_until="2026-01-01", expected_version=1)
    with pytest.raises(VersionConflict):
        call(town, "unlink", "write", **fields, expected_version=1)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"to": "people/bob"}, InvalidArgument),
        ({"to": "people/nobody"}, PageNotFound),
        ({"relationship": " - "}, InvalidArgument),
        ({"valid_from": "yesterday"}, InvalidDate),
        ({"valid_from": "2024-02-30"}, InvalidDate),
        ({"valid_from": "2024-02-01", "valid_until": "2024-01-01"}, InvalidArgument),
        ({"context": "a\0b"}, InvalidArgument),
    ],
)
def test_a_wrong_link_is_refused_and_nothing_changes(
    town: Brain, given: dict[str, object], error: type[QuaidError]
) -> None:
    with pytest.raises(error):
        link(town, **given)
    assert call(town, "get", slug="people/bob")["version"] == 1


def test_a_link_cannot_end_before_it_began(town: Brain) -> None:
    link(town, valid_from="2024-01-15")
    with pytest.raises(InvalidArgument, match="before the link's start, 2024-01-15"):
        call(town, "link_close", link_id=2, valid_until="2024-01-14")
    assert call(town, "get", slug="people/bob")["version"] == 2


def test_links_of_a_text_are_changed_in_the_text(town: Brain) -> None:
    with pytest.raises(LinkFromText, match="text of people/alice"):
        call(town, "link_close", link_id=1, valid_until="2026-01-01")
    with pytest.raises(LinkFromText):
        call(town, "unlink", **ends("people/alice", "people/bob"))
    with pytest.raises(NotFound, match="no owns link from people/bob to people/carol"):
        call(town, "unlink", **ends("people/bob", "people/carol", relationship="owns"))


def test_unlink_says_which_links_of_the_text_stay(town: Brain) -> None:
    call(town, "link", **ends("people/alice", "people/bob", relationship="knows"))
    removed = call(town, "unlink", **ends("people/alice", "people/bob"))
    assert [item["relationship"] for item in removed["removed"]] == ["knows"]
    assert [item["relationship"] for item in removed["from_text"]] == ["mentions"]


def test_a_graph_holds_pages_links_and_ways(town: Brain) -> None:
    link(town, valid_from="2024-01-15")
    result = call(town, "graph", slug="people/alice")
    assert [(node["slug"], node["distance"], node["path"]) for node in result["nodes"]] == [
        ("people/alice", 0, ["people/alice"]),
        ("people/bob", 1, ["people/alice", "people/bob"]),
        ("companies/acme", 2, ["people/alice", "people/bob", "companies/acme"]),
    ]
    assert [link["relationship"] for link in result["links"]] == ["mentions", "works_at"]
    assert result["complete"] is True
    before = call(town, "graph", slug="people/alice", as_of="2024-01-14")
    assert [node["slug"] for node in before["nodes"]] == ["people/alice", "people/bob"]
    small = call(town, "graph", slug="people/alice", limit=2)
    assert (len(small["nodes"]), small["complete"]) == (2, False)


def test_a_path_is_found_or_reported_as_missing(town: Brain) -> None:
    link(town)
    result = call(town, "path", **ends("people/alice", "companies/acme"))
    assert result["pages"] == ["people/alice", "people/bob", "companies/acme"]
    lost = call(town, "path", **ends("people/alice", "people/carol"))
    assert (lost["found"], lost["steps"], lost["complete"]) == (False, [], True)
    here = call(town, "path", **ends("people/alice", "people/alice"))
    assert (here["found"], here["pages"]) == (True, ["people/alice"])


def test_links_to_a_quarantined_page_are_not_shown(town: Brain) -> None:
    town.db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'x' WHERE slug = 'people/bob'"))
    assert call(town, "graph", slug="people/alice")["links"] == []
    assert call(town, "links", slug="people/alice")["links"][0]["resolved"] is False


def test_a_path_is_looked_up_from_the_page_and_then_from_the_root(brain: Brain) -> None:
    for slug, text in (
        ("companies/c", "# C"),
        ("people/teams/t", "# Team below people"),
        ("teams/t", "# Team at the root"),
        ("people/a", "# A\n\n[C](companies/c.md) and [T](teams/t.md) and [later](deals/d.md)"),
    ):
        call(brain, "put", slug=slug, content=text)
    results = {link["to_slug"]: link["resolved"] for link in call(brain, "links", slug="people/a")["links"]}
    assert results == {"companies/c": True, "people/teams/t": True, "people/deals/d": False}
    call(brain, "put", slug="deals/d", content="# D")
    results = {link["to_slug"]: link["resolved"] for link in call(brain, "links", slug="people/a")["links"]}
    assert results == {"companies/c": True, "people/teams/t": True, "deals/d": True}
    assert dispatch.call(brain, dispatch.find_command("validate"), {"links": True}, "owner").violations == ()


TWICE = "# Dora\n\nWorks with [Acme](../companies/acme.md); see [[companies/acme#State]] and [[acme]].\n"


def test_a_page_that_a_text_names_in_several_ways_is_shown_as_one_link(town: Brain) -> None:
    before = call(town, "stats")["links"]
    call(town, "put", slug="people/dora", content=TWICE)
    rows = town.db.rows(
        "SELECT id FROM links WHERE from_page_id = (SELECT id FROM pages WHERE slug = 'people/dora')"
    )
    assert len(rows) > 1  # each remembers what the text says
    assert call(town, "stats")["links"] == before + 1
    out = call(town, "links", slug="people/dora")
    assert [(link["id"], link["to_slug"]) for link in out["links"]] == [(rows[0][0], "companies/acme")]
    back = call(town, "backlinks", slug="companies/acme")
    assert ([link["from_slug"] for link in back["links"]], back["total"]) == (["people/dora"], 1)
    arrows = call(town, "graph", slug="people/dora")["links"]
    assert [(arrow["from_slug"], arrow["relationship"], arrow["to_slug"]) for arrow in arrows] == [
        ("people/dora", "mentions", "companies/acme")
    ]


def test_links_of_another_time_relationship_or_source_stay_apart(town: Brain) -> None:
    call(town, "put", slug="people/dora", content=TWICE)
    before = call(town, "stats")["links"]
    dora = {"from": "people/dora", "to": "companies/acme"}
    link(town, **dora, valid_from="2020-01-01", valid_until="2021-01-01")
    link(town, **dora, valid_from="2023-01-01")
    link(town, **dora, relationship="owns")
    assert call(town, "stats")["links"] == before + 3
    assert call(town, "links", slug="people/dora")["total"] == 4
    assert call(town, "backlinks", slug="companies/acme", temporal="all")["total"] == 4
    assert len(call(town, "graph", slug="people/dora", temporal="all")["links"]) == 4
