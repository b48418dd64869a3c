"""A HubConnection that accesses the database of the hub directly. The hub server answers requests with it."""

import os
import time
from collections.abc import Sequence

from quaid.errors import InvalidArgument, InvalidBundle, InvitationRefused, NotFound
from quaid.hub.sqlite_store import SqliteHubStore
from quaid.hub.store import HubStore
from quaid.model.bundle import Bundle, decode
from quaid.model.dates import timestamp
from quaid.model.merge import is_addition
from quaid.spaces.protocol import (
    PROTOCOL,
    Caller,
    Change,
    ChangePage,
    Device,
    HubInfo,
    Invitation,
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

INVITATION_HOURS = 24
NOBODY = Caller("", "", "", "read")
"""A caller without a token, who can only redeem a code."""


def open_store(place: str, create: bool = False) -> HubStore:
    """Open the database of a hub: a path or a postgresql:// URL. With `create`, create it if it does not exist."""
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
        self.store.invite(self.caller, hash_code(code), Invitation(space, right, person, agent, expires_at))
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
        """Return a push with `additions_only` set. Raise InvalidBundle if the bundle does not match the push."""
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
        # Check the right of the caller first, which store.wait does not.
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
