"""Embedding models: list, add, check and select them, and embed text that has no vectors yet."""

import os
import re
import time
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from quaid import errors
from quaid.app import RERANKER_SETTING, Brain
from quaid.embedding import backfill, onnx as onnx_models, registry as embedders, remote as remote_models
from quaid.embedding.backfill import Backfill
from quaid.embedding.registry import Embedder, EmbedderEnvironment, ModelDescription
from quaid.operations import background, golden, pages as editing
from quaid.operations.registry import Arg, Named, op
from quaid.search import rerank
from quaid.storage import collections, embedding_queue, vectors
from quaid.storage.questions import GoldenQuestions

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Transaction

MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}")
# Two vectors of the same text count as made by the same model if their cosine is at least this.
SAME_MODEL_COSINE = 0.95
PROBE_TEXT = (
    "The pier was closed for repairs in the spring of 2024; the harbour master asked for a second survey of "
    "the piles, and the ferry used the old quay until the report was signed in May."
)


class ModelRecord(NamedTuple):
    name: str
    kind: str
    place: str
    model: str
    dimensions: int
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    active: bool
    ready: bool
    problem: str | None


class EmbedRecord(NamedTuple):
    model: str
    embedded: int  # chunks embedded by this run
    cached: int  # chunks that already had a vector
    total: int
    failed: int
    failures: tuple[str, ...]  # pages and conversations for which the model returned no usable vector
    active: bool
    cpu_seconds: float
    turns: int = 0  # conversation turns embedded by this run
    turns_left: int = 0


class ModelCheckRecord(NamedTuple):
    name: str
    healthy: bool
    problem: str | None
    dimensions: int
    ms_per_text: float | None

    @property
    def exit_status(self) -> int:
        return 0 if self.healthy else 1


@op("owner", command="model list", aliases={"model": {}}, examples=("quaid model list",))
def model_list(brain: Brain) -> Named[tuple[ModelRecord, ...]]:
    """List the models with their state. Loads no model."""
    active = _active_name(brain)
    models = embedders.available_models(_added_models(brain))
    return Named("models", tuple(_model_record(brain, model, active) for model in models.values()))


@op(
    "owner",
    command="model add",
    examples=(
        "quaid model add ~/models/all-MiniLM-L6-v2",
        "quaid model add http://127.0.0.1:11434 --kind ollama --model nomic-embed-text",
        "quaid model add https://api.example.com/v1 --kind openai --model text-embed-1 --key-env EXAMPLE_KEY"
        " --allow-remote",
    ),
)
def model_add(
    brain: Brain,
    place: Annotated[str, Arg("A folder with an ONNX model, or the address of a server.", positional=True)],
    name: Annotated[str | None, Arg("Name of the model [the folder's or the server's name].")] = None,
    kind: Annotated[Literal["onnx", "ollama", "openai"], Arg("A folder, or the API of the server.")] = "onnx",
    model: Annotated[str | None, Arg("The server's name for the model.")] = None,
    query_prefix: Annotated[str | None, Arg("Text to put before questions.")] = None,
    passage_prefix: Annotated[str | None, Arg("Text to put before passages.")] = None,
    pooling: Annotated[
        Literal["auto", "cls", "mean", "max", "last"],
        Arg("How token vectors are pooled; auto: as the folder specifies, or the mean."),
    ] = "auto",
    key_env: Annotated[str | None, Arg("The environment variable that holds the server's key.")] = None,
    allow_remote: Annotated[bool, Arg("Allow texts to be sent to a server on another machine.")] = False,
) -> Named[ModelRecord]:
    """Test a model and add it to this memory. Its folder is not copied."""
    if kind != "onnx" and not model:
        raise errors.InvalidArgument(name="model", problem="is needed: the server's name for the model")
    if kind == "onnx" and "://" in place:
        raise errors.InvalidArgument(
            name="kind", problem="must be ollama or openai for the address of a server"
        )
    _refuse_unused_options(kind, model, key_env, pooling)
    if key_env and not brain.settings.environ.get(key_env):
        raise errors.InvalidArgument(
            name="key_env", problem=f"the variable {key_env} is not set; set it to the key"
        )
    folder = brain.settings.path(place)
    chosen = _check_new_name(brain, name or (os.path.basename(folder) if kind == "onnx" else model) or "")
    if kind == "onnx":
        prefixes = {"query_prefix": query_prefix, "passage_prefix": passage_prefix}
        options = {key: text for key, text in prefixes.items() if text is not None}
        description = onnx_models.describe_folder(
            folder, chosen, options, "" if pooling == "auto" else pooling
        )
    else:
        draft = ModelDescription(
            chosen,
            kind,
            place,
            model or "",
            query_prefix=query_prefix or "",
            passage_prefix=passage_prefix or "",
            key_env=key_env or "",
        )
        description = remote_models.describe_server(draft, allow_remote, brain.settings.environ)
    _refuse_other_model(brain, description)
    _save_models(brain, {**_added_models(brain), chosen: description})
    return Named("model", _model_record(brain, description, _active_name(brain)))


