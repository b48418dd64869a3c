"""What becomes of each page of an ingest: inside its one transaction, all or nothing.

Not operations. Evidence (timeline entries, links, facts, tags) is always written and never twice; the truth of a
page that is there is left alone when the new one says the same, unless it is forced. A timeline only grows.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import (
    AlreadyExists,
    InvalidArgument,
    LinkOverlaps,
    NoSuchVersion,
    PageExists,
    PageMoved,
    VersionConflict,
    VersionConflicts,
)
from quaid.folders import page_writer
from quaid.formats import markdown
from quaid.model import slug as slugs, tags, timeline
from quaid.model.page import LinkInput, Page, PageChange
from quaid.ops import editing
from quaid.storage import collections, history, links, page_edits, pages
from quaid.storage.history import EarlierIngest, IngestSource
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageRow

_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*:(?=//)")
NOT_TAKEN_OVER = ("type", "slug", "alias", "aliases", "links", "wing", "room", "quaid_id", "id")
"""Keys of a source's own front matter that would say how its page is found."""

ALIKE = 0.5
"""Share of words that two editions of a text have in common."""

MOST_TEXTS = 1_000
"""Different texts with the same source_ref."""


class PageOutcome(NamedTuple):
    """What an ingest did to one page."""

    slug: str
    version: int
    outcome: Literal["created", "updated", "unchanged"]
    truth: str
    """written, same, same words (only case or white space differ: not written), or nothing when none was sent."""
    timeline_entries: int
    tags: int
    links: int
    assertions: int
    keys_removed: tuple[str, ...] = ()
    """Keys of the front matter that the content leaves out and the page no longer has."""
    tags_removed: tuple[str, ...] = ()


class Done(NamedTuple):
    """What an ingest did."""

    pages: tuple[PageOutcome, ...]
    """The pages that were asked for."""
    source: str
    """The page that the source is."""
    changed: tuple[str, ...]
    """All pages that are different now."""
    known: tuple[str, ...]
    """Pages that the same source had changed before; they were left alone."""


class _Draft(NamedTuple):
    page: Page
    truth: str
    timeline_entries: int
    tags: int
    lost: tuple[tuple[str, ...], tuple[str, ...]]


