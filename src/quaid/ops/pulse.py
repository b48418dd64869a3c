"""What changed in a memory since the last look, whoever changed it. Not operations: a server with listeners looks.

Cheap when nothing happened: the version of the file is one number. It also moves with signs of life that mean nothing
to a person, so what is told is compared, not guessed.
"""

from typing import Any, NamedTuple

from quaid.brain import Brain
from quaid.storage import briefing, embedding_queue, gaps, vectors
from quaid.storage.embedding_queue import ChangeStamp


class News(NamedTuple):
    kind: str  # changed, gap or embedding
    facts: dict[str, Any]


class Pulse:
    """What was seen last. The first look tells nothing."""

    def __init__(self) -> None:
        self._stamp: ChangeStamp | None = None
        self._state: tuple[Any, ...] | None = None
        self._gap = 0
        self._filling = ""

    def look(self, brain: Brain) -> list[News]:
        """What is new."""
        news = self._embedding(brain)
        stamp = embedding_queue.change_stamp(brain.db)
        if stamp == self._stamp:
            return news
        first, self._stamp = self._stamp is None, stamp
        state, gap = briefing.page_count_and_last_change(brain.db), gaps.latest(brain.db)
        if not first and state != self._state:
            news.append(News("changed", {"pages": state[0], "updated_at": state[1]}))
        if not first and gap > self._gap:
            news.append(News("gap", {"id": gap, "open": gaps.count(brain.db, resolved=False)}))
        self._state, self._gap = state, gap
        return news

    def _embedding(self, brain: Brain) -> list[News]:
        at_work = embedding_queue.current_run(brain.db.path)
        model = at_work.model if at_work else self._filling
        self._filling = at_work.model if at_work else ""
        if not model or vectors.find_model(brain.db, model) is None:
            return []
        made, total = embedding_queue.chunk_coverage(brain.db, model)
        return [
            News(
                "embedding",
                {"model": model, "done": made, "total": total, "finished": at_work is None},
            )
        ]
