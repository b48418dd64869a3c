"""Translate errors of SQLite and the operating system into the classes of quaid.errors.

Mistakes in our own code (wrong SQL, a violated constraint) pass through unchanged.
"""

import errno
import os
from typing import TYPE_CHECKING

from quaid.errors import (
    Busy,
    Cancelled,
    DamagedDatabase,
    DiskFull,
    FileTrouble,
    InvalidArgument,
    MissingDatabase,
    NotADatabase,
    QuaidError,
    ReadOnly,
)
from quaid.storage.collections import folder_list_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import apsw

BUSY_SECONDS = 10
"""How long SQLite itself waits for a program that does not know our lock."""

DAMAGE_MESSAGES = ("fts5 file format", "vtable constructor failed", "malformed", "unsupported file format")
"""What SQLite calls a mistake in the SQL, though it is the file that is hurt."""

CHECK_THE_DISK = (
    "what was being written was not. Check the disk and try again; `quaid validate` tells whether all is well"
)


# Both are classes and not generators: contextlib, with what it loads, is a millisecond of every cold command. And
# apsw is looked at only when there is a failure: half of the commands open no memory.


class _ErrorTranslation:
    """Something that is done with the file at `path`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass


class translate_sqlite_errors(_ErrorTranslation):  # noqa: N801 - it is read behind `with`
    """Turn what SQLite says about the database at `path` into our errors."""

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if isinstance(failure, UnicodeDecodeError):
            raise DamagedDatabase(path=self._path, problem="a text in it is not UTF-8") from failure
        if isinstance(failure, UnicodeEncodeError):
            problem = "it holds half a character (a lone surrogate)"
            raise InvalidArgument(name="text", problem=problem) from failure
        if isinstance(failure, Exception):
            plain = sqlite_error(self._path, failure)
            if plain is not None:
                raise plain from failure


class translate_os_errors(_ErrorTranslation):  # noqa: N801
    """Turn what the operating system says about the file at `path` into our errors."""

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if isinstance(failure, OSError):
            raise os_error(self._path, failure) from failure


def sqlite_error(path: str, failure: Exception) -> QuaidError | None:
    """The error that the user should see, or None when the failure is a mistake in our own code, or not SQLite's."""
    import apsw

    if not isinstance(failure, apsw.Error):
        return None
    problem = str(failure)
    if isinstance(failure, apsw.FullError):
        return DiskFull(path=path)
    if isinstance(failure, apsw.BusyError | apsw.LockedError):
        return Busy(path=path, seconds=BUSY_SECONDS)
    if isinstance(failure, apsw.NotADBError):
        return NotADatabase(path=path, problem=problem)
    if isinstance(failure, apsw.CorruptError) or any(sign in problem for sign in DAMAGE_MESSAGES):
        return DamagedDatabase(path=path, problem=problem)
    if isinstance(failure, apsw.ReadOnlyError):
        return ReadOnly(path=path, problem=problem)
    if isinstance(failure, apsw.CantOpenError):
        return _cannot_open_error(path)
    if isinstance(failure, apsw.InterruptError):
        return Cancelled()
    if isinstance(failure, apsw.IOError):
        # On a full disk there is no room even for the index of the log, and SQLite calls that an I/O error.
        if getattr(failure, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
            return DiskFull(path=path)
        return FileTrouble(path=path, problem=f"{problem}; {CHECK_THE_DISK}")
    return None


def is_row_error(failure: Exception) -> bool:
    """Whether a failed write may be due to what was written, and not to the memory, the disk or the caller."""
    if isinstance(failure, QuaidError):
        return isinstance(failure, InvalidArgument)
    return sqlite_error("", failure) is None and not isinstance(failure, OSError | MemoryError)


def write_alone(tx: "apsw.Connection", write: "Callable[[], None]") -> Exception | None:
    """Run `write` in a savepoint. Return a failure that may be due to what was written; raise any other."""
    try:
        with tx:
            write()
    except Exception as failure:
        if not is_row_error(failure):
            raise
        return failure
    return None


def os_error(path: str, failure: OSError) -> QuaidError:
    """The same for a failed call of the operating system."""
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=path)
    problem = (failure.strerror or str(failure)).lower()
    if failure.errno == errno.EIO:
        return FileTrouble(path=path, problem=f"{problem}; {CHECK_THE_DISK}")
    if failure.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnly(path=path, problem=problem)
    return FileTrouble(path=path, problem=problem)


def _cannot_open_error(path: str) -> QuaidError:
    """SQLite says only that it cannot open the file; look at the file to say why."""
    if not os.path.lexists(path):
        return missing_database(path)
    if not os.access(path, os.R_OK):
        return FileTrouble(path=path, problem="it may not be read")
    return ReadOnly(path=path, problem="the files that belong beside it could not be made")


def missing_database(path: str) -> MissingDatabase:
    """The error for a memory that is not there; one that was deleted can be rebuilt if it had folders."""
    remedy = f"`quaid init {path}` makes one."
    if os.path.exists(folder_list_path(path)):
        remedy = "It was deleted: the next `quaid query` or `quaid recall` rebuilds it from its folders."
    return MissingDatabase(path=path, remedy=remedy)
