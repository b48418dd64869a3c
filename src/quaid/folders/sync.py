"""Update the pages of a collection from its folder: scan it, parse changed files, plan, and write pages.

The module `importer` imports folders with the same base class. No page file is changed. Each transaction of a
sync is valid by itself, so the next sync continues an interrupted one. A page is removed only when its file
is certainly absent or is now ignored. A removed page is kept in quarantine for some time before it is
deleted.
"""

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from quaid.errors import FileTrouble, NotFound, QuaidError
from quaid.folders import atomic_write, indexer, scanner
from quaid.folders.documents import ConversionFailed, DocumentFolder
from quaid.folders.indexer import Spool, SpooledFile
from quaid.folders.scanner import (
    FOLDER_FLAGS,
    LARGEST_FILE,
    MAX_DEPTH,
    PAGE_ENDINGS,
    SKIPPED_FOLDERS,
    FileNote,
    Folder,
    IgnoreCheck,
    Progress,
    page_endings,
)
from quaid.model import dates, slug as slugs, sync_plan
from quaid.model.page import DERIVED, IMPORTED, PERSON, Page
from quaid.model.sync_plan import (
    RACY_NS,
    FilesToRead,
    LastSeenFile,
    ReadFile,
    ScannedFile,
    SkippedEntry,
    SyncPlan,
    copied_path,
)
from quaid.storage import collections, erase as erasure, history, links, page_edits, pages, trust
from quaid.storage.collections import Collection, FileStamp
from quaid.storage.page_edits import NewPage
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.sqlite.errors import write_alone

TOUCHED_PER_TRANSACTION = 1_000
LEFTOVER_AGE_NS = 3_600_000_000_000

INCOMPLETE_REASONS = (scanner.UNREADABLE, scanner.TOO_DEEP, scanner.GONE)
"""If an entry was skipped for one of these reasons, files that were not found may still exist."""

QUARANTINE_NOTE = (
    f"stays in quarantine after {erasure.QUARANTINE_DAYS} days, for it holds what no file has;"
    " `quaid collection quarantine export` writes it out"
)