class Ingesting:
    """One source with everything that it changes. The source is a page itself.

    A file's page is the first of the changes. Any other source gets a page in sources/ with its words, beside the
    changes.
    """

    def __init__(
        self, brain: Brain, source: IngestSource, changes: list[PageChange], *, force: bool, is_file: bool
    ) -> None:
        self.brain = brain
        self.source = source
        self.given = [_located(brain, change) for change in changes]
        self.changes: list[PageChange] = []  # those that are to be made
        self.force = force
        self.is_file = is_file
        self.import_id = brain.new_uuid()
        self.now = brain.now()
        self.uuids = [brain.new_uuid() for _ in range(len(changes) + 1)]
        self.own: PageChange | None = None  # the page of a source that is no file, if it is to be written

    def run(self, tx: Any) -> Done | EarlierIngest:
        """Write everything, or say when these bytes were taken in before."""
        self.tx = tx
        earlier = None if self.force else self.known()
        if earlier is not None and self.is_file:
            if earlier.source_ref != self.source.ref and not os.path.exists(earlier.source_ref):
                history.move_source(tx, earlier, self.source)  # the file was moved or renamed
            return earlier
        left = self._known_changes() if earlier else []
        self.changes = [each for each in self.given if each not in left]
        own_page, self.own = ("", None) if self.is_file else self._own_page()
        if earlier is not None and not self.changes and not self.own:
            return earlier
        if self.own:
            self.changes.append(self.own)
        told, saved = self._write()
        page = saved[0] if self.is_file else saved[-1] if self.own else None
        if page is not None:
            own_page = told[saved.index(page)].slug
        touched = [
            each.id for each, outcome in zip(saved, told, strict=True) if outcome.outcome != "unchanged"
        ]
        if earlier is not None and not touched:
            return earlier
        history.keep_source(
            tx,
            self.source,
            import_id=self.import_id,
            now=self.now,
            page_ids=touched or [each.id for each in saved],
            page=None if page is None else (page.id, told[saved.index(page)].version),
        )
        changed = tuple(each.slug for each in told if each.outcome != "unchanged")
        asked = told[:-1] if self.own else told
        return Done(tuple(asked), own_page, changed, tuple(each.address for each in left))

    def _write(self) -> tuple[list[PageOutcome], list[SaveResult]]:
        there = [pages.find(self.brain.db, change.slug, _of(change)) for change in self.changes]
        self._check_versions(there)
        drafts = [self._draft(change, old) for change, old in zip(self.changes, there, strict=True)]
        saved = [self._save(*each) for each in zip(self.changes, there, drafts, self.uuids, strict=False)]
        self.ids = {change.address: each.id for change, each in zip(self.changes, saved, strict=True)}
        told = [self._hang_on(*each) for each in zip(self.changes, drafts, saved, strict=True)]
        return told, saved

    def _known_changes(self) -> list[PageChange]:
        """Changes that the same source made before: to a page that has moved on since its author read it.

        Somebody who names the present version of a page has read it since, and means what they send."""
        touched = history.pages_changed_by(self.brain.db, self.source.content_hash, self.source.ref)
        known: list[PageChange] = []
        for change in self.given:
            old = pages.find(self.brain.db, change.slug, _of(change))
            if old and old.id in touched and old.version != change.expected_version:
                known.append(change)
        return known

    def _own_page(self) -> tuple[str, PageChange | None]:
        """The page that these very words are, and how to write it unless they are already.

        Another text by the same name is a new edition of its page if most of its words are the same and nobody has
        edited the page, else a page beside it: what was taken in stays findable."""
        db = self.brain.db
        known = history.page_of_source(db, self.source.content_hash, self.source.ref)
        if known is not None and not self.force:
            return known, None
        front, truth, lines = source_text(self.source)
        taken = {change.slug for change in self.changes if _of(change) == "default"}
        for address in _addresses(self.source.ref):
            old = None if address in taken else pages.find(db, address, "default")
            if address in taken or (old and old.slug != address):
                continue
            if old is not None and address != known and not self._is_edition(old, truth):
                continue
            if old is not None:
                front = {**old.frontmatter, **front}
            return address, PageChange(
                *("source", address, "default"),
                expected_version=old.version if old else 0,
                content=markdown.render(front, truth, lines),
                title=self.source.ref,
            )
        raise InvalidArgument(name="source_ref", problem="has too many different texts; choose another name")

    def _is_edition(self, old: PageRow, truth: str) -> bool:
        """Whether a page is an earlier text of this source that nobody has edited, with mostly the same words."""
        before = history.newest_source(self.brain.db, old.id)
        if before is None or before[0] != self.source.ref:
            return False
        words, others = set(truth.casefold().split()), set(old.truth.casefold().split())
        alike = len(words & others) >= ALIKE * len(words | others)
        return alike and source_text(self.source._replace(data=before[1]))[1] == old.truth

    def known(self) -> EarlierIngest | None:
        """The earlier ingest of the same bytes: from the same source, or of the same file wherever it lies."""
        ref = None if self.is_file else self.source.ref
        return history.earlier_ingest(self.brain.db, self.source.content_hash, ref)

    def _check_versions(self, there: list[PageRow | None]) -> None:
        """All conflicts at once: who merges them must not meet them one after the other."""
        conflicts: list[VersionConflict] = []
        for change, old in zip(self.changes, there, strict=True):
            current = old.version if old else 0
            facts = {"slug": change.address, "expected": change.expected_version, "current_version": current}
            if old and old.slug != change.slug:
                conflicts.append(PageMoved(target=old.slug, **facts))
            elif current != change.expected_version:
                kind = (
                    NoSuchVersion if not old else VersionConflict if change.expected_version else PageExists
                )
                conflicts.append(kind(**facts))
        if len(conflicts) == 1:
            raise conflicts[0]
        if conflicts:
            told = ", ".join(_version(each.facts) for each in conflicts)
            raise VersionConflicts(
                count=len(conflicts), told=told, conflicts=[dict(each.facts) for each in conflicts]
            )

    def _draft(self, change: PageChange, old: PageRow | None) -> _Draft:
        """The page as it shall be, and what is new in it."""
        front, truth, lines = _text(change, old)
        told = "" if _truth_of(change) is None else "written"
        if old is not None and told:
            told = "written" if change is self.own and truth != old.truth else self._judged(old, truth)
            if told == "same words":
                truth, front = old.truth, _same_front(change, old, front)
            elif told == "written" and self.is_file and not self.force:
                self._refuse_foreign(old, change)
        for entry in change.entries:
            source = entry.source or self.source.ref.replace("—", "-")
            lines = timeline.add_entry_once(lines, entry.date, entry.summary, source, entry.detail)
        before = old.tags if old else ()
        labels = tags.of_frontmatter(front)
        missing = [each for each in dict.fromkeys(change.tags) if each not in labels]
        if missing:
            front = editing.with_tags(front, [*labels, *missing])
        if not truth and not lines:
            problem = "has no text; a new page needs content, compiled_truth or timeline_entries"
            raise InvalidArgument(name=change.where, problem=problem)
        made = editing.checked(change.slug, front, _closed(truth, lines), lines, old, change.title)
        fresh = timeline.entry_keys(lines) - timeline.entry_keys(old.timeline if old else "")
        lost = ((), ()) if change.content is None else editing.removed_front(old, made)
        return _Draft(made, told, len(fresh), len(set(made.tags) - set(before)), lost)

    def _refuse_foreign(self, old: PageRow, change: PageChange) -> None:
        """A file may replace the text that it made itself, and nothing that somebody wrote or edited here."""
        if history.source_of_page(self.brain.db, old.id) != (self.source.ref, old.version):
            raise AlreadyExists(
                path=change.address,
                hint="It was not made from this file, or was edited since: --force replaces its text and keeps its"
                " timeline, --slug NAME makes another page.",
            )

    def _judged(self, old: PageRow, truth: str) -> str:
        if truth == old.truth:
            return "same"
        return "same words" if _words(truth) == _words(old.truth) and not self.force else "written"

    def _save(self, change: PageChange, old: PageRow | None, draft: _Draft, uuid: str) -> SaveResult:
        return page_writer.save_page(
            self.brain.db,
            self.tx,
            collections.require(self.brain.db, _of(change)),
            old,
            draft.page,
            uuid=uuid,
            now=self.now,
            expected_version=change.expected_version,
        )

    def _hang_on(self, change: PageChange, draft: _Draft, saved: SaveResult) -> PageOutcome:
        """Links and facts, once all pages are there; the version rises once for everything."""
        linked = sum(self._link(saved, given) for given in change.links)
        stated = self._assert(change, saved.id, draft.page.title)
        version = saved.version
        if (linked or stated) and not saved.changed:
            _, version = page_edits.touch(
                self.tx, change.slug, expected_version=None, now=self.now, collection=_of(change)
            )
        changed = saved.changed or linked or stated
        return PageOutcome(
            slug=change.address,
            version=version,
            outcome="created" if saved.created else "updated" if changed else "unchanged",
            truth=draft.truth,
            timeline_entries=draft.timeline_entries,
            tags=draft.tags,
            links=linked,
            assertions=stated,
            keys_removed=draft.lost[0],
            tags_removed=draft.lost[1],
        )

    def _assert(self, change: PageChange, page_id: int, title: str) -> int:
        """How many facts are new, or end now."""
        if not change.assertions:
            return 0
        from quaid.model import facts
        from quaid.storage import facts as assertions

        changed = 0
        for place, values in enumerate(change.assertions, 1):
            values = {**values, "source_ref": values.get("source_ref") or self.source.ref}
            given = facts.check_fact(values, f"{change.where}.assertions[{place}]", title)
            changed += assertions.add_fact(self.tx, page_id, given, self.now).changed
        return changed

    def _link(self, saved: SaveResult, given: LinkInput) -> bool:
        """Add a link, or give an open one its end. False: it was there."""
        to_id = self._target(given)
        if to_id == saved.id:
            raise InvalidArgument(name=f"{given.where}.to", problem="is the page itself")
        if saved.created:
            try:
                return self._add_link(saved.id, to_id, given)
            except LinkOverlaps:
                pass  # the page's own text, or this ingest, has said it: see below
        for there in links.between(self.brain.db, saved.id, to_id, given.relationship):
            undated = given.valid_from is None and given.valid_until is None and there.valid_until is None
            if there.valid_from == given.valid_from or undated:
                if given.valid_until in (None, there.valid_until):
                    return False  # said before; who closed it since knew more
                if there.valid_until is None and there.source_kind != links.FROM_TEXT:
                    links.close(self.tx, there, given.valid_until)
                    return True
        return self._add_link(saved.id, to_id, given)

    def _add_link(self, page_id: int, to_id: int, given: LinkInput) -> bool:
        links.add(
            self.tx,
            page_id,
            to_id,
            relationship=given.relationship,
            context=given.context,
            valid_from=given.valid_from,
            valid_until=given.valid_until,
            now=self.now,
        )
        return True

    def _target(self, given: LinkInput) -> int:
        collection, name = slugs.split_address(given.to)
        address = name if collection in (None, "default") else given.to
        return self.ids.get(address) or editing.require(self.brain, given.to).id


