"""Two pages made one, a page under another name, and pages that say the same: through the gate."""

import itertools
import os
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import (
    AlreadyExists,
    InvalidArgument,
    NotAllowed,
    PageMoved,
    PageNotFound,
    PageOfFolder,
    VersionConflict,
)
from quaid.model import timeline
from quaid.operations import dispatch

ROBERT = """---
tags: [a]
linkedin: rob
---
# Robert

Lives in Oslo.

---

- **2026-03-01** — C.
- **2026-01-01** — A.
"""
BOB = """---
tags: [b]
aliases: [Bobby]
linkedin: bob
---
# Bob

Lives in Oslo.

Likes tea, as [Mia](mia.md) does.

---

Free words.

- **2026-02-01** | call — B.
- **2026-01-01** — A.
"""
RIVER = "# River\n\n[[people/bob]], [[bob]], [[Bobby]], [b](../people/bob.md) and [[people/robert]]."


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def merge(brain: Brain, **more: Any) -> Any:
    names = {"slug": "people/robert", "other": "people/bob", "into": "people/robert"}
    return run(brain, "merge", **(names | {"yes": True} | more))


def sound(brain: Brain) -> bool:
    return len(run(brain, "validate").violations) == 0


def led_to(brain: Brain, slug: str) -> set[tuple[str, str]]:
    """What leads to a page: from where, as what."""
    rows = brain.db.rows(
        "SELECT f.slug, relationship FROM links JOIN pages AS f ON f.id = from_page_id"
        " JOIN pages AS t ON t.id = to_page_id WHERE t.slug = ? AND f.id <> t.id",
        (slug,),
    )
    return {(str(start), str(relationship)) for start, relationship in rows}


def unresolved(brain: Brain) -> int:
    return len(brain.db.rows("SELECT id FROM links WHERE to_page_id IS NULL"))


def add_link(
    brain: Brain, start: str, end: str, since: str | None, until: str | None, context: str = ""
) -> None:
    brain.db.write(
        lambda tx: tx.execute(
            "INSERT INTO links (from_page_id, to_page_id, relationship, valid_from, valid_until, context, created_at)"
            " SELECT f.id, t.id, 'works_at', ?, ?, ?, '2026-01-01T00:00:00Z' FROM pages AS f, pages AS t"
            " WHERE f.slug = ? AND t.slug = ?",
            (since, until, context, start, end),
        )
    )


def assert_fact(
    brain: Brain, slug: str, value: str, evidence: str = "", supersedes: int | None = None
) -> int:
    def work(tx: Any) -> int:
        tx.execute(
            "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, valid_from, valid_until,"
            " supersedes_id, evidence_text, created_at) SELECT id, 'Bob', 'bob', 'lives_in', ?, ?, '2026-01-01', ?,"
            " ?, '2026-01-01T00:00:00Z' FROM pages WHERE slug = ?",
            (value, "2020-01-01", supersedes, evidence, slug),
        )
        return int(tx.last_insert_rowid())

    return brain.db.write(work)


@pytest.fixture
def pair(brain: Brain) -> Brain:
    run(brain, "put", slug="people/robert", content=ROBERT)
    run(brain, "put", slug="people/bob", content=BOB)
    run(brain, "put", slug="companies/river", content=RIVER)
    return brain


def test_merge_shows_its_plan_and_waits_for_confirmation(pair: Brain) -> None:
    before = pair.db.rows("SELECT slug, version FROM pages ORDER BY id")
    shown = merge(pair, yes=False)
    assert (shown.done, shown.version, shown.other_version) == (False, 1, 1)
    assert (shown.entries, shown.tags, shown.aliases) == (1, ("b",), ("Bob", "Bobby"))
    assert shown.truth == "## From Bob\n\nLikes tea, as [Mia](mia.md) does."
    assert shown.if_agreed == {"yes": True, "expected_version": 1, "other_version": 1}
    assert pair.db.rows("SELECT slug, version FROM pages ORDER BY id") == before
    assert merge(pair, yes=False, dry_run=True).if_agreed == {}
    assert merge(pair, dry_run=True).done is False
    assert pair.db.rows("SELECT slug, version FROM pages ORDER BY id") == before


