"""Write stored files back to folders, and compare a folder with the index or with an export of it.

Either all files of a collection are written back, or only the files of quarantined pages (pages whose file is
gone or ignored).
"""

import hashlib
import json
import os
import shutil
import sys
from collections import Counter
from typing import Any, Literal, NamedTuple

from quaid.errors import AlreadyExists, FileChanged, FileTrouble, NoPlaceToRestore, NotFound
from quaid.folders import atomic_write, export as exporter, indexer, scanner
from quaid.folders.atomic_write import FolderWriter
from quaid.folders.indexer import ID_KEY
from quaid.folders.scanner import LARGEST_FILE, PAGE_ENDINGS, Folder, Progress
from quaid.folders.sync import INCOMPLETE_REASONS, open_folder, update_heading_pages
from quaid.model import page as page_model, slug as slugs
from quaid.model.page import Page
from quaid.model.sync_plan import ScannedFile, SkippedEntry
from quaid.storage import (
    collections,
    erase as erasure,
    facts as assertions,
    files as durable_files,
    history,
    page_edits,
    pages,
)
from quaid.storage.collections import Collection, Collections, CollectionState, PageFile
from quaid.storage.erase import QuarantinedPage
from quaid.storage.facts import FactRow
from quaid.storage.links import AddedLink, added_links
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.sqlite.errors import translate_os_errors


class RestoreRecord(NamedTuple):
    name: str
    root: str
    files: int
    bytes: int
    left: str | None
    """Path of the previous folder, if it still exists. That folder is not changed."""
    without_bytes: tuple[str, ...]
    """Slugs of pages for which no file was written, because the bytes of the file are not stored."""


def restore_collection(
    db: Database, collection: Collection, target: str, *, now: str, token: str, progress: Progress
) -> RestoreRecord:
    """Write the files of a collection to a new or empty folder, and attach that folder to the collection."""
    # A killed restore leaves the state "restoring", and the folder that it wrote may be complete already.
    before: CollectionState = "detached" if collection.state == "restoring" else collection.state
    files = collection.page_files(db)
    with_bytes = [file for file in files if file.raw_id is not None]
    rules = collection.ignore_patterns.encode()
    is_done = collection.state == "restoring" and _folder_matches(target, with_bytes, rules)
    if not is_done:
        _refuse_occupied(target)
    db.write(lambda tx: collection.update(tx, state="restoring", updated_at=now))
    try:
        if not is_done:
            _write_staged(db, with_bytes, rules, target, token, progress)
        size = _attach_folder(db, collection, with_bytes, target, now)
    except BaseException:
        db.write(lambda tx: collection.update(tx, state=before, updated_at=now))
        raise
    old = collection.root if collection.root != target and os.path.isdir(collection.root or "") else None
    without_bytes = tuple(file.slug for file in files if file.raw_id is None)
    return RestoreRecord(collection.name, target, len(with_bytes), size, old, without_bytes)


def _refuse_occupied(target: str) -> None:
    with translate_os_errors(target):
        if os.path.lexists(target) and not os.path.isdir(target):
            raise FileTrouble(path=target, problem="is a file, not a folder; name another one")
        if os.path.isdir(target) and os.listdir(target):
            raise AlreadyExists(path=target, hint="It is not empty; choose a new or empty folder.")


def _write_staged(
    db: Database, files: list[PageFile], rules: bytes, target: str, token: str, progress: Progress
) -> None:
    """Write the files to a temporary folder beside the target, verify them, then rename the folder.

    The target is therefore never incomplete.
    """
    above, name = os.path.split(target)
    staged = os.path.join(above, f".{name[:100]}.quaid-{token}")
    with translate_os_errors(target):
        durable_files.make_folders(above)
        try:
            with FolderWriter(staged, force=False) as writer:
                for done, file in enumerate(files):
                    progress(done, len(files), "Writing")
                    writer.write(str(file.raw_path), history.version_bytes(db, file.raw_id or 0))
                if rules:
                    writer.write(scanner.IGNORE_FILE, rules)
            os.sync()
            if not _folder_matches(staged, files, rules):
                raise FileTrouble(path=staged, problem="does not read as it was written; check the disk")
            progress(len(files), len(files), "Writing")
            os.rename(staged, target)  # fails if the target is a folder that is not empty
            durable_files.sync_folder(above)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def _folder_matches(folder: str, page_files: list[PageFile], rules: bytes) -> bool:
    """Return True if a folder contains exactly these files and ignore rules, byte for byte."""
    if not os.path.isdir(folder):
        return False
    files = sum(len(names) for _, _, names in os.walk(folder))
    try:
        with Folder(folder) as opened:
            if rules and opened.read(scanner.IGNORE_FILE) != rules:
                return False
            return files == len(page_files) + bool(rules) and all(
                indexer.digest(opened.read(str(file.raw_path))) == file.raw_hash for file in page_files
            )
    except OSError:
        return False


