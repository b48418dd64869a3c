"""Receipts: the facts that a write replaced or contradicts, facts that still hold, and similar pages."""

from collections.abc import Sequence
from typing import NamedTuple

from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.model import slug as slugs
from quaid.model.facts import canonical_predicate, is_valid_on
from quaid.model.slug import fold_name
from quaid.storage import contradictions, facts, pages
from quaid.storage.facts import FactChange, FactRow

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
    """What the caller should do next."""


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
    own = {slugs.address(head.collection, head.slug) for head in pages.page_heads(brain.db, [*new]).values()}
    most = MAX_SIMILAR + len(own)
    addresses = (address for page in new for address in pages.similar_pages(brain.db, page, most))
    return tuple(dict.fromkeys(address for address in addresses if address not in own))[:MAX_SIMILAR]


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


def _old_lines(brain: Brain, page_ids: Sequence[int], changes: Sequence[FactChange]) -> tuple[OldLine, ...]:
    """Return lines with the value of a fact that a change replaced, on the pages about its subject.

    Lines that also have the new value are left out, and so are the lines of sources, which stay as received.
    """
    replaced = [(old, change.id) for change in changes for old in change.superseded]
    if not replaced:
        return ()
    from quaid.model import corrections  # imported late: most writes replace no fact

    rows = {row.id: row for row in facts.read_facts(brain.db, ids={id for pair in replaced for id in pair})}
    lines: dict[OldLine, None] = {}
    for old, new in ((rows[old], rows[new]) for old, new in replaced if old in rows and new in rows):
        named = [row.page_id for row in pages.pages_called(brain.db, [old.subject_key])]
        own = {*page_ids[:MAX_PAGES_CHECKED], old.page_id} if not named else {old.page_id, *named}
        heads = pages.page_heads(brain.db, sorted(own))
        texts = pages.page_texts(brain.db, sorted(heads))
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
    """Return True for a value of several words or with digits, which is seldom mentioned for another reason."""
    return " " in value.strip() or any(map(str.isdigit, value))


def spellings(brain: Brain, value: str) -> tuple[str, ...]:
    """Return the value and, if it names exactly one page, the slug, title and other names of that page."""
    ids = sorted({row.page_id for row in pages.pages_called(brain.db, [fold_name(value)])})
    if len(ids) != 1:
        return (value,)
    head = pages.page_heads(brain.db, ids)[ids[0]]
    return tuple(dict.fromkeys((value, head.slug, head.title, *pages.page_names(brain.db, ids))))


def _statement(row: FactRow, titles: set[str]) -> str:
    """Return a fact as text. Its subject is left out if it is one of `titles`, the names of the page."""
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
