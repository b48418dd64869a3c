"""The interface of a hub's database. SQLite and PostgreSQL implement it; both pass the same tests.

A hub stores bundles as opaque bytes. It reads only the uuid, hash and size of each bundle, and the slug unless the
space is sealed (encrypted by its devices). All changes of a space have sequence numbers without gaps, in the
order of their commits.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from quaid.spaces.protocol import (
    AuditEntry,
    Caller,
    Change,
    ChangePage,
    Device,
    Invitation,
    Member,
    Person,
    Proposal,
    Purge,
    Push,
    PushResult,
    Right,
    Space,
    SpaceKind,
)

OPERATOR = Caller("", "operator", "", "owner", is_admin=True)


class HubStore(Protocol):
    """The database of a hub. Every method is one transaction; methods with a caller check the caller's right.

    They raise errors.NotFound for a space that the caller cannot see, errors.NotAllowed for too small a right.
    An admin may list all people, spaces (with the right `read` where the admin is not a member), devices and audit
    entries, revoke any device and invite to any space. An admin reads and writes pages only as a member of a space.
    OPERATOR is the admin who runs commands on the hub's machine.
    Instances are safe to use from several threads.
    """

    hub_id: str
    """A random id, made when the hub is created. It tells apart two hubs with one address."""

    def close(self) -> None: ...

    # People, devices and tokens
    def add_person(self, name: str, is_admin: bool = False) -> None: ...
    def people(self, caller: Caller) -> list[Person]: ...
    def add_device(
        self,
        person: str,
        name: str,
        token_hash: str,
        *,
        agent: str = "",
        limit: Right = "owner",
        expires_at: str | None = None,
    ) -> str: ...
    def authenticate(self, token_hash: str) -> Caller | None: ...
    def revoke_device(self, caller: Caller, device: str) -> None: ...
    def devices(self, caller: Caller, space: str | None = None) -> list[Device]: ...

    # Spaces, members and invitations
    def create_space(self, caller: Caller, name: str, kind: SpaceKind, sealed: bool = False) -> Space: ...
    def spaces(self, caller: Caller) -> list[Space]: ...
    def space(self, caller: Caller, space: str) -> Space: ...
    def members(self, caller: Caller, space: str) -> list[Member]: ...
    def set_member(
        self, caller: Caller, space: str, person: str, right: Right | None, agent: str = ""
    ) -> None: ...
    def invite(self, caller: Caller, code_hash: str, invitation: Invitation) -> None: ...
    def redeem(
        self, code_hash: str, person: str, device_name: str, token_hash: str
    ) -> tuple[Caller, Space | None] | None: ...

    # Pages
    def put(self, caller: Caller, space: str, pushes: Sequence[Push]) -> list[PushResult]: ...
    def changes(self, caller: Caller, space: str, after: int, limit: int) -> ChangePage:
        """Return at most `limit` changes, and fewer if their bundles are larger than 8 MB together; at least one."""
        ...

    def get(self, caller: Caller, space: str, uuid: str, revision: int | None = None) -> Change | None: ...
    def snapshot(self, caller: Caller, space: str) -> Iterator[Change]: ...
    def wait(self, space: str, after: int, timeout: float) -> bool: ...
    def follow(self, wake: Callable[[str], None]) -> Callable[[], None]:
        """Call `wake` with the id of a space soon after each commit to it, also by other processes on the database.

        It is called on a thread of the store, at most about a second late, and maybe more often than needed.
        Return a function that stops it.
        """
        ...

    # Proposals of members who may only propose
    def proposals(self, caller: Caller, space: str) -> list[Proposal]: ...
    def settle(self, caller: Caller, space: str, proposal: int, accept: bool) -> PushResult | None: ...

    # Erasing, and what devices have applied
    def purge(self, caller: Caller, space: str, uuid: str) -> Purge: ...
    def purges(self, caller: Caller, space: str) -> list[Purge]: ...
    def acknowledge(self, caller: Caller, space: str, seq: int) -> None: ...

    # Vectors by content hash, so that a text is embedded once
    def put_vectors(
        self, caller: Caller, space: str, model: str, vectors: Sequence[tuple[bytes, bytes]]
    ) -> int: ...
    def get_vectors(
        self, caller: Caller, space: str, model: str, hashes: Sequence[bytes]
    ) -> list[tuple[bytes, bytes]]: ...

    # Audit
    def audit(self, caller: Caller, after: int = 0, limit: int = 1000) -> list[AuditEntry]: ...
    def verify_audit(self) -> tuple[int, int | None]:
        """Return the number of entries, and the number of the first one that does not match, or None."""
        ...
