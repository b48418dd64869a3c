"""Encrypt, decrypt and rekey a memory: write a converted copy beside it, compare both, and rename the copy.

If the process is killed, either the old or the new file is complete. While the copy is made, this process has the
only connection to the memory: it holds the writer lock, in exclusive locking mode, without a WAL.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import apsw

from quaid.errors import DamagedDatabase, DiskFull, FileTrouble, InUse, ReadOnly
from quaid.storage import files as durable_files
from quaid.storage.collections import set_image_key
from quaid.storage.sqlite.cipher import CipherKey, require_cipher, target_uri
from quaid.storage.sqlite.connection import (
    APPLICATION_ID,
    NO_WAL_NOTE,
    UNFINISHED_COPY,
    Transaction,
    WriterLock,
    cipher_header,
    connect,
    file_size,
    is_writable,
)
from quaid.storage.sqlite.errors import translate_os_errors, translate_sqlite_errors

if TYPE_CHECKING:
    from quaid.storage.sqlite.cipher import CipherHeader

OTHERS_WAIT_MS = 2000
PROGRESS_STEPS = 20_000

Progress = Callable[[int, int, str], None]


def convert(
    path: str, key: CipherKey | None, progress: Progress, image_key: str = "", *, is_backup: bool = False
) -> None:
    """Replace a memory by a copy encrypted with this key, or by an unencrypted copy if `key` is None.

    `image_key`, the key of the images beside the memory, is stored in an encrypted copy that has none yet. A backup
    is converted without the writer lock, and keeps its modification time. Raise InUse if another process has the
    file open.
    """
    path = os.path.realpath(path)
    require_cipher(path)
    if not is_writable(path):
        raise ReadOnly(path=path, problem="the file or its folder is write-protected")
    if is_backup:
        made = os.stat(path)
        _convert(path, key, progress, image_key)
        os.utime(path, ns=(made.st_atime_ns, made.st_mtime_ns))
    else:
        lock = WriterLock(path)
        with lock.held():
            _convert(path, key, progress, image_key)
            lock.note(NO_WAL_NOTE)


def _convert(path: str, key: CipherKey | None, progress: Progress, image_key: str) -> None:
    unfinished = path + UNFINISHED_COPY
    with translate_os_errors(path), translate_sqlite_errors(path):
        durable_files.remove_with_sidecars(unfinished)
        connection = connect(path, writable=True)
        try:
            _exclude_others(connection, path)
            durable_files.make_private_file(unfinished)
            os.chmod(unfinished, os.stat(path).st_mode & 0o777)
            _copy(connection, unfinished, key, progress)
            _compare(connection, unfinished, key.header if key else None, progress)
            if key is not None and image_key:
                _set_image_key(unfinished, image_key)
            connection.close()
            durable_files.rename_durably(unfinished, path)
        except BaseException:
            durable_files.remove_with_sidecars(unfinished)
            raise
        finally:
            connection.close()


def _set_image_key(path: str, image_key: str) -> None:
    copy = connect(path, writable=True)
    try:
        if copy.one("SELECT 1 FROM sqlite_schema WHERE name = 'quaid_config'"):  # schema 5 has no such table
            set_image_key(copy, image_key)
    finally:
        copy.close()


def _exclude_others(connection: Transaction, path: str) -> None:
    """Merge the WAL into the file, and lock out all other processes. Raise InUse if one has the file open."""
    connection.set_busy_timeout(OTHERS_WAIT_MS)
    try:
        connection.pragma("locking_mode", "EXCLUSIVE")
        if connection.pragma("journal_mode", "DELETE") != "delete":
            raise InUse(path=path)
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except (apsw.BusyError, apsw.LockedError):
        raise InUse(path=path) from None


def _copy(connection: Transaction, target: str, key: CipherKey | None, progress: Progress) -> None:
    expected = file_size(connection.filename)

    def report() -> bool:
        progress(min(file_size(target), expected), expected, "Writing the new file")
        return False

    connection.set_progress_handler(report, PROGRESS_STEPS)
    try:
        connection.execute("VACUUM INTO ?", (target_uri(target, key),))
    except apsw.FullError:
        raise DiskFull(path=target) from None
    except (apsw.CantOpenError, apsw.IOError) as error:
        # SQLite's message contains the URI, which includes the key.
        raise FileTrouble(path=target, problem=f"cannot be written ({type(error).__name__})") from None
    finally:
        connection.set_progress_handler(None)


def _compare(
    connection: Transaction, unfinished: str, header: "CipherHeader | None", progress: Progress
) -> None:
    """Raise DamagedDatabase unless the copy is intact and has the right key and as many rows as the memory."""
    progress(0, 1, "Checking the new file")
    if cipher_header(unfinished) != header:
        raise DamagedDatabase(path=unfinished, problem="the copy does not have the new key")
    copy = connect(unfinished, writable=False)
    try:
        checked = copy.execute("PRAGMA integrity_check(1)").fetchall()
        if checked != [("ok",)]:
            raise DamagedDatabase(path=unfinished, problem=str(checked[0][0]))
        tables = connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        for (table,) in tables:
            counts = [each.one(f'SELECT count(*) FROM "{table}"') for each in (connection, copy)]  # noqa: S608
            if counts[0] != counts[1]:
                raise DamagedDatabase(path=unfinished, problem=f"the copy lacks rows of {table}")
        if copy.pragma("application_id") != APPLICATION_ID:
            raise DamagedDatabase(path=unfinished, problem="the copy lacks the mark of a memory")
        progress(1, 1, "Checking the new file")
    finally:
        copy.close()
