"""Models behind a server: in order, silent, slow, talking nonsense, elsewhere."""

import array
import math
import socket
import time
from typing import Any

import pytest

from quaid.embedding import registry as embedders, remote as remote_models
from quaid.embedding.registry import EmbedderEnvironment, ModelDescription
from quaid.embedding.remote import HttpEmbedder
from quaid.errors import EmbedderUnavailable, InvalidModel


def embedder(server: Any, kind: str = "ollama", time_out: float = 60.0, **more: Any) -> HttpEmbedder:
    description = ModelDescription("m", kind, server.place, "some-model", **more)
    return HttpEmbedder(
        description, remote_models.WIRE_FORMATS[kind], {"KEY": "secret-of-the-test"}, time_out=time_out
    )


@pytest.mark.parametrize(("kind", "path"), [("ollama", "/api/embed"), ("openai", "/v1/embeddings")])
def test_both_kinds_of_servers_give_vectors_of_length_one_in_order(server: Any, kind: str, path: str) -> None:
    result = embedder(server, kind, dimensions=3).embed_passages(["a", "four"])
    vectors = [array.array("f", item) for item in result]
    assert [round(vector[0] / vector[1]) for vector in vectors] == [1, 4]
    assert all(math.isclose(math.hypot(*vector), 1, rel_tol=1e-6) for vector in vectors)
    assert server.asked[0][0] == path
    assert server.asked[0][1]["model"] == "some-model"


def test_many_texts_go_in_several_requests(server: Any) -> None:
    vectors = embedder(server).embed_passages([str(number) for number in range(70)])
    assert len(vectors) == 70
    assert [len(body["input"]) for _, body, _ in server.asked] == [32, 32, 6]


def test_prefixes_go_before_questions_and_passages(server: Any) -> None:
    model = embedder(server, query_prefix="query: ", passage_prefix="passage: ")
    model.embed_query("x")
    model.embed_passages(["y"])
    assert [body["input"] for _, body, _ in server.asked] == [["query: x"], ["passage: y"]]


def test_the_key_is_taken_from_the_environment_for_each_request(server: Any) -> None:
    embedder(server, "openai", key_env="KEY").embed_query("x")
    assert server.asked[0][2]["Authorization"] == "Bearer secret-of-the-test"
    missing = embedder(server, "openai", key_env="NO_SUCH_KEY")
    assert "NO_SUCH_KEY" in str(missing.ready())
    with pytest.raises(EmbedderUnavailable, match="NO_SUCH_KEY"):
        missing.embed_query("x")
    assert len(server.asked) == 1


def test_a_question_of_a_megabyte_is_cut(server: Any) -> None:
    embedder(server).embed_query("x" * 1_000_000)
    assert len(server.asked[0][1]["input"][0]) == 512 * 4


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((200, b"<html>welcome</html>"), "something else than JSON"),
        ((200, b"\xff\xfe\x00"), "something else than JSON"),
        ((200, {"error": "no"}), "something else than vectors"),
        ((200, []), "something else than vectors"),
        ((200, {"embeddings": None}), "something else than vectors"),
        ((200, {"embeddings": [["1", "2", "3"]]}), "something else than vectors"),
        ((200, {"embeddings": [[]]}), "something else than vectors"),
        ((200, {"embeddings": [[0.0, 0.0, 0.0]]}), "something else than vectors"),
        ((200, b'{"embeddings": [[NaN, 1, 1]]}'), "something else than vectors"),
        ((200, b'{"embeddings": [[1e400, 1, 1]]}'), "something else than vectors"),
        ((200, {"embeddings": [[True, False, True]]}), "something else than vectors"),
        ((200, {"embeddings": []}), "0 vectors for 1 texts"),
        ((200, {"embeddings": [[1.0, 2.0]]}), "have 2 numbers, not 3"),
        ((404, {"error": "model 'some-model' not found"}), "status 404.*not found"),
        ((307, b""), "status 307"),
        ((500, b""), "status 500"),
    ],
)
def test_invalid_response_is_reported_with_its_content(
    server: Any, answer: tuple[int, Any], says: str
) -> None:
    server.answer = lambda path, body: answer
    model = embedder(server, dimensions=3)
    with pytest.raises(EmbedderUnavailable, match=says):
        model.embed_query("x")
    assert model.health() is not None
    assert all(path == "/api/embed" for path, _, _ in server.asked), "no redirect is followed"


