"""Facts with validity interval, source and supersession, and queries for all facts and links of a subject.

Adding a fact again with the same source and evidence changes nothing, and facts with start dates may be added in
any order. The caller increments the version of the page in the same transaction.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from quaid.errors import InvalidArgument, NotFound, QuaidError
from quaid.model import facts, slug as slugs
from quaid.model.dates import shift_date
from quaid.model.facts import (
    EntityRef,
    FactInput,
    NameIndex,
    PageInfo,
    canonical_predicate,
    fact_needles,
    is_valid_on,
    join_evidence,
    join_sources,
    object_key,
    person_name_parts,
    resolve_name,
)
from quaid.model.links import MENTIONS
from quaid.model.page import CLASSES, DERIVED, IMPORTED, PERSON, TrustName
from quaid.model.plain_text import replace_wiki_links
from quaid.model.slug import aliases, fold_name
from quaid.storage import collections, links, pages, trust
from quaid.storage.collections import Collections

if TYPE_CHECKING:
    from quaid.storage.links import LinkRow
    from quaid.storage.sqlite.connection import Database, Transaction

SINGLE_VALUED_SETTING = "single_valued_predicates"
"""Setting with predicates that the user declares single-valued, in addition to the built-in ones."""

DAYS_OF_RECENT_CHANGE = 365
"""A new fact supersedes an undated fact that was recorded at most this many days after the new fact began."""

DAYS_BEFORE_RECORDED = 30
"""Replaces DAYS_OF_RECENT_CHANGE for an undated fact that superseded another fact on the day of its recording."""

_FACT_COLUMNS = (
    "a.id, a.page_id, a.subject, a.subject_key, a.predicate, a.object, a.valid_from, a.valid_until, a.supersedes_id,"
    " a.confidence, a.asserted_by, a.source_ref, a.evidence_text, a.created_at, a.author, a.trust"
)


class FactRow(NamedTuple):
    """A row of the assertions table."""

    id: int
    page_id: int
    subject: str
    subject_key: str
    predicate: str
    object: str
    valid_from: str | None
    valid_until: str | None
    supersedes_id: int | None
    confidence: float
    asserted_by: str
    source_ref: str
    evidence_text: str
    created_at: str
    author: str = ""
    trust: int = PERSON
    """The trust class, as in quaid.model.page."""

    def end(self, tx: "Transaction", day: str) -> bool:
        """End a fact on a day, but not before it began. Return False if it already ended by then.

        A fact that is superseded from its first day on gets an empty validity interval.
        """
        day = max(day, self.valid_from or day)
        if self.valid_until is not None and self.valid_until <= day:
            return False
        trust.guard(tx, self.trust)
        tx.execute("UPDATE assertions SET valid_until = ? WHERE id = ?", (day, self.id))
        return True

    def shorten(self, tx: "Transaction", since: str | None, until: str | None, successor: int | None) -> bool:
        """Set a shorter validity interval on a fact. Return False if its row has changed since it was read.

        Also mark the fact as superseded by `successor`, unless `successor` already supersedes another fact or a
        cycle would result.
        """
        row = tx.execute(f"SELECT {_FACT_COLUMNS} FROM assertions AS a WHERE a.id = ?", (self.id,)).fetchone()  # noqa: S608
        if row is None or FactRow(*row) != self:
            return False
        trust.guard(tx, self.trust)
        tx.execute(
            "UPDATE assertions SET valid_from = ?, valid_until = ? WHERE id = ?", (since, until, self.id)
        )
        if successor is not None:
            new = _require_fact(tx, successor)
            if new.supersedes_id is None and not _is_cycle(tx, new, self):
                tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (self.id, new.id))
        return True


class FactChange(NamedTuple):
    """The result of adding or restoring a fact."""

    id: int
    added: bool
    """True if a new row was inserted, False if the fact already existed."""
    superseded: tuple[int, ...]
    """Ids of the facts that ended because this fact superseded them."""
    changed: bool
    """True if any row was written, for example if an existing fact got a new end date or source."""
    ended: bool = False
    """True if an existing fact got an end date, or a different end date."""
    ended_before: str | None = None
    """The previous end date, if the end date was replaced."""
    witnessed: bool = False
    """True if the source, evidence or confidence of an existing fact changed."""
    restarted: str | None = None
    """The day on which a fact that had ended begins again, because it was stated again."""
    ended_on: str | None = None
    """The day on which the stated fact ended. It stays ended, because a current fact has superseded it."""


def add_fact(
    tx: "Transaction",
    page_id: int,
    fact: FactInput,
    now: str,
    batch: "Collection[int]" = (),
    *,
    alone: bool = False,
) -> FactChange:
    """Add a fact to a page, or update the matching fact that is already there.

    Facts that the new fact supersedes end when it begins, or today if it has no start date: the fact named by
    `supersedes_id` and, unless the new fact has an end date, earlier facts with the same page, subject and
    single-valued predicate. A fact with a start date that is added late is inserted between its neighbours in
    time, so the order of insertion does not matter. `batch` has the ids of facts from the same call. These
    are not superseded, because values that are stated together are valid together. With `alone`, only the fact
    named by `supersedes_id` is ended. A fact never ends facts that are more trusted.
    """
    key, predicate = fold_name(fact.subject), canonical_predicate(fact.predicate)
    written = class_of_fact(tx, fact)
    named = _require_superseded(tx, page_id, fact) if fact.supersedes_id else None
    if named and named.trust < written:
        # A less trusted fact does not end the named fact, but is added beside it.
        trust.guard(tx, named.trust)
        named = None
    existing = [
        row for row in _facts_of_subject(tx, page_id, key) if canonical_predicate(row.predicate) == predicate
    ]
    match = _matching_fact(existing, fact, now[:10])
    ended_on = _end_of_stated(existing, fact, now[:10])
    restarted = None
    if (
        ended_on
        and match
        and any(row.supersedes_id == match.id and _holds_on(row, now[:10]) for row in existing)
    ):
        return _update_fact(tx, match, fact, named, now, written)._replace(ended_on=ended_on)
    if ended_on:
        restarted = max(fact.valid_from or now[:10], ended_on)
        match, fact = None, fact._replace(valid_from=restarted)
    if match:
        return _update_fact(tx, match, fact, named, now, written)
    earlier: list[FactRow] = []
    later = None
    if not fact.valid_until and not alone:
        others = [
            row
            for row in existing
            if row.id not in batch and object_key(row.object) != object_key(fact.object)
        ]
        if others and _is_single_valued(tx, predicate, others, fact):
            # A fact does not end facts that are more trusted.
            weaker = [row for row in others if row.trust >= written]
            stronger = [row for row in others if row.trust <= written]
            earlier, _ = _neighbours_in_time(weaker, fact.valid_from, now[:10])
            _, later = _neighbours_in_time(stronger, fact.valid_from, now[:10])
    before = named or (earlier[-1] if earlier else None)
    until = (later.valid_from or later.created_at[:10]) if later else fact.valid_until
    new = _insert_fact(
        tx,
        page_id,
        fact._replace(valid_until=until, supersedes_id=before.id if before else None),
        now,
    )
    if later and (later.supersedes_id is None or later.supersedes_id in {row.id for row in earlier}):
        tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (new, later.id))
    ended = {row.id: row for row in [*earlier, *([named] if named else [])]}
    for row in ended.values():
        row.end(tx, fact.valid_from or now[:10])
    return FactChange(new, True, tuple(ended), True, restarted=restarted)


def _end_of_stated(existing: list[FactRow], fact: FactInput, today: str) -> str | None:
    """Return the latest end date of the stored rows for the stated fact, or None.

    Return None if the input has an end date, if the fact is still valid or not stored yet, or if the input
    repeats the source and evidence of a stored row. If the input has a start date, only rows with that start date
    are compared.
    """
    same = [row for row in existing if object_key(row.object) == object_key(fact.object)]
    if fact.valid_until or any(_holds_on(row, today) for row in same):
        return None
    if fact.valid_from:
        same = [row for row in same if row.valid_from == fact.valid_from]
    if any(_is_replay(row, fact) for row in same):
        return None
    return max((row.valid_until for row in same if row.valid_until), default=None)


def _insert_fact(tx: "Transaction", page_id: int, fact: FactInput, created_at: str) -> int:
    tx.execute(
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, valid_from, valid_until,"
        " supersedes_id, confidence, asserted_by, source_ref, evidence_text, created_at, author, trust)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(page_id, fact.subject, fold_name(fact.subject), fact.predicate, fact.object),
            *(fact.valid_from, fact.valid_until, fact.supersedes_id, fact.confidence),
            *(fact.asserted_by, fact.source_ref, fact.evidence_text, created_at, tx.author),
            class_of_fact(tx, fact),
        ),
    )
    return tx.last_insert_rowid()


def class_of_fact(tx: "Transaction", fact: FactInput) -> int:
    """Return the trust class of a fact that is written now.

    The fact is at most as trusted as its writer and its kind of origin (`asserted_by`). A fact from an agent
    is also at most as trusted as its source, which is a web address or a page. If a person has accepted the
    write of an agent, the class is PERSON.
    """
    if tx.agent and tx.trust == PERSON:
        return PERSON
    stated = {"import": IMPORTED, "agent": DERIVED, "enrichment": DERIVED}.get(fact.asserted_by, PERSON)
    written = max(tx.trust, stated)
    if written < DERIVED or not fact.source_ref:
        return written
    return max(written, trust.of_sources(tx, [fact.source_ref]))


def restore_fact(
    tx: "Transaction",
    page_id: int,
    fact: FactInput,
    created_at: str,
    now: str,
    is_new_group: dict[tuple[int, str, str], bool],
) -> FactChange:
    """Insert an exported fact into a page, unless it is already there.

    The fact is inserted unchanged if the page had no fact with this subject and predicate before the import.
    Otherwise it is added with add_fact(), unless an earlier import restored it. During an import,
    `is_new_group` records, by page id, subject and predicate, whether the page had no such facts before.
    """
    key, predicate = fold_name(fact.subject), canonical_predicate(fact.predicate)
    rows = [
        row for row in _facts_of_subject(tx, page_id, key) if canonical_predicate(row.predicate) == predicate
    ]
    is_new = is_new_group.setdefault((page_id, key, predicate), not rows)
    time = (fact.valid_from, fact.valid_until if is_new else created_at)
    for row in rows:
        # If the page had facts before, the row may have got an end date since it was restored.
        row_time = (row.valid_from, row.valid_until if is_new else row.created_at)
        if row_time == time and object_key(row.object) == object_key(fact.object):
            return FactChange(row.id, False, (), False)
    if not is_new:
        return add_fact(tx, page_id, fact, now)
    return FactChange(_insert_fact(tx, page_id, fact, created_at), True, (), True)


def mark_superseded(tx: "Transaction", new_id: int, old_id: int) -> bool:
    """Record that one fact superseded another and return True.

    Return False if the new fact already supersedes a different fact, the old fact has no end date, or the
    relation would form a cycle.
    """
    new, old = _require_fact(tx, new_id), _require_fact(tx, old_id)
    if new.supersedes_id == old.id:
        return True
    if new.supersedes_id is not None or old.valid_until is None or _is_cycle(tx, new, old):
        return False
    tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (old.id, new.id))
    return True


def _require_superseded(tx: "Transaction", page_id: int, fact: FactInput) -> FactRow:
    """Return the fact named by `supersedes_id`.

    Raise NotFound if it does not exist, and InvalidArgument if its subject or predicate differs.
    """
    named = _require_fact(tx, fact.supersedes_id or 0)
    same = canonical_predicate(named.predicate) == canonical_predicate(fact.predicate)
    if not same or _subject_ref(tx, named.page_id, named.subject_key) != _subject_ref(
        tx, page_id, fold_name(fact.subject)
    ):
        raise InvalidArgument(
            name="supersedes_id",
            problem=f"fact {named.id} says {named.subject} {named.predicate} {named.object}, and this one"
            f" {fact.subject} {fact.predicate} {fact.object}; subject and predicate must be the same",
        )
    return named


def _subject_ref(tx: "Transaction", page_id: int, key: str) -> EntityRef:
    called = tx.execute(
        "SELECT n.name, n.page_id, n.kind FROM page_names AS n JOIN pages AS p ON p.id = n.page_id"
        " WHERE n.name = ? AND p.quarantined_at IS NULL",
        (key,),
    )
    names = NameIndex([(str(name), int(str(page)), str(kind)) for name, page, kind in called])
    row = tx.execute("SELECT slug, title, type FROM pages WHERE id = ?", (page_id,)).fetchone()
    return resolve_name(names, key, page_id, PageInfo(*row) if row else None)


def _matching_fact(existing: list[FactRow], fact: FactInput, today: str) -> FactRow | None:
    """Return the existing row for the same fact, or None.

    Input with a start date matches a row with the same start date. Input without dates matches a row that is still
    valid, or whose source and evidence it repeats. Input with an end date but no start date matches the first of
    these rows that exists:

    - a row with the same end date
    - a row without an end date
    - the only row for this object, if it began on or before the end date
    """
    same = [row for row in existing if object_key(row.object) == object_key(fact.object)]
    began = [row for row in same if row.valid_from == fact.valid_from]
    if fact.valid_from:
        return began[0] if began else None
    if not fact.valid_until:
        # A row that has ended matches only input that repeats its source and evidence. Other input means that
        # the fact is valid again, and gets a new row.
        ends = [row.valid_until for row in same if row.valid_until is not None]
        again = [row for row in same if row.valid_from and ends and row.valid_from >= min(ends)]
        return next((row for row in began + again if _holds_on(row, today) or _is_replay(row, fact)), None)
    fitting = [row for row in same if row.valid_until == fact.valid_until]
    fitting += [row for row in (*began, *same) if row.valid_until is None]
    if len(same) == 1 and (same[0].valid_from or "") <= fact.valid_until:
        fitting += same  # correct the end date of the only row for this object
    return fitting[0] if fitting else None


def _holds_on(row: FactRow, today: str) -> bool:
    return row.valid_until is None or row.valid_until > today


def _is_replay(row: FactRow, fact: FactInput) -> bool:
    source, evidence = _joined_evidence(row, fact)
    return bool(fact.source_ref) and (source, evidence) == (row.source_ref, row.evidence_text)


def _joined_evidence(row: FactRow, fact: FactInput) -> tuple[str, str]:
    return join_sources(row.source_ref, fact.source_ref), join_evidence(row.evidence_text, fact.evidence_text)


def _update_fact(
    tx: "Transaction", row: FactRow, fact: FactInput, named: FactRow | None, now: str, written: int
) -> FactChange:
    """Merge new information into an existing row: end date, source, evidence, confidence, superseded fact.

    A row that is more trusted than the class `written` is not changed.
    """
    if row.trust < written:
        if fact.valid_until and fact.valid_until != row.valid_until:
            trust.guard(tx, row.trust)
        return FactChange(row.id, False, (), False)
    until = fact.valid_until or row.valid_until
    if row.valid_from and until and until < row.valid_from:
        raise InvalidArgument(
            name="valid_until",
            problem=f"{until} is before {row.valid_from}, when fact {row.id} began",
        )
    source, evidence = _joined_evidence(row, fact)
    confidence = _joined_confidence(row, fact)
    supersedes = row.supersedes_id
    if named:
        _refuse_cycle(tx, row, named)
        supersedes = supersedes or named.id
    before = (row.valid_until, row.source_ref, row.evidence_text, row.confidence, row.supersedes_id)
    after = (until, source, evidence, confidence, supersedes)
    if after != before:
        tx.execute(
            "UPDATE assertions SET valid_until = ?, source_ref = ?, evidence_text = ?, confidence = ?,"
            " supersedes_id = ? WHERE id = ?",
            (*after, row.id),
        )
    if written < row.trust:
        tx.execute("UPDATE assertions SET trust = ?, author = ? WHERE id = ?", (written, tx.author, row.id))
    ended = named is not None and named.end(tx, row.valid_from or now[:10])
    return FactChange(
        row.id,
        False,
        (named.id,) if named and ended else (),
        after != before or ended or written < row.trust,
        until != row.valid_until,
        row.valid_until if until != row.valid_until else None,
        after[1:4] != before[1:4],
    )


def _joined_confidence(row: FactRow, fact: FactInput) -> float:
    """Return the merged confidence.

    The same source may revise its confidence. With different sources the higher value wins. Input without a source
    does not change the confidence of a fact that has a source.
    """
    if row.source_ref == fact.source_ref:
        return fact.confidence
    return max(row.confidence, fact.confidence) if fact.source_ref else row.confidence


def _is_cycle(tx: "Transaction", row: FactRow, named: FactRow) -> bool:
    """Return True if `named` equals `row` or supersedes it, directly or indirectly."""
    circle = tx.execute(
        "WITH RECURSIVE older (id) AS (VALUES (?) UNION SELECT a.supersedes_id FROM assertions AS a"
        " JOIN older ON older.id = a.id WHERE a.supersedes_id IS NOT NULL) SELECT 1 FROM older WHERE id = ?",
        (named.id, row.id),
    ).fetchone()
    return circle is not None


def _refuse_cycle(tx: "Transaction", row: FactRow, named: FactRow) -> None:
    if _is_cycle(tx, row, named):
        what = "the same fact" if named.id == row.id else f"what fact {row.id} was superseded by"
        raise InvalidArgument(name="supersedes_id", problem=f"fact {named.id} is {what}")


def _neighbours_in_time(
    others: list[FactRow], start: str | None, today: str
) -> tuple[list[FactRow], FactRow | None]:
    """Return the earlier facts that a new fact supersedes, and the later fact that supersedes it, or None.

    `start` is the start date of the new fact. The earlier facts are ordered by start date. Facts with an
    explicit end date keep that date and are ignored. A new fact without a start date supersedes all facts
    that began up to today.
    """
    day = start or today
    began = {row.id: _probable_start(row, others, day) for row in others}
    beginnings = {(row.supersedes_id, row.valid_from) for row in others}
    replaced = {row.supersedes_id for row in others if not row.valid_from}
    standing = [
        row
        for row in others
        if row.valid_until is None or row.id in replaced or (row.id, row.valid_until) in beginnings
    ]
    earlier = [
        row
        for row in standing
        if (began[row.id] < day or (began[row.id] == today and not start))
        and (row.valid_until is None or row.valid_until > day)
    ]
    later = [row for row in standing if began[row.id] > day]
    return (
        sorted(earlier, key=lambda row: began[row.id]),
        min(later, key=lambda row: began[row.id], default=None),
    )


def _probable_start(row: FactRow, others: list[FactRow], day: str) -> str:
    """Return the start date of a fact, or an estimate, to compare it with a new fact that begins on `day`.

    A fact without a start date that superseded another fact began when the other fact ended, unless that was the
    day of recording. Otherwise the estimate is "", which is before any day. However, if `day` is long before the
    fact was recorded, the new fact is about the past, and the estimate is the day of recording.
    """
    if row.valid_from:
        return row.valid_from
    recorded = row.created_at[:10]
    ended = next((other.valid_until for other in others if other.id == row.supersedes_id), None)
    if ended and ended != recorded:
        return ended
    recent = DAYS_BEFORE_RECORDED if ended else DAYS_OF_RECENT_CHANGE
    return recorded if day < shift_date(recorded, -recent) else ""


def delete_facts(tx: "Transaction", ids: "Iterable[int]") -> None:
    """Delete facts, and overwrite their bytes in the file."""
    tx.pragma("secure_delete", "ON")
    for id in ids:
        tx.execute("UPDATE assertions SET supersedes_id = NULL WHERE supersedes_id = ?", (id,))
        tx.execute("DELETE FROM assertions WHERE id = ?", (id,))


MOST_FACTS_SCANNED = 10_000
"""Sources, and names within objects, have no index, so they are compared only in this many newest facts."""

_IS_VISIBLE = "JOIN pages AS p ON p.id = a.page_id AND p.quarantined_at IS NULL"
_FACTS_BY = {
    "page": "FROM json_each(?) AS w CROSS JOIN assertions AS a ON a.page_id = w.value ORDER BY a.id",
    "id": "FROM json_each(?) AS w CROSS JOIN assertions AS a ON a.id = w.value",
    "subject": "FROM json_each(?) AS w CROSS JOIN assertions AS a ON a.subject_key = w.value"
    f" {_IS_VISIBLE} ORDER BY a.id",
    "object": f"FROM assertions AS a {_IS_VISIBLE}"  # noqa: S608 (fixed)
    " WHERE lower(a.object) IN (SELECT lower(value) FROM json_each(?)) ORDER BY a.id",
    "source": f"FROM (SELECT * FROM assertions ORDER BY id DESC LIMIT {MOST_FACTS_SCANNED}) AS a"  # noqa: S608 (fixed)
    f" {_IS_VISIBLE} WHERE a.source_ref IN (SELECT value FROM json_each(?)) ORDER BY a.id",
}


def read_facts(
    db: "Database", by: Literal["page", "id", "subject", "object", "source"], values: "Iterable[int | str]"
) -> list[FactRow]:
    """Return the facts whose field `by` has one of these values, in the order in which they were recorded.

    Values for "page" and "id" are ids, which also select facts on hidden pages. "subject" takes
    normalized names, and "object" ignores ASCII case. "source" searches the newest MOST_FACTS_SCANNED facts.
    """
    wanted = json.dumps(sorted(set(values)), ensure_ascii=False)
    return [FactRow(*row) for row in db.rows(f"SELECT {_FACT_COLUMNS} {_FACTS_BY[by]}", (wanted,))]


def facts_in_range(db: "Database", first: int, last: int) -> list[tuple[str, str, FactRow]]:
    """Return facts with ids from `first` to `last` on visible pages, each with its collection and slug."""
    rows = db.rows(
        f"SELECT c.name, p.slug, {_FACT_COLUMNS} FROM assertions AS a CROSS JOIN pages AS p ON p.id = a.page_id"  # noqa: S608
        " JOIN collections AS c ON c.id = p.collection_id"
        " WHERE a.id BETWEEN ? AND ? AND p.quarantined_at IS NULL ORDER BY a.id",
        (first, last),
    )
    return [(collection, slug, FactRow(*row)) for collection, slug, *row in rows]


def has_facts(db: "Database") -> bool:
    """Return True if the memory has any facts."""
    return db.one("SELECT 1 FROM assertions LIMIT 1") is not None


def facts_naming(db: "Database", names: "Iterable[str]", limit: int = 40) -> list[FactRow]:
    """Return facts on visible pages whose object contains one of these names as whole words.

    ASCII case is ignored, and so are names of one character. The newest `limit` facts are selected, among the newest
    MOST_FACTS_SCANNED.
    """
    # lower() of SQLite changes only ASCII letters, so the names are lower-cased in the same way.
    every = {re.sub("[A-Z]+", lambda match: match[0].lower(), name) for name in names if len(name) > 1}
    wanted = [name for name in every if not any(other != name and other in name for other in every)]
    if not wanted:
        return []
    rows = db.rows(
        "SELECT a.id, a.object FROM (SELECT id, object, page_id FROM assertions ORDER BY id DESC"
        " LIMIT ?) AS a JOIN json_each(?) AS w ON instr(lower(a.object), w.value)"
        " JOIN pages AS p ON p.id = a.page_id AND p.quarantined_at IS NULL",
        (MOST_FACTS_SCANNED, json.dumps(wanted, ensure_ascii=False)),
    )
    keys = [f" {fold_name(name)} " for name in every]
    ids = [id for id, text in rows if any(key in f" {fold_name(text)} " for key in keys)]
    return read_facts(db, "id", sorted(set(ids), reverse=True)[:limit])


def subjects_beginning(db: "Database", words: "Iterable[str]") -> set[str]:
    """Return the normalized subjects of several words whose first word is in `words` and begins no other subject."""
    subjects = set()
    for word in words:
        rows = db.rows(
            "SELECT DISTINCT subject_key FROM assertions WHERE subject_key >= ? AND subject_key < ? LIMIT 2",
            (f"{word} ", f"{word}!"),
        )
        if len(rows) == 1:
            subjects.add(str(rows[0][0]))
    return subjects


def single_valued_predicates(db: "Database") -> frozenset[str]:
    """Return the single-valued predicates, including those the user configured."""
    return facts.single_valued_predicates(collections.get_setting(db, SINGLE_VALUED_SETTING))


def _is_single_valued(tx: "Transaction", predicate: str, others: list[FactRow], new: FactInput) -> bool:
    """Return True if a new value of a predicate replaces the other values of the subject.

    This is decided by the built-in list, the setting and the name of the predicate, or else by the values
    that other subjects have.
    """
    row = tx.execute("SELECT value FROM config WHERE key = ?", (SINGLE_VALUED_SETTING,)).fetchone()
    setting = str(row[0]) if row else None
    if facts.is_single_valued(predicate, facts.single_valued_predicates(setting), setting):
        return True
    if facts.is_marked_many(predicate, setting):
        return False
    current: dict[str, set[str]] = {}
    rows = tx.execute(
        "SELECT subject_key, object FROM assertions WHERE predicate IN (SELECT value FROM json_each(?))"
        " AND valid_until IS NULL",
        (json.dumps(facts.predicate_spellings(predicate)),),
    )
    for subject, value in rows:
        current.setdefault(str(subject), set()).add(object_key(str(value)))
    return all(facts.shows_single_value(current, row.object, new.object) for row in others)


def _facts_of_subject(tx: "Transaction", page_id: int, key: str) -> list[FactRow]:
    sql = (
        f"SELECT {_FACT_COLUMNS} FROM assertions AS a WHERE a.subject_key = ? AND a.page_id = ? ORDER BY a.id"  # noqa: S608
    )
    return [FactRow(*row) for row in tx.execute(sql, (key, page_id))]


def _require_fact(tx: "Transaction", assertion_id: int) -> FactRow:
    query = f"SELECT {_FACT_COLUMNS} FROM assertions AS a WHERE a.id = ?"  # noqa: S608 (fixed columns)
    row = tx.execute(query, (assertion_id,)).fetchone()
    if row is None:
        raise NotFound(what="fact", name=assertion_id, hint=" `quaid facts SUBJECT --history` shows the ids.")
    return FactRow(*row)


class FactSubject(NamedTuple):
    """The subject of a query, resolved to a page where possible."""

    name: str
    slug: str | None
    page_id: int | None
    keys: tuple[str, ...]
    """Normalized names that refer to this subject and to no other page."""


class FactLine(NamedTuple):
    """A fact or link with its validity interval and source."""

    kind: str
    """"fact" or "link"."""
    id: int
    subject: str
    predicate: str
    object: str
    since: str | None
    until: str | None
    by: str
    """For a fact: agent, manual, import or enrichment.

    For a link: "text" if it was derived from page text, else "link".
    """
    source: str
    slug: str
    """Slug of the page that contains the fact or link."""
    part: str
    line: int | None
    quote: str
    """The evidence given with the fact, or else the matching line of the page when the fact was recorded.

    For a link, the text around the link.
    """
    version: int | None
    """The page version that the quote is from. None means the current version, or that no line was found."""
    confidence: float
    supersedes: int | None
    superseded_by: int | None
    recorded_at: str
    author: str = ""
    """The client that recorded a fact, "owner" for a person, or "" if unknown."""
    trust: TrustName = "person"


class SubjectEntry(NamedTuple):
    """A timeline entry of the subject's page."""

    date: str
    source: str
    summary: str
    slug: str
    line: int


