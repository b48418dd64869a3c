"""Ingest: one transaction for a source and everything that it changes; evidence once, truth when it is new."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import (
    AlreadyExists,
    ContentChanged,
    FileTrouble,
    InvalidArgument,
    InvalidDate,
    InvalidFrontMatter,
    InvalidSlug,
    InvalidType,
    LinkOverlaps,
    NoSuchVersion,
    NotAllowed,
    PageExists,
    PageMoved,
    QuaidError,
    TooLarge,
    VersionConflict,
    VersionConflicts,
)
from quaid.operations import dispatch
from quaid.operations.registry import Scope
from quaid.storage import checks
from quaid.storage.history import IngestSource

ALICE = """# Alice

Founder of River, which builds tidal batteries in the fjord.

---

- **2026-04-14** | fair — Met."""
CALL = "Alice said that she moved to Oslo. Bo joined River in May."


def call(brain: Brain, tool: str, scope: Scope = "write", **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool("memory_" + tool), arguments, scope)


def ingest(
    brain: Brain, *pages: dict[str, Any], content: str = CALL, ref: str = "meeting/17", force: bool = False
) -> Any:
    return call(
        brain,
        "ingest",
        content=content,
        source_type="meeting",
        source_ref=ref,
        pages=list(pages),
        force=force,
    )


def ingest_file(brain: Brain, file: Path | str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command("ingest"), {"file": str(file), **arguments}, "owner")


def rows(brain: Brain) -> dict[str, int]:
    tables = "pages links assertions tags timeline_entries raw_imports import_manifest import_files".split()
    tables.append("ingest_log")
    return {name: brain.db.rows(f"SELECT count(*) FROM {name}")[0][0] for name in tables}


def moved(version: int = 1) -> dict[str, Any]:
    """Alice moved, and Bo came: what the call says about them."""
    return {
        "slug": "people/alice",
        "expected_version": version,
        "timeline_entries": [{"date": "2026-04-25", "summary": "Moved to Oslo", "detail": "With two cats."}],
        "links": [{"to": "people/bo", "relationship": "knows", "valid_from": "2026-01-01"}],
        "assertions": [{"predicate": "lives_in", "object": "Oslo", "valid_from": "2026-04-25"}],
        "tags": ["mover"],
    }


BO = {
    "slug": "people/bo",
    "content": "# Bo\n\nSails on Sundays.",
    "links": [{"to": "people/alice", "relationship": "knows"}],
    "tags": ["sailor"],
}


@pytest.fixture
def alice(brain: Brain) -> Brain:
    call(brain, "put", slug="people/alice", content=ALICE)
    return brain


def test_a_source_and_everything_it_changes_come_in_at_once(alice: Brain) -> None:
    done = ingest(alice, moved(), BO)
    changed, made = done.pages
    assert (changed.outcome, changed.version, changed.truth) == ("updated", 2, "")
    assert (changed.timeline_entries, changed.tags, changed.links, changed.assertions) == (1, 1, 1, 1)
    assert (made.outcome, made.version, made.truth, made.links) == ("created", 1, "written", 1)
    page = call(alice, "get", slug="people/alice")
    assert "- **2026-04-25** | meeting/17 — Moved to Oslo\n  With two cats." in page.timeline
    assert (page.tags, page.version) == (("mover",), 2)
    links = [(link.from_slug, link.to_slug) for link in call(alice, "links", slug="people/alice").links]
    assert ("people/alice", "people/bo") in links
    assert checks.validate(alice.db) == []


def test_a_page_that_comes_later_in_the_call_can_be_linked(brain: Brain) -> None:
    done = ingest(
        brain,
        {"slug": "a", "content": "# A", "links": ["b"]},
        {"slug": "b", "content": "# B", "links": ["a"]},
    )
    assert [page.links for page in done.pages] == [1, 1]


def test_the_same_source_again_changes_nothing_and_says_so(alice: Brain) -> None:
    first = ingest(alice, moved(), BO)
    before = rows(alice)
    again = ingest(alice, moved(), BO)
    assert (again.written, again.import_id, again.known_since is None) == (False, first.import_id, False)
    assert again.known_pages == ("people/alice", "people/bo")
    assert rows(alice) == before


def test_one_raw_import_is_active_for_each_ingested_page(brain: Brain, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.md").write_text(f"# Notes of {folder}")
        ingest_file(brain, tmp_path / folder / "notes.md", slug=f"sources/{folder}")
    (tmp_path / "a" / "notes.md").write_text("# Notes of a\n\nMore.")
    ingest_file(brain, tmp_path / "a" / "notes.md", slug="sources/a")
    assert active(brain, "sources/a") == [b"# Notes of a\n\nMore."]
    assert active(brain, "sources/b") == [b"# Notes of b"]
    assert [version.version for version in call(brain, "history", slug="sources/a").versions] == [2, 1]


def test_another_source_with_the_same_words_is_another_source(alice: Brain) -> None:
    ingest(alice, BO)
    assert ingest(alice, ref="meeting/18").written
    assert ingest(alice, ref="meeting/17", content=CALL + " Later more.").written


def test_replaying_by_force_duplicates_nothing(alice: Brain) -> None:
    ingest(alice, moved(), BO)
    before = rows(alice)
    again = ingest(alice, moved(2), {**BO, "expected_version": 1}, force=True)
    assert [page.outcome for page in again.pages] == ["unchanged", "unchanged"]
    assert [page.version for page in again.pages] == [2, 1]
    after = rows(alice)
    log = ("import_manifest", "import_files", "ingest_log")
    assert {name: after[name] - before[name] for name in after} == {name: int(name in log) for name in after}
    assert checks.validate(alice.db) == []


def test_a_conflict_names_every_page_and_writes_nothing(alice: Brain) -> None:
    call(alice, "put", slug="people/bo", content="# Bo")
    before = rows(alice)
    with pytest.raises(VersionConflicts) as caught:
        ingest(
            alice,
            {"slug": "concepts/tides", "content": "# Tides"},
            moved(7),
            BO,
            {"slug": "people/cy", "content": "# Cy", "expected_version": 2},
        )
    pairs = [(conflict["slug"], conflict["current_version"]) for conflict in caught.value.facts["conflicts"]]
    assert pairs == [("people/alice", 1), ("people/bo", 1), ("people/cy", 0)]
    assert "people/alice is at version 1" in str(caught.value)
    assert rows(alice) == before


def test_a_page_that_was_renamed_is_named_by_its_new_slug(alice: Brain) -> None:
    ingest(alice, BO)
    arguments = {"slug": "people/bo", "new_slug": "people/bo-berg"}
    dispatch.call(alice, dispatch.find_command("rename"), arguments, "owner")
    with pytest.raises(PageMoved, match="it is now people/bo-berg"):
        ingest(alice, {**BO, "expected_version": 1}, ref="m/2")
    linked = {"slug": "people/alice", "expected_version": 1, "links": [{"to": "people/bo", "type": "likes"}]}
    assert ingest(alice, linked, ref="m/3").pages[0].links == 1  # a link follows


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (moved(3), VersionConflict),
        ({"slug": "people/alice", "content": "# Alice"}, PageExists),
        ({"slug": "people/alice", "content": "# Alice", "content_hash": "0123456789ab"}, ContentChanged),
        ({"slug": "people/new", "content": "# New", "content_hash": "0123456789ab"}, NoSuchVersion),
        ({"slug": "people/new", "content": "# New", "expected_version": 1}, NoSuchVersion),
        ({"slug": "people/new"}, InvalidArgument),
        ({"slug": "people/new", "tags": ["x"]}, InvalidArgument),
        ({"slug": "people/new", "content": "---\ntype: [spaceship]\n---\nx"}, InvalidType),
        ({"slug": "people/new", "content": "---\na: [\n---\nx"}, InvalidFrontMatter),
        ({"slug": "people/new", "compiled_truth": "a\n\n---\n\nb"}, InvalidArgument),
        ({**moved(), "links": [{"to": "people/alice"}]}, InvalidArgument),
        ({**moved(), "timeline_entries": [{"date": "2026-13-01", "summary": "x"}]}, InvalidDate),
        ({**moved(), "links": [], "assertions": [{"predicate": "lives_in"}]}, InvalidArgument),
        ({**moved(), "links": [], "assertions": [{"object": "Oslo"}]}, InvalidArgument),
    ],
)
def test_any_error_leaves_nothing(alice: Brain, page: dict[str, Any], error: type[QuaidError]) -> None:
    before = rows(alice)
    with pytest.raises(error):
        ingest(alice, {"slug": "concepts/first", "content": "# First"}, page)
    assert rows(alice) == before


def test_a_link_to_a_page_that_does_not_exist_is_skipped_and_the_rest_is_written(alice: Brain) -> None:
    links = [{"to": "people/nobody"}, {"to": "Bad Slug"}, {"to": "Bo Berg", "relationship": "knows"}]
    done = ingest(
        alice,
        {"slug": "people/bo", "content": "# Bo Berg\n\nBakes."},
        {"slug": "concepts/bread", "content": "# Bread", "links": links},
    )
    assert [(page.outcome, page.links) for page in done.pages] == [("created", 0), ("created", 1)]
    assert [(link.page, link.slug) for link in done.links_skipped] == [
        ("concepts/bread", "people/nobody"),
        ("concepts/bread", "Bad Slug"),
    ]
    assert all(link.why for link in done.links_skipped)
    assert f"No link from concepts/bread to people/nobody: {done.links_skipped[0].why}" in render(done)


def test_invalid_front_matter_names_the_page_and_the_remedy(alice: Brain) -> None:
    good, bad = {"slug": "concepts/a", "content": "# A"}, "---\ntitle: Plan: phase 2\n---\n# Plan"
    with pytest.raises(
        InvalidFrontMatter, match=r"concepts/plan, line 2: .*a value with ': ' in it needs quotes"
    ):
        ingest(alice, good, {"slug": "concepts/plan", "content": bad})


def test_pages_of_the_same_ingest_are_not_similar(alice: Brain) -> None:
    ingest(alice, {"slug": "people/bo", "content": "---\ntype: person\n---\n# Bo Berg\n\nBakes."})
    text = "---\ntype: person\n---\n# Bo Bergg\n\nBakes."
    pages = [{"slug": f"people/{slug}", "content": text} for slug in ("b", "bo-bergg")]
    done = call(alice, "ingest", content="Two.", type="mail", source="m/2", pages=pages)
    assert done.similar == ("people/bo",)


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": " "},
        {"source_type": ""},
        {"source_type": "x" * 200},
        {"source_ref": "\n"},
        {"source_ref": "x" * 1001},
        {"pages": [5]},
    ],
)
def test_a_source_needs_a_name_and_words(brain: Brain, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        call(brain, "ingest", **{"content": CALL, "source_type": "meeting", "source_ref": "m/1", **arguments})


def test_a_source_without_pages_is_a_page_that_is_found_shown_and_listed(brain: Brain) -> None:
    done = ingest(brain)
    assert (done.written, done.pages, done.source_page) == (True, (), "sources/meeting/17")
    page = call(brain, "get", slug=done.source_page)
    assert (page.compiled_truth, page.type, page.title) == (CALL, "meeting", CALL)
    assert (page.frontmatter["source_type"], page.frontmatter["source_ref"]) == ("meeting", "meeting/17")
    assert [hit.slug for hit in call(brain, "search", query="Bo joined River").hits] == [done.source_page]
    assert [result.slug for result in call(brain, "query", question="Who joined River?").results] == [
        done.source_page
    ]
    assert [page.slug for page in call(brain, "list", type="meeting").pages] == [done.source_page]
    again = ingest(brain)
    assert (again.written, again.source_page, again.known_pages) == (False, done.source_page, ())
    assert checks.validate(brain.db) == []


def test_pages_that_come_with_a_source_that_is_known_are_written(alice: Brain) -> None:
    first = ingest(alice)
    done = ingest(alice, moved(), BO)
    assert (done.written, done.source_page) == (True, first.source_page)
    assert [page.outcome for page in done.pages] == ["updated", "created"]
    kept = alice.db.rows("SELECT is_active FROM raw_imports WHERE raw_bytes = ?", (CALL.encode(),))
    assert kept == [(1,)]
    again = ingest(alice, moved(), BO)
    assert (again.written, again.known_pages) == (False, ("people/alice", "people/bo"))


def test_source_changes_a_page_again_after_reading_it(alice: Brain) -> None:
    ingest(alice, {**moved(), "links": []})
    more = {"slug": "people/alice", "timeline_entries": [{"date": "2026-04-26", "summary": "Unpacked"}]}
    stale = ingest(alice, {**more, "expected_version": 1}, BO)
    assert (stale.written, stale.known_pages) == (True, ("people/alice",))
    assert [page.slug for page in stale.pages] == ["people/bo"]
    fresh = ingest(alice, {**more, "expected_version": 2})
    assert [(page.slug, page.timeline_entries) for page in fresh.pages] == [("people/alice", 1)]


def test_the_page_of_a_source_is_forgotten_like_any_other(alice: Brain) -> None:
    alone = {**moved(), "links": []}
    done = ingest(alice, alone, content=f"{CALL} There was a flugelhorn.")
    assert dispatch.call(
        alice, dispatch.find_command("forget"), {"slug": done.source_page, "yes": True}, "owner"
    ).clean
    assert alice.db.rows("SELECT 1 FROM raw_imports WHERE raw_bytes LIKE '%flugelhorn%'") == []
    assert call(alice, "search", query="flugelhorn").hits == ()
    again = ingest(alice, alone, content=f"{CALL} There was a flugelhorn.")
    assert (again.written, again.source_page, again.known_pages) == (
        True,
        done.source_page,
        ("people/alice",),
    )


def active(brain: Brain, slug: str) -> list[bytes]:
    rows = brain.db.rows(
        "SELECT raw_bytes FROM raw_imports JOIN pages AS p ON p.id = page_id WHERE is_active AND p.slug = ?",
        (slug,),
    )
    return [data for (data,) in rows]


def test_a_new_edition_of_a_source_replaces_its_text_and_another_text_gets_a_page_beside_it(
    brain: Brain,
) -> None:
    first = ingest(brain).source_page
    edition = f"{CALL} Later more."
    assert ingest(brain, content=edition).source_page == first
    assert call(brain, "get", slug=first).compiled_truth == edition
    assert active(brain, first) == [edition.encode()]
    assert not ingest(brain).written  # the first edition again
    other = ingest(brain, content="Something else entirely, about cranes.").source_page
    assert other == "sources/meeting/17-2"
    call(brain, "put", slug=first, compiled_truth="Edited by hand.", expected_version=2)
    third = ingest(brain, content=f"{edition} And more.").source_page
    assert third == "sources/meeting/17-3"
    assert call(brain, "get", slug=first).compiled_truth == "Edited by hand."
    for slug in (first, other, third):
        assert len(active(brain, slug)) == 1
    assert checks.validate(brain.db) == []


@pytest.mark.parametrize(
    ("ref", "slug"),
    [
        ("https://example.org/a b?c=1", "sources/example-org/a-b-c-1"),
        ("sources/paper", "sources/paper"),
        ("/home/ann/../x.md", "sources/home/ann/x/x"),
        ("Ärger", "sources/arger"),
        ("://", "sources/x"),
        ("x" * 900, None),
    ],
)
def test_every_reference_makes_a_slug(brain: Brain, ref: str, slug: str | None) -> None:
    made = ingest(brain, ref=ref).source_page
    assert made.startswith("sources/")
    assert slug in (made, None)


@pytest.mark.parametrize(
    ("content", "truth", "timeline"),
    [
        ("---\ntitle: [\n---\nText.", "Text.", ""),
        ("---\ntype: person\nslug: people/alice\naliases: [Alice]\n---\nText.", "Text.", ""),
        ("One.\n\n---\n\nTwo.", "One.", "Two."),
        ("---\na: 1\n---\n", "```\n---\na: 1\n---\n```", ""),
        ("\ufeffText.\r\nMore.", "Text.\nMore.", ""),
    ],
)
def test_any_text_can_be_a_source(alice: Brain, content: str, truth: str, timeline: str) -> None:
    page = call(alice, "get", slug=ingest(alice, content=content).source_page)
    assert (page.slug, page.type, page.compiled_truth, page.timeline) == (
        "sources/meeting/17",
        "meeting",
        truth,
        timeline,
    )
    assert "aliases" not in page.frontmatter
    assert not ingest(alice, content=content).written


def test_sources_of_an_earlier_quaid_get_their_pages(brain: Brain) -> None:
    def as_before(tx: Any) -> None:
        for number, words in enumerate(("Ann sold the crane.", "Bo bought a boat.")):
            data = words.encode()
            source = IngestSource("meeting", f"m/{number}", f"m/{number}.md", data, sha256(data).hexdigest())
            source.keep(tx, import_id=f"i{number}", now="2026-01-01T00:00:00Z", page_ids=[])

    brain.db.write(as_before)
    findings = {
        check.name: check
        for check in dispatch.call(brain, dispatch.find_command("doctor"), {}, "owner").checks
    }
    assert findings["sources"].remedy == "quaid adopt-sources"
    done = ingest(brain, content="Ann sold the crane.", ref="m/0")
    assert (done.written, done.source_page) == (True, "sources/m/0")
    assert dispatch.call(brain, dispatch.find_command("adopt-sources"), {}, "owner").value == ("sources/m/1",)
    assert dispatch.call(brain, dispatch.find_command("adopt-sources"), {}, "owner").value == ()
    assert [hit.slug for hit in call(brain, "search", query="boat").hits] == ["sources/m/1"]
    assert dispatch.call(
        brain, dispatch.find_command("forget"), {"slug": "sources/m/0", "yes": True}, "owner"
    ).clean
    assert brain.db.rows("SELECT 1 FROM raw_imports WHERE raw_bytes LIKE '%crane%'") == []
    assert checks.validate(brain.db) == []


def test_a_reader_cannot_ingest(brain: Brain) -> None:
    with pytest.raises(NotAllowed):
        call(brain, "ingest", "read", content=CALL, source_type="meeting", source_ref="m/1")


def test_a_truth_that_says_the_same_is_skipped_and_evidence_is_not(alice: Brain) -> None:
    truth = "# Alice\n\nFounder of River, which builds tidal batteries in the Fjord."
    (page,) = ingest(alice, {**moved(), "compiled_truth": truth, "links": []}).pages
    assert page.truth == "same words"
    assert (page.timeline_entries, page.assertions, page.version) == (1, 1, 2)
    assert "in the fjord." in call(alice, "get", slug="people/alice").compiled_truth
    (forced,) = ingest(alice, {**moved(2), "compiled_truth": truth, "links": []}, force=True).pages
    assert (forced.truth, forced.timeline_entries) == ("written", 0)
    assert call(alice, "get", slug="people/alice").compiled_truth == truth


def test_a_truth_that_says_something_new_is_written(alice: Brain) -> None:
    truth = "# Alice\n\nLives in Oslo with two cats since she left the fjord."
    (page,) = ingest(alice, {**moved(), "compiled_truth": truth, "links": []}).pages
    assert page.truth == "written"
    assert call(alice, "get", slug="people/alice").compiled_truth == truth


def test_a_whole_page_never_takes_from_a_timeline(alice: Brain) -> None:
    truth = "---\ntags: [new]\n---\n# Alice\n\nAll of this is new and different now."
    content = f"{truth}\n\n---\n\n- **2026-05-01** — Left."
    (page,) = ingest(alice, {"slug": "people/alice", "expected_version": 1, "content": content}).pages
    after = call(alice, "get", slug="people/alice")
    assert [entry.summary for entry in call(alice, "timeline", slug="people/alice").entries] == [
        "Left.",
        "Met.",
    ]
    assert (page.timeline_entries, page.tags, after.tags) == (1, 1, ("new",))


def test_a_whole_page_names_the_keys_and_tags_that_it_leaves_out(alice: Brain) -> None:
    keys = {"score": 3, "tags": ["a", "b"]}
    call(alice, "put", slug="people/alice", frontmatter=keys, expected_version=1)
    content = "---\ntags: [b]\n---\n# Alice\n\nAll of this is new and different now."
    (page,) = ingest(alice, {"slug": "people/alice", "expected_version": 2, "content": content}).pages
    assert (page.keys_removed, page.tags_removed) == (("score",), ("a",))
    truth = "# Alice\n\nNew again, with what was there."
    (page,) = ingest(alice, {"slug": "people/alice", "expected_version": 3, "compiled_truth": truth}).pages
    assert (page.keys_removed, page.tags_removed) == ((), ())


def test_a_duplicate_whole_page_still_brings_its_evidence(alice: Brain) -> None:
    content = (
        ALICE.replace("# Alice", "---\ntags: [new]\ncity: Oslo\n---\n# ALICE") + "\n- **2026-05-01** — Left."
    )
    (page,) = ingest(alice, {"slug": "people/alice", "expected_version": 1, "content": content}).pages
    after = call(alice, "get", slug="people/alice")
    assert page.truth == "same words"
    assert (page.timeline_entries, after.tags, after.frontmatter) == (1, ("new",), {"tags": ["new"]})
    assert after.compiled_truth.startswith("# Alice")


def test_appended_lines_are_there_once(alice: Brain) -> None:
    page = {
        "slug": "people/alice",
        "expected_version": 1,
        "timeline_append": "- **2026-05-01** | call — Left.",
    }
    ingest(alice, page)
    (again,) = ingest(alice, {**page, "expected_version": 2}, force=True).pages
    assert again.outcome == "unchanged"


def test_a_link_that_was_closed_since_stays_closed_in_a_replay(alice: Brain) -> None:
    ingest(alice, moved(), BO)
    link = next(
        link for link in call(alice, "links", slug="people/alice").links if link.from_slug == "people/alice"
    )
    call(alice, "link_close", link_id=link.id, valid_until="2026-06-01", expected_version=2)
    (page,) = ingest(alice, moved(3), force=True).pages
    assert (page.links, page.outcome) == (0, "unchanged")


def test_an_open_link_gets_its_end(alice: Brain) -> None:
    ingest(alice, moved(), BO)
    ended = {
        "to": "people/bo",
        "relationship": "knows",
        "valid_from": "2026-01-01",
        "valid_until": "2026-06-01",
    }
    (page,) = ingest(
        alice, {"slug": "people/alice", "expected_version": 2, "links": [ended]}, ref="m/2"
    ).pages
    assert (page.links, page.version, page.outcome) == (1, 3, "updated")
    with pytest.raises(LinkOverlaps):
        ingest(
            alice,
            {"slug": "people/alice", "expected_version": 3, "links": [{**ended, "valid_from": "2026-02-01"}]},
            ref="m/3",
        )


def test_an_approved_gap_that_is_answered_is_closed(alice: Brain) -> None:
    question = "Who sails on Sundays with Bo?"
    gap = call(alice, "gap", query_text=question).gap
    call(alice, "gap_approve", gap_id=gap.id, query_text=question, sensitivity="external", approver="Mira")
    done = ingest(alice, {"slug": "people/ida", "content": "# Ida\n\nIda sails with Bo on Sundays."})
    assert done.gaps_resolved == (gap.id,)
    assert call(alice, "gaps", include_resolved=True).gaps[0].resolved_by_slug == "people/ida"


def test_the_source_is_listed_and_given_back_byte_for_byte(alice: Brain, tmp_path: Path) -> None:
    done = ingest(alice, BO, content="Übung\r\nmacht\n", ref="https://example.org/a b")
    listed = dispatch.call(alice, dispatch.find_command("imports"), {}, "owner").value
    assert [(item.import_id, item.source_dir, item.page_count) for item in listed] == [
        (done.import_id, "meeting: https://example.org/a b", 2)
    ]
    target = tmp_path / "raw"
    arguments = {"raw": True, "import_id": done.import_id, "dir": str(target)}
    assert dispatch.call(alice, dispatch.find_command("export"), arguments, "owner").files == 1
    (file,) = [path for path in target.rglob("*") if path.is_file()]
    assert file.read_bytes() == "Übung\r\nmacht\n".encode()


def test_a_folder_that_is_imported_later_is_not_taken_for_an_ingested_file(
    brain: Brain, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    (folder / "people").mkdir(parents=True)
    (folder / "a.md").write_text("# A\n\nOne.")
    (folder / "people" / "bo.md").write_text("# Bo")
    ingest_file(brain, folder / "a.md")
    report = dispatch.call(brain, dispatch.find_command("import"), {"folder": str(folder)}, "owner").report
    assert (report.outcomes["new"], report.conflicts) == (2, ())
    assert call(brain, "list").total == 3  # sources/a and a: the folder has its own
    assert not ingest_file(brain, folder / "people" / "bo.md").written
    again = dispatch.call(brain, dispatch.find_command("import"), {"folder": str(folder)}, "owner").report
    assert again.import_id is None
    assert checks.validate(brain.db) == []


# A person's way


@pytest.fixture
def standup(tmp_path: Path) -> Path:
    file = tmp_path / "Weekly Standup.md"
    file.write_text(
        "# Standup\n\nWe spoke of cranes and paint.\n\n---\n\n- **2026-04-24** — Ordered paint.\n"
    )
    return file


def test_a_file_becomes_a_page_and_is_kept(brain: Brain, standup: Path) -> None:
    done = ingest_file(brain, standup, source_type="meeting", date="2026-04-25")
    (page,) = done.pages
    assert (page.slug, page.outcome, page.timeline_entries) == ("sources/weekly-standup", "created", 2)
    stored = call(brain, "get", slug="sources/weekly-standup")
    assert stored.frontmatter == {"source_type": "meeting", "date": "2026-04-25"}
    assert (stored.type, stored.title) == ("source", "Standup")
    assert "- **2026-04-25** | meeting — Standup" in stored.timeline


def test_the_same_file_is_recognized_at_another_path(brain: Brain, standup: Path, tmp_path: Path) -> None:
    ingest_file(brain, standup)
    copy = tmp_path / "copy.md"
    copy.write_bytes(standup.read_bytes())
    for file in (standup, copy):
        again = ingest_file(brain, file)
        assert (again.written, again.known_pages) == (False, ("sources/weekly-standup",))
    assert ingest_file(brain, copy, force=True).pages[0].slug == "sources/copy"


@pytest.mark.parametrize(
    ("text", "arguments", "slug", "kind"),
    [
        ("---\nslug: projects/crane\n---\n# Crane", {}, "projects/crane", "project"),
        ("---\nslug: projects/crane\n---\n# Crane", {"slug": "concepts/crane"}, "concepts/crane", "concept"),
        ("---\ntype: meeting\n---\n# Crane", {}, "sources/note", "meeting"),
        ("---\ntype: article\n---\n# Crane", {}, "sources/note", "source"),
        ("---\ntype: recipe\n---\n# Crane", {}, "sources/note", "recipe"),
        ("---\ntype: person\n---\n# Bo", {}, "sources/note", "person"),
        ("just words", {}, "sources/note", "source"),
    ],
)
def test_slug_and_type_of_the_page(
    brain: Brain, tmp_path: Path, text: str, arguments: dict[str, Any], slug: str, kind: str
) -> None:
    (tmp_path / "note.txt").write_text(text)
    assert ingest_file(brain, tmp_path / "note.txt", **arguments).pages[0].slug == slug
    assert call(brain, "get", slug=slug).type == kind


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("# Crane", {"type": "Pod cast"}), ("---\nsource_type: pod cast\n---\n# Crane", {})],
)
def test_a_file_has_any_type_of_one_line(
    brain: Brain, tmp_path: Path, text: str, arguments: dict[str, str]
) -> None:
    (tmp_path / "note.md").write_text(text)
    assert ingest_file(brain, tmp_path / "note.md", **arguments).source_type == "pod_cast"
    (tmp_path / "other.md").write_text("---\nsource_type: [1]\n---\n# Crane")
    with pytest.raises(InvalidArgument, match="source_type: must be a word"):
        ingest_file(brain, tmp_path / "other.md")
    assert ingest_file(brain, tmp_path / "other.md", source_type="article").source_type == "article"


def test_a_meeting_needs_only_its_text(brain: Brain) -> None:
    done = call(brain, "ingest", content="# Kick-off with Halden\n\nBudget approved.", type="meeting")
    assert (done.source_ref, done.source_page) == (
        *("meeting/kick-off-with-halden", "sources/meeting/kick-off-with-halden"),
    )
    again = call(brain, "ingest", content="# Kick-off with Halden\n\nBudget approved.", type="meeting")
    assert (again.written, again.source_page) == (False, done.source_page)
    assert call(brain, "ingest", content="Plain words.").source_ref == "doc/plain-words"


def test_a_source_page_has_type_date_and_title(brain: Brain) -> None:
    arguments: dict[str, Any] = {"type": "Meeting", "title": "Kick-off with Halden", "date": "2026-01-08"}
    done = call(brain, "ingest", content="Budget approved.", **arguments)
    assert done.source_ref == "meeting/2026-01-08-kick-off-with-halden"
    page = call(brain, "get", slug=done.source_page)
    assert (page.type, page.title, page.frontmatter["date"]) == (
        "meeting",
        "Kick-off with Halden",
        "2026-01-08",
    )
    assert page.timeline == "- **2026-01-08** | meeting — Kick-off with Halden"
    other = call(
        brain, "ingest", content="Dear all", type="mail", source="https://x.org/mail/7", title="Hello"
    )
    page = call(brain, "get", slug=other.source_page)
    assert (page.slug, page.type, page.frontmatter["source_type"]) == (
        "sources/x-org/mail/7",
        "source",
        "mail",
    )


def test_a_file_that_changed_replaces_the_text_that_it_made(brain: Brain, standup: Path) -> None:
    ingest_file(brain, standup, source_type="meeting")
    standup.write_text("# Standup\n\nNow it is all about boats, sails and the summer in Oslo.\n")
    (page,) = ingest_file(brain, standup).pages
    assert (page.outcome, page.truth, page.version) == ("updated", "written", 2)
    stored = call(brain, "get", slug="sources/weekly-standup")
    assert stored.frontmatter == {"source_type": "meeting"}
    assert "Ordered paint." in stored.timeline


def test_a_file_that_was_moved_is_known_by_its_new_path(brain: Brain, standup: Path, tmp_path: Path) -> None:
    made = ingest_file(brain, standup, slug="sources/standup")
    moved_to = tmp_path / "minutes.md"
    standup.rename(moved_to)
    assert not ingest_file(brain, moved_to, slug="sources/standup").written
    moved_to.write_text("# Standup\n\nWe spoke of cranes, paint and boats.\n")
    again = ingest_file(brain, moved_to, slug="sources/standup")
    assert [page.outcome for page in again.pages] == ["updated"]
    assert again.source_page == made.source_page


def test_one_changed_word_of_a_long_file_is_written(brain: Brain, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    words = " ".join(f"word{number}" for number in range(40))
    file.write_text(f"{words} in Malmo")
    ingest_file(brain, file)
    file.write_text(f"{words} in Oslo")
    (page,) = ingest_file(brain, file).pages
    assert (page.truth, page.outcome) == ("written", "updated")
    assert "Oslo" in call(brain, "get", slug="sources/a").compiled_truth


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lives in Malmo", "lives in Oslo"),
        ("the deal is open", "the deal is open. And Kim left"),
        ("Kim owes Ada", "Ada owes Kim"),
        ("she likes tea. He likes tea", "she likes tea"),
    ],
)
def test_a_small_correction_of_a_long_page_is_written(brain: Brain, old: str, new: str) -> None:
    rest = " ".join(f"Sentence {number} stays as it is." for number in range(30))
    call(brain, "put", slug="people/kim", content=f"# Kim\n\nKim: {old}. {rest}")
    truth = f"# Kim\n\nKim: {new}. {rest}"
    (page,) = ingest(brain, {"slug": "people/kim", "expected_version": 1, "compiled_truth": truth}).pages
    assert (page.truth, page.outcome) == ("written", "updated")
    assert call(brain, "get", slug="people/kim").compiled_truth == truth


def test_page_that_a_user_edited_is_not_overwritten(brain: Brain, standup: Path) -> None:
    ingest_file(brain, standup)
    call(brain, "put", slug="sources/weekly-standup", compiled_truth="Mine.", expected_version=1)
    standup.write_text("Something else entirely.")
    with pytest.raises(AlreadyExists, match="--force replaces"):
        ingest_file(brain, standup)
    assert call(brain, "get", slug="sources/weekly-standup").compiled_truth == "Mine."
    assert ingest_file(brain, standup, force=True).pages[0].truth == "written"
    assert "Ordered paint." in call(brain, "get", slug="sources/weekly-standup").timeline


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (None, FileTrouble, "no such file"),
        (b"", FileTrouble, "is empty"),
        (b" \n", FileTrouble, "is empty"),
        (b"\x00\x01\xff\xfe" * 99, FileTrouble, "neither text nor"),
        (b"---\na: [\n---\nx", InvalidFrontMatter, "front matter"),
        (b"---\ntitle: x\n\n# Never closed\n", InvalidFrontMatter, "line 1 opens it"),
        (b"---\nslug: Bad Slug\n---\nx", InvalidSlug, "not a slug"),
        (b"x" * (4 * 1024 * 1024 + 1), TooLarge, "limit"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(
    brain: Brain, tmp_path: Path, data: bytes | None, error: type[QuaidError], message: str
) -> None:
    if data is not None:
        (tmp_path / "x.md").write_bytes(data)
    with pytest.raises(error, match=message):
        ingest_file(brain, tmp_path / "x.md")
    assert rows(brain)["ingest_log"] == 0


def test_folders_and_pipes_are_refused(brain: Brain, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("", "quaid import"), ("pipe", "not a regular file")):
        with pytest.raises(FileTrouble, match=message):
            ingest_file(brain, tmp_path / name)


def test_a_forgotten_page_can_be_taken_in_again(brain: Brain, standup: Path) -> None:
    ingest_file(brain, standup)
    brain.db.write(lambda tx: tx.execute("DELETE FROM pages"))
    assert ingest_file(brain, standup).pages[0].outcome == "created"
