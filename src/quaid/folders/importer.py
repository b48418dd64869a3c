"""Import a folder: read all files first, then write all pages in one transaction, or none.

Nothing in the folder changes, and a page that was edited in the database since its last import is kept.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from shlex import quote
from typing import Literal, NamedTuple, get_args

from quaid.errors import QuaidError, VersionConflict
from quaid.folders import export as exporter, indexer, scanner, sync
from quaid.folders.indexer import Spool, SpooledFile
from quaid.folders.scanner import LARGEST_FILE, FileNote, Folder, FoundFile, Progress, path_key
from quaid.folders.sync import WriteCounts
from quaid.formats import markdown
from quaid.model import slug as slugs
from quaid.model.page import Page
from quaid.storage import collections, history, links, page_edits, pages
from quaid.storage.history import ImportedFile
from quaid.storage.page_edits import NewPage
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.sqlite.errors import write_alone

ImportOutcome = Literal[
    "new",  # a page was created
    "changed",  # the file has changed since the last import, and the page was updated
    "unchanged",  # the page has the content of the file
    "edited",  # the file is unchanged, but the page was edited in the database; it is kept
    "conflict",  # both changed, or the page is not from this file: the page is kept
    "too_large",
    "failed",  # Quaid failed on it; an existing page is kept
    "special",  # index.md, schema.md and README.md at the root: stored, but not as pages
    "sidecar",
    "links_and_facts",  # the links-and-facts file of an export
    "left_out",
]
NOTED_REASONS = (
    scanner.SYMLINK,
    scanner.NOT_A_FILE,
    scanner.UNREADABLE,
    scanner.BAD_NAME,
    scanner.TOO_DEEP,
    scanner.GONE,
)


class ImportConflict(NamedTuple):
    path: str
    slug: str
    remedy: str  # the command that applies the text of the file


class ImportReport(NamedTuple):
    folder: str
    import_id: str | None  # None if nothing changed and nothing was written
    files_seen: int
    outcomes: dict[ImportOutcome, int]
    left_out: dict[str, int]  # by reason
    types: dict[str, int]  # of the pages that were created or changed
    tags: int
    timeline_entries: int
    raw_data: int
    notes: tuple[FileNote, ...]
    conflicts: tuple[ImportConflict, ...]
    gone: tuple[str, ...]  # files of this folder's last import that no longer exist; their pages are kept
    links: int = 0  # links that are not in any page's text
    facts: int = 0
    links_extracted: int = 0  # links in the texts of the pages that were created or changed


class ImportTally:
    """Collects the figures and notes of an import report."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files_seen = 0
        self.outcomes: Counter[ImportOutcome] = Counter()
        self.left_out: Counter[str] = Counter()
        self.written = WriteCounts()
        self.raw_data = self.links = self.facts = self.links_extracted = 0
        self.notes: list[FileNote] = []
        self.conflicts: list[ImportConflict] = []
        self.gone: list[str] = []

    def leave_out(self, path: str, reason: str) -> None:
        self.outcomes["left_out"] += 1
        self.left_out[reason] += 1
        if reason in NOTED_REASONS:
            self.note(path, f"left out: {reason}")

    def fail(self, path: str, problem: str) -> None:
        self.outcomes["failed"] += 1
        self.note(path, problem)

    def note(self, path: str, *texts: str) -> None:
        self.notes += [FileNote(scanner.printable(path), text) for text in texts]

    def wrote(self, outcome: ImportOutcome, page_id: int, page: "Page") -> None:
        self.outcomes[outcome] += 1
        self.written.add(page_id, page)

    def conflict(self, path: str, slug: str) -> None:
        self.outcomes["conflict"] += 1
        remedy = f"quaid put {slug} {quote(os.path.join(self.folder, path))}"
        self.conflicts.append(ImportConflict(scanner.printable(path), slug, remedy))

    def report(self, import_id: str | None) -> ImportReport:
        return ImportReport(
            folder=self.folder,
            import_id=import_id,
            files_seen=self.files_seen,
            outcomes={outcome: self.outcomes[outcome] for outcome in get_args(ImportOutcome)},
            left_out=dict(sorted(self.left_out.items())),
            types=dict(self.written.types.most_common()),
            tags=self.written.tags,
            timeline_entries=self.written.timeline_entries,
            raw_data=self.raw_data,
            notes=tuple(sorted(self.notes)),
            conflicts=tuple(sorted(self.conflicts)),
            gone=tuple(sorted(map(scanner.printable, self.gone))),
            links=self.links,
            facts=self.facts,
            links_extracted=self.links_extracted,
        )