def _attach_folder(db: Database, collection: Collection, files: list[PageFile], target: str, now: str) -> int:
    """Make the target the folder of the collection, record its files, and return their size in bytes."""
    with Folder(target, scanner.page_endings(collection.kind)) as folder:
        entries = [(file, folder.look(str(file.raw_path))) for file in files]
        identity = str(folder.identity)

    def work(tx: Transaction) -> int:
        size = 0
        collection.forget_files(tx)
        for page_file, file in entries:
            if isinstance(file, ScannedFile):  # the next sync handles files that were removed meanwhile
                row = (file, str(page_file.raw_hash), page_file.page_id, None)
                collection.record_files(tx, [row], now)
                size += file.stat.size
        collection.update(tx, root_path=target, state="active", updated_at=now)
        collection.record_sync(tx, now, root_identity=identity)
        return size

    return db.write(work)


# Quarantined pages


class QuarantineRestoreRecord(NamedTuple):
    slug: str
    collection: str
    path: str
    version: int


def restore_quarantined_page(
    db: Database, hidden: QuarantinedPage, token: str, now: str
) -> QuarantineRestoreRecord:
    """Write the file of a quarantined page back to its path, and restore the page.

    In a collection without a folder, such as a shared space, only the page is restored.
    """
    collection = Collections(db).require(hidden.collection)
    if collection.root is None and collection.state == "active":
        version = db.write(lambda tx: _unhide_without_file(db, tx, hidden, now))
        return QuarantineRestoreRecord(hidden.slug, collection.name, hidden.slug, version)
    if collection.root is None or not collection.writable or collection.state != "active":
        why = "is read-only" if collection.is_attached else f"is {collection.state}"
        raise NoPlaceToRestore(name=collection.name, why=why, slug=hidden.slug)
    path = hidden.path or f"{hidden.slug}.md"
    if hidden.raw_id is None:
        is_heading = collections.file_of_page(db, hidden.id)[1] is not None
        why = (
            "has it as a heading of a file, with which it comes back" if is_heading else "has lost its bytes"
        )
        raise NoPlaceToRestore(name=collection.name, why=why, slug=hidden.slug)
    data = history.version_bytes(db, hidden.raw_id)
    with Folder(collection.root, scanner.page_endings(collection.kind)) as folder:
        try:
            atomic_write.create_file(folder, path, data, token)
        except FileChanged:
            raise _occupied_error(collection, path) from None
        written = atomic_write.written_file(folder, path)
    return db.write(lambda tx: _unhide_page(tx, collection, hidden, written, data, now, token))


def _unhide_without_file(db: Database, tx: Transaction, hidden: QuarantinedPage, now: str) -> int:
    target = erasure.find_target(db, hidden.slug, hidden.collection)
    if target is None:
        raise NoPlaceToRestore(name=hidden.collection, why="has lost it", slug=hidden.slug)
    page = page_model.build_page(
        target.slug,
        json.loads(target.frontmatter),
        target.truth,
        target.timeline,
        fallback_title=target.title,
    )
    saved = page_edits.save(tx, page, uuid="", now=now, expected_version=None, collection=hidden.collection)
    history.record_author(tx, saved.id, saved.version)
    return saved.version


def _occupied_error(collection: Collection, path: str) -> AlreadyExists:
    hint = "Move it away first; nothing was written over."
    if scanner.is_ignored(scanner.ignore_matcher(collection.ignore_patterns, collection.kind), path):
        hint = (
            f"It is ignored: `quaid collection ignore remove {collection.name} PATTERN` brings the page back."
        )
    return AlreadyExists(path=path, hint=hint)


