"""Facts with their time and source: the table assertions.

Knows how one fact follows another, so that saying the same twice changes nothing and the order of saying does not
matter. Does not know what a contradiction is, nor page versions: a caller touches the page in the same transaction.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import InvalidArgument, NotFound
from quaid.model.facts import (
    EntityRef,
    FactInput,
    NameIndex,
    PageInfo,
    canonical_predicate,
    join_evidence,
    join_sources,
    object_key,
    resolve_name,
    single_valued_predicates,
)
from quaid.model.names import fold_name
from quaid.store import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from quaid.store.db import Database

SETTING = "single_valued_predicates"
"""What the user adds to the predicates with one value at a time."""

_COLUMNS = (
    "a.id, a.page_id, a.subject, a.subject_key, a.predicate, a.object, a.valid_from, a.valid_until, a.supersedes_id,"
    " a.confidence, a.asserted_by, a.source_ref, a.evidence_text, a.created_at"
)


class Asserted(NamedTuple):
    """A fact as it is kept."""

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


class Added(NamedTuple):
    """What became of a fact."""

    id: int
    added: bool
    """A new row; otherwise the fact was there."""
    superseded: tuple[int, ...]
    """The facts that ended because this one came."""
    changed: bool
    """Anything at all was written: also when a fact that was there got its end, or a second witness."""
    ended: bool = False
    """A fact that was there got an end, or another one."""
    ended_before: str | None = None
    """The end that was corrected."""
    witnessed: bool = False
    """A fact that was there got another source, other words or another confidence."""


def add(tx: "apsw.Connection", page_id: int, given: FactInput, now: str) -> Added:
    """Keep a fact, or what is new about one that its page says already. What it supersedes ends when it begins.

    That is the fact which it names, and each earlier one of its page, subject and single-valued predicate. A fact
    that comes late takes its place between the others: the order of saying does not matter.
    """
    key, wanted = fold_name(given.subject), canonical_predicate(given.predicate)
    named = _named(tx, page_id, given) if given.supersedes_id else None
    there = [row for row in _rows(tx, page_id, key) if canonical_predicate(row.predicate) == wanted]
    known = _known(there, given, now[:10])
    if known:
        return _said_again(tx, known, given, named, now)
    earlier: list[Asserted] = []
    later = None
    if given.valid_from and not given.valid_until and wanted in _single(tx):
        others = [row for row in there if object_key(row.object) != object_key(given.object)]
        earlier, later = _neighbours(others, given.valid_from)
    before = named or (earlier[-1] if earlier else None)
    until = later.valid_from if later else given.valid_until
    new = _insert(
        tx,
        page_id,
        given._replace(valid_until=until, supersedes_id=before.id if before else None),
        now,
    )
    if later and (later.supersedes_id is None or later.supersedes_id in {row.id for row in earlier}):
        tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (new, later.id))
    ended = {row.id: row for row in [*earlier, *([named] if named else [])]}
    for row in ended.values():
        _end(tx, row, given.valid_from or now[:10])
    return Added(new, True, tuple(ended), True)


def _insert(tx: "apsw.Connection", page_id: int, given: FactInput, created_at: str) -> int:
    tx.execute(
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, valid_from, valid_until,"
        " supersedes_id, confidence, asserted_by, source_ref, evidence_text, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(page_id, given.subject, fold_name(given.subject), given.predicate, given.object),
            *(given.valid_from, given.valid_until, given.supersedes_id, given.confidence),
            *(given.asserted_by, given.source_ref, given.evidence_text, created_at),
        ),
    )
    return tx.last_insert_rowid()


def said(tx: "apsw.Connection", page_id: int, given: FactInput) -> list[Asserted]:
    """What a page says about the same subject with the same predicate."""
    wanted = canonical_predicate(given.predicate)
    return [
        row
        for row in _rows(tx, page_id, fold_name(given.subject))
        if canonical_predicate(row.predicate) == wanted
    ]


def bring_back(tx: "apsw.Connection", page_id: int, given: FactInput, created_at: str) -> Added:
    """Keep a fact just as it was once kept: nothing is concluded from it, and no other fact ends."""
    time = (given.valid_from, given.valid_until)
    for row in said(tx, page_id, given):
        if (row.valid_from, row.valid_until) == time and object_key(row.object) == object_key(given.object):
            return Added(row.id, False, (), False)
    return Added(_insert(tx, page_id, given, created_at), True, (), True)


def follow(tx: "apsw.Connection", new_id: int, old_id: int) -> bool:
    """Say that a fact superseded another. False: it did another one, the other has no end, or it is a circle."""
    new, old = _require(tx, new_id), _require(tx, old_id)
    if new.supersedes_id == old.id:
        return True
    if new.supersedes_id is not None or old.valid_until is None or _is_circle(tx, new, old):
        return False
    tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (old.id, new.id))
    return True


def _named(tx: "apsw.Connection", page_id: int, given: FactInput) -> Asserted:
    """The fact that another one names as superseded. It must say the same thing of the same subject."""
    named = _require(tx, given.supersedes_id or 0)
    same = canonical_predicate(named.predicate) == canonical_predicate(given.predicate)
    if not same or _whom(tx, named.page_id, named.subject_key) != _whom(
        tx, page_id, fold_name(given.subject)
    ):
        raise InvalidArgument(
            name="supersedes_id",
            problem=f"fact {named.id} says {named.subject} {named.predicate} {named.object}, and this one"
            f" {given.subject} {given.predicate} {given.object}; subject and predicate must be the same",
        )
    return named


def _whom(tx: "apsw.Connection", page_id: int, key: str) -> EntityRef:
    called = tx.execute(
        "SELECT n.name, n.page_id, n.kind FROM page_names AS n JOIN pages AS p ON p.id = n.page_id"
        " WHERE n.name = ? AND p.quarantined_at IS NULL",
        (key,),
    )
    names = NameIndex([(str(name), int(str(page)), str(kind)) for name, page, kind in called])
    row = tx.execute("SELECT slug, title, type FROM pages WHERE id = ?", (page_id,)).fetchone()
    return resolve_name(names, key, page_id, PageInfo(*row) if row else None)


def _known(there: list[Asserted], given: FactInput, today: str) -> Asserted | None:
    """The row that says this already. An end without a beginning is the end of the one that holds."""
    same = [row for row in there if object_key(row.object) == object_key(given.object)]
    began = [row for row in same if row.valid_from == given.valid_from]
    if given.valid_from:
        return began[0] if began else None
    if not given.valid_until:
        # What has ended without a beginning may hold anew, unless it is the same witness who says so again.
        return next((row for row in began if _holds(row, today) or _is_replay(row, given)), None)
    fitting = [row for row in same if row.valid_until == given.valid_until]
    fitting += [row for row in (*began, *same) if row.valid_until is None]
    if len(same) == 1 and (same[0].valid_from or "") <= given.valid_until:
        fitting += same  # nothing holds: it is the end of this one that is corrected
    return fitting[0] if fitting else None


def _holds(row: Asserted, today: str) -> bool:
    return row.valid_until is None or row.valid_until > today


def _is_replay(row: Asserted, given: FactInput) -> bool:
    source, evidence = _joined(row, given)
    return bool(given.source_ref) and (source, evidence) == (row.source_ref, row.evidence_text)


def _joined(row: Asserted, given: FactInput) -> tuple[str, str]:
    return join_sources(row.source_ref, given.source_ref), join_evidence(
        row.evidence_text, given.evidence_text
    )


def _said_again(
    tx: "apsw.Connection", known: Asserted, given: FactInput, named: Asserted | None, now: str
) -> Added:
    """Keep what is new: an end, a corrected end, another witness, what it supersedes."""
    until = given.valid_until or known.valid_until
    if known.valid_from and until and until < known.valid_from:
        raise InvalidArgument(
            name="valid_until",
            problem=f"{until} is before {known.valid_from}, when fact {known.id} began",
        )
    source, evidence = _joined(known, given)
    confidence = _confidence(known, given)
    supersedes = known.supersedes_id
    if named:
        _refuse_circle(tx, known, named)
        supersedes = supersedes or named.id
    before = (known.valid_until, known.source_ref, known.evidence_text, known.confidence, known.supersedes_id)
    after = (until, source, evidence, confidence, supersedes)
    if after != before:
        tx.execute(
            "UPDATE assertions SET valid_until = ?, source_ref = ?, evidence_text = ?, confidence = ?,"
            " supersedes_id = ? WHERE id = ?",
            (*after, known.id),
        )
    ended = named is not None and _end(tx, named, known.valid_from or now[:10])
    return Added(
        known.id,
        False,
        (named.id,) if named and ended else (),
        after != before or ended,
        until != known.valid_until,
        known.valid_until if until != known.valid_until else None,
        after[1:4] != before[1:4],
    )


def _confidence(known: Asserted, given: FactInput) -> float:
    """The only witness may change his mind; of several the surest counts; who names nothing is no witness."""
    if known.source_ref == given.source_ref:
        return given.confidence
    return max(known.confidence, given.confidence) if given.source_ref else known.confidence


def _is_circle(tx: "apsw.Connection", known: Asserted, named: Asserted) -> bool:
    """Whether the named one came after the known one already."""
    circle = tx.execute(
        "WITH RECURSIVE older (id) AS (VALUES (?) UNION SELECT a.supersedes_id FROM assertions AS a"
        " JOIN older ON older.id = a.id WHERE a.supersedes_id IS NOT NULL) SELECT 1 FROM older WHERE id = ?",
        (named.id, known.id),
    ).fetchone()
    return circle is not None


def _refuse_circle(tx: "apsw.Connection", known: Asserted, named: Asserted) -> None:
    if _is_circle(tx, known, named):
        what = "the same fact" if named.id == known.id else f"what fact {known.id} was superseded by"
        raise InvalidArgument(name="supersedes_id", problem=f"fact {named.id} is {what}")


def _neighbours(others: list[Asserted], day: str) -> tuple[list[Asserted], Asserted | None]:
    """Which facts give way to one that begins on a day, the latest last, and which one it gives way to.

    One whose end somebody said keeps it. One without a beginning is taken to hold since it was written down.
    """
    beginnings = {(row.supersedes_id, row.valid_from) for row in others}
    standing = [row for row in others if row.valid_until is None or (row.id, row.valid_until) in beginnings]
    earlier = [
        row
        for row in standing
        if (row.valid_from or row.created_at[:10]) < day
        and (row.valid_until is None or row.valid_until > day)
    ]
    later = [row for row in standing if row.valid_from and row.valid_from > day]
    return (
        sorted(earlier, key=lambda row: row.valid_from or ""),
        min(later, key=lambda row: row.valid_from or "", default=None),
    )


def _end(tx: "apsw.Connection", row: Asserted, day: str) -> bool:
    """End a fact, no sooner than it began: one that is corrected from its first day on never held."""
    day = max(day, row.valid_from or day)
    if row.valid_until is not None and row.valid_until <= day:
        return False
    tx.execute("UPDATE assertions SET valid_until = ? WHERE id = ?", (day, row.id))
    return True


def shorten(
    tx: "apsw.Connection", seen: Asserted, since: str | None, until: str | None, successor: int | None
) -> bool:
    """Let a fact hold for less time, as a person decided who saw it so. False: it is another one by now.

    It is said to be superseded where its successor supersedes nothing yet and would not supersede itself.
    """
    row = tx.execute(f"SELECT {_COLUMNS} FROM assertions AS a WHERE a.id = ?", (seen.id,)).fetchone()  # noqa: S608
    if row is None or Asserted(*row) != seen:
        return False
    tx.execute("UPDATE assertions SET valid_from = ?, valid_until = ? WHERE id = ?", (since, until, seen.id))
    if successor is not None:
        new = _require(tx, successor)
        if new.supersedes_id is None and not _is_circle(tx, new, seen):
            tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (seen.id, new.id))
    return True


def by_id(db: "Database", ids: "Iterable[int]") -> dict[int, Asserted]:
    """Facts by their ids."""
    rows = _select(
        db, "FROM json_each(?) AS w CROSS JOIN assertions AS a ON a.id = w.value", (str(sorted(ids)),)
    )
    return {row.id: row for row in rows}


def of_page(db: "Database", page_id: int) -> list[Asserted]:
    """What a page says, in the order in which it was written down."""
    return _select(db, "FROM assertions AS a WHERE a.page_id = ? ORDER BY a.id", (page_id,))


def everywhere(db: "Database", first: int, last: int) -> list[tuple[str, str, Asserted]]:
    """The facts of shown pages with ids in a range, in their order, each with its page's collection and slug."""
    rows = db.rows(
        f"SELECT c.name, p.slug, {_COLUMNS} FROM assertions AS a CROSS JOIN pages AS p ON p.id = a.page_id"  # noqa: S608
        " JOIN collections AS c ON c.id = p.collection_id"
        " WHERE a.id BETWEEN ? AND ? AND p.quarantined_at IS NULL ORDER BY a.id",
        (first, last),
    )
    return [(collection, slug, Asserted(*row)) for collection, slug, *row in rows]


