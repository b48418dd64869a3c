"""Models that turn text into vectors: which there are, adding, removing, trying one.

What was added is kept in the memory's own config, so that a memory knows its models wherever it goes; keys
of services are not kept at all. Switching the active model is the business of `quaid embed`.
"""

import os
import re
import time
from typing import Annotated, Literal, NamedTuple

from quaid.brain import Brain
from quaid.embedding import registry as embedders
from quaid.embedding.registry import Embedder, EmbedderEnvironment, ModelDescription
from quaid.errors import (
    AlreadyExists,
    Cancelled,
    EmbeddingStopped,
    InvalidArgument,
    ModelInUse,
    QuaidError,
    UnknownModel,
)
from quaid.ops import background, editing
from quaid.ops.register import Arg, op
from quaid.storage import collections

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}")
SAME_MODEL = 0.95  # cosine of one text's vectors, made at two times
PROBE = (
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


class ModelsRecord(NamedTuple):
    models: tuple[ModelRecord, ...]


class ModelAddRecord(NamedTuple):
    model: ModelRecord


class ModelRemoveRecord(NamedTuple):
    name: str


class EmbedRecord(NamedTuple):
    model: str
    embedded: int  # chunks that got a vector now
    cached: int  # that had one already
    total: int
    failed: int
    failures: tuple[str, ...]  # the pages, or conversations, that the model gave nothing usable for
    active: bool
    cpu_seconds: float
    turns: int = 0  # of conversations, that got their vectors now
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
def model_list(brain: Brain) -> ModelsRecord:
    """List the models with their state; nothing is loaded."""
    active = _active(brain)
    known = embedders.available_models(_added(brain))
    return ModelsRecord(tuple(_record(brain, each, active) for each in known.values()))


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
    name: Annotated[str | None, Arg("What to call it [the folder's or the model's name].")] = None,
    kind: Annotated[
        Literal["onnx", "ollama", "openai"], Arg("A folder, or what the server speaks.")
    ] = "onnx",
    model: Annotated[str | None, Arg("The server's name for the model.")] = None,
    query_prefix: Annotated[str | None, Arg("Text to put before questions.")] = None,
    passage_prefix: Annotated[str | None, Arg("Text to put before passages.")] = None,
    pooling: Annotated[
        Literal["auto", "cls", "mean", "max", "last"],
        Arg("How tokens become one vector; auto: as the folder says, or their mean."),
    ] = "auto",
    key_env: Annotated[str | None, Arg("The environment variable that holds the server's key.")] = None,
    allow_remote: Annotated[bool, Arg("Let texts go to a server on another machine.")] = False,
) -> ModelAddRecord:
    """Add a model to this memory after trying it. A folder stays where it is; nothing is copied."""
    if kind != "onnx" and not model:
        raise InvalidArgument(name="model", problem="is needed: the server's name for the model")
    if kind == "onnx" and "://" in place:
        raise InvalidArgument(name="kind", problem="must be ollama or openai for the address of a server")
    _refuse_needless(kind, model, key_env, pooling)
    if key_env and not brain.settings.environ.get(key_env):
        raise InvalidArgument(name="key_env", problem=f"the variable {key_env} is not set; set it to the key")
    folder = brain.settings.path(place)
    chosen = _new_name(brain, name or (os.path.basename(folder) if kind == "onnx" else model) or "")
    if kind == "onnx":
        from quaid.embedding import onnx as onnx_models

        said = {"query_prefix": query_prefix, "passage_prefix": passage_prefix}
        given = {key: text for key, text in said.items() if text is not None}
        description = onnx_models.describe_folder(folder, chosen, given, "" if pooling == "auto" else pooling)
    else:
        from quaid.embedding import remote as remote_models

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
    _refuse_another(brain, description)
    _keep(brain, {**_added(brain), chosen: description})
    return ModelAddRecord(_record(brain, description, _active(brain)))


@op("owner", command="model remove", examples=("quaid model remove nomic-embed-text",))
def model_remove(brain: Brain, name: Annotated[str, Arg("The model.", positional=True)]) -> ModelRemoveRecord:
    """Forget a model that was added. Its files stay, and so do the vectors that it made."""
    added = _added(brain)
    if name not in added:
        if name in embedders.available_models({}):
            raise InvalidArgument(name="name", problem=f"{name} was not added and cannot be removed")
        raise UnknownModel(name=name, hint="")
    if name == _active(brain):
        raise ModelInUse(name=name)
    _keep(brain, {key: each for key, each in added.items() if key != name})
    return ModelRemoveRecord(name)


@op("owner", command="model check", examples=("quaid model check bge-small-en-v1.5",))
def model_check(
    brain: Brain, name: Annotated[str | None, Arg("The model [the active one].", positional=True)] = None
) -> ModelCheckRecord:
    """Load a model and try it. Exits 1 when it does not do what it should."""
    chosen = name or _active(brain)
    embedder = _open(brain, chosen)
    problem = embedder.ready() or embedder.health()
    if problem:
        return ModelCheckRecord(chosen, False, problem, embedder.dimensions, None)
    background.works(brain, chosen)
    started = time.perf_counter()
    embedder.embed_passages([PROBE] * 4)
    spent = (time.perf_counter() - started) * 1000 / 4
    return ModelCheckRecord(chosen, True, None, embedder.dimensions, round(spent, 1))


