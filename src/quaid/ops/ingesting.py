"""What becomes of each page of an ingest: inside its one transaction, all or nothing.

Not operations. Evidence (timeline entries, links, facts, tags) is always written and never twice; the truth of a
page that is there is left alone when the new one says the same, unless it is forced. A timeline only grows.
"""

from quaid.annotations import Any, Literal
from quaid.brain import Brain
from quaid.core import evidence, slug, tags
from quaid.core.changes import Change, LinkGiven
from quaid.core.page import Page
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
from quaid.formats import markdown
from quaid.ops import editing
from quaid.records import NamedTuple
from quaid.store import collections, ingest_log, links, pages
from quaid.store.ingest_log import Earlier, Source
from quaid.store.pages import Saved, Stored
from quaid.vaults import keeping


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


class _Draft(NamedTuple):
    page: Page
    truth: str
    timeline_entries: int
    tags: int


class Ingesting:
    """One source with everything that it changes."""

    def __init__(
        self, brain: Brain, source: Source, changes: list[Change], *, force: bool, becomes_page: bool
    ) -> None:
        self.brain = brain
        self.source = source
        self.changes = [_located(brain, change) for change in changes]
        self.force = force
        self.becomes_page = becomes_page  # the first of the pages is the source itself
        self.import_id = brain.new_uuid()
        self.now = brain.now()
        self.uuids = [brain.new_uuid() for _ in changes]

    def run(self, tx: Any) -> tuple[PageOutcome, ...] | Earlier:
        """Write everything, or say when these bytes were taken in before."""
        known = None if self.force else self.known()
        if known is not None:
            return known
        there = [pages.find(self.brain.db, change.slug, _of(change)) for change in self.changes]
        self._check_versions(there)
        self.tx = tx
        drafts = [self._draft(change, old) for change, old in zip(self.changes, there, strict=True)]
        saved = [self._save(*each) for each in zip(self.changes, there, drafts, self.uuids, strict=True)]
        self.ids = {change.address: each.id for change, each in zip(self.changes, saved, strict=True)}
        told = [self._hang_on(*each) for each in zip(self.changes, drafts, saved, strict=True)]
        touched = [
            each.id for each, outcome in zip(saved, told, strict=True) if outcome.outcome != "unchanged"
        ]
        ingest_log.keep(
            tx,
            self.source,
            import_id=self.import_id,
            now=self.now,
            page_ids=touched or [each.id for each in saved],
            page=(saved[0].id, told[0].version) if self.becomes_page else None,
        )
        return tuple(told)

    def known(self) -> Earlier | None:
        """The earlier ingest of the same bytes: from the same source, or of the same file wherever it lies."""
        ref = None if self.becomes_page else self.source.ref
        return ingest_log.earlier(self.brain.db, self.source.content_hash, ref)

    def _check_versions(self, there: list[Stored | None]) -> None:
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

    def _draft(self, change: Change, old: Stored | None) -> _Draft:
        """The page as it shall be, and what is new in it."""
        front, truth, lines = _text(change, old)
        told = "" if _truth_of(change) is None else "written"
        if old is not None and told:
            told = self._judged(old, truth)
            if told == "same words":
                truth, front = old.truth, _same_front(change, old, front)
            elif told == "written" and self.becomes_page and not self.force:
                self._refuse_foreign(old, change)
        for entry in change.entries:
            source = entry.source or self.source.ref.replace("—", "-")
            lines = evidence.with_entry(lines, entry.date, entry.summary, source, entry.detail)
        before = old.tags if old else ()
        labels = tags.of_frontmatter(front)
        missing = [each for each in dict.fromkeys(change.tags) if each not in labels]
        if missing:
            front = editing.with_tags(front, [*labels, *missing])
        if not truth and not lines:
            problem = "has no text; a new page needs content, compiled_truth or timeline_entries"
            raise InvalidArgument(name=change.where, problem=problem)
        made = editing.checked(change.slug, front, _closed(truth, lines), lines, old, change.title)
        fresh = evidence.keys(lines) - evidence.keys(old.timeline if old else "")
        return _Draft(made, told, len(fresh), len(set(made.tags) - set(before)))

    def _refuse_foreign(self, old: Stored, change: Change) -> None:
        """A file may replace the text that it made itself, and nothing that somebody wrote or edited here."""
        if ingest_log.made_by(self.brain.db, old.id) != (self.source.ref, old.version):
            raise AlreadyExists(
                path=change.address,
                hint="It was not made from this file, or was edited since: --force replaces its text and keeps its"
                " timeline, --slug NAME makes another page.",
            )

    def _judged(self, old: Stored, truth: str) -> str:
        if truth == old.truth:
            return "same"
        return "same words" if _words(truth) == _words(old.truth) and not self.force else "written"

    def _save(self, change: Change, old: Stored | None, draft: _Draft, uuid: str) -> Saved:
        return keeping.save(
            self.brain.db,
            self.tx,
            collections.require(self.brain.db, _of(change)),
            old,
            draft.page,
            uuid=uuid,
            now=self.now,
            expected_version=change.expected_version,
        )

    def _hang_on(self, change: Change, draft: _Draft, saved: Saved) -> PageOutcome:
        """Links and facts, once all pages are there; the version rises once for everything."""
        linked = sum(self._link(saved, given) for given in change.links)
        stated = self._assert(change, saved.id, draft.page.title)
        version = saved.version
        if (linked or stated) and not saved.changed:
            _, version = pages.touch(
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
        )

    def _assert(self, change: Change, page_id: int, title: str) -> int:
        """How many facts are new, or end now."""
        if not change.assertions:
            return 0
        from quaid.store import assertions

        changed = 0
        for place, values in enumerate(change.assertions, 1):
            values = {**values, "source_ref": values.get("source_ref") or self.source.ref}
            given = assertions.check(values, f"{change.where}.assertions[{place}]", title)
            changed += assertions.add(self.tx, page_id, given, self.now).changed
        return changed

    def _link(self, saved: Saved, given: LinkGiven) -> bool:
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

    def _add_link(self, page_id: int, to_id: int, given: LinkGiven) -> bool:
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

    def _target(self, given: LinkGiven) -> int:
        collection, name = slug.split_address(given.to)
        address = name if collection in (None, "default") else given.to
        return self.ids.get(address) or editing.require(self.brain, given.to).id


