"""Shared spaces: share a collection through a hub, join a space, sync, manage members and devices, leave."""

import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from difflib import unified_diff
from threading import Event, Thread
from typing import Annotated, Any, NamedTuple

from quaid import errors
from quaid.app import Brain
from quaid.folders.sync import SyncReport
from quaid.formats import markdown
from quaid.model import bundle as bundles
from quaid.model.plain_text import count_noun
from quaid.operations import collections as folders
from quaid.operations.registry import Arg, Named, op
from quaid.spaces.protocol import (
    Device,
    HubConnection,
    InvitationLink,
    Joined,
    Member,
    Proposal,
    Right,
    Space,
    SpaceKind,
    format_link,
    hash_secret,
    new_token,
    parse_link,
)
from quaid.spaces.replica import (
    Credentials,
    HubToken,
    Replica,
    Seal,
    SyncedSpace,
    credentials_path,
    new_key,
    read_credentials,
    write_credentials,
)
from quaid.storage import collections, erase as erasure, spaces as store, vectors
from quaid.storage.collections import DEFAULT_COLLECTION, Collection, Collections
from quaid.storage.leases import Lease
from quaid.storage.spaces import SpaceRow, Spaces
from quaid.storage.sqlite.connection import Transaction

SHARED = "shared"
"""Kind of a collection that was created by joining a space. Its pages are stored only in the database."""

SpaceName = Annotated[str, Arg("The shared collection, as in team.", positional=True)]


class SpaceRecord(NamedTuple):
    collection: str
    space: str
    """Name of the space on the hub."""
    hub: str
    kind: str
    sealed: bool
    right: str
    person: str
    pages: int
    waiting: int
    """Number of pages with changes that the hub does not have yet."""
    synced_at: str | None
    problem: str | None
    """Why the last sync failed; None if it did not."""
    problems: tuple[str, ...] = ()
    """Pages that cannot be pushed or applied, with the reason."""


class JoinRecord(NamedTuple):
    space: SpaceRecord
    created: bool
    """True if the collection was created for the space, now or in an earlier attempt to join it."""
    sync: SyncedSpace

    @property
    def exit_status(self) -> int:
        return self.sync.exit_status


class SyncRecord(NamedTuple):
    spaces: tuple[SyncedSpace, ...]
    folders: tuple[SyncReport, ...]

    @property
    def exit_status(self) -> int:
        statuses = [space.exit_status for space in self.spaces]
        return max([*statuses, *(folder.exit_status for folder in self.folders)], default=0)


class InviteRecord(NamedTuple):
    space: str
    right: str
    link: str
    code: str
    expires_at: str


class LeaveRecord(NamedTuple):
    collection: str
    space: str
    pages: int
    waiting: int
    """Number of pages with changes that the hub does not have."""
    kept: bool
    done: bool = True
    ask: bool = False

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Leaving {self.space} and removing its pages from this memory"


# Connections


def connect(url: str, token: str = "", hub_id: str = "") -> HubConnection:
    """Return a connection to a hub."""
    from quaid.spaces.http_client import HttpHub  # imported late: http.client and ssl take 40 ms

    return HttpHub(url, token, hub_id)


def connect_space(brain: Brain, space: SpaceRow) -> HubConnection:
    """Return a connection to the hub of a space, with the token of this device."""
    known = read_credentials(brain.db.path).hubs.get(space.hub_id)
    if known is None:
        hint = f" Ask for a new invitation, and run `quaid join LINK --as {space.collection}`."
        raise errors.NotFound(what="token", name=f"for {space.hub_url}", hint=hint)
    return connect(known.url, known.token, space.hub_id)


def sync_space(brain: Brain, space: SpaceRow, hub: HubConnection) -> SyncedSpace:
    """Sync one shared collection. Record and return a problem, such as a hub that cannot be reached.

    Raise SpaceSyncStopped if the user stops the sync.
    """
    collection = Collections(brain.db).require(space.collection)
    try:
        seal = _seal_of(brain, space)
        replica = Replica(
            *(brain.db, hub, collection, space),
            now=brain.now,
            new_uuid=brain.new_uuid,
            progress=brain.progress,
            seal=seal,
            model=_model(brain),
            device=brain.device,
        )
        return replica.sync()
    except (KeyboardInterrupt, errors.Cancelled):  # finished parts are already committed
        pages = count_noun(_record(brain, space).pages, "page")
        raise errors.SpaceSyncStopped(name=collection.name, detail=pages) from None
    except errors.QuaidError as error:
        problem = str(error)
        with suppress(errors.QuaidError):
            brain.db.write(lambda tx: space.update(tx, problem=problem))
        waiting = space.count_waiting(brain.db)
        return SyncedSpace(collection.name, space.name, waiting=waiting, problem=problem)


