"""What is known of one subject: facts, links and dated entries together, each with its time and its place.

Knows how a subject is found by any of its names. Reads the tables assertions, links, timeline_entries and page_names.
"""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import InvalidArgument, NotFound, QuaidError
from quaid.model import facts, slug as slugs
from quaid.model.facts import fact_needles, is_valid_on
from quaid.model.links import MENTIONS
from quaid.model.markdown_text import replace_wiki_links
from quaid.model.names import fold_name
from quaid.store import assertions, links, names, pages

if TYPE_CHECKING:
    from quaid.store.assertions import Asserted
    from quaid.store.db import Database
    from quaid.store.links import Link


class Subject(NamedTuple):
    """Whom a question is about."""

    name: str
    slug: str | None
    page_id: int | None
    keys: tuple[str, ...]
    """All its names, folded."""


class FactLine(NamedTuple):
    """One thing that is held."""

    kind: str
    """fact or link."""
    id: int
    subject: str
    predicate: str
    object: str
    since: str | None
    until: str | None
    by: str
    """Who says so: agent, manual, import, enrichment; or text and programmatic, for a link."""
    source: str
    slug: str
    """The page that says so."""
    part: str
    line: int | None
    quote: str
    """The words that were given as evidence, or the line of the page as it was when the fact was written down."""
    version: int | None
    """The version of the page that the quote is from; none: the present one, or no page."""
    confidence: float
    supersedes: int | None
    superseded_by: int | None
    recorded_at: str


class Entry(NamedTuple):
    """A dated entry of the subject's page."""

    date: str
    source: str
    summary: str
    slug: str
    line: int


class Entries(NamedTuple):
    rows: list[Entry]
    total: int


def subject(db: "Database", text: str) -> Subject:
    """Find a subject by slug, title, alias or any name that facts use; or say what is called nearly so."""
    wanted = replace_wiki_links(text).strip()
    page = _by_address(db, wanted)
    key = fold_name(wanted.rpartition("::")[2])
    if page is None:
        page = _by_name(db, wanted, key)
    if page is None:
        found = assertions.about(db, [key]) if key else []
        if not found:
            raise NotFound(what="subject", name=repr(wanted), hint=_near(db, key))
        return Subject(found[-1].subject, None, None, (key,))
    keys = [name for (name,) in db.rows("SELECT name FROM page_names WHERE page_id = ?", (page[0],))]
    mine = tuple(each for each in keys if _means(db, each) == page[0])
    return Subject(page[2], page[1], page[0], mine)


def _by_address(db: "Database", text: str) -> tuple[int, str, str] | None:
    collection, name = slugs.split_address(text)
    try:
        stored = pages.find(db, slugs.check(name), collection or "default")
    except QuaidError:
        return None
    return (stored.id, stored.slug, stored.title) if stored else None


def _by_name(db: "Database", text: str, key: str) -> tuple[int, str, str] | None:
    found = names.called(db, [key]) if key else []
    best = [each for each in found if each.kind == found[0].kind]
    rows = db.rows(
        "SELECT p.id, p.slug, p.title FROM json_each(?) AS w JOIN pages AS p ON p.id = w.value ORDER BY p.slug",
        (str([each.page_id for each in best]),),
    )
    if len(rows) > 1:
        listed = ", ".join(row[1] for row in rows[:5])
        raise InvalidArgument(
            name="subject", problem=f"{text!r} is what several pages are called: {listed}; name one"
        )
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def _means(db: "Database", key: str) -> int | None:
    """The one page that a name means for facts of other pages."""
    found = names.called(db, [key])
    pages_called = {each.page_id for each in found if each.kind == found[0].kind}
    return pages_called.pop() if len(pages_called) == 1 else None


def _near(db: "Database", key: str) -> str:
    import difflib

    rows = db.rows(
        "SELECT name FROM page_names WHERE substr(name, 1, 2) = substr(?1, 1, 2) OR instr(name, ?1) UNION"
        " SELECT subject_key FROM assertions WHERE substr(subject_key, 1, 2) = substr(?1, 1, 2) LIMIT 2000",
        (key,),
    )
    candidates = [name for (name,) in rows]
    near = [name for name in candidates if key and key in name.split()][:3]
    near = near or difflib.get_close_matches(key, candidates, n=3, cutoff=0.7)
    return f" Did you mean {' or '.join(near)}?" if near else " `quaid search` looks into the texts."


class PageText(NamedTuple):
    """What a page said in one of its versions."""

    version: int | None
    """None: the present one."""
    truth: str
    timeline: str


PastTexts = Callable[[str, str, str], Iterable[PageText]]
"""The texts that a page (slug, collection) had at a time: all of that second, where there are several."""


def lines(db: "Database", whom: Subject, day: str | None, past: PastTexts) -> list[FactLine]:
    """What holds on a day; or, with none, everything that was ever held, in order of time."""
    found = _facts(db, whom, past) + _links(db, whom)
    replaced = {each.supersedes: each.id for each in found if each.kind == "fact" and each.supersedes}
    found = [
        each._replace(superseded_by=replaced.get(each.id)) if each.kind == "fact" else each for each in found
    ]
    if day is not None:
        found = [each for each in found if is_valid_on(each.since, each.until, day)]
    solid = [each for each in found if each.predicate != MENTIONS]
    found = solid or found  # a mention says little: it is told only when there is nothing else
    if day is None:
        return sorted(found, key=lambda each: (each.since or each.recorded_at[:10], each.id))
    return sorted(found, key=lambda each: (each.kind, each.predicate, each.since or "", each.id))


