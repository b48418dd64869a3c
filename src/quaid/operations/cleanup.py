"""Find duplicate pages; merge, rename and forget pages; erase expired content."""

from typing import Annotated, Any, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound, PageMoved, QuaidError, VersionConflict
from quaid.folders import attachments, indexer, page_writer
from quaid.formats import markdown
from quaid.model import (
    dates,
    merge as merging,
    page as page_model,
    plain_text,
    slug as slugs,
    timeline,
)
from quaid.model.links import rebase_relative_links
from quaid.model.page import Page
from quaid.model.plain_text import LEAST_THRESHOLD, TextSimilarity, close_fence, count_noun
from quaid.operations import page_changes, pages as editing, spaces
from quaid.operations.pages import ExpiryDay, ForPeriod, PageVersion, Slug, requested_moment
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.search.answer import build_answer
from quaid.search.candidates import WORDS_ONLY, rank_question
from quaid.storage import erase as erasure, expiry, page_edits, pages, vectors
from quaid.storage.collections import Collections
from quaid.storage.erase import EraseTarget, Erasure, TextErasure
from quaid.storage.expiry import ExpiredRow
from quaid.storage.files import scan_files_in_subprocess
from quaid.storage.page_edits import MergedRows
from quaid.storage.pages import TEXTS_PER_QUERY, Duplicates, PageHead, PageRow, StoredPair
from quaid.storage.spaces import Spaces
from quaid.storage.sqlite import backup
from quaid.storage.sqlite.backup import DatabaseCopy
from quaid.storage.sqlite.connection import Transaction

ENTITY_TYPES = ("person", "company", "deal", "yc", "civic", "project")
"""Types whose pages describe one real-world entity.

Two such pages with the same name are duplicate candidates without further evidence.
"""

MIN_SIMILARITY = 0.2
"""Minimum text similarity of two pages with the same name.

Below this value, they are listed only if their type is in ENTITY_TYPES or their vectors are similar.
"""

MIN_COSINE = 0.95
"""Pages with the same name are also listed if the cosine of their mean vectors is at least this.

The cosine is not used for pages with different names, because any two pages with the same layout reach 0.97.
"""


class DuplicatePages(NamedTuple):
    slug: str
    """Address of the longer page, into which `command` merges the page `other`."""
    other: str
    title: str
    other_title: str
    likeness: float | None
    """Share of common text from 0 to 1; None if one of the pages is too short."""
    why: tuple[str, ...]
    command: str


DEFAULT_THRESHOLD = 0.8
MAX_STORED_PAIRS = 1_000


class DupesRecord(NamedTuple):
    pairs: tuple[DuplicatePages, ...]
    total: int
    pages: int
    compared_at: str | None = None
    """When the pages were compared. None with `stored` if no comparison was made yet."""


class DistinctRecord(NamedTuple):
    slug: str
    other: str
    changed: bool


class MergeRecord(NamedTuple):
    done: bool
    kept: str
    gone: str
    version: int
    """The new version of the kept page, or its current version in a preview."""
    other_version: int
    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    """Tags added to the kept page."""
    entries: int
    """Number of timeline entries added to the kept page."""
    truth: str
    """Text added to the compiled truth (the text above the timeline) of the kept page."""
    moved: MergedRows
    ask: bool = False

    @property
    def if_agreed(self) -> dict[str, Any]:
        """Return the arguments that confirm the operation, or {} if no confirmation is needed."""
        versions = {"expected_version": self.version, "other_version": self.other_version}
        return {"yes": True, **versions} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Merging {self.gone} into {self.kept}"


class RenameRecord(NamedTuple):
    slug: str
    old_slug: str
    version: int
    title: str
    wing: str
    redirected: bool


