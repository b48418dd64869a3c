"""Facts with their validity interval and source, and contradictions between them."""

import time
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, VersionConflict
from quaid.model import dates, facts as assertions, slug as slugs
from quaid.model.contradictions import (
    ContradictionFinding,
    ResolutionChange,
    remaining_text_links,
    resolution_changes,
)
from quaid.model.facts import FactInput, Snapshot
from quaid.operations import pages, receipts
from quaid.operations.history import past_texts
from quaid.operations.pages import ExpiryDay, ForPeriod, IfVersion, Slug, requested_moment
from quaid.operations.receipts import ContradictingQuotes, OldLine, OpenFact, ReplacedStatement
from quaid.operations.registry import Arg, op
from quaid.storage import contradictions, expiry, facts as store, links, page_edits, pages as pagess
from quaid.storage.contradictions import Contradiction, EvidenceQuote
from quaid.storage.facts import FactLine, SubjectEntry
from quaid.storage.pages import page_heads
from quaid.storage.sqlite.connection import Transaction

KeptSide = Literal["left", "right", "both"]


class RetiredStatement(NamedTuple):
    """A fact or link that was ended or shortened by a resolution."""

    kind: str
    """"fact" or "link"."""
    id: int
    slug: str
    """The page that the statement belongs to."""
    says: str
    since: str | None
    until: str | None
    """End date; None if the statement is still valid because only part of its validity interval was wrong."""
    never_held: bool


def resolve_contradiction(
    brain: Brain, id: int, side: KeptSide, note: str
) -> tuple[tuple[RetiredStatement, ...], tuple[EvidenceQuote, ...]]:
    """Resolve a contradiction by keeping one side or both, in one transaction.

    Return the facts and links that were ended or shortened, and quotes of page text that still contains the
    rejected statement.
    """
    now = brain.now()
    changes: list[ResolutionChange] = []
    written: list[EvidenceQuote] = []
    with brain.db.reading():
        stored = contradictions.require(brain.db, id)
        if side != "both":
            world, finding = _current_finding(brain, stored, side)
            winner = 0 if side == "left" else 1
            changes = resolution_changes(world, finding, winner)
            cites = [finding.cites[1 - winner], *remaining_text_links(world, finding, winner)]
            quotes = contradictions.quote_evidence(brain.db, cites, today=True)
            written = list(dict.fromkeys(quote for quote in quotes if quote.is_written))
        ids = [change.id for change in changes if change.kind == "fact"]
        facts = {row.id: row for row in store.read_facts(brain.db, ids=ids)}
        old_links = {
            change.id: links.require_added(brain.db, change.id) for change in changes if change.kind == "link"
        }
        heads = page_heads(brain.db, sorted({change.page_id for change in changes}))
    notes = [note.strip(), *(f"{change.says}: {_validity_text(change)}." for change in changes)]
    changed_since = InvalidArgument(
        name="resolve", problem=f"the statements of {id} were changed meanwhile; run `quaid check` again"
    )

    def work(tx: Transaction) -> None:
        for change in changes:
            if change.kind == "link":
                if links.require_added(brain.db, change.id) != old_links[change.id]:
                    raise changed_since
                links.close(tx, old_links[change.id], change.until)
            elif not store.shorten_fact(tx, facts[change.id], change.since, change.until, change.successor):
                raise changed_since
        for head in heads.values():
            page_edits.touch(tx, head.slug, expected_version=None, now=now, collection=head.collection)
        contradictions.resolve(tx, id, " ".join(filter(None, notes)), now)

    brain.db.write(work)
    addresses = {key: slugs.address(head.collection, head.slug) for key, head in heads.items()}
    retired = tuple(
        RetiredStatement(
            *(change.kind, change.id, addresses[change.page_id], change.says),
            *(change.since, change.until, change.never_held),
        )
        for change in changes
    )
    return retired, tuple(written)


def _current_finding(
    brain: Brain, stored: Contradiction, side: KeptSide
) -> tuple[Snapshot, ContradictionFinding]:
    """Return the current facts, and a stored contradiction as it is found in them now.

    Raise InvalidArgument if it is no longer a contradiction, or if its type has no sides to choose from.
    """
    if stored.type == "stale":
        raise InvalidArgument(
            name="keep",
            problem=f"{stored.id} is a truth older than its evidence, which has no {side} side; rewrite the"
            f" truth of {stored.slug}, or use --keep both if it still holds",
        )
    current = contradictions.find_again(brain.db, stored, brain.now()[:10])
    if current is None:
        raise InvalidArgument(
            name="resolve", problem=f"{stored.id} is no longer a contradiction; run `quaid check` again"
        )
    return current


