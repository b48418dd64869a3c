"""Overviews of the whole database: briefings, dated items, pages by wing (top-level category), statistics."""

from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.model.page import CLOSED_STATUSES
from quaid.model.slug import address
from quaid.storage import SCHEMA_VERSION, links
from quaid.storage.chunks import FIRST_STATED_DAY, OWN_DAY
from quaid.storage.contradictions import IS_STALE, STALE_SECONDS_SQL
from quaid.storage.questions import APPROVED_BY_SETTING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quaid.model.links import GraphLink
    from quaid.storage.sqlite.connection import Database, Transaction

MOST_PAGES_OF_THREADS = 100
TODO_LIST = "lists/todos"
"""Slug of the to-do list in a notebook."""

REVERSED_STATUSES = ("superseded", "reversed", "shifted")

_ADDRESS = "CASE c.name WHEN 'default' THEN p.slug ELSE c.name || '::' || p.slug END"
_PAGES = "pages p JOIN collections c ON c.id = p.collection_id"
_STATUS = "lower(trim(coalesce(p.frontmatter ->> '$.status', '')))"
_DAY_GLOB = "'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"


class BriefingLine(NamedTuple):
    """One line of a briefing.

    The line is about a page, a fact, a link, a contradiction or a gap (an unanswered question).
    """

    slug: str
    day: str
    state: str
    text: str
    owner: str = ""
    id: int | None = None  # id of the contradiction or gap, as used in commands


class BriefingPart(NamedTuple):
    """The first lines of a briefing part. `total` counts all its lines, including those beyond the limit."""

    items: tuple[BriefingLine, ...] = ()
    total: int = 0


def _day_expression(*keys: str) -> str:
    """Return an SQL expression for the date in the first of these front-matter keys that contains a date."""
    dated = [
        f"CASE WHEN p.frontmatter ->> '$.{key}' GLOB {_DAY_GLOB} THEN substr(p.frontmatter ->> '$.{key}', 1, 10) END"
        for key in keys
    ]
    return f"coalesce({', '.join(dated)}, NULL)"


def _page_lines(
    where: str, day: str, order: str, state: str = _STATUS, owner: str = "''", source: str = _PAGES
) -> str:
    """Return the SELECT statement of a briefing part that has one line for each matching page."""
    return (
        f"SELECT count(*) OVER (), {_ADDRESS}, coalesce({day}, ''), {state}, p.title, {owner}, NULL"  # noqa: S608
        f" FROM {source} WHERE p.quarantined_at IS NULL AND {where} ORDER BY {order} LIMIT :limit"
    )


def _open_pages(type: str, day: str, order: str, more: str = "") -> str:
    """Return the SELECT statement for the open pages of a type, one line each, with status and priority."""
    state = f"concat_ws(', ', coalesce(nullif({_STATUS}, ''), 'open'), nullif({_PRIORITY}, ''))"
    return _page_lines(f"p.type = '{type}' AND {_open_condition(type)}{more}", day, order, state, _OWNER)


def _open_condition(kind: str) -> str:
    return f"{_STATUS} NOT IN {CLOSED_STATUSES[kind]}"


_PRIORITY = "lower(trim(coalesce(p.frontmatter ->> '$.priority', '')))"
_OWNER = "coalesce(p.frontmatter ->> '$.owner', '')"
_UPDATED_DAY = "substr(p.updated_at, 1, 10)"
_SCORE = "p.frontmatter ->> '$.score'"
_DUE = _day_expression("due", "date")
_CLOSE = _day_expression("expected_close", "due")
_URGENCY = f"CASE {_PRIORITY} WHEN 'urgent' THEN 0 WHEN 'high' THEN 1 WHEN 'low' THEN 3 ELSE 2 END"
_GAP_TEXT = (
    "CASE WHEN sensitivity = 'redacted' THEN redacted_query"
    f" WHEN sensitivity = 'external' OR approved_by = '{APPROVED_BY_SETTING}' THEN query_text END"
)

