"""Ingest a source: store its bytes and all changes it causes in one transaction."""

import binascii
import hashlib
import io
import itertools
import os
import re
import sys
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from quaid import errors
from quaid.app import Brain
from quaid.folders import attachments, documents, importer, page_writer
from quaid.formats import markdown
from quaid.formats.sections import one_line, without_controls
from quaid.model import dates, page as page_model, slug as slugs, timeline
from quaid.model.page import EntryInput, LinkInput, Page, PageChange, class_of_source
from quaid.model.plain_text import count_noun, shorten
from quaid.operations import facts, page_changes, pages
from quaid.operations.dispatch import MAX_TEXT
from quaid.operations.facts import ContradictingQuotes, OldLine, OpenFact, ReplacedStatement
from quaid.operations.registry import Arg, Named, op
from quaid.storage import chunks, collections, links, page_edits, pages as page_store, trust
from quaid.storage.collections import Collections
from quaid.storage.facts import FactChange
from quaid.storage.history import EarlierIngest, Imports, IngestSource
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Transaction

_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*:(?=//)")
KEYS_NOT_COPIED = ("type", "slug", "alias", "aliases", "links", "wing", "room", "quaid_id", "id")
"""Front matter keys that are not copied from a source.

They would set the name, type, place, id or links of the page made from the source.
"""

MIN_WORD_OVERLAP = 0.5
"""New content counts as a new edition of a source if at least this share of the words is equal."""

MAX_TEXTS_COMPARED = 1_000
"""Different texts with the same source_ref become at most this many pages."""


class PageOutcome(NamedTuple):
    """The effect of an ingest on one page."""

    slug: str
    version: int
    outcome: Literal["created", "updated", "unchanged"]
    truth: str
    """The outcome for the compiled truth (the text above the timeline); "" if no such text was sent.

    Otherwise "written", "same", or "same words" if only case or white space differ, so that the stored text
    was kept.
    """
    timeline_entries: int
    tags: int
    links: int
    assertions: int
    keys_removed: tuple[str, ...] = ()
    """Front matter keys that the page had and the new content does not have."""
    tags_removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: tuple[int, ...] = ()
    """The ids of the facts that are new or changed."""


class SkippedLink(NamedTuple):
    """A link that was not added, because its target does not exist."""

    page: str
    slug: str
    """The target, as the caller wrote it."""
    why: str


class Ingestion:
    """One source and all changes it causes. The source becomes a page itself.

    For a file, the first change writes its page. Any other source gets an additional page in sources/ with
    its text.
    """

    def __init__(
        self,
        brain: Brain,
        source: IngestSource,
        changes: list[PageChange],
        *,
        force: bool,
        is_file: bool,
        title: str | None = None,
        date: str | None = None,
    ) -> None:
        self.brain = brain
        self.source = source
        self.requested = [
            change._replace(collection=pages.locate_page(brain, change.address)[0].name) for change in changes
        ]
        self.changes: list[PageChange] = []  # the changes to apply
        self.force = force
        self.is_file = is_file
        self.title, self.date = title, date  # title and date of the source's page
        self.import_id = brain.new_uuid()
        self.now = brain.now()
        self.uuids = [brain.new_uuid() for _ in range(len(changes) + 1)]
        # The change that writes the source's page; None for a file, or if the page is up to date.
        self.own: PageChange | None = None
        self.changed: list[str] = []  # addresses of the changed pages
        self.written: list[tuple[int, bool]] = []  # id of each changed page, and True if it is new
        self.facts: list[FactChange] = []
        self.links_skipped: list[SkippedLink] = []

    def run(self, tx: Transaction) -> "IngestRecord | EarlierIngest":
        """Apply the changes. If nothing is new, return the earlier ingest of the same bytes instead of a record.

        Written text gets the trust class of the source or of the caller, whichever is lower.
        """
        with trust.written_as(tx, class_of_source(self.source.ref, self.source.kind), at_most=True):
            return self._run(tx)

    def _run(self, tx: Transaction) -> "IngestRecord | EarlierIngest":
        self.tx = tx
        self.facts, self.links_skipped = [], []
        earlier = None if self.force else self.earlier()
        if earlier is not None and self.is_file:
            if earlier.source_ref != self.source.ref and not os.path.exists(earlier.source_ref):
                # The file was moved or renamed since the earlier ingest.
                earlier.move_to(tx, self.source)
            return earlier
        left = self._known_changes() if earlier else []
        self.changes = [change for change in self.requested if change not in left]
        own_page, self.own = ("", None) if self.is_file else self._own_page()
        if earlier is not None and not self.changes and not self.own:
            return earlier
        if self.own:
            self.changes.append(self.own)
        outcomes, saved = self._write()
        place = 0 if self.is_file else -1 if self.own else None
        if place is not None:
            own_page = outcomes[place].slug
        changed = [
            (page.id, outcome.slug)
            for page, outcome in zip(saved, outcomes, strict=True)
            if outcome.outcome != "unchanged"
        ]
        if earlier is not None and not changed:
            return earlier
        self.source.keep(
            tx,
            import_id=self.import_id,
            now=self.now,
            page_ids=[page_id for page_id, _ in changed] or [page.id for page in saved],
            page=None if place is None else (saved[place].id, outcomes[place].version),
        )
        self.changed = [slug for _, slug in changed]
        new = {page.id for page in saved if page.created}
        self.written = [(page_id, page_id in new) for page_id, _ in changed]
        asked = outcomes[:-1] if self.own else outcomes
        addresses = tuple(change.address for change in left)
        return IngestRecord(
            *(self.source.kind, self.source.ref, True, None, self.import_id),
            *(tuple(asked), addresses, (), own_page),
            version=0 if place is None else outcomes[place].version,
            collection=slugs.split_address(own_page)[0] or Collections(self.brain.db).home_name(),
        )

    def _write(self) -> tuple[list[PageOutcome], list[SaveResult]]:
        stored = [
            page_store.find(self.brain.db, change.slug, _collection_name(change)) for change in self.changes
        ]
        self._check_versions(stored)
        drafts = [self._draft(change, old) for change, old in zip(self.changes, stored, strict=True)]
        saved = [self._save(*draft) for draft in zip(self.changes, stored, drafts, self.uuids, strict=False)]
        self.ids = {change.address: result.id for change, result in zip(self.changes, saved, strict=True)}
        outcomes = [
            self._add_links_and_facts(*item) for item in zip(self.changes, drafts, saved, strict=True)
        ]
        return outcomes, saved

    def _known_changes(self) -> list[PageChange]:
        """Return the changes that this source has already made and that are not applied again.

        A change is applied again if the caller sends the current version of the page, or the hash of its
        current text, because the caller has then read the page since the earlier ingest.
        """
        _, touched = Imports(self.brain.db).pages_of_source(self.source.content_hash, self.source.ref)
        unchanged: list[PageChange] = []
        for change in self.requested:
            old = page_store.find(self.brain.db, change.slug, _collection_name(change))
            has_read = change.content_hash is not None and _conflict_kind(change, old) is None
            if old and old.id in touched and old.version != change.expected_version and not has_read:
                unchanged.append(change)
        return unchanged

    def _own_page(self) -> tuple[str, PageChange | None]:
        """Return the address of the source's own page, and the change that writes it, or None if it is up to date.

        If the page with the source's slug has different content, there are two cases. If it is an unedited
        earlier edition of the source with at least half of the words, the source replaces its content. Otherwise
        the source becomes a separate page, so that the earlier content can still be found.
        """
        db = self.brain.db
        earlier_page, _ = Imports(db).pages_of_source(self.source.content_hash, self.source.ref)
        if earlier_page is not None and not self.force:
            return earlier_page, None
        front, truth, lines = source_text(self.source)
        first = shorten(first_line(markdown.decode(self.source.data)[0]), MAX_FIRST_LINE)
        title = self.title or first or self.source.ref
        if self.title or not ("title" in front or truth.lstrip().startswith("#")):
            front["title"] = title
        front |= {"date": self.date} if self.date else {}
        entry = EntryInput(self.date or "", title, self.source.kind, "")
        home = Collections(db).home_name()
        taken = {change.slug for change in self.changes if _collection_name(change) == home}
        for address in _slug_candidates(self.source.ref):
            old = None if address in taken else page_store.find(db, address, home)
            if address in taken or (old and old.slug != address):
                continue
            if old is not None and address != earlier_page and not self._is_edition(old, truth):
                continue
            if old is not None:
                front = {**old.frontmatter, **front}
            return address, PageChange(
                *("source", address, home),
                expected_version=old.version if old else 0,
                content=markdown.render(front, truth, lines),
                entries=(entry,) if self.date else (),
                title=self.source.ref,
            )
        raise errors.InvalidArgument(
            name="source", problem="has too many different texts; choose another name"
        )

    def _is_edition(self, old: PageRow, truth: str) -> bool:
        """Return True if the page is an unedited earlier edition of this source with mostly equal words."""
        before = Imports(self.brain.db).newest_source(old.id)
        if before is None or before[0] != self.source.ref:
            return False
        words, others = set(truth.casefold().split()), set(old.truth.casefold().split())
        alike = len(words & others) >= MIN_WORD_OVERLAP * len(words | others)
        return alike and source_text(self.source._replace(data=before[2]))[1] == old.truth

    def earlier(self) -> EarlierIngest | None:
        """Return the last ingest of these bytes from this source or, for a file, from any path, or None."""
        ref = None if self.is_file else self.source.ref
        return Imports(self.brain.db).last_ingest(self.source.content_hash, ref)

    def _check_versions(self, stored: list[PageRow | None]) -> None:
        """Check all versions and report all conflicts in one error, so that the caller can merge them in one pass."""
        conflicts: list[errors.VersionConflict] = []
        for change, old in zip(self.changes, stored, strict=True):
            current = old.version if old else 0
            expected = change.expected_version
            facts = {"slug": change.address, "expected": expected, "current_version": current}
            kind = _conflict_kind(change, old)
            if old and old.slug != change.slug:
                conflicts.append(errors.PageMoved(target=old.slug, **facts))
            elif kind is not None:
                conflicts.append(kind(**{**facts, "expected": change.content_hash or expected}))
        rows = {change.address: old for change, old in zip(self.changes, stored, strict=True)}
        length = page_changes.MAX_CONFLICT_TEXT // max(1, len(conflicts))
        conflicts = [
            page_changes.with_current_text(conflict, rows[conflict.facts["slug"]], length)
            for conflict in conflicts
        ]
        if len(conflicts) == 1:
            raise conflicts[0]
        if conflicts:
            facts_of_all = [dict(conflict.facts) for conflict in conflicts]
            detail = ", ".join(map(_version_text, facts_of_all))
            raise errors.VersionConflicts(count=len(conflicts), detail=detail, conflicts=facts_of_all)

    def _draft(self, change: PageChange, old: PageRow | None) -> tuple[Page, PageOutcome]:
        """Build the new page, and count the entries and tags that the change adds."""
        try:
            front, truth, lines = page_changes.page_text(
                old,
                *(change.content, change.compiled_truth, None, change.frontmatter),
                prefix=f"{change.where}.",
            )
        except errors.InvalidFrontMatter as error:
            raise errors.InvalidFrontMatter(problem=f"{change.address}, {error.facts['problem']}") from None
        # The text is added only once, even if the source is ingested again.
        if change.timeline_append is not None:
            added = timeline.append_text(lines, markdown.normalize_part(change.timeline_append))
            lines = markdown.normalize_part(added)
        has_truth = change.content is not None or change.compiled_truth is not None
        outcome = "written" if has_truth else ""
        if old is not None and has_truth:
            if truth == old.truth:
                outcome = "same"
            elif change is not self.own and not self.force and _words(truth) == _words(old.truth):
                outcome = "same words"
                truth, front = old.truth, _front_matter_if_truth_stays(change, old, front)
            elif self.is_file and not self.force:
                self._refuse_foreign(old, change)
        for entry in change.entries:
            source = entry.source or self.source.ref.replace("—", "-")
            lines = timeline.add_entry_once(lines, entry.date, entry.summary, source, entry.detail)
        before = old.tags if old else ()
        labels = page_model.frontmatter_tags(front)
        missing = [tag for tag in dict.fromkeys(change.tags) if tag not in labels]
        if missing:
            front = page_changes.with_tags(front, [*labels, *missing])
        if not truth and not lines:
            problem = "has no text; a new page needs content, compiled_truth or timeline_entries"
            raise errors.InvalidArgument(name=change.where, problem=problem)
        made = page_changes.build_checked_page(change.slug, front, truth, lines, old, change.title)
        fresh = timeline.entry_keys(lines) - timeline.entry_keys(old.timeline if old else "")
        lost = ((), ()) if change.content is None else page_changes.removed_front(old, made)
        tags_added = len(set(made.tags) - set(before))
        return made, PageOutcome(
            *(change.address, 0, "unchanged", outcome, len(fresh), tags_added, 0, 0, *lost),
            notes=page_changes.new_type_notes(made, old),
        )

    def _refuse_foreign(self, old: PageRow, change: PageChange) -> None:
        """Raise AlreadyExists for a page that was not created from this file or that was edited since then."""
        if (Imports(self.brain.db).newest_source(old.id) or ())[:2] != (self.source.ref, old.version):
            raise errors.AlreadyExists(
                path=change.address,
                hint="It was not created from this file, or was edited since: --force replaces its text and keeps"
                " its timeline, --slug NAME creates another page.",
            )

    def _save(
        self, change: PageChange, old: PageRow | None, draft: tuple[Page, PageOutcome], uuid: str
    ) -> SaveResult:
        return page_writer.save_page(
            self.brain.db,
            self.tx,
            Collections(self.brain.db).require(_collection_name(change)),
            old,
            draft[0],
            source=self.source.ref,
            uuid=uuid,
            now=self.now,
            expected_version=change.expected_version,
        )

    def _add_links_and_facts(
        self, change: PageChange, draft: tuple[Page, PageOutcome], saved: SaveResult
    ) -> PageOutcome:
        """Add the links and facts of a change, after all pages are saved.

        The version of the page increases only once.
        """
        page, outcome = draft
        linked = sum(self._link(change, saved, link) for link in change.links)
        stated = self._assert(change, saved.id, page.title)
        version = saved.version
        if (linked or stated) and not saved.changed:
            _, version = page_edits.touch(
                self.tx, change.slug, expected_version=None, now=self.now, collection=_collection_name(change)
            )
        changed = saved.changed or bool(linked or stated)
        return outcome._replace(
            version=version,
            outcome="created" if saved.created else "updated" if changed else "unchanged",
            links=linked,
            assertions=len(stated),
            facts=stated,
        )

    def _assert(self, change: PageChange, page_id: int, title: str) -> tuple[int, ...]:
        """Store facts. Return the ids of those that are new or changed."""
        values = [
            {**fact, "source_ref": fact.get("source_ref") or self.source.ref} for fact in change.assertions
        ]
        where = f"{change.where}.assertions"
        stated = facts.add_facts(self.tx, page_id, title, values, where, self.now)
        changed = [fact for fact in stated if fact.changed]
        self.facts += changed
        return tuple(fact.id for fact in changed)

    def _link(self, change: PageChange, saved: SaveResult, link: LinkInput) -> bool:
        """Add a link, or set the end date of an open link. Return False if nothing changed.

        A link to a page that does not exist is skipped and reported.
        """
        collection, name = slugs.split_address(link.to)
        address = name if collection in (None, "default") else link.to
        try:
            to_id = self.ids.get(address) or pages.open_page(self.brain, link.to).id
        except (errors.PageNotFound, errors.InvalidSlug, errors.AmbiguousSlug, errors.NotFound) as error:
            why = f"There is no such page. {error.facts.get('hint') or ''}".strip()
            self.links_skipped.append(SkippedLink(change.address, link.to, why))
            return False
        if to_id == saved.id:
            raise errors.InvalidArgument(
                name=f"{link.where}.to", problem="is the same page; name another one"
            )
        if saved.created:
            try:
                return self._add_link(saved.id, to_id, link)
            except errors.LinkOverlaps:
                # The link exists, from the page's text or from this ingest; its dates are compared below.
                pass
        for row in links.between(self.brain.db, saved.id, to_id, link.relationship):
            undated = link.valid_from is None and link.valid_until is None and row.valid_until is None
            if row.valid_from == link.valid_from or undated:
                if link.valid_until in (None, row.valid_until):
                    return False  # the link is already stored; a link that was closed since is not reopened
                if row.valid_until is None and row.source_kind != links.FROM_TEXT:
                    row.close(self.tx, link.valid_until)
                    return True
        return self._add_link(saved.id, to_id, link)

    def _add_link(self, page_id: int, to_id: int, link: LinkInput) -> bool:
        links.add(
            self.tx,
            page_id,
            to_id,
            relationship=link.relationship,
            context=link.context,
            valid_from=link.valid_from,
            valid_until=link.valid_until,
            now=self.now,
        )
        return True


def source_text(source: IngestSource) -> tuple[dict[str, Any], str, str]:
    """Return the front matter, compiled truth and timeline of the page created from a source.

    The source's own front matter does not set the page's name, type or links, because it is untrusted.
    """
    content = markdown.decode(source.data)[0]
    document = markdown.parse(content)
    front = {key: value for key, value in document.frontmatter.items() if key not in KEYS_NOT_COPIED}
    type_ = source.kind if source.kind in page_model.PAGE_TYPES else "source"
    front = {"type": type_, **front, "source_type": source.kind, "source_ref": source.ref}
    if document.truth or document.timeline:
        return front, document.truth, document.timeline
    return front, f"```\n{content.strip()}\n```", ""  # the source has only front matter


def _slug_candidates(ref: str) -> Iterator[str]:
    """Yield possible slugs for a source, best first."""
    steps = [part for part in _SCHEME.sub("", ref).removeprefix("sources/").split("/") if part]
    base = slugs.from_path("/".join(["sources", *steps]) if steps else f"sources/{ref}")
    yield base
    for number in range(2, MAX_TEXTS_COMPARED + 1):
        yield slugs.from_path(f"{base}-{number}")


def _front_matter_if_truth_stays(change: PageChange, old: PageRow, front: dict[str, Any]) -> dict[str, Any]:
    """Return the front matter to store if the compiled truth is kept.

    Of the front matter in new content, only new tags are added.
    """
    if change.content is None:
        return front
    named = page_model.frontmatter_tags(old.frontmatter)
    more = [tag for tag in page_model.frontmatter_tags(front) if tag not in old.tags]
    return page_changes.with_tags(old.frontmatter, [*named, *more]) if more else old.frontmatter


def _conflict_kind(change: PageChange, old: PageRow | None) -> type[errors.VersionConflict] | None:
    """Return the error for a change whose author had not read the current text, or None.

    A change without a version or content hash must not replace text of an existing page, but may add to it.
    """
    expected, current = change.expected_version, old.version if old else 0
    if expected is not None and expected != current:
        return errors.NoSuchVersion if not old else errors.VersionConflict if expected else errors.PageExists
    if change.content_hash is not None:
        if old is None:
            return errors.NoSuchVersion
        return None if page_changes.has_content_hash(old, change.content_hash) else errors.ContentChanged
    if expected is not None or old is None:
        return None
    front = page_changes.with_front_matter_keys(old.frontmatter, change.frontmatter or {})
    replaces = change.content is not None or change.compiled_truth is not None
    return errors.PageExists if replaces or not page_changes.keeps_keys(old, front) else None


def _version_text(facts: dict[str, Any]) -> str:
    if "target" in facts:
        return f"{facts['slug']} is {facts['target']} now, at version {facts['current_version']}"
    if not facts["current_version"]:
        return f"{facts['slug']} does not exist"
    return f"{facts['slug']} is at version {facts['current_version']}"


def _collection_name(change: PageChange) -> str:
    return change.collection or "default"


def _words(text: str) -> list[str]:
    return text.casefold().split()


MAX_SOURCE_REF = 1_000
MAX_DERIVED_TITLE = 60
"""At most this many characters of a title are used in the derived name of a source."""
MAX_FIRST_LINE = 80
"""Maximum characters of a title that is the first line of a source."""

DEFAULT_TYPE = "doc"
NEXT_STEP = "the ingest skill (`quaid skills show ingest`) says how an agent adds its facts to other pages."
SOURCE_TYPES = ("meeting", "mail", "chat", "article", "paper", "doc", "conversation")
"""The usual types of sources; others are accepted."""


class IngestRecord(NamedTuple):
    source_type: str
    source_ref: str
    written: bool
    """False if these bytes were ingested before, at the time `known_since`, so that nothing was changed."""
    known_since: str | None
    import_id: str | None
    """The id with which `quaid export --raw --import-id` exports the stored bytes."""
    pages: tuple[PageOutcome, ...]
    known_pages: tuple[str, ...]
    """Pages that an earlier ingest of this source had changed."""
    gaps_resolved: tuple[int, ...]
    source_page: str = ""
    """Address of the page created from the source, or ""."""
    next_step: str | None = None
    version: int = 0
    """Version of the source's page, if it was written."""
    collection: str = "default"
    """Collection of the source's page."""
    replaced: tuple[ReplacedStatement, ...] = ()
    """Facts that this write ended."""
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    """Facts about the changed pages that still hold, except facts of this write."""
    similar: tuple[str, ...] = ()
    """Addresses of pages that may be about the same thing."""
    still_says: tuple[OldLine, ...] = ()
    """Lines of pages that still have the value of a replaced fact."""
    hint: str = ""
    links_skipped: tuple[SkippedLink, ...] = ()
    """Links that were not added, because their target does not exist. Everything else was written."""
    notes: tuple[str, ...] = ()
    """Notes on omitted parts of a document, and on the number of e-mails in a mailbox."""


@op(
    "write",
    creates=True,
    command="ingest-source",
    core=True,
    tool="memory_ingest",
    examples=(
        "quaid ingest-source call.txt --type meeting --date 2026-04-25 --title 'Call with Alice'",
        "quaid ingest-source call.txt --type meeting --source meeting/17 --pages"
        ' \'[{"slug": "people/alice", "timeline_entries": [{"date": "2026-04-25", "summary": "Moved to Oslo"}]}]\'',
    ),
    cli_note="All of it is one transaction. A truth that a page already has is skipped; its evidence is not.",
)
def ingest(
    brain: Brain,
    content: Annotated[str, Arg("The text of the source, unchanged.", positional=True, file=True)],
    type: Annotated[str, Arg("meeting, mail, chat, article, paper, doc or another word.")] = DEFAULT_TYPE,
    title: Annotated[str | None, Arg("The title of its page [its first line].")] = None,
    date: Annotated[str | None, Arg("Its day; adds an entry to the timeline of its page.")] = None,
    source: Annotated[
        str | None, Arg("Its name, as in meeting/17 or a URL [from type, date and title].")
    ] = None,
    pages: Annotated[
        list[dict[str, Any]] | None,
        Arg(
            "Other pages that it changes, each {slug, content | compiled_truth, with content_hash if it exists;"
            " frontmatter, timeline_append, links [{to, relationship, context, valid_from, valid_until}],"
            " timeline_entries [{date, summary, source, detail}], assertions [{subject, predicate, object,"
            " valid_from, valid_until, evidence_text, supersedes_id}], tags []}."
        ),
    ] = None,
    force: Annotated[bool, Arg("Ingest even if the source or a truth is already known.")] = False,
) -> IngestRecord:
    """Store a source (meeting, mail, article, chat) as a page, and what it says about other pages, at once.

    Ingesting it again changes nothing."""
    for name, text in (("content", content), ("source", source)):
        if text is not None and not text.strip():
            raise errors.InvalidArgument(name=name, problem="is empty")
    kind, day = _source_kind(type), dates.check_date(date, "date") if date else None
    ref = " ".join(source.split()) if source else _derived_ref(kind, day, title or first_line(content))
    if len(ref) > MAX_SOURCE_REF:
        raise errors.InvalidArgument(name="source", problem=f"has more than {MAX_SOURCE_REF:,} characters")
    stored = _source_of_bytes(kind, ref, slugs.from_path(ref) + ".md", content.encode())
    changes = page_model.parse_changes(pages or [])
    work = Ingestion(brain, stored, changes, force=force, is_file=False, title=title, date=day)
    return _run_ingestion(brain, work)


def _source_kind(type: str) -> str:
    """Return a source type in its stored form, or raise InvalidArgument."""
    if (name := page_model.type_name(type)) is None:
        raise errors.InvalidArgument(name="type", problem=f"must be a word such as meeting, not {type!r}")
    return name


def _derived_ref(kind: str, day: str | None, title: str) -> str:
    """Return a name for a source without a given name, as in meeting/2026-04-25-call-with-alice."""
    name = slugs.segment(title[:MAX_DERIVED_TITLE]).strip("-")
    return f"{kind}/{'-'.join(filter(None, (day, name))) or 'source'}"


def first_line(content: str) -> str:
    """Return the title in the front matter of a text, or else its first line without Markdown marks."""
    document = markdown.parse(content)
    named = document.frontmatter.get("title")
    if isinstance(named, str) and named.strip():
        return named.strip()
    text = document.truth or document.timeline or content
    return next((line.strip("#*_> ") for line in text.split("\n") if line.strip("#*_> -")), "")


@op(
    "owner",
    creates=True,
    command="ingest",
    examples=(
        "quaid ingest standup.md --type meeting --date 2026-04-25",
        "quaid ingest report.pdf",
        "quaid ingest https://example.com/paper.pdf --type paper",
        "quaid ingest archive.mbox",
    ),
    cli_note="A PDF file needs the extra: pip install 'quaid-memory[documents]'.",
)
def ingest_file(
    brain: Brain,
    file: Annotated[
        str,
        Arg(
            "A file (text, PDF, Office, HTML, EPUB, e-mail, calendar, code), a URL, or - for standard input.",
            positional=True,
            path=True,
        ),
    ],
    type: Annotated[
        str | None, Arg("meeting, mail, chat, article, paper, doc or another word [doc].")
    ] = None,
    slug: Annotated[str | None, Arg("The page to create [the slug in the file, or sources/NAME].")] = None,
    date: Annotated[str | None, Arg("The day of the source; adds an entry to the page's timeline.")] = None,
    force: Annotated[bool, Arg("Ingest even if it is known, or the page was edited since.")] = False,
    allow_private: Annotated[bool, Arg("Fetch also from addresses of this machine or network.")] = False,
) -> IngestRecord:
    """Ingest one file or URL as a page; each e-mail of an mbox file becomes a page.

    Markdown and plain text are stored as they are, other documents as text with the numbers of their pages, slides or
    sheets; the document itself stays where it is. Ingesting the same file again changes nothing."""
    path = file if documents.is_address(file) or file == "-" else brain.settings.path(file)
    flags = {
        "source_type": _source_kind(type) if type else None,
        "date": dates.check_date(date, "date") if date else None,
        "url": path if documents.is_address(path) else None,
    }
    name, media_type, data = _read_source_bytes(path, allow_private)
    document = documents.detect_kind(name, media_type, data)
    if document == "mbox":
        return _ingest_mailbox(brain, path, name, force)
    notes: tuple[str, ...] = ()
    if document and not name.lower().endswith(TEXT_ENDINGS):
        converted = _converted(path, document, name, data)
        data, notes = converted.text.encode(), converted.notes
        if path == "-" or (document == "html" and documents.is_address(path)):
            name = f"{converted.title}.md"
    elif len(data) > MAX_TEXT:
        raise errors.TooLarge(what=path, size=len(data), limit=MAX_TEXT)
    change, kind = _change_from_file(brain, path, name, data, flags, slug)
    source = _source_of_bytes(kind, _printable(path), _printable(name), data)
    done = _run_ingestion(brain, Ingestion(brain, source, [change], force=force, is_file=True))
    return done._replace(next_step=NEXT_STEP if done.written else None, notes=notes)


MAX_SELECTION = 20_000


def clip_arguments(
    brain: Brain, source: str, title: str = "", content: str = "", selection: str = ""
) -> dict[str, Any]:
    """Return the arguments with which `ingest` stores a web page that a browser sent. `content` is its HTML.

    This selection and the selections of earlier clips of the web page become quotations above the text.
    """
    address = web_address(source)
    if len(selection) > MAX_SELECTION:
        raise errors.InvalidArgument(name="selection", problem=f"has more than {MAX_SELECTION:,} characters")
    front: dict[str, Any] = {"url": address, "origin": "web"}
    text = ""
    if content.strip():
        converted = _converted(address, "html", urlsplit(address).hostname or "page", content.encode())
        document = markdown.parse(converted.text)
        text, title = document.truth, title or converted.title
        front |= {"date": converted.date} if converted.date else {}
    lines = [line.strip() for line in without_controls(selection).split("\n") if line.strip()]
    blocks = [*_earlier_quotations(brain, address), "\n".join(f"> {line}" for line in lines)]
    quotations = [block for block in dict.fromkeys(blocks) if block and block not in text]
    body = "\n\n".join([*quotations, *([text] if text else [])]) or f"<{address}>"
    title = one_line(title) or address
    return {
        "content": markdown.render(front, body, ""),
        "type": "article",
        "source": address,
        "title": title,
    }


def web_address(source: str) -> str:
    """Return the URL of a web page without its user name, and without its fragment unless the fragment is a
    path.
    """
    address = source.strip()
    parts = urlsplit(address) if documents.is_address(address) else None
    if parts is None or not parts.hostname or not address.isprintable() or " " in address:
        raise errors.InvalidArgument(
            name="source", problem="must be the address of a web page, with http or https"
        )
    fragment = parts.fragment if parts.fragment.startswith(("/", "!")) else ""  # a path on some sites
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=fragment).geturl()


