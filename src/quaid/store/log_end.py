"""Whether the write-ahead log holds writes that cannot be read any more.

Knows the layout of SQLite's log. A log ends for SQLite at the first frame whose checksum is wrong. Behind it there
may be one transaction that a power cut has torn: nobody was told that it was kept. Of two, the first had been on the
disk before the second began (`synchronous=FULL`), so the frame was whole once and was acknowledged: the log is
damaged, and going on would serve an older state as the present one.

One torn transaction, or a log that was cut off, looks as after a power cut. So every writer leaves a note behind its
commit, in the file of the writers' lock, of how far the log went: it is not synced, and so never ahead of the log on
the disk. A log that ends before the note says has lost something. About another log it says nothing, and about
none: people bring backups back, and other programs tidy a log away.
"""

import os
from typing import Literal

import apsw

from quaid.errors import DamagedDatabase

HEADER, FRAME = 32, 24
"""Bytes before the first frame, and of a frame before its page."""

PATIENCE = 256
"""Frames behind the end that are looked at: two transactions end within as many, but for the largest imports."""


CAN_TELL = hasattr(apsw, "SQLITE_CHECKPOINT_NOOP") and hasattr(os, "pread")
"""Whether this SQLite says where its log ends without moving it."""

NO_LOG = bytes(16)
"""The note of who leaves no log."""


def note(path: str, connection: apsw.Connection) -> bytes:
    """Which log it is, and how many frames of it are written: for `check`, should the log be shorter one day."""
    if not CAN_TELL:
        return NO_LOG
    try:
        handle = os.open(path + "-wal", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return NO_LOG
    try:
        salts, frames = os.pread(handle, 8, 16), _end(connection)
    except (OSError, apsw.Error):  # what it would be about is written all the same
        return NO_LOG
    finally:
        os.close(handle)
    return salts + frames.to_bytes(8, "big") if len(salts) == 8 else NO_LOG


def check(path: str, connection: apsw.Connection, noted: bytes = b"") -> None:
    """DamagedDatabase when transactions that were acknowledged are missing from the log, or lie behind its end."""
    if not CAN_TELL:
        return
    try:
        handle = os.open(path + "-wal", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:  # there is none
        return
    try:
        try:
            end = _end(connection)
        except apsw.ReadOnlyError:  # who may not write does not get to know
            return
        size = os.fstat(handle).st_size
        page = _page_size(connection)
        header = os.pread(handle, HEADER, 0)
        missing = _missing(noted, header, end)
        if size < HEADER + (end + 2) * (FRAME + page) and not missing:
            return
        behind = _commits_behind(handle, end, page, header)
        # Who writes meanwhile puts frames behind our end, or begins the log anew: then it is alive.
        alive = _end(connection) != end or os.pread(handle, HEADER, 0) != header
    finally:
        os.close(handle)
    if (behind > 1 or missing) and not alive:
        lost = f"{max(behind, 1)} or more acknowledged writes are lost in it"
        accept = "QUAID_TORN_LOG=accept opens it as it was before them"
        problem = f"its log cannot be read to the end, and {lost}; {accept}"
        raise DamagedDatabase(path=path, problem=problem)


def _missing(noted: bytes, header: bytes, end: int) -> bool:
    """Whether a log ends before the note that the last writer left. One whose header is hurt ends at once."""
    salts, frames = noted[:8], int.from_bytes(noted[8:16], "big")
    return any(salts) and (not _is_whole(header) or salts == header[16:24]) and frames > end


def _end(connection: apsw.Connection) -> int:
    """How many frames SQLite finds good."""
    good, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return max(0, good)


def _page_size(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_size"))


def _commits_behind(handle: int, end: int, page: int, header: bytes) -> int:
    """How many transactions of this log end behind its end. Frames of the log before this one have other salts."""
    salts = header[16:24]
    if not _is_whole(header):
        salts = os.pread(handle, 8, HEADER + 8)  # those of its first frame, if that is not hurt as well
    found = 0
    for number in range(end, end + PATIENCE):
        frame = os.pread(handle, FRAME, HEADER + number * (FRAME + page))
        if len(frame) < FRAME:
            break
        if frame[8:16] == salts and frame[4:8] != b"\0\0\0\0":
            found += 1
    return found


def _is_whole(header: bytes) -> bool:
    """Whether the header's checksum is right: two sums over its first 24 bytes."""
    if len(header) < HEADER:
        return False
    order: Literal["big", "little"] = "big" if header[3] & 1 else "little"
    first = second = 0
    for at in range(0, 24, 8):
        first = (first + int.from_bytes(header[at : at + 4], order) + second) & 0xFFFFFFFF
        second = (second + int.from_bytes(header[at + 4 : at + 8], order) + first) & 0xFFFFFFFF
    return header[24:32] == first.to_bytes(4, "big") + second.to_bytes(4, "big")
