"""Watched folders: change events are hints, and changes without an event are found by rescans."""

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.folders.watched_folder import CALM, PACE, Watched

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import Busy
from quaid.folders import sync as syncing
from quaid.folders.watcher import ADDED, MAX_HINTS, ChangeHints, WatchBegan
from quaid.storage.collections import Collections


@pytest.fixture
def watched(settings: Settings, tmp_path: Path) -> Iterator[Watched]:
    """A folder of three files, attached and synced."""
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        watched = Watched(brain, tmp_path / "vault")
        watched.attach("notes", watched.root)
        for name in ("a", "b", "c"):
            (watched.root / f"{name}.md").write_text(f"# {name}\n\nThe page {name}.\n")
        watched.sync()
        yield watched


def ids(watched: Watched) -> dict[str, str]:
    return {slug: uuid for slug, (uuid, _) in watched.pages().items()}


def moves(watched: Watched) -> int:
    return sum(sync.moved for sync in watched.syncs())


def test_changes_before_the_watcher_started_are_found(watched: Watched) -> None:
    (watched.root / "a.md").write_text("# a\n\nNew words.\n")
    with watched.running():
        assert watched.says("a", "New words")
    assert watched.syncs()[0].changed == 1
    assert watched.told[0] == WatchBegan("notes", str(watched.root))


def test_a_change_is_taken_in_by_looking_at_that_file_alone(watched: Watched) -> None:
    with watched.running():
        (watched.root / "a.md").write_text("# a\n\nNew words.\n")
        watched.wait(lambda: watched.says("a", "New words"))
        (watched.root / "d.md").write_text("# d\n")
        watched.wait(lambda: "d" in watched.pages())
        (watched.root / "b.md").unlink()
        watched.wait(lambda: "b" not in watched.pages())
    assert [sync.files for sync in watched.syncs(whole=False)] == [1, 1, 0]
    assert len(watched.syncs(whole=True)) == 1


def test_a_file_in_folders_made_a_moment_before_is_found(watched: Watched) -> None:
    with watched.running():
        os.makedirs(watched.root / "x" / "y" / "z")
        (watched.root / "x" / "y" / "z" / "deep.md").write_text("# Deep\n")
        watched.wait(lambda: "x/y/z/deep" in watched.pages())
        (watched.root / "x" / "y" / "z" / "deep.md").write_text("# Deep\n\nChanged.\n")
        watched.wait(lambda: watched.says("x/y/z/deep", "Changed"))


def test_the_pages_of_a_renamed_folder_stay_the_same(watched: Watched) -> None:
    (watched.root / "old").mkdir()
    for name in ("one", "two"):
        (watched.root / "old" / f"{name}.md").write_text(f"# {name}\n")
    with watched.running():
        before = ids(watched)
        os.rename(watched.root / "old", watched.root / "new")
        watched.wait(lambda: "new/one" in watched.pages())
        now = ids(watched)
        assert {now["new/one"], now["new/two"]} == {before["old/one"], before["old/two"]}
        (watched.root / "new" / "one.md").write_text("# one\n\nAfter the move.\n")
        watched.wait(lambda: watched.says("new/one", "After the move"))
    assert moves(watched) == 2


def test_a_folder_that_leaves_and_comes_back_brings_its_pages_back(watched: Watched, tmp_path: Path) -> None:
    (watched.root / "sub").mkdir()
    (watched.root / "sub" / "one.md").write_text("# one\n")
    with watched.running():
        before = ids(watched)
        os.rename(watched.root / "sub", tmp_path / "away")
        watched.wait(lambda: "sub/one" not in watched.pages())
        os.rename(tmp_path / "away", watched.root / "sub")
        watched.wait(lambda: ids(watched) == before)


def test_a_rename_of_case_only_keeps_the_page(watched: Watched) -> None:
    with watched.running():
        before = ids(watched)
        os.rename(watched.root / "a.md", watched.root / "A.md")
        (watched.root / "A.md").write_text("# a\n\nIn capitals.\n")
        watched.wait(lambda: watched.says("a", "In capitals"))
        assert ids(watched) == before
    rows = watched.brain.db.rows("SELECT relative_path FROM file_state ORDER BY 1")
    assert rows == [("A.md",), ("b.md",), ("c.md",)]


