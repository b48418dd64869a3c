"""Facts with their time and source: the table assertions.

Knows how one fact follows another, so that saying the same twice changes nothing and the order of saying does not
matter. Does not know what a contradiction is, nor page versions: a caller touches the page in the same transaction.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.core.facts import Given, check, object_key
from quaid.core.names import fold
from quaid.core.predicates import canonical, single_valued
from quaid.errors import InvalidArgument, NotFound
from quaid.store import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from quaid.store.db import Database

__all__ = ["SETTING", "Added", "Asserted", "Given", "about", "add", "check", "naming", "of_page", "single"]

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
    """Anything at all was written: also when a fact that was there got its end."""


def add(tx: "apsw.Connection", page_id: int, given: Given, now: str) -> Added:
    """Keep a fact, unless its page says it already. What it supersedes ends on the day on which it begins.

    That is the fact which it names, and each earlier one of its page, subject and single-valued predicate. A fact
    that comes late takes its place between the others: the order of saying does not matter.
    """
    key, wanted = fold(given.subject), canonical(given.predicate)
    there = [row for row in _rows(tx, page_id, key) if canonical(row.predicate) == wanted]
    known = _known(there, given)
    if known:
        return _said_again(tx, known, given)
    earlier: list[Asserted] = []
    later = None
    if given.valid_from and not given.valid_until and wanted in _single(tx):
        others = [row for row in there if object_key(row.object) != object_key(given.object)]
        earlier, later = _neighbours(others, given.valid_from)
    named = _require(tx, given.supersedes_id) if given.supersedes_id else None
    before = named or (earlier[-1] if earlier else None)
    tx.execute(
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, valid_from, valid_until,"
        " supersedes_id, confidence, asserted_by, source_ref, evidence_text, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(page_id, given.subject, key, given.predicate, given.object, given.valid_from),
            later.valid_from if later else given.valid_until,
            *(before.id if before else None, given.confidence, given.asserted_by),
            *(given.source_ref, given.evidence_text, now),
        ),
    )
    new = tx.last_insert_rowid()
    if later and (later.supersedes_id is None or later.supersedes_id in {row.id for row in earlier}):
        tx.execute("UPDATE assertions SET supersedes_id = ? WHERE id = ?", (new, later.id))
    ended = {row.id: row for row in [*earlier, *([named] if named else [])]}
    for row in ended.values():
        _end(tx, row, given.valid_from or now[:10])
    return Added(new, True, tuple(ended), True)


def _known(there: list[Asserted], given: Given) -> Asserted | None:
    """The row that says this already. An end without a beginning is the end of the one that holds."""
    same = [row for row in there if object_key(row.object) == object_key(given.object)]
    for row in same:
        if row.valid_from == given.valid_from and (
            given.valid_from
            or not (row.valid_until and given.valid_until)
            or row.valid_until == given.valid_until
        ):
            return row
    if given.valid_until and not given.valid_from:
        ends = (None, given.valid_until)
        return next((row for row in same if row.valid_until in ends), None)
    return None


def _said_again(tx: "apsw.Connection", known: Asserted, given: Given) -> Added:
    if known.valid_until or not given.valid_until:
        return Added(known.id, False, (), False)
    if known.valid_from and given.valid_until < known.valid_from:
        raise InvalidArgument(
            name="valid_until",
            problem=f"{given.valid_until} is before {known.valid_from}, when fact {known.id} began",
        )
    tx.execute("UPDATE assertions SET valid_until = ? WHERE id = ?", (given.valid_until, known.id))
    return Added(known.id, False, (), True)


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


def _end(tx: "apsw.Connection", row: Asserted, day: str) -> None:
    """End a fact, no sooner than it began: one that is corrected from its first day on never held."""
    day = max(day, row.valid_from or day)
    if row.valid_until is None or row.valid_until > day:
        tx.execute("UPDATE assertions SET valid_until = ? WHERE id = ?", (day, row.id))


def of_page(db: "Database", page_id: int) -> list[Asserted]:
    """What a page says, in the order in which it was written down."""
    return _select(db, "FROM assertions AS a WHERE a.page_id = ? ORDER BY a.id", (page_id,))


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


def everything(db: "Database") -> list[Asserted]:
    """Every fact of a page that is not quarantined."""
    return _select(
        db,
        "FROM assertions AS a JOIN pages AS p ON p.id = a.page_id AND p.quarantined_at IS NULL ORDER BY a.id",
        (),
    )


def single(db: "Database") -> frozenset[str]:
    """The predicates with one value at a time, with what the user said about it."""
    return single_valued(settings.get(db, SETTING))


def _single(tx: "apsw.Connection") -> frozenset[str]:
    row = tx.execute("SELECT value FROM config WHERE key = ?", (SETTING,)).fetchone()
    return single_valued(row[0] if row else None)


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