def _earlier_quotations(brain: Brain, address: str) -> list[str]:
    """Return the quotations at the beginning of the page that an earlier clip of this address made."""
    page = page_store.find(brain.db, next(_slug_candidates(address)), "default")
    if page is None or page.frontmatter.get("source_ref") != address:
        return []
    blocks = itertools.takewhile(lambda block: block.startswith("> "), page.truth.split("\n\n"))
    return list(blocks)


PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"BM")
"""The first bytes of PNG, JPEG, GIF, WebP, TIFF and BMP files."""

TEXT_ENDINGS = (".txt", ".text")
"""File name endings of plain text, which is stored unchanged, like Markdown."""


def _converted(path: str, kind: str, name: str, data: bytes) -> documents.ConvertedDocument:
    try:
        with documents.Converter() as converter:
            return next(converter.convert(kind, name, io.BytesIO(data), len(data)))
    except documents.ConversionFailed as error:
        raise errors.FileTrouble(path=path, problem=f"the document {error}") from None


def _ingest_mailbox(brain: Brain, path: str, name: str, force: bool) -> IngestRecord:
    """Import each e-mail of an mbox file as a page, in one transaction."""
    if not os.path.isfile(path):
        raise errors.FileTrouble(path=path, problem="is a mailbox; save it as a file first")
    brain.progress(0, 1, "Reading")
    stem = _printable(os.path.splitext(name)[0])
    try:
        mailbox, left_out = importer.read_mailbox(path, stem, os.path.dirname(brain.db.path))
    except documents.ConversionFailed as error:
        raise errors.FileTrouble(path=path, problem=f"the mailbox {error}") from None
    report = importer.import_folder(
        brain.db,
        path,
        import_id=brain.new_uuid(),
        now=brain.now(),
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        force=force,
        folder=mailbox,
    )
    chunks.cut_pages(brain.db, brain.progress)
    counts, id_ = report.outcomes, report.import_id
    summary = (
        f"{count_noun(report.files_seen, 'e-mail')}: {counts['new']:,} new, {counts['changed']:,} changed,"
    )
    notes = (f"{summary} {counts['unchanged']:,} unchanged", *left_out)
    since = None if id_ else brain.now()
    return IngestRecord("mail", _printable(path), id_ is not None, since, id_, (), (), (), notes=notes)