def test_a_merged_page_has_both_texts_and_the_old_slug_redirects(pair: Brain) -> None:
    merged = merge(pair, **merge(pair, yes=False).if_agreed)
    assert (merged.done, merged.version) == (True, 2)
    page = run(pair, "get", slug="people/bob")
    assert (page.slug, page.version, page.title, page.tags) == ("people/robert", 2, "Robert", ("a", "b"))
    assert page.frontmatter["aliases"] == ["Bob", "Bobby"]
    assert page.frontmatter["merged"] == {"people/bob": {"linkedin": "bob"}}
    assert page.compiled_truth.endswith("## From Bob\n\nLikes tea, as [Mia](mia.md) does.")
    assert page.timeline == (
        "- **2026-03-01** — C.\n- **2026-02-01** | call — B.\n- **2026-01-01** — A.\n\n### From Bob\n\nFree words."
    )
    assert [page.slug for page in run(pair, "list").pages] == ["people/robert", "companies/river"]
    assert sound(pair)


def test_links_in_texts_follow_a_merge_and_go_on_to_after_those_are_written_again(pair: Brain) -> None:
    assert merge(pair).moved.links_in_texts == 4
    assert led_to(pair, "people/robert") == {("companies/river", "mentions")}
    assert unresolved(pair) == 1  # [Mia](mia.md)
    run(pair, "put", slug="companies/river", content=RIVER + "\n\nMore.")
    run(pair, "put", slug="companies/lake", content="# Lake\n\n[[people/bob]] [[bob]] [[Bob]] [[Bobby]]")
    assert led_to(pair, "people/robert") == {("companies/river", "mentions"), ("companies/lake", "mentions")}
    assert unresolved(pair) == 1
    assert sound(pair)


def test_added_links_move_and_those_whose_time_overlaps_become_one(pair: Brain) -> None:
    add_link(pair, "people/robert", "companies/river", "2020-01-01", "2022-01-01", "as clerk")
    add_link(pair, "people/bob", "companies/river", "2021-01-01", "2023-01-01", "as cook")
    add_link(pair, "people/bob", "companies/river", "2024-01-01", None)
    add_link(pair, "companies/river", "people/bob", None, None)
    add_link(pair, "people/bob", "people/robert", None, None)
    moved = merge(pair).moved
    assert (moved.links, moved.links_joined, moved.links_between) == (3, 1, 1)
    rows = pair.db.rows(
        "SELECT f.slug, t.slug, valid_from, valid_until, context FROM links JOIN pages AS f ON f.id = from_page_id"
        " JOIN pages AS t ON t.id = to_page_id WHERE source_kind = 'programmatic' ORDER BY 1, 3"
    )
    assert rows == [
        ("companies/river", "people/robert", None, None, ""),
        ("people/robert", "companies/river", "2020-01-01", "2023-01-01", "as clerk; as cook"),
        ("people/robert", "companies/river", "2024-01-01", None, ""),
    ]
    assert sound(pair)


def test_facts_move_and_the_same_fact_is_there_once_with_the_words_of_both(pair: Brain) -> None:
    assert_fact(pair, "people/robert", "Oslo", "says the letter")
    old = assert_fact(pair, "people/bob", "Oslo", "says the call")
    assert_fact(pair, "people/bob", "Rome", supersedes=old)
    moved = merge(pair).moved
    assert (moved.assertions, moved.assertions_same) == (2, 1)
    rows = pair.db.rows(
        "SELECT p.slug, object, evidence_text, supersedes_id FROM assertions JOIN pages AS p ON p.id = page_id"
    )
    assert rows == [
        ("people/robert", "Oslo", "says the letter / says the call", None),
        ("people/robert", "Rome", "", 1),
    ]
    assert sound(pair)


