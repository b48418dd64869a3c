"""Models as a person meets them: list, add, remove, check."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.embedding import registry as embedders
from quaid.embedding.registry import built_in_folder
from quaid.errors import (
    AlreadyExists,
    EmbedderUnavailable,
    InvalidArgument,
    InvalidModel,
    ModelInUse,
    NotAllowed,
    UnknownModel,
)
from quaid.operations import dispatch, models, registry
from quaid.storage import collections


class _Handler(BaseHTTPRequestHandler):
    turned = False

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        vectors = [[1, -len(text), 2] if self.turned else [len(text), 1, 2] for text in texts]
        body = json.dumps({"embeddings": vectors}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    """A server that speaks as Ollama does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The built-in model's files under another name, as any exported model."""
    source = built_in_folder()
    folder = tmp_path / "other-model"
    folder.mkdir()
    for name in ("model_quantized.onnx", "tokenizer.json", "tokenizer_config.json"):
        os.symlink(os.path.join(source, name), folder / name)
    return folder


BUILT_IN = (embedders.DEFAULT_MODEL, embedders.MULTILINGUAL_MODEL)


def call(brain: Brain, name: str, /, **arguments: Any) -> Any:
    registry.load_subject("models")
    return dispatch.call(brain, registry.OPERATIONS[f"models.{name}"], arguments, "owner")


def test_a_new_memory_has_the_built_in_model(brain: Brain) -> None:
    record = call(brain, "model_list")
    built_in, optional = record.value
    assert (built_in.name, built_in.dimensions) == ("bge-small-en-v1.5", 384)
    assert (built_in.active, built_in.ready) == (True, True)
    assert (optional.name, optional.dimensions, optional.active) == ("use-multilingual-v3", 512, False)
    assert optional.ready or "pip install 'quaid-memory[multilingual]'" in str(optional.problem)
    assert render(record).startswith("*  bge-small-en-v1.5    384  ready\n   use-multilingual-v3  512")


def test_a_model_folder_is_used_in_place(brain: Brain, folder: Path) -> None:
    before = sorted(os.listdir(folder))
    model = call(brain, "model_add", place="other-model", pooling="cls", query_prefix="q: ").value
    assert (model.name, model.dimensions, model.max_tokens) == ("other-model", 384, 512)
    assert (model.place, model.query_prefix, model.ready, model.active) == (str(folder), "q: ", True, False)
    assert sorted(os.listdir(folder)) == before
    assert [model.name for model in call(brain, "model_list").value] == [*BUILT_IN, "other-model"]
    checked = call(brain, "model_check", name="other-model")
    assert checked.healthy
    assert checked.ms_per_text > 0
    assert checked.exit_status == 0


def test_a_folder_that_loses_its_tokenizer_is_not_ready(brain: Brain, folder: Path) -> None:
    call(brain, "model_add", place=str(folder))
    os.remove(folder / "tokenizer.json")
    assert "tokenizer.json" in call(brain, "model_list").value[-1].problem
    checked = call(brain, "model_check", name="other-model")
    assert (checked.healthy, checked.exit_status) == (False, 1)
    assert "tokenizer.json" in render(checked)
    call(brain, "model_remove", name="other-model")
    with pytest.raises(InvalidModel, match=r"no tokenizer\.json"):
        call(brain, "model_add", place=str(folder))
    assert len(call(brain, "model_list").value) == len(BUILT_IN)


def test_a_server_is_added_checked_and_removed(brain: Brain, address: str) -> None:
    record = call(brain, "model_add", place=address, kind="ollama", model="nomic-embed-text")
    assert (record.value.name, record.value.dimensions) == ("nomic-embed-text", 3)
    assert "quaid embed --model nomic-embed-text" in render(record)
    assert call(brain, "model_check", name="nomic-embed-text").healthy
    removed = call(brain, "model_remove", name="nomic-embed-text")
    assert render(removed) == "Removed nomic-embed-text"
    with pytest.raises(UnknownModel):
        call(brain, "model_check", name="nomic-embed-text")


def test_a_key_is_never_written_down(brain: Brain, address: str) -> None:
    brain.settings = brain.settings._replace(environ={"SOME_KEY": "very-secret"})
    call(brain, "model_add", place=address, kind="ollama", model="m", key_env="SOME_KEY")
    kept = collections.get_setting(brain.db, embedders.MODELS_SETTING) or ""
    assert "SOME_KEY" in kept
    assert "very-secret" not in kept