def _facts(db: "Database", whom: Subject, past: PastTexts) -> list[FactLine]:
    rows = {row.id: row for row in assertions.about(db, whom.keys)}
    if whom.page_id is not None:
        own = assertions.of_page(db, whom.page_id)
        # On its own page a subject may go by a part of its name, but other subjects are other subjects.
        from quaid.model.facts import person_name_parts

        parts = person_name_parts(whom.name) | set(_all_names(db, whom.page_id))
        rows |= {row.id: row for row in own if row.subject_key in parts}
        turned = assertions.naming(db, [whom.name, whom.slug or "", *_spoken(db, whom.page_id)])
        rows |= {row.id: row for row in turned}
    texts = _texts(db, {row.page_id for row in rows.values()})
    return [_fact(row, texts[row.page_id], past) for row in rows.values() if row.page_id in texts]


def _all_names(db: "Database", page_id: int) -> list[str]:
    return [name for (name,) in db.rows("SELECT name FROM page_names WHERE page_id = ?", (page_id,))]


def _spoken(db: "Database", page_id: int) -> list[str]:
    """The names of a page as people write them: aliases with their capitals and accents."""
    from quaid.model.names import aliases

    row = db.one("SELECT frontmatter FROM pages WHERE id = ?", (page_id,))
    return [*(aliases(json.loads(row[0])) if row else ()), *_all_names(db, page_id)]


class _Written(NamedTuple):
    slug: str
    collection: str
    truth: str
    timeline: str
    changed_at: str


def _texts(db: "Database", page_ids: set[int]) -> dict[int, _Written]:
    rows = db.rows(
        "SELECT p.id, p.slug, c.name, p.compiled_truth, p.timeline,"
        " max(p.truth_updated_at, p.timeline_updated_at) FROM json_each(?) AS w JOIN pages AS p ON p.id = w.value"
        " JOIN collections AS c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL",
        (str(sorted(page_ids)),),
    )
    return {row[0]: _Written(*row[1:]) for row in rows}


def _cited(row: "Asserted", page: _Written, past: PastTexts) -> "tuple[facts.QuotedLine | None, int | None]":
    """Where a fact stands, and in which earlier version.

    Words that were given as evidence are looked for in the present text. Without any, the fact's object is looked
    for in the text as it was when the fact was written down: what came later says nothing about its source.
    """
    words = fact_needles(row.evidence_text, row.object)
    if row.evidence_text or page.changed_at < row.created_at:
        return facts.find_quote(page.truth, page.timeline, words), None
    found: dict[str, tuple[facts.QuotedLine, int | None]] = {}
    for text in past(page.slug, page.collection, row.created_at):
        place = facts.find_quote(text.truth, text.timeline, words)
        if place:
            found.setdefault(place.quote, (place, text.version))
    if len(found) != 1:  # nothing is known of it, or several texts of one second say something else
        return None, None
    place, version = next(iter(found.values()))
    return place if version is None else place._replace(line=None), version


def _fact(row: "Asserted", page: _Written, past: PastTexts) -> FactLine:
    place, version = _cited(row, page, past)
    return FactLine(
        kind="fact",
        id=row.id,
        subject=row.subject,
        predicate=row.predicate,
        object=row.object,
        since=row.valid_from,
        until=row.valid_until,
        by=row.asserted_by,
        source=row.source_ref,
        slug=page.slug,
        part=place.part if place else "",
        line=place.line if place else None,
        quote=row.evidence_text or (place.quote if place else ""),
        version=version,
        confidence=row.confidence,
        supersedes=row.supersedes_id,
        superseded_by=None,
        recorded_at=row.created_at,
    )


def _links(db: "Database", whom: Subject) -> list[FactLine]:
    if whom.page_id is None:
        return []
    found = links.outgoing(db, whom.page_id, "all", "") + links.incoming(db, whom.page_id, "all", "")
    return [_link(each) for each in found]


def _link(link: "Link") -> FactLine:
    return FactLine(
        kind="link",
        id=link.id,
        subject=link.from_slug,
        predicate=link.relationship,
        object=link.to_slug,
        since=link.valid_from,
        until=link.valid_until,
        by="text" if link.source_kind == links.FROM_TEXT else "link",
        source="",
        slug=link.from_slug,
        part=link.part or "",
        line=link.line,
        quote=link.context,
        version=None,
        confidence=1.0,
        supersedes=None,
        superseded_by=None,
        recorded_at=link.created_at,
    )


def entries(db: "Database", whom: Subject, last: str, limit: int) -> Entries:
    """The dated entries of the subject's page up to a day, the newest first."""
    if whom.page_id is None or whom.slug is None:
        return Entries([], 0)
    found = [each for each in pages.entries(db, whom.page_id) if each.date <= last]
    rows = [Entry(each.date, each.source, each.summary, whom.slug, each.line) for each in found[:limit]]
    return Entries(rows, len(found))
