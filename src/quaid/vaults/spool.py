"""What was read and parsed, waiting on the disk: a whole folder need not fit into memory.

Little of it waits in memory; more in a nameless file that the system forgets with the process. What is left unparsed
is parsed by a second process meanwhile (ahead.py). Knows values of marshal, not what they mean.
"""

import io
import marshal
import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from quaid.model.page import Page
from quaid.storage.sqlite.errors import translate_os_errors
from quaid.vaults import ahead, index

if TYPE_CHECKING:
    from quaid.model.page import DerivedData

IN_MEMORY = 1024 * 1024
"""Bytes that need no file. One edit is far below, and need not pay for the import of tempfile either."""


class Waiting(NamedTuple):
    """A file that is to be written into the database; a page file with the page that it makes."""

    path: str
    content_hash: str
    data: bytes
    page: Page | None
    nodes: tuple[Page, ...] = ()
    """Headings of the file that are pages of their own."""
    notes: tuple[str, ...] = ()
    """What had to be mended in it, where nobody was told so when it was read."""
    derived: "DerivedData | None" = None
    """What follows from the page."""
    problem: str = ""
    """Why a page file makes no page: Quaid failed on it."""

    def derived_of(self, page: Page) -> "DerivedData | None":
        """The same, unless the page has come to another slug: then it does not hold."""
        return self.derived if page is self.page else None


class Spool:
    def __init__(self, folder: str, memory: str = "") -> None:
        self.folder = folder
        self.memory = memory or folder
        self.count = 0
        self._open: IO[bytes] | None = None
        self._ahead: ahead.Ahead | None = None
        self._alone = False
        """Help was looked for in vain."""

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        if self._ahead:
            self._ahead.close()
        if self._open:
            self._open.close()

    @property
    def _file(self) -> IO[bytes]:
        if self._open is None:
            self._open = io.BytesIO()
        elif isinstance(self._open, io.BytesIO) and self._open.tell() > IN_MEMORY:
            self._open = self._on_disk(self._open.getvalue())
        return self._open

    def _on_disk(self, data: bytes) -> IO[bytes]:
        import tempfile

        # Beside the database: there must be room there anyway, and /tmp may be memory.
        with translate_os_errors(self.folder):
            file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (closed on exit)
            file.write(data)
        return file

    def add(self, item: Waiting) -> None:
        plain = [ahead.plain(page) for page in (item.page, *item.nodes) if page is not None]
        self._add(marshal.dumps((item.path, item.content_hash, item.data, plain)))

    def _add(self, record: bytes) -> None:
        self._file.write(len(record).to_bytes(ahead.NUMBER, "little") + record)
        self.count += 1

    def may_leave(self, done: int, waiting: int) -> bool:
        """Whether files may be left unparsed, after so many with so many to come: somebody parses them meanwhile."""
        if self._ahead is None and not self._alone and ahead.is_worth_it(done, waiting):
            self._alone = not self._find_help()
        return self._ahead is not None

    def _find_help(self) -> bool:
        if isinstance(self._file, io.BytesIO):
            self._open = self._on_disk(self._file.getvalue())
        found = self._on_disk(b"")
        try:
            self._ahead = ahead.Ahead(self._file, found, self.memory)
        except OSError:  # no process is to be had
            found.close()
        return self._ahead is not None

    def leave(self, path: str, content_hash: str, data: bytes) -> None:
        """Add a file of one page that is still to be parsed."""
        assert self._ahead
        self._add(marshal.dumps((path, content_hash, data, None)))
        self._tell()

    def _tell(self, *, all_of_it: bool = False) -> None:
        end = self._file.tell()
        if self._ahead and (all_of_it or self._ahead.is_behind(end)):
            self._file.flush()
            self._ahead.tell(end)

    def each(self) -> Iterator[Waiting]:
        """What was added, in the same order."""
        self._file.seek(0, os.SEEK_END)
        self._tell(all_of_it=True)
        parsed = self._ahead.parsed() if self._ahead else iter(())
        self._file.seek(0, os.SEEK_SET)
        while head := self._file.read(ahead.NUMBER):
            record = self._file.read(int.from_bytes(head, "little"))
            path, content_hash, data, plain = marshal.loads(record)  # noqa: S302 (our own file)
            item = Waiting(path, content_hash, data, None)
            made = next(parsed) if plain is None else None
            if made is not None:
                yield item._replace(page=made.page, notes=made.notes, derived=made.derived)
                continue
            try:
                yield _worked_out(item, plain)
            except Exception as error:
                yield item._replace(problem=index.failure(error))


def _worked_out(item: Waiting, plain: list[Any] | None) -> Waiting:
    """An item with its pages and what follows from them: all that can fail on a file, before anything is written."""
    from quaid.model.page import derive_data

    notes: tuple[str, ...] = ()
    if plain is None:
        page, notes, _ = index.read(item.path, item.data)
        pages = [page]
    else:
        pages = [ahead.page_of(each) for each in plain]
    if not pages:
        return item
    derived = [derive_data(each) for each in pages]
    return item._replace(page=pages[0], nodes=tuple(pages[1:]), notes=notes, derived=derived[0])