def _find_subject(db: "Database", text: str) -> FactSubject:
    """Find a subject by slug, title, alias or a name used in facts.

    Raise NotFound, suggesting similar names, if there is none, and InvalidArgument if several pages have the
    name.
    """
    name = replace_wiki_links(text).strip()
    page = _page_by_address(db, name)
    key = fold_name(name.rpartition("::")[2])
    if page is None:
        page = _page_by_name(db, name, key)
    if page is None:
        rows = read_facts(db, "subject", [key]) if key else []
        if not rows:
            raise NotFound(what="subject", name=repr(name), hint=_similar_names(db, key))
        return FactSubject(rows[-1].subject, None, None, (key,))
    mine = tuple(key for key in pages.page_names(db, [page[0]]) if _page_meant_by(db, key) == page[0])
    return FactSubject(page[2], page[1], page[0], mine)


def _page_by_address(db: "Database", text: str) -> tuple[int, str, str] | None:
    collection, name = slugs.split_address(text)
    try:
        stored = pages.find(db, slugs.check(name), collection or Collections(db).home_name())
    except QuaidError:
        return None
    return (stored.id, stored.slug, stored.title) if stored else None


def _page_by_name(db: "Database", text: str, key: str) -> tuple[int, str, str] | None:
    best = pages_meant(db, pages.pages_called(db, [key]) if key else [])
    rows = db.rows(
        "SELECT p.id, p.slug, p.title FROM json_each(?) AS w JOIN pages AS p ON p.id = w.value ORDER BY p.slug",
        (str(sorted(best)),),
    )
    if len(rows) > 1:
        listed = ", ".join(row[1] for row in rows[:5])
        raise InvalidArgument(
            name="subject", problem=f"{text!r} is what several pages are called: {listed}; name one"
        )
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def _page_meant_by(db: "Database", key: str) -> int | None:
    """Return the id of the page that a name refers to, or None if no page or more than one is meant.

    See pages_meant() for pages that share a name.
    """
    meant = pages_meant(db, pages.pages_called(db, [key]))
    return meant.pop() if len(meant) == 1 else None