def _validity_text(change: ResolutionChange) -> str:
    if change.never_held:
        return "never held"
    if change.until is None:
        return f"since {change.since}" if change.kind == "fact" else "goes on"
    return f"until {change.until}"


class FactsRecord(NamedTuple):
    subject: str
    slug: str | None
    """The subject's page, if there is one."""
    as_of: str
    history: bool
    facts: tuple[FactLine, ...]
    total: int
    entries: tuple[SubjectEntry, ...]
    total_entries: int


class AssertRecord(NamedTuple):
    slug: str
    version: int
    id: int
    added: bool
    changed: bool
    superseded: tuple[int, ...]
    ended: bool
    ended_before: str | None
    """The previous end date, if it was corrected."""
    witnessed: bool
    """True if the source, evidence or confidence of an existing fact changed."""
    fact: FactInput
    collection: str = "default"
    replaced: tuple[ReplacedStatement, ...] = ()
    """Facts that this write ended."""
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    """Other facts about the subject that still hold."""
    still_says: tuple[OldLine, ...] = ()
    """Lines of pages that still have the value of a replaced fact."""
    hint: str = ""
    restarted: str | None = None
    """The day on which a fact that had ended begins again."""
    ended_on: str | None = None
    """The day on which the fact ended, if it stays ended because a current fact has superseded it."""


class CheckRecord(NamedTuple):
    slug: str | None
    contradictions: tuple[Contradiction, ...]
    total: int
    resolved: Contradiction | None = None
    settled_before: str | None = None
    """The time of the earlier resolution, if the contradiction was already resolved."""
    kept: str | None = None
    """The kept side: left, right or both."""
    changed: tuple[RetiredStatement, ...] = ()
    """Facts and links that were ended or shortened."""
    written: tuple[EvidenceQuote, ...] = ()
    """Quotes of page text that still contains the rejected statement."""
    type: str | None = None
    """The type that the check was limited to."""
    open_of_other_types: int = 0
    """Number of open contradictions of other types, as of their last check."""

    @property
    def exit_status(self) -> int:
        return 1 if self.total and self.resolved is None else 0


@op(
    "read",
    core=True,
    examples=(
        "quaid facts people/alice",
        "quaid facts 'Alice Example' --as-of 2024-03-01",
        "quaid facts people/alice --history",
    ),
)
def facts(
    brain: Brain,
    subject: Annotated[
        str,
        Arg(
            "A page, or a name of its subject.",
            positional=True,
            any_text=True,
            question=True,
        ),
    ],
    as_of: Annotated[str | None, Arg("As of this day instead of today, as in 2024-03-01.")] = None,
    history: Annotated[bool, Arg("Include facts that have ended, in order of time.")] = False,
    limit: Annotated[int, Arg("How many facts, and how many dated entries.", minimum=1, maximum=1_000)] = 50,
) -> FactsRecord:
    """List facts, links and dated entries about a subject, with dates and sources."""
    if not subject.strip():
        raise InvalidArgument(name="subject", problem="is empty; name a page or a person")
    day = dates.check_date(as_of, "as_of") if as_of else brain.now()[:10]
    with brain.db.reading():
        # Future entries are included, unless as_of limits the entries to a day.
        last = day if as_of else "9999-12-31"
        entity, lines, entries, total = store.facts_of_subject(
            brain.db, subject, None if history else day, last, limit, past_texts(brain)
        )
    return FactsRecord(
        *(entity.name, entity.slug, day, history, tuple(lines[:limit]), len(lines)),
        *(tuple(entries), total),
    )


