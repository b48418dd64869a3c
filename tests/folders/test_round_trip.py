"""Both round trips, on a folder made of oddities and on real files."""

import filecmp
import os
from collections.abc import Callable
from pathlib import Path

from quaid.app import Brain, no_progress
from quaid.config import Settings
from quaid.folders import export as exporter, importer, restore
from quaid.folders.importer import ImportReport
from quaid.operations.collections import collection_add, import_
from quaid.storage import checks

Bring = Callable[[Path], ImportReport]


def differences(one: Path, other: Path) -> list[str]:
    """What `diff -r` would say."""

    def files(root: Path) -> set[str]:
        return {
            os.path.relpath(os.path.join(at, name), root) for at, _, names in os.walk(root) for name in names
        }

    here, there = files(one), files(other)
    _, changed, unread = filecmp.cmpfiles(one, other, here & there, shallow=False)
    return sorted([*(here ^ there), *changed, *unread])


def export(brain: Brain, target: Path) -> Path:
    exporter.export_pages(brain.db, str(target), force=False, progress=no_progress)
    return target


def all_ways_round(original: Path, brain: Brain, report: ImportReport, tmp_path: Path) -> list[str]:
    """Take a folder out raw, out normalised, in again and out again. Returns where raw differs."""
    raw, first, second = tmp_path / "raw", tmp_path / "first", tmp_path / "second"
    exporter.export_raw(brain.db, report.import_id, str(raw), force=False, progress=no_progress)
    export(brain, first)
    assert restore.compare_folders(str(original), str(first), no_progress) == []

    settings = Settings(str(tmp_path / "new" / "memory.db"), str(tmp_path / "home"), str(tmp_path))
    with Brain(settings) as other:
        other.create(settings.db_path)
        again = importer.import_folder(
            other.db,
            str(first),
            import_id=other.new_uuid(),
            now=other.now(),
            new_uuid=other.new_uuid,
            progress=no_progress,
        )
        pages = sum(report.outcomes[outcome] for outcome in ("new", "changed", "unchanged"))
        assert again.outcomes["new"] == pages
        export(other, second)
    assert differences(first, second) == []
    return differences(original, raw)


def attached_and_back(original: Path, brain: Brain, pages: int, tmp_path: Path) -> list[tuple[str, str]]:
    """Attach a folder, export it, import the export elsewhere and export that. Return where the first differs."""
    added = collection_add(brain, "notes", str(original)).collection
    assert added.pages == pages
    first, second = tmp_path / "first", tmp_path / "second"
    report = exporter.export_pages(brain.db, str(first), force=False, progress=no_progress)
    written = [at for at, _, names in os.walk(first / "notes") for _ in names]
    assert report.pages == pages == sum(not at.endswith(".raw") for at in written)
    settings = Settings(str(tmp_path / "new" / "memory.db"), str(tmp_path / "home"), str(tmp_path))
    with Brain(settings) as other:
        other.create(settings.db_path)
        assert import_(other, str(first)).report.outcomes["new"] == pages
        again = exporter.export_pages(other.db, str(second), force=False, progress=no_progress)
        assert again.pages == pages
    assert restore.compare_folders(str(first), str(second), no_progress) == []
    return restore.compare_folders(str(original), str(first / "notes"), no_progress)


def test_an_attached_messy_folder_survives_export_and_import(
    messy: Path, brain: Brain, tmp_path: Path
) -> None:
    pages = sum(
        name.lower().endswith((".md", ".markdown")) and not name.startswith(".")
        for at, _, names in os.walk(messy)
        for name in names
        if "node_modules" not in at
    )
    # What is no JSON, or belongs to no page, is not in the export; that of bob, whose slug another file claims, is
    # beside the name that his page has.
    differ = attached_and_back(messy, brain, pages, tmp_path)
    assert {where.partition("/.raw/")[2][:3] for where, _ in differ} <= {"bro", "nob", "bob"}


def test_the_attached_corpus_survives_export_and_import(corpus: Path, brain: Brain, tmp_path: Path) -> None:
    assert attached_and_back(corpus, brain, len([*corpus.rglob("*.md")]), tmp_path) == []


def test_a_messy_folder_survives_both_round_trips(
    messy: Path, bring: Bring, brain: Brain, tmp_path: Path
) -> None:
    left_out = all_ways_round(messy, brain, bring(messy), tmp_path)
    assert left_out == [
        ".git/HEAD",
        ".hidden.md",
        ".obsidian/app.json",
        "node_modules/x/readme.md",
        "picture.png",
    ]
    assert checks.validate(brain.db, ("fts", "integrity")) == []


def test_the_real_corpus_survives_both_round_trips(
    corpus: Path, bring: Bring, brain: Brain, tmp_path: Path
) -> None:
    count = len([*corpus.rglob("*.md")])
    report = bring(corpus)
    assert report.outcomes["new"] == report.files_seen == count > 800
    assert all_ways_round(corpus, brain, report, tmp_path) == []
    second = bring(corpus)
    assert (second.outcomes["unchanged"], second.import_id) == (count, None)
