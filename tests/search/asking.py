"""Ask a question of a database, by words alone unless an embedder is given."""

from typing import Any

from quaid.embedding.registry import Embedder
from quaid.search.answer import Answer, build_answer
from quaid.search.candidates import WORDS_ONLY, rank_question
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
DEPTHS = ("auto", "summary", "section", "full")
RANKING = ("filters", "strategy", "vectors", "reranker")


def ask(db: Database, question: str, embedder: Embedder | str = WORDS_ONLY, **options: Any) -> Answer:
    """Return the answer. The options are those of `rank_question` and `build_answer`."""
    ranking = {name: options.pop(name) for name in RANKING if name in options}
    return build_answer(db, rank_question(db, embedder, question, now=NOW, **ranking), **options)
