"""Store contradictions with their evidence, and load the snapshot of the memory that a check reads."""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import NotFound
from quaid.model import facts, slug as slugs, timeline
from quaid.model.contradictions import ContradictionFinding, find_contradictions
from quaid.model.english import candidate_names, may_mention_departure
from quaid.model.facts import NameIndex, PageInfo, Snapshot, SnapshotFact, StalePage
from quaid.model.links import GraphLink
from quaid.model.slug import fold_name
from quaid.storage import as_json, facts as assertions
from quaid.storage.sqlite.connection import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from quaid.model.contradictions import Citation
    from quaid.storage.sqlite.connection import Database


class EvidenceQuote(NamedTuple):
    """One side of a contradiction. Quotes stored by earlier releases lack the fields after `source`."""

    slug: str
    part: str
    line: int | None
    quote: str
    source: str
    title: str = ""
    """Title of the page."""
    says: str = ""
    """The statement of a fact or link, such as "lives_in Oslo". It is empty for text, which is quoted instead."""
    since: str | None = None
    until: str | None = None

    @property
    def is_written(self) -> bool:
        """Return True if the quote is from the page itself: its compiled truth, timeline or front matter."""
        return self.part in ("truth", "timeline", "frontmatter")


class _QuotedPage(NamedTuple):
    address: str
    title: str
    truth: str
    timeline: str
    changed_at: tuple[str, str]
    """The times of the last change of the truth (the text above the timeline) and of the timeline."""

    def as_of(self, time: str) -> tuple[str, str]:
        """Return truth and timeline, with "" in place of a text that changed after `time`.

        An empty `time` means no limit.
        """
        truth_changed, timeline_changed = (bool(time) and changed > time for changed in self.changed_at)
        return "" if truth_changed else self.truth, "" if timeline_changed else self.timeline


def _as_of_today(cite: "Citation") -> "Citation":
    return cite._replace(
        recorded_at="", needles=(*cite.needles, cite.object) if cite.object else cite.needles
    )


def _quote_side(cite: "Citation", page: _QuotedPage) -> EvidenceQuote:
    more = (page.title, cite.says, cite.since, cite.until)
    if cite.part in ("truth", "timeline") and not cite.quote:
        # A stale page has a timeline that is newer than its truth. Quote the first line of the truth, or the
        # newest timeline entry.
        lines = (page.truth if cite.part == "truth" else page.timeline).split("\n")
        line, quote = _first_telling_line(lines, cite.part)
        return EvidenceQuote(page.address, cite.part, line, quote, cite.source, *more)
    if cite.part:
        return EvidenceQuote(
            page.address, cite.part, cite.line, facts.quote_line(cite.quote), cite.source, *more
        )
    place = facts.find_quote(*page.as_of(cite.recorded_at), cite.needles)
    # "left Brex" is not evidence for "is at Brex".
    if place and not (cite.recorded_at and may_mention_departure(place.quote)):
        return EvidenceQuote(page.address, place.part, place.line, place.quote, cite.source, *more)
    return EvidenceQuote(page.address, "facts", None, cite.quote, cite.source, *more)


