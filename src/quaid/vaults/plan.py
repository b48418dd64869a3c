"""What the memory knew of a folder, and what reading it found: the ground on which an import decides.

Knows paths, hashes and versions. Holds no bytes, writes nothing.
"""

from typing import NamedTuple

from quaid.model.page import Page
from quaid.storage import history
from quaid.storage.history import ImportedFile
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database
from quaid.vaults import index, naming
from quaid.vaults.scan import path_key


class Overtaken(Exception):
    """Another process imported something while we were reading: what we know is no longer so."""


class Past:
    """What the memory knows about the files of a folder.

    A folder that was imported before is known by its last import. Any other may still be the same folder at
    a new place: it is, if most of the pages that it shares with the memory by path are the same by byte.
    """

    def __init__(self, db: Database, root: str) -> None:
        with db.reading():
            self.newest = history.newest_import(db)
            last = history.newest_import(db, root)
            self.same_folder = last is not None
            self.files = history.files_of_import(db, last) if last else history.imported_files(db)
        self._other_spellings = {path_key(path): path for path in self.files if not path.isascii()}
        self._pages: dict[int, str] | None = None
        self.seen: set[str] = set()

    def find(self, path: str) -> ImportedFile | None:
        known = self.files.get(path)
        if known is None and not path.isascii():
            path = self._other_spellings.get(path_key(path), path)
            known = self.files.get(path)
        if known is not None:
            self.seen.add(path)
        return known

    def judge(self, same: int, different: int) -> None:
        """Decide whether a folder that was never imported from this place is known from another one."""
        self.same_folder = self.same_folder or same > different

    def of_page(self, page_id: int) -> tuple[str, ImportedFile] | None:
        """The path and file that this folder brought a page from, if it did."""
        if not self.same_folder:
            return None
        if self._pages is None:
            self._pages = {
                each.page_id: path for path, each in self.files.items() if each.page_id is not None
            }
        path = self._pages.get(page_id)
        return None if path is None else (path, self.files[path])


class Beside(NamedTuple):
    """The file with links and facts that no text holds, if there is anything to do with it."""

    data: bytes
    content_hash: str
    known: bool
    """It was taken in before: only what hangs on new pages is looked at."""


class Plan(NamedTuple):
    """What reading found. Only names: the bytes wait in the spool."""

    past: Past
    claims: list[naming.Claim]  # the pages that wait, in the order of their paths
    carried: dict[str, ImportedFile]  # files whose bytes are known
    paths: set[str]  # of everything that an import takes in
    beside: "Beside | None" = None

    def known(self, path: str) -> ImportedFile | None:
        """The page file as it was last read, if this folder brought it."""
        known = self.past.find(path) if self.past.same_folder else None
        return known if known and known.page_id is not None else None


def says_what(stored: PageRow, path: str, data: bytes) -> bool:
    """Whether a page in the memory is what the bytes of a file say; not, if they cannot be understood."""
    try:
        return says_the_same(stored, index.read(path, data).page)
    except Exception:  # whoever takes the file in names it
        return False


def says_the_same(stored: PageRow, made: Page) -> bool:
    """Whether a page in the memory is what a file says."""
    said = (stored.truth, stored.timeline, stored.frontmatter)
    return said == (made.truth, made.timeline, made.frontmatter)