@op("owner", command="adopt-sources", examples=("quaid adopt-sources",))
def adopt_sources(brain: Brain) -> Named[tuple[str, ...]]:
    """Create pages for sources that an earlier version stored without one, so that searches find them."""
    made: list[str] = []
    sources = Imports(brain.db).sources_without_page()
    for done, source in enumerate(sources):
        brain.progress(done, len(sources), "Making pages")
        outcome = brain.db.write(Ingestion(brain, source, [], force=False, is_file=False).run)
        if not isinstance(outcome, EarlierIngest):
            made.append(outcome.source_page)
    return Named("pages", tuple(made), "Every ingested source has its page")


def _change_from_file(
    brain: Brain, path: str, name: str, data: bytes, flags: dict[str, str | None], slug: str | None
) -> tuple[PageChange, str]:
    """Return the change that writes the page of a file, and the file's source type.

    For the source type, date and URL, flags override the file's front matter, and that overrides the front matter
    of the existing page.
    """
    text, mended = markdown.decode(data)
    if mended and "replaced" in mended:
        problem = "is neither text nor a document of a known kind"
        if data.startswith(PICTURES):
            problem = "is a picture, and text in pictures is not read; `quaid attach` shows it in a page"
        elif data.startswith(b"\xd0\xcf\x11\xe0"):
            problem = "is in the format of Office before 2007; save it as a new file"
        raise errors.FileTrouble(path=path, problem=problem)
    document = markdown.parse(text)
    if document.problem:
        raise errors.InvalidFrontMatter(problem=document.problem)
    front = dict(document.frontmatter)
    if flags["url"]:  # an untrusted server must not set the name, type or aliases of a page
        front = {key: value for key, value in front.items() if key == "room" or key not in KEYS_NOT_COPIED}
    if front.get("type") in SOURCE_TYPES:
        front.setdefault("source_type", front["type"])
        if front["type"] not in page_model.PAGE_TYPES:
            del front["type"]
    stem = _printable(os.path.splitext(name)[0])
    title = None if slugs.segment(stem) == stem else stem
    own = front.get("slug")
    default = own if isinstance(own, str) else f"sources/{slugs.segment(stem)}"
    collection, name = slugs.split_address(slug or default)
    old = page_store.find(brain.db, slugs.check(name), collection or "default")
    name = old.slug if old else name
    flagged = {key: old.frontmatter[key] for key in flags if old and key in old.frontmatter}
    front = {**flagged, **front, **{key: value for key, value in flags.items() if value is not None}}
    made = page_model.build_page(name, front, document.truth, document.timeline, fallback_title=title)
    kind, day = _source_type(front), flags["date"]
    change = PageChange(
        *("page", name, collection or "default"),
        expected_version=old.version if old else 0,
        content=markdown.render(front, document.truth, document.timeline),
        entries=(EntryInput(day, made.title, kind, ""),) if day else (),
        title=title,
    )
    return change, kind


