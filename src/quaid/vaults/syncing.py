"""A folder and its index brought into agreement: walk, read what changed, plan, apply.

Changes nothing in the folder. Unchanged files cost a stat. What is read waits on the disk (spool) and is written
in small transactions, so that other writers need not wait; each step is right on its own, and a sync that is cut
short goes on with the next one. A page goes only when its file is positively absent (core.sync.may_remove), and
even then only into quarantine.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from quaid.errors import FileTrouble, NotFound, QuaidError
from quaid.model import dates, sync_plan
from quaid.model.sync_plan import FileSignature, FileToRead, LastSeenFile, ReadFile, ScannedFile, SortedFiles
from quaid.storage import collections, erase as erasure, history, links, page_edits, pages
from quaid.storage.collections import Collection
from quaid.storage.sqlite.connection import Database
from quaid.vaults import ignoring, index, leftovers, scan, sidecar
from quaid.vaults.report import Note
from quaid.vaults.scan import LARGEST_FILE, Folder, Found, LeftOut
from quaid.vaults.spool import Spool, Waiting
from quaid.vaults.taking_files import Progress, TakingFiles

INCOMPLETE = (scan.UNREADABLE, scan.TOO_DEEP, scan.GONE)
"""Reasons to leave something out that make absence uncertain."""


KEPT_IN_QUARANTINE = (
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
    """Missing files whose pages stay until a person says so."""
    halted: str
    """Why they stay."""
    types: dict[str, int]
    """Of the pages that were written."""
    left_out: dict[str, int]
    notes: tuple[Note, ...]
    hidden: int = 0
    """Files that the ignore rules leave out by now; their pages went into quarantine."""
    discarded: int = 0
    """Pages whose time in quarantine is over."""
    failed: int = 0
    """Files that could not be taken in now; the notes name them."""
    raw_data: int = 0
    """What other services said of pages, new or changed in sidecars."""
    tags: int = 0
    timeline_entries: int = 0
    links_extracted: int = 0
    """What the texts of these pages hold."""

    @property
    def exit_status(self) -> int:
        return 1 if self.halted else 0


class _Seen(NamedTuple):
    """A walk through the folder, or a look at a part of it."""

    files: list[ScannedFile]
    complete: bool
    left_out: Counter[str]
    notes: list[Note]
    leftovers: list[str]
    """Files of our own that a killed process may have left."""
    sidecars: list[str]


def sync(
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
    """Bring the index in step with the folder, or with some of its files (`only`).

    `retry` reads files again that could not be taken in and have not changed since.
    """
    work = Syncing(db, collection, now, new_uuid, progress)
    work.may_hide_many = confirm_deletes or confirm_ignored
    work.retry = retry
    try:
        with Folder(collection.root or "", scan.endings(collection.kind)) as folder:
            return work.run(folder, confirm_deletes, None if only is None else sorted(set(only)))
    except (NotFound, FileTrouble) as trouble:
        if trouble.facts.get("path") == db.path:
            raise  # the disk of the memory fails, not the folder
        return work.halt(str(trouble).rstrip("."))


class Syncing:
    def __init__(
        self, db: Database, collection: Collection, now: str, new_uuid: Callable[[], str], progress: Progress
    ) -> None:
        self.db = db
        self.collection = collection
        self.now = now
        self.new_uuid = new_uuid
        self.progress = progress
        self.taking = TakingFiles(db, collection, now, new_uuid, progress)
        self.counts = self.taking.counts
        self.notes = self.taking.notes
        self.seen = _Seen([], True, Counter(), [], [], [])
        self.ignored: scan.Ignored = scan.ignore_nothing
        self.may_hide_many = False
        self.retry = False

    def run(self, folder: Folder, confirmed: bool, only: list[str] | None) -> SyncReport:
        ignored = self.ignored = ignoring.matcher(self._ignore_patterns(folder), self.collection.kind)
        self.seen = self._walk(folder, ignored) if only is None else self._look(folder, ignored, only)
        keys = None if only is None else {scan.path_key(path).casefold() for path in only}
        known = collections.known_files(self.db, self.collection.id, keys)
        found = sync_plan.classify_files(self.seen.files, known)
        if self.retry:
            found = _with_failed(found)
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
        """The folder cannot be looked at: nothing changes but what is said about it."""
        self.db.write(lambda tx: collections.mark_halted(tx, self.collection.id, reason, self.now))
        return self._report(reason, collections.count_files(self.db, self.collection.id))

    # Looking

    def _ignore_patterns(self, folder: Folder) -> str:
        try:
            data: bytes | None = folder.read(ignoring.FILE)
        except FileNotFoundError:
            data = None
        except OSError:
            data = b"\0"  # it is there and cannot be read
        rules = ignoring.read(data, self.collection.ignore_patterns)
        if rules != (self.collection.ignore_patterns, self.collection.ignore_problem):
            self.db.write(lambda tx: collections.set_ignore(tx, self.collection.id, *rules))
        if rules.problem:
            self.notes.append(Note(ignoring.FILE, f"{rules.problem}; the last good set is in force"))
        return rules.patterns

    def _walk(self, folder: Folder, ignored: scan.Ignored) -> _Seen:
        return _gathered(folder.walk(ignored))

    def _look(self, folder: Folder, ignored: scan.Ignored, paths: list[str]) -> _Seen:
        found = [
            folder.look(path) for path in paths if scan.is_shown(path) and not ignoring.hides(ignored, path)
        ]
        return _gathered(each for each in found if each is not None)

    def _read(self, folder: Folder, files: list[FileToRead], spool: Spool) -> list[ReadFile]:
        """Read what may have changed; what did is parsed and waits in the spool."""
        reads: list[ReadFile] = []
        for done, (file, old) in enumerate(files):
            self.progress(done, len(files), "Reading")
            data = self._bytes(folder, file, old)
            if data is None:
                continue
            content_hash = index.digest(data)
            if old and old.content_hash == content_hash and old.page_id and old.path == file.path:
                reads.append(ReadFile(file, old, content_hash, old.page_uuid))
                continue
            may_leave = not index.is_org(file.path) and spool.may_leave(spool.count, len(files) - done)
            try:
                reads.append(self._parse(FileToRead(file, old), content_hash, data, spool, may_leave))
            except (OSError, QuaidError):
                raise
            except Exception as error:
                self.taking.fail(file, old, index.failure(error))
        if files:
            self.progress(len(files), len(files), "Reading")
        return reads

    def _parse(
        self, opened: FileToRead, content_hash: str, data: bytes, spool: Spool, leave: bool
    ) -> ReadFile:
        """Put a file into the spool: parsed, or left to the process that parses beside us."""
        file, old = opened
        if leave:
            identity = index.asked(file.path, data).identity
            self.taking.headings[file.path] = set()
            spool.leave(file.path, content_hash, data)
            return ReadFile(file, old, content_hash, identity)
        made, notes, nodes = index.read(file.path, data)
        spool.add(Waiting(file.path, content_hash, data, made, nodes))
        self.taking.note(file.path, notes)
        self.taking.headings[file.path] = {str(each.frontmatter["id"]) for each in nodes}
        return ReadFile(file, old, content_hash, index.identity(made, file.path))

    def _bytes(self, folder: Folder, file: ScannedFile, old: LastSeenFile | None) -> bytes | None:
        try:
            data = folder.read(file.path)
        except OSError:
            self.seen = self.seen._replace(complete=False)
            self.seen.left_out[scan.UNREADABLE] += 1
            self.notes.append(Note(file.path, scan.UNREADABLE))
            return None
        if len(data) <= LARGEST_FILE:
            return data
        problem = f"too large: {file.stat.size:,} bytes, and {LARGEST_FILE:,} are allowed; split it"
        self.taking.fail(file, old, problem)
        return None

    # Sidecars

    def _take_sidecars(self, folder: Folder, only: list[str] | None) -> None:
        """Give pages what changed in their sidecars, and new pages what theirs say."""
        fresh = {sidecar.path_for(index.stem(path)) for path in self.taking.made}
        named = [*filter(sidecar.is_sidecar, only), *fresh] if only is not None else self.seen.sidecars
        for path in sorted(set(named)):
            if not ignoring.hides(self.ignored, path):
                self._take_sidecar(folder, path, path in fresh)

    def _take_sidecar(self, folder: Folder, path: str, is_fresh: bool) -> None:
        try:
            data = folder.read(path)
            before = history.read_sidecar_file(self.db, self.collection.id, path)
            if data == before and not is_fresh:
                return
            if len(data) > LARGEST_FILE:
                raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
            wanted = sidecar.read(data)
        except FileNotFoundError:
            return  # what it said stays
        except OSError:
            self.notes.append(Note(path, scan.UNREADABLE))
            return
        except ValueError as error:
            self.notes.append(Note(path, f"its raw data was left out: {error}"))
            return
        self.db.write(
            lambda tx: self._apply(tx, path, data, sidecar.EMPTY if before is None else before, wanted)
        )

    def _apply(self, tx: Any, path: str, data: bytes, before: bytes, wanted: dict[str, Any]) -> None:
        ids = [collections.page_of_file(tx, self.collection.id, each) for each in sidecar.page_files(path)]
        page_id = next((each for each in ids if each is not None), None)
        address = None if page_id is None else pages.slug_of(tx, page_id)
        if page_id is None or address is None:
            self.notes.append(Note(path, f"there is no page {sidecar.page_path(path)} for it"))
            return
        applied = sidecar.apply(tx, self.db, page_id, before, wanted, self.now)
        self.notes += [Note(path, each) for each in applied.notes]
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
            self.notes += leftovers.clear(self.db, self.collection, folder, self.seen.leftovers, now)

    def _remove(
        self, folder: Folder, gone: list[LastSeenFile], known: int, confirmed: bool, *, whole: bool
    ) -> SyncReport:
        hidden = [each for each in gone if ignoring.hides(self.ignored, each.path)]
        missing = [each for each in gone if not ignoring.hides(self.ignored, each.path)]
        total = known if whole else collections.count_files(self.db, self.collection.id)
        may_hide = sync_plan.may_hide(len(hidden), total, confirmed=self.may_hide_many)
        files = len(self.seen.files) if whole else total
        verdict = sync_plan.may_remove(
            len(missing), total, files + len(hidden), complete=self.seen.complete, confirmed=confirmed
        )
        if verdict.allowed and missing and not confirmed and not self._is_same_root(folder):
            verdict = sync_plan.RemovalVerdict(False, "the folder is another one than before")
        looks = [(each, folder.look(each.path)) for each in missing if verdict.allowed]
        links = [look.path for _, look in looks if isinstance(look, LeftOut) and look.reason == scan.LINK]
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

    def _finish(self, tx: Any, folder: Folder, gone: list[LastSeenFile], whole: bool) -> None:
        for each in gone:
            if not collections.is_file_unchanged(tx, self.collection.id, each):
                continue  # somebody else was faster
            collections.forget_file(tx, self.collection.id, each.path)
            if each.page_id is not None:
                erasure.quarantine_headings(tx, each.page_id, self.now)
                erasure.quarantine_page(tx, each.page_id, self.now)
        if whole:
            self._discard_expired(tx)
            collections.set_root_identity(tx, self.collection.id, str(folder.identity))
            collections.mark_synced(tx, self.collection.id, self.now)

    def _discard_expired(self, tx: Any) -> None:
        """Let pages go whose time in quarantine is over, but for those that hold what nobody has elsewhere."""
        before = dates.shift_date(self.now[:10], -erasure.QUARANTINE_DAYS)
        for each in erasure.expired_pages(tx, self.collection.id, before):
            if each.is_safe:
                erasure.discard_page(tx, each.id)
                self.counts["discarded"] += 1
            else:
                self.notes.append(Note(each.slug, KEPT_IN_QUARANTINE))

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


def _with_failed(found: SortedFiles) -> SortedFiles:
    """The same, with files to be read again that are unchanged and could not be taken in."""
    failed = [each for each in found.unchanged if each.content_hash == collections.NOT_INDEXED]
    again = [FileToRead(ScannedFile(each.path, each.key, each.stat), each) for each in failed]
    unchanged = [each for each in found.unchanged if each.content_hash != collections.NOT_INDEXED]
    return SortedFiles(unchanged, [*found.to_read, *again], found.missing)


def _gathered(entries: Iterable[Found | LeftOut]) -> _Seen:
    files: list[ScannedFile] = []
    left_out: Counter[str] = Counter()
    notes: list[Note] = []
    left: list[str] = []
    sidecars: list[str] = []
    for entry in entries:
        if isinstance(entry, Found) and entry.kind != "sidecar":
            stat = FileSignature(entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode)
            files.append(ScannedFile(entry.path, entry.key.casefold(), stat))
        elif isinstance(entry, Found):
            sidecars.append(entry.path)
        else:
            left_out[entry.reason] += 1
            if entry.reason == scan.HIDDEN_FILE and leftovers.is_ours(entry.path):
                left.append(entry.path)
            if entry.reason in (*INCOMPLETE, scan.LINK, scan.BAD_NAME):
                notes.append(Note(entry.path, entry.reason))
    return _Seen(files, not any(left_out[reason] for reason in INCOMPLETE), left_out, notes, left, sidecars)
