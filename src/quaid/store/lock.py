"""One writer at a time, over all threads and processes that use a memory.

Knows a file beside the database that is locked while somebody writes, or moves the write-ahead log into the
database, and that a writer may leave a note in. Does not know what is written. The system drops the lock when its
holder dies, so a crash leaves nothing to tidy up. The file itself stays: deleting it would let two processes lock two
different files.
"""

import errno
import os
import stat
import sys
import time
from _thread import RLock  # threading.RLock is the same; importing threading costs a millisecond
from typing import TYPE_CHECKING, Self

from quaid.errors import Busy, FileTrouble
from quaid.store.trouble import system_told_plainly

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE = 30.0
"""Seconds after which a writer gives up."""

FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.01
LONGEST_NOTE = 64
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
NOT_OURS = "it is not a plain file, so writers cannot lock it; move it away, and the next one makes it anew"

if sys.platform == "win32":
    import msvcrt

    def take(handle: int) -> bool:
        """Lock an open file if nobody else has; closing it gives the lock back."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def take(handle: int) -> bool:
        """Lock an open file if nobody else has; closing it gives the lock back."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class WriterLock:
    """The lock of one database, and the turn of the threads that share its connection."""

    def __init__(self, database_path: str) -> None:
        self.path = database_path + "-lock"
        self.patience = PATIENCE
        self.turn = RLock()
        self._database_path = database_path
        self._handle: int | None = None

    def held(self) -> Self:
        """The lock for a `with`: within it this thread writes alone."""
        return self

    def __enter__(self) -> None:
        """Take the lock. Waits while patience lasts, then raises Busy; other threads may read meanwhile."""
        deadline, pause = time.monotonic() + self.patience, FIRST_PAUSE
        while not self.try_take():
            if time.monotonic() >= deadline:
                raise Busy(path=self._database_path, seconds=round(self.patience))
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.release()

    def try_take(self) -> bool:
        """Take the lock, and with it this thread's turn, unless another process holds it."""
        self.turn.acquire()
        try:
            if self._handle is not None:
                raise RuntimeError("a write was begun inside a write")
            handle = self._locked_handle()
        except BaseException:
            self.turn.release()
            raise
        if handle is None:
            self.turn.release()
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            self.turn.release()

    def note(self, what: bytes) -> None:
        """Within the lock: leave a note for whoever opens the memory next. It may get lost, as in a power cut."""
        if self._handle is not None and what:
            try:
                os.lseek(self._handle, 0, os.SEEK_SET)
                os.write(self._handle, what)
            except OSError:  # what it is about is written all the same
                pass

    def noted(self) -> bytes:
        """The note that the last writer left, if there is one."""
        try:
            handle = self._opened(os.O_RDONLY)
            try:
                return os.read(handle, LONGEST_NOTE)
            finally:
                os.close(handle)
        except (OSError, FileTrouble):
            return b""

    def remove_file(self) -> None:
        """Leave no trace of a database that could not be made. Whoever waits for the file makes a new one."""
        os.unlink(self.path)

    def _locked_handle(self) -> int | None:
        with system_told_plainly(self.path):
            handle = self._opened(os.O_RDWR | os.O_CREAT)
        if take(handle) and self._is_current(handle):
            return handle
        os.close(handle)
        return None

    def _opened(self, flags: int) -> int:
        """The file, if it is one: neither a link to another, into which a note would go, nor a pipe, which waits."""
        try:
            handle = os.open(self.path, flags | NO_LINK, 0o600)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EISDIR):
                raise
            raise FileTrouble(path=self.path, problem=NOT_OURS) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileTrouble(path=self.path, problem=NOT_OURS)
        return handle

    def _is_current(self, handle: int) -> bool:
        """Whether the locked file is still the one at the path: somebody may have deleted it meanwhile."""
        try:
            there, here = os.stat(self.path), os.fstat(handle)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
