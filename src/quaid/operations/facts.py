"""Facts with their validity interval and source, and contradictions between them."""

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, VersionConflict
from quaid.model import dates, facts as assertions, slug as slugs
from quaid.model.contradictions import (
    ResolutionChange,
    find_contradictions,
    remaining_text_links,
    resolution_changes,
)
from quaid.model.facts import FactInput
from quaid.operations import pages
from quaid.operations.history import texts_at
from quaid.operations.pages import PageVersion, Slug
from quaid.operations.registry import Arg, op
from quaid.storage import contradictions, facts as store, links, page_edits, pages as pagess
from quaid.storage.contradictions import Contradiction, EvidenceQuote
from quaid.storage.facts import FactLine, SubjectEntry, VersionText
from quaid.storage.pages import page_heads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quaid.model.contradictions import ContradictionFinding
    from quaid.model.facts import Snapshot
    from quaid.storage.facts import PastTexts, VersionText
    from quaid.storage.sqlite.connection import Transaction

KeptSide = Literal["left", "right", "both"]


class RetiredStatement(NamedTuple):
    """A fact or link that was ended or shortened by a resolution."""

    kind: str
    """"fact" or "link"."""
    id: int
    slug: str
    """The page it belongs to."""
    says: str
    since: str | None
    until: str | None
    """None if it still holds because only its end was wrong."""
    never_held: bool


class Resolution(NamedTuple):
    changed: tuple[RetiredStatement, ...]
    written: tuple[EvidenceQuote, ...]
    """Texts that still contain the rejected statement."""


def resolve_contradiction(brain: Brain, id: int, side: KeptSide, note: str) -> Resolution:
    """Resolve a contradiction by keeping one side or both, in one transaction."""
    now = brain.now()
    with brain.db.reading():
        known = contradictions.require(brain.db, id)
        if side == "both":
            world, given, written = None, [], []
        else:
            world, found = _current_finding(brain, known, side)
            kept = 0 if side == "left" else 1
            given = resolution_changes(world, found, kept)
            cites = [found.cites[1 - kept], *remaining_text_links(world, found, kept)]
            quotes = contradictions.quote_evidence(brain.db, cites, today=True)
            written = list(dict.fromkeys(each for each in quotes if each.is_written))
        facts = store.facts_by_id(brain.db, [each.id for each in given if each.kind == "fact"])
        ties = {each.id: links.require_added(brain.db, each.id) for each in given if each.kind == "link"}
        about = page_heads(brain.db, sorted({each.page_id for each in given}))
    told = " ".join(filter(None, [note.strip(), _resolution_note(given) if given else ""]))

    def work(tx: "Transaction") -> None:
        for each in given:
            if each.kind == "link":
                if links.require_added(brain.db, each.id) != ties[each.id]:
                    raise _changed_since(id)
                links.close(tx, ties[each.id], each.until)
            elif not store.shorten_fact(tx, facts[each.id], each.since, each.until, each.successor):
                raise _changed_since(id)
        for page in about.values():
            page_edits.touch(tx, page.slug, expected_version=None, now=now, collection=page.collection)
        contradictions.resolve(tx, id, told, now)

    brain.db.write(work)
    named = {key: slugs.address(page.collection, page.slug) for key, page in about.items()}
    return Resolution(tuple(_retired_statement(each, named[each.page_id]) for each in given), tuple(written))


def _current_finding(
    brain: Brain, known: Contradiction, side: KeptSide
) -> "tuple[Snapshot, ContradictionFinding]":
    """Recompute a finding, so that a contradiction that was edited or resolved meanwhile is not resolved again."""
    if known.type == "stale":
        raise InvalidArgument(
            name="keep",
            problem=f"{known.id} is a truth older than its evidence, which has no {side} side to keep; write the"
            f" truth of {known.slug} anew, or say --keep both if it still holds",
        )
    fingerprint, roots = contradictions.cause(brain.db, known.id)
    world = contradictions.snapshot_around(brain.db, roots, brain.now()[:10])
    world = world._replace(texts=list(world.texts))
    for each in find_contradictions(world, known.type):
        if each.fingerprint == fingerprint:
            return world, each
    raise InvalidArgument(
        name="resolve", problem=f"{known.id} no longer contradicts itself; `quaid check` looks again"
    )


def _changed_since(id: int) -> InvalidArgument:
    return InvalidArgument(
        name="resolve", problem=f"what {id} is about changed just now; `quaid check` looks again"
    )