def _seal_of(brain: Brain, space: SpaceRow) -> Seal | None:
    if not space.sealed:
        return None
    return Seal(read_credentials(brain.db.path).keys.get(space.space_id, ""), space.name)


def _model(brain: Brain) -> tuple[str, int] | None:
    """Return the name and dimensions of the embedding model whose vectors are exchanged, or None."""
    model = vectors.active_model(brain.db)
    if model is not None:
        return model.name, model.dimensions
    with suppress(errors.QuaidError):
        return brain.embedder.name, brain.embedder.dimensions
    return None


def _record(brain: Brain, space: SpaceRow) -> SpaceRecord:
    pages = Collections(brain.db).page_counts().get(space.collection_id, (0, 0))[0]
    problems = tuple(f"{slug}: {problem}" for slug, _, problem in space.outbox_problems(brain.db))
    return SpaceRecord(
        *(space.collection, space.name, space.hub_url, space.kind, space.sealed, space.right, space.person),
        *(pages, space.count_waiting(brain.db)),
        synced_at=space.synced_at,
        problem=space.problem,
        problems=problems,
    )


# Share and join


@op(
    "owner",
    examples=(
        "quaid share notes --hub https://hub.example.org",
        "quaid share default --hub https://hub.example.org/join#K7QM-3XWD-PT9H --name family --kind team",
    ),
)
def share(
    brain: Brain,
    collection: Annotated[str, Arg("The collection to share, as in notes or default.", positional=True)],
    hub: Annotated[str, Arg("Address of the hub, or an invitation link to it.")],
    name: Annotated[str | None, Arg("Name of the space on the hub [the name of the collection].")] = None,
    kind: Annotated[
        SpaceKind, Arg("private: your own devices; team: members that you invite; public: readable by all.")
    ] = "private",
    sealed: Annotated[bool, Arg("Encrypt the pages on this device; the hub cannot read them.")] = False,
    person: Annotated[str, Arg("Your name on the hub, if the invitation does not contain it.")] = "",
    device: Annotated[str, Arg("Name of this device [device_name, or the name of this machine].")] = "",
) -> JoinRecord:
    """Share a collection: make a space for it on a hub and push its pages. `quaid space invite` invites others.

    Conversations are never shared. The pages stay in this memory and work offline."""
    chosen = _shareable(brain, collection)
    link = parse_link(hub)
    connection, _ = _enter(brain, link, person, device)
    with closing(connection):
        if not connection.about().person:
            problem = "needs an invitation to the hub; ask its operator for a link, and pass it as --hub"
            raise errors.InvalidArgument(name="hub", problem=problem)
        try:
            space = connection.create_space(name or chosen.name, kind, sealed)
        except errors.AlreadyExists as error:
            command = f"quaid join {name or chosen.name} --as {chosen.name} --yes"
            hint = f"Choose another --name, or share the collection in that space with `{command}`."
            raise errors.AlreadyExists(path=error.facts["path"], hint=hint) from None
        if space.sealed != sealed:
            problem = f"it made the space {'un' if sealed else ''}sealed, which was not asked for"
            raise errors.UntrustworthyHub(hub=link.hub, problem=problem)
        if sealed:
            keep_key(brain, space.id, new_key())
        return _first_sync(brain, connection, attach_space(brain, connection, link.hub, space, chosen))


