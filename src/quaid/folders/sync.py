"""Sync the index with a folder: walk it, read changed files, plan, and write pages in small transactions.

Nothing in the folder changes. Each transaction is valid by itself, so an interrupted sync is continued by the next
one. A page is removed only when its file is certainly absent, and then it only moves to quarantine.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from quaid.errors import FileTrouble, NotFound, QuaidError
from quaid.folders import atomic_write, ignore, indexer, page_writer, scanner
from quaid.folders.atomic_write import settle_leftover
from quaid.folders.indexer import Spool, SpooledFile, parse_sidecar
from quaid.folders.scanner import LARGEST_FILE, FileNote, Folder, FoundFile, Progress, SkippedEntry
from quaid.model import dates, slug as slugs, sync_plan
from quaid.model.page import Page
from quaid.model.sync_plan import (
    FileSignature,
    FileToRead,
    LastSeenFile,
    ReadFile,
    ScannedFile,
    SortedFiles,
    SyncPlan,
)
from quaid.storage import collections, erase as erasure, history, links, page_edits, pages
from quaid.storage.collections import Collection
from quaid.storage.page_edits import NewPage
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.sqlite.errors import is_row_error


class WriteCounts:
    """Totals over the pages that an import or a sync has written."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.tags = self.timeline_entries = 0
        self.page_ids: list[int] = []

    def add(self, page_id: int, page: "Page") -> None:
        self.types[page.type] += 1
        self.tags += len(page.tags)
        self.timeline_entries += len(page.entries)
        self.page_ids.append(page_id)

    def copy(self) -> "WriteCounts":
        same = WriteCounts()
        same.types, same.page_ids = self.types.copy(), self.page_ids[:]
        same.tags, same.timeline_entries = self.tags, self.timeline_entries
        return same


FILES_PER_TRANSACTION = 100
"""Files written in one transaction, which takes a fraction of a second."""
PendingFiles = dict[str, tuple[LastSeenFile | None, ReadFile]]


class _FileFailed(Exception):
    """A file whose page could not be written; the rest of its batch is retried without it."""

    def __init__(self, item: SpooledFile, cause: Exception) -> None:
        self.item = item
        self.cause = cause