def source_text(source: IngestSource) -> tuple[dict[str, Any], str, str]:
    """Front matter, truth and timeline of the page that a source becomes: its words, and what it is.

    Its own front matter does not decide how the page is called, typed or linked: it may come from anywhere."""
    content = markdown.decode(source.data).text
    document = markdown.parse(content)
    front = {key: value for key, value in document.frontmatter.items() if key not in NOT_TAKEN_OVER}
    front = {"type": "source", **front, "source_type": source.kind, "source_ref": source.ref}
    if document.truth or document.timeline:
        return front, document.truth, document.timeline
    return front, f"```\n{content.strip()}\n```", ""  # nothing but front matter


def _addresses(ref: str) -> Iterator[str]:
    """The slugs that a source may have, the best first."""
    steps = [each for each in _SCHEME.sub("", ref).removeprefix("sources/").split("/") if each]
    base = slugs.from_path("/".join(["sources", *steps]) if steps else f"sources/{ref}")
    yield base
    for number in range(2, MOST_TEXTS + 1):
        yield slugs.from_path(f"{base}-{number}")


def _truth_of(change: PageChange) -> str | None:
    """The truth that a change brings, if it brings one."""
    if change.content is not None:
        return markdown.parse(change.content).truth
    return None if change.compiled_truth is None else markdown.normalize_part(change.compiled_truth)