def _shareable(brain: Brain, name: str) -> Collection:
    collection = Collections(brain.db).require(name)
    shared = Spaces(brain.db).find(collection.name)
    if shared is not None and shared.collection_id == collection.id:
        hint = (
            f"It is the space {shared.name} on {shared.hub_url}; `quaid sync {name}` exchanges changes,"
            f" `quaid leave {name}` ends that."
        )
        raise errors.AlreadyExists(path=f"The shared collection {name}", hint=hint)
    if collection.kind == "kb":
        problem = f"{name} is a knowledge base, which is shared through its git remote; see docs/kb.md"
        raise errors.InvalidArgument(name="collection", problem=problem)
    if collection.state != "active":
        raise errors.InvalidArgument(name="collection", problem=f"{name} is {collection.state}")
    if collection.root is not None and not collection.writable:
        problem = f"{name} is read-only, so that changes of others cannot be written into it"
        raise errors.InvalidArgument(name="collection", problem=problem)
    return collection


@op(
    "owner",
    creates=True,
    examples=(
        "quaid join https://hub.example.org/join#K7QM-3XWD-PT9H",
        "quaid join https://hub.example.org/join#K7QM-3XWD-PT9H --as family --person mira",
        "quaid join family",
    ),
)
def join(
    brain: Brain,
    link: Annotated[
        str, Arg("The invitation link, or the name of a space of which you are a member.", positional=True)
    ],
    as_: Annotated[
        str | None,
        Arg("Name of the collection for its pages; `default` merges them with your own pages."),
    ] = None,
    person: Annotated[str, Arg("Your name on the hub, if the invitation does not contain it.")] = "",
    device: Annotated[str, Arg("Name of this device [device_name, or the name of this machine].")] = "",
    yes: Annotated[
        bool, Arg("With --as: share the pages that the collection already has, without asking.")
    ] = False,
) -> JoinRecord:
    """Join a shared space: its pages become a collection of this memory, searchable at once and offline."""
    if as_ and not yes:
        _refuse_own_pages(brain, as_)
    if "://" not in link:
        return _join_known(brain, link, as_)
    invitation = parse_link(link)
    connection, space = _enter(brain, invitation, person, device)
    with closing(connection):
        if space is None:
            space = _other_space(brain, connection, bool(invitation.key))
        if space is None:
            problem = (
                "is an invitation to the hub, or was used before: `quaid share COLLECTION --hub LINK` shares a"
                " collection, and `quaid join NAME` joins a space of which you are a member"
            )
            raise errors.InvalidArgument(name="link", problem=problem)
        return join_space(brain, connection, invitation, space, as_)


def _refuse_own_pages(brain: Brain, name: str) -> None:
    """Raise InvalidArgument if a collection that is not shared yet has pages, which the join would share."""
    collection = Collections(brain.db).find(name)
    if collection is None or Spaces(brain.db).find(name) is not None:
        return
    pages = Collections(brain.db).page_counts().get(collection.id, (0, 0))[0]
    if pages:
        problem = (
            f"{name} has {count_noun(pages, 'page')}, which all members of the space would get: add --yes to share"
            " them, or choose a new name"
        )
        raise errors.InvalidArgument(name="as", problem=problem)


def _other_space(brain: Brain, hub: HubConnection, sealed: bool) -> Space | None:
    """Return the only space of the caller that is not synced yet, or None if there are none or several.

    With `sealed`, only sealed spaces are considered.
    """
    here = {row.space_id for row in Spaces(brain.db).all() if row.synced_at}
    others = [space for space in hub.spaces() if space.id not in here and space.sealed in (True, sealed)]
    return others[0] if len(others) == 1 else None


def _join_known(brain: Brain, name: str, as_: str | None) -> JoinRecord:
    """Join a space of a known hub by its name."""
    names = []
    for hub_id, hub in read_credentials(brain.db.path).hubs.items():
        if not hub.device:  # its invitation was not redeemed
            continue
        with closing(connect(hub.url, hub.token, hub_id)) as connection:
            for space in connection.spaces():
                if space.name == name:
                    return join_space(brain, connection, InvitationLink(hub.url, ""), space, as_)
                names.append(space.name)
    listed = f" Yours are: {', '.join(sorted(names))}." if names else " Join with an invitation link."
    raise errors.NotFound(what="shared space", name=name, hint=listed)