def test_a_server_that_is_not_there_is_not_added(brain: Brain) -> None:
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        call(brain, "model_add", place="http://127.0.0.1:9", kind="ollama", model="m")
    assert collections.get_setting(brain.db, embedders.MODELS_SETTING) is None


def test_another_machine_needs_a_word(brain: Brain) -> None:
    with pytest.raises(InvalidModel, match="--allow-remote"):
        call(brain, "model_add", place="https://example.org", kind="openai", model="m")


def test_wrong_calls_are_answered_with_what_is_wrong(brain: Brain, address: str) -> None:
    with pytest.raises(InvalidArgument, match="kind: must be ollama or openai"):
        call(brain, "model_add", place=address)
    with pytest.raises(InvalidArgument, match="model: is needed"):
        call(brain, "model_add", place=address, kind="ollama")
    with pytest.raises(InvalidArgument, match="is not allowed"):
        call(brain, "model_add", place=address, kind="ollama", model="m", name="two words")
    with pytest.raises(InvalidArgument, match="is taken"):
        call(brain, "model_add", place=address, kind="ollama", model="m", name=embedders.DEFAULT_MODEL)
    with pytest.raises(InvalidArgument, match="key_env: the variable NO_SUCH is not set"):
        call(brain, "model_add", place=address, kind="ollama", model="m", key_env="NO_SUCH")
    with pytest.raises(InvalidArgument, match="pooling: is for folders"):
        call(brain, "model_add", place=address, kind="ollama", model="m", pooling="cls")
    with pytest.raises(InvalidArgument, match="model: is for servers"):
        call(brain, "model_add", place="folder", model="m")
    with pytest.raises(InvalidArgument, match="key_env: is for servers"):
        call(brain, "model_add", place="folder", key_env="KEY")
    call(brain, "model_add", place=address, kind="ollama", model="m")
    with pytest.raises(AlreadyExists, match="quaid model remove m"):
        call(brain, "model_add", place=address, kind="ollama", model="m")


def test_a_name_with_vectors_stays_with_the_model_that_made_them(
    brain: Brain, address: str, folder: Path
) -> None:
    call(brain, "model_add", place=address, kind="ollama", model="m")
    dispatch.call(brain, dispatch.find_command("put"), {"slug": "a", "content": "# A\n\nText."}, "owner")
    call(brain, "embed", model="m")
    brain.db.write(lambda tx: collections.set_setting(tx, "embedding_model", embedders.DEFAULT_MODEL))
    call(brain, "model_remove", name="m")
    with pytest.raises(InvalidArgument, match=r"m has vectors of another model here \(3 dimensions\)"):
        call(brain, "model_add", place=str(folder), name="m")
    assert [model.name for model in call(brain, "model_list").value] == [*BUILT_IN]
    assert call(brain, "model_add", place=address, kind="ollama", model="m").value.ready


def test_another_model_of_the_same_width_is_noticed_by_its_vectors(
    brain: Brain, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(brain, "model_add", place=address, kind="ollama", model="m")
    dispatch.call(brain, dispatch.find_command("put"), {"slug": "a", "content": "# A\n\nText."}, "owner")
    call(brain, "embed", model="m")
    brain.db.write(lambda tx: collections.set_setting(tx, "embedding_model", embedders.DEFAULT_MODEL))
    call(brain, "model_remove", name="m")
    monkeypatch.setattr(_Handler, "turned", True)
    with pytest.raises(InvalidArgument, match="another model"):
        call(brain, "model_add", place=address, kind="ollama", model="m")


def test_the_built_in_and_the_active_model_stay(brain: Brain, address: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot be removed"):
        call(brain, "model_remove", name=embedders.DEFAULT_MODEL)
    with pytest.raises(UnknownModel):
        call(brain, "model_remove", name="nothing")
    call(brain, "model_add", place=address, kind="ollama", model="m")
    brain.db.write(lambda tx: collections.set_setting(tx, "embedding_model", "m"))
    with pytest.raises(ModelInUse):
        call(brain, "model_remove", name="m")
    assert [model.active for model in call(brain, "model_list").value] == [False, False, True]


def test_only_the_owner_has_to_do_with_models(brain: Brain) -> None:
    registry.load_subject("models")
    for name in ("model_list", "model_add", "model_remove", "model_check"):
        operation = registry.OPERATIONS[f"models.{name}"]
        assert not operation.is_tool
        with pytest.raises(NotAllowed):
            dispatch.call(brain, operation, {}, "write")


def test_the_surroundings_come_from_the_settings(brain: Brain) -> None:
    brain.settings = brain.settings._replace(environ={})
    assert models.model_surroundings(brain).models_folder == os.path.join(brain.settings.home, "models")
