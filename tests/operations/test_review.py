"""Writes of agents become proposals in review mode, and accepting one does what the write would have done."""

import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings as rules, strategies as st

from quaid.app import Brain
from quaid.cli.render import render
from quaid.config import Settings
from quaid.errors import InvalidArgument, NotFound, PageNotFound, VersionConflict
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.storage.agents import Proposals

AGENT = "codex"


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


def ask(brain: Brain, tool: str, agent: str = AGENT, **arguments: Any) -> Any:
    brain.agent = agent
    try:
        return json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))
    finally:
        brain.agent = ""


@pytest.fixture
def reviewed(brain: Brain, tmp_path: Path) -> Brain:
    """A memory with a page and a notebook, in review mode."""
    run(brain, "put", slug="people/alice", content="# Alice\n\nLives in Paris.")
    run(brain, "notebook init", path=str(tmp_path / "notebook"))
    run(brain, "config set", key="agent_writes", value="review")
    return brain


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("memory_put", {"slug": "people/bob", "content": "# Bob\n\nNew here."}),
    (
        "memory_put",
        {
            "slug": "people/alice",
            "compiled_truth": "# Alice\n\nLives in Paris.\nHas a cat.",
            "expected_version": 1,
        },
    ),
    ("memory_assert", {"slug": "people/alice", "predicate": "lives_in", "object": "Paris"}),
    ("memory_tag", {"slug": "people/alice", "tag": "friend"}),
    ("memory_timeline_add", {"slug": "people/alice", "date": "2026-04-01", "summary": "Met in Paris."}),
    ("memory_ingest", {"content": "Alice agreed.", "source_type": "meeting", "source_ref": "meeting/1"}),
    ("memory_correct", {"about": "Alice", "was": "Paris", "now": "Oslo"}),
    ("remember", {"content": "Sarah prefers email to phone"}),
    ("daily_log", {"entry": "Shipped version 2"}),
    ("notebook_write", {"path": "lists/reading.md", "content": "- Emma\n"}),
]