def test_merge_keeps_raw_data_of_the_same_source_from_both_pages(pair: Brain) -> None:
    for slug, number in (("people/robert", 1), ("people/bob", 2)):
        run(pair, "raw", slug=slug, source="crm", data={"id": number})
        run(pair, "raw", slug=slug, source="web", data={"same": True})
    run(pair, "raw", slug="people/bob", source="mail", data={})
    moved = merge(pair).moved
    assert (moved.raw_data, moved.raw_data_renamed) == (2, ("crm (people/bob)",))
    kept = {item.source: item.data for item in run(pair, "raw", slug="people/robert").data}
    assert kept == {"crm": {"id": 1}, "crm (people/bob)": {"id": 2}, "web": {"same": True}, "mail": {}}


def test_contradictions_gaps_and_imports_move_along(pair: Brain) -> None:
    def work(tx: Any) -> None:
        tx.execute(
            "INSERT INTO contradictions (page_id, other_page_id, type, description, detected_at)"
            " SELECT r.id, b.id, 'cross_page', 'x', 'now' FROM pages AS r, pages AS b"
            " WHERE r.slug = 'companies/river' AND b.slug = 'people/bob'"
        )
        tx.execute(
            "INSERT INTO knowledge_gaps (query_hash, resolved_at, resolved_by_slug, detected_at, last_seen_at)"
            " VALUES ('x', 'now', 'people/bob', 'now', 'now')"
        )

    pair.db.write(work)
    moved = merge(pair).moved
    assert (moved.contradictions, moved.gaps) == (1, 1)
    assert pair.db.rows("SELECT resolved_by_slug FROM knowledge_gaps") == [("people/robert",)]
    assert pair.db.rows("SELECT p.slug FROM contradictions JOIN pages AS p ON p.id = other_page_id") == [
        ("people/robert",)
    ]


def test_an_import_does_not_undo_a_merge(brain: Brain, tmp_path: Any) -> None:
    folder = tmp_path / "notes"
    (folder / "people").mkdir(parents=True)
    (folder / "people" / "robert.md").write_text(ROBERT)
    (folder / "people" / "bob.md").write_text(BOB)
    run(brain, "import", folder=str(folder))
    assert merge(brain).moved.imports == 1
    text = run(brain, "get", slug="people/robert").compiled_truth
    run(brain, "import", folder=str(folder))
    (folder / "people" / "bob.md").write_text(BOB + "\nMore.\n")
    run(brain, "import", folder=str(folder))
    os.rename(folder, tmp_path / "moved")
    run(brain, "import", folder=str(tmp_path / "moved"))
    assert run(brain, "get", slug="people/robert").compiled_truth == text
    assert sound(brain)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"into": "people/mia"}, InvalidArgument),
        ({"other": "people/robert"}, InvalidArgument),
        ({"other": "people/nobody"}, PageNotFound),
        ({"expected_version": 7}, VersionConflict),
        ({"other_version": 7}, VersionConflict),
    ],
)
def test_a_wrong_merge_changes_nothing(pair: Brain, changed: dict[str, Any], error: type[Exception]) -> None:
    before = pair.db.rows("SELECT * FROM pages")
    with pytest.raises(error):
        merge(pair, **changed)
    assert pair.db.rows("SELECT * FROM pages") == before


def test_second_merge_changes_nothing(pair: Brain) -> None:
    merge(pair)
    with pytest.raises(PageMoved, match="it is now people/robert"):
        merge(pair)


def test_an_agent_cannot_merge(pair: Brain) -> None:
    with pytest.raises(NotAllowed):
        dispatch.call(
            pair,
            dispatch.find_command("merge"),
            {"slug": "people/robert", "other": "people/bob", "into": "people/bob", "yes": True},
            "write",
        )


def test_slugs_of_a_page_that_was_merged_lead_on_over_several_steps(pair: Brain) -> None:
    run(pair, "rename", slug="people/bob", new_slug="people/bobby")
    merge(pair, other="people/bobby")
    run(pair, "rename", slug="people/robert", new_slug="people/rob")
    for slug in ("people/bob", "people/bobby", "people/robert", "people/rob"):
        assert run(pair, "get", slug=slug).slug == "people/rob"
    assert led_to(pair, "people/rob") == {("companies/river", "mentions")}
    assert sound(pair)


