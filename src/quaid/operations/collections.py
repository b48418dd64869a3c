"""Folders of files: attach, sync, watch, ignore, quarantine, restore, import and export."""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid import errors
from quaid.app import Brain
from quaid.folders import (
    atomic_write,
    documents as document_folders,
    export as exporter,
    importer,
    indexer,
    page_writer,
    restore,
    scanner,
    transcripts,
    watcher,
)
from quaid.folders.export import ExportFormat, ExportReport
from quaid.folders.importer import ImportReport
from quaid.folders.page_writer import IdsReport
from quaid.folders.restore import AuditRecord, QuarantineExportRecord, QuarantineRestoreRecord, RestoreRecord
from quaid.folders.scanner import DOCUMENT_KINDS, MARKDOWN, PAGE_ENDINGS, SKIPPED_FOLDERS, Folder, is_utf8
from quaid.folders.sync import SyncReport, sync_collection
from quaid.folders.transcripts import TranscriptReport
from quaid.folders.watcher import DEFAULT_PACE, Watcher, WatchPace
from quaid.formats.foreign_notes import CONVERSATION_SOURCES
from quaid.kb.layout import KB_KIND
from quaid.model import dates, slug as slugs
from quaid.model.plain_text import count_noun
from quaid.model.sync_plan import SkippedEntry
from quaid.operations import golden
from quaid.operations.notebook import sync_folder
from quaid.operations.registry import Arg, Named, op
from quaid.storage import chunks, collections, erase as erasure, leases
from quaid.storage.collections import Collection, Collections, FileProblem
from quaid.storage.erase import QuarantinedPage
from quaid.storage.history import ImportBatch, Imports
from quaid.storage.leases import Lease
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Transaction

COLLECTION_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

CollectionKind = Literal["markdown", "kb", "documents"]

EXPORT_HINT = "has no folder: its pages live in the database; `quaid export` writes them out"

CollectionName = Annotated[str, Arg("The collection, as in notes.", positional=True)]


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
    """Why syncing is paused until the user decides; None if it is not paused."""
    ignore_problem: str | None
    files_not_taken_in: int = 0


class CollectionInfoRecord(NamedTuple):
    collection: CollectionRecord
    problems: tuple[FileProblem, ...]
    """Files that could not be indexed, or only in part."""
    ignore_patterns: str
    waiting: tuple[str, ...]
    """Slugs of quarantined pages with data that no file contains."""
    missing: bool = False
    """True if the folder does not exist."""


class CollectionAddRecord(NamedTuple):
    collection: CollectionRecord
    sync: SyncReport
    links: int = 0
    """Number of links restored from the metadata of an exported folder."""
    facts: int = 0
    problems: tuple[str, ...] = ()
    """Links and facts that could not be restored."""

    @property
    def exit_status(self) -> int:
        return self.sync.exit_status


class CollectionRemoveRecord(NamedTuple):
    name: str
    root: str
    removed: int
    """Number of pages removed from the memory."""
    kept: int
    """Number of pages that stay in quarantine, because they have data that no file contains."""
    done: bool = True
    ask: bool = False

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Detaching the collection {self.name} and removing its pages"


@op(
    "owner",
    command="collection add",
    examples=(
        "quaid collection add notes ~/notes",
        "quaid collection add wiki ~/wiki --read-only",
        "quaid collection add papers ~/papers --kind documents",
    ),
)
def collection_add(
    brain: Brain,
    name: Annotated[str, Arg("Name of the collection: the part before '::' in addresses.", positional=True)],
    path: Annotated[str, Arg("The folder.", positional=True, path=True)],
    read_only: Annotated[bool, Arg("Never write into the folder.")] = False,
    writable: Annotated[bool, Arg("Write changes of pages to their files. This is the default.")] = False,
    write_ids: Annotated[bool, Arg("Write each page's id into the front matter of its file.")] = False,
    kind: Annotated[
        CollectionKind,
        Arg(
            "kb: a knowledge base; skips its raw/, index files and contract. documents: also PDF, Office, HTML,"
            " EPUB, e-mail, calendars, text and code, read-only."
        ),
    ] = "markdown",
    force: Annotated[bool, Arg("Attach it even if golden questions fail then.")] = False,
) -> CollectionAddRecord:
    """Attach a folder of markdown, org or other files. They become pages, and are not changed without --write-ids.

    Links and facts in the .quaid/links-and-facts.json of an export are restored."""
    if read_only and writable:
        raise errors.InvalidArgument(name="writable", problem="is the opposite of --read-only; choose one")
    if read_only and write_ids:
        raise errors.InvalidArgument(name="write_ids", problem="writes into the files; leave out --read-only")
    if kind == "documents" and (writable or write_ids):
        raise errors.InvalidArgument(
            name="kind", problem="documents are never written; leave out --writable and --write-ids"
        )
    is_writable = not read_only and kind != "documents"
    added = golden.guard(
        brain,
        lambda: attach_folder(brain, name, path, kind=kind, writable=is_writable),
        what=f"The folder {path}",
        force=force,
    )
    if write_ids:
        write_collection_ids(brain, Collections(brain.db).require(name))
    return added


