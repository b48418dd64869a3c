"""Sync the copy of a shared space in this memory: pull and merge changes from the hub, and push local changes.

The merge base of a page is its last revision that this memory and the hub both had. It is stored in the transaction
that applies a change of the hub, so that a sync that ends at any point can be repeated. Pages are written as every
edit is, so that search, links, chunks, history and files follow. No transaction is open during a request. No merge
depends on the clock of a device.

The tokens and keys of this device are in a private file beside the memory, never in the database, so that a backup
or an export of a memory does not contain them.
"""

import base64
import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from quaid import errors
from quaid.folders import indexer, page_writer
from quaid.folders.scanner import Progress
from quaid.folders.sync import sync_collection
from quaid.formats import markdown
from quaid.model import bundle as bundles, dates, page as page_model, slug as slugs
from quaid.model.bundle import Bundle
from quaid.model.merge import PageConflict, is_addition, merge
from quaid.model.page import Page
from quaid.spaces.protocol import Change, HubConnection, Push, PushResult
from quaid.storage import (
    chunks,
    erase as erasure,
    files as durable_files,
    history,
    page_edits,
    pages,
    spaces,
    trust,
    vectors,
)
from quaid.storage.collections import Collection
from quaid.storage.erase import Erasure
from quaid.storage.page_edits import NewPage
from quaid.storage.spaces import OutboxRow, PageState, SpaceRow, Spaces
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.sqlite.errors import os_error, translate_os_errors

KEY_BYTES = 32
NONCE_BYTES = 24
LARGEST_FILE = 1024 * 1024


class HubToken(NamedTuple):
    """The identity and token of this device on a hub."""

    url: str
    token: str
    person: str
    device: str


class Credentials(NamedTuple):
    hubs: dict[str, HubToken]
    """The token for each hub, by hub id."""
    keys: dict[str, str]
    """The keys of sealed spaces in base64, by space id."""


def credentials_path(database_path: str) -> str:
    folder, name = os.path.split(database_path)
    return os.path.join(folder, f"credentials-of-{name}.json")


def read_credentials(database_path: str) -> Credentials:
    """Return the credentials of a memory, which are empty if there is no file."""
    path = credentials_path(database_path)
    try:
        with open(path, "rb") as file:
            content: dict[str, Any] = json.loads(file.read(LARGEST_FILE))
        hubs = {hub_id: HubToken(**hub) for hub_id, hub in content["hubs"].items()}
        return Credentials(hubs, dict(content["keys"]))
    except FileNotFoundError:
        return Credentials({}, {})
    except OSError as error:
        raise os_error(path, error) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        problem = "is damaged; remove it and join the shared spaces again with new invitations"
        raise errors.FileTrouble(path=path, problem=problem) from None


def write_credentials(database_path: str, credentials: Credentials) -> None:
    """Replace the file with the credentials of a memory. Only the user who owns the file can read it."""
    content = {
        "hubs": {hub_id: hub._asdict() for hub_id, hub in credentials.hubs.items()},
        "keys": credentials.keys,
    }
    path = credentials_path(database_path)
    with translate_os_errors(path):
        durable_files.write_file(path, json.dumps(content, indent=2).encode())


def new_key() -> str:
    """Return a new random key for a sealed space."""
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode().rstrip("=")


class Seal:
    """Encrypts and decrypts the bundles of a sealed space with XSalsa20-Poly1305 (libsodium's secret box).

    The nonce is a keyed hash of the content, so that equal bundles have equal bytes and a push whose answer was lost
    is recognised. A hub sees the size of a revision and whether two revisions are equal, but no other content.
    """

    def __init__(self, key: str, space: str) -> None:
        self._space = space
        try:
            raw = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
        except ValueError:
            raw = b""
        if len(raw) != KEY_BYTES:
            what = "damaged" if key else "missing"
            problem = f"its key is {what}; join it with an invitation link, which contains the key"
            raise errors.SealKey(space=space, problem=problem)
        try:
            from nacl.secret import SecretBox
        except ImportError:
            problem = "the package for encryption is missing; install quaid-memory[sealed]"
            raise errors.SealKey(space=space, problem=problem) from None
        self._nonce_key = hashlib.blake2b(b"quaid nonce", key=raw, digest_size=32).digest()
        self._box = SecretBox(raw)

    def seal(self, data: bytes) -> bytes:
        nonce = hashlib.blake2b(data, key=self._nonce_key, digest_size=NONCE_BYTES).digest()
        return bytes(self._box.encrypt(data, nonce))

    def open(self, data: bytes) -> bytes:
        from nacl.exceptions import CryptoError

        try:
            return bytes(self._box.decrypt(data))
        except (CryptoError, ValueError):
            raise errors.InvalidBundle(problem="it cannot be decrypted with the key of this space") from None


MOST_ROUNDS = 8
"""A sync pulls and pushes at most this many times, if other devices keep changing the space."""
PULL_PAGES = 500
OUTBOX_PAGES = 1_000
"""Number of pages of the outbox that are read at once."""
PUSH_PAGES = 100
PUSH_BYTES = 4 * 1024 * 1024
VECTORS_PER_REQUEST = 1_000
SEVERAL = "others"
"""Name of the hub's side of a conflict if it may contain several revisions since the merge base."""
BULK_PAGES = 64
"""New pages are inserted in groups of this size."""


