"""The memory from afar: what is dated, on all pages together, and which wings there are.

Knows where a date can stand: an entry of a timeline, a day's file in the log of a notebook, a page that is about a
day, a day on which something is due, the beginning and the end of a link or a fact. Does not know how any of it is
shown, nor how a day's file is written.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.model.slug import address
from quaid.store.days import OWN_DAY, SAID_DAY

if TYPE_CHECKING:
    from quaid.store.db import Database
    from quaid.store.links import Edge

KINDS = ("entry", "log", "page", "due", "link", "fact")

_DAILY = (
    "(p.slug GLOB 'daily/[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'"
    " AND p.collection_id IN (SELECT id FROM collections WHERE kind = 'notebook'))"
)
"""Whether a page p is a day of a notebook's log."""


class Dated(NamedTuple):
    """One thing that is of a day."""

    day: str
    kind: str
    """entry, log, page, due, link or fact."""
    state: str
    """Of a link or a fact: begun or ended; of what is due: how it stands."""
    slug: str
    title: str
    type: str
    wing: str
    text: str
    source: str
    line: int | None
    """Of an entry: where it stands in the timeline, from 1; of the log: in its file, if that is known."""
    id: int


class Logged(NamedTuple):
    """A day of a notebook's log, as it is written."""

    day: str
    slug: str
    title: str
    type: str
    wing: str
    text: str
    is_whole: bool
    """Whether the text is all that its file holds, so that lines are those of the file."""
    id: int


class Counted(NamedTuple):
    """A name, and how many pages have it."""

    name: str
    pages: int


class Chosen(NamedTuple):
    """Which dated things are wanted; nothing: any."""

    since: str = "0000"
    until: str = "9999-12-31"
    type: str = ""
    wing: str = ""
    collection: str = ""
    text: str = ""


_FROM: dict[str, tuple[str, ...]] = {
    # kind: (day, state, text, source, line, id, tables with the page p, condition)
    "entry": (
        *("t.date", "''", "t.summary", "t.source", "t.line", "t.id"),
        "timeline_entries AS t INDEXED BY timeline_entries_by_date CROSS JOIN pages AS p ON p.id = t.page_id",
        "t.date BETWEEN ?1 AND ?2",
    ),
    "page": (
        *(OWN_DAY, "''", "p.summary", "''", "NULL", "p.id", "pages AS p INDEXED BY pages_dated"),
        """(instr(p.frontmatter, '"date"') OR p.slug GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*')"""
        f" AND NOT {_DAILY}",
    ),
    "due": (
        *("substr(p.frontmatter ->> '$.due', 1, 10)", "coalesce(p.frontmatter ->> '$.status', '')"),
        *("p.summary", "''", "NULL", "p.id", "pages AS p INDEXED BY pages_due"),
        """instr(p.frontmatter, '"due"') AND p.frontmatter ->> '$.due' GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]*'""",
    ),
}
_SPANS = {
    "link": (
        "o.relationship || ' ' || b.title",
        "links AS o CROSS JOIN pages AS p ON p.id = o.from_page_id CROSS JOIN pages AS b ON b.id = o.to_page_id"
        " AND b.quarantined_at IS NULL",
    ),
    "fact": (
        "o.subject || ' ' || replace(o.predicate, '_', ' ') || ' ' || o.object",
        "assertions AS o CROSS JOIN pages AS p ON p.id = o.page_id",
    ),
}
_NARROWED = (
    " AND p.quarantined_at IS NULL AND (?3 = '' OR p.type = ?3) AND (?4 = '' OR p.wing = ?4)"
    " AND (?5 = '' OR p.collection_id = (SELECT id FROM collections WHERE name = ?5))"
)


def dated(db: "Database", chosen: Chosen, kinds: tuple[str, ...], most: int) -> list[Dated]:
    """The newest things that are of a day, at most so many of each kind, the newest day first; the log has `logs`."""
    found: list[Dated] = []
    for kind in kinds:
        if kind == "log":
            continue
        if kind in _FROM:
            found += _rows(db, kind, _FROM[kind], chosen, most)
            continue
        text, tables = _SPANS[kind]
        source = "o.source_ref" if kind == "fact" else "''"
        for state, column in (("begun", "o.valid_from"), ("ended", "o.valid_until")):
            parts = (column, f"'{state}'", text, source, "NULL", "o.id", tables, f"{column} IS NOT NULL")
            found += _rows(db, kind, parts, chosen, most)
    return in_order(found)


def in_order(found: list[Dated]) -> list[Dated]:
    """The newest day first; within a day in the order of kinds, and as the memory has them."""
    by_kind = sorted(found, key=lambda each: (KINDS.index(each.kind), -each.id))
    return sorted(by_kind, key=lambda each: each.day, reverse=True)


