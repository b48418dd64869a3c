"""Making vectors without being asked: whether that is wanted, whether there is anything to do, and doing it.

Not operations: a server looks, a process that it starts fills, and a question fills what is little. A model that
fails is left alone for ten minutes, unless something new was written here. Questions leave one that did not answer
alone for a minute, and the first good answer has the filling go on.
"""

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quaid.brain import Brain
from quaid.errors import Cancelled, EmbedderUnavailable, QuaidError
from quaid.storage import collections, embedding_queue
from quaid.storage.embedding_queue import ChangeStamp, EmbeddedRange, EmbeddingFailure, TurnScope

if TYPE_CHECKING:
    from quaid.embedding.registry import Embedder

SETTING, VARIABLE = "background_embedding", "QUAID_BACKGROUND_EMBEDDING"
RETRY_SECONDS = 600
CONVERSATIONS = "embed_conversations"
RECENT_DAYS = 90
"""What ended earlier is embedded only if all conversations are, or by `quaid embed --all`."""

REST_SECONDS = 60
"""So long questions do without a model that did not answer one."""

AT_ONCE = 2_000
"""Vectors that one write drops."""

SLOW_SECONDS = 1.0
"""Whoever needs longer to fail is not asked again for the same question."""


def is_on(brain: Brain) -> bool:
    """Whether vectors may be made without a call for it: never while semantic search is off."""
    return brain.option(SETTING) != "off" and bool(brain.model_name)


def turns(brain: Brain) -> TurnScope:
    """Which turns of conversations are to have vectors, as embed_conversations says."""
    which = str(brain.option(CONVERSATIONS))
    return TurnScope(which, brain.now(-RECENT_DAYS * 86_400) if which == "recent" else "")


def turns_since(brain: Brain) -> str | None:
    """The moment since which turns are to have vectors, "" for all; None: none are."""
    wanted = turns(brain)
    return None if wanted.which == "off" else wanted.since


class Watch:
    """What a server remembers between two looks at its memory."""

    def __init__(self) -> None:
        self._stamp: ChangeStamp | None = None
        self._whole: EmbeddedRange | None = EmbeddedRange()  # None: something lacks a vector
        self._tried: ChangeStamp | None = None  # the state in which somebody was last sent to fill
        self._troubled = False  # what went wrong was there at the last look

    def wants(self, brain: Brain) -> bool:
        """Whether somebody should be sent to make vectors now."""
        if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
            return False
        stamp = embedding_queue.change_stamp(brain.db)
        if stamp != self._stamp:
            self._whole = embedding_queue.embedded_range(
                brain.db, self._whole or EmbeddedRange(), turns(brain)
            )
            self._stamp = stamp
        if self._whole is not None or not is_on(brain) or embedding_queue.current_run(brain.db.path):
            return False
        failed = embedding_queue.last_failure(brain.db.path)
        recovered, self._troubled = self._troubled and failed is None, failed is not None
        if failed is not None and failed.at > brain.now(-RETRY_SECONDS):
            wanted = stamp.own != (self._tried.own if self._tried else 0)
        else:
            # Whoever changed nothing will change nothing, unless the model is back.
            wanted = recovered or failed is not None or self._tried != stamp
        if wanted:
            self._tried = stamp
        return wanted


def fill(brain: Brain) -> None:
    """Make what is missing, unless another process does. What goes wrong is left in writing."""
    from quaid.embedding.backfill import run_backfill

    embedder = _model(brain)
    if embedder is not None:
        try:
            settle(brain, embedder)
            run_backfill(
                brain.db,
                embedder,
                now=brain.now,
                progress=brain.progress,
                turns_since=turns_since(brain),
                patient=False,
            )
            _let_go(brain)
        except QuaidError:
            pass  # noted


def _let_go(brain: Brain) -> None:
    """Drop vectors of texts that are gone, once they outnumber the others: a server holds them all."""
    from quaid.storage import vectors

    outlived = vectors.unused_contents(brain.db)
    for at in range(0, len(outlived), AT_ONCE):
        some = outlived[at : at + AT_ONCE]
        brain.db.write(lambda tx, some=some: vectors.drop_unused_vectors(tx, some))  # type: ignore[misc]


def settle(brain: Brain, embedder: "Embedder") -> None:
    """Search with the chosen model from now on, if another was in use; what it made stays."""
    from quaid.storage import vectors

    active = vectors.active_model(brain.db)
    if active is not None and active.name != embedder.name:
        moment = brain.now()

        def work(tx: Any) -> None:
            vectors.register_model(tx, embedder.name, embedder.dimensions, moment)
            vectors.activate_model(tx, embedder.name)

        brain.db.write(work)