@op("read", examples=("quaid dupes", "quaid dupes --threshold 0.6 --limit 100"))
def dupes(
    brain: Brain,
    threshold: Annotated[float, Arg("Minimum share of common text, from 0.5 to 1.")] = DEFAULT_THRESHOLD,
    limit: Annotated[int, Arg("How many pairs.", minimum=1, maximum=10_000)] = 20,
    stored: Annotated[bool, Arg("List what the last comparison found, without pages changed since.")] = False,
) -> DupesRecord:
    """Find duplicate pages: pairs with similar text or the same name."""
    if not LEAST_THRESHOLD <= threshold <= 1:
        raise InvalidArgument(
            name="threshold", problem=f"must be from {LEAST_THRESHOLD} to 1, not {threshold:g}"
        )
    if stored:
        return _stored_dupes(brain, limit)
    now = brain.now()
    with brain.db.reading():
        total = pages.count(brain.db)
        texts, lengths = _texts(brain, total)
        why: dict[tuple[int, int], list[str]] = {}
        for pair in texts.pairs(threshold, lambda done, total: brain.progress(done, total, "Comparing")):
            why[pair] = ["text"]
        names, distinct = Duplicates(brain.db).namesakes(), Duplicates(brain.db).distinct()
        cosines = _cosines(brain, names)
        shown = {
            *(page_id for pair in why for page_id in pair),
            *(page_id for pair in names for page_id in pair[:2]),
        }
        heads = pages.page_heads(brain.db, sorted(shown))
    for first, second, name in names:
        alike, cosine = texts.likeness(first, second) or 0, cosines.get((first, second), 0)
        same = alike >= MIN_SIMILARITY or cosine >= MIN_COSINE
        if same or heads[first].type in ENTITY_TYPES or (first, second) in why:
            meaning = [f"meaning {cosine:.2f}"] if cosine >= MIN_COSINE else []
            why.setdefault((first, second), []).extend([f"name {name!r}", *meaning])
    pairs = [
        _duplicate_pages(
            sorted((heads[one], heads[other]), key=lambda head: -lengths[head.id]),
            texts.likeness(one, other),
            reasons,
        )
        for (one, other), reasons in why.items()
        if (min(one, other), max(one, other)) not in distinct
    ]
    pairs.sort(key=lambda pair: (-(pair.likeness or 0), pair.slug, pair.other))
    if threshold == DEFAULT_THRESHOLD and brain.leaves_marks and brain.db.writable and not brain.db.only:
        ids = {slugs.address(head.collection, head.slug): head.id for head in heads.values()}
        rows = [
            StoredPair(ids[pair.slug], ids[pair.other], pair.likeness, pair.why)
            for pair in pairs[:MAX_STORED_PAIRS]
        ]
        Duplicates(brain.db).store(rows, total, now)
    return DupesRecord(tuple(pairs[:limit]), len(pairs), total, now)


def _stored_dupes(brain: Brain, limit: int) -> DupesRecord:
    """Return at most `limit` pairs of the last stored comparison, without pages that have changed since."""
    with brain.db.reading():
        rows, at, count = Duplicates(brain.db).stored()
        shown = rows[:limit]
        heads = pages.page_heads(brain.db, sorted({id for row in shown for id in row[:2]}))
    pairs = tuple(
        _duplicate_pages([heads[row.page_id], heads[row.other_page_id]], row.likeness, list(row.why))
        for row in shown
    )
    return DupesRecord(pairs, len(rows), count, at)


@op("write", adds_only=True, examples=("quaid distinct people/bob people/bob-junior",))
def distinct(
    brain: Brain,
    slug: Slug,
    other: Annotated[str, Arg("The page that it differs from.", positional=True)],
) -> DistinctRecord:
    """Mark two pages as distinct, so that `quaid dupes` no longer lists them."""
    one, two = editing.require_page(brain, slug), editing.require_page(brain, other)
    if one.id == two.id:
        raise InvalidArgument(name="other", problem=f"is {one.slug} itself; name another page")
    changed = Duplicates(brain.db).mark_distinct(one.id, two.id, brain.now())
    return DistinctRecord(one.slug, two.slug, changed)


def _texts(brain: Brain, total: int) -> tuple[TextSimilarity, dict[int, int]]:
    """Return an index for comparing page texts, and the length of each page's compiled truth by page id."""
    texts = TextSimilarity()
    lengths = {}
    for done, (page_id, truth) in enumerate(Duplicates(brain.db).texts()):
        if done % TEXTS_PER_QUERY == 0:
            brain.progress(done, total, "Reading")
        texts.add(page_id, truth)
        lengths[page_id] = len(truth)
    brain.progress(total, total, "Reading")
    texts.weigh()
    return texts, lengths


def _cosines(brain: Brain, names: list[tuple[int, int, str]]) -> dict[tuple[int, int], float]:
    """Return the cosine of the mean vectors of each pair of pages with the same name, if both have vectors."""
    model = vectors.active_model(brain.db)
    if model is None or not names:
        return {}
    named = {page_id for pair in names for page_id in pair[:2]}
    mean = Duplicates(brain.db).mean_vectors(model, named)
    comparable = [(one, other) for one, other, _ in names if one in mean and other in mean]
    return {(one, other): float(mean[one] @ mean[other]) for one, other in comparable}