class SyncedSpace(NamedTuple):
    """The result of syncing a shared collection."""

    collection: str
    space: str
    pulled: int = 0
    """Number of local pages changed by changes from the hub."""
    pushed: int = 0
    proposed: int = 0
    """Number of changes that the hub stored as proposals, because this member may only propose or append."""
    rejected: tuple[str, ...] = ()
    """Slugs of pages that were reset to the text of the hub, because the proposal was rejected."""
    conflicts: tuple[str, ...] = ()
    """Slugs of pages in which both sides of a conflict were kept."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Old and new slugs of local pages that were renamed, because another page on the hub has their slug."""
    erased: int = 0
    """Number of pages that were erased here because they were forgotten on another device."""
    pending: tuple[str, ...] = ()
    """Devices that have not yet erased a page that was forgotten here, as in noor on phone."""
    waiting: int = 0
    """Number of pages with changes that are not on the hub, neither as revisions nor as proposals."""
    problems: tuple[str, ...] = ()
    """Pages that cannot be pushed or applied, with the reason."""
    vectors: int = 0
    """Number of vectors that were read from the hub instead of being computed."""
    restored: bool = False
    """True if the hub was restored from a backup, and newer pages were offered to it again."""
    problem: str = ""
    """Why the sync could not be finished."""

    @property
    def exit_status(self) -> int:
        return int(bool(self.problem or self.problems))


