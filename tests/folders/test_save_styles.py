"""Twelve ways in which editors save: the page stays the same one, and no temporary file becomes a page.

Each way is a generator of real file operations that yields between its steps. It meets a sync at its end, a sync
after every single step, a running watcher, and a watcher that does not wait for the end of it.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.folders.watched_folder import PACE, Watched

from quaid.app import Brain
from quaid.config import Settings

Style = Callable[[Path, str], Iterator[None]]

BEFORE = "# Note\n\nWhat it said before, with enough words.\n"
AFTER = "# Note\n\nWhat it says now, and no word of the rest.\n"


def in_place(path: Path, text: str) -> Iterator[None]:
    """Truncate and write: nano, VS Code, Obsidian, Notepad."""
    with open(path, "w", encoding="utf-8") as file:
        yield
        file.write(text[:10])
        file.flush()
        yield
        file.write(text[10:])


def vim_renames(path: Path, text: str) -> Iterator[None]:
    """Vim, backupcopy=no: the old file becomes the backup."""
    backup = path.with_name(path.name + "~")
    path.rename(backup)
    yield
    path.write_text(text)
    yield
    backup.unlink()


def vim_copies(path: Path, text: str) -> Iterator[None]:
    """Vim, backupcopy=yes: a copy is the backup, the file is written in place."""
    backup = path.with_name(path.name + "~")
    shutil.copy2(path, backup)
    yield
    path.write_text(text)
    yield
    backup.unlink()


def vim_in_full(path: Path, text: str) -> Iterator[None]:
    """Vim as it is: a swap file, the test file 4913, the backup by renaming."""
    swap, probe = path.with_name(f".{path.name}.swp"), path.with_name("4913")
    swap.write_bytes(b"b0VIM 9.0" + bytes(4087))
    yield
    probe.write_bytes(b"")
    yield
    probe.unlink()
    yield from vim_renames(path, text)
    swap.unlink()


def emacs(path: Path, text: str) -> Iterator[None]:
    """Emacs: lock link, auto-save file, the old file becomes the backup and stays."""
    lock, auto = path.with_name(f".#{path.name}"), path.with_name(f"#{path.name}#")
    lock.symlink_to("me@here.1234:1700000000")
    yield
    auto.write_text(text)
    yield
    path.rename(path.with_name(path.name + "~"))
    yield
    path.write_text(text)
    yield
    auto.unlink()
    lock.unlink()


def code_atomically(path: Path, text: str) -> Iterator[None]:
    """VS Code with files.saveAtomically, Obsidian's sync, iA Writer: a temporary file takes the place."""
    new = path.with_name(path.name + ".vsctmp")
    new.write_text(text)
    yield
    new.replace(path)


def sed(path: Path, text: str) -> Iterator[None]:
    """sed -i, the real one: sedXXXXXX, then a rename."""
    yield
    words = ["sed", "-i", "-e", "1r /dev/stdin", "-e", "1,$d", str(path)]
    subprocess.run(words, input=text, text=True, check=True)


def gedit(path: Path, text: str) -> Iterator[None]:
    """GLib: .goutputstream, then a rename."""
    new = path.with_name(".goutputstream-AB12CD")
    new.write_text(text)
    yield
    new.replace(path)


def syncthing(path: Path, text: str) -> Iterator[None]:
    """Syncthing: a hidden temporary file, dates set, then a rename."""
    new = path.with_name(f".syncthing.{path.name}.tmp")
    new.write_text(text)
    yield
    os.utime(new, (1_700_000_000, 1_700_000_000))
    yield
    new.replace(path)


def dropbox(path: Path, text: str) -> Iterator[None]:
    """A sync client that deletes a file and creates it again."""
    path.unlink()
    yield
    path.write_text(text)


def kate(path: Path, text: str) -> Iterator[None]:
    """KDE: note.md.XXXXXX, then a rename."""
    new = path.with_name(path.name + ".qT8xYz")
    new.write_text(text)
    yield
    new.replace(path)