class SyncWriter:
    def __init__(
        self, db: Database, collection: Collection, now: str, new_uuid: Callable[[], str], progress: Progress
    ) -> None:
        self.db = db
        self.collection = collection
        self.now = now
        self.new_uuid = new_uuid
        self.progress = progress
        self.batch = f"sync-{new_uuid()}"
        self.counts: Counter[str] = Counter()
        self.written = WriteCounts()
        self.notes: list[FileNote] = []
        self.problems: dict[str, str] = {}
        """Problems of files that still make a page, by path."""
        self.left: dict[int, str] = {}
        """Old slugs of pages that were moved to a temporary slug in this batch, by page id."""
        self.made: set[str] = set()
        """Paths of files that got a new page or were moved to another path in this sync."""
        self.headings: dict[str, set[str]] = {}
        """Ids of the headings in each file read in this sync, by path. The set is empty for a missing file."""

    def note(self, path: str, notes: tuple[str, ...]) -> None:
        """Record notes about a file for the report. All except unknown page types are also stored with the file."""
        self.notes += [FileNote(path, each) for each in notes]
        unread = [each for each in notes if not each.startswith("type ")]
        if unread:
            self.problems[path] = "; ".join(unread)

    def fail(self, file: ScannedFile, old: LastSeenFile | None, problem: str) -> None:
        """Report a file that cannot be indexed and store the problem. A page that it already has stays as it is."""
        self.notes.insert(
            self.counts["failed"], FileNote(file.path, problem)
        )  # failures come before other notes
        self.counts["failed"] += 1
        page = old.page_id if old and old.path == file.path else None
        self.db.write(
            lambda tx: collections.record_file(
                tx, self.collection.id, file, collections.NOT_INDEXED, page, self.now, problem
            )
        )

    def run(self, spool: Spool, plan: SyncPlan) -> None:
        """Apply the plan to the files that were read. The spool holds their contents."""
        for start in range(0, len(plan.touched), 10 * FILES_PER_TRANSACTION):
            self._touch(plan, start, start + 10 * FILES_PER_TRANSACTION)
        self.counts["unchanged"] += len(plan.touched)
        if not spool.count:
            return
        self.headings.update({each.path: set() for each in plan.gone})
        todo: PendingFiles = {each.file.path: (None, each) for each in plan.new}
        todo.update({each.read.file.path: (each.old, each.read) for each in plan.changed})
        todo.update({each.read.file.path: (each.old, each.read) for each in plan.moved})
        moved = {each.read.file.path for each in plan.moved}
        done = 0
        # Pages that follow a moved file go first: they free slugs that other files may claim, and a quarantined page
        # that comes back must not be assigned to another file of the same name.
        for turn in (True, False) if moved else (False,):
            waiting: list[SpooledFile] = []
            for item in spool.each():
                if (item.path in moved) is turn:
                    self.note(item.path, item.notes)
                    waiting += self._good([item], todo)
                if len(waiting) == FILES_PER_TRANSACTION:
                    done += self._write(waiting, todo)
                    waiting = []
                    self.progress(done, spool.count, "Writing")
            done += self._write(waiting, todo)
            self.progress(done, spool.count, "Writing")

    def _touch(self, plan: SyncPlan, first: int, last: int) -> None:
        def work(tx: Transaction) -> None:
            for old, read in plan.touched[first:last]:
                if not collections.is_file_unchanged(tx, self.collection.id, old):
                    continue  # changed by another process since the walk
                collections.record_file(
                    tx, self.collection.id, read.file, read.content_hash, old.page_id, self.now
                )

        self.db.write(work)

    def _good(self, items: list[SpooledFile], todo: PendingFiles) -> list[SpooledFile]:
        """Return the files that make pages, and report the others as failed."""
        for item in items:
            if item.problem and item.path in todo:
                old, read = todo[item.path]
                self.fail(read.file, old, item.problem)
        return [item for item in items if not item.problem]

    def _write(self, waiting: list[SpooledFile], todo: PendingFiles) -> int:
        items = [item for item in waiting if item.path in todo]
        one_by_one = False
        while items:
            counts, written, notes = self.counts.copy(), self.written.copy(), len(self.notes)
            try:
                self.db.write(partial(self._take_batch, items, todo, one_by_one))
                break
            except Exception as error:
                if not isinstance(error, _FileFailed) and not is_row_error(error):
                    raise
                self.counts.clear()
                self.counts.update(counts)
                self.written = written
                del self.notes[notes:]
                if isinstance(error, _FileFailed):
                    problem = indexer.failure_note(error.cause)
                    items.remove(error.item)
                    self._good([error.item._replace(problem=problem)], todo)
                one_by_one = True
        return len(waiting)

    def _take_batch(
        self, items: list[SpooledFile], todo: PendingFiles, one_by_one: bool, tx: Transaction
    ) -> None:
        self._make_way(tx, items, todo)
        if not one_by_one:
            self._take_all(tx, items, todo)
            return
        for item in items:
            try:
                self._take_all(tx, [item], todo)
            except Exception as error:
                if not is_row_error(error):
                    raise
                raise _FileFailed(item, error) from error

    def _make_way(self, tx: Transaction, items: list[SpooledFile], todo: PendingFiles) -> None:
        """Free the slugs of pages that move in this batch, because another of them may claim one, as in a swap."""
        moving = {old.page_id for old, _ in (todo[item.path] for item in items) if old and old.page_id}
        self.left = {}
        for item in items:
            old, _ = todo[item.path]
            assert item.page is not None
            holder = pages.slug_holder(tx, self.collection.id, item.page.slug) if old else None
            if holder is None or old is None or holder.page_id == old.page_id:
                continue
            if holder.page_id in moving and holder.page_id not in self.left:
                self.left[holder.page_id] = item.page.slug
                page_edits.vacate_slug(tx, holder.page_id)
            elif holder.is_hidden:
                page_edits.vacate_slug(tx, holder.page_id)

    def _take_all(self, tx: Transaction, items: list[SpooledFile], todo: PendingFiles) -> None:
        """Write files to their pages in order. Insert runs of new files without slug conflicts together."""
        together: list[SpooledFile] = []
        not_free: tuple[set[str], set[str]] | None = None
        for place, item in enumerate(items):
            old, read = todo[item.path]
            assert item.page is not None
            if old is None and read.page_uuid is None and not indexer.is_org(item.path):
                not_free = not_free or self._not_free(tx, items[place:])
                taken, seen = not_free
                if item.page.slug not in taken and item.path not in seen:
                    taken.add(item.page.slug)
                    together.append(item)
                    continue
            self._take_new(tx, together, todo)
            together = []
            self._take_in(tx, item, old, read)
            not_free = None  # the slugs in use may have changed
        self._take_new(tx, together, todo)

    def _not_free(self, tx: Transaction, items: list[SpooledFile]) -> tuple[set[str], set[str]]:
        """Return the requested slugs that are in use, and the paths that are already indexed."""
        wanted = [item.page.slug for item in items if item.page]
        return (
            page_edits.taken_slugs(tx, self.collection.id, wanted),
            collections.seen_paths(tx, self.collection.id, [item.path for item in items]),
        )

    def _take_new(self, tx: Transaction, items: list[SpooledFile], todo: PendingFiles) -> None:
        """Insert pages for new files."""
        if not items:
            return
        made = [(item, item.page, todo[item.path][1]) for item in items if item.page]
        new = [NewPage(page, self.new_uuid(), item.derived) for item, page, _ in made]
        ids = page_edits.add_pages(
            tx, new, now=self.now, collection_id=self.collection.id, collection=self.collection.name
        )
        numbered = list(zip(ids, made, strict=True))
        kept = [(page_id, item.path, item.data, read.content_hash) for page_id, (item, _, read) in numbered]
        history.keep_first_versions(tx, self.collection.id, kept, self.now, self.batch)
        seen = [
            (read.file, read.content_hash, page_id, self.problems.get(item.path))
            for page_id, (item, _, read) in numbered
        ]
        collections.record_files(tx, self.collection.id, seen, self.now)
        for page_id, (_, page, _) in numbered:
            self.written.add(page_id, page)
        self.counts["new"] += len(made)
        self.made.update(item.path for item, _, _ in made)

    def _take_in(self, tx: Transaction, item: SpooledFile, old: LastSeenFile | None, read: ReadFile) -> None:
        """Write one file to its page."""
        assert item.page is not None
        if self._is_overtaken(tx, read):
            return
        page_id = old.page_id if old else None
        made = self._named(tx, item.page, item.path, page_id)
        if old is not None and old.path != item.path:
            collections.forget_file(tx, self.collection.id, old.path, old.page_id)
        before = pages.slug_of(tx, page_id) if page_id is not None else None
        if page_id is not None and before is not None and before != made.slug:
            left = self.left.get(page_id, before)
            another = left != before and pages.slug_holder(tx, self.collection.id, left) is not None
            page_edits.change_slug(
                tx, self.collection.id, page_id, left, made.slug, self.now, redirect=not another
            )
        page_edits.free_slug(tx, self.collection.id, made.slug)
        saved = page_edits.save(
            tx,
            made,
            uuid=self._uuid(tx, read.page_uuid),
            now=self.now,
            expected_version=None,
            collection=self.collection.name,
            cut=False,
        )
        if not saved.changed and before != made.slug:
            # The content is unchanged but the slug is not, so links to and from the page resolve differently.
            page_edits.derive(tx, saved.id, made, cut=False)
        if not saved.changed and old is not None and old.content_hash != read.content_hash:
            # Different bytes with the same content (a comment, line endings) also make a version, so that they can
            # be restored.
            _, version = page_edits.touch(
                tx, made.slug, expected_version=None, now=self.now, collection=self.collection.name
            )
            saved = saved._replace(version=version)
        history.keep_version(
            tx, self.collection.id, saved.id, saved.version, item.path, item.data, self.now, self.batch
        )
        if not saved.created:
            history.trim_versions(tx, saved.id, dates.shift_date(self.now[:10], -history.HISTORY_DAYS))
        problem = self.problems.get(item.path)
        collections.record_file(
            tx, self.collection.id, read.file, read.content_hash, saved.id, self.now, problem
        )
        if indexer.is_org(item.path):
            self.notes += page_writer.update_heading_pages(
                tx,
                self.collection,
                saved.id,
                made.slug,
                item.path,
                item.nodes,
                self.now,
                self.batch,
                self._has_left,
                self.written.add,
            )
        self.written.add(saved.id, made)
        what = "new" if old is None else "moved" if old.path != item.path else "changed"
        self.counts[what] += 1
        if what != "changed":
            self.made.add(item.path)

    def _has_left(self, path: str, heading: str) -> bool:
        return heading not in self.headings.get(path, {heading})

    def _is_overtaken(self, tx: Transaction, read: ReadFile) -> bool:
        """Return True if another process has indexed this file since it was read; then the next sync handles it."""
        there = collections.content_hash_of_file(tx, self.collection.id, read.file.path)
        expected = read.old.content_hash if read.old is not None and read.old.path == read.file.path else None
        return there not in (None, "", expected)

    def _named(self, tx: Transaction, made: Page, path: str, page_id: int | None) -> Page:
        """Return the page under a free slug: the requested one, else that of its path, else one with a suffix."""
        holder = pages.slug_holder(tx, self.collection.id, made.slug)
        if holder is None or holder.page_id == page_id or (holder.is_hidden and page_id is None):
            return made
        by_path = slugs.from_path(path)
        before = pages.slug_of(tx, page_id) if page_id is not None else None
        if before is not None and before.startswith(by_path):
            return indexer.with_slug(made, before)  # it already has a slug with a suffix
        taken = pages.slugs_beginning(tx, self.collection.id, by_path)
        address = by_path if by_path not in taken else indexer.suffixed_slug(by_path, path, taken)
        self.notes.append(FileNote(path, f"another file has the slug {made.slug}; this one is {address}"))
        return indexer.with_slug(made, address)

    def _uuid(self, tx: Transaction, named: str | None) -> str:
        """Return the id in the file, unless it is invalid or another page has it; else a new id."""
        if named and indexer.looks_like_uuid(named) and not pages.has_uuid(tx, named):
            return named
        return self.new_uuid()


