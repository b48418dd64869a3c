"""Which writes need the version of the page, and what a conflict tells the caller."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from quaid.app import Brain
from quaid.errors import (
    ContentChanged,
    InvalidArgument,
    NoSuchVersion,
    PageExists,
    PageMoved,
    VersionConflict,
)
from quaid.mcp import tools
from quaid.operations import dispatch
from quaid.operations.registry import Scope

BO = "---\ntitle: Bo Berg\ntags: [guest]\nrole: baker\n---\n# Bo Berg\n\nBakes.\n\n## Likes\n\n- tea\n"


def call(brain: Brain, tool: str, scope: Scope = "write", /, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool(f"memory_{tool}"), arguments, scope)


@pytest.fixture
def bo(brain: Brain) -> Brain:
    call(brain, "put", slug="people/bo", content=BO)
    return brain


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("put", {"timeline_append": "- **2026-05-01** — Called."}),
        ("put", {"append": "Sings."}),
        ("put", {"append": "- rain", "section": "Likes"}),
        ("put", {"frontmatter": {"tags": ["guest", "baker"]}}),
        ("put", {"frontmatter": {"city": "Oslo"}}),
        ("put", {"assertions": [{"predicate": "lives_in", "object": "Oslo"}]}),
        ("timeline_add", {"date": "2026-05-01", "summary": "Called"}),
        ("tag", {"tag": "baker"}),
        ("tag", {"tag": "guest", "remove": True}),
        ("assert", {"predicate": "lives_in", "object": "Oslo"}),
        ("raw", {"source": "crm", "data": {"id": 7}}),
    ],
)
def test_adding_to_a_page_needs_no_version(bo: Brain, tool: str, arguments: dict[str, Any]) -> None:
    assert call(bo, tool, slug="people/bo", **arguments).version == 2
    assert "Bakes." in call(bo, "get", slug="people/bo").compiled_truth


def test_links_are_added_closed_and_removed_without_a_version(bo: Brain) -> None:
    call(bo, "put", slug="people/cy", content="# Cy")
    link = call(bo, "link", **{"from": "people/bo", "to": "people/cy"}).link
    call(bo, "link_close", link_id=link.id, valid_until="2026-05-01")
    assert call(bo, "unlink", **{"from": "people/bo", "to": "people/cy"}).version == 4


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "# Bo\n\nSings."},
        {"compiled_truth": "Sings."},
        {"frontmatter": {"role": "singer"}},
        {"frontmatter": {"role": None}},
        {"frontmatter": {"tags": ["baker"]}},
        {"compiled_truth": "Sings.", "timeline_append": "- **2026-05-01** — Called."},
    ],
)
def test_replacing_needs_the_version_or_the_hash(bo: Brain, arguments: dict[str, Any]) -> None:
    with pytest.raises(PageExists) as caught:
        call(bo, "put", slug="people/bo", **arguments)
    page = call(bo, "get", slug="people/bo")
    facts = caught.value.facts
    assert (facts["current_version"], facts["content_hash"]) == (1, page.content_hash)
    assert "Bakes." in facts["current_text"]
    with pytest.raises(ContentChanged) as changed:
        call(bo, "put", slug="people/bo", **arguments, content_hash="0123456789ab")
    assert changed.value.code == "version_conflict"
    assert changed.value.facts["content_hash"] == page.content_hash
    # one more call is enough
    assert call(bo, "put", slug="people/bo", **arguments, content_hash=facts["content_hash"]).version == 2


def test_a_conflict_tells_an_agent_which_call_succeeds(bo: Brain) -> None:
    with pytest.raises(PageExists) as caught:
        call(bo, "put", slug="people/bo", content="# Bo\n\nSings.")
    record = tools.failure_record(caught.value, dispatch.find_tool("memory_put"))
    assert (
        record["next"]
        == "Merge your change into current_text and call memory_put with it and this content_hash."
    )
    assert (record["code"], record["current_version"]) == ("version_conflict", 1)
    assert {"content_hash", "current_text"} <= set(record)


def test_the_owner_may_replace_without_a_version(bo: Brain) -> None:
    assert call(bo, "put", "owner", slug="people/bo", compiled_truth="Sings.").version == 2


def test_a_stale_version_and_a_stale_hash_are_refused_also_when_adding(bo: Brain) -> None:
    stale = call(bo, "get", slug="people/bo").content_hash
    call(bo, "put", slug="people/bo", append="Sings.")
    with pytest.raises(VersionConflict) as caught:
        call(bo, "put", slug="people/bo", append="Dances.", expected_version=1)
    assert "Sings." in caught.value.facts["current_text"]
    with pytest.raises(ContentChanged):
        call(bo, "put", slug="people/bo", append="Dances.", content_hash=stale)
    with pytest.raises(PageExists):
        call(bo, "put", slug="people/bo", append="Dances.", expected_version=0)
    with pytest.raises(NoSuchVersion):
        call(bo, "put", slug="people/new", content="# New", content_hash=stale)


def test_a_fact_changes_the_version_but_not_the_hash(bo: Brain) -> None:
    read = call(bo, "get", slug="people/bo").content_hash
    call(bo, "assert", slug="people/bo", predicate="lives_in", object="Oslo")
    assert call(bo, "put", slug="people/bo", compiled_truth="Sings.", content_hash=read).version == 3


def test_a_conflict_never_has_only_a_part_of_the_text(brain: Brain) -> None:
    call(brain, "put", slug="long", content="word " * 5_000)
    for tool, arguments in (
        ("put", {"slug": "long", "content": "short"}),
        ("ingest", {"content": "A mail.", "pages": [{"slug": "long", "content": "short"}]}),
    ):
        with pytest.raises(PageExists) as caught:
            call(brain, tool, **arguments)
        assert not {"current_text", "content_hash"} & caught.value.facts.keys()
        told = tools.failure_record(caught.value, dispatch.find_command(tool))
        assert "read it with memory_get" in told["next"]


def test_a_page_that_was_renamed_is_not_written_under_its_old_slug(bo: Brain) -> None:
    dispatch.call(
        bo, dispatch.find_command("rename"), {"slug": "people/bo", "new_slug": "people/bob"}, "owner"
    )
    for arguments in ({"content": "# Bo"}, {"append": "Sings."}):
        with pytest.raises(PageMoved, match="people/bob") as caught:
            call(bo, "put", slug="people/bo", **arguments)
        assert "Bakes." in caught.value.facts["current_text"]


def test_text_is_appended_to_a_section_once(bo: Brain) -> None:
    for _ in range(2):
        call(bo, "put", slug="people/bo", append="- rain", section="likes")
    call(bo, "put", slug="people/bo", append="Oslo, since May.", section="Home")
    call(bo, "put", slug="people/bo", append="The end.")
    page = call(bo, "get", slug="people/bo")
    assert page.compiled_truth.endswith("## Likes\n\n- tea\n- rain\n\n## Home\nOslo, since May.\n\nThe end.")
    assert page.version == 4


def test_appending_creates_a_page(brain: Brain) -> None:
    assert call(brain, "put", slug="notes/rain", append="It rains.").created
    assert call(brain, "get", slug="notes/rain").compiled_truth == "It rains."


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"append": " "}, "append"),
        ({"append": "a\n\n---\n\nb"}, "append"),
        ({"append": "a", "compiled_truth": "b"}, "append"),
        ({"append": "a", "content": "b"}, "append"),
        ({"section": "Likes", "compiled_truth": "b"}, "section"),
    ],
)
def test_appending_is_checked(bo: Brain, arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(bo, "put", slug="people/bo", **arguments)
    assert caught.value.facts["name"] == name


def test_an_ingest_adds_without_a_version_and_replaces_with_a_hash(bo: Brain) -> None:
    entry = {"date": "2026-05-01", "summary": "Moved"}
    added = {
        "slug": "people/bo",
        "timeline_entries": [entry],
        "tags": ["mover"],
        "frontmatter": {"city": "Oslo"},
    }
    source = {"source_type": "meeting", "source_ref": "meeting/1", "content": "Bo moved."}
    assert call(bo, "ingest", **source, pages=[added]).pages[0].version == 2
    other = {**source, "source_ref": "meeting/2", "content": "Bo sings."}
    with pytest.raises(PageExists) as caught:
        call(bo, "ingest", **other, pages=[{"slug": "people/bo", "compiled_truth": "Sings."}])
    read = caught.value.facts["content_hash"]
    change = {"slug": "people/bo", "compiled_truth": "Sings.", "content_hash": read}
    assert call(bo, "ingest", **other, pages=[change]).pages[0].version == 3


def test_data_of_a_source_is_replaced_only_with_a_version(bo: Brain) -> None:
    call(bo, "raw", slug="people/bo", source="crm", data={"id": 7})
    with pytest.raises(InvalidArgument, match="expected_version: is required"):
        call(bo, "raw", slug="people/bo", source="crm", data={"id": 8})
    assert call(bo, "raw", slug="people/bo", source="crm", data={"id": 8}, expected_version=2).version == 3


WRITES = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["version", "hash", "append", "read"])), max_size=30
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=WRITES)
def test_no_write_is_lost_whatever_was_read_and_when(brain: Brain, writes: list[tuple[int, str]]) -> None:
    """Three writers read and write in any order; each replaces the text that it read, or appends."""
    slug = f"page-{brain.new_uuid()}"
    call(brain, "put", slug=slug, content="start")
    read = [call(brain, "get", slug=slug)] * 3
    written, conflicts = [], []
    for number, (writer, act) in enumerate(writes):
        word = f"w{number}"
        page = read[writer]
        named = {"version": {"expected_version": page.version}, "hash": {"content_hash": page.content_hash}}
        try:
            if act == "read":
                read[writer] = call(brain, "get", slug=slug)
            elif act == "append":
                call(brain, "put", slug=slug, append=word)
                written.append(word)
            else:
                call(
                    brain,
                    "put",
                    slug=slug,
                    compiled_truth=f"{page.compiled_truth} {word}",
                    **named[act],
                )
                written.append(word)
        except VersionConflict as conflict:
            conflicts.append((conflict.facts["current_text"], call(brain, "get", slug=slug).compiled_truth))
    assert call(brain, "get", slug=slug).compiled_truth.split() == ["start", *written]
    assert all(text == f"{truth}\n" for text, truth in conflicts)