def join_space(
    brain: Brain, hub: HubConnection, link: InvitationLink, space: Space, as_: str | None
) -> JoinRecord:
    known_key = read_credentials(brain.db.path).keys.get(space.id, "")
    if (link.key or known_key) and not space.sealed:  # pages would be sent without encryption
        raise errors.SealKey(space=space.name, problem="it has a key, but the hub says that it is not sealed")
    here = [row for row in Spaces(brain.db).all() if (row.hub_id, row.space_id) == (hub.hub_id, space.id)]
    if link.key and known_key not in ("", link.key) and here and here[0].synced_at:
        problem = f"the link has another key than {credentials_path(brain.db.path)}"
        raise errors.SealKey(space=space.name, problem=problem)
    if link.key:
        keep_key(brain, space.id, link.key)
    if here:
        return _join_again(brain, hub, here[0], as_)
    if space.sealed and not (link.key or known_key):
        problem = "its key is missing; join it with an invitation link, which contains the key"
        raise errors.SealKey(space=space.name, problem=problem)
    name = as_ or _collection_name(space.name)
    collection = Collections(brain.db).find(name)
    if collection is None:
        folders.check_collection_name(name)
        now = brain.now()
        brain.db.write(lambda tx: collections.add(tx, name, SHARED, None, True, now))
        collection = Collections(brain.db).require(name)
    elif as_ is None and (collection.kind != SHARED or Spaces(brain.db).find(name) is not None):
        hint = f"Choose another name with --as; `--as {name}` shares its pages too."
        raise errors.AlreadyExists(path=f"The collection {name}", hint=hint)
    else:
        _shareable(brain, name)
    return _first_sync(brain, hub, attach_space(brain, hub, link.hub, space, collection))


def _join_again(brain: Brain, hub: HubConnection, row: SpaceRow, as_: str | None) -> JoinRecord:
    """Sync a space that this memory already has, if its first sync was interrupted or the device is new.

    Raise AlreadyExists otherwise, and if `as_` names another collection than the one of the space.
    """
    about = hub.about()
    if as_ not in (None, row.collection) or (row.synced_at and row.device == about.device):
        hint = f"It is the collection {row.collection}; `quaid sync {row.collection}` syncs it."
        raise errors.AlreadyExists(path=f"The space {row.name}", hint=hint)
    values = {"person": about.person, "device": about.device, "acknowledged": -1}
    brain.db.write(lambda tx: row.update(tx, **values))
    return _first_sync(brain, hub, Spaces(brain.db).require(row.collection))


def _first_sync(brain: Brain, hub: HubConnection, row: SpaceRow) -> JoinRecord:
    synced = sync_space(brain, row, hub)
    is_new = Collections(brain.db).require(row.collection).kind == SHARED
    return JoinRecord(_record(brain, Spaces(brain.db).require(row.collection)), is_new, synced)


def _collection_name(space: str) -> str:
    """Convert the name of a space to a valid name of a collection."""
    return re.sub(r"[^a-z0-9_-]+", "-", space.lower()).strip("-_")[:63] or SHARED


def attach_space(
    brain: Brain, hub: HubConnection, url: str, space: Space, collection: Collection
) -> SpaceRow:
    """Record that a collection is the local copy of a space."""
    about = hub.about()
    row = SpaceRow(
        *(collection.id, collection.name, url, hub.hub_id, space.id, space.name, space.kind, space.sealed),
        right=space.right,
        person=about.person,
        device=about.device,
        cursor=0,
        cursor_hash="",
        acknowledged=-1,
        vectors_sent=0,
        joined_at=brain.now(),
        synced_at=None,
        problem=None,
    )
    brain.db.write(lambda tx: row.add(tx))
    return row


def keep_key(brain: Brain, space_id: str, key: str) -> None:
    _change_credentials(brain, lambda known: known._replace(keys={**known.keys, space_id: key}))