LEFTOVER_AGE_NS = 3_600_000_000_000


def clear_leftovers(
    db: Database, collection: Collection, folder: Folder, paths: list[str], now_ns: int
) -> list[FileNote]:
    """Remove old temporary files of interrupted writes. Return notes about the files that were kept."""
    old = [path for path in paths if _file_age_ns(folder, path, now_ns) > LEFTOVER_AGE_NS]
    notes: list[FileNote] = []
    if old and collection.writable:
        # Writing a file requires the writer lock, so while we hold it no process is using these files.
        db.write(lambda _tx: notes.extend(filter(None, [settle_leftover(folder, path) for path in old])))
    return notes


def _file_age_ns(folder: Folder, path: str, now_ns: int) -> int:
    parent, _, name = path.rpartition("/")
    try:
        found = os.stat(name, dir_fd=folder.enter(parent), follow_symlinks=False)
    except OSError:
        return 0
    return now_ns - max(found.st_ctime_ns, found.st_mtime_ns)


class SidecarChanges(NamedTuple):
    written: int
    """Number of sources that were new or changed."""
    changed: bool
    notes: tuple[str, ...]


def apply_sidecar(
    tx: Transaction,
    db: "Database",
    page_id: int,
    before: bytes,
    wanted: Mapping[str, Any],
    now: str,
    *,
    force: bool = False,
) -> SidecarChanges:
    """Set the raw data of a page to the sources of its sidecar, replacing those of the previous sidecar.

    Sources that were changed in the database are kept, unless `force` is given and the sidecar has them.
    """
    try:
        last = parse_sidecar(before)
    except ValueError:
        last = {}
    present = {each.source: each.data for each in pages.read_raw_data(db, page_id)}
    written, changed, notes = 0, False, []
    for source in sorted({*wanted, *last}):
        if (source in wanted) == (source in present) and wanted.get(source) == present.get(source):
            continue
        changed_here = source in present and (source not in last or last[source] != present[source])
        if changed_here and not (force and source in wanted):
            notes.append(f"what {source} says was changed here; left as it is")
            continue
        if source in wanted:
            pages.write_raw_data(tx, page_id, source, wanted[source], now)
            written += 1
        else:
            pages.remove_raw_data(tx, page_id, source)
        changed = True
    return SidecarChanges(written, changed, tuple(notes))