def _text(change: PageChange, old: PageRow | None) -> tuple[dict[str, Any], str, str]:
    """Front matter, truth and timeline that a change asks for; no entry of the old timeline is lost."""
    front, truth, lines = (old.frontmatter, old.truth, old.timeline) if old else ({}, "", "")
    if change.content is not None:
        document = markdown.parse(change.content)
        markdown.check_front_matter(document, front)
        return document.frontmatter, document.truth, timeline.merge_timelines(lines, document.timeline)
    if change.frontmatter is not None:
        front = editing.with_keys(front, change.frontmatter)
    if change.compiled_truth is not None:
        truth = markdown.normalize_part(change.compiled_truth)
        if markdown.has_divider(truth):
            problem = "holds a '---' line, which begins the timeline"
            raise InvalidArgument(name=f"{change.where}.compiled_truth", problem=problem)
    if change.timeline_append is not None:
        lines = markdown.normalize_part(
            timeline.append_text(lines, markdown.normalize_part(change.timeline_append))
        )
    return front, truth, lines


def _same_front(change: PageChange, old: PageRow, front: dict[str, Any]) -> dict[str, Any]:
    """Front matter beside a truth that stays: of a whole page only the tags are taken."""
    if change.content is None:
        return front
    named = tags.of_frontmatter(old.frontmatter)
    more = [each for each in tags.of_frontmatter(front) if each not in old.tags]
    return editing.with_tags(old.frontmatter, [*named, *more]) if more else old.frontmatter


def _closed(truth: str, lines: str) -> str:
    return markdown.close_fence(truth) if lines else truth


def _version(facts: dict[str, Any]) -> str:
    if "target" in facts:
        return f"{facts['slug']} is {facts['target']} now, at version {facts['current_version']}"
    if not facts["current_version"]:
        return f"{facts['slug']} does not exist"
    return f"{facts['slug']} is at version {facts['current_version']}"


def _located(brain: Brain, change: PageChange) -> PageChange:
    """The change with the collection that has its page, or takes it."""
    return change._replace(collection=editing.locate(brain, change.address)[0].name)


def _of(change: PageChange) -> str:
    return change.collection or "default"


def _words(text: str) -> list[str]:
    return text.casefold().split()