def _enter(
    brain: Brain, link: InvitationLink, person: str, device: str
) -> tuple[HubConnection, Space | None]:
    """Return a connection to a hub with the token of this device, after redeeming the code of the link, if any.

    Also return the space of the invitation, or None if the link invites to no space. The token is stored
    before the code is redeemed, so that it is not lost if this process ends meanwhile.
    """
    if device:
        brain.db.write(lambda tx: collections.set_setting(tx, "device_name", device))
    with closing(connect(link.hub)) as connection:
        hub_id = connection.about().hub_id
        known = read_credentials(brain.db.path)
        hub = known.hubs.get(hub_id)
        if (hub is None or not hub.device) and not link.code:
            problem = "contains no invitation code; ask for an invitation link, as in https://HUB/join#CODE"
            raise errors.InvalidArgument(name="link", problem=problem)
        if hub is not None and hub.url.lower() != link.hub.lower():
            # A malicious hub could claim the id of another hub to obtain the token of this device.
            problem = (
                f"{link.hub} says that it is the hub at {hub.url}; the token for that was not sent."
                f" If the hub has moved, change its url in {credentials_path(brain.db.path)}"
            )
            raise errors.InvalidArgument(name="link", problem=problem)
        token = hub.token if hub else new_token()
        joined: Joined | None = None
        if link.code:
            try:
                joined = _redeem(brain, connection, link, hub_id, person, token)
            except errors.DeviceRevoked:
                token = new_token()
                joined = _redeem(brain, connection, link, hub_id, person, token)
            except errors.InvitationRefused:
                # An earlier attempt may have redeemed the code without receiving the response.
                with closing(connect(link.hub, token, hub_id)) as known_hub, suppress(errors.DeviceRevoked):
                    about = known_hub.about()
                    joined = Joined(about.person, about.agent, about.device, None)
                if joined is None:
                    if hub is None:
                        _drop_token(brain, hub_id)
                    raise
            _keep_token(brain, hub_id, HubToken(link.hub, token, joined.person, joined.device))
    return connect(link.hub, token, hub_id), joined.space if joined else None


def _redeem(
    brain: Brain, hub: HubConnection, link: InvitationLink, hub_id: str, person: str, token: str
) -> Joined:
    known = read_credentials(brain.db.path).hubs.get(hub_id)
    if known is None or known.token != token:
        _keep_token(brain, hub_id, HubToken(link.hub, token, person, ""))
    return hub.redeem(link.code, person, brain.device, hash_secret(token))


def _keep_token(brain: Brain, hub_id: str, hub: HubToken) -> None:
    _change_credentials(brain, lambda known: known._replace(hubs={**known.hubs, hub_id: hub}))


def _drop_token(brain: Brain, hub_id: str) -> None:
    def without(known: Credentials) -> Credentials:
        return known._replace(hubs={id: hub for id, hub in known.hubs.items() if id != hub_id})

    _change_credentials(brain, without)


def _change_credentials(brain: Brain, change: Callable[[Credentials], Credentials]) -> None:
    """Change the credentials while holding the memory's write lock, so that no concurrent change is lost."""
    path = brain.db.path
    brain.db.write(lambda _: write_credentials(path, change(read_credentials(path))))


# Sync


@op("owner", examples=("quaid sync", "quaid sync team", "quaid sync --watch"))
def sync(
    brain: Brain,
    name: Annotated[str | None, Arg("Only this collection or space [all].", positional=True)] = None,
    watch: Annotated[bool, Arg("Go on: sync whenever something changes, until Ctrl-C.")] = False,
) -> SyncRecord:
    """Sync shared spaces with their hubs and folders with the memory. Exits 1 if one needs attention.

    A running `quaid serve` or `quaid web` does this by itself."""
    if name is not None:
        shared_space = None if Collections(brain.db).find(name) else Spaces(brain.db).find(name)
        name = shared_space.collection if shared_space else Collections(brain.db).require(name).name
    chosen = [space for space in Spaces(brain.db).all() if name in (None, space.collection)]
    shared = {space.collection for space in chosen}
    roots = [
        row.name
        for row in Collections(brain.db).all()
        if row.is_attached and name in (None, row.name) and row.name not in shared
    ]
    if name is not None and not chosen and not roots:
        problem = f"{name} is neither shared nor has a folder; `quaid share {name} --hub URL` shares it"
        raise errors.InvalidArgument(name="name", problem=problem)
    reports = [report for root in roots for report in folders.collection_sync(brain, root).value]
    results = [_sync_quietly(brain, space) for space in chosen]
    if watch:
        with suppress(KeyboardInterrupt, errors.Cancelled):
            follow_spaces(brain, Event(), _notice(brain), name)
    return SyncRecord(tuple(results), tuple(reports))


def _notice(brain: Brain) -> Callable[[SyncedSpace], None]:
    def tell(report: SyncedSpace) -> None:
        done = f"{report.pulled} pulled, {report.pushed} pushed"
        if brain.notice is not None and (report.pulled or report.pushed or report.problem):
            brain.notice(f"{report.collection}: {report.problem or done}")

    return tell


