"""Setting up a reranker, asking with it, and turning it off."""

from pathlib import Path
from typing import Any

import pytest
from tests.embedding.conftest import serving
from tests.search.tiny_reranker import write_reranker

from quaid.app import Brain, ModelCache
from quaid.errors import InvalidArgument, InvalidModel
from quaid.operations import dispatch

KEY = "secret-of-the-test"


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def harbour(brain: Brain) -> Brain:
    call(
        brain, "put", slug="garden", compiled_truth="# Garden\n\nharbour harbour harbour, tulips and tulips."
    )
    call(brain, "put", slug="timetable", compiled_truth="# Times\n\nBy the harbour the ferry is at the quay.")
    return brain


def first(brain: Brain) -> str:
    return str(call(brain, "query", query="harbour").results[0].slug)


def test_reranker_is_off_before_setup_and_after_turning_off(harbour: Brain, tmp_path: Path) -> None:
    assert (call(harbour, "rerank status").on, first(harbour)) == (False, "garden")
    record = call(harbour, "rerank use", place=str(write_reranker(tmp_path / "model")), time_limit=5)
    assert (record.on, record.ready, record.problem, record.time_limit) == (True, True, None, 5)
    assert first(harbour) == "timetable"
    assert not call(harbour, "rerank off").on
    assert first(harbour) == "garden"


def test_threads_of_a_server_share_the_model(harbour: Brain, tmp_path: Path) -> None:
    call(harbour, "rerank use", place=str(write_reranker(tmp_path / "model")))
    models = ModelCache()
    with Brain(harbour.settings, models=models) as one, Brain(harbour.settings, models=models) as other:
        assert one.reranker is other.reranker is not None
        call(harbour, "rerank off")
        assert one.reranker is None


def test_a_folder_that_went_away_is_reported_and_the_answer_stays(harbour: Brain, tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model")
    call(harbour, "rerank use", place=str(folder))
    folder.rename(tmp_path / "elsewhere")
    answer = call(harbour, "query", query="harbour")
    assert answer.results[0].slug == "garden"
    assert any(note.startswith("not reranked: there is no folder") for note in answer.notes)
    status = call(harbour, "rerank status")
    assert (status.on, status.ready) == (True, False)


def test_invalid_reranker_is_refused_and_changes_nothing(harbour: Brain, tmp_path: Path) -> None:
    folder = str(write_reranker(tmp_path / "model"))
    with pytest.raises(InvalidArgument, match="the server's name"):
        call(harbour, "rerank use", place="http://127.0.0.1:1")
    with pytest.raises(InvalidArgument, match="for servers"):
        call(harbour, "rerank use", place=folder, model="m")
    with pytest.raises(InvalidArgument, match="variable ABSENT is not set"):
        call(harbour, "rerank use", place="http://127.0.0.1:1", model="m", key_env="ABSENT")
    with pytest.raises(InvalidModel, match="another machine"):
        call(harbour, "rerank use", place="https://rerank.example", model="m")
    with pytest.raises(InvalidModel, match="cannot be reached"):
        call(harbour, "rerank use", place="http://127.0.0.1:1", model="m")
    with pytest.raises(InvalidArgument, match="quaid rerank use PLACE"):
        call(harbour, "config set", key="reranker", value=folder)
    assert not call(harbour, "rerank status").on


def test_a_key_is_read_from_the_environment_and_never_stored(harbour: Brain) -> None:
    harbour.settings = harbour.settings._replace(environ={**harbour.settings.environ, "RERANK_KEY": KEY})
    with serving() as server:
        server.answer = lambda _, body: (
            200,
            {
                "results": [
                    {"index": at, "relevance_score": float("ferry" in text)}
                    for at, text in enumerate(body["documents"])
                ]
            },
        )
        call(harbour, "rerank use", place=server.place, model="m", key_env="RERANK_KEY")
        assert first(harbour) == "timetable"
        assert {headers["Authorization"] for _, _, headers in server.asked} == {f"Bearer {KEY}"}
    stored = harbour.db.rows("SELECT key, value FROM config")
    assert KEY not in str(list(stored))
    assert KEY not in str(call(harbour, "rerank status"))


def test_search_as_you_type_is_not_reranked(harbour: Brain, tmp_path: Path) -> None:
    call(harbour, "rerank use", place=str(write_reranker(tmp_path / "model")))
    assert call(harbour, "glance", query="harbour").answer.results[0].slug == "garden"
