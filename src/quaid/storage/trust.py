"""Store the trust classes of pages and their lines (see quaid.model.page).

A page without a row in page_trust has only lines of class PERSON. A class with a lower number is trusted more and is
called higher.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from quaid.errors import TextOfPerson
from quaid.model import dates
from quaid.model.page import (
    ALL_BY_PERSON,
    DERIVED,
    IMPORTED,
    PERSON,
    WEB,
    LineTrust,
    class_of_source,
    combine,
    is_superseded,
    line_key,
    line_keys,
    unpack,
)

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database, Transaction


def of_pages(db: "Database | Transaction", page_ids: Iterable[int]) -> dict[int, LineTrust]:
    """Return the classes of these pages by page id, without pages whose lines all have the class PERSON."""
    rows = db.rows(
        "SELECT page_id, trust, lines FROM page_trust WHERE page_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(page_ids)),),
    )
    return {page_id: unpack(trust, lines) for page_id, trust, lines in rows}


def of_page(db: "Database | Transaction", page_id: int) -> LineTrust:
    """Return the classes of the lines of a page."""
    row = db.one("SELECT trust, lines FROM page_trust WHERE page_id = ?", (page_id,))
    return ALL_BY_PERSON if row is None else unpack(row[0], row[1])


def set_of_page(tx: "Transaction", page_id: int, classes: LineTrust) -> None:
    """Store the classes of the lines of a page."""
    if classes == ALL_BY_PERSON:
        tx.execute("DELETE FROM page_trust WHERE page_id = ?", (page_id,))
        return
    tx.execute(
        "INSERT OR REPLACE INTO page_trust (page_id, trust, highest, lowest, lines) VALUES (?, ?, ?, ?, ?)",
        (page_id, classes.rest, classes.highest, classes.lowest, classes.pack()),
    )


def set_of_new_pages(tx: "Transaction", page_ids: Iterable[int]) -> None:
    """Set the class of all lines of new pages to that of this write."""
    if tx.trust != PERSON:
        tx.executemany(
            "INSERT OR REPLACE INTO page_trust (page_id, trust, highest, lowest) VALUES (?1, ?2, ?2, ?2)",
            [(page_id, tx.trust) for page_id in page_ids],
        )


def of_sources(tx: "Transaction", sources: Iterable[str]) -> int:
    """Return the lowest class of sources that are web addresses or pages of this memory; PERSON if none are."""
    names = [name.strip().strip("[]") for name in sources]
    if any(class_of_source(name) == WEB for name in names):
        return WEB
    row = tx.one(
        "SELECT max(t.lowest) FROM json_each(?) AS s CROSS JOIN collections AS c JOIN pages AS p"
        " ON p.collection_id = c.id AND p.slug IN (s.value, 'sources/' || s.value)"
        " JOIN page_trust AS t ON t.page_id = p.id",
        (json.dumps(names, ensure_ascii=False),),
    )
    return int(row[0]) if row and row[0] is not None else PERSON


MOST_SENTENCES = 60
"""At most this many new lines per write of an agent are compared with text from the web."""
ENOUGH_WORDS, FEWEST_WORDS = 0.8, 4
"""A sentence repeats a line if they share ENOUGH_WORDS of the words of the shorter one.