SYNC_SECONDS = 30.0
WAIT_SECONDS = 25.0
LONGEST_PAUSE = 300.0
"""Maximum pause in seconds after a failed sync.

Each failed sync in a row doubles the normal pause of SYNC_SECONDS, up to this value.
"""
POLL_SECONDS = 1.0


class _Waiter(Thread):
    """A thread that waits for changes of one space on the hub, and wakes the sync loop."""

    def __init__(self, hub: HubConnection, space: SpaceRow, wake: Event, stop: Event) -> None:
        super().__init__(name=f"wait for {space.collection}", daemon=True)
        self._hub, self._space, self._wake, self._stop_all = hub, space, wake, stop
        self.cursor = space.cursor

    def run(self) -> None:
        with closing(self._hub):
            while not self._stop_all.is_set():
                seen = self.cursor
                try:
                    if self._hub.wait(self._space.space_id, seen, WAIT_SECONDS):
                        self._wake.set()
                        while self.cursor == seen and not self._stop_all.wait(POLL_SECONDS):
                            pass
                except errors.QuaidError:
                    self._stop_all.wait(SYNC_SECONDS)


def follow_spaces(
    brain: Brain, stop: Event, tell: Callable[[SyncedSpace], None], name: str | None = None
) -> None:
    """Sync shared spaces until `stop` is set: every 30 s, after local changes, and when a hub reports a change.

    After a failure, the next sync of the space waits for a longer pause (see LONGEST_PAUSE). Return at once if
    another process follows the spaces. New spaces are followed without a restart.
    """
    lease = Lease(brain.db.path, store.LEASE)
    if not lease.try_take():
        return
    lease.hold()
    wake = Event()
    waiters: dict[int, _Waiter] = {}
    due: dict[int, tuple[float, float]] = {}  # the time of the next sync, and the pause before it
    try:
        while not stop.is_set() and lease.is_held():
            is_woken = wake.is_set()
            wake.clear()
            for space in Spaces(brain.db).all():
                if name not in (None, space.collection):
                    continue
                if space.collection_id not in waiters:
                    with suppress(errors.QuaidError):
                        waiter = _Waiter(connect_space(brain, space), space, wake, stop)
                        waiters[space.collection_id] = waiter
                        waiter.start()
                at, pause = due.get(space.collection_id, (0.0, SYNC_SECONDS))
                is_changed = "changed" in space.outbox_counts(brain.db)
                if time.monotonic() < at and (pause > SYNC_SECONDS or not (is_woken or is_changed)):
                    continue
                report = _sync_quietly(brain, space)
                tell(report)
                pause = min(2 * pause, LONGEST_PAUSE) if report.problem else SYNC_SECONDS
                due[space.collection_id] = time.monotonic() + pause, pause
                current = Spaces(brain.db).find(space.collection)
                if current and space.collection_id in waiters:
                    waiters[space.collection_id].cursor = current.cursor
            stop.wait(POLL_SECONDS)
    finally:
        stop.set()
        lease.release(remove=True)


def _sync_quietly(brain: Brain, space: SpaceRow) -> SyncedSpace:
    try:
        with closing(connect_space(brain, space)) as hub:
            return sync_space(brain, space, hub)
    except errors.Cancelled:
        raise
    except errors.QuaidError as error:
        return SyncedSpace(space.collection, space.name, problem=str(error))


def purge_now(brain: Brain, space: SpaceRow) -> str:
    """Sync a space after erasing pages.

    Return a message on whether the hub and other devices have erased them.
    """
    report = _sync_quietly(brain, space)
    if report.problem:
        return f"The space {space.name} still has it; the next sync erases it there. {report.problem}"
    if report.problems:
        return f"The space {space.name} still has it: {'; '.join(report.problems)}"
    if report.pending:
        devices = ", ".join(report.pending)
        return f"Erased in the space {space.name}. Not yet erased on: {devices}; they erase it when they sync"
    return f"Erased in the space {space.name} and on all its devices"


# Members, devices and leaving


