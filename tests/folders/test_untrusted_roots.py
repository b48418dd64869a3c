"""If a folder cannot be read or trusted, no page is removed, and the reason is reported.

Each scenario breaks a folder of 30 pages in its own way, syncs, and mends it again.
"""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quaid.app import Brain
from quaid.folders import sync
from quaid.folders.sync import SyncReport
from quaid.storage import collections
from quaid.storage.collections import Collections

PAGES = 30
WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
Mend = Callable[[], None]


class Stage(NamedTuple):
    brain: Brain
    root: Path
    aside: Path
    """A folder for files that are moved away."""
    patch: pytest.MonkeyPatch

    def sync(self, progress: Callable[..., None] | None = None) -> SyncReport:
        return sync.sync_collection(
            self.brain.db,
            Collections(self.brain.db).require("notes"),
            now=self.brain.now(),
            new_uuid=self.brain.new_uuid,
            progress=progress or self.brain.progress,
        )

    def sync_without_privilege(self) -> dict[str, Any]:
        """As a process for which permissions count; root has to lay its privileges down for that."""
        words = [
            sys.executable,
            "-m",
            "quaid",
            "--db",
            self.brain.db.path,
            "collection",
            "sync",
            "notes",
            "--json",
        ]
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                pytest.skip(
                    "permissions do not bind root, and setpriv is not here to lay its privileges down"
                )
            words = [*WITHOUT_PRIVILEGE, *words]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)["syncs"][0]
        return report

    def pages(self) -> list[Any]:
        return self.brain.db.rows("SELECT id, slug, uuid FROM pages WHERE quarantined_at IS NULL ORDER BY id")

    def half(self) -> list[Path]:
        return sorted(self.root.rglob("*.md"))[: PAGES // 2]


@pytest.fixture
def stage(brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    root = tmp_path / "outer" / "notes"
    for number in range(PAGES):
        place = root / ("people" if number % 3 else "things") / f"page-{number}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# Page {number}\n\nText {number}.\n")
    (tmp_path / "aside").mkdir()
    made = Stage(brain, root, tmp_path / "aside", monkeypatch)
    brain.db.write(lambda tx: collections.add(tx, "notes", "markdown", str(root), True, brain.now()))
    assert (made.sync().new, made.sync().unchanged) == (PAGES, PAGES)
    yield made
    for folder in (tmp_path / "outer", root, root / "people"):
        if folder.exists() and not folder.is_symlink():
            folder.chmod(0o755)


def away(stage: Stage) -> Mend:
    """Move the folder away; mending brings it back."""
    stage.root.rename(stage.aside / "notes")

    def mend() -> None:
        if stage.root.is_dir() and not stage.root.is_symlink():
            shutil.rmtree(stage.root)
        elif os.path.lexists(stage.root):
            stage.root.unlink()
        (stage.aside / "notes").rename(stage.root)

    return mend


def write(texts: dict[Path, bytes]) -> None:
    for path, data in texts.items():
        path.write_bytes(data)


def missing(stage: Stage) -> Mend:
    return away(stage)


def a_file(stage: Stage) -> Mend:
    mend = away(stage)
    stage.root.write_text("no folder")
    return mend


def a_pipe(stage: Stage) -> Mend:
    mend = away(stage)
    os.mkfifo(stage.root)
    return mend


def a_socket(stage: Stage) -> Mend:
    mend = away(stage)
    listening = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(stage.root.parent)  # the whole path is too long for a socket
    try:
        listening.bind(stage.root.name)
    finally:
        os.chdir(before)
        listening.close()
    return mend


def a_device(stage: Stage) -> Mend:
    mend = away(stage)
    stage.root.symlink_to("/dev/null")
    return mend


def a_link_to_nothing(stage: Stage) -> Mend:
    mend = away(stage)
    stage.root.symlink_to(stage.aside / "nothing")
    return mend


def a_link_to_itself(stage: Stage) -> Mend:
    mend = away(stage)
    stage.root.symlink_to(stage.root)
    return mend


def a_path_that_is_too_long(stage: Stage) -> Mend:
    collection = Collections(stage.brain.db).require("notes")

    def put(root: str) -> None:
        stage.brain.db.write(lambda tx: collection.update(tx, root_path=root))

    put("/" + "x" * 300)
    return lambda: put(str(stage.root))


def no_path_at_all(stage: Stage) -> Mend:
    collection = Collections(stage.brain.db).require("notes")

    def put(root: str) -> None:
        stage.brain.db.write(lambda tx: collection.update(tx, root_path=root))

    put("")
    return lambda: put(str(stage.root))


def emptied(stage: Stage) -> Mend:
    for path in list(stage.root.iterdir()):
        path.rename(stage.aside / path.name)

    def mend() -> None:
        for path in list(stage.aside.iterdir()):
            path.rename(stage.root / path.name)

    return mend


def emptied_but_for_other_files(stage: Stage) -> Mend:
    mend = emptied(stage)
    (stage.root / "picture.png").write_bytes(b"\x89PNG")
    (stage.root / ".hidden").mkdir()
    return mend


def made_anew_and_empty(stage: Stage) -> Mend:
    mend = away(stage)
    stage.root.mkdir()
    return mend


def another_folder_in_its_place(stage: Stage) -> Mend:
    mend = away(stage)
    shutil.copytree(stage.aside / "notes", stage.root)
    for path in stage.half()[:3]:
        path.unlink()
    return mend


def a_folder_of_somebody_else(stage: Stage) -> Mend:
    mend = away(stage)
    stage.root.mkdir()
    for number in range(5):
        (stage.root / f"other-{number}.md").write_text("another vault")
    return mend


def half_of_it_gone(stage: Stage) -> Mend:
    texts = {path: path.read_bytes() for path in stage.half()}
    for path in texts:
        path.unlink()
    return lambda: write(texts)


def eleven_gone(stage: Stage) -> Mend:
    texts = {path: path.read_bytes() for path in stage.half()[:11]}
    for path in texts:
        path.unlink()
    return lambda: write(texts)


def a_subfolder_that_is_a_link(stage: Stage) -> Mend:
    (stage.root / "things").rename(stage.aside / "things")
    (stage.root / "things").symlink_to(stage.aside / "things")

    def mend() -> None:
        (stage.root / "things").unlink()
        (stage.aside / "things").rename(stage.root / "things")

    return mend


def files_that_are_links(stage: Stage) -> Mend:
    chosen = stage.half()[:5]
    for path in chosen:
        path.rename(stage.aside / path.name)
        path.symlink_to(stage.aside / path.name)

    def mend() -> None:
        for path in chosen:
            path.unlink()
            (stage.aside / path.name).rename(path)

    return mend


def rules_that_hide_everything(stage: Stage) -> Mend:
    (stage.root / ".quaidignore").write_text("# oops\n*\n")
    return (stage.root / ".quaidignore").unlink


def rules_that_hide_many(stage: Stage) -> Mend:
    (stage.root / ".quaidignore").write_text("people/\n")
    return (stage.root / ".quaidignore").unlink


def folders_too_deep(stage: Stage) -> Mend:
    """Files below the maximum depth are not read, so a missing file may have been moved there."""
    chosen = stage.half()[0]
    place = stage.root / "people"
    before = os.getcwd()
    os.chdir(place)
    for _ in range(200):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(before)
    text = chosen.read_bytes()
    chosen.unlink()

    def mend() -> None:
        shutil.rmtree(place / "deep")
        chosen.write_bytes(text)

    return mend


def fails(stage: Stage, number: int, after: int) -> Mend:
    """A disk or server that gives up while a folder is listed."""
    listed = os.scandir
    chosen = stage.half()[0]
    text = chosen.read_bytes()
    chosen.unlink()

    class Failing:
        def __init__(self, handle: Any) -> None:
            self.listing = listed(handle)

        def __enter__(self) -> "Failing":
            return self

        def __exit__(self, *_: object) -> None:
            self.listing.close()

        def __iter__(self) -> Iterator[Any]:
            for place, entry in enumerate(self.listing):
                if place == after:
                    raise OSError(number, os.strerror(number))
                yield entry

    stage.patch.setattr(os, "scandir", Failing)

    def mend() -> None:
        stage.patch.setattr(os, "scandir", listed)
        chosen.write_bytes(text)

    return mend


def a_stale_server(stage: Stage) -> Mend:
    return fails(stage, errno.ESTALE, 0)


def a_disk_that_fails_halfway(stage: Stage) -> Mend:
    return fails(stage, errno.EIO, 1)


def mounted_over(stage: Stage) -> Mend:
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount something over a folder")
    done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", stage.root], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing could be mounted: {done.stderr.strip()}")

    def mend() -> None:
        subprocess.run(["umount", stage.root], check=True)

    return mend


