"""What is needed to tell which pages say the same: their texts, their names, what their vectors mean.

Knows rows only. Does not know when two pages are alike (core.likeness does), nor what is done about it.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw
    import numpy as np

    from quaid.store.db import Database
    from quaid.store.vectors import Model

    Array = np.ndarray[Any, Any]

AT_ONCE = 500
"""Texts that are read together."""

PARTED = "distinct "
"""Under which keys it is kept that two pages are not the same: their ids that stay, in order."""

MOST_NAMESAKES = 3
"""A name that more pages have says nothing: every folder has its Overview."""


class Known(NamedTuple):
    """What is shown of a page that is like another."""

    slug: str
    """With its collection, unless that is the default one."""
    title: str
    type: str
    length: int
    """Of its truth."""


def page_ids(db: "Database") -> list[int]:
    """Every page that can be seen."""
    return [
        page_id for (page_id,) in db.rows("SELECT id FROM pages WHERE quarantined_at IS NULL ORDER BY id")
    ]


def truths(db: "Database", ids: list[int]) -> "Iterator[tuple[int, str]]":
    """What these pages say now, some hundred at a time."""
    for start in range(0, len(ids), AT_ONCE):
        yield from db.rows(
            "SELECT p.id, p.compiled_truth FROM json_each(?) AS wanted CROSS JOIN pages AS p ON p.id = wanted.value"
            " WHERE p.quarantined_at IS NULL",
            (str(ids[start : start + AT_ONCE]),),
        )


def namesakes(db: "Database") -> list[tuple[int, int, str]]:
    """Pairs of pages of one type and collection that have a title or alias in common."""
    rows = db.rows(
        "WITH called AS (SELECT n.name, n.page_id, p.type, p.collection_id FROM page_names AS n"
        " JOIN pages AS p ON p.id = n.page_id AND p.quarantined_at IS NULL WHERE n.kind IN ('title', 'alias')),"
        " few AS (SELECT name, type, collection_id FROM called GROUP BY 1, 2, 3 HAVING count(*) BETWEEN 2 AND ?)"
        " SELECT a.page_id, b.page_id, a.name FROM few JOIN called AS a USING (name, type, collection_id)"
        " JOIN called AS b USING (name, type, collection_id) WHERE a.page_id < b.page_id ORDER BY 1, 2, 3",
        (MOST_NAMESAKES,),
    )
    return [(first, second, str(name)) for first, second, name in rows]


def part(tx: "apsw.Connection", one: int, other: int, now: str) -> bool:
    """Keep that a person said of two pages that they are not the same. False: somebody had said so."""
    tx.execute(
        "INSERT INTO quaid_config (key, value) SELECT ? || min(a.uuid, b.uuid) || ' ' || max(a.uuid, b.uuid), ?"
        " FROM pages AS a, pages AS b WHERE a.id = ? AND b.id = ? ON CONFLICT DO NOTHING",
        (PARTED, now, one, other),
    )
    return tx.changes() > 0


def parted(db: "Database") -> set[tuple[int, int]]:
    """Pairs of pages of which somebody said that they are not the same, the lower id first."""
    rows = db.rows(
        "SELECT min(a.id, b.id), max(a.id, b.id) FROM quaid_config AS q"
        " JOIN pages AS a ON a.uuid = substr(q.key, ?1, 36) JOIN pages AS b ON b.uuid = substr(q.key, ?1 + 37)"
        " WHERE q.key GLOB ?2",
        (len(PARTED) + 1, PARTED + "*"),
    )
    return {(one, other) for one, other in rows}


def known(db: "Database", ids: set[int]) -> dict[int, Known]:
    """What is shown of these pages."""
    rows = db.rows(
        "SELECT p.id, iif(c.name = 'default', p.slug, c.name || '::' || p.slug), p.title, p.type,"
        " length(p.compiled_truth) FROM pages AS p JOIN collections AS c ON c.id = p.collection_id"
        " WHERE p.id IN (SELECT value FROM json_each(?))",
        (str(sorted(ids)),),
    )
    return {row[0]: Known(*row[1:]) for row in rows}


def means(db: "Database", model: "Model", ids: set[int]) -> "dict[int, Array]":
    """The direction in which the vectors of each of these pages point together; pages without any are left out."""
    import numpy as np

    found: dict[int, list[Array]] = {}
    for page_id, vector in db.rows(
        f"SELECT c.page_id, v.vector FROM json_each(?) AS wanted CROSS JOIN chunks AS c ON c.page_id = wanted.value"  # noqa: S608 (checked)
        f" CROSS JOIN {model.vec_table} AS v ON v.content_hash = c.content_hash AND v.model = ?",
        (str(sorted(ids)), model.name),
    ):
        found.setdefault(page_id, []).append(np.frombuffer(vector, "<f2").astype(np.float32))
    sums = {page_id: np.sum(vectors, axis=0) for page_id, vectors in found.items()}
    return {page_id: each / max(float(np.linalg.norm(each)), 1e-9) for page_id, each in sums.items()}
