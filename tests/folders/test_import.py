"""A folder comes in whole or not at all, and every file is accounted for."""

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import Cancelled, FileTrouble, NotFound, PageNotFound
from quaid.folders import importer, scanner
from quaid.folders.importer import ImportReport
from quaid.folders.scanner import LARGEST_FILE, FileNote
from quaid.storage import collections, pages
from quaid.storage.history import Imports

Bring = Callable[[Path], ImportReport]
Fill = Callable[[dict[str, str | bytes]], Path]
Dump = Callable[[], dict[str, list[Any]]]


def outcomes(report: ImportReport) -> dict[str, int]:
    return {name: count for name, count in report.outcomes.items() if count}


def notes(report: ImportReport) -> dict[str, str]:
    return {note.path: note.note for note in report.notes}


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.lstat().st_mtime_ns)
        for path in root.rglob("*")
        if not path.is_symlink()
    }


def test_every_file_of_a_messy_folder_has_one_outcome(messy: Path, bring: Bring) -> None:
    before = state(messy)
    report = bring(messy)
    with scanner.Folder(str(messy)) as folder:
        assert report.files_seen == len(list(folder.walk()))
    assert sum(report.outcomes.values()) == report.files_seen
    assert outcomes(report) == {"new": 34, "special": 3, "sidecar": 4, "left_out": 5}
    assert report.left_out == {
        scanner.HIDDEN_FOLDER: 2,
        scanner.HIDDEN_FILE: 1,
        scanner.OTHER_KIND: 1,
        scanner.TOOL_FOLDER: 1,
    }
    assert sum(report.left_out.values()) == report.outcomes["left_out"]
    assert state(messy) == before


def test_mended_and_broken_files_are_listed(messy: Path, bring: Bring) -> None:
    note_list = notes(bring(messy))
    assert note_list["nul.md"] == "1 NUL character replaced"
    assert note_list["latin.md"] == "not UTF-8: read as Windows-1252"
    for name in ("broken.md", "list.md", "aliases.md", "bad-toml.md"):
        assert note_list[name].startswith("front matter kept as it is: ")
    assert note_list["odd type.md"] == "type 'spaceship' is not one of the known types; kept as it is"
    assert note_list["people/.raw/nobody.json"] == "there is no page people/nobody for it; kept as it is"
    assert note_list["people/.raw/broken.json"].startswith("not JSON, kept as it is: ")
    assert note_list["claims/two.md"] == "another file has the slug shared; this one is claims/two"
    assert note_list["claims/four.md"] == "another file has the slug people/bob; this one is claims/four"
    assert "another file has the slug 1-projects/my-name" in note_list["1. Projects/my-name.md"]
    assert set(note_list) == {
        *("nul.md", "latin.md", "broken.md", "list.md", "aliases.md", "bad-toml.md", "odd type.md"),
        "unclosed.md",
        *("people/.raw/nobody.json", "people/.raw/broken.json"),
        *("claims/two.md", "claims/four.md", "1. Projects/my-name.md"),
    }


def test_the_pages_of_a_messy_folder_can_be_read(messy: Path, bring: Bring, brain: Brain) -> None:
    report = bring(messy)
    titles = {slug: pages.require(brain.db, slug).title for _, _, slug in pages.page_addresses(brain.db)}
    assert len(titles) == report.outcomes["new"]
    assert titles["people/alice"] == "Alice Example"
    assert titles["empty"] == "Empty"
    assert titles["hugo"] == "Hugo"
    assert titles["bom"] == "Marked"
    assert titles["people/readme"] == "README"
    assert titles["people/index"] == "People"
    assert titles["log"] == "Log"
    assert titles["utf16"] == "Sixteen"
    assert "My Näme" in titles.values()
    alice = pages.require(brain.db, "people/alice")
    assert alice.tags == ("infra", "ops")
    assert [entry.date for entry in pages.timeline_entries(brain.db, alice.id)] == [
        "2026-04-22",
        "2026-04-14",
    ]
    assert pages.require(brain.db, "people/bob").truth == "# Bob\n\nWritten on Windows."
    assert len(pages.require(brain.db, "big").truth) > 390_000
    assert report.types["person"] == 4
    assert (report.tags, report.timeline_entries, report.raw_data) == (3, 3, 3)


def test_sidecars_become_raw_data(messy: Path, bring: Bring, brain: Brain) -> None:
    bring(messy)

    def data(slug: str) -> dict[str, Any]:
        return {
            item.source: item.data for item in pages.read_raw_data(brain.db, pages.require(brain.db, slug).id)
        }

    assert data("people/alice") == {"crm": {"id": 7}, "web": ["a", "ü"]}
    assert data("people/bob") == {"sidecar": {"name": "Bob", "fetched": "2026-01-01"}}
    assert pages.require(brain.db, "people/alice").version == 1


