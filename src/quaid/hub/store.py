"""The database of a hub, and its implementation in one SQLite file. postgres_store.py implements it in PostgreSQL.

Both implementations pass the same tests. Bundles are stored as opaque bytes. The database also has the uuid, hash,
size and author of each bundle, and the slug unless the space is sealed (encrypted by its devices). All changes of a
space have sequence numbers without gaps, in the order of their commits.
"""

import os
import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, NamedTuple

import apsw

from quaid import errors
from quaid.hub.revisions import (
    CHANGE_COLUMNS,
    MOST_ANSWER_BYTES,
    SHAPES,
    HubTransaction,
    Ledger,
    RevisionWriter,
    Row,
    allows,
    audit_hash,
    change_from,
    check_pushes,
    in_list,
    lesser,
    right_in_space,
    slices,
)
from quaid.model.dates import is_timestamp, timestamp
from quaid.spaces.protocol import (
    RIGHTS,
    AuditEntry,
    Caller,
    Change,
    ChangePage,
    Device,
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
from quaid.storage.files import make_folders, make_private_file
from quaid.storage.sqlite.connection import check_sqlite
from quaid.storage.sqlite.errors import translate_os_errors, translate_sqlite_errors

SCHEMA_VERSION = 1
MIGRATIONS: dict[int, str] = {}
"""SQL statements that upgrade a database from the previous version, by version. They run on SQLite and PostgreSQL."""

OPERATOR = Caller("", "operator", "", "owner", is_admin=True)
NODE = Caller("", "node", "", "read", is_admin=True)
"""The caller for a hub process that reads all spaces to keep searchable copies. No token has this caller."""
KINDS: tuple[SpaceKind, ...] = ("private", "team", "public")

SEEN_SECONDS = 60
"""Minimum interval in seconds between two updates of the time at which a device was last seen."""
MOST_CHANGES = 1_000
MOST_PROPOSALS = 1_000
MOST_VECTORS = 10_000
MOST_VECTOR_BYTES = 64 * 1024
MOST_GROUPED = 64
"""Maximum number of waiting put() calls that are stored in one transaction."""
LONGEST_NAME = 100

_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?")

DEVICE_COLUMNS = (
    "d.id, d.name, d.person, d.agent, d.limit_right, d.created_at, d.last_seen_at, d.expires_at, d.revoked_at"
)

PROPOSAL_COLUMNS = (
    "id, space, uuid, base, hash, bundle, slug, deleted, additions_only, person, agent, device, at, decision,"
    " decided_by"
)


def read_statements(name: str) -> str:
    """Return the SQL statements in a file of this package."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as file:
        return file.read()


class Access(NamedTuple):
    """A space with the right of the caller, and whether the caller is a member."""

    space: Space
    is_member: bool
    has_joined: bool
    """True if the device has read pages of the space before."""


class PutCall:
    """A call of put() that waits for a transaction."""

    def __init__(self, caller: Caller, space: str, pushes: Sequence[Push]) -> None:
        self.caller, self.space, self.pushes = caller, space, pushes
        self.results: list[PushResult] = []
        self.error: BaseException | None = None
        self.is_done = False
        self.turn = threading.Event()
        """Set when the call is done, or when its thread must write the waiting calls."""


class PutQueue:
    """Calls of put() that wait while another call commits. The next writer stores them all in one transaction."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_busy = False
        self.waiting: list[PutCall] = []

    def add(self, call: PutCall) -> None:
        """Add a call. Return when it is done, or when its thread must write the waiting calls."""
        with self.lock:
            self.waiting.append(call)
            if not self.is_busy:
                self.is_busy = True
                call.turn.set()
        call.turn.wait()

    def take(self, call: PutCall, groups_spaces: bool) -> list[PutCall]:
        """Remove and return a call, and fewer than MOST_GROUPED waiting calls to store in the same transaction.

        With `groups_spaces`, these may be calls for other spaces.
        """
        with self.lock:
            fitting = [
                other
                for other in self.waiting
                if other is not call and (groups_spaces or other.space == call.space)
            ]
            calls = [call, *fitting[: MOST_GROUPED - 1]]
            self.waiting = [other for other in self.waiting if other not in calls]
        return calls

    def finish(self, calls: Iterable[PutCall]) -> None:
        """Wake the callers of finished calls, and the next writer."""
        for call in calls:
            call.is_done = True
            call.turn.set()
        with self.lock:
            self.is_busy = bool(self.waiting)
            if self.waiting:
                self.waiting[0].turn.set()


class HubStore(ABC):
    """The database of a hub. A method writes all its rows in one transaction.

    Methods with a parameter `caller` check the caller's right. They raise errors.NotFound for a space that the
    caller cannot see, errors.NotAllowed for an insufficient right, and errors.DeviceRevoked if the device of the
    caller was revoked meanwhile.

    A person has the right of a member, or `read` in a public space. An agent has a separate right, or `read` in a
    public space. It can do what this right and the right of its person both allow, and at most `write`. The limit of
    the token applies to people and agents.

    An admin may list all people, devices and audit entries, revoke any device, manage the members of any space and
    invite people to it. To read and write the pages of a space, an admin needs a right in it. OPERATOR is the admin
    who runs commands on the hub's machine. NODE is a hub process, which may read all spaces. Both list all spaces.

    The members of a private space are one person and agents of that person.
    Instances are safe to use from several threads.
    """

    hub_id: str
    """A random id, chosen when the hub is created. It distinguishes two hubs with the same address."""

    FOR_UPDATE: ClassVar[str] = ""
    """SQL suffix of a SELECT that locks its rows."""
    GROUPS_SPACES: ClassVar[bool] = False
    """True if one transaction can store pushes to several spaces."""
    ATTEMPTS: ClassVar[int] = 1
    """Maximum number of attempts of put() if errors.Busy is raised."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._queues = [PutQueue() for _ in range(64)]
        self._followers: dict[object, Callable[[str], None]] = {}
        self._watcher: threading.Thread | None = None
        self._watcher_started = threading.Event()
        self._lock = threading.Lock()
        self._known: dict[str, int] = {}

    # Methods that differ between SQLite and PostgreSQL
    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _read(self) -> AbstractContextManager[HubTransaction]: ...

    @abstractmethod
    def _write(self) -> AbstractContextManager[HubTransaction]:
        """Return a context manager for a transaction, which is rolled back on an error and otherwise committed."""
        ...

    @abstractmethod
    def _wake(self, space: str) -> None:
        """Wake _watch() after a commit to a space, in other processes too if the database can notify them."""
        ...

    @abstractmethod
    def _scrub(self) -> None:
        """Remove erased data from the files of the database, as far as possible while other connections use them."""
        ...

    @abstractmethod
    def _watch(self) -> None:
        """Call _report_changes() soon after commits of any process, until the store is closed."""
        ...

    def _queue(self, space: str) -> PutQueue:
        """Return the queue for a space. Several spaces may share a queue."""
        return self._queues[0 if self.GROUPS_SPACES else hash(space) % len(self._queues)]

    def _create_hub(self, tx: HubTransaction) -> None:
        """Add the row of a new hub to its empty tables."""
        sql = "INSERT INTO hub (id, schema_version, audit_number, audit_hash) VALUES (?, ?, 0, '')"
        tx.many(sql, [(secrets.token_hex(16), SCHEMA_VERSION)])

    def _upgrade(self, tx: HubTransaction, place: str, execute: Callable[[str], object]) -> None:
        """Read the id of the hub, and upgrade its tables. Refuse the database of a newer Quaid."""
        [(self.hub_id, version)] = tx.rows("SELECT id, schema_version FROM hub")
        if version > SCHEMA_VERSION:
            raise errors.NewerDatabase(path=place, version=version, supported=SCHEMA_VERSION)
        for target in range(version + 1, SCHEMA_VERSION + 1):
            execute(MIGRATIONS[target])
            tx.many("UPDATE hub SET schema_version = ?", [(target,)])

    # Rights
    def _now(self) -> str:
        return timestamp(self._clock())

    def _ledger(self, tx: HubTransaction, space: str) -> Ledger:
        return Ledger(tx, space, self._now(), self.FOR_UPDATE)

    def _log(self, tx: HubTransaction, space: str, caller: Caller, action: str, subject: str) -> None:
        """Append one entry to the audit log of a space, or of the hub if `space` is ""."""
        ledger = self._ledger(tx, space)
        ledger.log(caller, action, subject)
        ledger.save()

    def _access(self, tx: HubTransaction, caller: Caller, space: str, *, as_admin: bool = False) -> Access:
        """Return the access of the caller to a space.

        Raise NotFound if the caller has no right in it, unless `as_admin` and the caller is an admin.
        """
        row = self._access_rows(tx, [caller.device], space).get(caller.device)
        return self._judge(row, caller, space, as_admin=as_admin)

    def _access_rows(self, tx: HubTransaction, devices: Sequence[str], space: str) -> dict[str, Row]:
        """Return rows with a space and the rights of devices in it, by device; empty if there is no such space."""
        listed = list(dict.fromkeys(devices))
        listed += listed[-1:] * (next(size for size in SHAPES[::-1] if size >= len(listed)) - len(listed))
        rows = tx.rows(
            "SELECT s.id, s.name, s.kind, s.sealed, s.last_seq, m.granted, a.granted, k.seq,"  # noqa: S608
            " d.id, d.person, d.revoked_at, d.expires_at FROM spaces s"
            f" LEFT JOIN devices d ON d.id IN {in_list(listed)}"
            " LEFT JOIN members m ON m.space = s.id AND m.person = d.person AND m.agent = ''"
            " LEFT JOIN members a ON a.space = s.id AND a.person = d.person AND a.agent = d.agent"
            " LEFT JOIN acknowledgements k ON k.space = s.id AND k.device = d.id WHERE s.id = ?",
            (*listed, space),
        )
        without_device = {device: (*row[:5], *(None,) * 7) for row in rows[:1] for device in listed}
        return without_device | {row[8]: row for row in rows if row[8] is not None}

    def _judge(self, row: Row | None, caller: Caller, space: str, *, as_admin: bool = False) -> Access:
        """Compute the access of the caller to a space from a row of _access_rows(), as _access() does."""
        if row is None:
            raise errors.NotFound(what="space", name=space, hint="")
        id, name, kind, sealed, last_seq, own, agents, joined, device, person, revoked, expires = row
        if caller.device or not caller.is_admin:
            self._check_device(device if person == caller.person else None, revoked, expires)
        right = "read" if caller == NODE else right_in_space(caller, kind, own, agents)
        if right is None and not (as_admin and caller.is_admin):
            raise errors.NotFound(what="space", name=space, hint="")
        found = Space(id, name, kind, bool(sealed), last_seq, right or "read")
        return Access(found, own is not None, joined is not None or caller == NODE)

    def _check_device(self, device: str | None, revoked: str | None, expires: str | None) -> None:
        if device is None or revoked or (expires and expires <= self._now()):
            raise errors.DeviceRevoked(hub=self.hub_id)

    def _check_caller(self, tx: HubTransaction, caller: Caller) -> None:
        """Raise DeviceRevoked if the device of the caller is unknown, revoked or expired."""
        if caller.device or not caller.is_admin:
            sql = "SELECT id, revoked_at, expires_at FROM devices WHERE id = ?"
            self._check_device(*(tx.one(sql, (caller.device,)) or (None, None, None)))

    def _enter(
        self, tx: HubTransaction, caller: Caller, space: str, needed: Right = "read", act: str = ""
    ) -> Access:
        """Check that the caller has the needed right in a space, and limit the transaction to the space.

        `act` is the name of the operation in the error NotAllowed.
        """
        access = self._access(tx, caller, space)
        if not allows(access.space.right, needed):
            raise errors.NotAllowed(name=act, needed=needed, granted=access.space.right)
        tx.enter(space)
        return access

    def _manage(
        self, tx: HubTransaction, caller: Caller, space: str, act: str, *, own: bool = False
    ) -> Access:
        """Check that the caller is an owner of a space or an admin or, with `own`, any member."""
        access = self._access(tx, caller, space, as_admin=True)
        may_manage = caller.is_admin or access.space.right == "owner" or (own and access.is_member)
        if not may_manage:
            raise errors.NotAllowed(name=act, needed="owner", granted=access.space.right)
        tx.enter(space)
        return access

    # People, devices and tokens
    def add_person(self, name: str, is_admin: bool = False) -> None:
        with self._write() as tx:
            self._insert_person(tx, name, is_admin)
            self._log(tx, "", OPERATOR, "add person", name)

    def _insert_person(self, tx: HubTransaction, name: str, is_admin: bool) -> None:
        _check_name("person", name)
        sql = "INSERT INTO people (name, is_admin, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING name"
        if not tx.rows(sql, (name, int(is_admin), self._now())):
            raise errors.AlreadyExists(path=f"The person {name}", hint="Choose another name.")

    def people(self, caller: Caller) -> list[Person]:
        """Return all people if the caller is an admin, otherwise the people who share a space with the caller."""
        with self._read() as tx:
            self._check_caller(tx, caller)
            sql = "SELECT p.name, p.is_admin, p.created_at FROM people p"
            params: tuple[str, ...] = ()
            if not caller.is_admin:
                sql += (
                    " WHERE p.name = ? OR p.name IN (SELECT o.person FROM members o JOIN members m"
                    " ON m.space = o.space WHERE m.person = ? AND m.agent IN ('', ?))"
                )
                params = (caller.person, caller.person, caller.agent)
            rows = tx.rows(sql + " ORDER BY p.name", params)
        return [Person(name, bool(is_admin), at) for name, is_admin, at in rows]

    def add_device(
        self,
        person: str,
        name: str,
        token_hash: str,
        *,
        agent: str = "",
        limit: Right = "owner",
        expires_at: str | None = None,
    ) -> str:
        with self._write() as tx:
            if not tx.one("SELECT name FROM people WHERE name = ?", (person,)):
                raise errors.NotFound(what="person", name=person, hint="")
            device = self._insert_device(tx, person, name, token_hash, agent, limit, expires_at)
            self._log(tx, "", OPERATOR, "add device", f"{device} {person}")
        return device

    def _insert_device(
        self,
        tx: HubTransaction,
        person: str,
        name: str,
        token_hash: str,
        agent: str,
        limit: Right,
        expires_at: str | None,
    ) -> str:
        _check_name("device", name)
        if agent:
            _check_name("agent", agent)
        _check_right(limit)
        if expires_at is not None:
            _check_time(expires_at)
        device = secrets.token_hex(8)
        if not tx.rows(
            "INSERT INTO devices (id, person, agent, name, token_hash, limit_right, created_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
            (device, person, agent, name, token_hash, limit, self._now(), expires_at),
        ):
            raise errors.AlreadyExists(path="A device with this token", hint="Make a new token.")
        return device

    def authenticate(self, token_hash: str) -> Caller | None:
        """Return the caller with this token, or None if the token is unknown, revoked or expired."""
        now = self._now()
        with self._read() as tx:
            row = tx.one(
                "SELECT d.person, d.agent, d.id, d.limit_right, p.is_admin, d.last_seen_at, d.expires_at"
                " FROM devices d JOIN people p ON p.name = d.person"
                " WHERE d.token_hash = ? AND d.revoked_at IS NULL",
                (token_hash,),
            )
        if row is None or (row[6] and row[6] <= now):
            return None
        if row[5] is None or row[5] < timestamp(self._clock() - SEEN_SECONDS):
            with self._write() as tx:
                tx.many("UPDATE devices SET last_seen_at = ? WHERE id = ?", [(now, row[2])])
        return _caller_from(row)

    def revoke_device(self, caller: Caller, device: str) -> None:
        """Revoke a device and its open invitations.

        An admin may revoke any device, another person only devices of that person, and an agent none.
        """
        with self._write() as tx:
            self._check_caller(tx, caller)
            row = tx.one("SELECT person FROM devices WHERE id = ?", (device,))
            own = row is not None and row[0] == caller.person and not caller.agent
            if row is None or not (own or caller.is_admin):
                raise errors.NotFound(what="device", name=device, hint="")
            sql = "UPDATE devices SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
            tx.many(sql, [(self._now(), device)])
            tx.many("DELETE FROM invitations WHERE device = ? AND redeemed_at IS NULL", [(device,)])
            self._log(tx, "", caller, "revoke device", device)

    def devices(self, caller: Caller, space: str | None = None) -> list[Device]:
        """Return the devices of the caller's person, or the devices of all people for an admin.

        With a space, return only the devices of its members and the devices that have read its pages. An owner of the
        space gets those of all people.
        """
        with self._read() as tx:
            if space is None:
                self._check_caller(tx, caller)
                sees_all = caller.is_admin
                sql = f"SELECT {DEVICE_COLUMNS}, -1 FROM devices d WHERE 1 = 1"  # noqa: S608 - only constants
                params: tuple[str, ...] = ()
            else:
                access = self._access(tx, caller, space, as_admin=True)
                sees_all = caller.is_admin or access.space.right == "owner"
                sql = (
                    f"SELECT {DEVICE_COLUMNS}, COALESCE(k.seq, -1) FROM devices d"  # noqa: S608
                    " LEFT JOIN acknowledgements k ON k.device = d.id AND k.space = ?"
                    " WHERE (k.seq IS NOT NULL OR EXISTS (SELECT 1 FROM members m WHERE m.space = ?"
                    " AND m.person = d.person AND m.agent = d.agent))"
                )
                params = (space, space)
            if not sees_all:
                sql, params = sql + " AND d.person = ?", (*params, caller.person)
            return [Device(*row) for row in tx.rows(sql + " ORDER BY d.created_at, d.id", params)]

    # Spaces, members and invitations
    def create_space(self, caller: Caller, name: str, kind: SpaceKind, sealed: bool = False) -> Space:
        """Create a space with the caller as owner. OPERATOR creates one without members."""
        _check_name("name", name)
        if kind not in KINDS:
            raise errors.InvalidArgument(name="kind", problem=f"{kind!r} is not one of {', '.join(KINDS)}")
        if caller != OPERATOR and (caller.agent or caller.limit != "owner"):
            limit = lesser(caller.limit, "write") if caller.agent else caller.limit
            raise errors.NotAllowed(name="Creating a space", needed="owner", granted=limit)
        id = secrets.token_hex(8)
        with self._write() as tx:
            self._check_caller(tx, caller)
            # This takes a lock, so that a person cannot get two spaces with the same name.
            ledger = self._ledger(tx, "")
            if any(space.name == name for space in self._spaces_of(tx, caller)):
                raise errors.AlreadyExists(path=f"The space {name}", hint="Choose another name.")
            tx.many(
                "INSERT INTO spaces (id, name, kind, sealed, created_by, created_at, last_seq, last_proposal,"
                " audit_number, audit_hash) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, '')",
                [(id, name, kind, int(sealed), caller.person, self._now())],
            )
            if caller.person:
                sql = "INSERT INTO members (space, person, agent, granted) VALUES (?, ?, '', 'owner')"
                tx.many(sql, [(id, caller.person)])
            ledger.log(caller, "create space", id)
            ledger.save()
        return Space(id, name, kind, sealed, 0, "owner")

    def space(self, caller: Caller, space: str, as_member: bool = False) -> Space:
        """Return a space. With `as_member`, an admin needs a right in it too."""
        with self._read() as tx:
            return self._access(tx, caller, space, as_admin=not as_member).space

    def spaces(self, caller: Caller) -> list[Space]:
        with self._read() as tx:
            self._check_caller(tx, caller)
            return self._spaces_of(tx, caller)

    def _spaces_of(self, tx: HubTransaction, caller: Caller) -> list[Space]:
        rows = tx.rows(
            "SELECT s.id, s.name, s.kind, s.sealed, s.last_seq, m.granted, a.granted FROM spaces s"
            " LEFT JOIN members m ON m.space = s.id AND m.person = ? AND m.agent = ''"
            " LEFT JOIN members a ON a.space = s.id AND a.person = ? AND a.agent = ?"
            " WHERE ? = 1 OR s.kind = 'public' OR m.granted IS NOT NULL ORDER BY s.name, s.id",
            (caller.person, caller.person, caller.agent, int(caller in (OPERATOR, NODE))),
        )
        spaces = []
        for id, name, kind, sealed, last_seq, own, agents in rows:
            right = right_in_space(caller, kind, own, agents)
            if right or caller in (OPERATOR, NODE):
                spaces.append(Space(id, name, kind, bool(sealed), last_seq, right or "read"))
        return spaces

    def members(self, caller: Caller, space: str) -> list[Member]:
        with self._read() as tx:
            access = self._access(tx, caller, space, as_admin=True)
            if not access.is_member and not caller.is_admin:
                raise errors.NotAllowed(name="Listing the members", needed="a member's", granted="read")
            sql = "SELECT person, agent, granted FROM members WHERE space = ? ORDER BY person, agent"
            return [Member(*row) for row in tx.rows(sql, (space,))]

    def set_member(
        self, caller: Caller, space: str, person: str, right: Right | None, agent: str = ""
    ) -> None:
        """Set or remove the right of a person, or of an agent of a person.

        Owners and admins may do so for everyone. Other people may only leave the space, and set rights of their own
        agents.
        """
        if right is not None:
            _check_right(right)
        with self._write() as tx:
            own = person == caller.person and not caller.agent and bool(agent or right is None)
            access = self._manage(tx, caller, space, "Managing members", own=own)
            owned = access.space.right == "owner" or caller.is_admin
            if right and not owned and not allows(access.space.right, right):
                raise errors.NotAllowed(
                    name=f"Giving the right {right}", needed=right, granted=access.space.right
                )
            if agent and right == "owner":
                raise errors.InvalidArgument(name="right", problem="an agent cannot own a space")
            ledger = self._ledger(tx, space)
            if right:
                self._set_right(tx, access.space, person, agent, right)
                if not agent and right != "owner":
                    self._drop_invitations(tx, space, person)
            else:
                self._remove_member(tx, space, person, agent)
            self._check_owner_left(tx, space)
            subject = " ".join(filter(None, (person, agent, right)))
            ledger.log(caller, "set member" if right else "remove member", subject)
            ledger.save()

    def _set_right(self, tx: HubTransaction, space: Space, person: str, agent: str, right: Right) -> None:
        if space.kind == "private":
            for (member,) in tx.rows("SELECT person FROM members WHERE space = ?", (space.id,)):
                _check_only_person(member, person)
        if agent:
            _check_name("agent", agent)
        sql = (
            "INSERT INTO members (space, person, agent, granted) SELECT ?, name, ?, ? FROM people WHERE name = ?"
            " ON CONFLICT (space, person, agent) DO UPDATE SET granted = excluded.granted RETURNING person"
        )
        if not tx.rows(sql, (space.id, agent, right, person)):
            hint = "Invite the person; the invitation adds the name."
            raise errors.NotFound(what="person", name=person, hint=hint)

    def _remove_member(self, tx: HubTransaction, space: str, person: str, agent: str) -> None:
        sql, params = "DELETE FROM members WHERE space = ? AND person = ?", (space, person)
        if agent:
            tx.many(sql + " AND agent = ?", [(*params, agent)])
        else:  # including the agents of the person
            tx.many(sql, [params])
            self._drop_invitations(tx, space, person)

    def _drop_invitations(self, tx: HubTransaction, space: str, person: str) -> None:
        """Delete the open invitations that a person made, which could restore a right that the person has lost."""
        sql = "DELETE FROM invitations WHERE space = ? AND created_by = ? AND redeemed_at IS NULL"
        tx.many(sql, [(space, person)])

    def _check_owner_left(self, tx: HubTransaction, space: str) -> None:
        """Raise InvalidArgument if a space has members but no owner."""
        rows = tx.rows("SELECT DISTINCT granted FROM members WHERE space = ?", (space,))
        if rows and ("owner",) not in [tuple(row) for row in rows]:
            problem = "the space would have no owner; make another member the owner first"
            raise errors.InvalidArgument(name="person", problem=problem)

    def invite(
        self,
        caller: Caller,
        code_hash: str,
        space: str,
        right: Right,
        expires_at: str,
        *,
        person: str = "",
        agent: str = "",
    ) -> None:
        """Store an invitation. Owners and admins invite other people; members invite their own devices and agents.

        `space` is "" for an invitation to the hub, which only an admin may make. `person` is "" if the person who
        redeems the invitation chooses a name.

        Only an admin or the person concerned can make a code for a person who is on the hub already, because the new
        device reads all spaces of that person. A person on the hub can redeem a code that names no person, with the
        token of a device.
        """
        _check_right(right)
        _check_time(expires_at)
        if person:
            _check_name("person", person)
        if agent and (not person or right == "owner"):
            problem = "an agent needs a person who owns it, and cannot own a space"
            raise errors.InvalidArgument(name="agent", problem=problem)
        with self._write() as tx:
            if space:
                own = bool(person) and person == caller.person and not caller.agent
                access = self._manage(tx, caller, space, "Inviting", own=own)
                if access.space.kind == "private" and access.is_member:
                    person = person or caller.person
                    _check_only_person(caller.person, person)
                if not caller.is_admin and not allows(access.space.right, right):
                    raise errors.NotAllowed(
                        name=f"Inviting with {right}", needed=right, granted=access.space.right
                    )
            elif not caller.is_admin:
                raise errors.NotAllowed(name="Inviting to the hub", needed="owner", granted=caller.limit)
            values = (code_hash, space, right, person, agent, expires_at)
            tx.many(
                "INSERT INTO invitations (code_hash, space, granted, person, agent, expires_at, created_by, device,"
                " by_admin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(*values, caller.person, caller.device, int(caller.is_admin))],
            )
            self._log(tx, space, caller, "invite", f"{person} {agent} {right}".strip())

    def redeem(
        self, code_hash: str, person: str, device_name: str, token_hash: str
    ) -> tuple[Caller, Space | None] | None:
        """Use an invitation once: add a device with this token, and its person to the space.

        If a device has the token already, no device is added, and its person joins the space. Return None if the code
        is not valid. Raise AlreadyExists if another person has the chosen name, and InvalidArgument if the invitation
        is not for the person with the token.
        """
        now = self._now()
        with self._write() as tx:
            row = tx.one(
                "UPDATE invitations SET redeemed_at = ? WHERE code_hash = ? AND redeemed_at IS NULL"
                " AND expires_at > ? RETURNING space, granted, person, agent, created_by, by_admin",
                (now, code_hash, now),
            )
            if row is None:
                return None
            space, right, named, agent, inviter, by_admin = row
            caller = self._caller_of(tx, token_hash)
            if caller is None:
                may_exist = bool(named) and (bool(by_admin) or inviter == named)
                caller = self._add_invited(
                    tx, named or person, may_exist, device_name, token_hash, agent, right
                )
            elif caller.agent or agent or named not in ("", caller.person):
                raise errors.InvalidArgument(
                    name="token", problem="the invitation is for another person or an agent"
                )
            joined = self._join(tx, caller, space, right) if space else None
            self._log(tx, space, caller, "redeem", inviter)
        return caller, joined

    def _caller_of(self, tx: HubTransaction, token_hash: str) -> Caller | None:
        row = tx.one(
            "SELECT d.person, d.agent, d.id, d.limit_right, p.is_admin, d.revoked_at, d.expires_at"
            " FROM devices d JOIN people p ON p.name = d.person WHERE d.token_hash = ?",
            (token_hash,),
        )
        if row is None:
            return None
        self._check_device(row[2], *row[5:])
        return _caller_from(row)

    def _add_invited(
        self,
        tx: HubTransaction,
        person: str,
        may_exist: bool,
        device_name: str,
        token_hash: str,
        agent: str,
        right: Right,
    ) -> Caller:
        """Add a device, and its person if new.

        Raise AlreadyExists if the person is on the hub already, unless `may_exist`. A device of an existing person or
        of an agent is limited to the right in the invitation.
        """
        known = tx.one("SELECT is_admin FROM people WHERE name = ?", (person,)) if may_exist else None
        if known is None:
            self._insert_person(tx, person, is_admin=False)
        limit: Right = right if known or agent else "owner"
        device = self._insert_device(tx, person, device_name, token_hash, agent, limit, None)
        is_admin = bool(known and known[0]) and not agent and limit == "owner"
        return Caller(person, agent, device, limit, is_admin)

    def _join(self, tx: HubTransaction, caller: Caller, space: str, right: Right) -> Space:
        """Add the caller to a space, or raise the right of the caller in it. Return the space."""
        sql = "SELECT id, name, kind, sealed, last_seq FROM spaces WHERE id = ?"
        id, name, kind, sealed, last_seq = tx.one(sql, (space,)) or ("",) * 5
        found = Space(id, name, kind, bool(sealed), last_seq, right)
        for agent in dict.fromkeys(("", caller.agent)):
            sql = "SELECT granted FROM members WHERE space = ? AND person = ? AND agent = ?"
            row = tx.one(sql, (space, caller.person, agent))
            if row is None or not allows(row[0], right):
                self._set_right(tx, found, caller.person, agent, right)
        return self._access(tx, caller, space).space

    # Pages
    def put(self, caller: Caller, space: str, pushes: Sequence[Push]) -> list[PushResult]:
        """Store pushes. Concurrent calls may share a transaction, which saves commits."""
        pushes = [push._replace(slug="") if push.deleted else push for push in pushes]
        call, queue = PutCall(caller, space, pushes), self._queue(space)
        queue.add(call)
        if not call.is_done:
            calls = queue.take(call, self.GROUPS_SPACES)
            try:
                self._put_all(calls)
            except BaseException as error:
                for failed in calls:
                    failed.error = error
            finally:
                queue.finish(calls)
        if call.error is not None:
            raise call.error
        if any(result.status == "stored" for result in call.results):
            self._wake(space)
        return call.results

    def _put_all(self, calls: Sequence[PutCall]) -> None:
        for attempt in range(1, self.ATTEMPTS + 1):
            try:
                with self._write() as tx:
                    for space in dict.fromkeys(call.space for call in calls):
                        self._put_into(tx, space, [call for call in calls if call.space == space])
            except errors.Busy:
                if attempt == self.ATTEMPTS:
                    raise
                time.sleep(0.01 * 2**attempt)
            else:
                return

    def _put_into(self, tx: HubTransaction, space: str, calls: Sequence[PutCall]) -> None:
        rights: list[tuple[PutCall, Right]] = []
        rows = self._access_rows(tx, [call.caller.device for call in calls], space)
        for call in calls:
            call.error = None
            try:
                found = self._judge(rows.get(call.caller.device), call.caller, space).space
                check_pushes(call.pushes, found.sealed)
            except errors.QuaidError as error:
                call.error = error
            else:
                rights.append((call, found.right))
        if not rights:
            return
        tx.enter(space)
        writer = RevisionWriter(self._ledger(tx, space))
        for call, right in rights:
            call.results = writer.put(call.caller, right, call.pushes)
        writer.save()

    def changes(self, caller: Caller, space: str, after: int, limit: int) -> ChangePage:
        """Return the newest change of each page that has changed after the number `after`, in order.

        At most `limit` changes are returned (up to MOST_CHANGES), with at most MOST_ANSWER_BYTES of bundles, but at
        least one change of any size.
        """
        with self._read() as tx:
            access = self._enter(tx, caller, space)
            last_seq = access.space.last_seq
            # A page that changes meanwhile gets a number above last_seq, and is returned by a later call.
            most = max(1, min(limit, MOST_CHANGES))
            sql = "SELECT seq, size FROM heads WHERE space = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
            heads = tx.rows(sql, (space, after, last_seq, most + 1))
            until, total = after, 0
            for seq, size in heads[:most]:
                if total and total + size > MOST_ANSWER_BYTES:
                    break
                until, total = seq, total + size
            rows: list[Row] = []
            for part in slices([seq for seq, _ in heads if seq <= until]):
                # With the range, PostgreSQL chooses the right index even before it has statistics.
                sql = f"SELECT {CHANGE_COLUMNS} FROM revisions WHERE space = ? AND seq IN {in_list(part)}"  # noqa: S608
                sql += " AND seq BETWEEN ? AND ? ORDER BY seq"
                rows += tx.rows(sql, (space, *part, part[0], part[-1]))
            row = tx.one("SELECT hash FROM revisions WHERE space = ? AND seq = ?", (space, after))
        if not access.has_joined:
            self._register(caller, space)
        is_complete = not heads or until == heads[-1][0]
        changes = tuple(change_from(row) for row in rows)
        return ChangePage(changes, last_seq, is_complete, row[0] if row else "")

    def _register(self, caller: Caller, space: str) -> None:
        """Record that a device reads pages of a space, before the first pages are sent."""
        with self._write() as tx:
            self._enter(tx, caller, space)
            sql = "INSERT INTO acknowledgements (space, device, seq) VALUES (?, ?, 0) ON CONFLICT DO NOTHING"
            tx.many(sql, [(space, caller.device)])

    def get(self, caller: Caller, space: str, uuid: str, revision: int | None = None) -> Change | None:
        with self._read() as tx:
            access = self._enter(tx, caller, space)
            if revision is None:
                head = tx.one("SELECT revision FROM heads WHERE space = ? AND uuid = ?", (space, uuid))
                revision = head[0] if head else 0
            sql = f"SELECT {CHANGE_COLUMNS} FROM revisions WHERE space = ? AND uuid = ? AND revision = ?"  # noqa: S608
            row = tx.one(sql, (space, uuid, revision))
        if not access.has_joined:
            self._register(caller, space)
        return change_from(row) if row else None

    def follow(self, wake: Callable[[str], None]) -> Callable[[], None]:
        """Call `wake` with the id of a space soon after each commit to it, also by other processes on the database.

        `wake` is called on a thread of the store, at most about a second late, and maybe more often than needed.
        Return a function that ends the calls.
        """
        key = object()
        with self._lock:
            if self._watcher is None:
                self._known = self._all_last_seqs()
                self._watcher = threading.Thread(target=self._watch, name="hub changes", daemon=True)
                self._watcher.start()
            self._followers[key] = wake
        self._watcher_started.wait()
        return lambda: (self._followers.pop(key, None), None)[1]

    def _all_last_seqs(self) -> dict[str, int]:
        with self._read() as tx:
            return dict(tx.rows("SELECT id, last_seq FROM spaces"))

    def _report_changes(self, spaces: Iterable[str] | None = None) -> None:
        """Notify the followers of changed spaces: those given, or those with a new sequence number."""
        if spaces is None:
            before, self._known = self._known, self._all_last_seqs()
            spaces = [space for space, seq in self._known.items() if seq != before.get(space, 0)]
        for space in spaces:
            for wake in list(self._followers.values()):
                wake(space)

    def wait(self, space: str, after: int, timeout: float) -> bool:
        """Return True as soon as the last sequence number of the space is above `after`.

        Return False if that does not happen within `timeout` seconds. The right to read the space is not checked.
        """
        changed = threading.Event()
        deadline = time.monotonic() + timeout
        stop = self.follow(lambda id: changed.set() if id == space else None)
        try:
            while self._last_seq(space) <= after:
                if not changed.wait(max(0.0, deadline - time.monotonic())):
                    return self._last_seq(space) > after
                changed.clear()
            return True
        finally:
            stop()

    def _last_seq(self, space: str) -> int:
        with self._read() as tx:
            row = tx.one("SELECT last_seq FROM spaces WHERE id = ?", (space,))
        return int(row[0]) if row else 0

    # Proposals
    def proposals(self, caller: Caller, space: str) -> list[Proposal]:
        """Return the open proposals and all of the caller's device; without the right `write`, all of the caller's.

        Only the newest are returned: at most MOST_PROPOSALS, with at most MOST_ANSWER_BYTES of bundles, but at least
        one proposal.
        """
        with self._read() as tx:
            access = self._enter(tx, caller, space)
            can_settle = allows(access.space.right, "write")
            condition = "(decision = '' OR device = ?)" if can_settle else "(device = ? OR person = ?)"
            who = (caller.device,) if can_settle else (caller.device, caller.person)
            place = f"FROM proposals WHERE space = ? AND {condition}"
            sizes = tx.rows(
                f"SELECT id, length(bundle) {place} ORDER BY id DESC LIMIT ?",
                (space, *who, MOST_PROPOSALS),
            )
            first, total = 0, 0
            for id, size in sizes:
                total += size
                if first and total > MOST_ANSWER_BYTES:
                    break
                first = id
            sql = f"SELECT {PROPOSAL_COLUMNS} {place} AND id >= ? ORDER BY id"
            rows = tx.rows(sql, (space, *who, first)) if sizes else []
        return [_proposal_from(row) for row in rows]

    def settle(self, caller: Caller, space: str, proposal: int, accept: bool) -> PushResult | None:
        """Accept or reject a proposal. Return the result of pushing it, or None for a rejection.

        A proposal stays open if its push is refused, as with a base that is not the newest revision any more.
        """
        decision = "accepted" if accept else "rejected"
        result = None
        with self._write() as tx:
            self._enter(tx, caller, space, "write", "Deciding on a proposal")
            ledger = self._ledger(tx, space)
            sql = f"SELECT {PROPOSAL_COLUMNS} FROM proposals WHERE space = ? AND id = ?"  # noqa: S608
            row = tx.one(sql, (space, proposal))
            if row is None:
                raise errors.NotFound(what="proposal", name=str(proposal), hint="")
            found = _proposal_from(row)
            if found.decision not in ("", decision):
                problem = f"{proposal} was already {found.decision} by {found.decided_by}"
                raise errors.InvalidArgument(name="proposal", problem=problem)
            writer = RevisionWriter(ledger)
            if accept:
                author = Caller(found.person, found.agent, found.device)
                [result] = writer.put(author, "write", [found.push])
            if not found.decision and (result is None or result.status == "stored"):
                sql = "UPDATE proposals SET decision = ?, decided_by = ? WHERE space = ? AND id = ?"
                tx.many(sql, [(decision, caller.person, space, proposal)])
                ledger.log(caller, decision, str(proposal))
            writer.save()
        if result and result.status == "stored":
            self._wake(space)
        return result

    # Erasure and acknowledgements
    def purge(self, caller: Caller, space: str, uuid: str) -> Purge:
        """Erase a page with its history for good.

        Callers with the right `owner` may erase any page. Others need the right `write`, must not be agents, and
        must have written all revisions of the page themselves.
        """
        with self._write() as tx:
            access = self._enter(tx, caller, space, "write", "Erasing a page")
            ledger = self._ledger(tx, space)
            sql = "SELECT revision, purged FROM heads WHERE space = ? AND uuid = ?"
            head = tx.one(sql, (space, uuid))
            if head is None:
                raise errors.NotFound(what="page", name=uuid, hint="")
            sql = "SELECT 1 FROM revisions WHERE space = ? AND uuid = ? AND person <> ? LIMIT 1"
            foreign = tx.one(sql, (space, uuid, caller.person))
            if access.space.right != "owner" and (foreign or caller.agent):
                raise errors.NotAllowed(name="Erasing a page", needed="owner", granted=access.space.right)
            if not head[1]:
                writer = RevisionWriter(ledger)
                seq = writer.purge(caller, uuid, head[0])
                writer.save()
                sql = "UPDATE acknowledgements SET seq = ? WHERE space = ? AND device = ? AND seq = ?"
                tx.many(sql, [(seq, space, caller.device, seq - 1)])  # the caller has applied its own purge
            [purge] = self._purges(tx, space, uuid)
        self._scrub()
        self._wake(space)
        return purge

    def purges(self, caller: Caller, space: str) -> list[Purge]:
        with self._read() as tx:
            self._enter(tx, caller, space)
            return self._purges(tx, space)

    def _purges(self, tx: HubTransaction, space: str, uuid: str | None = None) -> list[Purge]:
        """Return the purges of a space, or of one page, each with the devices that have not acknowledged it.

        Only devices that have read pages of the space are listed. Revoked devices are included, because they may
        still have a copy.
        """
        condition, params = ("AND uuid = ?", (space, uuid)) if uuid else ("", (space,))
        rows = tx.rows(
            f"SELECT uuid, seq, at, person FROM revisions WHERE space = ? {condition} AND purged = 1 ORDER BY seq",  # noqa: S608
            params,
        )
        if not rows:
            return []
        sql = (
            f"SELECT {DEVICE_COLUMNS}, k.seq FROM acknowledgements k JOIN devices d ON d.id = k.device"  # noqa: S608
            " WHERE k.space = ? AND k.seq < ? ORDER BY d.created_at, d.id"
        )
        devices = [Device(*row) for row in tx.rows(sql, (space, rows[-1][1]))]
        return [
            Purge(uuid, seq, at, person, tuple(late for late in devices if late.acknowledged < seq))
            for uuid, seq, at, person in rows
        ]

    def acknowledge(self, caller: Caller, space: str, seq: int) -> None:
        """Record that a device has applied all changes up to `seq`. The stored number never decreases."""
        with self._write() as tx:
            access = self._enter(tx, caller, space)
            tx.many(
                "INSERT INTO acknowledgements (space, device, seq) VALUES (?, ?, ?)"
                " ON CONFLICT (space, device) DO UPDATE SET seq = excluded.seq"
                " WHERE acknowledgements.seq < excluded.seq",
                [(space, caller.device, max(0, min(seq, access.space.last_seq)))],
            )

    # Vectors by content hash, so that each text is embedded by one device only
    def put_vectors(
        self, caller: Caller, space: str, model: str, vectors: Sequence[tuple[bytes, bytes]]
    ) -> int:
        """Store vectors by the hash of their text, and return the number of new vectors.

        Raise InvalidArgument for a sealed space, which has no vectors on the hub.
        """
        _check_name("model", model)
        if len(vectors) > MOST_VECTORS:
            problem = f"{len(vectors):,} at once are too many; send at most {MOST_VECTORS:,}"
            raise errors.InvalidArgument(name="vectors", problem=problem)
        if any(len(hash) > 64 or len(vector) > MOST_VECTOR_BYTES for hash, vector in vectors):
            problem = f"a hash has at most 64 bytes, a vector at most {MOST_VECTOR_BYTES:,}"
            raise errors.InvalidArgument(name="vectors", problem=problem)
        new = 0
        with self._write() as tx:
            access = self._enter(tx, caller, space, "append", "Storing vectors")
            if access.space.sealed:
                raise errors.InvalidArgument(name="vectors", problem="a sealed space has none on the hub")
            for part in slices(vectors):
                rows = ", ".join(["(?, ?, ?, ?)"] * len(part))
                values = [value for hash, vector in part for value in (space, model, hash, vector)]
                sql = f"INSERT INTO vectors (space, model, hash, vector) VALUES {rows}"  # noqa: S608
                new += len(tx.rows(sql + " ON CONFLICT DO NOTHING RETURNING 1", values))
        return new

    def get_vectors(
        self, caller: Caller, space: str, model: str, hashes: Sequence[bytes]
    ) -> list[tuple[bytes, bytes]]:
        if len(hashes) > MOST_VECTORS:
            problem = f"{len(hashes):,} at once are too many; ask for at most {MOST_VECTORS:,}"
            raise errors.InvalidArgument(name="hashes", problem=problem)
        found: list[tuple[bytes, bytes]] = []
        with self._read() as tx:
            self._enter(tx, caller, space)
            for part in slices(hashes):
                condition = f"space = ? AND model = ? AND hash IN {in_list(part)}"
                sql = f"SELECT hash, vector FROM vectors WHERE {condition}"  # noqa: S608 - only placeholders
                found += [(bytes(hash), bytes(v)) for hash, v in tx.rows(sql, (space, model, *part))]
        return found

    # Audit
    def audit(self, caller: Caller, space: str = "", after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """Return up to `limit` audit entries of a space with a number above `after`, to its owners and to admins.

        If `space` is "", return the entries about people, devices and new spaces, to admins only.
        """
        with self._read() as tx:
            if space:
                self._manage(tx, caller, space, "Reading the audit log")
            elif not caller.is_admin:
                raise errors.NotAllowed(name="Reading the audit log", needed="owner", granted=caller.limit)
            return self._audit_entries(tx, space, after, limit)

    def _audit_entries(self, tx: HubTransaction, space: str, after: int, limit: int) -> list[AuditEntry]:
        rows = tx.rows(
            "SELECT number, at, person, agent, device, action, space, subject, hash FROM audit"
            " WHERE space = ? AND number > ? ORDER BY number LIMIT ?",
            (space, after, limit),
        )
        return [AuditEntry(*row) for row in rows]

    def verify_audit(self) -> tuple[int, tuple[str, int] | None]:
        """Return the number of valid entries, and space and number of the first missing or changed entry, or None.

        Each space has a chain of entries with consecutive numbers. The row of the space has the last number and hash,
        so that entries missing at the end are found too. The chain of the hub has an entry for each space.
        """
        count = 0
        created: set[str] = set()
        with self._read() as tx:
            chains = [("", *row) for row in tx.rows("SELECT audit_number, audit_hash FROM hub")]
            chains += tx.rows("SELECT id, audit_number, audit_hash FROM spaces ORDER BY id")
            for space, number, hash in chains:
                before, after = "", 0
                while entries := self._audit_entries(tx, space, after, 1000):
                    for entry in entries[: max(0, number - after)]:
                        if entry.number != after + 1 or entry.hash != audit_hash(before, entry):
                            return count, (space, after + 1)
                        before, after, count = entry.hash, entry.number, count + 1
                        created.update([entry.subject] if entry.action == "create space" else [])
                    if after >= number:
                        break
                if after != number or before != hash:
                    return count, (space, after + 1)
            missing = created - {space for space, *_ in chains}
        return count, (min(missing), 1) if missing else None


def _caller_from(row: Row) -> Caller:
    person, agent, device, limit, is_admin, *_ = row
    # Agents of admins, and tokens with a limit, do not have admin rights.
    return Caller(person, agent, device, limit, bool(is_admin) and not agent and limit == "owner")


def _proposal_from(row: Row) -> Proposal:
    id, space, uuid, base, hash, bundle, slug, deleted, additions_only, *rest = row
    push = Push(uuid, base, hash, bytes(bundle), slug, bool(deleted), bool(additions_only))
    return Proposal(id, space, push, *rest)


def _check_name(name: str, value: str) -> None:
    if len(value) > LONGEST_NAME or not _NAME.fullmatch(value):
        problem = f"{value[:LONGEST_NAME]!r} is not a name of 1 to {LONGEST_NAME} characters on one line"
        raise errors.InvalidArgument(name=name, problem=problem)


def _check_only_person(member: str, person: str) -> None:
    if person != member:
        problem = "a private space has one person; share a team space instead"
        raise errors.InvalidArgument(name="person", problem=problem)


def _check_right(right: Any) -> None:
    if right not in RIGHTS:
        raise errors.InvalidArgument(name="right", problem=f"{right!r} is not one of {', '.join(RIGHTS)}")


def _check_time(value: str) -> None:
    if not is_timestamp(value):
        problem = f"{value!r} is not a time in UTC, as in 2026-04-25T12:00:00Z"
        raise errors.InvalidArgument(name="expires_at", problem=problem)


APPLICATION_ID = 0x51485542  # "QHUB"
BUSY_SECONDS = 10
POLL_SECONDS = 0.5
"""Interval in seconds for polling changes of other processes."""
CACHE_KIB = 4 * 1024


class SqliteTransaction:
    """An open transaction of a connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(params)).fetchall()

    def one(self, sql: str, params: Sequence[object] = ()) -> Row | None:
        rows = self.rows(sql, params)
        return rows[0] if rows else None

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        self._connection.executemany(sql, [tuple(row) for row in rows])

    def enter(self, space: str) -> None:
        """Do nothing: SQLite has no row-level security."""