class FolderRun(ABC):
    """Base class of syncs and imports: one pass over a folder that parses files and writes pages.

    Subclasses find the stored state of a file and the page it belongs to, and decide where its bytes are
    stored.
    """

    folder: Folder

    def __init__(
        self,
        db: Database,
        collection: Collection,
        now: str,
        new_uuid: Callable[[], str],
        progress: Progress,
    ) -> None:
        self.db = db
        self.collection = collection
        self.now = now
        self.new_uuid = new_uuid
        self.progress = progress
        self.spool = Spool(db.path)
        self.counts: Counter[str] = Counter()
        """Number of files by outcome, and of tags, timeline entries and raw-data sources of written pages."""
        self.types: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.notes: list[FileNote] = []
        self.page_ids: list[int] = []
        self.slugs_in_use: set[str] | None = None
        """Slugs of the current batch that are not free; None if they have to be looked up."""

    def note(self, path: str, *texts: str) -> None:
        self.notes += [FileNote(scanner.printable(path), text) for text in texts]

    def note_parsed(self, path: str, notes: tuple[str, ...]) -> None:
        """Report the corrections and problems that the parser found in a file."""
        self.note(path, *notes)

    def fail(self, path: str, problem: str) -> None:
        """Report a file that cannot be indexed. If it has a page already, the page is not changed."""
        # Failures come before other notes.
        self.notes.insert(self.counts["failed"], FileNote(scanner.printable(path), problem))
        self.counts["failed"] += 1

    def count_page(self, page_id: int, page: Page) -> None:
        self.types[page.type] += 1
        self.counts["tags"] += len(page.tags)
        self.counts["timeline_entries"] += len(page.entries)
        self.page_ids.append(page_id)

    def links_extracted(self) -> int:
        """Return the number of links in the content of the written pages."""
        return links.count(self.db, self.page_ids) if self.page_ids else 0

    # Reading

    @abstractmethod
    def unreadable(self, path: str, error: OSError) -> None: ...

    @abstractmethod
    def too_large(self, path: str, problem: str) -> None: ...

    def read(self, file: ScannedFile) -> bytes | None:
        """Return the bytes of a file, or None if the file cannot be used."""
        try:
            data = self.folder.read(file.path)
        except ConversionFailed as error:
            self.fail(file.path, f"not taken in: it {error}")
            return None
        except OSError as error:
            self.unreadable(file.path, error)
            return None
        if len(data) <= LARGEST_FILE:
            return data
        size = max(file.stat.size, len(data))
        self.too_large(file.path, f"too large: {size:,} bytes, and {LARGEST_FILE:,} are allowed; split it")
        return None

    def spool_page(
        self, path: str, content_hash: str, data: bytes, waiting: int
    ) -> tuple[str, str | None, tuple[Page, ...]] | None:
        """Add a page file to the spool (the buffer of files to write), parsed or to be parsed by the helper.

        Return the slug and the id that the file requests and the pages of its headings, or None if parsing
        failed.
        """
        try:
            if not indexer.is_org(path) and self.spool.has_helper(waiting):
                slug, identity = indexer.requested_identity(path, data)
                self.spool.add_unparsed(path, content_hash, data)
                return slug, identity, ()
            page, notes, nodes = indexer.parse_file(path, data)
            self.spool.add(SpooledFile(path, content_hash, data, page, nodes))
            self.note_parsed(path, notes)
            return page.slug, indexer.file_id(page, path), nodes
        except (OSError, QuaidError):
            raise
        except Exception as error:
            self.fail(path, indexer.failure_note(error))
            return None

    # Writing

    def batches(self, chosen: Container[str] | None = None) -> Iterator[list[SpooledFile]]:
        """Yield the spooled files, or those in `chosen`: page files in batches, other files one by one.

        Page files that could not be parsed are reported, not yielded.
        """
        batch: list[SpooledFile] = []
        size = 0
        for done, item in enumerate(self.spool.files()):
            if chosen is not None and item.path not in chosen:
                continue
            self.progress(done, self.spool.count, "Writing")
            self.note_parsed(item.path, item.notes)
            if item.problem:
                self.fail(item.path, item.problem)
                continue
            if item.page is not None:
                batch.append(item)
                size += len(item.data)
                if len(batch) < page_edits.BULK_ROWS and size <= page_edits.BULK_BYTES:
                    continue
            if batch:
                yield batch
                batch, size = [], 0
            if item.page is None:
                yield [item]
        if batch:
            yield batch
        self.progress(self.spool.count, self.spool.count, "Writing")

    def write_pages(self, tx: Transaction, items: list[SpooledFile]) -> None:
        """Create or update the pages of files, in order.

        Pages of successive new files are inserted together.
        """
        together: list[SpooledFile] = []
        self.slugs_in_use = None
        for place, item in enumerate(items):
            if self.is_new(item):
                if self.slugs_in_use is None:
                    requested = {item.path: item.parsed_page.slug for item in items[place:]}
                    self.slugs_in_use = self.collection.taken_slugs(tx, requested)
                if item.parsed_page.slug not in self.slugs_in_use:
                    self.slugs_in_use.add(item.parsed_page.slug)
                    together.append(item)
                    continue
            self._add_pages(tx, together)
            together = []
            if failure := write_alone(tx, partial(self.write_page, tx, item)):
                self.fail(item.path, indexer.failure_note(failure))
        self._add_pages(tx, together)

    @abstractmethod
    def is_new(self, item: SpooledFile) -> bool:
        """Return True if the file gets a new page, provided that its slug is free."""

    @abstractmethod
    def write_page(self, tx: Transaction, item: SpooledFile) -> None:
        """Create or update the page of one file."""

    @abstractmethod
    def keep_new(self, tx: Transaction, items: list[tuple[int, SpooledFile]]) -> None:
        """Store the bytes of new files. Each item is the id of the new page and its file."""

    def _add_pages(self, tx: Transaction, items: list[SpooledFile]) -> None:
        """Insert pages together. If that fails, insert them one by one, so that an error affects only its file."""
        if not items or (failure := write_alone(tx, partial(self._add, tx, items))) is None:
            return
        if len(items) == 1:
            self.fail(items[0].path, indexer.failure_note(failure))
            return
        for item in items:
            self._add_pages(tx, [item])

    def _add(self, tx: Transaction, items: list[SpooledFile]) -> None:
        new = [NewPage(item.parsed_page, self.new_uuid(), item.derived) for item in items]
        ids = page_edits.add_pages(tx, self.collection, new, self.now)
        self.keep_new(tx, list(zip(ids, items, strict=True)))
        for page_id, item in zip(ids, items, strict=True):
            self.count_page(page_id, item.parsed_page)
        self.counts["new"] += len(items)

    def apply_sidecar(
        self,
        tx: Transaction,
        path: str,
        page_id: int,
        before: bytes,
        sources: Mapping[str, Any],
        *,
        force: bool = False,
    ) -> bool:
        """Update the raw data of a page from `sources`, the sources in its sidecar.

        Sources that are only in the previous sidecar (`before`) are removed. Sources that were changed in the
        database are kept, unless `force` is True and the sidecar has them. Return True if something changed.
        """
        try:
            last = indexer.parse_sidecar(before)
        except ValueError:
            last = {}
        present = {row.source: row.data for row in pages.read_raw_data(self.db, page_id)}
        changed: dict[str, Any] = {}
        gone: list[str] = []
        for source in sorted({*sources, *last}):
            if (source in sources) == (source in present) and sources.get(source) == present.get(source):
                continue
            changed_here = source in present and (source not in last or last[source] != present[source])
            if changed_here and not (force and source in sources):
                self.note(path, f"what {source} says was changed here; left as it is")
                continue
            if source in sources:
                changed[source] = sources[source]
            else:
                gone.append(source)
        pages.write_raw_data(tx, page_id, changed, self.now, gone)
        self.counts["raw_data"] += len(changed)
        return bool(changed or gone)