def test_special_files_of_the_root_become_settings(messy: Path, bring: Bring, brain: Brain) -> None:
    bring(messy)
    assert collections.get_setting(brain.db, "original_index") == "# My own index\n"
    assert collections.get_setting(brain.db, "original_schema") == "# How things are filed\r\n"
    for slug in ("index", "schema", "readme"):
        with pytest.raises(PageNotFound):
            pages.require(brain.db, slug)


def test_a_second_run_reports_that_nothing_changed(messy: Path, bring: Bring, dump: Dump) -> None:
    first = bring(messy)
    before = dump()
    assert len(before["pages"]) == first.outcomes["new"]
    second = bring(messy)
    assert dump() == before
    assert second.import_id is None
    assert outcomes(second) == {"unchanged": 34, "special": 3, "sidecar": 4, "left_out": 5}
    assert (second.conflicts, second.gone) == ((), ())


def test_only_changed_files_are_imported(messy: Path, bring: Bring, vault: Fill, brain: Brain) -> None:
    bring(messy)
    vault({"people/alice.md": "# Alice\n\nMoved to Bergen.\n", "people/carol.md": "# Carol\n"})
    (messy / "log.md").unlink()
    report = bring(messy)
    assert outcomes(report) == {
        "new": 1,
        "changed": 1,
        "unchanged": 32,
        "special": 3,
        "sidecar": 4,
        "left_out": 5,
    }
    assert report.gone == ("log.md",)
    assert pages.require(brain.db, "log").version == 1
    alice = pages.require(brain.db, "people/alice")
    assert (alice.version, alice.truth) == (2, "# Alice\n\nMoved to Bergen.")
    assert pages.require(brain.db, "people/bob").version == 1
    newest, oldest = Imports(brain.db).all()
    assert (newest.import_id, newest.page_count, oldest.page_count) == (report.import_id, 34, 34)


def test_a_file_that_comes_back_finds_its_page(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"a.md": "# A\n", "b.md": "# B\n"})
    bring(root)
    (root / "a.md").unlink()
    vault({"b.md": "# B 2\n"})
    bring(root)
    vault({"a.md": "# A again\n"})
    report = bring(root)
    assert outcomes(report) == {"changed": 1, "unchanged": 1}
    assert pages.require(brain.db, "a").truth == "# A again"
    assert pages.count(brain.db) == 2


def test_a_renamed_file_with_the_same_slug_keeps_its_page(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault({"My Note.md": "# Note\n"})
    bring(root)
    os.rename(root / "My Note.md", root / "my-note.md")
    assert outcomes(bring(root)) == {"unchanged": 1}
    vault({"my-note.md": "# Note\n\nMore.\n"})
    assert outcomes(bring(root)) == {"changed": 1}
    assert pages.count(brain.db) == 1


def test_the_same_name_in_another_spelling_is_the_same_file(vault: Fill, bring: Bring, dump: Dump) -> None:
    root = vault({"Käse.md": "# Cheese\n"})
    bring(root)
    before = dump()
    os.rename(root / "Käse.md", root / unicodedata.normalize("NFD", "Käse.md"))
    report = bring(root)
    assert (outcomes(report), report.gone, report.import_id) == ({"unchanged": 1}, (), None)
    assert dump() == before


def test_a_file_that_is_too_large_is_left_and_named(vault: Fill, bring: Bring, brain: Brain) -> None:
    root = vault(
        {"a.md": b"x" * LARGEST_FILE, "b.md": b"x" * (LARGEST_FILE + 1), ".raw/a.json": b" " * 5_000_000}
    )
    report = bring(root)
    assert outcomes(report) == {"new": 1, "too_large": 2}
    assert report.notes == (
        FileNote(".raw/a.json", "too large: 5,000,000 bytes, and 4,194,304 are allowed; split it"),
        FileNote("b.md", "too large: 4,194,305 bytes, and 4,194,304 are allowed; split it"),
    )


def test_a_file_that_vanishes_or_turns_into_a_link_is_left_out(
    vault: Fill, brain: Brain, tmp_path: Path
) -> None:
    root = vault({"a.md": "# A\n", "b.md": "# B\n", "c.md": "# C\n"})
    (tmp_path / "secret.md").write_text("# Secret\n")

    def meddle(done: int, total: int, what: str) -> None:
        if what == "Reading" and done == 0:
            (root / "b.md").unlink()
            (root / "c.md").unlink()
            (root / "c.md").symlink_to(tmp_path / "secret.md")

    report = importer.import_folder(
        brain.db, str(root), import_id="1", now=brain.now(), new_uuid=brain.new_uuid, progress=meddle
    )
    assert report.left_out == {scanner.GONE: 1, scanner.UNREADABLE: 1}
    assert outcomes(report) == {"new": 1, "left_out": 2}
    assert notes(report) == {"b.md": f"left out: {scanner.GONE}", "c.md": f"left out: {scanner.UNREADABLE}"}


def test_an_unreadable_file_stops_nothing(vault: Fill, bring: Bring) -> None:
    root = vault({"a.md": "# A\n", "b.md": "# B\n"})
    (root / "a.md").chmod(0)
    if os.access(root / "a.md", os.R_OK):
        pytest.skip("the superuser may read everything")
    report = bring(root)
    assert outcomes(report) == {"new": 1, "left_out": 1}
    assert report.notes == (FileNote("a.md", f"left out: {scanner.UNREADABLE}"),)


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path, bring: Bring, dump: Dump) -> None:
    before = dump()
    with pytest.raises(NotFound):
        bring(tmp_path / "missing")
    (tmp_path / "file.md").write_text("")
    with pytest.raises(FileTrouble):
        bring(tmp_path / "file.md")
    assert dump() == before