class Replica:
    """One shared collection of a memory, and the connection to its hub."""

    def __init__(
        self,
        db: Database,
        hub: HubConnection,
        collection: Collection,
        space: SpaceRow,
        *,
        now: Callable[[], str],
        new_uuid: Callable[[], str],
        progress: Progress,
        seal: Seal | None = None,
        model: tuple[str, int] | None = None,
        device: str = "",
    ) -> None:
        self.db, self.hub, self.collection, self.space = db, hub, collection, space
        self._id = collection.id
        self._now, self._new_uuid, self._progress = now, new_uuid, progress
        self._seal, self._model, self._device = seal, model, device
        self._result = SyncedSpace(collection.name, space.name)
        self._rounds = 0
        self._written: list[int] = []  # ids of the pages changed by changes from the hub

    def sync(self) -> SyncedSpace:
        """Exchange all changes with the hub and return a summary. Errors of the connection are raised."""
        self._refresh()
        self._sync_folder()
        self._purge_all()
        self._retry_blocked()
        self._undo_rejected()
        for self._rounds in range(MOST_ROUNDS):
            self._pull()
            if not self._push():
                break
        self._exchange_vectors()
        if self._result.pulled and self.collection.root is None:
            self.db.write(self._discard_expired)
        self._acknowledge()
        now = self._now()
        # Frequent background syncs without changes store the time only once a minute.
        if self.space.problem or now[:16] != (self.space.synced_at or "")[:16]:
            self.db.write(lambda tx: self.space.update(tx, synced_at=now, problem=None))
        waiting = self.space.count_waiting(self.db)
        problems = tuple(f"{slug}: {problem}" for slug, _, problem in self.space.outbox_problems(self.db))
        return self._result._replace(waiting=waiting, problems=problems)

    def _refresh(self) -> None:
        """Update name, kind and right of the space."""
        space = next((space for space in self.hub.spaces() if space.id == self.space.space_id), None)
        if space is None:
            hint = " You are no longer a member of it."
            raise errors.NotFound(what="shared space", name=self.space.name, hint=hint)
        values = {"name": space.name, "kind": space.kind, "member_right": space.right}
        if tuple(values.values()) != (self.space.name, self.space.kind, self.space.right):
            self.db.write(lambda tx: self.space.update(tx, **values))
            self._reload()

    def _reload(self) -> None:
        self.space = Spaces(self.db).require(self.collection.name)

    def _sync_folder(self, only: list[str] | None = None) -> None:
        """Index changed files of the attached folder before changes from the hub are merged into them.

        `only` limits this to files with these paths.
        """
        if self.collection.root is not None and self.collection.state == "active":
            sync_collection(
                self.db,
                self.collection,
                now=self._now(),
                new_uuid=self._new_uuid,
                progress=self._progress,
                only=only,
            )

    # Changes from the hub

    def _pull(self) -> None:
        while True:
            page = self.hub.changes(self.space.space_id, self.space.cursor, PULL_PAGES)
            seen = self.space.cursor_hash
            if page.last_seq < self.space.cursor or (seen and page.after_hash and page.after_hash != seen):
                if self._result.restored:
                    raise self._distrust("its sequence numbers go back again and again")
                self._offer_again()
                continue
            if page.changes:
                self._apply_all(page.changes)
                self._reload()
                self._progress(self.space.cursor, page.last_seq, "Reading")
            if page.is_complete:
                break
        self._resolve_open_links()

    def _apply_all(self, changes: tuple[Change, ...]) -> None:
        """Apply changes, and advance the cursor. Pages in an attached folder are written one by one."""
        outbox = self.space.outbox(self.db)
        forgotten = {row.uuid for row in outbox if row.state == "purge"}
        alive = self._open_all(
            [change for change in changes if not change.purged and change.uuid not in forgotten]
        )
        self._erase([change.uuid for change in changes if change.purged])
        before = self._result
        changed = {row.uuid for row in outbox}
        for change, _ in alive:
            if change.uuid in changed:
                self._find_lost_push(change)
        if self.collection.root is None:
            try:
                self.db.write(lambda tx: self._apply_batch(tx, alive, changes[-1]))
            except errors.Cancelled:
                raise
            except errors.QuaidError:
                pass  # a page cannot be applied: apply each alone to find out which
            else:
                return
        self._result = before
        for change, bundle in alive:
            if self._is_overtaken(self.db):
                return
            self._apply_alone(change, bundle)
        self.db.write(lambda tx: self._move_cursor(tx, changes[-1]))

    def _is_overtaken(self, db: Database | Transaction) -> bool:
        """Return True if another process has applied changes meanwhile, so the changes read here may be outdated."""
        return self.space.read_cursor(db) != self.space.cursor

    def _move_cursor(self, tx: Transaction, last: Change) -> None:
        if self._is_overtaken(tx):
            return
        self.space.update(tx, cursor=last.seq, cursor_hash="" if last.purged else last.hash)

    def _open_all(self, changes: list[Change]) -> list[tuple[Change, Bundle]]:
        """Return changes with their decoded bundles. Pages that cannot be applied are marked as blocked.

        A page is blocked if it cannot be decrypted, which a hub cannot check in a sealed space, or if another
        collection has a page with its uuid. The first sync raises AlreadyExists if another collection has such pages,
        because `quaid leave --keep-pages` has probably kept them. It raises SealKey before anything is pushed if no
        page can be decrypted, because the key is wrong.
        """
        elsewhere = self.space.uuids_elsewhere(self.db, [change.uuid for change in changes])
        if elsewhere and not self.space.cursor:
            name = next(iter(elsewhere.values()))
            hint = f"`quaid join … --as {name}` makes that collection the shared one again."
            raise errors.AlreadyExists(
                path=f"The collection {name} with pages of {self.space.name}", hint=hint
            )
        opened: list[tuple[Change, Bundle]] = []
        invalid: dict[str, str] = {}
        for change in changes:
            try:
                bundle = self._open(change)
            except errors.InvalidBundle as error:
                invalid[change.uuid] = str(error.facts["problem"])
                continue
            if change.uuid in elsewhere:
                problem = f"{bundle.slug} has the uuid of a page in {elsewhere[change.uuid]}"
                self._mark(change.uuid, "blocked", problem)
            else:
                opened.append((change, bundle))
        if invalid and len(invalid) == len(changes) and not self.space.cursor:
            problem = "its pages cannot be decrypted with this key; join it with the complete invitation link"
            raise errors.SealKey(space=self.space.name, problem=problem)
        for uuid, problem in invalid.items():
            self._mark(uuid, "blocked", problem)
        return opened

    def _distrust(self, problem: str) -> errors.UntrustworthyHub:
        return errors.UntrustworthyHub(hub=self.space.hub_url, problem=problem)

    def _apply_batch(self, tx: Transaction, alive: list[tuple[Change, Bundle]], last: Change) -> None:
        if self._is_overtaken(tx):
            return
        known = self.space.known_uuids(tx, [change.uuid for change, _ in alive])
        new = [item for item in alive if item[0].uuid not in known and not item[0].deleted]
        added = self._add_new(tx, new)
        for change, theirs in sorted(alive, key=lambda item: not item[0].deleted):
            if change.uuid not in added:
                self._apply(tx, change, theirs)
        self._move_cursor(tx, last)

    def _add_new(self, tx: Transaction, new: list[tuple[Change, Bundle]]) -> set[str]:
        """Insert new pages with unused slugs in bulk, unless the collection has a folder. Return their uuids."""
        if self.collection.root is not None:
            return set()
        slugs_wanted = {change.uuid: bundle.slug for change, bundle in new}
        taken = self.collection.taken_slugs(tx, slugs_wanted)
        free = [(change, bundle) for change, bundle in new if bundle.slug not in taken]
        for start in range(0, len(free), BULK_PAGES):
            group = free[start : start + BULK_PAGES]
            made = [NewPage(_build(bundle), bundle.uuid) for _, bundle in group]
            ids = page_edits.add_pages(tx, self.collection, made, self._now())
            chunks.write_pages(tx, ids)
            states = []
            for page_id, (change, bundle) in zip(ids, group, strict=True):
                with spaces.replicating(tx, change.person, change.agent, change.device_name):
                    history.record_author(tx, page_id, 1)
                    trust.set_of_new_pages(tx, [page_id])
                    _, is_open = self.space.write_rows(tx, page_id, bundle)
                self.space.clear(tx, bundle.uuid)
                states.append(_synced_state(change, change.revision, page_id, is_open))
            self.space.save_states(tx, states)
            self._written += ids
        self._count(pulled=len(free))
        return {change.uuid for change, _ in free}

    def _apply_alone(self, change: Change, theirs: Bundle) -> None:
        """Apply one change in a separate transaction. If that fails, mark the page as blocked for the next sync.

        An error of the disk or the database is raised, because it affects all changes.
        """
        try:
            try:
                self.db.write(lambda tx: self._apply(tx, change, theirs))
            except errors.FileChanged as error:  # another program has just changed the file
                self._sync_folder([str(error.facts["path"])])
                self.db.write(lambda tx: self._apply(tx, change, theirs))
        except errors.Cancelled:
            raise
        except errors.QuaidError as error:
            is_file = (
                isinstance(error, errors.FileTrouble | errors.ReadOnly)
                and error.facts["path"] != self.db.path
            )
            if error.exit_status == 5 and not is_file:  # a disk or database error, which affects all changes
                raise
            self._mark(change.uuid, "blocked", str(error))

    def _find_lost_push(self, head: Change) -> None:
        """If the answer to a push of this device was lost, record the pushed revision as the merge base.

        Otherwise a merge would restore text that another device has removed since.
        """
        state = self.space.page_state(self.db, head.uuid)
        next_revision = state.revision + 1 if state else 1
        if head.revision <= next_revision:
            return
        ours, local = self._local(self.db, head.uuid, state)
        if ours is None or ours.deleted or local.page_id is None:
            return
        own = self.hub.get(self.space.space_id, head.uuid, next_revision)
        if own is None or own.purged or own.deleted or own.device != self.space.device:
            return
        try:
            pushed = self._open(own)
        except errors.InvalidBundle:
            return
        # If this device was restored from a backup, the local page is not based on the pushed revision.
        if is_addition(pushed, ours) or (
            _text_hash(pushed) in self._text_hashes(self.db, local.page_id)
            and {*pushed.links, *pushed.facts} <= {*ours.links, *ours.facts}
        ):
            found = _synced_state(own, own.revision, local.page_id)
            self.db.write(lambda tx: self.space.save_states(tx, [found]))

    def _text_hashes(self, db: Database | Transaction, page_id: int) -> set[str]:
        """Return the content hashes of all stored versions of a page."""
        return {version.content_hash for version in history.versions_of_page(db, page_id)}

    def _retry_blocked(self) -> None:
        """Retry changes that could not be applied, for example because a file could not be written."""
        for row in self.space.outbox(self.db):
            if row.state != "blocked":
                continue
            head = self.hub.get(self.space.space_id, row.uuid)
            self._mark(row.uuid, "changed", "")
            for change, theirs in self._open_all([head] if head is not None and not head.purged else []):
                self._apply_alone(change, theirs)

    def _open(self, change: Change) -> Bundle:
        """Check the bundle of a change and decode it.

        Raise UntrustworthyHub if it is invalid, or InvalidBundle in a sealed space, where the hub cannot check it.
        """
        if bundles.digest(change.bundle) != change.hash:
            raise self._distrust(f"the page {change.uuid} does not match its hash")
        if not dates.is_timestamp(change.at):
            raise self._distrust(f"the page {change.uuid} has no valid time")
        try:
            bundle = bundles.decode(self._seal.open(change.bundle) if self._seal else change.bundle)
            if bundle.uuid != change.uuid or bundle.deleted != change.deleted:
                raise errors.InvalidBundle(problem="is that of another page")
        except errors.InvalidBundle as error:
            if self._seal:
                raise
            problem = f"the page {change.uuid} {error.facts['problem']}"
            raise self._distrust(problem) from None
        return bundle

    def _wire(self, bundle: Bundle) -> bytes:
        data = bundles.encode(bundle)
        return self._seal.seal(data) if self._seal else data

    def _base(self, state: PageState | None) -> Bundle | None:
        if state is None or not state.base:
            return None
        return bundles.decode(self._seal.open(state.base) if self._seal else state.base)

    def _local(
        self, tx: Transaction | Database, uuid: str, state: PageState | None
    ) -> tuple[Bundle | None, spaces.LocalPage]:
        """Return the local page as it would be pushed: marked as deleted if it is gone, None if it never existed.

        Also return the page as it is stored here. Links whose target is missing here are taken from the merge base.
        """
        local = self.space.read_page(tx, uuid)
        bundle = local.bundle
        base = self._base(state)
        if bundle is None:
            return (None if base is None else Bundle(uuid, base.slug, {}, "", "", deleted=True)), local
        if state is not None and state.has_open_links and base is not None:
            here = self.space.existing_uuids(tx, [link.to for link in base.links])
            bundle = bundle._replace(
                links=(*bundle.links, *(link for link in base.links if link.to not in here))
            )
        return bundle, local

    def _apply(self, tx: Transaction, change: Change, theirs: Bundle) -> None:
        """Apply one change from the hub: write the page, or merge it with the local page."""
        state = self.space.page_state(tx, change.uuid)
        if state is not None and (state.revision, state.hash) == (change.revision, change.hash):
            return
        ours, local = self._local(tx, change.uuid, state)
        our_hash = bundles.digest(self._wire(ours)) if ours is not None else ""
        is_clean = state is not None and our_hash == state.local_hash
        conflicts: tuple[PageConflict, ...] = ()
        result = theirs
        if ours is not None and our_hash != change.hash:
            # If the revision is not newer than the merge base, the hub has lost revisions, and the two pages are
            # merged without an ancestor.
            follows = state is not None and change.revision > state.revision
            if not (is_clean and follows):
                base = self._base(state) if follows else None
                is_next = follows and state is not None and change.revision == state.revision + 1
                their_name = (
                    _author_name(change.person, change.agent, change.device_name)
                    if is_next or change.revision == 1
                    else SEVERAL
                )
                our_name = _author_name(self.space.person, "", self._device)
                result, conflicts = merge(base, ours, theirs, our_name, their_name)
        with spaces.replicating(tx, change.person, change.agent, change.device_name):
            page_id, is_open = self._write(tx, local, result, change.at)
        state = _synced_state(change, change.revision, page_id, is_open)
        after, _ = self._local(tx, change.uuid, state)
        after_hash = bundles.digest(self._wire(after)) if after is not None else change.hash
        if result is theirs:
            state = state._replace(local_hash=after_hash)
        self.space.save_states(tx, [state])
        if after_hash == state.local_hash:
            self.space.clear(tx, change.uuid)
        else:
            self.space.mark(tx, change.uuid)
        if our_hash != change.hash:
            self._count(pulled=1)
            self._written += [page_id] if page_id is not None else []
        if conflicts:
            self._result = self._result._replace(conflicts=(*self._result.conflicts, result.slug))

    # Writing pages

    def _write(
        self, tx: Transaction, local: spaces.LocalPage, bundle: Bundle, at: str
    ) -> tuple[int | None, bool]:
        """Write a bundle to the local page. Return its id, and whether the target of a link is missing here."""
        page_id = local.page_id
        if bundle.deleted:
            if page_id is not None and not local.hidden:
                self._remove_file(page_id, tx)
                erasure.quarantine_page(tx, page_id, self._now())  # the page is kept for 30 days from now
            return page_id, False
        self._make_room(tx, bundle.slug, page_id, at)
        if page_id is not None and local.slug != bundle.slug:
            if not local.hidden:
                path = f"{bundle.slug}.md"
                page_writer.move_page_file(self.db, tx, self.collection, page_id, path, at, self._new_uuid())
            page_edits.change_slug(
                tx, self._id, page_id, local.slug, bundle.slug, at, redirect=not local.hidden
            )
        page_edits.free_slug(tx, self._id, bundle.slug)
        old = pages.find(self.db, bundle.slug, self.collection.name) if page_id and not local.hidden else None
        title = old.title if old is not None and old.slug == local.slug else None
        saved = page_writer.save_page(
            self.db,
            tx,
            self.collection,
            old,
            _build(bundle, title),
            uuid=bundle.uuid if page_id is None else self._new_uuid(),
            now=at,
            expected_version=None,
        )
        changed, is_open = self.space.write_rows(tx, saved.id, bundle)
        if changed and not saved.changed:
            page_edits.touch(tx, bundle.slug, expected_version=None, now=at, collection=self.collection.name)
        return saved.id, is_open

    def _make_room(self, tx: Transaction, slug: str, page_id: int | None, at: str) -> None:
        """If another page has this slug, rename that page to a free slug, or to a temporary one if it is hidden."""
        holder = self.collection.slug_holder(tx, slug)
        if holder is None or holder.page_id == page_id:
            return
        if holder.is_hidden:
            page_edits.vacate_slug(tx, holder.page_id)
            return
        old = pages.require(self.db, slug, self.collection.name)
        new = self._free_slug(tx, slug)
        front = {**old.frontmatter, "slug": new} if "slug" in old.frontmatter else old.frontmatter
        page = page_model.build_page(new, front, old.truth, old.timeline, fallback_title=old.title)
        page_writer.move_page_file(self.db, tx, self.collection, old.id, f"{new}.md", at, self._new_uuid())
        page_edits.rename_page(tx, old, page, at, redirect=False)
        self._result = self._result._replace(renamed=(*self._result.renamed, (slug, new)))

    def _free_slug(self, tx: Transaction, slug: str) -> str:
        taken = self.collection.slugs_beginning(tx, slug)
        number = 2
        while f"{slug}-{number}" in taken:
            number += 1
        return slugs.check(f"{slug}-{number}")

    def _resolve_open_links(self) -> None:
        """Add links whose target page did not exist here when their page was written, but does now."""
        for uuid in self.space.pages_with_open_links(self.db):
            self.db.write(partial(self._add_open_links, uuid))

    def _add_open_links(self, uuid: str, tx: Transaction) -> None:
        state = self.space.page_state(tx, uuid)
        bundle, local = self._local(tx, uuid, state)
        if state is None or bundle is None or local.page_id is None or local.bundle is None:
            return
        base = self._base(state)
        here = self.space.existing_uuids(tx, [link.to for link in base.links]) if base else set()
        arrived = (
            [link for link in base.links if link.to in here and link not in bundle.links] if base else []
        )
        if not arrived:
            return
        links = (*bundle.links, *arrived)
        is_dirty = bundles.digest(self._wire(bundle._replace(links=links))) != state.local_hash
        _, is_open = self.space.write_rows(tx, local.page_id, bundle._replace(links=links))
        self.space.save_states(tx, [state._replace(has_open_links=is_open)])
        if not is_dirty:
            self.space.clear(tx, uuid)

    def _erase(self, uuids: list[str]) -> None:
        """Erase pages that were forgotten on another device, with their files and history."""
        erased = 0
        for uuid in uuids:
            local = self.space.read_page(self.db, uuid)
            if local.page_id is not None and not local.hidden:
                self.db.write(partial(self._remove_file, local.page_id))
            target = erasure.find_target(self.db, local.slug, self.collection.name) if local.page_id else None
            if target is not None:
                sidecars = [indexer.sidecar_path(indexer.page_stem(path)) for path in target.files]
                Erasure(self.db, target, sidecars).run()
                erased += 1
            self.db.write(partial(self._forget_state, uuid))
        if erased:
            erasure.vacuum_and_checkpoint(self.db)
            self._count(erased=erased)

    def _remove_file(self, page_id: int, tx: Transaction) -> None:
        page_writer.remove_page_file(self.db, tx, self.collection, page_id, self._new_uuid())

    def _discard_expired(self, tx: Transaction) -> None:
        """Discard pages that were deleted on the hub and have been in quarantine here for more than 30 days."""
        before = dates.shift_date(self._now()[:10], -erasure.QUARANTINE_DAYS)
        for page in erasure.quarantined_pages(tx, self._id, before=before):
            state = self.space.page_state(tx, page.uuid)
            if state is not None and state.deleted:
                page.discard(tx)
                self.space.clear(tx, page.uuid)

    def _forget_state(self, uuid: str, tx: Transaction) -> None:
        self.space.drop_state(tx, uuid)
        self.space.clear(tx, uuid)

    # Local changes

    def _push(self) -> bool:
        """Push the pages in the outbox. Return True if some must be pushed again after a pull."""
        rows = [row for row in self.space.outbox(self.db) if row.state == "changed"]
        again = False
        for start in range(0, len(rows), OUTBOX_PAGES):
            waiting: list[tuple[OutboxRow, Push]] = []
            size = 0
            for row, push in self._pushes(rows[start : start + OUTBOX_PAGES]):
                if waiting and (len(waiting) == PUSH_PAGES or size + len(push.bundle) > PUSH_BYTES):
                    again |= self._send(waiting)
                    waiting, size = [], 0
                waiting.append((row, push))
                size += len(push.bundle)
            if waiting:
                again |= self._send(waiting)
        return again

    def _pushes(self, rows: list[OutboxRow]) -> list[tuple[OutboxRow, Push]]:
        """Return the pushes: deletions first, then known pages, then new pages, so that slugs become free in time."""
        pushes: list[tuple[int, OutboxRow, Push]] = []
        for row in rows:
            with self.db.reading():
                state = self.space.page_state(self.db, row.uuid)
                try:
                    bundle, _ = self._local(self.db, row.uuid, state)
                    data = self._wire(bundle) if bundle is not None else b""
                except errors.InvalidBundle as error:
                    problem = str(error.facts["problem"])
                    bundle, data = None, b""
                else:
                    problem = ""
            if problem:
                self._mark(row.uuid, "invalid", problem)
                continue
            hash = bundles.digest(data)
            if (
                bundle is None
                or (state is not None and hash == state.local_hash)
                or (bundle.deleted and (state is None or state.revision == 0))
            ):
                self.db.write(partial(self.space.clear, uuid=row.uuid, changes=row.changes))
                continue
            slug = "" if bundle.deleted or self._seal else bundle.slug
            push = Push(row.uuid, 0, hash, data, slug, bundle.deleted)
            if state is not None:
                push = push._replace(base=state.revision, base_hash=state.hash)
            pushes.append((0 if bundle.deleted else 1 if state else 2, row, push))
        return [(row, push) for _, row, push in sorted(pushes, key=lambda item: item[0])]

    def _send(self, items: list[tuple[OutboxRow, Push]]) -> bool:
        results = self.hub.push(self.space.space_id, [push for _, push in items])
        if [result.uuid for result in results] != [push.uuid for _, push in items]:
            raise self._distrust("it answered for other pages than were pushed")
        purged = [result.uuid for result in results if result.status == "purged"]
        self._erase(purged)
        results = [self._with_head(result) for result in results]
        # Bundles of other devices are checked before the transaction begins.
        newest = [result.head for result in results if result.head is not None and not result.head.purged]
        opened = {change.uuid: bundle for change, bundle in self._open_all(newest)}

        def stored(tx: Transaction) -> None:
            for (row, push), result in zip(items, results, strict=True):
                if result.status == "stored":
                    self._keep_pushed(tx, row, push, result.revision)
            self._skip_own(
                tx, {result.seq: push.hash for (_, push), result in zip(items, results, strict=True)}
            )

        self.db.write(stored)
        self._reload()
        again = False
        for (row, push), result in zip(items, results, strict=True):
            theirs = opened.get(result.head.uuid) if result.head is not None else None
            again |= self._settle(row, push, result, theirs)
        return again

    def _skip_own(self, tx: Transaction, pushed: dict[int, str]) -> None:
        """Advance the cursor past the pushed revisions, up to the first change by another device."""
        cursor = self.space.cursor
        while cursor + 1 in pushed:
            cursor += 1
        if cursor > self.space.cursor:
            self.space.update(tx, cursor=cursor, cursor_hash=pushed[cursor])

    def _with_head(self, result: PushResult) -> PushResult:
        """Add the newest revision of the page to a `stale` result, if the hub left it out of a large answer."""
        if result.status != "stale" or result.head is not None:
            return result
        head = self.hub.get(self.space.space_id, result.uuid)
        if head is None:  # the hub was restored from a backup that does not have the page
            self.db.write(lambda tx: self._offer_uuid(tx, result.uuid))
        return result._replace(head=head)

    def _offer_uuid(self, tx: Transaction, uuid: str) -> None:
        state = self.space.page_state(tx, uuid)
        if state is not None:
            self._offer_page(tx, state, None)

    def _settle(self, row: OutboxRow, push: Push, result: PushResult, theirs: Bundle | None) -> bool:
        """Handle the result of one push. Return True if the page must be pushed again."""
        if result.status in ("stored", "purged"):
            self._count(pushed=int(result.status == "stored"))
            return False
        if result.status in ("denied", "proposed"):
            problem = (
                f"your right in {self.space.name} is {self.space.right}" if result.status == "denied" else ""
            )
            self._mark(row.uuid, result.status, problem)
            self._count(proposed=int(result.status == "proposed"))
            return False
        head = result.head
        if head is not None and head.purged:
            self._erase([head.uuid])
        elif head is not None and theirs is not None and result.status == "stale":
            if head.hash == push.hash:  # the answer to an earlier push was lost
                self.db.write(lambda tx: self._keep_pushed(tx, row, push, head.revision))
                self._count(pushed=1)
                return False
            self._find_lost_push(head)
            self._apply_alone(head, theirs)
        elif head is not None and theirs is not None:
            self._give_way(row.uuid, head, theirs)
        return True

    def _give_way(self, uuid: str, head: Change, theirs: Bundle) -> None:
        """Resolve a slug conflict: another page on the hub has the slug of the pushed page.

        Apply the other page if its revision is new here. Otherwise rename the pushed page, but not in the first
        pull and push of a sync, because pushing the other page may still free the slug.
        """
        state = self.space.page_state(self.db, head.uuid)
        if state is None or state.revision < head.revision:
            self._apply_alone(head, theirs)
        elif self._rounds:

            def rename(tx: Transaction) -> None:
                slug = self.space.read_page(tx, uuid).slug
                self._make_room(tx, slug, None, self._now())

            self.db.write(rename)

    def _keep_pushed(self, tx: Transaction, row: OutboxRow, push: Push, revision: int) -> None:
        """Record the pushed revision as the merge base, and remove the page from the outbox."""
        local = self.space.read_page(tx, row.uuid)
        before = self.space.page_state(tx, row.uuid)
        open_links = before is not None and before.has_open_links
        self.space.save_states(tx, [_synced_state(push, revision, local.page_id, open_links)])
        self.space.clear(tx, row.uuid, row.changes)

    def _purge_all(self) -> None:
        """Erase pages on the hub that were forgotten here, before a pull could restore them."""
        for row in self.space.outbox(self.db):
            if row.state == "purge":
                self._purge(row)

    def _purge(self, row: OutboxRow) -> None:
        """Erase a page on the hub that was forgotten here, and record which devices still have it."""
        try:
            purge = self.hub.purge(self.space.space_id, row.uuid)
        except errors.NotFound:  # the page was never pushed
            self.db.write(lambda tx: self.space.clear(tx, row.uuid))
            return
        except errors.NotAllowed:
            problem = f"erased here, not on the hub: your right in {self.space.name} is {self.space.right}"
            self._mark(row.uuid, "purge", problem)
            return
        self.db.write(partial(self._forget_state, row.uuid))
        pending = [device for device in purge.pending if device.id != self.space.device]
        names = {_author_name(device.person, device.agent, device.name) for device in pending}
        self._result = self._result._replace(pending=tuple(sorted({*self._result.pending, *names})))

    def _undo_rejected(self) -> None:
        """Reset pages whose proposal was rejected to the text of the hub, unless they have changed since.

        The history keeps the proposed text.
        """
        proposed = {row.uuid: row for row in self.space.outbox(self.db) if row.state == "proposed"}
        if not proposed:
            return
        for proposal in self.hub.proposals(self.space.space_id):
            row = proposed.get(proposal.push.uuid)
            if row and proposal.decision == "rejected" and proposal.device == self.space.device:
                self.db.write(partial(self._undo_proposal, proposal.push))

    def _undo_proposal(self, push: Push, tx: Transaction) -> None:
        state = self.space.page_state(tx, push.uuid)
        ours, local = self._local(tx, push.uuid, state)
        if ours is None or bundles.digest(self._wire(ours)) != push.hash:
            return  # the page has changed since it was proposed
        base = self._base(state) or Bundle(push.uuid, ours.slug, {}, "", "", deleted=True)
        with spaces.replicating(tx, self.space.person, "", self._device):
            self._write(tx, local, base, self._now())
        self.space.clear(tx, push.uuid)
        self._result = self._result._replace(rejected=(*self._result.rejected, ours.slug))

    # A hub that was restored from a backup

    def _offer_again(self) -> None:
        """After the hub has lost its newest changes, add the pages that it lacks to the outbox."""
        known = self.space.all_revisions(self.db)
        heads: dict[str, Change] = {}  # newest revisions on the hub that differ from those here
        same: dict[str, tuple[int, str]] = {}
        after = 0
        while True:
            page = self.hub.changes(self.space.space_id, after, PULL_PAGES)
            for change in page.changes:
                state = (change.revision, change.hash)
                if known.get(change.uuid) == state:
                    same[change.uuid] = state
                elif change.uuid in known:
                    heads[change.uuid] = change
            after = page.changes[-1].seq if page.changes else page.last_seq
            if page.is_complete:
                break

        def work(tx: Transaction) -> None:
            for uuid, revision in self.space.all_revisions(tx).items():
                state = self.space.page_state(tx, uuid) if same.get(uuid) != revision else None
                if state is not None:
                    self._offer_page(tx, state, heads.get(uuid))
            self.space.update(tx, cursor=0, cursor_hash="", acknowledged=-1, vectors_sent=0)

        self.db.write(work)
        self._reload()
        self._result = self._result._replace(restored=True)

    def _offer_page(self, tx: Transaction, state: PageState, head: Change | None) -> None:
        """Add a page to the outbox. `head` is its newest revision on the hub, or None if the hub has none.

        `head` becomes the merge base if the history of the page here contains its text. Otherwise another device
        wrote it after the hub lost revisions, and the two texts are merged without an ancestor.
        """
        lost = state._replace(revision=0, hash="", local_hash="", base=b"", has_open_links=False)
        if (
            head is not None
            and not head.purged
            and head.revision < state.revision
            and state.page_id is not None
        ):
            with suppress(errors.InvalidBundle):
                if _text_hash(self._open(head)) in self._text_hashes(tx, state.page_id):
                    lost = lost._replace(
                        revision=head.revision, hash=head.hash, base=head.bundle, deleted=head.deleted
                    )
        self.space.save_states(tx, [lost])
        self.space.mark(tx, state.uuid)

    # Vectors

    def _exchange_vectors(self) -> None:
        """Send vectors that were computed here, and fetch those of other devices, unless the space is sealed.

        Vectors are sent only with the right `append`, `write` or `owner`.
        """
        if self._model is None or self._seal is not None:
            return
        model, dimensions = self._model
        sent = self.space.vectors_sent
        may_send = self.space.right in ("append", "write", "owner")
        while may_send and (rows := self.space.vectors_to_send(self.db, model, sent, VECTORS_PER_REQUEST)):
            self.hub.put_vectors(self.space.space_id, model, [(hash, vector) for _, hash, vector in rows])
            sent = rows[-1][0]
        hashes = spaces.hashes_without_vector(self.db, self._written, model)
        for start in range(0, len(hashes), VECTORS_PER_REQUEST):
            wanted = hashes[start : start + VECTORS_PER_REQUEST]
            found = self.hub.get_vectors(self.space.space_id, model, wanted)
            now = self._now()
            kept = self.db.write(
                partial(
                    vectors.keep_half_vectors,
                    model=model,
                    dimensions=dimensions,
                    rows=found,
                    wanted=set(wanted),
                    now=now,
                )
            )
            self._count(vectors=kept)
        if may_send:
            sent = max(sent, spaces.last_vector_id(self.db, model)) if hashes else sent
        if sent != self.space.vectors_sent:
            self.db.write(lambda tx: self.space.update(tx, vectors_sent=sent))

    def _acknowledge(self) -> None:
        self._reload()
        cursor = self.space.cursor
        if cursor != self.space.acknowledged:
            self.hub.acknowledge(self.space.space_id, cursor)
            self.db.write(lambda tx: self.space.update(tx, acknowledged=cursor))

    def _mark(self, uuid: str, state: spaces.OutboxState, problem: str) -> None:
        self.db.write(lambda tx: self.space.mark(tx, uuid, state, problem))

    def _count(self, **numbers: int) -> None:
        added = {name: getattr(self._result, name) + number for name, number in numbers.items()}
        self._result = self._result._replace(**added)


def _author_name(person: str, agent: str, device: str) -> str:
    """Return the name of an author to show in a conflict, as in "mira on laptop"."""
    return person + (f" with {agent}" if agent else "") + (f" on {device}" if device else "")


def _synced_state(
    sent: Change | Push, revision: int, page_id: int | None, has_open_links: bool = False
) -> PageState:
    """Return the sync state of a page whose local text is identical to a revision on the hub."""
    return PageState(
        uuid=sent.uuid,
        page_id=page_id,
        revision=revision,
        hash=sent.hash,
        local_hash=sent.hash,
        deleted=sent.deleted,
        base=sent.bundle,
        has_open_links=has_open_links,
    )


def _build(bundle: Bundle, title: str | None = None) -> Page:
    return page_model.build_page(
        bundle.slug, bundle.frontmatter, bundle.truth, bundle.timeline, fallback_title=title
    )


def _text_hash(bundle: Bundle) -> str:
    return indexer.digest(markdown.render(bundle.frontmatter, bundle.truth, bundle.timeline).encode())
