"""Facts with their validity interval and source, contradictions between them, and receipts.

A receipt says which facts a write replaced or contradicts, which other facts still hold, and which pages are
similar to the written ones.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, QuaidError, VersionConflict
from quaid.model import corrections, dates, facts as fact_model, slug as slugs
from quaid.model.contradictions import (
    ContradictionFinding,
    ResolutionChange,
    remaining_text_links,
    resolution_changes,
)
from quaid.model.facts import FactInput, Snapshot
from quaid.model.slug import fold_name
from quaid.operations import pages
from quaid.operations.pages import ExpiryDay, ForPeriod, IfVersion, Slug, requested_moment
from quaid.operations.registry import Arg, op
from quaid.storage import expiry, facts as store, links, page_edits, pages as page_store
from quaid.storage.contradictions import Contradiction, Contradictions, DepartureTexts, EvidenceQuote
from quaid.storage.facts import FactChange, FactLine, FactRow, SubjectEntry
from quaid.storage.pages import Duplicates, page_heads
from quaid.storage.sqlite.connection import Transaction

MAX_OPEN_FACTS = 5
MAX_CONTRADICTIONS = 3
MAX_SIMILAR = 3
MAX_OLD_LINES = 3
MAX_LINE_LENGTH = 200
MAX_PAGES_CHECKED = 10
"""At most this many pages of one write are checked for contradictions."""

SOURCES = "sources/"
SIMILAR_HINT = "similar: if such a page is about the same thing, tell the user."
OLD_LINES_HINT = "still_says: `quaid correct` with was and now changes such a line."


class ReplacedStatement(NamedTuple):
    """A fact that a write ended, or a line that a correction changed."""

    id: int | str
    """The id of a fact; for corrections, an id such as fact:12 or line:5d41ab:people/alice."""
    says: str
    until: str | None
    """The day on which a fact ended; None for a line or an erased fact."""


class OpenFact(NamedTuple):
    """A current fact about the page that was just written, so that the caller can check it."""

    id: int
    says: str
    since: str | None


class ContradictingQuotes(NamedTuple):
    """An open contradiction of the written page, with both statements."""

    id: int
    description: str
    quotes: tuple[str, ...]


class OldLine(NamedTuple):
    """A line of a page that still has the value of a fact that a write ended."""

    slug: str
    says: str


class Receipt(NamedTuple):
    replaced: tuple[ReplacedStatement, ...] = ()
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    similar: tuple[str, ...] = ()
    """Addresses of pages that may be about the same thing."""
    still_says: tuple[OldLine, ...] = ()
    """Lines that still have the value of a replaced fact. A new fact does not change the text of pages."""
    hint: str = ""
    """What the caller should do next, or ""."""


def add_facts(
    tx: Transaction, page_id: int, title: str, assertions: Iterable[dict[str, Any]], where: str, now: str
) -> list[FactChange]:
    """Check facts and add them to a page. `where` is the name of the argument that has them, for errors."""
    added: list[FactChange] = []
    for place, values in enumerate(assertions, 1):
        fact = fact_model.check_fact(values, f"{where}[{place}]", title)
        added.append(store.add_fact(tx, page_id, fact, now, [change.id for change in added]))
    return added


def receipt(
    brain: Brain, page_ids: Sequence[int], changes: Sequence[FactChange] = (), *, similar: Sequence[int] = ()
) -> Receipt:
    """Return the receipt of a write: the facts that it replaced or contradicts, and other facts that still hold.

    `similar` has the ids of the pages for which similar pages are searched. New contradictions are stored, so that
    they have ids. After an error the receipt is empty, but the write is not undone.
    """
    try:
        with brain.db.reading():
            replaced, open_facts = _facts_of(brain, page_ids, changes)
            old_lines = _old_lines(brain, page_ids, changes)
            addresses = _similar_to(brain, similar)
        conflicts = [row for page in page_ids[:MAX_PAGES_CHECKED] for row in _contradictions_of(brain, page)]
        return Receipt(
            replaced,
            tuple(dict.fromkeys(conflicts))[:MAX_CONTRADICTIONS],
            open_facts,
            addresses,
            old_lines,
            " ".join(hint for hint, rows in ((OLD_LINES_HINT, old_lines), (SIMILAR_HINT, addresses)) if rows),
        )
    except QuaidError:
        return Receipt()


def _similar_to(brain: Brain, new: Sequence[int]) -> tuple[str, ...]:
    """Return addresses of pages that may be about the same thing as a page of `new`, without those in `new`."""
    own = {slugs.address(head.collection, head.slug) for head in page_heads(brain.db, [*new]).values()}
    most = MAX_SIMILAR + len(own)
    addresses = (address for page in new for address in Duplicates(brain.db).of_page(page, most))
    return tuple(dict.fromkeys(address for address in addresses if address not in own))[:MAX_SIMILAR]


def _facts_of(
    brain: Brain, page_ids: Sequence[int], changes: Sequence[FactChange]
) -> tuple[tuple[ReplacedStatement, ...], tuple[OpenFact, ...]]:
    """Return the facts that were ended, and facts of the same pages and subjects that still hold."""
    today = brain.now()[:10]
    ended = {old for change in changes for old in change.superseded}
    ended |= {change.id for change in changes if change.ended}
    written = {change.id for change in changes}
    rows = {row.id: row for row in store.read_facts(brain.db, "id", ended | written)}
    names = page_store.page_names(brain.db, page_ids)
    titles = {fold_name(name) for name in names}
    replaced = tuple(
        ReplacedStatement(row.id, _statement(row, titles), row.valid_until)
        for row in rows.values()
        if row.id in ended
    )
    predicates = {fact_model.canonical_predicate(rows[id].predicate) for id in written if id in rows}
    subjects = {row.subject_key for row in rows.values()} | titles
    about = [
        row for page in page_ids[:MAX_PAGES_CHECKED] for row in store.read_facts(brain.db, "page", [page])
    ]
    about += store.read_facts(brain.db, "subject", subjects)
    open_rows = {
        row.id: row
        for row in about
        if row.id not in written | ended and fact_model.is_valid_on(row.valid_from, row.valid_until, today)
    }
    # Facts with a predicate that was written come first. Within both groups, newer facts come first.
    ranked = sorted(
        open_rows.values(),
        key=lambda row: (fact_model.canonical_predicate(row.predicate) not in predicates, -row.id),
    )
    still_open = (
        OpenFact(row.id, _statement(row, titles), row.valid_from) for row in ranked[:MAX_OPEN_FACTS]
    )
    return replaced, tuple(still_open)


def _old_lines(brain: Brain, page_ids: Sequence[int], changes: Sequence[FactChange]) -> tuple[OldLine, ...]:
    """Return lines with the value of a fact that a change replaced, on the pages about its subject.

    Lines that also have the new value are left out, and so are the lines of sources, which stay as received.
    """
    replaced = [(old, change.id) for change in changes for old in change.superseded]
    if not replaced:
        return ()
    rows = {row.id: row for row in store.read_facts(brain.db, "id", {id for pair in replaced for id in pair})}
    lines: dict[OldLine, None] = {}
    for old, new in ((rows[old], rows[new]) for old, new in replaced if old in rows and new in rows):
        named = [row.page_id for row in page_store.pages_called(brain.db, [old.subject_key])]
        own = {*page_ids[:MAX_PAGES_CHECKED], old.page_id} if not named else {old.page_id, *named}
        heads = page_heads(brain.db, sorted(own))
        texts = page_store.page_texts(brain.db, sorted(heads))
        old_spellings, new_spellings = spellings(brain, old.object), spellings(brain, new.object)
        for id, head in heads.items():
            if head.slug.startswith(SOURCES):
                continue
            for place in corrections.statements_of_fact(texts[id][0], old.predicate, old_spellings):
                if not _is_distinctive(old.object) and not corrections.states_fact(
                    place.text, old.predicate, old_spellings
                ):
                    continue
                if not any(corrections.has_value(place.text, value) for value in new_spellings):
                    says = place.text[:MAX_LINE_LENGTH]
                    lines[OldLine(slugs.address(head.collection, head.slug), says)] = None
    return tuple(lines)[:MAX_OLD_LINES]


def _is_distinctive(value: str) -> bool:
    """Return True for a value of several words or with digits, which unrelated lines rarely contain."""
    return " " in value.strip() or any(map(str.isdigit, value))


def spellings(brain: Brain, value: str) -> tuple[str, ...]:
    """Return the value and, if it names exactly one page, the slug, title and other names of that page."""
    ids = sorted({row.page_id for row in page_store.pages_called(brain.db, [fold_name(value)])})
    if len(ids) != 1:
        return (value,)
    head = page_heads(brain.db, ids)[ids[0]]
    return tuple(dict.fromkeys((value, head.slug, head.title, *page_store.page_names(brain.db, ids))))


def _statement(row: FactRow, titles: set[str]) -> str:
    """Return a fact as text. Its subject is left out if it is one of `titles`, the names of the page."""
    subject = "" if row.subject_key in titles else f"{row.subject} "
    return f"{subject}{row.predicate} {row.object}"


def _contradictions_of(brain: Brain, page_id: int) -> list[ContradictingQuotes]:
    """Check a page, store new contradictions, and return its open contradictions except those of type "stale"."""
    contradictions, now = Contradictions(brain.db), brain.now()
    with brain.db.reading():
        check = contradictions.check(page_id, None, now[:10])
        stored, _, _ = contradictions.listing(page_id, None, MAX_CONTRADICTIONS)
    if not check.findings and not stored:
        return []
    if brain.rehearsal is None:
        contradictions.store(check, now)
        with brain.db.reading():
            stored, _, _ = contradictions.listing(page_id, None, 2 * MAX_CONTRADICTIONS)
    return [
        ContradictingQuotes(
            row.id,
            row.description,
            tuple(f"{quote.slug}: {quote.quote or quote.says}" for quote in row.quotes),
        )
        for row in stored
        if row.type != "stale"
    ]


# Contradictions and facts


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
        stored = Contradictions(brain.db).require(id)
        if side != "both":
            world, finding = _current_finding(brain, stored, side)
            winner = 0 if side == "left" else 1
            changes = resolution_changes(world, finding, winner)
            cites = [finding.cites[1 - winner], *remaining_text_links(world, finding, winner)]
            quotes = Contradictions(brain.db).quotes(cites, today=True)
            written = list(dict.fromkeys(quote for quote in quotes if quote.is_written))
        ids = [change.id for change in changes if change.kind == "fact"]
        facts = {row.id: row for row in store.read_facts(brain.db, "id", ids)}
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
                old_links[change.id].close(tx, change.until)
            elif not facts[change.id].shorten(tx, change.since, change.until, change.successor):
                raise changed_since
        for head in heads.values():
            page_edits.touch(tx, head.slug, expected_version=None, now=now, collection=head.collection)
        stored.resolve(tx, " ".join(filter(None, notes)), now)

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
    current = stored.find_again(brain.db, brain.now()[:10])
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
    """Slug of the subject's page, or None."""
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
    """The previous end date of the fact, if this write changed it."""
    witnessed: bool
    """True if the source, evidence or confidence of an existing fact changed."""
    fact: FactInput
    collection: str = "default"
    replaced: tuple[ReplacedStatement, ...] = ()
    """Facts that this write ended."""
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    """Facts about the subject that still hold, except the fact of this write."""
    still_says: tuple[OldLine, ...] = ()
    """Lines of pages that still have the value of a replaced fact."""
    hint: str = ""
    restarted: str | None = None
    """The day on which a fact that had ended begins again; None if this write restarted no fact."""
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
    """The kept side: left, right or both; None if no contradiction was resolved."""
    changed: tuple[RetiredStatement, ...] = ()
    """Facts and links that were ended or shortened."""
    written: tuple[EvidenceQuote, ...] = ()
    """Quotes of page text that still contains the rejected statement."""
    type: str | None = None
    """The type that the check was limited to; None for all types."""
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
    from quaid.operations.history import (
        past_texts,  # history edits pages, and page_changes imports this module
    )

    with brain.db.reading():
        # Without as_of, future entries are included.
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
    fact = fact_model.check_fact(values, "", stored.title)
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
        version = page_store.require(brain.db, stored.slug, stored.collection).version
        if expected_version not in (None, version):
            raise VersionConflict(slug=stored.slug, expected=expected_version, current_version=version)
        return added, version

    added, version = brain.db.write(work)
    result = receipt(brain, [stored.id], [added]) if added.changed else Receipt()
    return AssertRecord(
        *(stored.slug, version, added.id, added.added, added.changed, added.superseded),
        *(added.ended, added.ended_before, added.witnessed, fact, stored.collection),
        *(result.replaced, result.contradicts, result.open_facts, result.still_says, result.hint),
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

    Each contradiction is stored once. Once resolved, it stays resolved; it is removed when its cause is gone."""
    if resolve is not None:
        return _resolve_finding(brain, resolve, keep, note)
    if note or keep:
        name = "note" if note else "keep"
        raise InvalidArgument(name=name, problem="needs `resolve` with the id of a contradiction")
    if slug is not None and all:
        raise InvalidArgument(name="all", problem="cannot be combined with a page")
    stored = pages.require_page(brain, slug) if slug is not None else None
    page_id = stored.id if stored else None
    contradictions, now = Contradictions(brain.db), brain.now()
    # Find contradictions in a read transaction and store them in a separate, short write transaction.
    contradictions.store(contradictions.check(page_id, type, now[:10]), now)
    with brain.db.reading():
        rows, total, of_all_types = contradictions.listing(page_id, type, limit)
    slug = stored.slug if stored else None
    return CheckRecord(slug, tuple(rows), total, type=type, open_of_other_types=of_all_types - total)


def _resolve_finding(brain: Brain, contradiction_id: int, keep: KeptSide | None, note: str) -> CheckRecord:
    """Resolve a contradiction. If `keep` is None, both statements are kept."""
    contradictions = Contradictions(brain.db)
    before = contradictions.require(contradiction_id).resolved_at
    changed, written = resolve_contradiction(brain, contradiction_id, keep or "both", note)
    resolved = contradictions.require(contradiction_id)
    _, total, _ = contradictions.listing(None, None, 0)
    return CheckRecord(None, (), total, resolved, before, keep or "both", changed, written)


class ContradictionsRecord(NamedTuple):
    contradictions: tuple[Contradiction, ...]
    total: int
    checked_at: str | None
    """When the whole memory was last checked; None if never."""
    changed_pages: int = 0
    """Number of pages that changed since `checked_at`."""


@op("read", command="contradictions", examples=("quaid contradictions", "quaid contradictions --limit 5"))
def contradictions_(
    brain: Brain, limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50
) -> ContradictionsRecord:
    """List the open contradictions with both quotes, as `quaid check` last found them."""
    with brain.db.reading():
        listed, total, _ = Contradictions(brain.db).listing(None, None, limit)
        last, changed = Contradictions(brain.db).last_check()
    return ContradictionsRecord(tuple(listed), total, last, changed)


QUIET_SECONDS = 3.0
"""The memory is checked once nothing has changed for this many seconds."""

LONGEST_DELAY = 60.0
"""If changes keep coming, the memory is checked after this many seconds at the latest."""

MAX_CPU_SHARE = 0.02


class ContradictionMonitor:
    """Checks the whole memory for contradictions after changes, and once a day, in a server.

    It finds the same contradictions as `quaid check`. Facts and links are always compared again; texts are read
    again only if they changed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._texts = DepartureTexts()
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
        state = (today, *Contradictions(brain.db).state_of_pages())
        if state == self._state or (not self._state and self._is_fresh(brain)):
            self._state = state
            return False
        self._check(brain, today)
        return True

    def _is_fresh(self, brain: Brain) -> bool:
        """Return True if another process has checked the memory today and nothing has changed since."""
        last, changed = Contradictions(brain.db).last_check()
        return last is not None and last[:10] == brain.now()[:10] and not changed

    def _check(self, brain: Brain, today: str) -> None:
        began, now, contradictions = time.thread_time(), brain.now(), Contradictions(brain.db)
        with brain.db.reading():
            state = (today, *contradictions.state_of_pages())
            check = contradictions.check(None, None, today, self._texts)
        contradictions.store(check, now)
        self._state = state
        self._not_before = self._clock() + (time.thread_time() - began) / MAX_CPU_SHARE