def _first_telling_line(lines: list[str], part: str) -> tuple[int | None, str]:
    """Return number and text of the newest timeline entry, or of the first line that is not a heading.

    Blank lines are skipped. Return (None, "") if all lines are blank or headings.
    """
    if part == "timeline":
        entries = timeline.parse("\n".join(lines))
        if entries:
            newest = max(entries, key=lambda entry: entry.date)
            return newest.line, facts.quote_line(f"{newest.date} {newest.summary}")
    numbered = [
        (number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")
    ]
    return (numbered[0][0], facts.quote_line(numbered[0][1])) if numbered else (None, "")


_QUOTED_PAGES = (
    "SELECT p.id, c.name, p.slug, p.title, p.compiled_truth, p.timeline, p.truth_updated_at, p.timeline_updated_at"
    " FROM json_each(?) AS w"
    " JOIN pages AS p ON p.id = w.value JOIN collections AS c ON c.id = p.collection_id"
)

MOST_NAMING = 200
"""Maximum number of pages to read because they mention the title of the same page."""

LAST_CHECK_KEY = "checked_at"
"""Key in quaid_config under which the time of the last check of the whole memory is stored."""

PAGES_PER_BATCH = 500
"""At most this many pages are read at once, and this many findings are quoted at once, to limit the use of RAM."""


class Contradiction(NamedTuple):
    """A stored contradiction."""

    id: int
    type: str
    slug: str
    other_slug: str | None
    description: str
    quotes: tuple[EvidenceQuote, ...]
    detected_at: str
    resolved_at: str | None
    resolution: str

    def find_again(self, db: "Database", today: str) -> tuple[Snapshot, ContradictionFinding] | None:
        """Check for this contradiction again. Return the snapshot and the finding, or None if not found."""
        fingerprint, page_ids = _cause(db, self.id)
        snapshot = _load_snapshot(db, today, page_ids)
        snapshot = snapshot._replace(texts=list(snapshot.texts))
        for finding in find_contradictions(snapshot, self.type):
            if finding.fingerprint == fingerprint:
                return snapshot, finding
        return None

    def resolve(self, tx: Transaction, note: str, now: str) -> None:
        """Mark a contradiction as resolved. An existing note is kept if `note` is empty."""
        tx.execute(
            "UPDATE contradictions SET resolved_at = coalesce(resolved_at, ?),"
            " resolution = coalesce(nullif(?, ''), resolution) WHERE id = ?",
            (now, note, self.id),
        )


class DepartureTexts:
    """Tracks the pages whose text may mention that someone left a job, school or home.

    Reading all texts takes most of the time of a check. A process that checks repeatedly keeps this object,
    so that a text is read again only if the version of its page has changed.
    """

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}
        self._mentioning: set[int] = set()

    def update(self, db: "Database") -> list[int]:
        """Read the texts that have changed, and return the ids of all pages that may mention a departure."""
        versions: dict[int, int] = dict(db.rows("SELECT id, version FROM pages WHERE quarantined_at IS NULL"))
        changed = [page_id for page_id, version in versions.items() if self._versions.get(page_id) != version]
        self._mentioning = {
            *(self._mentioning.intersection(versions).difference(changed)),
            *(
                page_id
                for page_id, *parts in _select_texts(db, changed)
                if any(map(may_mention_departure, parts))
            ),
        }
        self._versions = versions
        return sorted(self._mentioning)


def _load_snapshot(
    db: "Database",
    today: str,
    page_ids: "Iterable[int] | None" = None,
    departures: DepartureTexts | None = None,
) -> Snapshot:
    """Return a snapshot of the whole memory, or only of the data related to the given pages.

    With `departures`, texts that mention no departure are left out, which does not change the findings.
    """
    if page_ids is not None:
        return _snapshot_around(db, page_ids, today)
    links = "l.to_page_id IS NOT NULL AND l.relationship <> 'mentions'"
    return Snapshot(
        pages={row[0]: PageInfo(*row[1:]) for row in db.rows(_PAGES)},
        names=NameIndex(db.rows(_NAMES)),
        facts=_select_facts(db, "1", ()),
        links=[GraphLink(*row) for row in db.rows(f"{_LINKS} WHERE {links}")],
        texts=_select_texts(db, departures.update(db) if departures else None),
        stale=_select_stale(db, None),
        single=assertions.single_valued_predicates(db),
        today=today,
    )


def _snapshot_around(db: "Database", page_ids: "Iterable[int]", today: str) -> Snapshot:
    """Return a snapshot of the data related to these pages.

    The snapshot contains facts on these pages and about their subjects, links, and the text of these pages and
    of pages that link to, mention or contradict them.
    """
    roots = sorted(set(page_ids))
    texts = list(_select_texts(db, sorted(_related_pages(db, roots))))
    keys = {key for (key,) in db.rows(_SUBJECTS, (str(roots),))}
    # Add the names in texts that may mention that someone left a job, school or home.
    for _, *parts in texts:
        for part in filter(may_mention_departure, parts):
            keys |= candidate_names(part)
    pages = {row for (row,) in db.rows(_CALLED, (_sorted_json(keys),))} | set(roots)
    keys |= {name for (name,) in db.rows(_NAMES_OF, (str(sorted(pages)),))}
    facts = _select_facts(
        db,
        "a.page_id IN (SELECT value FROM json_each(?)) OR a.subject_key IN (SELECT value FROM json_each(?))",
        (str(roots), _sorted_json(keys)),
    )
    near = pages | {page_id for page_id, _, _ in texts} | {fact.page_id for fact in facts}
    links = [GraphLink(*row) for row in db.rows(_LINKS_NEAR, (str(sorted(near)),))]
    near |= {tie.to_id for tie in links}
    objects = {name for fact in facts for name in (_fold_slug(fact.object), fact.subject_key)}
    near |= {row for (row,) in db.rows(_CALLED, (_sorted_json(objects),))}
    page_list = str(sorted(near))
    page_rows = db.rows(_PAGES_NEAR, (page_list,))
    return Snapshot(
        pages={row[0]: PageInfo(*row[1:]) for row in page_rows},
        names=NameIndex(db.rows(_NAMES_NEAR, (page_list,))),
        facts=facts,
        links=links,
        texts=texts,
        stale=_select_stale(db, roots),
        single=assertions.single_valued_predicates(db),
        today=today,
    )