# Facts superseded by a fact that was recorded since :since. Either the old fact was recorded before :since,
# or the new fact starts on the day of :since or later. A history recorded all at once, such as a career, is not
# a change and is left out.
_SUPERSEDED_FACTS = (
    f"SELECT count(*) OVER (), {_ADDRESS}, coalesce(new.valid_from, substr(new.created_at, 1, 10)), 'superseded',"  # noqa: S608
    " format('%s %s %s → %s', old.subject, old.predicate, old.object, new.object), '', NULL"
    " FROM assertions new JOIN assertions old ON old.id = new.supersedes_id"
    " JOIN pages p ON p.id = new.page_id JOIN collections c ON c.id = p.collection_id"
    " WHERE new.supersedes_id IS NOT NULL AND new.created_at >= :since AND p.quarantined_at IS NULL"
    " AND (old.created_at < :since OR new.valid_from >= :first)"
    " ORDER BY new.created_at DESC, new.id DESC LIMIT :limit"
)
_ENDED_FACTS = (
    "WITH last AS (SELECT a.id, count(*) OVER () AS number FROM assertions a"  # noqa: S608
    " WHERE a.valid_until BETWEEN :first AND :today"
    " AND EXISTS (SELECT 1 FROM pages p WHERE p.id = a.page_id AND p.quarantined_at IS NULL) AND NOT EXISTS"
    " (SELECT 1 FROM assertions new WHERE new.supersedes_id = a.id AND new.created_at >= :since)"
    " ORDER BY a.valid_until DESC, a.id DESC LIMIT :limit)"
    f" SELECT last.number, {_ADDRESS}, a.valid_until, 'ended',"
    " format('%s %s %s', a.subject, a.predicate, a.object), '', NULL"
    " FROM last JOIN assertions a ON a.id = last.id JOIN pages p ON p.id = a.page_id"
    " JOIN collections c ON c.id = p.collection_id ORDER BY a.valid_until DESC, a.id DESC"
)
# Links that began or ended in the period, and links added explicitly since :since. A link derived from page text
# is selected only by its dates, because a page with new text is already listed in the part "changed".
_CHANGED_LINKS = (
    f"SELECT count(*) OVER (), {_ADDRESS},"  # noqa: S608
    " CASE WHEN l.valid_until BETWEEN :first AND :today THEN l.valid_until"
    " ELSE coalesce(l.valid_from, substr(l.created_at, 1, 10)) END AS day,"
    " iif(l.valid_until BETWEEN :first AND :today, 'link ended', 'link begun'), l.relationship || ' ' ||"
    " (SELECT CASE d.name WHEN 'default' THEN t.slug ELSE d.name || '::' || t.slug END"
    " FROM pages t JOIN collections d ON d.id = t.collection_id WHERE t.id = l.to_page_id), '', NULL"
    # Select the link ids first: joining the pages of every link takes longer than the rest of the query.
    " FROM (SELECT id FROM links WHERE valid_until BETWEEN :first AND :today OR valid_from BETWEEN :first AND :today"
    " UNION SELECT id FROM links WHERE created_at >= :since AND source_kind = 'programmatic') AS w"
    " CROSS JOIN links l ON l.id = w.id"
    " JOIN pages p ON p.id = l.from_page_id JOIN collections c ON c.id = p.collection_id"
    " JOIN pages o ON o.id = l.to_page_id"
    " WHERE p.quarantined_at IS NULL AND o.quarantined_at IS NULL"
    " ORDER BY day DESC, l.id DESC LIMIT :limit"
)