def _retired_statement(each: ResolutionChange, address: str) -> RetiredStatement:
    return RetiredStatement(each.kind, each.id, address, each.says, each.since, each.until, each.never_held)


def _resolution_note(given: list[ResolutionChange]) -> str:
    return " ".join(f"{each.says}: {_validity_text(each)}." for each in given)


def _validity_text(each: ResolutionChange) -> str:
    if each.never_held:
        return "never held"
    if each.until is None:
        return f"since {each.since}" if each.kind == "fact" else "goes on"
    return f"until {each.until}"


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
    """True if another source or wording was added to an existing fact."""
    fact: FactInput


class CheckRecord(NamedTuple):
    slug: str | None
    contradictions: tuple[Contradiction, ...]
    total: int
    resolved: Contradiction | None = None
    settled_before: str | None = None
    """When it had already been resolved."""
    kept: str | None = None
    """The kept side: left, right or both."""
    changed: tuple[RetiredStatement, ...] = ()
    """Facts and links that were ended or shortened."""
    written: tuple[EvidenceQuote, ...] = ()
    """Texts that still contain the rejected statement."""
    type: str | None = None
    """The type that the check was limited to."""
    open_of_other_types: int = 0
    """Open findings of other types, as of their last check."""

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
            "Whom or what it is about: a page, title, alias or other name.",
            positional=True,
            any_text=True,
            question=True,
        ),
    ],
    as_of: Annotated[str | None, Arg("The day to look at instead of today, as in 2024-03-01.")] = None,
    history: Annotated[bool, Arg("Everything ever held, in order of time.")] = False,
    limit: Annotated[int, Arg("How many facts, and how many dated entries.", minimum=1, maximum=1_000)] = 50,
) -> FactsRecord:
    """What is known of a subject: facts, links and dated entries, since when, until when, and who says so."""

    if not subject.strip():
        raise InvalidArgument(name="subject", problem="is empty; name a page or a person")
    today = brain.now()[:10]
    day = dates.check_date(as_of, "as_of") if as_of else today
    with brain.db.reading():
        whom = store.find_subject(brain.db, subject)
        lines = store.fact_lines(brain.db, whom, None if history else day, _past_texts(brain))
        # Include future entries by default, but with as_of stop at that day.
        last = day if as_of else "9999-12-31"
        entries = store.subject_entries(brain.db, whom, last, limit)
    return FactsRecord(
        whom.name,
        whom.slug,
        day,
        history,
        tuple(lines[:limit]),
        len(lines),
        tuple(entries.rows),
        entries.total,
    )


def _past_texts(brain: Brain) -> "PastTexts":
    """Return a function that yields the versions of a page's text at a given time."""

    def texts(slug: str, collection: str, time: str) -> "Iterator[VersionText]":
        for version, page in texts_at(brain, pagess.require(brain.db, slug, collection), time):
            yield VersionText(version, page.truth, page.timeline)

    return texts


