"""A watcher that hears wrong: events are dropped, doubled, out of order, or invented. A rescan makes it right."""

import os
import random
import threading
import time
from pathlib import Path

import pytest
from tests.faults import index_check
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, files, open_brain, run

from quaid.folders.watcher import SystemHints, Watcher, WatchPace
from quaid.storage.collections import Collections

pytestmark = pytest.mark.promise("missed events")
PATIENCE = 30.0
"""Seconds in which a watcher has to bring in what somebody makes."""

PACE = WatchPace(debounce=0.05, longest=0.2, look=0.05, rescan=3600.0, poll=0.1, retry=0.05, step=0.02)


class HardOfHearing(SystemHints):
    """Hears what the system tells, and passes on only some of it, some twice, some late, some that was never said."""

    def __init__(self, roots: list[str], stop: threading.Event, step: float) -> None:
        super().__init__(roots, stop, step)
        self.chance, self.late, self.roots = random.Random(7), set[tuple[int, str]](), roots

    def wait(self, seconds: float) -> set[tuple[int, str]]:
        heard = sorted(super().wait(seconds))
        self.chance.shuffle(heard)
        messages = {item for item in heard if self.chance.random() < 0.5}
        messages, self.late = messages | self.late, {item for item in heard if self.chance.random() < 0.2}
        if heard and self.chance.random() < 0.3:
            messages.add(
                (self.chance.randrange(1, 4), os.path.join(self.roots[0], f"never{self.chance.random()}.md"))
            )
        return messages


def watch(home: Path, stop: threading.Event) -> None:
    with open_brain(home) as brain:
        ids = frozenset(item.id for item in Collections(brain.db).all() if item.root)
        Watcher(
            *(brain.db,),
            now=brain.now,
            new_uuid=brain.new_uuid,
            tell=lambda _: None,
            stop=stop,
            pace=PACE,
            source=HardOfHearing,
        ).run(lambda: ids)


def busy(root: Path, chance: random.Random, seed: int, creates: int) -> None:
    """Somebody who makes many files, and changes, moves and deletes some of them."""
    folder = root / f"s{seed}"
    (folder / "deep" / "er").mkdir(parents=True)
    for number in range(creates):
        place = chance.choice((folder, folder / "deep", folder / "deep" / "er"))
        text = f"---\ntags: [seed{seed}]\n---\n# N{number}\n\nword{seed}x{number} after [[n{number - 1}]]\n"
        (place / f"n{number}.md").write_text(text)
        if number % 10 == 9:
            some = sorted(place.glob("*.md"))
            chance.choice(some).write_text(f"# Changed\n\nChanged{seed}x{number}.\n")
            os.replace(chance.choice(some), place / f"moved{number}.md")
    if seed % 5 == 4:
        folder.rename(root / f"renamed{seed}")


def test_after_a_rescan_nothing_is_missing_whatever_the_watcher_heard(tmp_path: Path, cases: Cases) -> None:
    root = tmp_path / FOLDER
    root.mkdir()
    creates = 0
    with open_brain(tmp_path) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        stop = threading.Event()
        watcher = threading.Thread(target=watch, args=(tmp_path, stop), daemon=True)
        watcher.start()
        try:
            for seed in cases.walk(4, 500):
                before = known(tmp_path)
                busy(root, random.Random(seed), seed, 100)
                creates += 100
                stop.wait(0.1)
                if seed % 50 == 0:
                    wait_for_news(tmp_path, before)
            wait_for_news(tmp_path, creates // 2)  # a watcher hears wrong, and is not deaf
        finally:
            stop.set()
            watcher.join(60)
        assert not watcher.is_alive()
        heard = known(tmp_path)
        run(
            brain, "collection sync", name=FOLDER, confirm_deletes=True
        )  # what a restarted watcher does first
        there = files(root)
        index_check.check_texts(brain, root)
        words = [index_check.some_word(root, random.Random(number)) for number in range(3)]
        index_check.check_words(brain, root, [*words, "nowhere9"])
        index_check.check_like_new(brain, root, tmp_path / "new")
        again = run(brain, "collection sync", name=FOLDER)["syncs"][0]
        assert [again[name] for name in ("new", "changed", "moved", "removed", "waiting")] == [0] * 5
    cases.count(creates - creates // 100)
    cases.note(f"{creates:,} creates, {heard:,} pages by hearsay, {len(there):,} after a rescan")


def wait_for_news(home: Path, before: int) -> None:
    """Until the watcher has brought in more pages than these."""
    until = time.monotonic() + PATIENCE
    while (now := known(home)) <= before:
        assert time.monotonic() < until, f"{now} pages, as before: the watcher has heard nothing"
        time.sleep(0.1)


def known(home: Path) -> int:
    """How many pages of the folder are in the index, as somebody else sees it."""
    with open_brain(home) as brain:
        return int(brain.db.rows(SHOWN, (FOLDER,))[0][0])


SHOWN = """
SELECT count(*) FROM pages p JOIN collections c ON c.id = p.collection_id
WHERE p.quarantined_at IS NULL AND c.name = ?
"""
