"""Receipts: the facts that a write replaced or contradicts, facts that still hold, and similar pages."""

from collections.abc import Sequence
from typing import NamedTuple

from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.model.facts import canonical_predicate, is_valid_on
from quaid.model.names import fold_name
from quaid.storage import contradictions, facts, pages
from quaid.storage.facts import FactChange, FactRow

MAX_OPEN_FACTS = 5
MAX_CONTRADICTIONS = 3
MAX_SIMILAR = 3
MAX_PAGES_CHECKED = 10
"""At most this many pages of one write are checked for contradictions."""


class ReplacedStatement(NamedTuple):
    """A fact that a write ended."""

    id: int
    says: str
    until: str | None


class OpenFact(NamedTuple):
    """A fact about the same subject that still holds."""

    id: int
    says: str
    since: str | None


class ContradictingQuotes(NamedTuple):
    """An open contradiction of the written page, with both statements."""

    id: int
    description: str
    quotes: tuple[str, ...]


class Receipt(NamedTuple):
    replaced: tuple[ReplacedStatement, ...] = ()
    contradicts: tuple[ContradictingQuotes, ...] = ()
    open_facts: tuple[OpenFact, ...] = ()
    similar: tuple[str, ...] = ()
    """Addresses of pages that may be about the same thing."""


def receipt(
    brain: Brain, page_ids: Sequence[int], changes: Sequence[FactChange] = (), *, similar: Sequence[int] = ()
) -> Receipt:
    """Return what writing these pages and facts replaced, contradicts and leaves open.

    `similar` has the pages for which similar pages are searched. New contradictions are stored, so that they
    have ids. After an error the receipt is empty, but the write is not undone.
    """
    try:
        with brain.db.reading():
            replaced, open_facts = _facts_of(brain, page_ids, changes)
            addresses = [
                address for page in similar for address in pages.similar_pages(brain.db, page, MAX_SIMILAR)
            ]
        conflicts = [row for page in page_ids[:MAX_PAGES_CHECKED] for row in _contradictions_of(brain, page)]
        return Receipt(
            replaced,
            tuple(dict.fromkeys(conflicts))[:MAX_CONTRADICTIONS],
            open_facts,
            tuple(dict.fromkeys(addresses))[:MAX_SIMILAR],
        )
    except QuaidError:
        return Receipt()


def _facts_of(
    brain: Brain, page_ids: Sequence[int], changes: Sequence[FactChange]
) -> tuple[tuple[ReplacedStatement, ...], tuple[OpenFact, ...]]:
    """Return the facts that were ended, and facts of the same pages and subjects that still hold."""
    today = brain.now()[:10]
    ended = {old for change in changes for old in change.superseded}
    ended |= {change.id for change in changes if change.ended}
    written = {change.id for change in changes}
    rows = {row.id: row for row in facts.read_facts(brain.db, ids=ended | written)}
    names = pages.page_names(brain.db, page_ids)
    titles = {fold_name(name) for name in names}
    replaced = tuple(
        ReplacedStatement(row.id, _statement(row, titles), row.valid_until)
        for row in rows.values()
        if row.id in ended
    )
    predicates = {canonical_predicate(rows[id].predicate) for id in written if id in rows}
    subjects = {row.subject_key for row in rows.values()} | titles
    about = [row for page in page_ids[:MAX_PAGES_CHECKED] for row in facts.read_facts(brain.db, page)]
    about += facts.facts_about(brain.db, subjects)
    open_rows = {
        row.id: row
        for row in about
        if row.id not in written | ended and is_valid_on(row.valid_from, row.valid_until, today)
    }
    # Facts with a predicate that was written come first. Within both groups, newer facts come first.
    ranked = sorted(
        open_rows.values(), key=lambda row: (canonical_predicate(row.predicate) not in predicates, -row.id)
    )
    still_open = (
        OpenFact(row.id, _statement(row, titles), row.valid_from) for row in ranked[:MAX_OPEN_FACTS]
    )
    return replaced, tuple(still_open)


def _statement(row: FactRow, titles: set[str]) -> str:
    """Return a fact as text. Its subject is left out if it is the page."""
    subject = "" if row.subject_key in titles else f"{row.subject} "
    return f"{subject}{row.predicate} {row.object}"


def _contradictions_of(brain: Brain, page_id: int) -> list[ContradictingQuotes]:
    """Check a page, store new contradictions, and return its open contradictions except those of type "stale"."""
    now = brain.now()
    with brain.db.reading():
        findings, evidence, page_ids = contradictions.check(brain.db, page_id, None, now[:10])
        stored, _, _ = contradictions.listing(brain.db, page_id, None, MAX_CONTRADICTIONS)
    if not findings and not stored:
        return []
    if brain.rehearsal is None:
        brain.db.write(lambda tx: contradictions.record(tx, findings, evidence, page_ids, None, now))
        with brain.db.reading():
            stored, _, _ = contradictions.listing(brain.db, page_id, None, 2 * MAX_CONTRADICTIONS)
    return [
        ContradictingQuotes(
            row.id,
            row.description,
            tuple(f"{quote.slug}: {quote.quote or quote.says}" for quote in row.quotes),
        )
        for row in stored
        if row.type != "stale"
    ]
