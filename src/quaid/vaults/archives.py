"""Exports of conversations: zip archives with a conversations.json, or that file by itself.

Knows how to read them piece by piece, and which archives are refused because they would unpack to far more than any
export. Does not know what a conversation looks like.
"""

import codecs
import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from quaid.formats.transcripts import BrokenTranscript, iter_json_list

if TYPE_CHECKING:
    from zipfile import ZipInfo

LARGEST = 4 * 1024**3
"""Bytes of a conversations.json."""

TIGHTEST = 100
"""How many times larger than packed it may be, when it is large at all: text makes 4 to 10."""

LARGE = 20 * 1024 * 1024
LARGEST_DIRECTORY = 4 * 1024 * 1024
"""Of the list of files in an archive: some 30,000 of them, with names of their own."""
PIECE = 1 << 20

_EXPORT = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")


def is_export(name: str) -> bool:
    """Whether a file of this name holds exported conversations."""
    return _EXPORT.fullmatch(name.lower()) is not None


def conversations(file: BinaryIO, is_archive: bool) -> Iterator[Any]:
    """Each conversation as an object; Broken when the file is not what it should be."""
    file.seek(0)
    if is_archive:
        yield from _unpacked(file)
    else:
        yield from iter_json_list(_texts(file))


def _unpacked(file: BinaryIO) -> Iterator[Any]:
    import zipfile

    try:
        if _directory_size(file) > LARGEST_DIRECTORY:
            raise BrokenTranscript("its list of files is far too long for an export")
        with zipfile.ZipFile(file) as archive:
            members = [each for each in archive.infolist() if is_export(each.filename)]
            if not members:
                raise BrokenTranscript(
                    "holds no conversations.json; name the archive that ChatGPT or Claude.ai sent"
                )
            _refuse_bombs(members)
            for member in members:
                with archive.open(member) as packed:
                    yield from iter_json_list(_texts(packed))
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BrokenTranscript(f"is a damaged archive ({error})") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, or an unusual packing
        raise BrokenTranscript(f"cannot be unpacked ({error})") from None


def _directory_size(file: BinaryIO) -> int:
    """How long the list at the end of the archive says that it is: read before any of it is believed."""
    file.seek(0, 2)
    file.seek(max(0, file.tell() - 65_557))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    size = int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0
    file.seek(0)
    return size if size != 0xFFFFFFFF else LARGEST_DIRECTORY + 1


def _refuse_bombs(members: "list[ZipInfo]") -> None:
    size = sum(each.file_size for each in members)
    packed = sum(each.compress_size for each in members)
    if size > LARGEST or (size > LARGE and size > TIGHTEST * packed):
        raise BrokenTranscript(f"would unpack {packed:,} bytes to {size:,}; no export does, so it is refused")


def _texts(file: Any) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while piece := file.read(PIECE):
        if text := decoder.decode(piece):
            yield text
    if text := decoder.decode(b"", True):
        yield text