def _duplicate_pages(pair: list[PageHead], likeness: float | None, why: list[str]) -> DuplicatePages:
    """Return the record of two pages. The first page, which is longer, is kept by the suggested merge."""
    target, gone = (slugs.address(head.collection, head.slug) for head in pair)
    rounded = None if likeness is None else round(likeness, 2)
    command = f"quaid merge {target} {gone} --into {target}"
    return DuplicatePages(target, gone, pair[0].title, pair[1].title, rounded, tuple(why), command)


@op(
    "owner",
    tool="memory_merge_now",  # agents propose a merge with memory_merge
    examples=(
        "quaid merge people/robert people/bob --into people/robert --dry-run",
        "quaid merge people/robert people/bob --into people/robert --yes",
    ),
)
def merge(
    brain: Brain,
    slug: Annotated[str, Arg("One page, as in people/robert.", positional=True)],
    other: Annotated[str, Arg("The other page.", positional=True)],
    into: Annotated[str, Arg("Which of the two is kept.")],
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would be done.")] = False,
    expected_version: Annotated[int | None, Arg("Only if the kept page has this version.", minimum=1)] = None,
    other_version: Annotated[int | None, Arg("Only if the other page has this version.", minimum=1)] = None,
) -> MergeRecord:
    """Merge two pages: timelines, links, facts and tags are combined; the old slug redirects to the kept page."""
    if into not in (slug, other):
        raise InvalidArgument(name="into", problem=f"must be {slug} or {other}, not {into}")
    if slug == other:
        raise InvalidArgument(name="other", problem="is the same page; name two pages")
    gone_slug = other if into == slug else slug
    now = brain.now()

    def work(tx: Transaction) -> MergeRecord:
        target, gone = require_exact_slug(brain, into), require_exact_slug(brain, gone_slug)
        _check_version(target, gone, expected_version, other_version)
        page_changes.refuse_page_of_folder(brain, target.slug, target.collection, "Change")
        made = _merged_page(target, gone)
        collection = Collections(brain.db).require(target.collection)
        page_writer.keep_old_version(tx, collection.id, target, now, brain.new_uuid())
        version, moved = page_edits.merge_pages(tx, target, gone, made, now)
        return _merge_record(target, gone, made, moved)._replace(done=True, version=version)

    if yes and not dry_run:
        return brain.db.write(work)
    planned = brain.db.dry_run(work)
    return planned._replace(done=False, version=planned.version - 1, ask=not dry_run)


def require_exact_slug(brain: Brain, address: str) -> PageRow:
    """Return the page with exactly this slug. Raise PageMoved if the slug redirects to another page."""
    stored = editing.require_page(brain, address)
    if stored.slug != slugs.split_address(address)[1]:
        raise PageMoved(slug=address, target=stored.slug, expected=None, current_version=stored.version)
    return stored


def _check_version(
    target: PageRow, gone: PageRow, expected_version: int | None, other_version: int | None
) -> None:
    if target.collection != gone.collection:
        raise InvalidArgument(name="other", problem=f"is in {gone.collection}, not in {target.collection}")
    for version, expected in ((target, expected_version), (gone, other_version)):
        if expected not in (None, version.version):
            raise VersionConflict(slug=version.slug, expected=expected, current_version=version.version)


def _merged_page(target: PageRow, gone: PageRow) -> Page:
    """Return the content of the kept page after the merge."""
    text, lines = (
        rebase_relative_links(text, gone.slug, target.slug) for text in (gone.truth, gone.timeline)
    )
    truth = merging.join_truths(close_fence(target.truth), close_fence(text), gone.title)
    front = merging.join_front_matter(
        target.frontmatter, gone.frontmatter, slug=gone.slug, title=gone.title, kept_title=target.title
    )
    return page_model.build_page(
        target.slug,
        front,
        truth,
        merging.join_timelines(target.timeline, lines, gone.title),
        fallback_title=target.title,
    )


def _merge_record(target: PageRow, gone: PageRow, made: Page, moved: MergedRows) -> MergeRecord:
    before = timeline.parse(target.timeline)
    aliases = set(slugs.aliases(target.frontmatter))
    return MergeRecord(
        done=False,
        kept=target.slug,
        gone=gone.slug,
        version=target.version + 1,
        other_version=gone.version,
        title=made.title,
        aliases=tuple(name for name in slugs.aliases(made.frontmatter) if name not in aliases),
        tags=tuple(tag for tag in made.tags if tag not in target.tags),
        entries=len(made.entries) - len(before),
        truth=made.truth[len(target.truth) :].strip() if made.truth != target.truth else "",
        moved=moved,
    )


