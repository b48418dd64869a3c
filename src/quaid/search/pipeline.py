"""A question being answered: plan, retrieve, fuse, expand, cut to the budget.

Knows the order of the steps. Only reads: whoever asks may note a gap afterwards.
"""

from typing import TYPE_CHECKING

from quaid.errors import InvalidArgument
from quaid.search import budget
from quaid.search.answer import Answer, Looked, answer
from quaid.search.fuse import RRF, STRATEGIES, fuse, with_whole_pages
from quaid.search.meaning import Meaning, NoMeaning, ask
from quaid.search.retrieve import gather
from quaid.storage.text_index import SearchFilters

if TYPE_CHECKING:
    from collections.abc import Callable

    from quaid.embedding.registry import Embedder
    from quaid.storage.sqlite.connection import Database
    from quaid.storage.vector_index import ChunkIndex

DEFAULT_BUDGET = 4_000
NO_FILTERS = SearchFilters()

WHOLE_PAGES = 25
"""How many of the first pages are compared as wholes."""


def query(
    db: "Database",
    embedder: "Embedder | None",
    question: str,
    *,
    now: str,
    filters: SearchFilters = NO_FILTERS,
    limit: int = 10,
    depth: str = "auto",
    token_budget: int = DEFAULT_BUDGET,
    merge: str = "sum",
    fusion_k: int = RRF,
    explain: bool = False,
    vectors: "Callable[[], ChunkIndex] | None" = None,
    no_model: str = "no model is set up",
) -> Answer:
    """Answer a question out of the memory. A resident process hands in how to get at its vectors."""
    if not question.strip():
        raise InvalidArgument(name="question", problem="is empty; ask something")
    for name, value in (("limit", limit), ("token_budget", token_budget)):
        if value < 1:
            raise InvalidArgument(name=name, problem=f"must be 1 or more, not {value}")
    for name, text, known in (("depth", depth, budget.DEPTHS), ("merge", merge, STRATEGIES)):
        if text not in known:
            raise InvalidArgument(name=name, problem=f"must be one of {', '.join(known)}, not {text!r}")
    looked = look(
        db,
        embedder,
        question,
        now=now,
        filters=filters,
        merge=merge,
        fusion_k=fusion_k,
        vectors=vectors,
        no_model=no_model,
    )
    with db.reading():
        return answer(db, looked, limit=limit, depth=depth, token_budget=token_budget, explain=explain)


def look(
    db: "Database",
    embedder: "Embedder | None",
    question: str,
    *,
    now: str,
    filters: SearchFilters = NO_FILTERS,
    merge: str = "sum",
    fusion_k: int = RRF,
    vectors: "Callable[[], ChunkIndex] | None" = None,
    no_model: str = "no model is set up",
) -> Looked:
    """Everything up to the order of the results."""
    # The model is asked outside of any transaction: it may take its time.
    meaning = ask(db, embedder, question, vectors) if embedder else NoMeaning(no_model)
    with db.reading():
        found = gather(db, question, meaning, filters, now)
        ranking = fuse(found.evidence, merge, fusion_k)
        if merge == "sum" and isinstance(meaning, Meaning):
            first = sorted(ranking.pages, key=lambda page: -ranking.pages[page])[:WHOLE_PAGES]
            ranking = with_whole_pages(found.evidence, ranking, meaning.of_pages(db, first))
    return Looked(question, meaning, found, ranking)