@op(
    "write",
    command="assert",
    adds_only=True,
    examples=(
        "quaid assert people/alice works_at 'River AI' --valid-from 2024-01-15 --source meeting/123",
        "quaid assert people/alice lives_in Oslo --supersedes-id 12",
        "quaid assert people/alice works_at 'River AI' --valid-until 2026-03-01",
        "quaid assert people/alice stays_at 'Hotel Bristol' --for 7d",
    ),
)
def assert_(
    brain: Brain,
    slug: Slug,
    predicate: Annotated[str, Arg("The predicate, as in works_at.", positional=True)],
    object: Annotated[str, Arg("The object: a page, a name or a value.", positional=True)],
    subject: Annotated[str | None, Arg("The subject, if not the page itself.")] = None,
    valid_from: Annotated[str | None, Arg("The first day on which it holds, if known.")] = None,
    valid_until: Annotated[
        str | None, Arg("The first day on which it no longer holds; alone, it ends the current fact.")
    ] = None,
    supersedes_id: Annotated[int | None, Arg("The id of the fact that this one replaces.", minimum=1)] = None,
    source: Annotated[str, Arg("The source, as in meeting/123.")] = "",
    evidence_text: Annotated[str, Arg("The words of the source.")] = "",
    confidence: Annotated[float, Arg("Confidence, from 0 to 1.")] = 1.0,
    asserted_by: Annotated[
        Literal["agent", "manual", "import", "enrichment"] | None,
        Arg("Who states it [manual, or agent if an agent calls]."),
    ] = None,
    expires: ExpiryDay = None,
    for_: ForPeriod = None,
    expected_version: IfVersion = None,
) -> AssertRecord:
    """Add a fact to a page, with dates and source. Repeating it from the same source changes nothing."""
    stored = pages.require_page(brain, slug)
    values = {
        "subject": subject,
        "predicate": predicate,
        "object": object,
        "valid_from": valid_from,
        "valid_until": valid_until,
        "confidence": confidence,
        "asserted_by": asserted_by or brain.stated_by,
        "source_ref": source,
        "evidence_text": evidence_text,
        "supersedes_id": supersedes_id,
    }
    fact = assertions.check_fact(values, "", stored.title)
    now, moment = brain.now(), requested_moment(brain, expires, for_)

    def work(tx: Transaction) -> tuple[store.FactChange, int]:
        added = store.add_fact(tx, stored.id, fact, now)
        if moment:
            expiry.set_fact_expiry(tx, added.id, moment, by=brain.agent)
        if added.changed:
            _, version = page_edits.touch(
                tx, stored.slug, expected_version=expected_version, now=now, collection=stored.collection
            )
            return added, version
        version = pagess.require(brain.db, stored.slug, stored.collection).version
        if expected_version not in (None, version):
            raise VersionConflict(slug=stored.slug, expected=expected_version, current_version=version)
        return added, version

    added, version = brain.db.write(work)
    receipt = receipts.receipt(brain, [stored.id], [added]) if added.changed else receipts.Receipt()
    return AssertRecord(
        *(stored.slug, version, added.id, added.added, added.changed, added.superseded),
        *(added.ended, added.ended_before, added.witnessed, fact, stored.collection),
        *(receipt.replaced, receipt.contradicts, receipt.open_facts, receipt.still_says, receipt.hint),
        *(added.restarted, added.ended_on),
    )


@op(
    "write",
    examples=(
        "quaid check",
        "quaid check people/alice",
        "quaid check --type cross_page --json",
        "quaid check --resolve 3 --keep left",
        "quaid check --resolve 3 --keep both --note 'She has two jobs.'",
    ),
    cli_note="Exits 1 while any is open.",
)
def check(
    brain: Brain,
    slug: Annotated[str | None, Arg("Only this page and the pages about it.", positional=True)] = None,
    all: Annotated[bool, Arg("The whole memory; this is the default.")] = False,
    type: Annotated[
        Literal["temporal", "cross_page", "stale"] | None,
        Arg("Only contradictions in time, between pages, or truths older than their evidence."),
    ] = None,
    resolve: Annotated[int | None, Arg("Resolve the contradiction with this id.", minimum=1)] = None,
    keep: Annotated[
        KeptSide | None,
        Arg(
            "With `resolve`, the quote that is true: left (the first), right, or both. The other one is ended."
        ),
    ] = None,
    note: Annotated[str, Arg("With `resolve`, how it was resolved.")] = "",
    limit: Annotated[int, Arg("How many to show.", minimum=1, maximum=10_000)] = 50,
) -> CheckRecord:
    """List contradictions with both quotes, or resolve one.

    Each contradiction is stored once, stays resolved, and is removed when its cause is gone."""
    if resolve is not None:
        return _resolve_finding(brain, resolve, keep, note)
    if note or keep:
        name = "note" if note else "keep"
        raise InvalidArgument(name=name, problem="needs `resolve` with the id of a contradiction")
    if slug is not None and all:
        raise InvalidArgument(name="all", problem="cannot be combined with a page")
    stored = pages.require_page(brain, slug) if slug is not None else None
    page_id = stored.id if stored else None
    now = brain.now()
    # Find contradictions in a read transaction and store them in a separate, short write transaction.
    with brain.db.reading():
        findings, evidence, page_ids = contradictions.check(brain.db, page_id, type, now[:10])
    brain.db.write(lambda tx: contradictions.record(tx, findings, evidence, page_ids, type, now))
    with brain.db.reading():
        rows, total, of_all_types = contradictions.listing(brain.db, page_id, type, limit)
    slug = stored.slug if stored else None
    return CheckRecord(slug, tuple(rows), total, type=type, open_of_other_types=of_all_types - total)


