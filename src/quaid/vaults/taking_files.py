"""Files that a sync has read, into their pages: small transactions, each right on its own.

Knows when somebody else was faster, which slug a file gets, and that a page which follows its file keeps its id.
Does not look at the folder.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from quaid.model import dates, slug as slugs
from quaid.model.page import Page
from quaid.model.sync_plan import LastSeenFile, ReadFile, ScannedFile, SyncPlan
from quaid.storage import collections, history, page_edits, pages
from quaid.storage.collections import Collection
from quaid.storage.page_edits import NewPage
from quaid.storage.sqlite.connection import Database
from quaid.storage.sqlite.errors import is_row_error
from quaid.vaults import heading_pages, index, naming
from quaid.vaults.report import Note, Written
from quaid.vaults.spool import Spool, Waiting

BATCH = 100
"""Files that are written in one transaction: a fraction of a second."""

Progress = Callable[[int, int, str], None]
Todo = dict[str, tuple[LastSeenFile | None, ReadFile]]


class _Failed(Exception):
    """A file whose page could not be written; the rest of its batch is written again without it."""

    def __init__(self, item: Waiting, cause: Exception) -> None:
        self.item = item
        self.cause = cause


class TakingFiles:
    def __init__(
        self, db: Database, collection: Collection, now: str, new_uuid: Callable[[], str], progress: Progress
    ) -> None:
        self.db = db
        self.collection = collection
        self.now = now
        self.new_uuid = new_uuid
        self.progress = progress
        self.batch = f"sync-{new_uuid()}"
        self.counts: Counter[str] = Counter()
        self.written = Written()
        self.notes: list[Note] = []
        self.problems: dict[str, str] = {}
        """What is wrong with files that make a page all the same, by path."""
        self.left: dict[int, str] = {}
        """The slugs that pages of this round had before they made way."""
        self.made: set[str] = set()
        """The paths of files that got a page now, or another one."""
        self.headings: dict[str, set[str]] = {}
        """The ids of the headings in each file that was read now, by path; none in a file that is gone."""

    def note(self, path: str, notes: tuple[str, ...]) -> None:
        """Tell what had to be mended in a file; what could not be understood is also kept beside it."""
        self.notes += [Note(path, each) for each in notes]
        unread = [each for each in notes if not each.startswith("type ")]
        if unread:
            self.problems[path] = "; ".join(unread)

    def fail(self, file: ScannedFile, old: LastSeenFile | None, problem: str) -> None:
        """Name a file that cannot be taken in, and remember that. A page that it has already stays as it is."""
        self.notes.insert(self.counts["failed"], Note(file.path, problem))  # before what was merely mended
        self.counts["failed"] += 1
        page = old.page_id if old and old.path == file.path else None
        self.db.write(
            lambda tx: collections.record_file(
                tx, self.collection.id, file, collections.NOT_INDEXED, page, self.now, problem
            )
        )

    def run(self, spool: Spool, plan: SyncPlan) -> None:
        """Write what the plan says of the files that were read; the spool holds their bytes."""
        for start in range(0, len(plan.touched), 10 * BATCH):
            self._touch(plan, start, start + 10 * BATCH)
        self.counts["unchanged"] += len(plan.touched)
        if not spool.count:
            return
        self.headings.update({each.path: set() for each in plan.gone})
        todo: Todo = {each.file.path: (None, each) for each in plan.new}
        todo.update({each.read.file.path: (each.old, each.read) for each in plan.changed})
        todo.update({each.read.file.path: (each.old, each.read) for each in plan.moved})
        moved = {each.read.file.path for each in plan.moved}
        done = 0
        # First the pages that follow their files: they leave slugs that other files may want, and a hidden page that
        # comes back must not be given to a file that merely has its name.
        for turn in (True, False) if moved else (False,):
            waiting: list[Waiting] = []
            for item in spool.each():
                if (item.path in moved) is turn:
                    self.note(item.path, item.notes)
                    waiting += self._good([item], todo)
                if len(waiting) == BATCH:
                    done += self._write(waiting, todo)
                    waiting = []
                    self.progress(done, spool.count, "Writing")
            done += self._write(waiting, todo)
            self.progress(done, spool.count, "Writing")

    def _touch(self, plan: SyncPlan, first: int, last: int) -> None:
        def work(tx: Any) -> None:
            for old, read in plan.touched[first:last]:
                if not collections.is_file_unchanged(tx, self.collection.id, old):
                    continue  # somebody else was faster
                collections.record_file(
                    tx, self.collection.id, read.file, read.content_hash, old.page_id, self.now
                )

        self.db.write(work)

    def _good(self, items: list[Waiting], todo: Todo) -> list[Waiting]:
        """Those of the files that make pages; the others are named."""
        for item in items:
            if item.problem and item.path in todo:
                old, read = todo[item.path]
                self.fail(read.file, old, item.problem)
        return [item for item in items if not item.problem]

    def _write(self, waiting: list[Waiting], todo: Todo) -> int:
        items = [item for item in waiting if item.path in todo]
        one_by_one = False
        while items:
            counts, written, notes = self.counts.copy(), self.written.copy(), len(self.notes)
            try:
                self.db.write(partial(self._take_batch, items, todo, one_by_one))
                break
            except Exception as error:
                if not isinstance(error, _Failed) and not is_row_error(error):
                    raise
                self.counts.clear()
                self.counts.update(counts)
                self.written = written
                del self.notes[notes:]
                if isinstance(error, _Failed):
                    problem = index.failure(error.cause)
                    items.remove(error.item)
                    self._good([error.item._replace(problem=problem)], todo)
                one_by_one = True
        return len(waiting)

    def _take_batch(self, items: list[Waiting], todo: Todo, one_by_one: bool, tx: Any) -> None:
        self._make_way(tx, items, todo)
        if not one_by_one:
            self._take_all(tx, items, todo)
            return
        for item in items:
            try:
                self._take_all(tx, [item], todo)
            except Exception as error:
                if not is_row_error(error):
                    raise
                raise _Failed(item, error) from error

    def _make_way(self, tx: Any, items: list[Waiting], todo: Todo) -> None:
        """Let pages that move in this round leave their slugs first: another of them may want one, as in a swap."""
        moving = {old.page_id for old, _ in (todo[item.path] for item in items) if old and old.page_id}
        self.left = {}
        for item in items:
            old, _ = todo[item.path]
            assert item.page is not None
            holder = pages.slug_holder(tx, self.collection.id, item.page.slug) if old else None
            if holder is None or old is None or holder.page_id == old.page_id:
                continue
            if holder.page_id in moving and holder.page_id not in self.left:
                self.left[holder.page_id] = item.page.slug
                page_edits.vacate_slug(tx, holder.page_id)
            elif holder.is_hidden:
                page_edits.vacate_slug(tx, holder.page_id)

    def _take_all(self, tx: Any, items: list[Waiting], todo: Todo) -> None:
        """Each file into its page, in their order: those that are new and in nobody's way together."""
        together: list[Waiting] = []
        not_free: tuple[set[str], set[str]] | None = None
        for place, item in enumerate(items):
            old, read = todo[item.path]
            assert item.page is not None
            if old is None and read.page_uuid is None and not index.is_org(item.path):
                not_free = not_free or self._not_free(tx, items[place:])
                taken, seen = not_free
                if item.page.slug not in taken and item.path not in seen:
                    taken.add(item.page.slug)
                    together.append(item)
                    continue
            self._take_new(tx, together, todo)
            together = []
            self._take_in(tx, item, old, read)
            not_free = None  # it may have taken a slug, or left one
        self._take_new(tx, together, todo)

    def _not_free(self, tx: Any, items: list[Waiting]) -> tuple[set[str], set[str]]:
        """The slugs that somebody has, and the paths that were taken in already."""
        wanted = [item.page.slug for item in items if item.page]
        return (
            page_edits.taken_slugs(tx, self.collection.id, wanted),
            collections.seen_paths(tx, self.collection.id, [item.path for item in items]),
        )

    def _take_new(self, tx: Any, items: list[Waiting], todo: Todo) -> None:
        """Files that nobody knows into pages of their own."""
        if not items:
            return
        made = [(item, item.page, todo[item.path][1]) for item in items if item.page]
        new = [NewPage(page, self.new_uuid(), item.derived) for item, page, _ in made]
        ids = page_edits.add_pages(
            tx, new, now=self.now, collection_id=self.collection.id, collection=self.collection.name
        )
        numbered = list(zip(ids, made, strict=True))
        kept = [(page_id, item.path, item.data, read.content_hash) for page_id, (item, _, read) in numbered]
        history.keep_first_versions(tx, self.collection.id, kept, self.now, self.batch)
        seen = [
            (read.file, read.content_hash, page_id, self.problems.get(item.path))
            for page_id, (item, _, read) in numbered
        ]
        collections.record_files(tx, self.collection.id, seen, self.now)
        for page_id, (_, page, _) in numbered:
            self.written.add(page_id, page)
        self.counts["new"] += len(made)
        self.made.update(item.path for item, _, _ in made)

    def _take_in(self, tx: Any, item: Waiting, old: LastSeenFile | None, read: ReadFile) -> None:
        """One file into its page."""
        assert item.page is not None
        if self._is_overtaken(tx, read):
            return
        page_id = old.page_id if old else None
        made = self._named(tx, item.page, item.path, page_id)
        if old is not None and old.path != item.path:
            collections.forget_file(tx, self.collection.id, old.path, old.page_id)
        before = pages.slug_of(tx, page_id) if page_id is not None else None
        if page_id is not None and before is not None and before != made.slug:
            left = self.left.get(page_id, before)
            another = left != before and pages.slug_holder(tx, self.collection.id, left) is not None
            page_edits.change_slug(
                tx, self.collection.id, page_id, left, made.slug, self.now, redirect=not another
            )
        page_edits.free_slug(tx, self.collection.id, made.slug)
        saved = page_edits.save(
            tx,
            made,
            uuid=self._uuid(tx, read.page_uuid),
            now=self.now,
            expected_version=None,
            collection=self.collection.name,
            cut=False,
        )
        if not saved.changed and before != made.slug:
            # It says what it said, and is called otherwise: other links lead to it now, and its own elsewhere.
            page_edits.derive(tx, saved.id, made, cut=False)
        if not saved.changed and old is not None and old.content_hash != read.content_hash:
            # Other bytes that say the same (a comment, line ends) are a version too: they can be brought back.
            _, version = page_edits.touch(
                tx, made.slug, expected_version=None, now=self.now, collection=self.collection.name
            )
            saved = saved._replace(version=version)
        history.keep_version(
            tx, self.collection.id, saved.id, saved.version, item.path, item.data, self.now, self.batch
        )
        if not saved.created:
            history.trim_versions(tx, saved.id, dates.shift_date(self.now[:10], -history.HISTORY_DAYS))
        problem = self.problems.get(item.path)
        collections.record_file(
            tx, self.collection.id, read.file, read.content_hash, saved.id, self.now, problem
        )
        if index.is_org(item.path):
            self.notes += heading_pages.follow(
                tx,
                self.collection,
                saved.id,
                made.slug,
                item.path,
                item.nodes,
                self.now,
                self.batch,
                self._has_left,
                self.written.add,
            )
        self.written.add(saved.id, made)
        what = "new" if old is None else "moved" if old.path != item.path else "changed"
        self.counts[what] += 1
        if what != "changed":
            self.made.add(item.path)

    def _has_left(self, path: str, heading: str) -> bool:
        return heading not in self.headings.get(path, {heading})

    def _is_overtaken(self, tx: Any, read: ReadFile) -> bool:
        """Whether somebody else took this file in since we looked; the next sync sees to what is left."""
        there = collections.content_hash_of_file(tx, self.collection.id, read.file.path)
        expected = read.old.content_hash if read.old is not None and read.old.path == read.file.path else None
        return there not in (None, "", expected)

    def _named(self, tx: Any, made: Page, path: str, page_id: int | None) -> Page:
        """The page under a slug that is free for it: what it asks for, else its path, else beside it."""
        holder = pages.slug_holder(tx, self.collection.id, made.slug)
        if holder is None or holder.page_id == page_id or (holder.is_hidden and page_id is None):
            return made
        by_path = slugs.from_path(path)
        before = pages.slug_of(tx, page_id) if page_id is not None else None
        if before is not None and before.startswith(by_path):
            return index.moved(made, before)  # it stands beside another one already
        taken = pages.slugs_beginning(tx, self.collection.id, by_path)
        address = by_path if by_path not in taken else naming.beside(by_path, path, taken)
        self.notes.append(Note(path, f"another file has the slug {made.slug}; this one is {address}"))
        return index.moved(made, address)

    def _uuid(self, tx: Any, named: str | None) -> str:
        """The id that the file names, unless another page has it; else a new one."""
        if named and index.looks_like_uuid(named) and not pages.has_uuid(tx, named):
            return named
        return self.new_uuid()