@op(
    "write",
    examples=(
        "quaid rename people/bob people/robert",
        "quaid rename projects/now projects/2025 --free-old-slug",
    ),
)
def rename(
    brain: Brain,
    slug: Slug,
    new_slug: Annotated[str, Arg("The new slug.", positional=True)],
    free_old_slug: Annotated[
        bool, Arg("Create no redirect, so that a new page can have the old slug.")
    ] = False,
    expected_version: PageVersion = None,
) -> RenameRecord:
    """Rename a page. Links are updated; the old slug redirects to it, unless freed."""
    old_slug, now = slug, brain.now()

    def work(tx: Transaction) -> RenameRecord:
        old = require_exact_slug(brain, old_slug)
        if expected_version not in (None, old.version):
            raise VersionConflict(slug=old.slug, expected=expected_version, current_version=old.version)
        page_changes.refuse_page_of_folder(brain, old.slug, old.collection, "Rename")
        new = _renamed_page(old, new_slug)
        version = page_edits.rename_page(tx, old, new, now, redirect=not free_old_slug)
        return RenameRecord(new.slug, old.slug, version, new.title, new.wing, not free_old_slug)

    return brain.db.write(work)


def _renamed_page(old: PageRow, address: str) -> Page:
    collection, name = slugs.split_address(address)
    if collection not in (None, old.collection):
        raise InvalidArgument(name="new_slug", problem=f"must be in {old.collection}, not in {collection}")
    if slugs.check(name) == old.slug:
        raise InvalidArgument(name="new_slug", problem="is already the slug of the page")
    truth, lines = (rebase_relative_links(text, old.slug, name) for text in (old.truth, old.timeline))
    front = {**old.frontmatter, "slug": name} if "slug" in old.frontmatter else old.frontmatter
    # A title that was derived from the old slug is replaced by one derived from the new slug.
    from_slug = page_model.page_title(old.slug, front, plain_text.visible_text(old.truth), None) == old.title
    return page_model.build_page(name, front, truth, lines, fallback_title=None if from_slug else old.title)


FINISH_STEP = "Close other programs that use the memory and run `quaid forget --finish`"


class ErasedLayer(NamedTuple):
    name: str
    before: int
    after: int | None
    """The number of rows after the erasure, or None in a preview."""


class ErasureProof(NamedTuple):
    """A place that was searched for remains of the page, and the matches."""

    where: str
    found: tuple[str, ...]


class RemainingMention(NamedTuple):
    """A fragment of the page's text that also occurs elsewhere in the memory, where it is not erased."""

    text: str
    said_by: tuple[str, ...]


class ForgetRecord(NamedTuple):
    done: bool
    clean: bool
    """True if the checks found no remains and `problem` is empty."""
    slug: str
    title: str
    layers: tuple[ErasedLayer, ...]
    proof: tuple[ErasureProof, ...] = ()
    mentions: tuple[RemainingMention, ...] = ()
    backups: tuple[DatabaseCopy, ...] = ()
    files: tuple[str, ...] = ()
    """Files in imported folders that contain the page.

    They are not deleted, so the next import would bring the page back.
    """
    problem: str = ""
    """Why deleted bytes may remain in the database file, or ""."""
    ask: bool = False
    hub: str = ""
    """A sentence that says whether the hub and the other devices erased a page of a shared space, or ""."""

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Forgetting {self.slug}"

    @property
    def exit_status(self) -> int:
        return int(self.done and not self.clean)


def with_verdict(record: ForgetRecord) -> ForgetRecord:
    left = any(proof.found for proof in record.proof) or any(layer.after for layer in record.layers)
    return record._replace(clean=not left and not record.problem)


@op(
    "owner",
    tool="memory_forget_now",  # agents propose an erasure with memory_forget
    examples=(
        "quaid forget people/alice --dry-run",
        "quaid forget people/alice --yes --backups",
        "quaid forget --finish",
    ),
)
def forget(
    brain: Brain,
    slug: Annotated[str | None, Arg("The page, by its exact slug.", positional=True)] = None,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would be removed.")] = False,
    backups: Annotated[bool, Arg("Also delete backups beside the memory that contain the page.")] = False,
    finish: Annotated[bool, Arg("Remove bytes from the file that an earlier `forget` could not.")] = False,
) -> ForgetRecord:
    """Erase a page: text, index, vectors, links, facts, imported bytes; then verify that nothing remains.

    Exits 1 if something remains. Mentions in other pages are listed and kept."""
    if finish == bool(slug) or (finish and dry_run):
        problem = "cannot be combined with a page or --dry-run" if finish else "is required"
        raise InvalidArgument(name="--finish" if finish else "slug", problem=problem)
    if slug is None:
        problem = problem_with_step(erasure.vacuum_and_checkpoint(brain.db))
        return ForgetRecord(True, not problem, "", "", (), problem=problem)
    target = _erase_target(brain, slug)
    beside = backup.copies_beside(brain.db.path, target)
    if dry_run or not yes:
        layers = [
            ErasedLayer(*layer, None)
            for layer in Erasure(brain.db, target, _sidecar_paths(target)).count_layers()
        ]
        return _preview(target, tuple(layers), beside)._replace(ask=not dry_run)
    return _erase(brain, target, beside, backups)


