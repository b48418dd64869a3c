"""Collections that are shared through a hub: their state, the outbox of pages to push, and page bundles.

A bundle is a page with its explicitly added links, its facts and its raw data. Triggers on the table pages record
each change of a shared page in space_outbox; a push removes the pages that it has sent.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quaid.errors import NotFound
from quaid.model.bundle import Bundle, BundleFact, BundleLink, BundleRaw
from quaid.model.page import DERIVED
from quaid.model.slug import fold_name
from quaid.storage import trust, vectors

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

OutboxState = Literal["changed", "purge", "proposed", "denied", "invalid", "blocked"]
"""Why a page is in the outbox.

changed: to be pushed. purge: erased here, but not on the hub yet. proposed: stored on the hub as a proposal. denied:
not allowed by the member's right. invalid: cannot be sent. blocked: a change from the hub cannot be applied here.
"""


LEASE = "spaces"
"""The name of the lease of the process that syncs shared spaces in the background."""


class PageState(NamedTuple):
    """The last revision of a page that this device and the hub have in common."""

    uuid: str
    page_id: int | None
    revision: int
    hash: str
    local_hash: str
    """Hash of the local page when it was last in sync with the hub."""
    deleted: bool
    base: bytes
    """The bundle of the revision, from which merges start; b"" if this device and the hub have none in common."""
    has_open_links: bool = False
    """True if the target of a link was missing on this device when the page was last written."""


class OutboxRow(NamedTuple):
    uuid: str
    changes: int
    state: OutboxState
    problem: str


class LocalPage(NamedTuple):
    """The page with a given uuid in a collection; `page_id` is None if there is no such page."""

    page_id: int | None
    slug: str
    hidden: bool
    bundle: Bundle | None
    """None if there is no page or the page is hidden."""


class SpaceRow(NamedTuple):
    """A shared collection."""

    collection_id: int
    collection: str
    hub_url: str
    hub_id: str
    space_id: str
    name: str
    kind: str
    sealed: bool
    right: str
    person: str
    device: str
    """The id of this device on the hub."""
    cursor: int
    """All changes of the space up to this sequence number are applied."""
    cursor_hash: str
    """Hash of the change with that number; "" if unknown."""
    acknowledged: int
    vectors_sent: int
    joined_at: str
    synced_at: str | None
    problem: str | None

    def read_cursor(self, db: "Database | Transaction") -> int | None:
        """Return the number of the last change applied here, or None if the collection is no longer shared."""
        row = db.one("SELECT cursor FROM spaces WHERE collection_id = ?", (self.collection_id,))
        return row[0] if row else None

    def update(self, tx: "Transaction", **values: object) -> None:
        """Set columns of the row of this space."""
        columns = ", ".join(f"{name} = :{name}" for name in values)
        values["id"] = self.collection_id
        tx.execute(f"UPDATE spaces SET {columns} WHERE collection_id = :id", values)  # noqa: S608

    def remove(self, tx: "Transaction") -> None:
        """Delete all sync state of the space. The pages of the collection are kept."""
        tx.execute("DELETE FROM spaces WHERE collection_id = ?", (self.collection_id,))

    def page_state(self, db: "Database | Transaction", uuid: str) -> PageState | None:
        row = db.one(
            "SELECT uuid, page_id, revision, hash, local_hash, deleted, base, has_open_links FROM space_pages"
            " WHERE collection_id = ? AND uuid = ?",
            (self.collection_id, uuid),
        )
        if row is None:
            return None
        base = zlib.decompress(row[6]) if row[6] else b""
        return PageState._make((*row[:5], bool(row[5]), base, bool(row[7])))

    def all_revisions(self, db: "Database | Transaction") -> dict[str, tuple[int, str]]:
        """Return revision and hash of all pages of a space, by uuid."""
        rows = db.rows(
            "SELECT uuid, revision, hash FROM space_pages WHERE collection_id = ?", (self.collection_id,)
        )
        return {uuid: (revision, hash) for uuid, revision, hash in rows}

    def save_states(self, tx: "Transaction", states: Iterable[PageState]) -> None:
        """Insert or replace the states of pages."""
        tx.executemany(
            "INSERT INTO space_pages (collection_id, uuid, page_id, revision, hash, local_hash, deleted,"
            " has_open_links, base) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (collection_id, uuid) DO UPDATE SET page_id = excluded.page_id,"
            " revision = excluded.revision, hash = excluded.hash,"
            " local_hash = excluded.local_hash, deleted = excluded.deleted, has_open_links = excluded.has_open_links,"
            " base = excluded.base",
            [
                (
                    *(self.collection_id, *state[:6], state.has_open_links),
                    zlib.compress(state.base, 1) if state.base else b"",
                )
                for state in states
            ],
        )

    def drop_state(self, tx: "Transaction", uuid: str) -> None:
        tx.execute("DELETE FROM space_pages WHERE collection_id = ? AND uuid = ?", (self.collection_id, uuid))

    def pages_with_open_links(self, db: "Database") -> list[str]:
        """Return the uuids of pages with a link whose target was missing here when the page was last written."""
        rows = db.rows(
            "SELECT uuid FROM space_pages WHERE collection_id = ? AND has_open_links = 1",
            (self.collection_id,),
        )
        return [str(uuid) for (uuid,) in rows]

    def uuids_elsewhere(self, db: "Database | Transaction", uuids: list[str]) -> dict[str, str]:
        """Return the uuids that belong to pages of other collections, each with the name of the collection."""
        rows = db.rows(
            "SELECT p.uuid, c.name FROM json_each(?) AS wanted JOIN pages AS p ON p.uuid = wanted.value"
            " JOIN collections AS c ON c.id = p.collection_id WHERE c.id <> ?",
            (json.dumps(uuids), self.collection_id),
        )
        return dict(rows)

    def known_uuids(self, db: "Database | Transaction", uuids: list[str]) -> set[str]:
        """Return the uuids that have a page in any collection, visible or hidden, or a sync state in this one."""
        rows = db.rows(
            "SELECT p.uuid FROM json_each(?1) AS wanted JOIN pages AS p ON p.uuid = wanted.value UNION"
            " SELECT s.uuid FROM json_each(?1) AS wanted JOIN space_pages AS s"
            " ON s.collection_id = ?2 AND s.uuid = wanted.value",
            (json.dumps(uuids), self.collection_id),
        )
        return {str(uuid) for (uuid,) in rows}

    def outbox(self, db: "Database") -> list[OutboxRow]:
        """Return the pages in the outbox. Pages made from headings of org files are left out."""
        rows = db.rows(
            f"SELECT o.uuid, o.changes, o.state, o.problem FROM space_outbox AS o WHERE {_OUTBOX}",  # noqa: S608
            (self.collection_id,),
        )
        return [OutboxRow(*row) for row in rows]

    def outbox_counts(self, db: "Database") -> dict[str, int]:
        """Return the number of pages in the outbox by state. Pages made from headings of org files are left out."""
        sql = f"SELECT o.state, count(*) FROM space_outbox AS o WHERE {_OUTBOX} GROUP BY o.state"  # noqa: S608
        return dict(db.rows(sql, (self.collection_id,)))

    def count_waiting(self, db: "Database") -> int:
        """Return the number of pages with changes that are not on the hub, neither as revisions nor as proposals."""
        counts = self.outbox_counts(db)
        return sum(number for state, number in counts.items() if state not in ("proposed", "blocked"))

    def outbox_problems(self, db: "Database", limit: int = 20) -> list[tuple[str, str, str]]:
        """Return slug (or uuid), state and problem of up to `limit` pages that cannot be pushed or applied."""
        return db.rows(
            "SELECT coalesce(p.slug, o.uuid), o.state, o.problem FROM space_outbox AS o LEFT JOIN pages AS p"
            " ON p.uuid = o.uuid WHERE o.collection_id = ? AND o.problem <> ''"
            " ORDER BY 1 LIMIT ?",
            (self.collection_id, limit),
        )

    def mark(self, tx: "Transaction", uuid: str, state: OutboxState = "changed", problem: str = "") -> None:
        """Add a page to the outbox, or change its state there."""
        tx.execute(
            "INSERT INTO space_outbox (collection_id, uuid, state, problem) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET state = excluded.state, problem = excluded.problem",
            (self.collection_id, uuid, state, problem),
        )

    def clear(self, tx: "Transaction", uuid: str, changes: int | None = None) -> None:
        """Remove a page from the outbox. With `changes`, do so only if its change counter still has this value."""
        tx.execute(
            "DELETE FROM space_outbox WHERE collection_id = ?1 AND uuid = ?2 AND (?3 IS NULL OR changes = ?3)",
            (self.collection_id, uuid, changes),
        )

    def read_page(self, db: "Database | Transaction", uuid: str) -> LocalPage:
        """Return the page with this uuid as a bundle. Links to other collections are left out."""
        row = db.one(
            # An expired page does not count as hidden, because pushing it as deleted would delete it elsewhere.
            "SELECT id, slug, quarantined_at IS NOT NULL"
            " AND id NOT IN (SELECT page_id FROM expired WHERE kind = 'page'),"
            " frontmatter, compiled_truth, timeline FROM pages WHERE uuid = ? AND collection_id = ?",
            (uuid, self.collection_id),
        )
        if row is None:
            return LocalPage(None, "", False, None)
        page_id, slug, hidden = int(row[0]), str(row[1]), bool(row[2])
        if hidden:
            return LocalPage(page_id, slug, True, None)
        links = tuple(BundleLink(*link[1:]) for link in _links(db, page_id, self.collection_id))
        rows = _facts(db, page_id)
        keys = {fact_id: fact.key for fact_id, _, fact in rows}
        facts = tuple(fact._replace(supersedes=keys.get(older or 0)) for _, older, fact in rows)
        raw = db.rows("SELECT source, fetched_at, data FROM raw_data WHERE page_id = ?", (page_id,))
        bundle = Bundle(
            *(uuid, slug, json.loads(row[3]), row[4], row[5], links, facts),
            tuple(BundleRaw(*data) for data in raw),
        )
        return LocalPage(page_id, slug, False, bundle)

    def existing_uuids(self, db: "Database | Transaction", uuids: Iterable[str]) -> set[str]:
        """Return the uuids that have a page in the collection, visible or hidden."""
        rows = db.rows(
            "SELECT p.uuid FROM json_each(?) AS wanted JOIN pages AS p ON p.uuid = wanted.value"
            " AND p.collection_id = ?",
            (json.dumps(list(uuids)), self.collection_id),
        )
        return {str(uuid) for (uuid,) in rows}

    def write_rows(self, tx: "Transaction", page_id: int, bundle: Bundle) -> tuple[bool, bool]:
        """Replace the added links, facts and raw data of a page by those of a bundle. Unchanged rows keep their ids.

        Return whether a row changed, and whether the target of a link is missing from the collection.
        """
        missing = {link.to for link in bundle.links}
        missing -= self.existing_uuids(tx, missing) if missing else set()
        here = [link for link in bundle.links if link.to not in missing]
        changed = _write_links(tx, self.collection_id, page_id, here)
        changed |= _write_facts(tx, page_id, bundle.facts)
        changed |= _write_raw(tx, page_id, bundle.raw)
        return changed, bool(missing)

    def vectors_to_send(
        self, db: "Database", model: str, after: int, limit: int
    ) -> list[tuple[int, bytes, bytes]]:
        """Return row id, content hash and vector of the first `limit` vectors with a row id greater than `after`.

        Only vectors of chunks and entries of the collection are returned.
        """
        registered = vectors.find_model(db, model)
        if registered is None:
            return []
        return db.rows(
            f"SELECT v.id, v.content_hash, v.vector FROM {registered.vec_table} AS v"  # noqa: S608
            " WHERE v.id > ?1 AND v.model = ?2 AND ("
            " EXISTS (SELECT 1 FROM chunks AS c JOIN pages AS p ON p.id = c.page_id"
            " WHERE c.content_hash = v.content_hash AND p.collection_id = ?3) OR"
            " EXISTS (SELECT 1 FROM chunk_entries AS e JOIN chunks AS c ON c.id = e.chunk_id JOIN pages AS p"
            " ON p.id = c.page_id WHERE e.content_hash = v.content_hash AND p.collection_id = ?3))"
            " ORDER BY v.id LIMIT ?4",
            (after, model, self.collection_id, limit),
        )

    def add(self, tx: "Transaction") -> None:
        """Store that a collection is shared, and add all its visible pages to the outbox."""
        tx.execute(
            "INSERT INTO spaces (collection_id, hub_url, hub_id, space_id, name, kind, sealed, member_right, person,"
            " device, joined_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self.collection_id, *self[2:11], self.joined_at),
        )
        tx.execute(
            "INSERT INTO space_outbox (collection_id, uuid) SELECT collection_id, uuid FROM pages"
            " WHERE collection_id = ? AND quarantined_at IS NULL",
            (self.collection_id,),
        )


_SPACE_SQL = (
    "SELECT s.collection_id, c.name, s.hub_url, s.hub_id, s.space_id, s.name, s.kind, s.sealed, s.member_right,"
    " s.person, s.device, s.cursor, s.cursor_hash, s.acknowledged, s.vectors_sent, s.joined_at, s.synced_at,"
    " s.problem FROM spaces AS s JOIN collections AS c ON c.id = s.collection_id"
)


def _space(row: tuple[Any, ...]) -> SpaceRow:
    return SpaceRow._make((*row[:7], bool(row[7]), *row[8:]))


class SharedState(NamedTuple):
    """The sync state of a shared collection, as shown by `quaid status`."""

    collection: str
    right: str
    waiting: int
    """Number of pages with changes that are not on the hub, neither as revisions nor as proposals."""
    synced_at: str | None
    problem: str | None


class Spaces:
    """Reads the shared collections of a memory."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def all(self) -> list[SpaceRow]:
        """Return all shared collections."""
        return [_space(row) for row in self._db.rows(f"{_SPACE_SQL} ORDER BY s.collection_id")]

    def find(self, name: str) -> SpaceRow | None:
        """Return the shared collection with this name, or the only one whose space has this name, or None."""
        rows = self._db.rows(f"{_SPACE_SQL} WHERE c.name = ?1", (name,)) or self._db.rows(
            f"{_SPACE_SQL} WHERE s.name = ?1", (name,)
        )
        return _space(rows[0]) if len(rows) == 1 else None

    def require(self, name: str) -> SpaceRow:
        """Return the result of find(). If that is None, raise NotFound, listing all shared collections."""
        space = self.find(name)
        if space is None:
            names = ", ".join(row.collection for row in self.all()) or "none yet"
            raise NotFound(what="shared space", name=name, hint=f" Shared collections: {names}.")
        return space

    def states(self) -> tuple[SharedState, ...]:
        """Return the sync state of each shared collection."""
        return tuple(
            SharedState(
                *(space.collection, space.right, space.count_waiting(self._db)),
                *(space.synced_at, space.problem),
            )
            for space in self.all()
        )