def logs(db: "Database", chosen: Chosen, most: int) -> list[Logged]:
    """The days of notebooks' logs, the newest first. With a text, those that hold it somewhere."""
    rows = db.rows(
        "SELECT substr(p.slug, 7) AS day, (SELECT name FROM collections WHERE id = p.collection_id), p.slug, p.title,"  # noqa: S608
        " p.type, p.wing, p.compiled_truth, p.timeline, p.frontmatter, p.id FROM pages AS p"
        f" WHERE {_DAILY} AND day BETWEEN ?1 AND ?2{_NARROWED}"
        " AND (?6 = '' OR instr(lower(p.compiled_truth), ?6) OR instr(lower(p.timeline), ?6)"
        " OR instr(lower(p.title), ?6)) ORDER BY day DESC, p.id DESC LIMIT ?7",
        (*chosen[:5], chosen.text.lower(), most),
    )
    return [
        Logged(
            *(day, address(collection, slug), title, kind, wing),
            *(f"{truth}\n\n{timeline}" if timeline else truth, not timeline and front == "{}", page_id),
        )
        for day, collection, slug, title, kind, wing, truth, timeline, front, page_id in rows
    ]


def _rows(db: "Database", kind: str, parts: tuple[str, ...], chosen: Chosen, most: int) -> list[Dated]:
    day, state, text, source, line, id_, tables, condition = parts
    rows = db.rows(
        f"SELECT {day} AS day, {state}, p.slug, (SELECT name FROM collections WHERE id = p.collection_id), p.title,"  # noqa: S608
        f" p.type, p.wing, {text} AS told, {source}, {line}, {id_} FROM {tables} WHERE {condition}"
        f" AND day BETWEEN ?1 AND ?2{_NARROWED}"
        " AND (?6 = '' OR instr(lower(told), ?6) OR instr(lower(p.title), ?6))"
        " ORDER BY day DESC, 11 DESC LIMIT ?7",
        (*chosen[:5], chosen.text.lower(), most),
    )
    return [
        Dated(day, kind, state, address(collection, slug), *rest)
        for day, state, slug, collection, *rest in rows
    ]


def wings(db: "Database") -> list[Counted]:
    """The wings with the number of their pages, the largest first."""
    return _counted(db, "wing")


def types(db: "Database") -> list[Counted]:
    """The types of pages, the same way."""
    return _counted(db, "type")


def _counted(db: "Database", column: str) -> list[Counted]:
    rows = db.rows(
        f"SELECT {column}, count(*) FROM pages WHERE quarantined_at IS NULL GROUP BY {column} ORDER BY 2 DESC, 1"  # noqa: S608
    )
    return [Counted(*row) for row in rows]


def pages_of(db: "Database", wing: str, most: int) -> list[int]:
    """The pages of a wing, those with the most links first."""
    rows = db.rows(
        "SELECT p.id, (SELECT count(*) FROM links WHERE from_page_id = p.id)"
        " + (SELECT count(*) FROM links WHERE to_page_id = p.id) AS ties FROM pages AS p"
        " WHERE p.wing = ? AND p.quarantined_at IS NULL ORDER BY ties DESC, p.id LIMIT ?",
        (wing, most),
    )
    return [page_id for page_id, _ in rows]


def beginnings(db: "Database", edges: "list[Edge]") -> dict[int, str]:
    """Since when there is each of these links, as far as anybody says.

    That is its own beginning; else the day of the entry in which it stands; else the first day of the page whose text
    makes it, or of the page that it leads to if that is later: nobody wrote of what was not there. Only a page that
    says no day at all counts from when it came into the memory. Links that ended before that are left out."""
    undated = [each for each in edges if not each.valid_from]
    ends = sorted({end for each in undated for end in (each.from_id, each.to_id)})
    known = {
        page_id: (said, made)
        for page_id, said, made in db.rows(
            f"SELECT p.id, {SAID_DAY}, substr(p.created_at, 1, 10) FROM json_each(?) AS wanted"  # noqa: S608
            " CROSS JOIN pages AS p ON p.id = wanted.value",
            (str(ends),),
        )
    }
    entries: dict[int, str] = dict(
        db.rows(
            "SELECT l.id, (SELECT t.date FROM timeline_entries AS t WHERE t.page_id = l.from_page_id"
            " AND t.line <= l.line ORDER BY t.line DESC LIMIT 1) FROM json_each(?) AS wanted"
            " CROSS JOIN links AS l ON l.id = wanted.value WHERE l.part = 'timeline'",
            (str([each.id for each in undated]),),
        )
    )
    found = {each.id: each.valid_from for each in edges if each.valid_from}
    for each in undated:
        said, made = known[each.from_id]
        day = entries.get(each.id) or max(said or made, known[each.to_id][0] or "")
        if not each.valid_until or day < each.valid_until:
            found[each.id] = day
    return found
