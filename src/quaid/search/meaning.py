"""A question as a vector, and the chunks that are near it.

Knows how a model is asked and what is said when it cannot be: a question is always answered, by words alone if
need be. Does not know which model that is, nor how vectors are stored.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from quaid.errors import QuaidError
from quaid.search import strength

if TYPE_CHECKING:
    from collections.abc import Callable

    from quaid.embedding.registry import Embedder
    from quaid.storage.sqlite.connection import Database
    from quaid.storage.text_index import SearchFilters
    from quaid.storage.vector_index import ChunkIndex
    from quaid.storage.vectors import EmbeddingModel

LONGEST_TEXT = 4_000
"""Characters of a question that a model is given; it reads about half of them."""


class Meaning(NamedTuple):
    """The lane of meaning for one question."""

    model: str
    vector: Any  # numpy.ndarray, which no cold command imports
    vectors: "ChunkIndex"
    baseline: float
    """The cosine of a chunk that has nothing to do with the question."""
    embedded: int
    total: int
    """How many chunks have a vector, and how many there are."""

    def nearest(self, count: int, filters: "SearchFilters") -> dict[int, float]:
        """The nearest chunks with their cosines, best first."""
        return dict(self.vectors.nearest(self.model, self.vector, count, filters))

    def cosines(self, chunk_ids: list[int]) -> dict[int, float]:
        """How near these chunks are, as far as they have a vector."""
        return self.vectors.cosines(self.model, self.vector, chunk_ids)

    def of_pages(self, db: "Database", page_ids: list[int]) -> dict[int, float]:
        """How near these pages are as wholes."""
        from quaid.storage import vector_index

        return vector_index.page_cosines(db, self.vectors, self.model, self.vector, page_ids)


class Vectors(Protocol):
    """What is asked of vectors that are ready to be searched, whatever they are of."""

    def made(self, model: "EmbeddingModel") -> tuple[int, int]: ...

    def baseline(self, model: str, query: Any) -> float: ...


class Question(NamedTuple):
    """A question as a vector of the active model, and what is known of the vectors that it is compared with."""

    model: str
    vector: Any
    baseline: float
    embedded: int
    total: int


class NoMeaning(NamedTuple):
    """Why there is no such lane."""

    reason: str


def ask(
    db: "Database", embedder: "Embedder", question: str, resident: "Callable[[], ChunkIndex] | None" = None
) -> Meaning | NoMeaning:
    """The lane of meaning for chunks, or why there is none."""
    from quaid.storage import vector_index

    index = resident() if resident else vector_index.ChunkIndex(db)
    asked = as_vector(db, embedder, question, index)
    if isinstance(asked, NoMeaning):
        return asked
    return Meaning(asked.model, asked.vector, index, asked.baseline, asked.embedded, asked.total)


def as_vector(db: "Database", embedder: "Embedder", question: str, index: Vectors) -> Question | NoMeaning:
    """The question as a vector of the active model, or why that cannot be."""
    from quaid.storage import vectors

    active = vectors.active_model(db)
    embedded, total = index.made(active) if active else (0, 0)
    reason = embedder.ready()
    if reason:
        return NoMeaning(f"the model cannot be used: {reason}")
    if active is None or active.name != embedder.name or not embedded:
        return NoMeaning("nothing was embedded yet; `quaid embed --all` does it")
    try:
        raw = embedder.embed_query(question[:LONGEST_TEXT])
    except QuaidError as failure:
        return NoMeaning(str(failure).rstrip("."))
    import numpy

    vector = numpy.frombuffer(raw, dtype="<f4")
    mean = index.baseline(active.name, vector)
    unrelated = strength.expected(mean, embedded, getattr(embedder, "unrelated", None))
    return Question(active.name, vector, unrelated, embedded, total)