_OUTBOX = (
    "o.collection_id = ? AND NOT EXISTS"
    " (SELECT 1 FROM pages AS p JOIN file_nodes AS n ON n.page_id = p.id WHERE p.uuid = o.uuid)"
)


@contextmanager
def replicating(tx: "Transaction", person: str, agent: str, device: str) -> Iterator[None]:
    """Within this context, write versions under the author of a change from the hub."""
    before = tx.author, tx.agent, tx.device, tx.replicating, tx.trust
    tx.author, tx.agent, tx.device, tx.replicating = person, agent, device, True
    tx.trust = trust.class_of_member(tx, person, agent)
    try:
        yield
    finally:
        tx.author, tx.agent, tx.device, tx.replicating, tx.trust = before


def _links(db: "Database | Transaction", page_id: int, collection_id: int) -> list[tuple[Any, ...]]:
    return db.rows(
        "SELECT l.id, p.uuid, l.relationship, l.context, l.valid_from, l.valid_until, l.created_at FROM links AS l"
        " JOIN pages AS p ON p.id = l.to_page_id WHERE l.from_page_id = ? AND l.source_kind = 'programmatic'"
        " AND p.collection_id = ? ORDER BY l.id",
        (page_id, collection_id),
    )


def _facts(db: "Database | Transaction", page_id: int) -> list[tuple[int, int | None, BundleFact]]:
    """Return id, superseded id and value of the facts of a page."""
    rows = db.rows(
        "SELECT id, supersedes_id, subject, predicate, object, valid_from, valid_until, NULL, confidence,"
        " asserted_by, source_ref, evidence_text, created_at, author FROM assertions WHERE page_id = ? ORDER BY id",
        (page_id,),
    )
    return [(row[0], row[1], BundleFact(*row[2:])) for row in rows]


