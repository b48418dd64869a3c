"""Whether a page says already, in other words, what a new text says.

Knows which vectors to compare. No transaction is open while the model works; where there is no model, or where the
page has no vectors, nothing is said.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from quaid.core.chunk import TRUTH
from quaid.errors import QuaidError
from quaid.store import chunks, vectors

if TYPE_CHECKING:
    from quaid.embed.protocol import Embedder
    from quaid.store.db import Database
    from quaid.store.vectors import Index


def nearness(
    db: "Database", page_id: int, truth: str, embedder: "Callable[[], Embedder]", index: "Callable[[], Index]"
) -> float | None:
    """The highest cosine of a text with what a page's truth says, if that can be known."""
    model = vectors.active(db)
    here = [chunk.id for chunk in chunks.of_page(db, page_id) if chunk.kind == TRUTH]
    if model is None or not truth.strip() or len(vectors.texts(db, model.name, here)) == len(here):
        return None  # no model, or none of them has a vector
    try:
        mind = embedder()
        if mind.name != model.name or mind.ready() is not None:
            return None
        (raw,) = mind.embed_passages([truth])
    except QuaidError:
        return None
    import numpy

    cosines = index().cosines(model.name, numpy.frombuffer(raw, dtype="<f4"), here)
    return max(cosines.values(), default=None)
