"""Import the files of a folder, or of another program's export, as pages of the default collection.

An import is a single transaction. The folder is not changed, no page is removed, and pages that were edited in
the database since their last import are kept, unless the import is forced.
"""

import errno
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from quaid.errors import FileTrouble, NotFound, VersionConflict
from quaid.folders import attachments, documents, export as exporter, indexer, page_writer, scanner
from quaid.folders.indexer import SpooledFile
from quaid.folders.scanner import FILE_FLAGS, FileNote, Folder, Progress, printable
from quaid.folders.sync import FolderRun
from quaid.formats import foreign_notes, markdown
from quaid.formats.documents import MAX_UNPACKED_BYTES, BrokenArchive, ZipReader, check_sizes
from quaid.formats.foreign_notes import (
    CONVERSATION_SOURCES,
    ForeignFact,
    ForeignLink,
    ForeignPage,
    ForeignRecord,
    InputFile,
    Item,
)
from quaid.model import slug as slugs
from quaid.model.dates import timestamp
from quaid.model.page import IMPORTED, Page
from quaid.model.sync_plan import FileSignature, ScannedFile, SkippedEntry, path_key
from quaid.storage import collections, history, page_edits, pages, trust
from quaid.storage.collections import Collections
from quaid.storage.history import ImportedFile, Imports
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database, Transaction

if TYPE_CHECKING:
    from zipfile import ZipInfo

IMPORT_COLLECTION = "default"
"""Name of the collection that imported pages are added to."""

SPECIAL_FILE_SETTINGS = {"index.md": "original_index", "schema.md": "original_schema"}

ImportOutcome = Literal[
    "new",  # a page was created
    "changed",  # the file has changed since the last import, and the page was updated
    "unchanged",  # the page has the content of the file
    "edited",  # the file is unchanged, but the page was edited in the database; the page is kept
    "conflict",  # file and page both changed, or the page is not from this file; the page is kept
    "too_large",
    "failed",  # a bug in Quaid prevented the import; an existing page is kept
    "special",  # index.md, schema.md and README.md at the root: stored, but not as pages
    "sidecar",
    "links_and_facts",  # the file is the links-and-facts file of an export
    "left_out",
]


class ImportConflict(NamedTuple):
    path: str
    slug: str
    remedy: str  # the command that replaces the page with the content of the file


class ImportReport(NamedTuple):
    folder: str
    import_id: str | None  # None if nothing changed and nothing was written
    files_seen: int
    outcomes: dict[str, int]
    left_out: dict[str, int]  # by reason
    types: dict[str, int]  # number of pages that were created or changed, by type
    tags: int
    timeline_entries: int
    raw_data: int
    notes: tuple[FileNote, ...]
    conflicts: tuple[ImportConflict, ...]
    gone: tuple[str, ...]  # files of this folder's last import that no longer exist; their pages are kept
    links: int = 0  # links that are not in any page's text
    facts: int = 0
    links_extracted: int = 0  # links in the content of the pages that were created or changed
    images: int = 0  # images that the memory did not have


class ConcurrentImport(Exception):
    """Another process imported something while we were reading, so the plan is outdated."""


def import_folder(
    db: Database,
    root: str,
    *,
    import_id: str,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
    force: bool = False,
    folder: Folder | None = None,
) -> ImportReport:
    """Import the files of a folder, or of `folder` if it is already open.

    If the import fails, the database is unchanged. With `force`, unchanged files are imported again, and
    pages that were edited in the database are overwritten.
    """
    with folder or Folder(os.path.realpath(root)) as opened:
        return _import(lambda: ImportRun(db, opened, now, new_uuid, progress, import_id, force=force))


def _import(make_run: "Callable[[], ImportRun]") -> ImportReport:
    while True:
        run = make_run()
        with run.spool:
            run.read_folder()
            run.store_images()
            if not run.spool.count and not run.has_links_and_facts:
                return run.report(None)
            try:
                run.db.write(run.write)
            except ConcurrentImport:
                continue
            return run.report(run.import_id)


# Exports of other programs

VAULT_SOURCES = ("obsidian", "logseq", "basic-memory", "org-roam", "okf")
"""Sources of which a user may have several, told apart by file name. Any other source is treated as one account."""


SOURCES_WITH_DATA = ("obsidian", "okf")
"""Formats in which Quaid's own exports contain raw data, links and facts in separate files."""


MAX_INNER_ARCHIVE_BYTES = 1024**3
"""Maximum size in bytes of an archive inside an archive. Notion splits large exports in this way."""

READABLE_ENDINGS = (".md", ".markdown", ".org", ".txt", ".html", ".htm", ".csv", ".json", ".jsonl", ".zip")
UNSAFE_NAME = "its name leads out of the archive"
INNER_ARCHIVE = "archive inside an archive inside an archive"

_DRIVE = re.compile(r"[A-Za-z]:")


