"""Choosing the model of semantic search, turning it off, and what happens when it is gone for a while."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.embedding import registry as embedders
from quaid.errors import EmbeddingsOff, InvalidArgument, NotAllowed, UnknownModel
from quaid.operations import background, dispatch
from quaid.storage import collections, vectors


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        body = json.dumps({"embeddings": [[len(text), text.count("e"), 2] for text in texts]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Service:
    """A server that speaks as Ollama does, and can go away and come back."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._stop()

    def _stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Gone for a while, with its port kept from others."""
        self._stop()
        with socket.socket() as place:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            place.bind(("127.0.0.1", self.port))
            yield
        self.start()


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.stop()


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def by_words(answer: Any) -> str:
    """Why the answer was found by words only, if it was."""
    return next((note for note in answer.notes if note.startswith("by words only")), "")


@pytest.fixture
def two_models(brain: Brain, service: Service) -> Brain:
    call(brain, "put", slug="ferry", compiled_truth="# Ferry\n\nThe boat leaves at nine.")
    call(brain, "put", slug="bread", compiled_truth="# Bread\n\nFlour, water and a long night.")
    for name in ("one", "two"):
        address = f"http://127.0.0.1:{service.port}"
        call(brain, "model add", place=address, kind="ollama", model=name, name=name)
    return brain


def test_switching_keeps_the_text_and_fills_what_is_missing(two_models: Brain) -> None:
    before = call(two_models, "get", slug="ferry")
    first = call(two_models, "embeddings use", name="one")
    assert (first.model, first.vectors, first.chunks, first.chosen_by) == ("one", 0, 2, "memory")
    assert "quaid embed" in first.next_step
    background.embed_missing(two_models)
    assert call(two_models, "embeddings status").vectors == 2
    second = call(two_models, "embeddings use", name="two")
    assert (second.model, second.vectors) == ("two", 0)
    call(two_models, "embed")
    assert call(two_models, "embeddings status")[5:7] == (2, 2)
    back = call(two_models, "embeddings use", name="one")
    assert (back.vectors, back.next_step) == (2, "")  # what it made before is still there
    assert call(two_models, "get", slug="ferry") == before


def test_off_answers_by_words_and_says_so(two_models: Brain) -> None:
    call(two_models, "embeddings use", name="one")
    call(two_models, "embed")
    off = call(two_models, "embeddings off")
    assert (off.on, off.model, off.vectors) == (False, "one", 2)
    answer = call(two_models, "query", question="when does the boat leave")
    assert answer.results[0].slug == "ferry"
    assert "Semantic search is off" in by_words(answer)
    assert not background.is_embedding_on(two_models)
    with pytest.raises(EmbeddingsOff, match="quaid embeddings use one"):
        call(two_models, "embed")
    assert call(two_models, "status").model.problem == "semantic search is off"
    assert call(two_models, "embeddings use", name="one").on
    assert not by_words(call(two_models, "query", question="when does the boat leave"))


def test_search_turned_off_in_a_file_is_turned_on_in_that_file(two_models: Brain) -> None:
    two_models.settings = two_models.settings._replace(
        options={"embedding.plugin": "off"}, config_path="/c/config.yaml"
    )
    there = "/c/config.yaml says so (embedding.plugin: off); change it there"
    assert call(two_models, "embeddings status").next_step == there
    assert call(two_models, "status").model.remedy == there
    with pytest.raises(EmbeddingsOff, match="change it there"):
        call(two_models, "embed")
    with pytest.raises(InvalidArgument, match="change it there"):  # as the hint would have it otherwise
        call(two_models, "embeddings use", name="one")


def test_a_disabled_search_is_reported_once(two_models: Brain) -> None:
    call(two_models, "notebook init")
    path = os.path.join(two_models.settings.cwd, "chat.jsonl")
    with open(path, "w") as file:
        file.write('{"role": "user", "content": "The boat leaves at nine."}\n')
    call(two_models, "conversations add", paths=[path])
    call(two_models, "embeddings use", name="one")
    call(two_models, "embeddings off")
    message = "By words only. Semantic search is off. `quaid embeddings use one` turns it on."
    for command in ("recall", "conversations search"):
        assert render(call(two_models, command, query="boat")).partition("\n")[0] == message
    two_models.db.write(lambda tx: collections.set_setting(tx, "embed_conversations", "off"))
    other = render(call(two_models, "conversations search", query="boat")).partition("\n")[0]
    assert other == "By words only: embed_conversations is off."


def test_a_model_that_goes_away_stays_chosen_and_comes_back_by_itself(
    two_models: Brain, service: Service
) -> None:
    call(two_models, "embeddings use", name="one")
    call(two_models, "embed")
    with service.away():
        answer = call(two_models, "query", question="when does the boat leave")
        assert answer.results[0].slug == "ferry"
        assert by_words(answer)
        assert call(two_models, "embeddings status").model == "one"
    for _ in range(70):
        two_models.now()  # a second each: a model that failed is asked again after a minute
    assert not by_words(call(two_models, "query", question="when does the boat leave"))
    active = vectors.active_model(two_models.db)
    assert active is not None
    assert active.name == "one"


def test_wrong_names_change_nothing(two_models: Brain) -> None:
    with pytest.raises(UnknownModel, match="Did you mean 'one'"):
        call(two_models, "embeddings use", name="ones")
    assert call(two_models, "embeddings status").model == embedders.DEFAULT_MODEL
    with pytest.raises(NotAllowed):
        dispatch.call(two_models, dispatch.find_command("embeddings off"), {}, "write")


def test_a_config_file_decides_and_says_so(two_models: Brain) -> None:
    call(two_models, "embeddings use", name="one")
    call(two_models, "embed")
    two_models.settings = two_models.settings._replace(
        options={"embedding.plugin": "two"}, config_path="/c.yaml"
    )
    status = call(two_models, "embeddings")
    assert (status.model, status.chosen_by, status.vectors) == ("two", "/c.yaml", 0)
    assert call(two_models, "embed").active
    with pytest.raises(InvalidArgument, match=r"/c\.yaml says two"):
        call(two_models, "embeddings use", name="one")
    with pytest.raises(InvalidArgument, match="change it there"):
        call(two_models, "embeddings off")
    two_models.settings = two_models.settings._replace(options={"embedding.plugin": "off"})
    assert not call(two_models, "embeddings").on
    two_models.settings = two_models.settings._replace(options={"embedding.plugin": "embeddings-local"})
    assert call(two_models, "embeddings").model == embedders.DEFAULT_MODEL


def test_the_models_are_listed_with_the_chosen_one(two_models: Brain) -> None:
    call(two_models, "embeddings use", name="two")
    listed = call(two_models, "embeddings list").value
    assert {item.name for item in listed if item.active} == {"two"}
    assert os.path.exists(two_models.db.path)
