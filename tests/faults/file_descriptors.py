"""Which process has which file open under which number, and where in it the next byte goes, as strace tells it.

A number stands for an opening of a file, which has a place in the file; several numbers may stand for the same one:
copies, those of a child, and those of all threads of a process. Does not know what the files hold.
"""

import re

CALLS = "openat,lseek,read,readv,dup,dup2,dup3,fcntl,clone,clone3,fork,vfork"
"""What has to be seen. Of `read`, only how much: its line is a raw one, with numbers instead of bytes and paths."""

RAW = "read,readv"

BIRTHS = ("clone", "clone3", "fork", "vfork")

_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


class Opening:
    """An opened file."""

    def __init__(self, *, appending: bool = False) -> None:
        self.at = 0
        self.appending = appending


class Handles:
    """The numbers of all processes and threads.

    Whose child each of them is, and by which call, has to be known before: a child may be heard before that call has
    returned."""

    def __init__(self, births: dict[str, tuple[str, str]]) -> None:
        self._births = births
        self.tables: dict[str, dict[int, Opening]] = {}
        self.folders: dict[str, str] = {}
        """Where each of them stands, as far as it is known."""

    def saw(self, process: str, call: str, arguments: str, result: int) -> None:
        """Take note of one of the calls above."""
        table = self.table(process)
        if call in BIRTHS:
            self.table(str(result))
        elif result >= 0:
            number = _NUMBER.match(arguments)
            first = int(number[0], 0) if number else -1
            if call == "openat":
                table[result] = Opening(appending="O_APPEND" in arguments)
            elif call == "lseek" and first in table:
                table[first].at = result
            elif call in ("read", "readv") and first in table:
                table[first].at += result
            elif call.startswith("dup") or (call == "fcntl" and "F_DUPFD" in arguments):
                table[result] = table.get(first) or Opening()

    def table(self, process: str) -> dict[int, Opening]:
        """The numbers of a process. A thread has the very table of its parent; a child has a copy, with the same
        openings."""
        if process not in self.tables:
            parent, arguments = self._births.get(process, ("", ""))
            inherited = self.tables.get(parent, {})
            self.tables[process] = inherited if "CLONE_FILES" in arguments else dict(inherited)
            self.folders[process] = self.folders.get(parent, "/")
        return self.tables[process]

    def write(self, process: str, number: int, count: int) -> int:
        """Where so many bytes go that are written now; -1: to the end of the file, wherever it is."""
        opening = self.table(process)[number]
        if opening.appending:
            return -1
        opening.at += count
        return opening.at - count