BRIEFING_PARTS: dict[str, tuple[str, ...]] = {
    # Changes: superseded and ended facts, begun and ended links, decisions and commitments with a reversed
    # status.
    "shifted": (
        _SUPERSEDED_FACTS,
        _ENDED_FACTS,
        _CHANGED_LINKS,
        _page_lines(
            f"p.type IN ('decision', 'commitment') AND p.updated_at >= :since AND {_STATUS} IN {REVERSED_STATUSES}",
            _UPDATED_DAY,
            "p.updated_at DESC, p.id DESC",
            owner=_OWNER,
        ),
    ),
    "commitments": (_open_pages("commitment", _DUE, f"{_DUE}, p.id", f" AND {_DUE} <= :due_until"),),
    # Open commitments without a due date. A briefing shows only their number.
    "undated": (_open_pages("commitment", _DUE, "p.id", f" AND {_DUE} IS NULL"),),
    # Ordered by priority, then by due date; within a priority, items without a due date come last.
    "actions": (_open_pages("action_item", _DUE, f"{_URGENCY}, {_DUE} IS NULL, {_DUE}, p.id"),),
    # Open contradictions found by earlier checks. Stale pages are listed in the part "stale".
    "contradictions": (
        f"SELECT count(*) OVER (), {_ADDRESS}, substr(x.detected_at, 1, 10), x.type, x.description, '', x.id"  # noqa: S608
        " FROM contradictions x JOIN pages p ON p.id = x.page_id JOIN collections c ON c.id = p.collection_id"
        " WHERE x.resolved_at IS NULL AND x.type <> 'stale' AND p.quarantined_at IS NULL"
        " ORDER BY x.detected_at DESC, x.id DESC LIMIT :limit",
    ),
    # Gaps (questions that the memory could not answer) whose words are stored, most frequent first. A redacted
    # question is shown in its redacted form. Internal questions are left out unless `log_gaps` allows them.
    "gaps": (
        "SELECT count(*) OVER (), '', substr(last_seen_at, 1, 10),"  # noqa: S608
        " format('%s, asked %,d time%s', sensitivity, times_seen, iif(times_seen = 1, '', 's')),"
        f" {_GAP_TEXT}, '', id FROM knowledge_gaps WHERE resolved_at IS NULL AND {_GAP_TEXT} IS NOT NULL"
        " ORDER BY times_seen DESC, detected_at, id LIMIT :limit",
    ),
    # Gaps that are not in the part "gaps", mostly because only the hash of the question is stored. A briefing shows
    # only their number.
    "unworded": (
        "SELECT count(*), '', '', '', '', '', NULL"  # noqa: S608
        f" FROM knowledge_gaps WHERE resolved_at IS NULL AND {_GAP_TEXT} IS NULL HAVING count(*) > 0",
    ),
    # Stalest pages first. Every page is read, and reading in table order is faster than using an index.
    "stale": (
        _page_lines(
            IS_STALE,
            "substr(p.truth_updated_at, 1, 10)",
            f"{STALE_SECONDS_SQL} DESC, p.id",
            source="pages p NOT INDEXED CROSS JOIN collections c ON c.id = p.collection_id",
        ),
    ),
    # The compiled truth (the text above the timeline) of pages that mention "open threads" there, least
    # recently changed first.
    "threads": (
        "WITH named AS (SELECT p.id, p.truth_updated_at FROM page_fts f JOIN pages p ON p.id = f.rowid"  # noqa: S608
        " WHERE f.page_fts MATCH 'compiled_truth : \"open threads\"' AND p.quarantined_at IS NULL),"
        " oldest AS (SELECT id, (SELECT count(*) FROM named) AS number FROM named"
        f" ORDER BY truth_updated_at, id LIMIT {MOST_PAGES_OF_THREADS})"
        f" SELECT oldest.number, {_ADDRESS}, substr(p.truth_updated_at, 1, 10), 'open', p.compiled_truth, '', NULL"
        " FROM oldest JOIN pages p ON p.id = oldest.id JOIN collections c ON c.id = p.collection_id"
        " ORDER BY p.truth_updated_at, p.id",
    ),
    "deals": (_open_pages("deal", _CLOSE, f"{_CLOSE} IS NULL, {_CLOSE}, p.id"),),
    # Recently updated pages of people, except those with a score below 3.
    "people": (
        _page_lines(
            "p.type = 'person' AND p.updated_at >= :active_since"
            f" AND ({_SCORE} IS NULL OR CAST({_SCORE} AS REAL) >= 3)",
            _UPDATED_DAY,
            f"CAST(coalesce({_SCORE}, 0) AS REAL) DESC, p.updated_at DESC, p.id DESC",
        ),
    ),
    "changed": (
        "SELECT (SELECT count(*) FROM pages WHERE quarantined_at IS NULL AND updated_at >= :since),"  # noqa: S608
        f" {_ADDRESS}, {_UPDATED_DAY}, iif(p.created_at >= :since, 'new', 'changed'), p.title, '', NULL"
        f" FROM {_PAGES} WHERE p.quarantined_at IS NULL AND p.updated_at >= :since"
        " ORDER BY p.updated_at DESC, p.id DESC LIMIT :limit",
    ),
}
"""The queries of each briefing part. Each selects the total number of lines and the BriefingLine columns."""