def attach_folder(
    brain: Brain, name: str, path: str, *, kind: str = "markdown", writable: bool = True
) -> CollectionAddRecord:
    """Attach a folder as a new collection, or to the detached collection `name`, and sync it.

    Unless the sync is halted, restore the links and facts of an exported folder too.
    """
    root = os.path.realpath(brain.settings.path(path))
    _check_new_collection(brain, name, root)
    now = brain.now()
    existing = Collections(brain.db).find(name)

    def work(tx: "Transaction") -> None:
        if existing is None:
            collections.add(tx, name, kind, root, writable, now)
        else:
            columns = {
                "root_path": root,
                "writable": writable,
                "kind": kind,
                "state": "active",
                "updated_at": now,
            }
            existing.update(tx, **columns)

    if not os.path.isdir(root):
        raise errors.FileTrouble(path=path, problem="is not a folder; name the folder that holds your files")
    brain.db.write(work)
    collections.write_folder_list(brain.db)
    report = _sync(brain, Collections(brain.db).require(name), retry=True)
    made = Collections(brain.db).require(name)
    if report.halted:
        return CollectionAddRecord(_collection_record(brain, made), report)
    return CollectionAddRecord(
        _collection_record(brain, made),
        report,
        *exporter.restore_links_and_facts(brain.db, made, brain.now()),
    )


def synced_kb(brain: Brain) -> Collection:
    """Return the collection of the knowledge base after syncing it with its files. Attach it if necessary."""
    path = os.path.realpath(brain.settings.kb_root)
    attached = Collections(brain.db).all()
    for collection in attached:
        if collection.kind == KB_KIND and collection.root == path:
            sync_folder(brain, collection)
            return collection
    names = {collection.name for collection in attached}
    spare = (KB_KIND, *(f"{KB_KIND}-{number}" for number in range(2, 1000)))
    name = next(name for name in spare if name not in names)
    attach_folder(brain, name, path, kind=KB_KIND)
    return Collections(brain.db).require(name)


@op(
    "read",
    command="collection list",
    tool="memory_collections",
    aliases={"collection": {}},
    examples=("quaid collection list",),
)
def collection_list(brain: Brain) -> Named[tuple[CollectionRecord, ...]]:
    """List the collections with their folders and state."""
    rows = Collections(brain.db).all()
    return Named("collections", tuple(_collection_record(brain, collection) for collection in rows))


@op("owner", command="collection info", examples=("quaid collection info notes",))
def collection_info(brain: Brain, name: CollectionName) -> CollectionInfoRecord:
    """Show the state of a collection: files with problems, ignore patterns, pending decisions."""
    collection = Collections(brain.db).require(name)
    away = erasure.quarantined_pages(brain.db, collection.id)
    return CollectionInfoRecord(
        _collection_record(brain, collection),
        tuple(Collections(brain.db).file_problems(collection.id).get(collection.name, ())),
        collection.ignore_patterns,
        tuple(page.slug for page in away if page.is_only_here),
        collection.is_attached and not os.path.isdir(collection.root or ""),
    )


@op(
    "owner",
    command="collection sync",
    examples=("quaid collection sync", "quaid collection sync notes --confirm-deletes"),
)
def collection_sync(
    brain: Brain,
    name: Annotated[str | None, Arg("The collection [all].", positional=True)] = None,
    confirm_deletes: Annotated[bool, Arg("Remove pages whose files are missing, however many.")] = False,
) -> Named[tuple[SyncReport, ...]]:
    """Sync collections with their folders now. Exits 1 if one needs a decision."""
    chosen = [Collections(brain.db).require(name)] if name else Collections(brain.db).all()
    folders = [collection for collection in chosen if collection.is_attached]
    if name and not folders:
        raise errors.InvalidArgument(name="name", problem=f"{name} has no folder that could be synced")
    syncs = tuple(_sync(brain, folder, retry=True, confirm_deletes=confirm_deletes) for folder in folders)
    return Named("syncs", syncs, "No folder is attached. `quaid collection add NAME FOLDER` attaches one.")


@op(
    "owner",
    command="collection remove",
    examples=("quaid collection remove notes", "quaid collection remove notes --keep-pages"),
)
def collection_remove(
    brain: Brain,
    name: CollectionName,
    keep_pages: Annotated[bool, Arg("Keep its pages in the memory.")] = False,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would be done.")] = False,
) -> CollectionRemoveRecord:
    """Detach a folder. Its files are not changed; its pages are removed, or kept with --keep-pages.

    Shows how many pages would be removed, and asks. Pages with links, facts or data that no file contains stay in
    quarantine for 30 days."""
    shared = Collections(brain.db).require(name).kind == "shared"
    remedy = f"is a shared space; `quaid leave {name}` removes it" if shared else "cannot be removed"
    collection = _require_folder(brain, name, f"lives in the database and {remedy}")
    now, root = brain.now(), collection.root or ""

    def work(tx: "Transaction") -> CollectionRemoveRecord:
        collection.update(tx, state="detached", updated_at=now)
        if collection.is_write_target:
            default = Collections(brain.db).require(collections.DEFAULT_COLLECTION)
            default.update(tx, is_write_target=True)
        if keep_pages:
            return CollectionRemoveRecord(name, root, 0, 0)
        return CollectionRemoveRecord(
            name, root, *erasure.remove_collection(tx, brain.db, collection.id, now)
        )

    if dry_run or not (yes or keep_pages):
        would = brain.db.dry_run(work)
        if dry_run or would.removed or would.kept:
            return would._replace(done=False, ask=not dry_run)
    removed = brain.db.write(work)
    collections.write_folder_list(brain.db)
    return removed


class FolderEntry(NamedTuple):
    name: str
    path: str


class FoldersRecord(NamedTuple):
    path: str
    parent: str
    """The parent folder, or "" if it may not be listed."""
    roots: tuple[str, ...]
    folders: tuple[FolderEntry, ...]
    notes: int
    """Number of markdown and org files directly in the folder."""
    collection: str
    """The collection whose folder is `path` or contains it, or ""."""


