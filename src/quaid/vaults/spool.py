"""What was read and parsed, waiting on the disk: a whole folder need not fit into memory.

Little of it waits in memory; more in a nameless file that the system forgets with the process. Knows values of
marshal, not what they mean.
"""

import io
import marshal
import os
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from quaid.core.page import Entry, Page
from quaid.store.trouble import system_told_plainly

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


class Spool:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.count = 0
        self._open: IO[bytes] | None = None

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
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
        with system_told_plainly(self.folder):
            file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (closed on exit)
            file.write(data)
        return file

    def add(self, item: Waiting) -> None:
        plain = [_plain(page) for page in (item.page, *item.nodes) if page is not None]
        record = marshal.dumps((item.path, item.content_hash, item.data, plain))
        self._file.write(len(record).to_bytes(8, "little") + record)
        self.count += 1

    def each(self) -> Iterator[Waiting]:
        """What was added, in the same order."""
        self._file.seek(0, os.SEEK_SET)
        while head := self._file.read(8):
            record = self._file.read(int.from_bytes(head, "little"))
            path, content_hash, data, plain = marshal.loads(record)  # noqa: S302 (our own file)
            pages = [_page(each) for each in plain]
            yield Waiting(path, content_hash, data, pages[0] if pages else None, tuple(pages[1:]))


def _plain(page: Page) -> tuple[Any, ...]:
    return (*page[:-1], [tuple(entry) for entry in page.entries])


def _page(plain: tuple[Any, ...]) -> Page:
    *parts, entries = plain
    return Page._make([*parts, tuple([Entry(*entry) for entry in entries])])
