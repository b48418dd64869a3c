"""Hide, list, restore and erase expired pages, lines and facts, and filter them on read-only connections.

Expired items are hidden at the end of every write and before every operation, so no background process is
needed. A hidden page is quarantined. A hidden line or fact is moved to the table `expired`.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import Busy, DiskFull
from quaid.model import dates, page as page_model
from quaid.model.dates import Clock

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction

HIDE_PATIENCE = 1.0
"""Seconds that a read waits for the writer lock to hide expired rows.

After that, the rows are hidden from this connection only.
"""

RETENTION = "retention."
GRACE_SETTING = "expiry_grace"
SHORTEST_LINE = 8
"""A line with fewer characters is erased only from those former versions in which it has its expiry mark."""

_PAST = "expires_at <= ?1 AND (length(expires_at) > 10 OR expires_at < ?2)"
"""SQL condition that `expires_at`, a day or a time, is past. ?1 is the current time and ?2 the local day."""


class RetentionRule(NamedTuple):
    """A setting such as `retention.type.source`, which hides pages a given time after their last change."""

    setting: str
    column: str
    """The column of pages that is compared: collection_id or type."""
    value: str
    period: str

    def before(self, clock: Clock) -> str:
        """Return the time up to which a page must have been last changed to be expired now."""
        seconds = dates.retention_seconds(self.period) or dates.LONGEST_PERIOD
        return dates.timestamp(dates.seconds_of(clock.now) - seconds)


def retention_rules(db: "Database | Transaction") -> list[RetentionRule]:
    """Return the retention settings, without those for collections that do not exist."""
    rows = db.rows(
        "SELECT s.key, c.id, s.value FROM config AS s LEFT JOIN collections AS c"
        " ON s.key = 'retention.collection.' || c.name WHERE s.key >= 'retention.' AND s.key < 'retention/'"
    )
    rules = []
    for key, collection_id, period in rows:
        if collection_id is not None:
            rules.append(RetentionRule(key, "collection_id", collection_id, period))
        elif key.startswith("retention.type."):
            rules.append(RetentionRule(key, "type", key.removeprefix("retention.type."), period))
    return rules


def _pages_past_retention(rule: RetentionRule, limit: str = "") -> str:
    return (
        "SELECT p.id FROM pages AS p WHERE p.quarantined_at IS NULL"  # noqa: S608 (fixed parts)
        f" AND p.{rule.column} = ?1 AND p.updated_at <= ?2 AND NOT EXISTS"
        " (SELECT 1 FROM expirations AS e WHERE e.page_id = p.id AND e.kind = 'page')" + limit
    )


def _is_due(db: "Database | Transaction", clock: Clock) -> bool:
    """Return True if a page, line or fact has expired but is not hidden yet."""
    row = db.one(
        f"SELECT EXISTS (SELECT 1 FROM expirations WHERE {_PAST})"  # noqa: S608 (fixed parts)
        f" OR EXISTS (SELECT 1 FROM fact_expirations WHERE {_PAST}),"
        " EXISTS (SELECT 1 FROM config WHERE key >= 'retention.' AND key < 'retention/')",
        clock,
    )
    if row is None or not any(row):
        return False
    return bool(row[0]) or any(
        db.one(_pages_past_retention(rule, " LIMIT 1"), (rule.value, rule.before(clock)))
        for rule in retention_rules(db)
    )


def hide_expired(db: "Database", clock: Clock) -> None:
    """Hide all pages, lines and facts that have expired.

    If the memory cannot be written, they are hidden from this connection only.
    """
    if not _is_due(db, clock):
        return

    def hide(tx: "Transaction") -> None:
        hide_due(tx, clock)
        tx.begin_changes()  # a restricted caller may not change what it cannot see, but hiding may

    if db.writable:
        patience, db.lock.patience = db.lock.patience, HIDE_PATIENCE
        try:
            db.write(hide)
            return
        except (Busy, DiskFull):
            pass
        finally:
            db.lock.patience = patience
    _shadow(db, clock)


def hide_due(tx: "Transaction", clock: Clock) -> None:
    """Hide all pages, lines and facts that have expired, in this transaction."""
    if not _is_due(tx, clock):
        return
    for page_id, reason in _due_pages(tx, clock).items():
        _hide_page(tx, page_id, reason, clock.now)
    lines = tx.rows(f"SELECT DISTINCT page_id FROM expirations WHERE kind = 'line' AND {_PAST}", clock)  # noqa: S608
    for (page_id,) in lines:
        _hide_lines(tx, page_id, clock)
    facts = tx.rows(f"SELECT fact_id, expires_at FROM fact_expirations WHERE {_PAST} ORDER BY fact_id", clock)  # noqa: S608
    for fact_id, moment in facts:
        _hide_fact(tx, fact_id, moment, clock.now)


def _due_pages(db: "Database | Transaction", clock: Clock) -> dict[int, str]:
    """Return expired pages: by page id, the time of expiry or the name of the retention setting."""
    due: dict[int, str] = dict(
        db.rows(f"SELECT page_id, expires_at FROM expirations WHERE kind = 'page' AND {_PAST}", clock)  # noqa: S608
    )
    for rule in retention_rules(db):
        for (page_id,) in db.rows(_pages_past_retention(rule), (rule.value, rule.before(clock))):
            due.setdefault(page_id, rule.setting)
    for page_id in list(due):  # pages made from headings expire with the page of their file
        rows = db.rows("SELECT page_id FROM file_nodes WHERE file_page_id = ?", (page_id,))
        due.update({heading: due[page_id] for (heading,) in rows})
    return due


def _hide_page(tx: "Transaction", page_id: int, reason: str, now: str) -> None:
    """Quarantine a page without changing its version, so that shared copies of it do not change."""
    if not tx.one("SELECT 1 FROM pages WHERE id = ? AND quarantined_at IS NULL", (page_id,)):
        return
    tx.execute("UPDATE pages SET quarantined_at = ? WHERE id = ?", (now, page_id))
    tx.execute(
        "INSERT INTO expired (page_id, kind, reason, hidden_at) VALUES (?, 'page', ?, ?)",
        (page_id, reason, now),
    )
    resolve_links_to(tx, page_id)


def resolve_links_to(tx: "Transaction", page_id: int) -> None:
    """Resolve the links to a page again after the page was hidden or restored."""
    from quaid.storage import links

    links.resolve_again(
        tx, [n for (n,) in tx.rows("SELECT name FROM page_names WHERE page_id = ?", (page_id,))]
    )


def _hide_lines(tx: "Transaction", page_id: int, clock: Clock) -> None:
    row = tx.one(
        "SELECT slug, title, frontmatter, compiled_truth, timeline FROM pages WHERE id = ?", (page_id,)
    )
    if row is None:
        return
    parts = {}
    for part, text in (("truth", str(row[3])), ("timeline", str(row[4]))):
        rest, gone = dates.without_expired(text, clock)
        parts[part] = rest.rstrip("\n") if gone else text
        for line in gone:
            _drop_quotes(tx, page_id, line.text)
            tx.execute(
                "INSERT INTO expired (page_id, kind, reason, hidden_at, part, line, text)"
                " SELECT ?1, 'line', ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS"
                " (SELECT 1 FROM expired WHERE page_id = ?1 AND kind = 'line' AND part = ?4 AND text = ?6)",
                (page_id, line.moment, clock.now, part, line.number, line.text),
            )
    _set_text(tx, page_id, str(row[0]), str(row[1]), json.loads(row[2]), parts["truth"], parts["timeline"])


def _set_text(
    tx: "Transaction",
    page_id: int,
    slug: str,
    title: str,
    front: dict[str, object],
    truth: str,
    timeline: str,
) -> None:
    """Replace the text of a page without creating a new version."""
    from quaid.storage import page_edits  # imported late, because it is needed only if lines have expired

    page = page_model.build_page(slug, front, truth, timeline, fallback_title=title)
    tx.execute(
        "UPDATE pages SET title = ?, summary = ?, room = ?, compiled_truth = ?, timeline = ? WHERE id = ?",
        (page.title, page.summary, page.room, truth, timeline, page_id),
    )
    page_edits.derive(tx, page_id, page)


def _drop_quotes(tx: "Transaction", page_id: int, text: str) -> None:
    """Delete the contradictions of a page that quote an expired text. The next check restores those that remain."""
    words = text.split("\n")[0].strip(" \t-*+[]x")
    words = words[: words.find(dates.EXPIRY_MARK)].strip() if dates.EXPIRY_MARK in words else words
    if words:
        tx.execute(
            "DELETE FROM contradictions WHERE ?1 IN (page_id, other_page_id)"
            " AND (instr(evidence, ?2) OR instr(description, ?2))",
            (page_id, words),
        )


_FACT_COLUMNS = (
    "id, page_id, subject, subject_key, predicate, object, valid_from, valid_until, supersedes_id, confidence,"
    " asserted_by, source_ref, evidence_text, created_at, author"
)


def set_fact_expiry(tx: "Transaction", fact_id: int, moment: str, by: str = "") -> None:
    """Set the time at which a fact expires.

    If `by` names an agent, nothing happens unless that agent recorded the fact.
    """
    tx.execute(
        "INSERT OR REPLACE INTO fact_expirations (fact_id, expires_at)"
        " SELECT id, ?2 FROM assertions WHERE id = ?1 AND ?3 IN ('', author)",
        (fact_id, moment, by),
    )


def _hide_fact(tx: "Transaction", fact_id: int, moment: str, now: str) -> None:
    row = tx.one(f"SELECT {_FACT_COLUMNS} FROM assertions WHERE id = ?", (fact_id,))  # noqa: S608
    if row is None:
        return
    later = [id for (id,) in tx.rows("SELECT id FROM assertions WHERE supersedes_id = ?", (fact_id,))]
    text = f"{row[2]} {row[4]} {row[5]}"
    tx.execute(
        "INSERT INTO expired (page_id, kind, reason, hidden_at, text, data) VALUES (?, 'fact', ?, ?, ?, ?)",
        (row[1], moment, now, text, json.dumps({"row": list(row), "superseded_by": later})),
    )
    _drop_quotes(tx, row[1], str(row[5]))
    tx.execute("DELETE FROM assertions WHERE id = ?", (fact_id,))
    tx.execute(
        "UPDATE pages SET version = version WHERE id = ?", (row[1],)
    )  # the trigger marks a shared page to be sent to its hub


class ExpiredRow(NamedTuple):
    """A hidden page, line or fact."""

    id: int
    kind: str
    page_id: int
    collection: str
    slug: str
    title: str
    reason: str
    hidden_at: str
    part: str
    line: int
    text: str
    data: str
    file: str
    """The path of the page's file in its folder, or ""."""
    writable: bool
    """False if the file or the shared space of the item cannot be changed, so that the item stays hidden."""
    is_automatic: bool
    """True if the item is erased automatically after the grace period.

    Pages and lines in attached folders, except notebooks, and pages by a person that an agent made expire, are
    left to a person.
    """

    def show_line(self, tx: "Transaction", text: str) -> tuple[str, str]:
        """Return text and timeline of the page with the expired line at its former place, or at the end."""
        _, truth, timeline = self.page_text(tx)
        parts = {"truth": truth, "timeline": timeline}
        lines = parts[self.part].split("\n") if parts[self.part] else []
        place = self.line - 1
        if place < len(lines) and not lines[place].strip():
            lines[place : place + 1] = text.split("\n")
        else:
            lines += text.split("\n")
        parts[self.part] = "\n".join(lines)
        return parts["truth"], parts["timeline"]

    def show_fact(self, tx: "Transaction", expires_at: str | None) -> None:
        """Restore an expired fact with its former id."""
        data = json.loads(self.data)
        values = data["row"]
        values[1] = self.page_id
        if not tx.one("SELECT 1 FROM assertions WHERE id = ?", (values[8],)):
            values[8] = None  # the superseded fact no longer exists
        marks = ", ".join("?" * len(values))
        tx.execute(f"INSERT INTO assertions ({_FACT_COLUMNS}) VALUES ({marks})", values)  # noqa: S608 (fixed columns)
        tx.execute(
            "UPDATE assertions SET supersedes_id = ? WHERE supersedes_id IS NULL"
            " AND id IN (SELECT value FROM json_each(?))",
            (values[0], json.dumps(data["superseded_by"])),
        )
        if expires_at:
            set_fact_expiry(tx, values[0], expires_at)

    def erase(self, tx: "Transaction") -> None:
        """Erase an expired line or fact from the table `expired`, former versions and the indexes."""
        # Imported late, because most commands erase nothing.
        from quaid.storage import erase, history, vectors

        erase.enable_secure_delete(tx)
        self.drop(tx)
        if self.kind == "line":
            history.drop_versions_with(tx, self.page_id, self.text, everywhere=True)
            if len(dates.line_words(self.text)) >= SHORTEST_LINE:
                history.drop_versions_with(tx, self.page_id, dates.line_words(self.text))
        vectors.drop_all_unused_vectors(tx)
        erase.optimize_indexes(tx)

    def drop(self, tx: "Transaction") -> None:
        """Delete the row from the table `expired`."""
        tx.execute("DELETE FROM expired WHERE id = ?", (self.id,))

    def page_text(self, db: "Database | Transaction") -> tuple[dict[str, object], str, str]:
        """Return the front matter, text and timeline of the item's page, hidden or not."""
        row = db.one("SELECT frontmatter, compiled_truth, timeline FROM pages WHERE id = ?", (self.page_id,))
        return ({}, "", "") if row is None else (json.loads(row[0]), str(row[1]), str(row[2]))

    def show_page(self, tx: "Transaction") -> None:
        """Make an expired page visible.

        The caller must set a new expiry date in its front matter in the same transaction.
        """
        tx.execute("UPDATE pages SET quarantined_at = NULL WHERE id = ?", (self.page_id,))
        resolve_links_to(tx, self.page_id)