def about(db: "Database", keys: "Iterable[str]") -> list[Asserted]:
    """What any page says about subjects with one of these folded names."""
    return _select(
        db,
        "FROM json_each(?) AS wanted CROSS JOIN assertions AS a ON a.subject_key = wanted.value"
        " JOIN pages AS p ON p.id = a.page_id AND p.quarantined_at IS NULL ORDER BY a.id",
        (json.dumps(sorted(set(keys)), ensure_ascii=False),),
    )


def naming(db: "Database", names: "Iterable[str]") -> list[Asserted]:
    """What any page says of which the object is written as one of these names, whatever its case."""
    return _select(
        db,
        "FROM assertions AS a JOIN pages AS p ON p.id = a.page_id AND p.quarantined_at IS NULL"
        " WHERE lower(a.object) IN (SELECT lower(value) FROM json_each(?)) ORDER BY a.id",
        (json.dumps(sorted(set(names)), ensure_ascii=False),),
    )


def single(db: "Database") -> frozenset[str]:
    """The predicates with one value at a time, with what the user said about it."""
    return single_valued_predicates(settings.get(db, SETTING))


def _single(tx: "apsw.Connection") -> frozenset[str]:
    row = tx.execute("SELECT value FROM config WHERE key = ?", (SETTING,)).fetchone()
    return single_valued_predicates(row[0] if row else None)


def _select(db: "Database", rest: str, values: tuple[Any, ...]) -> list[Asserted]:
    return [Asserted(*row) for row in db.rows(f"SELECT {_COLUMNS} {rest}", values)]


def _rows(tx: "apsw.Connection", page_id: int, key: str) -> list[Asserted]:
    sql = f"SELECT {_COLUMNS} FROM assertions AS a WHERE a.subject_key = ? AND a.page_id = ? ORDER BY a.id"  # noqa: S608
    return [Asserted(*row) for row in tx.execute(sql, (key, page_id))]


def _require(tx: "apsw.Connection", assertion_id: int) -> Asserted:
    row = tx.execute(f"SELECT {_COLUMNS} FROM assertions AS a WHERE a.id = ?", (assertion_id,)).fetchone()  # noqa: S608
    if row is None:
        raise NotFound(what="fact", name=assertion_id, hint=" `quaid facts SUBJECT --history` shows the ids.")
    return Asserted(*row)
