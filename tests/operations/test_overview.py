"""The memory from afar: dated things across pages, wings, contradictions as they were found, and a glance."""

from datetime import date
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import InvalidDate, NotFound
from quaid.operations import dispatch
from quaid.operations.overview import LINK_FIELDS


def call(brain: Brain, command: str, /, **arguments: Any) -> Any:
    items = {key.rstrip("_"): value for key, value in arguments.items()}
    return dispatch.call(brain, dispatch.find_command(command), items, "owner")


@pytest.fixture
def memory(brain: Brain) -> Brain:
    call(
        *(brain, "put"),
        slug="people/ada",
        content="# Ada\n\nWorks at [[companies/river]].\n\n---\n\n## Timeline\n\n"
        "- **2026-04-20** | call — Said yes to the pier.\n- **2025-01-02** — Wrote a letter.\n",
    )
    call(brain, "put", slug="companies/river", content="# River\n\nA company.\n")
    call(brain, "put", slug="journal/2026-04-21", content="# A Tuesday\n\nRain.\n")
    call(
        *(brain, "put"),
        slug="commitments/report",
        content="---\ntype: commitment\ndue: 2026-06-15\nstatus: open\n---\n\n# The report\n\n> By June.\n",
    )
    ends = {"valid_from": "2024-01-15", "valid_until": "2026-03-01"}
    call(brain, "link", from_="people/ada", to="companies/river", relationship="works_at", **ends)
    call(brain, "assert", slug="people/ada", predicate="lives_in", object="Oslo", valid_from="2026-04-22")
    return brain


def test_everything_dated_comes_newest_day_first(memory: Brain) -> None:
    dated = call(memory, "days").dated
    assert [(item.day, item.kind, item.state, item.slug) for item in dated] == [
        ("2026-06-15", "due", "open", "commitments/report"),
        ("2026-04-22", "fact", "begun", "people/ada"),
        ("2026-04-21", "page", "", "journal/2026-04-21"),
        ("2026-04-20", "entry", "", "people/ada"),
        ("2026-03-01", "link", "ended", "people/ada"),
        ("2025-01-02", "entry", "", "people/ada"),
        ("2024-01-15", "link", "begun", "people/ada"),
    ]
    entry = next(item for item in dated if item.kind == "entry")
    assert (entry.text, entry.source, entry.line) == ("Said yes to the pier.", "call", 3)


def test_days_are_narrowed_by_time_kind_type_wing_collection_and_text(memory: Brain) -> None:
    def days(**chosen: Any) -> list[str]:
        return [item.day for item in call(memory, "days", **chosen).dated]

    assert days(since="2026-04-20", until="2026-04-21") == ["2026-04-21", "2026-04-20"]
    assert days(kind="link") == ["2026-03-01", "2024-01-15"]
    assert days(type="commitment") == ["2026-06-15"]
    assert days(wing="journal") == ["2026-04-21"]
    assert days(collection="default", kind="entry") == ["2026-04-20", "2025-01-02"]
    assert days(text="the PIER") == ["2026-04-20"]
    assert days(text="100 %'; DROP") == []
    with pytest.raises(InvalidDate):
        days(since="yesterday")
    with pytest.raises(NotFound):
        days(collection="elsewhere")


def test_pages_of_days_follow_each_other_without_a_gap(memory: Brain) -> None:
    every = call(memory, "days").dated
    first, second = call(memory, "days", limit=4), call(memory, "days", limit=4, offset=4)
    assert (*first.dated, *second.dated) == every
    assert (first.more, second.more) == (True, False)


def test_quarantined_and_deleted_pages_have_no_dated_items(memory: Brain) -> None:
    call(memory, "forget", slug="journal/2026-04-21", yes=True)
    assert [item.kind for item in call(memory, "days").dated].count("page") == 0


def test_wings_types_and_collections_are_counted(memory: Brain) -> None:
    result = call(memory, "wings")
    assert {wing.name: wing.pages for wing in result.wings} == {
        "people": 1,
        "companies": 1,
        "journal": 1,
        "commitments": 1,
    }
    assert {type_.name: type_.pages for type_ in result.types}["person"] == 1
    assert result.collections == ("default",)