class ConcurrentImport(Exception):
    """Another process imported something while we were reading, so the plan is outdated."""


class ImportHistory:
    """The files that earlier imports brought from a folder.

    A folder is recognized by the path of its last import. Any other folder may be a known one that was moved: it is
    considered the same if most of the page files with a known path have the known content.
    """

    def __init__(self, db: Database, root: str) -> None:
        with db.reading():
            self.newest = history.newest_import(db)
            last = history.newest_import(db, root)
            self.same_folder = last is not None
            self.files = history.files_of_import(db, last) if last else history.imported_files(db)
        self._other_spellings = {path_key(path): path for path in self.files if not path.isascii()}
        self._pages: dict[int, str] | None = None
        self.seen: set[str] = set()

    def find(self, path: str) -> ImportedFile | None:
        known = self.files.get(path)
        if known is None and not path.isascii():
            path = self._other_spellings.get(path_key(path), path)
            known = self.files.get(path)
        if known is not None:
            self.seen.add(path)
        return known

    def judge(self, same: int, different: int) -> None:
        """Decide whether a folder not imported from this path is a known folder that was moved."""
        self.same_folder = self.same_folder or same > different

    def of_page(self, page_id: int) -> tuple[str, ImportedFile] | None:
        """Return the path and file of this folder that a page was imported from, or None."""
        if not self.same_folder:
            return None
        if self._pages is None:
            self._pages = {
                each.page_id: path for path, each in self.files.items() if each.page_id is not None
            }
        path = self._pages.get(page_id)
        return None if path is None else (path, self.files[path])


class LinksAndFactsFile(NamedTuple):
    """The links-and-facts file of an export, if it has to be imported."""

    data: bytes
    content_hash: str
    known: bool
    """It was imported before, so only records of new pages are restored."""


class ImportPlan(NamedTuple):
    """The result of reading a folder. It holds paths only; the contents are in the spool."""

    past: ImportHistory
    claims: list[indexer.SlugClaim]  # the spooled pages, sorted by path
    carried: dict[str, ImportedFile]  # files with unchanged content
    paths: set[str]  # paths of all files to be imported
    beside: "LinksAndFactsFile | None" = None

    def known(self, path: str) -> ImportedFile | None:
        """Return the page file as last imported from this folder, or None."""
        known = self.past.find(path) if self.past.same_folder else None
        return known if known and known.page_id is not None else None


def matches_bytes(stored: PageRow, path: str, data: bytes) -> bool:
    """Return True if a stored page has the content of a file; False if the file cannot be parsed."""
    try:
        return has_same_content(stored, indexer.parse_file(path, data).page)
    except Exception:  # the importer reports the error when it reads the file
        return False


def has_same_content(stored: PageRow, made: Page) -> bool:
    """Return True if a stored page has the content of a parsed page."""
    said = (stored.truth, stored.timeline, stored.frontmatter)
    return said == (made.truth, made.timeline, made.frontmatter)


IMPORT_COLLECTION, IMPORT_COLLECTION_ID = "default", 1
"""The collection that imported pages are added to."""

SPECIAL_FILE_SETTINGS = {"index.md": "original_index", "schema.md": "original_schema"}


