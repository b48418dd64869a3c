"""One model in memory for several brains of a process, each on a thread of its own.

Knows that a model which is loaded can be asked by several threads at once, and that loading it cannot. Does not know
which model is wanted.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from quaid.embed.protocol import Embedder

T = TypeVar("T")


class Models:
    """The model that is in use, whoever asks. Of two, the one that is not used any more is let go."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: Shared | None = None

    def get(self, name: str, open: Callable[[], Embedder]) -> Embedder:
        """The model of this name, opened if it is not."""
        with self._lock:
            if self._opened is None or self._opened.name != name:
                self._opened = Shared(open())
            return self._opened


class Shared:
    """A model that two threads may ask at the same moment: whoever comes first loads it, alone."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lock = Lock()
        self._loaded = False
        self.name, self.dimensions, self.max_tokens = embedder.name, embedder.dimensions, embedder.max_tokens
        self.query_prefix, self.passage_prefix = embedder.query_prefix, embedder.passage_prefix
        self.unrelated: float | None = getattr(embedder, "unrelated", None)

    def ready(self) -> str | None:
        return self._embedder.ready()

    def health(self) -> str | None:
        with self._lock:
            return self._embedder.health()

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return self._asked(lambda: self._embedder.embed_passages(texts))

    def embed_query(self, text: str) -> bytes:
        return self._asked(lambda: self._embedder.embed_query(text))

    def _asked(self, ask: Callable[[], T]) -> T:
        if self._loaded:
            return ask()
        with self._lock:
            result = ask()
            self._loaded = True
        return result
