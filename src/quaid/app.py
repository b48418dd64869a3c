"""The composition root: settings, clock, randomness, progress reporting and the open database.

A Brain opens its database on first use, so commands that need no database (help, skills) never touch the file.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from quaid.config import OPTIONS, Settings, check_option
from quaid.embedding import registry as embedders
from quaid.embedding.registry import Embedder, EmbedderEnvironment, ModelCache as ModelCache
from quaid.errors import AlreadyExists, EmbeddingsOff, InvalidArgument
from quaid.model import dates, slug as slugs
from quaid.model.dates import LONGEST_PERIOD, Clock, retention_seconds
from quaid.model.page import DERIVED, PERSON
from quaid.storage import (
    SCHEMA_VERSION as SCHEMA_VERSION,
    KeySources,
    collections,
    expiry,
    history,
    key_sources,
)
from quaid.storage.collections import Collections
from quaid.storage.sqlite.errors import version_problem as version_problem

if TYPE_CHECKING:
    from types import TracebackType

    from quaid.folders.sync import FileStatCache
    from quaid.search.rerank import Reranker
    from quaid.storage.agents import NewCall
    from quaid.storage.sqlite.connection import Database, Rehearsal, Transaction
    from quaid.storage.sqlite.restriction import Only
    from quaid.storage.vector_index import ChunkIndex, TurnIndex
    from quaid.storage.vectors import ViewCache

# Some modules are imported where they are used. storage.sqlite.connection loads SQLite, which commands without a
# memory do not need. storage.vectors takes 6 ms of CPU time, and the others 50 to 80 ms: storage.vector_index loads
# numpy, and search.rerank and folders.sync load most modules of their packages.

RERANKER_SETTING = "reranker"
"""Key of the stored setting that describes the reranker (a cross-encoder)."""

CLIENT_ONLY = "client_only"
"""Prefix of the settings that restrict a client to parts of the memory, as in client_only.codex."""
FIXED_PARTS = ("notebook", "kb", "conversations")
"""Parts of the memory to which a client may be restricted before they exist."""
MAX_BOUND = 4
"""Number of restricted Brains (see Brain.bound) that a Brain keeps open."""

Progress = Callable[[int, int, str], None]
T = TypeVar("T")

_CACHES = ("vectors", "turn_vectors", "seen")
"""Cached properties of a Brain that depend on its database."""


def sqlite_version() -> str:
    """Return the version of the SQLite library in use, as in 3.54.1."""
    from quaid.storage.sqlite import connection

    return connection.sqlite_version()


def schema_version_of(path: str) -> int:
    """Return the schema version in the header of a database file, without writing to it or migrating it."""
    from quaid.storage.sqlite import connection

    return connection.read_header(path).version


def local_offset(seconds: float) -> int:
    """Return the offset of the local time zone from UTC in seconds, at the given time."""
    return time.localtime(seconds).tm_gmtoff


def no_progress(done: int, total: int, what: str) -> None:
    """Report nothing: the default progress callback. Other callbacks may raise Cancelled to stop the work."""


def new_calls() -> "deque[NewCall]":
    """Return a bounded queue for calls of agents that are not stored yet. A full queue drops the oldest call."""
    return deque(maxlen=1_000)


def make_view_cache() -> "ViewCache":
    """Return a cache of vectors in RAM, to be shared by several Brains of one process."""
    from quaid.storage.vectors import ViewCache

    return ViewCache()


class Brain:
    """One memory with its settings, database, embedding model and in-memory indexes."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        random: Callable[[int], bytes] = os.urandom,
        progress: Progress = no_progress,
        unwanted: Callable[[], bool] | None = None,
        offset: Callable[[float], int] = local_offset,
        models: ModelCache | None = None,
        views: "ViewCache | None" = None,
        notice: Callable[[str], None] | None = None,
        ask: Callable[[str], str] | None = None,
    ) -> None:
        self.settings = settings
        self.ask = ask  # asks for a passphrase at the terminal; None if no person is there to answer
        secret, asked_for = settings.environ.get("QUAID_KEY", ""), settings.db_path if ask else ""
        key_sources[KeySources(secret, settings.key_file, ask, asked_for)] = None
        self.progress = progress
        self._clock = clock
        self._random = random
        self._offset = offset
        self.notice = notice  # called with a message after a migration or a rebuild
        self._unwanted = unwanted  # polled during long SQL statements; True interrupts them
        self._db: Database | None = None
        self._embedder: Embedder | None = None
        self._reranker: tuple[str, Reranker] | None = (
            None  # the setting that describes the reranker, and the reranker
        )
        self._models = models  # like `views`, shared by several Brains of one process
        self._views = views
        self._bound: dict[Only, Brain] = {}
        self._device = str(settings.configured("device_name")[0] or "")
        self.agent = ""  # name of the calling program; "" for a person
        self.session = ""  # id of the connection of the calling program
        self.accepting = False  # True while a person accepts a proposal of an agent
        # Calls of agents not stored yet, shared by the workers of a server; None if calls are not recorded.
        self.calls: deque[NewCall] | None = None
        self.created: list[str] = []  # descriptions of files and folders created because they were missing
        self.asked_up_to = 0  # chunk id up to which the last query found nothing to embed
        self.asked_at: float | None = None  # when the call was made, if it runs only after a review
        # False for read-only callers, which neither log unanswered questions nor rebuild a deleted database.
        self.leaves_marks = True
        # Runs operations in a worker process of a server. It is called with operation, arguments and scope.
        self.runner: Callable[..., Any] | None = None
        # False for callers that must pass the version they have read in order to replace the text of a page.
        self.may_overwrite = True

    @property
    def db(self) -> "Database":
        if self._db is None:
            from quaid.storage.sqlite.connection import Database

            accept = self.settings.environ.get("QUAID_TORN_LOG") == "accept"
            self._db = Database.open(
                self.settings.db_path, self.now(), accept_torn_log=accept, only=self.settings.only
            )
            if self._unwanted is not None:
                self._db.set_cancel_check(self._unwanted)
            if self.notice is not None and self._db.migrated:
                self.notice(self._db.migrated)
            self._db.before_commit = self._hide_before_commit
            self._db.on_reconnect = self.hide_expired
            try:
                self.hide_expired()
            except BaseException:
                self.close()  # so that the next access does not read what should be hidden
                raise
        trust = DERIVED if self.agent and not self.accepting else PERSON
        self._db.set_author(self.author, self.agent, self._device, trust)
        return self._db

    @property
    def clock(self) -> Clock:
        """The current time, and the current day in the local time zone."""
        seconds = self._clock()
        return Clock(dates.timestamp(seconds), dates.timestamp(seconds + self._offset(seconds))[:10])

    def hide_expired(self) -> None:
        """Hide the pages and facts that have expired since the last operation.

        If the memory cannot be written, they are hidden from this connection only.
        """
        if self._db is not None and not self._db.is_in_transaction():
            expiry.hide_expired(self._db, self.clock)

    def has_past_grace(self) -> bool:
        """Return True if expired pages or facts are past their grace period and can be erased."""
        db = self._db
        if db is None or not db.writable or db.rehearsal is not None:
            return False
        return expiry.has_rows_before(db, self.grace_end)

    @property
    def grace_end(self) -> str:
        """Current time minus the grace period. Pages and facts that were hidden before this time can be erased."""
        return self.now(-(retention_seconds(str(self.option(expiry.GRACE_SETTING))) or LONGEST_PERIOD))

    def _hide_before_commit(self, tx: "Transaction") -> None:
        expiry.hide_due(tx, self.clock)

    @property
    def rehearsal(self) -> "Rehearsal | None":
        """In a dry run, the changes recorded so far; otherwise None."""
        return self._db.rehearsal if self._db is not None else None

    def rehearse(self, work: Callable[[], T]) -> T:
        """Run `work`, and roll back all writes of the operations that it calls.

        Caches filled meanwhile are dropped, because they contain rows that were rolled back.
        """
        kept = {name: self.__dict__.pop(name) for name in _CACHES if name in self.__dict__}
        views, self._views = self._views, None
        asked = self.asked_up_to
        try:
            return self.db.rehearse(lambda _: work())
        finally:
            for name in _CACHES:
                self.__dict__.pop(name, None)
            self.__dict__.update(kept)
            self._views, self.asked_up_to = views, asked

    def take_written(self) -> list[tuple[int, int, bool]]:
        """Return the page versions written since the last call; see Database.take_written()."""
        return self._db.take_written() if self._db is not None else []

    @property
    def author(self) -> str:
        """The author recorded for writes: the name of the calling client, or "owner" for a person."""
        return self.agent or "owner"

    @property
    def stated_by(self) -> str:
        """The default source of a new fact: "agent" for a program, "manual" for a person."""
        return "agent" if self.agent else "manual"

    @property
    def device(self) -> str:
        """The name of this device: the option device_name, else the name of this machine."""
        return self._device or history.device_name(self.db)

    @property
    def embedder(self) -> Embedder:
        """The selected embedding model, opened on first use and kept. Raise EmbeddingsOff if none is selected."""
        name = self.model_name
        if not name:
            raise EmbeddingsOff(remedy=self.way_to_meaning)
        # By default, numpy's threads keep spinning after each small matrix product, which doubles the CPU
        # time of a query.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if self._embedder is None or self._embedder.name != name:
            added = embedders.parse_models(collections.get_setting(self.db, embedders.MODELS_SETTING))
            here = EmbedderEnvironment(self.settings.models_folder, self.settings.environ)

            def opened() -> Embedder:
                return embedders.get_embedder(name, added, here)

            self._embedder = self._models.get(name, opened) if self._models else opened()
        return self._embedder

    @property
    def reranker(self) -> "Reranker | None":
        """The cross-encoder that reorders results, opened on first use, or None if none is set up."""
        text = collections.get_setting(self.db, RERANKER_SETTING)
        if not text:
            return None
        if self._reranker is None or self._reranker[0] != text:
            from quaid.search import rerank

            def opened() -> "Reranker":
                return rerank.open_reranker(rerank.parse_description(text), self.settings.environ)

            cached = self._models.get_reranker(text, opened) if self._models else opened()
            self._reranker = text, cached
        return self._reranker[1]

    @property
    def model_name(self) -> str:
        """The name of the selected embedding model, or "" if semantic search is off."""
        chosen = str(self.settings.configured("embedding.plugin")[0] or "")
        if not chosen and collections.get_setting(self.db, "semantic_search") == "off":
            return ""
        if chosen in ("off", "none"):
            return ""
        if chosen in embedders.DEFAULT_MODEL_ALIASES:
            return embedders.DEFAULT_MODEL
        return chosen or collections.get_setting(self.db, "embedding_model") or embedders.DEFAULT_MODEL

    @property
    def way_to_meaning(self) -> str:
        """How to turn semantic search on again, depending on where it was turned off."""
        value, source = self.settings.configured("embedding.plugin")
        if value is not None:
            return f"{source} says so (embedding.plugin: {value}); change it there"
        name = collections.get_setting(self.db, "embedding_model") or embedders.DEFAULT_MODEL
        return f"`quaid embeddings use {name}` turns it on"

    def option(self, name: str) -> Any:
        """Return an option from the environment, the config file or the database, else its default."""
        value, _ = self.settings.configured(name)
        if value is None:
            stored = OPTIONS[name].stored
            setting = collections.get_setting(self.db, stored) if stored else None
            value = check_option(name, setting) if setting else OPTIONS[name].default
        return value

    @cached_property
    def vectors(self) -> "ChunkIndex":
        """The vector index of page chunks. A long-running process keeps it in RAM."""
        from quaid.storage.vector_index import ChunkIndex

        return ChunkIndex(self.db, shared=None if self.settings.only else self._views)

    @cached_property
    def turn_vectors(self) -> "TurnIndex":
        """The vector index of conversation turns. A long-running process keeps it in RAM."""
        from quaid.storage.vector_index import TurnIndex

        return TurnIndex(self.db, shared=None if self.settings.only else self._views)

    @cached_property
    def seen(self) -> "FileStatCache":
        """The stat data of indexed files. A long-running process keeps it between queries."""
        from quaid.folders.sync import FileStatCache

        return FileStatCache(self.db)

    def create(self, path: str, memory_id: str = "", cipher: str = "") -> "Database":
        """Create a database at `path` and keep it open. The memory gets a new id unless `memory_id` is given.

        `cipher` is the hexadecimal header of a deleted encrypted memory, whose key the new database reuses.
        """
        from quaid.storage.sqlite.connection import Database, read_cipher

        header = read_cipher(cipher) if cipher else None
        self._db = Database.create(path, self.now(), memory_id or self.new_uuid(), header)
        self._db.before_commit = self._hide_before_commit
        return self._db

    def create_memory(self, path: str) -> str:
        """Create a memory. Return the folders of a memory deleted at this path as text, or "".

        The folders are not attached to the new memory.
        """
        former = collections.read_folder_list(os.path.realpath(path))
        db = self.create(path)
        db.write(lambda tx: collections.set_setting(tx, "welcome", "ask"))
        collections.write_folder_list(db)
        return ", ".join(f"{folder.name} ({folder.root})" for folder in former.folders) if former else ""

    @property
    def is_creatable(self) -> bool:
        """True if the memory is missing and may be created without an explicit `quaid init`.

        The folder must exist or be the default one, because a path in a missing folder is probably mistyped. A
        deleted memory with attached folders must be rebuilt from these folders instead.
        """
        path = os.path.realpath(self.settings.db_path)
        folder = os.path.dirname(path)
        is_safe = os.path.isdir(folder) or folder == os.path.realpath(self.settings.home)
        return (
            not self.settings.only
            and is_safe
            and not os.path.lexists(path)
            and collections.read_folder_list(path) is None
        )

    def create_if_missing(self) -> bool:
        """Create the memory if `is_creatable` allows it. Return True if it exists now."""
        if self.is_creatable:
            try:
                self.create_memory(self.settings.db_path)
            except AlreadyExists:
                return True  # another process has created it
            self.report_created(f"the memory {self.settings.db_path}")
        return os.path.exists(self.settings.db_path)

    def bound(self, only: "Only") -> "Brain":
        """Return a Brain restricted to a part of the memory, or this Brain if it has the same restriction.

        The MAX_BOUND restricted Brains that were used last stay open until this Brain is closed.
        """
        if only == self.settings.only:
            return self
        child = self._bound.pop(only, None)
        if child is None:
            settings = self.settings._replace(only=only)
            child = Brain(
                settings,
                clock=self._clock,
                random=self._random,
                offset=self._offset,
                unwanted=self._unwanted,
                models=self._models,
            )
            while len(self._bound) >= MAX_BOUND:
                self._bound.pop(next(iter(self._bound))).close()
        self._bound[only] = child
        child.agent, child.session, child.calls = self.agent, self.session, self.calls
        child.asked_at = self.asked_at
        child.progress, child.notice, child.created = self.progress, self.notice, self.created
        return child

    def for_client(self, *names: str) -> "Brain":
        """Return the Brain for clients or tokens, restricted by the settings client_only.NAME for these names.

        If the database is missing or has another schema version, return this Brain.
        """
        path = self.settings.db_path
        if self._db is None and (not os.path.exists(path) or schema_version_of(path) != SCHEMA_VERSION):
            return self
        texts = [collections.get_setting(self.db, f"{CLIENT_ONLY}.{name.lower()}") for name in names if name]
        groups = tuple(slugs.parse_only(text) for text in texts if text)
        return self.bound((*self.settings.only, *groups))

    def check_only(self, items: Sequence[str], name: str = "only") -> tuple[str, ...]:
        """Parse and check a list of parts of the memory to which a caller is to be restricted.

        Raise InvalidArgument if an item is empty or a collection does not exist. Wings and projects need not exist
        yet.
        """
        try:
            parts = slugs.parse_only(",".join(items))
        except ValueError as error:
            raise InvalidArgument(name=name, problem=str(error)) from None
        names = [*dict.fromkeys((*(row.name for row in Collections(self.db).all()), *FIXED_PARTS))]
        for part in parts:
            if not part.startswith(slugs.ONLY_PREFIXES) and part not in names:
                there = f"{', '.join(names)}, wing:NAME and project:NAME"
                raise InvalidArgument(
                    name=name, problem=f"there is no collection {part!r}; there are {there}"
                )
        return parts

    def report_created(self, what: str) -> None:
        """Record and report that a missing file was created. `what` describes it, as in "the memory PATH"."""
        self.created.append(what)
        if self.notice is not None:
            self.notice(f"created {what}")

    def beside(self, path: str) -> "Brain":
        """Return a Brain for the database at another path, with the same settings, clock and randomness."""
        settings = self.settings._replace(db_path=path)
        return Brain(
            settings, clock=self._clock, random=self._random, progress=self.progress, offset=self._offset
        )

    def now(self, shift: float = 0) -> str:
        """Return the current time in UTC, plus `shift` seconds."""
        return dates.timestamp(self._clock() + shift)

    def local(self) -> str:
        """Return the local time without a time zone, as in 2026-04-25T14:00:00.

        For a call that runs later because a person reviewed it, return the time at which the call was made.
        """
        seconds = self._clock() if self.asked_at is None else self.asked_at
        return dates.timestamp(seconds + self._offset(seconds)).rstrip("Z")

    def new_uuid(self) -> str:
        return slugs.uuid7(int(self._clock() * 1000), self._random(10))

    def random_uuid(self) -> str:
        """Return a random UUID, which can be abbreviated to its first digits.

        By contrast, the first digits of new_uuid() are a timestamp, and stay the same for about a minute.
        """
        return slugs.uuid4(self._random(16))

    def close(self) -> None:
        while self._bound:
            self._bound.popitem()[1].close()
        if self._db is not None:
            self._db.close()
            self._db = None
            for cached in _CACHES:
                self.__dict__.pop(cached, None)

    def __enter__(self) -> "Brain":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.close()
