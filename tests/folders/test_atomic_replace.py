"""A file of the user's is replaced only over the text that was read."""

import hashlib
import itertools
import os
import threading
import time
from pathlib import Path

import pytest

from quaid.errors import FileChanged, FileTrouble
from quaid.folders import atomic_write
from quaid.folders.scanner import Folder


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def left(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("old")
    os.chmod(tmp_path / "a.md", 0o640)
    return tmp_path


@pytest.mark.parametrize("exchange", [None, lambda *_: False])
def test_a_file_is_replaced_and_keeps_its_mode(
    folder: Path, exchange: atomic_write.ExchangeFunction | None
) -> None:
    with Folder(str(folder)) as root:
        atomic_write.replace_file(root, "a.md", b"new", digest("old"), "t", exchange)
    assert (folder / "a.md").read_text() == "new"
    assert os.stat(folder / "a.md").st_mode & 0o777 == 0o640
    assert left(folder) == ["a.md"]


@pytest.mark.parametrize("exchange", [None, lambda *_: False])
def test_unread_text_is_not_overwritten(folder: Path, exchange: atomic_write.ExchangeFunction | None) -> None:
    with (
        Folder(str(folder)) as root,
        pytest.raises(FileChanged, match=r"a\.md was changed by another program"),
    ):
        atomic_write.replace_file(root, "a.md", b"new", digest("older"), "t", exchange)
    assert ((folder / "a.md").read_text(), left(folder)) == ("old", ["a.md"])


def test_an_edit_in_the_last_moment_goes_back_to_its_place(folder: Path) -> None:
    def late(place: int, one: str, other: str) -> bool:
        if (folder / "a.md").read_text() == "old":
            (folder / "a.md").write_text("theirs")
        return atomic_write.exchange_files(place, one, other)

    with Folder(str(folder)) as root, pytest.raises(FileChanged):
        atomic_write.replace_file(root, "a.md", b"new", digest("old"), "t", late)
    assert ((folder / "a.md").read_text(), left(folder)) == ("theirs", ["a.md"])


def test_two_edits_in_the_last_moment_are_both_kept(folder: Path) -> None:
    edits = iter(["first", "second"])

    def late(place: int, one: str, other: str) -> bool:
        (folder / "a.md").write_text(next(edits))
        return atomic_write.exchange_files(place, one, other)

    with Folder(str(folder)) as root, pytest.raises(FileChanged):
        atomic_write.replace_file(root, "a.md", b"new", digest("old"), "t", late)
    texts = {(folder / name).read_text() for name in left(folder)}
    assert {"first", "second"} <= texts


def test_a_new_file_is_made_with_its_folders_and_never_over_another(folder: Path) -> None:
    with Folder(str(folder)) as root:
        atomic_write.create_file(root, "b/c/d.md", b"new", "t")
        with pytest.raises(FileChanged):
            atomic_write.create_file(root, "a.md", b"new", "t")
    assert (folder / "b/c/d.md").read_text() == "new"
    assert (folder / "a.md").read_text() == "old"
    assert left(folder) == ["a.md", "b"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_mode_of_any_new_file_of_the_user(folder: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        with Folder(str(folder)) as root:
            atomic_write.create_file(root, "new.md", b"new", "t")
    finally:
        os.umask(before)
    assert os.stat(folder / "new.md").st_mode & 0o777 == mode


def test_a_missing_file_and_a_link_are_refused(folder: Path) -> None:
    (folder / "link.md").symlink_to("a.md")
    with Folder(str(folder)) as root:
        with pytest.raises(FileChanged):
            atomic_write.replace_file(root, "gone.md", b"x", digest("old"), "t")
        with pytest.raises(FileTrouble):
            atomic_write.replace_file(root, "link.md", b"x", digest("old"), "t")
    assert left(folder) == ["a.md", "link.md"]


def test_no_edit_is_lost_in_a_race(folder: Path) -> None:
    """Somebody saves by rename, as editors do, while we replace; every text that was saved is somewhere."""
    saved: list[str] = []
    ours = 0

    def edit() -> None:
        deadline = time.monotonic() + 60
        for number in itertools.count():
            if number >= 200 and (ours or time.monotonic() > deadline):
                return
            text = f"edit {number}"
            (folder / "tmp").write_text(text)
            os.rename(folder / "tmp", folder / "a.md")
            saved.append(text)
            pause = number % 20 / 1000  # a disk may take milliseconds to make ours durable
            time.sleep(pause if number < 200 else 10 * pause)  # and a busy one longer

    editor = threading.Thread(target=edit)
    editor.start()
    with Folder(str(folder)) as root:
        while editor.is_alive():
            read = (folder / "a.md").read_text()
            try:
                atomic_write.replace_file(
                    root, "a.md", f"ours over {read}".encode(), digest(read), f"t{ours}"
                )
                ours += 1
            except FileChanged:
                pass
    editor.join()
    last = (folder / "a.md").read_text()
    assert last.endswith(saved[-1]), "the last edit is in the file, perhaps with ours on top"
    assert ours > 0