def _erase_target(brain: Brain, address: str) -> EraseTarget:
    named, name = slugs.split_address(address)
    collection = named or pages.single_collection_with(brain.db, slugs.check(name)) or "default"
    target = erasure.find_target(brain.db, slugs.check(name), collection)
    if target is None:
        # Raises an error with a hint if the page does not exist.
        stored = pages.require(brain.db, name, collection)
        raise PageMoved(slug=address, target=stored.slug, expected=None, current_version=stored.version)
    if not target.quarantined:  # a quarantined page has no file
        page_changes.refuse_page_of_folder(brain, target.slug, target.collection, "Delete")
    return target


def _sidecar_paths(target: EraseTarget) -> list[str]:
    return [indexer.sidecar_path(indexer.page_stem(path)) for path in (*target.files, f"{target.slug}.md")]


def _preview(
    target: EraseTarget, layers: tuple[ErasedLayer, ...], beside: list[DatabaseCopy]
) -> ForgetRecord:
    return ForgetRecord(
        done=False,
        clean=False,
        slug=target.slug,
        title=target.title,
        layers=layers,
        backups=tuple(beside),
        files=target.files,
    )


class DeletedPage(NamedTuple):
    """A page whose rows are deleted. After VACUUM, `prove_deletion` searches the files for remains of the
    page.
    """

    target: EraseTarget
    erasure: Erasure
    before: tuple[tuple[str, int], ...]
    hub: str


def delete_page(brain: Brain, target: EraseTarget, expected_version: int | None = None) -> DeletedPage:
    """Delete the rows of a page, and its images unless another page uses them. If its collection is shared, erase
    the page on the hub too.

    Raise ChangedSinceCreated if `expected_version` is given and the page has another version.
    """
    db = brain.db
    page = Erasure(db, target, _sidecar_paths(target))
    before = page.count_layers()
    collection = Collections(db).require(target.collection)
    db.write(lambda tx: page_edits.require_write_right(tx, collection.id))
    images = _images_of(target)
    page.run(expected_version)
    for name in images:
        if not pages.any_page_contains(db, name, without_file=True):
            attachments.remove(db.path, name)
    return DeletedPage(target, page, tuple(before), _purge_on_hub(brain, collection.name))


def prove_deletion(brain: Brain, deleted: DeletedPage, problem: str) -> ForgetRecord:
    """Search for remains of a deleted page. `problem` says why deleted bytes may remain in the file, or is ""."""
    target, page = deleted.target, deleted.erasure
    after = dict(page.count_layers())
    left, mentions = remaining_bytes(brain.db.path, page)
    search_proof = ErasureProof("search and query", _remaining_matches(brain, target, page.probes))
    indexes = page.count_words_left()
    held = ErasureProof(
        f"{count_noun(len(page.words), 'word')} of this page only, in the indexes",
        (f"{indexes:,} of them",) if indexes else (),
    )
    record = _preview(
        target, tuple(ErasedLayer(name, number, after[name]) for name, number in deleted.before), []
    )._replace(
        done=True,
        proof=(search_proof, held, *left),
        mentions=mentions,
        problem=problem_with_step(problem),
        hub=deleted.hub,
    )
    return with_verdict(record)


def erase_version(brain: Brain, slug: str, version: int) -> ForgetRecord:
    """Erase a page as `quaid forget` does. Raise ChangedSinceCreated if its version is not `version`."""
    target = _erase_target(brain, slug)
    deleted = delete_page(brain, target, version)
    return prove_deletion(brain, deleted, erasure.vacuum_and_checkpoint(brain.db))


def _erase(brain: Brain, target: EraseTarget, beside: list[DatabaseCopy], backups: bool) -> ForgetRecord:
    deleted = delete_page(brain, target)
    gone = [copy for copy in beside if backups and copy.ours and copy.holds_it]
    backup.remove_copies(gone)
    for copy in gone:
        attachments.remove_folder(copy.path)
    record = prove_deletion(brain, deleted, erasure.vacuum_and_checkpoint(brain.db))
    return record._replace(backups=tuple(copy._replace(deleted=copy in gone) for copy in beside))