def _write_links(tx: "Transaction", collection_id: int, page_id: int, links: list[BundleLink]) -> bool:
    wanted = Counter(links)
    gone = []
    for link_id, *values in _links(tx, page_id, collection_id):
        link = BundleLink(*values)
        if wanted[link]:
            wanted[link] -= 1
        else:
            gone.append((link_id,))
    new = [(page_id, *link[1:], link.to, tx.trust) for link in wanted.elements()]
    if gone:
        tx.executemany("DELETE FROM links WHERE id = ?", gone)
    if new:
        tx.executemany(
            "INSERT INTO links (from_page_id, relationship, context, valid_from, valid_until, created_at, to_page_id,"
            " trust) VALUES (?, ?, ?, ?, ?, ?, (SELECT id FROM pages WHERE uuid = ?), ?)",
            new,
        )
    return bool(gone or new)


def _write_facts(tx: "Transaction", page_id: int, facts: tuple[BundleFact, ...]) -> bool:
    rows = _facts(tx, page_id)
    if not rows and not facts:
        return False
    keys = {fact_id: fact.key for fact_id, _, fact in rows}
    wanted = Counter(facts)
    gone: dict[Any, list[int]] = {}
    ids: dict[Any, int] = {}
    for fact_id, older, fact in rows:
        fact = fact._replace(supersedes=keys.get(older or 0))
        if wanted[fact]:
            wanted[fact] -= 1
            ids.setdefault(fact.key, fact_id)
        else:
            gone.setdefault(fact.key, []).append(fact_id)
    written: list[tuple[int, BundleFact]] = []
    for fact in wanted.elements():
        same = gone.get(fact.key)
        fact_id = _write_fact(tx, page_id, fact, same.pop(0) if same else None)
        ids.setdefault(fact.key, fact_id)
        written.append((fact_id, fact))
    for fact_id, fact in written:
        older = ids.get(fact.supersedes) if fact.supersedes else None
        tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (older, fact_id))
    left = [(fact_id,) for group in gone.values() for fact_id in group]
    tx.executemany("DELETE FROM assertions WHERE id = ?", left)
    return bool(written or left)


