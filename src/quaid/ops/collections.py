"""Collections: folders of files as living memory. Attach, sync, look at, let go."""

import os
import re
from typing import Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import AlreadyExists, Cancelled, FileTrouble, InvalidArgument, SyncStopped
from quaid.folders.sync import SyncReport, sync_collection
from quaid.model.plain_text import count_noun
from quaid.ops.register import Arg, op
from quaid.storage import collections, erase as erasure
from quaid.storage.collections import Collection, FileProblem

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

Kind = Literal["markdown", "kb"]

Name = Annotated[str, Arg("The collection, as in notes.", positional=True)]


class CollectionRecord(NamedTuple):
    name: str
    kind: str
    root: str | None
    state: str
    writable: bool
    is_write_target: bool
    pages: int
    quarantined: int
    files: int
    last_sync_at: str | None
    halted: str | None
    """Why syncing waits for a person."""
    ignore_problem: str | None
    files_not_taken_in: int = 0


class CollectionsRecord(NamedTuple):
    collections: tuple[CollectionRecord, ...]


class CollectionInfoRecord(NamedTuple):
    collection: CollectionRecord
    problems: tuple[FileProblem, ...]
    """Files that something is wrong with."""
    ignore_patterns: str
    waiting: tuple[str, ...]
    """Pages in quarantine that hold what no file can give back."""
    missing: bool = False
    """Whether its folder is not there."""


class CollectionAddRecord(NamedTuple):
    collection: CollectionRecord
    sync: SyncReport
    links: int = 0
    """Links that the folder of an export holds beside its files, and that came back."""
    facts: int = 0
    problems: tuple[str, ...] = ()
    """What of these could not come back."""

    @property
    def exit_status(self) -> int:
        return self.sync.exit_status


class CollectionRemoveRecord(NamedTuple):
    name: str
    root: str
    removed: int
    """Pages that leave the memory."""
    kept: int
    """Pages with knowledge that no file has: they wait in quarantine."""
    done: bool = True
    ask: bool = False

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Letting go of the collection {self.name} with its pages"


class SyncsRecord(NamedTuple):
    syncs: tuple[SyncReport, ...]

    @property
    def exit_status(self) -> int:
        return max((each.exit_status for each in self.syncs), default=0)


@op(
    "owner",
    command="collection add",
    examples=("quaid collection add notes ~/notes", "quaid collection add wiki ~/wiki --read-only"),
)
def collection_add(
    brain: Brain,
    name: Annotated[str, Arg("What to call it; the part before '::' in addresses.", positional=True)],
    path: Annotated[str, Arg("The folder.", positional=True, path=True)],
    read_only: Annotated[bool, Arg("Never write into the folder.")] = False,
    writable: Annotated[bool, Arg("Changes made here go into its files, which is the default.")] = False,
    write_ids: Annotated[bool, Arg("Write each page's id into the front matter of its file.")] = False,
    kind: Annotated[
        Kind, Arg("kb: a knowledge base; leaves out its raw/, its indexes and its contract.")
    ] = "markdown",
) -> CollectionAddRecord:
    """Attach a folder of markdown or org files: they become pages, and stay as they are, byte for byte.

    Links and facts in the .quaid/links-and-facts.json of an export come back with it."""
    if read_only and writable:
        raise InvalidArgument(name="writable", problem="is the opposite of --read-only; choose one")
    if read_only and write_ids:
        raise InvalidArgument(name="write_ids", problem="writes into the files; leave out --read-only")
    added = attach(brain, name, path, kind=kind, writable=not read_only)
    if write_ids:
        from quaid.ops.restoring import write_ids as write

        write(brain, collections.require(brain.db, name))
    return added


def attach(
    brain: Brain, name: str, path: str, *, kind: str = "markdown", writable: bool = True
) -> CollectionAddRecord:
    """Make a folder a collection of this kind, and take its files in."""
    root = os.path.realpath(brain.settings.path(path))
    _check_new(brain, name, root)
    now = brain.now()
    known = collections.find(brain.db, name)

    def work(tx: Any) -> None:
        if known is None:
            collections.add(tx, name, kind, root, writable, now)
        else:
            collections.set_root(tx, known.id, root, writable, now)
            collections.set_kind(tx, known.id, kind, now)
            collections.set_state(tx, known.id, "active", now)

    if not os.path.isdir(root):
        raise FileTrouble(path=path, problem="is not a folder; name the folder that holds your files")
    brain.db.write(work)
    collections.write_folder_list(brain.db)
    report = _sync(brain, collections.require(brain.db, name))
    made = collections.require(brain.db, name)
    if report.halted:
        return CollectionAddRecord(_record(brain, made), report)
    from quaid.folders import export as exporter

    return CollectionAddRecord(_record(brain, made), report, *exporter.of_folder(brain.db, made, brain.now()))


@op(
    "read",
    command="collection list",
    tool="memory_collections",
    aliases={"collection": {}},
    examples=("quaid collection list",),
)
def collection_list(brain: Brain) -> CollectionsRecord:
    """List the collections with their folders and how they are."""
    return CollectionsRecord(tuple(_record(brain, each) for each in collections.list_all(brain.db)))


