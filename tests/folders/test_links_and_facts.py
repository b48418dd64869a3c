"""Links and facts that no text holds: out of one memory by an export, into another by an import."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.folders.conftest import overwrite_leaf

from quaid.app import Brain
from quaid.cli.render import render
from quaid.config import Settings
from quaid.folders import export as exporter, restore
from quaid.folders.export import LINKS_AND_FACTS_PATH, ExportReport
from quaid.folders.importer import ImportReport
from quaid.operations.collections import (
    ImportRecord,
    collection_add,
    collection_remove,
    collection_sync,
    export,
    import_,
)
from quaid.operations.facts import assert_, facts
from quaid.operations.links import link, link_close, links, unlink
from quaid.operations.page_changes import put
from quaid.storage import checks

Bring = Callable[[Path], ImportReport]
Fill = Callable[[dict[str, str | bytes]], Path]
LATER = 1_900_000_000

PAGES: dict[str, str | bytes] = {
    "people/alice.md": "---\ntype: person\n---\n# Alice\n\nKnows [[people/bob]].\n",
    "people/bob.md": "---\ntype: person\n---\n# Bob\n",
    "companies/acme.md": "# Acme\n",
    "companies/river.md": "# River\n",
}


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Brain]:
    """Another memory, new and empty."""
    settings = Settings(str(tmp_path / "other" / "memory.db"), str(tmp_path / "home"), str(tmp_path))
    ticks = itertools.count()
    with Brain(settings, clock=lambda: LATER + next(ticks), random=os.urandom, offset=lambda _: 0) as brain:
        brain.create(settings.db_path)
        yield brain


@pytest.fixture
def filled(brain: Brain, bring: Bring, vault: Fill) -> Brain:
    """A memory with links and facts of every kind."""
    bring(vault(PAGES))
    link(brain, "people/alice", "companies/acme", "works_at", "She said so.", "2020-01-01", "2023-06-01")
    link(brain, "people/alice", "companies/river", "works_at", valid_from="2023-06-01")
    link(brain, "people/bob", "people/alice", "knows")
    assert_(brain, "people/alice", "works_at", "Acme", valid_from="2020-01-01", source="a talk")
    assert_(
        brain,
        "people/alice",
        "works_at",
        "River",
        valid_from="2023-06-01",
        confidence=0.8,
        asserted_by="manual",
        evidence_text="I am at River now.",
    )
    assert_(brain, "people/alice", "likes", "tea")
    assert_(brain, "people/alice", "likes", "coffee", supersedes_id=3, valid_from="2025-01-01")
    return brain


def out(brain: Brain, target: Path, **more: Any) -> ExportReport:
    return export(brain, dir=str(target), **more)


def into(brain: Brain, folder: Path) -> ImportRecord:
    return import_(brain, str(folder))


def known_links(brain: Brain, slug: str) -> list[Any]:
    return [
        (link.to_slug, link.relationship, link.context, link.valid_from, link.valid_until, link.source_kind)
        for link in links(brain, slug).links
    ]


def rows(brain: Brain) -> list[Any]:
    """Return all facts, and all links that were added by hand."""
    return [
        brain.db.rows(
            "SELECT p.slug, a.subject, a.subject_key, a.predicate, a.object, a.valid_from, a.valid_until,"
            " a.confidence, a.asserted_by, a.source_ref, a.evidence_text, a.created_at, o.object, o.created_at"
            " FROM assertions a JOIN pages p ON p.id = a.page_id LEFT JOIN assertions o ON o.id = a.supersedes_id"
            " ORDER BY a.id"
        ),
        brain.db.rows(
            "SELECT a.slug, b.slug, l.relationship, l.context, l.valid_from, l.valid_until, l.created_at"
            " FROM links l JOIN pages a ON a.id = l.from_page_id JOIN pages b ON b.id = l.to_page_id"
            " WHERE l.source_kind = 'programmatic' ORDER BY l.id"
        ),
    ]


def told_facts(brain: Brain, subject: str) -> list[Any]:
    """The answer of `facts --history`, without ids and trust classes, which each memory gives for itself."""
    result = facts(brain, subject, history=True).facts
    return [
        {name: value for name, value in item._asdict().items() if not name.endswith(("id", "by", "trust"))}
        for item in result
    ]


def test_links_and_facts_come_back_in_a_new_memory(filled: Brain, other: Brain, tmp_path: Path) -> None:
    report = out(filled, tmp_path / "out")
    assert (report.links, report.facts, report.trouble, report.exit_status) == (3, 4, "", 0)
    assert f"3 links and 4 facts, in {tmp_path}/out/{LINKS_AND_FACTS_PATH}" in render(report)
    record = into(other, tmp_path / "out")
    assert (record.report.links, record.report.facts, record.report.notes) == (3, 4, ())
    assert "links restored: 3, facts restored: 4" in render(record)
    assert rows(other) == rows(filled)
    for slug in ("people/alice", "people/bob"):
        assert known_links(other, slug) == known_links(filled, slug)
    assert told_facts(other, "people/alice") == told_facts(filled, "people/alice")
    assert len(told_facts(other, "people/alice")) >= 4
    assert checks.validate(other.db) == []


def test_a_second_export_is_the_same(filled: Brain, other: Brain, tmp_path: Path) -> None:
    out(filled, tmp_path / "first")
    into(other, tmp_path / "first")
    out(other, tmp_path / "second")
    assert (tmp_path / "second" / LINKS_AND_FACTS_PATH).read_bytes() == (
        tmp_path / "first" / LINKS_AND_FACTS_PATH
    ).read_bytes()


def test_a_memory_without_any_writes_no_such_file(
    brain: Brain, bring: Bring, vault: Fill, tmp_path: Path
) -> None:
    bring(vault(PAGES))
    report = out(brain, tmp_path / "out")
    assert (report.links, report.facts) == (0, 0)
    assert not (tmp_path / "out" / ".quaid").exists()
    assert "Beside the texts" not in render(report)


def test_an_export_over_an_older_one_leaves_no_old_links(filled: Brain, tmp_path: Path) -> None:
    out(filled, tmp_path / "out")
    filled.db.write(lambda tx: tx.execute("DELETE FROM assertions"))
    filled.db.write(lambda tx: tx.execute("DELETE FROM links WHERE source_kind = 'programmatic'"))
    out(filled, tmp_path / "out", force=True)
    assert json.loads((tmp_path / "out" / LINKS_AND_FACTS_PATH).read_text()) == {
        "format": 1,
        "links": [],
        "facts": [],
    }


def test_importing_twice_adds_nothing_twice(filled: Brain, other: Brain, tmp_path: Path) -> None:
    out(filled, tmp_path / "out")
    into(other, tmp_path / "out")
    again = into(other, tmp_path / "out").report
    assert (again.import_id, again.links, again.facts) == (None, 0, 0)
    (tmp_path / "out").rename(tmp_path / "moved")
    (tmp_path / "moved" / LINKS_AND_FACTS_PATH).write_text(
        (tmp_path / "moved" / LINKS_AND_FACTS_PATH).read_text() + "\n"
    )  # other bytes
    moved = into(other, tmp_path / "moved").report
    assert (moved.links, moved.facts, moved.notes) == (0, 0, ())
    assert rows(other) == rows(filled)


def test_the_export_of_a_memory_adds_nothing_to_itself(filled: Brain, tmp_path: Path) -> None:
    before = rows(filled)
    out(filled, tmp_path / "out")
    report = into(filled, tmp_path / "out").report
    assert (report.links, report.facts, report.notes) == (0, 0, ())
    assert rows(filled) == before


def test_links_and_facts_removed_since_the_export_stay_removed(
    filled: Brain, other: Brain, tmp_path: Path
) -> None:
    out(filled, tmp_path / "out")
    into(other, tmp_path / "out")
    unlink(other, "people/bob", "people/alice")
    link_close(other, 2, "2025-01-01")
    after = rows(other)
    (tmp_path / "out" / "new.md").write_text("# New\n")
    assert into(other, tmp_path / "out").report.outcomes["new"] == 1
    assert rows(other) == after
    assert import_(other, str(tmp_path / "out"), force=True).report.links == 1  # the removed one
    assert len(rows(other)[1]) == 3


def test_links_of_a_page_that_comes_later_are_added_then(filled: Brain, other: Brain, tmp_path: Path) -> None:
    out(filled, tmp_path / "out")
    bob = (tmp_path / "out" / "people/bob.md").read_text()
    (tmp_path / "out" / "people/bob.md").unlink()
    first = into(other, tmp_path / "out").report
    assert first.links == 2
    assert [note.note for note in first.notes if note.path == LINKS_AND_FACTS_PATH] == [
        "there is no page people/bob; 1 link or fact names it"
    ]
    (tmp_path / "out" / "people/bob.md").write_text(bob)
    assert into(other, tmp_path / "out").report.links == 1
    assert sorted(rows(other)[1]) == sorted(rows(filled)[1])


def test_two_collections(filled: Brain, other: Brain, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plan.md").write_text("# Plan\n")
    (notes / "people").mkdir()
    (notes / "people" / "alice.md").write_text("---\nslug: alice-of-notes\n---\n# Alice of the notes\n")
    collection_add(filled, "notes", str(notes))
    link(filled, "notes::plan", "people/alice", "about")
    link(filled, "people/bob", "notes::alice-of-notes", "wrote")
    assert_(filled, "notes::plan", "due", "2027-01-01")
    report = out(filled, tmp_path / "out")
    assert (report.links, report.facts) == (5, 5)
    written = json.loads((tmp_path / "out" / LINKS_AND_FACTS_PATH).read_text())
    assert written["links"][3]["from"] == "notes::plan"
    assert written["files"]["notes::plan"] == "notes/plan.md"
    assert into(other, tmp_path / "out").report.notes == ()
    assert [link[:2] for link in known_links(other, "notes/plan")] == [("people/alice", "about")]
    assert ("alice-of-notes", "wrote") in [link[:2] for link in known_links(other, "people/bob")]
    assert [(row[0], row[4]) for row in rows(other)[0]][-1] == ("notes/plan", "2027-01-01")


def test_an_export_of_one_collection_has_only_its_pages(filled: Brain, other: Brain, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plan.md").write_text("# Plan\n")
    (notes / "idea.md").write_text("# Idea\n")
    collection_add(filled, "notes", str(notes))
    link(filled, "notes::plan", "notes::idea", "grew_from")
    report = out(filled, tmp_path / "out", collection="notes")
    assert (report.links, report.facts) == (1, 0)
    assert into(other, tmp_path / "out").report.links == 1
    assert [link[:2] for link in known_links(other, "plan")] == [("idea", "grew_from")]


def test_links_and_facts_return_with_an_attached_folder(filled: Brain, other: Brain, tmp_path: Path) -> None:
    out(filled, tmp_path / "out")
    record = collection_add(other, "vault", str(tmp_path / "out"))
    assert (record.links, record.facts, record.problems) == (3, 4, ())
    assert "  links restored: 3, facts restored: 4" in render(record)
    assert rows(other) == rows(filled)
    assert known_links(other, "vault::people/bob") == known_links(filled, "people/bob")
    unlink(other, "vault::people/bob", "people/alice", "knows")
    collection_sync(other, "vault")
    assert known_links(other, "vault::people/bob") == []  # only attaching brings them back
    assert checks.validate(other.db) == []


def test_links_and_facts_return_with_one_exported_collection(
    filled: Brain, other: Brain, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plan.md").write_text("# Plan\n")
    (notes / "idea.md").write_text("# Idea\n")
    collection_add(filled, "notes", str(notes))
    link(filled, "notes::plan", "notes::idea", "grew_from")
    link(filled, "notes::plan", "people/alice", "about")
    assert_(filled, "notes::plan", "due", "2027-01-01")
    out(filled, tmp_path / "out")
    record = collection_add(other, "notes", str(tmp_path / "out" / "notes"))
    assert (record.links, record.facts, record.problems) == (1, 1, ())
    assert [link[:2] for link in known_links(other, "notes::plan")] == [("idea", "grew_from")]


def test_attaching_a_folder_reports_facts_of_pages_that_are_not_in_it(
    brain: Brain, other: Brain, vault: Fill, tmp_path: Path
) -> None:
    put(other, "people/eve", "# Eve\n")
    fact = {"page": "people/eve", "subject": "Eve", "predicate": "likes", "object": "tea"}
    text = json.dumps({"format": 1, "facts": [fact]})
    folder = vault({"a.md": "# A\n", LINKS_AND_FACTS_PATH: text})
    record = collection_add(other, "vault", str(folder))
    assert (record.links, record.facts) == (0, 0)
    assert record.problems == ("there is no page people/eve; 1 link or fact names it",)
    assert rows(other) == [[], []]
    (folder / LINKS_AND_FACTS_PATH).write_text("{")
    collection_remove(other, "vault", yes=True)
    (problem,) = collection_add(other, "vault", str(folder)).problems
    assert problem.startswith("not taken in: ")


def test_facts_join_those_that_are_there(filled: Brain, other: Brain, vault: Fill, tmp_path: Path) -> None:
    into(other, vault(PAGES))
    assert_(other, "people/alice", "works_at", "Harbour Ltd", valid_from="2026-01-01")
    out(filled, tmp_path / "out")
    into(other, tmp_path / "out")
    held = {row[4]: row[5:7] for row in rows(other)[0] if row[3] == "works_at"}
    assert held == {
        "Acme": ("2020-01-01", "2023-06-01"),
        "River": ("2023-06-01", "2026-01-01"),
        "Harbour Ltd": ("2026-01-01", None),
    }
    assert checks.validate(other.db) == []


def test_a_link_that_a_text_makes_too_comes_back(filled: Brain, other: Brain, tmp_path: Path) -> None:
    filled.db.write(
        lambda tx: tx.execute(
            "INSERT INTO links (from_page_id, to_page_id, relationship, created_at, valid_from)"
            " SELECT a.id, b.id, 'mentions', '2026-01-01T00:00:00Z', '2024-01-01' FROM pages a, pages b"
            " WHERE a.slug = 'people/alice' AND b.slug = 'people/bob'"
        )
    )
    out(filled, tmp_path / "out")
    into(other, tmp_path / "out")
    assert known_links(other, "people/alice") == known_links(filled, "people/alice")


def test_a_comparison_of_folders_lists_missing_links_and_facts(
    filled: Brain, other: Brain, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    out(filled, one)
    into(other, one)
    out(other, two)
    assert restore.compare_folders(str(one), str(two), other.progress) == []
    assert restore.compare_folders(str(tmp_path / "vault"), str(one), other.progress) == []
    contents = json.loads((two / LINKS_AND_FACTS_PATH).read_text())
    (two / LINKS_AND_FACTS_PATH).write_text(
        json.dumps({**contents, "links": contents["links"][1:], "facts": []})
    )
    assert restore.compare_folders(str(one), str(two), other.progress) == [
        (LINKS_AND_FACTS_PATH, "1 link missing in the export"),
        (LINKS_AND_FACTS_PATH, "4 facts missing in the export"),
    ]
    (two / LINKS_AND_FACTS_PATH).write_text("{")
    assert restore.compare_folders(str(one), str(two), other.progress)[0][1].startswith(
        "cannot be compared: "
    )
    (two / LINKS_AND_FACTS_PATH).unlink()
    assert len(restore.compare_folders(str(one), str(two), other.progress)) == 2


def fact(**more: Any) -> dict[str, Any]:
    return {"page": "people/alice", "subject": "Alice", "predicate": "likes", "object": "tea", **more}


def tie(**more: Any) -> dict[str, Any]:
    return {"from": "people/alice", "to": "people/bob", "relationship": "knows", **more}


def told(**parts: Any) -> str:
    return json.dumps({"format": 1, **parts})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not taken in: "),
        ("[]", 'it is no object with a "format"'),
        ('{"format": 2}', "its format is 2, and this Quaid reads format 1"),
        ('{"format": true}', "its format is True"),
        ("[" * 100_000, "it nests too deeply"),
        ('{"format": 1, "links": NaN}', "NaN is not JSON"),
        (b"\xff\xfe", "it is not UTF-8"),
        ('{"format": 1, "facts": [{"object": "\\ud800"}]}', "half a character"),
        (told(links={}), "its links are no list"),
        (told(links=[1]), "links[0]: is no object"),
        (told(links=[{}]), "links[0].relationship: is missing"),
        (told(links=[tie(to="../../etc/passwd")]), "is not a slug"),
        (told(links=[tie(to="::x")]), "no collection is named"),
        (told(links=[tie(to="people/alice")]), "leads from a page to itself"),
        (told(links=[tie(valid_from="yesterday")]), "links[0].valid_from: 'yesterday' is not a date"),
        (told(links=[tie(valid_from="2020-01-02", valid_until="2020-01-01")]), "is before valid_from"),
        (
            told(links=[tie(valid_from="2020-01-01"), tie(valid_from="2021-01-01")]),
            "links[1]: is left out. Link ",
        ),
        (told(facts=[fact(page="nobody")]), "there is no page nobody; 1 link or fact names it"),
        (told(facts=[fact(page=7)]), "facts[0].page: must be text"),
        (told(facts=[fact(object="x" * 2_000)]), "1,000 is the most"),
        (told(facts=[fact(object="a\0b")]), "holds a NUL character"),
        (told(facts=[fact(asserted_by="root")]), "asserted_by: must be one of"),
        (told(facts=[fact(confidence=9)]), "confidence: must be a number from 0 to 1"),
        (told(facts=[fact(supersedes="x")]), "supersedes: must be the place of another fact"),
        (told(facts=[fact(supersedes=0)]), "facts[0].supersedes: it cannot supersede that one"),
        (
            told(
                facts=[
                    fact(valid_until="2020-01-01", supersedes=1),
                    fact(object="milk", valid_until="2021-01-01", supersedes=0),
                ]
            ),
            "facts[1].supersedes: it cannot supersede that one",
        ),
        (told(files=[1], links=[tie(to="x", created_at=5)]), "there is no page x"),
        (told(links=[7] * 1_000), "and 980 more problems"),
    ],
)
def test_an_invalid_links_and_facts_file_does_not_stop_the_import(
    brain: Brain, bring: Bring, vault: Fill, content: str | bytes, said: str
) -> None:
    good = {"people/carol.md": "# Carol\n"}
    report = bring(vault({**PAGES, **good, LINKS_AND_FACTS_PATH: content}))
    assert report.outcomes["new"] == 5
    assert any(said in note.note for note in report.notes if note.path == LINKS_AND_FACTS_PATH), report.notes
    assert len(report.notes) <= 21
    assert checks.validate(brain.db) == []
    assert bring(vault({})).import_id is None  # nothing to be done a second time


def test_invalid_row_of_a_sidecar_is_skipped_alone(brain: Brain, bring: Bring, vault: Fill) -> None:
    content = told(links=[7, tie()], facts=[fact(confidence=9), fact(created_at="2999-01-01T00:00:00Z")])
    report = bring(vault({**PAGES, LINKS_AND_FACTS_PATH: content}))
    assert (report.links, report.facts) == (1, 1)
    assert rows(brain)[0][0][11] < "2999"  # nothing was written down in the future


def test_a_link_or_a_pipe_in_its_place_is_not_read(bring: Bring, vault: Fill, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "links-and-facts.json").write_text(told(links=[tie()]))
    folder = vault(PAGES)
    (folder / ".quaid").symlink_to(outside)
    assert bring(folder).links == 0
    (folder / ".quaid").unlink()
    (folder / ".quaid").mkdir()
    (folder / LINKS_AND_FACTS_PATH).symlink_to(outside / "links-and-facts.json")
    report = bring(folder)
    assert (report.links, report.left_out["link"]) == (0, 1)
    (folder / LINKS_AND_FACTS_PATH).unlink()
    os.mkfifo(folder / LINKS_AND_FACTS_PATH)
    assert bring(folder).left_out["unreadable"] == 1


def test_a_file_that_is_too_large_is_named(
    bring: Bring, vault: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "MAX_LINKS_AND_FACTS_BYTES", 100)
    report = bring(vault({**PAGES, LINKS_AND_FACTS_PATH: told(links=[tie(context="x" * 100)])}))
    assert (report.outcomes["too_large"], report.outcomes["new"], report.links) == (1, 4, 0)
    assert any("100 bytes are allowed" in note.note for note in report.notes)


def test_a_failing_export_of_them_does_not_stop_the_pages(filled: Brain, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".quaid").write_text("in the way")
    report = out(filled, tmp_path / "out", force=True)
    assert (report.pages, report.links, report.exit_status) == (4, 0, 1)
    assert ".quaid" in report.trouble
    assert "Links and facts are missing: " in render(report)


def test_readable_links_and_facts_of_a_damaged_memory_are_exported(filled: Brain, tmp_path: Path) -> None:
    for number in range(400):
        link(filled, "people/bob", "companies/acme", f"kind_{number}", "Some words. " * 10)
    overwrite_leaf(filled, "links")
    report = out(filled, tmp_path / "out")
    assert 300 < report.links < 403
    assert (report.pages, report.facts, report.exit_status) == (4, 4, 1)
    assert "cannot be read" in report.trouble


def test_pages_in_quarantine_and_their_links_are_left_out(filled: Brain, tmp_path: Path) -> None:
    filled.db.write(
        lambda tx: tx.execute("UPDATE pages SET quarantined_at = created_at WHERE slug = 'people/bob'")
    )
    assert (out(filled, tmp_path / "out").links) == 2
