"""The composition root: settings, clock, randomness, progress and the open store come together here.

A Brain opens its store on first use, so that commands without one (help, skills) never touch a database.
"""

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from quaid.config import Settings
from quaid.core import dates, ids
from quaid.store.db import Database
from quaid.store.opening import SCHEMA_VERSION, sqlite_version

if TYPE_CHECKING:
    from quaid.embed.protocol import Embedder
    from quaid.store.vectors import Index

__all__ = ["SCHEMA_VERSION", "Brain", "Progress", "no_progress", "sqlite_version"]

Progress = Callable[[int, int, str], None]


def no_progress(done: int, total: int, what: str) -> None:
    """Report nothing. A reporter may raise Cancelled to stop the work between two steps."""


class Brain:
    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        random: Callable[[int], bytes] = os.urandom,
        progress: Progress = no_progress,
        unwanted: Callable[[], bool] | None = None,
    ) -> None:
        self.settings = settings
        self.progress = progress
        self._clock = clock
        self._random = random
        self._unwanted = unwanted  # asked during long statements; true stops them
        self._db: Database | None = None
        self._embedder: Embedder | None = None
        self._vectors: Index | None = None

    @property
    def db(self) -> Database:
        if self._db is None:
            self._db = Database.open(self.settings.db_path, self.now())
            if self._unwanted is not None:
                self._db.give_up_when(self._unwanted)
        return self._db

    @property
    def embedder(self) -> "Embedder":
        """The active model, loaded when it is first asked; it stays for the next question."""
        from quaid.embed import registry
        from quaid.embed.protocol import Surroundings
        from quaid.store import settings

        # numpy's threads go on spinning after each small product: twice the CPU of a whole question.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        name = settings.get(self.db, "embedding_model") or registry.DEFAULT
        if self._embedder is None or self._embedder.name != name:
            added = registry.read(settings.get(self.db, registry.SETTING))
            here = Surroundings(self.settings.models_folder, self.settings.environ)
            self._embedder = registry.get(name, added, here)
        return self._embedder

    @property
    def vectors(self) -> "Index":
        """The vectors of this memory, ready to be searched; a resident process keeps them."""
        from quaid.store.vectors import Index

        if self._vectors is None:
            self._vectors = Index(self.db)
        return self._vectors

    def create(self, path: str) -> Database:
        """Make a new memory at `path` and keep it open as this brain's store."""
        self._db = Database.create(path, self.now())
        return self._db

    def now(self, shift: float = 0) -> str:
        """The time, or one some seconds away from it."""
        return dates.timestamp(self._clock() + shift)

    def new_uuid(self) -> str:
        return ids.uuid7(int(self._clock() * 1000), self._random(10))

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = self._vectors = None

    def __enter__(self) -> "Brain":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