def with_version(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    needs = tool in ("memory_assert", "memory_tag", "memory_timeline_add")
    return {**arguments, "expected_version": 1} if needs else arguments


def everything(brain: Brain) -> dict[str, Any]:
    """The texts of all pages and notebook files, and all facts, without times and ids."""
    texts = brain.db.rows(
        "SELECT slug, version, frontmatter, compiled_truth, timeline FROM pages ORDER BY slug"
    )
    facts = brain.db.rows(
        "SELECT subject, predicate, object, valid_until, author FROM assertions ORDER BY id"
    )
    authors = brain.db.rows("SELECT page_id, version, author, source FROM page_authors ORDER BY 1, 2")
    root = brain.db.one("SELECT root_path FROM collections WHERE kind = 'notebook'")
    files = {}
    for path in sorted(Path(str(root[0])).rglob("*.md")) if root else []:
        files[path.name] = path.read_text()
    return {"pages": texts, "facts": facts, "authors": authors, "files": files}


@pytest.mark.parametrize(
    ("tool", "arguments"), WRITES, ids=[f"{tool}{n}" for n, (tool, _) in enumerate(WRITES)]
)
def test_a_write_in_review_mode_changes_nothing_until_it_is_accepted(
    reviewed: Brain, tool: str, arguments: dict[str, Any]
) -> None:
    before = everything(reviewed)
    answer = ask(reviewed, tool, **with_version(tool, arguments))
    assert answer["proposal"] == 1
    assert everything(reviewed) == before
    [shown] = run(reviewed, "review")["proposals"]
    assert shown["author"] == AGENT
    assert "\n+" in f"\n{shown['diff']}"
    assert run(reviewed, "status")["proposals"] == 1
    decided = run(reviewed, "review", id=1, accept=True)
    assert [row["outcome"] for row in decided["decided"]] == ["accepted"]
    assert everything(reviewed) != before
    assert run(reviewed, "review")["total"] == 0
    row = Proposals(reviewed.db).require(1)
    assert (row.decision, row.decided_by, row.diff, row.arguments) == ("accepted", "owner", "", "{}")


def test_a_rejected_proposal_leaves_no_text(reviewed: Brain) -> None:
    ask(reviewed, "memory_put", slug="people/bob", content="# Bob\n\nSecretive.")
    run(reviewed, "review", id=1, reject=True, note="Not true.")
    with pytest.raises(PageNotFound):
        run(reviewed, "get", slug="people/bob")
    row = Proposals(reviewed.db).require(1)
    assert (row.decision, row.note, row.diff) == ("rejected", "Not true.", "")
    with pytest.raises(InvalidArgument, match="was rejected"):
        run(reviewed, "review", id=1, accept=True)


def test_a_page_that_moved_on_is_not_overwritten_and_both_diffs_are_shown(reviewed: Brain) -> None:
    ask(reviewed, "memory_put", slug="people/alice", content="# Alice\n\nLives in Oslo.", expected_version=1)
    run(reviewed, "put", slug="people/alice", content="# Alice\n\nLives in Paris.\nHas a cat.")
    record = dispatch.call(reviewed, dispatch.find_command("review"), {"id": 1, "accept": True}, "owner")
    assert record.exit_status == 1
    [decision] = record.decided
    assert decision.outcome == "conflict"
    assert "-Has a cat." not in decision.diff
    assert "-Has a cat." in decision.diff_now
    assert "Has a cat." in run(reviewed, "get", slug="people/alice")["compiled_truth"]
    assert run(reviewed, "review")["total"] == 1


def test_an_addition_does_not_conflict_with_a_change_elsewhere_on_the_page(reviewed: Brain) -> None:
    ask(
        reviewed,
        *("memory_timeline_add",),
        slug="people/alice",
        date="2026-04-01",
        summary="Met.",
        expected_version=1,
    )
    run(reviewed, "put", slug="people/alice", content="# Alice\n\nLives in Rome.")
    assert run(reviewed, "review", yes=True)["decided"][0]["outcome"] == "accepted"
    page = run(reviewed, "get", slug="people/alice")
    assert "Rome" in page["compiled_truth"]
    assert "Met." in page["timeline"]


def test_an_invalid_write_fails_at_once(reviewed: Brain) -> None:
    with pytest.raises(VersionConflict):
        ask(reviewed, "memory_put", slug="people/alice", content="New.", expected_version=7)
    assert run(reviewed, "review")["total"] == 0


def test_the_owner_and_direct_mode_write_at_once(brain: Brain) -> None:
    run(brain, "config set", key="agent_writes", value="review")
    assert run(brain, "put", slug="a", content="One.")["version"] == 1
    run(brain, "config set", key="agent_writes", value="direct")
    assert ask(brain, "memory_put", slug="b", content="Two.")["version"] == 1


def test_a_client_or_a_collection_can_be_reviewed_alone(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    run(brain, "collection add", name="notes", path=str(tmp_path / "notes"))
    run(brain, "config set", key="agent_writes.client.codex", value="review")
    assert "proposal" in ask(brain, "memory_put", slug="a", content="One.")
    assert ask(brain, "memory_put", "cursor", slug="a", content="One.")["created"]
    run(brain, "config set", key="agent_writes.collection.notes", value="review")
    assert "proposal" in ask(brain, "memory_put", "cursor", slug="notes::b", content="Two.")
    assert list((tmp_path / "notes").iterdir()) == []
    run(brain, "config set", key="agent_writes.client.codex", value="direct")
    assert "proposal" in ask(brain, "memory_put", slug="notes::c", content="Three."), "review wins"
    with pytest.raises(InvalidArgument, match="direct, review"):
        run(brain, "config set", key="agent_writes.client.codex", value="never")
    with pytest.raises(NotFound):
        run(brain, "config set", key="agent_writes.collection.nowhere", value="review")


def test_only_the_author_finds_a_proposal(reviewed: Brain) -> None:
    ask(reviewed, "memory_put", slug="people/bob", content="# Bob\n\nKeeps bees in Bergen.")
    asked = ("keeps", "bees")
    assert [row.id for row, _ in Proposals(reviewed.db).search(AGENT, asked)] == [1]
    assert Proposals(reviewed.db).search("cursor", asked) == []
    run(reviewed, "review", yes=True)
    assert Proposals(reviewed.db).search(AGENT, asked) == []


def test_a_write_without_effect_makes_no_proposal(reviewed: Brain) -> None:
    record = ask(
        reviewed, "memory_put", slug="people/alice", content="# Alice\n\nLives in Paris.", expected_version=1
    )
    assert record["changed"] is False
    assert run(reviewed, "review")["total"] == 0


def test_an_agent_proposes_to_forget_a_page(brain: Brain) -> None:
    run(brain, "put", slug="people/alice", content="# Alice\n\nLives in Paris.")
    with pytest.raises(InvalidArgument, match="reason"):
        ask(brain, "memory_forget", slug="people/alice", reason=" ")
    ask(brain, "memory_forget", slug="people/alice", reason="She asked.")
    [shown] = run(brain, "review")["proposals"]
    assert "She asked." in shown["diff"]
    assert "-Lives in Paris." in shown["diff"]
    assert Proposals(brain.db).search(AGENT, ("alice", "live")) == [], "it has no text to show"
    assert run(brain, "get", slug="people/alice")
    record = dispatch.call(brain, dispatch.find_command("review"), {"id": 1, "accept": True}, "owner")
    assert record.decided[0].outcome == "accepted"
    text = render(record)
    assert "  Forgot people/alice." in text
    assert "  Searched for remains:" in text
    with pytest.raises(PageNotFound):
        run(brain, "get", slug="people/alice")
    assert brain.db.rows("SELECT * FROM proposals") == [], "the proposal held the text of the page"


def test_a_page_to_forget_is_named_by_its_unique_title_but_not_by_a_former_slug(brain: Brain) -> None:
    for slug in ("people/henning", "people/old", "people/a", "people/b"):
        title = {"people/henning": "Henning Voss", "people/old": "Old Name"}.get(slug, "Two")
        run(brain, "put", slug=slug, content=f"# {title}\n\nA person.")
    proposal = ask(brain, "memory_forget", slug="Henning Voss", reason="He asked.")
    assert "Erase people/henning" in run(brain, "review", id=proposal["proposal"])["proposals"][0]["diff"]
    run(brain, "rename", slug="people/old", new_slug="people/new")
    for name in ("Two", "Henning", "people/old", "old"):
        with pytest.raises((PageNotFound, VersionConflict)):
            ask(brain, "memory_forget", slug=name, reason="They asked.")
    assert run(brain, "review")["total"] == 1


def test_an_agent_that_may_forget_does_so_at_once(brain: Brain) -> None:
    run(brain, "put", slug="people/alice", content="Alice.")
    run(brain, "config set", key="agents_may", value="forget")
    assert ask(brain, "memory_forget", slug="people/alice", reason="She asked.")["done"]
    with pytest.raises(PageNotFound):
        run(brain, "get", slug="people/alice")
    with pytest.raises(InvalidArgument, match="forget, merge"):
        run(brain, "config set", key="agents_may", value="everything")


def test_an_agent_proposes_to_merge_pages(brain: Brain) -> None:
    run(brain, "put", slug="people/bob", content="# Bob\n\nA friend.")
    run(brain, "put", slug="people/robert", content="# Robert\n\nA colleague.")
    ask(
        brain,
        *("memory_merge",),
        slug="people/bob",
        other="people/robert",
        into="people/robert",
        reason="Same person.",
    )
    assert run(brain, "get", slug="people/bob")["title"] == "Bob"
    assert run(brain, "review", yes=True)["decided"][0]["outcome"] == "accepted"
    assert run(brain, "get", slug="people/bob")["slug"] == "people/robert"


@rules(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(st.sampled_from(WRITES), min_size=1, max_size=4, unique_by=lambda write: write[0]))
def test_accepting_equals_writing_directly(
    tmp_path: Path, settings: Settings, chosen: list[tuple[str, dict[str, Any]]]
) -> None:
    """The same writes, direct or proposed and accepted one after the other, leave the same memory."""
    results = []
    for mode in ("direct", "review"):
        folder = tmp_path / os.urandom(8).hex()
        folder.mkdir()
        ticks = itertools.count()
        clock = lambda ticks=ticks: 1_777_118_400.0 + next(ticks) / 1000  # noqa: E731
        path = settings._replace(db_path=str(folder / "memory.db"))
        with Brain(path, clock=clock, offset=lambda _: 0) as brain:
            brain.create(path.db_path)
            run(brain, "put", slug="people/alice", content="# Alice\n\nLives in Paris.")
            run(brain, "notebook init", path=str(folder / "notebook"))
            run(brain, "config set", key="agent_writes", value=mode)
            for tool, arguments in chosen:
                version = run(brain, "get", slug="people/alice")["version"]
                values = with_version(tool, arguments)
                if "expected_version" in values:
                    values = {**values, "expected_version": version}
                answer = ask(brain, tool, **values)
                assert ("proposal" in answer) == (mode == "review")
                if mode == "review":
                    assert run(brain, "review", yes=True)["decided"][0]["outcome"] == "accepted"
            results.append(everything(brain))
    assert results[0] == results[1]


def test_an_agent_proposes_to_remove_a_line(reviewed: Brain, tmp_path: Path) -> None:
    run(reviewed, "remember", content="The spare key of Arvid is with his sister Tone")
    run(reviewed, "remember", content="The boat key hangs in the hall")
    with pytest.raises(InvalidArgument, match="is required, or query"):
        ask(reviewed, "memory_forget", reason="He asked.")
    with pytest.raises(InvalidArgument, match="matches no sentence"):
        ask(reviewed, "memory_forget", query="the mountain hut", reason="He asked.")
    words = "spare key of Arvid with his sister Tone"
    answer = ask(reviewed, "memory_forget", query=words, reason="He asked.")
    assert "The spare key of Arvid is with his sister Tone" in answer["summary"]
    assert answer["slug"] == "knowledge/facts"
    [shown] = run(reviewed, "review")["proposals"]
    assert "-- The spare key of Arvid" in shown["diff"]
    assert run(reviewed, "review", id=shown["id"], accept=True)["decided"][0]["outcome"] == "accepted"
    texts = "".join(path.read_text() for path in (tmp_path / "notebook").rglob("*.md"))
    assert "Arvid" not in texts
    assert "boat key" in texts
    assert "Arvid" not in str(reviewed.db.rows("SELECT * FROM proposals")), "the proposal had the line"
    assert "Arvid" not in str(reviewed.db.rows("SELECT raw_bytes FROM raw_imports")), (
        "earlier versions had it"
    )


def test_an_accepted_removal_names_what_was_erased_and_what_remains(reviewed: Brain) -> None:
    text = "# Arvid hid the key at Tone\n\nArvid hid the spare key at Tone. It rained."
    run(reviewed, "put", slug="sources/arvid-hid-the-key", content=text)
    run(
        reviewed,
        "assert",
        slug="sources/arvid-hid-the-key",
        predicate="hid_at",
        object="Tone",
        subject="Arvid",
    )
    words = "Arvid hid the spare key at Tone."
    number = ask(reviewed, "memory_forget", query=words, reason="He asked.")["proposal"]
    arguments = {"id": number, "accept": True}
    record = dispatch.call(reviewed, dispatch.find_command("review"), arguments, "owner")
    shown = render(record)
    assert f"Erased from sources/arvid-hid-the-key: {words}" in shown
    assert "The title and slug of sources/arvid-hid-the-key still have words of it" in shown
    assert "It rained." in run(reviewed, "get", slug="sources/arvid-hid-the-key")["compiled_truth"]


def test_the_briefing_leaves_out_what_waits_to_be_erased(reviewed: Brain) -> None:
    run(reviewed, "put", slug="notes/a", content="# A\n\nArvid hid the spare key at Tone.")
    run(reviewed, "put", slug="notes/secret", content="# The secret of Gro\n\nGro is ill.")
    run(reviewed, "remember", content="Todo: ask Tone for the spare key of Arvid")
    assert "Arvid" in str(run(reviewed, "briefing")["todos"])
    assert "Gro" in str(run(reviewed, "briefing"))
    ask(reviewed, "memory_forget", query="ask Tone for the spare key of Arvid", reason="He asked.")
    ask(reviewed, "memory_forget", slug="notes/secret", reason="She asked.")
    after = run(reviewed, "briefing")
    assert after["review"]["total"] == 2
    assert "ask Tone" not in str(after)
    assert "Gro" not in str(after)


def test_proposals_that_build_on_each_other_are_accepted_in_order(reviewed: Brain) -> None:
    ask(reviewed, "memory_put", slug="notes/x", content="# X\n\nFirst.")
    ask(reviewed, "memory_put", slug="notes/x", append="Second.")
    outcomes = [decision["outcome"] for decision in run(reviewed, "review", yes=True)["decided"]]
    assert outcomes == ["accepted", "accepted"]
    assert run(reviewed, "get", slug="notes/x")["compiled_truth"] == "# X\n\nFirst.\n\nSecond."


# Conflicts of merged pages

CONFLICTING = """\
---
status: rival
conflicts:
  status:
    laptop: partner
---
# Alice

<!-- conflict: desktop -->
She lives in Oslo.
<!-- or: laptop -->
She lives in Rome.
<!-- end of conflict -->

The end of conflict is near.
"""


def test_conflicts_of_pages_are_listed_and_resolved_one_by_one(brain: Brain) -> None:
    run(brain, "put", slug="people/alice", content=CONFLICTING)
    run(brain, "put", slug="people/bob", content="He wrote about the end of conflict.")
    listed = run(brain, "review")
    assert [(row["page"], row["number"], row["part"], row["key"]) for row in listed["conflicts"]] == [
        ("people/alice", 1, "text", ""),
        ("people/alice", 2, "frontmatter", "status"),
    ]
    assert listed["conflicts"][0]["sides"] == [
        {"name": "desktop", "value": "She lives in Oslo."},
        {"name": "laptop", "value": "She lives in Rome."},
    ]
    text = render(dispatch.call(brain, dispatch.find_command("review"), {}, "owner"))
    assert "people/alice  conflict 1: text\n   desktop:\n     She lives in Oslo." in text
    with pytest.raises(NotFound, match="desktop, laptop, all"):
        run(brain, "review", slug="people/alice", id=1, keep="phone")
    with pytest.raises(NotFound, match="has 2"):
        run(brain, "review", slug="people/alice", id=3, keep="laptop")
    with pytest.raises(VersionConflict):
        run(brain, "review", slug="people/alice", keep="laptop", expected_version=7)
    with pytest.raises(InvalidArgument, match="slug"):
        run(brain, "review", keep="laptop")
    decided = run(brain, "review", slug="people/alice", id=2, keep="laptop", expected_version=1)
    assert (decided["resolved"], len(decided["conflicts"])) == (1, 1)
    decided = run(brain, "review", slug="people/alice", keep="desktop")
    assert (decided["resolved"], decided["conflicts"]) == (1, [])
    page = run(brain, "get", slug="people/alice")
    assert page["frontmatter"] == {"status": "partner"}
    assert page["compiled_truth"] == "# Alice\n\nShe lives in Oslo.\n\nThe end of conflict is near."
    assert run(brain, "review")["conflicts"] == []


def test_a_name_that_only_some_conflicts_have_resolves_those(brain: Brain) -> None:
    run(brain, "put", slug="people/alice", content=CONFLICTING)
    decided = run(brain, "review", slug="people/alice", keep="desktop")
    assert decided["resolved"] == 1
    assert [row["key"] for row in decided["conflicts"]] == ["status"]
    assert run(brain, "review", slug="people/alice", keep="all")["resolved"] == 1
    assert run(brain, "get", slug="people/alice")["frontmatter"] == {"status": ["rival", "partner"]}


def test_a_conflict_in_a_file_is_resolved_in_the_file(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "alice.md").write_text(CONFLICTING)
    run(brain, "collection add", name="notes", path=str(folder))
    assert [row["page"] for row in run(brain, "review")["conflicts"]] == ["notes::alice", "notes::alice"]
    run(brain, "review", slug="notes::alice", keep="laptop")
    assert (folder / "alice.md").read_text() == (
        "---\nstatus: partner\n---\n# Alice\n\nShe lives in Rome.\n\nThe end of conflict is near.\n"
    )


def test_a_conflict_about_the_page_itself_is_shown_and_closed(brain: Brain) -> None:
    run(
        brain,
        "put",
        slug="people/alice",
        content="---\nconflicts: {(deleted): {laptop: true}}\n---\n# Alice\n",
    )
    text = render(dispatch.call(brain, dispatch.find_command("review"), {}, "owner"))
    assert "people/alice  conflict 1: deleted\n   laptop: true\n" in text
    assert run(brain, "review", slug="people/alice", keep="all")["resolved"] == 1
    assert run(brain, "get", slug="people/alice")["frontmatter"] == {}
