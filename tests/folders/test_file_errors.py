"""Whatever fails on one file costs that file alone: it is named, and tried again when it changes.

No file is known that Quaid fails on, so a step is made to fail on every text that holds a certain word: reading
the page, working out its links, writing its rows (a trigger), cutting it into chunks.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.folders.conftest import Fill
from tests.folders.watched_folder import Watched

from quaid import worker
from quaid.app import Brain
from quaid.cli.render import render
from quaid.config import Settings
from quaid.folders import indexer
from quaid.model import chunker, links, page as page_model
from quaid.operations import collections as watching, dispatch
from quaid.storage import collections

POISON = "#poison"
GOOD = "# Good\n\nFine words.\n"
BAD = f"# Bad\n\nWords. {POISON}\n"


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def failing(function: Callable[..., Any], text: Callable[..., str]) -> Callable[..., Any]:
    def fails(*arguments: Any, **named: Any) -> Any:
        if POISON in text(*arguments, **named):
            raise ValueError("zip() argument 2 is longer than argument 1")
        return function(*arguments, **named)

    return fails


@pytest.fixture(params=["reading", "links", "rows"])
def step_fails(request: pytest.FixtureRequest, brain: Brain, monkeypatch: pytest.MonkeyPatch) -> str:
    """One step fails on poisoned files."""
    if request.param == "reading":
        monkeypatch.setattr(
            page_model,
            "build_page",
            failing(page_model.build_page, lambda _slug, _front, truth, *_, **__: truth),
        )
    elif request.param == "links":
        monkeypatch.setattr(
            page_model, "find_references", failing(links.find_references, lambda made: made.truth)
        )
    else:
        brain.db.connection.execute(
            "CREATE TEMP TRIGGER poisoned BEFORE INSERT ON main.tags WHEN NEW.tag = 'poison'"
            " BEGIN SELECT RAISE(ABORT, 'the step failed'); END"
        )
    return str(request.param)


@pytest.fixture
def folder(vault: Fill) -> Path:
    return vault({"a.md": GOOD, "b.md": BAD, "c.md": GOOD, "sub/d.md": BAD, "sub/e.md": GOOD})


def slugs(brain: Brain) -> list[str]:
    return [row for (row,) in brain.db.rows("SELECT slug FROM pages ORDER BY slug")]


def test_an_import_takes_all_other_files_in(brain: Brain, folder: Path, step_fails: str) -> None:
    record = run(brain, "import", folder=str(folder))
    report = record.report
    assert (report.outcomes["new"], report.outcomes["failed"]) == (3, 2)
    assert [note.path for note in report.notes] == ["b.md", "sub/d.md"]
    assert "not taken in: Quaid fails on it" in report.notes[0].note
    assert "b.md: not taken in" in render(record)
    assert slugs(brain) == ["a", "c", "sub/e"]
    # It is tried again, and as soon as it can be read it is.
    assert run(brain, "import", folder=str(folder)).report.outcomes["failed"] == 2
    (folder / "b.md").write_text("# Mended\n")
    assert run(brain, "import", folder=str(folder)).report.outcomes["new"] == 1
    assert run(brain, "validate").violations == ()


def test_an_import_leaves_the_page_of_a_file_that_fails_now(
    brain: Brain, folder: Path, step_fails: str
) -> None:
    run(brain, "import", folder=str(folder))
    (folder / "a.md").write_text(BAD)
    report = run(brain, "import", folder=str(folder)).report
    assert (report.outcomes["changed"], report.outcomes["failed"]) == (0, 3)
    assert "Fine words." in run(brain, "get", slug="a").compiled_truth
    (folder / "a.md").write_text("# Good\n\nBetter words.\n")
    assert run(brain, "import", folder=str(folder)).report.outcomes["changed"] == 1
    assert "Better words." in run(brain, "get", slug="a").compiled_truth


def test_a_collection_takes_all_other_files_in(brain: Brain, folder: Path, step_fails: str) -> None:
    record = run(brain, "collection add", name="notes", path=str(folder))
    assert (record.sync.new, record.sync.failed) == (3, 2)
    assert {note.path for note in record.sync.notes} == {"b.md", "sub/d.md"}
    assert "b.md: not taken in: Quaid fails on it" in render(record)
    assert record.collection.files_not_taken_in == 2
    assert [problem.path for problem in run(brain, "collection info", name="notes").problems] == [
        "b.md",
        "sub/d.md",
    ]
    (folder / "b.md").write_text("# Mended\n")
    report = run(brain, "collection sync", name="notes").value[0]
    assert (report.new + report.changed, report.failed) == (1, 1)  # what still fails is named again
    assert slugs(brain) == ["a", "b", "c", "sub/e"]
    assert run(brain, "validate").violations == ()


def test_a_page_outlives_a_file_that_fails_now(brain: Brain, folder: Path, step_fails: str) -> None:
    run(brain, "collection add", name="notes", path=str(folder))
    (folder / "a.md").write_text(BAD)
    report = run(brain, "collection sync", name="notes").value[0]
    assert report.failed == 3
    assert "Fine words." in run(brain, "get", slug="notes::a").compiled_truth
    (folder / "a.md").unlink()
    assert run(brain, "collection sync", name="notes").value[0].removed == 1


def test_files_that_change_places_do_so_beside_one_that_fails(
    brain: Brain, folder: Path, step_fails: str
) -> None:
    for name in ("a", "c"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe words of {name}.\n")
    run(brain, "collection add", name="notes", path=str(folder), write_ids=True)
    (folder / "a.md").rename(folder / "x")
    (folder / "c.md").rename(folder / "a.md")
    (folder / "x").rename(folder / "c.md")
    (folder / "b.md").write_text(BAD + "More.\n")
    run(brain, "collection sync", name="notes")
    assert slugs(brain) == ["a", "c", "sub/e"]
    assert "The words of c." in run(brain, "get", slug="notes::a").compiled_truth


def test_status_and_doctor_name_the_files(brain: Brain, folder: Path, step_fails: str) -> None:
    run(brain, "collection add", name="notes", path=str(folder))
    status = run(brain, "status")
    assert status.files_not_taken_in == 2
    assert any("`quaid doctor` lists 2 files" in step for step in status.next_steps)
    checks = [check for check in run(brain, "doctor").checks if check.name == "folder notes"]
    assert checks[0].state == "wrong"
    assert "2 files not indexed, first b.md" in checks[0].detail
    assert len(checks[0].details) == 2


def test_many_files_are_parsed_beside_us_and_one_fails(
    brain: Brain, vault: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "is_helper_worthwhile", lambda done, _waiting: done >= 2)
    # The helper process does not fail: a file that it cannot parse is parsed here, with the same result.
    monkeypatch.setattr(indexer.ParserProcess, "parsed", lambda _self: iter([None] * 100))
    monkeypatch.setattr(
        page_model, "build_page", failing(page_model.build_page, lambda _slug, _front, truth, *_, **__: truth)
    )
    root = vault({f"{number:02}.md": BAD if number == 30 else GOOD for number in range(40)})
    report = run(brain, "import", folder=str(root)).report
    assert (report.outcomes["new"], report.outcomes["failed"]) == (39, 1)
    added = run(brain, "collection add", name="notes", path=str(root)).sync
    assert (added.new, added.failed, added.notes[0].path) == (39, 1, "30.md")


def test_a_disk_that_is_full_is_not_blamed_on_a_file(brain: Brain, folder: Path) -> None:
    from quaid.errors import DiskFull

    brain.db.connection.execute(f"PRAGMA max_page_count = {brain.db.connection.pragma('page_count') + 1}")
    (folder / "big.md").write_text("# Big\n\n" + "Many words. " * 10_000)
    with pytest.raises(DiskFull):
        run(brain, "import", folder=str(folder))
    with pytest.raises(DiskFull):
        run(brain, "collection add", name="notes", path=str(folder))


def test_a_page_that_cannot_be_cut_by_its_structure_is_found_all_the_same(
    brain: Brain, vault: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        chunker._SPLITTERS, "section", failing(chunker._SPLITTERS["section"], lambda text, _: text)
    )
    run(brain, "import", folder=str(vault({"a.md": GOOD, "b.md": "# Zebra\n\n" + "Stripes. " * 500 + BAD})))
    results = run(brain, "query", question="zebra stripes").results
    assert [item.slug for item in results][:1] == ["b"]
    pieces = brain.db.rows("SELECT chunk_text, start_line, end_line FROM chunks ORDER BY chunk_index")
    assert len(pieces) > 3
    assert run(brain, "status").pages_uncut == 0


# Watching


@pytest.fixture
def watched(settings: Settings, folder: Path) -> Iterator[Watched]:
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        watched = Watched(brain, folder)
        watched.attach("notes", watched.root)
        yield watched


def test_a_watcher_names_a_file_that_fails_and_goes_on(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        page_model, "build_page", failing(page_model.build_page, lambda _slug, _front, truth, *_, **__: truth)
    )
    with watched.running():
        assert sorted(watched.pages()) == ["a", "c", "sub/e"]
        (watched.root / "f.md").write_text(BAD)
        watched.wait(lambda: any(sync.failed for sync in watched.syncs(whole=False)))
        (watched.root / "b.md").write_text("# Mended\n")
        watched.wait(lambda: "b" in watched.pages())
    lines = [render(event) for event in watched.told]
    assert any("b.md: not taken in: Quaid fails on it" in line for line in lines)
    assert any("1 failed" in line and "f.md: not taken in" in line for line in lines)


def failing_record_sync() -> Callable[..., None]:
    """Return a `record_sync` that fails unless it records a failure."""
    record_sync = collections.Collection.record_sync

    def broken(*row: Any, halted: str | None = None, **_: Any) -> None:
        if halted is None:
            raise KeyError("something unforeseen")
        record_sync(*row, halted=halted)

    return broken


def test_a_watcher_survives_and_reports_a_failed_sync(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = failing_record_sync()
    with monkeypatch.context() as patch:
        patch.setattr(collections.Collection, "record_sync", broken)
        with watched.running(until=lambda: len(watched.troubles()) > 1):
            pass
        assert "Quaid itself failed (KeyError: 'something unforeseen')" in watched.troubles()[0]
        checks = [
            check for check in run(watched.brain, "doctor").checks if check.name.startswith("folder notes")
        ]
        assert checks[0].state == "wrong"
        assert "the last sync failed: Quaid itself failed (KeyError" in checks[0].detail
        assert run(watched.brain, "status").folders_halted == ("notes",)
    with watched.running():
        pass
    assert run(watched.brain, "status").folders_halted == ()


def test_the_watcher_of_a_server_leaves_word_of_its_end(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = failing_record_sync()
    monkeypatch.setattr(worker, "_exit_with_server", lambda _stop, _seconds: None)
    monkeypatch.setattr(os, "nice", lambda _by: 0)
    monkeypatch.setattr(watching, "watch_folders", broken)
    assert worker.main("watch", watched.brain.settings.db_path) == 1
    (record,) = [
        collection for collection in run(watched.brain, "collection list").value if collection.name == "notes"
    ]
    assert "the last sync failed: Quaid itself failed (KeyError" in str(record.halted)
