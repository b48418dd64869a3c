"""What a whole page means: the mean of its chunks' vectors.

Knows which chunks a page has. Does not know where their vectors are, nor what they are compared for.
"""

from typing import TYPE_CHECKING, Any

from quaid.store.chunks import of_pages

if TYPE_CHECKING:
    import numpy as np

    from quaid.store.db import Database
    from quaid.store.nearest import Index

MOST_VECTORS = 1_500
"""That are added up for one question. What comes behind them is left out, the last page in part."""


def cosines(
    db: "Database", index: "Index", model: str, query: "np.ndarray[Any, Any]", page_ids: list[int]
) -> dict[int, float]:
    """The cosine of each page that has vectors."""
    import numpy as np

    with db.reading():
        page_of = of_pages(db, page_ids, MOST_VECTORS)
        found, vectors = index.vectors_of(model, list(page_of))
    if not len(found):
        return {}
    pages = np.array([page_of[chunk_id] for chunk_id in found.tolist()])
    starts = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]])
    sums = np.add.reduceat(vectors, starts, axis=0)
    scores = sums @ np.asarray(query, np.float32) / np.maximum(np.linalg.norm(sums, axis=1), 1e-9)
    return dict(zip(pages[starts].tolist(), scores.tolist(), strict=True))