def _unhide_page(
    tx: Transaction,
    collection: Collection,
    hidden: QuarantinedPage,
    file: ScannedFile,
    data: bytes,
    now: str,
    token: str,
) -> QuarantineRestoreRecord:
    _displace_page(tx, collection, hidden, file, now)
    read = indexer.parse_file(file.path, data)
    page = indexer.with_slug(read.page, _free_slug(tx, collection, hidden, read.page.slug, file.path))
    if page.slug != hidden.slug:
        page_edits.change_slug(tx, collection.id, hidden.id, hidden.slug, page.slug, now, redirect=False)
    saved = page_edits.save(
        tx, page, uuid=hidden.uuid, now=now, expected_version=None, collection=collection.name, cut=False
    )
    collection.record_files(tx, [(file, indexer.digest(data), saved.id, None)], now)
    if read.nodes:
        update_heading_pages(tx, collection, saved.id, page.slug, file.path, read.nodes, now, token)
    return QuarantineRestoreRecord(page.slug, collection.name, file.path, saved.version)


def _displace_page(
    tx: Transaction, collection: Collection, hidden: QuarantinedPage, file: ScannedFile, now: str
) -> None:
    """If the index has another page for this path, move that page to quarantine.

    The file of that page is gone, because otherwise the restored file could not have been created at the path.
    """
    indexed = collection.indexed_file(tx, file.path)
    other = indexed.page_id if indexed else None
    if other is not None and other != hidden.id:
        collection.forget_files(tx, file.path)
        erasure.quarantine_page(tx, other, now)


def _free_slug(
    tx: Transaction, collection: Collection, hidden: QuarantinedPage, asked: str, path: str
) -> str:
    """Return the slug for a restored page: the slug that it kept in quarantine, else the requested slug.

    Another page in quarantine that has the requested slug loses it. If a visible page has the requested slug, the
    restored page gets that slug with a suffix.
    """
    if not page_edits.is_vacated_slug(hidden.slug, hidden.id):
        return hidden.slug
    holder = collection.slug_holder(tx, asked)
    if holder is None:
        return asked
    if holder.is_hidden:
        page_edits.vacate_slug(tx, holder.page_id)
        return asked
    return indexer.suffixed_slug(asked, path, collection.slugs_beginning(tx, asked))


class QuarantineExportRecord(NamedTuple):
    folder: str
    pages: tuple[str, ...]
    files: int


def export_quarantined(
    db: Database, chosen: list[QuarantinedPage], target: str, force: bool, now: str
) -> QuarantineExportRecord:
    """Write the files of quarantined pages to a folder durably, and record the export of these pages.

    Each file gets a sidecar, a JSON file with the data of the page that is not in the file. The
    links-and-facts file contains the links and facts of all these pages.
    """
    paths: list[str] = []
    with FolderWriter(target, force=force) as writer:
        for hidden in chosen:
            path = _place(hidden)
            paths += [path, indexer.sidecar_path(indexer.page_stem(path))]
            writer.write(path, history.version_bytes(db, hidden.raw_id or 0))
            writer.write(paths[-1], _quarantine_sidecar(db, hidden))
        beside = _links_and_facts(db, chosen)
        if beside:
            paths.append(exporter.LINKS_AND_FACTS_PATH)
            writer.write(exporter.LINKS_AND_FACTS_PATH, beside)
        for path in paths:
            durable_files.sync_file(os.path.join(target, path))
        for folder in {os.path.dirname(os.path.join(target, path)) for path in paths}:
            durable_files.sync_folder(folder)

    def record(tx: Transaction) -> None:
        for hidden in chosen:
            hidden.mark_exported(tx, os.path.abspath(target), now)

    db.write(record)
    return QuarantineExportRecord(target, tuple(hidden.slug for hidden in chosen), len(paths))


def _place(hidden: QuarantinedPage) -> str:
    """Return the path of a page's file within the export."""
    return f"{hidden.collection}/{hidden.path or hidden.slug + '.md'}"


