"""The protocol between devices and hubs: the values that they exchange, the requests, and invitation links."""

import hashlib
import secrets
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol, Union, get_args, get_origin, get_type_hints

from quaid.errors import InvalidArgument

Right = Literal["read", "propose", "append", "write", "owner"]
RIGHTS: tuple[Right, ...] = ("read", "propose", "append", "write", "owner")
"""The rights of members in a space, in ascending order. Each right includes those before it.

`append` allows additions only: timeline entries, links, facts and new pages. `owner` manages members.
"""

SpaceKind = Literal["private", "team", "public"]

PROTOCOL = 1
"""Version of the protocol between devices and hubs."""
CODE_LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # without letters and digits that look alike
CODE_LENGTH = 12


class Caller(NamedTuple):
    """The authenticated author of a request."""

    person: str
    """Name of the person who sent the request, or who owns the agent."""
    agent: str
    """Name of the agent that acts for the person, or ""."""
    device: str
    """Id of the device whose token was used."""
    limit: Right = "owner"
    """The highest right of this token in any space. The member's right in a space applies if it is lower."""
    is_admin: bool = False
    """True for an admin of the hub; see HubStore for what admins may do."""


class Space(NamedTuple):
    id: str
    name: str
    kind: SpaceKind
    sealed: bool
    last_seq: int
    right: Right
    """The right of the caller."""


class Push(NamedTuple):
    """A new revision of a page, sent by a device."""

    uuid: str
    base: int
    """The revision on which the change is based; 0 for a new page."""
    hash: str
    """SHA-256 of the bundle, in hexadecimal."""
    bundle: bytes
    slug: str
    """The slug of the page; "" in a sealed space or for a deleted page."""
    deleted: bool = False
    additions_only: bool = False
    """Set by the server if the bundle only adds content to its base."""
    base_hash: str = ""
    """Hash of the base, or "" to skip this check. After a restore from a backup, the hub may have other content
    under the same revision number, and refuses the push."""


class Change(NamedTuple):
    """One revision of a page, sent to devices."""

    seq: int
    uuid: str
    revision: int
    base: int
    hash: str
    bundle: bytes
    """Empty if the page was purged."""
    slug: str
    deleted: bool
    purged: bool
    person: str
    agent: str
    device: str
    at: str
    """The time at which the hub stored the revision, in UTC."""
    device_name: str = ""


class PushResult(NamedTuple):
    """The answer to one push.

    `stale`: the base is not the newest revision, which is in `head`. `slug_taken`: another page of the space,
    which is in `head`, has the slug. `denied`: the caller may only read. `proposed`: stored as a proposal,
    because the caller may only propose, or may only append and has changed existing content. `purged`: the page
    was erased permanently. A push that repeats a stored revision (same base, hash and device) is `stored` again
    with the same numbers. `head` is None if the hub does not have the page, or if the answer would be too
    large: read it with get().
    """

    uuid: str
    status: Literal["stored", "stale", "slug_taken", "denied", "proposed", "purged"]
    revision: int = 0
    seq: int = 0
    head: Change | None = None
    proposal: int = 0


class ChangePage(NamedTuple):
    """The newest revision of each page that changed after a sequence number, in order of sequence numbers."""

    changes: tuple[Change, ...]
    last_seq: int
    """The last sequence number of the space. It is smaller than `after` if the hub was restored from a backup."""
    is_complete: bool
    """True if there are no further changes."""
    after_hash: str = ""
    """Hash of the change with the number `after`; "" for a purge and if there is none. If it is not the hash that the
    device has seen there, the hub was restored from a backup and has other changes since."""


class Member(NamedTuple):
    person: str
    agent: str
    """Name of the agent if the right belongs to an agent of the person, else ""."""
    right: Right


class Person(NamedTuple):
    name: str
    is_admin: bool
    created_at: str


class Device(NamedTuple):
    id: str
    name: str
    person: str
    agent: str
    limit: Right
    created_at: str
    last_seen_at: str | None
    expires_at: str | None
    revoked_at: str | None
    acknowledged: int
    """The last sequence number of the space that the device has applied; -1 if it has not joined the space."""


class Proposal(NamedTuple):
    id: int
    space: str
    push: Push
    person: str
    agent: str
    device: str
    at: str
    decision: Literal["", "accepted", "rejected"]
    decided_by: str


class Purge(NamedTuple):
    uuid: str
    seq: int
    at: str
    person: str
    pending: tuple[Device, ...]
    """The devices of the space that have not acknowledged the purge yet."""


class AuditEntry(NamedTuple):
    """One entry of the audit log. `hash` covers the other fields and the hash of the previous entry."""

    number: int
    at: str
    person: str
    agent: str
    device: str
    action: str
    space: str
    subject: str
    """The object of the action, such as a uuid with its revision. It never contains page text."""
    hash: str


class HubInfo(NamedTuple):
    """Information about a hub and about the caller."""

    hub_id: str
    protocol: int
    person: str = ""
    """Empty if the request had no token. This and the following fields are as in Caller."""
    agent: str = ""
    device: str = ""
    limit: Right = "read"
    is_admin: bool = False


class InvitationCode(NamedTuple):
    code: str
    """The invitation code. It can be used once, and the hub stores only its hash."""
    expires_at: str