@op("owner", examples=("quaid spaces",))
def spaces(brain: Brain) -> Named[tuple[SpaceRecord, ...]]:
    """List the shared collections: hub, your right, the last sync and what waits to be pushed."""
    records = tuple(_record(brain, space) for space in Spaces(brain.db).all())
    return Named("spaces", records, "No collection is shared. `quaid share` and `quaid join` share one.")


@op(
    "owner",
    examples=(
        "quaid members team",
        "quaid members team mira --right write",
        "quaid members team mira --remove",
        "quaid members team mira --agent claude-code --right propose",
    ),
)
def members(
    brain: Brain,
    space: SpaceName,
    person: Annotated[str | None, Arg("The member to change.", positional=True)] = None,
    right: Annotated[Right | None, Arg("The new right of the member.")] = None,
    remove: Annotated[bool, Arg("Remove the member.")] = False,
    agent: Annotated[str, Arg("An agent of the person, which gets its own right.")] = "",
) -> Named[tuple[Member, ...]]:
    """List the members of a shared space and their rights, or change one."""
    row = Spaces(brain.db).require(space)
    if person is not None and remove == (right is not None):
        raise errors.InvalidArgument(
            name="right", problem="or --remove is needed to change a member, and not both"
        )
    if person is None and (right is not None or remove):
        raise errors.InvalidArgument(name="person", problem="is needed to change a member")
    with closing(connect_space(brain, row)) as hub:
        if person is not None:
            hub.set_member(row.space_id, person, right, agent)
        return Named("members", tuple(hub.members(row.space_id)))


@op(
    "owner",
    command="space invite",
    examples=(
        "quaid space invite team --right write",
        "quaid space invite notes --right owner --person mira",
    ),
)
def space_invite(
    brain: Brain,
    space: SpaceName,
    right: Annotated[Right, Arg("What the new member may do.")] = "write",
    person: Annotated[str, Arg("Their name on the hub; yours for another device of your own.")] = "",
    agent: Annotated[str, Arg("An agent of the person, as in claude-code.")] = "",
) -> InviteRecord:
    """Invite a person, an agent or your next device to a shared space. The link works once, for 24 hours."""
    row = Spaces(brain.db).require(space)
    key = read_credentials(brain.db.path).keys.get(row.space_id, "") if row.sealed else ""
    with closing(connect_space(brain, row)) as hub:
        code = hub.invite(row.space_id, right, person, agent)
    link = format_link(InvitationLink(row.hub_url, code.code, key))
    return InviteRecord(row.name, right, link, code.code, code.expires_at)


@op("owner", examples=("quaid devices team", "quaid devices team --revoke 3f6c1a"))
def devices(
    brain: Brain,
    space: SpaceName,
    revoke: Annotated[str | None, Arg("Revoke the token of this device, by its id or name.")] = None,
) -> Named[tuple[Device, ...]]:
    """List the devices of a shared space: owner, last contact, how far each has read; or revoke one."""
    row = Spaces(brain.db).require(space)
    with closing(connect_space(brain, row)) as hub:
        listed = hub.devices(row.space_id)
        if revoke is not None:
            active = [device for device in listed if not device.revoked_at]
            chosen = [device for device in active if device.id.startswith(revoke) or device.name == revoke]
            if not chosen:
                names = ", ".join(device.name for device in active)
                raise errors.NotFound(what="device", name=revoke, hint=f" Its devices: {names}.")
            if len(chosen) > 1:
                ids = ", ".join(f"{device.id[:8]} ({device.person})" for device in chosen)
                problem = f"{revoke} is the name of {len(chosen)} devices; use the id: {ids}"
                raise errors.InvalidArgument(name="revoke", problem=problem)
            try:
                hub.revoke(chosen[0].id)
            except errors.NotFound:
                owner = chosen[0].person
                problem = (
                    f"{revoke} is a device of {owner}; only {owner} and admins of the hub may revoke it."
                    f" `quaid members {space} {owner} --remove` removes {owner} from the space"
                )
                raise errors.InvalidArgument(name="revoke", problem=problem) from None
            listed = hub.devices(row.space_id)
    return Named("devices", tuple(listed))


class SpaceProposal(NamedTuple):
    id: int
    slug: str
    author: str
    at: str
    diff: str
    """The proposed change, compared with the page in this memory; an error message if it cannot be read."""