MAX_FOLDERS_LISTED = 500


@op(
    "owner",
    command="collection folders",
    examples=("quaid collection folders", "quaid collection folders ~/notes"),
)
def collection_folders(
    brain: Brain,
    under: Annotated[str | None, Arg("The folder [the home folder].", positional=True, path=True)] = None,
) -> FoldersRecord:
    """List the folders in a folder, to choose one for a collection.

    Shows only the home folder, attached folders and what is below them. Hidden folders, node_modules and symlinks
    are left out.
    """
    attached = [row for row in Collections(brain.db).all() if row.is_attached]
    roots = tuple(dict.fromkeys([brain.settings.user_home, *(row.root or "" for row in attached)]))
    path = os.path.normpath(brain.settings.path(under)) if under else roots[0]
    root = max((root for root in roots if (path + os.sep).startswith(root + os.sep)), key=len, default="")
    relative = path[len(root) :].strip(os.sep)
    names = relative.split(os.sep) if relative else []
    if not root or any(name.startswith(".") for name in names) or "\0" in path:
        raise errors.InvalidArgument(
            name="under", problem="is not a folder below the home folder or an attached folder"
        )
    try:
        with Folder(root) as folder, os.scandir(folder.enter("/".join(names))) as listing:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
    except OSError as error:
        raise errors.FileTrouble(path=path, problem=f"cannot be read ({error.strerror})") from None
    shown = [
        FolderEntry(name, os.path.join(path, name))
        for name, is_folder in sorted(entries, key=lambda entry: entry[0].casefold())
        if is_folder and not name.startswith(".") and name not in SKIPPED_FOLDERS and is_utf8(name)
    ]
    notes = sum(name.lower().endswith(PAGE_ENDINGS) for name, is_folder in entries if not is_folder)
    owner = next((row.name for row in attached if (path + os.sep).startswith(f"{row.root}{os.sep}")), "")
    parent = os.path.dirname(path) if path not in roots else ""
    return FoldersRecord(path, parent, roots, tuple(shown[:MAX_FOLDERS_LISTED]), notes, owner)


@op("owner", command="collection target", examples=("quaid collection target notes",))
def collection_target(brain: Brain, name: CollectionName) -> Named[tuple[CollectionRecord, ...]]:
    """Set the collection for new pages whose address names none."""
    collection = Collections(brain.db).require(name)
    if collection.root is not None and (not collection.writable or collection.state != "active"):
        raise errors.InvalidArgument(
            name="name", problem=f"{name} is {collection.state if collection.writable else 'read-only'}"
        )
    brain.db.write(lambda tx: collection.update(tx, is_write_target=True))
    collections.write_folder_list(brain.db)
    return collection_list(brain)


def _sync(brain: Brain, collection: Collection, **options: Any) -> SyncReport:
    """Sync a folder and split its changed pages into chunks now, so that the next query does not have to."""
    try:
        report = sync_collection(
            brain.db,
            collection,
            now=brain.now(),
            new_uuid=brain.new_uuid,
            progress=brain.progress,
            **options,
        )
        chunks.cut_pages(brain.db, brain.progress)
        return report
    except (
        KeyboardInterrupt,
        errors.Cancelled,
    ):  # files are committed in batches, so finished batches are kept
        pages = count_noun(_collection_record(brain, collection).pages, "page")
        raise errors.SyncStopped(name=collection.name, detail=pages) from None


def check_collection_name(name: str) -> None:
    if not COLLECTION_NAME.fullmatch(name):
        raise errors.InvalidArgument(
            name="name",
            problem=f"{name!r} is not allowed: use up to 63 of a-z, 0-9, '-' and '_'",
        )


def _check_new_collection(brain: Brain, name: str, root: str) -> None:
    check_collection_name(name)
    for collection in Collections(brain.db).all():
        if collection.name == name and (collection.state != "detached" or collection.root is None):
            raise errors.AlreadyExists(path=f"The collection {name}", hint="Choose another name.")
        if collection.root and collection.name != name and folders_overlap(collection.root, root):
            raise errors.AlreadyExists(
                path=root,
                hint=f"The collection {collection.name} ({collection.root}) has these files; two cannot.",
            )


def _require_folder(brain: Brain, name: str, problem: str) -> Collection:
    """Return the collection `name`. Raise InvalidArgument with `problem` if it has no folder."""
    collection = Collections(brain.db).require(name)
    if collection.root is None:
        raise errors.InvalidArgument(name="name", problem=f"{name} {problem}")
    return collection


def folders_overlap(one: str, other: str) -> bool:
    """Return True if the folders are the same or one contains the other."""
    first, second = (os.path.join(place, "") for place in (one, other))
    return first.startswith(second) or second.startswith(first)


def _collection_record(brain: Brain, row: Collection) -> CollectionRecord:
    shown, hidden = Collections(brain.db).page_counts().get(row.id, (0, 0))
    problems = Collections(brain.db).file_problems()
    return CollectionRecord(
        *(
            row.name,
            row.kind,
            row.root,
            row.state,
            row.writable,
            row.is_write_target,
            shown,
            hidden,
        ),
        *(
            row.count_files(brain.db),
            row.last_sync_at,
            row.halt_reason,
            row.ignore_problem,
        ),
        len([file for file in problems.get(row.name, ()) if not file.taken_in]),
    )


EventHandler = Callable[[Any], None]


class WatchOwner(NamedTuple):
    """The process that watches a collection."""

    collection: str
    pid: int
    host: str


class WatchStandby(NamedTuple):
    """Event for the caller of watch_folders(): other processes watch these collections."""

    owners: tuple[WatchOwner, ...]


