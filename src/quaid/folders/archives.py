"""Files of a folder, a zip archive or a single file, read within limits.

Names in archives are not trusted: entries that lead out of the archive, symlinks, encrypted entries and archives
that unpack to far more than their size are refused. Nothing is unpacked to a named file.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from quaid.errors import FileTrouble, NotFound
from quaid.folders import scanner
from quaid.folders.scanner import FILE_FLAGS, Folder, SkippedEntry, printable
from quaid.formats.zip_archive import MAX_UNPACKED_BYTES, BrokenArchive, ZipReader, check_sizes
from quaid.model.dates import timestamp
from quaid.model.sync_plan import FileSignature, ScannedFile

if TYPE_CHECKING:
    from zipfile import ZipInfo

MAX_INNER_ARCHIVE_BYTES = 1024**3
"""Maximum size in bytes of an archive inside an archive. Notion splits large exports in this way."""

COPY_SIZE = 1 << 20
READABLE_ENDINGS = (
    *(".md", ".markdown", ".org", ".txt", ".html", ".htm", ".csv", ".json", ".jsonl"),
    ".zip",
)
UNSAFE_NAME = "its name leads out of the archive"
INNER_ARCHIVE = "archive inside an archive inside an archive"

_DRIVE = re.compile(r"[A-Za-z]:")


class SourceFile(NamedTuple):
    """A file of a source. `open_source` explains how it is read."""

    path: str
    size: int
    modified: str
    """Time of its last change in UTC, or "" if it is not recorded."""
    handle: Any
    """What `Source.open` needs to open it."""


class Source:
    """An open folder, zip archive or single file of another program."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped: list[SkippedEntry] = []
        self.files: list[SourceFile] = []
        self._folder: Folder | None = None
        self._open: list[IO[bytes] | ZipReader] = []
        self._unpacked = 0

    def __enter__(self) -> "Source":
        try:
            if os.path.isdir(self.path):
                self._folder = Folder(self.path, READABLE_ENDINGS)
                self._list_folder(self._folder)
            else:
                self._list_file()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder:
            self._folder.__exit__()
        for file in reversed(self._open):
            file.close()

    def _list_folder(self, folder: Folder) -> None:
        for entry in folder.walk():
            if isinstance(entry, ScannedFile):
                modified = timestamp(entry.stat.mtime_ns / 1e9)
                self.files.append(SourceFile(entry.path, entry.stat.size, modified, None))
            elif entry.path != ".quaid/":
                self.skipped.append(entry)

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
        self._open.append(file)
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise FileTrouble(path=printable(self.path), problem="is neither a file nor a folder")
        if file.read(4) in (b"PK\x03\x04", b"PK\x05\x06"):
            try:
                self._list_archive(file, 0)
            except BrokenArchive as error:
                raise FileTrouble(path=printable(self.path), problem=str(error)) from None
        else:
            name = os.path.basename(self.path)
            self.files.append(SourceFile(name, facts.st_size, timestamp(facts.st_mtime), file))

    def _list_archive(self, file: IO[bytes], depth: int) -> None:
        archive = ZipReader(file)
        self._open.append(archive)
        self._unpacked += check_sizes(archive.members, MAX_UNPACKED_BYTES - self._unpacked)
        for member in archive.members:
            reason = _refusal(member)
            if reason:
                self.skipped.append(SkippedEntry(printable(member.filename), reason))
            elif member.filename.lower().endswith(".zip"):
                self._list_inner(archive, member, depth)
            else:
                handle = (archive, member)
                self.files.append(SourceFile(member.filename, member.file_size, _zip_time(member), handle))

    def _list_inner(self, archive: ZipReader, member: "ZipInfo", depth: int) -> None:
        import tempfile

        if depth or member.file_size > MAX_INNER_ARCHIVE_BYTES:
            reason = INNER_ARCHIVE if depth else f"larger than {MAX_INNER_ARCHIVE_BYTES:,} bytes"
            self.skipped.append(SkippedEntry(printable(member.filename), reason))
            return
        inner = tempfile.TemporaryFile()  # noqa: SIM115 (closed on exit)
        self._open.append(inner)
        try:
            for piece in archive.pieces(member):
                inner.write(piece)
            self._list_archive(inner, depth + 1)
        except BrokenArchive as error:
            self.skipped.append(SkippedEntry(printable(member.filename), str(error)))

    def read(self, file: SourceFile, largest: int) -> bytes:
        """Return the bytes of a file. Raise BrokenArchive if it is larger than `largest` or cannot be read."""
        if file.size > largest:
            raise BrokenArchive(f"too large: {file.size:,} bytes, and {largest:,} are allowed")
        if self._folder:
            try:
                return self._folder.read(file.path, largest)[:largest]
            except OSError as error:
                raise BrokenArchive(f"cannot be read ({error.strerror})") from None
        return b"".join(self.pieces(file))[:largest]

    def pieces(self, file: SourceFile) -> Iterator[bytes]:
        """Yield the bytes of a file in pieces. Raise BrokenArchive if it cannot be read."""
        if self._folder:
            yield from self._folder_pieces(self._folder, file.path)
        elif isinstance(file.handle, tuple):
            archive, member = file.handle
            yield from archive.pieces(member)
        else:
            file.handle.seek(0)
            while piece := file.handle.read(COPY_SIZE):
                yield piece

    def _folder_pieces(self, folder: Folder, path: str) -> Iterator[bytes]:
        parent, _, name = path.rpartition("/")
        try:
            with os.fdopen(os.open(name, FILE_FLAGS, dir_fd=folder.enter(parent)), "rb") as file:
                while piece := file.read(COPY_SIZE):
                    yield piece
        except OSError as error:
            raise BrokenArchive(f"cannot be read ({error.strerror})") from None

    def hidden(self, path: str, largest: int) -> bytes | None:
        """Return the bytes of a file in a hidden folder, such as `.quaid`, or None if there is none."""
        if self._folder:
            with suppress(OSError):
                return self._folder.read(path, largest)
        return None


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
        """Add a file and return its path, which differs from the given one if that is taken."""
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
        """Yield the added files in order of their paths."""
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