def _related_pages(db: "Database", roots: list[int]) -> set[int]:
    """Return these pages and the pages that link to them, contain their titles or contradict them."""
    related = set(roots) | {row for (row,) in db.rows(_READERS, (str(roots),))}
    for (title,) in db.rows(
        "SELECT p.title FROM json_each(?) AS w JOIN pages AS p ON p.id = w.value", (str(roots),)
    ):
        phrase = '"' + title.replace('"', " ") + '"'
        if any(map(str.isalnum, phrase)):
            related |= {row for (row,) in db.rows(_NAMING, (phrase, MOST_NAMING))}
    return related


def _affected_pages(db: "Database", page_id: int) -> list[int]:
    """Return the ids of a page and of the pages with an open contradiction that involves this page."""
    rows = db.rows(
        "SELECT page_id FROM contradictions WHERE other_page_id = ? AND resolved_at IS NULL", (page_id,)
    )
    return [page_id, *(row for (row,) in rows if row != page_id)]


class ContradictionCheck(NamedTuple):
    """The result of a check, to be stored by Contradictions.store()."""

    findings: list[ContradictionFinding]
    evidence: dict[str, str]
    """Both sides of each unresolved finding as JSON with quotes and line numbers, by fingerprint."""
    page_ids: list[int] | None
    """The ids of the pages that were checked; None for all pages."""
    type: str | None
    """The type of contradictions that was looked for; None for all types."""