ENTRIES = st.lists(
    st.tuples(
        st.dates(),
        st.sampled_from(["Met.", "Wrote.", "Left."]),
        st.sampled_from(["", "  And more.", "Free."]),
    ),
    max_size=5,
)


def _timeline(entries: list[tuple[str, str, str]]) -> str:
    return "\n".join(f"- **{day}** — {output}{more}" for day, output, more in entries)


@given(ENTRIES, ENTRIES)
@settings(max_examples=25)
def test_a_merge_keeps_every_timeline_entry(ours: list[Any], theirs: list[Any]) -> None:
    ticks = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        config = Settings(os.path.join(folder, "memory.db"), folder, folder)
        with Brain(config, clock=lambda: 1_777_118_400.0 + next(ticks)) as brain:
            brain.create(config.db_path)
            for slug, entries in (("people/robert", ours), ("people/bob", theirs)):
                run(brain, "put", slug=slug, content=f"# {slug}\n\n---\n\n{_timeline(entries)}\n")
            wanted = {
                (item.date, timeline.summary_hash(item.summary))
                for slug in ("people/robert", "people/bob")
                for item in timeline.parse(run(brain, "get", slug=slug).timeline)
            }
            merge(brain)
            rows = brain.db.rows("SELECT date, summary_hash FROM timeline_entries")
            assert set(rows) == wanted
            assert sound(brain)


# Renaming


def test_a_renamed_page_is_the_same_page_under_another_slug(pair: Brain) -> None:
    before = run(pair, "get", slug="people/bob")
    renamed = run(pair, "rename", slug="people/bob", new_slug="friends/old/bob")
    assert (renamed.slug, renamed.version, renamed.wing) == ("friends/old/bob", 2, "friends")
    after = run(pair, "get", slug="people/bob")
    assert (after.slug, after.uuid, after.created_at) == ("friends/old/bob", before.uuid, before.created_at)
    assert (after.wing, after.room, after.version) == ("friends", "old", 2)
    assert "[Mia](../../people/mia.md)" in after.compiled_truth
    assert [hit.slug for hit in run(pair, "search", query="tea").hits] == ["friends/old/bob"]
    assert sound(pair)


def test_links_follow_a_renamed_page_also_after_their_texts_are_written_again(pair: Brain) -> None:
    add_link(pair, "companies/river", "people/bob", None, None)
    run(pair, "rename", slug="people/bob", new_slug="people/zed")
    assert led_to(pair, "people/zed") == {("companies/river", "mentions"), ("companies/river", "works_at")}
    assert unresolved(pair) == 1
    run(pair, "put", slug="companies/river", content=RIVER + "\n\nMore.")
    assert led_to(pair, "people/zed") == {("companies/river", "mentions"), ("companies/river", "works_at")}
    assert unresolved(pair) == 1


def test_a_title_that_was_only_the_slug_in_words_follows(brain: Brain) -> None:
    run(brain, "put", slug="people/bob", content="Just words.")
    assert run(brain, "rename", slug="people/bob", new_slug="people/robert-dahl").title == "Robert Dahl"
    run(brain, "put", slug="people/mia", content="# Mia M.\n\nWords.")
    assert run(brain, "rename", slug="people/mia", new_slug="people/m").title == "Mia M."


def test_renaming_back_leaves_no_redirect_to_itself(pair: Brain) -> None:
    run(pair, "rename", slug="people/bob", new_slug="people/zed")
    run(pair, "rename", slug="people/zed", new_slug="people/bob")
    assert pair.db.rows("SELECT slug FROM redirects") == [("people/zed",)]
    assert run(pair, "get", slug="people/zed").slug == "people/bob"
    assert sound(pair)


def test_front_matter_that_names_the_slug_names_the_new_one(brain: Brain) -> None:
    run(brain, "put", slug="people/bob", content="---\nslug: people/bob\n---\n# Bob")
    run(brain, "rename", slug="people/bob", new_slug="people/zed")
    assert run(brain, "get", slug="people/zed").frontmatter == {"slug": "people/zed"}