class SyncReport(NamedTuple):
    collection: str
    root: str
    files: int
    unchanged: int
    new: int
    changed: int
    moved: int
    removed: int
    waiting: int
    """Number of missing or ignored files whose pages are kept until the user confirms the removal.

    If the folder could not be read, the number of all its indexed files.
    """
    halted: str
    """Why the removal needs confirmation, or why the folder could not be read; "" if the sync finished."""
    types: dict[str, int]
    """Number of written pages by type."""
    left_out: dict[str, int]
    notes: tuple[FileNote, ...]
    hidden: int = 0
    """Number of files that the ignore rules now exclude; their pages were moved to quarantine."""
    discarded: int = 0
    """Number of pages deleted because their quarantine has expired."""
    failed: int = 0
    """Number of files that could not be indexed; the notes name them."""
    raw_data: int = 0
    """Number of sources in sidecars that are new or changed."""
    tags: int = 0
    timeline_entries: int = 0
    links_extracted: int = 0
    """Number of links in the written pages."""

    @property
    def exit_status(self) -> int:
        return 1 if self.halted else 0


def sync_collection(
    db: Database,
    collection: Collection,
    *,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
    confirm_deletes: bool = False,
    confirm_ignored: bool = False,
    retry: bool = False,
    only: Iterable[str] | None = None,
    authored: bool = False,
) -> SyncReport:
    """Update the index from the folder, or only from its files with the paths in `only`.

    `confirm_deletes` allows the removal of many pages. `confirm_ignored` allows it only for pages whose files are
    ignored. With `retry`, unchanged files that could not be indexed before are read again. `authored` means that the
    caller has just written the files, and is recorded as the author of the new versions.
    """
    run = SyncRun(
        *(db, collection, now, new_uuid, progress),
        may_remove_many=confirm_deletes,
        may_hide_many=confirm_deletes or confirm_ignored,
        authored=authored,
    )
    try:
        with open_folder(collection) as run.folder, run.spool:
            return run.run(None if only is None else sorted(set(only)), retry)
    except (NotFound, FileTrouble) as trouble:
        if trouble.facts.get("path") == db.path:
            raise  # the error concerns the database, not the folder
        return run.halt(str(trouble).rstrip("."), collection.count_files(db))


def open_folder(collection: Collection) -> Folder:
    """Open the folder of a collection."""
    opened = DocumentFolder if collection.kind == "documents" else Folder
    return opened(collection.root or "", page_endings(collection.kind))