class Contradictions:
    """Finds, stores and reads the contradictions of a memory."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def listing(
        self, page_id: int | None, type: str | None, limit: int
    ) -> tuple[list[Contradiction], int, int]:
        """Return up to `limit` open contradictions, newest first, and two totals: of `type`, and of all types.

        `page_id` limits all three results to one page.
        """
        where = "x.resolved_at IS NULL AND (?1 IS NULL OR ?1 IN (x.page_id, x.other_page_id))"
        rows = _select_contradictions(
            self._db, f"{where} AND (?2 IS NULL OR x.type = ?2)", (page_id, type), limit
        )
        counts: dict[str, int] = dict(
            self._db.rows(
                "SELECT x.type, count(*) FROM contradictions AS x JOIN pages AS p ON p.id = x.page_id"  # noqa: S608
                f" AND p.quarantined_at IS NULL WHERE {where} GROUP BY x.type",
                (page_id,),
            )
        )
        total = sum(counts.values())
        return rows, total if type is None else counts.get(type, 0), total

    def require(self, contradiction_id: int) -> Contradiction:
        """Return a contradiction by id, or raise NotFound."""
        rows = _select_contradictions(self._db, "x.id = ?", (contradiction_id,), 1)
        if not rows:
            raise NotFound(what="contradiction", name=contradiction_id, hint=" `quaid check` shows the ids.")
        return rows[0]

    def last_check(self) -> tuple[str | None, int]:
        """Return the time of the last check of the whole memory, or None, and how many pages changed since."""
        row = self._db.one("SELECT value FROM quaid_config WHERE key = ?", (LAST_CHECK_KEY,))
        last = str(row[0]) if row else None
        (changed,) = self._db.one(
            "SELECT count(*) FROM pages WHERE quarantined_at IS NULL AND updated_at > ?", (last or "",)
        ) or (0,)
        return last, changed

    def state_of_pages(self) -> tuple[int, int]:
        """Return two numbers of which at least one changes when a page, or a fact or link of a page, changes."""
        row = self._db.one(
            "SELECT count(*), coalesce(sum(version), 0) FROM pages WHERE quarantined_at IS NULL"
        )
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def check(
        self, page_id: int | None, type: str | None, today: str, departures: DepartureTexts | None = None
    ) -> ContradictionCheck:
        """Find the contradictions in the whole memory, or only those that involve one page or have one type.

        `departures` makes repeated checks of the whole memory faster. Nothing is stored.
        """
        with self._db.reading():
            page_ids = _affected_pages(self._db, page_id) if page_id is not None else None
            findings = [
                finding
                for finding in find_contradictions(
                    _load_snapshot(self._db, today, page_ids, departures), type
                )
                if page_ids is None or finding.page_id in page_ids or finding.other_page_id == page_id
            ]
            return ContradictionCheck(findings, self._evidence(findings), page_ids, type)

    def _evidence(self, findings: list[ContradictionFinding]) -> dict[str, str]:
        settled = {
            key
            for (key,) in self._db.rows(
                "SELECT fingerprint FROM contradictions WHERE resolved_at IS NOT NULL"
            )
        }
        open_findings = [finding for finding in findings if finding.fingerprint not in settled]
        evidence: dict[str, str] = {}
        for start in range(0, len(open_findings), PAGES_PER_BATCH):
            batch = open_findings[start : start + PAGES_PER_BATCH]
            quotes = self.quotes([cite for finding in batch for cite in finding.cites])
            for finding in batch:
                sides = [quotes.pop(0) for _ in finding.cites]
                evidence[finding.fingerprint] = as_json([side._asdict() for side in sides])
        return evidence

    def unresolved_now(self, today: str) -> list[tuple[ContradictionFinding, int | None, str]]:
        """Find contradictions in the whole memory. Return each unresolved finding with its id and day of detection.

        New findings have no id and the day `today`; they are not stored.
        """
        stored = {
            row[0]: row[1:]
            for row in self._db.rows(
                "SELECT fingerprint, id, detected_at, resolved_at FROM contradictions WHERE fingerprint IS NOT NULL"
            )
        }
        findings = [
            (finding, *stored.get(finding.fingerprint, (None, today, None)))
            for finding in find_contradictions(_load_snapshot(self._db, today))
        ]
        return [
            (finding, number, detected_at[:10])
            for finding, number, detected_at, resolved_at in findings
            if resolved_at is None
        ]

    def quotes(self, cites: "Sequence[Citation]", *, today: bool = False) -> list[EvidenceQuote]:
        """Return the location and the quote of each citation.

        A fact without evidence is quoted from text that has not changed since the fact was recorded, or, with
        `today`, from any current text that mentions its object.
        """
        pages = sorted({cite.page_id for cite in cites})
        texts = {
            page_id: _QuotedPage(
                slugs.address(collection, slug), title, truth, timeline, (truth_at, timeline_at)
            )
            for page_id, collection, slug, title, truth, timeline, truth_at, timeline_at in self._db.rows(
                _QUOTED_PAGES, (str(pages),)
            )
        }
        nowhere = _QuotedPage("?", "", "", "", ("", ""))
        return [
            _quote_side(_as_of_today(cite) if today else cite, texts.get(cite.page_id, nowhere))
            for cite in cites
        ]

    def store(self, check: ContradictionCheck, now: str) -> None:
        """Store the findings of a check, and delete open contradictions that the check did not find again.

        Resolved contradictions, and contradictions outside the scope of the check, are not changed.
        """

        def work(tx: Transaction) -> None:
            gone = _store_findings(tx, check, now)
            tx.executemany("DELETE FROM contradictions WHERE id = ?", gone)
            # A restricted caller cannot check the whole memory.
            if check.page_ids is None and check.type is None and not tx.scope:
                tx.execute(
                    "INSERT OR REPLACE INTO quaid_config (key, value) VALUES (?, ?)", (LAST_CHECK_KEY, now)
                )

        self._db.write(work)


def _store_findings(tx: Transaction, check: ContradictionCheck, now: str) -> list[tuple[int]]:
    """Insert or update the findings, and return the ids of the open contradictions that were not found again."""
    stored = {
        row[0]: row[1:]
        for row in tx.execute(
            "SELECT fingerprint, id, page_id, other_page_id, description, evidence, resolved_at, type"
            " FROM contradictions WHERE fingerprint IS NOT NULL"
        )
    }
    for finding in check.findings:
        row = stored.pop(finding.fingerprint, None)
        if finding.fingerprint not in check.evidence or (row and row[5] is not None):
            continue
        evidence = check.evidence[finding.fingerprint]
        values = (finding.page_id, finding.other_page_id, finding.description, evidence)
        if row is None:
            tx.execute(
                "INSERT INTO contradictions (page_id, other_page_id, description, evidence, type, fingerprint,"
                " detected_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*values, finding.type, finding.fingerprint, now),
            )
        elif row[1:5] != values:
            tx.execute(
                "UPDATE contradictions SET page_id = ?, other_page_id = ?, description = ?, evidence = ?"
                " WHERE id = ?",
                (*values, row[0]),
            )
    return [
        (row[0],)
        for row in stored.values()
        if row[5] is None
        and check.type in (None, row[6])
        and (check.page_ids is None or row[1] in check.page_ids)
    ]


def _cause(db: "Database", contradiction_id: int) -> tuple[str | None, list[int]]:
    """Return the fingerprint of a contradiction and the ids of its pages, or (None, []) if it does not exist."""
    row = db.one(
        "SELECT fingerprint, page_id, other_page_id, evidence FROM contradictions WHERE id = ?",
        (contradiction_id,),
    )
    if row is None:
        return None, []
    cited = [citation["slug"].rpartition("::")[2] for citation in json.loads(row[3])]
    named = db.rows(
        "SELECT id FROM pages WHERE slug IN (SELECT value FROM json_each(?)) AND quarantined_at IS NULL",
        (_sorted_json(cited),),
    )
    pages = {page_id for page_id in (row[1], row[2], *(id for (id,) in named)) if page_id is not None}
    return row[0], sorted(pages)


def _select_contradictions(
    db: "Database", where: str, values: tuple[Any, ...], limit: int
) -> list[Contradiction]:
    rows = db.rows(
        "SELECT x.id, x.type, p.slug, q.slug, x.description, x.evidence, x.detected_at, x.resolved_at, x.resolution"  # noqa: S608
        " FROM contradictions AS x JOIN pages AS p ON p.id = x.page_id AND p.quarantined_at IS NULL"
        " LEFT JOIN pages AS q ON q.id = x.other_page_id AND q.quarantined_at IS NULL"
        f" WHERE {where} ORDER BY x.detected_at DESC, x.id LIMIT {int(limit)}",
        values,
    )
    return [
        Contradiction._make(
            (*row[:5], tuple(EvidenceQuote(**quote) for quote in json.loads(row[5])), *row[6:])
        )
        for row in rows
    ]


def _select_facts(db: "Database", where: str, values: tuple[Any, ...]) -> list[SnapshotFact]:
    rows = db.rows(
        "SELECT a.id, a.page_id, a.subject, a.subject_key, a.predicate, a.object, a.valid_from, a.valid_until,"  # noqa: S608
        " a.source_ref, a.evidence_text, a.created_at"
        " FROM assertions AS a JOIN pages AS p ON p.id = a.page_id AND p.quarantined_at IS NULL"
        f" WHERE {where} ORDER BY a.id",
        values,
    )
    superseded = {
        row
        for (row,) in db.rows(
            # A fact that was recorded as valid beyond the start of its successor is not treated as superseded.
            "SELECT o.id FROM assertions AS n JOIN assertions AS o ON o.id = n.supersedes_id"
            " WHERE o.valid_until IS NULL OR n.valid_from IS NULL"
            " OR o.valid_until <= max(n.valid_from, coalesce(o.valid_from, ''))"
        )
    }
    return [SnapshotFact._make((*row, row[0] in superseded)) for row in rows]


def _select_texts(db: "Database", page_ids: list[int] | None) -> "Iterator[tuple[int, str, str]]":
    """Yield id, compiled truth and timeline of these pages, or of all visible pages.

    The pages are read in batches to limit the use of RAM.
    """
    ids = page_ids
    if ids is None:
        ids = [row for (row,) in db.rows("SELECT id FROM pages WHERE quarantined_at IS NULL ORDER BY id")]
    for start in range(0, len(ids), PAGES_PER_BATCH):
        yield from db.rows(
            "SELECT p.id, p.compiled_truth, p.timeline FROM json_each(?) AS w JOIN pages AS p ON p.id = w.value"
            " WHERE p.quarantined_at IS NULL",
            (str(ids[start : start + PAGES_PER_BATCH]),),
        )


STALE_DAYS = 30
_REVIEWED_AT = (
    "max(p.truth_updated_at, coalesce((SELECT max(x.resolved_at) FROM contradictions AS x"
    " WHERE x.page_id = p.id AND x.type = 'stale'), ''))"
)
# unixepoch() is used, because julianday() returns a floating-point number, which is not exact.
STALE_SECONDS_SQL = f"(unixepoch(p.timeline_updated_at) - unixepoch({_REVIEWED_AT}))"
IS_STALE = (
    "p.timeline <> '' AND p.timeline_updated_at > p.truth_updated_at"
    f" AND {STALE_SECONDS_SQL} >= {STALE_DAYS * 86_400}"
)
"""The condition for a stale page `p`.

