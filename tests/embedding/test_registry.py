"""Which models there are: built in, added, from other packages."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from quaid.embedding import registry as embedders
from quaid.embedding.registry import EmbedderEnvironment, ModelDescription
from quaid.errors import EmbedderUnavailable, UnknownModel

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLUGIN = """
import struct
class Lengths:
    def __init__(self, description, surroundings):
        self.name, self.dimensions, self.max_tokens = description.name, 2, 512
        self.query_prefix = self.passage_prefix = ""
    def ready(self): return None
    def health(self): return None
    def embed_query(self, text): return struct.pack("<2f", 1, 0)
    def embed_passages(self, texts): return [self.embed_query(each) for each in texts]
def broken(description, surroundings): raise RuntimeError("out of order")
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with two models."""
    (tmp_path / "lengths_model.py").write_text(PLUGIN)
    info = tmp_path / "lengths_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths-model\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{embedders.ENTRY_POINT_GROUP}]\nlengths = lengths_model:Lengths\nbroken = lengths_model:broken\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_built_in_ones_are_plugins_like_any_other() -> None:
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        declared = tomllib.load(file)["project"]["entry-points"][embedders.ENTRY_POINT_GROUP]
    assert declared == embedders.BUILT_IN_FACTORIES


def test_models_survive_the_way_into_the_config_and_back() -> None:
    added = {"é": ModelDescription("é", "onnx", "/a b/é", dimensions=8, query_prefix="q: ", remote=False)}
    assert embedders.parse_models(embedders.format_models(added)) == added
    assert embedders.parse_models(None) == {}
    assert embedders.parse_models('[{"name": "n", "kind": "onnx", "of_the_future": 1}]')["n"].kind == "onnx"


def test_an_unknown_model_is_answered_with_the_nearest(surroundings: EmbedderEnvironment) -> None:
    with pytest.raises(UnknownModel, match=r"Did you mean 'bge-small-en-v1\.5'"):
        embedders.get_embedder("bge-small-en", {}, surroundings)
    with pytest.raises(UnknownModel):
        embedders.get_embedder("onnx", {}, surroundings)


@pytest.mark.usefixtures("plugin")
def test_a_package_can_bring_a_model(surroundings: EmbedderEnvironment) -> None:
    built_in = [embedders.DEFAULT_MODEL, embedders.MULTILINGUAL_MODEL]
    assert list(embedders.available_models({})) == [*built_in, "lengths", "broken"]
    model = embedders.get_embedder("lengths", {}, surroundings)
    assert (model.name, len(model.embed_query("x"))) == ("lengths", 8)


@pytest.mark.usefixtures("plugin")
def test_a_plugin_that_fails_says_so(surroundings: EmbedderEnvironment) -> None:
    with pytest.raises(EmbedderUnavailable, match="RuntimeError: out of order"):
        embedders.get_embedder("broken", {}, surroundings)


def test_a_model_whose_package_is_gone_says_so(surroundings: EmbedderEnvironment) -> None:
    with pytest.raises(EmbedderUnavailable, match="no installed package offers the kind 'vanished'"):
        embedders.get_embedder("m", {"m": ModelDescription("m", "vanished")}, surroundings)


def test_looking_at_the_registry_loads_nothing_heavy() -> None:
    code = "import sys, quaid.embedding.registry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "onnxruntime", "tokenizers", "json", "http.client", "importlib.metadata", "threading"}
    assert heavy & set(done.stdout.split()) == set()