def pages_meant(db: "Database", named: "list[pages.PageName]") -> set[int]:
    """Return the ids of the pages that a name refers to. `named` is the result of pages_called().

    If several pages have the name, only the most trusted pages count, so that a less trusted page cannot
    take over a name. Of these, the pages with the most reliable kind of name are returned.
    """
    ids = {page.page_id for page in named}
    if len(ids) > 1:
        classes = trust.of_pages(db, ids)
        highest = {page_id: classes[page_id].highest if page_id in classes else PERSON for page_id in ids}
        best = min(highest.values())
        named = [page for page in named if highest[page.page_id] == best]
    return {page.page_id for page in named if page.kind == named[0].kind}


def _similar_names(db: "Database", key: str) -> str:
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


PastTexts = Callable[[str, str, str], Iterable[tuple[int | None, str, str]]]
"""A function that returns the versions of a page that were current at a given time.

It is called with slug, collection and timestamp. It returns the page version (None for the current one), the
compiled truth (the text above the timeline) and the timeline. Several versions may have been current within
the same second.
"""


def _lines_about(db: "Database", whom: FactSubject, day: str | None, past: PastTexts) -> list[FactLine]:
    """Return the facts and links of a subject that are valid on `day`, or all if `day` is None.

    If `day` is None, they are in chronological order. Links with the relationship MENTIONS are returned only
    if there is nothing else.
    """
    lines = _fact_lines(db, whom, past) + _link_lines(db, whom)
    replaced = {line.supersedes: line.id for line in lines if line.kind == "fact" and line.supersedes}
    lines = [
        line._replace(superseded_by=replaced.get(line.id)) if line.kind == "fact" else line for line in lines
    ]
    if day is not None:
        lines = [line for line in lines if is_valid_on(line.since, line.until, day)]
    solid = [line for line in lines if line.predicate != MENTIONS]
    lines = solid or lines
    if day is None:
        return sorted(lines, key=lambda line: (line.since or line.recorded_at[:10], line.id))
    return sorted(lines, key=lambda line: (line.kind, line.predicate, line.since or "", line.id))