INCOMPLETE_REASONS = (scanner.UNREADABLE, scanner.TOO_DEEP, scanner.GONE)
"""Reasons for skipping an entry that make it uncertain whether other files are absent."""


QUARANTINE_NOTE = (
    f"stays in quarantine after {erasure.QUARANTINE_DAYS} days, for it holds what no file has;"
    " `quaid collection quarantine export` writes it out"
)


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
    """Number of missing files whose pages are kept until the user confirms the removal."""
    halted: str
    """Why the removal needs confirmation, or why the folder could not be read; "" if the sync finished."""
    types: dict[str, int]
    """Number of written pages by type."""
    left_out: dict[str, int]
    notes: tuple[FileNote, ...]
    hidden: int = 0
    """Number of files that the ignore rules now exclude; their pages were moved to quarantine."""
    discarded: int = 0
    """Number of pages whose quarantine has expired."""
    failed: int = 0
    """Number of files that could not be indexed; the notes name them."""
    raw_data: int = 0
    """Number of sources in sidecars that were new or changed."""
    tags: int = 0
    timeline_entries: int = 0
    links_extracted: int = 0
    """Number of links in the written pages."""

    @property
    def exit_status(self) -> int:
        return 1 if self.halted else 0


class _WalkResult(NamedTuple):
    """The result of walking the folder, or of looking up some of its files."""

    files: list[ScannedFile]
    complete: bool
    left_out: Counter[str]
    notes: list[FileNote]
    leftovers: list[str]
    """Paths of temporary files that a killed process may have left."""
    sidecars: list[str]


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
) -> SyncReport:
    """Sync the index with the folder, or with some of its files (`only`).

    With `retry`, unchanged files that could not be indexed before are read again.
    """
    work = SyncRun(db, collection, now, new_uuid, progress)
    work.may_hide_many = confirm_deletes or confirm_ignored
    work.retry = retry
    try:
        with Folder(collection.root or "", scanner.page_endings(collection.kind)) as folder:
            return work.run(folder, confirm_deletes, None if only is None else sorted(set(only)))
    except (NotFound, FileTrouble) as trouble:
        if trouble.facts.get("path") == db.path:
            raise  # the error concerns the database, not the folder
        return work.halt(str(trouble).rstrip("."))


