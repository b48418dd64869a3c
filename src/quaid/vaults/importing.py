"""A folder into the memory: everything is read first, then one transaction writes all of it or nothing.

Knows which files are new, changed or known, and accounts for each of them. What a file says is index.py's
business, what becomes of a page taking_in.py's. It changes nothing in the folder, and no page that was edited
here since.
"""

import errno
import os
from collections.abc import Callable

from quaid.errors import QuaidError
from quaid.storage import history, pages
from quaid.storage.history import ImportedFile
from quaid.storage.sqlite.connection import Database
from quaid.vaults import index, links_and_facts, naming, scan, sidecar
from quaid.vaults.plan import Beside, Overtaken, Past, Plan, says_what
from quaid.vaults.report import ImportReport, Outcome, Tally
from quaid.vaults.scan import LARGEST_FILE, Folder, Found
from quaid.vaults.spool import Spool, Waiting
from quaid.vaults.taking_in import Progress, TakingIn


def import_folder(
    db: Database,
    root: str,
    *,
    import_id: str,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
    force: bool = False,
) -> ImportReport:
    """Take a folder in. Whatever stops it leaves the memory as it was.

    `force` takes files in again whose bytes are known, and writes over pages that were edited here.
    """
    root = os.path.realpath(root)
    with Folder(root) as folder:
        while True:
            with Spool(os.path.dirname(db.path), db.path) as spool:
                reading = Reading(db, folder, spool, progress, force=force)
                plan, tally = reading.run()
                if not spool.count and plan.beside is None:
                    return tally.report(None)
                taking_in = TakingIn(db, plan, spool, tally, import_id, now, new_uuid, progress, force=force)
                try:
                    db.write(taking_in.run)
                except Overtaken:
                    continue
                return tally.report(import_id)


class Reading:
    """Every file once: known bytes are passed by, the others parsed and spooled."""

    def __init__(
        self, db: Database, folder: Folder, spool: Spool, progress: Progress, *, force: bool = False
    ) -> None:
        self.db = db
        self.force = force
        self.folder = folder
        self.spool = spool
        self.progress = progress
        self.tally = Tally(scan.printable(folder.root))
        self.plan = Plan(Past(db, self.tally.folder), [], {}, set())
        self.fresh: set[str] = set()  # pages that no import knows, by path without ending
        self.different: set[str] = set()  # pages that are known with other bytes
        self.done = self.left = self.same = 0

    def run(self) -> tuple[Plan, Tally]:
        found = self._walk()
        for each in found:
            if each.kind != "sidecar":
                self._file(each, len(found))
        self.plan.past.judge(self.same, len(self.different))
        # A sidecar needs a second look when its page has only come now, so all pages are read before it.
        for each in found:
            if each.kind == "sidecar":
                self._file(each, len(found))
        self.progress(len(found), len(found), "Reading")
        self._look_beside()
        past = self.plan.past
        if past.same_folder:
            self.tally.gone = [path for path in past.files if path not in past.seen]
        return self.plan, self.tally

    def _walk(self) -> list[Found]:
        found = []
        for entry in self.folder.walk():
            self.tally.files_seen += 1
            if isinstance(entry, Found):
                found.append(entry)
            elif entry.path != f"{links_and_facts.FOLDER}/" or not self._beside():
                self.tally.leave_out(entry.path, entry.reason)
        return found

    def _beside(self) -> bool:
        """Read the links and facts of an export. False: there are none."""
        path, largest = links_and_facts.PATH, links_and_facts.LARGEST
        try:
            data = self.folder.read(path, largest)
        except FileNotFoundError:
            return False
        except OSError as error:
            self.tally.leave_out(path, scan.LINK if error.errno == errno.ELOOP else scan.UNREADABLE)
            return True
        if len(data) > largest:
            self.tally.outcomes["too_large"] += 1
            self.tally.note(
                path, f"too large: {largest:,} bytes are allowed; its links and facts are left out"
            )
            return True
        self.tally.outcomes["links_and_facts"] += 1
        content_hash = index.digest(data)
        known = not self.force and history.earlier_ingest(self.db, content_hash, path) is not None
        self.plan = self.plan._replace(beside=Beside(data, content_hash, known))
        return True

    def _look_beside(self) -> None:
        """Pass by links and facts that were taken in before, unless pages of theirs come only now."""
        beside = self.plan.beside
        if beside and beside.known and not self.fresh:
            self.plan = self.plan._replace(beside=None)

    def _file(self, found: Found, total: int) -> None:
        self.progress(self.done, total, "Reading")
        self.done += 1
        self.left = total - self.done
        known = self.plan.past.find(found.path)
        data = self._bytes(found)
        if data is None:
            return
        self.plan.paths.add(found.path)
        content_hash = index.digest(data)
        same = known is not None and known.content_hash == content_hash
        if found.kind == "page":
            self._page(found.path, data, content_hash, known, same)
        elif same and not self.force and not self._has_new_page(found):
            assert known is not None
            self.plan.carried[found.path] = known
            self.tally.outcomes[found.kind] += 1
        else:
            self.spool.add(Waiting(found.path, content_hash, data, None))

    def _bytes(self, found: Found) -> bytes | None:
        try:
            data = self.folder.read(found.path)
        except FileNotFoundError:
            self.tally.leave_out(found.path, scan.GONE)
        except OSError:
            self.tally.leave_out(found.path, scan.UNREADABLE)
        else:
            if len(data) <= LARGEST_FILE:
                return data
            self.tally.outcomes["too_large"] += 1
            size = max(found.size, len(data))
            text = f"too large: {size:,} bytes, and {LARGEST_FILE:,} are allowed; split it"
            self.tally.note(found.path, text)
        return None

    def _page(
        self, path: str, data: bytes, content_hash: str, known: ImportedFile | None, same: bool
    ) -> None:
        if known and known.page_id is not None and same:
            self.same += 1
            if not self.force:
                self.plan.carried[path] = known
                self._unchanged(path, data, known)
                return
        (self.different if known else self.fresh).add(index.stem(path))
        try:
            self._parse(path, data, content_hash)
        except (OSError, QuaidError):
            raise
        except Exception as error:
            self.tally.fail(path, index.failure(error))

    def _parse(self, path: str, data: bytes, content_hash: str) -> None:
        if self.spool.may_leave(self.spool.count, self.left):
            self.plan.claims.append(naming.Claim(path, index.asked(path, data).slug))
            self.spool.leave(path, content_hash, data)
            return
        made, notes, _ = index.read(path, data)
        self.tally.note(path, *notes)
        self.plan.claims.append(naming.Claim(path, made.slug))
        self.spool.add(Waiting(path, content_hash, data, made))

    def _unchanged(self, path: str, data: bytes, known: ImportedFile) -> None:
        """The bytes are known: what became of their page since?"""
        outcome: Outcome = "unchanged"
        if known.page_version_now != known.page_version_at_import:
            stored = pages.find(self.db, known.slug or "")
            if stored and not says_what(stored, path, data):
                outcome = "edited" if known.page_version_at_import else "conflict"
        if outcome == "conflict":
            self.tally.conflict(path, known.slug or "")
        else:
            self.tally.outcomes[outcome] += 1

    def _has_new_page(self, found: Found) -> bool:
        if found.kind != "sidecar":
            return False
        page_path = sidecar.page_path(found.path)
        return page_path in self.fresh or (page_path in self.different and not self.plan.past.same_folder)
