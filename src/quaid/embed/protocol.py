"""What a model must offer, what is known of one before it is opened, and what it gets from outside.

A plugin is a callable under the entry-point group `quaid.embedders`: it takes a Description and the
Surroundings, and returns an Embedder without loading anything.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol


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


class Description(NamedTuple):
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


class Surroundings(NamedTuple):
    """What a model may use of this machine."""

    models_folder: str  # where prepared copies may be kept
    environ: Mapping[str, str]


Factory = Callable[[Description, Surroundings], Embedder]