def linked(path: Path, text: str) -> Iterator[None]:
    """A new file is linked over the old one: editors with crash-safe backups (joe, BBEdit)."""
    new, backup = path.with_name(f".{path.name}.new"), path.with_name(path.name + ".bak")
    new.write_text(text)
    os.link(path, backup)
    yield
    path.unlink()
    os.link(new, path)
    yield
    new.unlink()
    backup.unlink()


STYLES = [
    *(in_place, vim_renames, vim_copies, vim_in_full, emacs, code_atomically),
    *(sed, gedit, syncthing, dropbox, kate, linked),
]
by_style = pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__name__)


@pytest.fixture
def watched(settings: Settings, tmp_path: Path) -> Iterator[Watched]:
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        watched = Watched(brain, tmp_path / "vault")
        watched.attach("notes", watched.root)
        for name in ("note.md", "other.md"):
            (watched.root / name).write_text(BEFORE.replace("Note", name))
        (watched.root / "note.md").write_text(BEFORE)
        watched.sync()
        yield watched


def is_saved(watched: Watched, before: dict[str, tuple[str, str]]) -> bool:
    """Whether the page has the new text, is the same one, and nothing else has become a page."""
    now = watched.pages()
    assert set(now) <= {"note", "other"}
    assert now["other"] == before["other"]
    if "note" not in now or now["note"][1].strip() != AFTER.strip():
        return False
    assert now["note"][0] == before["note"][0]
    return True


@by_style
def test_a_sync_finds_the_same_page(watched: Watched, style: Style) -> None:
    before = watched.pages()
    for _ in style(watched.root / "note.md", AFTER):
        pass
    report = watched.sync()
    assert (report.changed, report.new, report.moved, report.removed) == (1, 0, 0, 0)
    assert is_saved(watched, before)
    again = watched.sync()
    assert (again.unchanged, again.changed) == (2, 0)


@by_style
def test_a_sync_after_every_step_finds_the_same_page(watched: Watched, style: Style) -> None:
    before = watched.pages()
    for _ in style(watched.root / "note.md", AFTER):
        assert not watched.sync().halted
        assert set(watched.pages()) <= {"note", "other"}
    watched.sync()
    assert is_saved(watched, before)


@by_style
def test_a_watcher_finds_the_same_page(watched: Watched, style: Style) -> None:
    before = watched.pages()
    with watched.running():
        for _ in style(watched.root / "note.md", AFTER):
            pass
        watched.wait(lambda: is_saved(watched, before))
    assert len(watched.syncs(whole=True)) == 1  # the hints were enough


@by_style
def test_a_watcher_that_is_quicker_than_the_editor_finds_the_same_page(
    watched: Watched, style: Style
) -> None:
    before = watched.pages()
    with watched.running(PACE._replace(debounce=0.0)):
        for _ in style(watched.root / "note.md", AFTER):
            time.sleep(0.08)
        watched.wait(lambda: is_saved(watched, before))


@pytest.mark.skipif(not shutil.which("vim"), reason="vim is not here")
@pytest.mark.parametrize("copies", ["yes", "no", "auto"])
def test_the_real_vim(watched: Watched, copies: str, tmp_path: Path) -> None:
    before = watched.pages()
    (tmp_path / "new.txt").write_text(AFTER)
    with watched.running():
        for number in range(2):
            commands = [
                f"set backup writebackup backupcopy={copies}",
                "%d",
                f"0r {tmp_path}/new.txt",
                "wq",
            ]
            words = [word for command in commands for word in ("-c", command)]
            done = subprocess.run(
                ["vim", "-u", "NONE", "-N", "-es", *words, "note.md"],
                cwd=watched.root, stdin=subprocess.DEVNULL, capture_output=True,
            )  # fmt: skip
            assert done.returncode == 0, (number, done)
        watched.wait(lambda: is_saved(watched, before))
    assert sorted(watched.pages()) == ["note", "other"]
