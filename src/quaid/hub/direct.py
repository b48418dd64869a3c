"""A HubConnection that accesses the database of the hub directly, and the hub's copies of spaces for searches.

The hub server answers requests with this connection. The copies are memories in a folder of the process, one for each
space. They are synced with the same code as the memory of a device, are opened when they are needed, and can be
deleted at any time. Sealed spaces have no copies.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from quaid.app import Brain
from quaid.config import Settings
from quaid.embedding.registry import ModelCache
from quaid.errors import Defect, InvalidArgument, InvalidBundle, InvitationRefused, NotFound, UnknownTool
from quaid.hub.store import NODE, HubStore, SqliteHubStore
from quaid.model.bundle import Bundle, decode
from quaid.model.dates import timestamp
from quaid.model.merge import is_addition
from quaid.operations import dispatch, spaces as operations
from quaid.operations.dispatch import json_value
from quaid.spaces.protocol import (
    PROTOCOL,
    Caller,
    Change,
    ChangePage,
    Device,
    HubInfo,
    InvitationCode,
    Joined,
    Member,
    Proposal,
    Purge,
    Push,
    PushResult,
    Right,
    Space,
    SpaceKind,
    hash_code,
    new_code,
)
from quaid.storage.collections import DEFAULT_COLLECTION, Collections
from quaid.storage.spaces import Spaces

INVITATION_HOURS = 24
NOBODY = Caller("", "", "", "read")
"""A caller without a token, who can only redeem a code."""


def open_store(place: str, create: bool = False) -> HubStore:
    """Open the database of a hub: a path or a postgresql:// URL.

    A missing file is created only with `create`; in PostgreSQL, missing tables are always created.
    """
    if place.startswith(("postgresql://", "postgres://")):
        from quaid.hub.postgres_store import PostgresHubStore  # imports psycopg

        return PostgresHubStore(place)
    if not create and not os.path.exists(place):
        raise NotFound(what="hub", name=place, hint="`quaid hub init` creates one.")
    return SqliteHubStore(place)


class StoreHub:
    """A HubConnection for one caller that accesses the database of the hub directly."""

    def __init__(self, store: HubStore, caller: Caller = NOBODY) -> None:
        self.store, self.caller = store, caller

    @property
    def hub_id(self) -> str:
        return self.store.hub_id

    def close(self) -> None:
        """Do nothing: the database belongs to the server."""

    def about(self) -> HubInfo:
        person, agent, device, limit, is_admin = self.caller
        return HubInfo(self.hub_id, PROTOCOL, person, agent, device, limit, is_admin)

    def redeem(self, code: str, person: str, device_name: str, token_hash: str) -> Joined:
        redeemed = self.store.redeem(hash_code(code), person, device_name, token_hash)
        if redeemed is None:
            raise InvitationRefused
        self.caller, space = redeemed
        return Joined(self.caller.person, self.caller.agent, self.caller.device, space)

    def create_space(self, name: str, kind: SpaceKind, sealed: bool = False) -> Space:
        return self.store.create_space(self.caller, name, kind, sealed)

    def spaces(self) -> list[Space]:
        return self.store.spaces(self.caller)

    def members(self, space: str) -> list[Member]:
        return self.store.members(self.caller, space)

    def set_member(self, space: str, person: str, right: Right | None, agent: str = "") -> None:
        self._check_right(space, right)
        self.store.set_member(self.caller, space, person, right, agent)

    def invite(self, space: str, right: Right, person: str = "", agent: str = "") -> InvitationCode:
        self._check_right(space, right)
        code = new_code()
        expires_at = timestamp(time.time() + INVITATION_HOURS * 3600)
        self.store.invite(self.caller, hash_code(code), space, right, expires_at, person=person, agent=agent)
        return InvitationCode(code, expires_at)

    def _check_right(self, space: str, right: Right | None) -> None:
        if right == "append" and space and self.store.space(self.caller, space).sealed:
            problem = "append is not possible in a sealed space, where the hub sees no content; use write or propose"
            raise InvalidArgument(name="right", problem=problem)

    def devices(self, space: str | None = None) -> list[Device]:
        return self.store.devices(self.caller, space)

    def revoke(self, device: str) -> None:
        self.store.revoke_device(self.caller, device)

    def changes(self, space: str, after: int, limit: int = 500) -> ChangePage:
        return self.store.changes(self.caller, space, after, limit)

    def get(self, space: str, uuid: str, revision: int | None = None) -> Change | None:
        return self.store.get(self.caller, space, uuid, revision)

    def push(self, space: str, pushes: Sequence[Push]) -> list[PushResult]:
        """Check the bundles and store them. The content of a sealed space cannot be checked."""
        info = self.store.space(self.caller, space)
        if info.sealed:
            checked = [push._replace(additions_only=False) for push in pushes]
        else:
            checked = [self._checked(info, push) for push in pushes]
        return self.store.put(self.caller, space, checked)

    def _checked(self, space: Space, push: Push) -> Push:
        """Return a push with `additions_only` True if the caller may only append, and the bundle does only that.

        Raise InvalidBundle if the bundle does not match the push.
        """
        bundle = decode(push.bundle)
        slug = "" if bundle.deleted else bundle.slug
        if (bundle.uuid, bundle.deleted, slug) != (push.uuid, push.deleted, push.slug):
            raise InvalidBundle(problem="its uuid, slug or deletion is not what the push says")
        return push._replace(additions_only=space.right == "append" and self._only_adds(space, push, bundle))

    def _only_adds(self, space: Space, push: Push, bundle: Bundle) -> bool:
        if not push.base:
            return is_addition(None, bundle)
        base = self.store.get(self.caller, space.id, push.uuid, push.base)
        return base is not None and bool(base.bundle) and is_addition(decode(base.bundle), bundle)

    def wait(self, space: str, after: int, timeout: float) -> bool:
        # This call also checks the right of the caller, which store.wait() does not do.
        if self.store.changes(self.caller, space, after, 1).last_seq > after:
            return True
        return self.store.wait(space, after, timeout)

    def proposals(self, space: str) -> list[Proposal]:
        return self.store.proposals(self.caller, space)

    def settle(self, space: str, proposal: int, accept: bool) -> PushResult | None:
        return self.store.settle(self.caller, space, proposal, accept)

    def purge(self, space: str, uuid: str) -> Purge:
        return self.store.purge(self.caller, space, uuid)

    def purges(self, space: str) -> list[Purge]:
        return self.store.purges(self.caller, space)

    def acknowledge(self, space: str, seq: int) -> None:
        self.store.acknowledge(self.caller, space, seq)

    def put_vectors(self, space: str, model: str, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        return self.store.put_vectors(self.caller, space, model, vectors)

    def get_vectors(self, space: str, model: str, hashes: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        return self.store.get_vectors(self.caller, space, model, hashes)


READS = tuple(
    "backlinks briefing contradictions context days dupes facts get glance graph links list path query search tags"
    " timeline titles wing wings".split()
)
"""The operations that a copy of a space can run. They only read pages, not folders, settings or history."""
MOST_OPEN = 32


class NodeHub(StoreHub):
    """The hub connection of a copy. It acknowledges no changes and sends no vectors, as the hub is not a device."""

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
        row = Spaces(self._brain.db).find(DEFAULT_COLLECTION)
        if row is None:
            collection = Collections(self._brain.db).require(DEFAULT_COLLECTION)
            row = operations.attach_space(self._brain, self._hub, "", space, collection)
        if row.cursor != space.last_seq:
            synced = operations.sync_space(self._brain, row, self._hub)
            if synced.problem:
                raise Defect(problem=f"the copy of the space {space.id} cannot be updated: {synced.problem}")

    def close(self) -> None:
        self.is_closed = True
        self._brain.close()


class SpaceCopies:
    """The copies of spaces in this hub process.

    If more than `most_open` copies are open, the least recently used ones are closed.
    """

    def __init__(
        self, store: HubStore, folder: str, environ: Mapping[str, str], most_open: int = MOST_OPEN
    ) -> None:
        self._store, self._folder, self._environ = store, folder, environ
        self._most_open = most_open
        self._models = ModelCache()
        self._open: OrderedDict[str, SpaceCopy] = OrderedDict()
        self._lock = threading.Lock()

    def call(self, caller: Caller, space: str, operation: str, arguments: dict[str, Any]) -> Any:
        """Run a read operation on an up-to-date copy of a space, for a caller with a right in the space."""
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
        """Return the copy of a space, opened if necessary. If too many are open, close copies that are not in use."""
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
