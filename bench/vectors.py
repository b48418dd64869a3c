"""Models for measuring: the real one with its vectors kept on disk, and one that makes vectors up."""

import hashlib
import os
from collections.abc import Sequence
from typing import Self

import apsw

from quaid.embedding import registry as embedders
from quaid.embedding.registry import Embedder, EmbedderEnvironment

CACHE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ".cache", "bench")


class Kept:
    """A model whose vectors are computed once for each text."""

    def __init__(self, model: Embedder, path: str) -> None:
        self._model = model
        self.name, self.dimensions, self.max_tokens = model.name, model.dimensions, model.max_tokens
        self.query_prefix, self.passage_prefix = model.query_prefix, model.passage_prefix
        self._known = apsw.Connection(path)
        self._known.set_busy_timeout(60_000)
        self._known.execute("PRAGMA synchronous = OFF")
        self._known.execute(
            "CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    @classmethod
    def open(cls) -> Self:
        os.makedirs(CACHE, exist_ok=True)
        model = embedders.get_embedder(
            embedders.DEFAULT_MODEL, {}, EmbedderEnvironment(os.path.join(CACHE, "models"), os.environ)
        )
        return cls(model, os.path.join(CACHE, f"{model.name}.db"))

    def ready(self) -> str | None:
        return self._model.ready()

    def health(self) -> str | None:
        return self._model.health()

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self._kept(text, is_query=False) for text in texts]

    def embed_query(self, text: str) -> bytes:
        return self._kept(text, is_query=True)

    def familiarity(self, text: str) -> float:
        return float(self._model.familiarity(text)) if hasattr(self._model, "familiarity") else 1.0

    def embed_query_now(self, text: str) -> bytes:
        """Without looking for a kept vector."""
        return self._model.embed_query(text)

    def _kept(self, text: str, *, is_query: bool) -> bytes:
        key = hashlib.sha256(f"{is_query}{text}".encode("utf-8", "surrogatepass")).digest()
        for (vector,) in self._known.execute("SELECT vector FROM vectors WHERE hash = ?", (key,)):
            return bytes(vector)
        vector = self._model.embed_query(text) if is_query else self._model.embed_passages([text])[0]
        self._known.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, vector))
        return vector


class MadeUp(Kept):
    """Passages get some vector at once, questions a real one: what a query costs does not depend on it."""

    def __init__(self, model: Kept) -> None:
        self._model = model
        self.name, self.dimensions, self.max_tokens = model.name, model.dimensions, model.max_tokens
        self.query_prefix, self.passage_prefix = model.query_prefix, model.passage_prefix

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        import numpy

        found = []
        for text in texts:
            seed = int.from_bytes(
                hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little"
            )
            vector = numpy.random.default_rng(seed).standard_normal(self.dimensions).astype("<f4")
            found.append((vector / numpy.linalg.norm(vector)).astype("<f4").tobytes())
        return found

    def embed_query(self, text: str) -> bytes:
        return self._model.embed_query_now(text)  # type: ignore[attr-defined, no-any-return]
