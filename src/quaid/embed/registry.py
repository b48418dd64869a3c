"""Which models there are, and how one is opened.

Models come from three places: the built-in ones, those that a person added to this memory, and plugins of
other packages. The first two are found without looking at installed packages, which would cost a cold query
twenty milliseconds. Nothing is loaded here.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quaid.embed.protocol import Description, Embedder, Factory, Surroundings
from quaid.errors import EmbedderUnavailable, UnknownModel

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "quaid.embedders"
DEFAULT = "bge-small-en-v1.5"
DEFAULT_DIMENSIONS = 384
OTHER_NAMES = ("embeddings-local", "local")  # what config files call the default one
SETTING = "embedders"  # the key of a memory's config that holds what was added

# The same lines stand in pyproject.toml; a test compares them.
BUILT_IN = {
    "bge-small-en-v1.5": "quaid.embed.bge_small:open_model",
    "onnx": "quaid.embed.onnx:open_folder",
    "ollama": "quaid.embed.http:open_ollama",
    "openai": "quaid.embed.http:open_openai",
}
KINDS = ("onnx", "ollama", "openai")  # ways of opening what is added, not models themselves


def read(text: str | None) -> dict[str, Description]:
    """The models that a memory has been given, from its config."""
    if not text:
        return {}
    known = set(Description._fields)
    return {
        each["name"]: Description(**{key: value for key, value in each.items() if key in known})
        for each in json.loads(text)
    }


def write(added: Mapping[str, Description]) -> str:
    """The same as text for the config."""
    return json.dumps([each._asdict() for each in added.values()], ensure_ascii=False)


def available(added: Mapping[str, Description]) -> dict[str, Description]:
    """Every model by name, those of other packages too."""
    models = {DEFAULT: Description(DEFAULT, DEFAULT)}
    for name in _plugins():
        if name not in BUILT_IN:
            models[name] = Description(name, name)
    return {**models, **added}


def get(name: str, added: Mapping[str, Description], surroundings: Surroundings) -> Embedder:
    """The model of that name, not loaded yet."""
    if name in added:
        description = added[name]
    elif name not in KINDS and (name in BUILT_IN or name in _plugins()):
        description = Description(name, name)
    else:
        raise UnknownModel(name=name, hint=_nearest(name, available(added)))
    return open_(description, surroundings)


def open_(description: Description, surroundings: Surroundings) -> Embedder:
    """The model that a description stands for, not loaded yet."""
    if description.kind in BUILT_IN:
        module, _, function = BUILT_IN[description.kind].partition(":")
        factory: Factory = getattr(__import__(module, fromlist=[function]), function)
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

    return {each.name: each for each in entry_points(group=GROUP)}


def _nearest(name: str, known: Mapping[str, Description]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
