"""When a page is written, and when it is left alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.workspace import run

from quaid.app import Brain
from quaid.folders.importer import ImportConflict, ImportReport
from quaid.formats import markdown
from quaid.model import page as page_model
from quaid.storage import page_edits, pages
from quaid.storage.page_edits import SaveResult

Bring = Callable[[Path], ImportReport]
Fill = Callable[[dict[str, str | bytes]], Path]
Dump = Callable[[], dict[str, list[Any]]]


def outcomes(report: ImportReport) -> dict[str, int]:
    return {name: count for name, count in report.outcomes.items() if count}


def put(brain: Brain, slug: str, text: str) -> SaveResult:
    document = markdown.parse(text)
    made = page_model.build_page(slug, document.frontmatter, document.truth, document.timeline)
    return brain.db.write(
        lambda tx: page_edits.save(tx, made, uuid=brain.new_uuid(), now=brain.now(), expected_version=None)
    )


def raw(brain: Brain, slug: str) -> dict[str, Any]:
    return {
        item.source: item.data for item in pages.read_raw_data(brain.db, pages.require(brain.db, slug).id)
    }


def set_raw(brain: Brain, slug: str, source: str, data: Any) -> None:
    def work(tx: Any) -> None:
        page_id, _ = page_edits.touch(tx, slug, expected_version=None, now=brain.now())
        pages.write_raw_data(tx, page_id, {source: data}, brain.now())

    brain.db.write(work)


def test_a_page_edited_here_is_left_alone(vault: Fill, bring: Bring, brain: Brain, dump: Dump) -> None:
    root = vault({"a.md": "# A\n"})
    bring(root)
    put(brain, "a", "# A\n\nEdited here.\n")
    before = dump()
    report = bring(root)
    assert (outcomes(report), report.import_id) == ({"edited": 1}, None)
    assert dump() == before


def test_reverted_edit_is_not_a_change(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"a.md": "# A\n"})
    bring(root)
    put(brain, "a", "# A\n\nEdited here.\n")
    put(brain, "a", "# A\n")
    assert outcomes(bring(root)) == {"unchanged": 1}
    vault({"a.md": "# A\n\nEdited there.\n"})
    assert outcomes(bring(root)) == {"changed": 1}
    assert pages.require(brain.db, "a").truth == "# A\n\nEdited there."


def test_an_edit_on_both_sides_is_a_conflict_until_it_is_settled(
    vault: Fill, bring: Bring, brain: Brain, dump: Dump
) -> None:
    root = vault({"my notes/a.md": "# A\n"})
    bring(root)
    put(brain, "my-notes/a", "# A\n\nEdited here.\n")
    vault({"my notes/a.md": "# A\n\nEdited there.\n"})
    report = bring(root)
    assert outcomes(report) == {"conflict": 1}
    (conflict,) = report.conflicts
    assert conflict == ImportConflict(
        "my notes/a.md", "my-notes/a", f"quaid put my-notes/a '{root / 'my notes' / 'a.md'}'"
    )
    assert pages.require(brain.db, "my-notes/a").truth == "# A\n\nEdited here."

    before = dump()
    again = bring(root)
    assert (outcomes(again), again.conflicts, again.import_id) == ({"conflict": 1}, (conflict,), None)
    assert dump() == before

    put(brain, "my-notes/a", "# A\n\nEdited there.\n")
    assert outcomes(bring(root)) == {"unchanged": 1}
    vault({"my notes/a.md": "# A\n\nEdited there again.\n"})
    assert outcomes(bring(root)) == {"changed": 1}


def test_a_page_that_was_not_imported_is_a_conflict_unless_its_content_is_the_same(
    vault: Fill, bring: Bring, brain: Brain
) -> None:
    put(brain, "a", "# A\n\nMine.\n")
    put(brain, "b", "---\nk: v\n---\n# B\n")
    root = vault({"a.md": "# A\n\nTheirs.\n", "b.md": "---\nk: v\n---\n\n\n# B\n\n"})
    report = bring(root)
    assert outcomes(report) == {"conflict": 1, "unchanged": 1}
    assert report.conflicts[0].slug == "a"
    assert pages.require(brain.db, "a").truth == "# A\n\nMine."
    assert pages.require(brain.db, "a").version == pages.require(brain.db, "b").version == 1
    assert outcomes(bring(root)) == {"conflict": 1, "unchanged": 1}


def test_other_bytes_that_say_the_same_do_not_touch_the_page(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"a.md": "# A\n\nText.\n"})
    bring(root)
    vault({"a.md": "\n# A\r\n\r\nText.\r\n\r\n"})
    report = bring(root)
    assert outcomes(report) == {"unchanged": 1}
    assert report.import_id is not None
    assert pages.require(brain.db, "a").version == 1
    assert bring(root).import_id is None


def test_a_known_file_keeps_its_page_when_a_rival_appears(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"My Note.md": "# First\n"})
    bring(root)
    vault({"my-note.md": "# Second\n", "My Note.md": "# First, changed\n"})
    report = bring(root)
    assert outcomes(report) == {"new": 1, "changed": 1}
    assert pages.require(brain.db, "my-note").truth == "# First, changed"
    assert report.notes[0].path == "my-note.md"
    assert pages.count(brain.db) == 2
    assert bring(root).import_id is None


def test_a_file_that_now_claims_another_slug_keeps_its_page(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"a.md": "# A\n"})
    bring(root)
    vault({"a.md": "---\nslug: z\n---\n# A\n"})
    assert outcomes(bring(root)) == {"changed": 1}
    assert pages.find(brain.db, "z") is None
    assert pages.require(brain.db, "a").frontmatter == {"slug": "z"}


def test_an_emptied_file_empties_the_page_and_the_old_bytes_stay(
    vault: Fill, bring: Bring, brain: Brain
) -> None:
    root = vault({"a.md": "# A\n\nLong.\n"})
    bring(root)
    vault({"a.md": ""})
    assert outcomes(bring(root)) == {"changed": 1}
    kept = brain.db.rows("SELECT raw_bytes FROM raw_imports ORDER BY id")
    assert kept == [(b"# A\n\nLong.\n",), (b"",)]


def test_a_changed_sidecar_changes_the_data_and_the_version(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"a.md": "# A\n", ".raw/a.json": '{"sources": {"crm": 1, "web": 1}}'})
    bring(root)
    vault({".raw/a.json": '{"sources": {"crm": 2}}'})
    report = bring(root)
    assert outcomes(report) == {"unchanged": 1, "sidecar": 1}
    assert raw(brain, "a") == {"crm": 2}
    assert pages.require(brain.db, "a").version == 2
    assert outcomes(bring(root)) == {"unchanged": 1, "sidecar": 1}
    vault({"a.md": "# A\n\nMore.\n"})
    assert outcomes(bring(root)) == {"changed": 1, "sidecar": 1}


def test_data_that_was_changed_here_is_left_alone(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"a.md": "# A\n", ".raw/a.json": '{"sources": {"crm": 1, "web": 1}}'})
    bring(root)
    set_raw(brain, "a", "crm", "mine")
    set_raw(brain, "a", "phone", "mine too")
    vault({".raw/a.json": '{"sources": {"crm": 2, "web": 2}}'})
    report = bring(root)
    assert raw(brain, "a") == {"crm": "mine", "web": 2, "phone": "mine too"}
    assert [note.note for note in report.notes] == ["what crm says was changed here; left as it is"]


def test_a_sidecar_waits_for_its_page(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"b.md": "# B\n", ".raw/a.json": '{"sources": {"crm": 1}}'})
    assert bring(root).raw_data == 0
    vault({"a.md": "# A\n"})
    report = bring(root)
    assert (outcomes(report), report.raw_data) == ({"new": 1, "unchanged": 1, "sidecar": 1}, 1)
    assert raw(brain, "a") == {"crm": 1}


def test_a_sidecar_follows_its_file_to_another_slug(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault(
        {
            "x/My Page.md": "---\nslug: people/alice\n---\n# Alice\n",
            "x/.raw/My Page.json": '{"sources": {"crm": 1}}',
        }
    )
    bring(root)
    assert raw(brain, "people/alice") == {"crm": 1}


def test_a_forced_import_takes_the_text_of_the_files_and_history_keeps_the_edits(
    vault: Fill, brain: Brain
) -> None:
    folder = vault(
        {
            "a.md": "# A\n\nFrom the file.\n",
            "b.md": "# B\n\nAs it was.\n",
            "c.md": "# C\n\nThe file's.\n",
            ".raw/a.json": '{"sources": {"crm": {"id": 1}}}',
        }
    )
    run(brain, "put", slug="c", content="# C\n\nMade here.\n")
    run(brain, "import", folder=str(folder))
    run(brain, "put", slug="a", compiled_truth="# A\n\nEdited here.")
    run(brain, "raw", slug="a", source="crm", data={"id": 2})
    report = run(brain, "import", folder=str(folder))["report"]
    assert (report["outcomes"]["edited"], report["outcomes"]["conflict"]) == (1, 1)
    report = run(brain, "import", folder=str(folder), force=True)["report"]
    assert (report["outcomes"]["changed"], report["outcomes"]["unchanged"]) == (2, 1)
    assert report["conflicts"] == []
    assert "From the file." in run(brain, "get", slug="a")["compiled_truth"]
    assert "The file's." in run(brain, "get", slug="c")["compiled_truth"]
    assert run(brain, "raw", slug="a")["data"][0]["data"] == {"id": 1}
    for slug, words in (("a", "Edited here."), ("c", "Made here.")):
        kept = brain.db.rows(
            "SELECT CAST(raw_bytes AS TEXT) FROM raw_imports r JOIN pages p ON p.id = r.page_id WHERE p.slug = ?",
            (slug,),
        )
        assert any(words in text for (text,) in kept)
    # Once more changes nothing.
    report = run(brain, "import", folder=str(folder), force=True)["report"]
    assert (report["outcomes"]["changed"], report["outcomes"]["unchanged"]) == (0, 3)
