"""How the memory is doing: what is done, what is not, why not, and what to do about it.

Loads no model. Whatever is wrong with one is told, and never keeps the rest from being told.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.brain import Brain
from quaid.embedding import registry as embedders
from quaid.errors import EmbeddingsOff, QuaidError
from quaid.model.plain_text import count_noun
from quaid.ops import background, resident
from quaid.ops.register import op
from quaid.storage import SCHEMA_VERSION, chunks, collections, conversations, embedding_queue, vectors
from quaid.storage.embedding_queue import EmbeddingFailure, EmbeddingRun

if TYPE_CHECKING:
    from quaid.embedding.registry import Embedder


class ActiveModel(NamedTuple):
    """The model that questions are asked with."""

    name: str
    ready: bool
    problem: str | None
    remedy: str | None
    vectors: int  # chunks that have one
    missing: int


class OtherModel(NamedTuple):
    """A model that made vectors and is not in use."""

    name: str
    dimensions: int
    vectors: int


class Said(NamedTuple):
    """What is embedded of conversations."""

    turns: int
    missing: int  # turns that are to have vectors and lack one
    embedding: str  # recent, on or off, as embed_conversations says
    recent_days: int


class StatusRecord(NamedTuple):
    path: str
    size: int
    wal_size: int
    writable: bool
    schema_version: int
    pages: int
    pages_uncut: int  # an import leaves pages whole; the next question cuts them
    chunks: int
    model: ActiveModel
    others: tuple[OtherModel, ...]
    background_embedding: bool
    filling: EmbeddingRun | None
    trouble: EmbeddingFailure | None
    next_steps: tuple[str, ...]
    conversations: Said
    files_not_taken_in: int  # of attached folders; `quaid doctor` names them
    folders_halted: tuple[str, ...]  # collections whose sync waits for a person, or failed
    resident: bool  # a server of this memory runs here, and commands are handed to it


@op("read", examples=("quaid status", "quaid status --json"))
def status(brain: Brain) -> StatusRecord:
    """Show how the memory is doing: pages, chunks, vectors, the model, and what to do next. Loads no model."""
    from quaid.storage import briefing
    from quaid.storage.sqlite import connection

    db = brain.db
    with db.reading():
        pages = briefing.page_count(db)
        uncut, total = len(chunks.uncut_pages(db)), chunks.count(db)
        active = _active(brain, total)
        others = [
            OtherModel(each.name, each.dimensions, embedding_queue.chunk_coverage(db, each.name)[0])
            for each in vectors.list_models(db)
            if each.name != active.name
        ]
        said = _said(brain, active.name)
    failed = embedding_queue.last_failure(db.path)
    record = StatusRecord(
        path=db.path,
        size=connection.file_size(db.path),
        wal_size=connection.file_size(db.path + "-wal"),
        writable=db.writable,
        schema_version=SCHEMA_VERSION,
        pages=pages,
        pages_uncut=uncut,
        chunks=total,
        model=active,
        others=tuple(each for each in others if each.vectors),
        background_embedding=background.is_on(brain),
        filling=embedding_queue.current_run(db.path),
        trouble=failed
        if failed and failed.model == active.name and (failed.down or active.missing + uncut + said.missing)
        else None,
        next_steps=(),
        conversations=said,
        files_not_taken_in=sum(map(len, collections.files_not_indexed(db).values())),
        folders_halted=tuple(
            each.name for each in collections.list_all(db) if each.state == "active" and each.halt_reason
        ),
        resident=resident.listens(brain.settings.home, db.path),
    )
    return record._replace(next_steps=tuple(_next_steps(record)))


def _active(brain: Brain, total: int) -> ActiveModel:
    name = brain.model_name or collections.get_setting(brain.db, "embedding_model") or embedders.DEFAULT_MODEL
    problem, remedy = _problem(brain, name)
    known = vectors.find_model(brain.db, name)
    made = embedding_queue.chunk_coverage(brain.db, name)[0] if known else 0
    return ActiveModel(name, problem is None, problem, remedy, made, total - made)


def _said(brain: Brain, model: str) -> Said:
    wanted = background.turns(brain)
    _, turns = conversations.count(brain.db)
    missing = (
        embedding_queue.count_missing_turns(brain.db, model, wanted.since) if wanted.which != "off" else 0
    )
    return Said(turns, missing, wanted.which, background.RECENT_DAYS)


def _problem(brain: Brain, name: str) -> tuple[str | None, str | None]:
    """Why the model cannot be used, and what helps."""
    try:
        embedder: Embedder = brain.embedder
        problem = embedder.ready()
    except EmbeddingsOff:
        return "semantic search is off", brain.way_to_meaning
    except QuaidError as error:
        return str(error.facts.get("problem") or error).rstrip("."), _remedy(name)
    except Exception as error:  # a plugin, or settings that somebody edited: told, like everything else
        return f"it fails ({type(error).__name__}: {error})", _remedy(name)
    failed = None if problem else background.down(brain, name)
    if failed is not None:
        problem = f"it failed at {failed.at}: {failed.problem}"
    return problem, _remedy(name) if problem else None


def _remedy(name: str) -> str:
    return f"`quaid model check {name}` tells more, `quaid model list` shows the others"


def _next_steps(record: StatusRecord) -> list[str]:
    model, steps = record.model, []
    for name in record.folders_halted:
        steps.append(f"`quaid collection info {name}` tells why it is not in step with its folder")
    if record.files_not_taken_in:
        files = count_noun(record.files_not_taken_in, "file")
        steps.append(f"`quaid doctor` names {files} of attached folders that could not be taken in")
    if not record.pages:
        steps.append("`quaid put SLUG FILE` or `quaid import FOLDER` brings pages in")
    if not model.ready:
        steps.append("until the model is back, questions are answered by words")
    elif not record.writable:
        pass
    elif record.filling:
        steps.append("nothing to do: vectors are being made")
    elif record.pages_uncut:
        steps.append(
            f"`quaid embed` cuts {count_noun(record.pages_uncut, 'page')} into chunks and makes the vectors"
        )
    elif model.missing:
        number = f"{model.missing:,} missing vectors" if model.missing > 1 else "missing vector"
        steps.append(f"`quaid embed` makes the {number}")
    elif record.conversations.missing:
        turns = count_noun(record.conversations.missing, "turn")
        steps.append(f"`quaid embed` makes vectors for {turns} of conversations")
    return steps