@op("owner", command="model remove", examples=("quaid model remove nomic-embed-text",))
def model_remove(brain: Brain, name: Annotated[str, Arg("The model.", positional=True)]) -> Named[str]:
    """Remove a model that was added. Its files and vectors are kept."""
    added = _added_models(brain)
    if name not in added:
        if name in embedders.available_models({}):
            raise errors.InvalidArgument(name="name", problem=f"{name} was not added and cannot be removed")
        raise errors.UnknownModel(name=name, hint="")
    if name == _active_name(brain):
        raise errors.ModelInUse(name=name)
    _save_models(brain, {key: model for key, model in added.items() if key != name})
    return Named("name", name, f"Removed {name}")


@op("owner", command="model check", examples=("quaid model check bge-small-en-v1.5",))
def model_check(
    brain: Brain, name: Annotated[str | None, Arg("The model [the active one].", positional=True)] = None
) -> ModelCheckRecord:
    """Load a model and test it. Exits 1 if it fails."""
    chosen = name or _active_name(brain)
    embedder = _open_model(brain, chosen)
    problem = embedder.ready() or embedder.health()
    if problem:
        return ModelCheckRecord(chosen, False, problem, embedder.dimensions, None)
    background.clear_failure(brain, chosen)
    started = time.perf_counter()
    embedder.embed_passages([PROBE_TEXT] * 4)
    spent = (time.perf_counter() - started) * 1000 / 4
    return ModelCheckRecord(chosen, True, None, embedder.dimensions, round(spent, 1))


def model_surroundings(brain: Brain) -> EmbedderEnvironment:
    """Return the models folder and the environment that embedders may use."""
    return EmbedderEnvironment(brain.settings.models_folder, brain.settings.environ)


def _open_model(brain: Brain, name: str) -> Embedder:
    return embedders.get_embedder(name, _added_models(brain), model_surroundings(brain))


def _added_models(brain: Brain) -> dict[str, ModelDescription]:
    return embedders.parse_models(collections.get_setting(brain.db, embedders.MODELS_SETTING))


def _active_name(brain: Brain) -> str:
    """Return the model in use, or the model that will be used once semantic search is turned on."""
    return brain.model_name or collections.get_setting(brain.db, "embedding_model") or embedders.DEFAULT_MODEL


def _save_models(brain: Brain, added: dict[str, ModelDescription]) -> None:
    text = embedders.format_models(added)
    brain.db.write(lambda tx: collections.set_setting(tx, embedders.MODELS_SETTING, text))


def _check_new_name(brain: Brain, name: str) -> str:
    if not MODEL_NAME.fullmatch(name):
        raise errors.InvalidArgument(
            name="name", problem=f"{name!r} is not allowed: use up to 80 letters, digits and . _ : / -"
        )
    if name in embedders.BUILT_IN_FACTORIES or name in embedders.available_models({}):
        raise errors.InvalidArgument(name="name", problem=f"{name} is taken; choose another with --name")
    if name in _added_models(brain):
        raise errors.AlreadyExists(path=f"The model {name}", hint=f"`quaid model remove {name}` comes first.")
    return name


