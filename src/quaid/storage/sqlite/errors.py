"""Translate errors of SQLite and the operating system into the classes of quaid.errors.

Bugs in our own code (wrong SQL, a violated constraint) are not translated. version_problem() explains why a
memory with a certain schema version cannot be opened.
"""

import errno
import os
from typing import TYPE_CHECKING

from quaid import errors
from quaid.storage import IMPORTED_VERSION, PREVIOUS_VERSIONS, SCHEMA_VERSION
from quaid.storage.collections import folder_list_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from quaid.storage.sqlite.connection import Transaction


BUSY_SECONDS = 10
"""SQLite's busy timeout in seconds, for programs that write to the file without our writer lock."""

DAMAGE_MESSAGES = (
    "no such table",
    "fts5 file format",
    "vtable constructor failed",
    "malformed",
    "unsupported file format",
)
"""Parts of the messages of generic SQL errors that SQLite raises for some damaged files."""

CHECK_THE_DISK = (
    "what was being written was not. Check the disk and try again; `quaid validate` tells whether all is well"
)


# These are classes, not generators: importing contextlib costs a millisecond in every new process. apsw is imported
# only on a failure, because half of the commands open no memory.


class _ErrorTranslation:
    """Base class of context managers that translate errors about the file at `path`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass


class translate_sqlite_errors(_ErrorTranslation):  # noqa: N801 - used in `with` statements
    """Translate SQLite errors about the database at `path` into errors of quaid.errors."""

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if isinstance(failure, UnicodeDecodeError):
            raise errors.DamagedDatabase(path=self._path, problem="a text in it is not UTF-8") from failure
        if isinstance(failure, UnicodeEncodeError):
            problem = "it holds half a character (a lone surrogate)"
            raise errors.InvalidArgument(name="text", problem=problem) from failure
        if isinstance(failure, Exception):
            plain = sqlite_error(self._path, failure)
            if plain is not None:
                raise plain from failure


class translate_os_errors(_ErrorTranslation):  # noqa: N801
    """Translate operating system errors about the file at `path` into errors of quaid.errors."""

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if isinstance(failure, OSError):
            raise os_error(self._path, failure) from failure


def sqlite_error(path: str, failure: Exception) -> errors.QuaidError | None:
    """Return the error to show to the user, or None for bugs in our own code and exceptions not from SQLite."""
    import apsw

    if not isinstance(failure, apsw.Error):
        return None
    problem = str(failure)
    if isinstance(failure, apsw.FullError):
        return errors.DiskFull(path=path)
    if isinstance(failure, apsw.BusyError | apsw.LockedError):
        return errors.Busy(path=path, seconds=BUSY_SECONDS)
    if isinstance(failure, apsw.NotADBError):
        return errors.NotADatabase(path=path, problem=problem)
    if isinstance(failure, apsw.CorruptError) or any(sign in problem for sign in DAMAGE_MESSAGES):
        return errors.DamagedDatabase(path=path, problem=problem)
    if isinstance(failure, apsw.ReadOnlyError):
        return errors.ReadOnly(path=path, problem=problem)
    if isinstance(failure, apsw.CantOpenError):
        return _cannot_open_error(path)
    if isinstance(failure, apsw.InterruptError):
        return errors.Cancelled()
    if isinstance(failure, apsw.IOError):
        # On a full disk SQLite cannot extend the WAL index and reports an I/O error.
        if getattr(failure, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
            return errors.DiskFull(path=path)
        return errors.FileTrouble(path=path, problem=f"{problem}; {CHECK_THE_DISK}")
    return None


def is_row_error(failure: Exception) -> bool:
    """Return True if the data being written may have caused the failure, rather than the database or the disk."""
    if isinstance(failure, errors.QuaidError):
        return isinstance(failure, errors.InvalidArgument)
    return sqlite_error("", failure) is None and not isinstance(failure, OSError | MemoryError)


def write_alone(tx: "Transaction", write: "Callable[[], None]") -> Exception | None:
    """Run `write` in a savepoint. Return None, or the exception if the data may have caused it.

    Other exceptions are raised.
    """
    try:
        with tx:
            write()
    except Exception as failure:
        if not is_row_error(failure):
            raise
        return failure
    return None


def os_error(path: str, failure: OSError) -> errors.QuaidError:
    """Return the error to show to the user for a failed operating system call."""
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.DiskFull(path=path)
    problem = (failure.strerror or str(failure)).lower()
    if failure.errno == errno.EIO:
        return errors.FileTrouble(path=path, problem=f"{problem}; {CHECK_THE_DISK}")
    if failure.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return errors.ReadOnly(path=path, problem=problem)
    return errors.FileTrouble(path=path, problem=problem)


def _cannot_open_error(path: str) -> errors.QuaidError:
    """Return an error that says why the file cannot be opened, which SQLite does not report."""
    if not os.path.lexists(path):
        return missing_database(path)
    if not os.access(path, os.R_OK):
        return errors.FileTrouble(path=path, problem="it may not be read")
    return errors.ReadOnly(path=path, problem="the files that belong beside it could not be made")


def missing_database(path: str) -> errors.MissingDatabase:
    """Return the error for a missing memory. A deleted memory can be rebuilt if it had attached folders."""
    remedy = f"`quaid init {path}` makes one."
    if os.path.exists(folder_list_path(path)):
        remedy = "It was deleted: the next `quaid query` or `quaid recall` rebuilds it from its folders."
    return errors.MissingDatabase(path=path, remedy=remedy)


def version_problem(version: int) -> str:
    """Return why a memory with this schema version cannot be opened, or an empty string."""
    if version > SCHEMA_VERSION:
        return "a newer Quaid made it"
    if version < IMPORTED_VERSION:
        return f"older than {IMPORTED_VERSION}, the oldest that can be upgraded"
    if version not in (IMPORTED_VERSION, *PREVIOUS_VERSIONS, SCHEMA_VERSION):
        remedy = "`quaid export` of that one writes its pages, and `quaid import` reads them"
        return f"an unreleased Quaid made it; {remedy}"
    return ""