def test_a_new_slug_must_be_free(pair: Brain) -> None:
    with pytest.raises(AlreadyExists):
        run(pair, "rename", slug="people/bob", new_slug="people/robert")
    with pytest.raises(InvalidArgument):
        run(pair, "rename", slug="people/bob", new_slug="people/bob")
    run(pair, "rename", slug="people/robert", new_slug="people/rob")
    with pytest.raises(PageMoved, match="it is now people/rob"):
        run(pair, "rename", slug="people/bob", new_slug="people/robert")
    with pytest.raises(PageMoved):
        run(pair, "rename", slug="people/robert", new_slug="people/x")
    pair.db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'now' WHERE slug = 'people/bob'"))
    with pytest.raises(AlreadyExists, match="quarantined"):
        run(pair, "rename", slug="people/rob", new_slug="people/bob")


def test_an_old_slug_is_not_written_over_unless_it_was_freed(pair: Brain) -> None:
    run(pair, "rename", slug="people/bob", new_slug="people/zed")
    for scope in ("owner", "write"):
        with pytest.raises(PageMoved, match="people/zed"):
            dispatch.call(
                pair, dispatch.find_tool("memory_put"), {"slug": "people/bob", "content": "# New"}, scope
            )
    run(pair, "rename", slug="people/zed", new_slug="people/bob")
    run(pair, "rename", slug="people/bob", new_slug="people/zed2", free_old_slug=True)
    assert run(pair, "put", slug="people/bob", content="# New").created
    assert run(pair, "get", slug="people/bob").title == "New"
    assert sound(pair)


def test_the_old_slug_of_a_hidden_page_is_free(pair: Brain) -> None:
    run(pair, "rename", slug="people/bob", new_slug="people/zed")
    pair.db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'now' WHERE slug = 'people/zed'"))
    with pytest.raises(PageNotFound):
        run(pair, "get", slug="people/bob")
    assert run(pair, "put", slug="people/bob", content="# New").created
    assert pair.db.rows("SELECT * FROM redirects") == []
    assert sound(pair)


def test_a_page_of_a_folder_is_moved_and_removed_as_a_file(pair: Brain) -> None:
    def work(tx: Any) -> None:
        tx.execute(
            "INSERT INTO collections (id, name, kind, root_path, created_at, updated_at)"
            " VALUES (7, 'work', 'markdown', '/nowhere', 'now', 'now')"
        )
        tx.execute("UPDATE pages SET collection_id = 7 WHERE slug LIKE 'people/%'")

    pair.db.write(work)
    for command, more in (
        ("merge", {"other": "work::people/robert", "into": "work::people/bob", "yes": True}),
        ("rename", {"new_slug": "people/zed"}),
        ("forget", {"yes": True}),
    ):
        with pytest.raises(PageOfFolder, match="collection work"):
            run(pair, command, slug="work::people/bob", **more)
    pair.db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'now' WHERE slug = 'people/bob'"))
    assert run(pair, "forget", slug="work::people/bob", yes=True).clean


def test_an_agent_renames_only_what_it_has_read(pair: Brain) -> None:
    wanted = {"slug": "people/bob", "new_slug": "people/zed"}
    with pytest.raises(InvalidArgument, match="expected_version"):
        dispatch.call(pair, dispatch.find_tool("memory_rename"), wanted, "write")
    with pytest.raises(VersionConflict):
        dispatch.call(pair, dispatch.find_tool("memory_rename"), wanted | {"expected_version": 9}, "write")
    assert (
        dispatch.call(
            pair, dispatch.find_tool("memory_rename"), wanted | {"expected_version": 1}, "write"
        ).version
        == 2
    )


def test_marks_may_be_put_on_a_page_by_its_old_slug(pair: Brain) -> None:
    run(pair, "rename", slug="people/bob", new_slug="people/zed")
    assert run(pair, "tag", slug="people/bob", tag="new").slug == "people/zed"
    assert run(pair, "raw", slug="people/bob", source="crm", data={}).slug == "people/zed"
    assert sound(pair)


