"""The memory from afar: what is dated, on all pages together, and which wings there are.

Knows where a date can stand: an entry of a timeline, a page that is about a day, a day on which something is due, the
beginning and the end of a link or a fact. Does not know how any of it is shown.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.core.slug import address
from quaid.store.days import OWN_DAY

if TYPE_CHECKING:
    from quaid.store.db import Database

KINDS = ("entry", "page", "due", "link", "fact")


class Dated(NamedTuple):
    """One thing that is of a day."""

    day: str
    kind: str
    """entry, page, due, link or fact."""
    state: str
    """Of a link or a fact: begun or ended."""
    slug: str
    title: str
    type: str
    wing: str
    text: str
    source: str
    line: int | None
    """Of an entry: where it stands in the timeline, from 1."""
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
        """(instr(p.frontmatter, '"date"') OR p.slug GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*')""",
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
    """The newest things that are of a day, at most so many of each kind; the newest day first."""
    found: list[Dated] = []
    for kind in kinds:
        if kind in _FROM:
            found += _rows(db, kind, _FROM[kind], chosen, most)
            continue
        text, tables = _SPANS[kind]
        source = "o.source_ref" if kind == "fact" else "''"
        for state, column in (("begun", "o.valid_from"), ("ended", "o.valid_until")):
            parts = (column, f"'{state}'", text, source, "NULL", "o.id", tables, f"{column} IS NOT NULL")
            found += _rows(db, kind, parts, chosen, most)
    # Within a day in the order of kinds, and as the memory has them.
    found.sort(key=lambda each: (KINDS.index(each.kind), -each.id))
    found.sort(key=lambda each: each.day, reverse=True)
    return found


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