def _write_fact(tx: "Transaction", page_id: int, fact: BundleFact, fact_id: int | None) -> int:
    values = (
        *(page_id, fact.subject, fold_name(fact.subject), fact.predicate, fact.object, fact.valid_from),
        *(fact.valid_until, fact.confidence, fact.asserted_by, fact.source_ref, fact.evidence_text),
        *(fact.created_at, fact.author),
        max(tx.trust, DERIVED) if fact.asserted_by in ("agent", "enrichment") else tx.trust,
    )
    columns = (
        "page_id, subject, subject_key, predicate, object, valid_from, valid_until, confidence, asserted_by,"
        " source_ref, evidence_text, created_at, author, trust"
    )
    marks = ", ".join("?" * len(values))
    if fact_id is not None:
        tx.execute(f"UPDATE assertions SET ({columns}) = ({marks}) WHERE id = ?", (*values, fact_id))  # noqa: S608
        return fact_id
    tx.execute(f"INSERT INTO assertions ({columns}) VALUES ({marks})", values)  # noqa: S608 (fixed columns)
    return tx.last_insert_rowid()


def _write_raw(tx: "Transaction", page_id: int, raw: tuple[BundleRaw, ...]) -> bool:
    rows = tx.rows("SELECT source, fetched_at, data FROM raw_data WHERE page_id = ?", (page_id,))
    before = {BundleRaw(*row) for row in rows}
    if before == set(raw):
        return False
    tx.executemany(
        "DELETE FROM raw_data WHERE page_id = ? AND source = ?",
        [(page_id, item.source) for item in before - set(raw)],
    )
    tx.executemany(
        "INSERT INTO raw_data (page_id, source, fetched_at, data) VALUES (?, ?, ?, ?)",
        [(page_id, *item) for item in raw if item not in before],
    )
    return True