def surroundings(brain: Brain) -> EmbedderEnvironment:
    """What models may use of this machine."""
    return EmbedderEnvironment(brain.settings.models_folder, brain.settings.environ)


def _open(brain: Brain, name: str) -> Embedder:
    return embedders.get_embedder(name, _added(brain), surroundings(brain))


def _added(brain: Brain) -> dict[str, ModelDescription]:
    return embedders.parse_models(collections.get_setting(brain.db, embedders.MODELS_SETTING))


def _active(brain: Brain) -> str:
    """The model in use, or that comes back when semantic search is turned on."""
    return brain.model_name or collections.get_setting(brain.db, "embedding_model") or embedders.DEFAULT_MODEL


def _keep(brain: Brain, added: dict[str, ModelDescription]) -> None:
    text = embedders.format_models(added)
    brain.db.write(lambda tx: collections.set_setting(tx, embedders.MODELS_SETTING, text))


def _new_name(brain: Brain, name: str) -> str:
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            name="name", problem=f"{name!r} is no name: letters, digits and . _ : / - are, up to 80 of them"
        )
    if name in embedders.BUILT_IN_FACTORIES or name in embedders.available_models({}):
        raise InvalidArgument(name="name", problem=f"{name} is taken; choose another with --name")
    if name in _added(brain):
        raise AlreadyExists(path=f"The model {name}", hint=f"`quaid model remove {name}` comes first.")
    return name


def _refuse_needless(kind: str, model: str | None, key_env: str | None, pooling: str) -> None:
    """What would have no effect was meant for something else."""
    for name, said in (("model", model), ("key_env", key_env)):
        if kind == "onnx" and said:
            raise InvalidArgument(name=name, problem="is for servers; leave it out for a folder")
    if kind != "onnx" and pooling != "auto":
        raise InvalidArgument(name="pooling", problem="is for folders; a server does that itself")


def _refuse_another(brain: Brain, description: ModelDescription) -> None:
    """A name that has vectors here stays with the model that made them: those of two cannot be compared."""
    from quaid.storage import vectors

    known = vectors.find_model(brain.db, description.name)
    if known is None:
        return
    other = known.dimensions != description.dimensions
    sample = None if other else vectors.sample_vector(brain.db, known.name)
    if sample is not None:
        (found,) = embedders.open_embedder(description, surroundings(brain)).embed_passages([sample.text])
        other = vectors.cosine_to_stored(found, sample.vector) < SAME_MODEL
    if other:
        raise InvalidArgument(
            name="name",
            problem=f"{known.name} has vectors of another model here ({known.dimensions} dimensions); choose another"
            " with --name",
        )


def _record(brain: Brain, description: ModelDescription, active: str) -> ModelRecord:
    try:
        embedder = embedders.open_embedder(description, surroundings(brain))
        problem = embedder.ready()
        failed = None if problem else background.down(brain, description.name)
        if failed is not None:
            problem = f"it failed at {failed.at}: {failed.problem}"
    except QuaidError as error:
        return ModelRecord(
            *description[:8], description.name == active, False, str(error.facts.get("problem", error))
        )
    return ModelRecord(
        description.name,
        description.kind,
        description.place,
        description.model,
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
        Arg("Every page, and conversations of any age; text that has a vector already keeps it."),
    ] = False,
    stale: Annotated[bool, Arg("What changed since it was last embedded; this is also the default.")] = False,
    model: Annotated[str | None, Arg("Fill this model, and switch to it when it has every vector.")] = None,
) -> EmbedRecord:
    """Make the vectors that are missing, of pages and then of conversations. Stopped, it goes on where it was."""
    from quaid.embedding.backfill import run_backfill
    from quaid.storage import embedding_queue, vectors

    if slug and (all or stale):
        raise InvalidArgument(name="slug", problem="names one page; leave it out, or the option")
    pages = [editing.require(brain, slug).slug] if slug else None
    started = time.process_time()
    embedder = _open(brain, model) if model else brain.embedder
    if not model:
        background.settle(brain, embedder)
    try:
        filled = run_backfill(
            brain.db,
            embedder,
            now=brain.now,
            progress=brain.progress,
            slugs=pages,
            turns_since=_turns_since(brain, all),
        )
    except (Cancelled, KeyboardInterrupt):
        raise _stopped(
            brain, embedder.name, f"quaid embed --model {model}" if model else "quaid embed"
        ) from None
    assert filled is not None  # only those without patience get nothing
    covered, total = embedding_queue.chunk_coverage(brain.db, embedder.name)
    if model and covered == total:
        brain.db.write(lambda tx: vectors.activate_model(tx, embedder.name))
    active = vectors.active_model(brain.db)
    return EmbedRecord(
        embedder.name,
        filled.embedded,
        filled.cached,
        filled.total,
        filled.failed,
        filled.failures,
        active is not None and active.name == embedder.name,
        round(time.process_time() - started, 2),
        filled.turns,
        filled.turns_left,
    )


def _turns_since(brain: Brain, all: bool) -> str | None:
    since = background.turns_since(brain)
    return "" if all and since is not None else since


def _stopped(brain: Brain, model: str, command: str) -> Cancelled:
    from quaid.storage import chunks, embedding_queue, vectors

    known = vectors.find_model(brain.db, model)
    made, total = embedding_queue.chunk_coverage(brain.db, model) if known else (0, chunks.count(brain.db))
    return EmbeddingStopped(made=made, total=total, model=model, command=command)
