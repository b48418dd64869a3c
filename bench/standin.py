"""A memory that is asked as any is, but for its model: that knows the vectors of its questions beforehand.

As a process of its own it does one thing and ends: `python -m bench.standin PATH VERB ARGUMENTS SCOPE`, the arguments
as JSON. So it imports nothing that the command would not.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

MODEL, WIDTH = "lifelike", 384
"""What the vectors are said to be made by."""


class StandIn:
    """A model that knows the vectors of its questions beforehand. It serves every brain as their only model."""

    max_tokens, query_prefix, passage_prefix = 512, "", ""

    def __init__(self, known: dict[str, bytes]) -> None:
        self.name, self.dimensions = MODEL, WIDTH
        self._known = known

    def get(self, _name: str, _open: Callable[[], Any]) -> "StandIn":
        return self

    def ready(self) -> None:
        return None

    health = ready

    def embed_query(self, text: str) -> bytes:
        return self._known.get(text) or self.embed_passages([text])[0]

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        import numpy as np

        some = list(self._known.values())
        found = []
        for text in texts:
            rng = np.random.default_rng(list(text.encode()))
            vector = np.frombuffer(some[rng.integers(len(some))], "<f4") + rng.normal(scale=0.02, size=WIDTH)
            found.append((vector / np.linalg.norm(vector)).astype("<f4").tobytes())
        return found


def brain_of(path: str, questions: str = "questions.json") -> Any:
    """A memory that is asked as any is, but for its model; and the questions that this one knows."""
    from quaid.app import Brain
    from quaid.config import Settings

    folder = os.path.dirname(path)
    with open(os.path.join(folder, questions), encoding="utf-8") as file:
        known = {text: bytes.fromhex(vector) for text, vector in json.load(file)}
    settings = Settings(path, folder, folder, {"QUAID_CONVERSATIONS": "off"})
    return Brain(settings, models=StandIn(known)), list(known)  # type: ignore[arg-type]


def once(path: str, verb: str, arguments: dict[str, Any], scope: Any) -> None:
    from quaid.operations import dispatch

    brain, _ = brain_of(path, "question.json")
    with brain:
        dispatch.call(brain, dispatch.find_command(verb), arguments, scope)


if __name__ == "__main__":
    once(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4])
