"""Reordering by a cross-encoder: an ONNX model made here, and a server in a thread."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.embedding.conftest import Server, serving
from tests.search import asking
from tests.search.tiny_reranker import write_reranker

from quaid.errors import EmbedderUnavailable, InvalidModel
from quaid.search import rerank
from quaid.search.answer import Answer
from quaid.search.candidates import WORDS_ONLY, rank_question
from quaid.search.rerank import RerankerDescription
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
Put = Callable[..., int]
KEY = "secret-of-the-test"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        running.answer = lambda _path, body: (200, by_length(body["documents"]))
        yield running


def by_length(documents: list[str]) -> dict[str, Any]:
    """Prefers long passages; best first, as servers do."""
    results = [{"index": at, "relevance_score": len(text) / 100} for at, text in enumerate(documents)]
    return {"results": sorted(results, key=lambda item: -item["relevance_score"])}


@pytest.fixture
def harbour(put: Put) -> None:
    put("garden", "The garden club asks: harbour harbour harbour, tulips and tulips.")
    put("map", "A map of the harbour.")
    put("timetable", "In the harbour, the ferry waits at the quay until nine in the evening every day.")


def ask(db: Database, reranker: rerank.Reranker | None, question: str = "harbour") -> Answer:
    return asking.ask(db, question, reranker=reranker)


def slugs(answer: Answer) -> list[str]:
    return [result.slug for result in answer.results]


@pytest.mark.usefixtures("harbour")
@pytest.mark.parametrize("width", [1, 2])
def test_a_cross_encoder_reorders_the_best_pages(db: Database, tmp_path: Path, width: int) -> None:
    assert slugs(ask(db, None))[-1] == "timetable"
    model = rerank.OnnxReranker(RerankerDescription(str(write_reranker(tmp_path / "model", width))))
    answer = ask(db, model)
    assert slugs(answer) == ["timetable", "map", "garden"]
    assert not any("rerank" in note for note in answer.notes)
    scores = [result.rank_score for result in answer.results]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.usefixtures("harbour")
def test_a_page_asked_for_by_name_stays_first(db: Database, tmp_path: Path) -> None:
    model = rerank.OnnxReranker(RerankerDescription(str(write_reranker(tmp_path / "model"))))
    assert slugs(ask(db, model, "map"))[0] == "map"
    assert slugs(ask(db, model, "garden"))[0] == "garden"


def test_only_the_best_pages_are_sent(db: Database, put: Put, server: Server) -> None:
    for number in range(40):
        put(f"note-{number}", f"harbour {'wide ' * number}")
    model = rerank.HttpReranker(RerankerDescription(server.place, "m"), {})
    before = rank_question(db, WORDS_ONLY, "harbour", now=NOW)
    after = rank_question(db, WORDS_ONLY, "harbour", now=NOW, reranker=model)
    ((_, body, _),) = server.asked
    assert len(body["documents"]) == body["top_n"] == rerank.MOST_PAGES
    assert set(after.pages[:30]) == set(before.pages[:30])
    assert after.pages[30:] == before.pages[30:]
    assert after.pages[:30] != before.pages[:30]


@pytest.mark.usefixtures("harbour")
@pytest.mark.parametrize(
    ("place", "path"),
    [("", "/v1/rerank"), ("/v2", "/v2/rerank"), ("/api/v1/rerank", "/api/v1/rerank"), ("/", "/v1/rerank")],
)
def test_a_server_is_asked_in_the_common_way(db: Database, server: Server, place: str, path: str) -> None:
    described = RerankerDescription(server.place + place, "m", "KEY")
    assert slugs(ask(db, rerank.HttpReranker(described, {"KEY": KEY}))) == ["timetable", "garden", "map"]
    ((asked, body, headers),) = server.asked
    assert asked == path
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (body["model"], body["query"]) == ("m", "harbour")


@pytest.mark.parametrize(
    "shape",
    [
        lambda items: {"data": items},
        lambda items: [{"index": item["index"], "score": item["relevance_score"]} for item in items],
    ],
)
def test_other_shapes_of_the_response_are_read(server: Server, shape: Callable[[Any], Any]) -> None:
    server.answer = lambda _path, body: (200, shape(by_length(body["documents"])["results"]))
    model = rerank.HttpReranker(RerankerDescription(server.place, "m"), {})
    assert model.scores("q", ["four", "eighteen"]) == [0.04, 0.08]


@pytest.mark.usefixtures("harbour")
@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ((500, {"error": "harbour is a secret"}), "answers with status 500"),
        ((302, {}), "answers with status 302"),
        ((200, b"no JSON"), "something else than JSON"),
        ((200, {"results": []}), "something else than a score for each passage"),
        ((200, {"results": [{"index": 0, "relevance_score": float("nan")}]}), "something else than a score"),
        ((200, [1, 2, 3]), "something else than a score for each passage"),
        ((200, "text"), "something else than a score for each passage"),
    ],
)
def test_a_server_that_fails_leaves_the_order_and_a_note(
    db: Database, server: Server, answer: tuple[int, Any], note: str
) -> None:
    server.answer = lambda _path, _body: answer
    reranked = ask(db, rerank.HttpReranker(RerankerDescription(server.place, "m", "KEY"), {"KEY": KEY}))
    assert slugs(reranked) == slugs(ask(db, None))
    (said,) = [text for text in reranked.notes if text.startswith("not reranked: ")]
    assert note in said
    assert KEY not in str(reranked)
    assert "secret" not in said  # a response may quote the texts that were sent


@pytest.mark.usefixtures("harbour")
def test_a_server_that_is_gone_or_slow_leaves_the_order(db: Database, server: Server) -> None:
    server.delay = 30
    slow = RerankerDescription(server.place, "m", time_limit=0.2)
    for described, note in (
        (slow, "within 0.2 seconds"),
        (slow._replace(place="http://127.0.0.1:1"), "reached"),
    ):
        answer = ask(db, rerank.HttpReranker(described, {}))
        assert slugs(answer) == slugs(ask(db, None))
        assert any(text.startswith("not reranked: ") and note in text for text in answer.notes)


@pytest.mark.usefixtures("harbour")
def test_without_its_key_or_its_permission_nothing_is_sent(db: Database, server: Server) -> None:
    keyless = rerank.HttpReranker(RerankerDescription(server.place, "m", "KEY"), {})
    assert any("KEY" in note for note in ask(db, keyless).notes)
    remote = rerank.HttpReranker(RerankerDescription("https://rerank.example", "m"), {})
    assert any("another machine" in note for note in ask(db, remote).notes)
    assert server.asked == []


@pytest.mark.usefixtures("harbour")
def test_when_time_is_up_only_the_scored_pages_are_reordered(db: Database, tmp_path: Path) -> None:
    folder = str(write_reranker(tmp_path / "model"))
    model = rerank.OnnxReranker(RerankerDescription(folder, time_limit=-1))
    answer = ask(db, model)
    assert slugs(answer) == slugs(ask(db, None))
    assert "reranked only the best 0 of 3 pages within -1 seconds" in answer.notes


@pytest.mark.usefixtures("harbour")
def test_a_folder_that_is_gone_or_broken_leaves_the_order(db: Database, tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model")
    (tmp_path / "model" / "model.onnx").write_bytes(b"this is no model")
    for place, note in ((folder, "it fails"), (tmp_path / "nowhere", "there is no folder")):
        answer = ask(db, rerank.OnnxReranker(RerankerDescription(str(place))))
        assert slugs(answer) == slugs(ask(db, None))
        assert any(text.startswith("not reranked: ") and note in text for text in answer.notes)


def test_long_and_empty_texts_are_scored(tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 16}))
    model = rerank.OnnxReranker(RerankerDescription(str(folder)))
    assert model.scores("ferry " * 500, ["quay " * 500, "", "quay"])[2] > 0
    assert model.scores("", ["", "quay"]) == [0.0, 4.0]


def test_threads_share_one_session(tmp_path: Path) -> None:
    model = rerank.OnnxReranker(RerankerDescription(str(write_reranker(tmp_path / "model"))))
    scores: list[list[float]] = []
    threads = [
        threading.Thread(target=lambda: scores.append(model.scores("ferry", ["quay", "tulips"])))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == [[5.0, -1.0]] * 4


def test_a_reranker_is_tried_before_it_is_stored(tmp_path: Path, server: Server) -> None:
    def wrong(description: RerankerDescription, problem: str) -> None:
        with pytest.raises(InvalidModel, match=problem):
            rerank.check_description(description, False, {"KEY": KEY})

    good = RerankerDescription(str(write_reranker(tmp_path / "good")))
    assert rerank.check_description(good, False, {}) == good
    assert rerank.parse_description(rerank.format_description(good)) == good
    wrong(RerankerDescription(str(write_reranker(tmp_path / "wide", 3))), "3 numbers for a pair")
    wrong(RerankerDescription(str(write_reranker(tmp_path / "nan", value=float("nan")))), "not a number")
    wrong(
        RerankerDescription(str(write_reranker(tmp_path / "dull", value=0.0))), "one score for all passages"
    )
    wrong(RerankerDescription(str(tmp_path)), r"no model\.onnx")
    wrong(RerankerDescription("https://rerank.example", "m"), "another machine")
    with pytest.raises(InvalidModel, match="unprotected"):
        rerank.check_description(RerankerDescription("http://rerank.example", "m", "KEY"), True, {"KEY": KEY})
    there = rerank.check_description(RerankerDescription(server.place, "m", "KEY"), False, {"KEY": KEY})
    assert not there.remote
    assert KEY not in rerank.format_description(there)


def test_errors_name_the_model_and_what_to_do(tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "model", 3)
    with pytest.raises(EmbedderUnavailable, match=r"The model model is not available.*quaid rerank off"):
        rerank.OnnxReranker(RerankerDescription(str(folder))).scores("ferry", ["quay"])


def test_without_a_reranker_nothing_of_it_is_loaded() -> None:
    code = (
        "import sys, quaid.search.answer, quaid.operations.query; print('quaid.search.rerank' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