_LET_EXPIRE_BY_AGENT = (
    "e.kind = 'page' AND e.reason NOT LIKE 'retention.%'"
    " AND (SELECT agent FROM page_authors WHERE page_id = p.id ORDER BY version DESC LIMIT 1) <> ''"
    " AND (EXISTS (SELECT 1 FROM page_authors WHERE page_id = p.id AND agent = '')"
    " OR NOT EXISTS (SELECT 1 FROM page_authors WHERE page_id = p.id AND version = 1))"
)
"""SQL condition for a page with a version by a person whose latest version, by an agent, has an expiry date."""

_ROWS_SQL = (
    "SELECT e.id, e.kind, e.page_id, c.name, p.slug, p.title, e.reason, e.hidden_at, coalesce(e.part, ''),"  # noqa: S608 (fixed parts)
    " coalesce(e.line, 0), e.text, e.data, coalesce((SELECT relative_path FROM file_state WHERE page_id = p.id), ''),"
    " (c.root_path IS NULL OR (c.writable AND c.state = 'active' AND p.id NOT IN (SELECT page_id FROM file_nodes)"
    " AND (e.kind <> 'line' OR NOT EXISTS"
    " (SELECT 1 FROM file_state WHERE page_id = p.id AND relative_path NOT LIKE '%.md'))))"
    " AND NOT EXISTS (SELECT 1 FROM spaces AS s"
    " WHERE s.collection_id = c.id AND s.member_right NOT IN ('write', 'owner')),"
    f" (c.root_path IS NULL OR c.kind = 'notebook' OR e.kind = 'fact') AND NOT ({_LET_EXPIRE_BY_AGENT})"
    " FROM expired AS e JOIN pages AS p ON p.id = e.page_id JOIN collections AS c ON c.id = p.collection_id"
)