def test_an_empty_folder_changes_nothing(tmp_path: Path, bring: Bring, dump: Dump) -> None:
    (tmp_path / "empty").mkdir()
    before = dump()
    report = bring(tmp_path / "empty")
    assert (report.files_seen, report.import_id) == (0, None)
    assert dump() == before


@pytest.mark.parametrize(("phase", "at"), [("Reading", 3), ("Writing", 0), ("Writing", 20), ("Writing", 40)])
@pytest.mark.parametrize("signal", [KeyboardInterrupt, Cancelled])
def test_stopping_at_any_point_leaves_the_memory_as_it_was(
    messy: Path, brain: Brain, dump: Dump, phase: str, at: int, signal: type[BaseException]
) -> None:
    before = dump()

    def stop(done: int, total: int, what: str) -> None:
        if (what, done) == (phase, at):
            raise signal

    with pytest.raises(signal):
        importer.import_folder(
            brain.db, str(messy), import_id="1", now=brain.now(), new_uuid=brain.new_uuid, progress=stop
        )
    assert dump() == before
    assert [name for name in os.listdir(os.path.dirname(brain.db.path)) if name.startswith("tmp")] == []


def test_progress_counts_every_file_of_both_passes(vault: Fill, brain: Brain) -> None:
    root = vault({"a.md": "", "b.md": "", ".raw/a.json": "{}", "x.png": ""})
    seen: list[tuple[int, int, str]] = []
    importer.import_folder(
        brain.db,
        str(root),
        import_id="1",
        now=brain.now(),
        new_uuid=brain.new_uuid,
        progress=lambda done, total, what: seen.append((done, total, what)),
    )
    assert seen == [(done, 3, what) for what in ("Reading", "Writing") for done in range(4)]


def test_an_import_that_was_overtaken_starts_over(vault: Fill, brain: Brain, bring: Bring) -> None:
    root = vault({"a.md": "# A\n", "b.md": "# B\n"})
    others: list[ImportReport] = []

    def meddle(done: int, total: int, what: str) -> None:
        if what == "Reading" and done == total and not others:
            others.append(bring(root))

    report = importer.import_folder(
        brain.db, str(root), import_id="1", now=brain.now(), new_uuid=brain.new_uuid, progress=meddle
    )
    assert outcomes(others[0]) == {"new": 2}
    assert (outcomes(report), report.import_id) == ({"unchanged": 2}, None)
    assert len(Imports(brain.db).all()) == 1


def test_a_folder_whose_path_is_not_utf_8_can_be_imported(tmp_path: Path, brain: Brain) -> None:
    root = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(root)
    with open(os.path.join(root, "a.md"), "w") as file:
        file.write("# A\n")
    for expected in ("new", "unchanged"):
        report = importer.import_folder(
            brain.db, root, import_id="1", now=brain.now(), new_uuid=brain.new_uuid, progress=brain.progress
        )
        assert outcomes(report) == {expected: 1}
        assert report.folder.endswith("caf\\xe9")


def test_a_name_that_a_terminal_would_obey_is_escaped_in_the_report(
    vault: Fill, bring: Bring, brain: Brain
) -> None:
    root = vault({"a\x1b[2J\nb.md": b"# Caf\xe9\n"})
    report = bring(root)
    assert report.notes == (FileNote("a\\x1b[2J\\nb.md", "not UTF-8: read as Windows-1252"),)
    assert [slug for _, _, slug in pages.page_addresses(brain.db)] == ["a-2j-b"]
    (root / "a\x1b[2J\nb.md").unlink()
    assert bring(root).gone == ("a\\x1b[2J\\nb.md",)
