"""A folder that is watched, in a thread, at a pace for tests."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quaid.app import Brain
from quaid.folders import sync as syncing, watcher
from quaid.folders.watcher import ChangeHints, SystemHints, Watcher, WatchPace, WatchSynced
from quaid.storage import collections
from quaid.storage.collections import Collections

PACE = WatchPace(debounce=0.15, longest=1.0, look=0.1, rescan=60.0, poll=0.2, retry=0.1, step=0.03)
PATIENCE = 60.0

CALM = PACE._replace(debounce=2.0, longest=20.0)
"""A pace for several changes that the watcher must treat as one, even on a busy machine."""


class Watched:
    """A watched folder with the events of its watcher and the pages of the memory."""

    def __init__(self, brain: Brain, root: Path, name: str = "notes") -> None:
        self.brain = brain
        self.root = root
        self.name = name
        self.told: list[Any] = []
        self.chosen: frozenset[int] | None = frozenset()
        self.stop = threading.Event()

    def attach(self, name: str, root: Path) -> int:
        root.mkdir(exist_ok=True)
        now = self.brain.now()
        return self.brain.db.write(
            lambda tx: collections.add(tx, name, "markdown", os.path.realpath(root), True, now)
        )

    def sync(self, **how: Any) -> syncing.SyncReport:
        return syncing.sync_collection(
            self.brain.db,
            Collections(self.brain.db).require(self.name),
            now=self.brain.now(),
            new_uuid=self.brain.new_uuid,
            progress=self.brain.progress,
            **how,
        )

    @contextmanager
    def running(
        self,
        pace: WatchPace = PACE,
        source: Callable[..., ChangeHints] = SystemHints,
        until: Callable[[], bool] | None = None,
    ) -> Iterator[None]:
        """Watch with a separate connection, as a process would. Return after the first sync, or after `until`."""
        self.stop.clear()
        self.chosen = frozenset(item.id for item in Collections(self.brain.db).all() if item.root)

        def work() -> None:
            with Brain(self.brain.settings) as brain:
                Watcher(
                    brain.db,
                    now=brain.now,
                    new_uuid=brain.new_uuid,
                    tell=self.told.append,
                    stop=self.stop,
                    pace=pace,
                    source=source,
                ).run(lambda: self.chosen)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            self.wait(until or (lambda: len(self.syncs(whole=True)) >= len(self.chosen or ())))
            yield
        finally:
            self.stop.set()
            thread.join(PATIENCE)
        assert not thread.is_alive()

    def syncs(self, whole: bool | None = None) -> list[syncing.SyncReport]:
        """Return the reported syncs."""
        events = [event for event in self.told if isinstance(event, WatchSynced)]
        return [line.sync for line in events if whole is None or line.whole == whole]

    def troubles(self) -> list[str]:
        return [event.problem for event in self.told if isinstance(event, watcher.WatchTrouble)]

    def wait(self, true: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < deadline, self.told
            time.sleep(0.01)

    def pages(self) -> dict[str, tuple[str, str]]:
        """Slug to id and text of every page that shows."""
        rows = self.brain.db.rows(
            "SELECT slug, uuid, compiled_truth FROM pages WHERE quarantined_at IS NULL ORDER BY slug"
        )
        return {slug: (uuid, text) for slug, uuid, text in rows}

    def says(self, slug: str, words: str) -> bool:
        return words in self.pages().get(slug, ("", ""))[1]
