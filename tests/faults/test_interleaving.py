"""Something happens between two steps of ours: nothing is lost, and nothing is half done."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, files, open_brain, run

from quaid.app import Brain
from quaid.errors import DiskFull, FileChanged, FileTrouble, InvalidArgument, QuaidError, TooLarge
from quaid.folders import atomic_write
from quaid.folders.indexer import digest
from quaid.folders.scanner import LARGEST_FILE, Folder
from quaid.folders.sync import SyncReport, sync_collection
from quaid.storage.collections import Collections
from quaid.storage.sqlite.connection import Transaction

pytestmark = [pytest.mark.promise("never overwrite unread text"), pytest.mark.usefixtures("one_case")]

OURS = "01a1e1b9-63d1-75c2-9c8e-bd17b3cdf61f"


@pytest.fixture
def one_case(cases: Cases) -> None:
    cases.count(1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / FOLDER).mkdir()
    for name in "abc":
        (tmp_path / FOLDER / f"{name}.md").write_text(f"# {name}\n\nText of {name}.\n")
    return tmp_path / FOLDER


@pytest.fixture
def brain(tmp_path: Path, root: Path) -> Iterator[Brain]:
    with open_brain(tmp_path) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        yield brain
        assert run(brain, "validate")["violations"] == []


def put(brain: Brain, slug: str, text: str, **more: Any) -> Any:
    return run(brain, "put", slug=f"{FOLDER}::{slug}", compiled_truth=text, **more)


def shown(brain: Brain) -> dict[str, str]:
    """The pages of the folder that are seen, with what they say."""
    rows = brain.db.rows(
        "SELECT slug, compiled_truth FROM pages WHERE collection_id = 2 AND quarantined_at IS NULL"
    )
    return dict(rows)


def synced(
    brain: Brain, meanwhile: Callable[[], object] = lambda: None, only: list[str] | None = None
) -> SyncReport:
    """A sync, with something that happens once between its reading and its writing."""
    waiting = [meanwhile]

    def progress(done: int, total: int, what: str) -> None:
        if waiting and done == total:
            waiting.pop()()

    collection = Collections(brain.db).require(FOLDER)
    return sync_collection(
        brain.db, collection, now=brain.now(), new_uuid=brain.new_uuid, progress=progress, only=only
    )


# A write that fails


def test_a_put_that_is_refused_after_its_file_was_written_changes_the_file_back(
    brain: Brain, root: Path
) -> None:
    before = files(root)
    with pytest.raises(InvalidArgument):
        put(brain, "a", "New.", assertions=[{"predicate": "", "object": "x"}])
    with pytest.raises(InvalidArgument):
        put(brain, "new/page", "New.", assertions=[{"predicate": "", "object": "x"}])
    assert files(root) == before
    assert run(brain, "get", slug=f"{FOLDER}::a")["version"] == 1
    assert put(brain, "a", "New.", expected_version=1)["version"] == 2


def test_an_ingest_that_is_refused_at_its_second_file_leaves_the_first_as_it_was(
    brain: Brain, root: Path
) -> None:
    (root / "b.md").write_text("# b\n\nSomebody was here.\n")
    before = files(root)
    changes = [
        {
            "slug": f"{FOLDER}::{name}",
            "expected_version": 1,
            "timeline_entries": [{"date": "2026-04-25", "summary": "Met"}],
        }
        for name in "ab"
    ]
    with pytest.raises(FileChanged):
        run(
            brain,
            "ingest-source",
            content="Notes.",
            source_type="meeting",
            source_ref="meeting/1",
            pages=changes,
        )
    assert files(root) == before


def test_a_database_that_is_full_at_any_moment_leaves_file_and_page_as_they_were(
    brain: Brain, root: Path
) -> None:
    before = files(root)
    connection = brain.db.connection
    refused = 0
    for room in range(200):
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages + room)
        try:
            put(brain, "a", "Long. " * 3_000)
            break
        except DiskFull:
            refused += 1
            assert files(root) == before
            assert run(brain, "get", slug=f"{FOLDER}::a")["version"] == 1
        finally:
            connection.pragma("max_page_count", 2**30)
    assert refused > 3
    assert b"Long. Long." in files(root)["a.md"]
    assert synced(brain).changed == 0


def test_file_that_a_user_changed_after_us_is_not_changed_back(brain: Brain, root: Path) -> None:
    def work(tx: Transaction) -> None:
        from quaid.folders import page_writer
        from quaid.operations import page_changes
        from quaid.storage import pages

        old = pages.require(brain.db, "a", FOLDER)
        new = page_changes.build_checked_page("a", {}, "Ours.", "", old)
        collection = Collections(brain.db).require(FOLDER)
        page_writer.save_page(
            brain.db, tx, collection, old, new, uuid=OURS, now=brain.now(), expected_version=1
        )
        (root / "a.md").write_text("Theirs.\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        brain.db.write(work)
    assert (root / "a.md").read_text() == "Theirs.\n"
    assert synced(brain).changed == 1


def test_writer_refused_after_a_file_change_reads_the_new_text(brain: Brain, root: Path) -> None:
    (root / "a.md").write_text("# a\n\nSomebody was here.\n")
    with pytest.raises(FileChanged):
        put(brain, "a", "Ours.", expected_version=1)
    page = run(brain, "get", slug=f"{FOLDER}::a")
    assert "Somebody was here." in page["compiled_truth"]
    put(brain, "a", page["compiled_truth"] + "\n\nOurs.", expected_version=page["version"])
    assert (root / "a.md").read_text() == "# a\n\nSomebody was here.\n\nOurs.\n"


def test_page_that_a_sync_would_skip_is_not_written(brain: Brain, root: Path) -> None:
    (root / ".quaidignore").write_text("drafts/\n")
    synced(brain)
    for slug in ("drafts/x", "node_modules/x", "_templates/x"):
        with pytest.raises(FileTrouble, match="left out"):
            put(brain, slug, "Text.")
    with pytest.raises(TooLarge):
        put(brain, "a", "x" * LARGEST_FILE)
    with pytest.raises(FileTrouble, match="too long"):
        put(brain, "x" * 255, "Text.")
    assert sorted(files(root)) == ["a.md", "b.md", "c.md"]
    assert sorted(os.listdir(root)) == [".quaidignore", "a.md", "b.md", "c.md"]


# Somebody is at the file at the same time


def test_file_that_a_user_has_open_to_write_is_not_replaced(brain: Brain, root: Path) -> None:
    with open(root / "a.md", "a") as editor:
        with pytest.raises(FileChanged):
            put(brain, "a", "Ours.", expected_version=1)
        editor.write("Theirs.\n")
    assert (root / "a.md").read_text().endswith("Theirs.\n")
    assert sorted(os.listdir(root)) == ["a.md", "b.md", "c.md"]


@pytest.mark.parametrize("kind", ["folder", "link", "nothing", "unreadable text"])
def test_file_that_replaced_ours_at_the_last_moment_stays(root: Path, kind: str) -> None:
    place = root / "a.md"

    def late(handle: int, one: str, other: str) -> bool:
        if place.is_file() and not place.is_symlink() and "Text of a" in place.read_text():
            place.unlink()
            if kind == "folder":
                place.mkdir()
            elif kind == "link":
                place.symlink_to("b.md")
            elif kind == "unreadable text":
                place.write_bytes(b"\xff theirs")
        return atomic_write.exchange_files(handle, one, other)

    expected = digest(place.read_bytes())
    with Folder(str(root)) as folder, pytest.raises(QuaidError):
        atomic_write.replace_file(folder, "a.md", b"ours", expected, OURS, late)
    assert [name for name in os.listdir(root) if name.startswith(".")] == []
    assert place.is_dir() == (kind == "folder")
    assert place.is_symlink() == (kind == "link")
    assert place.exists() == (kind != "nothing")


def test_a_text_that_cannot_go_back_to_its_place_stays_beside_it(tmp_path: Path) -> None:
    name = "n" * 249 + "é.md"  # as long as a name can be
    (tmp_path / name).write_text("old")

    def late(handle: int, one: str, other: str) -> bool:
        if (tmp_path / name).read_text() == "old":
            (tmp_path / name).write_text("theirs")
        else:
            (tmp_path / name).unlink()
        return atomic_write.exchange_files(handle, one, other)

    with Folder(str(tmp_path)) as folder, pytest.raises(QuaidError):
        atomic_write.replace_file(folder, name, b"ours", digest(b"old"), OURS, late)
    (copy,) = os.listdir(tmp_path)
    assert ".conflict-" in copy
    assert copy.endswith(".md")
    assert (tmp_path / copy).read_text() == "theirs"


# What a killed process left


def left(root: Path, ours: bytes, theirs: bytes) -> Path:
    return root / atomic_write.temporary_name(OURS, digest(ours), digest(theirs))


@pytest.mark.parametrize(("text", "copies"), [(b"ours", 0), (b"read", 0), (b"unread", 1)])
def test_leftovers_of_a_killed_process_are_removed_once_read(
    brain: Brain, root: Path, tmp_path: Path, text: bytes, copies: int
) -> None:
    left(root, b"ours", b"read").write_bytes(text)
    (root / f".quaid-{OURS}.new").write_bytes(b"unfin")
    (root / ".quaid-mine.tmp").write_bytes(b"the user's")
    everything = sorted(os.listdir(root))
    synced(brain)
    assert sorted(os.listdir(root)) == everything, "another memory may be writing just now"
    with open_brain(tmp_path, later=7200) as later:
        notes = synced(later).notes
        synced(later)
    names = [name for name in os.listdir(root) if ".conflict-" in name]
    assert len(names) == len(notes) == copies
    assert [(root / name).read_bytes() for name in names] == [text] * copies
    assert sorted(os.listdir(root)) == sorted([".quaid-mine.tmp", "a.md", "b.md", "c.md", *names])


def test_a_folder_that_is_read_only_is_not_tidied(tmp_path: Path, root: Path) -> None:
    with open_brain(tmp_path) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root), read_only=True)
    (root / f".quaid-{OURS}.new").write_bytes(b"unfinished")
    with open_brain(tmp_path, later=7200) as later:
        synced(later)
    assert (root / f".quaid-{OURS}.new").exists()


# Two who sync at once


def test_a_new_file_that_another_took_in_meanwhile_makes_one_page(
    brain: Brain, root: Path, tmp_path: Path
) -> None:
    (root / "new.md").write_text("# New\n\nFirst.\n")

    def meanwhile() -> None:
        (root / "new.md").write_text("# New\n\nSecond, and longer.\n")
        with open_brain(tmp_path) as other:
            synced(other)

    synced(brain, meanwhile)
    synced(brain)
    assert shown(brain)["new"] == "# New\n\nSecond, and longer."
    assert sorted(shown(brain)) == ["a", "b", "c", "new"]


def test_a_page_that_another_saw_move_is_not_taken_for_gone(brain: Brain, root: Path, tmp_path: Path) -> None:
    text = (root / "a.md").read_text()
    (root / "a.md").unlink()  # as a walk sees it that comes by between the two ends of a move
    (root / "b.md").write_text("# b\n\nChanged.\n")

    def meanwhile() -> None:
        (root / "moved.md").write_text(text)
        with open_brain(tmp_path) as other:
            assert synced(other).moved == 1

    synced(brain, meanwhile)
    assert sorted(shown(brain)) == ["b", "c", "moved"]
    synced(brain)
    assert sorted(shown(brain)) == ["b", "c", "moved"]


def test_a_put_between_the_reading_and_the_writing_of_a_sync_stays(
    brain: Brain, root: Path, tmp_path: Path
) -> None:
    os.utime(root / "a.md", (1, 1))  # read again, and found unchanged

    def meanwhile() -> None:
        with open_brain(tmp_path) as other:
            put(other, "a", "Ours.", expected_version=1)

    synced(brain, meanwhile)
    assert shown(brain)["a"] == "Ours."
    assert put(brain, "a", "Ours again.", expected_version=2)["version"] == 3


def test_a_hidden_page_that_comes_back_elsewhere_is_not_given_to_the_file_at_its_old_place(
    brain: Brain, root: Path
) -> None:
    os.rename(root / "a.md", root / ".away")
    synced(brain)
    os.rename(root / ".away", root / "z.md")
    (root / "a.md").write_text("# Another a\n")
    synced(brain)
    assert shown(brain) == {
        "a": "# Another a",
        "b": "# b\n\nText of b.",
        "c": "# c\n\nText of c.",
        "z": "# a\n\nText of a.",
    }


def test_a_file_that_was_too_large_for_a_while_keeps_its_page(brain: Brain, root: Path) -> None:
    uuid = run(brain, "get", slug=f"{FOLDER}::a")["uuid"]
    (root / "a.md").write_text("x" * (LARGEST_FILE + 1))
    synced(brain)
    (root / "a.md").write_text("# a\n\nSmall again.\n")
    synced(brain)
    assert sorted(shown(brain)) == ["a", "b", "c"]
    assert run(brain, "get", slug=f"{FOLDER}::a")["uuid"] == uuid


def test_a_file_that_is_back_before_its_page_goes_keeps_it(brain: Brain, root: Path) -> None:
    data = (root / "a.md").read_bytes()
    (root / "a.md").unlink()
    (root / "b.md").write_text("# b\n\nChanged, so that something is read.\n")
    report = synced(brain, lambda: (root / "a.md").write_bytes(data))
    assert (report.changed, report.removed) == (1, 0)
    assert shown(brain)["a"] == "# a\n\nText of a."


def test_a_file_that_became_empty_leaves_what_it_said(brain: Brain, root: Path) -> None:
    data = (root / "a.md").read_bytes()
    (root / "a.md").write_bytes(b"")
    assert synced(brain).changed == 1
    assert shown(brain)["a"] == ""
    run(brain, "revert", slug=f"{FOLDER}::a", to=1)
    assert (root / "a.md").read_bytes() == data


# Names


@pytest.mark.parametrize(
    "name",
    ["new\nline.md", "quo\"te's.md", "🦊 fox.md", "é" * 126 + ".md", "- dash.md", "%s{}.md", "tab\t.md"],
)
def test_a_file_of_any_name_is_read_written_and_found_unchanged(brain: Brain, root: Path, name: str) -> None:
    (root / name).write_text("# Named\n\nOnce.\n")
    assert synced(brain).new == 1
    (slug,) = set(shown(brain)) - {"a", "b", "c"}
    put(brain, slug, "# Named\n\nTwice.", expected_version=1)
    assert (root / name).read_text() == "# Named\n\nTwice.\n"
    again = synced(brain)
    assert (again.new, again.changed, again.moved, again.removed) == (0, 0, 0, 0)


def test_a_look_at_some_paths_takes_a_folder_for_no_file(brain: Brain, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "e.md").write_text("# e\n")
    report = synced(brain, only=["d", "d/", "", "../x.md", "a.md/x.md"])
    assert (report.new, report.removed, report.halted) == (0, 0, "")
    assert synced(brain, only=["d/e.md"]).new == 1
