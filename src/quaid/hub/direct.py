"""A connection to a hub directly over its database: the hub server answers its requests with it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from quaid.errors import InvitationRefused
from quaid.hub.store import HubStore
from quaid.spaces.connection import (
    PROTOCOL,
    HubInfo,
    InvitationCode,
    Joined,
    hash_code,
    hash_secret,
    new_code,
)
from quaid.spaces.protocol import (
    Caller,
    Change,
    ChangePage,
    Device,
    Invitation,
    Member,
    Proposal,
    Purge,
    Push,
    PushResult,
    Right,
    Space,
    SpaceKind,
)

INVITATION_HOURS = 24
NOBODY = Caller("", "", "", "read")
"""A caller without a token, who can only redeem a code."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class StoreHub:
    """A HubConnection of one caller over a hub's database."""

    def __init__(
        self, store: HubStore, caller: Caller = NOBODY, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.store = store
        self.caller = caller
        self.clock = clock

    @property
    def hub_id(self) -> str:
        return self.store.hub_id

    def close(self) -> None:
        """Do nothing: the database belongs to the server."""

    def about(self) -> HubInfo:
        person, agent, device, limit, is_admin = self.caller
        return HubInfo(self.hub_id, PROTOCOL, person, agent, device, limit, is_admin)

    def redeem(self, code: str, person: str, device_name: str, token: str) -> Joined:
        return self.redeem_hashed(code, person, device_name, hash_secret(token))

    def redeem_hashed(self, code: str, person: str, device_name: str, token_hash: str) -> Joined:
        """Redeem a code for a device whose token has this hash."""
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
        self.store.set_member(self.caller, space, person, right, agent)

    def invite(self, space: str, right: Right, person: str = "", agent: str = "") -> InvitationCode:
        code = new_code()
        expires_at = f"{self.clock() + timedelta(hours=INVITATION_HOURS):%Y-%m-%dT%H:%M:%SZ}"
        self.store.invite(self.caller, hash_code(code), Invitation(space, right, person, agent, expires_at))
        return InvitationCode(code, expires_at)

    def devices(self, space: str | None = None) -> list[Device]:
        return self.store.devices(self.caller, space)

    def revoke(self, device: str) -> None:
        self.store.revoke_device(self.caller, device)

    def changes(self, space: str, after: int, limit: int = 500) -> ChangePage:
        return self.store.changes(self.caller, space, after, limit)

    def get(self, space: str, uuid: str, revision: int | None = None) -> Change | None:
        return self.store.get(self.caller, space, uuid, revision)

    def snapshot(self, space: str) -> Iterator[Change]:
        return self.store.snapshot(self.caller, space)

    def push(self, space: str, pushes: Sequence[Push]) -> list[PushResult]:
        return self.store.put(self.caller, space, pushes)

    def wait(self, space: str, after: int, timeout: float) -> bool:
        # store.wait does not check the right of the caller.
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
