"""What a briefing is made of, read from the tables that hold it.

Knows which rows count as changed, due, open or stale, and in which order they matter. Texts come out as they are
stored; whoever shows them makes one line of them. Does not know the clock: every day and time is handed in.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model.contradictions import STALE_DAYS

if TYPE_CHECKING:
    from quaid.store.db import Database, Row

MOST_PAGES_OF_THREADS = 100

# Words for "nothing is left to do"; any other status, and none, means that something is.
CLOSED = {
    "commitment": ("completed", "complete", "done", "kept", "dropped", "cancelled", "canceled", "closed"),
    "action_item": ("done", "completed", "complete", "dropped", "cancelled", "canceled", "closed"),
    "deal": ("won", "lost", "closed", "dropped", "cancelled", "canceled", "archived"),
}
TURNED = ("superseded", "reversed", "shifted")

_ADDRESS = "CASE c.name WHEN 'default' THEN p.slug ELSE c.name || '::' || p.slug END"
_PAGES = "pages p JOIN collections c ON c.id = p.collection_id"
_PAGES_AS_THEY_LIE = "pages p NOT INDEXED CROSS JOIN collections c ON c.id = p.collection_id"
_STATUS = "lower(trim(coalesce(p.frontmatter ->> '$.status', '')))"
_A_DAY = "'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"


class Fact(NamedTuple):
    """An assertion that ended; successor is what is believed instead, if anything."""

    address: str
    day: str
    subject: str
    predicate: str
    object: str
    successor: str | None


class Relation(NamedTuple):
    """A link that began or ended."""

    address: str
    day: str
    ended: int  # 1: it ended; 0: it began
    relationship: str
    other: str


class Entry(NamedTuple):
    """A page with the day for which it is listed."""

    address: str
    day: str
    state: str
    title: str
    owner: str
    priority: str


class Conflict(NamedTuple):
    id: int
    address: str
    day: str
    type: str
    description: str


class Gap(NamedTuple):
    id: int
    day: str
    sensitivity: str
    times_seen: int
    text: str | None  # what somebody approved, and nothing else


class Found(NamedTuple):
    """The first rows of a kind, and how many there are in all."""

    rows: list[Any]
    total: int


def superseded(db: "Database", since: str, first: str, limit: int) -> Found:
    """Facts in whose place another was put since then: known before, or true until one of these days.

    A past that is written down in one go, a career for instance, shifts nothing."""
    rows = db.rows(
        f"SELECT count(*) OVER (), {_ADDRESS}, coalesce(new.valid_from, substr(new.created_at, 1, 10)),"  # noqa: S608
        " old.subject, old.predicate, old.object, new.object"
        " FROM assertions new JOIN assertions old ON old.id = new.supersedes_id"
        " JOIN pages p ON p.id = new.page_id JOIN collections c ON c.id = p.collection_id"
        " WHERE new.supersedes_id IS NOT NULL AND new.created_at >= ?1 AND p.quarantined_at IS NULL"
        " AND (old.created_at < ?1 OR new.valid_from >= ?2)"
        " ORDER BY new.created_at DESC, new.id DESC LIMIT ?3",
        (since, first, limit),
    )
    return _found(rows, Fact)


def ended(db: "Database", since: str, first: str, last: str, limit: int) -> Found:
    """Facts that ended on one of these days without a successor that `superseded` shows."""
    rows = db.rows(
        "WITH last AS (SELECT a.id, count(*) OVER () AS number FROM assertions a"  # noqa: S608
        " WHERE a.valid_until BETWEEN ? AND ?"
        " AND EXISTS (SELECT 1 FROM pages p WHERE p.id = a.page_id AND p.quarantined_at IS NULL) AND NOT EXISTS"
        " (SELECT 1 FROM assertions new WHERE new.supersedes_id = a.id AND new.created_at >= ?)"
        " ORDER BY a.valid_until DESC, a.id DESC LIMIT ?)"
        f" SELECT last.number, {_ADDRESS}, a.valid_until, a.subject, a.predicate, a.object, NULL"
        " FROM last JOIN assertions a ON a.id = last.id JOIN pages p ON p.id = a.page_id"
        " JOIN collections c ON c.id = p.collection_id ORDER BY a.valid_until DESC, a.id DESC",
        (first, last, since, limit),
    )
    return _found(rows, Fact)


def relations(db: "Database", since: str, first: str, last: str, limit: int) -> Found:
    """Links that began or ended on one of these days, and those that somebody added since then.

    A link out of a text counts only by its days: that a page was rewritten is told elsewhere."""
    rows = db.rows(
        f"SELECT count(*) OVER (), {_ADDRESS},"  # noqa: S608
        " CASE WHEN l.valid_until BETWEEN ?1 AND ?2 THEN l.valid_until"
        " ELSE coalesce(l.valid_from, substr(l.created_at, 1, 10)) END AS day,"
        " coalesce(l.valid_until BETWEEN ?1 AND ?2, 0), l.relationship,"
        " (SELECT CASE d.name WHEN 'default' THEN t.slug ELSE d.name || '::' || t.slug END"
        " FROM pages t JOIN collections d ON d.id = t.collection_id WHERE t.id = l.to_page_id)"
        # Which they are is asked first: to look up the pages of every link takes longer than all the rest.
        " FROM (SELECT id FROM links WHERE valid_until BETWEEN ?1 AND ?2 OR valid_from BETWEEN ?1 AND ?2"
        " UNION SELECT id FROM links WHERE created_at >= ?3 AND source_kind = 'programmatic') AS w"
        " CROSS JOIN links l ON l.id = w.id"
        " JOIN pages p ON p.id = l.from_page_id JOIN collections c ON c.id = p.collection_id"
        " JOIN pages o ON o.id = l.to_page_id"
        " WHERE p.quarantined_at IS NULL AND o.quarantined_at IS NULL"
        " ORDER BY day DESC, l.id DESC LIMIT ?4",
        (first, last, since, limit),
    )
    return _found(rows, Relation)


def turned(db: "Database", since: str, limit: int) -> Found:
    """Decisions that do not stand any more and commitments that moved, on pages that changed since then."""
    return _entries(
        db,
        "substr(p.updated_at, 1, 10)",
        f"p.type IN ('decision', 'commitment') AND p.updated_at >= ? AND {_STATUS} IN {TURNED}",
        "p.updated_at DESC, p.id DESC",
        (since, limit),
    )


def changed(db: "Database", since: str, limit: int) -> Found:
    """Pages that were made or changed since then, the newest first."""
    rows = db.rows(
        f"SELECT {_ADDRESS}, substr(p.updated_at, 1, 10),"  # noqa: S608
        " CASE WHEN p.created_at >= ?1 THEN 'new' ELSE 'changed' END, p.title, '', ''"
        f" FROM {_PAGES} WHERE p.quarantined_at IS NULL AND p.updated_at >= ?1"
        " ORDER BY p.updated_at DESC, p.id DESC LIMIT ?2",
        (since, limit),
    )
    counted = db.one("SELECT count(*) FROM pages WHERE quarantined_at IS NULL AND updated_at >= ?", (since,))
    return Found([Entry(*row) for row in rows], counted[0] if counted else 0)


def commitments(db: "Database", until: str, limit: int) -> Found:
    """Open promises that are due by that day, the longest overdue first."""
    due = _day_of("due", "date")
    where = f"p.type = 'commitment' AND {_open('commitment')} AND {due} <= ?"
    return _entries(db, due, where, "2, p.id", (until, limit))


def undated_commitments(db: "Database") -> int:
    """How many open promises name no day."""
    row = db.one(
        f"SELECT count(*) FROM {_PAGES} WHERE p.quarantined_at IS NULL AND p.type = 'commitment'"  # noqa: S608
        f" AND {_open('commitment')} AND {_day_of('due', 'date')} IS NULL"
    )
    return row[0] if row else 0


def actions(db: "Database", limit: int) -> Found:
    """Open actions: by priority, then by day; those without a day last."""
    due = _day_of("due", "date")
    rank = (
        "CASE lower(trim(coalesce(p.frontmatter ->> '$.priority', '')))"
        " WHEN 'urgent' THEN 0 WHEN 'high' THEN 1 WHEN 'low' THEN 3 ELSE 2 END"
    )
    where = f"p.type = 'action_item' AND {_open('action_item')}"
    return _entries(db, due, where, f"{rank}, {due} IS NULL, {due}, p.id", (limit,))


def deals(db: "Database", limit: int) -> Found:
    """Deals that are neither won nor lost, the next to close first."""
    close = _day_of("expected_close", "due")
    where = f"p.type = 'deal' AND {_open('deal')}"
    return _entries(db, close, where, f"{close} IS NULL, {close}, p.id", (limit,))


def people(db: "Database", since: str, limit: int) -> Found:
    """People whose pages changed since then; whoever has a score needs 3 of it."""
    score = "p.frontmatter ->> '$.score'"
    return _entries(
        db,
        "substr(p.updated_at, 1, 10)",
        f"p.type = 'person' AND p.updated_at >= ? AND ({score} IS NULL OR CAST({score} AS REAL) >= 3)",
        f"CAST(coalesce({score}, 0) AS REAL) DESC, p.updated_at DESC, p.id DESC",
        (since, limit),
    )


def stale(db: "Database", limit: int) -> Found:
    """Pages whose timeline has run ahead of their truth, and of when that was last settled; the furthest first."""
    settled = "(SELECT max(x.resolved_at) FROM contradictions x WHERE x.page_id = p.id AND x.type = 'stale')"
    looked = f"max(p.truth_updated_at, coalesce({settled}, ''))"
    ahead = f"julianday(p.timeline_updated_at) - julianday({looked})"
    where = f"p.timeline <> '' AND p.timeline_updated_at > p.truth_updated_at AND {ahead} >= {STALE_DAYS}"
    # Every page is looked at: in the order in which they lie, not in that of an index.
    return _entries(
        db, "substr(p.truth_updated_at, 1, 10)", where, f"{ahead} DESC, p.id", (limit,), _PAGES_AS_THEY_LIE
    )


def contradictions(db: "Database", limit: int) -> Found:
    """What was found to contradict itself and is not settled, the newest first; `stale` tells of stale pages."""
    rows = db.rows(
        f"SELECT count(*) OVER (), x.id, {_ADDRESS}, substr(x.detected_at, 1, 10), x.type, x.description"  # noqa: S608
        " FROM contradictions x JOIN pages p ON p.id = x.page_id JOIN collections c ON c.id = p.collection_id"
        " WHERE x.resolved_at IS NULL AND x.type <> 'stale' AND p.quarantined_at IS NULL"
        " ORDER BY x.detected_at DESC, x.id DESC LIMIT ?",
        (limit,),
    )
    return _found(rows, Conflict)


def gaps(db: "Database", limit: int) -> Found:
    """Open questions, the most asked first; of an internal one no word comes out."""
    rows = db.rows(
        "SELECT count(*) OVER (), id, substr(last_seen_at, 1, 10), sensitivity, times_seen,"
        " CASE sensitivity WHEN 'redacted' THEN redacted_query WHEN 'external' THEN query_text END"
        " FROM knowledge_gaps WHERE resolved_at IS NULL ORDER BY times_seen DESC, detected_at, id LIMIT ?",
        (limit,),
    )
    return _found(rows, Gap)


def with_threads(db: "Database") -> Found:
    """Address, day and truth of pages that may have open threads, those left alone for longest first."""
    rows = db.rows(
        "WITH named AS (SELECT p.id, p.truth_updated_at FROM page_fts f JOIN pages p ON p.id = f.rowid"  # noqa: S608
        " WHERE f.page_fts MATCH 'compiled_truth : \"open threads\"' AND p.quarantined_at IS NULL),"
        " oldest AS (SELECT id, (SELECT count(*) FROM named) AS number FROM named"
        " ORDER BY truth_updated_at, id LIMIT ?)"
        f" SELECT oldest.number, {_ADDRESS}, substr(p.truth_updated_at, 1, 10), p.compiled_truth"
        " FROM oldest JOIN pages p ON p.id = oldest.id JOIN collections c ON c.id = p.collection_id"
        " ORDER BY p.truth_updated_at, p.id",
        (MOST_PAGES_OF_THREADS,),
    )
    return Found([row[1:] for row in rows], rows[0][0] if rows else 0)


def address(db: "Database", page_id: int) -> str:
    row = db.one(f"SELECT {_ADDRESS} FROM {_PAGES} WHERE p.id = ?", (page_id,))  # noqa: S608
    return str(row[0]) if row else ""


def pages(db: "Database") -> int:
    row = db.one("SELECT count(*) FROM pages WHERE quarantined_at IS NULL")
    return row[0] if row else 0


def _entries(db: "Database", day: str, where: str, order: str, values: "Row", source: str = _PAGES) -> Found:
    """Pages of a kind. Only SQL of this module is put together here; what a user gave is among the values."""
    rows = db.rows(
        f"SELECT {_ADDRESS}, {day}, {_STATUS}, p.title, coalesce(p.frontmatter ->> '$.owner', ''),"  # noqa: S608
        " lower(trim(coalesce(p.frontmatter ->> '$.priority', ''))), count(*) OVER ()"
        f" FROM {source} WHERE p.quarantined_at IS NULL AND {where} ORDER BY {order} LIMIT ?",
        values,
    )
    found = [Entry(address, day or "", *rest) for address, day, *rest, _ in rows]
    return Found(found, rows[0][-1] if rows else 0)


def _open(kind: str) -> str:
    return f"{_STATUS} NOT IN {CLOSED[kind]}"


def _day_of(*keys: str) -> str:
    """The first of these front-matter keys that holds a date."""
    dated = [
        f"CASE WHEN p.frontmatter ->> '$.{key}' GLOB {_A_DAY} THEN substr(p.frontmatter ->> '$.{key}', 1, 10) END"
        for key in keys
    ]
    return f"coalesce({', '.join(dated)}, NULL)"


def _found(rows: "list[Row]", kind: Any) -> Found:
    return Found([kind(*row[1:]) for row in rows], rows[0][0] if rows else 0)
