"""A second process that parses files while this one reads on and writes: for folders so large that it pays.

It shares two nameless files with us: the spool, in which it reads, and one for what it finds out. Pipes carry only
how far each has come, so neither ever waits for the other to take something, and memory stays flat. It gives up when
we end, however that was. When it ends before its work is done, so does the import, with a remedy. When it says
nothing for long, because somebody stopped it, the rest is parsed here.
"""

import marshal
import os
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from quaid.errors import FileTrouble
from quaid.model.links import LinkReference
from quaid.model.page import DerivedData, Page
from quaid.model.timeline import TimelineEntry

if TYPE_CHECKING:
    from subprocess import Popen

ALONE = 30
"""Files that are parsed here before anybody is asked for help."""

WORTH_IT = 300
"""Files that must wait then: starting a process takes as long as parsing about a hundred of them."""

STEP = 256 * 1024
"""Bytes after which one tells the other how far it has come."""

NUMBER = 8

QUIET_SECONDS = 60.0
"""Without a word while we wait for one: so long takes no file."""


class Parsed(NamedTuple):
    page: Page
    notes: tuple[str, ...]
    derived: DerivedData


def is_worth_it(done: int, waiting: int) -> bool:
    """Whether a second process pays, after so many files with so many to come."""
    return done >= ALONE and waiting >= WORTH_IT and _can_share() and processors() > 1


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _can_share() -> bool:
    return os.name == "posix" and bool(sys.executable)


class Ahead:
    """The process beside us, and what it has found out so far."""

    def __init__(self, spool: IO[bytes], found: IO[bytes], memory: str) -> None:
        import subprocess

        self._found = found
        self._memory = memory
        self._told = 0
        self._there = 0
        shared = (spool.fileno(), found.fileno())
        # -P: without it Python would look for modules in the folder that the user happens to stand in.
        command = [sys.executable, "-P", "-m", "quaid.vaults.parser", *map(str, shared)]
        self._process: Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=shared,
            bufsize=0,
        )

    def is_behind(self, end: int) -> bool:
        """Whether it is worth telling that the spool ends here."""
        # Ever larger steps: the pipe must not fill while nobody reads it.
        return end - self._told > max(STEP, self._told // 8)

    def tell(self, end: int) -> None:
        """The spool can be read up to here."""
        self._told = end
        assert self._process.stdin
        try:
            self._process.stdin.write(end.to_bytes(NUMBER, "little"))
        except BrokenPipeError:
            raise self._ended() from None

    def parsed(self) -> Iterator[Parsed | None]:
        """What was found out, in the order of the files, from the first one on; None for a file that it failed on."""
        place = 0
        try:
            while True:
                size = int.from_bytes(self._read(place, NUMBER), "little")
                record = self._read(place + NUMBER, size)
                place += NUMBER + size
                yield loaded(record)
        except TimeoutError:
            self._process.kill()
        while True:
            yield None

    def _read(self, place: int, size: int) -> bytes:
        import select

        assert self._process.stdout
        while self._there < place + size:
            if not select.select([self._process.stdout], [], [], QUIET_SECONDS)[0]:
                raise TimeoutError
            told = self._process.stdout.read(NUMBER)
            if len(told or b"") < NUMBER:
                raise self._ended()
            self._there = int.from_bytes(told, "little")
        data = os.pread(self._found.fileno(), size, place)
        while len(data) < size:  # a call may give less
            data += os.pread(self._found.fileno(), size - len(data), place + len(data))
        return data

    def _ended(self) -> FileTrouble:
        status = self._process.wait()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        problem = (
            f"the process that parses files beside this one ended early ({how});"
            " nothing of this folder was taken in. Free some memory and run the command again"
        )
        return FileTrouble(path=self._memory, problem=problem)

    def close(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process.wait()
        self._found.close()


def plain(page: Page) -> tuple[Any, ...]:
    """A page as marshal takes it."""
    return (*page[:-1], [tuple(entry) for entry in page.entries])


def page_of(values: tuple[Any, ...]) -> Page:
    *parts, entries = values
    return Page._make([*parts, tuple([TimelineEntry(*entry) for entry in entries])])


def dumped(parsed: Parsed | None) -> bytes:
    if parsed is None:
        return marshal.dumps(None)
    front, names, references, *rest = parsed.derived
    held: Any = (
        plain(parsed.page),
        parsed.notes,
        (front, names, [tuple(each) for each in references], *rest),
    )
    return marshal.dumps(held)


def loaded(record: bytes) -> Parsed | None:
    held = marshal.loads(record)  # noqa: S302 (our own file)
    if held is None:
        return None
    page, notes, (front, names, references, *rest) = held
    derived = DerivedData(front, names, [LinkReference(*each) for each in references], *rest)
    return Parsed(page_of(page), notes, derived)