BROKEN: dict[Callable[[Stage], Mend], str] = {
    missing: "There is no folder",
    a_file: "is a file",
    a_pipe: "is a file",
    a_socket: "is a file",
    a_device: "is a file",
    a_link_to_nothing: "There is no folder",
    a_link_to_itself: "cannot be read",
    a_path_that_is_too_long: "cannot be read",
    no_path_at_all: "There is no folder",
    emptied: "the folder is empty; it may not be mounted",
    emptied_but_for_other_files: "the folder is empty; it may not be mounted",
    made_anew_and_empty: "the folder is empty; it may not be mounted",
    mounted_over: "the folder is empty; it may not be mounted",
    another_folder_in_its_place: "the folder is another one than before",
    a_folder_of_somebody_else: "files are missing at once",
    half_of_it_gone: "15 of 30 files are missing at once",
    eleven_gone: "11 of 30 files are missing at once",
    a_subfolder_that_is_a_link: "things is a link now",
    files_that_are_links: "is a link now",
    rules_that_hide_everything: "the ignore rules would hide 30 of 30 files at once",
    rules_that_hide_many: "the ignore rules would hide 20 of 30 files at once",
    folders_too_deep: "a part of the folder could not be read",
    a_stale_server: "a part of the folder could not be read",
    a_disk_that_fails_halfway: "a part of the folder could not be read",
}