def briefing_parts(
    db: "Database", names: "Iterable[str]", period: dict[str, str], limit: int
) -> dict[str, BriefingPart]:
    """Return the named parts of a briefing, each with up to `limit` lines.

    The part "threads" has up to MOST_PAGES_OF_THREADS lines instead.
    `period` contains the timestamps `since` and `active_since` and the dates `today` and `due_until`.
    """
    values = {**period, "first": period["since"][:10], "limit": limit}
    parts = {}
    for name in names:
        sections = [db.rows(sql, values) for sql in BRIEFING_PARTS[name]]
        lines = [BriefingLine(*row[1:]) for rows in sections for row in rows]
        if len(sections) > 1:
            lines = sorted(lines, key=lambda line: line.day, reverse=True)[:limit]
        parts[name] = BriefingPart(tuple(lines), sum(rows[0][0] for rows in sections if rows))
    return parts


class ChecklistPage(NamedTuple):
    """A page with open checkboxes, or the to-do list of a notebook."""

    page_id: int
    address: str
    slug: str
    title: str
    is_notebook: bool
    is_plain: bool
    """True if the page has no front matter, so that its text and its file have the same line numbers."""
    truth: str
    timeline: str


def checklists(db: "Database", collection_id: int | None = None) -> list[ChecklistPage]:
    """Return the pages of one or all collections that may have open to-dos, except daily logs of notebooks.

    Searching all collections reads every page, so the ids are cached, and later only changed pages are read.
    """

    def compute() -> tuple[str, list[int]]:
        return _latest_update(db), [page.page_id for page in _read_checklists(db, "1")]

    def update(known: tuple[str, list[int]]) -> tuple[str, list[int]]:
        changed = _read_checklists(
            db, "p.quarantined_at IS NULL AND p.updated_at >= :since", {"since": known[0]}
        )
        return _latest_update(db), sorted({*known[1], *(page.page_id for page in changed)})

    if collection_id is not None:
        return _read_checklists(db, "p.collection_id = :collection", {"collection": collection_id})
    _, ids = db.cached("checklists", compute, update)
    return _read_checklists(db, "p.id IN (SELECT value FROM json_each(:ids))", {"ids": str(ids)})


def _latest_update(db: "Database") -> str:
    return _first_value(db, "SELECT max(updated_at) FROM pages WHERE quarantined_at IS NULL") or ""


def _read_checklists(db: "Database", where: str, values: dict[str, str | int] = {}) -> list[ChecklistPage]:  # noqa: B006
    rows = db.rows(
        f"SELECT p.id, {_ADDRESS}, p.slug, p.title, c.kind = 'notebook', p.frontmatter = '{{}}', p.compiled_truth,"  # noqa: S608
        f" p.timeline FROM {_PAGES} WHERE {where} AND p.quarantined_at IS NULL AND (instr(p.compiled_truth, '[ ]')"
        " OR instr(p.timeline, '[ ]') OR (c.kind = 'notebook' AND p.slug = :todos))"
        " AND NOT (c.kind = 'notebook' AND p.slug GLOB 'daily/*') ORDER BY p.id",
        {**values, "todos": TODO_LIST},
    )
    return [ChecklistPage(*row) for row in rows]


class ChangedPage(NamedTuple):
    """A changed page with the author of its current version."""

    slug: str
    title: str
    type: str
    version: int
    at: str
    is_new: bool
    collection: str
    author: str
    """"owner", the name of a client or of a member of a shared space, or "" if unknown."""
    agent: str
    """The program that wrote the last version, or ""."""
    source: str
    batch: str
    """The id of the import or sync that read the last version from a file, or ""."""
    base: int
    """The version before the change, or 0 if it is unknown or the page is new."""


