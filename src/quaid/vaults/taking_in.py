"""What becomes of each file that was read: inside the one transaction of an import.

Knows when a page may be written, when it is left alone because somebody edited it here, and where a sidecar
belongs. Does not read the folder.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from quaid.errors import VersionConflict
from quaid.formats import markdown
from quaid.model import slug as slugs
from quaid.model.page import Page
from quaid.storage import collections, history, links, page_edits, pages
from quaid.storage.history import ImportedFile
from quaid.storage.page_edits import NewPage
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database
from quaid.storage.sqlite.errors import write_alone
from quaid.vaults import index, links_and_facts, naming, sidecar
from quaid.vaults.plan import Beside, Overtaken, Plan, says_the_same, says_what
from quaid.vaults.report import Tally
from quaid.vaults.spool import Spool, Waiting

Progress = Callable[[int, int, str], None]

COLLECTION, COLLECTION_ID = "default", 1
"""Where the pages of imports go."""

SETTING_OF = {"index.md": "original_index", "schema.md": "original_schema"}


class TakingIn:
    def __init__(
        self,
        db: Database,
        plan: Plan,
        spool: Spool,
        tally: Tally,
        import_id: str,
        now: str,
        new_uuid: Callable[[], str],
        progress: Progress,
        *,
        force: bool = False,
    ) -> None:
        self.force = force
        self.db = db
        self.plan = plan
        self.spool = spool
        self.tally = tally
        self.import_id = import_id
        self.now = now
        self.new_uuid = new_uuid
        self.progress = progress
        self.slugs: dict[str, str] = {}  # the slug of each page file, by path without ending
        self.page_files = 0
        self.waiting: list[tuple[Waiting, Page]] = []  # pages that may be new, to be written together
        self.bytes_waiting = 0
        self.written: set[str] = set()  # slugs whose version has risen already
        self.new: set[str] = set()  # slugs of pages that were not there

    def run(self, tx: Any) -> None:
        if history.newest_import(self.db) != self.plan.past.newest:
            raise Overtaken
        self.tx = tx
        history.begin_import(tx, self.import_id, self.tally.folder, self.now)
        for path, known in self.plan.carried.items():
            history.add_file_to_import(tx, self.import_id, path, known.raw_id)
            if known.slug:
                self._has_page(path, known.slug)
        assigned = self._assign()
        for done, item in enumerate(self.spool.each()):
            self.progress(done, self.spool.count, "Writing")
            self.tally.note(item.path, *item.notes)
            if item.problem:
                self.tally.fail(item.path, item.problem)
                continue
            if item.page:
                self._page(item, item.page, assigned)
                continue
            self._write_waiting()
            if "/" in item.path:
                self._sidecar(item)
            else:
                self._special(item)
        self._write_waiting()
        if self.plan.beside:
            self._links_and_facts(self.plan.beside)
        self.tally.links_extracted = links.count(self.db, self.tally.written.page_ids)
        history.finish_import(tx, self.import_id, self.page_files)
        self.progress(self.spool.count, self.spool.count, "Writing")

    def _assign(self) -> dict[str, str]:
        """A slug for every page that this folder did not bring before."""
        known = {claim.path: self.plan.known(claim.path) for claim in self.plan.claims}
        ours = [*known.values(), *self.plan.carried.values()]
        self.taken = {each.slug for each in ours if each and each.slug}
        fresh = [claim for claim in self.plan.claims if known[claim.path] is None]
        assigned = naming.assign(fresh, self.taken)
        self.taken.update(assigned.values())
        for claim in fresh:
            if assigned[claim.path] != claim.slug:
                text = f"another file has the slug {claim.slug}; this one is {assigned[claim.path]}"
                self.tally.note(claim.path, text)
        return assigned

    def _page(self, item: Waiting, made: Page, assigned: dict[str, str]) -> None:
        known = self.plan.known(item.path)
        if known and known.slug:
            self._write_waiting()
            self._alone(item, lambda: self._again(item, index.moved(made, known.slug or ""), known))
            return
        self.waiting.append((item, index.moved(made, assigned[item.path])))
        self.bytes_waiting += len(item.data)
        if len(self.waiting) == page_edits.BULK_ROWS or self.bytes_waiting > page_edits.BULK_BYTES:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Write the pages that wait, in their order: those whose slugs are free together, the others one by one."""
        if not self.waiting:
            return
        waiting, self.waiting, self.bytes_waiting = self.waiting, [], 0
        taken = page_edits.taken_slugs(self.tx, COLLECTION_ID, [made.slug for _, made in waiting])
        free: list[tuple[Waiting, Page]] = []
        for item, made in waiting:
            if made.slug in taken:
                self._write_new(free)
                free = []
                self._alone(item, partial(self._first_time, item, made))
            else:
                free.append((item, made))
        self._write_new(free)

    def _alone(self, item: Waiting, write: Callable[[], None]) -> None:
        """Write one page such that whatever is wrong with it costs no other file."""
        if failure := write_alone(self.tx, write):
            self.tally.fail(item.path, index.failure(failure))

    def _write_new(self, free: list[tuple[Waiting, Page]]) -> None:
        """Write these together; if that fails, one by one."""
        if write_alone(self.tx, partial(self._add, free)):
            for item, made in free:
                self._alone(item, partial(self._add, [(item, made)]))

    def _add(self, free: list[tuple[Waiting, Page]]) -> None:
        new = [NewPage(made, self.new_uuid(), item.derived_of(made)) for item, made in free]
        ids = page_edits.add_pages(
            self.tx, new, now=self.now, collection_id=COLLECTION_ID, collection=COLLECTION
        )
        files = [
            (item.path, item.data, item.content_hash, id_) for (item, _), id_ in zip(free, ids, strict=True)
        ]
        history.keep_imported_files(self.tx, self.import_id, files, self.now)
        for (item, made), page_id in zip(free, ids, strict=True):
            self._has_page(item.path, made.slug)
            self.written.add(made.slug)
            self.new.add(made.slug)
            self.tally.wrote("new", page_id, made)

    def _first_time(self, item: Waiting, made: Page) -> None:
        try:
            saved = page_edits.save(
                self.tx, made, uuid=self.new_uuid(), now=self.now, expected_version=0, cut=False
            )
        except VersionConflict:
            stored = pages.require(self.db, made.slug)
            self._meets(item, index.moved(made, stored.slug), stored)  # it may have another slug by now
            return
        self._keep(item, made.slug, saved.id, saved.version)
        self.written.add(made.slug)
        self.new.add(made.slug)
        self.tally.wrote("new", saved.id, made)

    def _meets(self, item: Waiting, made: Page, stored: PageRow) -> None:
        """The slug of a new file has a page already."""
        if says_the_same(stored, made):
            self._keep(item, stored.slug, stored.id, stored.version)
            self.tally.outcomes["unchanged"] += 1
            return
        known = self._brought_before(stored, item.path)
        if known:
            self._again(item, made, known)
        elif origin := history.origin_of_page(self.db, stored.id):
            address = naming.beside(made.slug, item.path, self.taken)
            self.taken.add(address)
            text = f"a page of {origin[0]} has the slug {made.slug}; this one is {address}"
            self.tally.note(item.path, text)
            self._first_time(item, index.moved(made, address))
        elif self.force:
            self._overwrite(item, made, stored)
        else:
            self._conflict(item, stored)

    def _brought_before(self, stored: PageRow, path: str) -> ImportedFile | None:
        """The file that this folder once brought a page from: the same one, or one that is gone by now."""
        before = self.plan.past.of_page(stored.id)
        if before is None and (origin := history.origin_of_page(self.db, stored.id)):
            folder, old_path, known = origin
            before = (old_path, known) if folder == self.tally.folder else None
        if before and (before[0] == path or before[0] not in self.plan.paths):
            return before[1]
        return None

    def _again(self, item: Waiting, made: Page, known: ImportedFile) -> None:
        stored = pages.find(self.db, made.slug)
        if stored and says_the_same(stored, made) and not self._is_derived_anew(stored, made):
            self._keep(item, made.slug, stored.id, stored.version)
            self.tally.outcomes["unchanged"] += 1
            return
        if stored and not self.force and self._edited_here(stored, item.path, known):
            self._conflict(item, stored)
            return
        self._overwrite(item, made, stored)

    def _overwrite(self, item: Waiting, made: Page, stored: PageRow | None) -> None:
        if self.force and stored and not says_the_same(stored, made):
            text = markdown.render(stored.frontmatter, stored.truth, stored.timeline).encode()
            path, batch = f"{stored.slug}.md", f"edit-{self.new_uuid()}"
            history.keep_version(
                *(self.tx, COLLECTION_ID, stored.id, stored.version, path, text, self.now, batch),
                present=False,
            )
        expected = stored.version if stored else None
        saved = page_edits.save(
            self.tx, made, uuid=self.new_uuid(), now=self.now, expected_version=expected, cut=False
        )
        self._keep(item, made.slug, saved.id, saved.version)
        self.written.add(made.slug)
        self.tally.wrote("changed", saved.id, made)

    def _is_derived_anew(self, stored: PageRow, made: Page) -> bool:
        """Whether the same text gives another title, summary or place than before: a forced import takes that too."""
        old = (stored.type, stored.title, stored.summary, stored.wing, stored.room)
        return self.force and old != (made.type, made.title, made.summary, made.wing, made.room)

    def _edited_here(self, stored: PageRow, path: str, known: ImportedFile) -> bool:
        if stored.version == known.page_version_at_import:
            return False
        # The version also rises with raw data: what counts is whether the text is still that of the file.
        return not says_what(stored, path, history.imported_bytes(self.db, known.raw_id))

    def _conflict(self, item: Waiting, stored: PageRow) -> None:
        self._keep(item, stored.slug, stored.id, None)  # no version: the page never said what these bytes say
        self.tally.conflict(item.path, stored.slug)

    def _keep(self, item: Waiting, address: str, page_id: int, version: int | None) -> None:
        history.keep_imported_file(
            self.tx, self.import_id, item.path, item.data, item.content_hash, page_id, version, self.now
        )
        self._has_page(item.path, address)

    def _has_page(self, path: str, address: str) -> None:
        self.page_files += 1
        self.slugs[index.stem(path)] = address

    def _keep_bytes(self, item: Waiting) -> None:
        history.keep_imported_file(
            self.tx, self.import_id, item.path, item.data, item.content_hash, None, None, self.now
        )

    def _special(self, item: Waiting) -> None:
        self._keep_bytes(item)
        key = SETTING_OF.get(item.path.lower())
        if key:
            collections.set_setting(self.tx, key, markdown.decode(item.data).text)
        self.tally.outcomes["special"] += 1

    def _sidecar(self, item: Waiting) -> None:
        self.tally.outcomes["sidecar"] += 1
        known = self.plan.past.find(item.path) if self.plan.past.same_folder else None
        before = history.imported_bytes(self.db, known.raw_id) if known else sidecar.EMPTY
        self._keep_bytes(item)
        try:
            wanted = sidecar.read(item.data)
        except ValueError as error:
            self.tally.note(item.path, f"not JSON, kept as it is: {error}")
            return
        page_path = sidecar.page_path(item.path)
        address = self.slugs.get(page_path) or slugs.from_path(page_path + ".md")
        stored = pages.find(self.db, address)
        if stored is None:
            self.tally.note(item.path, f"there is no page {address} for it; kept as it is")
            return
        applied = sidecar.apply(self.tx, self.db, stored.id, before, wanted, self.now, force=self.force)
        self.tally.note(item.path, *applied.notes)
        self.tally.raw_data += applied.written
        if applied.changed and stored.slug not in self.written:
            page_edits.touch(self.tx, stored.slug, expected_version=None, now=self.now)
            self.written.add(stored.slug)

    def _links_and_facts(self, beside: Beside) -> None:
        """Bring back what no text holds. The bytes are not kept: a page that is forgotten must not stay in them."""
        path = links_and_facts.PATH
        try:
            contents = links_and_facts.read(beside.data)
        except ValueError as error:
            self.tally.note(path, f"not taken in: {error}")
            history.log_ingest(self.tx, self.import_id, path, beside.content_hash, [], self.now)
            return
        find = partial(self._place, files=contents.files)
        returning = links_and_facts.Returning(self.db, self.tx, find, self.now)
        returning.run(contents, self.new if beside.known else None)
        self.tally.links, self.tally.facts = returning.links, returning.facts
        self.tally.note(path, *links_and_facts.shown(returning.problems))
        for place in returning.changed.values():
            if place.collection != COLLECTION or place.slug not in self.written:
                page_edits.touch(
                    self.tx, place.slug, expected_version=None, now=self.now, collection=place.collection
                )
        page_ids = sorted(returning.changed)
        history.log_ingest(self.tx, self.import_id, path, beside.content_hash, page_ids, self.now)

    def _place(self, address: str, files: dict[str, str]) -> links_and_facts.Place | None:
        """The page of an address in the exported memory: the one that its file became, else one of that name."""
        collection, name = slugs.split_address(address)
        own = self.slugs.get(index.stem(files.get(address, address.replace("::", "/", 1))))
        inside = name if collection is None else slugs.from_path(f"{collection}/{name}.md")
        for there, each in ((COLLECTION, own), (COLLECTION, inside), (collection, name)):
            stored = pages.find(self.db, each, there) if each and there else None
            if stored:
                return links_and_facts.Place(stored.id, stored.collection, stored.slug)
        return None