def watch_folders(
    brain: Brain,
    tell: EventHandler,
    stop: Event,
    *,
    name: str | None = None,
    patient: bool = True,
    pace: WatchPace = DEFAULT_PACE,
) -> None:
    """Watch all attached folders, or the folder of the collection `name`, until `stop` is set.

    With `patient`, wait for folders that other processes watch, and raise an error if no folder is attached.
    Without it, return as soon as there is no folder that this process can watch.
    """
    if patient:
        watchable_collections(brain, name)
    held: dict[int, Lease] = {}
    owners: tuple[WatchOwner, ...] = ()
    due = 0.0

    def which() -> frozenset[int] | None:
        nonlocal owners, due
        if time.monotonic() >= due:
            due = time.monotonic() + pace.look
            with suppress(errors.Busy):  # retried after `pace.look` seconds
                before, owners = owners, take_watch_leases(brain, held, name)
                if owners and owners != before:
                    tell(WatchStandby(owners))
        return frozenset(held) if held or patient else None

    try:
        _new_watcher(brain, tell, stop, pace).run(which)
    finally:
        for lease in held.values():
            lease.release(remove=True)


def take_watch_leases(brain: Brain, held: dict[int, Lease], name: str | None) -> tuple[WatchOwner, ...]:
    """Take the watch leases (see storage/leases.py) that are free. Drop those that were lost or are not needed.

    `held` maps collection ids to leases and is updated. Return the processes that hold the other leases.
    """
    watched = {
        collection.id: collection
        for collection in Collections(brain.db).all()
        if collection.is_attached and name in (None, collection.name)
    }
    for id in [id for id, lease in held.items() if id not in watched or not lease.is_held()]:
        held.pop(id).release(remove=True)
    owners = []
    for id, collection in watched.items():
        if id in held:
            continue
        lease = Lease(brain.db.path, collection.watch_lease)
        if lease.try_take():
            lease.hold(host=os.uname().nodename if hasattr(os, "uname") else "")
            held[id] = lease
        else:
            state = leases.read_state(brain.db.path, collection.watch_lease)
            owners.append(WatchOwner(collection.name, int(state.get("pid", 0)), str(state.get("host", ""))))
    return tuple(owners)


def record_watch_failure(brain: Brain, problem: str) -> None:
    """Record that the watcher process failed, for every attached folder whose sync is not already halted."""
    for collection in Collections(brain.db).all():
        if collection.is_attached and not collection.halt_reason:
            watcher.record_sync_failure(brain.db, collection, problem, brain.now())


def sync_once(brain: Brain, tell: EventHandler, name: str | None = None) -> bool:
    """Sync all attached folders, or the folder of the collection `name`. Return True if no sync is halted."""
    return _new_watcher(brain, tell, Event(), DEFAULT_PACE).once(watchable_collections(brain, name))


def watchable_collections(brain: Brain, name: str | None) -> frozenset[int]:
    """Return the ids of all collections that can be watched, or only the id of `name`.

    Raise an error if there are no such collections.
    """
    if name:
        Collections(brain.db).require(name)
    ids = frozenset(
        collection.id
        for collection in Collections(brain.db).all()
        if collection.is_attached and name in (None, collection.name)
    )
    if not ids and name:
        raise errors.InvalidArgument(name="name", problem=f"{name} has no folder that could be watched")
    if not ids:
        hint = " `quaid collection add NAME FOLDER` attaches one."
        raise errors.NotFound(what="folder", name="to watch", hint=hint)
    return ids


def _new_watcher(brain: Brain, tell: EventHandler, stop: Event, pace: WatchPace) -> Watcher:
    quiet, _ = brain.settings.configured("sync.watch_debounce_ms")
    pace = pace if quiet is None else pace._replace(debounce=quiet / 1000)
    if not brain.settings.option("sync.sync_on_start"):
        pace = pace._replace(first=pace.rescan)
    return Watcher(brain.db, now=brain.now, new_uuid=brain.new_uuid, tell=tell, stop=stop, pace=pace)


IgnorePattern = Annotated[str, Arg("Pattern as in gitignore: 'drafts/', '*.tmp.md'.", positional=True)]


class IgnoreRecord(NamedTuple):
    name: str
    patterns: tuple[str, ...]
    """Patterns of the ignore file, in file order."""
    problem: str | None = None
    """Why the ignore file is not in effect; None if it is. `patterns` are then those of its last valid version."""
    built_in: tuple[str, ...] = ()
    """Patterns that always apply. Set only by `collection ignore list`."""
    changed: bool = False
    hidden: tuple[str, ...] = ()
    """Files that are now ignored. Their pages are in quarantine."""
    shown: tuple[str, ...] = ()
    """Files that are no longer ignored."""
    sync: SyncReport | None = None

    @property
    def exit_status(self) -> int:
        return self.sync.exit_status if self.sync else 0


@op("owner", command="collection ignore list", examples=("quaid collection ignore list notes",))
def ignore_list(brain: Brain, name: CollectionName) -> IgnoreRecord:
    """List the ignore patterns of a collection."""
    collection = _require_folder(brain, name, "has no folder: there is nothing to leave out")
    built_in = (".*/", *(f"{folder}/" for folder in SKIPPED_FOLDERS), scanner.TEMPLATES_FOLDER)
    return IgnoreRecord(
        name, tuple(scanner.pattern_lines(collection.ignore_patterns)), collection.ignore_problem, built_in
    )