def _fact_lines(db: "Database", whom: FactSubject, past: PastTexts) -> list[FactLine]:
    rows = {row.id: row for row in read_facts(db, "subject", whom.keys)}
    if whom.page_id is not None:
        own = read_facts(db, "page", [whom.page_id])
        # On its own page, a subject may be called by part of its name. Facts about other subjects are
        # skipped.
        parts = person_name_parts(whom.name) | set(pages.page_names(db, [whom.page_id]))
        rows |= {row.id: row for row in own if row.subject_key in parts}
        turned = read_facts(db, "object", [whom.name, whom.slug or "", *_spoken_names(db, whom.page_id)])
        rows |= {row.id: row for row in turned}
    texts = _page_texts(db, {row.page_id for row in rows.values()})
    return [_fact_line(row, texts[row.page_id], past) for row in rows.values() if row.page_id in texts]


def _spoken_names(db: "Database", page_id: int) -> list[str]:
    """Return the aliases of a page as written, and all normalized names of the page."""
    row = db.one("SELECT frontmatter FROM pages WHERE id = ?", (page_id,))
    return [*(aliases(json.loads(row[0])) if row else ()), *pages.page_names(db, [page_id])]


class _PageText(NamedTuple):
    slug: str
    collection: str
    truth: str
    timeline: str
    changed_at: str


