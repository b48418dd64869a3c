"""One writer at a time, over all processes that use a memory.

Knows a file beside the database that is locked while somebody writes or moves the write-ahead log into the
database. Does not know what is written. The system drops the lock when its holder dies, so a crash leaves
nothing to tidy up. The file itself stays: deleting it would let two processes lock two different files.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from quaid.errors import Busy
from quaid.store.trouble import of_system

PATIENCE = 30.0
"""Seconds after which a writer gives up."""

FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.01

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _take(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class WriterLock:
    """The lock of one database. A holder must not ask for it again."""

    def __init__(self, database_path: str, patience: float = PATIENCE) -> None:
        self.path = database_path + "-lock"
        self.patience = patience
        self._database_path = database_path
        self._handle: int | None = None

    def try_take(self) -> bool:
        """Take the lock if nobody holds it. Raises ReadOnly where the lock file cannot be made."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as failure:
            raise of_system(self._database_path, failure) from failure
        if _take(handle) and self._is_current(handle):
            self._handle = handle
            return True
        os.close(handle)
        return False

    def release(self) -> None:
        """Give the lock back."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock; wait for it as long as patience lasts, then raise Busy."""
        deadline, pause = time.monotonic() + self.patience, FIRST_PAUSE
        while not self.try_take():
            if time.monotonic() >= deadline:
                raise Busy(path=self._database_path, seconds=round(self.patience))
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        try:
            yield
        finally:
            self.release()

    def _is_current(self, handle: int) -> bool:
        """Whether the locked file is still the one at the path: somebody may have deleted it meanwhile."""
        try:
            there, here = os.stat(self.path), os.fstat(handle)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
