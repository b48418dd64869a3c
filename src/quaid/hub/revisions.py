"""Store revisions of pages in a hub's database: check pushes, number changes, and append to the audit log."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from quaid.errors import InvalidArgument, TooLarge
from quaid.model import slug as slugs
from quaid.spaces.protocol import RIGHTS, AuditEntry, Caller, Change, Push, PushResult, Right

Row = tuple[Any, ...]

MOST_PUSHES = 1_000
MOST_BUNDLE_BYTES = 16 * 1024 * 1024
MOST_ANSWER_BYTES = 8 * 1024 * 1024
"""One answer contains at most this many bytes of bundles, or one larger bundle."""
MOST_NAMES = 500
"""Maximum number of values in one IN (...) condition."""

SHAPES = (64, 16, 4, 1)
"""Possible numbers of rows per INSERT, and of devices per query of their rights.

With few distinct statements, all can stay prepared in the database.
"""

UUID = re.compile(r"[0-9A-Za-z_-]{1,64}")

CHANGE_COLUMNS = (
    "seq, uuid, revision, base, hash, bundle, slug, deleted, purged, person, agent, device, at,"
    " COALESCE((SELECT d.name FROM devices d WHERE d.id = revisions.device), '')"
)


class HubTransaction(Protocol):
    """A transaction of a hub's database. Parameters are written as `?` for SQLite and PostgreSQL."""

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]: ...
    def one(self, sql: str, params: Sequence[object] = ()) -> Row | None: ...
    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement once for each row of parameters."""
        ...

    def enter(self, space: str) -> None:
        """Limit the rest of the transaction to one space, if the database supports row-level security."""
        ...


def lesser(one: Right, other: Right) -> Right:
    """Return the right that allows less."""
    return min(one, other, key=RIGHTS.index)


def allows(right: Right, needed: Right) -> bool:
    """Return True if `right` includes `needed`."""
    return RIGHTS.index(right) >= RIGHTS.index(needed)


def right_in_space(caller: Caller, kind: str, own: Right | None, agents: Right | None) -> Right | None:
    """Return the right of a caller in a space, from the rights of the person and of the agent, or None."""
    public: Right | None = "read" if kind == "public" else None
    right, given = own or public, agents or public
    if right and caller.agent and caller.person:
        right = lesser(lesser(right, given), "write") if given else None
    return lesser(right, caller.limit) if right else None


def change_from(row: Row) -> Change:
    """Convert a row of CHANGE_COLUMNS to a Change."""
    values = list(row)
    values[5], values[7], values[8] = bytes(row[5]), bool(row[7]), bool(row[8])
    return Change(*values)


def in_list(values: Sequence[object]) -> str:
    """Return the placeholders of an IN (...) condition."""
    return "(" + ", ".join("?" * len(values)) + ")"


def slices(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Yield the values in slices of at most MOST_NAMES."""
    for start in range(0, len(values), MOST_NAMES):
        yield values[start : start + MOST_NAMES]


def insert(tx: HubTransaction, table: str, columns: str, rows: Sequence[Row], ending: str = "") -> None:
    """Insert rows with as few statements as SHAPES allows."""
    start = 0
    while start < len(rows):
        part = rows[start : start + next(size for size in SHAPES if size <= len(rows) - start)]
        values = ", ".join([in_list(part[0])] * len(part))
        sql = f"INSERT INTO {table} ({columns}) VALUES {values}{ending}"  # noqa: S608 - only constants
        tx.many(sql, [[value for row in part for value in row]])
        start += len(part)


def audit_hash(before: str, entry: AuditEntry) -> str:
    """Return the hash of an audit entry, which covers all its fields and the hash of the previous entry."""
    fields = [before, *entry._replace(hash="")]
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False).encode()).hexdigest()


