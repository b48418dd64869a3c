"""Copies of spaces in SQLite that a hub process keeps to answer searches and other reads.

There is one memory for each space, in a folder of this process. It follows the changes of the hub with the same code
as a device, is opened when it is needed, and can be deleted at any time. Sealed spaces have none.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from quaid.app import Brain
from quaid.config import Settings
from quaid.embedding.registry import ModelCache
from quaid.errors import Defect, InvalidArgument, UnknownTool
from quaid.hub.direct import StoreHub
from quaid.hub.store import NODE, HubStore
from quaid.operations import dispatch, spaces as operations
from quaid.operations.dispatch import json_value
from quaid.spaces.protocol import Caller, Space
from quaid.storage import spaces as space_table
from quaid.storage.collections import DEFAULT_COLLECTION, require

READS = tuple(
    "backlinks briefing contradictions context days dupes facts get glance graph links list path query search tags"
    " timeline titles wing wings".split()
)
"""The operations that a copy of a space can run. They only read pages, not folders, settings or history."""
MOST_OPEN = 32


class NodeHub(StoreHub):
    """The hub connection of a copy. A hub process is not a device, so it acknowledges and sends nothing."""

    def acknowledge(self, space: str, seq: int) -> None:
        """Do nothing, because a hub process is not a device."""

    def put_vectors(self, space: str, model: str, vectors: Sequence[tuple[bytes, bytes]]) -> int:  # noqa: ARG002
        return 0


class SpaceCopy:
    """A memory with the pages of one space. A thread must hold `lock` to use it."""

    def __init__(self, settings: Settings, models: ModelCache, hub: NodeHub) -> None:
        self.lock = threading.Lock()
        self.is_closed = False
        self._brain = Brain(settings, models=models)
        self._hub = hub

    def call(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Run a read operation and return its result as a JSON value."""
        found = dispatch.find_tool(f"memory_{operation}")
        return json_value(dispatch.call(self._brain, found, arguments, "read"))

    def update(self, space: Space) -> None:
        """Apply new changes of a space. Create the memory if it is missing."""
        path = self._brain.settings.db_path
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            self._brain.create(path)
        row = space_table.find_space(self._brain.db, DEFAULT_COLLECTION)
        if row is None:
            collection = require(self._brain.db, DEFAULT_COLLECTION)
            row = operations.attach_space(self._brain, self._hub, "", space, collection)
        if row.cursor != space.last_seq:
            synced = operations.sync_space(self._brain, row, self._hub)
            if synced.problem:
                raise Defect(problem=f"the copy of the space {space.id} cannot be updated: {synced.problem}")

    def close(self) -> None:
        self.is_closed = True
        self._brain.close()


class SpaceCopies:
    """The copies of spaces in this hub process. The least recently used copies are closed."""

    def __init__(
        self, store: HubStore, folder: str, environ: Mapping[str, str], most_open: int = MOST_OPEN
    ) -> None:
        self._store, self._folder, self._environ = store, folder, environ
        self._most_open = most_open
        self._models = ModelCache()
        self._open: OrderedDict[str, SpaceCopy] = OrderedDict()
        self._lock = threading.Lock()

    def call(self, caller: Caller, space: str, operation: str, arguments: dict[str, Any]) -> Any:
        """Run a read operation for a member on an up-to-date copy of a space."""
        found = self._store.space(caller, space, as_member=True)
        if operation not in READS:
            raise UnknownTool(name=operation, hint=f"A hub answers: {', '.join(READS)}.")
        if found.sealed:
            raise InvalidArgument(name="space", problem="is sealed, so that only its devices can read it")
        with self._taken(space) as copy:
            copy.update(found)
            return copy.call(operation, arguments)

    def refresh(self, space: str) -> None:
        """Apply new changes to the copy of a space, if there is one, so that erased pages are erased here too."""
        if os.path.exists(self._path(space)):
            found = self._store.space(NODE, space)
            with self._taken(space) as copy:
                copy.update(found)

    def existing(self) -> list[str]:
        """Return the ids of the spaces that have a copy on disk."""
        return [name for name in os.listdir(self._folder) if os.path.exists(self._path(name))]

    def close(self) -> None:
        with self._lock:
            for copy in self._open.values():
                with copy.lock:
                    copy.close()
            self._open.clear()

    def _path(self, space: str) -> str:
        return os.path.join(self._folder, space, "memory.db")

    @contextmanager
    def _taken(self, space: str) -> Iterator[SpaceCopy]:
        """Lock the copy of a space for this thread."""
        while True:
            copy = self._find(space)
            with copy.lock:
                if not copy.is_closed:  # another thread may have closed it because too many were open
                    yield copy
                    return

    def _find(self, space: str) -> SpaceCopy:
        """Return the open copy of a space. Close others that are not in use, if too many are open."""
        with self._lock:
            copy = self._open.get(space)
            if copy is None:
                settings = Settings(
                    db_path=self._path(space),
                    home=os.path.join(self._folder, ".quaid"),
                    cwd=self._folder,
                    environ=self._environ,
                )
                hub = NodeHub(self._store, NODE)
                copy = self._open[space] = SpaceCopy(settings, self._models, hub)
            self._open.move_to_end(space)
            for id in list(self._open)[: max(0, len(self._open) - self._most_open)]:
                oldest = self._open[id]
                if oldest.lock.acquire(blocking=False):
                    oldest.close()
                    oldest.lock.release()
                    del self._open[id]
            return copy