@op(
    "owner",
    command="collection ignore add",
    examples=("quaid collection ignore add notes 'drafts/'", "quaid collection ignore add notes '*.tmp.md'"),
)
def ignore_add(brain: Brain, name: CollectionName, pattern: IgnorePattern) -> IgnoreRecord:
    """Ignore files of a collection. They are not changed; their pages go into quarantine."""
    stripped = pattern.strip()
    problem = scanner.pattern_problem(stripped)
    if problem:
        raise errors.InvalidArgument(name="pattern", problem=f"{pattern!r} {problem}")
    return _change_patterns(brain, name, lambda text: scanner.add_pattern(text, stripped))


@op("owner", command="collection ignore remove", examples=("quaid collection ignore remove notes 'drafts/'",))
def ignore_remove(brain: Brain, name: CollectionName, pattern: IgnorePattern) -> IgnoreRecord:
    """Remove an ignore pattern. The files that it matched become pages again."""
    stripped = pattern.strip()

    def without(text: str) -> str:
        new = scanner.remove_pattern(text, stripped)
        if new == text:
            hint = f" `quaid collection ignore list {name}` shows them."
            raise errors.NotFound(what="pattern", name=pattern, hint=hint)
        return new

    return _change_patterns(brain, name, without)


@op("owner", command="collection ignore clear", examples=("quaid collection ignore clear notes",))
def ignore_clear(brain: Brain, name: CollectionName) -> IgnoreRecord:
    """Remove all ignore patterns. Comments and built-in patterns are kept."""
    return _change_patterns(brain, name, lambda text: scanner.remove_pattern(text, None))


def _change_patterns(brain: Brain, name: str, change: scanner.IgnoreEdit) -> IgnoreRecord:
    """Change the ignore file atomically and, if its text changed, sync the collection."""
    collection = _require_folder(brain, name, "has no folder: there is nothing to leave out")
    page_writer.require_writable(collection)
    before, after = _rewrite_ignore_file(collection, change, brain.new_uuid())
    if before == after:
        return IgnoreRecord(name, tuple(scanner.pattern_lines(after)))
    before_files = {file.path for file in collection.known_files(brain.db)}
    report = _sync(brain, collection, confirm_ignored=True)
    after_files = {file.path for file in collection.known_files(brain.db)}
    was, is_now = scanner.ignore_matcher(collection.ignore_patterns), scanner.ignore_matcher(after)
    hidden = sorted(path for path in before_files - after_files if scanner.is_ignored(is_now, path))
    shown = sorted(path for path in after_files - before_files if scanner.is_ignored(was, path))
    patterns = tuple(scanner.pattern_lines(after))
    return IgnoreRecord(name, patterns, changed=True, hidden=tuple(hidden), shown=tuple(shown), sync=report)


def _rewrite_ignore_file(collection: Collection, change: scanner.IgnoreEdit, token: str) -> tuple[str, str]:
    """Change the ignore file. Return its text before and after."""
    with Folder(collection.root or "") as folder:
        try:
            data: bytes | None = folder.read(scanner.IGNORE_FILE)
        except FileNotFoundError:
            data = None
        except OSError as error:
            raise errors.FileTrouble(
                path=scanner.IGNORE_FILE, problem=f"cannot be read: {error.strerror}"
            ) from None
        _, invalid = scanner.parse_rules(data, "")
        if invalid:
            problem = f"cannot be used: {invalid}; mend it with an editor first"
            raise errors.FileTrouble(path=scanner.IGNORE_FILE, problem=problem)
        text = data.decode("utf-8") if data is not None else ""
        new = change(text)
        problem = scanner.patterns_problem(new) or ""
        if problem:
            raise errors.InvalidArgument(name="pattern", problem=f"the file cannot have it: {problem}")
        if new != text and data is None:
            atomic_write.create_file(folder, scanner.IGNORE_FILE, new.encode(), token)
        elif new != text and data is not None:
            atomic_write.replace_file(folder, scanner.IGNORE_FILE, new.encode(), indexer.digest(data), token)
    return text, new


QUARANTINE_HINT = " `quaid collection quarantine list` shows what there is."

QuarantinedAddress = Annotated[
    str, Arg("The page, as in people/alice or notes::people/alice.", positional=True)
]


class WaitingRecord(NamedTuple):
    slug: str
    title: str
    collection: str
    path: str | None
    """Last path of the page's file; None if it is not known."""
    since: str
    until: str
    """From this day on, a sync deletes the page, unless the page has data that no file contains."""
    links: int
    assertions: int
    raw_data: int
    exported_to: str | None


class QuarantineDiscardRecord(NamedTuple):
    done: bool
    pages: tuple[WaitingRecord, ...]
    """Pages that were discarded or, in a preview, would be discarded."""
    kept: tuple[str, ...] = ()
    """Slugs of pages that are kept because they have data that no file contains and that was not exported."""
    ask: bool = True
    """False in a dry run. If it is True and `done` is False, the call must be confirmed."""

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask and self.pages and not self.done else {}

    @property
    def act(self) -> str:
        which = self.pages[0].slug if len(self.pages) == 1 else f"{len(self.pages):,} pages"
        return f"Deleting {which} permanently"


@op(
    "owner",
    command="collection quarantine list",
    aliases={"collection quarantine": {}},
    examples=("quaid collection quarantine list", "quaid collection quarantine list notes"),
)
def quarantine_list(
    brain: Brain, name: Annotated[str | None, Arg("The collection [all].", positional=True)] = None
) -> Named[tuple[WaitingRecord, ...]]:
    """List pages whose file is deleted or ignored, with dates and the data that no file contains."""
    chosen = None if name is None else Collections(brain.db).require(name).id
    pages = tuple(map(_waiting_record, erasure.quarantined_pages(brain.db, chosen)))
    return Named("pages", pages, "No page is in quarantine.")