def expired_rows(
    db: "Database | Transaction", *, hidden_before: str = "9999", slug: str = ""
) -> list[ExpiredRow]:
    """Return the hidden pages, lines and facts in the order in which they were hidden.

    The result can be limited to items hidden up to the time `hidden_before`, and to pages with one slug.
    """
    rows = db.rows(
        f"{_ROWS_SQL} WHERE e.hidden_at <= ?1 AND (?2 = '' OR p.slug = ?2) ORDER BY e.hidden_at, e.id",
        (hidden_before, slug),
    )
    return [ExpiredRow._make((*row[:13], *map(bool, row[13:]))) for row in rows]


def has_rows_before(db: "Database", hidden_before: str) -> bool:
    """Return True if an item that was hidden up to this time can be erased automatically."""
    row = db.one("SELECT 1 FROM expired WHERE hidden_at <= ? LIMIT 1", (hidden_before,))
    return row is not None and any(
        row.writable and row.is_automatic for row in expired_rows(db, hidden_before=hidden_before)
    )


def expired_lines(db: "Database", page_id: int) -> frozenset[str]:
    """Return the words of the expired lines of a page (see dates.line_words)."""
    rows = db.rows("SELECT text FROM expired WHERE page_id = ? AND kind = 'line'", (page_id,))
    return frozenset(dates.line_words(str(text)) for (text,) in rows)


