"""What a device asks of a hub. HttpHub does it over HTTP, StoreHub directly over a hub's database."""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, get_type_hints

from quaid.spaces.protocol import (
    Change,
    ChangePage,
    Device,
    Member,
    Proposal,
    Purge,
    Push,
    PushResult,
    Right,
    Space,
    SpaceKind,
)

PROTOCOL = 1
"""Version of the protocol between devices and hubs."""
CODE_LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # no letters and digits that look alike
CODE_LENGTH = 12


class HubInfo(NamedTuple):
    """What a hub says about itself and about the caller."""

    hub_id: str
    protocol: int
    person: str = ""
    """The caller, as in Caller; all are "" if the request had no token."""
    agent: str = ""
    device: str = ""
    limit: Right = "read"
    is_admin: bool = False


class InvitationCode(NamedTuple):
    code: str
    """Single use; the hub keeps only its hash."""
    expires_at: str


class Joined(NamedTuple):
    """What a device becomes by redeeming a code."""

    person: str
    agent: str
    device: str
    space: Space | None
    """None if the invitation was for the hub and not for a space."""


class HubConnection(Protocol):
    """The requests of one device. The hub identifies the device by its token and checks its rights.

    A space is named by its id. Every method may raise errors.HubUnreachable, errors.DeviceRevoked (the hub does not
    accept the token), errors.DifferentHub (the hub id is not the one that the device joined), errors.NotFound (the
    device cannot see the space), errors.NotAllowed and errors.UntrustworthyHub (a bundle does not match its hash).
    """

    @property
    def hub_id(self) -> str:
        """The id of the hub; "" before the first answer of a hub that was not joined yet."""
        ...

    def close(self) -> None: ...
    def about(self) -> HubInfo: ...

    def redeem(self, code: str, person: str, device_name: str, token_hash: str) -> Joined:
        """Join with an invitation code. `token_hash` is hash_secret() of a token that the device made by new_token().

        `person` is "" if the invitation names the person. If the answer is lost, about() of a connection with the
        token shows whether the hub accepts it.
        """
        ...

    # Spaces, members and devices
    def create_space(self, name: str, kind: SpaceKind, sealed: bool = False) -> Space: ...
    def spaces(self) -> list[Space]: ...
    def members(self, space: str) -> list[Member]: ...
    def set_member(self, space: str, person: str, right: Right | None, agent: str = "") -> None: ...
    def invite(self, space: str, right: Right, person: str = "", agent: str = "") -> InvitationCode: ...
    def devices(self, space: str | None = None) -> list[Device]: ...
    def revoke(self, device: str) -> None: ...

    # Pages
    def changes(self, space: str, after: int, limit: int = 500) -> ChangePage: ...
    def get(self, space: str, uuid: str, revision: int | None = None) -> Change | None: ...
    def snapshot(self, space: str) -> Iterator[Change]: ...
    def push(self, space: str, pushes: Sequence[Push]) -> list[PushResult]: ...

    def wait(self, space: str, after: int, timeout: float) -> bool:
        """Return True as soon as the space has a change after `after`, False after `timeout` seconds without one."""
        ...

    # Proposals
    def proposals(self, space: str) -> list[Proposal]: ...
    def settle(self, space: str, proposal: int, accept: bool) -> PushResult | None: ...

    # Erasing
    def purge(self, space: str, uuid: str) -> Purge: ...
    def purges(self, space: str) -> list[Purge]: ...
    def acknowledge(self, space: str, seq: int) -> None: ...

    # Vectors
    def put_vectors(self, space: str, model: str, vectors: Sequence[tuple[bytes, bytes]]) -> int: ...
    def get_vectors(self, space: str, model: str, hashes: Sequence[bytes]) -> list[tuple[bytes, bytes]]: ...


def new_token() -> str:
    """Return a random token for a device."""
    return secrets.token_urlsafe(32)


def new_code() -> str:
    """Return a random invitation code, as in K7QM-3XWD-PT9H."""
    letters = "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))
    return "-".join(letters[start : start + 4] for start in range(0, CODE_LENGTH, 4))


def hash_secret(secret: str) -> str:
    """Return the hash under which a hub stores a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


def hash_code(code: str) -> str:
    """Return the hash under which a hub stores an invitation code. Case, spaces and dashes do not matter."""
    return hash_secret("".join(code.upper().replace("-", "").split()))


REQUESTS = tuple(
    name for name in vars(HubConnection) if name[0] != "_" and name not in ("hub_id", "close", "snapshot")
)
"""The methods of HubConnection that are one HTTP request each: POST /hub/v1/NAME, or /hub/v1/spaces/SPACE/NAME."""
HUB_ID_HEADER = "quaid-hub"


@cache
def types_of(request: str) -> dict[str, Any]:
    """Return the types of the arguments of a request, and of its result as "return"."""
    return get_type_hints(getattr(HubConnection, request))


class InvitationLink(NamedTuple):
    hub: str
    """Address of the hub, as in https://hub.example.org."""
    code: str
    key: str = ""
    """The key of a sealed space. It is never sent to the hub."""


def format_link(link: InvitationLink) -> str:
    """Return an invitation as a link. Browsers and clients do not send the part after # to the hub."""
    return f"{link.hub.rstrip('/')}/join#{link.code}" + (f".{link.key}" if link.key else "")


def parse_link(text: str) -> InvitationLink:
    """Return the parts of a link. The code is "" for the plain address of a hub."""
    address, _, rest = text.strip().partition("#")
    code, _, key = rest.partition(".")
    return InvitationLink(address.rstrip("/").removesuffix("/join").rstrip("/"), code, key)
