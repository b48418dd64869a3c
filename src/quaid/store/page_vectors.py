"""What a whole page means: the mean of its chunks' vectors.

Knows how to read them for a few pages. Does not know what they are compared for.
"""

from typing import TYPE_CHECKING, Any

from quaid.store.vectors import find

if TYPE_CHECKING:
    import numpy as np

    from quaid.store.db import Database

MOST_VECTORS = 1_500
"""That are read for one question. What comes behind them is left out, the last page in part."""


def cosines(
    db: "Database", model: str, query: "np.ndarray[Any, Any]", page_ids: list[int]
) -> dict[int, float]:
    """The cosine of each page that has vectors."""
    import numpy as np

    known = find(db, model)
    if known is None:
        return {}
    rows = db.rows(
        "SELECT c.page_id, v.vector FROM json_each(?) AS wanted"  # noqa: S608 (the registry's name)
        " CROSS JOIN chunks AS c ON c.page_id = wanted.value"
        f" CROSS JOIN {known.vec_table} AS v ON v.content_hash = c.content_hash AND v.model = ? LIMIT ?",
        (str(page_ids), model, MOST_VECTORS),
    )
    if not rows:
        return {}
    vectors = np.frombuffer(b"".join([row[1] for row in rows]), "<f2").reshape(len(rows), -1)
    pages = np.array([row[0] for row in rows])
    starts = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]])
    sums = np.add.reduceat(vectors.astype(np.float32), starts, axis=0)
    scores = sums @ np.asarray(query, np.float32) / np.maximum(np.linalg.norm(sums, axis=1), 1e-9)
    return dict(zip(pages[starts].tolist(), scores.tolist(), strict=True))