def _links_and_facts(db: Database, chosen: list[QuarantinedPage]) -> bytes | None:
    """Return the content of the links-and-facts file for these pages, or None if it would be empty."""
    links: dict[int, tuple[str, str, Any]] = {}
    facts: list[tuple[str, FactRow]] = []
    places = {slugs.address(hidden.collection, hidden.slug): _place(hidden) for hidden in chosen}
    for hidden, page in zip(chosen, places, strict=True):
        for link in _added_links(db, hidden):
            start = slugs.address(link.from_collection, link.from_slug)
            links[link.id] = start, slugs.address(link.to_collection, link.to_slug), link
        facts += [(page, fact) for fact in assertions.read_facts(db, "page", [hidden.id])]
    if not links and not facts:
        return None
    return exporter.render_links_and_facts([links[id] for id in sorted(links)], facts, places)


def _added_links(db: Database, page: QuarantinedPage) -> list[AddedLink]:
    return added_links(db, 1, sys.maxsize, page.id)


def _quarantine_sidecar(db: Database, hidden: QuarantinedPage) -> bytes:
    """Render a sidecar that an import can read. Raw data is under `sources`, other data under other keys."""
    value = {
        "sources": {data.source: data.data for data in pages.read_raw_data(db, hidden.id)},
        "quaid_id": hidden.uuid,
        "slug": hidden.slug,
        "collection": hidden.collection,
        "quarantined_at": hidden.quarantined_at,
        "links": [
            {
                "id": link.id,
                "from_page": f"{link.from_collection}::{link.from_slug}",
                "to_page": f"{link.to_collection}::{link.to_slug}",
                "relationship": link.relationship,
                "valid_from": link.valid_from,
                "valid_until": link.valid_until,
                "context": link.context,
                "created_at": link.created_at,
            }
            for link in _added_links(db, hidden)
        ],
        "assertions": [fact._asdict() for fact in assertions.read_facts(db, "page", [hidden.id])],
    }
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


# Audit of a collection

DifferenceKind = Literal["folder", "unreadable", "no page", "no file", "changed", "bytes", "id"]


class AuditDifference(NamedTuple):
    kind: DifferenceKind
    where: str
    problem: str


class AuditRecord(NamedTuple):
    name: str
    root: str
    files: int
    pages: int
    differences: tuple[AuditDifference, ...]

    @property
    def exit_status(self) -> int:
        return 1 if self.differences else 0


def audit_collection(db: Database, collection: Collection, progress: Progress) -> AuditRecord:
    """Compare the files of a collection with the index and with the stored bytes."""
    run = AuditRun(db, collection, progress)
    files = collection.page_files(db)
    try:
        with open_folder(collection) as folder:
            run.read(folder)
    except (NotFound, FileTrouble) as trouble:
        run.report("folder", collection.root or "", str(trouble).rstrip("."))
    else:
        run.compare(files)
    run.check_bytes(files)
    root = collection.root or ""
    return AuditRecord(collection.name, root, len(run.hashes), len(files), tuple(run.differences))