def _images_of(target: EraseTarget) -> list[str]:
    return attachments.names_in(f"{target.truth}\n{target.timeline}")


def _purge_on_hub(brain: Brain, collection: str) -> str:
    """Sync an erasure to the hub if the collection is shared. Return a sentence about the outcome, or ""."""
    space = next((row for row in Spaces(brain.db).all() if row.collection == collection), None)
    if space is None:
        return ""
    return spaces.purge_now(brain, space)


def problem_with_step(problem: str) -> str:
    return f"{problem.rstrip('.')}. {FINISH_STEP}." if problem else ""


def remaining_bytes(
    database_path: str, page: Erasure | TextErasure
) -> tuple[list[ErasureProof], tuple[RemainingMention, ...]]:
    """Search the bytes of the database files for fragments of an erased page or text.

    Return the fragments that were found, by file. Fragments that are also stored elsewhere in the memory are not
    remains; they are returned separately, as mentions.
    """
    files = [database_path + ending for ending in ("", "-wal", "-shm")]
    matches = scan_files_in_subprocess(files, page.probes)
    elsewhere = {piece: page.places_with_text(piece) for _, piece in matches}
    mentions = tuple(RemainingMention(piece, tuple(by)) for piece, by in elsewhere.items() if by)
    looked = len(page.probes) - len(mentions)
    left = [
        ErasureProof(
            f"{looked:,} fragments of it in the bytes of {path.rpartition('/')[2]}",
            tuple(piece for where, piece in matches if where == path and not elsewhere[piece]),
        )
        for path in files
    ]
    return left, mentions


def _remaining_matches(brain: Brain, target: EraseTarget, pieces: list[str]) -> tuple[str, ...]:
    """Search for the page by words and names, and return a description of each search that finds it.

    Vector search is skipped, because the layer counts show that no vectors remain.
    """
    matches: dict[str, None] = {}
    for text in (target.title, target.slug, *pieces[-2:]):
        hits = {hit.slug for hit in text_search.search_pages(brain.db, text, limit=100)}
        ranked = rank_question(brain.db, WORDS_ONLY, text, now=brain.now())
        hits |= {result.slug for result in build_answer(brain.db, ranked, limit=100).results}
        if target.slug in hits:
            matches[f"{text!r} finds it"] = None
    return tuple(matches)


# Expiry


class ExpireRecord(NamedTuple):
    slug: str
    version: int
    expires: str
    """The day or time at which the page expires, or "never"."""
    changed: bool
    collection: str = "default"


@op(
    "owner",
    examples=(
        "quaid expire notes/guest-wifi --for 30d",
        "quaid expire notes/guest-wifi --expires 2026-11-20",
        "quaid expire notes/guest-wifi --never",
    ),
)
def expire(
    brain: Brain,
    slug: Slug,
    expires: ExpiryDay = None,
    for_: ForPeriod = None,
    never: Annotated[bool, Arg("Keep it, whatever the retention settings say.")] = False,
) -> ExpireRecord:
    """Set when a page expires, or that it never does.

    An expired page leaves all answers, is listed by `quaid expired`, and is erased later."""
    moment = requested_moment(brain, expires, for_)
    if (moment is None) != never:
        problem = "cannot be combined with a day or a period" if never else "is required, or --for or --never"
        raise InvalidArgument(name="never" if never else "expires", problem=problem)

    def change(old: PageRow | None) -> Page:
        assert old is not None
        front = {**old.frontmatter, dates.EXPIRY_KEY: moment or dates.NEVER}
        return editing.rebuild_page(old, frontmatter=front)

    saved, page, collection = page_changes.edit_page(brain, slug, None, change)
    return ExpireRecord(page.slug, saved.version, moment or dates.NEVER, saved.changed, collection)


class ExpiredItem(NamedTuple):
    id: int
    kind: str
    """"page", "line" or "fact"."""
    slug: str
    """The address of the page that expired or that contains the line or fact."""
    title: str
    text: str
    """The line or fact. For a page, its text, but only if the caller asked for this page."""
    reason: str
    """The day or time of expiry, or the retention setting that hid the item."""
    hidden_at: str
    erased_on: str
    """The first day on which the item may be erased automatically; "" if it never is."""
    file: str