def test_a_wing_shows_its_pages_and_the_links_between_them(memory: Brain) -> None:
    call(memory, "put", slug="people/bo", content="# Bo\n\nKnows [[people/ada]] and [[companies/river]].\n")
    result = call(memory, "wing", wing="people")
    assert {node.slug for node in result.nodes} == {"people/ada", "people/bo"}
    assert [(link.from_slug, link.to_slug) for link in result.links] == [("people/bo", "people/ada")]
    assert result.pages == 2
    assert len(call(memory, "wing", wing="people", limit=1).nodes) == 1
    with pytest.raises(NotFound):
        call(memory, "wing", wing="nowhere")


def test_map_has_every_page_and_link_of_the_memory(memory: Brain) -> None:
    call(memory, "put", slug="people/bo", content="# Bo Lindqvist\n\nKnows [[people/ada]].\n")
    call(
        *(memory, "link"),
        from_="people/bo",
        to="companies/river",
        relationship="worked_at",
        valid_from="2020-01-02",
        valid_until="2021-01-02",
    )
    result = call(memory, "map")
    assert result.pages == len(result.nodes) == 5
    assert [node.links for node in result.nodes] == sorted(
        (node.links for node in result.nodes), reverse=True
    )
    links = [result.links[at : at + LINK_FIELDS] for at in range(0, len(result.links), LINK_FIELDS)]
    readable = {
        (result.nodes[a].slug, result.relationships[name], result.nodes[b].slug): (begins, ends)
        for a, b, name, begins, ends, _ in links
    }
    first, last = date(2020, 1, 2).toordinal(), date(2021, 1, 2).toordinal()
    assert readable["people/bo", "worked_at", "companies/river"] == (first, last)
    assert [ends for (a, _, b), (_, ends) in readable.items() if (a, b) == ("people/bo", "people/ada")] == [0]
    few = call(memory, "map", limit=2)
    assert (len(few.nodes), few.pages) == (2, 5)
    assert all(place < 2 for at in range(0, len(few.links), LINK_FIELDS) for place in few.links[at : at + 2])


def test_map_follows_every_write(memory: Brain) -> None:
    first = call(memory, "map")
    assert call(memory, "map") is first
    call(memory, "forget", slug="people/ada", yes=True)
    assert "people/ada" not in {node.slug for node in call(memory, "map").nodes}


def test_link_suggestions_are_pages_named_without_a_link(memory: Brain) -> None:
    call(memory, "put", slug="people/bo", content="# Bo Lindqvist\n\nA carpenter.\n")
    call(memory, "put", slug="notes/pier", content="# Pier\n\nBo Lindqvist mends the pier.\n")

    def pairs(**chosen: Any) -> set[tuple[str, str]]:
        return {(each.slug, each.to_slug) for each in call(memory, "link-suggestions", **chosen).value}

    assert ("notes/pier", "people/bo") in pairs()
    assert pairs(wing="people") == {("notes/pier", "people/bo")}
    call(memory, "link", from_="notes/pier", to="people/bo")
    assert pairs(wing="people") == set()


def test_contradictions_are_listed_as_the_last_check_left_them(memory: Brain) -> None:
    call(memory, "assert", slug="people/ada", predicate="lives_in", object="Malmö", valid_from="2026-04-22")
    before = call(memory, "contradictions")
    assert (before.total, before.checked_at) == (
        1,
        None,
    )  # the write has checked its page, but not the memory
    checked = call(memory, "check")
    after = call(memory, "contradictions")
    assert after.contradictions == checked.contradictions
    assert after.total == 1
    assert after.checked_at is not None
    assert len(after.contradictions[0].quotes) == 2


def test_a_glance_finds_pages_and_notes_and_leaves_no_gap(memory: Brain) -> None:
    call(memory, "notebook init")
    call(memory, "remember", content="Ada prefers email to phone")
    results = call(memory, "glance", text="ada email")
    assert "people/ada" in [result.slug for result in results.answer.results]
    assert [item.path for item in results.recalled.notebook] == ["reference/preferences.md"]
    call(memory, "glance", text="zeppelin timetabl")
    assert call(memory, "gaps").total == 0
    call(memory, "query", question="zeppelin timetables")
    assert call(memory, "gaps").total == 1


def test_a_glance_under_a_filter_leaves_the_notebook_out(memory: Brain) -> None:
    call(memory, "notebook init")
    assert call(memory, "glance", text="ada", wing="people").recalled is None
    assert call(memory, "glance", text="ada", collection="notebook").recalled is not None
    assert {result.wing for result in call(memory, "glance", text="ada", wing="people").answer.results} == {
        "people"
    }