class Source:
    """An open folder, zip archive or single file of another program, read within limits.

    Names in archives are not trusted: entries that lead out of the archive, symlinks, encrypted entries and
    archives that unpack to far more than their size are refused. Nothing is unpacked to a named file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped: list[SkippedEntry] = []
        self.files: list[InputFile] = []
        self._folder: Folder | None = None
        self._opened = ExitStack()
        self._unpacked = 0

    def __enter__(self) -> "Source":
        with ExitStack() as self._opened:
            if os.path.isdir(self.path):
                self._folder = self._opened.enter_context(Folder(self.path, READABLE_ENDINGS))
                self._list_folder(self._folder)
            else:
                self._list_file()
            self._opened = self._opened.pop_all()  # on success, the files stay open until the context exits
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _list_folder(self, folder: Folder) -> None:
        for entry in folder.walk():
            if isinstance(entry, ScannedFile):
                modified = timestamp(entry.stat.mtime_ns / 1e9)
                self._add(entry.path, entry.stat.size, modified, partial(_folder_pieces, folder, entry.path))
            elif entry.path != f"{exporter.DATA_FOLDER}/":
                self.skipped.append(entry)

    def _add(self, path: str, size: int, modified: str, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.files.append(InputFile(path, size, modified, partial(self._read, path, size, pieces), pieces))

    def _list_file(self) -> None:
        try:
            file = os.fdopen(os.open(self.path, FILE_FLAGS & ~getattr(os, "O_NOFOLLOW", 0)), "rb")
        except FileNotFoundError:
            raise NotFound(
                what="file or folder", name=printable(self.path), hint=" Check the spelling."
            ) from None
        except OSError as error:
            raise FileTrouble(
                path=printable(self.path), problem=f"cannot be read: {error.strerror}"
            ) from None
        self._opened.callback(file.close)
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise FileTrouble(path=printable(self.path), problem="is neither a file nor a folder")
        if file.read(4) in (b"PK\x03\x04", b"PK\x05\x06"):
            try:
                self._list_archive(file, 0)
            except BrokenArchive as error:
                raise FileTrouble(path=printable(self.path), problem=str(error)) from None
        else:
            modified = timestamp(facts.st_mtime)
            self._add(os.path.basename(self.path), facts.st_size, modified, partial(_file_pieces, file))

    def _list_archive(self, file: IO[bytes], depth: int) -> None:
        archive = ZipReader(file)
        self._opened.callback(archive.close)
        self._unpacked += check_sizes(archive.members, MAX_UNPACKED_BYTES - self._unpacked)
        for member in archive.members:
            reason = _refusal(member)
            if reason:
                self.skipped.append(SkippedEntry(printable(member.filename), reason))
            elif member.filename.lower().endswith(".zip"):
                self._list_inner(archive, member, depth)
            else:
                pieces = partial(archive.pieces, member)
                self._add(member.filename, member.file_size, _zip_time(member), pieces)

    def _list_inner(self, archive: ZipReader, member: "ZipInfo", depth: int) -> None:
        import tempfile

        if depth or member.file_size > MAX_INNER_ARCHIVE_BYTES:
            reason = INNER_ARCHIVE if depth else f"larger than {MAX_INNER_ARCHIVE_BYTES:,} bytes"
            self.skipped.append(SkippedEntry(printable(member.filename), reason))
            return
        inner = tempfile.TemporaryFile()  # noqa: SIM115 (closed on exit)
        self._opened.callback(inner.close)
        try:
            for piece in archive.pieces(member):
                inner.write(piece)
            self._list_archive(inner, depth + 1)
        except BrokenArchive as error:
            self.skipped.append(SkippedEntry(printable(member.filename), str(error)))

    def _read(self, path: str, size: int, pieces: Callable[[], Iterator[bytes]], largest: int) -> bytes:
        """Return the bytes of a file. Raise BrokenArchive if it is larger than `largest` or cannot be read."""
        if size > largest:
            raise BrokenArchive(f"too large: {size:,} bytes, and {largest:,} are allowed")
        if self._folder:
            try:
                return self._folder.read(path, largest)[:largest]
            except OSError as error:
                raise BrokenArchive(f"cannot be read ({error.strerror})") from None
        return b"".join(pieces())[:largest]

    def common_folder(self) -> str:
        """Return the folder, with a slash, that contains all files of a zip archive, or ""."""
        tops = {file.path.partition("/")[0] if "/" in file.path else "" for file in self.files}
        return f"{tops.pop()}/" if not self._folder and len(tops) == 1 and "" not in tops else ""

    def hidden(self, path: str, largest: int) -> bytes | None:
        """Return the bytes of a file that the listing of a folder skips, such as one in `.quaid`.

        Return None if the file cannot be read, or if the source is not a folder.
        """
        if self._folder:
            with suppress(OSError):
                return self._folder.read(path, largest)
        return None


def _folder_pieces(folder: Folder, path: str) -> Iterator[bytes]:
    """Yield the bytes of a file below a folder. Raise BrokenArchive if it cannot be read."""
    try:
        yield from folder.pieces(path)
    except OSError as error:
        raise BrokenArchive(f"cannot be read ({error.strerror})") from None


def _file_pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(scanner.PIECE_BYTES):
        yield piece


def _refusal(member: "ZipInfo") -> str:
    """Return why an entry of an archive is not read, or ""."""
    name = member.filename
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or "\0" in name or _DRIVE.match(name) or ".." in parts:
        return UNSAFE_NAME
    if not scanner.is_utf8(name):
        return scanner.BAD_NAME
    if stat.S_ISLNK(member.external_attr >> 16):
        return scanner.SYMLINK
    if len(parts) > scanner.MAX_DEPTH:
        return scanner.TOO_DEEP
    if "__MACOSX" in parts or any(part.startswith(".") and part not in (".raw", ".quaid") for part in parts):
        return scanner.HIDDEN_FILE
    return "encrypted" if member.flag_bits & 1 else ""


def _zip_time(member: "ZipInfo") -> str:
    year, month, day, hour, minute, second = member.date_time
    # A zip archive stores local time without a zone; 1980-01-01 means that no time was recorded.
    if (year, month, day) == (1980, 1, 1):
        return ""
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{min(second, 59):02}Z"


class ConvertedFolder(Folder):
    """Converted pages in one unnamed temporary file, which an import walks and reads like a folder."""

    def __init__(self, root: str, beside: str) -> None:
        import tempfile

        self.root = root
        # The file is beside the database, because free space is needed there anyway, and /tmp may be in RAM.
        self._file = tempfile.TemporaryFile(dir=beside)  # noqa: SIM115 (closed on exit)
        self._places: dict[str, tuple[int, int]] = {}
        self._keys: set[str] = set()

    def __enter__(self) -> "ConvertedFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, path: str, data: bytes) -> str:
        """Add a file and return its path, which differs from the requested path if that is taken."""
        stem, dot, ending = path.rpartition(".")
        number = 1
        while path.casefold() in self._keys:
            number += 1
            path = f"{stem}-{number}{dot}{ending}"
        self._keys.add(path.casefold())
        self._places[path] = (self._file.seek(0, 2), len(data))
        self._file.write(data)
        return path

    def walk(
        self, ignored: scanner.IgnoreCheck = scanner.ignore_nothing
    ) -> Iterator[ScannedFile | SkippedEntry]:
        """Yield the added files in order of their paths, except ignored ones.

        A file in `.quaid` is yielded as a skipped folder, as in the walk of a real folder.
        """
        for path, (_, size) in sorted(self._places.items()):
            if ignored(path):
                continue
            if path.startswith(".quaid/"):
                yield SkippedEntry(".quaid/", scanner.HIDDEN_FOLDER)
            else:
                kind = "sidecar" if f"/{path}".rpartition("/")[0].endswith("/.raw") else "page"
                yield ScannedFile(path, kind, FileSignature(size, 0, 0, 0))  # type: ignore[arg-type]

    def read(self, path: str, largest: int = scanner.LARGEST_FILE) -> bytes:
        """Return the bytes of an added file, at most `largest` + 1 of them."""
        if path not in self._places:
            raise FileNotFoundError(path)
        start, size = self._places[path]
        self._file.seek(start)
        return self._file.read(min(size, largest + 1))


def import_foreign(
    db: Database,
    path: str,
    source: str,
    *,
    import_id: str,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
    force: bool = False,
) -> tuple[ImportReport, tuple[SkippedEntry, ...], dict[str, int]]:
    """Import the notes or memories that another program exported, converted to Markdown, in one transaction.

    `path` is a folder, a zip archive or a file. Unless `force`, a later import of the same source changes only
    pages whose notes have changed. Return the report, the parts that could not be read, and their number by
    reason.
    """
    name = os.path.basename(os.path.realpath(path)).removesuffix(".zip")
    root = f"{source}: {name}" if source in VAULT_SOURCES else source
    beside = os.path.dirname(db.path)
    with Source(path) as files, ConvertedFolder(printable(root), beside) as folder:
        conversion = _Conversion(folder, source)
        inputs = conversion.take_own_files(files)
        progress(0, len(inputs), "Reading")
        conversion.add_all(foreign_notes.READERS[source](inputs))
        conversion.write_links_and_facts()

        remedy = f"quaid import --from {source} {quote(path)} --force"
        report = _import(
            lambda: ImportRun(
                *(db, folder, now, new_uuid, progress, import_id),
                force=force,
                created=conversion.created,
                remedy=remedy,
            )
        )
    unread = (*files.skipped, *conversion.unread)
    reasons = Counter(part.reason for part in unread)
    return report, unread, dict(reasons.most_common())


class _Conversion:
    """Converts the notes of another program to files in a folder that an import can read."""

    def __init__(self, folder: ConvertedFolder, source: str) -> None:
        self.folder = folder
        self.source = source
        self.created: dict[str, str] = {}
        self.unread: list[SkippedEntry] = []
        self._addresses: dict[str, str] = {}  # address of each page by the path that the reader gave
        self._names: dict[str, str] = {}  # address by normalized name
        self._files: dict[str, str] = {}
        self._links: list[ForeignLink] = []
        self._records: dict[str, list[dict[str, Any]]] = {"links": [], "facts": []}

    def take_own_files(self, source: Source) -> list[InputFile]:
        """Return the files to convert. Sidecars, links and facts of a Quaid export are added unchanged."""
        inputs = []
        top = source.common_folder() if self.source not in CONVERSATION_SOURCES else ""
        with_data, limit = self.source in SOURCES_WITH_DATA, exporter.MAX_LINKS_AND_FACTS_BYTES
        for file in source.files:
            path = file.path.removeprefix(top)
            if with_data and path == exporter.LINKS_AND_FACTS_PATH:
                self._read_links_and_facts(file.read(limit))
            elif with_data and indexer.is_sidecar(path):
                self.folder.add(path, file.read(limit))
            else:
                inputs.append(file._replace(path=path))
        data = source.hidden(exporter.LINKS_AND_FACTS_PATH, limit) if with_data else None
        if data is not None:
            self._read_links_and_facts(data)
        return inputs

    def _read_links_and_facts(self, data: bytes) -> None:
        """Take over the links-and-facts file of a Quaid export."""
        try:
            value = indexer.parse_json(data)
            self._files.update(value.get("files") or {})
            for kind, records in self._records.items():
                records += [record for record in value.get(kind) or [] if isinstance(record, dict)]
        except (ValueError, AttributeError, TypeError) as error:
            self.unread.append(
                SkippedEntry(exporter.LINKS_AND_FACTS_PATH, f"not the links and facts of an export: {error}")
            )

    def add_all(self, items: Iterable[Item]) -> None:
        """Add all items that a reader yields."""
        for item in items:
            if isinstance(item, ForeignPage):
                self._add_page(item)
            elif isinstance(item, ForeignFact):
                self._records["facts"].append(self._fact_record(item))
            elif isinstance(item, ForeignLink):
                self._links.append(item)
            elif isinstance(item, ForeignRecord):
                self._records[item.kind].append(item.record)
            else:
                self.unread.append(SkippedEntry(printable(item.path), item.reason))

    def _add_page(self, page: ForeignPage) -> None:
        path = self.folder.add(page.path, page.data)
        address = slugs.from_path(path)
        self._addresses[page.path] = address
        if f"{address}.md" != path:
            self._files[address] = path
        if self.source == "jsonl" and page.names[0]:
            self._files[page.names[0]] = path
        if page.created:
            self.created[path] = page.created
        if page.sidecar:
            self.folder.add(indexer.sidecar_path(indexer.page_stem(path)), page.sidecar)
        for name in (*page.names, address):
            self._names.setdefault(slugs.fold_name(name), address)

    def _fact_record(self, fact: ForeignFact) -> dict[str, Any]:
        return {
            "page": self._addresses[fact.path],
            "subject": fact.subject,
            "predicate": fact.predicate,
            "object": fact.object,
            "asserted_by": "import",
            "source_ref": self.source,
            "evidence_text": fact.evidence,
            "created_at": fact.created or None,
        }

    def write_links_and_facts(self) -> None:
        """Write the links and facts to the file that the import restores them from."""
        for link in self._links:
            target = self._names.get(slugs.fold_name(link.target))
            start = self._addresses[link.path]
            if target is None or target == start:
                reason = "a relation to itself" if target else "a relation to a note that does not exist"
                self.unread.append(SkippedEntry(link.path, f"{reason}; it stays in the text"))
                continue
            record = {"from": start, "to": target, "relationship": link.relationship, "context": link.context}
            self._records["links"].append(record)
        if any(self._records.values()):
            value = {"format": exporter.LINKS_AND_FACTS_FORMAT, **self._records, "files": self._files}
            self.folder.add(exporter.LINKS_AND_FACTS_PATH, json.dumps(value, ensure_ascii=False).encode())


def read_mailbox(path: str, name: str, beside: str) -> tuple[ConvertedFolder, list[str]]:
    """Return the e-mails of an mbox file as Markdown files in a folder, and notes about omitted parts.

    Of e-mails with the same date, subject and id, only the first is used.
    """
    folder, notes, paths = ConvertedFolder(printable(path), beside), list[str](), set[str]()
    try:
        with open(path, "rb") as stream, documents.Converter() as converter:
            for mail in converter.convert("mbox", name, stream, os.fstat(stream.fileno()).st_size):
                notes += mail.notes
                mark = sha256(mail.message_id.encode() or mail.text.encode()).hexdigest()[:8]
                subject = slugs.segment(mail.title[:60]).strip("-")
                file = f"{'-'.join(filter(None, (mail.date, subject, mark)))}.md"
                if mail.text and file not in paths:
                    paths.add(file)
                    folder.add(f"sources/{slugs.segment(name)}/{file}", mail.text.encode())
    except BaseException:
        folder.__exit__()
        raise
    return folder, notes


class ImportRun(FolderRun):
    """One import. Files of earlier imports are recognized by their path relative to the folder.

    A folder is recognized by its path. A folder at a new path counts as moved if more than half of its page files
    with a known relative path have the content of their last import.
    """

    def __init__(
        self,
        db: Database,
        folder: Folder,
        now: str,
        new_uuid: Callable[[], str],
        progress: Progress,
        import_id: str,
        *,
        force: bool,
        created: Mapping[str, str] | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(db, Collections(db).require(IMPORT_COLLECTION), now, new_uuid, progress)
        self.folder = folder
        self.root = printable(folder.root)
        self.import_id = import_id
        self.files = history.NewImport(import_id, now)
        self.force = force
        self.created = created or {}
        """Creation times of converted pages, by path."""
        self.remedy = remedy
        """The command that replaces pages edited in the database, for files that exist only during this import."""
        with db.reading():
            imports = Imports(db).all()
            last = next((row.import_id for row in imports if row.source_dir == self.root), None)
            self.past = Imports(db).files(last)
        self.newest = [row.import_id for row in imports[:1]]
        self._is_known_root = last is not None
        self._spellings = {path_key(path): path for path in self.past if not path.isascii()}
        self._past_pages = {
            file.page_id: path for path, file in self.past.items() if file.page_id is not None
        }
        self.seen: set[str] = set()  # paths of earlier imports that still exist in the folder
        self.paths: set[str] = set()  # paths of all files to be imported
        self.carried: dict[str, ImportedFile] = {}  # files with unchanged content
        self.claims: list[tuple[str, str]] = []
        """Path and requested slug of each page file in the spool, sorted by path."""
        self.fresh: set[str] = set()  # page files that no import has seen, by path without extension
        self.different: set[str] = set()  # page files to import again, by path without extension
        self.links_file: tuple[bytes, str] | None = None  # bytes and hash of the links-and-facts file
        # True if the file was imported before. In that case only records of new pages are restored.
        self.is_links_file_known = False
        self.assigned: dict[str, str] = {}  # slugs, by path, of page files that are new in this folder
        self.taken: set[str] = set()  # slugs of all pages of this folder
        self.slugs: dict[str, str] = {}  # slug of each page file, by path without extension
        self.page_files = 0
        self.written: set[str] = set()  # slugs of pages whose version was already incremented
        self.new: set[str] = set()  # slugs of pages that this import created
        self.conflicts: list[ImportConflict] = []
        self.images: list[str] = []  # paths of the images, if Quaid exported the folder

    def report(self, import_id: str | None) -> ImportReport:
        gone = self.past.keys() - self.seen if self.is_same_folder else ()
        counts = self.counts
        return ImportReport(
            folder=self.root,
            import_id=import_id,
            files_seen=counts["seen"],
            outcomes={outcome: counts[outcome] for outcome in get_args(ImportOutcome)},
            left_out=dict(sorted(self.left_out.items())),
            types=dict(self.types.most_common()),
            tags=counts["tags"],
            timeline_entries=counts["timeline_entries"],
            raw_data=counts["raw_data"],
            notes=tuple(sorted(self.notes)),
            conflicts=tuple(sorted(self.conflicts)),
            gone=tuple(sorted(map(printable, gone))),
            links=counts["links"],
            facts=counts["facts"],
            links_extracted=counts["links_extracted"],
            images=counts["images"],
        )

    @property
    def is_same_folder(self) -> bool:
        """True if this folder was imported before. Valid once all files except sidecars are read."""
        return self._is_known_root or self.counts["same"] > len(self.different)

    # Reading

    def read_folder(self) -> None:
        """Read each file once, and add new and changed files to the spool, the buffer of files to be written.

        A file with the content of its last import is skipped, unless the import is forced.
        """
        files: list[ScannedFile] = []
        for entry in self.folder.walk():
            self.counts["seen"] += 1
            if isinstance(entry, ScannedFile):
                files.append(entry)
            elif self._is_image(entry.path):
                self.images.append(entry.path)
            elif entry.path != f"{exporter.DATA_FOLDER}/" or not self._read_links_and_facts():
                self._leave_out(entry.path, entry.reason)
        # Sidecars come last, because an unchanged sidecar has to be applied again if its page is new.
        files.sort(key=lambda file: file.kind == "sidecar")
        for done, file in enumerate(files):
            self.progress(done, len(files), "Reading")
            self._read_one(file, len(files) - done - 1)
        self.progress(len(files), len(files), "Reading")

    def _is_image(self, path: str) -> bool:
        """Return True if a file is an exported image: in a folder "attachments", named by its content's hash."""
        folder, _, name = path.rpartition("/")
        if not attachments.NAME.fullmatch(name) or folder.rpartition("/")[2] != attachments.FOLDER:
            return False
        try:
            return attachments.image_name(self.folder.read(path, attachments.MAX_BYTES)) == name
        except OSError:
            return False

    def store_images(self) -> None:
        """Copy exported images to the folder beside the database, except in a dry run."""
        key = collections.read_image_key(self.db) if self.images else None
        for path in self.images if self.db.rehearsal is None else ():
            data = self.folder.read(path, attachments.MAX_BYTES)
            root = attachments.make_memory_folder(self.db.path)
            self.counts["images"] += attachments.store(root, "", data, self.new_uuid(), key)[1]

    @property
    def has_links_and_facts(self) -> bool:
        """True if a links-and-facts file is to be imported: it is new, there are new pages, or `force` is set."""
        return self.links_file is not None and bool(self.fresh or not self.is_links_file_known)

    def _read_links_and_facts(self) -> bool:
        """Read the links-and-facts file of an export. Return False if there is no such file."""
        path, largest = exporter.LINKS_AND_FACTS_PATH, exporter.MAX_LINKS_AND_FACTS_BYTES
        try:
            data = self.folder.read(path, largest)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._leave_out(path, scanner.SYMLINK if error.errno == errno.ELOOP else scanner.UNREADABLE)
            return True
        if len(data) > largest:
            self.too_large(
                path, f"too large: {largest:,} bytes are allowed; its links and facts are left out"
            )
            return True
        self.counts["links_and_facts"] += 1
        self.links_file = data, indexer.digest(data)
        earlier = Imports(self.db).last_ingest(self.links_file[1], path)
        self.is_links_file_known = earlier is not None and not self.force
        return True

    def _leave_out(self, path: str, reason: str) -> None:
        self.counts["left_out"] += 1
        self.left_out[reason] += 1
        if reason in scanner.UNUSABLE_REASONS:
            self.note(path, f"left out: {reason}")

    def unreadable(self, path: str, error: OSError) -> None:
        self._leave_out(path, scanner.GONE if isinstance(error, FileNotFoundError) else scanner.UNREADABLE)

    def too_large(self, path: str, problem: str) -> None:
        self.counts["too_large"] += 1
        self.note(path, problem)

    def _read_one(self, file: ScannedFile, waiting: int) -> None:
        path = file.path
        past = self._find_past(path)
        data = self.read(file)
        if data is None:
            return
        self.paths.add(path)
        content_hash = indexer.digest(data)
        is_same = past is not None and past.content_hash == content_hash
        if file.kind == "page":
            is_same = is_same and past is not None and past.page_id is not None
            self.counts["same"] += is_same
            if past and is_same and not self.force:
                self.carried[path] = past
                self._count_unchanged(path, data, past)
                return
            (self.different if past else self.fresh).add(indexer.page_stem(path))
            if parsed := self.spool_page(path, content_hash, data, waiting):
                self.claims.append((path, parsed[0]))
        elif past and is_same and not self.force and not self._has_new_page(file):
            self.carried[path] = past
            self.counts[file.kind] += 1
        else:
            self.spool.add(SpooledFile(path, content_hash, data, None))

    def _count_unchanged(self, path: str, data: bytes, past: ImportedFile) -> None:
        """Count a file with unchanged content as unchanged, edited or conflict, depending on its page."""
        outcome = "unchanged"
        if past.page_version_now != past.page_version_at_import:
            stored = pages.find(self.db, past.slug or "")
            if stored and not _matches_bytes(stored, path, data):
                outcome = "edited" if past.page_version_at_import else "conflict"
        if outcome == "conflict":
            self._add_conflict(path, past.slug or "")
        else:
            self.counts[outcome] += 1

    def _has_new_page(self, file: ScannedFile) -> bool:
        if file.kind != "sidecar":
            return False
        stem = indexer.sidecar_page_stem(file.path)
        return stem in self.fresh or (stem in self.different and not self.is_same_folder)

    def _find_past(self, path: str) -> ImportedFile | None:
        """Return the record of an earlier import for the file at this path, or None. Add the path to `seen`."""
        if path not in self.past and not path.isascii():
            path = self._spellings.get(path_key(path), path)
        if path in self.past:
            self.seen.add(path)
        return self.past.get(path)

    def _past_page_file(self, path: str) -> ImportedFile | None:
        """Return the record of the last import of this folder for the page file at this path, or None."""
        past = self._find_past(path) if self.is_same_folder else None
        return past if past and past.page_id is not None else None

    # Writing

    def write(self, tx: Transaction) -> None:
        if [row.import_id for row in Imports(self.db).all()[:1]] != self.newest:
            raise ConcurrentImport
        carried = {path: past.raw_id for path, past in self.carried.items()}
        self.files.begin(tx, self.root, carried)
        for path, past in self.carried.items():
            if past.slug:
                self._has_page(path, past.slug)
        self._assign_slugs()
        with trust.written_as(tx, IMPORTED, at_most=True):
            for batch in self.batches():
                if batch[0].page is None:
                    self._write_other(tx, batch[0])
                else:
                    self.write_pages(tx, [self._with_slug(item) for item in batch])
            if self.links_file and self.has_links_and_facts:
                self._write_links_and_facts(tx, *self.links_file)
        self.counts["links_extracted"] = self.links_extracted()
        self.files.finish(tx, self.page_files)

    def _assign_slugs(self) -> None:
        """Assign a slug to each page that was not imported from this folder before."""
        past_files = {path: self._past_page_file(path) for path, _ in self.claims}
        self.taken = {
            past.slug for past in (*past_files.values(), *self.carried.values()) if past and past.slug
        }
        fresh = [claim for claim in self.claims if past_files[claim[0]] is None]
        self.assigned = indexer.assign_slugs(fresh, self.taken)
        self.taken.update(self.assigned.values())
        for path, slug in fresh:
            if self.assigned[path] != slug:
                self.note(path, f"another file has the slug {slug}; this one is {self.assigned[path]}")

    def _with_slug(self, item: SpooledFile) -> SpooledFile:
        """Return the file with its page under the slug of the last import, else under the assigned slug."""
        past = self._past_page_file(item.path)
        return item.with_slug(past.slug if past and past.slug else self.assigned[item.path])

    def is_new(self, item: SpooledFile) -> bool:
        past = self._past_page_file(item.path)
        return past is None or not past.slug

    def keep_new(self, tx: Transaction, items: list[tuple[int, SpooledFile]]) -> None:
        files = [(page_id, 1, item.path, item.data, item.content_hash) for page_id, item in items]
        self.files.add_files(tx, files)
        for page_id, item in items:
            slug = item.parsed_page.slug
            self._has_page(item.path, slug)
            self.written.add(slug)
            self.new.add(slug)
            self._set_created(tx, page_id, item)

    def _set_created(self, tx: Transaction, page_id: int, item: SpooledFile) -> None:
        if created := self.created.get(item.path):
            page_edits.set_created(tx, page_id, created)

    def write_page(self, tx: Transaction, item: SpooledFile) -> None:
        past = self._past_page_file(item.path)
        if past and past.slug:
            self._write_again(tx, item, past)
        else:
            self._write_first(tx, item)

    def _write_first(self, tx: Transaction, item: SpooledFile) -> None:
        try:
            saved = self._save(tx, item.parsed_page, 0)
        except VersionConflict:
            stored = pages.require(self.db, item.parsed_page.slug)
            # The slug may be a redirect to the page, so the slug of the stored page is used.
            self._write_over(tx, item.with_slug(stored.slug), stored)
            return
        self._wrote(tx, "new", item, saved)
        self._set_created(tx, saved.id, item)
        self.new.add(item.parsed_page.slug)

    def _write_over(self, tx: Transaction, item: SpooledFile, stored: PageRow) -> None:
        """Handle a new file whose slug already has a page."""
        if _has_same_content(stored, item.parsed_page):
            self._keep(tx, item, stored, stored.version)
            self.counts["unchanged"] += 1
            return
        past = self._brought_before(stored, item.path)
        if past:
            self._write_again(tx, item, past)
        elif origin := Imports(self.db).origin(stored.id):
            slug = indexer.suffixed_slug(item.parsed_page.slug, item.path, self.taken)
            self.taken.add(slug)
            self.note(
                item.path, f"a page of {origin[0]} has the slug {item.parsed_page.slug}; this one is {slug}"
            )
            self._write_first(tx, item.with_slug(slug))
        elif self.force:
            self._overwrite(tx, item, stored)
        else:
            self._keep_conflict(tx, item, stored)

    def _brought_before(self, stored: PageRow, path: str) -> ImportedFile | None:
        """Return the record of the file that a page was imported from, or None.

        The file must be in this folder, and either have this path or no longer exist.
        """
        old_path = self._past_pages.get(stored.id) if self.is_same_folder else None
        past = self.past[old_path] if old_path is not None else None
        if past is None and (origin := Imports(self.db).origin(stored.id)):
            folder, old_path, past = origin
            past = past if folder == self.root else None
        return past if old_path == path or old_path not in self.paths else None

    def _write_again(self, tx: Transaction, item: SpooledFile, past: ImportedFile) -> None:
        """Update the page of a file that was imported before.

        If the page was edited in the database since, keep it and report a conflict, unless the import is
        forced.
        """
        page = item.parsed_page
        stored = pages.find(self.db, page.slug)
        if stored and _has_same_content(stored, page) and not self._is_derived_anew(stored, page):
            self._keep(tx, item, stored, stored.version)
            self.counts["unchanged"] += 1
        elif stored and not self.force and self._is_edited_here(stored, item.path, past):
            self._keep_conflict(tx, item, stored)
        else:
            self._overwrite(tx, item, stored)

    def _overwrite(self, tx: Transaction, item: SpooledFile, stored: PageRow | None) -> None:
        if self.force and stored and not _has_same_content(stored, item.parsed_page):
            page_writer.keep_old_version(tx, self.collection.id, stored, self.now, self.new_uuid())
        saved = self._save(tx, item.parsed_page, stored.version if stored else None)
        self._wrote(tx, "changed", item, saved)

    def _save(self, tx: Transaction, page: Page, expected_version: int | None) -> SaveResult:
        return page_edits.save(
            tx, page, uuid=self.new_uuid(), now=self.now, expected_version=expected_version, cut=False
        )

    def _is_derived_anew(self, stored: PageRow, page: Page) -> bool:
        """Return True if the import is forced and would change the title or other derived data of the page."""
        old = (stored.type, stored.title, stored.summary, stored.wing, stored.room)
        return self.force and old != (page.type, page.title, page.summary, page.wing, page.room)

    def _is_edited_here(self, stored: PageRow, path: str, past: ImportedFile) -> bool:
        if stored.version == past.page_version_at_import:
            return False
        # A change of raw data also increments the version, so the content of the page is compared with the
        # bytes of the last import.
        return not _matches_bytes(stored, path, history.version_bytes(self.db, past.raw_id))

    def _wrote(self, tx: Transaction, outcome: ImportOutcome, item: SpooledFile, saved: SaveResult) -> None:
        self._keep_bytes(tx, item, saved.id, saved.version)
        self._has_page(item.path, item.parsed_page.slug)
        self.written.add(item.parsed_page.slug)
        self.counts[outcome] += 1
        self.count_page(saved.id, item.parsed_page)

    def _keep(self, tx: Transaction, item: SpooledFile, stored: PageRow, version: int | None) -> None:
        """Store the bytes of a file whose page is not changed."""
        self._keep_bytes(tx, item, stored.id, version)
        self._has_page(item.path, stored.slug)

    def _keep_conflict(self, tx: Transaction, item: SpooledFile, stored: PageRow) -> None:
        self._keep(tx, item, stored, None)  # None, because no version of the page has this content
        self._add_conflict(item.path, stored.slug)

    def _add_conflict(self, path: str, slug: str) -> None:
        self.counts["conflict"] += 1
        remedy = self.remedy or f"quaid put {slug} {quote(os.path.join(self.root, path))}"
        self.conflicts.append(ImportConflict(printable(path), slug, remedy))

    def _has_page(self, path: str, slug: str) -> None:
        self.page_files += 1
        self.slugs[indexer.page_stem(path)] = slug

    def _keep_bytes(
        self, tx: Transaction, item: SpooledFile, page_id: int | None = None, version: int | None = None
    ) -> None:
        file = (page_id, version, item.path, item.data, item.content_hash)
        self.files.add_files(tx, [file])

    def _write_other(self, tx: Transaction, item: SpooledFile) -> None:
        """Store a special file or a sidecar."""
        if "/" in item.path:
            self._write_sidecar(tx, item)
            return
        self._keep_bytes(tx, item)
        key = SPECIAL_FILE_SETTINGS.get(item.path.lower())
        if key:
            collections.set_setting(tx, key, markdown.decode(item.data)[0])
        self.counts["special"] += 1

    def _write_sidecar(self, tx: Transaction, item: SpooledFile) -> None:
        self.counts["sidecar"] += 1
        past = self._find_past(item.path) if self.is_same_folder else None
        before = history.version_bytes(self.db, past.raw_id) if past else indexer.EMPTY_SIDECAR
        self._keep_bytes(tx, item)
        try:
            sources = indexer.parse_sidecar(item.data)
        except ValueError as error:
            self.note(item.path, f"not JSON, kept as it is: {error}")
            return
        stem = indexer.sidecar_page_stem(item.path)
        address = self.slugs.get(stem) or slugs.from_path(stem + ".md")
        stored = pages.find(self.db, address)
        if stored is None:
            self.note(item.path, f"there is no page {address} for it; kept as it is")
            return
        changed = self.apply_sidecar(tx, item.path, stored.id, before, sources, force=self.force)
        if changed and stored.slug not in self.written:
            page_edits.touch(tx, stored.slug, expected_version=None, now=self.now)
            self.written.add(stored.slug)

    def _write_links_and_facts(self, tx: Transaction, data: bytes, content_hash: str) -> None:
        """Restore the links and facts in the links-and-facts file, which are not in the content of any page.

        The file itself is not stored, because it would retain data of pages that are forgotten later.
        """
        path = exporter.LINKS_AND_FACTS_PATH
        try:
            contents = exporter.parse_links_and_facts(data)
        except ValueError as error:
            self.note(path, f"not taken in: {error}")
            self.files.log(tx, path, content_hash, [])
            return
        find = partial(self._find_page, files=contents.files)
        restored = exporter.LinksAndFactsImport(self.db, tx, find, self.now)
        restored.run(contents, self.new if self.is_links_file_known else None, self.written)
        self.counts.update(links=restored.links, facts=restored.facts)
        self.note(path, *exporter.shorten_problems(restored.problems))
        self.files.log(tx, path, content_hash, sorted(restored.changed))

    def _find_page(self, address: str, files: dict[str, str]) -> exporter.PageKey | None:
        """Return the page of the file that was exported for an address, else a page with that address, else None."""
        collection, name = slugs.split_address(address)
        own = self.slugs.get(indexer.page_stem(files.get(address, address.replace("::", "/", 1))))
        inside = name if collection is None else slugs.from_path(f"{collection}/{name}.md")
        candidates = ((IMPORT_COLLECTION, own), (IMPORT_COLLECTION, inside), (collection, name))
        for where, slug in candidates:
            stored = pages.find(self.db, slug, where) if slug and where else None
            if stored:
                return stored.id, stored.collection, stored.slug
        return None


def _matches_bytes(stored: PageRow, path: str, data: bytes) -> bool:
    """Return True if a stored page has the content of a file; False if the file cannot be parsed."""
    try:
        return _has_same_content(stored, indexer.parse_file(path, data).page)
    except Exception:  # the importer reports the error when it reads the file
        return False


def _has_same_content(stored: PageRow, page: Page) -> bool:
    """Return True if a stored page has the content of a parsed page."""
    old = (stored.truth, stored.timeline, stored.frontmatter)
    return old == (page.truth, page.timeline, page.frontmatter)