class SyncRun:
    def __init__(
        self, db: Database, collection: Collection, now: str, new_uuid: Callable[[], str], progress: Progress
    ) -> None:
        self.db = db
        self.collection = collection
        self.now = now
        self.new_uuid = new_uuid
        self.progress = progress
        self.taking = SyncWriter(db, collection, now, new_uuid, progress)
        self.counts = self.taking.counts
        self.notes = self.taking.notes
        self.seen = _WalkResult([], True, Counter(), [], [], [])
        self.ignored: scanner.IgnoreCheck = scanner.ignore_nothing
        self.may_hide_many = False
        self.retry = False

    def run(self, folder: Folder, confirmed: bool, only: list[str] | None) -> SyncReport:
        ignored = self.ignored = ignore.ignore_matcher(self._ignore_patterns(folder), self.collection.kind)
        self.seen = self._walk(folder, ignored) if only is None else self._look(folder, ignored, only)
        keys = None if only is None else {scanner.path_key(path).casefold() for path in only}
        known = collections.known_files(self.db, self.collection.id, keys)
        found = sync_plan.classify_files(self.seen.files, known)
        if self.retry:
            found = _with_failed_files(found)
        self.counts["unchanged"] = len(found.unchanged)
        with Spool(os.path.dirname(self.db.path), self.db.path) as spool:
            reads = self._read(folder, found.to_read, spool)
            away = collections.quarantined_files(self.db, self.collection.id) if reads else []
            plan = sync_plan.plan_sync(reads, [*known, *away], [*found.missing, *away])
            self.taking.run(spool, plan)
        self._take_sidecars(folder, only)
        self._clear_leftovers(folder)
        gone = [each for each in plan.gone if each.stat.size >= 0]
        return self._remove(folder, gone, len(known), confirmed, whole=only is None)

    def halt(self, reason: str) -> SyncReport:
        """Report that the folder cannot be read, and store the reason with the collection. Pages stay unchanged."""
        self.db.write(lambda tx: collections.mark_halted(tx, self.collection.id, reason, self.now))
        return self._report(reason, collections.count_files(self.db, self.collection.id))

    # Scanning

    def _ignore_patterns(self, folder: Folder) -> str:
        try:
            data: bytes | None = folder.read(ignore.IGNORE_FILE)
        except FileNotFoundError:
            data = None
        except OSError:
            data = b"\0"  # NUL makes the rules invalid, so that the last valid ones stay in force
        rules = ignore.parse_rules(data, self.collection.ignore_patterns)
        if rules != (self.collection.ignore_patterns, self.collection.ignore_problem):
            self.db.write(lambda tx: collections.set_ignore(tx, self.collection.id, *rules))
        if rules.problem:
            self.notes.append(FileNote(ignore.IGNORE_FILE, f"{rules.problem}; the last good set is in force"))
        return rules.patterns

    def _walk(self, folder: Folder, ignored: scanner.IgnoreCheck) -> _WalkResult:
        return _collect_entries(folder.walk(ignored))

    def _look(self, folder: Folder, ignored: scanner.IgnoreCheck, paths: list[str]) -> _WalkResult:
        found = [
            folder.look(path)
            for path in paths
            if scanner.is_visible(path) and not ignore.is_ignored(ignored, path)
        ]
        return _collect_entries(each for each in found if each is not None)

    def _read(self, folder: Folder, files: list[FileToRead], spool: Spool) -> list[ReadFile]:
        """Read the files that may have changed; parse the changed ones and add them to the spool."""
        reads: list[ReadFile] = []
        for done, (file, old) in enumerate(files):
            self.progress(done, len(files), "Reading")
            data = self._bytes(folder, file, old)
            if data is None:
                continue
            content_hash = indexer.digest(data)
            if old and old.content_hash == content_hash and old.page_id and old.path == file.path:
                reads.append(ReadFile(file, old, content_hash, old.page_uuid))
                continue
            may_leave = not indexer.is_org(file.path) and spool.may_leave(spool.count, len(files) - done)
            try:
                reads.append(self._parse(FileToRead(file, old), content_hash, data, spool, may_leave))
            except (OSError, QuaidError):
                raise
            except Exception as error:
                self.taking.fail(file, old, indexer.failure_note(error))
        if files:
            self.progress(len(files), len(files), "Reading")
        return reads

    def _parse(
        self, opened: FileToRead, content_hash: str, data: bytes, spool: Spool, leave: bool
    ) -> ReadFile:
        """Add a file to the spool, either parsed or to be parsed by the helper process."""
        file, old = opened
        if leave:
            identity = indexer.requested_identity(file.path, data).identity
            self.taking.headings[file.path] = set()
            spool.leave(file.path, content_hash, data)
            return ReadFile(file, old, content_hash, identity)
        made, notes, nodes = indexer.parse_file(file.path, data)
        spool.add(SpooledFile(file.path, content_hash, data, made, nodes))
        self.taking.note(file.path, notes)
        self.taking.headings[file.path] = {str(each.frontmatter["id"]) for each in nodes}
        return ReadFile(file, old, content_hash, indexer.file_id(made, file.path))

    def _bytes(self, folder: Folder, file: ScannedFile, old: LastSeenFile | None) -> bytes | None:
        try:
            data = folder.read(file.path)
        except PermissionError as error:
            self.seen = self.seen._replace(complete=False)
            self.taking.fail(file, old, f"cannot be read: {error.strerror}")
            return None
        except OSError:
            self.seen = self.seen._replace(complete=False)
            self.seen.left_out[scanner.UNREADABLE] += 1
            self.notes.append(FileNote(file.path, scanner.UNREADABLE))
            return None
        if len(data) <= LARGEST_FILE:
            return data
        problem = f"too large: {file.stat.size:,} bytes, and {LARGEST_FILE:,} are allowed; split it"
        self.taking.fail(file, old, problem)
        return None

    # Sidecars

    def _take_sidecars(self, folder: Folder, only: list[str] | None) -> None:
        """Update pages from changed sidecars, and new or moved pages from theirs."""
        fresh = {indexer.sidecar_path(indexer.page_stem(path)) for path in self.taking.made}
        named = [*filter(indexer.is_sidecar, only), *fresh] if only is not None else self.seen.sidecars
        for path in sorted(set(named)):
            if not ignore.is_ignored(self.ignored, path):
                self._take_sidecar(folder, path, path in fresh)

    def _take_sidecar(self, folder: Folder, path: str, is_fresh: bool) -> None:
        try:
            data = folder.read(path)
            before = history.read_sidecar_file(self.db, self.collection.id, path)
            if data == before and not is_fresh:
                return
            if len(data) > LARGEST_FILE:
                raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
            wanted = indexer.parse_sidecar(data)
        except FileNotFoundError:
            return  # raw data of a removed sidecar is kept
        except OSError:
            self.notes.append(FileNote(path, scanner.UNREADABLE))
            return
        except ValueError as error:
            self.notes.append(FileNote(path, f"its raw data was left out: {error}"))
            return
        self.db.write(
            lambda tx: self._apply(
                tx, path, data, indexer.EMPTY_SIDECAR if before is None else before, wanted
            )
        )

    def _apply(self, tx: Transaction, path: str, data: bytes, before: bytes, wanted: dict[str, Any]) -> None:
        ids = [
            collections.page_of_file(tx, self.collection.id, each)
            for each in indexer.sidecar_page_files(path)
        ]
        page_id = next((each for each in ids if each is not None), None)
        address = None if page_id is None else pages.slug_of(tx, page_id)
        if page_id is None or address is None:
            self.notes.append(FileNote(path, f"there is no page {indexer.sidecar_page_stem(path)} for it"))
            return
        applied = apply_sidecar(tx, self.db, page_id, before, wanted, self.now)
        self.notes += [FileNote(path, each) for each in applied.notes]
        self.counts["raw_data"] += applied.written
        if applied.changed:
            page_edits.touch(
                tx, address, expected_version=None, now=self.now, collection=self.collection.name
            )
        history.keep_sidecar_file(tx, self.collection.id, path, data, self.now, self.taking.batch)

    # Removing

    def _clear_leftovers(self, folder: Folder) -> None:
        if self.seen.leftovers:
            now = collections.timestamp_nanoseconds(self.now)
            self.notes += clear_leftovers(self.db, self.collection, folder, self.seen.leftovers, now)

    def _remove(
        self, folder: Folder, gone: list[LastSeenFile], known: int, confirmed: bool, *, whole: bool
    ) -> SyncReport:
        hidden = [each for each in gone if ignore.is_ignored(self.ignored, each.path)]
        missing = [each for each in gone if not ignore.is_ignored(self.ignored, each.path)]
        total = known if whole else collections.count_files(self.db, self.collection.id)
        may_hide = sync_plan.may_hide(len(hidden), total, confirmed=self.may_hide_many)
        files = len(self.seen.files) if whole else total
        verdict = sync_plan.may_remove(
            len(missing), total, files + len(hidden), complete=self.seen.complete, confirmed=confirmed
        )
        if verdict.allowed and missing and not confirmed and not self._is_same_root(folder):
            verdict = sync_plan.RemovalVerdict(False, "the folder is another one than before")
        looks = [(each, folder.look(each.path)) for each in missing if verdict.allowed]
        links = [
            look.path
            for _, look in looks
            if isinstance(look, SkippedEntry) and look.reason == scanner.SYMLINK
        ]
        if links and not confirmed:
            verdict = sync_plan.RemovalVerdict(False, f"{links[0]} is a link now, and links are not followed")
        going = [
            each
            for each, look in looks
            if verdict.allowed and (look is None or getattr(look, "path", "") in links)
        ]
        away = [each for each in hidden if may_hide.allowed]
        self.counts.update(removed=len(going), hidden=len(away))
        reason = verdict.reason or may_hide.reason
        self.db.write(lambda tx: self._finish(tx, folder, going + away, whole and not reason))
        if not reason:
            return self._report("", 0)
        self.db.write(lambda tx: collections.mark_halted(tx, self.collection.id, reason, self.now))
        waiting = 0 if verdict.allowed else len(missing)
        return self._report(reason, waiting + (0 if may_hide.allowed else len(hidden)))

    def _finish(self, tx: Transaction, folder: Folder, gone: list[LastSeenFile], whole: bool) -> None:
        for each in gone:
            if not collections.is_file_unchanged(tx, self.collection.id, each):
                continue  # changed by another process since the walk
            collections.forget_file(tx, self.collection.id, each.path)
            if each.page_id is not None:
                erasure.quarantine_headings(tx, each.page_id, self.now)
                erasure.quarantine_page(tx, each.page_id, self.now)
        if whole:
            self._discard_expired(tx)
            collections.set_root_identity(tx, self.collection.id, str(folder.identity))
            collections.mark_synced(tx, self.collection.id, self.now)

    def _discard_expired(self, tx: Transaction) -> None:
        """Delete pages whose quarantine has expired, except those with data that exists nowhere else."""
        before = dates.shift_date(self.now[:10], -erasure.QUARANTINE_DAYS)
        for each in erasure.expired_pages(tx, self.collection.id, before):
            if each.is_safe:
                erasure.discard_page(tx, each.id)
                self.counts["discarded"] += 1
            else:
                self.notes.append(FileNote(each.slug, QUARANTINE_NOTE))

    def _is_same_root(self, folder: Folder) -> bool:
        return collections.root_identity(self.db, self.collection.id) in (None, str(folder.identity))

    def _report(self, halted: str, waiting: int) -> SyncReport:
        written = self.taking.written
        return SyncReport(
            collection=self.collection.name,
            root=self.collection.root or "",
            files=len(self.seen.files),
            unchanged=self.counts["unchanged"],
            new=self.counts["new"],
            changed=self.counts["changed"],
            moved=self.counts["moved"],
            removed=self.counts["removed"],
            waiting=waiting,
            halted=halted,
            types=dict(written.types.most_common()),
            left_out=dict(self.seen.left_out),
            notes=(*self.notes, *self.seen.notes),
            hidden=self.counts["hidden"],
            discarded=self.counts["discarded"],
            failed=self.counts["failed"],
            raw_data=self.counts["raw_data"],
            tags=written.tags,
            timeline_entries=written.timeline_entries,
            links_extracted=links.count(self.db, written.page_ids) if written.page_ids else 0,
        )