class ExpiredRecord(NamedTuple):
    items: tuple[ExpiredItem, ...]
    grace: str
    retention: tuple[tuple[str, str], ...]
    """Retention settings and their periods."""
    kept: tuple[str, ...] = ()
    """Names of the items that were restored."""
    erased: tuple[ForgetRecord, ...] = ()
    problems: tuple[str, ...] = ()
    """For each item that could not be erased, the reason."""
    ask: bool = False

    @property
    def if_agreed(self) -> dict[str, object]:
        return {"yes": True} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Erasing {len(self.items)} expired things"

    @property
    def exit_status(self) -> int:
        return int(bool(self.problems) or any(not record.clean for record in self.erased))


@op(
    "owner",
    examples=(
        "quaid expired",
        "quaid expired notes/guest-wifi",
        "quaid expired notes/guest-wifi --keep",
        "quaid expired 12 --keep --for 30d",
        "quaid expired --now --yes",
    ),
)
def expired(
    brain: Brain,
    items: Annotated[
        list[str] | None, Arg("Ids from the list, or pages; by default everything.", positional=True)
    ] = None,
    keep: Annotated[bool, Arg("Bring it back, for good or with `expires` or `for`.")] = False,
    expires: ExpiryDay = None,
    for_: ForPeriod = None,
    now: Annotated[bool, Arg("Erase it now, without waiting for the grace period.")] = False,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
) -> ExpiredRecord:
    """List expired pages, lines and facts, which are hidden; show one, keep it, or erase it now.

    After the grace period (setting expiry_grace) they are erased with the same checks as `quaid forget`."""
    moment = requested_moment(brain, expires, for_)
    if keep and now:
        raise InvalidArgument(name="keep", problem="cannot be combined with --now")
    if moment and not keep:
        raise InvalidArgument(name="for" if for_ else "expires", problem="needs --keep")
    if keep and not items:
        raise InvalidArgument(name="items", problem="is required with --keep; name an id or a page")
    rows = _chosen_rows(brain, items)
    record = _expired_record(brain, rows, show_text=bool(items))
    if keep:
        names = tuple(_keep_item(brain, row, moment) for row in rows)
        return _expired_record(brain, expiry.expired_rows(brain.db))._replace(kept=names)
    if not now or not rows:
        return record
    if not yes:
        return record._replace(ask=True)
    erased, problems = erase_rows(brain, rows)
    left = _expired_record(brain, expiry.expired_rows(brain.db))
    return left._replace(erased=tuple(erased), problems=tuple(problems))


def _chosen_rows(brain: Brain, items: list[str] | None) -> list[ExpiredRow]:
    rows = expiry.expired_rows(brain.db)
    if not items:
        return rows
    chosen: dict[int, ExpiredRow] = {}
    for item in items:
        collection, slug = slugs.split_address(item)
        same = [row for row in rows if row.slug == slug and collection in (None, row.collection)]
        matches = (
            [row for row in rows if str(row.id) == item]
            or [row for row in same if row.kind == "page"]
            or same
        )
        if not matches:
            raise NotFound(what="expired thing", name=item, hint="`quaid expired` lists them.")
        chosen.update({row.id: row for row in matches})
    return list(chosen.values())