class SyncRun(FolderRun):
    def __init__(
        self,
        db: Database,
        collection: Collection,
        now: str,
        new_uuid: Callable[[], str],
        progress: Progress,
        *,
        may_remove_many: bool,
        may_hide_many: bool,
        authored: bool,
    ) -> None:
        super().__init__(db, collection, now, new_uuid, progress)
        self.batch = f"sync-{new_uuid()}"
        self.may_remove_many, self.may_hide_many = may_remove_many, may_hide_many
        self.authored = authored
        self.ignored: scanner.IgnoreCheck = scanner.ignore_nothing
        self.files: list[ScannedFile] = []
        self.sidecars: list[str] = []
        self.leftovers: list[str] = []
        """Paths of temporary files that a killed process may have left."""
        self.is_complete = True
        """False if a part of the folder could not be read, so that a file not found may still exist."""
        self.skip_notes: list[FileNote] = []
        self.opened: dict[str, tuple[ScannedFile, LastSeenFile | None]] = {}
        """Files to read and their index entries, by path. A moved file gets the entry of its old path."""
        self.reads: dict[str, ReadFile] = {}
        self.failures: dict[str, str] = {}
        """Problems of files that could not be indexed, by path."""
        self.problems: dict[str, str] = {}
        """Problems of files that were indexed nevertheless, by path."""
        self.vacated: dict[int, str] = {}
        """Old slugs of pages that were moved to a temporary slug in this batch, by page id."""
        self.renamed: set[str] = set()
        """Paths of files to read again, because their pages still have a slug in the form of an earlier release."""
        self.made: set[str] = set()
        """Paths of files that got a new page or were moved to another path in this sync."""
        self.headings: dict[str, set[str]] = {}
        """Ids of the headings in each org file read in this sync, by path.

        The set is empty for a missing file.
        """

    def run(self, only: list[str] | None, retry: bool) -> SyncReport:
        self.ignored = scanner.ignore_matcher(self._ignore_patterns(), self.collection.kind)
        self._scan(only)
        keys = None if only is None else {sync_plan.path_key(path).casefold() for path in only}
        last_seen = self.collection.known_files(self.db, keys)
        if only is None:
            self.renamed = self._files_with_escaped_slugs()
        self.counts["unchanged"], to_read, missing = sync_plan.classify_files(
            self.files, last_seen, retry=retry, again=self.renamed
        )
        reads = self._read_files(to_read)
        away = self.collection.quarantined_files(self.db) if reads else []
        plan = sync_plan.plan_sync(reads, [*last_seen, *away], [*missing, *away])
        self._apply(plan)
        self._take_sidecars(only)
        self._clear_leftovers()
        gone = [old for old in plan.gone if old.stat.size >= 0]  # files of quarantined pages have size -1
        return self._remove(gone, len(last_seen), whole=only is None)

    def _files_with_escaped_slugs(self) -> set[str]:
        """Return the paths of files whose pages have slugs with code points in place of non-ASCII letters."""
        return {
            path
            for path, slug in self.collection.non_ascii_files(self.db)
            if slugs.may_be_escaped(slug)
            and slug == slugs.escaped_from_path(path)
            and slug != slugs.from_path(path)
        }

    def halt(self, reason: str, waiting: int) -> SyncReport:
        """Record on the collection why its sync needs attention, and return the report."""
        self.db.write(lambda tx: self.collection.record_sync(tx, self.now, halted=reason))
        return self._report(reason, waiting)

    def note_parsed(self, path: str, notes: tuple[str, ...]) -> None:
        """Report notes about a file, and that it is a conflict copy if its name says so.

        All notes except those on unknown page types are also recorded in the index.
        """
        original = copied_path(path)
        if original is not None and path not in self.problems:
            name = original.rpartition("/")[2]
            notes = (*notes, f"conflict copy of {name}; `quaid collection conflicts --merge` merges it")
        self.note(path, *notes)
        if problems := [text for text in notes if not text.startswith("type ")]:
            self.problems[path] = "; ".join(problems)

    def fail(self, path: str, problem: str) -> None:
        super().fail(path, problem)
        self.failures[path] = problem

    # Scanning

    def _ignore_patterns(self) -> str:
        try:
            data: bytes | None = self.folder.read(scanner.IGNORE_FILE)
        except FileNotFoundError:
            data = None
        except OSError:
            data = b"\0"  # NUL makes the rules invalid, so that the last valid rules stay in force
        patterns, problem = scanner.parse_rules(data, self.collection.ignore_patterns)
        if (patterns, problem) != (self.collection.ignore_patterns, self.collection.ignore_problem):
            columns = {"ignore_patterns": patterns, "ignore_problem": problem}
            self.db.write(lambda tx: self.collection.update(tx, **columns))
        if problem:
            self.note(scanner.IGNORE_FILE, f"{problem}; the last good set is in force")
        return patterns

    def _scan(self, only: list[str] | None) -> None:
        """Walk the folder, or look up only the paths in `only`, and sort the entries by kind."""
        entries: Iterable[ScannedFile | SkippedEntry | None] = (
            self.folder.walk(self.ignored)
            if only is None
            else [
                self.folder.look(path)
                for path in only
                if scanner.is_visible(path) and not scanner.is_ignored(self.ignored, path)
            ]
        )
        for entry in entries:
            if isinstance(entry, ScannedFile):
                if entry.kind == "sidecar":
                    self.sidecars.append(entry.path)
                else:
                    self.files.append(entry)
            elif entry is not None:
                self.left_out[entry.reason] += 1
                self.is_complete = self.is_complete and entry.reason not in INCOMPLETE_REASONS
                if entry.reason == scanner.HIDDEN_FILE and atomic_write.is_leftover(entry.path):
                    self.leftovers.append(entry.path)
                if entry.reason in (*INCOMPLETE_REASONS, scanner.SYMLINK, scanner.BAD_NAME):
                    self.skip_notes.append(FileNote(entry.path, entry.reason))

    def _read_files(self, files: FilesToRead) -> list[ReadFile]:
        """Read the files that may have changed. Parse those that did change and add them to the spool."""
        reads: list[ReadFile] = []
        self.opened = {file.path: (file, old) for file, old in files}
        for done, (file, old) in enumerate(files):
            self.progress(done, len(files), "Reading")
            data = self.read(file)
            if data is None:
                continue
            content_hash = indexer.digest(data)
            is_known = old and old.content_hash == content_hash and old.page_id and old.path == file.path
            if old and is_known and file.path not in self.renamed:
                reads.append(ReadFile(file, old, content_hash, old.page_uuid))
                continue
            if parsed := self.spool_page(file.path, content_hash, data, len(files) - done):
                _, page_uuid, nodes = parsed
                reads.append(ReadFile(file, old, content_hash, page_uuid))
                if indexer.is_org(file.path):
                    self.headings[file.path] = {str(node.frontmatter["id"]) for node in nodes}
        if files:
            self.progress(len(files), len(files), "Reading")
        return reads

    def unreadable(self, path: str, error: OSError) -> None:
        self.is_complete = False
        if isinstance(error, PermissionError):
            self.fail(path, f"cannot be read: {error.strerror}")
            return
        self.left_out[scanner.UNREADABLE] += 1
        self.note(path, scanner.UNREADABLE)

    def too_large(self, path: str, problem: str) -> None:
        self.fail(path, problem)

    # Writing

    def _apply(self, plan: SyncPlan) -> None:
        """Create or update the pages of the files that were read. The parsed files are in the spool."""
        for start in range(0, len(plan.touched), TOUCHED_PER_TRANSACTION):
            self.db.write(partial(self._touch, plan.touched[start : start + TOUCHED_PER_TRANSACTION]))
        self.counts["unchanged"] += len(plan.touched)
        if not self.spool.count:
            return
        self.headings.update({old.path: set() for old in plan.gone})
        self.reads = {read.file.path: read for read in (*plan.new, *plan.changed)}
        self.reads.update({read.file.path: read for _, read in plan.moved})
        self.opened.update({read.file.path: (read.file, None) for read in plan.new})
        self.opened.update({read.file.path: (read.file, old) for old, read in plan.moved})
        moved = {read.file.path for _, read in plan.moved}
        # Pages of moved files are written first. This frees their old slugs for other files. A quarantined page
        # whose file has reappeared is restored before another file of the same name can take its slug.
        for paths in (moved, self.reads.keys() - moved):
            for batch in self.batches(paths) if paths else ():
                self.db.write(partial(self._write_batch, batch))

    def _touch(self, reads: list[ReadFile], tx: Transaction) -> None:
        for file, old, content_hash, _ in reads:
            # Skip a file that another process has indexed since the walk.
            if old is not None and self._is_unchanged(tx, old):
                row = (file, content_hash, old.page_id, None)
                self.collection.record_files(tx, [row], self.now)

    def _write_batch(self, items: list[SpooledFile], tx: Transaction) -> None:
        self._make_way(tx, items)
        # A file has its own trust class (see _class), even if an agent started the sync. If the caller has just
        # written the files, the caller's class is used.
        for own in sorted({self._class(item) for item in items}):
            with trust.written_as(tx, PERSON, at_most=True) if self.authored else trust.written_as(tx, own):
                self.write_pages(tx, [item for item in items if self._class(item) == own])
        for page_id, slug in self.vacated.items():
            # A page that could not be written still has its temporary slug.
            if page_edits.is_vacated_slug(pages.slug_of(tx, page_id) or "", page_id):
                taken = self.collection.slugs_beginning(tx, slug)
                back = indexer.suffixed_slug(slug, str(page_id), taken) if slug in taken else slug
                page_edits.change_slug(tx, self.collection.id, page_id, slug, back, self.now, redirect=False)

    def _class(self, item: SpooledFile) -> int:
        """Return the trust class of a file. A node of the knowledge base contains the name of its author."""
        if self.collection.kind == "documents":
            return IMPORTED
        creator = item.parsed_page.frontmatter.get("created_by") if self.collection.kind == "kb" else None
        return PERSON if creator in (None, "human") else DERIVED

    def _make_way(self, tx: Transaction, items: list[SpooledFile]) -> None:
        """Free slugs that known files request if other pages of this batch, or quarantined pages, have them."""
        self.vacated = {}
        moving = {old.page_id for _, old in (self.opened[item.path] for item in items) if old and old.page_id}
        for item in items:
            _, old = self.opened[item.path]
            slug = item.parsed_page.slug
            holder = self.collection.slug_holder(tx, slug) if old else None
            if holder is None or old is None or holder.page_id == old.page_id:
                continue
            if holder.page_id in moving and holder.page_id not in self.vacated:
                self.vacated[holder.page_id] = slug
                page_edits.vacate_slug(tx, holder.page_id)
            elif holder.is_hidden:
                page_edits.vacate_slug(tx, holder.page_id)

    def is_new(self, item: SpooledFile) -> bool:
        has_id = self.reads[item.path].page_uuid is not None
        return self.opened[item.path][1] is None and not has_id and not indexer.is_org(item.path)

    def keep_new(self, tx: Transaction, items: list[tuple[int, SpooledFile]]) -> None:
        self._record(tx, [(page_id, 1, item) for page_id, item in items])
        self.made.update(item.path for _, item in items)

    def _record(
        self, tx: Transaction, items: list[tuple[int, int, SpooledFile]], *, trim: bool = False
    ) -> None:
        """Store the bytes of files, each with its page and its version, and record the files in the index."""
        versions = [
            (page_id, version, item.path, item.data, item.content_hash) for page_id, version, item in items
        ]
        history.keep_versions(tx, self.collection.id, versions, self.now, self.batch, trim=trim)
        for page_id, version, _ in items if self.authored else ():
            history.record_author(tx, page_id, version)
        files = [
            (self.reads[item.path].file, item.content_hash, page_id, self.problems.get(item.path))
            for page_id, _, item in items
        ]
        self.collection.record_files(tx, files, self.now)

    def write_page(self, tx: Transaction, item: SpooledFile) -> None:
        """Create or update the page of one file, unless another process has indexed the file meanwhile."""
        self.slugs_in_use = None  # invalidate the cache, because this write may change slugs
        read, old = self.reads[item.path], self.opened[item.path][1]
        if self._is_overtaken(tx, read):
            return
        page_id = old.page_id if old else None
        page = self._with_free_slug(tx, item.parsed_page, item.path, page_id)
        if old is not None and old.path != item.path:
            self.collection.forget_files(tx, old.path, old.page_id)
        uuid = read.page_uuid
        if uuid is None or not _is_free_uuid(tx, uuid):
            uuid = self.new_uuid()
        old_slug = self.vacated.get(page_id or 0)
        saved = page_edits.save_with_slug(
            tx, self.collection, page, page_id, uuid=uuid, now=self.now, left=old_slug
        )
        if not saved.changed and old is not None and old.content_hash != read.content_hash:
            # Different bytes with the same content (a comment, line endings) also become a version, so that
            # the bytes can be restored.
            _, version = page_edits.touch(
                tx, page.slug, expected_version=None, now=self.now, collection=self.collection.name
            )
            saved = saved._replace(version=version)
        self._record(tx, [(saved.id, saved.version, item)], trim=not saved.created)
        if indexer.is_org(item.path):
            self.notes += update_heading_pages(
                tx,
                self.collection,
                saved.id,
                page.slug,
                item.path,
                item.nodes,
                self.now,
                self.batch,
                self.headings,
                self.count_page,
            )
        self.count_page(saved.id, page)
        outcome = "new" if old is None else "moved" if old.path != item.path else "changed"
        self.counts[outcome] += 1
        if outcome != "changed":
            self.made.add(item.path)

    def _is_unchanged(self, tx: Transaction, seen: LastSeenFile) -> bool:
        """Return True if the index entry of a file still has the content hash and the page of `seen`."""
        indexed = self.collection.indexed_file(tx, seen.path)
        return indexed is not None and indexed[:2] == (seen.content_hash, seen.page_id)

    def _is_overtaken(self, tx: Transaction, read: ReadFile) -> bool:
        """Return True if another process has indexed this file since it was read.

        In that case the next sync handles the file.
        """
        indexed = self.collection.indexed_file(tx, read.file.path)
        expected = read.old.content_hash if read.old is not None and read.old.path == read.file.path else None
        return indexed is not None and indexed.content_hash not in ("", expected)

    def _with_free_slug(self, tx: Transaction, page: Page, path: str, page_id: int | None) -> Page:
        """Return the page under the requested slug if the page may have it, else under one made from the path."""
        holder = self.collection.slug_holder(tx, page.slug)
        if holder is None or holder.page_id == page_id or (holder.is_hidden and page_id is None):
            return page
        by_path = slugs.from_path(path)
        before = pages.slug_of(tx, page_id)
        if before is not None and before.startswith(by_path):
            return indexer.with_slug(page, before)  # the page already has a slug from its path
        taken = self.collection.slugs_beginning(tx, by_path)
        address = by_path if by_path not in taken else indexer.suffixed_slug(by_path, path, taken)
        self.note(path, f"another file has the slug {page.slug}; this one is {address}")
        return indexer.with_slug(page, address)

    # Sidecars

    def _take_sidecars(self, only: list[str] | None) -> None:
        """Apply sidecars (JSON files with raw data of pages) that changed or whose page is new or moved."""
        fresh = {indexer.sidecar_path(indexer.page_stem(path)) for path in self.made}
        paths = [*filter(indexer.is_sidecar, only), *fresh] if only is not None else self.sidecars
        for path in sorted(set(paths)):
            if not scanner.is_ignored(self.ignored, path):
                self._take_sidecar(path, path in fresh)

    def _take_sidecar(self, path: str, is_fresh: bool) -> None:
        try:
            data = self.folder.read(path)
            before = self.collection.sidecar_bytes(self.db, path)
            if data == before and not is_fresh:
                return
            if len(data) > LARGEST_FILE:
                raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
            sources = indexer.parse_sidecar(data)
        except FileNotFoundError:
            return  # raw data of a removed sidecar is kept
        except OSError:
            self.note(path, scanner.UNREADABLE)
            return
        except ValueError as error:
            self.note(path, f"its raw data was left out: {error}")
            return

        stem = indexer.sidecar_page_stem(path)

        def work(tx: Transaction) -> None:
            files = [self.collection.indexed_file(tx, stem + ending) for ending in PAGE_ENDINGS]
            page_id, slug = next(
                ((file.page_id, file.slug) for file in files if file and file.page_id), (None, None)
            )
            if page_id is None or slug is None:
                self.note(path, f"there is no page {stem} for it")
                return
            if self.apply_sidecar(tx, path, page_id, before or indexer.EMPTY_SIDECAR, sources):
                page_edits.touch(
                    tx, slug, expected_version=None, now=self.now, collection=self.collection.name
                )
            self.collection.keep_sidecar(tx, path, data, self.now, self.batch)

        self.db.write(work)

    # Removing

    def _clear_leftovers(self) -> None:
        """In a writable collection, remove temporary files that interrupted writes left more than an hour ago.

        Report those that are kept.
        """
        now = collections.timestamp_nanoseconds(self.now)
        old = [path for path in self.leftovers if self._age_ns(path, now) > LEFTOVER_AGE_NS]

        def work(_tx: Transaction) -> None:
            notes = [atomic_write.settle_leftover(self.folder, path) for path in old]
            self.notes += [note for note in notes if note]

        if old and self.collection.writable:
            # Files are written only under the writer lock, so no process uses these files while we hold the
            # lock.
            self.db.write(work)

    def _age_ns(self, path: str, now_ns: int) -> int:
        try:
            facts = self.folder.stat(path)
        except OSError:
            return 0
        return now_ns - max(facts.st_ctime_ns, facts.st_mtime_ns)

    def _remove(self, gone: list[LastSeenFile], indexed_files: int, *, whole: bool) -> SyncReport:
        hidden: list[LastSeenFile] = []
        missing: list[LastSeenFile] = []
        for old in gone:
            (hidden if scanner.is_ignored(self.ignored, old.path) else missing).append(old)
        total = indexed_files if whole else self.collection.count_files(self.db)
        files = len(self.files) if whole else total
        cannot_hide = sync_plan.hiding_obstacle(len(hidden), total, confirmed=self.may_hide_many)
        obstacle = sync_plan.removal_obstacle(
            len(missing),
            total,
            files + len(hidden),
            complete=self.is_complete,
            confirmed=self.may_remove_many,
        )
        if missing and not obstacle and not self.may_remove_many:
            before = self.collection.last_root_identity(self.db)
            if before not in (None, str(self.folder.identity)):
                obstacle = "the folder is another one than before"
        looks = [(old, self.folder.look(old.path)) for old in missing if not obstacle]
        links = [
            look.path
            for _, look in looks
            if isinstance(look, SkippedEntry) and look.reason == scanner.SYMLINK
        ]
        if links and not self.may_remove_many:
            obstacle = f"{links[0]} is a link now, and links are not followed"
        going = [
            old
            for old, look in looks
            if not obstacle and (look is None or getattr(look, "path", "") in links)
        ]
        away = [] if cannot_hide else hidden
        self.counts.update(removed=len(going), hidden=len(away))
        reason = obstacle or cannot_hide
        self.db.write(lambda tx: self._finish(tx, going + away, whole and not reason))
        if not reason:
            return self._report("", 0)
        return self.halt(reason, (len(missing) if obstacle else 0) + (len(hidden) if cannot_hide else 0))

    def _finish(self, tx: Transaction, gone: list[LastSeenFile], whole: bool) -> None:
        for path, problem in self.failures.items():
            file, old = self.opened[path]
            page_id = old.page_id if old and old.path == path else None
            row = (file, collections.NOT_INDEXED, page_id, problem)
            self.collection.record_files(tx, [row], self.now)
        for old in gone:
            if not self._is_unchanged(tx, old):
                continue  # another process has indexed the file since the walk
            self.collection.forget_files(tx, old.path)
            if old.page_id is not None:
                erasure.quarantine_page(tx, old.page_id, self.now)
        if whole:
            self._discard_expired(tx)
            self.collection.record_sync(tx, self.now, root_identity=str(self.folder.identity))

    def _discard_expired(self, tx: Transaction) -> None:
        """Delete pages whose quarantine has expired, except pages with data that exists nowhere else."""
        before = dates.shift_date(self.now[:10], -erasure.QUARANTINE_DAYS)
        for page in erasure.quarantined_pages(tx, self.collection.id, before=before):
            if page.is_safe:
                page.discard(tx)
                self.counts["discarded"] += 1
            else:
                self.note(page.slug, QUARANTINE_NOTE)

    def _report(self, halted: str, waiting: int) -> SyncReport:
        counted = ("unchanged", "new", "changed", "moved", "removed", "hidden", "discarded", "failed")
        return SyncReport(
            collection=self.collection.name,
            root=self.collection.root or "",
            files=len(self.files),
            waiting=waiting,
            halted=halted,
            types=dict(self.types.most_common()),
            left_out=dict(self.left_out),
            notes=(*self.notes, *self.skip_notes),
            links_extracted=self.links_extracted(),
            **{name: self.counts[name] for name in (*counted, "raw_data", "tags", "timeline_entries")},
        )


