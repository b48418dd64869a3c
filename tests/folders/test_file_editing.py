"""A file edited as text: nothing of anybody's is lost, and it is found at once."""

import os
import subprocess
from pathlib import Path

import pytest
from tests import commands

from quaid.app import Brain
from quaid.errors import (
    CollectionReadOnly,
    FileTrouble,
    InvalidArgument,
    NoSuchVersion,
    PageExists,
    TooLarge,
    VersionConflict,
)
from quaid.folders import page_writer
from quaid.folders.page_writer import EditResult, TextChange
from quaid.operations.collections import attach_folder
from quaid.storage import pages
from quaid.storage.collections import Collection, Collections

WORKER = """
import sys
from quaid.app import Brain
from quaid.config import Settings
from quaid.storage.collections import Collections
from quaid.folders.page_writer import edit_file

db, cwd, who, times = sys.argv[1:]
with Brain(Settings(db, cwd, cwd)) as brain:
    notes = Collections(brain.db).require("notes")
    for number in range(int(times)):
        edit_file(brain.db, notes, "log.md", lambda old: (old or "") + f"- {who} {number}\\n",
                  now=brain.now(), new_uuid=brain.new_uuid, progress=brain.progress)
"""


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Collection:
    (tmp_path / "notes").mkdir()
    attach_folder(brain, "notes", str(tmp_path / "notes"), kind="notebook")
    return Collections(brain.db).require("notes")


def edit(
    brain: Brain, notes: Collection, path: str, change: TextChange, expected: int | None = None
) -> EditResult:
    return page_writer.edit_file(
        brain.db,
        notes,
        path,
        change,
        now=brain.now(),
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        expected_version=expected,
    )


def test_an_edit_is_on_the_disk_and_in_the_memory_when_it_returns(
    brain: Brain, notes: Collection, tmp_path: Path
) -> None:
    made = edit(brain, notes, "a/b.md", lambda old: f"# {old}\n")
    assert made == ("a/b.md", "# None\n", True, True, 1)
    changed = edit(brain, notes, "a/b.md", lambda old: f"{old}More.\n")
    assert (changed.created, changed.version) == (False, 2)
    assert (tmp_path / "notes/a/b.md").read_text() == "# None\nMore.\n"
    page = pages.require(brain.db, "a/b", "notes")
    assert "More." in page.truth
    assert not edit(brain, notes, "a/b.md", lambda old: old or "").changed
    assert os.listdir(tmp_path / "notes/a") == ["b.md"]


def test_line_ends_and_byte_order_mark_stay(brain: Brain, notes: Collection, tmp_path: Path) -> None:
    place = tmp_path / "notes/w.md"
    place.write_bytes(b"\xef\xbb\xbf# A\r\nb\r\n")
    edit(brain, notes, "w.md", lambda old: (old or "") + "c\n")
    assert place.read_bytes() == b"\xef\xbb\xbf# A\r\nb\r\nc\r\n"
    place.write_bytes(b"a\r\nb\n")
    edit(brain, notes, "w.md", lambda old: (old or "") + "c\n")
    assert place.read_bytes() == b"a\r\nb\nc\n"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "/etc/x.md",
            "../x.md",
            "a/../x.md",
            "a//x.md",
            "./x.md",
            "a\0.md",
            "a\n.md",
            "~/x.md",
            "C:/x.md",
        ),
        *(
            ".git/x.md",
            "a/.hidden.md",
            ".x.md",
            "x.txt",
            "x",
            "a\\b.md",
            "x" * 300 + ".md",
            "node_modules/x.md",
        ),
        "\udcff.md",
    ],
)
def test_path_outside_the_folder_is_refused(brain: Brain, notes: Collection, path: str) -> None:
    with pytest.raises(InvalidArgument):
        edit(brain, notes, path, lambda _: "no\n")
    with pytest.raises(InvalidArgument):
        page_writer.read_text_file(notes, path)


def test_no_link_is_followed(brain: Brain, notes: Collection, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (tmp_path / "notes/link").symlink_to(outside)
    (tmp_path / "notes/one.md").symlink_to(outside / "secret.md")
    for path in ("link/secret.md", "link/new.md", "one.md"):
        with pytest.raises(FileTrouble):
            edit(brain, notes, path, lambda _: "no\n")
        with pytest.raises(FileTrouble):
            page_writer.read_text_file(notes, path)
    assert os.listdir(outside) == ["secret.md"]
    assert (outside / "secret.md").read_text() == "secret"


def test_uneditable_files_are_refused_with_a_reason(brain: Brain, notes: Collection, tmp_path: Path) -> None:
    (tmp_path / "notes/latin.md").write_bytes(b"caf\xe9")
    (tmp_path / "notes/folder.md").mkdir()
    for path in ("latin.md", "folder.md"):
        with pytest.raises(FileTrouble):
            edit(brain, notes, path, lambda old: f"{old}x")
    with pytest.raises(TooLarge):
        edit(brain, notes, "big.md", lambda _: "x" * 5_000_000)
    with pytest.raises(CollectionReadOnly):
        edit(brain, notes._replace(writable=False), "a.md", lambda _: "x")
    with pytest.raises(FileTrouble):
        edit(brain, notes._replace(ignore_patterns="a.md"), "a.md", lambda _: "x")


def test_concurrent_save_is_not_overwritten(brain: Brain, notes: Collection, tmp_path: Path) -> None:
    place = tmp_path / "notes/a.md"
    place.write_text("one\n")
    saves = iter(["one\ntheirs\n", "one\ntheirs\nagain\n"])

    def change(old: str | None) -> str:
        text = next(saves, None)
        if text:
            place.write_text(text)
        return f"{old}ours\n"

    edit(brain, notes, "a.md", change)
    assert place.read_text() == "one\ntheirs\nagain\nours\n"
    assert os.listdir(tmp_path / "notes") == ["a.md"]


def test_an_edit_against_a_version_is_made_only_if_it_is_still_that(
    brain: Brain, notes: Collection, tmp_path: Path
) -> None:
    first = edit(brain, notes, "a.md", lambda _: "one\n", 0)
    with pytest.raises(PageExists):
        edit(brain, notes, "a.md", lambda _: "two\n", 0)
    with pytest.raises(NoSuchVersion):
        edit(brain, notes, "b.md", lambda _: "two\n", 3)
    (tmp_path / "notes/a.md").write_text("by hand\n")
    with pytest.raises(VersionConflict) as error:
        edit(brain, notes, "a.md", lambda _: "two\n", first.version)
    assert error.value.facts["current_version"] == 2
    assert (tmp_path / "notes/a.md").read_text() == "by hand\n"
    assert edit(brain, notes, "a.md", lambda _: "two\n", 2).version == 3


def test_processes_that_append_at_once_lose_nothing(brain: Brain, notes: Collection, tmp_path: Path) -> None:
    command = [commands.script(WORKER), brain.db.path, str(tmp_path)]
    children = [subprocess.Popen([*command, who, "25"]) for who in ("ann", "ben", "cy")]
    assert [child.wait() for child in children] == [0, 0, 0]
    lines = (tmp_path / "notes/log.md").read_text().splitlines()
    assert sorted(lines) == sorted(
        f"- {who} {number}" for who in ("ann", "ben", "cy") for number in range(25)
    )
    assert os.listdir(tmp_path / "notes") == ["log.md"]
    edit(brain, notes, "log.md", lambda old: (old or "") + "- last\n")
    known = notes.indexed_file(brain.db, "log.md")
    assert known is not None
    assert "- last" in pages.require(brain.db, "log", "notes").truth
