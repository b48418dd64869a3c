"""Read untrusted zip archives, with limits on directory size, unpacked size and compression ratio."""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from zipfile import ZipInfo

MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
"""Maximum size of a zip archive's central directory in bytes, enough for about 120,000 entries."""

MAX_UNPACKED_BYTES = 4 * 1024**3
"""Maximum total size, in bytes, of the files that are read from an archive."""

MAX_COMPRESSION_RATIO = 100
"""Maximum compression ratio of a large archive. The ratio of text is 4 to 10."""

RATIO_CHECK_BYTES = 20 * 1024 * 1024
READ_SIZE = 1 << 20


class BrokenArchive(ValueError):
    """An archive cannot be read, or its contents exceed the limits. The message is a predicate to the file name."""


class ZipReader:
    """A zip archive that is read in memory. Methods raise BrokenArchive if it is damaged or exceeds a limit."""

    def __init__(self, file: IO[bytes]) -> None:
        from zipfile import BadZipFile, ZipFile

        if _directory_size(file) > MAX_DIRECTORY_BYTES:
            raise BrokenArchive("its list of files is far too long")
        try:
            self._zip = ZipFile(file)
        except (BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
            raise BrokenArchive(f"is a damaged archive ({error})") from None
        self.members = [member for member in self._zip.infolist() if not member.is_dir()]

    def close(self) -> None:
        self._zip.close()

    def member(self, name: str) -> "ZipInfo":
        return self._zip.getinfo(name)

    def pieces(self, member: "ZipInfo") -> Iterator[bytes]:
        """Yield the bytes of a file. A file that is longer than declared fails the checksum."""
        with _zip_errors(), self._zip.open(member) as packed:
            while piece := packed.read(READ_SIZE):
                yield piece

    def read(self, member: "ZipInfo") -> bytes:
        return b"".join(self.pieces(member))


def check_sizes(members: "Iterable[ZipInfo]", limit: int = MAX_UNPACKED_BYTES) -> int:
    """Return the unpacked size of the members; raise BrokenArchive if it exceeds a limit."""
    members = list(members)
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if size > limit or (size > RATIO_CHECK_BYTES and size > MAX_COMPRESSION_RATIO * packed):
        raise BrokenArchive(f"would unpack {packed:,} bytes to {size:,}; no export does, so it is refused")
    return size


def _directory_size(file: IO[bytes]) -> int:
    """Return the size of the central directory, as stated in the end record of the archive."""
    file.seek(0, 2)
    file.seek(max(0, file.tell() - 65_557))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    size = int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0
    file.seek(0)
    return size if size != 0xFFFFFFFF else MAX_DIRECTORY_BYTES + 1


@contextmanager
def _zip_errors() -> Iterator[None]:
    """Convert errors of the zip library to BrokenArchive."""
    from zipfile import BadZipFile

    try:
        yield
    except (BadZipFile, zlib.error, EOFError) as error:
        raise BrokenArchive(f"is damaged ({error})") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or unknown compression
        raise BrokenArchive(f"cannot be unpacked ({error})") from None