# Headings of org files


def update_heading_pages(
    tx: Transaction,
    collection: Collection,
    file_page: int,
    file_slug: str,
    path: str,
    nodes: Iterable[Page],
    now: str,
    token: str,
    headings: Mapping[str, set[str]] | None = None,
    wrote: Callable[[int, Page], None] | None = None,
) -> list[FileNote]:
    """Create or update the pages of an org file's headings, given as `nodes`. Return notes for the user.

    If two files have a heading with the same id, the file that is read last gets the page, because a heading
    that is being moved is in both files for a time. `headings` has the ids of the headings that other files are
    known to have now, by path. `wrote` is called for each written page. `token` must be unique, because ids of new
    pages are derived from it. Pages of headings that are no longer in the file are moved to quarantine.
    """
    from uuid import NAMESPACE_URL, uuid5

    seen_ids: set[int] = set()
    notes: list[FileNote] = []
    for node in nodes:
        named = str(node.frontmatter["id"])
        page_id, other = collection.page_of_heading(tx, named, file_page)
        if other is not None and named in (headings or {}).get(other, {named}):
            notes.append(
                FileNote(path, f"the id {named} of {node.title!r} is that of a heading in {other} too")
            )
        page = _heading_page_with_slug(tx, collection, file_slug, node, page_id, named)
        uuid = named if _is_free_uuid(tx, named) else str(uuid5(NAMESPACE_URL, f"{token}/{named}"))
        saved = page_edits.save_with_slug(tx, collection, page, page_id, uuid=uuid, now=now)
        collection.record_heading(tx, saved.id, file_page, named)
        seen_ids.add(saved.id)
        if wrote:
            wrote(saved.id, node)
    erasure.quarantine_page(tx, file_page, now, keep={file_page, *seen_ids})
    return notes