def _source_type(front: dict[str, Any]) -> str:
    """Return the source type in the front matter, or DEFAULT_TYPE if there is none."""
    named = front.get("source_type")
    if named in (None, ""):
        return DEFAULT_TYPE
    if (name := page_model.type_name(named)) is None:
        problem = f"must be a word such as meeting, not {named!r}; change the front matter or add --type"
        raise errors.InvalidArgument(name="source_type", problem=problem)
    return name


def _run_ingestion(brain: Brain, work: Ingestion) -> IngestRecord:
    done = brain.db.write(work.run)
    source = work.source
    if isinstance(done, EarlierIngest):
        own, _ = Imports(brain.db).pages_of_source(source.content_hash, done.source_ref)
        others = tuple(slug for slug in done.slugs if work.is_file or slug != own)
        return IngestRecord(
            *(source.kind, source.ref, False, done.created_at, done.import_id, (), others, ()), own or ""
        )
    closed = page_changes.close_answered_gaps(brain, work.changed) if work.changed else []
    receipt = facts.receipt(
        *(brain, [page_id for page_id, _ in work.written], work.facts),
        similar=[page_id for page_id, is_new in work.written if is_new],
    )
    skipped = tuple(work.links_skipped)
    return done._replace(gaps_resolved=tuple(closed), links_skipped=skipped, **receipt._asdict())


