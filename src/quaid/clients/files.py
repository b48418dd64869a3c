"""Files of other programs, changed so that nothing is lost: a backup first, then the new file in one step.

Knows bytes, names and the disk. A link is followed to the file it means (people keep their settings in a
repository); a file that changed while we looked is left alone. Does not know what is in the files.
"""

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from quaid.errors import ClientFile, QuaidError
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

LARGEST = 64 * 1024 * 1024
BACKUP = ".quaid-backup"


class Change(NamedTuple):
    """A file as it is and as it should be."""

    path: str
    before: str | None  # None: there is no file
    after: str

    @property
    def needed(self) -> bool:
        return (self.before or "") != self.after


def read(path: str) -> str | None:
    """The text of a file with its line ends as they are, or None when there is none."""
    with translate_os_errors(path):
        try:
            # Opening a named pipe that nobody writes to would wait for ever.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            return None
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            os.close(handle)
            problem = "it is a folder" if stat.S_ISDIR(kind) else "it is not a plain file"
            raise ClientFile(path=path, problem=problem)
        with os.fdopen(handle, "rb") as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ClientFile(path=path, problem=f"it is larger than {LARGEST:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ClientFile(path=path, problem=f"byte {error.start} is not UTF-8") from None


def write(change: Change, moment: str) -> str | None:
    """Make a change durable; the backup's path, if there was a file to back up."""
    path = os.path.realpath(change.path)
    with translate_os_errors(change.path):
        durable_files.make_folders(os.path.dirname(path))
        backup = _backed_up(path, change.before, moment) if change.before is not None else None
        unfinished = f"{path}.quaid-{os.getpid()}"
        try:
            _make(unfinished, change.after, _mode(path))
            if read(path) != change.before:
                raise ClientFile(path=change.path, problem="another program changed it just now; try again")
            os.replace(unfinished, path)
            durable_files.sync_folder(os.path.dirname(path))
        except BaseException:
            durable_files.remove_with_sidecars(unfinished)
            raise
    return backup


def newest_backup(path: str) -> str | None:
    """The last copy of a file that was made before a change of ours, if there is one."""
    return next(iter(backups(path)), None)


def backups(path: str) -> list[str]:
    """The copies of a file that were made before changes of ours, newest first."""
    folder, name = os.path.split(os.path.realpath(path))
    try:
        found = [each for each in os.listdir(folder) if each.startswith(f"{name}.") and each.endswith(BACKUP)]
    except OSError:
        return []

    def made(each: str) -> tuple[str, int]:
        stamp, _, number = each[len(name) + 1 : -len(BACKUP)].partition("-")
        return stamp, int(number) if number.isdecimal() else 0

    return [os.path.join(folder, each) for each in sorted(found, key=made, reverse=True)]


def text_before(path: str, ours: Callable[[str], bool]) -> str:
    """The text of the newest backup that had nothing of ours in it; "" when there is none."""
    for each in backups(path):
        try:
            text = read(each) or ""
            if not ours(text):
                return text
        except (QuaidError, ValueError):
            continue  # a backup that cannot be read says nothing
    return ""


def _backed_up(path: str, text: str, moment: str) -> str:
    stamp = "".join(each for each in moment if each.isalnum())
    for number in range(100):
        backup = f"{path}.{stamp}{f'-{number}' if number else ''}{BACKUP}"
        try:
            _make(backup, text, _mode(path))
        except FileExistsError:
            continue
        return backup
    raise ClientFile(path=path, problem="there are too many backups beside it")


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o600


def _make(path: str, text: str, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    os.chmod(path, mode)