class AuditRun:
    def __init__(self, db: Database, collection: Collection, progress: Progress) -> None:
        self.db = db
        self.collection = collection
        self.progress = progress
        self.differences: list[AuditDifference] = []
        self.hashes: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.unreadable: list[str] = []

    def report(self, kind: DifferenceKind, where: str, problem: str) -> None:
        self.differences.append(AuditDifference(kind, where, problem))

    def read(self, folder: Folder) -> None:
        """Record the hash and the id, if any, of each page file of the folder."""
        ignored = scanner.ignore_matcher(self.collection.ignore_patterns, self.collection.kind)
        files: list[ScannedFile] = []
        for entry in folder.walk(ignored):
            if isinstance(entry, ScannedFile):
                files += [entry] if entry.kind != "sidecar" else []
            elif entry.reason in INCOMPLETE_REASONS:
                self.unreadable.append(entry.path)
                self.report("unreadable", entry.path, entry.reason)
        for done, file in enumerate(files):
            self.progress(done, len(files), "Reading")
            self._read(folder, file.path)
        self.progress(len(files), len(files), "Reading")

    def _read(self, folder: Folder, path: str) -> None:
        try:
            data = folder.read(path)
        except OSError as error:
            self.unreadable.append(path)
            self.report("unreadable", path, f"cannot be read: {error.strerror}")
            return
        self.hashes[path] = indexer.digest(data) if len(data) <= LARGEST_FILE else ""
        if ID_KEY.encode() in data or indexer.is_org(path):
            named = indexer.file_id(indexer.parse_file(path, data).page, path)
            if named is not None:
                self.ids[path] = named

    def compare(self, page_files: list[PageFile]) -> None:
        """Compare the files with the pages in the index."""
        troubles = {
            file.path: file.problem
            for files in Collections(self.db).file_problems(self.collection.id).values()
            for file in files
        }
        by_path = {file.path: file for file in page_files if file.path is not None}
        for path in self.hashes.keys() - by_path.keys():
            self.report("no page", path, troubles.get(path, "the index has not taken it in; a sync will"))
        for page_file in page_files:
            if page_file.path is None:
                self.report("no file", page_file.slug, "the index knows of no file")
            elif page_file.path not in self.hashes:
                if not any(
                    page_file.path == path or page_file.path.startswith(path) for path in self.unreadable
                ):
                    self.report("no file", page_file.path, f"the file of {page_file.slug} is not there")
            elif self.hashes[page_file.path] != page_file.content_hash:
                self.report(
                    "changed", page_file.path, "it is not what the index has read; a sync will take it in"
                )
        self._compare_ids(by_path)
        self.differences.sort()

    def _compare_ids(self, by_path: dict[str, PageFile]) -> None:
        times = Counter(self.ids.values())
        for path, named in self.ids.items():
            if times[named] > 1:
                self.report(
                    "id", path, f"{times[named]} files name the id {named}; take it out of the copies"
                )
            elif path in by_path and by_path[path].uuid != named:
                self.report("id", path, f"it names the id {named}, its page has {by_path[path].uuid}")

    def check_bytes(self, files: list[PageFile]) -> None:
        """Check that the stored bytes of each page are intact and are the bytes last read from its file."""
        for done, file in enumerate(files):
            self.progress(done, len(files), "Comparing")
            where = file.path or file.slug
            if file.raw_id is None or file.raw_hash is None:
                self.report("bytes", where, "no bytes are kept of it; it could not be restored")
            elif indexer.digest(history.version_bytes(self.db, file.raw_id)) != file.raw_hash:
                self.report("bytes", where, "the bytes that are kept of it are damaged")
            elif file.content_hash is not None and file.raw_hash != file.content_hash:
                self.report("bytes", where, "the bytes that are kept of it are not those that were last read")
        self.progress(len(files), len(files), "Comparing")


# Comparison of an export with the original folder


class ComparedPage(NamedTuple):
    """A parsed page of a compared folder.

    Instead of the text above the timeline and the timeline, it has their hashes, `truth` and `timeline`, so
    that folders of any size can be compared.
    """

    path: str
    front: dict[str, Any]
    truth: str
    timeline: str
    entries: int
    why: str = ""
    """Why an import would skip the file. If set, `truth` is the hash of the whole file."""

    @property
    def id(self) -> str:
        return str(self.front.get("id") or self.front.get(indexer.ID_KEY) or "")


class FolderContents(NamedTuple):
    pages: dict[str, ComparedPage]  # by slug
    special: dict[str, ComparedPage]  # index.md etc. at the root, which an import does not treat as pages
    raw: dict[
        str, tuple[str, str | None]
    ]  # path and hash of a slug's sidecar; None if it is invalid or empty
    contested: set[str]  # slugs of pages that requested the same slug; a sync may assign them differently
    troubles: list[tuple[str, str]]


def compare_folders(original: str, exported: str, progress: Progress) -> list[tuple[str, str]]:
    """Return the differences between a folder and its export, as pairs of a path and a problem."""
    before, after = _read_folder(original, progress), _read_folder(exported, progress)
    _take_special(before, after)
    _take_special(after, before)
    _match_by_id(before.pages, after.pages)
    _match_by_content(before, after.pages)
    differences = before.troubles + after.troubles
    for address, one in before.pages.items():
        if address not in after.pages:
            why = f": it is left out by every import ({one.why})" if one.why else ""
            differences.append((one.path, f"page {address} is missing in the export{why}"))
        else:
            differences += [(one.path, problem) for problem in _page_differences(one, after.pages[address])]
    differences += [
        (one.path, f"page {address} is only in the export")
        for address, one in after.pages.items()
        if address not in before.pages
    ]
    differences += _sidecar_differences(before, after)
    return sorted(differences + _missing_links_and_facts(original, exported))