def _refuse_unused_options(kind: str, model: str | None, key_env: str | None, pooling: str) -> None:
    """Reject options that have no effect for this kind of model."""
    for name, options in (("model", model), ("key_env", key_env)):
        if kind == "onnx" and options:
            raise errors.InvalidArgument(name=name, problem="is for servers; leave it out for a folder")
    if kind != "onnx" and pooling != "auto":
        raise errors.InvalidArgument(name="pooling", problem="is for folders; a server does that itself")


def _refuse_other_model(brain: Brain, description: ModelDescription) -> None:
    """Raise InvalidArgument for a name whose stored vectors were made by another model.

    Vectors of two models cannot be compared.
    """

    model = vectors.list_models(brain.db).get(description.name)
    if model is None:
        return
    other = model.dimensions != description.dimensions
    sample = None if other else model.sample(brain.db)
    if sample is not None:
        text, stored = sample
        (vector,) = embedders.open_embedder(description, model_surroundings(brain)).embed_passages([text])
        other = vectors.cosine_to_stored(vector, stored) < SAME_MODEL_COSINE
    if other:
        raise errors.InvalidArgument(
            name="name",
            problem=f"{model.name} has vectors of another model here ({model.dimensions} dimensions); choose another"
            " with --name",
        )


def _model_record(brain: Brain, description: ModelDescription, active: str) -> ModelRecord:
    try:
        embedder = embedders.open_embedder(description, model_surroundings(brain))
        problem = embedder.ready()
        failed = None if problem else background.unresolved_failure(brain, description.name)
        if failed is not None:
            problem = f"it failed at {failed.at}: {failed.problem}"
    except errors.QuaidError as error:
        return ModelRecord(
            *description[:8], description.name == active, False, str(error.facts.get("problem", error))
        )
    return ModelRecord(
        *description[:4],
        embedder.dimensions,
        embedder.max_tokens,
        embedder.query_prefix,
        embedder.passage_prefix,
        description.name == active,
        problem is None,
        problem,
    )


@op(
    "owner",
    examples=("quaid embed", "quaid embed people/alice", "quaid embed --model my-model"),
)
def embed(
    brain: Brain,
    slug: Annotated[str | None, Arg("Only this page.", positional=True)] = None,
    all: Annotated[
        bool,
        Arg("All pages, and conversations of any age; existing vectors are kept."),
    ] = False,
    stale: Annotated[bool, Arg("Only text that changed since it was embedded. This is the default.")] = False,
    model: Annotated[
        str | None, Arg("Create vectors for this model, and switch to it when none is missing.")
    ] = None,
    force: Annotated[bool, Arg("With `model`: switch even if golden questions fail then.")] = False,
) -> EmbedRecord:
    """Create missing vectors of pages, then of conversations. If stopped, the next run continues."""
    if slug and (all or stale):
        raise errors.InvalidArgument(name="slug", problem="names one page; leave it out, or the option")
    pages = [editing.require_page(brain, slug).slug] if slug else None
    started = time.process_time()
    embedder = _open_model(brain, model) if model else brain.embedder
    if not model:
        background.use_chosen_model(brain, embedder)
    try:
        since = background.turns_since(brain)
        report = Backfill(brain.db, embedder, brain.now, brain.progress).run(
            slugs=pages, turns_since="" if all and since is not None else since
        )
    except (errors.Cancelled, KeyboardInterrupt):
        made, total = embedding_queue.ChunkQueue(brain.db, embedder.name).coverage()
        command = f"quaid embed --model {model}" if model else "quaid embed"
        raise errors.EmbeddingStopped(made=made, total=total, model=embedder.name, command=command) from None
    assert report is not None  # run() returns None only if patient=False
    covered, total = embedding_queue.ChunkQueue(brain.db, embedder.name).coverage()
    if model and covered == total:
        _switch_model(brain, embedder, force=force, turn_on=False)
    active = vectors.active_model(brain.db)
    return EmbedRecord(
        embedder.name,
        *report[:5],
        active is not None and active.name == embedder.name,
        round(time.process_time() - started, 2),
        report.turns,
        report.turns_left,
    )


