"""The lines of a transcript that may still grow: each with where it ends, so that the next reading begins there.

Knows that a line may be endless, not yet whole, or one of millions that are empty. Does not know what a line says.
"""

from collections.abc import Iterator
from typing import BinaryIO

from quaid.formats.transcripts import BrokenTranscript, parse_line

LONGEST_LINE = 32 * 1024 * 1024
MANY_EMPTY = 100
"""After so many empty lines the next ones are passed over together."""

PIECE = 1 << 20


def lines(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes | None]]:
    """Where each line ends, and the line; None for one that is too long. A last one that is not whole is left."""
    file.seek(start)
    end = start
    empty = 0
    while line := file.readline(LONGEST_LINE):
        if line.endswith(b"\n"):
            end += len(line)
            if not line.isspace():
                empty = 0
                yield end, line.removeprefix(b"\xef\xbb\xbf") if end == len(line) else line
                continue
            empty += 1
            if empty % MANY_EMPTY == 0:
                end = _after_empty(file, end)
        elif len(line) == LONGEST_LINE:
            size = len(line)
            while (more := file.readline(PIECE)) and not more.endswith(b"\n"):
                size += len(more)
            if not more:  # its end is not written yet
                return
            end += size + len(more)
            yield end, None
        elif _is_whole(line):
            yield end + len(line), line


def _after_empty(file: BinaryIO, end: int) -> int:
    """Go to the first line from here on that is not empty."""
    while piece := file.read(PIECE):
        kept = len(piece.lstrip(b"\n"))
        end += len(piece) - kept
        if kept:
            break
    file.seek(end)
    return end


def _is_whole(line: bytes) -> bool:
    try:
        parse_line(line)
    except BrokenTranscript:
        return False
    return True