def fill_few(brain: Brain, embedder: "Embedder", turns: str | None = None) -> str:
    """Make what is missing if that is little and likely to work. Why the model is not to be asked more, if so.

    With a moment, what was said in conversations since then; else what pages lack.
    """
    from quaid.embedding import backfill

    if not brain.db.writable or not is_on(brain) or _failed_lately(brain, embedder.name):
        return ""
    started = time.monotonic()
    try:
        if embedder.ready() is None:
            settle(brain, embedder)
            if turns is None:
                backfill.embed_few_chunks(brain.db, embedder, now=brain.now, progress=brain.progress)
            else:
                backfill.embed_few_turns(
                    brain.db, embedder, now=brain.now, progress=brain.progress, since=turns
                )
    except Cancelled:
        raise
    except QuaidError as failure:
        # Some texts are refused, and at once; a model that hangs is another matter.
        hangs = isinstance(failure, EmbedderUnavailable) and time.monotonic() - started >= SLOW_SECONDS
        note(brain, embedder.name, _noted(failure), down=hangs)
        return str(failure).rstrip(".") if hangs else ""
    return ""


class Asked:
    """A model for one question: what goes wrong is left in writing, and so is that it goes right again."""

    def __init__(self, brain: Brain, embedder: "Embedder") -> None:
        self._brain, self._embedder = brain, embedder
        self.name, self.dimensions, self.max_tokens = embedder.name, embedder.dimensions, embedder.max_tokens
        self.query_prefix, self.passage_prefix = embedder.query_prefix, embedder.passage_prefix
        self.unrelated: float | None = getattr(embedder, "unrelated", None)

    def ready(self) -> str | None:
        return self._embedder.ready()

    def health(self) -> str | None:
        return self._embedder.health()

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> bytes:
        try:
            vector = self._embedder.embed_query(text)
        except EmbedderUnavailable as failure:
            note(self._brain, self.name, _noted(failure), down=True)
            raise
        works(self._brain, self.name)
        return vector


def resting(brain: Brain, model: str) -> str:
    """Why a question does without a model that failed a moment ago; "" when it may be asked."""
    failed = down(brain, model)
    if failed is None or failed.at <= brain.now(-REST_SECONDS):
        return ""
    return f"the model {model} failed at {failed.at}: {failed.problem}; it is tried again after a minute"


def down(brain: Brain, model: str) -> EmbeddingFailure | None:
    """The last failure of a model that has not answered since."""
    failed = embedding_queue.last_failure(brain.db.path)
    return failed if failed is not None and failed.down and failed.model == model else None


def works(brain: Brain, model: str) -> None:
    """Say that a model answers: whatever waits for that goes on."""
    if down(brain, model) is not None:
        try:
            embedding_queue.clear_failure(brain.db.path)
        except QuaidError:
            pass  # a folder that cannot be written


def note(brain: Brain, model: str, problem: str, *, down: bool = False) -> None:
    """Say what went wrong, where `quaid status` finds it."""
    try:
        embedding_queue.record_failure(brain.db.path, model, problem, brain.now(), down=down)
    except QuaidError:
        pass  # a folder that cannot be written


def _noted(failure: QuaidError) -> str:
    """A failure as it may be written down: a server's own words may repeat the text that it was sent."""
    return str(failure.facts.get("noted") or failure.facts.get("problem") or failure).rstrip(".")


def note_end(brain: Brain, problem: str) -> None:
    """Say that a process which made vectors died, unless it said why itself."""
    if not _failed_lately(brain, None):
        note(brain, collections.get_setting(brain.db, "embedding_model") or "", problem)


def _failed_lately(brain: Brain, model: str | None) -> bool:
    failed = embedding_queue.last_failure(brain.db.path)
    return failed is not None and model in (None, failed.model) and failed.at > brain.now(-RETRY_SECONDS)


def _model(brain: Brain) -> "Embedder | None":
    try:
        return brain.embedder
    except QuaidError as failure:
        note(brain, collections.get_setting(brain.db, "embedding_model") or "", str(failure).rstrip("."))
        return None


def asked_model(brain: Brain) -> "tuple[Embedder | None, str]":
    """The active model with the last few vectors made, or why not: a question is answered all the same."""
    try:
        embedder = brain.embedder
    except QuaidError as failure:
        return None, str(failure).rstrip(".")
    # A model that hangs is not asked twice.
    problem = resting(brain, embedder.name) or fill_few(brain, embedder)
    return (None, problem) if problem else (Asked(brain, embedder), "")