def _truth_of(change: Change) -> str | None:
    """The truth that a change brings, if it brings one."""
    if change.content is not None:
        return markdown.parse(change.content).truth
    return None if change.compiled_truth is None else markdown.tidy(change.compiled_truth)


def _text(change: Change, old: Stored | None) -> tuple[dict[str, Any], str, str]:
    """Front matter, truth and timeline that a change asks for; no entry of the old timeline is lost."""
    front, truth, lines = (old.frontmatter, old.truth, old.timeline) if old else ({}, "", "")
    if change.content is not None:
        document = markdown.parse(change.content)
        markdown.check(document, front)
        return document.frontmatter, document.truth, evidence.joined(lines, document.timeline)
    if change.frontmatter is not None:
        front = editing.with_keys(front, change.frontmatter)
    if change.compiled_truth is not None:
        truth = markdown.tidy(change.compiled_truth)
        if markdown.has_divider(truth):
            problem = "holds a '---' line, which begins the timeline"
            raise InvalidArgument(name=f"{change.where}.compiled_truth", problem=problem)
    if change.timeline_append is not None:
        lines = markdown.tidy(evidence.extended(lines, markdown.tidy(change.timeline_append)))
    return front, truth, lines


def _same_front(change: Change, old: Stored, front: dict[str, Any]) -> dict[str, Any]:
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


def _located(brain: Brain, change: Change) -> Change:
    """The change with the collection that has its page, or takes it."""
    return change._replace(collection=editing.locate(brain, change.address)[0].name)


def _of(change: Change) -> str:
    return change.collection or "default"


def _words(text: str) -> list[str]:
    return text.casefold().split()
