"""Which turns are nearest to a vector.

Knows the vectors of turns in memory and the rows that they come from; the vectors of pages stand elsewhere. Does not
know what a vector means. Every answer is looked up in the turns that are there, in the same snapshot.
"""

from typing import TYPE_CHECKING, Any

from quaid.errors import NotFound
from quaid.store import turn_vectors
from quaid.store.view import SPARE, Counted, Source, View

if TYPE_CHECKING:
    import numpy as np

    from quaid.store.db import Database
    from quaid.store.vectors import Model

RESIDENT_BYTES = 64 * 1024 * 1024
"""Of 42,000 parts the vectors are kept in memory; of more, only codes. Conversations are asked less than pages."""


class TurnIndex:
    """The vectors of turns, searched. It serves one process, as `nearest.Index` does for pages."""

    def __init__(self, db: "Database", resident_bytes: int = RESIDENT_BYTES) -> None:
        self._db = db
        self._resident_bytes = resident_bytes
        self._views: dict[str, View] = {}
        self._made = Counted(db)

    def made(self, model: "Model") -> tuple[int, int]:
        """How many contents have a vector, and how many there are; kept until a write."""
        return self._made.of(model.name, lambda: turn_vectors.made(self._db, model.name))

    def nearest(self, model: str, query: "np.ndarray[Any, Any]", k: int) -> list[tuple[int, float]]:
        """The nearest turns with the cosines of their best parts, best first."""
        import numpy as np

        query = np.ascontiguousarray(query, np.float32)
        with self._db.reading():
            view = self._view(model)
            view.warm_up()
            wanted = k + SPARE
            while True:
                found = self._turns(view.best(query, min(wanted, len(view)), None))
                if len(found) >= k or wanted >= len(view):
                    return found[:k]
                wanted *= 4

    def cosines(self, model: str, query: "np.ndarray[Any, Any]", turn_ids: list[int]) -> dict[int, float]:
        """The cosine of the best part of each of these turns that has a vector."""
        return {turn: score for turn, (score, _) in self.best_parts(model, query, turn_ids).items()}

    def best_parts(
        self, model: str, query: "np.ndarray[Any, Any]", turn_ids: list[int]
    ) -> dict[int, tuple[float, int]]:
        """The same, with where that part begins."""
        import numpy as np

        rows = self._db.rows(
            "SELECT p.turn_id, p.start_at, v.vector FROM json_each(?) AS wanted"
            " CROSS JOIN turn_parts AS p ON p.turn_id = wanted.value"
            " CROSS JOIN turn_vectors AS v ON v.content_hash = p.content_hash AND v.model = ?",
            (str(turn_ids), model),
        )
        if not rows:
            return {}
        vectors = np.frombuffer(b"".join([row[2] for row in rows]), "<f2").reshape(len(rows), -1)
        scores = (vectors.astype(np.float32) @ np.asarray(query, np.float32)).tolist()
        best: dict[int, tuple[float, int]] = {}
        for (turn_id, start, _), score in zip(rows, scores, strict=True):
            if turn_id not in best or score > best[turn_id][0]:
                best[turn_id] = score, start
        return best

    def baseline(self, model: str, query: "np.ndarray[Any, Any]") -> float:
        """The cosine of a turn that has nothing to do with the question: that of the mean of all."""
        import numpy as np

        with self._db.reading():
            mean = self._view(model).mean()
        return float(mean @ np.asarray(query, np.float32))

    def _turns(self, found: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """The turns of these vectors that are there now, each once."""
        rows = self._db.rows(
            "SELECT v.id, p.turn_id FROM json_each(?) AS wanted CROSS JOIN turn_vectors AS v ON v.id = wanted.value"
            " CROSS JOIN turn_parts AS p ON p.content_hash = v.content_hash ORDER BY p.id DESC",
            (str([vector_id for vector_id, _ in found]),),
        )
        turns: dict[int, list[int]] = {}
        for vector_id, turn_id in rows:
            turns.setdefault(vector_id, []).append(turn_id)
        best: dict[int, float] = {}
        for vector_id, score in found:
            for turn_id in turns.get(vector_id, ()):
                best.setdefault(turn_id, score)
        return list(best.items())

    def _view(self, name: str) -> View:
        """What is known of a model, as of this snapshot."""
        row = self._db.one(
            "SELECT m.name, m.dimensions, 'turn_vectors', coalesce(e.encoding, 0), e.mean, 'turn_codes'"
            " FROM embedding_models AS m LEFT JOIN turn_encodings AS e ON e.model = m.name WHERE m.name = ?",
            (name,),
        )
        if row is None:
            raise NotFound(what="model", name=name, hint=" `quaid model list` shows them all.")
        source = Source(*row)
        view = self._views.get(name)
        if view is None or view.model != source:
            questions = view.questions if view else 0
            view = self._views[name] = View(self._db, source, self._resident_bytes, questions)
        view.refresh()
        return view
