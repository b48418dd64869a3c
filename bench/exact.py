"""How many of the vectors that are really nearest a memory finds: here all of them are compared."""

import time
from typing import Any

from bench.standin import MODEL

EXACT = 200
"""Questions that are asked."""


def recall_of(brain: Any, questions: list[str], k: int) -> tuple[float, dict[str, str]]:
    """How many of the exact nearest are found, and what that alone costs."""
    import numpy as np

    asked = questions[:: max(1, len(questions) // EXACT)][:EXACT]
    vectors = np.stack([np.frombuffer(brain.embedder.embed_query(each), "<f4") for each in asked])
    started = time.process_time()
    found = [[chunk for chunk, _ in brain.vectors.nearest(MODEL, vector, k)] for vector in vectors]
    cost = 1000 * (time.process_time() - started) / len(asked)
    exact = _exact(brain.db, vectors, k)
    share = sum(len({*ours} & {*theirs}) for ours, theirs in zip(found, exact, strict=True)) / (
        k * len(asked)
    )
    return share, {f"nearest {k} alone, resident, mean ms": f"{cost:.1f}"}


def _exact(db: Any, vectors: Any, k: int) -> list[list[int]]:
    """The chunks that are nearest to each of some vectors, all of them compared."""
    import numpy as np

    best_scores = np.empty((0, len(vectors)), np.float32)
    best_ids = np.empty((0, len(vectors)), np.int64)
    last, step = 0, 20_000
    while rows := db.rows(
        "SELECT v.id, c.id, v.vector FROM page_embeddings_vec_384 v JOIN chunks c USING (content_hash)"
        " WHERE v.id > ? ORDER BY v.id LIMIT ?",
        (last, step),
    ):
        last = rows[-1][0]
        some = np.frombuffer(b"".join([row[2] for row in rows]), "<f2").reshape(len(rows), -1)
        scores = np.concatenate([best_scores, some.astype(np.float32) @ vectors.T])
        ids = np.array([row[1] for row in rows])[:, None].repeat(len(vectors), axis=1)
        ids = np.concatenate([best_ids, ids])
        order = np.argsort(-scores, axis=0)[:k]
        best_scores, best_ids = (np.take_along_axis(each, order, 0) for each in (scores, ids))
    return [column.tolist() for column in best_ids.T]