class SqliteHubStore(HubStore):
    """A hub on one machine. One connection writes; every thread has a connection for reading."""

    GROUPS_SPACES: ClassVar[bool] = True  # all spaces are in one file, so one commit can cover them

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        check_sqlite()
        self.path = path
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._is_closed = False
        if not os.path.exists(path):
            with translate_os_errors(path):
                make_folders(os.path.dirname(os.path.abspath(path)))
                make_private_file(path)
        with translate_sqlite_errors(path):
            self._writer = self._connect()
            self._prepare()

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
        self._connections.append(connection)
        connection.set_busy_timeout(BUSY_SECONDS * 1000)
        for setting, value in (
            (apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1),
            (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
            (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        ):
            connection.config(setting, value)
        connection.pragma("synchronous", "FULL")
        connection.pragma("secure_delete", True)  # a purge overwrites the erased data
        connection.pragma("cache_size", -CACHE_KIB)
        return connection

    def _prepare(self) -> None:
        """Create the tables in an empty file, or upgrade them. Refuse a file of another program or a newer Quaid."""
        writer = self._writer
        if int(writer.pragma("application_id")) != APPLICATION_ID and writer.pragma("schema_version"):
            raise errors.NotADatabase(path=self.path, problem="it is not the database of a hub")
        writer.pragma("journal_mode", "wal")
        with self._write() as tx:
            if not int(writer.pragma("application_id")):
                writer.pragma("application_id", APPLICATION_ID)
                writer.execute(read_statements("schema.sql"))
                self._create_hub(tx)
            self._upgrade(tx, self.path, writer.execute)

    def _disconnect(self, connection: apsw.Connection) -> None:
        self._connections.remove(connection)
        connection.close()

    def close(self) -> None:
        """Close all connections. Closing the last one checkpoints the WAL."""
        self._is_closed = True
        with self._changed:
            self._changed.notify_all()
        if self._watcher is not None:
            self._watcher.join()
        with self._turn:
            for connection in reversed(self._connections):
                connection.close()
            self._connections = []

    @contextmanager
    def _read(self) -> Iterator[SqliteTransaction]:
        connection = getattr(self._local, "connection", None)
        with translate_sqlite_errors(self.path):
            if connection is None:
                connection = self._local.connection = self._connect()
            with _transaction(connection, "DEFERRED"):
                yield SqliteTransaction(connection)

    @contextmanager
    def _write(self) -> Iterator[SqliteTransaction]:
        with self._turn, translate_sqlite_errors(self.path), _transaction(self._writer, "IMMEDIATE"):
            yield SqliteTransaction(self._writer)

    def _wake(self, space: str) -> None:  # noqa: ARG002
        with self._changed:
            self._changed.notify_all()

    def _scrub(self) -> None:
        """Empty the WAL. If a reader still needs it, a later checkpoint overwrites it."""
        with self._turn, translate_sqlite_errors(self.path):
            self._writer.pragma("wal_checkpoint", "TRUNCATE")

    def _watch(self) -> None:
        """Report changes after each commit. Check twice a second for commits of other processes."""
        connection = self._connect()
        version = connection.pragma("data_version")
        self._watcher_started.set()
        while not self._is_closed:
            if connection.pragma("data_version") != version:
                version = connection.pragma("data_version")
                self._report_changes()
            with self._changed:
                if not self._is_closed and connection.pragma("data_version") == version:
                    self._changed.wait(POLL_SECONDS)

    def backup(self, path: str) -> None:
        """Write a consistent copy of the database to a new file. Others can read and write meanwhile."""
        with translate_os_errors(path):
            make_private_file(path)
        with translate_sqlite_errors(path):
            target, source = apsw.Connection(path), self._connect()
            try:
                with target.backup("main", source, "main") as copy:
                    copy.step()
                target.pragma("journal_mode", "delete")
            finally:
                target.close()
                self._disconnect(source)


@contextmanager
def _transaction(connection: apsw.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