def _expired_record(brain: Brain, rows: list[ExpiredRow], show_text: bool = False) -> ExpiredRecord:
    grace = str(brain.option(expiry.GRACE_SETTING))
    days = -(-(dates.retention_seconds(grace) or 0) // 86_400)
    items = []
    for row in rows:
        text = row.text
        if row.kind == "page" and show_text:
            text = markdown.render(*row.page_text(brain.db))
        items.append(
            ExpiredItem(
                *(row.id, row.kind, slugs.address(row.collection, row.slug), row.title, text, row.reason),
                row.hidden_at,
                dates.shift_date(row.hidden_at[:10], days) if row.writable and row.is_automatic else "",
                row.file,
            )
        )
    rules = tuple((rule.setting, rule.period) for rule in expiry.retention_rules(brain.db))
    return ExpiredRecord(tuple(items), grace, rules)


def _keep_item(brain: Brain, row: ExpiredRow, moment: str | None) -> str:
    """Restore an expired page, line or fact. Return its name.

    The item expires again at `moment`, or never if `moment` is None.
    """
    address, at, token = slugs.address(row.collection, row.slug), brain.now(), brain.new_uuid()

    def work(tx: Transaction) -> None:
        collection = Collections(brain.db).require(row.collection)
        if row.kind == "page":
            row.show_page(tx)
        old = pages.require(brain.db, row.slug, row.collection)
        front, truth, lines = old.frontmatter, old.truth, old.timeline
        until = moment or dates.NEVER
        if row.kind == "page":
            front = {**front, dates.EXPIRY_KEY: until}
        elif row.kind == "line":
            truth, lines = row.show_line(tx, dates.with_expiry(row.text, until))
        else:
            row.show_fact(tx, moment)
            page_edits.touch(tx, row.slug, expected_version=None, now=at, collection=row.collection)
        row.drop(tx)
        if row.kind != "fact":
            new = editing.rebuild_page(old, frontmatter=front, truth=truth, lines=lines)
            page_writer.save_page(
                brain.db, tx, collection, old, new, uuid=token, now=at, expected_version=None
            )

    brain.db.write(work)
    return address if row.kind == "page" else f"{row.kind} {row.id} of {address}"


def erase_past_grace(brain: Brain) -> list[ForgetRecord]:
    """Erase expired items whose grace period is over, except items that only a person may erase."""
    rows = [row for row in expiry.expired_rows(brain.db, hidden_before=brain.grace_end) if row.is_automatic]
    return erase_rows(brain, rows)[0] if any(row.writable for row in rows) else []


def erase_and_report(brain: Brain) -> None:
    """Erase expired items whose grace period is over, and notify the user. Called after writes of the owner."""
    records = erase_past_grace(brain)
    if records and brain.notice is not None:
        left = [record.slug for record in records if not record.clean]
        names = ", ".join(dict.fromkeys(record.slug for record in records))
        ending = f"; something remains of {', '.join(left)}" if left else ""
        brain.notice(f"erased {count_noun(len(records), 'expired thing')} ({names}){ending}")


def erase_rows(brain: Brain, rows: list[ExpiredRow]) -> tuple[list[ForgetRecord], list[str]]:
    """Erase expired items and check for remains, as `quaid forget` does.

    Return a record for each erased item, and the reasons why other items were not erased.
    """
    deleted: list[DeletedPage] = []
    parts: list[ExpiredRow] = []
    problems: list[str] = []
    files: dict[int, str] = {}
    for row in sorted(rows, key=lambda row: row.kind != "page"):
        address = slugs.address(row.collection, row.slug)
        if not row.writable:
            problems.append(f"{address} stays hidden: {row.collection} may not be changed")
            continue
        if row.page_id in {page.target.id for page in deleted}:
            continue
        try:
            if row.kind == "page":
                files[row.page_id] = row.file
                deleted.append(_delete_page(brain, row))
            else:
                _delete_part(brain, row)
                parts.append(row)
        except QuaidError as problem:
            problems.append(f"{address} stays hidden: {problem}")
    if not deleted and not parts:
        return [], problems
    trouble = erasure.vacuum_and_checkpoint(brain.db)
    records = [prove_deletion(brain, page, trouble) for page in deleted]
    records = [
        record._replace(files=tuple(file for file in record.files if file != files[page.target.id]))
        for record, page in zip(records, deleted, strict=True)
    ]
    return [*records, *(_proof_of_part(brain, row, trouble) for row in parts)], problems


def _delete_page(brain: Brain, row: ExpiredRow) -> DeletedPage:
    """Delete the file of an expired page, if it has one, and then the page."""
    collection = Collections(brain.db).require(row.collection)
    target = erasure.find_target(brain.db, row.slug, row.collection)
    if target is None:
        raise NotFound(what="page", name=row.slug, hint="")
    token = brain.new_uuid()
    brain.db.write(lambda tx: page_writer.remove_page_file(brain.db, tx, collection, row.page_id, token))
    return delete_page(brain, target)


def _delete_part(brain: Brain, row: ExpiredRow) -> None:
    """Delete an expired line or fact from the memory, and a line also from the page's file."""
    collection = Collections(brain.db).require(row.collection)
    if row.kind == "line" and collection.root is not None and row.file:

        def change(old: str | None) -> str:
            lines = (old or "").split("\n")
            for line in reversed(dates.expiring_lines(old or "")):
                if line.text == row.text:
                    del lines[line.number - 1 : line.end]
            return "\n".join(lines)

        page_writer.edit_file(
            *(brain.db, collection, row.file, change),
            now=brain.now(),
            new_uuid=brain.new_uuid,
            progress=brain.progress,
        )
    brain.db.write(lambda tx: row.erase(tx))


def _proof_of_part(brain: Brain, row: ExpiredRow, trouble: str) -> ForgetRecord:
    text = TextErasure(brain.db, [row.text, row.data])
    left, mentions = remaining_bytes(brain.db.path, text)
    address = slugs.address(row.collection, row.slug)
    record = ForgetRecord(
        *(True, True, address, f"{row.kind} {row.id}", ()),
        proof=tuple(left),
        mentions=mentions,
        problem=problem_with_step(trouble),
    )
    return with_verdict(record)