class ImportWriter:
    def __init__(
        self,
        db: Database,
        plan: ImportPlan,
        spool: Spool,
        tally: ImportTally,
        import_id: str,
        now: str,
        new_uuid: Callable[[], str],
        progress: Progress,
        *,
        force: bool = False,
    ) -> None:
        self.force = force
        self.db = db
        self.plan = plan
        self.spool = spool
        self.tally = tally
        self.import_id = import_id
        self.now = now
        self.new_uuid = new_uuid
        self.progress = progress
        self.slugs: dict[str, str] = {}  # slug of each page file, by path without ending
        self.page_files = 0
        self.waiting: list[tuple[SpooledFile, Page]] = []  # pages to be written together
        self.bytes_waiting = 0
        self.written: set[str] = set()  # slugs whose version was already incremented
        self.new: set[str] = set()  # slugs of pages that did not exist

    def run(self, tx: Transaction) -> None:
        if history.newest_import(self.db) != self.plan.past.newest:
            raise ConcurrentImport
        self.tx = tx
        history.begin_import(tx, self.import_id, self.tally.folder, self.now)
        for path, known in self.plan.carried.items():
            history.add_file_to_import(tx, self.import_id, path, known.raw_id)
            if known.slug:
                self._has_page(path, known.slug)
        assigned = self._assign()
        for done, item in enumerate(self.spool.each()):
            self.progress(done, self.spool.count, "Writing")
            self.tally.note(item.path, *item.notes)
            if item.problem:
                self.tally.fail(item.path, item.problem)
                continue
            if item.page:
                self._page(item, item.page, assigned)
                continue
            self._write_waiting()
            if "/" in item.path:
                self._sidecar(item)
            else:
                self._special(item)
        self._write_waiting()
        if self.plan.beside:
            self._links_and_facts(self.plan.beside)
        self.tally.links_extracted = links.count(self.db, self.tally.written.page_ids)
        history.finish_import(tx, self.import_id, self.page_files)
        self.progress(self.spool.count, self.spool.count, "Writing")

    def _assign(self) -> dict[str, str]:
        """Assign a slug to each page that was not imported from this folder before."""
        known = {claim.path: self.plan.known(claim.path) for claim in self.plan.claims}
        ours = [*known.values(), *self.plan.carried.values()]
        self.taken = {each.slug for each in ours if each and each.slug}
        fresh = [claim for claim in self.plan.claims if known[claim.path] is None]
        assigned = indexer.assign_slugs(fresh, self.taken)
        self.taken.update(assigned.values())
        for claim in fresh:
            if assigned[claim.path] != claim.slug:
                text = f"another file has the slug {claim.slug}; this one is {assigned[claim.path]}"
                self.tally.note(claim.path, text)
        return assigned

    def _page(self, item: SpooledFile, made: Page, assigned: dict[str, str]) -> None:
        known = self.plan.known(item.path)
        if known and known.slug:
            self._write_waiting()
            self._alone(item, lambda: self._again(item, indexer.with_slug(made, known.slug or ""), known))
            return
        self.waiting.append((item, indexer.with_slug(made, assigned[item.path])))
        self.bytes_waiting += len(item.data)
        if len(self.waiting) == page_edits.BULK_ROWS or self.bytes_waiting > page_edits.BULK_BYTES:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Write the waiting pages in order: those with free slugs together, the others one by one."""
        if not self.waiting:
            return
        waiting, self.waiting, self.bytes_waiting = self.waiting, [], 0
        taken = page_edits.taken_slugs(self.tx, IMPORT_COLLECTION_ID, [made.slug for _, made in waiting])
        free: list[tuple[SpooledFile, Page]] = []
        for item, made in waiting:
            if made.slug in taken:
                self._write_new(free)
                free = []
                self._alone(item, partial(self._first_time, item, made))
            else:
                free.append((item, made))
        self._write_new(free)

    def _alone(self, item: SpooledFile, write: Callable[[], None]) -> None:
        """Write one page in a savepoint, so that an error affects only this file."""
        if failure := write_alone(self.tx, write):
            self.tally.fail(item.path, indexer.failure_note(failure))

    def _write_new(self, free: list[tuple[SpooledFile, Page]]) -> None:
        """Write these pages together; if that fails, one by one."""
        if write_alone(self.tx, partial(self._add, free)):
            for item, made in free:
                self._alone(item, partial(self._add, [(item, made)]))

    def _add(self, free: list[tuple[SpooledFile, Page]]) -> None:
        new = [NewPage(made, self.new_uuid(), item.derived_of(made)) for item, made in free]
        ids = page_edits.add_pages(
            self.tx, new, now=self.now, collection_id=IMPORT_COLLECTION_ID, collection=IMPORT_COLLECTION
        )
        files = [
            (item.path, item.data, item.content_hash, id_) for (item, _), id_ in zip(free, ids, strict=True)
        ]
        history.keep_imported_files(self.tx, self.import_id, files, self.now)
        for (item, made), page_id in zip(free, ids, strict=True):
            self._has_page(item.path, made.slug)
            self.written.add(made.slug)
            self.new.add(made.slug)
            self.tally.wrote("new", page_id, made)

    def _first_time(self, item: SpooledFile, made: Page) -> None:
        try:
            saved = page_edits.save(
                self.tx, made, uuid=self.new_uuid(), now=self.now, expected_version=0, cut=False
            )
        except VersionConflict:
            stored = pages.require(self.db, made.slug)
            self._meets(item, indexer.with_slug(made, stored.slug), stored)  # the slug may be a redirect
            return
        self._keep(item, made.slug, saved.id, saved.version)
        self.written.add(made.slug)
        self.new.add(made.slug)
        self.tally.wrote("new", saved.id, made)

    def _meets(self, item: SpooledFile, made: Page, stored: PageRow) -> None:
        """Handle a new file whose slug already has a page."""
        if has_same_content(stored, made):
            self._keep(item, stored.slug, stored.id, stored.version)
            self.tally.outcomes["unchanged"] += 1
            return
        known = self._brought_before(stored, item.path)
        if known:
            self._again(item, made, known)
        elif origin := history.origin_of_page(self.db, stored.id):
            address = indexer.suffixed_slug(made.slug, item.path, self.taken)
            self.taken.add(address)
            text = f"a page of {origin[0]} has the slug {made.slug}; this one is {address}"
            self.tally.note(item.path, text)
            self._first_time(item, indexer.with_slug(made, address))
        elif self.force:
            self._overwrite(item, made, stored)
        else:
            self._conflict(item, stored)

    def _brought_before(self, stored: PageRow, path: str) -> ImportedFile | None:
        """Return the file of this folder that a page came from, if it is the same file or no longer exists."""
        before = self.plan.past.of_page(stored.id)
        if before is None and (origin := history.origin_of_page(self.db, stored.id)):
            folder, old_path, known = origin
            before = (old_path, known) if folder == self.tally.folder else None
        if before and (before[0] == path or before[0] not in self.plan.paths):
            return before[1]
        return None

    def _again(self, item: SpooledFile, made: Page, known: ImportedFile) -> None:
        stored = pages.find(self.db, made.slug)
        if stored and has_same_content(stored, made) and not self._is_derived_anew(stored, made):
            self._keep(item, made.slug, stored.id, stored.version)
            self.tally.outcomes["unchanged"] += 1
            return
        if stored and not self.force and self._edited_here(stored, item.path, known):
            self._conflict(item, stored)
            return
        self._overwrite(item, made, stored)

    def _overwrite(self, item: SpooledFile, made: Page, stored: PageRow | None) -> None:
        if self.force and stored and not has_same_content(stored, made):
            text = markdown.render(stored.frontmatter, stored.truth, stored.timeline).encode()
            path, batch = f"{stored.slug}.md", f"edit-{self.new_uuid()}"
            history.keep_version(
                *(self.tx, IMPORT_COLLECTION_ID, stored.id, stored.version, path, text, self.now, batch),
                present=False,
            )
        expected = stored.version if stored else None
        saved = page_edits.save(
            self.tx, made, uuid=self.new_uuid(), now=self.now, expected_version=expected, cut=False
        )
        self._keep(item, made.slug, saved.id, saved.version)
        self.written.add(made.slug)
        self.tally.wrote("changed", saved.id, made)

    def _is_derived_anew(self, stored: PageRow, made: Page) -> bool:
        """Return True if a forced import would change the title, summary, type or place of an equal text."""
        old = (stored.type, stored.title, stored.summary, stored.wing, stored.room)
        return self.force and old != (made.type, made.title, made.summary, made.wing, made.room)

    def _edited_here(self, stored: PageRow, path: str, known: ImportedFile) -> bool:
        if stored.version == known.page_version_at_import:
            return False
        # Raw data also increments the version, so the text is compared with that of the file.
        return not matches_bytes(stored, path, history.imported_bytes(self.db, known.raw_id))

    def _conflict(self, item: SpooledFile, stored: PageRow) -> None:
        self._keep(item, stored.slug, stored.id, None)  # no version: the page never had this content
        self.tally.conflict(item.path, stored.slug)

    def _keep(self, item: SpooledFile, address: str, page_id: int, version: int | None) -> None:
        history.keep_imported_file(
            self.tx, self.import_id, item.path, item.data, item.content_hash, page_id, version, self.now
        )
        self._has_page(item.path, address)

    def _has_page(self, path: str, address: str) -> None:
        self.page_files += 1
        self.slugs[indexer.page_stem(path)] = address

    def _keep_bytes(self, item: SpooledFile) -> None:
        history.keep_imported_file(
            self.tx, self.import_id, item.path, item.data, item.content_hash, None, None, self.now
        )

    def _special(self, item: SpooledFile) -> None:
        self._keep_bytes(item)
        key = SPECIAL_FILE_SETTINGS.get(item.path.lower())
        if key:
            collections.set_setting(self.tx, key, markdown.decode(item.data).text)
        self.tally.outcomes["special"] += 1

    def _sidecar(self, item: SpooledFile) -> None:
        self.tally.outcomes["sidecar"] += 1
        known = self.plan.past.find(item.path) if self.plan.past.same_folder else None
        before = history.imported_bytes(self.db, known.raw_id) if known else indexer.EMPTY_SIDECAR
        self._keep_bytes(item)
        try:
            wanted = indexer.parse_sidecar(item.data)
        except ValueError as error:
            self.tally.note(item.path, f"not JSON, kept as it is: {error}")
            return
        page_path = indexer.sidecar_page_stem(item.path)
        address = self.slugs.get(page_path) or slugs.from_path(page_path + ".md")
        stored = pages.find(self.db, address)
        if stored is None:
            self.tally.note(item.path, f"there is no page {address} for it; kept as it is")
            return
        applied = sync.apply_sidecar(self.tx, self.db, stored.id, before, wanted, self.now, force=self.force)
        self.tally.note(item.path, *applied.notes)
        self.tally.raw_data += applied.written
        if applied.changed and stored.slug not in self.written:
            page_edits.touch(self.tx, stored.slug, expected_version=None, now=self.now)
            self.written.add(stored.slug)

    def _links_and_facts(self, beside: LinksAndFactsFile) -> None:
        """Restore links and facts that are in no text.

        The file itself is not stored, because it would retain data of pages that are forgotten later.
        """
        path = exporter.LINKS_AND_FACTS_PATH
        try:
            contents = exporter.parse_links_and_facts(beside.data)
        except ValueError as error:
            self.tally.note(path, f"not taken in: {error}")
            history.log_ingest(self.tx, self.import_id, path, beside.content_hash, [], self.now)
            return
        find = partial(self._place, files=contents.files)
        returning = exporter.LinksAndFactsImport(self.db, self.tx, find, self.now)
        returning.run(contents, self.new if beside.known else None)
        self.tally.links, self.tally.facts = returning.links, returning.facts
        self.tally.note(path, *exporter.shorten_problems(returning.problems))
        for place in returning.changed.values():
            if place.collection != IMPORT_COLLECTION or place.slug not in self.written:
                page_edits.touch(
                    self.tx, place.slug, expected_version=None, now=self.now, collection=place.collection
                )
        page_ids = sorted(returning.changed)
        history.log_ingest(self.tx, self.import_id, path, beside.content_hash, page_ids, self.now)

    def _place(self, address: str, files: dict[str, str]) -> exporter.ImportedPageRef | None:
        """Return the page for an address in the export: the one made from its file, else one with that slug."""
        collection, name = slugs.split_address(address)
        own = self.slugs.get(indexer.page_stem(files.get(address, address.replace("::", "/", 1))))
        inside = name if collection is None else slugs.from_path(f"{collection}/{name}.md")
        for there, each in ((IMPORT_COLLECTION, own), (IMPORT_COLLECTION, inside), (collection, name)):
            stored = pages.find(self.db, each, there) if each and there else None
            if stored:
                return exporter.ImportedPageRef(stored.id, stored.collection, stored.slug)
        return None


def import_folder(
    db: Database,
    root: str,
    *,
    import_id: str,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
    force: bool = False,
) -> ImportReport:
    """Import a folder. If it fails, the database is unchanged.

    With `force`, unchanged files are imported again, and pages that were edited in the database are overwritten.
    """
    root = os.path.realpath(root)
    with Folder(root) as folder:
        while True:
            with Spool(os.path.dirname(db.path), db.path) as spool:
                reading = ImportReader(db, folder, spool, progress, force=force)
                plan, tally = reading.run()
                if not spool.count and plan.beside is None:
                    return tally.report(None)
                taking_in = ImportWriter(
                    db, plan, spool, tally, import_id, now, new_uuid, progress, force=force
                )
                try:
                    db.write(taking_in.run)
                except ConcurrentImport:
                    continue
                return tally.report(import_id)


class ImportReader:
    """Reads each file once: files with known content are skipped, the others are parsed and spooled."""

    def __init__(
        self, db: Database, folder: Folder, spool: Spool, progress: Progress, *, force: bool = False
    ) -> None:
        self.db = db
        self.force = force
        self.folder = folder
        self.spool = spool
        self.progress = progress
        self.tally = ImportTally(scanner.printable(folder.root))
        self.plan = ImportPlan(ImportHistory(db, self.tally.folder), [], {}, set())
        self.fresh: set[str] = set()  # pages new to all imports, by path without ending
        self.different: set[str] = set()  # known pages with changed content
        self.done = self.left = self.same = 0

    def run(self) -> tuple[ImportPlan, ImportTally]:
        found = self._walk()
        for each in found:
            if each.kind != "sidecar":
                self._file(each, len(found))
        self.plan.past.judge(self.same, len(self.different))
        # Sidecars come last, because an unchanged one has to be applied again if its page is new.
        for each in found:
            if each.kind == "sidecar":
                self._file(each, len(found))
        self.progress(len(found), len(found), "Reading")
        self._look_beside()
        past = self.plan.past
        if past.same_folder:
            self.tally.gone = [path for path in past.files if path not in past.seen]
        return self.plan, self.tally

    def _walk(self) -> list[FoundFile]:
        found = []
        for entry in self.folder.walk():
            self.tally.files_seen += 1
            if isinstance(entry, FoundFile):
                found.append(entry)
            elif entry.path != f"{exporter.DATA_FOLDER}/" or not self._beside():
                self.tally.leave_out(entry.path, entry.reason)
        return found

    def _beside(self) -> bool:
        """Read the links-and-facts file of an export. Return False if there is none."""
        path, largest = exporter.LINKS_AND_FACTS_PATH, exporter.MAX_LINKS_AND_FACTS_BYTES
        try:
            data = self.folder.read(path, largest)
        except FileNotFoundError:
            return False
        except OSError as error:
            self.tally.leave_out(path, scanner.SYMLINK if error.errno == errno.ELOOP else scanner.UNREADABLE)
            return True
        if len(data) > largest:
            self.tally.outcomes["too_large"] += 1
            self.tally.note(
                path, f"too large: {largest:,} bytes are allowed; its links and facts are left out"
            )
            return True
        self.tally.outcomes["links_and_facts"] += 1
        content_hash = indexer.digest(data)
        known = not self.force and history.earlier_ingest(self.db, content_hash, path) is not None
        self.plan = self.plan._replace(beside=LinksAndFactsFile(data, content_hash, known))
        return True

    def _look_beside(self) -> None:
        """Skip a links-and-facts file that was imported before, unless there are new pages."""
        beside = self.plan.beside
        if beside and beside.known and not self.fresh:
            self.plan = self.plan._replace(beside=None)

    def _file(self, found: FoundFile, total: int) -> None:
        self.progress(self.done, total, "Reading")
        self.done += 1
        self.left = total - self.done
        known = self.plan.past.find(found.path)
        data = self._bytes(found)
        if data is None:
            return
        self.plan.paths.add(found.path)
        content_hash = indexer.digest(data)
        same = known is not None and known.content_hash == content_hash
        if found.kind == "page":
            self._page(found.path, data, content_hash, known, same)
        elif same and not self.force and not self._has_new_page(found):
            assert known is not None
            self.plan.carried[found.path] = known
            self.tally.outcomes[found.kind] += 1
        else:
            self.spool.add(SpooledFile(found.path, content_hash, data, None))

    def _bytes(self, found: FoundFile) -> bytes | None:
        try:
            data = self.folder.read(found.path)
        except FileNotFoundError:
            self.tally.leave_out(found.path, scanner.GONE)
        except OSError:
            self.tally.leave_out(found.path, scanner.UNREADABLE)
        else:
            if len(data) <= LARGEST_FILE:
                return data
            self.tally.outcomes["too_large"] += 1
            size = max(found.size, len(data))
            text = f"too large: {size:,} bytes, and {LARGEST_FILE:,} are allowed; split it"
            self.tally.note(found.path, text)
        return None

    def _page(
        self, path: str, data: bytes, content_hash: str, known: ImportedFile | None, same: bool
    ) -> None:
        if known and known.page_id is not None and same:
            self.same += 1
            if not self.force:
                self.plan.carried[path] = known
                self._unchanged(path, data, known)
                return
        (self.different if known else self.fresh).add(indexer.page_stem(path))
        try:
            self._parse(path, data, content_hash)
        except (OSError, QuaidError):
            raise
        except Exception as error:
            self.tally.fail(path, indexer.failure_note(error))

    def _parse(self, path: str, data: bytes, content_hash: str) -> None:
        if self.spool.may_leave(self.spool.count, self.left):
            self.plan.claims.append(indexer.SlugClaim(path, indexer.requested_identity(path, data).slug))
            self.spool.leave(path, content_hash, data)
            return
        made, notes, _ = indexer.parse_file(path, data)
        self.tally.note(path, *notes)
        self.plan.claims.append(indexer.SlugClaim(path, made.slug))
        self.spool.add(SpooledFile(path, content_hash, data, made))

    def _unchanged(self, path: str, data: bytes, known: ImportedFile) -> None:
        """Count a file with known content: its page may have been edited since."""
        outcome: ImportOutcome = "unchanged"
        if known.page_version_now != known.page_version_at_import:
            stored = pages.find(self.db, known.slug or "")
            if stored and not matches_bytes(stored, path, data):
                outcome = "edited" if known.page_version_at_import else "conflict"
        if outcome == "conflict":
            self.tally.conflict(path, known.slug or "")
        else:
            self.tally.outcomes[outcome] += 1

    def _has_new_page(self, found: FoundFile) -> bool:
        if found.kind != "sidecar":
            return False
        page_path = indexer.sidecar_page_stem(found.path)
        return page_path in self.fresh or (page_path in self.different and not self.plan.past.same_folder)