def expired_page(
    db: "Database", slug: str, collection: str, *, anywhere: bool = True
) -> tuple[str, str] | None:
    """Return the collection of an expired page with this slug and the reason for its expiry, or None.

    With `anywhere`, all collections are searched if `collection` is the default collection.
    """
    row = db.one(
        "SELECT c.name, e.reason FROM (SELECT page_id, reason FROM expired WHERE kind = 'page'"
        " UNION ALL SELECT page_id, expires_at FROM expirations WHERE ?3 AND kind = 'page') AS e"
        " JOIN main.pages AS p ON p.id = e.page_id JOIN collections AS c ON c.id = p.collection_id"
        " WHERE p.slug = ?1 AND (?2 = c.name OR (?4 AND ?2 = 'default')) LIMIT 1",
        (slug, collection, bool(db.views), anywhere),
    )
    return None if row is None else (str(row[0]), str(row[1]))


# Filtering on read-only connections

_TEXTS = {"compiled_truth", "timeline", "summary", "chunk_text", "detail"}


def _shadow(db: "Database", clock: Clock) -> None:
    """Shadow tables with temporary views of the same names that leave out expired pages, lines and facts."""
    db.set_views({})
    pages = json.dumps(list(_due_pages(db, clock)))
    rows = db.rows(f"SELECT DISTINCT page_id FROM expirations WHERE kind = 'line' AND {_PAST}", clock)  # noqa: S608
    lines = json.dumps([page_id for (page_id,) in rows])
    past = _PAST.replace("?1", f"'{clock.now}'").replace("?2", f"'{clock.today}'")
    views = {}
    for table in ("pages", "chunks", "assertions", "timeline_entries"):
        page = "id" if table == "pages" else "page_id"
        names = [str(name) for (name,) in db.rows("SELECT name FROM pragma_table_info(?)", (table,))]
        columns = [
            f"iif({page} IN (SELECT value FROM json_each('{lines}')), visible_text({name}), {name}) AS {name}"  # noqa: S608
            if name in _TEXTS
            else name
            for name in names
        ]
        facts = (
            f" AND id NOT IN (SELECT fact_id FROM fact_expirations WHERE {past})"  # noqa: S608
            if table == "assertions"
            else ""
        )
        views[table] = (
            f"SELECT {', '.join(columns)}, id AS rowid FROM main.{table}"  # noqa: S608 (ids and times)
            f" WHERE {page} NOT IN (SELECT value FROM json_each('{pages}')){facts}"
        )
    db.connection.create_scalar_function(
        "visible_text", lambda *text: dates.unexpired_text(str(text[0]), clock), 1
    )
    db.set_views(views)