def _page_texts(db: "Database", page_ids: set[int]) -> dict[int, _PageText]:
    rows = db.rows(
        "SELECT p.id, p.slug, c.name, p.compiled_truth, p.timeline,"
        " max(p.truth_updated_at, p.timeline_updated_at) FROM json_each(?) AS w JOIN pages AS p ON p.id = w.value"
        " JOIN collections AS c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL",
        (str(sorted(page_ids)),),
    )
    return {row[0]: _PageText(*row[1:]) for row in rows}


def _locate_fact(
    row: "FactRow", page: _PageText, past: PastTexts
) -> "tuple[facts.QuotedLine | None, int | None]":
    """Return the line that supports a fact, and the page version it is from (None for the current version).

    The line contains the evidence and is from the current version. Without evidence, it contains the object and is
    from the version that was current when the fact was recorded, because later text cannot be the source.
    """
    words = fact_needles(row.evidence_text, row.object)
    if row.evidence_text or page.changed_at < row.created_at:
        return facts.find_quote(page.truth, page.timeline, words), None
    quotes: dict[str, tuple[facts.QuotedLine, int | None]] = {}
    for version, truth, timeline in past(page.slug, page.collection, row.created_at):
        place = facts.find_quote(truth, timeline, words)
        if place:
            quotes.setdefault(place.quote, (place, version))
    if len(quotes) != 1:  # no line was found, or versions of the same second disagree
        return None, None
    place, version = next(iter(quotes.values()))
    return place if version is None else place._replace(line=None), version