SEMANTIC_SEARCH = "semantic_search"


class EmbeddingsRecord(NamedTuple):
    on: bool
    model: str  # the selected model, even while it cannot be used
    chosen_by: str  # environment variable, config file, "memory" or "default"
    ready: bool
    problem: str | None
    vectors: int
    chunks: int
    filling: bool  # True if an embedding process is running
    next_step: str


@op("owner", command="embeddings list", examples=("quaid embeddings list",))
def embeddings_list(brain: Brain) -> Named[tuple[ModelRecord, ...]]:
    """List the models for semantic search. Loads no model."""
    return model_list(brain)


@op("owner", command="embeddings use", examples=("quaid embeddings use bge-small-en-v1.5",))
def embeddings_use(
    brain: Brain,
    name: Annotated[str, Arg("The model.", positional=True)],
    force: Annotated[bool, Arg("Switch even if golden questions fail then.")] = False,
) -> EmbeddingsRecord:
    """Use this model for semantic search. Missing vectors are created in the background.

    With golden questions, its vectors must exist, and the questions are asked with it before it is used, unless
    --force is set.
    """
    _refuse_if_pinned(brain)
    name = embedders.DEFAULT_MODEL if name in embedders.DEFAULT_MODEL_ALIASES else name
    embedder = _open_model(brain, name)
    problem = embedder.ready()
    if problem:
        raise errors.EmbedderUnavailable(
            name=name, problem=problem, remedy=f"`quaid model check {name}` tells more; nothing was changed"
        )
    if not force and brain.model_name != name and GoldenQuestions(brain.db).all():
        made, total = embedding_queue.ChunkQueue(brain.db, name).coverage()
        if total - made > backfill.MAX_INLINE_CHUNKS:
            raise errors.GoldenUnchecked(name=name, missing=total - made)
    _switch_model(brain, embedder, force=force, turn_on=True)
    return embeddings_status(brain)


def _switch_model(brain: Brain, embedder: Embedder, *, force: bool, turn_on: bool) -> None:
    """Use a model. Unless `force`, raise GoldenFails if golden questions would fail with it.

    With `turn_on`, turn semantic search on.
    """
    moment = brain.now()

    def work(tx: "Transaction") -> None:
        vectors.use_model(tx, embedder.name, embedder.dimensions, moment)
        if turn_on:
            collections.set_setting(tx, SEMANTIC_SEARCH, "on")

    is_change = brain.model_name != embedder.name
    golden.guard(
        brain, lambda: brain.db.write(work), what=f"The model {embedder.name}", force=force or not is_change
    )


@op("owner", command="embeddings off", examples=("quaid embeddings off",))
def embeddings_off(
    brain: Brain,
    force: Annotated[bool, Arg("Turn it off even if golden questions fail then.")] = False,
) -> EmbeddingsRecord:
    """Turn semantic search off: searches use words only, and their results say so. Vectors are kept."""
    _refuse_if_pinned(brain)

    def work() -> None:
        brain.db.write(lambda tx: collections.set_setting(tx, SEMANTIC_SEARCH, "off"))

    golden.guard(brain, work, what="Search by words only", force=force)
    return embeddings_status(brain)


def _refuse_if_pinned(brain: Brain) -> None:
    value, source = brain.settings.configured("embedding.plugin")
    if value is not None:
        raise errors.InvalidArgument(
            name="embedding.plugin", problem=f"{source} says {value}, which goes before; change it there"
        )


@op("owner", command="embeddings status", aliases={"embeddings": {}}, examples=("quaid embeddings status",))
def embeddings_status(brain: Brain) -> EmbeddingsRecord:
    """Show which model is chosen, whether it can be used, and how many vectors it has. Loads no model."""
    chosen, configured = brain.model_name, collections.get_setting(brain.db, "embedding_model")
    name = chosen or configured or embedders.DEFAULT_MODEL
    source = brain.settings.configured("embedding.plugin")[1] or ("memory" if configured else "default")
    problem = _model_problem(brain) if chosen else "semantic search is off"
    made, total = embedding_queue.ChunkQueue(brain.db, name).coverage()
    filling = embedding_queue.current_run(brain.db.path) is not None
    record = EmbeddingsRecord(bool(chosen), name, source, problem is None, problem, made, total, filling, "")
    return record._replace(next_step=_next_step(brain, record))