class Joined(NamedTuple):
    """The result of redeeming an invitation code."""

    person: str
    agent: str
    device: str
    space: Space | None
    """None if the invitation was for the hub and not for a space."""


# Requests of a device to a hub. HttpHub sends them over HTTP; StoreHub runs them on the database of a hub.


class HubConnection(Protocol):
    """The requests of one device. The hub identifies the device by its token and checks its rights.

    A space is named by its id. Every method may raise errors.HubUnreachable, errors.DeviceRevoked (the hub does not
    accept the token), errors.DifferentHub (the hub id is not the one that the device joined), errors.NotFound (the
    device cannot see the space), errors.NotAllowed and errors.UntrustworthyHub (a bundle does not match its hash).
    """

    @property
    def hub_id(self) -> str:
        """The id of the hub; "" until the first answer if the device has not joined the hub yet."""
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
    def push(self, space: str, pushes: Sequence[Push]) -> list[PushResult]: ...

    def wait(self, space: str, after: int, timeout: float) -> bool:
        """Return True as soon as the last sequence number is above `after`; False after `timeout` seconds."""
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


REQUESTS = tuple(name for name in vars(HubConnection) if name[0] != "_" and name not in ("hub_id", "close"))
"""The methods of HubConnection that are HTTP requests: POST /hub/v1/NAME or /hub/v1/spaces/SPACE/NAME."""
HUB_ID_HEADER = "quaid-hub"


@cache
def types_of(request: str) -> dict[str, Any]:
    """Return the types of the arguments of a request by name, with its result type under "return"."""
    return get_type_hints(getattr(HubConnection, request))


# Invitation links


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


# Values as JSON. Records are objects, bytes are base64.


def to_json(value: Any) -> Any:
    """Convert a value of this protocol to a JSON value."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: to_json(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


def from_json(hint: Any, value: Any, name: str) -> Any:
    """Return the value of type `hint` that a JSON value stands for.

    Raise InvalidArgument if it does not match the type. Unknown fields of records are ignored, so that newer
    versions can add fields.
    """
    return _reader(hint)(value, name)


Reader = Callable[[Any, str], Any]


@cache
def _reader(hint: Any) -> Reader:
    """Return a function that converts JSON values to a type."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _optional_reader(_reader(next(part for part in parts if part is not types.NoneType)))
    if origin is Literal:
        return _choice_reader(parts)
    if origin is tuple and parts[-1] is not ...:
        return _record_reader(hint, {str(index): part for index, part in enumerate(parts)})
    if origin in (tuple, list, Sequence):
        return _list_reader(_reader(parts[0]), tuple if origin is tuple else list)
    if hasattr(hint, "_fields"):
        return _record_reader(hint, get_type_hints(hint))
    return READERS[hint]


def _wrong(name: str, problem: str) -> InvalidArgument:
    return InvalidArgument(name=name, problem=problem)


def _read_text(value: Any, name: str) -> str:
    if not isinstance(value, str) or "\0" in value or (not value.isascii() and _has_surrogates(value)):
        raise _wrong(name, "must be text")
    return value


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _read_bytes(value: Any, name: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise _wrong(name, "must be base64") from None


def _read_integer(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise _wrong(name, "must be a whole number")
    return value


def _read_number(value: Any, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e15:
        raise _wrong(name, "must be a number")
    return float(value)


def _read_flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "must be true or false")
    return value


def _read_null(value: Any, name: str) -> None:
    if value is not None:
        raise _wrong(name, "must be null")


READERS: dict[Any, Reader] = {
    str: _read_text,
    bytes: _read_bytes,
    int: _read_integer,
    float: _read_number,
    bool: _read_flag,
    types.NoneType: _read_null,
}


def _optional_reader(inner: Reader) -> Reader:
    return lambda value, name: None if value is None else inner(value, name)


def _choice_reader(choices: tuple[Any, ...]) -> Reader:
    def read(value: Any, name: str) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise _wrong(name, f"must be one of {', '.join(filter(None, choices))}")
        return value

    return read


def _list_reader(inner: Reader, kind: Any) -> Reader:
    def read(value: Any, name: str) -> Any:
        if not isinstance(value, list):
            raise _wrong(name, "must be a list")
        return kind(inner(item, name) for item in value)

    return read


def _record_reader(kind: Any, hints: dict[str, Any]) -> Reader:
    """Return a reader of named tuples (JSON objects) or plain tuples (JSON arrays)."""
    is_plain = get_origin(kind) is tuple
    fields = [(name, _reader(hint)) for name, hint in hints.items()]
    defaults = {} if is_plain else kind._field_defaults

    def read(value: Any, name: str) -> Any:
        if is_plain:
            if not isinstance(value, list) or len(value) != len(fields):
                raise _wrong(name, f"must be a list of {len(fields)}")
            return tuple(reader(item, name) for (_, reader), item in zip(fields, value, strict=True))
        if not isinstance(value, dict):
            raise _wrong(name, "must be an object")
        missing = [field for field in hints if field not in value and field not in defaults]
        if missing:
            raise _wrong(f"{name}.{missing[0]}", "is missing")
        return kind(
            **{field: reader(value[field], f"{name}.{field}") for field, reader in fields if field in value}
        )

    return read