def changed_pages(db: "Database", since: str, limit: int) -> list[ChangedPage]:
    """Return up to `limit` pages that were changed since a time, latest first.

    If the latest version only added a fact, the author of that fact is returned as the author. If it was read from
    a file, author and agent are empty.
    """
    rows = db.rows(
        f"SELECT {_ADDRESS}, p.title, p.type, p.version, p.updated_at, p.created_at >= :since, c.name,"  # noqa: S608
        " coalesce(a.author, ''), coalesce(a.agent, ''), coalesce(a.source, ''), a.version, a.base_version,"
        " r.import_id, r.page_version, CASE WHEN a.version IS NULL OR a.version < p.version THEN (SELECT s.author"
        " FROM assertions AS s WHERE s.page_id = p.id AND s.created_at >= :since ORDER BY s.id DESC LIMIT 1) END"
        f" FROM {_PAGES} LEFT JOIN page_authors AS a ON a.page_id = p.id AND a.version ="
        " (SELECT max(version) FROM page_authors WHERE page_id = p.id)"
        " LEFT JOIN raw_imports AS r ON r.page_id = p.id AND r.is_active = 1"
        " WHERE p.quarantined_at IS NULL AND p.updated_at >= :since"
        " ORDER BY p.updated_at DESC, p.id DESC LIMIT :limit",
        {"since": since, "limit": limit},
    )
    pages = []
    for row in rows:
        slug, title, kind, version, at, is_new, collection, author, agent, source, written, base = row[:12]
        batch, read, stated_by = row[12:]
        is_file = bool(batch) and not batch.startswith("edit-") and (written or 0) < (read or 0)
        if is_file:
            author, agent, source, base = "", "", "", 0
        elif stated_by:
            author, agent, source, base = stated_by, stated_by if stated_by != "owner" else "", "", 0
        batch = batch if is_file or not author else ""
        page = (slug, title, kind, version, at, bool(is_new), collection)
        base = (base or 0) if written == version else 0
        pages.append(ChangedPage(*page, author, agent, source, batch or "", base))
    return pages


def open_counts(db: "Database") -> dict[str, int]:
    """Return the number of items of each kind that await a decision by a person.

    "stale" counts pages whose text is older than their timeline, as of the last check. "expired" counts pages,
    lines and facts that have expired but are not erased yet.
    """
    row = db.one(
        "SELECT (SELECT count(*) FROM proposals WHERE decided_at IS NULL),"
        " (SELECT count(*) FROM contradictions WHERE resolved_at IS NULL AND type <> 'stale'),"
        " (SELECT count(*) FROM knowledge_gaps WHERE resolved_at IS NULL),"
        " (SELECT count(*) FROM pages) - (SELECT count(*) FROM pages WHERE quarantined_at IS NULL)"
        " - (SELECT count(*) FROM expired WHERE kind = 'page'),"
        " (SELECT count(*) FROM contradictions WHERE resolved_at IS NULL AND type = 'stale'),"
        " (SELECT count(*) FROM expired)"
    )
    kinds = ("proposals", "contradictions", "gaps", "quarantine", "stale", "expired")
    return dict(zip(kinds, row or (0,) * len(kinds), strict=True))


class LastLook(NamedTuple):
    """The times of the owner's last visit to the list of changes."""

    seen_until: str
    """The owner has seen all changes before this time."""
    visit_started: str
    loaded_at: str
    """The last time that the list was loaded during the visit."""

    @classmethod
    def read(cls, db: "Database") -> "LastLook | None":
        """Return the stored times, or None if the owner has never opened the list."""
        row = db.one("SELECT value FROM quaid_config WHERE key = ?", (LAST_LOOK_KEY,))
        return cls(*str(row[0]).split()) if row else None

    def save(self, tx: "Transaction") -> None:
        tx.execute(
            "INSERT OR REPLACE INTO quaid_config (key, value) VALUES (?, ?)", (LAST_LOOK_KEY, " ".join(self))
        )