def is_well(stage: Stage, before: list[Any]) -> None:
    """The next successful sync finds all files, new ones included."""
    (stage.root / "later.md").write_text("# Later\n")
    report = stage.sync()
    assert (report.halted, report.removed, report.new) == ("", 0, 1)
    after = stage.pages()
    assert [row for row in after if row[1] != "later"] == before
    assert Collections(stage.brain.db).require("notes").halted_at is None


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.__name__)
def test_a_folder_that_cannot_be_trusted_loses_no_page(stage: Stage, broken: Callable[[Stage], Mend]) -> None:
    before = stage.pages()
    mend = broken(stage)
    for _ in range(2):  # also the next time
        report = stage.sync()
        assert BROKEN[broken] in report.halted
        assert (report.removed, report.hidden, report.exit_status) == (0, 0, 1)
        assert [row for row in stage.pages() if row in before] == before
    collection = Collections(stage.brain.db).require("notes")
    assert BROKEN[broken] in str(collection.halt_reason)
    mend()
    if broken is a_folder_of_somebody_else:  # their pages came in; they go as any other
        assert stage.sync().removed == 5
    is_well(stage, before)


LOCKED = {
    "the folder": (".", 0, "cannot be read"),
    "its list": (".", 0o300, "cannot be read"),
    "its entries": (".", 0o400, "could not be read"),
    "a folder in it": ("people", 0, "a part of the folder could not be read"),
    "a file in it": ("people/page-1.md", 0, "a part of the folder could not be read"),
    "the folder above": ("..", 0, "cannot be read"),
}


@pytest.mark.parametrize("what", LOCKED)
def test_unreadable_files_keep_their_pages(stage: Stage, what: str) -> None:
    path, mode, reason = LOCKED[what]
    before = stage.pages()
    gone = stage.root / "things" / "page-0.md"
    text = gone.read_bytes()
    gone.unlink()
    if path.endswith(".md"):
        (stage.root / path).write_text("changed, so that it must be read")
    place = stage.root / path
    usual = place.stat().st_mode
    place.chmod(mode)
    try:
        report = stage.sync_without_privilege()
    finally:
        place.chmod(usual)
    assert reason in report["halted"]
    assert report["removed"] == 0
    assert stage.pages() == before
    gone.write_bytes(text)
    is_well(stage, before)


def test_a_folder_that_goes_while_it_is_read_loses_no_page(stage: Stage) -> None:
    before = stage.pages()
    for path in stage.half():
        path.write_text(path.read_text() + "more\n")

    def go(done: int, _total: int, _what: str) -> None:
        if done == 3 and stage.root.exists():
            stage.root.rename(stage.aside / "notes")
            shutil.copytree(stage.aside / "notes", stage.aside / "copy", dirs_exist_ok=True)
            shutil.rmtree(stage.aside / "notes")

    (stage.root / "things" / "page-0.md").unlink()
    report = stage.sync(go)
    assert (report.removed, "could not be read" in report.halted) == (0, True)
    assert stage.pages() == before
    (stage.aside / "copy").rename(stage.root)
    (stage.root / "things" / "page-0.md").write_text("# Page 0\n\nText 0.\n")
    is_well(stage, before)


def test_files_that_are_back_when_it_comes_to_removing_stay(stage: Stage) -> None:
    before = stage.pages()
    chosen = stage.half()[0]
    text = chosen.read_bytes()
    chosen.unlink()
    stage.half()[3].write_text("changed")

    def back(_done: int, _total: int, _what: str) -> None:
        chosen.write_bytes(text)

    assert stage.sync(back).removed == 0
    is_well(stage, before)


def test_ignore_file_that_is_not_a_text_leaves_the_last_good_one_in_force(stage: Stage) -> None:
    before = stage.pages()
    (stage.root / ".quaidignore").write_bytes(b"\xff\xfe*\0")
    report = stage.sync()
    assert (report.removed, report.hidden, report.halted) == (0, 0, "")
    assert "the last good set is in force" in report.notes[0].note
    assert stage.pages() == before
    (stage.root / ".quaidignore").unlink()
    is_well(stage, before)