def test_a_thousand_files_at_once_are_found_by_one_walk(watched: Watched) -> None:
    with watched.running(CALM):
        for number in range(1_000):
            (watched.root / f"n{number}.md").write_text(f"# n{number}\n")
        # The pages are there shortly before their sync is reported.
        watched.wait(lambda: len(watched.pages()) == 1_003 and len(watched.syncs()) > 1)
    assert len(watched.syncs()) < 5
    assert sum(sync.new for sync in watched.syncs(whole=True)) > 1_000 - MAX_HINTS


def test_new_ignore_rules_apply_at_once(watched: Watched) -> None:
    with watched.running():
        (watched.root / ".quaidignore").write_text("b.md\n")
        watched.wait(lambda: "b" not in watched.pages())
        (watched.root / ".quaidignore").unlink()
        watched.wait(lambda: "b" in watched.pages())


def test_changes_in_ignored_folders_start_no_sync(watched: Watched) -> None:
    for name in (".git", ".obsidian", "node_modules", "_templates"):
        (watched.root / name).mkdir()
    with watched.running():
        watched.told.clear()
        for name in (
            ".git/index.lock",
            ".obsidian/workspace.md",
            "node_modules/x.md",
            "_templates/t.md",
            "p.png",
        ):
            (watched.root / name).write_text("x")
            (watched.root / name).unlink()
        time.sleep(4 * PACE.debounce)
    assert watched.told == []


def test_folder_that_vanishes_is_reported_and_nothing_goes(watched: Watched, tmp_path: Path) -> None:
    with watched.running():
        before = watched.pages()
        os.rename(watched.root, tmp_path / "elsewhere")
        watched.wait(lambda: watched.syncs()[-1].halted)
        assert "There is no folder" in watched.syncs()[-1].halted
        count = len(watched.told)
        time.sleep(5 * PACE.look)
        assert (watched.pages(), len(watched.told)) == (before, count)  # told once
        os.rename(tmp_path / "elsewhere", watched.root)
        watched.wait(lambda: not watched.syncs()[-1].halted)
        (watched.root / "a.md").write_text("# a\n\nBack again.\n")
        watched.wait(lambda: watched.says("a", "Back again"))
        assert ids(watched) == {slug: uuid for slug, (uuid, _) in before.items()}
    assert Collections(watched.brain.db).require("notes").halt_reason is None


def test_a_folder_that_is_deleted_file_by_file_keeps_its_pages(watched: Watched) -> None:
    for number in range(40):
        (watched.root / f"n{number}.md").write_text(f"# n{number}\n")
    with watched.running(CALM):
        assert len(watched.pages()) == 43
        shutil.rmtree(watched.root)
        watched.wait(lambda: watched.syncs()[-1].halted)
        time.sleep(5 * PACE.look)
    assert len(watched.pages()) == 43


def test_collections_that_come_and_go_are_noticed(watched: Watched, tmp_path: Path) -> None:
    with watched.running():
        more = watched.attach("more", tmp_path / "more")
        (tmp_path / "more" / "m.md").write_text("# m\n")
        assert watched.chosen is not None
        watched.chosen |= {more}
        watched.wait(lambda: "m" in watched.pages())
        (tmp_path / "more" / "m.md").write_text("# m\n\nWatched too.\n")
        watched.wait(lambda: watched.says("m", "Watched too"))
        watched.brain.db.write(lambda tx: Collections(tx).require("more").update(tx, state="detached"))
        time.sleep(3 * PACE.look)
        (tmp_path / "more" / "m.md").write_text("# m\n\nNot any more.\n")
        time.sleep(3 * PACE.debounce)
        assert watched.says("m", "Watched too")


def refuse(number: int) -> Callable[..., ChangeHints]:
    def source(roots: list[str], stop: threading.Event, step: float) -> ChangeHints:
        raise OSError(number, os.strerror(number))

    return source


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_folder_is_polled_without_file_events(watched: Watched, number: int) -> None:
    with watched.running(source=refuse(number)):
        (watched.root / "a.md").write_text("# a\n\nFound by looking.\n")
        watched.wait(lambda: watched.says("a", "Found by looking"))
        time.sleep(3 * PACE.look)
    assert len(watched.troubles()) == 1
    assert os.strerror(number) in watched.troubles()[0]


