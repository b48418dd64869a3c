"""Leases, which ensure that only one process embeds, and that only one process watches each folder.

A lease is a named lock file next to the database. At most one process holds it. Its content is JSON written
by the holder. The system releases the lock when the process ends, even if the process crashes. The holder
touches the file every HEARTBEAT_SECONDS as a heartbeat. If it was not touched for HEARTBEAT_TIMEOUT seconds, the
holder is assumed to be hung: another process deletes the file and locks a new file, which the former holder
detects with is_held(). It does no harm if two processes act as holders for a moment, because every write is a
transaction.
"""

import json
import os
import time
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from quaid.storage.files import is_file_at, try_lock_file
from quaid.storage.sqlite.errors import translate_os_errors

HEARTBEAT_SECONDS = 3.0
HEARTBEAT_TIMEOUT = 10.0
LOCKED_BYTE = 1 << 30  # beyond the end of any content, because Windows blocks reads of locked bytes
LONGEST_STATE = 4_096


class Lease:
    """A named lease on a memory."""

    def __init__(self, database_path: str, name: str) -> None:
        self._database_path = database_path
        self._path = _lease_path(database_path, name)
        self._handle: int | None = None
        self._ended = Event()
        self._heartbeat: Thread | None = None

    def try_take(self) -> bool:
        """Take the lease and return True, or return False if another process holds it."""
        for _ in range(3):  # another process may lock or delete the file meanwhile
            with translate_os_errors(self._database_path):
                handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            is_locked = _try_lock(handle)
            if is_locked and is_file_at(handle, self._path):
                self._handle = handle
                return True
            hangs = not is_locked and _is_stale(handle)
            if hangs and is_file_at(handle, self._path):
                # On Windows, an open file cannot be deleted, so the hanging process keeps the lease.
                with suppress(OSError):
                    os.unlink(self._path)
            os.close(handle)
            if not is_locked and not hangs:
                return False
        return False

    def hold(self, **state: Any) -> None:
        """Write the process id and `state` to the lease, and keep the lease alive until it is released."""
        self.write({"pid": os.getpid(), **state})
        self._ended.clear()
        self._heartbeat = Thread(target=self._beat, name="lease", daemon=True)
        self._heartbeat.start()

    def write(self, state: dict[str, Any]) -> None:
        """Replace the content of the lease."""
        assert self._handle is not None
        with translate_os_errors(self._database_path):
            os.ftruncate(self._handle, 0)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, json.dumps(state).encode() if state else b"")

    def is_held(self) -> bool:
        """Return True unless the lease was released or taken over."""
        return self._handle is not None and is_file_at(self._handle, self._path)

    def release(self, *, remove: bool = False) -> None:
        """Release the lease. With `remove`, also delete its file, if the lease is still held."""
        self._ended.set()
        if self._heartbeat is not None:
            self._heartbeat.join()
        if self._handle is not None:
            if remove and self.is_held():
                with suppress(OSError):
                    os.unlink(self._path)
            os.close(self._handle)
            self._handle = None

    def _beat(self) -> None:
        handle = self._handle if os.utime in os.supports_fd else None
        while not self._ended.wait(HEARTBEAT_SECONDS):
            with suppress(OSError):
                os.utime(self._path if handle is None else handle)


def is_leased(database_path: str, name: str) -> bool:
    """Return True if a live process holds the lease, or if this cannot be determined."""
    try:
        handle = os.open(_lease_path(database_path, name), os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:  # without write access the lock cannot be tested; assume that it is held
        return True
    try:
        return not _try_lock(handle) and not _is_stale(handle)
    finally:
        os.close(handle)


def read_state(database_path: str, name: str) -> dict[str, Any]:
    """Return the state that the current or last holder wrote to a lease; {} if it cannot be read."""
    try:
        with open(_lease_path(database_path, name), "rb") as file:
            state = json.loads(file.read(LONGEST_STATE) or b"{}")
    except (OSError, ValueError):  # ValueError means that the file is only partly written
        return {}
    return state if isinstance(state, dict) else {}


def _lease_path(database_path: str, name: str) -> str:
    return f"{database_path}-{name}-lock"


def _try_lock(handle: int) -> bool:
    os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
    return try_lock_file(handle)


def _is_stale(handle: int) -> bool:
    return time.time() - os.fstat(handle).st_mtime > HEARTBEAT_TIMEOUT