LAST_LOOK_KEY = "last_look"
"""Key in quaid_config under which the fields of LastLook are stored, separated by spaces."""


DATED_KINDS = ("entry", "log", "page", "due", "link", "fact")

_IS_DAILY_LOG = (
    "(p.slug GLOB 'daily/[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'"
    " AND p.collection_id IN (SELECT id FROM collections WHERE kind = 'notebook'))"
)
"""SQL condition: page p is a daily log page of a notebook."""


class DatedItem(NamedTuple):
    """An item with a date: a timeline entry, daily log, page, due date, link or fact."""

    day: str
    kind: str
    """One of DATED_KINDS."""
    state: str
    """"begun" or "ended" for links and facts, the page's status for due dates, and empty for other kinds."""
    slug: str
    title: str
    type: str
    wing: str
    text: str
    source: str
    line: int | None
    """For an entry, its line in the timeline, from 1. For a log, its line in the file, if known. Otherwise None."""
    id: int


class NameCount(NamedTuple):
    """A wing (top-level category) or page type, and its number of visible pages."""

    name: str
    pages: int


class DatedFilter(NamedTuple):
    """Filters for dated items. An empty `type`, `wing`, `collection` or `text` matches everything."""

    since: str = "0000"
    until: str = "9999-12-31"
    type: str = ""
    wing: str = ""
    collection: str = ""
    text: str = ""

    def items(self, db: "Database", kinds: tuple[str, ...], most: int) -> list[DatedItem]:
        """Return up to `most` items of each kind and state, newest first.

        Daily logs (kind "log") are not included; see daily_logs().
        """
        items: list[DatedItem] = []
        for kind in kinds:
            if kind == "log":
                continue
            if kind in _DATED_SOURCES:
                items += _select_dated(db, kind, _DATED_SOURCES[kind], self, most)
                continue
            text, tables = _DATED_SPANS[kind]
            source = "o.source_ref" if kind == "fact" else "''"
            for state, column in (("begun", "o.valid_from"), ("ended", "o.valid_until")):
                parts = (column, f"'{state}'", text, source, "NULL", "o.id", tables, f"{column} IS NOT NULL")
                items += _select_dated(db, kind, parts, self, most)
        return sort_dated(items)

    def daily_logs(self, db: "Database", most: int) -> list[tuple[DatedItem, bool]]:
        """Return up to `most` daily logs of notebooks that match the filter, with their full text, newest first.

        The second value of each pair is True if the text is the whole file. Line numbers in the text are then
        also line numbers in the file.
        """
        rows = db.rows(
            "SELECT substr(p.slug, 7) AS day, (SELECT name FROM collections WHERE id = p.collection_id),"  # noqa: S608
            " p.slug, p.title, p.type, p.wing, p.compiled_truth, p.timeline, p.frontmatter, p.id FROM pages AS p"
            f" WHERE {_IS_DAILY_LOG} AND day BETWEEN ?1 AND ?2{_DATED_CONDITIONS}"
            " AND (?6 = '' OR instr(lower(p.compiled_truth), ?6) OR instr(lower(p.timeline), ?6)"
            " OR instr(lower(p.title), ?6)) ORDER BY day DESC, p.id DESC LIMIT ?7",
            (*self[:5], self.text.lower(), most),
        )
        return [
            (
                DatedItem(
                    *(day, "log", "", address(collection, slug), title, kind, wing),
                    *(f"{truth}\n\n{timeline}" if timeline else truth, "", None, page_id),
                ),
                not timeline and front == "{}",
            )
            for day, collection, slug, title, kind, wing, truth, timeline, front, page_id in rows
        ]