@op(
    "owner",
    command="collection quarantine export",
    examples=(
        "quaid collection quarantine export ~/rescued",
        "quaid collection quarantine export ~/rescued people/alice",
    ),
)
def quarantine_export(
    brain: Brain,
    path: Annotated[str, Arg("A new or empty folder.", positional=True, path=True)],
    slug: Annotated[str | None, Arg("The page, as in people/alice [all].", positional=True)] = None,
    force: Annotated[bool, Arg("Write into a folder that is not empty.")] = False,
) -> QuarantineExportRecord:
    """Export quarantined pages as their original files, with links, facts and raw data as JSON."""
    chosen = erasure.quarantined_pages(brain.db) if slug is None else [_require_quarantined(brain, slug)]
    if not chosen:
        raise errors.NotFound(what="page", name="in quarantine", hint=" Nothing was written.")
    return restore.export_quarantined(brain.db, chosen, brain.settings.path(path), force, brain.now())


@op(
    "owner",
    command="collection quarantine discard",
    examples=(
        "quaid collection quarantine discard people/alice",
        "quaid collection quarantine discard --expired --yes",
    ),
)
def quarantine_discard(
    brain: Brain,
    slug: Annotated[str | None, Arg("The page, as in people/alice.", positional=True)] = None,
    expired: Annotated[bool, Arg("All expired pages, in every collection.")] = False,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would be deleted.")] = False,
    force: Annotated[bool, Arg("Also delete data that no file contains and that was not exported.")] = False,
) -> QuarantineDiscardRecord:
    """Delete quarantined pages permanently. Without --force, data that no file contains must be exported first."""
    if expired == bool(slug):
        raise errors.InvalidArgument(name="slug", problem="is required, or --expired, and not both")
    today = brain.now()[:10]
    if slug:
        chosen = [_require_quarantined(brain, slug)]
    else:
        chosen = [page for page in erasure.quarantined_pages(brain.db) if _expiry(page) <= today]
    left = [candidate for candidate in chosen if not (candidate.is_safe or force)]
    if slug and left:
        raise errors.OnlyHere(detail=f"{slug} holds")
    going = [candidate for candidate in chosen if candidate not in left]
    done = yes and not dry_run
    if done:

        def discard(tx: "Transaction") -> None:
            for candidate in going:
                candidate.discard(tx)

        brain.db.write(discard)
    discarded, kept_slugs = (
        tuple(_waiting_record(candidate) for candidate in going),
        tuple(candidate.slug for candidate in left),
    )
    return QuarantineDiscardRecord(done, discarded, kept_slugs, ask=not dry_run)


@op(
    "owner",
    command="collection quarantine restore",
    examples=("quaid collection quarantine restore people/alice",),
)
def quarantine_restore(brain: Brain, slug: QuarantinedAddress) -> QuarantineRestoreRecord:
    """Restore a page's file at its old path. The page keeps its links and facts."""
    quarantined = _require_quarantined(brain, slug)
    return restore.restore_quarantined_page(brain.db, quarantined, brain.new_uuid(), brain.now())


def _require_quarantined(brain: Brain, address: str) -> QuarantinedPage:
    """Return the only quarantined page with this address, in any collection if the address names none."""
    named, name = slugs.split_address(address)
    if named:
        Collections(brain.db).require(named)
    matches = [
        page
        for page in erasure.quarantined_pages(brain.db, slug=slugs.check(name))
        if named in ("", None, page.collection)
    ]
    if len(matches) > 1:
        candidates = ", ".join(sorted(f"{page.collection}::{page.slug}" for page in matches))
        raise errors.AmbiguousSlug(slug=name, candidates=candidates)
    if not matches:
        raise errors.NotFound(what="quarantined page", name=address, hint=QUARANTINE_HINT)
    return matches[0]


def _expiry(page: QuarantinedPage) -> str:
    return dates.shift_date(page.quarantined_at[:10], erasure.QUARANTINE_DAYS + 1)


def _waiting_record(page: QuarantinedPage) -> WaitingRecord:
    return WaitingRecord(
        *(page.slug, page.title, page.collection, page.path, page.quarantined_at, _expiry(page)),
        *(page.links, page.assertions, page.raw_data, page.exported_to),
    )


@op("owner", command="collection restore", examples=("quaid collection restore notes ~/notes-again",))
def collection_restore(
    brain: Brain,
    name: CollectionName,
    target: Annotated[str, Arg("A new or empty folder.", positional=True, path=True)],
) -> RestoreRecord:
    """Write every file of a collection, byte for byte, into an empty folder, and attach that folder.

    Works if the old folder is missing. Images and other files were never stored."""
    collection = _require_folder(brain, name, EXPORT_HINT)
    place = os.path.realpath(brain.settings.path(target))
    for row in Collections(brain.db).all():
        if row.root and folders_overlap(row.root, place) and not (row.name == name and row.root == place):
            hint = f"It lies in the folder of {row.name} ({row.root}), or around it; choose another."
            raise errors.AlreadyExists(path=target, hint=hint)
    done = restore.restore_collection(
        brain.db, collection, place, now=brain.now(), token=brain.new_uuid(), progress=brain.progress
    )
    collections.write_folder_list(brain.db)
    return done


@op("owner", command="collection audit", examples=("quaid collection audit notes",))
def collection_audit(brain: Brain, name: CollectionName) -> AuditRecord:
    """Compare every file of a collection with its page, stored bytes and id. Changes nothing.

    Exits 1 if there is a difference."""
    return restore.audit_collection(brain.db, _require_folder(brain, name, EXPORT_HINT), brain.progress)