def _fact_line(row: "FactRow", page: _PageText, past: PastTexts) -> FactLine:
    place, version = _locate_fact(row, page, past)
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
        author=row.author,
        trust=CLASSES[row.trust],
    )


def _link_lines(db: "Database", whom: FactSubject) -> list[FactLine]:
    if whom.page_id is None:
        return []
    link_rows = links.outgoing(db, whom.page_id, "all", "") + links.incoming(db, whom.page_id, "all", "")
    of_links = links.classes(db, [link.id for link in link_rows])
    return [_link_line(link)._replace(trust=CLASSES[of_links.get(link.id, PERSON)]) for link in link_rows]


def _link_line(link: "LinkRow") -> FactLine:
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


def _subject_entries(
    db: "Database", whom: FactSubject, last: str, limit: int
) -> tuple[list[SubjectEntry], int]:
    """Return the newest timeline entries of the subject's page up to the day `last`, and their total number.

    At most `limit` entries are returned; the total number counts all of them.
    """
    if whom.page_id is None or whom.slug is None:
        return [], 0
    entries = [entry for entry in pages.timeline_entries(db, whom.page_id) if entry.date <= last]
    rows = [
        SubjectEntry(entry.date, entry.source, entry.summary, whom.slug, entry.line)
        for entry in entries[:limit]
    ]
    return rows, len(entries)


def facts_of_subject(
    db: "Database", subject: str, day: str | None, last_entry: str, limit: int, past: PastTexts
) -> tuple[FactSubject, list[FactLine], list[SubjectEntry], int]:
    """Return a subject, its facts and links valid on `day`, timeline entries of its page, and their number.

    If `day` is None, return all facts and links in chronological order. Entries are limited to the newest
    `limit` up to the day `last_entry`; the number counts all entries up to that day. Raise NotFound,
    suggesting similar names, for an unknown subject, and InvalidArgument if several pages have the name.
    """
    whom = _find_subject(db, subject)
    return whom, _lines_about(db, whom, day, past), *_subject_entries(db, whom, last_entry, limit)