def _with_failed_files(found: SortedFiles) -> SortedFiles:
    """Return a copy in which unchanged files that could not be indexed are to be read again."""
    failed = [each for each in found.unchanged if each.content_hash == collections.NOT_INDEXED]
    again = [FileToRead(ScannedFile(each.path, each.key, each.stat), each) for each in failed]
    unchanged = [each for each in found.unchanged if each.content_hash != collections.NOT_INDEXED]
    return SortedFiles(unchanged, [*found.to_read, *again], found.missing)


def _collect_entries(entries: Iterable[FoundFile | SkippedEntry]) -> _WalkResult:
    files: list[ScannedFile] = []
    left_out: Counter[str] = Counter()
    notes: list[FileNote] = []
    left: list[str] = []
    sidecars: list[str] = []
    for entry in entries:
        if isinstance(entry, FoundFile) and entry.kind != "sidecar":
            stat = FileSignature(entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode)
            files.append(ScannedFile(entry.path, entry.key.casefold(), stat))
        elif isinstance(entry, FoundFile):
            sidecars.append(entry.path)
        else:
            left_out[entry.reason] += 1
            if entry.reason == scanner.HIDDEN_FILE and atomic_write.is_leftover(entry.path):
                left.append(entry.path)
            if entry.reason in (*INCOMPLETE_REASONS, scanner.SYMLINK, scanner.BAD_NAME):
                notes.append(FileNote(entry.path, entry.reason))
    return _WalkResult(
        files, not any(left_out[reason] for reason in INCOMPLETE_REASONS), left_out, notes, left, sidecars
    )