def test_the_daily_log_is_among_the_days_entry_by_entry(memory: Brain) -> None:
    call(memory, "notebook init")
    text = (
        "# 2026-04-23\n\nSlept badly.\n\n## 09:10 — Called [[people/ada]]\n\nShe sends the report.\n\n"
        "```\n## 10:00 no entry\n```\n\n## 18:40 — Walk\n"
    )
    call(memory, "notebook write", path="daily/2026-04-23.md", content=text, replace=True, expected_version=0)
    dated = call(memory, "days", since="2026-04-23", until="2026-04-23").dated
    assert [(item.kind, item.source, item.text.partition("\n")[0], item.line) for item in dated] == [
        ("log", "18:40", "Walk", 13),
        ("log", "09:10", "Called [[people/ada]]", 5),
        ("log", "", "Slept badly.", 3),
    ]
    assert {item.slug for item in dated} == {"notebook::daily/2026-04-23"}

    def logged(**chosen: Any) -> list[str]:
        return [item.source for item in call(memory, "days", kind="log", **chosen).dated]

    assert logged(text="the REPORT") == ["09:10"]
    assert logged(collection="notebook", wing="daily") == ["18:40", "09:10", ""]
    assert logged(collection="default") == logged(until="2026-04-22") == logged(type="person") == []
    assert logged(limit=2, offset=1) == ["09:10", ""]
    assert "2026-04-23" not in [item.day for item in call(memory, "days", kind="page").dated]


def test_a_link_without_a_time_begins_with_the_pages_at_its_ends(brain: Brain) -> None:
    pages = {
        "people/cy": "# Cy\n\nKnows [[people/dee]] and [[notes/plain]].\n\n---\n\n- **2021-05-01** — Met.\n"
        "- **2023-02-03** — Went to [[places/pier]].\n",
        "people/dee": "---\ndate: 2022-07\n---\n\n# Dee\n\nSaw [[people/cy]].\n",
        "notes/plain": "# Plain\n\nNames [[people/cy]].\n",
        "places/pier": "# Pier\n",
    }
    for slug, content in pages.items():
        call(brain, "put", slug=slug, content=content)
    call(brain, "link", from_="people/cy", to="places/pier", relationship="owns", valid_until="2020-01-01")
    call(brain, "link", from_="people/cy", to="people/dee", relationship="knew", valid_from="2019-01-01")
    results = {
        (link.from_slug, link.to_slug, link.relationship): link.begins
        for link in call(brain, "graph", slug="people/cy", temporal="all").links
    }
    today = brain.now()[:10]
    assert results == {
        ("people/cy", "people/dee", "mentions"): "2022-07-01",  # she was not there before
        ("people/cy", "notes/plain", "mentions"): "2021-05-01",  # when that was imported says nothing
        ("people/cy", "places/pier", "mentions"): "2023-02-03",  # the day of the entry
        ("people/dee", "people/cy", "mentions"): "2022-07-01",
        ("notes/plain", "people/cy", "mentions"): today,
        ("people/cy", "places/pier", "owns"): None,  # it was over before anything is known of her
        ("people/cy", "people/dee", "knew"): "2019-01-01",
    }
    wing = {(link.from_slug, link.to_slug): link.begins for link in call(brain, "wing", wing="people").links}
    assert wing[("people/dee", "people/cy")] == "2022-07-01"
    assert call(brain, "path", from_="people/cy", to="people/dee").steps[0].begins is not None


def test_titles_are_found_as_a_link_would_find_them(memory: Brain) -> None:
    error = call(memory, "titles", names=["people/ada", "River", "nobody/here", "people/ada"]).value
    assert [(item.name, item.slug, item.title, item.type) for item in error] == [
        ("people/ada", "people/ada", "Ada", "person"),
        ("River", "companies/river", "River", "company"),
    ]
    call(memory, "put", slug="concepts/river", content="# River\n")
    assert call(memory, "titles", names=["River"]).value == ()


def test_each_result_says_how_strong_it_is_by_itself(memory: Brain) -> None:
    call(
        memory,
        "put",
        slug="notes/tar",
        content="# Tar\n\nThe zeppelin timetable hangs in the harbour office.\n",
    )
    call(memory, "put", slug="notes/oil", content="# Oil\n\nThe harbour is full of it.\n")
    results = {
        result.slug: result.strength
        for result in call(memory, "query", question="zeppelin timetable in the harbour").results
    }
    assert results["notes/tar"] == "strong"
    assert results["notes/oil"] != "strong"