def _resolve_finding(brain: Brain, contradiction_id: int, keep: KeptSide | None, note: str) -> CheckRecord:
    """Resolve a finding. Without a side, both statements are kept."""
    before = contradictions.require(brain.db, contradiction_id).resolved_at
    changed, written = resolve_contradiction(brain, contradiction_id, keep or "both", note)
    resolved = contradictions.require(brain.db, contradiction_id)
    _, total, _ = contradictions.listing(brain.db, None, None, 0)
    return CheckRecord(None, (), total, resolved, before, keep or "both", changed, written)


class ContradictionsRecord(NamedTuple):
    contradictions: tuple[Contradiction, ...]
    total: int
    checked_at: str | None
    """When the whole memory was last checked."""
    changed_pages: int = 0
    """Number of pages that changed since then."""


@op("read", command="contradictions", examples=("quaid contradictions", "quaid contradictions --limit 5"))
def contradictions_(
    brain: Brain, limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50
) -> ContradictionsRecord:
    """List the open contradictions with both quotes, as `quaid check` last found them."""
    with brain.db.reading():
        listed, total, _ = contradictions.listing(brain.db, None, None, limit)
        last, changed = contradictions.last_check(brain.db), contradictions.changed_pages(brain.db)
    return ContradictionsRecord(tuple(listed), total, last, changed)


QUIET_SECONDS = 3.0
"""A change is checked when nothing else has changed for this long."""

LONGEST_DELAY = 60.0
"""A steady stream of changes delays a check no longer than this."""

MAX_CPU_SHARE = 0.02


class ContradictionMonitor:
    """Checks the whole memory for contradictions after changes, and once a day, in a server.

    It finds the same as `quaid check`: facts and links are compared again, and only changed texts are read.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._texts = contradictions.DepartureTexts()
        self._state: tuple[object, ...] = ()
        self._stamp: tuple[int, int] | None = None
        self._not_before = clock() + QUIET_SECONDS
        self._changed_at = self._first_change = 0.0

    def look(self, brain: Brain) -> bool:
        """Check the memory if a check is due. Return True if it was checked."""
        now = self._clock()
        stamp = brain.db.change_stamp()
        if stamp != self._stamp:
            self._stamp, self._changed_at = stamp, now
            self._first_change = self._first_change or now
        is_quiet = now - self._changed_at >= QUIET_SECONDS or now - self._first_change >= LONGEST_DELAY
        today = brain.now()[:10]
        is_new_day = self._state[:1] not in ((), (today,))
        if now < self._not_before or not brain.db.writable or not (is_new_day or self._first_change):
            return False
        if not is_quiet and not is_new_day:
            return False
        self._first_change = 0.0
        state = (today, *contradictions.state_of_pages(brain.db))
        if state == self._state or (not self._state and self._is_fresh(brain)):
            self._state = state
            return False
        self._check(brain, today)
        return True

    def _is_fresh(self, brain: Brain) -> bool:
        """Return True if another process has checked the memory today and nothing has changed since."""
        last = contradictions.last_check(brain.db)
        return (
            last is not None and last[:10] == brain.now()[:10] and not contradictions.changed_pages(brain.db)
        )

    def _check(self, brain: Brain, today: str) -> None:
        began, now = time.thread_time(), brain.now()
        with brain.db.reading():
            state = (today, *contradictions.state_of_pages(brain.db))
            findings, evidence, page_ids = contradictions.check(brain.db, None, None, today, self._texts)
        brain.db.write(lambda tx: contradictions.record(tx, findings, evidence, page_ids, None, now))
        self._state = state
        self._not_before = self._clock() + (time.thread_time() - began) / MAX_CPU_SHARE