Both must have at least FEWEST_WORDS words.
"""
_CITED = re.compile(r"\[\[([^\[\]|#^]+)|\[source:\s*([^\]]+)\]", re.IGNORECASE)
_WORD = re.compile(r"\w+")


def of_new_lines(tx: "Transaction", front: dict[str, Any], old: str, new: str) -> dict[bytes, int]:
    """Return the new lines of an agent's text, by key, that have the class WEB, which is below that of agents.

    These are the lines that repeat web text, or all new lines if they or the front matter cite a web source.
    """
    if tx.trust != DERIVED or tx.one("SELECT 1 FROM page_trust WHERE lowest = ? LIMIT 1", (WEB,)) is None:
        return {}
    before = set(line_keys(old))
    lines = {key: line for line in new.splitlines() if (key := line_key(line)) and key not in before}
    text = "\n".join(lines.values())
    cited = [match[1] or match[2] for match in _CITED.finditer(text)]
    cited += [str(front[key]) for key in ("source", "sources", "url") if front.get(key)]
    if cited and of_sources(tx, cited) == WEB:
        return dict.fromkeys(lines, WEB)
    compared = list(lines.items())[:MOST_SENTENCES]
    return {key: WEB for key, line in compared if _repeats_web(tx, line)}


def _repeats_web(tx: "Transaction", line: str) -> bool:
    """Return True if a sentence of this line repeats a line from the web."""
    for sentence in re.split(r"(?<=[.!?;])\s+", line):
        words = {word.casefold() for word in _WORD.findall(sentence)}
        longest = sorted(words, key=len, reverse=True)[:8]
        if len(words) < FEWEST_WORDS:
            continue
        expression = " OR ".join(f'"{word}"' for word in longest)
        for truth, timeline in tx.rows(
            "SELECT p.compiled_truth, p.timeline FROM page_fts AS f JOIN page_trust AS t ON t.page_id = f.rowid"
            " JOIN pages AS p ON p.id = f.rowid WHERE page_fts MATCH ? AND t.lowest = ? ORDER BY f.rank LIMIT 5",
            (expression, WEB),
        ):
            for other in f"{truth}\n{timeline}".splitlines():
                own = {word.casefold() for word in _WORD.findall(other)}
                if len(own) >= FEWEST_WORDS and len(words & own) >= ENOUGH_WORDS * min(len(words), len(own)):
                    return True
    return False


def lower(db: "Database", page_id: int, keys: set[bytes]) -> None:
    """Lower the class of lines of a page to that of the caller. Lines with a lower class keep it."""
    if db.connection.trust == PERSON:
        return

    def work(tx: "Transaction") -> None:
        row = tx.one("SELECT compiled_truth || char(10) || timeline FROM pages WHERE id = ?", (page_id,))
        before = of_page(tx, page_id)
        classes = {key: before.lines.get(key, before.rest) for key in line_keys(str(row[0]))} if row else {}
        raised = {key: max(classes[key], tx.trust) for key in keys & classes.keys()}
        set_of_page(tx, page_id, combine({**classes, **raised}.items()))

    before = of_page(db, page_id)
    if any(before.lines.get(key, before.rest) < db.connection.trust for key in keys):
        db.write(work)


def accept(tx: "Transaction", page_id: int, lines: str | None = None, since: int = 0, until: int = 0) -> None:
    """Set lines of a page that a person has accepted, or all of its lines and facts, to the class PERSON.

    With `lines`, the versions `since` to `until` also get this class in page_authors; otherwise all versions do.
    """
    if lines is None:
        set_of_page(tx, page_id, ALL_BY_PERSON)
        tx.execute("UPDATE page_authors SET trust = 0 WHERE page_id = ?", (page_id,))
        tx.execute("UPDATE assertions SET trust = 0 WHERE page_id = ?", (page_id,))
        return
    row = tx.one("SELECT compiled_truth || char(10) || timeline FROM pages WHERE id = ?", (page_id,))
    before = of_page(tx, page_id)
    classes = {key: before.lines.get(key, before.rest) for key in line_keys(str(row[0]))} if row else {}
    accepted = dict.fromkeys(classes.keys() & set(line_keys(lines)), PERSON)
    set_of_page(tx, page_id, combine({**classes, **accepted}.items()))
    tx.execute(
        "UPDATE page_authors SET trust = 0 WHERE page_id = ? AND version BETWEEN ? AND ?",
        (page_id, since, until),
    )


def guard(tx: "Transaction", trust: int) -> None:
    """Raise TextOfPerson if an agent is about to change or end text or facts of class PERSON."""
    if tx.guarded and trust == PERSON and tx.trust != PERSON and not tx.replicating:
        raise TextOfPerson


def guard_lines(db: "Database | Transaction", page_id: int, old: str, new: str) -> None:
    """Raise TextOfPerson if an agent is about to change or remove lines of class PERSON, or make them expire."""
    tx: Any = getattr(db, "connection", db)
    if tx.guarded and tx.trust != PERSON and not tx.replicating:
        before = of_page(tx, page_id)
        lasting, left = dates.lasting_text(old), dates.lasting_text(new)
        if before.removed(old, new, PERSON + 1) or before.removed(lasting, left, PERSON + 1):
            raise TextOfPerson


def guard_front(tx: "Transaction", page_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise TextOfPerson if an agent makes a page with lines of class PERSON expire, or marks it as outdated."""
    changed = {key for key in (dates.EXPIRY_KEY, "status") if new.get(key) not in (None, old.get(key))}
    if dates.EXPIRY_KEY in changed or ("status" in changed and is_superseded(new["status"])):
        guard(tx, of_page(tx, page_id).highest)