def _source_of_bytes(kind: str, ref: str, file_path: str, data: bytes) -> IngestSource:
    return IngestSource(kind, ref, file_path, data, hashlib.sha256(data).hexdigest())


def _read_source_bytes(path: str, allow_private: bool) -> tuple[str, str, bytes]:
    """Return the name, the media type if a server named it, and the bytes of a file, a URL or standard input.

    Of a mailbox file, only the beginning is returned.
    """
    if documents.is_address(path):
        return documents.fetch(path, allow_private=allow_private)
    if path == "-":
        # A server runs operations on other threads; its standard input belongs to no caller.
        if threading.current_thread() is not threading.main_thread():
            raise errors.InvalidArgument(name="file", problem="cannot be standard input here; name a file")
        data = sys.stdin.buffer.read(documents.MAX_FILE + 1)
        if len(data) > documents.MAX_FILE:
            raise errors.InputTooLarge(limit=documents.MAX_FILE)
        if not data.strip():
            raise errors.FileTrouble(path="standard input", problem="is empty")
        return "standard input", "", data
    return os.path.basename(path), "", _read_file_bytes(path)


def _read_file_bytes(path: str) -> bytes:
    if os.path.isdir(path):
        raise errors.FileTrouble(path=path, problem="is a folder; use `quaid import` for folders")
    if os.path.exists(path) and not os.path.isfile(path):
        raise errors.FileTrouble(path=path, problem="is not a regular file")
    with open(path, "rb") as file:  # dispatch.call converts OSErrors
        data = file.read(4_096)
        kind = documents.detect_kind(os.path.basename(path), "", data)
        if kind == "mbox":
            return data
        limit = documents.MAX_FILE if kind else MAX_TEXT
        data += file.read(limit + 1 - len(data))
    if len(data) > limit:
        raise errors.TooLarge(what=path, size=os.path.getsize(path), limit=limit)
    if not data.strip():
        raise errors.FileTrouble(path=path, problem="is empty")
    return data