Its timeline changed STALE_DAYS or more after the last review of the page. A review is a change of the compiled
truth (the text above the timeline), or the resolution of a contradiction of type "stale".
"""


def _select_stale(db: "Database", page_ids: list[int] | None) -> list[StalePage]:
    """Return the stale pages among these, or among all visible pages."""
    rows = db.rows(
        f"SELECT p.id, p.truth_updated_at, p.timeline_updated_at, {_REVIEWED_AT}, {STALE_SECONDS_SQL} / 86400"  # noqa: S608
        f" FROM pages AS p WHERE p.quarantined_at IS NULL AND {IS_STALE}"
        " AND (?1 IS NULL OR p.id IN (SELECT value FROM json_each(?1)))",
        (None if page_ids is None else str(page_ids),),
    )
    return [StalePage(*row) for row in rows]


def _sorted_json(values: "Iterable[str]") -> str:
    return json.dumps(sorted(values), ensure_ascii=False)


def _fold_slug(text: str) -> str:
    return fold_name(text.rpartition("::")[2])


_PAGES = "SELECT p.id, p.slug, p.title, p.type FROM pages AS p WHERE p.quarantined_at IS NULL"
_PAGES_NEAR = (
    "SELECT p.id, p.slug, p.title, p.type FROM json_each(?) AS w JOIN pages AS p ON p.id = w.value"
    " WHERE p.quarantined_at IS NULL"
)
_NAMES = (
    "SELECT n.name, n.page_id, n.kind FROM page_names AS n JOIN pages AS p ON p.id = n.page_id"
    " WHERE p.quarantined_at IS NULL"
)
_NAMES_NEAR = (
    # Include other pages that share a name with one of these pages, because a name shared by two pages is
    # ambiguous.
    "SELECT DISTINCT m.name, m.page_id, m.kind FROM json_each(?) AS w CROSS JOIN page_names AS n"
    " ON n.page_id = w.value CROSS JOIN page_names AS m ON m.name = n.name JOIN pages AS p ON p.id = m.page_id"
    " AND p.quarantined_at IS NULL"
)
_NAMING = "SELECT rowid FROM page_fts WHERE page_fts MATCH ? LIMIT ?"
_NAMES_OF = "SELECT n.name FROM json_each(?) AS w CROSS JOIN page_names AS n ON n.page_id = w.value"
_CALLED = "SELECT n.page_id FROM json_each(?) AS w CROSS JOIN page_names AS n ON n.name = w.value"
_SUBJECTS = (
    "SELECT DISTINCT a.subject_key FROM json_each(?) AS w CROSS JOIN assertions AS a ON a.page_id = w.value"
)
_READERS = (
    "SELECT l.from_page_id FROM json_each(?1) AS w CROSS JOIN links AS l ON l.to_page_id = w.value UNION"
    " SELECT x.other_page_id FROM json_each(?1) AS w CROSS JOIN contradictions AS x ON x.page_id = w.value"
    " WHERE x.other_page_id IS NOT NULL"
)
_LINKS = (
    "SELECT l.id, l.from_page_id, l.to_page_id, l.relationship, l.valid_from, l.valid_until, l.part, l.line"
    " FROM links AS l"
)
_LINKS_NEAR = (
    _LINKS + " JOIN json_each(?) AS w ON l.from_page_id = w.value WHERE l.to_page_id IS NOT NULL"
    " AND l.relationship <> 'mentions'"
)