@contextmanager
def written_as(tx: "Transaction", trust: int, *, at_most: bool = False) -> Iterator[None]:
    """Within this context, write with this trust class. With `at_most`, a lower class of the caller is kept."""
    before, tx.trust = tx.trust, max(tx.trust, trust) if at_most else trust
    try:
        yield
    finally:
        tx.trust = before


def class_of_member(tx: "Transaction", person: str, agent: str) -> int:
    """Return the class of a change in a shared space.

    It is PERSON for the owner of this memory, IMPORTED for other members, and DERIVED for agents.
    """
    if agent:
        return DERIVED
    own = tx.one("SELECT 1 FROM spaces WHERE person = ?", (person,))
    return PERSON if own or person == "owner" else IMPORTED


# Migration of memories from older releases

_CLASSIFY_SQL = """
UPDATE page_authors SET trust = CASE
    WHEN source GLOB 'http*://*' THEN 4
    WHEN agent <> '' THEN 3
    WHEN author IN ('', 'owner') THEN iif(source <> '', 2, 0)
    WHEN author = 'import' THEN 2
    WHEN page_id IN (SELECT p.id FROM pages AS p JOIN spaces AS s ON s.collection_id = p.collection_id)
        THEN iif(author IN (SELECT person FROM spaces), 0, 2)
    ELSE 3 END;

UPDATE assertions SET trust = CASE
    WHEN asserted_by IN ('agent', 'enrichment') OR author NOT IN ('', 'owner', 'import')
        AND author NOT IN (SELECT person FROM spaces) THEN iif(source_ref GLOB 'http*://*', 4, 3)
    WHEN asserted_by = 'import' OR author = 'import' THEN 2
    ELSE 0 END;

INSERT INTO page_trust (page_id, trust, highest, lowest)
SELECT p.id, 2, 2, 2 FROM pages AS p JOIN collections AS c ON c.id = p.collection_id
WHERE p.id NOT IN (SELECT page_id FROM page_authors) AND (c.kind = 'documents' OR (
    SELECT import_id NOT GLOB 'sync-*' AND import_id NOT GLOB 'edit-*' FROM raw_imports
    WHERE page_id = p.id ORDER BY id DESC LIMIT 1
));
"""


def classify_all(tx: "Transaction") -> None:
    """Set the classes of the versions, pages, lines and facts of an older memory from their recorded origin."""
    tx.execute(_CLASSIFY_SQL)
    rows = tx.rows(
        "SELECT DISTINCT a.page_id, p.version, p.compiled_truth || char(10) || p.timeline, c.root_path IS NOT NULL"
        " FROM page_authors AS a JOIN pages AS p ON p.id = a.page_id"
        " JOIN collections AS c ON c.id = p.collection_id WHERE a.trust > 0"
    )
    for page_id, version, text, is_file in rows:
        set_of_page(tx, page_id, _replayed(tx, page_id, version, text, bool(is_file)))


def _replayed(tx: "Transaction", page_id: int, version: int, text: str, is_file: bool) -> LineTrust:
    """Compute the classes of the lines of a page from the authors of its stored versions.

    `version` and `text` are the current ones. `is_file` is True if the page has a file in a folder.
    """
    authors: dict[int, int] = dict(
        tx.rows("SELECT version, trust FROM page_authors WHERE page_id = ?", (page_id,))
    )
    stored = tx.rows(
        "SELECT page_version, CAST(raw_bytes AS TEXT), import_id GLOB 'sync-*' OR import_id GLOB 'edit-*'"
        " FROM raw_imports WHERE page_id = ? AND page_version < ? ORDER BY page_version, id",
        (page_id, version),
    )
    before = ""
    classes: LineTrust | None = None
    for number, after, is_edit in [*stored, (version, text, True)]:
        # A version of a file has a known author only if a client wrote exactly that version.
        known = [own for own in authors if own == number or (own < number and not is_file)]
        written = authors[max(known)] if known else PERSON if is_edit else IMPORTED
        classes = LineTrust(written) if classes is None else classes.after_write(before, str(after), written)
        before = str(after)
    return classes or ALL_BY_PERSON