def _printable(name: str) -> str:
    """Return a file name as valid Unicode, so that it can be stored."""
    return os.fsencode(name).decode("utf-8", "replace")


# Images


class AttachRecord(NamedTuple):
    name: str
    markdown: str
    """Markdown that shows the image on the page."""
    path: str
    created: bool
    """False if the image was stored before."""


class AttachmentRecord(NamedTuple):
    type: str
    data: str
    """The image in base64."""


PageOfImage = Annotated[str, Arg("The page. With a page of a folder, the image is beside its file.")]


@op("owner", examples=("quaid attach photo.png --slug people/alice",))
def attach(
    brain: Brain,
    file: Annotated[str | None, Arg("The image file.", positional=True, path=True)] = None,
    slug: PageOfImage = "",
    data: Annotated[
        str | None, Arg("The image in base64, in place of a file.", maximum=attachments.MAX_BASE64)
    ] = None,
) -> AttachRecord:
    """Store an image (PNG, JPEG, GIF or WebP, up to 5 MB) and print the Markdown that shows it in a page.

    The image is copied into the folder attachments/ beside the page's file, or beside the memory if the page has no
    file. Its name is a hash of its content."""
    if (file is None) == (data is None):
        raise errors.InvalidArgument(name="file", problem="or data is needed, and not both")
    content = _image_bytes(brain, file, data or "")
    root, inside = _image_folder(brain, slug)
    name, created = attachments.store(root, inside, content, brain.new_uuid(), _image_key(brain, inside))
    path = os.path.join(root, inside, name)
    return AttachRecord(name, f"![]({attachments.FOLDER}/{name})", path, created)