def test_an_import_goes_on_to_feed_a_renamed_page(brain: Brain, tmp_path: Any) -> None:
    folder = tmp_path / "notes" / "people"
    folder.mkdir(parents=True)
    (folder / "bob.md").write_text(BOB)
    run(brain, "import", folder=str(tmp_path / "notes"))
    run(brain, "rename", slug="people/bob", new_slug="people/zed")
    (folder / "bob.md").write_text(BOB.replace("tea", "coffee"))
    run(brain, "import", folder=str(tmp_path / "notes"))
    os.rename(tmp_path / "notes", tmp_path / "moved")
    run(brain, "import", folder=str(tmp_path / "moved"))
    assert [page.slug for page in run(brain, "list").pages] == ["people/zed"]
    assert "coffee" in run(brain, "get", slug="people/zed").compiled_truth
    assert sound(brain)


# Pages that say the same


@pytest.fixture
def alike(brain: Brain) -> Brain:
    text = (
        "The harbour of Bergen has seven piers, and each of them is named after a ship that never came home. "
    )
    run(brain, "put", slug="concepts/harbour", content=f"# Harbour\n\n{text * 2}It is cold.")
    run(brain, "put", slug="notes/piers", content=f"# Piers\n\n{text * 2}")
    run(brain, "put", slug="people/bob", content="# Bob Dahl\n\nCooks.")
    run(brain, "put", slug="people/robert", content="---\naliases: [Bob Dahl]\n---\n# Robert\n\nSails far.")
    run(brain, "put", slug="concepts/overview", content="# Overview\n\nOne.")
    run(brain, "put", slug="concepts/b/overview", content="# Overview\n\nAnother thing altogether.")
    return brain


def test_dupes_are_listed_with_a_reason_and_the_command_that_merges_them(alike: Brain) -> None:
    result = run(alike, "dupes")
    assert [(pair.slug, pair.other, pair.why) for pair in result.pairs] == [
        ("concepts/harbour", "notes/piers", ("text",)),
        ("people/robert", "people/bob", ("name 'bob dahl'",)),
    ]
    assert (result.total, result.pages) == (2, 6)
    assert result.pairs[0].likeness >= 0.8
    assert result.pairs[0].command == "quaid merge concepts/harbour notes/piers --into concepts/harbour"
    assert run(alike, "dupes", limit=1).total == 2


def test_the_command_that_dupes_shows_makes_them_one(alike: Brain) -> None:
    for pair in run(alike, "dupes").pairs:
        run(alike, "merge", slug=pair.slug, other=pair.other, into=pair.slug, yes=True)
    assert run(alike, "dupes").pairs == ()
    assert sound(alike)


def test_a_senseless_threshold_is_refused(brain: Brain) -> None:
    for threshold in (0.1, 1.5):
        with pytest.raises(InvalidArgument, match=r"0\.5 to 1"):
            run(brain, "dupes", threshold=threshold)
    assert run(brain, "dupes").pairs == ()


def test_merge_keeps_the_last_version_of_the_kept_page_and_its_authors(brain: Brain) -> None:
    for number in (1, 2, 3):
        text = "\n\n".join(f"Line {line}." for line in range(1, number + 1))
        version = number - 1 or None
        run(brain, "put", slug="people/a", content=f"# A\n\n{text}", expected_version=version)
    run(brain, "put", slug="people/b", content="# B\n\nAnother line.")
    run(brain, "merge", slug="people/a", other="people/b", into="people/a", yes=True)
    assert [version.version for version in run(brain, "history", slug="people/a").versions] == [4, 3, 2, 1]
    lines = {line.text: line.version for line in run(brain, "blame", slug="people/a").lines}
    assert (lines["Line 1."], lines["Line 3."], lines["Another line."]) == (1, 3, 4)
    run(brain, "revert", slug="people/a", to=3)
    assert "Another line" not in run(brain, "get", slug="people/a").compiled_truth
