"""The values that devices and hubs exchange: rights, changes, pushes, members, devices and proposals."""

from typing import Literal, NamedTuple

Right = Literal["read", "propose", "append", "write", "owner"]
RIGHTS: tuple[Right, ...] = ("read", "propose", "append", "write", "owner")
"""What a member may do in a space, from least to most. Each right includes those before it.

`append` allows additions only: timeline entries, links, facts and new pages. `owner` manages members.
"""

SpaceKind = Literal["private", "team", "public"]


class Caller(NamedTuple):
    """The authenticated author of a request."""

    person: str
    """Name of the person, or of the owner of the agent."""
    agent: str
    """Name of the agent that acts for the person, or ""."""
    device: str
    """Id of the device whose token was used."""
    limit: Right = "owner"
    """The most that this token may do in any space. The right in a space is the lesser of this and the member's."""
    is_admin: bool = False
    """True for the operator of the hub, who may create spaces and people."""


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
    """The revision that the device had read; 0 for a new page."""
    hash: str
    """SHA-256 of the bundle, in hexadecimal."""
    bundle: bytes
    slug: str
    """The slug of the page; "" in a sealed space or for a deleted page."""
    deleted: bool = False
    additions_only: bool = False
    """Set by the server if it has compared the bundle with its base and found additions only."""


class Change(NamedTuple):
    """One revision of a page, as devices read it."""

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
    """The time at which the hub stored it, in UTC."""


class PushResult(NamedTuple):
    """The answer to one push.

    `stale`: the base is not the newest revision; `head` is. `slug_taken`: another page of the space has the slug;
    `head` is that page. `denied`: the caller's right does not suffice. `proposed`: stored as a proposal, because the
    caller may only propose. `purged`: the page was erased for good and cannot come back.
    A push that repeats the newest revision (same base, hash and device) is `stored` again with the same numbers.
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
    """True if no more changes are left."""


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


class Invitation(NamedTuple):
    space: str
    """The id of the space; "" for an invitation to the hub, which only an admin may make."""
    right: Right
    person: str
    """The person whom a redeemed code stands for; "" if the person who redeems it chooses a name."""
    agent: str
    expires_at: str


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
    """The devices of the space that have not yet acknowledged it."""


class AuditEntry(NamedTuple):
    """One entry of the audit log. `hash` covers the entry and the hash of the entry before it."""

    number: int
    at: str
    person: str
    agent: str
    device: str
    action: str
    space: str
    subject: str
    """What was acted on, as in a uuid with its revision. Never text of a page."""
    hash: str