class Ledger:
    """The locked counters of a space, or of the hub if `space` is "". save() writes them and the audit entries.

    The lock on the row makes the transactions of a space follow each other, so that sequence numbers have no gaps
    and appear in the order of commits.
    """

    def __init__(self, tx: HubTransaction, space: str, now: str, for_update: str) -> None:
        self.tx, self.space, self.now = tx, space, now
        columns = "audit_number, audit_hash"
        if space:
            columns += ", last_seq, last_proposal FROM spaces WHERE id = ?"
            row = tx.one(f"SELECT {columns}{for_update}", (space,))
        else:
            row = (*(tx.one(f"SELECT {columns} FROM hub{for_update}") or ()), 0, 0)  # noqa: S608
        assert row is not None
        self.audit_number: int = row[0]
        self.audit_hash: str = row[1]
        self.last_seq: int = row[2]
        self.last_proposal: int = row[3]
        self._entries: list[AuditEntry] = []

    def log(self, caller: Caller, action: str, subject: str) -> None:
        """Append an entry to the audit log. save() writes it."""
        self.audit_number += 1
        who = (caller.person, caller.agent, caller.device)
        entry = AuditEntry(self.audit_number, self.now, *who, action, self.space, subject, "")
        self.audit_hash = audit_hash(self.audit_hash, entry)
        self._entries.append(entry._replace(hash=self.audit_hash))

    def save(self) -> None:
        if not self._entries:
            return
        columns = "number, at, person, agent, device, action, space, subject, hash"
        insert(self.tx, "audit", columns, self._entries)
        audit = (self.audit_number, self.audit_hash)
        if self.space:
            sql = "UPDATE spaces SET audit_number = ?, audit_hash = ?, last_seq = ?, last_proposal = ? WHERE id = ?"
            self.tx.many(sql, [(*audit, self.last_seq, self.last_proposal, self.space)])
        else:
            self.tx.many("UPDATE hub SET audit_number = ?, audit_hash = ?", [audit])
        self._entries = []


class Head(NamedTuple):
    """The newest revision of a page."""

    revision: int
    hash: str
    slug: str
    purged: bool


def check_pushes(pushes: Sequence[Push], sealed: bool) -> None:
    """Raise TooLarge if a bundle is too large.

    Raise InvalidArgument if a push is malformed, its hash is wrong, or there are too many pushes.
    """
    if len(pushes) > MOST_PUSHES:
        problem = f"{len(pushes):,} pages at once are too many; send at most {MOST_PUSHES:,}"
        raise InvalidArgument(name="pushes", problem=problem)
    for push in pushes:
        if not UUID.fullmatch(push.uuid):
            raise InvalidArgument(name="uuid", problem=f"{push.uuid[:70]!r} is not the uuid of a page")
        if push.base < 0:
            raise InvalidArgument(name="base", problem=f"{push.base} is not the number of a revision")
        if len(push.bundle) > MOST_BUNDLE_BYTES:
            raise TooLarge(what=f"The page {push.uuid}", size=len(push.bundle), limit=MOST_BUNDLE_BYTES)
        if hashlib.sha256(push.bundle).hexdigest() != push.hash:
            raise InvalidArgument(name="hash", problem=f"the bundle of {push.uuid} has another SHA-256")
        if sealed and push.slug:
            raise InvalidArgument(name="slug", problem="a sealed space does not tell slugs to the hub")
        if not sealed and not push.deleted and slugs.check(push.slug) != push.slug:
            raise InvalidArgument(name="slug", problem=f"{push.slug!r} is not in Unicode NFC")