@op(
    "write",
    command="assert",
    adds_only=True,
    examples=(
        "quaid assert people/alice works_at 'River AI' --valid-from 2024-01-15 --source-ref meeting/123",
        "quaid assert people/alice lives_in Oslo --supersedes-id 12",
        "quaid assert people/alice works_at 'River AI' --valid-until 2026-03-01",
    ),
)
def assert_(
    brain: Brain,
    slug: Slug,
    predicate: Annotated[str, Arg("What is said, as in works_at.", positional=True)],
    object: Annotated[str, Arg("Of what: a page, a name or a value.", positional=True)],
    subject: Annotated[str | None, Arg("About whom, if not the page itself.")] = None,
    valid_from: Annotated[str | None, Arg("The day on which it began to hold, if known.")] = None,
    valid_until: Annotated[
        str | None, Arg("The first day on which it does not hold; alone, it ends what holds.")
    ] = None,
    supersedes_id: Annotated[int | None, Arg("The id of the fact that this one replaces.", minimum=1)] = None,
    source_ref: Annotated[str, Arg("Where it is known from, as in meeting/123.")] = "",
    evidence_text: Annotated[str, Arg("The words that say so.")] = "",
    confidence: Annotated[float, Arg("How sure it is, from 0 to 1.")] = 1.0,
    asserted_by: Annotated[Literal["agent", "manual", "import", "enrichment"], Arg("Who says so.")] = "agent",
    expected_version: PageVersion = None,
) -> AssertRecord:
    """Keep a fact on a page, with its time and source. The same from the same source again changes nothing."""
    stored = pages.require_page(brain, slug)
    values = {
        "subject": subject,
        "predicate": predicate,
        "object": object,
        "valid_from": valid_from,
        "valid_until": valid_until,
        "confidence": confidence,
        "asserted_by": asserted_by,
        "source_ref": source_ref,
        "evidence_text": evidence_text,
        "supersedes_id": supersedes_id,
    }
    given = assertions.check_fact(values, "", stored.title)
    now = brain.now()

    def work(tx: "Transaction") -> tuple[store.FactChange, int]:
        added = store.add_fact(tx, stored.id, given, now)
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
    return AssertRecord(
        *(stored.slug, version, added.id, added.added, added.changed, added.superseded),
        *(added.ended, added.ended_before, added.witnessed, given),
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
)
def check(
    brain: Brain,
    slug: Annotated[str | None, Arg("Only this page, and what speaks of it.", positional=True)] = None,
    all: Annotated[bool, Arg("The whole memory, which is also the default.")] = False,
    type: Annotated[
        Literal["temporal", "cross_page", "stale"] | None,
        Arg("Only what is over or not, two values at once, or a truth older than its evidence."),
    ] = None,
    resolve: Annotated[int | None, Arg("Settle the contradiction with this id.", minimum=1)] = None,
    keep: Annotated[
        KeptSide | None,
        Arg("With resolve, which quote is true: left (the first), right, or both. The other ends."),
    ] = None,
    note: Annotated[str, Arg("How it was settled; with resolve.")] = "",
    limit: Annotated[int, Arg("How many to show.", minimum=1, maximum=10_000)] = 50,
) -> CheckRecord:
    """Find what contradicts itself, with both quotes, or settle one finding. Exits 1 while any is open.

    Findings are kept: the same one comes once, a settled one stays settled, and one whose cause is gone goes."""
    if resolve is not None:
        return _resolve_finding(brain, resolve, keep, note)
    if note or keep:
        name = "note" if note else "keep"
        raise InvalidArgument(name=name, problem="belongs to resolve; say which contradiction is settled")
    if slug is not None and all:
        raise InvalidArgument(name="all", problem="is the whole memory; name either it or a page, not both")
    stored = pages.require_page(brain, slug) if slug is not None else None
    _find_contradictions(brain, stored.id if stored else None, type)
    page_id = stored.id if stored else None
    with brain.db.reading():
        found = contradictions.listing(brain.db, page_id, type, limit)
        total = contradictions.count(brain.db, page_id, type)
        others = contradictions.count(brain.db, page_id, None) - total
    slug = stored.slug if stored else None
    return CheckRecord(slug, tuple(found), total, type=type, open_of_other_types=others)


def _find_contradictions(brain: Brain, page_id: int | None, type: str | None) -> None:
    """Find contradictions in a read transaction and store them in a separate, short write transaction."""
    now = brain.now()
    with brain.db.reading():
        roots = contradictions.affected_pages(brain.db, page_id) if page_id is not None else None
        world = (
            contradictions.full_snapshot(brain.db, now[:10])
            if roots is None
            else contradictions.snapshot_around(brain.db, roots, now[:10])
        )
        found = find_contradictions(world, type)
        if roots is not None:
            found = [each for each in found if each.page_id in roots or each.other_page_id == page_id]
        told = contradictions.evidence_json(brain.db, found)

    brain.db.write(lambda tx: contradictions.record(tx, found, told, roots, type, now))


def _resolve_finding(brain: Brain, contradiction_id: int, keep: KeptSide | None, note: str) -> CheckRecord:
    """Resolve a finding. Without a side, both statements are kept."""
    before = contradictions.require(brain.db, contradiction_id).resolved_at
    done = resolve_contradiction(brain, contradiction_id, keep or "both", note)
    settled = contradictions.require(brain.db, contradiction_id)
    total = contradictions.count(brain.db, None, None)
    return CheckRecord(None, (), total, settled, before, keep, done.changed, done.written)


class ContradictionsRecord(NamedTuple):
    contradictions: tuple[Contradiction, ...]
    total: int
    checked_at: str | None
    """When the whole memory was last checked."""


@op("read", command="contradictions", examples=("quaid contradictions", "quaid contradictions --limit 5"))
def contradictions_(
    brain: Brain, limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50
) -> ContradictionsRecord:
    """List the open contradictions with both quotes, as `quaid check` last found them."""
    with brain.db.reading():
        return ContradictionsRecord(
            tuple(contradictions.listing(brain.db, None, None, limit)),
            contradictions.count(brain.db, None, None),
            contradictions.last_check(brain.db),
        )
