"""Which embedding models there are, what a model offers, and how one is opened.

Models are built in, added to a database by a person, or plugins of other packages. A plugin is a callable under the
entry-point group `quaid.embedders` that takes a ModelDescription and an EmbedderEnvironment and returns an Embedder
without loading anything. Installed packages are looked up only for plugins: that takes 20 ms.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from quaid.errors import EmbedderUnavailable, UnknownModel

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Embedder(Protocol):
    """Turns texts into vectors: f32, little endian, of length one."""

    name: str
    dimensions: int
    max_tokens: int  # what is longer is cut, not refused
    query_prefix: str
    passage_prefix: str

    def ready(self) -> str | None:
        """None when it can be expected to work, else why not. Loads nothing and asks no network."""

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of texts to be found. The same text gives the same vector, whatever stands beside it."""

    def embed_query(self, text: str) -> bytes:
        """The vector of a question."""

    def health(self) -> str | None:
        """Load the model and try it: None when it does what it should, else what is wrong."""


class ModelDescription(NamedTuple):
    """A model as a memory keeps it: how to open it, never a secret."""

    name: str
    kind: str  # the plugin that opens it
    place: str = ""  # a folder, or the address of a server
    model: str = ""  # what the server calls it
    dimensions: int = 0
    max_tokens: int = 512
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: str = ""
    key_env: str = ""  # the environment variable that holds the key
    remote: bool = False  # whether texts may leave this machine


class EmbedderEnvironment(NamedTuple):
    """What a model may use of this machine."""

    models_folder: str  # where prepared copies may be kept
    environ: Mapping[str, str]


EmbedderFactory = Callable[[ModelDescription, EmbedderEnvironment], Embedder]

ENTRY_POINT_GROUP = "quaid.embedders"
DEFAULT_MODEL = "bge-small-en-v1.5"
DEFAULT_DIMENSIONS = 384
DEFAULT_MODEL_ALIASES = ("embeddings-local", "local")  # what config files call the default one
MODELS_SETTING = "embedders"  # the key of a memory's config that holds what was added

# The same lines stand in pyproject.toml; a test compares them.
BUILT_IN_FACTORIES = {
    "bge-small-en-v1.5": "quaid.embedding.onnx:open_bge_small",
    "onnx": "quaid.embedding.onnx:open_folder",
    "ollama": "quaid.embedding.remote:open_ollama",
    "openai": "quaid.embedding.remote:open_openai",
}
ADDABLE_KINDS = ("onnx", "ollama", "openai")  # ways of opening what is added, not models themselves


def parse_models(text: str | None) -> dict[str, ModelDescription]:
    """The models that a memory has been given, from its config."""
    if not text:
        return {}
    import json

    known = set(ModelDescription._fields)
    return {
        each["name"]: ModelDescription(**{key: value for key, value in each.items() if key in known})
        for each in json.loads(text)
    }


def format_models(added: Mapping[str, ModelDescription]) -> str:
    """The same as text for the config."""
    import json

    return json.dumps([each._asdict() for each in added.values()], ensure_ascii=False)


def available_models(added: Mapping[str, ModelDescription]) -> dict[str, ModelDescription]:
    """Every model by name, those of other packages too."""
    models = {DEFAULT_MODEL: ModelDescription(DEFAULT_MODEL, DEFAULT_MODEL)}
    for name in _plugins():
        if name not in BUILT_IN_FACTORIES:
            models[name] = ModelDescription(name, name)
    return {**models, **added}


def get_embedder(
    name: str, added: Mapping[str, ModelDescription], surroundings: EmbedderEnvironment
) -> Embedder:
    """The model of that name, not loaded yet."""
    if name in added:
        description = added[name]
    elif name not in ADDABLE_KINDS and (name in BUILT_IN_FACTORIES or name in _plugins()):
        description = ModelDescription(name, name)
    else:
        raise UnknownModel(name=name, hint=_similar_name(name, available_models(added)))
    return open_embedder(description, surroundings)


def open_embedder(description: ModelDescription, surroundings: EmbedderEnvironment) -> Embedder:
    """The model that a description stands for, not loaded yet."""
    if description.kind in BUILT_IN_FACTORIES:
        module, _, function = BUILT_IN_FACTORIES[description.kind].partition(":")
        factory: EmbedderFactory = getattr(__import__(module, fromlist=[function]), function)
        return factory(description, surroundings)
    plugin = _plugins().get(description.kind)
    if plugin is None:
        raise EmbedderUnavailable(
            name=description.name,
            problem=f"no installed package offers the kind {description.kind!r}",
            remedy="Install the package that it came with, or choose another model",
        )
    try:
        factory = plugin.load()
        return factory(description, surroundings)
    except Exception as error:  # a plugin may fail in any way; the memory goes on with words
        raise EmbedderUnavailable(
            name=description.name,
            problem=f"its plugin failed ({type(error).__name__}: {error})",
            remedy="Mend or remove the package that it came with, or choose another model",
        ) from error


def _plugins() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=ENTRY_POINT_GROUP)}


def _similar_name(name: str, known: Mapping[str, ModelDescription]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