def last_vector_id(db: "Database", model: str) -> int:
    registered = vectors.find_model(db, model)
    row = db.one(f"SELECT max(id) FROM {registered.vec_table}") if registered else None  # noqa: S608 (a fixed table)
    return int(row[0] or 0) if row else 0


def hashes_without_vector(db: "Database", page_ids: list[int], model: str) -> list[bytes]:
    """Return the content hashes of chunks and entries of these pages that have no vector of this model."""
    if not page_ids:
        return []
    registered = vectors.find_model(db, model)
    lacking = "1"
    if registered is not None:
        vector = f"SELECT 1 FROM {registered.vec_table} AS v WHERE v.content_hash = hash AND v.model = ?2"  # noqa: S608
        lacking = f"NOT EXISTS ({vector})"
    rows = db.rows(
        "SELECT hash FROM (SELECT c.content_hash AS hash FROM json_each(?1) AS wanted JOIN chunks AS c"  # noqa: S608
        " ON c.page_id = wanted.value UNION SELECT e.content_hash FROM json_each(?1) AS wanted JOIN chunks AS c"
        f" ON c.page_id = wanted.value JOIN chunk_entries AS e ON e.chunk_id = c.id) WHERE ?2 <> '' AND {lacking}",
        (json.dumps(page_ids), model),
    )
    return [bytes(hash) for (hash,) in rows]