@op(
    "owner",
    command="collection migrate-ids",
    examples=("quaid collection migrate-ids notes --dry-run", "quaid collection migrate-ids notes"),
)
def collection_migrate_ids(
    brain: Brain,
    name: CollectionName,
    dry_run: Annotated[bool, Arg("Only list the files that would change.")] = False,
) -> IdsReport:
    """Write each page's id into the front matter of its file, so that a moved file keeps its page.

    Nothing else is changed. If stopped, the next run continues."""

    collection = _require_folder(brain, name, EXPORT_HINT)
    page_writer.require_writable(collection)
    if not dry_run:
        _sync(brain, collection)
    return write_collection_ids(brain, collection, dry_run)


def write_collection_ids(brain: Brain, collection: Collection, dry_run: bool = False) -> IdsReport:
    """Write the page ids of a synced collection into its files. With `dry_run`, only list the files."""
    return page_writer.write_ids(
        brain.db,
        collection,
        now=brain.now,
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        dry_run=dry_run,
    )


class ImportRecord(NamedTuple):
    report: ImportReport
    cpu_seconds: float
    next_step: str | None = None
    chunking_seconds: float = 0.0
    """The part of `cpu_seconds` in which pages were split into chunks."""
    unread: tuple[SkippedEntry, ...] = ()
    """With --from: entries that could not be read, with the reasons."""
    reasons: dict[str, int] | None = None
    """With --from: the number of unread entries by reason."""
    conversations: TranscriptReport | None = None
    """With --from: the conversations that the export contains."""

    @property
    def exit_status(self) -> int:
        return 1 if self.conversations and self.conversations.problems else 0


ForeignSource = Literal[
    "chatgpt",
    "claude",
    "gemini",
    "basic-memory",
    "mem0",
    "obsidian",
    "logseq",
    "roam",
    "notion",
    "org-roam",
    "apple-notes-html",
    "okf",
    "jsonl",
]


@op(
    "owner",
    command="import",
    creates=True,
    examples=(
        "quaid import ~/notes",
        "quaid import ~/notes --force",
        "quaid import ~/papers --documents",
        "quaid import --from chatgpt ~/Downloads/chatgpt-export.zip",
        "quaid import --from logseq ~/graph --json",
        "quaid import --from okf ~/bundle",
    ),
)
def import_(
    brain: Brain,
    folder: Annotated[
        str,
        Arg(
            "The folder of markdown files; with --from a folder, a file or a zip.", positional=True, path=True
        ),
    ],
    force: Annotated[bool, Arg("Import every file again, overwriting pages that were edited here.")] = False,
    from_: Annotated[ForeignSource | None, Arg("The program that wrote the notes or memories.")] = None,
    documents: Annotated[
        bool, Arg("Also import PDF, Office, HTML, EPUB, e-mail, calendars, text and code.")
    ] = False,
    ignore_golden: Annotated[
        bool, Arg("Import even if golden questions fail then; implied by --force.")
    ] = False,
) -> ImportRecord:
    """Import a folder, or the export of another program; report every file.

    Nothing is written to the folder. A second run imports only changed files, and does not overwrite pages edited
    here. With --force it does; `quaid history SLUG` has the earlier text. Links, facts and images of an exported
    folder are restored. With --from, ids and dates are kept, and what could not be read is listed. If a golden
    question would fail, nothing is imported, unless --ignore-golden or --force is set."""
    return golden.guard(
        brain,
        lambda: _import(brain, folder, force, from_, documents),
        what=f"The import of {folder}",
        force=force or ignore_golden,
        flag="--ignore-golden",
    )


def _import(
    brain: Brain, folder: str, force: bool, from_: ForeignSource | None, documents: bool
) -> ImportRecord:
    started = _cpu_seconds()
    path = brain.settings.path(folder)
    run: dict[str, Any] = {
        "import_id": brain.new_uuid(),
        "now": brain.now(),
        "new_uuid": brain.new_uuid,
        "progress": brain.progress,
        "force": force,
    }
    unread: tuple[SkippedEntry, ...] = ()
    reasons: dict[str, int] | None = None
    talks: TranscriptReport | None = None
    if from_ is None:
        root = os.path.realpath(path)
        taken = document_folders.DocumentFolder(root, (*MARKDOWN, *DOCUMENT_KINDS)) if documents else None
        report = importer.import_folder(brain.db, path, folder=taken, **run)
    elif documents:
        raise errors.InvalidArgument(name="documents", problem="does not go with --from")
    else:
        report, unread, reasons = importer.import_foreign(brain.db, path, from_, **run)
        talks = _import_conversations(brain, path, from_, force)
    imported = _cpu_seconds()
    with suppress(
        KeyboardInterrupt, errors.Cancelled
    ):  # the pages are imported; the next query creates the remaining chunks
        chunks.cut_pages(brain.db, brain.progress)
    finished = _cpu_seconds()
    next_step = _embedding_hint(brain) if report.import_id else None
    if from_ is None and not documents and 0 < report.files_seen == report.outcomes["left_out"]:
        next_step = (
            "`quaid import FOLDER --documents` also takes PDF, Office, HTML, e-mail and other documents"
        )
    return ImportRecord(
        report,
        round(finished - started, 3),
        next_step,
        round(finished - imported, 3),
        *(unread, reasons, talks),
    )