class RevisionWriter:
    """Stores the pushes of one transaction in a space whose ledger is locked."""

    def __init__(self, ledger: Ledger) -> None:
        self.tx, self.ledger, self.space = ledger.tx, ledger, ledger.space
        self._heads: dict[str, Head | None] = {}
        self._owners: dict[str, str] = {}
        """The uuid of the page with each slug that was read; "" if no page has the slug."""
        self._old_slugs: list[str] = []
        """The uuids of pages whose previous slug is to be released."""
        self._new: list[Row] = []
        self._changed: dict[str, Row] = {}
        self._answer_bytes = 0

    def put(self, caller: Caller, right: Right, pushes: Sequence[Push]) -> list[PushResult]:
        self._answer_bytes = 0
        self._load([push.uuid for push in pushes], [push.slug for push in pushes if push.slug])
        return [self._put_one(caller, right, push) for push in pushes]

    def _load(self, uuids: Sequence[str], names: Sequence[str] = ()) -> None:
        """Read the heads of pages and the owners of slugs that are not loaded yet."""
        for part in slices([uuid for uuid in dict.fromkeys(uuids) if uuid not in self._heads]):
            self._heads |= dict.fromkeys(part)
            for uuid, revision, hash, slug, purged in self.tx.rows(
                "SELECT uuid, revision, hash, slug, purged FROM heads"  # noqa: S608 - only placeholders
                f" WHERE space = ? AND uuid IN {in_list(part)}",
                (self.space, *part),
            ):
                self._heads[uuid] = Head(revision, hash, slug, bool(purged))
        for part in slices([name for name in dict.fromkeys(names) if name not in self._owners]):
            self._owners |= dict.fromkeys(part, "")
            for uuid, name in self.tx.rows(
                "SELECT uuid, slug FROM heads"  # noqa: S608
                f" WHERE space = ? AND slug IN {in_list(part)}",
                (self.space, *part),
            ):
                if uuid not in self._changed:
                    self._owners[name] = uuid

    def _put_one(self, caller: Caller, right: Right, push: Push) -> PushResult:
        head = self._heads[push.uuid]
        if not allows(right, "propose"):
            return PushResult(push.uuid, "denied", head.revision if head else 0)
        if head and head.purged:
            return PushResult(push.uuid, "purged", head.revision)
        revision = head.revision if head else 0
        if push.base != revision or (push.base_hash and head and push.base_hash != head.hash):
            return self._repeated(caller, push) or PushResult(
                push.uuid, "stale", revision, head=self._head_change(push.uuid)
            )
        owner = self._owners.get(push.slug, "") if push.slug else ""
        if owner not in ("", push.uuid):
            return PushResult(push.uuid, "slug_taken", revision, head=self._head_change(owner))
        if allows(right, "write") or (right == "append" and push.additions_only and not push.deleted):
            return self.store(caller, push)
        return self._propose(caller, push)

    def store(self, author: Caller, push: Push) -> PushResult:
        """Add a revision of a page. The caller has checked that `push.base` is the newest revision."""
        self.ledger.last_seq += 1
        seq, revision = self.ledger.last_seq, push.base + 1
        who = (author.person, author.agent, author.device, self.ledger.now)
        flags = (int(push.deleted), 0)
        self._new.append(
            (self.space, push.uuid, revision, seq, push.base, push.hash, push.bundle, push.slug, *flags, *who)
        )
        self._set_head(push.uuid, Head(revision, push.hash, push.slug, purged=False), seq, len(push.bundle))
        self.ledger.log(author, "delete" if push.deleted else "put", f"{push.uuid} {revision}")
        return PushResult(push.uuid, "stored", revision, seq)

    def _set_head(self, uuid: str, head: Head, seq: int, size: int) -> None:
        before = self._heads[uuid]
        if before and before.slug and before.slug != head.slug:
            self._owners[before.slug] = ""
            self._old_slugs.append(uuid)
        if head.slug:
            self._owners[head.slug] = uuid
        self._heads[uuid] = head
        self._changed[uuid] = (self.space, uuid, *head[:3], int(head.purged), seq, size)

    def _repeated(self, caller: Caller, push: Push) -> PushResult | None:
        """Return the result of an identical push stored earlier, whose answer was lost, or None."""
        self.flush()
        row = self.tx.one(
            "SELECT revision, seq FROM revisions WHERE space = ? AND uuid = ? AND base = ? AND hash = ?"
            " AND device = ?",
            (self.space, push.uuid, push.base, push.hash, caller.device),
        )
        return PushResult(push.uuid, "stored", *row) if row else None

    def _head_change(self, uuid: str) -> Change | None:
        """Return the newest revision of a page, or None if it does not exist or the answer would be too large."""
        self.flush()
        self._load([uuid])
        head = self._heads[uuid]
        sql = f"SELECT {CHANGE_COLUMNS} FROM revisions WHERE space = ? AND uuid = ? AND revision = ?"  # noqa: S608
        row = self.tx.one(sql, (self.space, uuid, head.revision)) if head else None
        if row is None or (self._answer_bytes and self._answer_bytes + len(row[5]) > MOST_ANSWER_BYTES):
            return None
        self._answer_bytes += len(row[5])
        return change_from(row)

    def _propose(self, caller: Caller, push: Push) -> PushResult:
        row = self.tx.one(
            "SELECT id FROM proposals WHERE space = ? AND uuid = ? AND base = ? AND hash = ? AND device = ?"
            " AND decision = ''",
            (self.space, push.uuid, push.base, push.hash, caller.device),
        )
        if row:
            return PushResult(push.uuid, "proposed", push.base, proposal=row[0])
        self.ledger.last_proposal += 1
        number = self.ledger.last_proposal
        flags = (int(push.deleted), int(push.additions_only))
        content = (push.uuid, push.base, push.hash, push.bundle, push.slug, *flags)
        who = (caller.person, caller.agent, caller.device, self.ledger.now)
        self.tx.many(
            "INSERT INTO proposals (space, id, uuid, base, hash, bundle, slug, deleted, additions_only, person,"
            " agent, device, at, decision, decided_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '')",
            [(self.space, number, *content, *who)],
        )
        self.ledger.log(caller, "propose", f"{push.uuid} {push.base}")
        return PushResult(push.uuid, "proposed", push.base, proposal=number)

    def purge(self, caller: Caller, uuid: str, revision: int) -> int:
        """Erase the content of all revisions and proposals of a page. Return the sequence number of the purge.

        The vectors of the space are erased too, because the hub cannot tell which of them belong to the page.
        """
        self.ledger.last_seq += 1
        seq, place = self.ledger.last_seq, (self.space, uuid)
        empty = b""
        for table in ("revisions", "proposals"):
            sql = f"UPDATE {table} SET bundle = ?, slug = '' WHERE space = ? AND uuid = ?"  # noqa: S608
            self.tx.many(sql, [(empty, *place)])
        sql = "UPDATE proposals SET decision = 'rejected', decided_by = ? WHERE space = ? AND uuid = ?"
        self.tx.many(f"{sql} AND decision = ''", [(caller.person, *place)])
        self.tx.many("DELETE FROM vectors WHERE space = ?", [(self.space,)])
        who = (caller.person, caller.agent, caller.device, self.ledger.now)
        self._load([uuid])
        self._new.append((*place, revision + 1, seq, revision, "", empty, "", 1, 1, *who))
        self._set_head(uuid, Head(revision + 1, "", "", purged=True), seq, 0)
        self.ledger.log(caller, "purge", uuid)
        return seq

    def flush(self) -> None:
        """Write the buffered revisions and heads to the database."""
        if self._new:
            columns = "space, uuid, revision, seq, base, hash, bundle, slug, deleted, purged"
            columns += ", person, agent, device, at"
            insert(self.tx, "revisions", columns, self._new)
        for part in slices(self._old_slugs):  # before the inserts, because another page may take the slug
            self.tx.rows(
                f"UPDATE heads SET slug = '' WHERE space = ? AND uuid IN {in_list(part)} RETURNING uuid",  # noqa: S608
                (self.space, *part),
            )
        if self._changed:
            insert(
                self.tx,
                "heads",
                "space, uuid, revision, hash, slug, purged, seq, size",
                list(self._changed.values()),
                " ON CONFLICT (space, uuid) DO UPDATE SET revision = excluded.revision, hash = excluded.hash,"
                " slug = excluded.slug, purged = excluded.purged, seq = excluded.seq, size = excluded.size",
            )
        self._new, self._changed, self._old_slugs = [], {}, []

    def save(self) -> None:
        """Write all buffered rows, the counters of the space and its audit entries."""
        self.flush()
        self.ledger.save()
