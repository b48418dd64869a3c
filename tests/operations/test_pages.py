"""Operations on pages, called through the gate as every surface calls them."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import (
    InvalidArgument,
    InvalidDate,
    InvalidFrontMatter,
    InvalidSlug,
    InvalidType,
    NotAllowed,
    PageNotFound,
    VersionConflict,
)
from quaid.operations import dispatch
from quaid.operations.registry import Scope

ALICE = """---
title: Alice Example
type: person
tags: [infra, ops]
linkedin: alice-x
---
# Alice Example

> Founder of River.

## State

Lives in Oslo.

---

## Timeline

- **2026-04-14** | meeting — Met at the harbour fair.
- **2026-04-22** | email — Replied.
"""


def call(brain: Brain, tool: str, scope: Scope = "write", **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool("memory_" + tool), arguments, scope)


@pytest.fixture
def alice(brain: Brain) -> Brain:
    call(brain, "put", slug="people/alice", content=ALICE)
    return brain


@pytest.mark.parametrize(
    "part",
    [{"compiled_truth": "x"}, {"append": "x"}, {"timeline_append": "- x"}, {"frontmatter": {"type": "idea"}}],
)
def test_a_part_sent_with_the_whole_page_is_named(brain: Brain, part: dict[str, Any]) -> None:
    [name] = part
    arguments = {"slug": "concepts/a", "content": "# A", **part}
    with pytest.raises(InvalidArgument, match=f"^{name}: .*put it in there, or leave `content` out"):
        dispatch.call(brain, dispatch.find_tool("memory_put"), arguments, "write")
    del arguments["slug"]
    if name == "append":
        return
    source = {"content": "A.", "pages": [{"slug": "concepts/a", **arguments}]}
    with pytest.raises(InvalidArgument, match=rf"^pages\[1\].{name}: .*put it in there"):
        dispatch.call(brain, dispatch.find_tool("memory_ingest"), source, "write")


def test_a_page_comes_back_as_it_was_put(alice: Brain) -> None:
    page = call(alice, "get", slug="people/alice")
    assert page.title == "Alice Example"
    assert page.type == "person"
    assert page.summary == "Founder of River."
    assert page.compiled_truth.startswith("# Alice Example\n\n> Founder")
    assert page.timeline.startswith("## Timeline")
    assert page.frontmatter["linkedin"] == "alice-x"
    assert page.tags == ("infra", "ops")
    assert (page.wing, page.version) == ("people", 1)


def test_front_matter_overrides_wing_and_room(brain: Brain) -> None:
    call(brain, "put", slug="people/bo", content="---\nwing: friends\nroom: climbing\n---\n# Bo")
    page = call(brain, "get", slug="people/bo")
    assert (page.wing, page.room) == ("friends", "climbing")


def test_the_same_page_again_changes_nothing(alice: Brain) -> None:
    again = call(alice, "put", slug="people/alice", content=ALICE, expected_version=1)
    assert (again.changed, again.version) == (False, 1)


def test_a_stale_version_is_refused_with_the_current_one(alice: Brain) -> None:
    call(alice, "put", slug="people/alice", content="# New", expected_version=1)
    with pytest.raises(VersionConflict) as caught:
        call(alice, "put", slug="people/alice", content="# Other", expected_version=1)
    assert caught.value.facts["current_version"] == 2
    assert call(alice, "get", slug="people/alice").compiled_truth == "# New"


def test_an_agent_cannot_overwrite_what_it_did_not_read(alice: Brain) -> None:
    with pytest.raises(VersionConflict):
        call(alice, "put", slug="people/alice", content="# Other")


def test_the_owner_may_write_without_a_version(alice: Brain) -> None:
    assert call(alice, "put", "owner", slug="people/alice", content="# Other").version == 2


def test_parts_change_only_what_they_name(alice: Brain) -> None:
    before = call(alice, "get", slug="people/alice")
    call(alice, "put", slug="people/alice", compiled_truth="# Alice\n\nIn Rome.", expected_version=1)
    call(alice, "put", slug="people/alice", timeline_append="- **2026-05-01** — Moved.", expected_version=2)
    call(alice, "put", slug="people/alice", frontmatter={"linkedin": None, "score": 3}, expected_version=3)
    after = call(alice, "get", slug="people/alice")
    assert after.compiled_truth == "# Alice\n\nIn Rome."
    assert after.timeline == before.timeline + "\n- **2026-05-01** — Moved."
    assert after.frontmatter == {
        "title": "Alice Example",
        "type": "person",
        "tags": ["infra", "ops"],
        "score": 3,
    }
    assert after.version == 4


def test_a_part_makes_a_new_page(brain: Brain) -> None:
    assert call(brain, "put", slug="concepts/tides", compiled_truth="# Tides").created


def test_truth_is_dated_apart_from_the_timeline(alice: Brain) -> None:
    before = call(alice, "get", slug="people/alice")
    call(alice, "put", slug="people/alice", timeline_append="- **2026-05-01** — Moved.", expected_version=1)
    after = call(alice, "get", slug="people/alice")
    assert after.truth_updated_at == before.truth_updated_at
    assert after.timeline_updated_at > before.timeline_updated_at


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"slug": "People/Alice", "content": "x"}, InvalidSlug),
        ({"slug": "../etc", "content": "x"}, InvalidSlug),
        ({"slug": "a", "content": "---\ntype: [x]\n---\nx"}, InvalidType),
        ({"slug": "a", "content": "---\na: [\n---\nx"}, InvalidFrontMatter),
        ({"slug": "a", "content": "---\ntitle: x\n\n# Never closed"}, InvalidFrontMatter),
        ({"slug": "a"}, InvalidArgument),
        ({"slug": "a", "content": ""}, InvalidArgument),
        ({"slug": "a", "content": " \n"}, InvalidArgument),
        ({"slug": "a", "content": "x", "compiled_truth": "y"}, InvalidArgument),
        ({"slug": "a", "compiled_truth": "one\n\n---\n\ntwo"}, InvalidArgument),
        ({"slug": "a", "content": "x", "expected_version": 3}, VersionConflict),
    ],
)
def test_a_wrong_put_leaves_no_page(brain: Brain, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(brain, "put", **arguments)
    assert call(brain, "list").total == 0


def test_unknown_type_is_kept_with_a_note(brain: Brain) -> None:
    record = call(brain, "put", slug="a", content="---\ntype: Meting\n---\nx")
    note = "type 'Meting' is not one of the known types (did you mean meeting?); kept as it is"
    assert (record.type, record.wing, record.notes) == ("meting", "meting", (note,))
    assert note in render(record)
    again = call(brain, "put", slug="a", content="---\ntype: Meting\n---\ny", expected_version=1)
    assert again.notes == ()
    assert [page.slug for page in call(brain, "list", type="METING").pages] == ["a"]
    assert call(brain, "list", type="METING").notes == ()


def test_an_unknown_page_gets_the_nearest_name(alice: Brain) -> None:
    with pytest.raises(PageNotFound, match="people/alice"):
        call(alice, "get", slug="people/alcie")


def test_tags_live_in_the_front_matter(alice: Brain) -> None:
    added = call(alice, "tag", slug="people/alice", tag="#Founder", expected_version=1)
    assert (added.tags, added.version) == (("infra", "ops", "founder"), 2)
    assert call(alice, "get", slug="people/alice").frontmatter["tags"] == ["infra", "ops", "founder"]
    removed = call(alice, "tag", slug="people/alice", tag="infra", remove=True, expected_version=2)
    assert call(alice, "tags", slug="people/alice").tags == removed.tags == ("ops", "founder")


def test_a_tag_that_is_there_already_changes_nothing(alice: Brain) -> None:
    again = call(alice, "tag", slug="people/alice", tag="ops", expected_version=1)
    assert (again.changed, again.version) == (False, 1)


def test_pages_are_listed_by_type_tag_and_wing(alice: Brain) -> None:
    call(alice, "put", slug="companies/river", content="# River")
    assert [page.slug for page in call(alice, "list").pages] == ["companies/river", "people/alice"]
    assert [page.slug for page in call(alice, "list", type="person").pages] == ["people/alice"]
    assert [page.slug for page in call(alice, "list", tag="infra").pages] == ["people/alice"]
    assert [page.slug for page in call(alice, "list", wing="companies").pages] == ["companies/river"]
    assert [page.slug for page in call(alice, "list", sort="title", limit=1).pages] == ["people/alice"]
    assert call(alice, "list", limit=1, offset=1).total == 2


@pytest.mark.parametrize("command", ["list", "days"])
def test_listing_by_an_unused_type_says_so(brain: Brain, command: str) -> None:
    record = call(brain, command, type="persn")
    assert record.notes == (
        "no page has the type 'persn' (did you mean person?); `quaid stats` shows the types in use",
    )
    assert "did you mean person" in render(record)
    assert call(brain, command, type="person").notes == ()


def test_the_timeline_is_newest_first_and_takes_an_entry_once(alice: Brain) -> None:
    first = call(
        alice, "timeline_add", slug="people/alice", date="2026-05-01", summary="Moved", expected_version=1
    )
    again = call(
        alice, "timeline_add", slug="people/alice", date="2026-05-01", summary="Moved", expected_version=2
    )
    assert (first.added, again.added, again.version) == (True, False, 2)
    shown = call(alice, "timeline", slug="people/alice")
    assert [entry.date for entry in shown.entries] == ["2026-05-01", "2026-04-22", "2026-04-14"]
    assert "- **2026-05-01** — Moved" in call(alice, "get", slug="people/alice").timeline
    assert call(alice, "timeline", slug="people/alice", limit=1).total == 3


def test_a_bad_date_is_refused(alice: Brain) -> None:
    with pytest.raises(InvalidDate):
        call(alice, "timeline_add", slug="people/alice", date="2026-02-30", summary="x", expected_version=1)


def test_raw_data_is_kept_beside_the_page(alice: Brain) -> None:
    written = call(alice, "raw", slug="people/alice", source="crm", data={"id": 7}, expected_version=1)
    assert (written.written, written.version) == (True, 2)
    assert call(alice, "raw", slug="people/alice").data[0].data == {"id": 7}
    assert call(alice, "raw", slug="people/alice", source="other").data == ()
    with pytest.raises(VersionConflict):
        call(alice, "raw", slug="people/alice", source="crm", data={"id": 8}, expected_version=1)
    with pytest.raises(InvalidArgument):
        call(alice, "raw", slug="people/alice", data={"id": 8}, expected_version=2)


def test_a_reader_cannot_write(alice: Brain) -> None:
    with pytest.raises(NotAllowed):
        call(alice, "put", "read", slug="x", content="y")


def test_search_finds_what_was_put(alice: Brain) -> None:
    call(alice, "put", slug="companies/river", content="# River\n\nTidal batteries.")
    assert [hit.slug for hit in call(alice, "search", query="tidal battery").hits] == ["companies/river"]
    assert [hit.slug for hit in call(alice, "search", query="river", type="person").hits] == ["people/alice"]
    assert call(alice, "search", query="").hits == ()


def test_stats_count_what_there_is(alice: Brain) -> None:
    stats = call(alice, "stats")
    assert (stats.pages, stats.pages_by_type, stats.tags, stats.timeline_entries) == (1, {"person": 1}, 2, 2)


TRUTH_ONLY = "---\ntitle: Alice Example\ntype: person\n---\n# Alice Example\n\nLives in Bergen.\n"
BOTH = ("2026-04-14 Met at the harbour fair.", "2026-04-22 Replied.")


def test_a_whole_page_without_a_timeline_keeps_the_entries_and_names_them(alice: Brain) -> None:
    before = call(alice, "get", slug="people/alice").timeline
    done = call(alice, "put", slug="people/alice", content=TRUTH_ONLY, expected_version=1)
    page = call(alice, "get", slug="people/alice")
    assert (done.timeline_kept, done.timeline_removed) == (BOTH, ())
    assert page.timeline == before
    assert page.compiled_truth.endswith("Lives in Bergen.")
    assert len(call(alice, "timeline", slug="people/alice").entries) == 2


def test_a_whole_page_names_the_keys_and_tags_that_it_leaves_out(brain: Brain) -> None:
    front = "---\ntitle: Ben\ntags: [a, b]\nroles: [x]\n---\n"
    first = call(brain, "put", slug="people/ben", content=front + "# Ben\n\nBakes.")
    assert (first.keys_removed, first.tags_removed) == ((), ())
    fewer = "---\ntitle: Ben\ntags: [b]\nroles: [x]\n---\n# Ben\n\nBakes."
    done = call(brain, "put", slug="people/ben", content=fewer, expected_version=1)
    assert (done.keys_removed, done.tags_removed) == ((), ("a",))
    parts = call(brain, "put", slug="people/ben", frontmatter={"score": 3}, expected_version=2)
    assert (parts.keys_removed, parts.tags_removed) == ((), ())
    done = call(brain, "put", slug="people/ben", content="# Ben\n\nBakes more.", expected_version=3)
    assert (done.keys_removed, done.tags_removed) == (("title", "roles", "score"), ("b",))


def test_a_code_block_left_open_does_not_swallow_the_entries_that_are_kept(alice: Brain) -> None:
    call(alice, "put", slug="people/alice", content="# Alice\n\n```\ncode", expected_version=1)
    assert len(call(alice, "timeline", slug="people/alice").entries) == 2
    assert call(alice, "get", slug="people/alice").compiled_truth.endswith("code\n```")


def test_an_edited_entry_is_kept_beside_its_new_text(alice: Brain) -> None:
    content = ALICE.replace("Met at the harbour fair.", "Met at the fish fair.")
    done = call(alice, "put", slug="people/alice", content=content, expected_version=1)
    assert done.timeline_kept == BOTH[:1]
    entries = call(alice, "timeline", slug="people/alice").entries
    assert {entry.summary for entry in entries} == {
        "Met at the harbour fair.",
        "Met at the fish fair.",
        "Replied.",
    }
    again = call(alice, "put", slug="people/alice", content=content, expected_version=2)
    assert (again.changed, again.timeline_kept) == (False, BOTH[:1])


def test_what_was_read_can_be_put_back_in_any_order_of_entries(alice: Brain) -> None:
    head, _, entries = ALICE.partition("## Timeline\n\n")
    other = head + "## Timeline\n\n" + "".join(reversed(entries.splitlines(keepends=True)))
    done = call(alice, "put", slug="people/alice", content=other, expected_version=1)
    assert (done.changed, done.timeline_kept) == (True, ())
    assert call(alice, "get", slug="people/alice").timeline.endswith("Met at the harbour fair.")


def test_entries_are_removed_by_asking_for_it_and_the_version_before_has_them(alice: Brain) -> None:
    done = call(
        alice, "put", slug="people/alice", content=TRUTH_ONLY, expected_version=1, replace_timeline=True
    )
    assert (done.timeline_kept, done.timeline_removed) == ((), BOTH)
    assert call(alice, "get", slug="people/alice").timeline == ""
    back = call(alice, "revert", slug="people/alice", to=1, expected_version=2)
    assert back.timeline_removed == ()
    assert len(call(alice, "timeline", slug="people/alice").entries) == 2
    again = call(alice, "revert", slug="people/alice", to=2, expected_version=3)
    assert again.timeline_removed == BOTH


def test_replacing_a_timeline_needs_one(alice: Brain) -> None:
    with pytest.raises(InvalidArgument, match="replace_timeline: needs `content`"):
        call(alice, "put", slug="people/alice", compiled_truth="x", expected_version=1, replace_timeline=True)


def test_a_page_of_a_folder_keeps_entries_in_its_file_and_an_edit_of_the_file_wins(
    brain: Brain, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    file = tmp_path / "notes" / "bo.md"
    file.write_text("# Bo\n\n---\n\n- **2026-01-02** — Came.\n- **2026-02-03** — Left.\n")
    for command, inputs in (
        ("collection add", {"name": "notes", "path": str(file.parent), "writable": True}),
        ("put", {"slug": "notes::bo", "content": "# Bo\n\nA guest.\n", "expected_version": 1}),
    ):
        dispatch.call(brain, dispatch.find_command(command), inputs, "owner")
    assert file.read_text() == (
        "# Bo\n\nA guest.\n\n---\n\n- **2026-01-02** — Came.\n- **2026-02-03** — Left.\n"
    )
    file.write_text("# Bo\n\nA guest.\n\n---\n\n- **2026-02-03** — Left early.\n")
    dispatch.call(brain, dispatch.find_command("collection sync"), {"name": "notes"}, "owner")
    page = call(brain, "get", slug="notes::bo")
    assert page.timeline == "- **2026-02-03** — Left early."
    back = call(brain, "revert", slug="notes::bo", to=page.version - 1, expected_version=page.version)
    assert back.timeline_removed == ("2026-02-03 Left early.",)
    assert "Came." in file.read_text()


def test_a_date_of_a_page_must_be_one(brain: Brain, tmp_path: Path) -> None:
    wrong = "---\ntype: journal\ndate: last Tuesday\n---\n# Rain\n"
    for tool, inputs in (
        ("put", {"slug": "journal/rain", "content": wrong}),
        (
            "put",
            {"slug": "journal/rain", "compiled_truth": "# Rain", "frontmatter": {"date": "last Tuesday"}},
        ),
        (
            "ingest",
            {
                "content": "It rained.",
                "source_type": "doc",
                "source_ref": "rain",
                "pages": [{"slug": "journal/rain", "content": wrong}],
            },
        ),
    ):
        with pytest.raises(InvalidDate, match=r"^journal/rain: date: 'last Tuesday' is not a date"):
            call(brain, tool, **inputs)
    with pytest.raises(InvalidDate, match=r"^journal/rain: a journal page needs a date"):
        call(brain, "put", slug="journal/rain", content="---\ntype: journal\n---\n# Rain\n")
    with pytest.raises(PageNotFound):
        call(brain, "get", slug="journal/rain")


def test_wrong_date_of_a_file_is_reported_and_does_not_lock_its_page(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "rain.md").write_text("---\ntype: journal\ndate: last Tuesday\n---\n# Rain\n")
    message = "date: 'last Tuesday' is not a date; write YYYY-MM-DD, as in 2026-04-25"
    added = dispatch.call(
        brain,
        dispatch.find_command("collection add"),
        {"name": "notes", "path": str(tmp_path / "notes")},
        "owner",
    )
    assert message in repr(added)
    imported = dispatch.call(
        brain, dispatch.find_command("import"), {"folder": str(tmp_path / "notes")}, "owner"
    )
    assert message in repr(imported)
    call(brain, "put", slug="notes::rain", frontmatter={"mood": "wet"}, expected_version=1)
    with pytest.raises(InvalidDate):
        call(brain, "put", slug="notes::rain", frontmatter={"date": "never"}, expected_version=2)
    call(brain, "put", slug="notes::rain", frontmatter={"date": "2026-04-21"}, expected_version=2)