def _image_bytes(brain: Brain, file: str | None, data: str) -> bytes:
    if file is None:
        try:
            return binascii.a2b_base64(data, strict_mode=True)
        except binascii.Error:
            raise errors.InvalidArgument(name="data", problem="is not base64") from None
    path = brain.settings.path(file)
    try:
        with open(path, "rb") as source:
            return source.read(attachments.MAX_BYTES + 1)
    except OSError as error:
        raise errors.FileTrouble(path=path, problem=f"cannot be read: {error.strerror}") from None


def _image_folder(brain: Brain, page: str, *, make: bool = True) -> tuple[str, str]:
    """Return a folder, and the path within it, for the images of a page.

    With `make`, create the folder beside the memory, and raise an error if the page's folder is read-only.
    """
    if page:
        collection, slug = pages.locate_page(brain, page)
        if collection.root:
            if make:
                page_writer.require_writable(collection)
            stored = page_store.find(brain.db, slug, collection.name)
            seen = collections.file_of_page(brain.db, stored.id)[0] if stored else None
            folder = (seen.path if seen else slug).rpartition("/")[0]
            return collection.root, f"{folder}/{attachments.FOLDER}/".lstrip("/")
    if make:
        return attachments.make_memory_folder(brain.settings.db_path), ""
    return attachments.memory_folder(brain.settings.db_path), ""


def _image_key(brain: Brain, inside: str) -> bytes | None:
    """Return the key of images beside an encrypted memory. For other images, which are not encrypted, return
    None.
    """
    return None if inside else collections.read_image_key(brain.db)


@op("read", examples=("quaid attachment 0123456789abcdef0123456789abcdef.png --json",))
def attachment(
    brain: Brain,
    name: Annotated[str, Arg("The name of the image, as in the page.", positional=True)],
    slug: PageOfImage = "",
) -> AttachmentRecord:
    """Return an image of a page in base64."""
    import base64

    if brain.settings.only and not page_store.any_page_contains(brain.db, name):
        raise errors.NotFound(what="image", name=name, hint="")
    root, inside = _image_folder(brain, slug, make=False)
    data = attachments.read(root, inside, name, _image_key(brain, inside))
    return AttachmentRecord(attachments.TYPES[name.rpartition(".")[2]], base64.b64encode(data).decode())