def _import_conversations(brain: Brain, path: str, source: str, force: bool) -> TranscriptReport | None:
    """Import the conversations of an assistant's export. Return None if the source or the file has none."""
    if source == "jsonl":
        names = transcripts.find_transcripts(path) if os.path.isdir(path) else []
        paths = [name for name in names if os.path.basename(name).startswith("conversations")]
    elif source not in CONVERSATION_SOURCES or path.lower().endswith((".txt", ".md")):
        return None
    else:
        paths = transcripts.find_transcripts(path)
    if not paths:
        return None
    named = set(paths) if not os.path.isdir(path) else set()
    return transcripts.read_transcripts(
        brain.db, paths, named=named, now=brain.now(), progress=brain.progress, again=force
    )


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _embedding_hint(brain: Brain) -> str | None:
    """Return a hint to run `quaid embed` if the model is ready, else None."""
    try:
        ready = brain.embedder.ready() is None
    except Exception:  # a broken model must not make a finished import fail; `quaid status` reports it
        return None
    return "`quaid embed` makes the vectors for questions by meaning" if ready else None


@op(
    "owner",
    examples=(
        "quaid export --dir ~/notes-export",
        "quaid export --collection notes --dir ~/notes-export",
        "quaid export --to obsidian --dir ~/vault",
        "quaid export --raw --import-id 019dc505-9b00-7abc-8def-0123456789ab --dir ~/notes-as-imported",
    ),
)
def export(
    brain: Brain,
    dir: Annotated[str, Arg("The folder to create.", path=True)] = "./export",
    raw: Annotated[bool, Arg("Write the original bytes of one import.")] = False,
    import_id: Annotated[str | None, Arg("The import that --raw writes; `quaid imports` lists them.")] = None,
    collection: Annotated[str | None, Arg("Only the pages of this collection.")] = None,
    force: Annotated[
        bool, Arg("Write into a folder that is not empty, replacing files of the same name.")
    ] = False,
    to: Annotated[ExportFormat | None, Arg("Write for another program [markdown].")] = None,
) -> ExportReport:
    """Export all pages to a folder as Markdown or for another program (--to), or the files of one import (--raw).

    Pages of the default collection are written as SLUG.md, those of other collections into a folder of that name;
    with --collection, its pages are written directly into the folder. Links and facts that are in no text are
    written to .quaid/links-and-facts.json, which `quaid import` reads. Quarantined pages are omitted:
    `quaid collection quarantine export` writes them."""
    if import_id is not None and not raw:
        raise errors.InvalidArgument(
            name="import_id", problem="goes with --raw; other exports write what is there now"
        )
    target = brain.settings.path(dir)
    if to is not None and raw:
        raise errors.InvalidArgument(name="to", problem="does not go with --raw, which writes original files")
    if raw:
        if collection is not None:
            raise errors.InvalidArgument(
                name="collection", problem="does not go with --raw, which writes one import"
            )
        return exporter.export_raw(brain.db, import_id, target, force=force, progress=brain.progress)
    return exporter.export_pages(
        brain.db, target, to, force=force, progress=brain.progress, collection=collection
    )


@op("owner", examples=("quaid imports",))
def imports(brain: Brain) -> Named[tuple[ImportBatch, ...]]:
    """List the imports, newest first, with the ids that `export --raw` takes."""
    return Named("imports", tuple(Imports(brain.db).all()), "Nothing was imported yet.")


SAMPLE = "sample"


class SampleRemoveRecord(NamedTuple):
    pages: int
    kept_in: str
    """The sample folder, if it still contains files that are not part of the sample; else ""."""


def sample_pages() -> list[tuple[str, str]]:
    """Return slug and text of each page of the sample. Its people and companies are fictitious."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo_memory.txt")
    with open(path, encoding="utf-8") as file:
        parts = file.read().split("=== ")[1:]
    return [(slug, text) for slug, _, text in (part.partition("\n") for part in parts)]


def _sample_folder(brain: Brain) -> str:
    """Return the folder of the sample, beside the memory: memory-sample for memory.db."""
    return f"{os.path.splitext(os.path.realpath(brain.settings.db_path))[0]}-{SAMPLE}"


@op("owner", command="sample add", examples=("quaid sample add",))
def sample_add(brain: Brain) -> CollectionAddRecord:
    """Add a collection of sample pages to try things with.

    `quaid sample remove` removes it again.
    """
    folder = _sample_folder(brain)
    _check_new_collection(brain, SAMPLE, folder)
    with translate_os_errors(folder):
        for slug, text in sample_pages():
            path = os.path.join(folder, *slug.split("/")) + ".md"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with suppress(FileExistsError), open(path, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    return attach_folder(brain, SAMPLE, folder)


@op("owner", command="sample remove", examples=("quaid sample remove",))
def sample_remove(brain: Brain) -> SampleRemoveRecord:
    """Remove the sample pages, their history and their files. Files that you added to their folder are kept."""
    folder = _sample_folder(brain)
    attached = Collections(brain.db).find(SAMPLE)
    if attached is None or attached.state == "detached" or attached.root != folder:
        raise errors.NotFound(what="collection", name=SAMPLE, hint="`quaid sample add` adds it.")
    removed = collection_remove(brain, SAMPLE, yes=True)
    waiting = [page for page in erasure.quarantined_pages(brain.db) if page.collection == SAMPLE]

    def discard(tx: "Transaction") -> None:
        for page in waiting:
            page.discard(tx)

    brain.db.write(discard)
    with translate_os_errors(folder):
        for slug, _ in sample_pages():
            with suppress(FileNotFoundError):
                os.remove(os.path.join(folder, *slug.split("/")) + ".md")
        for place, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):  # the folder contains other files
                os.rmdir(place)
    return SampleRemoveRecord(removed.removed + removed.kept, folder if os.path.exists(folder) else "")