@op("owner", command="collection info", examples=("quaid collection info notes",))
def collection_info(brain: Brain, name: Name) -> CollectionInfoRecord:
    """Show how a collection is: files with problems, what is ignored, what waits for you."""
    found = collections.require(brain.db, name)
    away = erasure.quarantined_pages(brain.db, found.id)
    return CollectionInfoRecord(
        _record(brain, found),
        tuple(collections.file_problems(brain.db, found.id)),
        found.ignore_patterns,
        tuple(each.slug for each in away if each.is_only_here),
        found.root is not None and found.state == "active" and not os.path.isdir(found.root),
    )


@op(
    "owner",
    command="collection sync",
    examples=("quaid collection sync", "quaid collection sync notes --confirm-deletes"),
)
def collection_sync(
    brain: Brain,
    name: Annotated[str | None, Arg("The collection [all].", positional=True)] = None,
    confirm_deletes: Annotated[bool, Arg("Let pages go whose files are missing, however many.")] = False,
) -> SyncsRecord:
    """Bring collections in step with their folders now. Exits 1 when one waits for you."""
    chosen = [collections.require(brain.db, name)] if name else collections.list_all(brain.db)
    folders = [each for each in chosen if each.root and each.state == "active"]
    if name and not folders:
        raise InvalidArgument(name="name", problem=f"{name} has no folder that could be synced")
    return SyncsRecord(tuple(_sync(brain, each, confirm_deletes) for each in folders))


@op(
    "owner",
    command="collection remove",
    examples=("quaid collection remove notes", "quaid collection remove notes --keep-pages"),
)
def collection_remove(
    brain: Brain,
    name: Name,
    keep_pages: Annotated[bool, Arg("Leave its pages in the memory, as they are now.")] = False,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would happen.")] = False,
) -> CollectionRemoveRecord:
    """Let go of a folder. Its files stay as they are; its pages leave the memory, or stay with --keep-pages.

    Says first how many pages would go, and asks. Pages with links, facts or data that no file has wait in quarantine
    for 30 days."""
    found = collections.require(brain.db, name)
    if found.root is None:
        raise InvalidArgument(name="name", problem=f"{name} lives in the database and cannot be removed")
    now, root = brain.now(), found.root

    def work(tx: Any) -> CollectionRemoveRecord:
        collections.set_state(tx, found.id, "detached", now)
        if found.is_write_target:
            collections.set_write_target(tx, collections.require(brain.db, collections.DEFAULT_COLLECTION).id)
        if keep_pages:
            return CollectionRemoveRecord(name, root, 0, 0)
        removed, kept = erasure.clear_collection(tx, brain.db, found.id, now)
        if not kept:
            collections.remove(tx, found.id)
        return CollectionRemoveRecord(name, root, removed, kept)

    if dry_run or not (yes or keep_pages):
        would = brain.db.try_out(work)
        if dry_run or would.removed or would.kept:
            return would._replace(done=False, ask=not dry_run)
    removed = brain.db.write(work)
    collections.write_folder_list(brain.db)
    return removed


@op("owner", command="collection target", examples=("quaid collection target notes",))
def collection_target(brain: Brain, name: Name) -> CollectionsRecord:
    """Choose the collection that takes new pages whose address names none."""
    found = collections.require(brain.db, name)
    if found.root is not None and (not found.writable or found.state != "active"):
        raise InvalidArgument(
            name="name", problem=f"{name} is {found.state if found.writable else 'read-only'}"
        )
    brain.db.write(lambda tx: collections.set_write_target(tx, found.id))
    collections.write_folder_list(brain.db)
    return collection_list(brain)


def _sync(brain: Brain, collection: Collection, confirm_deletes: bool = False) -> SyncReport:
    try:
        return sync_collection(
            brain.db,
            collection,
            now=brain.now(),
            new_uuid=brain.new_uuid,
            progress=brain.progress,
            confirm_deletes=confirm_deletes,
            retry=True,
        )
    except (KeyboardInterrupt, Cancelled):  # files are taken in by batches, and each batch stays
        told = count_noun(_record(brain, collection).pages, "page")
        raise SyncStopped(name=collection.name, told=told) from None


def _check_new(brain: Brain, name: str, root: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            name="name",
            problem=f"{name!r} is no name: lower-case a-z, 0-9, '-' and '_' are, up to 63 of them",
        )
    for each in collections.list_all(brain.db):
        if each.name == name and (each.state != "detached" or each.root is None):
            raise AlreadyExists(path=f"The collection {name}", hint="Choose another name.")
        if each.root and each.name != name and overlap(each.root, root):
            raise AlreadyExists(
                path=root, hint=f"The collection {each.name} ({each.root}) has these files; two cannot."
            )


def overlap(one: str, other: str) -> bool:
    """Whether one folder is the other, or lies within it."""
    first, second = (os.path.join(place, "") for place in (one, other))
    return first.startswith(second) or second.startswith(first)


def _record(brain: Brain, each: Collection) -> CollectionRecord:
    shown, hidden = collections.page_counts(brain.db).get(each.id, (0, 0))
    return CollectionRecord(
        *(each.name, each.kind, each.root, each.state, each.writable, each.is_write_target, shown, hidden),
        *(
            collections.count_files(brain.db, each.id),
            each.last_sync_at,
            each.halt_reason,
            each.ignore_problem,
        ),
        len(collections.files_not_indexed(brain.db).get(each.name, ())),
    )