_DATED_SOURCES: dict[str, tuple[str, ...]] = {
    # Each value is (day, state, text, source, line, id, tables with the page p, condition).
    "entry": (
        *("t.date", "''", "t.summary", "t.source", "t.line", "t.id"),
        "timeline_entries AS t INDEXED BY timeline_entries_by_date CROSS JOIN pages AS p ON p.id = t.page_id",
        "t.date BETWEEN ?1 AND ?2",
    ),
    "page": (
        *(OWN_DAY, "''", "p.summary", "''", "NULL", "p.id", "pages AS p INDEXED BY pages_dated"),
        """(instr(p.frontmatter, '"date"') OR p.slug GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*')"""
        f" AND NOT {_IS_DAILY_LOG}",
    ),
    "due": (
        *("substr(p.frontmatter ->> '$.due', 1, 10)", "coalesce(p.frontmatter ->> '$.status', '')"),
        *("p.summary", "''", "NULL", "p.id", "pages AS p INDEXED BY pages_due"),
        """instr(p.frontmatter, '"due"') AND p.frontmatter ->> '$.due' GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]*'""",
    ),
}
_DATED_SPANS = {
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
_DATED_CONDITIONS = (
    " AND p.quarantined_at IS NULL AND (?3 = '' OR p.type = ?3) AND (?4 = '' OR p.wing = ?4)"
    " AND (?5 = '' OR p.collection_id = (SELECT id FROM collections WHERE name = ?5))"
)


def sort_dated(items: list[DatedItem]) -> list[DatedItem]:
    """Sort by day, newest first; within a day by kind, then by descending id."""
    by_kind = sorted(items, key=lambda item: (DATED_KINDS.index(item.kind), -item.id))
    return sorted(by_kind, key=lambda item: item.day, reverse=True)


def _select_dated(
    db: "Database", kind: str, parts: tuple[str, ...], chosen: DatedFilter, most: int
) -> list[DatedItem]:
    day, state, text, source, line, id_, tables, condition = parts
    rows = db.rows(
        f"SELECT {day} AS day, {state}, p.slug, (SELECT name FROM collections WHERE id = p.collection_id), p.title,"  # noqa: S608
        f" p.type, p.wing, {text} AS content, {source}, {line}, {id_} FROM {tables} WHERE {condition}"
        f" AND day BETWEEN ?1 AND ?2{_DATED_CONDITIONS}"
        " AND (?6 = '' OR instr(lower(content), ?6) OR instr(lower(p.title), ?6))"
        " ORDER BY day DESC, 11 DESC LIMIT ?7",
        (*chosen[:5], chosen.text.lower(), most),
    )
    return [
        DatedItem(day, kind, state, address(collection, slug), *rest)
        for day, state, slug, collection, *rest in rows
    ]


def count_pages_by(db: "Database", column: Literal["wing", "type"]) -> list[NameCount]:
    """Return the wings (top-level categories) or page types with their number of pages, largest first."""
    rows = db.rows(
        f"SELECT {column}, count(*) FROM pages WHERE quarantined_at IS NULL GROUP BY {column} ORDER BY 2 DESC, 1"  # noqa: S608
    )
    return [NameCount(*row) for row in rows]


def pages_of_wing(db: "Database", wing: str, most: int) -> list[int]:
    """Return the ids of up to `most` visible pages in a wing (top-level category), most links first."""
    rows = db.rows(
        "SELECT p.id, (SELECT count(*) FROM links WHERE from_page_id = p.id)"
        " + (SELECT count(*) FROM links WHERE to_page_id = p.id) AS ties FROM pages AS p"
        " WHERE p.wing = ? AND p.quarantined_at IS NULL ORDER BY ties DESC, p.id LIMIT ?",
        (wing, most),
    )
    return [page_id for page_id, _ in rows]


def tagged_in_wing(db: "Database", wing: str) -> dict[str, list[str]]:
    """Return the addresses of the pages of a wing in writable collections, by tag."""
    by_tag: dict[str, list[str]] = {}
    for tag, collection, slug in db.rows(
        "SELECT t.tag, c.name, p.slug FROM pages AS p JOIN tags AS t ON t.page_id = p.id"
        " JOIN collections AS c ON c.id = p.collection_id AND c.writable = 1"
        " WHERE p.wing = ? AND p.quarantined_at IS NULL ORDER BY t.tag, c.name, p.slug",
        (wing,),
    ):
        by_tag.setdefault(tag, []).append(address(collection, slug))
    return by_tag


def link_beginnings(db: "Database", edges: "list[GraphLink]") -> dict[int, str]:
    """Return the day on which each of these links began, by link id.

    The day is the first of these that exists:

    - the link's start date
    - the date of the timeline entry that contains the link
    - the first day stated by the source page, or else the day on which that page was added to the memory, but
      not before the first day stated by the target page

    A link without a start date is left out if it ended on or before that day.
    """
    undated = [edge for edge in edges if not edge.valid_from]
    ends = sorted({end for edge in undated for end in (edge.from_id, edge.to_id)})
    page_days = {
        page_id: (own_day, made)
        for page_id, own_day, made in db.rows(
            f"SELECT p.id, {FIRST_STATED_DAY}, substr(p.created_at, 1, 10) FROM json_each(?) AS wanted"  # noqa: S608
            " CROSS JOIN pages AS p ON p.id = wanted.value",
            (str(ends),),
        )
    }
    entries: dict[int, str] = dict(
        db.rows(
            "SELECT l.id, (SELECT t.date FROM timeline_entries AS t WHERE t.page_id = l.from_page_id"
            " AND t.line <= l.line ORDER BY t.line DESC LIMIT 1) FROM json_each(?) AS wanted"
            " CROSS JOIN links AS l ON l.id = wanted.value WHERE l.part = 'timeline'",
            (str([edge.id for edge in undated]),),
        )
    )
    beginnings = {edge.id: edge.valid_from for edge in edges if edge.valid_from}
    for edge in undated:
        own_day, made = page_days[edge.from_id]
        day = entries.get(edge.id) or max(own_day or made, page_days[edge.to_id][0] or "")
        if not edge.valid_until or day < edge.valid_until:
            beginnings[edge.id] = day
    return beginnings


class Stats(NamedTuple):
    """Numbers of rows, file sizes and other statistics of a memory."""

    path: str
    schema_version: int
    pages: int
    pages_by_type: dict[str, int]
    links: int
    tags: int
    timeline_entries: int
    raw_data: int
    chunks: int
    model: str | None
    contradictions: int
    gaps: int
    imports: int
    size: int
    wal_size: int
    updated_at: str | None


def database_stats(db: "Database") -> Stats:
    """Return the statistics of a memory, all from one snapshot."""
    with db.reading():
        by_type = count_pages_by(db, "type")
        return Stats(
            path=db.path,
            schema_version=SCHEMA_VERSION,
            pages=sum(stats.pages for stats in by_type),
            pages_by_type=dict(by_type),
            links=links.count(db),
            tags=_count_rows(db, "tags"),
            timeline_entries=_count_rows(db, "timeline_entries"),
            raw_data=_count_rows(db, "raw_data"),
            chunks=_count_rows(
                db, "page_embeddings WHERE model = (SELECT name FROM embedding_models WHERE active = 1)"
            ),
            model=_first_value(db, "SELECT name FROM embedding_models WHERE active = 1"),
            contradictions=_count_rows(db, "contradictions WHERE resolved_at IS NULL"),
            gaps=_count_rows(db, "knowledge_gaps WHERE resolved_at IS NULL"),
            imports=_count_rows(db, "import_manifest"),
            size=db.file_size(),
            wal_size=db.file_size("-wal"),
            updated_at=_first_value(db, "SELECT max(updated_at) FROM pages WHERE quarantined_at IS NULL"),
        )


def latest_changes(db: "Database") -> tuple[int, str, int]:
    """Return the number of visible pages, the time of the latest change, and the highest id of a knowledge gap."""
    row = db.one(
        "SELECT count(*), coalesce(max(updated_at), ''), (SELECT coalesce(max(id), 0) FROM knowledge_gaps)"
        " FROM pages WHERE quarantined_at IS NULL"
    )
    return (row[0], row[1], row[2]) if row else (0, "", 0)


def _count_rows(db: "Database", what: str) -> int:
    return int(_first_value(db, f"SELECT count(*) FROM {what}") or 0)  # noqa: S608 (only constants above)


def _first_value(db: "Database", sql: str) -> str | None:
    row = db.one(sql)
    return None if row is None else row[0]