def _heading_page_with_slug(
    tx: Transaction, collection: Collection, file_slug: str, node: Page, page_id: int | None, named: str
) -> Page:
    """Return the page under a slug below its file's slug, with a suffix if another visible page has that slug."""
    address = slugs.from_path(f"{file_slug}/{slugs.segment(node.title)}")
    holder = collection.slug_holder(tx, address)
    if holder is not None and holder.page_id != page_id:
        if holder.is_hidden:
            page_edits.vacate_slug(tx, holder.page_id)  # the hidden page gets a new slug when it is restored
        else:
            taken = collection.slugs_beginning(tx, address)
            before = pages.slug_of(tx, page_id)
            address = indexer.suffixed_slug(address, named, taken - {before or ""})
    return indexer.with_slug(node, address)


def _is_free_uuid(tx: Transaction, text: str) -> bool:
    """Return True if `text` looks like a UUID and no page has it."""
    return indexer.looks_like_uuid(text) and not pages.slug_of(tx, text)


# Changed files


class FileStatCache:
    """A cache of the stat data that the index has for the files of one collection.

    The cache is loaded again after a write to the database, and when it is used for a different collection.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._of: tuple[tuple[int, int], int] | None = None
        self._stamps: dict[str, FileStamp] = {}

    def stamps(self, collection: Collection) -> dict[str, FileStamp]:
        present = (self._db.change_stamp(), collection.id)
        if present != self._of:
            self._stamps = collection.settled_files(self._db, RACY_NS)
            self._of = present
        return dict(self._stamps)


def changed_paths(seen: FileStatCache, collection: Collection) -> list[str]:
    """Return the paths of new, removed and changed files, judged by stat; [] if the folder is unavailable."""
    last_seen = seen.stamps(collection)
    new_paths: list[str] = []
    try:
        with Folder(collection.root or "") as folder:
            ignored = scanner.ignore_matcher(collection.ignore_patterns, collection.kind)
            endings = page_endings(collection.kind)
            _scan_folder(
                folder.enter(""),
                "",
                last_seen,
                lambda path: not path.lower().endswith(endings) or scanner.is_ignored(ignored, path),
                new_paths,
            )
    except (NotFound, FileTrouble):
        return []
    return sorted([*new_paths, *last_seen])


def _scan_folder(
    handle: int, prefix: str, last_seen: dict[str, FileStamp], passed_over: IgnoreCheck, new_paths: list[str]
) -> None:
    """Delete unchanged files from `last_seen` and append new files to `new_paths`; changed and missing files stay."""
    folders = []
    try:
        with os.scandir(handle) as listing:
            for entry in listing:
                name = entry.name
                path = prefix + name
                expected = last_seen.get(path)
                if expected is not None:
                    stat = entry.stat(follow_symlinks=False)
                    if (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino) == expected:
                        del last_seen[path]
                elif name[0] == "." or name in SKIPPED_FOLDERS or entry.is_symlink():
                    continue
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif not passed_over(path):
                    new_paths.append(path)
    except OSError:
        return  # files of this folder stay in `last_seen`, so they are returned as changed
    for name in folders if prefix.count("/") < MAX_DEPTH else ():
        try:
            below = os.open(name, FOLDER_FLAGS, dir_fd=handle)
        except OSError:
            continue
        try:
            _scan_folder(below, f"{prefix}{name}/", last_seen, passed_over, new_paths)
        finally:
            os.close(below)