class SpaceProposalsRecord(NamedTuple):
    space: str
    proposals: tuple[SpaceProposal, ...]
    """The open proposals."""
    decided: str = ""
    """A message on the proposal that was accepted or rejected, or ""."""


@op(
    "owner",
    command="space proposals",
    examples=("quaid space proposals team", "quaid space proposals team --accept 3"),
)
def space_proposals(
    brain: Brain,
    space: SpaceName,
    accept: Annotated[int | None, Arg("Accept the proposal with this number.", minimum=1)] = None,
    reject: Annotated[int | None, Arg("Reject the proposal with this number.", minimum=1)] = None,
) -> SpaceProposalsRecord:
    """List changes that members with the right `propose` or `append` propose, with their diffs, or decide one."""
    row = Spaces(brain.db).require(space)
    if accept is not None and reject is not None:
        raise errors.InvalidArgument(name="reject", problem="cannot be combined with --accept")
    decided = ""
    with closing(connect_space(brain, row)) as hub:
        number = accept if accept is not None else reject
        if number is not None:
            result = hub.settle(row.space_id, number, accept is not None)
            decided = f"Proposal {number} {'accepted' if accept is not None else 'rejected'}"
            if result is not None and result.status != "stored":
                decided = f"Proposal {number} stays open: the page has changed since ({result.status})"
        sync_space(brain, row, hub)  # the diffs need the hub's current pages
        seal = _seal_of(brain, row)
        listed = [proposal for proposal in hub.proposals(row.space_id) if not proposal.decision]
        return SpaceProposalsRecord(
            row.name, tuple(_proposal(brain, row, proposal, seal) for proposal in listed), decided
        )


def _proposal(brain: Brain, space: SpaceRow, proposal: Proposal, seal: Seal | None) -> SpaceProposal:
    data = proposal.push.bundle
    author = proposal.person + (f" with {proposal.agent}" if proposal.agent else "")
    try:
        bundle = bundles.decode(seal.open(data) if seal else data)
    except errors.InvalidBundle as error:
        return SpaceProposal(proposal.id, proposal.push.slug, author, proposal.at, str(error))
    old = space.read_page(brain.db, bundle.uuid).bundle
    before, after = [
        markdown.render(page.frontmatter, page.truth, page.timeline).splitlines()
        if page is not None and not page.deleted
        else []
        for page in (old, bundle)
    ]
    diff = "\n".join(unified_diff(before, after, "now", "proposed", lineterm=""))
    return SpaceProposal(proposal.id, bundle.slug, author, proposal.at, diff)


@op("owner", examples=("quaid leave team", "quaid leave team --keep-pages"))
def leave(
    brain: Brain,
    space: SpaceName,
    keep_pages: Annotated[bool, Arg("Keep the pages in this memory.")] = False,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would be done.")] = False,
) -> LeaveRecord:
    """Stop sharing a collection here. Pages of a joined space are removed without --keep-pages, your own are kept.

    Before pages are removed, changes that wait are pushed, if the hub can be reached."""
    row = Spaces(brain.db).require(space)
    collection = Collections(brain.db).require(row.collection)
    keep = keep_pages or collection.kind != SHARED
    if yes and not (keep or dry_run) and row.count_waiting(brain.db):
        _sync_quietly(brain, row)
    waiting = row.count_waiting(brain.db)
    pages = Collections(brain.db).page_counts().get(collection.id, (0, 0))[0]
    record = LeaveRecord(collection.name, row.name, pages, waiting, keep)
    if dry_run or not (yes or keep):
        return record._replace(done=False, ask=not dry_run)

    def work(tx: Transaction) -> None:
        row.remove(tx)
        if collection.kind == SHARED and not keep:
            erasure.discard_collection(tx, collection.id)
        elif collection.kind == SHARED:
            collection.update(tx, kind="pages")
        if collection.is_write_target and not keep:
            default = Collections(brain.db).require(DEFAULT_COLLECTION)
            default.update(tx, is_write_target=True)

    brain.db.write(work)
    known = read_credentials(brain.db.path)
    keys = {space_id: key for space_id, key in known.keys.items() if space_id != row.space_id}
    if keys != known.keys:
        write_credentials(brain.db.path, known._replace(keys=keys))
    return record
