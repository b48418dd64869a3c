"""Choosing the model of semantic search, turning it off, and seeing how far its vectors are.

A thin face over models: the text of the memory stays whatever is chosen, vectors of a model that was in use before
stay too, and missing ones are made by `quaid serve` in its pauses, by a question, or by `quaid embed`.
"""

from typing import Annotated, Any, NamedTuple

from quaid.brain import Brain
from quaid.embedding import registry as embedders
from quaid.errors import EmbedderUnavailable, InvalidArgument, QuaidError
from quaid.ops import background, models
from quaid.ops.models import ModelsRecord
from quaid.ops.register import Arg, op
from quaid.storage import chunks, collections, embedding_queue, vectors

SETTING = "semantic_search"


class EmbeddingsRecord(NamedTuple):
    on: bool
    model: str  # the chosen one, which stays chosen while it cannot be used
    chosen_by: str  # the environment variable, the config file, memory, or default
    ready: bool
    problem: str | None
    vectors: int
    chunks: int
    filling: bool  # a process is at work on it
    next_step: str


@op("owner", command="embeddings list", examples=("quaid embeddings list",))
def embeddings_list(brain: Brain) -> ModelsRecord:
    """List the models that semantic search can use; nothing is loaded."""
    return models.model_list(brain)


@op("owner", command="embeddings use", examples=("quaid embeddings use bge-small-en-v1.5",))
def embeddings_use(
    brain: Brain, name: Annotated[str, Arg("The model.", positional=True)]
) -> EmbeddingsRecord:
    """Search by meaning with this model from now on. Text stays; vectors that are missing are made bit by bit."""
    _refuse_if_pinned(brain)
    name = embedders.DEFAULT_MODEL if name in embedders.DEFAULT_MODEL_ALIASES else name
    added = embedders.parse_models(collections.get_setting(brain.db, embedders.MODELS_SETTING))
    embedder = embedders.get_embedder(name, added, models.surroundings(brain))
    problem = embedder.ready()
    if problem:
        raise EmbedderUnavailable(
            name=name, problem=problem, remedy=f"`quaid model check {name}` tells more; nothing was changed"
        )
    moment = brain.now()

    def work(tx: Any) -> None:
        vectors.register_model(tx, name, embedder.dimensions, moment)
        vectors.activate_model(tx, name)
        collections.set_setting(tx, SETTING, "on")

    brain.db.write(work)
    return _status(brain)


@op("owner", command="embeddings off", examples=("quaid embeddings off",))
def embeddings_off(brain: Brain) -> EmbeddingsRecord:
    """Turn semantic search off: questions are answered by words, and say so. The vectors stay."""
    _refuse_if_pinned(brain)
    brain.db.write(lambda tx: collections.set_setting(tx, SETTING, "off"))
    return _status(brain)


@op("owner", command="embeddings status", aliases={"embeddings": {}}, examples=("quaid embeddings status",))
def embeddings_status(brain: Brain) -> EmbeddingsRecord:
    """Show which model is chosen, whether it can be used, and how many vectors it has. Loads no model."""
    return _status(brain)


def _refuse_if_pinned(brain: Brain) -> None:
    value, source = brain.settings.said("embedding.plugin")
    if value is not None:
        raise InvalidArgument(
            name="embedding.plugin", problem=f"{source} says {value}, which goes before; change it there"
        )


def _status(brain: Brain) -> EmbeddingsRecord:
    chosen, kept = brain.model_name, collections.get_setting(brain.db, "embedding_model")
    name = chosen or kept or embedders.DEFAULT_MODEL
    source = brain.settings.said("embedding.plugin")[1] or ("memory" if kept else "default")
    problem = _problem(brain) if chosen else "semantic search is off"
    total = chunks.count(brain.db)
    made = embedding_queue.chunk_coverage(brain.db, name)[0] if vectors.find_model(brain.db, name) else 0
    filling = embedding_queue.current_run(brain.db.path) is not None
    record = EmbeddingsRecord(bool(chosen), name, source, problem is None, problem, made, total, filling, "")
    return record._replace(next_step=_next(brain, record))


def _problem(brain: Brain) -> str | None:
    try:
        return brain.embedder.ready()
    except QuaidError as error:
        return str(error.facts.get("problem") or error).rstrip(".")


def _next(brain: Brain, record: EmbeddingsRecord) -> str:
    if not record.on:
        return brain.way_to_meaning
    if record.problem:
        return "until the model is back, questions are answered by words; nothing else has to be done"
    if record.filling or record.vectors == record.chunks:
        return ""
    if background.is_on(brain):
        return "`quaid serve` makes the missing vectors in its pauses; `quaid embed` makes them now"
    return "`quaid embed` makes the missing vectors"