class Broken(ChangeHints):
    """Gives one strange hint, then breaks."""

    made = waits = 0

    def __init__(self, roots: list[str], stop: threading.Event, step: float) -> None:
        super().__init__(stop)
        Broken.made += 1
        self.roots = roots
        self.given = False

    def wait(self, seconds: float) -> set[tuple[int, str]]:
        Broken.waits += 1
        if self.given:
            raise RuntimeError("the queue is gone")
        self.given = True
        super().wait(0.05)
        return {(99, self.roots[0] + "/a.md"), (ADDED, "/elsewhere/x.md")}


def test_hints_that_break_off_are_asked_for_again_and_the_whole_folder_is_looked_at(watched: Watched) -> None:
    Broken.made = Broken.waits = 0
    with watched.running(source=Broken):
        (watched.root / "b.md").write_text("# b\n\nNobody told.\n")
        watched.wait(lambda: watched.says("b", "Nobody told"))
        watched.wait(lambda: Broken.made > 2)
    assert Broken.waits < 10 * Broken.made  # and not asked for without a pause


def test_a_change_without_an_event_is_found_by_the_next_rescan(watched: Watched) -> None:
    def deaf(roots: list[str], stop: threading.Event, step: float) -> ChangeHints:
        return ChangeHints(stop)

    with watched.running(PACE._replace(rescan=0.3), deaf):
        (watched.root / "a.md").write_text("# a\n\nUntold.\n")
        watched.wait(lambda: watched.says("a", "Untold"))
    assert watched.troubles() == []


def test_a_memory_that_is_busy_is_waited_for(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = syncing.sync_collection, iter([Busy(path="memory.db", seconds=30)])

    def sync(*args: Any, **how: Any) -> Any:
        for failure in failures:
            raise failure
        return real(*args, **how)

    monkeypatch.setattr(syncing, "sync_collection", sync)
    (watched.root / "a.md").write_text("# a\n\nAfter the wait.\n")
    with watched.running():
        assert watched.says("a", "After the wait")
    assert "locked by another process" in watched.troubles()[0]


def test_watcher_stops_within_a_second_during_a_large_sync(watched: Watched) -> None:
    for number in range(800):
        (watched.root / f"n{number}.md").write_text(f"# n{number}\n\n" + "Some words of text. " * 50)

    def is_begun() -> bool:
        return len(watched.pages()) > 3

    with watched.running(until=is_begun):
        watched.stop.set()
        stopped, worked = time.monotonic(), time.process_time()
    assert time.process_time() - worked < 1.0
    assert time.monotonic() - stopped < 10.0  # a busy machine may let us wait
    kept = len(watched.pages())
    assert kept < 803
    assert watched.sync().new == 803 - kept


def test_idle_watcher_uses_almost_no_cpu(watched: Watched) -> None:
    def spent(seconds: float) -> float:
        before = time.process_time()
        watched.stop.wait(seconds)
        return time.process_time() - before

    with watched.running(PACE._replace(look=3.0, step=0.1)):
        # Threads that earlier tests left behind may have a last word.
        assert any(spent(1.0) < 0.05 for _ in range(5))


def test_five_quick_saves_are_one_sync(watched: Watched) -> None:
    with watched.running(CALM):
        watched.wait(lambda: len(watched.syncs()) == 1)  # the look at the start
        for number in range(5):
            (watched.root / "a.md").write_text(f"# a\n\nSave {number}.\n")
            time.sleep(2 * PACE.step)  # so that the system tells of each
        watched.wait(lambda: watched.says("a", "Save 4"))
        time.sleep(1.5 * CALM.debounce)
    assert [(sync.files, sync.changed) for sync in watched.syncs(whole=False)] == [(1, 1)]


def test_a_delayed_first_scan_leaves_earlier_changes_to_the_next_scan(watched: Watched) -> None:
    (watched.root / "a.md").write_text("# a\n\nNew words.\n")
    with watched.running(pace=PACE._replace(first=5.0), until=lambda: bool(watched.told)):
        (watched.root / "d.md").write_text("# d\n")
        watched.wait(lambda: "d" in watched.pages())
        assert not watched.says("a", "New words")
        watched.wait(lambda: watched.says("a", "New words"))