def _missing_links_and_facts(original: str, exported: str) -> list[tuple[str, str]]:
    """Return how many links and how many facts of the original are missing in the export, as differences."""
    path = exporter.LINKS_AND_FACTS_PATH
    try:
        before, after = _read_links_and_facts(original), _read_links_and_facts(exported)
    except ValueError as error:
        return [(path, f"cannot be compared: {error}")]
    differences = []
    for what, one, other in (("link", before.links, after.links), ("fact", before.facts, after.facts)):
        missing = (Counter(filter(None, one)) - Counter(filter(None, other))).total()
        if missing:
            differences.append((path, f"{missing} {what}{'s' * (missing > 1)} missing in the export"))
    return differences


def _read_links_and_facts(root: str) -> exporter.LinksAndFacts:
    """Return the contents of a folder's links-and-facts file; they are empty if the file cannot be read.

    Raise ValueError if the file is invalid.
    `supersedes` is set to None, because it is a position in a list, and the positions may differ between two
    files.
    """
    with Folder(os.path.realpath(root)) as folder:
        try:
            contents = exporter.parse_links_and_facts(
                folder.read(exporter.LINKS_AND_FACTS_PATH, exporter.MAX_LINKS_AND_FACTS_BYTES)
            )
        except OSError:
            return exporter.LinksAndFacts([], [], {}, [])
    return contents._replace(facts=[fact and fact._replace(supersedes=None) for fact in contents.facts])


def _take_special(here: FolderContents, other: FolderContents) -> None:
    """Treat a special file (index.md etc.) as a page if the other folder has a page with its slug."""
    for address, one in here.special.items():
        if address in other.pages:
            here.pages.setdefault(address, one)


def _match_by_id(before: dict[str, ComparedPage], after: dict[str, ComparedPage]) -> None:
    """In `after`, give pages without a counterpart the slug of the page in `before` that has the same id."""
    ids = {one.id: address for address, one in before.items() if one.id and address not in after}
    for address, one in list(after.items()):
        if address not in before and one.id in ids:
            after[ids.pop(one.id)] = after.pop(address)


def _match_by_content(before: FolderContents, after: dict[str, ComparedPage]) -> None:
    """Match the pages in `before.contested` by content, because their slugs in the export may differ.

    In `after`, a page with the same content gets the slug that it has in `before`. A different page that had
    this slug gets another slug.
    """
    here = {address: before.pages[address] for address in before.contested}
    differing = {
        address
        for address, one in here.items()
        if address not in after or _page_differences(one, after[address])
    }
    free = {address for address in after if address in differing or address not in before.pages}
    matched: dict[str, ComparedPage] = {}
    for address in sorted(differing):
        same = next(
            (
                candidate
                for candidate in sorted(free)
                if not _page_differences(here[address], after[candidate])
            ),
            None,
        )
        if same is not None:
            free.discard(same)
            matched[address] = after.pop(same)
    displaced = [after.pop(address) for address in matched if address in after]
    after.update(matched)
    vacant = sorted(differing - {*after}) + [f"{one.path} in the export" for one in displaced]
    after.update(zip(vacant, displaced, strict=False))


def _page_differences(before: ComparedPage, after: ComparedPage) -> list[str]:
    problems = []
    if bool(before.why) != bool(after.why):
        return [f"cannot be compared: {before.why or after.why}"]
    if before.truth != after.truth:
        problems.append("the truth differs")
    if before.timeline != after.timeline:
        problems.append(f"the timeline differs ({before.entries} dated entries, exported {after.entries})")
    for key in sorted({*before.front, *after.front}):
        if key not in after.front:
            problems.append(f"front matter: {key} is missing in the export")
        elif key not in before.front:
            problems.append(f"front matter: {key} is only in the export")
        elif _json(before.front[key]) != _json(after.front[key]):
            problems.append(f"front matter: {key} differs")
    return problems


