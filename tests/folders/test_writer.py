"""Files are written whole, private, and nowhere else."""

import os
import stat
from pathlib import Path

import pytest

from quaid.errors import FileTrouble, FolderNotEmpty
from quaid.folders.atomic_write import EXPORT_UNFINISHED_NAME, FolderWriter


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    with FolderWriter(str(target), force=False) as writer:
        writer.write("x/y/z.md", b"1")
        writer.write("x/y/w.md", b"22")
        writer.write("x/v.md", b"")
    assert writer.written == ["x/y/z.md", "x/y/w.md", "x/v.md"]
    assert (target / "x/y/z.md").read_bytes() == b"1"
    assert {mode(path) for path in target.rglob("*.md")} == {0o600}
    assert {mode(item) for item in (tmp_path / "a", target, target / "x", target / "x/y")} == {0o700}
    assert sorted(path.name for path in target.rglob("*")) == ["v.md", "w.md", "x", "y", "z.md"]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("kept")
    with pytest.raises(FolderNotEmpty, match="--force"):
        FolderWriter(str(tmp_path), force=False)
    with FolderWriter(str(tmp_path), force=True) as writer:
        writer.write("new.md", b"new")
    assert (tmp_path / "other.txt").read_text() == "kept"


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with FolderWriter(str(tmp_path / "empty"), force=False) as writer:
        writer.write("a.md", b"")
    assert (tmp_path / "empty" / "a.md").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(FileTrouble, match="is a file"):
        FolderWriter(str(tmp_path / "file"), force=True)
    with pytest.raises(FileTrouble, match="where a folder must be"):
        FolderWriter(str(tmp_path / "file" / "below"), force=True)


def test_force_replaces_a_file_and_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("kept")
    target = tmp_path / "target"
    target.mkdir()
    (target / "a.md").symlink_to(outside / "secret.md")
    (target / "b.md").write_text("old")
    (target / "people").symlink_to(outside)
    (target / EXPORT_UNFINISHED_NAME).symlink_to(outside / "secret.md")
    with FolderWriter(str(target), force=True) as writer:
        writer.write("a.md", b"new")
        writer.write("b.md", b"new")
        with pytest.raises(FileTrouble, match="named people is where a folder must be"):
            writer.write("people/secret.md", b"new")
    assert (outside / "secret.md").read_text() == "kept"
    assert os.listdir(outside) == ["secret.md"]
    assert not (target / "a.md").is_symlink()
    assert (target / "a.md").read_bytes() == (target / "b.md").read_bytes() == b"new"
    assert not (target / EXPORT_UNFINISHED_NAME).exists()


def test_a_folder_in_the_place_of_a_file_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.md").mkdir()
    with FolderWriter(str(tmp_path), force=True) as writer, pytest.raises(FileTrouble, match="directory"):
        writer.write("a.md", b"x")
    assert os.listdir(tmp_path) == ["a.md"]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//x", "", ".", "a/.", "a\0b"])
def test_no_path_leads_out_of_the_folder(tmp_path: Path, path: str) -> None:
    with (
        FolderWriter(str(tmp_path / "t"), force=False) as writer,
        pytest.raises(FileTrouble, match="leads out"),
    ):
        writer.write(path, b"x")
    assert os.listdir(tmp_path / "t") == []
    assert os.listdir(tmp_path) == ["t"]