def test_vectors_of_different_widths_are_refused(server: Any) -> None:
    server.answer = lambda path, body: (200, {"embeddings": [[1.0, 2.0], [1.0]]})
    with pytest.raises(EmbedderUnavailable, match="1 and 2 numbers"):
        embedder(server).embed_passages(["a", "b"])


@pytest.mark.parametrize("indexes", [(0, 0), (1, 2), (0, 5)])
def test_vectors_of_unknown_order_are_refused(server: Any, indexes: tuple[int, int]) -> None:
    data = [{"index": index, "embedding": [1.0, 2.0]} for index in indexes]
    server.answer = lambda path, body: (200, {"data": data})
    with pytest.raises(EmbedderUnavailable, match="something else than vectors"):
        embedder(server, "openai").embed_passages(["a", "b"])


def test_a_hanging_server_times_out(server: Any) -> None:
    server.delay = 60
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match=r"did not answer within 0\.5 seconds"):
        embedder(server, time_out=0.5).embed_query("x")
    assert time.monotonic() - started < 30


def test_a_server_that_sends_slowly_times_out(server: Any) -> None:
    server.drip = True
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match="did not answer within"):
        embedder(server, time_out=0.5).embed_passages(["a" * 400] * 20)
    assert time.monotonic() - started < 15  # all of it would take longer


def test_closed_port_and_other_protocol_are_reported() -> None:
    with socket.socket() as taken:  # so that nobody else listens there meanwhile
        taken.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{taken.getsockname()[1]}"
        nobody = HttpEmbedder(ModelDescription("m", "ollama", place), remote_models.OLLAMA, {}, 60.0)
        with pytest.raises(EmbedderUnavailable, match="cannot be reached") as caught:
            nobody.embed_query("x")
    assert "words alone" in str(caught.value)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("ftp://127.0.0.1", "not an address of http"),
        ("http://", "not an address of http"),
        ("http://127.0.0.1:99999", "not an address"),
        ("http://me:hush@127.0.0.1", "password"),
        ("http://127.0.0.1/?key=1", "behind"),
    ],
)
def test_addresses_that_cannot_be_kept(place: str, says: str) -> None:
    with pytest.raises(InvalidModel, match=says) as caught:
        remote_models.parse_address(place)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("place", ["http://localhost:1", "http://127.8.8.8", "http://[::1]:8080/v1/"])
def test_this_machine_is_known(place: str) -> None:
    assert remote_models.parse_address(place).is_local


@pytest.mark.parametrize("place", ["http://10.0.0.7", "https://example.org", "http://localhost.example.org"])
def test_other_machines_must_be_allowed(place: str) -> None:
    draft = ModelDescription("m", "openai", place, "x")
    with pytest.raises(InvalidModel, match="--allow-remote"):
        remote_models.describe_server(draft, allow_remote=False, environ={})
    unasked = embedders.open_embedder(draft, EmbedderEnvironment("", {}))
    with pytest.raises(EmbedderUnavailable, match="another machine"):
        unasked.embed_query("x")


def test_a_key_never_travels_unprotected() -> None:
    draft = ModelDescription("m", "openai", "http://10.0.0.7", "x", key_env="KEY")
    with pytest.raises(InvalidModel, match="unprotected"):
        remote_models.describe_server(draft, allow_remote=True, environ={"KEY": "x"})


def test_describing_a_server_finds_its_width(server: Any) -> None:
    description = remote_models.describe_server(ModelDescription("m", "ollama", server.place, "x"), False, {})
    assert description.dimensions == 3
    assert not description.remote