def _sidecar_differences(before: FolderContents, after: FolderContents) -> list[tuple[str, str]]:
    differences = []
    for address in sorted({*before.raw, *after.raw}):
        path, data = before.raw.get(address, (None, None))
        other_path, other = after.raw.get(address, (None, None))
        if path is None:
            differences.append((str(other_path), "the sidecar is only in the export"))
        elif address in before.pages and data is not None and data != other:
            problem = "is missing in the export" if other_path is None else "differs"
            differences.append((path, f"the sidecar {problem}"))
    return differences


def _read_folder(root: str, progress: Progress) -> FolderContents:
    claims: list[tuple[tuple[str, str], ComparedPage]] = []
    contents = FolderContents({}, {}, {}, set(), [])
    raw: list[tuple[str, bytes]] = []
    with Folder(root, PAGE_ENDINGS) as folder:
        files = list(folder.walk())
        for done, file in enumerate(files):
            progress(done, len(files), "Comparing")
            if isinstance(file, SkippedEntry):
                is_folder = file.reason in (scanner.UNREADABLE, scanner.TOO_DEEP)
                is_page = is_folder or file.path.lower().endswith(PAGE_ENDINGS)
                if is_page and file.reason in scanner.UNUSABLE_REASONS:
                    contents.troubles.append((file.path, f"is left out by every import: {file.reason}"))
                continue
            try:
                data = folder.read(file.path)
            except OSError as error:
                contents.troubles.append((file.path, f"cannot be read: {error.strerror}"))
                continue
            if file.kind == "sidecar":
                raw.append((file.path, data))
            elif len(data) > LARGEST_FILE:
                claims.append(_oversized_page(folder, file))
            elif file.kind == "special":
                contents.special.update((claim[1], one) for claim, one in _pages_of_file(file.path, data))
            else:
                claims += _pages_of_file(file.path, data)
    assigned = indexer.assign_slugs([claim for claim, _ in claims])
    claim_counts = Counter(name for (_, name), _ in claims)
    contents.contested.update(assigned[path] for (path, name), _ in claims if claim_counts[name] > 1)
    contents.pages.update({assigned[path]: one for (path, _), one in claims})
    by_stem = {indexer.page_stem(path): assigned[path] for (path, _), _ in claims}
    for path, data in raw:
        page_path = indexer.sidecar_page_stem(path)
        address = by_stem.get(page_path) or slugs.from_path(page_path + ".md")
        contents.raw[address] = (path, _sources_hash(data))
    progress(len(files), len(files), "Comparing")
    return contents


def _oversized_page(folder: Folder, scanned: ScannedFile) -> tuple[tuple[str, str], ComparedPage]:
    whole = hashlib.sha256()
    for piece in folder.pieces(scanned.path):
        whole.update(piece)
    why = f"too large: {scanned.stat.size:,} bytes, and {LARGEST_FILE:,} are allowed"
    claim = (scanned.path, slugs.from_path(scanned.path))
    return claim, ComparedPage(scanned.path, {}, whole.hexdigest(), "", 0, why)


def _pages_of_file(path: str, data: bytes) -> list[tuple[tuple[str, str], ComparedPage]]:
    """Return the page of a file and the pages of its headings, each with a path and the slug it requests."""
    read = indexer.parse_file(path, data)
    file_pages = [((path, read.page.slug), _compared_page(path, read.page))]
    for number, node in enumerate(read.nodes):
        file_pages.append(((f"{path}/{number}", node.slug), _compared_page(path, node)))
    return file_pages


def _compared_page(path: str, page: Page) -> ComparedPage:
    # The slug is not compared, because pages are matched by slug. A title added for the export is ignored.
    front = {key: value for key, value in page.frontmatter.items() if key != "slug"}
    front["title"] = page.title
    hashes = indexer.digest(page.truth.encode()), indexer.digest(page.timeline.encode())
    return ComparedPage(path, front, *hashes, len(page.entries))


def _sources_hash(data: bytes) -> str | None:
    try:
        sources = indexer.parse_sidecar(data)
    except ValueError:
        return None
    return indexer.digest(_json(sources).encode()) if sources else None


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
