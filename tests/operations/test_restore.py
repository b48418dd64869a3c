"""A collection and its folder: restored byte for byte, compared, and with ids in the files."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import AlreadyExists, CollectionReadOnly, FileTrouble, IdsStopped, InvalidArgument, NotFound
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.storage.collections import Collections

FILES = {
    "README.md": b"# Read me\n",
    "people/alice.md": b"---\r\ntitle: Alice   # hers\r\nrank: 3\r\n---\r\n\r\nKnows [[bob]].\r\n",
    "people/bob.md": b"# Bob\n\nText.\n\n---\n\n- **2024-01-01** | call \xe2\x80\x94 First.\n",
    "latin.md": b"# Caf\xe9\n",
    "hugo.md": b'+++\ntitle = "Hugo"\n+++\n\nTOML.\n',
    "broken.md": b"---\ntitle: [unclosed\n---\nBody.\n",
    "bom.md": b"\xef\xbb\xbf# Marked\n",
    "empty.md": b"",
    "no-newline.md": b"# End",
    "cr.md": b"# Old Mac\rLine.\r",
}


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


def fill(root: Path) -> Path:
    for name, data in FILES.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return root


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Path:
    root = fill(tmp_path / "notes")
    run(brain, "collection add", name="notes", path=str(root))
    return root


def ids(brain: Brain) -> list[Any]:
    return brain.db.rows("SELECT slug, uuid, id FROM pages WHERE quarantined_at IS NULL ORDER BY id")


# Restoring


def test_a_lost_folder_is_written_back_byte_for_byte(brain: Brain, notes: Path, tmp_path: Path) -> None:
    before = ids(brain)
    shutil.rmtree(notes)
    target = tmp_path / "again"
    result = run(brain, "collection restore", name="notes", target=str(target))
    assert (result["files"], result["without_bytes"]) == (len(FILES), [])
    assert tree(target) == FILES
    collection = Collections(brain.db).require("notes")
    assert (collection.root, collection.state, collection.halted_at) == (str(target), "active", None)
    synced = run(brain, "collection sync")["syncs"][0]
    assert (synced["halted"], synced["new"], synced["changed"], synced["removed"]) == ("", 0, 0, 0)
    assert ids(brain) == before
    assert not [name for name in os.listdir(tmp_path) if "quaid" in name]


def test_an_emptied_folder_is_filled_again(brain: Brain, notes: Path) -> None:
    for path in notes.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    run(brain, "collection restore", name="notes", target=str(notes))
    assert tree(notes) == FILES


def test_a_detached_collection_comes_back(brain: Brain, notes: Path, tmp_path: Path) -> None:
    run(brain, "collection remove", name="notes", keep_pages=True)
    shutil.rmtree(notes)
    run(brain, "collection restore", name="notes", target=str(tmp_path / "again"))
    assert tree(tmp_path / "again") == FILES
    assert Collections(brain.db).require("notes").state == "active"


def test_restore_writes_the_current_text_of_edited_pages(brain: Brain, notes: Path, tmp_path: Path) -> None:
    run(brain, "put", slug="people/alice", compiled_truth="Knows nobody.")
    now = (notes / "people" / "alice.md").read_bytes()
    result = run(brain, "collection restore", name="notes", target=str(tmp_path / "again"))
    assert (tmp_path / "again" / "people" / "alice.md").read_bytes() == now
    assert result["left"] == str(notes)
    assert tree(notes).keys() == FILES.keys()


@pytest.mark.parametrize("where", ["full", "file", "notes/inside", "other", "."])
def test_a_place_that_is_taken_is_refused(brain: Brain, notes: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    run(brain, "collection add", name="other", path=str(tmp_path / "other"))
    with pytest.raises((AlreadyExists, FileTrouble)):
        run(brain, "collection restore", name="notes", target=str(tmp_path / where))
    collection = Collections(brain.db).require("notes")
    assert (collection.root, collection.state) == (str(notes), "active")
    assert tree(notes) == FILES


def test_a_restore_that_fails_leaves_everything_as_it_was(brain: Brain, notes: Path, tmp_path: Path) -> None:
    def stop(done: int, _total: int, _what: str) -> None:
        if done == 4:
            raise KeyboardInterrupt

    brain.progress = stop
    with pytest.raises(Exception, match="Stopped on request"):
        run(brain, "collection restore", name="notes", target=str(tmp_path / "again"))
    collection = Collections(brain.db).require("notes")
    assert (collection.root, collection.state) == (str(notes), "active")
    assert not (tmp_path / "again").exists()
    assert not [name for name in os.listdir(tmp_path) if "quaid-" in name]


def test_bytes_that_are_damaged_are_not_put_in_place(brain: Brain, notes: Path, tmp_path: Path) -> None:
    brain.db.write(
        lambda tx: tx.execute("UPDATE raw_imports SET raw_bytes = x'00' WHERE file_path = 'bom.md'")
    )
    with pytest.raises(FileTrouble, match="does not read as it was written"):
        run(brain, "collection restore", name="notes", target=str(tmp_path / "again"))
    assert not (tmp_path / "again").exists()
    assert Collections(brain.db).require("notes").state == "active"


def test_a_restore_that_was_killed_at_its_last_step_is_taken_up(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    target = fill(tmp_path / "again")
    collection = Collections(brain.db).require("notes")
    brain.db.write(lambda tx: collection.update(tx, state="restoring"))
    run(brain, "collection restore", name="notes", target=str(target))
    assert Collections(brain.db).require("notes")[3:5] == (str(target), "active")


def test_pages_without_a_folder_cannot_be_restored(brain: Brain) -> None:
    with pytest.raises(InvalidArgument, match="`quaid export` writes them out"):
        run(brain, "collection restore", name="default", target="x")
    with pytest.raises(NotFound):
        run(brain, "collection audit", name="nowhere")


def test_the_ignore_rules_are_restored_with_the_folder(brain: Brain, notes: Path, tmp_path: Path) -> None:
    run(brain, "collection ignore add", name="notes", pattern="cr.md")
    shutil.rmtree(notes)
    assert (
        run(brain, "collection restore", name="notes", target=str(tmp_path / "again"))["files"]
        == len(FILES) - 1
    )
    assert (tmp_path / "again" / ".quaidignore").read_text() == "cr.md\n"
    assert run(brain, "collection sync")["syncs"][0]["halted"] == ""


# Comparing


def kinds(brain: Brain) -> dict[str, str]:
    return {
        difference["where"]: difference["kind"]
        for difference in run(brain, "collection audit", name="notes")["differences"]
    }


def test_an_audit_of_what_agrees_finds_nothing_and_changes_nothing(brain: Brain, notes: Path) -> None:
    before = brain.db.rows("SELECT * FROM file_state"), tree(notes)
    record = dispatch.call(brain, dispatch.find_command("collection audit"), {"name": "notes"}, "owner")
    assert (record.differences, record.exit_status, record.files, record.pages) == ((), 0, 10, 10)
    assert (brain.db.rows("SELECT * FROM file_state"), tree(notes)) == before


def test_an_audit_tells_all_that_differs(brain: Brain, notes: Path) -> None:
    uuid = brain.db.rows("SELECT uuid FROM pages WHERE slug = 'people/bob'")[0][0]
    (notes / "new.md").write_text("new")
    (notes / "latin.md").unlink()
    (notes / "no-newline.md").write_bytes(b"# Enx")
    (notes / "people" / "bob.md").write_text(f"---\nquaid_id: {uuid}\n---\nBob")
    (notes / "copy.md").write_text(f"---\nquaid_id: {uuid}\n---\nBob")
    (notes / "empty.md").write_text(f"---\nquaid_id: {uuid[:-1]}x\n---\n")
    brain.db.write(
        lambda tx: tx.execute("UPDATE raw_imports SET raw_bytes = x'00' WHERE file_path = 'bom.md'")
    )
    brain.db.write(lambda tx: tx.execute("DELETE FROM raw_imports WHERE file_path = 'cr.md'"))
    differences = run(brain, "collection audit", name="notes")["differences"]
    pairs = {(line["where"], line["kind"]) for line in differences}
    assert pairs == {
        ("new.md", "no page"),
        ("copy.md", "no page"),
        ("latin.md", "no file"),
        ("no-newline.md", "changed"),
        ("people/bob.md", "changed"),
        ("empty.md", "changed"),
        ("people/bob.md", "id"),
        ("copy.md", "id"),
        ("empty.md", "id"),
        ("bom.md", "bytes"),
        ("cr.md", "bytes"),
    }


def test_an_audit_of_a_folder_that_is_gone_says_so(brain: Brain, notes: Path) -> None:
    shutil.rmtree(notes)
    assert kinds(brain) == {str(notes): "folder"}


# Ids


def _inserted(old: bytes, new: bytes) -> bytes:
    """What was put into a text at one place."""
    for place in range(len(old) + 1):
        if new.startswith(old[:place]) and new.endswith(old[place:]):
            return new[place : len(new) - len(old) + place]
    raise AssertionError(f"{new!r} is more than {old!r} with something added")


def test_ids_are_added_and_nothing_else_changes(brain: Brain, notes: Path) -> None:
    known = {slug: uuid for slug, uuid, _ in ids(brain)}
    rehearsed = run(brain, "collection migrate-ids", name="notes", dry_run=True)
    assert tree(notes) == FILES
    result = run(brain, "collection migrate-ids", name="notes")
    left = {item["path"] for item in result["left"]}
    assert {"latin.md", "hugo.md", "broken.md", "bom.md"} >= left >= {"latin.md", "hugo.md", "broken.md"}
    assert (result["written"], result["left"]) == (rehearsed["written"], rehearsed["left"])
    assert result["written"] == len(FILES) - len(left)
    for path, data in tree(notes).items():
        if path in left:
            assert data == FILES[path]
            continue
        uuid = known[path.lower().removesuffix(".md")]
        assert uuid in _inserted(FILES[path], data).decode()
    assert {slug: uuid for slug, uuid, _ in ids(brain)} == known
    again = run(brain, "collection migrate-ids", name="notes")
    assert (again["written"], again["had"]) == (0, result["written"])
    assert kinds(brain) == {}
    synced = run(brain, "collection sync")["syncs"][0]
    assert (synced["changed"], synced["new"], synced["moved"]) == (0, 0, 0)
    assert run(brain, "validate")["violations"] == []


def test_a_page_with_an_id_is_known_wherever_its_file_goes_and_whatever_it_says(
    brain: Brain, notes: Path
) -> None:
    run(brain, "collection migrate-ids", name="notes")
    bob = brain.db.one("SELECT id, uuid FROM pages WHERE slug = 'people/bob'")
    (notes / "people" / "bob.md").rename(notes / "robert.md")
    (notes / "robert.md").write_text((notes / "robert.md").read_text().replace("Text.", "Another text."))
    run(brain, "collection sync")
    assert brain.db.one("SELECT id, uuid FROM pages WHERE slug = 'robert'") == bob


def test_a_file_that_names_another_id_is_left_alone(brain: Brain, notes: Path) -> None:
    text = "---\nquaid_id: mine\n---\n# Own\n"
    (notes / "own.md").write_text(text)
    result = run(brain, "collection migrate-ids", name="notes")
    assert {"path": "own.md", "note": "names another id: mine"} in result["left"]
    assert (notes / "own.md").read_text() == text


def test_stopping_leaves_whole_files_and_the_next_run_goes_on(brain: Brain, notes: Path) -> None:
    def stop(done: int, _total: int, what: str) -> None:
        if what == "Writing ids" and done == 5:
            raise KeyboardInterrupt

    usual, brain.progress = brain.progress, stop
    with pytest.raises(IdsStopped, match=r"of 10 files have an id.*writes the rest"):
        run(brain, "collection migrate-ids", name="notes")
    brain.progress = usual
    assert kinds(brain) == {}
    assert run(brain, "collection migrate-ids", name="notes")["had"] > 0
    assert run(brain, "collection migrate-ids", name="notes")["written"] == 0


def test_killed_at_any_moment_no_file_and_no_page_is_lost(brain: Brain, tmp_path: Path) -> None:
    root = tmp_path / "many"
    root.mkdir()
    texts = {f"note-{number}.md": f"# Note {number}\n\nText.\n" for number in range(60)}
    for name, text in texts.items():
        (root / name).write_text(text)
    run(brain, "collection add", name="many", path=str(root))
    before = ids(brain)
    words = [sys.executable, "-m", "quaid", "--db", brain.db.path, "collection", "migrate-ids", "many"]
    for wait in (0.25, 0.3, 0.35, 0.4):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for name, text in texts.items():
            content = (root / name).read_text()
            assert content == text or (content.startswith("---\nquaid_id: ") and content.endswith(text))
    run(brain, "collection migrate-ids", name="many")
    assert all((root / name).read_text().startswith("---\nquaid_id: ") for name in texts)
    assert ids(brain) == before
    assert run(brain, "collection audit", name="many")["differences"] == []


def test_a_read_only_folder_gets_no_ids(brain: Brain, tmp_path: Path) -> None:
    root = fill(tmp_path / "notes")
    run(brain, "collection add", name="notes", path=str(root), read_only=True)
    with pytest.raises(CollectionReadOnly, match="is read-only"):
        run(brain, "collection migrate-ids", name="notes")
    assert tree(root) == FILES