def _model_problem(brain: Brain) -> str | None:
    try:
        return brain.embedder.ready()
    except errors.QuaidError as error:
        return str(error.facts.get("problem") or error).rstrip(".")


def _next_step(brain: Brain, record: EmbeddingsRecord) -> str:
    if not record.on:
        return brain.way_to_meaning
    if record.problem:
        return "until the model is back, questions are answered by words; nothing else has to be done"
    if record.filling or record.vectors == record.chunks:
        return ""
    if background.is_embedding_on(brain):
        return "`quaid serve` makes the missing vectors in its pauses; `quaid embed` makes them now"
    return "`quaid embed` makes the missing vectors"


class RerankRecord(NamedTuple):
    on: bool
    place: str
    model: str
    key_env: str
    time_limit: float
    """Maximum seconds that reranking may take for one question."""
    ready: bool
    problem: str | None


@op(
    "owner",
    command="rerank use",
    examples=(
        "quaid rerank use ~/models/ms-marco-MiniLM-L6-v2",
        "quaid rerank use http://127.0.0.1:8080 --model bge-reranker-v2-m3 --time-limit 5",
        "quaid rerank use https://api.example.com/v1 --model rerank-1 --key-env EXAMPLE_KEY --allow-remote",
    ),
)
def rerank_use(
    brain: Brain,
    place: Annotated[
        str, Arg("A folder with a cross-encoder in ONNX, or the address of a rerank server.", positional=True)
    ],
    model: Annotated[str | None, Arg("The server's name for the model.")] = None,
    key_env: Annotated[str | None, Arg("The environment variable that holds the server's key.")] = None,
    time_limit: Annotated[float, Arg("Seconds for one question.", minimum=0.1, maximum=60)] = 2.0,
    allow_remote: Annotated[bool, Arg("Allow texts to be sent to a server on another machine.")] = False,
) -> RerankRecord:
    """Test a cross-encoder, and let it reorder the best 30 pages of each question.

    If it fails or takes too long, `query` returns the usual order and says so in `notes`.
    """
    is_server = "://" in place
    if is_server and not model:
        raise errors.InvalidArgument(name="model", problem="is needed: the server's name for the model")
    for name, option in (("model", model), ("key_env", key_env)):
        if option and not is_server:
            raise errors.InvalidArgument(name=name, problem="is for servers; leave it out for a folder")
    if key_env and not brain.settings.environ.get(key_env):
        raise errors.InvalidArgument(
            name="key_env", problem=f"the variable {key_env} is not set; set it to the key"
        )
    draft = rerank.RerankerDescription(
        place if is_server else brain.settings.path(place),
        model or "",
        key_env or "",
        time_limit=float(time_limit),
    )
    text = rerank.format_description(rerank.check_description(draft, allow_remote, brain.settings.environ))
    brain.db.write(lambda tx: collections.set_setting(tx, RERANKER_SETTING, text))
    return rerank_status(brain)


@op("owner", command="rerank off", examples=("quaid rerank off",))
def rerank_off(brain: Brain) -> RerankRecord:
    """Turn reranking off."""
    brain.db.write(lambda tx: collections.set_setting(tx, RERANKER_SETTING, ""))
    return rerank_status(brain)


@op("owner", command="rerank status", aliases={"rerank": {}}, examples=("quaid rerank status",))
def rerank_status(brain: Brain) -> RerankRecord:
    """Show whether results are reranked, and by what. Loads no model and sends nothing."""
    reranker = brain.reranker
    if reranker is None:
        return RerankRecord(False, "", "", "", 0.0, False, "reranking is off; `quaid rerank use` sets it up")
    description, problem = reranker.description, reranker.ready()
    return RerankRecord(
        True,
        description.place,
        description.model,
        description.key_env,
        description.time_limit,
        problem is None,
        problem,
    )
